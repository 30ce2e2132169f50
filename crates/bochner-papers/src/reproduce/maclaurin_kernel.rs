//! Thesis, figure 5.3: relative error of optimised Maclaurin features against random ones and plain sketches.

use super::*;
use bochner::feature::{AllocationRule, MaclaurinKernel, SphericalSpec};

/// `1 - |x - y|²/16 = 7/8 + x·y/8` on unit rows.
const GAMMA: f64 = 0.125;
const COEF0: f64 = 0.875;

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let train = run.data.images("fashion-mnist")?.0.sample(run.count("rows")?, 3);
    let (budgets, draws): (Vec<usize>, usize) = (run.setting("numbers of features")?, run.draws()?);
    let degrees: Vec<u32> = run.setting("degrees")?;
    let mut findings = Findings::default();
    let plot = |title: String, x: Axis| {
        let y = Axis::log("relative error of the kernel matrix").in_percent();
        Plot::new(title, "Mean over draws; unit rows of Fashion-MNIST.", x, y)
    };
    for (kind, prepared) in [("centred", Prepared::Standardized), ("non-centred", Prepared::Raw)] {
        let rows = prepared.unit(train.rows.view())?;
        let mut first = BTreeMap::new();
        let mut by_degree = plot(
            format!("Error against degree, {kind} rows, D = {}", words::count(budgets[0])),
            Axis::log("degree p").with_ticks(degrees.iter().map(|&p| f64::from(p)).collect()),
        );
        for &degree in &degrees {
            let kernel = AnyKernel::from(Polynomial::new(degree, GAMMA, COEF0)?);
            let sample = Sample::new(&kernel, rows.view())?;
            let mut table = comparison(format!("Fashion-MNIST, {kind} rows, p = {degree}: relative Frobenius error"));
            let mut by_features = plot(
                format!("Error against number of features, {kind} rows, p = {degree}"),
                Axis::log("number of features").with_counts(&budgets),
            );
            for (name, spec) in maps(degree) {
                for &features in &budgets {
                    // What the thesis' files have is for centred rows.
                    let key = match prepared {
                        Prepared::Standardized => format!("p={degree} D={features} {name}"),
                        _ => format!("{kind} p={degree} D={features} {name}"),
                    };
                    let values = run.values(&format!("{key} rows={} draws={}", rows.nrows(), draws), &mut || {
                        let spec = spec.redrawn(features, run.seed).resolve(rows.view())?;
                        Ok(sample.measure(&spec, draws, Seed::new(run.seed), || Ok(()))?.errors)
                    })?;
                    let found = Statistic::of(&values);
                    let (what, error) = (format!("{name}, D = {features}"), found.mean);
                    run.beside(&mut table, Show::Fixed(4), &key, &what, &found);
                    let tip = format!("{what}\n{error:.4}");
                    by_features.line(name, Style::Marks).push(Point::new(features as f64, error), tip);
                    if features == budgets[0] {
                        first.insert((degree, name), error);
                        let tip = format!("{name}, p = {degree}\n{error:.4}");
                        by_degree.line(name, Style::Marks).push(Point::new(f64::from(degree), error), tip);
                    }
                }
            }
            if budgets.len() > 1 {
                findings.plot(format!("{kind}-p{degree}"), by_features);
            }
            findings.tables.push(table);
        }
        findings.plot(format!("{kind}-degrees"), by_degree);
        for &degree in &degrees {
            let of = |name: &str| first[&(degree, name)];
            let (optimized, random) = (of("optimised TensorSRHT"), of("random"));
            let (plain, sketch) = (of("plain TensorSRHT"), of("TensorSketch"));
            findings.remark(format!(
                "{kind} rows, p = {degree}: optimised TensorSRHT has {:.2} times the error of random Maclaurin features{}, and \
                 {:.2} times that of TensorSketch; plain TensorSRHT has {:.2} times that of TensorSketch{}.",
                optimized / random,
                if optimized < random { "" } else { " (the thesis: less than one)" },
                optimized / sketch,
                plain / sketch,
                match (degree, plain > sketch) {
                    (3, true) => " (the thesis: less for p = 3)",
                    (3, false) | (_, true) => ", as in the thesis",
                    _ => " (the thesis: more but for p = 3)",
                }
            ));
        }
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
        ..optimized()
    };
    let random = MaclaurinSpec { allocation: AllocationRule::Random, ..base.clone() };
    let plain = |sketch| {
        let base = PolynomialSpec { srht: Sampling::Stacked, ..sketched(sketch, Weights::Real) };
        PolynomialSpec { degree, gamma: GAMMA, coef0: COEF0, ..base }.into()
    };
    let spherical = |projection| SphericalSpec { degree, a: 4.0, projection, ..Default::default() }.into();
    vec![
        ("optimised TensorSRHT", base.clone().into()),
        ("optimised TensorSRHT, CtR", MaclaurinSpec { weights: Weights::Ctr, ..base.clone() }.into()),
        ("optimised Rademacher", MaclaurinSpec { sketch: SketchKind::Rademacher, ..base }.into()),
        ("random", MaclaurinSpec { sketch: SketchKind::Rademacher, ..random.clone() }.into()),
        ("random TensorSRHT", random.into()),
        ("plain Rademacher", plain(SketchKind::Rademacher)),
        ("TensorSketch", plain(SketchKind::TensorSketch)),
        ("plain TensorSRHT", plain(SketchKind::TensorSrht)),
        ("spherical", spherical(Directions::Gaussian)),
        ("spherical, structured (ours)", spherical(Directions::Sorf)),
    ]
}
