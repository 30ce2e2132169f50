use super::kernel::BLOCK_ROWS;
use crate::error::Result;
use crate::linalg::{Tile, Workspace};
use crate::memory::zeros;
use crate::parallel::Parallel;
use crate::scalar::Real;
use std::ops::Range;

/// The right factor of a product, in panels of [`Kernels::PANEL`](crate::linalg::Kernels::PANEL) columns.
///
/// A column has `P` parts: one for a real matrix, real and imaginary part for a complex one. The panels of the parts
/// of the same columns lie side by side, so that a generator that makes both at once is asked once.
pub trait Panels<R: Real, const P: usize>: Sync {
    /// Number of rows.
    fn depth(&self) -> usize;

    /// Number of columns.
    fn columns(&self) -> usize;

    /// Whether [`stored`](Self::stored) may be called instead of [`write`](Self::write).
    fn is_stored(&self) -> bool {
        false
    }

    /// Rows `depths` of part `part` of panel `panel`, row-major.
    fn stored(&self, _panel: usize, _part: usize, _depths: Range<usize>) -> &[R] {
        &[]
    }

    /// Writes rows `depths` of panel `panel`, part after part, each row-major; columns past the last are zero.
    ///
    /// `depths.start` is a multiple of [`depth_block`](super::depth_block).
    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [R]);
}

/// A right factor stored in panels, drawn or copied once and used for every row after that.
#[derive(Clone)]
pub struct Packed<R, const P: usize = 1> {
    data: Vec<R>,
    /// First number of the panels in `data`: at a multiple of 64 bytes when built.
    start: usize,
    depth: usize,
    columns: usize,
}

impl<R, const P: usize> std::fmt::Debug for Packed<R, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed({} x {}, parts: {P})", self.depth, self.columns)
    }
}

/// Numbers in a cache line of 64 bytes.
pub(super) const fn line<R>() -> usize {
    64 / size_of::<R>()
}

/// A buffer of `len` numbers from `work`, to be used from the returned index on, where a cache line begins: half of the
/// vectors of a panel that starts elsewhere would straddle two lines.
pub(super) fn take_aligned<R: Real>(work: &mut Workspace<R>, len: usize) -> (Vec<R>, usize) {
    let buffer = work.take(len + line::<R>());
    let start = buffer.as_ptr().align_offset(64).min(line::<R>());
    (buffer, start)
}

impl<R: Real, const P: usize> Packed<R, P> {
    /// The matrix another source would make panel by panel.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) if it does not fit in memory.
    pub fn new<S: Panels<R, P> + ?Sized>(source: &S) -> Result<Self> {
        let (depth, columns) = (source.depth(), source.columns());
        let panels = columns.div_ceil(R::PANEL);
        let size = depth.checked_mul(R::PANEL).and_then(|s| s.checked_mul(P));
        let count = size.and_then(|s| s.checked_mul(panels)).and_then(|s| s.checked_add(line::<R>()));
        let mut data: Vec<R> = zeros("a stored matrix", count, "a projection without stored weights needs none of it")?;
        let start = data.as_ptr().align_offset(64).min(line::<R>());
        let size = size.unwrap_or(0);
        if size > 0 {
            data[start..][..panels * size].chunks_mut(size).enumerate().in_parallel().for_each(|(panel, out)| {
                let step = super::depth_block(depth);
                let mut block = vec![R::ZERO; P * step * R::PANEL];
                for depths in super::ranges(0..depth, step) {
                    let part = depths.len() * R::PANEL;
                    source.write(panel, depths.clone(), &mut block[..P * part]);
                    for p in 0..P {
                        let to = (p * depth + depths.start) * R::PANEL;
                        out[to..to + part].copy_from_slice(&block[p * part..][..part]);
                    }
                }
            });
        }
        Ok(Packed { data, start, depth, columns })
    }

    /// Entry `(row, column)` of part `part`.
    pub fn get(&self, row: usize, column: usize, part: usize) -> R {
        assert!(row < self.depth && column < self.columns);
        self.stored(column / R::PANEL, part, row..row + 1)[column % R::PANEL]
    }
}

impl<R: Real, const P: usize> Panels<R, P> for Packed<R, P> {
    fn depth(&self) -> usize {
        self.depth
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn stored(&self, panel: usize, part: usize, depths: Range<usize>) -> &[R] {
        &self.data[self.start + ((panel * P + part) * self.depth + depths.start) * R::PANEL..]
            [..depths.len() * R::PANEL]
    }

    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [R]) {
        for (part, out) in out.chunks_exact_mut(depths.len() * R::PANEL).enumerate() {
            out.copy_from_slice(self.stored(panel, part, depths.clone()));
        }
    }
}

/// A row-major matrix, or its transpose, as a right factor.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dense<'a, R> {
    Plain(Tile<'a, R>),
    Transposed(Tile<'a, R>),
}

impl<R: Real> Dense<'_, R> {
    pub(super) fn columns_in(&self, columns: Range<usize>) -> Self {
        match self {
            Dense::Plain(tile) => Dense::Plain(tile.columns(columns)),
            Dense::Transposed(tile) => Dense::Transposed(tile.rows_in(columns)),
        }
    }
}

impl<R: Real> Panels<R, 1> for Dense<'_, R> {
    fn depth(&self) -> usize {
        match self {
            Dense::Plain(tile) => tile.rows(),
            Dense::Transposed(tile) => tile.cols(),
        }
    }

    fn columns(&self) -> usize {
        match self {
            Dense::Plain(tile) => tile.cols(),
            Dense::Transposed(tile) => tile.rows(),
        }
    }

    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [R]) {
        let first = panel * R::PANEL;
        let count = R::PANEL.min(self.columns() - first);
        match self {
            Dense::Plain(tile) => {
                for (row, out) in depths.zip(out.chunks_exact_mut(R::PANEL)) {
                    out[..count].copy_from_slice(&tile.row(row)[first..first + count]);
                    out[count..].fill(R::ZERO);
                }
            }
            Dense::Transposed(tile) => {
                interleave(R::PANEL, count, |j| &tile.row(first + j)[depths.clone()], out);
            }
        }
    }
}

/// The rows of `rows` as the columns of a right factor.
pub(crate) fn pack_transposed<R: Real>(rows: Tile<'_, R>) -> Result<Packed<R>> {
    Packed::new(&Dense::Transposed(rows))
}

/// Rows in blocks of six (the last one narrower), each with the depth outermost.
pub(super) fn blocks_of_rows<R: Real>(rows: Tile<'_, R>, out: &mut [R]) {
    for (block, out) in super::ranges(0..rows.rows(), BLOCK_ROWS).zip(out.chunks_mut(BLOCK_ROWS * rows.cols())) {
        if block.len() == BLOCK_ROWS {
            let streams: [&[R]; BLOCK_ROWS] = std::array::from_fn(|i| rows.row(block.start + i));
            for (p, out) in out.as_chunks_mut::<BLOCK_ROWS>().0.iter_mut().enumerate() {
                *out = std::array::from_fn(|i| streams[i][p]);
            }
        } else {
            interleave(block.len(), block.len(), |i| rows.row(block.start + i), out);
        }
    }
}

/// Writes `column(0)[0], column(1)[0], …, column(0)[1], …` in groups of `width`, of which `count` are columns and the
/// rest zeros.
pub(crate) fn interleave<'a, R: Real>(width: usize, count: usize, column: impl Fn(usize) -> &'a [R], out: &mut [R]) {
    // Eight columns at a time: each pass reads eight sequential streams and writes whole groups.
    let mut j = 0;
    while j + 8 <= count {
        let columns: [&[R]; 8] = std::array::from_fn(|i| column(j + i));
        for (p, out) in out.chunks_exact_mut(width).enumerate() {
            for i in 0..8 {
                out[j + i] = columns[i][p];
            }
        }
        j += 8;
    }
    for j in j..width {
        if j < count {
            let column = column(j);
            for (p, out) in out.chunks_exact_mut(width).enumerate() {
                out[j] = column[p];
            }
        } else {
            for out in out.chunks_exact_mut(width) {
                out[j] = R::ZERO;
            }
        }
    }
}
