use crate::cli::Context;
use crate::demo;
use crate::output_args::{self, PlotsArgs};
use bochner::words;
use bochner_table::failure::Outcome;
use bochner_table::output;
use std::path::PathBuf;
use std::time::Instant;

/// See what the library does, on handwritten digits, in under two minutes
///
/// Approximates a Gaussian kernel on 1,797 handwritten digits with several random feature maps, compares the measured
/// error with the one predicted from closed-form variances, plans how many features an error of 2 % takes, and trains
/// classifiers on the features beside the exact kernel's, on a thousand digits and on 60,000 that are turned, resized and moved.
/// Writes plots, a page to read and the numbers.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner demo
  bochner demo --out /tmp/demo --seed 7
  bochner demo --plots png                   plots for slides")]
pub(crate) struct Args {
    /// Folder for report.html, results.json and the plots
    #[arg(long, value_name = "FOLDER", default_value = "bochner-demo")]
    out: PathBuf,
    #[command(flatten)]
    plots: PlotsArgs,
    /// Where the page goes, if not to report.html in that folder
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// A second instead of a minute
    #[arg(long, hide = true)]
    small: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    output::check_folder(&args.out)?;
    args.report.as_deref().map_or(Ok(()), output::check_file)?;
    let results = args.out.join("results.json");
    let outputs = [("results.json of --out", Some(results.as_path())), ("--report", args.report.as_deref())];
    output_args::check_apart(&outputs, &[])?;
    let start = Instant::now();
    let size = if args.small { &demo::Size::SMALL } else { &demo::Size::FULL };
    let results = demo::measure(size, context)?;
    let seconds = start.elapsed().as_secs_f64();

    args.plots.write(&args.out, &results.plots())?;
    let page = args.report.clone().unwrap_or_else(|| args.out.join("report.html"));
    output_args::write_page(&page, &results.report(context, seconds))?;
    output_args::write_json(&args.out.join("results.json"), &results.to_json(context, seconds))?;

    context.print(&results.summary(context))?;
    context.print(&format!(
        "Done in {}. Open {} to see the plots; the numbers are in {}.\n",
        words::duration(seconds),
        context.bold(&page.display().to_string()),
        args.out.join("results.json").display()
    ))
}
