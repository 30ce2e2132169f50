//! Words that are no categories: numbers and dates written another way, names, identifiers, free text.
//!
//! As categories they would become thousands of columns, or classes of one row each, and nobody would notice.

use std::collections::HashSet;

/// Rows from which on a column can be taken for one of names.
const FEW_ROWS: u64 = 20;
/// Different numbers from which on the letters behind all of them are a unit; fewer are kinds: `4wd`, `1990s`.
const FEW_NUMBERS: usize = 10;

/// What nearly all cells of a column look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Number,
    Date,
}

impl Look {
    /// What is said about the first such cell; `option` is the column as options call it.
    pub(super) fn message(self, cell: &str, option: &str) -> String {
        match self {
            Look::Number => format!(
                "expected a number, found {cell}: {AS_NUMBERS_ARE}; --categories {option} takes the column as words, \
                 --drop {option} leaves it out"
            ),
            Look::Date => format!(
                "expected a number, found the date or time {cell}: write it as a number (of days, of seconds), or its \
                 parts in columns of their own; --categories {option} takes the column as words, --drop {option} leaves \
                 it out"
            ),
        }
    }
}

/// What is expected of a number.
pub(super) const AS_NUMBERS_ARE: &str =
    "a number has a point as decimal sign and no signs of thousands, of units or of per cent";

/// Whether nearly all cells of a column of words are numbers or dates written another way; which is the first of them.
///
/// `cells` are those that are not empty, with whether they are numbers as they should be.
pub(super) fn look<'a>(cells: impl Iterator<Item = (&'a [u8], bool)>) -> Option<(usize, Look)> {
    let (mut all, mut plain) = (0, 0);
    let (mut numbers, mut dates, mut units) = (Tally::default(), Tally::default(), Tally::default());
    let (mut unit, mut different): (Option<String>, HashSet<String>) = (None, HashSet::new());
    for (i, (cell, is_plain)) in cells.enumerate() {
        all += 1;
        plain += usize::from(is_plain);
        let Ok(text) = std::str::from_utf8(cell) else { continue };
        // Longer ones are text, and not worth the time.
        if is_plain || text.len() > 40 {
            continue;
        }
        if is_otherwise(text) {
            numbers.count(i);
        } else if is_date(text) {
            dates.count(i);
        } else if let Some((number, letters)) = with_unit(text)
            && unit.get_or_insert_with(|| letters.to_owned()) == letters
        {
            units.count(i);
            different.insert(number.to_owned());
        }
    }
    let nearly_all = |n: usize| 10 * n >= 9 * all;
    let units = Some(units).filter(|_| different.len() > FEW_NUMBERS).unwrap_or_default();
    let first_number = numbers.first.into_iter().chain(units.first).min();
    match (first_number, dates.first) {
        (Some(first), _) if nearly_all(plain + numbers.n + units.n) => Some((first, Look::Number)),
        (_, Some(first)) if nearly_all(dates.n) => Some((first, Look::Date)),
        _ => None,
    }
}

#[derive(Default)]
struct Tally {
    n: usize,
    first: Option<usize>,
}

impl Tally {
    fn count(&mut self, i: usize) {
        self.n += 1;
        self.first.get_or_insert(i);
    }
}

/// Whether a cell is a whole number, however it is written.
pub(super) fn is_whole(cell: &[u8]) -> bool {
    let digits = cell.strip_prefix(b"-").or_else(|| cell.strip_prefix(b"+")).unwrap_or(cell);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Whether a cell is a whole number that is not printed as it is written: with zeros at the beginning, or with more digits
/// than a number of double precision keeps. It is rather the name of something (a postcode, a product).
pub(super) fn is_code(cell: &[u8]) -> bool {
    /// Decimal digits that double precision always keeps.
    const KEPT: usize = 15;
    let digits = cell.strip_prefix(b"-").unwrap_or(cell);
    digits.len() > 1 && (digits[0] == b'0' || digits.len() > KEPT) && digits.iter().all(u8::is_ascii_digit)
}

/// Whether so many different words in so many rows are names, not categories.
pub(super) fn are_names(different: usize, rows: u64) -> bool {
    rows >= FEW_ROWS && 2 * different as u64 > rows
}

/// What is said about a column of names; `option` is the column as options call it.
pub(super) fn names_message(different: usize, rows: u64, target: bool, option: &str) -> String {
    let found = format!("{different} different words in {rows} rows: names, identifiers or free text");
    match target {
        true => format!("{found}, which cannot be predicted; --categories {option} takes them as classes all the same"),
        false => format!("{found}; --drop {option} leaves the column out, --categories {option} takes it as it is"),
    }
}

const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '₹', '₽'];

/// Whether a text is a number with a decimal comma, signs of thousands, a currency or per cent.
pub(super) fn is_otherwise(text: &str) -> bool {
    let text = text.trim().replace('\u{2212}', "-");
    let unsigned = |t: &'_ str| t.strip_prefix(['-', '+']).map_or(t.len(), str::len);
    let text = &text[text.len() - unsigned(&text)..];
    let text = text.strip_prefix(CURRENCIES).unwrap_or(text).trim_start();
    let text = &text[text.len() - unsigned(text)..];
    let text = text.strip_suffix(['%', '‰']).or_else(|| text.strip_suffix(CURRENCIES)).unwrap_or(text).trim_end();
    let text = match text.rsplit_once(['e', 'E']) {
        Some((mantissa, exponent)) if exponent.parse::<i16>().is_ok() => mantissa,
        _ => text,
    };
    let is_digits = |t: &str| t.bytes().all(|c| c.is_ascii_digit());
    let signs: Vec<char> = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    let groups: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).collect();
    if !text.bytes().any(|c| c.is_ascii_digit()) || !groups.iter().all(|g| is_digits(g)) {
        return false;
    }
    let thousands = |c: char| matches!(c, ',' | '.' | ' ' | '\'' | '’' | '_' | '\u{a0}' | '\u{202f}' | '\u{2009}');
    let Some((&last, before)) = signs.split_last() else { return true };
    // A decimal sign comes last, and only once.
    if matches!(last, ',' | '.') && before.is_empty() {
        return !groups[1].is_empty();
    }
    let (signs, decimals) = match matches!(last, ',' | '.') && !before.contains(&last) {
        true => (before, 1),
        false => (&signs[..], 0),
    };
    let groups = &groups[..groups.len() - decimals];
    // Thousands everywhere, and hundreds in India: 12,34,567.
    signs.iter().all(|c| *c == signs[0] && thousands(*c))
        && (1..=3).contains(&groups[0].len())
        && groups[1..].iter().all(|g| matches!(g.len(), 2 | 3))
        && groups.last().is_some_and(|g| g.len() == 3)
}

/// A number and the letters behind it: `12 kg`.
fn with_unit(text: &str) -> Option<(&str, &str)> {
    let start = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+')))?;
    let (number, letters) = (&text[..start], text[start..].trim_start());
    let is_unit = (1..=4).contains(&letters.chars().count())
        && letters.chars().all(|c| c.is_alphabetic() || matches!(c, '°' | 'µ' | '/' | '²' | '³' | '"'));
    (is_unit && (number.parse::<f64>().is_ok() || is_otherwise(number))).then_some((number, letters))
}

/// Whether a text is a date, a time of day, or both.
fn is_date(text: &str) -> bool {
    let text = text.trim();
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((hour, _)) if hour.contains(':') => (None, Some(text)),
        Some((day, time)) => (Some(day), Some(time)),
        None if text.contains(':') => (None, Some(text)),
        None => (Some(text), None),
    };
    day.is_none_or(is_day) && time.is_none_or(is_time)
}

fn is_day(text: &str) -> bool {
    let Some(sign) = text.chars().find(|c| matches!(c, '-' | '/' | '.')) else { return false };
    let parts: Vec<&str> = text.split(sign).collect();
    let number = |part: &str| part.parse::<u32>().ok().filter(|_| part.len() <= 4);
    let is_month = |part: &str| {
        let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        part.get(..3).is_some_and(|start| names.contains(&start.to_ascii_lowercase().as_str()))
            && part.bytes().all(|c| c.is_ascii_alphabetic())
    };
    let is_year = |part: &str| part.len() == 4 && number(part).is_some();
    let is_short = |part: &str| part.len() <= 2 && number(part).is_some_and(|n| n <= 31);
    match parts[..] {
        [year, month] => is_year(year) && month.len() == 2 && number(month).is_some_and(|n| (1..=12).contains(&n)),
        [a, b, c] => {
            let middle = is_month(b) || is_short(b);
            // Without a year of four digits 1.2.3 is the number of a version.
            let two = |part: &str| part.len() == 2 && number(part).is_some();
            middle && ((is_year(a) && is_short(c)) || (is_short(a) && is_year(c)) || (sign != '.' && two(a) && two(c)))
        }
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let text = text.trim_end_matches(['Z', 'z']);
    // The place of a clock: +02:00.
    let text = text.rsplit_once(['+', '-']).map_or(text, |(time, _)| time);
    let upper = text.to_ascii_uppercase();
    let text = upper.trim_end_matches(['A', 'P', 'M']).trim_end();
    let parts: Vec<&str> = text.split(':').collect();
    matches!(parts.len(), 2 | 3)
        && parts[0].len() <= 2
        && parts[..2].iter().all(|p| p.parse::<u32>().is_ok_and(|n| n < 60))
        && parts[2..].iter().all(|p| p.parse::<f64>().is_ok_and(|n| (0.0..61.0).contains(&n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> Option<(usize, Look)> {
        look(cells.iter().map(|c| (c.as_bytes(), c.parse::<f64>().is_ok())))
    }

    #[test]
    fn numbers_written_another_way_are_recognised() {
        for text in [
            "1,5",
            "-0,25",
            "1,234",
            "1,234,567.5",
            "1.234.567,5",
            "1 234",
            "1'234'567",
            "12,34,567",
            "5%",
            "12.5 %",
            "$ 3",
            "$3",
            "-€ 1.250,00",
            "€ -3",
            "7,5 €",
            "\u{2212}3",
            "1,5e-3",
            "1\u{a0}000",
            ",5",
        ] {
            assert!(is_otherwise(text), "{text}");
        }
        for text in ["", "-", "%", "$", "a", "1st", "1-2", "5 2", "1,2,3", "1,", "10-19", "1.2.3", "12:30", "5%%", "e5"]
        {
            assert!(!is_otherwise(text), "{text}");
        }
        for text in [
            "2020-01-31",
            "31.12.1999",
            "1/2/2020",
            "01/02/20",
            "2020-05",
            "1-Jan-2020",
            "2020-01-01T00:00:00Z",
            "2020-01-01 12:30",
            "12:30",
            "7:05:09.25",
            "1:30 PM",
            "2020-01-01T00:00:00+02:00",
        ] {
            assert!(is_date(text) && !is_otherwise(text), "{text}");
        }
        for text in ["", "1.2.3", "1-2", "2020", "a-b-c", "10-19", "2020-13", "99:99", "T", " ", "1:2:3:4", "-", "/"] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn codes_are_whole_numbers_that_are_not_printed_as_they_are_written() {
        for code in ["007", "00", "-07", "01234", "1234567890123456", "99999999999999999999"] {
            assert!(is_code(code.as_bytes()) && is_whole(code.as_bytes()), "{code}");
        }
        for number in ["0", "-0", "7", "-7", "+7", "10", "123456789012345"] {
            assert!(!is_code(number.as_bytes()) && is_whole(number.as_bytes()), "{number}");
        }
        for other in ["", "-", "0.5", "1.0", "00.5", "1e3", "0x7", "seven"] {
            assert!(!is_code(other.as_bytes()) && !is_whole(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_column_is_judged_by_nearly_all_of_its_cells() {
        assert_eq!(of(&["1", "2,5", "3"]), Some((1, Look::Number)));
        assert_eq!(of(&["red", "2,5", "blue"]), None);
        assert_eq!(of(&["2020-01-01", "2020-01-02"]), Some((0, Look::Date)));
        assert_eq!(of(&["2wd", "4wd", "2wd"]), None, "kinds");
        let kilos: Vec<String> = (0..30).map(|i| format!("{i} kg")).collect();
        assert_eq!(of(&kilos.iter().map(String::as_str).collect::<Vec<_>>()), Some((0, Look::Number)));
        assert_eq!(of(&[]), None);
        assert!(are_names(11, 20) && !are_names(10, 20) && !are_names(19, 19));
    }
}
