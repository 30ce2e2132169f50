//! Work without the interpreter lock: threads, signals and progress in one helper.

use crate::arrays::{Precision, View};
use crate::errors::to_python;
use bochner::scalar::Scalar;
use bochner::{Context, Error, Result};
use ndarray::{ArrayView2, ArrayViewMut2, s};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting thread looks for signals and reports progress.
const POLL: Duration = Duration::from_millis(50);

/// What a running job and the Python thread waiting for it share.
#[derive(Debug, Default, Clone)]
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    /// Rows done and, where that is known, of how many.
    at: Arc<Mutex<(usize, Option<usize>)>>,
}

impl Watch {
    /// Fails once the waiting thread has received a signal; called between blocks.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// What a fit of this job is given: memory, the signal to stop, and where progress is told.
    pub(crate) fn context(&self, memory_budget: Option<u64>) -> Result<Context<'static>> {
        let at = self.at.clone();
        let context = Context::default().with_stop(self.stop.clone());
        let context = context.with_progress(move |progress| *locked(&at) = (progress.done, progress.total));
        match memory_budget {
            Some(bytes) => context.with_memory_budget(bytes),
            None => Ok(context),
        }
    }

    /// Notes how many steps are done, of how many.
    pub(crate) fn reach(&self, done: usize, total: Option<usize>) {
        *locked(&self.at) = (done, total);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `job` on a pool of `n_jobs` threads while this thread, without the interpreter lock, waits for it.
///
/// Python delivers signals to its main thread only: that thread waits here, looks for them, and asks the job to
/// stop when a handler raises. `progress`, if given, is called with the number of rows done and with their total or None.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    n_jobs: Option<i64>,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Watch) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = pool(n_jobs)?;
    let watch = Watch::default();
    let progress = progress.map(|callable| callable.clone().unbind());
    let look = || {
        Python::attach(|py| {
            py.check_signals()?;
            let at = *locked(&watch.at);
            match &progress {
                Some(callable) => callable.call1(py, at).map(drop),
                None => Ok(()),
            }
        })
    };
    let (outcome, raised) = py.detach(|| {
        let mut outcome = None;
        let mut raised: Option<PyErr> = None;
        pool.in_place_scope(|scope| {
            let (finished, wait) = sync_channel::<()>(1);
            let (outcome, watch) = (&mut outcome, &watch);
            scope.spawn(move |_| {
                *outcome = Some(Context::default().with_stop(watch.stop.clone()).run(|| job(watch)));
                // A panic drops the sender instead: the wait ends either way, and the scope passes the panic on.
                let _ = finished.send(());
            });
            while wait.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none()
                    && let Err(error) = look()
                {
                    watch.stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
        });
        (outcome, raised)
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let value = outcome.expect("the scope waits for the job").map_err(to_python)?;
    if let Some(callable) = progress {
        let at = *locked(&watch.at);
        callable.call1(py, at)?;
    }
    Ok(value)
}

/// Pools by size, and the process that started them.
struct Pools {
    process: u32,
    by_size: BTreeMap<usize, Arc<ThreadPool>>,
}

/// Locked only while the interpreter lock is held, which a fork needs too: a child never finds it locked.
static POOLS: Mutex<Pools> = Mutex::new(Pools { process: 0, by_size: BTreeMap::new() });

/// More threads than any machine has processors are not started.
const MOST_THREADS: i64 = 4096;

/// A pool of `n_jobs` threads in scikit-learn's convention: `None` and -1 mean all processors, -2 all but one.
fn pool(n_jobs: Option<i64>) -> PyResult<Arc<ThreadPool>> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let size = match n_jobs {
        None => all,
        Some(0) => return Err(PyValueError::new_err("n_jobs must be a non-zero integer or None, got 0")),
        Some(n) if n > MOST_THREADS => {
            return Err(PyValueError::new_err(format!("n_jobs must be at most {MOST_THREADS}, got {n}")));
        }
        Some(n) if n > 0 => n as usize,
        Some(n) => (all as i64).saturating_add(n).saturating_add(1).max(1) as usize,
    };
    let mut pools = locked(&POOLS);
    if pools.process != std::process::id() {
        // The threads of a parent process do not exist in a forked child: a pool of its own, the old one untouched.
        std::mem::forget(std::mem::take(&mut pools.by_size));
        pools.process = std::process::id();
    }
    if let Some(pool) = pools.by_size.get(&size) {
        return Ok(pool.clone());
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(size)
        .thread_name(|index| format!("bochner-{index}"))
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("n_jobs: cannot start {size} threads: {error}")))?;
    Ok(pools.by_size.entry(size).or_insert(Arc::new(pool)).clone())
}

/// Time a block should take: long enough that the pause between blocks does not matter, short enough for Ctrl-C.
const BLOCK_TIME: Range<Duration> = Duration::from_millis(50)..Duration::from_millis(200);

/// Multiplications a first block may take if features cost a dense product: about a tenth of a second.
const FIRST_BLOCK: usize = 1 << 32;

/// Fills `out` from `rows` block by block, looking for signals in between; `tile_rows` and `features` describe the map.
///
/// Bits do not depend on blocks.
pub(crate) fn blockwise<R: Precision, T: Scalar>(
    rows: View<'_, R>,
    mut out: ArrayViewMut2<'_, T>,
    tile_rows: usize,
    features: usize,
    watch: &Watch,
    mut fill: impl FnMut(ArrayView2<'_, R>, ArrayViewMut2<'_, T>) -> Result<()>,
) -> Result<()> {
    if out.nrows() != rows.nrows() {
        return Err(Error::Dimension {
            what: "number of rows of the output",
            expected: rows.nrows(),
            found: out.nrows(),
        });
    }
    let tiles = tile_rows * rayon::current_num_threads();
    let per_row = rows.ncols().max(1).saturating_mul(features.max(1));
    let mut block = tiles * (FIRST_BLOCK / per_row / tiles).clamp(1, 16);
    let mut buffer = Vec::new();
    let mut first = 0;
    while first < rows.nrows() {
        watch.checkpoint()?;
        let start = Instant::now();
        let window = first..first.saturating_add(block.min(rows.most_rows())).min(rows.nrows());
        let dense = rows.rows(window.clone(), &mut buffer)?;
        fill(dense, out.slice_mut(s![window.clone(), ..])).map_err(|error| match error {
            Error::NonFinite { what, row, column } => Error::NonFinite { what, row: first + row, column },
            other => other,
        })?;
        first = window.end;
        if start.elapsed() < BLOCK_TIME.start {
            block = block.saturating_mul(2);
        } else if start.elapsed() > BLOCK_TIME.end {
            block = (block / 2).max(tiles);
        }
    }
    Ok(())
}
