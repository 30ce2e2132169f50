//! What long work is given besides its data: memory, a journal, a way to stop it, and somebody to tell how far it is.
//!
//! ```
//! use bochner::context::Context;
//! use bochner::feature::{Describe, FourierSpec};
//! use bochner::model::{Fit, Ridge};
//! use bochner::rows::InMemory;
//! use bochner::Error;
//! use ndarray::Array2;
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//! let (rows, targets) = (Array2::<f64>::zeros((10, 2)), Array2::zeros((10, 1)));
//! let ridge = Ridge::new(FourierSpec::default().build::<f64>(2)?, 0.1)?;
//! let stop = Arc::new(AtomicBool::new(true)); // as if Ctrl-C had been pressed by now
//! let mut context = Context::default().with_memory_budget(1 << 30)?.with_stop(stop);
//! let stopped = ridge.fit_stream(&mut InMemory::new(rows.view(), targets.view())?, &mut context);
//! assert!(matches!(stopped, Err(Error::Interrupted)));
//! # Ok::<(), Error>(())
//! ```

pub use crate::interrupt::Progress;

use crate::error::{Error, Result};
use crate::interrupt::{self, Flag, Meter};
use crate::rows::{Counted, RowBlock, RowSource, count_classes};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What an earlier run has computed on its way: products of an operator, parts of a model, or states of an iteration. An
/// iteration that gets them again goes where it went before, to the bit, without computing them.
pub trait Journal: Send {
    /// The next entry of the earlier run; `None` from the first one on that it did not record.
    ///
    /// # Errors
    /// What the operating system says.
    fn recall(&mut self) -> Result<Option<Array2<f64>>>;

    /// Records an entry that was computed, to be recalled after all those before it.
    ///
    /// # Errors
    /// What the operating system says.
    fn record(&mut self, entry: ArrayView2<'_, f64>) -> Result<()>;

    /// Records a state that makes all entries before it superfluous: a journal may forget them, and may pass over states
    /// that come soon after another.
    ///
    /// # Errors
    /// What the operating system says.
    fn keep(&mut self, state: ArrayView2<'_, f64>) -> Result<()> {
        self.record(state)
    }
}

/// Memory budget, journal, stop flag and progress of long work; by default none of them.
#[derive(Default)]
pub struct Context<'a> {
    budget: Option<u64>,
    journal: Option<Finished<'a>>,
    stop: Option<Arc<AtomicBool>>,
    meter: Option<Arc<Meter>>,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("budget", &self.budget).field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// A journal that is told what was computed to its end, and nothing that a stop has cut short.
struct Finished<'a>(&'a mut dyn Journal);

impl Journal for Finished<'_> {
    fn recall(&mut self) -> Result<Option<Array2<f64>>> {
        self.0.recall()
    }

    fn record(&mut self, entry: ArrayView2<'_, f64>) -> Result<()> {
        interrupt::check()?;
        self.0.record(entry)
    }

    fn keep(&mut self, state: ArrayView2<'_, f64>) -> Result<()> {
        interrupt::check()?;
        self.0.keep(state)
    }
}

impl<'a> Context<'a> {
    /// With at most this many bytes of memory, rows that are in memory already not counted.
    ///
    /// # Errors
    /// A budget of 0.
    pub fn with_memory_budget(mut self, bytes: u64) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::parameter("memory budget", "at least 1 byte", 0));
        }
        self.budget = Some(bytes);
        Ok(self)
    }

    /// With a journal: after a break the same work with the same journal repeats nothing that was recorded, and ends with
    /// the same bits. Work that reads its rows once has nothing to record.
    #[must_use]
    pub fn with_journal(mut self, journal: &'a mut dyn Journal) -> Self {
        self.journal = Some(Finished(journal));
        self
    }

    /// With a flag that ends the work soon after it has become true; it has to stay so until the work has returned.
    ///
    /// Without one, work inside [`run`](Self::run) of another context stops with that.
    #[must_use]
    pub fn with_stop(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = Some(stop);
        self
    }

    /// With somebody who is told how far the work has come, from any thread.
    #[must_use]
    pub fn with_progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.meter = Some(Arc::new(Meter::new(tell)));
        self
    }

    /// Bytes of memory, where there is a budget.
    pub fn memory_budget(&self) -> Option<u64> {
        self.budget
    }

    pub(crate) fn set_memory_budget(&mut self, bytes: u64) {
        self.budget = Some(bytes);
    }

    pub(crate) fn journal(&mut self) -> Option<&mut dyn Journal> {
        self.journal.as_mut().map(|journal| journal as _)
    }

    /// Runs work that takes no context: products, kernels, transforms and factorisations in it end soon after the flag has
    /// been raised. What the job was changing is in no defined state then.
    ///
    /// # Errors
    /// Those of the job, and [`Error::Interrupted`].
    pub fn run<T>(&self, job: impl FnOnce() -> Result<T>) -> Result<T> {
        interrupt::run(&self.flag(), job)
    }

    fn flag(&self) -> Flag {
        Flag { stop: self.stop.clone().or_else(|| Flag::current().stop), meter: self.meter.clone() }
    }

    /// Reads a source once.
    ///
    /// # Errors
    /// Those of the source and of `visit`, and [`Error::Interrupted`].
    pub fn read<R: Real>(
        &mut self,
        source: &mut dyn RowSource<R>,
        visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>,
    ) -> Result<()> {
        self.fit(source, |source, _| {
            interrupt::expect(source.len_hint());
            source.for_each_block(visit)
        })
    }

    /// Runs work on a source whose rows are counted and end where the flag is raised.
    pub(crate) fn fit<R: Real, T>(
        &mut self,
        source: &mut dyn RowSource<R>,
        job: impl FnOnce(&mut dyn RowSource<R>, &mut Self) -> Result<T>,
    ) -> Result<T> {
        interrupt::run(&self.flag(), || job(&mut Watched(Counted::new(source)), self))
    }

    /// The number of classes, where it is known, or from a pass over the labels.
    pub(crate) fn classes<R: Real>(&mut self, known: Option<usize>, source: &mut dyn RowSource<R>) -> Result<usize> {
        known.map_or_else(|| self.fit(source, |source, _| count_classes(source)), Ok)
    }

    /// Refuses what does not fit into the budget.
    pub(crate) fn check_budget(&self, what: &'static str, needed: u64, remedy: &str) -> Result<()> {
        match self.budget.filter(|budget| needed > *budget) {
            Some(budget) => Err(Error::Budget { what, needed, budget, remedy: remedy.into() }),
            None => Ok(()),
        }
    }
}

/// A source whose rows are counted, and whose blocks end where the job is to stop.
struct Watched<'a, R>(Counted<'a, R>);

impl<R: Real> RowSource<R> for Watched<'_, R> {
    fn input_dim(&self) -> usize {
        self.0.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.0.target_dim()
    }

    fn len_hint(&self) -> Option<usize> {
        self.0.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<()>) -> Result<()> {
        interrupt::check()?;
        self.0.for_each_block(&mut |block| {
            visit(block)?;
            interrupt::advance(block.rows.nrows());
            interrupt::check()
        })
    }
}
