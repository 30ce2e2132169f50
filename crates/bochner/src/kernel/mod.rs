//! Exact kernels: what the features estimate.
//!
//! | kernel | of | features |
//! |---|---|---|
//! | [`Polynomial`] `(γ⟨x, y⟩ + ν)ᵖ` | inner product | product sketches, TensorSRHT, TensorSketch |
//! | [`PowerSeries`] `Σ aₙ⟨x, y⟩ⁿ` | inner product | Maclaurin |
//! | [`Exponential`] `exp(⟨x, y⟩/ℓ²)` | inner product | Maclaurin, positive |
//! | [`Gaussian`] `exp(−|x−y|²/2ℓ²)` | distance | Fourier, Maclaurin |
//! | [`Matern`], [`Laplacian`] | distance | Fourier |
//! | [`Spherical`] `(1 − |x−y|²/A²)ᵖ` on unit rows | distance | spherical |
//! | [`Optical`] `E |u·x|ᵐ|u·y|ᵐ` | inner product and norms | optical |
//! | [`LowOrder`], means over subsets of columns | differences | Fourier |
//! | [`Compressive`] `E exp(−|P(x−y)|²/2ℓ²)` | distance | compressive |
//!
//! [`OperatorKernel`] has matrices for values: several outputs that are one function.
//!
//! A kernel with parameters inside is a value, [`AnyKernel`] is one of them; [`kernel_matrix`] evaluates it on all pairs of two
//! sets of rows.

/// Defines a scalar kernel by its parameters, in the order of `new`: the struct, how files are read, defaults, equality and
/// access; and its entry in the catalogue, with name, title and a sentence. `besides` lists what follows from the parameters.
macro_rules! kernel_entry {
    (
        $(#[$meta:meta])*
        pub struct $kernel:ident {
            $($(#[doc = $sentence:literal])+ $field:ident: $type:ty = $default:expr, $domain:expr, $purpose:ident;)*
        }
        kernel $name:literal, $title:literal: $about:literal;
        $(besides { $($(#[$extra:meta])* $besides:ident: $type_besides:ty;)* })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "Parameters")]
        pub struct $kernel {
            $($field: $type,)*
            $($($(#[$extra])* #[serde(skip)] $besides: $type_besides,)*)?
        }

        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Parameters {
            $($field: $type,)*
        }

        impl TryFrom<Parameters> for $kernel {
            type Error = $crate::Error;
            fn try_from(p: Parameters) -> $crate::Result<Self> {
                $kernel::new($(p.$field),*)
            }
        }

        impl Default for $kernel {
            fn default() -> Self {
                $kernel::new($($default),*).expect("defaults are in their domains")
            }
        }

        impl PartialEq for $kernel {
            fn eq(&self, other: &Self) -> bool {
                ($(self.$field,)*) == ($(other.$field,)*)
            }
        }

        impl $kernel {
            $($(#[doc = $sentence])+
            pub fn $field(&self) -> $type {
                self.$field
            })*

            /// What every door knows of this kernel.
            pub const ENTRY: $crate::parameter::Entry = $crate::parameter::Entry::new(
                $crate::parameter::Sort::Kernel,
                $name,
                $title,
                $about,
                $crate::parameter::parameters! {
                    $($(#[doc = $sentence])+ $field: $type = $default, $domain, $purpose;)*
                },
            );
        }
    };
}

/// The values of a kernel that is a function `of` the inner product or of the squared distance.
macro_rules! values_of {
    (dot) => {
        fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
            self.of($crate::kernel::dot(x, y))
        }

        fn of_products(&self, dot: f64, _x_norm_sq: f64, _y_norm_sq: f64) -> Option<f64> {
            Some(self.of(dot))
        }

        fn map_products(&self, dots: &mut [f64], _x_norm_sq: f64, _y_norms_sq: &[f64]) -> bool {
            dots.iter_mut().for_each(|dot| *dot = self.of(*dot));
            true
        }
    };
    (distance_sq) => {
        fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
            self.of($crate::kernel::distance_sq(x, y))
        }

        fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
            Some(self.of(distance_sq))
        }
    };
}

/// The list of all scalar kernels.
macro_rules! kernels {
    ($then:ident) => {
        $then!(Gaussian, Laplacian, Matern, Exponential, Polynomial, Spherical, Optical, Compressive, LowOrder);
    };
}

mod any;
mod compressive;
mod exponential;
mod gaussian;
mod laplacian;
mod low_order;
mod matern;
mod matrix;
mod normalized;
mod operator;
mod optical;
mod outputs;
mod polynomial;
mod power_series;
pub(crate) mod products;
mod scaled;
mod spherical;

pub use any::AnyKernel;
#[doc(hidden)] // its name up to version 0.1
pub use any::AnyKernel as Any;
pub use compressive::{Compression, Compressive};
pub use exponential::Exponential;
pub use gaussian::Gaussian;
pub use laplacian::Laplacian;
pub use low_order::LowOrder;
pub(crate) use low_order::LowOrderLaplacian;
pub use matern::Matern;
pub use matrix::{kernel_matrix, kernel_matrix_into};
pub use normalized::{Normalized, normalize};
pub(crate) use operator::FieldAt;
pub use operator::{FieldKernel, OperatorKernel};
pub use optical::Optical;
pub use outputs::OutputMatrix;
pub use polynomial::Polynomial;
pub use power_series::PowerSeries;
pub use scaled::Scaled;
pub use spherical::Spherical;

use crate::random::Stream;
use crate::special::ln_gamma;
use std::fmt::Debug;

/// A kernel at unit scale or with its parameters inside.
pub trait Kernel: Debug + Send + Sync {
    /// `k(x, y)`; both rows have the same length.
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64;

    /// The kernel as files write it, which kernels of the library know; exact models with one's own cannot be saved.
    fn description(&self) -> Option<AnyKernel> {
        None
    }

    /// `k` from `⟨x, y⟩`, `|x|²` and `|y|²`, where these determine it: whole matrices then cost one matrix product.
    fn of_products(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> Option<f64> {
        self.of_distance_sq((x_norm_sq + y_norm_sq - 2.0 * dot).max(0.0))
    }

    /// `k` from `|x − y|²`, where it determines it: matrices then cost one matrix product, and pairs so close that
    /// the product would cancel are measured again, coordinate by coordinate.
    fn of_distance_sq(&self, _distance_sq: f64) -> Option<f64> {
        None
    }

    /// Replaces every `⟨x, yⱼ⟩` by `k(x, yⱼ)`; false if inner products and norms do not determine it.
    ///
    /// One virtual call per block instead of one per entry.
    fn map_products(&self, dots: &mut [f64], x_norm_sq: f64, y_norms_sq: &[f64]) -> bool {
        for (dot, &y_norm_sq) in dots.iter_mut().zip(y_norms_sq) {
            match self.of_products(*dot, x_norm_sq, y_norm_sq) {
                Some(value) => *dot = value,
                None => return false,
            }
        }
        true
    }

    /// Replaces every `|x − yⱼ|²` by `k(x, yⱼ)`; false if the distance does not determine it.
    fn map_distances_sq(&self, distances_sq: &mut [f64]) -> bool {
        for entry in distances_sq {
            match self.of_distance_sq(*entry) {
                Some(value) => *entry = value,
                None => return false,
            }
        }
        true
    }
}

/// A function of `|x − y|` whose spectrum is a scale mixture of normals: frequencies are `ω = r w/ℓ` with a standard
/// normal direction `w` and a random radius `r`.
pub trait SpectralKernel: Kernel {
    /// `ℓ`.
    fn length_scale(&self) -> f64;

    /// Draws a radius `r` at length scale 1: 1 for the Gaussian kernel, `√(2ν/χ²)` with `2ν` degrees of freedom for
    /// Matérn kernels.
    fn frequency_scale(&self, draw: &mut Stream) -> f64;

    /// `ln p(ω)` at a frequency of length `norm` in `dim` dimensions: `k(τ) = ∫ p(ω) exp(iω·τ) dω`.
    fn ln_spectral_density(&self, norm: f64, dim: usize) -> f64;

    /// `ln` of the density of `|ω|`: the spectral density times the surface `2π^(d/2)/Γ(d/2) |ω|^(d−1)` of a sphere.
    fn ln_radial_density(&self, norm: f64, dim: usize) -> f64 {
        let d = dim as f64;
        let surface = std::f64::consts::LN_2 + 0.5 * d * std::f64::consts::PI.ln() - ln_gamma(0.5 * d);
        let shell = if dim == 1 { 0.0 } else { (d - 1.0) * libm::log(norm) };
        self.ln_spectral_density(norm, dim) + surface + shell
    }

    /// `E|ω|²` in `dim` dimensions, which uniform error bounds depend on; infinite for rough kernels.
    fn spectral_moment(&self, dim: usize) -> f64;
}

/// `k(x, y) = Σ aₙ ⟨x, y⟩ⁿ` with `aₙ ≥ 0`.
pub trait DotProductKernel: Kernel {
    /// The Maclaurin coefficient `aₙ`.
    fn coefficient(&self, degree: u32) -> f64;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<K: Kernel + ?Sized> Kernel for $pointer {
            fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
                (**self).evaluate(x, y)
            }
            fn description(&self) -> Option<AnyKernel> {
                (**self).description()
            }
            fn of_products(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> Option<f64> {
                (**self).of_products(dot, x_norm_sq, y_norm_sq)
            }
            fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
                (**self).of_distance_sq(distance_sq)
            }
            fn map_products(&self, dots: &mut [f64], x_norm_sq: f64, y_norms_sq: &[f64]) -> bool {
                (**self).map_products(dots, x_norm_sq, y_norms_sq)
            }
            fn map_distances_sq(&self, distances_sq: &mut [f64]) -> bool {
                (**self).map_distances_sq(distances_sq)
            }
        }
    )*};
}
forward!(std::sync::Arc<K>, Box<K>);

/// `⟨x, y⟩`, summed in four strands so that rounding and time both shrink.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    sum_of(x, y, |a, b| a * b)
}

/// `|x − y|²`.
pub(crate) fn distance_sq(x: &[f64], y: &[f64]) -> f64 {
    sum_of(x, y, |a, b| (a - b) * (a - b))
}

#[inline(always)]
fn sum_of(x: &[f64], y: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0; 4];
    let (xs, ys) = (x.chunks_exact(4), y.chunks_exact(4));
    let tail: f64 = xs.remainder().iter().zip(ys.remainder()).map(|(&a, &b)| term(a, b)).sum();
    for (a, b) in xs.zip(ys) {
        for i in 0..4 {
            sums[i] += term(a[i], b[i]);
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail
}

/// `baseᵉ` by repeated squaring; `0⁰ = 1`.
pub(crate) fn powu(mut base: f64, mut exponent: u32) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= base;
        }
        exponent >>= 1;
        if exponent > 0 {
            base *= base;
        }
    }
    power
}

#[cfg(test)]
mod tests;
