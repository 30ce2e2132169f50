use crate::error::{Error, Result, check_dim};
use crate::scalar::Real;
use ndarray::{ArrayView2, Axis};

/// Count, mean, variance and minimum of every column, in one pass over blocks of rows.
///
/// Each block's moments are computed around the block's own mean and joined (Chan, Golub and LeVeque 1979), in `f64`
/// whatever the rows are: no digits are lost to a large mean.
///
/// ```
/// use bochner::preprocess::ColumnStatistics;
/// let mut seen = ColumnStatistics::new(1);
/// seen.push(ndarray::array![[1e9], [1e9 + 2.0]].view())?;
/// seen.push(ndarray::array![[1e9 + 4.0]].view())?;
/// assert_eq!((seen.mean()[0], seen.variance(0)), (1e9 + 2.0, 8.0 / 3.0));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnStatistics {
    count: usize,
    mean: Vec<f64>,
    /// Sums of squared deviations from the mean.
    spread: Vec<f64>,
    minimum: Vec<f64>,
}

impl ColumnStatistics {
    /// Nothing seen yet of rows of length `input_dim`.
    pub fn new(input_dim: usize) -> Self {
        ColumnStatistics {
            count: 0,
            mean: vec![0.0; input_dim],
            spread: vec![0.0; input_dim],
            minimum: vec![f64::INFINITY; input_dim],
        }
    }

    /// Looks at a block of rows.
    ///
    /// # Errors
    /// Rows of another length, NaN or infinities.
    pub fn push<R: Real>(&mut self, rows: ArrayView2<'_, R>) -> Result<()> {
        check_dim("number of columns of rows", self.mean.len(), rows.ncols())?;
        crate::rows::check_finite("rows", rows, self.count)?;
        let mut block = ColumnStatistics::new(rows.ncols());
        block.count = rows.nrows();
        let share = 1.0 / rows.nrows() as f64;
        // Row by row, so that a row-major block is read once per pass and in order.
        for_each_row(rows, |row| {
            for ((mean, minimum), &v) in block.mean.iter_mut().zip(&mut block.minimum).zip(row) {
                let v = Real::to_f64(v);
                // Divided before it is added: sums of large numbers stay finite.
                *mean += v * share;
                *minimum = if v < *minimum { v } else { *minimum };
            }
        });
        let mut residual = vec![0.0; rows.ncols()];
        for_each_row(rows, |row| {
            for (((spread, residual), mean), &v) in block.spread.iter_mut().zip(&mut residual).zip(&block.mean).zip(row)
            {
                let deviation = Real::to_f64(v) - mean;
                *spread += deviation * deviation;
                *residual += deviation;
            }
        });
        // The deviations' own mean is what rounding left in the first pass.
        for ((spread, residual), mean) in block.spread.iter_mut().zip(residual).zip(&mut block.mean) {
            let correction = residual / rows.nrows() as f64;
            *spread = (*spread - residual * correction).max(0.0);
            *mean += correction;
        }
        self.merge(&block)
    }

    /// Joins what two passes over different rows have seen.
    ///
    /// # Errors
    /// Different numbers of columns.
    pub fn merge(&mut self, other: &ColumnStatistics) -> Result<()> {
        check_dim("number of columns of rows", self.mean.len(), other.mean.len())?;
        if other.count == 0 {
            return Ok(());
        }
        let (a, b) = (self.count as f64, other.count as f64);
        for j in 0..self.mean.len() {
            let gap = other.mean[j] - self.mean[j];
            if self.count == 0 {
                (self.mean[j], self.spread[j]) = (other.mean[j], other.spread[j]);
            } else {
                self.mean[j] += gap * (b / (a + b));
                self.spread[j] += other.spread[j] + gap * gap * (a * b / (a + b));
            }
            self.minimum[j] = self.minimum[j].min(other.minimum[j]);
        }
        self.count += other.count;
        Ok(())
    }

    /// Number of rows seen.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Mean of every column.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Population variance of column `j` (divided by the count, as scikit-learn's `StandardScaler` does).
    pub fn variance(&self, j: usize) -> f64 {
        if self.count == 0 { 0.0 } else { self.spread[j] / self.count as f64 }
    }

    /// Smallest number of every column.
    pub fn minimum(&self) -> &[f64] {
        &self.minimum
    }

    pub(super) fn check_seen(&self) -> Result<()> {
        if self.count > 0 { Ok(()) } else { Err(Error::parameter("number of rows", "at least 1", 0)) }
    }
}

/// Hands over rows as slices, copied where they are not contiguous: other iterators go number by number.
fn for_each_row<R: Real>(rows: ArrayView2<'_, R>, mut visit: impl FnMut(&[R])) {
    let mut copy = Vec::new();
    for row in rows.axis_iter(Axis(0)) {
        match row.as_slice() {
            Some(row) => visit(row),
            None => {
                copy.clear();
                copy.extend(row.iter().copied());
                visit(&copy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};

    #[test]
    fn blocks_and_merges_give_the_moments_of_all_rows() {
        let x = Array2::from_shape_fn((101, 3), |(i, j)| 1e6 * j as f64 + ((i * (j + 2)) as f64 * 0.7).sin());
        let mut whole = ColumnStatistics::new(3);
        whole.push(x.view()).unwrap();
        let mut blocks = ColumnStatistics::new(3);
        let mut rest = ColumnStatistics::new(3);
        for start in (0..101).step_by(7) {
            let to = if start < 50 { &mut blocks } else { &mut rest };
            to.push(x.slice(s![start..(start + 7).min(101), ..])).unwrap();
        }
        blocks.merge(&rest).unwrap();
        assert_eq!(blocks.count(), 101);
        for j in 0..3 {
            let column: Vec<f64> = x.column(j).to_vec();
            let mean = column.iter().sum::<f64>() / 101.0;
            let variance = column.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 101.0;
            for found in [&whole, &blocks] {
                assert!((found.mean()[j] - mean).abs() <= 1e-15 * mean.abs() + 1e-15);
                assert!((found.variance(j) / variance - 1.0).abs() < 1e-9);
                assert_eq!(found.minimum()[j], column.iter().copied().fold(f64::INFINITY, f64::min));
            }
        }
    }

    #[test]
    fn bad_rows_are_named() {
        let mut seen = ColumnStatistics::new(2);
        assert!(seen.push(Array2::<f32>::zeros((3, 1)).view()).is_err());
        seen.push(Array2::<f32>::zeros((5, 2)).view()).unwrap();
        let error = seen.push(ndarray::array![[0.0f32, 1.0], [2.0, f32::NAN]].view()).unwrap_err();
        assert!(matches!(error, Error::NonFinite { row: 6, column: 1, .. }), "{error}");
    }
}
