//! What a first pass finds in the columns of a table, and what follows from it: which columns say something, what fills their
//! gaps, which words have columns of their own, and what people should hear of all this.

use super::Options;
use super::columns::{empty, option_name};
use super::fault::{excerpt, short};
use super::judge::{Reading, Verdict};
use super::schema::{Chosen, Column, Kind, Missing, Schema};
use super::times::{Moment, Spread};
use super::words;
use bochner::words::{count, things};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Words that have a column of their own in a column with more of them.
const FREQUENT_WORDS: usize = 64;
/// Columns that all others share.
const SHARED_COLUMNS: usize = 32;
/// Classes that a target of words may have.
const MOST_CLASSES: usize = 1000;
/// Different words of a column that are counted; what is rarer than all of them has no column of its own anyway.
const MOST_WORDS: usize = 1 << 18;
/// Rows from which on numbers that are all different number the rows.
const FEW_ROWS: u64 = 20;
/// Different words for missing cells that are listed.
const MOST_MARKERS: usize = 6;
/// Columns that a remark names.
const MOST_NAMES: usize = 12;
/// Values of all columns that are kept for their medians, about.
const KEPT_VALUES: usize = 1 << 23;

/// What a first pass learns about a column.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Cells that have a value.
    there: u64,
    gaps: u64,
    /// How gaps are written that are not empty.
    markers: BTreeSet<String>,
    found: Found,
}

#[derive(Debug, Clone)]
enum Found {
    /// Different words, and how often they occur.
    Words(BTreeMap<String, u64>),
    Numbers(Numbers),
    /// Seconds.
    Times(Spread, Numbers),
}

#[derive(Debug, Clone)]
struct Numbers {
    sum: f64,
    least: f64,
    most: f64,
    first: f64,
    last: f64,
    /// Whether every number is by one larger than that before it.
    counts_up: bool,
    whole: bool,
    values: Option<Thinned>,
}

impl Numbers {
    fn new(keep: Option<usize>) -> Self {
        let values = keep.map(Thinned::new);
        let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
        Numbers { sum: 0.0, least, most, first: f64::NAN, last: f64::NAN, counts_up: true, whole: true, values }
    }

    #[inline]
    fn add(&mut self, value: f64) {
        self.sum += value;
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
        if self.first.is_nan() {
            self.first = value;
        } else {
            self.counts_up &= value == self.last + 1.0;
        }
        self.last = value;
        self.whole &= value.trunc() == value;
        if let Some(values) = &mut self.values {
            values.push(value);
        }
    }

    fn merge(&mut self, other: &Numbers) {
        self.sum += other.sum;
        (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
        self.counts_up &= other.counts_up;
        self.whole &= other.whole;
        if self.first.is_nan() {
            self.first = other.first;
        } else if !other.first.is_nan() {
            self.counts_up &= other.first == self.last + 1.0;
        }
        if !other.last.is_nan() {
            self.last = other.last;
        }
        if let (Some(all), Some(some)) = (&mut self.values, &other.values) {
            some.kept.iter().for_each(|&value| all.push(value));
        }
    }

    /// Whether no two are the same, as far as they are kept.
    fn are_different(&self) -> bool {
        self.values.as_ref().is_some_and(|values| {
            let mut sorted = values.kept.clone();
            sorted.sort_by(f64::total_cmp);
            sorted.windows(2).all(|pair| pair[0] < pair[1])
        })
    }
}

impl Facts {
    /// Nothing yet about a column that is read in this way, of so many.
    pub(super) fn new(verdict: &Verdict, missing: Missing, columns: usize) -> Self {
        let keep = match missing {
            Missing::Median => Some(Thinned::MOST),
            Missing::Mark => Some((KEPT_VALUES / columns.max(1)).clamp(1 << 8, Thinned::MOST)),
            _ => None,
        };
        let found = match verdict {
            Verdict::Words => Found::Words(BTreeMap::new()),
            Verdict::Number(_) => Found::Numbers(Numbers::new(keep)),
            Verdict::Time { .. } => Found::Times(Spread::default(), Numbers::new(keep)),
        };
        Facts { there: 0, gaps: 0, markers: BTreeSet::new(), found }
    }

    /// Adds a word of a column of words.
    pub(super) fn add_word(&mut self, word: &str) {
        self.there += 1;
        if let Found::Words(words) = &mut self.found {
            if let Some(count) = words.get_mut(word) {
                *count += 1;
            } else if words.len() < MOST_WORDS {
                words.insert(word.to_owned(), 1);
            }
        }
    }

    /// Adds a number of a column of numbers, or seconds of one of dates and times.
    #[inline]
    pub(super) fn add_number(&mut self, value: f64) {
        self.there += 1;
        match &mut self.found {
            Found::Numbers(numbers) => numbers.add(value),
            Found::Times(spread, numbers) => {
                if let Some(moment) = Moment::new(value) {
                    spread.add(&moment);
                    numbers.add(value);
                }
            }
            Found::Words(_) => {}
        }
    }

    /// Adds a cell without a value, as it is written.
    #[cold]
    pub(super) fn add_gap(&mut self, field: &[u8]) {
        self.gaps += 1;
        if !field.is_empty() && self.markers.len() < MOST_MARKERS {
            self.markers.insert(String::from_utf8_lossy(field).into_owned());
        }
    }

    /// Adds what the next part of the rows has taught.
    pub(super) fn merge(&mut self, part: Facts) {
        self.there += part.there;
        self.gaps += part.gaps;
        self.markers.extend(part.markers.into_iter().take(MOST_MARKERS.saturating_sub(self.markers.len())));
        match (&mut self.found, part.found) {
            (Found::Words(all), Found::Words(some)) if all.is_empty() => *all = some,
            (Found::Words(all), Found::Words(some)) => {
                for (word, n) in some {
                    if let Some(count) = all.get_mut(&word) {
                        *count += n;
                    } else if all.len() < MOST_WORDS {
                        all.insert(word, n);
                    }
                }
            }
            (Found::Numbers(all), Found::Numbers(some)) => all.merge(&some),
            (Found::Times(spread, all), Found::Times(other, some)) => {
                spread.merge(&other);
                all.merge(&some);
            }
            _ => {}
        }
    }

    /// The mean or the median, if there is any number.
    pub(super) fn fill(&self) -> Option<f64> {
        let (Found::Numbers(numbers) | Found::Times(_, numbers)) = &self.found else { return None };
        let learned = || match &numbers.values {
            Some(values) => values.median(),
            None => numbers.sum / self.there as f64,
        };
        (self.there > 0).then(learned)
    }

    /// Number of different words.
    fn different(&self) -> usize {
        if let Found::Words(words) = &self.found { words.len() } else { 0 }
    }

    /// Whether its words, taken for the codes of classes, are too many, or are names.
    pub(super) fn are_no_classes(&self) -> bool {
        self.different() > MOST_CLASSES || words::are_names(self.different(), self.there)
    }

    /// The only value, if there is one and no gap.
    fn constant(&self) -> Option<String> {
        if self.gaps > 0 || self.there < 2 {
            return None;
        }
        match &self.found {
            Found::Words(words) if words.len() == 1 => words.keys().next().map(|word| excerpt(word.as_bytes())),
            Found::Numbers(numbers) if numbers.least == numbers.most => Some(numbers.least.to_string()),
            Found::Times(_, numbers) if numbers.least == numbers.most => Some("one time".into()),
            _ => None,
        }
    }
}

/// What was found in all columns, by their numbers in the file.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) readings: Vec<Reading>,
    /// How a column was understood, where somebody should hear of it.
    pub(super) remarks: Vec<Option<String>>,
    /// `None` of columns that are not wanted, and of all where nobody looked.
    pub(super) facts: Vec<Option<Facts>>,
    /// Whether columns have names, of which some may be missing.
    pub(super) header: bool,
    /// Rows, or fewer where nobody looked.
    pub(super) rows: u64,
}

/// What follows from all that was found.
pub(super) struct Settled {
    pub(super) chosen: Chosen,
    pub(super) schema: Schema,
    pub(super) doubt: Option<(usize, String)>,
    pub(super) remarks: Vec<String>,
    pub(super) targets_missing: bool,
}

/// Why a column is left out.
enum Silent {
    /// It says nothing.
    Empty,
    Constant(String),
    Names(String),
    /// It numbers the rows: to be kept rather than nothing.
    Numbering,
}

impl Silent {
    fn in_words(&self) -> String {
        match self {
            Silent::Empty => "empty in all rows".into(),
            Silent::Constant(value) => format!("{value} in all rows"),
            Silent::Names(what) => what.clone(),
            Silent::Numbering => "numbers the rows".into(),
        }
    }
}

impl Findings {
    fn fact(&self, j: usize) -> Option<&Facts> {
        self.facts.get(j)?.as_ref()
    }

    /// Whether a name is one of what tells rows apart.
    fn is_called_identifier(&self, names: &[String], j: usize) -> bool {
        const NAMES: [&str; 19] = [
            "id",
            "ids",
            "index",
            "idx",
            "row",
            "rowid",
            "rownum",
            "rowname",
            "rownames",
            "rownumber",
            "nr",
            "no",
            "no.",
            "#",
            "key",
            "uuid",
            "guid",
            "unnamed: 0",
            "identifier",
        ];
        let name = names[j].trim();
        let lower = name.to_lowercase();
        let ends = ["_id", " id", "-id", ".id", "_nr", " nr", "_no", " no", "_idx", "_key", "_index"];
        let camel = ["Id", "ID"]
            .iter()
            .any(|end| name.strip_suffix(end).is_some_and(|start| start.ends_with(char::is_lowercase)));
        let unnamed = self.header && name == (j + 1).to_string();
        NAMES.contains(&lower.as_str())
            || ends.iter().any(|end| lower.ends_with(end))
            || lower.starts_with("id_")
            || camel
            || unnamed
    }

    /// Why an input says nothing, if it does not.
    fn silence(&self, names: &[String], j: usize) -> Option<Silent> {
        let fact = self.fact(j)?;
        if fact.there == 0 {
            return Some(Silent::Empty);
        }
        if let Some(value) = fact.constant() {
            return Some(Silent::Constant(value));
        }
        match &fact.found {
            Found::Words(_) if words::are_names(fact.different(), fact.there) => {
                Some(Silent::Names(words::names_found(fact.different(), fact.there)))
            }
            Found::Numbers(numbers) if numbers.whole && fact.gaps == 0 && self.is_called_identifier(names, j) => {
                let numbering =
                    (numbers.counts_up && fact.there > 2) || (fact.there >= FEW_ROWS && numbers.are_different());
                numbering.then_some(Silent::Numbering)
            }
            _ => None,
        }
    }

    /// The first column that cannot be used, and why.
    fn doubt(&self, names: &[String], chosen: &Chosen, missing: Missing) -> Option<(usize, String)> {
        let all = || chosen.inputs.iter().chain(&chosen.targets).copied();
        let name = |j: usize| option_name(names, j);
        for j in all() {
            let Some(fact) = self.fact(j) else { continue };
            let target = chosen.targets.contains(&j);
            let named = words::are_names(fact.different(), fact.there) && !chosen.words.contains(&j);
            if target && fact.different() > MOST_CLASSES {
                return Some((j, words::too_many_classes(MOST_CLASSES, &name(j))));
            }
            if named {
                return Some((j, words::names_message(fact.different(), fact.there, target, &name(j))));
            }
        }
        let is_empty = |j: &usize| match self.fact(*j) {
            // A column of no words would be none at all.
            Some(fact) => fact.there == 0 && (missing != Missing::Zero || matches!(fact.found, Found::Words(_))),
            None => false,
        };
        let j = all().find(is_empty).filter(|_| self.rows > 1)?;
        Some((j, empty(chosen.targets.contains(&j), &name(j))))
    }

    /// Decides which columns are used, and how.
    pub(super) fn settle(&self, names: &[String], mut chosen: Chosen, options: &Options) -> Settled {
        let mut silent: Vec<(usize, Silent)> = Vec::new();
        if options.sift && !chosen.named {
            let asked = |j: &usize| chosen.words.contains(j);
            silent = chosen
                .inputs
                .iter()
                .filter(|j| !asked(j))
                .filter_map(|j| Some((*j, self.silence(names, *j)?)))
                .collect();
            if silent.len() == chosen.inputs.len() {
                silent.retain(|(_, why)| !matches!(why, Silent::Numbering | Silent::Constant(_)));
            }
            if silent.len() < chosen.inputs.len() {
                let left_out: HashSet<usize> = silent.iter().map(|(j, _)| *j).collect();
                chosen.inputs.retain(|j| !left_out.contains(j));
            } else {
                silent.clear();
            }
        }
        let doubt = self.doubt(names, &chosen, options.missing);
        let column = |j: &usize, target: bool| self.column(*j, &names[*j], target, options.missing);
        let inputs: Vec<Column> = chosen.inputs.iter().map(|j| column(j, false)).collect();
        let targets: Vec<Column> = chosen.targets.iter().map(|j| column(j, true)).collect();
        let schema = Schema { inputs, targets };
        let targets_missing = options.missing.drops_targets()
            && chosen.targets.iter().filter_map(|j| self.fact(*j)).any(|fact| fact.gaps > 0);
        let remarks = self.remarks(names, &chosen, &schema, &silent, options);
        Settled { chosen, schema, doubt, remarks, targets_missing }
    }

    /// A column with what was found in it.
    fn column(&self, j: usize, name: &str, target: bool, missing: Missing) -> Column {
        let (reading, fact) = (&self.readings[j], self.fact(j));
        let learned = fact.filter(|_| missing.learns()).and_then(Facts::fill);
        let fill = learned.or(missing.fills().then_some(0.0)).filter(|_| !target);
        let marked = !target && missing == Missing::Mark && fact.is_some_and(|fact| fact.gaps > 0 && fact.there > 0);
        let kind = match (&reading.verdict, fact.map(|fact| &fact.found)) {
            (Verdict::Words, found) => {
                let words = if let Some(Found::Words(words)) = found { words.clone() } else { BTreeMap::new() };
                let mut values: Vec<(String, u64)> = words.into_iter().collect();
                let mut shared = 0;
                if !target && values.len() > FREQUENT_WORDS {
                    shared = SHARED_COLUMNS;
                    values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                    values.truncate(FREQUENT_WORDS);
                }
                let mut values: Vec<String> = values.into_iter().map(|(word, _)| word).collect();
                if marked && !values.iter().any(String::is_empty) {
                    values.push(String::new());
                }
                values.sort();
                Kind::Words { values, shared }
            }
            (Verdict::Number(writing), _) => Kind::Number { fill, marked, writing: writing.clone() },
            (Verdict::Time { day_first, clock }, found) => {
                let parts = if let Some(Found::Times(spread, _)) = found { spread.parts(*clock) } else { Vec::new() };
                Kind::Time { parts, day_first: *day_first, clock: *clock, fill, marked }
            }
        };
        Column { name: name.to_owned(), kind, markers: reading.markers.clone() }
    }

    /// One report of everything odd.
    fn remarks(
        &self,
        names: &[String],
        chosen: &Chosen,
        schema: &Schema,
        silent: &[(usize, Silent)],
        options: &Options,
    ) -> Vec<String> {
        let called = |j: usize| short(&names[j]);
        let mut told = Vec::new();
        let mut understood = Vec::new();
        let columns = chosen.inputs.iter().zip(&schema.inputs).chain(chosen.targets.iter().zip(&schema.targets));
        for (&j, column) in columns {
            let Some(remark) = self.remarks.get(j).and_then(Option::as_ref) else { continue };
            let becomes = match &column.kind {
                Kind::Time { .. } => format!("; they become {}", column.input_names().join(", ")),
                _ => String::new(),
            };
            understood.push(format!("{}: {remark}{becomes}", called(j)));
        }
        let more = understood.len().saturating_sub(MOST_NAMES);
        told.extend(understood.into_iter().take(MOST_NAMES));
        if more > 0 {
            told.push(format!("{} more are written like these", things(more, "column")));
        }
        let listed = |all: Vec<String>| match all.len().saturating_sub(MOST_NAMES) {
            0 => all.join(", "),
            more => format!("{} and {} more", all[..MOST_NAMES].join(", "), count(more)),
        };
        let gaps = |is_kind: &dyn Fn(&Found) -> bool| -> Vec<String> {
            let gappy = chosen.inputs.iter().filter_map(|j| Some((*j, self.fact(*j)?)));
            let gappy = gappy.filter(|(_, fact)| fact.gaps > 0 && is_kind(&fact.found));
            let one = |(j, fact): (usize, &Facts)| {
                let all = count((fact.gaps + fact.there) as usize);
                let markers: Vec<&str> = fact.markers.iter().map(String::as_str).collect();
                let written = if markers.is_empty() { String::new() } else { format!(" ({})", markers.join(" ")) };
                format!("{}: {} of {all}{written}", called(j), count(fact.gaps as usize))
            };
            gappy.map(one).collect()
        };
        if options.missing == Missing::Mark {
            let numbers = gaps(&|found| !matches!(found, Found::Words(_)));
            if !numbers.is_empty() {
                told.push(format!(
                    "cells without a value get the median of their column and a one in a column of their own: {}",
                    listed(numbers)
                ));
            }
            let words = gaps(&|found| matches!(found, Found::Words(_)));
            if !words.is_empty() {
                told.push(format!("cells without a word are a category of their own: {}", listed(words)));
            }
        }
        for (&j, column) in chosen.inputs.iter().zip(&schema.inputs) {
            if let (Kind::Words { shared, .. }, Some(fact)) = (&column.kind, self.fact(j))
                && *shared > 0
            {
                told.push(format!(
                    "{}: {} different words; the {FREQUENT_WORDS} most frequent ones have columns of their own, all others share \
                     {shared}",
                    called(j),
                    count(fact.different())
                ));
            }
            if let Some(Facts { found: Found::Numbers(numbers), there, .. }) = self.fact(j)
                && options.sift
                && numbers.counts_up
                && *there >= FEW_ROWS
            {
                let (name, option) = (called(j), option_name(names, j));
                told.push(format!("{name}: every row has one more than that before it; --drop {option} leaves it out if it numbers them only"));
            }
        }
        if !silent.is_empty() {
            let all = silent.iter().map(|(j, why)| format!("{} ({})", called(*j), why.in_words())).collect();
            told.push(format!(
                "left out, as they say nothing about other rows: {}; --columns takes them in",
                listed(all)
            ));
        }
        if options.missing.drops_targets() && options.missing != Missing::Drop {
            let gaps =
                chosen.targets.iter().filter_map(|j| Some((*j, self.fact(*j)?.gaps))).find(|(_, gaps)| *gaps > 0);
            if let Some((j, gaps)) = gaps {
                told.push(format!("{} left out, as the target {} is missing", things(gaps as usize, "row"), called(j)));
            }
        }
        told
    }
}

/// Some of the values of a column, evenly spaced.
#[derive(Debug, Clone)]
struct Thinned {
    kept: Vec<f64>,
    /// At most so many, and at least half of that.
    most: usize,
    seen: u64,
    /// One of `2^halvings` values is kept.
    halvings: u32,
}

impl Thinned {
    const MOST: usize = 1 << 19;

    fn new(most: usize) -> Self {
        Thinned { kept: Vec::new(), most, seen: 0, halvings: 0 }
    }

    fn push(&mut self, value: f64) {
        if self.seen.is_multiple_of(1 << self.halvings) {
            self.kept.push(value);
        }
        self.seen += 1;
        if self.kept.len() == self.most {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.halvings += 1;
        }
    }

    /// The middle value, or the mean of the two; 0 of nothing.
    fn median(&self) -> f64 {
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
        let mut values = Thinned::new(Thinned::MOST);
        (0..3 * Thinned::MOST).for_each(|i| values.push(i as f64));
        assert!(values.kept.len() < Thinned::MOST);
        assert!((values.median() / (1.5 * Thinned::MOST as f64) - 1.0).abs() < 1e-4, "{}", values.median());
    }
}
