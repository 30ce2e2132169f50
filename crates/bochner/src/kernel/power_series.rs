use super::{DotProductKernel, Kernel};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A finite power series in the inner product: `Σ aₙ⟨x, y⟩ⁿ` with `aₙ ≥ 0` (Schoenberg 1942: exactly these are kernels in
/// every dimension).
///
/// ```
/// use bochner::kernel::{Kernel, PowerSeries};
/// let k = PowerSeries::new(vec![1.0, 0.0, 0.5])?;
/// assert_eq!(k.evaluate(&[1.0, 1.0], &[1.0, 2.0]), 1.0 + 0.5 * 9.0);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parameters")]
pub struct PowerSeries {
    coefficients: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    coefficients: Vec<f64>,
}

impl TryFrom<Parameters> for PowerSeries {
    type Error = Error;
    fn try_from(p: Parameters) -> Result<Self> {
        PowerSeries::new(p.coefficients)
    }
}

impl PowerSeries {
    /// The series with `coefficients[n]` at degree `n`.
    ///
    /// # Errors
    /// Coefficients that are negative, not finite, or all zero.
    pub fn new(coefficients: Vec<f64>) -> Result<Self> {
        let expected = "non-negative finite numbers, at least one of them positive";
        if let Some(bad) = coefficients.iter().find(|a| !(a.is_finite() && **a >= 0.0)) {
            return Err(Error::parameter("coefficients", expected, bad));
        }
        if coefficients.iter().all(|&a| a == 0.0) {
            return Err(Error::parameter("coefficients", expected, format!("{} zeros", coefficients.len())));
        }
        Ok(PowerSeries { coefficients })
    }

    /// `a₀, a₁, …`.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    #[inline(always)]
    fn of(&self, dot: f64) -> f64 {
        self.coefficients.iter().rev().fold(0.0, |sum, a| sum * dot + a)
    }
}

impl Kernel for PowerSeries {
    values_of!(dot);
}

impl DotProductKernel for PowerSeries {
    fn coefficient(&self, degree: u32) -> f64 {
        self.coefficients.get(degree as usize).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Polynomial;

    #[test]
    fn a_polynomial_is_the_series_of_its_coefficients() {
        let polynomial = Polynomial::new(4, 0.5, 0.3).unwrap();
        let series = PowerSeries::new((0..=4).map(|n| polynomial.coefficient(n)).collect()).unwrap();
        let (x, y) = ([0.3, -1.2, 0.8], [1.0, 0.5, -0.4]);
        assert!((series.evaluate(&x, &y) - polynomial.evaluate(&x, &y)).abs() < 1e-14);
        assert_eq!(series.coefficient(9), 0.0);
    }

    #[test]
    fn series_that_are_no_kernels_are_refused() {
        for bad in [vec![], vec![0.0, 0.0], vec![1.0, -0.5], vec![f64::NAN], vec![f64::INFINITY]] {
            assert!(PowerSeries::new(bad).is_err());
        }
        assert!(serde_json::from_str::<PowerSeries>(r#"{"coefficients":[1.0,-1.0]}"#).is_err());
    }
}
