use super::pack::Dense;
use super::{Packed, Panels, product, ranges};
use crate::error::{Result, check_dim};
use crate::interrupt;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::parallel::Parallel;
use crate::scalar::Real;

/// Rows per task.
const TASK_ROWS: usize = 96;

/// Bytes of the right factor that are packed at once: they stay in the last-level cache, and the memory is used again.
const PACKED_BYTES: usize = 1 << 23;

/// `out = a · b`, parallel over rows.
///
/// # Errors
/// Shapes that do not fit, or no memory for a packed copy of some columns of `b`.
pub fn matmul_nn<R: Real>(a: Tile<'_, R>, b: Tile<'_, R>, out: TileMut<'_, R>) -> Result<()> {
    by_rows(a, Dense::Plain(b), out)
}

/// `out = a · bᵀ`, parallel over rows: all inner products of the rows of `a` with the rows of `b`.
///
/// # Errors
/// As [`matmul_nn`].
pub fn matmul_nt<R: Real>(a: Tile<'_, R>, b: Tile<'_, R>, out: TileMut<'_, R>) -> Result<()> {
    by_rows(a, Dense::Transposed(b), out)
}

fn by_rows<R: Real>(a: Tile<'_, R>, b: Dense<'_, R>, mut out: TileMut<'_, R>) -> Result<()> {
    check_dim("number of rows of the right factor", a.cols(), b.depth())?;
    check_dim("number of rows of the product", a.rows(), out.rows())?;
    check_dim("number of columns of the product", b.columns(), out.cols())?;
    if a.cols() == 0 {
        for i in 0..out.rows() {
            out.row_mut(i).fill(R::ZERO);
        }
        return Ok(());
    }
    let chunk = (PACKED_BYTES / (a.cols() * size_of::<R>())).next_multiple_of(16 * R::PANEL);
    for columns in ranges(0..b.columns(), chunk) {
        let packed = Packed::<R>::new(&b.columns_in(columns.clone()))?;
        let mut rest = out.columns_mut(columns);
        let mut tasks = Vec::new();
        for rows in ranges(0..a.rows(), TASK_ROWS) {
            let (window, below) = rest.split_rows_at(rows.len());
            rest = below;
            tasks.push((rows, window));
        }
        tasks.in_parallel().for_each_init(Workspace::new, |work, (rows, out)| {
            product(a.rows_in(rows), &packed, 0..packed.columns(), [out], work);
        });
        interrupt::check()?;
    }
    Ok(())
}
