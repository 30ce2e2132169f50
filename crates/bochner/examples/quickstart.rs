//! How accurate is a classifier on random features, and how many features does it take?
//!
//! Run with `cargo run --release --example quickstart`.

use bochner::feature::{Describe, FourierSpec};
use bochner::model::{Fit, Ridge, RidgeClassifier};
use bochner::random::{Role, Seed, Stream};
use ndarray::{Array2, ArrayView2, s};

/// Points in eight dimensions; the class is the parity of the number of positive coordinates among the first three.
fn points(n: usize) -> (Array2<f32>, Array2<f32>) {
    let mut data = vec![0.0; 8 * n];
    Stream::new(Seed::new(1), Role::Noise, 0).normals_from(0, &mut data);
    let rows = Array2::from_shape_vec((n, 8), data).expect("8 n numbers");
    let class = |row: ndarray::ArrayView1<'_, f32>| row.iter().take(3).filter(|x| **x > 0.0).count() % 2;
    let labels = Array2::from_shape_fn((n, 1), |(i, _)| class(rows.row(i)) as f32);
    (rows, labels)
}

fn accuracy(found: &[usize], labels: ArrayView2<'_, f32>) -> f64 {
    let right = found.iter().zip(labels).filter(|(f, l)| **f as f32 == **l).count();
    right as f64 / found.len() as f64
}

fn main() -> bochner::Result<()> {
    let (rows, labels) = points(12_000);
    let (train, test) = (s![..10_000, ..], s![10_000.., ..]);
    println!("features  accuracy  error of the kernel at distance 1");
    for n_components in [64, 256, 1024, 4096] {
        let spec = FourierSpec { n_components, length_scale: 1.5.into(), seed: 7, ..FourierSpec::default() };
        let model = RidgeClassifier::new(Ridge::new(spec.build::<f32>(8)?, 1.0)?)
            .fit(rows.slice(train), labels.slice(train))?;
        let found = model.predict_classes(rows.slice(test))?;
        let (origin, mut unit) = (Array2::zeros((1, 8)), Array2::zeros((1, 8)));
        unit[[0, 0]] = 1.0;
        let deviation = spec.variance_iid(origin.view(), unit.view())?[[0, 0]].sqrt();
        println!("{n_components:>8}  {:>7.2}%  {deviation:.4}", 100.0 * accuracy(&found, labels.slice(test)));
    }
    Ok(())
}
