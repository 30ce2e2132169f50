use super::cholesky::factorise_sums;
use super::dual::check_weight;
use super::{centre, check_moments};
use crate::accumulate::Moments;
use crate::error::{Error, Result, check_dim, check_non_negative};
use crate::linalg::{Cholesky, Eigen, Lower, Tile, TileMut, Workspace};
use crate::memory;
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

/// What a ridge regression would have said of each of its rows without having seen it.
///
/// With `hᵢ = wᵢ(1/Σw + (φᵢ − φ̄)ᵀ(G + αI)⁻¹(φᵢ − φ̄))`, the leverage of row `i` (`G` of centred features; without an intercept
/// there is neither the first term nor `φ̄`), the residual of the model fitted without row `i` is `rᵢ/(1 − hᵢ)`: all of them
/// from one fit.
///
/// # References
/// Hastie, Tibshirani and Friedman 2009, §7.10; Allen 1974 (PRESS).
#[derive(Debug, Clone, PartialEq)]
pub struct LeaveOneOut {
    /// Targets minus their predictions without the row; one row each, one column per target.
    pub residuals: Array2<f64>,
    /// `hᵢ`.
    pub leverages: Vec<f64>,
}

/// `1 − h` is at least this: a row that decides alone about its own prediction says nothing of the others.
const SMALLEST_SHARE: f64 = 1e-10;

impl LeaveOneOut {
    /// From residuals of the fit and leverages.
    pub(crate) fn of(mut residuals: Array2<f64>, leverages: Vec<f64>) -> Self {
        for (mut row, leverage) in residuals.rows_mut().into_iter().zip(&leverages) {
            let share = (1.0 - leverage).max(SMALLEST_SHARE);
            row.mapv_inplace(|r| r / share);
        }
        LeaveOneOut { residuals, leverages }
    }

    /// Mean of the squared residuals over rows and targets.
    pub fn loss(&self) -> f64 {
        self.residuals.iter().map(|r| r * r).sum::<f64>() / self.residuals.len().max(1) as f64
    }
}

/// Leave-one-out residuals of ridge regressions with many penalties, from one eigendecomposition of the smaller of the matrix of
/// features by features and that of rows by rows.
///
/// For few rows, or few features: all features are kept in double precision, and the decomposition costs some twenty
/// factorisations.
///
/// ```
/// use bochner::solve::leave_one_out_path;
/// use ndarray::array;
/// // Without penalty and features, what is left of a row is its distance from the mean of the others.
/// let (features, targets) = (array![[0.0], [0.0], [0.0]], array![[1.0], [2.0], [6.0]]);
/// let found = leave_one_out_path(features.view(), targets.view(), None, &[1.0], true)?;
/// assert!((found[0].residuals[[2, 0]] - 4.5).abs() < 1e-12);
/// # Ok::<(), bochner::Error>(())
/// ```
///
/// # Errors
/// Shapes that do not fit, nothing to fit, NaN or infinities, penalties that are negative.
pub fn leave_one_out_path<R: Real>(
    features: ArrayView2<'_, R>,
    targets: ArrayView2<'_, R>,
    weights: Option<ArrayView1<'_, R>>,
    penalties: &[f64],
    intercept: bool,
) -> Result<Vec<LeaveOneOut>> {
    penalties.iter().try_for_each(|&penalty| check_non_negative("penalty", penalty))?;
    let (n, dim) = features.dim();
    check_dim("number of rows of targets", n, targets.nrows())?;
    if n == 0 || targets.ncols() == 0 {
        return Err(Error::parameter("rows", "at least one row and one target", "none"));
    }
    check_finite("features", features, 0)?;
    check_finite("targets", targets, 0)?;
    let weights: Array1<f64> = match weights {
        Some(weights) => {
            check_dim("number of weights", n, weights.len())?;
            weights.iter().enumerate().map(|(i, w)| check_weight(Real::to_f64(*w), i)).collect::<Result<_>>()?
        }
        None => Array1::ones(n),
    };
    let total = weights.sum();
    if total <= 0.0 {
        return Err(Error::parameter("weights", "positive for at least one row", "only zeros"));
    }
    memory::need("features of all rows", memory::bytes::<f64>(&[n, dim, 2]), |_| "take fewer rows or features".into())?;
    let (mut f, mut y) = (features.mapv(Real::to_f64), targets.mapv(Real::to_f64));
    if intercept {
        for values in [&mut f, &mut y] {
            let mean = weights.dot(&*values) / total;
            *values -= &mean;
        }
    }
    let roots = weights.mapv(f64::sqrt);
    let weighted = &f * &roots.view().insert_axis(Axis(1));
    let (rows, y_weighted) = (standard(&weighted), &y * &roots.view().insert_axis(Axis(1)));
    // Scores of rows in the eigenvectors, and what explains the targets in them: (Λ + α)⁻¹ times `sides` are coefficients.
    let few = n <= dim && weights.iter().all(|w| *w > 0.0);
    let (values, scores, sides);
    if few {
        let mut kernel = Lower::zeros(n)?;
        kernel.add_kernel(rows);
        let eigen = Eigen::new(kernel)?;
        let vectors = ArrayView2::from_shape((n, n), eigen.vectors().as_slice()).expect("a square");
        let lengths: Array1<f64> = eigen.values().iter().map(|s| s.max(0.0).sqrt()).collect();
        sides = vectors.dot(&y_weighted) * lengths.view().insert_axis(Axis(1));
        scores = &(&vectors.t() * &lengths) / &roots.view().insert_axis(Axis(1));
        values = eigen.values().to_vec();
    } else {
        let mut gram = Lower::zeros(dim)?;
        gram.add_gram(rows, &mut Workspace::new());
        let eigen = Eigen::new(gram)?;
        let vectors = ArrayView2::from_shape((dim, dim), eigen.vectors().as_slice()).expect("a square");
        scores = f.dot(&vectors.t());
        sides = vectors.dot(&weighted.t().dot(&y_weighted));
        values = eigen.values().to_vec();
    }
    let largest = values.last().copied().unwrap_or(0.0).max(0.0);
    let negligible = values.len() as f64 * f64::EPSILON * largest;
    let squares = scores.mapv(|t| t * t);
    let one = |&penalty: &f64| {
        let inverse: Array1<f64> = values
            .iter()
            .map(|value| value.max(0.0) + penalty)
            .map(|size| if size > negligible { 1.0 / size } else { 0.0 })
            .collect();
        let constant = if intercept { 1.0 / total } else { 0.0 };
        let leverages = (squares.dot(&inverse) + constant) * &weights;
        let residuals = &y - &scores.dot(&(&sides * &inverse.view().insert_axis(Axis(1))));
        LeaveOneOut::of(residuals, leverages.to_vec())
    };
    Ok(penalties.iter().map(one).collect())
}

fn standard(values: &Array2<f64>) -> Tile<'_, f64> {
    Tile::new(values.as_slice().expect("standard layout"), values.nrows(), values.ncols())
}

/// What leverages of rows are computed from: a factor of `G + αI`, and what it makes of means and sums.
pub(crate) struct Leverage {
    pub(crate) factor: Cholesky<f64>,
    /// `L⁻¹φ̄`; zeros without an intercept.
    centre: Vec<f64>,
    /// `L⁻¹FᵀWY`, one row per feature.
    explained: Array2<f64>,
    means: Vec<f64>,
    /// `1/Σw`; 0 without an intercept.
    constant: f64,
}

impl Leverage {
    pub(crate) fn new(mut moments: Moments<f64>, penalty: f64, intercept: bool) -> Result<Self> {
        check_non_negative("penalty", penalty)?;
        check_moments(&moments)?;
        let rounding = moments.rounding();
        let constant = if intercept { 1.0 / moments.totals.weight_sum } else { 0.0 };
        let means = centre(&mut moments, intercept)?;
        let Moments { mut gram, cross, .. } = moments;
        gram.add_to_diagonal(penalty);
        let (factor, _, _) = factorise_sums(gram, rounding)?;
        let (dim, outputs) = cross.dim();
        let mut explained = cross.as_standard_layout().into_owned();
        factor.solve_factor_in_place(TileMut::new(explained.as_slice_mut().expect("standard layout"), dim, outputs))?;
        let mut centre = means.features;
        factor.solve_factor_in_place(TileMut::new(&mut centre, dim, 1))?;
        Ok(Leverage { factor, centre, explained, means: means.targets, constant })
    }

    /// Residuals and leverages of rows from their images `L⁻¹φ`, one column each.
    pub(crate) fn of(
        &self,
        mut image: Array2<f64>,
        targets: ArrayView2<'_, f64>,
        weights: &[f64],
    ) -> (Array2<f64>, Vec<f64>) {
        for (mut row, centre) in image.rows_mut().into_iter().zip(&self.centre) {
            row.mapv_inplace(|v| v - centre);
        }
        let mut lengths = vec![0.0; image.ncols()];
        for row in image.rows() {
            lengths.iter_mut().zip(row).for_each(|(length, v)| *length += v * v);
        }
        let leverages = lengths.iter().zip(weights).map(|(length, w)| w * (self.constant + length)).collect();
        let mut residuals = &targets - &image.t().dot(&self.explained);
        residuals.rows_mut().into_iter().for_each(|mut row| {
            row.iter_mut().zip(&self.means).for_each(|(r, mean)| *r -= mean);
        });
        (residuals, leverages)
    }
}
