//! What a long fit has learned so far, in one file that is replaced whole: which choices, and, for models that are fitted
//! from them, sums over rows and how many rows.
//!
//! ```
//! use bochner_table::checkpoint::Checkpoint;
//! assert!(Checkpoint::check_new("there-is-none.checkpoint".as_ref()).is_ok());
//! ```

use crate::choose::Choice;
use crate::failure::{Failure, Outcome};
use crate::fit::CheckpointRequest;
use crate::journal::Place;
use crate::model;
use crate::output;
use bochner::catalogue::ModelEntry;
use bochner::model::Sums;
use bochner::persist::{Header, Stored};
use bochner::scalar::Real;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, Instant};

/// SHA-256 in hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
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
pub struct Checkpoint<'a> {
    path: Option<&'a Path>,
    every: Duration,
    configuration: String,
    last: Instant,
}

impl<'a> Checkpoint<'a> {
    /// As asked for, if it was; `configuration` must be the same on resumption.
    pub(crate) fn new(request: Option<&'a CheckpointRequest>, configuration: String) -> Self {
        let seconds = request.map_or(f64::MAX, |request| request.every);
        let every = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Checkpoint { path: request.map(|request| &*request.path), every, configuration, last: Instant::now() }
    }

    /// Where the passes of an iterative solver are recorded.
    pub(crate) fn journal(&self, resume: bool) -> Option<Place> {
        self.path.map(|path| Place::beside(path, &self.configuration, resume, self.every))
    }

    /// Refuses a file that a fit from the beginning would replace: hours of another fit, or no checkpoint at all.
    pub fn check_new(path: &Path) -> Outcome {
        if !path.exists() {
            return Ok(());
        }
        let path = path.display();
        let message = format!("--checkpoint {path} is there already: --resume continues from it; or remove it first");
        Err(Failure::Usage(message))
    }

    /// The model is on the disk: what it was made from is not needed any more.
    pub fn remove(path: &Path) {
        output::remove_parts(path);
        Place::beside(path, "", false, Duration::ZERO).remove();
        let _ = std::fs::remove_file(path);
    }

    /// What an earlier run has saved: its choices and, of a fit from sums, those; `None` if there is no file yet.
    pub(crate) fn load(&self) -> Outcome<Option<(Choice, Option<Stored>)>> {
        let Some(path) = self.path.filter(|p| p.exists()) else { return Ok(None) };
        let told = |e: &dyn std::fmt::Display| Failure::Failed(format!("{}: {e}", path.display()));
        if !model::is_file(&model::head(path).map_err(|e| told(&e))?) {
            let message = format!("{} is not a checkpoint of bochner; --checkpoint names another file", path.display());
            return Err(Failure::Failed(message));
        }
        let stored = Stored::load(path).map_err(|e| told(&e))?;
        if ModelEntry::named(&stored.header.kind).is_ok() {
            return Err(told(&"this is a model of bochner, not a checkpoint"));
        }
        let note: Note = stored.note().map_err(|_| told(&"this is not a checkpoint of a fit"))?;
        if note.configuration != self.configuration {
            let other =
                "this checkpoint belongs to other data, other options or another version; remove it to begin anew";
            return Err(told(&other));
        }
        Ok(Some((note.choice, (stored.header.kind != CHOICES).then_some(stored))))
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
        let saved = match sums {
            Some(sums) => sums.save_with(path, &note),
            None => Stored::new(Header::new(CHOICES, R::NAME, 0)).with_note(&note).and_then(|file| file.save(path)),
        };
        saved.map_err(|e| Failure::Failed(format!("cannot write {}: {e}", path.display())))?;
        self.last = Instant::now();
        Ok(())
    }
}

const CHOICES: &str = "choices";
