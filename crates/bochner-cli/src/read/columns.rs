//! What tables have in common, whatever their format: the columns wanted, what a first pass learns about them, and what
//! becomes of their cells.

use super::schema::{Chosen, Column, Kind, Missing, Schema};
use std::collections::{BTreeSet, HashMap};

/// A column with more different words than this is a name or an identifier, not a category.
pub(super) const MOST_WORDS: usize = 1000;

pub(super) const TOO_MANY_WORDS: &str = "more than 1000 different words; a name or an identifier is left out with --drop, and decimal commas must be points";
pub(super) const MISSING: &str =
    "the value is missing; --impute mean fills such cells in, --drop-missing leaves their rows out";

/// What a cell becomes.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Skip,
    Number { place: Place, fill: Option<f64> },
    Words { place: Place, values: HashMap<Vec<u8>, usize> },
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Input(usize),
    Target(usize),
}

/// The role of every column of a file with so many of them.
pub(super) fn roles(columns: usize, chosen: &Chosen, schema: &Schema) -> Vec<Role> {
    let mut roles = vec![Role::Skip; columns];
    let role = |column: &Column, place: Place| match &column.kind {
        Kind::Number { fill } => Role::Number { place, fill: *fill },
        Kind::Words { values } => {
            let values = values.iter().enumerate().map(|(i, v)| (v.clone().into_bytes(), i)).collect();
            Role::Words { place, values }
        }
    };
    let mut at = 0;
    for (&j, column) in chosen.inputs.iter().zip(&schema.inputs) {
        roles[j] = role(column, Place::Input(at));
        at += match &column.kind {
            Kind::Number { .. } => 1,
            Kind::Words { values } => values.len(),
        };
    }
    for (t, (&j, column)) in chosen.targets.iter().zip(&schema.targets).enumerate() {
        roles[j] = role(column, Place::Target(t));
    }
    roles
}

/// What a first pass learns about a column.
#[derive(Debug, Clone)]
pub(super) enum Facts {
    Words(BTreeSet<String>),
    /// Sum and number of the cells that are there.
    Mean(f64, u64),
    Median(Thinned),
}

impl Facts {
    /// Nothing yet about any of the chosen columns.
    pub(super) fn of_all(chosen: &Chosen, words: &[usize], missing: Missing) -> HashMap<usize, Facts> {
        let fact = |j: &usize| match missing {
            _ if words.contains(j) => Facts::Words(BTreeSet::new()),
            Missing::Median => Facts::Median(Thinned::default()),
            _ => Facts::Mean(0.0, 0),
        };
        chosen.inputs.iter().chain(&chosen.targets).map(|j| (*j, fact(j))).collect()
    }
}

/// Adds what a part of the rows has taught; the number of a column that has too many words for a category.
pub(super) fn merge(facts: &mut HashMap<usize, Facts>, part: &mut HashMap<usize, Facts>) -> Option<usize> {
    for (j, fact) in facts {
        match (fact, part.remove(j)) {
            (Facts::Words(all), Some(Facts::Words(some))) => {
                all.extend(some);
                if all.len() > MOST_WORDS {
                    return Some(*j);
                }
            }
            (Facts::Mean(sum, n), Some(Facts::Mean(s, m))) => (*sum, *n) = (*sum + s, *n + m),
            (Facts::Median(all), Some(Facts::Median(some))) => some.kept.iter().for_each(|&v| all.push(v)),
            _ => {}
        }
    }
    None
}

/// The chosen columns with what was learned about them.
pub(super) fn schema_from(
    names: &[String],
    chosen: &Chosen,
    missing: Missing,
    facts: &HashMap<usize, Facts>,
) -> Schema {
    let column = |j: &usize| Column {
        name: names[*j].clone(),
        kind: match facts.get(j) {
            Some(Facts::Words(values)) => Kind::Words { values: values.iter().cloned().collect() },
            facts => {
                let fill = match (missing, facts) {
                    (Missing::Mean, Some(Facts::Mean(sum, n))) if *n > 0 => Some(sum / *n as f64),
                    (Missing::Median, Some(Facts::Median(values))) => Some(values.median()),
                    (missing, _) => missing.fills().then_some(0.0),
                };
                Kind::Number { fill: fill.filter(|_| chosen.inputs.contains(j)) }
            }
        },
    };
    Schema { inputs: chosen.inputs.iter().map(column).collect(), targets: chosen.targets.iter().map(column).collect() }
}

/// At most [`Thinned::MOST`] of the values of a column, evenly spaced.
#[derive(Debug, Clone, Default)]
pub(super) struct Thinned {
    kept: Vec<f64>,
    seen: u64,
    /// One of `2^halvings` values is kept.
    halvings: u32,
}

impl Thinned {
    const MOST: usize = 1 << 19;

    pub(super) fn push(&mut self, value: f64) {
        if self.seen.is_multiple_of(1 << self.halvings) {
            self.kept.push(value);
        }
        self.seen += 1;
        if self.kept.len() == Self::MOST {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.halvings += 1;
        }
    }

    /// The middle value, or the mean of the two; 0 of nothing.
    pub(super) fn median(&self) -> f64 {
        let mut sorted = self.kept.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => 0.0,
            n if n % 2 == 1 => sorted[n / 2],
            n => 0.5 * sorted[n / 2 - 1] + 0.5 * sorted[n / 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_values_keep_their_median() {
        let mut values = Thinned::default();
        (0..3 * Thinned::MOST).for_each(|i| values.push(i as f64));
        assert!(values.kept.len() < Thinned::MOST);
        assert!((values.median() / (1.5 * Thinned::MOST as f64) - 1.0).abs() < 1e-4, "{}", values.median());
    }
}
