//! Linear models whose coefficients are tied to fewer parameters: `cⱼ = B(ωⱼ)θⱼ`.

use super::path::path;
use super::{
    ConjugateGradients, Operator, Solution, SolveReport, centre, check_moments, check_solution, conjugate_gradients,
};
use crate::accumulate::{Moments, Totals};
use crate::error::{Result, check_dim};
use crate::feature::Spread;
use crate::linalg::gemm::matmul_nn;
use crate::linalg::{Lower, Tile, TileMut};
use ndarray::{Array2, ArrayView2};

/// An operator on parameters from one on coefficients: `SᵀGS` with `S` the spread.
pub(crate) struct Tied<'a> {
    inner: &'a mut dyn Operator,
    spread: &'a Spread,
}

impl<'a> Tied<'a> {
    pub(crate) fn new(inner: &'a mut dyn Operator, spread: &'a Spread) -> Self {
        Tied { inner, spread }
    }
}

impl Operator for Tied<'_> {
    fn dim(&self) -> usize {
        self.inner.dim() * self.spread.inner()
    }

    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of rows of the vectors", self.dim(), v.nrows())?;
        let image = self.inner.apply(self.spread.scatter(v).view())?;
        Ok(self.spread.gather(image.view()))
    }
}

/// A symmetric matrix in memory.
pub(crate) struct Stored {
    square: Vec<f64>,
    order: usize,
}

impl Stored {
    pub(crate) fn new(lower: &Lower<f64>) -> Self {
        let order = lower.order();
        let mut square = vec![0.0; order * order];
        for i in 0..order {
            for (j, &value) in lower.row(i).iter().enumerate() {
                square[i * order + j] = value;
                square[j * order + i] = value;
            }
        }
        Stored { square, order }
    }
}

impl Operator for Stored {
    fn dim(&self) -> usize {
        self.order
    }

    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of rows of the vectors", self.order, v.nrows())?;
        let v = v.as_standard_layout();
        let mut out = Array2::zeros(v.dim());
        let (rows, cols) = v.dim();
        matmul_nn(
            Tile::new(&self.square, rows, rows),
            Tile::new(v.as_slice().expect("standard layout"), rows, cols),
            TileMut::new(out.as_slice_mut().expect("standard layout"), rows, cols),
        )?;
        Ok(out)
    }
}

/// Tied coefficients from an operator on coefficients and its right-hand sides, by conjugate gradients.
pub(crate) fn iterate(
    inner: &mut dyn Operator,
    rhs: &Array2<f64>,
    spread: &Spread,
    penalty: f64,
    options: ConjugateGradients,
    epsilon: f64,
) -> Result<(Array2<f64>, SolveReport)> {
    let rhs = spread.gather(rhs.view());
    let mut tied = Tied::new(inner, spread);
    let (theta, report) = conjugate_gradients(&mut tied, &rhs, penalty, &options, None, epsilon)?;
    Ok((spread.scatter(theta.view()), report))
}

/// [`iterate`] on the Gram matrix of moments.
pub(crate) fn iterate_moments(
    mut moments: Moments<f64>,
    spread: &Spread,
    penalty: f64,
    intercept: bool,
    options: ConjugateGradients,
    epsilon: f64,
) -> Result<(Solution, SolveReport)> {
    check_moments(&moments)?;
    let means = centre(&mut moments, intercept)?;
    let mut stored = Stored::new(&moments.gram);
    let Moments { gram, cross, .. } = moments;
    drop(gram);
    let (coefficients, report) = iterate(&mut stored, &cross, spread, penalty, options, epsilon)?;
    let intercept = means.intercept(&coefficients);
    Ok((check_solution(Solution { coefficients, intercept })?, report))
}

/// Tied coefficients for many penalties by factorising the normal matrix of the parameters.
pub(crate) fn tied_path(
    mut moments: Moments<f64>,
    spread: &Spread,
    penalties: &[f64],
    intercept: bool,
    room: u64,
) -> Result<Vec<(Solution, SolveReport)>> {
    check_moments(&moments)?;
    let means = centre(&mut moments, intercept)?;
    let Moments { gram, cross, totals, epsilon, .. } = moments;
    let normal = spread.normal(&gram)?;
    drop(gram);
    let rhs = spread.gather(cross.view());
    let totals = Totals { count: totals.count, weight_sum: totals.weight_sum, ..Totals::zeros(1) };
    let (feature_sums, origin) = (vec![0.0; normal.order()], vec![0.0; normal.order()]);
    let moments = Moments { gram: normal, cross: rhs, feature_sums, origin, totals, epsilon };
    path(moments, penalties, false, room)?
        .into_iter()
        .map(|(solution, report)| {
            let coefficients = spread.scatter(solution.coefficients.view());
            let intercept = means.intercept(&coefficients);
            Ok((check_solution(Solution { coefficients, intercept })?, report))
        })
        .collect()
}
