//! The evidence of an exact process: the kernel matrix of rows that hyperparameters move, and its gradient without a matrix for
//! every hyperparameter.

use super::hunt::{Bounds, Objective};
use super::inlet::Inlet;
use super::problem::Head;
use crate::error::Result;
use crate::kernel::{self, AnyKernel, Kernel, kernel_matrix};
use crate::linalg::gemm::{matmul_nn, matmul_nt};
use crate::linalg::{Cholesky, Eigen, Lower, Tile, TileMut};
use crate::model::spectrum::{Spectrum, Variances, likeliest};
use crate::parallel::Parallel;
use crate::solve::factorise;
use ndarray::{Array1, Array2, Axis};

/// Rows and targets of an exact process.
pub(crate) struct Exact<'a> {
    pub(crate) inlet: &'a Inlet,
    pub(crate) base: Array2<f64>,
    pub(crate) heads: Vec<Head>,
    pub(crate) noisy: bool,
}

fn tile(array: &Array2<f64>) -> Tile<'_, f64> {
    Tile::new(array.as_slice().expect("standard layout"), array.nrows(), array.ncols())
}

fn tile_mut(array: &mut Array2<f64>) -> TileMut<'_, f64> {
    let (rows, cols) = array.dim();
    TileMut::new(array.as_slice_mut().expect("standard layout"), rows, cols)
}

/// How a kernel at unit scale changes with the inner product of two rows and with the squared length of the first.
enum Slopes {
    /// Of the squared distance, as a factor of the kernel itself.
    Gaussian,
    /// Of the squared distance: this kernel times the factor.
    Smoother(Box<dyn Kernel>, f64),
    /// `-exp(-r)/2r` of the squared distance.
    Laplacian,
    /// Of the inner product: the kernel itself.
    Exponential,
    /// Of the inner product: `p tᵖ⁻¹`.
    Power(i32),
    /// By differences of five points.
    Numeric,
}

impl Slopes {
    fn of(kernel: &AnyKernel) -> Result<Slopes> {
        Ok(match kernel {
            AnyKernel::Gaussian(_) => Slopes::Gaussian,
            // d/dr² z^ν K_ν(z) with z² = 2νr² is one order lower, at the same z.
            AnyKernel::Matern(k) if k.nu() > 1.0 => {
                let (nu, less) = (k.nu(), k.nu() - 1.0);
                let lower = kernel::Matern::new(less, (less / nu).sqrt())?;
                Slopes::Smoother(Box::new(lower), -0.5 * nu / less)
            }
            AnyKernel::Matern(k) if k.nu() == 0.5 => Slopes::Laplacian,
            AnyKernel::Laplacian(k) if k.norm() == 2 => Slopes::Laplacian,
            AnyKernel::Exponential(_) => Slopes::Exponential,
            AnyKernel::Polynomial(k) if k.coef0() == 0.0 && k.gamma() == 1.0 => Slopes::Power(k.degree() as i32),
            _ => Slopes::Numeric,
        })
    }

    /// Derivatives in the inner product and in the squared length of the first row.
    fn at(&self, kernel: &AnyKernel, value: f64, dot: f64, x: f64, y: f64) -> (f64, f64) {
        let of_distance = |slope: f64| (-2.0 * slope, slope);
        let distance_sq = || (x + y - 2.0 * dot).max(0.0);
        match self {
            Slopes::Gaussian => of_distance(-0.5 * value),
            Slopes::Smoother(lower, factor) => of_distance(factor * lower.of_distance_sq(distance_sq()).unwrap_or(0.0)),
            Slopes::Laplacian => {
                let r = distance_sq().sqrt();
                // Equal rows do not move apart to first order.
                of_distance(if r > 1e-9 * (x + y).sqrt() && r > 0.0 { -0.5 * value / r } else { 0.0 })
            }
            Slopes::Exponential => (value, 0.0),
            Slopes::Power(0) => (0.0, 0.0),
            Slopes::Power(p) => (f64::from(*p) * dot.powi(p - 1), 0.0),
            Slopes::Numeric => {
                let slope = |size: f64, at: &dyn Fn(f64) -> Option<f64>| {
                    let h = 1e-3 * size.max(1e-12);
                    let v = |steps: f64| at(steps * h).unwrap_or(0.0);
                    (8.0 * (v(1.0) - v(-1.0)) - (v(2.0) - v(-2.0))) / (12.0 * h)
                };
                if kernel.of_distance_sq(1.0).is_some() {
                    let d = distance_sq();
                    if d <= 1e-12 * (x + y) {
                        return (0.0, 0.0);
                    }
                    return of_distance(slope(d, &|h| kernel.of_distance_sq(d + h)));
                }
                let size = (x * y).sqrt();
                // Inner products end at the product of the lengths: equal rows grow together.
                let apart = 1.0 - (dot / size).powi(2);
                if apart.is_nan() || apart <= 1e-9 {
                    let together = slope(x, &|h| kernel.of_products((dot / size) * (x + h), x + h, x + h));
                    return (0.0, 0.5 * together);
                }
                let in_dot = slope(0.2 * apart * size, &|h| kernel.of_products(dot + h, x, y));
                let in_x = slope(0.2 * apart * x, &|h| kernel.of_products(dot, x + h, y));
                (in_dot, in_x)
            }
        }
    }
}

/// A factor of `s²W^½KW^½ + τ²I`, and what it makes of the targets.
struct Solved {
    factor: Cholesky<f64>,
    alpha: Array2<f64>,
    noise: f64,
    value: f64,
}

impl Exact<'_> {
    fn split<'p>(&self, point: &'p [f64]) -> (&'p [f64], f64, f64) {
        let (own, variances) = point.split_at(self.inlet.free());
        (own, variances[0].exp(), if self.noisy { variances[1].exp() } else { 1.0 })
    }

    fn roots(head: &Head) -> Option<Vec<f64>> {
        head.weights.as_ref().map(|weights| weights.iter().map(|w| w.sqrt()).collect())
    }

    /// The lower triangle of `W^½KW^½`, and the targets times `W^½`.
    fn weighted(head: &Head, matrix: &Array2<f64>) -> Result<(Lower<f64>, Array2<f64>)> {
        let n = matrix.nrows();
        let (mut lower, mut targets) = (Lower::zeros(n)?, head.targets.clone());
        let roots = Self::roots(head);
        for i in 0..n {
            lower.row_mut(i).copy_from_slice(&matrix.row(i).as_slice().expect("standard layout")[..=i]);
            if let Some(roots) = &roots {
                lower.row_mut(i).iter_mut().zip(roots).for_each(|(v, root)| *v *= root * roots[i]);
                targets.row_mut(i).mapv_inplace(|v| v * roots[i]);
            }
        }
        Ok((lower, targets))
    }

    fn solve(&self, head: &Head, matrix: &Array2<f64>, (signal, noise): (f64, f64)) -> Result<Solved> {
        let (mut lower, targets) = Self::weighted(head, matrix)?;
        lower.scale(signal);
        lower.add_to_diagonal(noise);
        let (factor, jitter, _) = factorise(lower)?;
        let mut alpha = targets.clone();
        factor.solve_in_place(tile_mut(&mut alpha))?;
        let (n, outputs) = targets.dim();
        let log_weights: f64 = head.weights.as_ref().map_or(0.0, |w| w.iter().map(|w| w.ln()).sum());
        let volume = factor.log_determinant() + n as f64 * std::f64::consts::TAU.ln() - log_weights;
        let value = -0.5 * ((&targets * &alpha).sum() + outputs as f64 * volume);
        Ok(Solved { factor, alpha, noise: noise + jitter, value })
    }

    /// The cotangent of rows of `½ Σ Hᵢⱼ dKᵢⱼ`, with a symmetric `H`; of `Σ Hᵢⱼ dKᵢⱼ` in the first row alone where it is not.
    fn pulled(&self, moved: &Array2<f64>, matrix: &Array2<f64>, weights: &Array2<f64>) -> Result<Array2<f64>> {
        let kernel = self.inlet.unit_kernel()?;
        let slopes = Slopes::of(kernel)?;
        let n = moved.nrows();
        let mut dots = Array2::zeros((n, n));
        matmul_nt(tile(moved), tile(moved), tile_mut(&mut dots))?;
        let norms: Vec<f64> = (0..n).map(|i| dots[[i, i]]).collect();
        let mut own = Array1::<f64>::zeros(n);
        let rows = dots.rows_mut().into_iter().zip(own.iter_mut()).enumerate();
        rows.in_parallel().for_each(|(i, (mut dots, own))| {
            for (j, dot) in dots.iter_mut().enumerate() {
                let (in_dot, in_x) = slopes.at(kernel, matrix[[i, j]], *dot, norms[i], norms[j]);
                *own += weights[[i, j]] * in_x;
                *dot = weights[[i, j]] * in_dot;
            }
        });
        let mut out = Array2::zeros(moved.dim());
        matmul_nn(tile(&dots), tile(moved), tile_mut(&mut out))?;
        for ((mut to, row), own) in out.rows_mut().into_iter().zip(moved.rows()).zip(&own) {
            to.scaled_add(2.0 * own, &row);
        }
        Ok(out)
    }
}

impl Objective for Exact<'_> {
    fn inlet(&self) -> &Inlet {
        self.inlet
    }

    fn base(&self) -> &Array2<f64> {
        &self.base
    }

    fn heads(&self) -> &[Head] {
        &self.heads
    }

    fn is_noisy(&self) -> bool {
        self.noisy
    }

    fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (own, signal, noise) = self.split(point);
        let moved = self.inlet.rows(&self.base, own);
        let matrix = kernel_matrix(self.inlet.unit_kernel()?, moved.view(), moved.view())?;
        let n = moved.nrows();
        let mut weights = Array2::<f64>::zeros((n, n));
        let (mut value, mut in_signal, mut in_noise) = (0.0, 0.0, 0.0);
        for head in &self.heads {
            let solved = self.solve(head, &matrix, (signal, noise))?;
            let outputs = head.targets.ncols() as f64;
            let roots = Self::roots(head);
            let mut inverse = Array2::<f64>::eye(n);
            solved.factor.solve_in_place(tile_mut(&mut inverse))?;
            value += solved.value;
            let trace: f64 = inverse.diag().sum();
            let square: f64 = solved.alpha.iter().map(|a| a * a).sum();
            in_noise += 0.5 * solved.noise * (square - outputs * trace);
            // Σ and its part τ²I are known: zᵀα = s²αᵀKα + τ²|α|².
            let misfit: f64 = 2.0 * (-solved.value)
                - outputs * (solved.factor.log_determinant() + n as f64 * std::f64::consts::TAU.ln())
                + outputs * head.weights.as_ref().map_or(0.0, |w| w.iter().map(|w| w.ln()).sum::<f64>());
            let explained = misfit - solved.noise * square;
            in_signal += 0.5 * (explained - outputs * (n as f64 - solved.noise * trace));
            if self.inlet.free() == 0 {
                continue;
            }
            let alpha = &solved.alpha;
            weights.rows_mut().into_iter().enumerate().in_parallel().for_each(|(i, mut weights)| {
                for (j, to) in weights.iter_mut().enumerate() {
                    let both: f64 = alpha.row(i).iter().zip(alpha.row(j)).map(|(a, b)| a * b).sum();
                    let root = roots.as_ref().map_or(1.0, |roots| roots[i] * roots[j]);
                    *to += signal * root * (both - outputs * inverse[[i, j]]);
                }
            });
        }
        let mut gradient = if self.inlet.free() > 0 {
            let pulled = self.pulled(&moved, &matrix, &weights)?;
            self.inlet.gradient(&self.base, &moved, &pulled)
        } else {
            Vec::new()
        };
        gradient.push(in_signal);
        if self.noisy {
            gradient.push(in_noise);
        }
        Ok((value, gradient))
    }

    fn variances(&self, own: &[f64], bounds: &Bounds) -> Result<Variances> {
        let moved = self.inlet.rows(&self.base, own);
        let matrix = kernel_matrix(self.inlet.unit_kernel()?, moved.view(), moved.view())?;
        let mut spectra = Vec::new();
        for head in &self.heads {
            let (lower, targets) = Self::weighted(head, &matrix)?;
            let eigen = Eigen::new(lower)?;
            let vectors = eigen.vectors();
            let square = |j: usize| -> f64 {
                let along = |column: ndarray::ArrayView1<'_, f64>| -> f64 {
                    column.iter().zip(vectors.row(j)).map(|(z, v)| z * v).sum()
                };
                targets.axis_iter(Axis(1)).map(|column| along(column) * along(column)).sum()
            };
            let (n, outputs) = targets.dim();
            spectra.push(Spectrum {
                values: eigen.values().iter().map(|v| v.max(0.0)).collect(),
                squares: (0..n).map(square).collect(),
                rest: 0.0,
                share: 1.0,
                rows: n as f64,
                outputs: outputs as f64,
                kappa: 0.5,
                log_weights: head.weights.as_ref().map_or(0.0, |w| w.iter().map(|w| w.ln()).sum()),
            });
        }
        Ok(likeliest(&spectra, self.noisy, bounds.signal, bounds.noise))
    }

    fn relevances(&self, point: &[f64]) -> Result<Vec<f64>> {
        let (own, signal, noise) = self.split(point);
        let moved = self.inlet.rows(&self.base, own);
        let matrix = kernel_matrix(self.inlet.unit_kernel()?, moved.view(), moved.view())?;
        let n = moved.nrows();
        let mut squares = vec![0.0; self.base.ncols()];
        for head in &self.heads {
            let solved = self.solve(head, &matrix, (signal, noise))?;
            let roots = Self::roots(head);
            for alpha in solved.alpha.columns() {
                // The mean at row i is Σ s²k(xᵢ, xⱼ)√wⱼ αⱼ, in which the first row moves.
                let weight = |j: usize| alpha[j] * roots.as_ref().map_or(1.0, |roots| roots[j]);
                let weights = Array2::from_shape_fn((n, n), |(_, j)| weight(j));
                let pulled = self.pulled(&moved, &matrix, &weights)?;
                for slopes in self.inlet.to_base(&pulled, own).rows() {
                    squares.iter_mut().zip(slopes).for_each(|(to, slope)| *to += slope * slope);
                }
            }
        }
        Ok(squares.into_iter().map(f64::sqrt).collect())
    }
}
