#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bochner_fuzz::read(bytes));
