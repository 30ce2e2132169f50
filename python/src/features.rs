//! The one map class: a description, and the map drawn from it in the precision of the data.

use crate::arrays::{Precision, Rows, View, in_precision, is_single, to_numpy};
use crate::detached::{Watch, blockwise, detached};
use crate::errors::{not_understood, to_python};
use crate::kernels;
use bochner::feature::{Describe, DynComplexMap, DynMap, FeatureMap, Spec};
use bochner::linalg::zeroed;
use bochner::scalar::Scalar;
use bochner::{Complex, Result};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use numpy::prelude::*;
use numpy::{Element, PyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::OnceLock;

/// A map in one precision, with real or complex output.
#[derive(Debug, Clone)]
pub(crate) enum Drawn<R: Precision> {
    Real(DynMap<R>),
    Complex(DynComplexMap<R>),
}

impl<R: Precision> Drawn<R> {
    fn output_dim(&self) -> usize {
        match self {
            Drawn::Real(map) => map.output_dim(),
            Drawn::Complex(map) => map.output_dim(),
        }
    }
}

/// A precision that a [`Map`] can be drawn in.
pub(crate) trait Drawable: Precision {
    /// Where a map keeps its weights of this precision.
    fn place(map: &Map) -> &OnceLock<Drawn<Self>>;
}

impl Drawable for f32 {
    fn place(map: &Map) -> &OnceLock<Drawn<f32>> {
        &map.single
    }
}

impl Drawable for f64 {
    fn place(map: &Map) -> &OnceLock<Drawn<f64>> {
        &map.double
    }
}

/// A feature map: drawn from a description, in the precision of the rows it meets.
#[pyclass(frozen, module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) spec: Spec,
    input_dim: usize,
    output_dim: usize,
    complex: bool,
    single: OnceLock<Drawn<f32>>,
    double: OnceLock<Drawn<f64>>,
}

impl Map {
    pub(crate) fn new(spec: Spec, input_dim: usize, single: bool, complex: bool) -> Result<Self> {
        let mut map = Map { spec, input_dim, output_dim: 0, complex, single: OnceLock::new(), double: OnceLock::new() };
        map.output_dim = if single { map.drawn::<f32>()?.output_dim() } else { map.drawn::<f64>()?.output_dim() };
        Ok(map)
    }

    /// A map that has been drawn already.
    pub(crate) fn of<R: Drawable>(spec: Spec, drawn: Drawn<R>) -> Self {
        let (input_dim, complex) = match &drawn {
            Drawn::Real(map) => (map.input_dim(), false),
            Drawn::Complex(map) => (map.input_dim(), true),
        };
        let output_dim = drawn.output_dim();
        let map = Map { spec, input_dim, output_dim, complex, single: OnceLock::new(), double: OnceLock::new() };
        R::place(&map).get_or_init(|| drawn);
        map
    }

    /// The map in one precision, drawn on first use. Two threads may both draw it: the bits are the same.
    pub(crate) fn drawn<R: Drawable>(&self) -> Result<&Drawn<R>> {
        let place = R::place(self);
        if let Some(map) = place.get() {
            return Ok(map);
        }
        let map = if self.complex {
            Drawn::Complex(self.spec.build_complex(self.input_dim)?)
        } else {
            Drawn::Real(self.spec.build(self.input_dim)?)
        };
        Ok(place.get_or_init(|| map))
    }

    /// The map with real output, complex features side by side.
    pub(crate) fn real<R: Drawable>(&self) -> Result<DynMap<R>> {
        match self.drawn::<R>()? {
            Drawn::Real(map) => Ok(map.clone()),
            Drawn::Complex(_) => self.spec.build(self.input_dim),
        }
    }

    /// A quantity of all pairs of rows, computed in double precision.
    fn pairwise<'py>(
        &self,
        py: Python<'py>,
        x: &Rows<'py>,
        y: &Rows<'py>,
        n_jobs: Option<i64>,
        quantity: fn(&Spec, ArrayView2<'_, f64>, ArrayView2<'_, f64>) -> Result<Array2<f64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let matrix = in_precision!(x, |x: R| in_precision!(y, |y: R| detached(py, n_jobs, None, |_| {
            quantity(&self.spec, x.wide()?.view(), y.wide()?.view())
        })))?;
        Ok(to_numpy(py, matrix))
    }

    /// [`drawn`](Self::drawn), without the interpreter lock while drawing.
    pub(crate) fn ready<R: Drawable>(&self, py: Python<'_>, n_jobs: Option<i64>) -> PyResult<&Drawn<R>> {
        match R::place(self).get() {
            Some(map) => Ok(map),
            None => detached(py, n_jobs, None, |_| self.drawn::<R>()),
        }
    }
}

fn parse(json: &str) -> PyResult<Spec> {
    serde_json::from_str(json).map_err(|error| not_understood(json, &error))
}

fn write(spec: &Spec) -> PyResult<String> {
    serde_json::to_string(spec).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pymethods]
impl Map {
    /// Draws the map described by `spec` (JSON) for rows of `input_dim` numbers of type `dtype`.
    #[new]
    #[pyo3(signature = (spec, input_dim, dtype="float64", complex=false, n_jobs=None))]
    fn py_new(
        py: Python<'_>,
        spec: &str,
        input_dim: usize,
        dtype: &str,
        complex: bool,
        n_jobs: Option<i64>,
    ) -> PyResult<Self> {
        let (single, spec) = (is_single(dtype)?, parse(spec)?);
        detached(py, n_jobs, None, |_| {
            // Drawing refuses values in its own words; what it has no use for is held to the catalogue as well.
            let map = Map::new(spec, input_dim, single, complex)?;
            map.spec.check().map(|()| map)
        })
    }

    /// Fills in what depends on data, such as a median length scale; returns the description of the map to draw.
    #[staticmethod]
    #[pyo3(signature = (spec, sample, n_jobs=None))]
    fn resolve(py: Python<'_>, spec: &str, sample: Rows<'_>, n_jobs: Option<i64>) -> PyResult<String> {
        let spec = parse(spec)?;
        let resolved =
            in_precision!(sample, |rows: R| detached(py, n_jobs, None, |_| { spec.resolve(rows.wide()?.view()) }))?;
        write(&resolved)
    }

    /// Description of the map, as JSON.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        write(&self.spec)
    }

    /// Length of an input row.
    #[getter]
    pub(crate) fn input_dim(&self) -> usize {
        self.input_dim
    }

    /// Number of features.
    #[getter]
    pub(crate) fn output_dim(&self) -> usize {
        self.output_dim
    }

    /// Whether features are complex numbers.
    #[getter]
    fn complex(&self) -> bool {
        self.complex
    }

    /// Features of the rows of `X` in a fresh array.
    #[pyo3(signature = (x, n_jobs=None), text_signature = "($self, X, n_jobs=None)")]
    fn transform<'py>(&self, py: Python<'py>, x: Rows<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        in_precision!(x, |rows: R| match self.ready::<R>(py, n_jobs)? {
            Drawn::Real(map) => fresh_features(py, map.as_ref(), rows, n_jobs),
            Drawn::Complex(map) => fresh_features(py, map.as_ref(), rows, n_jobs),
        })
    }

    /// Writes the features of the rows of `X` to `out`.
    #[pyo3(signature = (x, out, n_jobs=None), text_signature = "($self, X, out, n_jobs=None)")]
    fn transform_into(&self, py: Python<'_>, x: Rows<'_>, out: &Bound<'_, PyAny>, n_jobs: Option<i64>) -> PyResult<()> {
        in_precision!(x, |rows: R| match self.ready::<R>(py, n_jobs)? {
            Drawn::Real(map) => features_into::<_, R>(py, map.as_ref(), rows, out, n_jobs),
            Drawn::Complex(map) => features_into::<_, Complex<R>>(py, map.as_ref(), rows, out, n_jobs),
        })
    }

    /// The exact kernel between the rows of `X` and of `Y`.
    #[pyo3(signature = (x, y, n_jobs=None), text_signature = "($self, X, Y, n_jobs=None)")]
    fn kernel<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        y: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kernel = self.spec.kernel().map_err(to_python)?;
        kernels::matrix(py, kernel.as_ref(), &x, &y, n_jobs)
    }

    /// Closed-form variance of every estimated entry of the kernel between the rows of `X` and of `Y`.
    #[pyo3(signature = (x, y, n_jobs=None), text_signature = "($self, X, Y, n_jobs=None)")]
    fn variance<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        y: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.pairwise(py, &x, &y, n_jobs, Spec::variance)
    }

    /// The variance that as many independent draws would have: a figure to compare with where there is no closed form.
    #[pyo3(signature = (x, y, n_jobs=None), text_signature = "($self, X, Y, n_jobs=None)")]
    fn variance_iid<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        y: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.pairwise(py, &x, &y, n_jobs, Spec::variance_iid)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, usize, &'static str, bool))> {
        let map = slf.get();
        let dtype = if map.double.get().is_none() { "float32" } else { "float64" };
        Ok((slf.get_type().into_any(), (map.spec()?, map.input_dim, dtype, map.complex)))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("Map({}, input_dim={}, output_dim={})", self.spec()?, self.input_dim, self.output_dim))
    }
}

fn fresh_features<'py, M>(
    py: Python<'py>,
    map: &M,
    rows: View<'_, M::Real>,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>>
where
    M: FeatureMap<Real: Precision, Output: Element> + ?Sized,
{
    let features = detached(py, n_jobs, None, |watch| {
        let shape = (rows.nrows(), map.output_dim());
        let mut out = Array2::from_shape_vec(shape, zeroed(shape.0 * shape.1)).expect("as many zeros as entries");
        features_of(map, rows, out.view_mut(), watch)?;
        Ok(out)
    })?;
    Ok(to_numpy(py, features))
}

fn features_into<M, T>(
    py: Python<'_>,
    map: &M,
    rows: View<'_, M::Real>,
    out: &Bound<'_, PyAny>,
    n_jobs: Option<i64>,
) -> PyResult<()>
where
    T: Scalar + Element,
    M: FeatureMap<Real: Precision, Output = T> + ?Sized,
{
    let out = out.cast::<PyArray2<T>>().map_err(|_| {
        PyTypeError::new_err(format!("out must be a 2-D array of {}, the dtype of the features", T::get_dtype(py)))
    })?;
    if !out.is_aligned() {
        return Err(PyValueError::new_err("out must be aligned in memory"));
    }
    let mut out = out.try_readwrite()?;
    let view = out.as_array_mut();
    detached(py, n_jobs, None, |watch| features_of(map, rows, view, watch))
}

fn features_of<M: FeatureMap<Real: Precision> + ?Sized>(
    map: &M,
    rows: View<'_, M::Real>,
    out: ArrayViewMut2<'_, M::Output>,
    watch: &Watch,
) -> Result<()> {
    blockwise(rows, out, map.tile_rows(), map.output_dim(), watch, |rows, out| map.transform_into(rows, out))
}
