//! Thesis, figure 5.3: relative error of optimised Maclaurin features against random ones and plain sketches.

use super::data::double;
use super::{Experiment, Findings, Run, comparison};
use crate::failure::Outcome;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::table::Cell;
use bochner::feature::{
    AllocationRule, Describe, MaclaurinKernel, MaclaurinSpec, PolynomialSpec, SketchKind, Spec, SphericalSpec,
};
use bochner::kernel::{Any, Polynomial};
use bochner::plan::Sample;
use bochner::preprocess::{ColumnStatistics, Standardize, UnitNorm};
use bochner::random::Seed;
use bochner::variance::Weights;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "maclaurin-kernel",
    what: "relative error of optimised and random Maclaurin features and plain sketches, p = 3, 7, 10, 20",
    source: "thesis, figure 5.3; kernel (1 - |x - y|²/a²)^p with a = 4 on standardised unit rows of Fashion-MNIST",
    needs: &["fashion-mnist"],
    minutes: 10.0,
    run,
};

/// `1 - |x - y|²/16 = 7/8 + x·y/8` on unit rows.
const GAMMA: f64 = 0.125;
const COEF0: f64 = 0.875;

fn run(run: &Run<'_>) -> Outcome<Findings> {
    let train = run.data.images("fashion-mnist")?.0.sample(run.choose(500, 2000), 3);
    let mut rows = double(train.rows.view());
    let mut seen = ColumnStatistics::new(rows.ncols());
    seen.push(rows.view())?;
    Standardize::fit(&seen)?.apply(rows.view_mut())?;
    UnitNorm::default().apply(rows.view_mut());
    let budgets: &[usize] = run.choose(&[1024][..], &[1024, 3072, 5120][..]);
    let degrees: &[u32] = run.choose(&[3, 10][..], &[3, 7, 10, 20][..]);
    let mut findings = Findings::default();
    for &degree in degrees {
        let kernel = Any::from(Polynomial::new(degree, GAMMA, COEF0)?);
        let sample = Sample::new(&kernel, rows.view())?;
        let mut table = comparison(format!("Fashion-MNIST, p = {degree}: relative Frobenius error"));
        let mut series = Vec::new();
        let mut at_first = Vec::new();
        for (index, (name, spec)) in maps(degree).into_iter().enumerate() {
            let mut line = Series::new(name, Style::Marks, index);
            for &features in budgets {
                let key = format!("p={degree} D={features} {name}");
                let values = run.values(&format!("{key} rows={}", rows.nrows()), || {
                    let spec = spec.redrawn(features, run.seed).resolve(rows.view())?;
                    Ok(sample.measure(&spec, run.seeds, Seed::new(run.seed), || Ok(()))?.errors)
                })?;
                let found = super::Statistic::of(&values);
                table.push(run.beside(&key, &format!("{name}, D = {features}"), &found, |v| Cell::fixed(v, 4)));
                line.push(
                    Point::new(features as f64, found.mean),
                    format!("{name}, D = {features}\n{:.4}", found.mean),
                );
                if features == budgets[0] {
                    at_first.push((name, found.mean));
                }
            }
            series.push(line);
        }
        let of = |name: &str| at_first.iter().find(|(n, _)| *n == name).map_or(f64::NAN, |(_, e)| *e);
        let (optimised, random) = (of("optimised TensorSRHT"), of("random"));
        findings.remarks.push(format!(
            "p = {degree}: optimised TensorSRHT has {:.2} times the error of random Maclaurin features{}.",
            optimised / random,
            if optimised < random { "" } else { ", against the thesis" }
        ));
        findings.plots.push((
            format!("error-p{degree}"),
            Plot {
                title: format!("Error against number of features, p = {degree}"),
                subtitle: "Mean over draws; standardised unit rows of Fashion-MNIST.".into(),
                x: Axis::log("number of features").with_ticks(budgets.iter().map(|&b| b as f64).collect()),
                y: Axis::log("relative error of the kernel matrix").in_percent(),
                series,
            },
        ));
        findings.tables.push(table);
    }
    Ok(findings)
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
