//! New rows through a model: what was done in training, then one prediction per row.
//!
//! ```
//! use bochner_table::predict::{NewCells, Use, open, predict};
//! use bochner_table::progress::Unwatched;
//! use bochner_table::{fit::Request, read::Options};
//! # let file = std::env::temp_dir().join(format!("bochner-predict-{}.csv", std::process::id()));
//! # let rows: String = (0..60).map(|i| format!("{},{}\n", i % 7, (i % 7) * (i % 7))).collect();
//! # std::fs::write(&file, format!("x,y\n{rows}"))?;
//! let model = bochner_table::fit(&file, "y", &Request { budget: 1.0, ..Request::default() })?.model;
//! let data = open(&model, &file, None, Options::default(), true, NewCells::default())?;
//! assert_eq!(predict(&model, &data, Use { scored: true, ..Use::default() }, &Unwatched)?.rows, 60);
//! # std::fs::remove_file(file)?;
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::job::fitted_kinds;
use crate::model::TableModel;
use crate::pipeline::{Pipeline, stopped};
use crate::progress::Watch;
use crate::read::{Data, Input, Largest, Missing, Options, Selection, Unknown};
use crate::score::Compared;
use crate::write::{Block, Layout, Sheet};
use bochner::catalogue::{Answers, Task};
use bochner::persist::Label;
use bochner::rows::RowSource;
use bochner::scalar::Real;
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2, Axis, concatenate, s};
use std::path::Path;

/// What is done to cells of new rows that a model cannot use.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewCells {
    /// What is done to empty ones; `None` does what was done in training, but leaves no rows out.
    pub missing: Option<Missing>,
    /// Words that did not occur in training.
    pub unknown: Unknown,
    /// Whether rows with cells that cannot be understood are kept, with an empty answer, rather than to stop at the first one.
    pub keep_rows: bool,
}

/// Rows predicted at once.
const PIECE: usize = 4096;

/// Opens a file with the columns of a model, to be read once.
///
/// # Errors
/// If the file cannot be read, or has not the columns of the model.
pub fn open(
    model: &TableModel,
    data: &Path,
    labels: Option<&Path>,
    options: Options,
    targets: bool,
    cells: NewCells,
) -> Outcome<Data> {
    let single = model.model.precision() == f32::NAME;
    let largest = match single {
        true => Largest::single("too large for single precision, in which the model computes"),
        false => Largest::DOUBLE,
    };
    let labels = labels.map(Input::open).transpose()?;
    let means = model.pipeline.as_ref().and_then(Pipeline::means);
    let advice = match means {
        Some(_) => {
            "the value is missing, and the model was trained on rows without gaps; --impute mean (of the training rows) or \
             --impute zero fills such cells in"
        }
        None => {
            "the value is missing, and the model was trained on rows without gaps; --impute zero fills such cells in"
        }
    };
    let trained = model.pipeline.as_ref().map_or(Missing::Refuse, |pipeline| pipeline.missing);
    let refused = |message: &str| Err(Failure::Usage(message.into()));
    let missing = match cells.missing {
        Some(Missing::Mean) if means.is_none() => {
            return refused(
                "--impute mean: the model does not know the means of its columns; --impute zero needs none",
            );
        }
        Some(Missing::Median) => {
            return refused("--impute median: a model does not know the medians of its columns; use mean or zero");
        }
        // Rows must not disappear from under their predictions.
        None if trained == Missing::Drop => Missing::Refuse,
        asked => asked.unwrap_or(trained),
    };
    let NewCells { unknown, keep_rows, .. } = cells;
    let keep_rows = keep_rows && missing != Missing::Drop;
    let options = Options { advice: Some(advice), unknown, keep_rows, missing, largest: Some(largest), ..options };
    let Some(pipeline) = &model.pipeline else {
        return Ok(Data::open(Input::open(data)?, labels, &Selection::default(), &options)?);
    };
    let mut schema = pipeline.schema.clone();
    match cells.missing {
        Some(Missing::Drop) => schema.fill(|_| None),
        Some(Missing::Mean) => schema.fill(|at| Some(means.map_or(0.0, |means| means[at]))),
        Some(Missing::Zero) => schema.fill(|_| Some(0.0)),
        _ => {}
    }
    Ok(Data::open_with(Input::open_once(data)?, labels, &schema, targets, &options)?)
}

/// What happens to predictions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Use<'a> {
    /// Written to a file, or to standard output where there is no name.
    pub written: Option<Option<&'a Path>>,
    /// Standard deviations are written beside them.
    pub deviations: bool,
    /// Standard deviations leave the noise of observations out.
    pub without_noise: bool,
    /// Probabilities of every class are written beside them.
    pub probabilities: bool,
    /// Ends of intervals that cover new rows with this probability are written beside them; of classes, which of them belong
    /// to a set that covers.
    pub interval: Option<f64>,
    /// Compared with the targets in the file.
    pub scored: bool,
}

/// What was predicted.
#[derive(Debug)]
pub struct Predicted {
    /// Their number.
    pub rows: usize,
    /// How many of them are empty, as their rows could not be understood.
    pub unanswered: usize,
    /// Beside the truth, where they were compared.
    pub compared: Option<Compared>,
}

/// Predicts all rows of a file that [`open`] has opened.
///
/// # Errors
/// If the model cannot answer what is asked for, if the file cannot be read or the predictions not be written, or if the user
/// asked to stop.
pub fn predict(model: &TableModel, data: &Data, purpose: Use<'_>, watch: &dyn Watch) -> Outcome<Predicted> {
    let scored = purpose.scored;
    if scored && data.schema().targets.is_empty() {
        let message = format!("{}: --score needs the targets in the file, or --labels FILE", data.input().name);
        return Err(Failure::Usage(message));
    }
    check(purpose, model)?;
    let mut answers = purpose.written.map(|out| Answered::create(model, purpose, out)).transpose()?;
    let progress = watch.reading(data.input(), "predicting")?;
    let (mut truth, mut predicted) = (Vec::new(), Vec::new());
    let (mut rows_before, mut compared_rows, mut empty) = (0, 0, 0);
    data.rows::<f64>().for_each_block(&mut |block| {
        for start in (0..block.rows.nrows()).step_by(PIECE) {
            let range = start..(start + PIECE).min(block.rows.nrows());
            let mut rows = block.rows.slice(s![range.clone(), ..]).to_owned();
            // Rows that could not be understood keep their places.
            let mut unanswered = Vec::new();
            for (i, mut row) in rows.rows_mut().into_iter().enumerate() {
                if row.iter().any(|value| value.is_nan()) {
                    row.fill(0.0);
                    unanswered.push(i);
                }
            }
            empty += unanswered.len();
            let rows = model.prepared(rows.view())?;
            let found = model.predict_prepared(rows.view())?;
            if scored {
                for (i, (row, found)) in
                    block.targets.slice(s![range, ..]).rows().into_iter().zip(found.rows()).enumerate()
                {
                    if row.iter().any(|value| value.is_nan()) || unanswered.contains(&i) {
                        continue;
                    }
                    for value in row {
                        truth.push(true_target(model, *value, rows_before + start + i)?);
                    }
                    predicted.extend(found);
                    compared_rows += 1;
                }
            }
            if let Some(answers) = &mut answers {
                answers.push(rows.view(), found, &unanswered).map_err(stopped)?;
            }
        }
        rows_before += block.rows.nrows();
        // Whoever sends rows one by one waits for the answers.
        if let Some(answers) = answers.as_mut().filter(|_| data.input().is_stream()) {
            answers.sheet.flush().map_err(stopped)?;
        }
        progress.read().map_err(stopped)
    })?;
    drop(progress);
    if scored && compared_rows == 0 {
        return Err(Failure::Failed(format!("{}: there are no rows to compare with predictions", data.input().name)));
    }
    answers.map_or(Ok(()), |answers| answers.sheet.finish())?;
    let compared = || {
        let shape = (compared_rows, predicted.len().checked_div(compared_rows).unwrap_or(0));
        let shaped = |values| Array2::from_shape_vec(shape, values).map_err(|e| Failure::Failed(e.to_string()));
        Ok::<_, Failure>(Compared { task: model.task(), truth: shaped(truth)?, predicted: shaped(predicted)? })
    };
    Ok(Predicted { rows: rows_before, unanswered: empty, compared: scored.then(compared).transpose()? })
}

/// Refuses what this kind of model cannot answer.
fn check(purpose: Use<'_>, model: &TableModel) -> Outcome {
    if let Some(coverage) = purpose.interval {
        model.half_widths(coverage).map_err(|error| Failure::Failed(format!("--interval {coverage}: {error}")))?;
    }
    let kind = model.model.kind();
    let usage = |message: &str| Err(Failure::Usage(message.into()));
    let (asked, option, what, has): (_, _, _, fn(&Answers) -> bool) = match kind.task {
        Task::Regression if purpose.probabilities => {
            return usage("--probabilities: this model predicts numbers, not classes");
        }
        Task::Classification if purpose.deviations => {
            return usage("--std: this model predicts classes; --probabilities says how sure it is");
        }
        Task::Regression => (purpose.deviations, "--std", "standard deviations", |answers| answers.deviations),
        Task::Classification => {
            (purpose.probabilities, "--probabilities", "probabilities", |answers| answers.probabilities)
        }
    };
    if !asked || has(&kind.answers) || (purpose.probabilities && model.has_probabilities()) {
        return Ok(());
    }
    let others = fitted_kinds().filter(|other| other.task == kind.task && has(&other.answers));
    let (title, others) = (kind.entry.title, others.map(|other| other.option).collect::<Vec<_>>().join(" or "));
    let message = format!("{option}: {title} has no {what}; bochner fit --model {others} trains one that has");
    Err(Failure::Failed(message))
}

/// A true target as [`TableModel::predict`] gives predicted ones.
fn true_target(model: &TableModel, value: f64, row: usize) -> Result<f64> {
    let labels = model.pipeline.as_ref().filter(|_| model.task() == Task::Classification);
    let Some(pipeline) = labels else { return Ok(value) };
    let unknown = || Error::parameter("targets", "classes the model knows", format!("{value} in row {}", row + 1));
    pipeline.class_of(value).map(|class| class as f64).ok_or_else(unknown)
}

/// Predictions on their way out.
struct Answered<'a> {
    model: &'a TableModel,
    purpose: Use<'a>,
    /// Whether labels are written as words; numbers are written as numbers.
    in_words: bool,
    /// Whether probabilities stand alone: an .npy file cannot hold labels beside them.
    alone: bool,
    sheet: Sheet,
}

impl<'a> Answered<'a> {
    fn create(model: &'a TableModel, purpose: Use<'a>, out: Option<&Path>) -> Outcome<Self> {
        let alone = purpose.probabilities && out.is_some_and(|p| p.extension().is_some_and(|e| e == "npy"));
        let mut labels = model.model.classes().into_iter().flatten();
        let in_words = !alone && labels.any(|label| matches!(label, Label::Flag(_) | Label::Word(_)));
        let mut numbers: Vec<String> = match &model.pipeline {
            _ if alone => Vec::new(),
            Some(pipeline) => pipeline.schema.targets.iter().map(|c| c.name.clone()).collect(),
            None => vec!["prediction".into()],
        };
        let words = in_words.then(|| (numbers.remove(0), model.class_names()));
        let names = numbers.clone();
        if purpose.deviations {
            numbers.extend(names.iter().map(|name| format!("{name}_std")));
        }
        if purpose.interval.is_some() && model.task() == Task::Classification {
            numbers.extend(model.class_names().iter().map(|class| format!("set with {class}")));
        } else if purpose.interval.is_some() {
            numbers.extend(names.iter().flat_map(|name| ["low", "high"].map(|end| format!("{name}_{end}"))));
        }
        if purpose.probabilities {
            numbers.extend(model.class_names().iter().map(|class| format!("probability of {class}")));
        }
        let sheet = Sheet::create(out, Layout { words, numbers, single: false })?;
        Ok(Answered { model, purpose, in_words, alone, sheet })
    }

    /// Writes the predictions `found` for prepared rows, and what else was asked for; nothing for those that have no answer.
    fn push(&mut self, rows: ArrayView2<'_, f64>, found: Array2<f64>, unanswered: &[usize]) -> Outcome {
        let model = &self.model.model;
        let mut numbers = vec![Array2::zeros((rows.nrows(), 0))];
        let mut words = None;
        match self.model.task() {
            _ if self.alone => {}
            Task::Regression => numbers.push(found.clone()),
            Task::Classification if self.in_words => {
                words = Some(found.iter().map(|c| *c as usize).collect::<Vec<_>>())
            }
            Task::Classification => {
                let labels = model.classes().unwrap_or_default();
                numbers.push(found.mapv(|class| match labels.get(class as usize) {
                    Some(Label::Whole(label)) => *label as f64,
                    Some(Label::Real(label)) => *label,
                    _ => class,
                }));
            }
        }
        if self.purpose.deviations {
            numbers.push(self.model.deviations_prepared(rows, !self.purpose.without_noise)?);
        }
        if let Some(coverage) = self.purpose.interval {
            numbers.push(match self.model.task() {
                Task::Regression => self.model.interval_ends(found.view(), coverage)?,
                Task::Classification => self.model.class_sets(model.probabilities(rows)?.view(), coverage)?,
            });
        }
        if self.purpose.probabilities {
            numbers.push(model.probabilities(rows)?);
        }
        let numbers: Vec<_> = numbers.iter().map(|part| part.view()).collect();
        let mut numbers = concatenate(Axis(1), &numbers).map_err(|e| Failure::Failed(e.to_string()))?;
        for &i in unanswered {
            numbers.row_mut(i).fill(f64::NAN);
            words.iter_mut().for_each(|words| words[i] = usize::MAX);
        }
        self.sheet.push(Block { words: words.as_deref(), numbers: numbers.view() })
    }
}
