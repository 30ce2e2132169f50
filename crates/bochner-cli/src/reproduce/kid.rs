//! Thesis, figure 4.11 and table 4.2: the spread of the kernel inception distance from sketches, and of the block estimator.

use super::data::double;
use super::{Experiment, Findings, Run, Statistic};
use crate::failure::Outcome;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::table::{Cell, Table};
use bochner::feature::{Describe, FeatureMap, PolynomialSpec, SketchKind};
use bochner::kernel::Polynomial;
use bochner::metrics::{FeatureSums, kid, mmd2, mmd2_from_features};
use bochner::random::Seed;
use bochner::variance::Weights;
use ndarray::Array2;
use std::time::Instant;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "kid",
    what: "standard deviation of the kernel inception distance against time: sketches and blocks",
    source: "thesis, figure 4.11, table 4.2; kernel (x·y/d + 1)^3 between MNIST and Fashion-MNIST pixels in place of \
             network features, which are not part of the data",
    needs: &["mnist", "fashion-mnist"],
    minutes: 6.0,
    run,
};

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let count = run.choose(1000, 5000);
    let load = |name: &str| -> Outcome<Array2<f64>> {
        Ok(double(run.data.images(name)?.1.sample(count, 5).rows.view()) / 255.0)
    };
    let (x, y) = (load("mnist")?, load("fashion-mnist")?);
    let d = x.ncols();
    let exact = run.values(&format!("exact {count}"), || {
        let start = Instant::now();
        let value = mmd2(&Polynomial::new(3, 1.0 / d as f64, 1.0)?, x.view(), y.view())?;
        Ok(vec![value, start.elapsed().as_secs_f64()])
    })?;
    let draws = run.choose(20, 100);
    let mut table =
        Table::new(format!("Distance between {count} rows each; exact value {:.5} in {:.2} s", exact[0], exact[1]))
            .words("estimator", "estimator")
            .numbers("size", "features or block rows")
            .numbers("mean", "mean")
            .numbers("deviation", "deviation")
            .numbers("relative", "deviation / value")
            .numbers("seconds", "time");
    let mut series = Vec::new();
    use {SketchKind as S, Weights as W};
    let sketches = [
        ("TensorSRHT, CtR", S::TensorSrht, W::Ctr),
        ("TensorSRHT, real", S::TensorSrht, W::Real),
        ("TensorSketch", S::TensorSketch, W::Real),
        ("Rademacher, CtR", S::Rademacher, W::Ctr),
    ];
    for (index, (name, sketch, weights)) in sketches.into_iter().enumerate() {
        let mut line = Series::new(name, Style::Marks, index);
        for features in [512, 1024, 2048, 4096] {
            let values = run.values(&format!("{name} {count} D={features} draws={draws}"), || {
                let mut found = Vec::with_capacity(draws + 1);
                let mut seconds = Vec::with_capacity(draws);
                for draw in 0..draws as u64 {
                    let spec = PolynomialSpec {
                        n_components: features,
                        degree: 3,
                        gamma: 1.0 / d as f64,
                        coef0: 1.0,
                        sketch,
                        weights,
                        seed: Seed::new(run.seed).child(draw).number(),
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
                    found.push(mmd2_from_features(&sums(&x)?, &sums(&y)?)?);
                    seconds.push(start.elapsed().as_secs_f64());
                }
                found.push(Statistic::of(&seconds).mean);
                Ok(found)
            })?;
            let (found, seconds) = (Statistic::of(&values[..draws]), values[draws]);
            table.push(row(name, features, &found, exact[0], seconds));
            let tip = format!("{name}, D = {features}\n{:.2e} in {:.1} ms", found.deviation, 1e3 * seconds);
            line.push(Point::new(1e3 * seconds, found.deviation), tip);
        }
        series.push(line);
        table.start_group();
    }
    let mut line = Series::new("blocks of rows", Style::Marks, sketches.len());
    for rows in [50, 100, 250, 500].into_iter().filter(|&rows| rows <= count) {
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
    let plot = Plot {
        title: "Spread of the kernel inception distance".into(),
        subtitle: format!("Standard deviation over {draws} draws against the time of one estimate."),
        x: Axis::log("milliseconds"),
        y: Axis::log("standard deviation"),
        series,
    };
    let remarks = vec![
        "The spread over sketch draws is that of the sketch on fixed rows; the spread over blocks also contains that of \
         choosing rows. They measure different things and are shown side by side only as the thesis does."
            .into(),
    ];
    Ok(Findings { tables: vec![table], plots: vec![("spread-time".into(), plot)], remarks })
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
