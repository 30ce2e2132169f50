use crate::cli::Context;
use crate::commands::fit::figure_words;
use crate::commands::inspect;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::models::{self, Model};
use crate::output;
use crate::pipeline::{Pipeline, Task};
use crate::progress::Progress;
use crate::read::{Data, Input, Missing, Options, Selection, Unknown};
use crate::score::{self, Answers, Figure};
use crate::source::{self, Text};
use crate::write::{self, Block, Layout, Sheet};
use bochner::random::Seed;
use bochner::rows::RowSource;
use bochner::scalar::Real;
use ndarray::{Array2, concatenate};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Apply a model to new rows
///
/// Does to the rows what was done in training, and writes one prediction per row: numbers, or the classes by the names
/// they had in the training file. Columns are found by name; columns the model does not know are ignored. Tables of text on
/// standard input are answered as they come; other formats are copied to a temporary file first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner predict houses.bochner new.csv --out prices.csv
  bochner predict irises.bochner new.csv --score      # how many are right, if answers are there
  bochner predict irises.bochner new.csv --score --json | jq '.figures[0].value'
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
    /// Print the result of --score as JSON
    #[arg(long, requires = "score")]
    json: bool,
    /// File with the targets of an NPY or IDX file, for --score
    #[arg(long, value_name = "FILE", requires = "score")]
    labels: Option<PathBuf>,
    /// Fill empty cells in, whatever was done in training [default: as in training; refused if it had none]
    #[arg(long, value_enum)]
    impute: Option<Fill>,
    #[command(flatten)]
    words: WordsArgs,
    #[command(flatten)]
    text: Text,
}

/// `--unknown-words`, for commands that apply a model.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct WordsArgs {
    /// What to do with words that did not occur in training
    #[arg(long, value_enum, default_value = "refuse", value_name = "WHAT")]
    unknown_words: UnknownWords,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnknownWords {
    /// Stop at the first one
    Refuse,
    /// Take them for none of the words that did occur: all columns of the feature are 0
    Zeros,
}

/// What fills empty cells of new rows in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Fill {
    /// The column's mean in training
    Mean,
    /// Zero
    Zero,
}

/// What is done to cells of new rows that a model cannot use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    /// `None` does what was done in training.
    pub(crate) fill: Option<Fill>,
    /// Whether rows with gaps may be left out.
    pub(crate) drop: bool,
    pub(crate) words: WordsArgs,
}

/// Rows predicted at once.
const PIECE: usize = 4096;

/// Opens a file with the columns of a model, to be read once.
pub(crate) fn open(
    model: &Model,
    data: &Path,
    labels: Option<&Path>,
    text: &Text,
    targets: bool,
    manners: Manners,
) -> Outcome<Data> {
    let single = model.stored.header.dtype == f32::NAME;
    let largest = if single {
        source::single("too large for single precision, in which the model computes")
    } else {
        source::DOUBLE
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
    let unknown = match manners.words.unknown_words {
        UnknownWords::Refuse => Unknown::Refuse,
        UnknownWords::Zeros => Unknown::Zeros,
    };
    let options = |missing| Options { advice: Some(advice), unknown, ..text.options(missing, largest) };
    let trained = model.pipeline.as_ref().map_or(Missing::Refuse, |pipeline| pipeline.missing);
    let missing = match manners.fill {
        Some(Fill::Mean) if means.is_none() => {
            let message = "--impute mean: the model does not know the means of its columns; --impute zero needs none";
            return Err(Failure::Usage(message.into()));
        }
        Some(Fill::Mean) => Missing::Mean,
        Some(Fill::Zero) => Missing::Zero,
        None if manners.drop => Missing::Drop,
        // Rows must not disappear from under their predictions.
        None if trained == Missing::Drop => Missing::Refuse,
        None => trained,
    };
    let Some(pipeline) = &model.pipeline else {
        return Ok(Data::open(Input::open(data)?, labels, &Selection::default(), &options(missing))?);
    };
    let mut schema = pipeline.schema.clone();
    if manners.drop {
        schema.fill(|_| None);
    } else if let Some(fill) = manners.fill {
        schema.fill(|at| Some(if fill == Fill::Mean { means.map_or(0.0, |means| means[at]) } else { 0.0 }));
    }
    Ok(Data::open_with(Input::open_once(data)?, labels, &schema, targets, &options(missing))?)
}

/// Says how many words a model did not know, if they were let pass.
pub(crate) fn tell_unknown_words(data: &Data, context: &Context) {
    if let (Some((cells, first)), false) = (data.unknown_words(), context.global.quiet) {
        let others = match cells - 1 {
            0 => String::new(),
            1 => ", nor did that of one other cell".into(),
            n => format!(", nor did those of {} other cells", human::count(n as usize)),
        };
        eprintln!("bochner: {first}{others}: such words count as none of those that did");
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    write::check(args.out.as_deref())?;
    let labels = args.labels.as_deref().map(|path| ("the labels of", path));
    let inputs = [("the model", args.model.as_path()), ("the data file", args.data.as_path())];
    let inputs: Vec<_> = inputs.into_iter().chain(labels).collect();
    args.out.iter().try_for_each(|out| output::check_apart(&[("--out", out)], &inputs))?;
    check_order(args)?;
    let model = inspect::load(&args.model)?;
    let manners = Manners { fill: args.impute, drop: false, words: args.words };
    let data = open(&model, &args.data, args.labels.as_deref(), &args.text, args.score, manners)?;
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
        // Whoever sends rows one by one waits for the answers.
        if let Some(sheet) = sheet.as_mut().filter(|_| data.input().is_stream()) {
            sheet.flush().map_err(crate::pipeline::stopped)?;
        }
        progress.read().map_err(crate::pipeline::stopped)
    })?;
    drop(progress);
    if args.score && rows_before == 0 {
        return Err(Failure::Failed(format!("{}: there are no rows to compare with predictions", data.input().name)));
    }
    tell_unknown_words(&data, context);
    if let Some(sheet) = sheet {
        let rows = sheet.rows();
        sheet.finish()?;
        if let (Some(path), false) = (&args.out, context.global.quiet || args.json) {
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
        if args.json {
            let value = json!({
                "data": data.input().name, "model": args.model.display().to_string(), "task": model.kind.task,
                "rows": rows_before, "figures": figures, "file": args.out.as_ref().map(|path| path.display().to_string()),
            });
            return context.print(&format!("{value:#}\n"));
        }
        let words: Vec<String> =
            figures.iter().map(|f: &Figure| format!("  {}", context.bold(&figure_words(f)))).collect();
        context.print(&format!("On {} rows:\n{}\n", human::count(rows_before), words.join("\n")))?;
    }
    Ok(())
}

/// Refuses the data before the model, which is easily written.
fn check_order(args: &Args) -> Outcome {
    let is_model = |path: &Path| path.is_file() && models::head(path).is_ok_and(|head| models::is_file(&head));
    if args.model.is_file() && !is_model(&args.model) && is_model(&args.data) {
        let (first, second) = (args.model.display(), args.data.display());
        let message = format!("{first} is not a model file of bochner, but {second} is; the model comes first");
        return Err(Failure::Usage(message));
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
            return Err(Failure::Usage(
                "--std: this model predicts classes; --probabilities says how sure it is".into(),
            ));
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
        for (mut column, t) in deviations.columns_mut().into_iter().zip(model.pipeline.iter().flat_map(|p| &p.targets))
        {
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
