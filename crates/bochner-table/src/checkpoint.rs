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
use crate::journal::{self, Place};
use crate::model;
use crate::output::{self, cannot_write, first_bytes, same_inode};
use bochner::catalogue::ModelEntry;
use bochner::context::Journal;
use bochner::model::Sums;
use bochner::persist::{Header, Stored};
use bochner::scalar::Real;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
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
    /// Nobody else writes the file meanwhile.
    _lock: Option<Lock>,
}

/// A name beside that of a checkpoint.
pub(crate) fn beside(checkpoint: &Path, ending: &str) -> PathBuf {
    let mut path = checkpoint.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// How the name of the file ends by which a checkpoint is locked.
const LOCK: &str = ".lock";
/// What is in it.
const LOCK_MARK: &[u8] = b"bochner lock\n";

/// A checkpoint that nobody else uses, until this is dropped. The file itself is replaced again and again: what is locked is a
/// file beside it.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn take(checkpoint: &Path) -> Outcome<Self> {
        let path = beside(checkpoint, LOCK);
        let refused = |why: &str| Failure::Failed(format!("--checkpoint {}: {why}", checkpoint.display()));
        let failed = |e: std::io::Error| cannot_write(&path, e);
        loop {
            check_ours(&path, |head| LOCK_MARK.starts_with(head))?;
            let mut file =
                File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    return Err(refused("another process is using it; wait for its end, or name another file"));
                }
                // A file system without locks.
                Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(e)) => return Err(failed(e)),
                Ok(()) => {}
            }
            // Whoever had it locked before may have removed it meanwhile.
            let there = fs::metadata(&path).ok().zip(file.metadata().ok());
            if cfg!(not(unix)) || there.is_some_and(|(there, ours)| same_inode(&there, &ours)) {
                file.write_all(LOCK_MARK).map_err(failed)?;
                return Ok(Lock { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Refuses a file that is there and does not begin like one of ours.
pub(crate) fn check_ours(path: &Path, begins: fn(&[u8]) -> bool) -> Outcome {
    let ours = match fs::symlink_metadata(path) {
        Err(_) => true,
        Ok(found) => found.is_file() && first_bytes(path, output::HEAD).is_ok_and(|head| begins(&head)),
    };
    match ours {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "{} is there and not a file of a checkpoint; --checkpoint needs this name, so name another file",
            path.display()
        ))),
    }
}

/// Whether a file is a checkpoint.
fn is_checkpoint(path: &Path) -> bool {
    let is_one =
        |header: Header| ModelEntry::named(&header.kind).is_err() && Stored::new(header).note::<Note>().is_ok();
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) && Stored::peek(path).is_ok_and(is_one)
}

impl<'a> Checkpoint<'a> {
    /// As asked for, if it was. The files of others are refused, and those of another process that is running.
    pub(crate) fn open(request: Option<&'a CheckpointRequest>) -> Outcome<Self> {
        let seconds = request.map_or(f64::MAX, |request| request.every);
        let every = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let (path, configuration, last) = (request.map(|request| &*request.path), String::new(), Instant::now());
        let lock = path.map(Lock::take).transpose()?;
        if let Some(request) = request {
            if !request.resume {
                Self::check_new(&request.path)?;
            }
            check_ours(&beside(&request.path, journal::ENDING), journal::begins)?;
        }
        Ok(Checkpoint { path, every, configuration, last, _lock: lock })
    }

    /// Of a fit of which this must be the same on resumption.
    pub(crate) fn of(self, configuration: String) -> Self {
        Checkpoint { configuration, ..self }
    }

    /// The files beside a checkpoint, which no input and no output may be.
    pub fn files(path: &Path) -> [(&'static str, PathBuf); 2] {
        [("the passes of --checkpoint,", journal::ENDING), ("the lock of --checkpoint,", LOCK)]
            .map(|(what, ending)| (what, beside(path, ending)))
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
    ///
    /// Files that are not those of a checkpoint stay, and all of them if another process continues from it.
    pub fn remove(path: &Path) {
        let Ok(_lock) = Lock::take(path) else { return };
        output::remove_parts(path, model::is_file);
        Place::beside(path, "", false, Duration::ZERO).remove();
        if is_checkpoint(path) {
            let _ = fs::remove_file(path);
        }
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

/// Whether there is a checkpoint of this configuration, and how many passes beside it.
pub(crate) fn try_files(path: &Path, configuration: &str) -> (bool, usize) {
    let request = CheckpointRequest { path: path.to_owned(), every: 0.0, resume: true };
    let Ok(checkpoint) = Checkpoint::open(Some(&request)) else { return (false, 0) };
    let checkpoint = checkpoint.of(configuration.to_owned());
    let passes = checkpoint.journal(true).and_then(|place| place.open().ok());
    let passes = passes.map_or(0, |mut passes| std::iter::from_fn(|| passes.recall().ok().flatten()).count());
    (matches!(checkpoint.load(), Ok(Some(_))), passes)
}

const CHOICES: &str = "choices";
