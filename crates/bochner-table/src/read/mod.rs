//! Data files as blocks of rows, one file per format; memory is a few blocks, whatever the size of the file.
//!
//! | format | recognised by | columns |
//! | --- | --- | --- |
//! | CSV, TSV, separated by blanks or bars, plain or gzip | text | named by the header; words become zeros and ones |
//! | NPY, NPZ | magic bytes | numbered; NPZ arrays `X` and `y` |
//! | IDX, plain or gzip | magic bytes | numbered; labels from another file |
//! | Parquet | magic bytes | named; words become zeros and ones; a row group at a time |
//! | LIBSVM, plain or gzip | `label index:value …` | called by their indices; the label is the target |
//!
//! Empty cells, NaN in arrays and in LIBSVM files, are refused, filled in, or left out with their rows.
//!
//! Contents decide, not the file's name.

mod ahead;
mod cells;
mod chunks;
mod columns;
mod csv;
mod fault;
mod gaps;
mod idx;
mod input;
mod libsvm;
mod npy;
mod npz;
mod numbers;
mod parquet;
mod schema;
mod words;

pub use cells::Cells;
pub use fault::Fault;
pub use input::Input;
pub use schema::{Column, Kind, Largest, Missing, Schema, Selection, Unknown};

use bochner::rows::{RowBlock, RowSource};
use bochner::scalar::Real;
use numbers::{Body, Matrix, NumberType, Numbers};
use std::io::Read;
use std::marker::PhantomData;

/// A number type rows can be read into.
pub trait Element: Real + sealed::Sealed + numbers::CastAll {
    /// The bytes of numbers, writable.
    fn bytes_mut(numbers: &mut [Self]) -> &mut [u8];
    /// Whether there is no NaN and no infinity among the numbers.
    fn all_finite(numbers: &[Self]) -> bool;
}

mod sealed {
    pub trait Sealed {
        #[allow(private_interfaces)]
        const KIND: super::NumberType;
    }
}

macro_rules! element {
    ($t:ty, $bits:ty, $kind:ident) => {
        impl sealed::Sealed for $t {
            #[allow(private_interfaces)]
            const KIND: NumberType = NumberType::$kind;
        }
        impl Element for $t {
            fn bytes_mut(numbers: &mut [Self]) -> &mut [u8] {
                bytemuck::cast_slice_mut(numbers)
            }

            fn all_finite(numbers: &[Self]) -> bool {
                const EXPONENT: $bits = <$t>::INFINITY.to_bits();
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || !numbers.iter().fold(false, |bad, v| bad | (v.to_bits() & EXPONENT == EXPONENT)),
                )
            }
        }
    };
}
element!(f32, u32, F32);
element!(f64, u64, F64);

/// The core's result, with other errors where a place in the file is still to be added.
type Result<T, E = bochner::Error> = std::result::Result<T, E>;

/// Longest rows: their columns have names, and the fast maps end here too.
const MOST_COLUMNS: u64 = 1 << 22;

/// What receives blocks of rows.
type Visit<'a, R> = &'a mut dyn FnMut(RowBlock<'_, R>) -> Result<()>;

/// How a file is to be read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether the first row holds names; `None` looks.
    pub header: Option<bool>,
    /// Byte between fields; a blank stands for any run of blanks; `None` looks.
    pub separator: Option<u8>,
    /// What to do with empty cells.
    pub missing: Missing,
    /// What is said about an empty cell to users of a model, who cannot train it again.
    pub advice: Option<&'static str>,
    /// What to do with words that a schema does not know.
    pub unknown: Unknown,
    /// Larger numbers are refused; `None` allows all that are finite.
    pub largest: Option<Largest>,
}

#[derive(Debug)]
enum Format {
    Csv(csv::Csv),
    Parquet(parquet::Parquet),
    Matrix(Matrix),
    Libsvm(libsvm::Libsvm),
}

/// A data file whose columns are known; rows are read as often as asked.
#[derive(Debug)]
pub struct Data {
    format: Format,
    input: Input,
}

impl Data {
    /// Opens a file and finds the columns asked for; `labels` is a second file with one target per row.
    ///
    /// # Errors
    /// One sentence about what is wrong with the file, or which column is not there.
    pub fn open(input: Input, labels: Option<Input>, selection: &Selection, options: &Options) -> Result<Self> {
        let mut input = input.spooled()?;
        let recognised = recognise(&mut input)?;
        let kept = input.clone();
        let format = match recognised {
            Recognised::Text => Format::Csv(csv::Csv::open(input, options, selection)?),
            Recognised::Parquet => Format::Parquet(parquet::Parquet::open(input, options, selection)?),
            Recognised::Libsvm => Format::Libsvm(libsvm::Libsvm::open(input, selection, options)?),
            binary => Format::Matrix(open_matrix(input, binary, selection, true)?),
        };
        let format = match with_labels(format, labels)? {
            Format::Matrix(matrix) if matrix.is_empty() => return Err(kept.fault("there are no rows")),
            Format::Matrix(matrix) => Format::Matrix(matrix.within(options).learn_gaps(options.missing)?),
            other => other,
        };
        Ok(Data { format, input: kept })
    }

    /// Opens a file with the columns of a known schema, with or without its targets; it may have no rows.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        input: Input,
        labels: Option<Input>,
        schema: &Schema,
        with_targets: bool,
        options: &Options,
    ) -> Result<Self> {
        let mut input = input;
        let recognised = recognise(&mut input)?;
        if recognised != Recognised::Text {
            input = input.spooled()?;
        }
        let kept = input.clone();
        let format = match recognised {
            Recognised::Text => {
                // Targets in a second file are not looked for in the first.
                let with_targets = with_targets && labels.is_none();
                Format::Csv(csv::Csv::open_with(input, options, schema, with_targets)?)
            }
            Recognised::Parquet => {
                let with_targets = with_targets && labels.is_none();
                Format::Parquet(parquet::Parquet::open_with(input, options, schema, with_targets)?)
            }
            Recognised::Libsvm => Format::Libsvm(libsvm::Libsvm::open_with(input, schema, options)?),
            binary => {
                // Targets of their own are left alone where nobody asks for them: they may be anything in new files.
                let own = with_targets && labels.is_none();
                let matrix = open_matrix(input.clone(), binary, &Selection::default(), own)?;
                // A file that still has its targets: columns of arrays are known by their numbers.
                let numbered = |c: &Column| c.name.parse::<usize>().is_ok_and(|n| n <= matrix.schema.inputs.len());
                let numbered = schema.inputs.iter().all(numbered) && schema.inputs.len() < matrix.schema.inputs.len();
                Format::Matrix(if numbered {
                    let names = |columns: &[Column]| columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
                    let inside = with_targets
                        && labels.is_none()
                        && schema
                            .targets
                            .iter()
                            .all(|c| c.name.parse::<usize>().is_ok_and(|n| n <= matrix.schema.inputs.len()));
                    let targets = if inside { names(&schema.targets) } else { Vec::new() };
                    let selection = Selection { inputs: Some(names(&schema.inputs)), targets, ..Selection::default() };
                    open_matrix(input, binary, &selection, own)?
                } else {
                    matrix
                })
            }
        };
        let format = match with_labels(format, labels)? {
            Format::Matrix(matrix) => Format::Matrix(matrix.within(options).with_gaps(options.missing, &schema.inputs)),
            other => other,
        };
        let data = Data { format, input: kept };
        let (found, expected) = (data.schema().input_dim(), schema.input_dim());
        if found == expected {
            // Tables of a known schema are read in one pass.
            data.input.last_pass();
            Ok(data)
        } else {
            Err(data.input.fault(format!("there are {found} columns, expected {expected}")))
        }
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        match &self.format {
            Format::Csv(csv) => &csv.schema,
            Format::Parquet(parquet) => &parquet.schema,
            Format::Matrix(matrix) => &matrix.schema,
            Format::Libsvm(libsvm) => &libsvm.schema,
        }
    }

    /// Number of rows, where it is known before reading.
    pub fn len_hint(&self) -> Option<usize> {
        match &self.format {
            Format::Csv(_) => None,
            Format::Parquet(parquet) => parquet.len(),
            Format::Matrix(matrix) => matrix.len(),
            Format::Libsvm(libsvm) => libsvm.len(),
        }
    }

    /// Whether this is text without a header: its first row is data, and its columns are called by their numbers.
    pub fn lacks_header(&self) -> bool {
        matches!(&self.format, Format::Csv(csv) if csv.lacks_header())
    }

    /// Where a target of numbers has one that is written otherwise than it would be printed (007), if such was read: as
    /// the name of a class it would be changed.
    pub fn code_among_targets(&self) -> Option<Fault> {
        match &self.format {
            Format::Csv(csv) => csv.codes.seen().map(|(_, first)| first),
            _ => None,
        }
    }

    /// Whether all columns are measured alike: the bytes of images.
    pub fn same_units(&self) -> bool {
        matches!(&self.format, Format::Matrix(matrix) if matrix.is_bytes())
    }

    /// Whether columns have names, and with them units of their own.
    pub fn is_table(&self) -> bool {
        !matches!(&self.format, Format::Matrix(_) | Format::Libsvm(_))
    }

    /// Cells with words that did not occur in training, if they were let pass: how many, and where the first one is.
    pub fn unknown_words(&self) -> Option<(u64, Fault)> {
        match &self.format {
            Format::Csv(csv) => csv.unknown_categories.seen(),
            Format::Parquet(parquet) => parquet.unknown_categories.seen(),
            Format::Matrix(_) | Format::Libsvm(_) => None,
        }
    }

    /// The file.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The rows in precision `R`.
    pub fn rows<R: Element>(&self) -> Rows<'_, R> {
        Rows { data: self, precision: PhantomData }
    }
}

/// The rows of a file in one precision.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, R> {
    data: &'a Data,
    precision: PhantomData<R>,
}

impl<R: Element> RowSource<R> for Rows<'_, R> {
    fn input_dim(&self) -> usize {
        self.data.schema().input_dim()
    }

    fn target_dim(&self) -> usize {
        self.data.schema().targets.len()
    }

    fn len_hint(&self) -> Option<usize> {
        self.data.len_hint()
    }

    fn for_each_block(&mut self, visit: Visit<'_, R>) -> Result<()> {
        match &self.data.format {
            Format::Csv(csv) => csv.read(visit),
            Format::Parquet(parquet) => parquet.read(visit),
            Format::Matrix(matrix) => matrix.read(visit),
            Format::Libsvm(libsvm) => libsvm.read(visit),
        }
    }
}

/// The same rows with targets from a second file.
fn with_labels(format: Format, labels: Option<Input>) -> Result<Format> {
    match (format, labels) {
        (format, None) => Ok(format),
        (Format::Matrix(matrix), Some(labels)) => {
            let mut labels = labels.spooled()?;
            let kind = recognise(&mut labels)?;
            if matches!(kind, Recognised::Text | Recognised::Libsvm | Recognised::Parquet) {
                return Err(labels.fault("labels beside an array must be an array too (NPY or IDX)"));
            }
            Ok(Format::Matrix(matrix.with_labels(open_matrix(labels, kind, &Selection::default(), true)?)?))
        }
        (_, Some(labels)) => Err(labels.fault("labels in a second file go with NPY and IDX files only")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recognised {
    Text,
    Libsvm,
    Parquet,
    Npy,
    Npz,
    Idx,
}

/// Looks at the first bytes; notices line ends that are not ours.
fn recognise(input: &mut Input) -> Result<Recognised> {
    let mut start = vec![0; 1 << 16];
    let n = first_bytes(input, &mut start)?;
    let start = &start[..n];
    if start.is_empty() {
        return Err(input.fault("the file is empty"));
    }
    if start.starts_with(npy::MAGIC) {
        return Ok(Recognised::Npy);
    }
    if let Some(what) = other_software(start, &input.name) {
        return Err(input.fault(what));
    }
    if start.starts_with(npz::MAGIC) {
        return Ok(Recognised::Npz);
    }
    if start.starts_with(parquet::MAGIC) {
        return Ok(Recognised::Parquet);
    }
    if idx::is_magic(start) {
        return Ok(Recognised::Idx);
    }
    // The last one may be the first half of a line end.
    input.carriage_returns = !start.contains(&b'\n') && start[..n - 1].contains(&b'\r');
    let line_end = if input.carriage_returns { b'\r' } else { b'\n' };
    Ok(if rows_of(start, line_end).next().is_some_and(libsvm::looks_like) {
        Recognised::Libsvm
    } else {
        Recognised::Text
    })
}

/// Lines that are neither blank nor comments.
fn rows_of(text: &[u8], line_end: u8) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(move |&c| c == line_end).map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

/// Fills `start`; from a stream takes a whole row and what has come with it.
fn first_bytes(input: &Input, start: &mut [u8]) -> Result<usize> {
    let mut source = input.bytes()?;
    let told = |e: std::io::Error| input.fault(input::cannot_read(&e));
    if !input.is_stream() {
        return input::read_up_to(&mut source, start).map_err(told);
    }
    let mut n = 0;
    while n < start.len() {
        match source.read(&mut start[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(told(e)),
        }
        let whole = memchr::memrchr(b'\n', &start[..n]).map_or(0, |at| at + 1);
        // Shorter than any magic bytes it could still be anything.
        if n >= 4 && rows_of(&start[..whole], b'\n').next().is_some() {
            break;
        }
    }
    Ok(n)
}

/// What a file is that other software wrote and nobody here reads.
fn other_software(start: &[u8], name: &str) -> Option<&'static str> {
    const WORKBOOK: &str = "this looks like a spreadsheet (Excel, LibreOffice); save it as CSV";
    let named = |endings: &[&str]| {
        let ending = std::path::Path::new(name).extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        ending.is_some_and(|ending| endings.contains(&ending.as_str()))
    };
    if start.starts_with(npz::MAGIC) {
        let first = start.get(30..).unwrap_or(&[]);
        let parts: [&[u8]; 5] = [b"[Content_Types]", b"_rels/", b"xl/", b"docProps/", b"mimetypeapplication/vnd."];
        let inside = parts.iter().any(|part| first.starts_with(part));
        return (inside || named(&["xlsx", "xlsm", "ods"])).then_some(WORKBOOK);
    }
    // Excel before 2007.
    if start.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        return Some(WORKBOOK);
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let (&first, rest) = text.split_first()?;
    let next = rest.trim_ascii_start().first();
    let is_json = match first {
        b'{' => matches!(next, Some(b'"' | b'}')),
        b'[' => matches!(next, Some(b'{' | b'[' | b'"')),
        _ => false,
    };
    if is_json {
        return Some("this looks like JSON, which is not read; write a table with a row per line (CSV)");
    }
    let start: Vec<u8> = text.iter().take(9).map(u8::to_ascii_lowercase).collect();
    let is_page = [&b"<!doctype"[..], b"<html", b"<?xml"].iter().any(|tag| start.starts_with(tag));
    is_page.then_some("this is a web page or another XML file, not a table")
}

/// An array; `own_targets` are those that an archive has beside it.
fn open_matrix(input: Input, kind: Recognised, selection: &Selection, own_targets: bool) -> Result<Matrix> {
    let whole =
        |numbers: &Numbers, offset: u64| numbers.check(&input, input.plain_len().map(|len| len.saturating_sub(offset)));
    match kind {
        Recognised::Npz => open_npz(input, selection, own_targets),
        Recognised::Idx => {
            let (numbers, offset) = idx::read_header(&input, &mut input.bytes()?)?;
            whole(&numbers, offset)?;
            Matrix::new(input, Body::At(offset), numbers, selection)
        }
        _ => {
            let (numbers, offset) = npy::read_header(&input, &mut input.bytes()?)?;
            whole(&numbers, offset)?;
            Matrix::new(input, Body::At(offset), numbers, selection)
        }
    }
}

/// Array `X` (or the only one, or the only one with columns) with targets from array `y` or the one asked for.
fn open_npz(input: Input, selection: &Selection, own_targets: bool) -> Result<Matrix> {
    let members = npz::members(&input)?;
    let names = || members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(", ");
    let header = |member: &npz::Member| {
        let (numbers, offset) = npy::read_header(&input, &mut member.open(&input)?)?;
        numbers.check(&input, Some(member.len.saturating_sub(offset)))?;
        Ok((numbers, offset))
    };
    let open = |member: &npz::Member, selection: &Selection| {
        let (numbers, offset) = header(member).map_err(|e| member.blame(&input, e))?;
        Matrix::new(input.clone(), Body::Member(member.clone(), offset), numbers, selection)
    };
    let find = |wanted: &str| members.iter().find(|m| m.name.eq_ignore_ascii_case(wanted));
    let rows = ["X", "data", "rows", "features", "inputs"].iter().find_map(|n| find(n));
    let rows = rows.or(if members.len() == 1 { members.first() } else { None });
    // Under another name, the only array with columns is meant: a target beside it has none.
    let has_columns = |member: &&npz::Member| header(member).is_ok_and(|(numbers, _)| numbers.columns > 1);
    let rows = rows.or_else(|| {
        let mut tables = members.iter().filter(|m| !selection.targets.contains(&m.name)).filter(has_columns);
        tables.next().filter(|_| tables.next().is_none())
    });
    let Some(rows) = rows else {
        // An array that is damaged may be the one.
        members.iter().try_for_each(|member| member.verify(&input))?;
        let message = format!("expected an array called X, or a single one with columns, found {}", names());
        return Err(input.fault(message));
    };
    let mut selection = selection.clone();
    // A target may be an array of its own: `--target y`.
    let target = match &selection.targets[..] {
        [one] => members.iter().find(|m| m.name == *one),
        [] if own_targets => ["y", "target", "targets", "labels"].iter().find_map(|n| find(n)),
        _ => None,
    };
    let Some(target) = target.filter(|t| t.name != rows.name) else { return open(rows, &selection) };
    selection.targets.clear();
    open(rows, &selection)?.with_labels(open(target, &Selection::default())?)
}
