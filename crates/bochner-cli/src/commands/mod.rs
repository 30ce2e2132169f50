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

impl Command {
    /// Refuses names of maps, kernels and parameters that make no sense, before any file is opened.
    pub(crate) fn check(&self, context: &Context) -> Outcome {
        match self {
            Command::Fit(args) => args.check_request(context.global.seed),
            Command::Transform(args) => args.map.request().check(context.global.seed),
            Command::Plan(args) => args.sample.kernel(context).map(drop),
            Command::Compare(args) => args.sample.kernel(context).map(drop),
            Command::Test(args) => args.map.request().check(context.global.seed),
            _ => Ok(()),
        }
    }
}

commands! {
    Fit => fit,
    Predict => predict,
    Update => update,
    Inspect => inspect,
    Transform => transform,
    Plan => plan,
    Compare => compare,
    Test => test,
    Demo => demo,
    Data => data,
    Reproduce => reproduce,
    Bench => bench,
    Completions => completions,
    Man => man,
}
