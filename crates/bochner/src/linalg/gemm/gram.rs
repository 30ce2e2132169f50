//! Products `Aᵀ diag(w) B` over many rows: Gram matrices, moments, transposed products.

use super::kernel::{BLOCK_ROWS, Instructions, Left, Onto, Sweep};
use super::pack::take_aligned;
use super::ranges;
use crate::error::{Result, check_dim};
use crate::interrupt::Flag;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::parallel::Parallel;
use crate::scalar::Real;
use std::ops::Range;

/// Rows of one chain.
const CHAIN: usize = 256;

/// Most rows that are summed in the precision of the data before they are added to the accumulator.
const MOST_ROWS: usize = 2048;

/// Bytes of the packed copies of both factors.
const PACKED_BYTES: usize = 1 << 26;

/// Rows of a tile of the result: a multiple of the rows of a register block.
pub(crate) const TILE_ROWS: usize = 16 * BLOCK_ROWS;

/// Bytes of a row of a tile of the result: 96 of them and 96 packed rows of the left factor share the second-level cache.
const TILE_ROW_BYTES: usize = 2048;

/// Rows that are summed in the precision of the data: a function of the widths alone.
fn pass_rows<R>(widths: usize) -> usize {
    (PACKED_BYTES / (widths * size_of::<R>()) / CHAIN * CHAIN).clamp(CHAIN, MOST_ROWS)
}

/// Adds the lower triangle (with diagonal) of `blockᵀ diag(weights) block` to the row-major square matrix `gram`; the part
/// above the diagonal is left as it is.
///
/// Sums run in the precision of the block over at most 2,048 rows (fewer for wide blocks) and in `f64` beyond: rounding
/// errors of `f32` features grow with the root of 2,048 rows, not with the length of the stream. Bits depend on where blocks
/// begin and end, not on threads: callers anchor their blocks to the beginning of the stream, and make them large (2,048 rows
/// or more), since every call reads and writes the whole triangle of `f64`.
///
/// # Errors
/// Shapes that do not fit, or no memory for packed copies of the block.
pub fn gram_update<R: Real>(
    block: Tile<'_, R>,
    weights: Option<&[R]>,
    gram: &mut [f64],
    work: &mut Workspace<R>,
) -> Result<()> {
    let d = block.cols();
    check_dim("number of entries of the Gram matrix", d.saturating_mul(d), gram.len())?;
    let strips = strips(TileMut::new(gram, d, d));
    accumulate::<R, Widen>(block, block, weights, true, strips, work, Instructions::detect())
}

/// Adds the lower triangle of `blockᵀ block` to a matrix given as windows of [`TILE_ROWS`] rows, each as wide as its last row.
pub(crate) fn lower_update<R: Real>(block: Tile<'_, R>, strips: Vec<TileMut<'_, f64>>, work: &mut Workspace<R>) {
    accumulate::<R, Widen>(block, block, None, true, strips, work, Instructions::detect())
        .expect("a block has as many rows as itself");
}

/// Adds `leftᵀ diag(weights) right` to the row-major matrix `out` of `left.cols()` × `right.cols()`, as [`gram_update`].
///
/// # Errors
/// As [`gram_update`].
pub fn cross_update<R: Real>(
    left: Tile<'_, R>,
    right: Tile<'_, R>,
    weights: Option<&[R]>,
    out: &mut [f64],
    work: &mut Workspace<R>,
) -> Result<()> {
    let (d, m) = (left.cols(), right.cols());
    check_dim("number of entries of the product", d.saturating_mul(m), out.len())?;
    let strips = strips(TileMut::new(out, d, m));
    accumulate::<R, Widen>(left, right, weights, false, strips, work, Instructions::detect())
}

/// `out = aᵀ · b`, parallel over tiles of `out`; chains of 256 rows, added up in order.
///
/// # Errors
/// Shapes that do not fit, or no memory for packed copies of the factors.
pub fn matmul_tn<R: Real>(a: Tile<'_, R>, b: Tile<'_, R>, mut out: TileMut<'_, R>) -> Result<()> {
    check_dim("number of rows of the product", a.cols(), out.rows())?;
    check_dim("number of columns of the product", b.cols(), out.cols())?;
    for i in 0..out.rows() {
        out.row_mut(i).fill(R::ZERO);
    }
    accumulate::<R, Continue>(a, b, None, false, strips(out), &mut Workspace::new(), Instructions::detect())
}

/// How sums of some rows join what is there already.
trait Join<R> {
    type Number: Send;
    /// Copies what the sums start from, or says that they start from nothing.
    fn begin(there: &[Self::Number], sums: &mut [R]) -> bool;
    fn end(there: &mut [Self::Number], sums: &[R]);
}

/// Rows of earlier passes are rounded to `f64` and left alone.
struct Widen;

impl<R: Real> Join<R> for Widen {
    type Number = f64;
    fn begin(_: &[f64], _: &mut [R]) -> bool {
        false
    }
    fn end(there: &mut [f64], sums: &[R]) {
        for (t, s) in there.iter_mut().zip(sums) {
            *t += Real::to_f64(*s);
        }
    }
}

/// Every chain is added to the sum of those before it.
struct Continue;

impl<R: Real> Join<R> for Continue {
    type Number = R;
    fn begin(there: &[R], sums: &mut [R]) -> bool {
        sums.copy_from_slice(there);
        true
    }
    fn end(there: &mut [R], sums: &[R]) {
        there.copy_from_slice(sums);
    }
}

/// A matrix in windows of [`TILE_ROWS`] rows.
fn strips<T>(mut matrix: TileMut<'_, T>) -> Vec<TileMut<'_, T>> {
    let mut strips = Vec::new();
    while matrix.rows() > 0 {
        let rows = TILE_ROWS.min(matrix.rows());
        let (strip, below) = matrix.split_rows_at(rows);
        strips.push(strip);
        matrix = below;
    }
    strips
}

fn accumulate<R: Real, J: Join<R>>(
    left: Tile<'_, R>,
    right: Tile<'_, R>,
    weights: Option<&[R]>,
    lower: bool,
    mut out: Vec<TileMut<'_, J::Number>>,
    work: &mut Workspace<R>,
    instructions: Instructions,
) -> Result<()> {
    check_dim("number of rows of the right factor", left.rows(), right.rows())?;
    if let Some(weights) = weights {
        check_dim("number of weights", left.rows(), weights.len())?;
    }
    let (n, d, m) = (left.rows(), left.cols(), right.cols());
    if n == 0 || d == 0 || m == 0 {
        return Ok(());
    }
    let padded = m.next_multiple_of(R::PANEL);
    let pass = pass_rows::<R>(d + m).min(n);
    let (mut blocks_buffer, start) = take_aligned(work, pass * d);
    let blocks = &mut blocks_buffer[start..];
    let (mut panels_buffer, start) = take_aligned(work, pass * padded);
    let panels = &mut panels_buffer[start..];
    for rows in ranges(0..n, pass) {
        for depths in ranges(0..rows.len(), CHAIN) {
            let source = rows.start + depths.start..rows.start + depths.end;
            pack_blocks(left, source.clone(), weights, &mut blocks[depths.start * d..depths.end * d]);
            let panels = &mut panels[depths.start * padded..depths.end * padded];
            match R::PANEL {
                8 => pack_panels::<R, 8>(right, source, panels),
                _ => pack_panels::<R, 16>(right, source, panels),
            }
        }
        // Tiles below each other one after the other: the panels they share (4 MiB) stay in cache, and the blocks of the
        // left factor that pass by are a fifth of them.
        let mut tasks = Vec::new();
        let mut rest: Vec<_> = out.iter_mut().map(|strip| Some(strip.reborrow())).collect();
        for j in ranges(0..m, TILE_ROW_BYTES / size_of::<R>()) {
            for (i, rest) in ranges(0..d, TILE_ROWS).zip(&mut rest) {
                if !lower || j.start < i.end {
                    let strip = rest.take().expect("what is left of a strip is put back");
                    let width = j.len().min(strip.cols());
                    let (window, right) = strip.split_columns_at(width);
                    *rest = Some(right);
                    tasks.push((i, j.clone(), window));
                }
            }
        }
        let factors = Packs { blocks, panels, d, padded, depth: rows.len(), lower, instructions };
        let stop = Flag::current();
        tasks.in_parallel().for_each_init(Workspace::new, |work, (i, j, window)| {
            if !stop.raised() {
                factors.tile::<J>(i, j, window, work);
            }
        });
        if stop.raised() {
            break;
        }
    }
    work.give(blocks_buffer);
    work.give(panels_buffer);
    Ok(())
}

/// The left factor, transposed, with its weights: blocks of six columns, each with the rows outermost.
fn pack_blocks<R: Real>(left: Tile<'_, R>, rows: Range<usize>, weights: Option<&[R]>, out: &mut [R]) {
    let (d, depth) = (left.cols(), rows.len());
    out.chunks_mut(TILE_ROWS * depth).enumerate().in_parallel().for_each(|(strip, out)| {
        let columns = strip * TILE_ROWS..((strip + 1) * TILE_ROWS).min(d);
        let whole = columns.len() / BLOCK_ROWS * BLOCK_ROWS;
        for (p, row) in rows.clone().enumerate() {
            let weight = weights.map_or(R::ONE, |weights| weights[row]);
            let source = &left.row(row)[columns.clone()];
            let (blocks, rest) = source.as_chunks::<BLOCK_ROWS>();
            for (block, out) in blocks.iter().zip(out.chunks_exact_mut(BLOCK_ROWS * depth)) {
                out.as_chunks_mut::<BLOCK_ROWS>().0[p] = block.map(|x| x * weight);
            }
            for (o, x) in out[whole * depth + p * rest.len()..].iter_mut().zip(rest) {
                *o = *x * weight;
            }
        }
    });
}

/// The right factor in panels of `NR` columns, the last one filled up with zeros.
fn pack_panels<R: Real, const NR: usize>(right: Tile<'_, R>, rows: Range<usize>, out: &mut [R]) {
    const TOGETHER: usize = 8;
    let (m, depth) = (right.cols(), rows.len());
    out.chunks_mut(TOGETHER * NR * depth).enumerate().in_parallel().for_each(|(group, out)| {
        let first = group * TOGETHER * NR;
        let columns = first..(first + TOGETHER * NR).min(m);
        for (p, row) in rows.clone().enumerate() {
            let source = &right.row(row)[columns.clone()];
            let (panels, rest) = source.as_chunks::<NR>();
            let mut out = out.chunks_exact_mut(NR * depth);
            for (panel, out) in panels.iter().zip(&mut out) {
                out.as_chunks_mut::<NR>().0[p] = *panel;
            }
            if let Some(out) = out.next() {
                out[p * NR..][..NR].fill(R::ZERO);
                out[p * NR..][..rest.len()].copy_from_slice(rest);
            }
        }
    });
}

struct Packs<'a, R> {
    blocks: &'a [R],
    panels: &'a [R],
    /// Columns of the left factor.
    d: usize,
    /// Columns of the right factor in whole panels.
    padded: usize,
    depth: usize,
    lower: bool,
    instructions: Instructions,
}

impl<R: Real> Packs<'_, R> {
    /// Entries `i` × `j` of the product, or those of them that are not above the diagonal.
    fn tile<J: Join<R>>(
        &self,
        i: Range<usize>,
        j: Range<usize>,
        mut out: TileMut<'_, J::Number>,
        work: &mut Workspace<R>,
    ) {
        let (width, rows) = (R::PANEL, i.len());
        // Panel after panel: rows of one wide tile would meet in a few sets of the first-level cache.
        let (mut buffer, start) = take_aligned(work, rows * j.len().next_multiple_of(width));
        let sums = &mut buffer[start..];
        // Columns of row `r` of the tile that are wanted, in pieces of a panel, with their place among the sums.
        let pieces = |r: usize| {
            let count = if self.lower { (i.start + r + 1).saturating_sub(j.start).min(j.len()) } else { j.len() };
            ranges(0..count, width).map(move |piece| {
                let place = piece.start * rows + r * width;
                (piece.clone(), place..place + piece.len())
            })
        };
        let mut begun = false;
        for r in 0..rows {
            for (piece, place) in pieces(r) {
                begun = J::begin(&out.row(r)[piece], &mut sums[place]);
            }
        }
        for depths in ranges(0..self.depth, CHAIN) {
            let onto = if begun || depths.start > 0 { Onto::Output } else { Onto::Nothing };
            let blocks = &self.blocks[depths.start * self.d + i.start * depths.len()..][..rows * depths.len()];
            let panels = &self.panels[depths.start * self.padded..][..depths.len() * self.padded];
            let panel = |first: usize| &panels[first * depths.len()..][..width * depths.len()];
            for first in j.clone().step_by(width) {
                if self.lower && first >= i.end {
                    break;
                }
                // Register blocks that lie above the diagonal altogether are left out.
                let above = if self.lower { first.saturating_sub(i.start) / BLOCK_ROWS * BLOCK_ROWS } else { 0 };
                let place = (first - j.start) * rows + above * width;
                let sweep = Sweep {
                    left: Left::Blocks { data: &blocks[above * depths.len()..], rows: rows - above },
                    panel: panel(first),
                    out: TileMut::new(&mut sums[place..][..(rows - above) * width], rows - above, width),
                    skip: 0,
                    onto,
                    next: if first + width < j.end { panel(first + width) } else { &[] },
                };
                R::sweep(self.instructions, sweep);
            }
        }
        for r in 0..rows {
            for (piece, place) in pieces(r) {
                J::end(&mut out.row_mut(r)[piece], &sums[place]);
            }
        }
        work.give(buffer);
    }
}
