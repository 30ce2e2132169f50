//! Operator-valued random features, figure 2: MNIST with a decomposable kernel and simplex codes, against rows and features.

use super::classify::largest;
use super::orff::{Found, table};
use super::*;
use bochner::model::{ExactOperatorRidge, OperatorRidge, OperatorRidgeClassifierModel};
use bochner::rows::{Coded, Coding, simplex_codes};

const SIGMA: f64 = 20.0;
const CLASSES: usize = 10;
const PENALTIES: [f64; 7] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.images("mnist")?;
    let scaled = |part: Part| Part { rows: part.rows / 127.5 - 1.0, ..part };
    let (train, test) = (scaled(train), scaled(test).sample(run.count("test rows")?, 2));
    let (rows, frequencies): (Vec<usize>, Vec<usize>) = (run.setting("numbers of rows")?, run.setting("frequencies")?);
    let (rows, frequencies) = (&rows[..], &frequencies[..]);
    let train = train.sample(rows.iter().copied().max().unwrap_or(0), 1);
    let kernel = OperatorKernel::decomposable(Gaussian::new(SIGMA)?.into(), OutputMatrix::identity(CLASSES - 1)?)?;
    let study = Study { run, kernel, train, test };
    let title = format!("Error on {} test images, and seconds to fit", words::count(study.test.len()));
    let mut table = table(title, ("error", "test error", Show::Percent(2)));
    let (images, error) = (Axis::log("training images N").with_counts(rows), Axis::linear("test error").in_percent());
    let mut times = Plot::new(
        "Time to fit",
        "Decomposable Gaussian kernel with simplex codes on MNIST, penalty given.",
        images.clone(),
        Axis::log("seconds"),
    );
    let title = "Test error against number of training images";
    let mut by_rows = Plot::new(title, "Penalty by two folds.", images, error.clone());
    let mut findings = Findings::default();
    let mut growth = Vec::new();
    for &n in rows {
        let (features, exact) = (study.features(n, 1000)?, study.exact(n)?);
        features.row(&mut table, "features", n, Some(1000));
        exact.row(&mut table, "exact", n, None);
        for (name, found) in [("1,000 frequencies", &features), ("exact kernel", &exact)] {
            let (percent, time) = (100.0 * found.score, words::duration(found.seconds));
            let tip = format!("{name}, N = {}\n{percent:.2} %, {time}", words::count(n));
            times.line(name, Style::Marks).push(Point::new(n as f64, found.seconds), tip.clone());
            by_rows.line(name, Style::Marks).push(Point::new(n as f64, found.score), tip);
        }
        growth.push((n as f64, features.seconds, exact.seconds));
    }
    let mut by_frequencies = Plot::new(
        "Test error against number of frequencies",
        "Penalty by two folds. Dashed: exact kernel.",
        Axis::log("number of frequencies D").with_counts(frequencies),
        error,
    );
    for (index, n) in [1000, rows[rows.len() - 1]].into_iter().enumerate() {
        table.start_group();
        let exact = study.exact(n)?;
        let name = format!("N = {}", words::count(n));
        let limit = 100.0 * exact.score;
        let mut close = None;
        for &d in frequencies {
            let found = study.features(n, d)?;
            if d != 1000 {
                found.row(&mut table, "features", n, Some(d));
            }
            let tip = format!("{name}, D = {}\n{:.2} %", words::count(d), 100.0 * found.score);
            by_frequencies.line(&name, Style::Marks).push(Point::new(d as f64, found.score), tip);
            if found.score <= exact.score + 0.01 {
                close = close.or(Some((d, 100.0 * found.score)));
            }
        }
        let what = format!("{name}, exact kernel");
        let dashed = Series::level(&what, index, frequencies, exact.score, &format!("{what}\n{limit:.2} %"));
        by_frequencies.series.push(dashed.unlabelled());
        findings.remark(match close {
            Some((d, error)) => format!(
                "{name}: {} frequencies reach {error:.2} % and are within one point of the exact kernel's {limit:.2} %.",
                words::count(d)
            ),
            None => format!(
                "{name}: none of these numbers of frequencies comes within one point of the exact kernel's {limit:.2} %."
            ),
        });
    }
    // The first sizes are small enough for overheads to show.
    if let [.., from, to] = growth[..] {
        let slope = |a: f64, b: f64| (b / a).ln() / (to.0 / from.0).ln();
        findings.remark(format!(
            "Between the last two N the time of features grows like N to the power {:.2}, that of the exact kernel like {:.2}.",
            slope(from.1, to.1),
            slope(from.2, to.2)
        ));
    }
    findings.tables.push(table);
    findings.plot("time", times);
    findings.plot("error-rows", by_rows);
    findings.plot("error", by_frequencies);
    Ok(findings)
}

struct Study<'a> {
    run: &'a Run<'a>,
    kernel: OperatorKernel,
    train: Part,
    test: Part,
}

impl Study<'_> {
    fn found(&self, key: &str, make: &mut dyn FnMut() -> Outcome<[f64; 3]>) -> Outcome<Found> {
        Found::of(self.run, &format!("{key} test={}", self.test.len()), make)
    }

    fn features(&self, n: usize, frequencies: usize) -> Outcome<Found> {
        self.found(&format!("independent frequencies N={n} D={frequencies}"), &mut || {
            let part = self.train.first(n);
            let spec = OperatorSpec {
                n_components: 2 * frequencies,
                projection: Directions::Gaussian,
                seed: self.run.seed,
                ..OperatorSpec::new(self.kernel.clone())
            };
            let features = spec.build::<f32>(part.rows.ncols())?;
            let error = |model, held: &Part| -> Outcome<f64> {
                let model = OperatorRidgeClassifierModel::from_regression(model, Coding::Simplex)?;
                Ok(error_rate(&held.classes(), &model.predict_classes(held.rows.view())?)?)
            };
            let penalty = by_folds(&part, &|rows, held| {
                // One pass for all penalties.
                let ridge = OperatorRidge::new(features.clone(), PENALTIES[0])?;
                let mut source = rows.source()?;
                let mut coded = Coded::new(&mut source, CLASSES, Coding::Simplex)?;
                let models = ridge.fit_path(&PENALTIES, &mut coded, &mut Context::default())?;
                models.into_iter().map(|model| error(model, held)).collect()
            })?;
            let start = Instant::now();
            let ridge = OperatorRidge::new(features.clone(), penalty)?;
            let mut source = part.source()?;
            let mut coded = Coded::new(&mut source, CLASSES, Coding::Simplex)?;
            let model = ridge.fit_stream(&mut coded, &mut Context::default())?;
            let seconds = start.elapsed().as_secs_f64();
            Ok([error(model, &self.test)?, seconds, penalty])
        })
    }

    fn exact(&self, n: usize) -> Outcome<Found> {
        self.found(&format!("exact N={n}"), &mut || {
            let part = self.train.first(n);
            let codes = simplex_codes(CLASSES)?;
            let fit = |rows: &Part, held: &Part, penalty: f64| -> Outcome<(f64, f64)> {
                let targets = codes.select(Side(0), &rows.classes());
                let start = Instant::now();
                let ridge = ExactOperatorRidge::new(self.kernel.clone(), penalty)?;
                let model = ridge.fit(double(rows.rows.view()).view(), targets.view())?;
                let seconds = start.elapsed().as_secs_f64();
                let values: Array2<f64> = model.predict(double(held.rows.view()).view())?;
                Ok((error_rate(&held.classes(), &largest(&values.dot(&codes.t())))?, seconds))
            };
            let penalty = by_folds(&part, &|rows, held| {
                PENALTIES.iter().map(|&penalty| Ok(fit(rows, held, penalty)?.0)).collect()
            })?;
            let (error, seconds) = fit(&part, &self.test, penalty)?;
            Ok([error, seconds, penalty])
        })
    }
}

/// The penalty with the smallest error when each half of the rows is judged by the other, the first of equals.
fn by_folds(part: &Part, errors: &dyn Fn(&Part, &Part) -> Outcome<Vec<f64>>) -> Outcome<f64> {
    let (first, second) = part.cut(part.len() / 2);
    let (a, b) = (errors(&first, &second)?, errors(&second, &first)?);
    let both: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    Ok(PENALTIES[smallest(&both)])
}
