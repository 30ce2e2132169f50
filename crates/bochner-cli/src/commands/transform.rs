use crate::cli::Context;
use crate::commands::inspect;
use crate::commands::predict::{self, Fill, Manners, WordsArgs};
use crate::description::{Description, operator_name, spec_from};
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::map_args::MapArgs;
use crate::models::Model;
use crate::output;
use crate::pipeline::{self, Preparation};
use crate::progress::Progress;
use crate::read::{Data, Missing};
use crate::source::{self, Columns, Text};
use crate::write::{self, Block, Layout, Sheet};
use bochner::feature::{Describe, FeatureMap, Spec};
use bochner::preprocess::Preprocess;
use bochner::random::Seed;
use bochner::rows::RowSource;
use bochner::scalar::Real;
use ndarray::{Array2, s};
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
    /// A CSV, TSV, Parquet, NPY, NPZ, IDX or LIBSVM file, plain or gzip; - for standard input
    data: PathBuf,
    /// Where features go: a .npy, .parquet, .csv or .tsv file [default: CSV on standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Use the columns, the preparation and the map of this model
    #[arg(long, value_name = "MODEL", conflicts_with_all = [
        "map", "features", "kernel", "length_scale", "set", "preprocess", "columns", "drop", "categories",
    ])]
    model: Option<PathBuf>,
    /// What is done to rows first
    #[arg(long, value_enum, default_value = "auto")]
    preprocess: Preparation,
    /// Threshold of --preprocess binarise
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true)]
    threshold: f64,
    /// Double precision instead of single
    #[arg(long)]
    double: bool,
    #[command(flatten)]
    map: MapArgs,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    words: WordsArgs,
    #[command(flatten)]
    text: Text,
}

/// Rows transformed at once: their features stay in a few megabytes.
const PIECE: usize = 512;

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    write::check(args.out.as_deref())?;
    let model = args.model.as_deref().map(|path| ("the model", path));
    let inputs: Vec<_> = std::iter::once(("the data file", args.data.as_path())).chain(model).collect();
    args.out.iter().try_for_each(|out| output::check_apart(&[("--out", out)], &inputs))?;
    let (data, steps, spec) = match &args.model {
        Some(path) => from_model(args, &inspect::load(path)?)?,
        None => from_options(args, context)?,
    };
    if args.double {
        transform::<f64>(args, context, &data, &steps, &spec)
    } else {
        transform::<f32>(args, context, &data, &steps, &spec)
    }
}

fn from_model(args: &Args, model: &Model) -> Outcome<(Data, Vec<Preprocess>, Spec)> {
    let missing = args.columns.missing();
    let fill = match missing {
        Missing::Mean => Some(Fill::Mean),
        Missing::Zero => Some(Fill::Zero),
        Missing::Median => {
            let message = "--impute median: a model does not know the medians of its columns; use mean or zero";
            return Err(Failure::Usage(message.into()));
        }
        Missing::Refuse | Missing::Drop => None,
    };
    let manners = Manners { fill, drop: missing == Missing::Drop, words: args.words };
    let data = predict::open(model, &args.data, None, &args.text, false, manners)?;
    let steps = model.pipeline.as_ref().map_or(Vec::new(), |p| p.steps.clone());
    Ok((data, steps, model.description()?.spec()?))
}

fn from_options(args: &Args, context: &Context) -> Outcome<(Data, Vec<Preprocess>, Spec)> {
    let largest = match args.double {
        true => source::DOUBLE,
        false => source::single("too large for single precision; --double reads it"),
    };
    let data = args.columns.open(&args.data, None, &[], &args.text, largest)?;
    let mut map = args.map.describe(context.global.seed)?;
    if let Some(kernel) = args.map.kernel().filter(|kernel| operator_name(kernel).is_some()) {
        let message =
            format!("--kernel {kernel} relates the targets of a model; bochner fit has it, transform has no targets");
        return Err(Failure::Usage(message));
    }
    map.insert("n_components".into(), args.map.features.unwrap_or(1024).into());
    let mut spec = spec_from(map.clone())?;
    let described = serde_json::to_value(&spec).unwrap_or_default();
    if !map.contains_key("length_scale") && described.get("length_scale").is_some() {
        map.insert("length_scale".into(), "median".into());
        // Maps that know numbers only keep their own.
        spec = spec_from(map).unwrap_or(spec);
    }
    let progress = Progress::reading(context, data.input(), "looking at the rows")?;
    let scan = pipeline::scan(&data, Seed::new(context.global.seed), 1 << 26, || progress.read())?;
    drop(progress);
    let steps = scan.steps(&data, args.preprocess, args.threshold)?;
    let sample = &scan.sample.rows;
    let mut sample = sample.slice(s![..sample.nrows().min(2000), ..]).to_owned();
    steps.iter().try_for_each(|step| step.apply(sample.view_mut()))?;
    let spec = spec.resolve(sample.view()).map_err(|error| {
        // No median distance; what else there is has nothing to do with the length scale.
        let median = matches!(
            error,
            bochner::Error::Unsupported { .. } | bochner::Error::Parameter { name: "number of rows", .. }
        );
        let advice = if median { "; --length-scale NUMBER is taken as it is" } else { "" };
        match Failure::from(error) {
            Failure::Failed(why) => Failure::Failed(format!("{}: {why}{advice}", data.input().name)),
            other => other,
        }
    })?;
    Ok((data, steps, spec))
}

fn transform<R: Real>(args: &Args, context: &Context, data: &Data, steps: &[Preprocess], spec: &Spec) -> Outcome {
    let map = spec.build::<R>(data.schema().input_dim())?;
    let names = (1..=map.output_dim()).map(|j| format!("f{j}")).collect();
    let mut sheet = Sheet::create(args.out.as_deref(), Layout { words: None, numbers: names, single: !args.double })?;
    let progress = Progress::reading(context, data.input(), "transforming")?;
    let mut features = Array2::from_elem((PIECE, map.output_dim()), R::ZERO);
    data.rows::<f64>().for_each_block(&mut |block| {
        for start in (0..block.rows.nrows()).step_by(PIECE) {
            let range = start..(start + PIECE).min(block.rows.nrows());
            let mut rows = block.rows.slice(s![range.clone(), ..]).to_owned();
            steps.iter().try_for_each(|step| step.apply(rows.view_mut()))?;
            let mut features = features.slice_mut(s![..range.len(), ..]);
            map.transform_into(rows.mapv(R::from_f64).view(), features.view_mut())?;
            if let Some(at) = features.iter().position(|value| !value.is_finite()) {
                let (row, column) = (start + at / map.output_dim(), at % map.output_dim());
                return Err(bochner::Error::NonFinite { what: "features", row, column });
            }
            let wide = features.mapv(Real::to_f64);
            sheet.push(Block { words: None, numbers: wide.view() }).map_err(pipeline::stopped)?;
        }
        if data.input().is_stream() {
            sheet.flush().map_err(pipeline::stopped)?;
        }
        progress.read().map_err(pipeline::stopped)
    })?;
    drop(progress);
    predict::tell_unknown_words(data, context);
    let rows = sheet.rows();
    sheet.finish()?;
    if let (Some(path), false) = (&args.out, context.global.quiet) {
        let (rows, columns) = (human::count(rows), human::count(map.output_dim()));
        context.print(&format!(
            "Wrote {rows} rows of {columns} {} to {}\n",
            Description::Map(spec.clone()).in_words(),
            path.display()
        ))?;
    }
    if args.out.is_none() && rows == 0 {
        return Err(Failure::Failed(format!("{}: there were no rows", data.input().name)));
    }
    Ok(())
}
