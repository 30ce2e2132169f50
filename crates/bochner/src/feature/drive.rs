//! The one driver: any layout in, any layout out, tiles in between.

use crate::error::{Error, Result, check_dim};
use crate::interrupt;
use crate::linalg::{Tile, TileMut, Workspace, first_not_finite, zeroed_matrix};
use crate::memory::{bytes, in_blocks, need};
use crate::parallel::{self, Parallel};
use crate::projection::Cotangents;
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};

/// Below this many output numbers a second thread costs more than it brings.
const PARALLEL_FROM: usize = 1 << 14;

/// What the driver asks of a map: the same code for all of them.
pub(super) struct Driven<'a, R, O> {
    pub(super) input_dim: usize,
    pub(super) output_dim: usize,
    pub(super) tile_rows: usize,
    pub(super) check: &'a (dyn Fn(Tile<'_, R>) -> Result<()> + Sync),
    pub(super) map: &'a (dyn Fn(Tile<'_, R>, TileMut<'_, O>, &mut Workspace<R>) + Sync),
}

pub(super) fn drive<R: Real, O: Scalar<Real = R>>(
    job: &Driven<'_, R, O>,
    rows: ArrayView2<'_, R>,
    mut out: ArrayViewMut2<'_, O>,
) -> Result<()> {
    check_dim("number of columns of rows", job.input_dim, rows.ncols())?;
    check_dim("number of rows of the output", rows.nrows(), out.nrows())?;
    check_dim("number of columns of the output", job.output_dim, out.ncols())?;
    if rows.nrows() == 0 || out.ncols() == 0 {
        return Ok(());
    }
    // Tiles are a function of the row count alone, never of the number of threads.
    let tile = job.tile_rows.clamp(1, rows.nrows());
    // Tiles, their copies and what maps keep meanwhile, on every thread.
    let work = bytes::<O>(&[tile, job.input_dim.saturating_add(job.output_dim), 2]);
    let threads = parallel::threads().min(rows.nrows().div_ceil(tile));
    need("work space of a map", work.saturating_mul(threads as u64), |_| "ask for fewer features".into())?;
    let out_len = out.len();
    let mut tiles = rows.axis_chunks_iter(Axis(0), tile).zip(out.axis_chunks_iter_mut(Axis(0), tile)).enumerate();
    if rows.nrows() <= tile || out_len < PARALLEL_FROM || parallel::threads() == 1 {
        let mut work = if rows.nrows() <= tile { Workspace::of_the_only_tile() } else { Workspace::new() };
        return tiles.try_for_each(|(i, (rows, out))| {
            interrupt::check()?;
            job.run(i * tile, rows, out, &mut work)
        });
    }
    tiles.in_parallel().try_for_each_init(Workspace::new, |work, (i, (rows, out))| job.run(i * tile, rows, out, work))
}

impl<R: Real, O: Scalar<Real = R>> Driven<'_, R, O> {
    /// Hands the rows over as a tile, copied where they are not contiguous.
    fn run(
        &self,
        first_row: usize,
        rows: ArrayView2<'_, R>,
        out: ArrayViewMut2<'_, O>,
        work: &mut Workspace<R>,
    ) -> Result<()> {
        let (n, d) = rows.dim();
        // Copying rows costs d of the D numbers written per row: only outputs are worth a path without a copy.
        match rows.to_slice() {
            Some(data) => self.run_tile(first_row, Tile::new(data, n, d), out, work),
            None => {
                let mut copy = work.take(n * d);
                for (to, from) in copy.iter_mut().zip(rows.iter()) {
                    *to = *from;
                }
                let result = self.run_tile(first_row, Tile::new(&copy, n, d), out, work);
                work.give(copy);
                result
            }
        }
    }

    fn run_tile(
        &self,
        first_row: usize,
        rows: Tile<'_, R>,
        out: ArrayViewMut2<'_, O>,
        work: &mut Workspace<R>,
    ) -> Result<()> {
        check_tile(rows, first_row)?;
        (self.check)(rows).map_err(|error| error.rows_from(first_row))?;
        let (n, m) = (rows.rows(), out.ncols());
        match TileMut::from_view(out) {
            Ok(mut out) => {
                (self.map)(rows, out.reborrow(), work);
                check_features(rows, |i| first_not_finite(out.row_mut(i)), first_row)?;
            }
            Err(mut out) => {
                let mut buffer = O::lend(work, n * m);
                (self.map)(rows, TileMut::new(&mut buffer, n, m), work);
                check_features(rows, |i| first_not_finite(&buffer[i * m..][..m]), first_row)?;
                // Column by column: where rows are not contiguous, columns usually are.
                for (j, mut column) in out.axis_iter_mut(Axis(1)).enumerate() {
                    for (i, to) in column.iter_mut().enumerate() {
                        *to = buffer[i * m + j];
                    }
                }
                O::give_back(work, buffer);
            }
        }
        Ok(())
    }
}

/// What the driver asks of a map whose pullback is wanted.
pub(super) struct Pulled<'a, R> {
    /// Length of a row, number of features.
    pub(super) dims: (usize, usize),
    pub(super) tile_rows: usize,
    pub(super) check: &'a (dyn Fn(Tile<'_, R>) -> Result<()> + Sync),
    pub(super) pull: &'a PullTile<'a, R>,
}

type PullTile<'a, R> = dyn Fn(Tile<'_, R>, Cotangents<'_, R>, TileMut<'_, R>, &mut Workspace<R>) + Sync + 'a;

/// Adds pullbacks to rows of zeros.
pub(super) fn pull<R: Real, O: Scalar<Real = R>>(
    job: &Pulled<'_, R>,
    rows: ArrayView2<'_, R>,
    cotangents: ArrayView2<'_, O>,
    mut out: ArrayViewMut2<'_, R>,
) -> Result<()> {
    check_dim("number of columns of rows", job.dims.0, rows.ncols())?;
    check_dim("number of rows of cotangents", rows.nrows(), cotangents.nrows())?;
    check_dim("number of columns of cotangents", job.dims.1, cotangents.ncols())?;
    if rows.nrows() == 0 {
        return Ok(());
    }
    let tile = job.tile_rows.clamp(1, rows.nrows());
    let parts = rows.axis_chunks_iter(Axis(0), tile).zip(cotangents.axis_chunks_iter(Axis(0), tile));
    let mut tiles = parts.zip(out.axis_chunks_iter_mut(Axis(0), tile)).enumerate();
    let mut alone = Workspace::of_the_only_tile();
    if rows.nrows() <= tile {
        return tiles.try_for_each(|(i, ((rows, from), out))| job.run(i * tile, rows, from, out, &mut alone));
    }
    tiles
        .in_parallel()
        .try_for_each_init(Workspace::new, |work, (i, ((rows, from), out))| job.run(i * tile, rows, from, out, work))
}

/// The numbers of an array in the order of its rows, in a buffer of the pool.
fn copied<T, R: Real>(array: ArrayView2<'_, T>, work: &mut Workspace<R>, part: impl Fn(&T) -> R) -> Vec<R> {
    let mut copy = work.take(array.len());
    copy.iter_mut().zip(array.iter()).for_each(|(to, from)| *to = part(from));
    copy
}

impl<R: Real> Pulled<'_, R> {
    fn run<O: Scalar<Real = R>>(
        &self,
        first_row: usize,
        rows: ArrayView2<'_, R>,
        cotangents: ArrayView2<'_, O>,
        out: ArrayViewMut2<'_, R>,
        work: &mut Workspace<R>,
    ) -> Result<()> {
        let ((n, d), m) = (rows.dim(), cotangents.ncols());
        let rows = copied(rows, work, |v| *v);
        let re = copied(cotangents, work, |z| z.re());
        let im = copied(cotangents.slice(ndarray::s![..if O::IS_COMPLEX { n } else { 0 }, ..]), work, |z| z.im());
        let tile = Tile::new(&rows, n, d);
        check_tile(tile, first_row)?;
        (self.check)(tile).map_err(|error| error.rows_from(first_row))?;
        let im_tile = if O::IS_COMPLEX { Tile::new(&im, n, m) } else { Tile::new(&[], 0, 0) };
        let out = TileMut::from_view(out).map_err(|_| ()).expect("a fresh array");
        (self.pull)(tile, Cotangents::new(Tile::new(&re, n, m), im_tile), out, work);
        [rows, re, im].into_iter().for_each(|buffer| work.give(buffer));
        Ok(())
    }
}

fn check_tile<R: Real>(tile: Tile<'_, R>, first_row: usize) -> Result<()> {
    for i in 0..tile.rows() {
        if let Some(column) = first_not_finite(tile.row(i)) {
            return Err(Error::NonFinite { what: "rows", row: first_row + i, column });
        }
    }
    Ok(())
}

/// Refuses rows whose features have left the range of numbers, while both are in the cache; `fault` looks at those of one row.
fn check_features<R: Real>(
    rows: Tile<'_, R>,
    mut fault: impl FnMut(usize) -> Option<usize>,
    first_row: usize,
) -> Result<()> {
    match (0..rows.rows()).find(|&i| fault(i).is_some()) {
        Some(i) => {
            Err(Error::too_large("its features", first_row + i, rows.row(i).iter().map(|v| Real::to_f64(*v)), R::NAME))
        }
        None => Ok(()),
    }
}

/// Room for the features of rows.
pub(super) fn fresh<T: Scalar>(rows: usize, features: usize) -> Result<Array2<T>> {
    zeroed_matrix("features", (rows, features), in_blocks)
}
