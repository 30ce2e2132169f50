//! Operator-valued random features, figure 2: MNIST with a decomposable kernel and simplex codes, against rows and features.

use super::classify::largest;
use super::data::{Part, double};
use super::{Experiment, Findings, Run};
use bochner::feature::OperatorSpec;
use bochner::kernel::{Gaussian, OperatorKernel, OutputMatrix};
use bochner::metrics::error_rate;
use bochner::model::{ExactOperatorRidge, Fit, OperatorRidge, OperatorRidgeClassifierModel, Predict};
use bochner::rows::{Coded, Coding, InMemory, simplex_codes};
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use bochner_table::score::smallest;
use ndarray::{Array2, Axis as Direction};
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "orff-mnist",
    what: "MNIST by a decomposable kernel and simplex codes: error and time against rows N and frequencies D",
    source: "operator-valued, figure 2; pixels in [-1, 1], sigma = 20, penalty by two folds; the paper has curves only",
    needs: &["mnist"],
    minutes: 10.0,
    run,
};

const SIGMA: f64 = 20.0;
const CLASSES: usize = 10;
const PENALTIES: [f64; 7] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.images("mnist")?;
    let scaled = |part: Part| Part { rows: part.rows / 127.5 - 1.0, ..part };
    let (train, test) = (scaled(train).sample(12_000, 1), scaled(test).sample(run.choose(4000, 10_000), 2));
    let rows: &[usize] = run.choose(&[500, 1000, 2000, 4000][..], &[500, 1000, 2000, 4000, 8000, 12_000][..]);
    let few = 1000;
    let most = rows[rows.len() - 1];
    let frequencies: &[usize] = run.choose(&[30, 100, 300, 1000, 2000][..], &[30, 100, 300, 1000, 2000, 4000][..]);
    let kernel = OperatorKernel::decomposable(Gaussian::new(SIGMA)?.into(), OutputMatrix::identity(CLASSES - 1)?)?;
    let study = Study { run, kernel, train, test };
    let mut table =
        Table::new(format!("Error on {} test images, and seconds to fit", words::count(study.test.rows.nrows())))
            .words("model", "model")
            .numbers("rows", "N")
            .numbers("frequencies", "D")
            .numbers("error", "test error")
            .numbers("seconds", "time")
            .numbers("penalty", "penalty");
    let names = ["1,000 frequencies", "exact kernel"];
    let mut times = names.map(|name| Series::new(name, Style::Marks, usize::from(name == names[1])));
    let mut by_rows = times.clone();
    let mut growth = Vec::new();
    for &n in rows {
        let features = study.features(n, 1000)?;
        let exact = study.exact(n)?;
        table.push(row("features", n, Some(1000), &features));
        table.push(row("exact", n, None, &exact));
        for (i, found) in [&features, &exact].into_iter().enumerate() {
            let tip = format!(
                "{}, N = {}\n{:.2} %, {}",
                names[i],
                words::count(n),
                100.0 * found.error,
                words::duration(found.seconds)
            );
            times[i].push(Point::new(n as f64, found.seconds), tip.clone());
            by_rows[i].push(Point::new(n as f64, found.error), tip);
        }
        growth.push((n as f64, features.seconds, exact.seconds));
    }
    let mut by_frequencies = Vec::new();
    let mut remarks = Vec::new();
    for (index, n) in [few, most].into_iter().enumerate() {
        table.start_group();
        let exact = study.exact(n)?;
        let name = format!("N = {}", words::count(n));
        let mut line = Series::new(&*name, Style::Marks, index);
        let mut dashed = Series::new(format!("{name}, exact kernel"), Style::Dashed, index).unlabelled();
        let mut close = None;
        for &d in frequencies {
            let found = study.features(n, d)?;
            if d != 1000 {
                table.push(row("features", n, Some(d), &found));
            }
            let tip = |what: String, error: f64| format!("{name}, {what}\n{:.2} %", 100.0 * error);
            line.push(Point::new(d as f64, found.error), tip(format!("D = {}", words::count(d)), found.error));
            dashed.push(Point::new(d as f64, exact.error), tip("exact kernel".into(), exact.error));
            if found.error <= exact.error + 0.01 {
                close = close.or(Some((d, found.error)));
            }
        }
        remarks.push(match close {
            Some((d, error)) => format!(
                "{name}: {} frequencies reach {:.2} % and are within one point of the exact kernel's {:.2} %.",
                words::count(d),
                100.0 * error,
                100.0 * exact.error
            ),
            None => format!(
                "{name}: none of these numbers of frequencies comes within one point of the exact kernel's {:.2} %.",
                100.0 * exact.error
            ),
        });
        by_frequencies.extend([line, dashed]);
    }
    // The first sizes are small enough for overheads to show.
    if let [.., from, to] = growth[..] {
        let slope = |a: f64, b: f64| (b / a).ln() / (to.0 / from.0).ln();
        remarks.push(format!(
            "Between the last two N the time of features grows like N to the power {:.2}, that of the exact kernel like {:.2}.",
            slope(from.1, to.1),
            slope(from.2, to.2)
        ));
    }
    let ticks = |values: &[usize]| values.iter().map(|&v| v as f64).collect();
    let plots = vec![
        (
            "time".to_owned(),
            Plot {
                title: "Time to fit".into(),
                subtitle: "Decomposable Gaussian kernel with simplex codes on MNIST, penalty given.".into(),
                x: Axis::log("training images N").with_ticks(ticks(rows)),
                y: Axis::log("seconds"),
                series: times.to_vec(),
            },
        ),
        (
            "error-rows".to_owned(),
            Plot {
                title: "Test error against number of training images".into(),
                subtitle: "Penalty by two folds.".into(),
                x: Axis::log("training images N").with_ticks(ticks(rows)),
                y: Axis::linear("test error").in_percent(),
                series: by_rows.to_vec(),
            },
        ),
        (
            "error".to_owned(),
            Plot {
                title: "Test error against number of frequencies".into(),
                subtitle: "Penalty by two folds. Dashed: exact kernel.".into(),
                x: Axis::log("number of frequencies D").with_ticks(ticks(frequencies)),
                y: Axis::linear("test error").in_percent(),
                series: by_frequencies,
            },
        ),
    ];
    Ok(Findings { tables: vec![table], plots, remarks })
}

struct Study<'a> {
    run: &'a Run<'a>,
    kernel: OperatorKernel,
    train: Part,
    test: Part,
}

struct Found {
    error: f64,
    seconds: f64,
    penalty: f64,
}

fn row(name: &str, n: usize, d: Option<usize>, found: &Found) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::count(n),
        d.map_or(Cell::missing("∞"), Cell::count),
        Cell::percent(found.error, 2),
        Cell::duration(found.seconds),
        Cell::number(found.penalty, 2),
    ]
}

impl Study<'_> {
    fn first(&self, n: usize) -> Part {
        let order: Vec<usize> = (0..n.min(self.train.rows.nrows())).collect();
        self.train.select(&order)
    }

    fn found(&self, key: &str, make: impl FnOnce() -> Outcome<[f64; 3]>) -> Outcome<Found> {
        let key = format!("{key} test={}", self.test.rows.nrows());
        let values = self.run.values(&key, || Ok(make()?.to_vec()))?;
        Ok(Found { error: values[0], seconds: values[1], penalty: values[2] })
    }

    fn features(&self, n: usize, frequencies: usize) -> Outcome<Found> {
        self.found(&format!("features N={n} D={frequencies}"), || {
            let part = self.first(n);
            let spec = OperatorSpec {
                n_components: 2 * frequencies,
                seed: self.run.seed,
                ..OperatorSpec::new(self.kernel.clone())
            };
            let features = spec.build::<f32>(part.rows.ncols())?;
            // One pass for all penalties.
            let errors = |rows: &Part, held: &Part, penalties: &[f64]| -> Outcome<Vec<f64>> {
                let ridge = OperatorRidge::new(features.clone(), penalties[0])?;
                let mut source = InMemory::new(rows.rows.view(), rows.targets.view())?;
                let mut coded = Coded::new(&mut source, CLASSES, Coding::Simplex)?;
                let models = ridge.fit_path(penalties, &mut coded, &mut bochner::Context::default())?;
                models
                    .into_iter()
                    .map(|model| {
                        let model = OperatorRidgeClassifierModel::from_regression(model, Coding::Simplex)?;
                        Ok(error_rate(&held.classes(), &model.predict_classes(held.rows.view())?)?)
                    })
                    .collect()
            };
            let penalty = by_folds(&part, |rows, held| errors(rows, held, &PENALTIES))?;
            let start = Instant::now();
            let ridge = OperatorRidge::new(features.clone(), penalty)?;
            let mut source = InMemory::new(part.rows.view(), part.targets.view())?;
            let mut coded = Coded::new(&mut source, CLASSES, Coding::Simplex)?;
            let model = ridge.fit_stream(&mut coded, &mut bochner::Context::default())?;
            let seconds = start.elapsed().as_secs_f64();
            let model = OperatorRidgeClassifierModel::from_regression(model, Coding::Simplex)?;
            let error = error_rate(&self.test.classes(), &model.predict_classes(self.test.rows.view())?)?;
            Ok([error, seconds, penalty])
        })
    }

    fn exact(&self, n: usize) -> Outcome<Found> {
        self.found(&format!("exact N={n}"), || {
            let part = self.first(n);
            let codes = simplex_codes(CLASSES)?;
            let fit = |rows: &Part, held: &Part, penalty: f64| -> Outcome<(f64, f64)> {
                let targets = codes.select(Direction(0), &rows.classes());
                let start = Instant::now();
                let ridge = ExactOperatorRidge::new(self.kernel.clone(), penalty)?;
                let model = ridge.fit(double(rows.rows.view()).view(), targets.view())?;
                let seconds = start.elapsed().as_secs_f64();
                let values: Array2<f64> = model.predict(double(held.rows.view()).view())?;
                Ok((error_rate(&held.classes(), &largest(&values.dot(&codes.t())))?, seconds))
            };
            let penalty = by_folds(&part, |rows, held| {
                PENALTIES.iter().map(|&penalty| Ok(fit(rows, held, penalty)?.0)).collect()
            })?;
            let (error, seconds) = fit(&part, &self.test, penalty)?;
            Ok([error, seconds, penalty])
        })
    }
}

/// The penalty with the smallest error when each half of the rows is judged by the other, the first of equals.
fn by_folds(part: &Part, errors: impl Fn(&Part, &Part) -> Outcome<Vec<f64>>) -> Outcome<f64> {
    let order: Vec<usize> = (0..part.rows.nrows()).collect();
    let (first, second) = order.split_at(order.len() / 2);
    let (first, second) = (part.select(first), part.select(second));
    let (a, b) = (errors(&first, &second)?, errors(&second, &first)?);
    let both: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    Ok(PENALTIES[smallest(&both)])
}
