use crate::error::{Error, Result, check_dim};
use crate::scalar::Real;
use crate::special::log1p_minus;
use ndarray::{ArrayView1, ArrayView2, Zip};

/// Variances below this are taken as this: an exact zero would make every divergence infinite.
const SMALLEST_VARIANCE: f64 = 1e-12;
/// Probabilities below this are taken as this.
const SMALLEST_PROBABILITY: f64 = 1e-300;

fn check_rows(what: &'static str, found: usize) -> Result<()> {
    if found > 0 { Ok(()) } else { Err(Error::parameter(what, "at least one row", "none")) }
}

fn check_same(what: &'static str, expected: (usize, usize), found: (usize, usize)) -> Result<()> {
    check_dim(what, expected.0, found.0)?;
    check_dim(what, expected.1, found.1)
}

/// `KL(a ‖ b)` of two normal laws.
fn normal_kl(mean_a: f64, var_a: f64, mean_b: f64, var_b: f64) -> f64 {
    // r − ln(1+r) with r = va/vb − 1: no cancellation for nearly equal variances.
    let difference = mean_a - mean_b;
    0.5 * (-log1p_minus((var_a - var_b) / var_b) + difference * difference / var_b)
}

/// Kullback–Leibler divergence of approximate from exact predictive laws, `KL(approximate ‖ exact)`:
/// `½ Σ [vₐ/vₑ − 1 + ln(vₑ/vₐ) + (mₐ − mₑ)²/vₑ]`, summed over rows and averaged over columns (outputs, classes).
///
/// Variances below 1e-12 count as 1e-12. The other direction, `KL(exact ‖ approximate)`, is that of exchanged arguments.
///
/// # Errors
/// Arrays of different shapes, or empty ones.
pub fn gaussian_kl<R: Real>(
    mean_approximate: ArrayView2<'_, R>,
    var_approximate: ArrayView2<'_, R>,
    mean_exact: ArrayView2<'_, R>,
    var_exact: ArrayView2<'_, R>,
) -> Result<f64> {
    let shape = mean_exact.dim();
    check_same("shape of exact variances", shape, var_exact.dim())?;
    check_same("shape of approximate means", shape, mean_approximate.dim())?;
    check_same("shape of approximate variances", shape, var_approximate.dim())?;
    check_rows("means", shape.0)?;
    check_rows("columns of means", shape.1)?;
    let mut sum = 0.0;
    let variance = |v: R| Real::to_f64(v).max(SMALLEST_VARIANCE);
    Zip::from(&mean_approximate).and(&var_approximate).and(&mean_exact).and(&var_exact).for_each(
        |&ma, &va, &me, &ve| sum += normal_kl(Real::to_f64(ma), variance(va), Real::to_f64(me), variance(ve)),
    );
    Ok(sum / shape.1 as f64)
}

/// Mean negative log-likelihood of targets under normal predictions: mean of `½ ln 2πv + (y − m)²/2v`.
///
/// `var` is the variance of an observation, noise included.
///
/// # Errors
/// Arrays of different lengths, empty ones, or variances that are not positive.
pub fn mean_negative_log_likelihood<R: Real>(
    targets: ArrayView1<'_, R>,
    mean: ArrayView1<'_, R>,
    var: ArrayView1<'_, R>,
) -> Result<f64> {
    check_rows("targets", targets.len())?;
    check_dim("number of means", targets.len(), mean.len())?;
    check_dim("number of variances", targets.len(), var.len())?;
    let mut sum = 0.0;
    for ((&y, &m), &v) in targets.iter().zip(mean).zip(var) {
        let (error, v) = (Real::to_f64(y) - Real::to_f64(m), Real::to_f64(v));
        if v.is_nan() || v <= 0.0 {
            return Err(Error::parameter("var", "positive", v));
        }
        sum += 0.5 * (libm::log(std::f64::consts::TAU * v) + error * error / v);
    }
    Ok(sum / targets.len() as f64)
}

fn check_labels(labels: &[usize], classes: usize) -> Result<()> {
    match labels.iter().find(|&&label| label >= classes) {
        Some(label) => Err(Error::parameter("labels", "below the number of columns of probabilities", label)),
        None => Ok(()),
    }
}

/// Mean of `−ln p(label)` for rows of class probabilities; probabilities below 1e-300 count as that.
///
/// # Errors
/// No rows, another number of labels, or a label without a column.
pub fn class_negative_log_likelihood<R: Real>(labels: &[usize], probabilities: ArrayView2<'_, R>) -> Result<f64> {
    check_rows("labels", labels.len())?;
    check_dim("number of rows of probabilities", labels.len(), probabilities.nrows())?;
    check_labels(labels, probabilities.ncols())?;
    let of = |(i, &label): (usize, &usize)| Real::to_f64(probabilities[[i, label]]).max(SMALLEST_PROBABILITY);
    Ok(-labels.iter().enumerate().map(of).map(libm::log).sum::<f64>() / labels.len() as f64)
}

/// Expected calibration error: rows are sorted into `bins` equal intervals of their largest probability; the gaps
/// between mean confidence and accuracy are averaged with the bins' shares (Guo et al. 2017, §2). Confidences on a border
/// belong to the bin below.
///
/// # Errors
/// No rows, no bins, another number of labels, or a label without a column.
pub fn expected_calibration_error<R: Real>(
    labels: &[usize],
    probabilities: ArrayView2<'_, R>,
    bins: usize,
) -> Result<f64> {
    crate::error::check_count("bins", bins)?;
    check_rows("labels", labels.len())?;
    check_dim("number of rows of probabilities", labels.len(), probabilities.nrows())?;
    check_labels(labels, probabilities.ncols())?;
    let mut gaps = vec![0.0; bins];
    for (row, &label) in probabilities.rows().into_iter().zip(labels) {
        let (mut best, mut confidence) = (0, f64::NEG_INFINITY);
        for (class, &p) in row.iter().enumerate() {
            if Real::to_f64(p) > confidence {
                (best, confidence) = (class, Real::to_f64(p));
            }
        }
        let bin = (confidence * bins as f64).ceil() as usize;
        let hit = if best == label { 1.0 } else { 0.0 };
        gaps[bin.clamp(1, bins) - 1] += confidence - hit;
    }
    Ok(gaps.iter().map(|gap: &f64| gap.abs()).sum::<f64>() / labels.len() as f64)
}

/// Sum of squared errors and of squared deviations of the targets from their column means.
fn squares<R: Real>(targets: ArrayView2<'_, R>, predictions: ArrayView2<'_, R>) -> Result<(f64, f64)> {
    check_same("shape of predictions", targets.dim(), predictions.dim())?;
    check_rows("targets", targets.nrows())?;
    check_rows("columns of targets", targets.ncols())?;
    let (mut errors, mut total) = (0.0, 0.0);
    for (y, f) in targets.columns().into_iter().zip(predictions.columns()) {
        let mean = y.iter().map(|&v| Real::to_f64(v)).sum::<f64>() / y.len() as f64;
        for (&y, &f) in y.iter().zip(f) {
            let (y, f) = (Real::to_f64(y), Real::to_f64(f));
            errors += (y - f) * (y - f);
            total += (y - mean) * (y - mean);
        }
    }
    Ok((errors, total))
}

/// Root of the mean squared error over all entries.
///
/// # Errors
/// Arrays of different shapes, or empty ones.
pub fn rmse<R: Real>(targets: ArrayView2<'_, R>, predictions: ArrayView2<'_, R>) -> Result<f64> {
    Ok((squares(targets, predictions)?.0 / targets.len() as f64).sqrt())
}

/// Mean squared error over the population variance of the targets: 1 for predicting the mean.
///
/// # Errors
/// As [`rmse`], and targets that do not vary.
pub fn normalized_mse<R: Real>(targets: ArrayView2<'_, R>, predictions: ArrayView2<'_, R>) -> Result<f64> {
    let (errors, total) = squares(targets, predictions)?;
    if total > 0.0 { Ok(errors / total) } else { Err(Error::parameter("targets", "not constant", "a constant")) }
}

/// `R² = 1 − SSE/SST`.
///
/// # Errors
/// As [`normalized_mse`].
pub fn r2<R: Real>(targets: ArrayView2<'_, R>, predictions: ArrayView2<'_, R>) -> Result<f64> {
    Ok(1.0 - normalized_mse(targets, predictions)?)
}

/// Share of labels that differ.
///
/// # Errors
/// Different numbers of labels, or none.
pub fn error_rate<L: PartialEq>(labels: &[L], predicted: &[L]) -> Result<f64> {
    check_rows("labels", labels.len())?;
    check_dim("number of predicted labels", labels.len(), predicted.len())?;
    Ok(labels.iter().zip(predicted).filter(|(a, b)| a != b).count() as f64 / labels.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, array};

    /// `∫ p ln(p/q)` for two normal laws, by the trapezoidal rule.
    fn kl_by_quadrature(ma: f64, va: f64, me: f64, ve: f64) -> f64 {
        let log = |x: f64, m: f64, v: f64| -0.5 * ((x - m).powi(2) / v + (std::f64::consts::TAU * v).ln());
        let step = va.sqrt() / 32.0;
        (-512..=512)
            .map(|i| ma + f64::from(i) * step)
            .map(|x| log(x, ma, va).exp() * (log(x, ma, va) - log(x, me, ve)) * step)
            .sum()
    }

    #[test]
    fn divergences_match_quadrature_in_both_directions() {
        for (ma, va, me, ve) in [(0.3, 0.5, 0.0, 0.8), (0.0, 2.0, 0.0, 0.2), (1.0, 0.1, 1.2, 0.1)] {
            let one = |v: f64| array![[v]];
            let (a, b, c, d) = (one(ma), one(va), one(me), one(ve));
            let kl = gaussian_kl(a.view(), b.view(), c.view(), d.view()).unwrap();
            assert!((kl - kl_by_quadrature(ma, va, me, ve)).abs() < 1e-12);
            let reversed = gaussian_kl(c.view(), d.view(), a.view(), b.view()).unwrap();
            assert!((reversed - kl_by_quadrature(me, ve, ma, va)).abs() < 1e-12);
        }
    }

    #[test]
    fn divergences_sum_over_rows_and_average_over_columns() {
        let (m, v) = (array![[0.0, 1.0], [2.0, 3.0]], array![[1.0, 1.0], [1.0, 1.0]]);
        let shifted = &m + 2.0;
        let kl = gaussian_kl(shifted.view(), v.view(), m.view(), v.view()).unwrap();
        assert_eq!(kl, 4.0, "two rows of (2²)/2, the same in both columns");
        assert_eq!(gaussian_kl(m.view(), v.view(), m.view(), v.view()).unwrap(), 0.0);
        let zero = array![[0.0, 0.0], [0.0, 0.0]];
        assert_eq!(gaussian_kl(m.view(), zero.view(), m.view(), zero.view()).unwrap(), 0.0);
        assert!(gaussian_kl(m.view(), array![[1.0]].view(), m.view(), v.view()).is_err());
    }

    #[test]
    fn likelihoods_of_normal_predictions_are_their_densities() {
        let y: Array1<f32> = array![1.0, 2.0];
        let nll =
            mean_negative_log_likelihood(y.view(), array![1.0f32, 0.0].view(), array![1.0f32, 4.0].view()).unwrap();
        let expected = 0.5 * (0.5 * std::f64::consts::TAU.ln() + 0.5 * (4.0 * std::f64::consts::TAU).ln() + 0.5);
        assert!((nll - expected).abs() < 1e-15);
        assert!(mean_negative_log_likelihood(y.view(), y.view(), array![1.0f32, 0.0].view()).is_err());
        let p = array![[0.2, 0.8], [1.0, 0.0]];
        let nll = class_negative_log_likelihood(&[1, 1], p.view()).unwrap();
        assert!((nll - 0.5 * (-(0.8f64).ln() - 1e-300f64.ln())).abs() < 1e-12);
        assert!(class_negative_log_likelihood(&[1, 2], p.view()).is_err());
    }

    #[test]
    fn calibration_compares_confidence_with_accuracy_bin_by_bin() {
        // Two rows of confidence 0.8 (one right), one of 0.55 (right): gaps 0.3 · 2/3 and 0.45 · 1/3.
        let p = array![[0.8, 0.2], [0.2, 0.8], [0.55, 0.45]];
        let error = expected_calibration_error(&[0, 0, 0], p.view(), 10).unwrap();
        assert!((error - (2.0 * 0.3 + 0.45) / 3.0).abs() < 1e-15);
        assert!(expected_calibration_error(&[0, 0, 0], p.view(), 0).is_err());
    }

    #[test]
    fn errors_of_predictions_follow_their_definitions() {
        let (y, f) = (array![[1.0], [2.0], [3.0], [6.0]], array![[1.0], [2.0], [3.0], [2.0]]);
        assert_eq!(rmse(y.view(), f.view()).unwrap(), 2.0);
        assert_eq!(normalized_mse(y.view(), f.view()).unwrap(), 16.0 / 14.0);
        assert_eq!(r2(y.view(), y.view()).unwrap(), 1.0);
        assert!(normalized_mse(array![[1.0], [1.0]].view(), array![[1.0], [1.0]].view()).is_err());
        assert_eq!(error_rate(&["a", "b", "c", "d"], &["a", "c", "c", "d"]).unwrap(), 0.25);
        assert!(error_rate::<u8>(&[], &[]).is_err());
    }
}
