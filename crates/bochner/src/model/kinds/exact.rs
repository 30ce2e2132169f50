use super::{Answers, Load, ModelEntry, compared, load, process_in_words};
use crate::context::Context;
use crate::error::{Error, Result, check_dim};
use crate::feature::Description;
use crate::kernel::Kernel;
use crate::model::exact::{
    ExactGpClassifier, ExactGpClassifierModel, ExactGpRegressor, ExactGpRegressorModel, KernelRidge, KernelRidgeModel,
};
use crate::model::{ExactOperatorRidgeModel, Fit, Fitted, Predict};
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored, Tensor, malformed};
use crate::random::Seed;
use crate::rows::InMemory;
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

description! {
    /// Parameters of kernel ridge regression.
    pub struct KernelRidgeSpec {
        /// Penalty.
        alpha: f64 = 1.0, Domain::NON_NEGATIVE, Fit;
        /// Bytes that may be used. Where the kernel matrix does not fit, conjugate gradients take the place of its
        /// factorisation; without a budget they do beyond 20,000 rows.
        memory_budget: Option<u64> = None, Domain::Optional(&Domain::COUNT), Size;
    }
    besides {}
}

description! {
    /// Parameters of Gaussian-process regression with an exact kernel.
    pub struct ExactGpRegressorSpec {
        /// Variance of the noise.
        noise: f64 = 0.1, Domain::POSITIVE, Fit;
        /// Factor of the kernel.
        signal: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Whether targets are divided by their standard deviation, so that noise and signal are in units of the variance of
        /// the targets. Their mean is subtracted in any case.
        normalize_y: bool = true, Domain::Flag, Fit;
    }
    besides {}
}

description! {
    /// Parameters of Gaussian-process classification with an exact kernel.
    pub struct ExactGpClassifierSpec {
        /// Concentration of the labels' Dirichlet law: small values trust labels.
        alpha: f64 = 0.01, Domain::POSITIVE, Fit;
        /// Factor of the kernel; none takes the variance of the transformed labels.
        signal: Option<f64> = None, Domain::Optional(&Domain::POSITIVE), Fit;
        /// Draws from the posteriors for probabilities.
        n_draws: usize = 512, Domain::COUNT, Size;
    }
    besides {}
}

description! {
    /// Parameters of ridge regression with an exact operator-valued kernel.
    pub struct ExactOperatorRidgeSpec {
        /// Added to the diagonal.
        alpha: f64 = 1.0, Domain::NON_NEGATIVE, Fit;
    }
    besides {}
}

impl KernelRidgeSpec {
    /// A regression with this kernel.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on(&self, kernel: Arc<dyn Kernel>) -> Result<KernelRidge> {
        self.check_parameters()?;
        KernelRidge::new(kernel, self.alpha)
    }
}

impl ExactGpRegressorSpec {
    /// A process with this kernel.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on(&self, kernel: Arc<dyn Kernel>) -> Result<ExactGpRegressor> {
        self.check_parameters()?;
        let process = ExactGpRegressor::new(kernel, self.noise)?.with_signal_variance(self.signal)?;
        Ok(process.with_normalized_targets(self.normalize_y))
    }
}

const KERNEL_RIDGE: &str = "exact_kernel_ridge";
const GP_REGRESSOR: &str = "exact_gp_regressor";
const GP_CLASSIFIER: &str = "exact_gp_classifier";
const OPERATOR_RIDGE: &str = "exact_operator_ridge";

pub(super) const RIDGE: ModelEntry = ModelEntry::new(
    KERNEL_RIDGE,
    "exact kernel ridge regression",
    "What ridge regression on features approximates, for some thousands of rows.",
    "exact-ridge",
    KernelRidgeSpec::PARAMETERS,
    load::<KernelRidgeModel, KernelRidgeModel>,
)
.in_double();

pub(super) const REGRESSION: ModelEntry = ModelEntry::new(
    GP_REGRESSOR,
    "exact Gaussian process regression",
    "What Gaussian process regression on features approximates, for some thousands of rows.",
    "exact-gp",
    ExactGpRegressorSpec::PARAMETERS,
    load::<ExactGpRegressorModel, ExactGpRegressorModel>,
)
.answering(Answers::DEVIATIONS)
.in_double();

pub(super) const CLASSIFICATION: ModelEntry = ModelEntry::new(
    GP_CLASSIFIER,
    "exact Gaussian process classification",
    "What Gaussian process classification on features approximates, for some thousands of rows.",
    "exact-gp",
    ExactGpClassifierSpec::PARAMETERS,
    load::<ExactGpClassifierModel, ExactGpClassifierModel>,
)
.classification()
.answering(Answers::PROBABILITIES)
.in_double();

pub(super) const OPERATOR: ModelEntry = ModelEntry::new(
    OPERATOR_RIDGE,
    "exact ridge regression with an operator-valued kernel",
    "What operator-valued features approximate, for some hundreds of rows.",
    "exact-operator",
    ExactOperatorRidgeSpec::PARAMETERS,
    load::<ExactOperatorRidgeModel, ExactOperatorRidgeModel>,
)
.in_double();

fn matrix(values: ArrayView2<'_, f64>) -> Result<Tensor> {
    Tensor::of(vec![values.nrows(), values.ncols()], values.iter().copied())
}

/// The kernel of the file.
fn kernel(stored: &Stored) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(stored.header.description()?.kernel()?.clone()))
}

/// Rows, their targets under the name that the kind gives them, and weights.
type Data = (Array2<f64>, Array2<f64>, ndarray::Array1<f64>);

fn data(stored: &Stored, targets: &str) -> Result<Data> {
    Ok((stored.matrix("rows")?, stored.matrix(targets)?, stored.vector("weights")?))
}

impl Fitted for KernelRidgeModel {
    on_kernel!(KERNEL_RIDGE);
    regresses!(Predict::predict);

    fn sentences(&self) -> Vec<String> {
        compared(self.rows().nrows(), self.report())
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut header = Header::of_kernel(KERNEL_RIDGE, self.input_dim(), self.kernel().description())?;
        header.insert("report", self.report())?;
        Ok(Stored::new(header).with("rows", matrix(self.rows())?).with("coefficients", matrix(self.coefficients())?))
    }
}

impl Load for KernelRidgeModel {
    fn load(stored: &Stored) -> Result<Self> {
        let (rows, coefficients) = (stored.matrix("rows")?, stored.matrix("coefficients")?);
        KernelRidgeModel::from_parts(kernel(stored)?, rows, coefficients, stored.header.part("report")?)
    }
}

impl Fitted for ExactOperatorRidgeModel {
    fn kind(&self) -> &'static str {
        OPERATOR_RIDGE
    }

    fn description(&self) -> Option<Description> {
        Some(self.kernel().clone().into())
    }

    regresses!(Predict::predict);

    fn sentences(&self) -> Vec<String> {
        compared(self.rows().nrows(), self.report())
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut header = Header::of_kernel(OPERATOR_RIDGE, self.input_dim(), Some(self.kernel().clone()))?;
        header.insert("report", self.report())?;
        Ok(Stored::new(header).with("rows", matrix(self.rows())?).with("coefficients", matrix(self.dual())?))
    }
}

impl Load for ExactOperatorRidgeModel {
    fn load(stored: &Stored) -> Result<Self> {
        let Description::OperatorKernel(kernel) = stored.header.description()?.clone() else {
            let reason = "an operator-valued kernel is needed here".into();
            return Err(Error::Unsupported { what: "kernel", reason });
        };
        let (rows, dual) = (stored.matrix("rows")?, stored.matrix("coefficients")?);
        check_dim("length of a row", stored.header.input_dim, rows.ncols())?;
        ExactOperatorRidgeModel::from_parts(kernel, rows, dual, stored.header.part("report")?)
    }
}

/// A file has rows and targets; the factor, which would take `n²/2` numbers, is computed again when it is read.
impl Fitted for ExactGpRegressorModel {
    on_kernel!(GP_REGRESSOR);
    regresses!(Predict::predict);

    fn variances(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Vec<f64>)> {
        Ok((self.predict_with_variance(rows)?.1, self.observation_variances()))
    }

    fn sentences(&self) -> Vec<String> {
        process_in_words(self.report(), self.log_marginal_likelihood())
    }

    fn to_stored(&self) -> Result<Stored> {
        let (data, signal, noise, normalised) = self.parts();
        let mut header = Header::of_kernel(GP_REGRESSOR, self.input_dim(), self.kernel().description())?;
        header.insert("signal", &signal)?;
        header.insert("noise", &noise)?;
        header.insert("normalised", &normalised)?;
        Ok(Stored::new(header)
            .with("rows", matrix(data.rows.view())?)
            .with("targets", matrix(data.targets.view())?)
            .with("weights", Tensor::of(vec![data.weights.len()], data.weights.iter().copied())?))
    }
}

impl Load for ExactGpRegressorModel {
    fn load(stored: &Stored) -> Result<Self> {
        let header = &stored.header;
        let process = ExactGpRegressor::new(kernel(stored)?, header.part("noise")?)?
            .with_signal_variance(header.part("signal")?)?
            .with_normalized_targets(header.part("normalised")?);
        let (rows, targets, weights) = data(stored, "targets")?;
        process.fit_stream(
            &mut InMemory::new(rows.view(), targets.view())?.with_weights(weights.view())?,
            &mut Context::default(),
        )
    }
}

/// As [`ExactGpRegressorModel`].
impl Fitted for ExactGpClassifierModel {
    on_kernel!(GP_CLASSIFIER);
    gives_probabilities!(self, rows => self.probabilities(rows));

    fn sentences(&self) -> Vec<String> {
        vec![format!("one process per class, {} in all, solved again from the rows in the file", self.classes())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let (data, alpha, signal, sampling) = self.parts();
        let mut header = Header::of_kernel(GP_CLASSIFIER, self.input_dim(), self.kernel().description())?;
        header.insert("alpha", &alpha)?;
        header.insert("signal", &signal)?;
        header.insert("classes", &self.classes())?;
        header.insert("samples", &sampling.samples)?;
        header.insert("seed", &sampling.seed)?;
        Ok(Stored::new(header)
            .with("rows", matrix(data.rows.view())?)
            .with("labels", matrix(data.targets.view())?)
            .with("weights", Tensor::of(vec![data.weights.len()], data.weights.iter().copied())?))
    }
}

impl Load for ExactGpClassifierModel {
    /// Classes and samples are believed as far as rows of the file and common sense go: each takes memory.
    fn load(stored: &Stored) -> Result<Self> {
        let header = &stored.header;
        let (rows, labels, weights) = data(stored, "labels")?;
        let believed = |name: &str, most: usize| {
            let found: usize = header.part(name)?;
            if found > most {
                return Err(malformed(format!("`{name}` is {found}, expected at most {most}")));
            }
            Ok(found)
        };
        let (classes, samples) = (believed("classes", rows.nrows().max(2))?, believed("samples", 1 << 20)?);
        let mut process = ExactGpClassifier::new(kernel(stored)?, header.part("alpha")?)?
            .with_classes(classes)?
            .with_samples(samples, Seed::new(header.part("seed")?))?;
        if let Some(signal) = header.part::<Option<f64>>("signal")? {
            process = process.with_signal_variance(signal)?;
        }
        process.fit_stream(
            &mut InMemory::new(rows.view(), labels.view())?.with_weights(weights.view())?,
            &mut Context::default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, OperatorKernel, OutputMatrix};
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
            let stored = Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
            let again = ExactOperatorRidgeModel::load(&stored).unwrap();
            assert_eq!(model.predict(rows.view()).unwrap(), again.predict(rows.view()).unwrap());
            assert_eq!((model.kernel(), model.report()), (again.kernel(), again.report()));
            let mut damaged = stored.clone();
            damaged.header.input_dim = 3;
            assert!(ExactOperatorRidgeModel::load(&damaged).is_err());
        }
    }
}
