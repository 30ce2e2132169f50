#![no_main]

use std::io::Write;

// Compressed here, so that the fuzzer gets past the checksum.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    bochner_fuzz::read(&encoder.finish().unwrap());
});
