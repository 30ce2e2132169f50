use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::{Describe, DynMap, FeatureMap, Spec};
use crate::interrupt;
use crate::linalg::{Eigen, Lower};
use crate::model::validation::{smallest, squared_losses};
use crate::model::{Fitted, Ridge, RidgeModel};
use crate::parameter::{Value, words};
use crate::preprocess::{self, ColumnStatistics, median_distance};
use crate::random::{Role, Seed, Stream};
use crate::rows::{Counted, InMemory, RowBlock, RowSource, check_finite};
use ndarray::{Array1, Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

words! {
    /// Which linear maps of rows are learned.
    pub enum MetricForm {
        /// Any: directions that matter are stretched, whatever their angle to the columns.
        Full = "full",
        /// One factor for each column.
        Diagonal = "diagonal",
    }
}

/// Learns in which directions rows differ: a linear map `x ↦ Lx` after which distances mean more to a ridge regression on features.
///
/// With a ridge regression `f(x) = βᵀφ(Lx)` the mean of `∇f ∇fᵀ` over the rows, `M`, says how much every direction matters. `L`
/// becomes a root of `M/mean diag(M) + εI` and the regression is fitted again, with its length scale and penalty searched anew on
/// held-out rows. The iterate with the smallest loss on those rows is kept: later ones may be worse.
///
/// # Cost
/// A fit for each of four length scales and one pass of pullbacks, `n d²` for `M`, in each iteration.
///
/// # References
/// Radhakrishnan et al. 2024 (recursive feature machines).
///
/// ```
/// use bochner::tune::MetricSearch;
/// use ndarray::{Array2, Axis};
/// // Only one direction out of six matters.
/// let rows = Array2::from_shape_fn((400, 6), |(i, j)| ((i * 7 + j * 13) as f64 * 0.61 + (i * i) as f64 * 0.017 * (j + 1) as f64).sin());
/// let along = rows.column(0).to_owned() + &rows.column(3);
/// let targets = along.mapv(|v| (2.0 * v).sin()).insert_axis(Axis(1));
/// let found = MetricSearch { seed: 1, ..MetricSearch::default() }.run(rows.view(), targets.view())?;
/// let importances = found.importances();
/// assert!(importances[0].min(importances[3]) > 5.0 * importances[1].max(importances[5]));
/// assert!(found.losses[found.best] <= found.losses[0]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MetricSearch {
    /// The map of the ridge regression that learns; its length scale is where the search starts.
    pub features: Spec,
    /// Which linear maps are learned.
    pub form: MetricForm,
    /// Most iterations.
    pub max_iter: usize,
    /// Share of the rows on which iterates are compared.
    pub held_out: f64,
    /// Rows that gradients are taken at, and that fits are made on, at most.
    pub max_rows: usize,
    /// Where splits and features are drawn from.
    pub seed: u64,
}

impl Default for MetricSearch {
    fn default() -> Self {
        let features = Spec::named("fourier").expect("it is listed");
        let features = features.with("length_scale", "median".into()).expect("a length scale");
        MetricSearch { features, form: MetricForm::Full, max_iter: 8, held_out: 0.2, max_rows: 20_000, seed: 0 }
    }
}

/// A learned linear map of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedMetric {
    /// `L`, one row per new column.
    pub transform: Vec<Vec<f64>>,
    /// Mean squared errors on held-out rows, in units of the variance of the targets: of rows as they are, then after every
    /// iteration.
    pub losses: Vec<f64>,
    /// Which of them is the smallest.
    pub best: usize,
    /// The length scale of the map at the best iterate.
    pub length_scale: f64,
    /// The penalty of the regression there.
    pub penalty: f64,
}

/// Shares of the penalty in the mean of the squared features that are tried: `α = share · n`.
const PENALTIES: [f64; 9] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// Added to the metric in units of its mean diagonal: directions that did not matter to one iterate may matter to the next.
const FLOOR: f64 = 1e-3;

/// Gradients are those of a regression with at most this share: where only a few of many columns matter, a constant predicts
/// held-out rows best at first, and has no gradients, while a regression that follows its rows too closely already leans to the
/// columns that matter. On pumadyn32nm the error on held-out rows stayed at 0.98 without this, and went to 0.21 with it, for
/// shares from 1e-6 to 1e-3.
const FOLLOWING: f64 = 1e-4;

/// Multiples of the median distance that are tried as length scales, the ones to prefer first: another one must be better by a
/// thousandth.
const SCALES: [f64; 4] = [0.5, 1.0, 0.25, 2.0];
const BETTER: f64 = 0.999;

/// Iterations without a better one after which the search ends.
const PATIENCE: usize = 3;

impl LearnedMetric {
    /// `L` as an array.
    pub fn matrix(&self) -> Array2<f64> {
        let columns = self.transform.first().map_or(0, Vec::len);
        Array2::from_shape_fn((self.transform.len(), columns), |(i, j)| self.transform[i][j])
    }

    /// `LᵀL`: squared distances after the map are `(x − y)ᵀ LᵀL (x − y)`.
    pub fn metric(&self) -> Array2<f64> {
        let matrix = self.matrix();
        matrix.t().dot(&matrix)
    }

    /// The diagonal of the metric over its sum: how much of the metric is about each column.
    pub fn importances(&self) -> Vec<f64> {
        let diagonal = self.metric().diag().to_owned();
        let sum = diagonal.sum();
        diagonal.iter().map(|v| v / sum).collect()
    }

    /// Rows in the learned metric.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn apply(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let mut rows = rows.to_owned();
        self.step()?.apply(rows.view_mut())?;
        Ok(rows)
    }

    /// The same as a step of preparation, which model files keep.
    ///
    /// # Errors
    /// A matrix that is not square or not finite.
    pub fn step(&self) -> Result<preprocess::Metric> {
        preprocess::Metric::new(self.transform.clone())
    }
}

/// An iterate: its loss on held-out rows, and the regression whose gradients are taken.
struct Trial {
    loss: f64,
    length_scale: f64,
    share: f64,
    model: RidgeModel<DynMap<f64>>,
}

/// Rows and targets of one part of the split.
struct Part {
    rows: Array2<f64>,
    targets: Array2<f64>,
}

impl MetricSearch {
    /// Learns from rows and targets, of at most [`max_rows`](Self::max_rows); classes come as one column of numbers each.
    ///
    /// # Errors
    /// Fewer than ten rows, shapes that do not fit, NaN or infinities, a map without derivatives.
    pub fn run(&self, rows: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<LearnedMetric> {
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        check_finite("rows", rows, 0)?;
        check_finite("targets", targets, 0)?;
        self.check(rows.nrows(), rows.ncols(), targets.ncols())?;
        let order = Stream::new(Seed::new(self.seed), Role::Split, 0).permutation(rows.nrows());
        let order: Vec<usize> = order.into_iter().map(|i| i as usize).take(self.max_rows.max(10)).collect();
        let (held_out, train) = order.split_at(self.judging(order.len()));
        let units = Units::of(targets);
        let part = |chosen: &[usize]| Part {
            rows: rows.select(Axis(0), chosen),
            targets: units.of_targets(targets.select(Axis(0), chosen)),
        };
        self.learn(&mut Kept(part(train)), &part(held_out), rows.nrows())
    }

    /// Learns from a stream of any length, in two passes an iteration and one before them: sums of the features of all length
    /// scales, then the outer products of the best one's gradients. At most [`max_rows`](Self::max_rows) times
    /// [`held_out`](Self::held_out) rows, drawn at random, are kept to compare iterates on.
    ///
    /// ```
    /// use bochner::context::Context;
    /// use bochner::rows::InMemory;
    /// use bochner::tune::MetricSearch;
    /// use ndarray::{Array2, Axis};
    /// let rows = Array2::from_shape_fn((600, 3), |(i, j)| ((i * 7 + j * 13) as f64 * 0.61 + (i * i * (j + 1)) as f64 * 0.017).sin());
    /// let targets = rows.column(1).mapv(|v| (3.0 * v).sin()).insert_axis(Axis(1));
    /// let search = MetricSearch::default();
    /// let search = MetricSearch { max_iter: 2, features: search.features.with("n_components", 128usize.into())?, ..search };
    /// let found = search.run_stream(&mut InMemory::new(rows.view(), targets.view())?, &mut Context::default())?;
    /// let importances = found.importances();
    /// assert!(importances[1] > 5.0 * importances[0].max(importances[2]));
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run), those of the source, and sums that do not fit into the context's budget.
    pub fn run_stream(&self, source: &mut dyn RowSource<f64>, context: &mut Context<'_>) -> Result<LearnedMetric> {
        let most = ((self.max_rows as f64 * self.held_out) as usize).max(1);
        let mut source = Counted::new(source);
        let (d, outputs) = (source.input_dim(), source.target_dim());
        // The rows with the smallest random keys, in order of these: the first of them are a fair draw as well.
        let mut kept: BTreeMap<(u64, usize), (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        let mut seen = ColumnStatistics::new(outputs);
        let mut count = 0;
        let mut keys = Stream::new(Seed::new(self.seed), Role::Split, 1);
        let mut look = |block: RowBlock<'_, f64>| -> Result<()> {
            check_finite("rows", block.rows, count)?;
            check_finite("targets", block.targets, count)?;
            seen.push(block.targets)?;
            for (row, targets) in block.rows.rows().into_iter().zip(block.targets.rows()) {
                let key = (keys.next_u64(), count);
                if kept.len() < most || kept.last_key_value().is_some_and(|(last, _)| key < *last) {
                    kept.insert(key, (row.to_vec(), targets.to_vec()));
                }
                if kept.len() > most {
                    kept.pop_last();
                }
                count += 1;
            }
            Ok(())
        };
        context.fit(&mut source, |source, _| source.for_each_block(&mut look))?;
        self.check(count, d, outputs)?;
        let units = Units::new(seen.mean().to_vec(), (0..outputs).map(|j| seen.variance(j)));
        let judging = self.judging(count).min(kept.len());
        let mut left_out: Vec<usize> = kept.keys().take(judging).map(|(_, row)| *row).collect();
        left_out.sort_unstable();
        let mut held_out = Part { rows: Array2::zeros((judging, d)), targets: Array2::zeros((judging, outputs)) };
        for (i, (row, targets)) in kept.into_values().take(judging).enumerate() {
            held_out.rows.row_mut(i).assign(&ndarray::aview1(&row));
            held_out.targets.row_mut(i).assign(&ndarray::aview1(&targets));
        }
        held_out.targets = units.of_targets(held_out.targets);
        self.learn(&mut Passing { source: &mut source, left_out, units, context }, &held_out, count)
    }

    fn check(&self, rows: usize, columns: usize, targets: usize) -> Result<()> {
        check_count("max_iter", self.max_iter)?;
        if rows < 10 || columns == 0 || targets == 0 {
            let found = format!("{rows} by {columns}");
            return Err(Error::parameter("rows", "at least ten, with a column and a target", found));
        }
        if !(self.held_out > 0.0 && self.held_out < 1.0) {
            return Err(Error::parameter("held_out", "above 0 and below 1", self.held_out));
        }
        Ok(())
    }

    /// How many of so many rows are held out.
    fn judging(&self, rows: usize) -> usize {
        ((rows as f64 * self.held_out) as usize).clamp(1, rows - 1)
    }

    fn learn(&self, train: &mut dyn Training, test: &Part, rows: usize) -> Result<LearnedMetric> {
        let mut transform: Array2<f64> = Array2::eye(test.rows.ncols());
        let scale = self.features.get("length_scale").and_then(|value| value.number());
        let median = |rows: &Array2<f64>| median_distance(rows.view(), Seed::new(self.seed), 1000);
        let start = scale.map_or_else(|| median(train.sample(test)), Ok)?;
        let mut trial = self.best_scale(train, test, &transform, start)?;
        let mut losses = vec![trial.loss];
        let mut kept = (0, transform.clone(), trial.length_scale, trial.share);
        for iteration in 1..=self.max_iter {
            interrupt::check()?;
            let metric = outer_products(train, &trial.model, &transform)?;
            let Some(next) = root(metric, self.form)? else { break };
            transform = next;
            // Distances have changed altogether: the median of the new ones is where to look, by the factor found before.
            let start = median(&train.sample(test).dot(&transform.t()))?;
            trial = self.best_scale(train, test, &transform, start)?;
            losses.push(trial.loss);
            if trial.loss < losses[kept.0] {
                kept = (iteration, transform.clone(), trial.length_scale, trial.share);
            }
            if iteration - kept.0 >= PATIENCE {
                break;
            }
        }
        let (best, transform, length_scale, share) = kept;
        let transform = transform.rows().into_iter().map(|row| row.to_vec()).collect();
        Ok(LearnedMetric { transform, losses, best, length_scale, penalty: share * rows as f64 })
    }

    /// The best of some length scales, each with its best penalty.
    fn best_scale(&self, train: &mut dyn Training, test: &Part, transform: &Array2<f64>, start: f64) -> Result<Trial> {
        let scales = if self.features.get("length_scale").is_some() { &SCALES[..] } else { &SCALES[..1] };
        let sample = train.sample(test).dot(&transform.t());
        let mut ridges = Vec::new();
        for factor in scales {
            let spec = self.features.with("seed", Value::from(self.seed))?;
            let spec = match spec.get("length_scale") {
                Some(_) => spec.with("length_scale", (start * factor).into())?,
                None => spec,
            };
            let map = spec.resolve(sample.view())?.build::<f64>(sample.ncols())?;
            map.check_pullback()?;
            ridges.push(Ridge::new(map, 0.0)?);
        }
        let held_out = test.rows.dot(&transform.t());
        let mut best: Option<Trial> = None;
        let mut compare = |index: usize, mut models: Vec<RidgeModel<DynMap<f64>>>| -> Result<()> {
            interrupt::check()?;
            let losses = squared_losses(&models, &mut InMemory::new(held_out.view(), test.targets.view())?)?;
            let at = smallest(&losses);
            if best.as_ref().is_none_or(|best| losses[at] < BETTER * best.loss) {
                // Penalties rise.
                let followed = PENALTIES.iter().rposition(|share| *share <= FOLLOWING).unwrap_or(0);
                let (loss, length_scale) = (losses[at], start * SCALES[index]);
                let model = models.swap_remove(at.min(followed));
                best = Some(Trial { loss, length_scale, share: PENALTIES[at], model });
            }
            Ok(())
        };
        train.paths(&ridges, transform, &mut compare)?;
        best.ok_or_else(|| Error::parameter("length scales", "at least one", "none"))
    }
}

/// `Lᵀ (mean of Σ ∇g ∇gᵀ) L` over rows `Lx` and targets, `g` the regression of those rows.
fn outer_products(
    train: &mut dyn Training,
    model: &RidgeModel<DynMap<f64>>,
    transform: &Array2<f64>,
) -> Result<Array2<f64>> {
    let d = transform.nrows();
    let (mut sum, mut count): (Array2<f64>, usize) = (Array2::zeros((d, d)), 0);
    train.rows(transform, &mut |rows| {
        for piece in rows.axis_chunks_iter(Axis(0), 2048) {
            interrupt::check()?;
            let gradients = model.gradients(piece)?;
            let (n, targets, inputs) = gradients.dim();
            let flat = gradients.into_shape_with_order((n * targets, inputs)).expect("standard layout");
            sum += &flat.t().dot(&flat);
            count += n;
        }
        Ok(())
    })?;
    Ok(transform.t().dot(&sum).dot(transform) / count as f64)
}

/// What targets are measured in: about their means, over one spread for all. Classes keep the sizes they were coded with beside
/// each other.
struct Units {
    means: Vec<f64>,
    spread: f64,
}

impl Units {
    fn new(means: Vec<f64>, variances: impl Iterator<Item = f64>) -> Self {
        // Targets that are all the same count as 1.
        let variances: Vec<f64> = variances.map(|v| if v > 0.0 { v } else { 1.0 }).collect();
        Units { means, spread: (variances.iter().sum::<f64>() / variances.len() as f64).sqrt() }
    }

    fn of(targets: ArrayView2<'_, f64>) -> Self {
        let means = targets.mean_axis(Axis(0)).expect("there are rows").to_vec();
        Units::new(means, targets.std_axis(Axis(0), 0.0).into_iter().map(|s| s * s))
    }

    fn of_targets(&self, targets: Array2<f64>) -> Array2<f64> {
        (targets - ndarray::aview1(&self.means)) / self.spread
    }
}

/// Takes the number of a regression and its models for all penalties.
type Compare<'a> = &'a mut dyn FnMut(usize, Vec<RidgeModel<DynMap<f64>>>) -> Result<()>;

/// Rows that regressions are fitted to, kept or read again.
trait Training {
    /// Rows that say how far rows are apart.
    fn sample<'a>(&'a self, test: &'a Part) -> &'a Array2<f64>;
    /// Models of all regressions on rows times a matrix.
    fn paths(&mut self, ridges: &[Ridge<DynMap<f64>>], transform: &Array2<f64>, then: Compare<'_>) -> Result<()>;
    /// All rows, times a matrix.
    fn rows(&mut self, transform: &Array2<f64>, visit: &mut dyn FnMut(ArrayView2<'_, f64>) -> Result<()>)
    -> Result<()>;
}

/// Penalties for so many rows.
fn penalties(rows: usize) -> Vec<f64> {
    PENALTIES.iter().map(|share| share * rows as f64).collect()
}

struct Kept(Part);

impl Training for Kept {
    fn sample<'a>(&'a self, _: &'a Part) -> &'a Array2<f64> {
        &self.0.rows
    }

    fn paths(&mut self, ridges: &[Ridge<DynMap<f64>>], transform: &Array2<f64>, then: Compare<'_>) -> Result<()> {
        let rows = self.0.rows.dot(&transform.t());
        for (index, ridge) in ridges.iter().enumerate() {
            let mut source = InMemory::new(rows.view(), self.0.targets.view())?;
            then(index, ridge.fit_path(&penalties(rows.nrows()), &mut source, &mut Context::default())?)?;
        }
        Ok(())
    }

    fn rows(
        &mut self,
        transform: &Array2<f64>,
        visit: &mut dyn FnMut(ArrayView2<'_, f64>) -> Result<()>,
    ) -> Result<()> {
        visit(self.0.rows.dot(&transform.t()).view())
    }
}

struct Passing<'a, 'b, 'c> {
    source: &'a mut Counted<'b, f64>,
    /// In increasing order.
    left_out: Vec<usize>,
    units: Units,
    context: &'a mut Context<'c>,
}

impl Passing<'_, '_, '_> {
    /// All blocks without the rows that are left out, which keep their order.
    fn pass(&mut self, visit: &mut dyn FnMut(Array2<f64>, Array2<f64>) -> Result<()>) -> Result<()> {
        let Passing { source, left_out, units, context } = self;
        context.fit(&mut **source, |source, _| {
            let (mut first, mut next) = (0, 0);
            source.for_each_block(&mut |block| {
                let last = first + block.rows.nrows();
                let mut chosen = Vec::with_capacity(last - first);
                for row in first..last {
                    if left_out.get(next) == Some(&row) {
                        next += 1;
                    } else {
                        chosen.push(row - first);
                    }
                }
                first = last;
                let targets = units.of_targets(block.targets.select(Axis(0), &chosen));
                visit(block.rows.select(Axis(0), &chosen), targets)
            })
        })
    }
}

impl Training for Passing<'_, '_, '_> {
    fn sample<'a>(&'a self, test: &'a Part) -> &'a Array2<f64> {
        &test.rows
    }

    fn paths(&mut self, ridges: &[Ridge<DynMap<f64>>], transform: &Array2<f64>, then: Compare<'_>) -> Result<()> {
        let outputs = self.units.means.len();
        let sums: Result<Vec<_>> = ridges.iter().map(|ridge| ridge.accumulator(outputs, &*self.context)).collect();
        let (mut sums, mut count) = (sums?, 0);
        self.pass(&mut |rows, targets| {
            count += rows.nrows();
            let moved = rows.dot(&transform.t());
            let block = RowBlock { rows: moved.view(), targets: targets.view(), weights: None };
            ridges.iter().zip(&mut sums).try_for_each(|(ridge, sums)| sums.push_rows(ridge.map(), block))
        })?;
        for (index, (ridge, sums)) in ridges.iter().zip(sums).enumerate() {
            then(index, ridge.fit_path_moments(&penalties(count), sums.finish(), self.context)?)?;
        }
        Ok(())
    }

    fn rows(
        &mut self,
        transform: &Array2<f64>,
        visit: &mut dyn FnMut(ArrayView2<'_, f64>) -> Result<()>,
    ) -> Result<()> {
        self.pass(&mut |rows, _| visit(rows.dot(&transform.t()).view()))
    }
}

/// `L` with `LᵀL = M/mean diag(M) + εI`: the symmetric root, or that of the diagonal; `None` where nothing matters.
fn root(mut metric: Array2<f64>, form: MetricForm) -> Result<Option<Array2<f64>>> {
    let d = metric.nrows();
    let mean = metric.diag().sum() / d as f64;
    if !(mean > 0.0 && mean.is_finite()) {
        return Ok(None);
    }
    metric.mapv_inplace(|v| v / mean);
    if form == MetricForm::Diagonal {
        return Ok(Some(Array2::from_diag(&metric.diag().mapv(|v| (v.max(0.0) + FLOOR).sqrt()))));
    }
    let square: Vec<f64> = metric.as_standard_layout().iter().copied().collect();
    let eigen = Eigen::new(Lower::from_square(&square, d)?)?;
    let vectors = ArrayView2::from_shape((d, d), eigen.vectors().as_slice()).expect("a square");
    let lengths: Array1<f64> = eigen.values().iter().map(|v| (v.max(0.0) + FLOOR).sqrt()).collect();
    Ok(Some((&vectors.t() * &lengths).dot(&vectors)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows in blocks of some size, and how often they were read.
    struct Blocks<'a> {
        rows: &'a Array2<f64>,
        targets: &'a Array2<f64>,
        size: usize,
        passes: usize,
    }

    impl RowSource<f64> for Blocks<'_> {
        fn input_dim(&self) -> usize {
            self.rows.ncols()
        }

        fn target_dim(&self) -> usize {
            self.targets.ncols()
        }

        fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, f64>) -> Result<()>) -> Result<()> {
            self.passes += 1;
            let blocks = self.rows.axis_chunks_iter(Axis(0), self.size);
            blocks
                .zip(self.targets.axis_chunks_iter(Axis(0), self.size))
                .try_for_each(|(rows, targets)| visit(RowBlock { rows, targets, weights: None }))
        }
    }

    #[test]
    fn a_stream_is_read_twice_an_iteration_and_blocks_do_not_matter() {
        let mut normals = vec![0.0f64; 500 * 5];
        Stream::new(Seed::new(7), Role::Split, 3).normals_from(0, &mut normals);
        let rows = Array2::from_shape_vec((500, 5), normals).unwrap();
        let targets = Array2::from_shape_fn((500, 1), |(i, _)| 7.0 + 3.0 * f64::sin(2.0 * rows[[i, 1]]) * rows[[i, 4]]);
        let features = MetricSearch::default().features.with("n_components", 96usize.into()).unwrap();
        let search = MetricSearch { features, max_iter: 3, seed: 2, ..MetricSearch::default() };
        let run = |size: usize| {
            let mut source = Blocks { rows: &rows, targets: &targets, size, passes: 0 };
            let found = search.run_stream(&mut source, &mut Context::default()).unwrap();
            // One to see the targets, one for rows as they are, and two an iteration.
            assert_eq!(source.passes, 2 + 2 * (found.losses.len() - 1));
            found
        };
        let (found, other) = (run(500), run(33));
        // Sums in another order.
        for (a, b) in found.transform.iter().flatten().zip(other.transform.iter().flatten()) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        let importances = found.importances();
        assert!(importances[1] + importances[4] > 0.9, "{importances:?}");
        assert!(found.losses[found.best] < 0.8 * found.losses[0], "{:?}", found.losses);
        // Whatever is held out, the same columns matter.
        let kept = search.run(rows.view(), targets.view()).unwrap().importances();
        assert!(kept[1] + kept[4] > 0.9, "{kept:?}");
        let step: crate::preprocess::Preprocess = found.step().unwrap().into();
        let mut moved = rows.clone();
        step.apply(moved.view_mut()).unwrap();
        assert!((&moved - &rows.dot(&found.matrix().t())).iter().all(|e| e.abs() < 1e-12));
    }
}
