//! Rows left out, intervals, functions from a posterior, and learned metrics.

use crate::arrays::{Rows, Vector, in_precision, to_numpy};
use crate::data::{Data, Modelled};
use crate::detached::detached;
use crate::errors::{json, parse, to_python};
use crate::features::Map;
use bochner::feature::{DynComplexMap, DynMap, FeatureMap, Spec};
use bochner::model::{
    GpRegressorModel, Model, OperatorGpModel, Predict, Ridge, SampledFunction, conformal_quantile, process_scores,
};
use bochner::random::Seed;
use bochner::scalar::Real;
use bochner::solve::leave_one_out_path;
use bochner::tune::{MetricForm, MetricSearch};
use bochner::{Error, Result};
use ndarray::{Array2, Array3, ArrayView2};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use std::any::Any;

/// A function from a posterior, in any precision.
trait Sampled: std::fmt::Debug + Send + Sync {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>>;
    fn gradient(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>>;
}

impl<M: FeatureMap + Any> Sampled for SampledFunction<M> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Ok(self.predict(rows.mapv(M::Real::from_f64).view())?.mapv(Real::to_f64))
    }

    fn gradient(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        self.gradient(rows.mapv(M::Real::from_f64).view())
    }
}

/// One function drawn from the posterior of a process.
#[pyclass(frozen, name = "SampledFunction", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PySampledFunction {
    function: Box<dyn Sampled>,
}

#[pymethods]
impl PySampledFunction {
    /// Values at the rows of `X`, one column per target.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn values<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let found =
            in_precision!(x, |rows: R| detached(py, n_jobs, None, |_| self.function.values(rows.wide()?.view())))?;
        Ok(to_numpy(py, found))
    }

    /// Derivatives at the rows of `X`: axes are rows, targets, inputs.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn gradient<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let found =
            in_precision!(x, |rows: R| detached(py, n_jobs, None, |_| self.function.gradient(rows.wide()?.view())))?;
        Ok(to_numpy(py, found))
    }
}

/// Functions drawn from the posterior of a process on features.
pub(crate) fn sample_functions(model: &Model, samples: usize, seed: u64) -> Result<Vec<PySampledFunction>> {
    fn boxed<M: FeatureMap + Any>(found: Vec<SampledFunction<M>>) -> Vec<PySampledFunction> {
        found.into_iter().map(|function| PySampledFunction { function: Box::new(function) }).collect()
    }
    macro_rules! first {
        ($($map:ty;)*) => {$(
            if let Some(process) = model.downcast_ref::<GpRegressorModel<$map>>() {
                return Ok(boxed(process.sample_functions(samples, Seed::new(seed))?));
            }
        )*};
    }
    first! { DynMap<f32>; DynMap<f64>; DynComplexMap<f32>; DynComplexMap<f64>; }
    if let Some(process) = model.downcast_ref::<OperatorGpModel<f32>>() {
        return Ok(boxed(process.sample_functions(samples, Seed::new(seed))?));
    }
    if let Some(process) = model.downcast_ref::<OperatorGpModel<f64>>() {
        return Ok(boxed(process.sample_functions(samples, Seed::new(seed))?));
    }
    let reason = format!("{} has no posterior to draw functions from", model.kind().entry.title);
    Err(Error::Unsupported { what: "functions", reason })
}

/// Residuals, one row each, and leverages of `at` as if each of its rows had been left out of a ridge regression of the rows of
/// `X`, to which they belong.
#[pyfunction]
#[pyo3(signature = (map, x, targets, weights, at, at_targets, at_weights, alpha, fit_intercept, n_jobs=None))]
#[pyo3(text_signature = "(map, X, targets, weights, at, at_targets, at_weights, alpha, fit_intercept, n_jobs=None)")]
fn leave_one_out<'py>(
    py: Python<'py>,
    map: &Bound<'py, Map>,
    x: Rows<'py>,
    targets: Rows<'py>,
    weights: Option<Vector<'py>>,
    at: Rows<'py>,
    at_targets: Rows<'py>,
    at_weights: Option<Vector<'py>>,
    alpha: f64,
    fit_intercept: bool,
    n_jobs: Option<i64>,
) -> PyResult<(Bound<'py, PyAny>, Vec<f64>)> {
    let found = in_precision!(x, |rows: R| {
        let mut all = Data::new(rows, &targets, weights.as_ref())?;
        let mut some = Data::new(at.alike::<R>("all rows")?, &at_targets, at_weights.as_ref())?;
        let map = map.get().real::<R>().map_err(to_python)?;
        detached(py, n_jobs, None, |watch| {
            let ridge = Ridge::new(map, alpha)?.with_intercept(fit_intercept);
            ridge.leave_one_out_at(&mut all, &mut some, &mut watch.context(None)?)
        })?
    });
    Ok((to_numpy(py, found.residuals), found.leverages))
}

/// Mean squared residuals, each row left out, of ridge regressions with several penalties on the features of all rows.
#[pyfunction]
#[pyo3(signature = (map, x, targets, weights, alphas, fit_intercept, n_jobs=None))]
#[pyo3(text_signature = "(map, X, targets, weights, alphas, fit_intercept, n_jobs=None)")]
fn leave_one_out_losses(
    py: Python<'_>,
    map: &Bound<'_, Map>,
    x: Rows<'_>,
    targets: Rows<'_>,
    weights: Option<Vector<'_>>,
    alphas: Vec<f64>,
    fit_intercept: bool,
    n_jobs: Option<i64>,
) -> PyResult<Vec<f64>> {
    in_precision!(x, |rows: R| {
        let data = Data::new(rows, &targets, weights.as_ref())?;
        let weights = weights.as_ref().and_then(|weights| R::vector(weights)).map(|weights| weights.as_array());
        let map = map.get().real::<R>().map_err(to_python)?;
        detached(py, n_jobs, None, |_| {
            let (rows, targets) = data.wide()?;
            let features = map.transform(rows.mapv(R::from_f64).view())?;
            let targets = targets.mapv(R::from_f64);
            let path = leave_one_out_path(features.view(), targets.view(), weights, &alphas, fit_intercept)?;
            Ok(path.iter().map(bochner::solve::LeaveOneOut::loss).collect())
        })
    })
}

/// The score that a new row stays below with probability `coverage`.
#[pyfunction(name = "conformal_quantile")]
fn py_conformal_quantile(scores: PyReadonlyArray1<'_, f64>, coverage: f64) -> PyResult<f64> {
    conformal_quantile(&scores.as_array().to_vec(), coverage).map_err(to_python)
}

/// Scores of the rows that a process was fitted to, as if each had been left out.
#[pyfunction(name = "process_scores")]
fn py_process_scores<'py>(
    py: Python<'py>,
    residuals: PyReadonlyArray2<'py, f64>,
    variances: PyReadonlyArray2<'py, f64>,
    weights: Option<Vec<f64>>,
    noise: Vec<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = process_scores(residuals.as_array(), variances.as_array(), weights.as_deref(), &noise);
    Ok(to_numpy(py, found.map_err(to_python)?))
}

/// Learns a linear map of rows: `spec` and the result are JSON.
#[pyfunction]
#[pyo3(signature = (spec, x, targets, metric, max_iter, seed, n_jobs=None))]
#[pyo3(text_signature = "(spec, X, targets, metric, max_iter, seed, n_jobs=None)")]
fn learn_metric(
    py: Python<'_>,
    spec: &str,
    x: Rows<'_>,
    targets: Rows<'_>,
    metric: &str,
    max_iter: usize,
    seed: u64,
    n_jobs: Option<i64>,
) -> PyResult<String> {
    let features: Spec = parse(spec)?;
    let form: MetricForm = serde_json::from_value(metric.into())
        .map_err(|_| to_python(Error::parameter("metric", "\"full\" or \"diagonal\"", format!("{metric:?}"))))?;
    let search = MetricSearch { features, form, max_iter, seed, ..MetricSearch::default() };
    let (rows, targets) = in_precision!(x, |rows: R| Data::new(rows, &targets, None)?.wide().map_err(to_python)?);
    let found = detached(py, n_jobs, None, |_| search.run(rows.view(), targets.view()))?;
    json(&found)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySampledFunction>()?;
    module.add_function(wrap_pyfunction!(leave_one_out, module)?)?;
    module.add_function(wrap_pyfunction!(leave_one_out_losses, module)?)?;
    module.add_function(wrap_pyfunction!(py_conformal_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(py_process_scores, module)?)?;
    module.add_function(wrap_pyfunction!(learn_metric, module)?)
}
