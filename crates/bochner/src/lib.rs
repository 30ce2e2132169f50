//! Kernel methods at the cost of linear models.
//!
//! A kernel method on `n` rows needs an `n × n` matrix. bochner maps rows to random features whose inner products estimate
//! the kernel, says how accurate that estimate is before any model is trained, and fits linear models on the features in one
//! pass over blocks of rows: memory depends on the number of features and never on the number of rows.
//!
//! ```
//! use bochner::prelude::*;
//! # use ndarray::Array2;
//! # let x = Array2::from_shape_fn((200, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.37).sin());
//! # let y = Array2::from_shape_fn((200, 1), |(i, _)| x[[i, 0]] * x[[i, 1]]);
//! # let file = std::env::temp_dir().join(format!("bochner-front-page-{}", std::process::id()));
//! let map = FourierSpec { n_components: 256, ..FourierSpec::default() }.build::<f64>(2)?;
//! Ridge::new(map, 1e-3)?.fit(x.view(), y.view())?.save(&file)?;
//! let predictions = bochner::load(&file)?.predict(x.view())?; // any kind of model, in any precision
//! assert!((&predictions - &y).iter().all(|error| error.abs() < 0.01));
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), bochner::Error>(())
//! ```
//!
//! How far the estimated kernel is from the exact one is known before anything is drawn:
//!
//! ```
//! use bochner::prelude::*;
//! use ndarray::array;
//! let spec = FourierSpec { n_components: 256, ..FourierSpec::default() };
//! let error = spec.variance_iid(array![[0.3, 0.4]].view(), array![[1.0, 0.0]].view())?[[0, 0]].sqrt();
//! assert!(error < 0.1);
//! # Ok::<(), bochner::Error>(())
//! ```
//!
//! # Streams
//!
//! Rows that do not fit into memory come from a [`RowSource`](rows::RowSource), block by block. A [`Context`] holds what long
//! work needs besides: a memory budget, a journal to continue from, a flag that stops it, somebody who is told how far it is.
//!
//! ```
//! use bochner::prelude::*;
//! use ndarray::Array2;
//!
//! /// Ten thousand points of a wave, made as they are read.
//! struct Wave;
//!
//! impl RowSource<f32> for Wave {
//!     fn input_dim(&self) -> usize { 1 }
//!     fn target_dim(&self) -> usize { 1 }
//!     fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, f32>) -> Result<()>) -> Result<()> {
//!         for block in 0..10 {
//!             let rows = Array2::from_shape_fn((1_000, 1), |(i, _)| ((block * 1_000 + i) as f32 * 0.618).fract() * 6.0);
//!             visit(RowBlock { targets: rows.mapv(f32::sin).view(), rows: rows.view(), weights: None })?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let map = FourierSpec { n_components: 64, ..FourierSpec::default() }.build::<f32>(1)?;
//! let mut context = Context::default().with_memory_budget(1 << 24)?;
//! let model = Ridge::new(map, 1e-3)?.fit_stream(&mut Wave, &mut context)?;
//! assert!((model.predict(ndarray::array![[1.0]].view())?[[0, 0]] - 1f32.sin()).abs() < 0.01);
//! # Ok::<(), bochner::Error>(())
//! ```
//!
//! # A map of one's own
//!
//! What a map needs comes from [`feature`]. The driver cuts tiles, shares them among threads and refuses NaN.
//!
//! ```
//! use bochner::feature::{Cotangents, FeatureMap, Tile, TileMut, Workspace};
//! use bochner::prelude::*;
//!
//! /// A row and the squares of its numbers: the kernel `x·y + Σ xⱼ²yⱼ²`.
//! #[derive(Debug, Clone)]
//! struct Squares { dim: usize }
//!
//! impl FeatureMap for Squares {
//!     type Real = f64;
//!     type Output = f64;
//!     fn input_dim(&self) -> usize { self.dim }
//!     fn output_dim(&self) -> usize { 2 * self.dim }
//!     fn map_tile(&self, rows: Tile<'_, f64>, mut out: TileMut<'_, f64>, _: &mut Workspace<f64>) {
//!         for i in 0..rows.rows() {
//!             let (plain, squares) = out.row_mut(i).split_at_mut(self.dim);
//!             plain.copy_from_slice(rows.row(i));
//!             squares.iter_mut().zip(rows.row(i)).for_each(|(square, x)| *square = x * x);
//!         }
//!     }
//!     // The transpose of its Jacobian, for whatever is learned through it: slopes of features to slopes of numbers.
//!     fn pull_tile(&self, rows: Tile<'_, f64>, from: Cotangents<'_, f64>, mut out: TileMut<'_, f64>, _: &mut Workspace<f64>) {
//!         for i in 0..rows.rows() {
//!             let (plain, squares) = from.re.row(i).split_at(self.dim);
//!             let slopes = plain.iter().zip(squares).zip(rows.row(i)).map(|((u, v), x)| u + 2.0 * x * v);
//!             out.row_mut(i).iter_mut().zip(slopes).for_each(|(out, slope)| *out += slope);
//!         }
//!     }
//! }
//!
//! let (x, y) = (ndarray::array![[0.0], [1.0], [2.0], [3.0]], ndarray::array![[0.0], [2.0], [6.0], [12.0]]);
//! let model = Ridge::new(Squares { dim: 1 }, 1e-9)?.fit(x.view(), y.view())?;
//! assert!((model.predict(ndarray::array![[4.0]].view())?[[0, 0]] - 20.0).abs() < 1e-4);
//! # Ok::<(), bochner::Error>(())
//! ```
//!
//! The modules follow the data from left to right: [`rows`], [`preprocess`], [`projection`], [`feature`], [`accumulate`],
//! [`solve`], [`model`]; [`kernel`], [`variance`] and [`metrics`] say what is estimated, how well, and how well it went. The
//! [`catalogue`] lists every map, kernel and model with its parameters.
#![warn(missing_docs)]

pub mod accumulate;
pub mod attention;
pub mod catalogue;
pub mod context;
pub mod error;
pub mod feature;
mod interrupt;
pub mod kernel;
#[doc(hidden)] // tools of the other modules; `feature` has what the writer of a map needs of them
pub mod linalg;
pub mod memory;
pub mod metrics;
pub mod model;
#[doc(hidden)]
pub mod parallel;
pub(crate) mod parameter;
pub mod persist;
pub mod plan;
pub mod preprocess;
pub mod projection;
pub mod random;
pub mod rows;
pub mod scalar;
pub mod solve;
#[doc(hidden)]
pub mod special;
pub mod stats;
pub mod tune;
pub mod variance;
#[doc(hidden)]
pub mod words;

pub use context::Context;
pub use error::{Error, Result};
pub use model::{Model, load};
pub use ndarray;
pub use num_complex::Complex;

/// What most programs need: `use bochner::prelude::*;`.
pub mod prelude {
    pub use crate::context::Context;
    pub use crate::error::{Error, Result};
    pub use crate::feature::{
        CompressiveSpec, Describe, FeatureMap, FourierSpec, MaclaurinSpec, OpticalSpec, OrthoProjectionSpec,
        PolynomialSpec, PositiveSpec, Spec, SphericalSpec,
    };
    pub use crate::kernel::{AnyKernel, Kernel};
    pub use crate::model::{Fit, Fitted, GpClassifier, GpRegressor, Model, Predict, Ridge, RidgeClassifier, Svm, load};
    pub use crate::rows::{InMemory, RowBlock, RowSource};
}

#[cfg(test)]
extern crate self as bochner; // what tests inside share with those outside calls it so

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;

#[cfg(doctest)]
#[doc = include_str!("../../../CONTRIBUTING.md")]
struct Contributing;
