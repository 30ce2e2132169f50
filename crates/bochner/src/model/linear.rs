//! A linear function of features, applied tile by tile.

use crate::error::{Error, Result, check_dim};
use crate::feature::FeatureMap;
use crate::linalg::field::Window;
use crate::linalg::{Tile, TileMut};
use crate::parallel::Parallel;
use crate::rows::check_finite;
use crate::scalar::{Real, Scalar};
use crate::solve::Solution;
use ndarray::{Array1, Array2, Array3, ArrayView2, ArrayViewMut2, Axis};

/// `φ ↦ Re(Xᵀφ) + b`.
#[derive(Debug, Clone)]
pub(super) struct Linear<T: Scalar> {
    pub(super) coefficients: Array2<T>,
    pub(super) intercept: Array1<T::Real>,
    // The coefficients with zero columns up to a multiple of 8: products round alike for any number of targets.
    padded: Vec<T>,
}

impl<T: Scalar> Linear<T> {
    pub(super) fn new(coefficients: Array2<T>, intercept: Array1<T::Real>) -> Result<Self> {
        check_dim("number of intercepts", coefficients.ncols(), intercept.len())?;
        let width = coefficients.ncols().next_multiple_of(8);
        let mut padded = vec![T::ZERO; coefficients.nrows() * width];
        for (to, from) in padded.chunks_mut(width.max(1)).zip(coefficients.rows()) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = *from;
            }
        }
        Ok(Linear { coefficients, intercept, padded })
    }

    /// From sums in double precision, rounded once.
    pub(super) fn narrowed(coefficients: &Array2<T::Wide>, intercept: &[f64]) -> Result<Self> {
        let coefficients = coefficients.mapv(T::narrow);
        let finite = |v: &T| num_traits::Float::is_finite(v.re()) && num_traits::Float::is_finite(v.im());
        if !coefficients.iter().all(finite) {
            return Err(Error::parameter("targets", "small enough for coefficients in f32", "an overflow to infinity"));
        }
        Self::new(coefficients, intercept.iter().map(|&b| T::Real::from_f64(b)).collect())
    }

    /// Writes `Re(Xᵀφ(row)) + b` for every row.
    pub(super) fn apply<M>(
        &self,
        map: &M,
        rows: ArrayView2<'_, T::Real>,
        mut out: ArrayViewMut2<'_, T::Real>,
    ) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        let (dim, outputs) = self.coefficients.dim();
        check_dim("number of columns of rows", map.input_dim(), rows.ncols())?;
        check_dim("number of rows of the output", rows.nrows(), out.nrows())?;
        check_dim("number of columns of the output", outputs, out.ncols())?;
        let width = outputs.next_multiple_of(8);
        let tile = map.tile_rows().max(8);
        let right = Window::from(Tile::new(&self.padded, dim, width));
        let tiles = rows.axis_chunks_iter(Axis(0), tile).zip(out.axis_chunks_iter_mut(Axis(0), tile)).enumerate();
        tiles.in_parallel().try_for_each_init(
            || (Array2::from_elem((tile, dim), T::ZERO), vec![T::ZERO; tile * width]),
            |(features, product), (index, (rows, mut out))| {
                let n = rows.nrows();
                // Rows past the last keep numbers of an earlier tile: they are computed and not read.
                map.transform_into(rows, features.slice_mut(ndarray::s![..n, ..]))
                    .map_err(|error| error.rows_from(index * tile))?;
                let height = n.next_multiple_of(8).min(tile);
                let left = Tile::new(features.as_slice().expect("standard layout"), height, dim);
                let product = &mut product[..height * width];
                T::product(TileMut::new(product, height, width), false, 1.0, left.into(), right);
                for (mut out, row) in out.rows_mut().into_iter().zip(product.chunks(width)) {
                    for ((to, from), shift) in out.iter_mut().zip(row).zip(&self.intercept) {
                        *to = from.re() + *shift;
                    }
                }
                check_finite("predictions", out.view(), index * tile)
            },
        )
    }
}

/// Rows whose gradients are made at once: cotangents take as much memory as their features.
const PIECE: usize = 4096;

impl<T: Scalar> Linear<T> {
    /// Derivatives of `Re(Xᵀφ(row))` by the inputs: axes are rows, outputs, inputs. One pullback of each output's
    /// coefficients; no Jacobian is made.
    pub(super) fn gradient<M>(&self, map: &M, rows: ArrayView2<'_, T::Real>) -> Result<Array3<f64>>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        let (dim, outputs) = self.coefficients.dim();
        let (n, inputs) = rows.dim();
        check_dim("number of columns of rows", map.input_dim(), inputs)?;
        let needed = crate::memory::bytes::<f64>(&[n, outputs, inputs]);
        crate::memory::need("gradients", needed, |_| "ask for those of fewer rows".into())?;
        let mut out = Array3::zeros((n, outputs, inputs));
        // dL = Re(conj(u) dφ) with L = Re(Xᵀφ): the cotangent is the conjugate.
        let cotangents = self.coefficients.mapv(Scalar::conj);
        for start in (0..n).step_by(PIECE) {
            let range = start..(start + PIECE).min(n);
            let rows = rows.slice(ndarray::s![range.clone(), ..]);
            for (t, column) in cotangents.columns().into_iter().enumerate() {
                let same = column.broadcast((range.len(), dim)).expect("one row of cotangents for all");
                let pulled = map.pullback(rows, same).map_err(|error| error.rows_from(start))?;
                out.slice_mut(ndarray::s![range.clone(), t, ..]).assign(&pulled.mapv(Real::to_f64));
            }
        }
        Ok(out)
    }
}

impl<R: Real> Linear<R> {
    pub(super) fn from_solution(solution: &Solution) -> Result<Self> {
        Self::narrowed(&solution.coefficients, &solution.intercept)
    }
}
