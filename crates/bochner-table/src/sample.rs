//! A prepared sample of a file's rows, and the kernel that compares them.
//!
//! ```
//! use bochner_table::sample::KernelRequest;
//! let given = vec![("degree".to_owned(), 3u64.into())];
//! let kernel = KernelRequest::new("polynomial", given, |name| format!("--set {name}"))?;
//! assert_eq!(kernel.entry.name, "polynomial");
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::map_request::{blamed, borrowed, check_parameters, is_field, is_operator, kernel_entry};
use crate::pipeline::{self, Pipeline, Preparation};
use crate::progress::Watch;
use crate::read::{Data, Missing};
use bochner::catalogue::{Entry, Value};
use bochner::kernel::{AnyKernel, OperatorKernel};
use bochner::preprocess::median_distance;
use bochner::random::Seed;
use bochner::words;
use ndarray::{Array2, s};

/// A kernel whose values are numbers, or matrices.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
pub enum Kernel {
    /// Numbers.
    Scalar(AnyKernel),
    /// Matrices.
    Operator(OperatorKernel),
}

impl Kernel {
    /// As a title says it.
    pub fn title(&self) -> String {
        match self {
            Kernel::Scalar(kernel) => kernel.in_words(),
            Kernel::Operator(kernel) => kernel.in_words(),
        }
    }
}

/// Rows from which the median distance is computed.
const MEDIAN_ROWS: usize = 2000;

/// A kernel by its name and its parameters, in the words of the user.
#[derive(Debug, Clone)]
pub struct KernelRequest {
    /// What the catalogue says of it.
    pub entry: &'static Entry,
    /// Parameters by name.
    pub given: Vec<(String, Value)>,
}

impl KernelRequest {
    /// The kernel of this name, with these parameters; one of them is set once.
    ///
    /// # Errors
    /// No such kernel or parameter, and values outside of their domains; `option` is how a parameter was given.
    pub fn new(name: &str, given: Vec<(String, Value)>, option: impl Fn(&str) -> String) -> Outcome<Self> {
        let entry = kernel_entry(name)?;
        check_parameters(entry, &given, option)?;
        let twice = |(at, (name, _)): &(usize, &(String, Value))| given[..*at].iter().any(|(known, _)| known == name);
        if let Some((_, (name, value))) = given.iter().enumerate().find(twice) {
            let message = format!("--set {name}={value} and another option set the same; leave one of them out");
            return Err(Failure::Usage(message));
        }
        Ok(KernelRequest { entry, given })
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.given.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// What is done to rows first, with what the kernel asks for.
    ///
    /// # Errors
    /// A preparation that does not go with the kernel.
    pub fn preparation(&self, asked: Preparation) -> Outcome<Preparation> {
        match self.entry.name {
            _ if is_field(self.entry) => asked.of_field(),
            "spherical" => asked.of_sphere(),
            _ => Ok(asked),
        }
    }

    /// Refuses targets that do not suit an operator-valued kernel, before any row is read. The kernel of a field can do
    /// without: it has as many outputs as there are columns.
    ///
    /// # Errors
    /// Targets that are missing, are words, or are too many or too few.
    pub fn check_targets(&self, data: &Data) -> Outcome {
        let none = data.schema().targets.is_empty();
        if is_field(self.entry) && !none {
            return pipeline::check_field(data);
        }
        if self.entry.parameter("matrix").is_err() || matches!(self.value("matrix"), Some(Value::List(_))) {
            return Ok(());
        }
        if none {
            return Err(Failure::Usage(format!(
                "{}: which columns does --kernel {} relate? Say --target COLUMN,COLUMN, or --set matrix=[[…],[…]]; the \
                 columns are {}",
                data.input().name,
                self.entry.name,
                data.schema().some_names()
            )));
        }
        pipeline::check_numbers(data)
    }

    /// The kernel, with a length scale from the rows where none was given.
    ///
    /// # Errors
    /// Rows that have no median distance, and parameters that do not suit the rows.
    pub fn resolve(&self, sampled: &Sampled, seed: Seed) -> Outcome<Kernel> {
        let mut given = self.given.clone();
        if self.value("length_scale").is_none() && self.entry.parameter("length_scale").is_ok() {
            given.push(("length_scale".into(), median_distance(sampled.rows.view(), seed, MEDIAN_ROWS)?.into()));
        }
        let columns = sampled.rows.ncols();
        if let Some(dim) = self.value("compressed_dim").filter(|dim| dim.number() > Some(columns as f64)) {
            return Err(Failure::Usage(format!(
                "--set compressed_dim={dim}: expected a number from 1 to {columns}, that of the columns"
            )));
        }
        let (name, targets) = (self.entry.name, &sampled.targets);
        if !is_operator(name) {
            return Ok(Kernel::Scalar(AnyKernel::named(name, columns, &borrowed(&given))?));
        }
        let kernel = OperatorKernel::named(name, &borrowed(&given), || pipeline::correlations(targets.view()))
            .map_err(blamed(format!("--kernel {name}")))?;
        match kernel.decomposed().map(|(_, matrix)| matrix.len()) {
            Some(outputs) if targets.ncols() > 0 && outputs != targets.ncols() => Err(Failure::Usage(format!(
                "--set matrix: it relates {}, and there are {} (--target)",
                words::things(outputs, "output"),
                words::things(targets.ncols(), "target")
            ))),
            _ => Ok(Kernel::Operator(kernel)),
        }
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
    /// Prepared.
    pub rows: Array2<f64>,
    /// As the file has them.
    pub targets: Array2<f64>,
    /// Rows of the file.
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
    pub fn facts(&self, kernel: &Kernel, rows: usize) -> Outcome<Vec<(String, serde_json::Value)>> {
        let described = serde_json::to_value(kernel).map_err(|e| Failure::Failed(e.to_string()))?;
        let fields = described.as_object().into_iter().flatten();
        let mut facts: Vec<_> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
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
        let scan = pipeline::scan(data, seed, bytes as u64, watch)?;
        if scan.rows < 2 {
            return Err(too_little(data, scan.rows));
        }
        let steps = scan.steps(data, preparation, threshold)?;
        let schema = schema.clone();
        let prepared = Pipeline { schema, missing, steps, views: None, targets: Vec::new(), labels: Vec::new() };
        // In random order: the first ones are a sample too.
        let rows = scan.sample.rows.slice(s![..most.min(scan.sample.rows.nrows()), ..]).to_owned();
        let rows = prepared.prepared(rows)?;
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
