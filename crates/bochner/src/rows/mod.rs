//! Rows in blocks: what a caller hands over and how a source delivers it.
//!
//! ```
//! use bochner::rows::{InMemory, count_classes};
//! let (rows, labels) = (ndarray::array![[0.1], [0.2], [0.3]], ndarray::array![[0.0], [2.0], [1.0]]);
//! assert_eq!(count_classes(&mut InMemory::new(rows.view(), labels.view())?)?, 3);
//! # Ok::<(), bochner::Error>(())
//! ```

mod classes;
mod lagged;

pub use classes::{Coded, Coding, count_classes, simplex_codes};
pub(crate) use classes::{MOST_CLASSES, class_of};
pub use lagged::Lagged;

use crate::error::{Error, Result, check_dim};
use crate::scalar::Real;
use crate::words::{self, things};
use ndarray::{ArrayView1, ArrayView2, Axis, s};

/// Consecutive rows with their targets and, where given, weights.
#[derive(Debug, Clone, Copy)]
pub struct RowBlock<'a, R> {
    /// Inputs, one row per observation.
    pub rows: ArrayView2<'a, R>,
    /// Targets, one row per observation; zero columns when there are none.
    pub targets: ArrayView2<'a, R>,
    /// Weight of each observation; `None` means 1.
    pub weights: Option<ArrayView1<'a, R>>,
}

/// Something that delivers rows block by block, as often as asked.
///
/// Push style: the source may reuse one buffer for all blocks. Reading it again delivers the same rows in the same order.
pub trait RowSource<R: Real> {
    /// Number of input columns.
    fn input_dim(&self) -> usize;
    /// Number of target columns.
    fn target_dim(&self) -> usize;
    /// Number of rows, where it is known before reading.
    fn len_hint(&self) -> Option<usize> {
        None
    }
    /// Hands every block to `visit`, in order, until the rows end or `visit` fails.
    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()>;
}

impl<R: Real, S: RowSource<R> + ?Sized> RowSource<R> for &mut S {
    fn input_dim(&self) -> usize {
        (**self).input_dim()
    }

    fn target_dim(&self) -> usize {
        (**self).target_dim()
    }

    fn len_hint(&self) -> Option<usize> {
        (**self).len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        (**self).for_each_block(visit)
    }
}

/// A source that is read more than once: another number of rows than in its first pass is an error.
pub(crate) struct Counted<'a, R> {
    source: &'a mut dyn RowSource<R>,
    /// Of the first whole pass.
    rows: Option<usize>,
}

impl<'a, R: Real> Counted<'a, R> {
    pub(crate) fn new(source: &'a mut dyn RowSource<R>) -> Self {
        Counted { source, rows: None }
    }
}

impl<R: Real> RowSource<R> for Counted<'_, R> {
    fn input_dim(&self) -> usize {
        self.source.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.source.target_dim()
    }

    fn len_hint(&self) -> Option<usize> {
        self.source.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let (first, mut rows) = (self.rows, 0);
        self.source.for_each_block(&mut |block| {
            rows += block.rows.nrows();
            // More than there were may be more than there is room for.
            match first.filter(|first| rows > *first) {
                Some(first) => Err(changed(first, rows)),
                None => visit(block),
            }
        })?;
        match *self.rows.get_or_insert(rows) {
            first if first == rows => Ok(()),
            first => Err(changed(first, rows)),
        }
    }
}

fn changed(first: usize, rows: usize) -> Error {
    let (first, more, rows) = (things(first, "row"), if rows > first { " or more" } else { "" }, words::count(rows));
    Error::Source(
        format!(
            "the source changed while it was being read: {first} in the first pass, {rows}{more} in a later one; every pass \
             has to deliver the same rows"
        )
        .into(),
    )
}

/// Arrays in memory, delivered in blocks of a given number of rows.
#[derive(Debug, Clone)]
pub struct InMemory<'a, R> {
    block: RowBlock<'a, R>,
    block_rows: usize,
}

impl<'a, R: Real> InMemory<'a, R> {
    /// Rows with their targets.
    pub fn new(rows: ArrayView2<'a, R>, targets: ArrayView2<'a, R>) -> Result<Self> {
        check_dim("number of rows of targets", rows.nrows(), targets.nrows())?;
        Ok(InMemory { block: RowBlock { rows, targets, weights: None }, block_rows: 4096 })
    }

    /// The same rows with weights.
    pub fn with_weights(mut self, weights: ArrayView1<'a, R>) -> Result<Self> {
        check_dim("number of weights", self.block.rows.nrows(), weights.len())?;
        self.block.weights = Some(weights);
        Ok(self)
    }

    /// The same rows in blocks of `block_rows`.
    pub fn with_block_rows(mut self, block_rows: usize) -> Result<Self> {
        crate::error::check_count("block_rows", block_rows)?;
        self.block_rows = block_rows;
        Ok(self)
    }
}

impl<R: Real> RowSource<R> for InMemory<'_, R> {
    fn input_dim(&self) -> usize {
        self.block.rows.ncols()
    }

    fn target_dim(&self) -> usize {
        self.block.targets.ncols()
    }

    fn len_hint(&self) -> Option<usize> {
        Some(self.block.rows.nrows())
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let n = self.block.rows.nrows();
        for start in (0..n).step_by(self.block_rows) {
            let range = start..(start + self.block_rows).min(n);
            visit(RowBlock {
                rows: self.block.rows.slice(s![range.clone(), ..]),
                targets: self.block.targets.slice(s![range.clone(), ..]),
                weights: self.block.weights.as_ref().map(|w| w.slice(s![range])),
            })?;
        }
        Ok(())
    }
}

/// Refuses NaN and infinities, naming the first one; `first_row` is the number of the block's first row.
pub fn check_finite<R: Real>(what: &'static str, rows: ArrayView2<'_, R>, first_row: usize) -> Result<()> {
    for (i, row) in rows.axis_iter(Axis(0)).enumerate() {
        // A sum is NaN or infinite if any term is; the exact search runs only then (finite terms may also overflow).
        if row.sum().is_finite() {
            continue;
        }
        if let Some(column) = row.iter().position(|v| !v.is_finite()) {
            return Err(Error::NonFinite { what, row: first_row + i, column });
        }
    }
    Ok(())
}
