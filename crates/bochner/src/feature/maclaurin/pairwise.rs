//! Mean variances, covariances and biases over all pairs of a sample: one product per block of pairs, and everything else
//! while the block is in cache.

use super::Input;
use super::optimized::{Cost, Curve, PairMeans};
use super::spec::Series;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::linalg::gemm::{Packed, pack_transposed, product};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::parallel::Parallel;
use crate::projection::{Projection, Sampling, Srht, panels};
use crate::random::Seed;
use crate::scalar::Real;
use crate::variance::{Kind, Weights};
use ndarray::ArrayView2;

/// Rows of the sample that are right factors at once.
const CHUNK: usize = 1024;
/// Rows per task; sums of a task are added up before they join the others.
const TASK: usize = 96;
/// Pairs that go through all degrees together.
const LANES: usize = 64;
/// Largest exponent at which the tail of the exponential series is summed term by term.
pub(super) const SERIES_REACH: f64 = 32.0;
/// Dimensions to which squares are projected where that does not show.
const SKETCHED_SQUARES: usize = 128;
/// Pairs times dimension from which single precision is used.
const LARGE: f64 = (1u64 << 31) as f64;

/// The sketch whose draws are to be allocated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Law {
    pub(super) kind: Kind,
    pub(super) weights: Weights,
}

/// How the variance of one draw is made of powers: `factor · Σ ((t + e)ⁿ − tⁿ)` over one or two excesses `e`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Excess {
    /// `N − S + a`.
    Sum,
    /// `N − S`.
    Cross,
    /// `a = t − S`.
    Off,
    /// `N + t`.
    NormsAndDot,
    /// `N`.
    Norms,
    /// `t`.
    Dot,
}

impl Law {
    pub(super) fn excesses(self) -> (Excess, Option<Excess>, f64) {
        use Excess::{Cross, Dot, Norms, NormsAndDot, Off, Sum};
        match (self.kind, self.weights) {
            (Kind::Gaussian, Weights::Real) => (NormsAndDot, None, 1.0),
            (Kind::Gaussian, Weights::Complex) => (Norms, None, 1.0),
            (Kind::Gaussian, Weights::Ctr) => (Norms, Some(Dot), 0.5),
            (Kind::TensorSketch, Weights::Real) => (Cross, Some(Off), 1.0),
            (_, Weights::Real) => (Sum, None, 1.0),
            (_, Weights::Complex) => (Cross, None, 1.0),
            (_, Weights::Ctr) => (Cross, Some(Off), 0.5),
        }
    }

    /// Draws of a block that depend on each other; 1 for independent draws.
    pub(super) fn block(self, dim: usize) -> usize {
        match self.kind {
            Kind::SrhtStacked | Kind::SrhtUpsampled | Kind::SrhtTuple { .. } => dim.next_power_of_two(),
            _ => 1,
        }
    }

    fn needs_squares(self) -> bool {
        self.kind != Kind::Gaussian
    }
}

/// What statistics are asked for: of which sketch of which series, in degrees up to `most`, and what becomes of rows before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) input: &'a Input,
    pub(super) series: &'a Series,
    pub(super) law: Law,
    pub(super) most: usize,
}

/// A row as [`Input`] makes it: along a slice where there is one, since other iterators go number by number.
fn scale<T: Real>(input: &Input, row: ndarray::ArrayView1<'_, T>, out: &mut [f64]) {
    match row.as_slice() {
        Some(row) => input.scale(row.iter().map(|&v| Real::to_f64(v)), out),
        None => input.scale(row.iter().map(|&v| Real::to_f64(v)), out),
    }
}

/// Rows at unit scale, the longest of length 1, with what the series makes of that scale.
pub(super) struct Scaled {
    /// Squared length of the longest row before it became 1.
    pub(super) reach: f64,
    /// Squared lengths, before.
    pub(super) lengths_sq: Vec<f64>,
    /// `ln aₙ reachⁿ` for `n = 0..`; as long as terms matter.
    pub(super) ln_terms: Vec<f64>,
    /// Whether `ln_terms` holds the whole series to rounding.
    pub(super) complete: bool,
}

/// Beyond this length the factor `e^(−u²/2)` of a row vanishes, and so does its part in every sketch.
const LONGEST_SQ: f64 = 1400.0;

impl Scaled {
    /// # Errors
    /// Fewer than two rows, and rows at which the kernel leaves the range of numbers.
    pub(super) fn new<T: Real>(rows: ArrayView2<'_, T>, question: Question<'_>, cap: f64) -> Result<Self> {
        let Question { input, series, most, .. } = question;
        if rows.nrows() < 2 {
            return Err(Error::parameter("number of rows", "at least 2 for statistics of pairs", rows.nrows()));
        }
        let lengths_sq: Vec<f64> = (0..rows.nrows()).in_parallel().map_init(
            || vec![0.0; rows.ncols()],
            |scaled, i| {
                scale(input, rows.row(i), scaled);
                crate::kernel::dot(scaled, scaled)
            },
        );
        let longest = lengths_sq.iter().fold(0.0f64, |a, &b| a.max(b));
        // Where all rows are zero any scale will do.
        let reach = if longest > 0.0 { longest.min(if input.gaussian { cap } else { f64::INFINITY }) } else { 1.0 };
        if !longest.is_finite() || (!input.gaussian && series.infinite && reach > 350.0) {
            return Err(Error::Unsupported {
                what: "allocation",
                reason: format!(
                    "rows are up to {:.1e} long, where the kernel leaves the range of numbers; use a larger length scale",
                    longest.sqrt()
                ),
            });
        }
        let ln_reach = libm::log(reach);
        let ln_term = |n: usize| match n {
            0 => series.ln_coefficient(0),
            _ => series.ln_coefficient(n) + n as f64 * ln_reach,
        };
        let complete = !series.infinite || reach <= SERIES_REACH;
        let mut ln_terms: Vec<f64> = (0..=most).map(ln_term).collect();
        if complete {
            for n in most + 1.. {
                let last = if series.infinite {
                    // Terms fall by more than half from here on.
                    n as f64 > 2.0 * reach && ln_term(n) < ln_term(most + 1) - 40.0
                } else {
                    n >= series.len()
                };
                if last {
                    break;
                }
                ln_terms.push(ln_term(n));
            }
        }
        Ok(Scaled { reach, lengths_sq, ln_terms, complete })
    }

    /// Whether single precision has the range for all terms.
    pub(super) fn small(&self) -> bool {
        self.complete && self.ln_terms.iter().map(|&ln| libm::exp(ln)).sum::<f64>() < 1e15
    }

    /// Writes a row divided by the longest length.
    pub(super) fn write<T: Real, R: Real>(
        &self,
        input: &Input,
        row: ndarray::ArrayView1<'_, T>,
        scaled: &mut [f64],
        out: &mut [R],
    ) {
        scale(input, row, scaled);
        let factor = 1.0 / self.reach.sqrt();
        out.iter_mut().zip(scaled.iter()).for_each(|(o, v)| *o = R::from_f64(v * factor));
    }

    /// `g(x)²`: the weight of a row in every mean; rows beyond the reach have none left.
    pub(super) fn weight(&self, input: &Input, i: usize) -> f64 {
        if !input.gaussian {
            1.0
        } else if self.lengths_sq[i] > self.reach {
            0.0
        } else {
            libm::exp(-self.lengths_sq[i])
        }
    }

    /// From sums over pairs (of rows of length 1, with weights) to costs and biases.
    pub(super) fn means(
        &self,
        sums: &Sums,
        Question { law, most, .. }: Question<'_>,
        dim: usize,
        pairs: f64,
    ) -> PairMeans {
        let block = law.block(dim);
        let active = (1..=most).filter(|&n| self.ln_terms[n] > f64::NEG_INFINITY);
        let cost = |n: usize| {
            let variance = (sums.variance[n - 1] / pairs).max(0.0);
            let mut covariance = if block > 1 { sums.covariance[n - 1] / pairs } else { 0.0 };
            if n == 1 && block > 1 {
                // A complete block of degree 1 is exact; rounding must not say otherwise.
                covariance = -variance / (block as f64 - 1.0);
            }
            let curve = Curve { variance, covariance, block };
            let curve = match law.weights {
                // Real columns, of twice the variance of a complex draw.
                Weights::Ctr if n == 1 && block > 1 => {
                    Curve { variance: 2.0 * variance, covariance: 2.0 * covariance, block }
                }
                Weights::Ctr => curve.of_halves(),
                _ => curve,
            };
            Cost { degree: n as u32, weight: libm::exp(2.0 * self.ln_terms[n]), curve }
        };
        let bias = sums.bias.iter().map(|b| (b / pairs).max(0.0)).collect();
        PairMeans { costs: active.map(cost).collect(), bias }
    }
}

/// Sums over pairs: variances and covariances of degrees `1..`, squared biases of truncation at `0..`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sums {
    pub(super) variance: Vec<f64>,
    pub(super) covariance: Vec<f64>,
    pub(super) bias: Vec<f64>,
}

impl Sums {
    pub(super) fn new(most: usize) -> Self {
        Sums { variance: vec![0.0; most], covariance: vec![0.0; most], bias: vec![0.0; most + 1] }
    }

    fn add(&mut self, other: &Sums, weight: f64, bias_weight: f64) {
        let add =
            |to: &mut [f64], from: &[f64], weight: f64| to.iter_mut().zip(from).for_each(|(t, f)| *t += weight * f);
        add(&mut self.variance, &other.variance, weight);
        add(&mut self.covariance, &other.covariance, weight);
        add(&mut self.bias, &other.bias, bias_weight);
    }
}

/// Statistics over all pairs `i ≠ j` of `rows`, for truncation degrees up to `most`.
///
/// # Errors
/// As [`Scaled::new`].
pub(super) fn pair_means<T: Real>(rows: ArrayView2<'_, T>, question: Question<'_>) -> Result<PairMeans> {
    let (m, dim) = rows.dim();
    let scaled = Scaled::new(rows, question, LONGEST_SQ)?;
    let single = (m * m) as f64 * dim as f64 >= LARGE && scaled.small();
    let sums = if single { sums::<T, f32>(rows, &scaled, question)? } else { sums::<T, f64>(rows, &scaled, question)? };
    let pairs = 0.5 * m as f64 * (m as f64 - 1.0);
    Ok(scaled.means(&sums, question, dim, pairs))
}

/// Rows with which `S = Σ xᵢ²yᵢ²` is an inner product of a left and a right vector.
struct Squares<R> {
    left: Vec<R>,
    right: Vec<R>,
    depth: usize,
}

impl<R: Real> Squares<R> {
    /// The squares themselves, or where it does not show a projection of them.
    ///
    /// `S` enters variances as a small part of `N`. Around the mean `m` of the squares,
    /// `S = ⟨x², m⟩ + ⟨m, y²⟩ − |m|² + ⟨x² − m, y² − m⟩`, and only the last term is projected, from `d` to 128 dimensions:
    /// an unbiased error of standard deviation about `f√(2/128) N` with `f` the mean of `|x² − m|²/|x|⁴`. Below `f = 0.05`
    /// that is less than 0.6% of `N` for each pair, and `n²/2 · 4·10⁻⁵` of the mean over pairs.
    fn new(x: &[R], m: usize, dim: usize) -> Result<Self> {
        let mut squares: Vec<R> = x.iter().map(|&v| v * v).collect();
        let mut mean = vec![0.0; dim];
        for row in squares.chunks_exact(dim) {
            mean.iter_mut().zip(row).for_each(|(m, &v)| *m += Real::to_f64(v));
        }
        mean.iter_mut().for_each(|v| *v /= m as f64);
        let fluctuation = |row: &[R]| {
            let (mut deviation, mut norm) = (0.0, 0.0);
            for (&v, mean) in row.iter().zip(&mean) {
                let v = Real::to_f64(v);
                deviation += (v - mean) * (v - mean);
                norm += v;
            }
            if norm > 0.0 { deviation / (norm * norm) } else { 0.0 }
        };
        let spread = squares.chunks_exact(dim).in_parallel().map(fluctuation).iter().sum::<f64>() / m as f64;
        if dim < 4 * SKETCHED_SQUARES || spread > 0.05 {
            return Ok(Squares { left: squares.clone(), right: squares, depth: dim });
        }
        let k = SKETCHED_SQUARES;
        let depth = k + 2;
        let mean_sq: f64 = mean.iter().map(|v| v * v).sum();
        let along: Vec<f64> = squares
            .chunks_exact(dim)
            .map(|row| row.iter().zip(&mean).map(|(&v, m)| Real::to_f64(v) * m).sum())
            .collect();
        squares.chunks_exact_mut(dim).in_parallel().for_each(|row| {
            row.iter_mut().zip(&mean).for_each(|(v, m)| *v = R::from_f64(Real::to_f64(*v) - m));
        });
        let map = Srht::<R, R>::new(Seed::new(SKETCHED_SQUARES as u64), dim, k, Sampling::Upsampled)?;
        let scale = R::from_f64(1.0 / (k as f64).sqrt());
        let mut left = vec![R::ZERO; m * depth];
        left.chunks_mut(64 * depth).zip(squares.chunks(64 * dim)).in_parallel().for_each_init(
            Workspace::new,
            |work, (out, rows)| {
                let n = rows.len() / dim;
                let rows = Tile::new(rows, n, dim);
                let mut out = TileMut::with_stride(out, n, k, depth);
                for columns in panels(k, map.panel()) {
                    map.project_tile(rows, columns.clone(), out.columns_mut(columns), work);
                }
                for i in 0..n {
                    out.row_mut(i).iter_mut().for_each(|v| *v *= scale);
                }
            },
        );
        let mut right = left.clone();
        for ((left, right), along) in left.chunks_exact_mut(depth).zip(right.chunks_exact_mut(depth)).zip(along) {
            (left[k], left[k + 1]) = (R::from_f64(along - mean_sq), R::ONE);
            (right[k], right[k + 1]) = (R::ONE, R::from_f64(along));
        }
        Ok(Squares { left, right, depth })
    }
}

/// What rows are to the pointwise part.
struct Sample<'a, R> {
    /// Squared lengths, at most 1.
    norms: Vec<R>,
    /// `g²`.
    weights: Vec<R>,
    law: Law,
    /// `d' − 1` where draws come in blocks.
    others: Option<R>,
    one_dimension: bool,
    /// `aₙ reachⁿ` for the bias by series; empty where it is computed from the kernel.
    terms: Vec<R>,
    most: usize,
    scaled: &'a Scaled,
    gaussian: bool,
}

pub(super) fn sums<T: Real, R: Real>(
    rows: ArrayView2<'_, T>,
    scaled: &Scaled,
    Question { input, law, most, .. }: Question<'_>,
) -> Result<Sums> {
    let (m, dim) = rows.dim();
    let mut x = vec![R::ZERO; m * dim];
    x.chunks_exact_mut(dim)
        .enumerate()
        .in_parallel()
        .for_each_init(|| vec![0.0; dim], |buffer, (i, out)| scaled.write(input, rows.row(i), buffer, out));
    let one_dimension = dim == 1 && law.needs_squares();
    let squares = if law.needs_squares() && !one_dimension { Some(Squares::new(&x, m, dim)?) } else { None };
    let block = law.block(dim);
    let sample = Sample::<R> {
        norms: scaled.lengths_sq.iter().map(|l| R::from_f64(l / scaled.reach)).collect(),
        weights: (0..m).map(|i| R::from_f64(scaled.weight(input, i))).collect(),
        law,
        others: (block > 1).then(|| R::from_f64(block as f64 - 1.0)),
        one_dimension,
        terms: if scaled.complete {
            scaled.ln_terms.iter().map(|&ln| R::from_f64(libm::exp(ln))).collect()
        } else {
            Vec::new()
        },
        most,
        scaled,
        gaussian: input.gaussian,
    };
    let mut total = Sums::new(most);
    for first in (0..m).step_by(CHUNK) {
        interrupt::check()?;
        let columns = first..(first + CHUNK).min(m);
        let packed =
            |x: &[R], depth: usize| pack_transposed(Tile::new(&x[columns.start * depth..], columns.len(), depth));
        let right = packed(&x, dim)?;
        let squares = match &squares {
            Some(squares) => Some((squares, packed(&squares.right, squares.depth)?)),
            None => None,
        };
        // Pairs i < j: only rows before the last column are needed, and of those only the columns behind them.
        let parts: Vec<Sums> = (0..columns.end).step_by(TASK).in_parallel().map_init(
            || (Workspace::new(), Vec::new(), Vec::new()),
            |(work, dots, cross), start| {
                let count = TASK.min(columns.end - start);
                let from = start.saturating_sub(columns.start);
                let width = columns.len() - from;
                let mut multiply = |left: &[R], depth: usize, right: &Packed<R>, out: &mut Vec<R>| {
                    out.resize(count * width, R::ZERO);
                    let left = Tile::new(&left[start * depth..], count, depth);
                    product(left, right, from..columns.len(), [TileMut::new(out, count, width)], work);
                };
                multiply(&x, dim, &right, dots);
                if let Some((squares, right)) = &squares {
                    multiply(&squares.left, squares.depth, right, cross);
                }
                let mut sums = Sums::new(most);
                for i in 0..count {
                    let row = start + i;
                    // Columns of this row: those behind it.
                    let skip = (row + 1).saturating_sub(columns.start + from);
                    if skip < width {
                        let range = i * width + skip..(i + 1) * width;
                        let cross = if cross.is_empty() { &[] } else { &cross[range.clone()] };
                        sample.add_row(row, columns.start + from + skip, &dots[range], cross, &mut sums);
                    }
                }
                sums
            },
        );
        parts.iter().for_each(|part| total.add(part, 1.0, 1.0));
    }
    Ok(total)
}

impl<R: Real> Sample<'_, R> {
    /// Adds the pairs of row `i` with the rows from `first` on.
    fn add_row(&self, i: usize, first: usize, dots: &[R], cross: &[R], sums: &mut Sums) {
        let range = first..first + dots.len();
        let mut row = Sums::new(self.most);
        let weight = Real::to_f64(self.weights[i]);
        if weight > 0.0 {
            pulp::Arch::new().dispatch(Degrees {
                sample: self,
                norm: self.norms[i],
                dots,
                cross,
                norms: &self.norms[range.clone()],
                weights: &self.weights[range.clone()],
                sums: &mut row,
            });
        }
        sums.add(&row, weight, weight);
        if self.terms.is_empty() {
            self.add_bias(i, range, dots, sums);
        }
    }

    /// The bias from the exact kernel, for exponents beyond the reach of the series.
    fn add_bias(&self, i: usize, range: std::ops::Range<usize>, dots: &[R], sums: &mut Sums) {
        let reach = self.scaled.reach;
        for (j, &dot) in range.zip(dots) {
            let zeta = Real::to_f64(dot);
            let half = if self.gaussian { -0.5 * (self.scaled.lengths_sq[i] + self.scaled.lengths_sq[j]) } else { 0.0 };
            let k = libm::exp((half + reach * zeta).min(if self.gaussian { 0.0 } else { 350.0 }));
            let sketched = !self.gaussian || half > -700.0;
            let mut rest = k;
            for (n, bias) in sums.bias.iter_mut().enumerate() {
                if sketched {
                    let size = libm::exp(half + self.scaled.ln_terms[n]);
                    rest -= size * crate::kernel::powu(zeta, n as u32);
                }
                *bias += rest * rest;
            }
        }
    }
}

/// All degrees of the pairs of one row.
struct Degrees<'a, 'b, R> {
    sample: &'a Sample<'b, R>,
    norm: R,
    dots: &'a [R],
    cross: &'a [R],
    norms: &'a [R],
    weights: &'a [R],
    sums: &'a mut Sums,
}

type Lanes<R> = [R; LANES];

/// Sums stay in their lanes until the end of a row: within eight strands the compiler added number by number.
#[inline(always)]
fn add_weighted<R: Real>(values: &Lanes<R>, weights: &Lanes<R>, strands: &mut Lanes<R>) {
    for l in 0..LANES {
        strands[l] = num_traits::Float::mul_add(values[l], weights[l], strands[l]);
    }
}

#[inline(always)]
fn excess<R: Real>(which: Excess, t: &Lanes<R>, s: &Lanes<R>, n: &Lanes<R>) -> Lanes<R> {
    let mut out = [R::ZERO; LANES];
    match which {
        Excess::Sum => (0..LANES).for_each(|l| out[l] = R::max(n[l] - s[l] + (t[l] - s[l]), R::ZERO)),
        Excess::Cross => (0..LANES).for_each(|l| out[l] = R::max(n[l] - s[l], R::ZERO)),
        Excess::Off => (0..LANES).for_each(|l| out[l] = t[l] - s[l]),
        Excess::NormsAndDot => (0..LANES).for_each(|l| out[l] = n[l] + t[l]),
        Excess::Norms => out = *n,
        Excess::Dot => out = *t,
    }
    out
}

/// `Σ ((t+e)ⁿ − tⁿ)` for `n = 1, 2, …`, one call after the other.
struct PowerDifference<R> {
    excess: Lanes<R>,
    base: Lanes<R>,
    sum: Lanes<R>,
}

impl<R: Real> PowerDifference<R> {
    #[inline(always)]
    fn new(excess: Lanes<R>, t: &Lanes<R>) -> Self {
        let mut base = [R::ZERO; LANES];
        (0..LANES).for_each(|l| base[l] = t[l] + excess[l]);
        PowerDifference { excess, base, sum: [R::ZERO; LANES] }
    }

    /// The next degree, with `power = tⁿ⁻¹`, added to `out`.
    #[inline(always)]
    fn next(&mut self, power: &Lanes<R>, out: &mut Lanes<R>) {
        for l in 0..LANES {
            self.sum[l] = num_traits::Float::mul_add(self.sum[l], self.base[l], power[l]);
            out[l] = num_traits::Float::mul_add(self.sum[l], self.excess[l], out[l]);
        }
    }
}

impl<R: Real> pulp::NullaryFnOnce for Degrees<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Degrees { sample, norm, dots, cross, norms, weights, sums } = self;
        let most = sample.most;
        let (first, second, factor) = sample.law.excesses();
        let factor = R::from_f64(factor);
        let mut strands = vec![[R::ZERO; LANES]; 3 * most + 1];
        // powers[k] = ζ^(k+1).
        let mut powers = vec![[R::ZERO; LANES]; most + 1];
        for at in (0..dots.len()).step_by(LANES) {
            let range = at..(at + LANES).min(dots.len());
            let len = range.len();
            let load = |from: &[R]| {
                let from = &from[range.clone()];
                <Lanes<R>>::try_from(from).unwrap_or_else(|_| {
                    let mut to = [R::ZERO; LANES];
                    to[..len].copy_from_slice(from);
                    to
                })
            };
            let (mut zeta, weight, mut n) = (load(dots), load(weights), load(norms));
            let mut s = if cross.is_empty() { [R::ZERO; LANES] } else { load(cross) };
            let mut t = [R::ZERO; LANES];
            for l in 0..LANES {
                // Rows so long that their features vanish count for nothing, whatever their products are.
                let counts = weight[l] > R::ZERO;
                zeta[l] = if counts { zeta[l] } else { R::ZERO };
                n[l] = if counts { n[l] * norm } else { R::ZERO };
                s[l] = if counts { s[l] } else { R::ZERO };
                t[l] = zeta[l] * zeta[l];
            }
            if sample.one_dimension {
                (t, s) = (n, n);
            }
            let one = excess(first, &t, &s, &n);
            let two = match second {
                Some(second) => excess(second, &t, &s, &n),
                None => [R::ZERO; LANES],
            };
            let mut variance = (PowerDifference::new(one, &t), PowerDifference::new(two, &t));
            let mut covariance = sample.others.map(|others| {
                let part = |e: &Lanes<R>| {
                    let mut delta = [R::ZERO; LANES];
                    (0..LANES).for_each(|l| delta[l] = -e[l] / others);
                    PowerDifference::new(delta, &t)
                };
                (part(&one), part(&two))
            });
            let mut power = [R::ONE; LANES];
            let mut scale = weight;
            (0..LANES).for_each(|l| scale[l] *= factor);
            for degree in 0..most {
                let mut out = [R::ZERO; LANES];
                variance.0.next(&power, &mut out);
                if second.is_some() {
                    variance.1.next(&power, &mut out);
                }
                add_weighted(&out, &scale, &mut strands[degree]);
                if let Some(covariance) = &mut covariance {
                    let mut out = [R::ZERO; LANES];
                    covariance.0.next(&power, &mut out);
                    if second.is_some() {
                        covariance.1.next(&power, &mut out);
                    }
                    add_weighted(&out, &scale, &mut strands[most + degree]);
                }
                (0..LANES).for_each(|l| power[l] *= t[l]);
            }
            if sample.terms.is_empty() {
                continue;
            }
            powers[0] = zeta;
            for degree in 1..=most {
                let (low, high) = powers.split_at_mut(degree);
                (0..LANES).for_each(|l| high[0][l] = low[degree - 1][l] * zeta[l]);
            }
            // Σ_{n>most} terms[n] ζⁿ by Horner's rule, then one term more at a time: nothing cancels.
            let mut rest = [R::ZERO; LANES];
            for &term in sample.terms[most + 1..].iter().rev() {
                (0..LANES).for_each(|l| rest[l] = num_traits::Float::mul_add(rest[l], zeta[l], term));
            }
            (0..LANES).for_each(|l| rest[l] *= powers[most][l]);
            for degree in (0..=most).rev() {
                let mut out = [R::ZERO; LANES];
                (0..LANES).for_each(|l| out[l] = rest[l] * rest[l]);
                add_weighted(&out, &weight, &mut strands[2 * most + degree]);
                if degree > 0 {
                    let (term, power) = (sample.terms[degree], &powers[degree - 1]);
                    (0..LANES).for_each(|l| rest[l] = num_traits::Float::mul_add(term, power[l], rest[l]));
                }
            }
        }
        let total = |strands: &Lanes<R>| {
            let mut sums = [0.0; 8];
            for chunk in strands.as_chunks::<8>().0 {
                sums.iter_mut().zip(chunk).for_each(|(s, &v)| *s += Real::to_f64(v));
            }
            sums.iter().sum::<f64>()
        };
        for degree in 0..most {
            sums.variance[degree] += total(&strands[degree]);
            sums.covariance[degree] += total(&strands[most + degree]);
        }
        for degree in 0..=most {
            sums.bias[degree] += total(&strands[2 * most + degree]);
        }
    }
}
