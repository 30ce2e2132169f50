use super::Kernel;
use crate::error::{Result, check_positive};
use crate::preprocess::LengthScale;
use std::sync::Arc;

/// A kernel of rows with a length scale per input: `k(x/ℓ, y/ℓ)`, divided coordinate by coordinate.
///
/// ```
/// use bochner::kernel::{Gaussian, Kernel, Scaled};
/// let k = Scaled::new(Gaussian::new(1.0)?, &[1.0, 10.0])?;
/// assert_eq!(k.evaluate(&[0.0, 0.0], &[1.0, 10.0]), (-1f64).exp());
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scaled<K> {
    kernel: K,
    length_scales: Vec<f64>,
}

impl<K: Kernel> Scaled<K> {
    /// `kernel` of rows divided by `length_scales`.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn new(kernel: K, length_scales: &[f64]) -> Result<Self> {
        length_scales.iter().try_for_each(|&scale| check_positive("length_scale", scale))?;
        Ok(Scaled { kernel, length_scales: length_scales.to_vec() })
    }
}

impl Scaled<Arc<dyn Kernel>> {
    /// The kernel that `at` makes of a length scale, or with one for each input.
    pub(crate) fn by(
        length_scale: &LengthScale,
        at: impl Fn(f64) -> Result<Arc<dyn Kernel>>,
    ) -> Result<Arc<dyn Kernel>> {
        match length_scale {
            LengthScale::Same(scale) => at(*scale),
            LengthScale::PerInput(scales) => Ok(Arc::new(Scaled::new(at(1.0)?, scales)?)),
            LengthScale::Median => length_scale.check(0).and_then(|()| at(1.0)),
        }
    }
}

impl<K: Kernel> Kernel for Scaled<K> {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        let differences = || x.iter().zip(y).zip(&self.length_scales).map(|((a, b), scale)| (a - b) / scale);
        let distance_sq = differences().map(|d| d * d).sum();
        self.kernel.of_distance_sq(distance_sq).unwrap_or_else(|| {
            let divided =
                |row: &[f64]| -> Vec<f64> { row.iter().zip(&self.length_scales).map(|(v, s)| v / s).collect() };
            self.kernel.evaluate(&divided(x), &divided(y))
        })
    }
}
