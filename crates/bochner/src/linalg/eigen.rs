use super::lower::Lower;
use super::tile::Tile;
use crate::error::{Error, Result};
use bochner_backend::symmetric_eigen;

/// Requested always, however many threads there are: faer's bits follow this number and not the pool.
const PARALLELISM: usize = 4;

/// `A = V diag(λ) Vᵀ` of a real symmetric matrix.
#[derive(Debug, Clone)]
pub struct Eigen {
    values: Vec<f64>,
    vectors: Vec<f64>,
}

impl Eigen {
    /// Decomposes; takes two and a half times the memory of the full square.
    ///
    /// # Errors
    /// [`Error::NotConverged`] if the iteration stalls, which finite matrices do not cause in practice.
    pub fn new(matrix: Lower<f64>) -> Result<Self> {
        let n = matrix.order();
        if n == 0 {
            return Ok(Eigen { values: Vec::new(), vectors: Vec::new() });
        }
        let mut square = vec![0.0; n * n];
        for i in 0..n {
            for (j, &value) in matrix.row(i).iter().enumerate() {
                square[j * n + i] = value;
            }
        }
        drop(matrix);
        let (mut values, mut vectors) = (vec![0.0; n], vec![0.0; n * n]);
        if !symmetric_eigen(&mut square, &mut values, &mut vectors, PARALLELISM) {
            return Err(Error::NotConverged { iterations: 30 * n, residual: f64::NAN, tolerance: f64::EPSILON });
        }
        Ok(Eigen { values, vectors })
    }

    /// Bytes needed to decompose a matrix of this order, besides its triangle.
    pub fn bytes(order: usize) -> u64 {
        (order as u64).saturating_mul(order as u64).saturating_mul(3 * 8)
    }

    /// Eigenvalues, smallest first.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Eigenvectors as rows, in the order of the values.
    pub fn vectors(&self) -> Tile<'_, f64> {
        Tile::new(&self.vectors, self.values.len(), self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize) -> Lower<f64> {
        let mut a = Lower::zeros(n).unwrap();
        for i in 0..n {
            for (j, value) in a.row_mut(i).iter_mut().enumerate() {
                *value = (i.min(j) + 1) as f64;
            }
        }
        a
    }

    #[test]
    fn the_minimum_matrix_has_its_known_eigenvalues_on_any_number_of_threads() {
        // min(i, j) is the inverse of the second difference: λ = 1 / (2 - 2 cos((2k - 1) π / (2n + 1))).
        for n in [1, 2, 30, 150] {
            let eigen = Eigen::new(matrix(n)).unwrap();
            for (k, value) in eigen.values().iter().rev().enumerate() {
                let angle = (2 * k + 1) as f64 * std::f64::consts::PI / (2 * n + 1) as f64;
                let exact = 1.0 / (2.0 - 2.0 * angle.cos());
                assert!((value - exact).abs() < 1e-12 * eigen.values()[n - 1], "{value} {exact}");
            }
            for (k, value) in eigen.values().iter().enumerate() {
                let v = eigen.vectors().row(k);
                for i in 0..n {
                    let image: f64 = (0..n).map(|j| (i.min(j) + 1) as f64 * v[j]).sum();
                    assert!((image - value * v[i]).abs() < 1e-11 * eigen.values()[n - 1]);
                }
            }
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let again = pool.install(|| Eigen::new(matrix(n)).unwrap());
                assert_eq!(again.values, eigen.values);
                assert_eq!(again.vectors, eigen.vectors);
            }
        }
    }
}
