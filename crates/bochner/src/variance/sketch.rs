use super::moments::{gaussian_excess, non_negative, powdiff, power_sum, rademacher_excess};
use super::{PairStats, Variances};
use crate::error::{Error, Result, check_count};
use crate::parameter::words;
use serde::{Deserialize, Serialize};

words! {
    /// The numbers weights are made of, and what becomes of complex features.
    pub enum Weights {
        /// Complex weights; real and imaginary parts of the features side by side.
        Ctr = "ctr",
        /// Real weights.
        Real = "real",
        /// Complex weights, complex features.
        Complex = "complex",
    }
}

/// How the draws of a polynomial sketch depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Independent signs: `±1`, or `{1, −1, i, −i}`.
    Rademacher,
    /// Independent normals.
    Gaussian,
    /// TensorSRHT of independent blocks, with a fresh permutation per block and factor.
    SrhtStacked,
    /// TensorSRHT of one sign vector per factor, with indices repeated and shuffled per factor.
    SrhtUpsampled,
    /// TensorSRHT of one sign vector per factor with sampled index tuples (Ahle et al. 2020).
    SrhtTuple {
        /// Whether a tuple may be drawn twice; beyond `d'ᵖ` draws it always may.
        replacement: bool,
    },
    /// Circular convolution of count sketches with independent hashes and signs (Pham and Pagh 2013).
    TensorSketch,
}

impl Kind {
    fn is_srht(self) -> bool {
        matches!(self, Kind::SrhtStacked | Kind::SrhtUpsampled | Kind::SrhtTuple { .. })
    }
}

/// A sketch of `⟨x, y⟩ᵖ` as far as its variance is concerned.
///
/// ```
/// use bochner::variance::{Kind, PairStats, Sketch, Weights};
/// let stats = PairStats::new(&[1.0, -0.5, 2.0, 0.7], &[0.5, 1.0, 1.5, -0.3]);
/// let sketch = Sketch::new(Kind::SrhtStacked, Weights::Complex, 2, 4, 4)?;
/// assert!((sketch.variance(&stats) - 40.793).abs() < 5e-4);
/// assert!((sketch.pseudo_variance(&stats) - 1.033).abs() < 5e-4);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sketch {
    kind: Kind,
    weights: Weights,
    degree: u32,
    draws: usize,
    padded_dim: usize,
}

impl Sketch {
    /// A sketch of `degree` with `draws` draws `D` of rows of length `input_dim`.
    ///
    /// Complex and CtR sketches count complex draws (CtR makes two features of each); structured sketches pad rows to
    /// a power of two. A bias coordinate counts as a part of the row.
    ///
    /// # Errors
    /// No draws, or rows of length 0.
    pub fn new(kind: Kind, weights: Weights, degree: u32, draws: usize, input_dim: usize) -> Result<Self> {
        check_count("draws", draws)?;
        check_count("input_dim", input_dim)?;
        let padded_dim = if kind.is_srht() {
            let fit = input_dim.checked_next_power_of_two();
            fit.ok_or_else(|| Error::parameter("input_dim", "at most 2^63", input_dim))?
        } else {
            input_dim
        };
        Ok(Sketch { kind, weights, degree, draws, padded_dim })
    }

    /// Variance and pseudo-variance of the estimate of `⟨x, y⟩ᵖ`.
    pub fn moments(&self, stats: &PairStats) -> Variances {
        match self.weights {
            Weights::Complex => Variances {
                variance: non_negative(self.moment(stats, Part::Variance)),
                pseudo_variance: self.moment(stats, Part::Pseudo),
            },
            _ => {
                let variance = self.variance(stats);
                Variances { variance, pseudo_variance: variance }
            }
        }
    }

    /// Variance of the estimate of `⟨x, y⟩ᵖ`; for CtR that of the real part.
    pub fn variance(&self, stats: &PairStats) -> f64 {
        non_negative(match self.weights {
            Weights::Real => self.moment(stats, Part::Real),
            Weights::Complex => self.moment(stats, Part::Variance),
            Weights::Ctr => 0.5 * (self.moment(stats, Part::Variance) + self.moment(stats, Part::Pseudo)),
        })
    }

    /// Pseudo-variance of the estimate; equal to the variance for real features.
    pub fn pseudo_variance(&self, stats: &PairStats) -> f64 {
        match self.weights {
            Weights::Complex => self.moment(stats, Part::Pseudo),
            _ => self.variance(stats),
        }
    }

    /// Covariance of two distinct draws in one block of a stacked TensorSRHT, at a single draw each:
    /// `(t − X₁/(d'−1))ᵖ − tᵖ`; 0 for sketches of independent draws.
    ///
    /// CtR takes the mean of the two complex values, so that `V + (d'−1) Cov` is again a block's variance.
    pub fn block_covariance(&self, stats: &PairStats) -> f64 {
        if self.kind != Kind::SrhtStacked || self.padded_dim == 1 {
            return 0.0;
        }
        let covariance = |excess: f64| powdiff(stats.t, -excess / (self.padded_dim - 1) as f64, self.degree);
        let (v, p) = self.excess(stats);
        match self.weights {
            Weights::Ctr => 0.5 * (covariance(v) + covariance(p)),
            _ => covariance(v),
        }
    }

    /// `μ₂ − t` and `π₂ − t` of one factor of signs.
    #[inline(always)]
    fn excess(&self, stats: &PairStats) -> (f64, f64) {
        let q = if self.weights == Weights::Real { 1.0 } else { 0.5 };
        if self.kind == Kind::Gaussian { gaussian_excess(stats, q) } else { rademacher_excess(stats, q) }
    }

    #[inline(always)]
    fn moment(&self, stats: &PairStats, part: Part) -> f64 {
        let (t, p, draws) = (stats.t, self.degree, self.draws as f64);
        if self.kind == Kind::TensorSketch {
            return super::tensor_sketch::moment(std::iter::repeat_n(stats, p as usize), self.draws, part);
        }
        let (v, pseudo) = self.excess(stats);
        let x = if part == Part::Pseudo { pseudo } else { v };
        match self.kind {
            Kind::SrhtStacked => {
                let (size, rest) = (self.padded_dim as f64, (self.draws % self.padded_dim) as f64);
                structured(t, x, p, draws, size - 1.0, rest * (size - rest) / draws)
            }
            Kind::SrhtUpsampled => {
                let indices = (self.draws.div_ceil(self.padded_dim) as f64) * self.padded_dim as f64;
                structured(t, x, p, draws, indices - 1.0, indices - draws)
            }
            Kind::SrhtTuple { replacement: false } => {
                let tuples = crate::kernel::powu(self.padded_dim as f64, p);
                let left = if draws <= tuples && tuples > 1.0 { 1.0 - (draws - 1.0) / (tuples - 1.0) } else { 1.0 };
                powdiff(t, x, p) / draws * left
            }
            _ => powdiff(t, x, p) / draws,
        }
    }
}

/// Which moment, and for which weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Variance with real weights.
    Real,
    /// Variance with complex weights.
    Variance,
    /// Pseudo-variance with complex weights.
    Pseudo,
}

/// A moment of stacked or upsampled TensorSRHT, evaluated so that full blocks of degree 1 give exactly 0.
///
/// Both structured variances are `X_p/D − κ [tᵖ − (t − δ)ᵖ]` with `δ = X₁/M`: stacked blocks have `M = d' − 1` and
/// `κ = c/D²`, upsampled ones `M = n − 1` and `κ = 1 − 1/D`. With `X_p = X₁ Σ(t+X₁, t)` and `tᵖ − (t−δ)ᵖ = δ Σ(t, t−δ)`
/// this is `X₁/D · [Σ(t+X₁, t) − Σ(t, t−δ) + ρ Σ(t, t−δ)]` with `ρ = deficit/M`, where `deficit` is `b(d'−b)/D` for
/// `b = D mod d'` (stacked) and `n − D` (upsampled): exactly 0 when blocks are full. The difference of the two sums
/// obeys `Eₚ₊₁ = t Eₚ + Fₚ` with `Fₚ = (t+X₁)ᵖ − (t−δ)ᵖ` and `E₁ = 0`.
#[inline(always)]
fn structured(t: f64, x: f64, p: u32, draws: f64, m: f64, deficit: f64) -> f64 {
    if m <= 0.0 {
        // One coordinate, one index: x is 0 up to rounding and the map an isometry up to sign.
        return 0.0;
    }
    let delta = x / m;
    let (mut e, mut f, mut low) = (0.0, 0.0, 1.0);
    for _ in 1..p {
        f = (t + x) * f + (x + delta) * low;
        low *= t - delta;
        e = t * e + f;
    }
    x / draws * (e + deficit / m * power_sum(t, t - delta, p))
}
