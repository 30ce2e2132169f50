use super::{AnyKernel, Kernel, Matern, sum_of};
use crate::error::{Error, Result, check_positive};
use crate::parameter::Domain;

kernel_entry! {
    /// Laplacian kernel `exp(−|x − y|/ℓ)` of the Euclidean norm (2) or of the sum of absolute values (1).
    ///
    /// ```
    /// use bochner::kernel::{Kernel, Laplacian};
    /// let (x, y) = ([0.0, 0.0], [3.0, 4.0]);
    /// assert!((Laplacian::new(1.0, 2)?.evaluate(&x, &y) - (-5f64).exp()).abs() < 1e-15);
    /// assert!((Laplacian::new(1.0, 1)?.evaluate(&x, &y) - (-7f64).exp()).abs() < 1e-15);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct Laplacian {
        /// Distance over which the kernel falls off.
        length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
        /// Which norm: 2 is the Euclidean one, 1 the sum of absolute values.
        norm: u8 = 2, Domain::Whole(1, 2), Kernel;
    }
    kernel "laplacian", "Laplacian": "`exp(-|x - y| / length_scale)`.";
}

impl Laplacian {
    /// `exp(−|x − y|/ℓ)` with `ℓ = length_scale` and norm 1 or 2.
    ///
    /// # Errors
    /// A length scale that is not positive, or another norm.
    pub fn new(length_scale: f64, norm: u8) -> Result<Self> {
        check_positive("length_scale", length_scale)?;
        if !(1..=2).contains(&norm) {
            return Err(Error::parameter("norm", "1 or 2", norm));
        }
        Ok(Laplacian { length_scale, norm })
    }

    /// The Matérn kernel of smoothness 1/2 it is for norm 2; with norm 1 frequencies are independent Cauchy variables per
    /// coordinate, which no scale mixture gives.
    pub fn matern(&self) -> Option<Matern> {
        (self.norm == 2).then(|| Matern::new(0.5, self.length_scale).expect("checked on construction"))
    }
}

impl Kernel for Laplacian {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        let distance = match self.norm {
            1 => sum_of(x, y, |a, b| (a - b).abs()),
            _ => super::distance_sq(x, y).sqrt(),
        };
        libm::exp(-distance / self.length_scale)
    }

    fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
        (self.norm == 2).then(|| libm::exp(-distance_sq.sqrt() / self.length_scale))
    }
}
