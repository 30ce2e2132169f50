use crate::cli::Context;
use crate::kernel_args::{SampleArgs, Study};
use crate::output_args::{self, FormatArgs, PlotsArgs};
use crate::values;
use bochner::plan::{Candidate, Measured, Trial};
use bochner::random::Seed;
use bochner::words;
use bochner_report::Report;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::output;
use bochner_table::progress::{Progress, Watch};
use bochner_table::sample::{Kernel, Sampled, scaled};
use std::collections::BTreeSet;
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
    pub(crate) sample: SampleArgs,
}

impl Args {
    /// Draws of maps with so many features: their products take as long as those of 10 draws of 1024 features, about.
    fn draws(&self, features: usize) -> usize {
        self.draws.unwrap_or((10 * 1024 / features).clamp(3, 10))
    }
}

/// What was found for one map and one number of features.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) features: usize,
    pub(crate) measured: Measured,
    /// The predicted error, and whether it is a closed form.
    pub(crate) predicted: Option<(f64, bool)>,
}

/// The entries of one map after those of another.
pub(crate) fn by_map(entries: &[Entry]) -> impl Iterator<Item = (usize, &[Entry])> {
    entries.chunk_by(|a, b| a.name == b.name).enumerate()
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    if args.plots.plots.is_some() && args.out.is_none() {
        return Err(Failure::Usage("--plots: plots go into the folder of --out, and none is named".into()));
    }
    let request = args.sample.kernel(context)?;
    args.out.as_deref().map_or(Ok(()), output::check_folder)?;
    args.report.as_deref().map_or(Ok(()), output::check_file)?;
    let results = args.out.as_ref().map(|folder| folder.join("results.json"));
    let outputs = [("results.json of --out", results.as_deref()), ("--report", args.report.as_deref())];
    output_args::check_apart(&outputs, &[args.sample.named()])?;
    args.sample.study(context, &request, args)
}

impl Study for Args {
    fn on<T: Trial>(&self, context: &Context, kernel: &Kernel, sampled: &Sampled, sample: &T) -> Outcome {
        let (candidates, rows) = (sample.candidates()?, sample.rows().nrows());
        let draws: usize = self.features.iter().map(|&features| self.draws(features)).sum();
        let progress = context.steps((candidates.len() * draws) as u64);
        let seed = Seed::new(context.global.seed);
        let (entries, left_out) =
            measure(sample, &candidates, &self.features, &|features| self.draws(features), seed, &*progress)?;
        drop(progress);
        if entries.is_empty() {
            return Err(Failure::Failed(format!("no map of this kernel suits the rows: {}", left_out.join("; "))));
        }
        show(self, context, kernel, &entries, sampled, rows)?;
        if !self.format.for_programs() {
            context.print(&format!("\n{}\n", sampled.prepared(rows)))?;
            left_out.iter().try_for_each(|line| context.print(&format!("{line}\n")))?;
            context.print(&scaled(candidates.iter().map(|candidate| candidate.factor)))?;
        }
        Ok(())
    }
}

/// Predicts and measures the errors of maps with so many features each; a map that does not suit the rows (an exponent
/// beyond range, rows off the sphere) is left out, with the reason: the others still do.
pub(crate) fn measure<T: Trial>(
    sample: &T,
    candidates: &[Candidate<T::Spec>],
    features: &[usize],
    draws: &dyn Fn(usize) -> usize,
    seed: Seed,
    progress: &dyn Progress,
) -> Outcome<(Vec<Entry>, Vec<String>)> {
    let (mut entries, mut left_out) = (Vec::new(), Vec::new());
    let mut tick = || progress.done(1).map_err(|_| bochner::Error::Interrupted);
    for candidate in candidates {
        for &features in features {
            let name = candidate.name.clone();
            progress.at(format!("{name}, {} features", words::count(features)).into())?;
            let mut entry = || {
                let sized = sample.sized(candidate, features, seed)?;
                let predicted = match sample.expected(&sized) {
                    Err(bochner::Error::Unsupported { .. }) => None,
                    predicted => Some(predicted?),
                };
                Ok((sample.measured(&sized, draws(features), seed, &mut tick)?, predicted))
            };
            match entry() {
                Ok((measured, predicted)) => entries.push(Entry { name, features, measured, predicted }),
                Err(bochner::Error::Unsupported { what, reason }) => {
                    left_out.push(format!("{name} was left out: {what}: {reason}"));
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok((entries, left_out))
}

/// Measured errors beside predicted ones.
pub(crate) fn table(title: &str, entries: &[Entry]) -> Table {
    let mut table = Table::new(title)
        .words("map", "map")
        .numbers("features", "features")
        .numbers("error", "error")
        .numbers("deviation", "deviation")
        .numbers("draws", "draws")
        .numbers("predicted", "predicted")
        .words("prediction", "by")
        .numbers("seconds", "time");
    for (index, entries) in by_map(entries) {
        if index > 0 {
            table.start_group();
        }
        for Entry { name, features, measured, predicted } in entries {
            let several = measured.errors.len() > 1;
            table.push(vec![
                Cell::text(&**name),
                Cell::count(*features),
                Cell::percent(measured.mean(), 2),
                if several { Cell::percent(measured.deviation(), 2) } else { Cell::missing("–") },
                Cell::count(measured.errors.len()),
                predicted.map_or(Cell::missing("not known"), |(p, _)| Cell::percent(p, 2)),
                Cell::text(match predicted {
                    Some((_, true)) => "closed form",
                    Some((_, false)) => "approximate",
                    None => "none",
                }),
                Cell::duration(measured.seconds),
            ]);
        }
    }
    table
}

fn show(args: &Args, context: &Context, kernel: &Kernel, entries: &[Entry], sampled: &Sampled, rows: usize) -> Outcome {
    let (facts, kernel) = (sampled.facts(kernel, rows)?, kernel.title());
    let columns = words::things(sampled.rows.ncols(), "column");
    let title = format!("{kernel} on {} of {columns}", words::things(rows, "row"));
    let table = table(&title, entries).with_facts("maps", facts);
    let subtitle = match args.draws {
        Some(1) => "Marks: one draw. Dashed: predicted.",
        _ => "Marks: mean of several draws with one standard deviation. Dashed: predicted.",
    };
    let plots = [("error-features", by_features(subtitle, entries)), ("error-time", by_time(entries))];
    if let Some(folder) = &args.out {
        args.plots.write(folder, &plots)?;
        output_args::write_json(&folder.join("results.json"), &table.to_json())?;
    }
    if let Some(path) = &args.report {
        let mut report = Report::new(
            &format!("Comparison of random features: {kernel}"),
            "Relative error of the estimated kernel matrix, measured and predicted from closed-form variances.",
        );
        report.paragraph(&sampled.prepared(rows));
        report.plot(&plots[0].1).plot(&plots[1].1).table(&table);
        output_args::write_page(path, &report)?;
    }
    context.table(&table, args.format)
}

/// Marks for each map; `at` says where that of an entry lies, and with which bar.
pub(crate) fn marks(style: Style, entries: &[Entry], at: &dyn Fn(&Entry) -> Point) -> Vec<Series> {
    let series = by_map(entries).map(|(index, entries)| {
        let mut marks = Series::new(&*entries[0].name, style, index);
        for entry in entries {
            let (point, features, time) = (at(entry), words::count(entry.features), &entry.measured.seconds);
            let (value, time) = (100.0 * point.y, words::duration(*time));
            marks.push(point, format!("{}, {features} features\n{value:.2} %, {time}", entry.name));
        }
        marks
    });
    series.collect()
}

/// An axis with the numbers of features that occur.
pub(crate) fn features_axis(entries: &[Entry]) -> Axis {
    let features: BTreeSet<usize> = entries.iter().map(|entry| entry.features).collect();
    Axis::log("number of features").with_ticks(features.into_iter().map(|features| features as f64).collect())
}

pub(crate) fn by_features(subtitle: &str, entries: &[Entry]) -> Plot {
    let mut series = marks(Style::Scatter, entries, &|Entry { features, measured, .. }| {
        let (mean, spread) = (measured.mean(), measured.deviation());
        let point = Point::new(*features as f64, mean);
        if measured.errors.len() > 1 { point.with_range(mean - spread, mean + spread) } else { point }
    });
    for (index, entries) in by_map(entries) {
        let mut predicted = Series::new(&*entries[0].name, Style::Dashed, index).unlabelled();
        for entry in entries {
            if let Some((p, _)) = entry.predicted {
                let tip = format!("{}\npredicted {:.2} %", entry.name, 100.0 * p);
                predicted.push(Point::new(entry.features as f64, p), tip);
            }
        }
        series.push(predicted);
    }
    Plot {
        title: "Error against number of features".into(),
        subtitle: subtitle.into(),
        x: features_axis(entries),
        y: Axis::log("relative error of the kernel matrix").in_percent(),
        series,
    }
}

fn by_time(entries: &[Entry]) -> Plot {
    Plot {
        title: "Error against time".into(),
        subtitle: "Median time to transform the sample; one mark per number of features.".into(),
        x: Axis::log("milliseconds"),
        y: Axis::log("relative error of the kernel matrix").in_percent(),
        series: marks(Style::Marks, entries, &|Entry { measured, .. }| {
            Point::new(1e3 * measured.seconds, measured.mean())
        }),
    }
}
