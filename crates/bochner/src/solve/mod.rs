//! Ridge equations `(FᴴWF + αI) X = FᴴWY`, solved from moments or from an operator.
//!
//! | solver | needs | take it when |
//! |---|---|---|
//! | [`cholesky`] | the Gram matrix: `D²/2` doubles | it fits: exact, one pass over the rows |

mod cholesky;
mod dual_coordinate_descent;

pub use cholesky::cholesky;
pub use dual_coordinate_descent::{DualCoordinateDescent, GapReport, Hinge};

pub use cholesky::cholesky;

use crate::accumulate::Moments;
use crate::error::{Error, Result};
use ndarray::Array2;

/// Coefficients of a linear model `x ↦ Xᵀφ(x) + b`.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// `X`: one row per feature, one column per target.
    pub coefficients: Array2<f64>,
    /// `b`: one number per target; zeros when no intercept was asked for.
    pub intercept: Vec<f64>,
}

/// Which solver a model uses.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Solver {
    /// The cheapest one that fits into the memory budget; the report names it.
    #[default]
    Auto,
    /// Gram matrix and Cholesky factorisation.
    Cholesky,
}

/// How a solution was found.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SolveReport {
    /// Name of the solver: `cholesky`, `dual`, `cg`, `sgd` or `path`.
    pub solver: String,
    /// Why this one.
    pub reason: String,
    /// Added to the penalty because rounding had made the matrix indefinite; 0 where all went well.
    pub jitter: f64,
    /// Estimated condition number of the penalised matrix, where a factorisation gives one.
    pub condition: Option<f64>,
    /// Steps of an iteration; 1 for direct solvers.
    pub iterations: usize,
    /// Relative residual at the end of an iteration.
    pub residual: Option<f64>,
}

impl SolveReport {
    fn direct(solver: &str, jitter: f64, condition: f64) -> Self {
        SolveReport {
            solver: solver.to_owned(),
            reason: "asked for".to_owned(),
            jitter,
            condition: Some(condition),
            iterations: 1,
            residual: None,
        }
    }

    /// The same report with another reason.
    pub(crate) fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }
}

/// Means of features and targets under the weights.
struct Means {
    features: Vec<f64>,
    targets: Vec<f64>,
}

/// Refuses moments no model can be fitted to.
fn check_moments(moments: &Moments<f64>) -> Result<()> {
    if moments.outputs() == 0 {
        return Err(Error::parameter("targets", "at least one column", "none"));
    }
    if moments.count == 0 {
        return Err(Error::parameter("rows", "at least one row", "none"));
    }
    if moments.weight_sum <= 0.0 {
        return Err(Error::parameter("weights", "positive for at least one row", "only zeros"));
    }
    let sums = moments.target_squares.iter().chain(&moments.feature_sums).chain(moments.cross.iter());
    if !sums.chain([&moments.weight_sum]).all(|v| v.is_finite()) || !moments.gram.diagonal().all(f64::is_finite) {
        return Err(Error::parameter(
            "features, targets and weights",
            "small enough that their squares can be summed",
            "an overflow to infinity",
        ));
    }
    Ok(())
}

/// Turns sums about 0 into sums about the means: a linear model with an unpenalised constant is one without, on centred
/// features and targets.
fn centre(moments: &mut Moments<f64>) -> Result<Means> {
    let total = moments.weight_sum;
    let features: Vec<f64> = moments.feature_sums.iter().map(|s| s / total).collect();
    let targets: Vec<f64> = moments.target_sums.iter().map(|s| s / total).collect();
    moments.gram.subtract_rank_one(total, &features)?;
    for (mut row, &sum) in moments.cross.rows_mut().into_iter().zip(&moments.feature_sums) {
        for (value, mean) in row.iter_mut().zip(&targets) {
            *value -= sum * mean;
        }
    }
    Ok(Means { features, targets })
}

impl Means {
    fn zeros(moments: &Moments<f64>) -> Self {
        Means { features: vec![0.0; moments.dim()], targets: vec![0.0; moments.outputs()] }
    }

    /// `b = ȳ - Xᵀ φ̄`.
    fn intercept(&self, coefficients: &Array2<f64>) -> Vec<f64> {
        let dot =
            |column: usize| coefficients.column(column).iter().zip(&self.features).map(|(x, m)| x * m).sum::<f64>();
        self.targets.iter().enumerate().map(|(j, mean)| mean - dot(j)).collect()
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
