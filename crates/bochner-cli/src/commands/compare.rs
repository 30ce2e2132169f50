use crate::cli::Context;
use bochner_table::failure::{Failure, Outcome};
use bochner::words;
use crate::values;
use bochner_table::output;
use bochner_table::pipeline::Preparation;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use crate::progress::Bar;
use bochner_table::progress::Progress;
use bochner_report::Report;
use crate::output_args::{FormatArgs, PlotsArgs};
use bochner_report::table::{Cell, Table};
use crate::kernel_args::{KernelArgs, SampleArgs};
use bochner_table::sample::{Kernel, Sampled, scaled};
use bochner::plan::{Candidate, FieldSample, Measured, Sample, Trial};
use bochner::random::Seed;
use std::path::PathBuf;

/// Which map approximates a kernel best on your data, and at what cost
///
/// Draws every applicable map several times on a sample of the rows and prints the relative Frobenius error of the
/// estimated kernel matrix (of all blocks, where values of the kernel are matrices), its standard deviation over draws, the
/// error predicted from closed-form variances, and the time to transform the sample. Rows are prepared as fit would
/// prepare them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner compare data.csv --target label --kernel gaussian
  bochner compare data.npy --kernel polynomial --features 256,1024 --out comparison --plots png
  bochner compare train-images-idx3-ubyte.gz --kernel polynomial --set degree=6 --report page.html
  bochner compare wind.csv --target u,v --kernel divergence_free --out comparison   # a field")]
pub(crate) struct Args {
    /// Numbers of features, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = values::parse_count, default_values_t = [256, 512, 1024, 2048, 4096])]
    features: Vec<usize>,
    /// Draws of every map [default: 10, fewer from 2048 features on, but 3 at least]
    #[arg(long, value_parser = values::parse_count)]
    draws: Option<usize>,
    /// Folder for the plots and results.json
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    #[command(flatten)]
    plots: PlotsArgs,
    /// A page with tables and plots
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
    // With headings of their own, which what follows them would get too.
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    sample: SampleArgs,
}

impl Args {
    /// Draws of maps with so many features: their products take as long as those of 10 draws of 1024 features, about.
    fn draws(&self, features: usize) -> usize {
        self.draws.unwrap_or((10 * 1024 / features).clamp(3, 10))
    }
}

/// What was found for one map and one number of features.
struct Entry {
    candidate: usize,
    features: usize,
    measured: Measured,
    /// The predicted error, and whether it is a closed form.
    predicted: Option<(f64, bool)>,
}

impl Entry {
    /// Standard deviation over draws, of which one has none.
    fn deviation(&self) -> Option<f64> {
        (self.measured.errors.len() > 1).then(|| self.measured.deviation())
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    if args.plots.plots.is_some() && args.out.is_none() {
        return Err(Failure::Usage("--plots: plots go into the folder of --out, and none is named".into()));
    }
    let request = args.kernel.request(context)?;
    args.out.as_deref().map_or(Ok(()), output::check_folder)?;
    args.report.as_deref().map_or(Ok(()), output::check_file)?;
    let results = args.out.as_ref().map(|folder| folder.join("results.json"));
    let outputs = [("results.json of --out", results.as_deref()), ("--report", args.report.as_deref())];
    let outputs: Vec<_> = outputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
    output::check_apart(&outputs, &[args.sample.named()])?;
    let seed = Seed::new(context.global.seed);
    let sampled = args.sample.read(context, &request, Preparation::Auto)?;
    let (kernel, rows) = (request.resolve(&sampled, seed)?, sampled.rows.view());
    match &kernel {
        Kernel::Scalar(values) => compare(args, context, &kernel, &sampled, &Sample::new(values, rows)?),
        Kernel::Operator(values) => compare(args, context, &kernel, &sampled, &FieldSample::new(values, rows)?),
    }
}

fn compare<T: Trial>(args: &Args, context: &Context, kernel: &Kernel, sampled: &Sampled, sample: &T) -> Outcome {
    let seed = Seed::new(context.global.seed);
    let candidates = sample.candidates()?;
    let draws: usize = args.features.iter().map(|&features| args.draws(features)).sum();
    let progress = Bar::new(context, (candidates.len() * draws) as u64);
    let (mut entries, mut left_out) = (Vec::new(), Vec::new());
    for (index, candidate) in candidates.iter().enumerate() {
        for &features in &args.features {
            progress.at(format!("{}, {} features", candidate.name, words::count(features)).into())?;
            match entry(args, sample, candidate, features, seed, &progress) {
                Ok((measured, predicted)) => entries.push(Entry { candidate: index, features, measured, predicted }),
                // A map may not suit these rows (an exponent beyond range, rows off the sphere): the others still do.
                Err(bochner::Error::Unsupported { what, reason }) => {
                    left_out.push(format!("{} was left out: {what}: {reason}", candidate.name));
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    drop(progress);
    if entries.is_empty() {
        return Err(Failure::Failed(format!("no map of this kernel suits the rows: {}", left_out.join("; "))));
    }
    let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    show(args, context, kernel, &names, &entries, sampled, sample.rows().nrows())?;
    if !args.format.for_programs() {
        context.print(&format!("\n{}\n", sampled.prepared(sample.rows().nrows())))?;
        left_out.iter().try_for_each(|line| context.print(&format!("{line}\n")))?;
        context.print(&scaled(candidates.iter().map(|candidate| candidate.factor)))?;
    }
    Ok(())
}

fn entry<T: Trial>(
    args: &Args,
    sample: &T,
    candidate: &Candidate<T::Spec>,
    features: usize,
    seed: Seed,
    progress: &dyn Progress,
) -> bochner::Result<(Measured, Option<(f64, bool)>)> {
    let candidate = sample.sized(candidate, features, seed)?;
    let predicted = match sample.expected(&candidate) {
        Ok(predicted) => Some(predicted),
        Err(bochner::Error::Unsupported { .. }) => None,
        Err(error) => return Err(error),
    };
    let mut tick = || progress.done(1).map_err(|_| bochner::Error::Interrupted);
    Ok((sample.measured(&candidate, args.draws(features), seed, &mut tick)?, predicted))
}

fn show(
    args: &Args,
    context: &Context,
    kernel: &Kernel,
    names: &[&str],
    entries: &[Entry],
    sampled: &Sampled,
    rows: usize,
) -> Outcome {
    let (facts, kernel) = (sampled.facts(kernel, rows)?, kernel.title());
    let columns = words::things(sampled.rows.ncols(), "column");
    let mut table = Table::new(format!("{kernel} on {} of {columns}", words::things(rows, "row")))
        .with_facts("maps", facts)
        .words("map", "map")
        .numbers("features", "features")
        .numbers("error", "error")
        .numbers("deviation", "deviation")
        .numbers("draws", "draws")
        .numbers("predicted", "predicted")
        .words("prediction", "by")
        .numbers("seconds", "time");
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 && entries[i - 1].candidate != entry.candidate {
            table.start_group();
        }
        table.push(vec![
            Cell::text(names[entry.candidate]),
            Cell::count(entry.features),
            Cell::percent(entry.measured.mean(), 2),
            entry.deviation().map_or(Cell::missing("–"), |deviation| Cell::percent(deviation, 2)),
            Cell::count(entry.measured.errors.len()),
            entry.predicted.map_or(Cell::missing("not known"), |(p, _)| Cell::percent(p, 2)),
            Cell::text(match entry.predicted {
                Some((_, true)) => "closed form",
                Some((_, false)) => "approximate",
                None => "none",
            }),
            Cell::duration(entry.measured.seconds),
        ]);
    }
    let plots = [("error-features", by_features(args, names, entries)), ("error-time", by_time(names, entries))];
    if let Some(folder) = &args.out {
        output::create_folder(folder)?;
        for (name, plot) in &plots {
            args.plots.write(folder, name, &plot.to_svg())?;
        }
        output::write_whole(&folder.join("results.json"), format!("{:#}\n", table.to_json()).as_bytes())?;
    }
    if let Some(path) = &args.report {
        let mut report = Report::new(
            &format!("Comparison of random features: {kernel}"),
            "Relative error of the estimated kernel matrix, measured and predicted from closed-form variances.",
        );
        report.paragraph(&sampled.prepared(rows));
        report.plot(&plots[0].1).plot(&plots[1].1).table(&table);
        output::write_whole(path, report.to_html().as_bytes())?;
    }
    context.table(&table, args.format)
}

fn tip(name: &str, entry: &Entry) -> String {
    let time = words::duration(entry.measured.seconds);
    format!("{name}, {} features\n{:.2} %, {time}", words::count(entry.features), 100.0 * entry.measured.mean())
}

fn by_features(args: &Args, names: &[&str], entries: &[Entry]) -> Plot {
    let mut series = Vec::new();
    for (index, &name) in names.iter().enumerate() {
        let mut measured = Series::new(name, Style::Scatter, index);
        let mut predicted = Series::new(name, Style::Dashed, index).unlabelled();
        for entry in entries.iter().filter(|e| e.candidate == index) {
            let (x, mean) = (entry.features as f64, entry.measured.mean());
            let point = Point::new(x, mean);
            let bar = |spread: f64| point.with_range(mean - spread, mean + spread);
            measured.push(entry.deviation().map_or(point, bar), tip(name, entry));
            if let Some((p, _)) = entry.predicted {
                predicted.push(Point::new(x, p), format!("{name}\npredicted {:.2} %", 100.0 * p));
            }
        }
        series.extend([predicted, measured]);
    }
    Plot {
        title: "Error against number of features".into(),
        subtitle: match args.draws {
            Some(1) => "Marks: one draw. Dashed: predicted.".into(),
            _ => "Marks: mean of several draws with one standard deviation. Dashed: predicted.".into(),
        },
        x: Axis::log("number of features").with_ticks(args.features.iter().map(|&f| f as f64).collect()),
        y: Axis::log("relative error of the kernel matrix").in_percent(),
        series,
    }
}

fn by_time(names: &[&str], entries: &[Entry]) -> Plot {
    let series = names.iter().enumerate().map(|(index, &name)| {
        let mut line = Series::new(name, Style::Marks, index);
        for entry in entries.iter().filter(|e| e.candidate == index) {
            line.push(Point::new(1e3 * entry.measured.seconds, entry.measured.mean()), tip(name, entry));
        }
        line
    });
    Plot {
        title: "Error against time".into(),
        subtitle: "Median time to transform the sample; one mark per number of features.".into(),
        x: Axis::log("milliseconds"),
        y: Axis::log("relative error of the kernel matrix").in_percent(),
        series: series.collect(),
    }
}
