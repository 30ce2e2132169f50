//! What people and programs are told: the words, tables, plots and pages of commands.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_bochner"));
    program.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// What a command prints, if it succeeds.
fn told(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&told(folder, &[arguments, &["--json"]].concat())).unwrap()
}

/// What a command complains about.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// A folder with a table whose columns have very different units: `a` up to 1, `b` up to 1000, classes in words and numbers.
fn tables(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bochner-presentation-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut text = String::from("a,b,kind,digit\n");
    for i in 0..300u32 {
        let (a, b) = ((f64::from(i) * 0.7).sin(), 1000.0 * (f64::from(i) * 0.3).cos());
        writeln!(text, "{a},{b},{},{}", if a * b > 0.0 { "yes" } else { "no" }, i % 3).unwrap();
    }
    std::fs::write(folder.join("t.csv"), text).unwrap();
    folder
}

const SMALL: [&str; 6] = ["--features", "16", "--draws", "2", "--rows", "60"];

#[test]
fn a_plan_is_made_for_the_rows_that_a_fit_would_see() {
    let folder = tables("preparation");
    let fit = ["fit", "t.csv", "--target", "kind", "--drop", "digit", "--features", "64", "--alpha", "1"];
    let plan = ["plan", "t.csv", "--target", "kind", "--drop", "digit", "--error", "0.3"];
    let step = "column means are subtracted, and columns divided by their standard deviations";
    assert!(told(&folder, &fit).contains(step));
    let words = told(&folder, &plan);
    assert!(words.contains(&format!("\nRows: {step}.\n")), "{words}");
    // Two standardised columns: the median of |x - y| is near 2, and far from the hundreds of b.
    let scale = json(&folder, &plan)["length_scale"].as_f64().unwrap();
    assert!((1.0..3.0).contains(&scale), "{scale}");
    let compare = [&["compare", "t.csv", "--target", "kind", "--drop", "digit"], &SMALL[..]].concat();
    let words = told(&folder, &compare);
    assert!(words.contains(step), "{words}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn preparations_have_the_same_names_everywhere() {
    let folder = tables("names");
    for (names, step) in [
        (&["scale", "standardize", "standardise"][..], "standard deviations"),
        (&["centre", "center", "centred"], "column means are subtracted"),
        (&["unit", "unit-norm"], "rows are scaled to length one"),
        (&["binarise", "binarize"], "numbers above 0.2 become 1"),
        (&["non-negative"], "column minima are subtracted"),
        (&["none"], ""),
    ] {
        for &name in names {
            let asked = ["--preprocess", name, "--threshold", "0.2"];
            let columns = ["t.csv", "--target", "kind", "--drop", "digit"];
            let fit = [
                &["fit"],
                &columns[..],
                &asked,
                &["--features", "8", "--alpha", "1", "--length-scale", "1", "--map", "fourier"],
            ]
            .concat();
            assert!(told(&folder, &fit).contains(step), "fit {name}");
            let compare = [&["compare"], &columns[..], &asked, &SMALL].concat();
            let answer = json(&folder, &compare);
            assert!(answer["preparation"].as_str().unwrap().contains(step), "compare {name}: {answer}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_plan_tells_programs_what_it_was_asked() {
    let folder = tables("facts");
    let plan = ["plan", "t.csv", "--columns", "a", "--error", "20%"];
    let answer = json(&folder, &[&plan[..], &["--kernel", "matern", "--nu", "2.5", "--length-scale", "2"]].concat());
    for (field, value) in [("length_scale", 2.0), ("nu", 2.5), ("target_error", 0.2), ("total_rows", 300.0)] {
        assert_eq!(answer[field].as_f64(), Some(value), "{field}: {answer}");
    }
    assert_eq!((&answer["kernel"], &answer["columns"]), (&"matern".into(), &1.into()));
    assert!(answer["maps"][0]["features"].is_u64(), "{answer}");
    let csv = told(&folder, &[&plan[..], &["--csv"]].concat());
    let (header, first) = (csv.lines().next().unwrap(), csv.lines().nth(1).unwrap());
    assert!(header.contains(",kernel,length_scale,") && header.ends_with(",target_error"), "{header}");
    assert!(first.contains(",gaussian,") && first.ends_with(",0.2"), "{first}");
    let words = told(&folder, &plan);
    assert!(words.contains("300 rows of 1 column to a relative error of 20.0 %"), "{words}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_error_that_a_plan_measured_is_one_number() {
    let folder = tables("measured");
    let words = told(&folder, &["plan", "t.csv", "--columns", "a,b", "--error", "0.2"]);
    let sentence = words.lines().find(|line| line.contains("is the fastest")).unwrap();
    let error = sentence.split(" draws measured ").nth(1).unwrap().split(" %").next().unwrap();
    let row = words.lines().nth(4).unwrap();
    assert!(row.contains(&format!(" {error} % ")) && sentence.contains("in root mean square"), "{words}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn one_draw_has_no_deviation_and_parameters_belong_to_their_kernel() {
    let folder = tables("draws");
    let compare = ["compare", "t.csv", "--columns", "a,b", "--features", "16", "--draws", "1", "--rows", "60"];
    let words = told(&folder, &compare);
    assert!(words.lines().filter(|line| line.contains("closed form")).all(|line| line.contains(" – ")), "{words}");
    assert!(json(&folder, &compare)["maps"][0]["deviation"].is_null());
    for command in ["plan", "compare"] {
        for (option, value, kernel, needed) in [
            ("--degree", "5", "gaussian", "polynomial"),
            ("--coef0", "1", "matern", "polynomial"),
            ("--nu", "1.5", "laplacian", "matern"),
            ("--exponent", "2", "polynomial", "optical"),
            ("--length-scale", "2", "polynomial", "gaussian, laplacian, matern, exponential"),
        ] {
            let message = refused(&folder, &[command, "t.csv", "--kernel", kernel, option, value]);
            let expected = format!("bochner: {option} goes with --kernel {needed}; the kernel is {kernel}\n");
            assert_eq!(message, expected);
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn plots_of_classes_carry_their_names() {
    let folder = tables("classes");
    for (target, other, names) in [("kind", "digit", &["no", "yes"][..]), ("digit", "kind", &["0", "1", "2"])] {
        let fit = ["fit", "t.csv", "--target", target, "--drop", other, "--features", "64", "--alpha", "1"];
        told(&folder, &[&fit[..], &["--length-scale", "1", "--plot", "classes.svg"]].concat());
        let plot = std::fs::read_to_string(folder.join("classes.svg")).unwrap();
        let below: Vec<&str> = plot
            .lines()
            .filter(|line| line.contains("class=\"soft\"") && line.contains("text-anchor=\"middle\""))
            .map(|line| line.split('>').nth(1).unwrap().split('<').next().unwrap())
            .collect();
        assert_eq!(below, names, "{target}");
        assert!(plot.contains("on 30 rows that had no part in the fit") && !plot.contains("order of the table"));
        assert!(!plot.contains("−") && !plot.contains("120 %"), "shares stay between 0 and 1");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_model_is_explained_with_the_parameters_of_its_kernel() {
    let folder = tables("inspect");
    for (options, parts) in [
        (&["--kernel", "polynomial", "--set", "degree=4"][..], &["degree 4", "gamma 1", "coef0 1"][..]),
        (&["--kernel", "matern", "--set", "nu=2.5"], &["nu 2.5"]),
        (&["--kernel", "optical"], &["exponent 2", "bias 1"]),
    ] {
        let fit = ["fit", "t.csv", "--target", "a", "--columns", "b", "--out", "m.bochner", "--alpha", "1"];
        told(&folder, &[&fit[..], &["--features", "32"], options].concat());
        let words = told(&folder, &["inspect", "m.bochner"]);
        parts.iter().for_each(|part| assert!(words.contains(part), "{words}"));
        assert!(words.contains("1 column: b"), "{words}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_help_of_plan_and_compare_has_kernels_below_their_own_heading() {
    for command in ["plan", "compare"] {
        let help = told(&std::env::temp_dir(), &[command, "-h"]);
        let below = |heading: &str| {
            let part = help.split(&format!("\n{heading}:\n")).nth(1).unwrap_or_else(|| panic!("{heading} in {help}"));
            part.split("\n\n").next().unwrap().to_owned()
        };
        assert!(below("Kernel").contains("--kernel") && below("Kernel").contains("--degree"));
        assert!(below("Rows").contains("--preprocess") && below("Arguments").contains("<DATA>"));
        assert!(below("Options").contains("--json") && below("Options").contains("--draws"));
        assert!(below("Reading").contains("--separator") && !below("Reading").contains("--kernel"));
    }
}

#[test]
fn the_list_of_experiments_fits_a_terminal() {
    let list = told(&std::env::temp_dir(), &["reproduce"]);
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    assert!(list.contains("attention") && list.contains("variance-ratios"));
}
