//! Parquet, a row group at a time: flat tables of numbers, truth values and words.
//!
//! Read here rather than with the `parquet` crate, whose five minutes of compilation every first build would pay.

mod codec;
mod pages;
mod thrift;

use super::columns::{
    Facts, MOST_WORDS, Noted, Place, Role, absent, empty, empty_among, merge, names_among, option_name, roles,
    schema_from, too_many_words, unknown_word,
};
use super::fault::{Fault, excerpt};
use super::input::Input;
use super::schema::{Chosen, Column, Kind, Missing, Schema, Selection, Unknown};
use super::{Element, Options, Result, Visit, words};
use crate::interrupt;
use bochner::Error;
use bochner::rows::RowBlock;
use ndarray::ArrayView2;
use pages::{Cells, Chunk, Leaf, Physical};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::HashMap;
use thrift::{Fields, Value};

pub(super) const MAGIC: &[u8] = b"PAR1";
/// Rows of a group, all of which are in memory at once.
const MOST_ROWS: usize = 1 << 27;
/// Rows by which a column is judged.
const SAMPLE_ROWS: usize = 1000;
/// Numbers handed over at once, about.
const BLOCK_NUMBERS: usize = 1 << 20;

/// A file whose columns are understood.
#[derive(Debug)]
pub(super) struct Parquet {
    input: Input,
    leaves: Vec<Leaf>,
    groups: Vec<Group>,
    options: Options,
    pub(super) schema: Schema,
    roles: Vec<Role>,
    /// A column of names, or of nothing, told when rows are asked for.
    doubt: Option<(usize, String)>,
    /// Whether the columns were known before: then there may be no rows.
    known: bool,
    pub(super) unknown_categories: Noted,
}

#[derive(Debug)]
struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

impl Parquet {
    pub(super) fn open(input: Input, options: &Options, selection: &Selection) -> Result<Self> {
        let mut file = Self::look(input, options)?;
        let names: Vec<String> = file.leaves.iter().map(|l| l.name.clone()).collect();
        let chosen = selection.resolve(&file.input.name, &names)?;
        file.check_kinds(&chosen)?;
        let wanted = || chosen.inputs.iter().chain(&chosen.targets).copied();
        let is_words = |j: &usize| chosen.words.contains(j) || file.leaves[*j].kind == Ok(Physical::Bytes);
        let words: Vec<usize> = wanted().filter(is_words).collect();
        let facts = if words.is_empty() && !matches!(options.missing, Missing::Mean | Missing::Median) {
            HashMap::new()
        } else {
            file.scan(&chosen, &words)?
        };
        let rows: usize = file.groups.iter().map(|g| g.rows).sum();
        if rows == 0 {
            return Err(file.input.fault("there are no rows"));
        }
        file.doubt = names_among(&names, &chosen, &facts)
            .or_else(|| empty_among(&names, &chosen, options.missing, &facts).filter(|_| rows > 1));
        file.schema = schema_from(&names, &chosen, options.missing, &facts);
        file.roles = roles(names.len(), &chosen, &file.schema);
        Ok(file)
    }

    /// Opens a file with the columns of a known schema, found by their names.
    pub(super) fn open_with(input: Input, options: &Options, schema: &Schema, with_targets: bool) -> Result<Self> {
        let mut file = Self::look(input, options)?;
        let mut schema = schema.clone();
        if !with_targets {
            schema.targets.clear();
        }
        let names: Vec<String> = file.leaves.iter().map(|l| l.name.clone()).collect();
        let wanted = |columns: &[Column]| columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        let selection = Selection {
            inputs: Some(wanted(&schema.inputs)),
            targets: wanted(&schema.targets),
            ..Selection::default()
        };
        let chosen = selection.resolve(&file.input.name, &names)?;
        file.check_kinds(&chosen)?;
        for (&j, column) in chosen.inputs.iter().zip(&schema.inputs) {
            if file.leaves[j].kind == Ok(Physical::Bytes) && matches!(column.kind, Kind::Number { .. }) {
                return Err(file.fault(j, None, "expected numbers, found words".into()));
            }
        }
        file.roles = roles(names.len(), &chosen, &schema);
        file.schema = schema;
        file.known = true;
        Ok(file)
    }

    /// Reads the metadata at the end of the file.
    fn look(input: Input, options: &Options) -> Result<Self> {
        let broken = |what: &str| input.fault(format!("the Parquet file is damaged: {what}"));
        let len =
            input.plain_len().ok_or_else(|| input.fault("Parquet files are not compressed as a whole; unpack it"))?;
        let file = input.anywhere().ok_or_else(|| broken("it cannot be read at random"))?;
        let file = file.map_err(|e| input.fault(super::input::cannot_read(&e)))?;
        if len < 12 {
            return Err(broken("it is too short"));
        }
        let mut tail = [0; 8];
        file.read_exact_at(&mut tail, len - 8).map_err(|_| broken("its end cannot be read"))?;
        if &tail[4..] != MAGIC {
            let what = if &tail[4..] == b"PARE" { "it is encrypted" } else { "its end is missing: it is truncated" };
            return Err(broken(what));
        }
        let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if size + 12 > len {
            return Err(broken("its metadata are longer than the file"));
        }
        let mut bytes = vec![0; size as usize];
        file.read_exact_at(&mut bytes, len - 8 - size).map_err(|_| broken("its metadata cannot be read"))?;
        let (metadata, _) = thrift::read(&bytes).ok_or_else(|| broken("its metadata cannot be understood"))?;
        let leaves =
            leaves(metadata.list(2).unwrap_or(&[])).ok_or_else(|| broken("its schema cannot be understood"))?;
        let groups: Option<Vec<Group>> =
            metadata.list(4).unwrap_or(&[]).iter().map(|g| group(g.fields()?, leaves.len(), len)).collect();
        let groups = groups.ok_or_else(|| broken("its row groups cannot be understood"))?;
        let mut names = HashMap::new();
        for (j, leaf) in leaves.iter().enumerate() {
            if let Some(first) = names.insert(leaf.name.as_str(), j) {
                let message =
                    format!("the name {} is already taken by column {}", excerpt(leaf.name.as_bytes()), first + 1);
                return Err(Fault { column: Some((j + 1, None)), ..Fault::new(&input.name, message) }.into());
            }
        }
        let (schema, unknown_categories) = (Schema::default(), Noted::default());
        Ok(Parquet {
            input,
            leaves,
            groups,
            options: options.clone(),
            schema,
            roles: Vec::new(),
            doubt: None,
            known: false,
            unknown_categories,
        })
    }

    pub(super) fn len(&self) -> Option<usize> {
        // Rows with empty cells may be left out, and nobody knows how many.
        (self.options.missing != Missing::Drop).then(|| self.groups.iter().map(|g| g.rows).sum())
    }

    fn fault(&self, column: usize, row: Option<usize>, message: String) -> Error {
        self.fault_at(column, row, message).into()
    }

    fn fault_at(&self, column: usize, row: Option<usize>, message: String) -> Fault {
        let message = match row {
            Some(row) => format!("row {} (counted from 1): {message}", row + 1),
            None => message,
        };
        let column = Some((column + 1, Some(self.leaves[column].name.clone())));
        Fault { column, ..Fault::new(&self.input.name, message) }
    }

    fn check_kinds(&self, chosen: &Chosen) -> Result<()> {
        for &j in chosen.inputs.iter().chain(&chosen.targets) {
            if let Err(why) = self.leaves[j].kind {
                return Err(self.fault(j, None, format!("{why}; --drop leaves the column out")));
            }
        }
        Ok(())
    }

    /// The cells of some columns of a group, in their order.
    fn cells(&self, group: &Group, columns: &[usize]) -> Result<Vec<Cells>> {
        let broken = |what: String| self.input.fault(format!("the Parquet file is damaged: {what}"));
        let file = self.input.anywhere().ok_or_else(|| broken("it cannot be read at random".into()))?;
        let file = file.map_err(|e| self.input.fault(super::input::cannot_read(&e)))?;
        let one = |&j: &usize| {
            let chunk = &group.chunks[j];
            let mut bytes = vec![0; chunk.len as usize];
            file.read_exact_at(&mut bytes, chunk.start).map_err(|_| broken("a column ends too early".into()))?;
            pages::decode(&self.leaves[j], chunk, &bytes).map_err(|message| self.fault(j, None, message))
        };
        columns.par_iter().map(one).collect()
    }

    fn option_name(&self, column: usize) -> String {
        let names: Vec<String> = self.leaves.iter().map(|leaf| leaf.name.clone()).collect();
        option_name(&names, column)
    }

    /// Whether no cell of a column has a value in any of several rows; of a column that a model knows, nobody asks.
    fn is_empty(&self, column: usize) -> bool {
        let is_missing = |cells: &Cells| (0..cells.len()).all(|i| word(cells, i).is_none());
        let mut groups = self.groups.iter();
        !self.known
            && self.options.advice.is_none()
            && self.groups.iter().map(|g| g.rows).sum::<usize>() > 1
            && groups.all(|group| self.cells(group, &[column]).is_ok_and(|cells| cells.iter().all(is_missing)))
    }

    /// Refuses numbers and dates that are words only because of how they are written, by the first cells of a column; the
    /// names of classes may be whole numbers with zeros at the beginning.
    fn check_words(&self, j: usize, cells: &Cells, target: bool) -> Result<()> {
        let sample: Vec<_> = (0..cells.len().min(SAMPLE_ROWS)).filter_map(|i| Some((i, word(cells, i)?))).collect();
        if target
            && sample.iter().any(|(_, word)| words::is_code(word))
            && sample.iter().all(|(_, word)| words::is_whole(word))
        {
            return Ok(());
        }
        match words::look(sample.iter().map(|(_, word)| (&word[..], false))) {
            Some((at, look)) => {
                let (row, word) = &sample[at];
                Err(self.fault(j, Some(*row), look.message(&excerpt(word), &self.option_name(j))))
            }
            None => Ok(()),
        }
    }

    fn scan(&self, chosen: &Chosen, words: &[usize]) -> Result<HashMap<usize, Facts>> {
        let empty = Facts::of_all(chosen, words, self.options.missing);
        let mut facts = empty.clone();
        let columns: Vec<usize> = chosen.inputs.iter().chain(&chosen.targets).copied().collect();
        let mut before = 0;
        for group in &self.groups {
            if interrupt::requested() {
                return Err(Error::Interrupted);
            }
            let mut found = empty.clone();
            for (&j, cells) in columns.iter().zip(self.cells(group, &columns)?) {
                let Some(fact) = found.get_mut(&j) else { continue };
                if before == 0 && words.contains(&j) && !chosen.words.contains(&j) {
                    self.check_words(j, &cells, chosen.targets == [j])?;
                }
                for i in 0..cells.len() {
                    match fact {
                        Facts::Words(set, n) => {
                            let Some(word) = word(&cells, i) else { continue };
                            *n += 1;
                            let text = std::str::from_utf8(&word).map_err(|_| {
                                self.fault(j, None, format!("the text {} is not UTF-8", excerpt(&word)))
                            })?;
                            if set.len() <= MOST_WORDS && !set.contains(text) {
                                set.insert(text.to_owned());
                            }
                        }
                        Facts::Mean(sum, n) => {
                            if let Some(value) = number(&cells, i) {
                                (*sum, *n) = (*sum + value, *n + 1);
                            }
                        }
                        Facts::Median(values) => {
                            if let Some(value) = number(&cells, i) {
                                values.push(value);
                            }
                        }
                    }
                }
            }
            before += group.rows;
            if let Some(j) = merge(&mut facts, &mut found) {
                return Err(self.fault(j, None, too_many_words(&self.option_name(j))));
            }
        }
        Ok(facts)
    }

    /// Delivers all rows in blocks.
    pub(super) fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        if let Some((column, message)) = self.doubt.clone() {
            return Err(self.fault(column, None, message));
        }
        let (d, t) = (self.schema.input_dim(), self.schema.targets.len());
        let columns: Vec<usize> = (0..self.roles.len()).filter(|j| !matches!(self.roles[*j], Role::Skip)).collect();
        let block_rows = (BLOCK_NUMBERS / (d + t).max(1)).max(1);
        let (mut inputs, mut targets): (Vec<R>, Vec<R>) = (Vec::new(), Vec::new());
        let (mut before, mut any) = (0, false);
        for group in self.groups.iter().filter(|group| group.rows > 0) {
            let cells = self.cells(group, &columns)?;
            for start in (0..group.rows).step_by(block_rows) {
                if interrupt::requested() {
                    return Err(Error::Interrupted);
                }
                let range = start..(start + block_rows).min(group.rows);
                inputs.clear();
                targets.clear();
                let mut rows = 0;
                for i in range {
                    if self.row(&columns, &cells, i, before + i, (d, t), &mut inputs, &mut targets)? {
                        rows += 1;
                    }
                }
                if rows > 0 {
                    any = true;
                    visit(RowBlock {
                        rows: ArrayView2::from_shape((rows, d), &inputs).expect("rows times d numbers"),
                        targets: ArrayView2::from_shape((rows, t), &targets).expect("rows times t numbers"),
                        weights: None,
                    })?;
                }
            }
            before += group.rows;
        }
        if any || (self.known && before == 0) {
            return Ok(());
        }
        Err(match columns.iter().find(|j| self.is_empty(**j)) {
            Some(&j) => self.fault(j, None, empty(self.is_target(j), &self.option_name(j))),
            None => self.input.fault("there are no rows without empty cells"),
        })
    }

    fn is_target(&self, column: usize) -> bool {
        match &self.roles[column] {
            Role::Skip => false,
            Role::Number { place, .. } | Role::Words { place, .. } => place.is_target(),
        }
    }

    /// Appends row `i` of a group; `false` if it is left out.
    fn row<R: Element>(
        &self,
        columns: &[usize],
        cells: &[Cells],
        i: usize,
        number_in_file: usize,
        (d, t): (usize, usize),
        inputs: &mut Vec<R>,
        targets: &mut Vec<R>,
    ) -> Result<bool> {
        let (base, target_base) = (inputs.len(), targets.len());
        inputs.resize(base + d, R::ZERO);
        targets.resize(target_base + t, R::ZERO);
        for (&j, cells) in columns.iter().zip(cells) {
            let refused = |message: String| self.fault(j, Some(number_in_file), message);
            let missing = match &self.roles[j] {
                Role::Skip => false,
                Role::Number { place, fill } => match number(cells, i).or(*fill) {
                    Some(value) => {
                        if let Some(largest) =
                            self.options.largest.filter(|l| value.is_finite() && value.abs() > l.value)
                        {
                            return Err(refused(format!("the number {value:e} is {}", largest.told)));
                        }
                        let value = R::from_f64(value);
                        if !value.is_finite() {
                            return Err(refused(format!("the number is infinite or too large for {}", R::NAME)));
                        }
                        match place {
                            Place::Input(at) => inputs[base + at] = value,
                            Place::Target(at) => targets[target_base + at] = value,
                        }
                        false
                    }
                    None => true,
                },
                Role::Words { place, values } => match (word(cells, i), place) {
                    (Some(word), place) => {
                        match (values.get(&*word), place) {
                            (Some(index), Place::Input(at)) => inputs[base + at + index] = R::ONE,
                            (Some(&index), Place::Target(at)) => targets[target_base + at] = R::from_f64(index as f64),
                            (None, place) => {
                                let let_pass = self.options.unknown == Unknown::Zeros;
                                let message = unknown_word(&excerpt(&word), place.is_target(), let_pass);
                                if place.is_target() || !let_pass {
                                    return Err(refused(message));
                                }
                                self.unknown_categories
                                    .add(1, || Some(self.fault_at(j, Some(number_in_file), message)));
                            }
                        }
                        false
                    }
                    // A missing word is no word: all its columns stay 0.
                    (None, Place::Input(_)) if self.options.missing.fills() => false,
                    (None, _) => true,
                },
            };
            if missing {
                if self.options.missing != Missing::Drop {
                    let target = self.is_target(j);
                    return Err(match self.is_empty(j) {
                        true => self.fault(j, None, empty(target, &self.option_name(j))),
                        false => refused(absent(target, self.options.missing, self.options.advice).into()),
                    });
                }
                inputs.truncate(base);
                targets.truncate(target_base);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The number in a cell; a NaN is a missing one, as pandas has it.
fn number(cells: &Cells, i: usize) -> Option<f64> {
    match cells {
        Cells::Numbers(values) => values.get(i).copied().filter(|v| !v.is_nan()),
        Cells::Words(_) => None,
    }
}

/// The word in a cell; numbers are written out.
fn word(cells: &Cells, i: usize) -> Option<Cow<'_, [u8]>> {
    match cells {
        Cells::Words(values) => values.get(i)?.as_deref().map(Cow::Borrowed),
        Cells::Numbers(values) => {
            let value = values.get(i).filter(|v| !v.is_nan())?;
            Some(Cow::Owned(value.to_string().into_bytes()))
        }
    }
}

/// The leaves of a schema in the order of the columns; those inside groups are there and cannot be read.
fn leaves(elements: &[Value]) -> Option<Vec<Leaf>> {
    let mut leaves = Vec::new();
    // How many elements are still to come at each level, and whether they belong to a nested column.
    let root = elements.first()?.fields()?;
    let mut open = vec![(root.int(5)?, String::new())];
    for element in &elements[1..] {
        let element = element.fields()?;
        while open.last().is_some_and(|(left, _)| *left <= 0) {
            open.pop();
        }
        let depth = open.len();
        let (left, prefix) = open.last_mut()?;
        *left -= 1;
        let name = format!("{prefix}{}", element.text(4)?);
        if let Some(children) = element.int(5).filter(|n| *n > 0) {
            open.push((children, format!("{name}.")));
            continue;
        }
        let repetition = element.int(3).unwrap_or(0);
        let nested = depth > 1 || repetition == 2;
        let (kind, divisor) = kind(element);
        let kind = if nested { Err("lists and nested columns cannot be rows of numbers") } else { kind };
        leaves.push(Leaf { name, kind, optional: repetition == 1, divisor });
    }
    if leaves.is_empty() { None } else { Some(leaves) }
}

fn kind(element: &Fields) -> (std::result::Result<Physical, &'static str>, f64) {
    let converted = element.int(6);
    let unsigned = matches!(converted, Some(11..=14));
    let decimal = converted == Some(5);
    let scale = element.int(7).unwrap_or(0).clamp(0, 300) as i32;
    let divisor = if decimal { 10f64.powi(scale) } else { 1.0 };
    let kind = match element.int(1) {
        Some(0) => Ok(Physical::Boolean),
        Some(1) => Ok(Physical::Int32 { unsigned }),
        Some(2) => Ok(Physical::Int64 { unsigned }),
        Some(3) => Err("timestamps of 96 bits are not supported"),
        Some(4) => Ok(Physical::Float),
        Some(5) => Ok(Physical::Double),
        Some(6) if decimal => Err("decimals stored as bytes are not supported"),
        Some(6) => Ok(Physical::Bytes),
        _ => Err("values of a fixed number of bytes are not supported"),
    };
    (kind, divisor)
}

fn group(fields: &Fields, columns: usize, len: u64) -> Option<Group> {
    let rows = usize::try_from(fields.int(3)?).ok().filter(|n| *n <= MOST_ROWS)?;
    let chunks: Option<Vec<Chunk>> = fields.list(1)?.iter().map(|c| chunk(c.fields()?.fields(3)?, len)).collect();
    let chunks = chunks?;
    // Columns of lists have other numbers of values; they are never read.
    (chunks.len() == columns)
        .then_some(Group { rows, chunks: chunks.into_iter().map(|c| Chunk { values: rows, ..c }).collect() })
}

fn chunk(fields: &Fields, file: u64) -> Option<Chunk> {
    let first = u64::try_from(fields.int(9)?).ok()?;
    let dictionary = fields.int(11).and_then(|v| u64::try_from(v).ok()).filter(|v| *v > 0);
    let start = dictionary.map_or(first, |d| d.min(first));
    let len = u64::try_from(fields.int(7)?).ok()?;
    (start.checked_add(len)? <= file).then_some(Chunk { start, len, codec: fields.int(4)?, values: 0 })
}
