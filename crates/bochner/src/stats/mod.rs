//! Are two samples alike, do two sides of a sample depend on each other, has a stream changed? Tests by features, in one
//! pass.
//!
//! | question | test |
//! |---|---|
//! | are two samples of one distribution? | [`TwoSampleTest`] on [`SampleSums`] |
//! | are two sides of each row independent? | [`IndependenceTest`] on [`PairSums`] |
//! | has the distribution of a stream changed? | [`DriftMonitor`] |
//!
//! P-values come from permutations and are exact: under the hypothesis a share of at most `α` of them is `α` or less. Derivations
//! stand in `docs/mathematics/tests.md`.

mod drift;
mod independence;
mod scale;
mod sums;
mod two_sample;

pub use drift::{DriftMonitor, Forgetting};
pub use independence::{IndependenceTest, PairSums};
pub use scale::{PooledScale, pooled_scale};
pub use sums::SampleSums;
pub use two_sample::TwoSampleTest;

use crate::error::{Error, Result};

/// What a test has found.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Estimate {
    /// Unbiased estimate of what is 0 under the hypothesis: the squared discrepancy of two samples, or the squared norm of the
    /// cross-covariance.
    pub statistic: f64,
    /// The share of permutations, that of the rows as they are among them, that come out as far from 0 or farther.
    pub pvalue: f64,
    /// Interval of the quantity under the exact kernel: it allows for the draw of the rows and for that of the features.
    pub interval: (f64, f64),
    /// Variance over draws of rows.
    pub sampling_variance: f64,
    /// Variance over draws of features; 0 for exact kernels.
    pub sketching_variance: f64,
    /// Random permutations.
    pub permutations: usize,
    /// Rows of the samples, or of both sides.
    pub rows: (u64, u64),
}

impl Estimate {
    fn new(statistic: f64, pvalue: f64, sampling: f64, permutations: usize, (n, m): (f64, f64)) -> Self {
        Estimate {
            statistic,
            pvalue,
            interval: (f64::NEG_INFINITY, f64::INFINITY),
            sampling_variance: sampling,
            sketching_variance: 0.0,
            permutations,
            rows: (n as u64, m as u64),
        }
    }

    fn set_sketching(&mut self, variance: f64, half_width: f64) {
        self.sketching_variance = variance;
        let half = half_width * self.standard_error();
        self.interval = (self.statistic - half, self.statistic + half);
    }

    /// Root of both variances.
    pub fn standard_error(&self) -> f64 {
        (self.sampling_variance + self.sketching_variance).sqrt()
    }
}

/// Share of values as large as `found`, itself among them. Values that differ by rounding are equal.
fn pvalue(found: f64, permuted: &[f64], scale: f64) -> f64 {
    let from = found - 1e-12 * scale.abs().max(found.abs());
    (1 + permuted.iter().filter(|value| **value >= from).count()) as f64 / (permuted.len() + 1) as f64
}

/// Half the width of an interval of this coverage, in standard deviations of a normal distribution.
fn half_width(coverage: f64) -> Result<f64> {
    if !(coverage > 0.0 && coverage < 1.0) {
        return Err(Error::parameter("coverage", "a number between 0 and 1", coverage));
    }
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        // In terms of what is left out, which keeps its digits near 1.
        match libm::erfc(middle * std::f64::consts::FRAC_1_SQRT_2) > 1.0 - coverage {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(0.5 * (low + high))
}

/// Groups of columns whose sums tell how far an estimate varies with the draw of the features.
const GROUPS: usize = 64;

/// Sums over groups of columns. Column `j` and column `j + D/2`, the cosine and the sine or the real and the imaginary part of one
/// draw, are in one group; columns of all parts of a map are in all groups.
fn columns_in_groups(parts: impl Iterator<Item = f64>, columns: usize) -> Vec<f64> {
    let half = if columns.is_multiple_of(2) { columns / 2 } else { columns };
    let mut groups = vec![0.0; GROUPS.min(half)];
    let count = groups.len();
    parts.enumerate().for_each(|(j, part)| groups[j % half % count] += part);
    groups
}

/// Variance of a sum of independent parts of one distribution, from the parts.
fn spread_of_groups(parts: &[f64]) -> f64 {
    let count = parts.len() as f64;
    if parts.len() < 2 {
        return f64::INFINITY;
    }
    let mean = parts.iter().sum::<f64>() / count;
    parts.iter().map(|part| (part - mean) * (part - mean)).sum::<f64>() * count / (count - 1.0)
}
