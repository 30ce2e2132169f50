//! What the papers report, as data: every number with its paper, place, unit and direction.

use crate::bench::optical;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Published numbers that share all but their labels.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Group {
    /// Name of the experiment that makes ours.
    pub experiment: String,
    pub paper: String,
    /// Table, figure or file they stand in.
    pub place: String,
    pub unit: String,
    /// Nothing where a number is neither good nor bad.
    pub smaller_is_better: Option<bool>,
    /// Draws over which the paper averages, where it says so.
    #[serde(default)]
    pub draws: Option<usize>,
    /// Unit of the last digit that was printed, where all have the same.
    #[serde(default)]
    pub step: Option<f64>,
    /// Why ours, where there is one, measures something else.
    #[serde(default)]
    pub apart: Option<String>,
    /// Why there is none of ours.
    #[serde(default)]
    pub missing: Option<String>,
    /// Standard deviations over draws that were published beside the values.
    #[serde(default)]
    pub deviations: BTreeMap<String, f64>,
    /// Numbers by what was measured, with its sizes; no other number of the experiment is called the same.
    pub values: BTreeMap<String, f64>,
}

/// All published numbers.
pub fn groups() -> &'static [Group] {
    static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
        let mut groups: Vec<Group> = serde_json::from_str(include_str!("../../data/published.json"))
            .expect("the embedded numbers are read by a test");
        groups.extend(projections());
        groups
    });
    &GROUPS
}

/// What a projection of the optical paper's figure 3 is called: rows, dimension, `s` or `J`.
pub(super) fn projection_label(rows: usize, dim: usize, unit: &str) -> String {
    format!("n={rows} D={dim}, {unit}")
}

/// Times and energies of projections on a GPU, which the benchmarks print too and therefore stand in a file of their own.
fn projections() -> Vec<Group> {
    let points = optical::published().points;
    let of = |unit: &str, value: fn(&optical::Point) -> f64| Group {
        experiment: "optical-time".into(),
        paper: "optical".into(),
        place: "figure 3".into(),
        unit: unit.into(),
        smaller_is_better: Some(true),
        draws: None,
        step: None,
        apart: Some("a P100 GPU; ours is this machine".into()),
        missing: None,
        deviations: BTreeMap::new(),
        values: points.iter().map(|p| (projection_label(p.rows, p.dim, unit), value(p))).collect(),
    };
    vec![of("s", |point| point.seconds), of("J", |point| point.joules)]
}

/// The published number of an experiment under a label, and paper and place it stands in.
pub fn find(experiment: &str, label: &str) -> Option<(f64, String)> {
    let own = groups().iter().filter(|group| group.experiment == experiment);
    own.filter_map(|group| Some((*group.values.get(label)?, format!("{}, {}", group.paper, group.place)))).next()
}

#[cfg(test)]
mod tests {
    use super::super::experiments;
    use super::*;

    #[test]
    fn every_number_has_a_label_of_its_own_and_says_where_it_stands() {
        let mut seen = std::collections::BTreeSet::new();
        for group in groups() {
            assert!(experiments().iter().any(|e| e.name == group.experiment), "{group:?}");
            assert!(!group.place.is_empty() && !group.unit.is_empty(), "{group:?}");
            assert!(["thesis", "optical", "compressive"].contains(&group.paper.as_str()), "{group:?}");
            assert!(group.deviations.keys().all(|label| group.values.contains_key(label)), "{group:?}");
            assert!(group.deviations.values().chain(&group.step).all(|spread| *spread >= 0.0), "{group:?}");
            for (label, value) in &group.values {
                assert!(value.is_finite() && seen.insert((&group.experiment, label)), "{label}");
            }
        }
        assert_eq!(seen.len(), 390);
    }
}
