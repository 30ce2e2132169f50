use super::collect::{Collector, Gathered, Moves, Origin};
use crate::error::{Error, Result, check_dim, check_positive};
use crate::feature::FeatureMap;
use crate::linalg::{Lower, TileMut, Workspace};
use crate::memory;
use crate::parallel::Parallel;
use crate::rows::RowBlock;
use crate::scalar::{Real, Scalar};
use crate::words::{count, things};
use ndarray::{Array2, ArrayView1, ArrayView2};

/// Sums over weighted rows of features and targets: `FᴴWF`, `FᴴWY`, `FᴴW1`, and the moments of the targets.
///
/// Columns whose means are large beside their spread in the first 1,024 rows are summed about those means, so that offsets
/// take no digits; [`Moments`] say which point the sums are about, and move to any other.
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
/// let moments = gram.finish().about_zero()?;
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

fn never_added(found: String) -> Error {
    Error::parameter("rows to forget", "rows that were added before", found)
}

/// Refuses more rows than there are.
fn check_enough(all: u64, part: u64) -> Result<()> {
    let found = || format!("{} of {}", things(part as usize, "row"), count(all as usize));
    if part > all { Err(never_added(found())) } else { Ok(()) }
}

#[derive(Debug, Clone)]
pub(crate) struct Products<W> {
    pub(crate) gram: Lower<W>,
    pub(crate) cross: Array2<W>,
    pub(crate) feature_sums: Vec<W>,
}

/// The sums of a [`Gram`] over all its rows, about a point: its [`origin`](Self::origin) for the features and
/// [`Totals::origin`] for the targets.
///
/// `wᵢ` are the weights, `fᵢ` the features and `yᵢ` the targets of row `i`, less that point.
#[derive(Debug, Clone)]
pub struct Moments<W> {
    /// `Σ wᵢ conj(fᵢ) fᵢᵀ`, lower triangle.
    pub gram: Lower<W>,
    /// `Σ wᵢ conj(fᵢ) yᵢᵀ`, one row per feature.
    pub cross: Array2<W>,
    /// `Σ wᵢ conj(fᵢ)`.
    pub feature_sums: Vec<W>,
    /// What was subtracted from the features.
    pub origin: Vec<W>,
    /// Sums that need no features.
    pub totals: Totals,
    /// The machine epsilon of the features: sums of single-precision ones are rounded as they are. Larger where rows were
    /// forgotten, whose rounding stays.
    pub epsilon: f64,
}

/// Sums over weights and targets, less a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// What was subtracted from the targets.
    pub origin: Vec<f64>,
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
    /// `tr G` of the rows that were forgotten: they are gone, their rounding errors are not.
    pub forgotten: f64,
}

impl Totals {
    pub(crate) fn zeros(outputs: usize) -> Self {
        Totals {
            origin: vec![0.0; outputs],
            target_sums: vec![0.0; outputs],
            target_squares: vec![0.0; outputs],
            weight_sum: 0.0,
            log_weight_sum: 0.0,
            count: 0,
            forgotten: 0.0,
        }
    }

    /// Adds a row; the first one that counts is the origin.
    pub(crate) fn add_row<R: Real>(&mut self, weight: f64, targets: ArrayView1<'_, R>) {
        if self.weight_sum == 0.0 && weight > 0.0 {
            self.origin.iter_mut().zip(targets).for_each(|(to, target)| *to = Real::to_f64(*target));
        }
        let sums = self.target_sums.iter_mut().zip(&mut self.target_squares);
        for ((sum, square), (target, origin)) in sums.zip(targets.iter().zip(&self.origin)) {
            if weight > 0.0 {
                let target = Real::to_f64(*target) - origin;
                *sum += weight * target;
                *square += weight * target * target;
            }
        }
        self.weight_sum += weight;
        if weight > 0.0 && weight != 1.0 {
            self.log_weight_sum += weight.ln();
        }
        self.count += 1;
    }

    pub(super) fn add(&mut self, other: &Totals) {
        let mut other = other.clone();
        if self.weight_sum == 0.0 {
            self.origin.clone_from(&other.origin);
        }
        other.move_to(&self.origin);
        self.target_sums.iter_mut().zip(&other.target_sums).for_each(|(a, b)| *a += b);
        self.target_squares.iter_mut().zip(&other.target_squares).for_each(|(a, b)| *a += b);
        self.weight_sum += other.weight_sum;
        self.log_weight_sum += other.log_weight_sum;
        self.count += other.count;
        self.forgotten += other.forgotten;
    }

    /// Takes the sums of other rows away.
    fn subtract(&mut self, other: &Totals) {
        let mut other = other.clone();
        other.move_to(&self.origin);
        self.target_sums.iter_mut().zip(&other.target_sums).for_each(|(a, b)| *a -= b);
        self.target_squares.iter_mut().zip(&other.target_squares).for_each(|(a, b)| *a = (*a - b).max(0.0));
        self.weight_sum = (self.weight_sum - other.weight_sum).max(0.0);
        self.log_weight_sum -= other.log_weight_sum;
        self.count -= other.count;
        self.forgotten += other.forgotten;
    }

    /// Multiplies all weights.
    pub(super) fn scale(&mut self, factor: f64) {
        let sums = self.target_sums.iter_mut().chain(&mut self.target_squares);
        sums.chain([&mut self.weight_sum, &mut self.forgotten]).for_each(|sum| *sum *= factor);
        self.log_weight_sum += self.count as f64 * factor.ln();
    }

    /// Means of the targets.
    pub(crate) fn means(&self) -> Vec<f64> {
        self.origin.iter().zip(&self.target_sums).map(|(origin, sum)| origin + sum / self.weight_sum).collect()
    }

    /// The sums about another point.
    pub(crate) fn move_to(&mut self, point: &[f64]) {
        let sums = self.target_sums.iter_mut().zip(&mut self.target_squares);
        for ((sum, square), (from, to)) in sums.zip(self.origin.iter_mut().zip(point)) {
            let step = *to - *from;
            *square = (*square - step * (2.0 * *sum - self.weight_sum * step)).max(0.0);
            *sum -= self.weight_sum * step;
            *from = *to;
        }
    }
}

/// The point of rows in double precision, and how far it is from where they are now.
#[derive(Debug, Clone)]
pub(crate) struct Step<W> {
    /// Conjugate differences of features.
    pub(crate) features: Vec<W>,
    /// Differences of targets.
    pub(crate) targets: Vec<f64>,
}

impl<W: Scalar<Real = f64>> Step<W> {
    /// From one point to another, both of features and targets.
    pub(crate) fn between(from: (&[W], &[f64]), to: (&[W], &[f64])) -> Self {
        Step {
            features: to.0.iter().zip(from.0).map(|(to, from)| (*to - *from).conj()).collect(),
            targets: to.1.iter().zip(from.1).map(|(to, from)| to - from).collect(),
        }
    }

    /// What a step of rows takes from their `FᴴWY`; `sums` (`FᴴW1`) and `totals` are those from before.
    pub(crate) fn change_cross(&self, cross: &mut Array2<W>, sums: &[W], totals: &Totals) {
        let ends = totals.target_sums.iter().zip(&self.targets);
        let ends: Vec<f64> = ends.map(|(sum, step)| sum - totals.weight_sum * step).collect();
        for ((mut row, sum), step) in cross.rows_mut().into_iter().zip(sums).zip(&self.features) {
            for ((value, target), end) in row.iter_mut().zip(&self.targets).zip(&ends) {
                *value -= sum.scale(*target) + step.scale(*end);
            }
        }
    }

    /// What it takes from the sums of their features.
    fn change_sums(&self, sums: &mut [W], weight_sum: f64) {
        sums.iter_mut().zip(&self.features).for_each(|(sum, step)| *sum -= step.scale(weight_sum));
    }

    /// What it takes from their `FᴴWF`.
    fn change_gram(&self, gram: &mut Lower<W>, sums: &[W], weight_sum: f64) -> Result<()> {
        if self.features.iter().all(|step| *step == W::ZERO) {
            return Ok(());
        }
        let half = sums.iter().zip(&self.features).map(|(sum, step)| *sum - step.scale(0.5 * weight_sum));
        gram.subtract_pair(&half.collect::<Vec<_>>(), &self.features)
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

    /// Means of the features.
    pub(crate) fn feature_means(&self) -> Vec<W> {
        let scale = 1.0 / self.totals.weight_sum;
        self.origin.iter().zip(&self.feature_sums).map(|(origin, sum)| *origin + sum.conj().scale(scale)).collect()
    }

    /// The sums about another point.
    pub(crate) fn move_to(&mut self, features: &[W], targets: &[f64]) -> Result<()> {
        let step = Step::between((&self.origin, &self.totals.origin), (features, targets));
        step.change_gram(&mut self.gram, &self.feature_sums, self.totals.weight_sum)?;
        step.change_cross(&mut self.cross, &self.feature_sums, &self.totals);
        step.change_sums(&mut self.feature_sums, self.totals.weight_sum);
        self.origin = features.to_vec();
        self.totals.move_to(targets);
        Ok(())
    }

    /// The sums of features and targets as they are.
    ///
    /// # Errors
    /// None known.
    pub fn about_zero(mut self) -> Result<Self> {
        self.move_to(&vec![W::ZERO; self.dim()], &vec![0.0; self.outputs()])?;
        Ok(self)
    }

    /// `ε tr G`: what rounding may take from the eigenvalues of the sums, about; to be asked before they are moved, since
    /// that changes the trace and not the errors.
    ///
    /// Entries are off by at most `mε/2 · Σ|fᵢ||fⱼ|` for chains of `m = 256` rows, so that no eigenvalue is off by more than
    /// `128 ε tr G`. Errors of either sign grow as `√m`, and those of different entries hardly add up.
    pub(crate) fn rounding(&self) -> f64 {
        self.epsilon * self.trace()
    }

    fn trace(&self) -> f64 {
        self.gram.diagonal().map(|v| v.re()).sum()
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

    /// Multiplies all weights.
    pub(super) fn scale(&mut self, factor: f64) {
        self.gram.scale(factor);
        self.cross.mapv_inplace(|value| value.scale(factor));
        self.feature_sums.iter_mut().for_each(|value| *value = value.scale(factor));
    }

    /// Takes the sums of other rows away; `taken` are about the same point.
    ///
    /// # Errors
    /// Rows that were not among these.
    pub(super) fn subtract(&mut self, totals: &mut Totals, taken: &Moments<W>) -> Result<()> {
        check_enough(totals.count, taken.totals.count)?;
        // Sums of rows that were added are at most these, up to what rounding takes; those of all of them are equal.
        let rest = totals.count - taken.totals.count;
        let tolerance = 1024.0 * taken.epsilon;
        let fits = |all: f64, part: f64| {
            let off = if rest == 0 { (part - all).abs() } else { part - all };
            off <= tolerance * all.abs().max(part.abs())
        };
        if !fits(totals.weight_sum, taken.totals.weight_sum) {
            return Err(never_added(format!("rows of weight {} of {}", taken.totals.weight_sum, totals.weight_sum)));
        }
        let squares = || self.gram.diagonal().zip(taken.gram.diagonal()).map(|(all, part)| (all.re(), part.re()));
        if squares().any(|(all, part)| !fits(all, part)) {
            return Err(never_added("others: what is left would be no sums of squares".into()));
        }
        self.gram.combine(1.0, -1.0, &taken.gram)?;
        self.cross -= &taken.cross;
        self.feature_sums.iter_mut().zip(&taken.feature_sums).for_each(|(a, b)| *a -= *b);
        totals.subtract(&taken.totals);
        totals.forgotten += taken.trace();
        Ok(())
    }

    /// With the sums over all rows about the origin of the features and targets.
    pub(super) fn with_totals<T: Scalar<Wide = W>>(self, mut totals: Totals, origin: &Origin<T>) -> Moments<W> {
        let Products { gram, cross, feature_sums } = self;
        let epsilon = <T::Real as num_traits::Float>::epsilon().to_f64();
        let (origin, targets) = origin.widened();
        totals.move_to(&targets);
        let mut moments = Moments { gram, cross, feature_sums, origin, totals, epsilon };
        let trace = moments.trace();
        if trace > 0.0 {
            moments.epsilon *= 1.0 + moments.totals.forgotten / trace;
        }
        moments
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
        let (totals, collector) = (Totals::zeros(outputs), Collector::new(dim, outputs)?.moving(Moves::Both));
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
        let Gram { sums, totals, collector, work } = self;
        let Some(theirs) = other.collector.origin() else {
            totals.add(&other.totals);
            return collector.append(&other.collector, &mut |block| {
                sums.add_block(block, work);
                Ok(())
            });
        };
        collector.settle_at(theirs.clone());
        let ours = collector.origin().unwrap_or(theirs).widened();
        // All of their sums, about their origin, and then what it takes to bring them here.
        sums.add(&other.sums)?;
        let mut moved = other.sums.feature_sums.clone();
        let rest = other.collector.gathered();
        if rest.features.rows() > 0 {
            sums.add_block(rest, work);
            let roots = rest.sides.columns(other.outputs()..other.outputs() + 1);
            let own = adjoint_times(Gathered { features: rest.features, sides: roots });
            moved.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let (from, targets) = theirs.widened();
        let mut moving = other.totals.clone();
        moving.move_to(&targets);
        let step = Step::between((&from, &targets), (&ours.0, &ours.1));
        step.change_gram(&mut sums.gram, &moved, moving.weight_sum)?;
        step.change_cross(&mut sums.cross, &moved, &moving);
        step.change_sums(&mut sums.feature_sums, moving.weight_sum);
        totals.add(&other.totals);
        collector.count_more(other.count());
        Ok(())
    }

    /// Takes back the rows of another accumulator over the same features: what remains are the sums over the others, up to
    /// rounding of all of them. Solutions know of that rounding ([`Totals::forgotten`]).
    ///
    /// After [`scale`](Self::scale), rows are to be taken back with the weights that they have by then.
    ///
    /// ```
    /// use bochner::accumulate::Gram;
    /// use ndarray::{array, s};
    /// let (features, targets) = (array![[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], array![[1.0], [0.5], [2.0]]);
    /// let (mut gram, mut gone) = (Gram::<f64>::new(2, 1)?, Gram::new(2, 1)?);
    /// gram.push(features.view(), targets.view(), None)?;
    /// gone.push(features.slice(s![..1, ..]), targets.slice(s![..1, ..]), None)?;
    /// gram.forget(gone)?;
    /// let left = gram.finish().about_zero()?;
    /// assert!((left.gram.row(1)[0] - 47.0).abs() < 1e-12 && (left.gram.row(1)[1] - 65.0).abs() < 1e-12);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// Accumulators of other sizes, and rows that were not added, as far as sums tell; nothing is changed then.
    pub fn forget(&mut self, mut other: Gram<T>) -> Result<()> {
        check_dim("number of features of the other accumulator", self.dim(), other.dim())?;
        check_dim("number of targets of the other accumulator", self.outputs(), other.outputs())?;
        if other.count() == 0 {
            return Ok(());
        }
        check_enough(self.count(), other.count())?;
        self.add_waiting()?;
        let origin = self.collector.origin().cloned().unwrap_or_else(|| Origin::zeros(self.dim(), self.outputs()));
        other.collector.settle_at(origin.clone());
        let mut taken = other.finish();
        let (features, targets) = origin.widened();
        taken.move_to(&features, &targets)?;
        self.sums.subtract(&mut self.totals, &taken)?;
        if self.totals.count == 0 {
            // Not what rounding has left of them.
            *self = Gram::new(self.dim(), self.outputs())?;
        }
        self.collector.set_count(self.totals.count);
        Ok(())
    }

    /// Multiplies the weights of all rows so far: older rows count less.
    ///
    /// # Errors
    /// A factor that is not positive and finite.
    pub fn scale(&mut self, factor: f64) -> Result<()> {
        check_positive("factor", factor)?;
        if self.count() > 0 && factor != 1.0 {
            self.add_waiting()?;
            self.sums.scale(factor);
            self.totals.scale(factor);
        }
        Ok(())
    }

    /// How many times larger the sums were before rows were forgotten: by so much rounding counts more. 1 without any.
    pub fn cancellation(&self) -> f64 {
        if self.totals.forgotten == 0.0 {
            return 1.0;
        }
        let rest = self.collector.gathered().features;
        let waiting: f64 = (0..rest.rows()).flat_map(|i| rest.row(i)).map(|v| v.widen().abs_sq()).sum();
        let trace = self.sums.gram.diagonal().map(|v| v.re()).sum::<f64>() + waiting;
        if trace > 0.0 { 1.0 + self.totals.forgotten / trace } else { f64::INFINITY }
    }

    /// Adds the rows that wait for a block to be full. Later blocks begin at later rows.
    fn add_waiting(&mut self) -> Result<()> {
        let Gram { sums, collector, work, .. } = self;
        collector.finish(&mut |block| {
            sums.add_block(block, work);
            Ok(())
        })
    }

    /// The sums over all rows, with the collecting buffers given back.
    pub fn finish(self) -> Moments<T::Wide> {
        let Gram { mut sums, totals, mut collector, mut work } = self;
        collector.settle();
        let rest = collector.gathered();
        if rest.features.rows() > 0 {
            sums.add_block(rest, &mut work);
        }
        let origin = collector.origin().cloned().unwrap_or_else(|| Origin::zeros(sums.gram.order(), 0));
        drop((collector, work));
        sums.with_totals::<T>(totals, &origin)
    }

    /// The parts a file keeps: sums over whole blocks, totals over all rows, the rows since the last block, and the origin
    /// where it is known.
    pub(crate) fn parts(&self) -> (&Products<T::Wide>, &Totals, Gathered<'_, T>, Option<&Origin<T>>) {
        (&self.sums, &self.totals, self.collector.gathered(), self.collector.origin())
    }

    /// Rebuilds an accumulator from [`parts`](Self::parts).
    pub(crate) fn from_parts(
        sums: Products<T::Wide>,
        totals: Totals,
        (features, sides): (&[T], &[T]),
        origin: Option<Origin<T>>,
    ) -> Result<Self> {
        let size = (sums.gram.order(), sums.cross.ncols());
        let collector = Collector::resumed(size, totals.count, features, sides, origin)?;
        Ok(Gram { sums, totals, collector, work: Workspace::new() })
    }
}
