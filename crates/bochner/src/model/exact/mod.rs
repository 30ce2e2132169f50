//! The exact references: kernel methods on the kernel itself, for as many rows as memory and patience allow.
//!
//! | model | work | memory |
//! |---|---|---|
//! | [`KernelRidge`] by Cholesky | `n³/3` | `n²/2` doubles |
//! | [`KernelRidge`] by conjugate gradients | `n²` kernels once (or per step), `n²` multiplications per step | what the budget allows |
//! | [`ExactGpRegressor`] | `n³/3` | `n²/2` doubles |
//! | [`ExactGpClassifier`] | `n³/3` per class | `n²/2` doubles per class and one more |
//!
//! All of them compute in double precision and take any [`Kernel`].

mod operator;
mod process;
mod ridge;

pub(super) use process::{CLASSIFICATION, REGRESSION};
pub use process::{
    ExactGpClassifier, ExactGpClassifierModel, ExactGpClassifierSpec, ExactGpRegressor, ExactGpRegressorModel,
    ExactGpRegressorSpec,
};
pub(super) use ridge::ENTRY as RIDGE;
pub use ridge::{ExactSolver, KernelRidge, KernelRidgeModel, KernelRidgeSpec};

use crate::context::Context;
use crate::error::{Error, Result, check_dim};
use crate::interrupt;
use crate::kernel::{Kernel, kernel_matrix_into};
use crate::linalg::Lower;
use crate::linalg::gemm::matmul_nn;
use crate::linalg::{Tile, TileMut};
use crate::persist::{Stored, Tensor};
use crate::rows::{RowSource, check_finite};
use ndarray::{Array1, Array2, ArrayView2, s};
use std::sync::Arc;

/// All rows of a source in memory.
#[derive(Debug, Clone)]
pub(crate) struct Gathered {
    pub(crate) rows: Array2<f64>,
    pub(crate) targets: Array2<f64>,
    pub(crate) weights: Array1<f64>,
}

/// Rows are counted against the budget; `unweighted` says why weights are refused, where they are.
pub(super) fn gather(
    source: &mut dyn RowSource<f64>,
    context: &Context<'_>,
    unweighted: Option<&str>,
) -> Result<Gathered> {
    let (inputs, outputs) = (source.input_dim(), source.target_dim());
    let check_rows = |n: usize| {
        let bytes = (8 * (inputs + outputs) as u64).saturating_mul(n as u64);
        context.check_budget("all rows", bytes, "models on features read rows in blocks and keep none")
    };
    check_rows(source.len_hint().unwrap_or(0))?;
    if outputs == 0 {
        return Err(Error::parameter("targets", "at least one column", "none"));
    }
    let (mut rows, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    source.for_each_block(&mut |block| {
        let first = weights.len();
        check_rows(first + block.rows.nrows())?;
        check_dim("number of columns of rows", inputs, block.rows.ncols())?;
        check_dim("number of rows of targets", block.rows.nrows(), block.targets.nrows())?;
        check_dim("number of columns of targets", outputs, block.targets.ncols())?;
        check_finite("rows", block.rows, first)?;
        check_finite("targets", block.targets, first)?;
        rows.extend(block.rows.iter().copied());
        targets.extend(block.targets.iter().copied());
        match block.weights {
            Some(given) => {
                if let Some(reason) = unweighted {
                    return Err(Error::Unsupported { what: "weights", reason: reason.into() });
                }
                check_dim("number of weights", block.rows.nrows(), given.len())?;
                if let Some(i) = given.iter().position(|w| !(*w > 0.0 && w.is_finite())) {
                    let found = format!("{} in row {}", given[i], first + i);
                    return Err(Error::parameter("weights", "positive and finite for exact models", found));
                }
                weights.extend(given.iter().copied());
            }
            None => weights.resize(first + block.rows.nrows(), 1.0),
        }
        Ok(())
    })?;
    let n = weights.len();
    if n == 0 {
        return Err(Error::parameter("rows", "at least one row", "none"));
    }
    Ok(Gathered {
        rows: Array2::from_shape_vec((n, inputs), rows).expect("n rows"),
        targets: Array2::from_shape_vec((n, outputs), targets).expect("n rows"),
        weights: weights.into(),
    })
}

/// Rows of a kernel matrix that are made at once: 64 MB at most, and enough to occupy all threads.
fn strip(columns: usize) -> usize {
    ((1 << 23) / columns.max(1)).clamp(64, 1024)
}

/// The lower triangle of the kernel matrix of all pairs of rows.
fn kernel_triangle(kernel: &dyn Kernel, rows: ArrayView2<'_, f64>) -> Result<Lower<f64>> {
    let n = rows.nrows();
    let mut lower = Lower::zeros(n)?;
    let step = strip(n);
    let mut buffer = vec![0.0; step.min(n) * n];
    for start in (0..n).step_by(step) {
        let end = (start + step).min(n);
        let mut window = ndarray::ArrayViewMut2::from_shape((end - start, end), &mut buffer[..(end - start) * end])
            .expect("as many numbers as the shape says");
        let (own, before) = (rows.slice(s![start..end, ..]), rows.slice(s![..end, ..]));
        kernel_matrix_into(kernel, own, before, window.view_mut()).map_err(|error| error.rows_from(start))?;
        for (i, row) in window.rows().into_iter().enumerate() {
            let row = row.to_slice().expect("standard layout");
            lower.row_mut(start + i).copy_from_slice(&row[..=start + i]);
        }
        interrupt::advance(end - start);
    }
    Ok(lower)
}

/// Hands `k(new, rows)` to `visit`, some new rows at a time: number of the first, one row per new row.
fn for_each_strip(
    kernel: &dyn Kernel,
    new: ArrayView2<'_, f64>,
    rows: ArrayView2<'_, f64>,
    visit: &mut dyn FnMut(usize, Array2<f64>) -> Result<()>,
) -> Result<()> {
    check_dim("number of columns of rows", rows.ncols(), new.ncols())?;
    check_finite("rows", new, 0)?;
    let step = strip(rows.nrows());
    for start in (0..new.nrows()).step_by(step) {
        let piece = new.slice(s![start..(start + step).min(new.nrows()), ..]);
        let mut matrix = Array2::zeros((piece.nrows(), rows.nrows()));
        kernel_matrix_into(kernel, piece, rows, matrix.view_mut()).map_err(|error| error.rows_from(start))?;
        visit(start, matrix)?;
    }
    Ok(())
}

fn tile(array: &Array2<f64>) -> Tile<'_, f64> {
    Tile::new(array.as_slice().expect("standard layout"), array.nrows(), array.ncols())
}

fn tile_mut(array: &mut Array2<f64>) -> TileMut<'_, f64> {
    let (rows, cols) = array.dim();
    TileMut::new(array.as_slice_mut().expect("standard layout"), rows, cols)
}

/// `Σᵢ k(new, xᵢ) cᵢ + shift`, one column per column of `coefficients`.
fn expand(
    kernel: &dyn Kernel,
    new: ArrayView2<'_, f64>,
    rows: ArrayView2<'_, f64>,
    coefficients: &Array2<f64>,
    shift: &[f64],
    mut out: ndarray::ArrayViewMut2<'_, f64>,
) -> Result<()> {
    check_dim("number of rows of the output", new.nrows(), out.nrows())?;
    check_dim("number of columns of the output", coefficients.ncols(), out.ncols())?;
    for_each_strip(kernel, new, rows, &mut |start, matrix| {
        let mut product = Array2::zeros((matrix.nrows(), coefficients.ncols()));
        matmul_nn(tile(&matrix), tile(coefficients), tile_mut(&mut product))?;
        let end = start + product.nrows();
        product += &ndarray::aview1(shift);
        check_finite("predictions", product.view(), start)?;
        out.slice_mut(s![start..end, ..]).assign(&product);
        Ok(())
    })
}

pub(super) fn matrix(values: ArrayView2<'_, f64>) -> Result<Tensor> {
    Tensor::of(vec![values.nrows(), values.ncols()], values.iter().copied())
}

/// The kernel of the file.
fn kernel(stored: &Stored) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(stored.header.description()?.kernel()?.clone()))
}

/// Rows, their targets under the name that the kind gives them, and weights.
type Data = (Array2<f64>, Array2<f64>, ndarray::Array1<f64>);

fn data(stored: &Stored, targets: &str) -> Result<Data> {
    Ok((stored.matrix("rows")?, stored.matrix(targets)?, stored.vector("weights")?))
}
