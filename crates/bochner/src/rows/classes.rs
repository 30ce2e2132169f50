use super::{RowBlock, RowSource};
use crate::error::{Error, Result, check_dim};
use crate::scalar::Real;
use ndarray::{Array2, s};

/// Rows whose targets are made at once.
const PIECE: usize = 1024;

/// The class a target names: a whole number below `classes`.
pub(crate) fn class_of<R: Real>(target: R, classes: usize, row: usize) -> Result<usize> {
    let value = target.to_f64();
    if value >= 0.0 && value.fract() == 0.0 && value < classes as f64 {
        return Ok(value as usize);
    }
    if !value.is_finite() {
        return Err(Error::NonFinite { what: "labels", row, column: 0 });
    }
    Err(Error::parameter(
        "labels",
        "whole numbers from 0 to the number of classes less 1",
        format!("{value} in row {row}"),
    ))
}

/// Number of classes of a source with one column of labels `0, 1, …`: one more than the largest label.
///
/// # Errors
/// Labels that are not whole numbers, more than a million classes, or no rows.
pub fn count_classes<R: Real>(source: &mut dyn RowSource<R>) -> Result<usize> {
    const MOST: usize = 1_000_000;
    check_dim("number of target columns", 1, source.target_dim())?;
    let (mut classes, mut first) = (0, 0);
    source.for_each_block(&mut |block| {
        for (i, &label) in block.targets.iter().enumerate() {
            classes = classes.max(class_of(label, MOST, first + i)? + 1);
        }
        first += block.targets.nrows();
        Ok(())
    })?;
    if classes == 0 { Err(Error::parameter("rows", "at least one row", "none")) } else { Ok(classes) }
}

/// A source of labels `0, 1, …` as one of targets: column `c` is `+1` for class `c` and `-1` for the others.
pub struct OneAgainstRest<'a, R> {
    source: &'a mut dyn RowSource<R>,
    classes: usize,
}

impl<R> std::fmt::Debug for OneAgainstRest<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneAgainstRest").field("classes", &self.classes).finish_non_exhaustive()
    }
}

impl<'a, R: Real> OneAgainstRest<'a, R> {
    /// The labels of `source` as targets for `classes` classes.
    ///
    /// # Errors
    /// No classes, or a source whose targets are not one column.
    pub fn new(source: &'a mut dyn RowSource<R>, classes: usize) -> Result<Self> {
        crate::error::check_count("classes", classes)?;
        check_dim("number of target columns", 1, source.target_dim())?;
        Ok(OneAgainstRest { source, classes })
    }
}

impl<R: Real> RowSource<R> for OneAgainstRest<'_, R> {
    fn input_dim(&self) -> usize {
        self.source.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.classes
    }

    fn len_hint(&self) -> Option<usize> {
        self.source.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let classes = self.classes;
        let mut first = 0;
        self.source.for_each_block(&mut |block| {
            check_dim("number of target columns", 1, block.targets.ncols())?;
            let n = block.targets.nrows();
            // A source may hand over everything at once; the targets of that would need memory in proportion.
            for start in (0..n).step_by(PIECE) {
                let range = start..(start + PIECE).min(n);
                let mut targets = Array2::from_elem((range.len(), classes), -R::ONE);
                for (mut row, i) in targets.rows_mut().into_iter().zip(range.clone()) {
                    row[class_of(block.targets[[i, 0]], classes, first + i)?] = R::ONE;
                }
                visit(RowBlock {
                    rows: block.rows.slice(s![range.clone(), ..]),
                    targets: targets.view(),
                    weights: block.weights.as_ref().map(|w| w.slice(s![range])),
                })?;
            }
            first += n;
            Ok(())
        })
    }
}
