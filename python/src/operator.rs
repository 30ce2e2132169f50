//! Models of several outputs that are one function, their kernels and codes.

use crate::arrays::to_numpy;
use crate::detached::detached;
use crate::errors::{parse, to_python};
use bochner::kernel::{OperatorKernel, OutputMatrix};
use bochner::rows::{Lagged, simplex_codes};
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
