//! What people and programs are told: the words, tables, plots and pages of commands.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_bochner"));
    let free = arguments.first() == Some(&"fit") && !arguments.contains(&"--help");
    let brief: &[&str] = if free { &["--budget", "1"] } else { &[] };
    program.args(arguments).args(brief).current_dir(folder).stdin(Stdio::null()).output().unwrap()
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
    let fit = [
        "fit",
        "t.csv",
        "--target",
        "kind",
        "--drop",
        "digit",
        "--features",
        "64",
        "--alpha",
        "1",
        "--kernel",
        "gaussian",
    ];
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
            ("--degree", "5", "gaussian", "polynomial, spherical"),
            ("--a", "3", "polynomial", "spherical"),
            ("--compressed-dim", "1", "gaussian", "compressive"),
            ("--coef0", "1", "matern", "polynomial"),
            ("--nu", "1.5", "laplacian", "matern, decomposable, curl_free, divergence_free, helmholtz"),
            ("--exponent", "2", "polynomial", "optical"),
            (
                "--length-scale",
                "2",
                "polynomial",
                "gaussian, laplacian, matern, exponential, compressive, low_order, decomposable, curl_free, divergence_free, \
                 helmholtz",
            ),
            ("--exponent", "2", "curl_free", "optical"),
            ("--set", "curl_free=0.3", "gaussian", "helmholtz"),
        ] {
            let message = refused(&folder, &[command, "t.csv", "--kernel", kernel, option, value]);
            let option = if option == "--set" { "--set curl_free" } else { option };
            let expected = format!("bochner: {option} goes with --kernel {needed}; the kernel is {kernel}\n");
            assert_eq!(message, expected);
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn spherical_and_compressive_kernels_have_plans_and_comparisons() {
    let folder = tables("limits");
    let with = |command: &str, options: &[&str]| {
        let base = [command, "t.csv", "--columns", "a,b", "--rows", "40", "--draws", "2"];
        let some: &[&str] = if command == "plan" { &["--error", "0.3"] } else { &["--features", "64"] };
        json(&folder, &[&base, some, options].concat())
    };
    for command in ["plan", "compare"] {
        let found = with(command, &["--kernel", "spherical", "--a", "3", "--degree", "4"]);
        assert_eq!((&found["a"], &found["degree"]), (&3.0.into(), &4.into()));
        assert_eq!(found["preparation"], "rows are scaled to length one");
        assert!(found["maps"].as_array().unwrap().iter().any(|m| m["map"] == "spherical, dense"), "{found}");
        let found = with(command, &["--kernel", "compressive", "--compressed-dim", "1", "--length-scale", "10"]);
        assert_eq!((&found["input_dim"], &found["output_dim"]), (&2.into(), &1.into()));
        assert!(found["maps"][0]["map"].as_str().unwrap().starts_with("compressive"), "{found}");
        let message =
            refused(&folder, &[command, "t.csv", "--columns", "a", "--kernel", "spherical", "--preprocess", "none"]);
        assert!(message.contains("rows of length one; use unit"), "{message}");
        let many = ["--columns", "a,b", "--kernel", "compressive", "--compressed-dim", "3"];
        let message = refused(&folder, &[&[command, "t.csv"], &many[..]].concat());
        let now = "bochner: --compressed-dim is now --set compressed_dim=3\n";
        let sentence = "bochner: --set compressed_dim=3: expected a number from 1 to 2, that of the columns\n";
        assert_eq!(message, format!("{now}{sentence}"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

const FIELDS: [&str; 3] = ["curl_free", "divergence_free", "helmholtz"];

/// A folder with a flow around the origin: places whose coordinates have different spreads, and its velocity there.
fn flow(name: &str) -> PathBuf {
    let folder = tables(name);
    let mut text = String::from("x,y,u,v\n");
    for i in 0..150u32 {
        let (x, y) = (3.0 * (f64::from(i) * 0.7).sin(), (f64::from(i) * 0.3).cos());
        writeln!(text, "{x},{y},{},{}", -y * (-x * x / 4.0).exp(), x * (-y * y).exp() + y).unwrap();
    }
    std::fs::write(folder.join("flow.csv"), text).unwrap();
    folder
}

#[test]
fn operator_valued_kernels_are_compared_and_planned_for_like_others() {
    let folder = flow("operators");
    let number =
        |value: &serde_json::Value, field: &str| value[field].as_f64().unwrap_or_else(|| panic!("{field}: {value}"));
    for kernel in [&FIELDS[..], &["decomposable"]].concat() {
        let is_field = kernel != "decomposable";
        let asked = ["flow.csv", "--target", "u,v", "--kernel", kernel, "--draws", "40"];
        let compared = |features: &str| json(&folder, &[&["compare"], &asked[..], &["--features", features]].concat());
        let answer = compared("32,64");
        assert_eq!((&answer["kernel"], &answer["columns"]), (&kernel.into(), &2.into()), "{answer}");
        assert_eq!((&answer["sample_rows"], &answer["total_rows"]), (&150.into(), &150.into()));
        let steps = answer["preparation"].as_str().unwrap();
        assert!(steps.contains("column means are subtracted") && steps.contains("divided") != is_field, "{steps}");
        let maps = answer["maps"].as_array().unwrap();
        let order: Vec<String> = maps.iter().map(|row| format!("{} {}", row["map"], row["features"])).collect();
        let ways = ["dense", "orthogonal", "SORF"];
        let expected = ways.iter().flat_map(|way| [32, 64].map(|n| format!("\"Fourier, {way}\" {n}")));
        assert_eq!(order, expected.collect::<Vec<_>>());
        // What is predicted is a root mean square over draws; by how much that of 40 draws may be off follows from their
        // deviation. Six standard errors.
        let root_mean_square = |row: &serde_json::Value| {
            let (mean, deviation) = (number(row, "error"), number(row, "deviation"));
            ((mean * mean + deviation * deviation * 39.0 / 40.0).sqrt(), 6.0 * deviation / 40f64.sqrt())
        };
        for (i, row) in maps.iter().enumerate() {
            if is_field && i >= 2 {
                assert!(row["predicted"].is_null() && row["prediction"] == "none", "{kernel}: {row}");
            } else if i < 2 {
                assert_eq!(row["prediction"], "closed form");
                let (measured, allowed) = root_mean_square(row);
                assert!(
                    (measured - number(row, "predicted")).abs() < allowed,
                    "{kernel}: {measured} ± {allowed}, {row}"
                );
            }
            assert!(number(row, "error") > 0.0 && number(row, "seconds") > 0.0);
        }
        let plan = [&["plan"], &asked[..], &["--error", "20%"]].concat();
        let answer = json(&folder, &plan);
        assert_eq!((&answer["kernel"], number(&answer, "target_error")), (&kernel.into(), 0.2));
        let choices = answer["maps"].as_array().unwrap();
        // Nothing is known of Hadamard chains of two columns.
        assert_eq!(choices.len(), if is_field { 1 } else { 2 }, "{answer}");
        assert!(choices.iter().all(|choice| number(choice, "predicted") <= 0.2), "{answer}");
        let dense = choices.iter().find(|choice| choice["map"] == "Fourier, dense").unwrap();
        // Variances fall like one over the number of frequencies. Scalar kernels are searched to one percent.
        let features = number(dense, "features");
        let needed = 2.0 * (16.0 * (number(&maps[0], "predicted") / 0.2).powi(2)).ceil();
        assert!(features == needed || (!is_field && (features / needed - 1.0).abs() < 0.02), "{features}, {needed}");
        let bytes = if is_field { 2.0 * 4.0 + 4.0 * 8.0 } else { 2.0 * 4.0 };
        assert_eq!(number(dense, "map_bytes"), bytes * (features / 2.0).floor());
        assert_eq!(number(dense, "feature_bytes"), 150.0 * 4.0 * 2.0 * (features / 2.0).floor());
        // The same seeds are drawn by both commands.
        let first = &choices[0];
        let again = compared(&first["features"].to_string());
        let row = again["maps"].as_array().unwrap().iter().find(|row| row["map"] == first["map"]).unwrap();
        let (measured, _) = root_mean_square(row);
        assert!((number(first, "measured") / measured - 1.0).abs() < 1e-9, "{kernel}: {first}, {row}");

        let words = told(&folder, &plan);
        assert!(words.contains(": 150 rows of 2 columns to a relative error of 20.0 %"), "{words}");
        let left_out = words.matches(" was left out: ").count();
        assert_eq!(left_out, if is_field { 2 } else { 1 }, "{words}");
        let few = told(&folder, &[&plan[..], &["--most-features", "4"]].concat());
        assert!(few.contains("Fourier, dense does not get there: ") && few.contains(" % with 4 features."), "{few}");
        let csv = told(&folder, &[&plan[..], &["--csv"]].concat());
        assert_eq!(csv.lines().count(), 1 + choices.len(), "{csv}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn operator_valued_kernels_are_drawn_and_put_on_pages() {
    let folder = flow("operator-plots");
    let compare = ["compare", "flow.csv", "--target", "u,v", "--kernel", "helmholtz", "--set", "curl_free=0.25"];
    let words =
        told(&folder, &[&compare[..], &SMALL, &["--out", "out", "--plots", "png", "--report", "page.html"]].concat());
    assert!(
        words.starts_with("Helmholtz kernel, 25 % curl-free, length scale ") && words.contains("not known"),
        "{words}"
    );
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains("Helmholtz kernel, 25 % curl-free") && page.contains("Fourier, SORF"));
    let results = std::fs::read_to_string(folder.join("out/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    assert_eq!((&results["curl_free"], results["maps"].as_array().unwrap().len()), (&0.25.into(), 3));
    for name in ["out/error-features.png", "out/error-time.png"] {
        assert!(std::fs::read(folder.join(name)).unwrap().starts_with(b"\x89PNG"), "{name}");
    }
    let plan = ["plan", "flow.csv", "--target", "u,v", "--kernel", "div-free", "--error", "0.3", "--plot", "costs.svg"];
    assert!(told(&folder, &plan).starts_with("divergence-free kernel, length scale "));
    assert!(std::fs::read_to_string(folder.join("costs.svg")).unwrap().contains("Fourier, dense"));
    // Places alone are enough for a field.
    let alone =
        json(&folder, &[&["compare", "flow.csv", "--columns", "x,y", "--kernel", "curl-free"], &SMALL[..]].concat());
    assert_eq!((&alone["kernel"], &alone["columns"]), (&"curl_free".into(), &2.into()));
    // Blocks of 30 x 30 for all pairs of 120 rows are more than 64 MB.
    let wide: String =
        (0..120).map(|i| (0..30).map(|j| format!("{},", (i * j) % 17)).collect::<String>() + "0\n").collect();
    std::fs::write(folder.join("wide.csv"), wide).unwrap();
    let wide = ["compare", "wide.csv", "--drop", "31", "--kernel", "curl_free", "--features", "8", "--draws", "1"];
    let (words, answer) = (told(&folder, &wide), json(&folder, &wide));
    assert!(
        words.contains(" on 60 rows of 30 columns") && words.contains("Of the 120 in the sample 60 are"),
        "{words}"
    );
    assert_eq!((&answer["sample_rows"], &answer["total_rows"]), (&60.into(), &120.into()));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn related_outputs_have_the_matrix_that_a_fit_would_give_them() {
    let folder = flow("matrix");
    let asked = ["flow.csv", "--target", "u,v", "--kernel", "decomposable"];
    let matrix = |set: &[&str]| -> Vec<Vec<f64>> {
        let answer = json(&folder, &[&["compare"], &asked[..], &SMALL, set].concat());
        serde_json::from_value(answer["matrix"].clone()).unwrap_or_else(|e| panic!("{e}: {answer}"))
    };
    // A fit leaves the rows out that it scores, and their correlations are others by a little.
    let fit = [&["fit"], &asked[..], &["--features", "16", "--alpha", "1", "--length-scale", "1", "--json"]].concat();
    let fitted: serde_json::Value = serde_json::from_str(&told(&folder, &fit)).unwrap();
    let fitted: Vec<Vec<f64>> = serde_json::from_value(fitted["map"]["kernel"]["matrix"].clone()).unwrap();
    let found = matrix(&[]);
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        // 135 rows of 150: a correlation has a standard deviation of at most 1/√135 around the true one.
        assert!(
            (found[i][j] - fitted[i][j]).abs() < if i == j { 1e-9 } else { 2.0 / 135f64.sqrt() },
            "{found:?} {fitted:?}"
        );
    }
    assert_eq!(matrix(&["--set", "matrix=identity"]), [[1.0, 0.0], [0.0, 1.0]]);
    let given = ["--set", "matrix=[[2,1],[1,3]]", "--set", "base=matern", "--set", "nu=2.5"];
    assert_eq!(matrix(&given), [[2.0, 1.0], [1.0, 3.0]]);
    let words = told(&folder, &[&["compare"], &asked[..], &SMALL, &given].concat());
    assert!(words.starts_with("decomposable kernel of 2 outputs on a Matern kernel, nu 2.5, length scale "), "{words}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_does_not_belong_to_an_operator_valued_kernel_is_told_in_a_sentence() {
    let folder = flow("operator-mistakes");
    for command in ["compare", "plan"] {
        for (more, part) in [
            (&["--kernel", "curl_free", "--set", "curl_free=0.3"][..], "--set curl_free goes with --kernel helmholtz"),
            (&["--kernel", "helmholtz", "--set", "projection=sorf"], "--set projection: the parameters of"),
            (&["--kernel", "helmholtz", "--set", "curl_free"], "--set takes NAME=VALUE"),
            (&["--kernel", "helmholtz", "--set", "curl_free=1.5", "--target", "u,v"], "from 0 to 1"),
            (&["--kernel", "helmholtz", "--target", "u"], "as many targets as columns"),
            (&["--kernel", "div_free", "--target", "u,v", "--preprocess", "scale"], "scaled apart"),
            (&["--kernel", "decomposable"], "which columns does --kernel decomposable relate?"),
            (&["--kernel", "decomposable", "--set", "matrix=identity"], "which columns does"),
            (
                &["--kernel", "decomposable", "--set", "matrix=[[1]]", "--target", "u,v"],
                "relates 1 output, and there are 2",
            ),
            (&["--kernel", "decomposable", "--set", "base=tanh", "--target", "u,v"], "--set base"),
        ] {
            let message = refused(&folder, &[&[command, "flow.csv"], more].concat());
            assert!(message.starts_with("bochner: ") && message.contains(part), "{more:?}: {message}");
            assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        }
        let message = refused(&folder, &[command, "t.csv", "--kernel", "decomposable", "--target", "a,kind"]);
        assert!(message.contains("kind holds words"), "{message}");
    }
    let message = refused(&folder, &["plan", "flow.csv", "--sparse", "--kernel", "curl_free"]);
    assert_eq!(message, "bochner: --sparse: the bounds are those of the Gaussian kernel\n");
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
        (&["--kernel", "polynomial", "--set", "degree=4"][..], &["degree 4", "gamma 1", "coef0 0"][..]),
        (&["--kernel", "matern", "--set", "nu=2.5"], &["nu 2.5"]),
        (&["--kernel", "optical", "--set", "bias=1"], &["exponent 2", "bias 1"]),
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
        assert!(below("Kernel").contains("--kernel") && below("Kernel").contains("--set"));
        assert!(!help.contains("--degree"), "{help}");
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
