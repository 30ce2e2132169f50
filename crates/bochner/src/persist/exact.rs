use super::container::{Header, Stored, Tensor, malformed};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::model::exact::{
    ExactGpClassifier, ExactGpClassifierModel, ExactGpRegressor, ExactGpRegressorModel, KernelRidgeModel,
};
use crate::model::{Fit, Predict};
use crate::random::Seed;
use crate::rows::InMemory;
use crate::solve::SolveReport;
use ndarray::ArrayView2;
use serde_json::{Value, json};
use std::sync::Arc;

const RIDGE: &str = "exact_kernel_ridge";
const REGRESSOR: &str = "exact_gp_regressor";
const CLASSIFIER: &str = "exact_gp_classifier";

fn stored(kind: &str, input_dim: usize, kernel: Value, extra: Value) -> Stored {
    let (kind, dtype) = (kind.to_owned(), "f64".to_owned());
    // The kernel takes the place of the map.
    Stored::new(Header { kind, dtype, input_dim, map: kernel, preprocessing: Value::Null, classes: None, extra })
}

fn matrix(values: ArrayView2<'_, f64>) -> Result<Tensor> {
    Tensor::of(vec![values.nrows(), values.ncols()], values.iter().copied())
}

fn number(extra: &Value, name: &str) -> Result<f64> {
    extra[name].as_f64().ok_or_else(|| malformed(format!("`{name}` is missing")))
}

impl KernelRidgeModel {
    /// What a file keeps of this model: its rows, its coefficients, and the description of its kernel.
    ///
    /// # Errors
    /// A report that cannot be written as JSON.
    pub fn to_stored(&self, kernel: Value) -> Result<Stored> {
        let report = serde_json::to_value(self.report()).map_err(|e| malformed(e.to_string()))?;
        Ok(stored(RIDGE, self.input_dim(), kernel, json!({ "report": report }))
            .with("rows", matrix(self.rows())?)
            .with("coefficients", matrix(self.coefficients())?))
    }

    /// The model of a file, with the kernel made from the file's description.
    ///
    /// # Errors
    /// A file of another kind, or damaged arrays.
    pub fn from_stored(stored: &Stored, kernel: Arc<dyn Kernel>) -> Result<Self> {
        stored.expect_kind(RIDGE)?;
        let report: SolveReport = serde_json::from_value(stored.header.extra["report"].clone())
            .map_err(|e| malformed(format!("the report cannot be read: {e}")))?;
        KernelRidgeModel::from_parts(kernel, stored.matrix("rows")?, stored.matrix("coefficients")?, report)
    }
}

impl ExactGpRegressorModel {
    /// What a file keeps of this model: its rows and targets, and the description of its kernel. The factor, which would
    /// take `n²/2` numbers, is computed again when the file is read.
    ///
    /// # Errors
    /// None known.
    pub fn to_stored(&self, kernel: Value) -> Result<Stored> {
        let (data, signal, noise, normalised) = self.parts();
        let extra = json!({ "signal": signal, "noise": noise, "normalised": normalised });
        Ok(stored(REGRESSOR, self.input_dim(), kernel, extra)
            .with("rows", matrix(data.rows.view())?)
            .with("targets", matrix(data.targets.view())?)
            .with("weights", Tensor::of(vec![data.weights.len()], data.weights.iter().copied())?))
    }

    /// The model of a file, with the kernel made from the file's description.
    ///
    /// # Errors
    /// A file of another kind, damaged arrays, or those of fitting.
    pub fn from_stored(stored: &Stored, kernel: Arc<dyn Kernel>) -> Result<Self> {
        stored.expect_kind(REGRESSOR)?;
        let extra = &stored.header.extra;
        let normalised = extra["normalised"].as_bool().ok_or_else(|| malformed("`normalised` is missing"))?;
        let process = ExactGpRegressor::new(kernel, number(extra, "noise")?)?
            .with_signal_variance(number(extra, "signal")?)?
            .with_normalised_targets(normalised);
        let (rows, targets, weights) = (stored.matrix("rows")?, stored.matrix("targets")?, stored.vector("weights")?);
        process.fit(&mut InMemory::new(rows.view(), targets.view())?.with_weights(weights.view())?)
    }
}

impl ExactGpClassifierModel {
    /// What a file keeps of this model; see [`ExactGpRegressorModel::to_stored`].
    ///
    /// # Errors
    /// Another number of names than of classes.
    pub fn to_stored(&self, kernel: Value, classes: Option<Vec<Value>>) -> Result<Stored> {
        if let Some(names) = &classes {
            crate::error::check_dim("number of names of classes", self.classes(), names.len())?;
        }
        let (data, alpha, signal, sampling) = self.parts();
        let extra = json!({
            "alpha": alpha, "signal": signal, "classes": self.classes(), "samples": sampling.samples,
            "seed": sampling.seed
        });
        let mut stored = stored(CLASSIFIER, self.input_dim(), kernel, extra)
            .with("rows", matrix(data.rows.view())?)
            .with("labels", matrix(data.targets.view())?)
            .with("weights", Tensor::of(vec![data.weights.len()], data.weights.iter().copied())?);
        stored.header.classes = classes;
        Ok(stored)
    }

    /// The model of a file, with the kernel made from the file's description.
    ///
    /// # Errors
    /// A file of another kind, damaged arrays, or those of fitting.
    pub fn from_stored(stored: &Stored, kernel: Arc<dyn Kernel>) -> Result<Self> {
        stored.expect_kind(CLASSIFIER)?;
        let extra = &stored.header.extra;
        let whole = |name: &str| extra[name].as_u64().ok_or_else(|| malformed(format!("`{name}` is missing")));
        let mut process = ExactGpClassifier::new(kernel, number(extra, "alpha")?)?
            .with_classes(whole("classes")? as usize)?
            .with_samples(whole("samples")? as usize, Seed::new(whole("seed")?))?;
        if let Some(signal) = extra["signal"].as_f64() {
            process = process.with_signal_variance(signal)?;
        }
        let (rows, labels, weights) = (stored.matrix("rows")?, stored.matrix("labels")?, stored.vector("weights")?);
        process.fit(&mut InMemory::new(rows.view(), labels.view())?.with_weights(weights.view())?)
    }
}
