//! Length scale, number of features and penalty, chosen on rows that were held out.
//!
//! The time a fit may take is counted in operations and not by a clock: the same command gives the same model on every
//! machine, however busy it is.

use crate::failure::{Failure, Outcome};
use crate::human;
use crate::models::Job;
use crate::pipeline::{Part, Pipeline, Task};
use crate::progress::Progress;
use bochner::accumulate::Gram;
use bochner::feature::{Describe, FeatureMap, Spec};
use bochner::model::RidgeClassifier;
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::solve::Solver;
use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the user has decided, and limits on the rest.
#[derive(Debug)]
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
    pub(crate) spec: Spec,
    pub(crate) penalty: f64,
    pub(crate) trials: Vec<Trial>,
    /// Why there are not more features.
    pub(crate) limit: String,
}

/// Operations per second, about those of two cores of 2020 on these products.
const RATE: f64 = 5e10;
const FIRST: usize = 256;
const LARGEST: usize = 16_384;
const PENALTIES: [f64; 9] = [1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
/// Multiples of the median distance that are tried as length scales.
const FACTORS: [f64; 4] = [0.25, 0.5, 1.0, 2.0];

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

impl Wishes {
    fn spec(&self, features: usize, length_scale: Option<f64>) -> Outcome<Spec> {
        let mut map = self.map.clone();
        map.insert("n_components".into(), features.into());
        if let Some(scale) = length_scale {
            map.insert("length_scale".into(), scale.into());
        }
        spec_from(map)
    }
}

/// The description in a JSON object; unknown names and wrong values are told in a sentence.
pub(crate) fn spec_from(map: serde_json::Map<String, Value>) -> Outcome<Spec> {
    serde_json::from_value(Value::Object(map)).map_err(|e| Failure::Usage(format!("this map cannot be described: {e}")))
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
    let first = wishes.features.unwrap_or(FIRST);
    let sample = train.rows.slice(s![..train.rows.nrows().min(2000), ..]).mapv(Real::to_f64);
    let probe = wishes.spec(first, None)?;
    let has_scale = serde_json::to_value(&probe).is_ok_and(|v| v.get("length_scale").is_some());
    let decided = wishes.map.get("length_scale").is_some_and(|v| !v.is_string());
    let base_scale = match has_scale && !decided {
        true => {
            let mut map = wishes.map.clone();
            map.insert("length_scale".into(), "median".into());
            map.insert("n_components".into(), first.into());
            let resolved = serde_json::to_value(spec_from(map)?.resolve(sample.view())?).unwrap_or_default();
            resolved["length_scale"].as_f64()
        }
        false => None,
    };
    let asked_median = wishes.map.get("length_scale").is_some_and(Value::is_string);
    let resolved = |features: usize, scale: Option<f64>| -> Outcome<Spec> {
        Ok(wishes.spec(features, scale)?.resolve(sample.view())?)
    };
    let too_few = held_out.rows.nrows() < 10 || train.rows.nrows() < 10;
    if too_few || (wishes.penalty.is_some() && wishes.features.is_some() && (base_scale.is_none() || asked_median)) {
        let spec = resolved(first, base_scale)?;
        let penalty = match wishes.penalty {
            Some(penalty) => penalty,
            None => 0.1 * size_of_features::<R>(&spec, train)?,
        };
        let limit = if too_few { "too few rows to hold some out".into() } else { "asked for".to_owned() };
        return Ok(Choice { spec, penalty, trials: Vec::new(), limit });
    }
    let mut trials: Vec<Trial> = Vec::new();
    let attempt = |features: usize, scale: Option<f64>, trials: &mut Vec<Trial>| -> Outcome<f64> {
        progress.at(match scale {
            Some(scale) => {
                format!("trying {} features, length scale {}", human::count(features), human::significant(scale, 3))
            }
            None => format!("trying {} features", human::count(features)),
        })?;
        let spec = resolved(features, scale)?;
        let (penalty, loss) = validate(wishes, pipeline, task, &spec, train, held_out)?;
        progress.done(1)?;
        trials.push(Trial { features, length_scale: scale, penalty, loss });
        Ok(loss)
    };
    // The length scale, with few features: what suits 512 suits more.
    let mut scale = base_scale;
    let small = wishes.features.unwrap_or(512).min(512);
    if let (Some(median), false) = (base_scale, asked_median) {
        for factor in FACTORS {
            attempt(small, Some(factor * median), &mut trials)?;
        }
        scale = best(&trials).length_scale;
    }
    // The number of features, doubled while it pays.
    let tried = train.rows.nrows();
    let outputs = pipeline.targets.len().max(pipeline.labels.len());
    let limit = match wishes.features {
        Some(features) => {
            if trials.is_empty() || features != small {
                attempt(features, scale, &mut trials)?;
            }
            "asked for".to_owned()
        }
        None => {
            let mut spent = 0.0;
            let mut features = FIRST;
            let mut last = f64::INFINITY;
            loop {
                let (now, later) = seconds(features, tried, wishes.rows);
                if features > FIRST {
                    if spent + now + later > wishes.budget {
                        let budget = human::duration(wishes.budget);
                        break format!("{} would take more than the {budget} of --budget", human::count(features));
                    }
                    if wishes.memory.is_some_and(|memory| bytes::<R>(features, outputs) > memory) {
                        break format!("{} would take more than the memory of --memory", human::count(features));
                    }
                    if features > LARGEST || features >= 2 * wishes.rows.next_power_of_two() {
                        break "more would hardly help".into();
                    }
                }
                let known = trials.iter().find(|t| t.features == features && t.length_scale == scale).map(|t| t.loss);
                let loss = match known {
                    Some(loss) => loss,
                    None => attempt(features, scale, &mut trials)?,
                };
                spent += now;
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
    let winner = winner.unwrap_or_else(|| best(&trials)).clone();
    let spec = resolved(winner.features, winner.length_scale)?;
    Ok(Choice { spec, penalty: winner.penalty, trials, limit })
}

/// The smallest loss; of nearly equal ones that with fewer features.
fn best(trials: &[Trial]) -> &Trial {
    let lowest = trials.iter().map(|t| t.loss).fold(f64::INFINITY, f64::min);
    let close = trials.iter().filter(|t| t.loss <= 1.002 * lowest);
    close
        .min_by(|a, b| (a.features, a.loss).partial_cmp(&(b.features, b.loss)).unwrap_or(std::cmp::Ordering::Equal))
        .unwrap_or(&trials[0])
}

/// Mean squared norm of features: the unit of penalties.
fn size_of_features<R: Real>(spec: &Spec, part: &Part<R>) -> Outcome<f64> {
    let map = spec.build::<R>(part.rows.ncols())?;
    let features = map.transform(part.rows.slice(s![..part.rows.nrows().min(256), ..]))?;
    let mean = features.iter().map(|v| Real::to_f64(*v).powi(2)).sum::<f64>() / features.nrows().max(1) as f64;
    Ok(if mean > 0.0 && mean.is_finite() { mean } else { 1.0 })
}

/// The best penalty of a map and its loss on the held-out rows.
fn validate<R: Real>(
    wishes: &Wishes,
    pipeline: &Pipeline,
    task: Task,
    spec: &Spec,
    train: &Part<R>,
    held_out: &Part<R>,
) -> Outcome<(f64, f64)> {
    let penalties = match wishes.penalty {
        Some(penalty) => vec![penalty],
        None => {
            let unit = size_of_features(spec, train)?;
            PENALTIES.iter().map(|p| p * unit).collect()
        }
    };
    let job = Job { spec, penalty: penalties[0], classes: None, memory: wishes.memory, solver: Solver::Auto };
    let ridge = job.ridge::<R>(train.rows.ncols())?;
    let mut train_rows = InMemory::new(train.rows.view(), train.targets.view())?;
    let mut held_rows = InMemory::new(held_out.rows.view(), held_out.targets.view())?;
    Ok(match task {
        Task::Regression => {
            let found = ridge.validate(&penalties, &mut train_rows, &mut held_rows)?;
            (penalties[found.best], found.losses[found.best] / spread(&held_out.targets))
        }
        Task::Classification => {
            let classifier = RidgeClassifier::new(ridge).with_classes(pipeline.labels.len())?;
            let found = classifier.validate(&penalties, &mut train_rows, &mut held_rows)?;
            (penalties[found.best], found.losses[found.best])
        }
    })
}

/// Mean variance of the columns.
fn spread<R: Real>(targets: &Array2<R>) -> f64 {
    let values = targets.mapv(Real::to_f64);
    let variance = values.var_axis(ndarray::Axis(0), 0.0).mean().unwrap_or(1.0);
    if variance > 0.0 { variance } else { 1.0 }
}
