//! Sums over rows, from which models are solved: rows may come in any number of calls, and from several machines.

use crate::arrays::{Rows, Vector, is_single};
use crate::data::{Data, Modelled};
use crate::detached::{Watch, detached};
use crate::errors::to_python;
use crate::features::Drawn;
use crate::fit::Request;
use crate::models::PyModel;
use crate::operator::{coded, coding};
use bochner::accumulate::{ClassGram, Gram};
use bochner::feature::{DynMap, FeatureMap};
use bochner::model::{Model, RidgeClassifierModel};
use bochner::rows::{Coding, simplex_codes};
use bochner::scalar::Scalar;
use bochner::{Error, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::any::Any;
use std::fmt::Debug;

/// Sums over features and targets, or over the features of every class.
#[derive(Debug, Clone)]
enum Kept<T: Scalar> {
    Targets(Gram<T>),
    Classes(ClassGram<T>),
}

/// How a model is made of them.
type Solve<M> = fn(&Request, &M, &Kept<<M as FeatureMap>::Output>) -> Result<Model>;

/// Sums over the features of a map.
#[derive(Clone)]
struct Over<M: FeatureMap> {
    map: M,
    kept: Kept<M::Output>,
    coding: Option<(usize, Coding)>,
    solve: Solve<M>,
}

/// Sums over any features in any precision.
trait Accumulated: Any + Send + Sync {
    fn push(&mut self, x: &Rows<'_>, targets: &Rows<'_>, weights: Option<&Vector<'_>>, run: &Run<'_>) -> PyResult<()>;
    fn merge(&mut self, other: &dyn Any) -> PyResult<()>;
    fn count(&self) -> u64;
    fn solve(&self, request: &Request) -> Result<Model>;
    fn bytes(&self) -> Result<Vec<u8>>;
    fn copy(&self) -> Box<dyn Accumulated>;
}

/// Where work is done.
struct Run<'py> {
    py: Python<'py>,
    n_jobs: Option<i64>,
    progress: Option<Bound<'py, PyAny>>,
}

impl<M: FeatureMap<Real: Modelled> + Clone + 'static> Accumulated for Over<M> {
    fn push(&mut self, x: &Rows<'_>, targets: &Rows<'_>, weights: Option<&Vector<'_>>, run: &Run<'_>) -> PyResult<()> {
        let rows = M::Real::table(x).ok_or_else(of_one_kind)?.view()?;
        let (mut data, coding) = (Data::new(rows, targets, weights)?, self.coding);
        let (map, kept) = (&self.map, &mut self.kept);
        detached(run.py, run.n_jobs, run.progress.as_ref(), |watch: &Watch| {
            let mut context = watch.context(None)?;
            coded(coding, &mut data, |source| {
                context.read(source, &mut |block| match kept {
                    Kept::Targets(gram) => gram.push_rows(map, block),
                    Kept::Classes(gram) => gram.push_rows(map, block),
                })
            })
        })
    }

    fn merge(&mut self, other: &dyn Any) -> PyResult<()> {
        let other = other.downcast_ref::<Self>().ok_or_else(of_one_kind)?;
        match (&mut self.kept, &other.kept) {
            (Kept::Targets(own), Kept::Targets(other)) => own.merge(other).map_err(to_python),
            (Kept::Classes(own), Kept::Classes(other)) => own.merge(&self.map, other).map_err(to_python),
            _ => Err(of_one_kind()),
        }
    }

    fn count(&self) -> u64 {
        match &self.kept {
            Kept::Targets(gram) => gram.count(),
            Kept::Classes(gram) => gram.count(),
        }
    }

    fn solve(&self, request: &Request) -> Result<Model> {
        (self.solve)(request, &self.map, &self.kept)
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        match &self.kept {
            Kept::Targets(gram) => gram.to_bytes(),
            Kept::Classes(gram) => gram.to_bytes(),
        }
    }

    fn copy(&self) -> Box<dyn Accumulated> {
        Box::new(self.clone())
    }
}

fn of_one_kind() -> PyErr {
    PyTypeError::new_err("sums, and rows that are added to them, must be of one dtype and kind")
}

fn targets<T: Scalar>(kept: &Kept<T>) -> Result<Gram<T>> {
    match kept {
        Kept::Targets(gram) => Ok(gram.clone()),
        Kept::Classes(_) => Err(Error::Unsupported { what: "sums", reason: "they are of another kind".into() }),
    }
}

impl Request {
    /// Sums for rows of these many inputs and outputs: over no rows, or those that were written as bytes.
    fn sums<R: Modelled>(&self, shape: (usize, usize), bytes: Option<&[u8]>) -> Result<Box<dyn Accumulated>> {
        fn gram<T: Scalar>(bytes: Option<&[u8]>, features: usize, outputs: usize) -> Result<Kept<T>> {
            Ok(Kept::Targets(match bytes {
                Some(bytes) => Gram::from_bytes(bytes)?,
                None => Gram::new(features, outputs)?,
            }))
        }
        /// Sums of a regression of targets, or of classes.
        fn process<M: FeatureMap<Real: Modelled> + Clone + 'static>(
            map: &M,
            bytes: Option<&[u8]>,
            outputs: usize,
            classes: Option<usize>,
        ) -> Result<Box<dyn Accumulated>> {
            let kept = match (classes, bytes) {
                (None, bytes) => gram(bytes, map.output_dim(), outputs)?,
                (Some(_), Some(bytes)) => Kept::Classes(ClassGram::from_bytes(bytes)?),
                (Some(n), None) => Kept::Classes(ClassGram::new(map.input_dim(), map.output_dim(), n)?),
            };
            let solve: Solve<M> = |request, map, kept| match kept {
                Kept::Targets(gram) => Ok(request.regressor(map.clone())?.fit_moments(gram.clone().finish())?.into()),
                Kept::Classes(gram) => {
                    Ok(request.classifier(map.clone())?.fit_moments(gram.clone().finish(map)?)?.into())
                }
            };
            Ok(Box::new(Over { map: map.clone(), kept, coding: None, solve }))
        }
        let (inputs, outputs) = shape;
        Ok(match self.entry.entry.name {
            "ridge" | "ridge_classifier" => {
                let (map, coding) = (self.map()?.real::<R>()?, self.classes.map(|n| (n, Coding::OneAgainstRest)));
                let kept = gram(bytes, map.output_dim(), self.classes.unwrap_or(outputs))?;
                let solve: Solve<DynMap<R>> = |request, map, kept| {
                    let model = request.ridge(map.clone())?.fit_moments(targets(kept)?.finish())?;
                    Ok(match request.classes {
                        Some(_) => RidgeClassifierModel::from_regression(model).into(),
                        None => model.into(),
                    })
                };
                Box::new(Over { map, kept, coding, solve })
            }
            "operator_ridge" | "operator_ridge_classifier" => {
                let coding = coding(self)?;
                let outputs = match coding {
                    Some((classes, Coding::Simplex)) => simplex_codes(classes)?.ncols(),
                    Some((classes, _)) => classes,
                    None => outputs,
                };
                let ridge = self.operator()?.unrelated::<R>(self, (inputs, outputs))?;
                let map = ridge.features().map().clone();
                let kept = gram(bytes, map.output_dim(), ridge.features().output_dim())?;
                let solve: Solve<DynMap<R>> =
                    |request, map, kept| request.operator()?.solve(request, &targets(kept)?, map.input_dim());
                Box::new(Over { map, kept, coding, solve })
            }
            "gp_regressor" | "gp_classifier" => match self.map()?.drawn::<R>()? {
                Drawn::Real(map) => process(map, bytes, outputs, self.classes)?,
                Drawn::Complex(map) => process(map, bytes, outputs, self.classes)?,
            },
            _ => {
                let reason = format!("{} is not solved from sums", self.entry.entry.title);
                return Err(Error::Unsupported { what: "sums", reason });
            }
        })
    }
}

/// Sums over rows; models are solved from them.
#[pyclass(module = "bochner._bochner")]
pub(crate) struct Sums {
    /// What it was made with.
    arguments: Py<PyTuple>,
    sums: Box<dyn Accumulated>,
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
        let sums =
            py.detach(|| if single { request.sums::<f32>(shape, sums) } else { request.sums::<f64>(shape, sums) });
        let arguments = (kind, on, parameters, input_dim, outputs, dtype, classes, seed).into_pyobject(py)?.unbind();
        Ok(Sums { arguments, sums: sums.map_err(to_python)? })
    }

    /// Adds rows with their targets and weights. After an error the sums hold part of them and are of no use.
    #[pyo3(signature = (x, targets, weights, n_jobs=None, progress=None))]
    #[pyo3(text_signature = "($self, X, targets, weights, n_jobs=None, progress=None)")]
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        x: Rows<'py>,
        targets: Rows<'py>,
        weights: Option<Vector<'py>>,
        n_jobs: Option<i64>,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        self.sums.push(&x, &targets, weights.as_ref(), &Run { py, n_jobs, progress })
    }

    /// Adds the rows of other sums over the same features.
    fn merge(&mut self, other: &Self) -> PyResult<()> {
        self.sums.merge(other.sums.as_ref())
    }

    /// Number of rows added.
    #[getter]
    fn count(&self) -> u64 {
        self.sums.count()
    }

    /// The model of all rows so far, with these parameters; the sums stay.
    #[pyo3(signature = (parameters, n_jobs=None))]
    fn solve(&self, py: Python<'_>, parameters: &str, n_jobs: Option<i64>) -> PyResult<PyModel> {
        type Made<'py> = (String, Bound<'py, PyAny>, String, usize, usize, String, Option<usize>, u64);
        let (kind, on, _, _, _, _, classes, seed): Made<'_> = self.arguments.bind(py).extract()?;
        let request = Request::new(&kind, &on, parameters, classes, seed)?;
        Ok(detached(py, n_jobs, None, |_| self.sums.solve(&request))?.into())
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        Sums { arguments: self.arguments.clone_ref(py), sums: self.sums.copy() }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (py, own) = (slf.py(), slf.borrow());
        let bytes = PyBytes::new(py, &own.sums.bytes().map_err(to_python)?);
        let arguments = own.arguments.bind(py).add((bytes,))?;
        Ok((slf.get_type().into_any(), arguments))
    }
}
