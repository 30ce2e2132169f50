//! Descriptions of maps: what a model file stores instead of weights, and the one constructor all doors share.

use super::{DynComplexMap, DynMap};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
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
}

/// Any map of the library, as stored in model files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "map", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Spec {}
