//! Rows that come in batches: from files, which a thread of its own reads ahead, and from whatever Python iterates over.

use crate::arrays::{Rows, is_single, to_numpy};
use crate::data::Modelled;
use crate::detached::detached;
use crate::errors::{json, parse, to_python};
use crate::fit::Request;
use crate::models::PyModel;
use bochner::rows::{RowBlock, RowSource};
use bochner::{Error, Result};
use bochner_table::read::{Data, Input, Kind, Options, Schema, Selection};
use ndarray::{Array2, s};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Rows that are handed over at once, at least: what it costs to hand them over is lost beside them.
const TOGETHER: usize = 1 << 14;
/// Numbers in as many rows, at most about.
const MANY_NUMBERS: usize = 1 << 21;
/// Batches that wait while the one before them is worked on.
const AHEAD: usize = 2;
/// Rows between two looks for signals.
const BLOCK_ROWS: usize = 1024;

type Batch = (Array2<f64>, Array2<f64>);
/// A batch, or nothing at the end; whoever hears neither any more has lost its sender on the way.
type Message = Result<Option<Batch>>;

/// What is wrong with a file or its cells, in the words for files.
fn told(error: Error) -> PyErr {
    match error {
        Error::Io(source) if source.raw_os_error().is_some() => PyOSError::new_err(source.to_string()),
        Error::Io(fault) => PyValueError::new_err(fault.to_string()),
        other => to_python(other),
    }
}

/// The rows of a data file with columns of numbers, in batches.
#[pyclass(frozen, module = "bochner._bochner")]
pub(crate) struct FileRows {
    /// Names of the input columns.
    #[pyo3(get)]
    names: Vec<String>,
    /// The words of a target of words, in the order of their numbers.
    #[pyo3(get)]
    labels: Option<Vec<String>>,
    /// The columns, for other files that are to have the same.
    #[pyo3(get)]
    schema: String,
    rows: Mutex<State>,
}

enum State {
    Waiting(Data),
    Running(Receiver<Message>),
    Ended,
}

/// Sends the rows of a file until nobody takes them any more.
fn send(data: &Data, out: &SyncSender<Message>) -> Result<()> {
    let (mut rows, mut targets, mut n) = (Vec::new(), Vec::new(), 0);
    let (inputs, outputs) = (data.schema().input_dim(), data.schema().targets.len());
    let hand_over = |rows: &mut Vec<f64>, targets: &mut Vec<f64>, n: &mut usize| -> Result<()> {
        let shaped = |values, columns| Array2::from_shape_vec((*n, columns), values).expect("n rows");
        let batch = (shaped(std::mem::take(rows), inputs), shaped(std::mem::take(targets), outputs));
        *n = 0;
        out.send(Ok(Some(batch))).map_err(|_| Error::Interrupted)
    };
    data.rows::<f64>().for_each_block(&mut |block| {
        rows.extend(block.rows.iter().copied());
        targets.extend(block.targets.iter().copied());
        n += block.rows.nrows();
        if n >= TOGETHER || rows.len() >= MANY_NUMBERS { hand_over(&mut rows, &mut targets, &mut n) } else { Ok(()) }
    })?;
    if n > 0 { hand_over(&mut rows, &mut targets, &mut n) } else { Ok(()) }
}

#[pymethods]
impl FileRows {
    /// A file, the columns to predict, the columns to learn from (all others if None); or the columns of another file.
    #[new]
    #[pyo3(signature = (path, targets, columns=None, schema=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        targets: Vec<String>,
        columns: Option<Vec<String>>,
        schema: Option<&str>,
    ) -> PyResult<Self> {
        let known: Option<Schema> = schema.map(parse).transpose()?;
        let data = py.detach(|| {
            let (input, options) = (Input::open(&path)?, Options::default());
            match &known {
                Some(known) => Data::open_with(input, None, known, !known.targets.is_empty(), &options),
                None => {
                    Data::open(input, None, &Selection { targets, inputs: columns, ..Selection::default() }, &options)
                }
            }
        });
        let data = data.map_err(told)?;
        let schema = data.schema();
        if let Some(column) = schema.inputs.iter().find(|column| !matches!(column.kind, Kind::Number { .. })) {
            let what = if matches!(column.kind, Kind::Words { .. }) { "words" } else { "dates or times" };
            return Err(PyTypeError::new_err(format!(
                "column {} of {} holds {what}, and models on features take numbers: AutoRegressor and AutoClassifier prepare \
                 such columns, and columns=[...] leaves them out",
                column.name,
                path.display()
            )));
        }
        let labels = schema.targets.iter().find_map(|column| match &column.kind {
            Kind::Words { values, .. } => Some(values.clone()),
            _ => None,
        });
        let names = schema.inputs.iter().map(|column| column.name.clone()).collect();
        let schema = json(schema)?;
        Ok(FileRows { names, labels, schema, rows: Mutex::new(State::Waiting(data)) })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let next = py.detach(|| {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*rows, State::Waiting(_))
                && let State::Waiting(data) = std::mem::replace(&mut *rows, State::Ended)
            {
                let (out, batches) = sync_channel(AHEAD);
                std::thread::spawn(move || {
                    let ended = send(&data, &out);
                    // Nobody may be there to hear it.
                    let _ = out.send(ended.map(|()| None));
                });
                *rows = State::Running(batches);
            }
            let State::Running(batches) = &*rows else { return Ok(None) };
            let lost = || Err(std::io::Error::other("the reader of the file has stopped").into());
            let next = batches.recv().unwrap_or_else(|_| lost());
            if !matches!(next, Ok(Some(_))) {
                *rows = State::Ended;
            }
            next
        });
        match next.map_err(told)? {
            Some((rows, targets)) => Ok(Some((to_numpy(py, rows), to_numpy(py, targets)))),
            None => Ok(None),
        }
    }
}

/// What a callable of Python returns to be iterated over: pairs of rows and targets.
struct Batches<'a> {
    again: &'a Py<PyAny>,
    shape: (usize, usize),
    /// What Python has raised.
    raised: &'a Mutex<Option<PyErr>>,
}

impl Batches<'_> {
    fn stop(&self, error: PyErr) -> Error {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        Error::Interrupted
    }
}

/// The next batch in memory of its own.
fn next<R: Modelled>(batches: &Py<PyIterator>) -> PyResult<Option<(Array2<R>, Array2<R>)>> {
    let owned = |rows: &Rows<'_>| -> PyResult<Array2<R>> {
        let view = rows.alike::<R>("batches")?;
        Ok(view.rows(0..view.nrows(), &mut Vec::new()).map_err(to_python)?.to_owned())
    };
    Python::attach(|py| match batches.bind(py).clone().next() {
        Some(batch) => {
            let (rows, targets): (Bound<'_, PyAny>, Bound<'_, PyAny>) = batch?.extract()?;
            Ok(Some((owned(&rows.extract()?)?, owned(&targets.extract()?)?)))
        }
        None => Ok(None),
    })
}

impl<R: Modelled> RowSource<R> for Batches<'_> {
    fn input_dim(&self) -> usize {
        self.shape.0
    }

    fn target_dim(&self) -> usize {
        self.shape.1
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let batches = Python::attach(|py| self.again.bind(py).call0()?.try_iter().map(Bound::unbind));
        let batches = batches.map_err(|error| self.stop(error))?;
        while let Some((rows, targets)) = next::<R>(&batches).map_err(|error| self.stop(error))? {
            for start in (0..rows.nrows()).step_by(BLOCK_ROWS) {
                let window = start..(start + BLOCK_ROWS).min(rows.nrows());
                let (rows, targets) = (rows.slice(s![window.clone(), ..]), targets.slice(s![window, ..]));
                visit(RowBlock { rows, targets, weights: None })?;
            }
        }
        Ok(())
    }
}

/// Fits a model to rows that are read as often as it needs: `batches` is called for every pass and returns pairs of rows and targets.
///
/// The other arguments are those of `fit`.
#[pyfunction]
#[pyo3(signature = (kind, on, batches, shape, dtype, parameters, classes=None, seed=0, n_jobs=None, progress=None))]
pub(crate) fn fit_batches(
    py: Python<'_>,
    kind: &str,
    on: &Bound<'_, PyAny>,
    batches: Py<PyAny>,
    shape: (usize, usize),
    dtype: &str,
    parameters: &str,
    classes: Option<usize>,
    seed: u64,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyModel> {
    let request = Request::new(kind, on, parameters, classes, seed)?;
    let raised = Mutex::new(None);
    let mut source = Batches { again: &batches, shape, raised: &raised };
    let single = is_single(dtype)?;
    let fitted = detached(py, n_jobs, progress, |watch| {
        let mut context = watch.context(None)?;
        match single {
            true => request.fit.fit::<f32>(&request.basis()?, &mut source, &mut context),
            false => request.fit.fit::<f64>(&request.basis()?, &mut source, &mut context),
        }
    });
    match raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(fitted?.into()),
    }
}
