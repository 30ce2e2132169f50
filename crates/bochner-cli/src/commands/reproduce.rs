use crate::cli::Context;
use crate::output_args::{FormatArgs, PlotsArgs};
use crate::values;
use bochner::words;
use bochner_papers::reproduce::{self, EXPERIMENTS, Settings};
use bochner_report::plot::wrap;
use bochner_report::table::{Cell, Table};
use bochner_table::failure::{Failure, Outcome};
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
    #[arg(long, value_parser = values::parse_count)]
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
    format: FormatArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let settings = Settings {
        quick: args.quick,
        paper: args.paper,
        seeds: args.draws,
        data: args.data.as_deref(),
        out: &args.out,
        plots: args.plots.plots.unwrap_or_default(),
        report: args.report.as_deref(),
        fresh: args.fresh,
        format: args.format.into(),
        colour: context.colour,
        quiet: context.global.quiet,
        seed: context.global.seed,
    };
    if let (None | Some("all"), Some(page)) = (args.name.as_deref(), settings.report) {
        return Err(Failure::Usage(format!(
            "--report {} is the page of one experiment: name one, or find a page for each in --out {}",
            page.display(),
            args.out.display()
        )));
    }
    let reproduce = |experiment| reproduce::run(experiment, &settings, context, &|text| context.print(text));
    match args.name.as_deref() {
        None if args.format.for_programs() => context.table(&list(), args.format),
        None => context.print(&listed(|name| context.bold(name))),
        Some("all") => {
            let mut failed = Vec::new();
            for experiment in EXPERIMENTS {
                match reproduce(experiment) {
                    Ok(()) => {}
                    Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                    Err(failure) => failed.push(format!("{}: {failure}", experiment.name)),
                }
            }
            if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(failed.join("\n"))) }
        }
        Some(name) => reproduce(reproduce::find(name)?),
    }
}

/// Columns of a narrow terminal.
const WIDTH: usize = 80;

/// The list for people: a line per experiment would be as long as its longest list of data sets.
fn listed(bold: impl Fn(&str) -> String) -> String {
    let names = EXPERIMENTS.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let mut text = format!("{:names$}   {:>11}   what it shows, on which data\n", "name", "full run");
    text += &format!("{}\n", "─".repeat(WIDTH));
    for e in EXPERIMENTS {
        let mut lines = wrap(e.what, WIDTH - names - 17);
        if !e.needs.is_empty() {
            lines.extend(wrap(&format!("({})", e.needs.join(", ")), WIDTH - names - 17));
        }
        let name = bold(e.name) + &" ".repeat(names - e.name.len());
        let mut head = format!("{name}   {:>11}   ", words::duration(60.0 * e.minutes));
        for line in lines {
            text += &format!("{head}{line}\n");
            head = " ".repeat(names + 17);
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_a_narrow_terminal_and_leaves_nothing_out() {
        let text = listed(|name| name.to_owned());
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH && line.trim_end() == line, "{line}");
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        for e in EXPERIMENTS {
            let told = e.what.split_whitespace().chain([e.name]);
            told.for_each(|word| assert!(words.contains(&word), "{}: {word}", e.name));
        }
    }
}
