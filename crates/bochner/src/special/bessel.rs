use super::{log1p_minus, trapezoid};

/// `∫ exp(νs − A(eˢ − 1) − B(e⁻ˢ − 1)) ds` with `A − B = ν` and `AB = z²/4`, which has its peak at 0.
fn bell(nu: f64, z: f64) -> f64 {
    let rho = libm::hypot(nu, z);
    let (up, down) = (0.5 * (rho + nu), 0.5 * z * (z / (rho + nu)));
    // The peak has width ρ^(-1/2); the strip of analyticity is π/2 wide on both sides.
    let step = (0.6 / rho.sqrt()).min(0.2);
    trapezoid(step, |s| nu * s - up * libm::expm1(s) - down * libm::expm1(-s))
}

/// The Matérn function `2^(1−ν)/Γ(ν) z^ν K_ν(z)` for `ν > 0`, `z ≥ 0`: 1 at 0, falling to 0.
///
/// Half-integers up to 41/2 by their closed form `e⁻ᶻ · polynomial`, others from the mixture
/// `1/Γ(ν) ∫ exp(νv − eᵛ − z²e⁻ᵛ/4) dv`, in which nothing overflows.
pub fn matern(nu: f64, z: f64) -> f64 {
    if z == 0.0 {
        return 1.0;
    }
    let order = nu - 0.5;
    if order == order.trunc() && (0.0..=20.0).contains(&order) {
        return half_integer(order as u32, z);
    }
    let rho = libm::hypot(nu, z);
    if !rho.is_finite() {
        return if z.is_finite() { f64::NAN } else { 0.0 };
    }
    // At the peak eᵛ = (ρ+ν)/2 = νw; the exponent there is ν(ln ν − 1) + ν(ln w − w + 1) − z²/4νw.
    let excess = 0.5 * z * (z / (rho + nu)) / nu;
    let exponent = nu * log1p_minus(excess) - 0.5 * z * (z / (rho + nu));
    bell(nu, z) * libm::exp(exponent - stirling_rest(nu)) * (nu / std::f64::consts::TAU).sqrt()
}

/// `e⁻ᶻ n!/(2n)! Σᵢ (n+i)!/(i!(n−i)!) (2z)ⁿ⁻ⁱ`, all terms positive.
fn half_integer(n: u32, z: f64) -> f64 {
    // From i = n (the constant 1) upwards in powers of z: term(i−1) = term(i) · 2z · i/((n+i)(n−i+1)).
    let (mut term, mut sum) = (1.0, 1.0);
    for i in (1..=n).rev() {
        term *= 2.0 * z * f64::from(i) / (f64::from(n + i) * f64::from(n - i + 1));
        sum += term;
    }
    // In two halves: e⁻ᶻ alone underflows before the product does.
    let half = libm::exp(-0.5 * z);
    if half == 0.0 { 0.0 } else { half * sum * half }
}

/// `ln Γ(a) − ((a − ½) ln a − a + ½ ln 2π)`: what Stirling's formula leaves.
pub fn stirling_rest(a: f64) -> f64 {
    if a < 10.0 {
        let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
        return libm::lgamma(a) - ((a - 0.5) * libm::log(a) - a + half_log_tau);
    }
    let coefficients = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    let square = 1.0 / (a * a);
    coefficients.iter().rev().fold(0.0, |sum, c| sum * square + c) / a
}
