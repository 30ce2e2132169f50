//! Fourier features: the mean of the estimate is the kernel, its spread the closed form.

use bochner::feature::{Describe, Directions, FourierKernel, FourierSpec};
use bochner::kernel::kernel_matrix;
use bochner::preprocess::LengthScale;
use bochner::special::{chi_square_interval, normal_quantile};
use bochner::variance::Form;
use ndarray::{Array2, array};

const ALPHA: f64 = 1e-6;
const SEEDS: u64 = 400;
const FREQUENCIES: usize = 64;

fn rows() -> Array2<f64> {
    array![[0.3, -0.2, 0.5], [0.1, 0.4, 0.9], [-1.0, 0.8, 0.0], [0.3, -0.2, 0.6], [2.0, 1.0, -1.5]]
}

/// Estimates of all pairs `i < j` and of the diagonal, one vector per seed.
fn estimates(spec: &FourierSpec) -> Vec<Array2<f64>> {
    (0..SEEDS)
        .map(|seed| {
            let spec = FourierSpec { seed: 5000 + seed, ..spec.clone() };
            let features = spec.build::<f64>(3).unwrap().transform(rows().view()).unwrap();
            features.dot(&features.t())
        })
        .collect()
}

/// Mean and spread over seeds; the chi-square interval presumes a nearly normal estimate, which averages of 64 bounded
/// terms are.
fn check_estimate(spec: &FourierSpec) {
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows().view(), rows().view()).unwrap();
    // The complex form is built as pairs, whose variance is that of the pairs.
    let closed = match spec.form {
        Form::Complex => FourierSpec { form: Form::CosSin, n_components: 2 * spec.n_components, ..spec.clone() },
        _ => spec.clone(),
    };
    let variance = closed.variance(rows().view(), rows().view()).unwrap();
    let runs = estimates(spec);
    let n = rows().nrows();
    let pairs = (n * (n + 1) / 2) as f64;
    let z = normal_quantile(1.0 - ALPHA / (2.0 * pairs));
    for i in 0..n {
        for j in i..n {
            let values: Vec<f64> = runs.iter().map(|k| k[[i, j]]).collect();
            let mean = values.iter().sum::<f64>() / SEEDS as f64;
            let (k, v) = (exact[[i, j]], variance[[i, j]]);
            let tolerance = z * (v / SEEDS as f64).sqrt() + 1e-12;
            assert!(
                (mean - k).abs() <= tolerance,
                "{spec:?} ({i}, {j}): mean {mean}, kernel {k}, tolerance {tolerance}"
            );
            let squares: f64 = values.iter().map(|e| (e - mean).powi(2)).sum();
            if v < 1e-20 {
                assert!(squares < 1e-20, "{spec:?} ({i}, {j}): no variance expected");
                continue;
            }
            let interval = chi_square_interval(ALPHA / pairs, (SEEDS - 1) as f64);
            let found = squares / v;
            assert!(interval.contains(&found), "{spec:?} ({i}, {j}): {found} outside {interval:?}");
        }
    }
}

#[test]
fn independent_frequencies_have_their_closed_form_mean_and_variance() {
    for form in [Form::CosSin, Form::Offset, Form::Complex] {
        let columns = if form == Form::CosSin { 2 * FREQUENCIES } else { FREQUENCIES };
        let base =
            FourierSpec { n_components: columns, projection: Directions::Gaussian, form, ..FourierSpec::default() };
        check_estimate(&base);
        check_estimate(&FourierSpec { length_scale: LengthScale::PerInput(vec![0.5, 2.0, 1.0]), ..base.clone() });
        for nu in [0.5, 1.5, 3.2] {
            check_estimate(&FourierSpec { kernel: FourierKernel::Matern, nu, ..base.clone() });
        }
        for norm in [1, 2] {
            check_estimate(&FourierSpec { kernel: FourierKernel::Laplacian, norm, ..base.clone() });
        }
    }
}

#[test]
fn orthogonal_frequencies_have_their_closed_form_mean_and_variance() {
    for form in [Form::CosSin, Form::Complex] {
        let columns = if form == Form::CosSin { 2 * FREQUENCIES } else { FREQUENCIES };
        let spec =
            FourierSpec { n_components: columns, projection: Directions::Orthogonal, form, ..FourierSpec::default() };
        check_estimate(&spec);
    }
}

#[test]
fn structured_frequencies_say_why_they_have_no_closed_form() {
    let spec = FourierSpec { projection: Directions::Sorf, ..FourierSpec::default() };
    let message = spec.variance(rows().view(), rows().view()).unwrap_err().to_string();
    assert!(message.contains("no closed form"), "{message}");
    assert!(spec.variance_iid(rows().view(), rows().view()).is_ok());
}

/// The checks reject damaged maps: what they are worth.
#[test]
fn a_length_scale_off_by_three_percent_is_caught() {
    let spec = FourierSpec { n_components: 256, projection: Directions::Gaussian, ..FourierSpec::default() };
    let damaged = FourierSpec { length_scale: LengthScale::Same(1.03), ..spec.clone() };
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows().view(), rows().view()).unwrap();
    let variance = spec.variance(rows().view(), rows().view()).unwrap();
    let runs = estimates(&damaged);
    let mean = runs.iter().map(|k| k[[0, 2]]).sum::<f64>() / SEEDS as f64;
    let tolerance = normal_quantile(1.0 - ALPHA / 30.0) * (variance[[0, 2]] / SEEDS as f64).sqrt();
    assert!((mean - exact[[0, 2]]).abs() > tolerance, "{mean} {} {tolerance}", exact[[0, 2]]);
}
