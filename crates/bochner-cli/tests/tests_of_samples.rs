//! `bochner test`: two files, or two sides of one.

mod common;

use common::Folder;

/// Rows of ages that follow each other like random ones, and of words.
fn people(rows: usize, shift: f64, woods: &[&str]) -> String {
    let golden = |i: usize, by: f64| (i as f64 * by).fract();
    let line = |i: usize| {
        let (age, height) = (40.0 * golden(i, 0.618_033_988) + shift, 30.0 * golden(i, 0.754_877_666));
        format!("{age:.3},{height:.3},{}\n", woods[(golden(i, 0.569_840_291) * woods.len() as f64) as usize])
    };
    format!("age,height,wood\n{}", (0..rows).map(line).collect::<String>())
}

#[test]
fn files_that_differ_are_told_with_their_columns() {
    let folder = Folder::with("test-files", "a.csv", people(900, 0.0, &["oak", "ash"]));
    folder.write("b.csv", people(800, 6.0, &["oak", "ash", "elm"]));
    let found = folder.json(&["test", "a.csv", "b.csv"]);
    assert_eq!((&found["pvalue"], &found["significant"]), (&0.001.into(), &true.into()));
    assert_eq!(found["rows"], serde_json::json!([900, 800]));
    let names: Vec<&str> = found["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(names[2], "height", "{found}");
    let told = folder.good(&["test", "a.csv", "b.csv"]);
    assert!(told.starts_with("The files differ.") && told.contains("Columns that differ most: "), "{told}");
    assert_eq!(told, folder.good(&["test", "a.csv", "b.csv", "--threads", "1"]));
    // The same rows in two files.
    let told = folder.good(&["test", "a.csv", "a.csv", "--kernel", "laplacian", "--permutations", "99"]);
    assert!(told.starts_with("No difference was found. Of 100 random exchanges"), "{told}");
    let found = folder.json(&["test", "a.csv", "b.csv", "--map", "polynomial", "--columns", "age,height"]);
    assert!(found["pvalue"].as_f64().unwrap() <= 0.01, "{found}");
}

#[test]
fn sides_of_a_file_are_tested_for_independence() {
    let golden = |i: usize, by: f64| (i as f64 * by).fract() - 0.5;
    let line = |i: usize| {
        let (x, z) = (golden(i, 0.618_033_988), golden(i, 0.754_877_666));
        format!("{x},{},{z}\n", x * x + 0.1 * golden(i, 0.569_840_291))
    };
    let folder = Folder::with("test-sides", "d.csv", format!("x,y,z\n{}", (0..600).map(line).collect::<String>()));
    let told = folder.good(&["test", "d.csv", "--x", "x", "--y", "y"]);
    assert!(told.starts_with("The columns depend on each other."), "{told}");
    assert_eq!(told, folder.good(&["test", "d.csv", "--independence", "--x", "x", "--y", "y"]));
    assert_eq!(folder.json(&["test", "d.csv", "--x", "x,z", "--y", "y"])["pvalue"], 0.001);
}

#[test]
fn what_cannot_be_tested_is_told() {
    let folder = Folder::with("test-wrong", "a.csv", people(50, 0.0, &["oak", "ash"]));
    folder.write("b.csv", "age,height\n1,2\n3,4\n");
    folder.write("c.csv", "age,height,wood\n1,2,3\n3,4,5\n");
    let bad = |arguments: &[&str], part: &str| {
        let told = folder.bad(arguments);
        assert!(told.contains(part), "{told}");
    };
    bad(&["test", "a.csv", "b.csv"], "a.csv has a column wood, which is not in b.csv");
    bad(&["test", "a.csv", "c.csv"], "column wood holds words in a.csv and numbers in c.csv");
    bad(&["test", "a.csv", "-"], "name files, not standard input");
    bad(&["test", "a.csv", "--x", "age", "--y", "age"], "both name age");
    bad(&["test", "a.csv", "a.csv", "--kernel", "curl_free"], "tests have none");
    bad(&["test", "b.csv", "--x", "age", "--y", "height"], "at least 8 rows, found 2 rows");
}
