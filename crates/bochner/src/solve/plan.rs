use super::nystrom::Nystrom;
use super::rounding::Rounding;
use super::{ConjugateGradients, Preconditioner, Solver, StochasticGradient};
use crate::accumulate::{Collector, Gram};
use crate::error::{Error, Result};
use crate::linalg::Lower;
use crate::scalar::Real;

/// Features up to which a Gram matrix is made when no budget is given: 1.6 GB.
const LARGEST: usize = 20_000;

/// Features from which rounded ones are thought about.
const LEAST_ROUNDED: usize = 1024;

/// A solver with its options, chosen for a problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Choice {
    Cholesky,
    Dual,
    ConjugateGradients(ConjugateGradients),
    StochasticGradient(StochasticGradient),
}

impl Choice {
    /// Rows that are read, multiplied or factorised, for so many rows and features.
    pub(crate) fn rows(self, rows: Option<usize>, dim: usize) -> Option<usize> {
        let n = rows?;
        Some(match self {
            Choice::Cholesky => n + dim,
            Choice::Dual => 2 * n,
            Choice::ConjugateGradients(options) => n.saturating_mul(options.passes()),
            Choice::StochasticGradient(options) => n.saturating_mul(options.all_passes()),
        })
    }
}

/// What was chosen, why, and how much memory it takes at its peak.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) choice: Choice,
    pub(crate) reason: String,
    pub(crate) bytes: u64,
}

/// The size of a problem.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Rows, where known.
    pub(crate) rows: Option<usize>,
    /// Features.
    pub(crate) dim: usize,
    /// Targets.
    pub(crate) outputs: usize,
    /// Bytes of tiles and windows, whatever the solver.
    pub(crate) overhead: u64,
    /// [`FeatureMap::operations`](crate::feature::FeatureMap::operations) of the map.
    pub(crate) operations: u64,
    /// Whether there is a penalty.
    pub(crate) is_penalised: bool,
}

impl Size {
    /// Bytes of `count` vectors of doubles per feature.
    fn vectors(&self, count: usize) -> u64 {
        (self.dim as u64).saturating_mul(8 * count as u64)
    }

    fn bytes<R: Real>(&self, choice: Choice) -> Option<u64> {
        let wide = self.outputs.next_multiple_of(8);
        let stream = Collector::<R>::bytes(self.dim, self.outputs);
        let most = match choice {
            Choice::Cholesky => Gram::<R>::bytes(self.dim, self.outputs).saturating_add(self.vectors(3 * wide + 4)),
            Choice::Dual => {
                let rows = self.rows?;
                let features =
                    (rows as u64).saturating_mul((self.dim + 2 * wide) as u64).saturating_mul(size_of::<R>() as u64);
                let sides = (rows as u64).saturating_mul(8 * 3 * wide as u64);
                features
                    .saturating_add(sides)
                    .saturating_add(Lower::<f64>::bytes(rows))
                    .saturating_add(self.vectors(2 * wide + 4))
            }
            Choice::ConjugateGradients(options) => {
                let help = match options.preconditioner {
                    Preconditioner::Nystrom(rank) => Nystrom::bytes(self.dim, rank.min(self.dim)),
                    Preconditioner::Rounded => Rounding::bytes(self.rows, self.dim),
                    Preconditioner::None | Preconditioner::Diagonal => 0,
                };
                stream.saturating_add(self.vectors(10 * wide + 4)).saturating_add(help)
            }
            Choice::StochasticGradient(options) => {
                let rank = options.rank.min(self.dim);
                // The step length looks at 256 rows in double precision.
                stream.saturating_add(self.vectors(10 * wide + 3 * 256)).saturating_add(Nystrom::bytes(self.dim, rank))
            }
        };
        Some(most.saturating_add(self.overhead))
    }

    /// Whether rounded features and some passes take less time than the Gram matrix of the features themselves.
    ///
    /// Only in single precision, whose solutions are as precise either way, and not for small problems, which take no time.
    fn is_faster_rounded<R: Real>(&self) -> bool {
        // Steps to a relative residual of 1e-6 and the pass that confirms it, as measured on images and on noise.
        const PASSES: u64 = 4;
        let (dim, wide) = (self.dim as u64, self.outputs.next_multiple_of(8) as u64);
        let enough = self.rows.is_some_and(|n| n >= 2 * self.dim) && self.dim >= LEAST_ROUNDED;
        // Multiplications per row: half a square of products, of which rounding spares two thirds; and a pass.
        let (spared, pass) = (dim * dim / 3, self.operations.saturating_add(2 * dim * wide));
        size_of::<R>() == 4 && self.is_penalised && enough && spared > pass.saturating_mul(PASSES)
    }

    /// The largest number of features that fit a budget.
    fn largest<R: Real>(&self, choice: Choice, budget: u64) -> usize {
        let (mut fits, mut too_large) = (0, self.dim);
        while too_large - fits > 1 {
            let middle = fits + (too_large - fits) / 2;
            let size = Size { dim: middle, ..*self };
            if size.bytes::<R>(choice).is_some_and(|bytes| bytes <= budget) {
                fits = middle
            } else {
                too_large = middle
            }
        }
        fits
    }
}

/// Decides how a problem is solved.
pub(crate) fn plan<R: Real>(solver: Solver, size: Size, budget: Option<u64>) -> Result<Plan> {
    let fits = |bytes: u64| budget.is_none_or(|budget| bytes <= budget);
    let fixed = |choice| Plan { choice, reason: "asked for".to_owned(), bytes: size.bytes::<R>(choice).unwrap_or(0) };
    let plan = match solver {
        Solver::Cholesky => fixed(Choice::Cholesky),
        Solver::Dual => fixed(Choice::Dual),
        Solver::ConjugateGradients(options) => fixed(Choice::ConjugateGradients(options)),
        Solver::StochasticGradient(options) => fixed(Choice::StochasticGradient(options)),
        Solver::Auto => automatic::<R>(size, budget),
    };
    if fits(plan.bytes) {
        return Ok(plan);
    }
    let budget = budget.unwrap_or(u64::MAX);
    let what = match plan.choice {
        Choice::Cholesky => "the Gram matrix",
        Choice::Dual => "the features of all rows",
        _ => "the vectors of the iteration",
    };
    let mut remedies = Vec::new();
    let largest = size.largest::<R>(plan.choice, budget);
    if largest > 0 {
        remedies.push(format!("{largest} features would fit"));
    }
    let iteration = Choice::ConjugateGradients(ConjugateGradients::default());
    if matches!(plan.choice, Choice::Cholesky | Choice::Dual) && size.bytes::<R>(iteration).is_some_and(fits) {
        remedies.push("so would conjugate gradients".to_owned());
    }
    remedies.push(format!("a budget of {} bytes would do", plan.bytes));
    Err(Error::Budget { what, needed: plan.bytes, budget, remedy: remedies.join("; ") })
}

fn automatic<R: Real>(size: Size, budget: Option<u64>) -> Plan {
    let Size { rows, dim, .. } = size;
    let within = |bytes: u64, count: usize| budget.map_or(count <= LARGEST, |budget| bytes <= budget);
    let shown = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
    if let (Some(n), Some(bytes)) = (rows.filter(|&n| n < dim), size.bytes::<R>(Choice::Dual))
        && within(bytes, n)
    {
        let reason = format!("{n} rows are fewer than {dim} features, and their inner products take {}", shown(bytes));
        return Plan { choice: Choice::Dual, reason, bytes };
    }
    let rounded = ConjugateGradients { max_iterations: 8, tolerance: None, preconditioner: Preconditioner::Rounded };
    let rounded = Choice::ConjugateGradients(rounded);
    let bytes = size.bytes::<R>(rounded).unwrap_or(u64::MAX);
    if size.is_faster_rounded::<R>() && within(bytes, dim) {
        let reason =
            format!("some passes over {dim} features are faster than their Gram matrix, given one of rounded ones");
        return Plan { choice: rounded, reason, bytes };
    }
    let bytes = size.bytes::<R>(Choice::Cholesky).unwrap_or(u64::MAX);
    if within(bytes, dim) {
        let reason = format!("the Gram matrix of {dim} features fits: {} in all", shown(bytes));
        return Plan { choice: Choice::Cholesky, reason, bytes };
    }
    let limit = match budget {
        Some(budget) => format!("a budget of {}", shown(budget)),
        None => format!("the {LARGEST} features for which one is made without a budget"),
    };
    let reason = format!("the Gram matrix of {dim} features would take {}, beyond {limit}", shown(bytes));
    let choice = Choice::ConjugateGradients(ConjugateGradients::default());
    Plan { choice, reason, bytes: size.bytes::<R>(choice).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(rows: Option<usize>, dim: usize) -> Size {
        Size { rows, dim, outputs: 10, overhead: 1 << 20, operations: (784 * dim) as u64, is_penalised: true }
    }

    #[test]
    fn the_automatic_choice_follows_rows_features_and_budget() {
        let choose = |rows, dim, budget| plan::<f32>(Solver::Auto, size(rows, dim), budget).unwrap();
        assert_eq!(choose(Some(60_000), 8192, None).choice, Choice::Cholesky);
        assert_eq!(choose(None, 8192, None).choice, Choice::Cholesky);
        // Cheap features in single precision, many rows and a penalty: all four of them.
        let cheap = Size { operations: 100 * 4096, ..size(Some(60_000), 4096) };
        let is_rounded = |plan: Plan| match plan.choice {
            Choice::ConjugateGradients(options) => options.preconditioner == Preconditioner::Rounded,
            _ => false,
        };
        assert!(is_rounded(plan::<f32>(Solver::Auto, cheap, None).unwrap()));
        assert!(!is_rounded(plan::<f64>(Solver::Auto, cheap, None).unwrap()));
        assert!(!is_rounded(plan::<f32>(Solver::Auto, Size { rows: Some(6000), ..cheap }, None).unwrap()));
        assert!(!is_rounded(plan::<f32>(Solver::Auto, Size { is_penalised: false, ..cheap }, None).unwrap()));
        assert!(!is_rounded(plan::<f32>(Solver::Auto, Size { operations: 784 * 4096, ..cheap }, None).unwrap()));
        let dual = choose(Some(500), 8192, None);
        assert_eq!(dual.choice, Choice::Dual);
        assert!(dual.reason.contains("500 rows are fewer than 8192 features"), "{}", dual.reason);
        assert!(matches!(choose(Some(60_000), 50_000, None).choice, Choice::ConjugateGradients(_)));
        assert_eq!(choose(Some(60_000), 50_000, Some(12 << 30)).choice, Choice::Cholesky);
        let tight = choose(Some(60_000), 8192, Some(200 << 20));
        assert!(matches!(tight.choice, Choice::ConjugateGradients(_)));
        assert!(tight.reason.contains("beyond a budget of 210 MB"), "{}", tight.reason);
    }

    #[test]
    fn the_gram_matrix_of_the_bar_stays_below_its_limit() {
        // 60,000 rows, 8,192 features, ten targets: a square in f32 would take 268 MB, and 300 MB may come on top.
        let bytes = plan::<f32>(Solver::Cholesky, size(Some(60_000), 8192), None).unwrap().bytes;
        assert!(bytes < 268_435_456 + 150_000_000, "{bytes}");
    }

    #[test]
    fn a_budget_too_small_for_anything_says_what_would_fit() {
        for solver in [Solver::Auto, Solver::Cholesky, Solver::Dual] {
            let budget = 60 << 20;
            let Err(Error::Budget { needed, remedy, .. }) = plan::<f32>(solver, size(Some(60_000), 8192), Some(budget))
            else {
                panic!("nothing of this size fits into {budget} bytes")
            };
            assert!(needed > budget && remedy.contains(&format!("a budget of {needed} bytes")), "{remedy}");
            if solver != Solver::Dual {
                let count: usize = remedy.split(' ').next().unwrap().parse().unwrap();
                let smaller = plan::<f32>(solver, size(Some(60_000), count), Some(budget)).unwrap();
                assert!(smaller.bytes <= budget);
                assert!(plan::<f32>(Solver::Cholesky, size(Some(60_000), 8192), Some(250 << 20)).is_err());
            }
        }
    }

    #[test]
    fn the_budget_that_is_advised_is_enough() {
        let solvers = [
            Solver::Auto,
            Solver::Cholesky,
            Solver::Dual,
            Solver::ConjugateGradients(ConjugateGradients::default()),
            Solver::StochasticGradient(StochasticGradient::default()),
        ];
        let mut refused = 0;
        for solver in solvers {
            for rows in [None, Some(1), Some(300), Some(5000), Some(60_000)] {
                for dim in [1, 64, 512, 2048, 8192] {
                    for budget in (0..40).map(|k| 1u64 << k) {
                        let size = Size { operations: 20 * dim as u64, ..size(rows, dim) };
                        let Err(Error::Budget { needed, remedy, .. }) = plan::<f32>(solver, size, Some(budget)) else {
                            continue;
                        };
                        refused += 1;
                        assert!(remedy.contains(&format!("a budget of {needed} bytes would do")), "{remedy}");
                        assert!(
                            plan::<f32>(solver, size, Some(needed)).is_ok(),
                            "{solver:?} {size:?} {budget} {needed}"
                        );
                    }
                }
            }
        }
        assert!(refused > 1000);
    }
}
