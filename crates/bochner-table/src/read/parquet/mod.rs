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
    ..Format::table::<Parquet>("Parquet", |start, _| start.starts_with(MAGIC) || start.starts_with(ENCRYPTED))
};

pub(crate) const MAGIC: &[u8] = b"PAR1";
/// How files begin and end whose metadata are encrypted.
const ENCRYPTED: &[u8] = b"PARE";
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
        for name in durations(metadata.list(5)) {
            leaves.iter_mut().filter(|leaf| leaf.name == name).for_each(|leaf| leaf.kind = Err(A_DURATION));
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

const A_TIME: &str = "dates and times are not taken for numbers: write the column as numbers (of days, of seconds), or its \
                      parts in columns of their own";
const A_DURATION: &str = "durations are not taken for numbers: write the column as numbers (of days, of seconds)";

/// The columns that pandas says hold durations, in what a file is said to be: the format has numbers for them.
fn durations(said: &[Value]) -> Vec<String> {
    let pandas = said.iter().filter_map(Value::fields).find(|said| said.text(1).as_deref() == Some("pandas"));
    let said: serde_json::Value = pandas.and_then(|said| serde_json::from_str(&said.text(2)?).ok()).unwrap_or_default();
    let of_columns = said["columns"].as_array().into_iter().flatten();
    let lasting = of_columns.filter(|column| column["numpy_type"].as_str().is_some_and(|t| t.starts_with("timedelta")));
    lasting.filter_map(|column| column["field_name"].as_str().or(column["name"].as_str()).map(str::to_owned)).collect()
}

/// How the values of a column are stored, and what they are divided by. A type has an older and a newer name; files have
/// either or both.
fn kind(element: &Fields) -> (std::result::Result<Physical, &'static str>, f64) {
    use NumberType::*;
    let converted = element.int(6);
    let logical = element.fields(10);
    let is = |id: i16| logical.is_some_and(|logical| logical.get(id).is_some());
    let within = |id: i16| logical.and_then(|logical| logical.fields(id));
    let unsigned =
        matches!(converted, Some(11..=14)) || within(10).is_some_and(|whole| whole.get(2) == Some(&Value::Bool(false)));
    let decimal = converted == Some(5) || is(5);
    let scale = within(5).and_then(|decimal| decimal.int(1)).or(element.int(7)).unwrap_or(0);
    let divisor = if decimal { 10f64.powi(scale.clamp(0, 300) as i32) } else { 1.0 };
    let kind = match element.int(1) {
        _ if matches!(converted, Some(6..=10 | 21)) || is(6) || is(7) || is(8) => Err(A_TIME),
        Some(0) => Ok(Physical::Boolean),
        Some(1) => Ok(Physical::Number(if unsigned { U32 } else { I32 })),
        Some(2) => Ok(Physical::Number(if unsigned { U64 } else { I64 })),
        // Whole numbers of 96 bits are times.
        Some(3) => Err(A_TIME),
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
    (kind, divisor)
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

    #[test]
    fn dates_and_times_are_not_taken_for_numbers_whatever_their_name() {
        let unit = || Value::structure([(2, Value::structure([]))]);
        let time = || Value::structure([(1, Bool(true)), (2, unit())]);
        let logical = |id, inner| Some(Value::structure([(id, inner)]));
        let old = (6..=10).map(|converted| Written { converted: Some(converted), ..Written::default() });
        let new = [(6, Value::structure([])), (7, time()), (8, time())];
        let new = new.into_iter().map(|(id, inner)| Written { logical: logical(id, inner), ..Written::default() });
        for written in old.chain(new) {
            let told = refusal(Written { kind: 2, page: longs([1, 2]), ..written });
            assert!(told.starts_with("t: column 1 (when): dates and times are not taken for numbers: "), "{told}");
            assert!(told.ends_with("; --drop when leaves the column out"), "{told}");
        }
        let wide = refusal(Written { kind: 3, page: (vec![0; 24], 24), ..Written::default() });
        assert!(wide.contains("dates and times"), "{wide}");
        // Durations are numbers to the format; pandas says what they are.
        let pandas = r#"{"columns": [{"name": "when", "field_name": "when", "numpy_type": "timedelta64[ns]"}]}"#;
        let said = Value::structure([(1, Value::text("pandas")), (2, Value::text(pandas))]);
        let lasting = refusal(Written { kind: 2, page: longs([1, 2]), said: Some(said), ..Written::default() });
        assert!(lasting.contains("durations are not taken for numbers"), "{lasting}");
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
