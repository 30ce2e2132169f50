use super::container::{Header, Stored, Tensor, malformed};
use crate::error::{Result, check_dim};
use crate::feature::FeatureMap;
use crate::model::{Predict, RidgeClassifierModel, RidgeModel};
use crate::scalar::Real;
use crate::solve::SolveReport;
use serde_json::Value;

const RIDGE: &str = "ridge";
const CLASSIFIER: &str = "ridge_classifier";

pub(super) fn parts<R: Real, M: FeatureMap<Real = R, Output = R>>(
    kind: &str,
    model: &RidgeModel<M>,
    map: Value,
) -> Result<Stored> {
    let coefficients = model.coefficients();
    let report = serde_json::to_value(model.report()).map_err(|e| malformed(e.to_string()))?;
    let header = Header {
        kind: kind.to_owned(),
        dtype: R::NAME.to_owned(),
        input_dim: model.input_dim(),
        map,
        preprocessing: Value::Null,
        classes: None,
        extra: serde_json::json!({ "report": report }),
    };
    let (rows, cols) = coefficients.dim();
    Ok(Stored::new(header)
        .with("coefficients", Tensor::of(vec![rows, cols], coefficients.iter().copied())?)
        .with("intercept", Tensor::of(vec![cols], model.intercept().iter().copied())?))
}

pub(super) fn model<R: Real, M: FeatureMap<Real = R, Output = R>>(stored: &Stored, map: M) -> Result<RidgeModel<M>> {
    check_dim("input dimension of the map", stored.header.input_dim, map.input_dim())?;
    let report: SolveReport = serde_json::from_value(stored.header.extra["report"].clone())
        .map_err(|e| malformed(format!("the report cannot be read: {e}")))?;
    RidgeModel::from_parts(map, stored.matrix("coefficients")?, stored.vector("intercept")?, report)
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> RidgeModel<M> {
    /// What a file keeps of this model: coefficients, and the description `map` to draw its map from.
    ///
    /// # Errors
    /// A report that cannot be written as JSON.
    pub fn to_stored(&self, map: Value) -> Result<Stored> {
        parts(RIDGE, self, map)
    }

    /// The model of a file, with the map drawn from the file's description.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the map.
    pub fn from_stored(stored: &Stored, map: M) -> Result<Self> {
        stored.expect_kind(RIDGE)?;
        model(stored, map)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> RidgeClassifierModel<M> {
    /// What a file keeps of this classifier; `classes` are the names of the classes, in the order of their numbers.
    ///
    /// # Errors
    /// Another number of names than of classes.
    pub fn to_stored(&self, map: Value, classes: Option<Vec<Value>>) -> Result<Stored> {
        if let Some(names) = &classes {
            check_dim("number of names of classes", self.classes(), names.len())?;
        }
        let mut stored = parts(CLASSIFIER, self.regression(), map)?;
        stored.header.classes = classes;
        Ok(stored)
    }

    /// The classifier of a file, with the map drawn from the file's description.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the map.
    pub fn from_stored(stored: &Stored, map: M) -> Result<Self> {
        stored.expect_kind(CLASSIFIER)?;
        let model = RidgeClassifierModel::from_regression(model(stored, map)?);
        if let Some(names) = &stored.header.classes {
            check_dim("number of names of classes", model.classes(), names.len())?;
        }
        Ok(model)
    }
}
