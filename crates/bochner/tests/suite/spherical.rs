//! Spherical features: the mean is the fitted kernel, its distance from the exact one is the reported bias.

use crate::statistics::{chi_square_interval, normal_quantile};
use bochner::feature::{Describe, Directions, RadialFit, SphericalSpec};
use bochner::kernel::kernel_matrix;
use bochner::random::{Role, Seed, Stream};
use ndarray::{Array2, array};

const ALPHA: f64 = 1e-6;
const SEEDS: u64 = 300;

fn rows() -> Array2<f64> {
    array![[0.3, -0.2, 0.5], [0.1, 0.4, 0.9], [-1.0, 0.8, 0.0], [0.3, -0.2, 0.6], [-3.0, 2.0, -5.0]]
}

/// Distances between directions of rows, by plain arithmetic.
fn distances(rows: &Array2<f64>) -> Array2<f64> {
    let norms: Vec<f64> = rows.rows().into_iter().map(|r| r.dot(&r).sqrt()).collect();
    Array2::from_shape_fn((rows.nrows(), rows.nrows()), |(i, j)| {
        rows.row(i).iter().zip(rows.row(j)).map(|(a, b)| (a / norms[i] - b / norms[j]).powi(2)).sum::<f64>().sqrt()
    })
}

fn check_moments(spec: &SphericalSpec) {
    let density = spec.radial_density(3).unwrap();
    let mean = distances(&rows()).mapv(|z| density.value(z));
    let variance = spec.variance(rows().view(), rows().view()).unwrap();
    let one = |seed| {
        let features = SphericalSpec { seed: 70 + seed, ..spec.clone() }.build::<f64>(3).unwrap();
        let features = features.transform(rows().view()).unwrap();
        features.dot(&features.t())
    };
    let runs: Vec<Array2<f64>> = (0..SEEDS).map(one).collect();
    let z = normal_quantile(1.0 - ALPHA / (2.0 * mean.len() as f64));
    for ((i, j), k) in mean.indexed_iter() {
        let values: Vec<f64> = runs.iter().map(|run| run[[i, j]]).collect();
        let average = values.iter().sum::<f64>() / SEEDS as f64;
        let v = variance[[i, j]];
        if i == j {
            assert!((average - 1.0).abs() < 1e-12 && v < 1e-12, "pairs of cosine and sine are exact on the diagonal");
            continue;
        }
        assert!((average - k).abs() <= z * (v / SEEDS as f64).sqrt() + 1e-12, "{spec:?} ({i}, {j}): {average} {k}");
        let squares = values.iter().map(|e| (e - average).powi(2)).sum::<f64>() / v;
        let interval = chi_square_interval(ALPHA / mean.len() as f64, (SEEDS - 1) as f64);
        assert!(interval.contains(&squares), "{spec:?} ({i}, {j}): {squares} outside {interval:?}");
    }
}

#[test]
fn the_mean_is_the_fitted_kernel_and_the_spread_the_closed_form() {
    let spec = SphericalSpec { n_components: 128, degree: 7, projection: Directions::Gaussian, ..Default::default() };
    check_moments(&spec);
}

#[test]
fn orthogonal_directions_have_the_same_mean_and_a_closed_form_of_their_own() {
    let spec = SphericalSpec { n_components: 128, degree: 7, projection: Directions::Orthogonal, ..Default::default() };
    check_moments(&spec);
    let chain = SphericalSpec { projection: Directions::Sorf, ..spec };
    let message = chain.variance(rows().view(), rows().view()).unwrap_err().to_string();
    assert!(message.contains("no closed form") && message.contains("variance_iid"), "{message}");
}

#[test]
fn the_reported_bias_is_the_distance_of_the_fitted_kernel() {
    for fit in [RadialFit::Convex, RadialFit::Mixture] {
        let spec = SphericalSpec { degree: 5, a: 3.0, radial_fit: fit, ..Default::default() };
        let (density, bias) = (spec.radial_density(9).unwrap(), spec.bias(9).unwrap());
        // Simpson's rule on other points than the fit's.
        let n = 1000;
        let error = |i: usize| {
            let z = 2.0 * i as f64 / n as f64;
            density.value(z) - (1.0 - z * z / 9.0f64).powi(5)
        };
        let weight = |i: usize| {
            if i == 0 || i == n {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        let square: f64 = (0..=n).map(|i| weight(i) * error(i).powi(2)).sum::<f64>() / (3.0 * n as f64);
        let sup = (0..=n).map(|i| error(i).abs()).fold(0.0, f64::max);
        assert!((bias.rms / square.sqrt() - 1.0).abs() < 1e-3, "{fit:?}: {bias:?} {}", square.sqrt());
        assert!((bias.sup / sup - 1.0).abs() < 1e-2, "{fit:?}: {bias:?} {sup}");
        assert!((density.value(0.0) - 1.0).abs() < 1e-12);
        assert!(bias.sup < 0.02, "{fit:?}: {bias:?}");
    }
}

#[test]
fn hadamard_chains_estimate_the_kernel_to_their_bias_and_variance() {
    // Rows of 48 entries are padded to 64; averaged over seeds what is left is the chain's own bias of about 1/64.
    let mut data = vec![0.0; 4 * 48];
    Stream::new(Seed::new(5), Role::Noise, 0).normals_from(0, &mut data);
    let rows = Array2::from_shape_vec((4, 48), data).unwrap();
    let spec = SphericalSpec { n_components: 256, degree: 7, projection: Directions::Sorf, ..Default::default() };
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
    let bias = spec.bias(48).unwrap().sup;
    let variance = spec.variance_iid(rows.view(), rows.view()).unwrap();
    let mut sum = Array2::<f64>::zeros((4, 4));
    for seed in 0..100 {
        let features = SphericalSpec { seed, ..spec.clone() }.build::<f64>(48).unwrap().transform(rows.view()).unwrap();
        sum += &features.dot(&features.t());
    }
    let z = normal_quantile(1.0 - ALPHA / 32.0);
    for ((found, exact), v) in sum.iter().zip(&exact).zip(&variance) {
        let tolerance = bias + 1.0 / 64.0 + z * (v / 100.0).sqrt() + 1e-12;
        assert!((found / 100.0 - exact).abs() < tolerance, "{} {exact} {tolerance}", found / 100.0);
    }
}

#[test]
fn lengths_do_not_matter_and_zero_rows_are_refused() {
    for projection in [Directions::Gaussian, Directions::Orthogonal, Directions::Sorf] {
        let map = SphericalSpec { n_components: 64, projection, ..Default::default() }.build::<f64>(3).unwrap();
        let features = map.transform(rows().view()).unwrap();
        for factor in [1e-300, 1e-6, 3.0, 1e3, 1e300] {
            let scaled = map.transform((factor * &rows()).view()).unwrap();
            assert!((&scaled - &features).iter().all(|e| e.abs() < 1e-12), "{projection:?} {factor}");
        }
        let mut many = Array2::from_elem((1000, 3), 1.0);
        many.row_mut(777).fill(0.0);
        many.row_mut(300).fill(-0.0);
        let message = map.transform(many.view()).unwrap_err().to_string();
        assert_eq!(message, "row 300 is zero and has no direction (rows are counted from 0)");
        // A NaN in an earlier row is what is named.
        many[[299, 1]] = f64::NAN;
        let message = map.transform(many.view()).unwrap_err().to_string();
        assert_eq!(message, "rows has a NaN or an infinity in row 299, column 1 (counted from 0)");
    }
}

#[test]
fn bad_parameters_are_named() {
    let message = |spec: SphericalSpec| spec.build::<f64>(3).unwrap_err().to_string();
    let spec = SphericalSpec { a: 1.2, ..Default::default() };
    assert_eq!(message(spec), "a must be a finite number of at least √2, got 1.2");
    let spec = SphericalSpec { degree: 65, ..Default::default() };
    assert_eq!(message(spec), "degree must be at most 64, got 65");
    let spec = SphericalSpec { n_components: 1, ..Default::default() };
    assert_eq!(message(spec), "n_components must be at least 2 for pairs of cosine and sine, got 1");
}
