//! Thesis, figure 4.7: test error against training time of a stochastic variational Gaussian process.

use super::data::{Part, Prepared, apply};
use super::{Experiment, Findings, Reduced, Run, Statistic, comparison};
use bochner::feature::{Describe, FeatureMap, PolynomialSpec, SketchKind, Spec};
use bochner::metrics::error_rate;
use bochner::model::{Fit, Predict, SviClassifier};
use bochner::random::Seed;
use bochner::variance::Weights;
use bochner_report::plot::{Axis, Plot, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "svi-time",
    what: "stochastic variational Gaussian process: test error against training time, CtR-TensorSRHT and TensorSketch",
    source: "thesis, figure 4.7; kernel (γ x·y + ν)^6 on non-negative unit rows of MNIST, D = 10d with d = 1,024; here γ, ν, \
             signal variance and rate are found on validation rows, in the thesis γ and ν by backpropagation",
    needs: &["mnist"],
    minutes: 9.0,
    run,
};

const DEGREE: u32 = 6;
const CLASSES: usize = 10;
/// Runs over which the thesis averages.
const RUNS: usize = 10;
const CTR: &str = "TensorSRHT, CtR";
const SKETCH: &str = "TensorSketch";
const METHODS: [(&str, SketchKind, Weights); 3] = [
    (CTR, SketchKind::TensorSrht, Weights::Ctr),
    ("TensorSRHT, real", SketchKind::TensorSrht, Weights::Real),
    (SKETCH, SketchKind::TensorSketch, Weights::Real),
];

/// What validation decides.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    /// `ν/(γ + ν)`; `γ + ν` is 1, so that unit rows have kernel value 1.
    share: f64,
    signal: f64,
    rate: f64,
}

impl Chosen {
    fn spec(&self, n_components: usize, (_, sketch, weights): (&str, SketchKind, Weights), seed: u64) -> Spec {
        let (gamma, coef0) = (1.0 - self.share, self.share);
        let base = PolynomialSpec { degree: DEGREE, gamma, coef0, sketch, weights, seed, ..PolynomialSpec::default() };
        PolynomialSpec { n_components, ..base }.into()
    }
}

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let (train, test) = run.data.images("mnist")?;
    let (train, test) = (train.sample(run.choose(6000, 60_000), 1), test.sample(run.choose(2000, 10_000), 2));
    let steps = Prepared::NonNegative.fit(super::data::double(train.rows.view()).view(), true)?;
    let ready = |part: Part| -> Outcome<Part> {
        Ok(Part { rows: apply(&steps, part.rows.view())?.mapv(|v| v as f32), targets: part.targets })
    };
    let (train, test) = (ready(train)?, ready(test)?);
    let features = run.choose(2048, 10_240);
    let passes: &[usize] = run.sized(&[1, 2, 4, 8][..], &[1, 2, 6][..], &[1, 5, 20, 50][..]);
    let draws = run.draws(2, 3, RUNS);
    let chosen = search(run, &train)?;
    let mut table = Table::new(format!("MNIST, {} training rows, D = {features}", train.rows.nrows()))
        .words("sketch", "sketch")
        .numbers("passes", "passes")
        .numbers("error", "test error")
        .numbers("deviation", "±")
        .numbers("seconds", "training time")
        .numbers("each", "time per pass")
        .numbers("features", "of it for features");
    let (mut series, mut ends) = (Vec::new(), Vec::new());
    for (index, method) in METHODS.into_iter().enumerate() {
        let mut line = Series::new(method.0, Style::Marks, index);
        let mut reached = Vec::new();
        for &passes in passes {
            let (mut errors, mut seconds, mut share) = (Vec::new(), Vec::new(), Vec::new());
            for draw in 0..draws as u64 {
                let key = format!(
                    "{} n={} D={features} passes={passes} {chosen:?}; draw {draw}",
                    method.0,
                    train.rows.nrows()
                );
                let values = run.values(&key, || {
                    let spec = chosen.spec(features, method, Seed::new(run.seed).child(draw).number());
                    fit(&spec, chosen, passes, draw, &train, &test)
                })?;
                errors.push(values[0]);
                seconds.push(values[1]);
                share.push(values[2]);
            }
            let (error, time) = (Statistic::of(&errors), Statistic::of(&seconds));
            table.push(vec![
                Cell::text(method.0),
                Cell::count(passes),
                Cell::percent(error.mean, 2),
                if error.count > 1 { Cell::percent(error.deviation, 2) } else { Cell::missing("–") },
                Cell::duration(time.mean),
                Cell::duration(time.mean / passes as f64),
                Cell::duration(Statistic::of(&share).mean),
            ]);
            let tip = format!("{}, {passes} passes\n{:.2} % after {:.1} s", method.0, 100.0 * error.mean, time.mean);
            line.push(error.point(time.mean), tip);
            reached.push((time.mean, error.mean));
        }
        table.start_group();
        series.push(line);
        ends.push((method.0, reached, *passes.last().unwrap_or(&1) as f64));
    }
    let of = |name: &str| ends.iter().find(|(n, ..)| *n == name);
    let mut beside = comparison("Passes in the time of one: CtR-TensorSRHT against TensorSketch");
    let mut remarks = vec![format!(
        "Found on validation rows: ν/(γ + ν) = {}, signal variance {}, rate {}.",
        chosen.share, chosen.signal, chosen.rate
    )];
    if let (Some((_, ctr, passes)), Some((_, sketch, _))) = (of(CTR), of(SKETCH)) {
        let each = |reached: &[(f64, f64)]| reached.last().map_or(f64::NAN, |(seconds, _)| seconds / passes);
        let ratio = each(sketch) / each(ctr);
        let key = "passes per time, CtR-TensorSRHT over TensorSketch";
        let ours = Statistic { mean: ratio, deviation: 0.0, count: 1 };
        beside.push(run.beside(key, key, &ours, |v| Cell::fixed(v, 2)));
        // The error both reach, and when each is there.
        let last = |reached: &[(f64, f64)]| reached.iter().map(|(_, e)| *e).fold(f64::INFINITY, f64::min);
        let goal = last(ctr).max(last(sketch));
        let when = |reached: &[(f64, f64)]| reached.iter().find(|(_, e)| *e <= goal).map_or(f64::NAN, |(t, _)| *t);
        let (a, b) = (when(ctr), when(sketch));
        remarks.push(format!(
            "A test error of {:.2} % is reached by CtR-TensorSRHT after {a:.1} s and by TensorSketch after {b:.1} s{}.",
            100.0 * goal,
            if a < b { ", the order of the thesis" } else { "; the thesis has CtR-TensorSRHT first" }
        ));
        let paper = run.published(key).map_or(f64::NAN, |p| p.value);
        remarks.push(format!(
            "A pass takes TensorSketch {ratio:.2} times as long as CtR-TensorSRHT; in the thesis, on a GPU, at least {paper} \
             times. The last column of the table says how much of a pass goes into features here."
        ));
    }
    let end = |name: &str| of(name).and_then(|(_, reached, _)| reached.last()).map(|(_, error)| *error);
    if let (Some(ctr), Some(real)) = (end(CTR), end("TensorSRHT, real")) {
        remarks.push(format!(
            "After the last pass CtR-TensorSRHT errs on {:.2} %, real TensorSRHT on {:.2} %{}.",
            100.0 * ctr,
            100.0 * real,
            if ctr <= real { ", the order of the thesis" } else { "; the thesis has CtR ahead" }
        ));
    }
    remarks.push(
        "Every mark is a run of its own with that many passes, because steps shrink towards the end of a run; batches have 256 \
         rows."
            .into(),
    );
    let plot = Plot {
        title: "Test error against training time".into(),
        subtitle: format!(
            "Stochastic variational Gaussian process, D = {features}, p = 6; one mark per number of passes ({} to {}), bars \
             are standard errors.",
            passes[0],
            passes[passes.len() - 1]
        ),
        x: Axis::log("seconds"),
        y: Axis::log("test error").in_percent(),
        series,
    };
    let mut reduced = Reduced::default();
    reduced.size("runs of each sketch", draws, RUNS);
    reduced.size("passes of TensorSketch", *passes.last().unwrap_or(&1), 50);
    remarks.extend(reduced.remark());
    Ok(Findings { tables: vec![beside, table], plots: vec![("error-time".into(), plot)], remarks })
}

/// Test error, seconds of training, and seconds for the features of all training rows.
fn fit(spec: &Spec, chosen: Chosen, passes: usize, seed: u64, train: &Part, test: &Part) -> Outcome<Vec<f64>> {
    let map = spec.build::<f32>(train.rows.ncols())?;
    let start = Instant::now();
    for block in train.rows.axis_chunks_iter(ndarray::Axis(0), 1024) {
        map.transform(block)?;
    }
    let features = start.elapsed().as_secs_f64();
    let svi = SviClassifier::new(map, chosen.signal)?
        .with_classes(CLASSES)?
        .with_passes(passes)?
        .with_rate(chosen.rate)?
        .with_draws(8, Seed::new(seed))?;
    let start = Instant::now();
    let model = svi.fit(train.rows.view(), train.targets.view())?;
    let seconds = start.elapsed().as_secs_f64();
    let predicted = model.predict(test.rows.view())?.column(0).mapv(|c| c as usize).to_vec();
    Ok(vec![error_rate(&test.classes(), &predicted)?, seconds, features])
}

/// Kernel, signal variance and rate by short runs of the process with TensorSketch features, one of them after another, judged
/// on held-out rows.
fn search(run: &Run<'_>, train: &Part) -> Outcome<Chosen> {
    let features = run.choose(2048, 4096);
    let part = train.sample(run.choose(3000, 10_000), 4);
    let held_out = part.rows.nrows() / 5;
    let (validation, training): (Vec<usize>, Vec<usize>) = (0..part.rows.nrows()).partition(|&i| i < held_out);
    let (validation, training) = (part.select(&validation), part.select(&training));
    let error = |tried: Chosen| -> Outcome<f64> {
        let key = format!("search rows={} D={features} {tried:?}", part.rows.nrows());
        let values = run.values(&key, || {
            let spec = tried.spec(features, METHODS[2], run.seed);
            Ok(vec![fit(&spec, tried, 5, 0, &training, &validation)?[0]])
        })?;
        Ok(values[0])
    };
    let mut best = Chosen { share: 0.3, signal: 10.0, rate: 0.02 };
    let mut least = error(best)?;
    for _ in 0..2 {
        let mut tries = [1.0, 10.0, 100.0, 1000.0].map(|signal| Chosen { signal, ..best }).to_vec();
        least = improve(&mut best, least, &tries, &error)?;
        tries = [0.005, 0.02, 0.08, 0.3].map(|rate| Chosen { rate, ..best }).to_vec();
        least = improve(&mut best, least, &tries, &error)?;
        tries = [0.1, 0.3, 0.5, 0.7, 0.9].map(|share| Chosen { share, ..best }).to_vec();
        least = improve(&mut best, least, &tries, &error)?;
    }
    Ok(best)
}

/// Moves to the best of some tries where it is better; gives its error.
fn improve(
    best: &mut Chosen,
    mut least: f64,
    tries: &[Chosen],
    error: &dyn Fn(Chosen) -> Outcome<f64>,
) -> Outcome<f64> {
    for &tried in tries {
        let found = error(tried)?;
        if found < least {
            (*best, least) = (tried, found);
        }
    }
    Ok(least)
}
