//! The one driver: any layout in, any layout out, tiles in between.

use super::FeatureMap;
use crate::error::{Error, Result, check_dim};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

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
    let job = |index: usize, rows: ArrayView2<'_, M::Real>, out: ArrayViewMut2<'_, M::Output>, work: &mut _| {
        drive_tile(map, index * tile, rows, out, work)
    };
    let serial = rows.nrows() <= tile || out.len() < PARALLEL_FROM || rayon::current_num_threads() == 1;
    if serial {
        let mut work = Workspace::new();
        for (i, (r, o)) in rows.axis_chunks_iter(Axis(0), tile).zip(out.axis_chunks_iter_mut(Axis(0), tile)).enumerate()
        {
            job(i, r, o, &mut work)?;
        }
        return Ok(());
    }
    let tiles: Vec<_> =
        rows.axis_chunks_iter(Axis(0), tile).zip(out.axis_chunks_iter_mut(Axis(0), tile)).enumerate().collect();
    tiles.into_par_iter().map_init(Workspace::new, |work, (i, (r, o))| job(i, r, o, work)).collect()
}

fn drive_tile<M: FeatureMap + ?Sized>(
    map: &M,
    first_row: usize,
    rows: ArrayView2<'_, M::Real>,
    mut out: ArrayViewMut2<'_, M::Output>,
    work: &mut Workspace<M::Real>,
) -> Result<()> {
    let (n, d, m) = (rows.nrows(), rows.ncols(), out.ncols());
    let mut copy = None;
    let tile = match contiguous(&rows) {
        Some((data, stride)) => Tile::with_stride(data, n, d, stride),
        None => {
            let mut buffer = work.take(n * d);
            for (to, from) in buffer.iter_mut().zip(rows.iter()) {
                *to = *from;
            }
            Tile::new(&*copy.insert(buffer), n, d)
        }
    };
    check_tile(tile, first_row)?;
    let stride = out.strides()[0];
    let direct = out.strides()[1] == 1 || m == 1;
    if direct && (n == 1 || stride >= m as isize) && out.is_standard_layout() {
        let data = out.as_slice_mut().expect("standard layout is contiguous");
        map.map_tile(tile, TileMut::new(data, n, m), work);
    } else {
        let mut buffer = M::Output::lend(work, n * m);
        map.map_tile(tile, TileMut::new(&mut buffer, n, m), work);
        for (to, from) in out.iter_mut().zip(&buffer) {
            *to = *from;
        }
        M::Output::give_back(work, buffer);
    }
    if let Some(buffer) = copy {
        work.give(buffer);
    }
    Ok(())
}

/// The memory of rows that are contiguous each, and their distance.
fn contiguous<'a, R>(rows: &ArrayView2<'a, R>) -> Option<(&'a [R], usize)> {
    rows.to_slice().map(|data| (data, rows.ncols()))
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
    Array2::from_elem((rows, cols), T::ZERO)
}
