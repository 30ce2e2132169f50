use super::container::{Header, Stored, Tensor, malformed};
use crate::error::{Result, check_dim};
use crate::feature::FeatureMap;
use crate::model::{Predict, SvmModel};
use crate::scalar::Real;
use crate::solve::GapReport;
use serde_json::Value;

const SVM: &str = "svm";

impl<R: Real, M: FeatureMap<Real = R, Output = R>> SvmModel<M> {
    /// What a file keeps of this model: weights, and the description `map` to draw its map from; `classes` are the names
    /// of the classes, in the order of their numbers.
    ///
    /// # Errors
    /// Another number of names than of classes.
    pub fn to_stored(&self, map: Value, classes: Option<Vec<Value>>) -> Result<Stored> {
        if let Some(names) = &classes {
            check_dim("number of names of classes", self.classes(), names.len())?;
        }
        let reports = serde_json::to_value(self.reports()).map_err(|e| malformed(e.to_string()))?;
        let header = Header {
            kind: SVM.to_owned(),
            dtype: R::NAME.to_owned(),
            input_dim: self.input_dim(),
            map,
            preprocessing: Value::Null,
            classes,
            extra: serde_json::json!({ "reports": reports, "classes": self.classes() }),
        };
        let (rows, cols) = self.coefficients().dim();
        Ok(Stored::new(header)
            .with("coefficients", Tensor::of(vec![rows, cols], self.coefficients().iter().copied())?)
            .with("intercept", Tensor::of(vec![cols], self.intercept().iter().copied())?))
    }

    /// The model of a file, with the map drawn from the file's description.
    ///
    /// # Errors
    /// A file of another kind or precision, or arrays that do not fit the map.
    pub fn from_stored(stored: &Stored, map: M) -> Result<Self> {
        stored.expect_kind(SVM)?;
        check_dim("input dimension of the map", stored.header.input_dim, map.input_dim())?;
        let extra = &stored.header.extra;
        let reports: Vec<GapReport> = serde_json::from_value(extra["reports"].clone())
            .map_err(|e| malformed(format!("the reports cannot be read: {e}")))?;
        let classes: usize = serde_json::from_value(extra["classes"].clone())
            .map_err(|e| malformed(format!("the number of classes cannot be read: {e}")))?;
        if let Some(names) = &stored.header.classes {
            check_dim("number of names of classes", classes, names.len())?;
        }
        SvmModel::from_parts(map, stored.matrix("coefficients")?, stored.vector("intercept")?, classes, reports)
    }
}
