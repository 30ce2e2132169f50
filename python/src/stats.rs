//! Tests of samples and streams: sums of features in, what a test has found out.

use crate::arrays::{Rows, View, in_precision, to_numpy};
use crate::data::Modelled;
use crate::detached::{Watch, detached};
use crate::errors::{BusyError, json, parse};
use crate::features::Map;
use crate::kernels::PyKernel;
use bochner::Result;
use bochner::stats::{self, Estimate, Forgetting, IndependenceTest, TwoSampleTest};
use ndarray::{Array1, ArrayView2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows between two looks for signals.
const BLOCK_ROWS: usize = 8192;

/// Statistic, p-value, ends of the interval, variances over draws of rows and of features.
type Found = (f64, f64, f64, f64, f64, f64);

fn told(found: Estimate) -> Found {
    let (low, high) = found.interval;
    (found.statistic, found.pvalue, low, high, found.sampling_variance, found.sketching_variance)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one call at a time may change; after an error in the middle it holds part of the rows.
struct Owned<T>(Mutex<Option<Arc<T>>>);

impl<T: Clone> Owned<T> {
    fn new(value: T) -> Self {
        Owned(Mutex::new(Some(Arc::new(value))))
    }

    /// Nobody waits for a lock while a job runs: it could be the thread that the job waits for.
    fn change<O>(&self, job: impl FnOnce(&mut T) -> PyResult<O>) -> PyResult<O> {
        let mut value = locked(&self.0).take().ok_or_else(busy)?;
        let outcome = job(Arc::make_mut(&mut value));
        *locked(&self.0) = Some(value);
        outcome
    }

    /// What it holds now, whatever is added later.
    fn now(&self) -> PyResult<Arc<T>> {
        locked(&self.0).clone().ok_or_else(busy)
    }
}

fn busy() -> PyErr {
    BusyError::new_err(
        "another thread adds rows to the same sums; let threads take turns, or give each sums of its own",
    )
}

/// Hands rows over in pieces.
fn pieces<R: Modelled>(
    rows: View<'_, R>,
    watch: &Watch,
    visit: &mut dyn FnMut(usize, ArrayView2<'_, R>) -> Result<()>,
) -> Result<()> {
    let mut buffer = Vec::new();
    let step = BLOCK_ROWS.min(rows.most_rows());
    for start in (0..rows.nrows()).step_by(step) {
        watch.checkpoint()?;
        let block = rows.rows(start..(start + step).min(rows.nrows()), &mut buffer)?;
        visit(start, block).map_err(|error| error.rows_from(start))?;
    }
    Ok(())
}

/// Sums of the features of one sample.
#[pyclass(frozen, module = "bochner._bochner")]
pub(crate) struct SampleSums {
    sums: Owned<stats::SampleSums>,
}

#[pymethods]
impl SampleSums {
    /// No rows yet of `input_dim` columns, with so many features; or those of `sums` as text.
    #[new]
    #[pyo3(signature = (features, input_dim, sums=None))]
    fn new(features: usize, input_dim: usize, sums: Option<&str>) -> PyResult<Self> {
        let none = || Ok(stats::SampleSums::new(features, input_dim));
        Ok(SampleSums { sums: Owned::new(sums.map_or_else(none, parse)?) })
    }

    /// Adds rows, of which the first `fixed` are not exchanged with others.
    #[pyo3(signature = (map, x, fixed=0, n_jobs=None), text_signature = "($self, map, X, fixed=0, n_jobs=None)")]
    fn push(&self, py: Python<'_>, map: &Map, x: Rows<'_>, fixed: usize, n_jobs: Option<i64>) -> PyResult<()> {
        in_precision!(x, |x: R| self.sums.change(|sums| detached(py, n_jobs, None, |watch| {
            let map = map.real::<R>()?;
            pieces(x, watch, &mut |start, rows| {
                let here = fixed.saturating_sub(start).min(rows.nrows());
                let (fixed, free) = rows.split_at(ndarray::Axis(0), here);
                if here > 0 {
                    sums.push_fixed_rows(&map, fixed)?;
                }
                sums.push_rows(&map, free).map_err(|error| error.rows_from(here))
            })
        })))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (usize, usize, String))> {
        let sums = slf.get().sums.now()?;
        Ok((slf.get_type().into_any(), (sums.dim(), sums.input_dim(), json(&*sums)?)))
    }

    /// Adds the rows of another part of the sample.
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let other = other.sums.now()?;
        self.sums.change(|sums| detached(py, None, None, |_| sums.merge(&other)))
    }

    /// Number of rows added.
    #[getter]
    fn count(&self) -> PyResult<u64> {
        Ok(self.sums.now()?.count())
    }
}

/// Sums of the features of rows with two sides.
#[pyclass(frozen, module = "bochner._bochner")]
pub(crate) struct PairSums {
    sums: Owned<stats::PairSums>,
}

#[pymethods]
impl PairSums {
    /// No rows yet, with so many features of the left and the right side.
    #[new]
    fn new(left: usize, right: usize) -> Self {
        PairSums { sums: Owned::new(stats::PairSums::new(left, right)) }
    }

    /// Adds rows.
    #[pyo3(signature = (left, x, right, y, n_jobs=None), text_signature = "($self, left, X, right, Y, n_jobs=None)")]
    fn push(
        &self,
        py: Python<'_>,
        left: &Map,
        x: Rows<'_>,
        right: &Map,
        y: Rows<'_>,
        n_jobs: Option<i64>,
    ) -> PyResult<()> {
        in_precision!(x, |x: R| {
            let y = y.alike::<R>("X and Y")?;
            self.sums.change(|sums| {
                detached(py, n_jobs, None, |watch| {
                    let (left, right) = (left.real::<R>()?, right.real::<R>()?);
                    let mut buffer = Vec::new();
                    pieces(x, watch, &mut |start, x| {
                        let y = y.rows(start..(start + x.nrows()).min(y.nrows()), &mut buffer)?;
                        sums.push_rows((&left, x), (&right, y))
                    })
                })
            })
        })
    }

    /// Adds the rows of another part of the sample.
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
        let other = other.sums.now()?;
        self.sums.change(|sums| detached(py, None, None, |_| sums.merge(&other)))
    }

    /// Number of rows added.
    #[getter]
    fn count(&self) -> PyResult<u64> {
        Ok(self.sums.now()?.count())
    }
}

/// Length scales of two samples, or of their first rows, and how many of these are to be fixed.
#[pyfunction]
#[pyo3(text_signature = "(X, Y, whole_x, whole_y, standardize, seed)")]
pub(crate) fn pooled_scale(
    py: Python<'_>,
    x: Rows<'_>,
    y: Rows<'_>,
    whole_x: bool,
    whole_y: bool,
    standardize: bool,
    seed: u64,
) -> PyResult<(Vec<f64>, usize, usize)> {
    in_precision!(x, |x: R| {
        let y = y.alike::<R>("X and Y")?;
        let found = detached(py, None, None, |_| {
            stats::pooled_scale(x.wide()?.view(), y.wide()?.view(), (whole_x, whole_y), standardize, seed)
        })?;
        Ok((found.lengths, found.fixed.0, found.fixed.1))
    })
}

/// Whether two samples are of one distribution: statistic, p-value, interval, variances.
#[pyfunction]
#[pyo3(signature = (x, y, permutations, coverage, seed, n_jobs=None))]
#[pyo3(text_signature = "(x, y, permutations, coverage, seed, n_jobs=None)")]
pub(crate) fn two_sample(
    py: Python<'_>,
    x: &SampleSums,
    y: &SampleSums,
    permutations: usize,
    coverage: f64,
    seed: u64,
    n_jobs: Option<i64>,
) -> PyResult<Found> {
    let test = TwoSampleTest { permutations, coverage, seed };
    let (x, y) = (x.sums.now()?, y.sums.now()?);
    detached(py, n_jobs, None, |_| test.run(&x, &y)).map(told)
}

/// The same under an exact kernel.
#[pyfunction]
#[pyo3(signature = (kernel, x, y, permutations, coverage, seed, n_jobs=None))]
#[pyo3(text_signature = "(kernel, X, Y, permutations, coverage, seed, n_jobs=None)")]
pub(crate) fn two_sample_exact(
    py: Python<'_>,
    kernel: &PyKernel,
    x: Rows<'_>,
    y: Rows<'_>,
    permutations: usize,
    coverage: f64,
    seed: u64,
    n_jobs: Option<i64>,
) -> PyResult<Found> {
    let test = TwoSampleTest { permutations, coverage, seed };
    in_precision!(x, |x: R| {
        let y = y.alike::<R>("X and Y")?;
        detached(py, n_jobs, None, |_| test.run_exact(&kernel.kernel, x.wide()?.view(), y.wide()?.view())).map(told)
    })
}

/// By how much every column takes part in the difference of two samples.
#[pyfunction]
#[pyo3(signature = (map, x, y, seed, n_jobs=None))]
pub(crate) fn differing_columns<'py>(
    py: Python<'py>,
    map: &Map,
    x: &SampleSums,
    y: &SampleSums,
    seed: u64,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    let test = TwoSampleTest { seed, ..TwoSampleTest::default() };
    let (x, y) = (x.sums.now()?, y.sums.now()?);
    let found = detached(py, n_jobs, None, |_| match map.single.get() {
        Some(_) => test.columns(&map.real::<f32>()?, &x, &y),
        None => test.columns(&map.real::<f64>()?, &x, &y),
    })?;
    Ok(to_numpy(py, Array1::from_vec(found)))
}

/// Whether both sides of rows are independent: statistic, p-value, interval, variances.
#[pyfunction]
#[pyo3(signature = (sums, permutations, coverage, seed, n_jobs=None))]
pub(crate) fn independence(
    py: Python<'_>,
    sums: &PairSums,
    permutations: usize,
    coverage: f64,
    seed: u64,
    n_jobs: Option<i64>,
) -> PyResult<Found> {
    let test = IndependenceTest { permutations, coverage, seed };
    let sums = sums.sums.now()?;
    detached(py, n_jobs, None, |_| test.run(&sums)).map(told)
}

/// A monitor in either precision.
#[derive(Clone)]
enum Precise {
    Single(stats::DriftMonitor<f32>),
    Double(stats::DriftMonitor<f64>),
}

/// The same in either precision.
macro_rules! precise {
    ($monitor:expr, $own:ident => $value:expr) => {
        match $monitor {
            Precise::Single($own) => $value,
            Precise::Double($own) => $value,
        }
    };
}

/// Watches a stream of rows.
#[pyclass(frozen, module = "bochner._bochner")]
pub(crate) struct Drift {
    monitor: Mutex<Precise>,
}

#[pymethods]
impl Drift {
    /// A monitor that has seen `reference` rows of the distribution that is not to change.
    #[new]
    #[pyo3(signature = (map, reference, rate, fast, slow, seed, n_jobs=None))]
    fn new(
        py: Python<'_>,
        map: &Map,
        reference: Rows<'_>,
        rate: f64,
        fast: f64,
        slow: f64,
        seed: u64,
        n_jobs: Option<i64>,
    ) -> PyResult<Self> {
        let forgetting = Forgetting { fast, slow };
        let monitor = match &reference {
            Rows::Single(rows) => {
                let rows = rows.view()?;
                Precise::Single(detached(py, n_jobs, None, |_| {
                    let mut buffer = Vec::new();
                    let rows = rows.rows(0..rows.nrows(), &mut buffer)?;
                    stats::DriftMonitor::new(map.real::<f32>()?, rows, rate, forgetting, seed)
                })?)
            }
            Rows::Double(rows) => {
                let rows = rows.view()?;
                Precise::Double(detached(py, n_jobs, None, |_| {
                    let mut buffer = Vec::new();
                    let rows = rows.rows(0..rows.nrows(), &mut buffer)?;
                    stats::DriftMonitor::new(map.real::<f64>()?, rows, rate, forgetting, seed)
                })?)
            }
        };
        Ok(Drift { monitor: Mutex::new(monitor) })
    }

    /// Which of these rows raise an alarm.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn update<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let one_dtype = || PyTypeError::new_err("rows must be of the dtype that the monitor has begun with");
        let mut monitor = locked(&self.monitor).clone();
        let found = match (&mut monitor, &x) {
            (Precise::Single(own), Rows::Single(rows)) => watched(py, own, rows.view()?, n_jobs)?,
            (Precise::Double(own), Rows::Double(rows)) => watched(py, own, rows.view()?, n_jobs)?,
            _ => return Err(one_dtype()),
        };
        *locked(&self.monitor) = monitor;
        Ok(to_numpy(py, Array1::from_vec(found)))
    }

    /// Distance of the two averages.
    #[getter]
    fn statistic(&self) -> f64 {
        precise!(&*locked(&self.monitor), own => own.statistic())
    }

    /// The distance that would be an alarm.
    #[getter]
    fn threshold(&self) -> f64 {
        precise!(&*locked(&self.monitor), own => own.threshold())
    }
}

fn watched<R: Modelled>(
    py: Python<'_>,
    monitor: &mut stats::DriftMonitor<R>,
    rows: View<'_, R>,
    n_jobs: Option<i64>,
) -> PyResult<Vec<bool>> {
    detached(py, n_jobs, None, |watch| {
        let mut found = Vec::with_capacity(rows.nrows());
        pieces(rows, watch, &mut |_, rows| {
            found.extend(monitor.update(rows)?);
            Ok(())
        })?;
        Ok(found)
    })
}
