//! Feature maps: `φ` with `⟨φ(x), φ(y)⟩` an estimate of `k(x, y)`.
//!
//! A map is a projection and a nonlinearity, or a composition of maps:
//! [`ComplexToReal`], [`Concat`], [`Projected`].

/// Everything a map can do, done by another one; what it knows of its description is its own.
macro_rules! forward {
    ($type:ty, $this:ident => $inner:expr, $description:expr) => {
        impl<M: $crate::feature::FeatureMap + ?Sized> $crate::feature::FeatureMap for $type {
            type Real = M::Real;
            type Output = M::Output;
            fn input_dim(&$this) -> usize {
                $inner.input_dim()
            }
            fn output_dim(&$this) -> usize {
                $inner.output_dim()
            }
            fn map_tile(&$this, rows: Tile<'_, M::Real>, out: TileMut<'_, M::Output>, work: &mut Workspace<M::Real>) {
                $inner.map_tile(rows, out, work);
            }
            fn map_tile_split(&$this, rows: Tile<'_, M::Real>, out: Parts<'_, M::Real>, work: &mut Workspace<M::Real>) {
                $inner.map_tile_split(rows, out, work);
            }
            fn map_tile_scaled(
                &$this,
                rows: Tile<'_, M::Real>,
                out: TileMut<'_, M::Output>,
                exponents: &mut [f64],
                work: &mut Workspace<M::Real>,
            ) {
                $inner.map_tile_scaled(rows, out, exponents, work);
            }
            fn check_tile(&$this, rows: Tile<'_, M::Real>) -> Result<()> {
                $inner.check_tile(rows)
            }
            fn pull_tile(
                &$this,
                rows: Tile<'_, M::Real>,
                from: $crate::feature::Cotangents<'_, M::Real>,
                out: TileMut<'_, M::Real>,
                work: &mut Workspace<M::Real>,
            ) {
                $inner.pull_tile(rows, from, out, work);
            }
            fn check_pullback(&$this) -> Result<()> {
                $inner.check_pullback()
            }
            fn pull_parameters(
                &$this,
                rows: ndarray::ArrayView2<'_, M::Real>,
                cotangents: ndarray::ArrayView2<'_, M::Output>,
            ) -> Result<$crate::feature::WaveSlopes> {
                $inner.pull_parameters(rows, cotangents)
            }
            fn tile_rows(&$this) -> usize {
                $inner.tile_rows()
            }
            fn description(&$this) -> Option<&Spec> {
                $description
            }
            fn operations(&$this) -> u64 {
                $inner.operations()
            }
            fn pieces(&$this) -> Result<$crate::feature::Piece<M::Real>> {
                $inner.pieces()
            }
        }
    };
}

/// The list of all kinds of maps, with their descriptions.
macro_rules! maps {
    ($then:ident) => {
        $then! {
            /// Fourier features of a shift-invariant kernel.
            Fourier(FourierSpec),
            /// Sketches of the polynomial kernel.
            Polynomial(PolynomialSpec),
            /// Features of the exponential kernel.
            Positive(PositiveSpec),
            /// Moduli of complex projections.
            Optical(OpticalSpec),
            /// Features of polynomial kernels of unit rows.
            Spherical(SphericalSpec),
            /// Fourier features of compressed rows.
            Compressive(CompressiveSpec),
            /// Maclaurin features of dot-product kernels and the Gaussian kernel.
            Maclaurin(MaclaurinSpec),
            /// Orthogonal projections of rows: sketches of the inner product.
            OrthoProjection(OrthoProjectionSpec),
            /// Fourier features whose frequencies were learned.
            LearnedFourier(LearnedFourierSpec),
        }
    };
}

mod compose;
mod compressive;
mod description;
mod drive;
mod fourier;
mod functional;
mod learned;
mod maclaurin;
mod operator;
mod optical;
mod pieces;
mod polynomial;
mod pooling;
mod positive;
mod product_sketch;
mod scales;
mod spec;
mod spherical;
mod tensor_sketch;
mod tree_sketch;

#[allow(deprecated)]
pub use compose::Measured;
pub use compose::{Compact, ComplexToReal, Concat, Constant, Projected, ScaledProjection};
pub use compressive::{CompressiveSpec, Distortion, OrthoProjectionSpec, Orthoprojection, distortion};
pub use description::Description;
pub(crate) use fourier::slopes::of_pairs;
pub use fourier::{ComplexFourier, Directions, Fourier, FourierKernel, FourierSpec, Frequencies, WaveSlopes};
pub use functional::FieldQuantity;
pub use learned::{Learned, LearnedFourierSpec};
pub use maclaurin::{
    Allocation, AllocationRule, Cost, Curve, DegreeMeasure, Maclaurin, MaclaurinKernel, MaclaurinSpec, Statistics,
    allocate,
};
pub use operator::{OperatorFeatures, OperatorSpec, Spread};
#[allow(deprecated)]
pub use optical::Optical;
pub use optical::{
    Camera, Device, DotSquare, DynProjection, Encoding, OpticalFeatures, OpticalProjection, OpticalSpec, Recovered,
    Simulator, choose_threshold,
};
pub use pieces::{Content, Piece};
pub use polynomial::{PolynomialSpec, SketchKind, Structure};
pub use pooling::{compact_bilinear_pooling, multimodal_pooling};
pub use positive::{Positive, PositiveSpec};
pub use product_sketch::{Lift, MAX_DEGREE, ProductSketch};
pub use spec::{Candidate, Describe, DrawCost, Prediction, Spec};
pub use spherical::{Bias, RadialDensity, RadialFit, SphericalSpec, UnitRows};
pub use tensor_sketch::TensorSketch;
pub use tree_sketch::TreeSketch;

pub use crate::linalg::{Tile, TileMut, Workspace};
pub use crate::projection::{Cotangents, Parts};
pub use crate::random::{Role, Seed, Stream};
pub use crate::scalar::{Real, Scalar};

use crate::error::{Error, Result};
use crate::projection::in_parts;
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

    /// Like [`map_tile`](Self::map_tile), real and imaginary parts apart.
    ///
    /// Complex maps that compute the parts separately override it.
    fn map_tile_split(&self, rows: Tile<'_, Self::Real>, out: Parts<'_, Self::Real>, work: &mut Workspace<Self::Real>) {
        in_parts(out, work, |out, work| self.map_tile(rows, out, work));
    }

    /// Like [`map_tile`](Self::map_tile) with the features of row `i` divided by `exp(exponents[i])`, where the map chooses
    /// the exponents so that features neither overflow nor vanish; maps without such a need choose 0.
    ///
    /// Quotients in which the exponents cancel, such as attention, are then finite for rows of any length.
    fn map_tile_scaled(
        &self,
        rows: Tile<'_, Self::Real>,
        out: TileMut<'_, Self::Output>,
        exponents: &mut [f64],
        work: &mut Workspace<Self::Real>,
    ) {
        exponents.fill(0.0);
        self.map_tile(rows, out, work);
    }

    /// Adds the pullback to `out`, which has the shape of `rows`: `Re(Jᴴu)` of every row, with its Jacobian `J` and its
    /// cotangent `u` ([`Cotangents`]). It costs about as much as the features themselves; no Jacobian is formed.
    ///
    /// Where a feature has no derivative it counts as constant.
    fn pull_tile(
        &self,
        rows: Tile<'_, Self::Real>,
        from: Cotangents<'_, Self::Real>,
        out: TileMut<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    );

    /// Refuses pullbacks of maps that are constant almost everywhere, such as those of binary rows or of readings of a camera.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    fn check_pullback(&self) -> Result<()> {
        Ok(())
    }

    /// Refuses rows that have no features, such as zero rows where only directions count; the driver asks before it maps
    /// a tile.
    ///
    /// # Errors
    /// [`Error::Row`], counted from the first row of the tile.
    fn check_tile(&self, _rows: Tile<'_, Self::Real>) -> Result<()> {
        Ok(())
    }

    /// Rows per tile at which the map is fastest.
    fn tile_rows(&self) -> usize {
        64
    }

    /// About as many multiplications and additions of a product take the time of the features of one row: what it costs to
    /// compute features again instead of keeping sums of them.
    fn operations(&self) -> u64 {
        (self.input_dim() as u64).saturating_mul(self.output_dim() as u64)
    }

    /// The description from which the map can be drawn again, which maps of the library know ([`Describe::build`]); models
    /// on a map of one's own cannot be saved.
    fn description(&self) -> Option<&Spec> {
        None
    }

    /// What the map is made of, as data: arrays of weights and what is done with them ([`Piece`]), from which other programs
    /// compute the same features. Structured projections come as the matrices they are, which are larger and slower.
    ///
    /// # Errors
    /// Maps that are not made of pieces, such as readings of a camera, and more numbers than fit into memory.
    fn pieces(&self) -> Result<Piece<Self::Real>> {
        Err(Error::Unsupported { what: "pieces of a map", reason: "this map does not say what it is made of".into() })
    }

    /// Features of any block of rows in any layout: cuts tiles and shares them among threads.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities in `rows`, and rows without features ([`check_tile`](Self::check_tile)).
    fn transform_into(&self, rows: ArrayView2<'_, Self::Real>, out: ArrayViewMut2<'_, Self::Output>) -> Result<()> {
        let job = drive::Driven {
            input_dim: self.input_dim(),
            output_dim: self.output_dim(),
            tile_rows: self.tile_rows(),
            check: &|rows| self.check_tile(rows),
            map: &|rows, out, work| self.map_tile(rows, out, work),
        };
        drive::drive(&job, rows, out)
    }

    /// Zeros in place of the features of so many rows, for [`transform_into`](Self::transform_into).
    ///
    /// # Errors
    /// [`Error::Memory`], with the number of rows that would fit.
    fn room_for(&self, rows: usize) -> Result<Array2<Self::Output>> {
        drive::fresh(rows, self.output_dim())
    }

    /// The pullback of cotangents of features to cotangents of rows: row `i` of the result is `Re(Jᴴu)` for row `i` of both.
    ///
    /// With `u` the gradient of a function of the features, it is the gradient of that function of the rows. For complex
    /// features `u` is the gradient in the real part plus `i` times that in the imaginary part.
    ///
    /// ```
    /// use bochner::feature::{Describe, FeatureMap, FourierSpec};
    /// use ndarray::array;
    /// let map = FourierSpec::default().build::<f64>(2)?;
    /// let (x, weights) = (array![[0.3, -0.2]], ndarray::Array2::from_elem((1, map.output_dim()), 0.1));
    /// let gradient = map.pullback(x.view(), weights.view())?;
    /// let value = |x: ndarray::Array2<f64>| Ok::<_, bochner::Error>((map.transform(x.view())? * &weights).sum());
    /// let slope = (value(&x + &array![[1e-6, 0.0]])? - value(&x - &array![[1e-6, 0.0]])?) / 2e-6;
    /// assert!((gradient[[0, 0]] - slope).abs() < 1e-8);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`transform_into`](Self::transform_into), and maps without derivatives ([`check_pullback`](Self::check_pullback)).
    fn pullback(
        &self,
        rows: ArrayView2<'_, Self::Real>,
        cotangents: ArrayView2<'_, Self::Output>,
    ) -> Result<Array2<Self::Real>> {
        self.check_pullback()?;
        let mut out = drive::fresh(rows.nrows(), self.input_dim())?;
        let job = drive::Pulled {
            dims: (self.input_dim(), self.output_dim()),
            tile_rows: self.tile_rows(),
            check: &|rows| self.check_tile(rows),
            pull: &|rows, cotangents, out, work| self.pull_tile(rows, cotangents, out, work),
        };
        drive::pull(&job, rows, cotangents, out.view_mut())?;
        Ok(out)
    }

    /// The pullback of cotangents of Fourier features to frequencies, amplitudes and offsets, summed over rows: with the gradient
    /// of a function of the features, its gradient in what the features are made of. Cotangents are as for
    /// [`pullback`](Self::pullback).
    ///
    /// ```
    /// use bochner::feature::{FeatureMap, Describe, Learned, LearnedFourierSpec};
    /// use ndarray::array;
    /// let map = LearnedFourierSpec::from(Learned::new(array![[0.5, 2.0]].view(), &[0.5])?).build::<f64>(2)?;
    /// let found = map.pull_parameters(array![[0.3, 0.1]].view(), array![[1.0, 0.0]].view())?;
    /// // The feature is cos(0.5 · 0.3 + 2 · 0.1)/2.
    /// assert!((found.frequencies[[0, 0]] + 0.3 * 0.35f64.sin() / 2.0).abs() < 1e-12);
    /// assert!((found.amplitudes[0] - 0.35f64.cos()).abs() < 1e-12);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`transform_into`](Self::transform_into), and maps that are no Fourier features.
    fn pull_parameters(
        &self,
        _rows: ArrayView2<'_, Self::Real>,
        _cotangents: ArrayView2<'_, Self::Output>,
    ) -> Result<WaveSlopes> {
        let reason = "only Fourier features, learned ones too, have frequencies, amplitudes and offsets; pullback goes \
                      back to the rows of any map";
        Err(crate::error::Error::Unsupported { what: "pullback to parameters", reason: reason.into() })
    }

    /// Features of a block of rows in a fresh array.
    ///
    /// # Errors
    /// As [`transform_into`](Self::transform_into), and more features than fit into memory.
    fn transform(&self, rows: ArrayView2<'_, Self::Real>) -> Result<Array2<Self::Output>> {
        let mut out = self.room_for(rows.nrows())?;
        self.transform_into(rows, out.view_mut())?;
        Ok(out)
    }
}

/// A map behind a pointer: what models, the command line and Python hold.
pub type DynMap<R> = Arc<dyn FeatureMap<Real = R, Output = R>>;

/// A complex map behind a pointer.
pub type DynComplexMap<R> = Arc<dyn FeatureMap<Real = R, Output = <R as Real>::Complex>>;

forward!(Arc<M>, self => (**self), (**self).description());
forward!(Box<M>, self => (**self), (**self).description());
