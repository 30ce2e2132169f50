use super::median_distance;
use crate::error::{Error, Result, check_dim, check_positive};
use crate::parameter::Value;
use crate::random::Seed;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What divides rows before they meet a kernel at unit scale.
///
/// Written as a number, a list with one number per input, a matrix as a list of its rows, or `"median"` until data have
/// decided.
///
/// ```
/// use bochner::preprocess::LengthScale;
/// assert_eq!(serde_json::from_str::<LengthScale>("0.5").unwrap(), LengthScale::Same(0.5));
/// assert_eq!(serde_json::from_str::<LengthScale>("[1, 2]").unwrap(), LengthScale::PerInput(vec![1.0, 2.0]));
/// assert_eq!(serde_json::to_string(&LengthScale::Median).unwrap(), "\"median\"");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum LengthScale {
    /// One length scale for all inputs.
    Same(f64),
    /// One length scale for each input.
    PerInput(Vec<f64>),
    /// A linear metric: rows `x` become `Lx`, with as many rows and columns of `L` as there are inputs.
    Metric(Vec<Vec<f64>>),
    /// The median distance between rows, once they are known.
    Median,
}

/// Rows from which the median distance is computed when there are more: half a million pairs.
const MEDIAN_ROWS: usize = 1000;

impl LengthScale {
    /// The same scale with `Median` replaced by the median distance of at most 1,000 of `rows`.
    ///
    /// # Errors
    /// Fewer than two rows or equal rows, where the median is asked for; invalid scales otherwise.
    pub fn resolve<R: Real>(&self, rows: ArrayView2<'_, R>, seed: Seed) -> Result<LengthScale> {
        if *self == LengthScale::Median {
            return Ok(LengthScale::Same(median_distance(rows, seed, MEDIAN_ROWS)?));
        }
        self.check(rows.ncols())?;
        Ok(self.clone())
    }

    /// Accepts positive finite numbers, as many as there are inputs.
    ///
    /// # Errors
    /// Anything else, and a median that has not been resolved.
    pub fn check(&self, input_dim: usize) -> Result<()> {
        match self {
            LengthScale::Same(scale) => check_positive("length_scale", *scale),
            LengthScale::PerInput(scales) => {
                check_dim("number of length scales", input_dim, scales.len())?;
                scales.iter().try_for_each(|&scale| check_positive("length_scale", scale))
            }
            LengthScale::Metric(matrix) => {
                check_dim("number of rows of the metric", input_dim, matrix.len())?;
                for row in matrix {
                    check_dim("number of columns of the metric", input_dim, row.len())?;
                    if let Some(value) = row.iter().find(|v| !v.is_finite()) {
                        return Err(Error::parameter("length_scale", "a matrix of finite numbers", value));
                    }
                }
                Ok(())
            }
            LengthScale::Median => Err(Error::Unsupported {
                what: "length_scale \"median\"",
                reason: "it depends on data; resolve the description with rows first".into(),
            }),
        }
    }

    /// Rows as a kernel at unit scale sees them: over the length scales, or times the metric.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn divide(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.check(rows.ncols())?;
        Ok(match self {
            LengthScale::Same(scale) => &rows / *scale,
            LengthScale::PerInput(scales) => &rows / &ndarray::aview1(scales),
            LengthScale::Metric(matrix) => {
                let (n, d) = rows.dim();
                Array2::from_shape_fn((n, d), |(i, j)| rows.row(i).iter().zip(&matrix[j]).map(|(x, l)| x * l).sum())
            }
            LengthScale::Median => rows.to_owned(),
        })
    }
}

impl From<f64> for LengthScale {
    fn from(scale: f64) -> Self {
        LengthScale::Same(scale)
    }
}

impl<const D: usize> From<[f64; D]> for LengthScale {
    fn from(scales: [f64; D]) -> Self {
        LengthScale::PerInput(scales.to_vec())
    }
}

impl Serialize for LengthScale {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            LengthScale::Same(scale) => serializer.serialize_f64(*scale),
            LengthScale::PerInput(scales) => scales.serialize(serializer),
            LengthScale::Metric(matrix) => matrix.serialize(serializer),
            LengthScale::Median => serializer.serialize_str("median"),
        }
    }
}

impl<'de> Deserialize<'de> for LengthScale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let expected = "a number, a list of numbers, a matrix or \"median\"";
        let list = |values: &[Value]| values.iter().map(Value::number).collect::<Option<Vec<f64>>>();
        Value::read(deserializer, expected, |value| match value {
            Value::Word(word) if word == "median" => Some(LengthScale::Median),
            Value::List(rows) if matches!(rows.first(), Some(Value::List(_))) => {
                let row = |row: &Value| if let Value::List(values) = row { list(values) } else { None };
                rows.iter().map(row).collect::<Option<_>>().map(LengthScale::Metric)
            }
            Value::List(scales) => list(scales).map(LengthScale::PerInput),
            value => value.number().map(LengthScale::Same),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_median_becomes_a_number_and_numbers_stay() {
        let rows = array![[0.0, 0.0], [3.0, 4.0], [3.0, 4.5]];
        let seed = Seed::new(1);
        let resolved = LengthScale::Median.resolve(rows.view(), seed).unwrap();
        assert_eq!(resolved, LengthScale::Same(5.0));
        let list = LengthScale::PerInput(vec![1.0, 2.0]);
        assert_eq!(list.resolve(rows.view(), seed).unwrap(), list);
        assert!(LengthScale::PerInput(vec![1.0]).resolve(rows.view(), seed).is_err());
        assert!(LengthScale::Same(0.0).check(3).is_err());
        let metric = LengthScale::Metric(vec![vec![1.0, 2.0], vec![0.0, 3.0]]);
        let written = serde_json::to_string(&metric).unwrap();
        assert_eq!(serde_json::from_str::<LengthScale>(&written).unwrap(), metric);
        assert_eq!(metric.divide(array![[1.0, 10.0]].view()).unwrap(), array![[21.0, 30.0]]);
        assert!(metric.check(3).is_err() && LengthScale::Metric(vec![vec![f64::NAN]]).check(1).is_err());
        assert!(LengthScale::Median.check(3).is_err());
        assert!(serde_json::from_str::<LengthScale>("\"mean\"").is_err());
    }
}
