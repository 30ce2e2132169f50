//! Tail bounds: how many features are certainly enough.
//!
//! [`Chebyshev`] holds for every unbiased map and uses the exact variance; the exponential bounds of the literature hold
//! for their maps only and are often much looser. Probabilities are capped at 1; counts are rounded up and returned as
//! `f64`, because uniform bounds easily ask for more than memory holds.
//!
//! ```
//! use bochner::variance::bounds::SparseFourier;
//! let bound = SparseFourier::new(100, 2, 10.0, 3.0)?;
//! let frequencies = bound.frequencies(0.1, 0.01)?;
//! assert!(bound.failure(frequencies, 0.1) <= 0.01);
//! # Ok::<(), bochner::Error>(())
//! ```

use super::{PairStats, gaussian, rademacher};
use crate::error::{Error, Result, check_count, check_positive};

fn check_probability(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        Err(Error::parameter(name, "a probability between 0 and 1", value))
    }
}

/// `P(|k̂ − k| ≥ ε) ≤ Var/ε²`, for any unbiased estimate.
#[derive(Debug, Clone, Copy)]
pub struct Chebyshev {
    variance: f64,
}

impl Chebyshev {
    /// The bound of an estimate whose single draw has this variance.
    ///
    /// # Errors
    /// A variance that is negative or not finite.
    pub fn new(variance: f64) -> Result<Self> {
        crate::error::check_non_negative("variance", variance)?;
        Ok(Chebyshev { variance })
    }

    /// Probability of an error of `error` or more, with `draws` independent draws.
    pub fn failure(&self, draws: f64, error: f64) -> f64 {
        (self.variance / draws / error / error).min(1.0)
    }

    /// Error that is not reached with probability `1 − failure`.
    pub fn error(&self, draws: f64, failure: f64) -> f64 {
        (self.variance / draws / failure).sqrt()
    }

    /// Independent draws that keep the error below `error` with probability `1 − failure`.
    ///
    /// # Errors
    /// An error that is not positive or a failure probability outside of (0, 1).
    pub fn draws(&self, error: f64, failure: f64) -> Result<f64> {
        check_positive("error", error)?;
        check_probability("failure", failure)?;
        Ok((self.variance / error / error / failure).ceil().max(1.0))
    }
}

/// Smallest number of draws, up to `most`, whose variance is at most `target`: for sketches whose variance is not
/// inversely proportional to their draws. `None` if even `most` draws do not reach it.
///
/// `variance` falls with the number of draws, up to partial blocks of structured sketches.
pub fn draws_for_variance(target: f64, most: usize, variance: impl Fn(usize) -> f64) -> Option<usize> {
    let reaches = |draws: usize| variance(draws) <= target;
    let mut high = 1;
    while !reaches(high) {
        if high >= most {
            return None;
        }
        high = (2 * high).min(most);
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if reaches(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Bernstein bound of product sketches with weights of modulus one, real or complex:
/// `D ≥ 2(2/3ε + s/ε²) ln(2/δ)` draws give `|k̂ − k| ≤ ε |x|₁ᵖ|y|₁ᵖ` with probability `1 − δ` (Wacker 2022, Thm 3.4.1; the
/// complex case by Bernstein's inequality for the Hermitian dilation).
#[derive(Debug, Clone, Copy)]
pub struct ProductSketch {
    /// `s`, a variance relative to the squared range.
    spread: f64,
    /// `|x|₁ᵖ|y|₁ᵖ`.
    range: f64,
}

impl ProductSketch {
    /// The bound for rows `x` and `y` in its printed form: `s = (μ₂ᵖ − tᵖ)/Nᵖ`.
    pub fn new(x: &[f64], y: &[f64], degree: u32, q: f64) -> Self {
        let stats = PairStats::new(x, y);
        // Of unit rows, so that high powers neither vanish nor overflow.
        let scaled = stats.scaled(1.0 / stats.x_norm_sq.sqrt(), 1.0 / stats.y_norm_sq.sqrt());
        let range = crate::kernel::powu(l1(x) * l1(y), degree);
        let spread = if range > 0.0 { rademacher(&scaled, degree, q).variance } else { 0.0 };
        ProductSketch { spread, range }
    }

    /// The sharper bound with `s` the variance relative to the squared range `|x|₁²ᵖ|y|₁²ᵖ`.
    pub fn sharp(x: &[f64], y: &[f64], degree: u32, q: f64) -> Self {
        let loose = ProductSketch::new(x, y, degree, q);
        if loose.range == 0.0 {
            return loose;
        }
        let stats = PairStats::new(x, y);
        let ratio = stats.n.sqrt() / (l1(x) * l1(y));
        ProductSketch { spread: loose.spread * crate::kernel::powu(ratio * ratio, degree), ..loose }
    }

    /// `|x|₁ᵖ|y|₁ᵖ`, the unit of errors.
    pub fn range(&self) -> f64 {
        self.range
    }

    /// Probability of an error above `epsilon` times [`range`](Self::range).
    pub fn failure(&self, draws: f64, epsilon: f64) -> f64 {
        if self.range == 0.0 {
            return 0.0;
        }
        (2.0 * libm::exp(-draws / (2.0 * (2.0 / (3.0 * epsilon) + self.spread / epsilon / epsilon)))).min(1.0)
    }

    /// Error in units of [`range`](Self::range) that is not exceeded with probability `1 − failure`.
    pub fn error(&self, draws: f64, failure: f64) -> f64 {
        if self.range == 0.0 {
            return 0.0;
        }
        // Dε² = 2L(2ε/3 + s) with L = ln(2/δ).
        let unit = 2.0 * libm::log(2.0 / failure) / draws;
        unit / 3.0 + (unit * unit / 9.0 + unit * self.spread).sqrt()
    }

    /// Draws that keep the error within `epsilon` times [`range`](Self::range) with probability `1 − failure`.
    ///
    /// # Errors
    /// An error that is not positive or a failure probability outside of (0, 1).
    pub fn draws(&self, epsilon: f64, failure: f64) -> Result<f64> {
        check_positive("epsilon", epsilon)?;
        check_probability("failure", failure)?;
        if self.range == 0.0 {
            return Ok(1.0);
        }
        let needed = 2.0 * (2.0 / (3.0 * epsilon) + self.spread / epsilon / epsilon) * libm::log(2.0 / failure);
        Ok(needed.ceil().max(1.0))
    }
}

fn l1(x: &[f64]) -> f64 {
    x.iter().map(|v| v.abs()).sum()
}

/// Chebyshev's bound for one draw of a product sketch of normal weights, which Bernstein's does not cover.
///
/// # Errors
/// Powers beyond the largest number.
pub fn gaussian_product(stats: &PairStats, degree: u32, q: f64) -> Result<Chebyshev> {
    Chebyshev::new(gaussian(stats, degree, q).variance)
}

/// Uniform bound of cosine–sine or complex Fourier features over sparse rows (Chang, Sankaranarayanan and Kumar 2016, Thm 1,
/// with the prefactor corrected to `4e`):
/// `P(sup|k̂ − k| > ε) ≤ 3 (4e d σ Δ/zε)^(2z/(z+2)) exp(−Mε²/4(z+2))`, `z = min(2·sparsity, d)`.
#[derive(Debug, Clone, Copy)]
pub struct SparseFourier {
    z: f64,
    /// `4e d σ Δ/z`, or with `12e`.
    prefactor: f64,
}

impl SparseFourier {
    /// The bound for rows of length `dim` with at most `sparsity` entries other than 0, from a set of diameter `diameter`;
    /// `spectral_radius` is `σ = (E|ω|²)^(1/2)`, `√d/ℓ` for the Gaussian kernel.
    ///
    /// # Errors
    /// Counts of 0, lengths that are not positive, or a spectrum without second moment.
    pub fn new(dim: usize, sparsity: usize, spectral_radius: f64, diameter: f64) -> Result<Self> {
        check_count("dim", dim)?;
        check_count("sparsity", sparsity)?;
        check_positive("spectral_radius", spectral_radius)?;
        check_positive("diameter", diameter)?;
        let z = sparsity.saturating_mul(2).min(dim) as f64;
        let prefactor = 4.0 * std::f64::consts::E * dim as f64 * spectral_radius * diameter / z;
        Ok(SparseFourier { z, prefactor })
    }

    /// The same bound with constants that hold without gaps in the proof: `12e` for `4e` (covering number `(3Δ/r)ᶻ`,
    /// gradient `2σ`).
    pub fn rigorous(self) -> Self {
        SparseFourier { prefactor: 3.0 * self.prefactor, ..self }
    }

    /// Probability that some pair is off by more than `epsilon`.
    pub fn failure(&self, frequencies: f64, epsilon: f64) -> f64 {
        let power = 2.0 * self.z / (self.z + 2.0) * libm::log(self.prefactor / epsilon);
        let exponent = libm::log(3.0) + power - frequencies * epsilon * epsilon / (4.0 * (self.z + 2.0));
        libm::exp(exponent).min(1.0)
    }

    /// Frequencies that keep every pair within `epsilon` with probability `1 − failure`.
    ///
    /// # Errors
    /// An error that is not positive or a failure probability outside of (0, 1).
    pub fn frequencies(&self, epsilon: f64, failure: f64) -> Result<f64> {
        check_positive("epsilon", epsilon)?;
        check_probability("failure", failure)?;
        let power = 2.0 * self.z / (self.z + 2.0) * libm::log(self.prefactor / epsilon);
        let needed = 4.0 * (self.z + 2.0) / (epsilon * epsilon) * (libm::log(3.0 / failure) + power);
        Ok(needed.ceil().max(1.0))
    }
}

/// Uniform bound of compressive Fourier features of the Gaussian kernel over sparse rows (Chang, Sankaranarayanan and Kumar
/// 2016, Thm 2, with differences of rows counted as `2k`-sparse and the spectrum taken in `m` dimensions).
#[derive(Debug, Clone, Copy)]
pub struct CompressiveFourier {
    dim: f64,
    /// `2k`.
    sparsity: f64,
    /// `D_X = 2 radius`.
    diameter: f64,
    length_scale: f64,
}

impl CompressiveFourier {
    /// The bound for rows of length `dim` with at most `sparsity` entries other than 0 in a ball of radius `radius`.
    ///
    /// # Errors
    /// Counts of 0 or lengths that are not positive.
    pub fn new(dim: usize, sparsity: usize, radius: f64, length_scale: f64) -> Result<Self> {
        check_count("dim", dim)?;
        check_count("sparsity", sparsity)?;
        check_positive("radius", radius)?;
        check_positive("length_scale", length_scale)?;
        let sparsity = sparsity.saturating_mul(2).min(dim) as f64;
        Ok(CompressiveFourier { dim: dim as f64, sparsity, diameter: 2.0 * radius, length_scale })
    }

    /// `δ = ε/(2 D_X L)` with the kernel's Lipschitz constant `L = e^(−1/2)/ℓ`.
    fn delta(&self, epsilon: f64) -> Result<f64> {
        check_positive("epsilon", epsilon)?;
        let delta = epsilon * self.length_scale * libm::exp(0.5) / (2.0 * self.diameter);
        if delta < 1.0 {
            return Ok(delta);
        }
        let reason = format!("epsilon/(2·diameter·Lipschitz constant) = {delta:.3} must be below 1");
        Err(Error::Unsupported { what: "compressive bound", reason })
    }

    fn log_spectrum(&self, measurements: f64, epsilon: f64) -> f64 {
        libm::log(measurements.sqrt() / self.length_scale * self.diameter / epsilon)
    }

    /// Probability that some pair is off by more than `epsilon`.
    ///
    /// # Errors
    /// An `epsilon` so large that the proof does not apply.
    pub fn failure(&self, measurements: f64, frequencies: f64, epsilon: f64) -> Result<f64> {
        let delta = self.delta(epsilon)?;
        let fourier = 10.0 * std::f64::consts::LN_2
            + libm::log(self.dim / measurements)
            + 2.0 * self.log_spectrum(measurements, epsilon)
            - frequencies * epsilon * epsilon / (16.0 * (measurements + 2.0));
        let isometry = std::f64::consts::LN_2 + self.net(delta) - rate(delta) * measurements;
        Ok((libm::exp(fourier) + libm::exp(isometry)).min(1.0))
    }

    /// `2k ln(12/δ) + 2k ln(ed/2k)`.
    fn net(&self, delta: f64) -> f64 {
        self.sparsity * (libm::log(12.0 / delta) + libm::log(std::f64::consts::E * self.dim / self.sparsity))
    }

    /// Dimensions to compress to, spending half of the failure probability.
    ///
    /// # Errors
    /// A failure probability outside of (0, 1), or an `epsilon` so large that the proof does not apply.
    pub fn measurements(&self, epsilon: f64, failure: f64) -> Result<f64> {
        check_probability("failure", failure)?;
        let delta = self.delta(epsilon)?;
        Ok(((libm::log(4.0 / failure) + self.net(delta)) / rate(delta)).ceil().max(1.0))
    }

    /// Frequencies after compression to `measurements` dimensions, spending the other half.
    ///
    /// # Errors
    /// As [`measurements`](Self::measurements).
    pub fn frequencies(&self, measurements: f64, epsilon: f64, failure: f64) -> Result<f64> {
        check_positive("measurements", measurements)?;
        check_probability("failure", failure)?;
        self.delta(epsilon)?;
        let log =
            libm::log(2048.0 * self.dim / (measurements * failure)) + 2.0 * self.log_spectrum(measurements, epsilon);
        Ok((16.0 * (measurements + 2.0) / (epsilon * epsilon) * log).ceil().max(1.0))
    }
}

/// `δ²/16 − δ³/48`.
fn rate(delta: f64) -> f64 {
    delta * delta / 16.0 - delta * delta * delta / 48.0
}

/// Uniform bound of operator-valued Fourier features (Brault, Heinonen and d'Alché-Buc 2016, Thm 10), with its logarithm
/// restored to a scale-invariant form and the larger of its two branches: a figure to report, not a rule to plan by.
#[derive(Debug, Clone, Copy)]
pub struct OperatorFourier {
    /// Dimension `d` of rows.
    pub dim: usize,
    /// Dimension `p` of outputs.
    pub outputs: usize,
    /// Diameter of the set of rows.
    pub diameter: f64,
    /// `b = sup D ‖V[K̃]‖`, the variance of one draw.
    pub variance: f64,
    /// `ψ₁`-norm of `‖A(ω)‖` plus `sup ‖K‖`.
    pub magnitude: f64,
    /// `E |ω|² ‖A(ω)‖²`.
    pub spectral_moment: f64,
}

impl OperatorFourier {
    /// Probability that the kernel is off by `epsilon` or more somewhere, with `draws` frequencies.
    pub fn failure(&self, draws: f64, epsilon: f64) -> f64 {
        let (d, m) = (self.dim as f64, 4.0 * self.magnitude);
        let u = 2.0 * m * libm::log(libm::pow(2.0, 1.5) * m * m / self.variance);
        let constant = libm::log(self.outputs as f64)
            + libm::log(libm::pow(0.5 * d, -d / (d + 2.0)) + libm::pow(0.5 * d, 2.0 / (d + 2.0)))
            + (6.0 * d + 2.0) / (d + 2.0) * std::f64::consts::LN_2;
        let cover = 2.0 * d / (d + 2.0) * libm::log(self.spectral_moment.sqrt() * self.diameter / epsilon);
        let gaussian = -epsilon * epsilon * draws / (8.0 * (d + 2.0) * (self.variance + epsilon * u / 6.0));
        let exponential = -epsilon * draws / ((d + 2.0) * (std::f64::consts::E - 1.0) * u);
        libm::exp(constant + cover + gaussian.max(exponential)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: [f64; 4] = [1.0, -0.5, 2.0, 0.7];
    const Y: [f64; 4] = [0.5, 1.0, 1.5, -0.3];

    #[test]
    fn directions_of_a_bound_are_inverse_to_each_other() {
        for bound in [ProductSketch::new(&X, &Y, 3, 1.0), ProductSketch::sharp(&X, &Y, 3, 0.5)] {
            let draws = bound.draws(0.1, 0.01).unwrap();
            assert!(bound.failure(draws, 0.1) <= 0.01 && bound.failure(draws - 1.0, 0.1) > 0.01);
            assert!(bound.error(draws, 0.01) <= 0.1 && bound.error(draws - 1.0, 0.01) > 0.1);
        }
        let bound = Chebyshev::new(3.0).unwrap();
        assert_eq!(bound.draws(0.5, 0.1).unwrap(), 120.0);
        assert_eq!(bound.failure(120.0, 0.5), 0.1);
        assert_eq!(bound.error(120.0, 0.1), 0.5);
        assert_eq!(bound.failure(1.0, 0.5), 1.0);
        let bound = SparseFourier::new(100, 2, 10.0, 3.0).unwrap();
        let count = bound.frequencies(0.1, 0.01).unwrap();
        assert!(bound.failure(count, 0.1) <= 0.01 && bound.failure(count - 1.0, 0.1) > 0.01);
        let bound = CompressiveFourier::new(1000, 5, 1.0, 1.0).unwrap();
        let m = bound.measurements(0.5, 0.1).unwrap();
        let frequencies = bound.frequencies(m, 0.5, 0.1).unwrap();
        assert!(bound.failure(m, frequencies, 0.5).unwrap() <= 0.1);
        assert!(bound.failure(0.9 * m, 0.9 * frequencies, 0.5).unwrap() > 0.1);
    }

    #[test]
    fn the_sharper_product_bound_asks_for_fewer_draws_and_zero_rows_for_one() {
        let draws = |bound: ProductSketch| bound.draws(0.05, 0.05).unwrap();
        assert!(draws(ProductSketch::sharp(&X, &Y, 3, 1.0)) < draws(ProductSketch::new(&X, &Y, 3, 1.0)));
        assert_eq!(draws(ProductSketch::new(&[0.0; 4], &Y, 3, 1.0)), 1.0);
        assert_eq!(draws(ProductSketch::sharp(&[0.0; 4], &Y, 3, 1.0)), 1.0);
        // Rows of modulus one: |x|₁ = 2|x|₂ in four dimensions, so s shrinks by 2^(−4p).
        let ones = [1.0; 4];
        let (loose, sharp) = (ProductSketch::new(&ones, &ones, 1, 1.0), ProductSketch::sharp(&ones, &ones, 1, 1.0));
        assert!((sharp.spread * 16.0 - loose.spread).abs() < 1e-15);
        assert_eq!(loose.range, 16.0);
        // N = 16, t = 16, S = 4: (N + 2a − t)/N = (16 + 24 − 16)/16.
        assert!((loose.spread - 1.5).abs() < 1e-15);
    }

    #[test]
    fn the_product_bound_holds_for_the_enumerated_distribution() {
        // d = 2, p = 1, two draws of signs: all sixteen outcomes.
        let (x, y) = ([1.0, -0.5], [0.8, 1.1]);
        let exact: f64 = x[0] * y[0] + x[1] * y[1];
        let bound = ProductSketch::sharp(&x, &y, 1, 1.0);
        for epsilon in [0.1, 0.3, 0.6, 0.9] {
            let sign = |word: u32, bit: u32| if word >> bit & 1 == 0 { 1.0 } else { -1.0 };
            let failures = (0..16u32)
                .filter(|word| {
                    let draw = |l: u32| {
                        let of = |v: &[f64; 2]| sign(*word, 2 * l) * v[0] + sign(*word, 2 * l + 1) * v[1];
                        of(&x) * of(&y)
                    };
                    ((draw(0) + draw(1)) / 2.0 - exact).abs() > epsilon * bound.range()
                })
                .count();
            assert!(failures as f64 / 16.0 <= bound.failure(2.0, epsilon));
        }
    }

    #[test]
    fn the_prefactor_of_the_sparse_bound_is_the_corrected_one() {
        // Errata C3: the minimum over the radius r of a·r^(−z) + b·r², evaluated directly, equals the form with 4e.
        let (d, z, sigma, diameter, epsilon) = (100.0f64, 4.0f64, 10.0f64, 3.0f64, 0.1f64);
        let bound = SparseFourier::new(100, 2, sigma, diameter).unwrap();
        let a = 2.0 * (std::f64::consts::E * d / z).powf(z) * (2.0 * diameter).powf(z);
        let b = (2.0 * sigma / epsilon).powi(2);
        let r = (z * a / (2.0 * b)).powf(1.0 / (z + 2.0));
        let direct = a * r.powf(-z) + b * r * r;
        let form = (bound.prefactor / epsilon).powf(2.0 * z / (z + 2.0));
        let outer = |z: f64| {
            let power = |base: f64, over: f64| base.powf(over / (z + 2.0));
            power(2.0, 2.0) * (power(z / 2.0, -z) + power(z / 2.0, 2.0))
        };
        assert!((direct / (outer(z) * form) - 1.0).abs() < 1e-12, "{direct} {form}");
        assert!((1..200).all(|half| outer(f64::from(2 * half)) <= 3.0));
        assert!(bound.rigorous().frequencies(0.1, 0.01).unwrap() > bound.frequencies(0.1, 0.01).unwrap());
    }

    #[test]
    fn operator_bounds_do_not_depend_on_the_scale_of_the_kernel() {
        let bound =
            OperatorFourier { dim: 2, outputs: 2, diameter: 1.0, variance: 3.0, magnitude: 5.0, spectral_moment: 48.0 };
        let scaled = OperatorFourier { variance: 300.0, magnitude: 50.0, spectral_moment: 4800.0, ..bound };
        for draws in [1e3, 1e5, 1e6] {
            let (a, b) = (bound.failure(draws, 0.5), scaled.failure(draws, 5.0));
            assert!((a - b).abs() <= 1e-9 * a, "{a} {b}");
        }
        assert_eq!(bound.failure(1.0, 0.5), 1.0);
        assert!(bound.failure(1e7, 0.5) < 1e-6);
    }

    #[test]
    fn draws_are_found_for_variances_of_any_shape() {
        assert_eq!(draws_for_variance(0.1, 1000, |d| 5.0 / d as f64), Some(50));
        assert_eq!(draws_for_variance(0.1, 49, |d| 5.0 / d as f64), None);
        assert_eq!(draws_for_variance(10.0, 49, |d| 5.0 / d as f64), Some(1));
        assert_eq!(draws_for_variance(0.0, 1000, |d| if d >= 64 { 0.0 } else { 1.0 }), Some(64));
    }

    #[test]
    fn arguments_out_of_range_are_refused() {
        assert!(Chebyshev::new(f64::NAN).is_err());
        assert!(Chebyshev::new(1.0).unwrap().draws(0.1, 1.5).is_err());
        assert!(ProductSketch::new(&X, &Y, 2, 1.0).draws(0.0, 0.5).is_err());
        assert!(SparseFourier::new(10, 2, f64::INFINITY, 1.0).is_err());
        assert!(CompressiveFourier::new(10, 2, 0.01, 1.0).unwrap().measurements(0.5, 0.1).is_err());
    }
}
