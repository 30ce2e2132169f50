//! Other libraries, timed by the scripts in `benches/peers`: each prints one JSON object `{"case": seconds, …}`.

use bochner_table::failure::{Failure, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Python interpreter with the libraries to compare with.
#[derive(Debug)]
pub struct Peers {
    python: PathBuf,
    scripts: PathBuf,
    threads: usize,
}

impl Peers {
    pub fn new(python: &Path, scripts: &Path, threads: usize) -> Outcome<Self> {
        if !scripts.is_dir() {
            let message =
                format!("the scripts of the peers are not in {}; run from the repository's root", scripts.display());
            return Err(Failure::Usage(message));
        }
        Ok(Peers { python: python.to_owned(), scripts: scripts.to_owned(), threads })
    }

    /// Seconds per case, as the script measures them; it is told the arguments.
    pub(super) fn time(&self, script: &str, arguments: &[String]) -> Outcome<BTreeMap<String, f64>> {
        let threads = self.threads.to_string();
        let output = Command::new(&self.python)
            .arg(self.scripts.join(format!("{script}.py")))
            .args(arguments)
            .env("OPENBLAS_NUM_THREADS", &threads)
            .env("OMP_NUM_THREADS", &threads)
            .env("MKL_NUM_THREADS", &threads)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| Failure::Failed(format!("cannot run {}: {e}", self.python.display())))?;
        if !output.status.success() {
            let last = String::from_utf8_lossy(&output.stderr);
            let last = last.trim().lines().last().unwrap_or("no message").to_owned();
            return Err(Failure::Failed(format!("{script}.py failed: {last}")));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|e| Failure::Failed(format!("{script}.py did not print times: {e}")))
    }
}
