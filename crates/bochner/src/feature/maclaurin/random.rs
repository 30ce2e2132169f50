use crate::error::{Error, Result};
use crate::feature::MAX_DEGREE;
use crate::random::{Role, Seed, Stream};
use crate::variance::Degree;

/// The law of the degrees of random Maclaurin features: `μ(n)` proportional to `c^(−n)` on a set of degrees
/// (Kar and Karnick 2012; thesis 5.6 with the normalisation of the errata).
///
/// On all degrees it is `μ(n) = (c−1)c^(−n−1)`, from which the first 65 are ever met (`c = 2`: all but `2⁻⁶⁵` of the mass).
#[derive(Debug, Clone, PartialEq)]
pub struct DegreeMeasure {
    degrees: Vec<Degree>,
}

impl DegreeMeasure {
    /// `μ` on the degrees of positive coefficient among `coefficients` from `first` on, renormalised.
    ///
    /// # Errors
    /// A ratio that is not above 1, or no positive coefficient.
    pub fn restricted(coefficients: &[f64], first: usize, ratio: f64) -> Result<Self> {
        check_ratio(ratio)?;
        let active = coefficients.iter().enumerate().skip(first).filter(|(_, a)| **a > 0.0);
        let mut degrees: Vec<Degree> = active
            .map(|(n, &coefficient)| Degree { degree: n as u32, coefficient, probability: ratio.powi(-(n as i32)) })
            .collect();
        let total: f64 = degrees.iter().map(|d| d.probability).sum();
        if degrees.is_empty() {
            return Err(Error::parameter("coefficients", "at least one positive number beyond the constant", "none"));
        }
        degrees.iter_mut().for_each(|d| d.probability /= total);
        Ok(DegreeMeasure { degrees })
    }

    /// `μ(n) = (c−1)c^(−n−1+first)` on all `n ≥ first`, whatever the coefficients: unbiased for infinite series.
    ///
    /// # Errors
    /// A ratio so near 1 that degrees beyond 64 would be drawn.
    pub fn geometric(coefficient: impl Fn(u32) -> f64, first: u32, ratio: f64) -> Result<Self> {
        check_ratio(ratio)?;
        let beyond = ratio.powi(-(MAX_DEGREE as i32 + 1 - first as i32));
        if beyond > 1e-9 {
            return Err(Error::parameter("ratio", "at least 1.4 (degrees beyond 64 are not drawn)", ratio));
        }
        let probability = |n: u32| (ratio - 1.0) * ratio.powi(-((n - first) as i32) - 1);
        let degree = |n| Degree { degree: n, coefficient: coefficient(n), probability: probability(n) };
        Ok(DegreeMeasure { degrees: (first..=MAX_DEGREE).map(degree).collect() })
    }

    /// Degrees with their coefficients and probabilities.
    pub fn degrees(&self) -> &[Degree] {
        &self.degrees
    }

    /// How often each degree comes up in `draws` independent draws, in the order of [`degrees`](Self::degrees).
    pub fn counts(&self, draws: usize, seed: Seed) -> Vec<usize> {
        let mut stream = Stream::new(seed, Role::Degree, 0);
        let mut counts = vec![0; self.degrees.len()];
        for _ in 0..draws {
            let mut rest = stream.uniform();
            let place = self.degrees.iter().position(|d| {
                rest -= d.probability;
                rest < 0.0
            });
            counts[place.unwrap_or(self.degrees.len() - 1)] += 1;
        }
        counts
    }
}

fn check_ratio(ratio: f64) -> Result<()> {
    if ratio > 1.0 && ratio.is_finite() {
        Ok(())
    } else {
        Err(Error::parameter("ratio", "a finite number above 1", ratio))
    }
}
