//! LIBSVM: `label index:value index:value …`, one row per line, numbers that are 0 left out.

use super::Result;
use super::chunks::parse_in_order;
use super::fault::{Fault, excerpt};
use super::input::Input;
use super::schema::{Column, Kind, Schema};
use super::{Element, Visit};
use bochner::rows::RowBlock;
use ndarray::ArrayView2;

/// Rows longer than this are not made dense.
const MOST_COLUMNS: u64 = 1 << 24;

#[derive(Debug)]
pub(super) struct Libsvm {
    input: Input,
    /// Index of the first column: 1, or 0 where an index 0 occurs.
    base: u64,
    columns: usize,
    pub(super) schema: Schema,
    rows: usize,
}

/// Whether a line is `label index:value …`.
pub(super) fn looks_like(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let label = words.next().is_some_and(|w| fast_float2::parse::<f64, _>(w).is_ok());
    let mut pairs = 0;
    label
        && words.take_while(|w| !w.starts_with(b"#")).all(|w| {
            pairs += 1;
            split_pair(w).is_some()
        })
        && pairs > 0
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

impl Libsvm {
    /// Walks over the file once to find the number of columns, unless `columns` is known.
    pub(super) fn open(input: Input, columns: Option<usize>) -> Result<Self> {
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
            let outcome = each_row(bytes, &mut each);
            match outcome {
                Ok(lines) => range.lines = lines,
                Err(fault) => range.fault = Some(fault),
            }
        };
        parse_in_order(&input, 0, false, parse, |range| {
            if let Some((at, message)) = range.fault.take() {
                return Err(fault(&input, line + at, message));
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
        let found = highest.map_or(0, |h| h + 1 - base);
        if found > MOST_COLUMNS {
            return Err(
                input.fault(format!("the index {} makes rows of {found} numbers, which is too long", found + base - 1))
            );
        }
        let columns = columns.unwrap_or(found as usize);
        if columns == 0 {
            return Err(input.fault("there are no columns"));
        }
        if found as usize > columns {
            return Err(input.fault(format!("there are {found} columns, but {columns} are expected")));
        }
        let number = |name: String| Column { name, kind: Kind::Number { fill: None } };
        let inputs = (0..columns as u64).map(|j| number((base + j).to_string())).collect();
        let schema = Schema { inputs, targets: vec![number("label".into())] };
        Ok(Libsvm { input, base, columns, schema, rows })
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    pub(super) fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        let d = self.columns;
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
                    let place = (index - self.base.min(index)) as usize;
                    *inputs
                        .get_mut(start + place)
                        .filter(|_| place < d)
                        .ok_or("the file has changed while being read")? = R::from_f64(value);
                }
                labels.push(R::from_f64(label));
                Ok(())
            };
            match each_row(bytes, &mut each) {
                Ok(lines) => parsed.lines = lines,
                Err(fault) => parsed.fault = Some(fault),
            }
        };
        let mut line = 0;
        parse_in_order(&self.input, 0, false, parse, |parsed| {
            if let Some((at, message)) = parsed.fault.take() {
                return Err(fault(&self.input, line + at, message));
            }
            line += parsed.lines;
            let n = parsed.labels.len();
            if n == 0 {
                return Ok(());
            }
            visit(RowBlock {
                rows: ArrayView2::from_shape((n, d), &parsed.inputs).expect("n times d numbers"),
                targets: ArrayView2::from_shape((n, 1), &parsed.labels).expect("n numbers"),
                weights: None,
            })
        })
    }
}

fn fault(input: &Input, line: u64, message: String) -> bochner::Error {
    Fault { line: Some(line), ..Fault::new(&input.name, message) }.into()
}

type Pair = Result<(u64, f64), String>;

/// Calls `each` with line number, label and pairs of every row; gives the number of lines.
fn each_row(
    bytes: &[u8],
    each: &mut dyn FnMut(u64, f64, &mut dyn Iterator<Item = Pair>) -> Result<(), String>,
) -> Result<u64, (u64, String)> {
    let mut lines = 0;
    for line in bytes.split_inclusive(|&c| c == b'\n') {
        lines += 1;
        let line = memchr::memchr(b'#', line).map_or(line, |at| &line[..at]);
        let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let Some(first) = words.next() else { continue };
        let label = fast_float2::parse::<f64, _>(first).ok().filter(|l| l.is_finite());
        let label = label.ok_or_else(|| (lines, format!("expected a label, found {}", excerpt(first))))?;
        let mut pairs = words.map(|word| match split_pair(word) {
            Some((_, value)) if !value.is_finite() => Err(format!("{} is not finite", excerpt(word))),
            Some(pair) => Ok(pair),
            None => Err(format!("expected index:value, found {}", excerpt(word))),
        });
        each(lines, label, &mut pairs).map_err(|message| (lines, message))?;
    }
    Ok(lines)
}
