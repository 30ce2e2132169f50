//! Buffers lent for the time of one tile, so that no map allocates per row.

use crate::scalar::Real;
use num_complex::Complex;

/// A pool of buffers that belongs to one thread.
///
/// What it lends is garbage: in debug builds it lends NaN, so that a map which reads before it writes fails its tests.
#[derive(Debug, Default)]
pub struct Workspace<R> {
    real: Vec<Vec<R>>,
    complex: Vec<Vec<Complex<R>>>,
    alone: bool,
}

fn take<T: Copy>(pool: &mut Vec<Vec<T>>, len: usize, garbage: T) -> Vec<T> {
    // Best fit: the smallest buffer that is large enough, else the largest one grows.
    let fit = pool.iter().enumerate().filter(|(_, b)| b.capacity() >= len).min_by_key(|(_, b)| b.capacity());
    let index = fit.or_else(|| pool.iter().enumerate().max_by_key(|(_, b)| b.capacity())).map(|(i, _)| i);
    let mut buffer = index.map_or_else(Vec::new, |i| pool.swap_remove(i));
    if cfg!(debug_assertions) {
        buffer.clear();
    }
    buffer.truncate(len);
    buffer.resize(len, garbage);
    buffer
}

impl<R: Real> Workspace<R> {
    /// An empty pool.
    pub fn new() -> Self {
        Workspace { real: Vec::new(), complex: Vec::new(), alone: false }
    }

    /// An empty pool for the only tile of a job: whoever works on it may share the work among threads.
    pub(crate) fn of_the_only_tile() -> Self {
        Workspace { alone: true, ..Self::new() }
    }

    /// Whether no other tile is worked on.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Lends `len` numbers with unspecified values.
    pub fn take(&mut self, len: usize) -> Vec<R> {
        take(&mut self.real, len, R::nan())
    }

    /// Takes a lent buffer back.
    pub fn give(&mut self, buffer: Vec<R>) {
        self.real.push(buffer);
    }

    /// Lends `len` complex numbers with unspecified values.
    pub fn take_complex(&mut self, len: usize) -> Vec<Complex<R>> {
        take(&mut self.complex, len, Complex::new(R::nan(), R::nan()))
    }

    /// Takes a lent complex buffer back.
    pub fn give_complex(&mut self, buffer: Vec<Complex<R>>) {
        self.complex.push(buffer);
    }
}
