use crate::error::{Error, Result, check_count, check_dim};
use crate::feature::FeatureMap;
use crate::interrupt;
use crate::linalg::{Tile, zeroed};
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
    /// Whether all rows have been here before.
    known: bool,
}

/// A gathered block: all rows are multiplied with the square roots of their weights.
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
            known: false,
        })
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

    /// Forgets all rows.
    pub(crate) fn restart(&mut self) {
        (self.pending, self.count) = (0, 0);
    }

    /// Forgets all rows, to be given the same ones: that they are numbers is known by now.
    pub(crate) fn read_again(&mut self) {
        (self.pending, self.count, self.known) = (0, 0, true);
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
        let fill = |rows, mut out: ArrayViewMut2<'_, T>| {
            out.assign(&features.slice(s![rows, ..]));
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
        let mut done = 0;
        while done < rows {
            let take = (rows - done).min(self.block - self.pending);
            let window = &mut self.features[self.pending * dim..][..take * dim];
            let view = ArrayViewMut2::from_shape((take, dim), window).expect("the window has this shape");
            fill(done..done + take, view)?;
            // All of them at once, on all threads: one thread would read them for longer than it took to make them.
            let rows = &self.features[self.pending * dim..][..take * dim];
            let faulty_in = |rows: &[T]| rows.chunks(dim).position(|features| check_row(features, 0).is_err());
            let found = (!self.known).then(|| rows.chunks(TOGETHER * dim).in_parallel().map(faulty_in));
            let faulty = found.iter().flatten().enumerate().find_map(|(i, found)| Some(i * TOGETHER + (*found)?));
            for i in done..done + take {
                let row = self.count as usize;
                let weight = match &weights {
                    Some(weights) => check_weight(weights[i].to_f64(), row)?,
                    None => 1.0,
                };
                let root = T::Real::from_f64(weight.sqrt());
                let features = &mut self.features[self.pending * dim..][..dim];
                if faulty == Some(i - done) {
                    check_row(features, row)?;
                }
                if weight != 1.0 {
                    for value in features {
                        *value = value.scale(root);
                    }
                }
                let side = &mut self.sides[self.pending * (outputs + 1)..][..outputs + 1];
                for (column, to) in side[..outputs].iter_mut().enumerate() {
                    let target = targets[[i, column]];
                    if !num_traits::Float::is_finite(target) {
                        return Err(Error::NonFinite { what: "targets", row, column });
                    }
                    *to = T::from_parts(target * root, T::Real::ZERO);
                }
                side[outputs] = T::from_parts(root, T::Real::ZERO);
                each(weight, targets.row(i));
                self.count += 1;
                self.pending += 1;
            }
            done += take;
            if self.pending == self.block {
                full(self.gathered())?;
                self.pending = 0;
            }
        }
        Ok(())
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
        if self.pending > 0 {
            full(self.gathered())?;
        }
        self.pending = 0;
        Ok(())
    }

    /// Takes in the gathered rows of another collector as they are, and counts all of its rows.
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
            self.pending += take;
            done += take;
            if self.pending == self.block {
                full(self.gathered())?;
                self.pending = 0;
            }
        }
        self.count += other.count;
        Ok(())
    }

    /// A collector that goes on after `count` rows, the last of which are given.
    pub(crate) fn resumed(dim: usize, outputs: usize, count: u64, features: &[T], sides: &[T]) -> Result<Self> {
        let mut collector = Collector::new(dim, outputs)?;
        let pending = features.len() / dim;
        check_dim("number of collected values", pending * dim, features.len())?;
        check_dim("number of collected targets", pending * (outputs + 1), sides.len())?;
        if pending >= collector.block {
            return Err(Error::parameter("number of collected rows", "less than a block", pending));
        }
        collector.features[..features.len()].copy_from_slice(features);
        collector.sides[..sides.len()].copy_from_slice(sides);
        Ok(Collector { pending, count, ..collector })
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

/// Refuses features with a NaN or an infinity: maps can overflow on finite rows.
fn check_row<T: Scalar>(row: &[T], index: usize) -> Result<()> {
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
    Err(Error::NonFinite { what: "features", row: index, column })
}
