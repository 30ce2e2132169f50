//! Model files that lie: their hash is right, what they say is not. Each is refused, or loads soon and answers numbers.

use bochner::Model;
use ndarray::Array2;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Numbers in a row that nobody chose (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// A model file taken apart.
#[derive(Clone)]
struct Parts {
    envelope: Value,
    tensors: Map<String, Value>,
    data: Vec<u8>,
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let mut tensors: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let metadata = tensors.remove("__metadata__").unwrap();
        let envelope = serde_json::from_str(metadata["bochner"].as_str().unwrap()).unwrap();
        Parts { envelope, tensors, data: bytes[8 + length..].to_vec() }
    }

    /// The file, with the hash of what is in it.
    fn bytes(&self) -> Vec<u8> {
        let written = |hash: &str| {
            let mut envelope = self.envelope.clone();
            envelope["sha256"] = hash.into();
            let mut head = self.tensors.clone();
            head.insert("__metadata__".into(), json!({ "bochner": envelope.to_string() }));
            let mut head = serde_json::to_vec(&head).unwrap();
            head.resize(head.len().next_multiple_of(8), b' ');
            [&(head.len() as u64).to_le_bytes()[..], &head, &self.data].concat()
        };
        let hash: String = Sha256::digest(written(&"0".repeat(64))).iter().map(|b| format!("{b:02x}")).collect();
        written(&hash)
    }

    /// Some lie, in words.
    fn forge(&mut self, chance: &mut Chance) -> String {
        match chance.below(10) {
            0 => {
                self.envelope["format"] = number(chance);
                format!("format {}", self.envelope["format"])
            }
            1 | 2 => self.forge_array(chance),
            3 => self.forge_shape(chance),
            _ => {
                let mut places = Vec::new();
                pointers(&self.envelope["header"], "/header", &mut places);
                let place = places[chance.below(places.len())].clone();
                forge_value(&mut self.envelope, &place, chance)
            }
        }
    }

    fn name(&self, chance: &mut Chance) -> Option<String> {
        self.tensors.keys().nth(chance.below(self.tensors.len())).cloned()
    }

    fn forge_array(&mut self, chance: &mut Chance) -> String {
        const REALS: [f64; 9] =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308, -1e300, 1e39, 0.0, -1.0, f64::MIN_POSITIVE];
        let Some(name) = self.name(chance) else { return "nothing".into() };
        let (real, info) = (REALS[chance.below(REALS.len())], &self.tensors[&name]);
        let ends = |i: usize| info["data_offsets"][i].as_u64().unwrap_or(0) as usize;
        let size = if info["dtype"] == "F32" { 4 } else { 8 };
        let Some(values) = self.data.get_mut(ends(0)..ends(1)) else { return "nothing".into() };
        let (count, whole) = (values.len() / size, chance.below(3) == 0);
        let chosen = chance.below(count);
        let values = values.chunks_exact_mut(size).enumerate().filter(|(i, _)| whole || *i == chosen);
        for (_, value) in values {
            match size {
                4 => value.copy_from_slice(&(real as f32).to_le_bytes()),
                _ => value.copy_from_slice(&real.to_le_bytes()),
            }
        }
        format!("{real} in {}`{name}`", if whole { "all of " } else { "" })
    }

    fn forge_shape(&mut self, chance: &mut Chance) -> String {
        let Some(name) = self.name(chance) else { return "nothing".into() };
        let info = &mut self.tensors[&name];
        match chance.below(4) {
            0 => info["dtype"] = ["F32", "F64", "I64", "BOOL"][chance.below(4)].into(),
            1 => info["shape"].as_array_mut().unwrap().reverse(),
            2 => {
                let dims = info["shape"].as_array_mut().unwrap();
                let i = chance.below(dims.len());
                dims[i] = number(chance);
            }
            _ => {
                let other = chance.below(3);
                let (removed, renamed) = (self.tensors.remove(&name).unwrap(), format!("{name}{other}"));
                if other > 0 {
                    self.tensors.insert(renamed, removed);
                }
            }
        }
        format!("shape of `{name}`: {:?}", self.tensors.get(&name))
    }
}

/// A number that no field expects.
fn number(chance: &mut Chance) -> Value {
    let wholes = [0, 1, 2, 3, 63, 65, 1 << 20, 1 << 24, 1 << 28, 1 << 31, 1 << 32, 1 << 53, 1 << 60, 1 << 63, u64::MAX];
    match chance.below(3) {
        0 => [json!(-1), json!(-1e308), json!(1e308), json!(0.5), json!(1e-308), json!(-0.0), json!(1e15)]
            [chance.below(7)]
        .clone(),
        _ => json!(wholes[chance.below(wholes.len())]),
    }
}

fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(parts) => {
            parts.iter().for_each(|(name, part)| pointers(part, &format!("{at}/{}", escaped(name)), found));
        }
        Value::Array(parts) => {
            // Long lists are all alike.
            parts.iter().enumerate().take(4).for_each(|(i, part)| pointers(part, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

fn forge_value(root: &mut Value, place: &str, chance: &mut Chance) -> String {
    let value = root.pointer_mut(place).unwrap();
    match value {
        Value::Number(old) => {
            let off = old.as_i64().map(|n| n.wrapping_add(if chance.below(2) == 0 { 1 } else { -1 }));
            *value = off.filter(|_| chance.below(4) == 0).map_or_else(|| number(chance), Into::into);
        }
        Value::String(_) => {
            let words = ["", "f32", "f64", "fourier", "gaussian", "orthogonal", "sorf", "tree", "dense", "ridge", "0"];
            *value = if chance.below(3) == 0 { number(chance) } else { words[chance.below(words.len())].into() };
        }
        Value::Bool(flag) => *flag = !*flag,
        Value::Null => *value = [json!([]), json!(1), json!("median"), json!({})][chance.below(4)].clone(),
        Value::Array(list) => match chance.below(4) {
            0 => list.clear(),
            1 => {
                let last = list.last().cloned().unwrap_or(json!(1));
                list.push(last);
            }
            2 => drop(list.pop()),
            _ => list.reverse(),
        },
        Value::Object(parts) => {
            let names: Vec<String> = parts.keys().cloned().collect();
            let name = names.get(chance.below(names.len())).cloned().unwrap_or_default();
            match chance.below(3) {
                0 => drop(parts.remove(&name)),
                1 => drop(parts.insert(format!("{name}_"), json!(1))),
                _ => {
                    let other = names.get(chance.below(names.len())).cloned().unwrap_or_default();
                    let (a, b) = (parts.get(&name).cloned(), parts.get(&other).cloned());
                    parts.extend([(name, b), (other, a)].into_iter().filter_map(|(n, v)| Some((n, v?))));
                }
            }
        }
    }
    let shown = root.pointer(place).map(ToString::to_string).unwrap_or_default();
    format!("{place} = {}", shown.chars().take(200).collect::<String>())
}

/// What became of a file: whether it loaded.
fn judge(bytes: &[u8], rows: &Array2<f64>) -> Result<bool, String> {
    let start = Instant::now();
    let loaded = catch_unwind(AssertUnwindSafe(|| Model::from_bytes(bytes))).map_err(|_| "a panic in load")?;
    if start.elapsed() > Duration::from_secs(10) {
        return Err(format!("{:?} to load", start.elapsed()));
    }
    let Ok(model) = loaded else { return Ok(false) };
    let dim = model.input_dim();
    let rows = match dim == rows.ncols() {
        true => rows.clone(),
        false if dim < 1 << 16 => Array2::from_shape_fn((2, dim), |(i, j)| ((i + j) as f64).sin()),
        false => return Ok(true),
    };
    let asked = AssertUnwindSafe(|| {
        let _ = model.in_words();
        [model.predict(rows.view()), model.deviations(rows.view()), model.probabilities(rows.view())]
    });
    let answers = catch_unwind(asked).map_err(|_| "a panic in predict")?;
    match answers.into_iter().flatten().all(|answer| answer.iter().all(|v| v.is_finite())) {
        true => Ok(true),
        false => Err("an answer that is not finite".into()),
    }
}

fn forge_all(count: usize, seed: u64) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden_models");
    let folders = std::fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path());
    let mut files: Vec<PathBuf> = folders
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "bochner"))
        .collect();
    files.sort();
    let mut chance = Chance(seed);
    let (mut failures, mut loaded, mut slowest) = (Vec::new(), 0, Duration::ZERO);
    for i in 0..count {
        let path = &files[i * 7919 % files.len()];
        let mut parts = Parts::of(&std::fs::read(path).unwrap());
        let told: Value = serde_json::from_slice(&std::fs::read(path.with_extension("json")).unwrap()).unwrap();
        let dim = parts.envelope["header"]["input_dim"].as_u64().unwrap() as usize;
        let row = |i: usize, j: usize| told["rows"][i][j].as_f64().unwrap_or(0.1 * (i + j) as f64);
        let rows = Array2::from_shape_fn((3, dim), |(i, j)| row(i, j));
        let lies: Vec<String> = (0..=chance.below(2)).map(|_| parts.forge(&mut chance)).collect();
        // Shown by --nocapture: what ends the process tells nothing else.
        println!("{i}: {}: {}", path.display(), lies.join("; "));
        let start = Instant::now();
        match judge(&parts.bytes(), &rows) {
            Ok(true) => loaded += 1,
            Ok(false) => {}
            Err(what) => failures.push(format!("{}: {what} after {}", path.display(), lies.join("; "))),
        }
        slowest = slowest.max(start.elapsed());
    }
    println!("{count} forged files: {loaded} loaded, the slowest took {slowest:?}");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn files_that_are_taken_apart_and_put_together_again_load() {
    Model::from_bytes(&golden(|_| true).bytes()).unwrap();
}

#[test]
fn forged_files_are_refused_or_answer_numbers() {
    forge_all(500, 1);
}

#[test]
#[ignore = "takes minutes"]
fn many_forged_files_are_refused_or_answer_numbers() {
    forge_all(20_000, 2);
}

fn golden(with: impl Fn(&Parts) -> bool) -> Parts {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden_models/0.1.0");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "bochner"));
    files.map(|path| Parts::of(&std::fs::read(path).unwrap())).find(with).expect("a model of this kind")
}

fn refused(parts: &Parts) -> String {
    Model::from_bytes(&parts.bytes()).expect_err("a lie").to_string()
}

#[test]
fn a_file_with_samples_without_end_is_refused() {
    for kind in ["gp_classifier", "svi_classifier", "exact_gp_classifier"] {
        let place =
            if kind.starts_with("exact") { "/header/extra/samples" } else { "/header/extra/process/sampling/samples" };
        for samples in [0u64, 1 << 28, 1 << 31, 1 << 60, u64::MAX] {
            let mut parts = golden(|parts| parts.envelope["header"]["kind"] == kind);
            *parts.envelope.pointer_mut(place).unwrap() = samples.into();
            let told = refused(&parts);
            assert!(told.contains("samples") || told.contains("process"), "{kind}, {samples}: {told}");
        }
    }
}

#[test]
fn a_file_of_format_0_is_refused() {
    let mut parts = golden(|_| true);
    parts.envelope["format"] = 0.into();
    assert!(refused(&parts).contains("format 0"));
}

#[test]
fn arrays_that_are_not_finite_are_refused_whatever_the_kind() {
    let mut kinds = std::collections::BTreeSet::new();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden_models/0.1.0");
    for path in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "bochner") {
            continue;
        }
        let parts = Parts::of(&std::fs::read(&path).unwrap());
        if !kinds.insert(parts.envelope["header"]["kind"].to_string()) {
            continue;
        }
        for (name, info) in &parts.tensors {
            let first = info["data_offsets"][0].as_u64().unwrap() as usize;
            let mut forged = parts.clone();
            match info["dtype"].as_str() {
                Some("F32") => forged.data[first..first + 4].copy_from_slice(&f32::NAN.to_le_bytes()),
                _ => forged.data[first..first + 8].copy_from_slice(&f64::NEG_INFINITY.to_le_bytes()),
            }
            let told = refused(&forged);
            assert!(told.contains(name.as_str()) && told.contains("NaN or an infinity"), "{}: {told}", path.display());
        }
    }
    assert!(kinds.len() >= 10, "{kinds:?}");
}

#[test]
fn a_draw_that_costs_too_much_is_refused_before_it_begins_and_may_be_allowed() {
    use bochner::feature::DrawCost;
    let is_dense = |parts: &Parts| {
        let map = &parts.envelope["header"]["map"];
        map["map"] == "fourier" && map["projection"] == "gaussian"
    };
    let mut parts = golden(is_dense);
    let honest = parts.bytes();
    parts.envelope["header"]["input_dim"] = (1u64 << 40).into();
    let start = Instant::now();
    assert!(refused(&parts).contains("load_within"));
    assert!(start.elapsed() < Duration::from_secs(1));
    let path = std::env::temp_dir().join(format!("bochner-costly-{}", std::process::id()));
    std::fs::write(&path, honest).unwrap();
    let (small, large) = (DrawCost { numbers: 10, operations: 10 }, DrawCost::LIMIT);
    assert!(Model::load_within(&path, small).unwrap_err().to_string().contains("allowed"));
    assert!(Model::load_within(&path, large).is_ok() && bochner::load(&path).is_ok());
    std::fs::remove_file(path).unwrap();
}
