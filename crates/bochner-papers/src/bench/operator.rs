//! Operator-valued features, against exact regression, against fewer rows, and against scalar ridge regression.

use super::*;
use bochner::feature::OperatorSpec;
use bochner::kernel::{Gaussian, OperatorKernel, OutputMatrix};
use bochner::model::{ExactOperatorRidge, OperatorRidge};
use ndarray::{Array1, s};

/// The gradient of a sum of cosines: a field without curl.
fn gradient(rows: &Array2<f64>) -> Array2<f64> {
    let d = rows.ncols();
    Array2::from_shape_fn(rows.dim(), |(i, a)| {
        let x = rows.row(i);
        (x[a] + x[(a + 1) % d]).sin() + (x[a] + x[(a + d - 1) % d]).sin()
    })
}

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    against_exact(bench)?;
    growth(bench)?;
    against_scalar(bench)
}

fn against_exact(bench: &Bench<'_>) -> Outcome {
    let (n, d) = (bench.size(2000, 500), 5);
    let rows = normals::<f64>(n, d, 1);
    let targets = gradient(&rows);
    let kernel = OperatorKernel::curl_free(2.0)?;
    bench.at("curl-free features")?;
    let spec = OperatorSpec { n_components: 1000, ..OperatorSpec::new(kernel.clone()) };
    let ours = attempt(0.5, || OperatorRidge::new(spec.build::<f64>(d)?, 1e-2)?.fit(rows.view(), targets.view()))?;
    bench.at("exact curl-free regression")?;
    let theirs = once(|| ExactOperatorRidge::new(kernel, 1e-2)?.fit(rows.view(), targets.view()))?;
    let case = format!("curl-free, {} rows, d = 5, D = 500", count(n));
    bench.line(Line::speed(case, 1.0 / ours, "exact regression", 1.0 / theirs, "fits/s", Bar::AtLeast(20.0)))
}

fn growth(bench: &Bench<'_>) -> Outcome {
    let (few, many) = (1000usize, bench.size(100_000, 10_000));
    let spec = OperatorSpec { n_components: 1000, ..OperatorSpec::new(OperatorKernel::curl_free(2.0)?) };
    let all = normals::<f64>(many, 5, 2);
    let targets = gradient(&all);
    let mut times = Vec::new();
    for n in [few, few, many] {
        bench.at(format!("curl-free features, {} rows", count(n)))?;
        let (rows, targets) = (all.slice(s![..n, ..]), targets.slice(s![..n, ..]));
        let time = once(|| OperatorRidge::new(spec.build::<f64>(5)?, 1e-2)?.fit(rows, targets))?;
        times.push((n as f64, time, peak_memory()));
    }
    let [_, first, last] = times[..] else { return Ok(()) };
    let slope = (last.1 / first.1).ln() / (last.0 / first.0).ln();
    let case = format!("curl-free, D = 500, {} and {} rows", count(few), count(many));
    let line = Line::time(format!("{case}: log-log slope"), last.1, "fewer rows", first.1, Bar::AtMost(1.1));
    let memory = Line::memory(&case, last.2, "fewer rows", first.2, 1.05);
    bench.lines([Line { ratio: Some(slope), ..line }].into_iter().chain(memory))
}

fn against_scalar(bench: &Bench<'_>) -> Outcome {
    let (n, d, p) = (bench.size(12_000, 3000), 784, 10);
    let n_components = bench.size(2000, 500);
    let (rows, targets) = (normals::<f32>(n, d, 3), normals::<f32>(n, p, 4));
    // Two output matrices: unrelated outputs, and ten different eigenvalues over a factor of ten.
    let rotation = Array2::from_shape_fn((p, p), |(i, j)| {
        let angle = std::f64::consts::PI * (i as f64 + 0.5) * j as f64 / p as f64;
        (if j == 0 { 1.0f64 } else { 2.0 } / p as f64).sqrt() * angle.cos()
    });
    let values = Array2::from_diag(&Array1::from_iter((0..p).map(|i| 1.0 + i as f64)));
    let related = rotation.dot(&values).dot(&rotation.t());
    let identity = OutputMatrix::identity(p)?;
    let base = Gaussian::new(28.0)?;
    let spec = |outputs: OutputMatrix| -> Outcome<OperatorSpec> {
        Ok(OperatorSpec { n_components, ..OperatorSpec::new(OperatorKernel::decomposable(base.into(), outputs)?) })
    };
    bench.at("scalar ridge regression")?;
    let ridge = Ridge::new(spec(identity.clone())?.fourier()?.build::<f32>(d)?, 1.0)?;
    let theirs = attempt(2.0, || ridge.fit(rows.view(), targets.view()))?;
    for (name, outputs) in [("A = I", identity), ("ten eigenvalues", OutputMatrix::new(related.view())?)] {
        bench.at(format!("decomposable kernel, {name}"))?;
        let ridge = OperatorRidge::new(spec(outputs)?.build::<f32>(d)?, 1.0)?;
        let ours = attempt(2.0, || ridge.fit(rows.view(), targets.view()))?;
        let case = format!("decomposable ({name}), {} x {d}, {p} outputs, {} columns", count(n), count(n_components));
        bench.line(Line::time(case, ours, "scalar ridge", theirs, Bar::AtMost(1.5)))?;
    }
    Ok(())
}
