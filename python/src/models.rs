//! The one model class: any kind, in any precision.

use crate::arrays::{Rows, in_precision, to_numpy};
use crate::detached::{blockwise, detached};
use crate::errors::{json, parse, to_python};
use crate::features::{Drawn, Map};
use bochner::feature::{Description, DynComplexMap, DynMap, FeatureMap};
use bochner::kernel::AnyKernel;
use bochner::model::exact::{ExactGpClassifierModel, ExactGpRegressorModel, KernelRidgeModel};
use bochner::model::{
    ExactOperatorRidgeModel, GpClassifierModel, GpRegressorModel, KernelSvmModel, LocalGpModel, Model,
    OperatorRidgeClassifierModel, OperatorRidgeModel, RidgeClassifierModel, RidgeModel, SviClassifierModel, SvmModel,
};
use bochner::random::Seed;
use bochner::scalar::Real;
use bochner::solve::SolveReport;
use bochner::{Error, Result};
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis, Dimension, concatenate, s};
use numpy::PyArray;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::any::Any;
use std::path::PathBuf;

/// Rows of any precision.
type Seen<'a> = ArrayView2<'a, f64>;

/// Writes a trait of answers that some kinds of models have and others have not, and a macro that gives them to a kind.
macro_rules! answers {
    ($d:tt $($(#[$about:meta])* $name:ident($($arg:ident: $type:ty),*) -> $found:ty;)*) => {
        /// What some kinds of models have beyond what all have; rows and numbers are doubles.
        trait Own {
            $($(#[$about])* fn $name(&self $(, _: $type)*) -> Option<$found> { None })*
        }
        macro_rules! method {
            $(($name |$d model:ident $d(, $d arg:ident)*| $d answer:expr) => {
                method! { @ $name $d model ($d($d arg),*) ($($type),*) ($found) $d answer }
            };)*
            (@ $d name:ident $d model:ident ($d($d arg:ident),*) ($d($d type:ty),*) ($d found:ty) $d answer:expr) => {
                fn $d name(&self $d(, $d arg: $d type)*) -> Option<$d found> {
                    let $d model = self;
                    $d answer.into()
                }
            };
        }
    };
}
answers! { $
    map() -> Map;
    /// One row per feature, row or support vector, one column per output.
    coefficients() -> Array2<f64>;
    intercept() -> Array1<f64>;
    report() -> &SolveReport;
    /// One report per problem.
    reports() -> serde_json::Value;
    log_marginal_likelihood() -> f64;
    observation_variances() -> Vec<f64>;
    /// Means and variances, one column per target or class.
    spread(rows: Seen<'_>) -> Result<(Array2<f64>, Array2<f64>)>;
    covariance(rows: Seen<'_>, target: usize) -> Result<Array2<f64>>;
    sample(rows: Seen<'_>, samples: usize, seed: Seed) -> Result<Array3<f64>>;
    jacobian(rows: Seen<'_>) -> Result<Array3<f64>>;
    machine() -> &KernelSvmModel<AnyKernel>;
    centroids() -> Seen<'_>;
}

/// Gives a kind of model the answers that it has.
macro_rules! own {
    ($([$($generic:tt)*] $kind:ty { $($name:ident |$model:ident $(, $arg:ident)*| $answer:expr;)* })*) => {
        $(impl<$($generic)*> Own for $kind { $(method! { $name |$model $(, $arg)*| $answer })* })*
    };
}

fn narrow<R: Real>(rows: ArrayView2<'_, f64>) -> Array2<R> {
    rows.mapv(R::from_f64)
}

/// The map of a model, as Python has it.
fn held<M: FeatureMap + Any>(map: &M) -> Option<Map> {
    macro_rules! first {
        ($($held:ty, $numbers:ident;)*) => {$(
            if let Some(map) = (map as &dyn Any).downcast_ref::<$held>() {
                return Some(Map::of(map.description()?.clone(), Drawn::$numbers(map.clone())));
            }
        )*};
    }
    first! {
        DynMap<f32>, Real; DynMap<f64>, Real; DynComplexMap<f32>, Complex; DynComplexMap<f64>, Complex;
    }
    None
}

own! {
    [R: Real] RidgeModel<DynMap<R>> {
        map |m| held(m.map());
        coefficients |m| m.coefficients().mapv(Real::to_f64);
        intercept |m| m.intercept().mapv(Real::to_f64);
        report |m| m.report();
    }
    [R: Real] OperatorRidgeModel<R> {
        coefficients |m| m.scalar().coefficients().mapv(Real::to_f64);
        intercept |m| m.scalar().intercept().mapv(Real::to_f64);
        report |m| m.report();
        jacobian |m, rows| m.jacobian(narrow(rows).view());
    }
    [R: Real] SvmModel<DynMap<R>> {
        map |m| held(m.map());
        coefficients |m| m.coefficients().mapv(Real::to_f64);
        intercept |m| m.intercept().mapv(Real::to_f64);
        reports |m| serde_json::json!(m.reports());
    }
    [M: FeatureMap + Any] GpRegressorModel<M> {
        map |m| held(m.map());
        report |m| m.report();
        log_marginal_likelihood |m| m.log_marginal_likelihood();
        observation_variances |m| m.observation_variances();
        spread |m, rows| m.predict_with_variance(narrow(rows).view()).map(|(a, b)| (a.mapv(Real::to_f64), b.mapv(Real::to_f64)));
        covariance |m, rows, target| m.covariance(narrow(rows).view(), target);
        sample |m, rows, samples, seed| m.sample(narrow(rows).view(), samples, seed).map(|found| found.mapv(Real::to_f64));
    }
    [M: FeatureMap + Any] GpClassifierModel<M> {
        map |m| held(m.map());
        log_marginal_likelihood |m| m.log_marginal_likelihood();
        spread |m, rows| m.latents(narrow(rows).view());
    }
    [R: Real] SviClassifierModel<DynMap<R>> {
        map |m| held(m.map());
        log_marginal_likelihood |m| m.bound();
        spread |m, rows| m.latents(narrow(rows).view());
    }
    [] LocalGpModel {
        spread |m, rows| m.predict_with_variance(rows).map(|(mean, variance)| {
            let all = Array2::from_shape_fn(mean.dim(), |(i, _)| variance[i]);
            (mean, all)
        });
        centroids |m| m.centroids();
    }
    [] KernelRidgeModel {
        coefficients |m| m.coefficients().to_owned();
        report |m| m.report();
    }
    [] ExactOperatorRidgeModel {
        coefficients |m| m.dual().to_owned();
        report |m| m.report();
    }
    [] ExactGpRegressorModel {
        report |m| m.report();
        log_marginal_likelihood |m| m.log_marginal_likelihood();
        observation_variances |m| m.observation_variances();
        spread |m, rows| m.predict_with_variance(rows);
        covariance |m, rows, target| m.covariance(rows, target);
    }
    [] ExactGpClassifierModel { spread |m, rows| m.latents(rows); }
    [] KernelSvmModel<AnyKernel> {
        coefficients |m| m.coefficients().to_owned();
        reports |m| serde_json::json!(m.reports().collect::<Vec<_>>());
        machine |m| m;
    }
    [] Nothing {}
}

/// A kind without anything of its own, such as one that is newer than this list.
struct Nothing;

/// What a model has beyond what all have.
fn own(model: &Model) -> &dyn Own {
    macro_rules! first {
        ($($kind:ty $(, $inner:ident)?;)*) => {$(
            if let Some(found) = model.downcast_ref::<$kind>() {
                return found$(.$inner())?;
            }
        )*};
    }
    first! {
        RidgeModel<DynMap<f32>>; RidgeModel<DynMap<f64>>;
        RidgeClassifierModel<DynMap<f32>>, regression; RidgeClassifierModel<DynMap<f64>>, regression;
        SvmModel<DynMap<f32>>; SvmModel<DynMap<f64>>;
        GpRegressorModel<DynMap<f32>>; GpRegressorModel<DynMap<f64>>;
        GpRegressorModel<DynComplexMap<f32>>; GpRegressorModel<DynComplexMap<f64>>;
        GpClassifierModel<DynMap<f32>>; GpClassifierModel<DynMap<f64>>;
        GpClassifierModel<DynComplexMap<f32>>; GpClassifierModel<DynComplexMap<f64>>;
        SviClassifierModel<DynMap<f32>>; SviClassifierModel<DynMap<f64>>;
        OperatorRidgeModel<f32>; OperatorRidgeModel<f64>;
        OperatorRidgeClassifierModel<f32>, regression; OperatorRidgeClassifierModel<f64>, regression;
        LocalGpModel; KernelRidgeModel; KernelSvmModel<AnyKernel>;
        ExactOperatorRidgeModel; ExactGpRegressorModel; ExactGpClassifierModel;
    }
    &Nothing
}

/// A fitted model of any kind; what only some kinds have is an `AttributeError` of the others.
#[pyclass(frozen, name = "Model", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyModel {
    model: Model,
}

impl From<Model> for PyModel {
    fn from(model: Model) -> Self {
        PyModel { model }
    }
}

/// Rows of a tile of every map.
const TILE_ROWS: usize = 64;

impl PyModel {
    fn without(&self, what: &str) -> PyErr {
        PyAttributeError::new_err(format!("{} has no {what}", self.model.kind().entry.title))
    }

    /// Numbers in the precision of the model.
    fn numbers<'py, D: Dimension>(&self, py: Python<'py>, array: ndarray::Array<f64, D>) -> Bound<'py, PyAny> {
        match self.model.precision() {
            "f32" => PyArray::from_owned_array(py, array.mapv(|v| v as f32)).into_any(),
            _ => PyArray::from_owned_array(py, array).into_any(),
        }
    }

    /// About how many features there are.
    fn features(&self) -> usize {
        match self.model.description() {
            Some(Description::Map(spec)) => spec.get("n_components").and_then(|n| n.number()).unwrap_or(1e3) as usize,
            Some(Description::Operator(spec)) => spec.n_components,
            _ => 1024,
        }
    }

    /// `columns` numbers for every row, filled in block by block; `work` is the number of multiplications per input.
    fn answers(
        &self,
        py: Python<'_>,
        x: &Rows<'_>,
        n_jobs: Option<i64>,
        (columns, work): (usize, usize),
        answer: impl Fn(&Model, ArrayView2<'_, f64>) -> Result<Array2<f64>> + Send + Sync,
    ) -> PyResult<Array2<f64>> {
        in_precision!(*x, |rows: R| detached(py, n_jobs, None, |watch| {
            let mut out = Array2::zeros((rows.nrows(), columns));
            blockwise(rows, out.view_mut(), TILE_ROWS, work, watch, |rows, mut out| {
                out.assign(&answer(&self.model, rows.mapv(Real::to_f64).view())?);
                Ok(())
            })?;
            Ok(out)
        }))
    }

    /// Something about all rows at once that only some kinds know.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        x: &Rows<'_>,
        n_jobs: Option<i64>,
        what: &'static str,
        question: impl FnOnce(&dyn Own, ArrayView2<'_, f64>) -> Option<Result<T>> + Send,
    ) -> PyResult<T> {
        let found = in_precision!(*x, |rows: R| detached(py, n_jobs, None, |_| {
            question(own(&self.model), rows.wide()?.view()).transpose()
        }))?;
        found.ok_or_else(|| self.without(what))
    }

    fn machine(&self, what: &str) -> PyResult<&KernelSvmModel<AnyKernel>> {
        own(&self.model).machine().ok_or_else(|| self.without(what))
    }
}

#[pymethods]
impl PyModel {
    /// Reads a file of any kind.
    #[staticmethod]
    #[pyo3(signature = (path, n_jobs=None))]
    fn load(py: Python<'_>, path: PathBuf, n_jobs: Option<i64>) -> PyResult<Self> {
        Ok(detached(py, n_jobs, None, |_| bochner::load(path))?.into())
    }

    /// Writes a file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.model.save(path)).map_err(to_python)
    }

    /// The model of the bytes of a file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(detached(py, None, None, |_| Model::from_bytes(bytes))?.into())
    }

    /// The bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.model.to_bytes()).map_err(to_python)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    /// What its file says about it, as JSON.
    #[getter]
    fn header(&self) -> PyResult<String> {
        json(self.model.header())
    }

    /// The same model with names for its classes: a list in JSON.
    fn with_classes(&self, names: &str) -> PyResult<Self> {
        Ok(self.model.clone().with_classes(parse(names)?).map_err(to_python)?.into())
    }

    /// The same model with something that its file keeps under a name; `value` is JSON.
    fn with_attachment(&self, name: &str, value: &str) -> PyResult<Self> {
        let (mut model, value) = (self.model.clone(), parse::<serde_json::Value>(value)?);
        model.attach(name, &value).map_err(to_python)?;
        Ok(model.into())
    }

    /// What the file keeps under a name, as JSON, or None.
    fn attachment(&self, name: &str) -> PyResult<Option<String>> {
        let found: Option<serde_json::Value> = self.model.attachment(name).map_err(to_python)?;
        Ok(found.map(|value| value.to_string()))
    }

    /// The name of its kind in files and in the catalogue.
    #[getter]
    fn kind(&self) -> &'static str {
        self.model.kind().entry.name
    }

    /// Its map, its features or its kernel, as JSON.
    #[getter]
    fn description(&self) -> PyResult<String> {
        json(&self.model.description())
    }

    /// Sentences about what it is made of, and what it has learned.
    fn in_words(&self) -> Vec<String> {
        let made = self.model.description().map(Description::in_words);
        made.into_iter().chain(self.model.in_words()).collect()
    }

    /// Names of the classes as JSON, of a classifier; else null.
    #[getter]
    fn classes(&self) -> PyResult<String> {
        json(&self.model.classes())
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        if self.model.precision() == "f32" { "float32" } else { "float64" }
    }

    /// Length of an input row.
    #[getter]
    fn input_dim(&self) -> usize {
        self.model.input_dim()
    }

    /// Number of targets or classes.
    #[getter]
    fn output_dim(&self) -> usize {
        self.model.output_dim()
    }

    /// One column per target, or per class, of which the first largest wins.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let shape = (self.model.output_dim(), self.features());
        Ok(self.numbers(py, self.answers(py, &x, n_jobs, shape, Model::predict)?))
    }

    /// Probabilities of classes at the rows of `X`, in float64.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn probabilities<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let shape = (self.model.output_dim(), self.features().pow(2));
        Ok(to_numpy(py, self.answers(py, &x, n_jobs, shape, Model::probabilities)?))
    }

    /// Standard deviations at the rows of `X`, one column per target: of observations, or of the function without `noise`.
    #[pyo3(signature = (x, noise=true, n_jobs=None), text_signature = "($self, X, noise=True, n_jobs=None)")]
    fn deviations<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        noise: bool,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answer = if noise { Model::deviations } else { Model::function_deviations };
        let shape = (self.model.output_dim(), self.features().pow(2));
        Ok(self.numbers(py, self.answers(py, &x, n_jobs, shape, answer)?))
    }

    /// Means and variances at the rows of `X`, without noise: of targets, or of the processes behind classes.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict_with_variance<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (columns, title) = (self.model.output_dim(), self.model.kind().entry.title);
        let both = self.answers(py, &x, n_jobs, (2 * columns, self.features().pow(2)), |model, rows| {
            let none = || Error::Unsupported { what: "variances", reason: format!("{title} has none") };
            let (mean, variance) = own(model).spread(rows).ok_or_else(none)??;
            Ok(concatenate![Axis(1), mean, variance])
        })?;
        let part = |columns| self.numbers(py, both.slice(columns).to_owned());
        Ok((part(s![.., ..columns]), part(s![.., columns..])))
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
        let found = self.ask(py, &x, n_jobs, "covariance", |own, rows| own.covariance(rows, target))?;
        Ok(to_numpy(py, found))
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
        let draw = |own: &dyn Own, rows: ArrayView2<'_, f64>| own.sample(rows, n_samples, Seed::new(seed));
        Ok(self.numbers(py, self.ask(py, &x, n_jobs, "samples", draw)?))
    }

    /// Derivatives of outputs by inputs at the rows of `X`, of shape (rows, outputs, inputs).
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn jacobian<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.ask(py, &x, n_jobs, "derivatives", |own, rows| own.jacobian(rows))?;
        Ok(PyArray::from_owned_array(py, found).into_any())
    }

    /// Decision values of the rows of `X`, one column per pair of classes, positive for its first.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn decide<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let decide = |own: &dyn Own, rows: ArrayView2<'_, f64>| own.machine().map(|machine| machine.decide(rows));
        Ok(to_numpy(py, self.ask(py, &x, n_jobs, "pairs of classes", decide)?))
    }

    /// The map whose features the model is linear in.
    #[getter]
    fn map(&self) -> PyResult<Map> {
        own(&self.model).map().ok_or_else(|| self.without("map"))
    }

    /// One row of coefficients per feature, row or support vector, one column per output.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = own(&self.model).coefficients().ok_or_else(|| self.without("coefficients"))?;
        Ok(self.numbers(py, found))
    }

    /// One number per output.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.numbers(py, own(&self.model).intercept().ok_or_else(|| self.without("intercept"))?))
    }

    /// How the solution was found, as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        json(own(&self.model).report().ok_or_else(|| self.without("report"))?)
    }

    /// How every problem was solved, as JSON.
    #[getter]
    fn reports(&self) -> PyResult<String> {
        Ok(own(&self.model).reports().ok_or_else(|| self.without("reports"))?.to_string())
    }

    /// Log marginal likelihood of the training targets, or a lower bound of it.
    #[getter]
    fn log_marginal_likelihood(&self) -> PyResult<f64> {
        own(&self.model).log_marginal_likelihood().ok_or_else(|| self.without("marginal likelihood"))
    }

    /// Variances of the noise of each target.
    #[getter]
    fn observation_variances(&self) -> PyResult<Vec<f64>> {
        own(&self.model).observation_variances().ok_or_else(|| self.without("noise"))
    }

    /// The centroids, the mean of the rows first.
    #[getter]
    fn centroids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = own(&self.model).centroids().ok_or_else(|| self.without("centroids"))?;
        Ok(to_numpy(py, found.to_owned()))
    }

    /// Numbers of the support vectors among the rows of the fit.
    #[getter]
    fn support(&self) -> PyResult<Vec<usize>> {
        Ok(self.machine("support vectors")?.support().to_vec())
    }

    /// The support vectors.
    #[getter]
    fn support_vectors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(to_numpy(py, self.machine("support vectors")?.support_vectors().to_owned()))
    }

    /// Numbers of the two classes of every pair.
    #[getter]
    fn pairs(&self) -> PyResult<Vec<(usize, usize)>> {
        Ok(self.machine("pairs of classes")?.pairs().collect())
    }
}
