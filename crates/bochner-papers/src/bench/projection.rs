//! Dense projections and Fourier features, against numpy and scikit-learn.

use super::*;
use bochner::linalg::Workspace;
use bochner::projection::{DenseGaussian, Projection};

const DIM: usize = 784;
const WIDTH: usize = 4096;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let n = bench.size(10_000, 2048);
    let times = bench.peer("numpy and scikit-learn", "projection", &[&n, &DIM, &WIDTH])?;
    let flops = 2.0 * (n * DIM * WIDTH) as f64;
    for (precision, ours) in [("f32", project::<f32>(bench, n)?), ("f64", project::<f64>(bench, n)?)] {
        let case = format!("dense projection {} x {DIM} to {} {precision}", count(n), count(WIDTH));
        bench.line(match times.get(precision) {
            Some(theirs) => {
                Line::speed(case, flops / ours, "numpy's matmul", flops / theirs, "flop/s", Bar::AtLeast(0.85))
            }
            None => Line::alone(case, Cell::text(words::rate(flops / ours, "flop/s"))),
        })?;
    }
    let features = 10_000;
    let rows = normals::<f32>(n, DIM, 1);
    let mut out = Array2::zeros((n, features));
    for (name, projection, bar) in [("SORF", Directions::Sorf, 15.0), ("dense Fourier", Directions::Gaussian, 1.8)] {
        bench.at(format!("{name} features"))?;
        let spec = FourierSpec { n_components: features, length_scale: 28.0.into(), projection, ..Default::default() };
        let map = spec.build::<f32>(DIM)?;
        let ours = attempt(0.5, || map.transform_into(rows.view(), out.view_mut()))?;
        let case = format!("{name} {} x {DIM} to {} f32", count(n), count(features));
        bench.line(match times.get("RBFSampler").map(|theirs| n as f64 / theirs) {
            Some(theirs) => {
                Line::speed(case, n as f64 / ours, "scikit-learn's RBFSampler", theirs, "row/s", Bar::AtLeast(bar))
            }
            None => Line::alone(case, Cell::duration(ours)),
        })?;
    }
    Ok(())
}

/// Seconds of projecting rows tile by tile, as maps do.
fn project<R: Real>(bench: &Bench<'_>, n: usize) -> Outcome<f64> {
    bench.at(format!("dense projection, {}", R::NAME))?;
    let projection = DenseGaussian::<R>::new(Seed::new(2), DIM, WIDTH)?;
    let (rows, _) = normals::<R>(n, DIM, 1).into_raw_vec_and_offset();
    let mut out = vec![R::ZERO; n * WIDTH];
    let tile = 96;
    Ok(seconds(0.5, &mut || {
        let tiles = rows.chunks(tile * DIM).zip(out.chunks_mut(tile * WIDTH));
        tiles.in_parallel().for_each_init(Workspace::new, |work, (rows, out)| {
            let count = rows.len() / DIM;
            projection.project_tile(Tile::new(rows, count, DIM), 0..WIDTH, TileMut::new(out, count, WIDTH), work);
        });
    }))
}
