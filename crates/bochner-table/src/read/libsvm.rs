//! LIBSVM: `label index:value index:value …`, one row per line, numbers that are 0 left out.

use super::chunks::{Lines, Quotes};
use super::columns::{Trouble, narrowed};
use super::fault::{Fault, excerpt, short};
use super::gaps::{Dense, Gaps};
use super::input::Input;
use super::schema::{Column, Largest, Missing, Schema, Selection};
use super::{About, Element, Format, MOST_COLUMNS, Openable, Options, Result, Table, Visit};
use std::collections::HashMap;

pub(super) const FORMAT: Format =
    Format { text: true, ..Format::table::<Libsvm>("LIBSVM", |_, first_row| looks_like(first_row)) };

/// Chunks are as long as they may be: short rows become long ones here, of all the columns that there are.
const ROW_BYTES: usize = usize::MAX;

#[derive(Debug)]
struct Libsvm {
    input: Input,
    /// Where the value of an index goes.
    places: Places,
    gaps: Gaps,
    largest: Option<Largest>,
    schema: Schema,
    rows: usize,
    /// From where columns are counted, if somebody should hear of it.
    remark: Option<String>,
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
fn looks_like(line: &[u8]) -> bool {
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

/// What a first walk over a file finds.
struct Extent {
    /// Index of the first column: 1, or 0 where an index 0 occurs in any line.
    base: u64,
    /// The first such line.
    zero: Option<u64>,
    columns: usize,
    rows: usize,
}

impl Libsvm {
    fn new(input: Input, places: Places, gaps: Gaps, inputs: Vec<Column>, rows: usize, options: &Options) -> Self {
        let schema = Schema { inputs, targets: vec![Column::number(LABEL)] };
        Libsvm { input, places, gaps, largest: options.largest, schema, rows, remark: None }
    }
}

impl Dense for Libsvm {
    const COUNTED: &str = "";

    fn read_blocks<R: Element>(&self, visit: &mut dyn FnMut(usize, &[R], &[R]) -> Result<()>) -> Result<()> {
        let d = self.schema.inputs.len();
        let parse = |bytes: &[u8], (inputs, labels): &mut (Vec<R>, Vec<R>)| {
            inputs.clear();
            labels.clear();
            each_row(bytes, &self.gaps, |_, label, pairs| {
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
                    let cell = inputs[start..].get_mut(place).ok_or("the file has changed while being read")?;
                    *cell = narrowed(value, self.largest)?;
                }
                labels.push(narrowed(label, self.largest)?);
                Ok(())
            })
        };
        let mut start = 0;
        each_chunk(&self.input, parse, |(inputs, labels), _| {
            visit(start, inputs, labels)?;
            start += labels.len();
            Ok(())
        })
    }

    fn parts(&self) -> (&Input, &Schema, &Gaps) {
        (&self.input, &self.schema, &self.gaps)
    }
}

impl Openable for Libsvm {
    /// Walks over the file once to find its columns, and again if gaps are filled in with what their columns hold.
    fn open(input: Input, selection: &Selection, options: &Options) -> Result<Self> {
        let gaps = Gaps::new(options.missing, options);
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
        let inputs = chosen.inputs.iter().map(|j| Column::number(&names[*j])).collect();
        let mut file = Libsvm::new(input, places, gaps, inputs, extent.rows, options);
        let counted = |line| format!("line {line} has an index 0: columns are counted from 0");
        file.remark = extent.zero.map(|line| format!("{}: {}", file.input.name, counted(line)));
        if options.missing != Missing::Refuse {
            let (gaps, told) = file.learned_gaps()?;
            file.gaps = gaps;
            file.remark =
                [file.remark.take(), told].into_iter().flatten().reduce(|first, second| format!("{first}\n{second}"));
            file.schema.fill(|j| file.gaps.fills[j]);
        }
        Ok(file)
    }

    /// The columns of a schema, found by their indices; columns of an array, called 1, 2, …, are found as well.
    fn open_with(input: Input, schema: Schema, options: &Options) -> Result<Self> {
        let gaps = Gaps::known(&schema.inputs, options);
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
            let message = "there is an index 0, which the model does not know: it counts from 1";
            return Err(Fault { line: extent.zero, ..Fault::new(&input.name, message) }.into());
        }
        let mut file = Libsvm::new(input, places, gaps, schema.inputs, extent.rows, options);
        if let (Places::From(base), Some(first)) = (&file.places, file.schema.inputs.first()) {
            let (name, first) = (&file.input.name, short(&first.name));
            file.remark = Some(format!("{name}: columns are found by their places: the index {base} is {first}"));
        }
        Ok(file)
    }
}

impl Table for Libsvm {
    fn about(&self) -> About<'_> {
        About { remark: self.remark.as_deref(), ..About::numbers(&self.schema, self.kept(self.rows)) }
    }

    fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        self.deliver(visit)
    }
}

/// The name of the target.
const LABEL: &str = "label";

/// Parses all lines of a file.
fn each_chunk<T: Default + Send>(
    input: &Input,
    parse: impl Fn(&[u8], &mut T) -> Result<u64, Trouble> + Sync,
    visit: impl FnMut(&mut T, u64) -> Result<()>,
) -> Result<()> {
    let lines = Lines { input, skip: (0, 0), quotes: Quotes::Nowhere, row_bytes: ROW_BYTES };
    let locate = |trouble: Trouble, before: u64| {
        let line = trouble.line.map(|line| before + line);
        Fault { line, ..Fault::new(&input.name, trouble.message) }.into()
    };
    lines.parse_in_order(parse, locate, visit)
}

/// Walks over a file to find its columns and rows.
fn walk(input: &Input, gaps: &Gaps) -> Result<Extent> {
    // The first line with an index 0, the highest index, and the number of rows.
    type Range = (Option<u64>, Option<u64>, usize);
    let parse = |bytes: &[u8], range: &mut Range| {
        *range = Range::default();
        let (zero, highest, rows) = range;
        each_row(bytes, gaps, |line, _, pairs| {
            for pair in pairs {
                let (index, _) = pair?;
                if index == 0 {
                    zero.get_or_insert(line);
                }
                *highest = (*highest).max(Some(index));
            }
            *rows += 1;
            Ok(())
        })
    };
    let (mut zero, mut highest, mut rows) = Range::default();
    each_chunk(input, parse, |range, before| {
        zero = zero.or(range.0.map(|line| before + line));
        highest = highest.max(range.1);
        rows += range.2;
        Ok(())
    })?;
    if rows == 0 {
        return Err(input.fault("there are no rows"));
    }
    let base = if zero.is_some() { 0 } else { 1 };
    let found = highest.map_or(0, |h| (h - base).saturating_add(1));
    if found > MOST_COLUMNS {
        let index = highest.unwrap_or(0);
        return Err(input.fault(format!("the index {index} makes rows of {found} numbers, which is too long")));
    }
    Ok(Extent { base, zero, columns: found as usize, rows })
}

type Pair = Result<(u64, f64), String>;

/// Calls `each` with line, label and pairs of every row, NaN among them if `gaps` are allowed; gives the number of lines.
fn each_row(
    bytes: &[u8],
    gaps: &Gaps,
    mut each: impl FnMut(u64, f64, &mut dyn Iterator<Item = Pair>) -> Result<(), String>,
) -> Result<u64, Trouble> {
    let mut lines = 0;
    for line in bytes.split_inclusive(|&c| c == b'\n') {
        lines += 1;
        let line = memchr::memchr(b'#', line).map_or(line, |at| &line[..at]);
        let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
        let Some(first) = words.next() else { continue };
        let label = fast_float2::parse::<f64, _>(first).ok().filter(|l| l.is_finite());
        let told = |message| Trouble::of_line(lines, message);
        let label = label.ok_or_else(|| {
            let more = if are_labels(first) { ": rows of several labels are not supported" } else { "" };
            told(format!("expected a label, found {}{more}", excerpt(first)))
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
        each(lines, label, &mut pairs).map_err(told)?;
    }
    Ok(lines)
}
