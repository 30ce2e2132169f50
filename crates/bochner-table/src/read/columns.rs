//! What tables have in common, whatever their format: the columns wanted, what a first pass learns about them, and what
//! becomes of their cells.

use super::fault::{Fault, excerpt};
use super::findings::Findings;
use super::input::Input;
use super::judge::Reading;
use super::schema::{Chosen, Column, Kind, Largest, Missing, Schema, Unknown, shared_place};
use super::times::{Moment, TimePart};
use super::{Element, Options, Result, Visit};
use bochner::rows::RowBlock;
use bochner::words::count;
use ndarray::ArrayView2;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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

/// What becomes of a cell without a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gap {
    pub(super) fill: Option<f64>,
    /// Whether the column behind says where one was.
    pub(super) marked: bool,
}

/// What a cell becomes: numbers at a place among the inputs of a row and the targets behind them.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Skip,
    Number { place: usize, gap: Gap, reading: Reading },
    Time { place: usize, gap: Gap, parts: Vec<TimePart>, reading: Reading },
    Words { place: usize, words: Vocabulary, reading: Reading },
}

/// The words of a column and the numbers of their columns.
#[derive(Debug, Clone)]
pub(super) struct Vocabulary {
    values: HashMap<Vec<u8>, usize>,
    shared: usize,
}

impl Vocabulary {
    /// The number of a word that has one.
    #[inline]
    pub(super) fn number(&self, word: &[u8]) -> Option<usize> {
        let own = self.values.get(word).copied();
        own.or_else(|| (self.shared > 0).then(|| self.values.len() + shared_place(word, self.shared)))
    }

    /// The number of a word that has a column of its own.
    #[inline]
    pub(super) fn own_number(&self, word: &[u8]) -> Option<usize> {
        self.values.get(word).copied()
    }
}

impl Role {
    pub(super) fn of(column: &Column, place: usize) -> Self {
        let reading = column.reading();
        match &column.kind {
            Kind::Number { fill, marked, .. } => {
                Role::Number { place, gap: Gap { fill: *fill, marked: *marked }, reading }
            }
            Kind::Words { values, shared } => {
                let values = values.iter().enumerate().map(|(i, v)| (v.clone().into_bytes(), i)).collect();
                let words = Vocabulary { values, shared: *shared };
                Role::Words { place, words, reading }
            }
            Kind::Time { parts, fill, marked, .. } => {
                Role::Time { place, gap: Gap { fill: *fill, marked: *marked }, parts: parts.clone(), reading }
            }
        }
    }
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
    /// Gaps in columns that had none in training.
    new_gaps: Noted,
    /// Cells that nobody understands, in rows that are kept all the same.
    spoiled: Noted,
    /// How the columns were understood, where it could have been otherwise.
    remarks: Vec<String>,
    /// Whether rows are left out because their targets are missing.
    pub(super) leaves_out: bool,
    /// Number of inputs and of targets of a row.
    pub(super) shape: (usize, usize),
}

impl Columns {
    fn new(names: Vec<String>, chosen: &Chosen, schema: Schema, options: &Options) -> Self {
        let mut roles = vec![Role::Skip; names.len()];
        let mut place = 0;
        for (&j, column) in chosen.inputs.iter().zip(&schema.inputs) {
            roles[j] = Role::of(column, place);
            place += column.width();
        }
        let (shape, options) = ((place, schema.targets.len()), options.clone());
        for (t, (&j, column)) in chosen.targets.iter().zip(&schema.targets).enumerate() {
            roles[j] = Role::of(column, place + t);
        }
        let (unknown_categories, codes, new_gaps, spoiled) = Default::default();
        let (doubt, known, remarks, leaves_out) = (None, false, Vec::new(), options.missing == Missing::Drop);
        Columns {
            names,
            options,
            schema,
            roles,
            doubt,
            known,
            unknown_categories,
            codes,
            new_gaps,
            spoiled,
            remarks,
            leaves_out,
            shape,
        }
    }

    /// Columns of a known schema.
    pub(super) fn known(names: Vec<String>, chosen: &Chosen, schema: Schema, options: &Options) -> Self {
        Columns { known: true, ..Self::new(names, chosen, schema, options) }
    }

    /// Columns with what was found in them.
    pub(super) fn learned(names: Vec<String>, chosen: Chosen, findings: &Findings, options: &Options) -> Self {
        let settled = findings.settle(&names, chosen, options);
        let leaves_out = options.missing == Missing::Drop || settled.targets_missing;
        let columns = Self::new(names, &settled.chosen, settled.schema, options);
        Columns { doubt: settled.doubt, remarks: settled.remarks, leaves_out, ..columns }
    }

    fn place(&self, column: usize) -> Option<usize> {
        match &self.roles[column] {
            Role::Skip => None,
            Role::Number { place, .. } | Role::Words { place, .. } | Role::Time { place, .. } => Some(*place),
        }
    }

    /// Which columns are read.
    pub(super) fn wanted(&self) -> impl Iterator<Item = usize> {
        (0..self.roles.len()).filter(|j| self.place(*j).is_some())
    }

    /// Everything odd that was found so far, a sentence each.
    pub(super) fn remarks(&self, file: &str) -> Vec<String> {
        let mut all: Vec<String> = self.remarks.iter().map(|remark| format!("{file}: {remark}")).collect();
        let others = |cells: u64, one: &str, many: &str| match cells - 1 {
            0 => String::new(),
            1 => format!(", {one} one other cell"),
            n => format!(", {many} {} other cells", count(n as usize)),
        };
        if let Some((cells, first)) = self.unknown_categories.seen() {
            let others = others(cells, "nor did that of", "nor did those of");
            all.push(format!("{first}{others}: such words count as none of those that did"));
        }
        if let Some((cells, first)) = self.new_gaps.seen() {
            all.push(format!(
                "{first}{}: such cells get what fills gaps in training",
                others(cells, "as is", "as are")
            ));
        }
        if let Some((cells, first)) = self.spoiled.seen() {
            let others = others(cells, "and so is", "and so are");
            all.push(format!("{first}{others}: such rows have no answer"));
        }
        all
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
    pub(super) gap: bool,
    /// Whether it is about what is in a cell, the end of which is known.
    pub(super) of_value: bool,
    /// A cell that is not what those of its column were taken for.
    pub(super) contradiction: Option<Box<[u8]>>,
}

impl Trouble {
    pub(super) fn of_line(line: u64, message: String) -> Self {
        Trouble { line: Some(line), message, ..Trouble::default() }
    }

    pub(super) fn of_column(column: usize, message: String) -> Self {
        Trouble { column: Some(column), message, ..Trouble::default() }
    }

    pub(super) fn of_cell((line, column): (u64, usize), message: String) -> Self {
        Trouble { line: Some(line), of_value: true, ..Self::of_column(column, message) }
    }

    /// A cell that is not what those of its column were taken for.
    pub(super) fn of_contradiction(spot: (u64, usize), cell: &[u8], message: String) -> Self {
        Trouble { contradiction: Some(cell.into()), ..Self::of_cell(spot, message) }
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
    new_gaps: Passed,
    spoiled: Passed,
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
        let (inputs, targets, unknown_categories, codes, new_gaps, spoiled) = Default::default();
        Parsed { inputs, targets, rows: 0, unknown_categories, codes, new_gaps, spoiled, dropped: false }
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
        let (unknown_categories, new_gaps, spoiled) =
            (&mut self.unknown_categories, &mut self.new_gaps, &mut self.spoiled);
        let mut row =
            Row { columns, inputs, targets, unknown_categories, new_gaps, spoiled, gap: false, is_spoiled: false };
        fill(&mut row)?;
        if row.is_spoiled {
            row.inputs.fill(R::from_f64(f64::NAN));
        }
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
    new_gaps: &'a mut Passed,
    spoiled: &'a mut Passed,
    /// Whether a cell is empty, and the row to be left out.
    gap: bool,
    /// Whether a cell cannot be understood, and the row has no answer.
    is_spoiled: bool,
}

impl<R: Element> Row<'_, R> {
    /// Puts a number, `None` for an empty cell, to its place; `spot` is where it is in the file.
    #[inline]
    pub(super) fn put_number(
        &mut self,
        spot: (u64, usize),
        (place, gap): (usize, Gap),
        value: Option<f64>,
    ) -> Result<(), Trouble> {
        let value = match (value, gap.fill) {
            (Some(value), _) => value,
            (None, Some(fill)) => {
                self.fill_gap(spot, place + 1, gap);
                fill
            }
            (None, None) => return self.put_gap(spot, place),
        };
        match narrowed(value, self.columns.options.largest) {
            Ok(value) => *self.cell(place) = value,
            Err(message) => return self.spoil(Trouble::of_cell(spot, message)),
        }
        Ok(())
    }

    /// Puts the parts of a time in seconds, `None` for an empty cell, to their places.
    #[inline]
    pub(super) fn put_time(
        &mut self,
        spot: (u64, usize),
        (place, gap, parts): (usize, Gap, &[TimePart]),
        seconds: Option<f64>,
    ) -> Result<(), Trouble> {
        let seconds = match (seconds, gap.fill) {
            (Some(seconds), _) => seconds,
            (None, Some(fill)) => {
                self.fill_gap(spot, place + parts.len(), gap);
                fill
            }
            (None, None) => return self.put_gap(spot, place),
        };
        let Some(moment) = Moment::new(seconds) else {
            return self
                .spoil(Trouble::of_cell(spot, format!("the time {seconds:e} seconds from 1970 is in no calendar")));
        };
        for (k, part) in parts.iter().enumerate() {
            self.inputs[place + k] = R::from_f64(part.of(&moment));
        }
        Ok(())
    }

    /// Marks a gap that is filled in.
    #[cold]
    fn fill_gap(&mut self, spot: (u64, usize), mark: usize, gap: Gap) {
        if gap.marked {
            self.inputs[mark] = R::ONE;
        } else if self.columns.known && self.columns.options.missing == Missing::Mark {
            self.new_gaps.add(|| Trouble::of_cell(spot, "the value is missing, as none was in training".into()));
        }
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
            None if options.missing.fills() && !is_target => {
                if self.columns.known && options.missing == Missing::Mark {
                    self.new_gaps.add(|| Trouble::of_cell(spot, "the word is missing, as none was in training".into()));
                }
            }
            None => return self.put_gap(spot, place),
            Some((word, None)) => {
                let let_pass = options.unknown == Unknown::Zeros;
                let trouble = || Trouble::of_cell(spot, unknown_word(&excerpt(word), is_target, let_pass));
                if is_target {
                    return Err(trouble());
                }
                if !let_pass {
                    return self.spoil(trouble());
                }
                self.unknown_categories.add(trouble);
            }
        }
        Ok(())
    }

    /// Goes on in spite of a cell that cannot be used, if rows are to be kept.
    #[cold]
    pub(super) fn spoil(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        if !(self.columns.options.keep_rows && trouble.of_value) {
            return Err(trouble);
        }
        self.is_spoiled = true;
        self.spoiled.add(|| trouble);
        Ok(())
    }

    #[inline(always)]
    fn cell(&mut self, place: usize) -> &mut R {
        let d = self.inputs.len();
        if place < d { &mut self.inputs[place] } else { &mut self.targets[place - d] }
    }

    #[cold]
    fn put_gap(&mut self, spot: (u64, usize), place: usize) -> Result<(), Trouble> {
        let Options { missing, advice, keep_rows, .. } = self.columns.options;
        let is_target = place >= self.inputs.len();
        if keep_rows && is_target {
            *self.cell(place) = R::from_f64(f64::NAN);
            return Ok(());
        }
        if missing == Missing::Drop || (is_target && missing.drops_targets()) {
            self.gap = true;
            return Ok(());
        }
        self.spoil(Trouble { gap: true, ..Trouble::of_cell(spot, absent(is_target, missing, advice).into()) })
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
            columns.new_gaps.add(&mut parsed.new_gaps, |first| self.locate(first, lines_before));
            columns.spoiled.add(&mut parsed.spoiled, |first| self.locate(first, lines_before));
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
