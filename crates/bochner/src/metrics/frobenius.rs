use crate::error::{Result, check_dim};
use crate::scalar::{Real, Scalar};
use ndarray::ArrayView2;

/// `‖K − K̂‖_F / ‖K‖_F`, gathered block by block.
///
/// A complex estimate counts with its real part, which is what complex-to-real features estimate.
///
/// ```
/// use bochner::metrics::FrobeniusError;
/// use ndarray::array;
/// let mut error = FrobeniusError::default();
/// error.add(array![[3.0, 0.0]].view(), array![[3.0, 1.0]].view())?;
/// error.add(array![[0.0, 4.0]].view(), array![[2.0, 2.0]].view())?;
/// assert_eq!(error.value(), 3.0 / 5.0);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FrobeniusError {
    error_sq: f64,
    norm_sq: f64,
}

impl FrobeniusError {
    /// Adds a block of exact entries and their estimates.
    ///
    /// # Errors
    /// Blocks of different shapes.
    pub fn add<R: Real, S: Scalar>(&mut self, exact: ArrayView2<'_, R>, estimate: ArrayView2<'_, S>) -> Result<()> {
        check_dim("number of rows of the estimate", exact.nrows(), estimate.nrows())?;
        check_dim("number of columns of the estimate", exact.ncols(), estimate.ncols())?;
        for (exact, estimate) in exact.rows().into_iter().zip(estimate.rows()) {
            // A row at a time, so that the running sums grow by comparable amounts.
            let (mut error_sq, mut norm_sq) = (0.0, 0.0);
            for (k, h) in exact.iter().zip(estimate) {
                let (k, h) = (Real::to_f64(*k), Real::to_f64(h.re()));
                error_sq += (k - h) * (k - h);
                norm_sq += k * k;
            }
            self.error_sq += error_sq;
            self.norm_sq += norm_sq;
        }
        Ok(())
    }

    /// The error of all blocks so far: 0 when nothing differs, infinite when only the exact matrix vanishes.
    pub fn value(&self) -> f64 {
        if self.error_sq == 0.0 { 0.0 } else { (self.error_sq / self.norm_sq).sqrt() }
    }
}

/// `‖K − K̂‖_F / ‖K‖_F`; of a complex `K̂` the real part.
///
/// # Errors
/// Matrices of different shapes.
pub fn relative_frobenius_error<R: Real, S: Scalar>(
    exact: ArrayView2<'_, R>,
    estimate: ArrayView2<'_, S>,
) -> Result<f64> {
    let mut error = FrobeniusError::default();
    error.add(exact, estimate)?;
    Ok(error.value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use num_complex::Complex;

    #[test]
    fn complex_estimates_count_with_their_real_part() {
        let exact = array![[3.0f32, 4.0]];
        let estimate = array![[Complex::new(3.0f32, 9.0), Complex::new(4.5, -7.0)]];
        assert_eq!(relative_frobenius_error(exact.view(), estimate.view()).unwrap(), 0.1);
    }

    #[test]
    fn vanishing_matrices_have_no_error_or_an_infinite_one() {
        let zero = array![[0.0, 0.0]];
        assert_eq!(relative_frobenius_error(zero.view(), zero.view()).unwrap(), 0.0);
        assert_eq!(relative_frobenius_error(zero.view(), array![[0.0, 1.0]].view()).unwrap(), f64::INFINITY);
        assert!(relative_frobenius_error(zero.view(), array![[0.0]].view()).is_err());
    }
}
