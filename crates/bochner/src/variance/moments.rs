use super::PairStats;

/// Variance and pseudo-variance of an estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variances {
    /// `E|k̂ − k|²`.
    pub variance: f64,
    /// `E(k̂ − k)²`; equal to the variance for real estimates, possibly negative for complex ones.
    pub pseudo_variance: f64,
}

/// The name of [`Variances`] up to version 0.1.
#[deprecated(since = "0.2.0", note = "sums over rows have this name: `Variances`")]
pub type Moments = Variances;

impl Variances {
    /// Variance of the real part, which is what complex-to-real features estimate: the mean of both.
    pub fn real_part(&self) -> f64 {
        non_negative(0.5 * (self.variance + self.pseudo_variance))
    }
}

/// Rounding may leave a variance just below 0. NaN only comes from powers beyond the largest number (∞ − ∞).
#[inline(always)]
pub(super) fn non_negative(value: f64) -> f64 {
    if value < 0.0 {
        0.0
    } else if value.is_nan() {
        f64::INFINITY
    } else {
        value
    }
}

/// `Aᵖ − Bᵖ` without cancellation, for `A = B + difference`.
///
/// Evaluated as `(A − B) Σ_{j<p} Aᵖ⁻¹⁻ʲ Bʲ`; bases may be negative, `0⁰ = 1`.
#[inline(always)]
pub fn powdiff(base: f64, difference: f64, p: u32) -> f64 {
    difference * power_sum(base + difference, base, p)
}

/// `Σ_{j<p} Aᵖ⁻¹⁻ʲ Bʲ`.
#[inline(always)]
pub(super) fn power_sum(a: f64, b: f64, p: u32) -> f64 {
    let (mut sum, mut power) = (0.0, 1.0);
    for _ in 0..p {
        sum = sum * a + power;
        power *= b;
    }
    sum
}

/// What one factor adds to `t`: `μ₂ − t` for variances, `π₂ − t` for pseudo-variances.
///
/// `μ₂ = E|w·x conj(w·y)|²` and `π₂ = E(w·x conj(w·y))²`, for weights of `E Re(z)² = q`.
#[inline(always)]
pub(super) fn rademacher_excess(stats: &PairStats, q: f64) -> (f64, f64) {
    let r = (2.0 * q - 1.0) * (2.0 * q - 1.0);
    (non_negative(stats.b + r * stats.a), stats.a + r * stats.b)
}

#[inline(always)]
pub(super) fn gaussian_excess(stats: &PairStats, q: f64) -> (f64, f64) {
    let r = (2.0 * q - 1.0) * (2.0 * q - 1.0);
    (stats.n + r * stats.t, stats.t + r * stats.n)
}

fn product(stats: &PairStats, excess: (f64, f64), degree: u32) -> Variances {
    Variances {
        variance: non_negative(powdiff(stats.t, excess.0, degree)),
        pseudo_variance: powdiff(stats.t, excess.1, degree),
    }
}

/// Variances of one product of `degree` independent sign vectors: `±1` with probability `q`, `±i` with `1 − q`.
///
/// `(N + (1+r)a)ᵖ − tᵖ` and `(t + a + r(N−S))ᵖ − tᵖ` with `r = (2q−1)²`: real weights are `q = 1`, the complex ones
/// `{1, −1, i, −i}` are `q = 1/2` (Wacker 2022, Thm 3.3.1 and C.4). An average of `D` draws divides both by `D`.
pub fn rademacher(stats: &PairStats, degree: u32, q: f64) -> Variances {
    product(stats, rademacher_excess(stats, q), degree)
}

/// Variances of one product of `degree` independent normal vectors with `E Re(z)² = q`, `E Im(z)² = 1 − q`.
///
/// `(N + (1+r)t)ᵖ − tᵖ` and `(2t + rN)ᵖ − tᵖ` (Wacker 2022, C.4 and C.5).
pub fn gaussian(stats: &PairStats, degree: u32, q: f64) -> Variances {
    product(stats, gaussian_excess(stats, q), degree)
}
