use super::{AnyKernel, Kernel, dot};
use crate::error::{Error, Result};
use crate::parameter::Domain;
use std::f64::consts::PI;

kernel_entry! {
    /// Arc-cosine kernel `2 E (w·x)ⁿ₊ (w·y)ⁿ₊` over normal `w`, with `u₊` a step for `n = 0`: networks of one infinite layer.
    ///
    /// `|x|ⁿ|y|ⁿ Jₙ(θ)/π` at the angle `θ` between the rows, with `J₀ = π − θ`, `J₁ = sin θ + (π − θ) cos θ` and
    /// `J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ)` (Cho and Saul 2009). A zero row is at a right angle to every other.
    ///
    /// ```
    /// use bochner::kernel::{ArcCosine, Kernel};
    /// let k = ArcCosine::new(1)?;
    /// assert!((k.evaluate(&[3.0, 4.0], &[3.0, 4.0]) - 25.0).abs() < 1e-12);
    /// assert!((k.evaluate(&[1.0, 0.0], &[0.0, 1.0]) - 1.0 / std::f64::consts::PI).abs() < 1e-15);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct ArcCosine {
        /// Power of the rectified projections: 0 is a step, 1 the rectifier of neural networks.
        order: u8 = 1, Domain::Whole(0, 2), Kernel;
    }
    kernel "arc_cosine", "arc-cosine": "Mean product of rectified projections of both rows on a normal direction.";
}

impl ArcCosine {
    /// The kernel of order 0, 1 or 2.
    ///
    /// # Errors
    /// Any other order.
    pub fn new(order: u8) -> Result<Self> {
        if order > 2 {
            return Err(Error::parameter("order", "0, 1 or 2", order));
        }
        Ok(ArcCosine { order })
    }

    fn of(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> f64 {
        let norms = x_norm_sq.sqrt() * y_norm_sq.sqrt();
        let cos = if norms > 0.0 { (dot / norms).clamp(-1.0, 1.0) } else { 0.0 };
        let (sin, rest) = ((1.0 - cos * cos).sqrt(), PI - libm::acos(cos));
        match self.order {
            0 => rest / PI,
            1 => norms * (sin + rest * cos) / PI,
            _ => norms * norms * (3.0 * sin * cos + rest * (1.0 + 2.0 * cos * cos)) / PI,
        }
    }
}

impl Kernel for ArcCosine {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }

    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        self.of(dot(x, y), dot(x, x), dot(y, y))
    }

    fn of_products(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> Option<f64> {
        Some(self.of(dot, x_norm_sq, y_norm_sq))
    }
}
