//! Compressive features and linear support vector machines, against scikit-learn.

use super::*;
use bochner::feature::{CompressiveSpec, Orthoprojection};
use bochner::solve::DualCoordinateDescent;
use ndarray::s;

const DIM: usize = 784;
const FEATURES: usize = 6000;
const MEASUREMENTS: usize = 100;
/// Rows per call: the features of all of them would be timed with the pages of their memory.
const BLOCK: usize = 6000;
const CLASSES: usize = 10;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    construction(bench)?;
    machine(bench)
}

fn construction(bench: &Bench<'_>) -> Outcome {
    let n = bench.size(60_000, BLOCK);
    let rows = normals::<f32>(n, DIM, 1);
    let (n_components, length_scale) = (FEATURES, 28.0);
    bench.at("Fourier features without compression")?;
    let projection = Directions::Gaussian;
    let dense = FourierSpec { n_components, length_scale: length_scale.into(), projection, ..Default::default() };
    let dense = transform(&dense.build(DIM)?, rows.view())?;
    let arguments: [&dyn Display; 5] = [&n, &DIM, &MEASUREMENTS, &FEATURES, &BLOCK];
    let peer = bench.peer("scikit-learn's projection and RBFSampler", "compressive", &arguments)?;
    // The bar is one for the technique: the paper's dense matrices in both steps, and fast ones in one of them or in both.
    for (name, orthoprojector, projection) in [
        ("independent frequencies", Orthoprojection::Gaussian, Directions::Gaussian),
        ("Hadamard frequencies", Orthoprojection::Gaussian, Directions::Sorf),
        ("Hadamard projector and frequencies", Orthoprojection::Srht, Directions::Sorf),
    ] {
        bench.at(format!("compressive features, {name}"))?;
        let spec = CompressiveSpec {
            n_components,
            compressed_dim: MEASUREMENTS,
            orthoprojector,
            length_scale: length_scale.into(),
            projection,
            ..Default::default()
        };
        let ours = transform(&spec.build(DIM)?, rows.view())?;
        let case = format!("compressive {} x {DIM}, m = {MEASUREMENTS}, M = {} f32, {name}", count(n), count(FEATURES));
        let rate = |seconds: f64| n as f64 / seconds;
        bench.line(Line::speed(
            &case,
            rate(ours),
            "dense Fourier features",
            rate(dense),
            "row/s",
            Bar::AtLeast(5.0),
        ))?;
        for (reference, theirs) in &peer {
            bench.line(Line::speed(&case, rate(ours), reference, rate(*theirs), "row/s", Bar::AtLeast(3.0)))?;
        }
    }
    Ok(())
}

/// Seconds of the features of all rows, block by block into one buffer.
fn transform(map: &DynMap<f32>, rows: ArrayView2<'_, f32>) -> Outcome<f64> {
    let mut out = Array2::zeros((BLOCK.min(rows.nrows()), map.output_dim()));
    attempt(0.5, || {
        let mut blocks = rows.axis_chunks_iter(ndarray::Axis(0), BLOCK);
        blocks.try_for_each(|block| map.transform_into(block, out.slice_mut(s![..block.nrows(), ..])))
    })
}

fn machine(bench: &Bench<'_>) -> Outcome {
    const INPUTS: usize = 20;
    let (n, features) = bench.size((60_000, 1000), (10_000, 500));
    // Clouds around ten centers that overlap.
    let labels: Vec<u32> = (0..n as u32).map(|i| i % CLASSES as u32).collect();
    let centers = normals::<f32>(CLASSES, INPUTS, 5);
    let mut rows = normals::<f32>(n, INPUTS, 6);
    for (mut row, &label) in rows.outer_iter_mut().zip(&labels) {
        row += &centers.row(label as usize);
    }
    let spec = FourierSpec { n_components: features, length_scale: 6.0.into(), ..Default::default() };
    let features_of_rows = spec.build::<f32>(INPUTS)?.transform(rows.view())?;
    let data = features_of_rows.as_slice().expect("fresh arrays are contiguous");
    let positive: Vec<u32> = (0..CLASSES as u32).collect();
    bench.at("support vector machine")?;
    let start = Instant::now();
    let (_, reports) =
        DualCoordinateDescent::default().solve(Tile::new(data, n, features), &labels, &positive, None)?;
    let ours = start.elapsed().as_secs_f64();
    let epochs = reports.iter().map(|r| r.epochs).max().unwrap_or(0);
    let case = format!("SVM {} x {}, {CLASSES} classes, gap 1e-3, {epochs} passes", count(n), count(features));
    if bench.peers.is_none() {
        return bench.line(Line::alone(case, Cell::duration(ours)));
    }
    let folder = Scratch::new("svm")?;
    let raw = folder.path("features.f32");
    std::fs::write(&raw, data.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())?;
    let objective: f64 = reports.iter().map(|r| r.primal).sum();
    let arguments: [&dyn Display; 4] = [&raw.display(), &n, &features, &objective];
    let times = bench.peer("scikit-learn's LinearSVC", "linear_svc", &arguments)?;
    let (theirs, reference) = (times["LinearSVC(dual=True)"], "LinearSVC(dual=True) at the same objective");
    bench.line(Line::speed(case, 1.0 / ours, reference, 1.0 / theirs, "fit/s", Bar::AtLeast(2.0)))
}
