use crate::cli::Context;
use crate::commands::predict;
use crate::map_args::MapArgs;
use crate::source::{Columns, Text};
use crate::values;
use bochner::words;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::read::{Data, Largest};
use bochner_table::stats::{self, Found, Request};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Whether two files are alike, or columns of a file independent of others
///
/// Compares the rows of two files by random features of a kernel and says how often rows of one distribution would differ as
/// much: the p-value, from permutations, is exact. With --x and --y one file is enough: its columns are tested for independence. Columns
/// are compared in units of their standard deviation unless a length scale is given. Files are read block by block and
/// need not fit into memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner test january.csv june.csv                   are both alike, or which columns differ?
  bochner test old.parquet new.parquet --drop id --json | jq .pvalue
  bochner test a.npy b.npy --kernel laplacian --features 4096
  bochner test people.csv --x age,height --y income   do the sides depend on each other?")]
pub(crate) struct Args {
    #[arg(help = bochner_table::read::help())]
    data: PathBuf,
    /// The other file, with the same columns
    #[arg(required_unless_present = "x", conflicts_with = "x")]
    other: Option<PathBuf>,
    /// Test whether the columns of --x are independent of those of --y, which is what these two options say already
    #[arg(long, requires = "x")]
    independence: bool,
    /// Columns of one side, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", requires = "y", conflicts_with = "columns")]
    x: Option<Vec<String>>,
    /// Columns of the other side, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", requires = "x")]
    y: Option<Vec<String>>,
    /// Random permutations: the smallest possible p-value is one over one more
    #[arg(long, value_name = "N", default_value_t = 999, value_parser = values::parse_count)]
    permutations: usize,
    /// Level of the verdict: how often a difference may be found where there is none
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = parse_share)]
    level: f64,
    /// Coverage of the interval
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = parse_share)]
    coverage: f64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) map: MapArgs,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    text: Text,
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(format!("expected a number between 0 and 1, got {text:?}")),
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let request = Request {
        map: args.map.request(),
        permutations: args.permutations,
        coverage: args.coverage,
        seed: context.global.seed,
    };
    if [Some(&args.data), args.other.as_ref()].contains(&Some(&PathBuf::from("-"))) {
        return Err(Failure::Usage("a test reads its files more than once: name files, not standard input".into()));
    }
    let open = |path: &Path| args.columns.open(path, None, &[], &args.text, Largest::DOUBLE, false);
    let (found, inputs, question) = match (&args.other, &args.x, &args.y) {
        (Some(other), ..) => {
            let options = args.columns.options(&args.text, Largest::DOUBLE);
            let (x, y) = stats::same_columns(open(&args.data)?, open(other)?, &options)?;
            let question = format!("whether the rows of {} and {} are of one distribution", x.input().name, y.input().name);
            (stats::two_samples(&x, &y, &request, context)?, vec![x, y], question)
        }
        (None, Some(x), Some(y)) => {
            if let Some(column) = x.iter().find(|column| y.contains(column)) {
                return Err(Failure::Usage(format!("--x and --y both name {column}, which cannot be independent of itself")));
            }
            let columns = x.iter().chain(y).cloned().collect();
            let data = args.columns.open_these(&args.data, columns, &args.text, Largest::DOUBLE)?;
            let question = format!("whether {} and {} are independent", x.join(", "), y.join(", "));
            (stats::two_sides(&data, x.len(), &request, context)?, vec![data], question)
        }
        _ => return Err(Failure::Usage("name a second file, or columns with --x and --y".into())),
    };
    inputs.iter().for_each(|data: &Data| predict::tell_remarks(data, context));
    match args.json {
        true => {
            let value = to_json(&found, args);
            context.print(&format!("{value:#}\n"))
        }
        false => context.print(&in_words(&found, args, &question, context)),
    }
}

fn to_json(found: &Found, args: &Args) -> serde_json::Value {
    let mut value = json!(found.estimate);
    value["standard_error"] = found.estimate.standard_error().into();
    value["coverage"] = args.coverage.into();
    value["level"] = args.level.into();
    value["significant"] = (found.estimate.pvalue <= args.level).into();
    value["columns"] = found.columns.iter().map(|(name, share)| json!({ "name": name, "share": share })).collect();
    value["features"] = found.map.clone().into();
    value
}

fn in_words(found: &Found, args: &Args, question: &str, context: &Context) -> String {
    let estimate = &found.estimate;
    let (alone, different) = (args.other.is_none(), estimate.pvalue <= args.level);
    let verdict = match (alone, different) {
        (false, true) => "The files differ.",
        (false, false) => "No difference was found.",
        (true, true) => "The columns depend on each other.",
        (true, false) => "No dependence was found.",
    };
    let times = (estimate.pvalue * (estimate.permutations + 1) as f64).round() as usize;
    let chance = format!(
        "Of {} random exchanges of rows {} come out as far from none (p = {}).",
        words::count(estimate.permutations + 1),
        words::count(times),
        words::significant(estimate.pvalue, 3)
    );
    let mut text = format!("{} {chance}\n", context.bold(verdict));
    let most: Vec<String> = found.columns.iter().take(5).filter(|(_, share)| *share >= 0.01)
        .map(|(name, share)| format!("{name} {:.0} %", 100.0 * share))
        .collect();
    if different && !most.is_empty() {
        text.push_str(&format!("Columns that differ most: {}.\n", most.join(", ")));
    }
    let (low, high) = estimate.interval;
    let number = |value: f64| words::significant(value, 3);
    let what = if alone { "squared norm of the cross-covariance" } else { "squared discrepancy" };
    let mut add = |name: &str, words: String| text.push_str(&format!("  {name:<10}{words}\n"));
    add("tested", format!("{question}, at level {}", args.level));
    let rows = match alone {
        true => words::count(estimate.rows.0 as usize),
        false => format!("{} and {}", words::count(estimate.rows.0 as usize), words::count(estimate.rows.1 as usize)),
    };
    add("rows", rows);
    add("estimate", format!("{} ({what}; 0 if {})", number(estimate.statistic), if alone { "independent" } else { "alike" }));
    add("interval", format!("{} to {}, coverage {}", number(low), number(high), args.coverage));
    let (rows, features) = (estimate.sampling_variance.sqrt(), estimate.sketching_variance.sqrt());
    add("errors", format!("{} from the draw of the rows, {} from that of the features", number(rows), number(features)));
    add("features", found.map.clone());
    text
}
