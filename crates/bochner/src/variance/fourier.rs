use super::moments::non_negative;
use super::{PairStats, Variances};
use crate::error::{Error, Result, check_count};
use crate::kernel::{Compressive, Kernel, Optical, kernel_matrix};
use crate::parameter::words;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, Zip};

words! {
    /// What becomes of the phases `ω·x` of Fourier features.
    pub enum Form {
        /// `M^(−1/2)(cos ω·x, sin ω·x)`: two features per frequency.
        CosSin = "cos_sin",
        /// `√(2/D) cos(ω·x + b)` with an independent offset per feature.
        Offset = "offset",
        /// `D^(−1/2) exp(iω·x)`.
        Complex = "complex",
    }
}

/// Variance of one frequency's estimate of `k(τ)` from `k(τ)` and `k(2τ)`: `½ + ½k(2τ) − k(τ)²` for cosine–sine pairs
/// (also the real part of complex features), `1 + ½k(2τ) − k(τ)²` with offsets, `1 − k(τ)²` for complex features.
///
/// Source: Sutherland and Schneider 2015, §2. Independent frequencies divide it by their number; frequencies in
/// orthogonal blocks have another, usually smaller variance.
#[inline(always)]
pub fn fourier(form: Form, k: f64, k_double: f64) -> f64 {
    non_negative(match form {
        Form::CosSin => (0.5 + 0.5 * k_double) - k * k,
        Form::Offset => (1.0 - k * k) + 0.5 * k_double,
        Form::Complex => 1.0 - k * k,
    })
}

/// Variance and pseudo-variance `k(2τ) − k(τ)²` of one complex feature.
pub fn fourier_complex(k: f64, k_double: f64) -> Variances {
    Variances { variance: fourier(Form::Complex, k, k_double), pseudo_variance: k_double - k * k }
}

/// Variances of the Fourier estimates of all `k(xᵢ − yⱼ)` from `frequencies` independent frequencies.
///
/// The kernel must be a function of `x − y`: its value at `2τ` is taken at the doubled rows.
///
/// # Errors
/// No frequencies; rows of different lengths, NaN or infinities.
pub fn fourier_matrix<R: Real>(
    form: Form,
    kernel: &dyn Kernel,
    frequencies: usize,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
) -> Result<Array2<f64>> {
    check_count("frequencies", frequencies)?;
    let [mut k, double] = at_multiples(kernel, [1.0, 2.0], x, y)?;
    Zip::from(&mut k).and(&double).for_each(|k, &k_double| *k = fourier(form, *k, k_double) / frequencies as f64);
    Ok(k)
}

/// A kernel of differences between rows at multiples of them.
pub(crate) fn at_multiples<R: Real, const N: usize>(
    kernel: &dyn Kernel,
    multiples: [f64; N],
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
) -> Result<[Array2<f64>; N]> {
    let (x, y) = (x.mapv(Real::to_f64), y.mapv(Real::to_f64));
    let mut found = multiples.map(|_| Array2::zeros((0, 0)));
    for (k, multiple) in found.iter_mut().zip(multiples) {
        *k = kernel_matrix(kernel, (multiple * &x).view(), (multiple * &y).view())?;
    }
    Ok(found)
}

/// Relative variance `2(d−m)/(m(d+2))` of the squared length `|Px|²` under an orthoprojector from `d` to `m` dimensions,
/// scaled so that its mean is `|x|²`.
pub fn orthoprojected_norm(input_dim: usize, output_dim: usize) -> f64 {
    let (d, m) = (input_dim as f64, output_dim as f64);
    non_negative(2.0 * (d - m) / (m * (d + 2.0)))
}

/// Variance of `⟨Px, Py⟩` under an orthoprojector with a uniformly random row space, `E⟨Px, Py⟩ = ⟨x, y⟩`:
/// `(d−m)/(m(d−1)(d+2)) · (d|x|²|y|² + (d−2)⟨x, y⟩²)`; [`orthoprojected_norm`] is the case `x = y`.
///
/// From the fourth moments of a random projector `Π`, `E ΠᵢⱼΠₖₗ = a δᵢⱼδₖₗ + b(δᵢₖδⱼₗ + δᵢₗδⱼₖ)`, whose two constants follow
/// from `tr Π = tr Π² = m`.
pub fn orthoprojected_dot(stats: &PairStats, input_dim: usize, output_dim: usize) -> f64 {
    let (d, m) = (input_dim as f64, output_dim as f64);
    if output_dim >= input_dim {
        return 0.0;
    }
    (d - m) / (m * (d - 1.0) * (d + 2.0)) * (d * stats.n + (d - 2.0) * stats.t)
}

/// Variance of compressive cosine–sine features: `(½ + ½K(2) − K(√2))/M + K(√2) − K(1)²`, `K(c)` the limit kernel at
/// `c` times the distance. The second part comes from the one projection all rows share and does not fall with `M`.
pub fn compressive(kernel: &Compressive, distance_sq: f64, frequencies: usize) -> f64 {
    let at = |square: f64| kernel.of_distance_sq(square * distance_sq).unwrap_or(f64::NAN);
    let (k, k_root, k_double) = (at(1.0), at(2.0), at(4.0));
    non_negative((0.5 + 0.5 * k_double - k_root) / frequencies as f64 + (k_root - k * k))
}

/// [`compressive`] for all pairs of rows, of features of any form.
///
/// # Errors
/// No frequencies; rows of another length than the kernel's, NaN or infinities.
pub fn compressive_matrix<R: Real>(
    form: Form,
    kernel: &Compressive,
    frequencies: usize,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
) -> Result<Array2<f64>> {
    check_count("frequencies", frequencies)?;
    crate::error::check_dim("number of columns of x", kernel.input_dim(), x.ncols())?;
    let [mut k, root, double] = at_multiples(kernel, [1.0, std::f64::consts::SQRT_2, 2.0], x, y)?;
    Zip::from(&mut k).and(&root).and(&double).for_each(|k, &k_root, &k_double| {
        // Given P the squared kernel is the kernel at √2 times the distance: its mean is K(√2).
        let sampling = fourier(form, k_root.sqrt(), k_double) / frequencies as f64;
        *k = non_negative(sampling + (k_root - *k * *k));
    });
    Ok(k)
}

/// Variance `k_{2m} − k_m²` of one optical feature `|u·x|^m |u·y|^m`; `D` features divide it by `D`.
pub fn optical(kernel: &Optical, stats: &PairStats) -> f64 {
    let of = |kernel: &Optical| {
        kernel.of_products(stats.dot, stats.x_norm_sq, stats.y_norm_sq).expect("optical kernels are of products")
    };
    let k = of(kernel);
    non_negative(of(&kernel.doubled()) - k * k)
}

/// [`optical`] for all pairs of rows and `draws` features.
///
/// # Errors
/// No draws; rows of different lengths, NaN or infinities.
pub fn optical_matrix<R: Real>(
    kernel: &Optical,
    draws: usize,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
) -> Result<Array2<f64>> {
    independent_matrix(kernel, &kernel.doubled(), draws, x, y)
}

/// Variances `(E f² − k²)/D` of a mean of `draws` independent products of features `f`: `squares` is the kernel of their squares.
///
/// # Errors
/// No draws; rows of different lengths, NaN or infinities.
pub fn independent_matrix<R: Real>(
    kernel: &dyn Kernel,
    squares: &dyn Kernel,
    draws: usize,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
) -> Result<Array2<f64>> {
    check_count("draws", draws)?;
    let [k] = at_multiples(kernel, [1.0], x, y)?;
    let [mut variance] = at_multiples(squares, [1.0], x, y)?;
    Zip::from(&mut variance).and(&k).for_each(|v, &k| *v = non_negative(*v - k * k) / draws as f64);
    Ok(variance)
}

words! {
    /// Features of the exponential kernel `exp(⟨x, y⟩)`, from normal directions.
    pub enum Softmax {
        /// `M^(−1/2) exp(w·x − |x|²/2)`.
        Positive = "positive",
        /// `(2M)^(−1/2) exp(±w·x − |x|²/2)`: two features per direction.
        Hyperbolic = "hyperbolic",
        /// `M^(−1/2) exp(|x|²/2)(cos w·x, sin w·x)`: two features per direction.
        Trigonometric = "trigonometric",
    }
}

/// Variance of one direction's estimate of `exp(⟨x, y⟩)`; `M` independent directions divide it by `M`.
///
/// Positive `k²(e^{|x+y|²} − 1)`, hyperbolic `(1 − e^{−|x+y|²})/2` times that, trigonometric
/// `e^{|x|²+|y|²}(1 − e^{−|x−y|²})²/2` (Choromanski et al. 2021, Lemma 2 and Thm 2). With a length scale `ℓ` take the
/// statistics of `x/ℓ` and `y/ℓ` ([`PairStats::scaled`]).
#[inline(always)]
pub fn softmax(form: Softmax, stats: &PairStats) -> f64 {
    let norms = stats.x_norm_sq + stats.y_norm_sq;
    let (plus, minus) = ((norms + 2.0 * stats.dot).max(0.0), (norms - 2.0 * stats.dot).max(0.0));
    // One exponential for the size, so that e^{2⟨x,y⟩} cannot vanish before e^{|x+y|²} explodes.
    let positive = || libm::exp(2.0 * stats.dot + plus) * -libm::expm1(-plus);
    match form {
        Softmax::Positive => positive(),
        Softmax::Hyperbolic => positive() * -0.5 * libm::expm1(-plus),
        // Equal rows have none, however large the factor in front.
        Softmax::Trigonometric if minus == 0.0 => 0.0,
        Softmax::Trigonometric => 0.5 * libm::exp(norms) * libm::expm1(-minus) * libm::expm1(-minus),
    }
}

/// [`softmax`] for all pairs of rows divided by `length_scale`, and `directions` independent directions.
///
/// # Errors
/// No directions, a length scale that is not positive; rows of different lengths, NaN or infinities.
pub fn softmax_matrix<R: Real>(
    form: Softmax,
    length_scale: f64,
    directions: usize,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
) -> Result<Array2<f64>> {
    softmax_pairs(length_scale, directions, x, y, |stats| softmax(form, stats) / directions as f64)
}

/// [`softmax_matrix`] for directions in orthogonal blocks of the rows' dimension ([`softmax_orthogonal`](super::softmax_orthogonal)).
///
/// # Errors
/// As [`softmax_matrix`].
pub fn softmax_orthogonal_matrix<R: Real>(
    form: Softmax,
    length_scale: f64,
    directions: usize,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
) -> Result<Array2<f64>> {
    let dim = x.ncols();
    softmax_pairs(length_scale, directions, x, y, |stats| {
        let free = softmax(form, stats) / directions as f64;
        // Where the variance overflows there is nothing to take away from.
        if free.is_finite() {
            non_negative(free + super::softmax_orthogonal(form, dim, stats, directions))
        } else {
            free
        }
    })
}

fn softmax_pairs<R: Real>(
    length_scale: f64,
    directions: usize,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    f: impl Fn(&PairStats) -> f64 + Sync,
) -> Result<Array2<f64>> {
    check_count("directions", directions)?;
    crate::error::check_positive("length_scale", length_scale)?;
    let inverse = 1.0 / length_scale;
    if !inverse.is_finite() {
        return Err(Error::parameter("length_scale", "a number whose inverse is finite", length_scale));
    }
    super::pair::map_pairs_with(x, y, false, |stats| f(&stats.scaled(inverse, inverse)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Compression, Gaussian, Laplacian};
    use ndarray::array;
    use std::f64::consts::{PI, TAU};

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1e-3), "{found} instead of {expected}");
    }

    #[test]
    fn fourier_variances_match_a_spectrum_of_four_frequencies() {
        let (spectrum, offsets) = ([0.3, -0.3, 1.7, -1.7], 7);
        for (x, y) in [(0.4, 0.4), (0.4, -0.9), (2.0, 0.1)] {
            let k = |tau: f64| spectrum.iter().map(|w| (w * tau).cos()).sum::<f64>() / 4.0;
            let (k1, k2) = (k(x - y), k(2.0 * (x - y)));
            let mut sums = [0.0; 4];
            for w in spectrum {
                let phase: f64 = w * (x - y);
                sums[0] += (phase.cos() - k1).powi(2) / 4.0;
                sums[1] += ((phase.cos() - k1).powi(2) + phase.sin().powi(2)) / 4.0;
                sums[2] += ((phase.cos() - k1).powi(2) - phase.sin().powi(2)) / 4.0;
                for j in 0..offsets {
                    // Equally spaced offsets integrate these trigonometric polynomials exactly.
                    let b = TAU * f64::from(j) / f64::from(offsets);
                    let estimate = 2.0 * (w * x + b).cos() * (w * y + b).cos();
                    sums[3] += (estimate - k1).powi(2) / 4.0 / f64::from(offsets);
                }
            }
            close(fourier(Form::CosSin, k1, k2), sums[0], 1e-13);
            close(fourier(Form::Complex, k1, k2), sums[1], 1e-13);
            let moments = fourier_complex(k1, k2);
            close(moments.pseudo_variance, sums[2], 1e-13);
            close(moments.real_part(), sums[0], 1e-13);
            close(fourier(Form::Offset, k1, k2), sums[3], 1e-13);
        }
    }

    #[test]
    fn fourier_matrices_double_the_distance_of_every_shift_invariant_kernel() {
        let x = array![[0.1, 0.4], [1.0, -0.3], [0.1, 0.4]];
        let gaussian = fourier_matrix(Form::CosSin, &Gaussian::new(0.7).unwrap(), 5, x.view(), x.view()).unwrap();
        let u: f64 = (0.9 * 0.9 + 0.7 * 0.7) / (0.7 * 0.7);
        close(gaussian[[0, 1]], (1.0 - (-u).exp()).powi(2) / 10.0, 1e-13);
        assert_eq!((gaussian[[0, 0]], gaussian[[0, 2]]), (0.0, 0.0));
        let taxi = fourier_matrix(Form::Offset, &Laplacian::new(2.0, 1).unwrap(), 1, x.view(), x.view()).unwrap();
        let k = (-1.6f64 / 2.0).exp();
        close(taxi[[0, 1]], 1.0 + k * k / 2.0 - k * k, 1e-13);
        assert!(fourier_matrix(Form::CosSin, &Gaussian::new(0.7).unwrap(), 0, x.view(), x.view()).is_err());
    }

    /// `E f(s)` for a normal variable of variance `variance`, by the trapezoidal rule.
    fn normal_mean(variance: f64, f: impl Fn(f64) -> f64) -> f64 {
        let step = 1.0 / 64.0;
        (-1600..=1600)
            .map(|i| f64::from(i) * step)
            .map(|g| f(g * variance.sqrt()) * (-0.5 * g * g).exp() * step / TAU.sqrt())
            .sum()
    }

    #[test]
    fn softmax_variances_match_quadrature() {
        for (x, y) in [([0.3, -0.2], [0.5, 0.4]), ([0.9, 0.1], [-0.9, -0.1]), ([0.6, 0.2], [0.6, 0.2])] {
            let stats = PairStats::new(&x, &y);
            let norms = stats.x_norm_sq + stats.y_norm_sq;
            let (plus, minus) = (norms + 2.0 * stats.dot, norms - 2.0 * stats.dot);
            let check = |form, spread: f64, estimate: &dyn Fn(f64) -> f64| {
                close(normal_mean(spread.max(0.0), estimate), stats.dot.exp(), 1e-12);
                let variance = normal_mean(spread.max(0.0), |s| (estimate(s) - stats.dot.exp()).powi(2));
                assert!((softmax(form, &stats) - variance).abs() < 1e-12, "{form:?} {variance}");
            };
            check(Softmax::Positive, plus, &|s| (s - norms / 2.0).exp());
            check(Softmax::Hyperbolic, plus, &|s| s.cosh() * (-norms / 2.0).exp());
            check(Softmax::Trigonometric, minus, &|s| s.cos() * (norms / 2.0).exp());
        }
        // x = −y, far out: the variance is 0 and not 0 · ∞.
        let far = PairStats::new(&[30.0, 5.0], &[-30.0, -5.0]);
        assert_eq!(softmax(Softmax::Positive, &far), 0.0);
        let x = array![[0.3f32, -0.2], [0.5, 0.4]];
        let all = softmax_matrix(Softmax::Hyperbolic, 2.0, 3, x.view(), x.view()).unwrap();
        let row = |i: usize| x.row(i).mapv(f64::from).to_vec();
        let pair = PairStats::new(&row(0), &row(1)).scaled(0.5, 0.5);
        close(all[[0, 1]], softmax(Softmax::Hyperbolic, &pair) / 3.0, 1e-13);
        assert!(softmax_matrix(Softmax::Positive, 1e-320, 3, x.view(), x.view()).is_err());
    }

    #[test]
    fn optical_variances_of_exponent_two_are_a_polynomial() {
        let (x, y) = ([1.0, -0.5, 2.0], [0.5, 1.0, 1.5]);
        let stats = PairStats::new(&x, &y);
        let kernel = Optical::new(2.0, 0.0).unwrap();
        let (n, t) = (stats.n, stats.t);
        close(optical(&kernel, &stats), 3.0 * n * n + 14.0 * n * t + 3.0 * t * t, 1e-14);
        let biased = Optical::new(1.5, 0.3).unwrap();
        let rows = array![[1.0, -0.5, 2.0], [0.5, 1.0, 1.5]];
        let all = optical_matrix(&biased, 4, rows.view(), rows.view()).unwrap();
        close(all[[0, 1]], optical(&biased, &stats) / 4.0, 1e-11);
    }

    #[test]
    fn compressed_features_vary_with_the_projection_and_with_the_frequencies() {
        // m = 1, d = 2: the orthoprojector maps τ to √2|τ| cos θ.
        let kernel = Compressive::new(Compression::Orthoprojector, 2, 1, 1.0).unwrap();
        let distance_sq = 1.7f64;
        let angles = 64;
        let mean = |f: &dyn Fn(f64) -> f64| {
            (0..angles).map(|i| f(2.0 * distance_sq * (PI * f64::from(i) / 64.0).cos().powi(2))).sum::<f64>() / 64.0
        };
        let k = mean(&|r| (-r / 2.0).exp());
        let between = mean(&|r| ((-r / 2.0).exp() - k).powi(2));
        let within = mean(&|r| 0.5 * (1.0 - (-r).exp()).powi(2));
        for frequencies in [1, 5, 1000] {
            close(compressive(&kernel, distance_sq, frequencies), within / frequencies as f64 + between, 1e-12);
        }
        let rows = array![[0.0, 0.0], [distance_sq.sqrt(), 0.0]];
        let all = compressive_matrix(Form::CosSin, &kernel, 5, rows.view(), rows.view()).unwrap();
        close(all[[0, 1]], within / 5.0 + between, 1e-11);
        assert_eq!(all[[0, 0]], 0.0);
        // |Pτ|² = 2|τ|² cos²θ: relative variance 4 E cos⁴θ − 1 = ½.
        let length = mean(&|r| (r / distance_sq - 1.0).powi(2));
        close(orthoprojected_norm(2, 1), length, 1e-12);
        assert_eq!(orthoprojected_norm(7, 7), 0.0);
        // No compression, no variance between projections.
        let whole = Compressive::new(Compression::Orthoprojector, 2, 2, 1.0).unwrap();
        close(compressive(&whole, distance_sq, 3), (1.0 - (-distance_sq).exp()).powi(2) / 6.0, 1e-12);
        assert!(compressive_matrix(Form::CosSin, &kernel, 5, array![[1.0]].view(), array![[1.0]].view()).is_err());
    }
}
