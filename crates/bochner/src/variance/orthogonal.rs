use super::{Form, PairStats, Softmax, fourier};
use crate::special::{Isotropic, Table};

/// What orthogonality within blocks adds to the variance of Fourier features, of any form, that estimate the Gaussian
/// kernel value `k`: the covariance of two cosines ([`orthogonal_covariance`]) times the ordered pairs inside blocks of
/// `dim`, over the squared number of frequencies.
///
/// To be added to the variance of independent frequencies; it is negative for all but distant pairs. The offsets of the
/// offset form are independent and the two parts of complex features have the same covariance, so all forms share it.
pub fn fourier_orthogonal(dim: usize, k: f64, frequencies: usize) -> f64 {
    orthogonal_covariance(dim, k) * paired(dim, frequencies)
}

/// The kernel that cosines of uniformly random directions, all of length `√dim`, have as their mean: `Λ_dim(√dim t)` at
/// distance `t`, which tends to `e^(-t²/2)`; to leading order it is `-t⁴ e^(-t²/2)/4dim` away.
///
/// The rows of a Hadamard chain have this length. Blocks of `dim` orthogonal ones with uniformly random directions have
/// covariances in closed form as well ([`orthogonal_covariance`](Self::orthogonal_covariance)), and chains of three follow
/// both to a percent of the error from dimension 8 on.
#[derive(Debug)]
pub struct EqualLengths {
    basis: Isotropic,
    values: Table,
    root: f64,
    far: f64,
}

impl EqualLengths {
    /// For directions in `dim ≥ 1` dimensions.
    pub fn new(dim: usize) -> Self {
        let root = (dim.max(1) as f64).sqrt();
        // Beyond, the mean counts as zero: it is below 0.1 in two dimensions, 1e-6 in eight, 1e-19 in 64.
        let far = if dim < 64 { 64.0 } else { 12.0 };
        // Sixteen Chebyshev terms have a cosine of frequency 1 over a length of 3.
        let piece = 3.0 / root;
        let count = (far / piece) as usize + 1;
        EqualLengths { basis: Isotropic::new(dim, root * far), values: Table::new(0.0, piece, count), root, far }
    }

    /// The mean at distance `t`.
    pub fn value(&self, t: f64) -> f64 {
        if t < self.far { self.values.value(t, |t| self.basis.value(self.root * t)) } else { 0.0 }
    }

    /// Covariance of two cosines of one orthogonal block at distance `t`: `w₁ ± w₂` are uniformly random too, `√2` times
    /// as long, so that `E cos(w₁ᵀτ) cos(w₂ᵀτ)` is the mean at `√2 t`.
    pub fn orthogonal_covariance(&self, t: f64) -> f64 {
        self.value(std::f64::consts::SQRT_2 * t) - self.value(t).powi(2)
    }

    /// Variance of features of `frequencies` directions in orthogonal blocks of `dim`, of any form, at distance `t`.
    pub fn variance(&self, form: Form, dim: usize, t: f64, frequencies: usize) -> f64 {
        let alone = fourier(form, self.value(t), self.value(2.0 * t)) / frequencies.max(1) as f64;
        (alone + self.orthogonal_covariance(t) * paired(dim, frequencies)).max(0.0)
    }
}

/// Distances between which [`MixedLengths`] has its values, and how many there are for a factor of e.
const NEAR: f64 = 1e-7;
const FAR: f64 = 1e5;
const PER_FACTOR: f64 = 32.0;

/// [`EqualLengths`] times the radii of Matérn frequencies: the mean of cosines of uniformly random directions of length
/// `√dim √(ν/γ)`, `γ` from the gamma distribution of shape `ν`. It tends to the Matérn kernel of smoothness `ν` as `dim` grows.
#[derive(Debug)]
pub struct MixedLengths {
    values: Vec<f64>,
}

impl MixedLengths {
    /// For directions in `dim ≥ 1` dimensions and smoothness `ν > 0`.
    pub fn new(dim: usize, nu: f64) -> Self {
        let equal = EqualLengths::new(dim);
        let radii = radii(nu);
        let count = ((FAR / NEAR).ln() * PER_FACTOR) as usize + 2;
        let value = |i: usize| {
            let t = NEAR * libm::exp(i as f64 / PER_FACTOR);
            radii.iter().map(|&(radius, weight)| weight * equal.value(radius * t)).sum()
        };
        MixedLengths { values: (0..count).map(value).collect() }
    }

    /// The mean at distance `t`, interpolated in `ln t`: to about 1e-4.
    pub fn value(&self, t: f64) -> f64 {
        if t <= NEAR {
            return 1.0;
        }
        let at = (t / NEAR).ln() * PER_FACTOR;
        let (i, part) = (at as usize, at.fract());
        match (self.values.get(i), self.values.get(i.saturating_add(1))) {
            (Some(low), Some(high)) => low + part * (high - low),
            _ => 0.0,
        }
    }

    /// Variance of features of `frequencies` directions at distance `t`, as if they were independent: orthogonality matters
    /// less where lengths differ, and takes some of the variance of close pairs away.
    pub fn variance(&self, form: Form, t: f64, frequencies: usize) -> f64 {
        fourier(form, self.value(t), self.value(2.0 * t)) / frequencies.max(1) as f64
    }
}

/// Radii `√(ν/γ)` and weights that add up to 1: the trapezoidal rule in `u = ln γ`, whose density `∝ exp(νu - eᵘ)` and all
/// derivatives of it vanish at both ends.
fn radii(nu: f64) -> Vec<(f64, f64)> {
    // The density is about 1/√ν wide around ln ν, and falls like exp(νu) where ν is small.
    let (middle, step) = (nu.ln(), 0.25 / nu.sqrt().max(1.0));
    let log_density = |u: f64| nu * (u - middle) - (u.exp() - nu);
    let side = |sign: f64| {
        let at = move |i: usize| middle + sign * step * i as f64;
        (1..).map(at).map(|u| (u, log_density(u))).take_while(|(_, log)| *log > -25.0)
    };
    // Radii beyond e²¹ are too long for any distance there is a value for: what is left of them, for small ν very many, is a
    // geometric series.
    let most = (42.0 / step) as usize;
    let nodes = [(middle, 0.0)].into_iter().chain(side(1.0)).chain(side(-1.0).take(most));
    let mut nodes: Vec<(f64, f64)> = nodes.map(|(u, log)| ((0.5 * (middle - u)).exp(), log.exp())).collect();
    let next = (nu * (1.0 - step * (most + 1) as f64)).exp();
    nodes.push((f64::INFINITY, next / -(-nu * step).exp_m1()));
    let total: f64 = nodes.iter().map(|(_, weight)| weight).sum();
    nodes.iter().map(|(radius, weight)| (*radius, weight / total)).collect()
}

/// Ordered pairs of different directions inside blocks of `dim`, over all ordered pairs.
pub(crate) fn paired(dim: usize, directions: usize) -> f64 {
    let (block, m) = (dim.max(1) as f64, directions.max(1) as f64);
    let rest = m % block;
    ((m - rest) * (block - 1.0) + rest * (rest - 1.0)) / (m * m)
}

/// What orthogonality within blocks adds to the variance of features of `exp(⟨x, y⟩)`: never positive for positive and
/// hyperbolic features, negative for all but distant pairs for trigonometric ones.
///
/// With `s = x + y` and `z = |s|²/2`, two rows of a block have `E exp((ω₁ + ω₂)ᵀs) = ₁F₁(dim; dim/2; z)`: the expectation
/// behind [`orthogonal_covariance`] at an imaginary distance. Kummer's transformation turns the covariance into
/// `-e^(2z) Σₙ (1 - cₙ) Poisson(n; z)` with `cₙ = ∏_{j<n} (dim/2 - j)/(dim/2 + j)`, a sum of positive terms; the norms'
/// factor makes `e^(2z)` an `e^(2⟨x, y⟩)`. Sines and cosines have that of Fourier features at `x - y`, times
/// `e^(|x|² + |y|²)`.
pub fn softmax_orthogonal(form: Softmax, dim: usize, stats: &PairStats, directions: usize) -> f64 {
    let norms = stats.x_norm_sq + stats.y_norm_sq;
    let covariance = match form {
        Softmax::Positive | Softmax::Hyperbolic => {
            -libm::exp(2.0 * stats.dot) * lost(dim, (0.5 * norms + stats.dot).max(0.0))
        }
        Softmax::Trigonometric => {
            libm::exp(norms) * orthogonal_covariance(dim, libm::exp(-(0.5 * norms - stats.dot).max(0.0)))
        }
    };
    covariance * paired(dim, directions)
}

/// `Σₙ (1 - cₙ) Poisson(n; z)`.
fn lost(dim: usize, z: f64) -> f64 {
    // In one dimension blocks are single directions. Beyond 700 the sum is 1 for moderate dimensions, and the variance
    // of independent directions e⁷⁰⁰ times as large in all.
    if dim < 2 || z >= 700.0 {
        return if dim < 2 { 0.0 } else { 1.0 };
    }
    let half = dim as f64 / 2.0;
    let (mut poisson, mut c, mut sum, mut n) = (libm::exp(-z), 1.0, 0.0, 0.0);
    loop {
        sum += poisson * (1.0 - c);
        if n > z && poisson < 1e-19 {
            return sum;
        }
        c *= (half - n) / (half + n);
        n += 1.0;
        poisson *= z / n;
    }
}

/// Covariance of `cos ω₁ᵀτ` and `cos ω₂ᵀτ` for two rows of a Haar-orthogonal block in dimension `dim` whose lengths are
/// independent with the `χ` distribution of `dim` degrees of freedom; `k = exp(-|τ|²/2)` is the Gaussian kernel's value.
///
/// `cos a cos b` is the mean of `cos(a+b)` and `cos(a-b)`, which have the same expectation, and `ω₁ + ω₂` has uniform
/// direction and squared length `χ²` with `2 dim` degrees of freedom. Averaging `Λ(|ω||τ|) = ₀F₁(; dim/2; -|ω|²|τ|²/4)`
/// over it term by term, with `E(χ²₂ₙ)ʲ = 2ʲ (n)ⱼ`, gives with `z = |τ|²/2 = -ln k`
///
/// `c = ₁F₁(dim; dim/2; -z) - e⁻²ᶻ = e⁻ᶻ Σₙ ((-dim/2)ₙ/(dim/2)ₙ - (-1)ⁿ) zⁿ/n!`
///
/// by Kummer's transformation. The first two terms cancel exactly, so `c = -2z²/(dim + 2) + O(z³)`: full blocks take the
/// variance of close pairs down to `3/(dim + 2)` of that of independent frequencies.
pub fn orthogonal_covariance(dim: usize, k: f64) -> f64 {
    let z = -libm::log(k);
    // Terms are at most Poisson probabilities around n = z, and the coefficients there below 1e-7 for every dim ≥ 2.
    if dim < 2 || z.is_nan() || z >= 700.0 {
        return 0.0;
    }
    let half = dim as f64 / 2.0;
    let (mut poisson, mut ratio, mut sign, mut sum) = (k, 1.0, 1.0, 0.0);
    let mut n = 0.0;
    loop {
        sum += poisson * (ratio - sign);
        if n > z && poisson < 1e-19 {
            return sum;
        }
        ratio *= (n - half) / (n + half);
        sign = -sign;
        n += 1.0;
        poisson *= z / n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_covariance_of_orthogonal_frequencies_agrees_with_kummers_function() {
        // mpmath 1.3, 30 digits: hyp1f1(d, d/2, -z) - exp(-2z).
        let golden = [
            (2, 0.001, -4.993_337_914_500_79e-7),
            (2, 0.5, -0.064_614_111_315_125_6),
            (2, 2.0, -0.153_650_922_125_347),
            (2, 9.0, -0.000_987_293_662_673_181),
            (3, 0.001, -3.994_289_839_250_4e-7),
            (3, 2.0, -0.093_311_912_190_424_5),
            (3, 9.0, 0.001_723_139_091_364_63),
            (3, 60.0, 1.982_122_740_739_56e-6),
            (8, 0.001, -1.996_669_403_274_41e-7),
            (8, 0.5, -0.021_606_394_149_490_2),
            (17, 2.0, -0.009_850_436_944_513_91),
            (64, 0.5, -0.002_861_146_157_597_76),
            (64, 9.0, -1.543_519_118_746_03e-8),
            (784, 0.5, -0.000_234_541_239_690_684),
            (784, 2.0, -0.000_187_373_079_776_493),
            (784, 60.0, 0.0),
        ];
        for (dim, z, exact) in golden {
            let found = orthogonal_covariance(dim, libm::exp(-z));
            assert!((found - exact).abs() < 1e-15 + 2e-13 * f64::abs(exact), "{dim} {z}: {found} {exact}");
        }
        for k in [1.0, 0.0, 1e-310] {
            assert_eq!(orthogonal_covariance(5, k), 0.0);
        }
    }

    #[test]
    fn the_covariance_of_orthogonal_exponentials_agrees_with_kummers_function() {
        // mpmath 1.4, 30 digits: exp(2z) - hyp1f1(d, d/2, z) over exp(2z).
        let golden = [
            (2, 0.001, 4.996_667_916_333_403e-7),
            (2, 0.5, 0.090_204_010_431_049_86),
            (3, 2.0, 0.544_288_717_752_053_1),
            (8, 0.5, 0.042_141_871_101_142_53),
            (17, 9.0, 0.972_019_466_406_144_7),
            (64, 0.5, 0.007_334_328_047_733_191),
            (64, 60.0, 0.999_999_999_999_962_3),
            (784, 2.0, 0.010_025_607_126_862_52),
            (784, 300.0, 1.0),
        ];
        for (dim, z, exact) in golden {
            assert!((lost(dim, z) - exact).abs() < 1e-15 + 2e-13 * exact, "{dim} {z}: {} {exact}", lost(dim, z));
        }
        assert_eq!(lost(1, 3.0), 0.0);
    }

    #[test]
    fn radii_have_the_moments_of_their_distribution() {
        assert!(radii(1e-9).len() < 1000);
        for nu in [0.01, 0.5, 1.5, 2.5, 40.0, 1e4] {
            // E γ = ν, so that E 1/radius² = 1; E radius^-4 = (ν + 1)/ν.
            let moment = |power: i32| radii(nu).iter().map(|(r, w)| w * r.powi(-power)).sum::<f64>();
            for (found, exact) in [(moment(0), 1.0), (moment(2), 1.0), (moment(4), (nu + 1.0) / nu)] {
                assert!((found / exact - 1.0).abs() < 1e-9, "ν = {nu}: {found} {exact}");
            }
        }
    }

    #[test]
    fn mixed_lengths_tend_to_matern_kernels() {
        use crate::kernel::{Kernel, Matern};
        for nu in [0.5, 1.5, 3.2] {
            let kernel = Matern::new(nu, 1.0).unwrap();
            let exact = |t: f64| kernel.evaluate(&[t], &[0.0]);
            for t in [0.0, 1e-9, 0.01, 0.3, 1.0, 2.5, 6.0] {
                // To leading order the distance falls like one over the dimension.
                let away = |dim: usize| MixedLengths::new(dim, nu).value(t) - exact(t);
                let (few, many) = (away(64), away(256));
                assert!(
                    few.abs() < 0.01 && (many - 0.25 * few).abs() < 0.1 * few.abs() + 1e-4,
                    "{nu} {t}: {few} {many}"
                );
            }
        }
        let (narrow, equal) = (MixedLengths::new(16, 1e6), EqualLengths::new(16));
        assert!([0.1, 1.0, 2.0, 4.0].iter().all(|&t| (narrow.value(t) - equal.value(t)).abs() < 1e-4));
    }

    #[test]
    fn orthogonality_helps_close_pairs_most() {
        let (dim, z) = (64, 1e-4);
        let k = libm::exp(-z);
        // (1 - k²)²/2 for one frequency of the Gaussian kernel.
        let free = 0.5 * libm::expm1(-2.0 * z).powi(2) / dim as f64;
        let bound = free + fourier_orthogonal(dim, k, dim);
        assert!((bound / free * (dim as f64 + 2.0) / 3.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn only_pairs_inside_blocks_count() {
        let (k, c) = (0.5, orthogonal_covariance(5, 0.5));
        // Two blocks of five and one of two: 42 ordered pairs.
        assert!((fourier_orthogonal(5, k, 12) - c * 42.0 / 144.0).abs() < 1e-16);
        assert_eq!(fourier_orthogonal(5, k, 1), 0.0);
        assert_eq!(fourier_orthogonal(1, k, 7), 0.0);
    }
}
