//! What faer does for one number type: products and factorisations of windows, always on the calling thread.
//!
//! Threads are shared out above this file, over windows whose shapes follow from the problem alone. So no result depends
//! on how many threads there are.

use super::gemm::lower_update;
use super::gemm::thin::{AdjointProduct, MOST_COLUMNS};
use super::lower::Lower;
use super::tile::{Tile, TileMut};
use super::vectors::Packed;
use super::workspace::Workspace;
use crate::scalar::Scalar;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::matmul_with_conj;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, Conj, MatMut, MatRef, Par};
use num_complex::Complex;
use std::marker::PhantomData;
use std::ops::Range;

/// Terms of a single-precision product that are summed before the sum is added in double precision.
///
/// The relative error of an n-term sum of like signs is then about `2⁻²⁴ · 256 / √n` instead of growing with √n.
const SINGLE_TERMS: usize = 256;

/// A window to read from: any layout, conjugated on the way where asked for.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a, T> {
    // Invariant: all numbers addressed by rows, cols and strides may be read for 'a.
    first: *const T,
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
    conj: Conj,
    memory: PhantomData<&'a T>,
}

#[allow(unsafe_code)]
// SAFETY: a window gives shared access only, like `&[T]`.
unsafe impl<T: Sync> Send for Window<'_, T> {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Window<'_, T> {}

impl<'a, T> Window<'a, T> {
    fn new(first: *const T, rows: usize, cols: usize, stride: usize) -> Self {
        let (row_stride, col_stride) = (stride as isize, 1);
        Window { first, rows, cols, row_stride, col_stride, conj: Conj::No, memory: PhantomData }
    }

    fn mat(&self) -> MatRef<'a, T> {
        #[allow(unsafe_code)]
        // SAFETY: the invariant of `Window`.
        unsafe {
            MatRef::from_raw_parts(self.first, self.rows, self.cols, self.row_stride, self.col_stride)
        }
    }

    /// The columns in `range`.
    fn columns_in(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.cols);
        let first = self.first.wrapping_offset(range.start as isize * self.col_stride);
        Window { first, cols: range.len(), ..self }
    }

    /// The rows in `range`.
    fn rows_in(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.rows);
        let first = self.first.wrapping_offset(range.start as isize * self.row_stride);
        Window { first, rows: range.len(), ..self }
    }

    /// The conjugate transpose.
    pub fn adjoint(self) -> Self {
        Window {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            conj: self.conj.compose(Conj::Yes),
            ..self
        }
    }
}

impl<'a, T> From<Tile<'a, T>> for Window<'a, T> {
    fn from(tile: Tile<'a, T>) -> Self {
        Window::new(tile.as_slice().as_ptr(), tile.rows(), tile.cols(), tile.stride())
    }
}

impl<'a, T> From<&'a TileMut<'_, T>> for Window<'a, T> {
    fn from(tile: &'a TileMut<'_, T>) -> Self {
        Window::new(tile.as_ptr(), tile.rows(), tile.cols(), tile.stride())
    }
}

fn writable<'a, T>(tile: &'a mut TileMut<'_, T>) -> MatMut<'a, T> {
    let (rows, cols, stride) = (tile.rows(), tile.cols(), tile.stride() as isize);
    #[allow(unsafe_code)]
    // SAFETY: the window is borrowed exclusively for 'a and covers exactly these rows and columns.
    unsafe {
        MatMut::from_raw_parts_mut(tile.as_mut_ptr(), rows, cols, stride, 1)
    }
}

/// Products and factorisations of one number type. `ᴴ` is the conjugate transpose.
pub trait Field: Copy {
    /// The double-precision number of the same kind: what sums are kept in.
    type Wide: Scalar<Real = f64>;

    /// Widens exactly.
    fn widen(self) -> Self::Wide;

    /// Rounds once.
    fn narrow(wide: Self::Wide) -> Self;

    /// `out += a b`, summed in double precision; `scratch` may have any length.
    fn add_product(
        mut out: TileMut<'_, Self::Wide>,
        a: Window<'_, Self>,
        b: Window<'_, Self>,
        scratch: &mut Vec<Self>,
    ) {
        let (m, n) = (out.rows(), out.cols());
        scratch.resize(m * n, Self::narrow(Self::Wide::ZERO));
        for start in (0..a.cols).step_by(SINGLE_TERMS) {
            let terms = start..(start + SINGLE_TERMS).min(a.cols);
            let mut part = TileMut::new(&mut scratch[..m * n], m, n);
            Self::product(part.reborrow(), false, 1.0, a.columns_in(terms.clone()), b.rows_in(terms));
            for i in 0..m {
                for (sum, term) in out.row_mut(i).iter_mut().zip(part.row(i)) {
                    *sum += term.widen();
                }
            }
        }
    }

    /// `out += aᴴ b` of blocks with the same rows, summed in double precision; `scratch` may have any length.
    fn add_adjoint_product(
        out: TileMut<'_, Self::Wide>,
        a: Tile<'_, Self>,
        b: Tile<'_, Self>,
        scratch: &mut Vec<Self>,
    ) {
        Self::add_product(out, Window::from(a).adjoint(), b.into(), scratch);
    }

    /// `out += blockᴴ block`.
    fn add_gram(out: &mut Lower<Self::Wide>, block: Tile<'_, Self>, _: &mut Workspace<<Self as Scalar>::Real>)
    where
        Self: Scalar,
    {
        out.add_gram_by_windows(block);
    }

    /// `out = factor · a b`, added to what is there where `keep` is set.
    fn product(out: TileMut<'_, Self>, keep: bool, factor: f64, a: Window<'_, Self>, b: Window<'_, Self>);

    /// Overwrites the lower triangle of `a` with `L`, `a = L Lᴴ`; on failure gives the pivot that is not positive.
    fn factorize(a: TileMut<'_, Self>) -> Result<(), usize>;

    /// `x ← x L⁻ᴴ`.
    fn solve_right(l: Window<'_, Self>, x: TileMut<'_, Self>);

    /// `x ← L⁻¹ x`, or `x ← L⁻ᴴ x`.
    fn solve_left(l: Window<'_, Self>, x: TileMut<'_, Self>, adjoint: bool);
}

/// One number type: its wide one, how to get there and back, and what it does in its own way.
macro_rules! field {
    ($t:ty, $wide:ty, $widen:expr, $narrow:expr, $($own:tt)*) => {
        impl Field for $t {
            type Wide = $wide;

            #[inline(always)]
            fn widen(self) -> $wide {
                $widen(self)
            }

            #[inline(always)]
            fn narrow(wide: $wide) -> $t {
                $narrow(wide)
            }

            fn product(mut out: TileMut<'_, $t>, keep: bool, factor: f64, a: Window<'_, $t>, b: Window<'_, $t>) {
                let accum = if keep { Accum::Add } else { Accum::Replace };
                let factor = <$t>::narrow(factor.into());
                matmul_with_conj(writable(&mut out), accum, a.mat(), a.conj, b.mat(), b.conj, factor, Par::Seq);
            }

            fn factorize(mut a: TileMut<'_, $t>) -> Result<(), usize> {
                let scratch = llt::factor::cholesky_in_place_scratch::<$t>(a.rows(), Par::Seq, Default::default());
                let mut memory = MemBuffer::new(scratch);
                let stack = MemStack::new(&mut memory);
                let done = llt::factor::cholesky_in_place(
                    writable(&mut a),
                    Default::default(),
                    Par::Seq,
                    stack,
                    Default::default(),
                );
                done.map(|_| ()).map_err(|llt::factor::LltError::NonPositivePivot { index }| index)
            }

            fn solve_right(l: Window<'_, $t>, mut x: TileMut<'_, $t>) {
                // X L^H = B is conj(L) X^T = B^T.
                solve_lower_triangular_in_place(l.mat().conjugate(), writable(&mut x).transpose_mut(), Par::Seq);
            }

            fn solve_left(l: Window<'_, $t>, mut x: TileMut<'_, $t>, adjoint: bool) {
                if adjoint {
                    solve_upper_triangular_in_place(l.mat().adjoint(), writable(&mut x), Par::Seq);
                } else {
                    solve_lower_triangular_in_place(l.mat(), writable(&mut x), Par::Seq);
                }
            }

            $($own)*
        }
    };
}

/// Double precision is summed where it goes.
macro_rules! double_sums {
    ($t:ty) => {
        fn add_product(out: TileMut<'_, $t>, a: Window<'_, $t>, b: Window<'_, $t>, _: &mut Vec<$t>) {
            Self::product(out, true, 1.0, a, b);
        }
    };
}

/// Gram matrices of real numbers, and their products with few columns, have kernels of their own; those of complex numbers
/// are made window by window.
macro_rules! real_gram {
    ($t:ty) => {
        fn add_adjoint_product(out: TileMut<'_, f64>, a: Tile<'_, $t>, b: Tile<'_, $t>, scratch: &mut Vec<$t>) {
            if b.cols() <= MOST_COLUMNS {
                <$t>::dispatch(AdjointProduct { out, a, b, terms: SINGLE_TERMS });
            } else {
                Self::add_product(out, Window::from(a).adjoint(), b.into(), scratch);
            }
        }

        fn add_gram(out: &mut Lower<f64>, block: Tile<'_, $t>, work: &mut Workspace<$t>) {
            lower_update(block, out.strips_mut(), work);
        }
    };
}

field!(f64, f64, |x| x, |x| x, double_sums!(f64); real_gram!(f64););
field!(Complex<f64>, Complex<f64>, |z| z, |z| z, double_sums!(Complex<f64>););
field!(f32, f64, f64::from, |wide| wide as f32, real_gram!(f32););
field!(Complex<f32>, Complex<f64>, |z: Complex<f32>| Complex::new(z.re.into(), z.im.into()), |z: Complex<f64>| {
    Complex::new(z.re as f32, z.im as f32)
},);
