use super::{AnyKernel, Kernel, Polynomial, powu};
use crate::error::{Error, Result};
use crate::parameter::Domain;

kernel_entry! {
    /// Polynomial kernel on the unit sphere, `(1 − |x − y|²/A²)ᵖ` with `A ≥ √2` (Pennington, Yu and Kumar 2015).
    ///
    /// On unit rows it equals `((1 − 2/A²) + (2/A²)⟨x, y⟩)ᵖ`; `A = √2` is the homogeneous kernel.
    ///
    /// ```
    /// use bochner::kernel::{Kernel, Spherical};
    /// let k = Spherical::new(3, 2.0)?;
    /// let (x, y) = ([1.0, 0.0], [0.6, 0.8]);
    /// assert!((k.evaluate(&x, &y) - k.polynomial().evaluate(&x, &y)).abs() < 1e-15);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct Spherical {
        /// Exponent.
        degree: u32 = 3, Domain::Whole(0, u32::MAX as u64), Kernel;
        /// Width, at least the root of 2.
        a: f64 = 2.0, Domain::Real(std::f64::consts::SQRT_2, f64::INFINITY), Kernel;
    }
    kernel "spherical", "spherical": "`(1 - |x - y|^2/a^2)^degree` of rows of length one.";
}

impl Spherical {
    /// `(1 − |x − y|²/a²)^degree`.
    ///
    /// # Errors
    /// `a` below `√2`, where the kernel is no longer positive definite.
    pub fn new(degree: u32, a: f64) -> Result<Self> {
        if !(a >= std::f64::consts::SQRT_2 && a.is_finite()) {
            return Err(Error::parameter("a", "a finite number of at least √2", a));
        }
        Ok(Spherical { degree, a })
    }

    /// The polynomial kernel it is on unit rows.
    pub fn polynomial(&self) -> Polynomial {
        let gamma = 2.0 / (self.a * self.a);
        Polynomial::new(self.degree, gamma, (1.0 - gamma).max(0.0)).expect("a ≥ √2 gives 0 < gamma ≤ 1")
    }

    #[inline(always)]
    fn of(&self, distance_sq: f64) -> f64 {
        powu(1.0 - distance_sq / (self.a * self.a), self.degree)
    }
}

impl Kernel for Spherical {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }

    values_of!(distance_sq);
}
