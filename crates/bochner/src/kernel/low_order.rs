use super::{AnyKernel, Kernel};
use crate::error::{Result, check_count, check_positive};
use crate::parameter::Domain;

kernel_entry! {
    /// Mean over all subsets of `order` columns of the Gaussian kernel on those columns:
    /// `e_q(k₁, …, k_d)/C(d, q)` with `kⱼ = exp(−(xⱼ − yⱼ)²/2ℓ²)`, `q = order` and `e_q` the elementary symmetric polynomial.
    ///
    /// A function of this kernel is a sum of functions of `q` columns each: what holds in one region of some columns is not
    /// forgotten far away in the others. Rows with fewer columns than `order` have all of them in one subset.
    ///
    /// ```
    /// use bochner::kernel::{Gaussian, Kernel, LowOrder};
    /// let (x, y) = ([0.0, 1.0, 0.0], [2.0, 1.0, 0.5]);
    /// let (one, two) = ((-2f64).exp(), (-0.125f64).exp());
    /// let pairs = (one + one * two + two) / 3.0;
    /// assert!((LowOrder::new(1.0, 2)?.evaluate(&x, &y) - pairs).abs() < 1e-15);
    /// let all = Gaussian::new(1.0)?.evaluate(&x, &y);
    /// assert!((LowOrder::new(1.0, 3)?.evaluate(&x, &y) - all).abs() < 1e-15);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    #[derive(Copy)]
    pub struct LowOrder {
        /// Distance over which the kernel falls off.
        length_scale: f64 = 1.0, Domain::POSITIVE, Kernel;
        /// Columns of every subset.
        order: usize = 2, Domain::COUNT, Kernel;
    }
    kernel "low_order", "low-order Gaussian": "Mean over subsets of `order` columns of the Gaussian kernel on those columns.";
}

impl LowOrder {
    /// Subsets of `order` columns, Gaussian with `ℓ = length_scale` in each.
    ///
    /// # Errors
    /// A length scale that is not positive, or no columns.
    pub fn new(length_scale: f64, order: usize) -> Result<Self> {
        check_positive("length_scale", length_scale)?;
        check_count("order", order)?;
        Ok(LowOrder { length_scale, order })
    }
}

impl Kernel for LowOrder {
    fn description(&self) -> Option<AnyKernel> {
        Some((*self).into())
    }

    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        mean_over_subsets(self.order, x, y, |difference| {
            let scaled = difference / self.length_scale;
            libm::exp(-0.5 * scaled * scaled)
        })
    }
}

/// The same mean of the Laplacian kernel of norm 1, whose factors are `exp(−|xⱼ − yⱼ|/ℓ)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowOrderLaplacian {
    length_scale: f64,
    order: usize,
}

impl LowOrderLaplacian {
    pub(crate) fn new(length_scale: f64, order: usize) -> Result<Self> {
        check_positive("length_scale", length_scale)?;
        check_count("order", order)?;
        Ok(LowOrderLaplacian { length_scale, order })
    }
}

impl Kernel for LowOrderLaplacian {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        mean_over_subsets(self.order, x, y, |difference| libm::exp(-difference.abs() / self.length_scale))
    }
}

/// Mean of `∏_{j∈S} factor(xⱼ − yⱼ)` over all subsets `S` of `order` columns, in `O(d · order)`.
///
/// `pⱼᵣ`, the mean over subsets of `r` of the first `j` columns, is `r/j kⱼ pⱼ₋₁,ᵣ₋₁ + (1 − r/j) pⱼ₋₁,ᵣ`: sums of positive
/// numbers that are never above the largest factor, where elementary symmetric polynomials and binomials overflow.
fn mean_over_subsets(order: usize, x: &[f64], y: &[f64], factor: impl Fn(f64) -> f64) -> f64 {
    const FEW: usize = 16;
    let order = order.min(x.len());
    let (mut few, mut many) = ([0.0; FEW], Vec::new());
    let means: &mut [f64] = if order < FEW {
        &mut few[..=order]
    } else {
        many.resize(order + 1, 0.0);
        &mut many
    };
    means[0] = 1.0;
    for (j, (a, b)) in x.iter().zip(y).enumerate() {
        let (columns, k) = ((j + 1) as f64, factor(a - b));
        for r in (1..=order.min(j + 1)).rev() {
            let share = r as f64 / columns;
            means[r] = share * k * means[r - 1] + (1.0 - share) * means[r];
        }
    }
    means[order]
}
