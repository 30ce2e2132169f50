//! Where the real data sets are.

use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The bytes of a compressed file under `BOCHNER_DATA`, or else `../shared/data`.
pub(crate) fn bytes(path: &str) -> Vec<u8> {
    let root = std::env::var_os("BOCHNER_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from);
    let path = root.join(path);
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}; set BOCHNER_DATA", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}
