use super::moments::{gaussian_excess, non_negative, rademacher_excess};
use super::{Kind, PairStats, Sketch, Weights};
use crate::error::{Error, Result};
use crate::kernel::{DotProductKernel, powu};

/// One degree of a random Maclaurin map: `aₙ` and the probability with which the degree is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Degree {
    /// `n`.
    pub degree: u32,
    /// `aₙ`.
    pub coefficient: f64,
    /// `μ(n)`, positive where the coefficient is.
    pub probability: f64,
}

/// `E|φ(x) conj φ(y)|²` (the square of the real part for CtR) of one product of `n` independent weight vectors.
fn second_moment(kind: Kind, weights: Weights, stats: &PairStats, n: u32) -> f64 {
    let q = if weights == Weights::Real { 1.0 } else { 0.5 };
    let (v, p) = if kind == Kind::Gaussian { gaussian_excess(stats, q) } else { rademacher_excess(stats, q) };
    match weights {
        Weights::Ctr => 0.5 * (powu(stats.t + v, n) + powu(stats.t + p, n)),
        _ => powu(stats.t + v, n),
    }
}

fn check_independent(kind: Kind) -> Result<()> {
    if matches!(kind, Kind::Rademacher | Kind::Gaussian) {
        return Ok(());
    }
    let reason = "the degrees' feature counts are random; a closed form is known for independent draws only".into();
    Err(Error::Unsupported { what: "variance of structured random Maclaurin features", reason })
}

/// Variance of one draw of a random Maclaurin map: `Σ aₙ²/μ(n) · E|·|²ⁿ − k²`; `D` draws divide it by `D`.
///
/// `degrees` is the whole support of `μ` (Kar and Karnick 2012, §4); `kernel` is `Σ aₙ⟨x, y⟩ⁿ` over that support, so with
/// an exact constant it is `k − a₀`.
///
/// # Errors
/// Structured sketches, whose variance under random degrees has no closed form here.
pub fn random_maclaurin(
    kind: Kind,
    weights: Weights,
    degrees: &[Degree],
    kernel: f64,
    stats: &PairStats,
) -> Result<f64> {
    check_independent(kind)?;
    let active = degrees.iter().filter(|d| d.coefficient > 0.0);
    let term =
        |d: &Degree| d.coefficient * (d.coefficient / d.probability) * second_moment(kind, weights, stats, d.degree);
    Ok(non_negative(active.map(term).sum::<f64>() - kernel * kernel))
}

/// [`random_maclaurin`] for degrees drawn from `μ(n) = (c−1)c^(−n−1)` on all `n ≥ 0`.
///
/// Finite where `c` times the second moment of a factor is below the squared radius of convergence; always for
/// polynomial and exponential kernels.
///
/// # Errors
/// `ratio` not above 1, structured sketches, or a series that does not converge within 10,000 terms.
pub fn random_maclaurin_geometric(
    kind: Kind,
    weights: Weights,
    kernel: &dyn DotProductKernel,
    ratio: f64,
    stats: &PairStats,
) -> Result<f64> {
    const MOST: u32 = 10_000;
    check_independent(kind)?;
    if !(ratio > 1.0 && ratio.is_finite()) {
        return Err(Error::parameter("ratio", "a finite number above 1", ratio));
    }
    let value = kernel
        .of_products(stats.dot, stats.x_norm_sq, stats.y_norm_sq)
        .ok_or_else(|| Error::Unsupported { what: "kernel", reason: "it is not a function of products".into() })?;
    let (mut sum, mut quiet, mut largest) = (0.0, 0, 0.0f64);
    for n in 0..MOST {
        let coefficient = kernel.coefficient(n);
        let inverse = powu(ratio, n) * ratio / (ratio - 1.0);
        let term = if coefficient > 0.0 {
            // The coefficient on both sides of the large powers keeps products in range.
            (coefficient * second_moment(kind, weights, stats, n)) * (coefficient * inverse)
        } else {
            0.0
        };
        sum += term;
        largest = largest.max(term);
        // Degrees may be missing: only a long silence is an end.
        quiet = if term <= 1e-18 * largest { quiet + 1 } else { 0 };
        if quiet == 64 {
            return Ok(non_negative(sum - value * value));
        }
    }
    Err(Error::NotConverged { iterations: MOST as usize, residual: f64::NAN, tolerance: 1e-18 })
}

/// Variance of a Maclaurin map with a fixed number of draws per degree: `Σ aₙ² Varₙ`, independent sketches per degree.
pub fn maclaurin(parts: &[(f64, Sketch)], stats: &PairStats) -> f64 {
    parts.iter().map(|(coefficient, sketch)| coefficient * coefficient * sketch.variance(stats)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Exponential, Kernel, Polynomial};
    use num_complex::Complex;

    const X: [f64; 2] = [1.0, -0.5];
    const Y: [f64; 2] = [0.8, 0.3];
    const CODES: [Complex<f64>; 4] =
        [Complex::new(1.0, 0.0), Complex::new(-1.0, 0.0), Complex::new(0.0, 1.0), Complex::new(0.0, -1.0)];

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1e-3), "{found} instead of {expected}");
    }

    #[test]
    fn random_degrees_and_signs_match_their_enumeration() {
        // (1 + ⟨x, y⟩)² with the constant put in exactly: degrees 1 and 2, probabilities proportional to 2^(−n).
        let kernel = Polynomial::new(2, 1.0, 1.0).unwrap();
        let degree = |degree: u32, probability| Degree { degree, coefficient: kernel.coefficient(degree), probability };
        let degrees = [degree(1, 2.0 / 3.0), degree(2, 1.0 / 3.0)];
        let stats = PairStats::new(&X, &Y);
        let target = kernel.evaluate(&X, &Y) - 1.0;
        for (letters, weights) in [(2usize, Weights::Real), (4, Weights::Complex), (4, Weights::Ctr)] {
            let (mut mean, mut variance) = (0.0, 0.0);
            for d in &degrees {
                let words = letters.pow(2 * d.degree);
                for word in 0..words {
                    let code = |i: usize| CODES[word / letters.pow(i as u32) % letters];
                    let of = |v: &[f64; 2], l: usize| code(2 * l) * v[0] + code(2 * l + 1) * v[1];
                    let product: Complex<f64> = (0..d.degree as usize).map(|l| of(&X, l) * of(&Y, l).conj()).product();
                    let estimate = product * (d.coefficient / d.probability);
                    let weight = d.probability / words as f64;
                    mean += weight * estimate.re;
                    let error = estimate - target;
                    variance += weight * if weights == Weights::Ctr { error.re * error.re } else { error.norm_sqr() };
                }
            }
            close(mean, target);
            close(random_maclaurin(Kind::Rademacher, weights, &degrees, target, &stats).unwrap(), variance);
        }
    }

    #[test]
    fn geometric_degrees_are_the_sum_over_all_degrees() {
        let stats = PairStats::new(&X, &Y);
        for ratio in [1.5, 2.0, 4.0] {
            let polynomial = Polynomial::new(3, 0.5, 0.7).unwrap();
            let exponential = Exponential::new(1.2).unwrap();
            let kernels: [&dyn DotProductKernel; 2] = [&polynomial, &exponential];
            for kernel in kernels {
                let degrees: Vec<Degree> = (0..60)
                    .map(|n| Degree {
                        degree: n,
                        coefficient: kernel.coefficient(n),
                        probability: (ratio - 1.0) * f64::powi(ratio, -(n as i32) - 1),
                    })
                    .collect();
                for kind in [Kind::Rademacher, Kind::Gaussian] {
                    for weights in [Weights::Real, Weights::Ctr] {
                        let value = kernel.evaluate(&X, &Y);
                        let listed = random_maclaurin(kind, weights, &degrees, value, &stats).unwrap();
                        close(random_maclaurin_geometric(kind, weights, kernel, ratio, &stats).unwrap(), listed);
                    }
                }
            }
        }
        let kernel = Exponential::new(1.0).unwrap();
        let bad = |kind, ratio| random_maclaurin_geometric(kind, Weights::Real, &kernel, ratio, &stats);
        assert!(bad(Kind::Rademacher, 1.0).is_err());
        assert!(bad(Kind::SrhtStacked, 2.0).is_err());
    }

    #[test]
    fn degrees_with_their_own_sketches_add_up() {
        let stats = PairStats::new(&X, &Y);
        let first = Sketch::new(Kind::SrhtStacked, Weights::Ctr, 1, 2, 2).unwrap();
        let second = Sketch::new(Kind::SrhtStacked, Weights::Ctr, 2, 5, 2).unwrap();
        assert_eq!(first.variance(&stats), 0.0);
        close(maclaurin(&[(2.0, first), (0.5, second)], &stats), 0.25 * second.variance(&stats));
    }
}
