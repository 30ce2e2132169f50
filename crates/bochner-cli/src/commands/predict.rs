use crate::cli::Context;
use crate::commands::fit::figure_words;
use crate::commands::inspect;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::models::Model;
use crate::pipeline::{Pipeline, Task};
use crate::progress::Progress;
use crate::read::{Data, Input, Missing, Selection};
use crate::score::{self, Answers, Figure};
use crate::source::Text;
use crate::write::{self, Block, Layout, Sheet};
use bochner::random::Seed;
use bochner::rows::RowSource;
use ndarray::{Array2, concatenate};
use std::path::{Path, PathBuf};

/// Apply a model to new rows
///
/// Does to the rows what was done in training, and writes one prediction per row: numbers, or the classes by the names
/// they had in the training file. Columns are found by name; columns the model does not know are ignored.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner predict houses.bochner new.csv --out prices.csv
  bochner predict irises.bochner new.csv --score          # how many are right, if the file has the answers
  cat new.csv | bochner predict houses.bochner - > prices.csv")]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// A data file with the columns the model was trained on; - for standard input
    data: PathBuf,
    /// Where predictions go: a .csv, .tsv, .npy or .parquet file [default: CSV on standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Add the probability of every class
    #[arg(long)]
    probabilities: bool,
    /// Add the standard deviation of every prediction
    #[arg(long)]
    std: bool,
    /// Compare with the targets in the file and print how good the predictions are; writes them only with --out
    #[arg(long)]
    score: bool,
    /// File with the targets of an NPY or IDX file, for --score
    #[arg(long, value_name = "FILE", requires = "score")]
    labels: Option<PathBuf>,
    #[command(flatten)]
    text: Text,
}

/// Rows predicted at once.
const PIECE: usize = 4096;

/// Opens a file with the columns of a model.
pub(crate) fn open(model: &Model, data: &Path, labels: Option<&Path>, text: &Text, targets: bool) -> Outcome<Data> {
    let input = Input::open(data)?;
    let labels = labels.map(Input::open).transpose()?;
    match &model.pipeline {
        Some(pipeline) => {
            // Rows must not disappear from under their predictions.
            let missing = if pipeline.missing == Missing::Drop { Missing::Refuse } else { pipeline.missing };
            Ok(Data::open_with(input, labels, &pipeline.schema, targets, &text.options(missing))?)
        }
        None => Ok(Data::open(input, labels, &Selection::default(), &text.options(Missing::Refuse))?),
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    write::check(args.out.as_deref())?;
    let model = inspect::load(&args.model)?;
    let data = open(&model, &args.data, args.labels.as_deref(), &args.text, args.score)?;
    if args.score && data.schema().targets.is_empty() {
        let message = format!("{}: --score needs the targets in the file, or --labels FILE", data.input().name);
        return Err(Failure::Usage(message));
    }
    check_request(args, &model)?;
    let layout = layout(args, &model);
    let mut sheet = match args.score && args.out.is_none() {
        true => None,
        false => Some(Sheet::create(args.out.as_deref(), layout)?),
    };
    let progress = Progress::reading(context, data.input(), "predicting")?;
    let mut answers = Answers { task: model.kind.task, truth: Array2::zeros((0, 0)), predicted: Array2::zeros((0, 0)) };
    let (mut truth, mut predicted) = (Vec::new(), Vec::new());
    let mut rows_before = 0;
    data.rows::<f64>().for_each_block(&mut |block| {
        for start in (0..block.rows.nrows()).step_by(PIECE) {
            let range = start..(start + PIECE).min(block.rows.nrows());
            let mut rows = block.rows.slice(ndarray::s![range.clone(), ..]).to_owned();
            if let Some(pipeline) = &model.pipeline {
                pipeline.apply(rows.view_mut())?;
            }
            let found = score::predict(&model, rows.view())?;
            if args.score {
                let targets = block.targets.slice(ndarray::s![range.clone(), ..]);
                collect(&model, targets, rows_before + start, &mut truth)?;
                predicted.extend(found.iter().copied());
            }
            if let Some(sheet) = &mut sheet {
                write_rows(args, &model, sheet, rows.view(), found).map_err(crate::pipeline::stopped)?;
            }
        }
        rows_before += block.rows.nrows();
        progress.read().map_err(crate::pipeline::stopped)
    })?;
    drop(progress);
    if let Some(sheet) = sheet {
        let rows = sheet.rows();
        sheet.finish()?;
        if let (Some(path), false) = (&args.out, context.global.quiet) {
            context.print(&format!("Wrote {} predictions to {}\n", human::count(rows), path.display()))?;
        }
    }
    if args.score {
        let columns = predicted.len().checked_div(rows_before).unwrap_or(0);
        let shape = (rows_before, columns);
        let broken = |e: ndarray::ShapeError| Failure::Failed(e.to_string());
        answers.truth = Array2::from_shape_vec(shape, truth).map_err(broken)?;
        answers.predicted = Array2::from_shape_vec(shape, predicted).map_err(broken)?;
        let names: Vec<String> = data.schema().targets.iter().map(|c| c.name.clone()).collect();
        let figures = answers.figures(Seed::new(context.global.seed), &names);
        let words: Vec<String> = figures.iter().map(|f: &Figure| format!("  {}", context.bold(&figure_words(f)))).collect();
        context.print(&format!("On {} rows:\n{}\n", human::count(rows_before), words.join("\n")))?;
    }
    Ok(())
}

fn check_request(args: &Args, model: &Model) -> Outcome {
    let empty = Array2::zeros((1, model.stored.header.input_dim));
    if args.probabilities {
        if model.kind.task == Task::Regression {
            return Err(Failure::Usage("--probabilities: this model predicts numbers, not classes".into()));
        }
        model.fitted.probabilities(empty.view())?;
    }
    if args.std {
        if model.kind.task == Task::Classification {
            return Err(Failure::Usage("--std: this model predicts classes; --probabilities says how sure it is".into()));
        }
        model.fitted.deviations(empty.view())?;
    }
    Ok(())
}

/// True targets as [`score::predict`] gives predicted ones.
fn collect(
    model: &Model,
    targets: ndarray::ArrayView2<'_, f64>,
    first_row: usize,
    truth: &mut Vec<f64>,
) -> bochner::Result<()> {
    for (i, &value) in targets.iter().enumerate() {
        let labels = model.pipeline.as_ref().filter(|_| model.kind.task == Task::Classification);
        truth.push(match labels {
            None => value,
            Some(pipeline) => pipeline.class_of(value).map(|c| c as f64).ok_or_else(|| bochner::Error::Parameter {
                name: "targets",
                expected: "classes the model knows",
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
fn in_words(model: &Model) -> bool {
    let classes = model.stored.header.classes.as_ref();
    model.kind.task == Task::Classification && classes.is_some_and(|c| c.iter().any(|v| !v.is_number()))
}

/// An array of probabilities alone: an .npy file cannot hold labels beside them.
fn only_probabilities(args: &Args) -> bool {
    args.probabilities && args.out.as_ref().is_some_and(|p| p.extension().is_some_and(|e| e == "npy"))
}

fn layout(args: &Args, model: &Model) -> Layout {
    let columns = match model.kind.task {
        Task::Classification => 1,
        Task::Regression => model.pipeline.as_ref().map_or(1, |p| p.schema.targets.len()),
    };
    let mut numbers = target_names(model.pipeline.as_ref(), columns);
    let mut words = None;
    if in_words(model) {
        words = Some((numbers.remove(0), model.class_names()));
    }
    if args.std {
        let deviations: Vec<String> = numbers.iter().map(|n| format!("{n}_std")).collect();
        numbers.extend(deviations);
    }
    if args.probabilities {
        if only_probabilities(args) {
            (words, numbers) = (None, Vec::new());
        }
        numbers.extend(model.class_names().iter().map(|c| format!("probability of {c}")));
    }
    Layout { words, numbers, single: false }
}

fn write_rows(
    args: &Args,
    model: &Model,
    sheet: &mut Sheet,
    rows: ndarray::ArrayView2<'_, f64>,
    found: Array2<f64>,
) -> Outcome {
    let n = found.nrows();
    let join = |parts: &[ndarray::ArrayView2<'_, f64>]| {
        concatenate(ndarray::Axis(1), parts).map_err(|e| Failure::Failed(e.to_string()))
    };
    let mut words = None;
    let mut numbers = match model.kind.task {
        Task::Regression => found,
        Task::Classification => {
            let classes: Vec<usize> = found.iter().map(|c| *c as usize).collect();
            let label = |c: usize| model.stored.header.classes.as_ref().and_then(|names| names.get(c)?.as_f64());
            let labels = Array2::from_shape_fn((n, 1), |(i, _)| label(classes[i]).unwrap_or(classes[i] as f64));
            words = in_words(model).then_some(classes);
            if words.is_some() { Array2::zeros((n, 0)) } else { labels }
        }
    };
    if args.std {
        let mut deviations = model.fitted.deviations(rows)?;
        for (mut column, t) in deviations.columns_mut().into_iter().zip(model.pipeline.iter().flat_map(|p| &p.targets)) {
            column.mapv_inplace(|v| v * t.scale);
        }
        numbers = join(&[numbers.view(), deviations.view()])?;
    }
    if args.probabilities {
        let probabilities = model.fitted.probabilities(rows)?;
        if only_probabilities(args) {
            return sheet.push(Block { words: None, numbers: probabilities.view() });
        }
        numbers = join(&[numbers.view(), probabilities.view()])?;
    }
    sheet.push(Block { words: words.as_deref(), numbers: numbers.view() })
}
