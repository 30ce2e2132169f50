//! Absurd sizes through the program: one sentence each and within a second, in a process with 4 GiB of address space.

#![cfg(target_os = "linux")]

mod common;

use bochner::catalogue::{self, Domain};
use common::Folder;
use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

const SIZES: [&str; 8] = [
    "1073741824",
    "2147483648",
    "17179869184",
    "1099511627776",
    "9007199254740992",
    "4611686018427387904",
    "18446744073709551615",
    "18446744073709551616",
];

fn counts(domain: &Domain) -> bool {
    match domain {
        Domain::Whole(..) => true,
        Domain::Optional(domain) => counts(domain),
        _ => false,
    }
}

#[test]
fn absurd_sizes_are_one_sentence_within_a_second() {
    let mut text = String::from("x,y,z\n");
    for i in 0..60u32 {
        let (x, y) = ((f64::from(i) * 0.7).sin() + 1.5, (f64::from(i) * 0.31).cos() + 1.5);
        writeln!(text, "{x},{y},{}", x * y).unwrap();
    }
    let folder = Folder::with("sizes", "t.csv", text);
    let mut calls: Vec<Vec<String>> = Vec::new();
    let mut call = |words: &[&str]| calls.push(words.iter().map(|&word| word.to_owned()).collect());
    for size in SIZES {
        let features = format!("--features={size}");
        for map in catalogue::maps() {
            call(&["transform", "t.csv", "--map", map.name, &features]);
            call(&["fit", "t.csv", "--target", "z", "--map", map.name, &features, "--alpha", "0.1", "--out", "m"]);
            for parameter in map.parameters.iter().filter(|p| counts(&p.domain) && p.name != "n_components") {
                call(&["transform", "t.csv", "--map", map.name, "--set", &format!("{}={size}", parameter.name)]);
            }
        }
        for option in ["--seed", "--budget", "--memory", "--threads"] {
            let fit = ["fit", "t.csv", "--target", "z", "--out", "m", "--kernel", "gaussian"];
            call(&[&fit[..], &[&format!("{option}={size}")]].concat());
        }
        for option in ["--rows", "--draws", "--most-features"] {
            call(&["plan", "t.csv", "--target", "z", "--error", "0.5", &format!("{option}={size}")]);
        }
        call(&["compare", "t.csv", "--target", "z", &features]);
    }
    assert!(calls.len() >= 200, "{}", calls.len());
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for words in &calls {
        let run = || {
            let start = Instant::now();
            let output = Command::new("sh")
                .args(["-c", "ulimit -v 4194304; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_bochner")])
                .args(words)
                .current_dir(&folder.0)
                .output()
                .unwrap();
            (start.elapsed(), output)
        };
        // The best of three: the machine may be busy with something else.
        let (mut seconds, output) = run();
        for _ in 0..2 {
            if seconds > Duration::from_secs(1) {
                seconds = seconds.min(run().0);
            }
        }
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = told.lines().any(|line| line.starts_with("bochner: ") || line.starts_with("error: "));
        match output.status.code() {
            Some(0) => {}
            Some(_) if said && !told.contains("panicked") && seconds < Duration::from_secs(1) => refused += 1,
            code => wrong.push(format!("{words:?}: {code:?} after {seconds:?}: {told}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), calls.len(), wrong.join("\n"));
    assert!(2 * refused > calls.len(), "{refused} of {}", calls.len());
}
