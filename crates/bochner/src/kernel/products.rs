//! All inner products between two sets of rows, panel by panel, in `f64`.

use crate::error::{Error, Result, check_dim};
use crate::interrupt::Flag;
use crate::linalg::gemm::matmul_nt;
use crate::linalg::{Tile, TileMut};
use crate::parallel::Parallel;
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};

/// Rows that a thread takes in one task.
const TOGETHER: usize = 16;

/// Rows of `x` and of `y` whose products are held at once: 8 MB.
const CHUNK: usize = 1024;
/// With fewer rows of `x` than this a single product does not occupy all threads, but several panels of `y` do.
const FEW: usize = 192;

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

/// Rows as `f64`, their squares where asked for, and their squared norms.
#[derive(Default)]
struct Wide {
    rows: usize,
    dim: usize,
    data: Vec<f64>,
    squared: Vec<f64>,
    norms_sq: Vec<f64>,
}

impl Wide {
    fn fill<R: Real>(&mut self, rows: ArrayView2<'_, R>, squares: bool) {
        let dim = rows.ncols();
        (self.rows, self.dim) = rows.dim();
        self.norms_sq.resize(self.rows, 0.0);
        self.data.resize(self.rows * dim, 0.0);
        self.squared.resize(if squares { self.rows * dim } else { 0 }, 0.0);
        if dim == 0 {
            self.norms_sq.fill(0.0);
            return;
        }
        let jobs = self.data.chunks_mut(TOGETHER * dim).zip(self.norms_sq.chunks_mut(TOGETHER)).enumerate();
        jobs.in_parallel().for_each(|(job, (data, norms_sq))| {
            for ((i, out), norm_sq) in (job * TOGETHER..).zip(data.chunks_exact_mut(dim)).zip(norms_sq) {
                for (to, &from) in out.iter_mut().zip(rows.row(i)) {
                    *to = Real::to_f64(from);
                }
                *norm_sq = super::dot(out, out);
            }
        });
        self.squared.chunks_mut(1 << 14).zip(self.data.chunks(1 << 14)).in_parallel().for_each(|(to, from)| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from * from);
        });
    }
}

/// Products of a chunk of `x` with a panel of `y`; memory is kept from one panel to the next.
#[derive(Default)]
struct Products {
    y: Wide,
    dots: Vec<f64>,
    sums: Vec<f64>,
}

impl Products {
    fn fill<R: Real>(&mut self, x: &Wide, y: ArrayView2<'_, R>, squares: bool) -> Result<()> {
        self.y.fill(y, squares);
        let y = &self.y;
        let multiply = |a: &[f64], b: &[f64], out: &mut Vec<f64>| {
            out.resize(x.rows * y.rows, 0.0);
            if x.dim == 0 {
                out.fill(0.0);
                return Ok(());
            }
            let (a, b) = (Tile::new(a, x.rows, x.dim), Tile::new(b, y.rows, y.dim));
            matmul_nt(a, b, TileMut::new(out, x.rows, y.rows))
        };
        multiply(&x.data, &y.data, &mut self.dots)?;
        if squares {
            multiply(&x.squared, &y.squared, &mut self.sums)?;
        }
        Ok(())
    }

    /// The rows of products with what belongs to them.
    fn panels<'a>(&'a mut self, x: &'a Wide, (first_row, first): (usize, usize)) -> impl Iterator<Item = Panel<'a>> {
        let (width, sums, y_norms_sq) = (self.y.rows, &self.sums, &self.y.norms_sq);
        self.dots.chunks_exact_mut(width).enumerate().map(move |(i, dots)| Panel {
            row: first_row + i,
            first,
            dots,
            squares: if sums.is_empty() { &[] } else { &sums[i * width..][..width] },
            x_norm_sq: x.norms_sq[i],
            y_norms_sq,
        })
    }
}

/// Hands every row of products to `visit` and writes what it leaves in `dots` to `out`.
///
/// Entries do not depend on chunks or threads: each is an inner product and a function of it. Memory beside the output
/// does not grow with the number of rows.
pub(crate) fn map_products<R: Real, T: Real>(
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    squares: bool,
    mut out: ArrayViewMut2<'_, T>,
    visit: impl Fn(&mut Panel<'_>) + Sync,
) -> Result<()> {
    check_dim("number of columns of y", x.ncols(), y.ncols())?;
    check_finite("x", x, 0)?;
    check_finite("y", y, 0)?;
    check_dim("number of rows of the output", x.nrows(), out.nrows())?;
    check_dim("number of columns of the output", y.nrows(), out.ncols())?;
    let stop = Flag::current();
    let mut wide = Wide::default();
    let mut products = Products::default();
    for (chunk, (x, mut out)) in
        x.axis_chunks_iter(Axis(0), CHUNK).zip(out.axis_chunks_iter_mut(Axis(0), CHUNK)).enumerate()
    {
        wide.fill(x, squares);
        let one_panel = |products: &mut Products, panel: usize, y, mut out: ArrayViewMut2<'_, T>| {
            if stop.raised() {
                return Err(Error::Interrupted);
            }
            products.fill(&wide, y, squares)?;
            let panels = products.panels(&wide, (chunk * CHUNK, panel * CHUNK));
            panels.zip(out.axis_iter_mut(Axis(0))).in_parallel().for_each(|(mut panel, out)| {
                visit(&mut panel);
                for (to, from) in out.into_iter().zip(panel.dots.iter()) {
                    *to = T::from_f64(*from);
                }
            });
            Ok(())
        };
        let panels = y.axis_chunks_iter(Axis(0), CHUNK).zip(out.axis_chunks_iter_mut(Axis(1), CHUNK)).enumerate();
        if x.nrows() < FEW {
            let job = |products: &mut Products, (panel, (y, out))| one_panel(products, panel, y, out);
            panels.in_parallel().try_for_each_init(Products::default, job)?;
        } else {
            for (panel, (y, out)) in panels {
                one_panel(&mut products, panel, y, out)?;
            }
        }
    }
    Ok(())
}
