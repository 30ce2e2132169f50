use super::{AnyKernel, DotProductKernel, Kernel};
use crate::error::{Result, check_positive};
use crate::parameter::Domain;

kernel_entry! {
    /// Exponential kernel `exp(⟨x, y⟩/ℓ²)`; with `ℓ² = √d` it is the attention kernel of queries and keys.
    ///
    /// ```
    /// use bochner::kernel::{Exponential, Kernel};
    /// let k = Exponential::new(2.0)?;
    /// assert!((k.evaluate(&[1.0, 3.0], &[1.0, 1.0]) - 1f64.exp()).abs() < 1e-14);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct Exponential {
        /// What rows are divided by.
        length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
    }
    kernel "exponential", "exponential": "`exp(x.y / length_scale^2)`.";
}

impl Exponential {
    /// `exp(⟨x, y⟩/ℓ²)` with `ℓ = length_scale`.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn new(length_scale: f64) -> Result<Self> {
        check_positive("length_scale", length_scale)?;
        Ok(Exponential { length_scale })
    }

    /// The kernel `exp(⟨q, k⟩/√d)` of softmax attention over rows of length `dim`.
    ///
    /// # Errors
    /// Rows of length 0.
    pub fn attention(dim: usize) -> Result<Self> {
        crate::error::check_count("dim", dim)?;
        Exponential::new(libm::sqrt(libm::sqrt(dim as f64)))
    }

    #[inline(always)]
    fn of(&self, dot: f64) -> f64 {
        libm::exp(dot / self.length_scale / self.length_scale)
    }
}

impl Kernel for Exponential {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }

    values_of!(dot);
}

impl DotProductKernel for Exponential {
    /// `1/(n! ℓ²ⁿ)`, by the ratios `1/((n+1)ℓ²)`.
    fn coefficient(&self, degree: u32) -> f64 {
        let inverse = 1.0 / self.length_scale / self.length_scale;
        (1..=degree).fold(1.0, |a, n| a * inverse / f64::from(n))
    }
}
