//! Stopping long work from outside, wherever it is.
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
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static FLAG: RefCell<Flag> = const { RefCell::new(Flag(None)) };
}

/// The flag of the job at hand, for loops whose tasks run in other threads.
#[derive(Debug, Clone)]
pub(crate) struct Flag(Option<Arc<AtomicBool>>);

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
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Runs `job`, which ends soon after `stop` has become true.
///
/// What the job was changing is in no defined state then.
///
/// # Errors
/// Those of the job, and [`Error::Interrupted`].
pub fn stoppable<T>(stop: &Arc<AtomicBool>, job: impl FnOnce() -> Result<T>) -> Result<T> {
    let _restore = Restore(FLAG.replace(Flag(Some(stop.clone()))));
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
    fn other_panics_pass_through() {
        let stop = Arc::new(AtomicBool::new(false));
        let payload = catch_unwind(|| stoppable(&stop, || -> Result<()> { resume_unwind(Box::new("own")) }));
        assert_eq!(payload.unwrap_err().downcast_ref(), Some(&"own"));
    }
}
