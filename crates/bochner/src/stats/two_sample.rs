use super::sums::{Block, SampleSums, Units};
use super::{Estimate, columns_in_groups, half_width, spread_of_groups};
use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::FeatureMap;
use crate::interrupt;
use crate::kernel::{Kernel, kernel_matrix};
use crate::linalg::gemm::{matmul_nn, matmul_nt};
use crate::linalg::{Tile, TileMut};
use crate::memory::filled;
use crate::random::{Role, Seed, Stream};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, s};

/// Blocks of both samples under an exact kernel, at most.
const EXACT_BLOCKS: usize = 2048;

/// Rows of a kernel matrix held at a time.
const KERNEL_ROWS: usize = 512;

/// Permutations whose sums are made at once.
const PERMUTED: usize = 128;

/// Permutations that show how far columns differ by chance.
const CHANCE: usize = 20;

/// Are two samples of one distribution? A permutation test of the squared maximum mean discrepancy.
///
/// The statistic is the unbiased estimate of the squared distance of mean features. Under the hypothesis that all rows are draws
/// of one distribution, blocks of rows may change places between the samples; a share of at most `α` of all such tests has a p-value of
/// at most `α`, for any number of rows and any kernel (`docs/mathematics/tests.md`).
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::stats::{SampleSums, TwoSampleTest};
/// use ndarray::Array2;
/// let map = FourierSpec { n_components: 64, ..FourierSpec::default() }.build::<f64>(2)?;
/// let rows = |shift: f64| Array2::from_shape_fn((300, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.37).sin() + shift);
/// let sums = |rows: Array2<f64>| {
///     let mut sums = SampleSums::new(64, 2);
///     sums.push_rows(&map, rows.view())?;
///     Ok::<_, bochner::Error>(sums)
/// };
/// let found = TwoSampleTest::default().run(&sums(rows(0.0))?, &sums(rows(0.5))?)?;
/// assert!(found.pvalue <= 0.001 && found.interval.0 > 0.0);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSampleTest {
    /// Random permutations; the p-value is a multiple of `1/(permutations + 1)`.
    pub permutations: usize,
    /// Coverage of the interval.
    pub coverage: f64,
    /// Seed of the permutations.
    pub seed: u64,
}

impl Default for TwoSampleTest {
    fn default() -> Self {
        TwoSampleTest { permutations: 999, coverage: 0.95, seed: 0 }
    }
}

impl TwoSampleTest {
    /// The test of two samples by their features.
    ///
    /// # Errors
    /// Fewer than two rows in either sample, different numbers of features, no permutations, a coverage that is no share.
    pub fn run(&self, x: &SampleSums, y: &SampleSums) -> Result<Estimate> {
        check_dim("number of features of y", x.dim(), y.dim())?;
        self.check(x.count(), y.count())?;
        let units = Units::of(x, y);
        let stacked = units.stacked()?;
        let mut gram = square(stacked.nrows())?;
        matmul_nt(tile(&stacked), tile(&stacked), tile_mut(&mut gram))?;
        let labelled = Labelled::new(&units, gram);
        let mut found = labelled.test(self)?;
        let sketching = sketching_variance(x, y);
        found.set_sketching(sketching, half_width(self.coverage)?);
        Ok(found)
    }

    /// The same under an exact kernel, in time that grows with the square of the number of rows.
    ///
    /// # Errors
    /// As [`run`](Self::run), and NaN or infinities.
    pub fn run_exact<R: Real>(
        &self,
        kernel: &dyn Kernel,
        x: ArrayView2<'_, R>,
        y: ArrayView2<'_, R>,
    ) -> Result<Estimate> {
        check_dim("number of columns of y", x.ncols(), y.ncols())?;
        let (n, m) = (x.nrows(), y.nrows());
        self.check(n as u64, m as u64)?;
        let size = (n + m).div_ceil(EXACT_BLOCKS).next_power_of_two();
        // Rows that fill no block stay in their sample.
        let (units_x, units_y) = (n / size, m / size);
        let all = ndarray::concatenate(ndarray::Axis(0), &[x, y]).map_err(|_| Error::overflow())?.mapv(Real::to_f64);
        let place = |row: usize| match row.checked_sub(n) {
            None if row / size < units_x => row / size,
            None => units_x + units_y,
            Some(row) if row / size < units_y => units_x + row / size,
            Some(_) => units_x + units_y + 1,
        };
        let places: Vec<usize> = (0..n + m).map(place).collect();
        let mut gram = square(units_x + units_y + 2)?;
        let mut units = Units {
            x: vec![Block::empty(0); units_x],
            y: vec![Block::empty(0); units_y],
            fixed_x: Block::empty(0),
            fixed_y: Block::empty(0),
            rows: size as u64,
        };
        for start in (0..n + m).step_by(KERNEL_ROWS) {
            let end = (start + KERNEL_ROWS).min(n + m);
            let k = kernel_matrix(kernel, all.slice(s![start..end, ..]), all.view())?;
            for (i, values) in (start..end).zip(k.rows()) {
                let at = places[i];
                let mut row = gram.row_mut(at);
                values.iter().zip(&places).for_each(|(value, place)| row[*place] += value);
                let block = units.block(at);
                block.rows += 1;
                block.squares += values[i];
            }
            interrupt::check()?;
        }
        let mut found = Labelled::new(&units, gram).test(self)?;
        found.set_sketching(0.0, half_width(self.coverage)?);
        Ok(found)
    }

    /// By how much every column takes part in the difference of two samples: shares that add up to 1, or all 0 where no
    /// column differs more than by chance.
    ///
    /// The witness is the direction from the one mean of features to the other. Its slope along a column, squared, averaged over
    /// some rows of both samples and taken in units of that column's standard deviation, less what exchanging blocks at random makes of
    /// it, is the column's part.
    ///
    /// # Errors
    /// As [`run`](Self::run), and maps without derivatives.
    pub fn columns<R: Real>(
        &self,
        map: &(impl FeatureMap<Real = R, Output = R> + ?Sized),
        x: &SampleSums,
        y: &SampleSums,
    ) -> Result<Vec<f64>> {
        self.check(x.count(), y.count())?;
        check_dim("number of features", x.dim(), map.output_dim())?;
        let rows = ndarray::concatenate(ndarray::Axis(0), &[x.kept(), y.kept()]).map_err(|_| Error::overflow())?;
        let mut seen = crate::preprocess::ColumnStatistics::new(rows.ncols());
        seen.push(rows.view())?;
        let narrow = rows.mapv(R::from_f64);
        let units = Units::of(x, y);
        let stacked = units.stacked()?;
        let (total_x, total_y) = (x.count() as f64, y.count() as f64);
        let slopes = |labels: &[f64]| -> Result<Vec<f64>> {
            let mut witness = vec![0.0; x.dim()];
            for (row, label) in stacked.rows().into_iter().zip(labels) {
                let weight = label / total_x - (1.0 - label) / total_y;
                witness.iter_mut().zip(row).for_each(|(w, sum)| *w += weight * sum);
            }
            let length = witness.iter().map(|w| w * w).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            let from = Array2::from_shape_fn((rows.nrows(), x.dim()), |(_, j)| R::from_f64(witness[j] / length));
            let pulled = map.pullback(narrow.view(), from.view())?;
            let mean =
                |j: usize| pulled.column(j).iter().map(|g| Real::to_f64(*g).powi(2)).sum::<f64>() / rows.nrows() as f64;
            Ok((0..rows.ncols()).map(|j| length * length * mean(j) * seen.variance(j)).collect())
        };
        let mut found = slopes(&units.labels(|a| a < units.x.len()))?;
        let count = units.x.len() + units.y.len();
        for index in 0..CHANCE {
            let chosen = chosen(self.seed, index as u64, units.x.len(), count);
            let chance = slopes(&units.labels(|a| chosen[a]))?;
            found.iter_mut().zip(chance).for_each(|(found, chance)| *found -= chance / CHANCE as f64);
        }
        found.iter_mut().for_each(|part| *part = part.max(0.0));
        let sum: f64 = found.iter().sum();
        if sum > 0.0 {
            found.iter_mut().for_each(|part| *part /= sum);
        }
        Ok(found)
    }

    fn check(&self, x: u64, y: u64) -> Result<()> {
        check_count("permutations", self.permutations)?;
        half_width(self.coverage)?;
        for (name, rows) in [("number of rows of x", x), ("number of rows of y", y)] {
            if rows < 2 {
                return Err(Error::parameter(name, "at least 2", rows));
            }
        }
        Ok(())
    }
}

impl Units {
    fn block(&mut self, at: usize) -> &mut Block {
        let (x, y) = (self.x.len(), self.y.len());
        match at {
            at if at < x => &mut self.x[at],
            at if at < x + y => &mut self.y[at - x],
            at if at == x + y => &mut self.fixed_x,
            _ => &mut self.fixed_y,
        }
    }

    /// One for every block that is in x, and 0 for the others.
    fn labels(&self, is_x: impl Fn(usize) -> bool) -> Vec<f64> {
        let count = self.x.len() + self.y.len();
        (0..count).map(|a| f64::from(u8::from(is_x(a)))).chain([1.0, 0.0]).collect()
    }
}

/// Which of `count` blocks a random permutation puts into x, which has `size` of them.
fn chosen(seed: u64, index: u64, size: usize, count: usize) -> Vec<bool> {
    let mut draw = Stream::new(Seed::new(seed), Role::Index, index);
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut chosen = vec![false; count];
    for i in 0..size {
        let j = i + draw.below((count - i) as u64) as usize;
        order.swap(i, j);
        chosen[order[i] as usize] = true;
    }
    chosen
}

fn square(order: usize) -> Result<Array2<f64>> {
    filled("products of blocks", (order, order), 0.0, |_| "ask for fewer rows".into())
}

pub(super) fn tile(matrix: &Array2<f64>) -> Tile<'_, f64> {
    Tile::new(matrix.as_slice().expect("made row by row"), matrix.nrows(), matrix.ncols())
}

pub(super) fn tile_mut(matrix: &mut Array2<f64>) -> TileMut<'_, f64> {
    let (rows, cols) = matrix.dim();
    TileMut::new(matrix.as_slice_mut().expect("made row by row"), rows, cols)
}

/// Inner products of the sums of blocks about the mean of all rows, and who they belong to.
struct Labelled {
    gram: Array2<f64>,
    /// `Σ|φ|²` of every block.
    squares: Vec<f64>,
    x: usize,
    y: usize,
    /// Rows of a block.
    size: f64,
    n: f64,
    m: f64,
}

impl Labelled {
    fn new(units: &Units, mut gram: Array2<f64>) -> Self {
        let rows: Vec<f64> = units.all().map(|block| block.rows as f64).collect();
        let mut squares: Vec<f64> = units.all().map(|block| block.squares).collect();
        let all: f64 = rows.iter().sum();
        // The estimate is the same about any point; about the mean nothing cancels.
        let means: Vec<f64> = gram.rows().into_iter().map(|row| row.sum() / all).collect();
        let length = means.iter().sum::<f64>() / all;
        for ((a, b), value) in gram.indexed_iter_mut() {
            *value += rows[a] * rows[b] * length - rows[a] * means[b] - rows[b] * means[a];
        }
        for ((square, rows), mean) in squares.iter_mut().zip(&rows).zip(&means) {
            *square += rows * length - 2.0 * mean;
        }
        let (x, y) = (units.x.len(), units.y.len());
        let total = |range: std::ops::Range<usize>, fixed: usize| rows[range].iter().sum::<f64>() + rows[fixed];
        let (n, m) = (total(0..x, x + y), total(x..x + y, x + y + 1));
        Labelled { gram, squares, x, y, size: units.rows as f64, n, m }
    }

    /// The estimate where the sum of x has the squared length `alpha`, the product `beta` with the sum of all rows (whose
    /// squared length is `total`), and `squares` is that of x.
    fn statistic(&self, alpha: f64, beta: f64, total: f64, squares: f64, all_squares: f64) -> f64 {
        let (n, m) = (self.n, self.m);
        (alpha - squares) / (n * (n - 1.0)) + (total - 2.0 * beta + alpha - (all_squares - squares)) / (m * (m - 1.0))
            - 2.0 * (beta - alpha) / (n * m)
    }

    fn test(&self, test: &TwoSampleTest) -> Result<Estimate> {
        let count = self.gram.nrows();
        let sums: Vec<f64> = self.gram.rows().into_iter().map(|row| row.sum()).collect();
        let (total, all_squares) = (sums.iter().sum::<f64>(), self.squares.iter().sum::<f64>());
        // The first row is the samples as they are.
        let label = |index: usize, row: &mut [f64]| {
            let is_x: Vec<bool> = match index {
                0 => (0..self.x + self.y).map(|a| a < self.x).collect(),
                _ => chosen(test.seed, index as u64 - 1, self.x, self.x + self.y),
            };
            row.iter_mut().zip(is_x).for_each(|(label, is_x)| *label = f64::from(u8::from(is_x)));
            row[self.x + self.y] = 1.0;
        };
        let mut values = Vec::with_capacity(test.permutations + 1);
        for start in (0..=test.permutations).step_by(PERMUTED) {
            let end = (start + PERMUTED).min(test.permutations + 1);
            let mut labels = Array2::zeros((end - start, count));
            for (index, mut row) in (start..end).zip(labels.rows_mut()) {
                label(index, row.as_slice_mut().expect("made row by row"));
            }
            let mut products = Array2::zeros((end - start, count));
            matmul_nn(tile(&labels), tile(&self.gram), tile_mut(&mut products))?;
            for (labels, products) in labels.rows().into_iter().zip(products.rows()) {
                let alpha = labels.iter().zip(products).map(|(a, b)| a * b).sum();
                let with = |values: &[f64]| labels.iter().zip(values).map(|(a, b)| a * b).sum::<f64>();
                values.push(self.statistic(alpha, with(&sums), total, with(&self.squares), all_squares));
            }
            interrupt::check()?;
        }
        let statistic = values[0];
        if !statistic.is_finite() {
            return Err(Error::overflow());
        }
        let (permuted, scale) = (&values[1..], all_squares / (self.n + self.m));
        let pvalue = super::pvalue(statistic, permuted, scale);
        Ok(Estimate::new(statistic, pvalue, self.sampling_variance(), test.permutations, (self.n, self.m)))
    }

    /// Variance of the estimate over draws of rows: that of its linear part, and that of its quadratic one, which is all there
    /// is where the samples are alike. Infinite with fewer than four blocks in a sample.
    fn sampling_variance(&self) -> f64 {
        let (x, y, n, m) = (self.x, self.y, self.n, self.m);
        if x.min(y) < 4 {
            return f64::INFINITY;
        }
        let sides = [0..x, x..x + y];
        let fixed = [x + y, x + y + 1];
        // Product of every block with the difference of the means.
        let with =
            |a: usize, side: usize| self.gram.row(a).slice(s![sides[side].clone()]).sum() + self.gram[[a, fixed[side]]];
        let linear = |side: usize| {
            let products: Vec<f64> =
                sides[side].clone().map(|a| (with(a, 0) / n - with(a, 1) / m) / self.size).collect();
            let mean = products.iter().sum::<f64>() / products.len() as f64;
            let spread: f64 = products.iter().map(|p| (p - mean) * (p - mean)).sum();
            self.size * spread / (products.len() - 1) as f64
        };
        // Products of blocks about the mean of their sample.
        let mean =
            |a: usize, side: usize| self.gram.row(a).slice(s![sides[side].clone()]).sum() / sides[side].len() as f64;
        let means: [Vec<f64>; 2] = [0, 1].map(|side| (0..x + y).map(|a| mean(a, side)).collect());
        let lengths: Vec<f64> = (0..2)
            .flat_map(|s| (0..2).map(move |t| (s, t)))
            .map(|(s, t)| means[t][sides[s].clone()].iter().sum::<f64>() / sides[s].len() as f64)
            .collect();
        let product =
            |a: usize, s: usize, b: usize, t: usize| self.gram[[a, b]] - means[t][a] - means[s][b] + lengths[2 * s + t];
        let within = |side: usize| {
            let k = sides[side].len() as f64;
            let (mut squares, mut trace, mut fourth) = (0.0, 0.0, 0.0);
            for a in sides[side].clone() {
                for b in sides[side].clone() {
                    squares += product(a, side, b, side).powi(2);
                }
                let own = product(a, side, a, side);
                trace += own / (k - 1.0);
                fourth += own * own / (k - 1.0);
            }
            let squares = squares / ((k - 1.0) * (k - 1.0));
            // Unbiased for the trace of the squared covariance (Himeno and Yamada 2014).
            let found = (k - 1.0) / (k * (k - 2.0) * (k - 3.0))
                * ((k - 1.0) * (k - 2.0) * squares + trace * trace - k * fourth);
            found.max(0.0) / (self.size * self.size)
        };
        let mut between = 0.0;
        for a in sides[0].clone() {
            for b in sides[1].clone() {
                between += product(a, 0, b, 1).powi(2);
            }
        }
        between /= self.size * self.size * (x - 1) as f64 * (y - 1) as f64;
        let quadratic = 2.0 * within(0) / (n * (n - 1.0)) + 2.0 * within(1) / (m * (m - 1.0)) + 4.0 * between / (n * m);
        // The means are themselves estimates: the linear part holds twice the quadratic one on average.
        (4.0 * linear(0) / n + 4.0 * linear(1) / m - quadratic).max(quadratic)
    }
}

/// Variance of the estimate over draws of the features, from those that were drawn: it is a sum over them.
fn sketching_variance(x: &SampleSums, y: &SampleSums) -> f64 {
    let (total_x, total_y) = (x.total(), y.total());
    let (n, m) = (total_x.rows as f64, total_y.rows as f64);
    let (squares_x, squares_y) = (x.feature_squares(), y.feature_squares());
    let parts = (0..x.dim()).map(|j| {
        let (a, b) = (total_x.sums[j], total_y.sums[j]);
        (a * a - squares_x[j]) / (n * (n - 1.0)) + (b * b - squares_y[j]) / (m * (m - 1.0)) - 2.0 * a * b / (n * m)
    });
    spread_of_groups(&columns_in_groups(parts, x.dim()))
}
