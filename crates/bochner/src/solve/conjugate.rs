use super::nystrom::Nystrom;
use super::rounding::Rounded;
use super::{Operator, SolveReport};
use crate::error::{Error, Result, check_dim, check_non_negative};
use crate::interrupt;
use crate::linalg::gemm::RoundedRows;
use crate::linalg::{Cholesky, TileMut};
use ndarray::{Array2, Zip};
use serde::{Deserialize, Serialize};

/// Options of [`conjugate_gradients`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConjugateGradients {
    /// Relative residual to reach; `None` means 1e-6 for single and 1e-10 for double precision.
    pub tolerance: Option<f64>,
    /// Steps at most; every step is a pass over the rows.
    pub max_iterations: usize,
    /// What the iteration is helped with.
    pub preconditioner: Preconditioner,
}

/// What an iteration is helped with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preconditioner {
    /// Nothing.
    None,
    /// The diagonal, where the operator knows it.
    Diagonal,
    /// A random low-rank model with this many vectors, made in one pass: for the steep spectra of kernels.
    ///
    /// Where a memory budget has no room for the features of all rows but for a quarter of it, they are kept rounded to eight
    /// bits: iterations over those, helped by the model, take the place of most passes.
    Nystrom(usize),
    /// The Gram matrix of features rounded to six bits, factorised: for features whose exact Gram matrix would take longer
    /// than some passes. Operators that are not made of features go without.
    ///
    /// With `E` the errors of rounding and `A = FᵀF`, the preconditioned matrix differs from 1 by at most about
    /// `2‖E(A + α)^(-1/2)‖`: errors of `n` rows of variance `σ²` are `√(nσ²/α)` and few steps are enough while that is
    /// small. With many rows per feature some of them go into the matrix, and all are kept rounded to eight bits, if that
    /// takes less than half a gigabyte: iterations over those, helped by the matrix, are faster than the rest of it.
    Rounded,
}

impl Default for ConjugateGradients {
    fn default() -> Self {
        ConjugateGradients { tolerance: None, max_iterations: 500, preconditioner: Preconditioner::Nystrom(100) }
    }
}

impl ConjugateGradients {
    /// Passes at most: right-hand sides, a preconditioner, the steps, and the residuals of all starts.
    pub(crate) fn passes(&self) -> usize {
        self.max_iterations + RESTARTS + 3
    }

    pub(super) fn check(&self) -> Result<()> {
        if let Some(tolerance) = self.tolerance {
            crate::error::check_positive("tolerance", tolerance)?;
        }
        crate::error::check_count("max_iterations", self.max_iterations)
    }
}

/// Times the iteration starts afresh from the true residual before the precision is taken to be exhausted.
const RESTARTS: usize = 3;

enum Help {
    None,
    Diagonal(Vec<f64>),
    Nystrom(Nystrom),
    /// In single precision, which errs less than the rounding of what it is made from.
    Factor(Cholesky<f32>),
    /// Rounded features, themselves helped by a factor: a product with them takes a tenth of a pass over the features.
    Inner(RoundedRows, Box<Help>),
}

impl Help {
    /// Whether it is nearly the inverse.
    fn is_close(&self) -> bool {
        matches!(self, Help::Factor(_) | Help::Inner(..))
    }

    /// About `(A + αI)⁻¹ r`; iterations of its own may leave `wanted` of the residual.
    fn apply(&mut self, r: &Array2<f64>, penalty: f64, wanted: f64) -> Result<Array2<f64>> {
        Ok(match self {
            Help::None => r.clone(),
            Help::Diagonal(inverse) => {
                let mut z = r.clone();
                for (mut row, factor) in z.rows_mut().into_iter().zip(inverse.iter()) {
                    row.mapv_inplace(|v| v * factor);
                }
                z
            }
            Help::Nystrom(model) => model.apply(r),
            Help::Factor(factor) => {
                // Columns of length 1: their squares, and those of what comes out, are numbers in single precision.
                let sizes: Vec<f64> =
                    dots(r, r).iter().map(|square| if *square > 0.0 { square.sqrt() } else { 1.0 }).collect();
                let mut values: Vec<f32> = Vec::with_capacity(r.len());
                for row in r.rows() {
                    values.extend(row.iter().zip(&sizes).map(|(value, size)| (value / size) as f32));
                }
                let (rows, cols) = r.dim();
                factor.solve_in_place(TileMut::new(&mut values, rows, cols)).expect("as many rows as features");
                Array2::from_shape_fn((rows, cols), |(i, j)| f64::from(values[i * cols + j]) * sizes[j])
            }
            Help::Inner(rows, help) => {
                // Less than this rounding does not give.
                let tolerance = 2.0 * wanted.clamp(3e-3, 0.25);
                let most = if help.is_close() { 50 } else { 500 };
                let options = ConjugateGradients { max_iterations: most, ..ConjugateGradients::default() };
                let sizes = dots(r, r).into_iter().map(f64::sqrt).collect::<Vec<_>>();
                let (mut x, mut r) = (Array2::zeros(r.dim()), r.clone());
                descend(rows, penalty, help, &sizes, tolerance, &options, &mut x, &mut r, &mut 0)?;
                x
            }
        })
    }
}

/// `(A + αI) X = B` by preconditioned conjugate gradients, all columns of `B` in the same passes.
///
/// `epsilon` is the relative precision of the operator's products. The residual that is reported is computed from the
/// solution and not carried along; where the carried one has drifted away from it the iteration starts afresh.
///
/// # Errors
/// [`Error::NotConverged`] after the last step, unless what is left is the precision of the products.
pub fn conjugate_gradients(
    operator: &mut dyn Operator,
    rhs: &Array2<f64>,
    penalty: f64,
    options: &ConjugateGradients,
    diagonal: Option<&[f64]>,
    epsilon: f64,
) -> Result<(Array2<f64>, SolveReport)> {
    check_non_negative("penalty", penalty)?;
    options.check()?;
    check_dim("number of rows of the right-hand side", operator.dim(), rhs.nrows())?;
    let tolerance = options.tolerance.unwrap_or(if epsilon > 1e-10 { 1e-6 } else { 1e-10 });
    let mut help = match (options.preconditioner, diagonal) {
        (Preconditioner::Nystrom(rank), _) => {
            let model = Nystrom::new(operator, rank, penalty, epsilon)?.map_or(Help::None, Help::Nystrom);
            match operator.take_rounded()? {
                Some(Rounded { rows: Some(rows), .. }) => Help::Inner(rows, Box::new(model)),
                _ => model,
            }
        }
        (Preconditioner::Rounded, _) => match operator.take_rounded()? {
            Some(Rounded { matrix: Some(mut matrix), rows }) => {
                matrix.add_to_diagonal(penalty);
                match (Cholesky::new(matrix), rows) {
                    (Ok(factor), Some(rows)) => Help::Inner(rows, Box::new(Help::Factor(factor))),
                    (Ok(factor), None) => Help::Factor(factor),
                    (Err(_), _) => Help::None,
                }
            }
            _ => Help::None,
        },
        (Preconditioner::Diagonal, Some(diagonal)) => {
            Help::Diagonal(diagonal.iter().map(|d| if d + penalty > 0.0 { 1.0 / (d + penalty) } else { 1.0 }).collect())
        }
        _ => Help::None,
    };
    let sizes = dots(rhs, rhs).into_iter().map(f64::sqrt).collect::<Vec<_>>();
    let mut x = Array2::zeros(rhs.dim());
    let mut r = rhs.clone();
    let (mut iterations, mut residual) = (0, 1.0);
    for restart in 0..=RESTARTS {
        let carried =
            descend(operator, penalty, &mut help, &sizes, tolerance, options, &mut x, &mut r, &mut iterations)?;
        // What the solution leaves, computed afresh.
        let mut image = operator.apply(x.view())?;
        image.scaled_add(penalty, &x);
        r = rhs - &image;
        let before = residual;
        residual = relative(&r, &sizes);
        if !residual.is_finite() {
            break;
        }
        let exhausted = restart > 0 && residual > 0.5 * before;
        let precise = residual <= 1e3 * epsilon;
        if residual <= tolerance || (exhausted && precise) || (carried <= tolerance && restart == RESTARTS && precise) {
            return Ok((x, SolveReport::iterative("cg", iterations, residual)));
        }
        if iterations >= options.max_iterations {
            break;
        }
        if exhausted {
            // Rounding took too much of what a small penalty lets count: the model alone helps on the rest of the way.
            match help {
                Help::Inner(_, inner) if !inner.is_close() => help = *inner,
                _ => break,
            }
        }
    }
    Err(Error::NotConverged { iterations, residual, tolerance })
}

/// Runs until every column's carried residual is small, or steps run out; gives the largest relative one.
fn descend(
    operator: &mut dyn Operator,
    penalty: f64,
    help: &mut Help,
    sizes: &[f64],
    tolerance: f64,
    options: &ConjugateGradients,
    x: &mut Array2<f64>,
    r: &mut Array2<f64>,
    iterations: &mut usize,
) -> Result<f64> {
    // What is left of a step by iterations of the help is a part of what is left at the end.
    let wanted = |left: f64| 0.25 * tolerance / left;
    let mut z = help.apply(r, penalty, wanted(relative(r, sizes)))?;
    let mut p = z.clone();
    let mut rho = dots(r, &z);
    let (mut before, mut slowest) = (relative(r, sizes), 0.0f64);
    loop {
        interrupt::check()?;
        let left = relative(r, sizes);
        // A little below what is asked for, since the true residual is the one that counts.
        if left <= 0.5 * tolerance || *iterations >= options.max_iterations || !left.is_finite() {
            return Ok(left);
        }
        // Where the factor is nearly the inverse, a step along `z` leaves no more of the residual than the slowest step so
        // far. If that is little enough, the pass that would measure its length is the one that confirms the solution.
        if help.is_close() && left < before {
            slowest = slowest.max(left / before);
            if left * slowest <= 0.5 * tolerance {
                *x += &z;
                *iterations += 1;
                return Ok(left * slowest);
            }
        }
        before = left;
        let mut image = operator.apply(p.view())?;
        image.scaled_add(penalty, &p);
        let curvature = dots(&p, &image);
        // A column that is solved, or whose direction the operator does not see, stands still.
        let steps: Vec<f64> =
            rho.iter().zip(&curvature).map(|(r, c)| if *r > 0.0 && *c > 0.0 { r / c } else { 0.0 }).collect();
        if steps.iter().all(|&s| s == 0.0) {
            return Ok(left);
        }
        add_scaled(x, &steps, &p);
        add_scaled(r, &steps.iter().map(|s| -s).collect::<Vec<_>>(), &image);
        *iterations += 1;
        z = help.apply(r, penalty, wanted(relative(r, sizes)))?;
        let next = dots(r, &z);
        let turn: Vec<f64> = next.iter().zip(&rho).map(|(n, o)| if *o > 0.0 { n / o } else { 0.0 }).collect();
        for (mut p, z) in p.rows_mut().into_iter().zip(z.rows()) {
            Zip::from(&mut p).and(&z).and(&ndarray::aview1(&turn)).for_each(|p, z, t| *p = z + t * *p);
        }
        rho = next;
    }
}

fn relative(r: &Array2<f64>, sizes: &[f64]) -> f64 {
    let left = dots(r, r);
    left.iter()
        .zip(sizes)
        .map(|(l, s)| if *s > 0.0 { l.sqrt() / s } else { 0.0 })
        .fold(0.0, |a: f64, b| if b.is_nan() || b > a { b } else { a })
}

/// Inner products of corresponding columns.
pub(super) fn dots(a: &Array2<f64>, b: &Array2<f64>) -> Vec<f64> {
    let mut sums = vec![0.0; a.ncols()];
    for (a, b) in a.rows().into_iter().zip(b.rows()) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums
}

/// `to += what · diag(factors)`.
pub(super) fn add_scaled(to: &mut Array2<f64>, factors: &[f64], what: &Array2<f64>) {
    for (mut to, what) in to.rows_mut().into_iter().zip(what.rows()) {
        for ((to, what), factor) in to.iter_mut().zip(what).zip(factors) {
            *to += factor * what;
        }
    }
}
