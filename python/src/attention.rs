//! Attention through features, exact attention, and what the fit of spherical features has reached.

use crate::arrays::{Rows, View, in_precision, to_numpy};
use crate::data::Modelled;
use crate::detached::detached;
use crate::errors::{parse, to_python};
use crate::features::Map;
use bochner::attention;
use bochner::feature::Spec;
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

fn dense<'a, R: Modelled>(view: &View<'a, R>) -> Result<ArrayView2<'a, R>> {
    match view {
        View::Dense(array) => Ok(*array),
        View::Sparse { .. } => Err(Error::Unsupported { what: "sparse rows", reason: "attention is dense".into() }),
    }
}

/// The array in the precision of the queries.
fn alike<'a, R: Modelled>(rows: &'a Rows<'_>) -> PyResult<View<'a, R>> {
    R::table(rows).ok_or_else(|| PyTypeError::new_err("q, k and v must have one dtype"))?.view()
}

/// Attention with weights `<phi(q), phi(k)>`, in time linear in the number of rows.
#[pyfunction]
#[pyo3(signature = (map, q, k, v, causal=false, n_jobs=None))]
fn linear_attention<'py>(
    py: Python<'py>,
    map: &Bound<'py, Map>,
    q: Rows<'py>,
    k: Rows<'py>,
    v: Rows<'py>,
    causal: bool,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let map = map.get();
    in_precision!(q, |q: R| {
        let (k, v) = (alike::<R>(&k)?, alike::<R>(&v)?);
        let out: Array2<R> = detached(py, n_jobs, None, |_| {
            let map = map.real::<R>()?;
            attention::linear_attention(dense(&q)?, dense(&k)?, dense(&v)?, map.as_ref(), causal)
        })?;
        Ok(to_numpy(py, out))
    })
}

/// Attention with the exact weights `exp(<q, k> / sqrt(d))`.
#[pyfunction]
#[pyo3(signature = (q, k, v, causal=false, n_jobs=None))]
fn softmax_attention<'py>(
    py: Python<'py>,
    q: Rows<'py>,
    k: Rows<'py>,
    v: Rows<'py>,
    causal: bool,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    in_precision!(q, |q: R| {
        let (k, v) = (alike::<R>(&k)?, alike::<R>(&v)?);
        let out: Array2<R> =
            detached(py, n_jobs, None, |_| attention::softmax_attention(dense(&q)?, dense(&k)?, dense(&v)?, causal))?;
        Ok(to_numpy(py, out))
    })
}

/// Largest and root mean squared difference between the kernel and the mean of spherical features.
#[pyfunction]
fn spherical_bias(py: Python<'_>, spec: &str, input_dim: usize) -> PyResult<(f64, f64)> {
    let Spec::Spherical(spec) = parse(spec)? else {
        return Err(PyValueError::new_err("expected the description of spherical features"));
    };
    let bias = py.detach(|| spec.bias(input_dim)).map_err(to_python)?;
    Ok((bias.sup, bias.rms))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(linear_attention, module)?)?;
    module.add_function(wrap_pyfunction!(softmax_attention, module)?)?;
    module.add_function(wrap_pyfunction!(spherical_bias, module)?)
}
