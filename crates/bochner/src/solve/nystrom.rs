use super::Operator;
use super::cholesky::factorise;
use crate::accumulate::{Gathered, adjoint_times};
use crate::error::Result;
use crate::linalg::field::{Field, Window};
use crate::linalg::{Eigen, Lower, Tile, TileMut};
use crate::parallel::Parallel;
use crate::random::{Role, Seed, Stream};
use ndarray::Array2;

/// Rows per task of products with tall matrices.
const STRIP: usize = 256;

/// A low-rank model `U diag(λ) Uᵀ` of an operator `A`, as preconditioner of `A + αI`.
///
/// `A Ω` for `r` normal vectors `Ω` is one application of the operator with `r` columns. On the span of `U` it does what
/// the inverse would do; on the rest, where `A` is at most `λᵣ` plus the error of the model, it does nothing:
/// `P⁻¹ = (λᵣ + α) U (Λ + α)⁻¹ Uᵀ + (I - UUᵀ)` (Frangella, Tropp and Udell 2023, algorithm 2.1 and equation 1.3).
#[derive(Debug)]
pub(super) struct Nystrom {
    /// `r` columns.
    basis: Array2<f64>,
    /// `(λᵣ + α)/(λᵢ + α) - 1`.
    gains: Vec<f64>,
    /// `λᵣ`: about the largest eigenvalue that is left.
    pub(super) tail: f64,
}

impl Nystrom {
    /// Bytes for `rank` vectors of length `dim`, at the peak.
    pub(super) fn bytes(dim: usize, rank: usize) -> u64 {
        (dim as u64).saturating_mul(rank.next_multiple_of(8) as u64).saturating_mul(4 * 8)
    }

    /// `epsilon` is the relative precision of the operator's products.
    pub(super) fn new(operator: &mut dyn Operator, rank: usize, penalty: f64, epsilon: f64) -> Result<Option<Self>> {
        let (dim, rank) = (operator.dim(), rank.min(operator.dim()));
        if rank == 0 {
            return Ok(None);
        }
        let mut normals = vec![0.0; dim * rank];
        Stream::new(Seed::new(0), Role::Order, 0).normals_from(0, &mut normals);
        let test = Array2::from_shape_vec((dim, rank), normals).expect("one row per feature");
        let mut sketch = operator.apply(test.view())?;
        let size = sketch.iter().map(|v| v * v).sum::<f64>().sqrt();
        if size == 0.0 || !size.is_finite() {
            return Ok(None);
        }
        // A shift above the rounding of the products keeps ΩᵀAΩ positive definite; it is taken off the eigenvalues again.
        let mut shift = epsilon * size / (dim as f64).sqrt();
        sketch.scaled_add(shift, &test);
        let core = symmetric(&transpose_times(&test, &sketch))?;
        let (factor, jitter, _) = factorise(core)?;
        shift += jitter / dim as f64;
        drop(test);
        solve_rows(factor.factor(), &mut sketch);
        let eigen = Eigen::new(symmetric(&transpose_times(&sketch, &sketch))?)?;
        let largest = eigen.values()[rank - 1];
        // Directions below the rounding of the products are noise; eigenvalues come smallest first.
        let first = eigen.values().iter().position(|&v| v > largest * 1e-10 && v > shift).unwrap_or(rank);
        let kept: Vec<usize> = (first..rank).rev().collect();
        if kept.is_empty() {
            return Ok(None);
        }
        let vectors = eigen.vectors();
        let mix = Array2::from_shape_fn((rank, kept.len()), |(i, j)| {
            vectors.row(kept[j])[i] / eigen.values()[kept[j]].sqrt()
        });
        let basis = times(&sketch, &mix);
        let values: Vec<f64> = kept.iter().map(|&k| (eigen.values()[k] - shift).max(0.0)).collect();
        let tail = values[values.len() - 1];
        let gains = values.iter().map(|v| (tail + penalty) / (v + penalty) - 1.0).collect::<Vec<_>>();
        if gains.iter().any(|g| !g.is_finite()) {
            return Ok(None);
        }
        Ok(Some(Nystrom { basis, gains, tail }))
    }

    /// `P⁻¹ v`.
    pub(super) fn apply(&self, v: &Array2<f64>) -> Array2<f64> {
        let mut inner = transpose_times(&self.basis, v);
        for (mut row, gain) in inner.rows_mut().into_iter().zip(&self.gains) {
            row.mapv_inplace(|value| value * gain);
        }
        times(&self.basis, &inner) + v
    }
}

fn tile(a: &Array2<f64>) -> Tile<'_, f64> {
    Tile::new(a.as_slice().expect("standard layout"), a.nrows(), a.ncols())
}

/// `aᵀ b` of tall matrices.
pub(super) fn transpose_times(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let product = adjoint_times(Gathered { features: tile(a), sides: tile(b) });
    Array2::from_shape_vec((a.ncols(), b.ncols()), product).expect("one row per column of a")
}

/// `a b` of a tall matrix and a small one.
fn times(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    let width = b.ncols();
    let (left, right) = (tile(a), tile(b));
    out.as_slice_mut().expect("standard layout").chunks_mut(STRIP * width).enumerate().in_parallel().for_each(
        |(index, out)| {
            let rows = out.len() / width;
            let left = left.rows_in(index * STRIP..index * STRIP + rows);
            f64::product(TileMut::new(out, rows, width), false, 1.0, left.into(), right.into());
        },
    );
    out
}

/// The lower triangle of a matrix that is symmetric but for rounding.
fn symmetric(a: &Array2<f64>) -> Result<Lower<f64>> {
    let mut lower = Lower::zeros(a.nrows())?;
    for i in 0..a.nrows() {
        for (j, value) in lower.row_mut(i).iter_mut().enumerate() {
            *value = 0.5 * (a[[i, j]] + a[[j, i]]);
        }
    }
    Ok(lower)
}

/// `x ← x L⁻ᵀ`.
fn solve_rows(factor: &Lower<f64>, x: &mut Array2<f64>) {
    let n = factor.order();
    let mut square = vec![0.0; n * n];
    for i in 0..n {
        square[i * n..][..=i].copy_from_slice(factor.row(i));
    }
    let square = &square;
    x.as_slice_mut().expect("standard layout").chunks_mut(STRIP * n).in_parallel().for_each(|rows| {
        let count = rows.len() / n;
        f64::solve_right(Window::from(Tile::new(square, n, n)), TileMut::new(rows, count, n));
    });
}
