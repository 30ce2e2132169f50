//! The mean of the estimate is the kernel, its spread the closed form.

use crate::statistics::{chi_square_interval, normal_quantile};
use bochner::feature::{Describe, Directions, FourierKernel, FourierSpec, Frequencies, OpticalProjection, OpticalSpec};
use bochner::kernel::kernel_matrix;
use bochner::preprocess::LengthScale;
use bochner::projection::Orthogonal;
use bochner::random::Seed;
use bochner::variance::{EqualLengths, Form};
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
fn frequencies_of_few_columns_have_their_closed_form_mean_and_variance() {
    for form in [Form::CosSin, Form::Offset, Form::Complex] {
        let columns = if form == Form::CosSin { 2 * FREQUENCIES } else { FREQUENCIES };
        for order in 1..=3 {
            let base = FourierSpec { n_components: columns, order: Some(order), form, ..FourierSpec::default() };
            check_estimate(&base);
            check_estimate(&FourierSpec { length_scale: LengthScale::PerInput(vec![0.5, 2.0, 1.0]), ..base.clone() });
            check_estimate(&FourierSpec { kernel: FourierKernel::Laplacian, norm: 1, ..base.clone() });
        }
    }
}

/// The recursion against a sum over all subsets.
#[test]
fn kernels_of_low_order_are_means_over_all_subsets_of_columns() {
    use bochner::kernel::{Kernel, LowOrder};
    let (x, y) = ([0.3, -0.2, 0.5, 1.4, -2.0, 0.1], [0.1, 0.4, 0.9, -0.3, 1.0, 0.1]);
    let factors: Vec<f64> = x.iter().zip(&y).map(|(a, b)| (-0.5 * ((a - b) / 0.8f64).powi(2)).exp()).collect();
    for order in 1..=6u32 {
        let subsets: Vec<u32> = (0..1u32 << 6).filter(|set| set.count_ones() == order).collect();
        let product = |set: &u32| (0..6).filter(|j| set >> j & 1 == 1).map(|j| factors[j]).product::<f64>();
        let mean = subsets.iter().map(product).sum::<f64>() / subsets.len() as f64;
        let found = LowOrder::new(0.8, order as usize).unwrap().evaluate(&x, &y);
        // Six steps of three roundings each, all of positive numbers.
        assert!((found - mean).abs() <= 64.0 * f64::EPSILON * mean, "order {order}: {found} instead of {mean}");
        let all = [x.as_slice(), &x, &x].concat();
        assert_eq!(LowOrder::new(0.8, 17).unwrap().evaluate(&all, &all), 1.0, "more than sixteen columns");
    }
}

#[test]
fn kernels_of_low_order_are_known_by_name_and_to_the_planner() {
    use bochner::feature::Spec;
    use bochner::kernel::{AnyKernel, Kernel, LowOrder};
    let kernel = AnyKernel::named("low_order", 3, &[("order", 1u64.into())]).unwrap();
    assert_eq!(kernel, LowOrder::new(1.0, 1).unwrap().into());
    let spec = Spec::for_kernel("low_order").unwrap();
    assert_eq!(spec.in_words(), "Fourier features (Gaussian kernel, order 2)");
    let (x, y) = ([0.6, 0.0, 0.8], [0.0, 1.0, 0.0]);
    let two = LowOrder::new(1.0, 2).unwrap().evaluate(&x, &y);
    assert!((spec.kernel().unwrap().evaluate(&x, &y) - two).abs() < 1e-15);
    let candidates = Spec::candidates(&kernel, rows().view()).unwrap();
    assert_eq!(candidates.len(), 1);
    let prediction = candidates[0].spec.prediction(rows().view(), rows().view()).unwrap();
    assert!(prediction.closed_form && prediction.bias.is_none());
}

#[test]
fn orders_without_a_kernel_are_refused_in_words() {
    let refused = |spec: FourierSpec, dim: usize| spec.build::<f64>(dim).unwrap_err().to_string();
    let base = FourierSpec { order: Some(2), ..FourierSpec::default() };
    let matern = refused(FourierSpec { kernel: FourierKernel::Matern, ..base.clone() }, 3);
    assert!(matern.contains("products over columns"), "{matern}");
    let orthogonal = refused(FourierSpec { projection: Directions::Orthogonal, ..base.clone() }, 3);
    assert!(orthogonal.contains("one by one"), "{orthogonal}");
    assert!(refused(base, 1).contains("order must be from 1 to the number of columns, 1, got 2"));
    // Files of earlier versions say nothing of it.
    let old: FourierSpec = serde_json::from_str(r#"{"n_components": 8, "length_scale": 0.5, "seed": 7}"#).unwrap();
    assert_eq!(old.order, None);
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

/// Blocks of uniformly random orthogonal directions, all of length `√d`: what [`EqualLengths`] is the closed form of.
#[test]
fn orthogonal_frequencies_of_equal_length_have_their_closed_form_mean_and_variance() {
    const DRAWS: u64 = 2000;
    let cases: Vec<(usize, f64)> = [2, 3, 8].iter().flat_map(|&d| [0.4, 1.5, 3.0].map(|t| (d, t))).collect();
    let z = normal_quantile(1.0 - ALPHA / (4.0 * cases.len() as f64));
    for (dim, t) in cases {
        let (closed, m) = (EqualLengths::new(dim), 2 * dim + 1);
        let estimates: Vec<f64> = (0..DRAWS)
            .map(|seed| {
                let length = (dim as f64).sqrt();
                let directions = Orthogonal::<f64>::with_lengths(Seed::new(9000 + seed), dim, m, |_| length).unwrap();
                let along = Frequencies::new(directions).vectors();
                along.column(0).iter().map(|w| (t * w).cos()).sum::<f64>() / m as f64
            })
            .collect();
        let n = DRAWS as f64;
        let (mean, variance) = (closed.value(t), closed.variance(Form::CosSin, dim, t, m));
        let power = |k: i32| estimates.iter().map(|e| (e - mean).powi(k)).sum::<f64>() / n;
        assert!(power(1).abs() <= z * (variance / n).sqrt(), "d = {dim}, t = {t}: mean off by {}", power(1));
        let spread = ((power(4) - power(2).powi(2)) / n).sqrt();
        assert!((power(2) - variance).abs() <= z * spread, "d = {dim}, t = {t}: {} for {variance}", power(2));
        // The series of the mean leaves that of the kernel at t⁴, by -t⁴/4(d + 2); the next term is of order t².
        let leading = -t.powi(4) / (4.0 * (dim as f64 + 2.0));
        assert!(t > 1.0 || ((mean - (-0.5 * t * t).exp()) / leading - 1.0).abs() < 2.0 * t * t);
    }
}

/// Chains are not quite uniform: a twentieth of the squared error is allowed beside six standard errors. Of other
/// kernels than the Gaussian there are so many frequencies that the error is bias for the most part: what orthogonality
/// does to the variance is not predicted for them.
#[test]
fn hadamard_chains_have_the_error_of_uniform_directions_of_equal_length() {
    use FourierKernel::{Gaussian, Laplacian, Matern};
    for (dim, frequencies, kernel) in [
        (16, 16, Gaussian),
        (16, 40, Gaussian),
        (12, 16, Gaussian),
        (32, 8, Gaussian),
        (8, 64, Gaussian),
        (5, 64, Gaussian),
        (8, 1000, Matern),
        (16, 2000, Matern),
        (16, 2000, Laplacian),
    ] {
        let rows = Array2::from_shape_fn((30, dim), |(i, j)| {
            1.4 * ((i * dim + j) as f64 * 0.7368).sin() * ((i + 3 * j) as f64).cos() / (dim as f64 / 4.0).sqrt()
        });
        let (n_components, projection) = (2 * frequencies, Directions::Sorf);
        let spec = FourierSpec { n_components, projection, kernel, ..Default::default() };
        let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
        let predicted = spec.prediction(rows.view(), rows.view()).unwrap().squared_error();
        let errors: Vec<f64> = (0..SEEDS)
            .map(|seed| {
                let map = FourierSpec { seed: 40 + seed, ..spec.clone() }.build::<f64>(dim).unwrap();
                let features = map.transform(rows.view()).unwrap();
                (features.dot(&features.t()) - &exact).iter().map(|e| e * e).sum()
            })
            .collect();
        let n = SEEDS as f64;
        let mean = errors.iter().sum::<f64>() / n;
        let spread = (errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        assert!(
            (mean - predicted).abs() <= 6.0 * spread + 0.05 * predicted,
            "{kernel:?}, d = {dim}, M = {frequencies}: {mean} ± {spread} for {predicted}"
        );
    }
}

#[test]
fn structured_frequencies_say_why_they_have_no_closed_form() {
    let spec = FourierSpec { projection: Directions::Sorf, ..FourierSpec::default() };
    let message = spec.variance(rows().view(), rows().view()).unwrap_err().to_string();
    assert!(message.contains("no closed form"), "{message}");
    assert!(spec.variance_iid(rows().view(), rows().view()).is_ok());
    // Of very few columns nothing is said: their directions are a handful.
    let few = Array2::from_shape_fn((4, 4), |(i, j)| (3 * i + j) as f64 / 7.0);
    let message = spec.prediction(few.view(), few.view()).unwrap_err().to_string();
    assert!(message.contains("5 columns"), "{message}");
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

/// Mean and spread of optical features over seeds. Moments of one product `X = |ux|^m |uy|^m` are kernels of multiples of
/// the exponent, so the spread of a sample variance is known too: no presumption of a normal estimate.
fn check_optical(spec: &OpticalSpec, check_spread: bool) {
    let (rows, seeds, draws) = (rows(), SEEDS as f64, spec.n_components as f64);
    let moment = |p: u32| {
        let kernel = OpticalSpec { exponent: f64::from(p) * spec.exponent, ..spec.clone() }.kernel().unwrap();
        kernel_matrix(&*kernel, rows.view(), rows.view()).unwrap()
    };
    let (first, second, third, fourth) = (moment(1), moment(2), moment(3), moment(4));
    let variance = spec.variance(rows.view(), rows.view()).unwrap();
    let runs: Vec<Array2<f64>> = (0..SEEDS)
        .map(|seed| {
            let spec = OpticalSpec { seed: 7000 + seed, ..spec.clone() };
            let features = spec.build::<f64>(3).unwrap().transform(rows.view()).unwrap();
            features.dot(&features.t())
        })
        .collect();
    let n = rows.nrows();
    let z = normal_quantile(1.0 - ALPHA / (n * (n + 1)) as f64);
    for i in 0..n {
        for j in i..n {
            let at = [i, j];
            let (k, v) = (first[at], variance[at]);
            let values: Vec<f64> = runs.iter().map(|run| run[at]).collect();
            let mean = values.iter().sum::<f64>() / seeds;
            assert!((mean - k).abs() <= z * (v / seeds).sqrt() + 1e-12, "{spec:?} {at:?}: mean {mean}, kernel {k}");
            if check_spread {
                let spread = values.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (seeds - 1.0);
                let central = fourth[at] - 4.0 * third[at] * k + 6.0 * second[at] * k * k - 3.0 * k.powi(4);
                // Fourth central moment of an average of `draws` of them.
                let of_average =
                    (central / draws + 3.0 * (1.0 - 1.0 / draws) * (draws * v) * (draws * v)) / (draws * draws);
                let tolerance = z * ((of_average - v * v) / seeds).sqrt();
                assert!((spread - v).abs() <= tolerance, "{spec:?} {at:?}: {spread} of {v} ± {tolerance}");
            }
        }
    }
}

#[test]
fn optical_features_have_their_closed_form_mean_and_variance() {
    for projection in [OpticalProjection::Dense, OpticalProjection::MatrixFree] {
        let base = OpticalSpec { n_components: 256, projection, ..Default::default() };
        for exponent in [0.5, 1.0, 1.7, 2.0] {
            check_optical(&OpticalSpec { exponent, ..base.clone() }, true);
        }
        check_optical(&OpticalSpec { bias: 0.7, exponent: 1.0, ..base.clone() }, true);
        check_optical(&OpticalSpec { binarize: Some(0.35), bias: 0.3, ..base.clone() }, true);
        // Higher powers have tails so heavy that a sample variance says little.
        for exponent in [3.0, 4.0] {
            check_optical(&OpticalSpec { exponent, ..base.clone() }, false);
        }
    }
}

#[test]
fn optical_features_of_a_camera_or_a_chain_say_why_they_have_no_closed_form() {
    let (x, base) = (rows(), OpticalSpec { projection: OpticalProjection::Dense, ..Default::default() });
    for (spec, word) in [
        (OpticalSpec { projection: OpticalProjection::Structured, ..base.clone() }, "Hadamard"),
        (OpticalSpec { camera_bits: Some(8), gain: Some(1.0), ..base.clone() }, "camera"),
        (OpticalSpec { noise: 0.1, ..base.clone() }, "camera"),
    ] {
        let message = spec.variance(x.view(), x.view()).unwrap_err().to_string();
        assert!(message.contains(word) && message.contains("variance_iid"), "{message}");
        assert_eq!(spec.variance_iid(x.view(), x.view()).unwrap(), base.variance(x.view(), x.view()).unwrap());
    }
}
