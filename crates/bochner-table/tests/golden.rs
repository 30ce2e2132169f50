//! Models that version 0.1.0 of the command line has written, on tables with words and gaps: they load, and predict the same.

use bochner::catalogue::Task;
use bochner::rows::RowSource;
use bochner_table::model::TableModel;
use bochner_table::predict::{NewCells, open};
use bochner_table::read::Options;
use ndarray::{Array2, Axis, concatenate};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bochner/tests/golden_models/0.1.0")
}

/// A list of numbers, or of rows of them.
fn numbers(value: &Value) -> Array2<f64> {
    let rows = value.as_array().unwrap().iter().map(|row| match row.as_array() {
        Some(row) => row.iter().map(|v| v.as_f64().unwrap()).collect(),
        None => vec![row.as_f64().unwrap()],
    });
    let rows: Vec<Vec<f64>> = rows.collect();
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).unwrap()
}

fn agree(name: &str, what: &str, found: &Array2<f64>, expected: &Value, rtol: f64) {
    let expected = numbers(expected);
    assert_eq!(found.dim(), expected.dim(), "{name}: {what}");
    let largest = expected.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let off = (found - &expected).iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    assert!(off <= rtol * largest, "{name}: {what} off by {off:e} of {largest:e}");
}

fn check(name: &str) {
    let file = |ending: &str| folder().join(format!("{name}.{ending}"));
    let truth: Value = serde_json::from_slice(&std::fs::read(file("json")).unwrap()).unwrap();
    let rtol = truth["rtol"].as_f64().unwrap();
    let model = TableModel::load(file("bochner")).unwrap();
    assert_eq!(model.model.kind().entry.name, truth["kind"], "{name}");
    let data = open(&model, &file("csv"), None, Options::default(), false, NewCells::default()).unwrap();
    let mut rows = Array2::zeros((0, model.model.input_dim()));
    let mut source = data.rows::<f64>();
    source
        .for_each_block(&mut |block| {
            rows = concatenate![Axis(0), rows, block.rows];
            Ok(())
        })
        .unwrap();
    let predicted = model.predict(rows.view()).unwrap();
    match model.task() {
        Task::Regression => agree(name, "predict", &predicted, &truth["predict"], rtol),
        Task::Classification => {
            let classes = model.model.classes().unwrap();
            let found: Vec<Value> =
                predicted.iter().map(|c| serde_json::to_value(&classes[*c as usize]).unwrap()).collect();
            let expected = truth["predict"].as_array().unwrap();
            // 5 and 5.0 are one class.
            let same = |(a, b): (&Value, &Value)| a == b || (a.is_number() && a.as_f64() == b.as_f64());
            assert!(expected.len() == found.len() && expected.iter().zip(&found).all(same), "{name}: {found:?}");
        }
    }
    if let Some(expected) = truth.get("observed_deviations") {
        agree(name, "deviations", &model.deviations(rows.view()).unwrap(), expected, rtol);
    }
    if let Some(expected) = truth.get("probabilities") {
        agree(name, "probabilities", &model.probabilities(rows.view()).unwrap(), expected, rtol);
    }
}

#[test]
fn models_of_earlier_versions_predict_what_they_did() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|e| e == "bochner") && (name.starts_with("fit_") || name.starts_with("again_"))
        {
            check(&name);
            count += 1;
        }
    }
    assert!(count >= 30, "{count} models");
}
