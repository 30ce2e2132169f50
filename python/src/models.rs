//! Models over feature maps: rows stream through the core, the feature matrix is never made.

use crate::arrays::{Precision, Rows, Table, Vector, View, is_single, to_numpy};
use crate::detached::{Watch, blockwise, detached};
use crate::errors::{not_understood, to_python};
use crate::features::{Drawable, Map};
use crate::files::{ModelFile, described};
use bochner::accumulate::Gram;
use bochner::feature::{DynMap, FeatureMap};
use bochner::model::{Fit, Predict, Ridge, RidgeClassifierModel, RidgeModel};
use bochner::rows::{OneAgainstRest, RowBlock, RowSource};
use bochner::solve::{ConjugateGradients, Solver, StochasticGradient};
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Rows between two looks for signals; accumulators collect as many anyway.
const BLOCK_ROWS: usize = 1024;

/// Something in either precision.
#[derive(Debug, Clone)]
pub(crate) enum Two<A, B> {
    Single(A),
    Double(B),
}

impl<A, B> Two<A, B> {
    /// As numpy calls it.
    pub(crate) fn dtype(&self) -> &'static str {
        match self {
            Two::Single(_) => "float32",
            Two::Double(_) => "float64",
        }
    }
}

/// Runs the body with `$value` the value in either precision.
macro_rules! either {
    ($two:expr, |$value:ident| $body:expr) => {
        match $two {
            $crate::models::Two::Single($value) => $body,
            $crate::models::Two::Double($value) => $body,
        }
    };
}
pub(crate) use either;

/// Runs the body with `$R` the precision that `$single` asks for, and keeps its value.
macro_rules! in_dtype {
    ($single:expr, |$R:ident| $body:expr) => {
        if $single {
            type $R = f32;
            $crate::models::Two::Single($body)
        } else {
            type $R = f64;
            $crate::models::Two::Double($body)
        }
    };
}
pub(crate) use in_dtype;

/// Runs the body with `$data` the rows, targets and weights in their precision `$R`, and keeps its value.
macro_rules! with_data {
    ($x:expr, $targets:expr, $weights:expr, |$data:ident: $R:ident| $body:expr) => {
        match &$x {
            $crate::arrays::Rows::Single(_) => {
                #[allow(dead_code)]
                type $R = f32;
                let $data = $crate::models::Data::<f32>::new(&$x, &$targets, $weights.as_ref())?;
                $crate::models::Two::Single($body)
            }
            $crate::arrays::Rows::Double(_) => {
                #[allow(dead_code)]
                type $R = f64;
                let $data = $crate::models::Data::<f64>::new(&$x, &$targets, $weights.as_ref())?;
                $crate::models::Two::Double($body)
            }
        }
    };
}
pub(crate) use with_data;

/// JSON that Python has written.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| not_understood(json, &error))
}

/// JSON that Python is to read.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The core's word for a penalty is Python's `alpha`.
pub(crate) fn as_alpha(error: Error) -> Error {
    match error {
        Error::Parameter { name: "penalty", expected, found } => Error::Parameter { name: "alpha", expected, found },
        other => other,
    }
}

/// The rows of `X`, which must have the precision of the fit.
pub(crate) fn as_in_fit<'a, R: Modelled>(py: Python<'_>, x: &'a Rows<'_>) -> PyResult<View<'a, R>> {
    match R::table(x) {
        Some(table) => table.view(),
        None => Err(PyTypeError::new_err(format!("X must be of dtype {}, as in fit", R::get_dtype(py)))),
    }
}

/// One row of `outputs` values per row of `X`, filled in block by block; features are those of `map`.
pub(crate) fn values<'py, R: Modelled>(
    py: Python<'py>,
    x: &Rows<'py>,
    n_jobs: Option<i64>,
    map: &DynMap<R>,
    outputs: usize,
    fill: impl Fn(ArrayView2<'_, R>, ArrayViewMut2<'_, R>) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = as_in_fit::<R>(py, x)?;
    let values = detached(py, n_jobs, None, |watch| {
        let mut out = Array2::from_elem((rows.nrows(), outputs), R::ZERO);
        blockwise(rows, out.view_mut(), map.tile_rows(), map.output_dim(), watch, fill)?;
        Ok(out)
    })?;
    Ok(to_numpy(py, values))
}

/// What ridge regression is to do, as Python describes it.
#[derive(Debug, Clone, serde::Deserialize)]
struct Plan {
    alpha: f64,
    solver: String,
    fit_intercept: bool,
    tol: Option<f64>,
    max_iter: Option<usize>,
    memory_budget: Option<u64>,
    /// Number of classes, where targets are their numbers.
    classes: Option<usize>,
}

impl Plan {
    fn solver(&self) -> Result<Solver> {
        Ok(match self.solver.as_str() {
            "auto" => Solver::Auto,
            "cholesky" => Solver::Cholesky,
            "dual" => Solver::Dual,
            "cg" => {
                let defaults = ConjugateGradients::default();
                let max_iterations = self.max_iter.unwrap_or(defaults.max_iterations);
                Solver::ConjugateGradients(ConjugateGradients { tolerance: self.tol, max_iterations, ..defaults })
            }
            "sgd" => {
                let defaults = StochasticGradient::default();
                let passes = self.max_iter.unwrap_or(defaults.passes);
                Solver::StochasticGradient(StochasticGradient { passes, ..defaults })
            }
            other => {
                let expected = "\"auto\", \"cholesky\", \"dual\", \"cg\" or \"sgd\"";
                return Err(Error::parameter("solver", expected, format!("{other:?}")));
            }
        })
    }

    fn ridge<R: Precision>(&self, map: DynMap<R>) -> Result<Ridge<DynMap<R>>> {
        let ridge = Ridge::new(map, self.alpha).map_err(as_alpha)?;
        Ok(ridge.with_intercept(self.fit_intercept).with_solver(self.solver()?))
    }

    fn fit<R: Precision>(&self, map: DynMap<R>, mut data: Data<'_, R>, watch: &Watch) -> Result<RidgeModel<DynMap<R>>> {
        let (ridge, mut context) = (self.ridge(map)?, watch.context(self.memory_budget)?);
        one_against_rest(self.classes, &mut data, |source| ridge.fit_stream(source, &mut context)).map_err(|error| {
            match error {
                Error::Parameter { name: "tolerance", expected, found } => {
                    Error::Parameter { name: "tol", expected, found }
                }
                Error::Parameter { name: "max_iterations" | "passes", expected, found } => {
                    Error::Parameter { name: "max_iter", expected, found }
                }
                other => other,
            }
        })
    }
}

/// Runs `work` on a source of targets: the given ones, or one against the rest for each class.
fn one_against_rest<R: Precision, T>(
    classes: Option<usize>,
    source: &mut dyn RowSource<R>,
    work: impl FnOnce(&mut dyn RowSource<R>) -> Result<T>,
) -> Result<T> {
    match classes {
        None => work(source),
        Some(classes) => work(&mut OneAgainstRest::new(source, classes)?),
    }
}

/// Rows, targets and weights in one precision; a source of blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'a, R> {
    pub(crate) rows: View<'a, R>,
    targets: ArrayView2<'a, R>,
    weights: Option<ArrayView1<'a, R>>,
}

impl<'a, R: Precision> Data<'a, R> {
    pub(crate) fn new(x: &'a Rows<'_>, targets: &'a Rows<'_>, weights: Option<&'a Vector<'_>>) -> PyResult<Self>
    where
        R: Modelled,
    {
        let one_precision = || PyTypeError::new_err("rows, targets and weights must be arrays of one dtype");
        let targets = match R::table(targets) {
            Some(Table::Dense(targets)) => targets.as_array(),
            _ => return Err(one_precision()),
        };
        let weights = match weights {
            Some(weights) => Some(R::vector(weights).ok_or_else(one_precision)?.as_array()),
            None => None,
        };
        let rows = R::table(x).ok_or_else(one_precision)?.view()?;
        if targets.nrows() != rows.nrows() || weights.is_some_and(|weights| weights.len() != rows.nrows()) {
            return Err(PyValueError::new_err("rows, targets and weights must be of one length"));
        }
        Ok(Data { rows, targets, weights })
    }
}

impl<R: Precision> RowSource<R> for Data<'_, R> {
    fn input_dim(&self) -> usize {
        self.rows.ncols()
    }

    fn target_dim(&self) -> usize {
        self.targets.ncols()
    }

    fn len_hint(&self) -> Option<usize> {
        Some(self.rows.nrows())
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let n = self.rows.nrows();
        let step = BLOCK_ROWS.min(self.rows.most_rows());
        let mut buffer = Vec::new();
        for start in (0..n).step_by(step) {
            let window = start..(start + step).min(n);
            visit(RowBlock {
                rows: self.rows.rows(window.clone(), &mut buffer)?,
                targets: self.targets.slice(s![window.clone(), ..]),
                weights: self.weights.as_ref().map(|weights| weights.slice(s![window])),
            })?;
        }
        Ok(())
    }
}

/// A precision that models are fitted in.
pub(crate) trait Modelled: Drawable {
    fn table<'a, 'py>(rows: &'a Rows<'py>) -> Option<&'a Table<'py, Self>>;
    fn vector<'a, 'py>(vector: &'a Vector<'py>) -> Option<&'a PyReadonlyArray1<'py, Self>>;
}

macro_rules! modelled {
    ($real:ident, $variant:ident) => {
        impl Modelled for $real {
            fn table<'a, 'py>(rows: &'a Rows<'py>) -> Option<&'a Table<'py, $real>> {
                if let Rows::$variant(table) = rows { Some(table) } else { None }
            }
            fn vector<'a, 'py>(vector: &'a Vector<'py>) -> Option<&'a PyReadonlyArray1<'py, $real>> {
                if let Vector::$variant(vector) = vector { Some(vector) } else { None }
            }
        }
    };
}
modelled!(f32, Single);
modelled!(f64, Double);

/// A fitted ridge regression on features.
#[pyclass(frozen, name = "RidgeModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyRidgeModel {
    map: Py<Map>,
    model: Two<RidgeModel<DynMap<f32>>, RidgeModel<DynMap<f64>>>,
}

#[pymethods]
impl PyRidgeModel {
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
        let plan: Plan = parse(plan)?;
        let drawn = map.get();
        let model = with_data!(x, targets, weights, |data: R| detached(py, n_jobs, progress, |watch| {
            plan.fit(drawn.real::<R>()?, data, watch)
        })?);
        Ok(PyRidgeModel { map, model })
    }

    /// The model of a file, on the given map or the one that the file describes.
    #[staticmethod]
    #[pyo3(signature = (file, map=None))]
    fn from_file(py: Python<'_>, file: &ModelFile, map: Option<Py<Map>>) -> PyResult<Self> {
        let (map, classified) = (file.map(py, map)?, file.kind() == "ridge_classifier");
        let model = in_dtype!(file.single()?, |R| {
            let load = || -> Result<RidgeModel<DynMap<R>>> {
                let map = map.get().real::<R>()?;
                if classified {
                    Ok(RidgeClassifierModel::from_stored(&file.stored, map)?.regression().clone())
                } else {
                    RidgeModel::from_stored(&file.stored, map)
                }
            };
            load().map_err(to_python)?
        });
        Ok(PyRidgeModel { map, model })
    }

    /// The model as a file; of a classifier if `classifier`.
    #[pyo3(signature = (classifier=false))]
    fn to_file(&self, classifier: bool) -> PyResult<ModelFile> {
        let described = described(self.map.get()).map_err(to_python)?;
        let stored = either!(&self.model, |model| if classifier {
            RidgeClassifierModel::from_regression(model.clone()).to_stored(described, None)
        } else {
            model.to_stored(described)
        });
        Ok(stored.map_err(to_python)?.into())
    }

    /// Values predicted for the rows of `X`, one column per target or class; `X` has the dtype of the fit.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        either!(&self.model, |model| {
            values(py, &x, n_jobs, model.map(), model.output_dim(), |rows, out| model.predict_into(rows, out))
        })
    }

    /// One row of coefficients per feature, one column per target.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(&self.model, |model| PyArray2::from_array(py, &model.coefficients()).into_any())
    }

    /// One number per target.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(&self.model, |model| PyArray1::from_array(py, &model.intercept()).into_any())
    }

    /// How the solution was found, as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        json(either!(&self.model, |model| model.report()))
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.model.dtype()
    }

    /// The map whose features the model is linear in.
    #[getter]
    fn map(&self, py: Python<'_>) -> Py<Map> {
        self.map.clone_ref(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile, Py<Map>))> {
        let model = slf.get();
        Ok((slf.get_type().getattr("from_file")?, (model.to_file(false)?, model.map(slf.py()))))
    }
}

/// Sums over features and targets, from which ridge models are solved: rows may come in any number of calls.
#[pyclass(module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct RidgeSums {
    map: Py<Map>,
    classes: Option<usize>,
    sums: Two<Gram<f32>, Gram<f64>>,
}

#[pymethods]
impl RidgeSums {
    /// No rows yet, for `outputs` targets of type `dtype`, or for numbers of `classes` classes.
    #[new]
    #[pyo3(signature = (map, outputs, dtype, classes=None))]
    fn new(map: Py<Map>, outputs: usize, dtype: &str, classes: Option<usize>) -> PyResult<Self> {
        let features = map.get().real_output_dim();
        let outputs = classes.unwrap_or(outputs);
        let sums = in_dtype!(is_single(dtype)?, |R| Gram::<R>::new(features, outputs).map_err(to_python)?);
        Ok(RidgeSums { map, classes, sums })
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
        let (drawn, weights, classes) = (self.map.get(), weights.as_ref(), self.classes);
        fn push<R: Modelled>(
            gram: &mut Gram<R>,
            drawn: &Map,
            classes: Option<usize>,
            mut data: Data<'_, R>,
            watch: &Watch,
        ) -> Result<()> {
            let (map, mut context) = (drawn.real::<R>()?, watch.context(None)?);
            one_against_rest(classes, &mut data, |source| {
                context.read(source, &mut |block| gram.push_rows(&map, block))
            })
        }
        either!(&mut self.sums, |gram| {
            let data = Data::new(&x, &targets, weights)?;
            detached(py, n_jobs, progress, |watch| push(gram, drawn, classes, data, watch))
        })
    }

    /// Adds the rows of other sums over the same map.
    fn merge(&mut self, other: &Self) -> PyResult<()> {
        match (&mut self.sums, &other.sums) {
            (Two::Single(sums), Two::Single(other)) => sums.merge(other).map_err(to_python),
            (Two::Double(sums), Two::Double(other)) => sums.merge(other).map_err(to_python),
            _ => Err(one_dtype()),
        }
    }

    /// Number of rows added.
    #[getter]
    fn count(&self) -> u64 {
        either!(&self.sums, |gram| gram.count())
    }

    /// The model of all rows so far; the sums stay.
    #[pyo3(signature = (plan, n_jobs=None))]
    fn solve(&self, py: Python<'_>, plan: &str, n_jobs: Option<i64>) -> PyResult<PyRidgeModel> {
        let plan: Plan = parse(plan)?;
        let drawn = self.map.get();
        fn run<R: Modelled>(drawn: &Map, gram: &Gram<R>, plan: &Plan) -> Result<RidgeModel<DynMap<R>>> {
            plan.ridge(drawn.real::<R>()?)?.fit_moments(gram.clone().finish())
        }
        let model = match &self.sums {
            Two::Single(gram) => Two::Single(detached(py, n_jobs, None, |_| run(drawn, gram, &plan))?),
            Two::Double(gram) => Two::Double(detached(py, n_jobs, None, |_| run(drawn, gram, &plan))?),
        };
        Ok(PyRidgeModel { map: self.map.clone_ref(py), model })
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        RidgeSums { map: self.map.clone_ref(py), classes: self.classes, sums: self.sums.clone() }
    }

    /// The sums that were pickled as bytes.
    #[staticmethod]
    fn from_bytes(map: Py<Map>, bytes: &[u8], dtype: &str, classes: Option<usize>) -> PyResult<Self> {
        let sums = in_dtype!(is_single(dtype)?, |R| Gram::<R>::from_bytes(bytes).map_err(to_python)?);
        Ok(RidgeSums { map, classes, sums })
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Py<Map>, Bound<'py, PyBytes>, &'static str, Option<usize>))> {
        let (py, own) = (slf.py(), slf.borrow());
        let bytes = either!(&own.sums, |gram| gram.to_bytes()).map_err(to_python)?;
        let parts = (own.map.clone_ref(py), PyBytes::new(py, &bytes), own.sums.dtype(), own.classes);
        Ok((slf.get_type().getattr("from_bytes")?, parts))
    }
}

pub(crate) fn one_dtype() -> PyErr {
    PyTypeError::new_err("sums must be of one dtype and kind to be added")
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RidgeSums>()?;
    module.add_class::<PyRidgeModel>()
}
