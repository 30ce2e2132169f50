use crate::cli::Context;
use crate::commands::predict::{self, WordsArgs};
use crate::map_args::MapArgs;
use crate::output_args;
use crate::source::{Columns, Text};
use bochner::words;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::model::TableModel;
use bochner_table::pipeline::Preparation;
use bochner_table::predict::{NewCells, open};
use bochner_table::read::{Data, Largest};
use bochner_table::transform::Transform;
use bochner_table::write;
use std::path::PathBuf;

/// Turn rows into random features
///
/// Writes one row of features per row of data, block by block: neither the data nor the features need to fit into memory.
/// Inner products of features estimate a kernel; the same seed gives the same features.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner transform data.csv --drop id,label --features 1024 --out features.npy
  bochner transform data.npy --map polynomial --set degree=3 --preprocess unit --out features.npy
  bochner transform new.csv --model houses.bochner --out features.npy   # the features that it sees")]
pub(crate) struct Args {
    #[arg(help = bochner_table::read::help())]
    data: PathBuf,
    #[arg(long, short, value_name = "FILE", help = bochner_table::write::help("features"))]
    out: Option<PathBuf>,
    /// Use the columns, the preparation and the map of this model
    #[arg(long, value_name = "MODEL", conflicts_with_all = [
        "map", "features", "kernel", "length_scale", "set", "preprocess", "columns", "drop", "categories",
    ])]
    model: Option<PathBuf>,
    /// What is done to rows first
    #[arg(long, value_enum, default_value = "auto")]
    preprocess: Preparation,
    /// Threshold of --preprocess binarize
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true)]
    threshold: f64,
    /// Double precision instead of single
    #[arg(long)]
    double: bool,
    #[command(flatten)]
    pub(crate) map: MapArgs,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    words: WordsArgs,
    #[command(flatten)]
    text: Text,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    write::check(args.out.as_deref())?;
    let inputs = [("the data file", Some(args.data.as_path())), ("the model", args.model.as_deref())];
    output_args::check_apart(&[("--out", args.out.as_deref())], &inputs)?;
    let (data, transform) = match &args.model {
        Some(path) => from_model(args, &TableModel::load(path)?)?,
        None => from_options(args, context)?,
    };
    let out = args.out.as_deref();
    let (rows, columns) = match args.double {
        true => transform.write::<f64>(&data, out, context)?,
        false => transform.write::<f32>(&data, out, context)?,
    };
    predict::tell_remarks(&data, context);
    if let (Some(path), false) = (&args.out, context.global.quiet) {
        let (rows, columns) = (words::count(rows), words::count(columns));
        let map = transform.spec.in_words();
        context.print(&format!("Wrote {rows} rows of {columns} {map} to {}\n", path.display()))?;
    }
    if args.out.is_none() && rows == 0 {
        return Err(Failure::Failed(format!("{}: there were no rows", data.input().name)));
    }
    Ok(())
}

fn from_model(args: &Args, model: &TableModel) -> Outcome<(Data, Transform)> {
    let cells = NewCells { missing: args.columns.asked(), unknown: args.words.unknown_words, keep_rows: false };
    let data = open(model, &args.data, None, args.text.options(), false, cells)?;
    Ok((data, Transform::of(model)?))
}

fn from_options(args: &Args, context: &Context) -> Outcome<(Data, Transform)> {
    let largest = match args.double {
        true => Largest::DOUBLE,
        false => Largest::single("too large for single precision; --double reads it"),
    };
    let data = args.columns.open(&args.data, None, &[], &args.text, largest, false)?;
    let (map, seed) = (args.map.request(), context.global.seed);
    let transform = Transform::new(&map, &data, args.preprocess, args.threshold, seed, context)?;
    Ok((data, transform))
}
