use super::{Means, Solution, SolveReport, centre, check_moments, check_solution};
use crate::accumulate::Moments;
use crate::error::{Error, Result, check_non_negative};
use crate::interrupt;
use crate::linalg::{Cholesky, Lower, TileMut};
use crate::scalar::Scalar;
use ndarray::Array2;

/// A matrix whose condition is worse than this has no correct digit in its solution.
const WORST_CONDITION: f64 = 0.1 / f64::EPSILON;

/// Shifts go up to so many times `D ε ‖A‖₁`: entries that are differences of nearly equal numbers keep half of their digits.
const MOST_UNITS: f64 = 1e10;

/// And up to so many times the rounding of the sums, which takes 128 times as much at worst ([`Moments::rounding`]): the fourth
/// shift, a thousand times as much but for the last digit, is still tried.
const MOST_ROUNDING: f64 = 2e3;

/// Ridge regression by Cholesky factorisation, in the memory of the moments.
///
/// Where rounding (or a penalty of 0 with dependent features) leaves the matrix without a usable factorisation, a shift is
/// added to its diagonal: `D ε ‖A‖₁`, or what single precision may have taken from the sums if that is more; ten times as
/// much with every further attempt. The report says how much. The factorisation is undone in place, so no attempt needs a
/// copy.
///
/// # Errors
/// Nothing to fit, or a matrix that stays indefinite.
pub fn cholesky(mut moments: Moments<f64>, penalty: f64, intercept: bool) -> Result<(Solution, SolveReport)> {
    check_non_negative("penalty", penalty)?;
    check_moments(&moments)?;
    let rounding = moments.rounding();
    let means = centre(&mut moments, intercept)?;
    let Moments { mut gram, cross, .. } = moments;
    gram.add_to_diagonal(penalty);
    let (factor, jitter, condition) = factorise_sums(gram, rounding)?;
    let solution = substitute(&factor, cross, &means)?;
    Ok((solution, SolveReport::direct("cholesky", jitter, condition)))
}

/// The solution from a factor, in the memory of the right-hand sides.
pub(super) fn substitute(factor: &Cholesky<f64>, rhs: Array2<f64>, means: &Means) -> Result<Solution> {
    let mut coefficients = rhs;
    let (rows, cols) = coefficients.dim();
    let values = coefficients.as_slice_mut().expect("sums are stored in standard layout");
    factor.solve_in_place(TileMut::new(values, rows, cols))?;
    let intercept = means.intercept(&coefficients);
    check_solution(Solution { coefficients, intercept })
}

/// [`factorise_sums`] of a matrix whose entries are as precise as doubles.
pub(crate) fn factorise<W: Scalar<Real = f64>>(matrix: Lower<W>) -> Result<(Cholesky<W>, f64, f64)> {
    factorise_sums(matrix, 0.0)
}

/// The factor, the shift that was needed, and the estimated condition, of a matrix off by about `rounding` in its eigenvalues
/// ([`Moments::rounding`]).
pub(crate) fn factorise_sums<W: Scalar<Real = f64>>(
    matrix: Lower<W>,
    rounding: f64,
) -> Result<(Cholesky<W>, f64, f64)> {
    let (mut matrix, mut jitter, mut most) = (matrix, 0.0, None);
    loop {
        let attempt = Cholesky::new(matrix);
        interrupt::check()?;
        let (returned, pivot, norm) = match attempt {
            Ok(factor) => {
                let condition = factor.condition();
                if condition < WORST_CONDITION {
                    return Ok((factor, jitter, condition));
                }
                let (pivot, norm) = (factor.order() - 1, factor.norm_one());
                (factor.into_matrix(), pivot, norm)
            }
            Err(failed) => (failed.matrix, failed.pivot, failed.norm_one),
        };
        let unit = returned.order() as f64 * f64::EPSILON * if norm > 0.0 { norm } else { 1.0 };
        let most = *most.get_or_insert((MOST_UNITS * unit).max(MOST_ROUNDING * rounding));
        let shift = if jitter == 0.0 { unit.max(rounding) } else { 10.0 * jitter };
        if !(shift <= most && shift.is_finite()) {
            // No eigenvalue is below -‖A‖₁, and neither what was added by now nor the penalty is above ‖A‖₁.
            return Err(Error::not_positive_definite(pivot, 4.0 * norm));
        }
        matrix = returned;
        matrix.add_to_diagonal(shift - jitter);
        jitter = shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A symmetric matrix with eigenvalues of either sign: its trace is 0 before the penalty.
    fn indefinite(order: usize, penalty: f64) -> Lower<f64> {
        let mut matrix = Lower::zeros(order).unwrap();
        for i in 0..order {
            for j in 0..=i {
                matrix.row_mut(i)[j] = if i == j { 0.0 } else { ((i * 31 + j * 17 + i * j) as f64 * 0.7).sin() };
            }
        }
        matrix.add_to_diagonal(penalty);
        matrix
    }

    #[test]
    fn the_penalty_that_is_suggested_works() {
        for order in [2, 40, 150] {
            for penalty in [0.0, 1e-6, 0.1] {
                let Err(Error::NotPositiveDefinite { suggested_penalty, .. }) = factorise(indefinite(order, penalty))
                else {
                    panic!("the matrix has negative eigenvalues of the size of its entries")
                };
                let (_, jitter, _) = factorise(indefinite(order, suggested_penalty)).unwrap();
                assert_eq!(jitter, 0.0, "{order} {penalty}: {suggested_penalty}");
            }
        }
    }

    #[test]
    fn shifts_follow_the_rounding_of_the_sums() {
        // A matrix of rank one less all that chains of 256 rows in single precision may lose.
        let order = 30;
        let mut matrix = Lower::<f64>::zeros(order).unwrap();
        for i in 0..order {
            for j in 0..=i {
                matrix.row_mut(i)[j] = (i as f64).cos() * (j as f64).cos();
            }
        }
        let rounding = f64::from(f32::EPSILON) * matrix.diagonal().sum::<f64>();
        for lost in [0.5, 5.0, 128.0] {
            let mut rounded = matrix.clone();
            rounded.add_to_diagonal(-lost * rounding);
            let (_, jitter, _) = factorise_sums(rounded, rounding).unwrap();
            assert!(
                jitter > lost * rounding && jitter <= 10.0 * lost.max(1.0) * rounding,
                "{lost}: {}",
                jitter / rounding
            );
        }
    }
}
