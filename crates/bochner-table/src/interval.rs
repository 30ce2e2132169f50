//! Intervals from the errors of rows that had no part in a fit.
//!
//! ```
//! use bochner::catalogue::Task;
//! use bochner_table::{interval::HeldOutErrors, score::Compared};
//! use ndarray::Array2;
//! let truth = Array2::from_shape_fn((99, 1), |(i, _)| i as f64 + 1.0);
//! let compared = Compared { task: Task::Regression, predicted: Array2::zeros((99, 1)), truth };
//! assert_eq!(HeldOutErrors::of(&compared).half_width(0, 0.9), Some(90.0));
//! ```

use crate::score::Compared;
use bochner::catalogue::Task;
use bochner::model::conformal_quantile;
use bochner::words;
use serde::{Deserialize, Serialize};

/// Errors that a file keeps of a target, at most.
const MOST_ERRORS: usize = 1000;

/// Absolute errors of each target in its own unit, ascending; a thousand of them where there are more.
///
/// Intervals are split conformal ones ([`conformal_quantile`]): they cover a new row with at least the probability asked for, if
/// it is one like the rows behind the errors. The model of the file is fitted to these rows as well where memory allows, which
/// makes its errors no larger as a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeldOutErrors(Vec<Vec<f64>>);

impl HeldOutErrors {
    /// Those of predicted numbers; classes have none.
    pub fn of(compared: &Compared) -> Self {
        if compared.task == Task::Classification || compared.truth.is_empty() {
            return HeldOutErrors::default();
        }
        let columns = compared.truth.columns().into_iter().zip(compared.predicted.columns());
        let errors = columns.map(|(truth, predicted)| {
            let mut errors: Vec<f64> = truth.iter().zip(predicted).map(|(t, p)| (t - p).abs()).collect();
            errors.sort_by(f64::total_cmp);
            let n = errors.len();
            let place = |k: usize| ((2 * k + 1) * n).div_ceil(2 * MOST_ERRORS) - 1;
            if n > MOST_ERRORS { (0..MOST_ERRORS).map(|k| errors[place(k)]).collect() } else { errors }
        });
        HeldOutErrors(errors.collect())
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

    /// `90 % intervals: ± 3.2`, for each target.
    pub fn in_words(&self, targets: &[&str]) -> Option<String> {
        let widths = targets.iter().enumerate().filter_map(|(k, name)| Some((self.half_width(k, 0.9)?, name)));
        let widths: Vec<String> = widths
            .map(|(width, name)| match targets.len() {
                1 => format!("± {}", words::significant(width, 3)),
                _ => format!("± {} for {name}", words::significant(width, 3)),
            })
            .collect();
        (!widths.is_empty()).then(|| format!("90 % intervals: {}", widths.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn intervals_of_many_errors_are_those_of_all_of_them() {
        let n = 4999;
        let truth = Array2::from_shape_fn((n, 1), |(i, _)| ((i * 7919) % n) as f64);
        let compared = Compared { task: Task::Regression, predicted: Array2::zeros((n, 1)), truth };
        let errors = HeldOutErrors::of(&compared);
        assert_eq!((errors.rows(), errors.targets()), (MOST_ERRORS, 1));
        for coverage in [0.5, 0.8, 0.9, 0.99] {
            // One error in a thousand is five of them.
            let width = errors.half_width(0, coverage).unwrap();
            assert!((width - coverage * n as f64).abs() <= 6.0, "{coverage}: {width}");
        }
        assert_eq!(errors.half_width(0, 0.9999), None);
        assert!(errors.is_sound() && errors.in_words(&["y"]).unwrap().contains("± 45"));
    }
}
