//! Seconds, bytes, and rows to spend them on.

use super::*;
use std::path::PathBuf;

/// Seconds of one call of `work`: the median of repetitions over at least `budget` seconds, after one to warm up.
pub(super) fn seconds(budget: f64, work: &mut dyn FnMut()) -> f64 {
    work();
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || (begin.elapsed().as_secs_f64() < budget && times.len() < 10_000) {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The same for work that may fail.
pub(super) fn attempt<T, E: Into<Failure>>(budget: f64, mut work: impl FnMut() -> Result<T, E>) -> Outcome<f64> {
    let mut failure = None;
    let time = seconds(budget, &mut || match work() {
        Ok(made) => drop(black_box(made)),
        Err(error) => failure = Some(error),
    });
    failure.map_or(Ok(time), |error| Err(error.into()))
}

/// Seconds of one call of `work`.
pub(super) fn once<T>(work: impl FnOnce() -> bochner::Result<T>) -> Outcome<f64> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed().as_secs_f64())
}

/// Rows of standard normals.
pub(super) fn normals<R: Real>(n: usize, d: usize, seed: u64) -> Array2<R> {
    let mut values = vec![R::ZERO; n * d];
    fill_normals(Seed::new(seed), Role::Noise, 0, 0, TileMut::new(&mut values, n, d));
    Array2::from_shape_vec((n, d), values).expect("n times d numbers")
}

/// Lets [`peak_memory`] start again, where the system allows it.
pub(super) fn forget_peak() {
    // The number 5 resets the peak and nothing else (proc(5)); a refusal leaves the old, larger peak.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Most memory this process has held, in bytes, where the system says so.
pub(super) fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| 1024.0 * kib)
}

/// A folder for files of one run, removed with them.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("bochner-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Scratch(folder))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
