//! Which rows judge what was learned from which others.

use crate::pipeline::Part;
use bochner::scalar::Real;
use bochner::words;
use std::ops::Range;

/// Rows to learn from, and rows that judge what was learned.
#[derive(Debug)]
pub(crate) struct Fold<R> {
    pub(crate) train: Part<R>,
    pub(crate) held_out: Part<R>,
}

/// Below so many rows, each of [`PARTS`] parts is held out in turn: a single part of a few dozen rows decides by chance.
const FEW: usize = 2000;
const PARTS: usize = 5;

/// How rows are divided.
#[derive(Debug, Clone)]
pub struct Folds {
    rows: usize,
    /// The rows that judge, fold by fold.
    held_out: Vec<Range<usize>>,
}

impl Folds {
    /// A fifth of the rows, `most` at the most, or every fifth of few rows.
    pub(crate) fn new(rows: usize, most: usize) -> Self {
        let part = |k: usize| k * rows / PARTS..(k + 1) * rows / PARTS;
        let once = 0..(rows / PARTS).min(most);
        Folds { rows, held_out: if rows < FEW { (0..PARTS).map(part).collect() } else { Vec::from([once]) } }
    }

    /// Rows that judge, in one fold or another.
    pub fn judges(&self) -> usize {
        self.held_out.iter().map(Range::len).sum()
    }

    /// How many rows judge, and how often.
    pub fn in_words(&self) -> String {
        let count = words::count(self.judges());
        match self.held_out.len() {
            1 => format!("{count} rows held out"),
            _ => format!("{count} rows, a fifth of them held out in turn"),
        }
    }

    /// The folds of these rows.
    pub(crate) fn of<R: Real>(&self, all: &Part<R>) -> Vec<Fold<R>> {
        let fold = |held_out: &Range<usize>| {
            let (judges, others): (Vec<usize>, Vec<usize>) = (0..self.rows).partition(|i| held_out.contains(i));
            Fold { train: all.select(&others), held_out: all.select(&judges) }
        };
        self.held_out.iter().map(fold).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    fn part(rows: usize) -> Part<f64> {
        let count = |(i, _): (usize, usize)| i as f64;
        Part { rows: Array2::from_shape_fn((rows, 2), count), targets: Array2::from_shape_fn((rows, 1), count) }
    }

    #[test]
    fn every_one_of_few_rows_judges_once_what_was_learned_from_the_others() {
        let folds = Folds::new(13, 5000);
        assert_eq!((folds.judges(), folds.in_words().as_str()), (13, "13 rows, a fifth of them held out in turn"));
        let mut judges = Vec::new();
        for fold in folds.of(&part(13)) {
            let held_out: Vec<f64> = fold.held_out.targets.iter().copied().collect();
            assert_eq!(fold.train.rows.nrows() + held_out.len(), 13);
            assert!(fold.train.targets.iter().all(|row| !held_out.contains(row)));
            assert_eq!(fold.held_out.rows.column(1).to_vec(), held_out);
            judges.extend(held_out);
        }
        assert_eq!(judges, (0..13).map(f64::from).collect::<Vec<_>>());
    }

    #[test]
    fn of_many_rows_some_are_held_out_once() {
        let folds = Folds::new(4000, 500);
        assert_eq!((folds.judges(), folds.in_words().as_str()), (500, "500 rows held out"));
        let made = folds.of(&part(4000));
        assert_eq!((made.len(), made[0].train.rows.nrows()), (1, 3500));
        assert_eq!(made[0].train.targets[[0, 0]], 500.0);
    }
}
