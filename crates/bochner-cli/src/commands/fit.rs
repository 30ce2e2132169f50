use crate::cli::Context;
use crate::commands::predict;
use crate::fit_report;
use crate::listed;
use crate::map_args::MapArgs;
use crate::output_args;
use crate::source::{Columns, Text};
use crate::values;
use bochner::catalogue::{Needs, Task};
use bochner::model::kinds::RidgeSolverName;
use bochner::words;
use bochner_table::checkpoint::Checkpoint;
use bochner_table::failure::Outcome;
use bochner_table::fit::{self, CheckpointRequest, Precision, Request, Trained};
use bochner_table::output;
use bochner_table::pipeline::Preparation;
use bochner_table::score::Against;
use bochner_table::target::TargetScaling;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Train a model on a file
///
/// Reads the file once to learn what its columns hold, learns a map of the rows (or, where --map or --kernel name one, chooses
/// its length scale), a number of features and a penalty on rows that it holds out, reads the file again to train, and says how
/// well the model does on rows that had no part in it. Whatever you decide yourself is not chosen.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner fit houses.csv --target price
  bochner fit irises.csv --target species --out irises.bochner --report page.html
  bochner fit train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz --features 8192
  bochner fit table.tsv --target y --drop id,name --impute median --kernel matern --alpha 0.1
  bochner fit wind.csv --target u,v --kernel divergence_free --plot wind.svg    # a vector field
  bochner fit large.csv --target y --memory 2GB --checkpoint large.checkpoint
  bochner fit large.csv --target y --memory 2GB --checkpoint large.checkpoint --resume

The time of --budget is counted in operations, so that the same command gives the same model on \
every machine. Reading the file and the iterations of svm, kernel-svm, svi, --solver cg and sgd are not counted.

The last two examples are one fit, begun and, after a power cut, continued.")]
pub(crate) struct Args {
    #[arg(help = bochner_table::read::help())]
    data: PathBuf,
    /// Column to predict, by name or number (-1 is the last); several separated by commas
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", allow_hyphen_values = true)]
    target: Vec<String>,
    /// File with the targets of an NPY or IDX file
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Where the model goes [default: the data's name with the ending .bochner]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What is predicted [default: classes if the target holds words or few whole numbers]
    #[arg(long, value_parser = listed::words::<Task>(Task::CHOICES))]
    task: Option<Task>,
    /// The kind of model [default: ridge, or operator for an operator-valued --kernel]
    #[arg(long, value_parser = listed::models())]
    model: Option<String>,
    /// What is done to rows first
    #[arg(long, value_enum, default_value = "auto")]
    preprocess: Preparation,
    /// On which scale numbers are learned
    #[arg(long, value_enum, default_value = "auto")]
    target_scale: TargetScaling,
    /// Threshold of --preprocess binarize
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true)]
    threshold: f64,
    /// Penalty of large coefficients; alpha of the Dirichlet transform of --model gp for classes [default: by held-out rows]
    #[arg(long, value_parser = values::parse_positive, allow_negative_numbers = true)]
    alpha: Option<f64>,
    /// Seconds the choice of parameters and the fit may take on one core, about
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = values::parse_positive)]
    budget: f64,
    /// Memory the fit may take, as in 500MB or 2GiB [default: what it needs]
    #[arg(long, value_name = "SIZE", value_parser = values::parse_bytes)]
    memory: Option<u64>,
    /// How coefficients are computed
    #[arg(long, value_parser = listed::words::<RidgeSolverName>(RidgeSolverName::CHOICES), default_value = "auto")]
    solver: RidgeSolverName,
    /// Precision of features and coefficients
    #[arg(long, value_enum, default_value = "auto")]
    precision: Precision,
    /// Save what has been learned so far to FILE now and then, and continue from it with --resume: choices, sums over rows,
    /// passes of --solver cg, sgd and of --model svi, svm and kernel-svm, centres of local-gp. A file that is there already
    /// is refused without --resume, and removed when the fit has ended
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Continue from the checkpoint, if there is one
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Seconds between checkpoints
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = values::parse_non_negative)]
    checkpoint_every: f64,
    /// Keep the sums that the model is solved from in its file, so that bochner update can add rows or take some back. Half the
    /// square of the number of features, in numbers of 8 bytes
    #[arg(long)]
    keep_sums: bool,
    /// A page with what was chosen and how good it is
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// A plot, SVG or PNG, of the model on rows that had no part in it: a vector field as arrows, else predictions
    #[arg(long, value_name = "FILE.svg|png")]
    plot: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    map: MapArgs,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    text: Text,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let out = args.out.clone().unwrap_or_else(|| default_name(&args.data));
    args.check_outputs(&out)?;
    let request = args.request(context.global.seed);
    let largest = request.largest()?;
    // A vector field has as many columns as targets, whatever they hold.
    let sift = request.family()?.needs != Needs::Operator;
    let data = args.columns.open(&args.data, args.labels.as_deref(), &args.target, &args.text, largest, sift)?;
    predict::tell_remarks(&data, context);
    let fitted = fit::fit_data(&request, &data, context)?;
    let bytes = fitted.model.model.to_bytes()?;
    output::write_whole(&out, &bytes)?;
    if let Some(path) = &args.report {
        let mut page = fit_report::page(&fitted, context)?;
        let remarks = data.remarks();
        if !remarks.is_empty() {
            page.heading("How the file was read");
            for remark in &remarks {
                page.paragraph(remark);
            }
        }
        output_args::write_page(path, &page)?;
    }
    if let Some(path) = &args.plot {
        output_args::write_plot(path, &fit_report::figure(&fitted))?;
    }
    if let Some(path) = &args.checkpoint {
        Checkpoint::remove(path);
    }
    if args.json {
        return context.print(&format!("{:#}\n", to_json(&fitted, &data.remarks(), &out, bytes.len())));
    }
    context.print(&summary(&fitted, context))?;
    let pages = args.report.iter().chain(&args.plot);
    let page: String = pages.map(|p| format!(" and {}", p.display())).collect();
    context.print(&format!(
        "\nWrote {} ({}){page}. To predict:\n  bochner predict {} NEW-DATA --out predictions.csv\n",
        context.bold(&out.display().to_string()),
        words::bytes(bytes.len() as u64),
        out.display(),
    ))
}

/// `houses.csv.gz` becomes `houses.bochner`, in the current folder.
fn default_name(data: &Path) -> PathBuf {
    let name = data.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("model");
    PathBuf::from(format!("{}.bochner", if stem == "-" { "model" } else { stem }))
}

impl Args {
    /// Refuses, before any work is done, files that could not be written after it or would replace others.
    fn check_outputs(&self, out: &Path) -> Outcome {
        let beside = self.checkpoint.as_deref().map(Checkpoint::files);
        let outputs = [
            ("--out", Some(out)),
            ("--checkpoint", self.checkpoint.as_deref()),
            ("--report", self.report.as_deref()),
            ("--plot", self.plot.as_deref()),
        ];
        let inputs = [("the data file", Some(self.data.as_path())), ("the labels of", self.labels.as_deref())];
        let beside = beside.iter().flatten().map(|(what, path)| (*what, Some(path.as_path())));
        output_args::check_apart(&outputs.iter().copied().chain(beside).collect::<Vec<_>>(), &inputs)?;
        self.plot.as_deref().map_or(Ok(()), output_args::check_plot)?;
        let files = outputs.iter().filter(|(option, _)| *option != "--plot").filter_map(|(_, path)| *path);
        files.into_iter().try_for_each(output::check_file)?;
        self.checkpoint.as_deref().filter(|_| !self.resume).map_or(Ok(()), Checkpoint::check_new)
    }

    /// Refuses a request that makes no sense, whatever the data.
    pub(crate) fn check_request(&self, seed: u64) -> Outcome {
        let request = self.request(seed);
        request.largest()?;
        request.map.check(seed)
    }

    fn request(&self, seed: u64) -> Request {
        let saved = |path: &PathBuf| CheckpointRequest {
            path: path.clone(),
            every: self.checkpoint_every,
            resume: self.resume,
        };
        Request {
            task: self.task,
            model: self.model.clone(),
            map: self.map.request(),
            preparation: self.preprocess,
            threshold: self.threshold,
            target_scale: self.target_scale,
            missing: self.columns.missing(),
            penalty: self.alpha,
            budget: self.budget,
            memory: self.memory,
            solver: self.solver,
            precision: self.precision,
            seed,
            keep_sums: self.keep_sums,
            checkpoint: self.checkpoint.as_ref().map(saved),
        }
    }
}

fn summary(fitted: &Trained, context: &Context) -> String {
    let schema = &fitted.pipeline.schema;
    let targets: Vec<&str> = schema.targets.iter().map(|c| c.name.as_str()).collect();
    let mut lines = vec![format!(
        "{}: {} of {}, target {}{}",
        fitted.data,
        words::things(fitted.rows, "row"),
        words::things(schema.inputs.len(), "column"),
        targets.join(", "),
        if fitted.no_header { " (without a header: the first row is data)" } else { "" }
    )];
    lines.extend(fit_report::facts(fitted).iter().map(|(what, words)| format!("  {what:<14}{words}")));
    lines.push(String::new());
    let scored = fitted.compared.truth.nrows();
    if fitted.figures.is_empty() {
        lines.push("There were too few rows to hold some out: nothing is known about how good the model is.".into());
    } else {
        lines.push(format!("On {} rows that had no part in the choice or the fit:", words::count(scored)));
        for figure in &fitted.figures {
            lines.push(format!("  {}", context.bold(&figure.in_words())));
        }
        lines.extend(fitted.intervals_in_words().map(|words| format!("  {words}")));
        lines.extend(fitted.against.iter().map(Against::in_words));
        lines.push(match fitted.all_rows {
            true => "The model in the file was then fitted to all rows, these included.".into(),
            false => "The model in the file was fitted without them.".to_owned(),
        });
    }
    // Of a single column there is nothing to say.
    if fitted.doubt.is_none() && fitted.importances.len() > 1 {
        let most = fitted.importances.iter().take(5).filter(|(_, share)| *share > 0.01);
        let most: Vec<String> = most.map(|(name, share)| format!("{name} {share:.2}")).collect();
        lines.push(format!("Columns that count most: {}.", most.join(", ")));
    }
    if let Some(doubt) = &fitted.doubt {
        lines.extend([String::new(), context.bold(&doubt.sentence)]);
        lines.extend(doubt.reasons.iter().map(|reason| format!("  {reason}")));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn to_json(fitted: &Trained, remarks: &[String], out: &std::path::Path, bytes: usize) -> serde_json::Value {
    let mut about = fitted.to_json();
    about["remarks"] = json!(remarks);
    about["file"] = json!(out.display().to_string());
    about["bytes"] = json!(bytes);
    about
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_model_is_called_after_its_data() {
        for (data, model) in
            [("a/houses.csv.gz", "houses.bochner"), ("-", "model.bochner"), (".hidden", "hidden.bochner")]
        {
            assert_eq!(default_name(Path::new(data)), Path::new(model));
        }
    }
}
