//! Intervals from the errors of rows that had no part in a fit.
//!
//! ```
//! use bochner::catalogue::Task;
//! use bochner_table::{interval::HeldOutErrors, score::Compared};
//! use ndarray::Array2;
//! let truth = Array2::from_shape_fn((99, 1), |(i, _)| i as f64 + 1.0);
//! let compared = Compared { task: Task::Regression, predicted: Array2::zeros((99, 1)), truth };
//! assert_eq!(HeldOutErrors::of(&compared, &[]).half_width(0, 0.9), Some(90.0));
//! ```

use crate::score::Compared;
use crate::target::TargetScale;
use bochner::catalogue::Task;
use bochner::model::conformal_quantile;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Errors that a file keeps of a target, at most.
const MOST_ERRORS: usize = 1000;

/// Absolute errors of each target in its own unit, or of its logarithm where that is learned; of classes, the probabilities that
/// were left for others than the true one. Ascending; a thousand of them where there are more.
///
/// Intervals are split conformal ones ([`conformal_quantile`]): they cover a new row with at least the probability asked for, if
/// it is one like the rows behind the errors. The model of the file is fitted to these rows as well where memory allows, which
/// makes its errors no larger as a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeldOutErrors(Vec<Vec<f64>>);

impl HeldOutErrors {
    /// Those of predicted numbers, on their scales; classes have none.
    pub fn of(compared: &Compared, scales: &[TargetScale]) -> Self {
        if compared.task == Task::Classification || compared.truth.is_empty() {
            return HeldOutErrors::default();
        }
        let columns = compared.truth.columns().into_iter().zip(compared.predicted.columns()).enumerate();
        let errors = columns.map(|(k, (truth, predicted))| {
            let scale = scales.get(k).copied().unwrap_or(TargetScale::plain(0.0, 1.0));
            some(truth.iter().zip(predicted).map(|(t, p)| scale.distance(*t, *p)).collect())
        });
        HeldOutErrors(errors.collect())
    }

    /// Those of probabilities, one column for each class, of rows with known classes.
    pub fn of_classes(truth: &Array2<f64>, probabilities: &Array2<f64>) -> Self {
        let left = truth.iter().zip(probabilities.rows()).map(|(class, row)| (1.0 - row[*class as usize]).max(0.0));
        let left: Vec<f64> = left.collect();
        if left.is_empty() { HeldOutErrors::default() } else { HeldOutErrors(vec![some(left)]) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Targets that have some.
    pub fn targets(&self) -> usize {
        self.0.len()
    }

    /// Rows behind them, a thousand at most.
    pub fn rows(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    /// Whether they are errors that a fit can have made.
    pub(crate) fn is_sound(&self) -> bool {
        self.0.iter().flatten().all(|error| error.is_finite() && *error >= 0.0)
    }

    /// How far the ends of an interval are from the prediction of a target; `None` where too few rows were held out for so
    /// much certainty.
    pub fn half_width(&self, target: usize, coverage: f64) -> Option<f64> {
        conformal_quantile(self.0.get(target)?, coverage).ok().filter(|width| width.is_finite())
    }

    /// `90 % intervals: ± 3.2`, for each target with its name and scale.
    pub fn in_words(&self, targets: &[(&str, TargetScale)]) -> Option<String> {
        let widths = targets.iter().enumerate().filter_map(|(k, target)| Some((self.half_width(k, 0.9)?, target)));
        let widths: Vec<String> = widths
            .map(|(width, (name, scale))| match targets.len() {
                1 => scale.width_in_words(width),
                _ => format!("{} for {name}", scale.width_in_words(width)),
            })
            .collect();
        (!widths.is_empty()).then(|| format!("90 % intervals: {}", widths.join(", ")))
    }
}

/// Errors in order, a thousand of them where there are more.
fn some(mut errors: Vec<f64>) -> Vec<f64> {
    errors.sort_by(f64::total_cmp);
    let n = errors.len();
    let place = |k: usize| ((2 * k + 1) * n).div_ceil(2 * MOST_ERRORS) - 1;
    if n > MOST_ERRORS { (0..MOST_ERRORS).map(|k| errors[place(k)]).collect() } else { errors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_many_errors_are_those_of_all_of_them() {
        let n = 4999;
        let truth = Array2::from_shape_fn((n, 1), |(i, _)| ((i * 7919) % n) as f64);
        let compared = Compared { task: Task::Regression, predicted: Array2::zeros((n, 1)), truth };
        let errors = HeldOutErrors::of(&compared, &[]);
        assert_eq!((errors.rows(), errors.targets()), (MOST_ERRORS, 1));
        for coverage in [0.5, 0.8, 0.9, 0.99] {
            // One error in a thousand is five of them.
            let width = errors.half_width(0, coverage).unwrap();
            assert!((width - coverage * n as f64).abs() <= 6.0, "{coverage}: {width}");
        }
        assert_eq!(errors.half_width(0, 0.9999), None);
        assert!(errors.is_sound() && errors.in_words(&[("y", TargetScale::plain(0.0, 1.0))]).unwrap().contains("± 45"));
    }

    #[test]
    fn sets_hold_the_true_class_as_often_as_they_say() {
        // The true class has probability 0, 1/n, 2/n, …: of all rows nine in ten are left with less than 0.9 for others.
        let n = 1000;
        let truth = Array2::from_shape_fn((n, 1), |(i, _)| (i % 2) as f64);
        let p = Array2::from_shape_fn((n, 2), |(i, k)| {
            let of_true = i as f64 / n as f64;
            if k == i % 2 { of_true } else { 1.0 - of_true }
        });
        let most = HeldOutErrors::of_classes(&truth, &p).half_width(0, 0.9).unwrap();
        let covered = (0..n).filter(|i| 1.0 - p[[*i, i % 2]] <= most).count();
        assert!((900..=902).contains(&covered), "{covered}");
        assert!(HeldOutErrors::of_classes(&Array2::zeros((0, 1)), &Array2::zeros((0, 2))).is_empty());
    }
}
