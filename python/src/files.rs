//! Tables on their way to rows, as the command line makes them.

use crate::errors::{parse, to_python};
use bochner::Error;
use bochner_table::pipeline::Pipeline;
use bochner_table::read::Cells;
use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A column of a table: numbers, NaN for gaps, or words, None for gaps.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    Numbers(PyReadonlyArray1<'py, f64>),
    Words(Vec<Option<String>>),
}

/// Rows as a model takes them, from the columns that its file asks for; `pipeline` is its `preprocessing`.
#[pyfunction]
pub(crate) fn prepare<'py>(
    py: Python<'py>,
    pipeline: &str,
    columns: Vec<Column<'py>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let pipeline: Pipeline = parse(pipeline)?;
    let cells: Vec<Cells> = columns
        .iter()
        .map(|column| match column {
            Column::Numbers(numbers) => Cells::Numbers(numbers.as_array().to_vec()),
            Column::Words(words) => Cells::Words(words.clone()),
        })
        .collect();
    let rows = py.detach(|| pipeline.prepare(&cells)).map_err(|error| match error {
        // What is wrong with a cell is told in the words for files.
        Error::Io(fault) => PyValueError::new_err(fault.to_string()),
        other => to_python(other),
    })?;
    Ok(PyArray2::from_owned_array(py, rows))
}
