//! What `fit` chooses where nothing was decided: maps, numbers of features, length scales, and what it says about them.

mod common;

use common::Folder;
use std::fmt::Write;
use std::path::Path;

fn noise(i: usize, j: usize) -> f64 {
    common::noise(i, j + 1)
}

/// `y` is a smooth function of four numbers: long length scales suit it, at which few Maclaurin features are exact.
fn smooth(rows: usize) -> String {
    let mut text = String::from("a,b,c,d,y\n");
    for i in 0..rows {
        let [a, b, c, d] = [0, 1, 2, 3].map(|j| 2.0 * noise(i, j) - 1.0);
        let y = a * b - 0.5 * c * c + 0.3 * a * c * d + 0.02 * (noise(i, 4) - 0.5);
        writeln!(text, "{a},{b},{c},{d},{y}").unwrap();
    }
    text
}

/// Two columns of words, most of them the same, and a number.
fn words(rows: usize) -> String {
    let mut text = String::from("smoker,weight\n");
    for i in 0..rows {
        let smoker = noise(i, 0) < 0.2;
        let weight = if smoker { 60.0 } else { 75.0 } + noise(i, 1);
        writeln!(text, "{},{weight:.1}", if smoker { "yes" } else { "no" }).unwrap();
    }
    text
}

fn predicted(folder: &Folder, model: &str, data: &str) -> String {
    folder.good(&["predict", model, data])
}

#[test]
fn the_map_with_the_least_predicted_error_is_chosen_unless_it_loses_on_rows_held_out() {
    let folder = Folder::with("choice-map", "smooth.csv", smooth(400));
    let fit = ["fit", "smooth.csv", "--target", "y", "--kernel", "gaussian"];
    let told = folder.json(&fit);
    // Maclaurin features have the smaller predicted error and are tried; held-out rows have the last word.
    let reason = told["map_reason"].as_str().unwrap();
    assert!(reason.contains("predicted kernel error") && reason.contains("Maclaurin"), "{reason}");
    assert!(reason.contains("held-out loss"), "{reason}");
    // The comparison is on the same features and the same length scale.
    let trials = told["trials"].as_array().unwrap();
    let favourite = trials.iter().find(|t| t["map"].as_str().unwrap().starts_with("Maclaurin")).unwrap();
    let beside = |t: &&serde_json::Value| {
        t["map"] == "Fourier, orthogonal"
            && t["features"] == favourite["features"]
            && t["length_scale"] == favourite["length_scale"]
    };
    let fourier = trials.iter().find(beside).unwrap();
    let better = if favourite["loss"].as_f64() < fourier["loss"].as_f64() { "maclaurin" } else { "fourier" };
    let title = if better == "maclaurin" { "Maclaurin" } else { "Fourier" };
    assert_eq!(told["map"]["map"], better, "{told:#}");
    // A model is coefficients and a description, and draws its map again.
    assert!(told["bytes"].as_u64().unwrap() < 20_000, "{}", told["bytes"]);
    let text = folder.good(&fit);
    assert!(text.contains(&format!("  map           {title} features (Gaussian kernel")), "{text}");
    assert!(text.contains(&format!("                {reason}\n")), "{text}");
    let first = predicted(&folder, "smooth.bochner", "smooth.csv");
    assert_eq!(first.lines().count(), 401);
    // The same command gives the same model, whatever the threads.
    let bytes = std::fs::read(folder.0.join("smooth.bochner")).unwrap();
    folder.good(&[&fit[..], &["--threads", "1", "--out", "again.bochner"]].concat());
    assert!(bytes == std::fs::read(folder.0.join("again.bochner")).unwrap());
    assert!(folder.good(&["inspect", "smooth.bochner"]).contains(&format!("{title} features (Gaussian kernel")));
}

#[test]
fn a_map_that_is_named_stays() {
    let folder = Folder::with("choice-named", "smooth.csv", smooth(300));
    for more in [&["--map", "fourier"][..], &["--set", "projection=gaussian"], &["--kernel", "matern"]] {
        let told = folder.json(&[&["fit", "smooth.csv", "--target", "y", "--features", "64"], more].concat());
        assert_eq!(
            (&told["map"]["map"], &told["map_reason"]),
            (&"fourier".into(), &serde_json::Value::Null),
            "{more:?}"
        );
    }
    // The kernel alone is not a map; everything else given, the map is still compared.
    let given = ["--kernel", "gaussian", "--features", "64", "--alpha", "0.001", "--length-scale", "3"];
    let told = folder.json(&[&["fit", "smooth.csv", "--target", "y"][..], &given].concat());
    assert_eq!(told["trials"].as_array().unwrap().len(), 2, "{told:#}");
    assert_eq!(told["map"]["length_scale"], 3.0);
    assert_eq!(told["features"], 64);
}

#[test]
fn every_family_takes_the_map_that_was_chosen() {
    let folder = Folder::new("choice-families");
    let mut classes = String::from("a,b,c,d,y\n");
    for line in smooth(300).lines().skip(1) {
        let (rest, y) = line.rsplit_once(',').unwrap();
        writeln!(classes, "{rest},{}", if y.starts_with('-') { "below" } else { "above" }).unwrap();
    }
    folder.write("classes.csv", classes);
    folder.write("smooth.csv", smooth(300));
    for (model, data) in [("gp", "smooth.csv"), ("local-gp", "smooth.csv"), ("gp", "classes.csv")]
        .into_iter()
        .chain(["svm", "kernel-svm", "svi"].map(|model| (model, "classes.csv")))
    {
        for kernel in [&["--kernel", "gaussian"][..], &[]] {
            let fit = ["fit", data, "--target", "y", "--model", model, "--out", "m.bochner"];
            let told = folder.json(&[&fit[..], kernel].concat());
            assert_eq!(told["map_reason"].is_null(), ["local-gp", "kernel-svm"].contains(&model), "{model}: {told:#}");
            assert_eq!(predicted(&folder, "m.bochner", data).lines().count(), 301, "{model}");
        }
    }
}

#[test]
fn length_scales_are_said_as_multiples_of_the_median_distance() {
    let folder = Folder::with("choice-scale", "smooth.csv", smooth(200));
    let fit = ["fit", "smooth.csv", "--target", "y", "--features", "64", "--kernel", "gaussian"];
    let told = folder.json(&fit);
    let factor = told["map"]["length_scale"].as_f64().unwrap() / told["median_distance"].as_f64().unwrap();
    // A power of two, but for what is lost between numbers and their digits.
    assert!((factor.log2() - factor.log2().round()).abs() < 1e-9, "{factor}");
    let text = folder.good(&fit);
    assert!(text.contains("the median distance of two rows)\n"), "{text}");
    if factor > 1.5 {
        assert!(text.contains(&format!(" ({} times the median distance", factor.round())), "{text}");
    }
    let asked = folder.good(&[&fit[..], &["--length-scale", "median"]].concat());
    assert!(asked.contains(" (the median distance of two rows)\n"), "{asked}");
    let asked = folder.good(&[&fit[..], &["--length-scale", "2"]].concat());
    assert!(asked.contains("  length scale  2.000\n"), "{asked}");
}

#[test]
fn rows_that_are_mostly_equal_have_a_length_scale_of_those_that_differ() {
    let folder = Folder::with("choice-equal", "words.csv", words(200));
    let told = folder.json(&["fit", "words.csv", "--target", "weight"]);
    assert!(told["figures"][0]["value"].as_f64().unwrap() > 0.9, "{told:#}");
    folder.good(&["fit", "words.csv", "--target", "weight", "--length-scale", "median"]);
    folder.good(&["plan", "words.csv", "--target", "weight", "--draws", "1"]);
    // Only equal rows have none.
    let same: String = std::iter::once("x,y\n".to_owned()).chain((0..160).map(|i| format!("1,{}\n", i % 7))).collect();
    folder.write("same.csv", same);
    let fit = ["fit", "same.csv", "--target", "y", "--task", "regression"];
    let message = folder.bad(&[&fit[..], &["--kernel", "gaussian"]].concat());
    assert!(message.contains("same.csv: ") && message.contains("--length-scale"), "{message}");
    assert!(folder.bad(&fit).contains("same.csv: all columns"), "nothing to learn from");
}

#[test]
fn a_candidate_that_cannot_be_solved_does_not_end_the_choice() {
    let folder = Folder::new("choice-unsolvable");
    // Two words per row: features of long length scales are nearly the same for all rows.
    let mut text = String::from("brand,city,price\n");
    for i in 0..500 {
        let (brand, city) = ((10.0 * noise(i, 0)) as usize, (30.0 * noise(i, 1)) as usize);
        writeln!(text, "brand{brand},city{city},{:.2}", 3.0 * brand as f64 + 0.5 * city as f64 + noise(i, 2)).unwrap();
    }
    folder.write("prices.csv", text);
    for seed in ["0", "1", "2", "3"] {
        let told = folder.json(&["fit", "prices.csv", "--target", "price", "--seed", seed]);
        assert!(told["figures"][0]["value"].as_f64().unwrap() > 0.99, "{seed}: {told:#}");
    }
}

#[test]
fn a_projection_has_no_more_features_than_rows_have_columns() {
    let folder = Folder::with("choice-projection", "smooth.csv", smooth(120));
    for (more, features) in [(&[][..], 4), (&["--features", "256"], 4), (&["--features", "3"], 3)] {
        let fit = [&["fit", "smooth.csv", "--target", "y", "--map", "ortho_projection"], more].concat();
        let told = folder.json(&fit);
        assert_eq!((&told["features"], &told["map"]["n_components"]), (&features.into(), &features.into()), "{more:?}");
        if features == 4 {
            assert_eq!(told["limit"], "the map has no more for 4 columns");
        }
        assert_eq!(predicted(&folder, "smooth.bochner", "smooth.csv").lines().count(), 121);
        folder.good(&["inspect", "smooth.bochner"]);
    }
}

#[test]
fn the_reason_for_a_number_of_features_is_about_the_number_chosen() {
    let folder = Folder::with("choice-reason", "smooth.csv", smooth(400));
    for seed in ["0", "1", "2", "3", "4"] {
        let told = folder.json(&["fit", "smooth.csv", "--target", "y", "--seed", seed]);
        let (limit, features) = (told["limit"].as_str().unwrap(), told["features"].as_u64().unwrap());
        let begins = limit.split(' ').next().unwrap().replace(',', "");
        if limit.ends_with("did hardly better") || limit.ends_with("did no better") {
            assert!(begins.parse::<u64>().unwrap() > features, "{features} ({limit})");
        }
        assert!(!limit.contains(&format!("{features} did")), "{features} ({limit})");
    }
}

#[test]
fn parameters_that_make_the_kernel_are_said() {
    let folder = Folder::with("choice-parameters", "smooth.csv", smooth(120));
    for (more, words) in [
        (&["--map", "polynomial"][..], "polynomial sketches (degree 2, gamma 1, coef0 0)"),
        (&["--kernel", "polynomial", "--set", "coef0=1"], "polynomial sketches (degree 2, gamma 1, coef0 1)"),
        (&["--map", "optical"], "optical features (exponent 2, dense, bias 0)"),
        (&["--kernel", "optical", "--set", "bias=1"], "optical features (exponent 2, dense, bias 1)"),
        (&["--kernel", "matern", "--set", "nu=2.5"], "Fourier features (Matern kernel, nu 2.5, orthogonal)"),
        (&["--kernel", "laplacian"], "Fourier features (Laplacian kernel, norm 2, orthogonal)"),
        (&["--map", "spherical", "--preprocess", "unit", "--set", "a=4"], "spherical features (degree 3, a 4"),
        (&["--map", "maclaurin"], "Maclaurin features (Gaussian kernel"),
        (
            &["--map", "maclaurin", "--kernel", "polynomial"],
            "Maclaurin features (polynomial kernel, degree 3, gamma 1, coef0 1",
        ),
    ] {
        let fit = [&["fit", "smooth.csv", "--target", "y", "--features", "32"], more].concat();
        let told = folder.good(&fit);
        assert!(told.contains(words), "{more:?}: {told}");
        let told = folder.good(&["inspect", "smooth.bochner"]);
        assert!(told.contains(words), "{more:?}: {told}");
    }
}

/// Of centred rows, even functions and polynomials without lower degrees learn no slope.
#[test]
fn lower_degrees_are_tried_where_only_a_kernel_is_named() {
    let folder = Folder::with("choice-degrees", "smooth.csv", smooth(120));
    let slope = smooth(300).lines().skip(1).fold(String::from("a,b,y\n"), |text, line| {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        format!("{text}{},{},{}\n", cells[0], cells[1], 2.0 * cells[0] - cells[1] + 0.01 * cells[2])
    });
    folder.write("slope.csv", slope);
    for (kernel, parameter, without, with) in [("polynomial", "degree", 2.0, 3.0), ("optical", "bias", 0.0, 1.0)] {
        let fit = |file: &str, more: &[&str]| {
            folder.json(&[&["fit", file, "--target", "y", "--features", "64", "--kernel", kernel], more].concat())
        };
        let found = fit("slope.csv", &[]);
        assert_eq!(found["map"][parameter].as_f64(), Some(with), "{found:#}");
        let reason = found["map_reason"].as_str().unwrap();
        assert!(reason.starts_with(&format!("{kernel} with lower degrees: held-out loss ")), "{reason}");
        let set = format!("{parameter}={with}").replace(".0", "");
        let found = fit("slope.csv", &["--set", &set]);
        assert!(found["map_reason"].is_null(), "{found:#}");
        let set = format!("{parameter}={without}").replace(".0", "");
        assert_eq!(fit("slope.csv", &["--set", &set])["map"][parameter].as_f64(), Some(without));
    }
    let found = folder.json(&["fit", "smooth.csv", "--target", "y", "--features", "32", "--kernel", "polynomial"]);
    assert_eq!((&found["map"]["degree"], &found["map"]["coef0"]), (&2.into(), &0.0.into()), "{found:#}");
}

#[test]
fn a_sentence_names_the_option_that_is_to_blame() {
    let folder = Folder::with("choice-options", "smooth.csv", smooth(60));
    let expected = "must be a positive finite number, a list of positive finite numbers, rows of numbers or median";
    for (more, parts) in [
        (&["--length-scale", "abc"][..], &["--length-scale abc: ", expected][..]),
        (&["--length-scale", "0"], &["--length-scale 0: ", expected]),
        (&["--length-scale", "-1"], &["--length-scale -1: ", expected]),
        (&["--map", "foo"], &["--map foo: there is no such map; these are fourier, polynomial, positive"]),
        (&["--map", "fourier", "--kernel", "foo"], &["--kernel foo: there is no such kernel; these are gaussian, "]),
        (
            &["--map", "optical", "--kernel", "gaussian"],
            &["--kernel gaussian: optical features have a kernel of their own"],
        ),
        (
            &["--map", "polynomial", "--length-scale", "2"],
            &["--length-scale 2: polynomial sketches have no length scale"],
        ),
        (&["--set", "colour=1"], &["--set colour=1: Fourier features have no parameter colour; theirs are"]),
        (&["--set", "projection=round"], &["--set projection=round: projection must be one of"]),
        (
            &["--model", "kernel-svm", "--kernel", "polynomial"],
            &["--kernel polynomial: --model kernel-svm has gaussian, laplacian, matern"],
        ),
        (&["--model", "kernel-svm", "--map", "optical"], &["--map optical: --model kernel-svm", "leave --map out"]),
        (&["--model", "operator", "--kernel", "polynomial"], &["--kernel polynomial is not an operator-valued kernel"]),
    ] {
        let message = folder.bad(&[&["fit", "smooth.csv", "--target", "y"], more].concat());
        assert!(parts.iter().all(|part| message.contains(part)), "{more:?}: {message}");
    }
    assert!(!Path::new(&folder.0.join("smooth.bochner")).exists());
}
