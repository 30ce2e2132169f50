//! A prepared sample of a file's rows, and the kernel that compares them.

use crate::description::operator_in_words;
use crate::failure::{Failure, Outcome};
use crate::pipeline::{self, Pipeline, Preparation};
use crate::progress::Watch;
use crate::read::{Data, Missing};
use bochner::kernel::{AnyKernel, OperatorKernel};
use bochner::random::Seed;
use bochner::words;
use ndarray::{Array2, s};
use serde_json::Value;

/// A kernel whose values are numbers, or matrices.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
pub enum Kernel {
    Scalar(AnyKernel),
    Operator(OperatorKernel),
}

impl Kernel {
    /// As a title says it.
    pub fn title(&self) -> String {
        match self {
            Kernel::Scalar(kernel) => title(kernel),
            Kernel::Operator(kernel) => match kernel.decomposed() {
                Some((base, outputs)) => {
                    format!("decomposable kernel of {} on a {}", words::things(outputs.len(), "output"), title(base))
                }
                None => {
                    let value = serde_json::to_value(kernel).unwrap_or_default();
                    let scale = words::significant(value["length_scale"].as_f64().unwrap_or_default(), 4);
                    format!("{}, length scale {scale}", operator_in_words(&value))
                }
            },
        }
    }
}

/// A kernel whose values are numbers as a title says it.
fn title(kernel: &AnyKernel) -> String {
    let number = |v: f64| words::significant(v, 4);
    // Round numbers as they were given: (x·y + 1)^3, not (1.000 x·y + 1.000)^3.
    let short = |v: f64| Some(v.to_string()).filter(|text| text.len() <= 6).unwrap_or_else(|| number(v));
    match kernel {
        AnyKernel::Gaussian(k) => format!("Gaussian kernel, length scale {}", number(k.length_scale())),
        AnyKernel::Laplacian(k) => {
            format!("Laplacian kernel of norm {}, length scale {}", k.norm(), number(k.length_scale()))
        }
        AnyKernel::Matern(k) => {
            format!("Matérn kernel, nu {}, length scale {}", short(k.nu()), number(k.length_scale()))
        }
        AnyKernel::Exponential(k) => format!("kernel exp(x·y/{}²)", number(k.length_scale())),
        AnyKernel::Polynomial(k) => {
            let gamma = if k.gamma() == 1.0 { String::new() } else { format!("{} ", short(k.gamma())) };
            format!("kernel ({gamma}x·y + {})^{}", short(k.coef0()), k.degree())
        }
        AnyKernel::Optical(k) => format!("optical kernel, m = {}, bias {}", short(k.exponent()), short(k.bias())),
        AnyKernel::Spherical(k) => {
            format!("kernel (1 - |x - y|²/{}²)^{} of rows of length one", short(k.a()), k.degree())
        }
        AnyKernel::Compressive(k) => format!(
            "Gaussian kernel of rows compressed from {} to {}, length scale {}",
            words::things(k.input_dim(), "column"),
            k.output_dim(),
            number(k.length_scale())
        ),
        _ => "kernel".into(),
    }
}

/// What tables of maps do not say: by which constant some of them are off, if any is.
pub fn scaled(mut factors: impl Iterator<Item = f64>) -> String {
    factors.find(|factor| *factor != 1.0).map_or(String::new(), |factor| {
        format!(
            "Spherical features estimate the kernel over {}; a penalty absorbs it.\n",
            words::significant(factor, 4)
        )
    })
}

/// Rows of a sample and the number of rows in the file.
#[derive(Debug)]
pub struct Sampled {
    pub rows: Array2<f64>,
    /// As the file has them.
    pub targets: Array2<f64>,
    pub total: usize,
    /// Whether columns have names, and with them meanings of their own.
    pub table: bool,
    /// What was done to the rows, in words.
    pub preparation: Vec<String>,
}

impl Sampled {
    /// What was done to the rows, of which so many were used, in sentences of their own.
    pub fn prepared(&self, used: usize) -> String {
        let prepared = match self.preparation.is_empty() {
            true => "Rows are taken as they are.".into(),
            false => format!("Rows: {}.", self.preparation.join("; ")),
        };
        match self.rows.nrows() {
            all if all == used => prepared,
            all => format!(
                "{prepared} Of the {} in the sample {} are compared: matrices of more pairs would take too much memory.",
                words::count(all),
                words::count(used)
            ),
        }
    }

    /// What programs are told beside a table of maps or bases, of which so many rows of the sample were used.
    pub fn facts(&self, kernel: &Kernel, rows: usize) -> Outcome<Vec<(String, Value)>> {
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

    /// At most so many rows of a file, prepared; what steps learn they learn from all rows, as in [`fit`](crate::fit::fit).
    ///
    /// # Errors
    /// If there are too few rows or they cannot be read, or if the user asked to stop.
    pub fn read(
        data: &Data,
        most: usize,
        preparation: Preparation,
        threshold: f64,
        missing: Missing,
        seed: Seed,
        watch: &dyn Watch,
    ) -> Outcome<Self> {
        let schema = data.schema();
        let bytes = 8 * most * (schema.input_dim() + schema.targets.len());
        let progress = watch.reading(data.input(), "looking at the rows")?;
        let scan = pipeline::scan(data, seed, bytes as u64, || progress.read())?;
        drop(progress);
        if scan.rows < 2 {
            return Err(too_little(data, scan.rows));
        }
        let prepared = Pipeline {
            schema: schema.clone(),
            missing,
            steps: scan.steps(data, preparation, threshold)?,
            targets: Vec::new(),
            labels: Vec::new(),
        };
        // In random order: the first ones are a sample too.
        let mut rows = scan.sample.rows;
        if rows.nrows() > most {
            rows = rows.slice(s![..most, ..]).to_owned();
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

/// Refuses a file without columns, before any row is read.
///
/// # Errors
/// If there are none.
pub fn check_columns(data: &Data) -> Outcome {
    if data.schema().input_dim() == 0 { Err(too_little(data, 0)) } else { Ok(()) }
}

fn too_little(data: &Data, rows: usize) -> Failure {
    let found = format!("{} of {}", words::things(rows, "row"), words::things(data.schema().input_dim(), "column"));
    Failure::Failed(format!("{}: a sample needs at least 2 rows and 1 column, found {found}", data.input().name))
}
