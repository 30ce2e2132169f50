//! Thesis, figure 5.3: relative error of optimised Maclaurin features against random ones and plain sketches.

use super::gp::gram;
use super::*;
use bochner::feature::{AllocationRule, MaclaurinKernel, SphericalSpec};

/// `1 - |x - y|²/16 = 7/8 + x·y/8` on unit rows.
const GAMMA: f64 = 0.125;
const COEF0: f64 = 0.875;

pub(super) fn run(run: &Run<'_>) -> Outcome<Findings> {
    let train = run.data.images("fashion-mnist")?.0.sample(run.count("rows")?, 3);
    let (budgets, draws): (Vec<usize>, usize) = (run.setting("numbers of features")?, run.draws()?);
    let (degrees, wanted): (Vec<u32>, Vec<String>) = (run.setting("degrees")?, run.setting("preparations")?);
    let with_complex: bool = run.setting("complex features")?;
    let mut findings = Findings::default();
    let plot = |title: String, x: Axis| {
        let y = Axis::log("relative error of the kernel matrix").in_percent();
        Plot::new(title, "Mean over draws; unit rows of Fashion-MNIST.", x, y)
    };
    for (kind, prepared) in [("centred", Prepared::Standardized), ("non-centred", Prepared::Raw)]
        .into_iter()
        .filter(|(kind, _)| wanted.iter().any(|wanted| wanted == kind))
    {
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
                    // What was drawn in another way once is called otherwise.
                    let how = if is_stacked(&spec) { "stacked" } else { "maps pinned" };
                    let key_of_draws = format!("{key} ({how}) rows={} draws={draws}", rows.nrows());
                    let values = run.values(&key_of_draws, &mut || {
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
            let complex = if with_complex { complex_maps(degree) } else { Vec::new() };
            for (name, spec) in complex {
                for &features in &budgets {
                    let key = format!("{kind} p={degree} D={features} {name} rows={} draws={draws}", rows.nrows());
                    let values = run.values(&key, &mut || complex_errors(run, &spec, features, rows.view(), draws))?;
                    for (part, values) in COMPLEX.into_iter().zip(values.chunks(draws)) {
                        let (name, found) = (format!("{name}, {part}"), Statistic::of(values));
                        let what = format!("{name}, D = {features}");
                        run.beside(&mut table, Show::Fixed(4), &what, &what, &found);
                        let tip = format!("{what}\n{:.4}", found.mean);
                        by_features.line(&name, Style::Marks).push(Point::new(features as f64, found.mean), tip);
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

fn is_stacked(spec: &Spec) -> bool {
    match spec {
        Spec::Maclaurin(spec) => spec.sketch == SketchKind::TensorSrht && spec.srht == Sampling::Stacked,
        Spec::Polynomial(spec) => spec.sketch == SketchKind::TensorSrht && spec.srht == Sampling::Stacked,
        _ => false,
    }
}

/// What is done with the imaginary part of an estimated kernel matrix.
const COMPLEX: [&str; 2] = ["imaginary part dropped", "imaginary part kept"];

/// Complex features, of as many complex numbers as others have real ones.
fn complex_maps(degree: u32) -> Vec<(&'static str, Spec)> {
    let maps = maps(degree).into_iter().filter_map(|(name, spec)| match (name, spec) {
        ("optimised TensorSRHT", Spec::Maclaurin(spec)) => {
            Some(("optimised TensorSRHT, complex", MaclaurinSpec { weights: Weights::Complex, ..spec }.into()))
        }
        ("plain TensorSRHT", Spec::Polynomial(spec)) => {
            Some(("plain TensorSRHT, complex", PolynomialSpec { weights: Weights::Complex, ..spec }.into()))
        }
        _ => None,
    });
    maps.collect()
}

/// Relative errors of so many draws without the imaginary part, then with it.
fn complex_errors(
    run: &Run<'_>,
    spec: &Spec,
    features: usize,
    rows: ArrayView2<'_, f64>,
    draws: usize,
) -> Outcome<Vec<f64>> {
    let spec = spec.redrawn(features, run.seed).resolve(rows)?;
    let exact = kernel_matrix(&*spec.kernel()?, rows, rows)?;
    let squares = |matrix: &Array2<f64>| matrix.iter().map(|v| v * v).sum::<f64>();
    let norm = squares(&exact);
    let (mut dropped, mut kept) = (Vec::new(), Vec::new());
    for draw in 0..draws as u64 {
        let seed = Seed::new(run.seed).child(draw).number();
        let both = spec.redrawn(features, seed).build_complex::<f64>(rows.ncols())?.transform(rows)?;
        let (re, im) = (both.mapv(|v| v.re), both.mapv(|v| v.im));
        let side_by_side = |a: &Array2<f64>, b: &Array2<f64>| {
            ndarray::concatenate(Side(1), &[a.view(), b.view()]).map_err(|e| Failure::Failed(e.to_string()))
        };
        // (a + ib)(c - id) = ac + bd + i(bc - ad).
        let right = side_by_side(&re, &im)?;
        let real = squares(&(gram(&right, &right)? - &exact));
        let imaginary = squares(&gram(&side_by_side(&im, &-re)?, &right)?);
        dropped.push((real / norm).sqrt());
        kept.push(((real + imaginary) / norm).sqrt());
    }
    Ok([dropped, kept].concat())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_imaginary_part_never_adds_to_the_error() {
        super::super::tests::with_run("complex", |run, _| {
            let rows = Array2::from_shape_fn((12, 6), |(i, j)| ((3 * i + j) as f64).sin());
            let rows = Prepared::Raw.unit(rows.mapv(|v| v as f32).view()).unwrap();
            for (_, spec) in complex_maps(3) {
                let found = complex_errors(&run, &spec, 64, rows.view(), 3).unwrap();
                let (dropped, kept) = found.split_at(3);
                assert!(dropped.iter().zip(kept).all(|(d, k)| *d > 0.0 && d <= k && *k < 2.0), "{found:?}");
            }
        });
    }
}
