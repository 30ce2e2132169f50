use super::container::{Header, Stored, Tensor, Values, malformed};
use super::gram::{collect, shape, spread, triangle, triangle_len};
use crate::error::{Result, check_dim};
use crate::feature::FeatureMap;
use crate::linalg::Cholesky;
use crate::model::evidence::Wide;
use crate::model::{ClassifierParts, GpClassifierModel, GpParts, GpRegressorModel, SviClassifierModel, SviParts};
use crate::scalar::{Real, Scalar};
use ndarray::Array2;
use serde_json::Value;

const REGRESSOR: &str = "gp_regressor";
const CLASSIFIER: &str = "gp_classifier";
const VARIATIONAL: &str = "svi_classifier";

/// Numbers in double precision, complex ones as pairs along a last axis.
fn tensor<W: Scalar<Real = f64>>(dims: &[usize], values: &[W]) -> Result<Tensor> {
    let mut flat = Vec::new();
    spread(values, &mut flat);
    Tensor::new(shape::<W>(dims), Values::F64(flat))
}

fn numbers<W: Scalar<Real = f64>>(stored: &Stored, name: &str, expected: usize) -> Result<Vec<W>> {
    match stored.tensor(name)?.values() {
        Values::F64(flat) => {
            let values: Vec<W> = collect(flat);
            if values.len() != expected {
                return Err(malformed(format!("array `{name}` holds {} numbers, not {expected}", values.len())));
            }
            Ok(values)
        }
        _ => Err(malformed(format!("array `{name}` is not of type f64"))),
    }
}

/// The triangle of a factor, row after row.
pub(super) fn factor_tensor<W: Scalar<Real = f64>>(factor: &Cholesky<W>) -> Result<Tensor> {
    let order = factor.order();
    let mut values = Vec::with_capacity(order * (order + 1) / 2);
    (0..order).for_each(|i| values.extend_from_slice(factor.factor().row(i)));
    tensor(&[values.len()], &values)
}

pub(super) fn factor_of<W: Scalar<Real = f64>>(
    stored: &Stored,
    name: &str,
    order: usize,
    norm_one: f64,
) -> Result<Cholesky<W>> {
    let entries: Vec<W> = numbers(stored, name, triangle_len(order)?)?;
    Cholesky::from_factor(triangle(order, &entries)?, norm_one)
}

pub(super) fn header<M: FeatureMap>(kind: &str, map: &M, described: Value, extra: Value) -> Header {
    Header {
        kind: kind.to_owned(),
        dtype: M::Real::NAME.to_owned(),
        input_dim: map.input_dim(),
        map: described,
        preprocessing: Value::Null,
        classes: None,
        extra,
    }
}

/// Refuses a map of another precision, width or kind of numbers than the file's.
pub(super) fn check_map<M: FeatureMap>(stored: &Stored, map: &M) -> Result<()> {
    check_dim("input dimension of the map", stored.header.input_dim, map.input_dim())?;
    let complex = stored.header.extra["complex"].as_bool();
    if stored.header.dtype != M::Real::NAME || complex != Some(M::Output::IS_COMPLEX) {
        let dtype = &stored.header.dtype;
        return Err(malformed(format!("holds a model of {dtype} features, complex: {complex:?}")));
    }
    Ok(())
}

impl<M: FeatureMap> GpRegressorModel<M> {
    /// What a file keeps of this model: coefficients, factor, and the description `map` to draw its map from.
    ///
    /// # Errors
    /// A report that cannot be written as JSON.
    pub fn to_stored(&self, map: Value) -> Result<Stored> {
        let (coefficients, factor, parts) = self.parts();
        let parts = serde_json::to_value(parts).map_err(|e| malformed(e.to_string()))?;
        let extra = serde_json::json!({
            "complex": M::Output::IS_COMPLEX, "norm_one": factor.norm_one(), "process": parts
        });
        let (dim, outputs) = coefficients.dim();
        let values: Vec<Wide<M>> = coefficients.iter().copied().collect();
        Ok(Stored::new(header(REGRESSOR, self.map(), map, extra))
            .with("coefficients", tensor(&[dim, outputs], &values)?)
            .with("factor", factor_tensor(factor)?))
    }

    /// The model of a file, with the map drawn from the file's description.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the map.
    pub fn from_stored(stored: &Stored, map: M) -> Result<Self> {
        stored.expect_kind(REGRESSOR)?;
        check_map(stored, &map)?;
        let extra = &stored.header.extra;
        let parts: GpParts = serde_json::from_value(extra["process"].clone())
            .map_err(|e| malformed(format!("the process cannot be read: {e}")))?;
        let (dim, outputs) = (map.output_dim(), parts.scales.len());
        let coefficients = numbers(stored, "coefficients", dim * outputs)?;
        let coefficients =
            Array2::from_shape_vec((dim, outputs), coefficients).map_err(|e| malformed(e.to_string()))?;
        let norm_one = extra["norm_one"].as_f64().ok_or_else(|| malformed("the norm of the matrix is missing"))?;
        GpRegressorModel::from_parts(map, coefficients, factor_of(stored, "factor", dim, norm_one)?, parts)
    }
}

impl<M: FeatureMap> GpClassifierModel<M> {
    /// What a file keeps of this classifier; `classes` are the names of the classes, in the order of their numbers.
    ///
    /// # Errors
    /// Another number of names than of classes.
    pub fn to_stored(&self, map: Value, classes: Option<Vec<Value>>) -> Result<Stored> {
        if let Some(names) = &classes {
            check_dim("number of names of classes", self.classes(), names.len())?;
        }
        let (coefficients, factors, parts) = self.parts();
        let parts = serde_json::to_value(parts).map_err(|e| malformed(e.to_string()))?;
        let norms: Vec<f64> = factors.iter().map(Cholesky::norm_one).collect();
        let extra = serde_json::json!({ "complex": M::Output::IS_COMPLEX, "norms_one": norms, "process": parts });
        let (dim, outputs) = coefficients.dim();
        let values: Vec<Wide<M>> = coefficients.iter().copied().collect();
        let mut stored = Stored::new(header(CLASSIFIER, self.map(), map, extra))
            .with("coefficients", tensor(&[dim, outputs], &values)?);
        stored.header.classes = classes;
        for (c, factor) in factors.iter().enumerate() {
            stored = stored.with(&format!("factor_{c}"), factor_tensor(factor)?);
        }
        Ok(stored)
    }

    /// The classifier of a file, with the map drawn from the file's description.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the map.
    pub fn from_stored(stored: &Stored, map: M) -> Result<Self> {
        stored.expect_kind(CLASSIFIER)?;
        check_map(stored, &map)?;
        let extra = &stored.header.extra;
        let read =
            |name: &str| serde_json::from_value(extra[name].clone()).map_err(|e| malformed(format!("{name}: {e}")));
        let parts: ClassifierParts = serde_json::from_value(extra["process"].clone())
            .map_err(|e| malformed(format!("the process cannot be read: {e}")))?;
        let norms: Vec<f64> = read("norms_one")?;
        let (dim, outputs) = (map.output_dim(), parts.means.len());
        check_dim("number of norms", outputs, norms.len())?;
        let coefficients = Array2::from_shape_vec((dim, outputs), numbers(stored, "coefficients", dim * outputs)?)
            .map_err(|e| malformed(e.to_string()))?;
        let factors = norms
            .into_iter()
            .enumerate()
            .map(|(c, norm)| factor_of(stored, &format!("factor_{c}"), dim, norm))
            .collect::<Result<_>>()?;
        let model = GpClassifierModel::from_parts(map, coefficients, factors, parts)?;
        if let Some(names) = &stored.header.classes {
            check_dim("number of names of classes", model.classes(), names.len())?;
        }
        Ok(model)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> SviClassifierModel<M> {
    /// What a file keeps of this classifier; `classes` are the names of the classes, in the order of their numbers.
    ///
    /// # Errors
    /// Another number of names than of classes.
    pub fn to_stored(&self, map: Value, classes: Option<Vec<Value>>) -> Result<Stored> {
        if let Some(names) = &classes {
            check_dim("number of names of classes", self.classes(), names.len())?;
        }
        let (means, logs, parts) = self.parts();
        let parts = serde_json::to_value(parts).map_err(|e| malformed(e.to_string()))?;
        let extra = serde_json::json!({ "complex": false, "process": parts });
        let shape = [means.nrows(), means.ncols()];
        let flat = |values: &Array2<f64>| values.iter().copied().collect::<Vec<f64>>();
        let mut stored = Stored::new(header(VARIATIONAL, self.map(), map, extra))
            .with("means", tensor(&shape, &flat(means))?)
            .with("log_variances", tensor(&shape, &flat(logs))?);
        stored.header.classes = classes;
        Ok(stored)
    }

    /// The classifier of a file, with the map drawn from the file's description.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the map.
    pub fn from_stored(stored: &Stored, map: M) -> Result<Self> {
        stored.expect_kind(VARIATIONAL)?;
        check_map(stored, &map)?;
        let parts: SviParts = serde_json::from_value(stored.header.extra["process"].clone())
            .map_err(|e| malformed(format!("the process cannot be read: {e}")))?;
        let model =
            SviClassifierModel::from_parts(map, stored.matrix("means")?, stored.matrix("log_variances")?, parts)?;
        if let Some(names) = &stored.header.classes {
            check_dim("number of names of classes", model.classes(), names.len())?;
        }
        Ok(model)
    }
}
