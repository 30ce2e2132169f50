use crate::error::Result;
use crate::kernel::products::{Panel, map_products};
use crate::linalg::zeroed_matrix;
use crate::memory::in_blocks;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};

/// What the variance of every polynomial sketch depends on, for one pair of rows.
///
/// Always `N ≥ t ≥ 0`, `N ≥ S ≥ 0` and `N + t ≥ 2S`; `a` may be negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairStats {
    /// `⟨x, y⟩`.
    pub dot: f64,
    /// `|x|²`.
    pub x_norm_sq: f64,
    /// `|y|²`.
    pub y_norm_sq: f64,
    /// `t = ⟨x, y⟩²`.
    pub t: f64,
    /// `N = |x|² |y|²`.
    pub n: f64,
    /// `S = Σ xᵢ² yᵢ²`.
    pub s: f64,
    /// `a = t − S = Σ_{i≠j} xᵢ xⱼ yᵢ yⱼ`.
    pub a: f64,
    /// `b = N − S = Σ_{i≠j} xᵢ² yⱼ² ≥ |a|`.
    pub b: f64,
}

impl PairStats {
    /// The statistics of two rows of the same length, without cancellation in `b`.
    pub fn new(x: &[f64], y: &[f64]) -> Self {
        // Σ_{i≠j} xᵢ² yⱼ² as x_i² (y_0² + … + y_{i-1}²) + y_i² (x_0² + … + x_{i-1}²): every term is positive.
        let (mut dot, mut s, mut b, mut x_norm_sq, mut y_norm_sq) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (&x, &y) in x.iter().zip(y) {
            let (x_sq, y_sq, product) = (x * x, y * y, x * y);
            b += x_sq * y_norm_sq + y_sq * x_norm_sq;
            x_norm_sq += x_sq;
            y_norm_sq += y_sq;
            dot += product;
            s += product * product;
        }
        let t = dot * dot;
        PairStats { dot, x_norm_sq, y_norm_sq, t, n: x_norm_sq * y_norm_sq, s, a: t - s, b }
    }

    /// The statistics from `⟨x, y⟩`, `Σ xᵢ² yᵢ²`, `|x|²` and `|y|²`.
    #[inline(always)]
    pub fn from_products(dot: f64, s: f64, x_norm_sq: f64, y_norm_sq: f64) -> Self {
        let (t, n) = (dot * dot, x_norm_sq * y_norm_sq);
        let b = n - s;
        PairStats { dot, x_norm_sq, y_norm_sq, t, n, s, a: t - s, b: if b < 0.0 { 0.0 } else { b } }
    }

    /// The statistics of `(√γ x, √ν)` and `(√γ y, √ν)`: the rows on which `(γ⟨x, y⟩ + ν)ᵖ` is homogeneous.
    #[inline(always)]
    pub fn affine(&self, gamma: f64, coef0: f64) -> Self {
        if gamma == 1.0 && coef0 == 0.0 {
            return *self;
        }
        let (x_norm_sq, y_norm_sq) = (gamma * self.x_norm_sq + coef0, gamma * self.y_norm_sq + coef0);
        let dot = gamma * self.dot + coef0;
        let (square, cross) = (gamma * gamma, gamma * coef0);
        PairStats {
            dot,
            x_norm_sq,
            y_norm_sq,
            t: dot * dot,
            n: x_norm_sq * y_norm_sq,
            s: square * self.s + coef0 * coef0,
            a: square * self.a + 2.0 * cross * self.dot,
            b: square * self.b + cross * (self.x_norm_sq + self.y_norm_sq),
        }
    }

    /// The statistics of `u x` and `v y`.
    pub fn scaled(&self, u: f64, v: f64) -> Self {
        let (dot, sq) = (u * v * self.dot, (u * v) * (u * v));
        PairStats {
            dot,
            x_norm_sq: u * u * self.x_norm_sq,
            y_norm_sq: v * v * self.y_norm_sq,
            t: dot * dot,
            n: sq * self.n,
            s: sq * self.s,
            a: sq * self.a,
            b: sq * self.b,
        }
    }
}

#[inline(always)]
fn stats_at(panel: &Panel<'_>, j: usize, one_dimension: bool) -> PairStats {
    let (dot, y_norm_sq) = (panel.dots[j], panel.y_norms_sq[j]);
    // In one dimension sketches of signs are exact: N = S = t must hold in every bit.
    let s = if one_dimension { panel.x_norm_sq * y_norm_sq } else { panel.squares.get(j).copied().unwrap_or(0.0) };
    let stats = PairStats::from_products(dot, s, panel.x_norm_sq, y_norm_sq);
    if one_dimension { PairStats { t: s, a: 0.0, ..stats } } else { stats }
}

/// `f` of every pair of rows, as a matrix.
///
/// Two matrix products (of the rows and of their squares), then one pass over the pairs.
///
/// # Errors
/// Rows of different lengths, NaN or infinities.
pub fn map_pairs<R: Real>(
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    f: impl Fn(&PairStats) -> f64 + Sync,
) -> Result<Array2<f64>> {
    map_pairs_with(x, y, true, f)
}

/// As [`map_pairs`]; without `squares` the fields `s`, `a` and `b` are meaningless and one product is saved.
pub(super) fn map_pairs_with<R: Real>(
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    squares: bool,
    f: impl Fn(&PairStats) -> f64 + Sync,
) -> Result<Array2<f64>> {
    let mut out = zeroed_matrix("a matrix of variances", (x.nrows(), y.nrows()), in_blocks)?;
    let one_dimension = x.ncols() == 1;
    map_products(x, y, squares && !one_dimension, out.view_mut(), |panel| {
        for j in 0..panel.dots.len() {
            panel.dots[j] = f(&stats_at(panel, j, one_dimension));
        }
    })?;
    Ok(out)
}
