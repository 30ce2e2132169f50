//! A search that does not get trapped: several starts, variances maximised exactly at each, successive halving on more and
//! more rows and features, L-BFGS from the survivors.

use super::inlet::Inlet;
use super::problem::{Head, Problem};
use super::{super::lbfgs::Lbfgs, Scales};
use crate::error::{Error, Result};
use crate::linalg::field::Field;
use crate::linalg::{Cholesky, Lower, TileMut, Workspace};
use crate::model::spectrum::{Variances, likeliest};
use crate::preprocess::median_distance;
use crate::random::Seed;
use crate::scalar::Scalar;
use ndarray::{Array2, Axis};

/// A function of hyperparameters: those that act on rows, then the logarithms of the variances.
pub(crate) trait Objective {
    fn inlet(&self) -> &Inlet;
    /// Rows before anything is searched for.
    fn base(&self) -> &Array2<f64>;
    fn heads(&self) -> &[Head];
    /// Whether the noise variance is searched for.
    fn is_noisy(&self) -> bool;
    fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)>;
    /// The likeliest variances for given hyperparameters of rows.
    fn variances(&self, own: &[f64], bounds: &Bounds) -> Result<Variances>;
    /// How much each input matters at a point.
    fn relevances(&self, point: &[f64]) -> Result<Vec<f64>>;

    /// Observations: likelihoods are compared per one of them, so that tolerances mean the same for any number of rows.
    fn size(&self) -> f64 {
        self.heads().iter().map(|head| head.targets.len() as f64).sum()
    }
}

impl<T: Scalar<Real = f64> + Field<Wide = T>> Objective for Problem<'_, T> {
    fn inlet(&self) -> &Inlet {
        self.inlet
    }
    fn base(&self) -> &Array2<f64> {
        &self.base
    }
    fn heads(&self) -> &[Head] {
        &self.heads
    }
    fn is_noisy(&self) -> bool {
        self.noisy
    }
    fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        Problem::evaluate(self, point)
    }
    fn variances(&self, own: &[f64], bounds: &Bounds) -> Result<Variances> {
        Ok(likeliest(&self.spectra(own)?, self.noisy, bounds.signal, bounds.noise))
    }
    fn relevances(&self, point: &[f64]) -> Result<Vec<f64>> {
        Problem::relevances(self, point)
    }
}

/// Least and greatest variances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) signal: (f64, f64),
    pub(crate) noise: (f64, f64),
}

/// Where a hunt ended.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) point: Vec<f64>,
    pub(crate) value: f64,
    pub(crate) evaluations: usize,
    pub(crate) converged: bool,
}

/// Starts that go on to L-BFGS on the fewest rows, and those of them that go on to more.
const SURVIVORS: [usize; 2] = [3, 2];

/// Evaluations of L-BFGS on all levels but the last, for each survivor.
const EARLY: [usize; 2] = [12, 10];

/// Evaluations below which a search has none to spare for other starts than the given one.
const LEAST: usize = 30;

/// Median distances of rows over length scales that are tried.
const DISTANCES: [f64; 5] = [3.0, 1.0, 0.3, 0.1, 0.03];

/// The same for length scales of a shape that says which inputs matter.
const NEAR: [f64; 3] = [2.0, 1.0, 0.5];

/// Noise over signal and rows of a process that follows its rows.
const FOLLOWING: f64 = 1e-4;

/// Share of noise in the mean square of the targets below which a process explains something.
const EXPLAINED: f64 = 0.8;

/// Rounds in which the diagonal of a metric is learned.
const LEARNING: usize = 6;

/// Rounds in which slopes of the process give new length scales, which give a new process.
const ROUNDS: usize = 3;

/// Log likelihoods per observation that differ by less are those of the same place.
const SAME: f64 = 2e-4;

/// The least relevance of an input, of that of the most relevant one. The evidence of smaller ones is larger at once, but their
/// slopes fall with the square: an input that matters a little, and was thought not to, is never found again. On pumadyn32nm
/// climbs from 0.02 ended at an error of 0.275, without the third and fourth input, and climbs from 0.1 at 0.205.
const LEAST_RELEVANCE: f64 = 0.1;

/// A place to begin, with its likeliest variances.
#[derive(Debug, Clone)]
struct Start {
    own: Vec<f64>,
    variances: Variances,
    /// Steps and gradient changes of a climb from here.
    pairs: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Start {
    fn point(&self, noisy: bool) -> Vec<f64> {
        let mut point = self.own.clone();
        point.push(self.variances.signal.ln());
        if noisy {
            point.push(self.variances.noise.ln());
        }
        point
    }
}

/// A hunt over levels of rising cost.
pub(crate) struct Hunt<'a> {
    pub(crate) lbfgs: Lbfgs,
    pub(crate) bounds: Bounds,
    pub(crate) told: &'a mut dyn FnMut(f64) -> Result<()>,
    pub(crate) evaluations: usize,
}

/// A likelihood, or that of a matrix that is not positive definite.
fn or_never(found: Result<Variances>) -> Result<Option<Variances>> {
    match found {
        Ok(found) if found.value.is_finite() => Ok(Some(found)),
        Ok(_) | Err(Error::NotPositiveDefinite { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Hunt<'_> {
    fn left(&self) -> usize {
        self.lbfgs.max_evaluations.saturating_sub(self.evaluations)
    }

    fn screen(&mut self, level: &dyn Objective, own: Vec<f64>, starts: &mut Vec<Start>) -> Result<()> {
        if starts.iter().any(|start| start.own == own) || self.left() == 0 {
            return Ok(());
        }
        let found = or_never(level.variances(&own, &self.bounds))?;
        self.evaluations += 1;
        (self.told)(found.map_or(f64::NEG_INFINITY, |found| found.value))?;
        starts.extend(found.map(|variances| Start { own, variances, pairs: Vec::new() }));
        Ok(())
    }

    /// Climbs on one level; the best point ever seen there.
    fn climb(&mut self, level: &dyn Objective, start: &mut Start, most: usize) -> Result<Found> {
        let (size, inlet) = (level.size(), level.inlet());
        let point = start.point(level.is_noisy());
        let mut bounds = inlet.bounds();
        let variance = |(low, high): (f64, f64)| (low.ln(), high.ln());
        bounds.push(variance(self.bounds.signal));
        if level.is_noisy() {
            bounds.push(variance(self.bounds.noise));
        }
        let told = &mut self.told;
        let mut objective = |point: &[f64]| {
            let (value, gradient) = level.evaluate(point)?;
            told(value)?;
            Ok((-value / size, gradient.into_iter().map(|g| -g / size).collect()))
        };
        let lbfgs = Lbfgs { max_evaluations: most.max(1), ..self.lbfgs };
        let found = lbfgs.minimize_with(&mut objective, &point, &bounds, &mut start.pairs)?;
        self.evaluations += found.evaluations;
        Ok(Found {
            point: found.point,
            value: -found.value * size,
            evaluations: self.evaluations,
            converged: found.converged,
        })
    }

    /// Searches all levels, cheapest first; `given` are the variances to begin with.
    pub(crate) fn run(&mut self, levels: &[&dyn Objective], given: (f64, f64)) -> Result<Found> {
        let (Some(first), Some(last)) = (levels.first(), levels.last()) else {
            return Err(Error::parameter("levels", "at least one", "none"));
        };
        let (inlet, noisy) = (last.inlet(), last.is_noisy());
        if self.lbfgs.max_evaluations < LEAST {
            let value = f64::NEG_INFINITY;
            let variances = Variances { signal: given.0, noise: given.1, value };
            let mut start = Start { own: inlet.start(), variances, pairs: Vec::new() };
            return self.climb(*last, &mut start, self.left());
        }
        let mut starts = self.starts(*first, *last)?;
        if starts.is_empty() {
            return Err(Error::parameter("start", "a point at which the likelihood is finite", "none"));
        }
        starts.sort_by(|a, b| b.variances.value.total_cmp(&a.variances.value));
        let many = inlet.free() > 0;
        for (index, level) in levels[..levels.len() - 1].iter().enumerate() {
            let keep = if many { SURVIVORS[index.min(1)] } else { 1 };
            starts.truncate(keep);
            let mut found = Vec::new();
            for start in &starts {
                // Some are left for the last level.
                if !found.is_empty() && self.left() < LEAST {
                    break;
                }
                let mut start = start.clone();
                if index > 0
                    && let Some(variances) = or_never(level.variances(&start.own, &self.bounds))?
                {
                    start.variances = variances;
                }
                let most = EARLY[index.min(1)].min(self.left());
                let climbed = self.climb(*level, &mut start, most)?;
                let own = climbed.point[..inlet.free()].to_vec();
                let variances = Variances {
                    signal: climbed.point[inlet.free()].exp(),
                    noise: if noisy { climbed.point[inlet.free() + 1].exp() } else { 1.0 },
                    value: climbed.value,
                };
                found.push(Start { own, variances, pairs: start.pairs });
            }
            found.sort_by(|a, b| b.variances.value.total_cmp(&a.variances.value));
            // Climbs that end in the same place count once.
            let same = SAME * level.size();
            found.dedup_by(|a, b| (a.variances.value - b.variances.value).abs() < same);
            starts = found;
        }
        let mut best: Option<Found> = None;
        // Where all levels are one, all survivors climb to the end.
        let keep = if levels.len() == 1 && many { SURVIVORS[0] } else { 1 };
        let count = starts.len().min(keep);
        for (index, start) in starts.iter_mut().take(keep).enumerate() {
            let most = self.left() / (count - index).max(1);
            if best.is_some() && most < 2 {
                break;
            }
            let found = self.climb(*last, start, most)?;
            if best.as_ref().is_none_or(|best| found.value > best.value) {
                best = Some(found);
            }
        }
        let mut best = best.expect("at least one start");
        best.evaluations = self.evaluations;
        Ok(best)
    }

    /// Places to begin, with their likeliest variances on a level; what can be had from all rows at little cost is.
    fn starts(&mut self, level: &dyn Objective, all: &dyn Objective) -> Result<Vec<Start>> {
        let (inlet, base) = (level.inlet(), level.base());
        let mut starts = Vec::new();
        self.screen(level, inlet.start(), &mut starts)?;
        if inlet.has_gamma() || inlet.has_constant() {
            let length: f64 = base.iter().map(|v| v * v).sum::<f64>() / base.nrows().max(1) as f64;
            let unit = if length > 0.0 { length } else { 1.0 };
            for factor in [0.1, 1.0, 10.0] {
                // Rows of about the length of the constant, a tenth or ten times its square.
                let own = inlet.with_others(inlet.has_gamma().then_some(factor / unit), Some(1.0));
                self.screen(level, own, &mut starts)?;
                if !inlet.has_gamma() {
                    self.screen(level, inlet.with_others(None, Some(factor * unit)), &mut starts)?;
                }
            }
        }
        if inlet.scales() == Scales::Fixed {
            return Ok(starts);
        }
        let d = base.ncols();
        // Rows that are all the same have no distance: the given scales are as good as any.
        let Ok(median) = median_distance(base.view(), Seed::new(0), 500) else { return Ok(starts) };
        for distance in DISTANCES {
            self.screen(level, inlet.with_scales(&vec![median / distance; d]), &mut starts)?;
        }
        if !matches!(inlet.scales(), Scales::PerInput | Scales::Metric) || d < 2 {
            return Ok(starts);
        }
        let deviations = deviations(all.base());
        let (least, most) = deviations.iter().fold((f64::INFINITY, 0.0f64), |(a, b), s| (a.min(*s), b.max(*s)));
        if most > 1.5 * least {
            // Columns of different units.
            self.screen_shape(level, &deviations, &DISTANCES[..4], &mut starts)?;
        }
        let guesses = [linear_relevances(all.base(), all.heads()), paired_relevances(all.base(), all.heads())];
        for relevances in guesses.into_iter().flatten() {
            if let Some(shape) = shape(&relevances, &deviations) {
                self.screen_shape(level, &shape, &NEAR, &mut starts)?;
            }
        }
        // Slopes of the likeliest process say which inputs matter, which gives the next one.
        for _ in 0..ROUNDS {
            let Some(best) = likeliest_of(&starts) else { break };
            let (before, point) = (best.variances.value, best.point(level.is_noisy()));
            let Some(relevances) = relevances(level, &point, &deviations)? else { break };
            let Some(shape) = shape(&relevances, &deviations) else { break };
            self.screen_shape(level, &shape, &NEAR, &mut starts)?;
            if likeliest_of(&starts).is_none_or(|best| best.variances.value <= before) {
                break;
            }
        }
        self.learn_shape(level, all, &deviations, &mut starts)?;
        Ok(starts)
    }

    /// Where no start explains anything: the diagonal of a learned metric, from all rows. The likeliest process is constant there
    /// and has no slopes, while one that follows its rows too closely already leans to the inputs that matter, the more so in
    /// every round. (On pumadyn32nm, where 2 of 32 inputs matter through their product, and on products of three of twelve
    /// inputs it has found them after four rounds; with slopes in place of their squares it takes twice as many.)
    fn learn_shape(
        &mut self,
        level: &dyn Objective,
        all: &dyn Objective,
        deviations: &[f64],
        starts: &mut Vec<Start>,
    ) -> Result<()> {
        let squares = level.heads().iter().map(|head| head.targets.iter().map(|z| z * z).sum::<f64>()).sum::<f64>();
        let explained = |starts: &[Start]| {
            likeliest_of(starts).is_some_and(|best| best.variances.noise < EXPLAINED * squares / level.size())
        };
        let noise = FOLLOWING * all.base().nrows() as f64;
        let mut shape = deviations.to_vec();
        for _ in 0..LEARNING {
            if !level.is_noisy() || explained(&starts[..]) {
                break;
            }
            let Some(scales) = at_distance(all.base(), &shape, 2.0) else { break };
            let mut point = all.inlet().with_scales(&scales);
            point.extend([0.0, noise.ln()]);
            let Some(relevances) = relevances(all, &point, deviations)? else { break };
            let squares: Vec<f64> = relevances.iter().map(|r| r * r).collect();
            let Some(next) = self::shape(&squares, deviations) else { break };
            shape = next;
            self.screen_shape(level, &shape, &NEAR, starts)?;
        }
        Ok(())
    }

    /// Length scales of a shape at several median distances of the rows that they make.
    fn screen_shape(
        &mut self,
        level: &dyn Objective,
        shape: &[f64],
        distances: &[f64],
        starts: &mut Vec<Start>,
    ) -> Result<()> {
        for distance in distances {
            let Some(scales) = at_distance(level.base(), shape, *distance) else { break };
            self.screen(level, level.inlet().with_scales(&scales), starts)?;
        }
        Ok(())
    }
}

/// The likeliest of them.
fn likeliest_of(starts: &[Start]) -> Option<&Start> {
    starts.iter().max_by(|a, b| a.variances.value.total_cmp(&b.variances.value))
}

/// Length scales of a shape at which the median distance of rows is so large.
fn at_distance(base: &Array2<f64>, shape: &[f64], distance: f64) -> Option<Vec<f64>> {
    let median = median_distance((base / &ndarray::aview1(shape)).view(), Seed::new(0), 500).ok()?;
    Some(shape.iter().map(|s| s * median / distance).collect())
}

/// How much each input matters at a point, in units of its deviation.
fn relevances(level: &dyn Objective, point: &[f64], deviations: &[f64]) -> Result<Option<Vec<f64>>> {
    match level.relevances(point) {
        Ok(relevances) => Ok(Some(relevances.iter().zip(deviations).map(|(r, s)| r * s).collect())),
        Err(Error::NotPositiveDefinite { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Standard deviations of columns; 1 where a column is constant.
fn deviations(base: &Array2<f64>) -> Vec<f64> {
    base.std_axis(Axis(0), 0.0).into_iter().map(|s| if s > 0.0 && s.is_finite() { s } else { 1.0 }).collect()
}

/// Length scales of columns over their deviations in inverse proportion to relevances.
fn shape(relevances: &[f64], deviations: &[f64]) -> Option<Vec<f64>> {
    let largest = relevances.iter().fold(0.0f64, |a, r| a.max(*r));
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    let scale = |(r, s): (&f64, &f64)| s * largest / r.max(LEAST_RELEVANCE * largest);
    Some(relevances.iter().zip(deviations).map(scale).collect())
}

/// Columns up to which all pairs of them are looked at.
const MOST_PAIRED: usize = 200;

/// What an input says of the targets alone, by polynomials of degree 3, and beside each other input, by products: of a product of
/// two inputs neither a linear model nor one of either input sees anything.
fn paired_relevances(base: &Array2<f64>, heads: &[Head]) -> Option<Vec<f64>> {
    let (n, d) = base.dim();
    if n < 50 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n as f64;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / n as f64;
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for targets in heads.iter().flat_map(|head| head.targets.columns()) {
        let values: Vec<f64> = targets.to_vec();
        let centre = mean(&values);
        let centred: Vec<f64> = values.iter().map(|z| z - centre).collect();
        let length = dot(&centred, &centred).sqrt();
        if length > 0.0 {
            columns.push(centred.into_iter().map(|z| z / length).collect());
        }
    }
    // Orthonormal polynomials of degrees 1 to 3 of every input on these rows, of values that outliers do not rule.
    let polynomials = |j: usize| -> Vec<Vec<f64>> {
        let column = base.column(j).to_vec();
        let centre = mean(&column);
        let deviation = mean(&column.iter().map(|x| (x - centre) * (x - centre)).collect::<Vec<_>>()).sqrt();
        let mut basis = vec![vec![1.0; n]];
        if deviation > 0.0 {
            for degree in 1..=3 {
                let mut power: Vec<f64> =
                    column.iter().map(|x| libm::tanh((x - centre) / deviation).powi(degree)).collect();
                for known in &basis {
                    let along = dot(known, &power);
                    power.iter_mut().zip(known).for_each(|(p, k)| *p -= along * k);
                }
                let length = dot(&power, &power).sqrt();
                if length > 1e-6 {
                    power.iter_mut().for_each(|p| *p /= length);
                    basis.push(power);
                }
            }
        }
        basis.remove(0);
        basis
    };
    let bases: Vec<Vec<Vec<f64>>> = (0..d).map(polynomials).collect();
    // Shares of the variance less what chance says: k squares of it have the mean k/n and the deviation √(2k)/n.
    let said = |sum: f64, terms: usize, deviations: f64| -> f64 {
        let terms = terms as f64;
        (sum - (terms + deviations * (2.0 * terms).sqrt()) / n as f64).max(0.0)
    };
    let mut shares = vec![0.0; d];
    for targets in &columns {
        for (share, basis) in shares.iter_mut().zip(&bases) {
            let sum: f64 = basis.iter().map(|b| dot(b, targets).powi(2)).sum();
            *share += said(sum, basis.len(), 3.0);
        }
        if d > MOST_PAIRED {
            continue;
        }
        for j in 0..d {
            for first in bases[j].iter().take(2) {
                let times: Vec<f64> = first.iter().zip(targets).map(|(a, z)| a * z).collect();
                for k in j + 1..d {
                    let basis = &bases[k][..bases[k].len().min(2)];
                    let sum: f64 = basis.iter().map(|b| dot(b, &times).powi(2)).sum();
                    let share = said(sum, basis.len(), 6.0);
                    shares[j] += share;
                    shares[k] += share;
                }
            }
        }
    }
    Some(shares.into_iter().map(f64::sqrt).collect())
}

/// Coefficients of a linear model of columns over their deviations.
fn linear_relevances(base: &Array2<f64>, heads: &[Head]) -> Option<Vec<f64>> {
    let (n, d) = base.dim();
    let centred = (base - &base.mean_axis(Axis(0))?) / ndarray::aview1(&deviations(base));
    let mut gram = Lower::<f64>::zeros(d).ok()?;
    let rows = centred.as_standard_layout();
    gram.add_gram(crate::linalg::Tile::new(rows.as_slice()?, n, d), &mut Workspace::new());
    let most = gram.diagonal().fold(0.0f64, f64::max);
    gram.add_to_diagonal(1e-3 * most.max(f64::MIN_POSITIVE));
    let factor = Cholesky::new(gram).ok()?;
    let mut squares = vec![0.0; d];
    for head in heads {
        let mut solved = centred.t().dot(&head.targets).as_standard_layout().into_owned();
        let outputs = solved.ncols();
        factor.solve_in_place(TileMut::new(solved.as_slice_mut()?, d, outputs)).ok()?;
        for (square, row) in squares.iter_mut().zip(solved.rows()) {
            *square += row.dot(&row);
        }
    }
    Some(squares.into_iter().map(f64::sqrt).collect())
}
