//! Probabilities from values of classes, fitted on held-out rows.

use crate::error::{Error, Result, check_dim};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// What turns values of classes into probabilities: `softmax((vⱼ + bⱼ)/T)`.
///
/// Fitted by maximum likelihood on rows that the classifier was not fitted to. With two classes, whose values differ only in
/// their sign, it is Platt's sigmoid; without the constants `b` it is temperature scaling, which never changes which class
/// wins.
///
/// # References
/// Platt 1999; Guo et al. 2017 (temperature scaling).
///
/// ```
/// use bochner::model::Calibration;
/// use ndarray::array;
/// // Three of four rows with this value are of the second class.
/// let values = array![[-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]];
/// let calibration = Calibration::fit(values.view(), &[1, 1, 1, 0, 0], false)?;
/// let p = calibration.probabilities(values.view())?;
/// assert!(p[[0, 1]] > 0.7 && p[[0, 1]] < 0.85 && (p[[0, 0]] + p[[0, 1]] - 1.0).abs() < 1e-12);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// `1/T`, the common slope of all values.
    pub slope: f64,
    /// `b/T`, one for every class; zeros for temperature scaling.
    pub shifts: Vec<f64>,
}

impl Calibration {
    /// Where a model keeps it: [`Model::attach`](super::Model::attach).
    pub const NAME: &'static str = "calibration";

    /// Fits a slope, and shifts where asked for, by Newton's method on the mean negative log likelihood.
    ///
    /// Slope and shifts have a weak prior (one row in all that could be of any class), so that they stay finite where all rows
    /// are told apart.
    ///
    /// # Errors
    /// Other numbers of rows and labels, no rows, labels beyond the columns, NaN or infinities.
    pub fn fit(values: ArrayView2<'_, f64>, labels: &[usize], shifted: bool) -> Result<Self> {
        let (n, classes) = values.dim();
        check_dim("number of labels", n, labels.len())?;
        if n == 0 || classes == 0 {
            return Err(Error::parameter("rows", "at least one", "none"));
        }
        crate::rows::check_finite("values", values, 0)?;
        if let Some(label) = labels.iter().find(|label| **label >= classes) {
            return Err(Error::parameter("labels", format!("below the number of classes, {classes}"), label));
        }
        // The size of the values is a matter of the model: at slope 1 over their root mean square every search starts alike.
        let size = (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt().max(f64::MIN_POSITIVE);
        let scaled = values.mapv(|v| v / size);
        let parameters = if shifted { classes + 1 } else { 1 };
        let mut at = vec![0.0; parameters];
        at[0] = 1.0;
        let mut loss = objective(&scaled, labels, &at).0;
        for _ in 0..100 {
            let (_, gradient, hessian) = objective(&scaled, labels, &at);
            let Some(step) = solve(hessian, &gradient) else { break };
            let decrease: f64 = step.iter().zip(&gradient).map(|(s, g)| s * g).sum();
            let mut factor = 1.0;
            let moved = loop {
                let next: Vec<f64> = at.iter().zip(&step).map(|(a, s)| a - factor * s).collect();
                let new = objective(&scaled, labels, &next).0;
                if new <= loss - 1e-4 * factor * decrease {
                    break Some((next, new));
                }
                factor *= 0.5;
                if factor < 1e-10 {
                    break None;
                }
            };
            let Some((next, new)) = moved else { break };
            let gained = loss - new;
            (at, loss) = (next, new);
            if gained <= 1e-14 * loss.abs() {
                break;
            }
        }
        let shifts = if shifted { at[1..].to_vec() } else { vec![0.0; classes] };
        Ok(Calibration { slope: at[0] / size, shifts })
    }

    /// Probabilities of the classes, one column each; rows add up to 1.
    ///
    /// # Errors
    /// Another number of columns than of classes.
    pub fn probabilities(&self, values: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of classes", self.shifts.len(), values.ncols())?;
        let mut out = values.to_owned();
        for mut row in out.rows_mut() {
            row.iter_mut().zip(&self.shifts).for_each(|(v, shift)| *v = self.slope * *v + shift);
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.mapv_inplace(|v| libm::exp(v - largest));
            let sum = row.sum();
            row.mapv_inplace(|v| v / sum);
        }
        Ok(out)
    }
}

/// Sum of negative log likelihoods and of a weak prior, its gradient and its second derivatives.
fn objective(values: &Array2<f64>, labels: &[usize], at: &[f64]) -> (f64, Vec<f64>, Array2<f64>) {
    let (classes, p) = (values.ncols(), at.len());
    let (mut loss, mut gradient, mut hessian) = (0.0, vec![0.0; p], Array2::zeros((p, p)));
    let mut probabilities = vec![0.0; classes];
    for (row, &label) in values.rows().into_iter().zip(labels) {
        let shift = |j: usize| if p > 1 { at[1 + j] } else { 0.0 };
        probabilities.iter_mut().enumerate().for_each(|(j, to)| *to = at[0] * row[j] + shift(j));
        let largest = probabilities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let chosen = probabilities[label];
        probabilities.iter_mut().for_each(|v| *v = libm::exp(*v - largest));
        let sum: f64 = probabilities.iter().sum();
        loss += libm::log(sum) + largest - chosen;
        probabilities.iter_mut().for_each(|v| *v /= sum);
        let mean: f64 = probabilities.iter().zip(row).map(|(q, v)| q * v).sum();
        gradient[0] += mean - row[label];
        hessian[[0, 0]] += probabilities.iter().zip(row).map(|(q, v)| q * (v - mean) * (v - mean)).sum::<f64>();
        if p > 1 {
            for j in 0..classes {
                gradient[1 + j] += probabilities[j] - f64::from(u8::from(j == label));
                let cross = probabilities[j] * (row[j] - mean);
                hessian[[0, 1 + j]] += cross;
                hessian[[1 + j, 0]] += cross;
                for k in 0..classes {
                    let own = if j == k { probabilities[j] } else { 0.0 };
                    hessian[[1 + j, 1 + k]] += own - probabilities[j] * probabilities[k];
                }
            }
        }
    }
    // A normal prior of variance 100 about slope 0 and shifts 0, in units of the size of the values.
    for (k, v) in at.iter().enumerate() {
        loss += 0.005 * v * v;
        gradient[k] += 0.01 * v;
        hessian[[k, k]] += 0.01;
    }
    (loss, gradient, hessian)
}

/// `H⁻¹g` by elimination; `None` for a matrix that is not positive definite.
fn solve(mut h: Array2<f64>, g: &[f64]) -> Option<Vec<f64>> {
    let (n, mut x) = (g.len(), g.to_vec());
    for k in 0..n {
        let pivot = h[[k, k]];
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        for i in k + 1..n {
            let factor = h[[i, k]] / pivot;
            for j in k..n {
                h[[i, j]] -= factor * h[[k, j]];
            }
            x[i] -= factor * x[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| h[[k, j]] * x[j]).sum();
        x[k] = (x[k] - known) / h[[k, k]];
    }
    Some(x)
}
