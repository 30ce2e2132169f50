use super::evidence::{
    Evidence, Standard, Wide, coefficients, coefficients_tensor, column_lengths, factor_of, factor_tensor,
    for_each_image,
};
use super::kinds::{Answers, Load, ModelEntry, Penalty, answers, load_complex, on_map, process_in_words, regresses};
use super::linear::Linear;
use super::request::{Asked, Describing, Drawn, FitAny, Sums};
use super::{Fit, Fitted, Predict, SampledFunction};
use crate::accumulate::{Gram, Moments};
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{DynComplexMap, DynMap, FeatureMap};
use crate::interrupt;
use crate::linalg::{Cholesky, Lower, TileMut, Workspace};
use crate::memory::{bytes, filled, need};
use crate::parallel::Parallel;
use crate::parameter::{Domain, description, words};
use crate::persist::{Drawable, Header, Stored};
use crate::random::{Role, Seed, Stream};
use crate::rows::{RowSource, check_finite};
use crate::scalar::{Real, Scalar};
use crate::solve::SolveReport;
use ndarray::{Array2, Array3, ArrayView2, ArrayViewMut2, s};

/// Gaussian-process regression on features: the process `f(x) = s φ(x)ᵀw` with `w` standard normal, seen through noise.
///
/// Its covariance `s²⟨φ(x), φ(x')⟩` estimates `s²k(x, x')`. With `B = ρ FᴴWF + I`, `ρ = s²/τ²`, and noise variance
/// `τ²/wᵢ` in row `i`, the posterior has mean `ρ φ(x)ᵀB⁻¹FᴴWz` and covariance `s² φ(x)ᵀB⁻¹conj(φ(x'))`.
///
/// Targets enter as `z = (y - ȳ)/σ`: their mean is subtracted and added back, and unless
/// [`with_normalized_targets`](Self::with_normalized_targets) says otherwise both variances are in units of the variance
/// of the targets. Several targets share the map and both variances, and one factorisation.
///
/// Features may be real (complex ones as CtR included) or complex. A complex map makes a complex process, of which
/// predictions are real parts; its variances are those of the complex value. The process of CtR features has the real part
/// of the covariance: another process, with another posterior.
///
/// # Cost
/// One pass, `O(nD²)` for the Gram matrix and `O(D³/3)` for its factorisation; `D²/2` doubles in memory and in the model.
/// A variance costs `D²` multiplications per row.
///
/// # References
/// Rasmussen and Williams 2006, §2.1; thesis, appendix B.3 (with the transposes of equation B.18).
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::model::{Fit, GpRegressor};
/// use ndarray::{Array2, array};
/// let rows = Array2::from_shape_fn((60, 1), |(i, _)| i as f64 / 10.0);
/// let targets = rows.mapv(f64::sin);
/// let map = FourierSpec { n_components: 200, seed: 7, ..FourierSpec::default() }.build::<f64>(1)?;
/// let model = GpRegressor::new(map, 1e-4)?.fit(rows.view(), targets.view())?;
/// let (mean, variance) = model.predict_with_variance(array![[1.55], [9.0]].view())?;
/// assert!((mean[[0, 0]] - 1.55f64.sin()).abs() < 0.01 && variance[[0, 0]] < 0.01);
/// assert!(variance[[1, 0]] > 100.0 * variance[[0, 0]]); // far from the data
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GpRegressor<M> {
    map: M,
    signal: f64,
    noise: f64,
    normalised: bool,
    levelled: bool,
    likeliest: bool,
}

impl<M: FeatureMap> GpRegressor<M> {
    /// Noise variance `τ²` and signal variance 1, in units of the variance of the targets.
    ///
    /// # Errors
    /// A noise variance that is not positive.
    pub fn new(map: M, noise_variance: f64) -> Result<Self> {
        check_positive("noise variance", noise_variance)?;
        Ok(GpRegressor { map, signal: 1.0, noise: noise_variance, normalised: true, levelled: false, likeliest: false })
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

    /// With both variances of every target multiplied by the factor at which its likelihood is largest, or as they are.
    ///
    /// Means do not change: they depend on the ratio of the variances. The model reports the mean of the factors in its
    /// [`signal_variance`](GpRegressorModel::signal_variance) and
    /// [`noise_variance`](GpRegressorModel::noise_variance), and predicts with the factor of each target.
    pub fn with_likeliest_level(mut self, levelled: bool) -> Self {
        self.levelled = levelled;
        self
    }

    /// With the signal and noise variance at which all rows are likeliest, near those given, or with those given.
    ///
    /// Variances of a search on some rows and features do not fit all of them: with few features the noise is too large. It
    /// takes some more factorisations and no other pass over the rows.
    pub fn with_likeliest_variances(mut self, likeliest: bool) -> Self {
        self.likeliest = likeliest;
        self
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// An accumulator for this model's features: what a stream is pushed to before [`fit_moments`](Self::fit_moments).
    ///
    /// # Errors
    /// No targets, or a Gram matrix beyond the budget.
    pub fn accumulator(&self, outputs: usize, context: &Context<'_>) -> Result<Gram<M::Output>> {
        if outputs == 0 {
            return Err(Error::parameter("targets", "at least one column", "none"));
        }
        let needed = Gram::<M::Output>::bytes(self.map.output_dim(), outputs);
        let remedy = "fewer features would do, or ridge regression by conjugate gradients";
        context.check_budget("the Gram matrix", needed, remedy)?;
        Gram::new(self.map.output_dim(), outputs)
    }

    /// Fits from sums collected elsewhere, in their memory.
    ///
    /// # Errors
    /// Sums over other features, nothing to fit, or a matrix that stays indefinite.
    pub fn fit_moments(&self, moments: Moments<Wide<M>>) -> Result<GpRegressorModel<M>>
    where
        M: Clone,
    {
        check_dim("number of features", self.map.output_dim(), moments.dim())?;
        let standard = Standard::new(moments, self.normalised)?;
        let (means, mut scales, count) = (standard.means.clone(), standard.scales.clone(), standard.count);
        let (signal, noise) = match self.likeliest {
            true => standard.likeliest(self.signal, self.noise)?,
            false => (self.signal, self.noise),
        };
        let evidence = standard.evidence(signal, noise)?;
        let units: f64 = scales.iter().map(|scale| 2.0 * Evidence::<Wide<M>>::KAPPA * count * scale.ln()).sum();
        let factors = if self.levelled { evidence.best_factors() } else { vec![1.0; scales.len()] };
        let likelihood = evidence.log_likelihood() + evidence.gain(&factors) - units;
        let report = SolveReport::gaussian_process(evidence.jitter, evidence.condition);
        let ratio = signal / evidence.noise;
        let common = factors.iter().sum::<f64>() / factors.len() as f64;
        let (signal, noise) = (common * signal, common * evidence.noise);
        let mut coefficients = evidence.solved;
        for mut row in coefficients.rows_mut() {
            row.iter_mut().zip(&scales).for_each(|(value, scale)| *value = value.scale(ratio * scale));
        }
        scales.iter_mut().zip(&factors).for_each(|(scale, factor)| *scale *= (factor / common).sqrt());
        let parts = GpParts { signal, noise, means, scales, likelihood, report };
        GpRegressorModel::from_parts(self.map.clone(), coefficients, evidence.factor, parts)
    }
}

impl<M: FeatureMap + Clone> Fit for GpRegressor<M> {
    type Real = M::Real;
    type Model = GpRegressorModel<M>;

    fn fit_stream(
        &self,
        source: &mut dyn RowSource<M::Real>,
        context: &mut Context<'_>,
    ) -> Result<GpRegressorModel<M>> {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        let mut gram = self.accumulator(source.target_dim(), context)?;
        context.fit(source, |source, _| {
            interrupt::expect(source.len_hint().map(|n| n + self.map.output_dim()));
            source.for_each_block(&mut |block| gram.push_rows(&self.map, block))?;
            self.fit_moments(gram.finish())
        })
    }
}

/// What a fitted process knows besides its map, its coefficients and its factor.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpParts {
    pub(crate) signal: f64,
    pub(crate) noise: f64,
    pub(crate) means: Vec<f64>,
    /// `σ` of each target, times the root of the part of its level that is its own.
    pub(crate) scales: Vec<f64>,
    pub(crate) likelihood: f64,
    pub(crate) report: SolveReport,
}

/// A fitted [`GpRegressor`].
#[derive(Debug, Clone)]
pub struct GpRegressorModel<M: FeatureMap> {
    map: M,
    /// Posterior mean of the weights in units of the targets.
    coefficients: Array2<Wide<M>>,
    linear: Linear<M::Output>,
    factor: Cholesky<Wide<M>>,
    parts: GpParts,
}

impl<M: FeatureMap> GpRegressorModel<M> {
    pub(crate) fn from_parts(
        map: M,
        coefficients: Array2<Wide<M>>,
        factor: Cholesky<Wide<M>>,
        parts: GpParts,
    ) -> Result<Self> {
        check_dim("number of rows of coefficients", map.output_dim(), coefficients.nrows())?;
        check_dim("order of the factor", map.output_dim(), factor.order())?;
        check_count("number of targets", coefficients.ncols())?;
        check_dim("number of scales", coefficients.ncols(), parts.scales.len())?;
        check_positive("signal variance", parts.signal)?;
        check_positive("noise variance", parts.noise)?;
        parts.scales.iter().try_for_each(|&scale| check_positive("scale", scale))?;
        let linear = Linear::narrowed(&coefficients, &parts.means)?;
        Ok(GpRegressorModel { map, coefficients, linear, factor, parts })
    }

    pub(crate) fn parts(&self) -> (&Array2<Wide<M>>, &Cholesky<Wide<M>>, &GpParts) {
        (&self.coefficients, &self.factor, &self.parts)
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// Signal variance `s²`, in units of the variance of the targets where they were normalised.
    pub fn signal_variance(&self) -> f64 {
        self.parts.signal
    }

    /// Noise variance `τ²`, in the same units.
    pub fn noise_variance(&self) -> f64 {
        self.parts.noise
    }

    /// Variances of the noise of each target, in its own units: what a prediction of an observation adds.
    pub fn observation_variances(&self) -> Vec<f64> {
        self.parts.scales.iter().map(|scale| scale * scale * self.parts.noise).collect()
    }

    /// `ln p(y)` of the training targets, summed over them; of the complex normal law for complex features.
    pub fn log_marginal_likelihood(&self) -> f64 {
        self.parts.likelihood
    }

    /// Jitter and condition of the factorisation.
    pub fn report(&self) -> &SolveReport {
        &self.parts.report
    }

    /// Means and variances of the process at `rows`, one column per target; noise is not included.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn predict_with_variance(&self, rows: ArrayView2<'_, M::Real>) -> Result<(Array2<M::Real>, Array2<M::Real>)> {
        let mean = self.predict(rows)?;
        let mut variance = Array2::from_elem(mean.dim(), M::Real::ZERO);
        for_each_image(&self.map, &[&self.factor], rows, &mut |start, _, image| {
            for (i, length) in column_lengths(&image).into_iter().enumerate() {
                for (to, scale) in variance.row_mut(start + i).iter_mut().zip(&self.parts.scales) {
                    *to = M::Real::from_f64(self.parts.signal * scale * scale * length);
                }
            }
            Ok(())
        })?;
        check_finite("variances", variance.view(), 0)?;
        Ok((mean, variance))
    }

    /// Covariances of the process between all pairs of `rows`, for one target.
    ///
    /// Takes memory for `D` numbers per row besides the result.
    ///
    /// # Errors
    /// As [`predict_with_variance`](Self::predict_with_variance), and targets that do not exist.
    pub fn covariance(&self, rows: ArrayView2<'_, M::Real>, target: usize) -> Result<Array2<f64>> {
        let Some(scale) = self.parts.scales.get(target) else {
            return Err(Error::parameter("target", "below the number of targets", target));
        };
        let (n, dim) = (rows.nrows(), self.map.output_dim());
        let fewer = |_| "ask for the covariances of fewer rows".to_owned();
        need("covariances", bytes::<f64>(&[n, n]).saturating_mul(2), fewer)?;
        let mut images = filled("features", (dim, n), Wide::<M>::ZERO, fewer)?;
        for_each_image(&self.map, &[&self.factor], rows, &mut |start, _, image| {
            images.slice_mut(s![.., start..start + image.ncols()]).assign(&image);
            Ok(())
        })?;
        // (L⁻¹conj φ)ᴴ(L⁻¹conj φ') is entry (x, x').
        let mut gram = Lower::zeros(n)?;
        let block = crate::linalg::Tile::new(images.as_slice().expect("standard layout"), dim, n);
        gram.add_gram(block, &mut Workspace::new());
        let size = self.parts.signal * scale * scale;
        let mut out = Array2::zeros((n, n));
        out.rows_mut().into_iter().enumerate().in_parallel().for_each(|(i, mut out)| {
            out.indexed_iter_mut().for_each(|(j, to)| *to = size * gram.row(i.max(j))[i.min(j)].re());
        });
        Ok(out)
    }

    /// Functions drawn from the posterior, evaluated at `rows`: axes are rows, targets, samples.
    ///
    /// Sample `k` of target `t` is one function, whatever the rows: drawn from `seed`,
    /// [`Role::Posterior`](crate::random::Role::Posterior) and `k · targets + t`.
    ///
    /// # Errors
    /// As [`predict_with_variance`](Self::predict_with_variance), and no samples.
    pub fn sample(&self, rows: ArrayView2<'_, M::Real>, samples: usize, seed: Seed) -> Result<Array3<M::Real>> {
        check_count("number of samples", samples)?;
        let outputs = self.coefficients.ncols();
        let size = bytes::<M::Real>(&[rows.nrows(), outputs, samples]);
        need("values of the samples", size, |_| "ask for fewer samples, or for those at fewer rows".into())?;
        let mut out = Array3::from_elem((rows.nrows(), outputs, samples), M::Real::ZERO);
        // Some functions at a time: their weights are a matrix of the size of the features of as many rows.
        let most = 64;
        for first in (0..samples * outputs).step_by(most) {
            let count = most.min(samples * outputs - first);
            let weights = self.posterior_weights(first, count, seed)?;
            let target = |j: usize| (first + j) % outputs;
            let means: Vec<f64> = (0..count).map(|j| self.parts.means[target(j)]).collect();
            let mut values = Array2::from_elem((rows.nrows(), count), M::Real::ZERO);
            Linear::<M::Output>::narrowed(&weights, &means)?.apply(&self.map, rows, values.view_mut())?;
            for (j, column) in values.columns().into_iter().enumerate() {
                out.slice_mut(s![.., target(j), (first + j) / outputs]).assign(&column);
            }
        }
        Ok(out)
    }
}

impl<M: FeatureMap> Predict for GpRegressorModel<M> {
    type Real = M::Real;

    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.coefficients.ncols()
    }

    /// Means of the process.
    fn predict_into(&self, rows: ArrayView2<'_, M::Real>, out: ArrayViewMut2<'_, M::Real>) -> Result<()> {
        self.linear.apply(&self.map, rows, out)
    }
}

words! {
    /// Which length scales a search for hyperparameters moves.
    pub enum LengthScaleSearch {
        /// All of them by one factor; a list keeps its proportions.
        Common = "common",
        /// One for each column.
        PerInput = "per_input",
        /// A linear metric: rows are multiplied by a full matrix.
        Metric = "metric",
        /// None.
        Fixed = "fixed",
    }
}

description! {
    /// Parameters of Gaussian-process regression on features.
    pub struct GpRegressorSpec {
        /// Variance of the noise; where the search for hyperparameters starts, if there is one.
        noise: f64 = 0.1, Domain::POSITIVE, Fit;
        /// Variance of the process; where the search for hyperparameters starts, if there is one.
        signal: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Whether targets are divided by their standard deviation, so that both variances are in units of the variance of
        /// the targets. Their mean is subtracted in any case.
        normalize_y: bool = true, Domain::Flag, Fit;
        /// Whether to choose length scale, signal and noise by maximum marginal likelihood, with exact gradients. Signal and noise
        /// are found again from all rows.
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

impl GpRegressorSpec {
    /// A process on these features; searching for hyperparameters is for [`tune`](crate::tune).
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on<M: FeatureMap>(&self, map: M) -> Result<GpRegressor<M>> {
        self.check_parameters()?;
        let process = GpRegressor::new(map, self.noise)?.with_signal_variance(self.signal)?;
        Ok(process.with_normalized_targets(self.normalize_y).with_likeliest_variances(self.optimizer.is_some()))
    }
}

const REGRESSOR: &str = "gp_regressor";

pub(super) const REGRESSION: ModelEntry = ModelEntry::new(
    REGRESSOR,
    "Gaussian process regression",
    "A Gaussian process on the features, seen through noise: predictions that know how sure they are.",
    "gp",
    GpRegressorSpec::PARAMETERS,
    load_complex::<
        GpRegressorModel<DynMap<f32>>,
        GpRegressorModel<DynMap<f64>>,
        GpRegressorModel<DynComplexMap<f32>>,
        GpRegressorModel<DynComplexMap<f64>>,
    >,
    Describing::Each(describe, describe),
)
.summed(sums, sums)
.penalized(Penalty::RIDGE)
.answering(Answers::DEVIATIONS);

impl<R: Real> Asked<'_, R> {
    /// A penalty is the ratio of noise and signal variance of the process with the mean of that ridge regression; their common
    /// factor, one for each target, is the one of the largest likelihood.
    fn process<M: FeatureMap>(&self, map: M) -> Result<GpRegressor<M>> {
        match self.penalty() {
            Some(penalty) => Ok(GpRegressor::new(map, penalty)?.with_likeliest_level(true)),
            None => self.spec::<GpRegressorSpec>()?.on(map),
        }
    }
}

fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    Ok(match asked.drawn()? {
        Drawn::Real(map) => Box::new(asked.process(map)?),
        Drawn::Complex(map) => Box::new(asked.process(map)?),
    })
}

fn sums<R: Real>(asked: &Asked<'_, R>, stored: Option<&Stored>, context: &Context<'_>) -> Result<Sums<R>> {
    fn over<M: FeatureMap + Clone + 'static>(
        asked: &Asked<'_, M::Real>,
        map: M,
        stored: Option<&Stored>,
        context: &Context<'_>,
    ) -> Result<Sums<M::Real>> {
        let process = asked.process(map)?;
        let gram = stored.map_or_else(|| process.accumulator(asked.targets, context), Gram::from_stored)?;
        Ok(Sums::all(process.map, gram, |asked, map, moments, _| {
            Ok(asked.process(map.clone())?.fit_moments(moments)?.into())
        }))
    }
    match asked.drawn()? {
        Drawn::Real(map) => over(asked, map, stored, context),
        Drawn::Complex(map) => over(asked, map, stored, context),
    }
}

impl<M: FeatureMap + 'static> Fitted for GpRegressorModel<M> {
    on_map!(REGRESSOR);
    regresses!(answers);

    fn variances(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Vec<f64>)> {
        let (_, variance) = self.predict_with_variance(rows.mapv(M::Real::from_f64).view())?;
        Ok((variance.mapv(Real::to_f64), self.observation_variances()))
    }

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        self.linear.gradient(&self.map, rows.mapv(M::Real::from_f64).view())
    }

    fn sentences(&self) -> Vec<String> {
        process_in_words(self.report(), self.log_marginal_likelihood())
    }

    fn to_stored(&self) -> Result<Stored> {
        let (coefficients, factor, parts) = self.parts();
        let mut header = Header::of_map(REGRESSOR, self.map())?;
        header.insert("complex", &M::Output::IS_COMPLEX)?;
        header.insert("norm_one", &factor.norm_one())?;
        header.insert("process", parts)?;
        Ok(Stored::new(header)
            .with("coefficients", coefficients_tensor(coefficients)?)
            .with("factor", factor_tensor(factor)?))
    }
}

impl<M: Drawable + 'static> Load for GpRegressorModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let parts: GpParts = stored.header.part("process")?;
        let map: M = stored.draw()?;
        let (dim, outputs) = (map.output_dim(), parts.scales.len());
        let factor = factor_of(stored, "factor", dim, stored.header.part("norm_one")?)?;
        GpRegressorModel::from_parts(map, coefficients(stored, dim, outputs)?, factor, parts)
    }
}

impl<M: FeatureMap> GpRegressorModel<M> {
    /// Weights drawn from the posterior, in units of the targets: column `j` is function `first + j`, which is sample
    /// `k` of target `t` with `k · targets + t = first + j`.
    fn posterior_weights(&self, first: usize, count: usize, seed: Seed) -> Result<Array2<Wide<M>>> {
        let (dim, outputs) = self.coefficients.dim();
        let parts = if Wide::<M>::IS_COMPLEX { 2 } else { 1 };
        let mut normals = vec![0.0; parts * dim];
        let mut weights = Array2::from_elem((dim, count), Wide::<M>::ZERO);
        for (j, mut column) in weights.columns_mut().into_iter().enumerate() {
            let scale = (1.0 / parts as f64).sqrt();
            Stream::new(seed, Role::Posterior, (first + j) as u64).normals_from(0, &mut normals);
            for (to, draw) in column.iter_mut().zip(normals.chunks(parts)) {
                *to = Wide::<M>::from_parts(scale * draw[0], scale * draw[parts - 1]);
            }
        }
        let window = TileMut::new(weights.as_slice_mut().expect("standard layout"), dim, count);
        self.factor.solve_adjoint_in_place(window)?;
        for (j, mut column) in weights.columns_mut().into_iter().enumerate() {
            let target = (first + j) % outputs;
            let size = self.parts.signal.sqrt() * self.parts.scales[target];
            for (to, mean) in column.iter_mut().zip(self.coefficients.column(target)) {
                *to = *mean + to.scale(size);
            }
        }
        Ok(weights)
    }

    /// Functions drawn from the posterior, each one of all targets: those of [`sample`](Self::sample) with the same seed, to be
    /// evaluated and differentiated anywhere.
    ///
    /// # Errors
    /// No samples, or weights that do not fit in memory.
    pub fn sample_functions(&self, samples: usize, seed: Seed) -> Result<Vec<SampledFunction<M>>>
    where
        M: Clone,
    {
        check_count("number of samples", samples)?;
        let (dim, outputs) = self.coefficients.dim();
        let size = bytes::<Wide<M>>(&[dim, outputs, samples]).saturating_mul(2);
        need("weights of the samples", size, |_| "ask for fewer samples".into())?;
        let one = |k: usize| {
            let weights = self.posterior_weights(k * outputs, outputs, seed)?;
            Ok(SampledFunction::new(self.map.clone(), Linear::narrowed(&weights, &self.parts.means)?))
        };
        (0..samples).map(one).collect()
    }
}
