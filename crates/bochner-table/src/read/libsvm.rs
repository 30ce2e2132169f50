//! LIBSVM: `label index:value index:value …`, one row per line, numbers that are 0 left out.

use super::Result;
use super::chunks::{Quotes, parse_in_order};
use super::columns::empty;
use super::fault::{Fault, excerpt};
use super::gaps::Gaps;
use super::input::Input;
use super::schema::{Column, Kind, Largest, Missing, Schema, Selection};
use super::{Element, MOST_COLUMNS, Options, Visit};
use std::collections::HashMap;

/// Chunks are as long as they may be: short rows become long ones here, of all the columns that there are.
const ROW_BYTES: usize = usize::MAX;

#[derive(Debug)]
pub(super) struct Libsvm {
    input: Input,
    /// Where the value of an index goes.
    places: Places,
    gaps: Gaps,
    largest: Option<Largest>,
    pub(super) schema: Schema,
    rows: usize,
}

/// Indices and the columns they make.
#[derive(Debug)]
enum Places {
    /// All of them, from this one on.
    From(u64),
    /// Some, by index; others are not wanted.
    Some(HashMap<u64, usize>),
}

/// Whether a line is `label index:value …`; or has several labels or a query before its pairs, which is then said.
pub(super) fn looks_like(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let label = words.next().is_some_and(|w| fast_float2::parse::<f64, _>(w).is_ok() || are_labels(w));
    let mut pairs = 0;
    label
        && words.take_while(|w| !w.starts_with(b"#")).all(|w| {
            pairs += 1;
            split_pair(w).is_some() || is_query(w)
        })
        && pairs > 0
}

/// Whether a word is several labels of a row: `1,2`.
fn are_labels(word: &[u8]) -> bool {
    let is_whole = |label: &[u8]| std::str::from_utf8(label).is_ok_and(|label| label.parse::<i64>().is_ok());
    word.contains(&b',') && word.split(|&c| c == b',').all(is_whole)
}

/// Whether a word says to which query of a ranking its row belongs: `qid:7`.
fn is_query(word: &[u8]) -> bool {
    word.strip_prefix(b"qid:").is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

fn split_pair(word: &[u8]) -> Option<(u64, f64)> {
    let colon = memchr::memchr(b':', word)?;
    let index = std::str::from_utf8(&word[..colon]).ok()?.parse().ok()?;
    Some((index, fast_float2::parse(&word[colon + 1..]).ok()?))
}

#[derive(Default)]
struct Range {
    lowest: Option<u64>,
    highest: Option<u64>,
    rows: usize,
    lines: u64,
    fault: Option<(u64, String)>,
}

struct Parsed<R> {
    inputs: Vec<R>,
    labels: Vec<R>,
    lines: u64,
    fault: Option<(u64, String)>,
}

impl<R> Default for Parsed<R> {
    fn default() -> Self {
        Parsed { inputs: Vec::new(), labels: Vec::new(), lines: 0, fault: None }
    }
}

/// What a first walk over a file finds.
struct Extent {
    /// Index of the first column: 1, or 0 where an index 0 occurs.
    base: u64,
    columns: usize,
    rows: usize,
}

fn number(name: String, fill: Option<f64>) -> Column {
    Column { name, kind: Kind::Number { fill } }
}

impl Libsvm {
    /// Walks over the file once to find its columns, and again if gaps are filled in with what their columns hold.
    pub(super) fn open(input: Input, selection: &Selection, options: &Options) -> Result<Self> {
        let missing = options.missing;
        let gaps = Gaps { missing, advice: options.advice, ..Gaps::none() };
        let extent = walk(&input, &gaps)?;
        if extent.columns == 0 {
            return Err(input.fault("there are no columns"));
        }
        let names: Vec<String> = (0..extent.columns as u64).map(|j| (extent.base + j).to_string()).collect();
        if selection.targets.iter().any(|target| target != LABEL) {
            return Err(input.fault(format!("the target of a LIBSVM file is its first number, called {LABEL}")));
        }
        let selection = Selection { targets: Vec::new(), ..selection.clone() };
        let chosen = selection.resolve(&input.name, &names)?;
        let places = match chosen.inputs.iter().copied().eq(0..extent.columns) {
            true => Places::From(extent.base),
            false => {
                let place = |(at, j): (usize, &usize)| (extent.base + *j as u64, at);
                Places::Some(chosen.inputs.iter().enumerate().map(place).collect())
            }
        };
        let inputs: Vec<Column> = chosen.inputs.iter().map(|j| number(names[*j].clone(), None)).collect();
        let schema = Schema { inputs, targets: vec![number(LABEL.into(), None)] };
        let mut file = Libsvm { input, places, gaps, largest: options.largest, schema, rows: extent.rows };
        if missing != Missing::Refuse {
            let d = file.schema.inputs.len();
            let rows = |visit: &mut dyn FnMut(&[f64])| {
                file.read_blocks::<f64>(&mut |inputs, _| {
                    visit(inputs);
                    Ok(())
                })
            };
            let learned = Gaps::learn(missing, d, rows, |j| {
                let name = &file.schema.inputs[j].name;
                file.input.fault(format!("column {name}: {}", empty(false, name)))
            })?;
            file.gaps = Gaps { advice: options.advice, ..learned };
            for (j, column) in file.schema.inputs.iter_mut().enumerate() {
                column.kind = Kind::Number { fill: file.gaps.fill(j) };
            }
        }
        Ok(file)
    }

    /// The columns of a schema, found by their indices; columns of an array, called 1, 2, …, are found as well.
    pub(super) fn open_with(input: Input, schema: &Schema, options: &Options) -> Result<Self> {
        let gaps = Gaps { advice: options.advice, ..Gaps::known(options.missing, &schema.inputs) };
        let extent = walk(&input, &gaps)?;
        let indices: Option<Vec<u64>> = schema.inputs.iter().map(|c| c.name.parse().ok()).collect();
        let places = match &indices {
            Some(indices) => Places::Some(indices.iter().enumerate().map(|(at, index)| (*index, at)).collect()),
            None => Places::From(extent.base),
        };
        let (found, expected) = (extent.columns, schema.input_dim());
        if indices.is_none() && found > expected {
            return Err(input.fault(format!("there are {found} columns, but {expected} are expected")));
        }
        // Columns that did not occur in training are ignored; those of a file that counts otherwise would all be wrong.
        if indices.is_some_and(|indices| extent.base == 0 && found > 0 && !indices.contains(&0)) {
            return Err(input.fault("there is a column 0, which the model does not know: it counts from 1"));
        }
        let schema = Schema { inputs: schema.inputs.clone(), targets: vec![number(LABEL.into(), None)] };
        Ok(Libsvm { input, places, gaps, largest: options.largest, schema, rows: extent.rows })
    }

    /// Number of rows, where none is left out.
    pub(super) fn len(&self) -> Option<usize> {
        (self.gaps.missing != Missing::Drop).then_some(self.rows)
    }

    /// Delivers all rows in blocks.
    pub(super) fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        let shape = (self.schema.inputs.len(), 1);
        let mut any = false;
        self.read_blocks(&mut |inputs: &[R], labels: &[R]| {
            // Labels are never missing: the parser refuses rows without one.
            any |= self.gaps.deliver(shape, (inputs, labels), |_| self.input.fault("a label is missing"), visit)?;
            Ok(())
        })?;
        if any { Ok(()) } else { Err(self.input.fault("there are no rows")) }
    }

    /// Delivers inputs and labels of all rows in blocks, gaps as they are.
    fn read_blocks<R: Element>(&self, visit: &mut dyn FnMut(&[R], &[R]) -> Result<()>) -> Result<()> {
        let d = self.schema.inputs.len();
        let parse = |bytes: &[u8], parsed: &mut Parsed<R>| {
            parsed.inputs.clear();
            parsed.labels.clear();
            parsed.fault = None;
            let (inputs, labels) = (&mut parsed.inputs, &mut parsed.labels);
            let mut each = |_: u64, label: f64, pairs: &mut dyn Iterator<Item = Pair>| -> Result<(), String> {
                let start = inputs.len();
                inputs.resize(start + d, R::ZERO);
                let mut seen = None;
                for pair in pairs {
                    let (index, value) = pair?;
                    if seen.is_some_and(|s| index <= s) {
                        return Err(format!("the index {index} comes twice or out of order"));
                    }
                    seen = Some(index);
                    let place = match &self.places {
                        Places::From(base) => (index - base.min(&index)) as usize,
                        Places::Some(places) => match places.get(&index) {
                            Some(place) => *place,
                            None => continue,
                        },
                    };
                    *inputs
                        .get_mut(start + place)
                        .filter(|_| place < d)
                        .ok_or("the file has changed while being read")? = narrowed(value, self.largest)?;
                }
                labels.push(narrowed(label, self.largest)?);
                Ok(())
            };
            match each_row(bytes, &self.gaps, &mut each) {
                Ok(lines) => parsed.lines = lines,
                Err(fault) => parsed.fault = Some(fault),
            }
        };
        let mut line = 0;
        parse_in_order(&self.input, 0, Quotes::Nowhere, ROW_BYTES, parse, |parsed| {
            if let Some((at, message)) = parsed.fault.take() {
                return Err(fault(&self.input, line + at, message));
            }
            line += parsed.lines;
            if parsed.labels.is_empty() { Ok(()) } else { visit(&parsed.inputs, &parsed.labels) }
        })
    }
}

/// A number in the precision asked for; NaN stays.
fn narrowed<R: Element>(value: f64, largest: Option<Largest>) -> Result<R, String> {
    if let Some(largest) = largest.filter(|largest| value.abs() > largest.value) {
        return Err(format!("the number {value:e} is {}", largest.told));
    }
    let number = R::from_f64(value);
    if number.is_infinite() { Err(format!("the number {value:e} is too large for {}", R::NAME)) } else { Ok(number) }
}

/// The name of the target.
const LABEL: &str = "label";

/// Walks over a file to find its columns and rows.
fn walk(input: &Input, gaps: &Gaps) -> Result<Extent> {
    let (mut lowest, mut highest, mut rows, mut line) = (None, None, 0, 0);
    let parse = |bytes: &[u8], range: &mut Range| {
        *range = Range::default();
        let mut each = |_: u64, _: f64, pairs: &mut dyn Iterator<Item = Pair>| -> Result<(), String> {
            for pair in pairs {
                let (index, _) = pair?;
                range.lowest = Some(range.lowest.map_or(index, |l| l.min(index)));
                range.highest = Some(range.highest.map_or(index, |h| h.max(index)));
            }
            range.rows += 1;
            Ok(())
        };
        let outcome = each_row(bytes, gaps, &mut each);
        match outcome {
            Ok(lines) => range.lines = lines,
            Err(fault) => range.fault = Some(fault),
        }
    };
    parse_in_order(input, 0, Quotes::Nowhere, ROW_BYTES, parse, |range| {
        if let Some((at, message)) = range.fault.take() {
            return Err(fault(input, line + at, message));
        }
        line += range.lines;
        rows += range.rows;
        lowest = lowest.min(range.lowest).or(range.lowest).or(lowest);
        highest = highest.max(range.highest);
        Ok(())
    })?;
    if rows == 0 {
        return Err(input.fault("there are no rows"));
    }
    let base = if lowest == Some(0) { 0 } else { 1 };
    let found = highest.map_or(0, |h| (h - base).saturating_add(1));
    if found > MOST_COLUMNS {
        let index = highest.unwrap_or(0);
        return Err(input.fault(format!("the index {index} makes rows of {found} numbers, which is too long")));
    }
    Ok(Extent { base, columns: found as usize, rows })
}

fn fault(input: &Input, line: u64, message: String) -> bochner::Error {
    Fault { line: Some(line), ..Fault::new(&input.name, message) }.into()
}

type Pair = Result<(u64, f64), String>;

/// Calls `each` with line number, label and pairs of every row, NaN among them if `gaps` are allowed; gives the number of
/// lines.
fn each_row(
    bytes: &[u8],
    gaps: &Gaps,
    each: &mut dyn FnMut(u64, f64, &mut dyn Iterator<Item = Pair>) -> Result<(), String>,
) -> Result<u64, (u64, String)> {
    let mut lines = 0;
    for line in bytes.split_inclusive(|&c| c == b'\n') {
        lines += 1;
        let line = memchr::memchr(b'#', line).map_or(line, |at| &line[..at]);
        let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let Some(first) = words.next() else { continue };
        let label = fast_float2::parse::<f64, _>(first).ok().filter(|l| l.is_finite());
        let label = label.ok_or_else(|| {
            let found = format!("expected a label, found {}", excerpt(first));
            (
                lines,
                if are_labels(first) { format!("{found}: rows of several labels are not supported") } else { found },
            )
        })?;
        let mut pairs = words.map(|word| match split_pair(word) {
            Some((_, value)) if value.is_nan() && !gaps.allowed() => {
                Err(format!("{} is not a number: {}", excerpt(word), gaps.absent(false)))
            }
            Some((_, value)) if value.is_infinite() => Err(format!("{} is not finite", excerpt(word))),
            Some(pair) => Ok(pair),
            None if is_query(word) => Err(format!(
                "expected index:value, found {}: queries, as rankings have them, are not supported",
                excerpt(word)
            )),
            None => Err(format!("expected index:value, found {}", excerpt(word))),
        });
        each(lines, label, &mut pairs).map_err(|message| (lines, message))?;
    }
    Ok(lines)
}
