//! Support vector machines over feature maps.

use crate::arrays::{Precision, Rows, Table, Vector, to_numpy};
use crate::detached::{Watch, blockwise, detached};
use crate::errors::{not_understood, to_python};
use crate::features::Map;
use crate::models::{Data, Modelled, either};
use bochner::Result;
use bochner::feature::{DynMap, FeatureMap};
use bochner::model::{Svm, SvmModel};
use bochner::random::Seed;
use bochner::solve::{GapReport, Hinge};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use numpy::{PyArray1, PyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// What the machine is to do, as Python describes it.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
struct Plan {
    #[serde(rename = "C")]
    c: f64,
    loss: Hinge,
    tol: f64,
    max_iter: usize,
    fit_intercept: bool,
    intercept_scaling: f64,
    memory_budget: Option<u64>,
    classes: usize,
    seed: u64,
}

impl Plan {
    fn fit<R: Precision>(&self, map: DynMap<R>, data: Data<'_, R>, watch: &Watch) -> Result<SvmModel<DynMap<R>>> {
        let mut svm = Svm::new(map, self.c)?
            .with_loss(self.loss)
            .with_tolerance(self.tol)?
            .with_max_epochs(self.max_iter)?
            .with_intercept(self.fit_intercept.then_some(self.intercept_scaling))?
            .with_seed(Seed::new(self.seed))
            .with_classes(self.classes)?;
        if let Some(bytes) = self.memory_budget {
            svm = svm.with_memory_budget(bytes)?;
        }
        svm.fit_watched(&mut data.watched(watch), &|| watch.checkpoint())
    }
}

/// A precision that machines are fitted in.
trait Separable: Modelled {
    fn machine(model: SvmModel<DynMap<Self>>) -> Machine;
}

/// A fitted machine in either precision.
#[derive(Debug)]
enum Machine {
    Single(SvmModel<DynMap<f32>>),
    Double(SvmModel<DynMap<f64>>),
}

impl Separable for f32 {
    fn machine(model: SvmModel<DynMap<f32>>) -> Machine {
        Machine::Single(model)
    }
}

impl Separable for f64 {
    fn machine(model: SvmModel<DynMap<f64>>) -> Machine {
        Machine::Double(model)
    }
}

/// A fitted support vector machine on features.
#[pyclass(frozen, name = "SvmModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PySvmModel {
    map: Py<Map>,
    model: Machine,
}

#[pymethods]
impl PySvmModel {
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
        let plan: Plan = serde_json::from_str(plan).map_err(|error| not_understood(plan, &error))?;
        fn run<R: Separable>(drawn: &Map, data: Data<'_, R>, plan: &Plan, watch: &Watch) -> Result<Machine> {
            plan.fit(drawn.real::<R>()?, data, watch).map(R::machine)
        }
        let (drawn, weights) = (map.get(), weights.as_ref());
        let model = match &x {
            Rows::Single(_) => {
                let data = Data::<f32>::new(&x, &labels, weights)?;
                detached(py, n_jobs, progress, |watch| run(drawn, data, &plan, watch))?
            }
            Rows::Double(_) => {
                let data = Data::<f64>::new(&x, &labels, weights)?;
                detached(py, n_jobs, progress, |watch| run(drawn, data, &plan, watch))?
            }
        };
        Ok(PySvmModel { map, model })
    }

    /// A model from its parts: one row of coefficients per feature, one column per problem.
    #[staticmethod]
    fn from_parts(
        map: Py<Map>,
        coefficients: Rows<'_>,
        intercept: Vector<'_>,
        classes: usize,
        reports: &str,
    ) -> PyResult<Self> {
        let reports: Vec<GapReport> = serde_json::from_str(reports).map_err(|error| not_understood(reports, &error))?;
        fn run<R: Separable>(
            map: &Map,
            coefficients: &Rows<'_>,
            intercept: &Vector<'_>,
            classes: usize,
            reports: Vec<GapReport>,
        ) -> PyResult<Machine> {
            match (R::table(coefficients), R::vector(intercept)) {
                (Some(Table::Dense(coefficients)), Some(intercept)) => {
                    let (coefficients, intercept) =
                        (coefficients.as_array().to_owned(), intercept.as_array().to_owned());
                    let map = map.real::<R>().map_err(to_python)?;
                    let model = SvmModel::from_parts(map, coefficients, intercept, classes, reports);
                    model.map(R::machine).map_err(to_python)
                }
                _ => Err(PyTypeError::new_err("coefficients and intercept must be arrays of one dtype")),
            }
        }
        let model = match &coefficients {
            Rows::Single(_) => run::<f32>(map.get(), &coefficients, &intercept, classes, reports)?,
            Rows::Double(_) => run::<f64>(map.get(), &coefficients, &intercept, classes, reports)?,
        };
        Ok(PySvmModel { map, model })
    }

    /// Decision values of the rows of `X`, one column per problem; `X` has the dtype of the fit.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn decide<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        fn run<'py, R: Separable>(
            py: Python<'py>,
            model: &SvmModel<DynMap<R>>,
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
                let mut out = Array2::from_elem((rows.nrows(), model.reports().len()), R::ZERO);
                let fill = |rows: ArrayView2<'_, R>, out: ArrayViewMut2<'_, R>| model.decide_into(rows, out);
                blockwise(rows, out.view_mut(), map.tile_rows(), map.output_dim(), watch, fill)?;
                Ok(out)
            })?;
            Ok(to_numpy(py, values))
        }
        either!(Machine, &self.model, |model| run(py, model, &x, n_jobs))
    }

    /// One row of coefficients per feature, one column per problem.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(Machine, &self.model, |model| PyArray2::from_array(py, &model.coefficients()).into_any())
    }

    /// One number per problem.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(Machine, &self.model, |model| PyArray1::from_array(py, &model.intercept()).into_any())
    }

    /// Number of classes.
    #[getter]
    fn classes(&self) -> usize {
        either!(Machine, &self.model, |model| model.classes())
    }

    /// Objectives and passes of every problem, as JSON.
    #[getter]
    fn reports(&self) -> PyResult<String> {
        let reports = either!(Machine, &self.model, |model| model.reports());
        serde_json::to_string(reports).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.model {
            Machine::Single(_) => "float32",
            Machine::Double(_) => "float64",
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
    ) -> PyResult<(Bound<'py, PyAny>, (Py<Map>, Bound<'py, PyAny>, Bound<'py, PyAny>, usize, String))> {
        let (py, model) = (slf.py(), slf.get());
        let parts = (model.map(py), model.coefficients(py), model.intercept(py), model.classes(), model.reports()?);
        Ok((slf.get_type().getattr("from_parts")?, parts))
    }
}
