//! What `compare` and `plan` share: a kernel named on the command line, and a prepared sample of a file's rows.

use crate::cli::Context;
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::output::Named;
use crate::pipeline::{self, Pipeline, Preparation, SAMPLE_ROWS};
use crate::progress::Progress;
use crate::source::{self, Columns, Text};
use bochner::kernel::{Any, Exponential, Gaussian, Laplacian, Matern, Optical, Polynomial};
use bochner::preprocess::median_distance;
use bochner::random::Seed;
use ndarray::{Array2, ArrayView2, s};
use serde_json::Value;
use std::path::PathBuf;

/// Rows from which the median distance is computed.
const MEDIAN_ROWS: usize = 2000;

/// The kernel. What `fit` sets where nobody says anything is set here too.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelArgs {
    /// The kernel
    #[arg(long, value_enum, default_value = "gaussian")]
    pub(crate) kernel: KernelName,
    /// Length scale of the kernels that have one: all but polynomial and optical [default: the median distance of two rows]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    length_scale: Option<f64>,
    /// Degree of the polynomial kernel (gamma x.y + coef0)^degree [default: 3]
    #[arg(long, value_name = "NUMBER")]
    degree: Option<u32>,
    /// Factor of the inner product in the polynomial kernel [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    gamma: Option<f64>,
    /// Constant of the polynomial kernel [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    coef0: Option<f64>,
    /// Smoothness of the Matern kernel [default: 1.5]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    nu: Option<f64>,
    /// Norm of the Laplacian kernel, 1 or 2 [default: 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=2))]
    norm: Option<u8>,
    /// Exponent m of the optical kernel, the limit of |Ux|^m [default: 2]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    exponent: Option<f64>,
    /// Squared length of the constant coordinate of the optical kernel [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    bias: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KernelName {
    Gaussian,
    Laplacian,
    Matern,
    Exponential,
    Polynomial,
    Optical,
}

impl KernelName {
    fn word(self) -> String {
        clap::ValueEnum::to_possible_value(&self).map_or(String::new(), |value| value.get_name().to_owned())
    }
}

impl KernelArgs {
    /// Refuses a parameter of another kernel, which would change nothing.
    pub(crate) fn check(&self) -> Outcome {
        use KernelName::{Exponential, Gaussian, Laplacian, Matern, Optical, Polynomial};
        let given: [(&str, bool, &[KernelName]); 8] = [
            ("--length-scale", self.length_scale.is_some(), &[Gaussian, Laplacian, Matern, Exponential]),
            ("--degree", self.degree.is_some(), &[Polynomial]),
            ("--gamma", self.gamma.is_some(), &[Polynomial]),
            ("--coef0", self.coef0.is_some(), &[Polynomial]),
            ("--nu", self.nu.is_some(), &[Matern]),
            ("--norm", self.norm.is_some(), &[Laplacian]),
            ("--exponent", self.exponent.is_some(), &[Optical]),
            ("--bias", self.bias.is_some(), &[Optical]),
        ];
        match given.iter().find(|(_, given, kernels)| *given && !kernels.contains(&self.kernel)) {
            None => Ok(()),
            Some((option, _, kernels)) => {
                let kernels: Vec<String> = kernels.iter().map(|kernel| kernel.word()).collect();
                let (kernels, this) = (kernels.join(", "), self.kernel.word());
                Err(Failure::Usage(format!("{option} goes with --kernel {kernels}; the kernel is {this}")))
            }
        }
    }

    /// The kernel, with a length scale from the rows where none was given.
    pub(crate) fn resolve(&self, rows: ArrayView2<'_, f64>, seed: Seed) -> Outcome<Any> {
        let scale = || match self.length_scale {
            Some(scale) => Ok(scale),
            None => median_distance(rows, seed, MEDIAN_ROWS),
        };
        Ok(match self.kernel {
            KernelName::Gaussian => Gaussian::new(scale()?)?.into(),
            KernelName::Laplacian => Laplacian::new(scale()?, self.norm.unwrap_or(2))?.into(),
            KernelName::Matern => Matern::new(self.nu.unwrap_or(1.5), scale()?)?.into(),
            KernelName::Exponential => Exponential::new(scale()?)?.into(),
            KernelName::Polynomial => {
                let (gamma, coef0) = (self.gamma.unwrap_or(1.0), self.coef0.unwrap_or(1.0));
                Polynomial::new(self.degree.unwrap_or(3), gamma, coef0)?.into()
            }
            KernelName::Optical => Optical::new(self.exponent.unwrap_or(2.0), self.bias.unwrap_or(1.0))?.into(),
        })
    }
}

/// A kernel as a title says it.
pub(crate) fn title(kernel: &Any) -> String {
    let number = |v: f64| human::significant(v, 4);
    // Round numbers as they were given: (x·y + 1)^3, not (1.000 x·y + 1.000)^3.
    let short = |v: f64| Some(v.to_string()).filter(|text| text.len() <= 6).unwrap_or_else(|| number(v));
    match kernel {
        Any::Gaussian(k) => format!("Gaussian kernel, length scale {}", number(k.length_scale())),
        Any::Laplacian(k) => {
            format!("Laplacian kernel of norm {}, length scale {}", k.norm(), number(k.length_scale()))
        }
        Any::Matern(k) => {
            format!("Matérn kernel, nu {}, length scale {}", short(k.nu()), number(k.length_scale()))
        }
        Any::Exponential(k) => format!("kernel exp(x·y/{}²)", number(k.length_scale())),
        Any::Polynomial(k) => {
            let gamma = if k.gamma() == 1.0 { String::new() } else { format!("{} ", short(k.gamma())) };
            format!("kernel ({gamma}x·y + {})^{}", short(k.coef0()), k.degree())
        }
        Any::Optical(k) => format!("optical kernel, m = {}, bias {}", short(k.exponent()), short(k.bias())),
        _ => "kernel".into(),
    }
}

/// What tables of maps do not say: by which constant some of them are off, if any is.
pub(crate) fn scaled(mut factors: impl Iterator<Item = f64>) -> String {
    factors.find(|factor| *factor != 1.0).map_or(String::new(), |factor| {
        format!(
            "Spherical features estimate the kernel over {}; a penalty absorbs it.\n",
            human::significant(factor, 4)
        )
    })
}

/// The rows.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Rows")]
pub(crate) struct SampleArgs {
    /// A CSV, TSV, NPY, NPZ, IDX, LIBSVM or Parquet file, plain or gzip; - for standard input
    #[arg(help_heading = None)]
    data: PathBuf,
    /// The column a model would predict, left out like those of --drop
    #[arg(long, value_delimiter = ',', value_name = "COLUMN", allow_hyphen_values = true)]
    target: Vec<String>,
    /// What is done to the rows first, as in fit [default: auto, but none with --sparse]
    #[arg(long, value_enum)]
    preprocess: Option<Preparation>,
    /// Threshold of --preprocess binarise
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
    match human::parse_count(text) {
        Ok(rows) if (2..=SAMPLE_ROWS).contains(&rows) => Ok(rows),
        _ => Err(format!("expected a whole number from 2 to {SAMPLE_ROWS}, got {text:?}")),
    }
}

/// Rows of a sample and the number of rows in the file.
pub(crate) struct Sampled {
    pub(crate) rows: Array2<f64>,
    pub(crate) total: usize,
    /// Whether columns have names, and with them meanings of their own.
    pub(crate) table: bool,
    /// What was done to the rows, in words.
    pub(crate) preparation: Vec<String>,
}

impl Sampled {
    /// What was done to the rows, as a sentence of its own.
    pub(crate) fn prepared(&self) -> String {
        match self.preparation.is_empty() {
            true => "Rows are taken as they are.".into(),
            false => format!("Rows: {}.", self.preparation.join("; ")),
        }
    }

    /// What programs are told beside a table of maps or bases.
    pub(crate) fn facts(&self, kernel: &Any) -> Outcome<Vec<(String, Value)>> {
        let described = serde_json::to_value(kernel).map_err(|e| Failure::Failed(e.to_string()))?;
        let fields = described.as_object().into_iter().flatten();
        let mut facts: Vec<(String, Value)> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        facts.sort_by_key(|(name, _)| name != "kernel");
        facts.extend([
            ("preparation".to_owned(), self.preparation.join("; ").into()),
            ("total_rows".to_owned(), self.total.into()),
            ("sample_rows".to_owned(), self.rows.nrows().into()),
            ("columns".to_owned(), self.rows.ncols().into()),
        ]);
        Ok(facts)
    }
}

impl SampleArgs {
    /// The file, which no output may replace.
    pub(crate) fn named(&self) -> Named<'_> {
        ("the data file", &self.data)
    }

    /// A sample prepared as was asked for, or else like this; what steps learn they learn from all rows, as in `fit`.
    pub(crate) fn read(&self, context: &Context, otherwise: Preparation) -> Outcome<Sampled> {
        let data = self.columns.open(&self.data, None, &self.target, &self.text, source::DOUBLE)?;
        let (schema, name) = (data.schema(), &data.input().name);
        let dim = schema.input_dim();
        let too_little = |rows: usize| {
            let found = format!("{} of {}", human::things(rows, "row"), human::things(dim, "column"));
            Failure::Failed(format!("{name}: a sample needs at least 2 rows and 1 column, found {found}"))
        };
        if dim == 0 {
            return Err(too_little(0));
        }
        let bytes = 8 * self.rows * (schema.input_dim() + schema.targets.len());
        let progress = Progress::reading(context, data.input(), "looking at the rows")?;
        let scan = pipeline::scan(&data, Seed::new(context.global.seed), bytes as u64, || progress.read())?;
        drop(progress);
        if scan.rows < 2 {
            return Err(too_little(scan.rows));
        }
        let prepared = Pipeline {
            schema: schema.clone(),
            missing: self.columns.missing(),
            steps: scan.steps(&data, self.preprocess.unwrap_or(otherwise), self.threshold)?,
            targets: Vec::new(),
            labels: Vec::new(),
        };
        // In random order: the first ones are a sample too.
        let mut rows = scan.sample.rows;
        if rows.nrows() > self.rows {
            rows = rows.slice(s![..self.rows, ..]).to_owned();
        }
        prepared.apply(rows.view_mut())?;
        Ok(Sampled { rows, total: scan.rows, table: data.is_table(), preparation: prepared.in_words() })
    }
}
