//! What a long fit has learned so far, in one file that is replaced whole: which choices, and, for models that are fitted
//! from them, sums over rows and how many rows.

use crate::choose::Choice;
use crate::failure::{Failure, Outcome};
use crate::journal::Place;
use crate::models::Sums;
use bochner::persist::{Header, Stored};
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

    /// Where the passes of an iterative solver are recorded.
    pub(crate) fn journal(&self, resume: bool) -> Option<Place> {
        self.path.map(|path| Place::beside(path, &self.configuration, resume, self.every))
    }

    /// The model is on the disk: what it was made from is not needed any more.
    pub(crate) fn remove(path: &Path) {
        let _ = std::fs::remove_file(path);
        Place::beside(path, "", false, Duration::ZERO).remove();
    }

    /// What an earlier run has saved; `None` if there is no file yet. A fit without sums has its choices saved only.
    pub(crate) fn load<R: Real>(&self, kept: Kept) -> Outcome<Option<(Choice, Option<Sums<R>>)>> {
        let Some(path) = self.path.filter(|p| p.exists()) else { return Ok(None) };
        let told = |e: &dyn std::fmt::Display| Failure::Failed(format!("{}: {e}", path.display()));
        let (sums, note) = match kept {
            Kept::Choices => {
                let stored = Stored::load(path).map_err(|e| told(&e))?;
                stored.expect_kind(CHOICES).map_err(|e| told(&e))?;
                (None, stored.header.extra["note"].clone())
            }
            Kept::Sums { by_class } => {
                let (sums, note) = Sums::load(path, by_class).map_err(|e| told(&e))?;
                (Some(sums), note)
            }
        };
        let note: Note = serde_json::from_value(note).map_err(|_| told(&"this is not a checkpoint of a fit"))?;
        if note.configuration != self.configuration {
            return Err(told(
                &"this checkpoint belongs to other data, other options or another version; remove it, or leave --resume out",
            ));
        }
        Ok(Some((note.choice, sums)))
    }

    /// Saves if it is time to.
    pub(crate) fn now_and_then<R: Real>(&mut self, sums: &Sums<R>, choice: &Choice) -> Outcome {
        if self.path.is_none() || self.last.elapsed() < self.every {
            return Ok(());
        }
        self.save(Some(sums), choice)
    }

    pub(crate) fn save<R: Real>(&mut self, sums: Option<&Sums<R>>, choice: &Choice) -> Outcome {
        let Some(path) = self.path else { return Ok(()) };
        let note = Note { configuration: self.configuration.clone(), choice: choice.clone() };
        let note = serde_json::to_value(note).map_err(|e| Failure::Failed(e.to_string()))?;
        let saved = match sums {
            Some(sums) => sums.save(path, note),
            None => Stored::new(Header {
                kind: CHOICES.into(),
                dtype: R::NAME.into(),
                input_dim: 0,
                map: serde_json::Value::Null,
                preprocessing: serde_json::Value::Null,
                classes: None,
                extra: serde_json::json!({ "note": note }),
            })
            .save(path),
        };
        saved.map_err(|e| Failure::Failed(format!("cannot write {}: {e}", path.display())))?;
        self.last = Instant::now();
        Ok(())
    }
}

const CHOICES: &str = "choices";

/// What a checkpoint keeps besides the choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Choices,
    Sums { by_class: bool },
}
