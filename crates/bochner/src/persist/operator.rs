use super::container::{Stored, malformed};
use super::ridge::{model, parts};
use crate::error::{Result, check_dim};
use crate::feature::{OperatorFeatures, OperatorSpec};
use crate::model::{OperatorRidgeClassifierModel, OperatorRidgeModel};
use crate::rows::Coding;
use crate::scalar::Real;
use serde_json::Value;

const RIDGE: &str = "operator_ridge";
const CLASSIFIER: &str = "operator_ridge_classifier";

fn written<R: Real>(kind: &str, model: &OperatorRidgeModel<R>) -> Result<Stored> {
    let spec = serde_json::to_value(model.features().spec()).map_err(|e| malformed(e.to_string()))?;
    parts(kind, model.scalar(), spec)
}

fn read<R: Real>(stored: &Stored) -> Result<OperatorRidgeModel<R>> {
    let spec: OperatorSpec = serde_json::from_value(stored.header.map.clone())
        .map_err(|e| malformed(format!("the description of the features cannot be read: {e}")))?;
    let features: OperatorFeatures<R> = spec.build(stored.header.input_dim)?;
    let ridge = model(stored, features.map().clone())?;
    OperatorRidgeModel::from_parts(features, ridge)
}

impl<R: Real> OperatorRidgeModel<R> {
    /// What a file keeps of this model: coefficients, and the description to draw its features from.
    ///
    /// # Errors
    /// A report that cannot be written as JSON.
    pub fn to_stored(&self) -> Result<Stored> {
        written(RIDGE, self)
    }

    /// The model of a file; its features are drawn again.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the features.
    pub fn from_stored(stored: &Stored) -> Result<Self> {
        stored.expect_kind(RIDGE)?;
        read(stored)
    }
}

impl<R: Real> OperatorRidgeClassifierModel<R> {
    /// What a file keeps of this classifier; `classes` are the names of the classes, in the order of their numbers.
    ///
    /// # Errors
    /// Another number of names than of classes.
    pub fn to_stored(&self, classes: Option<Vec<Value>>) -> Result<Stored> {
        if let Some(names) = &classes {
            check_dim("number of names of classes", self.classes(), names.len())?;
        }
        let mut stored = written(CLASSIFIER, self.regression())?;
        stored.header.classes = classes;
        stored.header.extra["coding"] = serde_json::to_value(self.coding()).map_err(|e| malformed(e.to_string()))?;
        Ok(stored)
    }

    /// The classifier of a file; its features are drawn again.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the features.
    pub fn from_stored(stored: &Stored) -> Result<Self> {
        stored.expect_kind(CLASSIFIER)?;
        let coding: Coding = serde_json::from_value(stored.header.extra["coding"].clone())
            .map_err(|e| malformed(format!("the code of classes cannot be read: {e}")))?;
        let model = OperatorRidgeClassifierModel::from_regression(read(stored)?, coding)?;
        if let Some(names) = &stored.header.classes {
            check_dim("number of names of classes", model.classes(), names.len())?;
        }
        Ok(model)
    }
}
