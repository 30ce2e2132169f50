//! Gram matrices of many rows.

use super::kernel::{BLOCK_ROWS, Left, Onto, Sweep};
use super::pack::take_aligned;
use super::ranges;
use crate::interrupt::Flag;
use crate::linalg::vectors::Instructions;
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

/// Adds the lower triangle (with diagonal) of `blockᵀ block` to a matrix given as windows of [`TILE_ROWS`] rows, each as wide
/// as its last row.
///
/// Sums run in the precision of the block over at most 2,048 rows (fewer for wide blocks) and in `f64` beyond: rounding
/// errors of `f32` features grow with the root of 2,048 rows, not with the length of the stream. Bits depend on where blocks
/// begin and end, not on threads: callers anchor their blocks to the beginning of the stream, and make them large (2,048 rows
/// or more), since every call reads and writes the whole triangle of `f64`.
pub(crate) fn lower_update<R: Real>(block: Tile<'_, R>, mut out: Vec<TileMut<'_, f64>>, work: &mut Workspace<R>) {
    let (n, d) = (block.rows(), block.cols());
    if n == 0 || d == 0 {
        return;
    }
    let padded = d.next_multiple_of(R::PANEL);
    // Rows that are summed in the precision of the data: a function of the width alone.
    let pass = (PACKED_BYTES / (2 * d * size_of::<R>()) / CHAIN * CHAIN).clamp(CHAIN, MOST_ROWS).min(n);
    let (mut blocks_buffer, start) = take_aligned(work, pass * d);
    let blocks = &mut blocks_buffer[start..];
    let (mut panels_buffer, start) = take_aligned(work, pass * padded);
    let panels = &mut panels_buffer[start..];
    for rows in ranges(0..n, pass) {
        for depths in ranges(0..rows.len(), CHAIN) {
            let source = rows.start + depths.start..rows.start + depths.end;
            pack_blocks(block, source.clone(), &mut blocks[depths.start * d..depths.end * d]);
            let panels = &mut panels[depths.start * padded..depths.end * padded];
            pack_panels(block, source, panels);
        }
        // Tiles below each other one after the other: the panels they share (4 MiB) stay in cache, and the blocks of the
        // left factor that pass by are a fifth of them.
        let mut tasks = Vec::new();
        let mut rest: Vec<_> = out.iter_mut().map(|strip| Some(strip.reborrow())).collect();
        for j in ranges(0..d, TILE_ROW_BYTES / size_of::<R>()) {
            for (i, rest) in ranges(0..d, TILE_ROWS).zip(&mut rest).filter(|(i, _)| j.start < i.end) {
                let strip = rest.take().expect("what is left of a strip is put back");
                let width = j.len().min(strip.cols());
                let (window, right) = strip.split_columns_at(width);
                *rest = Some(right);
                tasks.push((i, j.clone(), window));
            }
        }
        let factors = Packs { blocks, panels, d, padded, depth: rows.len() };
        let stop = Flag::current();
        tasks.in_parallel().for_each_init(Workspace::new, |work, (i, j, window)| {
            if !stop.raised() {
                factors.tile(i, j, window, work);
            }
        });
        if stop.raised() {
            break;
        }
    }
    work.give(blocks_buffer);
    work.give(panels_buffer);
}

/// The left factor, transposed: blocks of six columns, each with the rows outermost.
fn pack_blocks<R: Real>(block: Tile<'_, R>, rows: Range<usize>, out: &mut [R]) {
    let (d, depth) = (block.cols(), rows.len());
    out.chunks_mut(TILE_ROWS * depth).enumerate().in_parallel().for_each(|(strip, out)| {
        let columns = strip * TILE_ROWS..((strip + 1) * TILE_ROWS).min(d);
        let whole = columns.len() / BLOCK_ROWS * BLOCK_ROWS;
        for (p, row) in rows.clone().enumerate() {
            let (blocks, rest) = block.row(row)[columns.clone()].as_chunks::<BLOCK_ROWS>();
            for (block, out) in blocks.iter().zip(out.chunks_exact_mut(BLOCK_ROWS * depth)) {
                out.as_chunks_mut::<BLOCK_ROWS>().0[p] = *block;
            }
            out[whole * depth + p * rest.len()..][..rest.len()].copy_from_slice(rest);
        }
    });
}

/// The right factor in panels of columns, the last one filled up with zeros.
fn pack_panels<R: Real>(block: Tile<'_, R>, rows: Range<usize>, out: &mut [R]) {
    const TOGETHER: usize = 8;
    let (m, depth, width) = (block.cols(), rows.len(), R::PANEL);
    out.chunks_mut(TOGETHER * width * depth).enumerate().in_parallel().for_each(|(group, out)| {
        let first = group * TOGETHER * width;
        let columns = first..(first + TOGETHER * width).min(m);
        for (p, row) in rows.clone().enumerate() {
            let source = &block.row(row)[columns.clone()];
            let panels = R::packs(source).as_chunks::<2>().0;
            let rest = &source[panels.len() * width..];
            let mut out = out.chunks_exact_mut(width * depth);
            for (panel, out) in panels.iter().zip(&mut out) {
                R::packs_mut(out).as_chunks_mut().0[p] = *panel;
            }
            if let Some(out) = out.next() {
                out[p * width..][..width].fill(R::ZERO);
                out[p * width..][..rest.len()].copy_from_slice(rest);
            }
        }
    });
}

/// A block of rows as both factors.
struct Packs<'a, R> {
    blocks: &'a [R],
    panels: &'a [R],
    /// Columns of the left factor.
    d: usize,
    /// Columns of the right factor in whole panels.
    padded: usize,
    depth: usize,
}

impl<R: Real> Packs<'_, R> {
    /// Adds those of the entries `i` × `j` of the product that are not above the diagonal.
    fn tile(&self, i: Range<usize>, j: Range<usize>, mut out: TileMut<'_, f64>, work: &mut Workspace<R>) {
        let (width, rows, instructions) = (R::PANEL, i.len(), Instructions::detect());
        // Panel after panel: rows of one wide tile would meet in a few sets of the first-level cache.
        let (mut buffer, start) = take_aligned(work, rows * j.len().next_multiple_of(width));
        let sums = &mut buffer[start..];
        for depths in ranges(0..self.depth, CHAIN) {
            let onto = if depths.start > 0 { Onto::Output } else { Onto::Nothing };
            let blocks = &self.blocks[depths.start * self.d + i.start * depths.len()..][..rows * depths.len()];
            let panels = &self.panels[depths.start * self.padded..][..depths.len() * self.padded];
            let panel = |first: usize| &panels[first * depths.len()..][..width * depths.len()];
            for first in j.clone().step_by(width).take_while(|first| *first < i.end) {
                // Register blocks that lie above the diagonal altogether are left out.
                let above = first.saturating_sub(i.start) / BLOCK_ROWS * BLOCK_ROWS;
                let place = (first - j.start) * rows + above * width;
                let sweep = Sweep {
                    left: Left::Blocks { data: &blocks[above * depths.len()..], rows: rows - above },
                    panel: panel(first),
                    out: TileMut::new(&mut sums[place..][..(rows - above) * width], rows - above, width),
                    skip: 0,
                    onto,
                    next: if first + width < j.end { panel(first + width) } else { &[] },
                };
                R::run_on(instructions, sweep);
            }
        }
        for r in 0..rows {
            let count = (i.start + r + 1).saturating_sub(j.start).min(j.len());
            for piece in ranges(0..count, width) {
                let sums = &sums[piece.start * rows + r * width..];
                for (out, sum) in out.row_mut(r)[piece].iter_mut().zip(sums) {
                    *out += Real::to_f64(*sum);
                }
            }
        }
        work.give(buffer);
    }
}
