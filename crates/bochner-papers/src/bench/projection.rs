//! Dense projections and Fourier features, against numpy and scikit-learn.

use super::timing::seconds;
use super::{Bar, Bench, Line, Measure};
use bochner::feature::{Describe, Directions, FourierSpec};
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::projection::{DenseGaussian, Projection};
use bochner::random::{Role, Seed, fill_normals};
use bochner::scalar::Real;
use bochner::words::count;
use bochner_table::failure::{Failure, Outcome};
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

const DIM: usize = 784;
const WIDTH: usize = 4096;

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let n = if bench.full { 10_000 } else { 2048 };
    let times = match bench.peers {
        Some(peers) => Some(peers.time("projection", &[n.to_string(), DIM.to_string(), WIDTH.to_string()])?),
        None => None,
    };
    let flops = 2.0 * (n * DIM * WIDTH) as f64;
    let mut lines = Vec::new();
    for (precision, ours) in [("f32", project::<f32>(bench, n)?), ("f64", project::<f64>(bench, n)?)] {
        let case = format!("dense projection {} x {DIM} to {} {precision}", count(n), count(WIDTH));
        lines.push(match &times {
            Some(times) => {
                let theirs = flops / times[precision];
                Line::speed(case, flops / ours, "numpy's matmul", theirs, "flop/s", Bar::AtLeast(0.85))
            }
            None => Line::alone(case, Measure::Rate(flops / ours, "flop/s")),
        });
    }
    let features = 10_000;
    for (name, projection, bar) in [("SORF", Directions::Sorf, 15.0), ("dense Fourier", Directions::Gaussian, 1.8)] {
        bench.progress.at(format!("{name} features").into())?;
        let ours = fourier(n, features, projection)?;
        let case = format!("{name} {} x {DIM} to {} f32", count(n), count(features));
        lines.push(match &times {
            Some(times) => {
                let theirs = n as f64 / times["RBFSampler"];
                Line::speed(case, n as f64 / ours, "scikit-learn's RBFSampler", theirs, "row/s", Bar::AtLeast(bar))
            }
            None => Line::alone(case, Measure::Seconds(ours)),
        });
    }
    Ok(lines)
}

fn rows<R: Real>(n: usize) -> Vec<R> {
    let mut rows = vec![R::ZERO; n * DIM];
    fill_normals(Seed::new(1), Role::Noise, 0, 0, TileMut::new(&mut rows, n, DIM));
    rows
}

/// Seconds of projecting rows tile by tile, as maps do.
fn project<R: Real>(bench: &Bench<'_>, n: usize) -> Outcome<f64> {
    bench.progress.at(format!("dense projection, {}", R::NAME).into())?;
    let projection = DenseGaussian::<R>::new(Seed::new(2), DIM, WIDTH)?;
    let rows = rows::<R>(n);
    let mut out = vec![R::ZERO; n * WIDTH];
    let tile = 96;
    Ok(seconds(0.5, || {
        rows.par_chunks(tile * DIM).zip(out.par_chunks_mut(tile * WIDTH)).for_each_init(
            Workspace::new,
            |work, (rows, out)| {
                let count = rows.len() / DIM;
                projection.project_tile(Tile::new(rows, count, DIM), 0..WIDTH, TileMut::new(out, count, WIDTH), work);
            },
        );
    }))
}

/// Seconds of Fourier features into a buffer.
fn fourier(n: usize, features: usize, projection: Directions) -> Outcome<f64> {
    let spec = FourierSpec { n_components: features, length_scale: 28.0.into(), projection, ..Default::default() };
    let map = spec.build::<f32>(DIM)?;
    let rows = rows::<f32>(n);
    let rows = ArrayView2::from_shape((n, DIM), &rows).expect("n times d numbers");
    let mut out = Array2::zeros((n, features));
    let mut failure = None;
    let time = seconds(0.5, || failure = map.transform_into(rows, out.view_mut()).err());
    failure.map_or(Ok(time), |e| Err(Failure::from(e)))
}
