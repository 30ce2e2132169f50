//! Products of subsampled transforms without storing a factor.
//!
//! Eight rows are transposed, so that coordinate `j` of all of them is contiguous; their transforms stay in that form, and
//! an index fetches eight numbers with one load. Products are formed in registers, transposed there and written as rows.

use super::Srht;
use crate::linalg::hadamard::{gather_lanes, lanes, signed_lanes};
use crate::linalg::vectors::{Packed, SLACK, VectorKernel, Vectors, aligned};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::projection::{Cotangents, Sink};
use crate::random::fourth_root;
use crate::scalar::{Real, Scalar};
use std::ops::Range;

/// Columns that are collected before they are written row by row.
const CHUNK: usize = 64;

/// Writes columns `columns` of `∏ᵢ factors[i](rows[i])`.
pub(super) fn product<O: Scalar, K: Sink<O::Real>>(
    factors: &[Srht<O::Real, O>],
    rows: &[Tile<'_, O::Real>],
    columns: Range<usize>,
    sink: K,
    work: &mut Workspace<O::Real>,
) {
    if O::IS_COMPLEX {
        O::Real::dispatch(Product::<O, K, 2> { factors, rows, columns, sink, work });
    } else {
        O::Real::dispatch(Product::<O, K, 1> { factors, rows, columns, sink, work });
    }
}

struct Product<'a, O: Scalar, K, const PARTS: usize> {
    factors: &'a [Srht<O::Real, O>],
    rows: &'a [Tile<'a, O::Real>],
    columns: Range<usize>,
    sink: K,
    work: &'a mut Workspace<O::Real>,
}

/// What one factor needs while eight rows pass.
struct Factor<'a, R, const PARTS: usize> {
    /// Which set of transposed rows it sees.
    rows: usize,
    /// Consecutive outputs that share their signs.
    block: usize,
    /// The block whose transform is in `table`.
    current: usize,
    /// Signs of all blocks in use, the first of which is block number `first`.
    signs: &'a [[R; PARTS]],
    first: usize,
    table: &'a mut [[[R; 8]; PARTS]],
    /// `8 PARTS` times the coordinate behind every output, which is less than the table's length.
    offsets: &'a [u32],
}

/// Takes `len` numbers from the front of a buffer, as packs of `N`.
fn carve<'a, R, const N: usize>(buffer: &mut &'a mut [R], len: usize) -> &'a mut [[R; N]] {
    let (front, rest) = std::mem::take(buffer).split_at_mut(len * N);
    *buffer = rest;
    front.as_chunks_mut().0
}

impl<O: Scalar, K: Sink<O::Real>, const PARTS: usize> VectorKernel<O::Real> for Product<'_, O, K, PARTS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<O::Real>>(self, s: S) {
        let Product { factors, rows, columns, mut sink, work } = self;
        if factors.is_empty() || columns.is_empty() {
            return;
        }
        // Factors usually see the same rows: those are transposed once.
        let mut distinct: Vec<(Tile<'_, O::Real>, usize)> = Vec::with_capacity(rows.len());
        let slots: Vec<usize> = rows
            .iter()
            .map(|tile| {
                let same = |(other, _): &(Tile<'_, O::Real>, usize)| {
                    let (a, b) = (tile.as_slice(), other.as_slice());
                    a.as_ptr() == b.as_ptr() && (tile.cols(), tile.stride()) == (other.cols(), other.stride())
                };
                distinct.iter().position(same).unwrap_or_else(|| {
                    distinct.push((*tile, tile.cols().next_power_of_two()));
                    distinct.len() - 1
                })
            })
            .collect();
        let blocks = |f: &Srht<O::Real, O>| columns.start / f.block..columns.end.div_ceil(f.block);
        let lanes: usize = distinct.iter().map(|(_, padded)| 8 * padded).sum();
        let tables: usize = factors.iter().map(|f| PARTS * (8 + blocks(f).len()) * f.padded).sum();
        let mut memory = work.take(SLACK + PARTS * 8 * CHUNK + lanes + tables);
        let mut rest = aligned(&mut memory);
        let stage: &mut [[O::Real; CHUNK]] = carve(&mut rest, PARTS * 8);
        let mut lanes: Vec<&mut [[O::Real; 8]]> = distinct.iter().map(|(_, len)| carve(&mut rest, *len)).collect();
        let mut list: Vec<Factor<'_, O::Real, PARTS>> = factors
            .iter()
            .zip(&slots)
            .map(|(f, &rows)| {
                let table = carve::<_, 8>(&mut rest, PARTS * f.padded).as_chunks_mut().0;
                let blocks = blocks(f);
                let signs = carve(&mut rest, blocks.len() * f.padded);
                f.expand_signs(blocks.clone(), signs);
                let (current, first) = (usize::MAX, blocks.start);
                Factor { rows, block: f.block, current, signs, first, table, offsets: &f.offsets }
            })
            .collect();
        let n = rows[0].rows();
        for start in (0..n).step_by(8) {
            let count = (n - start).min(8);
            for ((tile, _), lanes) in distinct.iter().zip(&mut lanes) {
                gather_lanes(s, tile.rows_in(start..start + count), lanes);
            }
            list.iter_mut().for_each(|f| f.current = usize::MAX);
            let mut column = columns.start;
            while column < columns.end {
                let mut end = columns.end;
                for f in &mut list {
                    let block = column / f.block;
                    end = end.min((block + 1) * f.block);
                    if f.current != block {
                        let len = f.table.len();
                        signed_lanes(s, lanes[f.rows], &f.signs[(block - f.first) * len..][..len], f.table);
                        f.current = block;
                    }
                }
                while column < end {
                    let stop = end.min(column + CHUNK);
                    for (k, at) in (column..stop).step_by(8).enumerate() {
                        multiply(s, &list, at, &mut *stage, 8 * k);
                    }
                    for i in 0..count {
                        let width = stop - column;
                        let im = if PARTS == 2 { &stage[8 + i][..width] } else { &[] };
                        sink.write(start + i, column - columns.start, &stage[i][..width], im);
                    }
                    column = stop;
                }
            }
        }
        work.give(memory);
    }
}

/// Products of eight columns from `column` on, written to the stage's columns from `to` on.
#[inline(always)]
fn multiply<R: Real, S: Vectors<R>, const PARTS: usize>(
    s: S,
    factors: &[Factor<'_, R, PARTS>],
    column: usize,
    stage: &mut [[R; CHUNK]],
    to: usize,
) {
    for half in 0..8 / R::WIDTH {
        if PARTS == 1 {
            let product = multiply8(s, factors, column, half);
            store(s, product, &mut stage[half * R::WIDTH..], to);
        } else {
            let ([a, b, c, d], [i, j, k, l]) = multiply4::<R, S, PARTS, 0>(s, factors, column, half);
            let ([e, f, g, h], [m, n, o, p]) = multiply4::<R, S, PARTS, 4>(s, factors, column, half);
            store(s, [a, b, c, d, e, f, g, h], &mut stage[half * R::WIDTH..], to);
            store(s, [i, j, k, l, m, n, o, p], &mut stage[8 + half * R::WIDTH..], to);
        }
    }
}

impl<R: Real, const PARTS: usize> Factor<'_, R, PARTS> {
    /// Offsets of the coordinates behind eight outputs.
    #[inline(always)]
    fn window(&self, column: usize) -> &[u32; 8] {
        self.offsets[column..].first_chunk().expect("seven more than there are outputs")
    }

    /// Pack `half` of part `part` of the coordinate at `offset`.
    #[inline(always)]
    #[allow(unsafe_code)]
    fn fetch<S: Vectors<R>>(&self, s: S, offset: u32, part: usize, half: usize) -> S::V {
        let at = offset as usize + 8 * part + half * R::WIDTH;
        debug_assert!(at + R::WIDTH <= self.table.as_flattened().as_flattened().len());
        // SAFETY: offsets are 8 PARTS times an index that `with_indices` asserted to be less than `padded`, the length of
        // the table, so the pack lies inside it. `padded` is at most 2²⁶: no offset wraps in 32 bits.
        s.load(unsafe { &*self.table.as_ptr().cast::<R>().add(at).cast::<R::Pack>() })
    }
}

/// Real products of eight columns.
#[inline(always)]
fn multiply8<R: Real, S: Vectors<R>, const PARTS: usize>(
    s: S,
    factors: &[Factor<'_, R, PARTS>],
    column: usize,
    half: usize,
) -> [S::V; 8] {
    let f = &factors[0];
    let &[a, b, c, d, e, g, h, i] = f.window(column);
    let mut p0 = f.fetch(s, a, 0, half);
    let mut p1 = f.fetch(s, b, 0, half);
    let mut p2 = f.fetch(s, c, 0, half);
    let mut p3 = f.fetch(s, d, 0, half);
    let mut p4 = f.fetch(s, e, 0, half);
    let mut p5 = f.fetch(s, g, 0, half);
    let mut p6 = f.fetch(s, h, 0, half);
    let mut p7 = f.fetch(s, i, 0, half);
    for f in &factors[1..] {
        let &[a, b, c, d, e, g, h, i] = f.window(column);
        p0 = s.mul(p0, f.fetch(s, a, 0, half));
        p1 = s.mul(p1, f.fetch(s, b, 0, half));
        p2 = s.mul(p2, f.fetch(s, c, 0, half));
        p3 = s.mul(p3, f.fetch(s, d, 0, half));
        p4 = s.mul(p4, f.fetch(s, e, 0, half));
        p5 = s.mul(p5, f.fetch(s, g, 0, half));
        p6 = s.mul(p6, f.fetch(s, h, 0, half));
        p7 = s.mul(p7, f.fetch(s, i, 0, half));
    }
    [p0, p1, p2, p3, p4, p5, p6, p7]
}

/// `(a + ib)(c + id)` with the roundings of `num_complex`.
#[inline(always)]
fn complex_product<R: Real, S: Vectors<R>>(s: S, (a, b): (S::V, S::V), (c, d): (S::V, S::V)) -> (S::V, S::V) {
    (s.sub(s.mul(a, c), s.mul(b, d)), s.add(s.mul(b, c), s.mul(a, d)))
}

/// Complex products of four columns, the first of which is `column + SKIP`; eight would not fit into registers.
#[inline(always)]
fn multiply4<R: Real, S: Vectors<R>, const PARTS: usize, const SKIP: usize>(
    s: S,
    factors: &[Factor<'_, R, PARTS>],
    column: usize,
    half: usize,
) -> ([S::V; 4], [S::V; 4]) {
    let f = &factors[0];
    let w = f.window(column);
    let mut p0 = (f.fetch(s, w[SKIP], 0, half), f.fetch(s, w[SKIP], 1, half));
    let mut p1 = (f.fetch(s, w[SKIP + 1], 0, half), f.fetch(s, w[SKIP + 1], 1, half));
    let mut p2 = (f.fetch(s, w[SKIP + 2], 0, half), f.fetch(s, w[SKIP + 2], 1, half));
    let mut p3 = (f.fetch(s, w[SKIP + 3], 0, half), f.fetch(s, w[SKIP + 3], 1, half));
    for f in &factors[1..] {
        let w = f.window(column);
        p0 = complex_product(s, p0, (f.fetch(s, w[SKIP], 0, half), f.fetch(s, w[SKIP], 1, half)));
        p1 = complex_product(s, p1, (f.fetch(s, w[SKIP + 1], 0, half), f.fetch(s, w[SKIP + 1], 1, half)));
        p2 = complex_product(s, p2, (f.fetch(s, w[SKIP + 2], 0, half), f.fetch(s, w[SKIP + 2], 1, half)));
        p3 = complex_product(s, p3, (f.fetch(s, w[SKIP + 3], 0, half), f.fetch(s, w[SKIP + 3], 1, half)));
    }
    ([p0.0, p1.0, p2.0, p3.0], [p0.1, p1.1, p2.1, p3.1])
}

/// Writes eight columns of as many rows as a pack has numbers.
#[inline(always)]
fn store<R: Real, S: Vectors<R>>(s: S, columns: [S::V; 8], stage: &mut [[R; CHUNK]], to: usize) {
    let halves = 8 / R::WIDTH;
    let v = s.columns_to_rows(columns);
    for i in 0..8 {
        s.store(&mut R::packs_mut(&mut stage[i / halves])[to / R::WIDTH + i % halves], v[i]);
    }
}

/// Adds the transpose of columns `columns` of one factor to `out`.
pub(super) fn pull<O: Scalar>(
    factor: &Srht<O::Real, O>,
    cotangents: Cotangents<'_, O::Real>,
    columns: Range<usize>,
    out: TileMut<'_, O::Real>,
    work: &mut Workspace<O::Real>,
) {
    if O::IS_COMPLEX {
        O::Real::dispatch(Back::<O, 2> { factor, cotangents, columns, out, work });
    } else {
        O::Real::dispatch(Back::<O, 1> { factor, cotangents, columns, out, work });
    }
}

struct Back<'a, O: Scalar, const PARTS: usize> {
    factor: &'a Srht<O::Real, O>,
    cotangents: Cotangents<'a, O::Real>,
    columns: Range<usize>,
    out: TileMut<'a, O::Real>,
    work: &'a mut Workspace<O::Real>,
}

impl<O: Scalar, const PARTS: usize> VectorKernel<O::Real> for Back<'_, O, PARTS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<O::Real>>(self, s: S) {
        let Back { factor, cotangents, columns, mut out, work } = self;
        if columns.is_empty() {
            return;
        }
        let blocks = columns.start / factor.block..columns.end.div_ceil(factor.block);
        let (padded, most) = (factor.padded, columns.len().min(factor.block));
        let mut memory = work.take(SLACK + 8 * most + 8 * padded + PARTS * blocks.len() * padded);
        let mut rest = aligned(&mut memory);
        let incoming: &mut [[O::Real; 8]] = carve(&mut rest, most);
        let table: &mut [[O::Real; 8]] = carve(&mut rest, padded);
        let signs: &mut [[O::Real; PARTS]] = carve(&mut rest, blocks.len() * padded);
        factor.expand_signs(blocks.clone(), signs);
        for start in (0..out.rows()).step_by(8) {
            let count = (out.rows() - start).min(8);
            for (block, signs) in blocks.clone().zip(signs.chunks_exact(padded)) {
                let range = (block * factor.block).max(columns.start)..((block + 1) * factor.block).min(columns.end);
                for part in 0..PARTS {
                    let tile = if part == 0 { cotangents.re } else { cotangents.im };
                    let tile = tile.columns(range.start - columns.start..range.end - columns.start);
                    gather_lanes(s, tile.rows_in(start..start + count), &mut incoming[..range.len()]);
                    table.fill([O::Real::ZERO; 8]);
                    for (offset, from) in factor.offsets[range.clone()].iter().zip(incoming.iter()) {
                        let to = &mut table[*offset as usize / (8 * PARTS)];
                        for (to, from) in O::Real::packs_mut(to).iter_mut().zip(O::Real::packs(from)) {
                            s.store(to, s.add(s.load(to), s.load(from)));
                        }
                    }
                    lanes(s, table);
                    for i in 0..count {
                        let numbers = table.iter().zip(signs);
                        out.row_mut(start + i)
                            .iter_mut()
                            .zip(numbers)
                            .for_each(|(o, (v, sign))| *o += sign[part] * v[i]);
                    }
                }
            }
        }
        work.give(memory);
    }
}

impl<O: Scalar> Srht<O::Real, O> {
    /// Signs of blocks as numbers: ±1, or real and imaginary parts of fourth roots of one; padding is multiplied by 0.
    fn expand_signs<const PARTS: usize>(&self, blocks: Range<usize>, out: &mut [[O::Real; PARTS]]) {
        let words = Self::words(self.input_dim);
        for (block, out) in blocks.zip(out.chunks_exact_mut(self.padded)) {
            let bits = &self.signs[block * words..][..words];
            let (used, padding) = out.split_at_mut(self.input_dim);
            padding.fill([O::Real::ZERO; PARTS]);
            if PARTS == 1 {
                for (out, bits) in used.chunks_mut(64).zip(bits) {
                    for (j, out) in out.iter_mut().enumerate() {
                        out[0] = if bits >> j & 1 == 0 { O::Real::ONE } else { -O::Real::ONE };
                    }
                }
            } else {
                for (out, bits) in used.chunks_mut(32).zip(bits) {
                    for (j, out) in out.iter_mut().enumerate() {
                        let root = fourth_root::<O::Real>(bits >> (2 * j));
                        (out[0], out[PARTS - 1]) = (root.re, root.im);
                    }
                }
            }
        }
    }
}
