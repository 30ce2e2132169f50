//! Length scale and penalty of a local process: those of a ridge regression are only where the search begins.

use super::{Choice, Constraints, Fold, RATE, Trial, are_too_few, mean_losses, most_centroids, unit_of_losses};
use crate::failure::Outcome;
use crate::score::{loss_in_words, smallest};
use bochner::catalogue::Task;
use bochner::feature::{Description, MaclaurinSpec, Spec};
use bochner::model::LocalGp;
use bochner::preprocess::LengthScale;
use bochner::scalar::Real;
use bochner::words;
use bochner::{Error, Result};
use ndarray::{Array2, s};

/// Features around each centre where nobody says how many.
const FEATURES: usize = 256;
/// Penalties that are tried: smaller ones than in single precision, and interpolation may want them.
const PENALTIES: [f64; 11] = [1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];
/// Rows that trials learn from, and rows that judge them, at most.
const ROWS: usize = 4000;
/// Length scales that are tried at most, and the share of the budget that all of them may take.
const TRIALS: usize = 8;
const SHARE: f64 = 0.3;

/// Length scale and penalty with the least loss of the local process itself, climbing from those of `choice`.
///
/// Around a centre a series of few features is good to a few length scales: a local process may want others than features
/// that are as good everywhere (on `yacht` penalties of the ridge regression made its errors three times as large).
pub(super) fn local<'a, R: Real>(
    constraints: &Constraints,
    folds: &'a [Fold<R>],
    mut choice: Choice,
) -> Outcome<Choice> {
    let features = constraints.features.unwrap_or(FEATURES);
    let base = match choice.description.spec()? {
        Spec::Fourier(spec) => spec.length_scale.clone(),
        _ => LengthScale::Same(choice.description.length_scale().unwrap_or(1.0)),
    };
    let spec = |factor: f64| MaclaurinSpec {
        n_components: features,
        length_scale: match &base {
            LengthScale::Same(scale) => LengthScale::Same(factor * scale),
            other => other.clone(),
        },
        seed: constraints.seed.number(),
        ..MaclaurinSpec::default()
    };
    let penalties = constraints.penalty.map_or(PENALTIES.to_vec(), |penalty| vec![penalty]);
    let rows = folds[0].train.rows.nrows().min(ROWS);
    let centres = affordable(features, (folds.len(), rows), penalties.len(), constraints);
    let losses = |process: &LocalGp, fold: &Fold<R>| -> Result<Vec<f64>> {
        let some = |values: &Array2<R>| values.slice(s![..values.nrows().min(ROWS), ..]).mapv(Real::to_f64);
        let (rows, targets) = (some(&fold.train.rows), some(&fold.train.targets));
        let (new, truth) = (some(&fold.held_out.rows), some(&fold.held_out.targets));
        process.validate(&penalties, (rows.view(), targets.view()), (new.view(), truth.view()))
    };
    let judges = |fold: &'a Fold<R>| fold.held_out.targets.slice(s![..fold.held_out.targets.nrows().min(ROWS), ..]);
    let unit = unit_of_losses(0, &folds.iter().map(judges).collect::<Vec<_>>());
    let attempt = |factor: f64| -> Result<Trial> {
        let length_scale = match base {
            LengthScale::Same(scale) => Some(factor * scale),
            _ => None,
        };
        let process = LocalGp::new(spec(factor), penalties[0])?.with_max_clusters(centres)?;
        let losses = mean_losses(folds, |fold| losses(&process, fold))?;
        // The first of equals: the larger penalty, the smoother function.
        let best = smallest(&losses);
        let (penalty, loss) = (penalties[best], losses[best] / unit);
        Ok(Trial { map: "local".into(), features, length_scale, penalty, loss })
    };
    let mut factor = 1.0;
    if !are_too_few(folds) {
        let fixed = constraints.scale.is_some();
        let trials = climb(if fixed { 1 } else { TRIALS }, attempt)?;
        if let Some((best_factor, best)) = trials.iter().min_by(|(_, a), (_, b)| a.loss.total_cmp(&b.loss)) {
            factor = *best_factor;
            choice.penalty = best.penalty;
            choice.note = Some(format!(
                "{} {}, the best of {} with local processes",
                loss_in_words(Task::Regression),
                words::significant(best.loss, 3),
                words::count(trials.len() * penalties.len())
            ));
        }
        choice.trials.extend(trials.into_iter().map(|(_, trial)| trial));
    }
    choice.description = Description::Map(Spec::Maclaurin(spec(factor)));
    choice.limit = "around every centre".into();
    choice.map_reason = None;
    Ok(choice)
}

/// Centres of a trial: as many as the fit may have, where trials with so many stay within their share of the budget.
fn affordable(features: usize, (folds, rows): (usize, usize), penalties: usize, constraints: &Constraints) -> usize {
    let d = features as f64;
    let each = folds as f64 * (rows as f64 + penalties as f64 * d / 3.0) * d * d;
    let most = (SHARE * constraints.budget * RATE / (TRIALS as f64 * each)) as usize;
    most_centroids(features, constraints.rows, constraints.budget).min(most.max(1))
}

/// Halves or doubles a factor of 1 while that helps, `most` trials in all; those that cannot be fitted are passed over.
fn climb(most: usize, mut attempt: impl FnMut(f64) -> Result<Trial>) -> Result<Vec<(f64, Trial)>> {
    let (mut trials, mut failure, mut count) = (Vec::new(), None, 0);
    let mut loss_of = |factor: f64| -> Result<f64> {
        count += 1;
        if count > most {
            return Ok(f64::INFINITY);
        }
        match attempt(factor) {
            Ok(trial) if trial.loss.is_finite() => {
                let loss = trial.loss;
                trials.push((factor, trial));
                Ok(loss)
            }
            Ok(_) => Ok(f64::INFINITY),
            Err(error @ (Error::NotPositiveDefinite { .. } | Error::NotConverged { .. })) => {
                failure = Some(error);
                Ok(f64::INFINITY)
            }
            Err(error) => Err(error),
        }
    };
    let first = loss_of(1.0)?;
    for step in [0.5, 2.0] {
        let (mut factor, mut best) = (step, first);
        loop {
            let loss = loss_of(factor)?;
            if loss >= best {
                break;
            }
            (factor, best) = (factor * step, loss);
        }
        if best < first {
            break;
        }
    }
    match (trials.is_empty(), failure) {
        (true, Some(error)) => Err(error),
        _ => Ok(trials),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valley(at: f64) -> impl Fn(f64) -> Result<Trial> {
        move |scale: f64| {
            let loss = (scale / at).log2().powi(2);
            Ok(Trial { map: String::new(), features: 1, length_scale: Some(scale), penalty: 1.0, loss })
        }
    }

    fn tried(trials: &[(f64, Trial)]) -> Vec<f64> {
        trials.iter().map(|(factor, _)| *factor).collect()
    }

    #[test]
    fn scales_are_halved_or_doubled_while_that_helps() {
        assert_eq!(tried(&climb(8, valley(1.0)).unwrap()), [1.0, 0.5, 2.0]);
        assert_eq!(tried(&climb(8, valley(0.25)).unwrap()), [1.0, 0.5, 0.25, 0.125]);
        assert_eq!(tried(&climb(8, valley(4.0)).unwrap()), [1.0, 0.5, 2.0, 4.0, 8.0]);
        assert_eq!(tried(&climb(1, valley(4.0)).unwrap()), [1.0]);
        assert_eq!(tried(&climb(3, valley(1e-9)).unwrap()), [1.0, 0.5, 0.25]);
    }

    #[test]
    fn scales_that_cannot_be_fitted_are_passed_over_unless_all_are() {
        let refuse = || Err(Error::NotPositiveDefinite { pivot: 1, suggested_penalty: 1.0 });
        let found = climb(8, |scale| if scale >= 1.0 { refuse() } else { valley(0.5)(scale) }).unwrap();
        assert_eq!(tried(&found), [0.5, 0.25]);
        assert!(climb(8, |_| refuse()).is_err());
        assert!(climb(8, |_| Err(Error::Interrupted)).is_err());
    }
}
