//! Special functions behind kernels, bounds and tests, to about 1e-13 relative.
//!
//! Integrals of positive integrands are preferred to series that cancel: a sum of positive terms keeps its digits
//! whatever the parameters are.

mod bessel;
mod hypergeometric;
mod isotropic;
mod table;

pub use bessel::{matern, stirling_rest};
pub use hypergeometric::{binomial_square_sum, kummer};
pub use isotropic::Isotropic;
pub use libm::{lgamma as ln_gamma, tgamma as gamma};

pub(crate) use table::Table;

/// `h Σ exp(e(k h))` over all integers `k`, for an exponent `e` with `e(0) = 0` that falls on both sides of a maximum
/// near 0: the trapezoidal rule, which converges exponentially for analytic integrands on the whole line.
fn trapezoid(step: f64, exponent: impl Fn(f64) -> f64) -> f64 {
    /// Terms below `exp(-CUT)` of the largest one are left out.
    const CUT: f64 = 45.0;
    /// No integrand of this module needs as many; a guard against parameters that were not foreseen.
    const MOST: u32 = 200_000;
    let mut sum = 1.0;
    for direction in [step, -step] {
        for k in 1..MOST {
            let e = exponent(f64::from(k) * direction);
            if e < -CUT || e.is_nan() {
                break;
            }
            sum += libm::exp(e);
        }
    }
    step * sum
}

/// `ln(1 + x) − x`.
pub fn log1p_minus(x: f64) -> f64 {
    if x.abs() > 0.01 {
        return libm::log1p(x) - x;
    }
    // −x²/2 + x³/3 − …: nine terms reach 1e-20 relative at |x| = 0.01.
    let tail = (2..=10).rev().fold(0.0, |sum, k| 1.0 / f64::from(k) - x * sum);
    -x * x * tail
}

#[cfg(test)]
#[path = "../../tests/statistics/mod.rs"]
mod statistics;
#[cfg(test)]
pub(crate) use statistics::{chi_square_quantile, normal_quantile};
#[cfg(test)]
mod tests;
