//! Maclaurin features: kernels `Σ aₙ⟨x, y⟩ⁿ`, degree by degree.
//!
//! | allocation of draws to degrees | estimate | when |
//! |---|---|---|
//! | random: degrees drawn from `μ(n) = (c−1)c^(−n−1)` | unbiased, large variance | a baseline; no data needed |
//! | optimised: least mean squared error over pairs of a sample | truncated, small variance | the default |
//!
//! [`MaclaurinSpec`] describes a map; [`Maclaurin`] is what it draws.

mod one_pass;
mod optimized;
mod pairwise;
mod random;
mod spec;
#[cfg(test)]
mod tests;

pub use optimized::{Allocation, Cost, Curve, allocate};
pub use random::DegreeMeasure;
pub use spec::{AllocationRule, MaclaurinKernel, MaclaurinSpec, Statistics};

use super::product_sketch::{DynSketch, Pulled};
use super::{FeatureMap, Piece};
use crate::error::{Error, Result, check_count, check_dim};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::{Cotangents, Parts, Sink};
use crate::scalar::{Real, Scalar};

/// A sketch of `⟨x, y⟩ⁿ` whose first factor may see other rows than the rest.
#[derive(Debug, Clone)]
enum Power<O: Scalar> {
    Draws(DynSketch<O>),
    /// Columns of a real sketch two by two, as the real and imaginary parts of half as many draws; an odd one is spare. What
    /// real sketches are in a map whose others are complex-to-real.
    Pairs(DynSketch<O::Real>),
}

impl<O: Scalar> Power<O> {
    fn input_dim(&self) -> usize {
        match self {
            Power::Draws(sketch) => sketch.input_dim(),
            Power::Pairs(sketch) => sketch.input_dim(),
        }
    }

    fn draws(&self) -> usize {
        match self {
            Power::Draws(sketch) => sketch.output_dim(),
            Power::Pairs(sketch) => sketch.output_dim() / 2,
        }
    }

    /// Real columns beside the draws, where the output is split into parts.
    fn spare(&self) -> usize {
        match self {
            Power::Draws(_) => 0,
            Power::Pairs(sketch) => sketch.output_dim() % 2,
        }
    }

    fn tile_rows(&self) -> usize {
        match self {
            Power::Draws(sketch) => sketch.tile_rows(),
            Power::Pairs(sketch) => sketch.tile_rows(),
        }
    }

    /// `rows` holds one tile per factor.
    fn write(&self, rows: &[Tile<'_, O::Real>], out: TileMut<'_, O>, work: &mut Workspace<O::Real>) {
        match self {
            Power::Draws(sketch) => sketch.sketch(rows, out, work),
            Power::Pairs(_) => unreachable!("real columns are parts of real output only"),
        }
    }

    fn write_split(
        &self,
        rows: &[Tile<'_, O::Real>],
        mut out: Parts<'_, O::Real>,
        mut spare: TileMut<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        let sketch = match self {
            Power::Draws(sketch) => return sketch.sketch_split(rows, out, work),
            Power::Pairs(sketch) => sketch,
        };
        let (n, m, all) = (out.re.rows(), out.re.cols(), sketch.output_dim());
        let mut columns = work.take(n * all);
        sketch.sketch(rows, TileMut::new(&mut columns, n, all), work);
        for (i, row) in columns.chunks_exact(all).enumerate() {
            out.write(i, 0, &row[..m], &row[m..2 * m]);
            spare.row_mut(i).copy_from_slice(&row[2 * m..]);
        }
        work.give(columns);
    }
}

impl<O: Scalar> Power<O> {
    /// Adds the pullback; `spare` are the cotangents of spare columns.
    fn pull(
        &self,
        rows: &[Tile<'_, O::Real>],
        cotangents: Cotangents<'_, O::Real>,
        spare: Tile<'_, O::Real>,
        out: TileMut<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        let sketch = match self {
            Power::Draws(sketch) => return sketch.pull(rows, cotangents, Pulled::Shared(out), work),
            Power::Pairs(sketch) => sketch,
        };
        let (n, m, all) = (out.rows(), self.draws(), sketch.output_dim());
        let mut columns = work.take(n * all);
        for (i, row) in columns.chunks_exact_mut(all).enumerate() {
            row[..m].copy_from_slice(cotangents.re.row(i));
            row[m..2 * m].copy_from_slice(cotangents.im.row(i));
            row[2 * m..].copy_from_slice(spare.row(i));
        }
        sketch.pull(rows, Cotangents::real(Tile::new(&columns, n, all)), Pulled::Shared(out), work);
        work.give(columns);
    }
}

/// One degree: `weight · Φₙ`.
#[derive(Debug, Clone)]
struct Part<O: Scalar> {
    degree: u32,
    /// `ln` of the factor of its features.
    ln_weight: f64,
    sketch: Power<O>,
}

/// In eight strands: one comparison would wait for the one before it.
fn largest_modulus(x: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let (chunks, rest) = x.as_chunks::<8>();
    let mut strands = [0.0; 8];
    for chunk in chunks {
        strands.iter_mut().zip(chunk).for_each(|(s, v)| *s = larger(*s, v.abs()));
    }
    strands.into_iter().chain(rest.iter().map(|v| v.abs())).fold(0.0, larger)
}

/// What becomes of a row before it is sketched.
#[derive(Debug, Clone, PartialEq)]
struct Input {
    dim: usize,
    /// Subtracted.
    centre: Option<Vec<f64>>,
    /// Divides; one number for all columns or one for each.
    length_scales: Vec<f64>,
    /// Multiplies in place of length scales.
    metric: Option<Vec<Vec<f64>>>,
    /// Whether features are multiplied by `exp(−|x|²/2)` of the scaled row.
    gaussian: bool,
}

impl Input {
    /// Writes the direction of a row, and returns the length it had after centring and scaling.
    fn unit<R: Real>(&self, row: &[R], scaled: &mut [f64], out: &mut [R]) -> f64 {
        self.scale(row.iter().map(|&v| Real::to_f64(v)), scaled);
        let largest = largest_modulus(scaled);
        if largest == 0.0 {
            out.fill(R::ZERO);
            return 0.0;
        }
        // Through the largest entry: squares of very large or small rows would leave the range of numbers.
        scaled.iter_mut().for_each(|v| *v /= largest);
        let relative = crate::kernel::dot(scaled, scaled).sqrt();
        for (o, v) in out.iter_mut().zip(scaled.iter()) {
            *o = R::from_f64(v / relative);
        }
        largest * relative
    }

    /// Centres and scales a row.
    fn scale(&self, row: impl Iterator<Item = f64>, out: &mut [f64]) {
        for (o, v) in out.iter_mut().zip(row) {
            *o = v;
        }
        if let Some(centre) = &self.centre {
            out.iter_mut().zip(centre).for_each(|(o, c)| *o -= c);
        }
        if let Some(metric) = &self.metric {
            let row = out.to_vec();
            out.iter_mut().zip(metric).for_each(|(o, l)| *o = crate::kernel::dot(&row, l));
            return;
        }
        match self.length_scales.as_slice() {
            [scale] => out.iter_mut().for_each(|o| *o /= scale),
            scales => out.iter_mut().zip(scales).for_each(|(o, s)| *o /= s),
        }
    }

    /// Centring and scaling.
    fn piece<R: Real>(&self) -> Piece<R> {
        let mut piece = Piece::new("affine");
        if let Some(centre) = &self.centre {
            piece = piece.vector("centre", centre.iter().map(|v| R::from_f64(*v)));
        }
        if let Some(metric) = &self.metric {
            let rows = ndarray::Array2::from_shape_fn((self.dim, self.dim), |(i, j)| metric[i][j]);
            return piece.directions("weights", &rows);
        }
        let scales = self.length_scales.iter().cycle().take(self.dim);
        piece.vector("factors", scales.map(|scale| R::from_f64(1.0 / scale)))
    }

    /// `ln` of the factor `e^(−u²/2) uⁿ` of a row of length `u`.
    fn ln_factor(&self, length: f64, degree: u32) -> f64 {
        self.length(length).ln_factor(degree)
    }

    /// What the factors of all degrees of a row of length `u` follow from.
    fn length(&self, length: f64) -> Length {
        Length { ln: libm::log(length), damping: if self.gaussian { 0.5 * length * length } else { 0.0 } }
    }
}

/// A row's length: its logarithm, and `u²/2` for the Gaussian kernel.
#[derive(Debug, Clone, Copy)]
struct Length {
    ln: f64,
    damping: f64,
}

impl Length {
    /// `ln` of the row's factor at a degree.
    fn ln_factor(self, degree: u32) -> f64 {
        let power = if degree == 0 { 0.0 } else { f64::from(degree) * self.ln };
        power - self.damping
    }
}

/// Features of a kernel `Σ aₙ⟨x, y⟩ⁿ`, possibly times `e^(−|x|²/2) e^(−|y|²/2)`: a constant and one sketch per degree.
///
/// `φ(x) = g(x) (√a₀, √a₁ Φ₁(x), …, √a_p Φ_p(x))` with independent sketches `Φₙ` of `⟨x, y⟩ⁿ`; `g = 1`, or `e^(−|x|²/2)` for
/// the Gaussian kernel of rows divided by their length scale (thesis 5.5 and 5.10).
///
/// # Range
/// Sketches see rows of length 1, and `√aₙ g(x)|x|ⁿ` is evaluated through logarithms and rounded once: no row is too long or
/// too short. Factors beyond the largest number stop there.
#[derive(Debug, Clone)]
pub struct Maclaurin<O: Scalar> {
    input: Input,
    /// Copies of the constant feature and `ln` of its value.
    constants: usize,
    ln_constant: f64,
    parts: Vec<Part<O>>,
    draws: usize,
}

impl<O: Scalar> Maclaurin<O> {
    fn new(input: Input, constants: usize, ln_constant: f64, parts: Vec<Part<O>>) -> Result<Self> {
        check_count("number of columns of rows", input.dim)?;
        if constants == 0 && parts.is_empty() {
            return Err(Error::parameter("n_components", "enough for one degree of the kernel", 0));
        }
        for part in &parts {
            check_dim("input dimension of a sketch", input.dim, part.sketch.input_dim())?;
        }
        let draws = parts.iter().map(|part| part.sketch.draws()).sum();
        Ok(Maclaurin { input, constants, ln_constant, parts, draws })
    }

    /// Sketches by degree and number of draws, the constant not among them; a degree of two sketches comes twice.
    pub fn degrees(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.parts.iter().map(|part| (part.degree, part.sketch.draws()))
    }

    /// The map as it is, or with `split` as [`RealParts`].
    fn series(&self, split: bool) -> Result<Piece<O::Real>> {
        let flag = |it: bool| f64::from(u8::from(it));
        let term = |part: &Part<O>| -> Result<Piece<O::Real>> {
            let (sketch, paired) = match &part.sketch {
                Power::Draws(sketch) => (sketch.pieces()?, false),
                Power::Pairs(sketch) => (sketch.pieces()?, true),
            };
            let term = Piece::new("term").number("degree", part.degree.into()).number("ln_weight", part.ln_weight);
            Ok(term.number("paired", flag(paired)).pieces("pieces", vec![sketch]))
        };
        let series = Piece::new("series")
            .number("constants", self.constants as f64)
            .number("ln_constant", if self.constants > 0 { self.ln_constant } else { 0.0 })
            .number("rate", if self.input.gaussian { 0.5 } else { 0.0 })
            .number("split", flag(split))
            .pieces("pieces", self.parts.iter().map(term).collect::<Result<_>>()?);
        Ok(Piece::chain([self.input.piece(), series]))
    }

    /// Runs `write` on every degree: its place among the draws, the tiles its factors see, the sketch.
    ///
    /// `constant(i, value)` is told the value of the constant features of row `i`.
    fn each_part(
        &self,
        rows: Tile<'_, O::Real>,
        work: &mut Workspace<O::Real>,
        mut constant: impl FnMut(usize, O::Real),
        mut write: impl FnMut(usize, &[Tile<'_, O::Real>], &Power<O>, &mut Workspace<O::Real>),
    ) {
        let (n, d) = (rows.rows(), rows.cols());
        let (mut units, mut first) = (work.take(n * d), work.take(n * d));
        let (mut scaled, mut lengths) = (vec![0.0; d], vec![0.0; n]);
        for i in 0..n {
            lengths[i] = self.input.unit(rows.row(i), &mut scaled, &mut units[i * d..][..d]);
            if self.constants > 0 {
                constant(i, factor(self.ln_constant + self.input.ln_factor(lengths[i], 0)));
            }
        }
        let unit = Tile::new(&units, n, d);
        let mut start = 0;
        for part in &self.parts {
            // On the rows of one factor the weight costs d products per row instead of one per feature.
            for ((out, row), length) in first.chunks_exact_mut(d).zip(units.chunks_exact(d)).zip(&lengths) {
                let weight: O::Real = factor(part.ln_weight + self.input.ln_factor(*length, part.degree));
                out.iter_mut().zip(row).for_each(|(o, x)| *o = weight * *x);
            }
            let mut tiles = vec![unit; part.degree as usize];
            tiles[0] = Tile::new(&first, n, d);
            write(start, &tiles, &part.sketch, work);
            start += part.sketch.draws();
        }
        work.give(units);
        work.give(first);
    }
}

impl<O: Scalar> Maclaurin<O> {
    /// Adds the pullback; `constants` are the cotangents of the constant features, `cotangents` and `spare` those of the draws.
    ///
    /// A degree is homogeneous: with the direction `v` of a row, its length `u` and the pullback `q` of the sketch at `v`, the
    /// gradient of `e^(−u²/2) uⁿ Φₙ(v)` is `e^(−u²/2) uⁿ (q/u − u v ⟨v, q⟩/n)`, since `⟨v, q⟩ = n⟨Φₙ(v), cotangent⟩`.
    fn pull_parts(
        &self,
        rows: Tile<'_, O::Real>,
        constants: Tile<'_, O::Real>,
        spare: Tile<'_, O::Real>,
        cotangents: Cotangents<'_, O::Real>,
        mut out: TileMut<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        let (n, d) = (rows.rows(), rows.cols());
        let (mut units, mut pulled) = (work.take(n * d), work.take(n * d));
        let (mut scaled, mut lengths, mut sums) = (vec![0.0; d], vec![0.0; n], vec![0.0; n * d]);
        for i in 0..n {
            lengths[i] = self.input.unit(rows.row(i), &mut scaled, &mut units[i * d..][..d]);
            if self.constants > 0 && self.input.gaussian {
                let sum: f64 = constants.row(i).iter().map(|u| Real::to_f64(*u)).sum();
                let slope = -libm::exp(self.ln_constant + self.input.ln_factor(lengths[i], 0)) * lengths[i] * sum;
                let unit = units[i * d..][..d].iter();
                sums[i * d..][..d].iter_mut().zip(unit).for_each(|(s, v)| *s += slope * Real::to_f64(*v));
            }
        }
        let (mut start, mut next) = (0, 0);
        for part in &self.parts {
            let (columns, own) = (start..start + part.sketch.draws(), next..next + part.sketch.spare());
            (start, next) = (columns.end, own.end);
            let tiles = vec![Tile::new(&units, n, d); part.degree as usize];
            pulled.fill(O::Real::ZERO);
            let window = TileMut::new(&mut pulled, n, d);
            part.sketch.pull(&tiles, cotangents.columns(columns), spare.columns(own), window, work);
            for (i, length) in lengths.iter().enumerate() {
                let (unit, pulled, sums) = (&units[i * d..][..d], &pulled[i * d..][..d], &mut sums[i * d..][..d]);
                let ln = |degree: u32| part.ln_weight + self.input.ln_factor(*length, degree);
                let factor = libm::exp(ln(part.degree - 1));
                let along = if self.input.gaussian {
                    let sum: f64 = unit.iter().zip(pulled).map(|(v, q)| Real::to_f64(*v) * Real::to_f64(*q)).sum();
                    libm::exp(ln(part.degree + 1)) * sum / f64::from(part.degree)
                } else {
                    0.0
                };
                for (sum, (v, q)) in sums.iter_mut().zip(unit.iter().zip(pulled)) {
                    *sum += factor * Real::to_f64(*q) - along * Real::to_f64(*v);
                }
            }
        }
        for (i, sums) in sums.chunks_exact(d).enumerate() {
            if let Some(metric) = &self.input.metric {
                for (sum, row) in sums.iter().zip(metric) {
                    let to = out.row_mut(i).iter_mut().zip(row);
                    to.for_each(|(o, l)| *o += O::Real::from_f64(sum * l));
                }
                continue;
            }
            let scales = self.input.length_scales.iter().cycle();
            let to = out.row_mut(i).iter_mut().zip(sums.iter().zip(scales));
            to.for_each(|(o, (sum, scale))| *o += O::Real::from_f64(sum / scale));
        }
        work.give(units);
        work.give(pulled);
    }
}

/// `exp(ln)`, at most the largest number.
fn factor<R: Real>(ln: f64) -> R {
    R::from_f64(libm::exp(ln).min(Real::to_f64(R::max_value())))
}

impl<O: Scalar> FeatureMap for Maclaurin<O> {
    type Real = O::Real;
    type Output = O;

    fn input_dim(&self) -> usize {
        self.input.dim
    }

    fn output_dim(&self) -> usize {
        self.constants + self.draws
    }

    fn map_tile(&self, rows: Tile<'_, O::Real>, out: TileMut<'_, O>, work: &mut Workspace<O::Real>) {
        let (mut constants, mut draws) = out.split_columns_at(self.constants);
        self.each_part(
            rows,
            work,
            |i, value| constants.row_mut(i).fill(O::from_parts(value, O::Real::ZERO)),
            |start, tiles, sketch, work| {
                sketch.write(tiles, draws.columns_mut(start..start + sketch.draws()), work);
            },
        );
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, O::Real>,
        from: Cotangents<'_, O::Real>,
        out: TileMut<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        let all = self.output_dim();
        let (constants, draws) = (from.re.columns(0..self.constants), from.columns(self.constants..all));
        self.pull_parts(rows, constants, from.re.columns(0..0), draws, out, work);
    }

    fn tile_rows(&self) -> usize {
        self.parts.iter().map(|part| part.sketch.tile_rows()).max().unwrap_or(64)
    }

    fn pieces(&self) -> Result<Piece<O::Real>> {
        self.series(false)
    }
}

/// A complex [`Maclaurin`] map with real output: the constants, spare columns, all real parts, all imaginary parts.
///
/// As [`ComplexToReal`](super::ComplexToReal), without the imaginary parts of the constants, which are zero.
#[derive(Debug, Clone)]
struct RealParts<R: Real> {
    inner: Maclaurin<R::Complex>,
}

impl<R: Real> RealParts<R> {
    fn spare(&self) -> usize {
        self.inner.parts.iter().map(|part| part.sketch.spare()).sum()
    }
}

impl<R: Real> FeatureMap for RealParts<R> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.inner.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.inner.constants + self.spare() + 2 * self.inner.draws
    }

    fn map_tile(&self, rows: Tile<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (mut constants, parts) = out.split_columns_at(self.inner.constants);
        let (mut spare, parts) = parts.split_columns_at(self.spare());
        let (re, im) = parts.split_columns_at(self.inner.draws);
        let mut parts = Parts::new(re, im);
        let mut next = 0;
        self.inner.each_part(
            rows,
            work,
            |i, value| constants.row_mut(i).fill(value),
            |start, tiles, sketch, work| {
                let columns = start..start + sketch.draws();
                let own = spare.columns_mut(next..next + sketch.spare());
                next += sketch.spare();
                sketch.write_split(tiles, parts.columns_mut(columns), own, work);
            },
        );
    }

    fn pull_tile(&self, rows: Tile<'_, R>, from: Cotangents<'_, R>, out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let (first, draws) = (self.inner.constants, self.inner.draws);
        let second = first + self.spare();
        let columns = |start: usize, end: usize| from.re.columns(start..end);
        let parts = Cotangents::new(columns(second, second + draws), columns(second + draws, second + 2 * draws));
        self.inner.pull_parts(rows, columns(0, first), columns(first, second), parts, out, work);
    }

    fn tile_rows(&self) -> usize {
        self.inner.tile_rows()
    }

    fn pieces(&self) -> Result<Piece<R>> {
        self.inner.series(true)
    }
}
