//! What the papers report, as data: experiment, key, value, source.

use std::collections::BTreeMap;

const TABLE: &str = include_str!("../../data/published.tsv");

/// A published number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub(crate) value: f64,
    /// Table, figure or file it stands in.
    pub(crate) source: String,
}

/// The published numbers of one experiment.
#[derive(Debug, Default)]
pub(super) struct Published(BTreeMap<&'static str, Value>);

fn lines() -> impl Iterator<Item = [&'static str; 4]> {
    TABLE.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).filter_map(|line| {
        let mut fields = line.split('\t');
        let fields = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
        Some(fields)
    })
}

/// Names of the experiments that have published numbers.
#[cfg(test)]
pub(super) fn experiments() -> std::collections::BTreeSet<&'static str> {
    lines().map(|[experiment, ..]| experiment).collect()
}

impl Published {
    pub(super) fn of(experiment: &str) -> Self {
        let values = lines().filter(|[name, ..]| *name == experiment).filter_map(|[_, key, value, source]| {
            Some((key, Value { value: value.parse().ok()?, source: source.into() }))
        });
        Published(values.collect())
    }

    pub(super) fn get(&self, key: &str) -> Option<Value> {
        self.0.get(key).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_key_of_its_own_a_number_and_a_source() {
        let mut seen = std::collections::BTreeSet::new();
        for line in TABLE.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 4, "{line}");
            assert!(fields[2].parse::<f64>().is_ok_and(f64::is_finite) && !fields[3].is_empty(), "{line}");
            assert!(seen.insert((fields[0], fields[1])), "{line}");
        }
    }
}
