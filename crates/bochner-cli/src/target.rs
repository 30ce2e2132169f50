//! What `compare` and `plan` share: a kernel named on the command line, and a prepared sample of a file's rows.

use crate::cli::Context;
use crate::description::{OperatorWish, operator_in_words, operator_name, operator_parameters};
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::map_args::settings;
use crate::output::Named;
use crate::pipeline::{self, Pipeline, Preparation, SAMPLE_ROWS};
use crate::progress::Progress;
use crate::read::Data;
use crate::source::{self, Columns, Text};
use bochner::kernel::{
    Any, Compression, Compressive, Exponential, Gaussian, Laplacian, Matern, OperatorKernel, Optical, Polynomial,
    Spherical,
};
use bochner::preprocess::median_distance;
use bochner::random::Seed;
use ndarray::{Array2, s};
use serde_json::{Map, Value};
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
    /// Length scale of the kernels that have one: all but polynomial, spherical and optical [default: the median distance of two rows]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    length_scale: Option<f64>,
    /// Degree of the polynomial kernel (gamma x.y + coef0)^degree or of the spherical kernel [default: 3]
    #[arg(long, value_name = "NUMBER")]
    degree: Option<u32>,
    /// Factor of the inner product in the polynomial kernel [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    gamma: Option<f64>,
    /// Constant of the polynomial kernel [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    coef0: Option<f64>,
    /// Number a of the spherical kernel (1 - |x - y|^2/a^2)^degree of rows of length one [default: 2]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    a: Option<f64>,
    /// Measurements of each row of the compressive kernel [default: 64, or all columns where there are fewer]
    #[arg(long, value_name = "NUMBER")]
    compressed_dim: Option<usize>,
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
    /// A parameter of an operator-valued kernel, as in fit: curl_free=0.3 of helmholtz; base=matern, nu=2.5 and
    /// matrix=identity of decomposable, whose matrix is otherwise that of the correlations of --target
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

/// Under the names that `fit` knows them by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KernelName {
    Gaussian,
    Laplacian,
    Matern,
    Exponential,
    Polynomial,
    /// Polynomial kernels of rows of length one, as functions of their distance
    Spherical,
    Optical,
    /// Mean of Gaussian kernels of randomly compressed rows
    Compressive,
    /// Gradients of potentials
    #[value(name = "curl_free", alias = "curl-free")]
    CurlFree,
    /// Flows without sources
    #[value(name = "divergence_free", aliases = ["divergence-free", "div_free", "div-free"])]
    DivergenceFree,
    /// Gradients and flows at once
    Helmholtz,
    /// Targets related by a matrix
    Decomposable,
}

/// Kernels whose values are matrices.
const OPERATORS: [KernelName; 4] =
    [KernelName::CurlFree, KernelName::DivergenceFree, KernelName::Helmholtz, KernelName::Decomposable];

/// Kernels with a length scale.
const SCALED: [KernelName; 9] = {
    use KernelName::{
        Compressive, CurlFree, Decomposable, DivergenceFree, Exponential, Gaussian, Helmholtz, Laplacian, Matern,
    };
    [Gaussian, Laplacian, Matern, Exponential, Compressive, CurlFree, DivergenceFree, Helmholtz, Decomposable]
};

impl KernelName {
    fn word(self) -> String {
        clap::ValueEnum::to_possible_value(&self).map_or(String::new(), |value| value.get_name().to_owned())
    }
}

impl KernelArgs {
    /// Refuses a parameter of another kernel, which would change nothing.
    pub(crate) fn check(&self) -> Outcome {
        use KernelName::{Compressive, Laplacian, Matern, Optical, Polynomial, Spherical};
        let given: [(&str, bool, &[KernelName]); 11] = [
            ("--length-scale", self.length_scale.is_some(), &SCALED),
            ("--degree", self.degree.is_some(), &[Polynomial, Spherical]),
            ("--a", self.a.is_some(), &[Spherical]),
            ("--compressed-dim", self.compressed_dim.is_some(), &[Compressive]),
            ("--gamma", self.gamma.is_some(), &[Polynomial]),
            ("--coef0", self.coef0.is_some(), &[Polynomial]),
            ("--nu", self.nu.is_some(), &[Matern]),
            ("--norm", self.norm.is_some(), &[Laplacian]),
            ("--exponent", self.exponent.is_some(), &[Optical]),
            ("--bias", self.bias.is_some(), &[Optical]),
            ("--set", !self.set.is_empty(), &OPERATORS),
        ];
        let this = self.kernel.word();
        if let Some((option, _, kernels)) =
            given.iter().find(|(_, given, kernels)| *given && !kernels.contains(&self.kernel))
        {
            let kernels: Vec<String> = kernels.iter().map(|kernel| kernel.word()).collect();
            let kernels = kernels.join(", ");
            return Err(Failure::Usage(format!("{option} goes with --kernel {kernels}; the kernel is {this}")));
        }
        let known = operator_parameters(operator_name(&this).unwrap_or_default());
        match settings(&self.set)?.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let known = if known.is_empty() { "--length-scale only".into() } else { known.join(", ") };
                Err(Failure::Usage(format!("--set {name}: the parameters of --kernel {this} are {known}")))
            }
        }
    }

    /// Whether rows and outputs are vectors of the same space, so that columns cannot be scaled apart.
    fn is_field(&self) -> bool {
        OPERATORS.contains(&self.kernel) && self.kernel != KernelName::Decomposable
    }

    /// Refuses targets that do not suit an operator-valued kernel, before any row is read. The kernel of a field can do
    /// without: it has as many outputs as there are columns.
    fn check_targets(&self, data: &Data) -> Outcome {
        let none = data.schema().targets.is_empty();
        if self.is_field() && !none {
            return pipeline::check_field(data);
        }
        let has_matrix = settings(&self.set)?.iter().any(|(name, value)| name == "matrix" && value.is_array());
        if self.kernel != KernelName::Decomposable || has_matrix {
            return Ok(());
        }
        if none {
            return Err(Failure::Usage(format!(
                "{}: which columns does --kernel decomposable relate? Say --target COLUMN,COLUMN, or --set matrix=[[…],[…]]; \
                 the columns are {}",
                data.input().name,
                source::some_names(data.schema())
            )));
        }
        pipeline::check_numbers(data)
    }

    /// The operator-valued kernel, as `fit` understands the same words.
    fn operator(&self, targets: &Array2<f64>, length_scale: f64) -> Outcome<OperatorKernel> {
        let mut map: Map<String, Value> = settings(&self.set)?.into_iter().collect();
        map.insert("kernel".into(), self.kernel.word().into());
        let kernel = OperatorWish::new(&map, || pipeline::correlations(targets.view()))?.kernel(length_scale)?;
        match kernel.decomposed().map(|(_, matrix)| matrix.len()) {
            Some(outputs) if targets.ncols() > 0 && outputs != targets.ncols() => Err(Failure::Usage(format!(
                "--set matrix: it relates {}, and there are {} (--target)",
                human::things(outputs, "output"),
                human::things(targets.ncols(), "target")
            ))),
            _ => Ok(kernel),
        }
    }

    /// The kernel, with a length scale from the rows where none was given.
    pub(crate) fn resolve(&self, sampled: &Sampled, seed: Seed) -> Outcome<Kernel> {
        let scale = || match self.length_scale {
            Some(scale) => Ok(scale),
            None => median_distance(sampled.rows.view(), seed, MEDIAN_ROWS),
        };
        Ok(Kernel::Scalar(match self.kernel {
            KernelName::Gaussian => Gaussian::new(scale()?)?.into(),
            KernelName::Laplacian => Laplacian::new(scale()?, self.norm.unwrap_or(2))?.into(),
            KernelName::Matern => Matern::new(self.nu.unwrap_or(1.5), scale()?)?.into(),
            KernelName::Exponential => Exponential::new(scale()?)?.into(),
            KernelName::Polynomial => {
                let (gamma, coef0) = (self.gamma.unwrap_or(1.0), self.coef0.unwrap_or(1.0));
                Polynomial::new(self.degree.unwrap_or(3), gamma, coef0)?.into()
            }
            KernelName::Spherical => Spherical::new(self.degree.unwrap_or(3), self.a.unwrap_or(2.0))?.into(),
            KernelName::Compressive => {
                let columns = sampled.rows.ncols();
                let measurements = self.compressed_dim.unwrap_or(64.min(columns));
                if !(1..=columns).contains(&measurements) {
                    return Err(Failure::Usage(format!(
                        "--compressed-dim {measurements}: expected a number from 1 to {columns}, that of the columns"
                    )));
                }
                Compressive::new(Compression::Orthoprojector, columns, measurements, scale()?)?.into()
            }
            KernelName::Optical => Optical::new(self.exponent.unwrap_or(2.0), self.bias.unwrap_or(1.0))?.into(),
            KernelName::CurlFree | KernelName::DivergenceFree | KernelName::Helmholtz | KernelName::Decomposable => {
                return Ok(Kernel::Operator(self.operator(&sampled.targets, scale()?)?));
            }
        }))
    }
}

/// A kernel whose values are numbers, or matrices.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Kernel {
    Scalar(Any),
    Operator(OperatorKernel),
}

impl Kernel {
    /// As a title says it.
    pub(crate) fn title(&self) -> String {
        match self {
            Kernel::Scalar(kernel) => title(kernel),
            Kernel::Operator(kernel) => match kernel.decomposed() {
                Some((base, outputs)) => {
                    format!("decomposable kernel of {} on a {}", human::things(outputs.len(), "output"), title(base))
                }
                None => {
                    let value = serde_json::to_value(kernel).unwrap_or_default();
                    let scale = human::significant(value["length_scale"].as_f64().unwrap_or_default(), 4);
                    format!("{}, length scale {scale}", operator_in_words(&value))
                }
            },
        }
    }
}

/// A kernel whose values are numbers as a title says it.
fn title(kernel: &Any) -> String {
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
        Any::Spherical(k) => format!("kernel (1 - |x - y|²/{}²)^{} of rows of length one", short(k.a()), k.degree()),
        Any::Compressive(k) => format!(
            "Gaussian kernel of rows compressed from {} to {}, length scale {}",
            human::things(k.input_dim(), "column"),
            k.output_dim(),
            number(k.length_scale())
        ),
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
    /// The column a model would predict, left out like those of --drop; the outputs of an operator-valued kernel
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
    /// As the file has them.
    targets: Array2<f64>,
    pub(crate) total: usize,
    /// Whether columns have names, and with them meanings of their own.
    pub(crate) table: bool,
    /// What was done to the rows, in words.
    pub(crate) preparation: Vec<String>,
}

impl Sampled {
    /// What was done to the rows, of which so many were used, in sentences of their own.
    pub(crate) fn prepared(&self, used: usize) -> String {
        let prepared = match self.preparation.is_empty() {
            true => "Rows are taken as they are.".into(),
            false => format!("Rows: {}.", self.preparation.join("; ")),
        };
        match self.rows.nrows() {
            all if all == used => prepared,
            all => format!(
                "{prepared} Of the {} in the sample {} are compared: matrices of more pairs would take too much memory.",
                human::count(all),
                human::count(used)
            ),
        }
    }

    /// What programs are told beside a table of maps or bases, of which so many rows of the sample were used.
    pub(crate) fn facts(&self, kernel: &Kernel, rows: usize) -> Outcome<Vec<(String, Value)>> {
        let described = serde_json::to_value(kernel).map_err(|e| Failure::Failed(e.to_string()))?;
        let fields = described.as_object().into_iter().flatten();
        let mut facts: Vec<(String, Value)> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        facts.sort_by_key(|(name, _)| name != "kernel");
        facts.extend([
            ("preparation".to_owned(), self.preparation.join("; ").into()),
            ("total_rows".to_owned(), self.total.into()),
            ("sample_rows".to_owned(), rows.into()),
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

    /// A sample for a kernel, prepared as was asked for, or else like this; what steps learn they learn from all rows, as in
    /// `fit`.
    pub(crate) fn read(&self, context: &Context, kernel: &KernelArgs, otherwise: Preparation) -> Outcome<Sampled> {
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
        kernel.check_targets(&data)?;
        let preparation = self.preprocess.unwrap_or(otherwise);
        let preparation = match kernel.kernel {
            _ if kernel.is_field() => preparation.of_field()?,
            KernelName::Spherical => preparation.of_sphere()?,
            _ => preparation,
        };
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
            steps: scan.steps(&data, preparation, self.threshold)?,
            targets: Vec::new(),
            labels: Vec::new(),
        };
        // In random order: the first ones are a sample too.
        let mut rows = scan.sample.rows;
        if rows.nrows() > self.rows {
            rows = rows.slice(s![..self.rows, ..]).to_owned();
        }
        prepared.apply(rows.view_mut())?;
        Ok(Sampled {
            rows,
            targets: scan.sample.targets,
            total: scan.rows,
            table: data.is_table(),
            preparation: prepared.in_words(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn kernels_have_the_names_that_fit_knows_them_by() {
        for name in
            ["curl_free", "curl-free", "divergence_free", "divergence-free", "div_free", "div-free", "helmholtz"]
        {
            let kernel = KernelName::from_str(name, false).unwrap();
            assert_eq!(operator_name(&kernel.word()), operator_name(name), "{name}");
        }
        let named = |kernel: &&KernelName| operator_name(&kernel.word()).is_some();
        assert_eq!(KernelName::value_variants().iter().filter(named).copied().collect::<Vec<_>>(), OPERATORS);
    }
}
