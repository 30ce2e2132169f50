//! The main job on the embedded digits: how good is an approximate kernel, and what does it cost a classifier?

use crate::cli::Context;
use crate::digits::{self, Digits};
use crate::progress::Bar;
use bochner::feature::{Describe, Directions, FeatureMap, FourierSpec};
use bochner::kernel::{Gaussian, kernel_matrix};
use bochner::linalg::{Cholesky, Lower, TileMut};
use bochner::metrics::{error_rate, relative_frobenius_error};
use bochner::model::{Fit, Ridge, RidgeClassifier};
use bochner::preprocess::median_distance;
use bochner::random::{Role, Seed, Stream};
use bochner::words;
use bochner_report::Report;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::progress::Progress;
use bochner_table::score::winner;
use ndarray::{Array2, ArrayView2, Axis as Dimension};
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
}

impl Size {
    /// Under two minutes on two cores.
    pub(crate) const FULL: Size = Size {
        budgets: &[128, 256, 512, 1024, 2048, 4096],
        error_draws: 10,
        fit_draws: 5,
        kernel_rows: 1000,
        training_rows: 1200,
    };
    /// A second or two: for tests.
    pub(crate) const SMALL: Size =
        Size { budgets: &[32, 128], error_draws: 4, fit_draws: 2, kernel_rows: 200, training_rows: 600 };

    fn test_rows(&self) -> usize {
        DIGITS - self.training_rows
    }

    fn ticks(&self) -> Vec<f64> {
        self.budgets.iter().map(|&b| b as f64).collect()
    }

    fn largest(&self) -> usize {
        self.budgets.iter().copied().max().unwrap_or(0)
    }
}

/// All digits.
const DIGITS: usize = 1797;
/// Relative error a plan is made for.
const WANTED_ERROR: f64 = 0.02;
const PENALTIES: [f64; 6] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
const CLASSES: usize = 10;

/// A kind of map, in the order and colour of the plots.
struct Kind {
    name: &'static str,
    key: &'static str,
    directions: Directions,
}

const KINDS: [Kind; 3] = [
    Kind { name: "dense", key: "gaussian", directions: Directions::Gaussian },
    Kind { name: "orthogonal", key: "orthogonal", directions: Directions::Orthogonal },
    Kind { name: "SORF", key: "sorf", directions: Directions::Sorf },
];

impl Kind {
    fn spec(&self, n_components: usize, length_scale: f64, seed: Seed) -> FourierSpec {
        FourierSpec {
            n_components,
            length_scale: length_scale.into(),
            projection: self.directions,
            seed: seed.number(),
            ..FourierSpec::default()
        }
    }
}

/// Kernel error of a map with so many features.
struct ErrorPoint {
    kind: usize,
    features: usize,
    /// One per seed.
    measured: Vec<f64>,
    /// `√(Σ variances)/‖K‖`, where the variance has a closed form.
    predicted: Option<f64>,
    /// Median seconds of transforming all digits.
    seconds: f64,
}

/// Accuracy of a classifier on so many features.
struct AccuracyPoint {
    kind: usize,
    features: usize,
    accuracies: Vec<f64>,
    /// Median seconds of drawing the map, fitting and predicting.
    seconds: f64,
}

/// How many features a wanted error takes, from variances alone, and the error measured there.
struct Plan {
    kind: usize,
    features: usize,
    predicted: f64,
    measured: Vec<f64>,
}

/// Everything the demonstration has found.
pub(crate) struct Results {
    size: &'static Size,
    length_scale: f64,
    penalty: f64,
    errors: Vec<ErrorPoint>,
    plans: Vec<Plan>,
    accuracies: Vec<AccuracyPoint>,
    exact_accuracy: f64,
    exact_seconds: f64,
}

/// Root of the mean of squares: what a predicted error predicts.
fn root_mean_square(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0).max(1.0)).sqrt()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn measure(size: &'static Size, context: &Context) -> Outcome<Results> {
    let seed = Seed::new(context.global.seed);
    let draws = size.budgets.len() * (size.error_draws + size.fit_draws) + size.error_draws;
    let steps = KINDS.len() * draws + PENALTIES.len() + 1;
    let progress = Bar::new(context, steps as u64);
    progress.at("reading the digits".into())?;
    let data = Shuffled::new(digits::load()?, seed);
    let length_scale = median_distance(data.rows.view(), seed, data.rows.nrows())?;
    let kernel = Gaussian::new(length_scale)?;

    let sample = data.rows.slice(ndarray::s![..size.kernel_rows, ..]);
    let exact = kernel_matrix(&kernel, sample, sample)?;
    let approximation = Approximation { size, sample, exact, length_scale };
    let mut errors = Vec::new();
    for (kind, description) in KINDS.iter().enumerate() {
        for &features in size.budgets {
            progress.at(format!("kernel error: {}, {} features", description.name, words::count(features)).into())?;
            errors.push(approximation.measure(kind, features, seed, &data, &progress)?);
        }
    }
    let mut plans = Vec::new();
    for (kind, description) in KINDS.iter().enumerate() {
        progress.at(format!("planning: {}", description.name).into())?;
        if let Some(features) = approximation.plan(kind)? {
            let predicted = approximation.predict(kind, features)?.unwrap_or(f64::NAN);
            let mut measured = Vec::new();
            for i in 0..size.error_draws {
                measured.push(approximation.error(kind, features, seed.child(1000 + i as u64))?);
                progress.done(1)?;
            }
            plans.push(Plan { kind, features, predicted, measured });
        }
    }

    progress.at("the exact kernel".into())?;
    let penalty = choose_penalty(size, &data, &kernel, &progress)?;
    let start = Instant::now();
    let (train, test) = data.split(size);
    let exact = exact_accuracy(&kernel, &train, &test, penalty)?;
    let exact_seconds = start.elapsed().as_secs_f64();
    progress.done(1)?;
    let mut accuracies = Vec::new();
    for (kind, description) in KINDS.iter().enumerate() {
        for &features in size.budgets {
            progress.at(format!("classifier: {}, {} features", description.name, words::count(features)).into())?;
            let (mut found, mut times) = (Vec::new(), Vec::new());
            for i in 0..size.fit_draws {
                let start = Instant::now();
                let spec = description.spec(features, length_scale, seed.child(i as u64));
                found.push(feature_accuracy(&spec, &train, &test, penalty)?);
                times.push(start.elapsed().as_secs_f64());
                progress.done(1)?;
            }
            accuracies.push(AccuracyPoint { kind, features, accuracies: found, seconds: median(&mut times) });
        }
    }
    Ok(Results { size, length_scale, penalty, errors, plans, accuracies, exact_accuracy: exact, exact_seconds })
}

/// Digits in random order, pixels from 0 to 1.
struct Shuffled {
    rows: Array2<f64>,
    labels: Vec<usize>,
}

/// Rows in single precision, as features are computed, with their labels.
struct Part {
    rows: Array2<f64>,
    labels: Vec<usize>,
}

impl Shuffled {
    fn new(digits: Digits, seed: Seed) -> Self {
        let order = Stream::new(seed, Role::Split, 0).permutation(digits.labels.len());
        let order: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
        let rows = digits.images.select(Dimension(0), &order) / 16.0;
        Shuffled { rows, labels: order.iter().map(|&i| digits.labels[i]).collect() }
    }

    fn part(&self, range: std::ops::Range<usize>) -> Part {
        Part { rows: self.rows.slice(ndarray::s![range.clone(), ..]).to_owned(), labels: self.labels[range].to_vec() }
    }

    fn split(&self, size: &Size) -> (Part, Part) {
        (self.part(0..size.training_rows), self.part(size.training_rows..self.labels.len()))
    }
}

/// A kernel matrix and estimates of it.
struct Approximation<'a> {
    size: &'static Size,
    sample: ArrayView2<'a, f64>,
    exact: Array2<f64>,
    length_scale: f64,
}

impl Approximation<'_> {
    /// Relative Frobenius error of one draw.
    fn error(&self, kind: usize, features: usize, seed: Seed) -> Outcome<f64> {
        let map = KINDS[kind].spec(features, self.length_scale, seed).build::<f32>(self.sample.ncols())?;
        let features = map.transform(self.sample.mapv(|v| v as f32).view())?;
        let estimate = features.dot(&features.t());
        Ok(relative_frobenius_error(self.exact.view(), estimate.view())?)
    }

    /// Expected error from the variance of every entry; `None` where there is no closed form.
    fn predict(&self, kind: usize, features: usize) -> Outcome<Option<f64>> {
        let spec = KINDS[kind].spec(features, self.length_scale, Seed::new(0));
        match spec.variance(self.sample, self.sample) {
            Ok(variance) => {
                let norm_sq: f64 = self.exact.iter().map(|k| k * k).sum();
                Ok(Some((variance.sum() / norm_sq).sqrt()))
            }
            Err(bochner::Error::Unsupported { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn measure(
        &self,
        kind: usize,
        features: usize,
        seed: Seed,
        data: &Shuffled,
        progress: &dyn Progress,
    ) -> Outcome<ErrorPoint> {
        let mut measured = Vec::new();
        let mut times = Vec::new();
        let rows = data.rows.mapv(|v| v as f32);
        for i in 0..self.size.error_draws {
            measured.push(self.error(kind, features, seed.child(i as u64))?);
            let map = KINDS[kind].spec(features, self.length_scale, seed).build::<f32>(rows.ncols())?;
            let mut out = Array2::zeros((rows.nrows(), map.output_dim()));
            let start = Instant::now();
            map.transform_into(rows.view(), out.view_mut())?;
            times.push(start.elapsed().as_secs_f64());
            progress.done(1)?;
        }
        let predicted = self.predict(kind, features)?;
        Ok(ErrorPoint { kind, features, measured, predicted, seconds: median(&mut times) })
    }

    /// The smallest even number of features whose predicted error is at most the wanted one.
    fn plan(&self, kind: usize) -> Outcome<Option<usize>> {
        let reaches = |features: usize| Ok::<_, Failure>(self.predict(kind, features)?.map(|e| e <= WANTED_ERROR));
        let (mut low, mut high) = (1, 1);
        loop {
            match reaches(2 * high)? {
                None => return Ok(None),
                Some(true) => break,
                Some(false) if high > 1 << 16 => return Ok(None),
                Some(false) => (low, high) = (high + 1, 2 * high),
            }
        }
        while low < high {
            let middle = (low + high) / 2;
            if reaches(2 * middle)? == Some(true) { high = middle } else { low = middle + 1 }
        }
        Ok(Some(2 * high))
    }
}

/// Kernel ridge regression on one-against-rest targets: `(K + αI) c = Y`, the largest of `k(x, ·) c` wins.
fn exact_accuracy(kernel: &Gaussian, train: &Part, test: &Part, penalty: f64) -> Outcome<f64> {
    let n = train.labels.len();
    let mut matrix = kernel_matrix(kernel, train.rows.view(), train.rows.view())?;
    matrix.diag_mut().mapv_inplace(|v| v + penalty);
    let matrix = Lower::from_square(matrix.as_slice().unwrap_or(&[]), n)?;
    let factor =
        Cholesky::new(matrix).map_err(|_| Failure::Failed("the kernel matrix is not positive definite".into()))?;
    let mut dual = Array2::from_elem((n, CLASSES), -1.0);
    train.labels.iter().enumerate().for_each(|(i, &label)| dual[[i, label]] = 1.0);
    factor.solve_in_place(TileMut::new(dual.as_slice_mut().unwrap_or(&mut []), n, CLASSES))?;
    let values = kernel_matrix(kernel, test.rows.view(), train.rows.view())?.dot(&dual);
    let predicted: Vec<usize> = values.rows().into_iter().map(winner).collect();
    Ok(1.0 - error_rate(&test.labels, &predicted)?)
}

/// The penalty with the best accuracy of the exact kernel on a quarter of the training rows.
fn choose_penalty(size: &Size, data: &Shuffled, kernel: &Gaussian, progress: &dyn Progress) -> Outcome<f64> {
    let cut = size.training_rows * 3 / 4;
    let (train, held_out) = (data.part(0..cut), data.part(cut..size.training_rows));
    let mut best = (f64::NEG_INFINITY, PENALTIES[0]);
    for penalty in PENALTIES {
        let accuracy = exact_accuracy(kernel, &train, &held_out, penalty)?;
        // Of equals the larger penalty, which is the smoother model.
        if accuracy >= best.0 {
            best = (accuracy, penalty);
        }
        progress.done(1)?;
    }
    Ok(best.1)
}

fn feature_accuracy(spec: &FourierSpec, train: &Part, test: &Part, penalty: f64) -> Outcome<f64> {
    let rows = |part: &Part| part.rows.mapv(|v| v as f32);
    let labels = Array2::from_shape_fn((train.labels.len(), 1), |(i, _)| train.labels[i] as f32);
    let map = spec.build::<f32>(train.rows.ncols())?;
    let ridge = Ridge::new(map, penalty)?.with_intercept(false);
    let rows_of_train = rows(train);
    let classifier = RidgeClassifier::new(ridge).with_classes(CLASSES)?;
    let model = classifier.fit(rows_of_train.view(), labels.view())?;
    Ok(1.0 - error_rate(&test.labels, &model.predict_classes(rows(test).view())?)?)
}

impl Results {
    fn error_table(&self) -> Table {
        let mut table = Table::new("Error of the approximate kernel matrix, relative to the exact one")
            .words("map", "map")
            .numbers("features", "features")
            .numbers("measured_error", "measured error")
            .numbers("spread", "spread")
            .numbers("predicted_error", "predicted error")
            .numbers("measured_over_predicted", "measured/predicted")
            .numbers("transform_seconds", "time");
        for (i, point) in self.errors.iter().enumerate() {
            if i > 0 && self.errors[i - 1].kind != point.kind {
                table.start_group();
            }
            let measured = root_mean_square(&point.measured);
            table.push(vec![
                Cell::text(KINDS[point.kind].name),
                Cell::count(point.features),
                Cell::percent(measured, 2),
                Cell::percent(deviation(&point.measured), 2),
                point.predicted.map_or(Cell::missing("no closed form"), |p| Cell::percent(p, 2)),
                point.predicted.map_or(Cell::missing(""), |p| Cell::fixed(measured / p, 3)),
                Cell::duration(point.seconds),
            ]);
        }
        table
    }

    fn plan_table(&self) -> Table {
        let mut table =
            Table::new(format!("Features for an error of {:.0} %, planned from variances alone", 100.0 * WANTED_ERROR))
                .words("map", "map")
                .numbers("features", "features")
                .numbers("predicted_error", "predicted error")
                .numbers("measured_error", "measured error");
        for plan in &self.plans {
            table.push(vec![
                Cell::text(KINDS[plan.kind].name),
                Cell::count(plan.features),
                Cell::percent(plan.predicted, 2),
                Cell::percent(root_mean_square(&plan.measured), 2),
            ]);
        }
        table
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
        for (i, point) in self.accuracies.iter().enumerate() {
            if i > 0 && self.accuracies[i - 1].kind != point.kind {
                table.start_group();
            }
            let accuracy = mean(&point.accuracies);
            table.push(vec![
                Cell::text(KINDS[point.kind].name),
                Cell::count(point.features),
                Cell::percent(accuracy, 2),
                Cell::percent(deviation(&point.accuracies), 2),
                Cell::percent(self.exact_accuracy - accuracy, 2),
                Cell::duration(point.seconds),
            ]);
        }
        table.start_group();
        table.push(vec![
            Cell::text("exact kernel"),
            Cell::missing("–"),
            Cell::percent(self.exact_accuracy, 2),
            Cell::missing(""),
            Cell::missing(""),
            Cell::duration(self.exact_seconds),
        ]);
        table
    }

    fn error_plot(&self) -> Plot {
        let mut series = Vec::new();
        for (kind, description) in KINDS.iter().enumerate() {
            let points = || self.errors.iter().filter(move |p| p.kind == kind);
            let mut predicted = Series::new(description.name, Style::Dashed, kind).unlabelled();
            let mut measured = Series::new(description.name, Style::Scatter, kind);
            for point in points() {
                let features = point.features as f64;
                let error = root_mean_square(&point.measured);
                let least = point.measured.iter().copied().fold(f64::INFINITY, f64::min);
                let most = point.measured.iter().copied().fold(0.0, f64::max);
                let words = |what: &str, value: f64| {
                    let percent = 100.0 * value;
                    format!("{}, {} features\n{what} {percent:.2} %", description.name, words::count(point.features))
                };
                let mut tip = words("measured", error);
                if let Some(p) = point.predicted {
                    tip += &format!("\npredicted {:.2} %", 100.0 * p);
                    predicted.push(Point::new(features, p), words("predicted", p));
                }
                measured.push(Point::new(features, error).with_range(least, most), tip);
            }
            series.extend([predicted, measured]);
        }
        Plot {
            title: "The error is known before anything is trained".into(),
            subtitle: format!(
                "Gaussian kernel on {} digits. Marks: measured, bars from the least to the largest of {} draws. Dashed: \
                 predicted from closed-form variances (SORF has none).",
                words::count(self.size.kernel_rows),
                self.size.error_draws
            ),
            x: Axis::log("number of random features").with_ticks(self.size.ticks()),
            y: Axis::log("relative error of the kernel matrix").in_percent(),
            series,
        }
    }

    fn accuracy_plot(&self) -> Plot {
        let mut exact = Series::new("exact kernel", Style::Dashed, 6);
        let words = format!("exact kernel ridge\n{:.2} %", 100.0 * self.exact_accuracy);
        for features in [self.size.budgets[0], self.size.largest()] {
            exact.push(Point::new(features as f64, self.exact_accuracy), words.clone());
        }
        let mut series = vec![exact];
        for (kind, description) in KINDS.iter().enumerate() {
            let mut line = Series::new(description.name, Style::Marks, kind);
            for point in self.accuracies.iter().filter(|p| p.kind == kind) {
                let (mean, spread) = (mean(&point.accuracies), deviation(&point.accuracies));
                let tip = format!(
                    "{}, {} features\n{:.2} % ± {:.2} %\n{}",
                    description.name,
                    words::count(point.features),
                    100.0 * mean,
                    100.0 * spread,
                    words::duration(point.seconds)
                );
                line.push(Point::new(point.features as f64, mean).with_range(mean - spread, mean + spread), tip);
            }
            series.push(line);
        }
        Plot {
            title: "A linear model on the features approaches the exact kernel".into(),
            subtitle: format!(
                "Accuracy on {} test digits of a ridge classifier. Bars: one standard deviation over {} draws.",
                self.size.test_rows(),
                self.size.fit_draws
            ),
            x: Axis::log("number of random features").with_ticks(self.size.ticks()),
            y: Axis::linear("test accuracy").in_percent(),
            series,
        }
    }

    /// Plots with the names of their files.
    pub(crate) fn plots(&self) -> [(&'static str, Plot); 2] {
        [("kernel-error", self.error_plot()), ("accuracy", self.accuracy_plot())]
    }

    /// What the numbers say, in sentences.
    fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let ratios: Vec<f64> =
            self.errors.iter().filter_map(|p| p.predicted.map(|q| root_mean_square(&p.measured) / q)).collect();
        if let Some(worst) = ratios.iter().map(|r| (r - 1.0).abs()).max_by(f64::total_cmp) {
            findings.push(format!(
                "Predictions hold: over {} settings the measured error is within {:.1} % of the one predicted without \
                 drawing a single feature.",
                ratios.len(),
                100.0 * worst
            ));
        }
        if let [first, .., last] = &self.plans[..] {
            findings.push(format!(
                "Planning: an error of {:.0} % takes {} {} features or {} {} ones.",
                100.0 * WANTED_ERROR,
                words::count(first.features),
                KINDS[first.kind].name,
                words::count(last.features),
                KINDS[last.kind].name
            ));
        }
        let largest = self.accuracies.iter().filter(|p| p.features == self.size.largest());
        if let Some(best) = largest.max_by(|a, b| mean(&a.accuracies).total_cmp(&mean(&b.accuracies))) {
            findings.push(format!(
                "Learning: with {} {} features the classifier is right on {:.2} % of unseen digits; the exact kernel, whose \
                 cost grows with the cube of the rows, on {:.2} %.",
                words::count(best.features),
                KINDS[best.kind].name,
                100.0 * mean(&best.accuracies),
                100.0 * self.exact_accuracy
            ));
        }
        findings
    }

    /// What the terminal shows.
    pub(crate) fn summary(&self, context: &Context) -> String {
        let mut text = String::new();
        for table in [self.error_table(), self.plan_table(), self.accuracy_table()] {
            if !table.is_empty() {
                text += &table.to_text(context.colour);
                text += "\n";
            }
        }
        for finding in self.findings() {
            for (i, line) in bochner_report::plot::wrap(&finding, 96).iter().enumerate() {
                text += if i == 0 { "• " } else { "  " };
                text += line;
                text += "\n";
            }
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
        report
            .heading("The kernel matrix")
            .paragraph(&format!(
                "Gaussian kernel exp(-|x - y|²/2ℓ²) with ℓ = {:.3}, the median distance of two digits. “Dense” maps draw \
                 independent frequencies, “orthogonal” ones draw them at right angles in blocks, SORF uses three rounds of \
                 random signs and Walsh–Hadamard transforms. The predicted error is √(Σ Var k̂(x, y)) / ‖K‖, a sum of \
                 closed-form variances. Times are for transforming all 1,797 digits.",
                self.length_scale
            ))
            .plot(&self.error_plot())
            .table(&self.error_table());
        if !self.plans.is_empty() {
            report
                .heading("Planning")
                .paragraph("Turned around, the formula says how many features an error takes. Nothing is drawn for it.")
                .table(&self.plan_table());
        }
        report
            .heading("Learning")
            .paragraph(&format!(
                "Ridge regression of ten one-against-rest targets on {} digits, tested on the other {}. The penalty {} was \
                 chosen for the exact kernel on a quarter of the training rows and is the same for all. Times cover drawing \
                 the map, fitting and predicting.",
                words::count(self.size.training_rows),
                self.size.test_rows(),
                self.penalty
            ))
            .plot(&self.accuracy_plot())
            .table(&self.accuracy_table())
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
        json!({
            "program": concat!("bochner ", env!("CARGO_PKG_VERSION")),
            "seed": context.global.seed,
            "threads": context.threads(),
            "seconds": seconds,
            "kernel": { "name": "gaussian", "length_scale": self.length_scale, "rows": self.size.kernel_rows },
            "maps": KINDS.iter().map(|k| json!({ "name": k.name, "projection": k.key })).collect::<Vec<_>>(),
            "error_draws": self.size.error_draws,
            "kernel_error": self.error_table().to_json(),
            "plan": self.plan_table().to_json(),
            "training_rows": self.size.training_rows,
            "penalty": self.penalty,
            "accuracy_draws": self.size.fit_draws,
            "accuracy": self.accuracy_table().to_json(),
            "exact_accuracy": self.exact_accuracy,
        })
    }
}
