//! The one table from the core's errors to Python exceptions.

use bochner::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(bochner._bochner, NonFiniteError, PyValueError, "A NaN or an infinity in the data.");
create_exception!(
    bochner._bochner,
    NotPositiveDefiniteError,
    PyRuntimeError,
    "A factorisation met a matrix that is not positive definite; the message says which penalty would help."
);
create_exception!(
    bochner._bochner,
    NotConvergedError,
    PyRuntimeError,
    "An iterative solver ran out of steps; the message gives the residual reached."
);

create_exception!(bochner._bochner, BusyError, PyRuntimeError, "Two threads at a time with what only one may change.");

/// The exception for an error of the core; the message is the core's.
pub(crate) fn to_python(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::NonFinite { .. } => NonFiniteError::new_err(message),
        Error::NotPositiveDefinite { .. } => NotPositiveDefiniteError::new_err(message),
        Error::NotConverged { .. } => NotConvergedError::new_err(message),
        Error::Budget { .. } | Error::Memory { .. } => PyMemoryError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Io(source) if source.kind() == std::io::ErrorKind::OutOfMemory => PyMemoryError::new_err(message),
        Error::Io(source) => PyOSError::new_err(source),
        // Parameter, Dimension, Unsupported, Format, and kinds of mistake added later.
        _ => PyValueError::new_err(message),
    }
}

/// JSON that Python has written.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        // The sentence of `Error::Parameter`.
        PyValueError::new_err(match field(json, &error) {
            Some((name, expected, found)) => format!("{name} must be {expected}, got {found}"),
            None => plain(&error),
        })
    })
}

/// JSON that Python is to read.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn plain(error: &serde_json::Error) -> String {
    error.to_string().split(" at line ").next().unwrap_or_default().to_owned()
}

/// Whose value serde has refused, what it expected, and what it found.
///
/// Serde quotes the value and says what it expected, but not whose value it is: the field is found by the quotation.
fn field(json: &str, error: &serde_json::Error) -> Option<(String, String, String)> {
    let message = plain(error);
    let (found, expected) = message.split_once(", expected ")?;
    let quoted = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => {
            found.ends_with(&format!("`{text}`")) || found.ends_with(&format!("{text:?}"))
        }
        serde_json::Value::Null => found.ends_with("null"),
        serde_json::Value::Array(_) => found.ends_with("sequence"),
        other => found.ends_with(&format!("`{other}`")),
    };
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).unwrap_or_default();
    let (name, value) = fields.into_iter().find(|(_, value)| quoted(value))?;
    Some((name, in_words(expected), value.to_string()))
}

fn in_words(expected: &str) -> String {
    match expected {
        "usize" | "u64" | "u32" => "a non-negative integer".into(),
        "f64" => "a number".into(),
        other => other.replace('`', "\""),
    }
}
