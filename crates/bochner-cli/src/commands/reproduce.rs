use crate::cli::Context;
use crate::failure::Outcome;
use crate::human;
use crate::plot::file::PlotsArgs;
use crate::reproduce::{self, EXPERIMENTS, Settings};
use crate::table::{Cell, Format, Table};
use std::path::PathBuf;

/// The papers' experiments: their numbers beside ours
///
/// Without a name, lists the experiments. With one, runs it, prints the paper's number, ours and the difference, and writes
/// plots and a report page. Numbers are remembered as they come, so an interrupted run goes on where it stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner reproduce                          what there is
  bochner reproduce sketch-time --quick      a meaningful result in under two minutes
  bochner reproduce all --quick              every experiment whose data are there
  bochner reproduce compressive-mnist --draws 20
  bochner reproduce variance-ratios --data ~/data --out results --plots png")]
pub(crate) struct Args {
    /// Name of the experiment, or all
    name: Option<String>,
    /// Smaller sizes: a meaningful result in under two minutes
    #[arg(long)]
    quick: bool,
    /// Draws and sizes of the papers where a full run has less: hours or days
    #[arg(long, conflicts_with = "quick")]
    paper: bool,
    /// Draws of everything random [default: what fits the time of the run, 10 for most]
    #[arg(long, value_parser = human::parse_count)]
    draws: Option<usize>,
    /// Folder with the data sets [default: $BOCHNER_DATA, then ../shared/data]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Folder for results, plots and report pages
    #[arg(long, value_name = "FOLDER", default_value = "bochner-reproduce")]
    out: PathBuf,
    #[command(flatten)]
    plots: PlotsArgs,
    /// Where the page of one experiment goes, if not to report.html in its folder
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Forget the numbers of earlier runs
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let settings = Settings {
        quick: args.quick,
        paper: args.paper,
        seeds: args.draws,
        data: args.data.as_deref(),
        out: &args.out,
        plots: args.plots,
        report: args.report.as_deref(),
        fresh: args.fresh,
        format: args.format,
    };
    if let (None | Some("all"), Some(page)) = (args.name.as_deref(), settings.report) {
        return Err(crate::failure::Failure::Usage(format!(
            "--report {} is the page of one experiment: name one, or find a page for each in --out {}",
            page.display(),
            args.out.display()
        )));
    }
    match args.name.as_deref() {
        None => list().print(context, args.format),
        Some("all") => {
            let mut failed = Vec::new();
            for experiment in EXPERIMENTS {
                match reproduce::run(experiment, &settings, context) {
                    Ok(()) => {}
                    Err(crate::failure::Failure::Interrupted) => return Err(crate::failure::Failure::Interrupted),
                    Err(failure) => failed.push(format!("{}: {failure}", experiment.name)),
                }
            }
            if failed.is_empty() { Ok(()) } else { Err(crate::failure::Failure::Failed(failed.join("\n"))) }
        }
        Some(name) => reproduce::run(reproduce::find(name)?, &settings, context),
    }
}

fn list() -> Table {
    let mut table = Table::new("Experiments")
        .words("name", "name")
        .words("what", "what it shows")
        .words("data", "data sets")
        .numbers("minutes", "full run");
    for e in EXPERIMENTS {
        table.push(vec![
            Cell::text(e.name),
            Cell::text(e.what),
            Cell::text(e.needs.join(", ")),
            Cell::duration(60.0 * e.minutes),
        ]);
    }
    table
}
