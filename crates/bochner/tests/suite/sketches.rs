//! Every polynomial sketch: unbiased, with the variance its closed form says, and exact where it must be.

use crate::statistics::normal_quantile;
use bochner::feature::{Describe, FeatureMap, PolynomialSpec, SketchKind, Structure};
use bochner::kernel::kernel_matrix;
use bochner::projection::Sampling;
use bochner::scalar::Scalar;
use bochner::variance::Weights;
use ndarray::{Array2, array};

const ALPHA: f64 = 1e-6;
const SEEDS: u64 = 1500;

/// Rows with every relation a pair can have: generic, zero, parallel, antiparallel, orthogonal, disjoint support.
fn rows(dim: usize) -> Array2<f64> {
    match dim {
        1 => array![[0.7], [-1.3], [0.0], [0.7]],
        2 => array![[0.6, -0.5], [0.8, 0.7], [0.0, 0.0], [-1.2, 1.0], [0.5, 0.6], [1.0, 0.0]],
        3 => array![
            [0.5, -0.4, 0.6],
            [0.3, 0.8, 0.5],
            [0.0, 0.0, 0.0],
            [-1.0, 0.8, -1.2],
            [0.0, 0.9, 0.6],
            [1.1, 0.0, 0.0]
        ],
        _ => array![
            [0.5, -0.4, 0.6, 0.1, 0.2],
            [0.3, 0.6, 0.5, -0.2, 0.1],
            [0.0, 0.0, 0.0, 0.0, 0.0],
            [-0.5, 0.4, -0.6, -0.1, -0.2],
            [0.4, 0.5, 0.0, 0.0, 0.0]
        ],
    }
}

fn sketches() -> Vec<PolynomialSpec> {
    let mut list = Vec::new();
    for (sketch, srht) in [
        (SketchKind::Rademacher, Sampling::Upsampled),
        (SketchKind::Gaussian, Sampling::Upsampled),
        (SketchKind::TensorSketch, Sampling::Upsampled),
        (SketchKind::TensorSrht, Sampling::Stacked),
        (SketchKind::TensorSrht, Sampling::Upsampled),
        (SketchKind::TensorSrht, Sampling::Tuple),
    ] {
        for weights in [Weights::Real, Weights::Ctr, Weights::Complex] {
            list.push(PolynomialSpec { sketch, srht, weights, ..Default::default() });
        }
    }
    for sketch in [SketchKind::Rademacher, SketchKind::Gaussian, SketchKind::TensorSrht] {
        for structure in [Structure::Tree, Structure::Compact] {
            list.push(PolynomialSpec { sketch, structure, weights: Weights::Real, ..Default::default() });
        }
    }
    list
}

/// `k̂` of all pairs for one seed, complex estimates as (real, imaginary).
fn estimate(spec: &PolynomialSpec, rows: &Array2<f64>) -> Array2<(f64, f64)> {
    fn products<T: Scalar<Real = f64>>(features: &Array2<T>) -> Array2<(f64, f64)> {
        Array2::from_shape_fn((features.nrows(), features.nrows()), |(i, j)| {
            let dot: T = features.row(i).iter().zip(features.row(j)).map(|(a, b)| *a * b.conj()).sum();
            (dot.re(), dot.im())
        })
    }
    if spec.weights == Weights::Complex {
        products(&spec.build_complex::<f64>(rows.ncols()).unwrap().transform(rows.view()).unwrap())
    } else {
        products(&spec.build::<f64>(rows.ncols()).unwrap().transform(rows.view()).unwrap())
    }
}

/// Mean within `z √(Var/R)`, second moment within `8 √((κ - 1)/R)` of the closed form; `κ` from the same runs.
fn check(spec: &PolynomialSpec, dim: usize) {
    let rows = rows(dim);
    let n = rows.nrows();
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
    let variance = spec.variance(rows.view(), rows.view()).unwrap();
    let mut sums = vec![[0.0; 4]; n * n];
    for seed in 0..SEEDS {
        let spec = PolynomialSpec { seed: 77_000 + seed, ..spec.clone() };
        for (sums, (&(re, im), &exact)) in sums.iter_mut().zip(estimate(&spec, &rows).iter().zip(&exact)) {
            let square = (re - exact).powi(2) + im * im;
            sums[0] += re - exact;
            sums[1] += im;
            sums[2] += square;
            sums[3] += square * square;
        }
    }
    let r = SEEDS as f64;
    let z = normal_quantile(1.0 - ALPHA / (2.0 * (n * n) as f64));
    for (index, sums) in sums.iter().enumerate() {
        let (i, j) = (index / n, index % n);
        let [bias, imaginary, square, fourth] = sums.map(|s| s / r);
        let closed = variance[[i, j]];
        let rounding = 1e-12 * (1.0 + exact[[i, j]].abs());
        let tolerance = z * (closed / r).sqrt() + rounding;
        let what = format!("{spec:?} d = {dim} pair ({i}, {j})");
        assert!(
            bias.abs() <= tolerance && imaginary.abs() <= tolerance,
            "{what}: bias {bias} + {imaginary}i, {tolerance}"
        );
        if closed < 1e-20 {
            assert!(square <= rounding, "{what}: no variance expected, found {square}");
            continue;
        }
        let kurtosis = (fourth / (square * square)).max(1.0);
        // Eight standard errors, since the kurtosis comes from the same runs. A two-valued error has kurtosis 1: its
        // squares do not vary, and agreement is to rounding.
        let spread = 8.0 * ((kurtosis - 1.0) / r).sqrt() + 1e-9;
        assert!((square / closed - 1.0).abs() <= spread, "{what}: measured {square}, closed form {closed}, {spread}");
    }
}

#[test]
fn sketches_are_unbiased_with_their_closed_form_variance() {
    for base in sketches() {
        // (dimension, columns): d not a power of two, D < d', D = d', D = d' + 1, one-dimensional rows.
        for (dim, columns) in [(1, 4), (2, 6), (3, 2), (3, 8), (3, 10), (5, 18)] {
            for degree in [1, 2, 3] {
                if degree < 2 && base.structure == Structure::Tree {
                    continue;
                }
                // Heavy tails of normal products make the sample kurtosis meaningless at degree 3.
                if base.sketch == SketchKind::Gaussian && degree > 2 {
                    continue;
                }
                let columns = if base.weights == Weights::Complex { columns / 2 } else { columns };
                let spec = PolynomialSpec { n_components: columns, degree, ..base.clone() };
                check(&spec, dim);
            }
        }
    }
}

#[test]
fn bias_coordinates_and_higher_degrees_keep_the_closed_forms() {
    for base in sketches() {
        if base.sketch == SketchKind::Gaussian {
            continue;
        }
        let columns = if base.weights == Weights::Complex { 20 } else { 40 };
        check(&PolynomialSpec { n_components: columns, degree: 2, gamma: 0.5, coef0: 1.0, ..base.clone() }, 3);
        check(&PolynomialSpec { n_components: columns, degree: 5, gamma: 0.3, coef0: 2.0, ..base.clone() }, 3);
    }
}

#[test]
fn hadamard_sketches_of_degree_one_preserve_inner_products() {
    let rows = rows(3);
    let exact = rows.dot(&rows.t());
    for srht in [Sampling::Stacked, Sampling::Upsampled, Sampling::Tuple] {
        for (weights, columns) in [(Weights::Real, 4), (Weights::Real, 12), (Weights::Ctr, 8), (Weights::Ctr, 24)] {
            if srht == Sampling::Tuple && !matches!(columns, 4 | 8) {
                continue;
            }
            for seed in 0..5 {
                let spec = PolynomialSpec {
                    n_components: columns,
                    degree: 1,
                    sketch: SketchKind::TensorSrht,
                    weights,
                    srht,
                    seed,
                    ..Default::default()
                };
                for (found, expected) in estimate(&spec, &rows).iter().zip(&exact) {
                    assert!((found.0 - expected).abs() < 1e-14, "{spec:?}: {} {expected}", found.0);
                }
            }
        }
    }
}

#[test]
fn all_tuples_together_reproduce_the_kernel() {
    let rows = rows(3);
    let spec = PolynomialSpec {
        n_components: 64,
        degree: 3,
        sketch: SketchKind::TensorSrht,
        weights: Weights::Real,
        srht: Sampling::Tuple,
        seed: 3,
        ..Default::default()
    };
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
    for (found, expected) in estimate(&spec, &rows).iter().zip(&exact) {
        assert!((found.0 - expected).abs() < 1e-13, "{} {expected}", found.0);
    }
}

#[test]
fn complex_to_real_columns_are_the_parts_of_the_complex_ones() {
    for base in sketches().into_iter().filter(|s| s.weights == Weights::Complex) {
        let complex = PolynomialSpec { n_components: 9, degree: 3, coef0: 1.0, seed: 5, ..base.clone() };
        let real = PolynomialSpec { n_components: 18, weights: Weights::Ctr, ..complex.clone() };
        let rows = rows(5);
        let z = complex.build_complex::<f64>(5).unwrap().transform(rows.view()).unwrap();
        let parts = real.build::<f64>(5).unwrap().transform(rows.view()).unwrap();
        for ((i, l), z) in z.indexed_iter() {
            assert_eq!((parts[[i, l]], parts[[i, 9 + l]]), (z.re, z.im), "{base:?}");
        }
    }
}

#[test]
fn degree_zero_is_the_constant_one() {
    let spec = PolynomialSpec { degree: 0, ..Default::default() };
    let map = spec.build::<f32>(4).unwrap();
    assert_eq!(map.transform(Array2::zeros((2, 4)).view()).unwrap(), array![[1.0], [1.0]]);
    let rows = Array2::<f64>::ones((2, 4));
    assert!(spec.variance(rows.view(), rows.view()).unwrap().iter().all(|v| *v == 0.0));
}

#[test]
fn degree_twenty_stays_accurate_in_single_precision() {
    // Against the same draws in double precision; scales within what a single-precision feature can hold.
    for base in sketches().into_iter().filter(|s| s.weights != Weights::Complex && s.structure == Structure::Flat) {
        for scale in [0.05f64, 1.0, 30.0] {
            let spec = PolynomialSpec { n_components: 64, degree: 20, seed: 2, ..base.clone() };
            let rows = rows(5).mapv(|v| scale * v);
            let double = spec.build::<f64>(5).unwrap().transform(rows.view()).unwrap();
            let single = spec.build::<f32>(5).unwrap().transform(rows.mapv(|v| v as f32).view()).unwrap();
            for (i, row) in double.rows().into_iter().enumerate() {
                let norm = row.dot(&row).sqrt();
                let error = row.iter().zip(single.row(i)).map(|(a, b)| (a - f64::from(*b)).powi(2)).sum::<f64>().sqrt();
                assert!(single.row(i).iter().all(|v| v.is_finite()), "{spec:?} scale {scale}");
                // Twenty factors, each rounded a few times (a transform of length D: log D times).
                assert!(
                    error <= 20.0 * 20.0 * f64::from(f32::EPSILON) * norm + 1e-36,
                    "{spec:?} {scale}: {error} of {norm}"
                );
            }
        }
    }
}

#[test]
fn bad_parameters_are_named() {
    let message = |spec: PolynomialSpec| spec.build::<f64>(3).unwrap_err().to_string();
    let base = PolynomialSpec::default;
    assert_eq!(message(PolynomialSpec { gamma: -1.0, ..base() }), "gamma must be a non-negative finite number, got -1");
    assert_eq!(
        message(PolynomialSpec { coef0: f64::NAN, ..base() }),
        "coef0 must be a non-negative finite number, got NaN"
    );
    assert_eq!(message(PolynomialSpec { degree: 65, ..base() }), "degree must be at most 64, got 65");
    assert_eq!(message(PolynomialSpec { n_components: 0, ..base() }), "n_components must be at least 1, got 0");
    assert!(message(PolynomialSpec { n_components: 1, ..base() }).contains("at least 2"));
    assert!(base().build::<f64>(0).is_err());
    assert!(message(PolynomialSpec { weights: Weights::Complex, ..base() }).contains("ctr"));
    assert!(base().build_complex::<f64>(3).is_err());
    assert!(PolynomialSpec { structure: Structure::Tree, ..base() }.build::<f64>(3).is_err());
}
