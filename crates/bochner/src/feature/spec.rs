//! Descriptions of maps: what a model file stores instead of weights, and the one constructor all doors share.

use super::{
    CompressiveSpec, DynComplexMap, DynMap, FourierSpec, MaclaurinSpec, OpticalSpec, OrthoProjectionSpec,
    PolynomialSpec, PositiveSpec, SphericalSpec,
};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::sync::Arc;

/// A description of a feature map from which it can be drawn again, bit for bit.
///
/// Every kind of map has a plain struct of parameters that implements this trait; [`Spec`] is the sum of them.
pub trait Describe {
    /// Fills in what depends on data (a median length scale, an allocation); the default has nothing to fill in.
    ///
    /// # Errors
    /// Parameters that do not fit the rows.
    fn resolve(&self, _sample: ArrayView2<'_, f64>) -> Result<Self>
    where
        Self: Sized + Clone,
    {
        Ok(self.clone())
    }

    /// Draws the map for rows of length `input_dim`; real output (complex maps as CtR).
    ///
    /// # Errors
    /// Parameters out of range, named.
    fn build<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>>;

    /// Draws the map with complex output.
    ///
    /// # Errors
    /// As [`build`](Self::build), and for maps that have no complex form.
    fn build_complex<R: Real>(&self, _input_dim: usize) -> Result<DynComplexMap<R>> {
        Err(Error::Unsupported { what: "complex output", reason: "this map is real".into() })
    }

    /// The exact kernel the map estimates.
    ///
    /// # Errors
    /// Parameters out of range, named.
    fn kernel(&self) -> Result<Arc<dyn Kernel>>;

    /// Closed-form variance of every estimated entry `k̂(xᵢ, yⱼ)`.
    ///
    /// # Errors
    /// Maps without a closed form say why.
    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>>;

    /// The variance that the same number of independent draws would have: [`variance`](Self::variance) itself for
    /// maps of independent draws, a figure to compare with for structured ones that have no closed form.
    ///
    /// # Errors
    /// As [`variance`](Self::variance), where there is no such figure either.
    fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.variance(x, y)
    }

    /// Bias and variance as far as they are known: closed forms, or leading-order figures for structured maps.
    ///
    /// The default takes [`variance`](Self::variance) without bias, and [`variance_iid`](Self::variance_iid) where there
    /// is no closed form.
    ///
    /// # Errors
    /// As [`variance_iid`](Self::variance_iid).
    fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
        match self.variance(x, y) {
            Ok(variance) => Ok(Prediction { bias: None, variance, closed_form: true }),
            Err(Error::Unsupported { .. }) => {
                Ok(Prediction { bias: None, variance: self.variance_iid(x, y)?, closed_form: false })
            }
            Err(error) => Err(error),
        }
    }
}

/// What is known of the errors `k̂(xᵢ, yⱼ) - k(xᵢ, yⱼ)` before a map is drawn.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// Their means; `None` for unbiased maps.
    pub bias: Option<Array2<f64>>,
    /// Their variances.
    pub variance: Array2<f64>,
    /// Whether both are closed forms, not leading-order figures.
    pub closed_form: bool,
}

impl Prediction {
    /// `E Σ (k̂ - k)²` over all pairs.
    pub fn squared_error(&self) -> f64 {
        self.variance.sum() + self.bias.as_ref().map_or(0.0, |bias| bias.iter().map(|b| b * b).sum())
    }
}

/// `single` where `R` is `f32`, `double` where it is `f64`.
///
/// Drawing a map pulls in all of its kernels. Called through functions that name their precision they are compiled once,
/// in this crate; as generic code they would be compiled again in every program that draws a map (over a minute each).
pub(super) fn in_precision<R: Real, S: Any, D: Any, T: Any>(
    single: impl FnOnce() -> Result<S>,
    double: impl FnOnce() -> Result<D>,
) -> Result<T> {
    let map: Box<dyn Any> =
        if TypeId::of::<R>() == TypeId::of::<f32>() { Box::new(single()?) } else { Box::new(double()?) };
    Ok(*map.downcast().expect("there are two precisions"))
}

/// Lists the kinds of maps: a variant, a conversion and one arm of every method for each.
macro_rules! specs {
    ($($(#[$doc:meta])* $variant:ident($parameters:ident),)*) => {
        /// Any map of the library, as stored in model files: `map` names the kind, the other fields are its parameters.
        ///
        /// ```
        /// use bochner::feature::{Describe, FeatureMap, Spec};
        /// let text = r#"{"map": "fourier", "n_components": 64, "length_scale": 0.5, "seed": 7}"#;
        /// let spec: Spec = serde_json::from_str(text).unwrap();
        /// let map = spec.build::<f32>(3)?;
        /// assert_eq!((map.input_dim(), map.output_dim()), (3, 64));
        /// # Ok::<(), bochner::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "map", rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Spec {
            $($(#[$doc])* $variant($parameters),)*
        }

        impl Describe for Spec {
            fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
                Ok(match self {
                    $(Spec::$variant(spec) => Spec::$variant(spec.resolve(sample)?),)*
                })
            }

            fn build<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
                match self {
                    $(Spec::$variant(spec) => spec.build(input_dim),)*
                }
            }

            fn build_complex<R: Real>(&self, input_dim: usize) -> Result<DynComplexMap<R>> {
                match self {
                    $(Spec::$variant(spec) => spec.build_complex(input_dim),)*
                }
            }

            fn kernel(&self) -> Result<Arc<dyn Kernel>> {
                match self {
                    $(Spec::$variant(spec) => spec.kernel(),)*
                }
            }

            fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
                match self {
                    $(Spec::$variant(spec) => spec.variance(x, y),)*
                }
            }

            fn variance_iid(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
                match self {
                    $(Spec::$variant(spec) => spec.variance_iid(x, y),)*
                }
            }

            fn prediction(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Prediction> {
                match self {
                    $(Spec::$variant(spec) => spec.prediction(x, y),)*
                }
            }
        }

        impl Spec {
            /// The same map with another budget of columns and other draws.
            pub fn redrawn(&self, n_components: usize, seed: u64) -> Spec {
                match self {
                    $(Spec::$variant(spec) => Spec::$variant($parameters { n_components, seed, ..spec.clone() }),)*
                }
            }

            /// The budget of columns.
            pub fn n_components(&self) -> usize {
                match self {
                    $(Spec::$variant(spec) => spec.n_components,)*
                }
            }
        }

        $(impl From<$parameters> for Spec {
            fn from(spec: $parameters) -> Self {
                Spec::$variant(spec)
            }
        })*
    };
}

specs! {
    /// Fourier features of a shift-invariant kernel.
    Fourier(FourierSpec),
    /// Moduli of complex projections.
    Optical(OpticalSpec),
    /// Maclaurin features of dot-product kernels and the Gaussian kernel.
    Maclaurin(MaclaurinSpec),
    /// Sketches of the polynomial kernel.
    Polynomial(PolynomialSpec),
    /// Features of the exponential kernel.
    Positive(PositiveSpec),
    /// Features of polynomial kernels of unit rows.
    Spherical(SphericalSpec),
    /// Orthogonal projections of rows: sketches of the inner product.
    OrthoProjection(OrthoProjectionSpec),
    /// Fourier features of compressed rows.
    Compressive(CompressiveSpec),
}
