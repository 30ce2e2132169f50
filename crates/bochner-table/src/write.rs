//! Tables on their way out, block by block: CSV, TSV, NPY or Parquet, by the name of the file.
//!
//! ```
//! use bochner_table::write;
//! use std::path::Path;
//!
//! let refused = write::check(Some(Path::new("features.xlsx"))).unwrap_err();
//! assert_eq!(refused.to_string(), "files ending in .xlsx cannot be written; use .csv, .tsv, .parquet or .npy");
//! ```

pub(crate) mod parquet;

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::read::{FORMATS, alternatives};
use bochner::persist::WholeFile;
use ndarray::{ArrayView2, s};
use std::io::{self, BufWriter, Seek, Stdout, Write};
use std::path::Path;

/// A column of words and columns of numbers, row by row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// The word of every row, as an index into the list of words.
    pub(crate) words: Option<&'a [usize]>,
    pub(crate) numbers: ArrayView2<'a, f64>,
}

/// What a table looks like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Name of the column of words and the words it may hold.
    pub(crate) words: Option<(String, Vec<String>)>,
    /// Names of the columns of numbers.
    pub(crate) numbers: Vec<String>,
    /// Whether numbers are single precision.
    pub(crate) single: bool,
}

impl Layout {
    /// The word of row `i` of a block.
    fn word(&self, block: &Block<'_>, i: usize) -> Option<&str> {
        let (_, words) = self.words.as_ref()?;
        words.get(*block.words?.get(i)?).map(String::as_str)
    }

    /// Appends a number in its precision, from its low end on.
    fn put(&self, value: f64, out: &mut Vec<u8>) {
        match self.single {
            true => out.extend((value as f32).to_le_bytes()),
            false => out.extend(value.to_le_bytes()),
        }
    }
}

/// The bytes of a file of one format.
pub(crate) trait Writer {
    /// The first bytes of a file with so many rows, always the same number of them: rows are counted when all are written.
    fn start(&self, layout: &Layout, rows: usize) -> Vec<u8>;

    /// Appends rows, now or later.
    fn push(&mut self, layout: &Layout, block: Block<'_>, out: &mut Vec<u8>);

    /// Appends what is left to say behind the last row.
    fn end(&mut self, _: &Layout, _: &mut Vec<u8>) {}
}

/// Begins a file.
pub(crate) type Begin = fn(&Layout) -> Outcome<Box<dyn Writer>>;

/// Text with a separator between its fields.
pub(crate) struct Text(pub(crate) u8);

impl Writer for Text {
    fn start(&self, layout: &Layout, _: usize) -> Vec<u8> {
        let words = layout.words.iter().map(|(name, _)| name);
        let names: Vec<String> = words.chain(&layout.numbers).map(|name| quoted(name, self.0)).collect();
        format!("{}\n", names.join(&char::from(self.0).to_string())).into_bytes()
    }

    fn push(&mut self, layout: &Layout, block: Block<'_>, out: &mut Vec<u8>) {
        for (i, row) in block.numbers.outer_iter().enumerate() {
            let start = out.len();
            if layout.words.is_some() {
                out.extend(quoted(layout.word(&block, i).unwrap_or(""), self.0).bytes());
                out.push(self.0);
            }
            for &value in row {
                let written = match layout.single {
                    // A row without an answer.
                    _ if value.is_nan() => Ok(()),
                    true => write!(out, "{}", value as f32),
                    false => write!(out, "{value}"),
                };
                written.expect("memory can be written");
                out.push(self.0);
            }
            // The line ends where the last separator is.
            out.pop_if(|last| *last == self.0);
            // A blank line is no row.
            if out.len() == start {
                out.extend(b"\"\"");
            }
            out.push(b'\n');
        }
    }
}

/// An NPY file.
pub(crate) struct Npy;

impl Npy {
    pub(crate) fn begin(layout: &Layout) -> Outcome<Box<dyn Writer>> {
        match layout.words.is_some() && !layout.numbers.is_empty() {
            true => Err(Failure::Usage(
                "an .npy file holds words or numbers, not both; write a .csv file for labels beside numbers".into(),
            )),
            false => Ok(Box::new(Npy)),
        }
    }
}

/// Length of the longest word, in characters.
fn longest(layout: &Layout) -> usize {
    let words = layout.words.iter().flat_map(|(_, words)| words);
    words.map(|w| w.chars().count()).max().unwrap_or(1).max(1)
}

impl Writer for Npy {
    fn start(&self, layout: &Layout, rows: usize) -> Vec<u8> {
        let (kind, columns) = match &layout.words {
            Some(_) => (format!("<U{}", longest(layout)), 1),
            None => (if layout.single { "<f4" } else { "<f8" }.to_owned(), layout.numbers.len()),
        };
        let shape = if columns == 1 { format!("({rows},)") } else { format!("({rows}, {columns})") };
        let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        // 128 bytes in all: numpy wants a multiple of 64, and twenty digits of rows fit.
        let text = format!("{text:<117}\n");
        [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
    }

    fn push(&mut self, layout: &Layout, block: Block<'_>, out: &mut Vec<u8>) {
        let longest = longest(layout);
        for (i, row) in block.numbers.outer_iter().enumerate() {
            match layout.words.as_ref().map(|_| layout.word(&block, i).unwrap_or("")) {
                Some(word) => {
                    let end = out.len() + 4 * longest;
                    out.extend(word.chars().flat_map(|c| (c as u32).to_le_bytes()));
                    out.resize(end, 0);
                }
                None => row.iter().for_each(|value| layout.put(*value, out)),
            }
        }
    }
}

/// The file asked for; `-` is standard output.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|p| *p != Path::new("-"))
}

/// Endings of the files that can be written, and how each begins.
fn writers() -> impl Iterator<Item = &'static (&'static str, Begin)> {
    FORMATS.iter().flat_map(|format| format.writes)
}

fn endings() -> String {
    alternatives(&writers().map(|(ending, _)| format!(".{ending}")).collect::<Vec<_>>())
}

/// What a table may be written to, as help says it.
#[must_use]
pub fn help(what: &str) -> String {
    format!("Where {what} go: a {} file [default: CSV on standard output]", endings())
}

fn begin(path: Option<&Path>) -> Outcome<Begin> {
    let ending = path.and_then(|p| p.extension()).map(|e| e.to_string_lossy().to_ascii_lowercase());
    let ending = ending.as_deref().filter(|ending| *ending != "txt").unwrap_or("csv");
    match writers().find(|(known, _)| *known == ending) {
        Some((_, begin)) => Ok(*begin),
        None => Err(Failure::Usage(format!("files ending in .{ending} cannot be written; use {}", endings()))),
    }
}

/// Refuses, before any work is done, a table that could not be written after it.
pub fn check(path: Option<&Path>) -> Outcome {
    begin(named(path))?;
    named(path).map_or(Ok(()), output::check_file)
}

/// Numbers made into bytes at a time, about.
const PIECE: usize = 1 << 15;

/// A table being written.
pub(crate) struct Sheet {
    file: Option<WholeFile>,
    standard: BufWriter<Stdout>,
    writer: Box<dyn Writer>,
    layout: Layout,
    rows: usize,
    buffer: Vec<u8>,
    name: String,
}

impl Sheet {
    /// A file, or standard output (as CSV) for `None` and `-`.
    pub(crate) fn create(path: Option<&Path>, layout: Layout) -> Outcome<Self> {
        let path = named(path);
        let writer = begin(path)?(&layout)?;
        let name = path.map_or("standard output".to_owned(), |p| p.display().to_string());
        let file = path.map(output::begin).transpose()?;
        let standard = BufWriter::with_capacity(1 << 16, io::stdout());
        let buffer = writer.start(&layout, 0);
        let mut sheet = Sheet { file, standard, writer, layout, rows: 0, buffer, name };
        sheet.put()?;
        Ok(sheet)
    }

    fn out(&mut self) -> &mut dyn Write {
        match &mut self.file {
            Some(file) => file,
            None => &mut self.standard,
        }
    }

    /// Writes what is in the buffer.
    fn put(&mut self) -> Outcome {
        let bytes = std::mem::take(&mut self.buffer);
        self.out().write_all(&bytes).map_err(|e| told(&self.name, e))?;
        self.buffer = bytes;
        self.buffer.clear();
        Ok(())
    }

    /// Writes rows.
    pub(crate) fn push(&mut self, block: Block<'_>) -> Outcome {
        let (n, piece) = (block.numbers.nrows(), (PIECE / block.numbers.ncols().max(1)).max(1));
        for start in (0..n).step_by(piece) {
            let end = n.min(start + piece);
            let words = block.words.map(|words| &words[start..end]);
            let numbers = block.numbers.slice(s![start..end, ..]);
            self.writer.push(&self.layout, Block { words, numbers }, &mut self.buffer);
            self.put()?;
        }
        self.rows += n;
        Ok(())
    }

    /// Hands over what has been written to whoever waits for it.
    pub(crate) fn flush(&mut self) -> Outcome {
        self.out().flush().map_err(|e| told(&self.name, e))
    }

    /// Number of rows written.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Outcome {
        self.writer.end(&self.layout, &mut self.buffer);
        self.put()?;
        self.flush()?;
        let Some(mut file) = self.file else { return Ok(()) };
        let start = self.writer.start(&self.layout, self.rows);
        if start != self.writer.start(&self.layout, 0) {
            // Devices and pipes cannot go back.
            file.rewind().and_then(|()| file.write_all(&start)).map_err(|e| told(&self.name, e))?;
        }
        file.finish().map_err(|e| told(&self.name, e))
    }
}

fn told(name: &str, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::Failed(format!("cannot write {name}: {error}")),
    }
}

fn quoted(field: &str, separator: u8) -> String {
    if field.contains(['"', '\n', '\r', char::from(separator)]) || field.trim() != field || field.is_empty() {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn written(name: &str, layout: Layout, block: Block<'_>) -> Vec<u8> {
        let folder = std::env::temp_dir().join(format!("bochner-sheet-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        let mut sheet = Sheet::create(Some(&path), layout).unwrap();
        sheet.push(block).unwrap();
        sheet.push(block).unwrap();
        assert_eq!(sheet.rows(), 2 * block.numbers.nrows());
        sheet.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        bytes
    }

    #[test]
    fn text_is_quoted_where_it_must_be() {
        let layout = Layout {
            words: Some(("kind, or sort".into(), vec!["a".into(), "b \"c\"".into()])),
            numbers: vec!["p".into()],
            single: false,
        };
        let numbers = array![[0.1], [1e-300]];
        let bytes = written("t.csv", layout, Block { words: Some(&[1, 0]), numbers: numbers.view() });
        let text = String::from_utf8(bytes).unwrap();
        let row = "\"b \"\"c\"\"\",0.1\n";
        let long = format!("a,{}\n", 1e-300);
        assert_eq!(text, format!("\"kind, or sort\",p\n{row}{long}{row}{long}"));
    }

    #[test]
    fn arrays_know_their_number_of_rows_at_the_end() {
        let layout = Layout { numbers: vec!["x".into(), "y".into()], single: true, ..Layout::default() };
        let numbers = array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        let bytes = written("t.npy", layout, Block { words: None, numbers: numbers.view() });
        assert!(String::from_utf8_lossy(&bytes[..128]).contains("'shape': (6, 2)"));
        assert_eq!(bytes.len(), 128 + 6 * 2 * 4);
        assert_eq!(bytes[128..132], 1.0f32.to_le_bytes());
    }

    #[test]
    fn words_become_an_array_of_words() {
        let layout = Layout { words: Some(("w".into(), vec!["né".into(), "lang".into()])), ..Layout::default() };
        let none = ndarray::Array2::zeros((2, 0));
        let bytes = written("w.npy", layout, Block { words: Some(&[0, 1]), numbers: none.view() });
        assert!(
            String::from_utf8_lossy(&bytes[..128]).contains("'descr': '<U4', 'fortran_order': False, 'shape': (4,)")
        );
        assert_eq!(bytes.len(), 128 + 4 * 16);
        assert_eq!(bytes[132..136], ('é' as u32).to_le_bytes());
    }

    /// Read back by the reader of the program; other software reads the same bytes (`tests/data` has files it wrote).
    #[test]
    fn parquet_files_hold_words_and_numbers() {
        use crate::read::{Data, Input, Options, Selection};
        use bochner::rows::RowSource;
        let layout = Layout {
            words: Some(("kind".into(), vec!["a".into(), "grün".into()])),
            numbers: vec!["p".into(), "a name".into()],
            single: false,
        };
        let numbers = array![[0.1, -1e300], [1e-300, 7.0]];
        let bytes = written("t.parquet", layout, Block { words: Some(&[1, 0]), numbers: numbers.view() });
        let selection = Selection { targets: vec!["kind".into()], ..Selection::default() };
        let data = Data::open(Input::from_bytes("t", bytes), None, &selection, &Options::default()).unwrap();
        let names: Vec<&str> = data.schema().inputs.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["p", "a name"]);
        let mut seen = 0;
        data.rows::<f64>()
            .for_each_block(&mut |block| {
                for (row, target) in block.rows.rows().into_iter().zip(block.targets.rows()) {
                    assert_eq!((row, target[0]), (numbers.row(seen % 2), 1.0 - (seen % 2) as f64));
                    seen += 1;
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, 4);
    }

    #[test]
    fn unknown_endings_are_refused() {
        let error = Sheet::create(Some(Path::new("x.xlsx")), Layout::default()).err().unwrap();
        assert!(error.to_string().contains(".xlsx"), "{error}");
    }
}
