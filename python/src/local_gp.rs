//! Gaussian process regression with localised Maclaurin features.

use crate::arrays::{Rows, Table, to_numpy};
use crate::detached::detached;
use crate::errors::{not_understood, to_python};
use crate::files::ModelFile;
use bochner::feature::MaclaurinSpec;
use bochner::model::{Fit, LocalGp, LocalGpModel};
use bochner::rows::InMemory;
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A fitted local Gaussian process; float64 throughout.
#[pyclass(frozen, name = "LocalGpModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyLocalGpModel {
    model: LocalGpModel,
}

fn double<'a, 'py>(rows: &'a Rows<'py>) -> PyResult<&'a Table<'py, f64>> {
    match rows {
        Rows::Double(table) => Ok(table),
        Rows::Single(_) => Err(PyTypeError::new_err("rows must be of dtype float64")),
    }
}

#[pymethods]
impl PyLocalGpModel {
    /// Fits to rows and targets; `spec` describes the features as JSON.
    #[staticmethod]
    #[pyo3(signature = (spec, x, targets, noise, signal_variance, threshold, max_clusters=None, n_jobs=None, progress=None))]
    #[pyo3(
        text_signature = "(spec, X, targets, noise, signal_variance, threshold, max_clusters=None, n_jobs=None, progress=None)"
    )]
    fn fit(
        py: Python<'_>,
        spec: &str,
        x: Rows<'_>,
        targets: PyReadonlyArray2<'_, f64>,
        noise: f64,
        signal_variance: f64,
        threshold: f64,
        max_clusters: Option<usize>,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let parsed: MaclaurinSpec = serde_json::from_str(spec).map_err(|error| not_understood(spec, &error))?;
        let (rows, targets) = (double(&x)?.view()?, targets.as_array());
        let model = detached(py, n_jobs, progress, |watch| {
            let mut gp =
                LocalGp::new(parsed, noise)?.with_signal_variance(signal_variance)?.with_threshold(threshold)?;
            if let Some(most) = max_clusters {
                gp = gp.with_max_clusters(most)?;
            }
            let rows = rows.wide()?;
            gp.fit_stream(&mut InMemory::new(rows.view(), targets)?, &mut watch.context(None)?)
        })?;
        Ok(PyLocalGpModel { model })
    }

    /// Predictive means, one column per target, and predictive variances of the function.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<f64>>)> {
        let rows = double(&x)?.view()?;
        let (mean, variance) = detached(py, n_jobs, None, |_| self.model.predict_with_variance(rows.wide()?.view()))?;
        Ok((to_numpy(py, mean), PyArray1::from_owned_array(py, variance)))
    }

    /// The centroids, the mean of the rows first.
    #[getter]
    fn centroids<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        PyArray2::from_array(py, &self.model.centroids()).into_any()
    }

    /// Description of the features, as JSON.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        serde_json::to_string(self.model.spec()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The model of a file.
    #[staticmethod]
    fn from_file(file: &ModelFile) -> PyResult<Self> {
        Ok(PyLocalGpModel { model: LocalGpModel::from_stored(&file.stored).map_err(to_python)? })
    }

    /// The model as a file.
    fn to_file(&self) -> PyResult<ModelFile> {
        Ok(self.model.to_stored().map_err(to_python)?.into())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile,))> {
        Ok((slf.get_type().getattr("from_file")?, (slf.get().to_file()?,)))
    }
}
