mod long;

use super::{Cotangents, Parts, Projection, Sink, project_parts_of_tile};
use crate::error::{Error, Result, check_count};
use crate::linalg::hadamard::{self, row_after, row_of_pieces};
use crate::linalg::vectors::{VectorKernel, Vectors};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::memory::zeros;
use crate::random::{Role, Seed, Stream};
use crate::scalar::{Real, Scalar};
use num_complex::Complex;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Sign–Hadamard rounds per block.
const ROUNDS: usize = 3;

/// Rows up to this length pass a full transform in the first round, longer ones one of pieces of [`PIECE`] numbers.
///
/// The first round only has to keep the second one from seeing rows whose length sits in a few coordinates, which 64 signs do
/// about as well as all of them; a full transform would be a fifth of the work.
const WHOLE: usize = 1024;
const PIECE: usize = 64;

/// Largest padded input dimension.
const MOST_DIM: usize = 1 << 22;

/// Structured directions in blocks of `√d' Hₙ D₁ Hₙ D₂ Hₙ D₃`: orthogonal rows of norm `√d'` at `O(log d')` per output.
///
/// `Hₙ` is the orthonormal Walsh–Hadamard matrix of the padded dimension `d'` and the `Dⱼ` are random signs, applied from
/// the right: `D₃` meets the row first. `⌈D/d'⌉` independent blocks are stacked and cut off at `D`. Beyond 1,024 dimensions
/// the first `Hₙ` is block-diagonal, with blocks of 64.
///
/// The complex twin (`O = Complex<R>`) takes `D₁` from `{1, -1, i, -i}`: one complex round at the end makes the outputs
/// circular (`E[u uᵀ] = 0`, `E|u|²|v|² ≈ N + t`, as for complex normals), while the first two rounds stay real and cost half.
///
/// # Estimate
/// `E[w wᴴ] = I` exactly, and directions within a block are exactly orthogonal; marginals are close to, not equal to,
/// normal ones, so kernels estimated through a nonlinearity are biased for small `d'`.
///
/// # Cost
/// `O(D log d')` per row (complex: 4/3 of it), `3 d'` bits per block (complex: 4/3 of it).
///
/// # Order of operations
/// Transforms have the order of [`linalg::hadamard`](crate::linalg::hadamard), but for two: pieces of the first round begin
/// with the strides 8, 16 and 32, and the last transforms of complex chains of 2 to 16 cache-sized blocks (`d'` from 8,192 to
/// 65,536 in single precision, half of it in double) with the strides across blocks.
///
/// # References
/// Yu et al. 2016 (SORF).
#[derive(Debug, Clone)]
pub struct HadamardChain<R, O = R> {
    input_dim: usize,
    output_dim: usize,
    padded_dim: usize,
    /// Per block: the bits of `D₁`, `D₂`, `D₃`, then for complex chains the bits that turn `D₁` by a right angle.
    signs: Arc<Vec<u64>>,
    kind: PhantomData<fn() -> (R, O)>,
}

impl<R: Real, O: Scalar<Real = R>> HadamardChain<R, O> {
    /// Draws the chain's signs.
    ///
    /// # Errors
    /// A dimension of 0, or inputs longer than 2²².
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_count("output_dim", output_dim)?;
        if input_dim > MOST_DIM {
            return Err(Error::parameter("input_dim", "at most 4194304 for Hadamard projections", input_dim));
        }
        let padded_dim = input_dim.next_power_of_two();
        let mut chain =
            HadamardChain { input_dim, output_dim, padded_dim, signs: Arc::new(Vec::new()), kind: PhantomData };
        let blocks = output_dim.div_ceil(padded_dim);
        let words = chain.words_per_block();
        let mut signs: Vec<u64> =
            zeros("signs of a Hadamard chain", blocks.checked_mul(words), "ask for fewer outputs")?;
        for (block, words) in signs.chunks_exact_mut(words).enumerate() {
            Stream::new(seed, Role::Sign, block as u64).fill_sign_bits(words);
        }
        chain.signs = Arc::new(signs);
        Ok(chain)
    }

    /// Power of two the rows are padded to: the size of a block.
    pub fn padded_dim(&self) -> usize {
        self.padded_dim
    }

    fn words_per_round(&self) -> usize {
        self.padded_dim.div_ceil(64)
    }

    fn words_per_block(&self) -> usize {
        (ROUNDS + usize::from(O::IS_COMPLEX)) * self.words_per_round()
    }

    /// Bits of part `part` of a block.
    fn bits(&self, block: usize, part: usize) -> &[u64] {
        &self.signs[block * self.words_per_block() + part * self.words_per_round()..][..self.words_per_round()]
    }

    /// Whether rows take the way of [`long`].
    fn is_long(&self) -> bool {
        O::IS_COMPLEX && long::takes::<R>(self.padded_dim)
    }

    /// Hands out the outputs of every block in `columns`, for rows that are long.
    fn visit_long(
        &self,
        rows: Tile<'_, R>,
        columns: Range<usize>,
        work: &mut Workspace<R>,
        visit: &mut dyn FnMut(usize, usize, &[R], &[R]),
    ) {
        let d = self.padded_dim;
        let mut buffer = work.take(long::buffer_len::<R>(d));
        // Row by row, so that pieces of the output come in order.
        for i in 0..rows.rows() {
            for first in columns.clone().step_by(d) {
                let bits = |part| self.bits(first / d, part);
                let (signs, turns) = ([bits(2), bits(1), bits(0)], bits(ROUNDS));
                let (used, here) = (d.min(self.output_dim - first), first - columns.start);
                R::dispatch(long::Chain {
                    row: rows.row(i),
                    dim: d,
                    used,
                    signs,
                    turns,
                    buffer: &mut buffer,
                    visit: &mut |at, re, im| visit(i, here + at, re, im),
                });
            }
        }
        work.give(buffer);
    }

    /// Writes the outputs of every block in `columns`; real chains leave `im` alone.
    fn write_blocks(&self, rows: Tile<'_, R>, columns: Range<usize>, mut out: Parts<'_, R>, work: &mut Workspace<R>) {
        let d = self.padded_dim;
        for first in columns.clone().step_by(d) {
            let (block, range) = (first / d, first..(first + d).min(self.output_dim));
            let signs = [2, 1, 0].map(|part| self.bits(block, part));
            let turns = O::IS_COMPLEX.then(|| self.bits(block, ROUNDS));
            let out = out.columns_mut(range.start - columns.start..range.end - columns.start);
            // A last block that is cut off has no room for its transform where the output goes.
            let mut buffer = work.take(if range.len() < d { 2 * d } else { 0 });
            R::dispatch(Chain { rows, signs, turns, out, buffer: &mut buffer });
            work.give(buffer);
        }
    }
}

/// All rows through one block, one row at a time: signs are applied to pieces of the row in the first-level cache, as
/// part of the transform that follows.
struct Chain<'a, R> {
    rows: Tile<'a, R>,
    /// `D₃`, `D₂`, `D₁`: in the order in which they meet the row.
    signs: [&'a [u64]; ROUNDS],
    /// Where `D₁` is turned by a right angle, for complex chains.
    turns: Option<&'a [u64]>,
    out: Parts<'a, R>,
    /// Two rows of the padded dimension, or nothing where the output has room for them.
    buffer: &'a mut [R],
}

impl<R: Real> VectorKernel<R> for Chain<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, vectors: S) {
        let Chain { rows, signs, turns, mut out, buffer } = self;
        let used = out.re.cols();
        let (own_re, own_im) = buffer.split_at_mut(buffer.len() / 2);
        for i in 0..rows.rows() {
            if own_re.is_empty() {
                let im = if turns.is_some() { out.im.row_mut(i) } else { &mut [] };
                chain(vectors, rows.row(i), signs, turns, out.re.row_mut(i), im);
            } else {
                chain(vectors, rows.row(i), signs, turns, own_re, own_im);
                out.write(i, 0, &own_re[..used], if turns.is_some() { &own_im[..used] } else { &[] });
            }
        }
    }
}

/// One block backwards, one row at a time.
struct Back<'a, R> {
    cotangents: Cotangents<'a, R>,
    /// `D₃`, `D₂`, `D₁`.
    signs: [&'a [u64]; ROUNDS],
    turns: Option<&'a [u64]>,
    out: TileMut<'a, R>,
    /// Two rows of the padded dimension.
    buffer: &'a mut [R],
}

impl<R: Real> VectorKernel<R> for Back<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, vectors: S) {
        let Back { cotangents, signs, turns, mut out, buffer } = self;
        let (x, other) = buffer.split_at_mut(buffer.len() / 2);
        for i in 0..out.rows() {
            let im = if turns.is_some() { cotangents.im.row(i) } else { &[] };
            chain_back(vectors, cotangents.re.row(i), im, signs, turns, x, other, out.row_mut(i));
        }
    }
}

/// One row backwards through one block: the matrices are symmetric, so their order turns around.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn chain_back<R: Real, S: Vectors<R>>(
    s: S,
    re: &[R],
    im: &[R],
    [d3, d2, d1]: [&[u64]; ROUNDS],
    turns: Option<&[u64]>,
    x: &mut [R],
    other: &mut [R],
    out: &mut [R],
) {
    let copy = |from: &[R], piece: &mut [R], start: usize| {
        let here = &from[start.min(from.len())..(start + piece.len()).min(from.len())];
        piece[..here.len()].copy_from_slice(here);
        piece[here.len()..].fill(R::ZERO);
    };
    row_after(
        s,
        x,
        #[inline(always)]
        |piece, start| copy(re, piece, start),
    );
    if let Some(turns) = turns {
        row_after(
            s,
            other,
            #[inline(always)]
            |piece, start| copy(im, piece, start),
        );
        // A turned sign took the number to the imaginary part.
        for ((to, from), turned) in x.chunks_mut(64).zip(other.chunks(64)).zip(turns) {
            for (k, (to, from)) in to.iter_mut().zip(from).enumerate() {
                *to = if turned >> k & 1 == 1 { *from } else { *to };
            }
        }
    }
    row_after(
        s,
        x,
        #[inline(always)]
        |piece, start| flip(piece, start, d1),
    );
    let scale = if x.len() > WHOLE {
        flip(x, 0, d2);
        for piece in x.as_chunks_mut::<PIECE>().0 {
            row_after(
                s,
                piece,
                #[inline(always)]
                |_, _| (),
            );
        }
        long_scale(x.len())
    } else {
        row_after(
            s,
            x,
            #[inline(always)]
            |piece, start| flip(piece, start, d2),
        );
        R::from_f64(1.0 / x.len() as f64)
    };
    flip(x, 0, d3);
    out.iter_mut().zip(x.iter()).for_each(|(o, v)| *o += scale * *v);
}

/// One row through one block.
#[inline(always)]
fn chain<R: Real, S: Vectors<R>>(
    s: S,
    row: &[R],
    [d3, d2, d1]: [&[u64]; ROUNDS],
    turns: Option<&[u64]>,
    re: &mut [R],
    im: &mut [R],
) {
    first_rounds(s, row, [d3, d2], re);
    let Some(turns) = turns else {
        return row_after(
            s,
            re,
            #[inline(always)]
            |piece, start| flip(piece, start, d1),
        );
    };
    // A turned sign is ±i: its product is imaginary, the others are real.
    let middle = &*re;
    row_after(
        s,
        im,
        #[inline(always)]
        |piece, start| {
            by_words(
                piece,
                start,
                #[inline(always)]
                |at, numbers| part(&window(middle, at), d1[at / 64], turns[at / 64], numbers),
            );
        },
    );
    row_after(
        s,
        re,
        #[inline(always)]
        |piece, start| {
            by_words(
                piece,
                start,
                #[inline(always)]
                |at, numbers| part(&{ *numbers }, d1[at / 64], !turns[at / 64], numbers),
            );
        },
    );
}

/// The two real rounds: `x = H D₂ H D₃ row`, scaled so that the last transform, not normalised either, ends at length `√d'`.
#[inline(always)]
fn first_rounds<R: Real, S: Vectors<R>>(s: S, row: &[R], [d3, d2]: [&[u64]; 2], x: &mut [R]) {
    if x.len() > WHOLE {
        let scale = s.splat(long_scale(x.len()));
        return row_of_pieces(
            s,
            x,
            #[inline(always)]
            |one, piece, at| first_piece(s, one, row, scale, [d3, d2], piece, at),
        );
    }
    // 1/d' is a power of two: rounds nothing.
    let scale = R::from_f64(1.0 / x.len() as f64);
    row_after(
        s,
        x,
        #[inline(always)]
        |piece, start| {
            by_words(
                piece,
                start,
                #[inline(always)]
                |at, numbers| {
                    let mut x = window(row, at);
                    x.iter_mut().for_each(|x| *x *= scale);
                    R::copy_signed(&x, d3[at / 64], numbers);
                },
            );
        },
    );
    row_after(
        s,
        x,
        #[inline(always)]
        |piece, start| flip(piece, start, d2),
    );
}

/// What rows beyond [`WHOLE`] are multiplied by; one over the root of the dimension times [`PIECE`].
fn long_scale<R: Real>(dim: usize) -> R {
    R::from_f64(1.0 / (dim as f64 * PIECE as f64).sqrt())
}

/// The first round of numbers `at..at + 64` of a long row and the stages of the second one inside them.
#[inline(always)]
fn first_piece<R: Real, S: Vectors<R>>(
    s: S,
    one: S::V,
    row: &[R],
    scale: S::V,
    [d3, d2]: [&[u64]; 2],
    out: &mut [R::Pack],
    at: usize,
) {
    let signs = [d3[at / PIECE], d2[at / PIECE]];
    match row.get(at..at + PIECE) {
        Some(x) => hadamard::piece(s, one, R::packs(x), scale, signs, out),
        None => hadamard::piece(s, one, R::packs(&window(row, at)), scale, signs, out),
    }
}

/// Changes the signs of a piece of a row where bits are set.
#[inline(always)]
fn flip<R: Real>(piece: &mut [R], start: usize, signs: &[u64]) {
    by_words(
        piece,
        start,
        #[inline(always)]
        |at, numbers| R::copy_signed(&{ *numbers }, signs[at / 64], numbers),
    );
}

/// The numbers whose bit in `kept` is set, with signs; zeros for the others.
#[inline(always)]
fn part<R: Real>(from: &[R; 64], signs: u64, kept: u64, to: &mut [R; 64]) {
    let mut signed = *from;
    R::copy_signed(from, signs, &mut signed);
    R::copy_masked(&signed, kept, to);
}

/// Hands a piece of a row, whose first number is number `start` of the row, to `change` by as many numbers as a word has bits,
/// with their place; short rows are filled up with zeros.
#[inline(always)]
fn by_words<R: Real>(piece: &mut [R], start: usize, change: impl Fn(usize, &mut [R; 64])) {
    let (whole, rest) = piece.as_chunks_mut::<64>();
    let count = whole.len();
    for (i, numbers) in whole.iter_mut().enumerate() {
        change(start + 64 * i, numbers);
    }
    if !rest.is_empty() {
        let mut numbers = window(rest, 0);
        change(start + 64 * count, &mut numbers);
        rest.copy_from_slice(&numbers[..rest.len()]);
    }
}

/// Numbers `at..at + 64` of a row, zeros past its end.
#[inline(always)]
fn window<R: Real>(row: &[R], at: usize) -> [R; 64] {
    let row = &row[at.min(row.len())..];
    if let Some(whole) = row.first_chunk() {
        return *whole;
    }
    let mut numbers = [R::ZERO; 64];
    numbers[..row.len()].copy_from_slice(row);
    numbers
}

impl<R: Real, O: Scalar<Real = R>> Projection for HadamardChain<R, O> {
    type Real = R;
    type Output = O;

    dims!();

    fn panel(&self) -> usize {
        self.padded_dim
    }

    fn operations(&self) -> u64 {
        // Three transforms per block, additions at a quarter of the speed of products; four for complex chains.
        let transforms = if O::IS_COMPLEX { 4 } else { 3 };
        let blocks = self.output_dim.div_ceil(self.padded_dim) * self.padded_dim;
        4 * transforms * blocks as u64 * u64::from(self.padded_dim.ilog2())
    }

    fn project_tile(&self, rows: Tile<'_, R>, columns: Range<usize>, out: TileMut<'_, O>, work: &mut Workspace<R>) {
        match O::as_real(out) {
            Ok(out) => self.write_blocks(rows, columns, Parts::real(out), work),
            Err(mut out) => {
                self.project_parts(rows, columns, work, &mut |i, first, re, im| out.write(i, first, re, im));
            }
        }
    }

    fn project_tile_split(
        &self,
        rows: Tile<'_, R>,
        columns: Range<usize>,
        mut out: Parts<'_, R>,
        work: &mut Workspace<R>,
    ) {
        if self.is_long() {
            self.visit_long(rows, columns, work, &mut |i, first, re, im| out.write(i, first, re, im));
        } else {
            self.write_blocks(rows, columns, out, work);
        }
    }

    fn pull_tile(
        &self,
        from: Cotangents<'_, R>,
        columns: Range<usize>,
        mut out: TileMut<'_, R>,
        work: &mut Workspace<R>,
    ) {
        let d = self.padded_dim;
        let mut buffer = work.take(2 * d);
        for first in columns.clone().step_by(d) {
            let (block, here) = (first / d, first - columns.start..(first + d).min(columns.end) - columns.start);
            let signs = [2, 1, 0].map(|part| self.bits(block, part));
            let turns = O::IS_COMPLEX.then(|| self.bits(block, ROUNDS));
            let (from, out) = (from.columns(here), out.reborrow());
            R::dispatch(Back { cotangents: from, signs, turns, out, buffer: &mut buffer });
        }
        work.give(buffer);
    }

    fn project_parts(
        &self,
        rows: Tile<'_, R>,
        columns: Range<usize>,
        work: &mut Workspace<R>,
        visit: &mut dyn FnMut(usize, usize, &[R], &[R]),
    ) {
        if self.is_long() {
            self.visit_long(rows, columns, work, visit);
        } else {
            project_parts_of_tile(self, rows, columns, work, visit);
        }
    }
}

/// The complex chain of optical features.
pub type ComplexChain<R> = HadamardChain<R, Complex<R>>;

#[cfg(test)]
mod tests {
    use super::super::panels;
    use super::*;
    use crate::linalg::hadamard::fwht;

    fn matrix<O: Scalar<Real = f64>>(chain: &HadamardChain<f64, O>) -> Vec<Vec<O>> {
        // Column j of W is the projection of basis vector j.
        let (d, m) = (chain.input_dim(), chain.output_dim());
        let mut identity = vec![0.0; d * d];
        (0..d).for_each(|i| identity[i * d + i] = 1.0);
        let mut out = vec![O::ZERO; d * m];
        chain.project_tile(Tile::new(&identity, d, d), 0..m, TileMut::new(&mut out, d, m), &mut Workspace::new());
        (0..m).map(|l| (0..d).map(|j| out[j * m + l]).collect()).collect()
    }

    #[test]
    fn directions_of_a_block_are_orthogonal_with_the_norm_of_a_normal_vector() {
        fn check<O: Scalar<Real = f64>>() {
            let chain = HadamardChain::<f64, O>::new(Seed::new(3), 16, 40).unwrap();
            let w = matrix(&chain);
            for a in 0..40 {
                for b in 0..40 {
                    if a / 16 == b / 16 {
                        let dot: O = w[a].iter().zip(&w[b]).map(|(x, y)| *x * y.conj()).sum();
                        let expected = if a == b { 16.0 } else { 0.0 };
                        // Entries are multiples of 1/16 of integers below 2^12: every product and sum is exact.
                        assert_eq!((dot.re(), dot.im()), (expected, 0.0), "{a} {b}");
                    }
                }
            }
        }
        check::<f64>();
        check::<Complex<f64>>();
    }

    #[test]
    fn second_moments_are_the_identity_and_complex_outputs_are_circular() {
        // Over seeds, E[w wᴴ] = I and E[w wᵀ] = 0 (complex). Every entry of w has |w|² ≤ d'; the mean over `seeds` of a
        // product bounded by 8 in standard deviation must lie within 6 standard errors.
        let seeds = 4000;
        let mut hermitian = [[Complex::new(0.0, 0.0); 3]; 3];
        let mut plain = hermitian;
        for seed in 0..seeds {
            let chain = ComplexChain::<f64>::new(Seed::new(seed), 3, 5).unwrap();
            let w = matrix(&chain);
            for a in 0..3 {
                for b in 0..3 {
                    hermitian[a][b] += w[4][a] * w[4][b].conj() / seeds as f64;
                    plain[a][b] += w[4][a] * w[4][b] / seeds as f64;
                }
            }
        }
        let tolerance = 6.0 * 4.0 / (seeds as f64).sqrt();
        for a in 0..3 {
            for b in 0..3 {
                let expected = f64::from(u8::from(a == b));
                assert!((hermitian[a][b] - expected).norm() < tolerance, "{a} {b}: {}", hermitian[a][b]);
                assert!(plain[a][b].norm() < tolerance, "{a} {b}: {}", plain[a][b]);
            }
        }
    }

    #[test]
    fn panels_rows_and_parts_agree_bit_for_bit() {
        let chain = ComplexChain::<f32>::new(Seed::new(1), 13, 41).unwrap();
        let mut rows = vec![0.0; 9 * 13];
        Stream::new(Seed::new(2), Role::Noise, 0).normals_from(0, &mut rows);
        let mut work = Workspace::new();
        let mut whole = vec![Complex::ZERO; 9 * 41];
        chain.project_tile(Tile::new(&rows, 9, 13), 0..41, TileMut::new(&mut whole, 9, 41), &mut work);
        for columns in panels(41, 16) {
            for i in 0..9 {
                let m = columns.len();
                let (mut re, mut im) = (vec![f32::NAN; m], vec![f32::NAN; m]);
                let out = Parts::new(TileMut::new(&mut re, 1, m), TileMut::new(&mut im, 1, m));
                let row = Tile::new(&rows[i * 13..][..13], 1, 13);
                chain.project_tile_split(row, columns.clone(), out, &mut work);
                for j in 0..m {
                    assert_eq!(Complex::new(re[j], im[j]), whole[i * 41 + columns.start + j]);
                }
            }
        }
    }

    /// One stage: sums and differences of numbers `h` apart.
    fn stage<R: Real>(x: &mut [R], h: usize) {
        for i in (0..x.len()).filter(|i| i & h == 0) {
            (x[i], x[i + h]) = (x[i] + x[i + h], x[i] - x[i + h]);
        }
    }

    /// The definition, with numbers for signs and a transform after each diagonal, in the documented order of stages.
    fn plain<R: Real, O: Scalar<Real = R>>(chain: &HadamardChain<R, O>, row: &[R]) -> Vec<O> {
        let d = chain.padded_dim;
        let piece = if d > 1024 { 64 } else { d };
        let block = (1 << 14) / size_of::<R>();
        let across_first = O::IS_COMPLEX && d > block && d <= 16 * block;
        let last = |x: &mut Vec<R>| {
            let inside = if across_first { block } else { d };
            (0..(d / inside).ilog2()).for_each(|i| stage(x, inside << i));
            x.chunks_exact_mut(inside).for_each(fwht);
        };
        let mut out = Vec::new();
        for block in 0..chain.output_dim.div_ceil(d) {
            let bit = |part: usize, j: usize| chain.bits(block, part)[j / 64] >> (j % 64) & 1 == 1;
            let sign = |part: usize, j: usize| if bit(part, j) { -R::ONE } else { R::ONE };
            let mut x = vec![R::ZERO; d];
            for (j, v) in row.iter().enumerate() {
                x[j] = *v * R::from_f64(1.0 / (d as f64 * piece as f64).sqrt()) * sign(2, j);
            }
            if d > 1024 {
                [8, 16, 32].into_iter().for_each(|h| stage(&mut x, h));
                x.chunks_exact_mut(8).for_each(fwht);
            } else {
                fwht(&mut x);
            }
            (0..d).for_each(|j| x[j] *= sign(1, j));
            fwht(&mut x);
            let turned = |j: usize| O::IS_COMPLEX && bit(ROUNDS, j);
            let mut re: Vec<R> = (0..d).map(|j| if turned(j) { R::ZERO } else { x[j] * sign(0, j) }).collect();
            let mut im: Vec<R> = (0..d).map(|j| if turned(j) { x[j] * sign(0, j) } else { R::ZERO }).collect();
            last(&mut re);
            last(&mut im);
            out.extend(re.iter().zip(&im).map(|(re, im)| O::from_parts(*re, *im)));
        }
        out.truncate(chain.output_dim);
        out
    }

    #[test]
    fn a_row_passes_signs_and_transforms_in_turn_whatever_its_length() {
        fn check<R: Real, O: Scalar<Real = R>>() {
            let short = [(1, 3), (2, 5), (13, 41), (31, 64), (33, 64), (64, 200), (100, 128), (300, 700), (1024, 1024)];
            // Pieces in the first round; then blocks across which stages are done first: two to sixteen, and more.
            let long = [(1025, 2100), (3000, 4096), (8192, 8192), (9000, 20_000), (20_001, 30_000), (65_536, 70_000)];
            for (d, m) in short.into_iter().chain(long) {
                let chain = HadamardChain::<R, O>::new(Seed::new(7), d, m).unwrap();
                let mut rows = vec![R::ZERO; 2 * d];
                Stream::new(Seed::new(2), Role::Noise, 0).normals_from(0, &mut rows);
                let mut out = vec![O::ZERO; 2 * m];
                chain.project_tile(Tile::new(&rows, 2, d), 0..m, TileMut::new(&mut out, 2, m), &mut Workspace::new());
                assert!(out[m..] == plain(&chain, &rows[d..]), "{} {d} {m}", R::NAME);
            }
        }
        check::<f32, f32>();
        check::<f64, f64>();
        check::<f32, Complex<f32>>();
        check::<f64, Complex<f64>>();
    }

    #[test]
    fn long_rows_have_the_same_bits_in_pieces_in_tiles_and_without_vector_instructions() {
        fn check<R: Real>() {
            let (d, m) = (9000, 20_000);
            let chain = HadamardChain::<R, R::Complex>::new(Seed::new(7), d, m).unwrap();
            let mut rows = vec![R::ZERO; 2 * d];
            Stream::new(Seed::new(2), Role::Noise, 0).normals_from(0, &mut rows);
            let (tile, mut work) = (Tile::new(&rows, 2, d), Workspace::new());
            let (mut re, mut im) = (vec![R::nan(); 2 * m], vec![R::nan(); 2 * m]);
            let out = Parts::new(TileMut::new(&mut re, 2, m), TileMut::new(&mut im, 2, m));
            chain.project_tile_split(tile, 0..m, out, &mut work);
            let mut next = [0, 0];
            chain.project_parts(tile, 0..m, &mut work, &mut |i, first, re_part, im_part| {
                assert_eq!(first, next[i]);
                next[i] += re_part.len();
                assert!(
                    re_part == &re[i * m + first..][..re_part.len()]
                        && im_part == &im[i * m + first..][..re_part.len()]
                );
            });
            assert_eq!(next, [m, m]);
            // The second block of the second row, which is cut off.
            let bits = |part| chain.bits(1, part);
            let mut buffer = vec![R::nan(); long::buffer_len::<R>(chain.padded_dim)];
            let first = chain.padded_dim;
            let mut done = 0;
            R::portable(long::Chain {
                row: &rows[d..],
                dim: first,
                used: m - first,
                signs: [bits(2), bits(1), bits(0)],
                turns: bits(ROUNDS),
                buffer: &mut buffer,
                visit: &mut |at, re_part, im_part| {
                    let at = m + first + at;
                    assert!(re_part == &re[at..][..re_part.len()] && im_part == &im[at..][..re_part.len()]);
                    done += re_part.len();
                },
            });
            assert_eq!(done, m - first);
        }
        check::<f32>();
        check::<f64>();
    }

    #[test]
    fn real_chains_of_long_rows_have_the_same_bits_without_vector_instructions() {
        fn check<R: Real>() {
            let d = 2048;
            let chain = HadamardChain::<R>::new(Seed::new(7), d, d).unwrap();
            let mut row = vec![R::ZERO; d];
            Stream::new(Seed::new(2), Role::Noise, 0).normals_from(0, &mut row);
            let (mut fast, mut portable) = (vec![R::nan(); d], vec![R::nan(); d]);
            let rows = Tile::new(&row, 1, d);
            chain.project_tile(rows, 0..d, TileMut::new(&mut fast, 1, d), &mut Workspace::new());
            R::portable(Chain {
                rows,
                signs: [2, 1, 0].map(|part| chain.bits(0, part)),
                turns: None,
                out: Parts::real(TileMut::new(&mut portable, 1, d)),
                buffer: &mut [],
            });
            assert!(fast == portable, "{}", R::NAME);
        }
        check::<f32>();
        check::<f64>();
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(HadamardChain::<f32>::new(Seed::new(0), 0, 1).is_err());
        assert!(HadamardChain::<f32>::new(Seed::new(0), 1, 0).is_err());
        assert!(HadamardChain::<f32>::new(Seed::new(0), (1 << 22) + 1, 1).is_err());
        assert!(HadamardChain::<f32>::new(Seed::new(0), 1, usize::MAX).is_err());
    }

    /// The mean of `cos wᵀτ` over every choice of signs, and the value it has there (verified by an enumeration elsewhere):
    /// the bias of structured Fourier features in few dimensions, to the last digit given.
    #[test]
    fn means_over_all_signs_are_the_known_ones() {
        for (tau, expected) in [(&[0.3, 0.6][..], 0.788_473), (&[0.3, 0.6, 0.9, 1.2][..], 0.147_143)] {
            let d = tau.len();
            let choices = 1u64 << d;
            let (mut sum, mut count) = (0.0, 0);
            let mut out = vec![0.0; d];
            for signs in 0..choices.pow(3) {
                let words = vec![signs % choices, signs / choices % choices, signs / choices / choices];
                let chain = HadamardChain::<f64> {
                    input_dim: d,
                    output_dim: d,
                    padded_dim: d,
                    signs: Arc::new(words),
                    kind: PhantomData,
                };
                chain.project_tile(Tile::new(tau, 1, d), 0..d, TileMut::new(&mut out, 1, d), &mut Workspace::new());
                sum += out.iter().map(|phase| phase.cos()).sum::<f64>();
                count += d;
            }
            let mean = sum / count as f64;
            assert!((mean - expected).abs() < 5e-7, "{mean} instead of {expected}");
        }
    }
}
