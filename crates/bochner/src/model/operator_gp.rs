use super::evidence::{factor_of, factor_tensor, likeliest_ratio, numbers, tensor};
use super::kinds::{Answers, Load, ModelEntry, answers, load, process_in_words, regresses};
use super::linear::Linear;
use super::request::{Asked, Describing, FitAny, Needs, Sums};
use super::{Fit, Fitted, FoundOutputs, Model, Predict, SampledFunction, target_covariance};
use crate::accumulate::{Gram, Moments};
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{Description, Directions, DynMap, FeatureMap, FieldQuantity, OperatorFeatures};
use crate::interrupt;
use crate::kernel::OutputMatrix;
use crate::linalg::{Cholesky, Lower, Tile, TileMut, Workspace};
use crate::memory::{bytes, need};
use crate::model::kinds::LengthScaleSearch;
use crate::parameter::{Domain, Value, description};
use crate::persist::{Header, Stored};
use crate::random::{Role, Seed, Stream};
use crate::rows::{RowSource, check_finite};
use crate::scalar::Real;
use crate::solve::{SolveReport, factorise_sums};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView2, ArrayViewMut2, s};
use std::ops::Range;

/// Gaussian-process regression of outputs that are one function: a field, or outputs related by a matrix.
///
/// The process `f(x) = s Φ(x)ᵀθ` with `θ` standard normal and features `Φ` of a matrix-valued kernel ([`OperatorFeatures`]) has
/// the covariance `s² Φ(x)ᵀΦ(z)`, which estimates `s²K(x, z)`, and is seen through noise of variance `τ²/wᵢ` in every output
/// of row `i`. The sums of the scalar features are all it needs of the rows: with `N` the normal matrix of the parameters,
/// `ρ = s²/τ²` and `B = ρN + I`, any linear functional `a(x)ᵀθ` has the posterior mean `ρ aᵀB⁻¹ΣΦ(xᵢ)wᵢyᵢ` and covariances
/// `s² aᵀB⁻¹a'`. Values are such functionals, and so are derivatives ([`FieldQuantity`]): divergence and vorticity have standard
/// deviations like everything else.
///
/// Means of the targets are subtracted and added back, and all of them are divided by one common standard deviation, so that a
/// field stays what it is; [`with_normalized_targets`](Self::with_normalized_targets) leaves them as they are. A constant field
/// has neither divergence nor vorticity.
///
/// # Cost
/// One pass of `O(nD²)` for `D` cosines and sines, whatever the kernel; then a factor of as many columns as there are
/// parameters (`D` times the number of outputs for most fields), or one of `D` columns for every different eigenvalue of the
/// matrix of a decomposable kernel. Memory does not depend on the number of rows.
///
/// # References
/// Berlinghieri et al. 2023, "Gaussian processes at the Helm(holtz)", for the process; Brault et al. 2016 for the features.
///
/// ```
/// use bochner::feature::{FieldQuantity, OperatorSpec};
/// use bochner::kernel::OperatorKernel;
/// use bochner::model::{Fit, OperatorGp, Predict};
/// use ndarray::Array2;
/// // A flow around the origin: u = -y, v = x has vorticity 2 and no divergence.
/// let rows = Array2::from_shape_fn((300, 2), |(i, j)| ((i * (37 + 11 * j)) as f64 * 0.7).sin());
/// let flow = Array2::from_shape_fn((300, 2), |(i, j)| if j == 0 { -rows[[i, 1]] } else { rows[[i, 0]] });
/// let features = OperatorSpec::new(OperatorKernel::helmholtz(1.5, 0.5)?).build::<f64>(2)?;
/// let model = OperatorGp::new(features, 1e-4)?.fit(rows.view(), flow.view())?;
/// let (vorticity, variance) = model.quantity_with_variance(ndarray::array![[0.1, 0.2]].view(), FieldQuantity::Vorticity)?;
/// assert!((vorticity[[0, 0]] - 2.0).abs() < 0.05 && variance[[0, 0]] < 0.01);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OperatorGp<R: Real> {
    features: OperatorFeatures<R>,
    signal: f64,
    noise: f64,
    normalised: bool,
    likeliest: bool,
}

/// Parameters that know nothing of those of other blocks, and share a factor with blocks like theirs.
///
/// Those of the features of a field are one block. In the basis of the eigenvectors of `A` a decomposable kernel is a scalar
/// kernel for each, times its eigenvalue.
#[derive(Debug, Clone, PartialEq)]
struct Block {
    /// Which of the `q` parameters of every scalar feature: all of them, or one, for each block with this factor.
    columns: Vec<usize>,
    /// Eigenvalue; 1 for fields.
    size: f64,
}

/// The blocks of the features, and whether they are the eigenvectors of an output matrix.
fn blocks<R: Real>(features: &OperatorFeatures<R>) -> (Vec<Block>, bool) {
    let Some((_, outputs)) = features.spec().kernel.decomposed() else {
        return (vec![Block { columns: Vec::new(), size: 1.0 }], false);
    };
    let mut found: Vec<Block> = Vec::new();
    let values = outputs.values().iter().filter(|value| **value > 0.0);
    for (column, &size) in values.enumerate() {
        match found.iter_mut().find(|block| (block.size - size).abs() <= 1e-12 * size) {
            Some(block) => block.columns.push(column),
            None => found.push(Block { columns: vec![column], size }),
        }
    }
    (found, true)
}

/// Sums about the means of the targets, in common units.
struct Units {
    moments: Moments<f64>,
    means: Vec<f64>,
    scale: f64,
    /// `Σ wᵢ|zᵢ|²`.
    square: f64,
    /// Numbers observed.
    count: f64,
    log_weights: f64,
}

impl Units {
    fn new(mut moments: Moments<f64>, normalised: bool) -> Result<Self> {
        if moments.totals.count == 0 || moments.totals.weight_sum <= 0.0 {
            return Err(Error::parameter("rows", "at least one row with a positive weight", "none"));
        }
        let outputs = moments.outputs();
        let means = if normalised { moments.totals.means() } else { vec![0.0; outputs] };
        let before: f64 = moments.totals.target_squares.iter().sum();
        moments.move_to(&vec![0.0; moments.dim()], &means)?;
        let square: f64 = moments.totals.target_squares.iter().sum();
        // Constant targets leave a spread of rounding errors at most.
        let varies = square > 1e-14 * before;
        let total = moments.totals.weight_sum * outputs as f64;
        let scale = if normalised && varies { (square / total).sqrt() } else { 1.0 };
        moments.cross.mapv_inplace(|v| v / scale);
        let finite = square.is_finite() && means.iter().chain(&moments.cross).all(|v| v.is_finite());
        if !(finite && moments.gram.diagonal().all(f64::is_finite)) {
            return Err(Error::overflow());
        }
        let (count, log_weights) = (moments.totals.count as f64, moments.totals.log_weight_sum);
        let outputs = outputs as f64;
        let square = square / (scale * scale);
        Ok(Units { moments, means, scale, square, count: count * outputs, log_weights: log_weights * outputs })
    }
}

/// Factors of all blocks at one ratio of the variances.
struct Solved {
    factors: Vec<Cholesky<f64>>,
    /// `B⁻¹c`, all parameters.
    theta: Array1<f64>,
    /// `cᵀB⁻¹c`.
    quadratic: f64,
    log_determinant: f64,
    jitter: f64,
    condition: f64,
}

impl Solved {
    /// Misfit in units of the noise variance, and the log likelihood for a noise variance.
    fn log_likelihood(&self, units: &Units, ratio: f64, noise: f64) -> f64 {
        let misfit = (units.square - ratio * self.quadratic) / noise;
        let volume = self.log_determinant + units.count * (noise.ln() + std::f64::consts::TAU.ln()) - units.log_weights;
        -0.5 * (misfit + volume)
    }
}

impl<R: Real> OperatorGp<R> {
    /// Noise variance `τ²` and signal variance 1, in units of the mean variance of the targets.
    ///
    /// # Errors
    /// A noise variance that is not positive.
    pub fn new(features: OperatorFeatures<R>, noise_variance: f64) -> Result<Self> {
        check_positive("noise variance", noise_variance)?;
        Ok(OperatorGp { features, signal: 1.0, noise: noise_variance, normalised: true, likeliest: false })
    }

    /// With signal variance `s²`: the covariance is `s²K`, and `K(x, x)` is not `I` for fields.
    ///
    /// # Errors
    /// A variance that is not positive.
    pub fn with_signal_variance(mut self, signal_variance: f64) -> Result<Self> {
        check_positive("signal variance", signal_variance)?;
        self.signal = signal_variance;
        Ok(self)
    }

    /// With targets about their means and over one common standard deviation, or as they are.
    pub fn with_normalized_targets(mut self, normalised: bool) -> Self {
        self.normalised = normalised;
        self
    }

    /// With the signal and noise variance at which all rows are likeliest, near those given, or with those given. It takes some
    /// more factorisations and no other pass over the rows.
    pub fn with_likeliest_variances(mut self, likeliest: bool) -> Self {
        self.likeliest = likeliest;
        self
    }

    /// The features.
    pub fn features(&self) -> &OperatorFeatures<R> {
        &self.features
    }

    /// An accumulator for the scalar features: what a stream is pushed to before [`fit_moments`](Self::fit_moments).
    ///
    /// # Errors
    /// A Gram matrix beyond the budget, or more than memory holds.
    pub fn accumulator(&self, context: &Context<'_>) -> Result<Gram<R>> {
        let (dim, outputs) = (self.features.map().output_dim(), self.features.output_dim());
        let remedy = "fewer features would do, or ridge regression by conjugate gradients";
        let parameters = if blocks(&self.features).1 { dim } else { self.features.dim() };
        let needed = Gram::<R>::bytes(dim, outputs).saturating_add(Lower::<f64>::bytes(parameters));
        context.check_budget("the Gram matrix and that of all parameters", needed, remedy)?;
        Gram::new(dim, outputs)
    }

    fn solve(&self, units: &Units, ratio: f64) -> Result<Solved> {
        let (features, spread) = (&self.features, self.features.spread());
        let (inner, dim) = (spread.inner(), features.map().output_dim());
        let (blocks, apart) = blocks(features);
        let rhs = spread.gather(units.moments.cross.view());
        let mut solved = Solved {
            factors: Vec::new(),
            theta: Array1::zeros(features.dim()),
            quadratic: 0.0,
            log_determinant: 0.0,
            jitter: 0.0,
            condition: 1.0,
        };
        let trace = |diagonal: &[f64]| if apart { diagonal.iter().sum() } else { spread.trace(diagonal) };
        let diagonal: Vec<f64> = units.moments.gram.diagonal().collect();
        let rounding = units.moments.epsilon * trace(&diagonal);
        for block in blocks {
            let mut matrix = if apart { units.moments.gram.clone() } else { spread.normal(&units.moments.gram)? };
            matrix.scale(ratio * block.size);
            matrix.add_to_diagonal(1.0);
            let (mut factor, jitter, condition) =
                factorise_sums(matrix, ratio * block.size * rounding).map_err(|error| match error {
                    // In units of `ρN + I`; a penalty is the ratio of the variances.
                    Error::NotPositiveDefinite { pivot, suggested_penalty } => {
                        Error::not_positive_definite(pivot, (1.0 + suggested_penalty) / ratio)
                    }
                    other => other,
                })?;
            let (rows, width) = if apart { (dim, block.columns.len()) } else { (dim * inner, 1) };
            let place = |i: usize, k: usize| if apart { i * inner + block.columns[k] } else { i };
            let mut columns = Array2::from_shape_fn((rows, width), |(i, k)| rhs[[place(i, k), 0]]);
            factor.solve_in_place(TileMut::new(columns.as_slice_mut().expect("fresh"), rows, width))?;
            for ((i, k), value) in columns.indexed_iter() {
                solved.theta[place(i, k)] = *value;
                solved.quadratic += value * rhs[[place(i, k), 0]];
            }
            if jitter > 0.0 {
                // (ρN + (1 + δ)I) = (1 + δ)(ρ'N + I) with the noise variance times 1 + δ.
                let norm_one = factor.norm_one() / (1.0 + jitter);
                let mut lower = factor.factor().clone();
                lower.scale((1.0 + jitter).sqrt().recip());
                factor = Cholesky::from_factor(lower, norm_one)?;
            }
            solved.log_determinant += width as f64 * factor.log_determinant();
            (solved.jitter, solved.condition) = (solved.jitter.max(jitter), solved.condition.max(condition));
            solved.factors.push(factor);
        }
        Ok(solved)
    }

    /// Fits from sums collected elsewhere.
    ///
    /// # Errors
    /// Sums over other features, nothing to fit, or a matrix that stays indefinite.
    pub fn fit_moments(&self, moments: Moments<f64>) -> Result<OperatorGpModel<R>> {
        check_dim("number of features", self.features.map().output_dim(), moments.dim())?;
        check_dim("number of target columns", self.features.output_dim(), moments.outputs())?;
        let units = Units::new(moments, self.normalised)?;
        let (signal, noise) = match self.likeliest {
            true => likeliest_ratio(self.signal, self.noise, &mut |ratio| {
                let solved = self.solve(&units, ratio)?;
                let noise = ((units.square - ratio * solved.quadratic) / units.count).max(1e-9);
                Ok((solved.log_likelihood(&units, ratio, noise), noise))
            })?,
            false => (self.signal, self.noise),
        };
        let ratio = signal / noise;
        let solved = self.solve(&units, ratio)?;
        // A shift that rounding makes necessary is noise.
        let noise = noise * (1.0 + solved.jitter);
        let likelihood = solved.log_likelihood(&units, ratio, noise) - units.count * units.scale.ln();
        let theta = solved.theta.mapv(|v| v * ratio * units.scale);
        let report = SolveReport::gaussian_process(solved.jitter, solved.condition);
        let parts = OperatorGpParts { signal, noise, means: units.means, scale: units.scale, likelihood, report };
        OperatorGpModel::from_parts(self.features.clone(), theta, solved.factors, parts)
    }
}

impl<R: Real> Fit for OperatorGp<R> {
    type Real = R;
    type Model = OperatorGpModel<R>;

    fn fit_stream(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<OperatorGpModel<R>> {
        check_dim("number of input columns", self.features.input_dim(), source.input_dim())?;
        check_dim("number of target columns", self.features.output_dim(), source.target_dim())?;
        let mut gram = self.accumulator(context)?;
        let (blocks, apart) = blocks(&self.features);
        let order = if apart { self.features.map().output_dim() } else { self.features.dim() };
        context.fit(source, |source, _| {
            interrupt::expect(source.len_hint().map(|n| n + order * blocks.len()));
            source.for_each_block(&mut |block| gram.push_rows(self.features.map(), block))?;
            self.fit_moments(gram.finish())
        })
    }
}

/// What a fitted process knows besides its features, its parameters and its factors.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OperatorGpParts {
    signal: f64,
    noise: f64,
    means: Vec<f64>,
    /// The unit of all targets.
    scale: f64,
    likelihood: f64,
    report: SolveReport,
}

/// A fitted [`OperatorGp`].
#[derive(Debug, Clone)]
pub struct OperatorGpModel<R: Real> {
    features: OperatorFeatures<R>,
    /// Posterior mean of the parameters, in units of the targets.
    theta: Array1<f64>,
    linear: Linear<R>,
    factors: Vec<Cholesky<f64>>,
    blocks: Vec<Block>,
    parts: OperatorGpParts,
}

/// Numbers of an image that is held at once: 32 MB.
const HELD: usize = 1 << 22;

impl<R: Real> OperatorGpModel<R> {
    fn from_parts(
        features: OperatorFeatures<R>,
        theta: Array1<f64>,
        factors: Vec<Cholesky<f64>>,
        parts: OperatorGpParts,
    ) -> Result<Self> {
        let (blocks, apart) = blocks(&features);
        check_dim("number of parameters", features.dim(), theta.len())?;
        check_dim("number of means", features.output_dim(), parts.means.len())?;
        check_dim("number of factors", blocks.len(), factors.len())?;
        let order = if apart { features.map().output_dim() } else { features.dim() };
        factors.iter().try_for_each(|factor| check_dim("order of a factor", order, factor.order()))?;
        check_positive("signal variance", parts.signal)?;
        check_positive("noise variance", parts.noise)?;
        check_positive("scale", parts.scale)?;
        let coefficients = features.spread().scatter(theta.view().insert_axis(ndarray::Axis(1)));
        let linear = Linear::narrowed(&coefficients, &parts.means)?;
        Ok(OperatorGpModel { features, theta, linear, factors, blocks, parts })
    }

    /// The features.
    pub fn features(&self) -> &OperatorFeatures<R> {
        &self.features
    }

    /// Signal variance `s²`, in units of the mean variance of the targets where they were normalised.
    pub fn signal_variance(&self) -> f64 {
        self.parts.signal
    }

    /// Noise variance `τ²`, in the same units.
    pub fn noise_variance(&self) -> f64 {
        self.parts.noise
    }

    /// Variance of the noise of every target, in units of the targets: what a prediction of an observation adds.
    pub fn observation_variance(&self) -> f64 {
        self.parts.scale * self.parts.scale * self.parts.noise
    }

    /// What both variances are in units of, as a factor of variances: `s²K` times it is the covariance of the targets.
    pub fn unit_variance(&self) -> f64 {
        self.parts.scale * self.parts.scale
    }

    /// `ln p(y)` of all numbers in the training targets.
    pub fn log_marginal_likelihood(&self) -> f64 {
        self.parts.likelihood
    }

    /// Jitter and condition of the factorisation.
    pub fn report(&self) -> &SolveReport {
        &self.parts.report
    }

    /// Posterior means of a quantity, one row per row and one column per component.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities in `rows`, and quantities that the kernel does not have.
    pub fn quantity(&self, rows: ArrayView2<'_, R>, quantity: FieldQuantity) -> Result<Array2<f64>> {
        let functional = self.features.functional(quantity)?;
        let coefficients = functional.coefficients(self.features.spread().inner(), &self.theta);
        let mut out = Array2::zeros((rows.nrows(), functional.width()));
        let step = (HELD / self.features.map().output_dim().max(1)).max(1);
        self.pieces(rows, step, &mut |range, scalar| {
            out.slice_mut(s![range, ..]).assign(&functional.turned(scalar).dot(&coefficients));
            Ok(())
        })?;
        if quantity == FieldQuantity::Values {
            out += &ndarray::aview1(&self.parts.means);
        }
        check_finite("predictions", out.view(), 0)?;
        Ok(out)
    }

    /// The same with variances, without noise.
    ///
    /// # Errors
    /// As [`quantity`](Self::quantity).
    pub fn quantity_with_variance(
        &self,
        rows: ArrayView2<'_, R>,
        quantity: FieldQuantity,
    ) -> Result<(Array2<f64>, Array2<f64>)> {
        let mean = self.quantity(rows, quantity)?;
        let functional = self.features.functional(quantity)?;
        let (inner, width) = (functional.inner_width(), functional.width());
        let mut variance = Array2::<f64>::zeros(mean.dim());
        let step = (HELD / (self.features.dim() * inner).max(1)).clamp(1, 512);
        self.images(rows, step, quantity, &mut |range, index, image| {
            // Inner products of the images of one row, then those of its components.
            let mut products = Array2::<f64>::zeros((inner, inner));
            for (i, row) in range.enumerate() {
                let own = image.slice(s![.., i * inner..(i + 1) * inner]);
                products.assign(&own.t().dot(&own));
                for &column in self.columns(index).iter() {
                    let mix = functional.mix(column);
                    for c in 0..width {
                        let weights = mix.row(c);
                        variance[[row, c]] += weights.dot(&products.dot(&weights));
                    }
                }
            }
            Ok(())
        })?;
        variance.mapv_inplace(|v| v * self.parts.signal * self.unit_variance());
        check_finite("variances", variance.view(), 0)?;
        Ok((mean, variance))
    }

    /// Covariances of a quantity between all pairs of rows: entry `(i, j, a, b)` is that of component `a` at row `i` and
    /// component `b` at row `j`, without noise.
    ///
    /// Takes memory for as many numbers as there are parameters for every row, besides the result.
    ///
    /// # Errors
    /// As [`quantity`](Self::quantity).
    pub fn covariance(&self, rows: ArrayView2<'_, R>, quantity: FieldQuantity) -> Result<Array4<f64>> {
        let functional = self.features.functional(quantity)?;
        let (n, inner, width) = (rows.nrows(), functional.inner_width(), functional.width());
        let order = self.factors.first().map_or(0, Cholesky::order);
        let size = bytes::<f64>(&[n, n, width, width])
            .saturating_add(bytes::<f64>(&[order, n, inner]))
            .saturating_add(bytes::<f64>(&[n, inner, n, inner]));
        need("covariances", size, |_| "ask for the covariances of fewer rows".into())?;
        let mut out = Array4::<f64>::zeros((n, n, width, width));
        self.images(rows, n.max(1), quantity, &mut |_, index, image| {
            let columns = n * inner;
            let mut gram = Lower::zeros(columns)?;
            let block = Tile::new(image.as_slice().expect("standard layout"), image.nrows(), columns);
            gram.add_gram(block, &mut Workspace::new());
            let entry = |a: usize, b: usize| gram.row(a.max(b))[a.min(b)];
            for &column in self.columns(index).iter() {
                let mix = functional.mix(column);
                for ((i, j, a, b), to) in out.indexed_iter_mut() {
                    for s in (0..inner).filter(|s| mix[[a, *s]] != 0.0) {
                        for t in (0..inner).filter(|t| mix[[b, *t]] != 0.0) {
                            *to += mix[[a, s]] * mix[[b, t]] * entry(i * inner + s, j * inner + t);
                        }
                    }
                }
            }
            Ok(())
        })?;
        let size = self.parts.signal * self.unit_variance();
        out.mapv_inplace(|v| v * size);
        Ok(out)
    }

    /// Derivatives of the posterior mean: entry `(i, a, b)` is that of output `a` by input `b` at row `i`.
    ///
    /// # Errors
    /// As [`quantity`](Self::quantity).
    pub fn jacobian(&self, rows: ArrayView2<'_, R>) -> Result<Array3<f64>> {
        let flat = self.quantity(rows, FieldQuantity::Jacobian)?;
        let shape = (rows.nrows(), self.features.output_dim(), self.features.input_dim());
        Ok(flat.into_shape_with_order(shape).expect("a derivative for every output and input"))
    }

    /// Functions drawn from the posterior: fields, to be evaluated and differentiated anywhere. Sample `k` is drawn from `seed`,
    /// [`Role::Posterior`] and `k`.
    ///
    /// # Errors
    /// No samples, or weights that do not fit in memory.
    pub fn sample_functions(&self, samples: usize, seed: Seed) -> Result<Vec<SampledFunction<DynMap<R>>>> {
        check_count("number of samples", samples)?;
        let outputs = self.features.output_dim();
        let size = bytes::<f64>(&[self.features.map().output_dim(), outputs, samples]).saturating_mul(2);
        need("weights of the samples", size, |_| "ask for fewer samples".into())?;
        let one = |k: usize| {
            let theta = self.drawn(k as u64, seed)?;
            let coefficients = self.features.spread().scatter(theta.view().insert_axis(ndarray::Axis(1)));
            let linear = Linear::narrowed(&coefficients, &self.parts.means)?;
            Ok(SampledFunction::new(self.features.map().clone(), linear))
        };
        (0..samples).map(one).collect()
    }

    /// The same functions, evaluated at `rows`: axes are rows, outputs, samples.
    ///
    /// # Errors
    /// As [`sample_functions`](Self::sample_functions), and rows that do not fit.
    pub fn sample(&self, rows: ArrayView2<'_, R>, samples: usize, seed: Seed) -> Result<Array3<R>> {
        let outputs = self.features.output_dim();
        let size = bytes::<R>(&[rows.nrows(), outputs, samples]);
        need("values of the samples", size, |_| "ask for fewer samples, or for those at fewer rows".into())?;
        let mut out = Array3::from_elem((rows.nrows(), outputs, samples), R::ZERO);
        for (k, function) in self.sample_functions(samples, seed)?.into_iter().enumerate() {
            out.slice_mut(s![.., .., k]).assign(&function.predict(rows)?);
        }
        Ok(out)
    }

    /// Parameters drawn from the posterior.
    fn drawn(&self, index: u64, seed: Seed) -> Result<Array1<f64>> {
        let inner = self.features.spread().inner();
        let mut normals = vec![0.0; self.theta.len()];
        Stream::new(seed, Role::Posterior, index).normals_from(0, &mut normals);
        let size = self.parts.signal.sqrt() * self.parts.scale;
        let mut theta = self.theta.clone();
        for (block, factor) in self.blocks.iter().zip(&self.factors) {
            let (rows, width) = (factor.order(), block.columns.len().max(1));
            let place = |i: usize, k: usize| block.columns.get(k).map_or(i, |column| i * inner + column);
            let mut columns = Array2::from_shape_fn((rows, width), |(i, k)| normals[place(i, k)]);
            factor.solve_adjoint_in_place(TileMut::new(columns.as_slice_mut().expect("fresh"), rows, width))?;
            columns.indexed_iter().for_each(|((i, k), value)| theta[place(i, k)] += size * value);
        }
        Ok(theta)
    }

    /// The columns of a block, of which the parameters of a field are a single one.
    fn columns(&self, block: usize) -> Vec<usize> {
        let columns = &self.blocks[block].columns;
        if columns.is_empty() { vec![0] } else { columns.clone() }
    }

    /// Scalar features of some rows at a time, in double precision.
    fn pieces(
        &self,
        rows: ArrayView2<'_, R>,
        step: usize,
        visit: &mut dyn FnMut(Range<usize>, &Array2<f64>) -> Result<()>,
    ) -> Result<()> {
        check_dim("number of columns of rows", self.features.input_dim(), rows.ncols())?;
        for start in (0..rows.nrows()).step_by(step) {
            let range = start..(start + step).min(rows.nrows());
            let piece = rows.slice(s![range.clone(), ..]);
            let features = self.features.map().transform(piece).map_err(|error| error.rows_from(start))?;
            visit(range, &features.mapv(Real::to_f64))?;
            interrupt::check()?;
        }
        Ok(())
    }

    /// Hands `L⁻¹a` to `visit` for the functionals of some rows at a time, one column each, for every factor.
    fn images(
        &self,
        rows: ArrayView2<'_, R>,
        step: usize,
        quantity: FieldQuantity,
        visit: &mut dyn FnMut(Range<usize>, usize, Array2<f64>) -> Result<()>,
    ) -> Result<()> {
        let functional = self.features.functional(quantity)?;
        self.pieces(rows, step, &mut |range, scalar| {
            let columns = functional.columns(&functional.turned(scalar));
            for (index, factor) in self.factors.iter().enumerate() {
                let mut image = columns.clone();
                let (order, width) = image.dim();
                factor.solve_factor_in_place(TileMut::new(
                    image.as_slice_mut().expect("standard layout"),
                    order,
                    width,
                ))?;
                visit(range.clone(), index, image)?;
            }
            Ok(())
        })
    }
}

impl<R: Real> Predict for OperatorGpModel<R> {
    type Real = R;

    fn input_dim(&self) -> usize {
        self.features.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.features.output_dim()
    }

    /// Means of the process.
    fn predict_into(&self, rows: ArrayView2<'_, R>, out: ArrayViewMut2<'_, R>) -> Result<()> {
        self.linear.apply(self.features.map(), rows, out)
    }
}

/// A number, one for each input, or the median distance of two rows.
const LENGTH_SCALES: Domain =
    Domain::Either(&[Domain::POSITIVE, Domain::List(&Domain::POSITIVE), Domain::Only("median")]);

/// What is known of a matrix of outputs.
const OUTPUTS: Domain = Domain::Optional(&Domain::Either(&[Domain::Matrix, Domain::Only("covariance")]));

description! {
    /// Parameters of Gaussian-process regression of outputs that are one function.
    #[allow(non_snake_case)] // as the Python package writes it
    pub struct OperatorGpSpec {
        /// Kernel of the functions.
        kernel: String = "decomposable".into(), Domain::Word(super::operator_ridge::KERNELS), Kernel;
        /// Cosines and sines in all.
        n_components: usize = 1024, Domain::FEATURES, Size;
        /// Distance over which the scalar kernel underneath falls off, one for each input of a field, or the median distance
        /// between rows; where the search for hyperparameters starts, if there is one.
        length_scale: Value = Value::Real(1.0), LENGTH_SCALES, Kernel;
        /// How the outputs of a decomposable kernel are related: a positive semi-definite matrix, the covariance of the
        /// targets, or not at all.
        A: Value = Value::None, OUTPUTS, Kernel;
        /// Variance of the noise; where the search for hyperparameters starts, if there is one.
        noise: f64 = 0.1, Domain::POSITIVE, Fit;
        /// What the kernel is multiplied by: the covariance of the process is `signal` times it; where the search for
        /// hyperparameters starts, if there is one.
        signal: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Whether means of the targets are subtracted, and all targets are divided by one common standard deviation, so that
        /// both variances are in units of the mean variance of the targets. Otherwise the process has mean 0.
        normalize_y: bool = true, Domain::Flag, Fit;
        /// Whether to choose length scale, share of the curl-free part, signal and noise by maximum marginal likelihood, with
        /// exact gradients. Signal and noise are found again from all rows.
        optimizer: Option<String> = None, Domain::Optional(&Domain::Only("lbfgs")), Fit;
        /// Whether the search scales all length scales by one factor, finds one for each input of a field, or keeps them.
        length_scales: LengthScaleSearch = LengthScaleSearch::Common, Domain::Word(SEARCHED), Fit;
        /// Rows used in the search, drawn at random.
        max_rows: usize = 2000, Domain::COUNT, Size;
        /// Evaluations of the likelihood in the search.
        max_iter: usize = 120, Domain::COUNT, Size;
        /// How frequencies are drawn.
        projection: Directions = Directions::Auto, Domain::Word(Directions::CHOICES), Draw;
    }
    besides {}
}

/// Length scales that a search can move: a field has no metric.
const SEARCHED: &[crate::parameter::Word] = &{
    let all = LengthScaleSearch::CHOICES;
    [all[0], all[1], all[3]]
};

const PROCESS: &str = "operator_gp";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    PROCESS,
    "Gaussian process regression with an operator-valued kernel",
    "A Gaussian process of several targets that are one function, such as a field with its divergence and vorticity.",
    "operator-gp",
    OperatorGpSpec::PARAMETERS,
    load::<OperatorGpModel<f32>, OperatorGpModel<f64>>,
    Describing::Each(describe, describe),
)
.on(Needs::Operator)
.summed(sums, sums)
.answering(Answers::DEVIATIONS);

impl<R: Real> Asked<'_, R> {
    /// The process; `find` finds the matrix of outputs where that is to be found.
    fn operator_gp(&self, find: impl FnOnce(FoundOutputs) -> Result<OutputMatrix>) -> Result<OperatorGp<R>> {
        let spec: OperatorGpSpec = self.spec()?;
        let features = self.operator_features(spec.n_components, spec.projection, find)?;
        let process = OperatorGp::new(features, spec.noise)?.with_signal_variance(spec.signal)?;
        Ok(process.with_normalized_targets(spec.normalize_y).with_likeliest_variances(spec.optimizer.is_some()))
    }
}

/// A process whose matrix of outputs may have to be found in the rows.
struct ToFind<R: Real> {
    request: super::FitRequest,
    on: super::Basis<R>,
}

fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    Ok(Box::new(ToFind { request: asked.request.clone(), on: asked.on.clone() }))
}

fn learned_is_for_ridge() -> Error {
    let reason = "a matrix of outputs is learned by ridge regression; give it as a matrix".into();
    Error::Unsupported { what: "A=\"learned\"", reason }
}

impl<R: Real> FitAny<R> for ToFind<R> {
    fn fit_any(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<Model> {
        let ToFind { request, on } = self;
        let outputs = source.target_dim();
        let asked = Asked { request, on, inputs: source.input_dim(), targets: outputs };
        let process = asked.operator_gp(|found| match found {
            FoundOutputs::Identity => OutputMatrix::identity(outputs),
            FoundOutputs::Covariance => OutputMatrix::new(target_covariance(source)?.view()),
            FoundOutputs::Learned => Err(learned_is_for_ridge()),
        })?;
        Ok(process.fit_stream(source, context)?.into())
    }
}

fn sums<R: Real>(asked: &Asked<'_, R>, stored: Option<&Stored>, context: &Context<'_>) -> Result<Sums<R>> {
    // Scalar features are those of all matrices of outputs.
    let process = asked.operator_gp(|_| OutputMatrix::identity(asked.targets))?;
    let map = process.features.map().clone();
    let gram = stored.map_or_else(|| process.accumulator(context), Gram::from_stored)?;
    Ok(Sums::all(map, gram, |asked, _, moments, _| {
        let process = asked.operator_gp(|found| match found {
            FoundOutputs::Identity => OutputMatrix::identity(moments.outputs()),
            FoundOutputs::Learned => Err(learned_is_for_ridge()),
            FoundOutputs::Covariance => Err(Error::Unsupported {
                what: "A=\"covariance\"",
                reason: "the sums do not hold it; give it as a matrix".into(),
            }),
        })?;
        Ok(process.fit_moments(moments)?.into())
    }))
}

impl<R: Real> Fitted for OperatorGpModel<R> {
    fn kind(&self) -> &'static str {
        PROCESS
    }

    fn description(&self) -> Option<Description> {
        Some(self.features().spec().clone().into())
    }

    fn precision(&self) -> &'static str {
        R::NAME
    }

    regresses!(answers);

    fn variances(&self, rows: ArrayView2<'_, f64>) -> Result<(Array2<f64>, Vec<f64>)> {
        let rows = rows.mapv(R::from_f64);
        let (_, variance) = self.quantity_with_variance(rows.view(), FieldQuantity::Values)?;
        Ok((variance, vec![self.observation_variance(); self.output_dim()]))
    }

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        self.jacobian(rows.mapv(R::from_f64).view())
    }

    fn sentences(&self) -> Vec<String> {
        process_in_words(self.report(), self.log_marginal_likelihood())
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut header = Header::described(PROCESS, self.features.map(), self.features.spec().clone().into())?;
        header.insert("process", &self.parts)?;
        header.insert("norms_one", &self.factors.iter().map(Cholesky::norm_one).collect::<Vec<_>>())?;
        let theta = self.theta.as_slice().expect("standard layout");
        let mut stored = Stored::new(header).with("coefficients", tensor(&[theta.len()], theta)?);
        for (index, factor) in self.factors.iter().enumerate() {
            stored = stored.with(&format!("factor_{index}"), factor_tensor(factor)?);
        }
        Ok(stored)
    }
}

impl<R: Real> Load for OperatorGpModel<R> {
    fn load(stored: &Stored) -> Result<Self> {
        let parts: OperatorGpParts = stored.header.part("process")?;
        let norms: Vec<f64> = stored.header.part("norms_one")?;
        let features = stored.draw_operator::<R>()?;
        let (blocks, apart) = blocks(&features);
        check_dim("number of factors", blocks.len(), norms.len())?;
        let order = if apart { features.map().output_dim() } else { features.dim() };
        let theta = numbers::<f64>(stored, "coefficients", features.dim())?;
        let factor = |(index, norm): (usize, &f64)| factor_of(stored, &format!("factor_{index}"), order, *norm);
        let factors = norms.iter().enumerate().map(factor).collect::<Result<Vec<_>>>()?;
        OperatorGpModel::from_parts(features, theta.into(), factors, parts)
    }
}
