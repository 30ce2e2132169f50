//! Ctrl-C: long work asks [`check`] between steps and stops cleanly; unfinished files never get their name.

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// Files that would be left behind if the program ended this instant.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes Ctrl-C, SIGTERM and SIGHUP set a flag; a second one ends the program at once, after removing unfinished files.
pub(crate) fn install() {
    let handler = || {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            for file in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                let _ = std::fs::remove_file(file);
            }
            std::process::exit(130);
        }
    };
    // Fails only if a handler is already there; then the default, ending at once, stays: still no partial file.
    let _ = ctrlc::set_handler(handler);
}

/// Whether the user asked to stop.
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Fails if the user asked to stop.
pub(crate) fn check() -> Outcome {
    if requested() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Runs `job`; factorisations and products in it, which may take minutes and have nobody to ask, stop too.
pub(crate) fn stoppable<T>(job: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    bochner::Context::default().with_stop(INTERRUPTED.clone()).run(|| Ok(job()))?
}

pub(crate) fn remember(file: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(file.to_owned());
}

pub(crate) fn forget(file: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|f| f != file);
}
