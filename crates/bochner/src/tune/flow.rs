//! The gradient of held-out error in frequencies, amplitudes and penalty.

use crate::error::{Error, Result, check_dim};
use crate::feature::of_pairs;
use crate::linalg::gemm::{matmul_nn, matmul_nt};
use crate::linalg::{Cholesky, Factor, Lower, Tile, TileMut, Workspace, cos_sin};
use crate::parallel::Parallel;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, Axis};

/// Rows whose sums are taken by one task.
const PIECE: usize = 256;

/// Rows with their targets.
#[derive(Debug, Clone)]
pub(super) struct Part<R> {
    pub(super) x: Array2<R>,
    pub(super) y: Array2<R>,
}

impl<R: Real> Part<R> {
    pub(super) fn new(x: ArrayView2<'_, R>, y: ArrayView2<'_, R>) -> Self {
        Part { x: x.as_standard_layout().into_owned(), y: y.as_standard_layout().into_owned() }
    }

    pub(super) fn select(&self, rows: &[usize]) -> Self {
        Part { x: self.x.select(Axis(0), rows), y: self.y.select(Axis(0), rows) }
    }

    pub(super) fn rows(&self) -> usize {
        self.x.nrows()
    }
}

/// `φ(x) = (aⱼ cos ωⱼᵀx)ⱼ, then (aⱼ sin ωⱼᵀx)ⱼ`.
#[derive(Debug, Clone)]
pub(super) struct Waves {
    /// One frequency a row.
    pub(super) frequencies: Array2<f64>,
    pub(super) amplitudes: Vec<f64>,
}

fn tile<R: Real>(matrix: &Array2<R>) -> Tile<'_, R> {
    Tile::new(matrix.as_slice().expect("standard layout"), matrix.nrows(), matrix.ncols())
}

fn tile_mut<R: Real>(matrix: &mut Array2<R>) -> TileMut<'_, R> {
    let (rows, cols) = matrix.dim();
    TileMut::new(matrix.as_slice_mut().expect("standard layout"), rows, cols)
}

impl Waves {
    fn len(&self) -> usize {
        self.amplitudes.len()
    }

    fn features<R: Real>(&self, x: &Array2<R>) -> Result<Array2<R>> {
        let (n, m) = (x.nrows(), self.len());
        check_dim("number of columns", self.frequencies.ncols(), x.ncols())?;
        let mut phases = Array2::from_elem((n, m), R::ZERO);
        matmul_nt(tile(x), tile(&self.frequencies.mapv(R::from_f64)), tile_mut(&mut phases))?;
        let amplitudes: Vec<R> = self.amplitudes.iter().map(|a| R::from_f64(*a)).collect();
        let mut out = Array2::from_elem((n, 2 * m), R::ZERO);
        let rows = out.axis_chunks_iter_mut(Axis(0), PIECE).zip(phases.axis_chunks_iter(Axis(0), PIECE));
        rows.in_parallel().for_each(|(mut out, phases)| {
            for (mut row, phases) in out.rows_mut().into_iter().zip(phases.rows()) {
                let row = row.as_slice_mut().expect("standard layout");
                let (cos, sin) = row.split_at_mut(m);
                cos_sin(phases.as_slice().expect("standard layout"), Factor::Same(R::ONE), R::ONE, cos, sin);
                for half in [cos, sin] {
                    half.iter_mut().zip(&amplitudes).for_each(|(v, a)| *v *= *a);
                }
            }
        });
        Ok(out)
    }
}

/// Means of columns, summed in double precision.
fn means<R: Real>(matrix: &Array2<R>) -> Vec<f64> {
    let pieces = matrix.axis_chunks_iter(Axis(0), PIECE).in_parallel().map(|piece| {
        let mut sums = vec![R::ZERO; piece.ncols()];
        piece.rows().into_iter().for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += *v));
        sums
    });
    let mut sums = vec![0.0; matrix.ncols()];
    pieces.iter().for_each(|piece| sums.iter_mut().zip(piece).for_each(|(sum, v)| *sum += Real::to_f64(*v)));
    let count = matrix.nrows().max(1) as f64;
    sums.into_iter().map(|sum| sum / count).collect()
}

fn subtract<R: Real>(matrix: &mut Array2<R>, means: &[f64]) {
    let means: Vec<R> = means.iter().map(|v| R::from_f64(*v)).collect();
    matrix.axis_chunks_iter_mut(Axis(0), PIECE).in_parallel().for_each(|mut piece| {
        for mut row in piece.rows_mut() {
            row.iter_mut().zip(&means).for_each(|(v, mean)| *v -= *mean);
        }
    });
}

/// `zᵀy`, one row per column of `z`.
fn transposed_product<R: Real>(z: &Array2<R>, y: &Array2<R>) -> Array2<f64> {
    let (d, outputs) = (z.ncols(), y.ncols());
    let pieces = z.axis_chunks_iter(Axis(0), PIECE).zip(y.axis_chunks_iter(Axis(0), PIECE));
    let pieces = pieces.in_parallel().map(|(z, y)| {
        let mut sums = vec![R::ZERO; outputs * d];
        for (z, y) in z.rows().into_iter().zip(y.rows()) {
            let z = z.to_slice().expect("standard layout");
            for (sums, y) in sums.chunks_exact_mut(d).zip(y) {
                sums.iter_mut().zip(z).for_each(|(sum, z)| *sum += *y * *z);
            }
        }
        sums
    });
    let mut out = Array2::zeros((d, outputs));
    for piece in pieces {
        for (k, sums) in piece.chunks_exact(d).enumerate() {
            out.column_mut(k).iter_mut().zip(sums).for_each(|(to, sum)| *to += Real::to_f64(*sum));
        }
    }
    out
}

/// Features about the means of their support, the sums over them, and the targets likewise.
struct Sums<R> {
    z: Array2<R>,
    y: Array2<R>,
    feature_means: Vec<f64>,
    target_means: Vec<f64>,
    gram: Lower<f64>,
    cross: Array2<f64>,
}

impl<R: Real> Sums<R> {
    fn new(waves: &Waves, part: &Part<R>) -> Result<Self> {
        let (mut z, mut y) = (waves.features(&part.x)?, part.y.clone());
        let (feature_means, target_means) = (means(&z), means(&y));
        subtract(&mut z, &feature_means);
        subtract(&mut y, &target_means);
        let mut gram = Lower::zeros(z.ncols())?;
        gram.add_gram(tile(&z), &mut Workspace::new());
        crate::interrupt::check()?;
        let cross = transposed_product(&z, &y);
        Ok(Sums { z, y, feature_means, target_means, gram, cross })
    }

    /// The factor of `gram + penalty`; where rounding has made that indefinite, a larger penalty is taken and returned.
    fn factor(&self, mut penalty: f64) -> Result<(Cholesky<f64>, f64)> {
        loop {
            let mut matrix = self.gram.clone();
            matrix.add_to_diagonal(penalty);
            match Cholesky::new(matrix) {
                Ok(factor) => return Ok((factor, penalty)),
                Err(failed) => {
                    crate::interrupt::check()?;
                    let larger = (10.0 * penalty).max(failed.suggested_penalty());
                    if !larger.is_finite() {
                        return Err(Error::overflow());
                    }
                    penalty = larger;
                }
            }
        }
    }

    /// Other rows, about the same means.
    fn about(&self, waves: &Waves, part: &Part<R>) -> Result<(Array2<R>, Array2<R>)> {
        let (mut z, mut y) = (waves.features(&part.x)?, part.y.clone());
        subtract(&mut z, &self.feature_means);
        subtract(&mut y, &self.target_means);
        Ok((z, y))
    }
}

fn solved(factor: &Cholesky<f64>, mut right: Array2<f64>) -> Result<Array2<f64>> {
    factor.solve_in_place(tile_mut(&mut right))?;
    Ok(right)
}

/// Coefficients in the precision of the rows, one output a row.
fn rows_of<R: Real>(coefficients: &Array2<f64>) -> Array2<R> {
    coefficients.t().mapv(R::from_f64).as_standard_layout().into_owned()
}

fn predicted<R: Real>(z: &Array2<R>, coefficients: &Array2<R>) -> Result<Array2<R>> {
    let mut out = Array2::from_elem((z.nrows(), coefficients.nrows()), R::ZERO);
    matmul_nt(tile(z), tile(coefficients), tile_mut(&mut out))?;
    Ok(out)
}

fn mean_square<R: Real>(values: &Array2<R>) -> f64 {
    values.iter().map(|v| Real::to_f64(*v).powi(2)).sum::<f64>() / values.len().max(1) as f64
}

/// Derivatives of the logarithm of the mean squared error of `query` rows, predicted from `support` rows.
#[derive(Debug)]
pub(super) struct Slopes {
    #[cfg(test)]
    pub(super) loss: f64,
    pub(super) frequencies: Array2<f64>,
    pub(super) log_amplitudes: Vec<f64>,
    pub(super) log_penalty: f64,
}

/// One step of the flow: with `A = ZᵀZ + αI` of the support rows, `w = A⁻¹Zᵀy`, the residuals `r` of the query rows,
/// `g = -2r/(N mean r²)` and `u = A⁻¹Z_qᵀg`, the loss `ln mean r²` has the derivatives `g wᵀ` in the query's features,
/// `(y - Zw)uᵀ - (Zu)wᵀ` in those of the support, and `-α⟨u, w⟩` in `ln α`. Features and targets are taken about the means of
/// the support, through which the query's derivatives reach it too.
pub(super) fn slopes<R: Real>(waves: &Waves, support: &Part<R>, query: &Part<R>, penalty: f64) -> Result<Slopes> {
    let sums = Sums::new(waves, support)?;
    let (factor, penalty) = sums.factor(penalty)?;
    let w = solved(&factor, sums.cross.clone())?;
    let w_rows = rows_of::<R>(&w);
    let (z_query, y_query) = sums.about(waves, query)?;
    let residuals = y_query - &predicted(&z_query, &w_rows)?;
    let mean = mean_square(&residuals).max(f64::MIN_POSITIVE);
    let size = R::from_f64(-2.0 / (residuals.len() as f64 * mean));
    let g = residuals.mapv(|r| r * size);
    let u = solved(&factor, transposed_product(&z_query, &g))?;
    let u_rows = rows_of::<R>(&u);
    let left = &sums.y - &predicted(&sums.z, &w_rows)?;
    let mut images = predicted(&sums.z, &u_rows)?;
    let shift: Vec<f64> = means(&g).iter().map(|v| -v * query.rows() as f64 / support.rows() as f64).collect();
    subtract(&mut images, &shift);
    images.mapv_inplace(|v| -v);
    let mut frequencies = Array2::zeros(waves.frequencies.dim());
    let mut log_amplitudes = vec![0.0; waves.len()];
    let mut add = |x: &Array2<R>, z: &Array2<R>, terms: &[(&Array2<R>, &Array2<R>)]| -> Result<()> {
        let (phases, amplitudes) = pulled(z, &sums.feature_means, terms);
        let columns = x.t().as_standard_layout().into_owned();
        let mut product = Array2::from_elem((x.ncols(), waves.len()), R::ZERO);
        matmul_nn(tile(&columns), tile(&phases), tile_mut(&mut product))?;
        frequencies.zip_mut_with(&product.t(), |to, v| *to += Real::to_f64(*v));
        log_amplitudes.iter_mut().zip(amplitudes).for_each(|(to, v)| *to += v);
        Ok(())
    };
    add(&support.x, &sums.z, &[(&left, &u_rows), (&images, &w_rows)])?;
    add(&query.x, &z_query, &[(&g, &w_rows)])?;
    let log_penalty = -penalty * u.iter().zip(&w).map(|(u, w)| u * w).sum::<f64>();
    Ok(Slopes {
        #[cfg(test)]
        loss: mean.ln(),
        frequencies,
        log_amplitudes,
        log_penalty,
    })
}

/// Derivatives in phases, one row a row, and in the logarithms of the amplitudes, of features whose derivatives are the sums of
/// products `left right`; `z` are features about `means`.
fn pulled<R: Real>(z: &Array2<R>, means: &[f64], terms: &[(&Array2<R>, &Array2<R>)]) -> (Array2<R>, Vec<f64>) {
    let (n, m) = (z.nrows(), z.ncols() / 2);
    let means: Vec<R> = means.iter().map(|v| R::from_f64(*v)).collect();
    let mut phases = Array2::from_elem((n, m), R::ZERO);
    let pieces = phases.axis_chunks_iter_mut(Axis(0), PIECE).enumerate();
    let sums = pieces.in_parallel().map(|(piece, mut phases)| {
        let (mut slopes, mut sums) = (vec![R::ZERO; 2 * m], vec![R::ZERO; m]);
        let mut waves = vec![R::ZERO; 2 * m];
        for (k, mut to) in phases.rows_mut().into_iter().enumerate() {
            let i = piece * PIECE + k;
            slopes.fill(R::ZERO);
            for (left, right) in terms {
                for (&weight, right) in left.row(i).iter().zip(right.rows()) {
                    let right = right.to_slice().expect("standard layout");
                    slopes.iter_mut().zip(right).for_each(|(to, v)| *to += weight * *v);
                }
            }
            waves.iter_mut().zip(z.row(i).iter().zip(&means)).for_each(|(to, (z, mean))| *to = *z + *mean);
            of_pairs(&waves, &slopes, to.as_slice_mut().expect("standard layout"), &mut sums);
        }
        sums
    });
    let mut all = vec![0.0; m];
    sums.iter().for_each(|sums| all.iter_mut().zip(sums).for_each(|(to, v)| *to += Real::to_f64(*v)));
    (phases, all)
}

/// How much predictions change with each column: squared derivatives, summed over outputs, in the mean over the rows.
pub(super) fn importances<R: Real>(waves: &Waves, part: &Part<R>, penalty: f64) -> Result<Vec<f64>> {
    let sums = Sums::new(waves, part)?;
    let w = solved(&sums.factor(penalty)?.0, sums.cross.clone())?;
    let (n, m, d) = (part.rows(), waves.len(), part.x.ncols());
    let means: Vec<R> = sums.feature_means.iter().map(|v| R::from_f64(*v)).collect();
    let frequencies = waves.frequencies.mapv(R::from_f64);
    let mut found = vec![0.0; d];
    let (mut slopes, mut gradients) = (Array2::from_elem((n, m), R::ZERO), Array2::from_elem((n, d), R::ZERO));
    for output in rows_of::<R>(&w).rows() {
        for (mut to, z) in slopes.rows_mut().into_iter().zip(sums.z.rows()) {
            for j in 0..m {
                let (cos, sin) = (z[j] + means[j], z[m + j] + means[m + j]);
                to[j] = output[m + j] * cos - output[j] * sin;
            }
        }
        matmul_nn(tile(&slopes), tile(&frequencies), tile_mut(&mut gradients))?;
        for row in gradients.rows() {
            found.iter_mut().zip(row).for_each(|(sum, g)| *sum += Real::to_f64(*g).powi(2) / n as f64);
        }
    }
    Ok(found)
}

/// The best of some penalties and its mean squared error on `query` rows, learned from `support` rows.
pub(super) fn judge<R: Real>(
    waves: &Waves,
    support: &Part<R>,
    query: &Part<R>,
    penalties: &[f64],
) -> Result<(f64, f64)> {
    let sums = Sums::new(waves, support)?;
    let (z, y) = sums.about(waves, query)?;
    let mut best = (f64::INFINITY, penalties[0]);
    for &penalty in penalties {
        let (factor, penalty) = sums.factor(penalty)?;
        let w = rows_of::<R>(&solved(&factor, sums.cross.clone())?);
        let loss = mean_square(&(&y - &predicted(&z, &w)?));
        if loss < best.0 {
            best = (loss, penalty);
        }
    }
    Ok(best)
}

/// The sums over many rows of features, from which ridge regressions with other amplitudes are made.
#[derive(Debug)]
pub(super) struct Balance<R> {
    waves: Waves,
    gram: Lower<f64>,
    cross: Array2<f64>,
    feature_means: Vec<f64>,
    target_means: Vec<f64>,
    query: Part<R>,
}

/// Rows whose features are held at a time.
const BLOCK: usize = 2048;

impl<R: Real> Balance<R> {
    pub(super) fn new(
        waves: &Waves,
        support: (ArrayView2<'_, R>, ArrayView2<'_, R>),
        query: (ArrayView2<'_, R>, ArrayView2<'_, R>),
    ) -> Result<Self> {
        let (rows, targets) = support;
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        let d = 2 * waves.len();
        let mut gram = Lower::zeros(d)?;
        let mut cross = Array2::zeros((d, targets.ncols()));
        let (mut sums, mut work) = (vec![0.0; d], Workspace::new());
        // Sums are taken about a point near the means, and moved there at the end.
        let (mut point, mut target_means) = (Vec::new(), Vec::new());
        for (x, y) in rows.axis_chunks_iter(Axis(0), BLOCK).zip(targets.axis_chunks_iter(Axis(0), BLOCK)) {
            crate::interrupt::check()?;
            let mut z = waves.features(&x.as_standard_layout().into_owned())?;
            if point.is_empty() {
                point = means(&z);
                target_means = means(&targets.as_standard_layout().into_owned());
            }
            subtract(&mut z, &point);
            let mut y = y.as_standard_layout().into_owned();
            subtract(&mut y, &target_means);
            gram.add_gram(tile(&z), &mut work);
            cross += &transposed_product(&z, &y);
            sums.iter_mut().zip(means(&z)).for_each(|(sum, mean)| *sum += mean * z.nrows() as f64);
        }
        let count = rows.nrows().max(1) as f64;
        let moves: Vec<f64> = sums.iter().map(|sum| sum / count).collect();
        gram.subtract_pair(&moves, &sums.iter().map(|sum| 0.5 * sum).collect::<Vec<_>>())?;
        // Targets have sum zero about their means: the products with them stay.
        let feature_means = point.iter().zip(&moves).map(|(point, by)| point + by).collect();
        let query = Part::new(query.0, query.1);
        Ok(Balance { waves: waves.clone(), gram, cross, feature_means, target_means, query })
    }

    /// The mean squared error of the query where amplitudes are multiplied with `sizes`, one a frequency.
    pub(super) fn loss(&self, sizes: &[f64], penalty: f64) -> Result<f64> {
        let mut penalty = penalty;
        let factor = loop {
            let mut matrix = self.gram.clone();
            for (j, size) in sizes.iter().chain(sizes).enumerate() {
                matrix.row_mut(j)[j] += penalty / (size * size);
            }
            match Cholesky::new(matrix) {
                Ok(factor) => break factor,
                Err(failed) => {
                    crate::interrupt::check()?;
                    let larger = (10.0 * penalty).max(failed.suggested_penalty());
                    if !larger.is_finite() {
                        return Err(Error::overflow());
                    }
                    penalty = larger;
                }
            }
        };
        let w = rows_of::<R>(&solved(&factor, self.cross.clone())?);
        let mut sum = 0.0;
        let blocks = self.query.x.axis_chunks_iter(Axis(0), BLOCK).zip(self.query.y.axis_chunks_iter(Axis(0), BLOCK));
        for (x, y) in blocks {
            let mut z = self.waves.features(&x.to_owned())?;
            let mut y = y.to_owned();
            subtract(&mut z, &self.feature_means);
            subtract(&mut y, &self.target_means);
            let left = y - &predicted(&z, &w)?;
            sum += mean_square(&left) * left.len() as f64;
        }
        Ok(sum / self.query.y.len().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(n: usize, shift: f64) -> Part<f64> {
        let x = Array2::from_shape_fn((n, 3), |(i, k)| ((i as f64 + shift) * (1.3 + k as f64)).sin());
        let y = Array2::from_shape_fn((n, 2), |(i, k)| 0.7 + (x[[i, 0]] * 2.0 + k as f64).cos() + x[[i, 2]]);
        Part { x, y }
    }

    #[test]
    fn slopes_agree_with_finite_differences() {
        let waves = Waves {
            frequencies: Array2::from_shape_fn((5, 3), |(j, k)| (2.0 * j as f64 + k as f64).cos()),
            amplitudes: vec![0.5, 0.8, 0.3, 1.1, 0.6],
        };
        let (support, query, penalty) = (part(300, 0.1), part(270, 0.6), 0.3f64);
        let found = slopes(&waves, &support, &query, penalty).unwrap();
        let at = |waves: &Waves, log_penalty: f64| {
            judge(waves, &support, &query, &[penalty * log_penalty.exp()]).unwrap().0.ln()
        };
        assert!((found.loss - at(&waves, 0.0)).abs() < 1e-12);
        // The central difference of four points: h⁴ times a fifth derivative, and rounding of some thousand sums over h.
        let h = 2e-4;
        let slope = |at: &dyn Fn(f64) -> f64| (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * (1.0 + a.abs()), "{a} {b}");
        for j in 0..5 {
            close(
                found.log_amplitudes[j],
                slope(&|step| {
                    let mut moved = waves.clone();
                    moved.amplitudes[j] *= step.exp();
                    at(&moved, 0.0)
                }),
            );
            for k in 0..3 {
                close(
                    found.frequencies[[j, k]],
                    slope(&|step| {
                        let mut moved = waves.clone();
                        moved.frequencies[[j, k]] += step;
                        at(&moved, 0.0)
                    }),
                );
            }
        }
        close(found.log_penalty, slope(&|step| at(&waves, step)));
    }

    /// Features of other amplitudes with a penalty are the same features with a penalty each.
    #[test]
    fn other_amplitudes_are_judged_from_one_gram_matrix() {
        let waves = Waves {
            frequencies: Array2::from_shape_fn((7, 3), |(j, k)| (2.0 * j as f64 + k as f64).cos()),
            amplitudes: vec![0.5, 0.8, 0.3, 1.1, 0.6, 0.9, 0.4],
        };
        // More rows than a block, whose means are not those of the first block.
        let (support, query) = (part(BLOCK + 700, 0.1), part(270, 0.6));
        let views = |part: &Part<f64>| (part.x.clone(), part.y.clone());
        let ((x, y), (held_x, held_y)) = (views(&support), views(&query));
        let balance = Balance::new(&waves, (x.view(), y.view()), (held_x.view(), held_y.view())).unwrap();
        for (penalty, factor) in [(0.3, 1.0), (2.0, 0.5), (0.01, 4.0)] {
            let sizes: Vec<f64> = (0..7).map(|j| if j < 4 { 1.0 } else { factor }).collect();
            let amplitudes = waves.amplitudes.iter().zip(&sizes).map(|(a, size)| a * size).collect();
            let scaled = Waves { amplitudes, ..waves.clone() };
            let expected = judge(&scaled, &support, &query, &[penalty]).unwrap().0;
            let found = balance.loss(&sizes, penalty).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn importances_are_mean_squared_slopes_of_predictions() {
        let waves = Waves {
            frequencies: Array2::from_shape_fn((6, 3), |(j, k)| (3.0 * j as f64 + k as f64).sin()),
            amplitudes: vec![0.5; 6],
        };
        let (part, penalty) = (part(80, 0.2), 0.1);
        let found = importances(&waves, &part, penalty).unwrap();
        let sums = Sums::new(&waves, &part).unwrap();
        let w = rows_of::<f64>(&solved(&sums.factor(penalty).unwrap().0, sums.cross.clone()).unwrap());
        let h = 1e-4;
        for k in 0..3 {
            let moved = |step: f64| {
                let mut other = part.clone();
                other.x.column_mut(k).mapv_inplace(|v| v + step);
                predicted(&sums.about(&waves, &other).unwrap().0, &w).unwrap()
            };
            // The central difference is off by h² times a third derivative.
            let slopes = (moved(h) - moved(-h)) / (2.0 * h);
            let measured = slopes.iter().map(|v| v * v).sum::<f64>() / 80.0;
            assert!((found[k] - measured).abs() < 1e-6 * (1.0 + measured), "{k}: {} {measured}", found[k]);
        }
    }
}
