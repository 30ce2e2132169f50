use super::{AnyKernel, Kernel, SpectralKernel};
use crate::error::{Result, check_positive};
use crate::parameter::Domain;
use crate::random::Stream;

kernel_entry! {
    /// Gaussian kernel `exp(−|x − y|²/2ℓ²)`.
    ///
    /// ```
    /// use bochner::kernel::{Gaussian, Kernel};
    /// let k = Gaussian::new(2.0)?;
    /// assert!((k.evaluate(&[1.0, 3.0], &[1.0, 1.0]) - (-0.5f64).exp()).abs() < 1e-15);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct Gaussian {
        /// Distance over which the kernel falls off.
        length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
    }
    kernel "gaussian", "Gaussian": "`exp(-|x - y|^2 / (2 length_scale^2))`.";
}

impl Gaussian {
    /// `exp(−|x − y|²/2ℓ²)` with `ℓ = length_scale`.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn new(length_scale: f64) -> Result<Self> {
        check_positive("length_scale", length_scale)?;
        Ok(Gaussian { length_scale })
    }

    #[inline(always)]
    fn of(&self, distance_sq: f64) -> f64 {
        // Divided twice: ℓ² may underflow or overflow where the quotient does not.
        libm::exp(-0.5 * (distance_sq / self.length_scale / self.length_scale))
    }
}

impl Kernel for Gaussian {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }

    values_of!(distance_sq);
}

impl SpectralKernel for Gaussian {
    fn length_scale(&self) -> f64 {
        self.length_scale
    }

    fn frequency_scale(&self, _draw: &mut Stream) -> f64 {
        1.0
    }

    /// `d/2 · ln(ℓ²/2π) − ℓ²|ω|²/2`.
    fn ln_spectral_density(&self, norm: f64, dim: usize) -> f64 {
        let scaled = self.length_scale * norm;
        dim as f64 * libm::log(self.length_scale / std::f64::consts::TAU.sqrt()) - 0.5 * scaled * scaled
    }

    fn spectral_moment(&self, dim: usize) -> f64 {
        dim as f64 / (self.length_scale * self.length_scale)
    }
}
