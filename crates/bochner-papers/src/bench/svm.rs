//! Compressive features and linear support vector machines, against scikit-learn.

use super::timing::seconds;
use super::{Bar, Bench, Line, Measure};
use bochner::feature::{CompressiveSpec, Describe, Directions, DynMap, FeatureMap, FourierSpec, Orthoprojection};
use bochner::linalg::{Tile, TileMut};
use bochner::random::{Role, Seed, fill_normals};
use bochner::solve::DualCoordinateDescent;
use bochner::words::count;
use bochner_table::failure::{Failure, Outcome};
use ndarray::{Array2, ArrayView2, s};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

const DIM: usize = 784;
const FEATURES: usize = 6000;
const MEASUREMENTS: usize = 100;
/// Rows per call: the features of all of them would be timed with the pages of their memory.
const BLOCK: usize = 6000;
const CLASSES: usize = 10;

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let mut lines = construction(bench)?;
    lines.extend(machine(bench)?);
    Ok(lines)
}

fn construction(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let n = if bench.full { 60_000 } else { BLOCK };
    let mut rows = vec![0.0f32; n * DIM];
    fill_normals(Seed::new(1), Role::Noise, 0, 0, TileMut::new(&mut rows, n, DIM));
    let rows = ArrayView2::from_shape((n, DIM), &rows).expect("n times d numbers");
    let length_scale = 28.0;
    bench.progress.at("Fourier features without compression".into())?;
    let dense = FourierSpec {
        n_components: FEATURES,
        length_scale: length_scale.into(),
        projection: Directions::Gaussian,
        ..Default::default()
    };
    let dense = transform(&dense.build(DIM)?, rows)?;
    let theirs = match bench.peers {
        Some(peers) => {
            bench.progress.at("scikit-learn's projection and RBFSampler".into())?;
            let arguments = [n, DIM, MEASUREMENTS, FEATURES, BLOCK].map(|v| v.to_string());
            Some(peers.time("compressive", &arguments)?["GaussianRandomProjection + RBFSampler"])
        }
        None => None,
    };
    let mut lines = Vec::new();
    // The bar is one for the technique: the paper's dense matrices in both steps, and fast ones in one of them or in both.
    for (name, orthoprojector, projection) in [
        ("independent frequencies", Orthoprojection::Gaussian, Directions::Gaussian),
        ("Hadamard frequencies", Orthoprojection::Gaussian, Directions::Sorf),
        ("Hadamard projector and frequencies", Orthoprojection::Srht, Directions::Sorf),
    ] {
        let bar = Bar::AtLeast(5.0);
        bench.progress.at(format!("compressive features, {name}").into())?;
        let spec = CompressiveSpec {
            n_components: FEATURES,
            compressed_dim: MEASUREMENTS,
            orthoprojector,
            length_scale: length_scale.into(),
            projection,
            ..Default::default()
        };
        let ours = transform(&spec.build(DIM)?, rows)?;
        let case = format!("compressive {} x {DIM}, m = {MEASUREMENTS}, M = {} f32, {name}", count(n), count(FEATURES));
        let rate = |seconds: f64| n as f64 / seconds;
        lines.push(Line::speed(&case, rate(ours), "dense Fourier features", rate(dense), "row/s", bar));
        if let Some(theirs) = theirs {
            let reference = "GaussianRandomProjection + RBFSampler";
            lines.push(Line::speed(&case, rate(ours), reference, rate(theirs), "row/s", Bar::AtLeast(3.0)));
        }
    }
    Ok(lines)
}

/// Seconds of the features of all rows, block by block into one buffer.
fn transform(map: &DynMap<f32>, rows: ArrayView2<'_, f32>) -> Outcome<f64> {
    let mut out = Array2::zeros((BLOCK.min(rows.nrows()), map.output_dim()));
    let mut failure = None;
    let time = seconds(0.5, || {
        for start in (0..rows.nrows()).step_by(BLOCK) {
            let rows = rows.slice(s![start..(start + BLOCK).min(rows.nrows()), ..]);
            failure = failure.take().or(map.transform_into(rows, out.slice_mut(s![..rows.nrows(), ..])).err());
        }
    });
    failure.map_or(Ok(time), |e| Err(Failure::from(e)))
}

fn machine(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    const INPUTS: usize = 20;
    let (n, features) = if bench.full { (60_000, 1000) } else { (10_000, 500) };
    // Clouds around ten centres that overlap.
    let labels: Vec<u32> = (0..n as u32).map(|i| i % CLASSES as u32).collect();
    let mut centres = [0.0f32; CLASSES * INPUTS];
    fill_normals(Seed::new(5), Role::Noise, 0, 0, TileMut::new(&mut centres, CLASSES, INPUTS));
    let mut rows = vec![0.0f32; n * INPUTS];
    fill_normals(Seed::new(6), Role::Noise, 0, 0, TileMut::new(&mut rows, n, INPUTS));
    for (row, &label) in rows.chunks_exact_mut(INPUTS).zip(&labels) {
        row.iter_mut().zip(&centres[label as usize * INPUTS..]).for_each(|(x, c)| *x += c);
    }
    let rows = ArrayView2::from_shape((n, INPUTS), &rows).expect("n times d numbers");
    let spec = FourierSpec { n_components: features, length_scale: 6.0.into(), ..Default::default() };
    let features_of_rows = spec.build::<f32>(INPUTS)?.transform(rows)?;
    let data = features_of_rows.as_slice().expect("fresh arrays are contiguous");
    let positive: Vec<u32> = (0..CLASSES as u32).collect();
    let solver = DualCoordinateDescent::default();
    bench.progress.at("support vector machine".into())?;
    let start = Instant::now();
    let (_, reports) = solver.solve(Tile::new(data, n, features), &labels, &positive, None)?;
    let ours = start.elapsed().as_secs_f64();
    let epochs = reports.iter().map(|r| r.epochs).max().unwrap_or(0);
    let case = format!("SVM {} x {}, {CLASSES} classes, gap 1e-3, {epochs} passes", count(n), count(features));
    let Some(peers) = bench.peers else { return Ok(vec![Line::alone(case, Measure::Seconds(ours))]) };
    let folder = std::env::temp_dir().join(format!("bochner-bench-svm-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let raw = folder.join("features.f32");
    let written = write_numbers(&raw, data);
    let objective: f64 = reports.iter().map(|r| r.primal).sum();
    bench.progress.at("scikit-learn's LinearSVC".into())?;
    let arguments = [raw.display().to_string(), n.to_string(), features.to_string(), objective.to_string()];
    let times = written.and_then(|()| peers.time("linear_svc", &arguments));
    std::fs::remove_dir_all(&folder)?;
    let theirs = times?["LinearSVC(dual=True)"];
    let reference = "LinearSVC(dual=True) at the same objective";
    Ok(vec![Line::speed(case, 1.0 / ours, reference, 1.0 / theirs, "fit/s", Bar::AtLeast(2.0))])
}

fn write_numbers(path: &std::path::Path, numbers: &[f32]) -> Outcome {
    let mut file = BufWriter::new(File::create(path)?);
    for number in numbers {
        file.write_all(&number.to_le_bytes())?;
    }
    Ok(file.flush()?)
}
