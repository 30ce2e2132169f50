//! `fit`, `predict`, `inspect` and `transform`, as someone with a file and no code uses them.

mod common;

use common::{Folder, arguments, noise};
use resvg::tiny_skia::{Pixmap, PremultipliedColorU8};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A table with a name, a category and two numbers; the price is a curved function of them.
fn houses(rows: usize) -> String {
    let mut text = String::from("name,area,colour,age,price\n");
    for i in 0..rows {
        let (area, age) = (50.0 + 100.0 * noise(i, 0), (80.0 * noise(i, 1)).floor());
        let colour = ["red", "green", "pale blue"][(3.0 * noise(i, 2)) as usize];
        let bonus = if colour == "green" { 30_000.0 } else { 0.0 };
        let price = 1e6 + 2000.0 * area + 40_000.0 * (age / 12.0).sin() + bonus + 2000.0 * (noise(i, 3) - 0.5);
        writeln!(text, "house {i},{area},{colour},{age},{price}").unwrap();
    }
    text
}

/// Two rings around the origin.
fn rings(rows: usize) -> String {
    let mut text = String::from("x,y,ring\n");
    for i in 0..rows {
        let (radius, angle) = (1.0 + (i % 2) as f64 + 0.3 * noise(i, 0), 6.3 * noise(i, 1));
        writeln!(text, "{},{},{}", radius * angle.cos(), radius * angle.sin(), ["inner", "outer"][i % 2]).unwrap();
    }
    text
}

/// The gradient of `sin x cos y`: no curl.
fn gradient(x: f64, y: f64) -> [f64; 2] {
    [x.cos() * y.cos(), -x.sin() * y.sin()]
}

/// The same turned by a right angle: no divergence.
fn turned(x: f64, y: f64) -> [f64; 2] {
    let [u, v] = gradient(x, y);
    [-v, u]
}

/// Places and arrows of a field, with a little noise.
fn field(rows: usize, of: fn(f64, f64) -> [f64; 2]) -> String {
    let mut text = String::from("x,y,u,v\n");
    for i in 0..rows {
        let (x, y) = (4.0 * noise(i, 0) - 2.0, 4.0 * noise(i, 1) - 2.0);
        let [u, v] = of(x, y);
        writeln!(text, "{x},{y},{},{}", u + 0.02 * (noise(i, 2) - 0.5), v + 0.02 * (noise(i, 3) - 0.5)).unwrap();
    }
    text
}

#[test]
fn a_table_and_a_target_are_enough_for_a_good_regression() {
    let folder = Folder::with("models-houses", "houses.csv", houses(3000));
    let told = folder.good(&["fit", "houses.csv", "--target", "price", "--drop", "name", "--report", "page.html"]);
    for words in [
        "regression, because price holds numbers",
        "one column of categories",
        "learned Fourier features",
        "penalty",
        "R²",
        "± ",
        "bochner predict houses.bochner",
    ] {
        assert!(told.contains(words), "{words:?} is missing in {told}");
    }
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.contains("Loss on held-out rows") && page.contains("price: predicted against true"));
    let header = "colour,age,area\n";
    folder.write("new.csv", format!("{header}green,10,100\npale blue,10,100\nred,37,60\n"));
    let predicted = folder.good(&["predict", "houses.bochner", "new.csv"]);
    let mut lines = predicted.lines();
    assert_eq!(lines.next(), Some("price"));
    let values: Vec<f64> = lines.map(|l| l.parse().unwrap()).collect();
    let exact = |area: f64, age: f64, bonus: f64| 1e6 + 2000.0 * area + 40_000.0 * (age / 12.0).sin() + bonus;
    let expected = [exact(100.0, 10.0, 30_000.0), exact(100.0, 10.0, 0.0), exact(60.0, 37.0, 0.0)];
    for (value, expected) in values.iter().zip(expected) {
        // Prices spread over 70,000; noise of 600 is the best anyone can do.
        assert!((value - expected).abs() < 4000.0, "{values:?} {expected:?}");
    }
    let score = folder.good(&["predict", "houses.bochner", "houses.csv", "--score"]);
    assert!(score.starts_with("On 3,000 rows:") && score.contains("R²"), "{score}");
    let words = folder.good(&["inspect", "houses.bochner"]);
    for part in ["ridge regression", "predicts", "price", "3 columns, 1 of them categories", "trained on", "3,000 rows"]
    {
        assert!(words.contains(part), "{part:?} is missing in {words}");
    }
    let json: serde_json::Value = serde_json::from_str(&folder.good(&["inspect", "houses.bochner", "--json"])).unwrap();
    assert_eq!(json["map"]["map"], "learned_fourier");
}

#[test]
fn words_are_classes_and_come_back_as_words() {
    let folder = Folder::with("models-rings", "rings.csv", rings(1000));
    let told = folder.good(&["fit", "rings.csv", "--target", "ring", "--out", "m.bochner"]);
    assert!(told.contains("classification, because ring holds 2 different words"), "{told}");
    assert!(told.contains("accuracy"), "{told}");
    folder.write("new.csv", "x,y\n1.1,0\n0,-2.1\n-0.8,0.8\n");
    let expected = "ring\ninner\nouter\ninner\n";
    assert_eq!(folder.good(&["predict", "m.bochner", "new.csv"]), expected);
    folder.good(&["predict", "m.bochner", "new.csv", "--out", "p.npy"]);
    let array = std::fs::read(folder.path("p.npy")).unwrap();
    assert!(String::from_utf8_lossy(&array[..128]).contains("'<U5'"));
    assert_eq!(array.len(), 128 + 3 * 5 * 4);
    // No header: columns are found by position.
    folder.write("bare.csv", "1.1,0\n0,-2.1\n-0.8,0.8\n");
    assert_eq!(folder.good(&["predict", "m.bochner", "bare.csv", "--no-header"]), expected);
    // Calibrated on rows that were held out.
    let sure = folder.good(&["predict", "m.bochner", "new.csv", "--probabilities"]);
    for line in sure.lines().skip(1) {
        let numbers: Vec<f64> = line.split(',').skip(1).map(|v| v.parse().unwrap()).collect();
        assert!((numbers.iter().sum::<f64>() - 1.0).abs() < 1e-9 && numbers.iter().any(|p| *p > 0.9), "{sure}");
    }
    assert!(folder.bad(&["predict", "m.bochner", "new.csv", "--std"]).contains("predicts classes"));
}

#[test]
fn whole_numbers_are_classes_unless_the_user_says_otherwise() {
    let folder = Folder::new("models-numbers");
    let mut text = String::new();
    for i in 0..300 {
        let x = noise(i, 0);
        writeln!(text, "{} 1:{x} 2:{}", if x > 0.5 { -1 } else { 7 }, noise(i, 1)).unwrap();
    }
    folder.write("data.libsvm", text);
    let told = folder.good(&["fit", "data.libsvm", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((json["task"].as_str(), json["model"].as_str()), (Some("classification"), Some("ridge_classifier")));
    folder.write("new.libsvm", "0 1:0.9 2:0.5\n0 1:0.1 2:0.5\n");
    assert_eq!(folder.good(&["predict", "data.bochner", "new.libsvm"]), "label\n-1\n7\n");
    let json =
        folder.good(&["fit", "data.libsvm", "--json", "--task", "regression", "--alpha", "0.1", "--features", "64"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["task"].as_str(), json["penalty"].as_f64()), (Some("regression"), Some(0.1)));
    assert_eq!(json["features"], 64);
}

#[test]
fn same_seed_same_bytes_on_any_number_of_threads_and_another_seed_differs() {
    let folder = Folder::with("models-threads", "rings.csv", rings(700));
    let model = |name: &str, more: &[&str]| {
        folder.good(&[&["fit", "rings.csv", "--target", "ring", "--out", name][..], more].concat());
        std::fs::read(folder.path(name)).unwrap()
    };
    let one = model("one", &["--threads", "1"]);
    assert!(one == model("two", &["--threads", "2"]), "threads change nothing");
    assert!(one != model("other", &["--seed", "1"]));
}

#[test]
fn every_preparation_is_done_again_to_new_rows() {
    let folder = Folder::new("models-preparations");
    let text = houses(400);
    folder.write("houses.csv", &text);
    for preparation in ["auto", "none", "centre", "scale", "unit", "binarise"] {
        let common = ["fit", "houses.csv", "--target", "price", "--drop", "name", "--features", "32", "--alpha", "1"];
        let more =
            ["--length-scale", "median", "--preprocess", preparation, "--threshold", "0.5", "--precision", "double"];
        folder.good(&[&common[..], &more[..]].concat());
        // One row at a time gives the answers of all rows at once: nothing depends on the rows around.
        let all = folder.good(&["predict", "houses.bochner", "houses.csv"]);
        let mut lines = text.lines();
        let header = lines.next().unwrap();
        folder.write("one.csv", format!("{header}\n{}\n", lines.nth(6).unwrap()));
        let one = folder.good(&["predict", "houses.bochner", "one.csv"]);
        assert_eq!(one.lines().nth(1), all.lines().nth(7), "{preparation}");
    }
}

#[test]
fn empty_cells_are_refused_with_their_place_or_filled_in() {
    let folder = Folder::new("models-missing");
    let text = houses(300).replace("\nhouse 7,", "\nhouse 7,,");
    // Row 7 lost its area: one field too many is repaired by taking out the old one.
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let fields: Vec<&str> = lines[8].split(',').collect();
    lines[8] = [fields[0], "", fields[3], fields[4], fields[5]].join(",");
    folder.write("houses.csv", lines.join("\n"));
    let common = ["fit", "houses.csv", "--target", "price", "--drop", "name", "--features", "64"];
    let message = folder.bad(&[&common[..], &["--impute", "refuse"]].concat());
    assert!(message.contains("houses.csv: line 9, column 2 (area): the value is missing"), "{message}");
    assert!(folder.good(&common).contains("300 rows"), "the median is the default");
    for how in ["mark", "mean", "median", "zero"] {
        let told = folder.good(&[&common[..], &["--impute", how]].concat());
        assert!(told.contains("300 rows") && told.contains("empty cells"), "{told}");
        // Gaps in new rows are filled with what was learned.
        folder.write("new.csv", "area,colour,age\n,red,3\n");
        assert_eq!(folder.good(&["predict", "houses.bochner", "new.csv"]).lines().count(), 2);
    }
    assert!(folder.good(&[&common[..], &["--drop-missing"]].concat()).contains("299 rows"));
}

#[test]
fn requests_that_make_no_sense_are_told_in_one_sentence() {
    let folder = Folder::with("models-nonsense", "t.csv", houses(100));
    folder.write("same.csv", "x,y\n1,a\n2,a\n3,a\n");
    for (arguments, part) in [
        (&["fit", "t.csv"][..], "which column is to be predicted? Say --target COLUMN"),
        (
            &["fit", "t.csv", "--target", "cost"],
            "there is no column cost; the columns are name, area, colour, age, price",
        ),
        (
            &["fit", "t.csv", "--target", "price", "--drop", "name", "--map", "wavelet"],
            "--map wavelet: there is no such map; these are fourier, ",
        ),
        (&["fit", "t.csv", "--target", "price", "--drop", "name", "--set", "colour=1"], "have no parameter colour"),
        (&["fit", "t.csv", "--target", "price", "--drop", "name", "--set", "nu"], "--set takes NAME=VALUE"),
        (
            &["fit", "t.csv", "--target", "price", "--drop", "name", "--kernel", "wave"],
            "matern, exponential, polynomial",
        ),
        (&["transform", "t.csv", "--drop", "name", "--kernel", "curl_free"], "transform has no targets"),
        (&["fit", "t.csv", "--target", "colour", "--drop", "name", "--task", "regression"], "holds words"),
        (&["fit", "t.csv", "--target", "price", "--drop", "name", "--task", "classification"], "no classes"),
        (&["fit", "same.csv", "--target", "y"], "same.csv: the target y has the one value \"a\" in all 3 rows"),
        (&["fit", "none.csv", "--target", "y"], "none.csv: there is no such file"),
        (&["inspect", "none.bochner"], "none.bochner: there is no such file"),
        (&["inspect", "t.csv"], "t.csv is not a model file of bochner: it looks like data"),
        (&["predict", "t.csv", "t.csv"], "t.csv is not a model file of bochner: it looks like data"),
        (&["transform", "t.csv", "--drop", "name", "--out", "f.xlsx"], ".xlsx cannot be written"),
    ] {
        let message = folder.bad(arguments);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

/// The data files do not exist: had the program looked at one, it would say so.
#[test]
fn outputs_whose_folder_is_missing_are_refused_before_anything_is_read() {
    let folder = Folder::with("models-outputs", "file", "");
    let fit = ["fit", "none.csv", "--target", "y"];
    for (arguments, part) in [
        (
            &[&fit[..], &["--out", "gone/m.bochner"]].concat()[..],
            "cannot write gone/m.bochner: there is no folder gone",
        ),
        (&[&fit[..], &["--report", "gone/page.html"]].concat(), "there is no folder gone"),
        (&[&fit[..], &["--plot", "gone/plot.svg"]].concat(), "there is no folder gone"),
        (&[&fit[..], &["--checkpoint", "gone/checkpoint"]].concat(), "there is no folder gone"),
        (&[&fit[..], &["--out", "file/m.bochner"]].concat(), "file is not a folder"),
        (&["predict", "none.bochner", "none.csv", "--out", "gone/p.csv"], "there is no folder gone"),
        (&["predict", "none.bochner", "none.csv", "--out", "p.xlsx"], ".xlsx cannot be written"),
        (&["transform", "none.csv", "--out", "gone/f.npy"], "there is no folder gone"),
        (&["compare", "none.csv", "--report", "gone/page.html"], "there is no folder gone"),
        (&["compare", "none.csv", "--out", "file/results"], "file is not a folder"),
        (&["reproduce", "kid", "--out", "file/results"], "file is not a folder"),
        (&["demo", "--out", "file"], "file is not a folder"),
    ] {
        let message = folder.bad(arguments);
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1, "trials leave nothing behind");
}

#[test]
fn a_file_with_fewer_than_two_rows_is_named_with_what_was_expected() {
    let folder = Folder::with("models-few", "one.csv", "x,z,y\n1,2,3\n");
    folder.write("none.csv", "x,z,y\n");
    for command in
        [&["fit", "FILE", "--target", "y"][..], &["transform", "FILE"], &["compare", "FILE"], &["plan", "FILE"]]
    {
        for (file, parts) in
            [("one.csv", ["one.csv: ", "at least 2", "1"]), ("none.csv", ["none.csv: ", "no rows", ""])]
        {
            let message = folder.bad(&command.iter().map(|c| if *c == "FILE" { file } else { c }).collect::<Vec<_>>());
            assert!(parts.iter().all(|part| message.contains(part)), "{command:?}: {message}");
        }
    }
    let features = folder.good(&["transform", "one.csv", "--length-scale", "1", "--features", "8"]);
    assert_eq!(features.lines().count(), 2, "a length scale that is given needs no second row");
}

#[test]
fn a_constant_target_is_refused_with_its_value_unless_it_is_one_component_of_a_field() {
    let folder = Folder::new("models-constant");
    let table = |of: fn(f64) -> f64| {
        let row = |i| format!("{},{},{},2.5\n", noise(i, 0), noise(i, 1), of(noise(i, 0)));
        (0..60).map(row).fold("a,b,u,v\n".to_owned(), |text, row| text + &row)
    };
    folder.write("one.csv", table(|a| a * a));
    folder.write("both.csv", table(|_| -1.0));
    let part = "one.csv: the target v has the one value 2.5 in all 60 rows";
    for more in
        [&["--target", "v", "--drop", "u"][..], &["--target", "u,v"], &["--target", "v", "--task", "regression"]]
    {
        let message = folder.bad(&[&["fit", "one.csv"], more].concat());
        assert!(message.contains(part), "{message}");
    }
    let field = ["--target", "u,v", "--kernel", "divergence_free", "--features", "64"];
    folder.good(&[&["fit", "one.csv"], &field[..]].concat());
    let message = folder.bad(&[&["fit", "both.csv"], &field[..]].concat());
    assert!(message.contains("both.csv: the target u has the one value -1 in all 60 rows"), "{message}");
}

/// Prices are a smooth function of area and age: whatever the kernel, far more than half of their variance is explained.
#[test]
fn every_kernel_can_be_named_and_learns() {
    let folder = Folder::with("models-kernels", "houses.csv", houses(400));
    for (kernel, map) in [
        ("gaussian", "fourier"),
        ("laplacian", "fourier"),
        ("matern", "fourier"),
        ("polynomial", "polynomial"),
        ("exponential", "positive"),
        ("optical", "optical"),
        ("spherical", "spherical"),
        ("compressive", "compressive"),
    ] {
        let common = ["houses.csv", "--drop", "name", "--kernel", kernel, "--features", "128"];
        let fit = [&["fit"], &common[..], &["--target", "price", "--json"]].concat();
        let found: serde_json::Value = serde_json::from_str(&folder.good(&fit)).unwrap();
        assert_eq!(found["map"]["map"], map);
        assert!(found["figures"][0]["value"].as_f64().unwrap() > 0.5, "{kernel}: {}", found["figures"]);
        let features = folder.good(&[&["transform"], &common[..]].concat());
        assert_eq!(features.lines().count(), 401, "{kernel}");
    }
}

#[test]
fn a_memory_budget_is_kept_or_the_error_says_what_would_fit() {
    let folder = Folder::with("models-memory", "rings.csv", rings(400));
    let message = folder.bad(&[
        "fit",
        "rings.csv",
        "--target",
        "ring",
        "--features",
        "4096",
        "--alpha",
        "1",
        "--length-scale",
        "1",
        "--memory",
        "100MB",
    ]);
    assert!(message.contains("--memory allows 100 MB") && message.contains("features would fit"), "{message}");
    assert!(message.contains("--solver cg"), "{message}");
    let fits: String = message.split("; ").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    let common = ["fit", "rings.csv", "--target", "ring", "--alpha", "1", "--length-scale", "1", "--memory", "100MB"];
    folder.good(&[&common[..], &["--features", &fits]].concat());
    folder.good(&[&common[..], &["--features", "1024", "--solver", "cg"]].concat());
}

#[test]
fn the_model_of_ten_thousand_features_and_ten_classes_is_below_a_megabyte() {
    let folder = Folder::new("models-size");
    let mut text = String::from("a,b,c\n");
    for i in 0..120 {
        writeln!(
            text,
            "{},{},{}",
            noise(i, 0),
            noise(i, 1),
            ["r", "s", "t", "u", "v", "w", "x", "y", "z", "q"][i % 10]
        )
        .unwrap();
    }
    folder.write("t.csv", text);
    let more = ["--features", "10000", "--alpha", "1", "--length-scale", "1", "--solver", "dual"];
    folder.good(&[&["fit", "t.csv", "--target", "c"][..], &more].concat());
    let bytes = std::fs::metadata(folder.path("t.bochner")).unwrap().len();
    assert!(bytes < 1_000_000, "{bytes} bytes");
}

/// A small model of every kind that `fit` makes: the kind, and how it is asked for.
const KINDS: [(&str, &[&str]); 9] = [
    ("ridge", &["houses.csv", "--target", "price", "--drop", "name", "--alpha", "1"]),
    ("ridge_classifier", &["rings.csv", "--target", "ring", "--alpha", "1"]),
    ("svm", &["rings.csv", "--target", "ring", "--alpha", "1", "--model", "svm"]),
    ("kernel_svm", &["rings.csv", "--target", "ring", "--alpha", "1", "--model", "kernel-svm"]),
    ("gp_regressor", &["houses.csv", "--target", "price", "--drop", "name", "--alpha", "1", "--model", "gp"]),
    ("gp_classifier", &["rings.csv", "--target", "ring", "--alpha", "0.1", "--model", "gp"]),
    ("local_gp", &["houses.csv", "--target", "price", "--drop", "name", "--alpha", "1", "--model", "local-gp"]),
    ("svi_classifier", &["rings.csv", "--target", "ring", "--alpha", "1", "--model", "svi"]),
    ("operator_ridge", &["field.csv", "--target", "u,v", "--alpha", "1", "--kernel", "curl_free"]),
];

/// The files that [`KINDS`] are fitted to.
fn small_data(name: &str, rows: usize) -> Folder {
    let folder = Folder::with(name, "houses.csv", houses(rows));
    folder.write("rings.csv", rings(rows));
    folder.write("field.csv", field(rows, gradient));
    folder
}

/// Fits a small model of a kind.
fn small_model(folder: &Folder, kind: &str, more: &[&str]) -> Vec<u8> {
    let (_, how) = KINDS.iter().find(|(name, _)| *name == kind).unwrap();
    let mut arguments = [&["fit"], *how, &["--length-scale", "1", "--out", "m.bochner"], more].concat();
    if kind != "kernel_svm" {
        arguments.extend(["--features", "8"]);
    }
    folder.good(&arguments);
    std::fs::read(folder.path("m.bochner")).unwrap()
}

/// A file in which any byte differs is refused, and so is one that was cut: whatever the kind of model.
#[test]
fn a_damaged_model_is_refused_whichever_byte_it_is_and_whatever_the_model() {
    let folder = small_data("models-damage", 60);
    for (kind, _) in KINDS {
        let bytes = small_model(&folder, kind, &[]);
        assert_eq!(bochner::persist::Stored::from_bytes(&bytes).unwrap().header.kind, kind);
        // Long files are damaged at every seventh byte.
        let step = if bytes.len() > 8000 { 7 } else { 1 };
        for at in (0..bytes.len()).step_by(step) {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                assert!(bochner::persist::Stored::from_bytes(&damaged).is_err(), "{kind}: byte {at} xor {flip}");
            }
            assert!(bochner::persist::Stored::from_bytes(&bytes[..at]).is_err(), "{kind}: cut at {at}");
        }
        for at in [0, 9, bytes.len() / 3, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            folder.write("bad.bochner", damaged);
            let message = folder.bad(&["inspect", "bad.bochner"]);
            assert!(message.contains("bad.bochner: model file"), "{kind}: {message}");
        }
        folder.write("bad.bochner", &bytes[..bytes.len() / 2]);
        assert!(folder.bad(&["predict", "bad.bochner", "rings.csv"]).contains("bad.bochner: model file"));
    }
}

#[test]
fn an_empty_model_and_one_of_a_later_format_are_refused() {
    let folder = Folder::with("models-formats", "rings.csv", rings(60));
    let bytes = small_model(&folder, "ridge_classifier", &[]);
    folder.write("empty", "");
    assert!(folder.bad(&["inspect", "empty"]).contains("empty is not a model file of bochner: it is empty"));
    let later = String::from_utf8_lossy(&bytes[8..200]).replacen("\\\"format\\\":2", "\\\"format\\\":9", 1);
    let mut future = bytes.clone();
    future[8..8 + later.len()].copy_from_slice(later.as_bytes());
    folder.write("future", future);
    let message = folder.bad(&["inspect", "future"]);
    assert!(message.contains("format") && message.contains('9'), "{message}");
}

/// A header that was changed by someone who also mended the hash: parts that do not fit together are refused.
#[test]
fn a_forged_model_whose_parts_do_not_fit_is_refused() {
    let folder = small_data("models-forged", 60);
    for (kind, _) in KINDS {
        let bytes = small_model(&folder, kind, &[]);
        let stored = bochner::persist::Stored::from_bytes(&bytes).unwrap();
        let mut forgeries = Vec::new();
        let mut forge = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut forged = stored.clone();
            let mut header = serde_json::to_value(&forged.header).unwrap();
            change(&mut header);
            forged.header = serde_json::from_value(header).unwrap();
            forgeries.push(forged.to_bytes().unwrap());
        };
        forge(&|header| header["kind"] = "gram".into());
        forge(&|header| header["dtype"] = "f16".into());
        forge(&|header| header["input_dim"] = (stored.header.input_dim + 1).into());
        forge(&|header| header["map"] = serde_json::json!({"map": "fourier", "n_components": 10, "length_scale": 1.0}));
        forge(&|header| header["map"] = serde_json::Value::Null);
        forge(&|header| header["preprocessing"]["schema"]["targets"] = serde_json::json!([]));
        forge(&|header| header["preprocessing"]["steps"] = serde_json::json!("none"));
        if stored.header.classes.is_some() {
            forge(&|header| header["classes"].as_array_mut().unwrap().push("third".into()));
        }
        for (number, forged) in forgeries.into_iter().enumerate() {
            folder.write("bad.bochner", forged);
            let message = folder.bad(&["predict", "bad.bochner", "rings.csv"]);
            assert!(message.contains("bad.bochner: "), "{kind}, forgery {number}: {message}");
        }
    }
}

#[test]
fn transform_writes_the_features_a_model_sees_and_streams_them() {
    let folder = Folder::with("models-transform", "rings.csv", rings(1500));
    folder.good(&[
        "fit",
        "rings.csv",
        "--target",
        "ring",
        "--features",
        "32",
        "--kernel",
        "gaussian",
        "--precision",
        "single",
        "--out",
        "m.bochner",
    ]);
    let told = folder.good(&["transform", "rings.csv", "--model", "m.bochner", "--out", "f.npy"]);
    assert!(told.contains("1,500 rows of 32"), "{told}");
    let array = std::fs::read(folder.path("f.npy")).unwrap();
    assert!(String::from_utf8_lossy(&array[..128]).contains("'shape': (1500, 32)"));
    let number = |at: usize| f32::from_le_bytes(array[128 + 4 * at..][..4].try_into().unwrap());
    let norm: f32 = (0..32).map(|j| number(j).powi(2)).sum();
    assert!((norm - 1.0).abs() < 1e-5, "cosines and sines of the same phases: {norm}");
    // The same through the options, as CSV on standard output.
    let csv = folder.good(&["transform", "rings.csv", "--drop", "ring", "--features", "32"]);
    assert_eq!((csv.lines().count(), csv.lines().nth(1).unwrap().split(',').count()), (1501, 32));
    let poly =
        ["transform", "rings.csv", "--drop", "ring", "--map", "polynomial", "--set", "degree=3", "--features", "16"];
    folder.good(&[&poly[..], &["--preprocess", "unit", "--double", "--out", "p.npy"]].concat());
    assert_eq!(std::fs::metadata(folder.path("p.npy")).unwrap().len(), 128 + 1500 * 16 * 8);
}

/// Kills a fit again and again, resuming it each time, until it ends; gives the number of kills.
#[cfg(unix)]
fn killed_and_resumed(folder: &Folder, arguments: &[&str], mut wait: u64) -> usize {
    let mut kills = 0;
    loop {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bochner"))
            .args([arguments, &["--resume", "--out", "killed.bochner"]].concat())
            .current_dir(&folder.0)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                return kills;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                wait += wait / 2;
            }
        }
    }
}

/// A child that is killed again and again, and resumed, ends with the model of one that was left in peace: whatever the
/// model, those that keep no sums included.
#[cfg(unix)]
#[test]
fn every_model_that_is_killed_and_resumed_ends_with_the_same_bytes() {
    let folder = small_data("models-killed-kinds", 12_000);
    let common = ["--length-scale", "1", "--features", "64", "--checkpoint", "state", "--checkpoint-every", "0"];
    let kinds =
        ["gp_regressor", "gp_classifier", "operator_ridge", "svm", "svi_classifier"].map(|kind| (kind, &[][..]));
    let solvers = [
        ("ridge", &["--solver", "cg"][..]),
        ("ridge", &["--solver", "sgd"]),
        ("operator_ridge", &["--solver", "sgd"]),
        // Twenty centres.
        ("local_gp", &["--budget", "0.02"]),
    ];
    for (kind, more) in kinds.into_iter().chain(solvers) {
        let (_, how) = KINDS.iter().find(|(name, _)| *name == kind).unwrap();
        let arguments = [&["fit"], *how, &common, more].concat();
        folder.good(&[&arguments[..], &["--out", "peace.bochner"]].concat());
        let left = ["state", "state.passes"].map(|name| folder.path(name).exists());
        assert_eq!(left, [false, false], "a finished fit needs no checkpoint");
        let kills = killed_and_resumed(&folder, &arguments, 10);
        assert!(kills > 1, "{kind} {more:?}: killed {kills} times");
        assert!(same(&folder, "peace.bochner", "killed.bochner"), "{kind} {more:?}");
        assert_eq!(left_of(&folder, ".state"), Vec::<String>::new(), "{kind} {more:?}");
    }
}

/// Files whose names begin like this.
fn left_of(folder: &Folder, start: &str) -> Vec<String> {
    let names = std::fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(start)).collect()
}

#[test]
fn a_checkpoint_that_is_there_is_never_replaced_by_another_fit() {
    let folder = Folder::with("models-checkpoint-there", "rings.csv", rings(300));
    let fit = arguments("fit rings.csv --target ring --features 16 --length-scale 1 --alpha 1 --checkpoint state");
    folder.write("state", "notes of another kind\n");
    let output = folder.run(&fit);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "bochner: --checkpoint state is there already: --resume continues from it; or remove it first\n");
    let told = folder.bad(&[&fit[..], &["--resume"]].concat());
    assert!(told.contains("state is not a checkpoint of bochner"), "{told}");
    assert_eq!(std::fs::read_to_string(folder.path("state")).unwrap(), "notes of another kind\n");
    assert!(!folder.path("rings.bochner").exists());
    std::fs::remove_file(folder.path("state")).unwrap();
    // What runs that were killed have left goes with the checkpoint.
    folder.write(".state.0123456789abcdef.part", "");
    folder.write(".state.passes.0123456789abcdef.part", "bochner passes 1\n");
    folder.write(".state.99.part", "of somebody else");
    folder.good(&fit);
    assert_eq!(left_of(&folder, ".state"), [".state.99.part"]);
    // A model is not a checkpoint either.
    std::fs::copy(folder.path("rings.bochner"), folder.path("state")).unwrap();
    let told = folder.bad(&[&fit[..], &["--resume"]].concat());
    assert!(told.contains("state: this is a model of bochner, not a checkpoint"), "{told}");
}

#[test]
fn files_that_are_not_models_are_told_from_damaged_ones() {
    let folder = Folder::with("models-not-models", "rings.csv", rings(300));
    folder.write("empty", "");
    folder.write("noise", [0xff; 200]);
    folder.write("rows.npy", b"\x93NUMPY\x01\x00");
    let fit = ["fit", "rings.csv", "--target", "ring", "--features", "16", "--length-scale", "1", "--alpha", "1"];
    folder.good(&fit);
    let data = ": it looks like data, from which bochner fit makes a model\n";
    for (name, why) in [("rings.csv", data), ("rows.npy", data), ("empty", ": it is empty\n"), ("noise", "\n")] {
        let expected = format!("bochner: {name} is not a model file of bochner{why}");
        assert_eq!(folder.bad(&["inspect", name]), expected);
        assert_eq!(folder.bad(&["predict", name, "new.csv"]), expected);
        assert_eq!(folder.bad(&["transform", "rings.csv", "--model", name]), expected);
    }
    let told = folder.bad(&["predict", "rings.csv", "rings.bochner"]);
    assert!(told.contains("rings.csv is not a model file of bochner, but rings.bochner is; the model comes first"));
    let whole = std::fs::read(folder.path("rings.bochner")).unwrap();
    for at in (0..64).chain([whole.len() - 1]) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        folder.write("damaged", &damaged);
        let told = folder.bad(&["inspect", "damaged"]);
        assert!(told.starts_with("bochner: damaged: model file: "), "byte {at}: {told}");
    }
}

#[test]
fn features_that_are_not_finite_are_blamed_on_the_parameters_of_the_map() {
    let folder = Folder::with("models-not-finite", "houses.csv", houses(100));
    let columns = ["--columns", "area,age"];
    for options in [&["--length-scale", "1e-300"][..], &["--kernel", "matern", "--set", "nu=0.01"]] {
        let fit = ["fit", "houses.csv", "--target", "price", "--precision", "single"];
        let transform = ["transform", "houses.csv", "--out", "features.csv"];
        for command in [&fit[..], &transform] {
            let told = folder.bad(&[command, &columns, options].concat());
            assert!(
                told.contains("features of these rows are not finite: the length scale (--length-scale)"),
                "{told}"
            );
        }
        assert!(!folder.path("features.csv").exists());
    }
    for command in ["plan", "compare"] {
        let output =
            folder.run(&[&[command, "houses.csv", "--kernel", "matern", "--nu", "0.01"], &columns[..]].concat());
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            !told.contains("NaN") && !told.contains("inf ") && told.contains("change nu and length_scale"),
            "{told}"
        );
    }
    let told = folder.bad(&[&["transform", "houses.csv", "--features", "1"], &columns[..]].concat());
    assert_eq!(told, "bochner: houses.csv: --features must be at least 2 for pairs of cosine and sine, got 1\n");
}

#[test]
fn scores_are_told_to_programs() {
    let folder = Folder::with("models-scores", "rings.csv", rings(400));
    folder.good(&["fit", "rings.csv", "--target", "ring", "--features", "64", "--length-scale", "1", "--alpha", "0.1"]);
    let score = ["predict", "rings.bochner", "rings.csv", "--score", "--json"];
    for (more, file) in [(&[][..], serde_json::Value::Null), (&["--out", "p.csv"], "p.csv".into())] {
        let json: serde_json::Value = serde_json::from_str(&folder.good(&[&score[..], more].concat())).unwrap();
        assert_eq!((&json["rows"], &json["task"], &json["file"]), (&400.into(), &"classification".into(), &file));
        let figure = &json["figures"][0];
        assert_eq!(figure["name"], "accuracy");
        assert!(figure["value"].as_f64().unwrap() > 0.9 && figure["standard_error"].is_number(), "{json}");
    }
    assert!(folder.path("p.csv").exists());
}

#[cfg(unix)]
#[test]
fn a_fit_that_is_killed_and_resumed_ends_with_the_same_bytes() {
    let folder = Folder::with("models-killed", "houses.csv", houses(30_000));
    let common = arguments(
        "fit houses.csv --target price --drop name --features 256 --length-scale 2 --alpha 0.1 --checkpoint state --checkpoint-every 0",
    );
    folder.good(&[&common[..], &["--out", "peace.bochner"]].concat());
    assert!(!folder.path("state").exists(), "a finished fit needs no checkpoint");
    let kills = killed_and_resumed(&folder, &common, 20);
    assert!(kills > 2, "killed {kills} times");
    assert!(same(&folder, "peace.bochner", "killed.bochner"));
    // Another request must not continue from this one's sums.
    folder.write("state", std::fs::read(folder.path("peace.bochner")).unwrap());
    let message = folder.bad(&[&common[..], &["--resume"]].concat());
    assert!(message.contains("state: "), "{message}");
}

/// Ctrl-C in the middle saves a checkpoint that the same request continues from, and another one does not.
#[cfg(unix)]
#[test]
fn a_checkpoint_belongs_to_one_request() {
    let folder = Folder::with("models-interrupted", "houses.csv", houses(60_000));
    let fit = |alpha: &str, more: &[&str]| {
        let common = arguments(
            "fit houses.csv --target price --drop name --features 512 --length-scale 2 --checkpoint state --checkpoint-every 0 --alpha",
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_bochner"));
        command.args(common).arg(alpha).args(more).current_dir(&folder.0).stdout(std::process::Stdio::null());
        command
    };
    let mut child = fit("0.1", &["--out", "a.bochner"]).spawn().unwrap();
    while !folder.path("state").exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(child.try_wait().unwrap().is_none(), "too fast to be interrupted");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let other = fit("0.2", &["--resume"]).output().unwrap();
    let message = String::from_utf8(other.stderr).unwrap();
    assert!(message.contains("belongs to other data, other options"), "{message}");
    assert!(fit("0.1", &["--resume", "--out", "a.bochner"]).status().unwrap().success());
    assert!(fit("0.1", &["--out", "b.bochner"]).status().unwrap().success());
    assert!(same(&folder, "a.bochner", "b.bochner"));
}

fn same(folder: &Folder, a: &str, b: &str) -> bool {
    let read = |name: &str| std::fs::read(Path::new(&folder.0).join(name)).unwrap();
    read(a) == read(b)
}

#[test]
fn gaussian_processes_say_how_sure_they_are() {
    let folder = Folder::with("models-processes", "houses.csv", houses(1500));
    let common = ["fit", "houses.csv", "--target", "price", "--drop", "name", "--features", "256", "--model", "gp"];
    folder.good(&common);
    let csv = folder.good(&["predict", "houses.bochner", "houses.csv", "--std"]);
    assert_eq!(csv.lines().next(), Some("price,price_std"));
    let truth: Vec<f64> =
        houses(1500).lines().skip(1).map(|l| l.rsplit(',').next().unwrap().parse().unwrap()).collect();
    let inside = csv.lines().skip(1).zip(&truth).filter(|(line, truth)| {
        let (mean, std) = line.split_once(',').unwrap();
        let (mean, std): (f64, f64) = (mean.parse().unwrap(), std.parse().unwrap());
        std > 0.0 && (mean - *truth).abs() < 3.0 * std
    });
    assert!(inside.count() > 1400, "three standard deviations hold nearly all rows");
    // Without noise every variance is smaller by the same number, to the digits that are written.
    let quiet = folder.good(&["predict", "houses.bochner", "houses.csv", "--std", "--without-noise"]);
    let variances = |csv: &str| -> Vec<f64> {
        let std = |line: &str| line.split_once(',').unwrap().1.parse::<f64>().unwrap();
        csv.lines().skip(1).map(|line| std(line).powi(2)).collect()
    };
    let noise: Vec<f64> = variances(&csv).iter().zip(variances(&quiet)).map(|(a, b)| a - b).collect();
    assert!(noise[0] > 0.0 && noise.iter().all(|v| (v / noise[0] - 1.0).abs() < 1e-3), "{:?}", &noise[..3]);
    let refused = folder.run(&["predict", "houses.bochner", "houses.csv", "--without-noise"]);
    assert!(refused.status.code() == Some(2) && String::from_utf8(refused.stderr).unwrap().contains("--std"));
    folder.write("rings.csv", rings(600));
    folder.good(&["fit", "rings.csv", "--target", "ring", "--features", "64", "--model", "gp"]);
    folder.write("new.csv", "x,y\n1.1,0\n0,-2.1\n");
    let csv = folder.good(&["predict", "rings.bochner", "new.csv", "--probabilities"]);
    let lines: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(lines[0], ["ring", "probability of inner", "probability of outer"]);
    for (line, class) in lines[1..].iter().zip(["inner", "outer"]) {
        let p: Vec<f64> = line[1..].iter().map(|v| v.parse().unwrap()).collect();
        assert!((p[0] + p[1] - 1.0).abs() < 1e-6, "{line:?}");
        assert!(line[0] == class && p[usize::from(class == "outer")] > 0.5, "{line:?}");
    }
}

#[test]
fn the_alpha_of_a_process_for_classes_is_chosen_by_the_likelihood_of_held_out_labels() {
    let folder = Folder::with("models-alpha", "rings.csv", rings(600));
    let fit = ["fit", "rings.csv", "--target", "ring", "--features", "64", "--model", "gp"];
    let told = folder.good(&fit);
    assert!(told.contains("  alpha ") && told.contains("mean negative log likelihood"), "{told}");
    let json = folder.good(&[&fit[..], &["--alpha", "0.05", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["penalty"].as_f64(), &json["note"]), (Some(0.05), &serde_json::Value::Null));
    assert!(folder.bad(&[&fit[..], &["--solver", "cg"]].concat()).contains("--solver goes with"));
}

#[test]
fn a_vector_field_is_fitted_with_the_kernel_of_its_kind_and_drawn() {
    let folder = Folder::with("models-fields", "gradient.csv", field(500, gradient));
    folder.write("turned.csv", field(500, turned));
    let loss = |file: &str, kernel: &str| -> f64 {
        let fit = ["fit", file, "--target", "u,v", "--kernel", kernel, "--features", "128", "--json"];
        let json: serde_json::Value = serde_json::from_str(&folder.good(&fit)).unwrap();
        assert_eq!(json["model"], "operator_ridge");
        let errors =
            json["figures"].as_array().unwrap().iter().filter(|f| f["name"].as_str().unwrap().contains("root"));
        errors.map(|f| f["value"].as_f64().unwrap()).sum::<f64>() / 2.0
    };
    // Noise of standard deviation 0.006, arrows of length about 0.7: the wrong kind of field explains next to nothing.
    for (file, right, wrong) in
        [("gradient.csv", "curl_free", "divergence_free"), ("turned.csv", "divergence-free", "curl_free")]
    {
        let (good, bad) = (loss(file, right), loss(file, wrong));
        assert!(good < 0.02 && bad > 0.2, "{file}: {good} with {right}, {bad} with {wrong}");
    }
    assert!(loss("turned.csv", "helmholtz") < 0.05 && loss("gradient.csv", "decomposable") < 0.05);
    let fit = ["fit", "gradient.csv", "--target", "u,v", "--kernel", "curl_free", "--features", "128"];
    let told = folder.good(&[&fit[..], &["--plot", "field.svg", "--report", "page.html"]].concat());
    assert!(told.contains("curl-free kernel") && told.contains("field.svg"), "{told}");
    let svg = std::fs::read_to_string(folder.path("field.svg")).unwrap();
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    for drawing in [&svg, &page] {
        assert_eq!(drawing.matches("class=\"arrow\"").count(), 3 * 50, "fifty held-out rows, three fields");
        assert!(
            drawing.contains("true field") && drawing.contains("fitted field") && drawing.contains("true less fitted")
        );
    }
    // Three panels in the palette's colours, each with fifty arrows; the SVG's size in units, twice as many pixels.
    folder.good(&[&fit[..], &["--plot", "field.PNG"]].concat());
    let pixels = Pixmap::decode_png(&std::fs::read(folder.path("field.PNG")).unwrap()).unwrap();
    let size: Vec<f64> =
        svg.split('"').find(|part| part.starts_with("0 0 ")).unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
    assert_eq!([pixels.width(), pixels.height()].map(f64::from), [(2.0 * size[2]).ceil(), (2.0 * size[3]).ceil()]);
    for colour in [[0x00, 0x72, 0xb2], [0xd5, 0x5e, 0x00], [0x00, 0x9e, 0x73]] {
        let near = |p: &&PremultipliedColorU8| {
            [p.red(), p.green(), p.blue()].iter().zip(colour).all(|(a, b): (&u8, u8)| a.abs_diff(b) < 60)
        };
        let found = pixels.pixels().iter().filter(near).count();
        assert!(found > if colour[1] == 0x9e { 0 } else { 50 * 20 }, "{found} pixels of {colour:02x?}");
    }
    folder.write("new.csv", "x,y\n0.5,1.0\n-1,0.2\n");
    let predicted = folder.good(&["predict", "gradient.bochner", "new.csv"]);
    let mut lines = predicted.lines();
    assert_eq!(lines.next(), Some("u,v"));
    for (line, [u, v]) in lines.zip([gradient(0.5, 1.0), gradient(-1.0, 0.2)]) {
        let (a, b) = line.split_once(',').unwrap();
        let (a, b): (f64, f64) = (a.parse().unwrap(), b.parse().unwrap());
        assert!((a - u).abs() < 0.05 && (b - v).abs() < 0.05, "{line}: {u}, {v}");
    }
    assert!(
        folder.good(&["inspect", "gradient.bochner"]).contains("operator-valued Fourier features (curl-free kernel)")
    );
    folder.good(&["transform", "new.csv", "--model", "gradient.bochner", "--out", "features.npy"]);
    for (more, part) in [
        (&["--preprocess", "scale"][..], "scaled apart"),
        (&["--columns", "x"], "as many targets as columns"),
        (&["--model", "gp"], "goes with --model operator"),
        (&["--plot", "field.jpg"], "plots are .svg or .png files"),
    ] {
        let message = folder.bad(&[&fit[..], more].concat());
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_local_process_follows_what_changes_over_short_distances() {
    let folder = Folder::new("models-local");
    let exact = |x: f64| (3.0 * x).sin();
    let mut text = String::from("x,y\n");
    for i in 0..800 {
        let x = 6.0 * noise(i, 0);
        writeln!(text, "{x},{}", exact(x) + 0.1 * (noise(i, 1) - 0.5)).unwrap();
    }
    folder.write("wave.csv", text);
    let told = folder.good(&["fit", "wave.csv", "--target", "y", "--model", "local-gp", "--features", "24"]);
    assert!(told.contains("around every centre") && told.contains("with local processes"), "{told}");
    folder.write("new.csv", "x\n1.1\n3.3\n4.7\n");
    let csv = folder.good(&["predict", "wave.bochner", "new.csv", "--std"]);
    assert_eq!(csv.lines().next(), Some("y,y_std"));
    for (line, x) in csv.lines().skip(1).zip([1.1, 3.3, 4.7]) {
        let (mean, std) = line.split_once(',').unwrap();
        let (mean, std): (f64, f64) = (mean.parse().unwrap(), std.parse().unwrap());
        assert!((mean - exact(x)).abs() < 0.15 && std > 0.0 && std < 0.5, "{line}: {}", exact(x));
    }
    let words = folder.good(&["inspect", "wave.bochner"]);
    assert!(words.contains("centres; a row is predicted by the nearest"), "{words}");
    // One scale for all columns, or one for each: with one column the same.
    let predicted = ["0.4", "[0.4]"].map(|scale| {
        let fit =
            ["fit", "wave.csv", "--target", "y", "--model", "local-gp", "--features", "24", "--length-scale", scale];
        let words = folder.good(&[&fit[..], &["--alpha", "0.01"]].concat());
        assert!(words.contains("0.01"), "{words}");
        folder.good(&["predict", "wave.bochner", "new.csv"])
    });
    assert_eq!(predicted[0], predicted[1]);
    let message = folder.bad(&["fit", "wave.csv", "--target", "y", "--model", "local-gp", "--kernel", "matern"]);
    assert!(message.contains("gaussian kernel"), "{message}");
}

#[test]
fn exact_machines_and_variational_processes_tell_the_rings_apart() {
    let folder = Folder::with("models-others", "rings.csv", rings(600));
    folder.write("new.csv", "x,y\n1.1,0\n0,-2.1\n-0.8,0.8\n");
    let expected = "ring\ninner\nouter\ninner\n";
    let told = folder.good(&["fit", "rings.csv", "--target", "ring", "--model", "kernel-svm"]);
    assert!(told.contains("exact Gaussian kernel") && told.contains("share of wrong classes"), "{told}");
    assert_eq!(folder.good(&["predict", "rings.bochner", "new.csv"]), expected);
    assert!(folder.good(&["inspect", "rings.bochner"]).contains("support vectors"));
    let message = folder.bad(&["transform", "new.csv", "--model", "rings.bochner"]);
    assert!(message.contains("has none"), "{message}");
    let told = folder.good(&["fit", "rings.csv", "--target", "ring", "--model", "svi", "--features", "64"]);
    assert!(told.contains("mean negative log likelihood"), "{told}");
    assert_eq!(folder.good(&["predict", "rings.bochner", "new.csv"]), expected);
    let csv = folder.good(&["predict", "rings.bochner", "new.csv", "--probabilities"]);
    for (line, class) in csv.lines().skip(1).zip(["inner", "outer", "inner"]) {
        let fields: Vec<&str> = line.split(',').collect();
        let p: Vec<f64> = fields[1..].iter().map(|v| v.parse().unwrap()).collect();
        assert!((p[0] + p[1] - 1.0).abs() < 1e-6 && p[usize::from(class == "outer")] > 0.5, "{line}");
    }
    let message = folder.bad(&["fit", "rings.csv", "--target", "ring", "--model", "local-gp"]);
    assert!(message.contains("no classification with --model local-gp"), "{message}");
}

/// Files of exact models, as the Python package writes them: predictions are the model's own, and `inspect` explains them.
#[test]
fn exact_models_of_the_python_package_predict_and_are_explained() {
    use bochner::kernel::{AnyKernel, Gaussian, OperatorKernel};
    use bochner::model::exact::{ExactGpClassifier, ExactGpRegressor, KernelRidge};
    use bochner::model::{ExactOperatorRidge, Fit, Model, Predict};
    let folder = Folder::new("models-exact");
    let rows = ndarray::Array2::from_shape_fn((40, 2), |(i, j)| noise(i, j));
    let values = ndarray::Array2::from_shape_fn((40, 2), |(i, j)| (3.0 * rows[[i, 0]] + j as f64).sin() * rows[[i, 1]]);
    let first = values.slice(ndarray::s![.., ..1]).to_owned();
    let labels = first.mapv(|v| f64::from(v > 0.3));
    let kernel = std::sync::Arc::new(AnyKernel::from(Gaussian::new(0.7).unwrap()));
    let ridge = KernelRidge::new(kernel.clone(), 0.1).unwrap().fit(rows.view(), first.view()).unwrap();
    let process = ExactGpRegressor::new(kernel.clone(), 0.1).unwrap().fit(rows.view(), first.view()).unwrap();
    let classes = ExactGpClassifier::new(kernel, 0.1).unwrap().with_classes(2).unwrap();
    let classes = classes.fit(rows.view(), labels.view()).unwrap();
    let curl_free = OperatorKernel::curl_free(0.5).unwrap();
    let field = ExactOperatorRidge::new(curl_free, 0.1).unwrap().fit(rows.view(), values.view()).unwrap();
    let column = |name: &str| serde_json::json!({"name": name, "kind": {"number": {}}});
    let preprocessing = serde_json::json!({
        "schema": {"inputs": [column("1"), column("2")], "targets": [column("u"), column("v")]},
        "missing": "refuse", "steps": [], "targets": [{"mean": 0.0, "scale": 1.0}, {"mean": 0.0, "scale": 1.0}],
    });
    let predicted =
        [&ridge as &dyn Predict<Real = f64>, &process, &classes, &field].map(|m| m.predict(rows.view()).unwrap());
    let mut of_field = Model::from(field);
    of_field.attach("preprocessing", &preprocessing).unwrap();
    let text: Vec<String> = rows.rows().into_iter().map(|r| format!("{},{}\n", r[0], r[1])).collect();
    folder.write("rows.csv", text.concat());
    let names = vec!["low".into(), "high".into()];
    let models = [
        (Model::from(ridge), "exact kernel ridge"),
        (Model::from(process), "exact Gaussian process"),
        (Model::from(classes).with_classes(names).unwrap(), "one process per class"),
        (of_field, "the exact curl-free kernel"),
    ];
    for ((model, words), predicted) in models.into_iter().zip(predicted) {
        let kind = model.header().kind.clone();
        folder.write("m.bochner", model.to_bytes().unwrap());
        let told = folder.good(&["inspect", "m.bochner"]);
        assert!(told.contains(words) && told.contains("none: the exact"), "{kind}: {told}");
        let found = folder.good(&["predict", "m.bochner", "rows.csv"]);
        for (line, expected) in found.lines().skip(1).zip(predicted.rows()) {
            let expected: Vec<String> = match kind.as_str() {
                "exact_gp_classifier" => vec![["low", "high"][expected[0] as usize].to_owned()],
                _ => expected.iter().map(f64::to_string).collect(),
            };
            assert_eq!(line, expected.join(","), "{kind}");
        }
        assert_eq!(found.lines().count(), 41, "{kind}");
        match kind.as_str() {
            "exact_gp_regressor" => {
                assert!(folder.good(&["predict", "m.bochner", "rows.csv", "--std"]).contains("_std"))
            }
            "exact_gp_classifier" => {
                let found = folder.good(&["predict", "m.bochner", "rows.csv", "--probabilities"]);
                assert!(found.starts_with("prediction,probability of low,probability of high"), "{found}");
                let mut forged = bochner::persist::Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
                let mut header = serde_json::to_value(&forged.header).unwrap();
                header["extra"]["samples"] = (1u64 << 50).into();
                forged.header = serde_json::from_value(header).unwrap();
                folder.write("forged.bochner", forged.to_bytes().unwrap());
                let told = folder.bad(&["inspect", "forged.bochner"]);
                assert!(told.contains("number of samples must be") && told.contains("got 1125899906842624"), "{told}");
            }
            _ => {}
        }
    }
}

#[test]
fn features_and_predictions_go_to_parquet_files_as_to_arrays() {
    let folder = Folder::with("models-parquet", "rings.csv", rings(300));
    let transform = ["transform", "rings.csv", "--drop", "ring", "--features", "5", "--out"];
    folder.good(&[&transform[..], &["f.parquet"]].concat());
    folder.good(&[&transform[..], &["f.npy"]].concat());
    let read = |name: &str| {
        let input = bochner_table::read::Input::open(&folder.path(name)).unwrap();
        let data = bochner_table::read::Data::open(input, None, &Default::default(), &Default::default()).unwrap();
        let mut rows = Vec::new();
        let keep = &mut |block: bochner::rows::RowBlock<'_, f32>| {
            rows.extend(block.rows.iter().copied());
            Ok(())
        };
        bochner::rows::RowSource::for_each_block(&mut data.rows::<f32>(), keep).unwrap();
        rows
    };
    let features = read("f.parquet");
    assert_eq!(features.len(), 300 * 4, "two pairs of cosines and sines");
    assert_eq!(features, read("f.npy"));
    folder.good(&["fit", "rings.csv", "--target", "ring", "--features", "32", "--alpha", "1"]);
    folder.good(&["predict", "rings.bochner", "rings.csv", "--out", "p.parquet"]);
    // Words come back: the predictions are the labels of a new table.
    let told = folder.good(&["fit", "f.parquet", "--target", "f1", "--features", "16", "--alpha", "1", "--json"]);
    assert!(told.contains("\"rows\": 300"), "{told}");
    let bytes = std::fs::read(folder.path("p.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn gaps_in_arrays_are_filled_in_on_request_and_again_in_new_rows() {
    let folder = Folder::new("models-gaps");
    let array = |rows: usize, value: &dyn Fn(usize, usize) -> f64| {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 3), }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        (0..3 * rows).for_each(|k| bytes.extend(value(k / 3, k % 3).to_le_bytes()));
        bytes
    };
    let value = |i: usize, j: usize| match j {
        2 => noise(i, 0) + noise(i, 1),
        0 if i % 9 == 4 => f64::NAN,
        j => noise(i, j),
    };
    folder.write("data.npy", array(400, &value));
    let fit = ["fit", "data.npy", "--target", "3", "--features", "32", "--length-scale", "2"];
    let message = folder.bad(&[&fit[..], &["--impute", "refuse"]].concat());
    assert!(message.contains("row 5, column 1") && message.contains("--impute"), "{message}");
    assert!(folder.good(&fit).contains("400 rows"));
    let told = folder.good(&[&fit[..], &["--impute", "mean"]].concat());
    assert!(told.contains("400 rows") && told.contains("R²"), "{told}");
    assert_eq!(folder.good(&["predict", "data.bochner", "data.npy"]).lines().count(), 401);
    assert!(folder.good(&[&fit[..], &["--drop-missing"]].concat()).contains("356 rows"));
}

#[test]
fn a_support_vector_machine_separates_the_rings() {
    let folder = Folder::with("models-machine", "rings.csv", rings(600));
    folder.good(&["fit", "rings.csv", "--target", "ring", "--features", "64", "--model", "svm"]);
    folder.write("new.csv", "x,y\n1.1,0\n0,-2.1\n-0.8,0.8\n");
    assert_eq!(folder.good(&["predict", "rings.bochner", "new.csv"]), "ring\ninner\nouter\ninner\n");
    assert!(folder.good(&["inspect", "rings.bochner"]).contains("support vector machine"));
    let message = folder.bad(&["fit", "rings.csv", "--target", "x", "--drop", "ring", "--model", "svm"]);
    assert!(message.contains("no regression with --model svm"), "{message}");
}

#[test]
fn the_memory_that_an_error_asks_for_is_enough() {
    let folder = Folder::new("models-advice");
    let mut text = String::from("a,b,y\n");
    (0..300).for_each(|i| writeln!(text, "{},{},{}", noise(i, 0), noise(i, 1), noise(i, 0) * noise(i, 1)).unwrap());
    folder.write("table.csv", text);
    for more in [&["--features", "1024"][..], &[], &["--features", "1024", "--solver", "cg"]] {
        let start = ["fit", "table.csv", "--target", "y"];
        let message = folder.bad(&[&start[..], more, &["--memory", "1MB"]].concat());
        let (_, rest) = message.split_once("a budget of ").unwrap_or_else(|| panic!("{message}"));
        let advised: String = rest.chars().take_while(char::is_ascii_digit).collect();
        folder.good(&[&start[..], more, &["--memory", &advised]].concat());
    }
}

#[test]
fn a_map_with_fewer_features_than_were_asked_for_is_fitted_and_read_again() {
    let folder = Folder::with("models-fewer", "houses.csv", houses(300));
    for more in [&[][..], &["--features", "200"]] {
        let common = ["fit", "houses.csv", "--target", "price", "--drop", "name", "--map", "ortho_projection"];
        folder.good(&[&common[..], more].concat());
        folder.good(&["predict", "houses.bochner", "houses.csv"]);
    }
}

/// Mean of the squared deviations of predictions from the truth, in units of the variances predicted.
fn standardised(csv: &str, truth: &[f64]) -> f64 {
    let squares = csv.lines().skip(1).zip(truth).map(|(line, truth)| {
        let (mean, std) = line.split_once(',').unwrap();
        let (mean, std): (f64, f64) = (mean.parse().unwrap(), std.parse().unwrap());
        ((truth - mean) / std).powi(2)
    });
    squares.sum::<f64>() / truth.len() as f64
}

#[test]
fn standard_deviations_are_as_large_as_the_errors() {
    let folder = Folder::new("models-calibrated");
    // Noise of the sum of twelve uniform numbers, nearly normal, of deviation 0.5.
    let (known, new) = (600, 400);
    let normal = |i: usize| (0..12).map(|k| noise(i, 100 + k)).sum::<f64>() - 6.0;
    let row = |i: usize| {
        let (a, b) = (4.0 * noise(i, 1), 4.0 * noise(i, 2));
        (a, b, (1.5 * a).sin() + 0.3 * b + 0.5 * normal(i))
    };
    let table = |range: std::ops::Range<usize>| {
        range.map(row).fold(String::from("a,b,y\n"), |text, (a, b, y)| format!("{text}{a},{b},{y}\n"))
    };
    folder.write("known.csv", table(0..known));
    folder.write("new.csv", table(known..known + new));
    let truth: Vec<f64> = (known..known + new).map(|i| row(i).2).collect();
    // A mean of m squares of normal numbers is off by √(2/m). The level is chosen on a fifth of the rows that are fitted, and
    // judged on new ones: five standard deviations of the ratio.
    let tolerance = 5.0 * (2.0 / (0.2 * 0.8 * known as f64) + 2.0 / new as f64).sqrt();
    for model in ["gp", "local-gp"] {
        folder.good(&["fit", "known.csv", "--target", "y", "--model", model]);
        let ratio = standardised(&folder.good(&["predict", "known.bochner", "new.csv", "--std"]), &truth);
        assert!((ratio - 1.0).abs() < tolerance, "{model}: {ratio}, allowed {tolerance}");
    }
}

#[test]
fn the_program_keeps_names_of_classes_says_when_there_is_no_header_and_answers_no_rows_with_none() {
    let folder = Folder::new("models-classes");
    let write = |name: &str, text: &str| folder.write(name, text);
    let run = |arguments: &[&str]| folder.good(arguments);
    let bad = |arguments: &[&str]| folder.bad(arguments);
    let fit = |file: &str, more: &[&str]| {
        let fixed = ["fit", file, "--features", "32", "--length-scale", "1", "--alpha", "0.1"];
        run(&[&fixed[..], more].concat())
    };
    let class = |i: usize| ["007", "030"][usize::from(i % 10 > 4)];
    let rows: String = (0..60).map(|i| format!("{},{}\n", i % 10, class(i))).collect();
    write("codes.csv", &format!("x,y\n{rows}"));
    let told = fit("codes.csv", &["--target", "y", "--model", "gp"]);
    assert!(told.contains("classes       007, 030") && !told.contains("header"), "{told}");
    write("new.csv", "x\n0\n9\n");
    assert_eq!(run(&["predict", "codes.bochner", "new.csv"]), "y\n007\n030\n");
    assert!(run(&["predict", "codes.bochner", "codes.csv", "--score"]).contains("On 60 rows"));
    let message = bad(&["fit", "codes.csv", "--target", "y", "--task", "regression"]);
    assert!(message.contains("without zeros at their beginning"), "{message}");
    let late: String = (0..3000).map(|i| format!("{i},{}\n", if i < 2000 { "7" } else { "08" })).collect();
    write("late.csv", &format!("x,y\n{late}"));
    let message = bad(&["fit", "late.csv", "--target", "y"]);
    assert!(message.contains("late.csv: line 2002, column 2 (y): the class \"08\" would become 8"), "{message}");
    let numbers: String = (0..60).map(|i| format!("{},{}.5\n", i % 10, i % 10)).collect();
    write("bare.csv", &numbers);
    let told = fit("bare.csv", &["--target", "2", "--model", "gp"]);
    assert!(told.starts_with("bare.csv: 60 rows of 1 column, target 2 (without a header"), "{told}");
    // No rows, no predictions.
    write("none.csv", "x\n");
    assert_eq!(run(&["predict", "codes.bochner", "none.csv"]), "y\n");
    let probabilities = run(&["predict", "codes.bochner", "none.csv", "--probabilities"]);
    assert_eq!(probabilities, "y,probability of 007,probability of 030\n");
    write("zero.csv", "1\n");
    let std = run(&["predict", "bare.bochner", "zero.csv", "--header", "--std"]);
    assert_eq!(std, "2,2_std\n");
    for out in ["out.csv", "out.npy", "out.parquet", "out.tsv"] {
        assert!(run(&["predict", "codes.bochner", "none.csv", "--out", out]).starts_with("Wrote 0 predictions"));
        assert!(folder.path(out).exists());
    }
    assert_eq!(std::fs::read_to_string(folder.path("out.tsv")).unwrap(), "y\n");
    let message = bad(&["predict", "codes.bochner", "out.parquet"]);
    assert!(message.contains("there is no column x"), "an empty Parquet file is read: {message}");
    write("none.csv", "x,y\n");
    assert!(bad(&["predict", "codes.bochner", "none.csv", "--score"]).contains("there are no rows"));
}

/// Rows are added to a model that kept its sums and taken back from it; the file is written whole or not at all.
#[test]
fn rows_are_added_to_a_model_and_taken_back() {
    let folder = Folder::new("update");
    let row = |i: usize| {
        let (a, b) = (noise(i, 0), noise(i, 1));
        format!("{a},{},{}\n", ["oak", "ash"][i % 2], (4.0 * a).sin() + (i % 2) as f64 + 0.01 * b)
    };
    let table = |range: std::ops::Range<usize>| format!("a,wood,y\n{}", range.map(row).collect::<String>());
    folder.write("old.csv", table(0..600));
    folder.write("new.csv", table(600..1000));
    let fixed = ["--features", "64", "--length-scale", "1", "--alpha", "0.1"];
    let fit = |more: &[&str]| folder.good(&[&["fit", "old.csv", "--target", "y"][..], &fixed, more].concat());
    fit(&["-o", "bare.bochner"]);
    let told = folder.bad(&["update", "bare.bochner", "new.csv"]);
    assert!(told.contains("bochner fit --keep-sums"), "{told}");
    let told =
        folder.bad(&[&["fit", "old.csv", "--target", "y", "--keep-sums", "--solver", "cg"][..], &fixed].concat());
    assert!(told.contains("--keep-sums goes with"), "{told}");
    for model in ["ridge", "gp"] {
        let (kept, more, back) =
            (format!("{model}.bochner"), format!("{model}-more.bochner"), format!("{model}-back.bochner"));
        fit(&["--keep-sums", "--model", model, "-o", &kept]);
        let predicted = |file: &str| -> Vec<f64> {
            let text = folder.good(&["predict", file, "new.csv"]);
            text.lines().skip(1).map(|line| line.parse().unwrap()).collect()
        };
        let off = |one: &str, other: &str| {
            predicted(one).iter().zip(predicted(other)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let told = folder.good(&["update", &kept, "new.csv", "--out", &more]);
        assert!(told.starts_with("Added 400 rows: the model is that of 1,000 rows now."), "{told}");
        let about = folder.json(&["update", &more, "new.csv", "--forget", "--out", &back]);
        assert_eq!((about["rows_before"].as_u64(), about["rows"].as_u64()), (Some(1000), Some(600)));
        assert!(about["cancellation"].as_f64().unwrap() > 1.5);
        let (added, returned) = (off(&more, &kept), off(&back, &kept));
        assert!(added > 1e-5 && returned < 1e-9, "{model}: {added:e} {returned:e}");
        // Rows that are not there: the file stays as it was.
        let before = std::fs::read(folder.path(&kept)).unwrap();
        let told = folder.bad(&["update", &kept, "new.csv", "--forget"]);
        assert!(told.contains("rows that were added before"), "{told}");
        folder.write("half.csv", "a,wood\n0.5,oak\n");
        folder.bad(&["update", &kept, "half.csv"]);
        assert_eq!(std::fs::read(folder.path(&kept)).unwrap(), before);
        // In place, by default.
        folder.good(&["update", &back, "new.csv"]);
        assert!(off(&back, &more) < 1e-9);
    }
    folder.write("labels.csv", table(0..600).replace(",oak", ",5").replace(",ash", ",7"));
    folder.good(&["fit", "labels.csv", "--target", "wood", "--keep-sums", "--model", "gp", "--features", "32"]);
    let about = folder.json(&["update", "labels.bochner", "labels.csv", "--out", "twice.bochner"]);
    assert_eq!(about["rows"].as_u64(), Some(1200));
}
