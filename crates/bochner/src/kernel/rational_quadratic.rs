use super::{AnyKernel, Kernel};
use crate::error::{Result, check_positive};
use crate::parameter::Domain;

kernel_entry! {
    /// Rational quadratic kernel `(1 + |x − y|²/2αℓ²)^(−α)`: Gaussian kernels of all length scales at once.
    ///
    /// It is the mean of `exp(−s|x − y|²/2ℓ²)` over `s` from the gamma distribution of shape and rate `α`; the Gaussian kernel is
    /// its limit for large `α`.
    ///
    /// ```
    /// use bochner::kernel::{Kernel, RationalQuadratic};
    /// let k = RationalQuadratic::new(2.0, 1.0)?;
    /// assert_eq!(k.evaluate(&[0.0], &[2.0]), 0.25);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct RationalQuadratic {
        /// How alike the length scales are: infinity would be the Gaussian kernel.
        alpha: f64 = 1.0, Domain::POSITIVE, Kernel;
        /// Distance over which the kernel falls off.
        length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
    }
    kernel "rational_quadratic", "rational quadratic": "`(1 + |x - y|^2 / (2 alpha length_scale^2))^-alpha`.";
}

impl RationalQuadratic {
    /// The kernel of shape `alpha` and length scale `ℓ`.
    ///
    /// # Errors
    /// Parameters that are not positive.
    pub fn new(alpha: f64, length_scale: f64) -> Result<Self> {
        check_positive("alpha", alpha)?;
        check_positive("length_scale", length_scale)?;
        Ok(RationalQuadratic { alpha, length_scale })
    }

    #[inline(always)]
    fn of(&self, distance_sq: f64) -> f64 {
        let scaled = distance_sq / self.length_scale / self.length_scale;
        libm::exp(-self.alpha * libm::log1p(0.5 * scaled / self.alpha))
    }
}

impl Kernel for RationalQuadratic {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }

    values_of!(distance_sq);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Gaussian;

    #[test]
    fn large_shapes_tend_to_the_gaussian_kernel() {
        let (x, y) = ([0.3, -1.0], [1.1, 0.4]);
        let gaussian = Gaussian::new(0.8).unwrap().evaluate(&x, &y);
        for alpha in [1e3, 1e5, 1e7] {
            let found = RationalQuadratic::new(alpha, 0.8).unwrap().evaluate(&x, &y);
            assert!((found - gaussian).abs() < 2.0 / alpha, "{alpha}: {found} {gaussian}");
        }
        assert!(RationalQuadratic::new(0.0, 1.0).is_err() && RationalQuadratic::new(1.0, -1.0).is_err());
    }
}
