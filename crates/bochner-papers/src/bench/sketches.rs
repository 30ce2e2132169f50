//! Polynomial sketches: against filling their output, against scikit-learn's and against numpy's products.

use super::reference::fill;
use super::*;
use bochner::feature::{PolynomialSpec, SketchKind};
use bochner::variance::Weights;

const DIM: usize = 1024;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let (n, n_components) = bench.size((10_000, 10_240), (2000, 4096));
    let rows = normals::<f32>(n, DIM, 1);
    let mut out = Array2::zeros((n, n_components));
    let size = format!("{} x {DIM} to {} f32", count(n), count(n_components));
    bench.at("filling the output")?;
    let fill = fill(out.as_slice_mut().expect("contiguous"), 1.0);
    let mut time = |sketch, weights, degree| {
        bench.at(format!("{sketch:?}, degree {degree}"))?;
        let spec = PolynomialSpec { n_components, sketch, weights, degree, ..Default::default() };
        let map = spec.build::<f32>(DIM)?;
        attempt(0.5, || map.transform_into(rows.view(), out.view_mut()))
    };
    let real = time(SketchKind::TensorSrht, Weights::Real, 3)?;
    let ctr = time(SketchKind::TensorSrht, Weights::Ctr, 3)?;
    let six = time(SketchKind::TensorSrht, Weights::Real, 6)?;
    let tensor_sketch = time(SketchKind::TensorSketch, Weights::Real, 3)?;
    let rademacher = time(SketchKind::Rademacher, Weights::Real, 3)?;
    let gaussian = time(SketchKind::Gaussian, Weights::Real, 3)?;
    let spec = PolynomialSpec { n_components, degree: 3, ..Default::default() };
    let map = PolynomialSpec { weights: Weights::Real, ..spec.clone() }.build::<f32>(DIM)?;
    // Pages of the array included.
    let fresh = attempt(0.5, || map.transform(rows.view()))?;
    bench.lines([
        Line::time(format!("TensorSRHT, p = 3, {size}"), real, "filling the output", fill, Bar::AtMost(2.0)),
        Line::time("TensorSRHT, CtR", ctr, "the real one", real, Bar::AtMost(1.8)),
        Line::time("TensorSRHT, p = 6", six, "p = 3", real, Bar::AtMost(1.8)),
    ])?;
    let arguments: [&dyn Display; 4] = [&n, &DIM, &n_components, &3];
    let sketch = bench.peer("scikit-learn's PolynomialCountSketch", "polynomial_count_sketch", &arguments)?;
    let products = bench.peer("numpy's products", "products", &arguments[..3])?;
    let (Some(product), Some(pairs)) = (products.get("product"), products.get("pairs")) else {
        let times = [fresh, tensor_sketch, rademacher, gaussian];
        let names = ["fresh TensorSRHT", "TensorSketch", "Rademacher", "Gaussian"];
        let alone = |(name, time)| Line::alone(format!("{name}, p = 3"), Cell::duration(time));
        return bench.lines(names.into_iter().zip(times).map(alone));
    };
    for (name, theirs) in sketch {
        for (case, ours, bar) in [
            ("TensorSRHT, p = 3, into a buffer", real, 100.0),
            ("TensorSRHT, p = 3, fresh array", fresh, 50.0),
            ("TensorSketch, p = 3", tensor_sketch, 10.0),
        ] {
            bench.line(Line::speed(case, n as f64 / ours, &name, n as f64 / theirs, "row/s", Bar::AtLeast(bar)))?;
        }
    }
    for (case, ours) in [("Rademacher, p = 3", rademacher), ("Gaussian, p = 3", gaussian)] {
        bench.line(Line::time(case, ours, "three numpy products", 3.0 * product, Bar::AtMost(1.3)))?;
    }
    bench.at("variance of all pairs")?;
    let some = Array2::from_shape_fn((2000, DIM), |(i, j)| f64::from(rows[[i % n, j]]) / 32.0);
    let variance = attempt(0.5, || spec.variance(some.view(), some.view()))?;
    let case = "variance of 2,000 x 2,000 pairs";
    bench.line(Line::time(case, variance, "one numpy product", *pairs, Bar::AtMost(4.0)))?;
    Ok(())
}
