//! The sizes of the experiments, which stand in `data/experiments.json`: what a quick run, a full run and the paper have. What
//! a run has less of than the paper, and the fingerprint by which stored results are known to be those of the present sizes,
//! are made from them.

use super::Experiment;
use bochner::words;
use bochner_table::failure::{Failure, Outcome};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Which of the sizes of an experiment a run takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// A meaningful result in under two minutes.
    Quick,
    Full,
    /// The paper's, however long they take.
    Paper,
}

/// The settings of one run of an experiment.
#[derive(Debug, Clone)]
pub(super) struct Choice<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) size: Size,
    /// Draws that were asked for, in place of every setting that counts draws.
    pub(super) draws: Option<usize>,
    /// Settings that were named one by one.
    pub(super) set: BTreeMap<String, Value>,
}

/// A setting with less than the paper has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Less {
    pub(super) name: String,
    ours: Value,
    paper: Value,
}

impl Less {
    /// `draws: 3 instead of 20`.
    pub(super) fn in_words(&self) -> String {
        format!("{}: {} instead of {}", self.name, in_words(&self.ours), in_words(&self.paper))
    }
}

/// Settings of this name count draws.
fn counts_draws(name: &str) -> bool {
    name.starts_with("draws")
}

/// A setting as people read it; nothing stands for all there is.
fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "all".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(word) => word.clone(),
        Value::Array(list) => list.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Number(number) => match number.as_u64() {
            Some(count) => words::count(count as usize),
            None => number.to_string(),
        },
        Value::Object(_) => value.to_string(),
    }
}

/// Whether one value of a setting is less than another: a smaller number, a shorter list, a no for a yes.
fn is_less(ours: &Value, paper: &Value) -> bool {
    match (ours, paper) {
        (Value::Null, _) => false,
        (Value::Number(_), Value::Null) => true,
        (Value::Number(a), Value::Number(b)) => a.as_f64() < b.as_f64(),
        (Value::Bool(a), Value::Bool(b)) => !a && *b,
        (Value::Array(a), Value::Array(b)) => b.iter().any(|value| !a.contains(value)),
        // Words name what is done; whoever does something else does less.
        (Value::String(a), Value::String(b)) => a != b,
        _ => false,
    }
}

/// Whether a value may stand where another does.
fn is_alike(value: &Value, model: &Value) -> bool {
    match (value, model) {
        (Value::Null | Value::Number(_), Value::Null | Value::Number(_)) => true,
        (Value::Array(a), Value::Array(b)) => {
            !a.is_empty() && b.first().is_none_or(|first| a.iter().all(|value| is_alike(value, first)))
        }
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

impl<'a> Choice<'a> {
    /// Checks the settings that were named one by one.
    pub(super) fn new(
        experiment: &'a Experiment,
        size: Size,
        draws: Option<usize>,
        named: &[(String, String)],
    ) -> Outcome<Self> {
        let mut set = BTreeMap::new();
        for (name, text) in named {
            let bad = |expected: String| Failure::Usage(format!("--set {name}={text}: {expected}"));
            let Some(values) = experiment.settings.get(name.as_str()) else {
                let names: Vec<&str> = experiment.settings.keys().copied().collect();
                return Err(bad(format!("{} has no such setting; it has {}", experiment.name, names.join(", "))));
            };
            let value = match text.as_str() {
                "all" => Value::Null,
                _ => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
            };
            let model = &values[values.len().min(2) - 1];
            if !is_alike(&value, model) {
                return Err(bad(format!("expected something like {model}")));
            }
            set.insert(name.clone(), value);
        }
        Ok(Choice { experiment, size, draws, set })
    }

    /// The settings that are kept with results, to be used with the sizes of today.
    pub(super) fn stored(
        experiment: &'a Experiment,
        size: Size,
        draws: Option<usize>,
        set: &BTreeMap<String, Value>,
    ) -> Self {
        Choice { experiment, size, draws, set: set.clone() }
    }

    fn at(&self, size: Size, name: &str) -> Option<&Value> {
        let values = self.experiment.settings.get(name)?;
        values.get((size as usize).min(values.len() - 1))
    }

    fn value(&self, name: &str) -> Option<Value> {
        let asked = self.draws.filter(|_| counts_draws(name)).map(Value::from);
        asked.or_else(|| self.set.get(name).cloned()).or_else(|| self.at(self.size, name).cloned())
    }

    /// A setting of a type that serde reads.
    pub(super) fn get<T: DeserializeOwned>(&self, name: &str) -> Outcome<T> {
        let fail = |why: String| Failure::Failed(format!("{}: the setting {name:?} {why}", self.experiment.name));
        let value = self.value(name).ok_or_else(|| fail("is not in the list of experiments".into()))?;
        serde_json::from_value(value.clone()).map_err(|_| fail(format!("cannot be {value}")))
    }

    /// A number of something; `usize::MAX` for all there is.
    pub(super) fn count(&self, name: &str) -> Outcome<usize> {
        Ok(self.get::<Option<usize>>(name)?.unwrap_or(usize::MAX))
    }

    /// Settings with less than the paper has.
    pub(super) fn less(&self) -> Vec<Less> {
        let found = self.experiment.settings.keys().filter_map(|&name| {
            let (ours, paper) = (self.value(name)?, self.at(Size::Paper, name)?.clone());
            is_less(&ours, &paper).then(|| Less { name: name.to_owned(), ours, paper })
        });
        found.collect()
    }

    /// A hash of all that the sizes, the protocol and the seed decide.
    pub(super) fn fingerprint(&self, seed: u64) -> String {
        let used: BTreeMap<&str, Option<Value>> =
            self.experiment.settings.keys().map(|&name| (name, self.value(name))).collect();
        let Experiment { name, protocol, .. } = self.experiment;
        let all = serde_json::json!([name, protocol, self.size == Size::Quick, used, seed]);
        let digest = Sha256::digest(all.to_string().as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment() -> Experiment {
        let settings =
            r#"{"draws": [2, 3, 20], "rows": [10, 100, null], "sizes": [[1], [1, 2]], "all": [false, true]}"#;
        let settings = serde_json::from_str(Box::leak(settings.to_owned().into_boxed_str())).unwrap();
        Experiment { settings, ..Experiment::nameless() }
    }

    fn named(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.into(), value.into())]
    }

    #[test]
    fn the_last_size_stands_for_those_that_are_missing() {
        let of = |size, draws| Choice::new(Box::leak(Box::new(experiment())), size, draws, &[]).unwrap();
        let sizes = |choice: Choice<'_>| {
            (choice.count("draws").unwrap(), choice.count("rows").unwrap(), choice.get::<Vec<usize>>("sizes").unwrap())
        };
        assert_eq!(sizes(of(Size::Quick, None)), (2, 10, vec![1]));
        assert_eq!(sizes(of(Size::Full, None)), (3, 100, vec![1, 2]));
        assert_eq!(sizes(of(Size::Paper, None)), (20, usize::MAX, vec![1, 2]));
        assert_eq!(sizes(of(Size::Paper, Some(7))), (7, usize::MAX, vec![1, 2]));
        assert!(of(Size::Full, None).count("nothing").is_err());
    }

    #[test]
    fn less_than_in_the_paper_is_found_from_the_settings() {
        let experiment = experiment();
        let told = |size, draws| {
            let choice = Choice::new(&experiment, size, draws, &[]).unwrap();
            choice.less().iter().map(Less::in_words).collect::<Vec<_>>()
        };
        assert!(told(Size::Paper, None).is_empty());
        assert_eq!(told(Size::Full, None), ["draws: 3 instead of 20", "rows: 100 instead of all"]);
        let quick = [
            "all: no instead of yes",
            "draws: 30 instead of 20",
            "rows: 10 instead of all",
            "sizes: 1 instead of 1, 2",
        ];
        let told = told(Size::Quick, Some(30));
        assert_eq!(told, [quick[0], quick[2], quick[3]]);
    }

    #[test]
    fn a_fingerprint_changes_with_what_is_used_and_with_nothing_else() {
        let experiment = experiment();
        let of = |size, draws, set: &[(String, String)], seed| {
            Choice::new(&experiment, size, draws, set).unwrap().fingerprint(seed)
        };
        let full = of(Size::Full, None, &[], 0);
        assert_eq!(full, of(Size::Full, Some(3), &[], 0));
        assert_eq!(of(Size::Paper, None, &[], 0), of(Size::Full, Some(20), &named("rows", "all"), 0));
        for other in [
            of(Size::Quick, None, &[], 0),
            of(Size::Full, Some(4), &[], 0),
            of(Size::Full, None, &named("sizes", "[2]"), 0),
            of(Size::Full, None, &[], 1),
        ] {
            assert_ne!(full, other);
        }
        let changed = Experiment { protocol: 2, ..self::experiment() };
        assert_ne!(full, Choice::new(&changed, Size::Full, None, &[]).unwrap().fingerprint(0));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_with_what_would() {
        let experiment = experiment();
        for (name, value, part) in [
            ("sises", "[1]", "all, draws, rows, sizes"),
            ("sizes", "3", "like [1,2]"),
            ("sizes", "[]", "like [1,2]"),
            ("sizes", "[\"a\"]", "like [1,2]"),
            ("all", "3", "like true"),
            ("rows", "many", "like 100"),
        ] {
            let failure = Choice::new(&experiment, Size::Full, None, &named(name, value)).unwrap_err().to_string();
            assert!(failure.contains(part) && failure.contains(name), "{failure}");
        }
    }
}
