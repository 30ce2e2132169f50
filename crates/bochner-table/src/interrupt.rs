//! A clean stop: long work asks [`check`] between steps and stops cleanly; unfinished files never get their name.
//!
//! ```
//! use bochner_table::interrupt;
//! assert!(interrupt::check().is_ok()); // until somebody calls interrupt::request()
//! ```

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Files that would be left behind if the program ended this instant.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Asks long work to stop; whether it had been asked before.
pub fn request() -> bool {
    INTERRUPTED.swap(true, Ordering::SeqCst)
}

/// Removes the files that the program would leave behind if it ended now.
pub fn remove_unfinished() {
    for file in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = std::fs::remove_file(file);
    }
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

pub(crate) fn remember(file: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(file.to_owned());
}

pub(crate) fn forget(file: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|f| f != file);
}
