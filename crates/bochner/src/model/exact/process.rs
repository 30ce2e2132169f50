use super::{Gathered, data, expand, for_each_strip, gather, kernel, kernel_triangle, matrix, tile_mut};
use crate::context::Context;
use crate::error::{Error, Result, check_dim, check_positive};
use crate::interrupt;
use crate::kernel::{Kernel, kernel_matrix};
use crate::linalg::{Cholesky, Lower, Tile, Workspace};
use crate::memory::{bytes, filled, need};
use crate::model::dirichlet::{Dirichlet, Sampling};
use crate::model::evidence::column_lengths;
use crate::model::kinds::LengthScaleSearch;
use crate::model::kinds::{
    Answers, Load, ModelEntry, gives_probabilities, load, on_kernel, predicts_classes, process_in_words, regresses,
};
use crate::model::request::{Asked, Describing, FitAny, Needs};
use crate::model::ridge::largest;
use crate::model::{Fit, Fitted, Predict, known};
use crate::parallel::Parallel;
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored, Tensor, malformed};
use crate::preprocess::LengthScale;
use crate::random::Seed;
use crate::rows::{InMemory, MOST_CLASSES, RowSource, class_of};
use crate::solve::{SolveReport, factorise};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, CowArray, Ix2, s};
use std::sync::Arc;

/// Length scales that need no rows to be known.
fn decided(length_scale: LengthScale) -> Result<LengthScale> {
    match length_scale {
        LengthScale::Median => length_scale.check(0).map(|()| length_scale),
        known => Ok(known),
    }
}

/// New rows as the kernel sees them.
fn divided<'a>(length_scale: &LengthScale, rows: ArrayView2<'a, f64>) -> Result<CowArray<'a, f64, Ix2>> {
    Ok(match length_scale {
        LengthScale::Same(scale) if *scale == 1.0 => rows.into(),
        scale => scale.divide(rows)?.into(),
    })
}

/// `k(x, x)` for every row.
fn prior(kernel: &dyn Kernel, rows: ArrayView2<'_, f64>) -> Vec<f64> {
    let each = |row: ndarray::ArrayView1<'_, f64>| {
        let row = row.to_vec();
        kernel.evaluate(&row, &row)
    };
    rows.rows().into_iter().map(each).collect()
}

/// Variances at `new` under factors of `s²K + S`: `s²k(x, x) - s⁴|L⁻¹k_x|²`, cut off at 0, one column per factor.
fn posterior_variances(
    kernel: &dyn Kernel,
    rows: ArrayView2<'_, f64>,
    factors: &[(f64, &Cholesky<f64>)],
    new: ArrayView2<'_, f64>,
) -> Result<Array2<f64>> {
    let mut out = Array2::zeros((new.nrows(), factors.len()));
    let prior = prior(kernel, new);
    for_each_strip(kernel, new, rows, &mut |start, matrix| {
        for (index, (signal, factor)) in factors.iter().enumerate() {
            let mut columns = matrix.t().as_standard_layout().into_owned();
            factor.solve_factor_in_place(tile_mut(&mut columns))?;
            for (i, length) in column_lengths(&columns).into_iter().enumerate() {
                out[[start + i, index]] = (signal * (prior[start + i] - signal * length)).max(0.0);
            }
        }
        Ok(())
    })?;
    crate::rows::check_finite("variances", out.view(), 0)?;
    Ok(out)
}

/// Gaussian-process regression with the kernel itself: the reference of [`GpRegressor`](crate::model::GpRegressor), with
/// the same parameters and the same treatment of targets.
///
/// Mean `s²k_xᵀ(s²K + τ²W⁻¹)⁻¹z`, covariance `s²k(x, x') - s⁴k_xᵀ(s²K + τ²W⁻¹)⁻¹k_x'` (Rasmussen and Williams 2006, §2.2).
#[derive(Debug, Clone)]
pub struct ExactGpRegressor {
    kernel: Arc<dyn Kernel>,
    length_scale: LengthScale,
    signal: f64,
    noise: f64,
    normalised: bool,
}

impl ExactGpRegressor {
    /// Noise variance `τ²` and signal variance 1, in units of the variance of the targets.
    ///
    /// # Errors
    /// A noise variance that is not positive.
    pub fn new(kernel: Arc<dyn Kernel>, noise_variance: f64) -> Result<Self> {
        check_positive("noise variance", noise_variance)?;
        let length_scale = LengthScale::Same(1.0);
        Ok(ExactGpRegressor { kernel, length_scale, signal: 1.0, noise: noise_variance, normalised: true })
    }

    /// With rows divided by these length scales, or multiplied by a metric, before they meet the kernel.
    ///
    /// # Errors
    /// An unresolved median; others are found when rows are there.
    pub fn with_length_scale(mut self, length_scale: LengthScale) -> Result<Self> {
        self.length_scale = decided(length_scale)?;
        Ok(self)
    }

    /// With signal variance `s²`.
    ///
    /// # Errors
    /// A variance that is not positive.
    pub fn with_signal_variance(mut self, signal_variance: f64) -> Result<Self> {
        check_positive("signal variance", signal_variance)?;
        self.signal = signal_variance;
        Ok(self)
    }

    /// With targets divided by their standard deviations, or as they are; their mean is subtracted in any case.
    pub fn with_normalized_targets(mut self, normalised: bool) -> Self {
        self.normalised = normalised;
        self
    }
}

impl Fit for ExactGpRegressor {
    type Real = f64;
    type Model = ExactGpRegressorModel;

    fn fit_stream(&self, source: &mut dyn RowSource<f64>, context: &mut Context<'_>) -> Result<ExactGpRegressorModel> {
        context.fit(source, |source, context| {
            let mut data = gather(source, context, None)?;
            data.rows = self.length_scale.divide(data.rows.view())?;
            interrupt::expect(Some(2 * data.rows.nrows()));
            ExactGpRegressorModel::new(self, data)
        })
    }
}

/// A fitted [`ExactGpRegressor`].
#[derive(Debug, Clone)]
pub struct ExactGpRegressorModel {
    description: ExactGpRegressor,
    data: Gathered,
    means: Vec<f64>,
    scales: Vec<f64>,
    coefficients: Array2<f64>,
    factor: Cholesky<f64>,
    likelihood: f64,
    report: SolveReport,
}

impl ExactGpRegressorModel {
    pub(crate) fn new(description: &ExactGpRegressor, data: Gathered) -> Result<Self> {
        let ExactGpRegressor { kernel, signal, noise, normalised, .. } = description;
        let (n, outputs) = data.targets.dim();
        let total = data.weights.sum();
        let mut z = data.targets.clone();
        let (mut means, mut scales) = (Vec::new(), Vec::new());
        for mut column in z.columns_mut() {
            // About the first one: targets that are all the same have exactly that mean.
            let first = column[0];
            let mean = first + column.iter().zip(&data.weights).map(|(y, w)| w * (y - first)).sum::<f64>() / total;
            column.mapv_inplace(|y| y - mean);
            let variance = column.iter().zip(&data.weights).map(|(y, w)| w * y * y).sum::<f64>() / total;
            let scale = if *normalised && variance > 0.0 { variance.sqrt() } else { 1.0 };
            column.mapv_inplace(|y| y / scale);
            means.push(mean);
            scales.push(scale);
        }
        let mut matrix = kernel_triangle(&**kernel, data.rows.view())?;
        matrix.scale(*signal);
        for (i, weight) in data.weights.iter().enumerate() {
            matrix.row_mut(i)[i] += noise / weight;
        }
        let (factor, jitter, condition) = factorise(matrix)?;
        let mut solved = z.clone();
        factor.solve_in_place(tile_mut(&mut solved))?;
        let misfit = (&z * &solved).sum();
        let volume = factor.log_determinant() + n as f64 * std::f64::consts::TAU.ln();
        let units: f64 = scales.iter().map(|scale| n as f64 * scale.ln()).sum();
        let likelihood = -0.5 * (misfit + outputs as f64 * volume) - units;
        for mut row in solved.rows_mut() {
            row.iter_mut().zip(&scales).for_each(|(value, scale)| *value *= signal * scale);
        }
        crate::rows::check_finite("coefficients", solved.view(), 0)?;
        let report = SolveReport::gaussian_process(jitter, condition);
        let description = description.clone();
        Ok(ExactGpRegressorModel { description, data, means, scales, coefficients: solved, factor, likelihood, report })
    }

    pub(crate) fn parts(&self) -> (&Gathered, f64, f64, bool) {
        let ExactGpRegressor { signal, noise, normalised, .. } = &self.description;
        (&self.data, *signal, *noise, *normalised)
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.description.kernel
    }

    /// `ln p(y)` of the training targets, summed over them.
    pub fn log_marginal_likelihood(&self) -> f64 {
        self.likelihood
    }

    /// Variances of the noise of each target, in its own units.
    pub fn observation_variances(&self) -> Vec<f64> {
        self.scales.iter().map(|scale| scale * scale * self.description.noise).collect()
    }

    /// Jitter and condition of the factorisation.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }

    /// Means and variances of the process at `rows`, one column per target; noise is not included.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn predict_with_variance(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Array2<f64>)> {
        let mean = self.predict(rows)?;
        let factors = [(self.description.signal, &self.factor)];
        let rows = divided(&self.description.length_scale, rows)?;
        let rows = rows.view();
        let unit = posterior_variances(&*self.description.kernel, self.data.rows.view(), &factors, rows)?;
        let variance = Array2::from_shape_fn(mean.dim(), |(i, k)| unit[[i, 0]] * self.scales[k] * self.scales[k]);
        Ok((mean, variance))
    }

    /// Covariances of the process between all pairs of `rows`, for one target.
    ///
    /// # Errors
    /// As [`predict_with_variance`](Self::predict_with_variance), and targets that do not exist.
    pub fn covariance(&self, rows: ArrayView2<'_, f64>, target: usize) -> Result<Array2<f64>> {
        let Some(scale) = self.scales.get(target) else {
            return Err(Error::parameter("target", "below the number of targets", target));
        };
        let rows = divided(&self.description.length_scale, rows)?;
        let rows = rows.view();
        let (n, m, signal) = (self.data.rows.nrows(), rows.nrows(), self.description.signal);
        let fewer = |_| "ask for the covariances of fewer rows".to_owned();
        need("covariances", bytes::<f64>(&[m, m]).saturating_mul(3), fewer)?;
        let mut images = filled("kernel values", (n, m), 0.0, fewer)?;
        for_each_strip(&*self.description.kernel, rows, self.data.rows.view(), &mut |start, matrix| {
            images.slice_mut(s![.., start..start + matrix.nrows()]).assign(&matrix.t());
            Ok(())
        })?;
        self.factor.solve_factor_in_place(tile_mut(&mut images))?;
        let mut explained = Lower::zeros(m)?;
        explained.add_gram(Tile::new(images.as_slice().expect("standard layout"), n, m), &mut Workspace::new());
        let prior = kernel_matrix(&*self.description.kernel, rows, rows)?;
        let mut out = prior;
        out.rows_mut().into_iter().enumerate().in_parallel().for_each(|(i, mut out)| {
            for (j, entry) in out.indexed_iter_mut() {
                *entry = scale * scale * signal * (*entry - signal * explained.row(i.max(j))[i.min(j)]);
            }
        });
        Ok(out)
    }
}

impl Predict for ExactGpRegressorModel {
    type Real = f64;

    fn input_dim(&self) -> usize {
        self.data.rows.ncols()
    }

    fn output_dim(&self) -> usize {
        self.means.len()
    }

    fn predict_into(&self, rows: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<()> {
        let rows = divided(&self.description.length_scale, rows)?;
        expand(&*self.description.kernel, rows.view(), self.data.rows.view(), &self.coefficients, &self.means, out)
    }
}

/// Gaussian-process classification with the kernel itself: the reference of [`GpClassifier`](crate::model::GpClassifier),
/// with the same transform of labels.
#[derive(Debug, Clone)]
pub struct ExactGpClassifier {
    kernel: Arc<dyn Kernel>,
    length_scale: LengthScale,
    alpha: f64,
    signal: Option<f64>,
    classes: Option<usize>,
    sampling: Sampling,
}

impl ExactGpClassifier {
    /// Classification with the given `α`.
    ///
    /// # Errors
    /// An `α` that is not positive.
    pub fn new(kernel: Arc<dyn Kernel>, alpha: f64) -> Result<Self> {
        check_positive("alpha", alpha)?;
        let sampling = Sampling { samples: 512, seed: 0 };
        let length_scale = LengthScale::Same(1.0);
        Ok(ExactGpClassifier { kernel, length_scale, alpha, signal: None, classes: None, sampling })
    }

    /// With rows divided by these length scales, or multiplied by a metric, before they meet the kernel.
    ///
    /// # Errors
    /// An unresolved median; others are found when rows are there.
    pub fn with_length_scale(mut self, length_scale: LengthScale) -> Result<Self> {
        self.length_scale = decided(length_scale)?;
        Ok(self)
    }

    /// With signal variance `s²` for all classes; otherwise it is the variance of the class' targets.
    ///
    /// # Errors
    /// A variance that is not positive.
    pub fn with_signal_variance(mut self, signal_variance: impl Into<Option<f64>>) -> Result<Self> {
        self.signal = signal_variance.into();
        self.signal.map_or(Ok(()), |signal| check_positive("signal variance", signal))?;
        Ok(self)
    }

    /// For a known number of classes; otherwise it is one more than the largest label.
    ///
    /// # Errors
    /// No classes.
    pub fn with_classes(mut self, classes: impl Into<Option<usize>>) -> Result<Self> {
        self.classes = known(classes)?;
        Ok(self)
    }

    /// With probabilities from this many draws, rounded up to an even number.
    ///
    /// # Errors
    /// No samples.
    pub fn with_samples(mut self, samples: usize, seed: Seed) -> Result<Self> {
        self.sampling = Sampling::new(samples, seed)?;
        Ok(self)
    }
}

impl Fit for ExactGpClassifier {
    type Real = f64;
    type Model = ExactGpClassifierModel;

    fn fit_stream(&self, source: &mut dyn RowSource<f64>, context: &mut Context<'_>) -> Result<ExactGpClassifierModel> {
        check_dim("number of target columns", 1, source.target_dim())?;
        context.fit(source, |source, context| {
            let mut data = gather(source, context, None)?;
            data.rows = self.length_scale.divide(data.rows.view())?;
            ExactGpClassifierModel::new(self, data)
        })
    }
}

/// A fitted [`ExactGpClassifier`].
#[derive(Debug, Clone)]
pub struct ExactGpClassifierModel {
    description: ExactGpClassifier,
    data: Gathered,
    means: Vec<f64>,
    signals: Vec<f64>,
    coefficients: Array2<f64>,
    factors: Vec<Cholesky<f64>>,
}

impl ExactGpClassifierModel {
    pub(crate) fn new(description: &ExactGpClassifier, data: Gathered) -> Result<Self> {
        let labels = data.targets.iter().enumerate();
        let most = description.classes.unwrap_or(MOST_CLASSES);
        let labels = labels.map(|(i, &label)| class_of(label, most, i)).collect::<Result<Vec<_>>>()?;
        let classes = description.classes.unwrap_or_else(|| labels.iter().max().map_or(1, |label| label + 1));
        let dirichlet = Dirichlet::new(description.alpha)?;
        let total = data.weights.sum();
        let n = labels.len();
        interrupt::expect(Some(n.saturating_mul(1 + classes)));
        let kernel = kernel_triangle(&*description.kernel, data.rows.view())?;
        let mut coefficients = Array2::zeros((n, classes));
        let (mut means, mut signals, mut factors) = (Vec::new(), Vec::new(), Vec::new());
        for c in 0..classes {
            let own = labels.iter().zip(&data.weights).filter(|(label, _)| **label == c);
            let share = own.map(|(_, weight)| weight).sum::<f64>() / total;
            let mean = dirichlet.mean(share);
            let signal = description.signal.unwrap_or_else(|| dirichlet.variance(share));
            let mut matrix = kernel.clone();
            matrix.scale(signal);
            let mut solved = Array2::zeros((n, 1));
            for (i, label) in labels.iter().enumerate() {
                let (target, noise) = match *label == c {
                    true => (dirichlet.hit, dirichlet.hit_noise),
                    false => (dirichlet.miss, dirichlet.miss_noise),
                };
                matrix.row_mut(i)[i] += noise / data.weights[i];
                solved[[i, 0]] = target - mean;
            }
            let (factor, _, _) = factorise(matrix)?;
            factor.solve_in_place(tile_mut(&mut solved))?;
            coefficients.column_mut(c).assign(&(&solved.index_axis(Axis(1), 0) * signal));
            means.push(mean);
            signals.push(signal);
            factors.push(factor);
        }
        let description = ExactGpClassifier { classes: Some(classes), ..description.clone() };
        Ok(ExactGpClassifierModel { description, data, means, signals, coefficients, factors })
    }

    pub(crate) fn parts(&self) -> (&Gathered, f64, Option<f64>, Sampling) {
        let ExactGpClassifier { alpha, signal, sampling, .. } = &self.description;
        (&self.data, *alpha, *signal, *sampling)
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.description.kernel
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.factors.len()
    }

    /// Means and variances of the latent processes, one column per class.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn latents(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Array2<f64>)> {
        let rows = divided(&self.description.length_scale, rows)?;
        let rows = rows.view();
        let (kernel, own) = (&*self.description.kernel, self.data.rows.view());
        let mut means = Array2::zeros((rows.nrows(), self.classes()));
        expand(kernel, rows, own, &self.coefficients, &self.means, means.view_mut())?;
        let factors: Vec<_> = self.signals.iter().copied().zip(&self.factors).collect();
        Ok((means, posterior_variances(kernel, own, &factors, rows)?))
    }

    /// Probabilities of the classes, one column each; rows add up to 1.
    ///
    /// # Errors
    /// As [`latents`](Self::latents).
    pub fn probabilities(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (means, spread) = self.latents(rows)?;
        Ok(self.description.sampling.probabilities(means.view(), spread.view()))
    }
}

impl Predict for ExactGpClassifierModel {
    predicts_classes!(self: f64, inputs self.data.rows.ncols(), rows => Ok(largest(&self.probabilities(rows)?)));
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
        /// What divides rows before they meet the kernel, one number for all columns or one for each. Rows of numbers are a matrix by
        /// which rows are multiplied.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel;
        /// Whether to choose length scale, signal and noise by maximum marginal likelihood, with exact gradients.
        optimizer: Option<String> = None, Domain::Optional(&Domain::Only("lbfgs")), Fit;
        /// Whether the search scales all length scales by one factor, finds one for each column or a full linear metric, or keeps
        /// them.
        length_scales: LengthScaleSearch = LengthScaleSearch::Common, Domain::Word(LengthScaleSearch::CHOICES), Fit;
        /// Rows used in the search, drawn at random.
        max_rows: usize = 2000, Domain::COUNT, Size;
        /// Evaluations of the likelihood in the search.
        max_iter: usize = 120, Domain::COUNT, Size;
        /// Whether the search takes the likeliest of the smoothnesses 0.5, 1.5 and 2.5 of a Matern kernel.
        search_nu: bool = false, Domain::Flag, Fit;
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
        n_draws: usize = 512, Sampling::DRAWS, Size;
        /// What divides rows before they meet the kernel, one number for all columns or one for each. Rows of numbers are a matrix by
        /// which rows are multiplied.
        length_scale: LengthScale = LengthScale::Same(1.0), Domain::LENGTH_SCALE, Kernel;
        /// Whether to choose length scale and signal by maximum marginal likelihood, with exact gradients.
        optimizer: Option<String> = None, Domain::Optional(&Domain::Only("lbfgs")), Fit;
        /// Whether the search scales all length scales by one factor, finds one for each column or a full linear metric, or keeps
        /// them.
        length_scales: LengthScaleSearch = LengthScaleSearch::Common, Domain::Word(LengthScaleSearch::CHOICES), Fit;
        /// Rows used in the search, drawn at random.
        max_rows: usize = 2000, Domain::COUNT, Size;
        /// Evaluations of the likelihood in the search.
        max_iter: usize = 120, Domain::COUNT, Size;
        /// Whether the search takes the likeliest of the smoothnesses 0.5, 1.5 and 2.5 of a Matern kernel.
        search_nu: bool = false, Domain::Flag, Fit;
    }
    besides {}
}

impl ExactGpRegressorSpec {
    /// A process with this kernel.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on(&self, kernel: Arc<dyn Kernel>) -> Result<ExactGpRegressor> {
        self.check_parameters()?;
        let process = ExactGpRegressor::new(kernel, self.noise)?
            .with_signal_variance(self.signal)?
            .with_length_scale(self.length_scale.clone())?;
        Ok(process.with_normalized_targets(self.normalize_y))
    }
}

const GP_REGRESSOR: &str = "exact_gp_regressor";
const GP_CLASSIFIER: &str = "exact_gp_classifier";

pub(in crate::model) const REGRESSION: ModelEntry = ModelEntry::new(
    GP_REGRESSOR,
    "exact Gaussian process regression",
    "What Gaussian process regression on features approximates, for some thousands of rows.",
    "exact-gp",
    ExactGpRegressorSpec::PARAMETERS,
    load::<ExactGpRegressorModel, ExactGpRegressorModel>,
    Describing::InDouble(describe_regressor),
)
.answering(Answers::DEVIATIONS)
.on(Needs::Kernel);

fn describe_regressor(asked: &Asked<'_, f64>) -> Result<Box<dyn FitAny<f64>>> {
    Ok(Box::new(asked.spec::<ExactGpRegressorSpec>()?.on(Arc::new(asked.kernel()?))?))
}

pub(in crate::model) const CLASSIFICATION: ModelEntry = ModelEntry::new(
    GP_CLASSIFIER,
    "exact Gaussian process classification",
    "What Gaussian process classification on features approximates, for some thousands of rows.",
    "exact-gp",
    ExactGpClassifierSpec::PARAMETERS,
    load::<ExactGpClassifierModel, ExactGpClassifierModel>,
    Describing::InDouble(describe_classifier),
)
.classification()
.answering(Answers::PROBABILITIES)
.on(Needs::Kernel);

fn describe_classifier(asked: &Asked<'_, f64>) -> Result<Box<dyn FitAny<f64>>> {
    let spec: ExactGpClassifierSpec = asked.spec()?;
    let process = ExactGpClassifier::new(Arc::new(asked.kernel()?), spec.alpha)?
        .with_classes(asked.classes())?
        .with_samples(spec.n_draws, asked.seed())?
        .with_length_scale(spec.length_scale)?
        .with_signal_variance(spec.signal)?;
    Ok(Box::new(process))
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
        header.insert("length_scale", &self.description.length_scale)?;
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
        let mut model = process.fit_stream(
            &mut InMemory::new(rows.view(), targets.view())?.with_weights(weights.view())?,
            &mut Context::default(),
        )?;
        // Rows of a file are divided already; files of earlier versions say nothing.
        model.description.length_scale = written_scale(stored, rows.ncols())?;
        Ok(model)
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
        header.insert("length_scale", &self.description.length_scale)?;
        Ok(Stored::new(header)
            .with("rows", matrix(data.rows.view())?)
            .with("labels", matrix(data.targets.view())?)
            .with("weights", Tensor::of(vec![data.weights.len()], data.weights.iter().copied())?))
    }
}

impl Load for ExactGpClassifierModel {
    /// Classes are believed as far as there are rows: each takes memory.
    fn load(stored: &Stored) -> Result<Self> {
        let header = &stored.header;
        let (rows, labels, weights) = data(stored, "labels")?;
        let (classes, most): (usize, usize) = (header.part("classes")?, rows.nrows().max(2));
        if classes > most {
            return Err(malformed(format!("`classes` is {classes}, expected at most {most}")));
        }
        let process = ExactGpClassifier::new(kernel(stored)?, header.part("alpha")?)?
            .with_classes(classes)?
            .with_samples(header.part("samples")?, Seed::new(header.part("seed")?))?
            .with_signal_variance(header.part::<Option<f64>>("signal")?)?;
        let mut model = process.fit_stream(
            &mut InMemory::new(rows.view(), labels.view())?.with_weights(weights.view())?,
            &mut Context::default(),
        )?;
        model.description.length_scale = written_scale(stored, rows.ncols())?;
        Ok(model)
    }
}

fn written_scale(stored: &Stored, inputs: usize) -> Result<LengthScale> {
    let scale = stored.header.part::<Option<LengthScale>>("length_scale")?.unwrap_or(LengthScale::Same(1.0));
    scale.check(inputs)?;
    Ok(scale)
}
