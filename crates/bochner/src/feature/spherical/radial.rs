use crate::error::{Error, Result};
use crate::kernel::{Kernel, Spherical};
use crate::linalg::{Tile, least_squares, nnls};
use crate::parameter::words;
use crate::random::Stream;
use crate::special::{Isotropic, Table, ln_gamma};
use serde::{Deserialize, Serialize};
use std::f64::consts::{LN_2, SQRT_2};
use std::sync::{Arc, Mutex};

words! {
    /// How the radial density of spherical features is found.
    pub enum RadialFit {
        /// The best weights on a grid of radii, by non-negative least squares: a convex problem, solved exactly.
        Convex = "convex",
        /// A clipped combination of ten radial densities of normal vectors (Pennington, Yu and Kumar 2015), improved from the
        /// best mixture by damped Gauss–Newton steps: a local optimum.
        Mixture = "mixture",
    }
}

/// How far the mean of spherical features is from the kernel, over all distances from 0 to 2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bias {
    /// Largest absolute difference.
    pub sup: f64,
    /// Root of the mean squared difference, over distances equally spaced.
    pub rms: f64,
}

/// A distribution of radii, and the kernel `k̂(z) = E Λ_d(r z)` at distance `z` that frequencies of these radii and uniform
/// directions have.
///
/// Radii are those of a grid with weights; most weights of the convex fit are 0. Draws, the mean of the estimate and its
/// variance all speak of the same weights: nothing is lost to interpolation.
#[derive(Debug, Clone)]
pub struct RadialDensity {
    radii: Vec<f64>,
    weights: Vec<f64>,
    cumulative: Vec<f64>,
    basis: Arc<Basis>,
    values: Arc<Table>,
    covariances: Arc<Table>,
    bias: Bias,
}

/// `Λ_d` up to a reach, tabulated.
#[derive(Debug)]
struct Basis {
    exact: Isotropic,
    table: Table,
}

/// Length of a piece of the table: 16 Chebyshev terms of a cosine of frequency at most 1 are exact to 1e-15 over it.
const PIECE: f64 = 3.0;

impl Basis {
    fn new(dim: usize, reach: f64) -> Self {
        Basis { exact: Isotropic::new(dim, reach), table: Table::new(0.0, PIECE, (reach / PIECE) as usize + 1) }
    }

    fn value(&self, x: f64) -> f64 {
        self.table.value(x, |x| self.exact.value(x))
    }
}

/// Distances at which fits are made, over `[0, 2]`.
const FIT_POINTS: usize = 129;
/// Distances at which the bias is measured: those of the fit and others.
const BIAS_POINTS: usize = 513;
/// Radii of the convex fit: neighbours give nearly the same function.
const CONVEX_RADII: usize = 241;
/// Radii of the mixture: a fraction of the width of its narrowest component apart.
const MIXTURE_RADII: usize = 1024;
const COMPONENTS: usize = 10;
/// Radii beyond any use for kernels of this library's degrees; a reach that tables can hold.
const MOST_RADIUS: f64 = 1e5;

/// `n` distances from 0 to 2.
fn distances(n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| 2.0 * i as f64 / (n - 1) as f64)
}

/// Roots of the trapezoid's weights over [`FIT_POINTS`] distances: residuals times these have the integral as their square.
fn root_weights() -> impl Iterator<Item = f64> {
    let step = 2.0 / (FIT_POINTS - 1) as f64;
    (0..FIT_POINTS).map(move |i| if i == 0 || i == FIT_POINTS - 1 { 0.5 * step } else { step }.sqrt())
}

impl RadialDensity {
    /// The density whose kernel is nearest to `kernel` over distances from 0 to 2, for unit rows of `dim` dimensions.
    ///
    /// A function of its arguments; the last sixteen results are kept, since maps of one kind are often drawn many times.
    ///
    /// # Errors
    /// A kernel whose frequencies are beyond 1e5.
    pub fn fit(kernel: &Spherical, dim: usize, fit: RadialFit) -> Result<Self> {
        static KEPT: Mutex<Vec<(Spherical, usize, RadialFit, RadialDensity)>> = Mutex::new(Vec::new());
        let kept = || KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(found) = kept().iter().find(|(k, d, f, _)| (k, *d, *f) == (kernel, dim, fit)) {
            return Ok(found.3.clone());
        }
        let density = Self::search(kernel, dim, fit)?;
        let mut kept = kept();
        if kept.len() >= 16 {
            kept.remove(0);
        }
        kept.push((*kernel, dim, fit, density.clone()));
        Ok(density)
    }

    fn search(kernel: &Spherical, dim: usize, fit: RadialFit) -> Result<Self> {
        // (1 - z²/A²)ᵖ is nearly exp(-s² z²): the kernel of normal frequencies of √2 s in every coordinate.
        let scale = f64::from(kernel.degree()).sqrt() / kernel.a();
        let largest = 3.0 * SQRT_2 * scale * ((dim as f64).sqrt() + 6.0);
        if largest > MOST_RADIUS {
            return Err(Error::Unsupported {
                what: "spherical features",
                reason: format!("degree {} in {dim} dimensions needs frequencies up to {largest:.0}", kernel.degree()),
            });
        }
        let basis = Arc::new(Basis::new(dim, 4.0 * largest));
        let (radii, weights) = if kernel.degree() == 0 {
            (vec![0.0], vec![1.0])
        } else {
            match fit {
                RadialFit::Convex => convex(kernel, &basis, largest)?,
                RadialFit::Mixture => mixture(kernel, &basis, dim, scale, largest)?,
            }
        };
        Ok(Self::new(kernel, radii, weights, basis, largest))
    }

    fn new(kernel: &Spherical, radii: Vec<f64>, weights: Vec<f64>, basis: Arc<Basis>, largest: f64) -> Self {
        let used = || radii.iter().zip(&weights).filter(|(_, w)| **w > 0.0);
        let (radii, mut weights): (Vec<f64>, Vec<f64>) = used().map(|(r, w)| (*r, *w)).unzip();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        let mut cumulative: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, w| {
                *sum += w;
                Some(*sum)
            })
            .collect();
        // Draws are below 1 whatever rounding has left of the sum.
        if let Some(last) = cumulative.last_mut() {
            *last = 1.0;
        }
        let length = PIECE / largest.max(1.0);
        let values = Arc::new(Table::new(0.0, length, (4.0 / length) as usize + 1));
        // Two lengths at a right angle are up to √2 as long.
        let covariances = Arc::new(Table::new(0.0, 0.5 * length, (4.0 / length) as usize + 1));
        let bias = Bias { sup: 0.0, rms: 0.0 };
        let mut density = RadialDensity { radii, weights, cumulative, basis, values, covariances, bias };
        let errors: Vec<f64> = distances(BIAS_POINTS).map(|z| density.value(z) - exact(kernel, z)).collect();
        let square: f64 =
            errors.iter().map(|e| e * e).sum::<f64>() - 0.5 * (errors[0].powi(2) + errors[BIAS_POINTS - 1].powi(2));
        density.bias = Bias {
            sup: errors.iter().fold(0.0, |most, e| e.abs().max(most)),
            rms: (square / (BIAS_POINTS - 1) as f64).sqrt(),
        };
        density
    }

    /// Radii of positive weight, in increasing order.
    pub fn radii(&self) -> &[f64] {
        &self.radii
    }

    /// Their probabilities.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// `k̂(z)`, the mean of the estimate for unit rows at distance `z`.
    pub fn value(&self, z: f64) -> f64 {
        self.values.value(z, |z| self.radii.iter().zip(&self.weights).map(|(r, w)| w * self.basis.value(r * z)).sum())
    }

    /// Covariance of the cosines of two orthogonal directions at distance `z ≤ 2`: their sum and difference have uniformly
    /// random directions too, and the squared length `r₁² + r₂²`.
    pub fn orthogonal_covariance(&self, z: f64) -> f64 {
        self.covariances.value(z, |z| {
            let atoms = || self.radii.iter().zip(&self.weights);
            let both =
                |(r, w): (&f64, &f64)| -> f64 { atoms().map(|(s, v)| w * v * self.basis.value(r.hypot(*s) * z)).sum() };
            atoms().map(both).sum::<f64>() - self.value(z).powi(2)
        })
    }

    /// Draws a radius, by the inverse of the cumulative distribution.
    pub fn sample(&self, draw: &mut Stream) -> f64 {
        let u = draw.uniform();
        let at = self.cumulative.partition_point(|c| *c <= u);
        self.radii[at.min(self.radii.len() - 1)]
    }

    /// Distance of `k̂` from the kernel it was fitted to.
    pub fn bias(&self) -> Bias {
        self.bias
    }
}

/// [`RadialDensity::orthogonal_covariance`] of all pairs.
#[derive(Debug)]
pub(super) struct Covariance<'a>(pub(super) &'a RadialDensity);

impl Kernel for Covariance<'_> {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        self.0.orthogonal_covariance(crate::kernel::distance_sq(x, y).sqrt())
    }

    fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
        Some(self.0.orthogonal_covariance(distance_sq.sqrt()))
    }
}

impl Kernel for RadialDensity {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        self.value(crate::kernel::distance_sq(x, y).sqrt())
    }

    fn of_distance_sq(&self, distance_sq: f64) -> Option<f64> {
        Some(self.value(distance_sq.sqrt()))
    }
}

fn exact(kernel: &Spherical, z: f64) -> f64 {
    kernel.of_distance_sq(z * z).expect("a function of the distance")
}

/// Non-negative least squares over weights on a grid of radii.
fn convex(kernel: &Spherical, basis: &Basis, largest: f64) -> Result<(Vec<f64>, Vec<f64>)> {
    let radii: Vec<f64> = (0..CONVEX_RADII).map(|j| largest * j as f64 / (CONVEX_RADII - 1) as f64).collect();
    let columns = |z: f64, root: f64| radii.iter().map(move |r| root * basis.value(r * z)).collect::<Vec<_>>();
    let weights = sum_to_one(kernel, columns, CONVEX_RADII)?;
    Ok((radii, weights))
}

/// The `w ≥ 0` with `Σw = 1` for which `Σ wⱼ columnⱼ(z)` is nearest to the kernel.
fn sum_to_one(kernel: &Spherical, columns: impl Fn(f64, f64) -> Vec<f64>, count: usize) -> Result<Vec<f64>> {
    /// The sum of the weights as one more equation: far above the integral's weights, far below 1/rounding.
    const SUM: f64 = 1e3;
    let (mut matrix, mut target) = (Vec::with_capacity((FIT_POINTS + 1) * count), Vec::with_capacity(FIT_POINTS + 1));
    for (z, root) in distances(FIT_POINTS).zip(root_weights()) {
        matrix.extend(columns(z, root));
        target.push(root * exact(kernel, z));
    }
    matrix.extend(std::iter::repeat_n(SUM, count));
    target.push(SUM);
    nnls(Tile::new(&matrix, FIT_POINTS + 1, count), &target)
}

/// `ρ(r) ∝ max(0, Σ cᵢ ρᵢ(r))`, `ρᵢ` the density of the length of a normal vector of `√2 sᵢ` in every coordinate
/// (thesis 2.2.4).
fn mixture(kernel: &Spherical, basis: &Basis, dim: usize, scale: f64, largest: f64) -> Result<(Vec<f64>, Vec<f64>)> {
    let d = dim as f64;
    // Midpoints: a density of one dimension does not vanish at 0.
    let radii: Vec<f64> = (0..MIXTURE_RADII).map(|j| largest * (j as f64 + 0.5) / MIXTURE_RADII as f64).collect();
    let table: Vec<Vec<f64>> =
        distances(FIT_POINTS).map(|z| radii.iter().map(|r| basis.value(r * z)).collect()).collect();
    let roots: Vec<f64> = root_weights().collect();
    let targets: Vec<f64> = distances(FIT_POINTS).map(|z| exact(kernel, z)).collect();
    // Without clipping k̂(z) = Σ cᵢ exp(-sᵢ² z²): the best non-negative c for fixed s is where the search starts.
    let mut s: Vec<f64> = (0..COMPONENTS).map(|i| scale * (0.6 + 0.1 * i as f64)).collect();
    let mut c = sum_to_one(kernel, |z, root| s.iter().map(|s| root * (-s * s * z * z).exp()).collect(), COMPONENTS)?;
    let component = |s: f64, r: f64| {
        let constant = -d * (SQRT_2 * s).ln() - (0.5 * d - 1.0) * LN_2 - ln_gamma(0.5 * d);
        ((d - 1.0) * r.ln() + constant - r * r / (4.0 * s * s)).exp()
    };
    let evaluate = |c: &[f64], s: &[f64]| -> Fitted {
        let parts: Vec<Vec<f64>> = s.iter().map(|&s| radii.iter().map(|&r| component(s, r)).collect()).collect();
        let mut density = vec![0.0; radii.len()];
        for (c, part) in c.iter().zip(&parts) {
            density.iter_mut().zip(part).for_each(|(d, p)| *d += c * p);
        }
        density.iter_mut().for_each(|d| *d = d.max(0.0));
        let total: f64 = density.iter().sum();
        let values: Vec<f64> = table.iter().map(|row| dot(row, &density) / total).collect();
        let residuals: Vec<f64> =
            values.iter().zip(&targets).zip(&roots).map(|((v, t), root)| root * (v - t)).collect();
        let loss = if total > 0.0 { dot(&residuals, &residuals) } else { f64::INFINITY };
        Fitted { parts, density, total, values, residuals, loss }
    };
    let mut best = evaluate(&c, &s);
    let mut damping = 1e-3;
    for _ in 0..200 {
        // Slopes of the residuals: of c, then of ln s.
        let mut slopes: Vec<Vec<f64>> = Vec::with_capacity(2 * COMPONENTS);
        for which in 0..2 * COMPONENTS {
            let i = which % COMPONENTS;
            let slope = |(k, part): (usize, &f64)| match () {
                () if best.density[k] == 0.0 => 0.0,
                () if which < COMPONENTS => *part,
                () => c[i] * part * (radii[k] * radii[k] / (2.0 * s[i] * s[i]) - d),
            };
            let slope: Vec<f64> = best.parts[i].iter().enumerate().map(slope).collect();
            let sum: f64 = slope.iter().sum();
            let of =
                |((row, value), root): ((&Vec<f64>, &f64), &f64)| root * (dot(row, &slope) - value * sum) / best.total;
            slopes.push(table.iter().zip(&best.values).zip(&roots).map(of).collect());
        }
        let mut improved = false;
        while damping < 1e8 {
            let target: Vec<f64> =
                best.residuals.iter().map(|r| -r).chain(std::iter::repeat_n(0.0, slopes.len())).collect();
            let columns: Vec<Vec<f64>> = slopes
                .iter()
                .enumerate()
                .map(|(which, slope)| {
                    let mut column = slope.clone();
                    column.resize(FIT_POINTS + slopes.len(), 0.0);
                    column[FIT_POINTS + which] = (damping * (dot(slope, slope) + 1e-12)).sqrt();
                    column
                })
                .collect();
            let Some(step) = least_squares(columns.iter().map(|c| &c[..]), &target) else { break };
            let next_c: Vec<f64> = c.iter().zip(&step).map(|(c, step)| c + step).collect();
            let moved = |(s, step): (&f64, &f64)| s * step.clamp(-0.3, 0.3).exp();
            let next_s: Vec<f64> = s.iter().zip(&step[COMPONENTS..]).map(moved).collect();
            let next = evaluate(&next_c, &next_s);
            if next.loss < best.loss {
                improved = next.loss < best.loss * (1.0 - 1e-4);
                (best, c, s) = (next, next_c, next_s);
                damping = (0.3 * damping).max(1e-12);
                break;
            }
            damping *= 4.0;
        }
        if !improved {
            break;
        }
    }
    Ok((radii, best.density))
}

/// A mixture with what its slopes are made of.
struct Fitted {
    parts: Vec<Vec<f64>>,
    density: Vec<f64>,
    total: f64,
    values: Vec<f64>,
    residuals: Vec<f64>,
    loss: f64,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    crate::kernel::dot(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Role, Seed};

    fn fitted(degree: u32, a: f64, dim: usize, fit: RadialFit) -> RadialDensity {
        RadialDensity::fit(&Spherical::new(degree, a).unwrap(), dim, fit).unwrap()
    }

    #[test]
    fn the_convex_fit_is_never_worse_than_the_mixture() {
        // scipy 1.17, optimize.nnls: least loss (half the integral of the squared error) of non-negative mixtures of
        // exp(-s² z²) with the ten s that the search starts from.
        for (degree, a, dim, start) in [
            (3, 2.0, 5, 9.48e-4),
            (7, 2.0, 16, 1.49e-4),
            (10, 4.0, 64, 7.48e-5),
            (7, 4.0, 3, 8.74e-5),
            (10, 2.0, 100, 6.45e-5),
        ] {
            let (convex, mixture) =
                (fitted(degree, a, dim, RadialFit::Convex).bias(), fitted(degree, a, dim, RadialFit::Mixture).bias());
            // The grids differ: below 2e-5 their spacing decides, not the fit (4.2e-5 against 2.8e-5 for 7 4 3).
            assert!(convex.rms <= 1.02 * mixture.rms + 2e-5, "{degree} {a} {dim}: {convex:?} {mixture:?}");
            assert!(mixture.rms.powi(2) < 0.95 * start, "{degree} {a} {dim}: {mixture:?} {start}");
            assert!(convex.sup >= convex.rms && convex.sup < 0.1);
        }
    }

    #[test]
    fn a_single_normal_component_is_the_gaussian_kernel() {
        // Weights of the density of one component on the grid: its kernel is exp(-s² z²) (formula behind the mixture).
        // Midpoint sums are exact to rounding where r^(d-1) has no kink at 0: odd dimensions, and high ones.
        for dim in [1, 3, 7, 200] {
            let (d, s): (f64, f64) = (dim as f64, 0.9);
            let largest = 3.0 * SQRT_2 * s * (d.sqrt() + 6.0);
            let basis = Arc::new(Basis::new(dim, 4.0 * largest));
            let radii: Vec<f64> =
                (0..MIXTURE_RADII).map(|j| largest * (j as f64 + 0.5) / MIXTURE_RADII as f64).collect();
            let log = |r: f64| (d - 1.0) * r.ln() - r * r / (4.0 * s * s);
            let most = radii.iter().map(|&r| log(r)).fold(f64::MIN, f64::max);
            let weights = radii.iter().map(|&r| (log(r) - most).exp()).collect();
            let density = RadialDensity::new(&Spherical::new(3, 2.0).unwrap(), radii, weights, basis, largest);
            for z in [0.0, 0.3, 1.0, 2.0, 4.0] {
                let exact: f64 = (-s * s * z * z).exp();
                assert!((density.value(z) - exact).abs() < 1e-12, "{dim} {z}: {} {exact}", density.value(z));
            }
        }
    }

    #[test]
    fn kernels_that_no_density_has_report_a_large_bias() {
        // Homogeneous kernels of odd degree are negative at z = 2; best losses lie between 3e-3 and 4e-2.
        let bias = fitted(3, SQRT_2, 20, RadialFit::Convex).bias();
        assert!(bias.rms.powi(2) > 3e-3 && bias.sup > 0.2, "{bias:?}");
    }

    #[test]
    fn degree_zero_is_the_constant() {
        let density = fitted(0, 2.0, 4, RadialFit::Convex);
        assert_eq!(density.radii(), &[0.0][..]);
        // Values come from an interpolated table.
        assert!((density.value(1.3) - 1.0).abs() < 1e-13 && density.bias().sup < 1e-13, "{:?}", density.bias());
    }

    #[test]
    fn draws_follow_the_weights() {
        use crate::special::chi_square_quantile;
        for fit in [RadialFit::Convex, RadialFit::Mixture] {
            let density = fitted(7, 2.0, 12, fit);
            let (count, mut draw) = (40_000, Stream::new(Seed::new(9), Role::Radius, 0));
            let mut found = vec![0.0; density.radii().len()];
            for _ in 0..count {
                let radius = density.sample(&mut draw);
                found[density.radii().iter().position(|r| *r == radius).unwrap()] += 1.0;
            }
            // Pearson's statistic over radii of at least five expected draws; the others together.
            let (mut statistic, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
            let mut add = |found: f64, expected: f64| {
                statistic += (found - expected).powi(2) / expected;
                cells += 1.0;
            };
            for (found, weight) in found.iter().zip(density.weights()) {
                let expected = weight * count as f64;
                if expected >= 5.0 {
                    add(*found, expected);
                } else {
                    rest = (rest.0 + found, rest.1 + expected);
                }
            }
            if rest.1 >= 1.0 {
                add(rest.0, rest.1);
            }
            assert!(
                statistic < chi_square_quantile((cells - 1.0f64).max(1.0), 1.0 - 1e-6),
                "{fit:?}: {statistic} {cells}"
            );
        }
    }
}
