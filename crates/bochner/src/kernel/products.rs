//! All inner products between two sets of rows, panel by panel, in `f64`.

use crate::error::{Result, check_dim};
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

/// Rows of `x` per block. Sums over pairs are added block by block, so these two numbers are part of their bits.
const BLOCK: usize = 128;
/// Rows of `y` per panel: 128 × 1,024 products are 1 MB, which stays in the second-level cache.
const PANEL: usize = 1024;
/// Below this many multiplications a second thread costs more than it brings.
const PARALLEL_FROM: usize = 1 << 18;

/// What is known about row `row` of `x` and the rows `first..first + dots.len()` of `y`.
#[derive(Debug)]
pub(crate) struct Panel<'a> {
    /// Number of the row of `x`.
    pub(crate) row: usize,
    /// Number of the first row of `y`.
    pub(crate) first: usize,
    /// `⟨x, yⱼ⟩`; what the visitor of [`map_products`] leaves here is the result.
    pub(crate) dots: &'a mut [f64],
    /// `Σᵢ xᵢ² yⱼᵢ²` where asked for; empty otherwise.
    pub(crate) squares: &'a [f64],
    /// `|x|²`.
    pub(crate) x_norm_sq: f64,
    /// `|yⱼ|²`.
    pub(crate) y_norms_sq: &'a [f64],
}

/// Rows as `f64` with their squared norms, filled up with zero rows to a multiple of 8: products with a single row
/// may round differently.
struct Wide {
    data: Vec<f64>,
    squared: Vec<f64>,
    norms_sq: Vec<f64>,
}

impl Wide {
    fn new<R: Real>(rows: ArrayView2<'_, R>, squares: bool) -> Self {
        let dim = rows.ncols();
        let padded = rows.nrows().next_multiple_of(8) * dim;
        let mut data = Vec::with_capacity(padded);
        for row in rows.axis_iter(Axis(0)) {
            data.extend(row.iter().map(|&v| Real::to_f64(v)));
        }
        let norm_sq = |i: usize| super::dot(&data[i * dim..][..dim], &data[i * dim..][..dim]);
        let norms_sq = (0..rows.nrows()).map(norm_sq).collect();
        data.resize(padded, 0.0);
        let squared = if squares { data.iter().map(|v| v * v).collect() } else { Vec::new() };
        Wide { data, squared, norms_sq }
    }
}

/// `a bᵀ` for contiguous rows of length `dim`: the one place where these products are computed.
fn multiply_nt(a: &[f64], b: &[f64], dim: usize, out: &mut [f64], out_cols: usize) {
    let rows = out.len() / out_cols;
    if dim == 0 {
        out.fill(0.0);
        return;
    }
    let a = ArrayView2::from_shape((rows, dim), &a[..rows * dim]).expect("contiguous rows");
    let b = ArrayView2::from_shape((out_cols, dim), &b[..out_cols * dim]).expect("contiguous rows");
    let mut out = ArrayViewMut2::from_shape((rows, out_cols), out).expect("contiguous rows");
    ndarray::linalg::general_mat_mul(1.0, &a, &b.t(), 0.0, &mut out);
}

/// Visits all pairs of a block of rows of `x` and a panel of rows of `y`, row by row.
fn visit_pairs<R: Real>(
    x: ArrayView2<'_, R>,
    first_row: usize,
    y: &Wide,
    first: usize,
    squares: bool,
    mut visit: impl FnMut(&mut Panel<'_>),
) {
    let (dim, width) = (x.ncols(), y.norms_sq.len());
    let x = Wide::new(x, squares);
    let rows = x.norms_sq.len();
    let (padded_rows, padded) = (rows.next_multiple_of(8), width.next_multiple_of(8));
    let mut dots = vec![0.0; padded_rows * padded];
    multiply_nt(&x.data, &y.data, dim, &mut dots, padded);
    let mut sums = vec![0.0; if squares { dots.len() } else { 0 }];
    if squares {
        multiply_nt(&x.squared, &y.squared, dim, &mut sums, padded);
    }
    for i in 0..rows {
        visit(&mut Panel {
            row: first_row + i,
            first,
            dots: &mut dots[i * padded..][..width],
            squares: if squares { &sums[i * padded..][..width] } else { &[] },
            x_norm_sq: x.norms_sq[i],
            y_norms_sq: &y.norms_sq,
        });
    }
}

fn check<R: Real>(x: ArrayView2<'_, R>, y: ArrayView2<'_, R>) -> Result<()> {
    check_dim("number of columns of y", x.ncols(), y.ncols())?;
    check_finite("x", x, 0)?;
    check_finite("y", y, 0)
}

/// How the pairs are shared among threads: not at all, by blocks of `x` within each panel of `y`, or by panels.
enum Share {
    Nothing,
    Blocks,
    Panels,
}

impl Share {
    fn of<R: Real>(x: ArrayView2<'_, R>, y: ArrayView2<'_, R>) -> Share {
        let (blocks, panels) = (x.nrows().div_ceil(BLOCK), y.nrows().div_ceil(PANEL));
        match x.nrows().saturating_mul(y.len()) {
            work if work < PARALLEL_FROM => Share::Nothing,
            _ if blocks >= panels => Share::Blocks,
            _ => Share::Panels,
        }
    }
}

/// Hands every row of products to `visit` and writes what it leaves in `dots` to `out`.
///
/// Entries do not depend on blocks, panels or threads: each is an inner product and a function of it. Beside the output
/// memory holds one panel of `y` and one block of products per thread.
pub(crate) fn map_products<R: Real, T: Real>(
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    squares: bool,
    mut out: ArrayViewMut2<'_, T>,
    visit: impl Fn(&mut Panel<'_>) + Sync,
) -> Result<()> {
    check(x, y)?;
    check_dim("number of rows of the output", x.nrows(), out.nrows())?;
    check_dim("number of columns of the output", y.nrows(), out.ncols())?;
    let share = Share::of(x, y);
    let one_block =
        |wide: &Wide, first: usize, (block, (rows, mut out)): (usize, (ArrayView2<'_, R>, ArrayViewMut2<'_, T>))| {
            visit_pairs(rows, block * BLOCK, wide, first, squares, |panel| {
                visit(panel);
                let out = out.row_mut(panel.row - block * BLOCK);
                for (to, from) in out.into_iter().zip(panel.dots.iter()) {
                    *to = T::from_f64(*from);
                }
            });
        };
    let one_panel = |(panel, (rows, mut out)): (usize, (ArrayView2<'_, R>, ArrayViewMut2<'_, T>))| {
        let wide = Wide::new(rows, squares);
        let blocks = x.axis_chunks_iter(Axis(0), BLOCK).zip(out.axis_chunks_iter_mut(Axis(0), BLOCK)).enumerate();
        if matches!(share, Share::Blocks) {
            blocks.collect::<Vec<_>>().into_par_iter().for_each(|b| one_block(&wide, panel * PANEL, b));
        } else {
            blocks.for_each(|b| one_block(&wide, panel * PANEL, b));
        }
    };
    let panels = y.axis_chunks_iter(Axis(0), PANEL).zip(out.axis_chunks_iter_mut(Axis(1), PANEL)).enumerate();
    if matches!(share, Share::Panels) {
        panels.collect::<Vec<_>>().into_par_iter().for_each(one_panel);
    } else {
        panels.for_each(one_panel);
    }
    Ok(())
}

/// Sums over all pairs: `visit` adds to `len` running sums, which are added panel by panel and block by block, in order,
/// whatever the threads do.
pub(crate) fn sum_products<R: Real>(
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    squares: bool,
    len: usize,
    visit: impl Fn(&Panel<'_>, &mut [f64]) + Sync,
) -> Result<Vec<f64>> {
    check(x, y)?;
    let share = Share::of(x, y);
    let one_block = |wide: &Wide, first: usize, (block, rows): (usize, ArrayView2<'_, R>)| {
        let mut sums = vec![0.0; len];
        visit_pairs(rows, block * BLOCK, wide, first, squares, |panel| visit(panel, &mut sums));
        sums
    };
    let one_panel = |(panel, rows): (usize, ArrayView2<'_, R>)| -> Vec<Vec<f64>> {
        let wide = Wide::new(rows, squares);
        let blocks = x.axis_chunks_iter(Axis(0), BLOCK).enumerate();
        if matches!(share, Share::Blocks) {
            blocks.collect::<Vec<_>>().into_par_iter().map(|b| one_block(&wide, panel * PANEL, b)).collect()
        } else {
            blocks.map(|b| one_block(&wide, panel * PANEL, b)).collect()
        }
    };
    let panels = y.axis_chunks_iter(Axis(0), PANEL).enumerate();
    let parts: Vec<Vec<Vec<f64>>> = if matches!(share, Share::Panels) {
        panels.collect::<Vec<_>>().into_par_iter().map(one_panel).collect()
    } else {
        panels.map(one_panel).collect()
    };
    let mut total = vec![0.0; len];
    for part in parts.into_iter().flatten() {
        for (t, p) in total.iter_mut().zip(part) {
            *t += p;
        }
    }
    Ok(total)
}
