//! Learning from targets: Fourier features, and whole tables.

use crate::arrays::{Rows, in_precision};
use crate::data::Data;
use crate::detached::{Watch, detached};
use crate::errors::{json, parse};
use bochner::Error;
use bochner::feature::{LearnedFourierSpec, Spec};
use bochner::tune::LearnFourier;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::fit::{self, Request};
use bochner_table::progress::{self, Progress};
use bochner_table::target::TargetScale;
use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::borrow::Cow;
use std::path::PathBuf;

/// Fourier features learned from rows and targets: JSON of the map's description, the losses on rows that judged, how much
/// columns count, and a penalty that suits a ridge regression.
#[pyfunction]
#[pyo3(signature = (spec, x, targets, n_jobs=None, progress=None))]
#[pyo3(text_signature = "(spec, X, targets, n_jobs=None, progress=None)")]
pub(crate) fn learn_fourier(
    py: Python<'_>,
    spec: &str,
    x: Rows<'_>,
    targets: Rows<'_>,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let spec: LearnedFourierSpec = parse(spec)?;
    let mut steps = 0;
    let found = in_precision!(x, |rows: R| {
        let data = Data::<R>::new(rows, &targets, None)?;
        let steps = &mut steps;
        detached(py, n_jobs, progress, |watch| {
            Spec::from(spec.clone()).check()?;
            let (rows, targets) = data.wide()?;
            LearnFourier::from(&spec).run(rows.view(), targets.view(), &mut |step| {
                *steps = step.done;
                watch.reach(step.done, Some(step.total));
                watch.checkpoint()
            })
        })
    })?;
    json(&serde_json::json!({
        "spec": Spec::from(found.spec), "losses": found.losses, "importances": found.importances, "penalty": found.penalty,
        "steps": steps,
    }))
}

/// What Python is told while a table is fitted, and where it asks to stop.
#[derive(Debug, Clone)]
struct Told(Watch);

impl Told {
    fn look(&self) -> Outcome {
        self.0.checkpoint().map_err(Failure::from)
    }
}

impl Progress for Told {
    fn at(&self, _what: Cow<'static, str>) -> Outcome {
        self.look()
    }

    fn done(&self, _steps: u64) -> Outcome {
        self.look()
    }

    fn read(&self) -> Outcome {
        self.look()
    }
}

impl progress::Watch for Told {
    fn steps(&self, _steps: u64) -> Box<dyn Progress> {
        Box::new(self.clone())
    }

    fn waiting(&self) -> Box<dyn Progress> {
        Box::new(self.clone())
    }

    fn reading(&self, _input: &bochner_table::read::Input, _what: &'static str) -> Outcome<Box<dyn Progress>> {
        Ok(Box::new(self.clone()))
    }
}

/// A model of a table in a file, as `bochner fit` makes it: the bytes of its file, and JSON about it.
#[pyfunction]
#[pyo3(signature = (path, target, task=None, budget=None, seed=0, n_jobs=None, target_scale=None))]
pub(crate) fn fit_table<'py>(
    py: Python<'py>,
    path: PathBuf,
    target: &str,
    task: Option<&str>,
    budget: Option<f64>,
    seed: u64,
    n_jobs: Option<i64>,
    target_scale: Option<&str>,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let mut request = Request { seed, ..Request::default() };
    if let Some(budget) = budget {
        request.budget = budget;
    }
    if let Some(scale) = target_scale {
        request.target_scale = parse(&format!("{scale:?}"))?;
    }
    if let Some(task) = task {
        request.task = Some(parse(&format!("{task:?}"))?);
    }
    let made = detached(py, n_jobs, None, |watch| {
        let told = Told(watch.clone());
        let fitted = fit::fit_watched(&path, target, &request, &told);
        match fitted {
            Ok(fitted) => Ok(Ok((fitted.model.model.to_bytes()?, fitted.to_json()))),
            Err(Failure::Interrupted) => Err(Error::Interrupted),
            Err(failure) => Ok(Err(failure.to_string())),
        }
    })?;
    let (bytes, about) = made.map_err(PyValueError::new_err)?;
    Ok((PyBytes::new(py, &bytes), json(&about)?))
}

/// A table model from the bytes of its file.
fn table_model(bytes: &[u8]) -> bochner::Result<bochner_table::model::TableModel> {
    bochner_table::model::TableModel::of(bochner::Model::from_bytes(bytes)?)
}

/// Ends of intervals around predictions of a model file: low and high, target by target.
#[pyfunction]
pub(crate) fn interval_ends<'py>(
    py: Python<'py>,
    bytes: &[u8],
    predicted: PyReadonlyArray2<'py, f64>,
    coverage: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let ends = table_model(bytes).and_then(|model| model.interval_ends(predicted.as_array(), coverage));
    Ok(PyArray2::from_owned_array(py, ends.map_err(crate::errors::to_python)?))
}

/// Sets of classes by their probabilities, of a model file: a one for each class of a row's set.
#[pyfunction]
pub(crate) fn class_sets<'py>(
    py: Python<'py>,
    bytes: &[u8],
    probabilities: PyReadonlyArray2<'py, f64>,
    coverage: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let sets = table_model(bytes).and_then(|model| model.class_sets(probabilities.as_array(), coverage));
    Ok(PyArray2::from_owned_array(py, sets.map_err(crate::errors::to_python)?))
}

/// Targets in their own units from what a model has learned, by their scales as a file has them.
#[pyfunction]
pub(crate) fn targets_of<'py>(
    py: Python<'py>,
    scales: &str,
    values: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let scales: Vec<TargetScale> = parse(scales)?;
    let mut values = values.as_array().to_owned();
    for (mut column, scale) in values.columns_mut().into_iter().zip(scales) {
        column.mapv_inplace(|v| scale.back(v));
    }
    Ok(PyArray2::from_owned_array(py, values))
}
