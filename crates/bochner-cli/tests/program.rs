//! The program as its users meet it: exit codes, streams, files.

use resvg::tiny_skia::Pixmap;
use std::path::{Path, PathBuf};
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

/// A curved function of one number and a colour.
fn small_table(folder: &Path) -> String {
    let row = |i: usize| {
        format!("{},{},{}\n", i as f64 / 10.0, ["red", "blue"][i % 2], (i as f64 / 10.0).sin() + (i % 2) as f64)
    };
    let file = folder.join("data.csv");
    std::fs::write(&file, (0..60).fold("a,colour,y\n".to_owned(), |text, i| text + &row(i))).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The one sentence of a run that must fail.
fn complaint(arguments: &[&str]) -> String {
    let output = bochner(arguments);
    let message = text(&output.stderr);
    assert!(!output.status.success() && message.trim_end().lines().count() == 1, "{arguments:?}: {message}");
    message
}

#[test]
fn no_output_replaces_an_input_or_another_output() {
    let folder = scratch("apart");
    let data = small_table(&folder);
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (model, link, same, page) = (at("m.bochner"), at("link.csv"), at("same.x"), at("page.html"));
    let fit = ["fit", &data, "--target", "y", "--features", "16", "--length-scale", "1", "--alpha", "0.1"];
    assert!(bochner(&[&fit[..], &["-o", &model]].concat()).status.success());
    #[cfg(unix)]
    std::os::unix::fs::symlink(&data, &link).unwrap();
    #[cfg(not(unix))]
    std::fs::hard_link(&data, &link).unwrap();
    let before = [&data, &model].map(|path| std::fs::read(path).unwrap());
    for (arguments, parts) in [
        (&[&fit[..], &["-o", &data]].concat()[..], ["--out", "the data file"]),
        (&[&fit[..], &["-o", &same, "--checkpoint", &data]].concat(), ["--checkpoint", "the data file"]),
        (&[&fit[..], &["-o", &same, "--report", &link]].concat(), ["--report", "the data file"]),
        (&[&fit[..], &["-o", &same, "--report", &same]].concat(), ["--out", "--report"]),
        (&[&fit[..], &["-o", &same, "--checkpoint", &same]].concat(), ["--out", "--checkpoint"]),
        (
            &[&fit[..], &["-o", &at("x.passes"), "--checkpoint", &at("x")]].concat(),
            ["--out", "the passes of --checkpoint"],
        ),
        (
            &[&fit[..], &["-o", &same, "--report", &at("x.lock"), "--checkpoint", &at("x")]].concat(),
            ["--report", "the lock"],
        ),
        (&["predict", &model, &data, "-o", &data], ["--out", "the data file"]),
        (&["predict", &model, &link, "-o", &data], ["--out", "the data file"]),
        (&["transform", &data, "--drop", "y", "-o", &link], ["--out", "the data file"]),
        (&["compare", &data, "--target", "y", "--report", &data], ["--report", "the data file"]),
        (
            &["demo", "--small", "--out", &at(""), "--report", &at("results.json")],
            ["results.json of --out", "--report"],
        ),
    ] {
        let message = complaint(arguments);
        assert!(message.contains("same file") && parts.iter().all(|part| message.contains(part)), "{message}");
    }
    assert_eq!([&data, &model].map(|path| std::fs::read(path).unwrap()), before);
    assert!(!Path::new(&same).exists());
    assert!(
        bochner(&[&fit[..], &["-o", &model, "--report", &page]].concat()).status.success(),
        "old models are replaced"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn cells_that_a_model_cannot_use_are_told_with_what_helps_and_it_does() {
    let folder = scratch("cells");
    let data = small_table(&folder);
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let model = at("m.bochner");
    let fit =
        ["fit", &data, "--target", "y", "--features", "16", "--length-scale", "1", "--alpha", "0.1", "-o", &model];
    assert!(bochner(&fit).status.success());
    let new = at("new.csv");
    std::fs::write(&new, "a,colour\n1,green\n2,pink\n3,red\n").unwrap();
    for command in [&["predict", &model, &new][..], &["transform", &new, "--model", &model]] {
        let output = bochner(command);
        assert!(output.status.success() && text(&output.stdout).lines().count() == 4, "{}", text(&output.stderr));
        let told = text(&output.stderr);
        assert!(told.contains("line 2, column 2 (colour)") && told.contains("one other cell"), "{told}");
        assert_eq!(told.lines().count(), 1);
    }
    assert!(bochner(&["predict", &model, &new, "-q"]).stderr.is_empty());
    // Who wants to know of every such word before anything is answered, hears of it; their rows have no answer, but a place.
    let output = bochner(&["predict", &model, &new, "--unknown-words", "refuse"]);
    let (answers, told) = (text(&output.stdout), text(&output.stderr));
    assert!(told.contains("the word \"green\" did not occur in training; --unknown-words zeros"), "{told}");
    assert_eq!(answers.lines().map(|line| line == "\"\"").collect::<Vec<_>>(), [false, true, true, false], "{answers}");
    assert!(complaint(&["transform", &new, "--model", &model, "--unknown-words", "refuse"]).contains("\"green\""));

    // Gaps get the median of the training rows, and that is told; cells that nobody understands leave a row without an answer.
    std::fs::write(&new, "a,colour\n,red\n1,blue\nsoon,red\n2,blue\n").unwrap();
    let output = bochner(&["predict", &model, &new]);
    let (answers, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        answers.lines().map(|line| line == "\"\"").collect::<Vec<_>>(),
        [false, false, false, true, false],
        "{answers}"
    );
    assert!(told.contains("line 2, column 1 (a): the value is missing, as none was in training"), "{told}");
    assert!(
        told.contains("line 4, column 1 (a): expected a number, found \"soon\": such rows have no answer"),
        "{told}"
    );

    assert!(bochner(&[&fit[..], &["--impute", "refuse"]].concat()).status.success());
    std::fs::write(&new, "a,colour\n,red\n").unwrap();
    let message = text(&bochner(&["predict", &model, &new]).stderr);
    assert!(
        message.contains("line 2, column 1 (a): the value is missing, and the model was trained on rows without gaps")
    );
    assert!(message.contains("--impute mean") && message.contains("--impute zero"), "{message}");
    let predicted = |more: &[&str]| text(&bochner(&[&["predict", &model, &new], more].concat()).stdout);
    let (mean, zero) = (predicted(&["--impute", "mean"]), predicted(&["--impute", "zero"]));
    std::fs::write(&new, "a,colour\n2.95,red\n").unwrap();
    assert_eq!(predicted(&[]), mean);
    std::fs::write(&new, "a,colour\n0,red\n").unwrap();
    assert_eq!(predicted(&[]), zero);

    // Without means nobody is told to use them.
    assert!(bochner(&[&fit[..], &["--preprocess", "none", "--impute", "refuse"]].concat()).status.success());
    std::fs::write(&new, "a,colour\n,red\n").unwrap();
    let message = text(&bochner(&["predict", &model, &new]).stderr);
    assert!(!message.contains("--impute mean") && message.contains("--impute zero"), "{message}");
    assert!(complaint(&["predict", &model, &new, "--impute", "mean"]).contains("--impute zero needs none"));

    // Targets are not filled in; numbers may be too large.
    std::fs::write(&new, "a,y\n1,2\n2,\n3,4\n").unwrap();
    assert!(complaint(&["fit", &new, "--target", "y", "--impute", "mean"]).contains("targets are not filled in"));
    for (table, place) in
        [("a,y\n1,2\n1e300,4\n3,5\n", "line 3, column 1 (a)"), ("a,y\n1,2\n4,1e300\n3,5\n", "line 3, column 2 (y)")]
    {
        std::fs::write(&new, table).unwrap();
        let message = complaint(&["fit", &new, "--target", "y", "-o", &at("x.bochner"), "--precision", "single"]);
        let end = "the number 1e300 is too large for single precision; --precision double reads it\n";
        assert!(message.contains(place) && message.ends_with(end), "{message}");
        let message = complaint(&["fit", &new, "--target", "y", "-o", &at("x.bochner"), "--precision", "double"]);
        assert!(message.contains(place) && message.contains("1e150"), "{message}");
    }
    std::fs::write(&new, "a,colour\n1e300,red\n").unwrap();
    let told = text(&bochner(&["predict", &model, &new]).stderr);
    assert!(told.contains("line 2, column 1 (a): the number 1e300 is too large"), "{told}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn rows_on_standard_input_are_answered_before_the_next_ones_come() {
    use std::io::{BufRead, BufReader, Write};
    let folder = scratch("stream");
    let data = small_table(&folder);
    let model = folder.join("m.bochner").to_str().unwrap().to_owned();
    let fit =
        ["fit", &data, "--target", "y", "--features", "16", "--length-scale", "1", "--alpha", "0.1", "-o", &model];
    assert!(bochner(&fit).status.success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_bochner"))
        .args(["predict", &model, "-"])
        .env("TMPDIR", folder.join("not there"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut rows, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines();
    rows.write_all(b"colour,a\n").unwrap();
    for i in 0..3 {
        writeln!(rows, "red,{i}").unwrap();
        rows.flush().unwrap();
        // The answer comes although the input has not ended: this would wait for ever.
        if i == 0 {
            assert_eq!(answers.next().unwrap().unwrap(), "y");
        }
        assert!(answers.next().unwrap().unwrap().parse::<f64>().is_ok());
    }
    drop(rows);
    assert!(answers.next().is_none() && child.wait().unwrap().success());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_download_that_fails_leaves_no_folder_behind() {
    let folder = scratch("fetch");
    let data = folder.join("new/data");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let from = format!("http://127.0.0.1:{port}");
    let message = complaint(&["data", "fetch", "boston", "--data", data.to_str().unwrap(), "--from", &from]);
    assert!(message.contains(&format!("{from}/boston/data.csv.gz could not be reached: ")), "{message}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_target_of_a_table_is_no_input_of_a_plan() {
    let folder = scratch("plan-target");
    let file = folder.join("table.csv");
    let rows = (0..40)
        .map(|i: u32| format!("{},{},{}\n", i * i % 17, i * 7 % 11, if i.is_multiple_of(3) { "yes" } else { "no" }));
    std::fs::write(&file, format!("a,b,label\n{}", rows.collect::<String>())).unwrap();
    let plan = |option: &str| {
        let output = bochner(&["plan", file.to_str().unwrap(), option, "label", "--error", "0.3", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = answer["maps"].as_array().unwrap();
        // Times, which differ from run to run, decide about the order.
        let mut told: Vec<_> = rows.iter().map(|row| format!("{} {}", row["map"], row["features"])).collect();
        told.sort();
        told
    };
    assert_eq!(plan("--target"), plan("--drop"));
    let (table, plot) = (file.to_str().unwrap(), folder.join("costs.svg"));
    let output = bochner(&["plan", table, "--target", "label", "--error", "0.3", "--plot", plot.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let drawn = std::fs::read_to_string(&plot).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains("Fourier, dense"), "{drawn}");
    let pixels = folder.join("costs.png");
    let output = bochner(&["plan", table, "--target", "label", "--error", "0.3", "--plot", pixels.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    is_drawn(&pixels);
    for name in ["costs.pdf", "costs", "costs.png.gz"] {
        let output = bochner(&["plan", table, "--plot", name]);
        assert_eq!(output.status.code(), Some(2));
        let message = text(&output.stderr);
        assert_eq!(message, format!("bochner: --plot {name}: plots are .svg or .png files\n"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A PNG of a line plot, 760 x 440 units of two pixels each, with something in every margin and in the middle.
fn is_drawn(path: &Path) {
    let file = std::fs::read(path).unwrap();
    assert_eq!(file[..8], *b"\x89PNG\r\n\x1a\n", "{}", path.display());
    let pixels = Pixmap::decode_png(&file).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (1520, 880), "{}", path.display());
    let is_ink = |x: u32, y: u32| pixels.pixel(x, y).is_some_and(|p| p.red().min(p.green()).min(p.blue()) < 200);
    for (what, x, y) in [
        ("title", 32..600, 20..64),
        ("numbers on the left", 60..150, 130..800),
        ("label on the left", 10..50, 200..700),
        ("label below", 300..1100, 830..870),
        ("marks", 164..1100, 150..750),
        ("names", 1000..1518, 130..780),
    ] {
        let ink = y.flat_map(|y| x.clone().map(move |x| (x, y))).filter(|&(x, y)| is_ink(x, y)).count();
        // Two letters of a usual label, or one mark.
        assert!(ink > 80, "{}: {ink} pixels of {what}", path.display());
    }
    assert!((0..880).all(|y| !is_ink(0, y) && !is_ink(1519, y)), "{}: cut at the border", path.display());
}

#[test]
fn folders_have_plots_of_the_kind_that_is_asked_for() {
    let folder = scratch("plots-kind");
    let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let plots = |path: &str| {
        let names = std::fs::read_dir(path).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.ends_with("svg") || name.ends_with("png")).collect();
        names.sort();
        names
    };
    let good = |arguments: &[&str]| {
        let output = bochner(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    };
    let out = place("demo");
    good(&["demo", "--small", "--out", &out, "--plots", "png"]);
    assert_eq!(plots(&out), ["accuracy.png", "kernel-error.png", "rows.png"]);
    plots(&out).iter().for_each(|name| is_drawn(&Path::new(&out).join(name)));

    let out = place("reproduce");
    good(&["reproduce", "attention", "--quick", "--draws", "1", "--out", &out, "--plots", "png"]);
    let out = format!("{out}/attention");
    assert!(!plots(&out).is_empty() && plots(&out).iter().all(|name| name.ends_with(".png")));
    plots(&out).iter().for_each(|name| is_drawn(&Path::new(&out).join(name)));

    let table = place("table.csv");
    let rows: String = (0..60).map(|i| format!("{},{}\n", i * i % 17, i * 7 % 11)).collect();
    std::fs::write(&table, format!("a,b\n{rows}")).unwrap();
    for (kind, names) in [
        (&["--plots", "png"][..], ["error-features.png", "error-time.png"]),
        (&[], ["error-features.svg", "error-time.svg"]),
    ] {
        let out = place(&format!("compare{}", kind.len()));
        good(&[&["compare", &table, "--features", "16,64", "--draws", "2", "--out", &out], kind].concat());
        assert_eq!(plots(&out), names);
        plots(&out).iter().filter(|n| n.ends_with("png")).for_each(|name| is_drawn(&Path::new(&out).join(name)));
    }
    for (more, part) in [(&["--plots", "png"][..], "the folder of --out"), (&["--plots", "gif"], "svg, png")] {
        let output = bochner(&[&["compare", &table], more].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn pages_go_where_they_are_asked_to() {
    let folder = scratch("pages-asked");
    let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (out, page) = (place("out"), place("page.html"));
    let output = bochner(&["demo", "--small", "--out", &out, "--report", &page]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(&page));
    assert!(std::fs::read_to_string(&page).unwrap().contains("</html>"));
    assert!(!folder.join("out/report.html").exists());
    let output = bochner(&["reproduce", "attention", "--quick", "--draws", "1", "--out", &out, "--report", &page]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(std::fs::read_to_string(&page).unwrap().contains("attention"));
    for name in [&["all"][..], &[]] {
        let output = bochner(&[&["reproduce"], name, &["--report", &page]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("is the page of one experiment"), "{}", text(&output.stderr));
    }
    let output = bochner(&["reproduce", "attention", "--quick", "--paper", "--out", &out]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--paper"), "{}", text(&output.stderr));
    std::fs::remove_dir_all(folder).unwrap();
}

/// `reproduce --scorecard` runs nothing, and reads what `--keep` has written.
#[test]
fn the_scorecard_lists_published_numbers_from_stored_results() {
    let folder = scratch("scorecard");
    let place = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (out, keep, page) = (place("out"), place("kept"), place("page.html"));
    let good = |arguments: &[&str]| {
        let output = bochner(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let told = good(&["reproduce", "--scorecard", "--report", &page]);
    assert!(told.contains("comparable numbers are within noise or better") && told.contains("not run"), "{told}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("Verdicts by paper"));
    let card: serde_json::Value = serde_json::from_str(&good(&["reproduce", "kid", "--scorecard", "--json"])).unwrap();
    assert!(card["rows"].as_array().unwrap().iter().all(|row| row["experiment"] == "kid"));
    // Attention has no published numbers, and is run in no time.
    let run = ["reproduce", "attention", "--quick", "--set", "rows=64", "--draws", "1", "--data", &keep];
    good(&[&run[..], &["--out", &out, "--keep", &keep]].concat());
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("kept/attention.json")).unwrap()).unwrap();
    assert_eq!((&kept["set"]["rows"], &kept["draws"], &kept["size"]), (&64.into(), &1.into(), &"quick".into()));
    assert!(good(&["reproduce", "--scorecard", "--keep", &keep]).contains("not run"));
    for (arguments, part) in [
        (&["reproduce", "kid", "--set", "row=3"][..], "has no such setting"),
        (&["reproduce", "all", "--set", "rows=3"], "name one"),
        (&["reproduce", "--scorecard", "--keep", &out], "--keep FOLDER writes them"),
        (&["reproduce", "--scorecard", "--quick"], "cannot be used"),
    ] {
        let output = bochner(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(part), "{arguments:?}: {}", text(&output.stderr));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Rows of 64 columns with three numbers in each: `plan --sparse` finds them and computes both theorems' bounds.
#[test]
fn sparse_rows_are_recognised_and_bounded() {
    let folder = scratch("sparse");
    let mut table: String = (1..=64).map(|j| format!("c{j}{}", if j < 64 { "," } else { "\n" })).collect();
    for i in 0..40usize {
        let row: Vec<&str> =
            (0..64).map(|j| if j == i || j == (i + 9) % 64 || j == (2 * i + 31) % 64 { "1" } else { "0" }).collect();
        table += &format!("{}\n", row.join(","));
    }
    let file = folder.join("sparse.csv");
    std::fs::write(&file, table).unwrap();
    let plan = |more: &[&str]| {
        let arguments = [&["plan", file.to_str().unwrap(), "--sparse", "--length-scale", "2"], more].concat();
        bochner(&arguments)
    };
    let output = plan(&["--error", "0.5", "--failure", "0.1", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json["bases"].as_array().unwrap();
    assert_eq!((rows.len(), &json["length_scale"], &json["target_error"]), (4, &2.0.into(), &0.5.into()));
    assert_eq!(rows[0]["basis"], "columns");
    assert_eq!((&rows[0]["k_median"], &rows[0]["k_worst"]), (&3.into(), &3.into()));
    assert!(rows.iter().skip(1).all(|row| row["k_worst"].as_u64().unwrap() > 3), "{json}");
    // The first theorem by hand: z = 6, σ = √64/2, Δ = 2√3.
    let (z, e) = (6.0f64, std::f64::consts::E);
    let prefactor = 4.0 * e * 64.0 * 4.0 * (2.0 * 3f64.sqrt()) / z;
    let needed = 4.0 * (z + 2.0) / 0.25 * ((3.0f64 / 0.1).ln() + 2.0 * z / (z + 2.0) * (prefactor / 0.5).ln());
    assert_eq!(rows[0]["frequencies"].as_f64().unwrap(), needed.ceil());
    let m = rows[0]["measurements"].as_f64().unwrap();
    let delta = 0.5 * 2.0 * 0.5f64.exp() / (2.0 * 2.0 * 3f64.sqrt());
    let net = z * ((12.0 / delta).ln() + (e * 64.0 / z).ln());
    assert_eq!(m, (((4.0f64 / 0.1).ln() + net) / (delta * delta / 16.0 - delta.powi(3) / 48.0)).ceil());
    let told = text(&plan(&[]).stdout);
    assert!(told.contains("Haar wavelets") && told.contains("k-sparse"), "{told}");
    let csv = text(&plan(&["--csv"]).stdout);
    assert_eq!(csv.lines().count(), 5);
    for (more, part) in [
        (&["--kernel", "matern"][..], "Gaussian kernel"),
        (&["--energy", "101%"], "below 1"),
        (&["--shape", "7x7"], "49"),
        (&["--shape", "7"], "28x28"),
    ] {
        let output = plan(more);
        assert!(!output.status.success() && text(&output.stderr).contains(part), "{}", text(&output.stderr));
    }
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
        assert!(text(&output.stderr).lines().all(|line| line.starts_with("bochner … ")), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("Open "));
        let mut names: Vec<_> =
            std::fs::read_dir(&out).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["accuracy.svg", "kernel-error.svg", "report.html", "results.json", "rows.svg"]);
        let mut json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
        forget_times(&mut json);
        results.push(json);
    }
    assert_eq!(results[0], results[1], "same seed, same numbers");
    for row in results[0]["kernel_error"].as_array().unwrap() {
        // Four draws of a few hundred features: far from exact, but a lost factor of √2 would show.
        let ratio = row["error"].as_f64().unwrap() / row["predicted"].as_f64().unwrap();
        assert!((0.75..1.33).contains(&ratio), "{row}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn forget_times(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            // What a fit holds depends on the threads.
            fields.retain(|key, _| !key.contains("seconds") && key != "threads" && key != "bytes");
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
