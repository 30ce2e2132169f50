//! Which map and how many features.

use crate::arrays::{Rows, in_precision};
use crate::detached::detached;
use crate::kernels::PyKernel;
use bochner::plan::{Request, Sample, plan as plan_maps};
use pyo3::prelude::*;
use serde_json::json;

/// The plan as JSON: `choices`, `shortfalls` and the `verified` errors of the first choice.
#[pyfunction]
#[pyo3(signature = (kernel, x, error, total_rows, most_features, draws, seed, n_jobs=None),
       text_signature = "(kernel, X, error, total_rows, most_features, draws, seed, n_jobs=None)")]
pub(crate) fn plan(
    py: Python<'_>,
    kernel: &Bound<'_, PyKernel>,
    x: Rows<'_>,
    error: f64,
    total_rows: usize,
    most_features: usize,
    draws: usize,
    seed: u64,
    n_jobs: Option<i64>,
) -> PyResult<String> {
    let kernel = &kernel.get().kernel;
    let request = Request { error, total_rows, most_features, draws, seed };
    let plan = in_precision!(x, |x: R| detached(py, n_jobs, None, |watch| {
        let rows = x.wide()?;
        plan_maps(&Sample::new(kernel, rows.view())?, &request, |_| watch.checkpoint())
    }))?;
    let choices = plan.choices.iter().map(|choice| {
        json!({
            "map": choice.name,
            "spec": choice.spec,
            "n_components": choice.spec.n_components(),
            "predicted_error": choice.predicted,
            "closed_form": choice.closed_form,
            "seconds": choice.seconds,
            "map_bytes": choice.map_bytes,
            "feature_bytes": choice.feature_bytes,
        })
    });
    let shortfalls = plan.shortfalls.iter().map(|s| json!({"map": s.name, "reason": s.reason}));
    let value = json!({
        "choices": choices.collect::<Vec<_>>(),
        "shortfalls": shortfalls.collect::<Vec<_>>(),
        "verified": plan.verified.map(|measured| measured.errors),
    });
    Ok(value.to_string())
}
