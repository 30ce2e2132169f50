//! Which columns a data set has, which of them are wanted, and how words become numbers.

use super::Result;
use super::fault::{Fault, short};
use super::figures::Writing;
use super::times::TimePart;
use bochner::Error;
use serde::{Deserialize, Serialize};

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Numbers; missing ones become `fill` where there is one.
    Number {
        /// Value of a missing cell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fill: Option<f64>,
        /// Whether a column behind that of the numbers has a one where a cell is missing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        marked: bool,
        /// How they are written, where otherwise than programs do it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writing: Option<Writing>,
    },
    /// Words; as an input one column of zeros and ones per word, as a target its number. The empty word stands for cells
    /// without one, where these are a category of their own.
    Words {
        /// All words that occur, or the most frequent ones, sorted.
        values: Vec<String>,
        /// Number of the columns behind those of `values` that all other words share: which one is told by the word itself.
        #[serde(default, skip_serializing_if = "is_none")]
        shared: usize,
    },
    /// Dates and times, each as several numbers.
    Time {
        /// The numbers.
        parts: Vec<TimePart>,
        /// Whether days come before months where they are written with strokes: 25/12/2020.
        #[serde(default)]
        day_first: bool,
        /// Whether they are times of day.
        #[serde(default)]
        clock: bool,
        /// Seconds that stand for a missing cell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fill: Option<f64>,
        /// As for numbers.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        marked: bool,
    },
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(number: &usize) -> bool {
    *number == 0
}

impl Kind {
    /// Numbers as programs write them.
    #[must_use]
    pub fn number(fill: Option<f64>) -> Self {
        Kind::Number { fill, marked: false, writing: None }
    }

    /// Words, each with a column of its own.
    #[must_use]
    pub fn words(values: Vec<String>) -> Self {
        Kind::Words { values, shared: 0 }
    }
}

/// A column and its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// From the header, or the column's number counted from 1.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Cells that stand for nothing, beside empty ones; `None` are the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markers: Option<Vec<String>>,
}

/// The column of a word that shares it with others: a function of the word alone, the same for ever.
pub(super) fn shared_place(word: &[u8], shared: usize) -> usize {
    // FNV-1a, its high bits folded into the low ones.
    let hash = word
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    ((hash ^ hash >> 32) % shared.max(1) as u64) as usize
}

impl Column {
    /// A column of some kind.
    #[must_use]
    pub fn new(name: &str, kind: Kind) -> Self {
        Column { name: name.to_owned(), kind, markers: None }
    }

    /// A column of numbers without gaps.
    pub(super) fn number(name: &str) -> Self {
        Column::new(name, Kind::number(None))
    }

    /// Number of input columns this column becomes.
    pub(crate) fn width(&self) -> usize {
        match &self.kind {
            Kind::Number { marked, .. } => 1 + usize::from(*marked),
            Kind::Words { values, shared } => values.len().saturating_add(*shared),
            Kind::Time { parts, marked, .. } => parts.len() + usize::from(*marked),
        }
    }

    /// The number of a word among the input columns of this one, if it has one: its own, or the one that it shares.
    ///
    /// What is learned for every word, such as the mean of a target, is learned for these numbers.
    #[must_use]
    pub fn word_number(&self, word: &str) -> Option<usize> {
        let Kind::Words { values, shared } = &self.kind else { return None };
        let own = values.iter().position(|value| value == word);
        own.or_else(|| (*shared > 0).then(|| values.len() + shared_place(word.as_bytes(), *shared)))
    }

    /// A name for every number that a cell becomes.
    pub(super) fn input_names(&self) -> Vec<String> {
        let name = &self.name;
        let (mut names, marked) = match &self.kind {
            Kind::Number { marked, .. } => (vec![name.clone()], *marked),
            Kind::Words { values, shared } => {
                let shared = (1..=*shared).map(|n| format!("{name}#{n}"));
                (values.iter().map(|v| format!("{name}={v}")).chain(shared).collect(), false)
            }
            Kind::Time { parts, marked, .. } => {
                (parts.iter().map(|part| format!("{name}:{}", part.name())).collect(), *marked)
            }
        };
        names.extend(marked.then(|| format!("{name}:missing")));
        names
    }

    /// The same from the input columns of this one in a row: where the one is.
    #[must_use]
    pub fn word_number_of(&self, row: &[f64]) -> Option<usize> {
        matches!(self.kind, Kind::Words { .. }).then(|| row.iter().position(|value| *value == 1.0))?
    }
}

/// The wanted columns in the order in which a model sees them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Schema {
    /// What a model learns from.
    pub inputs: Vec<Column>,
    /// What it predicts.
    pub targets: Vec<Column>,
}

impl Schema {
    /// Length of an input row.
    pub fn input_dim(&self) -> usize {
        self.inputs.iter().map(Column::width).fold(0, usize::saturating_add)
    }

    /// For every number of an input row the name of the column that it is made from.
    pub fn input_sources(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().flat_map(|column| std::iter::repeat_n(column.name.as_str(), column.width()))
    }

    /// The same columns, by their names.
    pub(super) fn selection(&self) -> Selection {
        let names = |columns: &[Column]| columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        Selection { inputs: Some(names(&self.inputs)), targets: names(&self.targets), ..Selection::default() }
    }

    /// Names of the first columns, for a message.
    pub fn some_names(&self) -> String {
        let names: Vec<_> = self.inputs.iter().take(12).map(|c| short(&c.name)).collect();
        format!("{}{}", names.join(", "), if self.inputs.len() > names.len() { ", …" } else { "" })
    }

    /// Sets what fills the gaps of every input of numbers, by its place in an input row.
    pub(crate) fn fill(&mut self, value: impl Fn(usize) -> Option<f64>) {
        let mut at = 0;
        for column in &mut self.inputs {
            let width = column.width();
            if let Kind::Number { fill, .. } = &mut column.kind {
                *fill = value(at);
            }
            at += width;
        }
    }

    /// Every column with its places in an input row.
    pub fn places(&self) -> impl Iterator<Item = (&Column, std::ops::Range<usize>)> {
        let mut at = 0;
        self.inputs.iter().map(move |column| {
            let start = at;
            at += column.width();
            (column, start..at)
        })
    }

    /// A name for every number of an input row: `age`, `colour=red`, `date:year`, `age:missing`.
    pub fn input_names(&self) -> Vec<String> {
        self.inputs.iter().flat_map(Column::input_names).collect()
    }
}

/// What to do with empty cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// Stop and say where one is.
    #[default]
    Refuse,
    /// Fill in the column's mean.
    Mean,
    /// Fill in the column's median, of every second, fourth, … value where there are very many.
    Median,
    /// Fill in the column's median and mark where, in a column of its own; words that are missing are a category of their own,
    /// and rows without a target are left out.
    Mark,
    /// Fill in zeros.
    Zero,
    /// Leave out rows that have one.
    Drop,
}

impl Missing {
    /// Whether what fills empty cells in is learned from the others.
    pub(super) fn learns(self) -> bool {
        matches!(self, Missing::Mean | Missing::Median | Missing::Mark)
    }

    /// Whether rows without a target are left out.
    pub(super) fn drops_targets(self) -> bool {
        matches!(self, Missing::Drop | Missing::Mark)
    }

    /// Whether empty cells are filled in.
    pub fn fills(self) -> bool {
        matches!(self, Missing::Mean | Missing::Median | Missing::Mark | Missing::Zero)
    }
}

/// What to do with words that did not occur in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Unknown {
    /// Stop at the first one
    Refuse,
    /// Take them for none of the words that did occur, all columns of the feature being 0, and say how many there are
    #[default]
    Zeros,
}

/// The largest number that can be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Largest {
    /// Its size.
    pub value: f64,
    /// What a larger one is, and what helps: `too large for single precision; …`.
    pub told: &'static str,
}

impl Largest {
    /// Numbers whose squares can be added up in double precision.
    pub const DOUBLE: Largest = Largest { value: 1e150, told: "too large; numbers up to 1e150 are read" };

    /// Numbers of single precision.
    pub const fn single(told: &'static str) -> Self {
        Largest { value: f32::MAX as f64, told }
    }
}

/// Columns a user asks for, by name or by number (1 is the first, -1 the last).
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Columns to predict.
    pub targets: Vec<String>,
    /// Columns to learn from; `None` means all others.
    pub inputs: Option<Vec<String>>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// Columns of words, even where they look like numbers.
    pub words: Vec<String>,
    /// The array of an archive that has the rows, where it is not the one called `X`.
    pub array: Option<String>,
}

/// Positions of the wanted columns in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) inputs: Vec<usize>,
    pub(super) targets: Vec<usize>,
    pub(super) words: Vec<usize>,
    /// Whether inputs were asked for by name: then none of them is left out.
    pub(super) named: bool,
}

impl Selection {
    /// Finds the columns among `names`; `file` is for messages.
    pub(super) fn resolve(&self, file: &str, names: &[String]) -> Result<Chosen> {
        self.resolve_or(file, names, "")
    }

    /// The same; `hint` is added to what is said about a column that is not there.
    pub(super) fn resolve_or(&self, file: &str, names: &[String], hint: &str) -> Result<Chosen> {
        let refused = |j: usize, what: &str| {
            let message = format!("column {} is {what}", short(&names[j]));
            Error::from(Fault::new(file, message))
        };
        // Marks, not searches: LIBSVM files have tens of thousands of columns.
        let all = |wanted: &[String], option: &str| {
            let mut seen = vec![false; names.len()];
            let mut found = Vec::with_capacity(wanted.len());
            for wanted in wanted {
                let j = position(file, names, wanted, hint)?;
                if std::mem::replace(&mut seen[j], true) {
                    return Err(refused(j, &format!("named twice in {option}")));
                }
                found.push(j);
            }
            Ok((found, seen))
        };
        let (targets, is_target) = all(&self.targets, "--target")?;
        let (drop, is_dropped) = all(&self.drop, "--drop")?;
        let (words, _) = all(&self.words, "--categories")?;
        if let Some(j) = targets.iter().find(|j| is_dropped[**j]) {
            return Err(refused(*j, "named both in --target and in --drop"));
        }
        let inputs = match &self.inputs {
            Some(inputs) => all(inputs, "--columns")?.0,
            None => {
                let mut kept = vec![true; names.len()];
                targets.iter().chain(&drop).for_each(|j| kept[*j] = false);
                (0..names.len()).filter(|j| kept[*j]).collect()
            }
        };
        for j in &inputs {
            if is_target[*j] {
                return Err(refused(*j, "both an input and a target"));
            }
            if is_dropped[*j] {
                return Err(refused(*j, "named both in --columns and in --drop"));
            }
        }
        if inputs.is_empty() {
            return Err(Fault::new(file, "no column is left to learn from").into());
        }
        Ok(Chosen { inputs, targets, words, named: self.inputs.is_some() })
    }
}

fn position(file: &str, names: &[String], wanted: &str, hint: &str) -> Result<usize> {
    if let Some(j) = names.iter().position(|n| n == wanted) {
        return Ok(j);
    }
    if let Some(j) = numbered(wanted, names.len()) {
        return Ok(j);
    }
    let known: Vec<_> = names.iter().take(12).map(|name| short(name)).collect();
    let more = if names.len() > known.len() { ", …" } else { "" };
    let message = format!("there is no column {}; the columns are {}{more}{hint}", short(wanted), known.join(", "));
    Err(Error::from(Fault::new(file, message)))
}

/// The column that a number stands for: 1 is the first of `columns`, -1 the last.
pub(super) fn numbered(wanted: &str, columns: usize) -> Option<usize> {
    match wanted.parse::<i64>().ok()? {
        0 => None,
        n if n > 0 => usize::try_from(n).ok().filter(|n| *n <= columns).map(|n| n - 1),
        n => columns.checked_sub(usize::try_from(n.unsigned_abs()).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["age", "colour", "price"].map(String::from).to_vec()
    }

    #[test]
    fn columns_are_found_by_name_and_by_number_from_either_end() {
        for wanted in ["price", "3", "-1"] {
            let selection = Selection { targets: vec![wanted.into()], ..Selection::default() };
            let chosen = selection.resolve("f", &names()).unwrap();
            assert_eq!((chosen.inputs, chosen.targets), (vec![0, 1], vec![2]));
        }
    }

    #[test]
    fn unknown_and_contradictory_columns_are_named() {
        let message = |selection: Selection| selection.resolve("f.csv", &names()).unwrap_err().to_string();
        let targets = |names: &[&str]| names.iter().map(|n| String::from(*n)).collect::<Vec<_>>();
        let unknown = message(Selection { targets: targets(&["cost"]), ..Selection::default() });
        assert_eq!(unknown, "f.csv: there is no column cost; the columns are age, colour, price");
        for number in ["0", "4", "-4"] {
            assert!(message(Selection { targets: targets(&[number]), ..Selection::default() }).contains("no column"));
        }
        let both = Selection { targets: targets(&["age"]), inputs: Some(targets(&["age"])), ..Selection::default() };
        assert_eq!(message(both), "f.csv: column age is both an input and a target");
        let twice = |targets, inputs, drop, words| message(Selection { targets, inputs, drop, words, array: None });
        let (none, age) = (Vec::new(), targets(&["age"]));
        for (sentence, option) in [
            (twice(targets(&["age", "1"]), None, none.clone(), none.clone()), "--target"),
            (twice(none.clone(), Some(targets(&["age", "age"])), none.clone(), none.clone()), "--columns"),
            (twice(none.clone(), None, targets(&["-3", "age"]), none.clone()), "--drop"),
            (twice(none.clone(), None, none.clone(), targets(&["age", "age"])), "--categories"),
        ] {
            assert_eq!(sentence, format!("f.csv: column age is named twice in {option}"));
        }
        assert_eq!(
            twice(age.clone(), None, age.clone(), none.clone()),
            "f.csv: column age is named both in --target and in --drop"
        );
        assert_eq!(
            twice(none.clone(), Some(age.clone()), age, none),
            "f.csv: column age is named both in --columns and in --drop"
        );
        let none = Selection { drop: targets(&["1", "2", "3"]), ..Selection::default() };
        assert_eq!(message(none), "f.csv: no column is left to learn from");
    }

    #[test]
    fn words_become_one_column_each() {
        let words = Kind::words(vec!["blue".into(), "red".into()]);
        let inputs = vec![Column::number("age"), Column::new("colour", words)];
        let schema = Schema { inputs, targets: vec![] };
        assert_eq!(schema.input_dim(), 3);
        assert_eq!(schema.input_names(), ["age", "colour=blue", "colour=red"]);
    }

    #[test]
    fn the_number_of_a_word_is_where_its_one_is() {
        let column = Column::new("town", Kind::Words { values: vec!["Bonn".into(), "Köln".into()], shared: 8 });
        assert_eq!(column.word_number("Köln"), Some(1));
        let shared = column.word_number("Aachen").unwrap();
        assert!((2..10).contains(&shared));
        let mut row = vec![0.0; column.width()];
        row[shared] = 1.0;
        assert_eq!(column.word_number_of(&row), Some(shared));
        // FNV-1a of 64 bits, of the authors' own list of examples: the hash of "foobar" is 85944171f73967e8.
        assert_eq!(shared_place(b"foobar", 1 << 32), 0x8594_4171 ^ 0xf739_67e8);
        let schema = Schema { inputs: vec![Column::number("age"), column], targets: vec![] };
        assert_eq!(schema.places().map(|(_, place)| place).collect::<Vec<_>>(), [0..1, 1..11]);
    }

    #[test]
    fn columns_of_earlier_versions_are_understood() {
        let text = r#"{"inputs": [{"name": "a", "kind": {"number": {"fill": 2.5}}}, {"name": "b", "kind": {"number": {}}},
            {"name": "c", "kind": {"words": {"values": ["x", "y"]}}}], "targets": []}"#;
        let schema: Schema = serde_json::from_str(text).unwrap();
        let words = Kind::words(vec!["x".into(), "y".into()]);
        let inputs = vec![Column::new("a", Kind::number(Some(2.5))), Column::number("b"), Column::new("c", words)];
        assert_eq!(schema, Schema { inputs, targets: vec![] });
    }
}
