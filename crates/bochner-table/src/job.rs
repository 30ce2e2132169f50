//! What a fit is asked to do, in the words of the core: any kind of model that is told a penalty.

use crate::journal;
use bochner::catalogue::{self, ModelEntry};
use bochner::feature::Description;
use bochner::model::{Basis, FitRequest, Sums};
use bochner::persist::{Label, Stored};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{InMemory, RowSource};
use bochner::scalar::Real;
use bochner::{Context, Error, Model, Result};
use ndarray::{Array2, Axis};

/// What a fit is asked to do.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) kind: &'static ModelEntry,
    pub(crate) description: &'a Description,
    /// The one number that was found for this kind of model.
    pub(crate) penalty: f64,
    /// Names of the classes of a classification.
    pub(crate) classes: Option<Vec<Label>>,
    /// Columns to predict.
    pub(crate) targets: usize,
    pub(crate) memory: Option<u64>,
    /// The solver asked for, where there is a choice.
    pub(crate) solver: Option<&'static str>,
    /// Most centroids, of a kind that has some.
    pub(crate) centroids: usize,
    /// Where passes over rows are recorded.
    pub(crate) journal: Option<journal::Place>,
    pub(crate) seed: Seed,
}

/// Bytes of rows that are shuffled in memory where nobody says how many there may be.
const IN_MEMORY: u64 = 1 << 31;

impl Job<'_> {
    pub(crate) fn request(&self) -> Result<FitRequest> {
        let mut request = self.kind.request().with_penalty(self.penalty).with_seed(self.seed);
        if let Some(classes) = &self.classes {
            request = request.with_classes(classes.len());
        }
        if let Some(solver) = self.solver {
            if !self.kind.entry.parameter("solver")?.domain.words().contains(&solver) {
                let reason = format!("{} has none; use --solver cholesky, cg or sgd", self.kind.entry.title);
                return Err(Error::Unsupported { what: "--solver dual", reason });
            }
            request = request.with("solver", solver)?;
        }
        match self.kind.entry.parameter("max_clusters") {
            Ok(most) => request.with(most.name, self.centroids),
            Err(_) => Ok(request),
        }
    }

    pub(crate) fn basis<R: Real>(&self) -> Basis<R> {
        Basis::Described(self.description.clone())
    }

    /// The memory that was asked for.
    pub(crate) fn context<'a>(&self) -> Result<Context<'a>> {
        self.memory.map_or(Ok(Context::default()), |bytes| Context::default().with_memory_budget(bytes))
    }

    /// Sums over no rows, or those of a checkpoint.
    pub(crate) fn sums<R: Real>(&self, input_dim: usize, stored: Option<&Stored>) -> Result<Sums<R>> {
        self.request()?.sums(&self.basis(), (input_dim, self.targets), stored, &self.context()?)
    }

    /// The model of sums over rows.
    pub(crate) fn finish<R: Real>(&self, sums: Sums<R>) -> Result<Model> {
        self.named(sums.finish(&self.request()?, &self.basis(), &self.context()?)?)
    }

    /// The same with the sums in its file, if they are to be kept.
    pub(crate) fn finish_keeping<R: Real>(&self, sums: Sums<R>, keep: bool) -> Result<Model> {
        if !keep {
            return self.finish(sums);
        }
        self.finish(sums.clone())?.with_sums(&sums)
    }

    /// A fit in the memory that was asked for, recorded where that was asked for.
    ///
    /// Rows that fit into memory are shuffled where their order matters: batches of a file that is sorted by class would know
    /// one class each.
    pub(crate) fn fit<R: Real>(&self, source: &mut dyn RowSource<R>) -> Result<Model> {
        let bytes = source.len_hint().map_or(u64::MAX, |n| n as u64 * (source.input_dim() as u64 + 1) * 16);
        if !self.kind.ordered || bytes > self.memory.unwrap_or(IN_MEMORY) {
            return self.fit_in_order(source);
        }
        let (mut rows, mut targets, mut n) = (Vec::new(), Vec::new(), 0);
        source.for_each_block(&mut |block| {
            n += block.rows.nrows();
            rows.extend(block.rows.iter().copied());
            targets.extend(block.targets.iter().copied());
            Ok(())
        })?;
        let order: Vec<usize> =
            Stream::new(self.seed, Role::Order, 0).permutation(n).into_iter().map(|i| i as usize).collect();
        let shuffled = |values: Vec<R>, columns: usize| -> Result<Array2<R>> {
            let values =
                Array2::from_shape_vec((n, columns), values).map_err(|e| std::io::Error::other(e.to_string()))?;
            Ok(values.select(Axis(0), &order))
        };
        let (rows, targets) = (shuffled(rows, source.input_dim())?, shuffled(targets, source.target_dim())?);
        self.fit_in_order(&mut InMemory::new(rows.view(), targets.view())?)
    }

    fn fit_in_order<R: Real>(&self, source: &mut dyn RowSource<R>) -> Result<Model> {
        let mut journal = self.journal.as_ref().map(journal::Place::open).transpose()?;
        let mut context = self.context()?;
        if let Some(journal) = &mut journal {
            context = context.with_journal(journal);
        }
        self.named(self.request()?.fit(&self.basis(), source, &mut context)?)
    }

    /// A fitted model with the names of its classes.
    fn named(&self, model: Model) -> Result<Model> {
        self.classes.clone().map_or(Ok(model.clone()), |names| model.with_classes(names))
    }

    /// Refuses a budget in which penalties cannot be compared: all of them are fitted from one Gram matrix.
    ///
    /// To be asked with all the features of a fit, before fewer are tried: a budget that would do for those is no advice.
    pub(crate) fn check_memory<R: Real>(&self, input_dim: usize) -> Result<()> {
        if let (Some(_), Description::Map(_)) = (self.memory, self.description) {
            self.sums::<R>(input_dim, None)?;
        }
        Ok(())
    }
}

/// The kinds of models that [`fit`](crate::fit()) makes.
pub fn fitted_kinds() -> impl Iterator<Item = &'static ModelEntry> {
    catalogue::models().filter(|kind| kind.penalty.is_some())
}
