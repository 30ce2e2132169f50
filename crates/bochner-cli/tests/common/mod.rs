//! A folder for the files of a test, and the program run in it.

#![allow(dead_code, reason = "every test program uses some of it")]

use std::path::PathBuf;
use std::process::{Command, Output};

pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bochner-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// With a file in it.
    pub(crate) fn with(name: &str, file: &str, contents: impl AsRef<[u8]>) -> Self {
        let folder = Folder::new(name);
        folder.write(file, contents);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), contents).unwrap();
        self.path(name)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_bochner"));
        program.args(arguments).args(brief(arguments)).current_dir(&self.0).output().unwrap()
    }

    /// Standard output of a run that must succeed.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let told = remarks(&output);
        assert!(told.lines().all(is_about_data), "quiet in a pipe: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.good(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// The one sentence of a run that must fail.
    pub(crate) fn bad(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let message: String = remarks(&output).split_inclusive('\n').filter(|line| !is_about_data(line)).collect();
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        assert!(message.starts_with("bochner: "), "{message}");
        message
    }
}

/// A small budget for fits that say nothing of theirs: a second is enough to learn what tests ask for.
pub(crate) fn brief(arguments: &[&str]) -> &'static [&'static str] {
    let free =
        arguments.first() == Some(&"fit") && !arguments.iter().any(|a| a.starts_with("--budget") || *a == "--help");
    if free { &["--budget", "1"] } else { &[] }
}

/// What a run has written to standard error, but for signs of life, which every run on a slow machine may give.
pub(crate) fn remarks(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.split_inclusive('\n').filter(|line| !line.starts_with("bochner … ")).collect()
}

/// Whether a line says how a file was understood: what was left out of it or filled in.
pub(crate) fn is_about_data(line: &str) -> bool {
    let known = [
        "left out, as they say nothing about other rows",
        "cells without a value get",
        "has one more than that before it",
    ];
    known.iter().any(|words| line.contains(words))
}

/// The arguments of a command line without quotes.
pub(crate) fn arguments(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// A sequence without structure, from 0 to 1.
pub(crate) fn noise(i: usize, j: usize) -> f64 {
    let mut z = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 11) as f64 / (1u64 << 53) as f64
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
