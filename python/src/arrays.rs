//! Numpy arrays as the core sees them, and back.

use bochner::scalar::{Real, Scalar};
use ndarray::Array2;
use numpy::prelude::*;
use numpy::{Element, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A precision that numpy and the core both know.
pub(crate) trait Precision: Real + Element {}
impl Precision for f32 {}
impl Precision for f64 {}

/// A matrix of rows in either precision, borrowed from numpy in whatever layout it has.
pub(crate) enum Rows<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Rows<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyArray2<f32>>() {
            return Ok(Rows::Single(readable(&array.to_owned())?));
        }
        if let Ok(array) = object.cast::<PyArray2<f64>>() {
            return Ok(Rows::Double(readable(&array.to_owned())?));
        }
        let found = match object.cast::<numpy::PyUntypedArray>() {
            Ok(array) => format!("an array of {} dimensions and dtype {}", array.ndim(), array.dtype()),
            Err(_) => object.get_type().name()?.to_string(),
        };
        Err(PyTypeError::new_err(format!("expected a 2-D array of float32 or float64, got {found}")))
    }
}

/// The array itself, or a copy where its memory is not laid out in whole numbers (fields of packed records).
fn readable<'py, T: Element>(array: &Bound<'py, PyArray2<T>>) -> PyResult<PyReadonlyArray2<'py, T>> {
    let whole = array.is_aligned() && array.strides().iter().all(|stride| stride % size_of::<T>() as isize == 0);
    let array = if whole { array.clone() } else { array.call_method0("copy")?.cast_into()? };
    Ok(array.try_readonly()?)
}

/// Runs the body with `$view` an `ArrayView2<$R>` of the rows, `$R` being their precision.
macro_rules! in_precision {
    ($rows:expr, |$view:ident: $R:ident| $body:expr) => {
        match &$rows {
            $crate::arrays::Rows::Single(array) => {
                #[allow(dead_code)]
                type $R = f32;
                let $view = array.as_array();
                $body
            }
            $crate::arrays::Rows::Double(array) => {
                #[allow(dead_code)]
                type $R = f64;
                let $view = array.as_array();
                $body
            }
        }
    };
}
pub(crate) use in_precision;

/// Hands an array to numpy without copying it.
pub(crate) fn to_numpy<T: Scalar + Element>(py: Python<'_>, array: Array2<T>) -> Bound<'_, PyAny> {
    PyArray2::from_owned_array(py, array).into_any()
}
