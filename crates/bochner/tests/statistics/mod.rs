//! Tails and quantiles that tolerances are computed from: by the tests of the library and by those inside of it, which hold
//! them against mpmath.
#![allow(dead_code)] // each of the two programs calls some

use bochner::special::{log1p_minus, stirling_rest};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::ops::RangeInclusive;

/// `xᵃ e⁻ˣ / Γ(a + 1)`.
fn front(a: f64, x: f64) -> f64 {
    if a < 10.0 {
        return libm::exp(a * libm::log(x) - x - libm::lgamma(a + 1.0));
    }
    // Written around x = a, so that no large numbers cancel.
    let exponent = if x < 0.1 * a { a * libm::log(x / a) + (a - x) } else { a * log1p_minus((x - a) / a) };
    libm::exp(exponent - stirling_rest(a)) / (std::f64::consts::TAU * a).sqrt()
}

/// `P(a, x)` and `Q(a, x)`, the smaller one directly.
fn both(a: f64, x: f64) -> (f64, f64) {
    if a.is_nan() || x.is_nan() || a <= 0.0 || x < 0.0 {
        return (f64::NAN, f64::NAN);
    }
    if x == 0.0 {
        return (0.0, 1.0);
    }
    if x == f64::INFINITY {
        return (1.0, 0.0);
    }
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0, 1.0, a);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        let p = front(a, x) * sum;
        (p, 1.0 - p)
    } else {
        // Modified Lentz evaluation of 1/(x+1−a− 1(1−a)/(x+3−a− …)).
        let mut b = x + 1.0 - a;
        let mut c = f64::INFINITY;
        let mut d = 1.0 / b;
        let mut fraction = d;
        for i in 1..1_000_000 {
            let i = f64::from(i);
            let numerator = -i * (i - a);
            b += 2.0;
            d = 1.0 / (numerator * d + b);
            c = b + numerator / c;
            let factor = c * d;
            fraction *= factor;
            if (factor - 1.0).abs() < 1e-16 {
                break;
            }
        }
        let q = front(a, x) * a * fraction;
        (1.0 - q, q)
    }
}

/// Regularised lower incomplete gamma function `P(a, x) = γ(a, x)/Γ(a)` for `a > 0`, `x ≥ 0`; NaN outside.
pub(crate) fn gamma_p(a: f64, x: f64) -> f64 {
    both(a, x).0
}

/// Regularised upper incomplete gamma function `Q(a, x) = 1 − P(a, x)`, without cancellation in the upper tail.
pub(crate) fn gamma_q(a: f64, x: f64) -> f64 {
    both(a, x).1
}

/// The density of a gamma variable of shape `a` at `x`, times `x`.
fn density_times_x(a: f64, x: f64) -> f64 {
    front(a, x) * a
}

/// Distribution function of the standard normal law.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The `x` with [`normal_cdf`]`(x) = p`; infinite at 0 and 1, NaN outside of `[0, 1]`.
pub(crate) fn normal_quantile(p: f64) -> f64 {
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
pub(crate) fn chi_square_quantile(freedom: f64, p: f64) -> f64 {
    if p > 0.5 {
        2.0 * gamma_quantile(0.5 * freedom, 1.0 - p, true)
    } else {
        2.0 * gamma_quantile(0.5 * freedom, p, false)
    }
}

/// The interval a chi-square variable with `freedom` degrees of freedom leaves with probability `alpha`, half on each
/// side.
pub(crate) fn chi_square_interval(alpha: f64, freedom: f64) -> RangeInclusive<f64> {
    let tail = |upper| 2.0 * gamma_quantile(0.5 * freedom, 0.5 * alpha, upper);
    tail(false)..=tail(true)
}
