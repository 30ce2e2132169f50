//! What `compare` and `plan` share: a kernel named on the command line, and a prepared sample of a file's rows.

use crate::cli::Context;
use crate::source::{Columns, Text};
use crate::values;
use bochner::kernel::{
    Compression, Compressive, Exponential, Gaussian, Laplacian, Matern, OperatorKernel, Optical, Polynomial, Spherical,
};
use bochner::preprocess::median_distance;
use bochner::random::Seed;
use bochner::words;
use bochner_table::description::{OperatorRequest, operator_name, operator_parameters};
use bochner_table::failure::{Failure, Outcome};
use bochner_table::map_request::settings;
use bochner_table::output::Named;
use bochner_table::pipeline::{self, Preparation, SAMPLE_ROWS};
use bochner_table::read::{Data, Largest};
use bochner_table::sample::{self, Kernel, Sampled};
use ndarray::Array2;
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
                data.schema().some_names()
            )));
        }
        pipeline::check_numbers(data)
    }

    /// The operator-valued kernel, as `fit` understands the same words.
    fn operator(&self, targets: &Array2<f64>, length_scale: f64) -> Outcome<OperatorKernel> {
        let mut map: Map<String, Value> = settings(&self.set)?.into_iter().collect();
        map.insert("kernel".into(), self.kernel.word().into());
        let kernel = OperatorRequest::new(&map, || pipeline::correlations(targets.view()))?.kernel(length_scale)?;
        match kernel.decomposed().map(|(_, matrix)| matrix.len()) {
            Some(outputs) if targets.ncols() > 0 && outputs != targets.ncols() => Err(Failure::Usage(format!(
                "--set matrix: it relates {}, and there are {} (--target)",
                words::things(outputs, "output"),
                words::things(targets.ncols(), "target")
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
    match values::parse_count(text) {
        Ok(rows) if (2..=SAMPLE_ROWS).contains(&rows) => Ok(rows),
        _ => Err(format!("expected a whole number from 2 to {SAMPLE_ROWS}, got {text:?}")),
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
        let data = self.columns.open(&self.data, None, &self.target, &self.text, Largest::DOUBLE)?;
        sample::check_columns(&data)?;
        kernel.check_targets(&data)?;
        let preparation = self.preprocess.unwrap_or(otherwise);
        let preparation = match kernel.kernel {
            _ if kernel.is_field() => preparation.of_field()?,
            KernelName::Spherical => preparation.of_sphere()?,
            _ => preparation,
        };
        let seed = Seed::new(context.global.seed);
        Sampled::read(&data, self.rows, preparation, self.threshold, self.columns.missing(), seed, context)
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
