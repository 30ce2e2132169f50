//! Polynomial sketches: against filling their output, against scikit-learn's and against numpy's products.

use super::reference::fill;
use super::timing::seconds;
use super::{Bar, Bench, Line, Measure};
use bochner::feature::{Describe, FeatureMap, PolynomialSpec, SketchKind};
use bochner::linalg::TileMut;
use bochner::random::{Role, Seed, fill_normals};
use bochner::variance::Weights;
use bochner::words::count;
use bochner_table::failure::Outcome;
use ndarray::{Array2, ArrayView2};

const DIM: usize = 1024;

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let (n, width) = if bench.full { (10_000, 10_240) } else { (2000, 4096) };
    let mut rows = vec![0.0f32; n * DIM];
    fill_normals(Seed::new(1), Role::Noise, 0, 0, TileMut::new(&mut rows, n, DIM));
    let rows = Array2::from_shape_vec((n, DIM), rows).expect("n times d numbers");
    let mut out = Array2::zeros((n, width));
    let size = format!("{} x {DIM} to {} f32", count(n), count(width));
    bench.progress.at("filling the output".into())?;
    let fill = fill(out.as_slice_mut().expect("contiguous"), 1.0);
    let mut time = |spec: PolynomialSpec| {
        bench.progress.at(format!("{:?}, degree {}", spec.sketch, spec.degree).into())?;
        let map = PolynomialSpec { n_components: width, ..spec }.build::<f32>(DIM)?;
        let mut failure = None;
        let time = seconds(0.5, || failure = map.transform_into(rows.view(), out.view_mut()).err());
        failure.map_or(Ok(time), |e| Err(bochner_table::failure::Failure::from(e)))
    };
    let spec = |sketch, weights, degree| PolynomialSpec { sketch, weights, degree, ..Default::default() };
    let real = time(spec(SketchKind::TensorSrht, Weights::Real, 3))?;
    let ctr = time(spec(SketchKind::TensorSrht, Weights::Ctr, 3))?;
    let six = time(spec(SketchKind::TensorSrht, Weights::Real, 6))?;
    let tensor_sketch = time(spec(SketchKind::TensorSketch, Weights::Real, 3))?;
    let rademacher = time(spec(SketchKind::Rademacher, Weights::Real, 3))?;
    let gaussian = time(spec(SketchKind::Gaussian, Weights::Real, 3))?;
    let fresh = fresh(rows.view(), width)?;
    let mut lines = vec![
        Line::time(format!("TensorSRHT, p = 3, {size}"), real, "filling the output", fill, Bar::AtMost(2.0)),
        Line::time("TensorSRHT, CtR", ctr, "the real one", real, Bar::AtMost(1.8)),
        Line::time("TensorSRHT, p = 6", six, "p = 3", real, Bar::AtMost(1.8)),
    ];
    let Some(peers) = bench.peers else {
        for (name, time) in [
            ("fresh TensorSRHT", fresh),
            ("TensorSketch", tensor_sketch),
            ("Rademacher", rademacher),
            ("Gaussian", gaussian),
        ] {
            lines.push(Line::alone(format!("{name}, p = 3"), Measure::Seconds(time)));
        }
        return Ok(lines);
    };
    bench.progress.at("scikit-learn's PolynomialCountSketch".into())?;
    let arguments = [n.to_string(), DIM.to_string(), width.to_string(), "3".into()];
    for (name, theirs) in peers.time("polynomial_count_sketch", &arguments)? {
        for (case, ours, bar) in [
            ("TensorSRHT, p = 3, into a buffer", real, 100.0),
            ("TensorSRHT, p = 3, fresh array", fresh, 50.0),
            ("TensorSketch, p = 3", tensor_sketch, 10.0),
        ] {
            lines.push(Line::speed(case, n as f64 / ours, &name, n as f64 / theirs, "row/s", Bar::AtLeast(bar)));
        }
    }
    bench.progress.at("numpy's products".into())?;
    let times = peers.time("products", &[n.to_string(), DIM.to_string(), width.to_string()])?;
    let product = 3.0 * times["product"];
    for (case, ours) in [("Rademacher, p = 3", rademacher), ("Gaussian, p = 3", gaussian)] {
        lines.push(Line::time(case, ours, "three numpy products", product, Bar::AtMost(1.3)));
    }
    bench.progress.at("variance of all pairs".into())?;
    let pairs = Array2::from_shape_fn((2000, DIM), |(i, j)| f64::from(rows[[i % n, j]]) / 32.0);
    let spec = PolynomialSpec { n_components: width, degree: 3, ..Default::default() };
    let mut failure = None;
    let variance = seconds(0.5, || match spec.variance(pairs.view(), pairs.view()) {
        Ok(matrix) => {
            std::hint::black_box(matrix);
        }
        Err(error) => failure = Some(error),
    });
    if let Some(error) = failure {
        return Err(error.into());
    }
    lines.push(Line::time(
        "variance of 2,000 x 2,000 pairs",
        variance,
        "one numpy product",
        times["pairs"],
        Bar::AtMost(4.0),
    ));
    Ok(lines)
}

/// Seconds of a transform into a fresh array, pages included.
fn fresh(rows: ArrayView2<'_, f32>, width: usize) -> Outcome<f64> {
    let spec = PolynomialSpec { n_components: width, degree: 3, weights: Weights::Real, ..Default::default() };
    let map = spec.build::<f32>(rows.ncols())?;
    let mut failure = None;
    let time = seconds(0.5, || match map.transform(rows) {
        Ok(out) => drop(std::hint::black_box(out)),
        Err(error) => failure = Some(error),
    });
    failure.map_or(Ok(time), |e| Err(e.into()))
}
