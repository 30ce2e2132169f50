use super::log1p_minus;

/// `ln |Γ(x)|`.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// `Γ(x)`.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// `ln Γ(a) − ((a − ½) ln a − a + ½ ln 2π)`: what Stirling's formula leaves.
pub(super) fn stirling_rest(a: f64) -> f64 {
    if a < 10.0 {
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        return libm::lgamma(a) - ((a - 0.5) * libm::log(a) - a + half_log_tau);
    }
    let coefficients = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    let square = 1.0 / (a * a);
    coefficients.iter().rev().fold(0.0, |sum, c| sum * square + c) / a
}

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
pub fn gamma_p(a: f64, x: f64) -> f64 {
    both(a, x).0
}

/// Regularised upper incomplete gamma function `Q(a, x) = 1 − P(a, x)`, without cancellation in the upper tail.
pub fn gamma_q(a: f64, x: f64) -> f64 {
    both(a, x).1
}

/// `ln` of the density of a gamma variable of shape `a` at `x`, times `x`.
pub(super) fn density_times_x(a: f64, x: f64) -> f64 {
    front(a, x) * a
}
