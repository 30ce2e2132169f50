//! The command line as a whole: global options, dispatch, exit codes.

use crate::commands::Command;
use crate::progress;
use crate::values;
use bochner_report::table::{Format, Table};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::interrupt;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Kernel methods at the cost of linear models.
///
/// bochner turns rows into random features whose inner products estimate a kernel, says how accurate that estimate is
/// before any model is trained, and fits linear models on the features in one pass over the data.
#[derive(Debug, Parser)]
#[command(name = "bochner", version, max_term_width = 100, after_help = EXAMPLES, arg_required_else_help = true)]
#[command(subcommand_required = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  bochner fit houses.csv --target price     train a model on a table
  bochner predict houses.bochner new.csv    apply it to new rows
  bochner inspect houses.bochner            what it is, and how good
  bochner demo                              what the library does, in two minutes

Every command has its own --help with examples.";

/// Bytes of stack of a thread: as much as a program's own has, since commands run on one of them.
const STACK: usize = 8 << 20;

/// Options every command accepts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = values::parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Seed of every random draw: the same seed gives the same result, whatever the number of threads
    #[arg(long, global = true, value_name = "NUMBER", default_value_t = 0, value_parser = values::parse_seed)]
    pub(crate) seed: u64,
    /// No progress, no remarks: only the result
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// What a command knows about the world around it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) global: Global,
    /// Whether people are watching standard output.
    pub(crate) colour: bool,
}

impl Context {
    fn new(global: Global) -> Outcome<Self> {
        let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK).num_threads(global.threads.unwrap_or(0));
        let started = pool.build_global();
        if let (Some(threads), Err(e)) = (global.threads, started) {
            return Err(Failure::Failed(format!("cannot start {threads} threads: {e}")));
        }
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Ok(Context { global, colour })
    }

    /// Threads that parallel work runs on.
    pub(crate) fn threads(&self) -> usize {
        rayon::current_num_threads()
    }

    /// Writes to standard output.
    pub(crate) fn print(&self, text: &str) -> Outcome {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// Writes a table to standard output, in the format asked for.
    pub(crate) fn table(&self, table: &Table, format: impl Into<Format>) -> Outcome {
        self.print(&table.to(format.into(), self.colour))
    }

    /// `text` in bold where colour is welcome.
    pub(crate) fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Reads arguments. A negative number is the value of the option before it, whose parser says what is wrong with it.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let numbers = |arg: clap::Arg| {
        let takes_value = !arg.is_positional() && arg.get_action().takes_values();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    };
    let mut program = Cli::command().mut_args(numbers).mut_subcommands(|command| command.mut_args(numbers));
    let matches = program.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut program))
}

/// Parses arguments, with the maps, kernels and parameters they name, and runs nothing: what fuzzing calls.
#[doc(hidden)]
pub fn try_arguments(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let Ok(Cli { global, command }) = parse(arguments) else { return false };
    command.check(&Context { global: Global { quiet: true, ..global }, colour: false }).is_ok()
}

/// Runs the program and returns its exit code: 0 success, 1 failure, 2 wrong usage, 130 interrupted.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed pipe is the only way this can fail, and then nobody is listening.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    // A second Ctrl-C, SIGTERM or SIGHUP ends the program at once.
    let handler = || {
        if interrupt::request() {
            interrupt::remove_unfinished();
            std::process::exit(130);
        }
    };
    // Fails only if a handler is already there; then the default, ending at once, stays: still no partial file.
    let _ = ctrlc::set_handler(handler);
    // On a thread of the pool: from outside of it, every parallel loop would wait for two threads to wake up, which takes
    // as long as reading a block of rows.
    let outcome = Context::new(cli.global).and_then(|context| {
        progress::speak_now_and_then(&context);
        rayon::scope(|_| cli.command.run(&context))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            if !text.is_empty() {
                let _ = writeln!(io::stderr().lock(), "bochner: {text}");
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    /// What an option says to a negative number: its own sentence, not that there is no such option.
    #[test]
    fn negative_numbers_reach_the_option_before_them() {
        let options = [
            ("fit", "--features --checkpoint-every --budget --memory --alpha"),
            ("transform", "--features"),
            ("plan", "--draws --error --most-features --energy"),
            ("compare", "--features --rows --degree"),
            ("reproduce", "--draws"),
            ("inspect", "--seed --threads"),
        ];
        for (command, options) in options {
            for option in options.split(' ') {
                let sparse = if option == "--energy" { vec!["--sparse"] } else { Vec::new() };
                let given = [&["bochner", command, "x"], &sparse[..], &[option, "-5"]].concat();
                let told = parse(given.into_iter().map(OsString::from)).unwrap_err().to_string();
                assert!(told.starts_with(&format!("error: invalid value '-5' for '{option}")), "{told}");
            }
        }
        for value in ["nan", "inf", "-0.5", "soon"] {
            let given = ["bochner", "fit", "x", "--checkpoint-every", value].map(OsString::from);
            assert!(parse(given).unwrap_err().to_string().contains("a number that is 0 or more"), "{value}");
        }
        let given = ["bochner", "fit", "x", "--target", "-1", "--threshold", "-2"].map(OsString::from);
        assert!(parse(given).is_ok());
    }

    /// A heading of shared options goes on to those that follow them, unless those have one too.
    #[test]
    fn headings_of_shared_options_stand_above_them_alone() {
        let shared: [(&str, &[&str]); 4] = [
            ("Reading", &["header", "no_header", "separator", "encoding"]),
            (
                "Columns",
                &[
                    "columns",
                    "drop",
                    "categories",
                    "impute",
                    "drop_missing",
                    "missing_markers",
                    "day_first",
                    "unknown_words",
                ],
            ),
            ("Rows", &["target", "preprocess", "threshold", "rows"]),
            ("Options of every command", &["threads", "seed", "quiet"]),
        ];
        let mut program = Cli::command();
        program.build();
        for command in program.get_subcommands() {
            for option in command.get_arguments() {
                let heading = option.get_help_heading().unwrap_or_default();
                if let Some((_, ids)) = shared.iter().find(|(name, _)| *name == heading) {
                    let (id, name) = (option.get_id().as_str(), command.get_name());
                    assert!(ids.contains(&id), "{name}: {id} stands below {heading}");
                }
            }
        }
    }

    /// A line that the terminal breaks cannot be pasted; help is never wider than 100 columns.
    #[test]
    fn examples_fit_on_a_line_of_the_help() {
        let program = Cli::command();
        for command in program.get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with("  bochner ")) {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }

    #[test]
    fn every_command_says_what_it_does_and_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
            assert!(command.get_after_help().is_some(), "{} has no example", command.get_name());
        }
    }
}
