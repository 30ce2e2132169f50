use crate::cli::Context;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::output;
use crate::plot::{Axis, Plot, Point, Series, Style};
use crate::progress::Progress;
use crate::read::{Data, Input, Options, Selection};
use crate::report::Report;
use crate::table::{Cell, Format, Table};
use bochner::feature::{Describe, Directions, FeatureMap, FourierSpec, PolynomialSpec, SketchKind, Spec, Structure};
use bochner::kernel::kernel_matrix;
use bochner::metrics::relative_frobenius_error;
use bochner::preprocess::{Centre, ColumnStatistics, LengthScale, ShiftNonNegative, UnitNorm, median_distance};
use bochner::projection::Sampling;
use bochner::random::{Role, Seed, Stream};
use bochner::rows::RowSource;
use bochner::variance::Weights;
use ndarray::{Array2, ArrayView2};
use std::path::PathBuf;
use std::time::Instant;

/// Which map approximates a kernel best on your data, and at what cost
///
/// Draws every applicable map several times on a sample of the rows and prints the relative Frobenius error of the
/// estimated kernel matrix, its standard deviation over draws, the error predicted from closed-form variances, and the
/// time to transform the sample.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner compare data.csv --drop label --kernel gaussian
  bochner compare data.npy --kernel polynomial --degree 3 --features 256,1024,4096 --out comparison
  bochner compare train-images-idx3-ubyte.gz --kernel polynomial --degree 6 --report page.html")]
pub(crate) struct Args {
    /// A CSV, TSV, NPY, NPZ, IDX or LIBSVM file, plain or gzip; - for standard input
    data: PathBuf,
    /// The kernel
    #[arg(long, value_enum, default_value = "gaussian")]
    kernel: KernelName,
    /// Degree of the polynomial kernel (gamma x.y + coef0)^degree
    #[arg(long, default_value_t = 3)]
    degree: u32,
    /// Factor of the inner product
    #[arg(long, default_value_t = 1.0)]
    gamma: f64,
    /// Constant of the polynomial kernel
    #[arg(long, default_value_t = 1.0)]
    coef0: f64,
    /// Length scale of the Gaussian kernel [default: the median distance of two rows]
    #[arg(long)]
    length_scale: Option<f64>,
    /// What is done to the rows first [default: centre for gaussian, unit for polynomial]
    #[arg(long, value_enum)]
    preprocess: Option<Preparation>,
    /// Numbers of features, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = human::parse_count, default_values_t = [256, 512, 1024, 2048, 4096])]
    features: Vec<usize>,
    /// Rows in the sample
    #[arg(long, default_value_t = 1000, value_parser = human::parse_count)]
    rows: usize,
    /// Draws of every map
    #[arg(long, default_value_t = 10, value_parser = human::parse_count)]
    draws: usize,
    /// Columns to leave out, separated by commas (labels, identifiers)
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    drop: Vec<String>,
    /// Folder for the plots and results.json
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// A page with tables and plots
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KernelName {
    Gaussian,
    Polynomial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Preparation {
    /// Nothing
    None,
    /// Subtract the mean of every column
    Centre,
    /// Scale every row to length one
    Unit,
    /// Shift every column to begin at zero, then scale every row to length one
    NonNegative,
}

struct Candidate {
    name: &'static str,
    spec: Spec,
}

/// What was found for one map and one number of features.
struct Entry {
    candidate: usize,
    features: usize,
    errors: Vec<f64>,
    predicted: Option<f64>,
    seconds: f64,
}

impl Entry {
    fn mean(&self) -> f64 {
        self.errors.iter().sum::<f64>() / self.errors.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.errors.iter().map(|e| (e - mean).powi(2)).sum();
        (squares / (self.errors.len() as f64 - 1.0).max(1.0)).sqrt()
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let seed = Seed::new(context.global.seed);
    let sample = prepare(sample(args, seed)?, args)?;
    let candidates = candidates(args, sample.view(), seed)?;
    let exact = kernel_matrix(&*candidates[0].spec.kernel()?, sample.view(), sample.view())?;
    let norm_sq: f64 = exact.iter().map(|k| k * k).sum();
    if norm_sq == 0.0 {
        return Err(Failure::Failed("every kernel value on these rows is 0: there is nothing to approximate".into()));
    }
    let single = sample.mapv(|v| v as f32);
    let progress = Progress::new(context, (candidates.len() * args.features.len() * args.draws) as u64);
    let mut entries = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        for &features in &args.features {
            progress.at(format!("{}, {} features", candidate.name, human::count(features)))?;
            let predicted = match with_budget(&candidate.spec, features, seed).variance(sample.view(), sample.view()) {
                Ok(variance) => Some((variance.sum() / norm_sq).sqrt()),
                Err(bochner::Error::Unsupported { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let (mut errors, mut times) = (Vec::new(), Vec::new());
            for draw in 0..args.draws {
                let spec = with_budget(&candidate.spec, features, seed.child(draw as u64));
                let map = spec.build::<f32>(sample.ncols())?;
                let mut out = Array2::zeros((single.nrows(), map.output_dim()));
                let start = Instant::now();
                map.transform_into(single.view(), out.view_mut())?;
                times.push(start.elapsed().as_secs_f64());
                errors.push(relative_frobenius_error(exact.view(), out.dot(&out.t()).view())?);
                progress.done(1)?;
            }
            times.sort_by(f64::total_cmp);
            let seconds = times[times.len() / 2];
            entries.push(Entry { candidate: index, features, errors, predicted, seconds });
        }
    }
    drop(progress);
    show(args, context, &candidates, &entries, sample.dim())
}

/// A uniform sample of the file's rows, without keeping more of them than asked for (reservoir sampling).
fn sample(args: &Args, seed: Seed) -> Outcome<Array2<f64>> {
    let selection = Selection { drop: args.drop.clone(), ..Selection::default() };
    let data = Data::open(Input::open(&args.data)?, None, &selection, &Options::default())?;
    let dim = data.schema().input_dim();
    let mut kept: Vec<f64> = Vec::new();
    let mut draw = Stream::new(seed, Role::Split, 0);
    let mut seen = 0;
    data.rows::<f64>().for_each_block(&mut |block| {
        for row in block.rows.rows() {
            if seen < args.rows {
                kept.extend(row);
            } else {
                let place = draw.below(seen as u64 + 1) as usize;
                if place < args.rows {
                    kept[place * dim..][..dim].iter_mut().zip(row).for_each(|(k, v)| *k = *v);
                }
            }
            seen += 1;
        }
        Ok(())
    })?;
    let rows = seen.min(args.rows);
    if rows < 2 || dim == 0 {
        let found = format!("{rows} rows of {dim} columns");
        return Err(Failure::Failed(format!("{}: comparing needs at least 2 rows and 1 column, found {found}", data.input().name)));
    }
    Array2::from_shape_vec((rows, dim), kept).map_err(|e| Failure::Failed(e.to_string()))
}

fn prepare(mut rows: Array2<f64>, args: &Args) -> Outcome<Array2<f64>> {
    let fallback = match args.kernel {
        KernelName::Gaussian => Preparation::Centre,
        KernelName::Polynomial => Preparation::Unit,
    };
    let mut seen = ColumnStatistics::new(rows.ncols());
    seen.push(rows.view())?;
    match args.preprocess.unwrap_or(fallback) {
        Preparation::None => {}
        Preparation::Centre => Centre::fit(&seen)?.apply(rows.view_mut())?,
        Preparation::Unit => UnitNorm::default().apply(rows.view_mut()),
        Preparation::NonNegative => {
            ShiftNonNegative::fit(&seen)?.apply(rows.view_mut())?;
            UnitNorm::default().apply(rows.view_mut());
        }
    }
    Ok(rows)
}

fn candidates(args: &Args, sample: ArrayView2<'_, f64>, seed: Seed) -> Outcome<Vec<Candidate>> {
    Ok(match args.kernel {
        KernelName::Gaussian => {
            let scale = match args.length_scale {
                Some(scale) => scale,
                None => median_distance(sample, seed, 2000)?,
            };
            let spec = |projection| FourierSpec { length_scale: LengthScale::Same(scale), projection, ..Default::default() };
            [("Fourier, dense", Directions::Gaussian), ("orthogonal", Directions::Orthogonal), ("SORF", Directions::Sorf)]
                .into_iter()
                .map(|(name, projection)| Candidate { name, spec: spec(projection).into() })
                .collect()
        }
        KernelName::Polynomial => {
            use {SketchKind as S, Weights as W};
            let base =
                PolynomialSpec { degree: args.degree, gamma: args.gamma, coef0: args.coef0, ..Default::default() };
            let mut list: Vec<Candidate> = [
                ("TensorSRHT, CtR", S::TensorSrht, W::Ctr),
                ("TensorSRHT, real", S::TensorSrht, W::Real),
                ("TensorSketch", S::TensorSketch, W::Real),
                ("Rademacher, CtR", S::Rademacher, W::Ctr),
                ("Rademacher, real", S::Rademacher, W::Real),
                ("Gaussian, real", S::Gaussian, W::Real),
            ]
            .into_iter()
            .map(|(name, sketch, weights)| Candidate {
                name,
                spec: PolynomialSpec { sketch, weights, srht: Sampling::Upsampled, ..base.clone() }.into(),
            })
            .collect();
            if args.degree > 3 {
                let spec = PolynomialSpec { structure: Structure::Tree, weights: W::Real, ..base };
                list.push(Candidate { name: "tree of TensorSRHT", spec: spec.into() });
            }
            list
        }
    })
}

fn with_budget(spec: &Spec, features: usize, seed: Seed) -> Spec {
    match spec.clone() {
        Spec::Fourier(spec) => FourierSpec { n_components: features, seed: seed.number(), ..spec }.into(),
        Spec::Polynomial(spec) => PolynomialSpec { n_components: features, seed: seed.number(), ..spec }.into(),
        other => other,
    }
}

fn show(args: &Args, context: &Context, candidates: &[Candidate], entries: &[Entry], shape: (usize, usize)) -> Outcome {
    let kernel = match args.kernel {
        KernelName::Gaussian => "Gaussian kernel".to_owned(),
        KernelName::Polynomial => format!("kernel ({} x·y + {})^{}", args.gamma, args.coef0, args.degree),
    };
    let mut table = Table::new(format!("{kernel} on {} rows of {} columns", human::count(shape.0), human::count(shape.1)))
        .words("map", "map")
        .numbers("features", "features")
        .numbers("error", "error")
        .numbers("deviation", "deviation")
        .numbers("predicted", "predicted")
        .numbers("seconds", "time");
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 && entries[i - 1].candidate != entry.candidate {
            table.start_group();
        }
        table.push(vec![
            Cell::text(candidates[entry.candidate].name),
            Cell::count(entry.features),
            Cell::percent(entry.mean(), 2),
            Cell::percent(entry.deviation(), 2),
            entry.predicted.map_or(Cell::missing("no closed form"), |p| Cell::percent(p, 2)),
            Cell::duration(entry.seconds),
        ]);
    }
    let plots = [("error-features", by_features(args, candidates, entries)), ("error-time", by_time(candidates, entries))];
    if let Some(folder) = &args.out {
        output::create_folder(folder)?;
        for (name, plot) in &plots {
            output::write_whole(&folder.join(format!("{name}.svg")), plot.to_svg().as_bytes())?;
        }
        output::write_whole(&folder.join("results.json"), format!("{:#}\n", table.to_json()).as_bytes())?;
    }
    if let Some(path) = &args.report {
        let mut report = Report::new(
            &format!("Comparison of random features: {kernel}"),
            "Relative error of the estimated kernel matrix, measured and predicted from closed-form variances.",
        );
        report.plot(&plots[0].1).plot(&plots[1].1).table(&table);
        output::write_whole(path, report.to_html().as_bytes())?;
    }
    table.print(context, args.format)
}

fn tip(candidate: &Candidate, entry: &Entry) -> String {
    let time = human::duration(entry.seconds);
    format!("{}, {} features\n{:.2} %, {time}", candidate.name, human::count(entry.features), 100.0 * entry.mean())
}

fn by_features(args: &Args, candidates: &[Candidate], entries: &[Entry]) -> Plot {
    let mut series = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let mut measured = Series::new(candidate.name, Style::Scatter, index);
        let mut predicted = Series::new(candidate.name, Style::Dashed, index).unlabelled();
        for entry in entries.iter().filter(|e| e.candidate == index) {
            let (x, mean, spread) = (entry.features as f64, entry.mean(), entry.deviation());
            measured.push(Point::new(x, mean).with_range(mean - spread, mean + spread), tip(candidate, entry));
            if let Some(p) = entry.predicted {
                predicted.push(Point::new(x, p), format!("{}\npredicted {:.2} %", candidate.name, 100.0 * p));
            }
        }
        series.extend([predicted, measured]);
    }
    Plot {
        title: "Error against number of features".into(),
        subtitle: format!("Marks: mean of {} draws with one standard deviation. Dashed: predicted.", args.draws),
        x: Axis::log("number of features").with_ticks(args.features.iter().map(|&f| f as f64).collect()),
        y: Axis::log("relative error of the kernel matrix").in_percent(),
        series,
    }
}

fn by_time(candidates: &[Candidate], entries: &[Entry]) -> Plot {
    let series = candidates.iter().enumerate().map(|(index, candidate)| {
        let mut line = Series::new(candidate.name, Style::Marks, index);
        for entry in entries.iter().filter(|e| e.candidate == index) {
            line.push(Point::new(1e3 * entry.seconds, entry.mean()), tip(candidate, entry));
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
