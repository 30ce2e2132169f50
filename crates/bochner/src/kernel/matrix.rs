use super::Kernel;
use super::products::{Panel, map_products};
use crate::error::{Error, Result, check_dim};
use crate::linalg::zeroed_matrix;
use crate::memory::in_blocks;
use crate::parallel::Parallel;
use crate::rows::check_finite;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Squared distances below this fraction of `|x|² + |y|²` are computed again from the coordinates: the difference of
/// products has lost ten bits there, so every distance keeps a relative error of a few 1e-13.
const CANCELLED: f64 = 1.0 / 1024.0;

/// `k(xᵢ, yⱼ)` for all rows of `x` and `y`.
///
/// Kernels of inner products or distances cost one matrix product in `f64`, whatever the precision of the rows; equal
/// rows have distance exactly 0. Bits do not depend on the number of threads.
///
/// # Errors
/// Rows of different lengths, NaN or infinities, and rows so large that a value is no number.
///
/// ```
/// use bochner::kernel::{Gaussian, kernel_matrix};
/// use ndarray::array;
/// let x = array![[0.0, 0.0], [3.0, 4.0]];
/// let k = kernel_matrix(&Gaussian::new(5.0)?, x.view(), x.view())?;
/// assert_eq!((k[[0, 0]], k[[1, 1]]), (1.0, 1.0));
/// assert!((k[[0, 1]] - (-0.5f64).exp()).abs() < 1e-15);
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn kernel_matrix<R: Real>(kernel: &dyn Kernel, x: ArrayView2<'_, R>, y: ArrayView2<'_, R>) -> Result<Array2<R>> {
    let mut out = zeroed_matrix("a kernel matrix", (x.nrows(), y.nrows()), in_blocks)?;
    kernel_matrix_into(kernel, x, y, out.view_mut())?;
    Ok(out)
}

/// [`kernel_matrix`] into the caller's memory.
///
/// # Errors
/// As [`kernel_matrix`], and an output of another shape.
pub fn kernel_matrix_into<R: Real>(
    kernel: &dyn Kernel,
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    mut out: ArrayViewMut2<'_, R>,
) -> Result<()> {
    // The first row of x with a value that is no number, or beyond those of the output.
    let fault = AtomicUsize::new(usize::MAX);
    let most = Real::to_f64(R::max_value());
    let look = |row: usize, values: &[f64]| {
        // True of no NaN either.
        if !values.iter().fold(true, |fine, value| fine & (value.abs() <= most)) {
            fault.fetch_min(row, Ordering::Relaxed);
        }
    };
    if kernel.of_distance_sq(1.0).is_some() {
        map_products(x, y, false, out.view_mut(), |panel| {
            to_distances(panel, x, y);
            kernel.map_distances_sq(panel.dots);
            look(panel.row, panel.dots);
        })?;
        return check_values(x, y, out.view(), fault.into_inner());
    }
    if kernel.of_products(1.0, 1.0, 1.0).is_some() {
        map_products(x, y, false, out.view_mut(), |panel| {
            kernel.map_products(panel.dots, panel.x_norm_sq, panel.y_norms_sq);
            look(panel.row, panel.dots);
        })?;
        return check_values(x, y, out.view(), fault.into_inner());
    }
    check_dim("number of columns of y", x.ncols(), y.ncols())?;
    check_dim("number of rows of the output", x.nrows(), out.nrows())?;
    check_dim("number of columns of the output", y.nrows(), out.ncols())?;
    check_finite("x", x, 0)?;
    check_finite("y", y, 0)?;
    let wide = y.mapv(Real::to_f64).as_standard_layout().into_owned();
    let job = |(i, (x, mut out)): (usize, (ndarray::ArrayView1<'_, R>, ndarray::ArrayViewMut1<'_, R>))| {
        let x: Vec<f64> = x.iter().map(|&v| Real::to_f64(v)).collect();
        for (to, y) in out.iter_mut().zip(wide.axis_iter(Axis(0))) {
            let value = kernel.evaluate(&x, y.to_slice().expect("standard layout"));
            look(i, &[value]);
            *to = R::from_f64(value);
        }
    };
    x.axis_iter(Axis(0)).zip(out.axis_iter_mut(Axis(0))).enumerate().in_parallel().for_each(job);
    check_values(x, y, out.view(), fault.into_inner())
}

/// Refuses a matrix in which row `faulty` of `x`, if there is one, has a value that is no number: of the two rows it comes
/// from, the one with the larger entry is named.
fn check_values<R: Real>(
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    out: ArrayView2<'_, R>,
    faulty: usize,
) -> Result<()> {
    if faulty >= x.nrows() {
        return Ok(());
    }
    let column = out.row(faulty).iter().position(|v| !num_traits::Float::is_finite(*v)).unwrap_or(0);
    let largest = |row: ArrayView1<'_, R>| row.iter().fold(0.0f64, |a, v| a.max(Real::to_f64(*v).abs()));
    if column < y.nrows() && largest(y.row(column)) > largest(x.row(faulty)) {
        let found = too_large("it", column, y.row(column));
        return Err(Error::parameter("y", "rows that are small enough for this kernel", found));
    }
    Err(too_large("this kernel", faulty, x.row(faulty)))
}

fn too_large<R: Real>(what: &'static str, index: usize, row: ArrayView1<'_, R>) -> Error {
    Error::too_large(what, index, row.iter().map(|v| Real::to_f64(*v)), R::NAME)
}

/// Replaces `⟨x, yⱼ⟩` by `|x − yⱼ|²`.
fn to_distances<R: Real>(panel: &mut Panel<'_>, x: ArrayView2<'_, R>, y: ArrayView2<'_, R>) {
    for (j, (entry, &y_norm_sq)) in panel.dots.iter_mut().zip(panel.y_norms_sq).enumerate() {
        let sum = panel.x_norm_sq + y_norm_sq;
        let distance_sq = sum - 2.0 * *entry;
        // Also true of NaN, which squares beyond the largest number leave behind.
        *entry = if distance_sq > CANCELLED * sum && distance_sq < f64::INFINITY {
            distance_sq
        } else {
            let difference = |(&a, &b): (&R, &R)| Real::to_f64(a) - Real::to_f64(b);
            x.row(panel.row).iter().zip(y.row(panel.first + j)).map(difference).map(|d| d * d).sum()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, Polynomial};
    use ndarray::{Array2, s};

    fn rows(n: usize, d: usize, phase: f64) -> Array2<f64> {
        Array2::from_shape_fn((n, d), |(i, j)| ((i * 31 + j * 7) as f64 * 0.77 + phase).sin())
    }

    /// A kernel that neither products nor distances determine.
    #[derive(Debug)]
    struct Overlap;
    impl Kernel for Overlap {
        fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
            x.iter().zip(y).map(|(a, b)| a.abs().min(b.abs())).sum()
        }
    }

    #[test]
    fn matrices_agree_with_single_evaluations() {
        let (x, y) = (rows(133, 5, 0.1), rows(1031, 5, 0.4));
        let kernels: [&dyn Kernel; 3] =
            [&Gaussian::new(0.8).unwrap(), &Polynomial::new(3, 0.5, 1.0).unwrap(), &Overlap];
        for kernel in kernels {
            let all = kernel_matrix(kernel, x.view(), y.view()).unwrap();
            for (i, j) in [(0, 0), (127, 1023), (128, 1024), (132, 1030), (40, 500)] {
                let exact = kernel.evaluate(x.row(i).as_slice().unwrap(), y.row(j).as_slice().unwrap());
                assert!((all[[i, j]] - exact).abs() <= 1e-13 * exact.abs(), "{kernel:?}");
                let single = kernel_matrix(kernel, x.slice(s![i..=i, ..]), y.slice(s![j..=j, ..])).unwrap();
                assert_eq!(single[[0, 0]], all[[i, j]]);
            }
        }
    }

    #[test]
    fn entries_do_not_depend_on_the_rows_around_them() {
        for d in [1, 2, 3, 8, 17, 64, 100, 255, 300, 700] {
            let (x, y) = (rows(150, d, 0.1), rows(140, d, 0.4));
            let kernel = Polynomial::homogeneous(1);
            let all = kernel_matrix(&kernel, x.view(), y.view()).unwrap();
            for (i, m) in [(0, 1), (3, 5), (20, 9), (100, 33), (10, 140)] {
                let part = kernel_matrix(&kernel, x.slice(s![i..i + m.min(50), ..]), y.slice(s![..m, ..])).unwrap();
                assert_eq!(part, all.slice(s![i..i + m.min(50), ..m]), "{d} columns, {m} rows from {i}");
            }
        }
    }

    #[test]
    fn bits_do_not_depend_on_threads_or_layout() {
        let (x, y) = (rows(300, 6, 0.1), rows(280, 6, 0.4));
        let kernel = Gaussian::new(0.8).unwrap();
        let expected = kernel_matrix(&kernel, x.view(), y.view()).unwrap();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| kernel_matrix(&kernel, x.view(), y.view()).unwrap()), expected);
            // Few rows against many are shared by panels of the many.
            let (few, many) = (x.slice(s![..9, ..]), rows(9000, 6, 0.4));
            let wide = pool.install(|| kernel_matrix(&kernel, few, many.view()).unwrap());
            assert_eq!(wide.slice(s![.., ..280]), expected.slice(s![..9, ..]));
        }
        let mut columns = Array2::zeros((280, 300));
        let flipped = x.t().as_standard_layout().into_owned();
        kernel_matrix_into(&kernel, flipped.t(), y.view(), columns.view_mut().reversed_axes()).unwrap();
        assert_eq!(columns.t(), expected);
    }

    #[test]
    fn equal_rows_have_distance_zero_and_close_rows_keep_their_digits() {
        let mut x = rows(40, 7, 0.0) + 1e4;
        let base = x.row(0).to_owned();
        x.row_mut(1).assign(&base);
        x.row_mut(2).assign(&base);
        x[[2, 3]] += 1e-6;
        let k = kernel_matrix(&Gaussian::new(1e-6).unwrap(), x.view(), x.view()).unwrap();
        assert!((0..40).all(|i| k[[i, i]] == 1.0));
        assert_eq!(k[[0, 1]], 1.0);
        let step = x[[2, 3]] - base[3];
        assert!((k[[0, 2]] - (-0.5 * (step / 1e-6).powi(2)).exp()).abs() < 1e-14);
        assert_eq!(k, k.t());
    }

    #[test]
    fn single_precision_rows_are_widened_before_they_are_multiplied() {
        let x = rows(20, 50, 0.2).mapv(|v| (v + 30.0) as f32);
        let k = kernel_matrix(&Gaussian::new(1.5).unwrap(), x.view(), x.view()).unwrap();
        let wide = x.mapv(f64::from);
        let exact = kernel_matrix(&Gaussian::new(1.5).unwrap(), wide.view(), wide.view()).unwrap();
        assert_eq!(k, exact.mapv(|v| v as f32));
    }

    #[test]
    fn huge_rows_are_far_apart_and_not_equal() {
        let x = ndarray::array![[1e200, 0.0], [-1e200, 1.0]];
        let k = kernel_matrix(&Gaussian::new(1.0).unwrap(), x.view(), x.view()).unwrap();
        assert_eq!(k, ndarray::array![[1.0, 0.0], [0.0, 1.0]]);
    }

    #[test]
    fn empty_sets_and_wrong_shapes_are_handled() {
        let kernel = Gaussian::new(1.0).unwrap();
        let none = Array2::<f64>::zeros((0, 3));
        assert_eq!(kernel_matrix(&kernel, none.view(), rows(4, 3, 0.0).view()).unwrap().dim(), (0, 4));
        let point = Array2::<f64>::zeros((2, 0));
        assert_eq!(
            kernel_matrix(&kernel, point.view(), point.view()).unwrap(),
            ndarray::array![[1.0, 1.0], [1.0, 1.0]]
        );
        assert!(kernel_matrix(&kernel, rows(4, 2, 0.0).view(), rows(4, 3, 0.0).view()).is_err());
        assert!(kernel_matrix(&Overlap, rows(4, 2, 0.0).view(), rows(4, 3, 0.0).view()).is_err());
        assert!(kernel_matrix(&kernel, ndarray::array![[f64::NAN]].view(), ndarray::array![[1.0]].view()).is_err());
    }
}
