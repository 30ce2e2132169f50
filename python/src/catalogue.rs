//! What the core says of maps, kernels and their parameters.

use crate::errors::to_python;
use bochner::catalogue as core;
use bochner::catalogue::{Entry, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The catalogue as JSON: `maps`, `kernels` and `operator_kernels`, with parameters, defaults, domains and sentences.
#[pyfunction]
pub(crate) fn catalogue() -> String {
    core::to_json().to_string()
}

/// Refuses the first of `values` (JSON, by name) that is outside the domain of its parameter.
#[pyfunction]
pub(crate) fn check(kind: &str, name: &str, values: &str) -> PyResult<()> {
    let entries: Vec<&Entry> = match kind {
        "maps" => core::maps().collect(),
        "kernels" => core::kernels().collect(),
        "operator_kernels" => core::operator_kernels().collect(),
        _ => Vec::new(),
    };
    let wrong = |what: String| PyValueError::new_err(what);
    let entry = entries.into_iter().find(|entry| entry.is_called(name));
    let entry = entry.ok_or_else(|| wrong(format!("the catalogue has no {name} among its {kind}")))?;
    let values: BTreeMap<String, Value> = serde_json::from_str(values).map_err(|error| wrong(error.to_string()))?;
    values.iter().try_for_each(|(name, value)| entry.parameter(name)?.check(value)).map_err(to_python)
}
