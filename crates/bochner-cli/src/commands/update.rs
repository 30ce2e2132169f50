use crate::cli::Context;
use crate::commands::predict::{WordsArgs, tell_remarks};
use crate::output_args;
use crate::source::Text;
use bochner::words;
use bochner_table::failure::Outcome;
use bochner_table::model::TableModel;
use bochner_table::output;
use bochner_table::predict::{self, NewCells};
use bochner_table::update::{Updated, update};
use serde_json::json;
use std::path::PathBuf;

/// Add rows to a model, or take some back
///
/// Goes on from the sums in a model file of bochner fit --keep-sums: the rows that it was fitted to are not read again. The model
/// is the one of all its rows, with the map and the penalty of its fit. What was learned from held-out rows stays as it is: figures,
/// errors behind intervals, probabilities.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner fit houses.csv --target price --keep-sums
  bochner update houses.bochner january.csv
  bochner update houses.bochner withdrawn.csv --forget --out houses-without.bochner

Rows that are taken back must be those that were added, with their targets. Rows that were not are noticed where sums would \
become impossible, not always.")]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// A data file with the columns and the targets that the model was trained on; - for standard input
    data: PathBuf,
    /// Take the rows back instead: the model becomes the one without them
    #[arg(long)]
    forget: bool,
    /// Where the model goes [default: the model file itself]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    words: WordsArgs,
    #[command(flatten)]
    text: Text,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let out = args.out.as_deref().unwrap_or(&args.model);
    output_args::check_apart(&[("--out", Some(out))], &[("the data file", Some(&*args.data))])?;
    output::check_file(out)?;
    let model = TableModel::load(&args.model)?;
    let cells = NewCells { missing: None, unknown: args.words.unknown_words, keep_rows: false };
    let data = predict::open(&model, &args.data, None, args.text.options(), true, cells)?;
    let Updated { model, before, rows, cancellation } = update(&model, &data, args.forget, context)?;
    tell_remarks(&data, context);
    let bytes = model.model.to_bytes()?;
    output::write_whole(out, &bytes)?;
    let changed = before.abs_diff(rows);
    if args.json {
        let value = json!({
            "model": args.model.display().to_string(), "data": data.input().name, "forgotten": args.forget, "rows_before": before,
            "rows": rows, "cancellation": cancellation, "file": out.display().to_string(), "bytes": bytes.len(),
        });
        return context.print(&format!("{value:#}\n"));
    }
    if context.global.quiet {
        return Ok(());
    }
    let done = if args.forget { "Took back" } else { "Added" };
    let rounding = match cancellation > 1.0 {
        true => format!("; rounding counts {} times more than before rows were taken back", words::significant(cancellation, 2)),
        false => String::new(),
    };
    context.print(&format!(
        "{done} {}: the model is that of {} now{rounding}.\nWrote {} ({})\n",
        words::things(changed as usize, "row"),
        words::things(rows as usize, "row"),
        context.bold(&out.display().to_string()),
        words::bytes(bytes.len() as u64),
    ))
}
