//! Search over descriptions of maps and penalties.

use crate::arrays::{Rows, Vector, in_precision};
use crate::data::Data;
use crate::detached::detached;
use crate::errors::{json, parse};
use bochner::feature::Spec;
use bochner::random::Seed;
use bochner::tune::{Search, SearchProgress, Split, Task};
use pyo3::prelude::*;

/// What a search is to do, as Python describes it.
#[derive(Debug, Clone, serde::Deserialize)]
struct Plan {
    classify: bool,
    folds: Option<usize>,
    held_out: f64,
    alphas: Vec<f64>,
    fit_intercept: bool,
    seed: u64,
}

/// Losses on held-out rows for every description (a list in JSON) and every penalty of `plan`: JSON, one list of penalties
/// per description, of which each has one loss per part.
#[pyfunction]
#[pyo3(signature = (specs, x, targets, weights, plan, n_jobs=None, progress=None))]
#[pyo3(text_signature = "(specs, X, targets, weights, plan, n_jobs=None, progress=None)")]
fn search(
    py: Python<'_>,
    specs: &str,
    x: Rows<'_>,
    targets: Rows<'_>,
    weights: Option<Vector<'_>>,
    plan: &str,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (specs, plan): (Vec<Spec>, Plan) = (parse(specs)?, parse(plan)?);
    let task = if plan.classify { Task::Classification } else { Task::Regression };
    let split = plan.folds.map_or(Split::HeldOut(plan.held_out), Split::Folds);
    let (penalties, intercept, seed) = (plan.alphas, plan.fit_intercept, Seed::new(plan.seed));
    let search = Search { task, split, penalties, intercept, seed };
    let found = in_precision!(x, |rows: R| {
        let mut data = Data::new(rows, &targets, weights.as_ref())?;
        detached(py, n_jobs, progress, |watch| {
            // Rows are read several times for every description: descriptions are what is counted.
            let mut done = |at: SearchProgress| {
                watch.reach(at.done, Some(at.total));
                watch.checkpoint()
            };
            search.run(&specs, &mut data, &mut done)
        })
    })?;
    let losses: Vec<Vec<&[f64]>> = found
        .trials
        .chunks(search.penalties.len().max(1))
        .map(|trials| trials.iter().map(|trial| trial.losses.as_slice()).collect())
        .collect();
    json(&losses)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(search, module)?)
}
