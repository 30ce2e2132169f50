use crate::cli::Context;
use crate::listed;
use crate::output_args;
use crate::source::Text;
use bochner::catalogue::{WITH_NOISE, WITHOUT_NOISE, Word};
use bochner::random::Seed;
use bochner::words;
use bochner_table::doubt::Doubt;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::model::{self, TableModel};
use bochner_table::predict::{self, NewCells, Predicted, Use};
use bochner_table::read::{Data, Missing, Unknown};
use bochner_table::write;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Apply a model to new rows
///
/// Does to the rows what was done in training, and writes one prediction per row: numbers, or the classes by the names
/// they had in the training file. Columns are found by name; columns the model does not know are ignored. A row with a cell that
/// cannot be understood has an empty answer, and its place is told. Tables of text on standard input are answered as they come;
/// other formats are copied to a temporary file first.
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
    #[arg(long, short, value_name = "FILE", help = bochner_table::write::help("predictions"))]
    out: Option<PathBuf>,
    /// Add the ends of intervals that cover new rows with this probability, as in 0.9; for classes, which of them belong to a set
    /// that covers
    #[arg(long, value_name = "COVERAGE")]
    interval: Option<f64>,
    /// Add the probability of every class
    #[arg(long)]
    probabilities: bool,
    #[arg(long, help = format!("Add standard deviations {WITH_NOISE}"))]
    std: bool,
    #[arg(long, requires = "std", help = format!("Have the standard deviations of --std {WITHOUT_NOISE}"))]
    without_noise: bool,
    /// Compare with the targets in the file and print how good the predictions are; writes them only with --out
    #[arg(long)]
    score: bool,
    /// Print the result of --score as JSON
    #[arg(long, requires = "score")]
    json: bool,
    /// File with the targets of an NPY or IDX file, for --score
    #[arg(long, value_name = "FILE", requires = "score")]
    labels: Option<PathBuf>,
    /// Fill empty cells in, whatever was done in training [default: as in training]
    #[arg(long, value_parser = listed::words::<Missing>(FILLINGS))]
    impute: Option<Missing>,
    #[command(flatten)]
    words: WordsArgs,
    #[command(flatten)]
    text: Text,
}

/// What fills empty cells of new rows in.
const FILLINGS: &[Word] = &[Word::new("mean", "The column's mean in training"), Word::new("zero", "Zero")];

/// `--unknown-words`, for commands that apply a model.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct WordsArgs {
    /// What to do with words that did not occur in training
    #[arg(long, value_enum, default_value = "zeros", value_name = "WHAT")]
    pub(crate) unknown_words: Unknown,
}

/// Says everything odd that was found in a file, and how it was understood.
pub(crate) fn tell_remarks(data: &Data, context: &Context) {
    if !context.global.quiet {
        data.remarks().iter().for_each(|remark| eprintln!("bochner: {remark}"));
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    write::check(args.out.as_deref())?;
    let inputs = [("the model", Some(&*args.model)), ("the data file", Some(&*args.data))];
    let labels = [("the labels of", args.labels.as_deref())];
    output_args::check_apart(&[("--out", args.out.as_deref())], &[&inputs[..], &labels].concat())?;
    check_order(args)?;
    let model = TableModel::load(&args.model)?;
    let cells = NewCells { missing: args.impute, unknown: args.words.unknown_words, keep_rows: true };
    let options = args.text.options();
    let data = predict::open(&model, &args.data, args.labels.as_deref(), options, args.score, cells)?;
    let purpose = Use {
        written: (!args.score || args.out.is_some()).then_some(args.out.as_deref()),
        deviations: args.std,
        without_noise: args.without_noise,
        probabilities: args.probabilities,
        interval: args.interval,
        scored: args.score,
    };
    let Predicted { rows, unanswered, compared } = predict::predict(&model, &data, purpose, context)?;
    tell_remarks(&data, context);
    // Of tables every remark says where.
    if unanswered > 0 && !data.is_table() && !context.global.quiet {
        let (name, rows) = (&data.input().name, words::things(unanswered, "row"));
        eprintln!(
            "bochner: {name}: {rows} with empty cells, for which the model knows nothing, have no answer; --impute zero fills them in"
        );
    }
    if let (Some(path), false) = (&args.out, context.global.quiet || args.json) {
        context.print(&format!("Wrote {} predictions to {}\n", words::count(rows), path.display()))?;
    }
    let Some(compared) = compared else { return Ok(()) };
    let names: Vec<String> = data.schema().targets.iter().map(|c| c.name.clone()).collect();
    let figures = compared.figures(Seed::new(context.global.seed), &names);
    let doubt = Doubt::of(&figures);
    if args.json {
        let value = json!({
            "data": data.input().name, "model": args.model.display().to_string(), "task": model.task(),
            "rows": rows, "figures": figures, "doubt": doubt, "file": args.out.as_ref().map(|path| path.display().to_string()),
        });
        return context.print(&format!("{value:#}\n"));
    }
    let lines: Vec<String> = figures.iter().map(|figure| format!("  {}", context.bold(&figure.in_words()))).collect();
    let doubt = doubt.map_or(String::new(), |doubt| format!("{}\n", doubt.in_words()));
    context.print(&format!("On {} rows:\n{}\n{doubt}", words::count(rows), lines.join("\n")))
}

/// Refuses the data before the model, which is easily written.
fn check_order(args: &Args) -> Outcome {
    let is_model = |path: &Path| path.is_file() && model::head(path).is_ok_and(|head| model::is_file(&head));
    if args.model.is_file() && !is_model(&args.model) && is_model(&args.data) {
        let (first, second) = (args.model.display(), args.data.display());
        let message = format!("{first} is not a model file of bochner, but {second} is; the model comes first");
        return Err(Failure::Usage(message));
    }
    Ok(())
}
