//! Closed-form variances: how far an estimate will be from its kernel, before any feature is drawn.
//!
//! Everything is a plain function of a pair's norms and inner products ([`PairStats`]) or of kernel values. With
//! `k̂ = Σ φ(x)ⱼ conj(φ(y)ⱼ)` the variance is `E|k̂ − k|²` and the pseudo-variance `E(k̂ − k)²`; the real part of a
//! complex estimate (CtR) has the mean of both. Sources: Wacker 2022, Thm 3.3.1, 3.5.2, 3.5.6, 3.5.9, C.3–C.7 for product
//! sketches and stacked or upsampled TensorSRHT; the forms for TensorSketch and tuple sampling are derived in the
//! documentation and confirmed by enumeration in the tests.

pub mod bounds;
mod fourier;
mod maclaurin;
mod moments;
mod operator;
mod orthogonal;
mod pair;
mod sketch;
mod stages;
mod tensor_sketch;

pub(crate) use fourier::at_multiples;
pub use fourier::{
    Form, Softmax, compressive, compressive_matrix, fourier, fourier_complex, fourier_matrix, independent_matrix,
    optical, optical_matrix, orthoprojected_dot, orthoprojected_norm, softmax, softmax_matrix,
    softmax_orthogonal_matrix,
};
pub use maclaurin::{Degree, maclaurin, random_maclaurin, random_maclaurin_geometric};
#[allow(deprecated)]
pub use moments::Moments;
pub use moments::{Variances, gaussian, powdiff, rademacher};
pub use operator::{operator, operator_bound, proposition_12};
pub(crate) use orthogonal::paired;
pub use orthogonal::{EqualLengths, MixedLengths, fourier_orthogonal, orthogonal_covariance, softmax_orthogonal};
pub use pair::{PairStats, map_pairs};
pub use sketch::{Kind, Sketch, Weights};
pub use stages::{PairMoments, Stage, mixed_product};
pub use tensor_sketch::{tensor_sketch, tensor_sketch_pseudo};

#[cfg(test)]
mod tests;
