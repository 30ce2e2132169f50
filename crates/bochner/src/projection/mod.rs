//! Random linear maps, drawn once at unit scale.

/// Dimensions that are fields of their names.
macro_rules! dims {
    () => {
        fn input_dim(&self) -> usize {
            self.input_dim
        }

        fn output_dim(&self) -> usize {
            self.output_dim
        }
    };
}
pub(crate) use dims;

mod dense;
mod hadamard_chain;
mod sparse;
mod srht;

#[allow(deprecated)]
pub use dense::Gaussian;
pub use dense::{Dense, DenseGaussian, Entries, Given, MatrixFree, Orthogonal, Orthoprojector, Rademacher};
pub use hadamard_chain::{ComplexChain, HadamardChain};
pub use sparse::Sparse;
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

    /// Like [`project_tile`](Self::project_tile), real and imaginary parts apart.
    ///
    /// Complex projections that compute the parts separately override it.
    fn project_tile_split(
        &self,
        rows: Tile<'_, Self::Real>,
        columns: Range<usize>,
        out: Parts<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    ) {
        in_parts(out, work, |out, work| self.project_tile(rows, columns, out, work));
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

    /// Adds the transpose to `out` (`rows.rows()` × `input_dim`): `Re(Wᴴu)` of every row `u` of cotangents, with the
    /// directions in `columns`, which are as for [`project_tile`](Self::project_tile).
    fn pull_tile(
        &self,
        from: Cotangents<'_, Self::Real>,
        columns: Range<usize>,
        out: TileMut<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    );

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

    /// Like [`product_tile`](Self::product_tile), real and imaginary parts apart.
    fn product_tile_split(
        factors: &[Self],
        rows: &[Tile<'_, Self::Real>],
        out: Parts<'_, Self::Real>,
        work: &mut Workspace<Self::Real>,
    ) where
        Self: Sized,
    {
        in_parts(out, work, |out, work| Self::product_tile(factors, rows, out, work));
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
    let windows = Parts::new(TileMut::with_stride(re, n, m, stride), TileMut::with_stride(im, rows_im, m, stride));
    projection.project_tile_split(rows, columns, windows, work);
    for i in 0..n {
        let im = if P::Output::IS_COMPLEX { &im[i * stride..][..m] } else { &[] };
        visit(i, 0, &re[i * stride..][..m], im);
    }
    work.give(buffer);
}

/// Real and imaginary parts of rows in windows of their own. Who writes real rows leaves the second one untouched; it may be
/// empty then.
#[derive(Debug)]
pub struct Parts<'a, R> {
    /// Real parts.
    pub re: TileMut<'a, R>,
    /// Imaginary parts.
    pub im: TileMut<'a, R>,
}

impl<'a, R> Parts<'a, R> {
    /// Two windows of one shape, or the second without rows.
    pub fn new(re: TileMut<'a, R>, im: TileMut<'a, R>) -> Self {
        Parts { re, im }
    }

    /// A window of real rows.
    pub fn real(re: TileMut<'a, R>) -> Self {
        Parts { re, im: TileMut::new(&mut [], 0, 0) }
    }

    /// The columns in `range`.
    pub fn columns_mut(&mut self, range: Range<usize>) -> Parts<'_, R> {
        let width = self.im.cols();
        let im = self.im.columns_mut(range.start.min(width)..range.end.min(width));
        Parts { re: self.re.columns_mut(range), im }
    }

    /// Columns before `at` and columns from `at` on.
    pub fn split_columns_at(self, at: usize) -> (Self, Self) {
        let width = self.im.cols();
        let ((re, re_rest), (im, im_rest)) = (self.re.split_columns_at(at), self.im.split_columns_at(at.min(width)));
        (Parts { re, im }, Parts { re: re_rest, im: im_rest })
    }
}

/// What is pulled back: real parts, and imaginary parts of complex outputs.
///
/// The cotangent of an output `z` is `u` with `dL = Re(conj(u) dz)`: the gradient in its real part, and `i` times that in its
/// imaginary part.
#[derive(Debug, Clone, Copy)]
pub struct Cotangents<'a, R> {
    /// Gradients in real parts.
    pub re: Tile<'a, R>,
    /// Gradients in imaginary parts; without rows for real outputs.
    pub im: Tile<'a, R>,
}

impl<'a, R> Cotangents<'a, R> {
    /// Those of complex outputs.
    pub fn new(re: Tile<'a, R>, im: Tile<'a, R>) -> Self {
        Cotangents { re, im }
    }

    /// Those of real outputs.
    pub fn real(re: Tile<'a, R>) -> Self {
        Cotangents { re, im: Tile::new(&[], 0, 0) }
    }

    /// The columns in `range`.
    pub fn columns(&self, range: Range<usize>) -> Self {
        let width = self.im.cols();
        let im = self.im.columns(range.start.min(width)..range.end.min(width));
        Cotangents { re: self.re.columns(range), im }
    }

    /// The rows in `range`.
    pub fn rows_in(&self, range: Range<usize>) -> Self {
        let height = self.im.rows();
        let im = self.im.rows_in(range.start.min(height)..range.end.min(height));
        Cotangents { re: self.re.rows_in(range), im }
    }
}

/// Adds `factor` times a tile to a window of the same shape.
pub(crate) fn add_scaled<R: Real>(from: Tile<'_, R>, factor: R, out: &mut TileMut<'_, R>) {
    for i in 0..from.rows() {
        out.row_mut(i).iter_mut().zip(from.row(i)).for_each(|(o, v)| *o += factor * *v);
    }
}

/// Where a piece of a row goes: numbers of one type, or parts of them apart. Real numbers have no `im`.
pub(crate) trait Sink<R> {
    fn write(&mut self, row: usize, column: usize, re: &[R], im: &[R]);
}

impl<O: Scalar> Sink<O::Real> for TileMut<'_, O> {
    #[inline(always)]
    fn write(&mut self, row: usize, column: usize, re: &[O::Real], im: &[O::Real]) {
        let out = &mut self.row_mut(row)[column..][..re.len()];
        if O::IS_COMPLEX {
            out.iter_mut().zip(re.iter().zip(im)).for_each(|(out, (&re, &im))| *out = O::from_parts(re, im));
        } else {
            out.iter_mut().zip(re).for_each(|(out, &re)| *out = O::from_parts(re, O::Real::ZERO));
        }
    }
}

impl<R: Real> Sink<R> for Parts<'_, R> {
    #[inline(always)]
    fn write(&mut self, row: usize, column: usize, re: &[R], im: &[R]) {
        self.re.row_mut(row)[column..][..re.len()].copy_from_slice(re);
        if !im.is_empty() {
            self.im.row_mut(row)[column..][..im.len()].copy_from_slice(im);
        }
    }
}

/// The parts of what `write` makes, by way of a buffer.
pub(crate) fn in_parts<T: Scalar>(
    mut out: Parts<'_, T::Real>,
    work: &mut Workspace<T::Real>,
    write: impl FnOnce(TileMut<'_, T>, &mut Workspace<T::Real>),
) {
    let (n, m) = (out.re.rows(), out.re.cols());
    let mut both = T::lend(work, n * m);
    write(TileMut::new(&mut both, n, m), work);
    for i in 0..n {
        let row = &both[i * m..][..m];
        out.re.row_mut(i).iter_mut().zip(row).for_each(|(o, z)| *o = z.re());
        if T::IS_COMPLEX {
            out.im.row_mut(i).iter_mut().zip(row).for_each(|(o, z)| *o = z.im());
        }
    }
    T::give_back(work, both);
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
