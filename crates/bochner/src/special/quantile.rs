use super::gamma::{density_times_x, gamma_p, gamma_q};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::ops::RangeInclusive;

/// Distribution function of the standard normal law.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The `x` with [`normal_cdf`]`(x) = p`; infinite at 0 and 1, NaN outside of `[0, 1]`.
///
/// ```
/// assert!((bochner::special::normal_quantile(0.975) - 1.959963984540054).abs() < 1e-15);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p > 0.25 {
        // Near the median Newton on the distribution itself: its logarithm would cancel in the difference p − ½.
        let mut x = 0.0;
        for _ in 0..8 {
            let error = (0.5 - p) - 0.5 * libm::erf(-x * FRAC_1_SQRT_2);
            x -= error * std::f64::consts::TAU.sqrt() * libm::exp(0.5 * x * x);
        }
        return x;
    }
    // Upper tail at z > 0: Newton on ln Q(z) = ln p, which is concave and nearly a parabola.
    let target = libm::log(p);
    let mut z = (-2.0 * target).sqrt();
    for _ in 0..40 {
        let tail = 0.5 * libm::erfc(z / SQRT_2);
        let hazard = libm::exp(-0.5 * z * z) / (std::f64::consts::TAU.sqrt() * tail);
        let step = (libm::log(tail) - target) / hazard;
        z += step;
        if step.abs() <= 1e-15 * z {
            break;
        }
    }
    -z
}

/// The gamma variable of shape `a` whose lower (or upper) tail has probability `p`.
fn gamma_quantile(a: f64, p: f64, upper: bool) -> f64 {
    if !(0.0..=1.0).contains(&p) || a.is_nan() || a <= 0.0 {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if (p == 0.0) == upper { f64::INFINITY } else { 0.0 };
    }
    let tail = |x: f64| if upper { gamma_q(a, x) } else { gamma_p(a, x) };
    let target = libm::log(p);
    // Wilson and Hilferty: the cube root of a gamma variable is nearly normal. Small shapes start from the power law.
    let normal = if upper { -normal_quantile(p) } else { normal_quantile(p) };
    let root = 1.0 - 1.0 / (9.0 * a) + normal / (3.0 * a.sqrt());
    let power_law = || libm::exp((target + libm::lgamma(a + 1.0)) / a);
    let start = if root > 0.3 || upper { a * root.max(0.1) * root.max(0.1) * root.max(0.1) } else { power_law() };
    // Newton in ln x on the logarithm of the tail, inside a bracket that every step narrows.
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut u = libm::log(start.max(1e-300));
    for _ in 0..200 {
        let x = libm::exp(u);
        let value = tail(x);
        let error = libm::log(value) - target;
        if (error > 0.0) == upper {
            low = u;
        } else {
            high = u;
        }
        let slope = density_times_x(a, x) / value * if upper { -1.0 } else { 1.0 };
        let mut next = u - error / slope;
        if !(next > low && next < high) {
            next = match (low.is_finite(), high.is_finite()) {
                (true, true) => 0.5 * (low + high),
                (true, false) => low + 1.0,
                _ => high - 1.0,
            };
        }
        let done = (next - u).abs() <= 2e-16 * u.abs().max(1.0);
        u = next;
        if done {
            break;
        }
    }
    libm::exp(u)
}

/// The value a chi-square variable with `freedom` degrees of freedom stays below with probability `p`.
pub fn chi_square_quantile(freedom: f64, p: f64) -> f64 {
    if p > 0.5 {
        2.0 * gamma_quantile(0.5 * freedom, 1.0 - p, true)
    } else {
        2.0 * gamma_quantile(0.5 * freedom, p, false)
    }
}

/// The interval a chi-square variable with `freedom` degrees of freedom leaves with probability `alpha`, half on each
/// side.
///
/// ```
/// let interval = bochner::special::chi_square_interval(0.05, 10.0);
/// assert!((interval.start() - 3.2469727802368396).abs() < 1e-13);
/// assert!(interval.contains(&10.0) && !interval.contains(&21.0));
/// ```
pub fn chi_square_interval(alpha: f64, freedom: f64) -> RangeInclusive<f64> {
    let tail = |upper| 2.0 * gamma_quantile(0.5 * freedom, 0.5 * alpha, upper);
    tail(false)..=tail(true)
}
