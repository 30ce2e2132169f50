//! Models of several outputs that are one function, their kernels and codes.

use crate::arrays::to_numpy;
use crate::data::Modelled;
use crate::detached::detached;
use crate::errors::{parse, to_python};
use crate::fit::Request;
use bochner::accumulate::Gram;
use bochner::feature::{Directions, OperatorSpec};
use bochner::kernel::{AnyKernel, OperatorKernel, OutputMatrix};
use bochner::model::kinds::{OperatorRidgeClassifierSpec, OperatorRidgeSpec};
use bochner::model::{
    Fit, Model, OperatorRidge, OperatorRidgeClassifierModel, OperatorRidgeModel, OperatorSolver, target_covariance,
};
use bochner::rows::{Coded, Coding, Lagged, RowSource, simplex_codes};
use bochner::scalar::Real;
use bochner::solve::learn_outputs;
use bochner::{Context, Error, Result};
use numpy::{PyReadonlyArray2, ToPyArray};
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

/// The kernel of a regression, whose matrix of outputs may still have to be found.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Operator {
    Whole(OperatorKernel),
    Decomposable { base: AnyKernel, outputs: Outputs },
}

/// The output matrix of a decomposable kernel.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Outputs {
    Given(OutputMatrix),
    Found(Found),
}

#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Found {
    Identity,
    Covariance,
    Learned,
}

/// Steps of the search for an output matrix.
const STEPS: usize = 100;

/// What regression and classification are both told.
struct Parameters {
    n_components: usize,
    projection: Directions,
    alpha: f64,
    fit_intercept: bool,
    solver: OperatorSolver,
}

impl Parameters {
    fn of(request: &Request) -> Result<Self> {
        macro_rules! parts {
            ($spec:expr) => {
                ($spec.n_components, $spec.projection, $spec.alpha, $spec.fit_intercept, $spec.solver)
            };
        }
        let (n_components, projection, alpha, fit_intercept, solver) = match request.classes {
            Some(_) => parts!(request.spec::<OperatorRidgeClassifierSpec>()?),
            None => parts!(request.spec::<OperatorRidgeSpec>()?),
        };
        Ok(Parameters { n_components, projection, alpha, fit_intercept, solver: solver.into() })
    }
}

/// How many classes, and the code they have, where targets are their numbers.
pub(crate) fn coding(request: &Request) -> Result<Option<(usize, Coding)>> {
    let Some(classes) = request.classes else { return Ok(None) };
    Ok(Some((classes, request.spec::<OperatorRidgeClassifierSpec>()?.coding)))
}

/// Runs `work` on a source of targets: the given ones, or codes of classes.
pub(crate) fn coded<R: Real, T>(
    coding: Option<(usize, Coding)>,
    source: &mut dyn RowSource<R>,
    work: impl FnOnce(&mut dyn RowSource<R>) -> Result<T>,
) -> Result<T> {
    match coding {
        Some((classes, coding)) => work(&mut Coded::new(source, classes, coding)?),
        None => work(source),
    }
}

/// The regression, or the classification by it.
fn model<R: Real>(request: &Request, model: OperatorRidgeModel<R>) -> Result<Model> {
    Ok(match coding(request)? {
        Some((_, coding)) => OperatorRidgeClassifierModel::from_regression(model, coding)?.into(),
        None => model.into(),
    })
}

impl Operator {
    fn ridge<R: Real>(&self, request: &Request, kernel: OperatorKernel, inputs: usize) -> Result<OperatorRidge<R>> {
        let Parameters { n_components, projection, alpha, fit_intercept, solver } = Parameters::of(request)?;
        let features = OperatorSpec { kernel, n_components, projection, seed: request.seed }.build(inputs)?;
        OperatorRidge::new(features, alpha)?.with_intercept(fit_intercept).with_solver(solver)
    }

    /// With outputs that have nothing to do with each other: its scalar features are those of all kernels.
    pub(crate) fn unrelated<R: Real>(
        &self,
        request: &Request,
        (inputs, outputs): (usize, usize),
    ) -> Result<OperatorRidge<R>> {
        self.ridge(request, self.found(|_| OutputMatrix::identity(outputs))?, inputs)
    }

    /// The kernel; `find` finds the matrix of its outputs where it is not given.
    fn found(&self, find: impl FnOnce(Found) -> Result<OutputMatrix>) -> Result<OperatorKernel> {
        match self.clone() {
            Operator::Whole(kernel) => Ok(kernel),
            Operator::Decomposable { base, outputs: Outputs::Given(outputs) } => {
                OperatorKernel::decomposable(base, outputs)
            }
            Operator::Decomposable { base, outputs: Outputs::Found(found) } => {
                OperatorKernel::decomposable(base, find(found)?)
            }
        }
    }

    pub(crate) fn fit<R: Modelled>(
        &self,
        request: &Request,
        source: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<Model> {
        coded(coding(request)?, source, |source| {
            let shape = (source.input_dim(), source.target_dim());
            let kernel = self.found(|found| match found {
                Found::Identity => OutputMatrix::identity(shape.1),
                Found::Covariance => OutputMatrix::new(target_covariance(source)?.view()),
                Found::Learned => Ok(self.unrelated::<R>(request, shape)?.learn_outputs(STEPS, source)?.outputs),
            })?;
            model(request, self.ridge(request, kernel, shape.0)?.fit_stream(source, context)?)
        })
    }

    /// Solves from sums over the scalar features.
    pub(crate) fn solve<R: Real>(&self, request: &Request, gram: &Gram<R>, inputs: usize) -> Result<Model> {
        let (moments, p) = (gram.clone().finish(), gram.outputs());
        let kernel = self.found(|found| match found {
            Found::Identity => OutputMatrix::identity(p),
            Found::Learned => {
                let Parameters { alpha, fit_intercept, .. } = Parameters::of(request)?;
                Ok(learn_outputs(moments.clone(), alpha, fit_intercept, STEPS)?.outputs)
            }
            Found::Covariance => Err(Error::Unsupported {
                what: "A=\"covariance\"",
                reason: "the sums do not hold it; give it as a matrix".into(),
            }),
        })?;
        model(request, self.ridge::<R>(request, kernel, inputs)?.fit_moments(moments, &Context::default())?)
    }
}

/// Codes of classes as corners of a simplex, one row per class.
#[pyfunction(name = "simplex_codes")]
pub(crate) fn py_simplex_codes(py: Python<'_>, n_classes: usize) -> PyResult<Bound<'_, PyAny>> {
    Ok(to_numpy(py, simplex_codes(n_classes).map_err(to_python)?))
}

/// Rows and targets for autoregression of a series.
#[pyfunction(name = "lagged_rows")]
pub(crate) fn py_lagged_rows<'py>(
    py: Python<'py>,
    series: PyReadonlyArray2<'py, f64>,
    n_lags: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (rows, targets) = Lagged::new(series.as_array(), n_lags).map_err(to_python)?.arrays();
    Ok((to_numpy(py, rows), to_numpy(py, targets)))
}

/// The output matrix of a graph between outputs.
#[pyfunction(name = "graph_outputs")]
pub(crate) fn py_graph_outputs<'py>(
    py: Python<'py>,
    weights: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let outputs = OutputMatrix::from_graph(weights.as_array()).map_err(to_python)?;
    Ok(to_numpy(py, outputs.matrix().to_owned()))
}
