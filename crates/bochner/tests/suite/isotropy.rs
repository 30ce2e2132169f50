//! Every projection keeps its contract: `E[w wᴴ] = I`, complex directions are circular, promised orthogonality is exact.

use crate::statistics::normal_quantile;
use bochner::Complex;
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::projection::{
    CountSketch, DenseGaussian, Entries, HadamardChain, MatrixFree, Orthogonal, Orthoprojector, Projection, Rademacher,
    Sparse, panels,
};
use bochner::random::Seed;
use bochner::scalar::{Real, Scalar};

const ALPHA: f64 = 1e-6;
const SEEDS: u64 = 3000;

/// Directions as rows: the projections of the basis vectors, transposed.
fn directions<P: Projection>(projection: &P) -> Vec<Vec<P::Output>> {
    let (d, m) = (projection.input_dim(), projection.output_dim());
    let mut identity = vec![P::Real::ZERO; d * d];
    (0..d).for_each(|i| identity[i * d + i] = P::Real::ONE);
    let mut out = vec![P::Output::ZERO; d * m];
    let mut tile = TileMut::new(&mut out, d, m);
    for columns in panels(m, projection.panel()) {
        let window = tile.columns_mut(columns.clone());
        projection.project_tile(Tile::new(&identity, d, d), columns, window, &mut Workspace::new());
    }
    (0..m).map(|l| (0..d).map(|j| out[j * m + l]).collect()).collect()
}

/// The mean of `w wᴴ` and `w wᵀ` over seeds, for the first and the last direction.
///
/// `fourth` bounds `E|w_a|²|w_b|²`, the variance of every entry; the tolerance follows from it.
fn check_projection<P: Projection>(name: &str, fourth: f64, draw: impl Fn(Seed) -> P) {
    let probe = draw(Seed::new(0));
    let (d, m) = (probe.input_dim(), probe.output_dim());
    let is_complex = P::Output::IS_COMPLEX;
    let mut hermitian = vec![Complex::new(0.0, 0.0); 2 * d * d];
    let mut plain = hermitian.clone();
    for seed in 0..SEEDS {
        let w = directions(&draw(Seed::new(1000 + seed)));
        for (k, w) in [&w[0], &w[m - 1]].into_iter().enumerate() {
            let w: Vec<Complex<f64>> =
                w.iter().map(|z| Complex::new(Real::to_f64(z.re()), Real::to_f64(z.im()))).collect();
            for a in 0..d {
                for b in 0..d {
                    hermitian[(k * d + a) * d + b] += w[a] * w[b].conj() / SEEDS as f64;
                    plain[(k * d + a) * d + b] += w[a] * w[b] / SEEDS as f64;
                }
            }
        }
    }
    let comparisons = (8 * d * d) as f64;
    let tolerance = normal_quantile(1.0 - ALPHA / (2.0 * comparisons)) * (fourth / SEEDS as f64).sqrt() + 1e-6;
    for (index, value) in hermitian.iter().enumerate() {
        let (a, b) = (index / d % d, index % d);
        let expected = f64::from(u8::from(a == b));
        assert!((value.re - expected).abs() < tolerance, "{name} ({a}, {b}): {value}, tolerance {tolerance}");
        assert!(value.im.abs() < tolerance, "{name} ({a}, {b}): {value}");
        if is_complex {
            let value = plain[index];
            assert!(value.re.abs() < tolerance && value.im.abs() < tolerance, "{name} ({a}, {b}) pseudo: {value}");
        }
    }
}

#[test]
fn every_projection_is_isotropic() {
    check_projection("gaussian", 3.0, |s| DenseGaussian::<f64>::new(s, 3, 5).unwrap());
    check_projection("gaussian f32", 3.0, |s| DenseGaussian::<f32>::new(s, 3, 5).unwrap());
    check_projection("complex gaussian", 2.0, |s| DenseGaussian::<f64, Complex<f64>>::new(s, 3, 5).unwrap());
    check_projection("matrix-free", 3.0, |s| MatrixFree::<f64>::new(s, 3, 5).unwrap());
    check_projection("rademacher", 1.0, |s| Rademacher::<f64>::new(s, 3, 5).unwrap());
    check_projection("complex rademacher", 1.0, |s| Rademacher::<f64, Complex<f64>>::new(s, 3, 5).unwrap());
    check_projection("orthogonal", 3.0, |s| Orthogonal::<f64>::new(s, 3, 5).unwrap());
    // Uniform on a sphere of radius √d: E w_a⁴ = 3d/(d + 2) < 3.
    check_projection("orthoprojector", 3.0, |s| Orthoprojector::<f64>::new(s, 4, 2, Entries::Gaussian).unwrap());
    check_projection("hadamard chain", 4.0, |s| HadamardChain::<f64>::new(s, 3, 6).unwrap());
    check_projection("complex chain", 4.0, |s| HadamardChain::<f64, Complex<f64>>::new(s, 3, 6).unwrap());
    // An entry is √(d/q) times a normal number with probability q/d: fourth moment 3d/q.
    check_projection("sparse", 4.5, |s| Sparse::<f64>::new(s, 3, 5, 2).unwrap());
    // An entry is ±√D with probability 1/D: fourth moment D.
    check_projection("count sketch", 5.0, |s| CountSketch::<f64>::new(3, 5, s).unwrap());
}

#[test]
fn matrix_free_and_stored_weights_are_the_same_numbers() {
    let (stored, free) = (
        DenseGaussian::<f32, Complex<f32>>::new(Seed::new(9), 300, 70).unwrap(),
        MatrixFree::<f32, Complex<f32>>::new(Seed::new(9), 300, 70).unwrap(),
    );
    assert_eq!(directions(&stored), directions(&free));
}

#[test]
fn the_first_directions_of_many_are_the_directions_of_few() {
    let seed = Seed::new(4);
    let few = directions(&DenseGaussian::<f64>::new(seed, 20, 10).unwrap());
    assert_eq!(few[..], directions(&DenseGaussian::<f64>::new(seed, 20, 33).unwrap())[..10]);
    let few = directions(&Rademacher::<f64>::new(seed, 20, 10).unwrap());
    assert_eq!(few[..], directions(&Rademacher::<f64>::new(seed, 20, 130).unwrap())[..10]);
    let few = directions(&Orthogonal::<f64>::new(seed, 4, 4).unwrap());
    assert_eq!(few[..], directions(&Orthogonal::<f64>::new(seed, 4, 11).unwrap())[..4]);
}

#[test]
fn an_orthoprojector_times_its_transpose_is_d_over_m_times_the_identity() {
    for entries in [Entries::Gaussian, Entries::Sign] {
        for (d, m) in [(1, 1), (5, 1), (8, 8), (30, 7)] {
            let projection = Orthoprojector::<f64>::new(Seed::new(2), d, m, entries).unwrap();
            let scale = projection.scale();
            let w = directions(&projection);
            for a in 0..m {
                for b in 0..m {
                    let dot: f64 = w[a].iter().zip(&w[b]).map(|(x, y)| scale * x * scale * y).sum();
                    let expected = if a == b { d as f64 / m as f64 } else { 0.0 };
                    assert!((dot - expected).abs() < 1e-13 * d as f64, "{entries:?} {d} {m}: {dot}");
                }
            }
        }
    }
}

#[test]
fn orthogonal_directions_of_a_block_are_orthogonal() {
    let w = directions(&Orthogonal::<f64>::new(Seed::new(7), 6, 14).unwrap());
    for a in 0..14 {
        for b in 0..a {
            if a / 6 == b / 6 {
                let dot: f64 = w[a].iter().zip(&w[b]).map(|(x, y)| x * y).sum();
                assert!(dot.abs() < 1e-12, "{a} {b}: {dot}");
            }
        }
    }
}

#[test]
fn signs_are_signs_and_general_q_mixes_real_and_imaginary_ones() {
    for row in directions(&Rademacher::<f32>::new(Seed::new(1), 70, 130).unwrap()) {
        assert!(row.iter().all(|w| w.abs() == 1.0));
    }
    let draw = |q| Rademacher::<f64, Complex<f64>>::with_real_probability(Seed::new(1), q, 200, 100);
    for (q, low, high) in [(0.0, 0, 0), (1.0, 20_000, 20_000), (0.8, 15_717, 16_283)] {
        // 0.8: 16,000 ± 5 standard deviations of a binomial with 20,000 trials.
        let real: usize = directions(&draw(q).unwrap())
            .iter()
            .flatten()
            .map(|w| {
                assert!(w.re.abs() + w.im.abs() == 1.0);
                usize::from(w.im == 0.0)
            })
            .sum();
        assert!((low..=high).contains(&real), "q = {q}: {real}");
    }
    assert!(draw(1.5).is_err() && draw(f64::NAN).is_err());
    assert!(Rademacher::<f64>::with_real_probability(Seed::new(1), 0.5, 2, 2).is_err());
}

#[test]
fn impossible_sizes_are_errors() {
    assert!(DenseGaussian::<f32>::new(Seed::new(0), 0, 1).is_err());
    assert!(DenseGaussian::<f32>::new(Seed::new(0), 1, 0).is_err());
    assert!(DenseGaussian::<f32>::new(Seed::new(0), usize::MAX / 2, 3).is_err());
    assert!(Rademacher::<f32>::new(Seed::new(0), usize::MAX, 64).is_err());
    assert!(Orthogonal::<f32>::new(Seed::new(0), 1 << 40, 1 << 40).is_err());
    assert!(Orthoprojector::<f32>::new(Seed::new(0), 3, 4, Entries::Gaussian).is_err());
    assert!(MatrixFree::<f32>::new(Seed::new(0), 1_000_000, 1_000_000).is_ok());
}
