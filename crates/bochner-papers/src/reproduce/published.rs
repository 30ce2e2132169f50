//! What the papers report, as data: every number with its paper, place, unit and direction.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A published number.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    /// Name of the experiment that makes ours.
    pub experiment: String,
    pub paper: String,
    /// Table, figure or file it stands in.
    pub place: String,
    /// What was measured, with its sizes; no other number of the experiment is called the same.
    pub label: String,
    pub value: f64,
    pub unit: String,
    /// Nothing where a number is neither good nor bad.
    pub smaller_is_better: Option<bool>,
}

impl Number {
    /// Paper and place.
    pub fn source(&self) -> String {
        format!("{}, {}", self.paper, self.place)
    }
}

/// Numbers that share all but their labels.
#[derive(Deserialize)]
struct Group {
    experiment: String,
    paper: String,
    place: String,
    unit: String,
    smaller_is_better: Option<bool>,
    values: BTreeMap<String, f64>,
}

static NUMBERS: LazyLock<Vec<Number>> = LazyLock::new(|| {
    let groups: Vec<Group> =
        serde_json::from_str(include_str!("../../data/published.json")).expect("a test reads them");
    let numbers = groups.into_iter().flat_map(|group| {
        let Group { experiment, paper, place, unit, smaller_is_better, values } = group;
        values.into_iter().map(move |(label, value)| {
            let (experiment, paper, place, unit) = (experiment.clone(), paper.clone(), place.clone(), unit.clone());
            Number { experiment, paper, place, label, value, unit, smaller_is_better }
        })
    });
    numbers.collect()
});

/// All published numbers.
pub fn numbers() -> &'static [Number] {
    &NUMBERS
}

/// The published number of an experiment under a label.
pub fn find(experiment: &str, label: &str) -> Option<&'static Number> {
    NUMBERS.iter().find(|number| number.experiment == experiment && number.label == label)
}

#[cfg(test)]
mod tests {
    use super::super::experiments;
    use super::*;

    #[test]
    fn every_number_has_a_label_of_its_own_and_says_where_it_stands() {
        let mut seen = std::collections::BTreeSet::new();
        assert_eq!(numbers().len(), 360);
        for number in numbers() {
            assert!(experiments().iter().any(|e| e.name == number.experiment), "{number:?}");
            assert!(number.value.is_finite() && !number.place.is_empty() && !number.unit.is_empty(), "{number:?}");
            assert!(["thesis", "optical", "compressive"].contains(&number.paper.as_str()), "{number:?}");
            assert!(seen.insert((&number.experiment, &number.label)), "{number:?}");
        }
    }
}
