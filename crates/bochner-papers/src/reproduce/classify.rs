//! Ridge classifiers on features of rows that a threshold made binary: what the optical experiments search, fit and test.

use super::Run;
use super::data::{Part, double};
use bochner::feature::{Describe, FeatureMap, FourierSpec, OpticalSpec, Spec};
use bochner::metrics::error_rate;
use bochner::model::exact::{ExactSolver, KernelRidge};
use bochner::model::{Fit, Predict, Ridge, RidgeClassifier};
use bochner::preprocess::LengthScale;
use bochner::random::Seed;
use bochner::rows::{Coded, Coding, InMemory, count_classes};
use bochner::solve::{ConjugateGradients, Preconditioner, Solver};
use bochner::tune::{Search, Split, Task};
use bochner_table::failure::Outcome;
use bochner_table::score::{smallest, winner};
use ndarray::Array2;
use std::time::Instant;

/// Maps of one kind, and the values of their hyperparameters that are tried.
pub(super) struct Family {
    pub(super) name: String,
    pub(super) candidates: Vec<Spec>,
    /// Whether a constant is fitted beside the features.
    pub(super) intercept: bool,
}

/// What a search chose.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    /// Value above which an input becomes 1.
    pub(super) threshold: f32,
    pub(super) spec: Spec,
    /// Penalty over the mean squared length of a row's features.
    pub(super) ratio: f64,
    pub(super) intercept: bool,
    /// Share of wrong classes among the validation rows.
    pub(super) loss: f64,
}

/// Half decades around the mean squared length of features, on which penalties are sought; few enough that factorising for
/// each is cheaper than a decomposition.
pub(super) fn ratios() -> Vec<f64> {
    (-8..=2).map(|e| 10f64.powf(0.5 * f64::from(e))).collect()
}

/// Rows that fill a description in and say how long features are.
const SAMPLE: usize = 1000;

/// Features beyond which the Gram matrix is not factorised, as in the paper.
const LARGEST_GRAM: usize = 10_000;

/// Bytes for features that are kept between the steps of an iteration.
const KEPT: u64 = 12 << 30;

/// Bytes for the kernel matrix of all training rows: single precision holds 60,000 of them.
const KERNEL: u64 = 9 << 30;

pub(super) fn binary(part: &Part, threshold: f32) -> Part {
    Part { rows: part.rows.mapv(|v| f32::from(u8::from(v > threshold))), targets: part.targets.clone() }
}

/// The description with what it takes from data filled in, and the mean squared length of its features.
fn prepared(spec: &Spec, features: usize, seed: u64, part: &Part) -> Outcome<(Spec, f64)> {
    let sample = part.sample(SAMPLE, 5);
    let spec = spec.redrawn(features, seed).resolve(double(sample.rows.view()).view())?;
    let images = spec.build::<f32>(part.rows.ncols())?.transform(sample.rows.view())?;
    let squares: f64 = images.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    Ok((spec, squares / sample.rows.nrows() as f64))
}

/// Tries thresholds, maps and penalties on a fifth of the rows; the smallest error wins, the first of equals.
pub(super) fn search(
    run: &Run<'_>,
    family: &Family,
    thresholds: &[f32],
    train: &Part,
    features: usize,
) -> Outcome<Chosen> {
    let mut best: Option<Chosen> = None;
    for &threshold in thresholds {
        let rows = binary(train, threshold);
        for (index, spec) in family.candidates.iter().enumerate() {
            let start = Chosen {
                threshold,
                spec: spec.clone(),
                ratio: f64::NAN,
                intercept: family.intercept,
                loss: f64::INFINITY,
            };
            let found = judge(run, &format!("{} {index}", family.name), &start, &ratios(), &rows, features)?;
            if best.as_ref().is_none_or(|best| found.loss < best.loss) {
                best = Some(found);
            }
        }
    }
    best.ok_or_else(|| bochner_table::failure::Failure::Failed(format!("{}: nothing to search", family.name)))
}

/// The same map and threshold with a penalty sought again, with other many features.
pub(super) fn refine(run: &Run<'_>, name: &str, chosen: &Chosen, train: &Part, features: usize) -> Outcome<Chosen> {
    // A fit with more features follows noise less closely and wants another penalty, rarely the smallest.
    judge(run, name, chosen, &ratios()[1..], &binary(train, chosen.threshold), features)
}

/// The best of some penalties on a fifth of rows that are binary already.
fn judge(run: &Run<'_>, name: &str, chosen: &Chosen, ratios: &[f64], rows: &Part, features: usize) -> Outcome<Chosen> {
    let key = format!(
        "validation of {name}: {}, threshold {}, D={features}, n={}, penalties {:.1e} to {:.1e}",
        describe(&chosen.spec),
        chosen.threshold,
        rows.rows.nrows(),
        ratios[0],
        ratios[ratios.len() - 1],
    );
    let losses = run.values(&key, || {
        let (spec, unit) = prepared(&chosen.spec, features, run.seed, rows)?;
        let search = Search {
            penalties: ratios.iter().map(|ratio| ratio * unit).collect(),
            intercept: chosen.intercept,
            seed: Seed::new(run.seed),
            ..Search::new(Task::Classification, Split::HeldOut(0.2))
        };
        let trials = search.run(&[spec], &mut run.watched(rows)?, &mut |_| Ok(()))?;
        Ok(trials.trials.iter().map(|trial| trial.mean()).collect())
    })?;
    Ok(best_ratio(chosen, ratios, &losses))
}

fn best_ratio(chosen: &Chosen, ratios: &[f64], losses: &[f64]) -> Chosen {
    let best = smallest(losses);
    Chosen { ratio: ratios[best], loss: losses[best], ..chosen.clone() }
}

/// Penalty and hyperparameter for the exact kernel, by fits to some rows and their mistakes on others: from the choice for
/// features to the better one of its neighbours, until there is none.
///
/// Rows to judge by are as many as those to fit: they cost little, and choices differ by fewer mistakes than a thousand rows
/// can tell apart.
pub(super) fn refine_exact(
    run: &Run<'_>,
    name: &str,
    chosen: &Chosen,
    train: &Part,
    (fitted, judged): (usize, usize),
) -> Outcome<Chosen> {
    let rows = train.sample(fitted + judged, 6);
    let order: Vec<usize> = (0..rows.rows.nrows()).collect();
    let (held, rest) = order.split_at(order.len() * judged / (fitted + judged));
    let (held, rest) = (rows.select(held), rows.select(rest));
    let judge = |at: Chosen| -> Outcome<Chosen> {
        let found = exact(run, &format!("validation of {name}"), &at, &rest, &held)?;
        Ok(Chosen { loss: 0.01 * found.error, ..at })
    };
    // Few features regularise by being few; the kernel itself needs a larger penalty than they do.
    let mut best = judge(Chosen { ratio: chosen.ratio * STEP, ..chosen.clone() })?;
    'moving: loop {
        for at in neighbours(&best) {
            let found = judge(at)?;
            if found.loss < best.loss {
                best = found;
                continue 'moving;
            }
        }
        return Ok(best);
    }
}

/// Between penalties that are tried.
const STEP: f64 = 3.162_277_660_168_379_5;

/// The next penalties, and the next values of the hyperparameter: twice or half the bias, length scales a fourth root of two
/// apart.
fn neighbours(chosen: &Chosen) -> Vec<Chosen> {
    let penalties = [STEP, 1.0 / STEP].map(|step| Chosen { ratio: chosen.ratio * step, ..chosen.clone() });
    let specs = [1.0, -1.0].into_iter().filter_map(|direction: f64| {
        let spec: Spec = match &chosen.spec {
            Spec::Optical(spec) => OpticalSpec { bias: spec.bias * direction.exp2(), ..spec.clone() }.into(),
            Spec::Fourier(spec) => match spec.length_scale {
                LengthScale::Same(scale) => {
                    let length_scale = LengthScale::Same(scale * (0.25 * direction).exp2());
                    FourierSpec { length_scale, ..spec.clone() }.into()
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Chosen { spec, ..chosen.clone() })
    });
    penalties.into_iter().chain(specs).collect()
}

/// How a classifier did on test rows, and what its fit took.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tested {
    /// Wrong classes in percent.
    pub(super) error: f64,
    pub(super) seconds: f64,
    /// Steps of the iteration; 1 for a factorisation.
    pub(super) steps: f64,
    /// Relative residual; 0 for a factorisation.
    pub(super) residual: f64,
}

impl Tested {
    fn from_values(values: &[f64]) -> Self {
        Tested { error: values[0], seconds: values[1], steps: values[2], residual: values[3] }
    }
}

/// Fits on `train` with `features` features and counts mistakes on `test`.
pub(super) fn test(
    run: &Run<'_>,
    name: &str,
    chosen: &Chosen,
    features: usize,
    train: &Part,
    test: &Part,
) -> Outcome<Tested> {
    let key = format!(
        "{name} D={features} n={} test={} {} threshold {} penalty {:.3e}",
        train.rows.nrows(),
        test.rows.nrows(),
        describe(&chosen.spec),
        chosen.threshold,
        chosen.ratio
    );
    let values = run.values(&key, || {
        let (train, test) = (binary(train, chosen.threshold), binary(test, chosen.threshold));
        let (spec, unit) = prepared(&chosen.spec, features, run.seed, &train)?;
        let map = spec.build::<f32>(train.rows.ncols())?;
        let mut ridge = Ridge::new(map, chosen.ratio * unit)?.with_intercept(chosen.intercept);
        let mut context = bochner::Context::default();
        if features > LARGEST_GRAM && train.rows.nrows() > LARGEST_GRAM {
            ridge = ridge.with_solver(Solver::ConjugateGradients(iteration(300)));
            context = context.with_memory_budget(KEPT)?;
        }
        let start = Instant::now();
        let model = RidgeClassifier::new(ridge).fit_stream(&mut run.watched(&train)?, &mut context)?;
        let seconds = start.elapsed().as_secs_f64();
        let report = model.regression().report();
        let (steps, residual) = (report.iterations as f64, report.residual.unwrap_or(0.0));
        let error = 100.0 * error_rate(&test.classes(), &model.predict_classes(test.rows.view())?)?;
        Ok(vec![error, seconds, steps, residual])
    })?;
    Ok(Tested::from_values(&values))
}

/// Predictions change by less than one in ten thousand below this residual; a model of some directions, made in one pass,
/// takes the steep part of the spectrum away.
fn iteration(directions: usize) -> ConjugateGradients {
    ConjugateGradients {
        tolerance: Some(1e-4),
        max_iterations: 2000,
        preconditioner: Preconditioner::Nystrom(directions),
    }
}

/// The exact kernel of the chosen map: what its features tend to as they become many.
pub(super) fn exact(run: &Run<'_>, name: &str, chosen: &Chosen, train: &Part, test: &Part) -> Outcome<Tested> {
    let key = format!(
        "{name} exact n={} test={} {} threshold {} penalty {:.3e}",
        train.rows.nrows(),
        test.rows.nrows(),
        describe(&chosen.spec),
        chosen.threshold,
        chosen.ratio
    );
    let values = run.values(&key, || {
        let (train, test) = (binary(train, chosen.threshold), binary(test, chosen.threshold));
        let kernel = chosen.spec.kernel()?;
        let rows = double(train.rows.view());
        let sample = rows.outer_iter().take(SAMPLE);
        let unit = sample.map(|row| row.to_vec()).map(|row| kernel.evaluate(&row, &row)).sum::<f64>()
            / rows.nrows().min(SAMPLE) as f64;
        let mut ridge = KernelRidge::new(kernel, chosen.ratio * unit)?;
        let mut context = bochner::Context::default();
        if rows.nrows() > 20_000 {
            // A step reads all of the matrix, and takes half as long as thirty directions more in the one pass.
            let solver = ExactSolver::ConjugateGradients(iteration(1000));
            ridge = ridge.with_solver(solver);
            context = context.with_memory_budget(KERNEL)?;
        }
        let targets = double(train.targets.view());
        let mut source = InMemory::new(rows.view(), targets.view())?;
        let classes = count_classes(&mut source)?;
        let start = Instant::now();
        let model = ridge.fit_stream(&mut Coded::new(&mut source, classes, Coding::OneAgainstRest)?, &mut context)?;
        let seconds = start.elapsed().as_secs_f64();
        let scores = model.predict(double(test.rows.view()).view())?;
        let error = 100.0 * error_rate(&test.classes(), &largest(&scores))?;
        let report = model.report();
        Ok(vec![error, seconds, report.iterations as f64, report.residual.unwrap_or(0.0)])
    })?;
    Ok(Tested::from_values(&values))
}

/// The column of the largest value of every row.
pub(super) fn largest(scores: &Array2<f64>) -> Vec<usize> {
    scores.outer_iter().map(winner).collect()
}

/// The hyperparameter that a search over maps varies, in words.
pub(super) fn describe(spec: &Spec) -> String {
    match spec {
        Spec::Optical(spec) => format!("bias {}", spec.bias),
        Spec::Fourier(spec) => match spec.length_scale {
            LengthScale::Same(scale) => format!("length scale {scale:.1}"),
            _ => "length scale by median".into(),
        },
        _ => "no parameter".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_first_of_equal_scores_wins() {
        assert_eq!(largest(&array![[0.0, 2.0, 2.0], [1.0, 1.0, 0.0], [-3.0, -2.0, -1.0]]), [1, 0, 2]);
    }

    #[test]
    fn a_value_at_the_threshold_is_dark() {
        let part = Part { rows: array![[0.0, 10.0, 10.5]], targets: array![[3.0]] };
        assert_eq!(binary(&part, 10.0).rows, array![[0.0, 0.0, 1.0]]);
    }

    #[test]
    fn neighbours_differ_in_one_number() {
        let chosen = |spec: Spec| Chosen { threshold: 10.0, spec, ratio: 0.1, intercept: false, loss: 0.5 };
        let optical = neighbours(&chosen(OpticalSpec { bias: 16.0, ..OpticalSpec::default() }.into()));
        let told: Vec<_> = optical.iter().map(|c| format!("{} {:.3}", describe(&c.spec), c.ratio)).collect();
        assert_eq!(told, ["bias 16 0.316", "bias 16 0.032", "bias 32 0.100", "bias 8 0.100"]);
        let fourier = FourierSpec { length_scale: LengthScale::Same(8.0), ..FourierSpec::default() };
        let told: Vec<_> = neighbours(&chosen(fourier.into())).iter().map(|c| describe(&c.spec)).collect();
        assert_eq!(told, ["length scale 8.0", "length scale 8.0", "length scale 9.5", "length scale 6.7"]);
    }

    #[test]
    fn penalties_are_half_decades_about_one() {
        let ratios = ratios();
        assert!(ratios.windows(2).all(|pair| (pair[1] / pair[0] - 10f64.sqrt()).abs() < 1e-9));
        assert!(ratios.contains(&1.0) && (ratios[0] - 1e-4).abs() < 1e-12);
    }
}
