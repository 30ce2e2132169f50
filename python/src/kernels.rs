//! Exact kernels between rows.

use crate::arrays::{Rows, in_precision, to_numpy};
use crate::detached::detached;
use crate::errors::parse;
use bochner::kernel::{AnyKernel, Kernel, kernel_matrix};
use pyo3::prelude::*;

/// An exact kernel on rows.
#[pyclass(frozen, name = "Kernel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyKernel {
    pub(crate) kernel: AnyKernel,
}

impl PyKernel {
    /// The kernel that JSON describes.
    pub(crate) fn parse(spec: &str) -> PyResult<AnyKernel> {
        parse(spec)
    }
}

#[pymethods]
impl PyKernel {
    /// The kernel described by `spec` (JSON).
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        Ok(PyKernel { kernel: Self::parse(spec)? })
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
        matrix(py, &self.kernel, &x, &y, n_jobs)
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
    in_precision!(*x, |x: R| {
        let y = y.alike::<R>("X and Y")?;
        let matrix = detached(py, n_jobs, None, |_| {
            let (mut x_buffer, mut y_buffer) = (Vec::new(), Vec::new());
            kernel_matrix(kernel, x.rows(0..x.nrows(), &mut x_buffer)?, y.rows(0..y.nrows(), &mut y_buffer)?)
        })?;
        Ok(to_numpy(py, matrix))
    })
}
