//! The way of an iterative solver. Its passes are recorded one by one in a file that only grows; its states, of which the
//! last is enough, replace the file. What a run that was killed has recorded need not be computed again.

use crate::checkpoint::{beside, check_ours};
use crate::output::{self, write_whole};
use crate::pipeline::stopped;
use bochner::context::Journal;
use bochner::{Error, Result};
use ndarray::{Array2, ArrayView2};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How the name of a journal ends, behind that of its checkpoint.
pub(crate) const ENDING: &str = ".passes";
/// How the file begins.
const MARK: &[u8] = b"bochner passes 1\n";

/// Whether a file begins like a journal.
pub(crate) fn begins(head: &[u8]) -> bool {
    head.starts_with(MARK)
}

/// Where a journal is, and what it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    path: PathBuf,
    configuration: String,
    resume: bool,
    /// Time between states that are kept.
    every: Duration,
}

impl Place {
    /// Beside a checkpoint.
    pub(crate) fn beside(checkpoint: &Path, configuration: &str, resume: bool, every: Duration) -> Self {
        Place { path: beside(checkpoint, ENDING), configuration: configuration.to_owned(), resume, every }
    }

    /// What the file begins with.
    fn start(&self) -> Vec<u8> {
        [MARK, self.configuration.as_bytes()].concat()
    }

    /// Removes the file of a fit that has ended.
    pub(crate) fn remove(&self) {
        output::remove_parts(&self.path, begins);
        if check_ours(&self.path, begins).is_ok() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Opens the journal of an earlier run, if it was asked for, is there and belongs to the same request; or a new one.
    pub(crate) fn open(&self) -> Result<Passes> {
        check_ours(&self.path, begins).map_err(stopped)?;
        let (start, open) = (self.start(), || File::options().read(true).write(true).open(&self.path));
        if self.resume
            && let Ok(mut file) = open()
        {
            let mut found = vec![0; start.len()];
            if file.read_exact(&mut found).is_ok() && found == start {
                let (at, len) = (found.len() as u64, file.metadata()?.len());
                return Ok(self.passes(file, at, len));
            }
        }
        write_whole(&self.path, &start).map_err(stopped)?;
        Ok(self.passes(open()?, start.len() as u64, 0))
    }

    fn passes(&self, file: File, at: u64, len: u64) -> Passes {
        Passes { file, at, len, place: self.clone(), kept: Instant::now() }
    }
}

/// An open journal: rows and columns, numbers, and a checksum of each entry.
#[derive(Debug)]
pub(crate) struct Passes {
    file: File,
    place: Place,
    /// When a state was kept last.
    kept: Instant,
    /// Where the next record begins.
    at: u64,
    /// Length of the file when it was opened; what is written later is not recalled.
    len: u64,
}

const HEAD: u64 = 16;
const CHECKSUM: usize = 8;

fn checksum(head: &[u8], body: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::new().chain_update(head).chain_update(body).finalize();
    std::array::from_fn(|i| digest[i])
}

/// An entry as the file has it.
fn written(entry: ArrayView2<'_, f64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 * entry.len() + 64);
    bytes.extend((entry.nrows() as u64).to_le_bytes());
    bytes.extend((entry.ncols() as u64).to_le_bytes());
    entry.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    let sum = checksum(&bytes[..HEAD as usize], &bytes[HEAD as usize..]);
    bytes.extend(sum);
    bytes
}

impl Passes {
    /// A record that is whole; a cut or damaged one ends the part that is believed.
    fn next(&mut self) -> Option<Array2<f64>> {
        let mut head = [0; HEAD as usize];
        if self.at + HEAD > self.len {
            return None;
        }
        self.file.seek(SeekFrom::Start(self.at)).ok()?;
        self.file.read_exact(&mut head).ok()?;
        let (rows, columns) = head.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        let bytes = number(rows).checked_mul(number(columns))?.checked_mul(8)?;
        if bytes > self.len - self.at - HEAD {
            return None;
        }
        let mut body = vec![0; bytes as usize + CHECKSUM];
        self.file.read_exact(&mut body).ok()?;
        let (body, found) = body.split_at(bytes as usize);
        if checksum(&head, body) != found {
            return None;
        }
        self.at += HEAD + bytes + CHECKSUM as u64;
        let values = body.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        Array2::from_shape_vec((number(rows) as usize, number(columns) as usize), values).ok()
    }
}

impl Journal for Passes {
    fn recall(&mut self) -> Result<Option<Array2<f64>>> {
        let found = self.next();
        if found.is_none() && self.len > 0 {
            // From here on the file is written.
            self.len = 0;
            self.file.set_len(self.at)?;
        }
        Ok(found)
    }

    fn record(&mut self, entry: ArrayView2<'_, f64>) -> Result<()> {
        let bytes = written(entry);
        self.file.seek(SeekFrom::Start(self.at)).map_err(Error::from)?;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn keep(&mut self, state: ArrayView2<'_, f64>) -> Result<()> {
        if self.kept.elapsed() >= self.place.every {
            let bytes = [self.place.start(), written(state)].concat();
            write_whole(&self.place.path, &bytes).map_err(stopped)?;
            self.kept = Instant::now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn what_was_recorded_is_recalled_up_to_the_first_record_that_is_not_whole() {
        let path = std::env::temp_dir().join(format!("bochner-journal-{}", std::process::id()));
        let place = |configuration: &str| Place::beside(&path, configuration, true, Duration::ZERO);
        let file = place("").path;
        let (first, second) = (array![[1.0, -2.5], [1e-300, f64::MAX]], array![[3.0], [4.0], [5.0]]);
        let mut journal = place("abc").open().unwrap();
        assert_eq!(journal.recall().unwrap(), None);
        journal.record(first.view()).unwrap();
        journal.record(second.view()).unwrap();
        let whole = std::fs::read(&file).unwrap();
        let recalled = |bytes: &[u8], configuration: &str| {
            std::fs::write(&file, bytes).unwrap();
            let mut journal = place(configuration).open().unwrap();
            std::iter::from_fn(|| journal.recall().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(recalled(&whole, "abc"), [first.clone(), second.clone()]);
        assert!(recalled(&whole, "abd").is_empty(), "another request");
        // Without its mark it is not ours, and stays as it is.
        for other in [&whole[..MARK.len() - 1], b"Bochner passes 1\nabc", b""] {
            std::fs::write(&file, other).unwrap();
            assert!(place("abc").open().is_err());
            place("abc").remove();
            assert_eq!(std::fs::read(&file).unwrap(), other);
        }
        for cut in MARK.len()..whole.len() {
            let found = recalled(&whole[..cut], "abc");
            assert!(found.len() < 2 && found.iter().all(|f| *f == first), "cut at {cut}");
            let mut damaged = whole.clone();
            damaged[cut] ^= 4;
            assert!(recalled(&damaged, "abc").len() < 2, "damaged at {cut}");
        }
        // After a cut the rest is written again.
        std::fs::write(&file, &whole[..whole.len() - 3]).unwrap();
        let mut journal = place("abc").open().unwrap();
        assert_eq!(journal.recall().unwrap(), Some(first));
        assert_eq!(journal.recall().unwrap(), None);
        journal.record(second.view()).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), whole);
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_state_takes_the_place_of_what_was_recorded_before_it_unless_it_comes_too_soon() {
        let path = std::env::temp_dir().join(format!("bochner-states-{}", std::process::id()));
        let place = |every: u64| Place::beside(&path, "abc", true, Duration::from_secs(every));
        let recalled = || {
            let mut journal = place(0).open().unwrap();
            std::iter::from_fn(|| journal.recall().unwrap()).collect::<Vec<_>>()
        };
        let (first, second) = (array![[1.0, 2.0]], array![[3.0, 4.0], [5.0, 6.0]]);
        let mut journal = place(0).open().unwrap();
        assert_eq!(journal.recall().unwrap(), None);
        journal.keep(first.view()).unwrap();
        assert_eq!(recalled(), [first]);
        journal.keep(second.view()).unwrap();
        assert_eq!(recalled(), std::slice::from_ref(&second));
        place(3600).open().unwrap().keep(array![[7.0]].view()).unwrap();
        assert_eq!(recalled(), [second]);
        place(0).remove();
        assert!(!place(0).path.exists());
    }
}
