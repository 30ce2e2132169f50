//! Ridge equations `(FᴴWF + αI) X = FᴴWY`, solved from moments, from features or from an operator.
//!
//! | solver | needs | take it when |
//! |---|---|---|
//! | [`cholesky()`] | the Gram matrix: `D²/2` doubles | it fits: exact, one pass over the rows |
//! | [`dual()`] | all features: `nD` numbers and `n²/2` doubles | there are fewer rows than features |
//! | [`Path`] | three squares: `3D²` doubles | many penalties are compared |
//! | [`conjugate_gradients`] | some vectors of length `D` | the Gram matrix does not fit; a pass per step |
//! | the same with [`Preconditioner::Rounded`] | `D²` numbers of 4 bytes, and `nD` bytes up to half a gigabyte | features in single precision are cheap and many: three or four passes |
//! | [`StochasticGradient`] | some vectors of length `D` | an approximate answer after a few passes is enough |
//!
//! Outputs that are related ([`stein()`], and the solvers above for tied coefficients) are solved from the same
//! scalar features.
//!
//! All of them report what they did ([`SolveReport`]), and none returns a number that is not finite.

mod cholesky;
mod conjugate;
mod dual;
mod dual_coordinate_descent;
mod leave_one_out;
mod nystrom;
mod operator;
mod path;
mod plan;
mod rounding;
mod stein;
mod stochastic;
mod tied;

pub use cholesky::cholesky;
pub use conjugate::{ConjugateGradients, Preconditioner, conjugate_gradients};
pub use dual::{dual, dual_path};
pub use dual_coordinate_descent::{DualCoordinateDescent, GapReport, Hinge};
pub use leave_one_out::{LeaveOneOut, leave_one_out_path};
pub use operator::Operator;
pub use path::Path;
pub use stein::{LearnedOutputs, learn_outputs, stein};
pub use stochastic::StochasticGradient;

pub(crate) use cholesky::{factorise, factorise_sums};
pub(crate) use dual_coordinate_descent::{Blocks, check_weights};
pub(crate) use leave_one_out::Leverage;
pub(crate) use operator::{Journalled, Normal, last_state, packed, unpack};
pub(crate) use path::path;
pub(crate) use plan::{Choice, Plan, Size, plan};
pub(crate) use stein::{shifted, stein_path};
pub(crate) use stochastic::stochastic_gradient;
pub(crate) use tied::{iterate, iterate_moments, tied_path};

use crate::accumulate::{Moments, Totals};
use crate::error::{Error, Result};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Coefficients of a linear model `φ ↦ Xᵀφ + b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// `X`: one row per feature, one column per target.
    pub coefficients: Array2<f64>,
    /// `b`: one number per target; zeros when no intercept was asked for.
    pub intercept: Vec<f64>,
}

/// Which solver a model uses.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Solver {
    /// The fastest one that fits into the memory budget and leaves no more than rounding, else conjugate gradients; the
    /// report names it.
    #[default]
    Auto,
    /// Gram matrix and Cholesky factorisation.
    Cholesky,
    /// Inner products of all pairs of rows and Cholesky factorisation.
    Dual,
    /// Conjugate gradients on features that are computed again in every pass.
    ConjugateGradients(ConjugateGradients),
    /// Averaged stochastic gradients.
    StochasticGradient(StochasticGradient),
}

/// How a solution was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SolveReport {
    /// Name of the solver: `cholesky`, `dual`, `cg`, `sgd`, `path` or `stein`.
    pub solver: String,
    /// Why this one.
    pub reason: String,
    /// Added to the penalty because rounding had made the matrix indefinite; 0 where all went well.
    pub jitter: f64,
    /// Estimated condition number of the penalised matrix, where a factorisation gives one.
    pub condition: Option<f64>,
    /// Steps of an iteration; 1 for direct solvers.
    pub iterations: usize,
    /// Relative residual `|B - (A + α)X|/|B|` at the end of an iteration, of the worst target.
    pub residual: Option<f64>,
}

impl SolveReport {
    pub(crate) fn direct(solver: &str, jitter: f64, condition: f64) -> Self {
        let condition = Some(condition);
        SolveReport {
            solver: solver.to_owned(),
            reason: ASKED.to_owned(),
            jitter,
            condition,
            iterations: 1,
            residual: None,
        }
    }

    /// The factorisation behind a Gaussian process.
    pub(crate) fn gaussian_process(jitter: f64, condition: f64) -> Self {
        Self::direct("cholesky", jitter, condition).because("the posterior needs the factor")
    }

    fn iterative(solver: &str, iterations: usize, residual: f64) -> Self {
        let (jitter, residual) = (0.0, Some(residual));
        SolveReport {
            solver: solver.to_owned(),
            reason: ASKED.to_owned(),
            jitter,
            condition: None,
            iterations,
            residual,
        }
    }

    /// The same report with another reason.
    pub(crate) fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }
}

const ASKED: &str = "asked for";

/// A point of features and targets that a model without a constant goes through: their means under the weights where an
/// intercept is fitted, else 0.
#[derive(Debug, Clone)]
pub(crate) struct Means {
    features: Vec<f64>,
    targets: Vec<f64>,
}

/// Refuses totals of nothing.
fn check_totals(totals: &Totals) -> Result<()> {
    if totals.target_sums.is_empty() {
        return Err(Error::parameter("targets", "at least one column", "none"));
    }
    if totals.count == 0 {
        return Err(Error::parameter("rows", "at least one row", "none"));
    }
    if totals.weight_sum <= 0.0 {
        return Err(Error::parameter("weights", "positive for at least one row", "only zeros"));
    }
    let finite = totals.target_squares.iter().chain([&totals.weight_sum]).all(|v| v.is_finite());
    if finite { Ok(()) } else { Err(Error::overflow()) }
}

/// Refuses moments no model can be fitted to.
fn check_moments(moments: &Moments<f64>) -> Result<()> {
    check_totals(&moments.totals)?;
    let finite = moments.feature_sums.iter().chain(moments.cross.iter()).all(|v| v.is_finite());
    if finite && moments.gram.diagonal().all(f64::is_finite) { Ok(()) } else { Err(Error::overflow()) }
}

/// Moves sums to the means, or to 0 without an intercept: a linear model with an unpenalised constant is one without, on
/// centred features and targets.
fn centre(moments: &mut Moments<f64>, intercept: bool) -> Result<Means> {
    let means = match intercept {
        true => Means { features: moments.feature_means(), targets: moments.totals.means() },
        false => Means::zeros(moments.dim(), moments.outputs()),
    };
    moments.move_to(&means.features, &means.targets)?;
    Ok(means)
}

impl Means {
    fn zeros(dim: usize, outputs: usize) -> Self {
        Means { features: vec![0.0; dim], targets: vec![0.0; outputs] }
    }

    /// `Vᵀ φ̄`.
    fn of(&self, v: ArrayView2<'_, f64>) -> Vec<f64> {
        v.columns().into_iter().map(|c| c.iter().zip(&self.features).map(|(x, m)| x * m).sum()).collect()
    }

    /// `b = ȳ - Xᵀ φ̄`.
    pub(crate) fn intercept(&self, coefficients: &Array2<f64>) -> Vec<f64> {
        self.targets.iter().zip(self.of(coefficients.view())).map(|(mean, part)| mean - part).collect()
    }
}

/// Refuses a solution that is not made of numbers.
fn check_solution(solution: Solution) -> Result<Solution> {
    let finite = solution.coefficients.iter().chain(&solution.intercept).all(|v| v.is_finite());
    if finite {
        Ok(solution)
    } else {
        Err(Error::parameter("targets", "small enough that coefficients are finite", "an overflow to infinity"))
    }
}
