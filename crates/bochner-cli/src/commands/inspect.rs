use crate::cli::Context;
use bochner::catalogue::Task;
use bochner::feature::Description;
use bochner::words;
use bochner_table::failure::{Failure, Outcome};
use bochner_table::fit::{TRAINING, Training};
use bochner_table::model::{TableModel, penalty_in_words};
use bochner_table::read::Kind;
use std::path::PathBuf;

/// Explain a model file in words
///
/// Says what the model predicts and from which columns, what it does to rows first, which map it uses, how it was fitted
/// and how well it did. Reading a model runs no code; a damaged file is refused.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner inspect houses.bochner
  bochner inspect houses.bochner --json | jq .map")]
pub(crate) struct Args {
    /// The model file
    model: PathBuf,
    /// Print everything the file says as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let TableModel { model, pipeline, .. } = &TableModel::load(&args.model)?;
    let (header, kind) = (model.header(), model.kind());
    let bytes = std::fs::metadata(&args.model).map(|m| m.len()).unwrap_or(0);
    if args.json {
        let mut value = serde_json::to_value(header).map_err(|e| Failure::Failed(e.to_string()))?;
        value["bytes"] = bytes.into();
        return context.print(&format!("{value:#}\n"));
    }
    let training: Training = model.attachment(TRAINING)?.unwrap_or_default();
    let (task, title) = (kind.task.name(), kind.entry.title);
    let of = if title.contains(task) { String::new() } else { format!(" for {task}") };
    let mut lines =
        vec![format!("{}: {}{of}, {}", context.bold(&args.model.display().to_string()), title, words::bytes(bytes))];
    let mut add = |what: &str, words: String| lines.push(format!("  {what:<14}{words}"));
    match pipeline {
        Some(pipeline) => {
            let targets: Vec<&str> = pipeline.schema.targets.iter().map(|c| c.name.as_str()).collect();
            add("predicts", targets.join(", "));
            if kind.task == Task::Classification {
                let names: Vec<String> = model.classes().into_iter().flatten().map(ToString::to_string).collect();
                add("classes", format!("{}: {}", names.len(), words::some_of(&names)));
            }
            let categories = pipeline.schema.inputs.iter().filter(|c| matches!(c.kind, Kind::Words { .. })).count();
            let count = words::things(pipeline.schema.inputs.len(), "column");
            let of = if categories > 0 { format!(", {categories} of them categories") } else { String::new() };
            add("from", format!("{count}{of}: {}", pipeline.schema.some_names()));
            for (i, words) in pipeline.in_words().into_iter().enumerate() {
                add(if i == 0 { "first" } else { "" }, words);
            }
        }
        None => add("from", format!("{}, as they are", words::things(header.input_dim, "column"))),
    }
    let description = model.description();
    let features = description.map_or(Ok(None), |description| description.features(header.input_dim))?;
    let in_words = description.map_or_else(|| "of its own".into(), Description::in_words);
    match features {
        Some(features) => {
            add("map", format!("{in_words}, drawn again from its seed"));
            add("features", format!("{} of type {}", words::count(features), header.dtype));
        }
        None => add("map", in_words),
    }
    if let Some(scale) = description.and_then(Description::length_scale) {
        add("length scale", words::significant(scale, 4));
    }
    if let Some(penalty) = training.penalty {
        add(penalty_in_words(kind), words::significant(penalty, 3));
    }
    for (i, words) in model.in_words().into_iter().enumerate() {
        add(if i == 0 { "solved" } else { "" }, words);
    }
    if let Some(rows) = training.rows {
        add("trained on", words::things(rows, "row"));
    }
    for (i, figure) in training.figures.iter().enumerate() {
        let on =
            if i == 0 { format!(", on {} held-out rows", words::count(training.scored_rows)) } else { String::new() };
        add(if i == 0 { "scored" } else { "" }, format!("{}{on}", figure.in_words()));
    }
    if let Some(doubt) = &training.doubt {
        lines.push(format!("  {:<14}{}", "", doubt.in_words()));
    }
    context.print(&format!("{}\n", lines.join("\n")))
}
