//! Partial dependence: what a model predicts in the mean when one column is set to a value in every row.
//!
//! ```
//! # let file = std::env::temp_dir().join(format!("bochner-dependence-{}.csv", std::process::id()));
//! # let rows: String = (0..200).map(|i| format!("{},{},{}\n", i % 7, i % 3, 2 * (i % 7))).collect();
//! # std::fs::write(&file, format!("x,z,y\n{rows}"))?;
//! use bochner_table::{dependence::dependences, fit::Request};
//! let fitted = bochner_table::fit(&file, "y", &Request { budget: 1.0, ..Request::default() })?;
//! let found = dependences(&fitted, 1)?;
//! assert_eq!(found[0].column, "x");
//! # std::fs::remove_file(file)?;
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::Outcome;
use crate::fit::Trained;
use crate::read::Kind;
use bochner::catalogue::Task;
use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};

/// How predictions depend on a column, in the mean over rows that had no part in the fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dependence {
    /// Its name.
    pub column: String,
    /// Places of a column of numbers, or words.
    pub at: Places,
    /// What is predicted: names of targets, or of classes whose probabilities are.
    pub of: Vec<String>,
    /// One list for each of them, one number for each place.
    pub means: Vec<Vec<f64>>,
}

/// Where a column is set to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Places {
    /// Quantiles of its numbers.
    Numbers(Vec<f64>),
    /// Its words, all or the first ones.
    Words(Vec<String>),
}

/// Rows over which means are taken.
const ROWS: usize = 200;
/// Places of a column of numbers, and words of one of words, at most.
const NUMBERS: usize = 25;
const WORDS: usize = 20;
/// Classes that have a line.
const CLASSES: usize = 6;

/// The dependence on the columns that count most, `most` at most: those of numbers and of words.
///
/// # Errors
/// Those of predictions.
pub fn dependences(fitted: &Trained, most: usize) -> Outcome<Vec<Dependence>> {
    let rows = fitted.places.slice(s![..fitted.places.nrows().min(ROWS), ..]);
    let mut found = Vec::new();
    if rows.nrows() == 0 {
        return Ok(found);
    }
    for (name, share) in &fitted.importances {
        if found.len() == most || *share <= 0.01 {
            break;
        }
        let mut known = fitted.pipeline.schema.places();
        let Some((column, place)) = known.find(|(column, _)| column.name == *name) else { continue };
        let (start, width) = (place.start, place.len());
        let (at, settings): (Places, Vec<Vec<f64>>) = match &column.kind {
            Kind::Number { .. } => {
                let mut values = rows.column(start).to_vec();
                values.sort_by(f64::total_cmp);
                let last = values.len() - 1;
                let mut places: Vec<f64> = (0..NUMBERS).map(|k| values[k * last / (NUMBERS - 1)]).collect();
                places.dedup();
                // Beside a number there may be the mark of a gap: there is none.
                let setting = |place: &f64| std::iter::once(*place).chain(vec![0.0; width - 1]).collect();
                let settings = places.iter().map(setting).collect();
                (Places::Numbers(places), settings)
            }
            Kind::Words { values, .. } if width == values.len() => {
                let one = |k: usize| (0..width).map(|j| f64::from(u8::from(j == k))).collect();
                let count = width.min(WORDS);
                (Places::Words(values[..count].to_vec()), (0..count).map(one).collect())
            }
            Kind::Words { .. } | Kind::Time { .. } => continue,
        };
        if settings.len() < 2 {
            continue;
        }
        let mut means: Vec<Vec<f64>> = Vec::new();
        for setting in settings {
            let mut moved = rows.to_owned();
            for mut row in moved.rows_mut() {
                row.iter_mut().skip(start).zip(&setting).for_each(|(to, value)| *to = *value);
            }
            let predicted: Array2<f64> = match fitted.kind.task {
                Task::Classification if fitted.model.has_probabilities() => fitted.model.probabilities(moved.view())?,
                _ => fitted.model.predict(moved.view())?,
            };
            let row = predicted.mean_axis(ndarray::Axis(0)).map_or(Vec::new(), |mean| mean.to_vec());
            means.resize(row.len().min(CLASSES), Vec::new());
            means.iter_mut().zip(row).for_each(|(line, value)| line.push(value));
        }
        let names = match fitted.kind.task {
            Task::Classification => fitted.model.class_names(),
            Task::Regression => fitted.pipeline.schema.targets.iter().map(|target| target.name.clone()).collect(),
        };
        found.push(Dependence { column: name.clone(), at, of: names, means });
    }
    Ok(found)
}
