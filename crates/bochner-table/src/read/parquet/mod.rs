//! Parquet, a row group at a time: flat tables of numbers, truth values and words.
//!
//! Read here rather than with the `parquet` crate (60.1, without arrow): what it depends on takes about 60 CPU seconds of a cold
//! release build before its own code is compiled, most of it Zstandard in C and Brotli; Snappy and LZ4 take half a second each.

mod codec;
mod pages;
pub(crate) mod thrift;

use super::columns::{Cellular, Columns, Facts, Parsed, Role, Trouble, check_names, merge, option_name};
use super::fault::{Fault, excerpt};
use super::input::Input;
use super::numbers::NumberType;
use super::schema::{Chosen, Kind, Missing, Schema, Selection};
use super::{About, Element, Format, Openable, Options, Result, Table, Visit, words};
use crate::{interrupt, write};
use bochner::Error;
use pages::{Cells, Chunk, Leaf, Physical};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::HashMap;
use thrift::{Fields, Value};

pub(super) const FORMAT: Format = Format {
    writes: &[("parquet", write::parquet::Parquet::begin)],
    ..Format::table::<Parquet>("Parquet", |start, _| start.starts_with(MAGIC))
};

pub(crate) const MAGIC: &[u8] = b"PAR1";
/// Rows of a group, all of which are in memory at once.
const MOST_ROWS: usize = 1 << 27;
/// Rows by which a column is judged.
const SAMPLE_ROWS: usize = 1000;
/// Numbers handed over at once, about.
const BLOCK_NUMBERS: usize = 1 << 20;

/// A file whose columns are understood.
#[derive(Debug)]
pub(super) struct Parquet {
    file: Pages,
    columns: Columns,
}

/// A file whose metadata are understood.
#[derive(Debug)]
struct Pages {
    input: Input,
    leaves: Vec<Leaf>,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

impl Openable for Parquet {
    fn open(input: Input, selection: &Selection, options: &Options) -> Result<Self> {
        let (file, names) = Pages::look(input)?;
        let chosen = file.resolve(selection, &names)?;
        let is_words = |j: &usize| chosen.words.contains(j) || file.leaves[*j].kind == Ok(Physical::Bytes);
        let words: Vec<usize> = chosen.inputs.iter().chain(&chosen.targets).copied().filter(is_words).collect();
        let facts = if words.is_empty() && !matches!(options.missing, Missing::Mean | Missing::Median) {
            HashMap::new()
        } else {
            file.scan(&names, &chosen, &words, options.missing)?
        };
        if file.rows() == 0 {
            return Err(file.input.fault("there are no rows"));
        }
        let columns = Columns::learned(names, &chosen, &facts, file.rows(), options);
        Ok(Parquet { file, columns })
    }

    fn open_with(input: Input, schema: Schema, options: &Options) -> Result<Self> {
        let (file, names) = Pages::look(input)?;
        let chosen = file.resolve(&schema.selection(), &names)?;
        for (&j, column) in chosen.inputs.iter().zip(&schema.inputs) {
            if file.leaves[j].kind == Ok(Physical::Bytes) && matches!(column.kind, Kind::Number { .. }) {
                return Err(file.refuse(j, "expected numbers, found words".into()));
            }
        }
        Ok(Parquet { file, columns: Columns::known(names, &chosen, schema, options) })
    }
}

impl Table for Parquet {
    fn about(&self) -> About<'_> {
        // Rows with empty cells may be left out, and nobody knows how many.
        let len = (self.columns.options.missing != Missing::Drop).then(|| self.file.rows());
        About::columns(&self.columns, len)
    }

    fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        let (d, t) = self.columns.shape;
        let wanted: Vec<usize> = self.columns.wanted().collect();
        let block_rows = (BLOCK_NUMBERS / (d + t).max(1)).max(1);
        let mut parsed = Parsed::default();
        self.deliver(visit, |deliver| {
            let mut before = 0;
            for group in self.file.groups.iter().filter(|group| group.rows > 0) {
                let cells = self.file.cells(group, &wanted)?;
                for start in (0..group.rows).step_by(block_rows) {
                    if interrupt::requested() {
                        return Err(Error::Interrupted);
                    }
                    parsed.clear();
                    let mut rows = start..(start + block_rows).min(group.rows);
                    let added = rows.try_for_each(|i| self.add_row(&wanted, &cells, before, i, &mut parsed));
                    added.map_err(|trouble| self.blame(trouble, 0))?;
                    deliver(&mut parsed, 0)?;
                }
                before += group.rows;
            }
            Ok(())
        })
    }
}

impl Parquet {
    /// Adds row `i` of a group that so many rows come before.
    fn add_row<R: Element>(
        &self,
        wanted: &[usize],
        cells: &[Cells],
        before: usize,
        i: usize,
        parsed: &mut Parsed<R>,
    ) -> Result<(), Trouble> {
        parsed.add_row(&self.columns, |row| {
            for (&j, cells) in wanted.iter().zip(cells) {
                let spot = ((before + i + 1) as u64, j);
                match &self.columns.roles[j] {
                    Role::Skip => {}
                    Role::Number { place, fill } => row.put_number(spot, (*place, *fill), number(cells, i))?,
                    Role::Words { place, values } => {
                        let word = word(cells, i);
                        row.put_word(spot, *place, word.as_deref().map(|word| (word, values.get(word).copied())))?;
                    }
                }
            }
            Ok(())
        })
    }
}

impl Cellular for Parquet {
    fn parts(&self) -> (&Input, &Columns) {
        (&self.file.input, &self.columns)
    }

    fn filled(&self, column: Option<usize>) -> Option<(Vec<bool>, u64)> {
        let mut filled = vec![false; self.columns.roles.len()];
        for j in column.map_or_else(|| self.columns.wanted().collect(), |j| vec![j]) {
            // A group that cannot be read may have a value.
            filled[j] = self.file.groups.iter().any(|group| {
                let has_value = |cells: &Cells| (0..cells.len()).any(|i| word(cells, i).is_some());
                self.file.cells(group, &[j]).map_or(true, |cells| cells.iter().any(has_value))
            });
        }
        Some((filled, self.file.rows() as u64))
    }

    fn locate(&self, trouble: Trouble, _: u64) -> Fault {
        self.file.fault(trouble)
    }
}

impl Pages {
    /// Reads the metadata at the end of the file; gives the names of its columns, too.
    fn look(input: Input) -> Result<(Self, Vec<String>)> {
        let broken = |what: &str| input.fault(format!("the Parquet file is damaged: {what}"));
        let compressed = || input.fault("Parquet files are not compressed as a whole; unpack it");
        let (len, file) = input.plain_len().zip(input.anywhere()).ok_or_else(compressed)?;
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
        let (metadata, _) = Fields::read(&bytes).ok_or_else(|| broken("its metadata cannot be understood"))?;
        let leaves = leaves(metadata.list(2)).ok_or_else(|| broken("its schema cannot be understood"))?;
        let groups = metadata.list(4).iter().map(|g| group(g.fields()?, leaves.len(), len)).collect::<Option<_>>();
        let groups = groups.ok_or_else(|| broken("its row groups cannot be understood"))?;
        let names = leaves.iter().map(|leaf| leaf.name.clone()).collect::<Vec<_>>();
        check_names(&input, None, &names)?;
        Ok((Pages { input, leaves, groups }, names))
    }

    fn rows(&self) -> usize {
        self.groups.iter().map(|g| g.rows).sum()
    }

    fn fault(&self, trouble: Trouble) -> Fault {
        let Trouble { line, column, message, .. } = trouble;
        let message = match line {
            Some(row) => format!("row {row} (counted from 1): {message}"),
            None => message,
        };
        let column = column.map(|j| (j + 1, Some(self.leaves[j].name.clone())));
        Fault { column, ..Fault::new(&self.input.name, message) }
    }

    fn refuse(&self, column: usize, message: String) -> Error {
        self.fault(Trouble::of_column(column, message)).into()
    }

    fn resolve(&self, selection: &Selection, names: &[String]) -> Result<Chosen> {
        let chosen = selection.resolve(&self.input.name, names)?;
        for &j in chosen.inputs.iter().chain(&chosen.targets) {
            if let Err(why) = self.leaves[j].kind {
                return Err(self.refuse(j, format!("{why}; --drop leaves the column out")));
            }
        }
        Ok(chosen)
    }

    /// The cells of some columns of a group, in their order.
    fn cells(&self, group: &Group, columns: &[usize]) -> Result<Vec<Cells>> {
        let broken = |what: &str| self.input.fault(format!("the Parquet file is damaged: {what}"));
        let file = self.input.anywhere().ok_or_else(|| broken("it cannot be read at random"))?;
        let one = |&j: &usize| {
            let chunk = &group.chunks[j];
            let mut bytes = vec![0; (chunk.place.end - chunk.place.start) as usize];
            file.read_exact_at(&mut bytes, chunk.place.start).map_err(|_| broken("a column ends too early"))?;
            pages::decode(&self.leaves[j], chunk, &bytes).map_err(|message| self.refuse(j, message))
        };
        columns.par_iter().map(one).collect()
    }

    /// Refuses numbers and dates that are words only because of how they are written, by the first cells of a column; the
    /// names of classes may be whole numbers with zeros at the beginning.
    fn check_words(&self, names: &[String], j: usize, cells: &Cells, target: bool) -> Result<()> {
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
                let message = look.message(&excerpt(word), &option_name(names, j));
                Err(self.fault(Trouble::of_cell((*row as u64 + 1, j), message)).into())
            }
            None => Ok(()),
        }
    }

    fn scan(
        &self,
        names: &[String],
        chosen: &Chosen,
        words: &[usize],
        missing: Missing,
    ) -> Result<HashMap<usize, Facts>> {
        let empty = Facts::of_all(chosen, words, missing);
        let mut facts = empty.clone();
        let columns: Vec<usize> = chosen.inputs.iter().chain(&chosen.targets).copied().collect();
        for (g, group) in self.groups.iter().enumerate() {
            if interrupt::requested() {
                return Err(Error::Interrupted);
            }
            let mut found = empty.clone();
            for (&j, cells) in columns.iter().zip(self.cells(group, &columns)?) {
                let Some(fact) = found.get_mut(&j) else { continue };
                if g == 0 && words.contains(&j) && !chosen.words.contains(&j) {
                    self.check_words(names, j, &cells, chosen.targets == [j])?;
                }
                if matches!(fact, Facts::Words(..)) {
                    for word in (0..cells.len()).filter_map(|i| word(&cells, i)) {
                        let told = |_| self.refuse(j, format!("the text {} is not UTF-8", excerpt(&word)));
                        fact.add_word(std::str::from_utf8(&word).map_err(told)?);
                    }
                } else {
                    (0..cells.len()).filter_map(|i| number(&cells, i)).for_each(|value| fact.add_number(value));
                }
            }
            if let Some(j) = merge(&mut facts, &mut found) {
                return Err(self.fault(Trouble::too_many_words(names, j)).into());
            }
        }
        Ok(facts)
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
    use NumberType::*;
    let converted = element.int(6);
    let unsigned = matches!(converted, Some(11..=14));
    let decimal = converted == Some(5);
    let scale = element.int(7).unwrap_or(0).clamp(0, 300) as i32;
    let divisor = if decimal { 10f64.powi(scale) } else { 1.0 };
    // Field 15 of a logical type is half precision.
    let half = element.int(2) == Some(2) && element.fields(10).is_some_and(|logical| logical.get(15).is_some());
    let kind = match element.int(1) {
        Some(0) => Ok(Physical::Boolean),
        Some(1) => Ok(Physical::Number(if unsigned { U32 } else { I32 })),
        Some(2) => Ok(Physical::Number(if unsigned { U64 } else { I64 })),
        Some(3) => Err("timestamps of 96 bits are not supported"),
        Some(4) => Ok(Physical::Number(F32)),
        Some(5) => Ok(Physical::Number(F64)),
        Some(6) if decimal => Err("decimals stored as bytes are not supported"),
        Some(6) => Ok(Physical::Bytes),
        Some(7) if half => Ok(Physical::Number(F16)),
        _ => Err("values of a fixed number of bytes are not supported"),
    };
    (kind, divisor)
}

fn group(fields: &Fields, columns: usize, len: u64) -> Option<Group> {
    // Columns of lists have other numbers of values; they are never read.
    let rows = fields.size(3).filter(|n| *n <= MOST_ROWS)?;
    let chunks = fields.list(1).iter().map(|c| chunk(c.fields()?.fields(3)?, rows, len)).collect::<Option<Vec<_>>>()?;
    (chunks.len() == columns).then_some(Group { rows, chunks })
}

fn chunk(fields: &Fields, values: usize, file: u64) -> Option<Chunk> {
    let first = u64::try_from(fields.int(9)?).ok()?;
    let dictionary = fields.int(11).and_then(|v| u64::try_from(v).ok()).filter(|v| *v > 0);
    let start = dictionary.map_or(first, |d| d.min(first));
    let len = u64::try_from(fields.int(7)?).ok()?;
    let place = start..start.checked_add(len).filter(|end| *end <= file)?;
    Some(Chunk { place, codec: fields.int(4)?, values })
}
