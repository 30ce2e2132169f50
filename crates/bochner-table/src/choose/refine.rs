//! The last parameter of models that are not ridge regressions.

use super::local::local;
use super::{Choice, Constraints, Fold, trial_job};
use crate::failure::{Failure, Outcome};
use crate::pipeline::{Part, Pipeline};
use crate::score::smallest;
use bochner::catalogue::ModelEntry;
use bochner::feature::{Describe, Description, FourierKernel, Spec};
use bochner::kernel::{AnyKernel, Gaussian, Laplacian, Matern};
use bochner::metrics::class_negative_log_likelihood;
use bochner::model::Fit;
use bochner::preprocess::LengthScale;
use bochner::rows::InMemory;
use bochner::scalar::Real;
use bochner::words;
use ndarray::s;

/// Values of a Dirichlet transform's `alpha` that are tried.
pub(super) const ALPHAS: [f64; 6] = [0.3, 0.1, 0.03, 0.01, 0.003, 0.001];
/// Penalties of a machine or of a variational process that are tried.
const FEW_PENALTIES: [f64; 4] = [5.0, 0.5, 0.05, 0.005];
/// Rows and features on which they are tried, at most.
const REFINED_ROWS: usize = 4000;
pub(super) const REFINED_FEATURES: usize = 1024;

/// Kinds of models with a search of their own.
const GP: &str = "gp_classifier";
const SVI: &str = "svi_classifier";

/// Turns what suits a ridge regression into what suits a model of another kind, with a search of its own for the parameter
/// that the two do not share.
pub(crate) fn refine<R: Real>(
    kind: &ModelEntry,
    constraints: &Constraints,
    asked: Option<f64>,
    pipeline: &Pipeline,
    folds: &[Fold<R>],
    mut choice: Choice,
) -> Outcome<Choice> {
    match kind.entry.name {
        "local_gp" => return local(constraints, folds, choice),
        "kernel_svm" => choice.description = Description::Kernel(exact_kernel(&choice.description)?),
        GP | SVI => {}
        _ => return Ok(choice),
    }
    let values: Vec<f64> = match (asked, kind.entry.name) {
        (Some(value), _) => {
            choice.penalty = value;
            return Ok(choice);
        }
        (None, GP) => ALPHAS.to_vec(),
        (None, SVI) => FEW_PENALTIES.iter().map(|p| 0.2 * p).collect(),
        (None, _) => FEW_PENALTIES.to_vec(),
    };
    let Fold { train, held_out } = &folds[0];
    if held_out.rows.nrows() < 10 || train.rows.nrows() < 10 {
        choice.penalty = if kind.entry.name == GP { 0.01 } else { 0.1 };
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
            Description::Map(spec.redrawn(few, constraints.seed.number()).resolve(rows.mapv(Real::to_f64).view())?)
        }
        other => other.clone(),
    };
    let truth: Vec<usize> = labels.iter().map(|c| Real::to_f64(*c) as usize).collect();
    let mut source = InMemory::new(rows.view(), targets.view())?;
    let mut losses = Vec::new();
    let what = match kind.entry.name {
        GP => {
            let job = trial_job(constraints, pipeline, &smaller, values[0]);
            let process = job.gp_classifier::<R>(rows.ncols())?;
            let mut held = InMemory::new(held.view(), labels.view())?;
            losses.extend(process.validate(&values, &mut source, &mut held, &mut job.context()?)?.losses);
            "mean negative log likelihood"
        }
        SVI => {
            for &penalty in &values {
                let job = trial_job(constraints, pipeline, &smaller, penalty);
                let model = job.svi::<R>(rows.ncols())?.fit_stream(&mut source, &mut job.context()?)?;
                losses.push(class_negative_log_likelihood(&truth, model.probabilities(held.view())?.view())?);
            }
            "mean negative log likelihood"
        }
        _ => {
            let (rows, targets) = (rows.mapv(Real::to_f64), targets.mapv(Real::to_f64));
            for &penalty in &values {
                let job = trial_job(constraints, pipeline, &smaller, penalty);
                let model = job.kernel_svm(rows.view(), targets.view())?;
                let found = model.predict_classes(held.mapv(Real::to_f64).view())?;
                let wrong = found.iter().zip(&truth).filter(|(a, b)| a != b).count();
                losses.push(wrong as f64 / truth.len() as f64);
            }
            "share of wrong classes"
        }
    };
    // The first of equals: the larger value, the smoother function.
    let best = smallest(&losses);
    choice.penalty = values[best];
    choice.note = Some(format!(
        "{what} {} on {} rows held out, the best of {}",
        words::significant(losses[best], 3),
        words::count(truth.len()),
        values.len()
    ));
    Ok(choice)
}

/// The kernel that a map of Fourier features estimates.
fn exact_kernel(description: &Description) -> Outcome<AnyKernel> {
    let Description::Map(Spec::Fourier(spec)) = description else {
        return Err(Failure::Usage("--model kernel-svm has the gaussian, laplacian or matern kernel".into()));
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
