//! Exact kernels between rows, and what measures an estimate against them.

use crate::arrays::{Rows, to_numpy};
use crate::detached::detached;
use crate::errors::{not_understood, to_python};
use bochner::Result;
use bochner::kernel::{Gaussian, Kernel, Polynomial, kernel_matrix};
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use serde::Deserialize;
use std::sync::Arc;

/// A kernel as Python describes it; field names are Python's parameters.
#[derive(Deserialize)]
#[serde(tag = "kernel", rename_all = "snake_case")]
enum Description {
    Gaussian { length_scale: f64 },
    Polynomial { degree: u32, gamma: f64, coef0: f64 },
}

impl Description {
    fn build(&self) -> Result<Arc<dyn Kernel>> {
        Ok(match *self {
            Description::Gaussian { length_scale } => Arc::new(Gaussian::new(length_scale)?),
            Description::Polynomial { degree, gamma, coef0 } => Arc::new(Polynomial::new(degree, gamma, coef0)?),
        })
    }
}

/// An exact kernel on rows.
#[pyclass(frozen, name = "Kernel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyKernel {
    kernel: Arc<dyn Kernel>,
}

#[pymethods]
impl PyKernel {
    /// The kernel described by `spec` (JSON).
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let description: Description = serde_json::from_str(spec).map_err(|error| not_understood(spec, &error))?;
        Ok(PyKernel { kernel: description.build().map_err(to_python)? })
    }

    /// The kernel between the rows of `X` and of `Y`, in their precision.
    #[pyo3(signature = (x, y, n_jobs=None), text_signature = "($self, X, Y, n_jobs=None)")]
    fn matrix<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        y: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        matrix(py, self.kernel.as_ref(), &x, &y, n_jobs)
    }
}

/// Evaluates `kernel` on all pairs of rows, which must be of one precision.
pub(crate) fn matrix<'py>(
    py: Python<'py>,
    kernel: &dyn Kernel,
    x: &Rows<'py>,
    y: &Rows<'py>,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    match (x, y) {
        (Rows::Single(x), Rows::Single(y)) => {
            let (x, y) = (x.as_array(), y.as_array());
            Ok(to_numpy(py, detached(py, n_jobs, None, |_| kernel_matrix(kernel, x, y))?))
        }
        (Rows::Double(x), Rows::Double(y)) => {
            let (x, y) = (x.as_array(), y.as_array());
            Ok(to_numpy(py, detached(py, n_jobs, None, |_| kernel_matrix(kernel, x, y))?))
        }
        _ => Err(PyTypeError::new_err("X and Y must have the same dtype")),
    }
}

/// `‖K − K̂‖ / ‖K‖` in Frobenius norms.
#[pyfunction]
#[pyo3(text_signature = "(K, K_hat)")]
fn relative_frobenius_error(
    py: Python<'_>,
    k: PyReadonlyArray2<'_, f64>,
    k_hat: PyReadonlyArray2<'_, f64>,
) -> PyResult<f64> {
    let (k, k_hat) = (k.as_array(), k_hat.as_array());
    detached(py, Some(1), None, |_| bochner::metrics::relative_frobenius_error(k, k_hat))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyKernel>()?;
    module.add_function(wrap_pyfunction!(relative_frobenius_error, module)?)
}
