//! Models of several outputs that are one function, their kernels and codes.

use crate::arrays::{Precision, Rows, Vector, is_single, to_numpy};
use crate::detached::{Watch, detached};
use crate::errors::to_python;
use crate::files::ModelFile;
use crate::models::{Data, Modelled, Two, as_alpha, either, in_dtype, json, one_dtype, parse, values, with_data};
use bochner::accumulate::Gram;
use bochner::feature::{Directions, OperatorSpec};
use bochner::kernel::{AnyKernel, OperatorKernel, OutputMatrix};
use bochner::model::{
    ExactOperatorRidge, ExactOperatorRidgeModel, Fit, OperatorRidge, OperatorRidgeClassifierModel, OperatorRidgeModel,
    OperatorSolver, Predict, target_covariance,
};
use bochner::rows::{Coded, Coding, InMemory, Lagged, RowSource, simplex_codes};
use bochner::solve::learn_outputs;
use bochner::{Context, Error, Result};
use numpy::{PyArray1, PyArray2, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

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
        let kernel = parse(spec)?;
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
    Decomposable { base: AnyKernel, outputs: Outputs },
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
            .map_err(as_alpha)?
            .with_intercept(self.fit_intercept)
            .with_solver(self.solver()?)
    }

    /// Runs `work` on a source of targets: the given ones, or codes of classes.
    fn targets<R: Precision, T>(
        &self,
        source: &mut dyn RowSource<R>,
        work: impl FnOnce(&mut dyn RowSource<R>) -> Result<T>,
    ) -> Result<T> {
        match (self.classes, self.coding) {
            (Some(classes), Some(coding)) => work(&mut Coded::new(source, classes, coding)?),
            _ => work(source),
        }
    }

    fn fit<R: Modelled>(&self, mut data: Data<'_, R>, watch: &Watch) -> Result<OperatorRidgeModel<R>> {
        self.targets(&mut data, |source| {
            let (d, p) = (source.input_dim(), source.target_dim());
            let kernel = self.find_kernel(|found| match found {
                Found::Identity => OutputMatrix::identity(p),
                Found::Covariance => OutputMatrix::new(target_covariance(source)?.view()),
                Found::Learned => Ok(self.ridge::<R>(self.unrelated(p)?, d)?.learn_outputs(STEPS, source)?.outputs),
            })?;
            self.ridge(kernel, d)?.fit_stream(source, &mut watch.context(None)?)
        })
    }

    /// The kernel; `find` finds the matrix of its outputs where it is not given.
    fn find_kernel(&self, find: impl FnOnce(Found) -> Result<OutputMatrix>) -> Result<OperatorKernel> {
        match self.kernel.clone() {
            Kernel::Whole(kernel) => Ok(kernel),
            Kernel::Decomposable { base, outputs } => {
                let outputs = match outputs {
                    Outputs::Given(outputs) => outputs,
                    Outputs::Found(found) => find(found)?,
                };
                OperatorKernel::decomposable(base, outputs)
            }
        }
    }

    /// The kernel with outputs that have nothing to do with each other: its scalar features are those of all of them.
    fn unrelated(&self, p: usize) -> Result<OperatorKernel> {
        self.find_kernel(|_| OutputMatrix::identity(p))
    }

    /// Solves from sums over the scalar features.
    fn solve<R: Modelled>(&self, gram: &Gram<R>, input_dim: usize) -> Result<OperatorRidgeModel<R>> {
        let (moments, p) = (gram.clone().finish(), gram.outputs());
        let kernel = self.find_kernel(|found| match found {
            Found::Identity => OutputMatrix::identity(p),
            Found::Learned => {
                Ok(learn_outputs(moments.clone(), self.alpha, self.fit_intercept, STEPS).map_err(as_alpha)?.outputs)
            }
            Found::Covariance => Err(Error::Unsupported {
                what: "A=\"covariance\"",
                reason: "the sums do not hold it; give it as a matrix".into(),
            }),
        })?;
        self.ridge(kernel, input_dim)?.fit_moments(moments, &Context::default())
    }
}

/// A fitted regression of several outputs that are one function.
#[pyclass(frozen, module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct OperatorModel {
    model: Two<OperatorRidgeModel<f32>, OperatorRidgeModel<f64>>,
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
        let plan: Plan = parse(plan)?;
        let model = with_data!(x, targets, weights, |data: R| {
            detached(py, n_jobs, progress, |watch| plan.fit::<R>(data, watch))?
        });
        Ok(OperatorModel { model })
    }

    /// The model of a file.
    #[staticmethod]
    fn from_file(file: &ModelFile) -> PyResult<Self> {
        let classified = file.kind() == "operator_ridge_classifier";
        let model = in_dtype!(file.single()?, |R| {
            let load = || -> Result<OperatorRidgeModel<R>> {
                if classified {
                    Ok(OperatorRidgeClassifierModel::from_stored(&file.stored)?.regression().clone())
                } else {
                    OperatorRidgeModel::from_stored(&file.stored)
                }
            };
            load().map_err(to_python)?
        });
        Ok(OperatorModel { model })
    }

    /// The model as a file; of a classifier if its code is given.
    #[pyo3(signature = (coding=None))]
    fn to_file(&self, coding: Option<&str>) -> PyResult<ModelFile> {
        let coding: Option<Coding> = coding.map(|name| parse(&format!("{name:?}"))).transpose()?;
        let stored = either!(&self.model, |model| match coding {
            Some(coding) => OperatorRidgeClassifierModel::from_regression(model.clone(), coding)
                .and_then(|classifier| classifier.to_stored(None)),
            None => model.to_stored(),
        });
        Ok(stored.map_err(to_python)?.into())
    }

    /// Values predicted for the rows of `X`, one column per output; `X` has the dtype of the fit.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        either!(&self.model, |model| {
            let fill =
                |rows: ndarray::ArrayView2<'_, _>, out: ndarray::ArrayViewMut2<'_, _>| model.predict_into(rows, out);
            values(py, &x, n_jobs, model.features().map(), model.output_dim(), fill)
        })
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
            Two::Single(model) => {
                let x = x.mapv(|v| v as f32);
                detached(py, n_jobs, None, |_| model.jacobian(x.view()))?
            }
            Two::Double(model) => detached(py, n_jobs, None, |_| model.jacobian(x))?,
        };
        Ok(jacobian.to_pyarray(py).into_any())
    }

    /// One row of coefficients per scalar feature, one column per output.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(&self.model, |model| PyArray2::from_array(py, &model.scalar().coefficients()).into_any())
    }

    /// One number per output.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(&self.model, |model| PyArray1::from_array(py, &model.scalar().intercept()).into_any())
    }

    /// How the solution was found, as JSON.
    #[getter]
    fn report(&self) -> PyResult<String> {
        json(either!(&self.model, |model| model.report()))
    }

    /// Description of the features, as JSON.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        json(either!(&self.model, |model| model.features().spec()))
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.model.dtype()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile,))> {
        Ok((slf.get_type().getattr("from_file")?, (slf.get().to_file(None)?,)))
    }
}

/// Sums over scalar features and outputs, from which regressions are solved: rows may come in any number of calls.
#[pyclass(module = "bochner._bochner")]
#[derive(Debug, Clone)]
pub(crate) struct OperatorSums {
    plan: String,
    input_dim: usize,
    ridge: Two<OperatorRidge<f32>, OperatorRidge<f64>>,
    sums: Two<Gram<f32>, Gram<f64>>,
}

impl OperatorSums {
    fn start(plan: &str, input_dim: usize, outputs: usize, single: bool) -> PyResult<Self> {
        let parsed: Plan = parse(plan)?;
        let ridge = in_dtype!(single, |R| {
            let ridge = || parsed.ridge::<R>(parsed.unrelated(outputs)?, input_dim);
            ridge().map_err(to_python)?
        });
        let sums = match &ridge {
            Two::Single(ridge) => Two::Single(ridge.accumulator().map_err(to_python)?),
            Two::Double(ridge) => Two::Double(ridge.accumulator().map_err(to_python)?),
        };
        Ok(OperatorSums { plan: plan.to_owned(), input_dim, ridge, sums })
    }
}

#[pymethods]
impl OperatorSums {
    /// No rows yet of `input_dim` inputs and `outputs` outputs of type `dtype`; `plan` is JSON.
    #[new]
    fn new(plan: &str, input_dim: usize, outputs: usize, dtype: &str) -> PyResult<Self> {
        Self::start(plan, input_dim, outputs, is_single(dtype)?)
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
        let plan: Plan = parse(&self.plan)?;
        fn push<R: Modelled>(
            plan: &Plan,
            ridge: &OperatorRidge<R>,
            gram: &mut Gram<R>,
            mut data: Data<'_, R>,
            watch: &Watch,
        ) -> Result<()> {
            let mut context = watch.context(None)?;
            plan.targets(&mut data, |source| {
                context.read(source, &mut |block| gram.push_rows(ridge.features().map(), block))
            })
        }
        match (&self.ridge, &mut self.sums) {
            (Two::Single(ridge), Two::Single(gram)) => {
                let data = Data::new(&x, &targets, weights.as_ref())?;
                detached(py, n_jobs, progress, |watch| push(&plan, ridge, gram, data, watch))
            }
            (Two::Double(ridge), Two::Double(gram)) => {
                let data = Data::new(&x, &targets, weights.as_ref())?;
                detached(py, n_jobs, progress, |watch| push(&plan, ridge, gram, data, watch))
            }
            _ => Err(one_dtype()),
        }
    }

    /// Adds the rows of other sums over the same features.
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
    fn solve(&self, py: Python<'_>, plan: &str, n_jobs: Option<i64>) -> PyResult<OperatorModel> {
        let plan: Plan = parse(plan)?;
        let model = match &self.sums {
            Two::Single(gram) => Two::Single(detached(py, n_jobs, None, |_| plan.solve(gram, self.input_dim))?),
            Two::Double(gram) => Two::Double(detached(py, n_jobs, None, |_| plan.solve(gram, self.input_dim))?),
        };
        Ok(OperatorModel { model })
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    /// The sums that were pickled as bytes.
    #[staticmethod]
    fn from_bytes(plan: &str, input_dim: usize, bytes: &[u8], dtype: &str) -> PyResult<Self> {
        let sums = in_dtype!(is_single(dtype)?, |R| Gram::<R>::from_bytes(bytes).map_err(to_python)?);
        let outputs = either!(&sums, |gram| gram.outputs());
        Ok(OperatorSums { sums, ..Self::start(plan, input_dim, outputs, is_single(dtype)?)? })
    }

    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, usize, Bound<'py, PyBytes>, &'static str))> {
        let own = slf.borrow();
        let bytes = either!(&own.sums, |gram| gram.to_bytes()).map_err(to_python)?;
        let parts = (own.plan.clone(), own.input_dim, PyBytes::new(slf.py(), &bytes), own.sums.dtype());
        Ok((slf.get_type().getattr("from_bytes")?, parts))
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
    #[pyo3(signature = (kernel, x, targets, alpha, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(kernel, X, targets, alpha, n_jobs=None, progress=None)")]
    fn fit(
        py: Python<'_>,
        kernel: &str,
        x: PyReadonlyArray2<'_, f64>,
        targets: PyReadonlyArray2<'_, f64>,
        alpha: f64,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let kernel: OperatorKernel = parse(kernel)?;
        let (x, targets) = (x.as_array(), targets.as_array());
        let model = detached(py, n_jobs, progress, |watch| {
            let mut source = InMemory::new(x, targets)?;
            ExactOperatorRidge::new(kernel, alpha).map_err(as_alpha)?.fit_stream(&mut source, &mut watch.context(None)?)
        })?;
        Ok(ExactOperatorModel { model })
    }

    /// The model of a file.
    #[staticmethod]
    fn from_file(file: &ModelFile) -> PyResult<Self> {
        Ok(ExactOperatorModel { model: ExactOperatorRidgeModel::from_stored(&file.stored).map_err(to_python)? })
    }

    /// The model as a file.
    fn to_file(&self) -> PyResult<ModelFile> {
        Ok(self.model.to_stored().map_err(to_python)?.into())
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
        json(self.model.report())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile,))> {
        Ok((slf.get_type().getattr("from_file")?, (slf.get().to_file()?,)))
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
    module.add_class::<OperatorSums>()?;
    module.add_class::<ExactOperatorModel>()?;
    module.add_function(wrap_pyfunction!(py_simplex_codes, module)?)?;
    module.add_function(wrap_pyfunction!(py_lagged_rows, module)?)?;
    module.add_function(wrap_pyfunction!(py_graph_outputs, module)?)
}
