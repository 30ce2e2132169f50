use super::pack::Dense;
use super::{Packed, product};
use crate::error::{Result, check_dim};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::scalar::Real;
use rayon::prelude::*;

/// `out = a · b`, parallel over rows.
///
/// # Errors
/// Shapes that do not fit, or no memory for a packed copy of `b`.
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

/// Rows per task.
const TASK_ROWS: usize = 96;

fn by_rows<R: Real>(a: Tile<'_, R>, b: Dense<'_, R>, out: TileMut<'_, R>) -> Result<()> {
    use super::Panels;
    check_dim("number of rows of the right factor", a.cols(), b.depth())?;
    check_dim("number of rows of the product", a.rows(), out.rows())?;
    check_dim("number of columns of the product", b.columns(), out.cols())?;
    let packed = Packed::<R>::new(&b)?;
    let mut tasks = Vec::new();
    let (mut rest, mut first) = (out, 0);
    while rest.rows() > 0 {
        let count = TASK_ROWS.min(rest.rows());
        let (head, tail) = rest.split_rows_at(count);
        tasks.push((first..first + count, head));
        (rest, first) = (tail, first + count);
    }
    tasks.into_par_iter().for_each_init(Workspace::new, |work, (rows, out)| {
        product(a.rows_in(rows), &packed, 0..packed.columns(), [out], work);
    });
    Ok(())
}
