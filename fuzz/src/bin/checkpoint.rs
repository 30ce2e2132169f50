#![no_main]

use std::fs;
use std::path::PathBuf;

/// What the files of the corpus belong to.
const CONFIGURATION: &str = "abc";

fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bochner-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

// The same bytes as a checkpoint and as its passes: what was recalled is recalled again, and passes without our mark stay.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let checkpoint = folder().join("state");
    let passes = folder().join("state.passes");
    fs::write(&checkpoint, bytes).unwrap();
    fs::write(&passes, bytes).unwrap();
    let (found, recalled) = bochner_table::try_checkpoint(&checkpoint, CONFIGURATION);
    assert_eq!(bochner_table::try_checkpoint(&checkpoint, CONFIGURATION), (found, recalled));
    bochner_table::checkpoint::Checkpoint::remove(&checkpoint);
    assert!(!found || !checkpoint.exists());
    assert!(passes.exists() || bytes.starts_with(b"bochner passes "));
});
