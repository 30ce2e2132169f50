//! Stopping long work from outside, wherever it is, and knowing how far it has come.
//!
//! Sources of rows and iterations return [`Error::Interrupted`] when they are told to stop. A factorisation or a product
//! has nobody to ask and, for a large matrix, takes minutes: they look at a flag that belongs to the job they are part of.
//!
//! ```
//! use bochner::{Error, interrupt};
//! use bochner::linalg::{Cholesky, Lower};
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//! let stop = Arc::new(AtomicBool::new(true)); // as if Ctrl-C had been pressed by now
//! let stopped = interrupt::stoppable(&stop, || {
//!     let mut matrix = Lower::<f64>::zeros(3)?;
//!     matrix.add_to_diagonal(1.0);
//!     Ok(Cholesky::new(matrix).map_err(|failed| Error::from(*failed))?.order())
//! });
//! assert!(matches!(stopped, Err(Error::Interrupted)));
//! # Ok::<(), Error>(())
//! ```

use crate::error::{Error, Result};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

thread_local! {
    static FLAG: RefCell<Flag> = const { RefCell::new(Flag { stop: None, done: None }) };
}

/// The flag and the counter of the job at hand, for loops whose tasks run in other threads.
#[derive(Debug, Clone)]
pub(crate) struct Flag {
    stop: Option<Arc<AtomicBool>>,
    done: Option<Arc<AtomicUsize>>,
}

/// What unwinds out of a stopped job. Products have no results to return an error in, and unwinding costs nothing where
/// nobody stops.
struct Stopped;

/// Puts the flag of the surrounding job back, also while unwinding.
struct Restore(Flag);

impl Drop for Restore {
    fn drop(&mut self) {
        FLAG.replace(self.0.clone());
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

    /// Counts what has been done.
    pub(crate) fn advance(&self, count: usize) {
        if let Some(done) = &self.done {
            done.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// Runs `job`, which ends soon after `stop` has become true.
///
/// What the job was changing is in no defined state then.
///
/// # Errors
/// Those of the job, and [`Error::Interrupted`].
pub fn stoppable<T>(stop: &Arc<AtomicBool>, job: impl FnOnce() -> Result<T>) -> Result<T> {
    run(Flag { stop: Some(stop.clone()), done: None }, job)
}

/// Runs `job` as [`stoppable`] does, and counts what has no source of rows to be watched: `done` grows by the rows of kernel
/// matrices made and of matrices factorised, by those that a step of conjugate gradients multiplies or a local process reads,
/// and by the steps of an exact support vector machine.
///
/// # Errors
/// Those of the job, and [`Error::Interrupted`].
pub fn counted<T>(stop: &Arc<AtomicBool>, done: &Arc<AtomicUsize>, job: impl FnOnce() -> Result<T>) -> Result<T> {
    run(Flag { stop: Some(stop.clone()), done: Some(done.clone()) }, job)
}

fn run<T>(flag: Flag, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let _restore = Restore(FLAG.replace(flag));
    match catch_unwind(AssertUnwindSafe(job)) {
        Ok(outcome) => outcome,
        Err(payload) if payload.is::<Stopped>() => Err(Error::Interrupted),
        Err(payload) => resume_unwind(payload),
    }
}

/// Ends the job that runs in this thread if it is to stop.
pub(crate) fn checkpoint() {
    if Flag::current().raised() {
        resume_unwind(Box::new(Stopped));
    }
}

/// Counts what the job that runs in this thread has done.
pub(crate) fn advance(count: usize) {
    FLAG.with_borrow(|flag| flag.advance(count));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_stops_at_its_own_flag_and_not_at_that_of_another() {
        let (outer, inner) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
        let found = stoppable(&outer, || {
            assert!(matches!(
                stoppable(&inner, || {
                    checkpoint();
                    Ok(())
                }),
                Err(Error::Interrupted)
            ));
            checkpoint();
            Ok(7)
        });
        assert_eq!(found.unwrap(), 7);
        checkpoint();
    }

    #[test]
    fn a_job_counts_what_it_does_and_not_what_another_does() {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        counted(&stop, &done, || {
            advance(3);
            stoppable(&stop, || {
                advance(100);
                Ok(())
            })?;
            let flag = Flag::current();
            std::thread::scope(|scope| scope.spawn(|| flag.within(|| advance(4))).join().expect("no panic"));
            Ok(())
        })
        .unwrap();
        advance(1000);
        assert_eq!(done.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn other_panics_pass_through() {
        let stop = Arc::new(AtomicBool::new(false));
        let payload = catch_unwind(|| stoppable(&stop, || -> Result<()> { resume_unwind(Box::new("own")) }));
        assert_eq!(payload.unwrap_err().downcast_ref(), Some(&"own"));
    }
}
