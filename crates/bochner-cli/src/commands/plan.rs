use crate::cli::Context;
use crate::failure::Outcome;
use crate::human;
use crate::progress::Progress;
use crate::table::{Cell, Format, Table};
use crate::target::{KernelArgs, SampleArgs, title};
use bochner::plan::{Plan, Request, plan};
use bochner::random::Seed;

/// Which map reaches an error on your data, and with how many features
///
/// Computes, from closed-form variances and biases on a sample of the rows, how many features each applicable map needs
/// for a relative error of the kernel matrix, what that costs in time and memory for the whole file, and verifies the
/// fastest by drawing it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bochner plan data.csv --drop label --error 0.05
  bochner plan train-images-idx3-ubyte.gz --kernel polynomial --degree 3 --error 2%
  bochner plan data.npy --kernel matern --nu 2.5 --error 0.1 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    sample: SampleArgs,
    #[command(flatten)]
    kernel: KernelArgs,
    /// Relative error of the kernel matrix to reach, as a number or in percent
    #[arg(long, default_value = "0.05", value_parser = parse_error)]
    error: f64,
    /// Most features a map may have
    #[arg(long, default_value_t = 131_072, value_parser = human::parse_count)]
    most_features: usize,
    /// Draws by which the fastest map is verified
    #[arg(long, default_value_t = 5)]
    draws: usize,
    #[command(flatten)]
    format: Format,
}

fn parse_error(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 0.01));
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * unit),
        _ => Err(format!("{text} is not a positive number or percentage such as 0.05 or 5%")),
    }
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    let seed = Seed::new(context.global.seed);
    let sampled = args.sample.read(&args.kernel, seed)?;
    let kernel = args.kernel.resolve(sampled.rows.view(), seed)?;
    let request = Request {
        error: args.error,
        total_rows: sampled.total,
        most_features: args.most_features,
        draws: args.draws,
        seed: context.global.seed,
    };
    let steps = bochner::plan::candidates(&kernel)?.len() + args.draws;
    let progress = Progress::new(context, steps as u64);
    let plan = plan(&kernel, sampled.rows.view(), &request, |what| {
        progress.at(what.to_owned()).and_then(|()| progress.done(1)).map_err(|_| bochner::Error::Interrupted)
    })?;
    drop(progress);
    let heading = format!(
        "{}: {} rows of {} columns to a relative error of {} %",
        title(&kernel),
        human::count(sampled.total),
        human::count(sampled.rows.ncols()),
        human::significant(100.0 * args.error, 3)
    );
    table(&heading, &plan).print(context, args.format)?;
    if args.format.for_programs() { Ok(()) } else { context.print(&remarks(&plan)) }
}

fn table(heading: &str, plan: &Plan) -> Table {
    let mut table = Table::new(heading)
        .words("map", "map")
        .numbers("features", "features")
        .numbers("predicted", "predicted error")
        .words("prediction", "by")
        .numbers("measured", "measured")
        .numbers("seconds", "time, all rows")
        .numbers("map_bytes", "weights")
        .numbers("feature_bytes", "features kept");
    for (i, choice) in plan.choices.iter().enumerate() {
        let measured = plan.verified.as_ref().filter(|_| i == 0);
        table.push(vec![
            Cell::text(&*choice.name),
            Cell::count(choice.spec.n_components()),
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

fn remarks(plan: &Plan) -> String {
    let mut text = String::new();
    if let (Some(first), Some(measured)) = (plan.choices.first(), &plan.verified) {
        text += &format!(
            "\n{} is the fastest: {} draws measured {:.2} % ± {:.2} %, predicted {:.2} %.\n",
            first.name,
            measured.errors.len(),
            100.0 * measured.mean(),
            100.0 * measured.deviation(),
            100.0 * first.predicted
        );
    }
    if plan.choices.is_empty() {
        text += "\nNo map gets there; a larger --error or more --most-features would let one.\n";
    }
    for shortfall in &plan.shortfalls {
        text += &format!("{} does not get there: {}.\n", shortfall.name, shortfall.reason);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
