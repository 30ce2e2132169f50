//! New rows through a model: what was done in training, then one prediction per row.

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
use ndarray::{Array2, concatenate};
use std::path::Path;

/// What fills empty cells of new rows in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Fill {
    /// The column's mean in training
    Mean,
    /// Zero
    Zero,
}

/// What is done to cells of new rows that a model cannot use.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewCells {
    /// `None` does what was done in training.
    pub fill: Option<Fill>,
    /// Whether rows with gaps may be left out.
    pub drop: bool,
    pub unknown: Unknown,
}

/// Columns beside the predictions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Columns {
    /// Standard deviations.
    pub deviations: bool,
    /// Of every class.
    pub probabilities: bool,
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
    let largest = if single {
        Largest::single("too large for single precision, in which the model computes")
    } else {
        Largest::DOUBLE
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
    let missing = match cells.fill {
        Some(Fill::Mean) if means.is_none() => {
            let message = "--impute mean: the model does not know the means of its columns; --impute zero needs none";
            return Err(Failure::Usage(message.into()));
        }
        Some(Fill::Mean) => Missing::Mean,
        Some(Fill::Zero) => Missing::Zero,
        None if cells.drop => Missing::Drop,
        // Rows must not disappear from under their predictions.
        None if trained == Missing::Drop => Missing::Refuse,
        None => trained,
    };
    let options = Options { advice: Some(advice), unknown: cells.unknown, missing, largest: Some(largest), ..options };
    let Some(pipeline) = &model.pipeline else {
        return Ok(Data::open(Input::open(data)?, labels, &Selection::default(), &options)?);
    };
    let mut schema = pipeline.schema.clone();
    if cells.drop {
        schema.fill(|_| None);
    } else if let Some(fill) = cells.fill {
        schema.fill(|at| Some(if fill == Fill::Mean { means.map_or(0.0, |means| means[at]) } else { 0.0 }));
    }
    Ok(Data::open_with(Input::open_once(data)?, labels, &schema, targets, &options)?)
}

/// What happens to predictions.
#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    /// Written to a file, or to standard output where there is no name.
    pub written: Option<Option<&'a Path>>,
    pub columns: Columns,
    /// Compared with the targets in the file.
    pub scored: bool,
}

/// What was predicted.
#[derive(Debug)]
pub struct Predicted {
    pub rows: usize,
    /// Beside the truth, where they were compared.
    pub compared: Option<Compared>,
}

/// Predicts all rows of a file that [`open`] has opened.
///
/// # Errors
/// If the model cannot answer what is asked for, if the file cannot be read or the predictions not be written, or if the user
/// asked to stop.
pub fn predict(model: &TableModel, data: &Data, purpose: Use<'_>, watch: &dyn Watch) -> Outcome<Predicted> {
    let Use { written, columns, scored } = purpose;
    if scored && data.schema().targets.is_empty() {
        let message = format!("{}: --score needs the targets in the file, or --labels FILE", data.input().name);
        return Err(Failure::Usage(message));
    }
    check(columns, model)?;
    let mut sheet = written.map(|out| Sheet::create(out, layout(columns, out, model))).transpose()?;
    let out = written.flatten();
    let progress = watch.reading(data.input(), "predicting")?;
    let (mut truth, mut predicted) = (Vec::new(), Vec::new());
    let mut rows_before = 0;
    data.rows::<f64>().for_each_block(&mut |block| {
        for start in (0..block.rows.nrows()).step_by(PIECE) {
            let range = start..(start + PIECE).min(block.rows.nrows());
            let mut rows = block.rows.slice(ndarray::s![range.clone(), ..]).to_owned();
            if let Some(pipeline) = &model.pipeline {
                pipeline.apply(rows.view_mut())?;
            }
            let found = model.predict_prepared(rows.view())?;
            if scored {
                let targets = block.targets.slice(ndarray::s![range.clone(), ..]);
                collect(model, targets, rows_before + start, &mut truth)?;
                predicted.extend(found.iter().copied());
            }
            if let Some(sheet) = &mut sheet {
                write_rows(columns, out, model, sheet, rows.view(), found).map_err(stopped)?;
            }
        }
        rows_before += block.rows.nrows();
        // Whoever sends rows one by one waits for the answers.
        if let Some(sheet) = sheet.as_mut().filter(|_| data.input().is_stream()) {
            sheet.flush().map_err(stopped)?;
        }
        progress.read().map_err(stopped)
    })?;
    drop(progress);
    if scored && rows_before == 0 {
        return Err(Failure::Failed(format!("{}: there are no rows to compare with predictions", data.input().name)));
    }
    sheet.map_or(Ok(()), Sheet::finish)?;
    let compared = || {
        let shape = (rows_before, predicted.len().checked_div(rows_before).unwrap_or(0));
        let shaped = |values| Array2::from_shape_vec(shape, values).map_err(|e| Failure::Failed(e.to_string()));
        Ok::<_, Failure>(Compared { task: model.task(), truth: shaped(truth)?, predicted: shaped(predicted)? })
    };
    Ok(Predicted { rows: rows_before, compared: if scored { Some(compared()?) } else { None } })
}

/// Refuses what this kind of model cannot answer.
fn check(columns: Columns, model: &TableModel) -> Outcome {
    let kind = model.model.kind();
    let lacks = |option: &str, what: &str, has: fn(&Answers) -> bool| {
        let others = fitted_kinds().filter(|other| other.task == kind.task && has(&other.answers));
        let others: Vec<&str> = others.map(|other| other.option).collect();
        let (title, others) = (kind.entry.title, others.join(" or "));
        Failure::Failed(format!("{option}: {title} has no {what}; bochner fit --model {others} trains one that has"))
    };
    match kind.task {
        Task::Regression if columns.probabilities => {
            Err(Failure::Usage("--probabilities: this model predicts numbers, not classes".into()))
        }
        Task::Classification if columns.deviations => {
            Err(Failure::Usage("--std: this model predicts classes; --probabilities says how sure it is".into()))
        }
        _ if columns.probabilities && !kind.answers.probabilities => {
            Err(lacks("--probabilities", "probabilities", |answers| answers.probabilities))
        }
        _ if columns.deviations && !kind.answers.deviations => {
            Err(lacks("--std", "standard deviations", |answers| answers.deviations))
        }
        _ => Ok(()),
    }
}

/// True targets as [`TableModel::predict`] gives predicted ones.
fn collect(
    model: &TableModel,
    targets: ndarray::ArrayView2<'_, f64>,
    first_row: usize,
    truth: &mut Vec<f64>,
) -> bochner::Result<()> {
    for (i, &value) in targets.iter().enumerate() {
        let labels = model.pipeline.as_ref().filter(|_| model.task() == Task::Classification);
        truth.push(match labels {
            None => value,
            Some(pipeline) => pipeline.class_of(value).map(|c| c as f64).ok_or_else(|| bochner::Error::Parameter {
                name: "targets",
                expected: "classes the model knows".into(),
                found: format!("{value} in row {}", first_row + i + 1),
            })?,
        });
    }
    Ok(())
}

fn target_names(pipeline: Option<&Pipeline>, columns: usize) -> Vec<String> {
    match pipeline {
        Some(pipeline) => pipeline.schema.targets.iter().map(|c| c.name.clone()).collect(),
        None if columns == 1 => vec!["prediction".into()],
        None => (1..=columns).map(|j| format!("prediction_{j}")).collect(),
    }
}

/// Whether labels are written as words; numbers are written as numbers.
fn in_words(model: &TableModel) -> bool {
    model.model.classes().is_some_and(|c| c.iter().any(|label| matches!(label, Label::Flag(_) | Label::Word(_))))
}

/// An array of probabilities alone: an .npy file cannot hold labels beside them.
fn only_probabilities(columns: Columns, out: Option<&Path>) -> bool {
    columns.probabilities && out.is_some_and(|p| p.extension().is_some_and(|e| e == "npy"))
}

fn layout(columns: Columns, out: Option<&Path>, model: &TableModel) -> Layout {
    let targets = match model.task() {
        Task::Classification => 1,
        Task::Regression => model.pipeline.as_ref().map_or(1, |p| p.schema.targets.len()),
    };
    let mut numbers = target_names(model.pipeline.as_ref(), targets);
    let mut words = None;
    if in_words(model) {
        words = Some((numbers.remove(0), model.class_names()));
    }
    if columns.deviations {
        let deviations: Vec<String> = numbers.iter().map(|n| format!("{n}_std")).collect();
        numbers.extend(deviations);
    }
    if columns.probabilities {
        if only_probabilities(columns, out) {
            (words, numbers) = (None, Vec::new());
        }
        numbers.extend(model.class_names().iter().map(|c| format!("probability of {c}")));
    }
    Layout { words, numbers, single: false }
}

fn write_rows(
    columns: Columns,
    out: Option<&Path>,
    model: &TableModel,
    sheet: &mut Sheet,
    rows: ndarray::ArrayView2<'_, f64>,
    found: Array2<f64>,
) -> Outcome {
    let n = found.nrows();
    let join = |parts: &[ndarray::ArrayView2<'_, f64>]| {
        concatenate(ndarray::Axis(1), parts).map_err(|e| Failure::Failed(e.to_string()))
    };
    let mut words = None;
    let mut numbers = match model.task() {
        Task::Regression => found,
        Task::Classification => {
            let classes: Vec<usize> = found.iter().map(|c| *c as usize).collect();
            let names = model.model.classes().unwrap_or_default();
            let label = |c: usize| match names.get(c) {
                Some(Label::Whole(label)) => *label as f64,
                Some(Label::Real(label)) => *label,
                _ => c as f64,
            };
            let labels = Array2::from_shape_fn((n, 1), |(i, _)| label(classes[i]));
            words = in_words(model).then_some(classes);
            if words.is_some() { Array2::zeros((n, 0)) } else { labels }
        }
    };
    if columns.deviations {
        let deviations = model.deviations_prepared(rows)?;
        numbers = join(&[numbers.view(), deviations.view()])?;
    }
    if columns.probabilities {
        let probabilities = model.model.probabilities(rows)?;
        if only_probabilities(columns, out) {
            return sheet.push(Block { words: None, numbers: probabilities.view() });
        }
        numbers = join(&[numbers.view(), probabilities.view()])?;
    }
    sheet.push(Block { words: words.as_deref(), numbers: numbers.view() })
}
