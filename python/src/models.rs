//! The one model class: any kind, in any precision.

use crate::arrays::{Precision, Rows, in_precision, to_numpy};
use crate::detached::{blockwise, detached};
use crate::errors::{json, parse, to_python};
use crate::features::{Drawn, Map};
use crate::sums::Sums;
use crate::uncertainty::{PySampledFunction, sample_functions};
use bochner::feature::{Description, DynComplexMap, DynMap, FeatureMap, FieldQuantity};
use bochner::kernel::AnyKernel;
use bochner::memory::{filled, in_blocks};
use bochner::model::exact::{ExactGpClassifierModel, ExactGpRegressorModel, KernelRidgeModel};
use bochner::model::{
    ExactOperatorRidgeModel, GpClassifierModel, GpRegressorModel, KernelSvmModel, LocalGpModel, Model, OperatorGpModel,
    OperatorRidgeClassifierModel, OperatorRidgeModel, RidgeClassifierModel, RidgeModel, SviClassifierModel, SvmModel,
};
use bochner::random::Seed;
use bochner::scalar::Real;
use bochner::{Error, Result};
use ndarray::{Array2, ArrayD, ArrayView2, Axis, Ix2, concatenate};
use numpy::ToPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::any::Any;
use std::path::PathBuf;

/// Rows of any precision.
type Seen<'a> = ArrayView2<'a, f64>;

/// What only some kinds of models answer about rows.
#[derive(Debug, Clone, Copy)]
enum Question {
    /// Means and then variances, one column per target or class.
    Spread,
    /// Covariances between all pairs of rows, for one target.
    Covariance(usize),
    /// Functions drawn from the posterior: axes are rows, targets, samples.
    Sample(usize, Seed),
    /// Derivatives of outputs by inputs: axes are rows, outputs, inputs.
    Jacobian,
    /// Means of a quantity of a field, one column per component.
    Field(FieldQuantity),
    /// The same, and then variances.
    FieldSpread(FieldQuantity),
    /// Covariances of the outputs of a field: axes are rows, rows, outputs, outputs.
    FieldCovariance,
    /// One column per pair of classes, positive for its first.
    Decide,
}

/// What is asked of a field, by its name.
fn field_question(name: &str) -> Option<Question> {
    let (quantity, spread) = name.strip_suffix("_spread").map_or((name, false), |quantity| (quantity, true));
    let quantity = match quantity {
        "jacobian" => FieldQuantity::Jacobian,
        "divergence" => FieldQuantity::Divergence,
        "vorticity" => FieldQuantity::Vorticity,
        "potential" => FieldQuantity::Potential,
        "stream_function" => FieldQuantity::StreamFunction,
        _ => return None,
    };
    Some(if spread { Question::FieldSpread(quantity) } else { Question::Field(quantity) })
}

/// What some kinds of models have beyond what all have.
trait Own {
    /// Something that was learned, by its name.
    fn learned<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>>;
    fn answer(&self, question: Question, rows: Seen<'_>) -> Result<Option<ArrayD<f64>>>;
}

/// Gives kinds of models what they have: things learned by name, answers to questions.
macro_rules! own {
    ($([$($generic:tt)*] $kind:ty |$model:ident, $py:ident, $rows:ident| {
        $($name:literal => $found:expr,)* $(Question::$question:ident $(($($part:ident),*))? => $answer:expr,)*
    })*) => {$(
        #[allow(unused_variables)]
        impl<$($generic)*> Own for $kind {
            fn learned<'py>(&self, $py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
                let $model = self;
                $(if name == $name {
                    return $found.into_bound_py_any($py).map(Some);
                })*
                Ok(None)
            }

            fn answer(&self, question: Question, $rows: Seen<'_>) -> Result<Option<ArrayD<f64>>> {
                let $model = self;
                $(if let Question::$question $(($($part),*))? = question {
                    return Ok(Some($answer?.into_dyn()));
                })*
                Ok(None)
            }
        }
    )*};
}

fn narrow<R: Real>(rows: Seen<'_>) -> Array2<R> {
    rows.mapv(R::from_f64)
}

fn wide<R: Real, D: ndarray::Dimension>(values: ndarray::Array<R, D>) -> ndarray::Array<f64, D> {
    values.mapv(Real::to_f64)
}

/// Means and variances side by side.
fn beside<R: Real>((mean, variance): (Array2<R>, Array2<R>)) -> Array2<f64> {
    wide(concatenate![Axis(1), mean, variance])
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
    [R: Precision] RidgeModel<DynMap<R>> |m, py, rows| {
        "map" => held(m.map()),
        "coefficients" => m.coefficients().to_pyarray(py),
        "intercept" => m.intercept().to_pyarray(py),
        "report" => json(m.report())?,
    }
    [R: Precision] OperatorRidgeModel<R> |m, py, rows| {
        "coefficients" => m.scalar().coefficients().to_pyarray(py),
        "intercept" => m.scalar().intercept().to_pyarray(py),
        "report" => json(m.report())?,
        Question::Jacobian => m.jacobian(narrow(rows).view()),
    }
    [R: Precision] OperatorGpModel<R> |m, py, rows| {
        "report" => json(m.report())?,
        "log_marginal_likelihood" => m.log_marginal_likelihood(),
        "observation_variances" => vec![m.observation_variance(); m.features().output_dim()],
        "variances" => vec![m.signal_variance(), m.noise_variance()],
        Question::Jacobian => m.jacobian(narrow(rows).view()),
        Question::Spread => m.quantity_with_variance(narrow(rows).view(), FieldQuantity::Values).map(beside),
        Question::Field(quantity) => m.quantity(narrow(rows).view(), quantity),
        Question::FieldSpread(quantity) => m.quantity_with_variance(narrow(rows).view(), quantity).map(beside),
        Question::FieldCovariance => m.covariance(narrow(rows).view(), FieldQuantity::Values),
        Question::Sample(samples, seed) => m.sample(narrow(rows).view(), samples, seed).map(wide),
    }
    [R: Precision] SvmModel<DynMap<R>> |m, py, rows| {
        "map" => held(m.map()),
        "coefficients" => m.coefficients().to_pyarray(py),
        "intercept" => m.intercept().to_pyarray(py),
        "reports" => json(&m.reports())?,
    }
    [M: FeatureMap + Any] GpRegressorModel<M> |m, py, rows| {
        "map" => held(m.map()),
        "report" => json(m.report())?,
        "log_marginal_likelihood" => m.log_marginal_likelihood(),
        "observation_variances" => m.observation_variances(),
        "variances" => vec![m.signal_variance(), m.noise_variance()],
        Question::Spread => m.predict_with_variance(narrow(rows).view()).map(beside),
        Question::Covariance(target) => m.covariance(narrow(rows).view(), target),
        Question::Sample(samples, seed) => m.sample(narrow(rows).view(), samples, seed).map(wide),
    }
    [M: FeatureMap + Any] GpClassifierModel<M> |m, py, rows| {
        "map" => held(m.map()),
        "log_marginal_likelihood" => m.log_marginal_likelihood(),
        Question::Spread => m.latents(narrow(rows).view()).map(beside),
    }
    [R: Real] SviClassifierModel<DynMap<R>> |m, py, rows| {
        "map" => held(m.map()),
        "log_marginal_likelihood" => m.bound(),
        Question::Spread => m.latents(narrow(rows).view()).map(beside),
    }
    [] LocalGpModel |m, py, rows| {
        "centroids" => m.centroids().to_pyarray(py),
        Question::Spread => m.predict_with_variance(rows).map(|(mean, variance)| {
            let all = Array2::from_shape_fn(mean.dim(), |(i, _)| variance[i]);
            beside((mean, all))
        }),
    }
    [] KernelRidgeModel |m, py, rows| {
        "coefficients" => m.coefficients().to_pyarray(py),
        "report" => json(m.report())?,
    }
    [] ExactOperatorRidgeModel |m, py, rows| {
        "coefficients" => m.dual().to_pyarray(py),
        "report" => json(m.report())?,
    }
    [] ExactGpRegressorModel |m, py, rows| {
        "report" => json(m.report())?,
        "log_marginal_likelihood" => m.log_marginal_likelihood(),
        "observation_variances" => m.observation_variances(),
        Question::Spread => m.predict_with_variance(rows).map(beside),
        Question::Covariance(target) => m.covariance(rows, target),
    }
    [] ExactGpClassifierModel |m, py, rows| {
        Question::Spread => m.latents(rows).map(beside),
    }
    [] KernelSvmModel<AnyKernel> |m, py, rows| {
        "coefficients" => m.coefficients().to_pyarray(py),
        "reports" => json(&m.reports().collect::<Vec<_>>())?,
        "support" => m.support(),
        "support_vectors" => m.support_vectors().to_pyarray(py),
        "pairs" => m.pairs().collect::<Vec<_>>(),
        Question::Decide => m.decide(rows),
    }
    [] Nothing |m, py, rows| {}
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
        OperatorRidgeModel<f32>; OperatorRidgeModel<f64>; OperatorGpModel<f32>; OperatorGpModel<f64>;
        OperatorRidgeClassifierModel<f32>, regression; OperatorRidgeClassifierModel<f64>, regression;
        LocalGpModel; KernelRidgeModel; KernelSvmModel<AnyKernel>;
        ExactOperatorRidgeModel; ExactGpRegressorModel; ExactGpClassifierModel;
    }
    &Nothing
}

/// A fitted model of any kind.
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
    fn single(&self) -> bool {
        self.model.precision() == "f32"
    }

    /// About how many features there are.
    fn features(&self) -> usize {
        match self.model.description() {
            Some(Description::Map(spec)) => spec.get("n_components").and_then(|n| n.number()).unwrap_or(1e3) as usize,
            Some(Description::Operator(spec)) => spec.n_components,
            _ => 1024,
        }
    }

    /// What only some kinds answer.
    fn answer(&self, question: Question, rows: Seen<'_>) -> Result<ArrayD<f64>> {
        let found = own(&self.model).answer(question, rows)?;
        let reason = || format!("{} has no answer to {question:?}", self.model.kind().entry.title);
        found.ok_or_else(|| Error::Unsupported { what: "question", reason: reason() })
    }

    /// `columns` numbers for every row, filled in block by block; `work` is the number of multiplications per input.
    fn by_blocks(
        &self,
        py: Python<'_>,
        x: &Rows<'_>,
        n_jobs: Option<i64>,
        (columns, work): (usize, usize),
        answer: impl Fn(Seen<'_>) -> Result<Array2<f64>> + Send + Sync,
    ) -> PyResult<ArrayD<f64>> {
        in_precision!(*x, |rows: R| detached(py, n_jobs, None, |watch| {
            let mut out = filled("answers", (rows.nrows(), columns), 0.0, in_blocks)?;
            blockwise(rows, out.view_mut(), TILE_ROWS, work, watch, |rows, mut out| {
                out.assign(&answer(rows.mapv(Real::to_f64).view())?);
                Ok(())
            })?;
            Ok(out.into_dyn())
        }))
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let model = &slf.get().model;
        let bytes = slf.py().detach(|| model.to_bytes()).map_err(to_python)?;
        Ok((slf.get_type().getattr("from_bytes")?, (PyBytes::new(slf.py(), &bytes),)))
    }

    /// What its file says about it, as JSON.
    #[getter]
    fn header(&self) -> PyResult<String> {
        json(self.model.header())
    }

    /// The same model with sums, which its file keeps.
    fn with_sums(&self, sums: &Sums) -> PyResult<Self> {
        Ok(sums.kept_in(self.model.clone())?.into())
    }

    /// The bytes of the sums that its file kept.
    #[getter]
    fn sums<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(stored) = self.model.sums() else { return Ok(None) };
        Ok(Some(PyBytes::new(py, &stored.to_bytes().map_err(to_python)?)))
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

    /// Functions drawn from the posterior of a process on features.
    #[pyo3(signature = (n_samples, seed))]
    fn sample_functions(&self, py: Python<'_>, n_samples: usize, seed: u64) -> PyResult<Vec<PySampledFunction>> {
        detached(py, None, None, |_| sample_functions(&self.model, n_samples, seed))
    }

    /// The same classifier with probabilities, from slope and shifts that are fitted to the rows of `X` and numbers of classes.
    #[pyo3(signature = (x, labels, shifted, n_jobs=None), text_signature = "($self, X, labels, shifted, n_jobs=None)")]
    fn calibrated(
        &self,
        py: Python<'_>,
        x: Rows<'_>,
        labels: Vec<usize>,
        shifted: bool,
        n_jobs: Option<i64>,
    ) -> PyResult<Self> {
        let mut model = self.model.clone();
        in_precision!(x, |rows: R| detached(py, n_jobs, None, |_| {
            model.calibrate(rows.wide()?.view(), &labels, shifted)
        }))?;
        Ok(model.into())
    }

    /// The name of its kind in files and in the catalogue.
    #[getter]
    fn kind(&self) -> &'static str {
        self.model.kind().entry.name
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        if self.single() { "float32" } else { "float64" }
    }

    /// Something that only some kinds have learned, by its name: `map`, `coefficients`, `intercept`, `report` and `reports` of
    /// solvers (JSON), `log_marginal_likelihood`, `observation_variances`, `variances`, `centroids`, `support`, `support_vectors`, `pairs`
    /// of classes. None of other kinds.
    fn learned<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        own(&self.model).learned(py, name)
    }

    /// What is asked about the rows of `X`, in the precision of the model: `predict`, one column per target, or per class, of
    /// which the first largest wins; `deviations` of observations; `spread`, means and then variances without noise; `sample`,
    /// functions drawn from the posterior. In float64: `probabilities` of classes, `covariance` of a target, `jacobian`, `gradient`
    /// of `predict` (axes are rows, targets or classes, inputs), and `decide`, one column per pair of classes. Of fields, one
    /// column per component: `divergence`, `vorticity`, `potential` and `stream_function`; with `_spread` behind the name, and
    /// `jacobian_spread`, means and then variances; and `field_covariance`, whose axes are rows, rows, outputs, outputs.
    #[pyo3(signature = (question, x, target=0, n_samples=1, seed=0, n_jobs=None))]
    #[pyo3(text_signature = "($self, question, X, target=0, n_samples=1, seed=0, n_jobs=None)")]
    fn ask<'py>(
        &self,
        py: Python<'py>,
        question: &str,
        x: Rows<'py>,
        target: usize,
        n_samples: usize,
        seed: u64,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (model, columns, features) = (&self.model, self.model.output_dim(), self.features());
        let square = features.saturating_mul(features);
        let at_once = |question| {
            in_precision!(x, |rows: R| detached(py, n_jobs, None, |_| self.answer(question, rows.wide()?.view())))
        };
        let (found, narrow) = match question {
            "predict" => (self.by_blocks(py, &x, n_jobs, (columns, features), |rows| model.predict(rows))?, true),
            "deviations" => (self.by_blocks(py, &x, n_jobs, (columns, square), |rows| model.deviations(rows))?, true),
            "probabilities" => {
                (self.by_blocks(py, &x, n_jobs, (columns, square), |rows| model.probabilities(rows))?, false)
            }
            "spread" => {
                let spread = |rows: Seen<'_>| {
                    let both = self.answer(Question::Spread, rows)?;
                    Ok(both.into_dimensionality::<Ix2>().expect("one row of means and variances per row"))
                };
                (self.by_blocks(py, &x, n_jobs, (2 * columns, square), spread)?, true)
            }
            "sample" => (at_once(Question::Sample(n_samples, Seed::new(seed)))?, true),
            "covariance" => (at_once(Question::Covariance(target))?, false),
            "jacobian" => (at_once(Question::Jacobian)?, false),
            "decide" => (at_once(Question::Decide)?, false),
            "field_covariance" => (at_once(Question::FieldCovariance)?, false),
            "gradient" => {
                let found =
                    in_precision!(x, |rows: R| detached(py, n_jobs, None, |_| model.gradient(rows.wide()?.view())))?;
                (found.into_dyn(), false)
            }
            other => {
                let asked = field_question(other);
                let asked = asked.ok_or_else(|| PyValueError::new_err(format!("there is no question {other}")))?;
                (at_once(asked)?, false)
            }
        };
        Ok(if narrow && self.single() { to_numpy(py, found.mapv(|v| v as f32)) } else { to_numpy(py, found) })
    }
}
