//! Numpy arrays and sparse matrices as the core sees them, and back.

use bochner::scalar::Real;
use bochner::{Error, Result};
use ndarray::{Array, Array2, ArrayView2, Dimension, s};
use numpy::prelude::*;
use numpy::{
    Element, PyArray, PyArray1, PyArray2, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::ops::Range;

/// A precision that numpy and the core both know.
pub(crate) trait Precision: Real<Complex: Element> + Element {}
impl Precision for f32 {}
impl Precision for f64 {}

/// Numbers of a sparse matrix that are made dense at once.
const DENSE_NUMBERS: usize = 1 << 22;

/// A matrix of rows in either precision, borrowed from numpy or scipy in whatever layout it has.
pub(crate) enum Rows<'py> {
    Single(Table<'py, f32>),
    Double(Table<'py, f64>),
}

/// Rows of one precision.
pub(crate) enum Table<'py, R: Element> {
    Dense(PyReadonlyArray2<'py, R>),
    /// Compressed sparse rows: values, their columns, and where rows begin.
    Sparse {
        values: PyReadonlyArray1<'py, R>,
        columns: PyReadonlyArray1<'py, i32>,
        starts: PyReadonlyArray1<'py, i64>,
        width: usize,
    },
}

impl<'a, 'py> FromPyObject<'a, 'py> for Rows<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Some(table) = Table::of(&object)? {
            return Ok(Rows::Single(table));
        }
        if let Some(table) = Table::of(&object)? {
            return Ok(Rows::Double(table));
        }
        let found = match object.cast::<PyUntypedArray>() {
            Ok(array) => format!("an array of {} dimensions and dtype {}", array.ndim(), array.dtype()),
            Err(_) => object.get_type().name()?.to_string(),
        };
        Err(PyTypeError::new_err(format!("expected a 2-D array or a CSR matrix of float32 or float64, got {found}")))
    }
}

/// The array itself, or a copy where its memory is not laid out in whole numbers (fields of packed records).
pub(crate) fn readable<'py, T: Element, D: Dimension>(
    array: &Bound<'py, PyArray<T, D>>,
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    let whole = array.is_aligned() && array.strides().iter().all(|stride| stride % size_of::<T>() as isize == 0);
    let array = if whole { array.clone() } else { array.call_method0("copy")?.cast_into()? };
    Ok(array.try_readonly()?)
}

impl<'py, R: Precision> Table<'py, R> {
    /// An array or a sparse matrix of this precision; None where it is neither.
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(array) = object.cast::<PyArray2<R>>() {
            return Ok(Some(Table::Dense(readable(array)?)));
        }
        if !object.hasattr("indptr")? {
            return Ok(None);
        }
        let values = object.getattr("data")?;
        let Ok(values) = values.cast::<PyArray1<R>>() else { return Ok(None) };
        let (_, width): (usize, usize) = object.getattr("shape")?.extract()?;
        let columns = object.getattr("indices")?.call_method1("astype", ("int32",))?;
        let starts = object.getattr("indptr")?.call_method1("astype", ("int64",))?;
        let (columns, starts) = (readable(columns.cast()?)?, readable(starts.cast()?)?);
        Ok(Some(Table::Sparse { values: readable(values)?, columns, starts, width }))
    }
}

/// A vector of either precision.
pub(crate) enum Vector<'py> {
    Single(PyReadonlyArray1<'py, f32>),
    Double(PyReadonlyArray1<'py, f64>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Vector<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArray1<f32>>() {
            return Ok(Vector::Single(readable(&array)?));
        }
        match object.cast::<PyArray1<f64>>() {
            Ok(array) => Ok(Vector::Double(readable(&array)?)),
            Err(_) => Err(PyTypeError::new_err("expected a 1-D array of float32 or float64")),
        }
    }
}

/// A [`Table`] as other threads may see it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum View<'a, R> {
    Dense(ArrayView2<'a, R>),
    Sparse { values: &'a [R], columns: &'a [i32], starts: &'a [i64], width: usize },
}

impl<R: Precision> Table<'_, R> {
    pub(crate) fn view(&self) -> PyResult<View<'_, R>> {
        Ok(match self {
            Table::Dense(array) => View::Dense(array.as_array()),
            Table::Sparse { values, columns, starts, width } => View::Sparse {
                values: values.as_slice()?,
                columns: columns.as_slice()?,
                starts: starts.as_slice()?,
                width: *width,
            },
        })
    }
}

impl<'a, R: Precision> View<'a, R> {
    pub(crate) fn nrows(&self) -> usize {
        match self {
            View::Dense(array) => array.nrows(),
            View::Sparse { starts, .. } => starts.len().saturating_sub(1),
        }
    }

    pub(crate) fn ncols(&self) -> usize {
        match self {
            View::Dense(array) => array.ncols(),
            View::Sparse { width, .. } => *width,
        }
    }

    /// Rows that may be asked for at once.
    pub(crate) fn most_rows(&self) -> usize {
        match self {
            View::Dense(_) => usize::MAX,
            View::Sparse { width, .. } => (DENSE_NUMBERS / width.max(&1)).max(1),
        }
    }

    /// Some of the rows, dense; those of a sparse matrix are written to `buffer`.
    pub(crate) fn rows<'b>(&self, range: Range<usize>, buffer: &'b mut Vec<R>) -> Result<ArrayView2<'b, R>>
    where
        'a: 'b,
    {
        let (values, columns, starts, width) = match *self {
            View::Dense(array) => return Ok(array.slice_move(s![range, ..])),
            View::Sparse { values, columns, starts, width } => (values, columns, starts, width),
        };
        let damaged = |detail: &str| Error::Format { what: "sparse rows", detail: detail.into() };
        buffer.clear();
        buffer.resize(range.len() * width, R::ZERO);
        for (i, row) in range.clone().enumerate() {
            let entries = starts[row].max(0) as usize..starts[row + 1].max(0) as usize;
            let (Some(values), Some(columns)) = (values.get(entries.clone()), columns.get(entries)) else {
                return Err(damaged("a row begins or ends outside of the stored entries"));
            };
            for (&value, &column) in values.iter().zip(columns) {
                if !(0..width as i64).contains(&i64::from(column)) {
                    return Err(damaged("an entry lies outside of the columns"));
                }
                // An entry may be stored in several parts, which add up.
                buffer[i * width + column as usize] += value;
            }
        }
        Ok(ArrayView2::from_shape((range.len(), width), buffer.as_slice()).expect("as many numbers as entries"))
    }

    /// All rows in double precision.
    pub(crate) fn wide(&self) -> Result<Array2<f64>> {
        let mut buffer = Vec::new();
        Ok(self.rows(0..self.nrows(), &mut buffer)?.mapv(Real::to_f64))
    }
}

/// Runs the body with `$view` the [`View`] of the rows and `$R` their precision.
macro_rules! in_precision {
    ($rows:expr, |$view:ident: $R:ident| $body:expr) => {
        match &$rows {
            $crate::arrays::Rows::Single(table) => {
                #[allow(dead_code)]
                type $R = f32;
                let $view = table.view()?;
                $body
            }
            $crate::arrays::Rows::Double(table) => {
                #[allow(dead_code)]
                type $R = f64;
                let $view = table.view()?;
                $body
            }
        }
    };
}
pub(crate) use in_precision;

/// Whether a dtype is float32; the alternative is float64.
pub(crate) fn is_single(dtype: &str) -> PyResult<bool> {
    match dtype {
        "float32" => Ok(true),
        "float64" => Ok(false),
        other => Err(PyValueError::new_err(format!("dtype must be float32 or float64, got {other}"))),
    }
}

/// Hands an array to numpy without copying it.
pub(crate) fn to_numpy<T: Element, D: Dimension>(py: Python<'_>, array: Array<T, D>) -> Bound<'_, PyAny> {
    PyArray::from_owned_array(py, array).into_any()
}
