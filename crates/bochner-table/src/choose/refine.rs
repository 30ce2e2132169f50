//! The last parameter of models that are not ridge regressions.

use super::local::local;
use super::{Choice, Constraints, Fold, trial_job};
use crate::failure::{Failure, Outcome};
use crate::job::Job;
use crate::pipeline::{Part, Pipeline};
use crate::score::smallest;
use bochner::catalogue::{ModelEntry, Needs, Penalty};
use bochner::feature::{Describe, Description, Spec};
use bochner::kernel::AnyKernel;
use bochner::preprocess::LengthScale;
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::words;
use ndarray::s;

/// Rows and features on which they are tried, at most.
const REFINED_ROWS: usize = 4000;
pub(super) const REFINED_FEATURES: usize = 1024;

/// Turns what suits a ridge regression into what suits a model of another kind, with a search of its own for the parameter
/// that the two do not share.
pub(crate) fn refine<R: Real>(
    kind: &'static ModelEntry,
    constraints: &Constraints,
    asked: Option<f64>,
    pipeline: &Pipeline,
    folds: &[Fold<R>],
    mut choice: Choice,
) -> Outcome<Choice> {
    match kind.needs {
        Needs::Nothing => return local(constraints, folds, choice),
        Needs::Kernel => choice.description = Description::Kernel(exact_kernel(&choice.description)?),
        _ => {}
    }
    let Some(Penalty { tried: values @ [first, ..], otherwise, .. }) = kind.penalty else { return Ok(choice) };
    if let Some(value) = asked {
        choice.penalty = value;
        return Ok(choice);
    }
    let Fold { train, held_out } = &folds[0];
    if held_out.rows.nrows() < 10 || train.rows.nrows() < 10 {
        choice.penalty = otherwise;
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
            // Learned waves are all there are: fewer cannot be drawn.
            let few = match spec {
                Spec::LearnedFourier(_) => spec.n_components(),
                _ => spec.n_components().min(REFINED_FEATURES),
            };
            Description::Map(spec.redrawn(few, constraints.seed.number()).resolve(rows.mapv(Real::to_f64).view())?)
        }
        other => other.clone(),
    };
    let job = Job { kind, ..trial_job(constraints, pipeline, &smaller, *first) };
    let mut train = InMemory::new(rows.view(), targets.view())?;
    let mut judges = InMemory::new(held.view(), labels.view())?;
    let losses = job.request()?.losses(values, &job.basis(), &mut train, &mut judges, &mut job.context()?)?;
    // The first of equals: the larger value, the smoother function.
    let best = smallest(&losses);
    choice.penalty = values[best];
    choice.note = Some(format!(
        "{} {} on {} rows held out, the best of {}",
        kind.loss_in_words(),
        words::significant(losses[best], 3),
        words::count(held.nrows()),
        values.len()
    ));
    Ok(choice)
}

/// The kernel that a map of Fourier features estimates.
fn exact_kernel(description: &Description) -> Outcome<AnyKernel> {
    let Description::Map(Spec::Fourier(spec)) = description else {
        return Err(Failure::Usage("--model kernel-svm has the gaussian, laplacian or matern kernel".into()));
    };
    let one_scale = matches!(spec.length_scale, LengthScale::Same(_));
    let kernel = if one_scale { spec.kernel()?.description() } else { None };
    kernel.ok_or_else(|| Failure::Usage("--model kernel-svm has one --length-scale for all columns".into()))
}
