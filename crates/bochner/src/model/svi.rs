use super::dirichlet::Sampling;
use super::evidence::coefficients_tensor;
use super::gp_classification::{CLASSIFICATION, GpClassifierSpec};
use super::kinds::{Load, ModelEntry, Penalty, gives_probabilities, load, on_map, predicts_classes};
use super::linear::Linear;
use super::request::{Asked, Describing, FitAny};
use super::ridge::largest;
use super::{Fit, Fitted, Predict, known};
use crate::accumulate::{Collector, Gathered, adjoint_times};
use crate::context::{Context, Journal};
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{DynMap, FeatureMap};
use crate::interrupt;
use crate::linalg::gemm::matmul_nn;
use crate::linalg::{Tile, TileMut};
use crate::parameter::Entry;
use crate::persist::{Drawable, Header, Stored};
use crate::random::{Role, Seed, Stream};
use crate::rows::{Counted, RowBlock, RowSource, check_finite, class_of};
use crate::scalar::Real;
use crate::solve::{last_state, packed, unpack};
use ndarray::{Array1, Array2, Array3, ArrayView2, s};

/// Stochastic variational Gaussian-process classification: for more features than a `D × D` matrix could be made of.
///
/// The process of class `c` is `f_c(x) = s φ(x)ᵀw_c` with standard normal weights, labels have softmax probabilities, and
/// the posterior of every weight is taken as an independent normal law. Its means and variances climb the evidence lower
/// bound `Σᵢ E ln softmax(f(xᵢ))[yᵢ] - KL(q(w) ‖ N(0, I))` by Adam on batches of rows. Expectations are averages over draws of
/// the latents `f_c(xᵢ)`, which are normal with mean `s φᵀm` and variance `s² Σ φⱼ²vⱼ`: sampled there and not at the
/// weights, gradients vary less.
///
/// Rows are taken in the order of the source, in batches of 256: data sorted by label should be shuffled first.
///
/// # Cost
/// `O(nDC)` per pass and some matrices of `D × C` doubles, for `C` classes.
///
/// # References
/// Hoffman et al. 2013 (stochastic variational inference); Kingma, Salimans and Welling 2015 (local sampling); Kingma and Ba
/// 2015 (Adam); thesis, section 4.3.
#[derive(Debug, Clone)]
pub struct SviClassifier<M> {
    map: M,
    signal: f64,
    classes: Option<usize>,
    passes: usize,
    rate: f64,
    draws: usize,
    seed: Seed,
    sampling: Sampling,
}

/// Rows of a batch.
const BATCH: usize = 256;

/// Variances of weights at the start: small, so that the first steps learn means.
const FIRST_VARIANCE: f64 = 0.01;

impl<R: Real, M: FeatureMap<Real = R, Output = R>> SviClassifier<M> {
    /// Signal variance `s²`; twenty passes with steps of 0.02.
    ///
    /// # Errors
    /// A variance that is not positive.
    pub fn new(map: M, signal_variance: f64) -> Result<Self> {
        check_positive("signal variance", signal_variance)?;
        let sampling = Sampling { samples: 512, seed: 0 };
        let (passes, rate, draws, seed) = (20, 0.02, 8, Seed::new(0));
        Ok(SviClassifier { map, signal: signal_variance, classes: None, passes, rate, draws, seed, sampling })
    }

    /// For a known number of classes; otherwise a pass over the labels finds the largest.
    ///
    /// # Errors
    /// No classes.
    pub fn with_classes(mut self, classes: impl Into<Option<usize>>) -> Result<Self> {
        self.classes = known(classes)?;
        Ok(self)
    }

    /// With this many passes over the rows, the last third of them with steps that shrink to nothing.
    ///
    /// # Errors
    /// No passes.
    pub fn with_passes(mut self, passes: usize) -> Result<Self> {
        check_count("passes", passes)?;
        self.passes = passes;
        Ok(self)
    }

    /// With steps of this size.
    ///
    /// # Errors
    /// A rate that is not positive.
    pub fn with_rate(mut self, rate: f64) -> Result<Self> {
        check_positive("rate", rate)?;
        self.rate = rate;
        Ok(self)
    }

    /// With this many draws per latent in a step, and a seed for them.
    ///
    /// # Errors
    /// No draws.
    pub fn with_draws(mut self, draws: usize, seed: Seed) -> Result<Self> {
        check_count("draws", draws)?;
        (self.draws, self.seed) = (draws, seed);
        Ok(self)
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }
}

/// Adam on one matrix of parameters.
struct Adam {
    first: Array2<f64>,
    second: Array2<f64>,
}

impl Adam {
    fn new(shape: (usize, usize)) -> Self {
        Adam { first: Array2::zeros(shape), second: Array2::zeros(shape) }
    }

    /// One step uphill.
    fn climb(&mut self, parameters: &mut Array2<f64>, gradient: &Array2<f64>, rate: f64, step: i32) {
        let (b1, b2) = (0.9f64, 0.999f64);
        let size = rate * (1.0 - b2.powi(step)).sqrt() / (1.0 - b1.powi(step));
        ndarray::Zip::from(parameters).and(gradient).and(&mut self.first).and(&mut self.second).for_each(
            |parameter, gradient, first, second| {
                *first = b1 * *first + (1.0 - b1) * gradient;
                *second = b2 * *second + (1.0 - b2) * gradient * gradient;
                *parameter += size * *first / (second.sqrt() + 1e-8);
            },
        );
    }
}

/// Normal laws of all weights: means, and logarithms of variances.
#[derive(Debug, Clone)]
struct Weights {
    means: Array2<f64>,
    logs: Array2<f64>,
}

/// The numbers of a matrix in another precision, as a slice of its own.
fn narrowed<R: Real>(values: &Array2<f64>) -> Vec<R> {
    values.iter().map(|v| R::from_f64(*v)).collect()
}

impl Weights {
    /// Means and variances of `φᵀw` for a tile of features; also their squares.
    fn latents<R: Real>(&self, features: Tile<'_, R>) -> Result<(Vec<R>, Vec<R>, Vec<R>)> {
        let (n, dim, classes) = (features.rows(), features.cols(), self.means.ncols());
        let squares: Vec<R> = (0..n).flat_map(|i| features.row(i)).map(|v| *v * *v).collect();
        let means: Vec<R> = narrowed(&self.means);
        let variances: Vec<R> = narrowed(&self.logs.mapv(f64::exp));
        let (mut mean, mut variance) = (vec![R::ZERO; n * classes], vec![R::ZERO; n * classes]);
        matmul_nn(features, Tile::new(&means, dim, classes), TileMut::new(&mut mean, n, classes))?;
        let squared = Tile::new(&squares, n, dim);
        matmul_nn(squared, Tile::new(&variances, dim, classes), TileMut::new(&mut variance, n, classes))?;
        Ok((mean, variance, squares))
    }
}

/// Log likelihood of labels under latents, and its gradients in their means and variances, by draws.
struct Likelihood {
    value: f64,
    by_mean: Vec<f64>,
    by_variance: Vec<f64>,
}

fn likelihood(means: &[f64], variances: &[f64], labels: &[(usize, f64)], classes: usize, draws: &[f64]) -> Likelihood {
    let rounds = draws.len() / means.len().max(1);
    let mut found = Likelihood { value: 0.0, by_mean: vec![0.0; means.len()], by_variance: vec![0.0; variances.len()] };
    let mut latents = vec![0.0; classes];
    for round in draws.chunks(means.len().max(1)) {
        for (i, &(label, weight)) in labels.iter().enumerate() {
            let at = i * classes..(i + 1) * classes;
            let (mean, variance, draw) = (&means[at.clone()], &variances[at.clone()], &round[at]);
            let mut largest = f64::NEG_INFINITY;
            for c in 0..classes {
                latents[c] = mean[c] + variance[c].sqrt() * draw[c];
                largest = largest.max(latents[c]);
            }
            let sum: f64 = latents.iter().map(|f| (f - largest).exp()).sum();
            let share = weight / rounds as f64;
            found.value += share * (latents[label] - largest - sum.ln());
            for c in 0..classes {
                let slope = f64::from(u8::from(c == label)) - (latents[c] - largest).exp() / sum;
                found.by_mean[i * classes + c] += share * slope;
                // The latent is mean + √variance · draw.
                found.by_variance[i * classes + c] += share * 0.5 * slope * draw[c] / variance[c].sqrt();
            }
        }
    }
    found
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> SviClassifier<M> {
    /// One step on a batch: gradient of the bound and two of Adam's moves. Gives the batch's log likelihood.
    fn step(
        &self,
        weights: &mut Weights,
        adams: &mut [Adam; 2],
        features: Tile<'_, R>,
        labels: &[(usize, f64)],
        total: f64,
        (rate, step): (f64, i32),
    ) -> Result<f64> {
        interrupt::check()?;
        let (n, dim, classes) = (features.rows(), features.cols(), weights.means.ncols());
        let seen: f64 = labels.iter().map(|(_, weight)| weight).sum();
        if seen <= 0.0 {
            return Ok(0.0);
        }
        let (root, signal) = (self.signal.sqrt(), self.signal);
        let (mean, variance, squares) = weights.latents(features)?;
        let means: Vec<f64> = mean.iter().map(|v| root * Real::to_f64(*v)).collect();
        let variances: Vec<f64> = variance.iter().map(|v| (signal * Real::to_f64(*v)).max(1e-12)).collect();
        let mut draws = vec![0.0f64; self.draws * n * classes];
        Stream::new(self.seed, Role::Posterior, step as u64).normals_from(0, &mut draws);
        let found = likelihood(&means, &variances, labels, classes, &draws);
        let product = |tile: Tile<'_, R>, slopes: &[f64], size: f64| {
            let slopes: Vec<R> = slopes.iter().map(|v| R::from_f64(*v)).collect();
            let sums = adjoint_times(Gathered { features: tile, sides: Tile::new(&slopes, n, classes) });
            Array2::from_shape_vec((dim, classes), sums).expect("one row per feature").mapv(|v| size * v)
        };
        let scale = total / seen;
        // Minus the derivatives of KL = ½Σ(v + m² - 1 - ln v).
        let by_mean = product(features, &found.by_mean, scale * root) - &weights.means;
        let own = weights.logs.mapv(f64::exp);
        let by_variance = product(Tile::new(&squares, n, dim), &found.by_variance, scale * signal);
        let by_log = by_variance * &own - own.mapv(|v| 0.5 * (v - 1.0));
        adams[0].climb(&mut weights.means, &by_mean, rate, step);
        adams[1].climb(&mut weights.logs, &by_log, rate, step);
        Ok(found.value * scale)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Fit for SviClassifier<M> {
    type Real = R;
    type Model = SviClassifierModel<M>;

    fn fit_stream(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<SviClassifierModel<M>> {
        let source = &mut Counted::new(source);
        let classes = context.classes(self.classes, source)?;
        context.fit(source, |source, context| self.search(source, classes, context.journal()))
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> SviClassifier<M> {
    /// The journal keeps the state after every pass.
    fn search(
        &self,
        source: &mut dyn RowSource<R>,
        classes: usize,
        mut journal: Option<&mut dyn Journal>,
    ) -> Result<SviClassifierModel<M>> {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        check_dim("number of target columns", 1, source.target_dim())?;
        interrupt::expect(source.len_hint().map(|n| n.saturating_mul(self.passes + 1)));
        let (mut total, mut rows) = (0.0, 0usize);
        source.for_each_block(&mut |block| {
            rows += block.rows.nrows();
            total += match block.weights {
                Some(weights) => weights.iter().map(|w| Real::to_f64(*w)).sum::<f64>(),
                None => block.rows.nrows() as f64,
            };
            Ok(())
        })?;
        if rows == 0 || total.is_nan() || total <= 0.0 {
            return Err(Error::parameter("rows", "at least one row with a positive weight", "none"));
        }
        let dim = self.map.output_dim();
        let shape = (dim, classes);
        let mut weights = Weights { means: Array2::zeros(shape), logs: Array2::from_elem(shape, FIRST_VARIANCE.ln()) };
        let mut adams = [Adam::new(shape), Adam::new(shape)];
        // Label and weight travel as targets: features keep their size.
        let mut collector = Collector::<R>::new(dim, 2)?;
        let (mut step, mut bound, mut passes) = (0, 0.0, 0);
        if let Some(journal) = &mut journal
            && let Some(state) = last_state(*journal)?
        {
            let mut numbers = [0.0; 3];
            let [means, logs] = &mut adams;
            let mut matrices = [
                &mut weights.means,
                &mut weights.logs,
                &mut means.first,
                &mut means.second,
                &mut logs.first,
                &mut logs.second,
            ];
            unpack(&state, &mut matrices, &mut numbers)?;
            (step, bound, passes) = (numbers[0] as i32, numbers[1], numbers[2] as usize);
        }
        // Steps shrink to nothing over the last third.
        let steps = (self.passes * rows.div_ceil(BATCH)) as f64;
        while passes < self.passes {
            collector.restart();
            let (mut values, mut batches) = (0.0, 0.0);
            let mut full = |block: Gathered<'_, R>| {
                for start in (0..block.features.rows()).step_by(BATCH) {
                    let range = start..(start + BATCH).min(block.features.rows());
                    let label = |i: usize| {
                        let side = block.sides.row(i);
                        Ok((class_of(side[0], classes, i)?, Real::to_f64(side[1])))
                    };
                    let labels = range.clone().map(label).collect::<Result<Vec<_>>>()?;
                    step += 1;
                    let rate = self.rate * (3.0 * (1.0 - f64::from(step) / (steps + 1.0))).clamp(1e-3, 1.0);
                    let features = block.features.rows_in(range);
                    values += self.step(&mut weights, &mut adams, features, &labels, total, (rate, step))?;
                    batches += 1.0;
                }
                Ok(())
            };
            source.for_each_block(&mut |block| {
                let n = block.rows.nrows();
                let mut targets = Array2::from_elem((n, 2), R::ONE);
                targets.column_mut(0).assign(&block.targets.column(0));
                if let Some(weights) = &block.weights {
                    check_dim("number of weights", n, weights.len())?;
                    if let Some(weight) = weights.iter().find(|w| Real::to_f64(**w) < 0.0) {
                        return Err(Error::parameter("weights", "non-negative", weight));
                    }
                    targets.column_mut(1).assign(weights);
                }
                let block = RowBlock { rows: block.rows, targets: targets.view(), weights: None };
                collector.push_rows(&self.map, block, &mut |_, _| (), &mut full)
            })?;
            collector.finish(&mut full)?;
            let kl: f64 = weights.means.iter().zip(&weights.logs).map(|(m, l)| 0.5 * (l.exp() + m * m - 1.0 - l)).sum();
            bound = values / batches - kl;
            passes += 1;
            if let Some(journal) = &mut journal {
                let [means, logs] = &adams;
                let matrices = [&weights.means, &weights.logs, &means.first, &means.second, &logs.first, &logs.second];
                journal.keep(packed(&matrices, &[f64::from(step), bound, passes as f64]).view())?;
            }
        }
        let parts = SviParts { signal: self.signal, bound, sampling: self.sampling };
        SviClassifierModel::from_parts(self.map.clone(), weights.means, weights.logs, parts)
    }
}

/// What a fitted classifier knows besides its map and its weights.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SviParts {
    pub(crate) signal: f64,
    pub(crate) bound: f64,
    pub(crate) sampling: Sampling,
}

/// A fitted [`SviClassifier`].
#[derive(Debug, Clone)]
pub struct SviClassifierModel<M> {
    map: M,
    weights: Weights,
    parts: SviParts,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> SviClassifierModel<M> {
    pub(crate) fn from_parts(map: M, means: Array2<f64>, logs: Array2<f64>, parts: SviParts) -> Result<Self> {
        check_dim("number of rows of means", map.output_dim(), means.nrows())?;
        check_dim("number of variances", means.len(), logs.len())?;
        check_count("classes", means.ncols())?;
        parts.sampling.check()?;
        check_positive("signal variance", parts.signal)?;
        if !means.iter().chain(&logs).all(|v| v.is_finite()) {
            let expected = "small enough for a search to stay finite";
            return Err(Error::parameter("features and rate", expected, "an overflow to infinity"));
        }
        Ok(SviClassifierModel { map, weights: Weights { means, logs }, parts })
    }

    pub(crate) fn parts(&self) -> (&Array2<f64>, &Array2<f64>, &SviParts) {
        (&self.weights.means, &self.weights.logs, &self.parts)
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.weights.means.ncols()
    }

    /// The evidence lower bound, estimated over the last pass: less than `ln p(labels)` but for the noise of the draws.
    pub fn bound(&self) -> f64 {
        self.parts.bound
    }

    /// Means and variances of the latent processes, one column per class.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn latents(&self, rows: ArrayView2<'_, R>) -> Result<(Array2<f64>, Array2<f64>)> {
        let classes = self.classes();
        let (mut means, mut variances) =
            (Array2::zeros((rows.nrows(), classes)), Array2::zeros((rows.nrows(), classes)));
        let piece = 1024;
        for start in (0..rows.nrows()).step_by(piece) {
            let range = start..(start + piece).min(rows.nrows());
            let features = self.map.transform(rows.slice(s![range.clone(), ..])).map_err(|e| e.rows_from(start))?;
            let (n, dim) = features.dim();
            let tile = Tile::new(features.as_slice().expect("standard layout"), n, dim);
            let (mean, variance, _) = self.weights.latents(tile)?;
            let (root, signal) = (self.parts.signal.sqrt(), self.parts.signal);
            for (to, from) in means.slice_mut(s![range.clone(), ..]).iter_mut().zip(mean) {
                *to = root * Real::to_f64(from);
            }
            for (to, from) in variances.slice_mut(s![range, ..]).iter_mut().zip(variance) {
                *to = signal * Real::to_f64(from);
            }
        }
        check_finite("latent means", means.view(), 0)?;
        check_finite("latent variances", variances.view(), 0)?;
        Ok((means, variances))
    }

    /// Probabilities of the classes, one column each; rows add up to 1.
    ///
    /// # Errors
    /// As [`latents`](Self::latents).
    pub fn probabilities(&self, rows: ArrayView2<'_, R>) -> Result<Array2<f64>> {
        let (means, variances) = self.latents(rows)?;
        Ok(self.parts.sampling.probabilities(means.view(), variances.view()))
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Predict for SviClassifierModel<M> {
    predicts_classes!(self: R, inputs self.map.input_dim(), rows => Ok(largest(&self.probabilities(rows)?)));
}

const SVI: &str = "svi_classifier";

pub(super) const VARIATIONAL: ModelEntry = ModelEntry {
    entry: Entry {
        name: SVI,
        title: "Gaussian process classification by variational inference",
        about: "A Gaussian process for every class by stochastic variational inference, for very many features.",
        ..CLASSIFICATION.entry
    },
    option: "svi",
    ordered: true,
    describe: Describing::Each(describe, describe),
    sums: None,
    losses: None,
    penalty: Some(Penalty { word: "penalty", tried: &[0.2 * 5.0, 0.2 * 0.5, 0.2 * 0.05, 0.2 * 0.005], otherwise: 0.1 }),
    load: load::<SviClassifierModel<DynMap<f32>>, SviClassifierModel<DynMap<f64>>>,
    ..CLASSIFICATION
};

/// Draws of a latent value in a step.
const DRAWS: usize = 8;
/// Variance of the processes unless told.
const SIGNAL: f64 = 30.0;

/// Weights of variance 1 times `s` are weights of penalty `1/s²`.
fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    let spec: GpClassifierSpec = asked.spec()?;
    let signal = asked.penalty().map(|penalty| 1.0 / penalty.max(1e-12)).or(spec.signal);
    let process = SviClassifier::new(asked.map()?, signal.unwrap_or(SIGNAL))?
        .with_passes(spec.max_iter)?
        .with_rate(spec.learning_rate)?
        .with_draws(DRAWS, asked.seed())?
        .with_classes(asked.classes())?;
    Ok(Box::new(process))
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for SviClassifierModel<M> {
    on_map!(SVI);
    gives_probabilities!(self, rows => self.probabilities(rows.mapv(M::Real::from_f64).view()));

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        let means = self.weights.means.mapv(|v| R::from_f64(self.parts.signal.sqrt() * v));
        let none = Array1::from_elem(means.ncols(), R::ZERO);
        Linear::new(means, none)?.gradient(&self.map, rows.mapv(R::from_f64).view())
    }

    fn sentences(&self) -> Vec<String> {
        vec![format!("the logarithm of the evidence is at least {:.1}", self.bound())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let (means, logs, parts) = self.parts();
        let mut header = Header::of_map(SVI, self.map())?;
        header.insert("complex", &false)?;
        header.insert("process", parts)?;
        Ok(Stored::new(header)
            .with("means", coefficients_tensor(means)?)
            .with("log_variances", coefficients_tensor(logs)?))
    }
}

impl<R: Real, M: Drawable + FeatureMap<Real = R, Output = R> + 'static> Load for SviClassifierModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let parts: SviParts = stored.header.part("process")?;
        SviClassifierModel::from_parts(stored.draw()?, stored.matrix("means")?, stored.matrix("log_variances")?, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_of_the_likelihood_agree_with_differences_for_fixed_draws() {
        let (classes, rows) = (3, 4);
        let labels = [(0, 1.0), (2, 0.5), (1, 2.0), (2, 1.0)];
        let means: Vec<f64> = (0..rows * classes).map(|k| (k as f64).sin()).collect();
        let variances: Vec<f64> = (0..rows * classes).map(|k| 0.2 + 0.1 * k as f64).collect();
        let mut draws = vec![0.0f64; 5 * rows * classes];
        Stream::new(Seed::new(1), Role::Posterior, 0).normals_from(0, &mut draws);
        let value = |m: &[f64], v: &[f64]| likelihood(m, v, &labels, classes, &draws).value;
        let found = likelihood(&means, &variances, &labels, classes, &draws);
        let h = 1e-5;
        for k in 0..rows * classes {
            let moved = |values: &[f64], by: f64| {
                let mut values = values.to_vec();
                values[k] += by;
                values
            };
            let slope = (value(&moved(&means, h), &variances) - value(&moved(&means, -h), &variances)) / (2.0 * h);
            assert!((slope - found.by_mean[k]).abs() < 1e-8);
            let slope = (value(&means, &moved(&variances, h)) - value(&means, &moved(&variances, -h))) / (2.0 * h);
            assert!((slope - found.by_variance[k]).abs() < 1e-8);
        }
    }
}
