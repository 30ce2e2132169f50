#![no_main]

// The magic bytes are given: everything after them is the fuzzer's.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bochner_fuzz::read(&[&b"NRRD0004\n"[..], bytes].concat()));
