//! Matrix products whose bits depend on nothing but the numbers: not on how rows are cut, nor on threads, nor on the
//! instruction set.
//!
//! Output `(i, j)` of `A·B` is `s₀ + s₁ + …` (left to right), `s_b` the chain of fused multiply-adds over the `b`-th
//! [`depth_block`] entries of row `i` and column `j`, in order, starting from 0. A library product chooses its order by
//! shape and thread count, so the same row could come out differently in another batch.
//!
//! The right factor is read in panels of a few columns ([`Panels`]): stored once ([`Packed`]), or made on the way from
//! bits or from a seed. [`product`] serves all of them on one thread, for callers that are parallel over rows already;
//! [`matmul_nn`] and its siblings are parallel themselves.

mod gram;
mod kernel;
mod matmul;
mod pack;
mod rounded;
mod rounded_rows;
#[cfg(test)]
mod tests;
pub(crate) mod thin;

pub(crate) use gram::{TILE_ROWS, lower_update};
pub use matmul::{matmul_nn, matmul_nt};
pub(crate) use pack::Dense;
pub(crate) use pack::pack_transposed;
pub use pack::{Packed, Panels};
pub(crate) use rounded::{RoundedGram, column_sizes};
pub(crate) use rounded_rows::RoundedRows;

use crate::interrupt;
use crate::linalg::vectors::Instructions;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::scalar::Real;
use kernel::{BLOCK_ROWS, Left, Onto, Sweep};
use pack::take_aligned;

use std::ops::Range;

/// Most entries of one chain: a panel of this depth takes 16 KiB of the first-level cache, six rows beside it 6 KiB.
const MOST_DEPTH: usize = 256;

/// Entries of one chain of a product of this depth, except for the last chain, which may be shorter.
///
/// Nearly equal chains: 784 = 3 · 208 + 160 loses less time at the ends than 3 · 256 + 16. A multiple of 16, so that
/// generators of panels start at whole cache lines and whole blocks of draws.
pub fn depth_block(depth: usize) -> usize {
    depth.div_ceil(depth.div_ceil(MOST_DEPTH).max(1)).next_multiple_of(16)
}

/// Rows that share a chunk of the right factor before the next chunk is fetched.
const ROW_BLOCK: usize = 96;

/// Columns from which it pays to copy rows into blocks: six rows of a power of two meet in one set of the first-level
/// cache, and six streams take six addresses where a block takes one.
const PACKED_FROM: usize = 128;

/// Most bytes of rows that are copied as a whole; longer ones are copied anew for every chunk of columns.
const PACKED_ROWS_BYTES: usize = 1 << 20;

/// Bytes of the right factor which are prepared at once when they are made on the way.
const CHUNK_BYTES: usize = 1 << 18;

/// Panels per chunk: their output stays in the second-level cache while the depth blocks are added up.
const fn chunk_panels(parts: usize) -> usize {
    CHUNK_BYTES / (256 * 64 * parts)
}

/// `0..n` in ranges of `step`.
fn ranges(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(step).map(move |start| start..(start + step).min(range.end))
}

/// Writes columns `columns` of `rows · right` to `out`, one window per part, on the calling thread.
///
/// # Panics
/// If shapes do not fit.
pub fn product<R: Real, S: Panels<R, P> + ?Sized, const P: usize>(
    rows: Tile<'_, R>,
    right: &S,
    columns: Range<usize>,
    out: [TileMut<'_, R>; P],
    work: &mut Workspace<R>,
) {
    product_on(Instructions::detect(), rows, right, columns, out, work);
}

pub(crate) fn product_on<R: Real, S: Panels<R, P> + ?Sized, const P: usize>(
    instructions: Instructions,
    rows: Tile<'_, R>,
    right: &S,
    columns: Range<usize>,
    mut out: [TileMut<'_, R>; P],
    work: &mut Workspace<R>,
) {
    let (n, depth) = (rows.rows(), right.depth());
    assert_eq!(rows.cols(), depth, "the rows are as long as the right factor is deep");
    assert!(columns.start <= columns.end && columns.end <= right.columns());
    for part in &mut out {
        assert_eq!((part.rows(), part.cols()), (n, columns.len()), "the output has one column per column asked for");
    }
    if n == 0 || columns.is_empty() {
        return;
    }
    let width = R::PANEL;
    let panels = columns.start / width..columns.end.div_ceil(width);
    let most = chunk_panels(P).min(panels.len());
    let step = depth_block(depth);
    let passes = depth.div_ceil(step);
    // Between passes sums wait in a small contiguous buffer: rows of an output of 4,096 columns share a few sets of the
    // cache and would evict each other. Panels made on the way serve all rows at once, stored ones come back for every group.
    let group = if right.is_stored() { ROW_BLOCK.min(n) } else { n };
    let (mut made_buffer, start) = take_aligned(work, if right.is_stored() { 0 } else { P * most * step * width });
    let made = &mut made_buffer[start..];
    let (mut sums_buffer, start) = take_aligned(work, if passes > 1 { P * group * most * width } else { 0 });
    let sums = &mut sums_buffer[start..];
    let is_packed = columns.len() >= PACKED_FROM && n >= BLOCK_ROWS;
    let at_once = n * depth * size_of::<R>() <= PACKED_ROWS_BYTES;
    let packed = if at_once { n * depth } else { group * step };
    let (mut blocks_buffer, start) = take_aligned(work, if is_packed { packed } else { 0 });
    let blocks = &mut blocks_buffer[start..];
    if is_packed && at_once {
        for depths in ranges(0..depth, step) {
            pack::blocks_of_rows(rows.columns(depths.clone()), &mut blocks[n * depths.start..n * depths.end]);
        }
    }
    for chunk in ranges(panels, most) {
        // A thousand rows and weights that are made on the way take seconds.
        if interrupt::raised() {
            break;
        }
        for group in ranges(0..n, group) {
            for (pass, depths) in ranges(0..depth, step).enumerate() {
                let size = depths.len() * width;
                if !right.is_stored() {
                    for (panel, out) in chunk.clone().zip(made.chunks_exact_mut(P * size)) {
                        right.write(panel, depths.clone(), out);
                    }
                }
                let left = rows.columns(depths.clone());
                if is_packed && !at_once {
                    pack::blocks_of_rows(left.rows_in(group.clone()), &mut blocks[..group.len() * depths.len()]);
                }
                let base = if at_once { n * depths.start + group.start * depths.len() } else { 0 };
                for block in ranges(group.clone(), ROW_BLOCK) {
                    let left = match is_packed {
                        true => Left::Blocks {
                            data: &blocks[base + (block.start - group.start) * depths.len()..]
                                [..block.len() * depths.len()],
                            rows: block.len(),
                        },
                        false => Left::Rows(left.rows_in(block.clone())),
                    };
                    for job in 0..P * chunk.len() {
                        let panel = |job: usize| match right.is_stored() {
                            true => right.stored(chunk.start + job / P, job % P, depths.clone()),
                            false => &made[job * size..][..size],
                        };
                        let first = (chunk.start + job / P) * width;
                        let covered = first.max(columns.start)..(first + width).min(columns.end);
                        let here = covered.start - columns.start..covered.end - columns.start;
                        let between = (job * group.len() + block.start - group.start) * width;
                        let (count, cols, stride) = (block.len(), here.len(), width);
                        let sweep = |out, onto| {
                            let next = if job + 1 < P * chunk.len() {
                                panel(job + 1)
                            } else if right.is_stored() && pass + 1 < passes {
                                right.stored(chunk.start, 0, depths.end..(depths.end + step).min(depth))
                            } else if right.is_stored() && chunk.end < columns.end.div_ceil(width) {
                                right.stored(chunk.end, 0, 0..step.min(depth))
                            } else {
                                &[]
                            };
                            let skip = covered.start - first;
                            R::run_on(instructions, Sweep { left, panel: panel(job), out, skip, onto, next });
                        };
                        if pass + 1 < passes {
                            let out = TileMut::with_stride(&mut sums[between..], count, cols, stride);
                            sweep(out, if pass == 0 { Onto::Nothing } else { Onto::Output });
                        } else {
                            let onto = match passes {
                                1 => Onto::Nothing,
                                _ => Onto::Other(Tile::with_stride(&sums[between..], count, cols, stride)),
                            };
                            let mut rows = out[job % P].rows_mut(block.clone());
                            sweep(rows.columns_mut(here), onto);
                        }
                    }
                }
            }
        }
    }
    work.give(blocks_buffer);
    work.give(sums_buffer);
    work.give(made_buffer);
}
