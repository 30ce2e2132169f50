//! What `compare` and `plan` share: a kernel named on the command line, and a prepared sample of a file's rows.

use crate::cli::Context;
use crate::commands::predict;
use crate::source::{Columns, Text};
use crate::{listed, values};
use bochner::catalogue::{self, Parameter, Value};
use bochner::plan::{FieldSample, Sample, Trial};
use bochner::random::Seed;
use bochner_table::failure::Outcome;
use bochner_table::map_request::settings;
use bochner_table::pipeline::{Preparation, SAMPLE_ROWS};
use bochner_table::read::Largest;
use bochner_table::sample::{self, Kernel, KernelRequest, Sampled};
use clap::{Arg, ArgMatches, Command};
use std::path::{Path, PathBuf};

/// The kernel. What `fit` sets where nobody says anything is set here too.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelArgs {
    /// The kernel; values of the last four are matrices, for several targets that are one function
    #[arg(long, value_name = "NAME", value_parser = listed::kernels(), default_value = "gaussian")]
    kernel: String,
    /// Length scale of the kernels that have one [default: the median distance of two rows]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    length_scale: Option<f64>,
    /// Any other parameter of the kernel, as in --set degree=3 (--help lists them)
    #[arg(long, value_name = "NAME=VALUE", long_help = listed::settings_of_kernels())]
    set: Vec<String>,
    #[command(flatten)]
    earlier: EarlierOptions,
}

/// `--degree 3` and its like, which are `--set degree=3` now: understood for one version more, and not shown.
#[derive(Debug, Clone)]
struct EarlierOptions(Vec<(String, Value)>);

/// Parameters of kernels whose values are numbers, by name; those of one name are alike.
fn parameters() -> Vec<&'static Parameter> {
    let mut all: Vec<&Parameter> = catalogue::kernels().flat_map(|entry| entry.parameters).collect();
    all.retain(|parameter| parameter.name != "length_scale");
    all.sort_by_key(|parameter| parameter.name);
    all.dedup_by_key(|parameter| parameter.name);
    all
}

impl clap::Args for EarlierOptions {
    fn augment_args(command: Command) -> Command {
        command.args(parameters().into_iter().map(|parameter| {
            let read = |text: &str| {
                let value = Value::parse(text);
                parameter.check(&value).map(|()| value)
            };
            let option = Arg::new(parameter.name).long(listed::hyphened(parameter.name)).hide(true);
            option.value_name("NUMBER").allow_negative_numbers(true).value_parser(read)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for EarlierOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name: &str| Some((name.to_owned(), matches.get_one::<Value>(name)?.clone()));
        Ok(EarlierOptions(parameters().iter().filter_map(|parameter| given(parameter.name)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl KernelArgs {
    /// What was asked for; a parameter of another kernel, which would change nothing, is refused.
    pub(crate) fn request(&self, context: &Context) -> Outcome<KernelRequest> {
        let earlier = &self.earlier.0;
        let scale = self.length_scale.map(|scale| ("length_scale".to_owned(), Value::from(scale)));
        let given = scale.into_iter().chain(earlier.iter().cloned()).chain(settings(&self.set)?);
        let request = KernelRequest::new(&self.kernel, given.collect(), |name| {
            let option = name == "length_scale" && self.length_scale.is_some();
            match option || earlier.iter().any(|(known, _)| known == name) {
                true => format!("--{}", name.replace('_', "-")),
                false => format!("--set {name}"),
            }
        })?;
        for (name, value) in earlier.iter().filter(|_| !context.global.quiet) {
            eprintln!("bochner: --{} is now --set {name}={value}", name.replace('_', "-"));
        }
        Ok(request)
    }
}

/// The kernel and the rows.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SampleArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    rows: RowsArgs,
}

/// The rows.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Rows")]
struct RowsArgs {
    #[arg(help_heading = None, help = bochner_table::read::help())]
    data: PathBuf,
    /// The column a model would predict, left out like those of --drop; the outputs of an operator-valued kernel
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", allow_hyphen_values = true)]
    target: Vec<String>,
    /// What is done to the rows first, as in fit [default: auto, but none with --sparse]
    #[arg(long, value_enum)]
    preprocess: Option<Preparation>,
    /// Threshold of --preprocess binarize
    #[arg(long, value_name = "NUMBER", default_value_t = 0.5, allow_negative_numbers = true)]
    threshold: f64,
    /// Rows in the sample, at most 20,000
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = parse_rows)]
    rows: usize,
    #[command(flatten)]
    columns: Columns,
    #[command(flatten)]
    text: Text,
}

fn parse_rows(text: &str) -> Result<usize, String> {
    values::parse_within(text, 2..=SAMPLE_ROWS)
}

/// What a command does with a sample, whatever the values of its kernel are.
pub(crate) trait Study {
    fn on<T: Trial>(&self, context: &Context, kernel: &Kernel, sampled: &Sampled, sample: &T) -> Outcome;
}

impl SampleArgs {
    /// The file, which no output may replace.
    pub(crate) fn named(&self) -> (&str, Option<&Path>) {
        ("the data file", Some(&self.rows.data))
    }

    /// The kernel asked for.
    pub(crate) fn kernel(&self, context: &Context) -> Outcome<KernelRequest> {
        self.kernel.request(context)
    }

    /// Prepares a sample as `fit` would, and hands it over with the exact values of the kernel.
    pub(crate) fn study(&self, context: &Context, request: &KernelRequest, study: &impl Study) -> Outcome {
        let (sampled, kernel) = self.read(context, request, Preparation::Auto)?;
        let rows = sampled.rows.view();
        match &kernel {
            Kernel::Scalar(values) => study.on(context, &kernel, &sampled, &Sample::new(values, rows)?),
            Kernel::Operator(values) => study.on(context, &kernel, &sampled, &FieldSample::new(values, rows)?),
        }
    }

    /// A sample for a kernel, prepared as was asked for, or else like this; what steps learn they learn from all rows, as in
    /// `fit`. And the kernel, with what it takes from the rows.
    pub(crate) fn read(
        &self,
        context: &Context,
        kernel: &KernelRequest,
        otherwise: Preparation,
    ) -> Outcome<(Sampled, Kernel)> {
        let args = &self.rows;
        let data =
            args.columns.open(&args.data, None, &args.target, &args.text, Largest::DOUBLE, args.target.len() == 1)?;
        predict::tell_remarks(&data, context);
        sample::check_columns(&data)?;
        kernel.check_targets(&data)?;
        let preparation = kernel.preparation(args.preprocess.unwrap_or(otherwise))?;
        let seed = Seed::new(context.global.seed);
        let missing = args.columns.missing();
        let sampled = Sampled::read(&data, args.rows, preparation, args.threshold, missing, seed, context)?;
        let kernel = kernel.resolve(&sampled, seed)?;
        Ok((sampled, kernel))
    }
}
