use super::{log1p_minus, trapezoid};
use std::f64::consts::FRAC_PI_2;

/// `F_a(z) = ₂F₁(−a, −a; 1; z) = Σ C(a, k)² zᵏ` for `a ≥ 0` and `0 ≤ z ≤ 1` (clamped).
///
/// Integers by the finite sum, small `z` by the series (no term is negative), the rest by tanh-sinh quadrature of
/// `(1/π) ∫₀^π ((1−c)² + 4c sin²(ψ/2))ᵃ dψ` with `c = √z`, whose integrand is positive.
pub fn binomial_square_sum(a: f64, z: f64) -> f64 {
    let z = z.clamp(0.0, 1.0);
    if a == a.trunc() && a <= 170.0 || z <= 0.5 {
        // The series ends at k = a for integers; else its ratios tend to z from below once k exceeds a.
        let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
        while term > 1e-18 * sum {
            let ratio = (a - k) / (k + 1.0);
            term *= z * ratio * ratio;
            sum += term;
            k += 1.0;
        }
        return sum;
    }
    integral(a, z.sqrt())
}

fn integral(a: f64, c: f64) -> f64 {
    const STEPS: i32 = 416;
    let lowest = (1.0 - c) * (1.0 - c);
    let mut sum = 0.0;
    for k in -STEPS..=STEPS {
        let t = f64::from(k) / 64.0;
        let u = FRAC_PI_2 * libm::sinh(t);
        // ψ/2 = (π/2)/(1 + e^(−2u)), counted from 0 where the integrand may have a root.
        let fraction = 1.0 / (1.0 + libm::exp(-2.0 * u));
        let weight = FRAC_PI_2 * libm::cosh(t) / (libm::cosh(u) * libm::cosh(u));
        let sine = libm::sin(FRAC_PI_2 * fraction);
        sum += weight * libm::pow(lowest + 4.0 * c * sine * sine, a);
    }
    0.5 * sum / 64.0
}

/// `₁F₁(a; b; −x)` for `0 < a ≤ b`, `x ≥ 0`.
///
/// It is `E exp(−xB)` for a Beta variable `B` with parameters `(a, b − a)`: both the integral and its normaliser are
/// evaluated by the trapezoidal rule in `ln B/(1−B)`, with positive terms only, so that neither large arguments nor
/// large parameters lose digits (Kummer's transformation does the same for the series).
pub fn kummer(a: f64, b: f64, x: f64) -> f64 {
    if a == b || x == 0.0 {
        return libm::exp(-x);
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let c = b - a;
    // Peak of a ln B + c ln(1−B) − xB in the logit: a(1−B) − cB − xB(1−B) = 0, solved for B and for R = 1 − B.
    let root = ((x - a) * (x - a) + c * c + 2.0 * c * (x + a)).sqrt();
    let (peak, linear) = (2.0 * a / (a + c + x + root), a + c - x);
    let rest = if linear >= 0.0 { 2.0 * c / (linear + root) } else { (root - linear) / (2.0 * x) };
    let numerator = beta_bell(a, c, x, peak, rest);
    let denominator = beta_bell(a, c, 0.0, a / b, c / b);
    // Height of that peak over the one at x = 0, where B = a/b; their distance is ε/b.
    let epsilon = x * peak * rest;
    let height = if epsilon < 0.5 * a {
        a * log1p_minus(-epsilon / a) + c * log1p_minus(epsilon / c) - x * peak
    } else {
        a * libm::log(peak * b / a) + c * libm::log(rest * b / c) - x * peak
    };
    numerator / denominator * libm::exp(height)
}

/// `∫ exp(w(v₀ + s) − w(v₀)) ds` for `w = a ln B + c ln(1−B) − xB`, `B` the logistic function and `v₀` its peak.
fn beta_bell(a: f64, c: f64, x: f64, peak: f64, rest: f64) -> f64 {
    // −w'' = B(1−B)(a + c + x(1−2B)) at the peak; the strip of analyticity is π wide on both sides.
    let curvature = peak * rest * (a + c + x * (rest - peak));
    let step = (0.6 / curvature.abs().sqrt()).min(0.25);
    trapezoid(step, |s| {
        let (down, up) = (libm::expm1(-s), libm::expm1(s));
        let lift = up * peak / (1.0 + up * peak) * rest;
        -a * libm::log1p(down * rest) - c * libm::log1p(up * peak) - x * lift
    })
}
