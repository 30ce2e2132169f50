use crate::error::{Error, Result, check_dim};
use crate::preprocess::{ColumnStatistics, median_distance};
use crate::random::Seed;
use ndarray::{ArrayView2, Axis, concatenate, s};

/// Rows from which scales are taken where a sample goes on behind them.
const FIRST: usize = 512;

/// Rows whose pairs give the median distance.
const PAIRED: usize = 1000;

/// Length scales of two samples together.
#[derive(Debug, Clone, PartialEq)]
pub struct PooledScale {
    /// One for every column: the median distance of two rows, times the standard deviation of the column where columns are
    /// standardized.
    pub lengths: Vec<f64>,
    /// So many of the first rows of each sample have been looked at apart from the others, and are to be
    /// [fixed](super::SampleSums::push_fixed_rows).
    pub fixed: (usize, usize),
}

/// Chooses length scales so that a permutation test keeps its level.
///
/// `x` and `y` are the samples, or as many of their first rows as are known; `whole` says which of them is all there is. From whole samples
/// the scales are a function of all rows together, whichever sample they are in: a permutation does not change them. Otherwise they
/// are taken from a few hundred rows of the samples that go on, which then stay in their samples.
///
/// ```
/// use bochner::stats::pooled_scale;
/// let (x, y) = (ndarray::array![[0.0, 10.0], [2.0, 30.0]], ndarray::array![[0.0, 10.0], [2.0, 30.0]]);
/// let found = pooled_scale(x.view(), y.view(), (true, true), true, 0)?;
/// assert!((found.lengths[1] / found.lengths[0] - 10.0).abs() < 1e-12);
/// assert_eq!(found.fixed, (0, 0));
/// # Ok::<(), bochner::Error>(())
/// ```
///
/// # Errors
/// Different numbers of columns, NaN or infinities.
pub fn pooled_scale(
    x: ArrayView2<'_, f64>,
    y: ArrayView2<'_, f64>,
    whole: (bool, bool),
    standardize: bool,
    seed: u64,
) -> Result<PooledScale> {
    check_dim("number of columns of y", x.ncols(), y.ncols())?;
    let first = |rows: ArrayView2<'_, f64>, whole: bool, other: bool| match (whole, other) {
        (true, _) => 0,
        (false, true) => rows.nrows().min(FIRST),
        (false, false) => rows.nrows().min(FIRST / 2),
    };
    let fixed = (first(x, whole.0, whole.1), first(y, whole.1, whole.0));
    let used = match whole {
        (true, true) => concatenate(Axis(0), &[x, y]),
        _ => concatenate(Axis(0), &[x.slice(s![..fixed.0, ..]), y.slice(s![..fixed.1, ..])]),
    };
    let mut used = used.map_err(|_| Error::overflow())?;
    let mut lengths = vec![1.0; used.ncols()];
    let mut seen = ColumnStatistics::new(used.ncols());
    if used.nrows() < 2 {
        return Ok(PooledScale { lengths, fixed });
    }
    seen.push(used.view())?;
    if standardize {
        for (j, mut column) in used.columns_mut().into_iter().enumerate() {
            let deviation = seen.variance(j).sqrt();
            if deviation > 0.0 {
                column.mapv_inplace(|v| (v - seen.mean()[j]) / deviation);
                lengths[j] = deviation;
            }
        }
    }
    // Rows that are all equal have no distance, and any other does.
    let median = match median_distance(used.view(), Seed::new(seed), PAIRED) {
        Err(Error::Unsupported { .. }) => 1.0,
        median => median?,
    };
    lengths.iter_mut().for_each(|length| *length *= median);
    Ok(PooledScale { lengths, fixed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn scales_of_whole_samples_do_not_know_which_row_is_where() {
        let rows = Array2::from_shape_fn((40, 3), |(i, j)| ((i * (j + 2)) as f64 * 0.7).sin() * (j + 1) as f64);
        let (x, y) = (rows.slice(s![..15, ..]), rows.slice(s![15.., ..]));
        let one = pooled_scale(x, y, (true, true), true, 3).unwrap();
        let other = pooled_scale(y, x, (true, true), true, 3).unwrap();
        for (a, b) in one.lengths.iter().zip(&other.lengths) {
            assert!((a / b - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn only_rows_that_are_to_stay_are_looked_at() {
        let rows = Array2::from_shape_fn((2000, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.7).sin());
        let found = pooled_scale(rows.view(), rows.view(), (false, true), true, 3).unwrap();
        assert_eq!(found.fixed, (512, 0));
        let mut other = rows.clone();
        other.slice_mut(s![512.., ..]).fill(9.0);
        assert_eq!(found, pooled_scale(other.view(), other.view(), (false, true), true, 3).unwrap());
        assert_eq!(pooled_scale(rows.view(), rows.view(), (false, false), true, 3).unwrap().fixed, (256, 256));
        let equal = Array2::from_elem((9, 2), 4.0);
        assert_eq!(pooled_scale(equal.view(), equal.view(), (true, true), true, 3).unwrap().lengths, [1.0, 1.0]);
        assert!(pooled_scale(equal.view(), rows.slice(s![.., ..1]), (true, true), true, 3).is_err());
    }
}
