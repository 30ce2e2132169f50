#![no_main]

// Arguments, one per line: parsed, with the maps, kernels and parameters they name; nothing is run.
libfuzzer_sys::fuzz_target!(|text: &str| {
    bochner_cli::try_arguments(std::iter::once("bochner").chain(text.lines()).map(Into::into));
});
