//! Kernel methods at the cost of linear models.
#![warn(missing_docs)]

pub mod accumulate;
pub mod error;
pub mod feature;
pub mod kernel;
pub mod linalg;
pub mod metrics;
pub mod model;
pub mod persist;
pub mod preprocess;
pub mod projection;
pub mod random;
pub mod rows;
pub mod scalar;
pub mod solve;
pub mod special;
pub mod variance;

pub use error::{Error, Result};
pub use num_complex::Complex;
