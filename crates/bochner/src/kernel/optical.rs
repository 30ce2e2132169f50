use super::{AnyKernel, Kernel, dot, powu};
use crate::error::{Error, Result, check_dim, check_non_negative, check_positive};
use crate::memory::{bytes, in_blocks, need};
use crate::parameter::Domain;
use crate::special::{Table, binomial_square_sum, gamma};
use ndarray::{Array2, ArrayView2};
use num_complex::Complex;
use std::sync::{Arc, OnceLock};

kernel_entry! {
    /// Limit kernel of optical features `|Ux|^m`, `U` of complex normals, for every real exponent `m > 0`:
    /// `|x|^m |y|^m Γ(m/2+1)² Σ C(m/2, k)² cos²ᵏ(x, y)`.
    ///
    /// For even `m = 2s` a polynomial `Σ (s!)² C(s, i)² tⁱ N^(s−i)`, such as `N + t` for `m = 2`, with `t = ⟨x, y⟩²` and
    /// `N = |x|²|y|²`. A bias `ν` appends the coordinate `√ν` to both rows. Source: Ohana et al. 2020, Thm 2 for even
    /// exponents; the general case is `₂F₁(−m/2, −m/2; 1; cos²)`.
    ///
    /// ```
    /// use bochner::kernel::{Kernel, Optical};
    /// let k = Optical::new(2.0, 0.0)?;
    /// assert_eq!(k.evaluate(&[1.0, 2.0], &[3.0, 0.0]), 45.0 + 9.0);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct Optical {
        /// Any positive number.
        exponent: f64 = 2.0, Domain::POSITIVE, Kernel;
        /// Square of a constant coordinate appended to all rows.
        bias: f64 = 0.0, Domain::NON_NEGATIVE, Kernel;
    }
    kernel "optical", "optical":
        "Limit of optical features, `E |u x|^exponent |u y|^exponent` over complex normal vectors u.";
    besides {
        /// `Γ(m/2 + 1)²`, the kernel of orthogonal unit rows.
        at_right_angle: f64;
        table: Arc<OnceLock<Table>>;
    }
}

/// Even exponents up to this one are evaluated as polynomials in `t` and `N`.
const LARGEST_POLYNOMIAL: f64 = 20.0;

impl Optical {
    /// The kernel of `|Ux|^exponent` on rows with a bias coordinate `√bias`.
    ///
    /// # Errors
    /// An exponent that is not positive or a negative bias.
    pub fn new(exponent: f64, bias: f64) -> Result<Self> {
        check_positive("exponent", exponent)?;
        check_non_negative("bias", bias)?;
        Ok(Self::with(exponent, bias))
    }

    fn with(exponent: f64, bias: f64) -> Self {
        let factor = gamma(0.5 * exponent + 1.0);
        Optical { exponent, bias, at_right_angle: factor * factor, table: Arc::default() }
    }

    /// The kernel of twice the exponent: `Var = (k_{2m} − k_m²)/D`.
    pub fn doubled(&self) -> Self {
        Self::with(2.0 * self.exponent, self.bias)
    }

    /// `k(x, y)` of complex rows: `t = |⟨x, y⟩|²` in place of the square; a bias is appended as a real coordinate.
    ///
    /// ```
    /// use bochner::{Complex, kernel::Optical};
    /// let (x, y) = ([Complex::new(1.0, 0.0)], [Complex::new(0.0, 2.0)]);
    /// assert_eq!(Optical::new(2.0, 0.0)?.evaluate_complex(&x, &y), 4.0 + 4.0);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub fn evaluate_complex(&self, x: &[Complex<f64>], y: &[Complex<f64>]) -> f64 {
        let hermitian: Complex<f64> = x.iter().zip(y).map(|(a, b)| a * b.conj()).sum();
        let norm_sq = |row: &[Complex<f64>]| row.iter().map(Complex::norm_sqr).sum();
        let modulus = (hermitian + self.bias).norm();
        self.of_modulus(modulus, norm_sq(x), norm_sq(y), |z| binomial_square_sum(0.5 * self.exponent, z))
    }

    /// [`evaluate_complex`](Self::evaluate_complex) for all rows of `x` and `y`.
    ///
    /// # Errors
    /// Rows of different lengths, NaN or infinities.
    pub fn complex_matrix(
        &self,
        x: ArrayView2<'_, Complex<f64>>,
        y: ArrayView2<'_, Complex<f64>>,
    ) -> Result<Array2<f64>> {
        check_dim("number of columns of y", x.ncols(), y.ncols())?;
        for (what, rows) in [("x", x), ("y", y)] {
            if let Some(((row, column), _)) = rows.indexed_iter().find(|(_, v)| !v.is_finite()) {
                return Err(Error::NonFinite { what, row, column });
            }
        }
        let lines = |rows: ArrayView2<'_, Complex<f64>>| -> Vec<Vec<Complex<f64>>> {
            rows.rows().into_iter().map(|row| row.to_vec()).collect()
        };
        let (x, y) = (lines(x), lines(y));
        need("a kernel matrix", bytes::<f64>(&[x.len(), y.len()]), |free| in_blocks(free / bytes::<f64>(&[y.len()])))?;
        Ok(Array2::from_shape_fn((x.len(), y.len()), |(i, j)| self.evaluate_complex(&x[i], &y[j])))
    }

    fn polynomial_order(&self) -> Option<u32> {
        let half = 0.5 * self.exponent;
        (half.fract() == 0.0 && self.exponent <= LARGEST_POLYNOMIAL).then_some(half as u32)
    }

    #[inline(always)]
    fn of(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64, sum: impl Fn(f64) -> f64) -> f64 {
        self.of_modulus(dot + self.bias, x_norm_sq, y_norm_sq, sum)
    }

    /// From `⟨x, y⟩` with the bias added, or its modulus: only the square is used.
    #[inline(always)]
    fn of_modulus(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64, sum: impl Fn(f64) -> f64) -> f64 {
        let (x, y) = (x_norm_sq + self.bias, y_norm_sq + self.bias);
        if let Some(order) = self.polynomial_order() {
            return polynomial(order, dot * dot, x * y);
        }
        if x == 0.0 || y == 0.0 {
            return 0.0;
        }
        // The product of norms, not of their squares, which may leave the range where the result does not.
        let norms = x.sqrt() * y.sqrt();
        let cosine = (dot / norms).abs().min(1.0);
        let power = if self.exponent.fract() == 0.0 && self.exponent <= 64.0 {
            powu(norms, self.exponent as u32)
        } else {
            libm::pow(norms, self.exponent)
        };
        power * self.at_right_angle * sum(cosine * cosine)
    }
}

/// `Σ (s!)² C(s, i)² tⁱ N^(s−i)`.
fn polynomial(s: u32, t: f64, n: f64) -> f64 {
    // Horner in t with the powers of N built alongside; coefficient ratios from i to i−1.
    let factorial = (1..=s).fold(1.0, |f, i| f * f64::from(i));
    let (mut coefficient, mut power, mut sum) = (factorial * factorial, 1.0, 0.0);
    for i in (0..=s).rev() {
        sum = sum * t + coefficient * power;
        power *= n;
        let ratio = f64::from(i) / f64::from(s + 1 - i);
        coefficient *= ratio * ratio;
    }
    sum
}

impl Kernel for Optical {
    fn description(&self) -> Option<AnyKernel> {
        Some(self.clone().into())
    }
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        self.of(dot(x, y), dot(x, x), dot(y, y), |z| binomial_square_sum(0.5 * self.exponent, z))
    }

    fn of_products(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> Option<f64> {
        Some(self.of(dot, x_norm_sq, y_norm_sq, |z| binomial_square_sum(0.5 * self.exponent, z)))
    }

    fn map_products(&self, dots: &mut [f64], x_norm_sq: f64, y_norms_sq: &[f64]) -> bool {
        let half = 0.5 * self.exponent;
        // Near parallel rows the integral costs tens of microseconds; in −ln(1 − z) its value is smooth up to z = 1,
        // which is reached to the last bit at 37.
        let table = self.table.get_or_init(|| Table::new(0.0, 0.5, 74));
        let sum = |z: f64| table.value(-libm::log1p(-z), |u| binomial_square_sum(half, -libm::expm1(-u)));
        for (entry, &y_norm_sq) in dots.iter_mut().zip(y_norms_sq) {
            *entry = self.of(*entry, x_norm_sq, y_norm_sq, sum);
        }
        true
    }
}
