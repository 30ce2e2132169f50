//! What is said of a model that does no better than guessing, and why that may be: only what the numbers of the fit show.
//!
//! ```
//! use bochner_table::doubt::Doubt;
//! let reasons = vec!["there are 20 rows for 50 columns".to_owned()];
//! let doubt = Doubt { sentence: "The model is no better than always answering with the mean.".into(), reasons };
//! assert!(doubt.in_words().ends_with("with the mean. There are 20 rows for 50 columns."));
//! ```

use crate::choose::Choice;
use crate::pipeline::Scan;
use crate::read::{Kind, Schema};
use crate::score::{Compared, Figure, Spread, guess_in_words};
use bochner::catalogue::Task;
use bochner::preprocess::median_distance;
use bochner::random::Seed;
use bochner::words;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// A model that does no better than guessing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// That it does not.
    pub sentence: String,
    /// Why that may be, as far as numbers show it.
    pub reasons: Vec<String>,
}

impl Doubt {
    /// All of it as sentences.
    pub fn in_words(&self) -> String {
        let sentence = |reason: &String| {
            let mut letters = reason.chars();
            let first = letters.next().into_iter().flat_map(char::to_uppercase);
            format!(" {}{}.", first.collect::<String>(), letters.as_str())
        };
        let reasons: String = self.reasons.iter().map(sentence).collect();
        format!("{}{reasons}", self.sentence)
    }

    /// What figures say, without reasons.
    pub fn of(figures: &[Figure]) -> Option<Self> {
        let sentences: Vec<String> = figures.iter().filter_map(Figure::doubt).collect();
        (!sentences.is_empty()).then(|| Doubt { sentence: sentences.join(" "), reasons: Vec::new() })
    }
}

/// Losses below this share are better than guessing.
const NO_GAIN: f64 = 0.98;
/// Rows for each column, below which there are few.
const FEW_ROWS: usize = 5;
/// Share of the spread of the truth, below which predictions are nearly one number.
const NEARLY_CONSTANT: f64 = 0.05;
/// Length scales between these multiples of the median distance tell rows apart.
const SCALES: std::ops::Range<f64> = 0.05..50.0;
/// Rows of which distances are taken.
const MOST_DISTANCES: usize = 500;

/// What a fit knows about its model.
pub(crate) struct Evidence<'a> {
    pub(crate) task: Task,
    pub(crate) schema: &'a Schema,
    pub(crate) scan: &'a Scan,
    /// A sample of prepared rows.
    pub(crate) rows: ArrayView2<'a, f64>,
    pub(crate) choice: &'a Choice,
    pub(crate) compared: &'a Compared,
    pub(crate) figures: &'a [Figure],
    /// Whether the user decided on the penalty.
    pub(crate) penalty_asked: bool,
    pub(crate) seed: Seed,
}

impl Evidence<'_> {
    /// That the model is no better than guessing, if it is not; where no rows were left for figures, those that the choice was
    /// made on tell.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let best = self.best_loss();
        let found = Doubt::of(self.figures).or_else(|| {
            let best = best.filter(|best| self.figures.is_empty() && *best >= NO_GAIN)?;
            let (guess, loss) = (guess_in_words(self.task), words::significant(best, 3));
            let sentence =
                format!("The model is no better than always answering with {guess}: the least loss was {loss}.");
            Some(Doubt { sentence, reasons: Vec::new() })
        })?;
        let reasons = [
            self.rows_for_columns(),
            self.judges(),
            self.nothing_tried(best),
            self.one_answer(),
            self.length_scale(),
            self.columns("is constant and says nothing", |column| Spread::of(column.iter().copied()).variance() == 0.0),
            self.columns(
                "has another whole number in every row, as numbers of rows have; --drop leaves it out",
                is_numbering,
            ),
        ];
        Some(Doubt { reasons: reasons.into_iter().flatten().collect(), ..found })
    }

    fn best_loss(&self) -> Option<f64> {
        let losses = self.choice.trials.iter().map(|trial| trial.loss).filter(|loss| !loss.is_nan());
        losses.min_by(f64::total_cmp)
    }

    fn rows_for_columns(&self) -> Option<String> {
        let (rows, columns) = (self.scan.rows, self.schema.input_dim());
        let few = rows < FEW_ROWS * columns;
        few.then(|| format!("there are {} for {}", words::things(rows, "row"), words::things(columns, "column")))
    }

    /// A difference that may be there, but that so few rows cannot show.
    fn judges(&self) -> Option<String> {
        let unclear = self.figures.iter().any(|figure| figure.doubt().is_some_and(|said| said.contains("not clearly")));
        let rows = words::things(self.compared.truth.nrows(), "row");
        unclear.then(|| format!("the difference is less than two standard errors on {rows}: chance may explain it"))
    }

    fn nothing_tried(&self, best: Option<f64>) -> Option<String> {
        let (best, tried) = (best?, self.choice.trials.len());
        let names: Vec<&str> = self.schema.targets.iter().map(|column| column.name.as_str()).collect();
        match best >= NO_GAIN {
            true if tried > 1 => Some(format!(
                "nor did any of {} combinations of length scale, map and features that were tried on other rows do better: the \
                 columns may say nothing about {}",
                words::count(tried),
                names.join(", ")
            )),
            false => Some(format!(
                "on the rows of the choice the loss was {} %: rows may differ too much from each other for so few to judge",
                words::significant(100.0 * best, 2)
            )),
            true => None,
        }
    }

    /// Predictions that hardly depend on the row.
    fn one_answer(&self) -> Option<String> {
        let Compared { truth, predicted, .. } = self.compared;
        let deviation = |values: &Array2<f64>| Spread::of(values.column(0).iter().copied()).variance().sqrt();
        if truth.nrows() < 2 || truth.ncols() != 1 {
            return None;
        }
        let why = match self.penalty_asked {
            true => format!("the penalty {} was asked for", words::significant(self.choice.penalty, 3)),
            false => "the largest penalties were the best".to_owned(),
        };
        match self.task {
            Task::Regression => {
                let share = deviation(predicted) / deviation(truth);
                let said =
                    format!("predictions vary by {} % of what the target varies", words::significant(100.0 * share, 2));
                (share < NEARLY_CONSTANT).then(|| format!("{said}; {why}"))
            }
            Task::Classification => {
                (deviation(predicted) == 0.0).then(|| format!("every row is predicted to be of one class; {why}"))
            }
        }
    }

    /// A length scale at which all rows are alike, or none.
    fn length_scale(&self) -> Option<String> {
        let scale = self.choice.description.length_scale()?;
        let some = self.rows.slice(ndarray::s![..self.rows.nrows().min(MOST_DISTANCES), ..]);
        let ratio = scale / median_distance(some, self.seed, MOST_DISTANCES).ok()?;
        let alike = if ratio < 1.0 { "every row is unlike all others" } else { "all rows are alike" };
        let times = words::significant(ratio, 2);
        let said = || format!("the length scale is {times} times the median distance of two rows, where {alike}");
        (!SCALES.contains(&ratio)).then(said)
    }

    /// Which columns of numbers are of some kind.
    fn columns(&self, what: &str, which: impl Fn(&[f64]) -> bool) -> Option<String> {
        let (mut at, mut found) = (0, Vec::new());
        for column in &self.schema.inputs {
            if matches!(column.kind, Kind::Number { .. }) && which(&self.scan.sample.rows.column(at).to_vec()) {
                found.push(column.name.clone());
            }
            at += column.width();
        }
        match found.as_slice() {
            [] => None,
            [one] => Some(format!("column {one} {what}")),
            several => Some(format!("each of the columns {} {what}", words::some_of(several))),
        }
    }
}

/// Whether these are different whole numbers, as rows are numbered: not spread over many more than there are.
fn is_numbering(values: &[f64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let whole = sorted.iter().all(|value| value.fract() == 0.0);
    values.len() >= 20 && whole && sorted.windows(2).all(|pair| pair[0] < pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rows_are_told_from_measurements() {
        let numbers: Vec<f64> = (0..40).map(|i| f64::from((i * 7) % 40 + 1000)).collect();
        assert!(is_numbering(&numbers));
        assert!(!is_numbering(&numbers[..10]));
        assert!(!is_numbering(&numbers.iter().map(|v| v / 3.0).collect::<Vec<_>>()));
        assert!(!is_numbering(&numbers.iter().map(|v| v % 30.0).collect::<Vec<_>>()));
    }
}
