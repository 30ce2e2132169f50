use super::container::{Header, Stored, Tensor, malformed};
use crate::context::Context;
use crate::error::{Result, check_dim};
use crate::kernel::{Kernel, OperatorKernel};
use crate::model::exact::{
    ExactGpClassifier, ExactGpClassifierModel, ExactGpRegressor, ExactGpRegressorModel, KernelRidgeModel,
};
use crate::model::{ExactOperatorRidgeModel, Fit, Predict};
use crate::random::Seed;
use crate::rows::InMemory;
use crate::solve::SolveReport;
use ndarray::ArrayView2;
use serde_json::{Value, json};
use std::sync::Arc;

const RIDGE: &str = "exact_kernel_ridge";
const REGRESSOR: &str = "exact_gp_regressor";
const CLASSIFIER: &str = "exact_gp_classifier";
const OPERATOR: &str = "exact_operator_ridge";

fn stored(kind: &str, input_dim: usize, kernel: Value, extra: Value) -> Stored {
    let (kind, dtype) = (kind.to_owned(), "f64".to_owned());
    // The kernel takes the place of the map.
    Stored::new(Header { kind, dtype, input_dim, map: kernel, preprocessing: Value::Null, classes: None, extra })
}

fn matrix(values: ArrayView2<'_, f64>) -> Result<Tensor> {
    Tensor::of(vec![values.nrows(), values.ncols()], values.iter().copied())
}

fn written(report: &SolveReport) -> Result<Value> {
    serde_json::to_value(report).map_err(|e| malformed(e.to_string()))
}

fn report(stored: &Stored) -> Result<SolveReport> {
    serde_json::from_value(stored.header.extra["report"].clone())
        .map_err(|e| malformed(format!("the report cannot be read: {e}")))
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
        Ok(stored(RIDGE, self.input_dim(), kernel, json!({ "report": written(self.report())? }))
            .with("rows", matrix(self.rows())?)
            .with("coefficients", matrix(self.coefficients())?))
    }

    /// The model of a file, with the kernel made from the file's description.
    ///
    /// # Errors
    /// A file of another kind, or damaged arrays.
    pub fn from_stored(stored: &Stored, kernel: Arc<dyn Kernel>) -> Result<Self> {
        stored.expect_kind(RIDGE)?;
        KernelRidgeModel::from_parts(kernel, stored.matrix("rows")?, stored.matrix("coefficients")?, report(stored)?)
    }
}

impl ExactOperatorRidgeModel {
    /// What a file keeps of this model: its rows, its coefficients, and its kernel.
    ///
    /// # Errors
    /// A kernel or a report that cannot be written as JSON.
    pub fn to_stored(&self) -> Result<Stored> {
        let kernel = serde_json::to_value(self.kernel()).map_err(|e| malformed(e.to_string()))?;
        Ok(stored(OPERATOR, self.input_dim(), kernel, json!({ "report": written(self.report())? }))
            .with("rows", matrix(self.rows())?)
            .with("coefficients", matrix(self.dual())?))
    }

    /// The model of a file.
    ///
    /// # Errors
    /// A file of another kind, or arrays that do not fit together.
    pub fn from_stored(stored: &Stored) -> Result<Self> {
        stored.expect_kind(OPERATOR)?;
        let kernel: OperatorKernel = serde_json::from_value(stored.header.map.clone())
            .map_err(|e| malformed(format!("the kernel cannot be read: {e}")))?;
        let (rows, dual) = (stored.matrix("rows")?, stored.matrix("coefficients")?);
        check_dim("length of a row", stored.header.input_dim, rows.ncols())?;
        ExactOperatorRidgeModel::from_parts(kernel, rows, dual, report(stored)?)
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
        process.fit_stream(
            &mut InMemory::new(rows.view(), targets.view())?.with_weights(weights.view())?,
            &mut Context::default(),
        )
    }
}

impl ExactGpClassifierModel {
    /// What a file keeps of this model; see [`ExactGpRegressorModel::to_stored`].
    ///
    /// # Errors
    /// Another number of names than of classes.
    pub fn to_stored(&self, kernel: Value, classes: Option<Vec<Value>>) -> Result<Stored> {
        if let Some(names) = &classes {
            check_dim("number of names of classes", self.classes(), names.len())?;
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
        process.fit_stream(
            &mut InMemory::new(rows.view(), labels.view())?.with_weights(weights.view())?,
            &mut Context::default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, OutputMatrix};
    use crate::model::ExactOperatorRidge;
    use ndarray::Array2;

    #[test]
    fn an_exact_operator_model_survives_a_file() {
        let rows = Array2::from_shape_fn((30, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.61).sin());
        let targets = Array2::from_shape_fn((30, 2), |(i, j)| rows[[i, j]] * rows[[i, 0]]);
        let outputs = OutputMatrix::identity(2).unwrap();
        let related = OperatorKernel::decomposable(Gaussian::new(0.7).unwrap().into(), outputs).unwrap();
        for kernel in [OperatorKernel::curl_free(0.5).unwrap(), related] {
            let model = ExactOperatorRidge::new(kernel, 0.1).unwrap().fit(rows.view(), targets.view()).unwrap();
            let stored = Stored::from_bytes(&model.to_stored().unwrap().to_bytes().unwrap()).unwrap();
            let again = ExactOperatorRidgeModel::from_stored(&stored).unwrap();
            assert_eq!(model.predict(rows.view()).unwrap(), again.predict(rows.view()).unwrap());
            assert_eq!((model.kernel(), model.report()), (again.kernel(), again.report()));
            let mut damaged = stored.clone();
            damaged.header.input_dim = 3;
            assert!(ExactOperatorRidgeModel::from_stored(&damaged).is_err());
            damaged.header.kind = "operator_ridge".into();
            assert!(ExactOperatorRidgeModel::from_stored(&damaged).is_err());
        }
    }
}
