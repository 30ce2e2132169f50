//! Parquet, a row group at a time: flat tables of numbers, truth values and words.
//!
//! Read here rather than with the `parquet` crate (60.1, without arrow): what it depends on takes about 60 CPU seconds of a cold
//! release build before its own code is compiled, most of it Zstandard in C and Brotli; Snappy and LZ4 take half a second each.

mod codec;
mod pages;
pub(crate) mod thrift;

use super::columns::{Cellular, Columns, Parsed, Role, Trouble, check_names, option_name};
use super::fault::{Fault, excerpt};
use super::findings::{Facts, Findings};
use super::input::Input;
use super::judge::{Circumstances, Judged, Reading, Verdict, judge};
use super::numbers::NumberType;
use super::schema::{Chosen, Kind, Schema, Selection};
use super::{About, Element, Format, Openable, Options, Result, Table, Visit, words};
use crate::{interrupt, write};
use bochner::Error;
use pages::{Cells, Chunk, Leaf, Physical, Time};
use rayon::prelude::*;
use std::borrow::Cow;
use thrift::{Fields, Value};

pub(super) const FORMAT: Format = Format {
    writes: &[("parquet", write::parquet::Parquet::begin)],
    ..Format::table::<Parquet>("Parquet", |start, _| start.starts_with(MAGIC) || start.starts_with(ENCRYPTED))
};

pub(crate) const MAGIC: &[u8] = b"PAR1";
/// How files begin and end whose metadata are encrypted.
const ENCRYPTED: &[u8] = b"PARE";
/// Rows of a group, all of which are in memory at once.
const MOST_ROWS: usize = 1 << 27;
/// Rows by which a column is judged.
const SAMPLE_ROWS: usize = 1000;
/// Cells that may show, one after the other, that a column is not what the first rows make of it.
const MOST_SURPRISES: usize = 100;
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
        if file.rows() == 0 {
            return Err(file.input.fault("there are no rows"));
        }
        let mut surprises = Vec::new();
        loop {
            let (readings, remarks) = file.judge(&names, &chosen, &surprises, options)?;
            let (header, rows) = (true, file.rows() as u64);
            let plain = |j: &usize| readings[*j] == Reading::PLAIN && file.leaves[*j].kind != Ok(Physical::Bytes);
            let all_plain = chosen.inputs.iter().chain(&chosen.targets).all(plain);
            let facts = match options.missing.learns() || options.sift || !all_plain {
                true => file.scan(&chosen, &readings, options)?,
                false => Ok(Vec::new()),
            };
            match facts {
                Ok(facts) => {
                    let findings = Findings { readings, remarks, facts, header, rows };
                    let columns = Columns::learned(names, chosen, &findings, options);
                    return Ok(Parquet { file, columns });
                }
                Err((j, row, cell)) if surprises.len() >= MOST_SURPRISES => {
                    return Err(file.fault(Trouble::of_cell((row, j), not_as_expected(&readings[j], &cell))).into());
                }
                Err(surprise) => surprises.push(surprise),
            }
        }
    }

    fn open_with(input: Input, schema: Schema, options: &Options) -> Result<Self> {
        let (file, names) = Pages::look(input)?;
        let chosen = file.resolve(&schema.selection(), &names)?;
        for (&j, column) in chosen.inputs.iter().zip(&schema.inputs) {
            let leaf = &file.leaves[j];
            let is_words = leaf.kind == Ok(Physical::Bytes);
            let wrong = match &column.kind {
                Kind::Number { writing: None, .. } if is_words && column.markers.is_none() => {
                    "expected numbers, found words"
                }
                Kind::Number { .. } if leaf.time.is_some() => "expected numbers, found dates or times",
                Kind::Time { clock, .. } if !is_words => match leaf.time {
                    Some(time) if (time == Time::Clock) == *clock => continue,
                    Some(_) if *clock => "expected times of day, found dates",
                    Some(_) => "expected dates, found times of day",
                    None => "expected dates or times, found numbers",
                },
                _ => continue,
            };
            return Err(file.refuse(j, wrong.into()));
        }
        Ok(Parquet { file, columns: Columns::known(names, &chosen, schema, options) })
    }
}

impl Table for Parquet {
    fn about(&self) -> About<'_> {
        // Rows with empty cells may be left out, and nobody knows how many.
        let len = (!self.columns.leaves_out).then(|| self.file.rows());
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
                    Role::Number { place, gap, reading } => match number(cells, i, reading) {
                        Ok(value) => row.put_number(spot, (*place, *gap), value)?,
                        Err(cell) => row.spoil(Trouble::of_cell(spot, not_as_expected(reading, cell)))?,
                    },
                    Role::Time { place, gap, parts, reading } => match number(cells, i, reading) {
                        Ok(seconds) => row.put_time(spot, (*place, *gap, parts), seconds)?,
                        Err(cell) => row.spoil(Trouble::of_cell(spot, not_as_expected(reading, cell)))?,
                    },
                    Role::Words { place, words, reading } => {
                        let found = word(cells, i);
                        let found = found.as_deref().unwrap_or(b"");
                        let word = match words.own_number(found) {
                            None if is_gap(reading, found) => {
                                words.own_number(b"").map(|index| (&b""[..], Some(index)))
                            }
                            None => Some((found, words.number(found))),
                            index => Some((found, index)),
                        };
                        row.put_word(spot, *place, word)?;
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
        if &tail[4..] == ENCRYPTED {
            return Err(
                input.fault("the Parquet file is encrypted, and keys are not supported; write it without encryption")
            );
        }
        if &tail[4..] != MAGIC {
            return Err(broken("its end is missing: it is truncated"));
        }
        let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if size + 12 > len {
            return Err(broken("its metadata are longer than the file"));
        }
        let mut bytes = vec![0; size as usize];
        file.read_exact_at(&mut bytes, len - 8 - size).map_err(|_| broken("its metadata cannot be read"))?;
        let (metadata, _) = Fields::read(&bytes).ok_or_else(|| broken("its metadata cannot be understood"))?;
        let mut leaves = leaves(metadata.list(2)).ok_or_else(|| broken("its schema cannot be understood"))?;
        for (name, unit) in durations(metadata.list(5)) {
            for leaf in leaves.iter_mut().filter(|leaf| leaf.name == name) {
                match unit {
                    Some(per_second) => leaf.divisor = per_second,
                    None => leaf.kind = Err(A_DURATION),
                }
            }
        }
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
            let refused = self.groups.iter().find_map(|group| group.chunks[j].refused);
            if let Some(why) = refused.or(self.leaves[j].kind.err()) {
                let column = option_name(names, j);
                return Err(self.refuse(j, format!("{why}; --drop {column} leaves the column out")));
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

    /// How the cells of all chosen columns are read, by the first words of those of words and by later ones that were a surprise,
    /// and what should be told about it; one report of all columns that cannot be.
    fn judge(
        &self,
        names: &[String],
        chosen: &Chosen,
        surprises: &[(usize, u64, Box<[u8]>)],
        options: &Options,
    ) -> Result<(Vec<Reading>, Vec<Option<String>>)> {
        let mut readings = vec![Reading::PLAIN; names.len()];
        let (mut remarks, mut faults) = (vec![None; names.len()], Vec::new());
        let wanted = || chosen.inputs.iter().chain(&chosen.targets).copied();
        let text: Vec<usize> = wanted().filter(|j| self.leaves[*j].kind == Ok(Physical::Bytes)).collect();
        let first = self.groups.iter().find(|group| group.rows > 0);
        let samples = first.map(|group| self.cells(group, &text)).transpose()?.unwrap_or_default();
        for j in wanted() {
            let (target, option) = (chosen.targets.contains(&j), option_name(names, j));
            if chosen.words.contains(&j) {
                readings[j].verdict = Verdict::Words;
            } else if let Some(time) = self.leaves[j].time {
                if target {
                    faults.push(
                        self.fault(Trouble::of_column(j, words::dates_cannot_be_predicted("of its type", &option))),
                    );
                }
                let kind = match time {
                    Time::Moment => "dates and times",
                    Time::Day => "dates",
                    Time::Clock => "times",
                };
                remarks[j] = Some(format!("{kind} by its type"));
                readings[j].verdict = Verdict::Time { day_first: false, clock: time == Time::Clock };
            } else if let Some(cells) = text.iter().position(|k| *k == j).and_then(|at| samples.get(at)) {
                let given = Reading { markers: options.markers.clone(), ..Reading::PLAIN };
                let late = surprises.iter().filter(|surprise| surprise.0 == j);
                let late = late.map(|(_, row, cell)| (*row, Cow::Borrowed(&cell[..])));
                let sample = (0..cells.len().min(SAMPLE_ROWS)).filter_map(|i| Some((i as u64 + 1, word(cells, i)?)));
                let sample: Vec<_> = sample.chain(late).filter(|(_, cell)| !given.is_gap(cell)).collect();
                let words: Vec<&[u8]> = sample.iter().map(|(_, word)| &word[..]).collect();
                // The names of classes may be whole numbers with zeros at the beginning.
                let codes =
                    target && words.iter().any(|w| words::is_code(w)) && words.iter().all(|w| words::is_whole(w));
                let (lenient, comma) = (options.missing.fills() && !target, false);
                let about = Circumstances {
                    lenient,
                    comma,
                    comma_elsewhere: comma,
                    day_first: options.day_first,
                    option: &option,
                };
                match judge(&words, about) {
                    _ if codes || words.is_empty() => readings[j].verdict = Verdict::Words,
                    Ok(Judged { verdict: Verdict::Time { .. }, .. }) if target => {
                        let message = words::dates_cannot_be_predicted(&excerpt(words[0]), &option);
                        faults.push(self.fault(Trouble::of_cell((sample[0].0, j), message)));
                    }
                    Ok(judged) => {
                        readings[j] = judged.reading(options.markers.as_ref());
                        remarks[j] = judged.remark;
                        if readings[j] == Reading::PLAIN {
                            // So that words are expected where the numbers are wanted.
                            readings[j].verdict = Verdict::Number(Some(super::Writing::default()));
                            remarks[j] = Some("numbers that are stored as words".into());
                        }
                    }
                    Err((at, message)) => faults.push(self.fault(Trouble::of_cell((sample[at].0, j), message))),
                }
            } else {
                readings[j].markers = options.markers.clone();
            }
            if readings[j].verdict == Verdict::Words {
                readings[j].markers = options.markers.clone();
            }
        }
        match Fault::all_of(faults) {
            Some(report) => Err(report.into()),
            None => Ok((readings, remarks)),
        }
    }

    /// What all rows say about the chosen columns; or a cell that is not what its column was taken for.
    fn scan(
        &self,
        chosen: &Chosen,
        readings: &[Reading],
        options: &Options,
    ) -> Result<std::result::Result<Vec<Option<Facts>>, (usize, u64, Box<[u8]>)>> {
        let columns: Vec<usize> = chosen.inputs.iter().chain(&chosen.targets).copied().collect();
        let mut facts = vec![None; readings.len()];
        for &j in &columns {
            facts[j] = Some(Facts::new(&readings[j].verdict, options.missing, chosen.inputs.len()));
        }
        let mut before = 0;
        for group in &self.groups {
            if interrupt::requested() {
                return Err(Error::Interrupted);
            }
            for (&j, cells) in columns.iter().zip(self.cells(group, &columns)?) {
                let (Some(fact), reading) = (&mut facts[j], &readings[j]) else { continue };
                if reading.verdict != Verdict::Words {
                    for i in 0..cells.len() {
                        match number(&cells, i, reading) {
                            Ok(Some(value)) => fact.add_number(value),
                            Ok(None) => fact.add_gap(word(&cells, i).as_deref().unwrap_or(b"")),
                            Err(cell) => return Ok(Err((j, before + i as u64 + 1, cell.into()))),
                        }
                    }
                    continue;
                }
                for i in 0..cells.len() {
                    match word(&cells, i) {
                        Some(word) if !is_gap(reading, &word) => {
                            let told = |_| self.refuse(j, format!("the text {} is not UTF-8", excerpt(&word)));
                            fact.add_word(std::str::from_utf8(&word).map_err(told)?);
                        }
                        gap => fact.add_gap(gap.as_deref().unwrap_or(b"")),
                    }
                }
            }
            before += group.rows as u64;
        }
        Ok(Ok(facts))
    }
}

/// Whether a word stands for nothing: in a table that has gaps of its own only what somebody has said.
fn is_gap(reading: &Reading, word: &[u8]) -> bool {
    word.is_empty() || (reading.markers.is_some() && reading.is_gap(word))
}

/// What is said about a cell that is not what its column holds.
fn not_as_expected(reading: &Reading, cell: &[u8]) -> String {
    format!("expected {}, found {}", reading.expected(), excerpt(cell))
}

/// The number in a cell, or seconds; a NaN is a missing one, as pandas has it. Or a word that is none.
fn number<'a>(cells: &'a Cells, i: usize, reading: &Reading) -> Result<Option<f64>, &'a [u8]> {
    match cells {
        Cells::Numbers(values) => {
            let value = values.get(i).copied().filter(|v| !v.is_nan());
            let is_gap = |v: &f64| reading.markers.is_some() && reading.is_gap(v.to_string().as_bytes());
            Ok(value.filter(|v| !is_gap(v)))
        }
        Cells::Words(values) => match values.get(i).and_then(Option::as_deref) {
            None => Ok(None),
            Some(cell) if reading.is_gap(cell) => Ok(None),
            Some(cell) => reading.value(cell).filter(|v| v.is_finite()).map(Some).ok_or(cell),
        },
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
        let (kind, divisor, time) = kind(element);
        let kind = if nested { Err("lists and nested columns cannot be rows of numbers") } else { kind };
        leaves.push(Leaf { name, kind, optional: repetition == 1, divisor, time });
    }
    if leaves.is_empty() { None } else { Some(leaves) }
}

const A_TIME: &str =
    "a date or a time is stored in a way that nobody knows: write the column as timestamps or as numbers";
const A_DURATION: &str = "durations in a unit that nobody knows: write the column as numbers (of days, of seconds)";

/// The columns that pandas says hold durations, in what a file is said to be, and how many of their units are a second: the
/// format has numbers for them.
fn durations(said: &[Value]) -> Vec<(String, Option<f64>)> {
    let pandas = said.iter().filter_map(Value::fields).find(|said| said.text(1).as_deref() == Some("pandas"));
    let said: serde_json::Value = pandas.and_then(|said| serde_json::from_str(&said.text(2)?).ok()).unwrap_or_default();
    let of_columns = said["columns"].as_array().into_iter().flatten();
    let lasting = of_columns.filter(|column| column["numpy_type"].as_str().is_some_and(|t| t.starts_with("timedelta")));
    let unit = |kind: &str| match kind {
        "timedelta64[s]" => Some(1.0),
        "timedelta64[ms]" => Some(1e3),
        "timedelta64[us]" => Some(1e6),
        "timedelta64[ns]" => Some(1e9),
        _ => None,
    };
    let one = |column: &serde_json::Value| {
        let name = column["field_name"].as_str().or(column["name"].as_str())?;
        Some((name.to_owned(), column["numpy_type"].as_str().and_then(unit)))
    };
    lasting.filter_map(one).collect()
}

/// How the values of a column are stored, what they are divided by, and which kind of time they are then. A type has an older and
/// a newer name; files have either or both.
fn kind(element: &Fields) -> (std::result::Result<Physical, &'static str>, f64, Option<Time>) {
    use NumberType::*;
    let converted = element.int(6);
    let logical = element.fields(10);
    let is = |id: i16| logical.is_some_and(|logical| logical.get(id).is_some());
    let within = |id: i16| logical.and_then(|logical| logical.fields(id));
    let unsigned =
        matches!(converted, Some(11..=14)) || within(10).is_some_and(|whole| whole.get(2) == Some(&Value::Bool(false)));
    let decimal = converted == Some(5) || is(5);
    let scale = within(5).and_then(|decimal| decimal.int(1)).or(element.int(7)).unwrap_or(0);
    // Units of times and of moments: thousandths, millionths and billionths of a second.
    let unit = |id: i16| {
        within(id).and_then(|time| time.fields(2)).and_then(|unit| {
            [(1, 1e3), (2, 1e6), (3, 1e9)].into_iter().find_map(|(id, divisor)| unit.get(id).map(|_| divisor))
        })
    };
    let (time, per_second) = match (element.int(1), converted) {
        (Some(1), Some(6)) => (Some(Time::Day), Some(1.0)),
        (Some(1), _) if is(6) => (Some(Time::Day), Some(1.0)),
        (Some(1 | 2), _) if is(7) => (Some(Time::Clock), unit(7)),
        (Some(2), _) if is(8) => (Some(Time::Moment), unit(8)),
        (Some(1), Some(7)) => (Some(Time::Clock), Some(1e3)),
        (Some(2), Some(8)) => (Some(Time::Clock), Some(1e6)),
        (Some(2), Some(9)) => (Some(Time::Moment), Some(1e3)),
        (Some(2), Some(10)) => (Some(Time::Moment), Some(1e6)),
        (Some(3), _) => (Some(Time::Moment), Some(1.0)),
        (_, converted) if matches!(converted, Some(6..=10 | 21)) || is(6) || is(7) || is(8) => {
            (Some(Time::Moment), None)
        }
        _ => (None, Some(1.0)),
    };
    let divisor = if decimal { 10f64.powi(scale.clamp(0, 300) as i32) } else { per_second.unwrap_or(1.0) };
    let kind = match element.int(1) {
        _ if per_second.is_none() => Err(A_TIME),
        Some(0) => Ok(Physical::Boolean),
        Some(1) => Ok(Physical::Number(if unsigned { U32 } else { I32 })),
        Some(2) => Ok(Physical::Number(if unsigned { U64 } else { I64 })),
        // Whole numbers of 96 bits are times.
        Some(3) => Ok(Physical::Wide),
        Some(4) => Ok(Physical::Number(F32)),
        Some(5) => Ok(Physical::Number(F64)),
        Some(6) if decimal => Ok(Physical::Decimal(None)),
        Some(6) => Ok(Physical::Bytes),
        Some(7) if decimal => match element.size(2).filter(|width| *width > 0) {
            Some(width) => Ok(Physical::Decimal(Some(width))),
            None => Err("decimals without bytes cannot be read"),
        },
        Some(7) if is(15) && element.int(2) == Some(2) => Ok(Physical::Number(F16)),
        _ => Err("values of a fixed number of bytes are not supported"),
    };
    (kind, divisor, time)
}

fn group(fields: &Fields, columns: usize, len: u64) -> Option<Group> {
    // Columns of lists have other numbers of values; they are never read.
    let rows = fields.size(3).filter(|n| *n <= MOST_ROWS)?;
    let chunks = fields.list(1).iter().map(|c| chunk(c.fields()?, rows, len)).collect::<Option<Vec<_>>>()?;
    (chunks.len() == columns).then_some(Group { rows, chunks })
}

fn chunk(column: &Fields, values: usize, file: u64) -> Option<Chunk> {
    let refused = match column {
        _ if column.get(8).is_some() || column.get(9).is_some() => {
            Some("the column is encrypted, and keys are not supported; write it without encryption")
        }
        _ if column.get(1).is_some() => Some("the column is in another file, which is not read"),
        _ => None,
    };
    if refused.is_some() {
        return Some(Chunk { place: 0..0, codec: 0, values, refused });
    }
    let fields = column.fields(3)?;
    let first = u64::try_from(fields.int(9)?).ok()?;
    let dictionary = fields.int(11).and_then(|v| u64::try_from(v).ok()).filter(|v| *v > 0);
    let start = dictionary.map_or(first, |d| d.min(first));
    let len = u64::try_from(fields.int(7)?).ok()?;
    let place = start..start.checked_add(len).filter(|end| *end <= file)?;
    Some(Chunk { place, codec: fields.int(4)?, values, refused })
}

#[cfg(test)]
mod tests {
    use super::Value::{self, Bool, I32, I64, List};
    use super::*;
    use crate::read::Data;
    use bochner::rows::RowSource;

    /// A file of one column of two values: what its schema, its column and its metadata say beside the rest.
    #[derive(Default)]
    struct Written {
        kind: i32,
        width: Option<i32>,
        converted: Option<i32>,
        scale: Option<i32>,
        logical: Option<Value>,
        column: Option<(i16, Value)>,
        codec: i32,
        said: Option<Value>,
        /// As stored, and its length when it is not compressed.
        page: (Vec<u8>, usize),
    }

    impl Written {
        fn bytes(self) -> Vec<u8> {
            let head = Value::structure([(1, I32(2)), (2, I32(0)), (3, I32(3)), (4, I32(3))]);
            let (stored, full) = (I32(self.page.0.len() as i32), I32(self.page.1 as i32));
            let mut out = MAGIC.to_vec();
            Value::structure([(1, I32(0)), (2, full), (3, stored), (5, head)]).write(&mut out);
            out.extend(self.page.0);
            let len = I64(out.len() as i64 - 4);
            let root = Value::structure([(4, Value::text("table")), (5, I32(1))]);
            let fields = [(1, I32(self.kind))].into_iter().chain(self.width.map(|width| (2, I32(width))));
            let fields = fields.chain([(3, I32(0)), (4, Value::text("when"))]);
            let fields = fields.chain(self.converted.map(|name| (6, I32(name)))).chain(self.scale.map(|s| (7, I32(s))));
            let element = Value::structure(fields.chain(self.logical.map(|logical| (10, logical))));
            let metadata = Value::structure([
                (1, I32(self.kind)),
                (2, List(vec![I32(0)])),
                (3, List(vec![Value::text("when")])),
                (4, I32(self.codec)),
                (5, I64(2)),
                (6, len.clone()),
                (7, len.clone()),
                (9, I64(4)),
            ]);
            let (before, after): (Vec<_>, Vec<_>) = self.column.into_iter().partition(|(id, _)| *id < 2);
            let column = Value::structure(before.into_iter().chain([(2, I64(4)), (3, metadata)]).chain(after));
            let group = Value::structure([(1, List(vec![column])), (2, len), (3, I64(2))]);
            let file = [(1, I32(1)), (2, List(vec![root, element])), (3, I64(2)), (4, List(vec![group]))];
            let start = out.len();
            Value::structure(file.into_iter().chain(self.said.map(|said| (5, List(vec![said]))))).write(&mut out);
            let len = (out.len() - start) as u32;
            out.extend(len.to_le_bytes());
            out.extend(MAGIC);
            out
        }
    }

    fn read(bytes: Vec<u8>) -> Result<Vec<f64>> {
        let data = Data::open(Input::from_bytes("t", bytes), None, &Selection::default(), &Options::default())?;
        let mut all = Vec::new();
        data.rows::<f64>().for_each_block(&mut |block| {
            all.extend(block.rows.iter().copied());
            Ok(())
        })?;
        Ok(all)
    }

    fn refusal(written: Written) -> String {
        read(written.bytes()).unwrap_err().to_string()
    }

    fn longs(values: [i64; 2]) -> (Vec<u8>, usize) {
        (values.iter().flat_map(|v| v.to_le_bytes()).collect(), 16)
    }

    fn ints(values: [i32; 2]) -> (Vec<u8>, usize) {
        (values.iter().flat_map(|v| v.to_le_bytes()).collect(), 8)
    }

    #[test]
    fn dates_and_times_are_known_by_either_name_and_become_their_parts() {
        let unit = |id: i16| Value::structure([(id, Value::structure([]))]);
        let time = |id| Value::structure([(1, Bool(true)), (2, unit(id))]);
        let logical = |id, inner| Some(Value::structure([(id, inner)]));
        // 2020-06-15 and a week later, at 06:00: 18,428 and 18,435 days after the first of 1970.
        let (first, second) = (18428 * 86400 + 21600, 18435 * 86400 + 21600);
        let moments = |factor: i64| longs([first * factor, second * factor]);
        let days = || ints([18428, 18435]);
        let wide = |day: i32| {
            [(21600 * 1_000_000_000i64).to_le_bytes().to_vec(), (day + 2_440_588).to_le_bytes().to_vec()].concat()
        };
        for (written, hours) in [
            (Written { kind: 1, converted: Some(6), page: days(), ..Written::default() }, 0.0),
            (Written { kind: 1, logical: logical(6, Value::structure([])), page: days(), ..Written::default() }, 0.0),
            (Written { kind: 2, converted: Some(9), page: moments(1000), ..Written::default() }, 6.0),
            (Written { kind: 2, converted: Some(10), page: moments(1_000_000), ..Written::default() }, 6.0),
            (Written { kind: 2, logical: logical(8, time(1)), page: moments(1000), ..Written::default() }, 6.0),
            (Written { kind: 2, logical: logical(8, time(2)), page: moments(1_000_000), ..Written::default() }, 6.0),
            (
                Written { kind: 2, logical: logical(8, time(3)), page: moments(1_000_000_000), ..Written::default() },
                6.0,
            ),
            (Written { kind: 3, page: ([wide(18428), wide(18435)].concat(), 24), ..Written::default() }, 6.0),
        ] {
            let data =
                Data::open(Input::from_bytes("t", written.bytes()), None, &Selection::default(), &Options::default())
                    .unwrap();
            // A week later it is the same day of the week, and the hour is the same.
            assert_eq!(data.schema().input_names(), ["when:days", "when:yearday_sin", "when:yearday_cos"]);
            let mut rows = Vec::new();
            let read = data.rows::<f64>().for_each_block(&mut |block| {
                rows.extend(block.rows.column(0).to_vec());
                Ok(())
            });
            read.unwrap();
            assert_eq!(rows, [18428.0 + hours / 24.0, 18435.0 + hours / 24.0]);
            assert!(data.remarks()[0].starts_with("t: when: dates"), "{:?}", data.remarks());
        }
        let clock = Written { kind: 1, converted: Some(7), page: ints([21_600_000, 25_200_000]), ..Written::default() };
        assert_eq!(read(clock.bytes()).unwrap()[..1], [6.0]);
        let clock = Written {
            kind: 2,
            logical: logical(7, time(3)),
            page: longs([0, 3_600_000_000_000]),
            ..Written::default()
        };
        let clock = read(clock.bytes()).unwrap();
        assert_eq!((clock[0], clock[3]), (0.0, 1.0));
        // Units of later versions, and types that do not go with what is said about them.
        let strange = Written { kind: 2, logical: logical(8, time(9)), page: longs([1, 2]), ..Written::default() };
        assert!(refusal(strange).contains("stored in a way that nobody knows"));
        assert!(
            refusal(Written { kind: 5, converted: Some(9), page: longs([1, 2]), ..Written::default() })
                .contains("nobody knows")
        );
        // Durations are numbers to the format; pandas says what they are.
        let pandas = |unit: &str| {
            let said = format!(
                r#"{{"columns": [{{"name": "when", "field_name": "when", "numpy_type": "timedelta64[{unit}]"}}]}}"#
            );
            Value::structure([(1, Value::text("pandas")), (2, Value::text(&said))])
        };
        let lasting =
            |unit| Written { kind: 2, page: longs([1500, 2000]), said: Some(pandas(unit)), ..Written::default() };
        assert_eq!(read(lasting("ms").bytes()).unwrap(), [1.5, 2.0]);
        assert!(refusal(lasting("fortnights")).contains("durations in a unit that nobody knows"));
    }

    #[test]
    fn decimals_are_read_however_they_are_stored() {
        let fixed = (vec![0xff, 0xfe, 0, 250], 4);
        let words =
            ([2u32.to_le_bytes().to_vec(), vec![0xff, 0xfe], 1u32.to_le_bytes().to_vec(), vec![250]].concat(), 11);
        let decimal = || Some(Value::structure([(5, Value::structure([(1, I32(1)), (2, I32(9))]))]));
        for (kind, width, page, expected) in [
            (1, None, ([(-2i32).to_le_bytes(), 250i32.to_le_bytes()].concat(), 8), [-0.2, 25.0]),
            (2, None, longs([-2, 250]), [-0.2, 25.0]),
            (7, Some(2), fixed, [-0.2, 25.0]),
            // A single byte 250 is negative.
            (6, None, words, [-0.2, -0.6]),
        ] {
            let old =
                Written { kind, width, page: page.clone(), converted: Some(5), scale: Some(1), ..Written::default() };
            let new = Written { kind, width, page, logical: decimal(), ..Written::default() };
            for written in [old, new] {
                assert_eq!(read(written.bytes()).unwrap(), expected, "type {kind}");
            }
        }
    }

    #[test]
    fn numbers_without_a_sign_are_known_by_either_name() {
        let unsigned = Value::structure([(10, Value::structure([(1, I32(64)), (2, Bool(false))]))]);
        let signed = Value::structure([(10, Value::structure([(1, I32(64)), (2, Bool(true))]))]);
        let big = 2f64.powi(64);
        for (converted, logical, expected) in
            [(Some(14), None, big), (None, Some(unsigned), big), (None, Some(signed), -1.0), (None, None, -1.0)]
        {
            let written = Written { kind: 2, converted, logical, page: longs([-1, 5]), ..Written::default() };
            assert_eq!(read(written.bytes()).unwrap(), [expected, 5.0]);
        }
    }

    #[test]
    fn encrypted_files_are_called_encrypted_and_not_damaged() {
        let crypto = || Some((8, Value::structure([(1, Value::structure([]))])));
        let told = refusal(Written { kind: 2, page: longs([1, 2]), column: crypto(), ..Written::default() });
        assert!(told.starts_with("t: column 1 (when): the column is encrypted"), "{told}");
        let elsewhere = Some((1, Value::text("other.parquet")));
        let told = refusal(Written { kind: 2, page: longs([1, 2]), column: elsewhere, ..Written::default() });
        assert!(told.contains("in another file"), "{told}");
        for start in [MAGIC, ENCRYPTED] {
            let told = read([start, &[0; 40], ENCRYPTED].concat()).unwrap_err().to_string();
            assert!(told.starts_with("t: the Parquet file is encrypted") && !told.contains("damaged"), "{told}");
        }
    }

    #[test]
    fn pages_are_unpacked_that_brotli_has_packed() {
        // RFC 7932: a window of 16 bits, one block of bytes as they are, and an empty last one.
        let (plain, len) = longs([7, -9]);
        let head = (len as u32 - 1) << 4 | 1 << 20;
        let packed = [&head.to_le_bytes()[..3], &plain, &[3]].concat();
        let written = |page| Written { kind: 2, codec: 4, page, ..Written::default() };
        assert_eq!(read(written((packed.clone(), len)).bytes()).unwrap(), [7.0, -9.0]);
        for damaged in [packed[..packed.len() - 5].to_vec(), vec![0xff; 9]] {
            assert!(refusal(written((damaged, len))).contains("a Brotli page is damaged"));
        }
        assert!(read(written((packed, len - 8)).bytes()).is_err());
    }
}
