use super::collect::{Collector, Gathered};
use crate::error::{Result, check_dim};
use crate::feature::FeatureMap;
use crate::linalg::{Lower, TileMut, Workspace};
use crate::memory;
use crate::parallel::Parallel;
use crate::rows::RowBlock;
use crate::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView1, ArrayView2};

/// Sums over weighted rows of features and targets: `FᴴWF`, `FᴴWY`, `FᴴW1`, and the moments of the targets.
///
/// Single-precision features are summed in single precision over at most 1,024 rows (in chains of 256) and in double
/// precision beyond: sums over many rows lose no more digits than sums over few. Half of the Hermitian matrix is stored.
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
#[derive(Debug)]
pub struct Gram<T: Scalar> {
    sums: Products<T::Wide>,
    totals: Totals,
    collector: Collector<T>,
    work: Workspace<T::Real>,
}

impl<T: Scalar> Clone for Gram<T> {
    fn clone(&self) -> Self {
        let (sums, totals, collector) = (self.sums.clone(), self.totals.clone(), self.collector.clone());
        Gram { sums, totals, collector, work: Workspace::new() }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Products<W> {
    pub(crate) gram: Lower<W>,
    pub(crate) cross: Array2<W>,
    pub(crate) feature_sums: Vec<W>,
}

/// The sums of a [`Gram`] over all its rows.
///
/// `wᵢ` are the weights, `fᵢ` the features and `yᵢ` the targets of row `i`.
#[derive(Debug, Clone)]
pub struct Moments<W> {
    /// `Σ wᵢ conj(fᵢ) fᵢᵀ`, lower triangle.
    pub gram: Lower<W>,
    /// `Σ wᵢ conj(fᵢ) yᵢᵀ`, one row per feature.
    pub cross: Array2<W>,
    /// `Σ wᵢ conj(fᵢ)`.
    pub feature_sums: Vec<W>,
    /// Sums that need no features.
    pub totals: Totals,
    /// The machine epsilon of the features: sums of single-precision ones are rounded as they are.
    pub epsilon: f64,
}

/// Sums over weights and targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
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

impl Totals {
    pub(crate) fn zeros(outputs: usize) -> Self {
        Totals {
            target_sums: vec![0.0; outputs],
            target_squares: vec![0.0; outputs],
            weight_sum: 0.0,
            log_weight_sum: 0.0,
            count: 0,
        }
    }

    pub(crate) fn add_row<R: Real>(&mut self, weight: f64, targets: ArrayView1<'_, R>) {
        for ((sum, square), target) in self.target_sums.iter_mut().zip(&mut self.target_squares).zip(targets) {
            let target = Real::to_f64(*target);
            *sum += weight * target;
            *square += weight * target * target;
        }
        self.weight_sum += weight;
        if weight > 0.0 && weight != 1.0 {
            self.log_weight_sum += weight.ln();
        }
        self.count += 1;
    }

    pub(super) fn add(&mut self, other: &Totals) {
        for (a, b) in self.target_sums.iter_mut().zip(&other.target_sums) {
            *a += b;
        }
        for (a, b) in self.target_squares.iter_mut().zip(&other.target_squares) {
            *a += b;
        }
        self.weight_sum += other.weight_sum;
        self.log_weight_sum += other.log_weight_sum;
        self.count += other.count;
    }
}

impl<W: Scalar<Real = f64>> Moments<W> {
    /// Number of features.
    pub fn dim(&self) -> usize {
        self.gram.order()
    }

    /// Number of targets.
    pub fn outputs(&self) -> usize {
        self.cross.ncols()
    }

    /// `ε tr G`: what rounding may take from the eigenvalues of the sums, about; to be asked before they are centred, since
    /// centring takes from the trace and not from the errors.
    ///
    /// Entries are off by at most `mε/2 · Σ|fᵢ||fⱼ|` for chains of `m = 256` rows, so that no eigenvalue is off by more than
    /// `128 ε tr G`. Errors of either sign grow as `√m`, and those of different entries hardly add up.
    pub(crate) fn rounding(&self) -> f64 {
        self.epsilon * self.gram.diagonal().map(|v| v.re()).sum::<f64>()
    }
}

impl<W: Scalar<Real = f64>> Products<W> {
    pub(super) fn zeros(dim: usize, outputs: usize) -> Result<Self> {
        Ok(Products {
            gram: Lower::zeros(dim)?,
            cross: memory::filled("products of features and targets", (dim, outputs), W::ZERO, |_| {
                "fit fewer targets at a time".into()
            })?,
            feature_sums: vec![W::ZERO; dim],
        })
    }

    /// Adds the sums of other rows.
    pub(super) fn add(&mut self, other: &Products<W>) -> Result<()> {
        self.gram.add(&other.gram)?;
        self.cross += &other.cross;
        self.feature_sums.iter_mut().zip(&other.feature_sums).for_each(|(a, b)| *a += *b);
        Ok(())
    }

    pub(super) fn with_totals<T: Scalar<Wide = W>>(self, totals: Totals) -> Moments<W> {
        let Products { gram, cross, feature_sums } = self;
        let epsilon = <T::Real as num_traits::Float>::epsilon().to_f64();
        Moments { gram, cross, feature_sums, totals, epsilon }
    }

    pub(super) fn add_block<T: Scalar<Wide = W>>(&mut self, block: Gathered<'_, T>, work: &mut Workspace<T::Real>) {
        self.gram.add_gram(block.features, work);
        let product = adjoint_times(block);
        let columns = block.sides.cols();
        for (i, row) in product.chunks(columns).enumerate() {
            for (sum, &value) in self.cross.row_mut(i).iter_mut().zip(row) {
                *sum += value;
            }
            self.feature_sums[i] += row[columns - 1];
        }
    }
}

/// `featuresᴴ sides` of a block, row-major, summed in double precision.
pub(crate) fn adjoint_times<T: Scalar>(block: Gathered<'_, T>) -> Vec<T::Wide> {
    let mut product = vec![T::Wide::ZERO; block.features.cols() * block.sides.cols()];
    add_adjoint_times(block, &mut product);
    product
}

/// Adds [`adjoint_times`] to sums.
pub(crate) fn add_adjoint_times<T: Scalar>(block: Gathered<'_, T>, sums: &mut [T::Wide]) {
    // Features per task: enough for threads, and a function of nothing.
    const STRIP: usize = 256;
    let columns = block.sides.cols();
    sums.chunks_mut(STRIP * columns).enumerate().in_parallel().for_each_init(Vec::new, |scratch, (index, strip)| {
        let rows = strip.len() / columns;
        let left = block.features.columns(index * STRIP..index * STRIP + rows);
        T::add_adjoint_product(TileMut::new(strip, rows, columns), left, block.sides, scratch);
    });
}

impl<T: Scalar> Gram<T> {
    /// No rows yet, for `dim` features and `outputs` targets.
    ///
    /// # Errors
    /// No features, or more than memory holds.
    pub fn new(dim: usize, outputs: usize) -> Result<Self> {
        let sums = Products::zeros(dim, outputs)?;
        let (totals, collector) = (Totals::zeros(outputs), Collector::new(dim, outputs)?);
        Ok(Gram { sums, totals, collector, work: Workspace::new() })
    }

    /// Bytes a `Gram` of this size takes, whatever the number of rows.
    pub fn bytes(dim: usize, outputs: usize) -> u64 {
        let cross = (dim as u64).saturating_mul(outputs as u64 + 1).saturating_mul(size_of::<T::Wide>() as u64);
        // The product of a block with its targets is a second matrix of the size of `cross` while it is made.
        // Products of real features read two packed copies of the collected rows.
        Lower::<T::Wide>::bytes(dim)
            .saturating_add(Collector::<T>::bytes(dim, outputs).saturating_mul(3))
            .saturating_add(cross.saturating_mul(2))
    }

    /// Bytes of this one.
    pub(crate) fn own_bytes(&self) -> u64 {
        Self::bytes(self.dim(), self.outputs())
    }

    /// Number of features.
    pub fn dim(&self) -> usize {
        self.collector.dim()
    }

    /// Number of targets.
    pub fn outputs(&self) -> usize {
        self.collector.outputs()
    }

    /// Number of rows pushed.
    pub fn count(&self) -> u64 {
        self.collector.count()
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
        let Gram { sums, totals, collector, work } = self;
        let each = &mut |weight, row: ArrayView1<'_, _>| totals.add_row(weight, row);
        collector.push(features, targets, weights, each, &mut |block| {
            sums.add_block(block, work);
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
        let Gram { sums, totals, collector, work } = self;
        let each = &mut |weight, row: ArrayView1<'_, _>| totals.add_row(weight, row);
        collector.push_rows(map, block, each, &mut |block| {
            sums.add_block(block, work);
            Ok(())
        })
    }

    /// Adds the rows of another accumulator, as if they came after this one's; equal to one pass up to rounding.
    ///
    /// # Errors
    /// Numbers of features or targets that differ.
    pub fn merge(&mut self, other: &Gram<T>) -> Result<()> {
        check_dim("number of features of the other accumulator", self.dim(), other.dim())?;
        check_dim("number of targets of the other accumulator", self.outputs(), other.outputs())?;
        self.sums.add(&other.sums)?;
        self.totals.add(&other.totals);
        let (sums, work) = (&mut self.sums, &mut self.work);
        self.collector.append(&other.collector, &mut |block| {
            sums.add_block(block, work);
            Ok(())
        })
    }

    /// The sums over all rows, with the collecting buffers given back.
    pub fn finish(self) -> Moments<T::Wide> {
        let Gram { mut sums, totals, collector, mut work } = self;
        let rest = collector.gathered();
        if rest.features.rows() > 0 {
            sums.add_block(rest, &mut work);
        }
        drop((collector, work));
        sums.with_totals::<T>(totals)
    }

    /// The parts a file keeps: sums over whole blocks, totals over all rows, and the rows since the last block.
    pub(crate) fn parts(&self) -> (&Lower<T::Wide>, &Array2<T::Wide>, &[T::Wide], &Totals, Gathered<'_, T>) {
        let Products { gram, cross, feature_sums } = &self.sums;
        (gram, cross, feature_sums, &self.totals, self.collector.gathered())
    }

    /// Rebuilds an accumulator from [`parts`](Self::parts).
    pub(crate) fn from_parts(sums: Moments<T::Wide>, features: &[T], sides: &[T]) -> Result<Self> {
        let count = sums.totals.count;
        let collector = Collector::resumed(sums.dim(), sums.outputs(), count, features, sides)?;
        let Moments { gram, cross, feature_sums, totals, .. } = sums;
        Ok(Gram { sums: Products { gram, cross, feature_sums }, totals, collector, work: Workspace::new() })
    }
}
