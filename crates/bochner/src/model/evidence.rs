//! What Gaussian processes on features share: standardised sums, the factor of `B = ρFᴴWF + I`, images of rows under it.

use crate::accumulate::Moments;
use crate::error::{Error, Result, check_dim};
use crate::feature::FeatureMap;
use crate::linalg::field::Field;
use crate::linalg::{Cholesky, Lower, TileMut};
use crate::parallel::Parallel;
use crate::persist::{Stored, Tensor, Values, collect, malformed, shape, spread, triangle, triangle_len};
use crate::rows::check_finite;
use crate::scalar::Scalar;
use crate::solve::factorise_sums;
use ndarray::{Array2, ArrayView2, Axis, s};

/// The double-precision numbers behind the features of a map.
pub(crate) type Wide<M> = <<M as FeatureMap>::Output as Field>::Wide;

/// Rows whose images under the factor are held at once.
const PIECE: usize = 512;

/// Sums over features and standardised targets `z = (y - ȳ)/σ`.
#[derive(Debug)]
pub(crate) struct Standard<W: Scalar> {
    /// `FᴴWF`.
    pub(crate) gram: Lower<W>,
    /// `FᴴWz`.
    pub(crate) cross: Array2<W>,
    /// `Σ wᵢ zᵢ²` for each target.
    pub(crate) squares: Vec<f64>,
    /// `ȳ`.
    pub(crate) means: Vec<f64>,
    /// `σ`: 1 where targets are constant or are not to be scaled.
    pub(crate) scales: Vec<f64>,
    /// Number of rows.
    pub(crate) count: f64,
    /// `Σ ln wᵢ`.
    pub(crate) log_weights: f64,
    /// [`Moments::rounding`].
    rounding: f64,
}

impl<W: Scalar<Real = f64>> Standard<W> {
    /// Sums over features and targets that are standardised already, in double precision.
    pub(crate) fn of_search(gram: Lower<W>, cross: Array2<W>, squares: Vec<f64>, count: f64, log_weights: f64) -> Self {
        let outputs = squares.len();
        let (means, scales) = (vec![0.0; outputs], vec![1.0; outputs]);
        Standard { gram, cross, squares, means, scales, count, log_weights, rounding: 0.0 }
    }

    /// Sums over features as they are, and over targets about their means, over their standard deviations where `scaled`.
    pub(crate) fn new(mut moments: Moments<W>, scaled: bool) -> Result<Self> {
        let rounding = moments.rounding();
        if moments.totals.target_sums.is_empty() {
            return Err(Error::parameter("targets", "at least one column", "none"));
        }
        if moments.totals.count == 0 || moments.totals.weight_sum <= 0.0 {
            return Err(Error::parameter("rows", "at least one row with a positive weight", "none"));
        }
        let means = moments.totals.means();
        let before = moments.totals.target_squares.clone();
        moments.move_to(&vec![W::ZERO; moments.dim()], &means)?;
        let Moments { gram, mut cross, totals, .. } = moments;
        let mut squares = totals.target_squares;
        let scale = |(square, before): (&f64, &f64)| {
            // Constant targets leave a spread of rounding errors at most.
            let varies = *square > 1e-14 * before;
            if scaled && varies { (square / totals.weight_sum).sqrt() } else { 1.0 }
        };
        let scales: Vec<f64> = squares.iter().zip(&before).map(scale).collect();
        for mut row in cross.rows_mut() {
            row.iter_mut().zip(&scales).for_each(|(value, scale)| *value = value.scale(1.0 / scale));
        }
        squares.iter_mut().zip(&scales).for_each(|(square, scale)| *square /= scale * scale);
        let finite = |v: W| v.re().is_finite() && v.im().is_finite();
        let numbers = squares.iter().chain(&means).all(|v| v.is_finite());
        if !(numbers && cross.iter().all(|&v| finite(v)) && gram.diagonal().all(finite)) {
            return Err(Error::overflow());
        }
        let (count, log_weights) = (totals.count as f64, totals.log_weight_sum);
        Ok(Standard { gram, cross, squares, means, scales, count, log_weights, rounding })
    }

    /// The evidence for signal variance `s²` and noise variance `τ²`, in the memory of the sums.
    ///
    /// A shift `δ` that rounding makes necessary is noise: `ρG + (1 + δ)I = (1 + δ)(ρ'G + I)` with `ρ' = s²/τ²(1 + δ)`.
    pub(crate) fn evidence(self, signal: f64, noise: f64) -> Result<Evidence<W>> {
        let ratio = signal / noise;
        let Standard { mut gram, cross, squares, count, log_weights, rounding, .. } = self;
        gram.scale(ratio);
        gram.add_to_diagonal(1.0);
        let (mut factor, jitter, condition) = factorise_sums(gram, ratio * rounding).map_err(|error| match error {
            // In units of `ρG + I`; a penalty is the ratio of the variances.
            Error::NotPositiveDefinite { pivot, suggested_penalty } => {
                Error::not_positive_definite(pivot, (1.0 + suggested_penalty) / ratio)
            }
            other => other,
        })?;
        let noise = noise * (1.0 + jitter);
        if jitter > 0.0 {
            let norm_one = factor.norm_one() / (1.0 + jitter);
            let mut lower = factor.factor().clone();
            lower.scale((1.0 + jitter).sqrt().recip());
            factor = Cholesky::from_factor(lower, norm_one)?;
        }
        let mut solved = cross.clone();
        let (dim, outputs) = solved.dim();
        factor.solve_in_place(TileMut::new(solved.as_slice_mut().expect("standard layout"), dim, outputs))?;
        // cᴴB⁻¹c for each target.
        let mut quadratic = vec![0.0; outputs];
        for (c, b) in cross.rows().into_iter().zip(solved.rows()) {
            for k in 0..outputs {
                quadratic[k] += (c[k].conj() * b[k]).re();
            }
        }
        Ok(Evidence { factor, solved, jitter, condition, quadratic, squares, signal, noise, count, log_weights })
    }

    /// The signal and noise variance at which the evidence is largest near those given.
    ///
    /// For a ratio of both the best noise variance is known; the ratio is bracketed, and found by parabolas.
    ///
    /// # Errors
    /// As [`evidence`](Self::evidence), where no ratio is any better.
    pub(crate) fn likeliest(&self, signal: f64, noise: f64) -> Result<(f64, f64)> {
        let size = self.count * self.squares.len() as f64;
        likeliest_ratio(signal, noise, &mut |ratio| {
            let copy = Standard {
                gram: self.gram.clone(),
                cross: self.cross.clone(),
                squares: self.squares.clone(),
                means: Vec::new(),
                scales: Vec::new(),
                ..*self
            };
            let evidence = copy.evidence(ratio, 1.0)?;
            let misfit = evidence.misfits().sum::<f64>() / size;
            let noise = misfit.max(LEAST_NOISE);
            let gain = Evidence::<W>::KAPPA * size * (misfit - misfit / noise - noise.ln());
            Ok((evidence.log_likelihood() + gain, noise))
        })
    }
}

/// The signal and noise variance at which an evidence is largest near those given. For a ratio of both `at` tells the evidence at
/// the best noise variance, and that variance; the ratio is bracketed, and found by parabolas.
pub(crate) fn likeliest_ratio(
    signal: f64,
    noise: f64,
    at: &mut dyn FnMut(f64) -> Result<(f64, f64)>,
) -> Result<(f64, f64)> {
    let mut at = |log_ratio: f64| match at(log_ratio.exp()) {
        Err(Error::NotPositiveDefinite { .. }) => Ok((f64::NEG_INFINITY, 1.0)),
        found => found,
    };
    let middle = (signal / noise).ln();
    let (mut place, mut here) = (middle, at(middle)?);
    let mut step = BRACKET;
    let (mut low, mut high) = (at(place - step)?, at(place + step)?);
    for _ in 0..10 {
        if low.0 <= here.0 && high.0 <= here.0 {
            break;
        }
        if high.0 > low.0 {
            (place, low, here) = (place + step, here, high);
            high = at(place + step)?;
        } else {
            (place, high, here) = (place - step, here, low);
            low = at(place - step)?;
        }
    }
    for _ in 0..3 {
        // The top of the parabola through three places at equal distances.
        let bend = low.0 - 2.0 * here.0 + high.0;
        let shift = 0.5 * step * (low.0 - high.0) / bend;
        if !(bend < 0.0 && shift.is_finite()) || shift.abs() < 0.02 {
            break;
        }
        let top = at(place + shift.clamp(-step, step))?;
        if top.0 > here.0 {
            (place, here) = (place + shift.clamp(-step, step), top);
        }
        step *= 0.5;
        (low, high) = (at(place - step)?, at(place + step)?);
    }
    if !here.0.is_finite() {
        return Ok((signal, noise));
    }
    Ok((place.exp() * here.1, here.1))
}

/// Least noise variance that a search ends at, in units of the variance of the targets.
const LEAST_NOISE: f64 = 1e-9;

/// Distance of the first places in the logarithm of a ratio of variances.
const BRACKET: f64 = 0.7;

/// A factor of variances within twelve digits of the mean square of the targets, which is their unit.
pub(crate) fn level(factor: f64, square: f64) -> f64 {
    let unit = if square > 0.0 { square } else { 1.0 };
    factor.clamp(1e-12 * unit, 1e12 * unit)
}

/// The factor of `B = ρFᴴWF + I`, `ρ = s²/τ²`, and what follows from it.
#[derive(Debug)]
pub(crate) struct Evidence<W: Scalar> {
    pub(crate) factor: Cholesky<W>,
    /// `B⁻¹FᴴWz`, one column per target.
    pub(crate) solved: Array2<W>,
    pub(crate) jitter: f64,
    pub(crate) condition: f64,
    quadratic: Vec<f64>,
    squares: Vec<f64>,
    signal: f64,
    /// With what a shift has added.
    pub(crate) noise: f64,
    count: f64,
    log_weights: f64,
}

impl<W: Scalar<Real = f64>> Evidence<W> {
    /// One half for real normal laws, 1 for complex ones, whose density has `det Σ` in place of its root.
    pub(crate) const KAPPA: f64 = if W::IS_COMPLEX { 1.0 } else { 0.5 };

    /// `zᴴΣ⁻¹z` of each target.
    fn misfits(&self) -> impl Iterator<Item = f64> + '_ {
        let ratio = self.signal / self.noise;
        self.squares.iter().zip(&self.quadratic).map(move |(z, q)| (z - ratio * q) / self.noise)
    }

    /// For each target the factor of both variances at which its likelihood is largest: `zᴴΣ⁻¹z/n`.
    pub(crate) fn best_factors(&self) -> Vec<f64> {
        let factor = |(misfit, square)| level(misfit / self.count, square / self.count);
        self.misfits().zip(&self.squares).map(factor).collect()
    }

    /// What factors of both variances, one for each target, add to [`log_likelihood`](Self::log_likelihood).
    pub(crate) fn gain(&self, factors: &[f64]) -> f64 {
        let gain = |(misfit, factor): (f64, &f64)| misfit * (1.0 - 1.0 / factor) - self.count * factor.ln();
        Self::KAPPA * self.misfits().zip(factors).map(gain).sum::<f64>()
    }

    /// `ln p(z)` of the standardised targets, summed over them.
    pub(crate) fn log_likelihood(&self) -> f64 {
        let outputs = self.squares.len() as f64;
        let turn = if W::IS_COMPLEX { std::f64::consts::PI } else { std::f64::consts::TAU };
        let misfit: f64 = self.misfits().sum();
        let volume = self.factor.log_determinant() + self.count * (self.noise.ln() + turn.ln()) - self.log_weights;
        -Self::KAPPA * (misfit + outputs * volume)
    }
}

/// `conj(φ)` of some rows as columns, in double precision.
pub(crate) fn conjugate_columns<M: FeatureMap + ?Sized>(
    map: &M,
    rows: ArrayView2<'_, M::Real>,
) -> Result<Array2<Wide<M>>> {
    let features = map.transform(rows)?;
    let (n, dim) = features.dim();
    let mut columns = Array2::from_elem((dim, n), Wide::<M>::ZERO);
    // Some features of all rows at a time: both sides of the transposition stay in cache.
    let strip = 32;
    columns.axis_chunks_iter_mut(Axis(0), strip).enumerate().in_parallel().for_each(|(index, mut columns)| {
        let first = index * strip;
        for i in 0..n {
            for j in 0..columns.nrows() {
                columns[[j, i]] = features[[i, first + j]].conj().widen();
            }
        }
    });
    Ok(columns)
}

/// Hands `L⁻¹conj(φ)ᵀ` to `visit`, some rows at a time: number of the first row, one column per row.
pub(crate) fn for_each_image<M: FeatureMap + ?Sized>(
    map: &M,
    factors: &[&Cholesky<Wide<M>>],
    rows: ArrayView2<'_, M::Real>,
    visit: &mut dyn FnMut(usize, usize, Array2<Wide<M>>) -> Result<()>,
) -> Result<()> {
    check_dim("number of columns of rows", map.input_dim(), rows.ncols())?;
    for start in (0..rows.nrows()).step_by(PIECE) {
        let piece = rows.slice(s![start..(start + PIECE).min(rows.nrows()), ..]);
        let columns = conjugate_columns(map, piece).map_err(|error| error.rows_from(start))?;
        for (index, factor) in factors.iter().enumerate() {
            let mut image = columns.clone();
            let (dim, n) = image.dim();
            factor.solve_factor_in_place(TileMut::new(image.as_slice_mut().expect("standard layout"), dim, n))?;
            visit(start, index, image)?;
        }
    }
    Ok(())
}

/// Squared lengths of columns.
pub(crate) fn column_lengths<W: Scalar<Real = f64>>(image: &Array2<W>) -> Vec<f64> {
    let mut lengths = vec![0.0; image.ncols()];
    for row in image.rows() {
        for (length, value) in lengths.iter_mut().zip(row) {
            *length += value.abs_sq();
        }
    }
    lengths
}

/// The variances of rows under each of several factors: `|L⁻¹conj(φ)|²`, one column per factor.
pub(crate) fn variances<M: FeatureMap + ?Sized>(
    map: &M,
    factors: &[&Cholesky<Wide<M>>],
    rows: ArrayView2<'_, M::Real>,
) -> Result<Array2<f64>> {
    let mut out = Array2::zeros((rows.nrows(), factors.len()));
    for_each_image(map, factors, rows, &mut |start, index, image| {
        let lengths = column_lengths(&image);
        let mut column = out.slice_mut(s![start..start + lengths.len(), index]);
        column.iter_mut().zip(lengths).for_each(|(to, length)| *to = length);
        Ok(())
    })?;
    check_finite("variances", out.view(), 0)?;
    Ok(out)
}

/// Numbers in double precision, complex ones as pairs along a last axis.
pub(super) fn tensor<W: Scalar<Real = f64>>(dims: &[usize], values: &[W]) -> Result<Tensor> {
    let mut flat = Vec::new();
    spread(values, &mut flat);
    Tensor::new(shape::<W>(dims), Values::F64(flat))
}

pub(super) fn numbers<W: Scalar<Real = f64>>(stored: &Stored, name: &str, expected: usize) -> Result<Vec<W>> {
    match stored.tensor(name)?.values() {
        Values::F64(flat) => {
            let values: Vec<W> = collect(flat);
            if values.len() != expected {
                return Err(malformed(format!("array `{name}` holds {} numbers, not {expected}", values.len())));
            }
            Ok(values)
        }
        _ => Err(malformed(format!("array `{name}` is not of type f64"))),
    }
}

/// The triangle of a factor, row after row.
pub(super) fn factor_tensor<W: Scalar<Real = f64>>(factor: &Cholesky<W>) -> Result<Tensor> {
    let order = factor.order();
    let mut values = Vec::with_capacity(order * (order + 1) / 2);
    (0..order).for_each(|i| values.extend_from_slice(factor.factor().row(i)));
    tensor(&[values.len()], &values)
}

pub(super) fn factor_of<W: Scalar<Real = f64>>(
    stored: &Stored,
    name: &str,
    order: usize,
    norm_one: f64,
) -> Result<Cholesky<W>> {
    let entries: Vec<W> = numbers(stored, name, triangle_len(order)?)?;
    Cholesky::from_factor(triangle(order, &entries)?, norm_one)
}

/// Coefficients of a model whose features may be complex.
pub(super) fn coefficients<W: Scalar<Real = f64>>(stored: &Stored, dim: usize, outputs: usize) -> Result<Array2<W>> {
    let values = numbers(stored, "coefficients", dim.saturating_mul(outputs))?;
    Array2::from_shape_vec((dim, outputs), values).map_err(|e| malformed(e.to_string()))
}

pub(super) fn coefficients_tensor<W: Scalar<Real = f64>>(coefficients: &Array2<W>) -> Result<Tensor> {
    let values: Vec<W> = coefficients.iter().copied().collect();
    tensor(&[coefficients.nrows(), coefficients.ncols()], &values)
}
