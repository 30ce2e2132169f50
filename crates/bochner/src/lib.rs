//! Kernel methods at the cost of linear models.
//!
//! A kernel method on `n` rows needs an `n × n` matrix. bochner maps rows to random features whose inner products estimate
//! the kernel, says how accurate that estimate is before any model is trained, and fits linear models on the features in one
//! pass over blocks of rows: memory depends on the number of features and never on the number of rows.
//!
//! ```
//! use bochner::feature::{Describe, FourierSpec};
//! use bochner::model::{Fit, Ridge, RidgeClassifier};
//! use ndarray::{Array2, array};
//!
//! // Two rings around the origin: no line separates them, a Gaussian kernel does.
//! let angle = |i: usize| i as f32 * 0.7;
//! let radius = |i: usize| if i % 2 == 0 { 1.0 } else { 2.0 };
//! let rows = Array2::from_shape_fn((200, 2), |(i, j)| radius(i) * if j == 0 { angle(i).cos() } else { angle(i).sin() });
//! let labels = Array2::from_shape_fn((200, 1), |(i, _)| (i % 2) as f32);
//!
//! let spec = FourierSpec { n_components: 256, seed: 7, ..FourierSpec::default() };
//! let map = spec.build::<f32>(2)?;
//! let model = RidgeClassifier::new(Ridge::new(map, 0.1)?).fit(rows.view(), labels.view())?;
//! assert_eq!(model.predict_classes(array![[1.0, 0.0], [0.0, -2.0]].view())?, [0, 1]);
//!
//! // How far is the estimated kernel from the exact one? Known without drawing anything.
//! let point = array![[0.3, 0.4]];
//! let error = spec.variance_iid(point.view(), array![[1.0, 0.0]].view())?[[0, 0]].sqrt();
//! assert!(error < 0.1);
//! # Ok::<(), bochner::Error>(())
//! ```
//!
//! The modules follow the data from left to right: [`rows`], [`preprocess`], [`projection`], [`feature`], [`accumulate`],
//! [`solve`], [`model`]; [`kernel`], [`variance`] and [`metrics`] say what is estimated, how well, and how well it went.
#![warn(missing_docs)]

pub mod accumulate;
pub mod attention;
pub mod catalogue;
pub mod context;
pub mod error;
pub mod feature;
mod interrupt;
pub mod kernel;
pub mod linalg;
pub mod metrics;
pub mod model;
pub(crate) mod parameter;
pub mod persist;
pub mod plan;
pub mod preprocess;
pub mod projection;
pub mod random;
pub mod rows;
pub mod scalar;
pub mod solve;
pub mod special;
pub mod tune;
pub mod variance;
#[doc(hidden)]
pub mod words;

pub use context::Context;
pub use error::{Error, Result};
pub use model::{Model, load};
pub use num_complex::Complex;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
