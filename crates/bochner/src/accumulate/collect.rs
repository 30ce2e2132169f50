use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::FeatureMap;
use crate::interrupt;
use crate::linalg::{Tile, first_not_finite, zeroed};
use crate::parallel::Parallel;
use crate::rows::RowBlock;
use crate::scalar::{Real, Scalar};
use crate::words;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, s};
use std::ops::Range;

/// Rows of a block, counted from row 0 of the stream.
///
/// A Gram matrix is read and written once per block; with 1,024 rows that traffic stays below a tenth of the time of the
/// products. Bits depend on this number, so it does not follow from any budget.
pub(crate) const BLOCK: usize = 1024;

/// Rows that a thread looks at in one task.
const TOGETHER: usize = 32;

/// Rows of a stream gathered into blocks that start at multiples of [`BLOCK`], however the stream was cut.
///
/// Numbers that vary little about something large lose their digits when their products are rounded. Where asked for, rows
/// are therefore moved to an [`Origin`] near their means, which the first block decides.
#[derive(Debug, Clone)]
pub(crate) struct Collector<T: Scalar> {
    dim: usize,
    outputs: usize,
    /// Rows of a block.
    block: usize,
    features: Vec<T>,
    sides: Vec<T>,
    pending: usize,
    count: u64,
    /// What is moved.
    moves: Moves,
    /// `None` until the first block is full: its rows wait as they came, neither moved nor weighted.
    origin: Option<Origin<T>>,
}

/// What a [`Collector`] moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moves {
    /// Nothing.
    Nothing,
    /// Targets: for models without an intercept, whose features stay where they are.
    Targets,
    /// Features and targets.
    Both,
}

/// The point that is subtracted from rows, in their own precision: differences are then rounded once, and not at all where
/// they are small.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin<T: Scalar> {
    pub(crate) features: Vec<T>,
    pub(crate) targets: Vec<T::Real>,
}

impl<T: Scalar> Origin<T> {
    pub(crate) fn zeros(dim: usize, outputs: usize) -> Self {
        Origin { features: vec![T::ZERO; dim], targets: vec![T::Real::ZERO; outputs] }
    }

    /// In double precision.
    pub(crate) fn widened(&self) -> (Vec<T::Wide>, Vec<f64>) {
        (self.features.iter().map(|v| v.widen()).collect(), self.targets.iter().map(|v| Real::to_f64(*v)).collect())
    }
}

/// A gathered block: all rows are moved to the origin and multiplied with the square roots of their weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gathered<'a, T> {
    /// Features.
    pub(crate) features: Tile<'a, T>,
    /// Targets, then a column of ones.
    pub(crate) sides: Tile<'a, T>,
}

impl<T: Scalar> Collector<T> {
    pub(crate) fn new(dim: usize, outputs: usize) -> Result<Self> {
        Self::in_blocks(dim, outputs, BLOCK)
    }

    /// Gathers blocks of another size.
    pub(crate) fn in_blocks(dim: usize, outputs: usize, block: usize) -> Result<Self> {
        check_count("number of features", dim)?;
        let remedy = |free: u64| format!("{} features would fit", words::count(free as usize / block / size_of::<T>()));
        let features = zeroed("a block of features", block.checked_mul(dim), remedy)?;
        let width = outputs.checked_add(1).and_then(|width| width.checked_mul(block));
        Ok(Collector {
            dim,
            outputs,
            block,
            features,
            sides: zeroed("a block of targets", width, |_| "fit fewer of them at a time".into())?,
            pending: 0,
            count: 0,
            moves: Moves::Nothing,
            origin: Some(Origin::zeros(dim, outputs)),
        })
    }

    /// The same with rows that are moved to an origin near their means.
    pub(crate) fn moving(mut self, moves: Moves) -> Self {
        self.origin = (moves == Moves::Nothing).then(|| Origin::zeros(self.dim, self.outputs));
        self.moves = moves;
        self
    }

    pub(crate) fn bytes(dim: usize, outputs: usize) -> u64 {
        (BLOCK as u64 * size_of::<T>() as u64).saturating_mul(dim as u64 + outputs as u64 + 1)
    }

    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Forgets all rows but not their origin.
    pub(crate) fn restart(&mut self) {
        (self.pending, self.count) = (0, 0);
    }

    /// Rows taken in.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Takes in features that exist already.
    pub(crate) fn push(
        &mut self,
        features: ArrayView2<'_, T>,
        targets: ArrayView2<'_, T::Real>,
        weights: Option<ArrayView1<'_, T::Real>>,
        each: &mut dyn FnMut(f64, ArrayView1<'_, T::Real>),
        full: &mut dyn FnMut(Gathered<'_, T>) -> Result<()>,
    ) -> Result<()> {
        check_dim("number of columns of features", self.dim, features.ncols())?;
        let first = self.count as usize;
        let fill = |rows: Range<usize>, mut out: ArrayViewMut2<'_, T>| {
            let given = features.slice(s![rows.clone(), ..]);
            for (i, (mut to, from)) in out.rows_mut().into_iter().zip(given.rows()).enumerate() {
                to.assign(&from);
                // While the row is in the cache.
                if let Some(column) = to.as_slice().and_then(first_not_finite) {
                    return Err(Error::NonFinite { what: "features", row: first + rows.start + i, column });
                }
            }
            Ok(())
        };
        self.push_with(features.nrows(), targets, weights, fill, each, full)
    }

    /// Takes in rows whose features are computed where they are gathered.
    pub(crate) fn push_rows<M>(
        &mut self,
        map: &M,
        block: RowBlock<'_, T::Real>,
        each: &mut dyn FnMut(f64, ArrayView1<'_, T::Real>),
        full: &mut dyn FnMut(Gathered<'_, T>) -> Result<()>,
    ) -> Result<()>
    where
        M: FeatureMap<Real = T::Real, Output = T> + ?Sized,
    {
        check_dim("number of features of the map", self.dim, map.output_dim())?;
        let first = self.count as usize;
        let fill = |rows: Range<usize>, out: ArrayViewMut2<'_, T>| {
            let start = first + rows.start;
            map.transform_into(block.rows.slice(s![rows, ..]), out).map_err(|error| error.rows_from(start))
        };
        self.push_with(block.rows.nrows(), block.targets, block.weights, fill, each, full)
    }

    fn push_with(
        &mut self,
        rows: usize,
        targets: ArrayView2<'_, T::Real>,
        weights: Option<ArrayView1<'_, T::Real>>,
        mut fill: impl FnMut(Range<usize>, ArrayViewMut2<'_, T>) -> Result<()>,
        each: &mut dyn FnMut(f64, ArrayView1<'_, T::Real>),
        full: &mut dyn FnMut(Gathered<'_, T>) -> Result<()>,
    ) -> Result<()> {
        interrupt::check()?;
        let (dim, outputs) = (self.dim, self.outputs);
        check_dim("number of rows of targets", rows, targets.nrows())?;
        check_dim("number of columns of targets", outputs, targets.ncols())?;
        if let Some(weights) = &weights {
            check_dim("number of weights", rows, weights.len())?;
        }
        let weight = |i: usize| weights.as_ref().map_or(1.0, |weights| Real::to_f64(weights[i]));
        let mut done = 0;
        while done < rows {
            let take = (rows - done).min(self.block - self.pending);
            let window = &mut self.features[self.pending * dim..][..take * dim];
            let view = ArrayViewMut2::from_shape((take, dim), window).expect("the window has this shape");
            fill(done..done + take, view)?;
            let sides = &mut self.sides[self.pending * (outputs + 1)..][..take * (outputs + 1)];
            for (i, side) in sides.chunks_mut(outputs + 1).enumerate() {
                let row = self.count as usize + i;
                let root = check_weight(weight(done + i), row)?.sqrt();
                for (column, to) in side[..outputs].iter_mut().enumerate() {
                    let target = targets[[done + i, column]];
                    if !num_traits::Float::is_finite(target) {
                        return Err(Error::NonFinite { what: "targets", row, column });
                    }
                    *to = T::from_parts(target, T::Real::ZERO);
                }
                side[outputs] = T::from_parts(T::Real::from_f64(root), T::Real::ZERO);
            }
            // None of them is at fault: from here on they count.
            (done..done + take).for_each(|i| each(weight(i), targets.row(i)));
            self.took_in(take, full)?;
            done += take;
        }
        Ok(())
    }

    /// Counts rows that were written, as they came, behind those that wait.
    fn took_in(&mut self, rows: usize, full: &mut dyn FnMut(Gathered<'_, T>) -> Result<()>) -> Result<()> {
        self.count += rows as u64;
        self.pending += rows;
        self.place(self.pending - rows..self.pending);
        if self.pending == self.block {
            self.settle();
            full(self.gathered())?;
            self.pending = 0;
        }
        Ok(())
    }

    /// Moves rows to the origin, where it is known, and multiplies them with the square roots of their weights.
    fn place(&mut self, rows: Range<usize>) {
        let Some(origin) = &self.origin else { return };
        let (dim, outputs) = (self.dim, self.outputs);
        let sides = &mut self.sides[rows.start * (outputs + 1)..rows.end * (outputs + 1)];
        let mut stay = origin.features.iter().all(|v| *v == T::ZERO);
        for side in sides.chunks_mut(outputs + 1) {
            let root = side[outputs].re();
            for (value, origin) in side[..outputs].iter_mut().zip(&origin.targets) {
                *value = T::from_parts((value.re() - *origin) * root, T::Real::ZERO);
            }
            stay &= root == T::Real::ONE;
        }
        if stay {
            return;
        }
        let features = self.features[rows.start * dim..rows.end * dim].chunks_mut(TOGETHER * dim);
        features.zip(sides.chunks(TOGETHER * (outputs + 1))).in_parallel().for_each(|(features, sides)| {
            for (row, side) in features.chunks_mut(dim).zip(sides.chunks(outputs + 1)) {
                let root = side[outputs].re();
                for (value, origin) in row.iter_mut().zip(&origin.features) {
                    *value = (*value - *origin).scale(root);
                }
            }
        });
    }

    /// Decides about the origin by the rows that wait, unless that is done.
    pub(crate) fn settle(&mut self) {
        if self.origin.is_some() {
            return;
        }
        let (dim, columns) = (self.dim, self.outputs + 1);
        let sides = Tile::new(&self.sides, self.pending, columns);
        let weights: Vec<f64> = (0..self.pending).map(|i| Real::to_f64(sides.row(i)[columns - 1].abs_sq())).collect();
        let targets = centre(sides.columns(0..self.outputs), &weights).into_iter().map(T::re).collect();
        let features = match self.moves {
            Moves::Both => centre(Tile::new(&self.features, self.pending, dim), &weights),
            _ => vec![T::ZERO; dim],
        };
        self.settle_at(Origin { features, targets });
    }

    /// Takes this origin, unless there is one.
    pub(crate) fn settle_at(&mut self, origin: Origin<T>) {
        if self.origin.is_none() {
            self.origin = Some(origin);
            self.place(0..self.pending);
        }
    }

    /// The origin, where it is known.
    pub(crate) fn origin(&self) -> Option<&Origin<T>> {
        self.origin.as_ref()
    }

    /// The rows since the last full block.
    pub(crate) fn gathered(&self) -> Gathered<'_, T> {
        Gathered {
            features: Tile::new(&self.features, self.pending, self.dim),
            sides: Tile::new(&self.sides, self.pending, self.outputs + 1),
        }
    }

    /// Hands out the rows since the last full block, if there are any, and forgets them.
    pub(crate) fn finish(&mut self, full: &mut dyn FnMut(Gathered<'_, T>) -> Result<()>) -> Result<()> {
        self.settle();
        if self.pending > 0 {
            full(self.gathered())?;
        }
        self.pending = 0;
        Ok(())
    }

    /// Takes in the rows of another collector that has not filled a block yet, as if they were pushed.
    pub(crate) fn append(
        &mut self,
        other: &Collector<T>,
        full: &mut dyn FnMut(Gathered<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let (dim, columns) = (self.dim, self.outputs + 1);
        let mut done = 0;
        while done < other.pending {
            let take = (other.pending - done).min(self.block - self.pending);
            self.features[self.pending * dim..][..take * dim]
                .copy_from_slice(&other.features[done * dim..][..take * dim]);
            self.sides[self.pending * columns..][..take * columns]
                .copy_from_slice(&other.sides[done * columns..][..take * columns]);
            self.took_in(take, full)?;
            done += take;
        }
        Ok(())
    }

    /// Counts rows that went elsewhere.
    pub(crate) fn count_more(&mut self, rows: u64) {
        self.count += rows;
    }

    /// Counts from another number of rows on.
    pub(crate) fn set_count(&mut self, rows: u64) {
        self.count = rows;
    }

    /// A collector that moves features and targets and goes on after `count` rows, the last of which are given.
    pub(crate) fn resumed(
        (dim, outputs): (usize, usize),
        count: u64,
        features: &[T],
        sides: &[T],
        origin: Option<Origin<T>>,
    ) -> Result<Self> {
        let mut collector = Collector::new(dim, outputs)?.moving(Moves::Both);
        let pending = features.len() / dim;
        check_dim("number of collected values", pending * dim, features.len())?;
        check_dim("number of collected targets", pending * (outputs + 1), sides.len())?;
        if pending >= collector.block {
            return Err(Error::parameter("number of collected rows", "less than a block", pending));
        }
        if let Some(origin) = &origin {
            check_dim("number of features of the origin", dim, origin.features.len())?;
            check_dim("number of targets of the origin", outputs, origin.targets.len())?;
        }
        collector.features[..features.len()].copy_from_slice(features);
        collector.sides[..sides.len()].copy_from_slice(sides);
        Ok(Collector { pending, count, origin, ..collector })
    }
}

/// The weighted means of columns that lie further from 0 than twice their spread, and 0 for the others: sums over those lose
/// less than a digit.
fn centre<T: Scalar>(rows: Tile<'_, T>, weights: &[f64]) -> Vec<T> {
    // Columns per task.
    const STRIP: usize = 256;
    let mut centre = vec![T::ZERO; rows.cols()];
    let total: f64 = weights.iter().sum();
    let Some(first) = weights.iter().position(|weight| *weight > 0.0) else { return centre };
    centre.chunks_mut(STRIP).enumerate().in_parallel().for_each(|(index, centre)| {
        let rows = rows.columns(index * STRIP..index * STRIP + centre.len());
        // About the first row: a column of one number has exactly that mean.
        let mut sums = vec![(T::Wide::ZERO, 0.0); centre.len()];
        for (i, &weight) in weights.iter().enumerate() {
            for ((sum, square), (value, first)) in sums.iter_mut().zip(rows.row(i).iter().zip(rows.row(first))) {
                let away = value.widen() - first.widen();
                *sum += away.scale(weight);
                *square += weight * away.abs_sq();
            }
        }
        for (to, ((sum, square), first)) in centre.iter_mut().zip(sums.iter().zip(rows.row(first))) {
            let away = sum.scale(1.0 / total);
            let mean = first.widen() + away;
            if mean.abs_sq() > 4.0 * (square / total - away.abs_sq()) {
                *to = T::narrow(mean);
            }
        }
    });
    centre
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
