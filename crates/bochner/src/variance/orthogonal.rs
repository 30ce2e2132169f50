/// What orthogonality within blocks adds to the variance of Fourier features, of any form, that estimate the Gaussian
/// kernel value `k`: the covariance of two cosines ([`orthogonal_covariance`]) times the ordered pairs inside blocks of
/// `dim`, over the squared number of frequencies.
///
/// To be added to the variance of independent frequencies; it is negative for all but distant pairs. The offsets of the
/// offset form are independent and the two parts of complex features have the same covariance, so all forms share it.
pub fn fourier_orthogonal(dim: usize, k: f64, frequencies: usize) -> f64 {
    let (block, m) = (dim.max(1) as f64, frequencies.max(1) as f64);
    let rest = m % block;
    let pairs = (m - rest) * (block - 1.0) + rest * (rest - 1.0);
    orthogonal_covariance(dim, k) * pairs / (m * m)
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
