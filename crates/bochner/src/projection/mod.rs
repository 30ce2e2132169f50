//! Random linear maps, drawn once at unit scale.

mod dense;
mod hadamard_chain;
mod srht;

pub use dense::{Dense, Entries, Gaussian, Given, MatrixFree, Orthogonal, Orthoprojector, Rademacher};
pub use hadamard_chain::{ComplexChain, HadamardChain};
pub use srht::{Sampling, Srht};
mod count_sketch;

pub use count_sketch::CountSketch;

use crate::linalg::vectors::{SLACK, aligned};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::scalar::{Real, Scalar};
use std::fmt::Debug;
use std::ops::Range;

/// A random linear map `x ↦ Wx`, drawn once at unit scale.
///
/// Contract: the mean of `w wᴴ` over its directions (rows of `W`) has expectation `I`, so `⟨Wx, Wy⟩/m` estimates
/// `⟨x, y⟩`. Inputs are real; outputs are real or complex.
///
/// Bits do not depend on how rows are cut into tiles nor on which panels are asked for.
pub trait Projection: Debug + Send + Sync {
    /// Precision.
    type Real: Real;
    /// Type of an output coordinate.
    type Output: Scalar<Real = Self::Real>;

    /// Length of an input row.
    fn input_dim(&self) -> usize;

    /// Number of directions.
    fn output_dim(&self) -> usize;

    /// Columns are produced in panels of this many, so that what follows finds them in cache.
    fn panel(&self) -> usize {
        self.output_dim()
    }

    /// Rows that should share one call: 1 where it does not matter, hundreds where weights are made on the way. Maps ask for
    /// tiles of at least this many.
    fn shared_rows(&self) -> usize {
        1
    }

    /// About as many multiplications and additions of a product take the time of projecting one row.
    fn operations(&self) -> u64 {
        (self.input_dim() as u64).saturating_mul(self.output_dim() as u64)
    }

    /// Writes columns `columns` of the projected rows to `out` (`rows.rows()` × `columns.len()`).
    ///
    /// `columns.start` is a multiple of [`panel`](Self::panel); `columns.end` is one too, or `output_dim`.
    fn project_tile(
        &self,
        rows: Tile<'_, Self::Real>,
        columns: Range<usize>,
        out: TileMut<'_, Self::Output>,
        work: &mut Workspace<Self::Real>,
    );

    /// Like [`project_tile`](Self::project_tile), real and imaginary parts apart; real maps leave `im` untouched.
    ///
    /// Complex projections that compute the parts separately override it.
    fn project_tile_split(
        &self,
        rows: Tile<'_, Self::Real>,
        columns: Range<usize>,
        mut re: TileMut<'_, Self::Real>,
        mut im: TileMut<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    ) {
        let (n, m) = (rows.rows(), columns.len());
        let mut both = Self::Output::lend(work, n * m);
        self.project_tile(rows, columns, TileMut::new(&mut both, n, m), work);
        split_tile(&both, &mut re, &mut im);
        Self::Output::give_back(work, both);
    }

    /// Like [`project_tile_split`](Self::project_tile_split), handed out in pieces that are still in cache: `visit` gets the
    /// number of a row, the place in `columns` of the piece's first coordinate, and the piece's real and imaginary parts (none
    /// for real maps). Every coordinate is in one piece, and the pieces of a row come in order.
    fn project_parts(
        &self,
        rows: Tile<'_, Self::Real>,
        columns: Range<usize>,
        work: &mut Workspace<Self::Real>,
        visit: &mut dyn FnMut(usize, usize, &[Self::Real], &[Self::Real]),
    ) {
        project_parts_of_tile(self, rows, columns, work, visit);
    }

    /// Writes `∏ᵢ Wᵢx` (coordinate by coordinate) for independent projections of one kind: the heart of every product
    /// sketch. Overridden where the factors can be multiplied without storing each one.
    ///
    /// `factors[i]` sees `rows[i]`; all have the same output dimension, which is `out.cols()`.
    fn product_tile(
        factors: &[Self],
        rows: &[Tile<'_, Self::Real>],
        mut out: TileMut<'_, Self::Output>,
        work: &mut Workspace<Self::Real>,
    ) where
        Self: Sized,
    {
        let n = out.rows();
        let Some((first, rest)) = factors.split_first() else { return };
        for columns in panels(first.output_dim(), first.panel()) {
            let m = columns.len();
            first.project_tile(rows[0], columns.clone(), out.columns_mut(columns.clone()), work);
            if rest.is_empty() {
                continue;
            }
            let mut factor = Self::Output::lend(work, n * m);
            for (projection, rows) in rest.iter().zip(&rows[1..]) {
                projection.project_tile(*rows, columns.clone(), TileMut::new(&mut factor, n, m), work);
                for i in 0..n {
                    for (o, f) in out.row_mut(i)[columns.clone()].iter_mut().zip(&factor[i * m..][..m]) {
                        *o *= *f;
                    }
                }
            }
            Self::Output::give_back(work, factor);
        }
    }

    /// Like [`product_tile`](Self::product_tile), real and imaginary parts apart; real maps leave `im` untouched.
    fn product_tile_split(
        factors: &[Self],
        rows: &[Tile<'_, Self::Real>],
        mut re: TileMut<'_, Self::Real>,
        mut im: TileMut<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    ) where
        Self: Sized,
    {
        let (n, m) = (re.rows(), re.cols());
        let mut both = Self::Output::lend(work, n * m);
        Self::product_tile(factors, rows, TileMut::new(&mut both, n, m), work);
        split_tile(&both, &mut re, &mut im);
        Self::Output::give_back(work, both);
    }
}

/// [`Projection::project_parts`] by way of [`Projection::project_tile_split`]: a piece is a row.
pub(crate) fn project_parts_of_tile<P: Projection + ?Sized>(
    projection: &P,
    rows: Tile<'_, P::Real>,
    columns: Range<usize>,
    work: &mut Workspace<P::Real>,
    visit: &mut dyn FnMut(usize, usize, &[P::Real], &[P::Real]),
) {
    let (n, m) = (rows.rows(), columns.len());
    // Rows that begin with a cache line: transforms in place would pay for registers across two.
    let stride = m.next_multiple_of(64 / size_of::<P::Real>());
    let parts = if P::Output::IS_COMPLEX { 2 } else { 1 };
    let mut buffer = work.take(parts * n * stride + SLACK);
    let (re, im) = aligned(&mut buffer)[..parts * n * stride].split_at_mut(n * stride);
    let rows_im = if P::Output::IS_COMPLEX { n } else { 0 };
    let windows = (TileMut::with_stride(re, n, m, stride), TileMut::with_stride(im, rows_im, m, stride));
    projection.project_tile_split(rows, columns, windows.0, windows.1, work);
    for i in 0..n {
        let im = if P::Output::IS_COMPLEX { &im[i * stride..][..m] } else { &[] };
        visit(i, 0, &re[i * stride..][..m], im);
    }
    work.give(buffer);
}

/// Real and imaginary parts of contiguous rows; real numbers leave `im` untouched.
pub(crate) fn split_tile<T: Scalar>(both: &[T], re: &mut TileMut<'_, T::Real>, im: &mut TileMut<'_, T::Real>) {
    let m = re.cols();
    for i in 0..re.rows() {
        let row = &both[i * m..][..m];
        re.row_mut(i).iter_mut().zip(row).for_each(|(o, z)| *o = z.re());
        if T::IS_COMPLEX {
            im.row_mut(i).iter_mut().zip(row).for_each(|(o, z)| *o = z.im());
        }
    }
}

/// Bytes of a row that are made before the next row's: fewer would jump between pages of the output for every few cache
/// lines.
const WIDE_BYTES: usize = 2048;

/// The smallest multiple of `panel` columns that is worth a call.
pub(crate) fn wide<R: Real>(panel: usize) -> usize {
    let panel = panel.max(1);
    panel * (WIDE_BYTES / size_of::<R>()).div_ceil(panel)
}

/// `0..dim` in consecutive ranges of `panel`, the last one possibly shorter.
pub fn panels(dim: usize, panel: usize) -> impl Iterator<Item = Range<usize>> {
    let panel = panel.max(1);
    (0..dim.div_ceil(panel)).map(move |i| i * panel..((i + 1) * panel).min(dim))
}
