//! How the kinds of models that [`fit`](crate::fit) knows are fitted, from sums over rows or from the rows themselves.

use crate::journal;
use bochner::accumulate::{ClassGram, Gram};
use bochner::catalogue::{self, ModelEntry};
use bochner::feature::{Describe, Description, DynMap, FeatureMap, Spec};
use bochner::kernel::AnyKernel;
use bochner::model::{
    Fit, Fitted, GpClassifier, GpRegressor, KernelSvm, KernelSvmModel, LocalGp, LocalGpModel, OperatorRidge,
    OperatorSolver, Ridge, RidgeClassifierModel, SviClassifier, Svm,
};
use bochner::persist::Label;
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{Coded, Coding, InMemory, RowBlock, RowSource};
use bochner::scalar::Real;
use bochner::solve::Solver;
use bochner::{Context, Error, Model, Result};
use ndarray::{Array2, ArrayView2, Axis};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// What a fit is asked to do.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) description: &'a Description,
    /// What weighs coefficients; the `alpha` of a Dirichlet transform.
    pub(crate) penalty: f64,
    /// Names of the classes of a classification.
    pub(crate) classes: Option<Vec<Label>>,
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

    /// A fitted model with the names of its classes.
    fn named(&self, fitted: impl Fitted) -> Result<Model> {
        let model = Model::from(fitted);
        self.classes.clone().map_or(Ok(model.clone()), |names| model.with_classes(names))
    }

    /// Refuses a budget in which penalties cannot be compared: all of them are fitted from one Gram matrix.
    ///
    /// To be asked with all the features of a fit, before fewer are tried: a budget that would do for those is no advice.
    pub(crate) fn check_memory<R: Real>(&self, input_dim: usize) -> Result<()> {
        if let (Some(_), Description::Map(_)) = (self.memory, self.description) {
            self.ridge::<R>(input_dim)?.with_solver(Solver::Cholesky).bytes(None, self.outputs(), &self.context()?)?;
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

    /// Classification on Dirichlet targets with `alpha`.
    pub(crate) fn gp_classifier<R: Real>(&self, input_dim: usize) -> Result<GpClassifier<DynMap<R>>> {
        GpClassifier::new(self.build::<R>(input_dim)?, self.penalty)?.with_classes(self.class_count())
    }

    /// The exact machine on rows and numbers of classes.
    pub(crate) fn kernel_svm(
        &self,
        rows: ArrayView2<'_, f64>,
        labels: ArrayView2<'_, f64>,
    ) -> Result<KernelSvmModel<AnyKernel>> {
        let machine = KernelSvm::new(self.description.kernel()?.clone(), self.price())?;
        self.fit(&machine, &mut InMemory::new(rows, labels)?)
    }

    /// Weights of variance 1 times `s` are weights of penalty `1/s²`.
    pub(crate) fn svi<R: Real>(&self, input_dim: usize) -> Result<SviClassifier<DynMap<R>>> {
        let process = SviClassifier::new(self.build::<R>(input_dim)?, 1.0 / self.penalty.max(1e-12))?;
        process.with_classes(self.class_count())?.with_draws(8, self.seed)
    }

    /// The price of a violated margin that weighs the coefficients as the penalty of a ridge regression does.
    fn price(&self) -> f64 {
        0.5 / self.penalty.max(1e-12)
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.as_ref().map_or(0, Vec::len)
    }

    /// Numbers that a linear model has per row.
    fn outputs(&self) -> usize {
        if self.class_count() == 0 { self.targets } else { self.class_count() }
    }

    /// All rows and targets, for models that look at pairs of rows.
    fn collected<R: Real>(&self, source: &mut dyn RowSource<R>) -> Result<(Array2<f64>, Array2<f64>)> {
        let (d, t) = (source.input_dim(), source.target_dim());
        let needed = source.len_hint().unwrap_or(0) as u64 * (d + t) as u64 * 8;
        if let Some(budget) = self.memory.filter(|budget| needed > *budget) {
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

    pub(crate) fn save(&self, path: &Path, note: &impl Serialize) -> Result<()> {
        match self {
            Sums::All(gram) => gram.save_with(path, note),
            Sums::Classes(gram) => gram.save_with(path, note),
        }
    }

    /// Sums and note of a file.
    pub(crate) fn load<N: DeserializeOwned>(path: &Path, by_class: bool) -> Result<(Self, N)> {
        Ok(match by_class {
            false => Gram::load_with(path).map(|(gram, note)| (Sums::All(gram), note))?,
            true => ClassGram::load_with(path).map(|(gram, note)| (Sums::Classes(gram), note))?,
        })
    }

    fn all(self) -> Result<Gram<R>> {
        match self {
            Sums::All(gram) => Ok(gram),
            Sums::Classes(_) => Err(other_sums()),
        }
    }
}

fn other_sums() -> Error {
    Error::Format { what: "checkpoint", detail: "holds sums of another kind of model".into() }
}

/// A model that is fitted from sums over rows, so that a long fit can be checkpointed.
#[derive(Debug)]
pub(crate) struct FromSums<'a, R: Real> {
    job: &'a Job<'a>,
    map: DynMap<R>,
    method: Method<R>,
}

/// What is made of sums.
#[derive(Debug)]
enum Method<R: Real> {
    /// Of targets as they are or, where there are classes, of each against the rest.
    Ridge(Ridge<DynMap<R>>),
    /// The penalty of a ridge regression is the ratio of noise and signal variance of the process with the same mean; their
    /// common factor, one for each target, is the one of the largest likelihood.
    Process(GpRegressor<DynMap<R>>),
    Classes(GpClassifier<DynMap<R>>),
    Operator(OperatorRidge<R>),
}

impl<'a, R: Real> FromSums<'a, R> {
    /// The way to fit a model of this kind; `None` where there is none.
    pub(crate) fn new(kind: &ModelEntry, job: &'a Job<'a>, input_dim: usize) -> Result<Option<Self>> {
        let method = match kind.entry.name {
            "ridge" | "ridge_classifier" => Method::Ridge(job.ridge(input_dim)?),
            "gp_regressor" => {
                Method::Process(GpRegressor::new(job.build::<R>(input_dim)?, job.penalty)?.with_likeliest_level(true))
            }
            "gp_classifier" => Method::Classes(job.gp_classifier(input_dim)?),
            "operator_ridge" => Method::Operator(job.operator(input_dim)?),
            _ => return Ok(None),
        };
        let map = match &method {
            Method::Ridge(ridge) => ridge.map(),
            Method::Process(process) => process.map(),
            Method::Classes(process) => process.map(),
            Method::Operator(ridge) => ridge.features().map(),
        };
        Ok(Some(FromSums { job, map: map.clone(), method }))
    }

    /// Sums over no rows.
    pub(crate) fn begin(&self) -> Result<Sums<R>> {
        let context = self.job.context()?;
        match &self.method {
            Method::Ridge(ridge) => ridge.accumulator(self.job.outputs(), &context).map(Sums::All),
            Method::Process(process) => process.accumulator(self.job.targets, &context).map(Sums::All),
            Method::Classes(process) => process.accumulator(self.job.class_count(), &context).map(Sums::Classes),
            Method::Operator(ridge) => {
                if let Some(budget) = self.job.memory.filter(|budget| self.bytes() > *budget) {
                    let remedy = "conjugate gradients would fit".into();
                    return Err(Error::Budget { what: "the Gram matrix", needed: self.bytes(), budget, remedy });
                }
                ridge.accumulator().map(Sums::All)
            }
        }
    }

    /// Bytes of the sums.
    pub(crate) fn bytes(&self) -> u64 {
        let (d, features) = (self.map.input_dim(), self.map.output_dim());
        match &self.method {
            Method::Classes(_) => ClassGram::<R>::bytes(d, features, self.job.class_count()),
            Method::Ridge(_) => Gram::<R>::bytes(features, self.job.outputs()),
            _ => Gram::<R>::bytes(features, self.job.targets),
        }
    }

    /// The model.
    pub(crate) fn finish(&self, sums: Sums<R>) -> Result<Model> {
        match &self.method {
            Method::Ridge(ridge) => {
                let model = ridge.fit_moments(sums.all()?.finish())?;
                match self.job.classes {
                    None => self.job.named(model),
                    Some(_) => self.job.named(RidgeClassifierModel::from_regression(model)),
                }
            }
            Method::Process(process) => self.job.named(process.fit_moments(sums.all()?.finish())?),
            Method::Classes(process) => match sums {
                Sums::Classes(gram) => self.job.named(process.fit_moments(gram.finish(&self.map)?)?),
                Sums::All(_) => Err(other_sums()),
            },
            Method::Operator(ridge) => self.job.named(ridge.fit_moments(sums.all()?.finish(), &self.job.context()?)?),
        }
    }

    /// Hands out blocks of rows with the targets that the sums want.
    pub(crate) fn each(
        &self,
        source: &mut dyn RowSource<R>,
        visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>,
    ) -> Result<()> {
        match (&self.method, self.job.class_count()) {
            (Method::Ridge(_), classes @ 1..) => {
                Coded::new(source, classes, Coding::OneAgainstRest)?.for_each_block(visit)
            }
            _ => source.for_each_block(visit),
        }
    }

    /// Adds rows.
    pub(crate) fn push(&self, sums: &mut Sums<R>, block: RowBlock<'_, R>) -> Result<()> {
        match sums {
            Sums::All(gram) => gram.push_rows(&self.map, block),
            Sums::Classes(gram) => gram.push_rows(&self.map, block),
        }
    }
}

/// What is kept of the rows while a kind of model is fitted from sums; `None` where it is not.
pub(crate) fn sums_by_class(kind: &ModelEntry) -> Option<bool> {
    match kind.entry.name {
        "gp_classifier" => Some(true),
        "ridge" | "ridge_classifier" | "gp_regressor" | "operator_ridge" => Some(false),
        _ => None,
    }
}

type FromRows<R> = fn(&Job<'_>, &mut dyn RowSource<R>) -> Result<Model>;

/// The way to fit a model of this kind from rows; `None` where there is none.
pub(crate) fn from_rows<R: Real>(kind: &ModelEntry) -> Option<FromRows<R>> {
    Some(match kind.entry.name {
        "ridge" => |job, source| job.named(job.fit(&job.ridge::<R>(source.input_dim())?, source)?),
        "ridge_classifier" => |job, source| {
            let mut source = Coded::new(source, job.class_count(), Coding::OneAgainstRest)?;
            let model = job.fit(&job.ridge::<R>(source.input_dim())?, &mut source)?;
            job.named(RidgeClassifierModel::from_regression(model))
        },
        "operator_ridge" => |job, source| job.named(job.fit(&job.operator::<R>(source.input_dim())?, source)?),
        "svm" => |job, source| {
            let machine = Svm::new(job.build::<R>(source.input_dim())?, job.price())?;
            job.named(job.fit(&machine.with_classes(job.class_count())?.with_seed(job.seed), source)?)
        },
        "kernel_svm" => |job, source| {
            let (rows, labels) = job.collected(source)?;
            job.named(job.kernel_svm(rows.view(), labels.view())?)
        },
        "local_gp" => fit_local,
        "svi_classifier" => fit_svi,
        _ => return None,
    })
}

/// The kinds of models that [`fit`](crate::fit()) makes.
pub fn fitted_kinds() -> impl Iterator<Item = &'static ModelEntry> {
    catalogue::models().filter(|kind| sums_by_class(kind).is_some() || from_rows::<f64>(kind).is_some())
}

fn fit_local<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Model> {
    let Spec::Maclaurin(spec) = job.description.spec()? else {
        let reason = "a local process has Maclaurin features".into();
        return Err(Error::Unsupported { what: "--map", reason });
    };
    let (rows, targets) = job.collected(source)?;
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
    job.named(fit(factor, rows.view(), targets.view())?)
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

/// Rows that fit into memory are shuffled: batches of a file that is sorted by class would know one class each.
fn fit_svi<R: Real>(job: &Job<'_>, source: &mut dyn RowSource<R>) -> Result<Model> {
    const IN_MEMORY: u64 = 1 << 31;
    let process = job.svi::<R>(source.input_dim())?;
    let bytes = source.len_hint().map_or(u64::MAX, |n| n as u64 * (source.input_dim() as u64 + 1) * 16);
    if bytes > job.memory.unwrap_or(IN_MEMORY) {
        return job.named(job.fit(&process, source)?);
    }
    let (rows, targets) = job.collected(source)?;
    let order = Stream::new(job.seed, Role::Order, 0).permutation(rows.nrows());
    let order: Vec<usize> = order.into_iter().map(|i| i as usize).collect();
    let shuffled = |values: Array2<f64>| values.select(Axis(0), &order).mapv(R::from_f64);
    let (rows, targets) = (shuffled(rows), shuffled(targets));
    job.named(job.fit(&process, &mut InMemory::new(rows.view(), targets.view())?)?)
}
