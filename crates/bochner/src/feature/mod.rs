//! Feature maps: `φ` with `⟨φ(x), φ(y)⟩` an estimate of `k(x, y)`.
//!
//! A map is a projection and a nonlinearity, or a composition of maps:
//! [`ComplexToReal`], [`Concat`], [`Projected`].

mod compose;
mod drive;
mod fourier;
mod operator;
mod polynomial;
mod pooling;
mod product_sketch;
mod spec;
mod tensor_sketch;
mod tree_sketch;

pub use compose::{Compact, ComplexToReal, Concat, Constant, Projected};
pub use fourier::{ComplexFourier, Directions, Fourier, FourierKernel, FourierSpec, Frequencies};
pub use operator::{OperatorFeatures, OperatorSpec, Spread};
pub use polynomial::{PolynomialSpec, SketchKind, Structure};
pub use pooling::{compact_bilinear_pooling, multimodal_pooling};
pub use product_sketch::{Lift, MAX_DEGREE, ProductSketch};
pub use spec::{Describe, Prediction, Spec};
pub use tensor_sketch::TensorSketch;
pub use tree_sketch::TreeSketch;

use crate::error::Result;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::split_tile;
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use std::fmt::Debug;
use std::sync::Arc;

/// `φ` with `⟨φ(x), φ(y)⟩ = Σ φ(x)ⱼ conj(φ(y)ⱼ)` an estimate of a kernel.
///
/// Implementers write [`map_tile`](Self::map_tile); callers use [`transform_into`](Self::transform_into).
/// Bits do not depend on how rows are cut into tiles.
pub trait FeatureMap: Debug + Send + Sync {
    /// Precision.
    type Real: Real;
    /// Type of a feature.
    type Output: Scalar<Real = Self::Real>;

    /// Length of an input row.
    fn input_dim(&self) -> usize;

    /// Number of features.
    fn output_dim(&self) -> usize;

    /// Writes the features of `rows` to `out`; both have the same, positive number of rows.
    fn map_tile(&self, rows: Tile<'_, Self::Real>, out: TileMut<'_, Self::Output>, work: &mut Workspace<Self::Real>);

    /// Like [`map_tile`](Self::map_tile), real and imaginary parts apart; real maps leave `im` untouched.
    ///
    /// Complex maps that compute the parts separately override it.
    fn map_tile_split(
        &self,
        rows: Tile<'_, Self::Real>,
        mut re: TileMut<'_, Self::Real>,
        mut im: TileMut<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    ) {
        let (n, m) = (rows.rows(), self.output_dim());
        let mut both = Self::Output::lend(work, n * m);
        self.map_tile(rows, TileMut::new(&mut both, n, m), work);
        split_tile(&both, &mut re, &mut im);
        Self::Output::give_back(work, both);
    }

    /// Rows per tile at which the map is fastest.
    fn tile_rows(&self) -> usize {
        64
    }

    /// Features of any block of rows in any layout: cuts tiles and shares them among threads.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    fn transform_into(&self, rows: ArrayView2<'_, Self::Real>, out: ArrayViewMut2<'_, Self::Output>) -> Result<()> {
        drive::drive(self, rows, out)
    }

    /// Features of a block of rows in a fresh array.
    ///
    /// # Errors
    /// As [`transform_into`](Self::transform_into).
    fn transform(&self, rows: ArrayView2<'_, Self::Real>) -> Result<Array2<Self::Output>> {
        let mut out = drive::fresh(rows.nrows(), self.output_dim());
        self.transform_into(rows, out.view_mut())?;
        Ok(out)
    }
}

/// A map behind a pointer: what models, the command line and Python hold.
pub type DynMap<R> = Arc<dyn FeatureMap<Real = R, Output = R>>;

/// A complex map behind a pointer.
pub type DynComplexMap<R> = Arc<dyn FeatureMap<Real = R, Output = <R as Real>::Complex>>;

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<M: FeatureMap + ?Sized> FeatureMap for $pointer {
            type Real = M::Real;
            type Output = M::Output;
            fn input_dim(&self) -> usize {
                (**self).input_dim()
            }
            fn output_dim(&self) -> usize {
                (**self).output_dim()
            }
            fn map_tile(&self, rows: Tile<'_, M::Real>, out: TileMut<'_, M::Output>, work: &mut Workspace<M::Real>) {
                (**self).map_tile(rows, out, work);
            }
            fn map_tile_split(
                &self,
                rows: Tile<'_, M::Real>,
                re: TileMut<'_, M::Real>,
                im: TileMut<'_, M::Real>,
                work: &mut Workspace<M::Real>,
            ) {
                (**self).map_tile_split(rows, re, im, work);
            }
            fn tile_rows(&self) -> usize {
                (**self).tile_rows()
            }
        }
    )*};
}
forward!(Arc<M>, Box<M>);
