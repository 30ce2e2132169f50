//! The kinds of models a file may hold. A new one is an implementation of [`Predictor`], a way to fit it, and one line in
//! `KINDS`.

use crate::description::Description;
use crate::failure::{Failure, Outcome};
use crate::journal;
use crate::pipeline::{Pipeline, Task};
use crate::read::Element;
use bochner::accumulate::{ClassGram, Gram};
use bochner::feature::{Describe, DynMap, FeatureMap, Spec};
use bochner::kernel::AnyKernel;
use bochner::model::exact::{ExactGpClassifierModel, ExactGpRegressorModel, KernelRidgeModel};
use bochner::model::{
    ExactOperatorRidgeModel, Fit, GpClassifier, GpClassifierModel, GpRegressor, GpRegressorModel, KernelSvm,
    KernelSvmModel, LocalGp, LocalGpModel, OperatorRidge, OperatorRidgeModel, OperatorSolver, Predict, Ridge,
    RidgeClassifierModel, RidgeModel, SviClassifier, SviClassifierModel, Svm, SvmModel,
};
use bochner::persist::Stored;
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{InMemory, OneAgainstRest, RowBlock, RowSource};
use bochner::scalar::Real;
use bochner::solve::{SolveReport, Solver};
use bochner::{Context, Error, Result};
use ndarray::{Array2, ArrayView2, Axis};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// A model that predicts, whatever its kind and precision: rows and answers are doubles.
pub trait Predictor: Send + Sync {
    /// Targets of a regression; for a classification one value per class, the largest of which wins.
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>>;

    /// Standard deviations of [`values`](Self::values).
    fn deviations(&self, _rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Err(Error::Unsupported {
            what: "--std",
            reason: "this kind of model has no standard deviations; bochner fit --model gp trains one that has".into(),
        })
    }

    /// Probabilities of the classes.
    fn probabilities(&self, _rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Err(Error::Unsupported {
            what: "--probabilities",
            reason: "this kind of model has no probabilities; bochner fit --model gp trains one that has".into(),
        })
    }

    /// Sentences about what was learned and how.
    fn in_words(&self) -> Vec<String>;
}

/// What a fit is asked to do.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) description: &'a Description,
    /// What weighs coefficients; the `alpha` of a Dirichlet transform.
    pub(crate) penalty: f64,
    /// Names of the classes of a classification.
    pub(crate) classes: Option<Vec<Value>>,
    /// Columns to predict.
    pub(crate) targets: usize,
    pub(crate) memory: Option<u64>,
    pub(crate) solver: Solver,
    /// Most centroids of a local process.
    pub(crate) centroids: usize,
    /// Where passes over rows are recorded.
    pub(crate) journal: Option<journal::Place>,
    pub(crate) seed: Seed,
}

impl Job<'_> {
    fn build<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        self.description.spec()?.build::<R>(input_dim)
    }

    /// Ridge regression as asked for.
    pub(crate) fn ridge<R: Real>(&self, input_dim: usize) -> Result<Ridge<DynMap<R>>> {
        Ok(Ridge::new(self.build::<R>(input_dim)?, self.penalty)?.with_solver(self.solver))
    }

    /// The memory that was asked for.
    pub(crate) fn context<'a>(&self) -> Result<Context<'a>> {
        self.memory.map_or(Ok(Context::default()), |bytes| Context::default().with_memory_budget(bytes))
    }

    /// A fit in the memory that was asked for, recorded where that was asked for.
    fn fit<F: Fit>(&self, model: &F, source: &mut dyn RowSource<F::Real>) -> Result<F::Model> {
        let mut journal = self.journal.as_ref().map(journal::Place::open).transpose()?;
        let mut context = self.context()?;
        if let Some(journal) = &mut journal {
            context = context.with_journal(journal);
        }
        model.fit_stream(source, &mut context)
    }

    /// Refuses a budget in which penalties cannot be compared: all of them are fitted from one Gram matrix.
    ///
    /// To be asked with all the features of a fit, before fewer are tried: a budget that would do for those is no advice.
    pub(crate) fn check_memory<R: Real>(&self, input_dim: usize) -> Result<()> {
        if let (Some(_), Description::Map(_)) = (self.memory, self.description) {
            let outputs = self.targets.max(self.class_count());
            self.ridge::<R>(input_dim)?.with_solver(Solver::Cholesky).bytes(None, outputs, &self.context()?)?;
        }
        Ok(())
    }

    /// Ridge regression of a function with several outputs.
    pub(crate) fn operator<R: Real>(&self, input_dim: usize) -> Result<OperatorRidge<R>> {
        let solver = match self.solver {
            Solver::ConjugateGradients(options) => OperatorSolver::ConjugateGradients(options),
            Solver::StochasticGradient(options) => OperatorSolver::StochasticGradient(options),
            Solver::Dual => {
                let reason = "operator-valued kernels have none; use --solver cholesky, cg or sgd".into();
                return Err(Error::Unsupported { what: "--solver dual", reason });
            }
            _ => OperatorSolver::Auto,
        };
        let features = self.description.operator()?.build::<R>(input_dim)?;
        OperatorRidge::new(features, self.penalty)?.with_solver(solver)
    }

    /// The price of a violated margin that weighs the coefficients as the penalty of a ridge regression does.
    fn price(&self) -> f64 {
        0.5 / self.penalty.max(1e-12)
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.as_ref().map_or(0, Vec::len)
    }
}

/// Sums over rows: all that is kept of them.
#[derive(Debug, Clone)]
pub(crate) enum Sums<R: Real> {
    All(Gram<R>),
    /// Each class apart.
    Classes(ClassGram<R>),
}

impl<R: Real> Sums<R> {
    pub(crate) fn count(&self) -> u64 {
        match self {
            Sums::All(gram) => gram.count(),
            Sums::Classes(gram) => gram.count(),
        }
    }

    pub(crate) fn save(&self, path: &Path, note: Value) -> Result<()> {
        match self {
            Sums::All(gram) => gram.save_with(path, note),
            Sums::Classes(gram) => gram.save_with(path, note),
        }
    }

    /// Sums and note of a file.
    pub(crate) fn load(path: &Path, by_class: bool) -> Result<(Self, Value)> {
        Ok(match by_class {
            false => Gram::load_with(path).map(|(gram, note)| (Sums::All(gram), note))?,
            true => ClassGram::load_with(path).map(|(gram, note)| (Sums::Classes(gram), note))?,
        })
    }

    fn all(self) -> Result<Gram<R>> {
        match self {
            Sums::All(gram) => Ok(gram),
            Sums::Classes(_) => Err(unreadable("holds sums of every class apart".into())),
        }
    }
}

/// A model that is fitted from sums over rows, so that a long fit can be checkpointed.
pub(crate) trait FromSums<R: Real> {
    fn map(&self) -> &DynMap<R>;

    /// Sums over no rows.
    fn begin(&self) -> Result<Sums<R>>;

    /// Bytes of the sums.
    fn bytes(&self) -> u64;

    /// Number of classes whose rows are told from all others by a target each; 0 for targets as they are.
    fn against_rest(&self) -> usize {
        0
    }

    /// The model.
    fn finish(&self, sums: Sums<R>) -> Result<Stored>;

    /// Hands out blocks of rows with the targets that the sums want.
    fn each(&self, source: &mut dyn RowSource<R>, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        match self.against_rest() {
            0 => source.for_each_block(visit),
            classes => OneAgainstRest::new(source, classes)?.for_each_block(visit),
        }
    }

    /// Adds rows.
    fn push(&self, sums: &mut Sums<R>, block: RowBlock<'_, R>) -> Result<()> {
        match sums {
            Sums::All(gram) => gram.push_rows(self.map(), block),
            Sums::Classes(gram) => gram.push_rows(self.map(), block),
        }
    }
}

type FitFromSums<R> = for<'a> fn(&'a Job<'a>, usize) -> Result<Box<dyn FromSums<R> + 'a>>;
type FitFromRows<R> = fn(&Job<'_>, &mut dyn RowSource<R>) -> Result<Stored>;

/// How a kind of model is read and fitted in one precision.
#[derive(Debug)]
pub(crate) struct How<R: Real> {
    load: fn(&Stored) -> Result<Box<dyn Predictor>>,
    pub(crate) from_sums: Option<FitFromSums<R>>,
    pub(crate) from_rows: Option<FitFromRows<R>>,
}

/// A kind of model.
#[derive(Debug)]
pub struct Kind {
    /// As model files write it.
    pub name: &'static str,
    /// As `--model` writes it.
    pub option: Family,
    pub task: Task,
    /// As people say it.
    pub words: &'static str,
    /// What `--alpha` sets.
    pub parameter: &'static str,
    single: How<f32>,
    double: How<f64>,
}

/// A precision in which models are fitted.
pub(crate) trait Precise: Element {
    fn how(kind: &'static Kind) -> &'static How<Self>;
}

impl Precise for f32 {
    fn how(kind: &'static Kind) -> &'static How<f32> {
        &kind.single
    }
}

impl Precise for f64 {
    fn how(kind: &'static Kind) -> &'static How<f64> {
        &kind.double
    }
}

/// Families of models: what `--model` chooses, whatever the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Family {
    /// Ridge regression, or classification by ridge regression of each class against the rest
    Ridge,
    /// A support vector machine on the features
    Svm,
    /// A support vector machine with the exact kernel, for some thousands of rows
    KernelSvm,
    /// A Gaussian process: standard deviations for numbers, probabilities for classes
    Gp,
    /// A Gaussian process around many centres, for numbers that change over short distances
    LocalGp,
    /// A Gaussian process for classes by stochastic variational inference, for very many features
    Svi,
    /// Ridge regression of several targets that are one function, such as a vector field
    Operator,
}

impl Family {
    /// As `--model` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Family::Ridge => "ridge",
            Family::Svm => "svm",
            Family::KernelSvm => "kernel-svm",
            Family::Gp => "gp",
            Family::LocalGp => "local-gp",
            Family::Svi => "svi",
            Family::Operator => "operator",
        }
    }

    /// Whether `--solver` has a say.
    pub(crate) fn has_solvers(self) -> bool {
        matches!(self, Family::Ridge | Family::Operator)
    }

    /// Whether all arithmetic is in double precision.
    pub(crate) fn only_double(self) -> bool {
        matches!(self, Family::KernelSvm | Family::LocalGp)
    }
}

macro_rules! option {
    () => {
        None
    };
    ($function:expr) => {
        Some($function)
    };
}

macro_rules! kinds {
    ($($name:literal: $option:ident $task:ident $words:literal $parameter:literal $load:ident
        [$($sums:ident)?] [$($rows:ident)?];)*) => {
        &[$(Kind {
            name: $name,
            option: Family::$option,
            task: Task::$task,
            words: $words,
            parameter: $parameter,
            single: How {
                load: $load::<f32>,
                from_sums: option!($($sums::<f32>)?),
                from_rows: option!($($rows::<f32>)?),
            },
            double: How {
                load: $load::<f64>,
                from_sums: option!($($sums::<f64>)?),
                from_rows: option!($($rows::<f64>)?),
            },
        },)*]
    };
}

/// All kinds: what is fitted from sums in brackets first, what is fitted from rows in brackets second.
pub(crate) static KINDS: &[Kind] = kinds! {
    "ridge": Ridge Regression "ridge regression" "penalty" load_ridge [sum_ridge] [fit_ridge];
    "ridge_classifier": Ridge Classification "classification by ridge regression" "penalty"
        load_classifier [sum_ridge] [fit_classifier];
    "svm": Svm Classification "support vector machine" "penalty" load_svm [] [fit_svm];
    "kernel_svm": KernelSvm Classification "exact kernel support vector machine" "penalty"
        load_kernel_svm [] [fit_kernel_svm];
    "gp_regressor": Gp Regression "Gaussian process regression" "penalty" load_gp [sum_gp] [];
    "gp_classifier": Gp Classification "Gaussian process classification" "alpha"
        load_gp_classifier [sum_gp_classifier] [];
    "local_gp": LocalGp Regression "Gaussian process regression around many centres" "penalty"
        load_local [] [fit_local];
    "svi_classifier": Svi Classification "Gaussian process classification by variational inference" "penalty"
        load_svi [] [fit_svi];
    "operator_ridge": Operator Regression "ridge regression with an operator-valued kernel" "penalty"
        load_operator [sum_operator] [fit_operator];
    // Fitted by the Python package; `--model` finds the lines above first.
    "exact_kernel_ridge": Ridge Regression "exact kernel ridge regression" "penalty" load_exact_ridge [] [];
    "exact_gp_regressor": Gp Regression "exact Gaussian process regression" "penalty" load_exact_gp [] [];
    "exact_gp_classifier": Gp Classification "exact Gaussian process classification" "alpha"
        load_exact_classifier [] [];
    "exact_operator_ridge": Operator Regression "exact ridge regression with an operator-valued kernel" "penalty"
        load_exact_operator [] [];
};

fn unreadable(detail: String) -> Error {
    Error::Format { what: "model file", detail }
}

impl Kind {
    pub fn find(family: Family, task: Task) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.option == family && kind.task == task)
    }

    pub fn of(stored: &Stored) -> Result<&'static Kind> {
        let name = &stored.header.kind;
        KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            if name == "operator_ridge_classifier" {
                return unreadable(format!("holds a `{name}`, which only bochner.load of the Python package reads"));
            }
            let known: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
            unreadable(format!("holds a `{name}`, which is not a model that predicts ({})", known.join(", ")))
        })
    }
}

/// Bytes by which a file of this program is told from others.
const HEAD: u64 = 64;

/// The first bytes of a file.
pub fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(HEAD).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file begins like one that bochner writes; a damaged one does so too.
pub fn is_file(head: &[u8]) -> bool {
    let length = head.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
    let begins = length < 1 << 32 && head.get(8) == Some(&b'{');
    begins || head.windows(12).take(HEAD as usize).any(|word| word == b"__metadata__")
}

/// Why a file that is not one of this program cannot be used as a model.
pub(crate) fn not_a_model(name: &str, head: &[u8]) -> String {
    let known: [&[u8]; 5] = [b"PAR1", b"\x93NUMPY", b"PK\x03\x04", b"\x1f\x8b", b"\0\0\x08"];
    // A letter may be cut at the end.
    let text = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |t| !t.contains('\0'));
    let why = match head {
        [] => ": it is empty",
        _ if text || known.iter().any(|start| head.starts_with(start)) => {
            ": it looks like data, from which bochner fit makes a model"
        }
        _ => "",
    };
    format!("{name} is not a model file of bochner{why}")
}

/// A model file, ready to predict.
pub struct Model {
    pub kind: &'static Kind,
    pub stored: Stored,
    /// `None` for a model that was saved without one, by another door than the command line.
    pub pipeline: Option<Pipeline>,
    pub fitted: Box<dyn Predictor>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("kind", &self.kind).field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}

impl Model {
    /// Reads a model file; what is wrong with it is told with its name.
    pub fn load(path: &Path) -> Outcome<Self> {
        let told = |e: &dyn std::fmt::Display| Failure::Failed(format!("{}: {e}", path.display()));
        let bytes = std::fs::read(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => told(&"there is no such file"),
            _ => told(&e),
        })?;
        if !is_file(&bytes) {
            let head = &bytes[..bytes.len().min(HEAD as usize)];
            return Err(Failure::Failed(not_a_model(&path.display().to_string(), head)));
        }
        Stored::from_bytes(&bytes).and_then(Model::new).map_err(|e| told(&e))
    }

    pub fn new(stored: Stored) -> Result<Self> {
        let kind = Kind::of(&stored)?;
        let pipeline: Option<Pipeline> = match &stored.header.preprocessing {
            Value::Null => None,
            value => Some(
                serde_json::from_value(value.clone())
                    .map_err(|e| unreadable(format!("its preprocessing cannot be read: {e}")))?,
            ),
        };
        if let Some(pipeline) = &pipeline {
            let (found, expected) = (pipeline.schema.input_dim(), stored.header.input_dim);
            if found != expected {
                return Err(unreadable(format!("its columns make rows of {found} numbers, its map takes {expected}")));
            }
            let classes = stored.header.classes.as_ref().map_or(0, Vec::len);
            let broken = match kind.task {
                Task::Regression => pipeline.targets.len() != pipeline.schema.targets.len(),
                Task::Classification => classes != pipeline.labels.len() || pipeline.schema.targets.len() != 1,
            };
            if broken || pipeline.targets.iter().any(|t| !(t.scale.is_finite() && t.mean.is_finite())) {
                return Err(unreadable("its targets or classes do not fit together".into()));
            }
        }
        let fitted = match stored.header.dtype.as_str() {
            "f32" => (kind.single.load)(&stored)?,
            "f64" => (kind.double.load)(&stored)?,
            other => return Err(unreadable(format!("numbers of type {other}"))),
        };
        Ok(Model { kind, stored, pipeline, fitted })
    }

    /// The map, the features or the kernel.
    pub fn description(&self) -> Result<Description> {
        serde_json::from_value(self.stored.header.map.clone())
            .map_err(|e| unreadable(format!("its map cannot be read: {e}")))
    }

    /// Names of the classes as text.
    pub fn class_names(&self) -> Vec<String> {
        self.stored.header.classes.iter().flatten().map(plain).collect()
    }
}

/// A label as a file would show it.
pub fn plain(label: &Value) -> String {
    match label {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The map of a file, drawn again. A description that promises more features than there are coefficients is not believed:
/// drawing them might take any amount of memory.
fn map_of<R: Real>(stored: &Stored) -> Result<DynMap<R>> {
    let spec: Spec = serde_json::from_value(stored.header.map.clone())
        .map_err(|e| unreadable(format!("its map cannot be read: {e}")))?;
    let promised = match &spec {
        // It makes no more measurements than rows have columns.
        Spec::OrthoProjection(spec) => spec.n_components.min(stored.header.input_dim),
        spec => spec.n_components(),
    };
    check_features(stored, promised)?;
    spec.build::<R>(stored.header.input_dim)
}

/// Refuses a number of features that the arrays of the file cannot belong to.
fn check_features(stored: &Stored, features: usize) -> Result<()> {
    let rows = ["coefficients", "means"].iter().find_map(|name| stored.tensor(name).ok()?.shape().first().copied());
    let rows = rows.unwrap_or(0);
    if features > 2 * rows + 16 {
        return Err(unreadable(format!("its map has {features} features, and there are coefficients of {rows}")));
    }
    Ok(())
}

/// Sentences about a linear system that was solved.
fn solver_in_words(report: &SolveReport) -> Vec<String> {
    let mut words = vec![match report.solver.as_str() {
        "cholesky" | "path" => "coefficients are exact, from a factorisation of the Gram matrix".to_owned(),
        "dual" => "coefficients are exact, from the inner products of all rows".to_owned(),
        other => format!("coefficients are iterative ({other}, {} steps)", report.iterations),
    }];
    if let Some(condition) = report.condition {
        words.push(format!("the system had a condition number of about {condition:.0e}"));
    }
    if let Some(residual) = report.residual {
        words.push(format!("the iteration ended at a relative residual of {residual:.0e}"));
    }
    if report.jitter > 0.0 {
        words.push(format!("rounding made it necessary to add {:.1e} to the penalty", report.jitter));
    }
    words
}

/// One for the class of every row, zero for the others.
fn one_hot(labels: &[usize], classes: usize) -> Array2<f64> {
    Array2::from_shape_fn((labels.len(), classes), |(i, c)| if labels[i] == c { 1.0 } else { 0.0 })
}

fn answers<M: Predict>(model: &M, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
    Ok(model.predict(rows.mapv(M::Real::from_f64).view())?.mapv(Real::to_f64))
}

impl<R: Real> Predictor for RidgeModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        answers(self, rows)
    }

    fn in_words(&self) -> Vec<String> {
        solver_in_words(self.report())
    }
}

impl<R: Real> Predictor for RidgeClassifierModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        answers(self.regression(), rows)
    }

    fn in_words(&self) -> Vec<String> {
        solver_in_words(self.regression().report())
    }
}

fn load_ridge<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(RidgeModel::from_stored(stored, map_of::<R>(stored)?)?))
}

fn load_classifier<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(RidgeClassifierModel::from_stored(stored, map_of::<R>(stored)?)?))
}

/// Ridge regression, of targets as they are or of each class against the rest.
struct RidgeSums<'a, R: Real> {
    ridge: Ridge<DynMap<R>>,
    job: &'a Job<'a>,
}

impl<R: Real> RidgeSums<'_, R> {
    fn outputs(&self) -> usize {
        if self.job.class_count() == 0 { self.job.targets } else { self.job.class_count() }
    }
}

impl<R: Real> FromSums<R> for RidgeSums<'_, R> {
    fn map(&self) -> &DynMap<R> {
        self.ridge.map()
    }

    fn begin(&self) -> Result<Sums<R>> {
        self.ridge.accumulator(self.outputs(), &self.job.context()?).map(Sums::All)
    }

    fn bytes(&self) -> u64 {
        Gram::<R>::bytes(self.map().output_dim(), self.outputs())
    }

    fn against_rest(&self) -> usize {
        self.job.class_count()
    }

    fn finish(&self, sums: Sums<R>) -> Result<Stored> {
        let model = self.ridge.fit_moments(sums.all()?.finish())?;
        let map = self.job.description.to_value()?;
        match &self.job.classes {
            None => model.to_stored(map),
            Some(classes) => RidgeClassifierModel::from_regression(model).to_stored(map, Some(classes.clone())),
        }
    }
}

fn sum_ridge<'a, R: Real>(job: &'a Job<'a>, input_dim: usize) -> Result<Box<dyn FromSums<R> + 'a>> {
    Ok(Box::new(RidgeSums { ridge: job.ridge(input_dim)?, job }))
}

fn fit_ridge<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    solved(job, source)?.to_stored(job.description.to_value()?)
}

/// A ridge regression by whatever solver, with its passes recorded where that was asked for.
fn solved<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<RidgeModel<DynMap<R>>> {
    job.fit(&job.ridge::<R>(source.input_dim())?, source)
}

fn fit_classifier<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    let model = solved(job, &mut OneAgainstRest::new(source, job.class_count())?)?;
    RidgeClassifierModel::from_regression(model).to_stored(job.description.to_value()?, job.classes.clone())
}

/// Standard deviations of observations, from variances of what is observed and those of the noise of each output.
fn observed(mut variance: Array2<f64>, noise: Vec<f64>) -> Array2<f64> {
    for (mut column, noise) in variance.columns_mut().into_iter().zip(noise) {
        column.mapv_inplace(|v| (v.max(0.0) + noise).sqrt());
    }
    variance
}

fn process_in_words(report: &SolveReport, log_marginal_likelihood: f64) -> Vec<String> {
    let mut words = solver_in_words(report);
    words.push(format!("the logarithm of the marginal likelihood is {log_marginal_likelihood:.1}"));
    words
}

impl<R: Real> Predictor for GpRegressorModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        answers(self, rows)
    }

    /// Of an observation: noise included.
    fn deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (_, variance) = self.predict_with_variance(rows.mapv(R::from_f64).view())?;
        Ok(observed(variance.mapv(Real::to_f64), self.observation_variances()))
    }

    fn in_words(&self) -> Vec<String> {
        process_in_words(self.report(), self.log_marginal_likelihood())
    }
}

impl<R: Real> Predictor for GpClassifierModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.probabilities(rows.mapv(R::from_f64).view())
    }

    fn probabilities(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        GpClassifierModel::probabilities(self, rows.mapv(R::from_f64).view())
    }

    fn in_words(&self) -> Vec<String> {
        vec![format!("one process per class on Dirichlet targets with alpha {}", self.alpha())]
    }
}

fn load_gp<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(GpRegressorModel::from_stored(stored, map_of::<R>(stored)?)?))
}

fn load_gp_classifier<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(GpClassifierModel::from_stored(stored, map_of::<R>(stored)?)?))
}

/// The penalty of a ridge regression is the ratio of noise and signal variance of the process with the same mean; their
/// common factor, one for each target, is the one of the largest likelihood.
struct GpSums<'a, R: Real> {
    map: DynMap<R>,
    job: &'a Job<'a>,
}

impl<R: Real> GpSums<'_, R> {
    fn process(&self) -> Result<GpRegressor<DynMap<R>>> {
        Ok(GpRegressor::new(self.map.clone(), self.job.penalty)?.with_likeliest_level(true))
    }
}

impl<R: Real> FromSums<R> for GpSums<'_, R> {
    fn map(&self) -> &DynMap<R> {
        &self.map
    }

    fn begin(&self) -> Result<Sums<R>> {
        self.process()?.accumulator(self.job.targets, &self.job.context()?).map(Sums::All)
    }

    fn bytes(&self) -> u64 {
        Gram::<R>::bytes(self.map.output_dim(), self.job.targets)
    }

    fn finish(&self, sums: Sums<R>) -> Result<Stored> {
        let moments = sums.all()?.finish();
        self.process()?.fit_moments(moments)?.to_stored(self.job.description.to_value()?)
    }
}

fn sum_gp<'a, R: Real>(job: &'a Job<'a>, input_dim: usize) -> Result<Box<dyn FromSums<R> + 'a>> {
    Ok(Box::new(GpSums { map: job.build(input_dim)?, job }))
}

struct ClassSums<'a, R: Real> {
    process: GpClassifier<DynMap<R>>,
    job: &'a Job<'a>,
}

impl<R: Real> FromSums<R> for ClassSums<'_, R> {
    fn map(&self) -> &DynMap<R> {
        self.process.map()
    }

    fn begin(&self) -> Result<Sums<R>> {
        self.process.accumulator(self.job.class_count(), &self.job.context()?).map(Sums::Classes)
    }

    fn bytes(&self) -> u64 {
        ClassGram::<R>::bytes(self.map().input_dim(), self.map().output_dim(), self.job.class_count())
    }

    fn finish(&self, sums: Sums<R>) -> Result<Stored> {
        let Sums::Classes(gram) = sums else {
            return Err(unreadable("holds sums of all classes together".into()));
        };
        let model = self.process.fit_moments(gram.finish(self.map())?)?;
        model.to_stored(self.job.description.to_value()?, self.job.classes.clone())
    }
}

/// Classification on Dirichlet targets with `alpha`.
pub(crate) fn gp_classifier<R: Real>(job: &Job<'_>, input_dim: usize) -> Result<GpClassifier<DynMap<R>>> {
    GpClassifier::new(job.build::<R>(input_dim)?, job.penalty)?.with_classes(job.class_count())
}

fn sum_gp_classifier<'a, R: Real>(job: &'a Job<'a>, input_dim: usize) -> Result<Box<dyn FromSums<R> + 'a>> {
    Ok(Box::new(ClassSums { process: gp_classifier(job, input_dim)?, job }))
}

impl<R: Real> Predictor for SvmModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        // Two classes share one machine: what decides is written as one value per class.
        Ok(one_hot(&self.predict_classes(rows.mapv(R::from_f64).view())?, self.classes()))
    }

    fn in_words(&self) -> Vec<String> {
        let converged = self.reports().iter().filter(|r| r.converged).count();
        vec![format!("{converged} of {} machines reached their tolerance", self.reports().len())]
    }
}

fn load_svm<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(SvmModel::from_stored(stored, map_of::<R>(stored)?)?))
}

fn fit_svm<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    let map = job.build::<R>(source.input_dim())?;
    let machine = Svm::new(map, job.price())?.with_classes(job.class_count())?.with_seed(job.seed);
    job.fit(&machine, source)?.to_stored(job.description.to_value()?, job.classes.clone())
}

/// All rows and targets, for models that look at pairs of rows.
fn collected<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<(Array2<f64>, Array2<f64>)> {
    let (d, t) = (source.input_dim(), source.target_dim());
    let needed = source.len_hint().unwrap_or(0) as u64 * (d + t) as u64 * 8;
    if let Some(budget) = job.memory.filter(|budget| needed > *budget) {
        let remedy = "this kind of model keeps all rows; the others read them in blocks".into();
        return Err(Error::Budget { what: "all rows", needed, budget, remedy });
    }
    let (mut rows, mut targets, mut n) = (Vec::new(), Vec::new(), 0);
    source.for_each_block(&mut |block| {
        n += block.rows.nrows();
        rows.extend(block.rows.iter().map(|v| Real::to_f64(*v)));
        targets.extend(block.targets.iter().map(|v| Real::to_f64(*v)));
        Ok(())
    })?;
    let shaped = |values, columns| {
        Array2::from_shape_vec((n, columns), values).map_err(|e| Error::Io(std::io::Error::other(e.to_string())))
    };
    Ok((shaped(rows, d)?, shaped(targets, t)?))
}

impl Predictor for KernelSvmModel<AnyKernel> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Ok(one_hot(&self.predict_classes(rows)?, self.classes()))
    }

    fn in_words(&self) -> Vec<String> {
        let (pairs, converged) = (self.reports().count(), self.reports().filter(|r| r.converged).count());
        let vectors = bochner::words::count(self.support().len());
        vec![format!("{vectors} support vectors; {converged} of {pairs} pairs of classes reached their tolerance")]
    }
}

#[expect(clippy::extra_unused_type_parameters, reason = "called like its siblings, which depend on the precision")]
fn load_kernel_svm<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(KernelSvmModel::from_stored(stored, kernel_of(stored)?)?))
}

/// The exact kernel of a file.
fn kernel_of(stored: &Stored) -> Result<AnyKernel> {
    serde_json::from_value(stored.header.map.clone()).map_err(|e| unreadable(format!("its kernel cannot be read: {e}")))
}

/// What a model that compares rows says first.
fn compared(rows: usize, report: &SolveReport) -> Vec<String> {
    let mut words = vec![format!("new rows are compared with {} rows in the file", bochner::words::count(rows))];
    words.extend(solver_in_words(report));
    words
}

impl Predictor for KernelRidgeModel {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.predict(rows)
    }

    fn in_words(&self) -> Vec<String> {
        compared(self.rows().nrows(), self.report())
    }
}

impl Predictor for ExactOperatorRidgeModel {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.predict(rows)
    }

    fn in_words(&self) -> Vec<String> {
        compared(self.rows().nrows(), self.report())
    }
}

impl Predictor for ExactGpRegressorModel {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.predict(rows)
    }

    /// Of an observation: noise included.
    fn deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (_, variance) = self.predict_with_variance(rows)?;
        Ok(observed(variance, self.observation_variances()))
    }

    fn in_words(&self) -> Vec<String> {
        process_in_words(self.report(), self.log_marginal_likelihood())
    }
}

impl Predictor for ExactGpClassifierModel {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Predictor::probabilities(self, rows)
    }

    fn probabilities(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        ExactGpClassifierModel::probabilities(self, rows)
    }

    fn in_words(&self) -> Vec<String> {
        vec![format!("one process per class, {} in all, solved again from the rows in the file", self.classes())]
    }
}

#[expect(clippy::extra_unused_type_parameters, reason = "called like its siblings, which depend on the precision")]
fn load_exact_ridge<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(KernelRidgeModel::from_stored(stored, Arc::new(kernel_of(stored)?))?))
}

#[expect(clippy::extra_unused_type_parameters, reason = "called like its siblings, which depend on the precision")]
fn load_exact_gp<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(ExactGpRegressorModel::from_stored(stored, Arc::new(kernel_of(stored)?))?))
}

/// Classes and samples are believed as far as rows of the file and common sense go: each takes memory.
#[expect(clippy::extra_unused_type_parameters, reason = "called like its siblings, which depend on the precision")]
fn load_exact_classifier<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    let rows = stored.tensor("rows")?.shape().first().copied().unwrap_or(0);
    for (name, most) in [("classes", rows.max(2)), ("samples", 1 << 20)] {
        if stored.header.extra[name].as_u64().is_some_and(|n| n > most as u64) {
            return Err(unreadable(format!("`{name}` is {}, expected at most {most}", stored.header.extra[name])));
        }
    }
    Ok(Box::new(ExactGpClassifierModel::from_stored(stored, Arc::new(kernel_of(stored)?))?))
}

#[expect(clippy::extra_unused_type_parameters, reason = "called like its siblings, which depend on the precision")]
fn load_exact_operator<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(ExactOperatorRidgeModel::from_stored(stored)?))
}

/// The exact machine on rows and numbers of classes.
pub(crate) fn kernel_svm(
    job: &Job<'_>,
    rows: ArrayView2<'_, f64>,
    labels: ArrayView2<'_, f64>,
) -> Result<KernelSvmModel<AnyKernel>> {
    let machine = KernelSvm::new(job.description.kernel()?.clone(), job.price())?;
    job.fit(&machine, &mut InMemory::new(rows, labels)?)
}

fn fit_kernel_svm<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    let (rows, labels) = collected(job, source)?;
    kernel_svm(job, rows.view(), labels.view())?.to_stored(job.description.to_value()?, job.classes.clone())
}

impl Predictor for LocalGpModel {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.predict(rows)
    }

    /// Of an observation: noise included.
    fn deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (_, variance) = self.predict_with_variance(rows)?;
        let noise = self.noise_variance();
        let shape = (rows.nrows(), self.output_dim());
        Ok(Array2::from_shape_fn(shape, |(i, _)| (variance[i].max(0.0) + noise).sqrt()))
    }

    fn in_words(&self) -> Vec<String> {
        let count = bochner::words::count(self.centroids().nrows());
        vec![format!("a process of its own around each of {count} centres; a row is predicted by the nearest")]
    }
}

#[expect(clippy::extra_unused_type_parameters, reason = "called like its siblings, which depend on the precision")]
fn load_local<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    check_features(stored, stored.header.map["n_components"].as_u64().unwrap_or(1024) as usize)?;
    Ok(Box::new(LocalGpModel::from_stored(stored)?))
}

fn fit_local<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    let Spec::Maclaurin(spec) = job.description.spec()? else {
        let reason = "a local process has Maclaurin features".into();
        return Err(Error::Unsupported { what: "--map", reason });
    };
    let (rows, targets) = collected(job, source)?;
    let mut journal = job.journal.as_ref().map(journal::Place::open).transpose()?;
    let mut fit = |factor: f64, rows: ArrayView2<'_, f64>, targets: ArrayView2<'_, f64>| {
        let process = LocalGp::new(spec.clone(), factor * job.penalty)?.with_signal_variance(factor)?;
        let process = process.with_max_clusters(job.centroids)?;
        let mut context = job.context()?;
        if let Some(journal) = &mut journal {
            context = context.with_journal(journal);
        }
        process.fit_stream(&mut InMemory::new(rows, targets)?, &mut context)
    };
    let factor = local_level(job, rows.view(), targets.view(), &mut fit)?;
    fit(factor, rows.view(), targets.view())?.to_stored()
}

/// The factor of both variances of a local process at which rows that were held out are likeliest.
///
/// The penalty is their ratio. A marginal likelihood would be that of one centre, where targets far away count as noise.
fn local_level(
    job: &Job<'_>,
    rows: ArrayView2<'_, f64>,
    targets: ArrayView2<'_, f64>,
    fit: &mut dyn FnMut(f64, ArrayView2<'_, f64>, ArrayView2<'_, f64>) -> Result<LocalGpModel>,
) -> Result<f64> {
    let n = rows.nrows();
    let order: Vec<usize> =
        Stream::new(job.seed, Role::Split, 1).permutation(n).into_iter().map(|i| i as usize).collect();
    let (held_out, rest) = order.split_at(n / 5);
    if held_out.is_empty() || rest.len() < 2 {
        return Ok(1.0);
    }
    let part = |numbers: &[usize]| (rows.select(Axis(0), numbers), targets.select(Axis(0), numbers));
    let (near, known) = part(rest);
    let model = fit(1.0, near.view(), known.view())?;
    let (new, truth) = part(held_out);
    let (mean, variance) = model.predict_with_variance(new.view())?;
    let deviations =
        (&truth - &mean).mapv(|e| e * e) / (variance.mapv(|v| v.max(0.0)) + job.penalty).insert_axis(Axis(1));
    Ok(deviations.mean().unwrap_or(1.0).clamp(1e-12, 1e12))
}

impl<R: Real> Predictor for SviClassifierModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Predictor::probabilities(self, rows)
    }

    fn probabilities(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        SviClassifierModel::probabilities(self, rows.mapv(R::from_f64).view())
    }

    fn in_words(&self) -> Vec<String> {
        vec![format!("the logarithm of the evidence is at least {:.1}", self.bound())]
    }
}

fn load_svi<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    Ok(Box::new(SviClassifierModel::from_stored(stored, map_of::<R>(stored)?)?))
}

/// Weights of variance 1 times `s` are weights of penalty `1/s²`.
pub(crate) fn svi<R: Real>(job: &Job<'_>, input_dim: usize) -> Result<SviClassifier<DynMap<R>>> {
    let process = SviClassifier::new(job.build::<R>(input_dim)?, 1.0 / job.penalty.max(1e-12))?;
    process.with_classes(job.class_count())?.with_draws(8, job.seed)
}

/// Rows that fit into memory are shuffled: batches of a file that is sorted by class would know one class each.
fn fit_svi<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    const IN_MEMORY: u64 = 1 << 31;
    let process = svi::<R>(job, source.input_dim())?;
    let bytes = source.len_hint().map_or(u64::MAX, |n| n as u64 * (source.input_dim() as u64 + 1) * 16);
    let fit = |source: &mut dyn RowSource<R>| job.fit(&process, source);
    let model = if bytes <= job.memory.unwrap_or(IN_MEMORY) {
        let (rows, targets) = collected(job, source)?;
        let order = Stream::new(job.seed, Role::Order, 0).permutation(rows.nrows());
        let order: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
        let shuffled = |values: Array2<f64>| values.select(Axis(0), &order).mapv(R::from_f64);
        let (rows, targets) = (shuffled(rows), shuffled(targets));
        fit(&mut InMemory::new(rows.view(), targets.view())?)?
    } else {
        fit(source)?
    };
    model.to_stored(job.description.to_value()?, job.classes.clone())
}

impl<R: Real> Predictor for OperatorRidgeModel<R> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        answers(self, rows)
    }

    fn in_words(&self) -> Vec<String> {
        solver_in_words(self.report())
    }
}

fn load_operator<R: Real>(stored: &Stored) -> Result<Box<dyn Predictor>> {
    check_features(stored, stored.header.map["n_components"].as_u64().unwrap_or(1024) as usize)?;
    Ok(Box::new(OperatorRidgeModel::<R>::from_stored(stored)?))
}

struct OperatorSums<'a, R: Real> {
    ridge: OperatorRidge<R>,
    job: &'a Job<'a>,
}

impl<R: Real> FromSums<R> for OperatorSums<'_, R> {
    fn map(&self) -> &DynMap<R> {
        self.ridge.features().map()
    }

    fn begin(&self) -> Result<Sums<R>> {
        if let Some(budget) = self.job.memory.filter(|budget| self.bytes() > *budget) {
            let remedy = "conjugate gradients would fit".into();
            return Err(Error::Budget { what: "the Gram matrix", needed: self.bytes(), budget, remedy });
        }
        self.ridge.accumulator().map(Sums::All)
    }

    fn bytes(&self) -> u64 {
        Gram::<R>::bytes(self.map().output_dim(), self.job.targets)
    }

    fn finish(&self, sums: Sums<R>) -> Result<Stored> {
        self.ridge.fit_moments(sums.all()?.finish(), &self.job.context()?)?.to_stored()
    }
}

fn sum_operator<'a, R: Real>(job: &'a Job<'a>, input_dim: usize) -> Result<Box<dyn FromSums<R> + 'a>> {
    Ok(Box::new(OperatorSums { ridge: job.operator(input_dim)?, job }))
}

fn fit_operator<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    job.fit(&job.operator::<R>(source.input_dim())?, source)?.to_stored()
}
