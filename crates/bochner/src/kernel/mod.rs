//! Exact kernels: what the features estimate.

use std::fmt::Debug;

/// A kernel at unit scale or with its parameters inside.
pub trait Kernel: Debug + Send + Sync {
    /// `k(x, y)`.
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64;

    /// `k` from `⟨x, y⟩`, `|x|²` and `|y|²`, where these determine it: whole matrices then cost one matrix product.
    fn of_products(&self, _dot: f64, _x_norm_sq: f64, _y_norm_sq: f64) -> Option<f64> {
        None
    }
}
