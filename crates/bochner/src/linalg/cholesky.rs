use super::field::Window;
use super::lower::{Lower, modulus};
use super::tile::{Tile, TileMut};
use crate::error::{Error, Result, check_dim};
use crate::interrupt::{self, Flag};
use crate::parallel::{self, Parallel};
use crate::scalar::{Real, Scalar};

/// Right-hand sides are solved for in strips of this many columns.
const STRIP: usize = 64;

/// `A = L Lᴴ` of a positive definite matrix, in the memory of `A`.
///
/// Left-looking by panels. Bits do not depend on the number of threads, nor a solution's on its neighbours.
#[derive(Debug, Clone)]
pub struct Cholesky<T> {
    factor: Lower<T>,
    norm_one: f64,
}

/// A factorisation that failed, with the matrix restored to rounding.
#[derive(Debug)]
pub struct Indefinite<T> {
    /// The matrix.
    pub matrix: Lower<T>,
    /// Index of the first pivot that is not positive.
    pub pivot: usize,
    /// Sum of absolute values of the worst column of the matrix.
    pub norm_one: f64,
}

impl<T: Scalar> From<Indefinite<T>> for Error {
    fn from(failed: Indefinite<T>) -> Error {
        Error::not_positive_definite(failed.pivot, failed.suggested_penalty())
    }
}

impl<T: Scalar> Indefinite<T> {
    /// A diagonal shift that rounding cannot undo: `n ε ‖A‖₁`.
    pub fn suggested_penalty(&self) -> f64 {
        let epsilon = <T::Real as num_traits::Float>::epsilon().to_f64();
        let scale = if self.norm_one > 0.0 { self.norm_one } else { 1.0 };
        self.matrix.order() as f64 * epsilon * scale
    }
}

impl<T: Scalar> Cholesky<T> {
    /// Factorises in place.
    ///
    /// # Errors
    /// A pivot that is not positive; the matrix comes back, restored to rounding without having been copied. A job that is to
    /// stop fails at any pivot, and what comes back is unfinished.
    pub fn new(matrix: Lower<T>) -> std::result::Result<Self, Box<Indefinite<T>>> {
        let mut matrix = matrix;
        let norm_one = matrix.norm_one();
        match factorize(&mut matrix) {
            Ok(()) => Ok(Cholesky { factor: matrix, norm_one }),
            Err(pivot) => Err(Box::new(Indefinite { matrix, pivot, norm_one })),
        }
    }

    /// A factor from elsewhere, such as a file, of a matrix with this norm.
    ///
    /// # Errors
    /// Entries that are not finite, or a diagonal that is not positive.
    pub fn from_factor(factor: Lower<T>, norm_one: f64) -> Result<Self> {
        let finite = |v: &T| num_traits::Float::is_finite(v.re()) && num_traits::Float::is_finite(v.im());
        let sound =
            (0..factor.order()).all(|i| factor.row(i).iter().all(finite) && factor.row(i)[i].re() > T::Real::ZERO);
        if !sound {
            return Err(Error::parameter("factor", "finite with a positive diagonal", "something else"));
        }
        Ok(Cholesky { factor, norm_one })
    }

    /// Takes the factorisation back: the matrix, to rounding, in the same memory.
    pub fn into_matrix(self) -> Lower<T> {
        let mut matrix = self.factor;
        let t = matrix.panel_height();
        let mut panels = matrix.panels_mut();
        let all = panels.len();
        if all > 0 {
            restore(&mut panels, t, all);
        }
        matrix
    }

    /// Largest column sum of absolute values of the matrix.
    pub fn norm_one(&self) -> f64 {
        self.norm_one
    }

    /// Number of rows.
    pub fn order(&self) -> usize {
        self.factor.order()
    }

    /// The factor `L`.
    pub fn factor(&self) -> &Lower<T> {
        &self.factor
    }

    /// `ln det A = 2 Σ ln Lⱼⱼ`.
    pub fn log_determinant(&self) -> f64 {
        2.0 * self.factor.diagonal().map(|l| l.re().to_f64().ln()).sum::<f64>()
    }

    /// `x ← A⁻¹ x` for the columns of a row-major window.
    ///
    /// # Errors
    /// A number of rows that is not the order.
    pub fn solve_in_place(&self, x: TileMut<'_, T>) -> Result<()> {
        self.strips(x, |strip| {
            self.forward_from(0, strip.reborrow());
            self.backward(strip.reborrow());
        })
    }

    /// `x ← L⁻¹ x`: with `x = conj(φ)` its squared length is a predictive variance.
    ///
    /// # Errors
    /// A number of rows that is not the order.
    pub fn solve_factor_in_place(&self, x: TileMut<'_, T>) -> Result<()> {
        self.strips(x, |strip| self.forward_from(0, strip.reborrow()))
    }

    /// `x ← L⁻ᴴ x`.
    ///
    /// # Errors
    /// A number of rows that is not the order.
    pub fn solve_adjoint_in_place(&self, x: TileMut<'_, T>) -> Result<()> {
        self.strips(x, |strip| self.backward(strip.reborrow()))
    }

    /// `tr A⁻¹ = Σ |L⁻¹eⱼ|²`, about a third of the work of the factorisation; no inverse is stored.
    pub fn inverse_trace(&self) -> f64 {
        let (n, t) = (self.order(), self.factor.panel_height());
        let stop = Flag::current();
        let parts: Vec<f64> = (0..n).step_by(STRIP).in_parallel().map_init(Vec::new, |buffer, start| {
            if stop.raised() {
                return 0.0;
            }
            // Rows before the panel of the first unit vector are zero and stay so.
            let (first, width) = (start / t, STRIP.min(n - start));
            let (rows, padded) = (n - first * t, width.next_multiple_of(8));
            buffer.clear();
            buffer.resize(rows * padded, T::ZERO);
            for j in 0..width {
                buffer[(start + j - first * t) * padded + j] = T::ONE;
            }
            self.forward_from(first, TileMut::new(buffer, rows, padded));
            buffer.iter().map(|v| v.abs_sq().to_f64()).sum()
        });
        parts.into_iter().sum()
    }

    /// An estimate of `‖A‖₁ ‖A⁻¹‖₁`, seldom more than a factor three too small (Higham 1988, algorithm 4.1).
    pub fn condition(&self) -> f64 {
        let n = self.order();
        if n == 0 {
            return 1.0;
        }
        let size = modulus::<T>;
        let apply = |x: &mut [T]| {
            self.solve_in_place(TileMut::new(x, n, 1)).expect("the vector has the order of the matrix");
        };
        let mut x = vec![T::from_parts(T::Real::from_f64(1.0 / n as f64), T::Real::ZERO); n];
        let (mut estimate, mut last) = (0.0, usize::MAX);
        for _ in 0..5 {
            let mut y = x.clone();
            apply(&mut y);
            let found: f64 = y.iter().map(|&v| size(v)).sum();
            if found <= estimate {
                break;
            }
            estimate = found;
            for v in &mut y {
                let length = size(*v);
                *v = if length > 0.0 { v.scale(T::Real::from_f64(1.0 / length)) } else { T::ONE };
            }
            apply(&mut y);
            let (best, largest) =
                y.iter().enumerate().map(|(i, &v)| (i, size(v))).fold((0, -1.0), |a, b| if b.1 > a.1 { b } else { a });
            let reached: f64 = y.iter().zip(&x).map(|(&a, &b)| (a.conj() * b).re().to_f64()).sum();
            if largest <= reached || best == last {
                break;
            }
            last = best;
            x.fill(T::ZERO);
            x[best] = T::ONE;
        }
        // A second start that the iteration cannot be blind to.
        for (i, v) in x.iter_mut().enumerate() {
            let value = 1.0 + i as f64 / (n.max(2) - 1) as f64;
            *v = T::from_parts(T::Real::from_f64(if i % 2 == 0 { value } else { -value }), T::Real::ZERO);
        }
        apply(&mut x);
        let second = 2.0 * x.iter().map(|&v| size(v)).sum::<f64>() / (3.0 * n as f64);
        self.norm_one * estimate.max(second)
    }

    fn strips(&self, mut x: TileMut<'_, T>, solve: impl Fn(&mut TileMut<'_, T>) + Sync) -> Result<()> {
        let n = self.order();
        check_dim("number of rows of the right-hand side", n, x.rows())?;
        let mut strips = Vec::new();
        while x.cols() > 0 {
            let width = x.cols().min(STRIP);
            let (strip, rest) = x.split_columns_at(width);
            strips.push(strip);
            x = rest;
        }
        strips.in_parallel().for_each_init(Vec::new, |buffer, mut strip| {
            // Strips are widened to whole vector registers: faer rounds a single column differently.
            let width = strip.cols().next_multiple_of(8);
            buffer.clear();
            buffer.resize(n * width, T::ZERO);
            for i in 0..n {
                buffer[i * width..][..strip.cols()].copy_from_slice(strip.row(i));
            }
            solve(&mut TileMut::new(buffer, n, width));
            for i in 0..n {
                let solved = &buffer[i * width..][..strip.cols()];
                strip.row_mut(i).copy_from_slice(solved);
            }
        });
        Ok(())
    }

    /// Forward substitution for right-hand sides that are zero before panel `first`; `x` holds the rows from there on.
    fn forward_from(&self, first: usize, mut x: TileMut<'_, T>) {
        let t = self.factor.panel_height();
        for p in first..self.order().div_ceil(t) {
            let panel = self.factor.panel(p);
            let (solved, rest) = x.reborrow().split_rows_at((p - first) * t);
            let mut here = rest.split_rows_at(panel.rows()).0;
            if p > first {
                let left = panel.columns(first * t..p * t);
                T::product(here.reborrow(), true, -1.0, left.into(), Window::from(&solved));
            }
            T::solve_left(panel.columns(p * t..panel.cols()).into(), here, false);
        }
    }

    fn backward(&self, mut x: TileMut<'_, T>) {
        let t = self.factor.panel_height();
        for p in (0..self.order().div_ceil(t)).rev() {
            let panel = self.factor.panel(p);
            let (above, rest) = x.reborrow().split_rows_at(p * t);
            let mut here = rest.split_rows_at(panel.rows()).0;
            T::solve_left(panel.columns(p * t..panel.cols()).into(), here.reborrow(), true);
            if p > 0 {
                let left: Window<'_, T> = panel.columns(0..p * t).into();
                T::product(above, true, -1.0, left.adjoint(), Window::from(&here));
            }
        }
    }
}

/// Splits panel `i` into what is known before panel column `j` (width `start`) and its window in that column.
fn split<'a, T>(panel: TileMut<'a, T>, start: usize, width: usize) -> (TileMut<'a, T>, TileMut<'a, T>) {
    let (known, rest) = panel.split_columns_at(start);
    (known, rest.split_columns_at(width).0)
}

fn factorize<T: Scalar>(matrix: &mut Lower<T>) -> std::result::Result<(), usize> {
    let t = matrix.panel_height();
    let mut diagonal = Vec::new();
    let mut panels = matrix.panels_mut();
    // Of thousands of rows a single column of panels takes seconds: every panel asks.
    let stop = Flag::current();
    for j in 0..panels.len() {
        if stop.raised() {
            return Err(j * t);
        }
        let (pivot_panel, below) = panels[j..].split_first_mut().expect("j counts panels");
        let width = pivot_panel.rows();
        let (known, mut pivot) = split(pivot_panel.reborrow(), j * t, width);
        if j > 0 {
            let row = Window::from(&known);
            parallel::join(&mut || T::product(pivot.reborrow(), true, -1.0, row, row.adjoint()), &mut || {
                on_each(below, &|panel| {
                    let (known, window) = split(panel, j * t, width);
                    T::product(window, true, -1.0, Window::from(&known), row.adjoint());
                });
            });
            if stop.raised() {
                return Err(j * t);
            }
        }
        copy_out(&pivot, &mut diagonal);
        if let Err(index) = T::factorize(pivot.reborrow()) {
            copy_in(&diagonal, &mut pivot);
            restore(&mut panels, t, j);
            return Err(j * t + index);
        }
        let pivot = Window::from(&pivot);
        on_each(below, &|panel| T::solve_right(pivot, split(panel, j * t, width).1));
        interrupt::advance(width);
    }
    Ok(())
}

/// Takes a factorisation back that failed in panel column `failed`: `A = L Lᴴ` in the columns already done, right to
/// left, so that every product still finds the factors it needs.
fn restore<T: Scalar>(panels: &mut [TileMut<'_, T>], t: usize, failed: usize) {
    let stop = Flag::current();
    for j in (0..=failed.min(panels.len() - 1)).rev() {
        if stop.raised() {
            return;
        }
        let (pivot_panel, below) = panels[j..].split_first_mut().expect("j counts panels");
        let width = pivot_panel.rows();
        let (known, pivot) = split(pivot_panel.reborrow(), j * t, width);
        let mut factor = Vec::new();
        copy_out(&pivot, &mut factor);
        for i in 0..width {
            factor[i * width + i + 1..(i + 1) * width].fill(T::ZERO);
        }
        let row = Window::from(&known);
        let undo = |mut window: TileMut<'_, T>, own: &[T], known: Window<'_, T>| {
            if j < failed {
                let (own, factor) = (Tile::new(own, window.rows(), width), Tile::new(&factor, width, width));
                T::product(window.reborrow(), false, 1.0, own.into(), Window::from(factor).adjoint());
            }
            if j > 0 {
                T::product(window, true, 1.0, known, row.adjoint());
            }
        };
        undo(pivot, &factor, row);
        on_each(below, &|panel| {
            let (known, window) = split(panel, j * t, width);
            let mut own = Vec::new();
            copy_out(&window, &mut own);
            undo(window, &own, Window::from(&known));
        });
    }
}

/// Runs `job` on every panel until it is to stop.
fn on_each<T: Scalar>(panels: &mut [TileMut<'_, T>], job: &(dyn Fn(TileMut<'_, T>) + Sync)) {
    panels.iter_mut().in_parallel().for_each(|panel| job(panel.reborrow()));
}

fn copy_out<T: Copy>(window: &TileMut<'_, T>, buffer: &mut Vec<T>) {
    buffer.clear();
    for i in 0..window.rows() {
        buffer.extend_from_slice(window.row(i));
    }
}

fn copy_in<T: Copy>(buffer: &[T], window: &mut TileMut<'_, T>) {
    let cols = window.cols();
    for i in 0..window.rows() {
        window.row_mut(i).copy_from_slice(&buffer[i * cols..][..cols]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Role, Seed, Stream};
    use num_complex::Complex;

    fn gram<T: Scalar>(n: usize, rows: usize, penalty: f64) -> (Lower<T>, Vec<T>) {
        let mut draw = Stream::new(Seed::new(5), Role::Split, n as u64);
        let mut uniform = || T::Real::from_f64(draw.next_u64() as f64 / u64::MAX as f64 - 0.5);
        let block: Vec<T> = (0..rows * n).map(|_| T::from_parts(uniform(), uniform())).collect();
        let mut lower = Lower::zeros(n).unwrap();
        for i in 0..n {
            for j in 0..=i {
                lower.row_mut(i)[j] = (0..rows).map(|k| block[k * n + i].conj() * block[k * n + j]).sum();
            }
        }
        lower.add_to_diagonal(penalty);
        let x = (0..n * 3).map(|_| T::from_parts(uniform(), uniform())).collect();
        (lower, x)
    }

    fn times<T: Scalar>(a: &Lower<T>, x: &[T], cols: usize) -> Vec<T> {
        let n = a.order();
        let entry = |i: usize, j: usize| if j <= i { a.row(i)[j] } else { a.row(j)[i].conj() };
        let mut out = vec![T::ZERO; n * cols];
        for i in 0..n {
            for c in 0..cols {
                out[i * cols + c] = (0..n).map(|j| entry(i, j) * x[j * cols + c]).sum();
            }
        }
        out
    }

    fn distance<T: Scalar>(a: &[T], b: &[T]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| (a - b).abs_sq().to_f64().sqrt()).fold(0.0, f64::max)
    }

    fn solves_what_it_factorized<T: Scalar>(n: usize, tolerance: f64) {
        let (a, x) = gram::<T>(n, n + 5, 1.0);
        let mut b = times(&a, &x, 3);
        let factor = Cholesky::new(a.clone()).unwrap();
        factor.solve_in_place(TileMut::new(&mut b, n, 3)).unwrap();
        assert!(distance(&b, &x) < tolerance, "n = {n}: {}", distance(&b, &x));
        // L⁻ᴴ L⁻¹ is the inverse too.
        let mut b = times(&a, &x, 3);
        factor.solve_factor_in_place(TileMut::new(&mut b, n, 3)).unwrap();
        factor.solve_adjoint_in_place(TileMut::new(&mut b, n, 3)).unwrap();
        assert!(distance(&b, &x) < tolerance);
    }

    #[test]
    fn every_number_type_is_solved_around_the_panel_sizes() {
        for n in [1, 2, 7, 8, 9, 63, 64, 65, 129, 200] {
            solves_what_it_factorized::<f64>(n, 1e-10);
            solves_what_it_factorized::<Complex<f64>>(n, 1e-10);
            solves_what_it_factorized::<f32>(n, 2e-2);
            solves_what_it_factorized::<Complex<f32>>(n, 2e-2);
        }
    }

    #[test]
    fn a_solution_does_not_depend_on_its_neighbors_nor_on_threads() {
        let n = 200;
        let (a, _) = gram::<f64>(n, n, 0.5);
        let factor = Cholesky::new(a.clone()).unwrap();
        let wide: Vec<f64> = (0..n * 70).map(|k| ((k * 37) % 101) as f64 - 50.0).collect();
        let mut all = wide.clone();
        factor.solve_in_place(TileMut::new(&mut all, n, 70)).unwrap();
        for column in [0, 5, 63, 64, 69] {
            let mut one: Vec<f64> = (0..n).map(|i| wide[i * 70 + column]).collect();
            factor.solve_in_place(TileMut::new(&mut one, n, 1)).unwrap();
            assert!((0..n).all(|i| one[i].to_bits() == all[i * 70 + column].to_bits()), "column {column}");
        }
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let again = pool.install(|| Cholesky::new(a.clone()).unwrap());
            assert!((0..n).all(|i| again.factor.row(i) == factor.factor.row(i)), "{threads} threads");
        }
    }

    #[test]
    fn a_failed_factorization_names_its_pivot_and_gives_the_matrix_back() {
        let n = 200;
        for spoiled in [0, 63, 64, 70, 150, 199] {
            let (mut a, _) = gram::<Complex<f64>>(n, n, 0.5);
            a.row_mut(spoiled)[spoiled] = Complex::new(-1.0, 0.0);
            let failed = Cholesky::new(a.clone()).unwrap_err();
            assert_eq!(failed.pivot, spoiled);
            assert!(failed.suggested_penalty() > 0.0);
            for i in 0..n {
                assert!(distance(failed.matrix.row(i), a.row(i)) < 1e-12, "row {i}");
            }
        }
    }

    #[test]
    fn a_factorization_can_be_taken_back() {
        for n in [0, 1, 64, 130] {
            let (a, _) = gram::<Complex<f64>>(n, n, 0.5);
            let back = Cholesky::new(a.clone()).unwrap().into_matrix();
            assert!((0..n).all(|i| distance(back.row(i), a.row(i)) < 1e-12));
        }
    }

    #[test]
    fn determinant_and_condition_of_a_scaled_reflection_are_known() {
        // A = 2 (I + c u uᵀ) with unit u = 1/√n: eigenvalues 2 and 2 (1 + c).
        let (n, c) = (150, 1e6);
        let mut a = Lower::<f64>::zeros(n).unwrap();
        for i in 0..n {
            a.row_mut(i).fill(2.0 * c / n as f64);
        }
        a.add_to_diagonal(2.0);
        let factor = Cholesky::new(a).unwrap();
        let exact = n as f64 * 2f64.ln() + (1.0 + c).ln();
        assert!((factor.log_determinant() - exact).abs() < 1e-9 * exact);
        // ‖A‖₁ = 2 (1 + c); ‖A⁻¹‖₁ = (1 + (n - 2) c / (n (1 + c)) ...)/2 lies between 1/2 and 1.
        let condition = factor.condition();
        assert!(condition > 0.5 * (1.0 + c) && condition < 2.0 * (1.0 + c), "{condition}");
    }

    #[test]
    fn the_empty_matrix_has_determinant_one() {
        let factor = Cholesky::new(Lower::<f64>::zeros(0).unwrap()).unwrap();
        assert_eq!(factor.log_determinant(), 0.0);
        assert_eq!(factor.condition(), 1.0);
        factor.solve_in_place(TileMut::new(&mut [], 0, 2)).unwrap();
    }

    #[test]
    fn every_long_part_of_a_factorization_can_be_interrupted() {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let flag = Flag { stop: Some(stop), meter: None };
        let matrix = || gram::<f64>(70, 100, 0.5).0;
        let stopped = |part: &dyn Fn(Cholesky<f64>)| {
            let factor = Cholesky::new(matrix()).unwrap();
            interrupt::run(&flag, || {
                part(factor);
                Ok(())
            })
        };
        let parts: [(&str, &dyn Fn(Cholesky<f64>)); 5] = [
            ("a factor", &|_| assert!(Cholesky::new(matrix()).is_err())),
            ("taking it back", &|factor| drop(factor.into_matrix())),
            ("its condition", &|factor| assert!(factor.condition() > 0.0)),
            ("the trace of the inverse", &|factor| assert_eq!(factor.inverse_trace(), 0.0)),
            ("a solution", &|factor| factor.solve_in_place(TileMut::new(&mut [1.0; 140], 70, 2)).unwrap()),
        ];
        for (name, part) in parts {
            assert!(matches!(stopped(part), Err(Error::Interrupted)), "{name}");
        }
    }
}
