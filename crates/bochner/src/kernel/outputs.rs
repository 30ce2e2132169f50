use crate::error::{Error, Result, check_count, check_dim};
use crate::linalg::{Eigen, Lower};
use crate::rows::check_finite;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// How outputs hang together: a positive semi-definite matrix `A`, one row per output, with its eigendecomposition.
///
/// `A = I` keeps outputs apart, `A = 11ᵀ` makes them one; anything between lets them borrow from each other.
///
/// ```
/// use bochner::kernel::OutputMatrix;
/// use ndarray::array;
/// let a = OutputMatrix::new(array![[2.0, 1.0], [1.0, 2.0]].view())?;
/// assert_eq!((a.len(), a.rank()), (2, 2));
/// assert!((a.norm() - 3.0).abs() < 1e-14);
/// // Two outputs joined by an edge: differences cost, what both share does not.
/// let graph = OutputMatrix::from_graph(array![[0.0, 1.0], [1.0, 0.0]].view())?;
/// assert!((graph.matrix()[[0, 1]] + 0.25).abs() < 1e-15);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<f64>>", into = "Vec<Vec<f64>>")]
pub struct OutputMatrix {
    matrix: Array2<f64>,
    /// Eigenvalues; those below rounding are exactly 0.
    values: Vec<f64>,
    /// Eigenvectors as rows.
    vectors: Array2<f64>,
}

/// Eigenvalues below this fraction of the largest are taken to be 0, and negative ones above it are not positive
/// semi-definite.
const NEGLIGIBLE: f64 = 1e-12;

impl OutputMatrix {
    /// The given matrix.
    ///
    /// # Errors
    /// A matrix that is empty, not square, not symmetric, not finite, or has a negative eigenvalue.
    pub fn new(matrix: ArrayView2<'_, f64>) -> Result<Self> {
        let p = matrix.nrows();
        check_count("number of rows of A", p)?;
        check_dim("number of columns of A", p, matrix.ncols())?;
        check_finite("A", matrix, 0)?;
        let size = matrix.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        for ((i, j), &value) in matrix.indexed_iter() {
            if (value - matrix[[j, i]]).abs() > 1e-8 * size {
                let found = format!("{value} in row {i}, column {j} and {} opposite", matrix[[j, i]]);
                return Err(Error::parameter("A", "symmetric", found));
            }
        }
        let matrix = Array2::from_shape_fn((p, p), |(i, j)| 0.5 * (matrix[[i, j]] + matrix[[j, i]]));
        // Of a diagonal matrix the decomposition is known, without rounding.
        let diagonal = matrix.indexed_iter().all(|((i, j), &v)| i == j || v == 0.0);
        let (mut values, vectors) = if diagonal {
            (matrix.diag().to_vec(), Array2::eye(p))
        } else {
            let eigen = Eigen::new(Lower::from_square(matrix.as_slice().expect("standard layout"), p)?)?;
            let vectors = Array2::from_shape_vec((p, p), eigen.vectors().as_slice().to_vec()).expect("p rows");
            (eigen.values().to_vec(), vectors)
        };
        let largest = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        for value in &mut values {
            if *value < -1e4 * NEGLIGIBLE * largest {
                return Err(Error::parameter("A", "positive semi-definite", format!("an eigenvalue of {value}")));
            }
            if *value <= NEGLIGIBLE * largest {
                *value = 0.0;
            }
        }
        Ok(OutputMatrix { matrix, values, vectors })
    }

    /// `I`: outputs that know nothing of each other.
    ///
    /// # Errors
    /// No outputs.
    pub fn identity(outputs: usize) -> Result<Self> {
        Self::new(Array2::eye(outputs).view())
    }

    /// The pseudo-inverse of the Laplacian `diag(W1) - W` of a graph with non-negative weights `W` between outputs:
    /// neighbours are alike.
    ///
    /// What all outputs of a connected part share has no penalty in the graph and no place in this kernel; an intercept
    /// gives it back.
    ///
    /// # Errors
    /// Weights that are not square, not symmetric, negative or not finite.
    pub fn from_graph(weights: ArrayView2<'_, f64>) -> Result<Self> {
        if let Some(weight) = weights.iter().find(|w| **w < 0.0) {
            return Err(Error::parameter("weights of the graph", "non-negative", weight));
        }
        check_dim("number of columns of the graph", weights.nrows(), weights.ncols())?;
        let laplacian = Array2::from_shape_fn(weights.dim(), |(i, j)| {
            // A loop at an output does not compare it with anything.
            if i == j { weights.row(i).sum() - weights[[i, i]] } else { -weights[[i, j]] }
        });
        let laplacian = Self::new(laplacian.view())?;
        let inverse = laplacian.rebuilt(|value| if value > 0.0 { 1.0 / value } else { 0.0 });
        Self::new(inverse.view())
    }

    /// `V diag(f(λ)) Vᵀ`.
    fn rebuilt(&self, f: impl Fn(f64) -> f64) -> Array2<f64> {
        let scaled = Array2::from_shape_fn(self.vectors.dim(), |(k, i)| f(self.values[k]) * self.vectors[[k, i]]);
        self.vectors.t().dot(&scaled)
    }

    /// The positive square root, divided by its trace and times the number of outputs; `floor` is added to the
    /// eigenvalues first, as a fraction of their sum.
    pub(crate) fn balanced_root(&self, floor: f64) -> Result<Self> {
        let shift = floor * self.values.iter().sum::<f64>();
        let roots: Vec<f64> = self.values.iter().map(|v| (v + shift).sqrt()).collect();
        let trace: f64 = roots.iter().sum();
        if trace <= 0.0 {
            return Self::identity(self.len());
        }
        let factor = self.len() as f64 / trace;
        let root = self.rebuilt(|value| factor * (value + shift).sqrt());
        Self::new(root.view())
    }

    /// Number of outputs.
    #[allow(clippy::len_without_is_empty)] // there is at least one
    pub fn len(&self) -> usize {
        self.matrix.nrows()
    }

    /// Number of eigenvalues other than 0.
    pub fn rank(&self) -> usize {
        self.values.iter().filter(|v| **v > 0.0).count()
    }

    /// The largest eigenvalue.
    pub fn norm(&self) -> f64 {
        self.values.iter().fold(0.0, |m: f64, v| m.max(*v))
    }

    /// `A`.
    pub fn matrix(&self) -> ArrayView2<'_, f64> {
        self.matrix.view()
    }

    /// Eigenvalues, in the order of [`vectors`](Self::vectors).
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Eigenvectors as rows.
    pub fn vectors(&self) -> ArrayView2<'_, f64> {
        self.vectors.view()
    }

    /// `B` with `A = BBᵀ`: one row per output, one column per eigenvalue other than 0.
    pub fn root(&self) -> Array2<f64> {
        let kept: Vec<usize> = (0..self.len()).filter(|&k| self.values[k] > 0.0).collect();
        Array2::from_shape_fn((self.len(), kept.len()), |(i, k)| {
            self.values[kept[k]].sqrt() * self.vectors[[kept[k], i]]
        })
    }
}

impl TryFrom<Vec<Vec<f64>>> for OutputMatrix {
    type Error = Error;
    fn try_from(rows: Vec<Vec<f64>>) -> Result<Self> {
        let p = rows.len();
        rows.iter().try_for_each(|row| check_dim("number of columns of A", p, row.len()))?;
        let values: Vec<f64> = rows.into_iter().flatten().collect();
        Self::new(Array2::from_shape_vec((p, p), values).expect("p rows of p").view())
    }
}

impl From<OutputMatrix> for Vec<Vec<f64>> {
    fn from(outputs: OutputMatrix) -> Self {
        outputs.matrix.rows().into_iter().map(|row| row.to_vec()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn roots_and_vectors_rebuild_the_matrix() {
        let given = array![[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]];
        let a = OutputMatrix::new(given.view()).unwrap();
        let root = a.root();
        assert!((root.dot(&root.t()) - &given).iter().all(|v| v.abs() < 1e-14));
        assert!((a.rebuilt(|v| v) - &given).iter().all(|v| v.abs() < 1e-14));
        let flat = OutputMatrix::new(array![[1.0, 1.0], [1.0, 1.0]].view()).unwrap();
        assert_eq!((flat.rank(), flat.root().dim()), (1, (2, 1)));
        let text = serde_json::to_string(&a).unwrap();
        assert_eq!(serde_json::from_str::<OutputMatrix>(&text).unwrap(), a);
    }

    #[test]
    fn the_pseudo_inverse_of_a_laplacian_inverts_it_off_the_constants() {
        // A path of three outputs and one that stands alone.
        let weights = array![[0.0, 2.0, 0.0, 0.0], [2.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]];
        let laplacian =
            array![[2.0, -2.0, 0.0, 0.0], [-2.0, 3.0, -1.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]];
        let a = OutputMatrix::from_graph(weights.view()).unwrap();
        assert_eq!(a.rank(), 2);
        let back = laplacian.dot(&a.matrix()).dot(&laplacian);
        assert!((back - &laplacian).iter().all(|v| v.abs() < 1e-13));
    }

    #[test]
    fn matrices_that_are_not_positive_semi_definite_are_refused() {
        assert!(OutputMatrix::new(array![[1.0, 2.0], [2.0, 1.0]].view()).is_err());
        assert!(OutputMatrix::new(array![[1.0, 0.2], [0.1, 1.0]].view()).is_err());
        assert!(OutputMatrix::new(array![[1.0, f64::NAN], [0.1, 1.0]].view()).is_err());
        assert!(OutputMatrix::new(array![[1.0, 0.0]].view()).is_err());
        assert!(OutputMatrix::new(Array2::zeros((0, 0)).view()).is_err());
        assert!(OutputMatrix::from_graph(array![[0.0, -1.0], [-1.0, 0.0]].view()).is_err());
        assert!(serde_json::from_str::<OutputMatrix>("[[1, 2], [3]]").is_err());
        assert!(OutputMatrix::new(Array2::zeros((2, 2)).view()).is_ok_and(|a| a.rank() == 0));
    }
}
