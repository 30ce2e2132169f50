//! Data sets the program knows by name: which files, how long, with which checksum, and where they are.

use bochner_table::failure::{Failure, Outcome};
use bochner_table::interrupt;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KnownFile {
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A data set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KnownSet {
    pub name: String,
    pub what: String,
    /// Folder in which somebody publishes identical files.
    pub source: Option<String>,
    pub files: Vec<KnownFile>,
}

/// All known data sets, by name.
pub fn sets() -> Vec<KnownSet> {
    serde_json::from_str(include_str!("../data/known.json")).expect("the embedded list is read by a test")
}

/// The data set of that name.
pub fn find(name: &str) -> Outcome<KnownSet> {
    sets().into_iter().find(|s| s.name == name).ok_or_else(|| {
        Failure::Usage(format!("there is no data set called {name:?}; bochner data list shows those that are known"))
    })
}

/// Where data sets are looked for: the folder given, `$BOCHNER_DATA`, `../shared/data` if it is there.
pub fn folder(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(folder) = given {
        return Some(folder.to_owned());
    }
    if let Some(folder) = std::env::var_os("BOCHNER_DATA").filter(|v| !v.is_empty()) {
        return Some(folder.into());
    }
    Some(PathBuf::from("../shared/data")).filter(|f| f.is_dir())
}

/// How a file on the disk compares with what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Intact,
    Missing,
    /// What is wrong with it.
    Damaged(String),
}

/// Compares a file with its size and checksum.
pub fn check(path: &Path, known: &KnownFile) -> Outcome<Verdict> {
    let Ok(mut file) = File::open(path) else { return Ok(Verdict::Missing) };
    let told = |e: std::io::Error| Failure::Failed(format!("{}: {e}", path.display()));
    let bytes = file.metadata().map_err(told)?.len();
    if bytes != known.bytes {
        return Ok(Verdict::Damaged(format!("it has {bytes} bytes instead of {}", known.bytes)));
    }
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        interrupt::check()?;
        match file.read(&mut buffer).map_err(told)? {
            0 => break,
            n => digest.update(&buffer[..n]),
        }
    }
    let found: String = digest.finalize().iter().map(|b| format!("{b:02x}")).collect();
    Ok(match found == known.sha256 {
        true => Verdict::Intact,
        false => Verdict::Damaged("its checksum differs".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_says_what_it_is_and_has_whole_files() {
        let sets = sets();
        assert!(sets.windows(2).all(|w| w[0].name < w[1].name), "sorted by name");
        for set in &sets {
            assert!(!set.files.is_empty() && !set.what.is_empty(), "{}", set.name);
            assert!(set.source.as_ref().is_none_or(|s| s.starts_with("https://") && s.ends_with('/')));
            for file in &set.files {
                assert!(file.bytes > 0 && file.sha256.len() == 64 && !file.name.contains('/'), "{file:?}");
            }
        }
        assert!(find("mnist").unwrap().source.is_some());
        assert!(find("no such set").is_err());
    }
}
