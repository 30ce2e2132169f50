//! Model files: what the core has stored, with a header that Python reads and completes.

use crate::errors::{not_understood, to_python};
use crate::features::Map;
use bochner::feature::Spec;
use bochner::persist::{Header, Stored};
use bochner::preprocess::Preprocess;
use bochner::{Error, Result};
use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A model file in memory: arrays, and a header in JSON.
#[pyclass(module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct ModelFile {
    pub(crate) stored: Stored,
}

impl From<Stored> for ModelFile {
    fn from(stored: Stored) -> Self {
        ModelFile { stored }
    }
}

impl ModelFile {
    pub(crate) fn kind(&self) -> &str {
        &self.stored.header.kind
    }

    /// Whether the model is in single precision.
    pub(crate) fn single(&self) -> PyResult<bool> {
        match self.stored.header.dtype.as_str() {
            "f32" => Ok(true),
            "f64" => Ok(false),
            other => Err(PyValueError::new_err(format!("model file: numbers of type {other}"))),
        }
    }

    /// The given map, or the one that the header describes.
    pub(crate) fn map(&self, py: Python<'_>, given: Option<Py<Map>>) -> PyResult<Py<Map>> {
        if let Some(map) = given {
            return Ok(map);
        }
        let (header, single) = (&self.stored.header, self.single()?);
        let spec: Spec = serde_json::from_value(header.map.clone())
            .map_err(|error| PyValueError::new_err(format!("model file: its map cannot be read: {error}")))?;
        let complex = header.extra["complex"].as_bool().unwrap_or(false);
        let map = py.detach(|| Map::new(spec, header.input_dim, single, complex));
        Py::new(py, map.map_err(to_python)?)
    }
}

/// A map as files describe it.
pub(crate) fn described(map: &Map) -> Result<serde_json::Value> {
    let value = serde_json::to_value(&map.spec);
    value.map_err(|error| Error::Format { what: "description of a map", detail: error.to_string() })
}

#[pymethods]
impl ModelFile {
    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(py.detach(|| Stored::load(path)).map_err(to_python)?.into())
    }

    /// Writes the file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.stored.save(path)).map_err(to_python)
    }

    /// The bytes of a file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(Stored::from_bytes(bytes).map_err(to_python)?.into())
    }

    /// The file as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.stored.to_bytes().map_err(to_python)?))
    }

    /// What the file says about its arrays, as JSON.
    #[getter]
    fn header(&self) -> PyResult<String> {
        serde_json::to_string(&self.stored.header).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Replaces the header.
    fn set_header(&mut self, header: &str) -> PyResult<()> {
        let header: Header = serde_json::from_str(header).map_err(|error| not_understood(header, &error))?;
        self.stored.header = header;
        Ok(())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.borrow().to_bytes(slf.py())?,)))
    }
}

/// Rows after the steps (a list in JSON) that a model file asks for.
#[pyfunction]
#[pyo3(signature = (steps, x), text_signature = "(steps, X)")]
fn prepare<'py>(py: Python<'py>, steps: &str, x: PyReadonlyArray2<'py, f64>) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let steps: Vec<Preprocess> = serde_json::from_str(steps)
        .map_err(|error| PyValueError::new_err(format!("model file: its preprocessing cannot be read: {error}")))?;
    let mut rows = x.as_array().to_owned();
    steps.iter().try_for_each(|step| step.apply(rows.view_mut())).map_err(to_python)?;
    Ok(PyArray2::from_owned_array(py, rows))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ModelFile>()?;
    module.add_function(wrap_pyfunction!(prepare, module)?)
}
