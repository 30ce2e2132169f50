//! Sums over rows, from which models are solved: rows may come in any number of calls, and from several machines.

use crate::arrays::{Rows, Vector, is_single};
use crate::data::{Data, Modelled};
use crate::detached::detached;
use crate::errors::{BusyError, to_python};
use crate::fit::Request;
use crate::models::PyModel;
use bochner::model::{self, Model};
use bochner::persist::Stored;
use bochner::{Context, Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, TryLockResult};

/// Sums over rows; models are solved from them.
///
/// Threads may read at one time. Nobody waits for another: rows that two threads add would be added in the order of chance,
/// and bits with them.
#[pyclass(frozen, module = "bochner._bochner")]
pub(crate) struct Sums {
    /// What it was made with.
    arguments: Py<PyTuple>,
    sums: RwLock<Precise>,
}

/// Sums in either precision.
#[derive(Debug, Clone)]
enum Precise {
    Single(model::Sums<f32>),
    Double(model::Sums<f64>),
}

/// The same in either precision.
macro_rules! precise {
    ($sums:expr, $own:ident => $value:expr) => {
        match $sums {
            Precise::Single($own) => $value,
            Precise::Double($own) => $value,
        }
    };
}

fn of_one_kind() -> PyErr {
    PyTypeError::new_err("sums, and rows that are added to them, must be of one dtype and kind")
}

/// What a lock guards, or why `call` cannot have it.
fn granted<G>(call: &str, lock: TryLockResult<G>) -> PyResult<G> {
    match lock {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(BusyError::new_err(format!(
            "{call} came while another thread works with the same sums of partial_fit; let threads take turns with a \
             threading.Lock, or give each a model of its own"
        ))),
    }
}

impl Sums {
    /// A model with these sums in its file.
    pub(crate) fn kept_in(&self, model: Model) -> PyResult<Model> {
        precise!(&*self.read("saving")?, sums => model.with_sums(sums)).map_err(to_python)
    }

    fn read(&self, call: &str) -> PyResult<RwLockReadGuard<'_, Precise>> {
        granted(call, self.sums.try_read())
    }

    fn write(&self, call: &str) -> PyResult<RwLockWriteGuard<'_, Precise>> {
        granted(call, self.sums.try_write())
    }
}

/// Adds rows with their targets and weights.
fn push<R: Modelled>(
    sums: &mut model::Sums<R>,
    (x, targets, weights): (&Rows<'_>, &Rows<'_>, Option<&Vector<'_>>),
    (py, n_jobs, progress): (Python<'_>, Option<i64>, Option<&Bound<'_, PyAny>>),
) -> PyResult<()> {
    let mut data = Data::new(R::table(x).ok_or_else(of_one_kind)?.view()?, targets, weights)?;
    detached(py, n_jobs, progress, |watch| sums.read(&mut data, &mut watch.context(None)?, &mut |_| Ok(())))
}

/// The model of sums that stay as they are.
fn solved<R: Modelled>(sums: &model::Sums<R>, request: &Request) -> Result<Model> {
    sums.clone().finish(&request.fit, &request.basis()?, &Context::default())
}

#[pymethods]
impl Sums {
    /// Sums over no rows of `input_dim` inputs and `outputs` targets of type `dtype`; or those of `sums` written as bytes.
    ///
    /// The other arguments are those of `fit`.
    #[new]
    #[pyo3(signature = (kind, on, parameters, input_dim, outputs, dtype, classes=None, seed=0, sums=None))]
    fn new(
        py: Python<'_>,
        kind: &str,
        on: &Bound<'_, PyAny>,
        parameters: &str,
        input_dim: usize,
        outputs: usize,
        dtype: &str,
        classes: Option<usize>,
        seed: u64,
        sums: Option<&[u8]>,
    ) -> PyResult<Self> {
        let request = Request::new(kind, on, parameters, classes, seed)?;
        let (shape, single) = ((input_dim, outputs), is_single(dtype)?);
        let sums = py.detach(|| {
            let (stored, context) = (sums.map(Stored::from_bytes).transpose()?, Context::default());
            Ok(match single {
                true => Precise::Single(request.fit.sums(&request.basis()?, shape, stored.as_ref(), &context)?),
                false => Precise::Double(request.fit.sums(&request.basis()?, shape, stored.as_ref(), &context)?),
            })
        });
        let arguments = (kind, on, parameters, input_dim, outputs, dtype, classes, seed).into_pyobject(py)?.unbind();
        Ok(Sums { arguments, sums: RwLock::new(sums.map_err(to_python)?) })
    }

    /// Adds rows with their targets and weights. After an error the sums hold part of them and are of no use.
    #[pyo3(signature = (x, targets, weights, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "($self, X, targets, weights, n_jobs=None, progress=None)")]
    fn push<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        targets: Rows<'py>,
        weights: Option<Vector<'py>>,
        n_jobs: Option<i64>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (data, run) = ((&x, &targets, weights.as_ref()), (py, n_jobs, progress.as_ref()));
        precise!(&mut *self.write("adding rows")?, sums => push(sums, data, run))
    }

    /// Adds the rows of other sums over the same features.
    fn merge(&self, other: &Self) -> PyResult<()> {
        let (mut own, other) = (self.write("merging sums")?, other.read("merging sums")?);
        let merged = match (&mut *own, &*other) {
            (Precise::Single(own), Precise::Single(other)) => own.merge(other),
            (Precise::Double(own), Precise::Double(other)) => own.merge(other),
            _ => return Err(of_one_kind()),
        };
        merged.map_err(|error| match error {
            Error::Unsupported { .. } => of_one_kind(),
            other => to_python(other),
        })
    }

    /// Takes back rows with their targets and weights; rows that were not added, as far as sums tell, are refused.
    #[pyo3(signature = (x, targets, weights, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "($self, X, targets, weights, n_jobs=None, progress=None)")]
    fn forget<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        targets: Rows<'py>,
        weights: Option<Vector<'py>>,
        n_jobs: Option<i64>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let (data, run) = ((&x, &targets, weights.as_ref()), (py, n_jobs, progress.as_ref()));
        precise!(&mut *self.write("taking rows back")?, sums => {
            let mut gone = sums.fresh().map_err(to_python)?;
            push(&mut gone, data, run)?;
            detached(py, n_jobs, None, |_| sums.forget(gone))
        })
    }

    /// Multiplies the weights of all rows so far.
    fn scale(&self, factor: f64) -> PyResult<()> {
        precise!(&mut *self.write("weighing rows")?, sums => sums.scale(factor)).map_err(to_python)
    }

    /// How many times larger the sums were before rows were taken back: by so much rounding counts more.
    #[getter]
    fn cancellation(&self) -> PyResult<f64> {
        Ok(precise!(&*self.read("looking at sums")?, sums => sums.cancellation()))
    }

    /// Number of rows added.
    #[getter]
    fn count(&self) -> PyResult<u64> {
        Ok(precise!(&*self.read("counting rows")?, sums => sums.count()))
    }

    /// The model of all rows so far, with these parameters; the sums stay.
    #[pyo3(signature = (parameters, n_jobs=None))]
    fn solve(&self, py: Python<'_>, parameters: &str, n_jobs: Option<i64>) -> PyResult<PyModel> {
        type Made<'py> = (String, Bound<'py, PyAny>, String, usize, usize, String, Option<usize>, u64);
        let (kind, on, _, _, _, _, classes, seed): Made<'_> = self.arguments.bind(py).extract()?;
        let request = Request::new(&kind, &on, parameters, classes, seed)?;
        let sums = self.read("solving for a model")?;
        Ok(detached(py, n_jobs, None, |_| precise!(&*sums, sums => solved(sums, &request)))?.into())
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        let sums = RwLock::new(self.read("copying")?.clone());
        Ok(Sums { arguments: self.arguments.clone_ref(py), sums })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, own) = (slf.py(), slf.get());
        let bytes = precise!(&*own.read("pickling")?, sums => sums.to_bytes()).map_err(to_python)?;
        let arguments = own.arguments.bind(py).add((PyBytes::new(py, &bytes),))?;
        Ok((slf.get_type().into_any(), arguments))
    }
}
