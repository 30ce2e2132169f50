//! What tables have in common, whatever their format: the columns wanted, what a first pass learns about them, and what
//! becomes of their cells.

use super::fault::Fault;
use super::schema::{Chosen, Column, Kind, Missing, Schema};
use super::words;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// A column with more different words than this is a name or an identifier, not a category.
pub(super) const MOST_WORDS: usize = 1000;

/// What is said about a column with more words than that; `option` is the column as options call it.
pub(super) fn too_many_words(option: &str) -> String {
    format!(
        "more than {MOST_WORDS} different words: names, identifiers or free text; --drop {option} leaves the column out \
         ({})",
        words::AS_NUMBERS_ARE
    )
}

const MISSING: &str = "the value is missing; --impute mean fills such cells in, --drop-missing leaves their rows out";

/// What is said about an empty cell; `advice` is for users of a model that is already there.
pub(super) fn absent(target: bool, missing: Missing, advice: Option<&'static str>) -> &'static str {
    match (target, advice) {
        (true, Some(_)) => "the target is missing, and there is nothing to compare a prediction with",
        (true, None) if missing.fills() => {
            "the target is missing, and targets are not filled in; --drop-missing, in place of --impute, leaves such rows out"
        }
        (true, None) => "the target is missing; --drop-missing leaves such rows out",
        (false, Some(advice)) => advice,
        (false, None) => MISSING,
    }
}

/// What is said about a column without a single value; `option` is the column as options call it.
pub(super) fn empty(target: bool, option: &str) -> String {
    match target {
        true => "the target is missing in all rows: there is nothing to learn".into(),
        false => format!("the column is empty in all rows; --drop {option} leaves it out"),
    }
}

/// What is said about a word that nobody has seen before; inputs may be `let_pass`.
pub(super) fn unknown_word(word: &str, target: bool, let_pass: bool) -> String {
    match (target, let_pass) {
        (true, _) => format!("the class {word} did not occur in training"),
        (false, true) => format!("the word {word} did not occur in training"),
        (false, false) => format!(
            "the word {word} did not occur in training; --unknown-words zeros takes such words for none of those that did"
        ),
    }
}

/// A column as options call it: by its name, or by its number where a shell or a list would cut the name.
pub(super) fn option_name(names: &[String], j: usize) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    match names.get(j) {
        Some(name) if name.len() <= 60 && !name.starts_with('-') && name.chars().all(plain) => name.clone(),
        _ => (j + 1).to_string(),
    }
}

/// Cells that were let pass, such as unknown categories: how many, and where the first one is.
#[derive(Debug, Default)]
pub(super) struct Noted(Mutex<(u64, Option<Fault>)>);

impl Noted {
    pub(super) fn add(&self, n: u64, first: impl FnOnce() -> Option<Fault>) {
        if n > 0 {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.0 += n;
            if all.1.is_none() {
                all.1 = first();
            }
        }
    }

    pub(super) fn seen(&self) -> Option<(u64, Fault)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.clone().map(|first| (all.0, first))
    }
}

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

impl Place {
    pub(super) fn is_target(self) -> bool {
        matches!(self, Place::Target(_))
    }
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
    /// Different words, and the number of cells that have one.
    Words(BTreeSet<String>, u64),
    /// Sum and number of the cells that are there.
    Mean(f64, u64),
    Median(Thinned),
}

impl Facts {
    /// Whether no cell of the column has a value.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Facts::Words(_, n) | Facts::Mean(_, n) => *n == 0,
            Facts::Median(values) => values.is_empty(),
        }
    }

    /// Nothing yet about any of the chosen columns.
    pub(super) fn of_all(chosen: &Chosen, words: &[usize], missing: Missing) -> HashMap<usize, Facts> {
        let fact = |j: &usize| match missing {
            _ if words.contains(j) => Facts::Words(BTreeSet::new(), 0),
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
            (Facts::Words(all, n), Some(Facts::Words(some, m))) => {
                all.extend(some);
                *n += m;
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

/// The first column of words that are names, if nobody has said that they are categories, and what is said about it.
pub(super) fn names_among(names: &[String], chosen: &Chosen, facts: &HashMap<usize, Facts>) -> Option<(usize, String)> {
    let mut columns = chosen.inputs.iter().chain(&chosen.targets).filter(|j| !chosen.words.contains(j));
    columns.find_map(|&j| match facts.get(&j) {
        Some(Facts::Words(words, n)) if words::are_names(words.len(), *n) => {
            let target = chosen.targets.contains(&j);
            Some((j, words::names_message(words.len(), *n, target, &option_name(names, j))))
        }
        _ => None,
    })
}

/// The first column without a single value, unless zeros are to fill it, and what is said about it.
pub(super) fn empty_among(
    names: &[String],
    chosen: &Chosen,
    missing: Missing,
    facts: &HashMap<usize, Facts>,
) -> Option<(usize, String)> {
    let mut columns = chosen.inputs.iter().chain(&chosen.targets);
    let j = *columns.find(|j| match facts.get(j) {
        // A column of no words would be none at all.
        Some(fact @ Facts::Words(..)) => fact.is_empty(),
        Some(fact) => fact.is_empty() && missing != Missing::Zero,
        None => false,
    })?;
    Some((j, empty(chosen.targets.contains(&j), &option_name(names, j))))
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
            Some(Facts::Words(values, _)) => Kind::Words { values: values.iter().cloned().collect() },
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

    pub(super) fn is_empty(&self) -> bool {
        self.seen == 0
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
