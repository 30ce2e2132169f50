use super::product_sketch::{FactorSketch, Pulled, check_factors, check_inputs, check_shapes};
use super::{FeatureMap, Lift, MAX_DEGREE, Piece};
use crate::error::{Error, Result, check_count};
use crate::linalg::{ComplexFft, Convolution, Tile, TileMut, Workspace, multiply_spectra};
use crate::projection::{Cotangents, CountSketch, Parts, Projection};
use crate::random::Seed;
use crate::scalar::{Real, Scalar};
use num_complex::Complex;
use std::sync::Arc;

/// Circular convolution of `p` independent count sketches: the sketch of `(γ⟨x, y⟩ + ν)ᵖ`, or of a product of different
/// inner products.
///
/// With [`CountSketch`]es `c₁, …, c_p` and the lifted row `x̃ = (√γ x, √ν)`, `φ(x) = c₁(x̃) ∗ … ∗ c_p(x̃)`: the count sketch
/// of `x̃ ⊗ … ⊗ x̃` whose hash is the sum of the hashes modulo `D` and whose sign is the product of the signs. Real for
/// signs `±1`, complex for `{1, i, −1, −i}`; [`ComplexToReal`](super::ComplexToReal) turns the latter into a real map.
///
/// # Estimate
/// Unbiased for every `D ≥ 1`. With `Bᵢ = tᵢ + bᵢ`, `Cᵢ = tᵢ + aᵢ` per factor
/// ([`PairStats`](crate::variance::PairStats)), the complex map has variance `(∏Bᵢ − ∏tᵢ)/D` and pseudo-variance
/// `(∏Cᵢ − ∏tᵢ)/D`; the real one nearly their sum ([`variance::tensor_sketch`](crate::variance::tensor_sketch)).
///
/// # Cost
/// `O(p(d + D log D))` per row, by Fourier transforms of any length; powers of two times a small number are fastest.
///
/// # Range
/// Rows are divided by a power of two that brings their largest coordinate near 1, products of spectra likewise, and the
/// powers are given back at the end: only features which are out of range themselves overflow or vanish.
///
/// # References
/// Pham and Pagh 2013; thesis 2.2.2 and 4.3 (complex signs).
///
/// ```
/// use bochner::feature::{FeatureMap, TensorSketch};
/// use bochner::random::Seed;
/// let map = TensorSketch::<f64>::draw(3, 2, 4096, Seed::new(7))?;
/// let z = map.transform(ndarray::array![[1.0, 2.0, 0.5], [0.5, 1.0, -1.0]].view())?;
/// assert!((z.row(0).dot(&z.row(1)) - 2.0f64.powi(2)).abs() < 0.5);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TensorSketch<O: Scalar> {
    factors: Arc<[CountSketch<O>]>,
    input: Input,
    input_dim: usize,
    plan: Plan<O::Real>,
}

/// What the factors see of a row.
#[derive(Debug, Clone, Copy)]
enum Input {
    /// All of them the lifted row.
    Shared(Lift),
    /// Each its own part.
    SideBySide,
}

#[derive(Debug, Clone)]
enum Plan<R> {
    Real(Convolution<R>),
    Complex(ComplexFft<R>),
}

/// Spectra of up to this many factors are multiplied before their magnitude is looked after: coordinates of size 2 in ten
/// million dimensions cannot leave the range of `f32` earlier.
const FACTORS_PER_RESCALING: usize = 4;

impl<O: Scalar> TensorSketch<O> {
    /// The sketch of `⟨x, y⟩ᵖ` with these count sketches as factors.
    ///
    /// # Errors
    /// No factors, more than [`MAX_DEGREE`], or dimensions that differ.
    pub fn new(factors: Vec<CountSketch<O>>) -> Result<Self> {
        let sketch = Self::multimodal(factors)?;
        let input_dim = sketch.factors[0].input_dim();
        sketch.with_lift(Lift::IDENTITY, input_dim)
    }

    /// The sketch of `∏ᵢ ⟨xᵢ, yᵢ⟩`, where factor `i` sees a vector of its own, of its own length.
    ///
    /// As a [`FeatureMap`] it takes these vectors side by side in one row; [`sketch_factors`](Self::sketch_factors) takes
    /// them apart.
    ///
    /// # Errors
    /// No factors, more than [`MAX_DEGREE`], or output dimensions that differ.
    pub fn multimodal(factors: Vec<CountSketch<O>>) -> Result<Self> {
        check_factors(&factors)?;
        let output_dim = factors[0].output_dim();
        let input_dim = factors.iter().map(Projection::input_dim).sum();
        let plan = if O::IS_COMPLEX {
            Plan::Complex(ComplexFft::new(output_dim))
        } else {
            Plan::Real(Convolution::new(output_dim))
        };
        Ok(TensorSketch { factors: factors.into(), input: Input::SideBySide, input_dim, plan })
    }

    /// Draws the sketch of `⟨x, y⟩ᵖ`; factor `i` is the count sketch of `seed.child(i)`.
    ///
    /// # Errors
    /// Dimensions or a degree of 0, a degree above [`MAX_DEGREE`], an output dimension of `2³²` or more.
    pub fn draw(input_dim: usize, degree: u32, output_dim: usize, seed: Seed) -> Result<Self> {
        let labels = 0..u64::from(degree.min(MAX_DEGREE + 1));
        let factors: Result<_> = labels.map(|i| CountSketch::new(input_dim, output_dim, seed.child(i))).collect();
        Self::new(factors?)
    }

    /// The sketch of `(γ⟨x, y⟩ + ν)ᵖ` on rows of length `input_dim`; the factors see lifted rows.
    ///
    /// # Errors
    /// Factors that were not drawn for lifted rows of this length.
    pub fn with_lift(mut self, lift: Lift, input_dim: usize) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_inputs(&self.factors, lift.output_dim(input_dim))?;
        self.input = Input::Shared(lift);
        self.input_dim = input_dim;
        Ok(self)
    }

    /// The count sketches.
    pub fn factors(&self) -> &[CountSketch<O>] {
        &self.factors
    }

    /// Sketches `⊗ᵢ rows[i]`: factor `i` sees `rows[i]`, as it is, whatever its length.
    ///
    /// # Errors
    /// Shapes that do not fit the factors.
    pub fn sketch_factors(
        &self,
        rows: &[Tile<'_, O::Real>],
        out: TileMut<'_, O>,
        work: &mut Workspace<O::Real>,
    ) -> Result<()> {
        check_shapes(&self.factors, rows, &out)?;
        self.sketch(rows, out, work);
        Ok(())
    }

    /// The sketch of one row, up to a power of two which is returned with the factor `1/D` still to come.
    ///
    /// `fetch(i, row)` writes what factor `i` sees, divided by a power of two, and returns the exponent.
    fn sketch_row(&self, buffers: &mut Buffers<O::Real>, mut fetch: impl FnMut(usize, &mut [O::Real]) -> i32) -> i64 {
        let Buffers { row, signal, product, spectrum, scratch } = buffers;
        let mut exponent = 0;
        for (i, factor) in self.factors.iter().enumerate() {
            let row = &mut row[..factor.input_dim()];
            exponent += i64::from(fetch(i, row));
            let target = if i == 0 { &mut *product } else { &mut *spectrum };
            match &self.plan {
                Plan::Real(plan) => {
                    signal.fill(O::Real::ZERO);
                    factor.for_each(row, |hash, value| signal[hash] += value.re());
                    if self.factors.len() > 1 {
                        plan.forward(signal, target, scratch);
                    }
                }
                Plan::Complex(plan) => {
                    target.fill(Complex::new(O::Real::ZERO, O::Real::ZERO));
                    factor.for_each(row, |hash, value| {
                        target[hash].re += value.re();
                        target[hash].im += value.im();
                    });
                    if self.factors.len() > 1 {
                        plan.forward(target, scratch);
                    }
                }
            }
            if i > 0 {
                multiply_spectra(product, spectrum);
            }
            if i % FACTORS_PER_RESCALING == FACTORS_PER_RESCALING - 1 && i + 1 < self.factors.len() {
                exponent += i64::from(rescale(product));
            }
        }
        if self.factors.len() > 1 {
            match &self.plan {
                Plan::Real(plan) => plan.inverse(product, signal, scratch),
                Plan::Complex(plan) => plan.inverse(product, scratch),
            }
        }
        exponent
    }

    /// The spectrum of a factor's sketch of the row in the buffers; of a single factor the sketch itself is never asked for.
    fn spectrum(&self, buffers: &mut Buffers<O::Real>, factor: usize, target: &mut [Complex<O::Real>]) {
        let Buffers { row, signal, scratch, .. } = buffers;
        let factor = &self.factors[factor];
        let row = &row[..factor.input_dim()];
        match &self.plan {
            Plan::Real(plan) => {
                signal.fill(O::Real::ZERO);
                factor.for_each(row, |hash, value| signal[hash] += value.re());
                plan.forward(signal, target, scratch);
            }
            Plan::Complex(plan) => {
                target.fill(Complex::new(O::Real::ZERO, O::Real::ZERO));
                factor.for_each(row, |hash, value| {
                    target[hash].re += value.re();
                    target[hash].im += value.im();
                });
                plan.forward(target, scratch);
            }
        }
    }

    /// The spectrum of the cotangent of row `i`, or for a single factor the cotangent itself.
    fn cotangent_spectrum(
        &self,
        buffers: &mut Buffers<O::Real>,
        cotangents: Cotangents<'_, O::Real>,
        i: usize,
        target: &mut [Complex<O::Real>],
    ) {
        let Buffers { signal, scratch, .. } = buffers;
        match &self.plan {
            Plan::Real(plan) => {
                signal.copy_from_slice(cotangents.re.row(i));
                if self.factors.len() > 1 {
                    plan.forward(signal, target, scratch);
                }
            }
            Plan::Complex(plan) => {
                let parts = cotangents.re.row(i).iter().zip(cotangents.im.row(i));
                target.iter_mut().zip(parts).for_each(|(to, (re, im))| *to = Complex::new(*re, *im));
                if self.factors.len() > 1 {
                    plan.forward(target, scratch);
                }
            }
        }
    }

    /// The factors that make a sketched row right: a power of two, over `D` if it was transformed.
    fn remaining_factors(&self, exponent: i64) -> (O::Real, impl Iterator<Item = O::Real> + use<O>) {
        let weight = if self.factors.len() > 1 { 1.0 / self.output_dim() as f64 } else { 1.0 };
        let limit = i64::from(exponent_limit::<O::Real>());
        // Every non-zero number is out of range long before four times the limit.
        let exponent = exponent.clamp(-4 * limit, 4 * limit);
        let first = exponent.clamp(-limit, limit);
        let step = power_of_two((exponent - first).clamp(-limit, limit) as i32);
        let whole = (exponent - first) / limit;
        let last = power_of_two(((exponent - first) % limit) as i32);
        let more = std::iter::repeat_n(step, whole.unsigned_abs() as usize).chain((exponent != first).then_some(last));
        (O::Real::from_f64(power_of_two(first as i32) * weight), more.map(O::Real::from_f64))
    }

    fn write(&self, buffers: &mut Buffers<O::Real>, exponent: i64, out: &mut [O]) {
        let (scale, more) = self.remaining_factors(exponent);
        match self.plan {
            Plan::Real(_) => {
                for (o, v) in out.iter_mut().zip(&buffers.signal) {
                    *o = O::from_parts(*v * scale, O::Real::ZERO);
                }
            }
            Plan::Complex(_) => {
                for (o, z) in out.iter_mut().zip(&buffers.product) {
                    *o = O::from_parts(z.re * scale, z.im * scale);
                }
            }
        }
        for factor in more {
            out.iter_mut().for_each(|o| *o = o.scale(factor));
        }
    }

    fn write_split(&self, buffers: &mut Buffers<O::Real>, exponent: i64, re: &mut [O::Real], im: &mut [O::Real]) {
        let (scale, more) = self.remaining_factors(exponent);
        match self.plan {
            Plan::Real(_) => re.iter_mut().zip(&buffers.signal).for_each(|(o, v)| *o = *v * scale),
            Plan::Complex(_) => {
                for ((re, im), z) in re.iter_mut().zip(im.iter_mut()).zip(&buffers.product) {
                    (*re, *im) = (z.re * scale, z.im * scale);
                }
            }
        }
        for factor in more {
            re.iter_mut().for_each(|v| *v *= factor);
            if O::IS_COMPLEX {
                im.iter_mut().for_each(|v| *v *= factor);
            }
        }
    }

    /// Sketches every row of a tile and hands it to `write`.
    fn each_row(
        &self,
        rows: Tile<'_, O::Real>,
        work: &mut Workspace<O::Real>,
        mut write: impl FnMut(usize, &mut Buffers<O::Real>, i64),
    ) {
        let mut buffers = Buffers::lend(self, work);
        for i in 0..rows.rows() {
            let row = rows.row(i);
            let exponent = match self.input {
                Input::Shared(lift) => {
                    let mut exponent = 0;
                    self.sketch_row(&mut buffers, |factor, out| {
                        // All factors see the same numbers: they stay in the buffer.
                        if factor == 0 {
                            exponent = balance(lift, row, out);
                        }
                        exponent
                    })
                }
                Input::SideBySide => {
                    let mut start = 0;
                    self.sketch_row(&mut buffers, |factor, out| {
                        let part = &row[start..][..self.factors[factor].input_dim()];
                        start += part.len();
                        balance(Lift::IDENTITY, part, out)
                    })
                }
            };
            write(i, &mut buffers, exponent);
        }
        buffers.give_back(work);
    }
}

impl<O: Scalar> FeatureMap for TensorSketch<O> {
    type Real = O::Real;
    type Output = O;

    fn input_dim(&self) -> usize {
        self.input_dim
    }

    fn output_dim(&self) -> usize {
        self.factors[0].output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, O::Real>, mut out: TileMut<'_, O>, work: &mut Workspace<O::Real>) {
        self.each_row(rows, work, |i, buffers, exponent| self.write(buffers, exponent, out.row_mut(i)));
    }

    fn map_tile_split(&self, rows: Tile<'_, O::Real>, mut out: Parts<'_, O::Real>, work: &mut Workspace<O::Real>) {
        self.each_row(rows, work, |i, buffers, exponent| {
            // A real map may be given no imaginary part to write to.
            let im = if O::IS_COMPLEX { out.im.row_mut(i) } else { &mut [] };
            self.write_split(buffers, exponent, out.re.row_mut(i), im);
        });
    }

    fn pull_tile(
        &self,
        rows: Tile<'_, O::Real>,
        from: Cotangents<'_, O::Real>,
        mut out: TileMut<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        match self.input {
            Input::Shared(lift) => {
                let (n, m) = (rows.rows(), lift.output_dim(rows.cols()));
                let mut lifted = work.take(n * m);
                lift.lift_into(rows, 1.0, &mut lifted);
                let tiles = vec![Tile::new(&lifted, n, m); self.factors.len()];
                lift.pull_into(out, work, |out, work| self.pull(&tiles, from, Pulled::Shared(out), work));
                work.give(lifted);
            }
            Input::SideBySide => {
                let (mut tiles, mut outs, mut start) = (Vec::new(), Vec::new(), 0);
                for factor in &*self.factors {
                    let end = start + factor.input_dim();
                    tiles.push(rows.columns(start..end));
                    let own;
                    (own, out) = out.split_columns_at(factor.input_dim());
                    outs.push(own);
                    start = end;
                }
                self.pull(&tiles, from, Pulled::Each(outs), work);
            }
        }
    }

    fn tile_rows(&self) -> usize {
        16
    }

    fn pieces(&self) -> Result<Piece<O::Real>> {
        let factor = |sketch: &CountSketch<O>| {
            let piece = Piece::new("count_sketch").indices("hashes", sketch.hashes());
            let piece = piece.vector("weights", sketch.signs().iter().map(|sign| sign.re()));
            if O::IS_COMPLEX { piece.vector("weights_im", sketch.signs().iter().map(|sign| sign.im())) } else { piece }
        };
        let sketch = Piece::new("convolution")
            .number("outputs", self.output_dim() as f64)
            .pieces("factors", self.factors.iter().map(factor).collect());
        match self.input {
            Input::Shared(lift) => Ok(lift.piece(sketch)),
            Input::SideBySide => Err(Error::Unsupported {
                what: "pieces of a map",
                reason: "factors that see different rows have them one by one; ask the sketch of shared rows".into(),
            }),
        }
    }
}

impl<O: Scalar> FactorSketch for TensorSketch<O> {
    fn sketch(&self, rows: &[Tile<'_, O::Real>], mut out: TileMut<'_, O>, work: &mut Workspace<O::Real>) {
        let mut buffers = Buffers::lend(self, work);
        for i in 0..out.rows() {
            let exponent =
                self.sketch_row(&mut buffers, |factor, row| balance(Lift::IDENTITY, rows[factor].row(i), row));
            self.write(&mut buffers, exponent, out.row_mut(i));
        }
        buffers.give_back(work);
    }

    fn pull(
        &self,
        rows: &[Tile<'_, O::Real>],
        cotangents: Cotangents<'_, O::Real>,
        mut out: Pulled<'_, O::Real>,
        work: &mut Workspace<O::Real>,
    ) {
        let p = self.factors.len();
        let mut buffers = Buffers::lend(self, work);
        let len = buffers.product.len();
        // Spectra of the factors; those right of a factor, multiplied up; those left of it times the cotangent's.
        let (mut spectra, mut after) = (work.take_complex(p * len), work.take_complex(p * len));
        let mut pulled = work.take(2 * self.output_dim());
        let mut exponents = vec![0i64; 2 * p];
        for i in 0..rows[0].rows() {
            let (own, behind) = exponents.split_at_mut(p);
            for (k, factor) in self.factors.iter().enumerate() {
                let row = &mut buffers.row[..factor.input_dim()];
                own[k] = i64::from(balance(Lift::IDENTITY, rows[k].row(i), row));
                self.spectrum(&mut buffers, k, &mut spectra[k * len..][..len]);
            }
            let balanced: i64 = own.iter().sum();
            for k in (0..p).rev() {
                let (to, next) = after[k * len..].split_at_mut(len);
                if k + 1 == p {
                    to.fill(Complex::new(O::Real::ONE, O::Real::ZERO));
                    behind[k] = 0;
                } else {
                    to.copy_from_slice(&next[..len]);
                    multiply_spectra(to, &spectra[(k + 1) * len..][..len]);
                    behind[k] = behind[k + 1] + i64::from(rescale(to));
                }
            }
            let mut before = work.take_complex(len);
            self.cotangent_spectrum(&mut buffers, cotangents, i, &mut before);
            let mut in_front = 0;
            for (k, factor) in self.factors.iter().enumerate() {
                let product = &mut buffers.product;
                product.copy_from_slice(&before);
                multiply_by_conjugate(product, &after[k * len..][..len]);
                if p > 1 {
                    match &self.plan {
                        Plan::Real(plan) => plan.inverse(product, &mut buffers.signal, &mut buffers.scratch),
                        Plan::Complex(plan) => plan.inverse(product, &mut buffers.scratch),
                    }
                }
                let (re, im) = pulled.split_at_mut(self.output_dim());
                self.write_split(&mut buffers, in_front + behind[k] + balanced - own[k], re, im);
                factor
                    .pull_row(out.of(k).row_mut(i), |hash| (re[hash], if O::IS_COMPLEX { im[hash] } else { re[hash] }));
                multiply_by_conjugate(&mut before, &spectra[k * len..][..len]);
                in_front += i64::from(rescale(&mut before));
            }
            work.give_complex(before);
        }
        work.give(pulled);
        work.give_complex(spectra);
        work.give_complex(after);
        buffers.give_back(work);
    }
}

/// What one row needs.
struct Buffers<R> {
    row: Vec<R>,
    signal: Vec<R>,
    product: Vec<Complex<R>>,
    spectrum: Vec<Complex<R>>,
    scratch: Vec<Complex<R>>,
}

impl<R: Real> Buffers<R> {
    fn lend<O: Scalar<Real = R>>(sketch: &TensorSketch<O>, work: &mut Workspace<R>) -> Self {
        let longest = sketch.factors.iter().map(Projection::input_dim).max().unwrap_or(0);
        let (signal, spectrum, scratch) = match &sketch.plan {
            Plan::Real(plan) => (plan.signal_len(), plan.spectrum_len(), plan.scratch_len()),
            Plan::Complex(plan) => (0, plan.signal_len(), plan.scratch_len()),
        };
        Buffers {
            row: work.take(longest),
            signal: work.take(signal),
            product: work.take_complex(spectrum),
            spectrum: work.take_complex(if sketch.factors.len() > 1 { spectrum } else { 0 }),
            scratch: work.take_complex(scratch),
        }
    }

    fn give_back(self, work: &mut Workspace<R>) {
        work.give(self.row);
        work.give(self.signal);
        work.give_complex(self.product);
        work.give_complex(self.spectrum);
        work.give_complex(self.scratch);
    }
}

/// Exponents up to this one, on either side, leave room in the type for a factor `1/D` and for rounding.
fn exponent_limit<R>() -> i32 {
    if size_of::<R>() == 4 { 90 } else { 900 }
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

/// `⌊log₂ value⌋`; 0 for 0 and for what is not finite.
fn exponent_of(value: f64) -> i32 {
    if value > 0.0 && value.is_finite() { libm::ilogb(value) } else { 0 }
}

/// The largest modulus in a list.
fn largest<R: Real>(values: &[R]) -> f64 {
    let larger = |m: R, v: R| if v.abs() > m { v.abs() } else { m };
    let mut lanes = [R::ZERO; 16];
    let chunks = values.chunks_exact(16);
    let tail = chunks.remainder().iter().fold(R::ZERO, |m, v| larger(m, *v));
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(m, v)| *m = larger(*m, *v));
    }
    Real::to_f64(lanes.into_iter().fold(tail, larger))
}

/// Writes the lifted row divided by the power of two below its largest coordinate, and returns the exponent.
fn balance<R: Real>(lift: Lift, row: &[R], out: &mut [R]) -> i32 {
    let exponent = exponent_of((lift.scale * largest(row)).max(lift.bias));
    // The lift multiplies by one number, which must be in range for tiny rows too; the rest is made up for afterwards.
    let first = exponent.max(exponent_of(lift.scale) - exponent_limit::<R>());
    lift.lift_into(Tile::new(row, 1, row.len()), power_of_two(-first), out);
    if first != exponent {
        let rest = R::from_f64(power_of_two(first - exponent));
        out.iter_mut().for_each(|v| *v *= rest);
    }
    exponent
}

/// `target[k] *= conj(factor[k])`.
fn multiply_by_conjugate<R: Real>(target: &mut [Complex<R>], factor: &[Complex<R>]) {
    for (a, b) in target.iter_mut().zip(factor) {
        *a = Complex::new(a.re * b.re + a.im * b.im, a.im * b.re - a.re * b.im);
    }
}

/// Divides by the power of two below the largest part of all numbers, and returns the exponent.
fn rescale<R: Real>(numbers: &mut [Complex<R>]) -> i32 {
    let larger = |m: R, v: R| if v.abs() > m { v.abs() } else { m };
    let largest = numbers.iter().fold(R::ZERO, |m, z| larger(larger(m, z.re), z.im));
    let exponent = exponent_of(Real::to_f64(largest)).max(-exponent_limit::<R>());
    let factor = R::from_f64(power_of_two(-exponent));
    numbers.iter_mut().for_each(|z| *z = Complex::new(z.re * factor, z.im * factor));
    exponent
}
