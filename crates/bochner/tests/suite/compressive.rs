//! Compressed measurements and the Fourier features of them: limits, variances, distortion, reuse.

use crate::statistics::normal_quantile;
use bochner::feature::{
    CompressiveSpec, Describe, Directions, FeatureMap, OrthoProjectionSpec, Orthoprojection, distortion,
};
use bochner::kernel::{Gaussian, Kernel, kernel_matrix};
use bochner::preprocess::LengthScale;
use bochner::random::{Role, Seed, Stream};
use bochner::variance::{Form, Kind, PairStats, Sketch, Weights, orthoprojected_norm};
use ndarray::{Array2, array};

const ALPHA: f64 = 1e-6;
const SEEDS: u64 = 2000;
const KINDS: [Orthoprojection; 3] = [Orthoprojection::Gaussian, Orthoprojection::Sign, Orthoprojection::Srht];

fn rows(n: usize, d: usize) -> Array2<f64> {
    let mut data = vec![0.0; n * d];
    Stream::new(Seed::new(9), Role::Noise, 0).normals_from(0, &mut data);
    Array2::from_shape_vec((n, d), data).unwrap()
}

/// Mean and sample variance of every entry of the estimated kernel matrix against their closed forms; an infinite `slack`
/// leaves the variance out.
fn check_estimate(spec: &dyn Fn(u64) -> Array2<f64>, exact: &Array2<f64>, variance: &Array2<f64>, slack: f64) {
    let runs: Vec<Array2<f64>> = (0..SEEDS).map(spec).collect();
    let n = exact.nrows();
    let pairs = (n * (n + 1) / 2) as f64;
    let z = normal_quantile(1.0 - ALPHA / (2.0 * pairs));
    for i in 0..n {
        for j in i..n {
            let values: Vec<f64> = runs.iter().map(|z| z.row(i).dot(&z.row(j))).collect();
            let mean = values.iter().sum::<f64>() / SEEDS as f64;
            let (k, v) = (exact[[i, j]], variance[[i, j]]);
            let tolerance = z * (v / SEEDS as f64).sqrt() + 1e-12 * (1.0 + k.abs());
            assert!((mean - k).abs() <= tolerance, "({i}, {j}): mean {mean}, kernel {k}, tolerance {tolerance}");
            let squares: f64 = values.iter().map(|e| (e - mean).powi(2)).sum();
            if v < 1e-20 {
                assert!(squares < 1e-18, "({i}, {j}): no variance expected, found {squares}");
            } else {
                // The error of a sample variance follows from the fourth moment, here that of the sample.
                let sample = squares / (SEEDS - 1) as f64;
                let fourth = values.iter().map(|e| (e - mean).powi(4)).sum::<f64>() / SEEDS as f64;
                let error = z * ((fourth - sample * sample) / SEEDS as f64).sqrt();
                assert!((sample - v).abs() <= slack * error, "({i}, {j}): variance {sample}, expected {v} +- {error}");
            }
        }
    }
}

#[test]
fn compressive_features_have_their_limit_kernel_and_variance() {
    let x = 0.5 * rows(4, 8);
    for form in [Form::CosSin, Form::Offset] {
        // Few frequencies, so that both parts of the variance count.
        let at = |seed| CompressiveSpec {
            n_components: 24,
            compressed_dim: 3,
            length_scale: 0.8.into(),
            form,
            seed: 400 + seed,
            ..Default::default()
        };
        let exact = kernel_matrix(&*at(0).kernel().unwrap(), x.view(), x.view()).unwrap();
        let variance = at(0).variance(x.view(), x.view()).unwrap();
        check_estimate(&|seed| at(seed).build(8).unwrap().transform(x.view()).unwrap(), &exact, &variance, 1.0);
    }
}

#[test]
fn measurements_keep_inner_products_on_average_with_their_closed_form_variance() {
    let x = rows(4, 11);
    for kind in KINDS {
        let at = |seed| OrthoProjectionSpec { n_components: 4, orthoprojector: kind, seed: 7000 + seed };
        let exact = x.dot(&x.t());
        let (variance, slack) = if kind == Orthoprojection::Sign {
            // No closed form: the mean is checked with twice the variance of a uniform row space.
            assert!(at(0).variance(x.view(), x.view()).is_err());
            (2.0 * at(0).variance_iid(x.view(), x.view()).unwrap(), f64::INFINITY)
        } else {
            (at(0).variance(x.view(), x.view()).unwrap(), 1.0)
        };
        check_estimate(&|seed| at(seed).build(11).unwrap().transform(x.view()).unwrap(), &exact, &variance, slack);
    }
}

#[test]
fn stored_measurements_give_the_features_of_the_rows() {
    let x = rows(70, 12);
    for orthoprojector in KINDS {
        for projection in [Directions::Gaussian, Directions::Orthogonal, Directions::Sorf] {
            let spec = CompressiveSpec {
                n_components: 50,
                compressed_dim: 5,
                orthoprojector,
                projection,
                seed: 3,
                ..Default::default()
            };
            let measurements = spec.measurements().build::<f64>(12).unwrap().transform(x.view()).unwrap();
            assert_eq!(measurements.dim(), (70, 5));
            let features = spec.build::<f64>(12).unwrap().transform(x.view()).unwrap();
            assert_eq!(features, spec.fourier().build::<f64>(5).unwrap().transform(measurements.view()).unwrap());
        }
    }
}

#[test]
fn all_directions_together_only_turn_rows() {
    let x = rows(5, 6);
    for orthoprojector in [Orthoprojection::Gaussian, Orthoprojection::Sign] {
        let map = OrthoProjectionSpec { n_components: 64, orthoprojector, seed: 1 }.build::<f64>(6).unwrap();
        assert_eq!(map.output_dim(), 6);
        let z = map.transform(x.view()).unwrap();
        for (a, b) in z.dot(&z.t()).iter().zip(&x.dot(&x.t())) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }
    let spec = CompressiveSpec { compressed_dim: 64, length_scale: 2.0.into(), ..Default::default() };
    let (kernel, gaussian) = (spec.kernel().unwrap(), Gaussian::new(2.0).unwrap());
    let (a, b) = ([1.0, -0.5, 2.0], [0.0, 0.25, 1.5]);
    assert!((kernel.evaluate(&a, &b) - gaussian.evaluate(&a, &b)).abs() < 1e-12);
    // One kernel for rows of another length.
    assert!((kernel.evaluate(&a[..2], &b[..2]) - gaussian.evaluate(&a[..2], &b[..2])).abs() < 1e-12);
}

#[test]
fn distortion_of_the_three_projectors_side_by_side() {
    // Differences with all their entries, and one along a coordinate.
    let dense = rows(2, 32);
    let mut along = Array2::zeros((2, 32));
    along[[1, 3]] = 2.0;
    let (m, seeds) = (8, 4000u64);
    let uniform = orthoprojected_norm(32, m);
    for (x, sparse) in [(&dense, false), (&along, true)] {
        for kind in KINDS {
            let found = distortion(kind, m, x.view(), 10..10 + seeds).unwrap();
            let difference = &x.row(1) - &x.row(0);
            let difference = &difference / difference.dot(&difference).sqrt();
            let stats = PairStats::new(difference.as_slice().unwrap(), difference.as_slice().unwrap());
            let variance = match kind {
                Orthoprojection::Srht => {
                    Sketch::new(Kind::SrhtUpsampled, Weights::Real, 1, m, 32).unwrap().variance(&stats)
                }
                _ => uniform,
            };
            let z = normal_quantile(1.0 - ALPHA / 24.0);
            if kind == Orthoprojection::Srht && sparse {
                // Every Hadamard coordinate of a basis vector has the same size: no distortion at all.
                assert!(found.worst < 1e-12, "{found:?}");
                continue;
            }
            let deviation = if kind == Orthoprojection::Sign { 2.0 * uniform } else { variance };
            assert!((found.mean - 1.0).abs() < z * (deviation / seeds as f64).sqrt(), "{kind:?}: {found:?}");
            if kind == Orthoprojection::Gaussian {
                // |Px|² m/d is a beta variable; the spread of its sample variance follows from its fourth moment.
                let (a, b) = (0.5 * m as f64, 0.5 * (32 - m) as f64);
                let excess = 6.0 * ((a - b).powi(2) * (a + b + 1.0) - a * b * (a + b + 2.0))
                    / (a * b * (a + b + 2.0) * (a + b + 3.0));
                let error = uniform * ((2.0 + excess) / seeds as f64).sqrt();
                assert!((found.deviation.powi(2) - uniform).abs() < z * error, "{found:?}, expected {uniform}");
            }
            assert!(found.worst >= found.deviation);
        }
    }
    let x = array![[1.0, 2.0], [1.0, 2.0]];
    assert!(distortion(Orthoprojection::Gaussian, 1, x.view(), 0..3).is_err());
}

#[test]
fn descriptions_are_checked_and_survive_json() {
    let x = rows(3, 5);
    for bad in [
        CompressiveSpec { compressed_dim: 0, ..Default::default() },
        CompressiveSpec { n_components: 0, ..Default::default() },
        CompressiveSpec { length_scale: LengthScale::PerInput(vec![1.0; 4]), ..Default::default() },
        CompressiveSpec { length_scale: (-1.0).into(), ..Default::default() },
    ] {
        assert!(bad.build::<f64>(5).is_err(), "{bad:?}");
    }
    let spec = CompressiveSpec { length_scale: LengthScale::Median, compressed_dim: 3, ..Default::default() };
    let resolved = spec.resolve(x.view()).unwrap();
    assert!(matches!(resolved.length_scale, LengthScale::Same(s) if s > 0.0));
    let text = serde_json::to_string(&bochner::feature::Spec::from(resolved.clone())).unwrap();
    assert!(text.contains(r#""map":"compressive""#), "{text}");
    assert_eq!(serde_json::from_str::<bochner::feature::Spec>(&text).unwrap(), resolved.into());
    let mixed = CompressiveSpec { orthoprojector: Orthoprojection::Srht, ..Default::default() };
    assert!(mixed.variance(x.view(), x.view()).is_err() && mixed.variance_iid(x.view(), x.view()).is_ok());
}
