//! Comma-, tab-, semicolon-, bar- or blank-separated text (RFC 4180 quoting), plain or gzip.
//!
//! The first rows decide separator, header and kinds of columns. A table of numbers is then read in one pass; words and
//! filled-in means need one more pass, before it, over all rows.

use super::chunks::{BYTE_ORDER_MARK, Buffer, Chunks, Lines, Quotes, SEPARATORS};
use super::columns::{Cellular, Columns, Parsed, Role, Trouble, check_names, option_name};
use super::fault::{Fault, excerpt};
use super::figures;
use super::findings::{Facts, Findings};
use super::input::Input;
use super::judge::{Circumstances, Judged, Reading, Verdict, is_missing, judge, parse_number};
use super::schema::{Chosen, Kind, Schema, Selection, numbered};
use super::{About, Element, Format, Openable, Options, Result, Table, Visit, rows_of, times, words};
use crate::write::Text;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;

pub(super) const FORMAT: Format = Format {
    text: true,
    streams: true,
    writes: &[("csv", |_| Ok(Box::new(Text(b',')))), ("tsv", |_| Ok(Box::new(Text(b'\t'))))],
    ..Format::table::<Csv>("CSV, TSV", |_, _| true)
};

/// Rows looked at before the kinds of columns are decided.
const SAMPLE_ROWS: usize = 1000;

/// Cells that may show, one after the other, that a column is not what the first rows make of it.
const MOST_SURPRISES: usize = 100;

/// The place of a column that nobody wants.
const NOWHERE: usize = usize::MAX;

/// A row as it is written.
#[derive(Debug)]
struct Record {
    fields: Vec<Vec<u8>>,
    /// Number of its first line, counted from 1.
    line: u64,
    /// Where the next one begins.
    end: usize,
}

/// A file whose columns are understood.
#[derive(Debug)]
pub(super) struct Csv {
    text: Source,
    columns: Columns,
    /// Where a number of each column goes among the inputs of a row and the targets behind them, if all columns that are wanted
    /// are plain numbers.
    places: Option<Vec<usize>>,
}

/// A file whose way of writing is understood.
#[derive(Debug)]
struct Source {
    input: Input,
    dialect: Dialect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dialect {
    /// `b' '` stands for runs of blanks and tabs.
    separator: u8,
    header: bool,
    /// Lines before the first row: comments, blank lines and the header.
    skipped_bytes: usize,
    skipped_lines: u64,
    /// Of the first rows, in the mean.
    row_bytes: usize,
}

impl Csv {
    fn new(text: Source, columns: Columns) -> Self {
        let place = |role: &Role| match role {
            Role::Number { place, reading, .. } => reading.is_plain().then_some(*place),
            Role::Skip => Some(NOWHERE),
            Role::Words { .. } | Role::Time { .. } => None,
        };
        let places = columns.roles.iter().map(place).collect();
        Csv { text, columns, places }
    }
}

/// The only target, if it holds whole numbers of which some are written otherwise than they would be printed, as far as
/// the first rows tell: such numbers are the names of classes (007), which a model has to give back as they are.
///
/// 1.0 for 1 says nothing that 1 does not, and +1 is a sign: these stay numbers. So do inputs: what their zeros at the
/// beginning say, the number says too.
fn code_target(chosen: &Chosen, sample: &[Record]) -> Option<usize> {
    let &[j] = &chosen.targets[..] else { return None };
    let cells = || sample.iter().filter_map(|r| r.fields.get(j)).filter(|f| !is_missing(f));
    (cells().any(|f| words::is_code(f)) && cells().all(|f| words::is_whole(f))).then_some(j)
}

impl Source {
    /// How the cells of all chosen columns are read, by the first rows and by cells of later ones that were a surprise, and what
    /// should be told about it; one report of all columns that cannot be.
    fn judge(
        &self,
        names: &[String],
        chosen: &Chosen,
        sample: &[Record],
        surprises: &[(usize, u64, Box<[u8]>)],
        options: &Options,
    ) -> Result<(Vec<Reading>, Vec<Option<String>>)> {
        let given = Reading { verdict: Verdict::Number(None), markers: options.markers.clone() };
        let all = |comma_elsewhere: bool| {
            let mut judged: Vec<Option<Judged>> = vec![None; names.len()];
            let mut faults: Vec<Fault> = Vec::new();
            for &j in chosen.inputs.iter().chain(&chosen.targets) {
                if chosen.words.contains(&j) {
                    judged[j] = Some(Judged { verdict: Verdict::Words, marker: None, remark: None });
                    continue;
                }
                let late =
                    surprises.iter().filter(|surprise| surprise.0 == j).map(|(_, line, cell)| (*line, &cell[..]));
                let cells = sample.iter().filter_map(|r| Some((r.line, &r.fields.get(j)?[..]))).chain(late);
                let (lines, cells): (Vec<u64>, Vec<&[u8]>) = cells.filter(|(_, cell)| !given.is_gap(cell)).unzip();
                let about = Circumstances {
                    lenient: options.missing.fills() && !chosen.targets.contains(&j),
                    comma: self.dialect.separator == b';',
                    comma_elsewhere,
                    day_first: options.day_first,
                    option: &option_name(names, j),
                };
                let mut refuse = |at: usize, message: String| {
                    faults.push(self.fault(names, Trouble::of_cell((lines[at], j), message), 0));
                };
                match judge(&cells, about) {
                    Ok(Judged { verdict: Verdict::Time { .. }, .. }) if chosen.targets.contains(&j) => {
                        refuse(0, words::dates_cannot_be_predicted(&excerpt(cells[0]), about.option));
                    }
                    Ok(found) => judged[j] = Some(found),
                    Err((at, message)) => refuse(at, message),
                }
            }
            (judged, faults)
        };
        let (mut judged, mut faults) = all(false);
        let has_comma = |judged: &Judged| matches!(&judged.verdict, Verdict::Number(Some(writing)) if writing.comma);
        if judged.iter().flatten().any(has_comma) {
            (judged, faults) = all(true);
        }
        if let Some(report) = Fault::all_of(faults) {
            return Err(report.into());
        }
        let reading = |judged: &Option<Judged>| match judged {
            Some(judged) => judged.reading(options.markers.as_ref()),
            None => Reading::PLAIN,
        };
        Ok((judged.iter().map(reading).collect(), judged.iter().map(|j| j.as_ref()?.remark.clone()).collect()))
    }

    /// What all rows say about the chosen columns; or a cell that is not what its column was taken for.
    fn scan(
        &self,
        names: &[String],
        readings: &[Reading],
        chosen: &Chosen,
        options: &Options,
    ) -> Result<std::result::Result<Vec<Option<Facts>>, (usize, u64, Box<[u8]>)>> {
        let mut empty = vec![None; names.len()];
        for &j in chosen.inputs.iter().chain(&chosen.targets) {
            empty[j] = Some(Facts::new(&readings[j].verdict, options.missing, chosen.inputs.len()));
        }
        let mut facts = empty.clone();
        let parse = |bytes: &[u8], found: &mut Vec<Option<Facts>>| {
            found.clone_from(&empty);
            self.scan_chunk(bytes, readings, found)
        };
        let surprise = RefCell::new(None);
        let locate = |mut trouble: Trouble, before| {
            if let (Some(cell), Some(line), Some(column)) = (trouble.contradiction.take(), trouble.line, trouble.column)
            {
                *surprise.borrow_mut() = Some((column, before + line, cell));
            }
            self.fault(names, trouble, before).into()
        };
        let ended = self.lines().parse_in_order(parse, locate, |found, _| {
            for (all, part) in facts.iter_mut().zip(found) {
                if let (Some(all), Some(part)) = (all, part.take()) {
                    all.merge(part);
                }
            }
            Ok(())
        });
        match surprise.into_inner() {
            Some(surprise) => Ok(Err(surprise)),
            None => ended.map(|()| Ok(facts)),
        }
    }

    fn scan_chunk(&self, bytes: &[u8], readings: &[Reading], facts: &mut [Option<Facts>]) -> Result<u64, Trouble> {
        let columns = facts.len();
        let place = |(j, fact): (usize, &Option<Facts>)| match fact {
            None => Some(NOWHERE),
            Some(_) => readings[j].is_plain().then_some(j),
        };
        let places: Option<Vec<usize>> = facts.iter().enumerate().map(place).collect();
        let places = places.filter(|_| self.dialect.separator != b' ');
        let take_row = row_taker(places.as_deref());
        let mut numbers = vec![0.0; columns];
        let mut scanner = Scanner::new(bytes, self.dialect.separator);
        while scanner.next_row() {
            if let Some(places) = &places
                && let Some((end, _)) = take_row(&scanner, places, None, &mut numbers)
            {
                for (fact, value) in facts.iter_mut().zip(&numbers) {
                    fact.iter_mut().for_each(|fact| fact.add_number(*value));
                }
                scanner.at = end;
                continue;
            }
            for (j, fact) in facts.iter_mut().enumerate() {
                let Some(fact) = fact else {
                    scanner.field(j, columns)?;
                    continue;
                };
                let (start, reading) = (scanner.at, &readings[j]);
                if reading.verdict == Verdict::Words {
                    let field = scanner.field(j, columns)?;
                    match reading.is_gap(&field) {
                        true => fact.add_gap(&field),
                        false => fact.add_word(word(&field).map_err(|message| scanner.trouble(j, message))?),
                    }
                } else {
                    // A chunk has too few rows for its values to be thinned out here.
                    match scanner.number(j, columns, reading)? {
                        Some(value) => fact.add_number(value),
                        None => fact.add_gap(scanner.taken_from(start)),
                    }
                }
            }
        }
        Ok(scanner.next_line - 1)
    }

    fn lines(&self) -> Lines<'_> {
        let Dialect { separator, skipped_bytes, skipped_lines, row_bytes, .. } = self.dialect;
        let skip = (skipped_bytes as u64, skipped_lines);
        Lines { input: &self.input, skip, quotes: Quotes::After(separator), row_bytes }
    }

    fn fault(&self, names: &[String], trouble: Trouble, lines_before: u64) -> Fault {
        let name = |j: usize| if self.dialect.header { names.get(j).cloned() } else { None };
        Fault {
            file: self.input.name.clone(),
            line: trouble.line.map(|l| lines_before + l),
            column: trouble.column.map(|j| (j + 1, name(j))),
            message: trouble.message,
        }
    }

    /// The columns asked for. Where all of a line is one column, it may be for want of the right separator; where they have no
    /// names, for want of a header.
    fn resolve(&self, selection: &Selection, names: &[String], options: &Options) -> Result<Chosen> {
        let input = &self.input;
        let hint = match self.dialect.header || options.header.is_some() {
            true => "",
            false => ", as no header was found; --header takes the first row for one",
        };
        selection.resolve_or(&input.name, names, hint).map_err(|error| match names {
            [_] => {
                let file = format!("{}: ", input.name);
                let told = error.to_string();
                let told = told.strip_prefix(&file).unwrap_or(&told);
                input.fault(format!("{told}; if there are more, --separator CHARACTER says what stands between them"))
            }
            _ => error,
        })
    }
}

impl Cellular for Csv {
    fn parts(&self) -> (&Input, &Columns) {
        (&self.text.input, &self.columns)
    }

    fn locate(&self, trouble: Trouble, lines_before: u64) -> Fault {
        self.text.fault(&self.columns.names, trouble, lines_before)
    }

    fn filled(&self, _: Option<usize>) -> Option<(Vec<bool>, u64)> {
        let columns = self.columns.roles.len();
        let (mut filled, mut rows) = (vec![false; columns], 0);
        let parse = |bytes: &[u8], found: &mut (Vec<bool>, u64)| {
            *found = (vec![false; columns], 0);
            let mut scanner = Scanner::new(bytes, self.text.dialect.separator);
            while scanner.next_row() {
                for j in 0..columns {
                    found.0[j] |= !is_missing(&scanner.field(j, columns)?);
                }
                found.1 += 1;
            }
            Ok(0)
        };
        let blame = |trouble, before| self.locate(trouble, before).into();
        let ended = self.text.lines().parse_in_order(parse, blame, |found, _| {
            filled.iter_mut().zip(&found.0).for_each(|(all, some)| *all |= some);
            rows += found.1;
            Ok(())
        });
        ended.is_ok().then_some((filled, rows))
    }
}

impl Openable for Csv {
    fn open(input: Input, selection: &Selection, options: &Options) -> Result<Self> {
        let asked_for = selection.inputs.iter().flatten();
        let asked_for = || asked_for.clone().chain(&selection.targets).chain(&selection.drop).chain(&selection.words);
        // Years, numbers of wavelengths: measurements are hardly ever all whole.
        let judge = |first: &FirstRow<'_>| {
            let named = first.fields.iter().all(|cell| parse_number(cell).is_none() || words::is_whole(cell))
                && asked_for().any(|name| first.has(name));
            named.then_some(true)
        };
        let (text, names, sample) = look(input, options, judge)?;
        let chosen = text.resolve(selection, &names, options)?;
        let (mut surprises, mut coded) = (Vec::new(), true);
        loop {
            let (mut readings, remarks) = text.judge(&names, &chosen, &sample, &surprises, options)?;
            let code = code_target(&chosen, &sample).filter(|j| coded && readings[*j].verdict == Verdict::Number(None));
            code.into_iter().for_each(|j| readings[j].verdict = Verdict::Words);
            let plain = |j: &usize| readings[*j] == Reading::PLAIN;
            let (header, rows) = (text.dialect.header, sample.len() as u64);
            if !options.missing.learns() && !options.sift && chosen.inputs.iter().chain(&chosen.targets).all(plain) {
                let findings = Findings { readings, remarks, facts: Vec::new(), header, rows };
                return Ok(Csv::new(text, Columns::learned(names, chosen, &findings, options)));
            }
            match text.scan(&names, &readings, &chosen, options)? {
                // So many different ones are no classes: numbers filled up with zeros to the same length.
                Ok(facts) if code.is_some_and(|j| facts[j].as_ref().is_some_and(Facts::are_no_classes)) => {
                    coded = false
                }
                Ok(facts) => {
                    let findings = Findings { readings, remarks, facts, header, rows };
                    return Ok(Csv::new(text, Columns::learned(names, chosen, &findings, options)));
                }
                Err((j, line, cell)) if surprises.len() >= MOST_SURPRISES => {
                    let trouble = Trouble::of_cell((line, j), not_as_expected(&readings[j], &cell));
                    return Err(text.fault(&names, trouble, 0).into());
                }
                Err(surprise) => surprises.push(surprise),
            }
        }
    }

    /// By name where there is a header, else by position.
    fn open_with(input: Input, schema: Schema, options: &Options) -> Result<Self> {
        let judge = |first: &FirstRow<'_>| {
            let mut names = schema.inputs.iter().map(|c| &c.name);
            let named = names.clone().any(|name| first.has(name)) && names.all(|name| first.contains(name));
            if named { Some(true) } else { first.fits(&schema).then_some(false) }
        };
        let (text, names, _) = look(input, options, judge)?;
        let mut columns = schema.inputs.iter().chain(&schema.targets);
        let (inputs, expected) = (schema.inputs.len(), schema.inputs.len() + schema.targets.len());
        let chosen = if text.dialect.header || columns.any(|c| c.name.parse::<usize>().is_ok()) {
            text.resolve(&schema.selection(), &names, options)?
        } else if names.len() == expected {
            Chosen {
                inputs: (0..inputs).collect(),
                targets: (inputs..expected).collect(),
                words: Vec::new(),
                named: true,
            }
        } else {
            let found = names.len();
            return Err(text.input.fault(format!("it has no header and {found} columns, but {expected} are expected")));
        };
        Ok(Csv::new(text, Columns::known(names, &chosen, schema, options)))
    }
}

impl Table for Csv {
    fn about(&self) -> About<'_> {
        About { lacks_header: !self.text.dialect.header, ..About::columns(&self.columns, None) }
    }

    fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        let parse = |bytes: &[u8], parsed: &mut Parsed<R>| {
            parsed.clear();
            self.parse_chunk(bytes, parsed)
        };
        let blame = |trouble, before| self.blame(trouble, before);
        self.deliver(visit, |deliver| self.text.lines().parse_in_order(parse, blame, deliver))
    }
}

impl Csv {
    fn parse_chunk<R: Element>(&self, bytes: &[u8], out: &mut Parsed<R>) -> Result<u64, Trouble> {
        let Columns { names, roles, options, shape: (d, t), .. } = &self.columns;
        let (d, t, columns) = (*d, *t, roles.len());
        let largest = options.largest.map_or(f64::MAX, |largest| largest.value);
        let may_be_class = t == 1 && !self.columns.known;
        let separator = self.text.dialect.separator;
        let mut scanner = Scanner::new(bytes, separator);
        let places = self.places.as_deref().filter(|_| separator != b' ');
        let class = places.filter(|_| may_be_class).and_then(|places| places.iter().position(|place| *place == d));
        let take_row = row_taker(places);
        let mut numbers = vec![0.0; d + t];
        while scanner.next_row() {
            // Most rows of most tables are this simple; what is not goes the long way, which also knows what is wrong.
            if let Some(places) = places
                && let Some((end, class)) = take_row(&scanner, places, class, &mut numbers)
                && numbers.iter().all(|value| value.abs() <= largest && R::from_f64(*value).is_finite())
                && !words::is_code(&bytes[class])
            {
                out.inputs.extend(numbers[..d].iter().map(|value| R::from_f64(*value)));
                out.targets.extend(numbers[d..].iter().map(|value| R::from_f64(*value)));
                out.rows += 1;
                scanner.at = end;
                continue;
            }
            let mut code = None;
            out.add_row(&self.columns, |row| {
                for (j, role) in roles.iter().enumerate() {
                    let (start, spot) = (scanner.at, (scanner.line, j));
                    match role {
                        Role::Skip => drop(scanner.field(j, columns)?),
                        Role::Number { place, gap, reading } => {
                            match scanner.number(j, columns, reading) {
                                Ok(value) => row.put_number(spot, (*place, *gap), value)?,
                                Err(trouble) => row.spoil(trouble)?,
                            }
                            if may_be_class && *place == d && words::is_code(scanner.taken_from(start)) {
                                code = Some((spot, scanner.taken_from(start)));
                            }
                        }
                        Role::Time { place, gap, parts, reading } => match scanner.number(j, columns, reading) {
                            Ok(seconds) => row.put_time(spot, (*place, *gap, parts), seconds)?,
                            Err(trouble) => row.spoil(trouble)?,
                        },
                        Role::Words { place, words, reading } => {
                            let field = scanner.field(j, columns)?;
                            // A word that was seen in training may look like a missing one; missing ones may be a category.
                            let index = words.own_number(&field);
                            let word = match index {
                                None if reading.is_gap(&field) => {
                                    words.own_number(b"").map(|index| (&b""[..], Some(index)))
                                }
                                None => Some((&field[..], words.number(&field))),
                                index => Some((&field[..], index)),
                            };
                            row.put_word(spot, *place, word)?;
                        }
                    }
                }
                Ok(())
            })?;
            if let Some((spot, code)) = code {
                out.codes.add(|| {
                    let name = option_name(names, spot.1);
                    let number = parse_number(code).unwrap_or_default();
                    let message = format!(
                        "the class {} would become {number}; --categories {name} takes the column as words",
                        excerpt(code)
                    );
                    Trouble::of_cell(spot, message)
                });
            }
        }
        Ok(scanner.next_line - 1)
    }
}

/// What is said about a cell that is not what its column holds.
fn not_as_expected(reading: &Reading, field: &[u8]) -> String {
    let found = format!("expected {}, found {}", reading.expected(), excerpt(field));
    match std::str::from_utf8(field) {
        _ if field.contains(&0) => format!("{found} with {NUL_BYTE}"),
        Ok(text) if reading.verdict == Verdict::Number(None) && figures::is_number(text) => {
            format!("{found}: a number has a point as decimal sign and no signs of thousands, of units or of per cent")
        }
        _ => found,
    }
}

/// What is said about words in another encoding than that of the beginning of the file.
pub(super) const NOT_UTF8: &str = "not UTF-8";
const NUL_BYTE: &str = "a NUL byte, which is no text: the file is damaged";

/// A field as text, or what is wrong with it.
fn word(field: &[u8]) -> Result<&str, String> {
    match std::str::from_utf8(field) {
        Ok(_) if field.contains(&0) => Err(format!("found {} with {NUL_BYTE}", excerpt(field))),
        Ok(word) => Ok(word),
        Err(_) => Err(format!("the text {} is {NOT_UTF8}", excerpt(field))),
    }
}

/// Walks over the fields of a chunk of whole lines.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    separator: u8,
    /// Number of the current row's first line, counted from 1.
    line: u64,
    next_line: u64,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8], separator: u8) -> Self {
        Scanner { bytes, at: 0, separator, line: 1, next_line: 1 }
    }

    /// Moves to the next row that is not blank.
    fn next_row(&mut self) -> bool {
        loop {
            self.line = self.next_line;
            let start = self.at;
            if self.separator != b'\t' {
                self.skip_blanks();
            }
            match self.bytes.get(self.at) {
                None => return false,
                Some(b'\n') => self.at += 1,
                Some(b'\r') if self.bytes.get(self.at + 1) == Some(&b'\n') => self.at += 2,
                Some(_) => {
                    if self.separator != b' ' {
                        self.at = start;
                    }
                    self.next_line += 1;
                    return true;
                }
            }
            self.next_line += 1;
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// The number in field `j` of `columns`, seconds of a date or a time; `None` if it is missing.
    #[inline(always)]
    fn number(&mut self, j: usize, columns: usize, reading: &Reading) -> Result<Option<f64>, Trouble> {
        if reading.is_plain()
            && let Some((value, end)) = plain_number(self.bytes, self.at)
            && self.close(end, j + 1 == columns)
        {
            return Ok(Some(value));
        }
        self.any_number(j, columns, reading)
    }

    #[cold]
    fn any_number(&mut self, j: usize, columns: usize, reading: &Reading) -> Result<Option<f64>, Trouble> {
        if reading.is_plain()
            && let Ok((value, n)) = fast_float2::parse_partial::<f64, _>(&self.bytes[self.at..])
            && value.is_finite()
            && self.close(self.at + n, j + 1 == columns)
        {
            return Ok(Some(value));
        }
        let field = self.field(j, columns)?;
        if reading.is_gap(&field) {
            return Ok(None);
        }
        match reading.value(&field) {
            Some(value) if value.is_finite() => Ok(Some(value)),
            Some(_) => Err(self.trouble(j, format!("the number {} is infinite", excerpt(&field)))),
            None => Err(Trouble::of_contradiction((self.line, j), &field, not_as_expected(reading, &field))),
        }
    }

    /// Field `j` of `columns`, without quotes and blanks around it.
    fn field(&mut self, j: usize, columns: usize) -> Result<Cow<'a, [u8]>, Trouble> {
        let start = self.at;
        let (field, end) = take_field(self.bytes, start, self.separator)
            .map_err(|m| Trouble { of_value: false, ..self.trouble(j, m.into()) })?;
        self.next_line += if field.contains(&b'\n') { count_lines(&self.bytes[start..end]) } else { 0 };
        if self.close(end, j + 1 == columns) {
            return Ok(field);
        }
        let message = if j + 1 < columns {
            format!("the row has {} fields, expected {columns}", j + 1)
        } else {
            format!("the row has more than {columns} fields")
        };
        Err(Trouble::of_line(self.line, message))
    }

    /// Moves past the end of a field at `end`, if one can be there: a separator, or for the last field a line end.
    #[inline]
    fn close(&mut self, mut end: usize, last: bool) -> bool {
        if self.separator == b' ' {
            let field_end = end;
            while matches!(self.bytes.get(end), Some(b' ' | b'\t')) {
                end += 1;
            }
            if !last {
                let closed = end > field_end && !is_line_end(self.bytes, end);
                self.at = if closed { end } else { self.at };
                return closed;
            }
        }
        self.at = match self.bytes.get(end) {
            Some(&c) if !last && c == self.separator => end + 1,
            Some(b'\n') if last => end + 1,
            Some(b'\r') if last && self.bytes.get(end + 1) == Some(&b'\n') => end + 2,
            None if last => end,
            _ => return false,
        };
        true
    }

    fn trouble(&self, column: usize, message: String) -> Trouble {
        Trouble::of_cell((self.line, column), message)
    }

    /// The field that began at `start` and has just been passed, without quotes and blanks around it.
    fn taken_from(&self, start: usize) -> &'a [u8] {
        let field = &self.bytes[start..self.at];
        let field = field.strip_suffix(&[self.separator]).unwrap_or(field).trim_ascii();
        field.strip_prefix(b"\"").and_then(|f| f.strip_suffix(b"\"")).unwrap_or(field)
    }
}

fn is_line_end(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        None | Some(b'\n') => true,
        Some(b'\r') => bytes.get(at + 1) == Some(&b'\n'),
        Some(_) => false,
    }
}

/// The field that starts at `at`, and where it ends: at a separator, a line end or the end of the bytes.
fn take_field(bytes: &[u8], at: usize, separator: u8) -> Result<(Cow<'_, [u8]>, usize), &'static str> {
    let blanks = bytes[at..].iter().take_while(|&&c| c == b' ').count();
    if bytes.get(at + blanks) != Some(&b'"') {
        let end = match separator {
            b' ' => memchr::memchr3(b' ', b'\t', b'\n', &bytes[at..]),
            other => memchr::memchr2(other, b'\n', &bytes[at..]),
        };
        let mut end = end.map_or(bytes.len(), |n| at + n);
        if bytes.get(end) == Some(&b'\n') && end > at && bytes[end - 1] == b'\r' {
            end -= 1;
        }
        return Ok((Cow::Borrowed(bytes[at..end].trim_ascii()), end));
    }
    let start = at + blanks + 1;
    let mut from = start;
    let mut doubled = false;
    loop {
        let Some(n) = memchr::memchr(b'"', &bytes[from..]) else { return Err("a quoted field is not closed") };
        let quote = from + n;
        if bytes.get(quote + 1) == Some(&b'"') {
            doubled = true;
            from = quote + 2;
            continue;
        }
        let inner = &bytes[start..quote];
        let field = if doubled {
            let mut text = Vec::with_capacity(inner.len());
            let mut rest = inner;
            while let Some(at) = memchr::memchr(b'"', rest) {
                text.extend_from_slice(&rest[..=at]);
                rest = &rest[at + 2..];
            }
            text.extend_from_slice(rest);
            Cow::Owned(text)
        } else {
            Cow::Borrowed(inner)
        };
        let mut end = quote + 1;
        while separator != b' ' && bytes.get(end) == Some(&b' ') {
            end += 1;
        }
        let closed = is_line_end(bytes, end)
            || bytes.get(end).is_some_and(|&c| c == separator || (separator == b' ' && c == b'\t'));
        return if closed { Ok((field, end)) } else { Err("there is text after a closing quote") };
    }
}

/// What takes a plain row apart: where its numbers go, the field of a class, and the numbers.
type TakeRow = fn(&Scanner<'_>, &[usize], Option<usize>, &mut [f64]) -> Option<(usize, std::ops::Range<usize>)>;

fn row_taker(places: Option<&[usize]>) -> TakeRow {
    match places.is_some_and(|places| places.contains(&NOWHERE)) {
        true => plain_row::<true>,
        false => plain_row::<false>,
    }
}

/// Takes the numbers of the row at which `scanner` is to their places, if all of them are plain; where the row ends, and where
/// its field `class` is, if there is one.
///
/// `SKIPS` says whether some fields are passed over. A function of its own: with all that other rows need around it, the compiler has no registers left for the loop.
#[inline(never)]
fn plain_row<const SKIPS: bool>(
    scanner: &Scanner<'_>,
    places: &[usize],
    class: Option<usize>,
    numbers: &mut [f64],
) -> Option<(usize, std::ops::Range<usize>)> {
    let (bytes, separator, class) = (scanner.bytes, scanner.separator, class.unwrap_or(usize::MAX));
    let (mut at, mut field) = (scanner.at, 0..0);
    let last = places.len() - 1;
    for (j, &place) in places.iter().enumerate() {
        let end = if SKIPS && place == NOWHERE {
            let end = at + memchr::memchr3(separator, b'\n', b'"', bytes.get(at..)?)?;
            (bytes[end] != b'"').then_some(end)?
        } else {
            let (value, end) = plain_number(bytes, at)?;
            *numbers.get_mut(place)? = value;
            end
        };
        if j == class {
            field = at..end;
        }
        at = match *bytes.get(end)? {
            c if j < last => (c == separator).then_some(end + 1)?,
            b'\n' => end + 1,
            b'\r' if bytes.get(end + 1) == Some(&b'\n') => end + 2,
            _ => return None,
        };
    }
    Some((at, field))
}

/// A number written as `-123.456` with few enough digits, and where it ends: the common case, without a call.
///
/// Exact: an integer below 2^53 divided by a power of ten that is a double is rounded once. Eight digits after the point
/// are found and converted at a time with the arithmetic of one register (Lemire 2021). Anything else is `None`.
#[inline(always)]
fn plain_number(bytes: &[u8], start: usize) -> Option<(f64, usize)> {
    // Room for a sign, digits and two words: the last few numbers of a chunk go the long way.
    let window: &[u8; 32] = bytes.get(start..start + 32)?.try_into().ok()?;
    let negative = window[0] == b'-';
    let mut at = usize::from(negative);
    let first = at;
    let mut mantissa = 0u64;
    while at < 10 {
        let digit = window[at].wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        mantissa = 10 * mantissa + u64::from(digit);
        at += 1;
    }
    let whole_digits = at - first;
    let mut decimals = 0;
    if window[at] == b'.' {
        at += 1;
        while decimals <= 8 {
            let word = u64::from_le_bytes(window[at..at + 8].try_into().ok()?) ^ 0x3030_3030_3030_3030;
            // The high bit of a byte is set where the byte is not a digit.
            let other = (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080;
            let digits = (other.trailing_zeros() / 8) as usize;
            if digits == 0 {
                break;
            }
            // Digits move to the high end; the bytes below become leading zeros.
            let mut value = word << (64 - 8 * digits);
            value = value.wrapping_mul(10).wrapping_add(value >> 8);
            value = ((value & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064))
                .wrapping_add(((value >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001))
                >> 32;
            mantissa = mantissa.wrapping_mul(POWERS[digits]).wrapping_add(value);
            at += digits;
            decimals += digits;
            if digits < 8 {
                break;
            }
        }
    }
    let digits = whole_digits + decimals;
    // 18 digits cannot overflow the mantissa; beyond 2^53 the conversion would round a second time.
    if digits == 0 || digits > 18 || mantissa > 1 << 53 {
        return None;
    }
    // From a table: whether a number is negative cannot be guessed, and a wrong guess costs as much as all digits.
    Some((mantissa as i64 as f64 / TENS[usize::from(negative)][decimals], start + at))
}

const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// Powers of ten that are doubles, and their negatives.
const TENS: [[f64; 17]; 2] = [
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16],
    [-1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14, -1e15, -1e16],
];

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// The cells of a first row, as they are and as the names that they would be: an empty one is called by its number.
struct FirstRow<'a> {
    fields: &'a [Vec<u8>],
    names: HashSet<Cow<'a, [u8]>>,
}

impl<'a> FirstRow<'a> {
    fn new(fields: &'a [Vec<u8>]) -> Self {
        let name = |(j, field): (usize, &'a Vec<u8>)| match field.is_empty() {
            true => Cow::Owned((j + 1).to_string().into_bytes()),
            false => Cow::Borrowed(&field[..]),
        };
        FirstRow { fields, names: fields.iter().enumerate().map(name).collect() }
    }

    fn contains(&self, name: &str) -> bool {
        self.names.contains(name.as_bytes())
    }

    /// Whether a column asked for is called by a cell of the row, which has no name twice, and can be no number of a column.
    fn has(&self, name: &str) -> bool {
        let columns = self.fields.len();
        self.names.len() == columns && self.contains(name) && numbered(name, columns).is_none()
    }

    /// Whether the cells can be values of the columns, which are found by their numbers or, all being there, by their order.
    fn fits(&self, schema: &Schema) -> bool {
        let columns = || schema.inputs.iter().chain(&schema.targets);
        let in_order = self.fields.len() == columns().count();
        let mut any = false;
        let all = columns().enumerate().all(|(k, column)| {
            let place = numbered(&column.name, self.fields.len()).or(in_order.then_some(k));
            place.is_some_and(|j| {
                let (field, reading) = (&self.fields[j], column.reading());
                let is_value = match &column.kind {
                    Kind::Words { values, .. } => values.iter().any(|value| value.as_bytes() == &field[..]),
                    _ => reading.value(field).is_some(),
                };
                any |= is_value;
                is_value || reading.is_gap(field)
            })
        });
        all && any
    }
}

/// What is said about a text with a byte of zero at `nul`: where it is, unless nothing looks like text.
fn not_text(input: &Input, options: &Options, text: &[u8], nul: usize) -> bochner::Error {
    let start = &text[..text.len().min(4096)];
    let strange = start.iter().filter(|c| matches!(c, 0..=8 | 14..=31)).count();
    if strange > 1 + start.len() / 50 {
        return input.fault("this is not a text file, and not one of the known binary formats");
    }
    let separator = options.separator.unwrap_or_else(|| guess_separator(text));
    let line_start = memchr::memrchr(b'\n', &text[..nul]).map_or(0, |at| at + 1);
    let mut scanner = Scanner { at: line_start, ..Scanner::new(text, separator) };
    let mut column = 0;
    while let Ok((_, end)) = take_field(text, scanner.at, separator)
        && end <= nul
        && scanner.close(end, false)
    {
        column += 1;
    }
    let line = Some(count_lines(&text[..nul]) + 1);
    Fault::at(input, line, column, format!("found {NUL_BYTE}")).into()
}

/// The fields of the row that begins where `scanner` is, which passes it; or the column of a fault, and what it is.
fn fields_of(scanner: &mut Scanner<'_>) -> Result<Vec<Vec<u8>>, (usize, &'static str)> {
    let mut fields = Vec::new();
    loop {
        let (field, end) =
            take_field(scanner.bytes, scanner.at, scanner.separator).map_err(|message| (fields.len(), message))?;
        if field.contains(&b'\n') {
            scanner.next_line += count_lines(&field);
        }
        fields.push(field.into_owned());
        // The end of a field is the end of the line or a separator.
        if scanner.close(end, true) || !scanner.close(end, false) {
            return Ok(fields);
        }
    }
}

/// Where rows begin, behind comments and blank lines, and how many lines these are.
fn beginning_of_rows(text: &[u8]) -> (usize, u64) {
    let mut at = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut lines = 0;
    while let Some(line) = text[at..].split_inclusive(|&c| c == b'\n').next() {
        let words = line.trim_ascii();
        if !(words.is_empty() || words.starts_with(b"#")) {
            break;
        }
        at += line.len();
        lines += 1;
    }
    (at, lines)
}

/// The separator that the first lines speak for; where `judge` can make nothing of the first row, one with which it can. And
/// whether there is one.
fn separator_of(text: &[u8], options: &Options, judge: &impl Fn(&FirstRow<'_>) -> Option<bool>) -> (u8, bool) {
    let guess = options.separator.unwrap_or_else(|| guess_separator(text));
    let is_known = |separator: &u8| {
        let mut scanner = Scanner::new(text, *separator);
        scanner.next_row() && fields_of(&mut scanner).is_ok_and(|fields| judge(&FirstRow::new(&fields)).is_some())
    };
    let others = SEPARATORS.into_iter().chain([b' ']).filter(|_| options.separator.is_none());
    match [guess].into_iter().chain(others).find(is_known) {
        Some(separator) => (separator, true),
        None => (guess, false),
    }
}

/// Separator and header, names and the first rows; `judge` knows a header (true) by its
/// names, or data (false) by the columns there should be.
fn look(
    input: Input,
    options: &Options,
    judge: impl Fn(&FirstRow<'_>) -> Option<bool>,
) -> Result<(Source, Vec<String>, Vec<Record>)> {
    let mut first = Buffer::default();
    let quotes = options.separator.map_or(Quotes::AfterAny, Quotes::After);
    let mut chunks = Chunks::new(input.bytes()?, 0, quotes).eagerly(input.is_stream());
    chunks.next(&mut first).map_err(|e| input.unreadable(e))?;
    // Lines that have not arrived yet: a row says whether that above it is a header, which may tell it itself.
    let tells = |text: &[u8]| separator_of(&text[beginning_of_rows(text).0..], options, &judge).1;
    while input.is_stream()
        && options.header.is_none()
        && rows_of(first.lines(), b'\n').take(2).count() < 2
        && !tells(first.lines())
    {
        if !chunks.next_too(&mut first).map_err(|e| input.unreadable(e))? {
            break;
        }
    }
    let text = first.lines();
    if text.is_empty() {
        return Err(input.fault("the file is empty"));
    }
    if let Some(nul) = memchr::memchr(0, &text[..text.len().min(4096)]) {
        return Err(not_text(&input, options, text, nul));
    }
    let (mut at, mut lines) = beginning_of_rows(text);
    let (separator, _) = separator_of(&text[at..], options, &judge);
    let mut records: Vec<Record> = Vec::new();
    let mut scanner = Scanner { at, ..Scanner::new(text, separator) };
    while records.len() <= SAMPLE_ROWS && scanner.next_row() {
        let line = lines + scanner.line;
        let fields =
            fields_of(&mut scanner).map_err(|(j, message)| Fault::at(&input, Some(line), j, message.into()))?;
        records.push(Record { fields, line, end: scanner.at });
    }
    let Some((first, rest)) = records.split_first() else { return Err(input.fault("there are no rows")) };
    let header = options.header.or_else(|| judge(&FirstRow::new(&first.fields)));
    let header = header.unwrap_or_else(|| looks_like_header(&first.fields, rest));
    let names = if header {
        let lines_of_header = count_lines(&text[at..first.end]);
        let names = header_names(&input, lines + 1, &first.fields)?;
        (at, lines) = (first.end, lines + lines_of_header);
        records.remove(0);
        names
    } else {
        (1..=first.fields.len()).map(|j| j.to_string()).collect()
    };
    let row_bytes = records.last().map_or(0, |last| (last.end - at) / records.len());
    let dialect = Dialect { separator, header, skipped_bytes: at, skipped_lines: lines, row_bytes };
    Ok((Source { input, dialect }, names, records))
}

fn header_names(input: &Input, line: u64, fields: &[Vec<u8>]) -> Result<Vec<String>> {
    let name = |(j, field): (usize, &Vec<u8>)| match word(field) {
        Ok("") => Ok((j + 1).to_string()),
        Ok(name) => Ok(name.to_owned()),
        Err(message) => Err(Fault::at(input, Some(line), j, message)),
    };
    let names = fields.iter().enumerate().map(name).collect::<Result<Vec<String>, Fault>>()?;
    check_names(input, Some(line), &names)?;
    Ok(names)
}

/// A first row is a header if it has no number at all, or words above numbers.
fn looks_like_header(first: &[Vec<u8>], rest: &[Record]) -> bool {
    let is_number = |f: &Vec<u8>| parse_number(f).is_some();
    let otherwise =
        |f: &Vec<u8>| std::str::from_utf8(f).is_ok_and(|t| figures::is_number(t) || times::parse(t).is_some());
    let no_number = !first.iter().any(|f| is_number(f) || otherwise(f));
    let words_above_numbers = first.iter().enumerate().any(|(j, f)| {
        let mut below = rest.iter().filter_map(|row| row.fields.get(j)).filter(|f| !is_missing(f)).peekable();
        !is_number(f) && !is_missing(f) && below.peek().is_some() && below.all(is_number)
    });
    (no_number && first.iter().any(|f| !is_missing(f))) || words_above_numbers
}

/// The separator that cuts the first lines into the same number of fields, most of them if several do.
fn guess_separator(text: &[u8]) -> u8 {
    let lines: Vec<&[u8]> =
        text.split(|&c| c == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty()).take(20).collect();
    let count = |line: &[u8], separator: u8| {
        let mut inside = false;
        let mut n = 0;
        for &c in line {
            match c {
                b'"' => inside = !inside,
                c if c == separator && !inside => n += 1,
                _ => {}
            }
        }
        n
    };
    // Decimal commas cut lines into more fields than what stands between the numbers.
    let all_numbers = |separator: u8| {
        let fields = || lines.iter().skip(1).flat_map(|l| l.split(move |&c| c == separator)).map(<[u8]>::trim_ascii);
        let comma = |f: &[u8]| f.contains(&b',') && std::str::from_utf8(f).is_ok_and(figures::is_number);
        fields().any(comma) && fields().all(|f| is_missing(f) || parse_number(f).is_some() || comma(f))
    };
    let candidates = SEPARATORS.map(|separator| {
        let counts: Vec<usize> = lines.iter().map(|l| count(l, separator)).collect();
        let steady = counts.iter().all(|&n| n == counts[0]);
        let first = counts.first().copied().unwrap_or(0);
        (steady, separator != b',' && steady && first > 0 && all_numbers(separator), first, separator)
    });
    // On a tie the earlier candidate wins: `max_by_key` keeps the last.
    let best = candidates.iter().rev().filter(|c| c.2 > 0).max_by_key(|c| (c.0, c.1, c.2));
    let blanks = |line: &&[u8]| line.split(|c| matches!(c, b' ' | b'\t')).filter(|w| !w.is_empty()).count();
    match best {
        Some((_, _, _, separator)) => *separator,
        None if lines.first().is_some_and(|l| blanks(l) > 1)
            && lines.iter().all(|l| blanks(l) == blanks(&lines[0])) =>
        {
            b' '
        }
        None => b',',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The standard library rounds correctly: so must the short way, or leave the number to the long one.
        #[test]
        fn plain_numbers_are_rounded_like_the_standard_library_does(text in "-?[0-9]{0,11}(\\.[0-9]{0,18})?") {
            let padded = format!("{text},{}", " ".repeat(40));
            if let Some((value, end)) = plain_number(padded.as_bytes(), 0) {
                prop_assert!(end <= text.len());
                let read: f64 = text[..end].parse().unwrap();
                prop_assert_eq!(value.to_bits(), read.to_bits(), "{} read as {}", text, value);
            }
        }
    }

    #[test]
    fn common_numbers_take_the_short_way() {
        for text in ["0", "-1", "12345", "0.5", "-12.3456789", "3.", ".25", "-0.0", "1234567890.12345"] {
            let padded = format!("{text},{}", " ".repeat(40));
            let (value, end) = plain_number(padded.as_bytes(), 0).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((value.to_bits(), end), (text.parse::<f64>().unwrap().to_bits(), text.len()), "{text}");
        }
        for text in ["", "-", ".", "x", "nan", "9007199254740993.1"] {
            let padded = format!("{text},{}", " ".repeat(40));
            let taken = plain_number(padded.as_bytes(), 0).is_some_and(|(_, end)| end == text.len());
            assert!(!taken, "{text}");
        }
    }
}
