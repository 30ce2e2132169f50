//! Logarithms of targets, sets of classes, and what a linear model reaches, as people meet them.

mod common;

use common::{Folder, noise};
use std::fmt::Write;

/// A price that is the exponential of a curve and noise, a class, and a column that says nothing.
fn prices(rows: usize) -> String {
    let mut text = String::from("size,age,other,price,kind\n");
    for i in 0..rows {
        let [size, age, other, error] = [0, 1, 2, 3].map(|j| 2.0 * noise(i, j + 1) - 1.0);
        let price = (3.0 * size * age + size + 1.0 + 0.3 * error).exp();
        let kind = if size * age + 0.1 * error > 0.0 { "good" } else { "bad" };
        writeln!(text, "{size},{age},{other},{price},{kind}").unwrap();
    }
    text
}

#[test]
fn the_logarithm_of_a_skewed_target_is_learned_unless_it_is_forbidden() {
    let folder = Folder::with("log-target", "prices.csv", prices(600));
    let fit = ["fit", "prices.csv", "--target", "price", "--drop", "kind"];
    let told = folder.json(&fit);
    assert_eq!(told["target_scale"], "log", "{told:#}");
    assert!(told["intervals"].as_str().unwrap().contains("times the prediction"), "{told:#}");
    let plain = folder.json(&[&fit[..], &["--target-scale", "none"]].concat());
    assert_eq!(plain["target_scale"], "none");
    // Both scores are in the units of the target: R² is the first figure.
    let r2 = |told: &serde_json::Value| told["figures"][0]["value"].as_f64().unwrap();
    // On sixty rows chance decides about little differences.
    let chance = 2.0 * told["figures"][0]["standard_error"].as_f64().unwrap();
    assert!(r2(&told) > 0.8 && r2(&plain) < r2(&told) + chance, "{} {} {chance}", r2(&told), r2(&plain));
    let page = folder.good(&[&fit[..], &["--report", "page.html"]].concat());
    assert!(page.contains("the logarithm of the target is learned"), "{page}");
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(
        page.contains("How predictions depend on the columns that count most")
            && page.contains("size and the prediction")
    );
    // Ends of intervals are positive, as prices are, and in order.
    let predicted = folder.good(&["predict", "prices.bochner", "prices.csv", "--interval", "0.9"]);
    let rows: Vec<Vec<f64>> =
        predicted.lines().skip(1).map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert!(rows.len() == 600 && rows.iter().all(|row| 0.0 < row[1] && row[1] < row[2]));
    let refused = folder.bad(&["fit", "prices.csv", "--target", "kind", "--target-scale", "log"]);
    assert!(refused.contains("classes have no logarithms"), "{refused}");
    let refused = folder.bad(&["fit", "prices.csv", "--target", "size", "--target-scale", "log"]);
    assert!(refused.contains("not negative for logarithms"), "{refused}");
}

#[test]
fn sets_of_classes_hold_the_true_one_and_a_linear_model_stands_beside() {
    let folder = Folder::with("class-sets", "prices.csv", prices(1000));
    let fit = ["fit", "prices.csv", "--target", "kind", "--drop", "price"];
    let told = folder.json(&fit);
    // A product has no linear part.
    assert!(told["figures"][0]["linear"].as_f64().unwrap() < 0.7, "{told:#}");
    assert!(told["against_linear"]["z"].as_f64().unwrap() > 2.0, "{told:#}");
    assert!(told["verdict"].as_str().unwrap().contains("clearly better than a linear model"), "{told:#}");
    let sets = folder.good(&["predict", "prices.bochner", "prices.csv", "--interval", "0.9"]);
    let mut lines = sets.lines();
    assert_eq!(lines.next().unwrap(), "kind,set with bad,set with good");
    assert!(lines.all(|line| line.ends_with(",0") || line.ends_with(",1")));
    assert!(folder.good(&["inspect", "prices.bochner"]).contains("a linear model:"));
}
