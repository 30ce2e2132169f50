//! The evidence of targets seen through features of rows that hyperparameters move, and its gradient by one pullback.

use super::inlet::Inlet;
use crate::error::Result;
use crate::feature::FeatureMap;
use crate::linalg::field::{Field, Window};
use crate::linalg::{Eigen, Lower, Tile, TileMut, Workspace};
use crate::model::evidence::{Evidence, Standard};
use crate::model::spectrum::Spectrum;
use crate::parallel::Parallel;
use crate::scalar::Scalar;
use crate::solve::factorise;
use ndarray::{Array2, Axis};

/// Targets that share a noise law: standardised, one column each.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) targets: Array2<f64>,
    /// The noise variance of row `i` is `τ²/wᵢ`; 1 without weights.
    pub(crate) weights: Option<Vec<f64>>,
}

impl Head {
    fn log_weights(&self) -> f64 {
        self.weights.as_ref().map_or(0.0, |weights| weights.iter().map(|w| w.ln()).sum())
    }

    /// The first rows.
    pub(crate) fn first(&self, rows: usize) -> Head {
        Head {
            targets: self.targets.slice(ndarray::s![..rows, ..]).to_owned(),
            weights: self.weights.as_ref().map(|weights| weights[..rows].to_vec()),
        }
    }
}

/// Rows, targets and a map drawn at unit scale.
pub(crate) struct Problem<'a, T: Scalar<Real = f64>> {
    pub(crate) map: &'a dyn FeatureMap<Real = f64, Output = T>,
    pub(crate) inlet: &'a Inlet,
    pub(crate) base: Array2<f64>,
    pub(crate) heads: Vec<Head>,
    /// Whether the noise variance is searched for, or 1 (where the noise is known).
    pub(crate) noisy: bool,
}

/// Evidence of one head, and what its gradient follows from.
struct Solved<T> {
    value: f64,
    /// `α = Σ⁻¹z`, rows by targets.
    alpha: Array2<T>,
    /// `Fᴴα`, features by targets.
    along: Array2<T>,
    /// `Σ⁻¹F`, rows by features.
    pulled: Option<Array2<T>>,
    signal: f64,
    noise: f64,
}

fn tile<T: Scalar>(array: &Array2<T>) -> Tile<'_, T> {
    Tile::new(array.as_slice().expect("standard layout"), array.nrows(), array.ncols())
}

fn tile_mut<T: Scalar>(array: &mut Array2<T>) -> TileMut<'_, T> {
    let (rows, cols) = array.dim();
    TileMut::new(array.as_slice_mut().expect("standard layout"), rows, cols)
}

/// Rows whose products are one task.
const STRIP: usize = 128;

/// `a b`, or `a bᴴ`.
fn product<T: Scalar<Real = f64> + Field<Wide = T>>(a: &Array2<T>, b: &Array2<T>, adjoint: bool) -> Array2<T> {
    let right = if adjoint { Window::from(tile(b)).adjoint() } else { tile(b).into() };
    let mut out = Array2::from_elem((a.nrows(), if adjoint { b.nrows() } else { b.ncols() }), T::ZERO);
    let strips = out.axis_chunks_iter_mut(Axis(0), STRIP).zip(a.axis_chunks_iter(Axis(0), STRIP));
    strips.in_parallel().for_each(|(out, a)| {
        let (rows, cols) = a.dim();
        let a = Tile::new(a.to_slice().expect("whole rows"), rows, cols);
        let width = out.ncols();
        let out = TileMut::new(out.into_slice().expect("whole rows"), rows, width);
        T::product(out, false, 1.0, a.into(), right);
    });
    out
}

/// `aᴴ b` with few columns of `b`.
fn adjoint_product<T: Scalar<Real = f64> + Field<Wide = T>>(a: &Array2<T>, b: &Array2<T>) -> Array2<T> {
    let mut out = Array2::from_elem((a.ncols(), b.ncols()), T::ZERO);
    T::product(tile_mut(&mut out), false, 1.0, Window::from(tile(a)).adjoint(), tile(b).into());
    out
}

/// Side of the blocks in which matrices are transposed.
const BLOCK: usize = 32;

/// `aᴴ`.
fn adjoint<T: Scalar>(a: &Array2<T>) -> Array2<T> {
    let (n, m) = a.dim();
    let mut out = Array2::from_elem((m, n), T::ZERO);
    out.axis_chunks_iter_mut(Axis(0), BLOCK).enumerate().in_parallel().for_each(|(block, mut out)| {
        let first = block * BLOCK;
        for start in (0..n).step_by(BLOCK) {
            for i in start..(start + BLOCK).min(n) {
                for j in 0..out.nrows() {
                    out[[j, i]] = a[[i, first + j]].conj();
                }
            }
        }
    });
    out
}

impl<T: Scalar<Real = f64> + Field<Wide = T>> Problem<'_, T> {
    const KAPPA: f64 = Evidence::<T>::KAPPA;

    fn split<'p>(&self, point: &'p [f64]) -> (&'p [f64], f64, f64) {
        let (own, variances) = point.split_at(self.inlet.free());
        (own, variances[0].exp(), if self.noisy { variances[1].exp() } else { 1.0 })
    }

    /// Features of all rows at a point, and the rows.
    fn features(&self, own: &[f64]) -> Result<(Array2<f64>, Array2<T>)> {
        let moved = self.inlet.rows(&self.base, own);
        let features = self.map.transform(moved.view())?;
        Ok((moved, features))
    }

    /// Features and targets of a head over the roots of its noise.
    fn weighted(&self, head: &Head, features: &Array2<T>) -> (Option<Array2<T>>, Array2<T>) {
        let mut targets = head.targets.mapv(|v| T::from_parts(v, 0.0));
        let Some(weights) = &head.weights else { return (None, targets) };
        let mut features = features.clone();
        for ((mut row, mut target), weight) in features.rows_mut().into_iter().zip(targets.rows_mut()).zip(weights) {
            row.mapv_inplace(|v| v.scale(weight.sqrt()));
            target.mapv_inplace(|v| v.scale(weight.sqrt()));
        }
        (Some(features), targets)
    }

    /// The evidence of one head from its weighted features, by whichever of rows and features are fewer.
    fn solve(
        &self,
        f: &Array2<T>,
        z: &Array2<T>,
        head: &Head,
        variances: (f64, f64),
        slopes: bool,
    ) -> Result<Solved<T>> {
        let ((n, dim), outputs) = (f.dim(), z.ncols());
        let (signal, noise) = variances;
        if n < dim {
            let mut matrix = Lower::zeros(n)?;
            matrix.add_kernel(tile(f));
            matrix.scale(signal);
            matrix.add_to_diagonal(noise);
            let (factor, jitter, _) = factorise(matrix)?;
            let noise = noise + jitter;
            let mut alpha = z.clone();
            factor.solve_in_place(tile_mut(&mut alpha))?;
            let turn = if T::IS_COMPLEX { std::f64::consts::PI } else { std::f64::consts::TAU };
            let misfit: f64 = z.iter().zip(&alpha).map(|(z, a)| (z.conj() * *a).re()).sum();
            let volume = factor.log_determinant() + n as f64 * turn.ln() - head.log_weights();
            let value = -Self::KAPPA * (misfit + outputs as f64 * volume);
            let along = adjoint_product(f, &alpha);
            let pulled = if slopes {
                let mut pulled = f.clone();
                factor.solve_in_place(tile_mut(&mut pulled))?;
                Some(pulled)
            } else {
                None
            };
            return Ok(Solved { value, alpha, along, pulled, signal, noise });
        }
        let mut gram = Lower::zeros(dim)?;
        gram.add_gram(tile(f), &mut Workspace::new());
        let cross = adjoint_product(f, z);
        let squares = z.columns().into_iter().map(|z| z.iter().map(|v| v.abs_sq()).sum()).collect();
        let standard = Standard::of_search(gram, cross, squares, n as f64, head.log_weights());
        let evidence = standard.evidence(signal, noise)?;
        let noise = evidence.noise;
        let value = evidence.log_likelihood();
        let mut alpha = product(f, &evidence.solved, false);
        let ratio = signal / noise;
        alpha.zip_mut_with(z, |a, z| *a = (*z - a.scale(ratio)).scale(1.0 / noise));
        let along = evidence.solved.mapv(|v| v.scale(1.0 / noise));
        let pulled = if slopes {
            // B is Hermitian: (B⁻¹Fᴴ)ᴴ = FB⁻¹ = τ²Σ⁻¹F.
            let mut columns = adjoint(f);
            evidence.factor.solve_in_place(tile_mut(&mut columns))?;
            let mut pulled = adjoint(&columns);
            pulled.mapv_inplace(|v| v.scale(1.0 / noise));
            Some(pulled)
        } else {
            None
        };
        Ok(Solved { value, alpha, along, pulled, signal, noise })
    }

    /// Log likelihood of the standardised targets and its gradient: in the hyperparameters that act on rows, in the logarithm
    /// of the signal variance, and in that of the noise variance where it is searched for.
    pub(crate) fn evaluate(&self, point: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (own, signal, noise) = self.split(point);
        let (moved, features) = self.features(own)?;
        let mut cotangents = (self.inlet.free() > 0).then(|| Array2::from_elem(features.dim(), T::ZERO));
        let (mut value, mut in_signal, mut in_noise) = (0.0, 0.0, 0.0);
        for head in &self.heads {
            let (weighted, targets) = self.weighted(head, &features);
            let f = weighted.as_ref().unwrap_or(&features);
            let outputs = targets.ncols() as f64;
            let solved = self.solve(f, &targets, head, (signal, noise), true)?;
            let Solved { alpha, along, pulled: Some(pulled), signal, noise, .. } = &solved else { unreachable!() };
            value += solved.value;
            // tr(Σ⁻¹s²FFᴴ): the number of directions that the data determine.
            let trace: f64 = f.iter().zip(pulled).map(|(f, p)| (f.conj() * *p).re()).sum();
            let determined = outputs * signal * trace;
            let explained: f64 = along.iter().map(|v| v.abs_sq()).sum::<f64>() * signal;
            let residual: f64 = alpha.iter().map(|v| v.abs_sq()).sum::<f64>() * noise;
            in_signal += Self::KAPPA * (explained - determined);
            in_noise += Self::KAPPA * (residual - outputs * f.nrows() as f64 + determined);
            let Some(cotangents) = &mut cotangents else { continue };
            // Q = 2κs²(α(Fᴴα)ᴴ - Σ⁻¹F), in the features without weights.
            let mut slope = product(alpha, along, true);
            slope.zip_mut_with(pulled, |to, p| *to -= p.scale(outputs));
            let size = 2.0 * Self::KAPPA * signal;
            let rows = cotangents.rows_mut().into_iter().zip(slope.rows());
            for (i, (mut to, from)) in rows.enumerate() {
                let size = size * head.weights.as_ref().map_or(1.0, |weights| weights[i].sqrt());
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from.scale(size));
            }
        }
        let mut gradient = match cotangents {
            Some(cotangents) => {
                let pulled = self.map.pullback(moved.view(), cotangents.view())?;
                self.inlet.gradient(&self.base, &moved, &pulled)
            }
            None => Vec::new(),
        };
        gradient.push(in_signal);
        if self.noisy {
            gradient.push(in_noise);
        }
        Ok((value, gradient))
    }

    /// What the evidence is as a function of the variances alone.
    pub(crate) fn spectra(&self, own: &[f64]) -> Result<Vec<Spectrum>> {
        let (_, features) = self.features(own)?;
        let mut spectra = Vec::with_capacity(self.heads.len());
        for head in &self.heads {
            let (weighted, targets) = self.weighted(head, &features);
            let f = weighted.as_ref().unwrap_or(&features);
            let ((n, dim), outputs) = (f.dim(), targets.ncols());
            let dual = n < dim;
            let mut matrix = Lower::zeros(n.min(dim))?;
            let sides = if dual {
                matrix.add_kernel(tile(f));
                targets.clone()
            } else {
                matrix.add_gram(tile(f), &mut Workspace::new());
                adjoint_product(f, &targets)
            };
            let (eigen, share) = (Eigen::new(real_form(&matrix)?)?, if T::IS_COMPLEX { 0.5 } else { 1.0 });
            let order = matrix.order();
            let vectors = eigen.vectors();
            let project = |j: usize| -> f64 {
                let v = vectors.row(j);
                let along = |k: usize| -> f64 {
                    let column = sides.column(k);
                    let real: f64 = column.iter().zip(v).map(|(c, v)| c.re() * v).sum();
                    let imaginary: f64 = column.iter().zip(v.iter().skip(order)).map(|(c, v)| c.im() * v).sum();
                    real + imaginary
                };
                (0..outputs).map(|k| along(k) * along(k)).sum()
            };
            let values: Vec<f64> = eigen.values().iter().map(|v| v.max(0.0)).collect();
            let squares = (0..values.len()).map(|j| {
                let square = project(j);
                if dual {
                    square
                } else if values[j] > 1e-12 * values[values.len() - 1] {
                    square / values[j]
                } else {
                    0.0
                }
            });
            let squares: Vec<f64> = squares.collect();
            let total: f64 = targets.iter().map(|z| z.abs_sq()).sum();
            spectra.push(Spectrum {
                rest: (total - squares.iter().sum::<f64>()).max(0.0),
                values,
                squares,
                share,
                rows: n as f64,
                outputs: outputs as f64,
                kappa: Self::KAPPA,
                log_weights: head.log_weights(),
            });
        }
        Ok(spectra)
    }

    /// How much each input of the base matters to the mean of the process at a point: root mean squares of its slopes.
    pub(crate) fn relevances(&self, point: &[f64]) -> Result<Vec<f64>> {
        let (own, signal, noise) = self.split(point);
        let (moved, features) = self.features(own)?;
        let mut squares = vec![0.0; self.base.ncols()];
        for head in &self.heads {
            let (weighted, targets) = self.weighted(head, &features);
            let f = weighted.as_ref().unwrap_or(&features);
            let solved = self.solve(f, &targets, head, (signal, noise), false)?;
            for weights in solved.along.columns() {
                // The mean is Re s²φᵀ(Fᴴα), so that its cotangent is the conjugate.
                let row: Vec<T> = weights.iter().map(|w| w.conj()).collect();
                let cotangents = Array2::from_shape_fn(features.dim(), |(_, j)| row[j]);
                let pulled = self.map.pullback(moved.view(), cotangents.view())?;
                for slopes in self.inlet.to_base(&pulled, own).rows() {
                    squares.iter_mut().zip(slopes).for_each(|(to, slope)| *to += slope * slope);
                }
            }
        }
        Ok(squares.into_iter().map(f64::sqrt).collect())
    }
}

/// A Hermitian matrix as a real symmetric one of twice the order, `[[X, -Y], [Y, X]]`; a real one as it is.
fn real_form<T: Scalar<Real = f64>>(matrix: &Lower<T>) -> Result<Lower<f64>> {
    let n = matrix.order();
    let mut out = Lower::zeros(if T::IS_COMPLEX { 2 * n } else { n })?;
    for i in 0..n {
        for (j, value) in matrix.row(i).iter().enumerate() {
            out.row_mut(i)[j] = value.re();
            if T::IS_COMPLEX {
                out.row_mut(n + i)[n + j] = value.re();
                out.row_mut(n + i)[j] = value.im();
                out.row_mut(n + j)[i] = -value.im();
            }
        }
    }
    Ok(out)
}
