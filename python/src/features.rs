//! The one map class: a description, and the map drawn from it in the precision of the data.

use crate::arrays::{Precision, Rows, View, in_precision, is_single, readable, to_numpy};
use crate::data::Modelled;
use crate::detached::{blockwise, detached};
use crate::errors::{json, parse, to_python};
use crate::kernels;
use bochner::feature::{Content, Describe, DynComplexMap, DynMap, FeatureMap, Piece, Spec, WaveSlopes};
use bochner::scalar::Scalar;
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use numpy::{Element, PyArray1, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
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

/// A feature map: drawn from a description, in the precision of the rows it meets.
#[pyclass(frozen, module = "bochner._bochner")]
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) spec: Spec,
    input_dim: usize,
    output_dim: usize,
    complex: bool,
    pub(crate) single: OnceLock<Drawn<f32>>,
    pub(crate) double: OnceLock<Drawn<f64>>,
}

impl Map {
    pub(crate) fn new(spec: Spec, input_dim: usize, single: bool, complex: bool) -> Result<Self> {
        let mut map = Map { spec, input_dim, output_dim: 0, complex, single: OnceLock::new(), double: OnceLock::new() };
        map.output_dim = if single { map.drawn::<f32>()?.output_dim() } else { map.drawn::<f64>()?.output_dim() };
        Ok(map)
    }

    /// A map that has been drawn already.
    pub(crate) fn of<R: Modelled>(spec: Spec, drawn: Drawn<R>) -> Self {
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
    pub(crate) fn drawn<R: Modelled>(&self) -> Result<&Drawn<R>> {
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
    pub(crate) fn real<R: Modelled>(&self) -> Result<DynMap<R>> {
        match self.drawn::<R>()? {
            Drawn::Real(map) => Ok(map.clone()),
            Drawn::Complex(_) => self.spec.build(self.input_dim),
        }
    }

    /// [`drawn`](Self::drawn), without the interpreter lock while drawing.
    pub(crate) fn ready<R: Modelled>(&self, py: Python<'_>, n_jobs: Option<i64>) -> PyResult<&Drawn<R>> {
        match R::place(self).get() {
            Some(map) => Ok(map),
            None => detached(py, n_jobs, None, |_| self.drawn::<R>()),
        }
    }
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
        let spec: Spec = parse(spec)?;
        json(&in_precision!(sample, |rows: R| detached(py, n_jobs, None, |_| spec.resolve(rows.wide()?.view())))?)
    }

    /// Description of the map, as JSON.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        json(&self.spec)
    }

    /// Number of columns of rows.
    #[getter]
    fn input_dim(&self) -> usize {
        self.input_dim
    }

    /// Number of features.
    #[getter]
    fn output_dim(&self) -> usize {
        self.output_dim
    }

    /// Largest and root mean squared difference between the kernel and the mean of spherical features.
    fn bias(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let Spec::Spherical(spec) = &self.spec else {
            return Err(PyValueError::new_err("only spherical features have a bias that is known"));
        };
        let bias = py.detach(|| spec.bias(self.input_dim)).map_err(to_python)?;
        Ok((bias.sup, bias.rms))
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
            Drawn::Real(map) => features(py, map.as_ref(), rows, n_jobs),
            Drawn::Complex(map) => features(py, map.as_ref(), rows, n_jobs),
        })
    }

    /// Cotangents of features, in the precision of the rows, taken back to cotangents of the rows.
    #[pyo3(signature = (x, cotangents, n_jobs=None), text_signature = "($self, X, cotangents, n_jobs=None)")]
    fn pullback<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        cotangents: &Bound<'py, PyAny>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        in_precision!(x, |rows: R| match self.ready::<R>(py, n_jobs)? {
            Drawn::Real(map) => pulled(py, map.as_ref(), rows, cotangents, n_jobs),
            Drawn::Complex(map) => pulled(py, map.as_ref(), rows, cotangents, n_jobs),
        })
    }

    /// Cotangents of Fourier features taken back to frequencies, amplitudes and offsets, summed over rows; in double precision.
    #[pyo3(signature = (x, cotangents, n_jobs=None), text_signature = "($self, X, cotangents, n_jobs=None)")]
    fn pull_parameters<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        cotangents: &Bound<'py, PyAny>,
        n_jobs: Option<i64>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<f64>, Vec<f64>)> {
        let found = in_precision!(x, |rows: R| match self.ready::<R>(py, n_jobs)? {
            Drawn::Real(map) => wave_slopes(py, map.as_ref(), rows, cotangents, n_jobs),
            Drawn::Complex(map) => wave_slopes(py, map.as_ref(), rows, cotangents, n_jobs),
        })?;
        Ok((to_numpy(py, found.frequencies), found.amplitudes, found.offsets))
    }

    /// What the map is made of in one precision: a dict with the name of its `kind`, numbers, arrays and dicts of the same
    /// sort, from which other programs compute the same features.
    #[pyo3(signature = (dtype="float64", n_jobs=None))]
    fn pieces<'py>(&self, py: Python<'py>, dtype: &str, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyDict>> {
        fn of<'py, R: Modelled>(map: &Map, py: Python<'py>, n_jobs: Option<i64>) -> PyResult<Bound<'py, PyDict>> {
            let pieces = match map.ready::<R>(py, n_jobs)? {
                Drawn::Real(map) => detached(py, n_jobs, None, |_| map.pieces()),
                Drawn::Complex(map) => detached(py, n_jobs, None, |_| map.pieces()),
            };
            described(py, pieces?)
        }
        if is_single(dtype)? { of::<f32>(self, py, n_jobs) } else { of::<f64>(self, py, n_jobs) }
    }

    /// Between the rows of `X` and of `Y`: the exact `kernel`, the closed-form `variance` of every estimated entry, or the variance
    /// that as many independent draws would have, `variance_iid`.
    #[pyo3(signature = (quantity, x, y, n_jobs=None), text_signature = "($self, quantity, X, Y, n_jobs=None)")]
    fn pairwise<'py>(
        &self,
        py: Python<'py>,
        quantity: &str,
        x: Rows<'py>,
        y: Rows<'py>,
        n_jobs: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let variance = match quantity {
            "kernel" => return kernels::matrix(py, self.spec.kernel().map_err(to_python)?.as_ref(), &x, &y, n_jobs),
            "variance" => Spec::variance,
            "variance_iid" => Spec::variance_iid,
            other => return Err(PyValueError::new_err(format!("there is no quantity {other}"))),
        };
        let matrix = in_precision!(x, |x: R| in_precision!(y, |y: R| detached(py, n_jobs, None, |_| {
            variance(&self.spec, x.wide()?.view(), y.wide()?.view())
        })))?;
        Ok(to_numpy(py, matrix))
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

fn described<R: Precision>(py: Python<'_>, piece: Piece<R>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("kind", piece.kind)?;
    for (name, content) in piece.contents {
        match content {
            Content::Number(number) => out.set_item(name, number)?,
            Content::Vector(numbers) => out.set_item(name, PyArray1::from_vec(py, numbers))?,
            Content::Matrix(numbers) => out.set_item(name, to_numpy(py, numbers))?,
            // As libraries of tensors index.
            Content::Indices(numbers) => {
                out.set_item(name, PyArray1::from_vec(py, numbers.into_iter().map(i64::from).collect()))?;
            }
            Content::Pieces(pieces) => {
                let pieces = pieces.into_iter().map(|piece| described(py, piece)).collect::<PyResult<Vec<_>>>()?;
                out.set_item(name, PyList::new(py, pieces)?)?;
            }
        }
    }
    Ok(out)
}

fn features<'py, M>(
    py: Python<'py>,
    map: &M,
    rows: View<'_, M::Real>,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>>
where
    M: FeatureMap<Real: Precision, Output: Element> + ?Sized,
{
    let features = detached(py, n_jobs, None, |watch| {
        let mut out = map.room_for(rows.nrows())?;
        let fill = |rows: ArrayView2<'_, M::Real>, out: ArrayViewMut2<'_, M::Output>| map.transform_into(rows, out);
        blockwise(rows, out.view_mut(), map.tile_rows(), map.output_dim(), watch, fill)?;
        Ok(out)
    })?;
    Ok(to_numpy(py, features))
}

fn wave_slopes<'py, M>(
    py: Python<'py>,
    map: &M,
    rows: View<'_, M::Real>,
    cotangents: &Bound<'py, PyAny>,
    n_jobs: Option<i64>,
) -> PyResult<WaveSlopes>
where
    M: FeatureMap<Real: Precision, Output: Element> + ?Sized,
{
    let cotangents = readable(cotangents.cast::<PyArray2<M::Output>>()?)?;
    let cotangents = cotangents.as_array();
    detached(py, n_jobs, None, |_| {
        let mut buffer = Vec::new();
        map.pull_parameters(rows.rows(0..rows.nrows(), &mut buffer)?, cotangents)
    })
}

fn pulled<'py, M>(
    py: Python<'py>,
    map: &M,
    rows: View<'_, M::Real>,
    cotangents: &Bound<'py, PyAny>,
    n_jobs: Option<i64>,
) -> PyResult<Bound<'py, PyAny>>
where
    M: FeatureMap<Real: Precision, Output: Element> + ?Sized,
{
    let cotangents = readable(cotangents.cast::<PyArray2<M::Output>>()?)?;
    let cotangents = cotangents.as_array();
    let pulled = detached(py, n_jobs, None, |watch| {
        if rows.nrows() != cotangents.nrows() {
            let (expected, found) = (rows.nrows(), cotangents.nrows());
            return Err(Error::Dimension { what: "number of rows of cotangents", expected, found });
        }
        let mut out = Array2::from_elem((rows.nrows(), map.input_dim()), M::Real::ZERO);
        let mut first = 0;
        let fill = |rows: ArrayView2<'_, M::Real>, mut out: ArrayViewMut2<'_, M::Real>| {
            let here = cotangents.slice(s![first..first + rows.nrows(), ..]);
            first += rows.nrows();
            out.assign(&map.pullback(rows, here)?);
            Ok(())
        };
        blockwise(rows, out.view_mut(), map.tile_rows(), map.output_dim(), watch, fill)?;
        Ok(out)
    })?;
    Ok(to_numpy(py, pulled))
}
