use super::{RowBlock, RowSource};
use crate::error::{Error, Result, check_dim};
use crate::interrupt;
use crate::memory;
use crate::scalar::Real;
use ndarray::{Array2, s};

/// Classes at most, where their number was not given.
pub(crate) const MOST_CLASSES: usize = 1_000_000;

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
    check_dim("number of target columns", 1, source.target_dim())?;
    let (mut classes, mut first) = (0, 0);
    source.for_each_block(&mut |block| {
        for (i, &label) in block.targets.iter().enumerate() {
            classes = classes.max(class_of(label, MOST_CLASSES, first + i)? + 1);
        }
        first += block.targets.nrows();
        interrupt::check()
    })?;
    if classes == 0 { Err(Error::parameter("rows", "at least one row", "none")) } else { Ok(classes) }
}

crate::parameter::words! {
    /// What stands for a class in a regression.
    pub enum Coding {
        /// `+1` in the column of the class and `-1` in the others.
        OneAgainstRest = "one_against_rest",
        /// `1` in the column of the class and `0` in the others.
        OneHot = "one_hot",
        /// A corner of a regular simplex, [`simplex_codes`]: one column less than there are classes.
        Simplex = "simplex",
    }
}

/// Corners of a regular simplex about the origin, one row per class and one column less: unit rows whose inner products
/// are `-1/(T-1)` for `T` classes.
///
/// Their sum is 0 and `CᵀC = T/(T-1) I`, so that no class is preferred and no direction counts twice. Two classes have
/// the codes `1` and `-1`; a single class has none and is an empty row.
///
/// # References
/// Mroueh, Poggio, Rosasco and Slotine 2012; the recursion of Brault et al. 2016, section 5.2, with its misprint mended.
///
/// # Errors
/// No classes.
///
/// ```
/// let codes = bochner::rows::simplex_codes(3)?;
/// assert_eq!(codes.dim(), (3, 2));
/// assert!((codes.row(0).dot(&codes.row(1)) + 0.5).abs() < 1e-15);
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn simplex_codes(classes: usize) -> Result<Array2<f64>> {
    crate::error::check_count("classes", classes)?;
    let mut codes = memory::filled("codes of classes", (classes, classes - 1), 0.0, |_| {
        "one against the rest needs no codes".into()
    })?;
    // Row c has its own 1 in column c, shrunk by all columns before it; later rows share what keeps the sum 0.
    let mut scale = 1.0;
    for column in 0..classes - 1 {
        let left = (classes - 1 - column) as f64;
        codes[[column, column]] = scale;
        codes.slice_mut(s![column + 1.., column]).fill(-scale / left);
        scale *= (1.0 - 1.0 / (left * left)).sqrt();
    }
    Ok(codes)
}

impl Coding {
    /// Number of columns that stand for `classes` classes.
    pub fn columns(self, classes: usize) -> usize {
        match self {
            Coding::OneAgainstRest | Coding::OneHot => classes,
            Coding::Simplex => classes.saturating_sub(1),
        }
    }
}

/// A source of labels `0, 1, …` as one of targets.
pub struct Coded<'a, R> {
    source: &'a mut dyn RowSource<R>,
    classes: usize,
    coding: Coding,
    /// The corners of a simplex, where they are the code.
    corners: Array2<R>,
}

impl<R> std::fmt::Debug for Coded<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coded").field("classes", &self.classes).field("coding", &self.coding).finish_non_exhaustive()
    }
}

impl<'a, R: Real> Coded<'a, R> {
    /// The labels of `source` as targets for `classes` classes.
    ///
    /// # Errors
    /// No classes, a simplex of one class, or a source whose targets are not one column.
    pub fn new(source: &'a mut dyn RowSource<R>, classes: usize, coding: Coding) -> Result<Self> {
        crate::error::check_count("classes", classes)?;
        check_dim("number of target columns", 1, source.target_dim())?;
        let corners = match coding {
            Coding::Simplex if classes == 1 => {
                return Err(Error::parameter("classes", "at least 2 for the corners of a simplex", 1));
            }
            Coding::Simplex => simplex_codes(classes)?.mapv(R::from_f64),
            _ => Array2::from_elem((0, 0), R::ZERO),
        };
        Ok(Coded { source, classes, coding, corners })
    }
}

impl<R: Real> RowSource<R> for Coded<'_, R> {
    fn input_dim(&self) -> usize {
        self.source.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.coding.columns(self.classes)
    }

    fn len_hint(&self) -> Option<usize> {
        self.source.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        let (classes, coding, corners) = (self.classes, self.coding, &self.corners);
        let columns = coding.columns(classes);
        let other = if coding == Coding::OneAgainstRest { -R::ONE } else { R::ZERO };
        let mut first = 0;
        self.source.for_each_block(&mut |block| {
            check_dim("number of target columns", 1, block.targets.ncols())?;
            let n = block.targets.nrows();
            // A source may hand over everything at once; the targets of that would need memory in proportion.
            for start in (0..n).step_by(PIECE) {
                let range = start..(start + PIECE).min(n);
                let mut targets = Array2::from_elem((range.len(), columns), other);
                for (mut row, i) in targets.rows_mut().into_iter().zip(range.clone()) {
                    let class = class_of(block.targets[[i, 0]], classes, first + i)?;
                    match coding {
                        Coding::Simplex => row.assign(&corners.row(class)),
                        _ => row[class] = R::ONE,
                    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::InMemory;

    #[test]
    fn corners_of_a_simplex_have_unit_length_and_equal_angles() {
        assert_eq!(simplex_codes(1).unwrap().dim(), (1, 0));
        assert_eq!(simplex_codes(2).unwrap(), ndarray::array![[1.0], [-1.0]]);
        for classes in [2, 3, 5, 10, 100] {
            let codes = simplex_codes(classes).unwrap();
            let t = classes as f64;
            for ((i, j), dot) in codes.dot(&codes.t()).indexed_iter() {
                let exact = if i == j { 1.0 } else { -1.0 / (t - 1.0) };
                assert!((dot - exact).abs() < 1e-14, "{classes}: {i}, {j}");
            }
            for ((i, j), dot) in codes.t().dot(&codes).indexed_iter() {
                let exact = if i == j { t / (t - 1.0) } else { 0.0 };
                assert!((dot - exact).abs() < 1e-13);
            }
            assert!(codes.sum_axis(ndarray::Axis(0)).iter().all(|v| v.abs() < 1e-14));
        }
        assert!(simplex_codes(0).is_err());
    }

    #[test]
    fn labels_become_the_rows_of_their_code() {
        let (rows, labels) = (Array2::<f64>::zeros((4, 1)), ndarray::array![[2.0], [0.0], [1.0], [2.0]]);
        for (coding, expected) in [
            (Coding::OneAgainstRest, Array2::from_shape_fn((3, 3), |(i, j)| if i == j { 1.0 } else { -1.0 })),
            (Coding::OneHot, Array2::eye(3)),
            (Coding::Simplex, simplex_codes(3).unwrap()),
        ] {
            let mut source = InMemory::new(rows.view(), labels.view()).unwrap().with_block_rows(3).unwrap();
            let mut coded = Coded::new(&mut source, 3, coding).unwrap();
            assert_eq!(coded.target_dim(), expected.ncols());
            let mut seen = Vec::new();
            let visit = &mut |block: RowBlock<'_, f64>| {
                seen.extend(block.targets.rows().into_iter().map(|row| row.to_vec()));
                Ok(())
            };
            coded.for_each_block(visit).unwrap();
            let classes = [2, 0, 1, 2];
            assert!(seen.iter().zip(classes).all(|(row, class)| *row == expected.row(class).to_vec()));
            assert_eq!(seen.len(), 4);
        }
        let mut source = InMemory::new(rows.view(), labels.view()).unwrap();
        assert!(Coded::new(&mut source, 1, Coding::Simplex).is_err());
        assert!(Coded::new(&mut source, 2, Coding::Simplex).unwrap().for_each_block(&mut |_| Ok(())).is_err());
    }
}
