#![no_main]

use bochner::persist::Stored;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(stored) = Stored::from_bytes(bytes) {
        // What is accepted is exactly what would be written.
        assert_eq!(stored.to_bytes().unwrap(), bytes);
    }
});
