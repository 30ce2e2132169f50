//! Fitting: rows stream through the core, the feature matrix is never made.

use crate::arrays::{Rows, Vector, in_precision};
use crate::data::{Data, Modelled};
use crate::detached::detached;
use crate::errors::{json, parse, to_python};
use crate::features::{Drawn, Map};
use crate::kernels::PyKernel;
use crate::models::PyModel;
use bochner::catalogue::{Domain, ModelEntry, Needs, Parameter, Value};
use bochner::feature::{Description, OperatorSpec};
use bochner::kernel::{AnyKernel, OperatorKernel};
use bochner::model::kinds::{
    ExactGpClassifierSpec, ExactGpRegressorSpec, GpClassifierSpec, GpRegressorSpec, LocalGpSpec, OperatorGpSpec,
};
use bochner::model::{Basis, FitRequest, OperatorBasis};
use bochner::preprocess::LengthScale;
use bochner::random::Seed;
use bochner::tune::{EvidenceSearch, OperatorEvidence};
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

/// Numbers of classes from targets.
fn labels(targets: &ndarray::Array2<f64>) -> Vec<usize> {
    targets.iter().map(|label| *label as usize).collect()
}

/// The first of several values of alpha.
fn first(alpha: &Value) -> f64 {
    match alpha {
        Value::List(values) => values.first().and_then(Value::number).unwrap_or(f64::NAN),
        value => value.number().unwrap_or(f64::NAN),
    }
}

/// Hyperparameters of a process by maximum marginal likelihood: JSON in, JSON out.
///
/// `on` is the description of a map, or that of a kernel for exact and local processes and those of fields; `seed` is that of the
/// features of the last.
#[pyfunction]
#[pyo3(signature = (kind, on, x, targets, parameters, complex=false, seed=0, n_jobs=None, progress=None))]
#[pyo3(text_signature = "(kind, on, X, targets, parameters, complex=False, seed=0, n_jobs=None, progress=None)")]
fn maximize_evidence(
    py: Python<'_>,
    kind: &str,
    on: &str,
    x: Rows<'_>,
    targets: Rows<'_>,
    parameters: &str,
    complex: bool,
    seed: u64,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let request = Request::new(kind, py.None().bind(py), parameters, None, 0)?;
    let (rows, targets) = in_precision!(x, |rows: R| Data::new(rows, &targets, None)?.wide().map_err(to_python)?);
    let search = |scales, rows, evaluations, nu: bool| {
        let mut search = EvidenceSearch { scales, rows, complex, ..EvidenceSearch::default() };
        search.lbfgs.max_evaluations = evaluations;
        if nu {
            search.smoothness = vec![0.5, 1.5, 2.5];
        }
        search
    };
    let found = detached(py, n_jobs, progress, |watch| {
        let mut step = |at: bochner::tune::Step| {
            watch.reach(at.evaluations, None);
            watch.checkpoint()
        };
        let (rows, view) = (rows.view(), targets.view());
        match kind {
            "gp_regressor" => {
                let plan: GpRegressorSpec = request.fit.spec()?;
                let mut search = search(plan.length_scales, plan.max_rows, plan.max_iter, plan.search_nu);
                search.normalised = plan.normalize_y;
                search.run(&read(on)?, plan.signal, plan.noise, rows, view, &mut step).map(of_map)
            }
            "gp_classifier" => {
                let plan: GpClassifierSpec = request.fit.spec()?;
                let search = search(plan.length_scales, plan.max_rows, plan.max_evaluations, plan.search_nu);
                let alpha = first(&plan.alpha);
                search.run_classes(&read(on)?, alpha, plan.signal, rows, &labels(&targets), &mut step).map(of_map)
            }
            "exact_gp_regressor" => {
                let plan: ExactGpRegressorSpec = request.fit.spec()?;
                let mut search = search(plan.length_scales, plan.max_rows, plan.max_iter, plan.search_nu);
                search.normalised = plan.normalize_y;
                let given = (plan.signal, plan.noise);
                search.run_exact(&read(on)?, &plan.length_scale, given, rows, view, &mut step).map(of_kernel)
            }
            "exact_gp_classifier" => {
                let plan: ExactGpClassifierSpec = request.fit.spec()?;
                let search = search(plan.length_scales, plan.max_rows, plan.max_iter, plan.search_nu);
                let given = (plan.alpha, plan.signal);
                let labels = labels(&targets);
                search.run_exact_classes(&read(on)?, &plan.length_scale, given, rows, &labels, &mut step).map(of_kernel)
            }
            "local_gp" => {
                let plan: LocalGpSpec = request.fit.spec()?;
                let search = search(plan.length_scales, plan.max_rows, plan.max_iter, false);
                let scale = plan.length_scale.resolve(rows, Seed::new(0))?;
                // Variances of a local process are in units of the targets, those of a search in units of their variance.
                let deviation = targets.std_axis(ndarray::Axis(0), 0.0).mean().unwrap_or(1.0);
                let unit = if deviation > 0.0 { deviation * deviation } else { 1.0 };
                let given = (plan.signal_variance / unit, plan.noise / unit);
                let kernel = bochner::kernel::Gaussian::new(1.0)?.into();
                let mut tuned = search.run_exact(&kernel, &scale, given, rows, view, &mut step)?;
                tuned.signal_variance *= unit;
                tuned.noise_variance *= unit;
                // All of the length scale divides rows.
                let AnyKernel::Gaussian(own) = &tuned.kernel else { return Ok(of_kernel(tuned)) };
                if own.length_scale() != 1.0 {
                    tuned.length_scale = LengthScale::Same(own.length_scale());
                }
                Ok(of_kernel(tuned))
            }
            "operator_gp" => {
                let plan: OperatorGpSpec = request.fit.spec()?;
                let kernel: OperatorKernel = read(on)?;
                let (n_components, projection, seed) = (plan.n_components, plan.projection, seed);
                let spec = OperatorSpec { kernel, n_components, projection, seed };
                let mut search = OperatorEvidence { scales: plan.length_scales, ..OperatorEvidence::default() };
                (search.rows, search.lbfgs.max_evaluations) = (plan.max_rows, plan.max_iter);
                search.normalised = plan.normalize_y;
                search.run(&spec, plan.signal, plan.noise, rows, view, &mut step).map(of_operator)
            }
            other => Err(Error::Unsupported { what: "kind", reason: format!("{other} has no search") }),
        }
    })?;
    json(&found)
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| Error::Format { what: "description", detail: e.to_string() })
}

fn of_map(tuned: bochner::tune::Tuned) -> serde_json::Value {
    serde_json::json!({
        "spec": tuned.spec,
        "signal": tuned.signal_variance,
        "noise": tuned.noise_variance,
        "log_marginal_likelihood": tuned.log_marginal_likelihood,
        "evaluations": tuned.evaluations,
        "converged": tuned.converged,
        "searched": tuned.searched,
        "fixed": tuned.fixed,
    })
}

fn of_operator(tuned: bochner::tune::OperatorTuned) -> serde_json::Value {
    serde_json::json!({
        "kernel": tuned.kernel,
        "signal": tuned.signal_variance,
        "noise": tuned.noise_variance,
        "log_marginal_likelihood": tuned.log_marginal_likelihood,
        "evaluations": tuned.evaluations,
        "converged": tuned.converged,
        "searched": tuned.searched,
        "fixed": tuned.fixed,
    })
}

fn of_kernel(tuned: bochner::tune::ExactTuned) -> serde_json::Value {
    serde_json::json!({
        "kernel": tuned.kernel,
        "length_scale": tuned.length_scale,
        "signal": tuned.signal_variance,
        "noise": tuned.noise_variance,
        "log_marginal_likelihood": tuned.log_marginal_likelihood,
        "evaluations": tuned.evaluations,
        "converged": tuned.converged,
        "searched": tuned.searched,
        "fixed": tuned.fixed,
    })
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyModel>()?;
    module.add_function(wrap_pyfunction!(fit, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(maximize_evidence, module)?)
}
