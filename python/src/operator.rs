//! Models of several outputs that are one function, their kernels and codes.

use crate::arrays::to_numpy;
use crate::detached::detached;
use crate::errors::{json, parse, to_python};
use bochner::Error;
use bochner::feature::{OperatorFeatures, OperatorSpec};
use bochner::kernel::{OperatorKernel, OutputMatrix};
use bochner::rows::{Lagged, simplex_codes};
use bochner::variance::proposition_12;
use ndarray::Array2;
use numpy::{PyReadonlyArray2, PyReadonlyArray3, ToPyArray};
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

/// Features of a kernel whose values are matrices, in double precision.
#[pyclass(frozen, name = "OperatorMap", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyOperatorMap {
    features: OperatorFeatures<f64>,
}

#[pymethods]
impl PyOperatorMap {
    /// Draws the features described by `spec` (JSON) for rows of `input_dim` columns.
    #[new]
    #[pyo3(signature = (spec, input_dim, n_jobs=None))]
    fn new(py: Python<'_>, spec: &str, input_dim: usize, n_jobs: Option<i64>) -> PyResult<Self> {
        let spec: OperatorSpec = parse(spec)?;
        let features = detached(py, n_jobs, None, |_| {
            spec.kernel.check_inputs(input_dim)?;
            spec.build(input_dim)
        })?;
        Ok(PyOperatorMap { features })
    }

    /// The full description, as JSON.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        json(self.features.spec())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, usize))> {
        let features = &slf.get().features;
        Ok((slf.get_type().into_any(), (json(features.spec())?, features.input_dim())))
    }

    /// Number of outputs.
    #[getter]
    fn output_dim(&self) -> usize {
        self.features.output_dim()
    }

    /// Number of columns of `transform`: parameters of a function.
    #[getter]
    fn n_columns(&self) -> usize {
        self.features.dim()
    }

    /// Features of the rows of `X`: axes are rows, outputs, columns.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = x.as_array();
        Ok(to_numpy(py, detached(py, n_jobs, None, |_| self.features.transform(x))?))
    }

    /// A matrix for every pair of rows of `X` and `Y`: the `kernel`, its `estimate`, or the matrix `variance` of that.
    #[pyo3(signature = (quantity, x, y, n_jobs=None), text_signature = "($self, quantity, X, Y, n_jobs=None)")]
    fn pairwise<'py>(
        &self,
        py: Python<'py>,
        quantity: &str,
        x: PyReadonlyArray2<'py, f64>,
        y: PyReadonlyArray2<'py, f64>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, y) = (x.as_array(), y.as_array());
        let found = detached(py, n_jobs, None, |_| match quantity {
            "kernel" => self.features.spec().kernel.matrix(x, y),
            "estimate" => self.features.estimate(x, y),
            "variance" => self.features.spec().variance(x, y),
            other => Err(Error::Unsupported { what: "quantity", reason: format!("there is no {other}") }),
        })?;
        Ok(to_numpy(py, found))
    }

    /// Cotangents of `transform`, taken back to those of the rows.
    #[pyo3(signature = (x, cotangents, n_jobs=None), text_signature = "($self, X, cotangents, n_jobs=None)")]
    fn pullback<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        cotangents: PyReadonlyArray3<'py, f64>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, cotangents) = (x.as_array(), cotangents.as_array());
        Ok(to_numpy(py, detached(py, n_jobs, None, |_| self.features.pullback(x, cotangents))?))
    }

    /// The probability that the estimate is off by `error` or more between any two rows of a set of this diameter.
    fn bound(&self, error: f64, diameter: f64) -> PyResult<f64> {
        let spec = self.features.spec();
        let bound = spec.bound(self.features.input_dim(), diameter).map_err(to_python)?;
        let draws = spec.fourier().and_then(|fourier| fourier.frequencies()).map_err(to_python)?;
        Ok(bound.failure(draws as f64, error))
    }

    /// The bound of the largest eigenvalue of the matrix variance, for every pair of rows of `X` and `Y`.
    #[pyo3(signature = (x, y), text_signature = "($self, X, Y)")]
    fn variance_bound<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        y: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, y, spec) = (x.as_array(), y.as_array(), self.features.spec());
        let draws = spec.fourier().and_then(|fourier| fourier.frequencies()).map_err(to_python)?;
        let mut out = Array2::zeros((x.nrows(), y.nrows()));
        for ((i, j), to) in out.indexed_iter_mut() {
            let delta = &x.row(i) - &y.row(j);
            *to = proposition_12(&spec.kernel, draws, delta.as_slice().expect("fresh")).map_err(to_python)?;
        }
        Ok(to_numpy(py, out))
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
