//! Nothing worth saying is kept back: models that are of no use, work that takes long, lines that are measured.

mod common;

use common::{Folder, noise};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Columns and targets that have nothing to do with each other; an id, a constant, and classes of which one is common.
fn unrelated(rows: usize) -> String {
    let mut text = String::from("id,a,b,same,y,class\n");
    for i in 0..rows {
        let class = if noise(i, 4) < 0.8 { "common" } else { "rare" };
        writeln!(text, "{},{},{},7,{},{class}", 1000 + i, noise(i, 1), noise(i, 2), noise(i, 3)).unwrap();
    }
    text
}

/// What is said of a model in the end of a fit, in its JSON, its file and its page; they must agree.
fn doubt(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let value = folder.json(&[&["fit"], arguments].concat());
    let (sentence, reasons) = (value["doubt"]["sentence"].as_str(), value["doubt"]["reasons"].as_array());
    let reasons: Vec<&str> = reasons.into_iter().flatten().filter_map(|reason| reason.as_str()).collect();
    let shown = folder.good(&[&["fit"], arguments, &["--out", "m.bochner", "--report", "page.html"]].concat());
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    let inspected = folder.good(&["inspect", "m.bochner"]);
    let said = sentence.unwrap_or("better than always answering");
    for told in [shown, page, inspected] {
        assert_eq!(told.contains(said), sentence.is_some(), "{said}: {told}");
    }
    (sentence.unwrap_or_default().to_owned(), reasons.join("; "))
}

/// Once it was: a model that had learned nothing was delivered like any other.
#[test]
fn a_model_no_better_than_the_mean_is_said_to_be() {
    let folder = Folder::with("mean", "t.csv", unrelated(400));
    let (sentence, reasons) = doubt(&folder, &["t.csv", "--target", "y", "--columns", "a,b,id,same", "--budget", "2"]);
    assert!(sentence.contains("better than always answering with the mean."), "{sentence}");
    assert!(reasons.contains("the columns may say nothing about y"), "{reasons}");
    assert!(reasons.contains("column same is constant"), "{reasons}");
    assert!(reasons.contains("column id has another whole number in every row"), "{reasons}");
    let scored = folder.good(&["predict", "m.bochner", "t.csv", "--score"]);
    assert!(scored.starts_with("On 400 rows:"), "{scored}");
    // Rows that all are unlike each other at the length scale asked for, under a penalty that leaves nothing.
    let asked = ["--length-scale", "0.0001", "--alpha", "1e9", "--features", "64"];
    let columns = ["t.csv", "--target", "a", "--drop", "class,id,same,b"];
    let (sentence, reasons) = doubt(&folder, &[&columns[..], &asked].concat());
    assert!(sentence.contains("the mean"), "{sentence}");
    assert!(reasons.contains("where every row is unlike all others"), "{reasons}");
    assert!(reasons.contains("the penalty 1000000000 was asked for"), "{reasons}");
}

#[test]
fn a_model_no_better_than_the_commonest_class_is_said_to_be() {
    let folder = Folder::with("class", "t.csv", unrelated(400));
    let (sentence, reasons) = doubt(&folder, &["t.csv", "--target", "class", "--columns", "a,b,same", "--budget", "2"]);
    assert!(sentence.contains("better than always answering with the commonest class."), "{sentence}");
    assert!(reasons.contains("column same is constant"), "{reasons}");
}

#[test]
fn few_rows_of_which_none_is_left_for_a_verdict_are_judged_by_those_of_the_choice() {
    let folder = Folder::with("few", "t.csv", unrelated(40));
    let (sentence, reasons) = doubt(&folder, &["t.csv", "--target", "y", "--columns", "id,a,b,same", "--budget", "2"]);
    assert!(
        sentence.starts_with("The model is no better than always answering with the mean: the least loss"),
        "{sentence}"
    );
    assert!(reasons.contains("the columns may say nothing about y"), "{reasons}");
}

#[test]
fn a_model_that_has_learned_something_is_not_doubted() {
    let rows: String = (0..300).map(|i| format!("{},{}\n", noise(i, 1), (6.0 * noise(i, 1)).sin())).collect();
    let folder = Folder::with("good", "t.csv", format!("x,y\n{rows}"));
    assert_eq!(doubt(&folder, &["t.csv", "--target", "y", "--budget", "2"]), (String::new(), String::new()));
    assert_eq!(folder.json(&["predict", "m.bochner", "t.csv", "--score"])["doubt"], serde_json::Value::Null);
}

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_bochner"));
    program.args(arguments).current_dir(&folder.0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().unwrap()
}

/// Once it was: without a terminal the program said nothing until its end, however long that took.
#[test]
fn without_a_terminal_there_is_a_sign_of_life_every_ten_seconds() {
    let rows: String = (0..60).map(|i| format!("{},{}\n", i % 7, i % 7 * 3)).collect();
    let folder = Folder::with("pipe", "t.csv", format!("x,y\n{rows}"));
    folder.good(&["fit", "t.csv", "--target", "y", "--task", "regression", "--budget", "1", "--out", "m.bochner"]);
    // They wait for rows that do not come; what they do meanwhile does not matter.
    let commands: [&[&str]; 4] = [
        &["predict", "m.bochner", "-"],
        &["fit", "-", "--target", "y"],
        &["transform", "-"],
        &["predict", "m.bochner", "-", "--quiet"],
    ];
    let started = Instant::now();
    let mut programs = commands.map(|arguments| start(&folder, arguments));
    for program in &mut programs {
        program.stdin.as_mut().unwrap().write_all(b"x,y\n1,2\n").unwrap();
    }
    std::thread::sleep(Duration::from_millis(11_500).saturating_sub(started.elapsed()));
    for (mut program, arguments) in programs.into_iter().zip(commands) {
        program.kill().unwrap();
        program.wait().unwrap();
        let mut told = String::new();
        program.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let lines: Vec<&str> = told.lines().collect();
        match arguments.contains(&"--quiet") {
            true => assert_eq!(told, ""),
            false => assert!(lines.len() == 1 && lines[0].starts_with("bochner … "), "{arguments:?}: {told:?}"),
        }
        assert!(!told.contains('\r'), "{told:?}");
        assert!(arguments[0] != "predict" || told.is_empty() || told.contains("predicting for"), "{told}");
    }
}

/// Once it was: `bench` showed nothing until everything was measured.
#[test]
fn a_benchmark_shows_every_line_as_soon_as_it_is_measured() {
    let folder = Folder::new("bench");
    for (format, heading) in [(&[][..], "benchmark"), (&["--csv"][..], "benchmark,case")] {
        let mut program = start(&folder, &[&["bench", "normals", "gram"], format].concat());
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with(heading));
        let first = lines.find(|line| line.starts_with("normals")).unwrap();
        assert!(first.contains("normals") && program.try_wait().unwrap().is_none(), "{first}");
        let rest: Vec<String> = lines.collect();
        assert_eq!(rest.iter().filter(|line| line.starts_with("gram")).count(), 2, "{rest:?}");
        assert!(program.wait().unwrap().success());
    }
}
