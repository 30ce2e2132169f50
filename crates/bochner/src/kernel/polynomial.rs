use super::{AnyKernel, DotProductKernel, Kernel, powu};
use crate::error::{Result, check_non_negative};
use crate::parameter::Domain;

kernel_entry! {
    /// Polynomial kernel `(γ⟨x, y⟩ + ν)ᵖ` with `γ > 0`, `ν ≥ 0`.
    ///
    /// It is the homogeneous kernel of degree `p` on `(√γ x, √ν)`, which is how sketches see it. Degree 0 is the constant 1.
    ///
    /// ```
    /// use bochner::kernel::{Kernel, Polynomial};
    /// let k = Polynomial::new(3, 0.5, 1.0)?;
    /// assert_eq!(k.evaluate(&[1.0, 2.0], &[3.0, -0.5]), 8.0);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct Polynomial {
        /// Exponent.
        degree: u32 = 2, Domain::Whole(0, u32::MAX as u64), Kernel;
        /// Factor of the inner product.
        gamma: f64 = 1.0, Domain::POSITIVE, Kernel;
        /// Constant inside the power.
        coef0: f64 = 0.0, Domain::NON_NEGATIVE, Kernel;
    }
    kernel "polynomial", "polynomial": "`(gamma x.y + coef0)^degree`.";
}

impl Polynomial {
    /// `(gamma ⟨x, y⟩ + coef0)^degree`.
    ///
    /// # Errors
    /// `gamma` not positive or `coef0` negative.
    pub fn new(degree: u32, gamma: f64, coef0: f64) -> Result<Self> {
        crate::error::check_positive("gamma", gamma)?;
        check_non_negative("coef0", coef0)?;
        Ok(Polynomial { degree, gamma, coef0 })
    }

    /// The homogeneous kernel `⟨x, y⟩ᵖ`.
    pub const fn homogeneous(degree: u32) -> Self {
        Polynomial { degree, gamma: 1.0, coef0: 0.0 }
    }

    #[inline(always)]
    fn of(&self, dot: f64) -> f64 {
        powu(self.gamma * dot + self.coef0, self.degree)
    }
}

impl Kernel for Polynomial {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }

    values_of!(dot);
}

impl DotProductKernel for Polynomial {
    /// `C(p, n) γⁿ νᵖ⁻ⁿ`, zero above the degree.
    fn coefficient(&self, degree: u32) -> f64 {
        if degree > self.degree {
            return 0.0;
        }
        let binomial =
            (0..degree.min(self.degree - degree)).fold(1.0, |c, i| c * f64::from(self.degree - i) / f64::from(i + 1));
        binomial * powu(self.gamma, degree) * powu(self.coef0, self.degree - degree)
    }
}
