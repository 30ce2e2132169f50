//! Orthonormal transforms, and how sparse signals are in them.

use bochner::Error;
use bochner::preprocess::{Basis, Shape, SparseTransform, sparsity_at_energy};
use bochner::random::{Role, Seed, Stream};

const BASES: [Basis; 4] = [Basis::Identity, Basis::Haar, Basis::Daubechies4, Basis::Dct];

fn matrix(transform: &SparseTransform) -> Vec<Vec<f64>> {
    let n = transform.dim();
    (0..n)
        .map(|i| {
            let mut signal = vec![0.0; n];
            signal[i] = 1.0;
            transform.apply(&mut signal);
            signal
        })
        .collect()
}

#[test]
fn every_transform_is_orthonormal() {
    let shapes = [
        (Shape::Line, 1),
        (Shape::Line, 2),
        (Shape::Line, 7),
        (Shape::Line, 12),
        (Shape::Line, 32),
        (Shape::Image { height: 8, width: 8 }, 64),
        (Shape::Image { height: 6, width: 4 }, 24),
        (Shape::Image { height: 1, width: 8 }, 8),
        (Shape::Image { height: 8, width: 1 }, 8),
    ];
    for basis in BASES {
        for (shape, len) in shapes {
            let columns = matrix(&SparseTransform::new(basis, shape, len).unwrap());
            for (i, a) in columns.iter().enumerate() {
                for (j, b) in columns.iter().enumerate() {
                    let dot: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                    let expected = f64::from(u8::from(i == j));
                    assert!((dot - expected).abs() < 1e-12, "{basis:?} {shape:?} ({i}, {j}): {dot}");
                }
            }
        }
    }
}

#[test]
fn the_cosine_transform_is_its_definition() {
    for n in [1usize, 5, 8] {
        let columns = matrix(&SparseTransform::new(Basis::Dct, Shape::Line, n).unwrap());
        for (j, column) in columns.iter().enumerate() {
            for (k, value) in column.iter().enumerate() {
                let norm = if k == 0 { 1.0 / n as f64 } else { 2.0 / n as f64 };
                let angle = std::f64::consts::PI * (j as f64 + 0.5) * k as f64 / n as f64;
                assert!((value - norm.sqrt() * angle.cos()).abs() < 1e-12, "n = {n} ({j}, {k}): {value}");
            }
        }
    }
}

#[test]
fn smooth_signals_are_sparse_where_theory_says_so() {
    // A constant is one coefficient in each of the bases but the first; a line has no Daubechies details but at the end.
    let constant = ndarray::Array2::from_elem((1, 64), 1.0);
    for (basis, expected) in [(Basis::Identity, 64), (Basis::Haar, 1), (Basis::Daubechies4, 1), (Basis::Dct, 1)] {
        for shape in [Shape::Line, Shape::Image { height: 8, width: 8 }] {
            let transform = SparseTransform::new(basis, shape, 64).unwrap();
            let found = sparsity_at_energy(constant.view(), &transform, 0.999_999).unwrap();
            // Periodic wavelets of four coefficients stop at four numbers, whose last level is complete at two.
            assert!(
                found.worst <= expected.max(if basis == Basis::Daubechies4 { 4 } else { 1 }),
                "{basis:?} {found:?}"
            );
        }
    }
    let mut slope: Vec<f64> = (0..64).map(f64::from).collect();
    let transform = SparseTransform::new(Basis::Daubechies4, Shape::Line, 64).unwrap();
    transform.apply(&mut slope);
    // Details of the finest level: all but the one that sees the jump from the end to the beginning.
    assert!(slope[32..63].iter().all(|v| v.abs() < 1e-12), "{slope:?}");
    assert!(slope[63].abs() > 1.0);
}

#[test]
fn counts_follow_the_energy() {
    let rows = ndarray::array![[3.0, 0.0, 4.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]];
    let transform = SparseTransform::new(Basis::Identity, Shape::Line, 4).unwrap();
    let of = |energy| sparsity_at_energy(rows.view(), &transform, energy).unwrap();
    assert_eq!((of(1.0).worst, of(1.0).median, of(1.0).mean), (4, 2, 2.0));
    assert_eq!((of(0.6).worst, of(0.6).median), (3, 1));
    assert_eq!(of(0.7).mean, (2.0 + 3.0) / 3.0);
    // Random signals are not sparse in any of the bases.
    let mut noise = vec![0.0f32; 100 * 64];
    Stream::new(Seed::new(2), Role::Noise, 0).normals_from(0, &mut noise);
    let noise = ndarray::Array2::from_shape_vec((100, 64), noise).unwrap();
    for basis in BASES {
        let transform = SparseTransform::new(basis, Shape::Line, 64).unwrap();
        assert!(sparsity_at_energy(noise.view(), &transform, 0.99).unwrap().mean > 40.0, "{basis:?}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    assert!(SparseTransform::new(Basis::Haar, Shape::Image { height: 3, width: 3 }, 8).is_err());
    assert!(SparseTransform::new(Basis::Haar, Shape::Line, 0).is_err());
    let transform = SparseTransform::new(Basis::Haar, Shape::Line, 2).unwrap();
    let rows = ndarray::array![[1.0, f64::NAN]];
    assert!(matches!(sparsity_at_energy(rows.view(), &transform, 0.9), Err(Error::NonFinite { .. })));
    for energy in [0.0, 1.1, f64::NAN] {
        assert!(sparsity_at_energy(ndarray::array![[1.0, 2.0]].view(), &transform, energy).is_err());
    }
}
