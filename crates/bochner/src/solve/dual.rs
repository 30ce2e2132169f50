use super::cholesky::factorise_sums;
use super::{Solution, SolveReport, check_solution};
use crate::accumulate::Gathered;
use crate::error::{Error, Result, check_dim, check_non_negative};
use crate::linalg::{Lower, Tile, TileMut};
use crate::scalar::Real;
use ndarray::{Array1, Array2, ArrayView1};

/// Ridge regression through the `n × n` matrix of inner products: `(FFᵀ + αI) β = Y`, `X = Fᵀβ`.
///
/// The same solution as that of [`cholesky`](super::cholesky()), cheaper where there are fewer rows than features. The
/// features of all rows are kept in memory and centred in place.
///
/// # Errors
/// Shapes that do not fit, nothing to fit, NaN or infinities, or a matrix that stays indefinite.
pub fn dual<R: Real>(
    features: Array2<R>,
    targets: Array2<R>,
    weights: Option<ArrayView1<'_, R>>,
    penalty: f64,
    intercept: bool,
) -> Result<(Solution, SolveReport)> {
    Ok(dual_path(features, targets, weights, &[penalty], intercept)?.remove(0))
}

/// [`dual`] with many penalties, from one matrix of inner products.
///
/// # Errors
/// As [`dual`].
pub fn dual_path<R: Real>(
    mut features: Array2<R>,
    mut targets: Array2<R>,
    weights: Option<ArrayView1<'_, R>>,
    penalties: &[f64],
    intercept: bool,
) -> Result<Vec<(Solution, SolveReport)>> {
    penalties.iter().try_for_each(|&penalty| check_non_negative("penalty", penalty))?;
    let (n, dim) = features.dim();
    check_dim("number of rows of targets", n, targets.nrows())?;
    if targets.ncols() == 0 {
        return Err(Error::parameter("targets", "at least one column", "none"));
    }
    if n == 0 {
        return Err(Error::parameter("rows", "at least one row", "none"));
    }
    crate::rows::check_finite("features", features.view(), 0)?;
    crate::rows::check_finite("targets", targets.view(), 0)?;
    let weights: Vec<f64> = match weights {
        Some(weights) => {
            check_dim("number of weights", n, weights.len())?;
            weights.iter().enumerate().map(|(i, w)| check_weight(Real::to_f64(*w), i)).collect::<Result<_>>()?
        }
        None => vec![1.0; n],
    };
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return Err(Error::parameter("weights", "positive for at least one row", "only zeros"));
    }
    let feature_means = prepare(&mut features, &weights, total, intercept);
    let target_means = prepare(&mut targets, &weights, total, intercept);
    let features = features.as_standard_layout();
    let rows = Tile::new(features.as_slice().expect("standard layout"), n, dim);
    let mut kernel = Lower::zeros(n)?;
    kernel.add_kernel(rows);
    let rounding = Real::to_f64(R::epsilon()) * kernel.diagonal().sum::<f64>();
    let targets: Vec<f64> = targets.iter().map(|v| Real::to_f64(*v)).collect();
    let outputs = target_means.len();
    let mut kernel = Some(kernel);
    let one = |(k, &penalty): (usize, &f64)| {
        // The last one may have the matrix itself.
        let left = if k + 1 < penalties.len() { kernel.clone() } else { kernel.take() };
        let mut shifted = left.expect("taken once, at the end");
        shifted.add_to_diagonal(penalty);
        if !shifted.diagonal().all(f64::is_finite) {
            return Err(Error::overflow());
        }
        let (factor, jitter, condition) = factorise_sums(shifted, rounding)?;
        let mut beta = targets.clone();
        factor.solve_in_place(TileMut::new(&mut beta, n, outputs))?;
        drop(factor);
        let beta: Vec<R> = beta.into_iter().map(R::from_f64).collect();
        let sides = Tile::new(&beta, n, outputs);
        let product = crate::accumulate::adjoint_times(Gathered { features: rows, sides });
        let coefficients = Array2::from_shape_vec((dim, outputs), product).expect("one row per feature");
        let explained = |j: usize| coefficients.column(j).iter().zip(&feature_means).map(|(x, m)| x * m).sum::<f64>();
        let intercept = (0..outputs).map(|j| target_means[j] - explained(j)).collect();
        let solution = check_solution(Solution { coefficients, intercept })?;
        Ok((solution, SolveReport::direct("dual", jitter, condition)))
    };
    penalties.iter().enumerate().map(one).collect()
}

pub(super) fn check_weight(weight: f64, row: usize) -> Result<f64> {
    if !weight.is_finite() {
        return Err(Error::NonFinite { what: "weights", row, column: 0 });
    }
    if weight < 0.0 {
        return Err(Error::parameter("weights", "non-negative", format!("{weight} in row {row}")));
    }
    Ok(weight)
}

/// Centres the columns, where asked for, and multiplies rows with the square roots of their weights; gives the means.
fn prepare<R: Real>(values: &mut Array2<R>, weights: &[f64], total: f64, centre: bool) -> Vec<f64> {
    let mut means = vec![0.0; values.ncols()];
    if centre && let Some(first) = weights.iter().position(|weight| *weight > 0.0) {
        // About the first row that counts: sums of large numbers would leave part of the mean behind.
        let first = values.row(first).mapv(Real::to_f64);
        for (row, weight) in values.rows().into_iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
            for ((mean, value), first) in means.iter_mut().zip(row).zip(&first) {
                *mean += weight * (Real::to_f64(*value) - first);
            }
        }
        means.iter_mut().zip(&first).for_each(|(mean, first)| *mean = first + *mean / total);
    }
    let shift: Array1<R> = means.iter().map(|&mean| R::from_f64(mean)).collect();
    for (mut row, weight) in values.rows_mut().into_iter().zip(weights) {
        let root = R::from_f64(weight.sqrt());
        for (value, shift) in row.iter_mut().zip(&shift) {
            *value = (*value - *shift) * root;
        }
    }
    // What was subtracted, not what was meant: the intercept makes up for it exactly.
    shift.iter().map(|v| Real::to_f64(*v)).collect()
}
