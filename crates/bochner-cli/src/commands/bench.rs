use crate::cli::Context;
use crate::output_args::FormatArgs;
use bochner_papers::bench::{Bench, Benchmark, Line, Peers, add_line, all, empty_table};
use bochner_report::table::{Cell, Format, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::progress::Watch;
use std::cell::RefCell;
use std::path::PathBuf;

/// Time the kernels of this build against references on this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every line is a ratio measured in one run, beside the bar it should reach. Nothing else should be running.

Examples:
  bochner bench list
  bochner bench                                     small sizes, all benchmarks
  bochner bench hadamard --full                     the sizes the bars are stated for
  bochner bench optical --bars                      only what has a bar (some minutes)
  bochner bench --full --peers .venv/bin/python     with numpy, scikit-learn and pandas beside")]
pub(crate) struct Args {
    /// Benchmarks to run, or `list` to see them [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Full sizes
    #[arg(long)]
    full: bool,
    /// Full sizes, and only the comparisons that have a bar
    #[arg(long)]
    bars: bool,
    /// A Python interpreter that has numpy, scikit-learn and pandas, to time those too
    #[arg(long, value_name = "PYTHON")]
    peers: Option<PathBuf>,
    /// Where the peers' scripts are
    #[arg(long, value_name = "FOLDER", default_value = "benches/peers")]
    scripts: PathBuf,
    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Outcome {
    if args.names.iter().any(|n| n == "list") {
        let mut table = Table::new("").words("name", "name").words("about", "what is timed");
        for benchmark in all() {
            table.push(vec![Cell::text(benchmark.name), Cell::text(benchmark.about)]);
        }
        return context.table(&table, args.format);
    }
    let chosen = choose(&args.names)?;
    let peers = args.peers.as_deref().map(|python| Peers::new(python, &args.scripts, context.threads())).transpose()?;
    let full = args.full || args.bars;
    let progress = context.steps(chosen.len() as u64);
    let format = Format::from(args.format);
    let table = RefCell::new(empty_table());
    // Whoever reads JSON waits for its last bracket; others see every line as soon as it is measured.
    let at_once = format != Format::Json;
    for benchmark in chosen {
        progress.at(benchmark.name.into())?;
        table.borrow_mut().start_group();
        let told = |line: Line| {
            let mut table = table.borrow_mut();
            let shown = table.len();
            add_line(&mut table, benchmark.name, &line);
            let text = table.to_after(shown, format, context.colour);
            if at_once { progress.apart(&mut || context.print(&text)) } else { Ok(()) }
        };
        let bench = Bench { told: &told, progress: &*progress, peers: peers.as_ref(), full, bars: args.bars };
        benchmark.run(&bench)?;
        progress.done(1)?;
    }
    drop(progress);
    if !at_once {
        context.table(&table.borrow(), args.format)?;
    }
    if !args.format.for_programs() {
        let threads = context.threads();
        let sizes = if full { "full sizes" } else { "small sizes; the bars are stated for --full" };
        context.print(&format!("\n{threads} threads where a case does not say one, {sizes}.\n"))?;
    }
    Ok(())
}

fn choose(names: &[String]) -> Outcome<Vec<&'static Benchmark>> {
    if names.is_empty() {
        return Ok(all().iter().collect());
    }
    names
        .iter()
        .map(|name| {
            all().iter().find(|b| b.name == name).ok_or_else(|| {
                let known: Vec<_> = all().iter().map(|b| b.name).collect();
                Failure::Usage(format!("there is no benchmark {name}; there are {}", known.join(", ")))
            })
        })
        .collect()
}
