//! Operator-valued features, against exact regression, against fewer rows, and against scalar ridge regression.

use super::timing::seconds;
use super::{Bar, Bench, Line, growth::peak_memory};
use bochner::feature::{Describe, OperatorSpec};
use bochner::kernel::{Gaussian, OperatorKernel, OutputMatrix};
use bochner::linalg::TileMut;
use bochner::model::{ExactOperatorRidge, Fit, OperatorRidge, Ridge};
use bochner::random::{Role, Seed, fill_normals};
use bochner::scalar::Real;
use bochner::words::count;
use bochner_table::failure::Outcome;
use ndarray::Array2;
use std::hint::black_box;
use std::time::Instant;

fn normals<R: Real>(n: usize, d: usize, index: u64) -> Array2<R> {
    let mut values = Array2::from_elem((n, d), R::ZERO);
    let window = TileMut::new(values.as_slice_mut().expect("standard layout"), n, d);
    fill_normals(Seed::new(5), Role::Noise, index << 32, 0, window);
    values
}

/// The gradient of a sum of cosines: a field without curl.
fn gradient(rows: &Array2<f64>) -> Array2<f64> {
    let d = rows.ncols();
    Array2::from_shape_fn(rows.dim(), |(i, a)| {
        let x = rows.row(i);
        (x[a] + x[(a + 1) % d]).sin() + (x[a] + x[(a + d - 1) % d]).sin()
    })
}

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let mut lines = vec![against_exact(bench)?];
    lines.extend(growth(bench)?);
    lines.extend(against_scalar(bench)?);
    Ok(lines)
}

fn against_exact(bench: &Bench<'_>) -> Outcome<Line> {
    let (n, d) = (if bench.full { 2000 } else { 500 }, 5);
    let rows = normals::<f64>(n, d, 1);
    let targets = gradient(&rows);
    let kernel = OperatorKernel::curl_free(2.0)?;
    bench.progress.at("curl-free features".into())?;
    let spec = OperatorSpec { n_components: 1000, ..OperatorSpec::new(kernel.clone()) };
    let mut failure = None;
    let ours = seconds(0.5, || {
        let once = || -> bochner::Result<()> {
            let ridge = OperatorRidge::new(spec.build::<f64>(d)?, 1e-2)?;
            black_box(ridge.fit(rows.view(), targets.view())?);
            Ok(())
        };
        failure = once().err().or(failure.take());
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    bench.progress.at("exact curl-free regression".into())?;
    let start = Instant::now();
    black_box(ExactOperatorRidge::new(kernel, 1e-2)?.fit(rows.view(), targets.view())?);
    let theirs = start.elapsed().as_secs_f64();
    let case = format!("curl-free, {} rows, d = 5, D = 500", count(n));
    Ok(Line::speed(case, 1.0 / ours, "exact regression", 1.0 / theirs, "fits/s", Bar::AtLeast(20.0)))
}

fn growth(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let (few, many) = (1000usize, if bench.full { 100_000 } else { 10_000 });
    let spec = OperatorSpec { n_components: 1000, ..OperatorSpec::new(OperatorKernel::curl_free(2.0)?) };
    let all = normals::<f64>(many, 5, 2);
    let targets = gradient(&all);
    let mut times = Vec::new();
    for n in [few, few, many] {
        bench.progress.at(format!("curl-free features, {} rows", count(n)).into())?;
        let (rows, targets) = (all.slice(ndarray::s![..n, ..]), targets.slice(ndarray::s![..n, ..]));
        let start = Instant::now();
        let ridge = OperatorRidge::new(spec.build::<f64>(5)?, 1e-2)?;
        black_box(ridge.fit(rows, targets)?);
        times.push((n as f64, start.elapsed().as_secs_f64(), peak_memory()));
    }
    let [_, first, last] = times[..] else { return Ok(Vec::new()) };
    let slope = (last.1 / first.1).ln() / (last.0 / first.0).ln();
    let case = format!("curl-free, D = 500, {} and {} rows", count(few), count(many));
    let mut line = Line::time(format!("{case}: log-log slope"), last.1, "fewer rows", first.1, Bar::AtMost(1.1));
    line.ratio = Some(slope);
    let mut lines = vec![line];
    if let (Some(memory), Some(more)) = (first.2, last.2) {
        lines.push(Line::speed(format!("{case}: peak memory"), more, "fewer rows", memory, "B", Bar::AtMost(1.05)));
    }
    Ok(lines)
}

fn against_scalar(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let (n, d, p) = (if bench.full { 12_000 } else { 3000 }, 784, 10);
    let n_components = if bench.full { 2000 } else { 500 };
    let rows = normals::<f32>(n, d, 3);
    let targets = normals::<f32>(n, p, 4);
    let scale = 28.0;
    // Two output matrices: unrelated outputs, and ten different eigenvalues over a factor of ten.
    let rotation = Array2::from_shape_fn((p, p), |(i, j)| {
        let angle = std::f64::consts::PI * (i as f64 + 0.5) * j as f64 / p as f64;
        (if j == 0 { 1.0f64 } else { 2.0 } / p as f64).sqrt() * angle.cos()
    });
    let values = Array2::from_diag(&ndarray::Array1::from_iter((0..p).map(|i| 1.0 + i as f64)));
    let related = rotation.dot(&values).dot(&rotation.t());
    let identity = OutputMatrix::identity(p)?;
    let base = Gaussian::new(scale)?;
    let spec = |outputs: OutputMatrix| -> Outcome<OperatorSpec> {
        Ok(OperatorSpec { n_components, ..OperatorSpec::new(OperatorKernel::decomposable(base.into(), outputs)?) })
    };
    bench.progress.at("scalar ridge regression".into())?;
    let plain = spec(identity.clone())?;
    let ridge = Ridge::new(plain.fourier()?.build::<f32>(d)?, 1.0)?;
    let mut failure = None;
    let mut timed = |job: &mut dyn FnMut() -> bochner::Result<()>| {
        let time = seconds(2.0, || failure = job().err().or(failure.take()));
        failure.take().map_or(Ok(time), Err)
    };
    let theirs = timed(&mut || ridge.fit(rows.view(), targets.view()).map(|m| drop(black_box(m))))?;
    let mut lines = Vec::new();
    for (name, outputs) in [("A = I", identity), ("ten eigenvalues", OutputMatrix::new(related.view())?)] {
        bench.progress.at(format!("decomposable kernel, {name}").into())?;
        let ridge = OperatorRidge::new(spec(outputs)?.build::<f32>(d)?, 1.0)?;
        let ours = timed(&mut || ridge.fit(rows.view(), targets.view()).map(|m| drop(black_box(m))))?;
        let case = format!("decomposable ({name}), {} x {d}, {p} outputs, {} columns", count(n), count(n_components));
        lines.push(Line::time(case, ours, "scalar ridge", theirs, Bar::AtMost(1.5)));
    }
    Ok(lines)
}
