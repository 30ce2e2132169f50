//! Support vector machines: over feature maps, and the exact ones.

use crate::arrays::{Precision, Rows, Vector, in_precision, to_numpy};
use crate::detached::{Watch, detached};
use crate::errors::to_python;
use crate::features::Map;
use crate::files::{ModelFile, described};
use crate::kernels::PyKernel;
use crate::models::{Data, Two, either, in_dtype, json, parse, values, with_data};
use bochner::Result;
use bochner::feature::DynMap;
use bochner::model::{KernelSvm, Svm, SvmModel};
use bochner::random::Seed;
use bochner::solve::Hinge;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

/// What the machine is to do, as Python describes it.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
struct Plan {
    #[serde(rename = "C")]
    c: f64,
    loss: Hinge,
    tol: f64,
    max_iter: usize,
    fit_intercept: bool,
    intercept_scaling: f64,
    memory_budget: Option<u64>,
    classes: usize,
    seed: u64,
}

impl Plan {
    fn fit<R: Precision>(&self, map: DynMap<R>, data: Data<'_, R>, watch: &Watch) -> Result<SvmModel<DynMap<R>>> {
        let mut svm = Svm::new(map, self.c)?
            .with_loss(self.loss)
            .with_tolerance(self.tol)?
            .with_max_epochs(self.max_iter)?
            .with_intercept(self.fit_intercept.then_some(self.intercept_scaling))?
            .with_seed(Seed::new(self.seed))
            .with_classes(self.classes)?;
        if let Some(bytes) = self.memory_budget {
            svm = svm.with_memory_budget(bytes)?;
        }
        svm.fit_watched(&mut data.watched(watch), &|| watch.checkpoint())
    }
}

/// A fitted support vector machine on features.
#[pyclass(frozen, name = "SvmModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PySvmModel {
    map: Py<Map>,
    model: Two<SvmModel<DynMap<f32>>, SvmModel<DynMap<f64>>>,
}

#[pymethods]
impl PySvmModel {
    /// Fits to rows, numbers of classes and weights of one dtype; `plan` is JSON, `progress` is called with the rows read.
    #[staticmethod]
    #[pyo3(signature = (map, x, labels, weights, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(map, X, labels, weights, plan, n_jobs=None, progress=None)")]
    fn fit(
        py: Python<'_>,
        map: Py<Map>,
        x: Rows<'_>,
        labels: Rows<'_>,
        weights: Option<Vector<'_>>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let plan: Plan = parse(plan)?;
        let drawn = map.get();
        let model = with_data!(x, labels, weights, |data: R| detached(py, n_jobs, progress, |watch| {
            plan.fit(drawn.real::<R>()?, data, watch)
        })?);
        Ok(PySvmModel { map, model })
    }

    /// The model of a file, on the given map or the one that the file describes.
    #[staticmethod]
    #[pyo3(signature = (file, map=None))]
    fn from_file(py: Python<'_>, file: &ModelFile, map: Option<Py<Map>>) -> PyResult<Self> {
        let map = file.map(py, map)?;
        let model = in_dtype!(file.single()?, |R| {
            let load = || SvmModel::from_stored(&file.stored, map.get().real::<R>()?);
            load().map_err(to_python)?
        });
        Ok(PySvmModel { map, model })
    }

    /// The model as a file.
    fn to_file(&self) -> PyResult<ModelFile> {
        let described = described(self.map.get()).map_err(to_python)?;
        let stored = either!(&self.model, |model| model.to_stored(described, None));
        Ok(stored.map_err(to_python)?.into())
    }

    /// Decision values of the rows of `X`, one column per problem; `X` has the dtype of the fit.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn decide<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        either!(&self.model, |model| {
            values(py, &x, n_jobs, model.map(), model.reports().len(), |rows, out| model.decide_into(rows, out))
        })
    }

    /// One row of coefficients per feature, one column per problem.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(&self.model, |model| PyArray2::from_array(py, &model.coefficients()).into_any())
    }

    /// One number per problem.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        either!(&self.model, |model| PyArray1::from_array(py, &model.intercept()).into_any())
    }

    /// Number of classes.
    #[getter]
    fn classes(&self) -> usize {
        either!(&self.model, |model| model.classes())
    }

    /// Objectives and passes of every problem, as JSON.
    #[getter]
    fn reports(&self) -> PyResult<String> {
        json(&either!(&self.model, |model| model.reports()))
    }

    /// Precision of the model.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.model.dtype()
    }

    /// The map whose features the model is linear in.
    #[getter]
    fn map(&self, py: Python<'_>) -> Py<Map> {
        self.map.clone_ref(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile, Py<Map>))> {
        let model = slf.get();
        Ok((slf.get_type().getattr("from_file")?, (model.to_file()?, model.map(slf.py()))))
    }
}

/// Fits the exact machine with the kernel described by `kernel` (JSON): numbers of the support vectors, their coefficients
/// (one column per pair of classes), the constants of the pairs, and their reports as JSON.
#[pyfunction]
#[pyo3(signature = (kernel, x, labels, plan, n_jobs=None), text_signature = "(kernel, X, labels, plan, n_jobs=None)")]
#[allow(clippy::type_complexity)]
fn kernel_svm<'py>(
    py: Python<'py>,
    kernel: &str,
    x: Rows<'py>,
    labels: Vec<usize>,
    plan: &str,
    n_jobs: Option<i64>,
) -> PyResult<(Vec<usize>, Bound<'py, PyAny>, Vec<f64>, String)> {
    #[derive(serde::Deserialize)]
    struct Plan {
        #[serde(rename = "C")]
        c: f64,
        tol: f64,
        max_iter: Option<usize>,
        memory_budget: Option<u64>,
    }
    let (kernel, plan): (_, Plan) = (PyKernel::parse(kernel)?, parse(plan)?);
    let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
    let model = detached(py, n_jobs, None, |_| {
        let mut svm = KernelSvm::new(kernel, plan.c)?.with_tolerance(plan.tol).map_err(|error| match error {
            bochner::Error::Parameter { expected, found, .. } => {
                bochner::Error::Parameter { name: "tol", expected, found }
            }
            other => other,
        })?;
        if let Some(steps) = plan.max_iter {
            svm = svm.with_max_steps(steps)?;
        }
        if let Some(bytes) = plan.memory_budget {
            svm = svm.with_memory_budget(bytes)?;
        }
        svm.fit(rows.view(), &labels)
    })?;
    let reports: Vec<_> = model.reports().collect();
    let told: Vec<_> = reports
        .iter()
        .map(|r| serde_json::json!({ "primal": r.primal, "dual": r.dual, "steps": r.steps, "converged": r.converged }))
        .collect();
    let intercepts = reports.iter().map(|report| report.intercept).collect();
    let coefficients = to_numpy(py, model.coefficients().to_owned());
    Ok((model.support().to_vec(), coefficients, intercepts, json(&told)?))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySvmModel>()?;
    module.add_function(wrap_pyfunction!(kernel_svm, module)?)
}
