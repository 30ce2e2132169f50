//! The stop flag and the count of the job at hand, where loops find them that have nobody to ask.
//!
//! A flag is raised once and stays up until the job has ended. A loop that sees it raised ends and leaves its output
//! unfinished; whoever returns a [`Result`] above it says [`Error::Interrupted`]; and [`run`], around the whole job, says so
//! whatever came back: nothing unfinished gets out.

use crate::error::{Error, Result};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    static FLAG: RefCell<Flag> = const { RefCell::new(Flag { stop: None, meter: None }) };
}

/// How far a job has come, in rows: those it reads, in every pass, and those of the matrices it makes, multiplies and
/// factorises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows done; never more than the total.
    pub done: usize,
    /// Rows of the whole job, where they are known. Iterations count the most passes they may take, and jump to the end.
    pub total: Option<usize>,
}

/// Counts rows and tells somebody.
pub(crate) struct Meter {
    /// Nothing is told before the total is known.
    at: Mutex<Option<Progress>>,
    tell: Box<dyn Fn(Progress) + Send + Sync>,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Meter {
    pub(crate) fn new(tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Meter { at: Mutex::new(None), tell: Box::new(tell) }
    }

    fn set(&self, change: &dyn Fn(Option<Progress>) -> Option<Progress>) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let next = change(*at);
        if next != *at {
            *at = next;
            next.into_iter().for_each(&self.tell);
        }
    }
}

/// The flag and the meter of the job at hand, for loops whose tasks run in other threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flag {
    pub(crate) stop: Option<Arc<AtomicBool>>,
    pub(crate) meter: Option<Arc<Meter>>,
}

/// Puts the flag of the surrounding job back.
struct Restore(Flag);

impl Drop for Restore {
    fn drop(&mut self) {
        FLAG.replace(std::mem::take(&mut self.0));
    }
}

impl Flag {
    /// The flag of the job that runs in this thread.
    pub(crate) fn current() -> Self {
        FLAG.with_borrow(Clone::clone)
    }

    /// Runs a part of the job in another thread, which may belong to another job.
    pub(crate) fn within<T>(&self, part: impl FnOnce() -> T) -> T {
        let _restore = Restore(FLAG.replace(self.clone()));
        part()
    }

    pub(crate) fn raised(&self) -> bool {
        self.stop.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.raised() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn tell(&self, change: &dyn Fn(Option<Progress>) -> Option<Progress>) {
        if let Some(meter) = &self.meter {
            // Asked behind the meter's lock: nobody is told more after the flag was raised, by other threads either.
            meter.set(&|at| if self.raised() { at } else { change(at) });
        }
    }
}

/// Runs `job` under a flag; [`Error::Interrupted`] where that is raised at the end, whatever the job says.
pub(crate) fn run<T>(flag: &Flag, job: impl FnOnce() -> Result<T>) -> Result<T> {
    flag.tell(&|_| None);
    let outcome = flag.within(job);
    if flag.raised() {
        return Err(Error::Interrupted);
    }
    if outcome.is_ok() {
        flag.tell(&|at| at.map(|at| Progress { done: at.total.unwrap_or(at.done), ..at }));
    }
    outcome
}

/// Whether the job that runs in this thread is to stop.
pub(crate) fn raised() -> bool {
    FLAG.with_borrow(Flag::raised)
}

/// Fails if the job that runs in this thread is to stop.
pub(crate) fn check() -> Result<()> {
    FLAG.with_borrow(Flag::check)
}

/// Says how many rows the job that runs in this thread will take, before it takes the first of them.
pub(crate) fn expect(total: Option<usize>) {
    Flag::current().tell(&|_| Some(Progress { done: 0, total }));
}

/// Counts rows that the job that runs in this thread has done.
pub(crate) fn advance(count: usize) {
    let further = |at: Progress| Progress { done: (at.done + count).min(at.total.unwrap_or(usize::MAX)), ..at };
    Flag::current().tell(&|at| at.map(further));
}
