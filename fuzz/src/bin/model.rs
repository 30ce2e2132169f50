#![no_main]

use bochner::persist::Stored;
use sha2::{Digest, Sha256};

const KEY: &[u8] = b"sha256\\\":\\\"";

/// The bytes with the hash they should have, so that the fuzzer gets past it.
fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let at = bytes.windows(KEY.len()).position(|w| w == KEY)? + KEY.len();
    let mut bytes = bytes.to_vec();
    bytes.get_mut(at..at + 64)?.fill(b'0');
    let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    bytes[at..at + 64].copy_from_slice(hash.as_bytes());
    Some(bytes)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(stored) = Stored::from_bytes(bytes) {
        // What is accepted and written is accepted again, and written the same.
        let written = stored.to_bytes().unwrap();
        assert_eq!(Stored::from_bytes(&written).unwrap().to_bytes().unwrap(), written);
    }
    if let Some(bytes) = mended(bytes) {
        let _ = bochner_table::try_model(&bytes);
    }
});
