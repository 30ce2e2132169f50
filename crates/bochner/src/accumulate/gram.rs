use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::FeatureMap;
use crate::linalg::{Lower, Tile, TileMut};
use crate::rows::RowBlock;
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;

/// Rows that are collected before they enter the sums, counted from row 0 of the stream.
///
/// Every flush reads and writes the whole triangle once; with 1,024 rows that traffic stays below a tenth of the time of
/// the products. Bits depend on this number, so it does not follow from any budget.
const BLOCK: usize = 1024;

/// Sums over weighted rows of features and targets: `FᴴWF`, `FᴴWY`, `FᵀW1`, and the moments of the targets.
///
/// Single-precision features are multiplied in single precision, 256 rows at a time, and added in double precision: sums
/// over many rows lose no more digits than sums over few. Half of the Hermitian matrix is stored.
///
/// Same rows, same bits, however they are cut into blocks: rows are collected into blocks of 1,024 counted from the first
/// row of the stream.
///
/// ```
/// use bochner::accumulate::Gram;
/// use ndarray::array;
/// let (features, targets) = (array![[1.0, 2.0], [3.0, 4.0]], array![[1.0], [0.5]]);
/// let mut gram = Gram::new(2, 1)?;
/// gram.push(features.view(), targets.view(), None)?;
/// let moments = gram.finish();
/// assert_eq!(moments.gram.row(1), [14.0, 20.0]);
/// assert_eq!(moments.cross.column(0).to_vec(), [2.5, 4.0]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Gram<T: Scalar> {
    sums: Moments<T::Wide>,
    // Rows not yet in the sums, times the square root of their weights.
    features: Vec<T>,
    // Their targets and a 1, times the square root of their weights.
    sides: Vec<T>,
    pending: usize,
}

/// The sums of a [`Gram`] over all its rows.
///
/// `wᵢ` are the weights, `F` the features (one row per observation), `Y` the targets.
#[derive(Debug, Clone)]
pub struct Moments<W> {
    /// `Σ wᵢ conj(fᵢ) fᵢᵀ`, lower triangle.
    pub gram: Lower<W>,
    /// `Σ wᵢ conj(fᵢ) yᵢᵀ`, one row per feature.
    pub cross: Array2<W>,
    /// `Σ wᵢ conj(fᵢ)`.
    pub feature_sums: Vec<W>,
    /// `Σ wᵢ yᵢ`.
    pub target_sums: Vec<f64>,
    /// `Σ wᵢ yᵢ²`, target by target.
    pub target_squares: Vec<f64>,
    /// `Σ wᵢ`.
    pub weight_sum: f64,
    /// `Σ ln wᵢ` over the positive weights: the likelihood of a Gaussian with noise variances `1/wᵢ` needs it.
    pub log_weight_sum: f64,
    /// Number of rows.
    pub count: u64,
}

impl<W: Scalar<Real = f64>> Moments<W> {
    fn zeros(dim: usize, outputs: usize) -> Result<Self> {
        Ok(Moments {
            gram: Lower::zeros(dim)?,
            cross: Array2::from_elem((dim, outputs), W::ZERO),
            feature_sums: vec![W::ZERO; dim],
            target_sums: vec![0.0; outputs],
            target_squares: vec![0.0; outputs],
            weight_sum: 0.0,
            log_weight_sum: 0.0,
            count: 0,
        })
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.gram.order()
    }

    /// Number of targets.
    pub fn outputs(&self) -> usize {
        self.target_sums.len()
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.gram.add(&other.gram)?;
        self.cross += &other.cross;
        for (a, b) in self.feature_sums.iter_mut().zip(&other.feature_sums) {
            *a += *b;
        }
        for (a, b) in self.target_sums.iter_mut().zip(&other.target_sums) {
            *a += b;
        }
        for (a, b) in self.target_squares.iter_mut().zip(&other.target_squares) {
            *a += b;
        }
        self.weight_sum += other.weight_sum;
        self.log_weight_sum += other.log_weight_sum;
        self.count += other.count;
        Ok(())
    }
}

impl<T: Scalar> Gram<T> {
    /// No rows yet, for `dim` features and `outputs` targets.
    ///
    /// # Errors
    /// No features, or more than memory holds.
    pub fn new(dim: usize, outputs: usize) -> Result<Self> {
        check_count("number of features", dim)?;
        Ok(Gram {
            sums: Moments::zeros(dim, outputs)?,
            features: vec![T::ZERO; BLOCK * dim],
            sides: vec![T::ZERO; BLOCK * (outputs + 1)],
            pending: 0,
        })
    }

    /// Bytes a `Gram` of this size takes, whatever the number of rows.
    pub fn bytes(dim: usize, outputs: usize) -> u64 {
        let (dim64, sides) = (dim as u64, outputs as u64 + 1);
        let collected = (BLOCK as u64).saturating_mul(dim64 + sides).saturating_mul(size_of::<T>() as u64);
        let cross = dim64.saturating_mul(sides).saturating_mul(size_of::<T::Wide>() as u64);
        // The product of a block with its targets is a second matrix of the size of `cross` while it is made.
        Lower::<T::Wide>::bytes(dim).saturating_add(collected).saturating_add(cross.saturating_mul(2))
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.sums.dim()
    }

    /// Number of targets.
    pub fn outputs(&self) -> usize {
        self.sums.outputs()
    }

    /// Number of rows pushed.
    pub fn count(&self) -> u64 {
        self.sums.count
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities, negative weights. Rows before the faulty one may have been added: an
    /// accumulator that returned an error holds part of a block.
    pub fn push(
        &mut self,
        features: ArrayView2<'_, T>,
        targets: ArrayView2<'_, T::Real>,
        weights: Option<ArrayView1<'_, T::Real>>,
    ) -> Result<()> {
        check_dim("number of columns of features", self.dim(), features.ncols())?;
        self.push_with(features.nrows(), targets, weights, |rows, mut out| {
            out.assign(&features.slice(s![rows, ..]));
            Ok(())
        })
    }

    /// Adds the features of a block of rows, computed where they are needed.
    ///
    /// # Errors
    /// As [`push`](Self::push), and those of the map; rows are counted from the start of the stream.
    pub fn push_rows<M>(&mut self, map: &M, block: RowBlock<'_, T::Real>) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        check_dim("number of features of the map", self.dim(), map.output_dim())?;
        let first = self.sums.count as usize;
        self.push_with(block.rows.nrows(), block.targets, block.weights, |rows, out| {
            let start = rows.start;
            map.transform_into(block.rows.slice(s![rows, ..]), out).map_err(|error| match error {
                Error::NonFinite { what, row, column } => Error::NonFinite { what, row: first + start + row, column },
                other => other,
            })
        })
    }

    fn push_with(
        &mut self,
        rows: usize,
        targets: ArrayView2<'_, T::Real>,
        weights: Option<ArrayView1<'_, T::Real>>,
        mut fill: impl FnMut(std::ops::Range<usize>, ArrayViewMut2<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let (dim, outputs) = (self.dim(), self.outputs());
        check_dim("number of rows of targets", rows, targets.nrows())?;
        check_dim("number of columns of targets", outputs, targets.ncols())?;
        if let Some(weights) = &weights {
            check_dim("number of weights", rows, weights.len())?;
        }
        let mut done = 0;
        while done < rows {
            let take = (rows - done).min(BLOCK - self.pending);
            let window = &mut self.features[self.pending * dim..][..take * dim];
            let view = ArrayViewMut2::from_shape((take, dim), window).expect("the window has this shape");
            fill(done..done + take, view)?;
            for i in 0..take {
                let row = self.sums.count as usize;
                let weight = match &weights {
                    Some(weights) => check_weight(weights[done + i].to_f64(), row)?,
                    None => 1.0,
                };
                let root = T::Real::from_f64(weight.sqrt());
                let features = &mut self.features[(self.pending) * dim..][..dim];
                check_row("features", features, row)?;
                if weight != 1.0 {
                    for value in features {
                        *value = value.scale(root);
                    }
                }
                let side = &mut self.sides[self.pending * (outputs + 1)..][..outputs + 1];
                for (output, to) in side[..outputs].iter_mut().enumerate() {
                    let target = targets[[done + i, output]];
                    if !num_traits::Float::is_finite(target) {
                        return Err(Error::NonFinite { what: "targets", row, column: output });
                    }
                    *to = T::from_parts(target * root, T::Real::ZERO);
                    let target = target.to_f64();
                    self.sums.target_sums[output] += weight * target;
                    self.sums.target_squares[output] += weight * target * target;
                }
                side[outputs] = T::from_parts(root, T::Real::ZERO);
                self.sums.weight_sum += weight;
                if weight > 0.0 {
                    self.sums.log_weight_sum += weight.ln();
                }
                self.sums.count += 1;
                self.pending += 1;
            }
            done += take;
            if self.pending == BLOCK {
                self.flush();
            }
        }
        Ok(())
    }

    fn flush(&mut self) {
        if self.pending == 0 {
            return;
        }
        let (dim, columns) = (self.dim(), self.outputs() + 1);
        let features = Tile::new(&self.features, self.pending, dim);
        let sides = Tile::new(&self.sides, self.pending, columns);
        self.sums.gram.add_gram(features);
        let mut product = vec![T::Wide::ZERO; dim * columns];
        // Rows of the product in strips: enough for threads, and a function of the size alone.
        let strips: Vec<_> = product.chunks_mut(256 * columns).enumerate().collect();
        strips.into_par_iter().for_each_init(Vec::new, |scratch, (index, strip)| {
            let rows = strip.len() / columns;
            let window = features.columns(index * 256..index * 256 + rows);
            T::add_gram(TileMut::new(strip, rows, columns), window, sides, scratch);
        });
        for (i, row) in product.chunks(columns).enumerate() {
            for (sum, &value) in self.sums.cross.row_mut(i).iter_mut().zip(row) {
                *sum += value;
            }
            self.sums.feature_sums[i] += row[columns - 1];
        }
        self.pending = 0;
    }

    /// Adds the rows of another accumulator, as if they came after this one's; equal to one pass up to rounding.
    ///
    /// # Errors
    /// Numbers of features or targets that differ.
    pub fn merge(&mut self, other: &Gram<T>) -> Result<()> {
        check_dim("number of features of the other accumulator", self.dim(), other.dim())?;
        check_dim("number of targets of the other accumulator", self.outputs(), other.outputs())?;
        let (dim, columns) = (self.dim(), self.outputs() + 1);
        self.sums.add(&other.sums)?;
        let mut done = 0;
        while done < other.pending {
            let take = (other.pending - done).min(BLOCK - self.pending);
            self.features[self.pending * dim..][..take * dim]
                .copy_from_slice(&other.features[done * dim..][..take * dim]);
            self.sides[self.pending * columns..][..take * columns]
                .copy_from_slice(&other.sides[done * columns..][..take * columns]);
            self.pending += take;
            done += take;
            if self.pending == BLOCK {
                self.flush();
            }
        }
        Ok(())
    }

    /// The sums over all rows, with the collecting buffers given back.
    pub fn finish(mut self) -> Moments<T::Wide> {
        self.flush();
        self.sums
    }

    /// The parts a file keeps: sums, collected rows, their sides and their number.
    pub(crate) fn parts(&self) -> (&Moments<T::Wide>, &[T], &[T]) {
        let (dim, columns) = (self.dim(), self.outputs() + 1);
        (&self.sums, &self.features[..self.pending * dim], &self.sides[..self.pending * columns])
    }

    /// Rebuilds an accumulator from [`parts`](Self::parts).
    pub(crate) fn from_parts(sums: Moments<T::Wide>, features: &[T], sides: &[T]) -> Result<Self> {
        let (dim, columns) = (sums.dim(), sums.outputs() + 1);
        check_count("number of features", dim)?;
        let pending = features.len() / dim;
        check_dim("number of collected values", pending * dim, features.len())?;
        check_dim("number of collected targets", pending * columns, sides.len())?;
        if pending >= BLOCK {
            return Err(Error::parameter("number of collected rows", "less than a block", pending));
        }
        let mut gram =
            Gram { sums, features: vec![T::ZERO; BLOCK * dim], sides: vec![T::ZERO; BLOCK * columns], pending };
        gram.features[..features.len()].copy_from_slice(features);
        gram.sides[..sides.len()].copy_from_slice(sides);
        Ok(gram)
    }
}

fn check_weight(weight: f64, row: usize) -> Result<f64> {
    if !weight.is_finite() {
        return Err(Error::NonFinite { what: "weights", row, column: 0 });
    }
    if weight < 0.0 {
        return Err(Error::parameter("weights", "non-negative", format!("{weight} in row {row}")));
    }
    Ok(weight)
}

/// Refuses a row with a NaN or an infinity: maps can overflow on finite rows.
fn check_row<T: Scalar>(what: &'static str, row: &[T], index: usize) -> Result<()> {
    // 0 · v is NaN for a NaN or an infinity and 0 otherwise; eight sums let the compiler use vector registers.
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
        return Ok(());
    }
    let column = row.iter().position(|&v| !finite(v)).unwrap_or(0);
    Err(Error::NonFinite { what, row: index, column })
}
