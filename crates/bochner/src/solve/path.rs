use super::cholesky::{factorise_sums, substitute};
use super::{Means, Solution, SolveReport, centre, check_moments, check_solution};
use crate::accumulate::Moments;
use crate::error::{Result, check_dim, check_non_negative};
use crate::linalg::field::{Field, Window};
use crate::linalg::{Eigen, Lower, Tile, TileMut};
use ndarray::Array2;

/// Ridge regression for many penalties from one eigendecomposition: `X(α) = V (Λ + α)⁻¹ VᵀB`.
///
/// The decomposition costs some twenty factorisations; every penalty after that costs two products with vectors.
#[derive(Debug)]
pub struct Path {
    eigen: Eigen,
    /// `VᵀB`.
    rotated: Vec<f64>,
    outputs: usize,
    means: Means,
}

impl Path {
    /// Decomposes the Gram matrix of the moments.
    ///
    /// # Errors
    /// Nothing to fit.
    pub fn new(mut moments: Moments<f64>, intercept: bool) -> Result<Self> {
        check_moments(&moments)?;
        let means = centre(&mut moments, intercept)?;
        let Moments { gram, cross, .. } = moments;
        Path::of(gram, cross, means)
    }

    /// Decomposes a matrix, for right-hand sides one row per feature.
    pub(super) fn of(gram: Lower<f64>, cross: Array2<f64>, means: Means) -> Result<Self> {
        let (dim, outputs) = cross.dim();
        let eigen = Eigen::new(gram)?;
        let cross = cross.as_standard_layout();
        let cross = Tile::new(cross.as_slice().expect("standard layout"), dim, outputs);
        let mut rotated = vec![0.0; dim * outputs];
        let out = TileMut::new(&mut rotated, dim, outputs);
        f64::product(out, false, 1.0, eigen.vectors().into(), cross.into());
        Ok(Path { eigen, rotated, outputs, means })
    }

    /// Eigenvalues of the (centred) Gram matrix, smallest first.
    pub fn eigenvalues(&self) -> &[f64] {
        self.eigen.values()
    }

    /// `VᵀB`.
    pub(super) fn rotated(&self) -> Array2<f64> {
        Array2::from_shape_vec((self.eigen.values().len(), self.outputs), self.rotated.clone()).expect("one row each")
    }

    /// The solution for one penalty; without one, directions below rounding are left out.
    ///
    /// # Errors
    /// A penalty that is negative or not finite.
    pub fn solution(&self, penalty: f64) -> Result<(Solution, SolveReport)> {
        let (coefficients, condition) = self.columns(&vec![penalty; self.outputs])?;
        let intercept = self.means.intercept(&coefficients);
        let solution = check_solution(Solution { coefficients, intercept })?;
        Ok((solution, SolveReport::direct("path", 0.0, condition)))
    }

    /// Solutions with a penalty for every target, and the worst condition of them.
    pub(super) fn columns(&self, penalties: &[f64]) -> Result<(Array2<f64>, f64)> {
        check_dim("number of penalties", self.outputs, penalties.len())?;
        penalties.iter().try_for_each(|&penalty| check_non_negative("penalty", penalty))?;
        let dim = self.eigen.values().len();
        let largest = self.eigen.values().last().copied().unwrap_or(0.0).max(0.0);
        let negligible = dim as f64 * f64::EPSILON * largest;
        let mut scaled = self.rotated.clone();
        let mut condition = 1.0f64;
        for (row, &value) in scaled.chunks_mut(self.outputs.max(1)).zip(self.eigen.values()) {
            for (v, penalty) in row.iter_mut().zip(penalties) {
                let size = value.max(0.0) + penalty;
                let factor = if size > negligible { 1.0 / size } else { 0.0 };
                if factor > 0.0 {
                    condition = condition.max((largest + penalty) / size);
                }
                *v *= factor;
            }
        }
        let mut coefficients = Array2::zeros((dim, self.outputs));
        let out = TileMut::new(coefficients.as_slice_mut().expect("standard layout"), dim, self.outputs);
        let vectors = Window::from(self.eigen.vectors()).adjoint();
        f64::product(out, false, 1.0, vectors, Tile::new(&scaled, dim, self.outputs).into());
        Ok((coefficients, condition))
    }
}

/// Penalties from which the decomposition is cheaper than factorising for each.
pub(super) const DECOMPOSE_FROM: usize = 12;

/// Solutions for all penalties, by whichever of the two roads is cheaper; `room` bytes may be used besides the moments.
pub(crate) fn path(
    mut moments: Moments<f64>,
    penalties: &[f64],
    intercept: bool,
    room: u64,
) -> Result<Vec<(Solution, SolveReport)>> {
    for &penalty in penalties {
        check_non_negative("penalty", penalty)?;
    }
    if penalties.len() >= DECOMPOSE_FROM && Eigen::bytes(moments.dim()) <= room {
        let path = Path::new(moments, intercept)?;
        return penalties.iter().map(|&penalty| path.solution(penalty)).collect();
    }
    check_moments(&moments)?;
    let rounding = moments.rounding();
    let means = centre(&mut moments, intercept)?;
    let Moments { mut gram, cross, .. } = moments;
    let mut solutions = Vec::new();
    for (k, &penalty) in penalties.iter().enumerate() {
        gram.add_to_diagonal(penalty);
        let (factor, jitter, condition) = factorise_sums(gram, rounding)?;
        let solution = substitute(&factor, cross.clone(), &means)?;
        solutions.push((solution, SolveReport::direct("cholesky", jitter, condition)));
        if k + 1 == penalties.len() {
            break;
        }
        gram = factor.into_matrix();
        gram.add_to_diagonal(-penalty - jitter);
    }
    Ok(solutions)
}
