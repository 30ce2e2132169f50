//! Numbers that were already made, by what they depend on, and the time they took.

use bochner_table::failure::{Failure, Outcome};
use bochner_table::output;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file of named numbers, rewritten whole after every addition.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    known: RefCell<BTreeMap<String, Entry>>,
}

/// Numbers, and the seconds it took to make them: a run of several sittings still knows how long it is.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    values: Vec<f64>,
    seconds: f64,
    /// Whether the numbers were made in this sitting.
    #[serde(skip)]
    is_new: bool,
    /// Whether they were made in an earlier one and asked for in this one.
    #[serde(skip)]
    is_recalled: bool,
}

impl Cache {
    /// Reads the file if there is one; `fresh` begins anew.
    pub(super) fn open(path: &Path, fresh: bool) -> Outcome<Self> {
        let known = match std::fs::read(path) {
            Ok(bytes) if !fresh => serde_json::from_slice(&bytes)
                .map_err(|e| Failure::Failed(format!("{}: {e}; --fresh begins anew", path.display())))?,
            _ => BTreeMap::new(),
        };
        Ok(Cache { path: path.into(), known: RefCell::new(known) })
    }

    pub(super) fn get(&self, key: &str) -> Option<Vec<f64>> {
        let mut known = self.known.borrow_mut();
        let entry = known.get_mut(key)?;
        entry.is_recalled = !entry.is_new;
        Some(entry.values.clone())
    }

    /// Seconds that numbers took in earlier sittings, those that have been asked for.
    pub(super) fn seconds_spared(&self) -> f64 {
        self.known.borrow().values().filter(|entry| entry.is_recalled).map(|entry| entry.seconds).sum()
    }

    pub(super) fn put(&self, key: &str, values: &[f64], seconds: f64) -> Outcome {
        self.known
            .borrow_mut()
            .insert(key.into(), Entry { values: values.to_vec(), seconds, is_new: true, is_recalled: false });
        let text = serde_json::to_vec_pretty(&*self.known.borrow()).map_err(|e| Failure::Failed(e.to_string()))?;
        output::write_whole(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_bit_and_a_fresh_start_forgets_them() {
        let path = std::env::temp_dir().join(format!("bochner-cache-{}.json", std::process::id()));
        let values = [0.1 + 0.2, -1e-300, 5.0];
        let first = Cache::open(&path, true).unwrap();
        first.put("a", &values, 1.5).unwrap();
        assert_eq!((first.get("a").unwrap(), first.seconds_spared()), (values.to_vec(), 0.0));
        let again = Cache::open(&path, false).unwrap();
        assert_eq!(again.seconds_spared(), 0.0);
        for _ in 0..2 {
            assert_eq!((again.get("a").unwrap(), again.seconds_spared()), (values.to_vec(), 1.5));
        }
        assert_eq!(Cache::open(&path, true).unwrap().get("a"), None);
        std::fs::write(&path, "{").unwrap();
        assert!(Cache::open(&path, false).unwrap_err().to_string().contains("--fresh"));
        std::fs::remove_file(path).unwrap();
    }
}
