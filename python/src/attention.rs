//! Attention through features, and exact attention.

use crate::arrays::{Rows, View, in_precision, to_numpy};
use crate::data::Modelled;
use crate::detached::detached;
use crate::features::Map;
use bochner::attention::{linear_attention, softmax_attention};
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2};
use pyo3::prelude::*;

fn dense<'a, R: Modelled>(view: &View<'a, R>) -> Result<ArrayView2<'a, R>> {
    match view {
        View::Dense(array) => Ok(*array),
        View::Sparse { .. } => Err(Error::Unsupported { what: "sparse rows", reason: "attention is dense".into() }),
    }
}

/// Attention with weights `<phi(q), phi(k)>` in time linear in the number of rows, or without a map with the exact weights
/// `exp(<q, k> / sqrt(d))`.
#[pyfunction]
#[pyo3(signature = (map, q, k, v, causal=false, n_jobs=None))]
pub(crate) fn attention<'py>(
    py: Python<'py>,
    map: Option<&Bound<'py, Map>>,
    q: Rows<'py>,
    k: Rows<'py>,
    v: Rows<'py>,
    causal: bool,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let map = map.map(Bound::get);
    in_precision!(q, |q: R| {
        let (k, v) = (k.alike::<R>("q, k and v")?, v.alike::<R>("q, k and v")?);
        let out: Array2<R> = detached(py, n_jobs, None, |_| {
            let (q, k, v) = (dense(&q)?, dense(&k)?, dense(&v)?);
            match map {
                Some(map) => linear_attention(q, k, v, map.real::<R>()?.as_ref(), causal),
                None => softmax_attention(q, k, v, causal),
            }
        })?;
        Ok(to_numpy(py, out))
    })
}
