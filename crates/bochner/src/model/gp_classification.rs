use super::dirichlet::{Dirichlet, Sampling};
use super::evidence::{Wide, coefficients, coefficients_tensor, factor_of, factor_tensor, variances};
use super::gp_regression::LengthScaleSearch;
use super::kinds::{Answers, Load, ModelEntry, Penalty, gives_probabilities, load_complex, on_map, predicts_classes};
use super::linear::Linear;
use super::request::{Asked, Describing, Drawn, FitAny, Sums};
use super::ridge::first_largest;
use super::validation::smallest;
use super::{Fit, Fitted, Predict, Validation, known};
use crate::accumulate::{ClassGram, Moments};
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{DynComplexMap, DynMap, FeatureMap};
use crate::interrupt;
use crate::linalg::{Cholesky, Lower, TileMut};
use crate::metrics::class_negative_log_likelihood;
use crate::parameter::{Domain, Value, description, words};
use crate::persist::{Drawable, Header, Stored};
use crate::random::Seed;
use crate::rows::{Counted, RowBlock, RowSource, check_finite, class_of};
use crate::scalar::{Real, Scalar};
use crate::solve::factorise_sums;
use ndarray::{Array2, Array3, ArrayView2, s};

/// Gaussian-process classification on features by the Dirichlet transform.
///
/// Every class has a regression of its own, on the logarithm of the class' share: rows of the class have the target
/// `ln(1 + α) - σ₁²/2` and noise variance `σ₁² = ln(1/(1 + α) + 1)`, all others `ln α - σ₀²/2` and `σ₀² = ln(1/α + 1)`.
/// Probabilities are the mean softmax of draws from the posteriors.
///
/// The noise of a class takes two values only, so that with `G` the Gram matrix of all rows and `G_c` that of class `c`
/// `B_c = s²(G/σ₀² + (1/σ₁² - 1/σ₀²) G_c) + I`: a single pass, and no more multiplications than for one Gram matrix
/// ([`ClassGram`]); none of the sums depends on `α`.
///
/// Unless [`with_signal_variance`](Self::with_signal_variance) fixes it, `s²` is the variance of the class' targets; their
/// mean is subtracted and added back.
///
/// # Cost
/// `O(nD²)` and one factorisation, `O(D³/3)`, per class; `D²/2` doubles per class in memory and in the model. Probabilities
/// cost `D²` multiplications per row and class.
///
/// # References
/// Milios et al. 2018; thesis, section 4.3 and appendix B.3.4.
#[derive(Debug, Clone)]
pub struct GpClassifier<M> {
    map: M,
    alpha: f64,
    signal: Option<f64>,
    classes: Option<usize>,
    sampling: Sampling,
}

impl<M: FeatureMap> GpClassifier<M> {
    /// Classification with the given `α`: 0.01 is a common value, [`validate`](Self::validate) chooses one.
    ///
    /// # Errors
    /// An `α` that is not positive.
    pub fn new(map: M, alpha: f64) -> Result<Self> {
        check_positive("alpha", alpha)?;
        let sampling = Sampling { samples: 512, seed: 0 };
        Ok(GpClassifier { map, alpha, signal: None, classes: None, sampling })
    }

    /// With signal variance `s²` for all classes.
    ///
    /// # Errors
    /// A variance that is not positive.
    pub fn with_signal_variance(mut self, signal_variance: impl Into<Option<f64>>) -> Result<Self> {
        self.signal = signal_variance.into();
        self.signal.map_or(Ok(()), |signal| check_positive("signal variance", signal))?;
        Ok(self)
    }

    /// For a known number of classes; otherwise a pass over the labels finds the largest.
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

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// An accumulator for this model's features: what a stream is pushed to before [`fit_moments`](Self::fit_moments).
    ///
    /// # Errors
    /// Gram matrices beyond the budget.
    pub fn accumulator(&self, classes: usize, context: &Context<'_>) -> Result<ClassGram<M::Output>> {
        let (inputs, dim) = (self.map.input_dim(), self.map.output_dim());
        let needed = ClassGram::<M::Output>::bytes(inputs, dim, classes).saturating_add(Lower::<Wide<M>>::bytes(dim));
        let remedy =
            "the model keeps one factor per class: fewer features would do, or stochastic variational inference";
        context.check_budget("the Gram matrices of all classes", needed, remedy)?;
        ClassGram::new(inputs, dim, classes)
    }

    fn accumulate(
        &self,
        source: &mut dyn RowSource<M::Real>,
        classes: usize,
        context: &Context<'_>,
    ) -> Result<Vec<Moments<Wide<M>>>> {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        check_dim("number of target columns", 1, source.target_dim())?;
        let mut grams = self.accumulator(classes, context)?;
        interrupt::expect(source.len_hint().map(|n| n + classes * self.map.output_dim()));
        source.for_each_block(&mut |block| grams.push_rows(&self.map, block))?;
        grams.finish(&self.map)
    }

    /// Fits from the sums of all classes, in their memory.
    ///
    /// # Errors
    /// Sums over other features, no rows, or a matrix that stays indefinite.
    pub fn fit_moments(&self, classes: Vec<Moments<Wide<M>>>) -> Result<GpClassifierModel<M>>
    where
        M: Clone,
    {
        let dim = self.map.output_dim();
        check_count("classes", classes.len())?;
        let dirichlet = Dirichlet::new(self.alpha)?;
        let mut total = Lower::<Wide<M>>::zeros(dim)?;
        let mut sums = vec![Wide::<M>::ZERO; dim];
        for class in &classes {
            check_dim("number of features", dim, class.dim())?;
            total.add(&class.gram)?;
            sums.iter_mut().zip(&class.feature_sums).for_each(|(sum, part)| *sum += *part);
        }
        let all: f64 = classes.iter().map(|class| class.totals.weight_sum).sum();
        let rounding: f64 = classes.iter().map(Moments::rounding).sum();
        let rows: u64 = classes.iter().map(|class| class.totals.count).sum();
        let log_weights: f64 = classes.iter().map(|class| class.totals.log_weight_sum).sum();
        if rows == 0 || all <= 0.0 {
            return Err(Error::parameter("rows", "at least one row with a positive weight", "none"));
        }
        if !(all.is_finite() && total.diagonal().all(|v| v.re().is_finite())) {
            return Err(Error::overflow());
        }
        let kappa = super::evidence::Evidence::<Wide<M>>::KAPPA;
        let turn = if M::Output::IS_COMPLEX { std::f64::consts::PI } else { std::f64::consts::TAU };
        let count = classes.len();
        let mut coefficients = Array2::from_elem((dim, count), Wide::<M>::ZERO);
        let (mut factors, mut means, mut signals) = (Vec::new(), Vec::new(), Vec::new());
        let mut likelihood = 0.0;
        for (c, class) in classes.into_iter().enumerate() {
            let Moments { mut gram, feature_sums, totals, .. } = class;
            let share = totals.weight_sum / all;
            let mean = dirichlet.mean(share);
            let signal = self.signal.unwrap_or_else(|| dirichlet.variance(share));
            let (hit, miss) = (1.0 / dirichlet.hit_noise, 1.0 / dirichlet.miss_noise);
            gram.combine(signal * (hit - miss), signal * miss, &total)?;
            gram.add_to_diagonal(1.0);
            let (factor, _, _) = factorise_sums(gram, signal * hit.max(miss) * rounding)?;
            // s FᴴS⁻¹(t - mean).
            let (own, other) = ((dirichlet.hit - mean) * hit, (dirichlet.miss - mean) * miss);
            let rhs: Vec<Wide<M>> =
                feature_sums.iter().zip(&sums).map(|(f, all)| f.scale(own) + (*all - *f).scale(other)).collect();
            let mut solved: Vec<Wide<M>> = rhs.iter().map(|v| v.scale(signal)).collect();
            factor.solve_in_place(TileMut::new(&mut solved, dim, 1))?;
            let explained: f64 = rhs.iter().zip(&solved).map(|(a, b)| (a.conj() * *b).re()).sum();
            let misfit = totals.weight_sum * (dirichlet.hit - mean) * own
                + (all - totals.weight_sum) * (dirichlet.miss - mean) * other
                - explained;
            let (hits, misses) = (totals.count as f64, (rows - totals.count) as f64);
            let noise = hits * dirichlet.hit_noise.ln() + misses * dirichlet.miss_noise.ln() - log_weights;
            likelihood -= kappa * (misfit + factor.log_determinant() + noise + rows as f64 * turn.ln());
            coefficients.column_mut(c).iter_mut().zip(solved).for_each(|(to, from)| *to = from);
            factors.push(factor);
            means.push(mean);
            signals.push(signal);
        }
        let parts = ClassifierParts { alpha: self.alpha, means, signals, likelihood, sampling: self.sampling };
        GpClassifierModel::from_parts(self.map.clone(), coefficients, factors, parts)
    }

    /// Fits every `α` from one pass over `train` and takes the one with the lowest mean negative log likelihood of the
    /// labels of `held_out`, whose rows are kept in memory.
    ///
    /// # Errors
    /// Those of fitting and predicting; no values of `α`; no held-out rows.
    pub fn validate(
        &self,
        alphas: &[f64],
        train: &mut dyn RowSource<M::Real>,
        held_out: &mut dyn RowSource<M::Real>,
        context: &mut Context<'_>,
    ) -> Result<Validation<GpClassifierModel<M>>>
    where
        M: Clone,
    {
        check_dim("number of held-out target columns", 1, held_out.target_dim())?;
        check_count("number of values of alpha", alphas.len())?;
        let (train, held_out) = (&mut Counted::new(train), &mut Counted::new(held_out));
        let classes = match self.classes {
            Some(classes) => classes,
            None => context.classes(None, train)?.max(context.classes(None, held_out)?),
        };
        let inputs = self.map.input_dim();
        check_dim("number of held-out input columns", inputs, held_out.input_dim())?;
        let (mut rows, mut labels) = (Vec::new(), Vec::new());
        let mut visit = |block: RowBlock<'_, M::Real>| {
            check_finite("rows", block.rows, labels.len())?;
            for &label in &block.targets {
                labels.push(class_of(label, classes, labels.len())?);
            }
            rows.extend(block.rows.iter().copied());
            Ok(())
        };
        context.fit(held_out, |held_out, _| held_out.for_each_block(&mut visit))?;
        let rows = Array2::from_shape_vec((labels.len(), inputs), rows).expect("as many rows as labels");
        let moments = context.fit(train, |train, context| self.accumulate(train, classes, context))?;
        let mut losses = Vec::with_capacity(alphas.len());
        for &alpha in alphas {
            let description = GpClassifier { alpha, map: self.map.clone(), ..*self };
            let probabilities = description.fit_moments(moments.clone())?.probabilities(rows.view())?;
            losses.push(class_negative_log_likelihood(&labels, probabilities.view())?);
        }
        let best = smallest(&losses);
        let model = GpClassifier { alpha: alphas[best], map: self.map.clone(), ..*self }.fit_moments(moments)?;
        Ok(Validation { penalties: alphas.to_vec(), losses, best, model })
    }
}

impl<M: FeatureMap + Clone> Fit for GpClassifier<M> {
    type Real = M::Real;
    type Model = GpClassifierModel<M>;

    fn fit_stream(
        &self,
        source: &mut dyn RowSource<M::Real>,
        context: &mut Context<'_>,
    ) -> Result<GpClassifierModel<M>> {
        let source = &mut Counted::new(source);
        let classes = context.classes(self.classes, source)?;
        context.fit(source, |source, context| self.fit_moments(self.accumulate(source, classes, context)?))
    }
}

/// What a fitted classifier knows besides its map, its coefficients and its factors.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassifierParts {
    pub(crate) alpha: f64,
    pub(crate) means: Vec<f64>,
    pub(crate) signals: Vec<f64>,
    pub(crate) likelihood: f64,
    pub(crate) sampling: Sampling,
}

/// A fitted [`GpClassifier`].
#[derive(Debug, Clone)]
pub struct GpClassifierModel<M: FeatureMap> {
    map: M,
    coefficients: Array2<Wide<M>>,
    linear: Linear<M::Output>,
    factors: Vec<Cholesky<Wide<M>>>,
    parts: ClassifierParts,
}

impl<M: FeatureMap> GpClassifierModel<M> {
    pub(crate) fn from_parts(
        map: M,
        coefficients: Array2<Wide<M>>,
        factors: Vec<Cholesky<Wide<M>>>,
        parts: ClassifierParts,
    ) -> Result<Self> {
        let classes = coefficients.ncols();
        check_count("classes", classes)?;
        check_dim("number of rows of coefficients", map.output_dim(), coefficients.nrows())?;
        check_dim("number of factors", classes, factors.len())?;
        check_dim("number of signal variances", classes, parts.signals.len())?;
        parts.sampling.check()?;
        factors.iter().try_for_each(|factor| check_dim("order of a factor", map.output_dim(), factor.order()))?;
        let linear = Linear::narrowed(&coefficients, &parts.means)?;
        Ok(GpClassifierModel { map, coefficients, linear, factors, parts })
    }

    pub(crate) fn parts(&self) -> (&Array2<Wide<M>>, &[Cholesky<Wide<M>>], &ClassifierParts) {
        (&self.coefficients, &self.factors, &self.parts)
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.factors.len()
    }

    /// `α` of the transform.
    pub fn alpha(&self) -> f64 {
        self.parts.alpha
    }

    /// `ln p` of the transformed labels, summed over classes.
    pub fn log_marginal_likelihood(&self) -> f64 {
        self.parts.likelihood
    }

    /// Means and variances of the latent processes, one column per class.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn latents(&self, rows: ArrayView2<'_, M::Real>) -> Result<(Array2<f64>, Array2<f64>)> {
        let mut means = Array2::from_elem((rows.nrows(), self.classes()), M::Real::ZERO);
        self.linear.apply(&self.map, rows, means.view_mut())?;
        let factors: Vec<_> = self.factors.iter().collect();
        let mut spread = variances(&self.map, &factors, rows)?;
        for (mut column, signal) in spread.columns_mut().into_iter().zip(&self.parts.signals) {
            column.mapv_inplace(|v| v * signal);
        }
        Ok((means.mapv(Real::to_f64), spread))
    }

    /// Probabilities of the classes, one column each; rows add up to 1.
    ///
    /// # Errors
    /// As [`latents`](Self::latents).
    pub fn probabilities(&self, rows: ArrayView2<'_, M::Real>) -> Result<Array2<f64>> {
        let (means, spread) = self.latents(rows)?;
        Ok(self.parts.sampling.probabilities(means.view(), spread.view()))
    }

    /// The most probable class of every row, the first one of equals.
    ///
    /// # Errors
    /// As [`latents`](Self::latents).
    pub fn predict_classes(&self, rows: ArrayView2<'_, M::Real>) -> Result<Vec<usize>> {
        let mut classes = Vec::with_capacity(rows.nrows());
        for start in (0..rows.nrows()).step_by(4096) {
            let piece = rows.slice(s![start..(start + 4096).min(rows.nrows()), ..]);
            let probabilities = self.probabilities(piece).map_err(|error| error.rows_from(start))?;
            classes.extend(probabilities.rows().into_iter().map(first_largest));
        }
        Ok(classes)
    }
}

impl<M: FeatureMap> Predict for GpClassifierModel<M> {
    predicts_classes!(self: M::Real, inputs self.map.input_dim(), rows => self.predict_classes(rows));
}

words! {
    /// How posteriors of Gaussian-process classification are found.
    pub enum Inference {
        /// By the Dirichlet transform: regressions, solved in one pass over the rows.
        Dirichlet = "dirichlet",
        /// Variational inference with mini-batches: many passes, and no matrix of features by features.
        Variational = "variational",
    }
}

description! {
    /// Parameters of Gaussian-process classification on features.
    pub struct GpClassifierSpec {
        /// Concentration of the labels' Dirichlet law: small values trust labels. Of several values the one with the lowest
        /// negative log likelihood of held-out labels is taken.
        alpha: Value = Value::Real(0.01), Domain::Either(&[Domain::POSITIVE, Domain::List(&Domain::POSITIVE)]), Fit;
        /// Variance of the processes; none takes the variance of the transformed labels, and 30 for variational inference.
        signal: Option<f64> = None, Domain::Optional(&Domain::POSITIVE), Fit;
        /// How posteriors are found. Variational inference has no use for `alpha`, takes real features, and has no sums.
        inference: Inference = Inference::Dirichlet, Domain::Word(Inference::CHOICES), Fit;
        /// Draws from the posteriors for probabilities; variational inference has 512.
        n_draws: usize = 512, Sampling::DRAWS, Size;
        /// Passes of variational inference over the rows, in their order but shuffled once before the first.
        max_iter: usize = 20, Domain::COUNT, Size;
        /// Size of its steps, which shrink to nothing over the last third.
        learning_rate: f64 = 0.02, Domain::POSITIVE, Fit;
        /// Share of the rows held out to choose between several values of alpha.
        validation_fraction: f64 = 0.1, Domain::Above(0.0, 1.0), Fit;
        /// Whether to choose length scale and signal by the marginal likelihood of the transformed labels, summed over classes,
        /// with exact gradients. Variational inference starts from what it finds and keeps its own signal.
        optimizer: Option<String> = None, Domain::Optional(&Domain::Only("lbfgs")), Fit;
        /// Whether the search scales all length scales by one factor, finds one for each column or a full linear metric, or keeps
        /// them.
        length_scales: LengthScaleSearch = LengthScaleSearch::Common, Domain::Word(LengthScaleSearch::CHOICES), Fit;
        /// Rows used in the search, drawn at random.
        max_rows: usize = 2000, Domain::COUNT, Size;
        /// Evaluations of the likelihood in the search.
        max_evaluations: usize = 120, Domain::COUNT, Size;
        /// Whether the search takes the likeliest of the smoothnesses 0.5, 1.5 and 2.5 of a Matern kernel.
        search_nu: bool = false, Domain::Flag, Fit;
    }
    besides {}
}

const CLASSIFIER: &str = "gp_classifier";

pub(super) const CLASSIFICATION: ModelEntry = ModelEntry::new(
    CLASSIFIER,
    "Gaussian process classification",
    "A Gaussian process for every class, on labels transformed to numbers: probabilities in one pass.",
    "gp",
    GpClassifierSpec::PARAMETERS,
    load_complex::<
        GpClassifierModel<DynMap<f32>>,
        GpClassifierModel<DynMap<f64>>,
        GpClassifierModel<DynComplexMap<f32>>,
        GpClassifierModel<DynComplexMap<f64>>,
    >,
    Describing::Each(describe, describe),
)
.classification()
.summed(sums, sums)
.compared(losses, losses)
.penalized(Penalty { word: "alpha", tried: &[0.3, 0.1, 0.03, 0.01, 0.003, 0.001], otherwise: 0.01 })
.answering(Answers::PROBABILITIES);

impl<R: Real> Asked<'_, R> {
    /// A penalty is the `alpha` of the transform.
    fn process_of_classes<M: FeatureMap>(&self, map: M) -> Result<GpClassifier<M>> {
        let spec: GpClassifierSpec = self.spec()?;
        let alpha = match &spec.alpha {
            Value::List(values) => values.first().and_then(Value::number),
            value => value.number(),
        };
        let alpha = self.penalty().or(alpha).unwrap_or(f64::NAN);
        let process = GpClassifier::new(map, alpha)?.with_classes(self.classes())?;
        // Searches have always had the draws of seed 0.
        let seed = if self.penalty().is_some() { Seed::new(0) } else { self.seed() };
        process.with_samples(spec.n_draws, seed)?.with_signal_variance(spec.signal)
    }
}

fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    Ok(match asked.drawn()? {
        Drawn::Real(map) => Box::new(asked.process_of_classes(map)?),
        Drawn::Complex(map) => Box::new(asked.process_of_classes(map)?),
    })
}

fn sums<R: Real>(asked: &Asked<'_, R>, stored: Option<&Stored>, context: &Context<'_>) -> Result<Sums<R>> {
    fn over<M: FeatureMap + Clone + 'static>(
        asked: &Asked<'_, M::Real>,
        map: M,
        stored: Option<&Stored>,
        context: &Context<'_>,
    ) -> Result<Sums<M::Real>> {
        let process = asked.process_of_classes(map)?;
        let classes = process.classes.ok_or_else(|| asked.lacks("the number of classes"))?;
        let gram = stored.map_or_else(|| process.accumulator(classes, context), ClassGram::from_stored)?;
        Ok(Sums::classes(process.map, gram, |asked, map, moments, _| {
            Ok(asked.process_of_classes(map.clone())?.fit_moments(moments)?.into())
        }))
    }
    match asked.drawn()? {
        Drawn::Real(map) => over(asked, map, stored, context),
        Drawn::Complex(map) => over(asked, map, stored, context),
    }
}

fn losses<R: Real>(
    asked: &Asked<'_, R>,
    alphas: &[f64],
    train: &mut dyn RowSource<R>,
    held_out: &mut dyn RowSource<R>,
    context: &mut Context<'_>,
) -> Result<Vec<f64>> {
    Ok(match asked.drawn()? {
        Drawn::Real(map) => asked.process_of_classes(map)?.validate(alphas, train, held_out, context)?.losses,
        Drawn::Complex(map) => asked.process_of_classes(map)?.validate(alphas, train, held_out, context)?.losses,
    })
}

impl<M: FeatureMap + 'static> Fitted for GpClassifierModel<M> {
    on_map!(CLASSIFIER);
    gives_probabilities!(self, rows => self.probabilities(rows.mapv(M::Real::from_f64).view()));

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        self.linear.gradient(&self.map, rows.mapv(M::Real::from_f64).view())
    }

    fn sentences(&self) -> Vec<String> {
        vec![format!("one process per class on Dirichlet targets with alpha {}", self.alpha())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let (coefficients, factors, parts) = self.parts();
        let norms: Vec<f64> = factors.iter().map(Cholesky::norm_one).collect();
        let mut header = Header::of_map(CLASSIFIER, self.map())?;
        header.insert("complex", &M::Output::IS_COMPLEX)?;
        header.insert("norms_one", &norms)?;
        header.insert("process", parts)?;
        let stored = Stored::new(header).with("coefficients", coefficients_tensor(coefficients)?);
        factors
            .iter()
            .enumerate()
            .try_fold(stored, |stored, (c, factor)| Ok(stored.with(&format!("factor_{c}"), factor_tensor(factor)?)))
    }
}

impl<M: Drawable + 'static> Load for GpClassifierModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let parts: ClassifierParts = stored.header.part("process")?;
        let norms: Vec<f64> = stored.header.part("norms_one")?;
        let map: M = stored.draw()?;
        let (dim, outputs) = (map.output_dim(), parts.means.len());
        check_dim("number of norms", outputs, norms.len())?;
        let factors = norms.into_iter().enumerate();
        let factors = factors.map(|(c, norm)| factor_of::<Wide<M>>(stored, &format!("factor_{c}"), dim, norm));
        let factors = factors.collect::<Result<_>>()?;
        GpClassifierModel::from_parts(map, coefficients(stored, dim, outputs)?, factors, parts)
    }
}
