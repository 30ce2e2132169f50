use crate::error::{Error, Result, check_dim};
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// Columns as a learned map sees them: numbers without their outliers, ranks beside them, each with mean 0 and variance 1.
///
/// A column of numbers is centred at its median, divided by its interquartile range and clipped smoothly (`z/√(1 + (z/3)²)`), so that
/// a handful of readings that are thousands of times too large do not decide its unit. Where ranks tell something else, they
/// are a second column. Columns of two values are only centred and divided by their range, constant ones are left out.
///
/// ```
/// use bochner::preprocess::Views;
/// use ndarray::Array2;
/// let rows = Array2::from_shape_fn((100, 1), |(i, _)| if i == 7 { 1e6 } else { i as f64 });
/// let views = Views::fit(rows.view())?;
/// let seen = views.apply(rows.view())?;
/// assert!(seen.iter().all(|v| v.abs() < 5.0));
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Views {
    inputs: usize,
    views: Vec<View>,
}

/// One column that is made of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct View {
    column: usize,
    shape: Shape,
    mean: f64,
    scale: f64,
}

/// What is done to a number first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    /// Nothing.
    Plain,
    /// `z/√(1 + (z/3)²)` of `z = (x - center)/unit`.
    Clipped { center: f64, unit: f64 },
    /// The share of rows below, between these places.
    Ranks { places: Vec<f64>, shares: Vec<f64> },
}

/// Places between which ranks are interpolated.
const PLACES: usize = 128;
/// Different values from which a column has ranks.
const MANY_VALUES: usize = 10;
/// Correlation of numbers and ranks above which ranks tell nothing else.
const ALIKE: f64 = 0.98;
impl Shape {
    fn of(&self, x: f64) -> f64 {
        match self {
            Shape::Plain => x,
            Shape::Clipped { center, unit } => {
                let z = (x - center) / unit;
                // Squares of very large numbers leave the range: they are at the ends anyway.
                if z.abs() < 1e9 { z / (1.0 + (z / 3.0).powi(2)).sqrt() } else { 3.0 * z.signum() }
            }
            Shape::Ranks { places, shares } => {
                let above = places.partition_point(|place| *place <= x);
                match (above.checked_sub(1), places.get(above)) {
                    (None, _) => shares[0],
                    (Some(below), None) => shares[below],
                    (Some(below), Some(next)) => {
                        let part = (x - places[below]) / (next - places[below]);
                        shares[below] + part * (shares[above] - shares[below])
                    }
                }
            }
        }
    }
}

fn spread(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt())
}

impl View {
    /// Scaled to mean 0 and variance 1 over `column`.
    fn new(number: usize, shape: Shape, column: &[f64]) -> Option<(Self, Vec<f64>)> {
        let seen: Vec<f64> = column.iter().map(|x| shape.of(*x)).collect();
        let (mean, scale) = spread(&seen);
        let usable = mean.is_finite() && scale.is_finite() && scale > 1e-12 * mean.abs().max(f64::MIN_POSITIVE);
        usable.then_some((View { column: number, shape, mean, scale }, seen))
    }
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let ((mean_a, scale_a), (mean_b, scale_b)) = (spread(a), spread(b));
    let products = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum::<f64>();
    products / (a.len() as f64 * scale_a * scale_b)
}

/// The shares of rows below some of their values.
fn ranks(sorted: &[f64]) -> Shape {
    // A value counts as often as the root of its rows: zeros of nine rows in ten leave room for the others.
    let mut middles: Vec<(f64, f64)> = Vec::new();
    let mut total = 0.0;
    for equal in sorted.chunk_by(|a, b| a == b) {
        let weight = (equal.len() as f64).sqrt();
        middles.push((equal[0], total + 0.5 * weight));
        total += weight;
    }
    let count = PLACES.min(middles.len());
    let (mut places, mut shares): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for k in 0..count {
        // As far from each other in ranks as they can be.
        let share = k as f64 / (count - 1).max(1) as f64 * total;
        let at = middles.partition_point(|(_, middle)| *middle < share).min(middles.len() - 1);
        let (place, middle) = middles[at];
        if places.last() != Some(&place) {
            places.push(place);
            shares.push(middle / total);
        }
    }
    Shape::Ranks { places, shares }
}

impl Views {
    /// Views of the columns of some rows.
    ///
    /// # Errors
    /// No rows, numbers that are not finite, and rows whose columns are all constant.
    pub fn fit(rows: ArrayView2<'_, f64>) -> Result<Self> {
        crate::rows::check_finite("rows", rows, 0)?;
        if rows.nrows() == 0 {
            return Err(Error::parameter("rows", "at least one", "none"));
        }
        let mut views = Vec::new();
        for (number, column) in rows.axis_iter(Axis(1)).enumerate() {
            let column = column.to_vec();
            let mut sorted = column.clone();
            sorted.sort_by(f64::total_cmp);
            let different = 1 + sorted.windows(2).filter(|pair| pair[0] < pair[1]).count();
            let quantile = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
            if different <= 2 {
                let range = sorted[sorted.len() - 1] - sorted[0];
                if let Some((mut view, _)) = View::new(number, Shape::Plain, &column) {
                    // Divided by its deviation a category of one row in a thousand would be far from all others.
                    view.scale = range;
                    views.push(view);
                }
                continue;
            }
            // A normal column has 1.349 deviations between its quartiles, and is 0.7979 of one from its median in the mean.
            let (center, between) = (quantile(0.5), (quantile(0.75) - quantile(0.25)) / 1.349);
            let distance = column.iter().map(|v| (v - center).abs()).sum::<f64>() / column.len() as f64 / 0.7979;
            let unit = if between > 0.0 { between } else { distance };
            if !(unit.is_finite() && unit > 0.0) {
                continue;
            }
            let Some((clipped, seen)) = View::new(number, Shape::Clipped { center, unit }, &column) else {
                continue;
            };
            views.push(clipped);
            if different > MANY_VALUES
                && let Some((view, of_ranks)) = View::new(number, ranks(&sorted), &column)
                && correlation(&seen, &of_ranks).abs() < ALIKE
            {
                views.push(view);
            }
        }
        if views.is_empty() {
            return Err(Error::parameter("rows", "a column with at least two values", "constant columns"));
        }
        Ok(Views { inputs: rows.ncols(), views })
    }

    /// Columns of the rows.
    pub fn input_dim(&self) -> usize {
        self.inputs
    }

    /// Columns that are made of them.
    pub fn output_dim(&self) -> usize {
        self.views.len()
    }

    /// The column of the rows that each view is of.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.views.iter().map(|view| view.column)
    }

    /// How many views are ranks.
    pub fn of_ranks(&self) -> usize {
        self.views.iter().filter(|view| matches!(view.shape, Shape::Ranks { .. })).count()
    }

    /// Refuses numbers that no fit has made, such as those of a file that was changed.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<()> {
        let sound = |view: &View| {
            let shape = match &view.shape {
                Shape::Plain => true,
                Shape::Clipped { center, unit } => center.is_finite() && unit.is_finite() && *unit > 0.0,
                Shape::Ranks { places, shares } => {
                    !places.is_empty()
                        && places.len() == shares.len()
                        && places.iter().chain(shares).all(|v| v.is_finite())
                        && places.windows(2).all(|pair| pair[0] < pair[1])
                }
            };
            shape && view.column < self.inputs && view.mean.is_finite() && view.scale.is_finite() && view.scale > 0.0
        };
        match !self.views.is_empty() && self.views.iter().all(sound) {
            true => Ok(()),
            false => {
                Err(Error::parameter("views", "columns of the rows, finite numbers and ascending places", "others"))
            }
        }
    }

    /// The views of rows.
    ///
    /// # Errors
    /// Rows of another length.
    pub fn apply(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of columns of rows", self.inputs, rows.ncols())?;
        let mut out = Array2::zeros((rows.nrows(), self.views.len()));
        for (view, mut to) in self.views.iter().zip(out.columns_mut()) {
            let from = rows.column(view.column);
            to.iter_mut().zip(from).for_each(|(to, x)| *to = (view.shape.of(*x) - view.mean) / view.scale);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Array2<f64> {
        Array2::from_shape_fn((501, 4), |(i, j)| match j {
            0 => i as f64,
            1 => ((i % 251) as f64 / 40.0).exp(),
            2 => 7.0,
            _ => f64::from(i % 50 == 0),
        })
    }

    #[test]
    fn constant_columns_are_left_out_and_skewed_ones_get_ranks() {
        let views = Views::fit(rows().view()).unwrap();
        assert_eq!(views.columns().collect::<Vec<_>>(), [0, 1, 1, 3]);
        let seen = views.apply(rows().view()).unwrap();
        for j in [0, 1, 2] {
            let (mean, scale) = spread(&seen.column(j).to_vec());
            assert!(mean.abs() < 1e-12 && (scale - 1.0).abs() < 1e-12, "{j}");
        }
        // One row in fifty: 1 apart, not seven deviations.
        let ones = seen[[0, 3]] - seen[[1, 3]];
        assert!((ones - 1.0).abs() < 1e-12, "{ones}");
    }

    #[test]
    fn ranks_rise_between_their_ends_and_outliers_stay_near() {
        let views = Views::fit(rows().view()).unwrap();
        let new = Array2::from_shape_fn((5, 4), |(i, _)| [-1e300, 0.0, 3.0, 100.0, 1e300][i]);
        let seen = views.apply(new.view()).unwrap();
        for j in 0..4 {
            assert!(seen.column(j).windows(2).into_iter().all(|pair| pair[0] <= pair[1]), "{j}");
        }
        // Numbers end at three units from the median, ranks at the first and the last.
        for (view, seen) in views.views.iter().zip(seen.columns()) {
            let end =
                if matches!(view.shape, Shape::Plain) { f64::INFINITY } else { (3.0 + view.mean.abs()) / view.scale };
            assert!(seen.iter().all(|v| v.abs() <= end), "{view:?}");
        }
        assert!(views.apply(new.slice(ndarray::s![.., ..3])).is_err());
    }

    #[test]
    fn views_survive_a_file_and_lies_do_not() {
        let views = Views::fit(rows().view()).unwrap();
        let text = serde_json::to_string(&views).unwrap();
        let again: Views = serde_json::from_str(&text).unwrap();
        assert_eq!(again, views);
        assert!(again.check().is_ok());
        let lie: Views = serde_json::from_str(&text.replace("\"inputs\":4", "\"inputs\":2")).unwrap();
        assert!(lie.check().is_err());
        assert!(Views::fit(Array2::from_elem((5, 2), 1.0).view()).is_err());
        assert!(Views::fit(Array2::from_elem((5, 2), f64::NAN).view()).is_err());
    }
}
