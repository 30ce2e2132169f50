//! Numbers that were already made, by what they depend on.

use crate::failure::{Failure, Outcome};
use crate::output;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file of named numbers, rewritten whole after every addition.
#[derive(Debug)]
pub(super) struct Cache {
    path: PathBuf,
    known: RefCell<BTreeMap<String, Vec<f64>>>,
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
        self.known.borrow().get(key).cloned()
    }

    pub(super) fn put(&self, key: &str, values: &[f64]) -> Outcome {
        self.known.borrow_mut().insert(key.into(), values.to_vec());
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
        Cache::open(&path, true).unwrap().put("a", &values).unwrap();
        assert_eq!(Cache::open(&path, false).unwrap().get("a").unwrap(), values);
        assert_eq!(Cache::open(&path, true).unwrap().get("a"), None);
        std::fs::write(&path, "{").unwrap();
        assert!(Cache::open(&path, false).unwrap_err().to_string().contains("--fresh"));
        std::fs::remove_file(path).unwrap();
    }
}
