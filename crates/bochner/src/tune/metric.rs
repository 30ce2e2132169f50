use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::{Describe, DynMap, FeatureMap, Spec};
use crate::interrupt;
use crate::linalg::{Eigen, Lower};
use crate::model::{Fit, Fitted, Ridge, RidgeModel};
use crate::parameter::{Value, words};
use crate::preprocess::median_distance;
use crate::random::{Role, Seed, Stream};
use crate::rows::{InMemory, check_finite};
use ndarray::{Array1, Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

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
        let matrix = self.matrix();
        check_dim("number of columns of rows", matrix.ncols(), rows.ncols())?;
        Ok(rows.dot(&matrix.t()))
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
    /// Learns from rows and targets; classes come as one column of numbers each.
    ///
    /// # Errors
    /// Fewer than ten rows, shapes that do not fit, NaN or infinities, a map without derivatives.
    pub fn run(&self, rows: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> Result<LearnedMetric> {
        check_count("max_iter", self.max_iter)?;
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        check_finite("rows", rows, 0)?;
        check_finite("targets", targets, 0)?;
        if rows.nrows() < 10 || rows.ncols() == 0 || targets.ncols() == 0 {
            let found = format!("{} by {}", rows.nrows(), rows.ncols());
            return Err(Error::parameter("rows", "at least ten, with a column and a target", found));
        }
        if !(self.held_out > 0.0 && self.held_out < 1.0) {
            return Err(Error::parameter("held_out", "above 0 and below 1", self.held_out));
        }
        let (train, test) = self.split(rows, targets);
        let d = rows.ncols();
        let mut transform: Array2<f64> = Array2::eye(d);
        let scale = self.features.get("length_scale").and_then(|value| value.number());
        let start = match scale {
            Some(scale) => scale,
            None => median_distance(train.rows.view(), Seed::new(self.seed), 1000)?,
        };
        let mut trial = self.best_scale(&train, &test, start)?;
        let mut losses = vec![trial.loss];
        let mut kept = (0, transform.clone(), trial.length_scale, trial.share);
        let scaled = |part: &Part, transform: &Array2<f64>| Part {
            rows: part.rows.dot(&transform.t()),
            targets: part.targets.clone(),
        };
        for iteration in 1..=self.max_iter {
            interrupt::check()?;
            let inner = scaled(&train, &transform);
            let metric = self.outer_products(&trial.model, inner.rows.view(), &transform)?;
            let Some(next) = root(metric, self.form)? else { break };
            transform = next;
            let (inner, outer) = (scaled(&train, &transform), scaled(&test, &transform));
            // Distances have changed altogether: the median of the new ones is where to look, by the factor found before.
            let median = median_distance(inner.rows.view(), Seed::new(self.seed), 1000)?;
            trial = self.best_scale(&inner, &outer, median)?;
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
        Ok(LearnedMetric { transform, losses, best, length_scale, penalty: share * rows.nrows() as f64 })
    }

    /// Rows to fit to and rows to compare on, with targets of mean 0 and variance 1.
    fn split(&self, rows: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>) -> (Part, Part) {
        let n = rows.nrows();
        let order = Stream::new(Seed::new(self.seed), Role::Split, 0).permutation(n);
        let order: Vec<usize> = order.into_iter().map(|i| i as usize).take(self.max_rows.max(10)).collect();
        let held_out = ((order.len() as f64 * self.held_out) as usize).clamp(1, order.len() - 1);
        let mean = targets.mean_axis(Axis(0)).expect("there are rows");
        let spread = targets.std_axis(Axis(0), 0.0).mapv(|s| if s > 0.0 { s } else { 1.0 });
        // Classes keep the sizes they were coded with beside each other: one spread for all.
        let spread = (spread.mapv(|s| s * s).sum() / spread.len() as f64).sqrt();
        let part = |chosen: &[usize]| Part {
            rows: rows.select(Axis(0), chosen),
            targets: (targets.select(Axis(0), chosen) - &mean) / spread,
        };
        (part(&order[held_out..]), part(&order[..held_out]))
    }

    /// The best of some length scales, each with its best penalty.
    fn best_scale(&self, train: &Part, test: &Part, start: f64) -> Result<Trial> {
        let mut best: Option<Trial> = None;
        for factor in SCALES {
            interrupt::check()?;
            let length_scale = start * factor;
            let spec = self.features.with("seed", Value::from(self.seed))?;
            let spec =
                if spec.get("length_scale").is_some() { spec.with("length_scale", length_scale.into())? } else { spec };
            let map = spec.resolve(train.rows.view())?.build::<f64>(train.rows.ncols())?;
            map.check_pullback()?;
            let n = train.rows.nrows() as f64;
            let penalties: Vec<f64> = PENALTIES.iter().map(|share| share * n).collect();
            let ridge = Ridge::new(map, 0.0)?;
            let found = ridge.validate(
                &penalties,
                &mut InMemory::new(train.rows.view(), train.targets.view())?,
                &mut InMemory::new(test.rows.view(), test.targets.view())?,
                &mut Context::default(),
            )?;
            let loss = found.losses[found.best];
            if best.as_ref().is_none_or(|best| loss < BETTER * best.loss) {
                let share = PENALTIES[found.best];
                let model = if share > FOLLOWING {
                    Ridge::new(ridge.map().clone(), FOLLOWING * n)?.fit(train.rows.view(), train.targets.view())?
                } else {
                    found.model
                };
                best = Some(Trial { loss, length_scale, share, model });
            }
            if spec.get("length_scale").is_none() {
                break;
            }
        }
        best.ok_or_else(|| Error::parameter("length scales", "at least one", "none"))
    }

    /// `Lᵀ (mean of Σ ∇g ∇gᵀ) L` over rows `Lx` and targets, `g` the regression of those rows.
    fn outer_products(
        &self,
        model: &RidgeModel<DynMap<f64>>,
        rows: ArrayView2<'_, f64>,
        transform: &Array2<f64>,
    ) -> Result<Array2<f64>> {
        let d = rows.ncols();
        let mut sum: Array2<f64> = Array2::zeros((d, d));
        for piece in rows.axis_chunks_iter(Axis(0), 2048) {
            interrupt::check()?;
            let gradients = model.gradients(piece)?;
            let (n, targets, inputs) = gradients.dim();
            let flat = gradients.into_shape_with_order((n * targets, inputs)).expect("standard layout");
            sum += &flat.t().dot(&flat);
        }
        Ok(transform.t().dot(&sum).dot(transform) / rows.nrows() as f64)
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
