use crate::cli::Context;
use crate::output_args::{FormatArgs, PlotsArgs};
use crate::values;
use bochner::words;
use bochner_papers::reproduce::scorecard::Scorecard;
use bochner_papers::reproduce::{self, Settings, Size, experiments};
use bochner_report::plot::wrap;
use bochner_report::table::{Cell, Format, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::output;
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
  bochner reproduce kid --set rows=1000 --keep results
  bochner reproduce --scorecard              every published number beside ours, from stored results
  bochner reproduce --scorecard --report scorecard.html
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
    /// One setting of an experiment: a number, a list such as [1024,2048], or all; its page names those that are smaller than in the
    /// paper
    #[arg(long, value_name = "NAME=VALUE", value_parser = named)]
    set: Vec<(String, String)>,
    /// Run nothing: every published number, ours from stored results, its noise, and a verdict
    #[arg(long, conflicts_with_all = ["quick", "paper", "draws", "set", "fresh", "data"])]
    scorecard: bool,
    /// Folder with results for the scorecard: a run writes NAME.json there, --scorecard reads it [default: what comes with the
    /// program]
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Folder with the data sets [default: $BOCHNER_DATA, then ../shared/data]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Folder for results, plots and report pages
    #[arg(long, value_name = "FOLDER", default_value = "bochner-reproduce")]
    out: PathBuf,
    #[command(flatten)]
    plots: PlotsArgs,
    /// Where the page goes: of one experiment, if not to report.html in its folder, or of the scorecard
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Forget the numbers of earlier runs
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// A setting and its value.
fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    if args.scorecard {
        return scorecard(args, context);
    }
    let settings = Settings {
        size: match (args.quick, args.paper) {
            (true, _) => Size::Quick,
            (_, true) => Size::Paper,
            _ => Size::Full,
        },
        draws: args.draws,
        set: &args.set,
        keep: args.keep.as_deref(),
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
    if let (None | Some("all"), Some((name, value))) = (args.name.as_deref(), args.set.first()) {
        return Err(Failure::Usage(format!("--set {name}={value} is a setting of one experiment: name one")));
    }
    let reproduce = |experiment| reproduce::run(experiment, &settings, context, &|text| context.print(text));
    match args.name.as_deref() {
        None if args.format.for_programs() => context.table(&list(), args.format),
        None => context.print(&listed(|name| context.bold(name))),
        Some("all") => {
            let mut failed = Vec::new();
            for experiment in experiments() {
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

/// Published numbers beside stored ones; of one experiment, or of all.
fn scorecard(args: &Args, context: &Context) -> Outcome {
    let only = match args.name.as_deref() {
        None | Some("all") => None,
        Some(name) => Some(reproduce::find(name)?),
    };
    args.report.as_deref().map_or(Ok(()), output::check_file)?;
    let card = Scorecard::read(args.keep.as_deref(), only)?;
    let format = Format::from(args.format);
    context.table(&if format == Format::Json { card.table_with_facts() } else { card.table() }, format)?;
    if !args.format.for_programs() {
        context.print("\n")?;
        card.lines().iter().try_for_each(|line| context.print(&format!("{line}\n")))?;
    }
    args.report.as_deref().map_or(Ok(()), |page| output::write_whole(page, card.page().as_bytes()))
}

/// Columns of a narrow terminal.
const WIDTH: usize = 80;

/// The list for people: a line per experiment would be as long as its longest list of data sets.
fn listed(bold: impl Fn(&str) -> String) -> String {
    let names = experiments().iter().map(|e| e.name.len()).max().unwrap_or(0);
    let mut text = format!("{:names$}   {:>11}   what it shows, on which data\n", "name", "full run");
    text += &format!("{}\n", "─".repeat(WIDTH));
    for e in experiments() {
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
    for e in experiments() {
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
        for e in experiments() {
            let told = e.what.split_whitespace().chain([e.name]);
            told.for_each(|word| assert!(words.contains(&word), "{}: {word}", e.name));
        }
    }
}
