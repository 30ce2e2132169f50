//! A clean stop: long work asks [`check`] between steps and stops cleanly; unfinished files never get their name.
//!
//! ```
//! use bochner_table::interrupt;
//! assert!(interrupt::check().is_ok()); // until somebody calls interrupt::request()
//! ```

use crate::failure::{Failure, Outcome};
pub use bochner::persist::remove_unfinished;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Asks long work to stop; whether it had been asked before.
pub fn request() -> bool {
    INTERRUPTED.swap(true, Ordering::SeqCst)
}

/// Whether the user asked to stop.
pub fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Fails if the user asked to stop.
pub fn check() -> Outcome {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Runs `job`; factorisations and products in it, which may take minutes and have nobody to ask, stop too.
pub fn stoppable<T>(job: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    bochner::Context::default().with_stop(INTERRUPTED.clone()).run(|| Ok(job()))?
}
