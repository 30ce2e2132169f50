//! Features of the exponential kernel: moments, range, positivity.

use crate::statistics::normal_quantile;
use bochner::feature::{Describe, FeatureMap, PositiveSpec};
use bochner::kernel::kernel_matrix;
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::Real;
use bochner::variance::Softmax;
use ndarray::{Array2, array};

const ALPHA: f64 = 1e-6;
const SEEDS: u64 = 3000;
const KINDS: [Softmax; 3] = [Softmax::Positive, Softmax::Hyperbolic, Softmax::Trigonometric];

/// Short enough for estimates of 24 directions to be nearly normal.
fn rows() -> Array2<f64> {
    array![[0.3, -0.2, 0.5], [0.1, 0.4, 0.6], [-0.7, 0.3, 0.0], [0.3, -0.2, 0.55], [0.0, 0.0, 0.0]]
}

fn estimates(spec: &PositiveSpec) -> Vec<Array2<f64>> {
    let one = |seed| {
        let spec = PositiveSpec { seed: 900 + seed, ..spec.clone() };
        let features = spec.build::<f64>(3).unwrap().transform(rows().view()).unwrap();
        features.dot(&features.t())
    };
    (0..SEEDS).map(one).collect()
}

/// Largest deviation of mean and variance from the closed forms, in units of what chance allows.
fn deviation(runs: &[Array2<f64>], spec: &PositiveSpec) -> f64 {
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows().view(), rows().view()).unwrap();
    let variance = spec.variance(rows().view(), rows().view()).unwrap();
    let count = runs.len() as f64;
    let z = normal_quantile(1.0 - ALPHA / (4.0 * exact.len() as f64));
    let mut worst = 0.0f64;
    for ((i, j), k) in exact.indexed_iter() {
        let v = variance[[i, j]];
        let values: Vec<f64> = runs.iter().map(|run| run[[i, j]] - k).collect();
        let moment = |p: i32| values.iter().map(|e| e.powi(p)).sum::<f64>() / count;
        if v < 1e-20 {
            assert!(moment(2) < 1e-24, "{spec:?} ({i}, {j}): no variance expected");
            continue;
        }
        let kurtosis = moment(4) / moment(2).powi(2);
        worst = worst.max(moment(1).abs() / (z * (v / count).sqrt()));
        worst = worst.max((moment(2) / v - 1.0).abs() / (z * ((kurtosis - 1.0) / count).sqrt()));
    }
    worst
}

#[test]
fn estimates_have_their_closed_form_mean_and_variance() {
    for kind in KINDS {
        for orthogonal in [false, true] {
            // 24 pairs of directions are eight full blocks, 25 leave one over.
            for n_components in [48, 50] {
                let spec = PositiveSpec { n_components, length_scale: 1.3.into(), orthogonal, kind, seed: 0 };
                let worst = deviation(&estimates(&spec), &spec);
                assert!(worst <= 1.0, "{spec:?}: {worst}");
            }
        }
    }
}

#[test]
fn the_check_of_moments_has_power() {
    let spec = PositiveSpec { n_components: 48, orthogonal: false, ..PositiveSpec::default() };
    let runs = estimates(&spec);
    assert!(deviation(&runs, &PositiveSpec { length_scale: 1.03.into(), ..spec.clone() }) > 1.0);
    // Orthogonal directions leave 3/(d + 2) of the variance of close pairs, which independent ones do not reach.
    let spec = PositiveSpec { kind: Softmax::Trigonometric, ..spec };
    assert!(deviation(&estimates(&spec), &PositiveSpec { orthogonal: true, ..spec.clone() }) > 1.0);
}

#[test]
fn orthogonal_blocks_never_add_variance_to_positive_features() {
    for kind in [Softmax::Positive, Softmax::Hyperbolic] {
        let spec = PositiveSpec { n_components: 64, kind, ..PositiveSpec::default() };
        for scale in [1e-3, 0.3, 1.0, 4.0, 30.0, 1e3] {
            let rows = scale * &rows();
            let (bound, free) = (
                spec.variance(rows.view(), rows.view()).unwrap(),
                spec.variance_iid(rows.view(), rows.view()).unwrap(),
            );
            for (b, f) in bound.iter().zip(&free) {
                assert!(*b >= 0.0 && b <= f, "{kind:?} at {scale}: {b} {f}");
            }
        }
    }
}

fn check_range<R: Real>() {
    let direction: Vec<f64> = (0..24).map(|i| Stream::new(Seed::new(2), Role::Noise, i).normal()).collect();
    let norm = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
    for kind in KINDS {
        let spec = PositiveSpec { n_components: 200, length_scale: 0.5.into(), kind, ..PositiveSpec::default() };
        let map = spec.build::<R>(24).unwrap();
        for exponent in -6..=3 {
            let size = 0.5 * 10f64.powi(exponent);
            let row = Array2::from_shape_fn((1, 24), |(_, j)| R::from_f64(size / norm * direction[j]));
            match map.transform(row.view()) {
                Ok(features) => {
                    assert!(features.iter().all(|f| f.is_finite()), "{kind:?} at {size}");
                    assert!(kind == Softmax::Trigonometric || features.iter().all(|f| *f >= R::ZERO));
                }
                Err(error) => {
                    assert!(kind == Softmax::Trigonometric && exponent >= 2, "{kind:?} at {size}: {error}");
                    assert!(error.to_string().starts_with("row 0 has |x|²/2ℓ² = "), "{error}");
                }
            }
        }
    }
}

#[test]
fn rows_from_a_millionth_to_a_thousand_length_scales_have_finite_features() {
    check_range::<f32>();
    check_range::<f64>();
}

#[test]
fn the_first_row_that_overflows_is_named() {
    let spec = PositiveSpec { n_components: 512, kind: Softmax::Trigonometric, ..PositiveSpec::default() };
    let map = spec.build::<f32>(2).unwrap();
    let mut rows = Array2::zeros((700, 2));
    rows[[333, 1]] = 20.0;
    rows[[500, 0]] = 30.0;
    let message = map.transform(rows.view()).unwrap_err().to_string();
    assert!(message.starts_with("row 333 has |x|²/2ℓ² = 200.0000"), "{message}");
    assert!(spec.build::<f64>(2).unwrap().transform(rows.mapv(f64::from).view()).is_ok());
}

#[test]
fn scaled_features_are_the_features_over_the_exponential_they_name() {
    for kind in KINDS {
        let spec = PositiveSpec { n_components: 70, kind, length_scale: 0.7.into(), ..PositiveSpec::default() };
        let map = spec.build::<f64>(3).unwrap();
        let (rows, m) = (rows(), map.output_dim());
        let plain = map.transform(rows.view()).unwrap();
        let (mut scaled, mut exponents) = (vec![f64::NAN; 5 * m], [f64::NAN; 5]);
        let tile = Tile::new(rows.as_slice().unwrap(), 5, 3);
        map.map_tile_scaled(tile, TileMut::new(&mut scaled, 5, m), &mut exponents, &mut Workspace::new());
        for ((i, j), exact) in plain.indexed_iter() {
            let found = scaled[i * m + j] * exponents[i].exp();
            assert!((found - exact).abs() < 1e-14 * exact.abs().max(1e-3), "{kind:?}: {found} {exact}");
        }
        if kind != Softmax::Trigonometric {
            for row in scaled.chunks_exact(m) {
                // 1 but for the rounding of its exponent.
                assert!((row.iter().copied().fold(0.0, f64::max) - 1.0).abs() < 1e-14);
            }
        }
    }
}

#[test]
fn bad_parameters_are_named() {
    let message = |spec: PositiveSpec| spec.build::<f64>(3).unwrap_err().to_string();
    let spec = PositiveSpec { n_components: 0, ..Default::default() };
    assert_eq!(message(spec), "n_components must be at least 1, got 0");
    let spec = PositiveSpec { n_components: 1, kind: Softmax::Hyperbolic, ..Default::default() };
    assert_eq!(message(spec), "n_components must be at least 2 for features in pairs, got 1");
    let spec = PositiveSpec { length_scale: (-1.0).into(), ..Default::default() };
    assert_eq!(message(spec), "length_scale must be a positive finite number, got -1");
}
