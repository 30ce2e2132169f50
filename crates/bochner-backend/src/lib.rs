//! Generic code of rustfft and faer, compiled here for the number types bochner uses.
//!
//! A generic function is compiled wherever it is used with new types. Inside the core crate that would be every build of it
//! and of its tests: Fourier plans and the eigendecomposition are a third of its machine code. Nothing here decides
//! anything; `bochner::linalg` is the only user.
#![warn(missing_docs)]

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
use faer::{Conj, Mat, MatMut, Par};
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};
use std::sync::Arc;

/// Number types with planned Fourier transforms.
pub trait Transforms: FftNum {
    /// Both directions for real signals of length `len > 0`.
    fn plan_real(len: usize) -> (Arc<dyn RealToComplex<Self>>, Arc<dyn ComplexToReal<Self>>);
    /// Both directions for complex signals of length `len > 0`.
    fn plan_complex(len: usize) -> (Arc<dyn Fft<Self>>, Arc<dyn Fft<Self>>);
}

macro_rules! transforms {
    ($($t:ty),*) => {$(
        impl Transforms for $t {
            fn plan_real(len: usize) -> (Arc<dyn RealToComplex<Self>>, Arc<dyn ComplexToReal<Self>>) {
                let mut planner = RealFftPlanner::new();
                (planner.plan_fft_forward(len), planner.plan_fft_inverse(len))
            }

            fn plan_complex(len: usize) -> (Arc<dyn Fft<Self>>, Arc<dyn Fft<Self>>) {
                let mut planner = FftPlanner::new();
                (planner.plan_fft_forward(len), planner.plan_fft_inverse(len))
            }
        }
    )*};
}
transforms!(f32, f64);

/// Decomposes the symmetric matrix whose lower triangle stands in the column-major `square`; eigenvalues in rising order,
/// eigenvectors as columns. `false` if the iteration stalls. Bits follow `parallelism`, not the number of threads.
pub fn symmetric_eigen(square: &mut [f64], values: &mut [f64], vectors: &mut [f64], parallelism: usize) -> bool {
    let (n, par) = (values.len(), Par::rayon(parallelism));
    let scratch = self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, par, Default::default());
    let mut memory = MemBuffer::new(scratch);
    self_adjoint_evd(
        MatMut::from_column_major_slice_mut(square, n, n).as_ref(),
        DiagMut::from_slice_mut(values),
        Some(MatMut::from_column_major_slice_mut(vectors, n, n)),
        par,
        MemStack::new(&mut memory),
        Default::default(),
    )
    .is_ok()
}

/// Replaces the `count ≤ dim` columns of the column-major `columns` by orthonormal ones with the same spans of first
/// columns, on the calling thread; returns the diagonal of the triangular factor before its signs were made positive.
pub fn orthonormal_columns(columns: &mut [f64], count: usize, dim: usize) -> Vec<f64> {
    let mut a = MatMut::from_column_major_slice_mut(columns, dim, count);
    let block = recommended_block_size::<f64>(dim, count);
    let mut coefficients = Mat::zeros(block, count);
    let factor = qr_in_place_scratch::<f64>(dim, count, block, Par::Seq, Default::default());
    let apply = apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(dim, block, count);
    let mut memory = MemBuffer::new(factor.or(apply));
    qr_in_place(a.as_mut(), coefficients.as_mut(), Par::Seq, MemStack::new(&mut memory), Default::default());
    let diagonal: Vec<f64> = (0..count).map(|i| a[(i, i)]).collect();
    let mut q = Mat::zeros(dim, count);
    (0..count).for_each(|i| q[(i, i)] = if diagonal[i] < 0.0 { -1.0 } else { 1.0 });
    apply_block_householder_sequence_on_the_left_in_place_with_conj(
        a.as_ref(),
        coefficients.as_ref(),
        Conj::No,
        q.as_mut(),
        Par::Seq,
        MemStack::new(&mut memory),
    );
    a.copy_from(&q);
    diagonal
}
