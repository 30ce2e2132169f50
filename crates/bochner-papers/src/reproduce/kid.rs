//! Thesis, figure 4.11 and table 4.2: the spread of the kernel inception distance from sketches, and of the block estimator.

use super::data::double;
use super::{Experiment, Findings, Reduced, Run, Statistic};
use bochner::feature::{Describe, FeatureMap, PolynomialSpec, SketchKind};
use bochner::kernel::Polynomial;
use bochner::metrics::{FeatureSums, kid, mmd2, mmd2_from_features};
use bochner::random::Seed;
use bochner::variance::Weights;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::Outcome;
use ndarray::Array2;
use std::collections::BTreeMap;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "kid",
    what: "standard deviation of the kernel inception distance against time: sketches and blocks",
    source: "thesis, figure 4.11, table 4.2; kernel (x·y/d + 1)^p between MNIST and Fashion-MNIST pixels in place of \
             network features, which are not part of the data",
    needs: &["mnist", "fashion-mnist"],
    minutes: 5.0,
    run,
};

const CTR: &str = "TensorSRHT, CtR";
const SKETCHES: [(&str, SketchKind, Weights); 3] = [
    (CTR, SketchKind::TensorSrht, Weights::Ctr),
    ("TensorSRHT, real", SketchKind::TensorSrht, Weights::Real),
    ("TensorSketch", SketchKind::TensorSketch, Weights::Real),
];
/// Draws over which the thesis measures deviations.
const DRAWS: usize = 1000;
/// The padded dimension, in which the thesis counts features.
const DIM: usize = 1024;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let count = run.choose(500, 2000);
    let load = |name: &str| -> Outcome<Array2<f64>> {
        Ok(double(run.data.images(name)?.1.sample(count, 5).rows.view()) / 255.0)
    };
    let (x, y) = (load("mnist")?, load("fashion-mnist")?);
    let draws = run.draws(20, 100, DRAWS).max(2);
    let mut findings = Findings::default();
    let mut ratios = Table::new("Deviation over that of CtR-TensorSRHT with as many features")
        .words("sketch", "sketch")
        .numbers("degree", "p")
        .numbers("features", "D")
        .numbers("paper", "paper")
        .numbers("ours", "ours")
        .numbers("difference", "difference");
    let mut spreads = BTreeMap::new();
    for degree in [3, 6] {
        let exact = run.values(&format!("exact p={degree} {count}"), || {
            let start = Instant::now();
            let value = mmd2(&Polynomial::new(degree, 1.0 / x.ncols() as f64, 1.0)?, x.view(), y.view())?;
            Ok(vec![value, start.elapsed().as_secs_f64()])
        })?;
        let mut table = Table::new(format!(
            "p = {degree}: distance between {count} rows each; exact value {:.5} in {:.2} s",
            exact[0], exact[1]
        ))
        .words("estimator", "estimator")
        .numbers("size", "features or block rows")
        .numbers("mean", "mean")
        .numbers("deviation", "deviation")
        .numbers("relative", "deviation / value")
        .numbers("seconds", "time");
        let mut series = Vec::new();
        for (index, sketch) in SKETCHES.into_iter().enumerate() {
            let name = sketch.0;
            let mut line = Series::new(name, Style::Marks, index);
            for times in 1..=4 {
                let features = times * DIM;
                let key = format!("{name} p={degree} {count} D={features} draws={draws}");
                let values = run.values(&key, || estimates(run.seed, degree, features, sketch, draws, &x, &y))?;
                let (found, seconds) = (Statistic::of(&values[..draws]), values[draws]);
                table.push(row(name, features, &found, exact[0], seconds));
                let tip = format!("{name}, D = {features}\n{:.2e} in {:.1} ms", found.deviation, 1e3 * seconds);
                line.push(Point::new(1e3 * seconds, found.deviation), tip);
                spreads.insert((degree, times, name), found.deviation);
            }
            series.push(line);
            table.start_group();
        }
        if degree == 3 {
            let mut line = Series::new("one block of rows", Style::Marks, SKETCHES.len());
            // A block of all rows is the same in every draw, and has no spread.
            for rows in [50, 100, 250, 500].into_iter().filter(|&rows| rows < count) {
                let values = run.values(&format!("blocks {count} rows={rows} draws={draws}"), || {
                    let start = Instant::now();
                    let found = kid(x.view(), y.view(), draws, rows, Seed::new(run.seed))?;
                    Ok(vec![found.mean, found.std, start.elapsed().as_secs_f64() / draws as f64])
                })?;
                let found = Statistic { mean: values[0], deviation: values[1], count: draws };
                table.push(row("one block of rows", rows, &found, exact[0], values[2]));
                line.push(Point::new(1e3 * values[2], values[1]), format!("{rows} rows\n{:.2e}", values[1]));
            }
            series.push(line);
        }
        findings.tables.push(table);
        findings.plots.push((
            format!("spread-time-p{degree}"),
            Plot {
                title: format!("Spread of the kernel inception distance, p = {degree}"),
                subtitle: format!(
                    "Standard deviation over {draws} draws against the time of one estimate; sketches with D = d to 4d, \
                     d = {DIM}."
                ),
                x: Axis::log("milliseconds"),
                y: Axis::log("standard deviation"),
                series,
            },
        ));
        let mut wins = 0;
        for (name, ..) in SKETCHES.into_iter().skip(1) {
            for times in 1..=4 {
                let of = |name: &str| spreads.get(&(degree, times, name)).copied().unwrap_or(f64::NAN);
                let paper = |name: &str| run.published(&format!("p={degree} D={times}d {name}")).map(|p| p.value);
                let (ours, theirs) = (of(name) / of(CTR), paper(name).zip(paper(CTR)).map(|(a, b)| a / b));
                wins += usize::from(ours > 1.0);
                ratios.push(vec![
                    Cell::text(name),
                    Cell::count(degree as usize),
                    Cell::count(times * DIM),
                    theirs.map_or_else(|| Cell::missing("–"), |v| Cell::fixed(v, 2)),
                    Cell::fixed(ours, 2),
                    theirs.map_or_else(|| Cell::missing("–"), |v| Cell::fixed(ours - v, 2)),
                ]);
            }
            ratios.start_group();
        }
        findings.remarks.push(format!(
            "p = {degree}: CtR-TensorSRHT spreads less than another sketch of the same size in {wins} of 8 comparisons; in the \
             thesis in all. A deviation over {draws} draws is itself known to {:.0} %.",
            100.0 / (2.0 * (draws as f64 - 1.0)).sqrt()
        ));
    }
    findings.tables.insert(0, ratios);
    findings.remarks.push(
        "The spread over sketch draws is that of the sketch on fixed rows; the spread over blocks also contains that of \
         choosing rows. They measure different things and are shown side by side only as the thesis does."
            .into(),
    );
    let mut reduced = Reduced::default();
    reduced.size("draws", draws, DRAWS);
    findings.remarks.extend(reduced.remark());
    Ok(findings)
}

/// The distance by so many draws of a sketch, and the mean seconds of one.
fn estimates(
    seed: u64,
    degree: u32,
    features: usize,
    (_, sketch, weights): (&str, SketchKind, Weights),
    draws: usize,
    x: &Array2<f64>,
    y: &Array2<f64>,
) -> Outcome<Vec<f64>> {
    let d = x.ncols();
    let mut found = Vec::with_capacity(draws + 1);
    let mut seconds = Vec::with_capacity(draws);
    for draw in 0..draws as u64 {
        let spec = PolynomialSpec {
            n_components: features,
            degree,
            gamma: 1.0 / d as f64,
            coef0: 1.0,
            sketch,
            weights,
            seed: Seed::new(seed).child(draw).number(),
            ..PolynomialSpec::default()
        };
        let map = spec.build::<f64>(d)?;
        let start = Instant::now();
        let sums = |rows: &Array2<f64>| {
            let mut sums = FeatureSums::new(map.output_dim());
            for block in rows.axis_chunks_iter(ndarray::Axis(0), 1000) {
                sums.add(map.transform(block)?.view())?;
            }
            Ok::<_, bochner::Error>(sums)
        };
        found.push(mmd2_from_features(&sums(x)?, &sums(y)?)?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    found.push(Statistic::of(&seconds).mean);
    Ok(found)
}

fn row(name: &str, size: usize, found: &Statistic, exact: f64, seconds: f64) -> Vec<Cell> {
    vec![
        Cell::text(name),
        Cell::count(size),
        Cell::number(found.mean, 4),
        Cell::number(found.deviation, 3),
        Cell::percent(found.deviation / exact, 2),
        Cell::duration(seconds),
    ]
}
