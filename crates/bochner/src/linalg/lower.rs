//! Half of a Hermitian matrix.

use super::field::Window;
use super::gemm::TILE_ROWS;
use super::pages::zeroed;
use super::tile::{Tile, TileMut};
use super::workspace::Workspace;
use crate::error::{Result, check_dim};
use crate::parallel::Parallel;
use crate::scalar::{Real, Scalar};
use std::ops::Range;

/// The lower triangle of a Hermitian (or triangular) matrix, in half the memory of the square.
///
/// Rows are stored one after another in panels: a row of panel `p` keeps the first `(p + 1) · t` columns, where `t` rows
/// make a panel. So every window of a panel is an ordinary row-major window and products run at full speed, while the
/// space above the diagonal panel is not stored: at order 8,192 the triangle takes 277 MB in `f64`, as much as the
/// square would in `f32`.
#[derive(Debug, Clone)]
pub struct Lower<T> {
    order: usize,
    panel: usize,
    values: Vec<T>,
}

/// The absolute value, of numbers whose squares are out of range too.
pub(super) fn modulus<T: Scalar>(value: T) -> f64 {
    let (re, im) = (value.re().to_f64(), value.im().to_f64());
    let square = re * re + im * im;
    if !T::IS_COMPLEX {
        re.abs()
    } else if square > f64::MIN_POSITIVE && square < f64::INFINITY {
        square.sqrt()
    } else {
        re.hypot(im)
    }
}

/// Rows of a panel: a function of the order alone, since the bits of products follow from it.
fn panel_rows(order: usize) -> usize {
    // Whole tiles of the kernel that makes Gram matrices; tall panels make factorisations faster, small ones waste less.
    match order {
        0..1024 => TILE_ROWS,
        1024..2048 => 2 * TILE_ROWS,
        _ => 3 * TILE_ROWS,
    }
}

/// Numbers stored before panel `p`.
fn panel_start(panel: usize, p: usize) -> usize {
    panel * panel * (p * (p + 1) / 2)
}

fn stored(order: usize, panel: usize) -> Option<usize> {
    let full = order / panel;
    let squares = panel.checked_mul(panel)?.checked_mul(full.checked_mul(full + 1)? / 2)?;
    squares.checked_add((order - full * panel).checked_mul((full + 1) * panel)?)
}

impl<T: Scalar> Lower<T> {
    /// The zero matrix.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory) when the memory cannot be had.
    pub fn zeros(order: usize) -> Result<Self> {
        let panel = panel_rows(order);
        let remedy = |free: u64| {
            let order = ((2 * free / size_of::<T>() as u64) as f64).sqrt() as usize;
            format!("one of order {} would fit", crate::words::count(order))
        };
        let values = zeroed("the lower triangle of a matrix", stored(order, panel), remedy)?;
        Ok(Lower { order, panel, values })
    }

    /// The lower triangle of a row-major square.
    ///
    /// # Errors
    /// A slice that is not `order · order` long.
    pub fn from_square(square: &[T], order: usize) -> Result<Self> {
        check_dim("number of values of a square matrix", order * order, square.len())?;
        let mut lower = Lower::zeros(order)?;
        for i in 0..order {
            lower.row_mut(i).copy_from_slice(&square[i * order..][..=i]);
        }
        Ok(lower)
    }

    /// Number of rows.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Bytes of a triangle of this order.
    pub fn bytes(order: usize) -> u64 {
        stored(order, panel_rows(order)).map_or(u64::MAX, |len| (len as u64).saturating_mul(size_of::<T>() as u64))
    }

    fn row_start(&self, i: usize) -> usize {
        let p = i / self.panel;
        panel_start(self.panel, p) + (i - p * self.panel) * (p + 1) * self.panel
    }

    /// Row `i` up to and including the diagonal.
    pub fn row(&self, i: usize) -> &[T] {
        &self.values[self.row_start(i)..][..=i]
    }

    /// Row `i` up to and including the diagonal, writable.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        let start = self.row_start(i);
        &mut self.values[start..][..=i]
    }

    /// The diagonal.
    pub fn diagonal(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.order).map(|i| self.row(i)[i])
    }

    /// Adds a real number to every diagonal entry.
    pub fn add_to_diagonal(&mut self, value: f64) {
        for i in 0..self.order {
            self.row_mut(i)[i] += T::from_parts(T::Real::from_f64(value), T::Real::ZERO);
        }
    }

    /// Adds another matrix of the same order.
    ///
    /// # Errors
    /// Orders that differ.
    pub fn add(&mut self, other: &Lower<T>) -> Result<()> {
        self.change(other, |to, from| *to += from)
    }

    /// `self ← own · self + factor · other`, entry by entry; other orders are refused.
    ///
    /// # Errors
    /// Orders that differ.
    pub fn combine(&mut self, own: f64, factor: f64, other: &Lower<T>) -> Result<()> {
        let (own, factor) = (T::Real::from_f64(own), T::Real::from_f64(factor));
        self.change(other, |to, from| *to = to.scale(own) + from.scale(factor))
    }

    fn change(&mut self, other: &Lower<T>, change: impl Fn(&mut T, T) + Sync) -> Result<()> {
        check_dim("order of the other matrix", self.order, other.order)?;
        self.values.chunks_mut(1 << 16).zip(other.values.chunks(1 << 16)).in_parallel().for_each(|(to, from)| {
            to.iter_mut().zip(from).for_each(|(to, from)| change(to, *from));
        });
        Ok(())
    }

    /// Multiplies every entry with a real number.
    pub fn scale(&mut self, factor: f64) {
        let factor = T::Real::from_f64(factor);
        self.values
            .chunks_mut(1 << 16)
            .in_parallel()
            .for_each(|values| values.iter_mut().for_each(|v| *v = v.scale(factor)));
    }

    /// `self -= u vᴴ + v uᴴ`: what moving its rows takes from a Gram matrix.
    ///
    /// # Errors
    /// Vectors whose length is not the order.
    pub fn subtract_pair(&mut self, u: &[T], v: &[T]) -> Result<()> {
        check_dim("length of the first vector", self.order, u.len())?;
        check_dim("length of the second vector", self.order, v.len())?;
        for i in 0..self.order {
            for (entry, (uj, vj)) in self.row_mut(i).iter_mut().zip(u.iter().zip(v)) {
                *entry -= u[i] * vj.conj() + v[i] * uj.conj();
            }
        }
        Ok(())
    }

    /// Largest column sum of absolute values of the Hermitian matrix.
    pub fn norm_one(&self) -> f64 {
        let mut sums = vec![0.0; self.order];
        for i in 0..self.order {
            let row = self.row(i);
            let mut own = 0.0;
            for (sum, value) in sums.iter_mut().zip(&row[..i]) {
                let size = modulus(*value);
                *sum += size;
                own += size;
            }
            sums[i] += own + modulus(row[i]);
        }
        sums.into_iter().fold(0.0, f64::max)
    }

    /// The panels in windows of the height of a kernel's tile.
    pub(super) fn strips_mut(&mut self) -> Vec<TileMut<'_, T>> {
        let mut strips = Vec::new();
        let mut end = 0;
        for mut panel in self.panels_mut() {
            while panel.rows() > 0 {
                let rows = TILE_ROWS.min(panel.rows());
                let (strip, below) = panel.split_rows_at(rows);
                end += rows;
                strips.push(strip.split_columns_at(end).0);
                panel = below;
            }
        }
        strips
    }

    /// `self += blockᴴ block` for a block of feature rows, summed in double precision.
    pub(crate) fn add_gram<F: Scalar<Wide = T>>(&mut self, block: Tile<'_, F>, work: &mut Workspace<F::Real>) {
        assert_eq!(block.cols(), self.order);
        F::add_gram(self, block, work);
    }

    /// [`add_gram`](Self::add_gram) window by window.
    pub(super) fn add_gram_by_windows<F: Scalar<Wide = T>>(&mut self, block: Tile<'_, F>) {
        self.add_products(|rows, columns, window, scratch| {
            let left = Window::from(block.columns(rows)).adjoint();
            F::add_product(window, left, block.columns(columns).into(), scratch);
        });
    }

    /// `self += rows rowsᴴ`: inner products of all pairs of rows, summed in double precision.
    pub(crate) fn add_kernel<F: Scalar<Wide = T>>(&mut self, features: Tile<'_, F>) {
        assert_eq!(features.rows(), self.order);
        self.add_products(|rows, columns, window, scratch| {
            let right = Window::from(features.rows_in(columns)).adjoint();
            F::add_product(window, features.rows_in(rows).into(), right, scratch);
        });
    }

    /// Runs `add` on every window of every panel, in parallel.
    fn add_products<F: Scalar>(
        &mut self,
        add: impl Fn(Range<usize>, Range<usize>, TileMut<'_, T>, &mut Vec<F>) + Sync,
    ) {
        let t = self.panel;
        let mut tasks = Vec::new();
        for (p, mut rest) in self.panels_mut().into_iter().enumerate() {
            let rows = p * t..p * t + rest.rows();
            for q in 0..=p {
                let width = t.min(rest.cols());
                let (window, right) = rest.split_columns_at(width);
                rest = right;
                tasks.push((window, rows.clone(), q * t..q * t + width));
            }
        }
        tasks.in_parallel().for_each_init(Vec::new, |scratch, (window, rows, columns)| {
            add(rows, columns, window, scratch);
        });
    }

    /// The panels: panel `p` has its rows and the columns up to the end of its diagonal window.
    pub(super) fn panels_mut(&mut self) -> Vec<TileMut<'_, T>> {
        let (t, order) = (self.panel, self.order);
        let mut rest = self.values.as_mut_slice();
        (0..order.div_ceil(t))
            .map(|p| {
                let rows = t.min(order - p * t);
                let stride = (p + 1) * t;
                let (panel, after) = std::mem::take(&mut rest).split_at_mut(rows * stride);
                rest = after;
                TileMut::with_stride(panel, rows, p * t + rows, stride)
            })
            .collect()
    }

    /// Panel `p`, to read.
    pub(super) fn panel(&self, p: usize) -> Tile<'_, T> {
        let t = self.panel;
        let rows = t.min(self.order - p * t);
        Tile::with_stride(&self.values[panel_start(t, p)..], rows, p * t + rows, (p + 1) * t)
    }

    /// Rows of a full panel.
    pub(super) fn panel_height(&self) -> usize {
        self.panel
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::Field;
    use super::*;
    use num_complex::Complex;

    #[test]
    fn every_entry_has_one_place_and_the_stated_bytes_hold_them() {
        for order in [0, 1, 7, 8, 63, 64, 65, 130, 1023, 1025, 2050] {
            let mut lower = Lower::<f64>::zeros(order).unwrap();
            assert_eq!(Lower::<f64>::bytes(order), 8 * lower.values.len() as u64);
            for i in 0..order {
                for (j, value) in lower.row_mut(i).iter_mut().enumerate() {
                    *value = (i * order + j) as f64;
                }
            }
            for i in 0..order {
                assert!(lower.row(i).iter().enumerate().all(|(j, &value)| value == (i * order + j) as f64));
            }
            let windows: usize = lower.panels_mut().iter().map(|p| p.rows()).sum();
            assert_eq!(windows, order);
        }
    }

    #[test]
    fn combinations_are_taken_entry_by_entry() {
        let filled = |f: fn(usize) -> f64| {
            let mut lower = Lower::<f64>::zeros(70).unwrap();
            (0..70).for_each(|i| lower.row_mut(i).iter_mut().enumerate().for_each(|(j, v)| *v = f(100 * i + j)));
            lower
        };
        let mut a = filled(|k| k as f64);
        a.combine(2.0, -3.0, &filled(|k| (k % 7) as f64)).unwrap();
        a.scale(0.5);
        assert!((0..70).all(|i| a.row(i).iter().enumerate().all(|(j, &v)| {
            let k = 100 * i + j;
            v == k as f64 - 1.5 * (k % 7) as f64
        })));
        assert!(a.combine(1.0, 1.0, &Lower::zeros(3).unwrap()).is_err());
    }

    /// Small integers: every sum is exact.
    fn entry(i: usize, j: usize) -> Complex<f32> {
        Complex::new(((i * 7 + j * 3) % 11) as f32 - 5.0, ((i + j * j) % 7) as f32 - 3.0)
    }

    fn check_sums(lower: &Lower<Complex<f64>>, exact: impl Fn(usize, usize) -> Complex<f64>) {
        for i in 0..lower.order() {
            assert!(lower.row(i).iter().enumerate().all(|(j, &found)| found == exact(i, j)), "row {i}");
        }
    }

    #[test]
    fn kernels_of_features_are_inner_products_and_grams_sums_of_conjugate_products() {
        let (n, d) = (131, 300);
        let block: Vec<_> = (0..n * d).map(|k| entry(k / d, k % d)).collect();
        let mut kernel = Lower::zeros(n).unwrap();
        kernel.add_kernel(Tile::new(&block, n, d));
        check_sums(&kernel, |i, j| (0..d).map(|k| entry(i, k).widen() * entry(j, k).conj().widen()).sum());
        let (n, d) = (d, n);
        let block: Vec<_> = (0..n * d).map(|k| entry(k / d, k % d)).collect();
        let mut gram = Lower::zeros(d).unwrap();
        gram.add_gram(Tile::new(&block, n, d), &mut Workspace::new());
        check_sums(&gram, |i, j| (0..n).map(|k| entry(k, i).conj().widen() * entry(k, j).widen()).sum());
    }
}
