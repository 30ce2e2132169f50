//! The only door to faer and rustfft: tiles, products, factorisations, transforms.

mod cholesky;
mod convolution;
mod eigen;
mod exp;
mod fft;
pub(crate) mod field;
pub mod gemm;
pub mod hadamard;
mod lower;
mod nnls;
mod pages;
mod power;
mod qr;
mod sincos;
mod tile;
pub(crate) mod vectors;
mod workspace;

pub use cholesky::{Cholesky, Indefinite};
pub use convolution::{Convolution, multiply_spectra};
pub use exp::{Exp, exp, exp_in_place, maximum};
pub use fft::{ComplexFft, RealFft, Transforms};
pub(crate) use pages::zeroed_bytes;
pub use pages::{zeroed, zeroed_matrix};
pub(crate) use power::Moduli;
pub use power::Power;
pub use sincos::{Factor, SinCos, cis, cos_offset, cos_sin, sin_offset};

pub use eigen::Eigen;
pub use lower::Lower;
pub(crate) use nnls::least_squares;
pub use nnls::nnls;
pub use qr::orthonormal_rows;

pub(crate) use tile::first_not_finite;
pub use tile::{Tile, TileMut};
pub use workspace::Workspace;

/// What the compiled kernels of this folder need to know about a number type.
///
/// Sealed by [`crate::scalar::Real`].
pub trait Kernels: Sized + Exp + SinCos + Transforms + vectors::Packed {
    /// Columns of a panel of the right factor of a product: two vectors of 32 bytes.
    const PANEL: usize = 2 * Self::WIDTH;
}
impl Kernels for f32 {}
impl Kernels for f64 {}
