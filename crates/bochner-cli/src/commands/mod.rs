//! One file per command. A new one is a file with `Args` and `run`, and one line in the list below.

use crate::cli::Context;
use bochner_table::failure::Outcome;

macro_rules! commands {
    ($($variant:ident => $module:ident),* $(,)?) => {
        $(pub(crate) mod $module;)*

        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($variant($module::Args),)*
        }

        impl Command {
            pub(crate) fn run(&self, context: &Context) -> Outcome {
                match self {
                    $(Command::$variant(args) => $module::run(args, context),)*
                }
            }
        }
    };
}

commands! {
    Fit => fit,
    Predict => predict,
    Inspect => inspect,
    Transform => transform,
    Plan => plan,
    Compare => compare,
    Demo => demo,
    Data => data,
    Reproduce => reproduce,
    Bench => bench,
    Completions => completions,
    Man => man,
}
