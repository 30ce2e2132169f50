use super::{RowBlock, RowSource, check_finite};
use crate::error::{Error, Result, check_count};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, s};

/// Rows made at once.
const PIECE: usize = 1024;

/// A vector time series as rows for autoregression: row `t` holds the `lags` states before time `t`, the latest first,
/// and its targets are the state at time `t`.
///
/// With a kernel for several outputs this is the model `x(t) = f(x(t-1), …, x(t-L)) + noise` of vector autoregression.
/// Rows are made block by block: the series stays as it is, and a lag costs no memory.
///
/// ```
/// use bochner::rows::Lagged;
/// use ndarray::array;
/// let series = array![[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]];
/// let (rows, targets) = Lagged::new(series.view(), 2)?.arrays();
/// assert_eq!(rows, array![[2.0, 20.0, 1.0, 10.0], [3.0, 30.0, 2.0, 20.0]]);
/// assert_eq!(targets, array![[3.0, 30.0], [4.0, 40.0]]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Lagged<'a, R> {
    series: ArrayView2<'a, R>,
    lags: usize,
}

impl<'a, R: Real> Lagged<'a, R> {
    /// The series, one row per time, with this many states before each target.
    ///
    /// # Errors
    /// No lags, a series that is not longer than that or has no columns, NaN or infinities.
    pub fn new(series: ArrayView2<'a, R>, lags: usize) -> Result<Self> {
        check_count("lags", lags)?;
        check_count("number of columns of the series", series.ncols())?;
        if series.nrows() <= lags {
            let found = format!("{} for {lags} lags", series.nrows());
            return Err(Error::parameter("number of times", "more than there are lags", found));
        }
        check_finite("series", series, 0)?;
        Ok(Lagged { series, lags })
    }

    fn rows(&self) -> usize {
        self.series.nrows() - self.lags
    }

    /// Writes the rows from `first` on.
    fn fill(&self, first: usize, out: &mut Array2<R>) {
        let d = self.series.ncols();
        for (i, mut row) in out.rows_mut().into_iter().enumerate() {
            for lag in 0..self.lags {
                row.slice_mut(s![lag * d..(lag + 1) * d]).assign(&self.series.row(first + i + self.lags - 1 - lag));
            }
        }
    }

    /// All rows and targets at once.
    pub fn arrays(&self) -> (Array2<R>, Array2<R>) {
        let mut rows = Array2::from_elem((self.rows(), self.input_dim()), R::ZERO);
        self.fill(0, &mut rows);
        (rows, self.series.slice(s![self.lags.., ..]).to_owned())
    }
}

impl<R: Real> RowSource<R> for Lagged<'_, R> {
    fn input_dim(&self) -> usize {
        self.lags * self.series.ncols()
    }

    fn target_dim(&self) -> usize {
        self.series.ncols()
    }

    fn len_hint(&self) -> Option<usize> {
        Some(self.rows())
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        for first in (0..self.rows()).step_by(PIECE) {
            let n = PIECE.min(self.rows() - first);
            let mut rows = Array2::from_elem((n, self.input_dim()), R::ZERO);
            self.fill(first, &mut rows);
            let targets = self.series.slice(s![self.lags + first..self.lags + first + n, ..]);
            visit(RowBlock { rows: rows.view(), targets, weights: None })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_rows_of_the_arrays() {
        let series = Array2::from_shape_fn((2500, 3), |(i, j)| (10 * i + j) as f64);
        let mut source = Lagged::new(series.view(), 4).unwrap();
        let (rows, targets) = source.arrays();
        assert_eq!((rows.dim(), source.len_hint()), ((2496, 12), Some(2496)));
        assert_eq!(rows[[7, 3]], series[[9, 0]]);
        let mut first = 0;
        let visit = &mut |block: RowBlock<'_, f64>| {
            let range = first..first + block.rows.nrows();
            assert_eq!(block.rows, rows.slice(s![range.clone(), ..]));
            assert_eq!(block.targets, targets.slice(s![range.clone(), ..]));
            first = range.end;
            Ok(())
        };
        source.for_each_block(visit).unwrap();
        assert_eq!(first, 2496);
        assert!(Lagged::new(series.slice(s![..4, ..]), 4).is_err());
        assert!(Lagged::new(series.view(), 0).is_err());
    }
}
