//! The program as its users meet it: exit codes, streams, files.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn bochner(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bochner")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bochner-program-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn help_and_version_go_to_standard_output_and_succeed() {
    for arguments in [&["--help"][..], &["-h"], &["--version"], &["demo", "--help"], &["bench", "-h"]] {
        let output = bochner(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
        assert!(!text(&output.stdout).contains('\x1b'), "no colour in a pipe");
    }
}

#[test]
fn wrong_usage_goes_to_standard_error_with_exit_code_2() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["demo", "--nonsense"],
        &["bench", "nonsense"],
        &["demo", "--threads", "0"],
        &["fit", "x.csv", "--memory", "much"],
        &["fit", "x.csv", "--resume"],
        &["fit", "x.csv", "--impute", "mode"],
        &["fit", "x.csv", "--impute", "mean", "--drop-missing"],
        &["data", "fetch"],
        &["bench", "list", "--json", "--csv"],
    ] {
        let output = bochner(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn failure_is_one_sentence_with_exit_code_1() {
    let folder = scratch("failure");
    let file = folder.join("a file");
    std::fs::write(&file, "").unwrap();
    let output = bochner(&["man", "--dir", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.starts_with("bochner: cannot make the folder") && message.trim_end().lines().count() == 1,
        "{message}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tables_come_as_json_and_csv_for_programs() {
    let json: serde_json::Value = serde_json::from_slice(&bochner(&["bench", "list", "--json"]).stdout).unwrap();
    assert!(json.as_array().unwrap().iter().any(|row| row["name"] == "hadamard"));
    let csv = text(&bochner(&["bench", "list", "--csv"]).stdout);
    assert_eq!(csv.lines().next(), Some("name,about"));
    assert_eq!(csv.lines().count(), 1 + json.as_array().unwrap().len());
}

#[test]
fn data_sets_are_listed_and_checked_where_they_are_looked_for() {
    let folder = scratch("data");
    let set = folder.join("boston");
    std::fs::create_dir_all(&set).unwrap();
    std::fs::write(set.join("data.csv.gz"), "not it").unwrap();
    let data = folder.to_str().unwrap();
    let list = bochner(&["data", "list", "--data", data, "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let row = |name: &str| list.as_array().unwrap().iter().find(|r| r["name"] == name).unwrap().clone();
    assert_eq!((row("boston")["here"].as_str(), row("mnist")["here"].as_str()), (Some("in part"), Some("no")));
    let output = bochner(&["data", "check", "--data", data]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("damaged: it has 6 bytes instead of 11608"));
    assert!(text(&output.stderr).contains("1 damaged"));
    let output = bochner(&["data", "fetch", "boston", "--data", data]);
    assert!(text(&output.stderr).contains("no server with an identical copy is known"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn help_comes_at_once() {
    // The bar is 20 ms in a release build on a quiet machine; this only notices a program that reads files first.
    let fastest = (0..5).map(|_| {
        let start = std::time::Instant::now();
        assert!(bochner(&["--help"]).status.success());
        start.elapsed()
    });
    assert!(fastest.min().unwrap() < std::time::Duration::from_millis(250));
}

#[test]
fn the_manual_and_completions_know_every_command() {
    let folder = scratch("manual");
    assert!(bochner(&["man", "--dir", folder.to_str().unwrap()]).status.success());
    let script = text(&bochner(&["completions", "bash"]).stdout);
    for command in ["fit", "predict", "inspect", "transform", "compare", "data", "demo", "bench", "completions", "man"]
    {
        let page = std::fs::read_to_string(folder.join(format!("bochner-{command}.1"))).unwrap();
        assert!(page.contains(".SH NAME"), "{command}");
        assert!(script.contains(command));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_demo_writes_its_files_whole_and_repeats_itself_on_any_number_of_threads() {
    let folder = scratch("demo");
    let mut results = Vec::new();
    for threads in ["1", "2"] {
        let out = folder.join(threads);
        let output = bochner(&["demo", "--small", "--threads", threads, "--out", out.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "no progress in a pipe: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("Open "));
        let mut names: Vec<_> =
            std::fs::read_dir(&out).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["accuracy.svg", "kernel-error.svg", "report.html", "results.json"]);
        let mut json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
        forget_times(&mut json);
        results.push(json);
    }
    assert_eq!(results[0], results[1], "same seed, same numbers");
    for row in results[0]["kernel_error"].as_array().unwrap() {
        // Four draws of a few hundred features: far from exact, but a lost factor of √2 would show.
        if let Some(ratio) = row["measured_over_predicted"].as_f64() {
            assert!((0.75..1.33).contains(&ratio), "{row}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn forget_times(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.retain(|key, _| !key.contains("seconds") && key != "threads");
            fields.values_mut().for_each(forget_times);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(forget_times),
        _ => {}
    }
}

/// Ctrl-C while the demo is at work: no folder with half of the files, exit code 130.
#[cfg(unix)]
#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let folder = scratch("interrupted");
    let out = folder.join("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_bochner"))
        .args(["demo", "--out", out.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(!out.exists());
    std::fs::remove_dir_all(folder).unwrap();
}
