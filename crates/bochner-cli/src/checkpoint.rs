//! What a long fit has learned so far, in one file that is replaced whole: sums over rows, how many rows, which choices.

use crate::choose::Choice;
use crate::failure::{Failure, Outcome};
use bochner::accumulate::Gram;
use bochner::scalar::Real;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, Instant};

/// SHA-256 in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Beside the sums.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    configuration: String,
    choice: Choice,
}

/// Where and how often.
#[derive(Debug)]
pub(crate) struct Checkpoint<'a> {
    path: Option<&'a Path>,
    every: Duration,
    configuration: String,
    last: Instant,
}

impl<'a> Checkpoint<'a> {
    /// To `path`, if there is one, about every so many seconds; `configuration` must be the same on resumption.
    pub(crate) fn new(path: Option<&'a Path>, seconds: f64, configuration: String) -> Self {
        let every = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Checkpoint { path, every, configuration, last: Instant::now() }
    }

    /// What an earlier run has saved; `None` if there is no file yet.
    pub(crate) fn load<R: Real>(&self) -> Outcome<Option<(Choice, Gram<R>)>> {
        let Some(path) = self.path.filter(|p| p.exists()) else { return Ok(None) };
        let told = |e: &dyn std::fmt::Display| Failure::Failed(format!("{}: {e}", path.display()));
        let (gram, note) = Gram::<R>::load_with(path).map_err(|e| told(&e))?;
        let note: Note = serde_json::from_value(note).map_err(|_| told(&"this is not a checkpoint of a fit"))?;
        if note.configuration != self.configuration {
            return Err(told(
                &"this checkpoint belongs to other data, other options or another version; remove it, or leave --resume out",
            ));
        }
        Ok(Some((note.choice, gram)))
    }

    /// Saves if it is time to.
    pub(crate) fn now_and_then<R: Real>(&mut self, gram: &Gram<R>, choice: &Choice) -> Outcome {
        if self.path.is_none() || self.last.elapsed() < self.every {
            return Ok(());
        }
        self.save(gram, choice)
    }

    pub(crate) fn save<R: Real>(&mut self, gram: &Gram<R>, choice: &Choice) -> Outcome {
        let Some(path) = self.path else { return Ok(()) };
        let note = Note { configuration: self.configuration.clone(), choice: choice.clone() };
        let note = serde_json::to_value(note).map_err(|e| Failure::Failed(e.to_string()))?;
        gram.save_with(path, note).map_err(|e| Failure::Failed(format!("cannot write {}: {e}", path.display())))?;
        self.last = Instant::now();
        Ok(())
    }
}
