/// `ln |Γ(x)|`.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// `Γ(x)`.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
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
