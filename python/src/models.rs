//! Models over feature maps: rows stream through the core, the feature matrix is never made.

use crate::arrays::{Precision, Rows, Table, Vector, View, is_single, to_numpy};
use crate::detached::{Watch, blockwise, detached};
use crate::errors::{not_understood, to_python};
use crate::features::{Drawable, Map};
use bochner::accumulate::Gram;
use bochner::feature::{DynMap, FeatureMap};
use bochner::model::{Fit, Predict, Ridge, RidgeModel};
use bochner::rows::{OneAgainstRest, RowBlock, RowSource, Watched};
use bochner::solve::{SolveReport, Solver};
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Rows between two looks for signals; accumulators collect as many anyway.
const BLOCK_ROWS: usize = 1024;

/// What ridge regression is to do, as Python describes it.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
struct Plan {
    alpha: f64,
    solver: Solver,
    fit_intercept: bool,
    /// Number of classes, where targets are their numbers.
    classes: Option<usize>,
}

impl Plan {
    fn parse(json: &str) -> PyResult<Self> {
        serde_json::from_str(json).map_err(|error| not_understood(json, &error))
    }

    fn ridge<R: Precision>(&self, map: DynMap<R>) -> Result<Ridge<DynMap<R>>> {
        let ridge = Ridge::new(map, self.alpha).map_err(|error| match error {
            Error::Parameter { expected, found, .. } => Error::Parameter { name: "alpha", expected, found },
            other => other,
        })?;
        Ok(ridge.with_intercept(self.fit_intercept).with_solver(self.solver))
    }

    fn fit<R: Precision>(&self, map: DynMap<R>, data: Data<'_, R>, watch: &Watch) -> Result<RidgeModel<DynMap<R>>> {
        let ridge = self.ridge(map)?;
        self.targets(&mut data.watched(watch), |source| ridge.fit(source))
    }

    fn push<R: Precision>(&self, gram: &mut Gram<R>, map: &DynMap<R>, data: Data<'_, R>, watch: &Watch) -> Result<()> {
        self.targets(&mut data.watched(watch), |source| source.for_each_block(&mut |block| gram.push_rows(map, block)))
    }

    /// Runs `work` on a source of targets: the given ones, or one against the rest for each class.
    fn targets<R: Precision, T>(
        &self,
        source: &mut dyn RowSource<R>,
        work: impl FnOnce(&mut dyn RowSource<R>) -> Result<T>,
    ) -> Result<T> {
        match self.classes {
            None => work(source),
            Some(classes) => work(&mut OneAgainstRest::new(source, classes)?),
        }
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

    pub(crate) fn watched(self, watch: &Watch) -> impl RowSource<R> {
        let total = self.rows.nrows();
        Watched::new(self, move |at| {
            watch.reach((at.pass - 1) * total + at.rows);
            watch.checkpoint()
        })
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
    fn fitted(model: RidgeModel<DynMap<Self>>) -> Fitted;
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
            fn fitted(model: RidgeModel<DynMap<$real>>) -> Fitted {
                Fitted::$variant(model)
            }
        }
    };
}
modelled!(f32, Single);
modelled!(f64, Double);

/// Fitted ridge regression in either precision.
#[derive(Debug)]
pub(crate) enum Fitted {
    Single(RidgeModel<DynMap<f32>>),
    Double(RidgeModel<DynMap<f64>>),
}

/// Runs the body with `$model` the value of an enum of both precisions.
macro_rules! either {
    ($both:ident, $value:expr, |$model:ident| $body:expr) => {
        match $value {
            $both::Single($model) => $body,
            $both::Double($model) => $body,
        }
    };
}
pub(crate) use either;

/// A fitted ridge regression on features.
#[pyclass(frozen, name = "RidgeModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyRidgeModel {
    map: Py<Map>,
    model: Fitted,
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
        let plan = Plan::parse(plan)?;
        fn run<R: Modelled>(drawn: &Map, data: Data<'_, R>, plan: &Plan, watch: &Watch) -> Result<Fitted> {
            plan.fit(drawn.real::<R>()?, data, watch).map(R::fitted)
        }
        let (drawn, weights) = (map.get(), weights.as_ref());
        let model = match &x {
            Rows::Single(_) => {
                let data = Data::<f32>::new(&x, &targets, weights)?;
                detached(py, n_jobs, progress, |watch| run(drawn, data, &plan, watch))?
            }
            Rows::Double(_) => {
                let data = Data::<f64>::new(&x, &targets, weights)?;
                detached(py, n_jobs, progress, |watch| run(drawn, data, &plan, watch))?
            }
        };
        Ok(PyRidgeModel { map, model })
    }

    /// A model from its parts: one row of coefficients per feature, one column per target.
    #[staticmethod]
    fn from_parts(map: Py<Map>, coefficients: Rows<'_>, intercept: Vector<'_>, report: &str) -> PyResult<Self> {
        let report: SolveReport = serde_json::from_str(report).map_err(|error| not_understood(report, &error))?;
        fn run<R: Modelled>(
            map: &Map,
            coefficients: &Rows<'_>,
            intercept: &Vector<'_>,
            report: SolveReport,
        ) -> PyResult<Fitted> {
            match (R::table(coefficients), R::vector(intercept)) {
                (Some(Table::Dense(coefficients)), Some(intercept)) => {
                    let (coefficients, intercept) =
                        (coefficients.as_array().to_owned(), intercept.as_array().to_owned());
                    let map = map.real::<R>().map_err(to_python)?;
                    RidgeModel::from_parts(map, coefficients, intercept, report).map(R::fitted).map_err(to_python)
                }
                _ => Err(PyTypeError::new_err("coefficients and intercept must be arrays of one dtype")),
            }
        }
        let model = match &coefficients {
            Rows::Single(_) => run::<f32>(map.get(), &coefficients, &intercept, report)?,
            Rows::Double(_) => run::<f64>(map.get(), &coefficients, &intercept, report)?,
        };
        Ok(PyRidgeModel { map, model })
    }

    /// Values predicted for the rows of `X`, one column per target or class; `X` has the dtype of the fit.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        fn run<'py, R: Modelled>(
            py: Python<'py>,
            model: &RidgeModel<DynMap<R>>,
            x: &Rows<'py>,
            n_jobs: Option<i64>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let rows = match R::table(x) {
                Some(table) => table.view()?,
                None => {
                    return Err(PyTypeError::new_err(format!("X must be of dtype {}, as in fit", R::get_dtype(py))));
                }
            };
            let map = model.map();
            let values = detached(py, n_jobs, None, |watch| {
                let mut out = Array2::from_elem((rows.nrows(), model.output_dim()), R::ZERO);
                let fill = |rows: ArrayView2<'_, R>, out: ArrayViewMut2<'_, R>| model.predict_into(rows, out);
                blockwise(rows, out.view_mut(), map.tile_rows(), map.output_dim(), watch, fill)?;
                Ok(out)
            })?;
            Ok(to_numpy(py, values))
        }
        either!(Fitted, &self.model, |model| run(py, model, &x, n_jobs))
    }

    /// One row of coefficients per feature, one column per target.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(Fitted, &self.model, |model| PyArray2::from_array(py, &model.coefficients()).into_any())
    }

    /// One number per target.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(Fitted, &self.model, |model| PyArray1::from_array(py, &model.intercept()).into_any())
    }

    /// How the solution was found, as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        let report = either!(Fitted, &self.model, |model| model.report());
        serde_json::to_string(report).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.model {
            Fitted::Single(_) => "float32",
            Fitted::Double(_) => "float64",
        }
    }

    /// The map whose features the model is linear in.
    #[getter]
    fn map(&self, py: Python<'_>) -> Py<Map> {
        self.map.clone_ref(py)
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Py<Map>, Bound<'py, PyAny>, Bound<'py, PyAny>, String))> {
        let (py, model) = (slf.py(), slf.get());
        let parts = (model.map(py), model.coefficients(py), model.intercept(py), model.report()?);
        Ok((slf.get_type().getattr("from_parts")?, parts))
    }
}

/// Sums over features and targets in either precision.
#[derive(Debug)]
enum Sums {
    Single(Gram<f32>),
    Double(Gram<f64>),
}

/// Sums over features and targets, from which ridge models are solved: rows may come in any number of calls.
#[pyclass(module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct Accumulator {
    map: Py<Map>,
    sums: Sums,
}

#[pymethods]
impl Accumulator {
    /// No rows yet, for `outputs` targets of type `dtype`.
    #[new]
    fn new(map: Py<Map>, outputs: usize, dtype: &str) -> PyResult<Self> {
        let features = map.get().real_output_dim();
        let sums = if is_single(dtype)? {
            Gram::new(features, outputs).map(Sums::Single)
        } else {
            Gram::new(features, outputs).map(Sums::Double)
        };
        Ok(Accumulator { map, sums: sums.map_err(to_python)? })
    }

    /// Adds rows with their targets and weights. After an error the sums hold part of them and are of no use.
    #[pyo3(signature = (x, targets, weights, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "($self, X, targets, weights, plan, n_jobs=None, progress=None)")]
    fn push(
        &mut self,
        py: Python<'_>,
        x: Rows<'_>,
        targets: Rows<'_>,
        weights: Option<Vector<'_>>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let plan = Plan::parse(plan)?;
        let (drawn, weights) = (self.map.get(), weights.as_ref());
        match &mut self.sums {
            Sums::Single(gram) => {
                let data = Data::new(&x, &targets, weights)?;
                detached(py, n_jobs, progress, |watch| plan.push(gram, &drawn.real()?, data, watch))
            }
            Sums::Double(gram) => {
                let data = Data::new(&x, &targets, weights)?;
                detached(py, n_jobs, progress, |watch| plan.push(gram, &drawn.real()?, data, watch))
            }
        }
    }

    /// Adds the rows of another accumulator of the same map.
    fn merge(&mut self, other: &Self) -> PyResult<()> {
        match (&mut self.sums, &other.sums) {
            (Sums::Single(sums), Sums::Single(other)) => sums.merge(other).map_err(to_python),
            (Sums::Double(sums), Sums::Double(other)) => sums.merge(other).map_err(to_python),
            _ => Err(PyTypeError::new_err("accumulators must be of one dtype")),
        }
    }

    /// Number of rows added.
    #[getter]
    fn count(&self) -> u64 {
        either!(Sums, &self.sums, |gram| gram.count())
    }

    /// The model of all rows so far; the sums stay.
    #[pyo3(signature = (plan, n_jobs=None))]
    fn solve(&self, py: Python<'_>, plan: &str, n_jobs: Option<i64>) -> PyResult<PyRidgeModel> {
        let plan = Plan::parse(plan)?;
        let drawn = self.map.get();
        fn run<R: Modelled>(drawn: &Map, gram: &Gram<R>, plan: &Plan) -> Result<Fitted> {
            plan.ridge(drawn.real::<R>()?)?.fit_moments(gram.clone().finish()).map(R::fitted)
        }
        let model = either!(Sums, &self.sums, |gram| detached(py, n_jobs, None, |_| run(drawn, gram, &plan)))?;
        Ok(PyRidgeModel { map: self.map.clone_ref(py), model })
    }
}
