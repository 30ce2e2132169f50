//! Gaussian processes on features, and the exact references.

use crate::arrays::{Precision, Rows, Vector, View, in_precision, is_single, to_numpy};
use crate::detached::{Watch, detached};
use crate::errors::to_python;
use crate::features::{Drawn, Map};
use crate::files::{ModelFile, described};
use crate::kernels::PyKernel;
use crate::models::{Data, Two, as_alpha, as_in_fit, either, in_dtype, one_dtype, parse, with_data};
use bochner::accumulate::{ClassGram, Gram};
use bochner::feature::{DynComplexMap, DynMap, Spec};
use bochner::kernel::Kernel;
use bochner::model::exact::{
    ExactGpClassifier, ExactGpClassifierModel, ExactGpRegressor, ExactGpRegressorModel, KernelRidge, KernelRidgeModel,
};
use bochner::model::{
    Fit, GpClassifier, GpClassifierModel, GpRegressor, GpRegressorModel, Predict, SviClassifier, SviClassifierModel,
};
use bochner::random::Seed;
use bochner::rows::InMemory;
use bochner::tune::{EvidenceSearch, Scales};
use bochner::{Complex, Error, Result};
use ndarray::{Array2, ArrayView2};
use numpy::PyArray3;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// What a regression is to do, as Python describes it.
#[derive(Debug, Clone, serde::Deserialize)]
struct Regression {
    noise: f64,
    signal: f64,
    normalize_y: bool,
}

/// What a classification is to do.
#[derive(Debug, Clone, serde::Deserialize)]
struct Classification {
    alpha: f64,
    signal: Option<f64>,
    classes: usize,
    n_samples: usize,
    seed: u64,
}

/// What a variational classification is to do.
#[derive(Debug, Clone, serde::Deserialize)]
struct Variational {
    signal: f64,
    classes: usize,
    max_iter: usize,
    learning_rate: f64,
    seed: u64,
}

/// How hyperparameters are searched for.
#[derive(Debug, Clone, serde::Deserialize)]
struct Tuning {
    noise: f64,
    signal: f64,
    normalize_y: bool,
    complex: bool,
    scales: String,
    max_rows: usize,
    max_iter: usize,
}

/// The core's names of arguments in Python's words.
fn renamed(error: Error) -> Error {
    match error {
        Error::Parameter { name: "noise variance", expected, found } => {
            Error::Parameter { name: "noise", expected, found }
        }
        Error::Parameter { name: "signal variance", expected, found } => {
            Error::Parameter { name: "signal", expected, found }
        }
        Error::Parameter { name: "passes", expected, found } => Error::Parameter { name: "max_iter", expected, found },
        Error::Parameter { name: "rate", expected, found } => {
            Error::Parameter { name: "learning_rate", expected, found }
        }
        other => other,
    }
}

impl Variational {
    fn fit<R: Precision>(
        &self,
        map: DynMap<R>,
        mut data: Data<'_, R>,
        watch: &Watch,
    ) -> Result<SviClassifierModel<DynMap<R>>> {
        SviClassifier::new(map, self.signal)
            .and_then(|process| process.with_classes(self.classes))
            .and_then(|process| process.with_passes(self.max_iter))
            .and_then(|process| process.with_rate(self.learning_rate))
            .and_then(|process| process.with_draws(DRAWS, Seed::new(self.seed)))
            .and_then(|process| process.fit_stream(&mut data, &mut watch.context(None)?))
            .map_err(renamed)
    }
}

/// Draws of a latent value in a step.
const DRAWS: usize = 8;

impl Regression {
    fn on<M: bochner::feature::FeatureMap>(&self, map: M) -> Result<GpRegressor<M>> {
        let process = GpRegressor::new(map, self.noise).and_then(|process| process.with_signal_variance(self.signal));
        Ok(process.map_err(renamed)?.with_normalised_targets(self.normalize_y))
    }

    fn exact(&self, kernel: Arc<dyn Kernel>) -> Result<ExactGpRegressor> {
        let process = ExactGpRegressor::new(kernel, self.noise);
        let process = process.and_then(|process| process.with_signal_variance(self.signal));
        Ok(process.map_err(renamed)?.with_normalised_targets(self.normalize_y))
    }
}

impl Classification {
    fn on<M: bochner::feature::FeatureMap>(&self, map: M) -> Result<GpClassifier<M>> {
        let mut process = GpClassifier::new(map, self.alpha)?
            .with_classes(self.classes)?
            .with_samples(self.n_samples, Seed::new(self.seed))?;
        if let Some(signal) = self.signal {
            process = process.with_signal_variance(signal).map_err(renamed)?;
        }
        Ok(process)
    }

    fn exact(&self, kernel: Arc<dyn Kernel>) -> Result<ExactGpClassifier> {
        let mut process = ExactGpClassifier::new(kernel, self.alpha)?
            .with_classes(self.classes)?
            .with_samples(self.n_samples, Seed::new(self.seed))?;
        if let Some(signal) = self.signal {
            process = process.with_signal_variance(signal).map_err(renamed)?;
        }
        Ok(process)
    }
}

/// A generic type in both precisions and for both kinds of features.
#[derive(Debug, Clone)]
enum Four<A, B, C, D> {
    Single(A),
    Double(B),
    ComplexSingle(C),
    ComplexDouble(D),
}

type Regressor = Four<
    GpRegressorModel<DynMap<f32>>,
    GpRegressorModel<DynMap<f64>>,
    GpRegressorModel<DynComplexMap<f32>>,
    GpRegressorModel<DynComplexMap<f64>>,
>;
type Classifier = Four<
    GpClassifierModel<DynMap<f32>>,
    GpClassifierModel<DynMap<f64>>,
    GpClassifierModel<DynComplexMap<f32>>,
    GpClassifierModel<DynComplexMap<f64>>,
>;
type Grams = Four<Gram<f32>, Gram<f64>, Gram<Complex<f32>>, Gram<Complex<f64>>>;
type ClassGrams = Four<ClassGram<f32>, ClassGram<f64>, ClassGram<Complex<f32>>, ClassGram<Complex<f64>>>;

impl<A, B, C, D> Four<A, B, C, D> {
    fn dtype(&self) -> &'static str {
        match self {
            Four::Single(_) | Four::ComplexSingle(_) => "float32",
            Four::Double(_) | Four::ComplexDouble(_) => "float64",
        }
    }
}

/// Runs the body with `$value` the value of any of the four, and `$R` its precision.
macro_rules! each {
    ($four:expr, |$value:ident: $R:ident| $body:expr) => {
        match $four {
            Four::Single($value) => {
                #[allow(dead_code)]
                type $R = f32;
                $body
            }
            Four::Double($value) => {
                #[allow(dead_code)]
                type $R = f64;
                $body
            }
            Four::ComplexSingle($value) => {
                #[allow(dead_code)]
                type $R = f32;
                $body
            }
            Four::ComplexDouble($value) => {
                #[allow(dead_code)]
                type $R = f64;
                $body
            }
        }
    };
}

/// Makes one of the four from a map: `$body` sees the drawn map.
macro_rules! make {
    ($map:expr, $single:expr, |$drawn:ident| $body:expr) => {
        if $single {
            match $map.drawn::<f32>()? {
                Drawn::Real($drawn) => Four::Single($body),
                Drawn::Complex($drawn) => Four::ComplexSingle($body),
            }
        } else {
            match $map.drawn::<f64>()? {
                Drawn::Real($drawn) => Four::Double($body),
                Drawn::Complex($drawn) => Four::ComplexDouble($body),
            }
        }
    };
}

/// Fits `$plan` to rows on a map's features, whatever their numbers are.
macro_rules! fitted {
    ($plan:expr, $map:expr, $data:expr, $watch:expr, $R:ident, $real:ident, $complex:ident) => {
        Ok(match $map.drawn::<$R>()? {
            Drawn::Real(map) => {
                Four::$real($plan.on(map.clone())?.fit_stream(&mut { $data }, &mut $watch.context(None)?)?)
            }
            Drawn::Complex(map) => {
                Four::$complex($plan.on(map.clone())?.fit_stream(&mut { $data }, &mut $watch.context(None)?)?)
            }
        })
    };
}

/// Runs the body with sums and the map of the same numbers, and keeps its value.
macro_rules! paired {
    ($map:expr, $sums:expr, |$gram:ident, $drawn:ident| $body:expr) => {
        match $sums {
            Four::Single($gram) => {
                let Drawn::Real($drawn) = $map.drawn::<f32>()? else { return Err(other_numbers()) };
                Four::Single($body)
            }
            Four::Double($gram) => {
                let Drawn::Real($drawn) = $map.drawn::<f64>()? else { return Err(other_numbers()) };
                Four::Double($body)
            }
            Four::ComplexSingle($gram) => {
                let Drawn::Complex($drawn) = $map.drawn::<f32>()? else { return Err(other_numbers()) };
                Four::ComplexSingle($body)
            }
            Four::ComplexDouble($gram) => {
                let Drawn::Complex($drawn) = $map.drawn::<f64>()? else { return Err(other_numbers()) };
                Four::ComplexDouble($body)
            }
        }
    };
}

/// Runs the body with a map of the named precision and kind of numbers.
macro_rules! with_map {
    ($map:expr, $R:ident, $kind:ident, |$drawn:ident| $body:expr) => {
        match $map.drawn::<$R>()? {
            Drawn::$kind($drawn) => $body,
            _ => Err(other_numbers()),
        }
    };
}

fn other_numbers() -> Error {
    Error::Unsupported { what: "sums", reason: "they are of another kind of numbers".into() }
}

/// Rows handled between two looks for signals.
const PIECE: usize = 1024;

/// Calls `job` with pieces of the rows, looking for signals in between.
fn pieces<R: Precision>(
    rows: View<'_, R>,
    watch: &Watch,
    mut job: impl FnMut(std::ops::Range<usize>, ArrayView2<'_, R>) -> Result<()>,
) -> Result<()> {
    let mut buffer = Vec::new();
    let step = PIECE.min(rows.most_rows());
    for start in (0..rows.nrows()).step_by(step) {
        watch.checkpoint()?;
        let range = start..(start + step).min(rows.nrows());
        job(range.clone(), rows.rows(range.clone(), &mut buffer)?).map_err(|error| match error {
            Error::NonFinite { what, row, column } => Error::NonFinite { what, row: row + range.start, column },
            other => other,
        })?;
    }
    Ok(())
}

/// A fitted Gaussian-process regression on features.
#[pyclass(frozen, name = "GpRegressorModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyGpRegressor {
    map: Py<Map>,
    model: Regressor,
}

#[pymethods]
impl PyGpRegressor {
    /// Fits to rows, targets and weights of one dtype; `plan` is JSON, `progress` is called with the rows read.
    #[staticmethod]
    #[pyo3(signature = (map, x, targets, weights, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(map, X, targets, weights, plan, n_jobs=None, progress=None)")]
    fn fit(
        py: Python<'_>,
        map: Py<Map>,
        x: Rows<'_>,
        targets: Rows<'_>,
        weights: Option<Vector<'_>>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (plan, drawn): (Regression, _) = (parse(plan)?, map.get());
        let model: Regressor = match with_data!(x, targets, weights, |data: R| data) {
            Two::Single(data) => {
                detached(py, n_jobs, progress, |watch| fitted!(plan, drawn, data, watch, f32, Single, ComplexSingle))
            }
            Two::Double(data) => {
                detached(py, n_jobs, progress, |watch| fitted!(plan, drawn, data, watch, f64, Double, ComplexDouble))
            }
        }?;
        Ok(PyGpRegressor { map, model })
    }

    /// The model of a file, on the given map or the one that the file describes.
    #[staticmethod]
    #[pyo3(signature = (file, map=None))]
    fn from_file(py: Python<'_>, file: &ModelFile, map: Option<Py<Map>>) -> PyResult<Self> {
        let (map, single) = (file.map(py, map)?, file.single()?);
        let load = || -> Result<Regressor> {
            Ok(make!(map.get(), single, |drawn| GpRegressorModel::from_stored(&file.stored, drawn.clone())?))
        };
        let model = load().map_err(to_python)?;
        Ok(PyGpRegressor { map, model })
    }

    /// The model as a file.
    fn to_file(&self) -> PyResult<ModelFile> {
        let description = described(self.map.get()).map_err(to_python)?;
        let stored = each!(&self.model, |model: R| model.to_stored(description));
        Ok(stored.map_err(to_python)?.into())
    }

    /// Means at the rows of `X`, one column per target; `X` has the dtype of the fit.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        each!(&self.model, |model: R| {
            let rows = as_in_fit::<R>(py, &x)?;
            let mean = detached(py, n_jobs, None, |watch| {
                let mut mean = Array2::zeros((rows.nrows(), model.output_dim()));
                pieces(rows, watch, |range, rows| model.predict_into(rows, mean.slice_mut(ndarray::s![range, ..])))?;
                Ok(mean)
            })?;
            Ok(to_numpy(py, mean))
        })
    }

    /// Means and variances at the rows of `X`, one column per target; noise is not included.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict_with_variance<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        each!(&self.model, |model: R| {
            let rows = as_in_fit::<R>(py, &x)?;
            let (mean, variance) = detached(py, n_jobs, None, |watch| {
                let shape = (rows.nrows(), model.output_dim());
                let (mut mean, mut variance) = (Array2::<R>::zeros(shape), Array2::<R>::zeros(shape));
                pieces(rows, watch, |range, rows| {
                    let (m, v) = model.predict_with_variance(rows)?;
                    mean.slice_mut(ndarray::s![range.clone(), ..]).assign(&m);
                    variance.slice_mut(ndarray::s![range, ..]).assign(&v);
                    Ok(())
                })?;
                Ok((mean, variance))
            })?;
            Ok((to_numpy(py, mean), to_numpy(py, variance)))
        })
    }

    /// Covariances between all pairs of rows of `X`, for one target.
    #[pyo3(signature = (x, target, n_jobs=None), text_signature = "($self, X, target, n_jobs=None)")]
    fn covariance<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        target: usize,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        each!(&self.model, |model: R| {
            let rows = as_in_fit::<R>(py, &x)?;
            let matrix = detached(py, n_jobs, None, |_| {
                let mut buffer = Vec::new();
                model.covariance(rows.rows(0..rows.nrows(), &mut buffer)?, target)
            })?;
            Ok(to_numpy(py, matrix))
        })
    }

    /// Functions drawn from the posterior at the rows of `X`: axes are rows, targets, samples.
    #[pyo3(signature = (x, n_samples, seed, n_jobs=None), text_signature = "($self, X, n_samples, seed, n_jobs=None)")]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        n_samples: usize,
        seed: u64,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        each!(&self.model, |model: R| {
            let rows = as_in_fit::<R>(py, &x)?;
            let samples = detached(py, n_jobs, None, |_| {
                let mut buffer = Vec::new();
                model.sample(rows.rows(0..rows.nrows(), &mut buffer)?, n_samples, Seed::new(seed))
            })?;
            Ok(PyArray3::from_owned_array(py, samples).into_any())
        })
    }

    /// Log marginal likelihood of the training targets.
    #[getter]
    fn log_marginal_likelihood(&self) -> f64 {
        each!(&self.model, |model: R| model.log_marginal_likelihood())
    }

    /// Variances of the noise of each target.
    #[getter]
    fn observation_variances(&self) -> Vec<f64> {
        each!(&self.model, |model: R| model.observation_variances())
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.model.dtype()
    }

    /// The map.
    #[getter]
    fn map(&self, py: Python<'_>) -> Py<Map> {
        self.map.clone_ref(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile, Py<Map>))> {
        let model = slf.get();
        Ok((slf.get_type().getattr("from_file")?, (model.to_file()?, model.map(slf.py()))))
    }
}

/// What is kept of rows: sums over features and targets, or over the features of every class.
#[derive(Debug, Clone)]
enum Kept {
    Targets(Grams),
    Classes(ClassGrams),
}

/// Sums from which processes are solved: rows may come in any number of calls.
#[pyclass(module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct GpSums {
    map: Py<Map>,
    kept: Kept,
}

#[pymethods]
impl GpSums {
    /// No rows yet, for `outputs` targets of type `dtype`, or for numbers of `classes` classes.
    #[new]
    #[pyo3(signature = (map, outputs, dtype, classes=None))]
    fn new(map: Py<Map>, outputs: usize, dtype: &str, classes: Option<usize>) -> PyResult<Self> {
        let (single, drawn) = (is_single(dtype)?, map.get());
        let (inputs, dim) = (drawn.input_dim(), drawn.output_dim());
        let make = || -> Result<Kept> {
            Ok(match classes {
                Some(classes) => Kept::Classes(make!(drawn, single, |_drawn| ClassGram::new(inputs, dim, classes)?)),
                None => Kept::Targets(make!(drawn, single, |_drawn| Gram::new(dim, outputs)?)),
            })
        };
        let kept = make().map_err(to_python)?;
        Ok(GpSums { map, kept })
    }

    /// Adds rows with their targets and weights. After an error the sums hold part of them and are of no use.
    #[pyo3(signature = (x, targets, weights, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "($self, X, targets, weights, n_jobs=None, progress=None)")]
    fn push(
        &mut self,
        py: Python<'_>,
        x: Rows<'_>,
        targets: Rows<'_>,
        weights: Option<Vector<'_>>,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        macro_rules! push {
            ($gram:ident, $R:ident, $kind:ident) => {{
                let mut data = Data::<$R>::new(&x, &targets, weights.as_ref())?;
                let drawn = self.map.get();
                detached(py, n_jobs, progress, |watch| match drawn.drawn::<$R>()? {
                    Drawn::$kind(map) => watch.context(None)?.read(&mut data, &mut |block| $gram.push_rows(map, block)),
                    _ => Err(other_numbers()),
                })
            }};
        }
        macro_rules! push_to {
            ($four:expr) => {
                match $four {
                    Four::Single(gram) => push!(gram, f32, Real),
                    Four::Double(gram) => push!(gram, f64, Real),
                    Four::ComplexSingle(gram) => push!(gram, f32, Complex),
                    Four::ComplexDouble(gram) => push!(gram, f64, Complex),
                }
            };
        }
        match &mut self.kept {
            Kept::Targets(four) => push_to!(four),
            Kept::Classes(four) => push_to!(four),
        }
    }

    /// Adds the rows of other sums over the same map.
    fn merge(&mut self, other: &Self) -> PyResult<()> {
        let drawn = self.map.get();
        macro_rules! same {
            ($own:expr, $other:expr, |$a:ident, $b:ident| $body:expr) => {
                match ($own, $other) {
                    (Four::Single($a), Four::Single($b)) => $body,
                    (Four::Double($a), Four::Double($b)) => $body,
                    (Four::ComplexSingle($a), Four::ComplexSingle($b)) => $body,
                    (Four::ComplexDouble($a), Four::ComplexDouble($b)) => $body,
                    _ => return Err(one_dtype()),
                }
            };
        }
        match (&mut self.kept, &other.kept) {
            (Kept::Targets(own), Kept::Targets(other)) => same!(own, other, |a, b| a.merge(b)).map_err(to_python),
            (Kept::Classes(own), Kept::Classes(other)) => {
                let merged = || -> Result<()> {
                    match (own, other) {
                        (Four::Single(a), Four::Single(b)) => with_map!(drawn, f32, Real, |map| a.merge(map, b)),
                        (Four::Double(a), Four::Double(b)) => with_map!(drawn, f64, Real, |map| a.merge(map, b)),
                        (Four::ComplexSingle(a), Four::ComplexSingle(b)) => {
                            with_map!(drawn, f32, Complex, |map| a.merge(map, b))
                        }
                        (Four::ComplexDouble(a), Four::ComplexDouble(b)) => {
                            with_map!(drawn, f64, Complex, |map| a.merge(map, b))
                        }
                        _ => Err(other_numbers()),
                    }
                };
                merged().map_err(to_python)
            }
            _ => Err(one_dtype()),
        }
    }

    /// Number of rows added.
    #[getter]
    fn count(&self) -> u64 {
        match &self.kept {
            Kept::Targets(four) => each!(four, |gram: R| gram.count()),
            Kept::Classes(four) => each!(four, |gram: R| gram.count()),
        }
    }

    /// The regression of all rows so far; the sums stay.
    #[pyo3(signature = (plan, n_jobs=None))]
    fn regressor(&self, py: Python<'_>, plan: &str, n_jobs: Option<i64>) -> PyResult<PyGpRegressor> {
        let (plan, drawn): (Regression, _) = (parse(plan)?, self.map.get());
        let Kept::Targets(sums) = &self.kept else { return Err(one_dtype()) };
        let model = detached(py, n_jobs, None, |_| {
            Ok::<Regressor, Error>(paired!(drawn, sums, |gram, map| {
                plan.on(map.clone())?.fit_moments(gram.clone().finish())?
            }))
        })?;
        Ok(PyGpRegressor { map: self.map.clone_ref(py), model })
    }

    /// The classification of all rows so far; the sums stay.
    #[pyo3(signature = (plan, n_jobs=None))]
    fn classifier(&self, py: Python<'_>, plan: &str, n_jobs: Option<i64>) -> PyResult<PyGpClassifier> {
        let (plan, drawn): (Classification, _) = (parse(plan)?, self.map.get());
        let Kept::Classes(sums) = &self.kept else { return Err(one_dtype()) };
        let model = detached(py, n_jobs, None, |_| {
            Ok::<Classifier, Error>(paired!(drawn, sums, |gram, map| {
                plan.on(map.clone())?.fit_moments(gram.clone().finish(map)?)?
            }))
        })?;
        Ok(PyGpClassifier { map: self.map.clone_ref(py), model: Classified::Dirichlet(model) })
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        GpSums { map: self.map.clone_ref(py), kept: self.kept.clone() }
    }

    /// The sums that were pickled as bytes.
    #[staticmethod]
    fn from_bytes(map: Py<Map>, bytes: &[u8], dtype: &str, classes: bool) -> PyResult<Self> {
        let (single, drawn) = (is_single(dtype)?, map.get());
        let load = || -> Result<Kept> {
            Ok(match classes {
                true => Kept::Classes(make!(drawn, single, |_drawn| ClassGram::from_bytes(bytes)?)),
                false => Kept::Targets(make!(drawn, single, |_drawn| Gram::from_bytes(bytes)?)),
            })
        };
        let kept = load().map_err(to_python)?;
        Ok(GpSums { map, kept })
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Py<Map>, Bound<'py, PyBytes>, &'static str, bool))> {
        let (py, own) = (slf.py(), slf.borrow());
        let (bytes, dtype, classes) = match &own.kept {
            Kept::Targets(four) => (each!(four, |gram: R| gram.to_bytes()), four.dtype(), false),
            Kept::Classes(four) => (each!(four, |gram: R| gram.to_bytes()), four.dtype(), true),
        };
        let bytes = PyBytes::new(py, &bytes.map_err(to_python)?);
        Ok((slf.get_type().getattr("from_bytes")?, (own.map.clone_ref(py), bytes, dtype, classes)))
    }
}

/// A classification by either kind of inference.
#[derive(Debug)]
enum Classified {
    Dirichlet(Classifier),
    Variational(Two<SviClassifierModel<DynMap<f32>>, SviClassifierModel<DynMap<f64>>>),
}

/// Runs the body with `$model` whatever classification it is, in precision `$R`.
macro_rules! classified {
    ($model:expr, |$value:ident: $R:ident| $body:expr) => {
        match $model {
            Classified::Dirichlet(four) => each!(four, |$value: $R| $body),
            Classified::Variational(Two::Single($value)) => {
                #[allow(dead_code)]
                type $R = f32;
                $body
            }
            Classified::Variational(Two::Double($value)) => {
                #[allow(dead_code)]
                type $R = f64;
                $body
            }
        }
    };
}

/// A fitted Gaussian-process classification on features.
#[pyclass(frozen, name = "GpClassifierModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyGpClassifier {
    map: Py<Map>,
    model: Classified,
}

#[pymethods]
impl PyGpClassifier {
    /// Fits to rows, numbers of classes and weights of one dtype; `plan` is JSON, `progress` is called with the rows read.
    #[staticmethod]
    #[pyo3(signature = (map, x, labels, weights, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(map, X, labels, weights, plan, n_jobs=None, progress=None)")]
    fn fit(
        py: Python<'_>,
        map: Py<Map>,
        x: Rows<'_>,
        labels: Rows<'_>,
        weights: Option<Vector<'_>>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (plan, drawn): (Classification, _) = (parse(plan)?, map.get());
        let model: Classifier = match with_data!(x, labels, weights, |data: R| data) {
            Two::Single(data) => {
                detached(py, n_jobs, progress, |watch| fitted!(plan, drawn, data, watch, f32, Single, ComplexSingle))
            }
            Two::Double(data) => {
                detached(py, n_jobs, progress, |watch| fitted!(plan, drawn, data, watch, f64, Double, ComplexDouble))
            }
        }?;
        Ok(PyGpClassifier { map, model: Classified::Dirichlet(model) })
    }

    /// As `fit`, by stochastic variational inference on real features.
    #[staticmethod]
    #[pyo3(signature = (map, x, labels, weights, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(map, X, labels, weights, plan, n_jobs=None, progress=None)")]
    fn fit_variational(
        py: Python<'_>,
        map: Py<Map>,
        x: Rows<'_>,
        labels: Rows<'_>,
        weights: Option<Vector<'_>>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (plan, drawn): (Variational, _) = (parse(plan)?, map.get());
        let model = with_data!(x, labels, weights, |data: R| detached(py, n_jobs, progress, |watch| {
            plan.fit(drawn.real::<R>()?, data, watch)
        })?);
        Ok(PyGpClassifier { map, model: Classified::Variational(model) })
    }

    /// Mean negative log likelihoods of held-out labels for several values of alpha.
    #[staticmethod]
    #[pyo3(signature = (map, x, labels, held_out, held_out_labels, plan, alphas, n_jobs=None))]
    #[pyo3(text_signature = "(map, X, labels, held_out, held_out_labels, plan, alphas, n_jobs=None)")]
    fn validate(
        py: Python<'_>,
        map: Py<Map>,
        x: Rows<'_>,
        labels: Rows<'_>,
        held_out: Rows<'_>,
        held_out_labels: Rows<'_>,
        plan: &str,
        alphas: Vec<f64>,
        n_jobs: Option<i64>,
    ) -> PyResult<Vec<f64>> {
        let plan: Classification = parse(plan)?;
        let drawn = map.get();
        macro_rules! validate {
            ($R:ident) => {{
                let mut train = Data::<$R>::new(&x, &labels, None)?;
                let mut test = Data::<$R>::new(&held_out, &held_out_labels, None)?;
                detached(py, n_jobs, None, |watch| {
                    let (train, test, context) = (&mut train, &mut test, &mut watch.context(None)?);
                    Ok(match drawn.drawn::<$R>()? {
                        Drawn::Real(map) => plan.on(map.clone())?.validate(&alphas, train, test, context)?.losses,
                        Drawn::Complex(map) => plan.on(map.clone())?.validate(&alphas, train, test, context)?.losses,
                    })
                })
            }};
        }
        match &x {
            Rows::Single(_) => validate!(f32),
            Rows::Double(_) => validate!(f64),
        }
    }

    /// The model of a file, on the given map or the one that the file describes.
    #[staticmethod]
    #[pyo3(signature = (file, map=None))]
    fn from_file(py: Python<'_>, file: &ModelFile, map: Option<Py<Map>>) -> PyResult<Self> {
        let (map, single) = (file.map(py, map)?, file.single()?);
        let stored = &file.stored;
        let model = if file.kind() == "svi_classifier" {
            Classified::Variational(in_dtype!(single, |R| {
                let load = || SviClassifierModel::from_stored(stored, map.get().real::<R>()?);
                load().map_err(to_python)?
            }))
        } else {
            let load = || -> Result<Classifier> {
                Ok(make!(map.get(), single, |drawn| GpClassifierModel::from_stored(stored, drawn.clone())?))
            };
            Classified::Dirichlet(load().map_err(to_python)?)
        };
        Ok(PyGpClassifier { map, model })
    }

    /// The model as a file.
    fn to_file(&self) -> PyResult<ModelFile> {
        let description = described(self.map.get()).map_err(to_python)?;
        let stored = classified!(&self.model, |model: R| model.to_stored(description, None));
        Ok(stored.map_err(to_python)?.into())
    }

    /// Probabilities of classes at the rows of `X`, in float64.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn probabilities<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        classified!(&self.model, |model: R| {
            let rows = as_in_fit::<R>(py, &x)?;
            let found = detached(py, n_jobs, None, |watch| {
                let mut out = Array2::<f64>::zeros((rows.nrows(), model.classes()));
                pieces(rows, watch, |range, rows| {
                    out.slice_mut(ndarray::s![range, ..]).assign(&model.probabilities(rows)?);
                    Ok(())
                })?;
                Ok(out)
            })?;
            Ok(to_numpy(py, found))
        })
    }

    /// Means and variances of the latent processes at the rows of `X`, in float64.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn latents<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        classified!(&self.model, |model: R| {
            let rows = as_in_fit::<R>(py, &x)?;
            let (mean, variance) = detached(py, n_jobs, None, |_| {
                let mut buffer = Vec::new();
                model.latents(rows.rows(0..rows.nrows(), &mut buffer)?)
            })?;
            Ok((to_numpy(py, mean), to_numpy(py, variance)))
        })
    }

    /// Log marginal likelihood of the transformed labels, or a lower bound of that of the labels.
    #[getter]
    fn log_marginal_likelihood(&self) -> f64 {
        match &self.model {
            Classified::Dirichlet(four) => each!(four, |model: R| model.log_marginal_likelihood()),
            Classified::Variational(two) => either!(two, |model| model.bound()),
        }
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        match &self.model {
            Classified::Dirichlet(four) => four.dtype(),
            Classified::Variational(two) => two.dtype(),
        }
    }

    /// The map.
    #[getter]
    fn map(&self, py: Python<'_>) -> Py<Map> {
        self.map.clone_ref(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile, Py<Map>))> {
        let model = slf.get();
        Ok((slf.get_type().getattr("from_file")?, (model.to_file()?, model.map(slf.py()))))
    }
}

/// Length scales, signal and noise of a regression by maximum marginal likelihood: JSON in, JSON out.
#[pyfunction]
#[pyo3(signature = (spec, x, targets, plan, n_jobs=None, progress=None))]
#[pyo3(text_signature = "(spec, X, targets, plan, n_jobs=None, progress=None)")]
fn maximise_evidence(
    py: Python<'_>,
    spec: &str,
    x: Rows<'_>,
    targets: Rows<'_>,
    plan: &str,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let spec: Spec = parse(spec)?;
    let plan: Tuning = parse(plan)?;
    let scales = match plan.scales.as_str() {
        "fixed" => Scales::Fixed,
        "common" => Scales::Common,
        "per_input" => Scales::PerInput,
        other => return Err(PyValueError::new_err(format!("scales must be fixed, common or per_input, got {other}"))),
    };
    let mut search = EvidenceSearch {
        scales,
        rows: plan.max_rows,
        normalised: plan.normalize_y,
        complex: plan.complex,
        ..EvidenceSearch::default()
    };
    search.lbfgs.max_evaluations = plan.max_iter;
    let (rows, targets) = (
        in_precision!(x, |rows: R| rows.wide().map_err(to_python)?),
        in_precision!(targets, |rows: R| rows.wide().map_err(to_python)?),
    );
    let tuned = detached(py, n_jobs, progress, |watch| {
        let mut step = |at: bochner::tune::Step| {
            watch.reach(at.evaluations, None);
            watch.checkpoint()
        };
        search.run(&spec, plan.signal, plan.noise, rows.view(), targets.view(), &mut step).map_err(renamed)
    })?;
    let found = serde_json::json!({
        "spec": tuned.spec,
        "signal": tuned.signal_variance,
        "noise": tuned.noise_variance,
        "log_marginal_likelihood": tuned.log_marginal_likelihood,
        "evaluations": tuned.evaluations,
        "converged": tuned.converged,
    });
    Ok(found.to_string())
}

/// Any of the exact models.
#[derive(Debug)]
enum Exact {
    Ridge(KernelRidgeModel),
    Regressor(ExactGpRegressorModel),
    Classifier(ExactGpClassifierModel),
}

/// A fitted exact model: kernel ridge regression, or a Gaussian process.
#[pyclass(frozen, name = "ExactModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyExact {
    kernel: String,
    model: Exact,
}

fn kernel_of(text: &str) -> PyResult<Arc<dyn Kernel>> {
    Ok(Arc::new(PyKernel::parse(text)?))
}

#[pymethods]
impl PyExact {
    /// Fits to rows, targets and weights in float64; `kind` is "ridge", "regressor" or "classifier", `plan` JSON.
    #[staticmethod]
    #[pyo3(signature = (kind, kernel, x, targets, weights, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(kind, kernel, X, targets, weights, plan, n_jobs=None, progress=None)")]
    fn fit(
        py: Python<'_>,
        kind: &str,
        kernel: &str,
        x: Rows<'_>,
        targets: Rows<'_>,
        weights: Option<Vector<'_>>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        #[derive(serde::Deserialize)]
        struct Ridge {
            alpha: f64,
            memory_budget: Option<u64>,
        }
        let exact = kernel_of(kernel)?;
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        let targets = in_precision!(targets, |rows: R| rows.wide().map_err(to_python)?);
        let weights = match &weights {
            Some(Vector::Double(weights)) => Some(weights.as_array().to_owned()),
            Some(Vector::Single(weights)) => Some(weights.as_array().mapv(f64::from)),
            None => None,
        };
        let source = || -> Result<InMemory<'_, f64>> {
            let source = InMemory::new(rows.view(), targets.view())?;
            match &weights {
                Some(weights) => source.with_weights(weights.view()),
                None => Ok(source),
            }
        };
        let model = match kind {
            "ridge" => {
                let plan: Ridge = parse(plan)?;
                let ridge = KernelRidge::new(exact, plan.alpha).map_err(as_alpha).map_err(to_python)?;
                let fit = |watch: &Watch| ridge.fit_stream(&mut source()?, &mut watch.context(plan.memory_budget)?);
                detached(py, n_jobs, progress, fit).map(Exact::Ridge)
            }
            "regressor" => {
                let process = parse::<Regression>(plan)?.exact(exact).map_err(to_python)?;
                let fit = |watch: &Watch| process.fit_stream(&mut source()?, &mut watch.context(None)?);
                detached(py, n_jobs, progress, fit).map(Exact::Regressor)
            }
            "classifier" => {
                let process = parse::<Classification>(plan)?.exact(exact).map_err(to_python)?;
                let fit = |watch: &Watch| process.fit_stream(&mut source()?, &mut watch.context(None)?);
                detached(py, n_jobs, progress, fit).map(Exact::Classifier)
            }
            other => Err(PyValueError::new_err(format!("kind must be ridge, regressor or classifier, got {other}"))),
        };
        Ok(PyExact { kernel: kernel.to_owned(), model: model? })
    }

    /// The model of a file.
    #[staticmethod]
    fn from_file(py: Python<'_>, file: &ModelFile) -> PyResult<Self> {
        let (stored, kernel) = (&file.stored, file.stored.header.map.to_string());
        let exact = kernel_of(&kernel)?;
        let model = detached(py, None, None, |_| match stored.header.kind.as_str() {
            "exact_kernel_ridge" => KernelRidgeModel::from_stored(stored, exact).map(Exact::Ridge),
            "exact_gp_regressor" => ExactGpRegressorModel::from_stored(stored, exact).map(Exact::Regressor),
            _ => ExactGpClassifierModel::from_stored(stored, exact).map(Exact::Classifier),
        })?;
        Ok(PyExact { kernel, model })
    }

    /// The model as a file.
    fn to_file(&self) -> PyResult<ModelFile> {
        let kernel: serde_json::Value = parse(&self.kernel)?;
        let stored = match &self.model {
            Exact::Ridge(model) => model.to_stored(kernel),
            Exact::Regressor(model) => model.to_stored(kernel),
            Exact::Classifier(model) => model.to_stored(kernel, None),
        };
        Ok(stored.map_err(to_python)?.into())
    }

    /// Predictions at the rows of `X`: values or means, or numbers of classes.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        let values = detached(py, n_jobs, None, |_| match &self.model {
            Exact::Ridge(model) => model.predict(rows.view()),
            Exact::Regressor(model) => model.predict(rows.view()),
            Exact::Classifier(model) => model.predict(rows.view()),
        })?;
        Ok(to_numpy(py, values))
    }

    /// Means and variances at the rows of `X`, one column per target or class.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict_with_variance<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        let (mean, variance) = detached(py, n_jobs, None, |_| match &self.model {
            Exact::Regressor(model) => model.predict_with_variance(rows.view()),
            Exact::Classifier(model) => model.latents(rows.view()),
            Exact::Ridge(_) => {
                Err(Error::Unsupported { what: "variance", reason: "ridge regression predicts values only".into() })
            }
        })?;
        Ok((to_numpy(py, mean), to_numpy(py, variance)))
    }

    /// Covariances between all pairs of rows of `X`, for one target of a regression.
    #[pyo3(signature = (x, target, n_jobs=None), text_signature = "($self, X, target, n_jobs=None)")]
    fn covariance<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        target: usize,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        let matrix = detached(py, n_jobs, None, |_| match &self.model {
            Exact::Regressor(model) => model.covariance(rows.view(), target),
            _ => Err(Error::Unsupported { what: "covariance", reason: "regressions of processes have one".into() }),
        })?;
        Ok(to_numpy(py, matrix))
    }

    /// Probabilities of classes at the rows of `X`.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn probabilities<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        let found = detached(py, n_jobs, None, |_| match &self.model {
            Exact::Classifier(model) => model.probabilities(rows.view()),
            _ => Err(Error::Unsupported { what: "probabilities", reason: "classifications have them".into() }),
        })?;
        Ok(to_numpy(py, found))
    }

    /// Log marginal likelihood of a regression's targets; NaN for other models.
    #[getter]
    fn log_marginal_likelihood(&self) -> f64 {
        match &self.model {
            Exact::Regressor(model) => model.log_marginal_likelihood(),
            _ => f64::NAN,
        }
    }

    /// Variances of the noise of each target of a regression.
    #[getter]
    fn observation_variances(&self) -> Vec<f64> {
        match &self.model {
            Exact::Regressor(model) => model.observation_variances(),
            _ => Vec::new(),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile,))> {
        Ok((slf.get_type().getattr("from_file")?, (slf.get().to_file()?,)))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGpRegressor>()?;
    module.add_class::<PyGpClassifier>()?;
    module.add_class::<GpSums>()?;
    module.add_class::<PyExact>()?;
    module.add_function(wrap_pyfunction!(maximise_evidence, module)?)
}
