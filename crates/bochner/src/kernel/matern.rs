use super::{AnyKernel, Kernel, SpectralKernel, distance_sq};
use crate::error::{Result, check_positive};
use crate::parameter::Domain;
use crate::random::Stream;
use crate::special::{Table, ln_gamma, matern};
use std::sync::{Arc, OnceLock};

kernel_entry! {
    /// Matérn kernel `2^(1−ν)/Γ(ν) z^ν K_ν(z)` with `z = √(2ν)|x − y|/ℓ`.
    ///
    /// `ν = 1/2` is the Laplacian kernel of the Euclidean norm, `ν = 3/2` gives `(1+z)e⁻ᶻ`, `ν = 5/2` gives `(1+z+z²/3)e⁻ᶻ`;
    /// the Gaussian kernel is the limit of large `ν`. Its spectrum is a multivariate t distribution with `2ν` degrees of
    /// freedom.
    ///
    /// ```
    /// use bochner::kernel::{Kernel, Matern};
    /// let k = Matern::new(1.5, 1.0)?;
    /// let z = 3f64.sqrt() * 2.0;
    /// assert!((k.evaluate(&[0.0], &[2.0]) - (1.0 + z) * (-z).exp()).abs() < 1e-16);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct Matern {
        /// Smoothness: 0.5 is the Laplacian kernel, infinity would be the Gaussian one.
        nu: f64 = 1.5, Domain::POSITIVE, Kernel;
        /// Distance over which the kernel falls off.
        length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
    }
    kernel "matern", "Matern": "Smoothness between that of the Laplacian and the Gaussian kernel, set by nu.";
    besides {
        table: Arc<OnceLock<Table>>;
    }
}

impl Matern {
    /// The kernel of smoothness `nu` and length scale `ℓ`.
    ///
    /// # Errors
    /// Parameters that are not positive.
    pub fn new(nu: f64, length_scale: f64) -> Result<Self> {
        check_positive("nu", nu)?;
        check_positive("length_scale", length_scale)?;
        Ok(Matern { nu, length_scale, table: Arc::default() })
    }

    #[inline(always)]
    fn argument(&self, distance_sq: f64) -> f64 {
        (2.0 * self.nu).sqrt() * (distance_sq.sqrt() / self.length_scale)
    }
}

impl Kernel for Matern {
    fn description(&self) -> Option<AnyKernel> {
        Some(self.clone().into())
    }
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        matern(self.nu, self.argument(distance_sq(x, y)))
    }

    fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
        Some(matern(self.nu, self.argument(distance_sq)))
    }

    fn map_distances_sq(&self, distances_sq: &mut [f64]) -> bool {
        if (self.nu - 0.5).fract() == 0.0 && self.nu < 21.0 {
            for entry in distances_sq {
                *entry = matern(self.nu, self.argument(*entry));
            }
            return true;
        }
        // The integral costs about a microsecond. Its logarithm is smooth in ln z, whatever z is raised to; beyond
        // z = e⁷ the value is 0.
        let table = self.table.get_or_init(|| Table::new(-36.0, 0.5, 86));
        for entry in distances_sq {
            let z = self.argument(*entry);
            *entry = if z > 0.0 {
                libm::exp(table.value(libm::log(z), |u| libm::log(matern(self.nu, libm::exp(u)))))
            } else {
                1.0
            };
        }
        true
    }
}

impl SpectralKernel for Matern {
    fn length_scale(&self) -> f64 {
        self.length_scale
    }

    fn frequency_scale(&self, draw: &mut Stream) -> f64 {
        // Very rough kernels draw chi-squares that underflow; any radius this large makes the phase uniform.
        (2.0 * self.nu / draw.chi_square(2.0 * self.nu)).sqrt().min(1e100)
    }

    /// The multivariate t law with `2ν` degrees of freedom:
    /// `ln Γ(ν+d/2)/Γ(ν) + d/2 · ln(ℓ²/2πν) − (ν+d/2) ln(1 + ℓ²|ω|²/2ν)`.
    fn ln_spectral_density(&self, norm: f64, dim: usize) -> f64 {
        let (half, scaled) = (0.5 * dim as f64, self.length_scale * norm);
        let scale = libm::log(self.length_scale * self.length_scale / (std::f64::consts::TAU * self.nu));
        let tail = libm::log1p(scaled * scaled / (2.0 * self.nu));
        ln_gamma(self.nu + half) - ln_gamma(self.nu) + half * scale - (self.nu + half) * tail
    }

    /// `dν/((ν−1)ℓ²)`, infinite for `ν ≤ 1`.
    fn spectral_moment(&self, dim: usize) -> f64 {
        let gaussian = dim as f64 / (self.length_scale * self.length_scale);
        if self.nu > 1.0 { gaussian * self.nu / (self.nu - 1.0) } else { f64::INFINITY }
    }
}
