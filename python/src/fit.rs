//! Fitting: rows stream through the core, the feature matrix is never made.

use crate::arrays::{Rows, Vector, in_precision};
use crate::data::{Data, Modelled};
use crate::detached::detached;
use crate::errors::{json, parse, to_python};
use crate::features::{Drawn, Map};
use crate::kernels::PyKernel;
use crate::models::PyModel;
use bochner::catalogue::{Domain, ModelEntry, Needs, Parameter, Value};
use bochner::feature::{Description, Spec};
use bochner::model::kinds::GpRegressorSpec;
use bochner::model::{Basis, FitRequest, OperatorBasis};
use bochner::random::Seed;
use bochner::tune::EvidenceSearch;
use bochner::{Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// What a model is made of besides its parameters.
#[derive(Debug)]
enum On {
    Map(Py<Map>),
    Described(Description),
    Operator(OperatorBasis),
    Nothing,
}

/// What is to be fitted, and on what.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) fit: FitRequest,
    on: On,
}

/// What is said about a word that a parameter cannot be, as Python writes words.
fn quoted(parameter: &Parameter, value: &Value) -> Option<Error> {
    let Value::Word(word) = value else { return None };
    let expected = match parameter.domain {
        Domain::Word(choices) => {
            let words: Vec<String> = choices.iter().map(|choice| format!("{:?}", choice.name)).collect();
            let (last, others) = words.split_last()?;
            format!("{} or {last}", others.join(", "))
        }
        number if number.contains(&Value::Real(1.0)) => "a number".into(),
        _ => return None,
    };
    Some(Error::Parameter { name: parameter.name, expected: expected.into(), found: format!("{word:?}") })
}

impl Request {
    /// `on` is a map, or JSON of a kernel; `parameters` are JSON, by the names of the catalogue.
    pub(crate) fn new(
        kind: &str,
        on: &Bound<'_, PyAny>,
        parameters: &str,
        classes: Option<usize>,
        seed: u64,
    ) -> PyResult<Self> {
        let kind = ModelEntry::named(kind).map_err(to_python)?;
        let mut fit = kind.request().with_classes(classes).with_seed(Seed::new(seed));
        for (name, value) in parse::<BTreeMap<String, Value>>(parameters)? {
            let parameter = kind.entry.parameter(&name).map_err(to_python)?;
            let said = |error| to_python(quoted(parameter, &value).unwrap_or(error));
            fit = fit.with(&name, value.clone()).map_err(said)?;
        }
        let on = match (on.cast::<Map>(), on.extract::<&str>(), kind.needs) {
            (Ok(map), ..) => On::Map(map.clone().unbind()),
            (_, Ok(text), Needs::Operator) => On::Operator(parse(text)?),
            (_, Ok(text), Needs::OperatorKernel) => On::Described(Description::OperatorKernel(parse(text)?)),
            (_, Ok(text), _) => On::Described(Description::Kernel(PyKernel::parse(text)?)),
            _ if on.is_none() => On::Nothing,
            _ => return Err(PyTypeError::new_err("expected a Map, or a kernel in JSON")),
        };
        Ok(Request { fit, on })
    }

    pub(crate) fn basis<R: Modelled>(&self) -> Result<Basis<R>> {
        Ok(match &self.on {
            On::Map(map) => match map.get().drawn::<R>()? {
                Drawn::Real(map) => Basis::Map(map.clone()),
                Drawn::Complex(map) => Basis::ComplexMap(map.clone()),
            },
            On::Described(description) => Basis::Described(description.clone()),
            On::Operator(operator) => Basis::Operator(operator.clone()),
            On::Nothing => Basis::Nothing,
        })
    }
}

/// Fits a model of any kind of the catalogue to rows, targets (or numbers of classes) and weights of one dtype.
///
/// `on` is the map, the kernel in JSON, or None; `parameters` are JSON, by the names of the catalogue; `progress` is called
/// with the rows read.
#[pyfunction]
#[pyo3(signature = (kind, on, x, targets, weights, parameters, classes=None, seed=0, n_jobs=None, progress=None))]
#[pyo3(
    text_signature = "(kind, on, X, targets, weights, parameters, classes=None, seed=0, n_jobs=None, progress=None)"
)]
fn fit(
    py: Python<'_>,
    kind: &str,
    on: &Bound<'_, PyAny>,
    x: Rows<'_>,
    targets: Rows<'_>,
    weights: Option<Vector<'_>>,
    parameters: &str,
    classes: Option<usize>,
    seed: u64,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyModel> {
    let request = Request::new(kind, on, parameters, classes, seed)?;
    let model = in_precision!(x, |rows: R| {
        let mut data = Data::new(rows, &targets, weights.as_ref())?;
        detached(py, n_jobs, progress, |watch| {
            request.fit.fit(&request.basis::<R>()?, &mut data, &mut watch.context(None)?)
        })?
    });
    Ok(model.into())
}

/// Mean negative log likelihoods of held-out labels for several values of the alpha of a `gp_classifier`.
#[pyfunction]
#[pyo3(signature = (map, x, labels, held_out, held_out_labels, parameters, alphas, classes, seed=0, n_jobs=None))]
#[pyo3(
    text_signature = "(map, X, labels, held_out, held_out_labels, parameters, alphas, classes, seed=0, n_jobs=None)"
)]
fn validate(
    py: Python<'_>,
    map: &Bound<'_, PyAny>,
    x: Rows<'_>,
    labels: Rows<'_>,
    held_out: Rows<'_>,
    held_out_labels: Rows<'_>,
    parameters: &str,
    alphas: Vec<f64>,
    classes: usize,
    seed: u64,
    n_jobs: Option<i64>,
) -> PyResult<Vec<f64>> {
    let request = Request::new("gp_classifier", map, parameters, Some(classes), seed)?;
    in_precision!(x, |rows: R| {
        let held_out = R::table(&held_out).ok_or_else(|| PyTypeError::new_err("rows must be of one dtype"))?.view()?;
        let mut train = Data::new(rows, &labels, None)?;
        let mut test = Data::new(held_out, &held_out_labels, None)?;
        detached(py, n_jobs, None, |watch| {
            request.fit.losses(&alphas, &request.basis::<R>()?, &mut train, &mut test, &mut watch.context(None)?)
        })
    })
}

/// Length scales, signal and noise of a `gp_regressor` by maximum marginal likelihood: JSON in, JSON out.
#[pyfunction]
#[pyo3(signature = (spec, x, targets, parameters, complex=false, n_jobs=None, progress=None))]
#[pyo3(text_signature = "(spec, X, targets, parameters, complex=False, n_jobs=None, progress=None)")]
fn maximize_evidence(
    py: Python<'_>,
    spec: &str,
    x: Rows<'_>,
    targets: Rows<'_>,
    parameters: &str,
    complex: bool,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let spec: Spec = parse(spec)?;
    let request = Request::new("gp_regressor", py.None().bind(py), parameters, None, 0)?;
    let plan: GpRegressorSpec = request.fit.spec().map_err(to_python)?;
    let (scales, normalised) = (plan.length_scales, plan.normalize_y);
    let mut search = EvidenceSearch { scales, rows: plan.max_rows, normalised, complex, ..EvidenceSearch::default() };
    search.lbfgs.max_evaluations = plan.max_iter;
    let (rows, targets) = in_precision!(x, |rows: R| Data::new(rows, &targets, None)?.wide().map_err(to_python)?);
    let tuned = detached(py, n_jobs, progress, |watch| {
        let mut step = |at: bochner::tune::Step| {
            watch.reach(at.evaluations, None);
            watch.checkpoint()
        };
        search.run(&spec, plan.signal, plan.noise, rows.view(), targets.view(), &mut step)
    })?;
    json(&serde_json::json!({
        "spec": tuned.spec,
        "signal": tuned.signal_variance,
        "noise": tuned.noise_variance,
        "log_marginal_likelihood": tuned.log_marginal_likelihood,
        "evaluations": tuned.evaluations,
        "converged": tuned.converged,
    }))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyModel>()?;
    module.add_function(wrap_pyfunction!(fit, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(maximize_evidence, module)?)
}
