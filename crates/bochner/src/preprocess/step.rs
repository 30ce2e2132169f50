use super::{ColumnStatistics, LengthScale};
use crate::error::{Error, Result, check_dim, check_positive};
use crate::scalar::Real;
use ndarray::{ArrayViewMut2, Axis};
use serde::{Deserialize, Serialize};

/// Subtracts column means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Center {
    mean: Vec<f64>,
}

impl Center {
    /// Means of the rows seen.
    ///
    /// # Errors
    /// No rows seen.
    pub fn fit(seen: &ColumnStatistics) -> Result<Self> {
        seen.check_seen()?;
        Ok(Center { mean: seen.mean().to_vec() })
    }

    /// The subtracted means.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Centres `rows` in place.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn apply<R: Real>(&self, rows: ArrayViewMut2<'_, R>) -> Result<()> {
        each_column(rows, &self.mean, |v, &mean| v - mean)
    }
}

/// Subtracts column means and divides by standard deviations.
///
/// Columns that were constant become 0 for the training rows: nothing is divided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standardize {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

impl Standardize {
    /// Means and population standard deviations of the rows seen.
    ///
    /// # Errors
    /// No rows seen.
    pub fn fit(seen: &ColumnStatistics) -> Result<Self> {
        seen.check_seen()?;
        let scale = |j: usize| {
            let (mean, deviation) = (seen.mean()[j], seen.variance(j).sqrt());
            // A constant column leaves a spread of rounding errors only: at most a few last places of its value.
            if deviation <= 8.0 * f64::EPSILON * mean.abs() { 1.0 } else { deviation }
        };
        Ok(Standardize { mean: seen.mean().to_vec(), scale: (0..seen.mean().len()).map(scale).collect() })
    }

    /// Subtracts `mean` and divides by `scale`, one number of each per column.
    ///
    /// # Errors
    /// Different numbers of both, means that are not finite, and scales that are not positive and finite.
    pub fn new(mean: Vec<f64>, scale: Vec<f64>) -> Result<Self> {
        check_dim("number of standard deviations", mean.len(), scale.len())?;
        if let Some(m) = mean.iter().find(|m| !m.is_finite()) {
            return Err(Error::parameter("mean", "finite", m));
        }
        scale.iter().try_for_each(|&s| check_positive("scale", s))?;
        Ok(Standardize { mean, scale })
    }

    /// The subtracted means.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The divisors: standard deviations, 1 for constant columns.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// Standardises `rows` in place.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn apply<R: Real>(&self, rows: ArrayViewMut2<'_, R>) -> Result<()> {
        check_dim("number of standard deviations", self.mean.len(), self.scale.len())?;
        let both: Vec<(f64, f64)> = self.mean.iter().copied().zip(self.scale.iter().copied()).collect();
        each_column(rows, &both, |v, &(mean, scale)| (v - mean) / scale)
    }
}

/// Divides every row by its Euclidean norm; zero rows stay zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitNorm {}

impl UnitNorm {
    /// Normalises `rows` in place.
    pub fn apply<R: Real>(&self, mut rows: ArrayViewMut2<'_, R>) {
        for mut row in rows.axis_iter_mut(Axis(0)) {
            let largest = row.iter().fold(0.0f64, |a, &v| a.max(Real::to_f64(v).abs()));
            if largest == 0.0 {
                continue;
            }
            // Through the largest entry: squares of very large or small rows would leave the range of numbers.
            let sum: f64 = row.iter().map(|&v| (Real::to_f64(v) / largest).powi(2)).sum();
            let norm = sum.sqrt();
            row.mapv_inplace(|v| R::from_f64(Real::to_f64(v) / largest / norm));
        }
    }
}

/// Subtracts column minima, so that training rows have no negative entry.
///
/// New rows may fall below a minimum; they are shifted like the others and not cut off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftNonNegative {
    minimum: Vec<f64>,
}

impl ShiftNonNegative {
    /// Minima of the rows seen.
    ///
    /// # Errors
    /// No rows seen.
    pub fn fit(seen: &ColumnStatistics) -> Result<Self> {
        seen.check_seen()?;
        Ok(ShiftNonNegative { minimum: seen.minimum().to_vec() })
    }

    /// The subtracted minima.
    pub fn minimum(&self) -> &[f64] {
        &self.minimum
    }

    /// Shifts `rows` in place.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn apply<R: Real>(&self, rows: ArrayViewMut2<'_, R>) -> Result<()> {
        each_column(rows, &self.minimum, |v, &minimum| v - minimum)
    }
}

/// Makes every number 1 that is greater than the threshold, and 0 the others: what a light modulator with two states shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binarize {
    threshold: f64,
}

impl Binarize {
    /// Ones above `threshold`.
    ///
    /// # Errors
    /// A threshold that is not finite.
    pub fn new(threshold: f64) -> Result<Self> {
        if threshold.is_finite() {
            Ok(Binarize { threshold })
        } else {
            Err(Error::parameter("threshold", "a finite number", threshold))
        }
    }

    /// The threshold.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Binarises `rows` in place.
    pub fn apply<R: Real>(&self, mut rows: ArrayViewMut2<'_, R>) {
        rows.mapv_inplace(|v| if Real::to_f64(v) > self.threshold { R::ONE } else { R::ZERO });
    }
}

/// Multiplies rows by a square matrix, `x ↦ Lx`: rows in a metric that was learned.
///
/// ```
/// use bochner::preprocess::Metric;
/// let mut rows = ndarray::array![[1.0, 10.0]];
/// Metric::new(vec![vec![1.0, 2.0], vec![0.0, 3.0]])?.apply(rows.view_mut())?;
/// assert_eq!(rows, ndarray::array![[21.0, 30.0]]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// `L`, one row for every new column.
    matrix: Vec<Vec<f64>>,
}

impl Metric {
    /// Rows times `matrix`, which is given row by row.
    ///
    /// # Errors
    /// A matrix that is not square, or of numbers that are not finite.
    pub fn new(matrix: Vec<Vec<f64>>) -> Result<Self> {
        let metric = Metric { matrix };
        metric.check(metric.matrix.len())?;
        Ok(metric)
    }

    /// `L`, row by row.
    pub fn matrix(&self) -> &[Vec<f64>] {
        &self.matrix
    }

    /// Files may hold any matrix.
    fn check(&self, columns: usize) -> Result<()> {
        LengthScale::Metric(self.matrix.clone()).check(columns)
    }

    /// Multiplies `rows` in place.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn apply<R: Real>(&self, mut rows: ArrayViewMut2<'_, R>) -> Result<()> {
        check_dim("number of columns of rows", self.matrix.len(), rows.ncols())?;
        self.check(rows.ncols())?;
        let mut row: Vec<f64> = Vec::with_capacity(self.matrix.len());
        for mut to in rows.axis_iter_mut(Axis(0)) {
            row.clear();
            row.extend(to.iter().map(|v| Real::to_f64(*v)));
            for (to, weights) in to.iter_mut().zip(&self.matrix) {
                *to = R::from_f64(row.iter().zip(weights).map(|(x, l)| x * l).sum());
            }
        }
        Ok(())
    }
}

fn each_column<R: Real, T>(mut rows: ArrayViewMut2<'_, R>, values: &[T], f: impl Fn(f64, &T) -> f64) -> Result<()> {
    check_dim("number of columns of rows", values.len(), rows.ncols())?;
    for row in rows.axis_iter_mut(Axis(0)) {
        for (v, value) in row.into_iter().zip(values) {
            *v = R::from_f64(f(Real::to_f64(*v), value));
        }
    }
    Ok(())
}

/// Any step with what it learned, as stored in model files; computed in `f64` and rounded once.
///
/// ```
/// use bochner::preprocess::{ColumnStatistics, Preprocess, ShiftNonNegative, UnitNorm};
/// use ndarray::array;
/// let mut rows = array![[1.0, 5.0], [4.0, 9.0]];
/// let mut seen = ColumnStatistics::new(2);
/// seen.push(rows.view())?;
/// for step in [Preprocess::from(ShiftNonNegative::fit(&seen)?), UnitNorm {}.into()] {
///     step.apply(rows.view_mut())?;
/// }
/// assert_eq!(rows, array![[0.0, 0.0], [0.6, 0.8]]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Preprocess {
    /// Subtract means.
    #[serde(alias = "centre")]
    Center(Center),
    /// Subtract means and divide by standard deviations.
    Standardize(Standardize),
    /// Divide rows by their norms.
    UnitNorm(UnitNorm),
    /// Subtract minima.
    ShiftNonNegative(ShiftNonNegative),
    /// Ones above a threshold, zeros below.
    Binarize(Binarize),
    /// Multiply by a matrix.
    Metric(Metric),
}

impl Preprocess {
    /// Changes `rows` in place.
    ///
    /// # Errors
    /// Rows of another length than those the step was fitted on.
    pub fn apply<R: Real>(&self, rows: ArrayViewMut2<'_, R>) -> Result<()> {
        match self {
            Preprocess::Center(step) => step.apply(rows),
            Preprocess::Standardize(step) => step.apply(rows),
            Preprocess::UnitNorm(step) => {
                step.apply(rows);
                Ok(())
            }
            Preprocess::ShiftNonNegative(step) => step.apply(rows),
            Preprocess::Binarize(step) => {
                step.apply(rows);
                Ok(())
            }
            Preprocess::Metric(step) => step.apply(rows),
        }
    }
}

macro_rules! from {
    ($($step:ident),*) => {$(
        impl From<$step> for Preprocess {
            fn from(step: $step) -> Self {
                Preprocess::$step(step)
            }
        }
    )*};
}
from!(Center, Standardize, UnitNorm, ShiftNonNegative, Binarize, Metric);

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array, s};

    fn seen(rows: &Array2<f64>) -> ColumnStatistics {
        let mut seen = ColumnStatistics::new(rows.ncols());
        seen.push(rows.view()).unwrap();
        seen
    }

    #[test]
    fn standardised_columns_have_mean_zero_and_variance_one() {
        let mut rows = Array2::from_shape_fn((50, 3), |(i, j)| 1e4 * j as f64 + (j + 1) as f64 * (i as f64).cos());
        let step = Standardize::fit(&seen(&rows)).unwrap();
        step.apply(rows.view_mut()).unwrap();
        let after = seen(&rows);
        for j in 0..3 {
            assert!(after.mean()[j].abs() < 1e-11 && (after.variance(j) - 1.0).abs() < 1e-11);
        }
        assert!(step.apply(rows.slice_mut(s![.., ..2])).is_err());
    }

    #[test]
    fn constant_columns_become_zero() {
        for value in [0.0, 0.1, -3e8, 1.0 / 3.0] {
            let mut rows = Array2::from_elem((1000, 1), value);
            let step = Standardize::fit(&seen(&rows)).unwrap();
            assert_eq!(step.scale(), [1.0]);
            step.apply(rows.view_mut()).unwrap();
            assert!(rows.iter().all(|v: &f64| v.abs() <= 1e-15 * value.abs()), "{value}");
        }
    }

    #[test]
    fn norms_become_one_and_zero_rows_stay() {
        let mut rows = array![[3e-30f32, 4e-30], [0.0, 0.0], [-3e37, 4e37]];
        UnitNorm {}.apply(rows.view_mut());
        assert_eq!(rows, array![[0.6, 0.8], [0.0, 0.0], [-0.6, 0.8]]);
    }

    #[test]
    fn only_numbers_above_the_threshold_become_ones() {
        let mut rows = array![[0.0f32, 0.5], [0.5000001, -1.0]];
        Binarize::new(0.5).unwrap().apply(rows.view_mut());
        assert_eq!(rows, array![[0.0, 0.0], [1.0, 0.0]]);
        assert!(Binarize::new(f64::NAN).is_err());
    }

    #[test]
    fn given_scales_are_used_and_checked() {
        let mut rows = array![[3.0, 5.0]];
        Standardize::new(vec![1.0, 1.0], vec![2.0, 4.0]).unwrap().apply(rows.view_mut()).unwrap();
        assert_eq!(rows, array![[1.0, 1.0]]);
        assert!(Standardize::new(vec![0.0], vec![0.0]).is_err() && Standardize::new(vec![0.0], vec![]).is_err());
        assert!(Standardize::new(vec![f64::NAN], vec![1.0]).is_err());
    }

    #[test]
    fn steps_survive_a_file() {
        let rows = array![[1.0, 5.0], [4.0, 9.5]];
        let seen = seen(&rows);
        let steps: Vec<Preprocess> = vec![
            Center::fit(&seen).unwrap().into(),
            Standardize::fit(&seen).unwrap().into(),
            UnitNorm {}.into(),
            ShiftNonNegative::fit(&seen).unwrap().into(),
            Binarize::new(4.0).unwrap().into(),
            Metric::new(vec![vec![1.0, 0.5], vec![0.0, 2.0]]).unwrap().into(),
        ];
        // A matrix of a file that does not fit is refused, not used.
        let bad: Preprocess = serde_json::from_str(r#"{"step":"metric","matrix":[[1,2],[3]]}"#).unwrap();
        assert!(bad.apply(rows.clone().view_mut()).is_err() && Metric::new(vec![vec![f64::NAN]]).is_err());
        let text = serde_json::to_string(&steps).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Preprocess>>(&text).unwrap(), steps);
        assert!(serde_json::from_str::<Preprocess>(r#"{"step":"unit_norm","p":1}"#).is_err());
        assert!(Standardize::fit(&ColumnStatistics::new(3)).is_err());
    }
}
