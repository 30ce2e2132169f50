//! The one driver: any layout in, any layout out, tiles in between.

use super::FeatureMap;
use crate::error::{Error, Result, check_dim};
use crate::linalg::{Tile, TileMut, Workspace, zeroed};
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use std::sync::Mutex;

/// Below this many output numbers a second thread costs more than it brings.
const PARALLEL_FROM: usize = 1 << 14;

pub(super) fn drive<M: FeatureMap + ?Sized>(
    map: &M,
    rows: ArrayView2<'_, M::Real>,
    mut out: ArrayViewMut2<'_, M::Output>,
) -> Result<()> {
    check_dim("number of columns of rows", map.input_dim(), rows.ncols())?;
    check_dim("number of rows of the output", rows.nrows(), out.nrows())?;
    check_dim("number of columns of the output", map.output_dim(), out.ncols())?;
    if rows.nrows() == 0 || out.ncols() == 0 {
        return Ok(());
    }
    // Tiles are a function of the row count alone, never of the number of threads.
    let tile = map.tile_rows().clamp(1, rows.nrows());
    let out_len = out.len();
    let tiles = rows.axis_chunks_iter(Axis(0), tile).zip(out.axis_chunks_iter_mut(Axis(0), tile)).enumerate();
    if rows.nrows() <= tile || out_len < PARALLEL_FROM || rayon::current_num_threads() == 1 {
        let mut work = if rows.nrows() <= tile { Workspace::of_the_only_tile() } else { Workspace::new() };
        for (i, (rows, out)) in tiles {
            drive_tile(map, i * tile, rows, out, &mut work)?;
        }
        return Ok(());
    }
    // One workspace for each tile in flight, handed on from tile to tile.
    let idle = Mutex::new(Vec::new());
    let lock = || idle.lock().expect("no thread panics while it holds the lock");
    let done = tiles.collect::<Vec<_>>().into_par_iter().try_for_each(|(i, (rows, out))| {
        let mut work = lock().pop().unwrap_or_else(Workspace::new);
        let result = drive_tile(map, i * tile, rows, out, &mut work);
        lock().push(work);
        result
    });
    // Whichever thread met a bad row first: the one that is named is the first of the block.
    done.or_else(|error| {
        let mut work = Workspace::new();
        let mut first = rows.axis_chunks_iter(Axis(0), tile).enumerate();
        first.try_for_each(|(i, rows)| with_tile(rows, &mut work, |rows, _| check(map, i * tile, rows)))?;
        Err(error)
    })
}

/// Hands the rows over as a tile, copied where they are not contiguous.
fn with_tile<R: Real, T>(
    rows: ArrayView2<'_, R>,
    work: &mut Workspace<R>,
    job: impl FnOnce(Tile<'_, R>, &mut Workspace<R>) -> T,
) -> T {
    let (n, d) = rows.dim();
    // Copying rows costs d of the D numbers written per row: only outputs are worth a path without a copy.
    match rows.to_slice() {
        Some(data) => job(Tile::new(data, n, d), work),
        None => {
            let mut copy = work.take(n * d);
            for (to, from) in copy.iter_mut().zip(rows.iter()) {
                *to = *from;
            }
            let result = job(Tile::new(&copy, n, d), work);
            work.give(copy);
            result
        }
    }
}

fn check<M: FeatureMap + ?Sized>(map: &M, first_row: usize, rows: Tile<'_, M::Real>) -> Result<()> {
    check_tile(rows, first_row)?;
    map.check_tile(rows).map_err(|error| error.rows_from(first_row))
}

fn drive_tile<M: FeatureMap + ?Sized>(
    map: &M,
    first_row: usize,
    rows: ArrayView2<'_, M::Real>,
    out: ArrayViewMut2<'_, M::Output>,
    work: &mut Workspace<M::Real>,
) -> Result<()> {
    with_tile(rows, work, |rows, work| {
        check(map, first_row, rows)?;
        let (n, m) = (rows.rows(), out.ncols());
        match TileMut::from_view(out) {
            Ok(out) => map.map_tile(rows, out, work),
            Err(mut out) => {
                let mut buffer = M::Output::lend(work, n * m);
                map.map_tile(rows, TileMut::new(&mut buffer, n, m), work);
                // Column by column: where rows are not contiguous, columns usually are.
                for (j, mut column) in out.axis_iter_mut(Axis(1)).enumerate() {
                    for (i, to) in column.iter_mut().enumerate() {
                        *to = buffer[i * m + j];
                    }
                }
                M::Output::give_back(work, buffer);
            }
        }
        Ok(())
    })
}

fn check_tile<R: Real>(tile: Tile<'_, R>, first_row: usize) -> Result<()> {
    for i in 0..tile.rows() {
        // 0 * v is NaN for a NaN or an infinity and 0 otherwise; eight sums let the compiler use vector registers.
        let mut sums = [R::ZERO; 8];
        let chunks = tile.row(i).chunks_exact(8);
        let tail = chunks.remainder().iter().fold(R::ZERO, |s, &v| s + R::ZERO * v);
        for chunk in chunks {
            for (s, &v) in sums.iter_mut().zip(chunk) {
                *s += R::ZERO * v;
            }
        }
        let sum = sums.iter().fold(tail, |s, &v| s + v);
        if !sum.is_finite() {
            let column = tile.row(i).iter().position(|v| !v.is_finite()).unwrap_or(0);
            return Err(Error::NonFinite { what: "rows", row: first_row + i, column });
        }
    }
    Ok(())
}

pub(super) fn fresh<T: Scalar>(rows: usize, cols: usize) -> Array2<T> {
    Array2::from_shape_vec((rows, cols), zeroed(rows * cols)).expect("as many numbers as the shape says")
}
