use super::{Means, Solution, SolveReport, centre, check_moments, check_solution};
use crate::accumulate::Moments;
use crate::error::{Error, Result, check_non_negative};
use crate::linalg::{Cholesky, Lower, TileMut};
use crate::scalar::Scalar;
use ndarray::Array2;

/// A matrix whose condition is worse than this has no correct digit in its solution.
const WORST_CONDITION: f64 = 0.1 / f64::EPSILON;

/// Shifts tried before giving up; each is a hundred times the one before. Sums over features in single precision are off by
/// about `D ε ‖A‖₁` for the `ε` of single precision, 10⁹ times the first shift.
const SHIFTS: usize = 6;

/// Ridge regression by Cholesky factorisation, in the memory of the moments.
///
/// Where rounding (or a penalty of 0 with dependent features) leaves the matrix without a usable factorisation, a shift
/// of `D ε ‖A‖₁` is added to its diagonal, a hundred times more with every further attempt; the report says how much. The
/// factorisation is undone in place, so no attempt needs a copy.
///
/// # Errors
/// Nothing to fit, or a matrix that stays indefinite.
pub fn cholesky(mut moments: Moments<f64>, penalty: f64, intercept: bool) -> Result<(Solution, SolveReport)> {
    check_non_negative("penalty", penalty)?;
    check_moments(&moments)?;
    let means = if intercept { centre(&mut moments)? } else { Means::zeros(moments.dim(), moments.outputs()) };
    let Moments { mut gram, cross, .. } = moments;
    gram.add_to_diagonal(penalty);
    let (factor, jitter, condition) = factorise(gram)?;
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

/// The factor, the shift that was needed, and the estimated condition.
pub(crate) fn factorise<W: Scalar<Real = f64>>(matrix: Lower<W>) -> Result<(Cholesky<W>, f64, f64)> {
    let mut matrix = matrix;
    let mut jitter = 0.0;
    let mut shift = 0.0;
    for attempt in 0..=SHIFTS {
        let (returned, failure) = match Cholesky::new(matrix) {
            Ok(factor) => {
                let condition = factor.condition();
                if condition < WORST_CONDITION {
                    return Ok((factor, jitter, condition));
                }
                let norm = factor.norm_one();
                let order = factor.order();
                let failure =
                    Error::NotPositiveDefinite { pivot: order - 1, suggested_penalty: 1e-12 * order as f64 * norm };
                (factor.into_matrix(), (failure, norm))
            }
            Err(failed) => {
                let norm = failed.norm_one;
                let (pivot, suggested_penalty) = (failed.pivot, failed.suggested_penalty());
                (failed.matrix, (Error::NotPositiveDefinite { pivot, suggested_penalty }, norm))
            }
        };
        let (error, norm) = failure;
        if attempt == SHIFTS || !norm.is_finite() {
            return Err(error);
        }
        shift = if shift == 0.0 {
            returned.order() as f64 * f64::EPSILON * if norm > 0.0 { norm } else { 1.0 }
        } else {
            100.0 * shift
        };
        matrix = returned;
        matrix.add_to_diagonal(shift - jitter);
        jitter = shift;
    }
    unreachable!("the last attempt returns")
}
