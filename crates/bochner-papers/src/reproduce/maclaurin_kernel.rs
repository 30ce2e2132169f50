//! Thesis, figure 5.3: relative error of optimised Maclaurin features against random ones and plain sketches.

use super::data::Prepared;
use super::{Experiment, Findings, Reduced, Run, Statistic, comparison};
use bochner::feature::{
    AllocationRule, Describe, MaclaurinKernel, MaclaurinSpec, PolynomialSpec, SketchKind, Spec, SphericalSpec,
};
use bochner::kernel::{AnyKernel, Polynomial};
use bochner::plan::Sample;
use bochner::random::Seed;
use bochner::variance::Weights;
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::Cell;
use bochner_table::failure::Outcome;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "maclaurin-kernel",
    what: "relative error of optimised and random Maclaurin features and plain sketches, p = 3, 7, 10, 20",
    source: "thesis, figure 5.3; kernel (1 - |x - y|²/a²)^p with a = 4 on unit rows of Fashion-MNIST",
    needs: &["fashion-mnist"],
    minutes: 10.0,
    run,
};

/// `1 - |x - y|²/16 = 7/8 + x·y/8` on unit rows.
const GAMMA: f64 = 0.125;
const COEF0: f64 = 0.875;

/// Rows of the matrices of the thesis.
const ROWS: usize = 5000;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let train = run.data.images("fashion-mnist")?.0.sample(run.sized(500, 2000, ROWS), 3);
    let budgets: &[usize] = run.choose(&[1024][..], &[1024, 2048, 5120][..]);
    let degrees: &[u32] = run.choose(&[3, 10, 20][..], &[3, 7, 10, 20][..]);
    let mut findings = Findings::default();
    for (kind, prepared) in [("centred", Prepared::Standardised), ("non-centred", Prepared::Raw)] {
        let rows = prepared.unit(train.rows.view())?;
        let mut first = Vec::new();
        for &degree in degrees {
            let kernel = AnyKernel::from(Polynomial::new(degree, GAMMA, COEF0)?);
            let sample = Sample::new(&kernel, rows.view())?;
            let mut table = comparison(format!("Fashion-MNIST, {kind} rows, p = {degree}: relative Frobenius error"));
            let mut series = Vec::new();
            for (index, (name, spec)) in maps(degree).into_iter().enumerate() {
                let mut line = Series::new(name, Style::Marks, index);
                for &features in budgets {
                    // What the thesis' files have is for centred rows.
                    let key = match prepared {
                        Prepared::Standardised => format!("p={degree} D={features} {name}"),
                        _ => format!("{kind} p={degree} D={features} {name}"),
                    };
                    let values = run.values(&format!("{key} rows={} draws={}", rows.nrows(), run.seeds), || {
                        let spec = spec.redrawn(features, run.seed).resolve(rows.view())?;
                        Ok(sample.measure(&spec, run.seeds, Seed::new(run.seed), || Ok(()))?.errors)
                    })?;
                    let found = Statistic::of(&values);
                    table.push(run.beside(&key, &format!("{name}, D = {features}"), &found, |v| Cell::fixed(v, 4)));
                    line.push(
                        Point::new(features as f64, found.mean),
                        format!("{name}, D = {features}\n{:.4}", found.mean),
                    );
                    if features == budgets[0] {
                        first.push((degree, index, name, found.mean));
                    }
                }
                series.push(line);
            }
            if budgets.len() > 1 {
                findings.plots.push((
                    format!("{kind}-p{degree}"),
                    plot(
                        format!("Error against number of features, {kind} rows, p = {degree}"),
                        Axis::log("number of features").with_ticks(budgets.iter().map(|&b| b as f64).collect()),
                        series,
                    ),
                ));
            }
            findings.tables.push(table);
        }
        let of = |degree: u32, name: &str| {
            first.iter().find(|(p, _, n, _)| *p == degree && *n == name).map_or(f64::NAN, |found| found.3)
        };
        let mut series: Vec<Series> = Vec::new();
        for (degree, index, name, error) in &first {
            if *index == series.len() {
                series.push(Series::new(*name, Style::Marks, *index));
            }
            series[*index].push(Point::new(f64::from(*degree), *error), format!("{name}, p = {degree}\n{error:.4}"));
        }
        findings.plots.push((
            format!("{kind}-degrees"),
            plot(
                format!("Error against degree, {kind} rows, D = {}", words::count(budgets[0])),
                Axis::log("degree p").with_ticks(degrees.iter().map(|&p| f64::from(p)).collect()),
                series,
            ),
        ));
        for &degree in degrees {
            let (optimised, random) = (of(degree, "optimised TensorSRHT"), of(degree, "random"));
            let (plain, sketch) = (of(degree, "plain TensorSRHT"), of(degree, "TensorSketch"));
            findings.remarks.push(format!(
                "{kind} rows, p = {degree}: optimised TensorSRHT has {:.2} times the error of random Maclaurin features{}, and \
                 {:.2} times that of TensorSketch; plain TensorSRHT has {:.2} times that of TensorSketch{}.",
                optimised / random,
                if optimised < random { "" } else { " (the thesis: less than one)" },
                optimised / sketch,
                plain / sketch,
                match (degree, plain > sketch) {
                    (3, true) => " (the thesis: less for p = 3)",
                    (3, false) | (_, true) => ", as in the thesis",
                    _ => " (the thesis: more but for p = 3)",
                }
            ));
        }
    }
    let mut reduced = Reduced::default();
    reduced.size("rows", train.rows.nrows(), ROWS);
    findings.remarks.extend(reduced.remark());
    Ok(findings)
}

fn plot(title: String, x: Axis, series: Vec<Series>) -> Plot {
    let y = Axis::log("relative error of the kernel matrix").in_percent();
    Plot { title, subtitle: "Mean over draws; unit rows of Fashion-MNIST.".into(), x, y, series }
}

fn maps(degree: u32) -> Vec<(&'static str, Spec)> {
    let base = MaclaurinSpec {
        kernel: MaclaurinKernel::Polynomial,
        degree,
        gamma: GAMMA,
        coef0: COEF0,
        weights: Weights::Real,
        ..MaclaurinSpec::default()
    };
    let plain = PolynomialSpec { degree, gamma: GAMMA, coef0: COEF0, weights: Weights::Real, ..Default::default() };
    vec![
        ("optimised TensorSRHT", base.clone().into()),
        ("optimised TensorSRHT, CtR", MaclaurinSpec { weights: Weights::Ctr, ..base.clone() }.into()),
        ("optimised Rademacher", MaclaurinSpec { sketch: SketchKind::Rademacher, ..base.clone() }.into()),
        ("random", MaclaurinSpec { allocation: AllocationRule::Random, sketch: SketchKind::Rademacher, ..base }.into()),
        ("TensorSketch", PolynomialSpec { sketch: SketchKind::TensorSketch, ..plain.clone() }.into()),
        ("plain TensorSRHT", plain.into()),
        ("spherical", SphericalSpec { degree, a: 4.0, ..Default::default() }.into()),
    ]
}
