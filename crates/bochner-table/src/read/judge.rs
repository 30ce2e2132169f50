//! What the cells of a column of text are: numbers, however they are written, dates and times, or words; decided by all of them
//! together. And which cells stand for nothing.

use super::fault::excerpt;
use super::figures::{self, Figure, Writing};
use super::schema::{Column, Kind};
use super::times;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Cells from which on a few strange ones are taken for mistakes.
const FEW_CELLS: usize = 10;
/// Different numbers from which on the letters behind all of them are a unit; fewer are kinds: `4wd`, `1990s`.
const FEW_NUMBERS: usize = 10;

/// What a column of text holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// Numbers; `None` as programs write them.
    Number(Option<Writing>),
    Time {
        day_first: bool,
        /// Whether they are times of day.
        clock: bool,
    },
    Words,
}

/// How the cells of a column are read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) verdict: Verdict,
    /// Cells that stand for nothing, beside empty ones; `None` are the usual ones.
    pub(super) markers: Option<Vec<String>>,
}

/// A number, possibly infinite.
pub(super) fn parse_number(field: &[u8]) -> Option<f64> {
    fast_float2::parse::<f64, _>(field).ok().filter(|v| !v.is_nan())
}

/// Cells that stand for nothing among numbers and dates, as spreadsheets and statistics programs write them, beside empty ones.
const MARKERS: [&str; 14] =
    ["?", "-", "--", ".", "na", "n/a", "n.a.", "nan", "-nan", "null", "nil", "none", "#n/a", "<na>"];
/// The same among words, of which some of those are.
const WORD_MARKERS: [&str; 8] = ["?", "na", "n/a", "nan", "-nan", "null", "#n/a", "<na>"];

fn is_listed(field: &[u8], list: &[&str]) -> bool {
    field.is_empty() || (field.len() <= 4 && list.iter().any(|marker| field.eq_ignore_ascii_case(marker.as_bytes())))
}

/// Whether a cell among numbers stands for nothing.
pub(super) fn is_missing(field: &[u8]) -> bool {
    is_listed(field, &MARKERS)
}

/// Whether a cell among words stands for nothing.
pub(super) fn is_missing_word(field: &[u8]) -> bool {
    is_listed(field, &WORD_MARKERS)
}

impl Column {
    /// How its cells are read.
    pub(super) fn reading(&self) -> Reading {
        let verdict = match &self.kind {
            Kind::Number { writing, .. } => Verdict::Number(writing.clone()),
            Kind::Words { .. } => Verdict::Words,
            Kind::Time { day_first, clock, .. } => Verdict::Time { day_first: *day_first, clock: *clock },
        };
        Reading { verdict, markers: self.markers.clone() }
    }
}

impl Reading {
    /// Numbers as programs write them.
    pub(super) const PLAIN: Reading = Reading { verdict: Verdict::Number(None), markers: None };

    /// Whether a cell stands for nothing.
    pub(super) fn is_gap(&self, field: &[u8]) -> bool {
        match (&self.markers, &self.verdict) {
            (Some(list), _) => {
                field.is_empty() || list.iter().any(|marker| marker.as_bytes().eq_ignore_ascii_case(field))
            }
            (None, Verdict::Words) => is_missing_word(field),
            (None, _) => is_missing(field),
        }
    }

    /// Whether a plain number is always one: no marker looks like it.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        match (&self.verdict, &self.markers) {
            (Verdict::Number(None), None) => true,
            (Verdict::Number(None), Some(list)) => list.iter().all(|marker| parse_number(marker.as_bytes()).is_none()),
            _ => false,
        }
    }

    /// The number in a cell that is no gap; of dates and times, seconds. `None` for what is neither.
    pub(super) fn value(&self, field: &[u8]) -> Option<f64> {
        let text = || std::str::from_utf8(field).ok();
        match &self.verdict {
            Verdict::Words => None,
            Verdict::Number(None) => parse_number(field),
            Verdict::Number(Some(writing)) => writing.value(text()?),
            Verdict::Time { day_first, clock } => {
                let written = times::parse(text()?).filter(|written| written.is_clock() == *clock)?;
                written.seconds(*day_first)
            }
        }
    }

    /// What should have been in a cell.
    pub(super) fn expected(&self) -> &'static str {
        match &self.verdict {
            Verdict::Time { clock: true, .. } => "a time",
            Verdict::Time { .. } => "a date",
            _ => "a number",
        }
    }
}

impl Judged {
    /// How the cells are read, with the words that stand for nothing, if somebody has said which they are.
    pub(super) fn reading(&self, markers: Option<&Vec<String>>) -> Reading {
        let mut markers = markers.cloned();
        if let Some(word) = &self.marker {
            markers.get_or_insert_with(|| MARKERS.map(str::to_owned).to_vec()).push(word.clone());
        }
        Reading { verdict: self.verdict.clone(), markers }
    }
}

/// What else is known when a column is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    /// Whether a word among numbers may stand for nothing.
    pub(super) lenient: bool,
    /// Whether what stands between columns speaks for decimal commas.
    pub(super) comma: bool,
    /// Whether other columns have them.
    pub(super) comma_elsewhere: bool,
    /// Whether days come before months, if somebody has said so.
    pub(super) day_first: Option<bool>,
    /// The column as options call it.
    pub(super) option: &'a str,
}

/// What was found out about a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// A word that stands for nothing here.
    pub(super) marker: Option<String>,
    /// How it was understood, where somebody should hear of it.
    pub(super) remark: Option<String>,
}

impl Judged {
    fn plainly(verdict: Verdict) -> Self {
        Judged { verdict, marker: None, remark: None }
    }
}

/// Judges a column by cells that are not gaps; or says which cell is wrong, and what is.
pub(super) fn judge(cells: &[&[u8]], about: Circumstances<'_>) -> Result<Judged, (usize, String)> {
    let n = cells.len();
    let plain = cells.iter().filter(|cell| parse_number(cell).is_some()).count();
    let texts: Vec<&str> = cells.iter().map(|cell| std::str::from_utf8(cell).unwrap_or("")).collect();
    if plain == n && !(about.comma_elsewhere && are_thousands(&texts)) {
        return Ok(Judged::plainly(Verdict::Number(None)));
    }
    let advice = format!("--categories {0} takes the column as words, --drop {0} leaves it out", about.option);
    let mut best = (plain, Judged::plainly(Verdict::Number(None)));
    let written = numbers(&texts, about, &advice)?;
    if written.0 > best.0 || plain == n {
        best = written;
    }
    let dates = dates(&texts, about, &advice)?;
    if dates.0 > best.0 {
        best = dates;
    }
    let (fits, mut judged) = best;
    let strange = n - fits;
    if strange > 0 && (n < FEW_CELLS || 10 * strange >= n) {
        return Ok(Judged::plainly(Verdict::Words));
    }
    let reading = Reading { verdict: judged.verdict.clone(), markers: Some(Vec::new()) };
    let others: BTreeSet<&[u8]> = cells.iter().filter(|cell| reading.value(cell).is_none()).copied().collect();
    let Some(first) = cells.iter().position(|cell| reading.value(cell).is_none()) else { return Ok(judged) };
    let word = texts[first];
    // One word, again and again: with a column of its own that says where it was nothing is lost.
    if about.lenient && others.len() == 1 && !word.is_empty() && !word.bytes().any(|c| c.is_ascii_digit()) {
        judged.marker = Some(word.to_owned());
        return Ok(judged);
    }
    let more = match others.len() {
        1 => String::new(),
        _ => {
            let others: Vec<_> =
                others.iter().filter(|cell| **cell != cells[first]).take(3).map(|c| excerpt(c)).collect();
            format!(" (also {})", others.join(", "))
        }
    };
    let message = format!(
        "expected {}, as {fits} of the first {n} cells of this column are, found {}{more}; --missing-markers says which words stand \
         for nothing, {advice}",
        reading.expected(),
        excerpt(cells[first])
    );
    Err((first, message))
}

/// Whether all points stand between thousands, and there are some.
fn are_thousands(texts: &[&str]) -> bool {
    let fits = |text: &&&str| text.contains('.');
    texts.iter().any(|text| fits(&text))
        && texts.iter().filter(fits).all(|text| Figure::of(text).is_some_and(|figure| figure.value(true).is_some()))
}

/// How many cells are numbers as people write them, and how they do.
fn numbers(texts: &[&str], about: Circumstances<'_>, advice: &str) -> Result<(usize, Judged), (usize, String)> {
    let n = texts.len();
    let none = (0, Judged::plainly(Verdict::Words));
    let mut figures: Vec<Option<Figure<'_>>> = texts.iter().map(|text| Figure::of(text)).collect();
    let nearly_all = |count: usize| 10 * count >= 9 * n;
    if !nearly_all(figures.iter().flatten().count()) {
        return Ok(none);
    }
    let mut signs: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (i, figure) in figures.iter().enumerate() {
        if let Some(sign) = figure.as_ref().and_then(|figure| figure.sign) {
            signs.entry(sign).or_insert((0, i)).0 += 1;
        }
    }
    // Letters behind a few numbers, or behind few different ones, are no unit.
    let different: HashSet<&str> = texts.iter().copied().collect();
    signs.retain(|sign, (count, _)| !figures::is_unit(sign) || (nearly_all(*count) && different.len() > FEW_NUMBERS));
    for figure in &mut figures {
        *figure = figure.take().filter(|figure| figure.sign.is_none_or(|sign| signs.contains_key(sign)));
    }
    let mut by_place: Vec<(&str, usize)> = signs.iter().map(|(sign, (_, first))| (*sign, *first)).collect();
    by_place.sort_by_key(|(_, first)| *first);
    let sign = match by_place[..] {
        [] => None,
        [(sign, _)] => Some(sign),
        [(one, _), (other, at), ..] => {
            return Err((
                at,
                format!(
                    "found {}, and {one} before it: amounts in {one} and in {other} are no numbers of one column; {advice}",
                    excerpt(texts[at].as_bytes())
                ),
            ));
        }
    };
    if let Some(sign) = sign.filter(|sign| figures::is_per_cent(sign))
        && let Some(at) = figures.iter().position(|figure| figure.as_ref().is_some_and(|figure| figure.sign.is_none()))
    {
        let found = excerpt(texts[at].as_bytes());
        return Err((at, format!("found {found} without {sign}, which other cells of this column have; {advice}")));
    }
    let count = |comma: bool| figures.iter().flatten().filter(|figure| figure.value(comma).is_some()).count();
    let (as_point, as_comma) = (count(false), count(true));
    let comma = as_comma > as_point
        || (as_comma == as_point
            && (about.comma || about.comma_elsewhere)
            && figures.iter().flatten().any(Figure::could_be_either));
    let doubtful =
        figures.iter().flatten().all(|figure| figure.could_be_either() || figure.value(true) == figure.value(false))
            && figures.iter().flatten().any(Figure::could_be_either);
    let mut ways = Vec::new();
    let some = |of: &dyn Fn(&Figure<'_>) -> bool| figures.iter().flatten().any(of);
    if comma && some(&|figure| figure.value(true) != figure.value(false)) {
        ways.push("a decimal comma".to_owned());
    }
    if some(&|figure| figure.value(comma).is_some() && figure.has_thousands(comma)) {
        ways.push("signs between thousands".to_owned());
    }
    let shown = texts.iter().zip(&figures).find_map(|(text, figure)| {
        let figure = figure.as_ref()?;
        let told = figure.sign.is_some() || figure.has_thousands(comma) || parse_number(text.as_bytes()).is_none();
        Some((*text, figure.value(comma)?)).filter(|_| told)
    });
    ways.extend(sign.map(|sign| format!("the sign {sign}")));
    let mut remark = shown.map(|(text, value)| {
        let ways = if ways.is_empty() { String::new() } else { format!(" with {}", ways.join(", ")) };
        format!("numbers{ways}: {text} is {value}")
    });
    if doubtful && let Some(remark) = &mut remark {
        remark.push_str("; they could be understood otherwise");
    }
    let writing = Writing { comma, sign: sign.map(str::to_owned) };
    let verdict = Verdict::Number(Some(writing));
    Ok((as_point.max(as_comma), Judged { verdict, marker: None, remark }))
}

/// How many cells are dates or times, and in which order days and months come.
fn dates(texts: &[&str], about: Circumstances<'_>, advice: &str) -> Result<(usize, Judged), (usize, String)> {
    let written: Vec<_> = texts.iter().map(|text| times::parse(text)).collect();
    let found = written.iter().flatten().count();
    if 10 * found < 9 * texts.len() {
        return Ok((0, Judged::plainly(Verdict::Words)));
    }
    let first = |order: bool| written.iter().position(|w| w.as_ref().and_then(|w| w.day_first()) == Some(order));
    let day_first = match (first(true), first(false)) {
        (Some(day), Some(month)) => {
            let (day_text, month_text) = (excerpt(texts[day].as_bytes()), excerpt(texts[month].as_bytes()));
            let message =
                format!("found {day_text} with the day first and {month_text} with the month first; {advice}");
            return Err((day.max(month), message));
        }
        (Some(_), None) => Some(true),
        (None, Some(_)) => Some(false),
        (None, None) => None,
    };
    let clocks = written.iter().flatten().filter(|w| w.is_clock()).count();
    let clock = 2 * clocks > found;
    let either = written.iter().position(|w| w.is_some_and(|w| w.could_be_either()));
    let order = about.day_first.or(day_first).unwrap_or(false);
    let fits = written.iter().flatten().filter(|w| w.is_clock() == clock && w.seconds(order).is_some()).count();
    let has_time = written.iter().flatten().any(|w| w.has_time);
    let kind = match (clock, has_time) {
        (true, _) => "times",
        (false, true) => "dates and times",
        (false, false) => "dates",
    };
    let told = match (order, day_first, either, about.day_first) {
        (true, Some(_), ..) => ", day first".to_owned(),
        (false, Some(_), ..) => ", month first".to_owned(),
        (_, None, Some(at), None) => {
            format!(", taken with the month first; {} could be with the day first: --day-first says so", texts[at])
        }
        _ => String::new(),
    };
    let example = written.iter().position(Option::is_some).map_or("", |at| texts[at]);
    let remark = Some(format!("{kind}, as in {example}{told}"));
    Ok((fits, Judged { verdict: Verdict::Time { day_first: order, clock }, marker: None, remark }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cells: &[&str]) -> Result<Judged, (usize, String)> {
        let cells: Vec<&[u8]> = cells.iter().map(|cell| cell.as_bytes()).collect();
        judge(
            &cells,
            Circumstances { lenient: true, comma: false, comma_elsewhere: false, day_first: None, option: "c" },
        )
    }

    fn verdict(cells: &[&str]) -> Verdict {
        of(cells).unwrap().verdict
    }

    #[test]
    fn a_column_is_judged_by_all_of_its_cells() {
        let point = |sign: Option<&str>| Verdict::Number(Some(Writing { comma: false, sign: sign.map(str::to_owned) }));
        let comma = Verdict::Number(Some(Writing { comma: true, sign: None }));
        assert_eq!(verdict(&["1", "2.5", "-3e4"]), Verdict::Number(None));
        assert_eq!(verdict(&["1", "2,5", "3"]), comma);
        assert_eq!(verdict(&["1,234", "2,500", "3"]), point(None));
        assert_eq!(verdict(&["1,234", "2,5", "3"]), comma);
        assert_eq!(verdict(&["$1,234", "$2", "3"]), point(Some("$")));
        assert_eq!(verdict(&["red", "2,5", "blue"]), Verdict::Words);
        assert_eq!(verdict(&["2020-01-01", "2020-01-02"]), Verdict::Time { day_first: false, clock: false });
        assert_eq!(verdict(&["12:30", "7:15"]), Verdict::Time { day_first: false, clock: true });
        assert_eq!(verdict(&["2wd", "4wd", "2wd"]), Verdict::Words, "kinds");
        let kilos: Vec<String> = (0..30).map(|i| format!("{i} kg")).collect();
        assert_eq!(verdict(&kilos.iter().map(String::as_str).collect::<Vec<_>>()), point(Some("kg")));
        assert_eq!(verdict(&[]), Verdict::Number(None));
        // Nine of ten are not nearly all.
        assert_eq!(verdict(&["1", "2", "3", "4", "5", "6", "7", "8", "9", "x"]), Verdict::Words);
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        assert!(of(&["$1", "€2"]).unwrap_err().1.contains("$ and in €"));
        assert!(of(&["1%", "0.5"]).unwrap_err().1.contains("without %"));
        assert!(of(&["13/01/2020", "01/13/2020"]).unwrap_err().1.contains("day first"));
        let mut cells = vec!["1"; 30];
        cells.push("unknown");
        assert_eq!(of(&cells).unwrap().marker.as_deref(), Some("unknown"));
        cells.push("lost");
        assert!(of(&cells).unwrap_err().1.contains("as 30 of the first 32 cells"));
    }

    #[test]
    fn markers_among_words_are_fewer_than_among_numbers() {
        for marker in ["", "?", "NA", "N/A", "nan", "NULL"] {
            assert!(is_missing(marker.as_bytes()) && is_missing_word(marker.as_bytes()), "{marker}");
        }
        for marker in ["-", ".", "none", "None"] {
            assert!(is_missing(marker.as_bytes()) && !is_missing_word(marker.as_bytes()), "{marker}");
        }
        let own = Reading { verdict: Verdict::Number(None), markers: Some(vec!["-999".into()]) };
        assert!(own.is_gap(b"-999") && own.is_gap(b"") && !own.is_gap(b"NA") && !own.is_plain());
    }
}
