//! Models on features against the exact ones, on real data.
//!
//! Needs the data sets (`BOCHNER_DATA`, else `../shared/data`); run by `make check-long`. `BOCHNER_SPLITS` limits the number
//! of splits (10).

use bochner::feature::{Describe, FourierSpec, Spec};
use bochner::kernel::Kernel;
use bochner::metrics::{error_rate, gaussian_kl, normalised_mse};
use bochner::model::exact::{ExactGpRegressor, KernelRidge};
use bochner::model::{Fit, GpClassifier, GpRegressor, Predict, Ridge, RidgeClassifier};
use bochner::preprocess::{ColumnStatistics, LengthScale, Standardize};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::InMemory;
use bochner::tune::{EvidenceSearch, Scales};
use flate2::read::GzDecoder;
use ndarray::{Array2, Axis, s};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

fn path(name: &str) -> PathBuf {
    let root = std::env::var_os("BOCHNER_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    root.join(name)
}

fn open(name: &str) -> File {
    File::open(path(name)).unwrap_or_else(|e| panic!("{}: {e}; set BOCHNER_DATA", path(name).display()))
}

fn splits() -> usize {
    std::env::var("BOCHNER_SPLITS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// All columns but the last, and the last.
fn table(name: &str) -> (Array2<f64>, Array2<f64>) {
    let mut text = String::new();
    GzDecoder::new(open(name)).read_to_string(&mut text).unwrap();
    let parse = |cell: &str| cell.parse::<f64>().unwrap();
    let rows: Vec<Vec<f64>> = text.lines().skip(1).map(|line| line.split(',').map(parse).collect()).collect();
    let d = rows[0].len() - 1;
    let x = Array2::from_shape_fn((rows.len(), d), |(i, j)| rows[i][j]);
    (x, Array2::from_shape_fn((rows.len(), 1), |(i, _)| rows[i][d]))
}

/// Rows of a published mask: one for each split, 1 for test rows.
fn masks(name: &str, n: usize) -> Vec<Vec<bool>> {
    let mut bytes = Vec::new();
    open(name).read_to_end(&mut bytes).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[header..].chunks_exact(n).map(|row| row.iter().map(|&b| b == 1).collect()).collect()
}

fn standardise(train: &mut Array2<f64>, test: &mut Array2<f64>) {
    let mut seen = ColumnStatistics::new(train.ncols());
    seen.push(train.view()).unwrap();
    let step = Standardize::fit(&seen).unwrap();
    step.apply(train.view_mut()).unwrap();
    step.apply(test.view_mut()).unwrap();
}

fn subset(n: usize, most: usize, seed: u64) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    let drawn = Stream::new(Seed::new(seed), Role::Split, 7).distinct(n as u64, most);
    drawn.into_iter().map(|i| i as usize).collect()
}

/// Normalised squared errors of features (all rows) and of the exact process (at most 8,000 of them).
fn regression(name: &str, features: usize) -> (f64, f64) {
    let (x, y) = table(&format!("{name}/data.csv.gz"));
    let masks = masks(&format!("{name}/test_mask.npy"), x.nrows());
    let (mut ours, mut exact) = (Vec::new(), Vec::new());
    for (split, mask) in masks.iter().take(splits()).enumerate() {
        let of = |test: bool| (0..x.nrows()).filter(|&i| mask[i] == test).collect::<Vec<_>>();
        let (train, test) = (of(false), of(true));
        let (mut a, mut b) = (x.select(Axis(0), &train), x.select(Axis(0), &test));
        standardise(&mut a, &mut b);
        let (ya, yb) = (y.select(Axis(0), &train), y.select(Axis(0), &test));
        // Hyperparameters from few features and rows; all of them for the fit, both from the same description.
        let few = FourierSpec {
            n_components: 512,
            length_scale: LengthScale::Same((x.ncols() as f64).sqrt()),
            seed: split as u64,
            ..FourierSpec::default()
        };
        let search = EvidenceSearch { scales: Scales::PerInput, rows: 1500, ..EvidenceSearch::default() };
        let tuned = search.run(&few.into(), 1.0, 0.1, a.view(), ya.view(), &mut |_| Ok(())).unwrap();
        let Spec::Fourier(spec) = tuned.spec else { unreachable!("Fourier features stay what they are") };
        let spec = FourierSpec { n_components: features, ..spec };
        let process = GpRegressor::new(spec.build::<f64>(x.ncols()).unwrap(), tuned.noise_variance).unwrap();
        let process = process.with_signal_variance(tuned.signal_variance).unwrap();
        let model = process.fit(&mut InMemory::new(a.view(), ya.view()).unwrap()).unwrap();
        ours.push(normalised_mse(yb.view(), model.predict(b.view()).unwrap().view()).unwrap());
        let chosen = subset(a.nrows(), 8000, split as u64);
        let (sa, sy) = (a.select(Axis(0), &chosen), ya.select(Axis(0), &chosen));
        let reference = ExactGpRegressor::new(spec.kernel().unwrap(), tuned.noise_variance).unwrap();
        let reference = reference.with_signal_variance(tuned.signal_variance).unwrap();
        let reference = reference.fit(&mut InMemory::new(sa.view(), sy.view()).unwrap()).unwrap();
        exact.push(normalised_mse(yb.view(), reference.predict(b.view()).unwrap().view()).unwrap());
        println!("{name:<12} split {split}: features {:.4}, exact {:.4}", ours[split], exact[split]);
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    (mean(&ours), mean(&exact))
}

#[test]
#[ignore = "needs the data sets; run by make check-long"]
fn processes_on_features_predict_as_well_as_exact_ones() {
    let mut missed = Vec::new();
    for (name, features) in
        [("energy", 2048), ("concrete", 2048), ("powerplant", 2048), ("kin8nm", 4096), ("protein", 4096)]
    {
        let (ours, exact) = regression(name, features);
        println!("{name:<12} D = {features}: features {ours:.4}, exact {exact:.4}, ratio {:.3}", ours / exact);
        if ours > 1.05 * exact {
            missed.push((name, ours / exact));
        }
    }
    assert!(missed.is_empty(), "more than 5% above the exact process: {missed:?}");
}

#[test]
#[ignore = "needs the data sets; run by make check-long"]
fn the_divergence_from_the_exact_posterior_falls_with_the_number_of_features() {
    let (mut x, y) = table("kin8nm/data.csv.gz");
    let mut none = x.slice(s![..0, ..]).to_owned();
    standardise(&mut x, &mut none);
    let (train, test) = (s![..1500, ..], s![1500..2000, ..]);
    let base = FourierSpec { length_scale: 2.5.into(), ..FourierSpec::default() };
    let mut source = InMemory::new(x.slice(train), y.slice(train)).unwrap();
    let exact = ExactGpRegressor::new(base.kernel().unwrap(), 0.05).unwrap().fit(&mut source).unwrap();
    let (mean, variance) = exact.predict_with_variance(x.slice(test)).unwrap();
    let mut last = f64::INFINITY;
    for features in [64, 256, 1024, 4096] {
        let mut sum = 0.0;
        for seed in 0..4 {
            let spec = FourierSpec { n_components: features, seed, ..base.clone() };
            let model = GpRegressor::new(spec.build::<f64>(8).unwrap(), 0.05).unwrap().fit(&mut source).unwrap();
            let (m, v) = model.predict_with_variance(x.slice(test)).unwrap();
            sum += gaussian_kl(m.view(), v.view(), mean.view(), variance.view()).unwrap() / 4.0;
        }
        println!("D = {features}: divergence {sum:.2}");
        assert!(sum < last, "D = {features}: {sum} is not below {last}");
        last = sum;
    }
}

/// Errors of ridge and of a process on `D = 20 d` features of all rows, and of exact kernel ridge, all on the same rows.
fn classification(
    name: &str,
    (mut a, ya): (Array2<f64>, Array2<f64>),
    (mut b, yb): (Array2<f64>, Array2<f64>),
    scale: f64,
) -> [f64; 3] {
    standardise(&mut a, &mut b);
    let d = a.ncols();
    let classes = ya.fold(0.0f64, |m, v| m.max(*v)) as usize + 1;
    let spec = FourierSpec { n_components: 20 * d, length_scale: scale.into(), seed: 1, ..FourierSpec::default() };
    let map = spec.build::<f64>(d).unwrap();
    let truth: Vec<usize> = yb.iter().map(|l| *l as usize).collect();
    let mut source = InMemory::new(a.view(), ya.view()).unwrap();
    let ridge = RidgeClassifier::new(Ridge::new(map.clone(), 0.1).unwrap()).fit(&mut source).unwrap();
    let process = GpClassifier::new(map, 0.01).unwrap().fit(&mut source).unwrap();
    let chosen = subset(a.nrows(), 16_000, 1);
    let (sa, sy) = (a.select(Axis(0), &chosen), ya.select(Axis(0), &chosen));
    let codes =
        Array2::from_shape_fn((sy.nrows(), classes), |(i, c)| if sy[[i, 0]] as usize == c { 1.0 } else { -1.0 });
    let kernel: Arc<dyn Kernel> = spec.kernel().unwrap();
    let exact = KernelRidge::new(kernel, 0.1).unwrap();
    let exact = exact.fit(&mut InMemory::new(sa.view(), codes.view()).unwrap()).unwrap();
    let values = exact.predict(b.view()).unwrap();
    let largest =
        |row: ndarray::ArrayView1<'_, f64>| (0..row.len()).fold(0, |best, c| if row[c] > row[best] { c } else { best });
    let exact: Vec<usize> = values.rows().into_iter().map(largest).collect();
    let errors = [
        error_rate(&truth, &ridge.predict_classes(b.view()).unwrap()).unwrap(),
        error_rate(&truth, &process.predict_classes(b.view()).unwrap()).unwrap(),
        error_rate(&truth, &exact).unwrap(),
    ];
    println!(
        "{name:<8} D = {}: ridge {:.4}, process {:.4}, exact ridge {:.4}",
        20 * d,
        errors[0],
        errors[1],
        errors[2]
    );
    errors
}

#[test]
#[ignore = "needs the data sets; run by make check-long"]
fn classifiers_on_features_come_close_to_exact_ones() {
    let (x, y) = table("letter/train.csv.gz");
    let test = table("letter/test.csv.gz");
    let letter = classification("letter", (x, y), test, 2.5);
    let unpack = |name: &str, header: usize| -> Vec<f64> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../bochner-cli/data/");
        let mut bytes = Vec::new();
        GzDecoder::new(File::open(format!("{folder}{name}")).unwrap()).read_to_end(&mut bytes).unwrap();
        bytes[header..].iter().map(|&b| f64::from(b)).collect()
    };
    let images = unpack("digits-images-idx3-ubyte.gz", 16);
    let labels = unpack("digits-labels-idx1-ubyte.gz", 8);
    let part = |test: bool| {
        let chosen: Vec<usize> = (0..labels.len()).filter(|i| (i % 4 == 0) == test).collect();
        let x = Array2::from_shape_fn((chosen.len(), 64), |(i, j)| images[64 * chosen[i] + j]);
        (x, Array2::from_shape_fn((chosen.len(), 1), |(i, _)| labels[chosen[i]]))
    };
    let digits = classification("digits", part(false), part(true), 8.0);
    assert!(digits[0] < digits[2] + 0.02 && digits[1] < digits[2] + 0.02);
    assert!(letter[0] < 0.3 && letter[1] < 0.3 && letter[2] < 0.1);
}
