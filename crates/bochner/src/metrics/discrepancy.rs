use crate::error::{Error, Result, check_count, check_dim};
use crate::kernel::{Kernel, Polynomial, kernel_matrix};
use crate::random::{Role, Seed, Stream};
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2, Axis};
use num_complex::Complex;

/// Rows of a kernel matrix held at a time.
const BLOCK: usize = 512;

fn check_pairs(name: &'static str, rows: usize) -> Result<()> {
    if rows >= 2 { Ok(()) } else { Err(Error::parameter(name, "at least two rows", rows)) }
}

/// Sum of `k(xᵢ, yⱼ)`, without the diagonal where asked.
fn kernel_sum<R: Real>(kernel: &dyn Kernel, x: ArrayView2<'_, R>, y: ArrayView2<'_, R>, diagonal: bool) -> Result<f64> {
    let y = y.mapv(Real::to_f64);
    let mut sum = 0.0;
    for (block, x) in x.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
        let k = kernel_matrix(kernel, x.mapv(Real::to_f64).view(), y.view())?;
        for (i, row) in k.rows().into_iter().enumerate() {
            let skip = if diagonal { usize::MAX } else { block * BLOCK + i };
            sum += row.iter().enumerate().filter(|(j, _)| *j != skip).map(|(_, k)| k).sum::<f64>();
        }
    }
    Ok(sum)
}

/// Unbiased estimate of the squared maximum mean discrepancy of two samples (Gretton et al. 2012, Lemma 6); may be
/// negative. Memory is one block of kernel rows.
///
/// # Errors
/// Fewer than two rows in either sample, rows of different lengths, NaN or infinities.
pub fn mmd2<R: Real>(kernel: &dyn Kernel, x: ArrayView2<'_, R>, y: ArrayView2<'_, R>) -> Result<f64> {
    check_pairs("x", x.nrows())?;
    check_pairs("y", y.nrows())?;
    check_dim("number of columns of y", x.ncols(), y.ncols())?;
    let (n, m) = (x.nrows() as f64, y.nrows() as f64);
    let within_x = kernel_sum(kernel, x, x, false)? / (n * (n - 1.0));
    let within_y = kernel_sum(kernel, y, y, false)? / (m * (m - 1.0));
    Ok(within_x + within_y - 2.0 * kernel_sum(kernel, x, y, true)? / (n * m))
}

/// What [`mmd2_from_features`] needs of a sample, gathered block by block: the sum of its features and of their squared
/// norms.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureSums {
    sum: Vec<Complex<f64>>,
    norms_sq: f64,
    count: usize,
}

impl FeatureSums {
    /// No rows yet, of `dim` features.
    pub fn new(dim: usize) -> Self {
        FeatureSums { sum: vec![Complex::ZERO; dim], norms_sq: 0.0, count: 0 }
    }

    /// Adds a block of feature rows.
    ///
    /// # Errors
    /// Another number of features.
    pub fn add<S: Scalar>(&mut self, features: ArrayView2<'_, S>) -> Result<()> {
        check_dim("number of features", self.sum.len(), features.ncols())?;
        for row in features.rows() {
            let mut norm_sq = 0.0;
            for (sum, z) in self.sum.iter_mut().zip(row) {
                let z = Complex::new(Real::to_f64(z.re()), Real::to_f64(z.im()));
                *sum += z;
                norm_sq += z.norm_sqr();
            }
            self.norms_sq += norm_sq;
            self.count += 1;
        }
        Ok(())
    }

    /// Rows so far.
    pub fn count(&self) -> usize {
        self.count
    }

    fn norm_sq(&self) -> f64 {
        self.sum.iter().map(|z| z.norm_sqr()).sum()
    }
}

/// [`mmd2`] under the kernel of a feature map, in time linear in the rows:
/// `(|s_X|² − Σ|φ(xᵢ)|²)/n(n−1) + (|s_Y|² − Σ|φ(yⱼ)|²)/m(m−1) − 2 Re⟨s_X, s_Y⟩/nm`.
///
/// # Errors
/// Fewer than two rows in either sample, or different numbers of features.
pub fn mmd2_from_features(x: &FeatureSums, y: &FeatureSums) -> Result<f64> {
    check_pairs("x", x.count)?;
    check_pairs("y", y.count)?;
    check_dim("number of features of y", x.sum.len(), y.sum.len())?;
    let (n, m) = (x.count as f64, y.count as f64);
    let cross: f64 = x.sum.iter().zip(&y.sum).map(|(a, b)| (a * b.conj()).re).sum();
    Ok((x.norm_sq() - x.norms_sq) / (n * (n - 1.0)) + (y.norm_sq() - y.norms_sq) / (m * (m - 1.0))
        - 2.0 * cross / (n * m))
}

/// A kernel inception distance over random subsets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kid {
    /// Mean over subsets.
    pub mean: f64,
    /// Standard deviation over subsets; 0 for a single one.
    pub std: f64,
}

/// Kernel inception distance: [`mmd2`] under `(⟨x, y⟩/d + 1)³` on embedding vectors (Bińkowski et al. 2018), averaged over
/// `subsets` pairs of random subsets of `subset_rows` rows each, drawn without replacement.
///
/// The mean over all rows at once is `mmd2(&Polynomial::new(3, 1/d, 1)?, x, y)`.
///
/// # Errors
/// No subsets, subsets of fewer than two rows or of more rows than there are, rows of different lengths, NaN or
/// infinities.
pub fn kid<R: Real>(
    x: ArrayView2<'_, R>,
    y: ArrayView2<'_, R>,
    subsets: usize,
    subset_rows: usize,
    seed: Seed,
) -> Result<Kid> {
    check_count("subsets", subsets)?;
    check_pairs("subset_rows", subset_rows)?;
    check_count("number of columns of x", x.ncols())?;
    if subset_rows > x.nrows().min(y.nrows()) {
        return Err(Error::parameter("subset_rows", "at most the number of rows of either sample", subset_rows));
    }
    let kernel = Polynomial::new(3, 1.0 / x.ncols() as f64, 1.0)?;
    let values = (0..subsets as u64)
        .map(|index| {
            let choose = |rows: ArrayView2<'_, R>, side: u64| {
                let mut draw = Stream::new(seed, Role::Split, 2 * index + side);
                sample(&mut draw, rows, subset_rows)
            };
            let (x, y) = (choose(x, 0), choose(y, 1));
            mmd2(&kernel, x.view(), y.view())
        })
        .collect::<Result<Vec<f64>>>()?;
    let mean = values.iter().sum::<f64>() / subsets as f64;
    let spread: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    Ok(Kid { mean, std: if subsets > 1 { (spread / (subsets - 1) as f64).sqrt() } else { 0.0 } })
}

fn sample<R: Real>(draw: &mut Stream, rows: ArrayView2<'_, R>, count: usize) -> Array2<R> {
    let mut order: Vec<usize> = (0..rows.nrows()).collect();
    for i in 0..count {
        let j = i + draw.below((order.len() - i) as u64) as usize;
        order.swap(i, j);
    }
    rows.select(Axis(0), &order[..count])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Gaussian;
    use ndarray::{array, s};

    fn rows(n: usize, shift: f64) -> Array2<f64> {
        Array2::from_shape_fn((n, 2), |(i, j)| ((i * 5 + j * 3) as f64 * 0.7).sin() + shift)
    }

    #[test]
    fn discrepancies_match_their_double_sums() {
        let (x, y) = (rows(7, 0.0), rows(5, 0.4));
        let kernel = Gaussian::new(0.9).unwrap();
        let k = |a: ndarray::ArrayView1<'_, f64>, b: ndarray::ArrayView1<'_, f64>| {
            kernel.evaluate(a.as_slice().unwrap(), b.as_slice().unwrap())
        };
        let mut sums = [0.0; 3];
        for i in 0..7 {
            for j in 0..7 {
                sums[0] += if i == j { 0.0 } else { k(x.row(i), x.row(j)) / 42.0 };
            }
            for j in 0..5 {
                sums[2] += k(x.row(i), y.row(j)) / 35.0;
            }
        }
        for i in 0..5 {
            for j in 0..5 {
                sums[1] += if i == j { 0.0 } else { k(y.row(i), y.row(j)) / 20.0 };
            }
        }
        let found = mmd2(&kernel, x.view(), y.view()).unwrap();
        assert!((found - (sums[0] + sums[1] - 2.0 * sums[2])).abs() < 1e-14);
        assert!(mmd2(&kernel, x.slice(s![..1, ..]), y.view()).is_err());
        assert!(mmd2(&kernel, x.view(), array![[1.0], [2.0]].view()).is_err());
    }

    #[test]
    fn blocks_of_rows_leave_out_the_whole_diagonal() {
        let x = rows(BLOCK + 3, 0.0);
        let kernel = Gaussian::new(1e-9).unwrap();
        let repeated = (0..x.nrows())
            .flat_map(|i| (0..x.nrows()).map(move |j| (i, j)))
            .filter(|&(i, j)| i != j && x.row(i) == x.row(j))
            .count();
        assert_eq!(kernel_sum(&kernel, x.view(), x.view(), false).unwrap(), repeated as f64);
    }

    #[test]
    fn features_of_a_kernel_give_its_discrepancy() {
        // ⟨x, y⟩² is the kernel of the features (x₁², √2 x₁x₂, x₂²); a phase on every row of features changes nothing.
        let map = |x: &Array2<f64>| {
            let root = std::f64::consts::SQRT_2;
            Array2::from_shape_fn((x.nrows(), 3), |(i, j)| {
                let (a, b) = (x[[i, 0]], x[[i, 1]]);
                Complex::new(0.6, 0.8) * [a * a, root * a * b, b * b][j]
            })
        };
        let (x, y) = (rows(6, 0.1), rows(9, -0.3));
        let sums = |x: &Array2<f64>| {
            let mut sums = FeatureSums::new(3);
            let features = map(x);
            sums.add(features.slice(s![..2, ..])).unwrap();
            sums.add(features.slice(s![2.., ..])).unwrap();
            sums
        };
        let exact = mmd2(&Polynomial::homogeneous(2), x.view(), y.view()).unwrap();
        let found = mmd2_from_features(&sums(&x), &sums(&y)).unwrap();
        assert!((found - exact).abs() < 1e-13, "{found} {exact}");
        assert!(mmd2_from_features(&FeatureSums::new(3), &sums(&y)).is_err());
        assert!(FeatureSums::new(2).add(map(&x).view()).is_err());
    }

    #[test]
    fn distances_over_subsets_average_to_the_distance_over_all_rows() {
        let (x, y) = (rows(6, 0.0), rows(6, 0.5));
        let kernel = Polynomial::new(3, 0.5, 1.0).unwrap();
        let all = mmd2(&kernel, x.view(), y.view()).unwrap();
        let once = kid(x.view(), y.view(), 1, 6, Seed::new(1)).unwrap();
        assert!((once.mean - all).abs() < 1e-12 && once.std == 0.0);
        let subsets = 4000;
        let many = kid(x.view(), y.view(), subsets, 3, Seed::new(2)).unwrap();
        // Each subset's estimate is unbiased for the whole; 5.2 standard errors have probability 1e-7 two-sided.
        assert!((many.mean - all).abs() <= 5.2 * many.std / (subsets as f64).sqrt(), "{many:?} {all}");
        assert_eq!(many, kid(x.view(), y.view(), subsets, 3, Seed::new(2)).unwrap());
        assert!(kid(x.view(), y.view(), 3, 7, Seed::new(2)).is_err());
        assert!(kid(x.view(), y.view(), 0, 3, Seed::new(2)).is_err());
    }
}
