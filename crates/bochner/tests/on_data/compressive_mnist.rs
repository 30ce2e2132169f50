//! Accuracy of support vector machines on typical and compressive features of MNIST, beside the figures of Chang et al.
//! 2016, table 2.
//!
//! Needs the data set (`BOCHNER_DATA`, else `../shared/data`); run by `make check-long`. `BOCHNER_SEEDS` sets the number
//! of draws, 5 if not given.

use crate::data;
use bochner::feature::{CompressiveSpec, Describe, Directions, DynMap, FourierSpec, ScaledProjection};
use bochner::model::{Fit, Svm};
use bochner::projection::Given;
use bochner::rows::InMemory;
use ndarray::Array2;
use std::sync::Arc;
use std::time::Instant;

/// Pixels in [0, 1] and labels.
fn split(part: &str) -> (Array2<f32>, Array2<f32>) {
    let labels = data::bytes(&format!("mnist/{part}-labels-idx1-ubyte.gz"));
    let labels: Vec<f32> = labels[8..].iter().map(|&b| f32::from(b)).collect();
    let pixels = data::images("mnist", part).mapv(|v| v as f32);
    (pixels, Array2::from_shape_vec((labels.len(), 1), labels).unwrap())
}

#[test]
#[ignore = "minutes, and needs MNIST"]
fn accuracies_are_those_of_the_paper_or_better() {
    let (rows, labels) = split("train");
    let (test, expected) = split("t10k");
    let seeds: u64 = std::env::var("BOCHNER_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(5);
    let accuracy = |map: DynMap<f32>| {
        let start = Instant::now();
        let model = Svm::new(map, 1.0).unwrap().fit(rows.view(), labels.view()).unwrap();
        let found = model.predict_classes(test.view()).unwrap();
        let right = found.iter().zip(&expected).filter(|(a, b)| **a as f32 == **b).count();
        (100.0 * right as f64 / 10_000.0, start.elapsed().as_secs_f64())
    };
    let pixels = Given::<f32>::given(784, 784, |j, direction| direction[j] = 1.0).unwrap();
    let (linear, time) = accuracy(Arc::new(ScaledProjection::new(pixels, 1.0).unwrap()));
    println!("linear on pixels: {linear:.2} (paper 92.82), {time:.1} s");
    let fourier = |n_components, seed| {
        let spec = FourierSpec {
            n_components,
            length_scale: 10.0.into(),
            projection: Directions::Gaussian,
            seed,
            ..Default::default()
        };
        spec.build::<f32>(784).unwrap()
    };
    let compressive = |n_components, compressed_dim, seed| {
        let spec =
            CompressiveSpec { n_components, compressed_dim, length_scale: 10.0.into(), seed, ..Default::default() };
        spec.build::<f32>(784).unwrap()
    };
    let cases: [(&str, f64, &dyn Fn(u64) -> DynMap<f32>); 5] = [
        ("typical, M = 1000", 95.89, &|seed| fourier(1000, seed)),
        ("compressive, m = 100, M = 1000", 94.89, &|seed| compressive(1000, 100, seed)),
        ("typical, M = 4000", 96.82, &|seed| fourier(4000, seed)),
        ("compressive, m = 100, M = 4000", 95.79, &|seed| compressive(4000, 100, seed)),
        ("compressive, m = 300, M = 4000", 96.61, &|seed| compressive(4000, 300, seed)),
    ];
    let mut missed = Vec::new();
    for (name, paper, map) in cases {
        let runs: Vec<(f64, f64)> = (0..seeds).map(|seed| accuracy(map(seed))).collect();
        let mean = runs.iter().map(|r| r.0).sum::<f64>() / seeds as f64;
        let time = runs.iter().map(|r| r.1).sum::<f64>() / seeds as f64;
        println!("{name}: {mean:.2} (paper {paper}), {time:.1} s a fit, {seeds} seeds");
        if mean < paper - 0.5 {
            missed.push(name);
        }
    }
    assert!(missed.is_empty(), "more than half a point below the paper: {missed:?}");
}
