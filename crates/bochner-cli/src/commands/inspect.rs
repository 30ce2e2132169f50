use crate::cli::Context;
use bochner_table::failure::Outcome;
use bochner::words;
use bochner_table::models::Model;
use bochner_table::pipeline::Task;
use bochner_table::read::Kind;
use bochner_table::score::Figure;
use serde_json::json;
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
    let model = Model::load(&args.model)?;
    let header = &model.stored.header;
    let bytes = std::fs::metadata(&args.model).map(|m| m.len()).unwrap_or(0);
    if args.json {
        let value = json!({
            "kind": header.kind, "dtype": header.dtype, "input_dim": header.input_dim, "map": header.map,
            "preprocessing": header.preprocessing, "classes": header.classes, "extra": header.extra, "bytes": bytes,
        });
        return context.print(&format!("{value:#}\n"));
    }
    let description = model.description()?;
    let training = &header.extra["training"];
    let task = model.kind.task.in_words();
    let of = if model.kind.words.contains(task) { String::new() } else { format!(" for {task}") };
    let mut lines = vec![format!(
        "{}: {}{of}, {}",
        context.bold(&args.model.display().to_string()),
        model.kind.words,
        words::bytes(bytes)
    )];
    let mut add = |what: &str, words: String| lines.push(format!("  {what:<14}{words}"));
    match &model.pipeline {
        Some(pipeline) => {
            let targets: Vec<&str> = pipeline.schema.targets.iter().map(|c| c.name.as_str()).collect();
            add("predicts", targets.join(", "));
            if model.kind.task == Task::Classification {
                let names = model.class_names();
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
    match description.features(header.input_dim)? {
        Some(features) => {
            add("map", format!("{}, drawn again from its seed", description.in_words()));
            add("features", format!("{} of type {}", words::count(features), header.dtype));
        }
        None => add("map", description.in_words()),
    }
    if let Some(scale) = description.length_scale() {
        add("length scale", words::significant(scale, 4));
    }
    if let Some(penalty) = training["penalty"].as_f64() {
        add(model.kind.parameter, words::significant(penalty, 3));
    }
    for (i, words) in model.fitted.in_words().into_iter().enumerate() {
        add(if i == 0 { "solved" } else { "" }, words);
    }
    if let Some(rows) = training["rows"].as_u64() {
        add("trained on", words::things(rows as usize, "row"));
    }
    let figures: Vec<Figure> = serde_json::from_value(training["figures"].clone()).unwrap_or_default();
    for (i, figure) in figures.iter().enumerate() {
        let rows = training["scored_rows"].as_u64().unwrap_or(0);
        let on = if i == 0 { format!(", on {} held-out rows", words::count(rows as usize)) } else { String::new() };
        add(if i == 0 { "scored" } else { "" }, format!("{}{on}", figure.in_words()));
    }
    context.print(&format!("{}\n", lines.join("\n")))
}
