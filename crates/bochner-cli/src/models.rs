//! The kinds of models a file may hold. A new one is an implementation of [`Fitted`], a function that fits it, and one
//! line in [`KINDS`].

use crate::pipeline::{Pipeline, Task};
use bochner::feature::{Describe, DynMap, FeatureMap, Spec};
use bochner::model::{
    Fit, GpClassifier, GpClassifierModel, GpRegressor, GpRegressorModel, Predict, Ridge, RidgeClassifier,
    RidgeClassifierModel, RidgeModel, Svm, SvmModel,
};
use bochner::persist::Stored;
use bochner::rows::RowSource;
use bochner::scalar::Real;
use bochner::solve::{SolveReport, Solver};
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2};
use serde_json::Value;

/// A model that predicts, whatever its kind and precision: rows and answers are doubles.
pub(crate) trait Fitted: Send + Sync {
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
    pub(crate) spec: &'a Spec,
    pub(crate) penalty: f64,
    /// Names of the classes of a classification.
    pub(crate) classes: Option<Vec<Value>>,
    pub(crate) memory: Option<u64>,
    pub(crate) solver: Solver,
}

impl Job<'_> {
    pub(crate) fn map(&self) -> Result<Value> {
        serde_json::to_value(self.spec)
            .map_err(|e| Error::Format { what: "description of the map", detail: e.to_string() })
    }

    /// Ridge regression as asked for.
    pub(crate) fn ridge<R: Real>(&self, input_dim: usize) -> Result<Ridge<DynMap<R>>> {
        let ridge = Ridge::new(self.spec.build::<R>(input_dim)?, self.penalty)?.with_solver(self.solver);
        match self.memory {
            Some(bytes) => ridge.with_memory_budget(bytes),
            None => Ok(ridge),
        }
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.as_ref().map_or(0, Vec::len)
    }
}

/// A source in either precision.
pub(crate) enum Rows<'a> {
    Single(&'a mut dyn RowSource<f32>),
    Double(&'a mut dyn RowSource<f64>),
}

/// A kind of model.
pub(crate) struct Kind {
    /// As model files write it.
    pub(crate) name: &'static str,
    /// As `--model` writes it.
    pub(crate) option: Family,
    pub(crate) task: Task,
    /// As people say it.
    pub(crate) words: &'static str,
    /// Whether it is fitted from sums over rows, so that a long fit can be checkpointed.
    pub(crate) from_sums: bool,
    load: fn(&Stored) -> Result<Box<dyn Fitted>>,
    pub(crate) fit: fn(&Job<'_>, Rows<'_>) -> Result<Stored>,
}

/// Families of models: what `--model` chooses, whatever the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
pub(crate) enum Family {
    /// Ridge regression, or classification by ridge regression of each class against the rest
    Ridge,
    /// A support vector machine on the features
    Svm,
    /// A Gaussian process: standard deviations for numbers, probabilities for classes
    Gp,
}

macro_rules! kinds {
    ($($name:literal: $option:ident $task:ident $words:literal $from_sums:literal $load:ident $fit:ident;)*) => {
        &[$(Kind {
            name: $name,
            option: Family::$option,
            task: Task::$task,
            words: $words,
            from_sums: $from_sums,
            load: |stored| match stored.header.dtype.as_str() {
                "f32" => $load::<f32>(stored),
                "f64" => $load::<f64>(stored),
                other => Err(unreadable(format!("numbers of type {other}"))),
            },
            fit: |job, rows| match rows {
                Rows::Single(source) => $fit::<f32>(job, source),
                Rows::Double(source) => $fit::<f64>(job, source),
            },
        },)*]
    };
}

/// All kinds.
pub(crate) const KINDS: &[Kind] = kinds! {
    "ridge": Ridge Regression "ridge regression" true load_ridge fit_ridge;
    "ridge_classifier": Ridge Classification "classification by ridge regression" true load_classifier fit_classifier;
    "svm": Svm Classification "support vector machine" false load_svm fit_svm;
    "gp_regressor": Gp Regression "Gaussian process regression" false load_gp fit_gp;
    "gp_classifier": Gp Classification "Gaussian process classification" false load_gp_classifier fit_gp_classifier;
};

fn unreadable(detail: String) -> Error {
    Error::Format { what: "model file", detail }
}

impl Kind {
    pub(crate) fn find(family: Family, task: Task) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.option == family && kind.task == task)
    }

    pub(crate) fn of(stored: &Stored) -> Result<&'static Kind> {
        let name = &stored.header.kind;
        KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
            unreadable(format!("holds a `{name}`, which is not a model that predicts ({})", known.join(", ")))
        })
    }
}

/// A model file, ready to predict.
pub(crate) struct Model {
    pub(crate) kind: &'static Kind,
    pub(crate) stored: Stored,
    /// `None` for a model that was saved without one, by another door than the command line.
    pub(crate) pipeline: Option<Pipeline>,
    pub(crate) fitted: Box<dyn Fitted>,
}

impl Model {
    pub(crate) fn new(stored: Stored) -> Result<Self> {
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
        let fitted = (kind.load)(&stored)?;
        Ok(Model { kind, stored, pipeline, fitted })
    }

    /// The description of the map.
    pub(crate) fn spec(&self) -> Result<Spec> {
        spec_of(&self.stored)
    }

    /// Names of the classes as text.
    pub(crate) fn class_names(&self) -> Vec<String> {
        self.stored.header.classes.iter().flatten().map(plain).collect()
    }
}

/// A label as a file would show it.
pub(crate) fn plain(label: &Value) -> String {
    match label {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn spec_of(stored: &Stored) -> Result<Spec> {
    serde_json::from_value(stored.header.map.clone()).map_err(|e| unreadable(format!("its map cannot be read: {e}")))
}

fn map_of<R: Real>(stored: &Stored) -> Result<DynMap<R>> {
    spec_of(stored)?.build::<R>(stored.header.input_dim)
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

fn answers<M: Predict>(model: &M, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
    Ok(model.predict(rows.mapv(M::Real::from_f64).view())?.mapv(Real::to_f64))
}

impl<R: Real> Fitted for RidgeModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        answers(self, rows)
    }

    fn in_words(&self) -> Vec<String> {
        solver_in_words(self.report())
    }
}

impl<R: Real> Fitted for RidgeClassifierModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        answers(self.regression(), rows)
    }

    fn in_words(&self) -> Vec<String> {
        solver_in_words(self.regression().report())
    }
}

fn load_ridge<R: Real>(stored: &Stored) -> Result<Box<dyn Fitted>> {
    Ok(Box::new(RidgeModel::from_stored(stored, map_of::<R>(stored)?)?))
}

fn load_classifier<R: Real>(stored: &Stored) -> Result<Box<dyn Fitted>> {
    Ok(Box::new(RidgeClassifierModel::from_stored(stored, map_of::<R>(stored)?)?))
}

fn fit_ridge<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    job.ridge::<R>(source.input_dim())?.fit(source)?.to_stored(job.map()?)
}

fn fit_classifier<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    let ridge = job.ridge::<R>(source.input_dim())?;
    let model = RidgeClassifier::new(ridge).with_classes(job.class_count())?.fit(source)?;
    model.to_stored(job.map()?, job.classes.clone())
}

impl<R: Real> Fitted for GpRegressorModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        answers(self, rows)
    }

    /// Of an observation: noise included.
    fn deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let (_, variance) = self.predict_with_variance(rows.mapv(R::from_f64).view())?;
        let mut variance = variance.mapv(Real::to_f64);
        for (mut column, noise) in variance.columns_mut().into_iter().zip(self.observation_variances()) {
            column.mapv_inplace(|v| (v.max(0.0) + noise).sqrt());
        }
        Ok(variance)
    }

    fn in_words(&self) -> Vec<String> {
        let mut words = solver_in_words(self.report());
        words.push(format!("the logarithm of the marginal likelihood is {:.1}", self.log_marginal_likelihood()));
        words
    }
}

impl<R: Real> Fitted for GpClassifierModel<DynMap<R>> {
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

fn load_gp<R: Real>(stored: &Stored) -> Result<Box<dyn Fitted>> {
    Ok(Box::new(GpRegressorModel::from_stored(stored, map_of::<R>(stored)?)?))
}

fn load_gp_classifier<R: Real>(stored: &Stored) -> Result<Box<dyn Fitted>> {
    Ok(Box::new(GpClassifierModel::from_stored(stored, map_of::<R>(stored)?)?))
}

/// The penalty of a ridge regression is the ratio of noise and signal variance of the process with the same mean; their
/// common factor `s²` is the one of the largest likelihood.
fn fit_gp<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    let map = job.spec.build::<R>(source.input_dim())?;
    let process = |factor: f64| {
        let process = GpRegressor::new(map.clone(), factor * job.penalty)?.with_signal_variance(factor)?;
        job.memory.map_or(Ok(process.clone()), |bytes| process.clone().with_memory_budget(bytes))
    };
    let outputs = source.target_dim();
    let mut gram = process(1.0)?.accumulator(outputs)?;
    source.for_each_block(&mut |block| gram.push_rows(&map, block))?;
    let observations = gram.count() as f64 * outputs as f64;
    let moments = gram.finish();
    // ln p at s² = 1 and 2 differ by -Q/4 + (n/2) ln 2, and the largest likelihood has s² = Q/n.
    let likelihood =
        |factor: f64| Ok::<_, Error>(process(factor)?.fit_moments(moments.clone())?.log_marginal_likelihood());
    let quadratic = 2.0 * observations * std::f64::consts::LN_2 - 4.0 * (likelihood(1.0)? - likelihood(2.0)?);
    let factor = (quadratic / observations).clamp(1e-12, 1e12);
    process(factor)?.fit_moments(moments.clone())?.to_stored(job.map()?)
}

fn fit_gp_classifier<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    // Milios et al. 2018 find this value good on most data; the penalty of a ridge regression has no counterpart here.
    const ALPHA: f64 = 0.01;
    let map = job.spec.build::<R>(source.input_dim())?;
    let mut process = GpClassifier::new(map, ALPHA)?.with_classes(job.class_count())?;
    if let Some(bytes) = job.memory {
        process = process.with_memory_budget(bytes)?;
    }
    process.fit(source)?.to_stored(job.map()?, job.classes.clone())
}

impl<R: Real> Fitted for SvmModel<DynMap<R>> {
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        // Two classes share one machine: what decides is written as one value per class.
        let classes = self.predict_classes(rows.mapv(R::from_f64).view())?;
        Ok(Array2::from_shape_fn((classes.len(), self.classes()), |(i, c)| if classes[i] == c { 1.0 } else { 0.0 }))
    }

    fn in_words(&self) -> Vec<String> {
        let converged = self.reports().iter().filter(|r| r.converged).count();
        vec![format!("{converged} of {} machines reached their tolerance", self.reports().len())]
    }
}

fn load_svm<R: Real>(stored: &Stored) -> Result<Box<dyn Fitted>> {
    Ok(Box::new(SvmModel::from_stored(stored, map_of::<R>(stored)?)?))
}

/// The price of a violated margin that weighs the coefficients as the penalty of the ridge regression does.
fn fit_svm<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Stored> {
    let map = job.spec.build::<R>(source.input_dim())?;
    let mut machine = Svm::new(map, 0.5 / job.penalty.max(1e-12))?.with_classes(job.class_count())?;
    if let Some(bytes) = job.memory {
        machine = machine.with_memory_budget(bytes)?;
    }
    machine.fit(source)?.to_stored(job.map()?, job.classes.clone())
}

/// Number of features of a map.
pub(crate) fn features_of(spec: &Spec, input_dim: usize) -> Result<usize> {
    Ok(spec.build::<f32>(input_dim)?.output_dim())
}
