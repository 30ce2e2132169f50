//! Length scale, number of features and penalty, chosen on rows that were held out.
//!
//! The time a fit may take is counted in operations and not by a clock: the same command gives the same model on every
//! machine, however busy it is.

use crate::description::{Description, OperatorWish, spec_from};
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::models::{self, Family, Job, Kind};
use crate::pipeline::{Part, Pipeline, Task};
use crate::progress::Progress;
use bochner::accumulate::Gram;
use bochner::feature::{Describe, FeatureMap, FourierKernel, MaclaurinSpec, Spec};
use bochner::kernel::{Any, Gaussian, Laplacian, Matern};
use bochner::metrics::class_negative_log_likelihood;
use bochner::model::{Fit, Predict, RidgeClassifier};
use bochner::preprocess::{LengthScale, median_distance};
use bochner::random::Seed;
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::solve::Solver;
use ndarray::{Array2, ArrayView2, s};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the user has decided, and limits on the rest.
#[derive(Debug, Clone)]
pub(crate) struct Wishes {
    /// Description of the map without a number of features.
    pub(crate) map: serde_json::Map<String, Value>,
    pub(crate) features: Option<usize>,
    pub(crate) penalty: Option<f64>,
    /// Seconds.
    pub(crate) budget: f64,
    pub(crate) memory: Option<u64>,
    /// Rows of the final fit.
    pub(crate) rows: usize,
    pub(crate) seed: Seed,
    /// The operator-valued kernel, where there is one.
    pub(crate) operator: Option<OperatorWish>,
    /// Factors a model keeps: one for a process, one per class for a classification.
    pub(crate) factors: usize,
}

/// What was tried on held-out rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(crate) features: usize,
    pub(crate) length_scale: Option<f64>,
    pub(crate) penalty: f64,
    /// Mean squared error over the variance of the targets, or share of wrong classes.
    pub(crate) loss: f64,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) description: Description,
    pub(crate) penalty: f64,
    /// How the last parameter was chosen, where a search of its own did.
    pub(crate) note: Option<String>,
    pub(crate) trials: Vec<Trial>,
    /// Why there are not more features.
    pub(crate) limit: String,
}

/// Operations per second, about those of two cores of 2020 on these products.
const RATE: f64 = 5e10;
const FIRST: usize = 256;
/// Features tried first where the budget does not allow [`FIRST`], at least.
const FEWEST: usize = 64;
/// Features with which length scales are compared: what suits 512 suits more.
const SCALING: usize = 512;
const LARGEST: usize = 16_384;
const PENALTIES: [f64; 9] = [1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
/// Multiples of the median distance that are tried as length scales.
const FACTORS: [f64; 4] = [0.25, 0.5, 1.0, 2.0];
/// Doublings or halvings beyond them, while the last one tried is the best.
const FURTHER: usize = 3;

/// Seconds of choosing a penalty with `d` features on `tried` rows, and of the last fit on `rows` rows.
fn seconds(d: usize, tried: usize, rows: usize) -> (f64, f64) {
    let (d, tried, rows) = (d as f64, tried as f64, rows as f64);
    let cube = d * d * d / 3.0;
    ((tried * d * d + PENALTIES.len() as f64 * cube) / RATE, (rows * d * d + 2.0 * cube) / RATE)
}

/// Bytes of a fit with `d` features, sums kept twice.
pub(crate) fn bytes<R: Real>(d: usize, outputs: usize) -> u64 {
    Gram::<R>::bytes(d, outputs).saturating_mul(2)
}

/// Bytes that the factors of a process may take on the disk where nobody says how many.
const LARGEST_FACTORS: usize = 1 << 28;

impl Wishes {
    fn spec(&self, features: usize, length_scale: Option<Value>) -> Outcome<Spec> {
        let mut map = self.map.clone();
        map.insert("n_components".into(), features.into());
        if let Some(scale) = length_scale {
            map.insert("length_scale".into(), scale);
        }
        spec_from(map)
    }

    /// The median distance of two rows, where the map has a length scale that nobody has decided.
    fn median(&self, features: usize, sample: ArrayView2<'_, f64>) -> Outcome<Option<f64>> {
        if self.map.get("length_scale").is_some_and(|v| !v.is_string()) {
            return Ok(None);
        }
        if self.operator.is_some() {
            return Ok(Some(median_distance(sample, self.seed, 1000)?));
        }
        let probe = self.spec(features, None)?;
        if !serde_json::to_value(&probe).is_ok_and(|v| v.get("length_scale").is_some()) {
            return Ok(None);
        }
        match self.spec(features, Some("median".into())) {
            Ok(spec) => Ok(Description::Map(spec.resolve(sample)?).length_scale()),
            // Some maps know numbers only.
            Err(_) => Ok(Some(median_distance(sample, self.seed, 1000)?)),
        }
    }

    /// What so many features and this length scale make.
    fn describe(&self, features: usize, scale: Option<f64>, sample: ArrayView2<'_, f64>) -> Outcome<Description> {
        match &self.operator {
            Some(wish) => {
                let scale = scale.or_else(|| self.map.get("length_scale")?.as_f64());
                Ok(Description::Operator(wish.spec(features, scale.unwrap_or(1.0))?))
            }
            None => Ok(Description::Map(self.spec(features, scale.map(Value::from))?.resolve(sample)?)),
        }
    }

    /// Seconds of choosing a penalty with `d` features, and of what comes after the choice of their number.
    fn seconds(&self, d: usize, tried: usize) -> (f64, f64) {
        let (now, mut later) = seconds(d, tried, self.rows);
        if self.factors > 1 {
            // A factor per class and `alpha`, then two models of all classes, each with its factors and their inverses.
            let cube = |d: usize| (d as f64).powi(3);
            let each = ALPHAS.len() as f64 * cube(d.min(REFINED_FEATURES)) + 6.0 * cube(d);
            later += self.factors as f64 * each / RATE;
        }
        (now, later)
    }

    /// The largest of `most`, a half of it, … that `fits`, but not less than [`FEWEST`].
    fn shrunk(most: usize, fits: impl Fn(usize) -> bool) -> usize {
        std::iter::successors(Some(most), |d| Some(d / 2)).find(|d| *d <= FEWEST || fits(*d)).unwrap_or(FEWEST)
    }

    /// Features whose factors stay below [`LARGEST_FACTORS`].
    fn most_features(&self) -> usize {
        match self.factors {
            0 => LARGEST,
            factors => LARGEST.min((LARGEST_FACTORS / 4 / factors).isqrt()),
        }
    }
}

/// Trials there may be, for a bar.
pub(crate) fn steps(wishes: &Wishes) -> u64 {
    FACTORS.len() as u64 + if wishes.features.is_some() { 1 } else { 4 }
}

/// Chooses what was not decided; `train` and `held_out` are parts of a sample.
pub(crate) fn choose<R: Real>(
    wishes: &Wishes,
    pipeline: &Pipeline,
    task: Task,
    train: &Part<R>,
    held_out: &Part<R>,
    progress: &Progress,
) -> Outcome<Choice> {
    let tried = train.rows.nrows();
    let blocks = wishes.operator.as_ref().map_or(1, |wish| wish.blocks(train.rows.ncols()));
    let cost = |features: usize| wishes.seconds(blocks * features, tried);
    let affordable = Wishes::shrunk(FIRST, |features| cost(features).0 + cost(features).1 <= wishes.budget);
    let first = wishes.features.unwrap_or(affordable);
    let sample = train.rows.slice(s![..train.rows.nrows().min(2000), ..]).mapv(Real::to_f64);
    let base_scale = wishes.median(first, sample.view())?;
    let asked_median = wishes.map.get("length_scale").is_some_and(Value::is_string);
    let described = |features: usize, scale: Option<f64>| wishes.describe(features, scale, sample.view());
    let too_few = held_out.rows.nrows() < 10 || train.rows.nrows() < 10;
    if too_few || (wishes.penalty.is_some() && wishes.features.is_some() && (base_scale.is_none() || asked_median)) {
        let description = described(first, base_scale)?;
        let penalty = match wishes.penalty {
            Some(penalty) => penalty,
            None => 0.1 * unit_of_penalties(wishes, &description, train)?,
        };
        let limit = if too_few { "too few rows to hold some out".into() } else { "asked for".to_owned() };
        return Ok(Choice { description, penalty, note: None, trials: Vec::new(), limit });
    }
    let mut trials: Vec<Trial> = Vec::new();
    let attempt = |features: usize, scale: Option<f64>, trials: &mut Vec<Trial>| -> Outcome<f64> {
        progress.at(match scale {
            Some(scale) => {
                format!("trying {} features, length scale {}", human::count(features), human::significant(scale, 3))
            }
            None => format!("trying {} features", human::count(features)),
        })?;
        let description = described(features, scale)?;
        let (penalty, loss) = validate(wishes, pipeline, task, &description, train, held_out)?;
        progress.done(1)?;
        trials.push(Trial { features, length_scale: scale, penalty, loss });
        Ok(loss)
    };
    // The length scale, with few features, in a quarter of the time.
    let mut scale = base_scale;
    let small = match wishes.features {
        Some(features) => features.min(SCALING),
        None => {
            let trials = (FACTORS.len() + FURTHER) as f64;
            Wishes::shrunk(SCALING, |features| trials * cost(features).0 <= 0.25 * wishes.budget)
        }
    };
    if let (Some(median), false) = (base_scale, asked_median) {
        for factor in FACTORS {
            attempt(small, Some(factor * median), &mut trials)?;
        }
        let (mut shortest, mut longest) = (FACTORS[0] * median, FACTORS[3] * median);
        for _ in 0..FURTHER {
            scale = best(&trials).length_scale;
            let next = if scale == Some(longest) {
                longest *= 2.0;
                longest
            } else if scale == Some(shortest) {
                shortest *= 0.5;
                shortest
            } else {
                break;
            };
            attempt(small, Some(next), &mut trials)?;
        }
        scale = best(&trials).length_scale;
    }
    // The number of features, doubled while it pays.
    let outputs = pipeline.targets.len().max(pipeline.labels.len());
    // The most features that the budget allows to all rows: length scales may have been tried with more.
    let mut allowed = wishes.features.unwrap_or(first);
    let limit = match wishes.features {
        Some(features) => {
            if trials.is_empty() || features != small {
                attempt(features, scale, &mut trials)?;
            }
            "asked for".to_owned()
        }
        None => {
            let mut spent = trials.len() as f64 * cost(small).0;
            let mut features = first;
            let mut last = f64::INFINITY;
            loop {
                let (now, later) = cost(features);
                if features > first {
                    if spent + now + later > wishes.budget {
                        let budget = human::duration(wishes.budget);
                        break format!("{} would take more than the {budget} of --budget", human::count(features));
                    }
                    if wishes.memory.is_some_and(|memory| bytes::<R>(features, outputs) > memory) {
                        break format!("{} would take more than the memory of --memory", human::count(features));
                    }
                    if features > wishes.most_features() && features <= LARGEST {
                        let most = human::bytes(LARGEST_FACTORS as u64);
                        break format!("{} would make a model of more than {most}", human::count(features));
                    }
                    if features > LARGEST || features >= 2 * wishes.rows.next_power_of_two() {
                        break "more would hardly help".into();
                    }
                }
                allowed = features;
                let known = trials.iter().find(|t| t.features == features && t.length_scale == scale).map(|t| t.loss);
                let loss = match known {
                    Some(loss) => loss,
                    None => {
                        spent += now;
                        attempt(features, scale, &mut trials)?
                    }
                };
                if loss > 0.99 * last || loss == 0.0 {
                    break format!("{} did hardly better than {}", human::count(features), human::count(features / 2));
                }
                last = loss;
                features *= 2;
            }
        }
    };
    let winner = match wishes.features {
        Some(features) => trials.iter().rfind(|t| t.features == features && t.length_scale == scale),
        None => None,
    };
    let winner = match winner {
        Some(winner) => winner.clone(),
        None => best(&trials.iter().filter(|t| t.features <= allowed).cloned().collect::<Vec<_>>()).clone(),
    };
    let description = described(winner.features, winner.length_scale)?;
    Ok(Choice { description, penalty: winner.penalty, note: None, trials, limit })
}

/// The smallest loss; of nearly equal ones that with fewer features.
fn best(trials: &[Trial]) -> &Trial {
    let lowest = trials.iter().map(|t| t.loss).fold(f64::INFINITY, f64::min);
    let close = trials.iter().filter(|t| t.loss <= 1.002 * lowest);
    close
        .min_by(|a, b| (a.features, a.loss).partial_cmp(&(b.features, b.loss)).unwrap_or(std::cmp::Ordering::Equal))
        .unwrap_or(&trials[0])
}

/// Mean squared norm of features: penalties are multiples of it.
fn unit_of_penalties<R: Real>(wishes: &Wishes, description: &Description, part: &Part<R>) -> Outcome<f64> {
    if let Some(wish) = &wishes.operator {
        return wish.size(part.rows.ncols(), description.length_scale().unwrap_or(1.0));
    }
    let map = description.spec()?.build::<R>(part.rows.ncols())?;
    let features = map.transform(part.rows.slice(s![..part.rows.nrows().min(256), ..]))?;
    let mean = features.iter().map(|v| Real::to_f64(*v).powi(2)).sum::<f64>() / features.nrows().max(1) as f64;
    Ok(if mean > 0.0 && mean.is_finite() { mean } else { 1.0 })
}

/// A job on a part of the rows.
fn trial_job<'a>(wishes: &Wishes, pipeline: &Pipeline, description: &'a Description, penalty: f64) -> Job<'a> {
    Job {
        description,
        penalty,
        classes: (!pipeline.labels.is_empty()).then(|| pipeline.class_names()),
        targets: pipeline.schema.targets.len(),
        memory: wishes.memory,
        solver: Solver::Auto,
        centroids: 1,
        journal: None,
        seed: wishes.seed,
    }
}

/// The best penalty of a map and its loss on the held-out rows.
fn validate<R: Real>(
    wishes: &Wishes,
    pipeline: &Pipeline,
    task: Task,
    description: &Description,
    train: &Part<R>,
    held_out: &Part<R>,
) -> Outcome<(f64, f64)> {
    let penalties = match wishes.penalty {
        Some(penalty) => vec![penalty],
        None => {
            let unit = unit_of_penalties(wishes, description, train)?;
            PENALTIES.iter().map(|p| p * unit).collect()
        }
    };
    let job = trial_job(wishes, pipeline, description, penalties[0]);
    let mut train_rows = InMemory::new(train.rows.view(), train.targets.view())?;
    let mut held_rows = InMemory::new(held_out.rows.view(), held_out.targets.view())?;
    Ok(match (task, &wishes.operator) {
        (Task::Regression, Some(_)) => {
            let models = job.operator::<R>(train.rows.ncols())?.fit_path(&penalties, &mut train_rows)?;
            let mut best = (penalties[0], f64::INFINITY);
            for (penalty, model) in penalties.iter().zip(models) {
                let residual = model.predict(held_out.rows.view())? - &held_out.targets;
                let loss = residual.iter().map(|v| Real::to_f64(*v).powi(2)).sum::<f64>() / residual.len() as f64;
                if loss < best.1 {
                    best = (*penalty, loss);
                }
            }
            (best.0, best.1 / spread(&held_out.targets))
        }
        (Task::Regression, None) => {
            let ridge = job.ridge::<R>(train.rows.ncols())?;
            let found = ridge.validate(&penalties, &mut train_rows, &mut held_rows)?;
            (penalties[found.best], found.losses[found.best] / spread(&held_out.targets))
        }
        (Task::Classification, _) => {
            let ridge = job.ridge::<R>(train.rows.ncols())?;
            let classifier = RidgeClassifier::new(ridge).with_classes(pipeline.labels.len())?;
            let found = classifier.validate(&penalties, &mut train_rows, &mut held_rows)?;
            (penalties[found.best], found.losses[found.best])
        }
    })
}

/// Values of a Dirichlet transform's `alpha` that are tried.
const ALPHAS: [f64; 6] = [0.3, 0.1, 0.03, 0.01, 0.003, 0.001];
/// Penalties of a machine or of a variational process that are tried.
const FEW_PENALTIES: [f64; 4] = [5.0, 0.5, 0.05, 0.005];
/// Rows and features on which they are tried, at most.
const REFINED_ROWS: usize = 4000;
const REFINED_FEATURES: usize = 1024;
/// Features of a local process around each of its centres.
const LOCAL_FEATURES: usize = 256;

/// Turns what suits a ridge regression into what suits a model of another kind, with a search of its own for the parameter
/// that the two do not share.
pub(crate) fn refine<R: Real>(
    kind: &Kind,
    wishes: &Wishes,
    asked: Option<f64>,
    pipeline: &Pipeline,
    train: &Part<R>,
    held_out: &Part<R>,
    mut choice: Choice,
) -> Outcome<Choice> {
    match kind.option {
        Family::LocalGp => {
            let length_scale = choice.description.length_scale().unwrap_or(1.0);
            let n_components = wishes.features.unwrap_or(LOCAL_FEATURES);
            choice.description = Description::Map(Spec::Maclaurin(MaclaurinSpec {
                n_components,
                length_scale: LengthScale::Same(length_scale),
                seed: wishes.seed.number(),
                ..MaclaurinSpec::default()
            }));
            choice.limit = "around every centre".into();
            return Ok(choice);
        }
        Family::KernelSvm => choice.description = Description::Kernel(exact_kernel(&choice.description)?),
        Family::Gp if kind.task == Task::Classification => {}
        Family::Svi => {}
        _ => return Ok(choice),
    }
    let values: Vec<f64> = match (asked, kind.option) {
        (Some(value), _) => {
            choice.penalty = value;
            return Ok(choice);
        }
        (None, Family::Gp) => ALPHAS.to_vec(),
        (None, Family::Svi) => FEW_PENALTIES.iter().map(|p| 0.2 * p).collect(),
        (None, _) => FEW_PENALTIES.to_vec(),
    };
    if held_out.rows.nrows() < 10 || train.rows.nrows() < 10 {
        choice.penalty = if kind.option == Family::Gp { 0.01 } else { 0.1 };
        return Ok(choice);
    }
    let part = |part: &Part<R>, rows: usize| {
        let range = s![..part.rows.nrows().min(rows), ..];
        (part.rows.slice(range).to_owned(), part.targets.slice(range).to_owned())
    };
    let (rows, targets) = part(train, REFINED_ROWS);
    let (held, labels) = part(held_out, REFINED_ROWS / 4);
    let smaller = match &choice.description {
        Description::Map(spec) => {
            let few = spec.n_components().min(REFINED_FEATURES);
            wishes.describe(few, choice.description.length_scale(), rows.mapv(Real::to_f64).view())?
        }
        other => other.clone(),
    };
    let truth: Vec<usize> = labels.iter().map(|c| Real::to_f64(*c) as usize).collect();
    let mut source = InMemory::new(rows.view(), targets.view())?;
    let mut losses = Vec::new();
    let what = match kind.option {
        Family::Gp => {
            let job = trial_job(wishes, pipeline, &smaller, values[0]);
            let process = models::gp_classifier::<R>(&job, rows.ncols())?;
            let mut held = InMemory::new(held.view(), labels.view())?;
            losses.extend(process.validate(&values, &mut source, &mut held)?.losses);
            "mean negative log likelihood"
        }
        Family::Svi => {
            for &penalty in &values {
                let job = trial_job(wishes, pipeline, &smaller, penalty);
                let model = models::svi::<R>(&job, rows.ncols())?.fit(&mut source)?;
                losses.push(class_negative_log_likelihood(&truth, model.probabilities(held.view())?.view())?);
            }
            "mean negative log likelihood"
        }
        _ => {
            let (rows, targets) = (rows.mapv(Real::to_f64), targets.mapv(Real::to_f64));
            for &penalty in &values {
                let job = trial_job(wishes, pipeline, &smaller, penalty);
                let model = models::kernel_svm(&job, rows.view(), targets.view())?;
                let found = model.predict_classes(held.mapv(Real::to_f64).view())?;
                let wrong = found.iter().zip(&truth).filter(|(a, b)| a != b).count();
                losses.push(wrong as f64 / truth.len() as f64);
            }
            "share of wrong classes"
        }
    };
    // The first of equals: the larger value, the smoother function.
    let best = (0..losses.len()).fold(0, |best, k| if losses[k] < losses[best] { k } else { best });
    choice.penalty = values[best];
    choice.note = Some(format!(
        "{what} {} on {} rows held out, the best of {}",
        human::significant(losses[best], 3),
        human::count(truth.len()),
        values.len()
    ));
    Ok(choice)
}

/// The kernel that a map of Fourier features estimates.
fn exact_kernel(description: &Description) -> Outcome<Any> {
    let Description::Map(Spec::Fourier(spec)) = description else {
        return Err(Failure::Usage(
            "--model kernel-svm has the gaussian, laplacian or matern kernel: leave --map out".into(),
        ));
    };
    let LengthScale::Same(scale) = spec.length_scale else {
        return Err(Failure::Usage("--model kernel-svm has one --length-scale for all columns".into()));
    };
    Ok(match spec.kernel {
        FourierKernel::Gaussian => Gaussian::new(scale)?.into(),
        FourierKernel::Laplacian => Laplacian::new(scale, spec.norm)?.into(),
        FourierKernel::Matern => Matern::new(spec.nu, scale)?.into(),
    })
}

/// Centroids whose processes can be fitted to `rows` rows within so many seconds.
pub(crate) fn most_centroids(features: usize, rows: usize, seconds: f64) -> usize {
    let d = features as f64;
    let each = rows as f64 * d * d + d * d * d / 3.0;
    ((seconds * RATE / each.max(1.0)) as usize).clamp(1, 2000)
}

/// Mean variance of the columns.
fn spread<R: Real>(targets: &Array2<R>) -> f64 {
    let values = targets.mapv(Real::to_f64);
    let variance = values.var_axis(ndarray::Axis(0), 0.0).mean().unwrap_or(1.0);
    if variance > 0.0 { variance } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(rows: usize, factors: usize) -> Wishes {
        Wishes {
            map: serde_json::Map::new(),
            features: None,
            penalty: None,
            budget: 1.0,
            memory: None,
            rows,
            seed: Seed::new(0),
            operator: None,
            factors,
        }
    }

    #[test]
    fn a_process_per_class_costs_more_than_one_ridge_regression() {
        let (one, ten) = (wishes(60_000, 0).seconds(1024, 14_000), wishes(60_000, 10).seconds(1024, 14_000));
        assert_eq!(one.0, ten.0);
        // Measured on two cores: 2 s and 5 s.
        assert!((2.0..4.0).contains(&(ten.1 / one.1)), "{one:?} {ten:?}");
    }

    #[test]
    fn fewer_features_are_tried_where_the_first_ones_do_not_fit() {
        assert_eq!(Wishes::shrunk(FIRST, |_| true), FIRST);
        assert_eq!(Wishes::shrunk(FIRST, |d| d <= 200), 128);
        assert_eq!(Wishes::shrunk(FIRST, |_| false), FEWEST);
    }
}
