//! Which file, which columns, what about empty cells: the options commands share that read data.

use crate::listed;
use bochner::catalogue::Word;
use bochner_table::failure::Outcome;
use bochner_table::read::{Data, Input, Largest, Missing, Options, Selection};
use std::path::Path;

/// How text is read.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Text {
    /// The first row of text holds names [default: look and see]
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// The first row of text holds data
    #[arg(long)]
    no_header: bool,
    /// Character between fields: a comma, a semicolon, a bar, a blank, tab … [default: look and see]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_separator)]
    separator: Option<u8>,
    /// Encoding of text: utf-8, latin-1, windows-1250, utf-16, shift_jis … [default: look and see]
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,
}

fn parse_separator(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        "space" | "blank" => Ok(b' '),
        "comma" => Ok(b','),
        _ if text.len() == 1 && text.is_ascii() && !text.starts_with(['"', '\n', '\r']) => Ok(text.as_bytes()[0]),
        _ => Err(format!("expected one character, or tab, got {text:?}")),
    }
}

impl Text {
    pub(crate) fn options(&self) -> Options {
        let header = match (self.header, self.no_header) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        Options { header, separator: self.separator, encoding: self.encoding.clone(), ..Options::default() }
    }
}

/// What fills empty cells in.
const FILLINGS: &[Word] = &[
    Word::new("mark", "The column's median, and a one in a column of its own; words that are missing are a category"),
    Word::new("mean", "The column's mean"),
    Word::new("median", "The column's median"),
    Word::new("zero", "Zero"),
    Word::new("refuse", "Nothing: stop at the first one"),
];

/// Columns, and empty cells in them.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Columns")]
pub(crate) struct Columns {
    /// Columns to learn from, by name or number, separated by commas [default: all others, but for those that say nothing about
    /// other rows: identifiers, names, constants]
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    columns: Option<Vec<String>>,
    /// Columns to leave out (names, identifiers), separated by commas
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    drop: Vec<String>,
    /// Columns that hold categories although their cells are numbers, dates or names, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "COLUMN")]
    categories: Vec<String>,
    /// What empty cells become [default: mark]
    #[arg(long, value_parser = listed::words::<Missing>(FILLINGS), conflicts_with = "drop_missing")]
    impute: Option<Missing>,
    /// Leave rows with empty cells out
    #[arg(long)]
    drop_missing: bool,
    /// Cells that stand for nothing, beside empty ones, separated by commas [default: ? NA N/A NaN null; among numbers - . None too]
    #[arg(long, value_delimiter = ',', value_name = "WORD", allow_hyphen_values = true)]
    missing_markers: Option<Vec<String>>,
    /// Days come before months in dates such as 03/04/2020 [default: as other rows tell]
    #[arg(long)]
    day_first: bool,
}

impl Columns {
    pub(crate) fn missing(&self) -> Missing {
        self.asked().unwrap_or(Missing::Mark)
    }

    /// What empty cells become, if somebody has said so.
    pub(crate) fn asked(&self) -> Option<Missing> {
        self.impute.or(self.drop_missing.then_some(Missing::Drop))
    }

    pub(crate) fn open(
        &self,
        data: &Path,
        labels: Option<&Path>,
        targets: &[String],
        text: &Text,
        largest: Largest,
        sift: bool,
    ) -> Outcome<Data> {
        let options = Options { sift, ..self.options(text, largest) };
        let labels = labels.map(Input::open).transpose()?;
        Ok(Data::open(Input::open(data)?, labels, &self.selection(targets), &options)?)
    }

    fn selection(&self, targets: &[String]) -> Selection {
        Selection {
            targets: targets.to_vec(),
            inputs: self.columns.clone(),
            drop: self.drop.clone(),
            words: self.categories.clone(),
            ..Selection::default()
        }
    }

    /// How cells are read.
    pub(crate) fn options(&self, text: &Text, largest: Largest) -> Options {
        let (markers, day_first) = (self.missing_markers.clone(), self.day_first.then_some(true));
        let (missing, largest) = (self.missing(), Some(largest));
        Options { missing, largest, markers, day_first, ..text.options() }
    }

    /// Opens a file with these columns, whatever `--columns` says.
    pub(crate) fn open_these(&self, data: &Path, columns: Vec<String>, text: &Text, largest: Largest) -> Outcome<Data> {
        let selection = Selection { inputs: Some(columns), ..self.selection(&[]) };
        Ok(Data::open(Input::open(data)?, None, &selection, &self.options(text, largest))?)
    }
}
