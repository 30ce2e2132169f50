use super::Kernel;
use crate::error::{Result, check_positive};
use crate::preprocess::LengthScale;
use std::sync::Arc;

/// A kernel of rows with a length scale per input, `k(x/ℓ, y/ℓ)`, divided coordinate by coordinate, or with a linear metric,
/// `k(Lx, Ly)`.
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
    length_scale: LengthScale,
}

impl<K: Kernel> Scaled<K> {
    /// `kernel` of rows divided by `length_scales`.
    ///
    /// # Errors
    /// A length scale that is not positive.
    pub fn new(kernel: K, length_scales: &[f64]) -> Result<Self> {
        length_scales.iter().try_for_each(|&scale| check_positive("length_scale", scale))?;
        Ok(Scaled { kernel, length_scale: LengthScale::PerInput(length_scales.to_vec()) })
    }

    /// `kernel` of rows times the metric, a matrix row by row.
    ///
    /// # Errors
    /// A matrix that is not square, or of numbers that are not finite.
    pub fn with_metric(kernel: K, metric: &[Vec<f64>]) -> Result<Self> {
        let length_scale = LengthScale::Metric(metric.to_vec());
        length_scale.check(metric.len())?;
        Ok(Scaled { kernel, length_scale })
    }

    /// A row at unit scale.
    fn divided(&self, row: impl Fn(usize) -> f64, len: usize) -> Vec<f64> {
        match &self.length_scale {
            LengthScale::PerInput(scales) => scales.iter().take(len).enumerate().map(|(j, s)| row(j) / s).collect(),
            LengthScale::Metric(matrix) => {
                matrix.iter().map(|l| l.iter().take(len).enumerate().map(|(j, l)| row(j) * l).sum()).collect()
            }
            _ => (0..len).map(row).collect(),
        }
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
            LengthScale::Metric(matrix) => Ok(Arc::new(Scaled::with_metric(at(1.0)?, matrix)?)),
            LengthScale::Median => length_scale.check(0).and_then(|()| at(1.0)),
        }
    }
}

impl<K: Kernel> Kernel for Scaled<K> {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        let d = x.len().min(y.len());
        let distance_sq = match &self.length_scale {
            LengthScale::PerInput(scales) => {
                x.iter().zip(y).zip(scales).map(|((a, b), scale)| (a - b) / scale).map(|d| d * d).sum()
            }
            _ => self.divided(|j| x[j] - y[j], d).into_iter().map(|d| d * d).sum(),
        };
        self.kernel
            .of_distance_sq(distance_sq)
            .unwrap_or_else(|| self.kernel.evaluate(&self.divided(|j| x[j], d), &self.divided(|j| y[j], d)))
    }
}
