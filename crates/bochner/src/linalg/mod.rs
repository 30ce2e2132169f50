//! The only door to faer and rustfft: tiles, products, factorisations, transforms.

pub mod hadamard;
mod pages;
mod sincos;
mod tile;
mod vectors;
mod workspace;

pub use pages::zeroed;
pub use sincos::{Factor, SinCos, cis, cos_offset, cos_sin};
mod cholesky;
mod eigen;
pub(crate) mod field;
mod lower;

pub use cholesky::Cholesky;
pub use eigen::Eigen;
pub use lower::Lower;
pub use tile::{Tile, TileMut};
pub use workspace::Workspace;

/// What the compiled kernels of this folder need to know about a number type.
///
/// Sealed by [`crate::scalar::Real`]; one implementation per type.
pub trait Kernels: Sized + SinCos + vectors::Packed {}
impl Kernels for f32 {}
impl Kernels for f64 {}
