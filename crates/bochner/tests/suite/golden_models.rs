//! Files that released versions wrote: they load and answer the same, for ever, and no other draw is taken for theirs.

use bochner::Model;
use bochner::catalogue::Task;
use bochner::feature::{Describe, Description, FeatureMap, OperatorSpec, Spec};
use bochner::persist::{Label, Stored};
use bochner::scalar::{Real, Scalar};
use ndarray::{Array2, ArrayView2};
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// A file of a released version, and what that version said.
struct Golden {
    name: String,
    bytes: Vec<u8>,
    told: Value,
}

impl Golden {
    fn all() -> Vec<Golden> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden_models");
        let versions = std::fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
        let files = versions.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|file| file.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "bochner")).collect();
        files.sort();
        assert!(files.len() > 150, "{}", files.len());
        let read = |path: PathBuf| Golden {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            bytes: std::fs::read(&path).unwrap(),
            told: serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap()).unwrap(),
        };
        files.into_iter().map(read).collect()
    }

    fn model(&self) -> Model {
        Model::from_bytes(&self.bytes).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The command line's files are about the columns of a table, which this crate knows nothing of.
    fn is_of_rows(&self) -> bool {
        self.name.starts_with("map_") || self.name.starts_with("model_")
    }

    fn rows(&self) -> Array2<f64> {
        matrix(&self.told["rows"])
    }

    /// Compares to `rtol` times the largest absolute value.
    fn close(&self, what: &str, found: ArrayView2<'_, f64>) {
        let expected = matrix(&self.told[what]);
        assert_eq!(found.dim(), expected.dim(), "{}: {what}", self.name);
        let largest = expected.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let worst = found.iter().zip(&expected).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
        let tolerance = self.told["rtol"].as_f64().unwrap() * largest;
        assert!(worst <= tolerance, "{}: {what} differs by {worst:e}, more than {tolerance:e}", self.name);
    }
}

/// Numbers, or rows of them.
fn matrix(value: &Value) -> Array2<f64> {
    let row = |value: &Value| match value {
        Value::Array(row) => row.iter().map(|v| v.as_f64().unwrap()).collect(),
        number => vec![number.as_f64().unwrap()],
    };
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(row).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

/// What is done to targets before and after a model.
#[derive(Deserialize)]
struct Units {
    targets: Option<Vec<Unit>>,
}

#[derive(Deserialize)]
struct Unit {
    mean: f64,
    scale: f64,
}

#[test]
fn models_of_released_versions_answer_as_they_did() {
    for golden in Golden::all() {
        let (model, told) = (golden.model(), &golden.told);
        let precision = if told["precision"] == "float32" { "f32" } else { "f64" };
        assert_eq!((model.kind().entry.name, model.precision()), (told["kind"].as_str().unwrap(), precision));
        assert!(model.output_dim() > 0 && !model.in_words().is_empty(), "{}", golden.name);
        let classes: Option<Vec<Label>> = Option::deserialize(&told["classes"]).unwrap();
        assert_eq!(model.classes(), classes.as_deref(), "{}", golden.name);
        assert_eq!(model.kind().task == Task::Classification, classes.is_some());
        if !golden.is_of_rows() {
            continue;
        }
        let rows = golden.rows();
        assert_eq!(model.input_dim(), rows.ncols());
        let mut values = model.predict(rows.view()).unwrap();
        if let Some(names) = classes {
            let winners = model.predict_classes(rows.view()).unwrap().into_iter().map(|c| names[c].clone());
            let expected: Vec<Label> = Vec::deserialize(&told["predict"]).unwrap();
            assert_eq!(winners.collect::<Vec<_>>(), expected, "{}", golden.name);
            match told["decision"].get(0) {
                // Votes, and a fraction by how much they were won.
                Some(Value::Array(_)) if model.kind().entry.name == "kernel_svm" => {
                    assert_eq!(values, matrix(&told["decision"]).mapv(f64::round), "{}", golden.name);
                }
                Some(Value::Array(_)) => golden.close("decision", values.view()),
                _ => {}
            }
        } else {
            if let Some(units) = model.attachment::<Units>("preprocessing").unwrap().and_then(|units| units.targets) {
                for (mut column, unit) in values.columns_mut().into_iter().zip(units) {
                    column.mapv_inplace(|v| v * unit.scale + unit.mean);
                }
            }
            golden.close("predict", values.view());
        }
        if !told["probabilities"].is_null() {
            golden.close("probabilities", model.probabilities(rows.view()).unwrap().view());
        }
        if told["deviations"].is_null() {
            assert!(model.deviations(rows.view()).is_err());
        } else {
            let columns = |found: Array2<f64>| match told["deviations"][0] {
                Value::Array(_) => found,
                _ => found.slice(ndarray::s![.., ..1]).to_owned(),
            };
            golden.close("deviations", columns(model.function_deviations(rows.view()).unwrap()).view());
            if !told["observed_deviations"].is_null() {
                golden.close("observed_deviations", columns(model.deviations(rows.view()).unwrap()).view());
            }
        }
    }
}

fn features_agree<R: Real>(golden: &Golden, spec: &Spec) {
    let rows = golden.rows().mapv(R::from_f64);
    let features = &golden.told["features"];
    if features.get("real").is_none() {
        let found = spec.build::<R>(rows.ncols()).unwrap().transform(rows.view()).unwrap();
        return golden.close("features", found.mapv(Real::to_f64).view());
    }
    let found = spec.build_complex::<R>(rows.ncols()).unwrap().transform(rows.view()).unwrap();
    let part = |name: &str, found: Array2<f64>| {
        let told = serde_json::json!({ "rtol": golden.told["rtol"], "features": features[name] });
        Golden { name: golden.name.clone(), bytes: Vec::new(), told }.close("features", found.view());
    };
    part("real", found.mapv(|v| Real::to_f64(v.re())));
    part("imaginary", found.mapv(|v| Real::to_f64(v.im())));
}

#[test]
fn maps_of_released_versions_are_drawn_as_they_were() {
    for golden in Golden::all().into_iter().filter(|golden| !golden.told["features"].is_null()) {
        let model = golden.model();
        let spec = model.description().unwrap().spec().unwrap();
        match model.precision() {
            "f32" => features_agree::<f32>(&golden, &spec),
            _ => features_agree::<f64>(&golden, &spec),
        }
    }
}

#[test]
fn a_file_whose_map_would_be_drawn_differently_is_refused() {
    let (mut maps, mut kinds) = (Vec::new(), Vec::new());
    for golden in Golden::all().into_iter().filter(Golden::is_of_rows) {
        let model = golden.model();
        let bytes = model.to_bytes().unwrap();
        let again = Model::from_bytes(&bytes).unwrap_or_else(|error| panic!("{}: {error}", golden.name));
        let rows = golden.rows();
        assert_eq!(again.predict(rows.view()).unwrap(), model.predict(rows.view()).unwrap(), "{}", golden.name);
        assert_eq!(again.to_bytes().unwrap(), bytes, "{}", golden.name);
        let mut stored = Stored::from_bytes(&bytes).unwrap();
        assert_eq!(stored.header.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        stored.header.map = Some(match model.description().unwrap() {
            Description::Map(spec) => {
                maps.push(spec.entry().name);
                let Some(seed) = spec.get("seed").and_then(|seed| seed.number()) else { panic!("{}", golden.name) };
                spec.redrawn(spec.n_components(), seed as u64 + 1).into()
            }
            Description::Operator(spec) => OperatorSpec { seed: spec.seed + 1, ..spec.clone() }.into(),
            Description::Kernel(_) | Description::OperatorKernel(_) => {
                assert_eq!(stored.header.fingerprint, None, "{}", golden.name);
                continue;
            }
        });
        kinds.push(model.kind().entry.name);
        let refused = Model::from_bytes(&stored.to_bytes().unwrap()).expect_err(&golden.name).to_string();
        let version = concat!("version ", env!("CARGO_PKG_VERSION"));
        assert!(refused.contains(version) && refused.contains("draw"), "{}: {refused}", golden.name);
        // A file of 0.1.0 says nothing, and is believed.
        stored.header.fingerprint = None;
        assert!(Model::from_bytes(&stored.to_bytes().unwrap()).is_ok(), "{}", golden.name);
    }
    // Maps that no released version has.
    let new = ["learned_fourier"];
    for entry in bochner::catalogue::maps().filter(|entry| !new.contains(&entry.name)) {
        assert!(maps.contains(&entry.name), "no golden model has the map {}", entry.name);
    }
    // And kinds of models that none has.
    let new = ["operator_gp"];
    let old = bochner::catalogue::models().filter(|model| !new.contains(&model.entry.name));
    for model in old.filter(|model| !model.entry.name.starts_with("exact")) {
        let name = model.entry.name;
        assert!(kinds.contains(&name) || name == "kernel_svm", "no golden model of the kind {name} was refused");
    }
}
