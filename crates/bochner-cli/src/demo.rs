//! The main job on the embedded digits: how good is an approximate kernel, and what does it cost a classifier?

mod growth;

use crate::cli::Context;
use crate::commands::compare::{self, Entry};
use crate::digits::Digits;
use bochner::feature::{Candidate, Describe, DynMap, Spec};
use bochner::kernel::{Gaussian, kernel_matrix};
use bochner::linalg::{Cholesky, Lower, TileMut};
use bochner::metrics::error_rate;
use bochner::model::{Fit, Ridge, RidgeClassifier};
use bochner::plan::{Measured, Reach, Request, Sample, Trial};
use bochner::preprocess::median_distance;
use bochner::random::{Role, Seed, Stream};
use bochner::words;
use bochner_report::Report;
use bochner_report::plot::{Axis, Plot, Point, Series, Style, wrap};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::progress::{Progress, Watch};
use bochner_table::score::winner;
use ndarray::{Array2, s};
use serde_json::{Value, json};
use std::time::Instant;

/// How much is computed.
#[derive(Debug)]
pub(crate) struct Size {
    /// Numbers of features compared.
    budgets: &'static [usize],
    /// Draws of each map for the kernel error, and for the classifiers.
    error_draws: usize,
    fit_draws: usize,
    /// Rows of the kernel matrix: a third of all pairs of digits says the same as all of them.
    kernel_rows: usize,
    training_rows: usize,
    /// The last step, with more rows.
    growth: growth::Size,
}

impl Size {
    /// Under two minutes on two cores.
    pub(crate) const FULL: Size = Size {
        budgets: &[128, 256, 512, 1024, 2048, 4096],
        error_draws: 10,
        fit_draws: 5,
        kernel_rows: 1000,
        training_rows: 1200,
        growth: growth::Size::FULL,
    };
    /// A second or two: for tests.
    pub(crate) const SMALL: Size = Size {
        budgets: &[32, 128],
        error_draws: 4,
        fit_draws: 2,
        kernel_rows: 200,
        training_rows: 600,
        growth: growth::Size::SMALL,
    };
}

/// Relative error a plan is made for.
const WANTED_ERROR: f64 = 0.02;
const PENALTIES: [f64; 6] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
const CLASSES: usize = 10;

/// Everything the demonstration has found.
pub(crate) struct Results {
    size: &'static Size,
    test_rows: usize,
    length_scale: f64,
    penalty: f64,
    /// Of the kernel matrix.
    errors: Vec<Entry>,
    /// The features that [`WANTED_ERROR`] takes.
    plans: Vec<Entry>,
    /// Shares of wrong digits, with the median seconds of drawing a map, fitting and predicting.
    classifiers: Vec<Entry>,
    exact: Measured,
    growth: growth::Growth,
}

pub(crate) fn measure(size: &'static Size, context: &Context) -> Outcome<Results> {
    let seed = Seed::new(context.global.seed);
    let mut digits = Digits::load()?;
    digits.images /= 16.0;
    let order = Stream::new(seed, Role::Split, 0).permutation(digits.labels.len());
    let order: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
    let (training, test) = order.split_at(size.training_rows);
    let (training_digits, test_digits) = (digits.select(training), digits.select(test));
    let rows = digits.select(&order).images;
    let length_scale = median_distance(rows.view(), seed, rows.nrows())?;
    let kernel = Gaussian::new(length_scale)?;
    let sample = Sample::new(&kernel.into(), rows.slice(s![..size.kernel_rows, ..]))?;
    let mut maps = sample.candidates()?;
    maps.retain(|map| matches!(map.spec, Spec::Fourier(_)));

    let draws = size.budgets.len() * (size.error_draws + size.fit_draws) + size.error_draws;
    let progress = context.steps((maps.len() * draws + PENALTIES.len() + 1 + size.growth.steps()) as u64);
    let (errors, _) = compare::measure(&sample, &maps, size.budgets, &|_| size.error_draws, seed, &*progress)?;
    let mut plans = Vec::new();
    for map in &maps {
        progress.at(format!("planning: {}", map.name).into())?;
        plans.extend(plan(&sample, map, size, seed.child(1000), &*progress)?);
    }

    progress.at("the exact kernel".into())?;
    // The penalty with the fewest errors of the exact kernel on a quarter of the training rows.
    let (most, held_out) = training.split_at(size.training_rows * 3 / 4);
    let (most, held_out) = (digits.select(most), digits.select(held_out));
    let mut best = (f64::INFINITY, PENALTIES[0]);
    for penalty in PENALTIES {
        let (error, _) = exact_error(&kernel, &most, &held_out, penalty)?;
        // Of equals the larger penalty, which is the smoother model.
        if error <= best.0 {
            best = (error, penalty);
        }
        progress.done(1)?;
    }
    let penalty = best.1;
    let timed = |error: &mut dyn FnMut() -> Outcome<f64>| {
        let start = Instant::now();
        let error = error()?;
        progress.done(1)?;
        Ok::<_, Failure>((error, start.elapsed().as_secs_f64()))
    };
    let (error, seconds) = timed(&mut || Ok(exact_error(&kernel, &training_digits, &test_digits, penalty)?.0))?;
    let exact = Measured { errors: vec![error], seconds };
    let mut classifiers = Vec::new();
    for Candidate { name, spec, .. } in &maps {
        for &features in size.budgets {
            progress.at(format!("classifier: {name}, {} features", words::count(features)).into())?;
            let draw = |i: usize| {
                let spec = spec.redrawn(features, seed.child(i as u64).number());
                timed(&mut || feature_error(&spec, &training_digits, &test_digits, penalty))
            };
            let found: Vec<(f64, f64)> = (0..size.fit_draws).map(draw).collect::<Outcome<_>>()?;
            let (errors, mut times): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
            times.sort_by(f64::total_cmp);
            let measured = Measured { errors, seconds: times[times.len() / 2] };
            classifiers.push(Entry { name: name.clone(), features, measured, predicted: None });
        }
    }
    let growth =
        growth::measure(&size.growth, (&training_digits, &test_digits), penalty, seed.child(2000), &*progress)?;
    let test_rows = test.len();
    Ok(Results { size, test_rows, length_scale, penalty, errors, plans, classifiers, exact, growth })
}

/// How many features of a map the wanted error takes, from variances alone, and the error measured there.
fn plan(
    sample: &Sample<'_>,
    map: &Candidate,
    size: &Size,
    seed: Seed,
    progress: &dyn Progress,
) -> Outcome<Option<Entry>> {
    let request = Request { error: WANTED_ERROR, seed: seed.number(), ..Request::default() };
    let Reach { spec, features, expected, closed_form } = sample.reach(map, &request)?;
    if expected > WANTED_ERROR {
        return Ok(None);
    }
    let mut tick = || progress.done(1).map_err(|_| bochner::Error::Interrupted);
    let measured = sample.measure(&spec, size.error_draws, seed, &mut tick)?;
    Ok(Some(Entry { name: map.name.clone(), features, measured, predicted: Some((expected, closed_form)) }))
}

/// Kernel ridge regression on one-against-rest targets: `(K + αI) c = Y`, the largest of `k(x, ·) c` wins. With the seconds that
/// the factorisation took.
fn exact_error(kernel: &Gaussian, train: &Digits, test: &Digits, penalty: f64) -> Outcome<(f64, f64)> {
    let n = train.labels.len();
    let mut matrix = kernel_matrix(kernel, train.images.view(), train.images.view())?;
    matrix.diag_mut().mapv_inplace(|v| v + penalty);
    let matrix = Lower::from_square(matrix.as_slice().unwrap_or(&[]), n)?;
    let start = Instant::now();
    let factor =
        Cholesky::new(matrix).map_err(|_| Failure::Failed("the kernel matrix is not positive definite".into()))?;
    let factoring = start.elapsed().as_secs_f64();
    let mut dual = Array2::from_elem((n, CLASSES), -1.0);
    train.labels.iter().enumerate().for_each(|(i, &label)| dual[[i, label]] = 1.0);
    factor.solve_in_place(TileMut::new(dual.as_slice_mut().unwrap_or(&mut []), n, CLASSES))?;
    let values = kernel_matrix(kernel, test.images.view(), train.images.view())?.dot(&dual);
    let predicted: Vec<usize> = values.rows().into_iter().map(winner).collect();
    Ok((error_rate(&test.labels, &predicted)?, factoring))
}

/// Ridge regression on the features, as the exact kernel does it: without an intercept.
fn ridge(spec: &Spec, train: &Digits, penalty: f64) -> Outcome<Ridge<DynMap<f32>>> {
    Ok(Ridge::new(spec.build::<f32>(train.images.ncols())?, penalty)?.with_intercept(false))
}

fn feature_error(spec: &Spec, train: &Digits, test: &Digits, penalty: f64) -> Outcome<f64> {
    let rows = |digits: &Digits| digits.images.mapv(|v| v as f32);
    let labels = Array2::from_shape_fn((train.labels.len(), 1), |(i, _)| train.labels[i] as f32);
    let model = RidgeClassifier::new(ridge(spec, train, penalty)?)
        .with_classes(CLASSES)?
        .fit(rows(train).view(), labels.view())?;
    Ok(error_rate(&test.labels, &model.predict_classes(rows(test).view())?)?)
}

impl Results {
    fn exact_accuracy(&self) -> f64 {
        1.0 - self.exact.mean()
    }

    /// Of the kernel matrix, of plans, of classifiers and of more rows.
    fn tables(&self) -> [Table; 4] {
        let percent = 100.0 * WANTED_ERROR;
        [
            compare::table("Error of the approximate kernel matrix, relative to the exact one", &self.errors),
            compare::table(
                &format!("Features for an error of {percent:.0} %, planned from variances alone"),
                &self.plans,
            ),
            self.accuracy_table(),
            self.growth.table(),
        ]
    }

    fn accuracy_table(&self) -> Table {
        let mut table = Table::new(format!(
            "Test accuracy of a ridge classifier ({} training rows, penalty {})",
            words::count(self.size.training_rows),
            self.penalty
        ))
        .words("map", "map")
        .numbers("features", "features")
        .numbers("test_accuracy", "accuracy")
        .numbers("spread", "spread")
        .numbers("below_exact", "below exact")
        .numbers("seconds", "time");
        for (_, entries) in compare::by_map(&self.classifiers) {
            for Entry { name, features, measured, .. } in entries {
                table.push(vec![
                    Cell::text(&**name),
                    Cell::count(*features),
                    Cell::percent(1.0 - measured.mean(), 2),
                    Cell::percent(measured.deviation(), 2),
                    Cell::percent(measured.mean() - self.exact.mean(), 2),
                    Cell::duration(measured.seconds),
                ]);
            }
            table.start_group();
        }
        table.push(vec![
            Cell::text("exact kernel"),
            Cell::missing("–"),
            Cell::percent(self.exact_accuracy(), 2),
            Cell::missing(""),
            Cell::missing(""),
            Cell::duration(self.exact.seconds),
        ]);
        table
    }

    /// Plots with the names of their files.
    pub(crate) fn plots(&self) -> [(&'static str, Plot); 3] {
        let subtitle = format!(
            "Gaussian kernel on {} digits. Marks: mean of {} draws with one standard deviation. Dashed: predicted from \
             variances.",
            words::count(self.size.kernel_rows),
            self.size.error_draws
        );
        let title = "The error is known before anything is trained".into();
        [
            ("kernel-error", Plot { title, ..compare::by_features(&subtitle, &self.errors) }),
            ("accuracy", self.accuracy_plot()),
            ("rows", self.growth.plot()),
        ]
    }

    fn accuracy_plot(&self) -> Plot {
        let mut exact = Series::new("exact kernel", Style::Dashed, 6);
        let tip = format!("exact kernel ridge\n{:.2} %", 100.0 * self.exact_accuracy());
        for features in [self.size.budgets.first(), self.size.budgets.last()].into_iter().flatten() {
            exact.push(Point::new(*features as f64, self.exact_accuracy()), tip.clone());
        }
        let mut series = compare::marks(Style::Marks, &self.classifiers, &|Entry { features, measured, .. }| {
            let (accuracy, spread) = (1.0 - measured.mean(), measured.deviation());
            Point::new(*features as f64, accuracy).with_range(accuracy - spread, accuracy + spread)
        });
        series.push(exact);
        Plot {
            title: "A linear model on the features approaches the exact kernel".into(),
            subtitle: format!(
                "Accuracy on {} test digits of a ridge classifier. Bars: one standard deviation over {} draws.",
                self.test_rows, self.size.fit_draws
            ),
            x: compare::features_axis(&self.classifiers),
            y: Axis::linear("test accuracy").in_percent(),
            series,
        }
    }

    /// What the numbers say, in sentences.
    fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let ratio = |entry: &Entry| match entry.predicted {
            Some((predicted, true)) => Some(entry.measured.root_mean_square() / predicted),
            _ => None,
        };
        let ratios: Vec<f64> = self.errors.iter().filter_map(ratio).collect();
        if let Some(worst) = ratios.iter().map(|r| (r - 1.0).abs()).max_by(f64::total_cmp) {
            findings.push(format!(
                "Predictions hold: over {} settings the measured error is within {:.1} % of the one predicted without \
                 drawing a single feature.",
                ratios.len(),
                100.0 * worst
            ));
        }
        let plans: Vec<String> =
            self.plans.iter().map(|plan| format!("{} ({})", words::count(plan.features), plan.name)).collect();
        if !plans.is_empty() {
            let percent = 100.0 * WANTED_ERROR;
            findings
                .push(format!("Planning: an error of {percent:.0} % takes this many features: {}.", plans.join(", ")));
        }
        let largest = self.classifiers.iter().filter(|entry| Some(&entry.features) == self.size.budgets.last());
        if let Some(best) = largest.min_by(|a, b| a.measured.mean().total_cmp(&b.measured.mean())) {
            findings.push(format!(
                "Learning: with {} features ({}) the classifier is right on {:.2} % of unseen digits; the exact kernel, \
                 whose cost grows with the cube of the rows, on {:.2} %.",
                words::count(best.features),
                best.name,
                100.0 * (1.0 - best.measured.mean()),
                100.0 * self.exact_accuracy()
            ));
        }
        findings.extend(self.growth.findings());
        findings
    }

    /// What the terminal shows.
    pub(crate) fn summary(&self, context: &Context) -> String {
        let tables = self.tables();
        let mut text: String =
            tables.iter().filter(|t| !t.is_empty()).map(|t| t.to_text(context.colour) + "\n").collect();
        for finding in self.findings() {
            text += &format!("• {}\n", wrap(&finding, 96).join("\n  "));
        }
        text + "\n"
    }

    /// The page.
    pub(crate) fn report(&self, context: &Context, seconds: f64) -> Report {
        let mut report = Report::new(
            "Random features on handwritten digits",
            "A kernel method becomes a linear model on random features. How good is the approximation, can its error be \
             known beforehand, and what does it cost a classifier?",
        );
        for finding in self.findings() {
            report.paragraph(&finding);
        }
        let ([errors, plans, accuracies, growth], plots) = (self.tables(), self.plots());
        let [error_plot, accuracy_plot, growth_plot] = plots.map(|(_, plot)| plot);
        report
            .heading("The kernel matrix")
            .paragraph(&format!(
                "Gaussian kernel exp(-|x - y|²/2ℓ²) with ℓ = {:.3}, the median distance of two digits. “Dense” maps draw \
                 independent frequencies, “orthogonal” ones draw them at right angles in blocks, SORF uses three rounds of \
                 random signs and Walsh–Hadamard transforms. The predicted error is √(Σ Var k̂(x, y)) / ‖K‖, a sum of \
                 closed-form variances, which SORF has to leading order only. Times are for transforming the {} digits of the \
                 kernel matrix.",
                self.length_scale,
                words::count(self.size.kernel_rows)
            ))
            .plot(&error_plot)
            .table(&errors);
        if !plans.is_empty() {
            report
                .heading("Planning")
                .paragraph("Turned around, the formula says how many features an error takes. Nothing is drawn for it.")
                .table(&plans);
        }
        report
            .heading("Learning")
            .paragraph(&format!(
                "Ridge regression of ten one-against-rest targets on {} digits, tested on the other {}. The penalty {} was \
                 chosen for the exact kernel on a quarter of the training rows and is the same for all. Times cover drawing \
                 the map, fitting and predicting.",
                words::count(self.size.training_rows),
                self.test_rows,
                self.penalty
            ))
            .plot(&accuracy_plot)
            .table(&accuracies)
            .heading("More rows")
            .paragraph(&self.growth.introduction())
            .plot(&growth_plot)
            .table(&growth)
            .footer(&format!(
                "bochner {} demo, seed {}, {} threads, {}. Digits: Optical Recognition of Handwritten Digits (test part), \
                 E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0.",
                env!("CARGO_PKG_VERSION"),
                context.global.seed,
                context.threads(),
                words::duration(seconds)
            ));
        report
    }

    /// The numbers.
    pub(crate) fn to_json(&self, context: &Context, seconds: f64) -> Value {
        let [errors, plans, accuracies, growth] = self.tables();
        json!({
            "program": concat!("bochner ", env!("CARGO_PKG_VERSION")),
            "seed": context.global.seed,
            "threads": context.threads(),
            "seconds": seconds,
            "kernel": { "name": "gaussian", "length_scale": self.length_scale, "rows": self.size.kernel_rows },
            "kernel_error": errors.to_json(),
            "plan": plans.to_json(),
            "training_rows": self.size.training_rows,
            "penalty": self.penalty,
            "accuracy_draws": self.size.fit_draws,
            "accuracy": accuracies.to_json(),
            "exact_accuracy": self.exact_accuracy(),
            "more_rows": growth.to_json(),
        })
    }
}
