use super::two_sample::{tile, tile_mut};
use super::{Estimate, columns_in_groups, half_width, spread_of_groups};
use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::FeatureMap;
use crate::interrupt;
use crate::linalg::gemm::matmul_nt;
use crate::parallel::Parallel;
use crate::random::{Role, Seed, Stream};
use crate::scalar::Real;
use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};

/// Up to so many rows all are permuted.
const PERMUTED_ROWS: usize = 1024;

/// Rows whose right sides are shifted among themselves.
const SHIFTS: usize = 8;

/// Rows of the smallest block of tuples.
const SEGMENT: usize = 64;

/// Fewest blocks that are shifted independently, from 1,024 rows on; there are less than twice as many.
const BLOCKS: usize = 16;

/// Groups of rows that are left out in turn.
const LEFT_OUT: usize = 20;

/// Rows whose features are made at once.
const PIECE_ROWS: usize = 1024;

/// Are the two sides of every row independent? A permutation test of the squared norm of the cross-covariance of features,
/// the Hilbert-Schmidt independence criterion.
///
/// Up to 1,024 rows the right sides are permuted among all rows. Of more rows, every eight that follow each other make a tuple, and
/// right sides are shifted around within their tuples, by one shift for all tuples of a block: sums of eight cross-covariances for every
/// block are enough for any number of such shifts, and memory does not grow with the rows. Both keep the level exactly
/// (`docs/mathematics/tests.md`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndependenceTest {
    /// Random permutations; the p-value is a multiple of `1/(permutations + 1)`.
    pub permutations: usize,
    /// Coverage of the interval.
    pub coverage: f64,
    /// Seed of the permutations.
    pub seed: u64,
}

impl Default for IndependenceTest {
    fn default() -> Self {
        IndependenceTest { permutations: 999, coverage: 0.95, seed: 0 }
    }
}

/// Cross-covariances under every shift, one after another, and the tuples they are sums over.
#[derive(Debug, Clone, PartialEq)]
struct Shifted {
    /// Features of the left side times shifts and features of the right one.
    products: Array2<f64>,
    tuples: f64,
}

impl Shifted {
    fn add(&mut self, other: &Shifted) {
        self.products += &other.products;
        self.tuples += other.tuples;
    }
}

/// What [`IndependenceTest`] needs of rows with two sides, gathered block by block.
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::stats::{IndependenceTest, PairSums};
/// use ndarray::Array2;
/// let map = FourierSpec { n_components: 32, ..FourierSpec::default() }.build::<f64>(1)?;
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| (i as f64 * 0.618).fract() * 4.0);
/// let y = x.mapv(|x: f64| x.sin());
/// let mut sums = PairSums::new(32, 32);
/// sums.push_rows((&map, x.view()), (&map, y.view()))?;
/// assert_eq!(IndependenceTest::default().run(&sums)?.pvalue, 0.001);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PairSums {
    dims: (usize, usize),
    count: u64,
    /// Features of all rows, while there are few.
    first: Option<(Array2<f64>, Array2<f64>)>,
    /// Features of rows that do not fill a segment yet.
    open: (Array2<f64>, Array2<f64>),
    blocks: Vec<Shifted>,
    /// The block that is being filled, and the segments a block holds.
    filling: Option<Shifted>,
    segments: usize,
}

impl PairSums {
    /// No rows yet, of so many features of the left and of the right side.
    pub fn new(left: usize, right: usize) -> Self {
        let none = (Array2::zeros((0, left)), Array2::zeros((0, right)));
        PairSums {
            dims: (left, right),
            count: 0,
            first: Some(none.clone()),
            open: none,
            blocks: Vec::new(),
            filling: None,
            segments: 1,
        }
    }

    /// Numbers of features of both sides.
    pub fn dims(&self) -> (usize, usize) {
        self.dims
    }

    /// Rows so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds rows, each side with its map.
    ///
    /// # Errors
    /// As [`FeatureMap::transform_into`], sides with different numbers of rows, and maps with other numbers of features.
    pub fn push_rows<R: Real>(
        &mut self,
        (left, x): (&(impl FeatureMap<Real = R, Output = R> + ?Sized), ArrayView2<'_, R>),
        (right, y): (&(impl FeatureMap<Real = R, Output = R> + ?Sized), ArrayView2<'_, R>),
    ) -> Result<()> {
        check_dim("number of rows of y", x.nrows(), y.nrows())?;
        check_dim("number of features of x", self.dims.0, left.output_dim())?;
        check_dim("number of features of y", self.dims.1, right.output_dim())?;
        for start in (0..x.nrows()).step_by(PIECE_ROWS) {
            let range = start..(start + PIECE_ROWS).min(x.nrows());
            let told = |error: Error| error.rows_from(start);
            let x = left.transform(x.slice(s![range.clone(), ..])).map_err(told)?.mapv(Real::to_f64);
            let y = right.transform(y.slice(s![range, ..])).map_err(told)?.mapv(Real::to_f64);
            self.push(x.view(), y.view())?;
        }
        Ok(())
    }

    fn push(&mut self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<()> {
        self.count += x.nrows() as u64;
        if let Some((left, right)) = &mut self.first {
            match self.count as usize > PERMUTED_ROWS {
                true => self.first = None,
                false => {
                    left.append(Axis(0), x).map_err(|_| Error::overflow())?;
                    right.append(Axis(0), y).map_err(|_| Error::overflow())?;
                }
            }
        }
        let joined = |open: &Array2<f64>, new| concatenate(Axis(0), &[open.view(), new]).map_err(|_| Error::overflow());
        let (x, y) = (joined(&self.open.0, x)?, joined(&self.open.1, y)?);
        let whole = x.nrows() / SEGMENT * SEGMENT;
        for start in (0..whole).step_by(SEGMENT) {
            let range = s![start..start + SEGMENT, ..];
            let segment = shifted(x.slice(range), y.slice(range))?;
            self.put(segment);
        }
        self.open = (x.slice(s![whole.., ..]).to_owned(), y.slice(s![whole.., ..]).to_owned());
        Ok(())
    }

    /// Adds a segment.
    fn put(&mut self, segment: Shifted) {
        match &mut self.filling {
            Some(block) => block.add(&segment),
            none => *none = Some(segment),
        }
        let full = (self.segments * SEGMENT / SHIFTS) as f64;
        if let Some(block) = self.filling.take_if(|block| block.tuples >= full) {
            self.blocks.push(block);
            self.halve();
        }
    }

    /// Makes one block of two where there are too many.
    fn halve(&mut self) {
        while self.blocks.len() >= 2 * BLOCKS {
            self.segments *= 2;
            let pairs = std::mem::take(&mut self.blocks).into_iter();
            let mut waiting = None;
            for block in pairs {
                match waiting.take() {
                    None => waiting = Some(block),
                    Some(mut first) => {
                        Shifted::add(&mut first, &block);
                        self.blocks.push(first);
                    }
                }
            }
            self.blocks.extend(waiting);
        }
    }

    /// Adds the rows of another part of the sample.
    ///
    /// # Errors
    /// Other numbers of features.
    pub fn merge(&mut self, other: &PairSums) -> Result<()> {
        check_dim("number of features of x", self.dims.0, other.dims.0)?;
        check_dim("number of features of y", self.dims.1, other.dims.1)?;
        if let Some((left, right)) = &other.first {
            return self.push(left.view(), right.view());
        }
        self.first = None;
        self.count += other.count - other.open.0.nrows() as u64;
        self.blocks.extend(other.blocks.iter().chain(&other.filling).cloned());
        self.segments = self.segments.max(other.segments);
        self.halve();
        self.push(other.open.0.view(), other.open.1.view())
    }
}

/// Cross-covariances within tuples under every shift of the right sides.
fn shifted(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Shifted> {
    let (rows, left, right) = (x.nrows(), x.ncols(), y.ncols());
    let mut lefts = Array2::zeros((left, rows));
    let mut rights = Array2::zeros((SHIFTS * right, rows));
    for start in (0..rows).step_by(SHIFTS) {
        let mean = |side: ArrayView2<'_, f64>| -> Array1<f64> {
            (start..start + SHIFTS)
                .map(|i| side.row(i).to_owned())
                .fold(Array1::zeros(side.ncols()), |sum, row| sum + row)
                / SHIFTS as f64
        };
        let (mean_x, mean_y) = (mean(x), mean(y));
        for i in 0..SHIFTS {
            lefts.column_mut(start + i).assign(&(&x.row(start + i) - &mean_x));
            let side = &y.row(start + i) - &mean_y;
            for shift in 0..SHIFTS {
                // Row i meets the right side that is `shift` places behind it.
                let at = start + (i + SHIFTS - shift) % SHIFTS;
                rights.slice_mut(s![shift * right..(shift + 1) * right, at]).assign(&side);
            }
        }
    }
    let mut products = Array2::zeros((left, SHIFTS * right));
    matmul_nt(tile(&lefts), tile(&rights), tile_mut(&mut products))?;
    Ok(Shifted { products, tuples: (rows / SHIFTS) as f64 })
}

impl IndependenceTest {
    /// The test.
    ///
    /// # Errors
    /// Fewer than 8 rows, no permutations, a coverage that is no share.
    pub fn run(&self, sums: &PairSums) -> Result<Estimate> {
        check_count("permutations", self.permutations)?;
        let half = half_width(self.coverage)?;
        if sums.count < 8 {
            return Err(Error::parameter("number of rows", "at least 8", sums.count));
        }
        let mut found = match &sums.first {
            Some((x, y)) => self.permuted(x, y)?,
            None => self.shifted(sums)?,
        };
        let sketching = found.sketching_variance;
        found.set_sketching(sketching, half);
        if found.statistic.is_finite() { Ok(found) } else { Err(Error::overflow()) }
    }

    /// Of few rows: all pairs of them.
    fn permuted(&self, x: &Array2<f64>, y: &Array2<f64>) -> Result<Estimate> {
        let n = x.nrows();
        let gram = |features: &Array2<f64>| -> Result<Array2<f64>> {
            let mut out = Array2::zeros((n, n));
            matmul_nt(tile(features), tile(features), tile_mut(&mut out))?;
            Ok(out)
        };
        let (k, l) = (gram(x)?, gram(y)?);
        let (left, right) = (centered(&k), centered(&l));
        let pairs = n as f64 * (n as f64 - 3.0);
        let with = |order: &[u32]| {
            let mut sum = 0.0;
            for i in 1..n {
                let (row, other) = (left.row(i), right.row(order[i] as usize));
                let (row, other) = (row.to_slice().expect("whole"), other.to_slice().expect("whole"));
                sum += row[..i].iter().zip(order).map(|(a, &j)| a * other[j as usize]).sum::<f64>();
            }
            2.0 * sum / pairs
        };
        let same: Vec<u32> = (0..n as u32).collect();
        let statistic = with(&same);
        let order = |index: usize| Stream::new(Seed::new(self.seed), Role::Index, index as u64).permutation(n);
        let permuted = (0..self.permutations).in_parallel().map(|index| with(&order(index)));
        interrupt::check()?;
        let scale = k.diag().mean().unwrap_or(0.0) * l.diag().mean().unwrap_or(0.0);
        let pvalue = super::pvalue(statistic, &permuted, scale);
        // Rows are left out in groups.
        let groups = LEFT_OUT.min(n / 4).max(2);
        let without = |group: usize| {
            let rows: Vec<usize> = (0..n).filter(|i| i % groups != group).collect();
            let part = |k: &Array2<f64>| centered(&k.select(Axis(0), &rows).select(Axis(1), &rows));
            let (a, b) = (part(&k), part(&l));
            let m = rows.len() as f64;
            (&a * &b).sum() / (m * (m - 3.0))
        };
        let sampling = jackknife(&(0..groups).in_parallel().map(without));
        let mut found = Estimate::new(statistic, pvalue, sampling, self.permutations, (n as f64, n as f64));
        found.sketching_variance = {
            let about = |features: &Array2<f64>| features - &features.mean_axis(Axis(0)).expect("there are rows");
            let (x, y) = (about(x), about(y));
            let product = |x: Array2<f64>, y: Array2<f64>| -> Result<Array2<f64>> {
                let (x, y) = (
                    x.reversed_axes().as_standard_layout().into_owned(),
                    y.reversed_axes().as_standard_layout().into_owned(),
                );
                let mut out = Array2::zeros((x.nrows(), y.nrows()));
                matmul_nt(tile(&x), tile(&y), tile_mut(&mut out))?;
                Ok(out)
            };
            let own = product(x.mapv(|v| v * v), y.mapv(|v| v * v))?;
            let parts = (product(x, y)?.mapv(|v| v * v) - own) / (n as f64 * (n as f64 - 1.0));
            sketching(&parts)
        };
        Ok(found)
    }

    /// Of many rows: blocks of tuples.
    fn shifted(&self, sums: &PairSums) -> Result<Estimate> {
        let (left, right) = sums.dims;
        // Tuples of the open rows are a block of their own; rows that fill none are left out.
        let mut blocks: Vec<Shifted> = sums.blocks.iter().chain(&sums.filling).cloned().collect();
        let whole = sums.open.0.nrows() / SHIFTS * SHIFTS;
        if whole > 0 {
            blocks.push(shifted(sums.open.0.slice(s![..whole, ..]), sums.open.1.slice(s![..whole, ..]))?);
        }
        let count = blocks.len();
        // Sums of the products of all pairs of blocks and shifts.
        let mut stacked = Array2::zeros((count * SHIFTS, left * right));
        for (b, block) in blocks.iter().enumerate() {
            for shift in 0..SHIFTS {
                let part = block.products.slice(s![.., shift * right..(shift + 1) * right]);
                stacked.row_mut(b * SHIFTS + shift).iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            }
        }
        let mut gram = Array2::zeros((count * SHIFTS, count * SHIFTS));
        matmul_nt(tile(&stacked), tile(&stacked), tile_mut(&mut gram))?;
        // A tuple's sum is its covariance times one less than its rows.
        let tuples: Vec<f64> = blocks.iter().map(|block| block.tuples * (SHIFTS - 1) as f64).collect();
        let all: f64 = tuples.iter().sum();
        let pairs = all * all - tuples.iter().map(|t| t * t).sum::<f64>();
        let with = |shifts: &[usize]| {
            let mut sum = 0.0;
            for b in 1..count {
                let row = gram.row(b * SHIFTS + shifts[b]);
                sum += (0..b).map(|c| row[c * SHIFTS + shifts[c]]).sum::<f64>();
            }
            2.0 * sum / pairs
        };
        let statistic = with(&vec![0; count]);
        let permuted = (0..self.permutations).in_parallel().map(|index| {
            let mut draw = Stream::new(Seed::new(self.seed), Role::Index, index as u64);
            with(&(0..count).map(|_| draw.below(SHIFTS as u64) as usize).collect::<Vec<_>>())
        });
        interrupt::check()?;
        let scale = (0..count).map(|b| gram[[b * SHIFTS, b * SHIFTS]]).sum::<f64>() / (all * all);
        let pvalue = super::pvalue(statistic, &permuted, scale);
        let without = |left_out: usize| {
            let (mut sum, mut weight) = (0.0, 0.0);
            for b in (0..count).filter(|b| *b != left_out) {
                for c in (0..b).filter(|c| *c != left_out) {
                    sum += gram[[b * SHIFTS, c * SHIFTS]];
                    weight += tuples[b] * tuples[c];
                }
            }
            sum / weight
        };
        let sampling = jackknife(&(0..count).map(without).collect::<Vec<_>>());
        let mut found =
            Estimate::new(statistic, pvalue, sampling, self.permutations, (sums.count as f64, sums.count as f64));
        let mut parts = Array2::zeros((left, right));
        let (mut total, mut own) = (Array2::<f64>::zeros((left, right)), Array2::<f64>::zeros((left, right)));
        for block in &blocks {
            let product = block.products.slice(s![.., ..right]);
            total += &product;
            own += &product.mapv(|v| v * v);
        }
        parts += &((total.mapv(|v| v * v) - own) / pairs);
        found.sketching_variance = sketching(&parts);
        Ok(found)
    }
}

/// Variance of the sum of `parts` over draws of the features of either side.
fn sketching(parts: &Array2<f64>) -> f64 {
    let of = |axis: usize| {
        let sums = parts.sum_axis(Axis(1 - axis));
        spread_of_groups(&columns_in_groups(sums.iter().copied(), sums.len()))
    };
    of(0) + of(1)
}

/// Variance from estimates that leave out one part each.
fn jackknife(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (count - 1.0) / count * values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>()
}

/// The matrix about its means so that products of two such matrices are unbiased (Székely and Rizzo 2014), 0 on the
/// diagonal.
fn centered(k: &Array2<f64>) -> Array2<f64> {
    let n = k.nrows() as f64;
    let sums: Vec<f64> = k.rows().into_iter().enumerate().map(|(i, row)| row.sum() - row[i]).collect();
    let all = sums.iter().sum::<f64>() / ((n - 1.0) * (n - 2.0));
    Array2::from_shape_fn(k.dim(), |(i, j)| match i == j {
        true => 0.0,
        false => k[[i, j]] - (sums[i] + sums[j]) / (n - 2.0) + all,
    })
}
