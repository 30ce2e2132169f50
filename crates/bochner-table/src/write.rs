//! Tables on their way out, block by block: CSV, TSV, NPY or Parquet, by the name of the file.

mod parquet;

use crate::failure::{Failure, Outcome};
use crate::output::{self, WholeFile};
use ndarray::ArrayView2;
use std::io::{self, BufWriter, Stdout, Write};
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

enum Sink {
    File(WholeFile),
    Standard(BufWriter<Stdout>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Standard(out) => out.flush(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text(u8),
    Npy,
    Parquet,
}

/// The file asked for; `-` is standard output.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|p| *p != Path::new("-"))
}

fn form(path: Option<&Path>) -> Outcome<Form> {
    let extension = path.and_then(|p| p.extension()).map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        None | Some("csv" | "txt") => Ok(Form::Text(b',')),
        Some("tsv") => Ok(Form::Text(b'\t')),
        Some("npy") => Ok(Form::Npy),
        Some("parquet") => Ok(Form::Parquet),
        Some(other) => {
            Err(Failure::Usage(format!("files ending in .{other} cannot be written; use .csv, .tsv, .npy or .parquet")))
        }
    }
}

/// Refuses, before any work is done, a table that could not be written after it.
pub fn check(path: Option<&Path>) -> Outcome {
    form(named(path))?;
    named(path).map_or(Ok(()), output::check_file)
}

/// A table being written.
pub(crate) struct Sheet {
    sink: Sink,
    form: Form,
    layout: Layout,
    rows: usize,
    buffer: Vec<u8>,
    name: String,
    parquet: Option<parquet::Parquet>,
}

impl Sheet {
    /// A file, or standard output (as CSV) for `None` and `-`.
    pub(crate) fn create(path: Option<&Path>, layout: Layout) -> Outcome<Self> {
        let path = named(path);
        let form = form(path)?;
        if form == Form::Npy && layout.words.is_some() && !layout.numbers.is_empty() {
            return Err(Failure::Usage(
                "an .npy file holds words or numbers, not both; write a .csv file for labels beside numbers".into(),
            ));
        }
        let name = path.map_or("standard output".to_owned(), |p| p.display().to_string());
        let sink = match path {
            Some(path) => Sink::File(WholeFile::create(path)?),
            None => Sink::Standard(BufWriter::with_capacity(1 << 16, io::stdout())),
        };
        let mut sheet = Sheet { sink, form, layout, rows: 0, buffer: Vec::new(), name, parquet: None };
        match form {
            Form::Text(separator) => {
                let words = sheet.layout.words.iter().map(|(name, _)| name.as_str());
                let names: Vec<String> = words
                    .chain(sheet.layout.numbers.iter().map(String::as_str))
                    .map(|n| quoted(n, separator))
                    .collect();
                let line = names.join(&char::from(separator).to_string());
                sheet.put(format!("{line}\n").as_bytes())?;
            }
            Form::Npy => {
                let header = sheet.header();
                sheet.put(&header)?;
            }
            Form::Parquet => {
                let (parquet, start) = parquet::Parquet::new(&sheet.layout);
                sheet.parquet = Some(parquet);
                sheet.put(&start)?;
            }
        }
        Ok(sheet)
    }

    fn put(&mut self, bytes: &[u8]) -> Outcome {
        self.sink.write_all(bytes).map_err(|e| told(&self.name, e))
    }

    /// Length of the longest word, in characters.
    fn longest(&self) -> usize {
        let words = self.layout.words.iter().flat_map(|(_, words)| words);
        words.map(|w| w.chars().count()).max().unwrap_or(1).max(1)
    }

    /// The head of an NPY file, of the same length for any number of rows.
    fn header(&self) -> Vec<u8> {
        let (kind, columns) = match &self.layout.words {
            Some(_) => (format!("<U{}", self.longest()), 1),
            None => (if self.layout.single { "<f4" } else { "<f8" }.to_owned(), self.layout.numbers.len()),
        };
        let shape = if columns == 1 { format!("({},)", self.rows) } else { format!("({}, {columns})", self.rows) };
        let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        // 128 bytes in all: numpy wants a multiple of 64, and twenty digits of rows fit.
        while text.len() < 117 {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    /// Writes rows.
    pub(crate) fn push(&mut self, block: Block<'_>) -> Outcome {
        let n = block.numbers.nrows();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        if let Some(parquet) = &mut self.parquet {
            parquet.push(&self.layout, block, &mut buffer);
            self.put(&buffer)?;
            self.buffer = buffer;
            self.rows += n;
            return Ok(());
        }
        let words = self.layout.words.as_ref().map(|(_, words)| words.as_slice()).unwrap_or(&[]);
        let longest = self.longest();
        for i in 0..n {
            let word = block.words.and_then(|w| words.get(*w.get(i)?));
            let row = block.numbers.row(i);
            match self.form {
                Form::Text(separator) => {
                    let mut first = true;
                    if let Some(word) = word {
                        buffer.extend(quoted(word, separator).bytes());
                        first = false;
                    }
                    for &value in row {
                        if !first {
                            buffer.push(separator);
                        }
                        first = false;
                        let written = match self.layout.single {
                            true => write!(buffer, "{}", value as f32),
                            false => write!(buffer, "{value}"),
                        };
                        written.map_err(|e| told(&self.name, e))?;
                    }
                    buffer.push(b'\n');
                }
                Form::Npy => match word {
                    Some(word) => {
                        let mut length = 0;
                        for c in word.chars() {
                            buffer.extend((c as u32).to_le_bytes());
                            length += 1;
                        }
                        buffer.resize(buffer.len() + 4 * (longest - length), 0);
                    }
                    None if self.layout.single => row.iter().for_each(|v| buffer.extend((*v as f32).to_le_bytes())),
                    None => row.iter().for_each(|v| buffer.extend(v.to_le_bytes())),
                },
                Form::Parquet => {}
            }
            if buffer.len() > 1 << 18 {
                self.sink.write_all(&buffer).map_err(|e| told(&self.name, e))?;
                buffer.clear();
            }
        }
        self.put(&buffer)?;
        self.buffer = buffer;
        self.rows += n;
        Ok(())
    }

    /// Hands over what has been written to whoever waits for it.
    pub(crate) fn flush(&mut self) -> Outcome {
        self.sink.flush().map_err(|e| told(&self.name, e))
    }

    /// Number of rows written.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Outcome {
        if self.form == Form::Npy {
            let header = self.header();
            if let Sink::File(file) = &mut self.sink {
                file.rewrite_start(&header).map_err(|e| told(&self.name, e))?;
            }
        }
        if let Some(parquet) = self.parquet.take() {
            let mut end = Vec::new();
            parquet.finish(&self.layout, &mut end);
            self.put(&end)?;
        }
        match self.sink {
            Sink::File(file) => file.finish(),
            Sink::Standard(mut out) => Ok(out.flush()?),
        }
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
