use super::{strip, tile, tile_mut};
use crate::error::{Result, check_dim};
use crate::interrupt;
use crate::kernel::{Kernel, kernel_matrix_into};
use crate::linalg::field::{Field, Window};
use crate::linalg::gemm::matmul_nn;
use crate::linalg::{Tile, TileMut, zeroed};
use crate::parallel::Parallel;
use crate::scalar::Real;
use crate::solve::Operator;
use ndarray::{Array2, ArrayView2, s};

/// Rows and columns of a kept block.
const BLOCK: usize = 512;

/// Rows of a block that are widened at a time: they stay in the second-level cache.
const PART: usize = 64;

/// The kernel matrix of all pairs of rows, scaled by the roots of weights on both sides: kept, or made in every product.
pub(super) enum KernelOperator<'a> {
    Kept(Kept<f64>),
    Single(Kept<f32>),
    Made { kernel: &'a dyn Kernel, rows: ArrayView2<'a, f64>, roots: Vec<f64> },
}

/// The blocks on and below the diagonal.
pub(super) struct Kept<R> {
    order: usize,
    /// Row of blocks `i` is a window of its rows and all columns up to its own.
    strips: Vec<Vec<R>>,
}

impl<R: Real> Kept<R> {
    pub(super) fn bytes(order: usize) -> u64 {
        let (n, block) = (order as u64, BLOCK as u64);
        (n.saturating_mul(n) / 2).saturating_add(n.saturating_mul(block)).saturating_mul(size_of::<R>() as u64)
    }

    fn width(&self, i: usize) -> usize {
        ((i + 1) * BLOCK).min(self.order)
    }

    fn strip(&self, i: usize) -> Tile<'_, R> {
        let width = self.width(i);
        Tile::new(&self.strips[i], self.strips[i].len() / width, width)
    }

    fn new(kernel: &dyn Kernel, rows: ArrayView2<'_, f64>, roots: &[f64]) -> Result<Self> {
        let n = rows.nrows();
        let mut kept = Kept { order: n, strips: Vec::with_capacity(n.div_ceil(BLOCK)) };
        let mut buffer = Array2::zeros((0, 0));
        for i in 0..n.div_ceil(BLOCK) {
            let own = i * BLOCK..((i + 1) * BLOCK).min(n);
            let width = own.end;
            if buffer.dim() != (own.len(), width) {
                buffer = Array2::zeros((own.len(), width));
            }
            kernel_matrix_into(
                kernel,
                rows.slice(s![own.clone(), ..]),
                rows.slice(s![..width, ..]),
                buffer.view_mut(),
            )?;
            let mut strip: Vec<R> = zeroed("a strip of the kernel matrix", own.len().checked_mul(width), |_| {
                "give a memory budget".into()
            })?;
            for ((to, from), a) in strip.chunks_mut(width).zip(buffer.rows()).zip(&roots[own]) {
                for ((to, from), b) in to.iter_mut().zip(from).zip(roots) {
                    *to = R::from_f64(a * from * b);
                }
            }
            kept.strips.push(strip);
        }
        Ok(kept)
    }

    /// In double precision whatever the matrix is kept in: vectors rounded to single precision would leave a residual of
    /// `ε‖K‖/α`, which no iteration could lower, and the matrix is read from memory no faster.
    fn apply(&self, v: ArrayView2<'_, f64>) -> Array2<f64> {
        let (n, cols) = v.dim();
        let width = cols.next_multiple_of(4);
        let mut padded = vec![0.0; n * width];
        for (to, from) in padded.chunks_mut(width).zip(v.rows()) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        let right = Tile::new(&padded, n, width);
        let mut out = vec![0.0; n * width];
        let buffers = || (Vec::new(), Vec::new());
        out.chunks_mut(BLOCK * width).enumerate().in_parallel().for_each_init(buffers, |(scratch, wide), (i, out)| {
            let rows = out.len() / width;
            // Left of the diagonal and on it, then below it, transposed.
            for j in 0..self.strips.len() {
                let own = self.strip(i.max(j));
                let first = i.min(j) * BLOCK;
                let block = own.columns(first..(first + BLOCK).min(own.cols()));
                for start in (0..block.rows()).step_by(PART) {
                    let part = block.rows_in(start..(start + PART).min(block.rows()));
                    wide.clear();
                    (0..part.rows()).for_each(|r| wide.extend(part.row(r).iter().map(|value| Real::to_f64(*value))));
                    let part = Window::from(Tile::new(wide, part.rows(), part.cols()));
                    // Rows of the block are rows of the product, or terms of every one of them.
                    let count = PART.min(block.rows() - start);
                    let (sums, part, from) = match j > i {
                        false => (start..start + count, part, j * BLOCK..((j + 1) * BLOCK).min(n)),
                        true => (0..rows, part.adjoint(), j * BLOCK + start..j * BLOCK + start + count),
                    };
                    let sums = TileMut::new(&mut out[sums.start * width..sums.end * width], sums.len(), width);
                    f64::add_product(sums, part, right.rows_in(from).into(), scratch);
                }
            }
        });
        Array2::from_shape_fn((n, cols), |(i, j)| out[i * width + j])
    }
}

impl<'a> KernelOperator<'a> {
    /// Kept in double precision where `room` bytes hold that, else in single precision, else made in every product.
    pub(super) fn new(
        kernel: &'a dyn Kernel,
        rows: ArrayView2<'a, f64>,
        roots: Vec<f64>,
        room: u64,
    ) -> Result<(Self, &'static str)> {
        let n = rows.nrows();
        if Kept::<f64>::bytes(n) <= room {
            Ok((KernelOperator::Kept(Kept::new(kernel, rows, &roots)?), "kept in double precision"))
        } else if Kept::<f32>::bytes(n) <= room {
            Ok((KernelOperator::Single(Kept::new(kernel, rows, &roots)?), "kept in single precision"))
        } else {
            Ok((KernelOperator::Made { kernel, rows, roots }, "made again in every step"))
        }
    }

    /// The residual to reach where none is given: a matrix of rounded numbers deserves no better one.
    pub(super) fn tolerance(&self) -> f64 {
        match self {
            KernelOperator::Single(_) => 1e-6,
            _ => 1e-10,
        }
    }
}

impl Operator for KernelOperator<'_> {
    fn dim(&self) -> usize {
        match self {
            KernelOperator::Kept(kept) => kept.order,
            KernelOperator::Single(kept) => kept.order,
            KernelOperator::Made { rows, .. } => rows.nrows(),
        }
    }

    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of rows of the vectors", self.dim(), v.nrows())?;
        let product = match self {
            KernelOperator::Kept(kept) => kept.apply(v),
            KernelOperator::Single(kept) => kept.apply(v),
            KernelOperator::Made { kernel, rows, roots } => {
                let (n, cols) = v.dim();
                let weighted = Array2::from_shape_fn((n, cols), |(i, j)| roots[i] * v[[i, j]]);
                let mut out = Array2::zeros((n, cols));
                let step = strip(n);
                let mut matrix = Array2::zeros((step.min(n), n));
                for start in (0..n).step_by(step) {
                    let own = start..(start + step).min(n);
                    if matrix.nrows() != own.len() {
                        matrix = Array2::zeros((own.len(), n));
                    }
                    kernel_matrix_into(*kernel, rows.slice(s![own.clone(), ..]), *rows, matrix.view_mut())?;
                    let mut product = Array2::zeros((own.len(), cols));
                    matmul_nn(tile(&matrix), tile(&weighted), tile_mut(&mut product))?;
                    for (mut row, root) in product.rows_mut().into_iter().zip(&roots[own.clone()]) {
                        row *= *root;
                    }
                    out.slice_mut(s![own, ..]).assign(&product);
                }
                out
            }
        };
        interrupt::advance(self.dim());
        Ok(product)
    }
}
