//! Models of several outputs that are one function, their kernels and codes.

use crate::arrays::{Precision, Rows, Vector, to_numpy};
use crate::detached::{Watch, blockwise, detached};
use crate::errors::{not_understood, to_python};
use crate::models::{Data, Modelled, either};
use bochner::feature::{Directions, FeatureMap, OperatorSpec};
use bochner::kernel::{Any, OperatorKernel, OutputMatrix};
use bochner::model::{
    ExactOperatorRidge, ExactOperatorRidgeModel, Fit, OperatorRidge, OperatorRidgeModel, OperatorSolver, Predict,
    RidgeModel, target_covariance,
};
use bochner::rows::{Coded, Coding, Lagged, RowSource, simplex_codes};
use bochner::solve::SolveReport;
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An exact kernel whose values are matrices.
#[pyclass(frozen, name = "OperatorKernel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyOperatorKernel {
    kernel: OperatorKernel,
}

#[pymethods]
impl PyOperatorKernel {
    /// The kernel described by `spec` (JSON).
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let kernel = serde_json::from_str(spec).map_err(|error| not_understood(spec, &error))?;
        Ok(PyOperatorKernel { kernel })
    }

    /// The kernel between the rows of `X` and of `Y`, of shape (rows of X, rows of Y, outputs, outputs).
    #[pyo3(signature = (x, y, n_jobs=None), text_signature = "($self, X, Y, n_jobs=None)")]
    fn matrix<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        y: PyReadonlyArray2<'py, f64>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, y) = (x.as_array(), y.as_array());
        let matrix = detached(py, n_jobs, None, |_| self.kernel.matrix(x, y))?;
        Ok(matrix.to_pyarray(py).into_any())
    }
}

/// The output matrix of a decomposable kernel.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged)]
enum Outputs {
    Given(OutputMatrix),
    Found(Found),
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Found {
    Identity,
    Covariance,
    Learned,
}

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged)]
enum Kernel {
    Whole(OperatorKernel),
    Decomposable { base: Any, outputs: Outputs },
}

/// What a regression is to do, as Python describes it.
#[derive(Debug, Clone, serde::Deserialize)]
struct Plan {
    kernel: Kernel,
    n_components: usize,
    projection: Directions,
    seed: u64,
    alpha: f64,
    fit_intercept: bool,
    solver: String,
    /// How many classes, and the code they have, where targets are their numbers.
    classes: Option<usize>,
    coding: Option<Coding>,
}

/// Steps of the search for an output matrix.
const STEPS: usize = 100;

impl Plan {
    fn solver(&self) -> Result<OperatorSolver> {
        Ok(match self.solver.as_str() {
            "auto" => OperatorSolver::Auto,
            "stein" => OperatorSolver::Stein,
            "cholesky" => OperatorSolver::Cholesky,
            "cg" => OperatorSolver::ConjugateGradients(Default::default()),
            "lbfgs" => OperatorSolver::Lbfgs(Default::default()),
            "sgd" => OperatorSolver::StochasticGradient(Default::default()),
            other => {
                let expected = "\"auto\", \"stein\", \"cholesky\", \"cg\", \"lbfgs\" or \"sgd\"";
                return Err(Error::parameter("solver", expected, format!("{other:?}")));
            }
        })
    }

    fn ridge<R: Precision>(&self, kernel: OperatorKernel, input_dim: usize) -> Result<OperatorRidge<R>> {
        let (n_components, projection, seed) = (self.n_components, self.projection, self.seed);
        let features = OperatorSpec { kernel, n_components, projection, seed }.build(input_dim)?;
        OperatorRidge::new(features, self.alpha)
            .map_err(|error| match error {
                Error::Parameter { expected, found, .. } => Error::Parameter { name: "alpha", expected, found },
                other => other,
            })?
            .with_intercept(self.fit_intercept)
            .with_solver(self.solver()?)
    }

    fn fit<R: Modelled>(&self, data: Data<'_, R>, watch: &Watch) -> Result<OperatorRidgeModel<R>> {
        let mut source = data.watched(watch);
        match (self.classes, self.coding) {
            (Some(classes), Some(coding)) => self.fit_source(&mut Coded::new(&mut source, classes, coding)?),
            _ => self.fit_source(&mut source),
        }
    }

    fn fit_source<R: Modelled>(&self, source: &mut dyn RowSource<R>) -> Result<OperatorRidgeModel<R>> {
        let (d, p) = (source.input_dim(), source.target_dim());
        let kernel = match self.kernel.clone() {
            Kernel::Whole(kernel) => kernel,
            Kernel::Decomposable { base, outputs } => {
                let with = |outputs| OperatorKernel::decomposable(base.clone(), outputs);
                match outputs {
                    Outputs::Given(outputs) => with(outputs)?,
                    Outputs::Found(Found::Identity) => with(OutputMatrix::identity(p)?)?,
                    Outputs::Found(Found::Covariance) => with(OutputMatrix::new(target_covariance(source)?.view())?)?,
                    Outputs::Found(Found::Learned) => {
                        let plain = self.ridge::<R>(with(OutputMatrix::identity(p)?)?, d)?;
                        with(plain.learn_outputs(STEPS, source)?.outputs)?
                    }
                }
            }
        };
        self.ridge(kernel, d)?.fit(source)
    }
}

#[derive(Debug)]
enum Fitted {
    Single(OperatorRidgeModel<f32>),
    Double(OperatorRidgeModel<f64>),
}

/// A fitted regression of several outputs that are one function.
#[pyclass(frozen, module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct OperatorModel {
    model: Fitted,
}

#[pymethods]
impl OperatorModel {
    /// Fits to rows, targets and weights of one dtype; `plan` is JSON, `progress` is called with the rows read.
    #[staticmethod]
    #[pyo3(signature = (x, targets, weights, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(X, targets, weights, plan, n_jobs=None, progress=None)")]
    fn fit(
        py: Python<'_>,
        x: Rows<'_>,
        targets: Rows<'_>,
        weights: Option<Vector<'_>>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let plan: Plan = serde_json::from_str(plan).map_err(|error| not_understood(plan, &error))?;
        let weights = weights.as_ref();
        let model = match &x {
            Rows::Single(_) => {
                let data = Data::<f32>::new(&x, &targets, weights)?;
                Fitted::Single(detached(py, n_jobs, progress, |watch| plan.fit(data, watch))?)
            }
            Rows::Double(_) => {
                let data = Data::<f64>::new(&x, &targets, weights)?;
                Fitted::Double(detached(py, n_jobs, progress, |watch| plan.fit(data, watch))?)
            }
        };
        Ok(OperatorModel { model })
    }

    /// A model from its parts: the description of its features, one row of coefficients per scalar feature, one column per
    /// output.
    #[staticmethod]
    fn from_parts(
        spec: &str,
        input_dim: usize,
        coefficients: Rows<'_>,
        intercept: Vector<'_>,
        report: &str,
    ) -> PyResult<Self> {
        let spec: OperatorSpec = serde_json::from_str(spec).map_err(|error| not_understood(spec, &error))?;
        let report: SolveReport = serde_json::from_str(report).map_err(|error| not_understood(report, &error))?;
        fn run<R: Precision>(
            spec: &OperatorSpec,
            input_dim: usize,
            coefficients: ArrayView2<'_, R>,
            intercept: &PyReadonlyArray1<'_, R>,
            report: SolveReport,
        ) -> PyResult<OperatorRidgeModel<R>> {
            let features = spec.build(input_dim).map_err(to_python)?;
            let (coefficients, intercept) = (coefficients.to_owned(), intercept.as_array().to_owned());
            RidgeModel::from_parts(features.map().clone(), coefficients, intercept, report)
                .and_then(|ridge| OperatorRidgeModel::from_parts(features, ridge))
                .map_err(to_python)
        }
        use crate::arrays::Table::Dense;
        let model = match (&coefficients, &intercept) {
            (Rows::Single(Dense(c)), Vector::Single(b)) => {
                Fitted::Single(run(&spec, input_dim, c.as_array(), b, report)?)
            }
            (Rows::Double(Dense(c)), Vector::Double(b)) => {
                Fitted::Double(run(&spec, input_dim, c.as_array(), b, report)?)
            }
            _ => return Err(PyTypeError::new_err("coefficients and intercept must be arrays of one dtype")),
        };
        Ok(OperatorModel { model })
    }

    /// Values predicted for the rows of `X`, one column per output; `X` has the dtype of the fit.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        fn run<'py, R: Modelled>(
            py: Python<'py>,
            model: &OperatorRidgeModel<R>,
            x: &Rows<'py>,
            n_jobs: Option<i64>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let rows = match R::table(x) {
                Some(table) => table.view()?,
                None => {
                    return Err(PyTypeError::new_err(format!("X must be of dtype {}, as in fit", R::get_dtype(py))));
                }
            };
            let map = model.features().map();
            let values = detached(py, n_jobs, None, |watch| {
                let mut out = Array2::from_elem((rows.nrows(), model.output_dim()), R::from_f64(0.0));
                let fill = |rows: ArrayView2<'_, R>, out: ArrayViewMut2<'_, R>| model.predict_into(rows, out);
                blockwise(rows, out.view_mut(), map.tile_rows(), map.output_dim(), watch, fill)?;
                Ok(out)
            })?;
            Ok(to_numpy(py, values))
        }
        either!(Fitted, &self.model, |model| run(py, model, &x, n_jobs))
    }

    /// Derivatives of outputs by inputs at the rows of `X`, of shape (rows, outputs, inputs).
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn jacobian<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = x.as_array();
        let jacobian = match &self.model {
            Fitted::Single(model) => {
                let x = x.mapv(|v| v as f32);
                detached(py, n_jobs, None, |_| model.jacobian(x.view()))?
            }
            Fitted::Double(model) => detached(py, n_jobs, None, |_| model.jacobian(x))?,
        };
        Ok(jacobian.to_pyarray(py).into_any())
    }

    /// One row of coefficients per scalar feature, one column per output.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(Fitted, &self.model, |model| PyArray2::from_array(py, &model.scalar().coefficients()).into_any())
    }

    /// One number per output.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(Fitted, &self.model, |model| PyArray1::from_array(py, &model.scalar().intercept()).into_any())
    }

    /// How the solution was found, as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        let report = either!(Fitted, &self.model, |model| model.report());
        serde_json::to_string(report).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Description of the features, as JSON.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        let spec = either!(Fitted, &self.model, |model| model.features().spec());
        serde_json::to_string(spec).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.model {
            Fitted::Single(_) => "float32",
            Fitted::Double(_) => "float64",
        }
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, usize, Bound<'py, PyAny>, Bound<'py, PyAny>, String))> {
        let (py, model) = (slf.py(), slf.get());
        let input_dim = either!(Fitted, &model.model, |model| model.input_dim());
        let parts = (model.spec()?, input_dim, model.coefficients(py), model.intercept(py), model.report()?);
        Ok((slf.get_type().getattr("from_parts")?, parts))
    }
}

/// A fitted exact regression with a kernel whose values are matrices.
#[pyclass(frozen, module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct ExactOperatorModel {
    model: ExactOperatorRidgeModel,
}

#[pymethods]
impl ExactOperatorModel {
    /// Fits the kernel described by `kernel` (JSON).
    #[staticmethod]
    #[pyo3(signature = (kernel, x, targets, alpha, n_jobs=None), text_signature = "(kernel, X, targets, alpha, n_jobs=None)")]
    fn fit(
        py: Python<'_>,
        kernel: &str,
        x: PyReadonlyArray2<'_, f64>,
        targets: PyReadonlyArray2<'_, f64>,
        alpha: f64,
        n_jobs: Option<i64>,
    ) -> PyResult<Self> {
        let kernel: OperatorKernel = serde_json::from_str(kernel).map_err(|error| not_understood(kernel, &error))?;
        let (x, targets) = (x.as_array(), targets.as_array());
        let model = detached(py, n_jobs, None, |_| {
            ExactOperatorRidge::new(kernel, alpha)
                .map_err(|error| match error {
                    Error::Parameter { expected, found, .. } => Error::Parameter { name: "alpha", expected, found },
                    other => other,
                })?
                .fit_arrays(x.to_owned(), targets)
        })?;
        Ok(ExactOperatorModel { model })
    }

    /// A model from its parts.
    #[staticmethod]
    fn from_parts(
        kernel: &str,
        rows: PyReadonlyArray2<'_, f64>,
        dual: PyReadonlyArray2<'_, f64>,
        report: &str,
    ) -> PyResult<Self> {
        let kernel: OperatorKernel = serde_json::from_str(kernel).map_err(|error| not_understood(kernel, &error))?;
        let report: SolveReport = serde_json::from_str(report).map_err(|error| not_understood(report, &error))?;
        let (rows, dual) = (rows.as_array().to_owned(), dual.as_array().to_owned());
        let model = ExactOperatorRidgeModel::from_parts(kernel, rows, dual, report).map_err(to_python)?;
        Ok(ExactOperatorModel { model })
    }

    /// Values predicted for the rows of `X`, one column per output.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = x.as_array();
        Ok(to_numpy(py, detached(py, n_jobs, None, |_| self.model.predict(x))?))
    }

    /// Dual coefficients, one row per row of the fit.
    #[getter]
    fn dual<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        PyArray2::from_array(py, &self.model.dual()).into_any()
    }

    /// How the solution was found, as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        serde_json::to_string(self.model.report()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, Bound<'py, PyAny>, Bound<'py, PyAny>, String))> {
        let (py, own) = (slf.py(), slf.get());
        let kernel = serde_json::to_string(own.model.kernel()).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let rows = PyArray2::from_array(py, &own.model.rows()).into_any();
        Ok((slf.get_type().getattr("from_parts")?, (kernel, rows, own.dual(py), own.report()?)))
    }
}

/// Codes of classes as corners of a simplex, one row per class.
#[pyfunction(name = "simplex_codes")]
fn py_simplex_codes(py: Python<'_>, n_classes: usize) -> PyResult<Bound<'_, PyAny>> {
    Ok(to_numpy(py, simplex_codes(n_classes).map_err(to_python)?))
}

/// Rows and targets for autoregression of a series.
#[pyfunction(name = "lagged_rows")]
fn py_lagged_rows<'py>(
    py: Python<'py>,
    series: PyReadonlyArray2<'py, f64>,
    n_lags: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (rows, targets) = Lagged::new(series.as_array(), n_lags).map_err(to_python)?.arrays();
    Ok((to_numpy(py, rows), to_numpy(py, targets)))
}

/// The output matrix of a graph between outputs.
#[pyfunction(name = "graph_outputs")]
fn py_graph_outputs<'py>(py: Python<'py>, weights: PyReadonlyArray2<'py, f64>) -> PyResult<Bound<'py, PyAny>> {
    let outputs = OutputMatrix::from_graph(weights.as_array()).map_err(to_python)?;
    Ok(to_numpy(py, outputs.matrix().to_owned()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyOperatorKernel>()?;
    module.add_class::<OperatorModel>()?;
    module.add_class::<ExactOperatorModel>()?;
    module.add_function(wrap_pyfunction!(py_simplex_codes, module)?)?;
    module.add_function(wrap_pyfunction!(py_lagged_rows, module)?)?;
    module.add_function(wrap_pyfunction!(py_graph_outputs, module)?)
}
