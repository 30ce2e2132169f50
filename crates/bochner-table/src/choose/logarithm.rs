//! Whether the logarithms of skewed targets are learned.

use super::Constraints;
use crate::failure::Outcome;
use crate::job::Job;
use crate::model::TableModel;
use crate::pipeline::{Part, Pipeline, stopped};
use crate::progress::Progress;
use crate::read::Element;
use bochner::Result;
use bochner::feature::Description;
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::tune::LearnFourier;
use ndarray::{Array2, ArrayView2, Axis, s};

/// Rows that are learned from, rows that judge, and features, at most.
const ROWS: usize = 4000;
const JUDGES: usize = 2000;
const FEATURES: usize = 512;
/// Rows up to which all judge in turn.
const FEW: usize = 2000;
/// Steps of the first stage, for every second of the budget, and at most.
const STEPS_A_SECOND: f64 = 0.6;
const MOST_STEPS: usize = 15;
/// Share of the squared error that logarithms have to save: half a per cent may be chance.
const ENOUGH: f64 = 0.98;

/// Seconds that [`logarithms_help`] takes, about.
pub(crate) const SECONDS: f64 = 3.0;

/// Bytes that [`compare_logarithms`] takes: under a limit that is less, targets stay as they are.
pub(crate) fn need<R: Real>() -> u64 {
    super::bytes::<R>(FEATURES, 1)
}

/// Squared errors of held-out rows in the units of the target, of a small map, for the targets as they are and their logarithms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Losses {
    pub(crate) plain: f64,
    pub(crate) log: f64,
}

impl Losses {
    pub(crate) fn prefer_logarithms(self) -> bool {
        self.log < ENOUGH * self.plain
    }
}

/// Learns a small map of both on some rows of the sample, and compares their predictions of others.
pub(crate) fn compare_logarithms<R: Element>(
    constraints: &Constraints,
    pipelines: [&Pipeline; 2],
    rows: ArrayView2<'_, f64>,
    targets: ArrayView2<'_, f64>,
    progress: &dyn Progress,
) -> Outcome<Losses> {
    // The losses of skewed targets are those of a few rows: of few rows every one judges once.
    let judges = (rows.nrows() / 4).min(JUDGES);
    let turns = if rows.nrows() <= FEW { 4 } else { 1 };
    let mut found = [0.0; 2];
    for turn in 0..turns {
        let range = turn * judges..(turn + 1) * judges;
        let parts = |all: ArrayView2<'_, f64>| {
            let others: Vec<usize> = (0..all.nrows()).filter(|i| !range.contains(i)).take(ROWS).collect();
            (all.slice(s![range.clone(), ..]).to_owned(), all.select(Axis(0), &others))
        };
        let ((held, rest), (truth, known)) = (parts(rows), parts(targets));
        for (loss, pipeline) in found.iter_mut().zip(pipelines) {
            let train = Part::<R>::new(pipeline, rest.clone(), known.view())?;
            let judged = Part::<R>::new(pipeline, held.clone(), truth.view())?;
            let learn = LearnFourier {
                n_components: FEATURES,
                n_learned: FEATURES / 2,
                metric_steps: ((STEPS_A_SECOND * constraints.budget) as usize).min(MOST_STEPS),
                max_iter: 0,
                seed: constraints.seed,
                ..LearnFourier::default()
            };
            let map = learn.run_judged(
                (train.rows.view(), train.targets.view()),
                (judged.rows.view(), judged.targets.view()),
                &mut |_| progress.done(0).map_err(stopped),
            )?;
            let description = Description::Map(map.spec.into());
            let job = Job { memory: None, ..super::trial_job(constraints, pipeline, &description, map.penalty) };
            let model = job.fit::<R>(&mut InMemory::new(train.rows.view(), train.targets.view())?)?;
            *loss += squared_error(model, pipeline, held.view(), truth.view())?;
        }
    }
    Ok(Losses { plain: found[0], log: found[1] })
}

fn squared_error(
    model: bochner::Model,
    pipeline: &Pipeline,
    rows: ArrayView2<'_, f64>,
    truth: ArrayView2<'_, f64>,
) -> Result<f64> {
    let mut pipeline = pipeline.clone();
    let rows = pipeline.prepared(rows.to_owned())?;
    let predict = |pipeline: &Pipeline| -> Result<Array2<f64>> {
        TableModel::new(model.clone(), pipeline.clone())?.predict_prepared(rows.view())
    };
    let predicted = predict(&pipeline)?;
    pipeline.smear(truth, predicted.view());
    let left = &truth - &predict(&pipeline)?;
    Ok(left.iter().map(|v| Real::to_f64(*v).powi(2)).sum::<f64>() / left.len().max(1) as f64)
}
