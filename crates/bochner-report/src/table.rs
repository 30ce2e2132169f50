//! One table, four faces: aligned text for people, JSON and CSV for programs, HTML for the report.
//!
//! ```
//! use bochner_report::table::{Show, Table};
//! let mut table = Table::new("").words("map", "map").numbers("count", "D").column("error", "error", Show::Percent(1));
//! table.add(&[&"Fourier", &1024_usize, &0.125]);
//! table.add(&[&"none", &None::<usize>, &0.5]);
//! assert!(table.to_text(false).contains("Fourier   1,024   12.5 %"));
//! assert_eq!(table.to_csv(), "map,count,error\nFourier,1024,0.125\nnone,,0.5\n");
//! ```

use bochner::words;
use serde_json::Value;
use std::fmt::Write;

/// Who reads a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// People.
    #[default]
    Text,
    Json,
    Csv,
}

impl Format {
    /// Whether a program, not a person, reads.
    pub fn for_programs(self) -> bool {
        self != Format::Text
    }
}

/// How a cell is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    /// A bar was met.
    Good,
    /// A bar was missed.
    Bad,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "32",
            Tone::Bad => "31",
        }
    }
}

/// What a person reads and what a program reads.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    value: Value,
    tone: Tone,
}

impl Cell {
    fn new(text: impl Into<String>, value: impl Into<Value>) -> Self {
        Cell { text: text.into(), value: value.into(), tone: Tone::Plain }
    }

    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Cell::new(text.clone(), text)
    }

    pub fn count(n: usize) -> Self {
        Cell::new(words::count(n), n)
    }

    /// A number with so many significant digits for people, all of them for programs.
    pub fn number(value: f64, digits: usize) -> Self {
        Cell::new(words::significant(value, digits), value)
    }

    /// A number with so many decimals, for columns that line up at the point.
    pub fn fixed(value: f64, decimals: usize) -> Self {
        Cell::new(format!("{value:.decimals$}"), value)
    }

    /// A fraction shown as a percentage.
    pub fn percent(fraction: f64, decimals: usize) -> Self {
        Cell::new(format!("{:.decimals$} %", 100.0 * fraction), fraction)
    }

    /// Seconds.
    pub fn duration(seconds: f64) -> Self {
        Cell::new(words::duration(seconds), seconds)
    }

    /// Bytes.
    pub fn bytes(bytes: u64) -> Self {
        Cell::new(words::rate(bytes as f64, "B"), bytes)
    }

    /// Nothing to show, and why (`n/a`, `no closed form`).
    pub fn missing(why: &str) -> Self {
        Cell::new(why, Value::Null)
    }

    #[must_use]
    pub fn toned(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// How the numbers of a column are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// With so many significant digits.
    Number(usize),
    /// With so many decimals.
    Fixed(usize),
    /// A fraction as a percentage with so many decimals.
    Percent(usize),
    /// Seconds.
    Duration,
}

impl Show {
    /// The cell of a number.
    pub fn cell(self, value: f64) -> Cell {
        match self {
            Show::Number(digits) => Cell::number(value, digits),
            Show::Fixed(decimals) => Cell::fixed(value, decimals),
            Show::Percent(decimals) => Cell::percent(value, decimals),
            Show::Duration => Cell::duration(value),
        }
    }
}

/// What [`Table::add`] takes: words, counts, numbers that are shown as their column says, nothing.
pub trait Entry {
    fn cell(&self, show: Show) -> Cell;
}

impl Entry for &str {
    fn cell(&self, _: Show) -> Cell {
        Cell::text(*self)
    }
}

impl Entry for String {
    fn cell(&self, _: Show) -> Cell {
        Cell::text(self)
    }
}

impl Entry for usize {
    fn cell(&self, _: Show) -> Cell {
        Cell::count(*self)
    }
}

impl Entry for f64 {
    fn cell(&self, show: Show) -> Cell {
        show.cell(*self)
    }
}

impl Entry for Cell {
    fn cell(&self, _: Show) -> Cell {
        self.clone()
    }
}

impl<E: Entry> Entry for Option<E> {
    fn cell(&self, show: Show) -> Cell {
        self.as_ref().map_or_else(|| Cell::missing("–"), |entry| entry.cell(show))
    }
}

#[derive(Debug, Clone)]
struct Column {
    /// Name for programs: `length_scale`, with its unit where it has one.
    key: String,
    /// Heading for people.
    heading: String,
    numeric: bool,
    show: Show,
}

/// Rows of cells under headings.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub title: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Rows above which a thin line is drawn.
    breaks: Vec<usize>,
    /// The least widths of the columns as text.
    least: Vec<usize>,
    /// What programs are told beside the rows, and people by the title; and what the rows are then called.
    facts: Option<(&'static str, Vec<(String, Value)>)>,
}

impl Table {
    pub fn new(title: impl Into<String>) -> Self {
        Table { title: title.into(), ..Table::default() }
    }

    fn with(mut self, key: &str, heading: &str, numeric: bool, show: Show) -> Self {
        self.columns.push(Column { key: key.into(), heading: heading.into(), numeric, show });
        self
    }

    /// A column of words.
    #[must_use]
    pub fn words(self, key: &str, heading: &str) -> Self {
        self.with(key, heading, false, Show::Number(6))
    }

    /// A column of numbers.
    #[must_use]
    pub fn numbers(self, key: &str, heading: &str) -> Self {
        self.with(key, heading, true, Show::Number(6))
    }

    /// A column of numbers that are all shown in the same way.
    #[must_use]
    pub fn column(self, key: &str, heading: &str, show: Show) -> Self {
        self.with(key, heading, true, show)
    }

    /// What holds for all rows, for programs, to whom a title says nothing: fields of an object beside `rows` in JSON,
    /// columns in CSV.
    #[must_use]
    pub fn with_facts(mut self, rows: &'static str, facts: Vec<(String, Value)>) -> Self {
        self.facts = Some((rows, facts));
        self
    }

    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row of {:?} has the wrong length", self.title);
        self.rows.push(row);
    }

    /// Adds a row whose numbers are shown as their columns say.
    pub fn add(&mut self, row: &[&dyn Entry]) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row of {:?} has the wrong length", self.title);
        self.push(row.iter().zip(&self.columns).map(|(entry, column)| entry.cell(column.show)).collect());
    }

    /// Columns of text that are at least so wide: for rows that are shown before others are known.
    #[must_use]
    pub fn with_widths(mut self, least: &[usize]) -> Self {
        self.least = least.to_vec();
        self
    }

    /// Starts a new group of rows.
    pub fn start_group(&mut self) {
        if !self.rows.is_empty() {
            self.breaks.push(self.rows.len());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The table in the format asked for; text is colored where `color`.
    pub fn to(&self, format: Format, color: bool) -> String {
        match format {
            Format::Text => self.to_text(color),
            Format::Json => format!("{:#}\n", self.to_json()),
            Format::Csv => self.to_csv(),
        }
    }

    /// What comes after the first `shown` rows of the table as text or CSV, headings included where there are none: for tables
    /// that are shown as they grow.
    pub fn to_after(&self, shown: usize, format: Format, color: bool) -> String {
        match (format, shown) {
            (Format::Text, _) => self.text_after(shown, color),
            (_, 0) => self.to(format, color),
            _ => {
                let rest = Table { rows: self.rows.get(shown..).unwrap_or_default().to_vec(), ..self.clone() };
                rest.to(format, color).split_once('\n').map_or(String::new(), |(_, rows)| rows.to_owned())
            }
        }
    }

    /// Aligned text; headings bold and verdicts colored where `color`.
    pub fn to_text(&self, color: bool) -> String {
        self.text_after(0, color)
    }

    fn text_after(&self, shown: usize, color: bool) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|j| {
                let cells = self.rows.iter().map(|row| width(&row[j].text));
                let least = self.least.get(j).copied().unwrap_or(0);
                cells.chain([width(&self.columns[j].heading), least]).max().unwrap_or(0)
            })
            .collect();
        let line = |cells: &mut dyn Iterator<Item = (&str, &str)>| {
            let mut line = String::new();
            for (j, (text, code)) in cells.enumerate() {
                let fill = " ".repeat(widths[j] - width(text) + if j == 0 { 0 } else { GAP });
                let painted = paint(text, code, color);
                match (self.columns[j].numeric, j) {
                    (true, _) => line.extend([fill, painted]),
                    (false, 0) => line.extend([painted, fill]),
                    (false, _) => line.extend([" ".repeat(GAP), painted, fill[GAP..].to_owned()]),
                }
            }
            format!("{}\n", line.trim_end())
        };
        let rule = "─".repeat(widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1));
        let rule = format!("{}\n", paint(&rule, "2", color));
        let mut text = String::new();
        if shown == 0 {
            if !self.title.is_empty() {
                text.extend([paint(&self.title, "1", color).as_str(), "\n\n"]);
            }
            text.push_str(&line(&mut self.columns.iter().map(|c| (c.heading.as_str(), "1"))));
            text.push_str(&rule);
        }
        for (i, row) in self.rows.iter().enumerate().skip(shown) {
            if self.breaks.contains(&i) {
                text.push_str(&rule);
            }
            text.push_str(&line(&mut row.iter().map(|c| (c.text.as_str(), c.tone.code()))));
        }
        text
    }

    /// An array with one object per row, or an object that has it beside the facts.
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let fields = self.columns.iter().zip(row).map(|(column, cell)| (column.key.clone(), cell.value.clone()));
            Value::Object(fields.collect())
        });
        let rows = Value::Array(rows.collect());
        match &self.facts {
            None => rows,
            Some((name, facts)) => Value::Object(facts.iter().cloned().chain([((*name).to_owned(), rows)]).collect()),
        }
    }

    /// A header and one line per row (RFC 4180); numbers with all their digits.
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        let mut line = |fields: &mut dyn Iterator<Item = String>| {
            let fields: Vec<_> = fields.map(|f| quote(&f)).collect();
            text.push_str(&fields.join(","));
            text.push('\n');
        };
        let field = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let facts = || self.facts.iter().flat_map(|(_, facts)| facts);
        line(&mut self.columns.iter().map(|c| &c.key).chain(facts().map(|(key, _)| key)).cloned());
        for row in &self.rows {
            line(&mut row.iter().map(|cell| &cell.value).chain(facts().map(|(_, value)| value)).map(field));
        }
        text
    }

    /// A `<table>`, wrapped so that a narrow screen scrolls the table and not the page.
    pub fn to_html(&self) -> String {
        let class = |j: usize| if self.columns[j].numeric { " class=n" } else { "" };
        let mut html = String::from("<div class=scroll><table>\n");
        if !self.title.is_empty() {
            let _ = writeln!(html, "<caption>{}</caption>", escape(&self.title));
        }
        html.push_str("<thead><tr>");
        for (j, column) in self.columns.iter().enumerate() {
            let _ = write!(html, "<th scope=col{}>{}</th>", class(j), escape(&column.heading));
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        for (i, row) in self.rows.iter().enumerate() {
            html.push_str(if self.breaks.contains(&i) { "<tr class=break>" } else { "<tr>" });
            for (j, cell) in row.iter().enumerate() {
                let (open, close) = match cell.tone {
                    Tone::Plain => ("", ""),
                    Tone::Good => ("<b class=good>", "</b>"),
                    Tone::Bad => ("<b class=bad>", "</b>"),
                };
                // A line may end before a percentage, not within it.
                let text = escape(&cell.text).replace(" %", "\u{a0}%");
                let _ = write!(html, "<td{}>{open}{text}{close}</td>", class(j));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

/// Spaces between columns.
const GAP: usize = 3;

fn width(text: &str) -> usize {
    text.chars().count()
}

fn paint(text: &str, code: &str, color: bool) -> String {
    if color && !code.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Text for HTML and SVG.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Control characters are not allowed in XML, not even escaped.
            c if c.is_control() && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("Two maps").words("map", "map").numbers("time_s", "time");
        table.push(vec![Cell::text("dense, \"plain\""), Cell::duration(0.25)]);
        table.start_group();
        table.push(vec![Cell::text("<é>"), Cell::missing("–")]);
        table
    }

    #[test]
    fn text_is_aligned_and_has_no_trailing_spaces() {
        let rule = "─".repeat(14 + 3 + 6);
        let expected = format!(
            "Two maps\n\nmap                time\n{rule}\ndense, \"plain\"   250 ms\n{rule}\n<é>                   –\n"
        );
        assert_eq!(table().to_text(false), expected);
    }

    #[test]
    fn color_changes_nothing_but_escape_sequences() {
        let mut plain = String::new();
        let colored = table().to_text(true);
        let mut rest = colored.as_str();
        while let Some(start) = rest.find('\x1b') {
            plain.push_str(&rest[..start]);
            rest = &rest[start + rest[start..].find('m').unwrap() + 1..];
        }
        plain.push_str(rest);
        assert_ne!(colored, plain);
        assert_eq!(plain, table().to_text(false));
    }

    #[test]
    fn programs_get_full_numbers_quoted_fields_and_nulls() {
        assert_eq!(table().to_csv(), "map,time_s\n\"dense, \"\"plain\"\"\",0.25\n<é>,\n");
        let json = table().to_json();
        assert_eq!(json[0]["time_s"], 0.25);
        assert!(json[1]["time_s"].is_null());
    }

    #[test]
    fn what_holds_for_all_rows_stands_beside_them() {
        let told = table().with_facts("maps", vec![("kernel".to_owned(), "gaussian".into())]);
        assert_eq!(told.to_text(false), table().to_text(false), "people read it in the title");
        let json = told.to_json();
        assert_eq!((&json["kernel"], &json["maps"]), (&"gaussian".into(), &table().to_json()));
        assert_eq!(told.to_csv(), "map,time_s,kernel\n\"dense, \"\"plain\"\"\",0.25,gaussian\n<é>,,gaussian\n");
    }

    #[test]
    fn html_is_escaped() {
        let html = table().to_html();
        assert!(html.contains("&lt;é&gt;") && !html.contains("<é>"));
        assert!(html.contains("<tr class=break>"));
    }
}
