use crate::cli::Context;
use crate::kernel_args::{SampleArgs, Study};
use crate::output_args::{self, FormatArgs};
use crate::values;
use bochner::kernel::{AnyKernel, Gaussian};
use bochner::plan::{Measured, Plan, Request, Trial};
use bochner::preprocess::{Basis, Shape, SparseTransform, sparsity_at_energy};
use bochner::variance::bounds::{CompressiveFourier, SparseFourier};
use bochner::words;
use bochner_report::plot::{Axis, Plot, Point, Series, Style};
use bochner_report::table::{Cell, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::pipeline::Preparation;
use bochner_table::progress::Watch;
use bochner_table::sample::{Kernel, KernelRequest, Sampled, scaled};
use serde_json::Value;
use std::path::PathBuf;

/// Which map reaches an error on your data, and with how many features
///
/// Computes, from closed-form variances and biases on a sample of the rows, how many features each applicable map needs
/// for a relative error of the kernel matrix, what that costs in time and memory for the whole file, and verifies the
/// fastest by drawing it. Rows are prepared as fit would prepare them. Features of kernels whose values are matrices are
/// cosines and sines; the error is that of all blocks. With --sparse it measures instead how sparse the
/// rows are in several bases and prints how many features the theorems about sparse rows ask for.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner plan data.csv --target label --error 0.05
  bochner plan train-images-idx3-ubyte.gz --kernel polynomial --set degree=3 --error 2%
  bochner plan data.npy --kernel matern --set nu=2.5 --error 0.1 --json | jq .maps
  bochner plan data.npy --error 0.05 --plot costs.png
  bochner plan wind.csv --target u,v --kernel helmholtz --set curl_free=0.3 --error 0.1
  bochner plan train-images-idx3-ubyte.gz --sparse --error 0.1 --energy 99%")]
pub(crate) struct Args {
    /// Relative error of the kernel matrix to reach, as a number or in percent
    #[arg(long, default_value = "0.05", value_parser = parse_error)]
    error: f64,
    /// Most features a map may have
    #[arg(long, default_value_t = 131_072, value_parser = values::parse_count)]
    most_features: usize,
    /// Draws by which the fastest map is verified
    #[arg(long, default_value_t = 5)]
    draws: usize,
    /// How sparse the rows are, and the bounds for sparse rows, uniform over all pairs of them (Gaussian kernel)
    #[arg(long)]
    sparse: bool,
    /// Share of a row's energy that its largest coefficients must hold, for --sparse
    #[arg(long, default_value = "0.99", value_parser = parse_share, requires = "sparse")]
    energy: f64,
    /// Probability that the bounds of --sparse may fail with
    #[arg(long, default_value = "0.05", value_parser = parse_share, requires = "sparse")]
    failure: f64,
    /// Rows are images of this height and width, as in 28x28, or a line [default: square images where an array's rows fit]
    #[arg(long, value_name = "HxW", value_parser = parse_shape, requires = "sparse")]
    shape: Option<Shape>,
    /// A plot, SVG or PNG, of what the error costs: features and time of every map that reaches it
    #[arg(long, value_name = "FILE.svg|png", conflicts_with = "sparse")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
    // With headings of their own, which what follows them would get too.
    #[command(flatten)]
    pub(crate) sample: SampleArgs,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = parse_error(text)?;
    if share < 1.0 { Ok(share) } else { Err(format!("{text} is not a share below 1 or 100 %")) }
}

fn parse_shape(text: &str) -> Result<Shape, String> {
    if text == "line" {
        return Ok(Shape::Line);
    }
    let sides = text.split_once(['x', 'X', '×']).and_then(|(h, w)| Some((h.parse().ok()?, w.parse().ok()?)));
    match sides {
        Some((height, width)) if height > 0 && width > 0 => Ok(Shape::Image { height, width }),
        _ => Err(format!("{text} is not a height and a width such as 28x28, nor line")),
    }
}

fn parse_error(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 0.01));
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * unit),
        _ => Err(format!("{text} is not a positive number or percentage such as 0.05 or 5%")),
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let request = args.sample.kernel(context)?;
    args.plot.as_deref().map_or(Ok(()), output_args::check_plot)?;
    output_args::check_apart(&[("--plot", args.plot.as_deref())], &[args.sample.named()])?;
    if args.sparse {
        return sparse(args, context, &request);
    }
    args.sample.study(context, &request, args)
}

impl Study for Args {
    fn on<T: Trial>(&self, context: &Context, kernel: &Kernel, sampled: &Sampled, sample: &T) -> Outcome {
        let request = Request {
            error: self.error,
            total_rows: sampled.total,
            most_features: self.most_features,
            draws: self.draws,
            seed: context.global.seed,
        };
        let steps = sample.candidates()?.len().saturating_add(self.draws);
        let progress = context.steps(steps as u64);
        let plan = bochner::plan::plan(sample, &request, |what| {
            progress.at(what.to_owned().into()).and_then(|()| progress.done(1)).map_err(|_| bochner::Error::Interrupted)
        })?;
        drop(progress);
        let heading = format!(
            "{}: {} of {} to a relative error of {} %",
            kernel.title(),
            words::things(sampled.total, "row"),
            words::things(sampled.rows.ncols(), "column"),
            words::significant(100.0 * self.error, 3)
        );
        if let Some(path) = &self.plot {
            output_args::write_plot(path, &costs(&heading, &plan).to_svg())?;
        }
        let facts = facts(self, sampled, kernel, sample.rows().nrows())?;
        context.table(&table(&heading, &plan).with_facts("maps", facts), self.format)?;
        if self.format.for_programs() {
            return Ok(());
        }
        context.print(&format!("\n{}\n{}", sampled.prepared(sample.rows().nrows()), remarks(&plan)))
    }
}

/// What was asked, for programs.
fn facts(args: &Args, sampled: &Sampled, kernel: &Kernel, rows: usize) -> Outcome<Vec<(String, Value)>> {
    let mut facts = sampled.facts(kernel, rows)?;
    facts.push(("target_error".into(), args.error.into()));
    Ok(facts)
}

/// What rows look like where nobody says: images where a row of an array is a square of pixels.
fn guessed_shape(sampled: &Sampled) -> Shape {
    let d = sampled.rows.ncols();
    let side = d.isqrt();
    if !sampled.table && side * side == d && side >= 8 {
        Shape::Image { height: side, width: side }
    } else {
        Shape::Line
    }
}

fn sparse(args: &Args, context: &Context, request: &KernelRequest) -> Outcome {
    if request.entry.name != Gaussian::ENTRY.name {
        return Err(Failure::Usage("--sparse: the bounds are those of the Gaussian kernel".into()));
    }
    // Centred pixels are not sparse any more.
    let (sampled, kernel) = args.sample.read(context, request, Preparation::None)?;
    let Kernel::Scalar(AnyKernel::Gaussian(gaussian)) = &kernel else {
        return Err(Failure::Failed("expected the Gaussian kernel".into()));
    };
    let (d, scale) = (sampled.rows.ncols(), gaussian.length_scale());
    let radius = sampled.rows.rows().into_iter().map(|row| row.dot(&row).sqrt()).fold(0.0, f64::max);
    let shape = args.shape.unwrap_or_else(|| guessed_shape(&sampled));
    let mut table = Table::new(format!(
        "{} on rows of {}: every pair within {} with probability {}",
        kernel.title(),
        words::things(d, "column"),
        words::significant(args.error, 3),
        words::significant(1.0 - args.failure, 4)
    ))
    .words("basis", "basis")
    .numbers("k_median", "k, median")
    .numbers("k_most", "k, 95 % of rows")
    .numbers("k_worst", "k, all rows")
    .numbers("frequencies", "M")
    .numbers("frequencies_rigorous", "M, no gaps")
    .numbers("measurements", "m")
    .numbers("compressed_frequencies", "M after m");
    let mut compresses = false;
    for (basis, name) in [
        (Basis::Identity, if shape == Shape::Line { "columns" } else { "pixels" }),
        (Basis::Haar, "Haar wavelets"),
        (Basis::Daubechies4, "Daubechies wavelets"),
        (Basis::Dct, "cosines"),
    ] {
        let found = sparsity_at_energy(sampled.rows.view(), &SparseTransform::new(basis, shape, d)?, args.energy)?;
        // Distances do not change with the basis, and neither do the frequencies of a Gaussian kernel.
        let k = found.worst.max(1);
        let fourier = SparseFourier::new(d, k, (d as f64).sqrt() / scale, 2.0 * radius)?;
        let bound = |value: f64| if value < 9e15 { Cell::count(value as usize) } else { Cell::number(value, 3) };
        let compressive = CompressiveFourier::new(d, k, radius, scale)?;
        let (measurements, after) = match compressive.measurements(args.error, args.failure) {
            Ok(m) => {
                compresses |= m < d as f64;
                (bound(m), bound(compressive.frequencies(m, args.error, args.failure)?))
            }
            Err(bochner::Error::Unsupported { .. }) => (Cell::missing("n/a"), Cell::missing("n/a")),
            Err(error) => return Err(error.into()),
        };
        table.push(vec![
            Cell::text(name),
            Cell::count(found.median),
            Cell::count(found.most),
            Cell::count(found.worst),
            bound(fourier.frequencies(args.error, args.failure)?),
            bound(fourier.rigorous().frequencies(args.error, args.failure)?),
            measurements,
            after,
        ]);
    }
    let mut facts = facts(args, &sampled, &kernel, sampled.rows.nrows())?;
    facts.push(("failure".into(), args.failure.into()));
    facts.push(("energy".into(), args.energy.into()));
    context.table(&table.with_facts("bases", facts), args.format)?;
    if args.format.for_programs() {
        return Ok(());
    }
    let shape = match shape {
        Shape::Line => "a line of numbers".to_owned(),
        Shape::Image { height, width } => format!("an image of {height} x {width}"),
    };
    let share = words::significant(100.0 * args.energy, 4);
    let verdict = match compresses {
        true => "",
        false => {
            "\nAt this error the theorem asks for at least as many measurements as there are columns: what compression\n\
                  really costs is smaller by far, and bochner compare measures it."
        }
    };
    context.print(&format!(
        "\n{}\nA row, taken for {shape} of length up to {}, is k-sparse if its k largest coefficients hold {share} % of its energy.\n\
         M  frequencies (twice as many features) for k-sparse rows, by the theorem and with the constants of a proof without gaps\n\
         m  measurements that rows may be compressed to, and the frequencies that are needed afterwards{verdict}\n",
        sampled.prepared(sampled.rows.nrows()),
        words::significant(radius, 3)
    ))
}

/// Measured errors are root mean squares over draws: that is what is predicted.
fn table<S>(heading: &str, plan: &Plan<S>) -> Table {
    let mut table = Table::new(heading)
        .words("map", "map")
        .numbers("features", "features")
        .numbers("predicted", "predicted error")
        .words("prediction", "by")
        .numbers("measured", "measured error")
        .numbers("seconds", "time, all rows")
        .numbers("map_bytes", "weights")
        .numbers("feature_bytes", "features kept");
    for (i, choice) in plan.choices.iter().enumerate() {
        let measured = plan.verified.as_ref().filter(|_| i == 0);
        table.push(vec![
            Cell::text(&*choice.name),
            Cell::count(choice.features),
            Cell::percent(choice.predicted, 2),
            Cell::text(if choice.closed_form { "closed form" } else { "approximate" }),
            measured.map_or(Cell::missing(""), |m| Cell::percent(m.root_mean_square(), 2)),
            Cell::duration(choice.seconds),
            Cell::bytes(choice.map_bytes),
            Cell::bytes(choice.feature_bytes),
        ]);
    }
    table
}

/// What the maps that reach the error take.
fn costs<S>(heading: &str, plan: &Plan<S>) -> Plot {
    let series = plan.choices.iter().enumerate().map(|(index, choice)| {
        let mut mark = Series::new(&*choice.name, Style::Scatter, index);
        let features = choice.features;
        let error = words::significant(100.0 * choice.predicted, 3);
        let (count, time) = (words::count(features), words::duration(choice.seconds));
        mark.push(
            Point::new(features as f64, 1e3 * choice.seconds),
            format!("{}\n{count} features, {time}\npredicted {error} %", choice.name),
        );
        mark
    });
    Plot {
        title: "Features and time that an error takes".into(),
        subtitle: heading.to_owned(),
        x: Axis::log("number of features"),
        y: Axis::log("milliseconds to transform all rows"),
        series: series.collect(),
    }
}

/// The measured error of the table, and between what the draws lay.
fn measured_words(measured: &Measured) -> String {
    let percent = |error: f64| format!("{:.2} %", 100.0 * error);
    let error = percent(measured.root_mean_square());
    let least = measured.errors.iter().copied().fold(f64::INFINITY, f64::min);
    let most = measured.errors.iter().copied().fold(0.0, f64::max);
    match measured.errors.len() {
        1 => format!("one draw measured {error}"),
        n => format!("{n} draws measured {error} in root mean square, {} to {} each", percent(least), percent(most)),
    }
}

fn remarks<S>(plan: &Plan<S>) -> String {
    let mut text = String::new();
    if let (Some(first), Some(measured)) = (plan.choices.first(), &plan.verified) {
        text += &format!(
            "{} is the fastest: {}, predicted {:.2} %.\n",
            first.name,
            measured_words(measured),
            100.0 * first.predicted
        );
    }
    text += &scaled(plan.choices.iter().map(|choice| choice.factor));
    if plan.choices.is_empty() {
        text += "No map gets there; a larger --error or more --most-features would let one.\n";
    }
    for shortfall in &plan.shortfalls {
        let verdict = if shortfall.error.is_some() { "does not get there" } else { "was left out" };
        text += &format!("{} {verdict}: {}.\n", shortfall.name, shortfall.reason);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_lines_or_images() {
        assert_eq!(parse_shape("line"), Ok(Shape::Line));
        assert_eq!(parse_shape("4x6"), Ok(Shape::Image { height: 4, width: 6 }));
        for wrong in ["", "x", "0x3", "4", "4x", "axb"] {
            assert!(parse_shape(wrong).is_err(), "{wrong}");
        }
        assert!(parse_share("100%").is_err() && parse_share("99%").is_ok());
    }

    #[test]
    fn one_error_is_measured_and_named() {
        let told = |errors: &[f64]| measured_words(&Measured { errors: errors.to_vec(), seconds: 1.0 });
        assert_eq!(told(&[0.1]), "one draw measured 10.00 %");
        assert_eq!(told(&[0.1, 0.7]), "2 draws measured 50.00 % in root mean square, 10.00 % to 70.00 % each");
    }

    #[test]
    fn errors_are_numbers_or_percentages() {
        assert_eq!(parse_error("0.05"), Ok(0.05));
        assert_eq!(parse_error("5%"), Ok(0.05));
        assert_eq!(parse_error("5 %"), Ok(0.05));
        for wrong in ["", "%", "0", "-1", "nan", "inf", "five"] {
            assert!(parse_error(wrong).unwrap_err().contains("positive"), "{wrong}");
        }
    }
}
