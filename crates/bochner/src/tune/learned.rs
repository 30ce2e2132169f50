use super::flow::{Balance, Part, Slopes, Waves, importances, judge, slopes};
use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::{Learned, LearnedFourierSpec};
use crate::memory;
use crate::random::{Role, Seed, Stream};
use crate::rows::check_finite;
use crate::scalar::Real;
use crate::words;
use ndarray::{Array2, ArrayView2, Axis};
use std::collections::BTreeMap;

/// Fourier features learned from rows with targets, by the gradient of held-out error.
///
/// Rows are standardised columns, or nearly so; targets are numbers about their mean, or one-hot classes. In the first stage the
/// scales of the columns and the weights of a mixture of kernels are learned: Gaussian, Laplacian, and kernels of one, two and
/// three columns, on fresh rows and fresh frequencies in every step. In the second, frequencies drawn from that mixture are
/// parameters themselves. Rows that no gradient has seen judge every iterate; the best one is kept, and the mixture alone
/// where the second stage was never better. Nothing is timed: same rows, same seed, same bits.
///
/// ```
/// use bochner::feature::{Describe, FeatureMap};
/// use bochner::random::Seed;
/// use bochner::tune::LearnFourier;
/// use ndarray::Array2;
/// // One column of five matters.
/// let x = Array2::from_shape_fn((400, 5), |(i, k)| ((i * (k + 2)) as f64 * 0.37).sin());
/// let y = Array2::from_shape_fn((400, 1), |(i, _)| (3.0 * x[[i, 2]]).sin());
/// let learn = LearnFourier { n_components: 128, n_learned: 32, metric_steps: 20, max_iter: 20, ..LearnFourier::default() };
/// let found = learn.run(x.view(), y.view(), &mut |_| Ok(()))?;
/// assert!(found.losses.last() <= found.losses.first());
/// assert_eq!(found.spec.build::<f64>(5)?.output_dim(), 128);
/// # Ok::<(), bochner::Error>(())
/// ```
///
/// # References
/// The flow is formula 6 of `docs/mathematics/learned_fourier.md`; Rahimi and Recht 2008 (random kitchen sinks) and Yang et al. 2015 (à la
/// carte) learn spectra in other ways.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnFourier {
    /// Features of the map.
    pub n_components: usize,
    /// Frequencies that are learned one by one.
    pub n_learned: usize,
    /// Steps of the first stage.
    pub metric_steps: usize,
    /// Steps of the second stage.
    pub max_iter: usize,
    /// Rows of a step, half of which predict the other half, at most.
    pub batch: usize,
    /// Share of the kernel's variance that frequencies drawn from the mixture have beside the learned ones.
    pub drawn_share: f64,
    /// Share of the variance that rough waves have, a third of all that are drawn, several times as fast: what many rows can
    /// learn and the few of a step cannot. 0 draws none; [`LearnedMap::balanced`] finds out how much they help.
    pub rough_share: f64,
    /// Of all draws.
    pub seed: Seed,
}

impl Default for LearnFourier {
    fn default() -> Self {
        let LearnedFourierSpec { n_components, n_learned, max_iter, .. } = LearnedFourierSpec::default();
        let (metric_steps, batch, drawn_share) = (80, 4000, 0.3);
        LearnFourier {
            n_components,
            n_learned,
            metric_steps,
            max_iter,
            batch,
            drawn_share,
            rough_share: 0.0,
            seed: Seed::new(0),
        }
    }
}

impl From<&LearnedFourierSpec> for LearnFourier {
    fn from(spec: &LearnedFourierSpec) -> Self {
        let LearnedFourierSpec { n_components, n_learned, max_iter, seed, .. } = *spec;
        LearnFourier { n_components, n_learned, max_iter, seed: Seed::new(seed), ..LearnFourier::default() }
    }
}

/// What was learned.
#[derive(Debug, Clone)]
pub struct LearnedMap {
    /// The map.
    pub spec: LearnedFourierSpec,
    /// How much each column counts: scales of frequencies, the largest is 1.
    pub importances: Vec<f64>,
    /// Mean squared errors on the rows that judge: at the start, after the first stage, and of every iterate that was judged
    /// in the second. The map is the one with the least.
    pub losses: Vec<f64>,
    /// The penalty of a ridge regression that was best on the rows that judge.
    pub penalty: f64,
    /// How many of the frequencies, the first ones, were learned one by one, and how many after them were drawn from the mixture;
    /// the others are rough.
    pub counts: (usize, usize),
}

/// A learned map whose penalty and share of drawn frequencies suit all its features.
#[derive(Debug, Clone)]
pub struct Balanced {
    /// The maps side by side.
    pub spec: LearnedFourierSpec,
    /// Of a ridge regression on it.
    pub penalty: f64,
    /// Mean squared error on the rows that judge.
    pub loss: f64,
    /// How many pairs of penalty and share were tried.
    pub tried: usize,
}

/// Factor between two penalties that are tried, and between two variances of drawn frequencies; how far both go.
const PENALTY_STEP: f64 = 4.0;
const VARIANCE_STEP: f64 = 4.0;
const FARTHEST: i32 = 6;
/// Pairs of penalty and shares that are tried, at most.
pub const MOST_TRIED: usize = 14;
/// How much faster rough waves are.
const ROUGH: f64 = 3.0;

impl LearnedMap {
    /// Maps side by side, with the penalty and the share of drawn frequencies that are best on rows that no gradient has seen.
    ///
    /// Learning judges with few features; with all of them more penalty, less, or other shares may be better. All are tried from
    /// one Gram matrix: other amplitudes are other penalties of single features.
    ///
    /// # Errors
    /// Maps of different columns, shapes that do not fit, and numbers that are not finite.
    pub fn balanced<R: Real>(
        maps: &[LearnedMap],
        train: (ArrayView2<'_, R>, ArrayView2<'_, R>),
        held_out: (ArrayView2<'_, R>, ArrayView2<'_, R>),
        watch: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Balanced> {
        let parts: Vec<Learned> = maps.iter().filter_map(|map| map.spec.learned.clone()).collect();
        let joined = Learned::joined(&parts)?;
        let waves = Waves { frequencies: joined.frequencies(), amplitudes: joined.amplitudes() };
        let kind =
            |map: &LearnedMap, j: usize| usize::from(j >= map.counts.0) + usize::from(j >= map.counts.0 + map.counts.1);
        let kinds: Vec<usize> =
            maps.iter().zip(&parts).flat_map(|(map, part)| (0..part.len()).map(|j| kind(map, j))).collect();
        let balance = Balance::new(&waves, train, held_out)?;
        // The kernel of several maps side by side is the sum of theirs, and so is its penalty.
        let start = maps.iter().map(|map| map.penalty).sum::<f64>();
        let mut known: BTreeMap<[i32; 3], f64> = BTreeMap::new();
        let penalty = |at: [i32; 3]| start * PENALTY_STEP.powi(at[0]);
        // Learned waves are the unit.
        let factor = |at: [i32; 3], kind: usize| if kind == 0 { 1.0 } else { VARIANCE_STEP.powi(at[kind]).sqrt() };
        let mut loss = |at: [i32; 3]| -> Result<Option<f64>> {
            if let Some(loss) = known.get(&at) {
                return Ok(Some(*loss));
            }
            if known.len() == MOST_TRIED || at.iter().any(|step| step.abs() > FARTHEST) {
                return Ok(None);
            }
            watch()?;
            let sizes: Vec<f64> = kinds.iter().map(|kind| factor(at, *kind)).collect();
            let found = balance.loss(&sizes, penalty(at))?;
            known.insert(at, found);
            Ok(Some(found))
        };
        let mut best = ([0; 3], loss([0; 3])?.unwrap_or(f64::INFINITY));
        // Down each direction as far as it goes, until none is left. Shares of what there is one kind of are the penalty.
        let several = kinds.iter().any(|kind| *kind != kinds[0]);
        let moves = (0..3).filter(|axis| *axis == 0 || (several && kinds.contains(axis)));
        let moves: Vec<(usize, i32)> = moves.flat_map(|axis| [(axis, -1), (axis, 1)]).collect();
        loop {
            let before = best.0;
            for (axis, step) in &moves {
                let mut at = best.0;
                at[*axis] += step;
                while let Some(found) = loss(at)?.filter(|found| *found < best.1) {
                    best = (at, found);
                    at[*axis] += step;
                }
            }
            if best.0 == before {
                break;
            }
        }
        let (at, loss) = best;
        let tried = known.len();
        let amplitudes: Vec<f64> = waves.amplitudes.iter().zip(&kinds).map(|(a, kind)| a * factor(at, *kind)).collect();
        let learned = Learned::new(waves.frequencies.view(), &amplitudes)?;
        Ok(Balanced { spec: learned.into(), penalty: penalty(at), loss, tried })
    }
}

/// How the frequencies of a group are drawn, at unit scale.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    /// Normal directions over so many columns, `None` for all, with the radii of a Matérn kernel of this smoothness.
    Radial { columns: Option<usize>, nu: Option<f64> },
    /// Independent Cauchy coordinates.
    Cauchy,
}

/// A kernel of the mixture.
#[derive(Debug, Clone, Copy)]
struct Group {
    law: Law,
    log_multiplier: f64,
    log_amplitude: f64,
}

/// Frequencies of a group in a step of the first stage.
const FREQUENCIES: usize = 64;
/// Share of the chance of a column to be in a subset that its scale does not decide.
const FLOOR: f64 = 0.1;
/// Iterations between two looks at the rows that judge.
const LOOK: usize = 20;
/// Looks without an improvement after which the second stage ends.
const PATIENCE: usize = 2;
/// Rows from which the judged maps learn, and rows that judge, at most.
const MOST_SUPPORT: usize = 5000;
const MOST_JUDGES: usize = 4000;
/// Factors of a penalty that are tried by the rows that judge.
const AROUND: [f64; 5] = [1.0, 0.2, 5.0, 0.03, 1e-3];
/// Penalties that are tried before anything is learned. Much smaller ones fit slow waves as if they were polynomials, which may be
/// better at first, and leave gradients that lead nowhere: on pumadyn32nm learning then ended at 0.30 instead of 0.26.
const FIRST: [f64; 6] = [1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3];
const TINY: [f64; 6] = [1e1, 1e-1, 1e-3, 1e-5, 1e-6, 1e-7];
/// Logarithm of the least squared scale of a column at the start, in units of their mean.
const LEAST_SCALE: f64 = -5.0;

fn groups(columns: usize) -> Vec<Group> {
    let d = columns as f64;
    let all = |nu: Option<f64>, multiplier: f64| (Law::Radial { columns: None, nu }, multiplier);
    let some =
        |columns: usize, nu: f64, multiplier: f64| (Law::Radial { columns: Some(columns), nu: Some(nu) }, multiplier);
    let mut laws = vec![all(None, 1.0 / d.sqrt()), all(Some(0.5), 0.4 / d.sqrt()), (Law::Cauchy, 0.7 / d)];
    for (order, nu, multiplier) in [(1, 0.5, 0.7), (2, 1.0, 0.6), (3, 1.5, 0.5)] {
        if order < columns {
            laws.push(some(order, nu, multiplier));
        }
    }
    let share = -0.5 * (laws.len() as f64).ln();
    let group = |(law, multiplier): (Law, f64)| Group { law, log_multiplier: multiplier.ln(), log_amplitude: share };
    laws.into_iter().map(group).collect()
}

impl Law {
    /// A frequency at unit scale; `chances` are those of the columns of a subset.
    fn draw(self, chances: &[f64], stream: &mut Stream, out: &mut [f64]) {
        out.fill(0.0);
        let radius = |nu: Option<f64>, stream: &mut Stream| {
            nu.map_or(1.0, |nu| (2.0 * nu / stream.chi_square(2.0 * nu).max(1e-12)).sqrt())
        };
        match self {
            Law::Cauchy => out.iter_mut().for_each(|v| *v = stream.cauchy().clamp(-1e6, 1e6)),
            Law::Radial { columns: None, nu } => {
                let radius = radius(nu, stream);
                out.iter_mut().for_each(|v| *v = radius * stream.normal());
            }
            Law::Radial { columns: Some(columns), nu } => {
                let radius = radius(nu, stream);
                let mut left: f64 = chances.iter().sum();
                let mut taken = vec![false; chances.len()];
                for _ in 0..columns.min(chances.len()) {
                    let mut at = stream.uniform() * left;
                    let free = (0..chances.len()).filter(|k| !taken[*k]);
                    let mut chosen = None;
                    for k in free {
                        chosen = Some(k);
                        at -= chances[k];
                        if at < 0.0 {
                            break;
                        }
                    }
                    let Some(k) = chosen else { break };
                    taken[k] = true;
                    left -= chances[k];
                    out[k] = radius * stream.normal();
                }
            }
        }
    }
}

/// Scales of columns, and the groups.
#[derive(Debug, Clone)]
struct Mixture {
    log_scales: Vec<f64>,
    groups: Vec<Group>,
    log_penalty: f64,
}

impl Mixture {
    fn chances(&self) -> Vec<f64> {
        let scales: Vec<f64> = self.log_scales.iter().map(|s| s.exp()).collect();
        let (count, sum) = (scales.len() as f64, scales.iter().sum::<f64>());
        scales.iter().map(|s| (1.0 - FLOOR) * s / sum + FLOOR / count).collect()
    }

    /// So many frequencies of each group, with amplitudes that share the variance of the group.
    fn draw(&self, counts: &[usize], seed: Seed) -> Waves {
        let (d, chances) = (self.log_scales.len(), self.chances());
        let total = counts.iter().sum();
        let mut frequencies = Array2::zeros((total, d));
        let mut amplitudes = Vec::with_capacity(total);
        let mut row = vec![0.0; d];
        for (g, (group, &count)) in self.groups.iter().zip(counts).enumerate() {
            for k in 0..count {
                let mut stream = Stream::new(seed.child(g as u64), Role::Direction, k as u64);
                group.law.draw(&chances, &mut stream, &mut row);
                let to = frequencies.row_mut(amplitudes.len());
                let values = row.iter().zip(&self.log_scales).map(|(v, s)| v * (s + group.log_multiplier).exp());
                to.into_iter().zip(values).for_each(|(to, v)| *to = v);
                amplitudes.push((group.log_amplitude - 0.5 * (count as f64).ln()).exp());
            }
        }
        Waves { frequencies, amplitudes }
    }

    /// `count` frequencies of about the same amplitude: groups have as many as their share of the variance.
    fn sample(&self, count: usize, seed: Seed) -> Waves {
        let shares: Vec<f64> = self.groups.iter().map(|group| (2.0 * group.log_amplitude).exp()).collect();
        let total: f64 = shares.iter().sum();
        let mut counts: Vec<usize> =
            shares.iter().map(|share| (count as f64 * share / total).floor() as usize).collect();
        // What rounding leaves goes to the largest remainders, in order.
        let mut order: Vec<usize> = (0..counts.len()).collect();
        let rest = |g: &usize| (count as f64 * shares[*g] / total).fract();
        order.sort_by(|a, b| rest(b).total_cmp(&rest(a)));
        let missing = count - counts.iter().sum::<usize>();
        order.iter().cycle().take(missing).for_each(|g| counts[*g] += 1);
        let mut waves = self.draw(&counts, seed);
        // A group of a small share may have no frequency at all; the others carry its variance.
        let variance: f64 = waves.amplitudes.iter().map(|a| a * a).sum();
        waves.amplitudes.iter_mut().for_each(|a| *a *= (total / variance).sqrt());
        waves
    }

    fn parameters(&self) -> Vec<f64> {
        let groups = &self.groups;
        let multipliers = groups.iter().map(|group| group.log_multiplier);
        let amplitudes = groups.iter().map(|group| group.log_amplitude);
        self.log_scales.iter().copied().chain(multipliers).chain(amplitudes).chain([self.log_penalty]).collect()
    }

    fn set(&mut self, parameters: &[f64]) {
        let (d, count) = (self.log_scales.len(), self.groups.len());
        self.log_scales.copy_from_slice(&parameters[..d]);
        for (g, group) in self.groups.iter_mut().enumerate() {
            group.log_multiplier = parameters[d + g];
            group.log_amplitude = parameters[d + count + g];
        }
        self.log_penalty = parameters[d + 2 * count];
    }

    /// Derivatives in [`parameters`](Self::parameters) from those in frequencies and amplitudes.
    fn gradient(&self, waves: &Waves, slopes: &Slopes) -> Vec<f64> {
        let (d, count) = (self.log_scales.len(), self.groups.len());
        let mut gradient = vec![0.0; d + 2 * count + 1];
        for (j, (slope, frequency)) in slopes.frequencies.rows().into_iter().zip(waves.frequencies.rows()).enumerate() {
            let g = j / FREQUENCIES;
            for (k, (slope, w)) in slope.iter().zip(frequency).enumerate() {
                gradient[k] += slope * w;
                gradient[d + g] += slope * w;
            }
            gradient[d + count + g] += slopes.log_amplitudes[j];
        }
        gradient[d + 2 * count] = slopes.log_penalty;
        gradient
    }
}

/// Steps of the size of a rate whatever the gradient's (Kingma and Ba 2015).
#[derive(Debug)]
struct Adam {
    first: Vec<f64>,
    second: Vec<f64>,
    steps: i32,
}

impl Adam {
    fn new(count: usize) -> Self {
        Adam { first: vec![0.0; count], second: vec![0.0; count], steps: 0 }
    }

    fn step<'a>(
        &mut self,
        parameters: impl Iterator<Item = &'a mut f64>,
        gradient: impl Iterator<Item = f64>,
        rate: f64,
    ) {
        const DECAY: (f64, f64) = (0.9, 0.98);
        self.steps += 1;
        let (one, two) = (1.0 - DECAY.0.powi(self.steps), 1.0 - DECAY.1.powi(self.steps));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, slope), (first, second)) in parameters.zip(gradient).zip(moments) {
            *first += (1.0 - DECAY.0) * (slope - *first);
            *second += (1.0 - DECAY.1) * (slope * slope - *second);
            *parameter -= rate * (*first / one) / ((*second / two).sqrt() + 1e-12);
        }
    }
}

/// From 1 down to a tenth.
fn cooled(step: usize, steps: usize) -> f64 {
    0.55 + 0.45 * (std::f64::consts::PI * step as f64 / steps.max(1) as f64).cos()
}

/// How far a search has come: a step of so many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearningStep {
    /// Steps done.
    pub done: usize,
    /// Steps there will be at most.
    pub total: usize,
}

impl LearnFourier {
    /// Learns from some of the rows and judges by the others: a fifth, drawn with the seed.
    ///
    /// # Errors
    /// As [`run_judged`](Self::run_judged).
    pub fn run<R: Real>(
        &self,
        rows: ArrayView2<'_, R>,
        targets: ArrayView2<'_, R>,
        watch: &mut dyn FnMut(LearningStep) -> Result<()>,
    ) -> Result<LearnedMap> {
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        let order = Stream::new(self.seed, Role::Split, 0).permutation(rows.nrows());
        let order: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
        let (judges, others) = order.split_at(rows.nrows() / 5);
        let select = |which: &[usize]| (rows.select(Axis(0), which), targets.select(Axis(0), which));
        let ((x, y), (held_x, held_y)) = (select(others), select(judges));
        self.run_judged((x.view(), y.view()), (held_x.view(), held_y.view()), watch)
    }

    /// Learns from rows with targets and judges by others, of which no gradient is taken.
    ///
    /// # Errors
    /// Shapes that do not fit, numbers that are not finite, fewer than four rows to learn from or none to judge by; those of
    /// `watch`, which is told about every step.
    pub fn run_judged<R: Real>(
        &self,
        train: (ArrayView2<'_, R>, ArrayView2<'_, R>),
        held_out: (ArrayView2<'_, R>, ArrayView2<'_, R>),
        watch: &mut dyn FnMut(LearningStep) -> Result<()>,
    ) -> Result<LearnedMap> {
        if self.n_components < 2 {
            return Err(Error::parameter("n_components", "at least 2 for pairs of cosine and sine", self.n_components));
        }
        for (x, y) in [train, held_out] {
            check_dim("number of rows of targets", x.nrows(), y.nrows())?;
            check_dim("number of columns", train.0.ncols(), x.ncols())?;
            check_dim("number of targets", train.1.ncols(), y.ncols())?;
            check_finite("rows", x, 0)?;
            check_finite("targets", y, 0)?;
        }
        // Frequencies in double precision, their places, and the moments of both.
        let columns = train.0.ncols();
        let needed = memory::bytes::<f64>(&[self.n_components.max(self.n_learned), columns.max(1), 4]);
        memory::need("learned frequencies", needed, |free| {
            let fit = free / memory::bytes::<f64>(&[columns.max(1), 4]);
            format!("{} columns would fit", words::count(fit as usize))
        })?;
        check_count("number of columns", train.0.ncols())?;
        check_count("number of targets", train.1.ncols())?;
        if train.0.nrows() < 4 || held_out.0.nrows() == 0 {
            let given = format!("{} and {}", train.0.nrows(), held_out.0.nrows());
            return Err(Error::parameter("rows", "at least 4 to learn from and 1 to judge by", given));
        }
        let judges = held_out.0.nrows().min(MOST_JUDGES);
        let search = Search {
            options: self,
            train: Part::new(train.0, train.1),
            judges: Part::new(held_out.0.slice(ndarray::s![..judges, ..]), held_out.1.slice(ndarray::s![..judges, ..])),
        };
        let total = self.metric_steps + self.max_iter;
        search.run(&mut |done| watch(LearningStep { done, total }))
    }
}

/// Labels of the children of the seed.
const BATCHES: u64 = 1;
const FIRST_STAGE: u64 = 2;
const START: u64 = 3;
const DRAWN: u64 = 4;
const JUDGED: u64 = 5;
const ROUGHER: u64 = 6;

struct Search<'a, R> {
    options: &'a LearnFourier,
    train: Part<R>,
    judges: Part<R>,
}

impl<R: Real> Search<'_, R> {
    /// Two halves of a batch.
    fn batch(&self, step: usize) -> (Part<R>, Part<R>) {
        let n = self.train.rows();
        let size = self.options.batch.clamp(4, n);
        let mut draw = Stream::new(self.options.seed.child(BATCHES), Role::Split, step as u64);
        let rows: Vec<usize> = draw.distinct(n as u64, size).into_iter().map(|i| i as usize).collect();
        let (support, query) = rows.split_at(size / 2);
        (self.train.select(support), self.train.select(query))
    }

    fn judge(&self, waves: &Waves, log_penalty: f64) -> Result<(f64, f64)> {
        let count = self.train.rows().min(MOST_SUPPORT);
        let support =
            Part::new(self.train.x.slice(ndarray::s![..count, ..]), self.train.y.slice(ndarray::s![..count, ..]));
        let penalties = AROUND.map(|factor| factor * log_penalty.exp());
        judge(waves, &support, &self.judges, &penalties)
    }

    fn run(&self, watch: &mut dyn FnMut(usize) -> Result<()>) -> Result<LearnedMap> {
        let options = self.options;
        let seed = options.seed;
        let d = self.train.x.ncols();
        let judged = options.n_learned.clamp(1, 512).min(options.n_components / 2).max(1);
        let mut start = Mixture { log_scales: vec![0.0; d], groups: groups(d), log_penalty: 0.0 };
        let first = start.sample(judged, seed.child(JUDGED));
        // The scale of the penalty, before anything is learned.
        let (support, query) = self.batch(0);
        let (all, penalty) = judge(&first, &support, &query, &FIRST)?;
        start.log_penalty = penalty.ln();
        let plain = (start.clone(), self.judge(&first, start.log_penalty)?);
        let mut losses = vec![plain.1.0];
        // Columns on which a first model depends are where learning begins, if that is better. Its penalty may be tiny: slow
        // waves are polynomials then, which find out of many columns those that count.
        let (_, tiny) = judge(&first, &support, &query, &TINY)?;
        let found = importances(&first, &support, tiny)?;
        let mean = found.iter().sum::<f64>() / d as f64;
        if mean > 0.0 && mean.is_finite() {
            let scaled = found.iter().map(|v| 0.5 * (v / mean).ln().clamp(LEAST_SCALE, -LEAST_SCALE));
            let other = Mixture { log_scales: scaled.collect(), ..start.clone() };
            let waves = other.sample(judged, seed.child(JUDGED));
            let (better, penalty) = judge(&waves, &support, &query, &FIRST)?;
            if better < all {
                start = Mixture { log_penalty: penalty.ln(), ..other };
            }
        }
        let waves = start.sample(judged, seed.child(JUDGED));
        // The rows that judge have the last word: the map is never worse than where it began.
        let scaled = self.judge(&waves, start.log_penalty)?;
        let (start, (loss, first_penalty)) = if scaled.0 <= plain.1.0 { (start, scaled) } else { plain };
        let mixture = self.learn_mixture(start.clone(), watch)?;
        let waves = mixture.sample(judged, seed.child(JUDGED));
        let (after, penalty) = self.judge(&waves, mixture.log_penalty)?;
        losses.push(after);
        let (mixture, mut best) = match after <= loss {
            true => (mixture, (after, penalty)),
            false => (start.clone(), (loss, first_penalty)),
        };
        let kept = self.learn_frequencies(&mixture, &mut best, &mut losses, watch)?;
        let half = options.n_components / 2;
        let learned = kept.as_ref().map_or(0, |waves| waves.amplitudes.len());
        let rough = if options.rough_share > 0.0 { half.saturating_sub(learned) / 3 } else { 0 };
        let counts = (learned, half.saturating_sub(learned + rough));
        let spec = self.assemble(&mixture, kept, half, rough)?;
        let largest = mixture.log_scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let importances = mixture.log_scales.iter().map(|s| (s - largest).exp()).collect();
        Ok(LearnedMap { spec, importances, losses, penalty: best.1, counts })
    }

    fn learn_mixture(&self, mut mixture: Mixture, watch: &mut dyn FnMut(usize) -> Result<()>) -> Result<Mixture> {
        let steps = self.options.metric_steps;
        let counts = vec![FREQUENCIES; mixture.groups.len()];
        let mut parameters = mixture.parameters();
        let mut adam = Adam::new(parameters.len());
        let seed = self.options.seed.child(FIRST_STAGE);
        // The mean over the last third: single iterates follow their own frequencies and rows.
        let (mut mean, mut count) = (vec![0.0; parameters.len()], 0.0);
        for step in 0..steps {
            let waves = mixture.draw(&counts, seed.child(step as u64));
            let (support, query) = self.batch(1 + step);
            let found = slopes(&waves, &support, &query, mixture.log_penalty.exp())?;
            let gradient = mixture.gradient(&waves, &found);
            adam.step(parameters.iter_mut(), gradient.into_iter(), 0.1 * cooled(step, steps));
            mixture.set(&parameters);
            if 3 * step >= 2 * steps {
                mean.iter_mut().zip(&parameters).for_each(|(sum, v)| *sum += v);
                count += 1.0;
            }
            watch(step + 1)?;
        }
        if count > 0.0 {
            mean.iter_mut().for_each(|v| *v /= count);
            mixture.set(&mean);
        }
        Ok(mixture)
    }

    /// Frequencies from the mixture as parameters of their own; `None` where they never got better than the mixture.
    fn learn_frequencies(
        &self,
        mixture: &Mixture,
        best: &mut (f64, f64),
        losses: &mut Vec<f64>,
        watch: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Option<Waves>> {
        let options = self.options;
        let count = options.n_learned.min(options.n_components / 2);
        if count == 0 || options.max_iter == 0 {
            return Ok(None);
        }
        let scales: Vec<f64> = mixture.log_scales.iter().map(|s| s.exp()).collect();
        let mut waves = mixture.sample(count, options.seed.child(START));
        // In units of the scales, so that columns that do not matter stay so.
        let mut places = &waves.frequencies / &ndarray::aview1(&scales);
        let mut logs: Vec<f64> = waves.amplitudes.iter().map(|a| a.ln()).chain([mixture.log_penalty]).collect();
        let (mut of_places, mut of_logs) = (Adam::new(places.len()), Adam::new(logs.len()));
        let (mut kept, mut worse) = (None, 0);
        for step in 0..options.max_iter {
            let (support, query) = self.batch(1 + options.metric_steps + step);
            let found = slopes(&waves, &support, &query, logs[count].exp())?;
            let rate = cooled(step, options.max_iter);
            let gradient = &found.frequencies * &ndarray::aview1(&scales);
            of_places.step(places.iter_mut(), gradient.into_iter(), 0.03 * rate);
            let gradient = found.log_amplitudes.iter().copied().chain([found.log_penalty]);
            of_logs.step(logs.iter_mut(), gradient, 0.05 * rate);
            waves.frequencies = &places * &ndarray::aview1(&scales);
            waves.amplitudes = logs[..count].iter().map(|a| a.exp()).collect();
            if (step + 1) % LOOK == 0 || step + 1 == options.max_iter {
                let (loss, penalty) = self.judge(&waves, logs[count])?;
                losses.push(loss);
                if loss < best.0 {
                    *best = (loss, penalty);
                    kept = Some(waves.clone());
                    worse = 0;
                } else {
                    worse += 1;
                }
            }
            watch(options.metric_steps + step + 1)?;
            // What has got worse twice has learned its rows by heart.
            if worse == PATIENCE {
                break;
            }
        }
        Ok(kept)
    }

    /// Learned frequencies and others from the mixture beside them.
    fn assemble(
        &self,
        mixture: &Mixture,
        kept: Option<Waves>,
        half: usize,
        rough: usize,
    ) -> Result<LearnedFourierSpec> {
        let options = self.options;
        let variance = |waves: &Waves| waves.amplitudes.iter().map(|a| a * a).sum::<f64>();
        let seed = options.seed.child(DRAWN);
        let mut parts = match kept {
            None => vec![mixture.sample(half - rough, seed)],
            Some(learned) if learned.amplitudes.len() >= half => vec![learned],
            Some(mut learned) => {
                let mut drawn = mixture.sample(half - rough - learned.amplitudes.len(), seed);
                let total = variance(&learned);
                let factor = |part: &Waves, share: f64| (share * total / variance(part)).sqrt();
                let (one, other) = (factor(&learned, 1.0 - options.drawn_share), factor(&drawn, options.drawn_share));
                learned.amplitudes.iter_mut().for_each(|a| *a *= one);
                drawn.amplitudes.iter_mut().for_each(|a| *a *= other);
                vec![learned, drawn]
            }
        };
        if rough > 0 {
            let mut faster = mixture.sample(rough, options.seed.child(ROUGHER));
            faster.frequencies *= ROUGH;
            let total: f64 = parts.iter().map(variance).sum();
            let factor = (options.rough_share * total / variance(&faster)).sqrt();
            faster.amplitudes.iter_mut().for_each(|a| *a *= factor);
            parts.push(faster);
        }
        let parts: Result<Vec<Learned>> =
            parts.iter().map(|part| Learned::new(part.frequencies.view(), &part.amplitudes)).collect();
        let learned = Learned::joined(&parts?)?;
        Ok(LearnedFourierSpec {
            n_components: 2 * learned.len(),
            n_learned: options.n_learned,
            max_iter: options.max_iter,
            learned: Some(learned),
            seed: options.seed.number(),
        })
    }
}
