//! Intervals and probabilities from rows that had no part in a fit.
//!
//! ```
//! use bochner::catalogue::Task;
//! use bochner_table::{calibration::Calibration, score::Compared};
//! use ndarray::Array2;
//! let truth = Array2::from_shape_fn((99, 1), |(i, _)| i as f64 + 1.0);
//! let compared = Compared { task: Task::Regression, predicted: Array2::zeros((99, 1)), truth };
//! assert_eq!(Calibration::of_numbers(&compared).half_width(0, 0.9), Some(90.0));
//! ```

use crate::score::Compared;
use bochner::words;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Errors that a file keeps of a target, at most.
const MOST_ERRORS: usize = 1000;

/// What was learned about a model from rows that had no part in its fit.
///
/// Intervals are split conformal ones: the prediction plus and minus the `⌈(n + 1)c⌉`-th smallest error of `n` rows covers a new
/// row with a probability of at least `c`, if the new row is one like them. The model of the file is fitted to these rows as well
/// where memory allows, which makes its errors no larger as a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calibration {
    /// Absolute errors of each target in its own unit, ascending; some of them where there are many.
    pub errors: Vec<Vec<f64>>,
    /// What decision values of classes are multiplied by before their exponentials are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharpness: Option<f64>,
}

impl Calibration {
    /// From predictions of numbers.
    pub fn of_numbers(compared: &Compared) -> Self {
        let errors = compared.truth.columns().into_iter().zip(compared.predicted.columns()).map(|(truth, predicted)| {
            let mut errors: Vec<f64> = truth.iter().zip(predicted).map(|(t, p)| (t - p).abs()).collect();
            errors.sort_by(f64::total_cmp);
            match errors.len() {
                n if n > MOST_ERRORS => (0..MOST_ERRORS).map(|k| errors[((2 * k + 1) * n).div_ceil(2 * MOST_ERRORS) - 1]).collect(),
                _ => errors,
            }
        });
        Calibration { errors: errors.filter(|errors| !errors.is_empty()).collect(), sharpness: None }
    }

    /// From one value per class: the sharpness with the least negative log likelihood.
    pub fn of_classes(values: ArrayView2<'_, f64>, compared: &Compared) -> Self {
        let labels: Vec<usize> = compared.truth.iter().map(|v| *v as usize).collect();
        if labels.len() < 20 {
            return Calibration::default();
        }
        let loss = |log_sharpness: f64| -> f64 {
            let one = |(row, label): (ndarray::ArrayView1<'_, f64>, &usize)| {
                let row = row.mapv(|v| v * log_sharpness.exp());
                let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = row.iter().map(|v| (v - largest).exp()).sum();
                largest + sum.ln() - row.get(*label).copied().unwrap_or(largest)
            };
            values.rows().into_iter().zip(&labels).map(one).sum()
        };
        // The loss is convex in the sharpness, so a golden section finds its only minimum.
        let (mut low, mut high) = (0.05f64.ln(), 500f64.ln());
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        for _ in 0..40 {
            let (one, two) = (high - ratio * (high - low), low + ratio * (high - low));
            if loss(one) <= loss(two) { high = two } else { low = one }
        }
        Calibration { errors: Vec::new(), sharpness: Some((0.5 * (low + high)).exp()) }
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.sharpness.is_none()
    }

    /// Refuses numbers that no fit has made.
    pub(crate) fn is_sound(&self) -> bool {
        let ascending = |errors: &Vec<f64>| {
            errors.iter().all(|e| e.is_finite() && *e >= 0.0) && errors.windows(2).all(|pair| pair[0] <= pair[1])
        };
        self.errors.iter().all(ascending) && self.sharpness.is_none_or(|s| s.is_finite() && s > 0.0)
    }

    /// How far the ends of an interval are from the prediction of a target; `None` where too few rows were held out for so much
    /// certainty.
    pub fn half_width(&self, target: usize, coverage: f64) -> Option<f64> {
        let errors = self.errors.get(target)?;
        let place = ((errors.len() + 1) as f64 * coverage).ceil() as usize;
        errors.get(place.max(1) - 1).copied()
    }

    /// Probabilities from decision values, one column per class.
    pub fn probabilities(&self, mut values: Array2<f64>) -> Option<Array2<f64>> {
        let sharpness = self.sharpness?;
        for mut row in values.rows_mut() {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.mapv_inplace(|v| (sharpness * (v - largest)).exp());
            let sum = row.sum();
            row.mapv_inplace(|v| v / sum);
        }
        Some(values)
    }

    /// `90 % intervals are ± 3.2 wide`, for each target.
    pub fn in_words(&self, targets: &[&str]) -> Option<String> {
        let widths: Vec<(f64, &&str)> =
            targets.iter().enumerate().filter_map(|(k, name)| Some((self.half_width(k, 0.9)?, name))).collect();
        let said: Vec<String> = match &widths[..] {
            [] => return None,
            [(width, _)] => vec![format!("± {}", words::significant(*width, 3))],
            many => many.iter().map(|(width, name)| format!("± {} for {name}", words::significant(*width, 3))).collect(),
        };
        Some(format!("90 % intervals: {}", said.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bochner::catalogue::Task;

    #[test]
    fn intervals_of_many_errors_are_those_of_all_of_them() {
        let n = 4999;
        let truth = Array2::from_shape_fn((n, 1), |(i, _)| ((i * 7919) % n) as f64);
        let compared = Compared { task: Task::Regression, predicted: Array2::zeros((n, 1)), truth };
        let calibration = Calibration::of_numbers(&compared);
        assert_eq!(calibration.errors[0].len(), MOST_ERRORS);
        for coverage in [0.5, 0.8, 0.9, 0.99] {
            // One error in a thousand is five of them.
            let width = calibration.half_width(0, coverage).unwrap();
            assert!((width - coverage * n as f64).abs() <= 6.0, "{coverage}: {width}");
        }
        assert_eq!(calibration.half_width(0, 1.0), None);
        assert!(calibration.is_sound() && calibration.in_words(&["y"]).unwrap().contains("± 4500"));
    }

    #[test]
    fn probabilities_have_the_sharpness_that_made_the_labels() {
        // Two classes with values ±v: class 1 has the probability 1/(1 + exp(-2 s v)), of which labels are an exact share.
        let (s, v) = (3.0f64, 0.2f64);
        let share = 1.0 / (1.0 + (-2.0 * s * v).exp());
        let n = 10_000;
        let ones = (share * n as f64).round() as usize;
        let values = Array2::from_shape_fn((n, 2), |(_, k)| if k == 1 { v } else { -v });
        let truth = Array2::from_shape_fn((n, 1), |(i, _)| f64::from(u8::from(i < ones)));
        let compared = Compared { task: Task::Classification, predicted: truth.clone(), truth };
        let calibration = Calibration::of_classes(values.view(), &compared);
        let found = calibration.sharpness.unwrap();
        // A share that is rounded to 1/n moves the sharpness by dp/(2 v p (1 - p)).
        let allowed = 0.5 / n as f64 / (2.0 * v * share * (1.0 - share)) + 1e-6 * s;
        assert!((found - s).abs() < allowed, "{found}");
        let probabilities = calibration.probabilities(values).unwrap();
        assert!((probabilities[[0, 1]] - ones as f64 / n as f64).abs() < 1e-6);
    }
}
