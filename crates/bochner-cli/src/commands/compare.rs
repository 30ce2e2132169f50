use crate::cli::Context;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::output;
use crate::pipeline::Preparation;
use crate::plot::file::PlotsArgs;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::progress::Progress;
use crate::report::Report;
use crate::table::{Cell, Format, Table};
use crate::target::{KernelArgs, SampleArgs, Sampled, scaled, title};
use bochner::feature::Describe;
use bochner::kernel::Any;
use bochner::plan::{Candidate, Measured, Sample, candidates};
use bochner::random::Seed;
use std::path::PathBuf;

/// Which map approximates a kernel best on your data, and at what cost
///
/// Draws every applicable map several times on a sample of the rows and prints the relative Frobenius error of the
/// estimated kernel matrix, its standard deviation over draws, the error predicted from closed-form variances, and the
/// time to transform the sample. Rows are prepared as fit would prepare them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner compare data.csv --target label --kernel gaussian
  bochner compare data.npy --kernel polynomial --degree 3 --features 256,1024,4096 --out comparison --plots png
  bochner compare train-images-idx3-ubyte.gz --kernel polynomial --degree 6 --report page.html")]
pub(crate) struct Args {
    /// Numbers of features, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = human::parse_count, default_values_t = [256, 512, 1024, 2048, 4096])]
    features: Vec<usize>,
    /// Draws of every map [default: 10, fewer from 2048 features on, but 3 at least]
    #[arg(long, value_parser = human::parse_count)]
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
    format: Format,
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
    args.kernel.check()?;
    args.out.as_deref().map_or(Ok(()), output::check_folder)?;
    args.report.as_deref().map_or(Ok(()), output::check_file)?;
    let results = args.out.as_ref().map(|folder| folder.join("results.json"));
    let outputs = [("results.json of --out", results.as_deref()), ("--report", args.report.as_deref())];
    let outputs: Vec<_> = outputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
    output::check_apart(&outputs, &[args.sample.named()])?;
    let seed = Seed::new(context.global.seed);
    let sampled = args.sample.read(context, Preparation::Auto)?;
    let rows = &sampled.rows;
    let kernel = args.kernel.resolve(rows.view(), seed)?;
    let sample = Sample::new(&kernel, rows.view())?;
    let candidates = candidates(&kernel, rows.view())?;
    let draws: usize = args.features.iter().map(|&features| args.draws(features)).sum();
    let progress = Progress::new(context, (candidates.len() * draws) as u64);
    let (mut entries, mut left_out) = (Vec::new(), Vec::new());
    for (index, candidate) in candidates.iter().enumerate() {
        let sample = sample.over(candidate.factor);
        for &features in &args.features {
            progress.at(format!("{}, {} features", candidate.name, human::count(features)))?;
            match entry(args, &sample, candidate, features, seed, &progress) {
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
    show(args, context, &kernel, &candidates, &entries, &sampled)?;
    if !args.format.for_programs() {
        context.print(&format!("\n{}\n", sampled.prepared()))?;
        left_out.iter().try_for_each(|line| context.print(&format!("{line}\n")))?;
        context.print(&scaled(candidates.iter().map(|candidate| candidate.factor)))?;
    }
    Ok(())
}

fn entry(
    args: &Args,
    sample: &Sample<'_>,
    candidate: &Candidate,
    features: usize,
    seed: Seed,
    progress: &Progress,
) -> bochner::Result<(Measured, Option<(f64, bool)>)> {
    let spec = candidate.spec.redrawn(features, seed.number()).resolve(sample.rows())?;
    let predicted = match sample.predict(&spec) {
        Ok(predicted) => Some(predicted),
        Err(bochner::Error::Unsupported { .. }) => None,
        Err(error) => return Err(error),
    };
    let tick = || progress.done(1).map_err(|_| bochner::Error::Interrupted);
    Ok((sample.measure(&spec, args.draws(features), seed, tick)?, predicted))
}

fn show(
    args: &Args,
    context: &Context,
    kernel: &Any,
    candidates: &[Candidate],
    entries: &[Entry],
    sampled: &Sampled,
) -> Outcome {
    let (facts, kernel) = (sampled.facts(kernel)?, title(kernel));
    let (rows, columns) = (human::things(sampled.rows.nrows(), "row"), human::things(sampled.rows.ncols(), "column"));
    let mut table = Table::new(format!("{kernel} on {rows} of {columns}"))
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
            Cell::text(&*candidates[entry.candidate].name),
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
    let plots = [("error-features", by_features(args, candidates, entries)), ("error-time", by_time(candidates, entries))];
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
        report.paragraph(&sampled.prepared());
        report.plot(&plots[0].1).plot(&plots[1].1).table(&table);
        output::write_whole(path, report.to_html().as_bytes())?;
    }
    table.print(context, args.format)
}

fn tip(candidate: &Candidate, entry: &Entry) -> String {
    let time = human::duration(entry.measured.seconds);
    format!("{}, {} features\n{:.2} %, {time}", candidate.name, human::count(entry.features), 100.0 * entry.measured.mean())
}

fn by_features(args: &Args, candidates: &[Candidate], entries: &[Entry]) -> Plot {
    let mut series = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let mut measured = Series::new(&*candidate.name, Style::Scatter, index);
        let mut predicted = Series::new(&*candidate.name, Style::Dashed, index).unlabelled();
        for entry in entries.iter().filter(|e| e.candidate == index) {
            let (x, mean) = (entry.features as f64, entry.measured.mean());
            let point = Point::new(x, mean);
            let bar = |spread: f64| point.with_range(mean - spread, mean + spread);
            measured.push(entry.deviation().map_or(point, bar), tip(candidate, entry));
            if let Some((p, _)) = entry.predicted {
                predicted.push(Point::new(x, p), format!("{}\npredicted {:.2} %", candidate.name, 100.0 * p));
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

fn by_time(candidates: &[Candidate], entries: &[Entry]) -> Plot {
    let series = candidates.iter().enumerate().map(|(index, candidate)| {
        let mut line = Series::new(&*candidate.name, Style::Marks, index);
        for entry in entries.iter().filter(|e| e.candidate == index) {
            line.push(Point::new(1e3 * entry.measured.seconds, entry.measured.mean()), tip(candidate, entry));
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
