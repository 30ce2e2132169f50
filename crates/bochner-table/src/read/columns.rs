//! What tables have in common, whatever their format: the columns wanted, what a first pass learns about them, and what
//! becomes of their cells.

use super::fault::{Fault, excerpt};
use super::input::Input;
use super::schema::{Chosen, Column, Kind, Largest, Missing, Schema, Unknown};
use super::{Element, Options, Result, Visit, words};
use bochner::rows::RowBlock;
use ndarray::ArrayView2;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// A column with more different words than this is a name or an identifier, not a category.
const MOST_WORDS: usize = 1000;

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

/// Refuses names that come twice.
pub(super) fn check_names(input: &Input, line: Option<u64>, names: &[String]) -> Result<()> {
    let mut places = HashMap::new();
    for (j, name) in names.iter().enumerate() {
        if let Some(first) = places.insert(name, j) {
            let message = format!("the name {} is already taken by column {}", excerpt(name.as_bytes()), first + 1);
            return Err(Fault::at(input, line, j, message).into());
        }
    }
    Ok(())
}

/// Cells that were let pass, such as unknown categories: how many, and where the first one is.
#[derive(Debug, Default)]
pub(super) struct Noted(Mutex<(u64, Option<Fault>)>);

impl Noted {
    fn add(&self, passed: &mut Passed, locate: impl FnOnce(Trouble) -> Fault) {
        if let Passed(n, Some(first)) = std::mem::take(passed) {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.0 += n;
            all.1.get_or_insert_with(|| locate(first));
        }
    }

    pub(super) fn seen(&self) -> Option<(u64, Fault)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.clone().map(|first| (all.0, first))
    }
}

/// What a cell becomes: numbers at a place among the inputs of a row and the targets behind them.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Skip,
    Number { place: usize, fill: Option<f64> },
    Words { place: usize, values: HashMap<Vec<u8>, usize> },
}

/// The columns of a table, what becomes of their cells, and what was found in them.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) options: Options,
    pub(super) schema: Schema,
    pub(super) roles: Vec<Role>,
    /// A column of names, or of nothing. Told when rows are asked for: who has not said what the target is has to hear
    /// that first.
    doubt: Option<(usize, String)>,
    /// Whether the columns were known before: then there may be no rows.
    pub(super) known: bool,
    /// Words that did not occur in training.
    pub(super) unknown_categories: Noted,
    /// Numbers of a target that are written otherwise than they would be printed.
    pub(super) codes: Noted,
    /// Number of inputs and of targets of a row.
    pub(super) shape: (usize, usize),
}

impl Columns {
    fn new(names: Vec<String>, chosen: &Chosen, schema: Schema, options: &Options) -> Self {
        let mut roles = vec![Role::Skip; names.len()];
        let role = |column: &Column, place: usize| match &column.kind {
            Kind::Number { fill } => Role::Number { place, fill: *fill },
            Kind::Words { values } => {
                let values = values.iter().enumerate().map(|(i, v)| (v.clone().into_bytes(), i)).collect();
                Role::Words { place, values }
            }
        };
        let mut place = 0;
        for (&j, column) in chosen.inputs.iter().zip(&schema.inputs) {
            roles[j] = role(column, place);
            place += column.width();
        }
        let (shape, options) = ((place, schema.targets.len()), options.clone());
        for (t, (&j, column)) in chosen.targets.iter().zip(&schema.targets).enumerate() {
            roles[j] = role(column, place + t);
        }
        let (unknown_categories, codes) = Default::default();
        Columns { names, options, schema, roles, doubt: None, known: false, unknown_categories, codes, shape }
    }

    /// Columns of a known schema.
    pub(super) fn known(names: Vec<String>, chosen: &Chosen, schema: Schema, options: &Options) -> Self {
        Columns { known: true, ..Self::new(names, chosen, schema, options) }
    }

    /// Columns with what was learned about them from `rows` rows, or more.
    pub(super) fn learned(
        names: Vec<String>,
        chosen: &Chosen,
        facts: &HashMap<usize, Facts>,
        rows: usize,
        options: &Options,
    ) -> Self {
        let doubt = names_among(&names, chosen, facts)
            .or_else(|| empty_among(&names, chosen, options.missing, facts).filter(|_| rows > 1));
        let schema = schema_from(&names, chosen, options.missing, facts);
        Columns { doubt, ..Self::new(names, chosen, schema, options) }
    }

    fn place(&self, column: usize) -> Option<usize> {
        match &self.roles[column] {
            Role::Skip => None,
            Role::Number { place, .. } | Role::Words { place, .. } => Some(*place),
        }
    }

    /// Which columns are read.
    pub(super) fn wanted(&self) -> impl Iterator<Item = usize> {
        (0..self.roles.len()).filter(|j| self.place(*j).is_some())
    }
}

/// What is wrong with a table before its place in the file is known.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Line within a part of the file, counted from 1; of binary files, the row.
    pub(super) line: Option<u64>,
    /// Column, counted from 0.
    pub(super) column: Option<usize>,
    pub(super) message: String,
    /// Whether it is about an empty cell.
    gap: bool,
}

impl Trouble {
    pub(super) fn of_line(line: u64, message: String) -> Self {
        Trouble { line: Some(line), message, ..Trouble::default() }
    }

    pub(super) fn of_column(column: usize, message: String) -> Self {
        Trouble { column: Some(column), message, ..Trouble::default() }
    }

    /// A column with more words than a category may have.
    pub(super) fn too_many_words(names: &[String], column: usize) -> Self {
        let message = format!(
            "more than {MOST_WORDS} different words: names, identifiers or free text; --drop {} leaves the column out ({})",
            option_name(names, column),
            words::AS_NUMBERS_ARE
        );
        Self::of_column(column, message)
    }

    pub(super) fn of_cell((line, column): (u64, usize), message: String) -> Self {
        Trouble { line: Some(line), ..Self::of_column(column, message) }
    }
}

/// Rows of a part of a table.
pub(super) struct Parsed<R> {
    pub(super) inputs: Vec<R>,
    pub(super) targets: Vec<R>,
    pub(super) rows: usize,
    unknown_categories: Passed,
    /// Numbers of a target that are written otherwise than they would be printed.
    pub(super) codes: Passed,
    /// Whether rows with empty cells were left out.
    dropped: bool,
}

/// Cells of a part of a table that were let pass: how many, and the first one.
#[derive(Debug, Default)]
pub(super) struct Passed(u64, Option<Trouble>);

impl Passed {
    pub(super) fn add(&mut self, cell: impl FnOnce() -> Trouble) {
        self.0 += 1;
        self.1.get_or_insert_with(cell);
    }
}

impl<R> Default for Parsed<R> {
    fn default() -> Self {
        let (inputs, targets, unknown_categories, codes) = Default::default();
        Parsed { inputs, targets, rows: 0, unknown_categories, codes, dropped: false }
    }
}

impl<R: Element> Parsed<R> {
    /// Forgets all rows; keeps their memory.
    pub(super) fn clear(&mut self) {
        let (mut inputs, mut targets) = (std::mem::take(&mut self.inputs), std::mem::take(&mut self.targets));
        inputs.clear();
        targets.clear();
        *self = Parsed { inputs, targets, ..Parsed::default() };
    }

    /// Adds a row with what `fill` puts into its cells; leaves it out if one of them is empty.
    #[inline(always)]
    pub(super) fn add_row(
        &mut self,
        columns: &Columns,
        fill: impl FnOnce(&mut Row<'_, R>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let ((d, t), base, target_base) = (columns.shape, self.inputs.len(), self.targets.len());
        self.inputs.resize(base + d, R::ZERO);
        self.targets.resize(target_base + t, R::ZERO);
        let (inputs, targets) = (&mut self.inputs[base..], &mut self.targets[target_base..]);
        let mut row = Row { columns, inputs, targets, unknown_categories: &mut self.unknown_categories, gap: false };
        fill(&mut row)?;
        if row.gap {
            self.inputs.truncate(base);
            self.targets.truncate(target_base);
            self.dropped = true;
        } else {
            self.rows += 1;
        }
        Ok(())
    }
}

/// A row that is being filled.
pub(super) struct Row<'a, R> {
    columns: &'a Columns,
    inputs: &'a mut [R],
    targets: &'a mut [R],
    unknown_categories: &'a mut Passed,
    /// Whether a cell is empty, and the row to be left out.
    gap: bool,
}

impl<R: Element> Row<'_, R> {
    /// Puts a number, `None` for an empty cell, to its place; `spot` is where it is in the file.
    #[inline]
    pub(super) fn put_number(
        &mut self,
        spot: (u64, usize),
        (place, fill): (usize, Option<f64>),
        value: Option<f64>,
    ) -> Result<(), Trouble> {
        let Some(value) = value.or(fill) else { return self.put_gap(spot, place) };
        let value = narrowed(value, self.columns.options.largest).map_err(|message| Trouble::of_cell(spot, message))?;
        *self.cell(place) = value;
        Ok(())
    }

    /// Puts a word, which is the one of some index among those of its column or none of them, to its place; `None` for an
    /// empty cell.
    #[inline]
    pub(super) fn put_word(
        &mut self,
        spot: (u64, usize),
        place: usize,
        word: Option<(&[u8], Option<usize>)>,
    ) -> Result<(), Trouble> {
        let (options, is_target) = (&self.columns.options, place >= self.columns.shape.0);
        match word {
            Some((_, Some(index))) if is_target => *self.cell(place) = R::from_f64(index as f64),
            Some((_, Some(index))) => self.inputs[place + index] = R::ONE,
            // A missing word is no word: all its columns stay 0.
            None if options.missing.fills() && !is_target => {}
            None => return self.put_gap(spot, place),
            Some((word, None)) => {
                let let_pass = options.unknown == Unknown::Zeros;
                let trouble = || Trouble::of_cell(spot, unknown_word(&excerpt(word), is_target, let_pass));
                if is_target || !let_pass {
                    return Err(trouble());
                }
                self.unknown_categories.add(trouble);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn cell(&mut self, place: usize) -> &mut R {
        let d = self.inputs.len();
        if place < d { &mut self.inputs[place] } else { &mut self.targets[place - d] }
    }

    #[cold]
    fn put_gap(&mut self, spot: (u64, usize), place: usize) -> Result<(), Trouble> {
        let Options { missing, advice, .. } = self.columns.options;
        self.gap = true;
        match missing {
            Missing::Drop => Ok(()),
            _ => Err(Trouble {
                gap: true,
                ..Trouble::of_cell(spot, absent(place >= self.inputs.len(), missing, advice).into())
            }),
        }
    }
}

/// A number in the precision asked for; NaN stays.
#[inline]
pub(super) fn narrowed<R: Element>(value: f64, largest: Option<Largest>) -> Result<R, String> {
    let number = R::from_f64(value);
    if number.is_infinite() || largest.is_some_and(|largest| value.abs() > largest.value) {
        return Err(too_large::<R>(value, largest));
    }
    Ok(number)
}

#[cold]
fn too_large<R: Element>(value: f64, largest: Option<Largest>) -> String {
    match largest.filter(|largest| value.abs() > largest.value) {
        Some(largest) => format!("the number {value:e} is {}", largest.told),
        None => format!("the number {value:e} is too large for {}", R::NAME),
    }
}

/// A table of cells, of numbers or of words, which is read in parts.
pub(super) trait Cellular {
    fn parts(&self) -> (&Input, &Columns);

    /// The place of a mistake, in a part that so many lines come before.
    fn locate(&self, trouble: Trouble, lines_before: u64) -> Fault;

    /// Whether `column`, or each of all, has a value in any row, or cannot be told from others; and the number of rows.
    fn filled(&self, column: Option<usize>) -> Option<(Vec<bool>, u64)>;

    /// What is said about a column without a single value: `column`, or the first such one. Nobody can leave out a column that
    /// a model knows.
    fn empty_column(&self, column: Option<usize>) -> Option<Trouble> {
        let (_, columns) = self.parts();
        if columns.known || columns.options.advice.is_some() {
            return None;
        }
        let (filled, _) = self.filled(column).filter(|(_, rows)| *rows > 1)?;
        let mut wanted = columns.wanted().filter(|j| column.is_none_or(|column| column == *j));
        let j = wanted.find(|j| !filled[*j])?;
        let is_target = columns.place(j).is_some_and(|place| place >= columns.shape.0);
        Some(Trouble::of_column(j, empty(is_target, &option_name(&columns.names, j))))
    }

    /// The error about a mistake behind so many lines; one about an empty cell may be about an empty column.
    fn blame(&self, trouble: Trouble, lines_before: u64) -> bochner::Error {
        let empty = if trouble.gap { self.empty_column(trouble.column) } else { None };
        self.locate(empty.unwrap_or(trouble), lines_before).into()
    }

    /// Delivers the rows of all parts, which `parts` hands out one after the other with the number of lines before them; notes
    /// what was let pass.
    fn deliver<R: Element>(
        &self,
        visit: Visit<'_, R>,
        parts: impl FnOnce(&mut dyn FnMut(&mut Parsed<R>, u64) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let (input, columns) = self.parts();
        if let Some((column, message)) = columns.doubt.clone() {
            return Err(self.blame(Trouble::of_column(column, message), 0));
        }
        let ((d, t), mut any, mut dropped) = (columns.shape, false, false);
        parts(&mut |parsed, lines_before| {
            columns.unknown_categories.add(&mut parsed.unknown_categories, |first| self.locate(first, lines_before));
            columns.codes.add(&mut parsed.codes, |first| self.locate(first, lines_before));
            dropped |= parsed.dropped;
            if parsed.rows == 0 {
                return Ok(());
            }
            any = true;
            let (rows, targets) = (view(&parsed.inputs, parsed.rows, d), view(&parsed.targets, parsed.rows, t));
            visit(RowBlock { rows, targets, weights: None })
        })?;
        if any || (columns.known && !dropped) {
            return Ok(());
        }
        Err(match self.empty_column(None).filter(|_| dropped) {
            Some(trouble) => self.blame(trouble, 0),
            None if dropped => input.fault("there are no rows without empty cells"),
            None => input.fault("there are no rows"),
        })
    }
}

/// So many rows of so many numbers.
pub(super) fn view<R>(numbers: &[R], rows: usize, columns: usize) -> ArrayView2<'_, R> {
    ArrayView2::from_shape((rows, columns), numbers).expect("rows times columns numbers")
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
    /// Adds a word of a column of words.
    pub(super) fn add_word(&mut self, word: &str) {
        if let Facts::Words(set, n) = self {
            *n += 1;
            // One too many is enough to know that there are.
            if set.len() <= MOST_WORDS && !set.contains(word) {
                set.insert(word.to_owned());
            }
        }
    }

    /// Adds a number of a column of numbers.
    pub(super) fn add_number(&mut self, value: f64) {
        match self {
            Facts::Words(..) => {}
            Facts::Mean(sum, n) => (*sum, *n) = (*sum + value, *n + 1),
            Facts::Median(values) => values.push(value),
        }
    }

    /// Nothing yet about a column of numbers.
    pub(super) fn of_numbers(missing: Missing) -> Self {
        match missing {
            Missing::Median => Facts::Median(Thinned::default()),
            _ => Facts::Mean(0.0, 0),
        }
    }

    /// The mean or the median, if there is any number.
    pub(super) fn fill(&self) -> Option<f64> {
        match self {
            Facts::Mean(sum, n) if *n > 0 => Some(sum / *n as f64),
            Facts::Median(values) if !values.is_empty() => Some(values.median()),
            _ => None,
        }
    }

    /// Whether no cell of the column has a value.
    fn is_empty(&self) -> bool {
        match self {
            Facts::Words(_, n) | Facts::Mean(_, n) => *n == 0,
            Facts::Median(values) => values.is_empty(),
        }
    }

    /// Nothing yet about any of the chosen columns.
    pub(super) fn of_all(chosen: &Chosen, words: &[usize], missing: Missing) -> HashMap<usize, Facts> {
        let fact = |j: &usize| match words.contains(j) {
            true => Facts::Words(BTreeSet::new(), 0),
            false => Facts::of_numbers(missing),
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
fn names_among(names: &[String], chosen: &Chosen, facts: &HashMap<usize, Facts>) -> Option<(usize, String)> {
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
fn empty_among(
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
fn schema_from(names: &[String], chosen: &Chosen, missing: Missing, facts: &HashMap<usize, Facts>) -> Schema {
    let column = |j: &usize| Column {
        name: names[*j].clone(),
        kind: match facts.get(j) {
            Some(Facts::Words(values, _)) => Kind::Words { values: values.iter().cloned().collect() },
            facts => {
                let learned =
                    facts.filter(|_| matches!(missing, Missing::Mean | Missing::Median)).and_then(Facts::fill);
                let fill = learned.or(missing.fills().then_some(0.0));
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

    fn push(&mut self, value: f64) {
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

    fn is_empty(&self) -> bool {
        self.seen == 0
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
        let mut values = Thinned::default();
        (0..3 * Thinned::MOST).for_each(|i| values.push(i as f64));
        assert!(values.kept.len() < Thinned::MOST);
        assert!((values.median() / (1.5 * Thinned::MOST as f64) - 1.0).abs() < 1e-4, "{}", values.median());
    }
}
