//! A map that is learned from the rows, where nobody says which map to take.

use super::{Choice, Constraints, Fold, Trial, bytes, trial_job, unit_of_losses};
use crate::failure::{Outcome, with_remedy};
use crate::pipeline::{Part, Pipeline, stopped};
use crate::progress::Progress;
use bochner::feature::{Description, Learned, LearnedFourierSpec};
use bochner::random::Seed;
use bochner::scalar::Real;
use bochner::tune::{LearnFourier, LearnedMap, MOST_TRIED};
use bochner::words;
use ndarray::Array2;

/// Multiplications and additions a second, about those of one core of 2022 on the products of a step.
const RATE: f64 = 2.2e10;
/// How much faster the long products of a last fit are.
const LONG: f64 = 2.5;
/// Rows below which several maps are learned: each may learn its rows by heart, all together less so.
const FEW: usize = 4000;
/// Numbers of features, the most first, and the share of the budget that a fit with them may take.
const FEATURES: [usize; 6] = [4096, 3072, 2048, 1024, 512, 256];
const FITTING_SHARE: f64 = 0.4;
/// Share of the variance that rough waves begin with.
const ROUGH_SHARE: f64 = 0.02;
/// Features of a step of the first stage.
const FIRST_FEATURES: f64 = 768.0;

/// How much is learned: maps, frequencies and steps of both stages of each.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Effort {
    members: usize,
    frequencies: usize,
    metric_steps: usize,
    steps: usize,
}

const fn effort(members: usize, frequencies: usize, metric_steps: usize, steps: usize) -> Effort {
    Effort { members, frequencies, metric_steps, steps }
}

/// Efforts for few rows and for many, the largest first.
const FOR_FEW: [Effort; 6] = [
    effort(3, 256, 60, 100),
    effort(2, 256, 50, 80),
    effort(1, 256, 40, 80),
    effort(1, 192, 30, 50),
    effort(1, 128, 20, 30),
    effort(1, 64, 10, 20),
];
const FOR_MANY: [Effort; 8] = [
    effort(2, 512, 60, 150),
    effort(1, 512, 60, 150),
    effort(1, 512, 50, 100),
    effort(1, 384, 40, 80),
    effort(1, 256, 40, 60),
    effort(1, 192, 30, 40),
    effort(1, 128, 20, 30),
    effort(1, 64, 10, 20),
];

/// What a table is to the costs.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Rows of the last fit, and of the sample that choices are made on.
    rows: usize,
    sample: usize,
    columns: usize,
    outputs: usize,
}

impl Shape {
    /// Seconds of a step with so many features.
    fn step(&self, features: f64, batch: usize) -> f64 {
        let half = (self.sample.min(batch) / 2) as f64;
        let each = 2.0 * self.columns as f64 + 60.0 + 6.0 * self.outputs as f64;
        (half * features * features / 2.0 + features.powi(3) / 3.0 + 2.0 * half * features * each) / RATE
    }

    fn learning(&self, effort: Effort, batch: usize) -> f64 {
        let first = effort.metric_steps as f64 * self.step(FIRST_FEATURES, batch);
        let second = effort.steps as f64 * self.step(2.0 * effort.frequencies as f64, batch);
        // Looks at the rows that judge take about a tenth more.
        1.1 * effort.members as f64 * (first + second)
    }

    /// Seconds of the choice of a penalty and of the last fits with so many features.
    fn fitting(&self, features: usize) -> f64 {
        let d = features as f64;
        let least = d.min(self.sample as f64);
        let sums = (self.rows as f64 * d * d + self.sample as f64 * d * least) / 2.0 / LONG;
        let solving = (MOST_TRIED as f64 * least.powi(3) + 2.0 * d.powi(3)) / 3.0;
        (sums + solving + (self.rows + self.sample) as f64 * d * (self.columns as f64 + 30.0)) / RATE
    }
}

/// What a budget allows.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    features: usize,
    effort: Effort,
}

fn plan(shape: Shape, budget: f64, asked: Option<usize>, fits: impl Fn(usize) -> bool) -> Plan {
    let affordable = |d: &usize| fits(*d) && shape.fitting(*d) <= FITTING_SHARE * budget;
    let features = asked.unwrap_or_else(|| FEATURES.into_iter().find(affordable).unwrap_or(FEATURES[5]));
    let left = budget - shape.fitting(features);
    let batch = LearnFourier::default().batch;
    let efforts: &[Effort] = if shape.sample < FEW { &FOR_FEW } else { &FOR_MANY };
    let found = efforts.iter().find(|effort| shape.learning(**effort, batch) <= left);
    let mut effort = *found.unwrap_or(&efforts[efforts.len() - 1]);
    effort.frequencies = effort.frequencies.min((features / 2 / effort.members).max(1));
    Plan { features, effort }
}

fn shape<R: Real>(constraints: &Constraints, pipeline: &Pipeline, folds: &[Fold<R>]) -> Shape {
    let Fold { train, held_out } = &folds[0];
    Shape {
        rows: constraints.rows,
        sample: train.rows.nrows() + held_out.rows.nrows(),
        columns: train.rows.ncols(),
        outputs: pipeline.labels.len().max(train.targets.ncols()),
    }
}

fn planned<R: Real>(constraints: &Constraints, pipeline: &Pipeline, folds: &[Fold<R>]) -> Plan {
    let shape = shape(constraints, pipeline, folds);
    let fits = |features| constraints.memory.is_none_or(|memory| bytes::<R>(features, shape.outputs) <= memory);
    plan(shape, constraints.budget, constraints.features, fits)
}

/// Steps there will be, for a bar.
pub(crate) fn steps<R: Real>(constraints: &Constraints, pipeline: &Pipeline, folds: &[Fold<R>]) -> u64 {
    let Effort { members, metric_steps, steps, .. } = planned(constraints, pipeline, folds).effort;
    (members * (metric_steps + steps) + 1) as u64
}

/// Targets as the flow learns them: numbers, or a column of zeros and ones for each class.
fn codes<R: Real>(classes: usize, part: &Part<R>) -> Array2<R> {
    match classes {
        0 => part.targets.clone(),
        _ => Array2::from_shape_fn((part.targets.nrows(), classes), |(i, k)| {
            if Real::to_f64(part.targets[[i, 0]]) == k as f64 { R::ONE } else { R::ZERO }
        }),
    }
}

/// Learns a map, or several that become one, and chooses the penalty on rows that no gradient has seen.
pub(crate) fn learned<R: Real>(
    constraints: &Constraints,
    spec: &LearnedFourierSpec,
    pipeline: &Pipeline,
    folds: &[Fold<R>],
    progress: &dyn Progress,
) -> Outcome<Choice> {
    let Plan { features, effort } = planned(constraints, pipeline, folds);
    if constraints.features.is_some() {
        let outputs = shape(constraints, pipeline, folds).outputs;
        let remedy = |free: u64| format!("{} features would fit", words::count((free / 8).isqrt() as usize));
        bochner::memory::need("sums over features", bytes::<R>(features, outputs), remedy)?;
        let asked = LearnedFourierSpec { n_components: features, learned: None, ..spec.clone() };
        let description = Description::Map(asked.into());
        trial_job(constraints, pipeline, &description, 1.0)
            .check_memory::<R>(folds[0].train.rows.ncols())
            .map_err(with_remedy)?;
    }
    let classes = pipeline.labels.len();
    let judged = effort.members.min(folds.len());
    let mut found: Vec<LearnedMap> = Vec::new();
    for member in 0..effort.members {
        let Fold { train, held_out } = &folds[member % folds.len()];
        let learn = LearnFourier {
            n_components: features / effort.members,
            n_learned: effort.frequencies.min(spec.n_learned),
            metric_steps: effort.metric_steps,
            max_iter: effort.steps.min(spec.max_iter),
            // One fold's rows judge, and find out how much rough waves help.
            rough_share: if constraints.penalty.is_none() && judged == 1 { ROUGH_SHARE } else { 0.0 },
            seed: Seed::new(spec.seed).child(member as u64),
            ..LearnFourier::default()
        };
        let (codes_train, codes_held) = (codes(classes, train), codes(classes, held_out));
        let total = words::count(effort.members * (effort.metric_steps + effort.steps));
        let mut before = 0;
        found.push(learn.run_judged(
            (train.rows.view(), codes_train.view()),
            (held_out.rows.view(), codes_held.view()),
            &mut |step| {
                let done = member * (effort.metric_steps + effort.steps) + step.done;
                progress
                    .at(format!("learning frequencies, step {} of {total}", words::count(done)).into())
                    .map_err(stopped)?;
                progress.done((step.done - before) as u64).map_err(stopped)?;
                before = step.done;
                Ok(())
            },
        )?);
        // A map that has stopped early has done all its steps.
        progress.done((effort.metric_steps + effort.steps - before) as u64)?;
    }
    let judged = &folds[..judged];
    let judges: Vec<_> = judged.iter().map(|fold| fold.held_out.targets.view()).collect();
    // Of codes 0 and 1 errors are a quarter of those of codes -1 and 1.
    let unit = unit_of_losses(classes, &judges) / if classes == 0 { 1.0 } else { 4.0 };
    // The kernel of several maps side by side is the sum of theirs, and so is its penalty.
    let start = found.iter().map(|map| map.penalty).sum::<f64>();
    let mean = |loss: fn(&LearnedMap) -> f64| found.iter().map(loss).sum::<f64>() / found.len() as f64 / unit;
    let least = |map: &LearnedMap| map.losses.iter().copied().fold(f64::INFINITY, f64::min);
    progress.at("choosing the penalty".into())?;
    let joined = || {
        let parts: Vec<Learned> = found.iter().filter_map(|map| map.spec.learned.clone()).collect();
        Ok::<_, bochner::Error>(LearnedFourierSpec::from(Learned::joined(&parts)?))
    };
    let (spec, penalty, loss) = match constraints.penalty {
        Some(penalty) => (joined()?, penalty, mean(least)),
        // Of the rows that judge one of several maps the others have taken gradients: they would choose too small a penalty.
        None if judged.len() > 1 => (joined()?, start, mean(least)),
        None => {
            let Fold { train, held_out } = &folds[0];
            let (codes_train, codes_held) = (codes(classes, train), codes(classes, held_out));
            let (train, held_out) =
                ((train.rows.view(), codes_train.view()), (held_out.rows.view(), codes_held.view()));
            let found = LearnedMap::balanced(&found, train, held_out, &mut || progress.done(0).map_err(stopped))?;
            (found.spec, found.penalty, found.loss / unit)
        }
    };
    let description = Description::Map(LearnedFourierSpec { seed: constraints.seed.number(), ..spec }.into());
    progress.done(1)?;
    let trial =
        |map: &str, penalty: f64, loss: f64| Trial { map: map.into(), features, length_scale: None, penalty, loss };
    let before = mean(|map| map.losses[0]);
    let trials = vec![
        trial("before learning", start, before),
        trial("learned scales of columns", start, mean(|map| map.losses[0].min(map.losses[1]))),
        trial("learned Fourier", penalty, loss),
    ];
    let many = match effort.members {
        1 => String::new(),
        n => format!("{n} maps side by side, "),
    };
    let steps = effort.metric_steps + effort.steps;
    let reason = format!(
        "{many}{} frequencies learned in at most {steps} steps: held-out loss {} % (before: {} %)",
        words::count(effort.members * effort.frequencies),
        words::significant(100.0 * loss, 2),
        words::significant(100.0 * before, 2),
    );
    let limit = match constraints.features {
        Some(_) => "asked for".to_owned(),
        None => format!("what fits into the budget of {} s", words::significant(constraints.budget, 3)),
    };
    Ok(Choice { description, map_reason: Some(reason), median: None, penalty, note: None, trials, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_time_buys_more_features_and_more_steps_and_a_budget_is_kept() {
        for (rows, columns, outputs) in [(300, 6, 1), (10_000, 40, 1), (40_000, 54, 7), (3_000_000, 20, 1)] {
            let shape = Shape { rows, sample: rows.min(18_000), columns, outputs };
            let mut last = 0.0;
            for budget in [2.0, 5.0, 10.0, 20.0, 60.0] {
                let Plan { features, effort } = plan(shape, budget, None, |_| true);
                let seconds = shape.fitting(features) + shape.learning(effort, 4000);
                assert!(seconds >= last, "{shape:?} {budget}");
                let least = features == FEATURES[5] && effort.frequencies == 64;
                assert!(seconds <= budget || least, "{shape:?} {budget}: {seconds} {features} {effort:?}");
                last = seconds;
            }
        }
    }
}
