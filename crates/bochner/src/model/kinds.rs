//! What every door knows of a kind of model, and what kinds share: their answers and their files.
//!
//! ```
//! use bochner::model::ModelEntry;
//! let ridge = ModelEntry::named("ridge")?;
//! assert!(!ridge.answers.deviations && ridge.entry.parameter("alpha").is_ok());
//! # Ok::<(), bochner::Error>(())
//! ```

/// What models on a map `M` say of it.
macro_rules! on_map {
    ($kind:ident) => {
        fn kind(&self) -> &'static str {
            $kind
        }

        fn description(&self) -> Option<crate::feature::Description> {
            self.map().description().cloned().map(crate::feature::Description::Map)
        }

        fn precision(&self) -> &'static str {
            <M::Real as crate::scalar::Real>::NAME
        }
    };
}

/// What models with an exact kernel say of it.
macro_rules! on_kernel {
    ($kind:ident) => {
        fn kind(&self) -> &'static str {
            $kind
        }

        fn description(&self) -> Option<crate::feature::Description> {
            self.kernel().description().map(crate::feature::Description::Kernel)
        }
    };
}

/// One number per target.
macro_rules! regresses {
    ($values:path) => {
        fn dims(&self) -> (usize, usize) {
            (crate::model::Predict::input_dim(self), crate::model::Predict::output_dim(self))
        }

        fn values(&self, rows: ndarray::ArrayView2<'_, f64>) -> crate::error::Result<ndarray::Array2<f64>> {
            $values(self, rows)
        }
    };
}

/// One number per class.
macro_rules! classifies {
    () => {
        fn dims(&self) -> (usize, usize) {
            (crate::model::Predict::input_dim(self), self.classes())
        }

        fn class_count(&self) -> Option<usize> {
            Some(self.classes())
        }
    };
}

/// The same, where the numbers are probabilities.
macro_rules! gives_probabilities {
    ($self:ident, $rows:ident => $values:expr) => {
        $crate::model::kinds::classifies!();

        fn values(&$self, $rows: ndarray::ArrayView2<'_, f64>) -> crate::error::Result<ndarray::Array2<f64>> {
            $values
        }

        fn is_probabilistic(&self) -> bool {
            true
        }
    };
}

/// What [`Predict`] is for a classifier: numbers of classes, in one column.
macro_rules! predicts_classes {
    ($self:ident: $real:ty, inputs $inputs:expr, $rows:ident => $classes:expr) => {
        type Real = $real;

        fn input_dim(&$self) -> usize {
            $inputs
        }

        fn output_dim(&self) -> usize {
            1
        }

        fn predict_into(
            &$self,
            $rows: ndarray::ArrayView2<'_, $real>,
            out: ndarray::ArrayViewMut2<'_, $real>,
        ) -> crate::error::Result<()> {
            $crate::model::write_classes($rows.nrows(), out, || $classes)
        }
    };
}

pub(crate) use {classifies, gives_probabilities, on_kernel, on_map, predicts_classes, regresses};

pub use super::exact::{ExactGpClassifierSpec, ExactGpRegressorSpec, KernelRidgeSpec};
pub use super::gp_classification::{GpClassifierSpec, Inference};
pub use super::gp_regression::{GpRegressorSpec, LengthScaleSearch};
pub use super::kernel_svm::KernelSvmSpec;
pub use super::local_gp::LocalGpSpec;
pub use super::operator_exact::ExactOperatorRidgeSpec;
pub use super::operator_gp::OperatorGpSpec;
pub use super::operator_ridge::{OperatorRidgeClassifierSpec, OperatorRidgeSpec, OperatorSolverName};
pub use super::ridge::{RidgeSolverName, RidgeSpec};
pub use super::svm::SvmSpec;

use super::request::{Describing, FitRequest, LossesFn, Needs, SumsFn};
use super::{Fitted, KINDS, Predict};
use crate::error::{Error, Result};
use crate::parameter::{Entry, Parameter, Sort, words};
use crate::persist::{Stored, malformed};
use crate::scalar::Real;
use crate::solve::SolveReport;
use crate::words::count;
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

words! {
    /// What a model learns.
    pub enum Task {
        /// Numbers.
        Regression = "regression",
        /// Which of several classes a row belongs to.
        Classification = "classification",
    }
}

/// What a kind of model can answer besides values or classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    /// Standard deviations.
    pub deviations: bool,
    /// Probabilities of the classes.
    pub probabilities: bool,
}

impl Answers {
    pub(crate) const VALUES: Answers = Answers { deviations: false, probabilities: false };
    pub(crate) const DEVIATIONS: Answers = Answers { deviations: true, probabilities: false };
    pub(crate) const PROBABILITIES: Answers = Answers { deviations: false, probabilities: true };
}

/// What every door knows of a kind of model.
#[derive(Debug, Clone, Copy)]
pub struct ModelEntry {
    /// Its name in files, its words, and what it can be told.
    pub entry: Entry,
    /// What `--model` says, whatever the task; a kind of its own for exact models.
    pub option: &'static str,
    /// What it learns.
    pub task: Task,
    /// What it can answer.
    pub answers: Answers,
    /// What it is fitted on.
    pub needs: Needs,
    /// The one number that a search finds for it; `None` for kinds that `bochner fit` does not make.
    pub penalty: Option<Penalty>,
    /// Whether it learns from rows in the order of the source, so that sorted ones should be shuffled first.
    pub ordered: bool,
    pub(crate) load: Loader,
    pub(crate) describe: Describing,
    pub(crate) sums: Option<(SumsFn<f32>, SumsFn<f64>)>,
    pub(crate) losses: Option<(LossesFn<f32>, LossesFn<f64>)>,
}

/// The one number that a search finds for a kind of model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalty {
    /// What people call it.
    pub word: &'static str,
    /// Values to try, the smoothest function first; empty where those of a ridge regression serve.
    pub tried: &'static [f64],
    /// What it is where too few rows are there to try any of them.
    pub otherwise: f64,
}

impl Penalty {
    /// What weighs the coefficients of a ridge regression.
    pub(crate) const RIDGE: Penalty = Penalty { word: "penalty", tried: &[], otherwise: 0.1 };
}

type Loader = fn(&Stored) -> Result<Arc<dyn Fitted>>;

impl ModelEntry {
    /// A regression on features that answers values.
    pub(super) const fn new(
        name: &'static str,
        title: &'static str,
        about: &'static str,
        option: &'static str,
        parameters: &'static [Parameter],
        load: Loader,
        describe: Describing,
    ) -> Self {
        ModelEntry {
            entry: Entry::new(Sort::Model, name, title, about, parameters),
            option,
            task: Task::Regression,
            answers: Answers::VALUES,
            needs: Needs::Map,
            penalty: None,
            ordered: false,
            load,
            describe,
            sums: None,
            losses: None,
        }
    }

    pub(super) const fn classification(self) -> Self {
        ModelEntry { task: Task::Classification, ..self }
    }

    pub(super) const fn answering(self, answers: Answers) -> Self {
        ModelEntry { answers, ..self }
    }

    pub(super) const fn on(self, needs: Needs) -> Self {
        ModelEntry { needs, ..self }
    }

    /// Made by `bochner fit`, which finds one number for it.
    pub(super) const fn penalized(self, penalty: Penalty) -> Self {
        ModelEntry { penalty: Some(penalty), ..self }
    }

    pub(super) const fn summed(self, single: SumsFn<f32>, double: SumsFn<f64>) -> Self {
        ModelEntry { sums: Some((single, double)), ..self }
    }

    pub(super) const fn compared(self, single: LossesFn<f32>, double: LossesFn<f64>) -> Self {
        ModelEntry { losses: Some((single, double)), ..self }
    }

    /// Whether all its arithmetic is in double precision.
    pub fn only_double(&self) -> bool {
        matches!(self.describe, Describing::InDouble(_))
    }

    /// Whether it is solved from sums over rows, which may be saved and merged.
    pub fn has_sums(&self) -> bool {
        self.sums.is_some()
    }

    /// What [`FitRequest::losses`] are, for people.
    pub fn loss_in_words(&self) -> &'static str {
        match self.task {
            _ if self.answers.probabilities => "mean negative log likelihood",
            Task::Classification if self.losses.is_none() => "share of wrong classes",
            _ => "mean squared error",
        }
    }

    /// A model of this kind, with the parameters that it has by default.
    pub fn request(&'static self) -> FitRequest {
        FitRequest::new(self)
    }

    /// The kind that files call `name`.
    ///
    /// # Errors
    /// No such kind, with all there are.
    pub fn named(name: &str) -> Result<&'static ModelEntry> {
        KINDS.iter().find(|kind| kind.entry.is_called(name)).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|kind| kind.entry.name).collect();
            malformed(format!("holds a `{name}`, which is not a model that predicts ({})", known.join(", ")))
        })
    }

    /// The kind that `--model` means for a task.
    pub fn find(option: &str, task: Task) -> Option<&'static ModelEntry> {
        let option = option.replace('_', "-");
        KINDS.iter().find(|kind| kind.option == option && kind.task == task)
    }

    /// Titles of the kinds that have an answer.
    fn that(has: impl Fn(&Answers) -> bool) -> String {
        let titles: Vec<&str> = KINDS.iter().filter(|kind| has(&kind.answers)).map(|kind| kind.entry.title).collect();
        titles.join(", ")
    }

    pub(crate) fn without_deviations(&self) -> Error {
        self.without("standard deviations", &Self::that(|answers| answers.deviations))
    }

    pub(crate) fn without_probabilities(&self) -> Error {
        self.without("probabilities", &Self::that(|answers| answers.probabilities))
    }

    fn without(&self, what: &'static str, known: &str) -> Error {
        Error::Unsupported { what, reason: format!("{} has none; these models have: {known}", self.entry.title) }
    }
}

/// A model that a file can be read as.
pub(crate) trait Load: Fitted + Sized {
    fn load(stored: &Stored) -> Result<Self>;
}

/// A model in the precision of the file.
pub(super) fn load<S: Load, D: Load>(stored: &Stored) -> Result<Arc<dyn Fitted>> {
    match stored.header.dtype.as_str() {
        "f32" => Ok(Arc::new(S::load(stored)?)),
        "f64" => Ok(Arc::new(D::load(stored)?)),
        other => Err(malformed(format!("numbers of type {other}"))),
    }
}

/// The same of a model that may have complex features.
pub(super) fn load_complex<S: Load, D: Load, CS: Load, CD: Load>(stored: &Stored) -> Result<Arc<dyn Fitted>> {
    if stored.header.part("complex")? { load::<CS, CD>(stored) } else { load::<S, D>(stored) }
}

pub(super) fn answers<M: Predict>(model: &M, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
    Ok(model.predict(rows.mapv(M::Real::from_f64).view())?.mapv(Real::to_f64))
}

/// Sentences about a linear system that was solved.
pub(super) fn solver_in_words(report: &SolveReport) -> Vec<String> {
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

pub(super) fn process_in_words(report: &SolveReport, log_marginal_likelihood: f64) -> Vec<String> {
    let mut words = solver_in_words(report);
    words.push(format!("the logarithm of the marginal likelihood is {log_marginal_likelihood:.1}"));
    words
}

/// What a model that compares rows says first.
pub(super) fn compared(rows: usize, report: &SolveReport) -> Vec<String> {
    let mut words = vec![format!("new rows are compared with {} rows in the file", count(rows))];
    words.extend(solver_in_words(report));
    words
}
