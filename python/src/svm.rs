//! Support vector machines: over feature maps, and the exact ones.

use crate::arrays::{Precision, Rows, Vector, in_precision, to_numpy};
use crate::detached::{Watch, detached};
use crate::errors::to_python;
use crate::features::Map;
use crate::files::{ModelFile, described};
use crate::kernels::PyKernel;
use crate::models::{Data, Two, either, in_dtype, json, parse, values, with_data};
use bochner::feature::DynMap;
use bochner::kernel::AnyKernel;
use bochner::model::{Fit, KernelSvm, KernelSvmModel, Svm, SvmModel};
use bochner::random::Seed;
use bochner::rows::InMemory;
use bochner::solve::Hinge;
use bochner::{Error, Result};
use ndarray::Array2;
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
    fn fit<R: Precision>(&self, map: DynMap<R>, mut data: Data<'_, R>, watch: &Watch) -> Result<SvmModel<DynMap<R>>> {
        let svm = Svm::new(map, self.c)?
            .with_loss(self.loss)
            .with_tolerance(self.tol)?
            .with_max_epochs(self.max_iter)?
            .with_intercept(self.fit_intercept.then_some(self.intercept_scaling))?
            .with_seed(Seed::new(self.seed))
            .with_classes(self.classes)?;
        svm.fit_stream(&mut data, &mut watch.context(self.memory_budget)?)
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

/// What the exact machine is to do, as Python describes it.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
struct ExactPlan {
    #[serde(rename = "C")]
    c: f64,
    tol: f64,
    max_iter: Option<usize>,
    memory_budget: Option<u64>,
}

impl ExactPlan {
    fn machine(&self, kernel: AnyKernel) -> Result<KernelSvm<AnyKernel>> {
        let mut svm = KernelSvm::new(kernel, self.c)?.with_tolerance(self.tol).map_err(|error| match error {
            Error::Parameter { expected, found, .. } => Error::Parameter { name: "tol", expected, found },
            other => other,
        })?;
        if let Some(steps) = self.max_iter {
            svm = svm.with_max_steps(steps)?;
        }
        Ok(svm)
    }
}

/// A fitted support vector machine with an exact kernel, one class against another.
#[pyclass(frozen, name = "KernelSvmModel", module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct PyKernelSvmModel {
    kernel: AnyKernel,
    model: KernelSvmModel<AnyKernel>,
}

#[pymethods]
impl PyKernelSvmModel {
    /// Fits to rows and numbers of classes; `kernel` and `plan` are JSON, `progress` is called with the steps done.
    #[staticmethod]
    #[pyo3(signature = (kernel, x, labels, plan, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "(kernel, X, labels, plan, n_jobs=None, progress=None)")]
    fn fit(
        py: Python<'_>,
        kernel: &str,
        x: Rows<'_>,
        labels: Vec<usize>,
        plan: &str,
        n_jobs: Option<i64>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (kernel, plan): (_, ExactPlan) = (PyKernel::parse(kernel)?, parse(plan)?);
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        let labels = Array2::from_shape_fn((labels.len(), 1), |(i, _)| labels[i] as f64);
        let model = detached(py, n_jobs, progress, |watch| {
            let mut source = InMemory::new(rows.view(), labels.view())?;
            plan.machine(kernel.clone())?.fit_stream(&mut source, &mut watch.context(plan.memory_budget)?)
        })?;
        Ok(PyKernelSvmModel { kernel, model })
    }

    /// The model of a file.
    #[staticmethod]
    fn from_file(file: &ModelFile) -> PyResult<Self> {
        let kernel = PyKernel::parse(&file.stored.header.map.to_string())?;
        let model = KernelSvmModel::from_stored(&file.stored, kernel.clone()).map_err(to_python)?;
        Ok(PyKernelSvmModel { kernel, model })
    }

    /// The model as a file.
    fn to_file(&self) -> PyResult<ModelFile> {
        let kernel = parse(&json(&self.kernel)?)?;
        Ok(self.model.to_stored(kernel, None).map_err(to_python)?.into())
    }

    /// Decision values of the rows of `X`, one column per pair of classes, positive for its first.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn decide<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        Ok(to_numpy(py, detached(py, n_jobs, None, |_| self.model.decide(rows.view()))?))
    }

    /// Numbers of the classes of the rows of `X`.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn predict(&self, py: Python<'_>, x: Rows<'_>, n_jobs: Option<i64>) -> PyResult<Vec<usize>> {
        let rows = in_precision!(x, |rows: R| rows.wide().map_err(to_python)?);
        detached(py, n_jobs, None, |_| self.model.predict_classes(rows.view()))
    }

    /// Numbers of the support vectors among the rows of the fit.
    #[getter]
    fn support(&self) -> Vec<usize> {
        self.model.support().to_vec()
    }

    /// The support vectors.
    #[getter]
    fn support_vectors<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        PyArray2::from_array(py, &self.model.support_vectors()).into_any()
    }

    /// One row of coefficients per support vector, one column per pair of classes.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        PyArray2::from_array(py, &self.model.coefficients()).into_any()
    }

    /// Numbers of the two classes of every pair.
    #[getter]
    fn pairs(&self) -> Vec<(usize, usize)> {
        self.model.pairs().collect()
    }

    /// Constants, objectives and steps of every pair, as JSON.
    #[getter]
    fn reports(&self) -> PyResult<String> {
        json(&self.model.reports().collect::<Vec<_>>())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (ModelFile,))> {
        Ok((slf.get_type().getattr("from_file")?, (slf.get().to_file()?,)))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySvmModel>()?;
    module.add_class::<PyKernelSvmModel>()
}
