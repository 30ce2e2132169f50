//! Intervals that hold: how far predictions were off on rows that had no part in them.

use crate::error::{Error, Result, check_dim, check_positive};
use crate::parameter::words;
use ndarray::{Array2, ArrayView2};

words! {
    /// Where the scores behind an interval come from, and what is known of its coverage.
    pub enum IntervalKind {
        /// Rows that the model was not fitted to: coverage is at least what was asked for, if rows are exchangeable.
        Split = "split",
        /// Models fitted without each of several parts of the rows: at least `2c - 1` for a coverage of `c`, in practice `c`.
        Folds = "folds",
        /// Residuals left out, in closed form: no guarantee, right for fits that one row does not change much.
        LeaveOneOut = "leave_one_out",
    }
}

/// The score that a new row stays below with probability `coverage`: the `⌈(n + 1)c⌉`-th smallest of `n`.
///
/// Infinite where there are too few scores for the coverage: 9 are needed for 0.9, 99 for 0.99.
///
/// # References
/// Vovk, Gammerman and Shafer 2005; Lei et al. 2018 (split conformal prediction).
///
/// ```
/// use bochner::model::conformal_quantile;
/// let scores = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4, 0.6];
/// assert_eq!(conformal_quantile(&scores, 0.9)?, 0.9); // the ninth of nine
/// assert_eq!(conformal_quantile(&scores, 0.5)?, 0.5); // the fifth
/// assert_eq!(conformal_quantile(&scores, 0.95)?, f64::INFINITY);
/// # Ok::<(), bochner::Error>(())
/// ```
///
/// # Errors
/// A coverage that is not between 0 and 1, no scores, or NaN among them.
pub fn conformal_quantile(scores: &[f64], coverage: f64) -> Result<f64> {
    if !(coverage > 0.0 && coverage < 1.0) {
        return Err(Error::parameter("coverage", "above 0 and below 1", coverage));
    }
    if scores.is_empty() {
        return Err(Error::parameter("scores", "at least one", "none"));
    }
    if let Some(row) = scores.iter().position(|score| score.is_nan()) {
        return Err(Error::NonFinite { what: "scores", row, column: 0 });
    }
    let exact = (scores.len() + 1) as f64 * coverage;
    // 0.9 · 10 is 9, not the tenth: what rounding adds to a whole number does not count.
    let rank = (exact * (1.0 - 4.0 * f64::EPSILON)).ceil().max(1.0) as usize;
    if rank > scores.len() {
        return Ok(f64::INFINITY);
    }
    let mut sorted = scores.to_vec();
    let (_, found, _) = sorted.select_nth_unstable_by(rank - 1, f64::total_cmp);
    Ok(*found)
}

/// Scores of the rows that a process was fitted to, as if each had been left out: `|eᵢ|/sᵢ`, where without row `i` the residual
/// is `eᵢ = rᵢ/(1 − hᵢ)` and an observation has the variance `sᵢ² = (τ²/wᵢ)/(1 − hᵢ)`, with `hᵢ = vᵢwᵢ/τ²` from the variance `vᵢ` of
/// the process at that row.
///
/// `residuals` are targets minus means, `variances` those of the process without noise, one column per target each, `noise`
/// is the variance of the noise of every target.
///
/// # References
/// Rasmussen and Williams 2006, §5.4.2.
///
/// # Errors
/// Shapes that do not fit, and noise that is not positive.
pub fn process_scores(
    residuals: ArrayView2<'_, f64>,
    variances: ArrayView2<'_, f64>,
    weights: Option<&[f64]>,
    noise: &[f64],
) -> Result<Array2<f64>> {
    check_dim("number of rows of variances", residuals.nrows(), variances.nrows())?;
    check_dim("number of columns of variances", residuals.ncols(), variances.ncols())?;
    check_dim("number of noise variances", residuals.ncols(), noise.len())?;
    noise.iter().try_for_each(|&noise| check_positive("noise variance", noise))?;
    if let Some(weights) = weights {
        check_dim("number of weights", residuals.nrows(), weights.len())?;
    }
    Ok(Array2::from_shape_fn(residuals.dim(), |(i, t)| {
        let noise = noise[t] / weights.map_or(1.0, |w| w[i].max(f64::MIN_POSITIVE));
        let share = (1.0 - variances[[i, t]] / noise).max(1e-10);
        residuals[[i, t]].abs() / (noise * share).sqrt()
    }))
}
