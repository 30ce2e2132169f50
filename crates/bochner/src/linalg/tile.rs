//! Row-major windows into memory: what an implementer of a map sees instead of array libraries.

use crate::scalar::Scalar;
use ndarray::ArrayViewMut2;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// A read-only window of `rows` × `cols` numbers; consecutive rows are `stride` numbers apart.
#[derive(Debug, Clone, Copy)]
pub struct Tile<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// A writable window of `rows` × `cols` numbers; consecutive rows are `stride` numbers apart.
///
/// Unlike `&mut [T]` it can be split by columns: two halves of the same rows interleave in memory, so the window is a
/// pointer, and only rows of its own columns are ever turned into slices.
#[derive(Debug)]
pub struct TileMut<'a, T> {
    // Invariant: for every i < rows, `first + i * stride .. + cols` lies in memory borrowed exclusively for 'a, and no
    // other live window contains those numbers.
    first: NonNull<T>,
    rows: usize,
    cols: usize,
    stride: usize,
    memory: PhantomData<&'a mut [T]>,
}

/// What either window says of its shape.
macro_rules! shape {
    () => {
        /// Number of rows.
        pub fn rows(&self) -> usize {
            self.rows
        }

        /// Number of columns.
        pub fn cols(&self) -> usize {
            self.cols
        }

        /// Distance between the first numbers of consecutive rows.
        pub fn stride(&self) -> usize {
            self.stride
        }
    };
}

fn check(len: usize, rows: usize, cols: usize, stride: usize) {
    assert!(stride >= cols, "rows of a tile overlap: stride {stride} is less than {cols} columns");
    // Sums that wrap would let a window reach beyond its memory.
    let last = rows.checked_sub(1).map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(cols));
    assert!(last.is_some_and(|last| last <= len), "a tile of {rows} x {cols} does not fit {len} numbers");
}

impl<'a, T> Tile<'a, T> {
    /// A contiguous window.
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self::with_stride(data, rows, cols, cols)
    }

    /// A window whose rows are `stride` numbers apart.
    pub fn with_stride(data: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        check(data.len(), rows, cols, stride);
        Tile { data, rows, cols, stride }
    }

    shape!();

    /// The numbers from the first one of the window on; row `i` starts at `i * stride`.
    pub fn as_slice(&self) -> &'a [T] {
        self.data
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &'a [T] {
        debug_assert!(i < self.rows, "row {i} of {}", self.rows);
        &self.data[i * self.stride..][..self.cols]
    }

    /// The window's columns in `range`.
    pub fn columns(&self, range: Range<usize>) -> Tile<'a, T> {
        assert!(range.end <= self.cols && range.start <= range.end);
        let data = if self.rows == 0 { self.data } else { &self.data[range.start..] };
        Tile::with_stride(data, self.rows, range.len(), self.stride)
    }

    /// The window's rows in `range`.
    pub fn rows_in(&self, range: Range<usize>) -> Tile<'a, T> {
        assert!(range.end <= self.rows && range.start <= range.end);
        let data = if range.is_empty() { &[] } else { &self.data[range.start * self.stride..] };
        Tile { data, rows: range.len(), cols: self.cols, stride: self.stride }
    }
}

#[allow(unsafe_code)]
// SAFETY: a window is an exclusive borrow of its numbers, so it may go wherever `&mut [T]` may.
unsafe impl<T: Send> Send for TileMut<'_, T> {}
#[allow(unsafe_code)]
// SAFETY: as above; a shared window only gives shared access.
unsafe impl<T: Sync> Sync for TileMut<'_, T> {}

#[allow(unsafe_code)]
impl<'a, T> TileMut<'a, T> {
    /// A contiguous window.
    pub fn new(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        Self::with_stride(data, rows, cols, cols)
    }

    /// A window whose rows are `stride` numbers apart.
    pub fn with_stride(data: &'a mut [T], rows: usize, cols: usize, stride: usize) -> Self {
        check(data.len(), rows, cols, stride);
        let first = NonNull::new(data.as_mut_ptr()).expect("slices are never null");
        TileMut { first, rows, cols, stride, memory: PhantomData }
    }

    /// The window of an array whose rows are contiguous each and do not run backwards; any other array comes back.
    ///
    /// Numbers between the rows (of an array that is a range of columns of a larger one) are never touched.
    pub fn from_view(mut view: ArrayViewMut2<'a, T>) -> Result<Self, ArrayViewMut2<'a, T>> {
        let (rows, cols) = view.dim();
        let (row_stride, col_stride) = (view.strides()[0], view.strides()[1]);
        let gapless = cols <= 1 || col_stride == 1;
        let stride = if rows <= 1 { cols } else { usize::try_from(row_stride).unwrap_or(0) };
        if !gapless || stride < cols {
            return Err(view);
        }
        let first = NonNull::new(view.as_mut_ptr()).expect("arrays are never null");
        // The view is an exclusive borrow of exactly these rows for 'a, which is the invariant.
        Ok(TileMut { first, rows, cols, stride, memory: PhantomData })
    }

    shape!();

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[T] {
        assert!(i < self.rows);
        // SAFETY: i < rows, so the invariant covers these numbers; `&self` keeps writers of this window away.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr().add(i * self.stride), self.cols) }
    }

    /// The first number, for code that addresses rows of this window by itself.
    pub(crate) fn as_ptr(&self) -> *const T {
        self.first.as_ptr()
    }

    /// The first number, writable.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.first.as_ptr()
    }

    /// Row `i`, writable.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.rows);
        // SAFETY: i < rows, so the invariant covers these numbers; `&mut self` makes the slice the only access.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr().add(i * self.stride), self.cols) }
    }

    /// The same window for a shorter time.
    pub fn reborrow(&mut self) -> TileMut<'_, T> {
        TileMut { memory: PhantomData, ..*self }
    }

    /// The window's columns in `range`.
    pub fn columns_mut(&mut self, range: Range<usize>) -> TileMut<'_, T> {
        assert!(range.start <= range.end);
        self.reborrow().split_columns_at(range.end).0.split_columns_at(range.start).1
    }

    /// The window's rows in `range`.
    pub fn rows_mut(&mut self, range: Range<usize>) -> TileMut<'_, T> {
        assert!(range.start <= range.end);
        self.reborrow().split_rows_at(range.end).0.split_rows_at(range.start).1
    }

    /// Two windows: rows before `at` and rows from `at` on, as for slices.
    pub fn split_rows_at(self, at: usize) -> (TileMut<'a, T>, TileMut<'a, T>) {
        assert!(at <= self.rows, "row {at} of {}", self.rows);
        // SAFETY: row `at` is inside the window; past its last row the pointer stays where it is.
        let second = if at < self.rows { unsafe { self.first.add(at * self.stride) } } else { self.first };
        (TileMut { rows: at, ..self }, TileMut { first: second, rows: self.rows - at, ..self })
    }

    /// Two windows: columns before `at` and columns from `at` on.
    pub fn split_columns_at(self, at: usize) -> (TileMut<'a, T>, TileMut<'a, T>) {
        assert!(at <= self.cols, "column {at} of {}", self.cols);
        // SAFETY: number `at` of the first row is inside the window or one past it; an empty window does not move.
        let second = if self.rows > 0 { unsafe { self.first.add(at) } } else { self.first };
        (TileMut { cols: at, ..self }, TileMut { first: second, cols: self.cols - at, ..self })
    }
}

/// Where a row has its first NaN or infinity.
///
/// 0 · v is NaN for both and 0 otherwise; eight sums let the compiler use vector registers.
pub(crate) fn first_not_finite<T: Scalar>(row: &[T]) -> Option<usize> {
    let mut sums = [T::ZERO; 8];
    let chunks = row.chunks_exact(8);
    let tail: T = chunks.remainder().iter().map(|v| v.scale(T::Real::ZERO)).sum();
    for chunk in chunks {
        for (s, v) in sums.iter_mut().zip(chunk) {
            *s += v.scale(T::Real::ZERO);
        }
    }
    let finite = |v: T| num_traits::Float::is_finite(v.re()) && num_traits::Float::is_finite(v.im());
    if finite(tail) && sums.iter().all(|&s| finite(s)) {
        return None;
    }
    row.iter().position(|&v| !finite(v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_split_by_rows_and_columns_cover_every_number_once() {
        let mut data = vec![0; 5 * 7];
        let tile = TileMut::with_stride(&mut data, 5, 6, 7);
        let (mut top, bottom) = tile.split_rows_at(2);
        let (mut left, mut right) = bottom.split_columns_at(4);
        for i in 0..2 {
            top.row_mut(i).fill(1);
        }
        for i in 0..3 {
            left.row_mut(i).fill(2);
            right.row_mut(i).fill(3);
        }
        top.columns_mut(1..3).rows_mut(1..2).row_mut(0).fill(4);
        let expected = [
            [1, 1, 1, 1, 1, 1, 0],
            [1, 4, 4, 1, 1, 1, 0],
            [2, 2, 2, 2, 3, 3, 0],
            [2, 2, 2, 2, 3, 3, 0],
            [2, 2, 2, 2, 3, 3, 0],
        ];
        assert_eq!(data, expected.concat());
    }

    #[test]
    fn arrays_with_contiguous_rows_become_windows() {
        let mut array = ndarray::Array2::<i32>::zeros((4, 6));
        let (left, mut right) = array.view_mut().split_at(ndarray::Axis(1), 2);
        let mut tile = TileMut::from_view(left).expect("rows are contiguous");
        for i in 0..4 {
            tile.row_mut(i).fill(1);
        }
        right.fill(2);
        assert_eq!(array.row(3).to_vec(), [1, 1, 2, 2, 2, 2]);
        assert!(TileMut::from_view(array.slice_mut(ndarray::s![..;-1, ..])).is_err());
        assert!(TileMut::from_view(array.slice_mut(ndarray::s![.., ..;2])).is_err());
        assert!(TileMut::from_view(array.view_mut().reversed_axes()).is_err());
        assert_eq!(TileMut::from_view(array.slice_mut(ndarray::s![1..2;-1, ..])).expect("one row").stride(), 6);
        assert_eq!(TileMut::from_view(array.slice_mut(ndarray::s![..;2, 1..5])).expect("every other row").stride(), 12);
    }

    #[test]
    fn empty_windows_are_allowed() {
        let mut data: Vec<f32> = Vec::new();
        let tile = TileMut::new(&mut data, 0, 3);
        let (a, b) = tile.split_columns_at(3);
        assert_eq!((a.rows(), b.cols()), (0, 0));
        assert_eq!(Tile::<f32>::new(&[], 0, 3).columns(1..2).cols(), 1);
    }

    #[test]
    fn windows_whose_size_wraps_are_refused() {
        // (2^60) * 16 is 0 in 64 bits, and eight columns would seem to fit.
        type Shape = (usize, usize, usize);
        let shapes: [Shape; 4] =
            [((1 << 60) + 1, 8, 16), (2, 1, usize::MAX), (usize::MAX, 8, 8), (3, 8, (usize::MAX / 2) + 1)];
        for (rows, cols, stride) in shapes {
            let writable = || TileMut::with_stride(&mut [0.0; 8], rows, cols, stride).rows();
            assert!(std::panic::catch_unwind(writable).is_err(), "{rows} x {cols}, {stride} apart");
            let readable = || Tile::with_stride(&[0.0; 8], rows, cols, stride).rows();
            assert!(std::panic::catch_unwind(readable).is_err(), "{rows} x {cols}, {stride} apart");
        }
        assert_eq!(TileMut::with_stride(&mut [0.0; 8], 1, 8, usize::MAX).row(0).len(), 8);
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn windows_larger_than_their_memory_are_refused() {
        let _ = TileMut::new(&mut [0.0; 5], 2, 3);
    }
}
