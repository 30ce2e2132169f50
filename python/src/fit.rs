//! Fitting: rows stream through the core, the feature matrix is never made.

use crate::arrays::{Rows, Vector, in_precision};
use crate::data::{Data, Modelled};
use crate::detached::{Watch, detached};
use crate::errors::{field, json, parse, to_python};
use crate::features::{Drawn, Map};
use crate::kernels::PyKernel;
use crate::models::PyModel;
use crate::operator::Operator;
use bochner::catalogue::{Domain, ModelEntry, Parameter, Value};
use bochner::feature::{DynMap, FeatureMap, MaclaurinSpec, Spec};
use bochner::kernel::{AnyKernel, OperatorKernel};
use bochner::model::exact::{ExactGpClassifier, ExactGpRegressor, KernelRidge};
use bochner::model::kinds::{
    ExactGpClassifierSpec, ExactGpRegressorSpec, ExactOperatorRidgeSpec, GpClassifierSpec, GpRegressorSpec,
    KernelRidgeSpec, KernelSvmSpec, LengthScaleSearch, LocalGpSpec, RidgeSolverName, RidgeSpec, SvmSpec,
};
use bochner::model::{
    ExactOperatorRidge, Fit, Fitted, GpClassifier, GpRegressor, KernelSvm, LocalGp, Model, Ridge, RidgeClassifier,
    SviClassifier, Svm,
};
use bochner::random::Seed;
use bochner::rows::RowSource;
use bochner::solve::{ConjugateGradients, Solver, StochasticGradient};
use bochner::tune::{EvidenceSearch, Scales};
use bochner::{Context, Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a model is made of besides its parameters.
#[derive(Debug)]
pub(crate) enum On {
    Map(Py<Map>),
    Kernel(AnyKernel),
    OperatorKernel(OperatorKernel),
    Operator(Operator),
    Nothing,
}

/// What is to be fitted.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) entry: &'static ModelEntry,
    on: On,
    parameters: String,
    pub(crate) classes: Option<usize>,
    pub(crate) seed: u64,
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
        let entry = ModelEntry::named(kind).map_err(to_python)?;
        let values: BTreeMap<String, Value> = parse(parameters)?;
        let check = |(name, value): (&String, &Value)| {
            let parameter = entry.entry.parameter(name)?;
            parameter.check(value).map_err(|error| quoted(parameter, value).unwrap_or(error))
        };
        values.iter().try_for_each(check).map_err(to_python)?;
        let on = match (on.cast::<Map>(), on.extract::<&str>(), entry.entry.name) {
            (Ok(map), ..) => On::Map(map.clone().unbind()),
            (_, Ok(text), "operator_ridge" | "operator_ridge_classifier") => On::Operator(parse(text)?),
            (_, Ok(text), "exact_operator_ridge") => On::OperatorKernel(parse(text)?),
            (_, Ok(text), _) => On::Kernel(PyKernel::parse(text)?),
            _ if on.is_none() => On::Nothing,
            _ => return Err(PyTypeError::new_err("expected a Map, or a kernel in JSON")),
        };
        Ok(Request { entry, on, parameters: parameters.to_owned(), classes, seed })
    }

    pub(crate) fn spec<S: DeserializeOwned>(&self) -> Result<S> {
        serde_json::from_str(&self.parameters).map_err(|error| match field(&self.parameters, &error) {
            Some((name, expected, found)) => match self.entry.entry.parameter(&name) {
                Ok(known) => Error::Parameter { name: known.name, expected: expected.into(), found },
                Err(unknown) => unknown,
            },
            None => Error::Format { what: "parameters", detail: error.to_string() },
        })
    }

    pub(crate) fn map(&self) -> Result<&Map> {
        match &self.on {
            On::Map(map) => Ok(map.get()),
            _ => Err(self.lacks("a map")),
        }
    }

    pub(crate) fn operator(&self) -> Result<&Operator> {
        match &self.on {
            On::Operator(operator) => Ok(operator),
            _ => Err(self.lacks("an operator-valued kernel")),
        }
    }

    fn kernel(&self) -> Result<AnyKernel> {
        match &self.on {
            On::Kernel(kernel) => Ok(kernel.clone()),
            _ => Err(self.lacks("a kernel")),
        }
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Unsupported { what: "fit", reason: format!("{} needs {what}", self.entry.entry.title) }
    }

    fn n_classes(&self) -> Result<usize> {
        self.classes.ok_or_else(|| self.lacks("the number of classes"))
    }

    fn seed(&self) -> Seed {
        Seed::new(self.seed)
    }

    pub(crate) fn ridge<R: Modelled>(&self, map: DynMap<R>) -> Result<Ridge<DynMap<R>>> {
        let spec: RidgeSpec = self.spec()?;
        let solver = match spec.solver {
            RidgeSolverName::Auto => Solver::Auto,
            RidgeSolverName::Cholesky => Solver::Cholesky,
            RidgeSolverName::Dual => Solver::Dual,
            RidgeSolverName::ConjugateGradients => {
                let defaults = ConjugateGradients::default();
                let max_iterations = spec.max_iter.unwrap_or(defaults.max_iterations);
                Solver::ConjugateGradients(ConjugateGradients { tolerance: spec.tol, max_iterations, ..defaults })
            }
            RidgeSolverName::StochasticGradient => {
                let defaults = StochasticGradient::default();
                let passes = spec.max_iter.unwrap_or(defaults.passes);
                Solver::StochasticGradient(StochasticGradient { passes, ..defaults })
            }
        };
        Ok(Ridge::new(map, spec.alpha)?.with_intercept(spec.fit_intercept).with_solver(solver))
    }

    pub(crate) fn regressor<M: FeatureMap>(&self, map: M) -> Result<GpRegressor<M>> {
        let spec: GpRegressorSpec = self.spec()?;
        let process = GpRegressor::new(map, spec.noise)?.with_signal_variance(spec.signal)?;
        Ok(process.with_normalized_targets(spec.normalize_y))
    }

    pub(crate) fn classifier<M: FeatureMap>(&self, map: M) -> Result<GpClassifier<M>> {
        let spec: GpClassifierSpec = self.spec()?;
        let alpha = match &spec.alpha {
            Value::List(values) => values.first().and_then(Value::number),
            value => value.number(),
        };
        let mut process = GpClassifier::new(map, alpha.unwrap_or(f64::NAN))?.with_samples(spec.n_draws, self.seed())?;
        if let Some(classes) = self.classes {
            process = process.with_classes(classes)?;
        }
        match spec.signal {
            Some(signal) => process.with_signal_variance(signal),
            None => Ok(process),
        }
    }

    fn variational<R: Modelled>(&self, map: DynMap<R>) -> Result<SviClassifier<DynMap<R>>> {
        /// Draws of a latent value in a step.
        const DRAWS: usize = 8;
        /// Variance of the processes unless told.
        const SIGNAL: f64 = 30.0;
        let spec: GpClassifierSpec = self.spec()?;
        SviClassifier::new(map, spec.signal.unwrap_or(SIGNAL))?
            .with_passes(spec.max_iter)?
            .with_rate(spec.learning_rate)?
            .with_draws(DRAWS, self.seed())?
            .with_classes(self.n_classes()?)
    }

    fn svm<R: Modelled>(&self, map: DynMap<R>) -> Result<(Svm<DynMap<R>>, Option<u64>)> {
        let spec: SvmSpec = self.spec()?;
        let svm = Svm::new(map, spec.C)?
            .with_loss(spec.loss)
            .with_tolerance(spec.tol)?
            .with_max_epochs(spec.max_iter)?
            .with_intercept(spec.fit_intercept.then_some(spec.intercept_scaling))?
            .with_seed(self.seed())
            .with_classes(self.n_classes()?)?;
        Ok((svm, spec.memory_budget))
    }

    fn local_gp(&self) -> Result<LocalGp> {
        let spec: LocalGpSpec = self.spec()?;
        let features = MaclaurinSpec {
            n_components: spec.n_components,
            length_scale: spec.length_scale,
            sketch: spec.sketch,
            weights: spec.weights,
            max_degree: spec.max_degree,
            seed: self.seed,
            ..Default::default()
        };
        let process = LocalGp::new(features, spec.noise)?
            .with_signal_variance(spec.signal_variance)?
            .with_threshold(spec.threshold.unwrap_or(f64::INFINITY))?;
        match spec.max_clusters {
            Some(most) => process.with_max_clusters(most),
            None => Ok(process),
        }
    }

    fn fit<R: Modelled>(&self, mut data: Data<'_, R>, watch: &Watch) -> Result<Model> {
        let mut context = watch.context(None)?;
        match self.entry.entry.name {
            "ridge" | "ridge_classifier" => {
                let ridge = self.ridge(self.map()?.real::<R>()?)?;
                let mut context = watch.context(self.spec::<RidgeSpec>()?.memory_budget)?;
                match self.classes {
                    None => fitted(&ridge, &mut data, &mut context),
                    Some(classes) => {
                        fitted(&RidgeClassifier::new(ridge).with_classes(classes)?, &mut data, &mut context)
                    }
                }
            }
            "svm" => {
                let (svm, budget) = self.svm(self.map()?.real::<R>()?)?;
                fitted(&svm, &mut data, &mut watch.context(budget)?)
            }
            "gp_regressor" => match self.map()?.drawn::<R>()? {
                Drawn::Real(map) => fitted(&self.regressor(map.clone())?, &mut data, &mut context),
                Drawn::Complex(map) => fitted(&self.regressor(map.clone())?, &mut data, &mut context),
            },
            "gp_classifier" => match self.map()?.drawn::<R>()? {
                Drawn::Real(map) => fitted(&self.classifier(map.clone())?, &mut data, &mut context),
                Drawn::Complex(map) => fitted(&self.classifier(map.clone())?, &mut data, &mut context),
            },
            "svi_classifier" => fitted(&self.variational(self.map()?.real::<R>()?)?, &mut data, &mut context),
            "operator_ridge" | "operator_ridge_classifier" => self.operator()?.fit(self, &mut data, &mut context),
            _ => self.fit_exact(&mut data.wide()?.source()?, watch),
        }
    }

    /// Kinds that know double precision only.
    fn fit_exact(&self, source: &mut dyn RowSource<f64>, watch: &Watch) -> Result<Model> {
        let mut context = watch.context(None)?;
        match self.entry.entry.name {
            "local_gp" => fitted(&self.local_gp()?, source, &mut context),
            "exact_kernel_ridge" => {
                let spec: KernelRidgeSpec = self.spec()?;
                let ridge = KernelRidge::new(Arc::new(self.kernel()?), spec.alpha)?;
                fitted(&ridge, source, &mut watch.context(spec.memory_budget)?)
            }
            "exact_gp_regressor" => {
                let spec: ExactGpRegressorSpec = self.spec()?;
                let process = ExactGpRegressor::new(Arc::new(self.kernel()?), spec.noise)?;
                let process = process.with_signal_variance(spec.signal)?.with_normalized_targets(spec.normalize_y);
                fitted(&process, source, &mut context)
            }
            "exact_gp_classifier" => {
                let spec: ExactGpClassifierSpec = self.spec()?;
                let mut process = ExactGpClassifier::new(Arc::new(self.kernel()?), spec.alpha)?
                    .with_classes(self.n_classes()?)?
                    .with_samples(spec.n_draws, self.seed())?;
                if let Some(signal) = spec.signal {
                    process = process.with_signal_variance(signal)?;
                }
                fitted(&process, source, &mut context)
            }
            "exact_operator_ridge" => {
                let On::OperatorKernel(kernel) = &self.on else { return Err(self.lacks("an operator-valued kernel")) };
                let spec: ExactOperatorRidgeSpec = self.spec()?;
                fitted(&ExactOperatorRidge::new(kernel.clone(), spec.alpha)?, source, &mut context)
            }
            "kernel_svm" => {
                let spec: KernelSvmSpec = self.spec()?;
                let mut svm = KernelSvm::new(self.kernel()?, spec.C)?.with_tolerance(spec.tol)?;
                if let Some(steps) = spec.max_iter {
                    svm = svm.with_max_steps(steps)?;
                }
                fitted(&svm, source, &mut watch.context(spec.memory_budget)?)
            }
            _ => Err(Error::Unsupported {
                what: "fit",
                reason: format!("{} cannot be fitted from Python yet", self.entry.entry.title),
            }),
        }
    }
}

pub(crate) fn fitted<F: Fit<Model: Fitted>>(
    what: &F,
    source: &mut dyn RowSource<F::Real>,
    context: &mut Context<'_>,
) -> Result<Model> {
    Ok(what.fit_stream(source, context)?.into())
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
        let data = Data::new(rows, &targets, weights.as_ref())?;
        detached(py, n_jobs, progress, |watch| request.fit(data, watch))?
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
            let (train, test, context) = (&mut train, &mut test, &mut watch.context(None)?);
            Ok(match request.map()?.drawn::<R>()? {
                Drawn::Real(map) => request.classifier(map.clone())?.validate(&alphas, train, test, context)?.losses,
                Drawn::Complex(map) => request.classifier(map.clone())?.validate(&alphas, train, test, context)?.losses,
            })
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
    let plan: GpRegressorSpec = request.spec().map_err(to_python)?;
    let scales = match plan.length_scales {
        LengthScaleSearch::Fixed => Scales::Fixed,
        LengthScaleSearch::Common => Scales::Common,
        LengthScaleSearch::PerInput => Scales::PerInput,
    };
    let (rows, normalised) = (plan.max_rows, plan.normalize_y);
    let mut search = EvidenceSearch { scales, rows, normalised, complex, ..EvidenceSearch::default() };
    search.lbfgs.max_evaluations = plan.max_iter;
    let data = in_precision!(x, |rows: R| Data::new(rows, &targets, None)?.wide().map_err(to_python)?);
    let tuned = detached(py, n_jobs, progress, |watch| {
        let mut step = |at: bochner::tune::Step| {
            watch.reach(at.evaluations, None);
            watch.checkpoint()
        };
        search.run(&spec, plan.signal, plan.noise, data.rows.view(), data.targets.view(), &mut step)
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
