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
//! What the cells of text are is decided by all cells of a column (numbers, however people write them; dates and times; words), and
//! told by [`Data::remarks`]. Empty cells, NaN in arrays and in LIBSVM files, are refused, filled in, or left out with their rows;
//! [`Options::lenient`] is what lets a run go on where nothing is lost.
//!
//! | file | knows |
//! | --- | --- |
//! | `judge` | what a column of text holds, and which cells stand for nothing |
//! | `figures`, `times` | numbers as people write them; dates and times and their parts |
//! | `findings` | what a first pass finds in all rows, which columns follow from it, and what is told |
//! | `columns`, `schema` | what becomes of a cell; the columns of a model |
//! | `encoding`, `input`, `chunks` | bytes on their way to lines |
//!
//! Contents decide, not the file's name.
//!
//! Files are read, never mapped into memory: one that is cut short is an error, not a signal. They are opened once and stay
//! open, so that another file that takes the name is not read; and every pass over the rows of [`Data`] ends with a look at the
//! file's size and time and at the number of rows, of which none may have changed since the first.
//!
//! ```
//! use bochner::rows::RowSource;
//! use bochner_table::read::{Data, Input, Options, Selection};
//!
//! let input = Input::from_bytes("houses.csv", b"size,kind,price\n70,flat,200\n90,house,260\n".to_vec());
//! let selection = Selection { targets: vec!["price".into()], ..Selection::default() };
//! let data = Data::open(input, None, &selection, &Options::default())?;
//! assert_eq!(data.schema().input_names(), ["size", "kind=flat", "kind=house"]);
//! let mut prices = Vec::new();
//! data.rows::<f64>().for_each_block(&mut |block| {
//!     prices.extend(block.targets.iter().copied());
//!     Ok(())
//! })?;
//! assert_eq!(prices, [200.0, 260.0]);
//! # Ok::<(), bochner::Error>(())
//! ```

mod ahead;
mod cells;
mod chunks;
mod columns;
mod csv;
mod digest;
mod encoding;
mod fault;
mod figures;
mod findings;
mod gaps;
mod idx;
mod input;
mod judge;
mod libsvm;
mod npy;
mod npz;
mod numbers;
pub(crate) mod parquet;
mod schema;
mod times;
mod words;

pub use cells::Cells;
pub use fault::Fault;
pub use figures::Writing;
pub use input::Input;
pub use schema::{Column, Kind, Largest, Missing, Schema, Selection, Unknown};
pub use times::TimePart;

use bochner::rows::{RowBlock, RowSource};
use bochner::scalar::Real;
use bochner::words::things;
use columns::Columns;
use digest::Digest;
use numbers::{Matrix, NumberType};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// All formats: recognition, messages and help are made from this list. The last one that knows the beginning of a file reads
/// it; text comes first, as anything may be text.
pub(crate) const FORMATS: &[&Format] =
    &[&csv::FORMAT, &parquet::FORMAT, &npy::FORMAT, &npz::FORMAT, &idx::FORMAT, &libsvm::FORMAT];

/// What there is to know about a file format.
pub(crate) struct Format {
    /// As people call it.
    name: &'static str,
    /// Whether files are lines of text, some of which end in carriage returns alone.
    text: bool,
    /// Whether files with known columns can be read as they come, in a single pass.
    streams: bool,
    begins: Begins,
    open: Open,
    /// How names of files end that can be written, and what writes them.
    pub(crate) writes: &'static [(&'static str, crate::write::Begin)],
}

/// Whether a file is of a format, by its first bytes and by the first of its lines that is neither blank nor a comment.
type Begins = fn(&[u8], &[u8]) -> bool;

/// Opens an array, the columns of which are numbered, with or without the targets that it has beside it.
type OpenArray = fn(Input, &Selection, bool) -> Result<Matrix>;

enum Open {
    Array(OpenArray),
    Table(fn(Input, Wanted<'_>, &Options) -> Result<Box<dyn AnyTable>>),
}

impl Format {
    const fn array(name: &'static str, begins: Begins, open: OpenArray) -> Self {
        Format { name, text: false, streams: false, begins, open: Open::Array(open), writes: &[] }
    }

    const fn table<T: Openable>(name: &'static str, begins: Begins) -> Self {
        Format { name, text: false, streams: false, begins, open: Open::Table(open_table::<T>), writes: &[] }
    }
}

fn open_table<T: Openable>(input: Input, wanted: Wanted<'_>, options: &Options) -> Result<Box<dyn AnyTable>> {
    Ok(Box::new(match wanted {
        Wanted::Chosen(selection) => T::open(input, selection, options)?,
        Wanted::Known(schema) => T::open_with(input, schema, options)?,
    }))
}

/// Which columns of a file are wanted.
#[derive(Clone)]
enum Wanted<'a> {
    /// Those that somebody asks for.
    Chosen(&'a Selection),
    /// Those of a known schema.
    Known(Schema),
}

/// What is known about a table before its rows are read.
struct About<'a> {
    schema: &'a Schema,
    /// Number of rows.
    len: Option<usize>,
    /// Columns with names, and what is found in them.
    columns: Option<&'a Columns>,
    lacks_header: bool,
    same_units: bool,
    /// How the file was understood, where it could have been otherwise.
    remark: Option<&'a str>,
}

impl<'a> About<'a> {
    fn columns(columns: &'a Columns, len: Option<usize>) -> Self {
        About { columns: Some(columns), ..Self::numbers(&columns.schema, len) }
    }

    fn numbers(schema: &'a Schema, len: Option<usize>) -> Self {
        About { schema, len, columns: None, lacks_header: false, same_units: false, remark: None }
    }
}

/// A file of some format whose columns are known.
trait Table: Debug + Send + Sync + 'static {
    fn about(&self) -> About<'_>;

    /// Delivers all rows in blocks.
    fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()>
    where
        Self: Sized;
}

/// A table that knows how to open a file.
trait Openable: Table + Sized {
    /// Finds the columns asked for.
    fn open(input: Input, selection: &Selection, options: &Options) -> Result<Self>;

    /// Finds the columns of a known schema.
    fn open_with(input: Input, schema: Schema, options: &Options) -> Result<Self>;
}

/// A table of any format.
trait AnyTable: Table {
    fn read_f32(&self, visit: Visit<'_, f32>) -> Result<()>;
    fn read_f64(&self, visit: Visit<'_, f64>) -> Result<()>;
}

impl<T: Table> AnyTable for T {
    fn read_f32(&self, visit: Visit<'_, f32>) -> Result<()> {
        self.read(visit)
    }

    fn read_f64(&self, visit: Visit<'_, f64>) -> Result<()> {
        self.read(visit)
    }
}

/// `a, b or c`.
pub(crate) fn alternatives(names: &[impl AsRef<str>]) -> String {
    names.iter().enumerate().fold(String::new(), |text, (i, name)| {
        let comma = match names.len() - i {
            _ if i == 0 => "",
            1 => " or ",
            _ => ", ",
        };
        text + comma + name.as_ref()
    })
}

/// What a data file may be, as help says it.
#[must_use]
pub fn help() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    format!("A {} file, plain or gzip; - for standard input", alternatives(&names))
}

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
        #[allow(private_interfaces)]
        fn read(table: &dyn super::AnyTable, visit: super::Visit<'_, Self>) -> super::Result<()>
        where
            Self: Sized;
    }
}

macro_rules! element {
    ($t:ty, $bits:ty, $kind:ident, $read:ident) => {
        impl sealed::Sealed for $t {
            #[allow(private_interfaces)]
            const KIND: NumberType = NumberType::$kind;

            #[allow(private_interfaces)]
            fn read(table: &dyn AnyTable, visit: Visit<'_, Self>) -> Result<()> {
                table.$read(visit)
            }
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
element!(f32, u32, F32, read_f32);
element!(f64, u64, F64, read_f64);

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
    /// Cells that stand for nothing, beside empty ones, whatever their letters' case; `None` are the usual ones: `?`, `NA`, …
    pub markers: Option<Vec<String>>,
    /// Whether days come before months in dates with strokes; `None` looks.
    pub day_first: Option<bool>,
    /// Name of the encoding of a text; `None` looks.
    pub encoding: Option<String>,
    /// Leave out columns that say nothing about other rows, unless they are asked for by name: identifiers, names, constants.
    pub sift: bool,
    /// Keep rows of a known schema with cells that cannot be understood: all inputs of such a row are NaN, and so are targets
    /// that are missing.
    pub keep_rows: bool,
}

impl Options {
    /// What lets a run go on where nothing is lost: gaps are filled in and marked, columns that say nothing left out.
    #[must_use]
    pub fn lenient() -> Self {
        Options { missing: Missing::Mark, sift: true, ..Options::default() }
    }
}

/// A data file whose columns are known; rows are read as often as asked, and are the same every time: a file that others
/// change meanwhile is an error of the pass that notices it.
#[derive(Debug)]
pub struct Data {
    table: Box<dyn AnyTable>,
    /// The file and, where they are in another, its labels.
    inputs: Vec<Input>,
    /// What the first whole pass has found: the number of rows, and what they hold.
    rows: OnceLock<usize>,
    digest: OnceLock<u64>,
    /// Whether nobody has said what the encoding is.
    guessed: bool,
}

impl Data {
    /// Opens a file and finds the columns asked for; `labels` is a second file with one target per row.
    ///
    /// # Errors
    /// One sentence about what is wrong with the file, or which column is not there.
    pub fn open(input: Input, labels: Option<Input>, selection: &Selection, options: &Options) -> Result<Self> {
        Self::open_any(input.spooled()?, labels, Wanted::Chosen(selection), options)
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
        let (mut known, expected) = (schema.clone(), schema.input_dim());
        // Targets in a second file are not looked for in the first.
        if !with_targets || labels.is_some() {
            known.targets.clear();
        }
        let data = Self::open_any(input, labels, Wanted::Known(known), options)?;
        let found = data.schema().input_dim();
        if found == expected {
            // Tables of a known schema are read in one pass.
            data.input().last_pass();
            Ok(data)
        } else {
            Err(data.input().fault(format!("there are {found} columns, expected {expected}")))
        }
    }

    fn open_any(input: Input, labels: Option<Input>, wanted: Wanted<'_>, options: &Options) -> Result<Self> {
        let files: Vec<Input> = std::iter::once(&input).chain(&labels).cloned().collect();
        unchanged(&files, Self::open_unchecked(input, labels, wanted, options))
    }

    fn open_unchecked(mut input: Input, labels: Option<Input>, wanted: Wanted<'_>, options: &Options) -> Result<Self> {
        let format = recognize(&mut input, options)?;
        if !format.streams {
            input = input.spooled()?;
        }
        let guessed = options.encoding.is_none();
        let open = |input: &Input, wanted: Wanted<'_>| -> Result<Box<dyn AnyTable>> {
            Ok(match (&format.open, labels.clone()) {
                (Open::Array(open), labels) => {
                    let labels = labels.map(open_labels).transpose()?;
                    Box::new(Matrix::open(
                        |selection, own| open(input.clone(), selection, own),
                        labels,
                        wanted,
                        options,
                    )?)
                }
                (Open::Table(_), Some(labels)) => {
                    return Err(labels.fault("labels in a second file go with NPY and IDX files only"));
                }
                (Open::Table(open), None) => open(input.clone(), wanted, options)?,
            })
        };
        let again = wanted.clone();
        let table = match open(&input, wanted) {
            // Far from its beginning a text can be in another encoding than it seemed to be.
            Err(e)
                if format.text
                    && guessed
                    && input.encoding.is_none()
                    && !input.is_stream()
                    && e.to_string().contains(csv::NOT_UTF8) =>
            {
                input.encoding = Some(encoding_rs::WINDOWS_1252);
                open(&input, again)?
            }
            opened => opened?,
        };
        let inputs = std::iter::once(&input).chain(&labels).cloned().collect();
        Ok(Data { table, inputs, rows: OnceLock::new(), digest: OnceLock::new(), guessed })
    }

    /// The columns.
    pub fn schema(&self) -> &Schema {
        self.table.about().schema
    }

    /// Number of rows, where it is known before reading.
    pub fn len_hint(&self) -> Option<usize> {
        self.table.about().len
    }

    /// Whether this is text without a header: its first row is data, and its columns are called by their numbers.
    pub fn lacks_header(&self) -> bool {
        self.table.about().lacks_header
    }

    /// Where a target of numbers has one that is written otherwise than it would be printed (007), if such was read: as
    /// the name of a class it would be changed.
    pub fn code_among_targets(&self) -> Option<Fault> {
        self.table.about().columns?.codes.seen().map(|(_, first)| first)
    }

    /// Everything that is odd in the file, as far as it was read, and how it was understood: sentences that users should hear.
    pub fn remarks(&self) -> Vec<String> {
        let (about, input) = (self.table.about(), self.input());
        let told = |encoding: &'static encoding_rs::Encoding| {
            format!(
                "{}: the text is taken for {}, as it is not UTF-8; --encoding names another",
                input.name,
                encoding.name()
            )
        };
        let mut all: Vec<String> = input.encoding.filter(|_| self.guessed).map(told).into_iter().collect();
        all.extend(about.remark.map(str::to_owned));
        all.extend(about.columns.map(|columns| columns.remarks(&input.name)).unwrap_or_default());
        all
    }

    /// Whether all columns are measured alike: the bytes of images.
    pub fn same_units(&self) -> bool {
        self.table.about().same_units
    }

    /// Whether columns have names, and with them units of their own.
    pub fn is_table(&self) -> bool {
        self.table.about().columns.is_some()
    }

    /// Cells with words that did not occur in training, if they were let pass: how many, and where the first one is.
    pub fn unknown_words(&self) -> Option<(u64, Fault)> {
        self.table.about().columns?.unknown_categories.seen()
    }

    /// The file.
    pub fn input(&self) -> &Input {
        &self.inputs[0]
    }

    /// The rows in precision `R`.
    pub fn rows<R: Element>(&self) -> Rows<'_, R> {
        Rows { data: self, precision: PhantomData }
    }

    /// The rows in double precision, for whoever reads them more than once and does more with them than to look: not only
    /// their number has to be the same in every pass, but every bit.
    pub(crate) fn same_rows(&self) -> SameRows<'_> {
        SameRows { data: self }
    }

    /// What stands for all numbers of the rows, once [`same_rows`](Self::same_rows) were read.
    pub(crate) fn digest(&self) -> Option<u64> {
        self.digest.get().copied()
    }

    /// One pass over all rows.
    fn pass<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        let mut rows = 0;
        let read = R::read(&*self.table, &mut |block| {
            rows += block.rows.nrows();
            visit(block)
        });
        unchanged(&self.inputs, read)?;
        match *self.rows.get_or_init(|| rows) {
            first if first == rows => Ok(()),
            first => {
                let (first, rows) = (things(first, "row"), things(rows, "row"));
                Err(self.input().changed(&format!("{first} in the first pass, {rows} in a later one")))
            }
        }
    }
}

/// What reading some files led to; if one of them was changed meanwhile that is what is told, whatever else it led to.
fn unchanged<T>(files: &[Input], read: Result<T>) -> Result<T> {
    if !matches!(read, Err(bochner::Error::Interrupted)) {
        files.iter().try_for_each(Input::check_unchanged)?;
    }
    read
}

/// The rows of a file, the same in every pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SameRows<'a> {
    data: &'a Data,
}

impl RowSource<f64> for SameRows<'_> {
    fn input_dim(&self) -> usize {
        self.data.schema().input_dim()
    }

    fn target_dim(&self) -> usize {
        self.data.schema().targets.len()
    }

    fn len_hint(&self) -> Option<usize> {
        self.data.len_hint()
    }

    fn for_each_block(&mut self, visit: Visit<'_, f64>) -> Result<()> {
        let (mut inputs, mut targets) = (Digest::default(), Digest::default());
        self.data.pass(&mut |block| {
            inputs.add(block.rows);
            targets.add(block.targets);
            visit(block)
        })?;
        match inputs.value() ^ targets.value().rotate_left(32) {
            found if found == *self.data.digest.get_or_init(|| found) => Ok(()),
            _ => Err(self.data.input().changed("it holds other numbers than in the first pass")),
        }
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
        self.data.pass(visit)
    }
}

/// Targets in a second file, beside an array.
fn open_labels(labels: Input) -> Result<Matrix> {
    let mut labels = labels.spooled()?;
    match recognize(&mut labels, &Options::default())?.open {
        Open::Array(open) => open(labels, &Selection::default(), true),
        _ => Err(labels.fault("labels beside an array must be an array too (NPY or IDX)")),
    }
}

/// Looks at the first bytes; notices encodings and line ends that are not ours.
fn recognize(input: &mut Input, options: &Options) -> Result<&'static Format> {
    let mut start = vec![0; 1 << 16];
    let mut n = first_bytes(input, &mut start)?;
    let (mut format, mut carriage_returns) = format_of(input, &start[..n])?;
    if format.text {
        input.encoding = match &options.encoding {
            Some(name) => {
                let known = encoding::named(name).ok_or_else(|| input.fault(format!("there is no encoding {name}")))?;
                Some(known).filter(|known| *known != encoding_rs::UTF_8)
            }
            None => encoding::of(&start[..n])
                .map_err(|name| input.fault(format!("the text is {name}; save it as UTF-8")))?,
        };
        if input.encoding.is_some() {
            n = first_bytes(input, &mut start)?;
            (format, carriage_returns) = format_of(input, &start[..n])?;
        }
    }
    input.carriage_returns = format.text && carriage_returns;
    Ok(format)
}

/// The format of a file that begins so, and whether its lines end in carriage returns.
fn format_of(input: &Input, start: &[u8]) -> Result<(&'static Format, bool)> {
    if start.is_empty() {
        return Err(input.fault("the file is empty"));
    }
    if let Some(what) = other_software(start, &input.name) {
        return Err(input.fault(what));
    }
    // The last one may be the first half of a line end.
    let carriage_returns = !start.contains(&b'\n') && start[..start.len() - 1].contains(&b'\r');
    let first_row = rows_of(start, if carriage_returns { b'\r' } else { b'\n' }).next().unwrap_or(&[]);
    let format = FORMATS.iter().rev().find(|format| (format.begins)(start, first_row));
    Ok((format.expect("anything may be text"), carriage_returns))
}

/// Lines that are neither blank nor comments.
fn rows_of(text: &[u8], line_end: u8) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(move |&c| c == line_end).map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

/// Fills `start`; from a stream takes a whole row and what has come with it.
fn first_bytes(input: &Input, start: &mut [u8]) -> Result<usize> {
    let mut source = input.bytes()?;
    if !input.is_stream() {
        return input::read_up_to(&mut source, start).map_err(|e| input.unreadable(e));
    }
    let mut n = 0;
    while n < start.len() {
        match input::read_some(&mut source, &mut start[n..]).map_err(|e| input.unreadable(e))? {
            0 => break,
            more => n += more,
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
