//! How far an estimate is from what it estimates.

use crate::arrays::{Precision, Rows, View, in_precision};
use crate::data::Modelled;
use crate::detached::{Watch, detached};
use crate::errors::to_python;
use crate::features::{Drawn, Map};
use crate::kernels::PyKernel;
use bochner::Result;
use bochner::feature::FeatureMap;
use bochner::metrics::{self, FeatureSums};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

/// `‖K − K̂‖ / ‖K‖` in Frobenius norms.
#[pyfunction]
#[pyo3(text_signature = "(K, K_hat)")]
pub(crate) fn relative_frobenius_error(
    k: PyReadonlyArray2<'_, f64>,
    k_hat: PyReadonlyArray2<'_, f64>,
) -> PyResult<f64> {
    metrics::relative_frobenius_error(k.as_array(), k_hat.as_array()).map_err(to_python)
}

/// Kullback-Leibler divergence of normal distributions from exact ones.
#[pyfunction]
pub(crate) fn gaussian_kl(
    mean_approx: PyReadonlyArray2<'_, f64>,
    var_approx: PyReadonlyArray2<'_, f64>,
    mean_exact: PyReadonlyArray2<'_, f64>,
    var_exact: PyReadonlyArray2<'_, f64>,
) -> PyResult<f64> {
    let (mean, var) = (mean_approx.as_array(), var_approx.as_array());
    metrics::gaussian_kl(mean, var, mean_exact.as_array(), var_exact.as_array()).map_err(to_python)
}

/// Mean negative log-likelihood of targets under normal distributions.
#[pyfunction]
pub(crate) fn mean_negative_log_likelihood(
    y: PyReadonlyArray1<'_, f64>,
    mean: PyReadonlyArray1<'_, f64>,
    var: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    metrics::mean_negative_log_likelihood(y.as_array(), mean.as_array(), var.as_array()).map_err(to_python)
}

/// What a discrepancy is taken under.
#[derive(FromPyObject)]
pub(crate) enum Under<'py> {
    Kernel(Bound<'py, PyKernel>),
    Map(Bound<'py, Map>),
}

/// Unbiased squared maximum mean discrepancy between the rows of `X` and of `Y`: exact, or estimated from features in `O(n)`
/// with nothing stored but sums.
#[pyfunction]
#[pyo3(signature = (under, x, y, n_jobs=None), text_signature = "(under, X, Y, n_jobs=None)")]
pub(crate) fn mmd2(py: Python<'_>, under: Under<'_>, x: Rows<'_>, y: Rows<'_>, n_jobs: Option<i64>) -> PyResult<f64> {
    in_precision!(x, |x: R| {
        let y = y.alike::<R>("X and Y")?;
        match &under {
            Under::Kernel(kernel) => {
                let kernel = &kernel.get().kernel;
                detached(py, n_jobs, None, |_| metrics::mmd2(kernel, x.wide()?.view(), y.wide()?.view()))
            }
            Under::Map(map) => {
                let map = map.get();
                detached(py, n_jobs, None, |watch| {
                    metrics::mmd2_from_features(&sums::<R>(map, x, watch)?, &sums::<R>(map, y, watch)?)
                })
            }
        }
    })
}

fn sums<R: Modelled>(map: &Map, rows: View<'_, R>, watch: &Watch) -> Result<FeatureSums> {
    match map.drawn::<R>()? {
        Drawn::Real(map) => sums_of(map.as_ref(), rows, watch),
        Drawn::Complex(map) => sums_of(map.as_ref(), rows, watch),
    }
}

/// Rows whose features are made at once.
const BLOCK_ROWS: usize = 1024;

fn sums_of<M: FeatureMap<Real: Precision> + ?Sized>(
    map: &M,
    rows: View<'_, M::Real>,
    watch: &Watch,
) -> Result<FeatureSums> {
    let mut sums = FeatureSums::new(map.output_dim());
    let mut buffer = Vec::new();
    let step = BLOCK_ROWS.min(rows.most_rows());
    for start in (0..rows.nrows()).step_by(step) {
        watch.checkpoint()?;
        let block = rows.rows(start..(start + step).min(rows.nrows()), &mut buffer)?;
        sums.add(map.transform(block)?.view())?;
    }
    Ok(sums)
}
