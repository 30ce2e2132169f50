//! Ridge classifiers on features of rows that a threshold made binary: what the optical experiments search, fit and test.

use super::*;
use bochner::feature::{OpticalProjection, OpticalSpec, OrthoProjectionSpec};
use bochner::model::exact::{ExactSolver, KernelRidge};
use bochner::model::{Ridge, RidgeClassifier};
use bochner::rows::{Coded, Coding, count_classes};
use bochner::solve::{ConjugateGradients, Preconditioner, Solver};
use bochner::tune::{Search, Split, Task, grid};
use bochner::variance::Form;

/// Maps of one kind, and the values of their hyperparameters that are tried.
pub(super) struct Family {
    pub(super) name: String,
    pub(super) candidates: Vec<Spec>,
    /// Whether a constant is fitted beside the features.
    pub(super) intercept: bool,
}

impl Chosen {
    /// A table of what searches chose, with two columns of words before.
    pub(super) fn table(first: &str, (key, heading): (&str, &str)) -> Table {
        Table::new("Chosen on validation rows")
            .words(first, first)
            .words(key, heading)
            .column("threshold", "threshold", Show::Number(3))
            .words("parameter", "parameter")
            .column("penalty", "penalty / mean |φ(x)|²", Show::Number(2))
            .column("validation_error", "validation error", Show::Percent(2))
    }

    pub(super) fn row(&self, table: &mut Table, first: &str, second: &str, parameter: &str) {
        table.add(&[&first, &second, &f64::from(self.threshold), &parameter, &self.ratio, &self.loss]);
    }

    /// The same light with the same hyperparameters, read by a camera of eight bits; nothing for other maps.
    pub(super) fn through_camera(&self) -> Option<Chosen> {
        let Spec::Optical(spec) = &self.spec else { return None };
        let spec = OpticalSpec { camera_bits: Some(8), ..spec.clone() }.into();
        Some(Chosen { spec, ..self.clone() })
    }

    /// The same hyperparameters with the structured map that we would take; nothing for maps that have none.
    pub(super) fn with_our_map(&self) -> Option<Chosen> {
        let spec = match &self.spec {
            Spec::Optical(spec) => OpticalSpec { projection: OpticalProjection::Structured, ..spec.clone() }.into(),
            Spec::Fourier(spec) => {
                FourierSpec { projection: Directions::Sorf, form: Form::CosSin, ..spec.clone() }.into()
            }
            _ => return None,
        };
        Some(Chosen { spec, ..self.clone() })
    }
}

impl Family {
    /// Optical features with these biases, from the paper's dense complex normals.
    pub(super) fn optical(name: &str, exponent: f64, biases: [f64; 3]) -> Outcome<Self> {
        let base = OpticalSpec { exponent, projection: OpticalProjection::Dense, ..OpticalSpec::default() };
        Family::tried(name, base.into(), "bias", &biases)
    }

    /// Fourier features with these length scales, as in the paper: independent frequencies, cosines with offsets.
    pub(super) fn fourier(name: &str, length_scales: &[f64]) -> Outcome<Self> {
        let base = FourierSpec { projection: Directions::Gaussian, form: Form::Offset, ..FourierSpec::default() };
        Family::tried(name, base.into(), "length_scale", length_scales)
    }

    fn tried(name: &str, base: Spec, parameter: &'static str, values: &[f64]) -> Outcome<Self> {
        let values = values.iter().map(|&value| value.into()).collect();
        Ok(Family { name: name.into(), candidates: grid(&base, &[(parameter, values)])?, intercept: false })
    }

    /// The inputs themselves, turned, and a constant.
    pub(super) fn plain(name: &str, n_components: usize) -> Self {
        let candidates = vec![OrthoProjectionSpec { n_components, ..OrthoProjectionSpec::default() }.into()];
        Family { name: name.into(), candidates, intercept: true }
    }
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
    Ok((spec, squares / sample.len() as f64))
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
            let (spec, intercept) = (spec.clone(), family.intercept);
            let start = Chosen { threshold, spec, ratio: f64::NAN, intercept, loss: f64::INFINITY };
            let found = judge(run, &format!("{} {index}", family.name), &start, &ratios(), &rows, features)?;
            if best.as_ref().is_none_or(|best| found.loss < best.loss) {
                best = Some(found);
            }
        }
    }
    best.ok_or_else(|| Failure::Failed(format!("{}: nothing to search", family.name)))
}

/// The same map and threshold with a penalty sought again, with other many features.
pub(super) fn refine(run: &Run<'_>, name: &str, chosen: &Chosen, train: &Part, features: usize) -> Outcome<Chosen> {
    // A fit with more features follows noise less closely and wants another penalty, rarely the smallest.
    judge(run, name, chosen, &ratios()[1..], &binary(train, chosen.threshold), features)
}

/// The best of some penalties on a fifth of rows that are binary already.
fn judge(run: &Run<'_>, name: &str, chosen: &Chosen, ratios: &[f64], rows: &Part, features: usize) -> Outcome<Chosen> {
    let losses = losses(run, name, chosen, ratios, rows, features)?;
    let best = smallest(&losses);
    Ok(Chosen { ratio: ratios[best], loss: losses[best], ..chosen.clone() })
}

/// The error of every penalty on a fifth of rows that are binary already.
fn losses(
    run: &Run<'_>,
    name: &str,
    chosen: &Chosen,
    ratios: &[f64],
    rows: &Part,
    features: usize,
) -> Outcome<Vec<f64>> {
    let key = format!(
        "validation of {name}: {}, threshold {}, D={features}, n={}, penalties {:.1e} to {:.1e}",
        map_key(&chosen.spec),
        chosen.threshold,
        rows.len(),
        ratios[0],
        ratios[ratios.len() - 1],
    );
    run.values(&key, &mut || {
        let (spec, unit) = prepared(&chosen.spec, features, run.seed, rows)?;
        let search = Search {
            penalties: ratios.iter().map(|ratio| ratio * unit).collect(),
            intercept: chosen.intercept,
            seed: Seed::new(run.seed),
            ..Search::new(Task::Classification, Split::HeldOut(0.2))
        };
        let trials = search.run(&[spec], &mut rows.source()?, &mut |_| Ok(()))?;
        Ok(trials.trials.iter().map(|trial| trial.mean()).collect())
    })
}

/// The error of every penalty and map of a family at the threshold that was chosen, as in the heat map of the paper's
/// appendix.
pub(super) fn heat(run: &Run<'_>, family: &Family, chosen: &Chosen, train: &Part, features: usize) -> Outcome<Plot> {
    const LEVELS: usize = 8;
    let rows = binary(train, chosen.threshold);
    let (mut cells, mut names) = (Vec::new(), Vec::new());
    for (index, spec) in family.candidates.iter().enumerate() {
        let at = Chosen { spec: spec.clone(), intercept: family.intercept, ..chosen.clone() };
        // The numbers of the search are remembered under these names.
        let found = losses(run, &format!("{} {index}", family.name), &at, &ratios(), &rows, features)?;
        cells.extend(ratios().into_iter().zip(found).map(|(ratio, loss)| (ratio, index, loss)));
        names.push(describe(spec));
    }
    let least = cells.iter().map(|(.., loss)| *loss).fold(f64::INFINITY, f64::min);
    // Most of the grid is far from its best: shades tell what lies within a few points of it.
    let step = 0.01;
    let mut plot = Plot::new(
        format!("Validation error of {}: the grid of the search", family.name),
        format!(
            "Threshold {}, D = {}; rows from below: {}.",
            chosen.threshold,
            words::count(features),
            names.join(", ")
        ),
        Axis::linear("log10 of penalty / mean |φ(x)|²"),
        Axis::linear("map").with_ticks((0..names.len()).map(|index| index as f64).collect()),
    );
    plot.series.extend((0..LEVELS).rev().map(|level| {
        let points = 100.0 * step * level as f64;
        let name = if level + 1 == LEVELS {
            format!("{points:.0} points or more")
        } else {
            format!("{points:.0} to {:.0}", points + 1.0)
        };
        // The brightest shade is the best.
        Series::new(name, Style::Tiles, LEVELS - 1 - level)
    }));
    for (ratio, index, loss) in cells {
        let level = (((loss - least) / step) as usize).min(LEVELS - 1);
        let tip = format!("{}, penalty {ratio:.1e}\n{:.2} %", names[index], 100.0 * loss);
        plot.series[LEVELS - 1 - level].push(Point::new(ratio.log10(), index as f64), tip);
    }
    Ok(plot)
}

/// Penalty and hyperparameter for the exact kernel, by fits to some rows and their mistakes on others: from the choice for
/// features to the better one of its neighbors, until there is none.
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
    let (held, rest) = rows.cut(rows.len() * judged / (fitted + judged));
    let judge = |at: Chosen| -> Outcome<Chosen> {
        let found = exact(run, &format!("validation of {name}"), &at, &rest, &held)?;
        Ok(Chosen { loss: 0.01 * found.error, ..at })
    };
    // Few features regularise by being few; the kernel itself needs a larger penalty than they do.
    let mut best = judge(Chosen { ratio: chosen.ratio * STEP, ..chosen.clone() })?;
    'moving: loop {
        for at in neighbors(&best) {
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
fn neighbors(chosen: &Chosen) -> Vec<Chosen> {
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

/// What a fit of binary training rows gives: mistakes on binary test rows, steps, residual; seconds too.
type Fitted<'a> = &'a dyn Fn(&Part, &Part) -> Outcome<(Vec<usize>, f64, bochner::solve::SolveReport)>;

impl Tested {
    /// Fits, counts mistakes and remembers them.
    fn of(run: &Run<'_>, name: &str, chosen: &Chosen, train: &Part, test: &Part, fit: Fitted<'_>) -> Outcome<Self> {
        let key = format!(
            "{name} n={} test={} {} threshold {} penalty {:.3e}",
            train.len(),
            test.len(),
            map_key(&chosen.spec),
            chosen.threshold,
            chosen.ratio
        );
        let values = run.values(&key, &mut || {
            let (train, test) = (binary(train, chosen.threshold), binary(test, chosen.threshold));
            let (predicted, seconds, report) = fit(&train, &test)?;
            let error = 100.0 * error_rate(&test.classes(), &predicted)?;
            Ok(vec![error, seconds, report.iterations as f64, report.residual.unwrap_or(0.0)])
        })?;
        Ok(Tested { error: values[0], seconds: values[1], steps: values[2], residual: values[3] })
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
    Tested::of(run, &format!("{name} D={features}"), chosen, train, test, &|train, test| {
        let (spec, unit) = prepared(&chosen.spec, features, run.seed, train)?;
        let map = spec.build::<f32>(train.rows.ncols())?;
        let mut ridge = Ridge::new(map, chosen.ratio * unit)?.with_intercept(chosen.intercept);
        let mut context = Context::default();
        if features > LARGEST_GRAM && train.len() > LARGEST_GRAM {
            ridge = ridge.with_solver(Solver::ConjugateGradients(iteration(300)));
            context = context.with_memory_budget(KEPT)?;
        }
        let start = Instant::now();
        let model = RidgeClassifier::new(ridge).fit_stream(&mut train.source()?, &mut context)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok((model.predict_classes(test.rows.view())?, seconds, model.regression().report().clone()))
    })
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
    Tested::of(run, &format!("{name} exact"), chosen, train, test, &|train, test| {
        let kernel = chosen.spec.kernel()?;
        let train = train.double();
        let sample = train.first(SAMPLE);
        let unit = sample.rows.outer_iter().map(|row| row.to_vec()).map(|row| kernel.evaluate(&row, &row)).sum::<f64>()
            / sample.len() as f64;
        let mut ridge = KernelRidge::new(kernel, chosen.ratio * unit)?;
        let mut context = Context::default();
        if train.len() > 20_000 {
            // A step reads all of the matrix, and takes half as long as thirty directions more in the one pass.
            ridge = ridge.with_solver(ExactSolver::ConjugateGradients(iteration(1000)));
            context = context.with_memory_budget(KERNEL)?;
        }
        let mut source = train.source()?;
        let classes = count_classes(&mut source)?;
        let start = Instant::now();
        let model = ridge.fit_stream(&mut Coded::new(&mut source, classes, Coding::OneAgainstRest)?, &mut context)?;
        let seconds = start.elapsed().as_secs_f64();
        let scores = model.predict(double(test.rows.view()).view())?;
        Ok((largest(&scores), seconds, model.report().clone()))
    })
}

/// The column of the largest value of every row.
pub(super) fn largest(scores: &Array2<f64>) -> Vec<usize> {
    scores.outer_iter().map(winner).collect()
}

/// The hyperparameter and how the map is drawn: numbers of another map are never taken for those of this one.
fn map_key(spec: &Spec) -> String {
    let words = describe(spec);
    match spec {
        Spec::Optical(spec) => format!("{words}, {:?}", spec.projection),
        Spec::Fourier(spec) => format!("{words}, {:?}, {:?}", spec.projection, spec.form),
        _ => words,
    }
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
    fn neighbors_differ_in_one_number() {
        let chosen = |spec: Spec| Chosen { threshold: 10.0, spec, ratio: 0.1, intercept: false, loss: 0.5 };
        let optical = neighbors(&chosen(OpticalSpec { bias: 16.0, ..OpticalSpec::default() }.into()));
        let told: Vec<_> = optical.iter().map(|c| format!("{} {:.3}", describe(&c.spec), c.ratio)).collect();
        assert_eq!(told, ["bias 16 0.316", "bias 16 0.032", "bias 32 0.100", "bias 8 0.100"]);
        let fourier = FourierSpec { length_scale: LengthScale::Same(8.0), ..FourierSpec::default() };
        let told: Vec<_> = neighbors(&chosen(fourier.into())).iter().map(|c| describe(&c.spec)).collect();
        assert_eq!(told, ["length scale 8.0", "length scale 8.0", "length scale 9.5", "length scale 6.7"]);
    }

    #[test]
    fn penalties_are_half_decades_about_one() {
        let ratios = ratios();
        assert!(ratios.windows(2).all(|pair| (pair[1] / pair[0] - 10f64.sqrt()).abs() < 1e-9));
        assert!(ratios.contains(&1.0) && (ratios[0] - 1e-4).abs() < 1e-12);
    }
}
