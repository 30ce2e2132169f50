//! Numbers as people write them: decimal commas, signs between thousands, currencies, per cent, units.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How the numbers of a column are written, where it is otherwise than programs write them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Writing {
    /// Whether a comma is the decimal sign; a point may then stand between thousands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub comma: bool,
    /// The currency, the unit or the per cent sign that stands before or behind the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<String>,
}

const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '₹', '₽'];

/// The same in letters (ISO 4217), those that are used most.
const CODES: [&str; 25] = [
    "AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "INR", "JPY", "KRW", "MXN", "NOK",
    "NZD", "PLN", "RUB", "SEK", "SGD", "TRY", "USD", "ZAR", "Fr.",
];

/// A number in its parts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure<'a> {
    negative: bool,
    /// What stands before or behind the number.
    pub(super) sign: Option<&'a str>,
    /// Digits and what is between them.
    body: Cow<'a, str>,
    exponent: i32,
}

impl<'a> Figure<'a> {
    /// Takes a text apart that may be a number, whatever its decimal sign.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let text = text.trim();
        // Longer ones are text, and not worth the time.
        if text.len() > 40 || !text.bytes().any(|c| c.is_ascii_digit()) {
            return None;
        }
        let bracketed = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
        let (text, mut negative) = (bracketed.unwrap_or(text).trim(), bracketed.is_some());
        let mut signed = false;
        let mut unsigned = |text: &'a str| match text.strip_prefix(['-', '+', '\u{2212}']) {
            Some(rest) if !signed && bracketed.is_none() => {
                (signed, negative) = (true, !text.starts_with('+'));
                rest.trim_start()
            }
            _ => text,
        };
        let text = unsigned(text);
        let start = text.find(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | '\u{2212}'))?;
        let (before, text) = (text[..start].trim_end(), unsigned(&text[start..]));
        let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
        let (body, behind) = (&text[..end], text[end..].trim_start());
        // A point at the end is one of a number: 3.
        let (body, behind) = match behind.strip_prefix(['.', ',']) {
            Some(rest) if body.bytes().all(|c| c.is_ascii_digit()) && behind.starts_with('.') => (body, rest),
            _ => (body, behind),
        };
        let sign = match (before, behind) {
            ("", "") => None,
            ("", sign) if is_sign_behind(sign) => Some(sign),
            (sign, "") if is_currency(sign) => Some(sign),
            _ => return None,
        };
        let (body, exponent) = match body.rsplit_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?.into()),
            None => (body, 0),
        };
        let is_body = |c: char| c.is_ascii_digit() || matches!(c, ',' | '.') || between_thousands(c);
        let starts = body.starts_with(|c: char| c.is_ascii_digit() || matches!(c, ',' | '.'));
        (starts && body.chars().all(is_body)).then_some(Figure { negative, sign, body: body.into(), exponent })
    }

    /// The number, with a comma or a point as decimal sign.
    pub(super) fn value(&self, comma: bool) -> Option<f64> {
        let point = if comma { ',' } else { '.' };
        let (whole, decimals) = self.body.split_once(point).unwrap_or((&self.body, ""));
        let is_digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
        if !is_digits(decimals) || (whole.is_empty() && decimals.is_empty()) {
            return None;
        }
        let mut digits = String::with_capacity(self.body.len() + 8);
        if self.negative {
            digits.push('-');
        }
        match whole.find(|c: char| !c.is_ascii_digit()) {
            None => digits.push_str(whole),
            Some(at) => {
                let sign = whole[at..].chars().next()?;
                let groups: Vec<&str> = whole.split(sign).collect();
                // Thousands everywhere, and hundreds in India: 12,34,567.
                let india = sign == ',' && groups[1..groups.len() - 1].iter().all(|g| g.len() == 2);
                let thousands = groups[1..].iter().all(|g| g.len() == 3);
                // 0.998 is no number of thousands.
                let fits = groups.iter().all(|g| is_digits(g))
                    && !groups[0].starts_with('0')
                    && (1..=3).contains(&groups[0].len())
                    && groups.last().is_some_and(|g| g.len() == 3)
                    && (thousands || india);
                if !fits || sign == point {
                    return None;
                }
                groups.iter().for_each(|group| digits.push_str(group));
            }
        }
        digits.push('.');
        digits.push_str(decimals);
        digits.push('e');
        digits.push_str(&self.exponent.to_string());
        // "-.5e0" is a number to the standard library, "-.e0" is not.
        digits.parse().ok().filter(|v: &f64| v.is_finite())
    }

    /// Whether there is something between thousands.
    pub(super) fn has_thousands(&self, comma: bool) -> bool {
        let point = if comma { ',' } else { '.' };
        self.body.chars().any(|c| !c.is_ascii_digit() && c != point)
    }

    /// Whether the only sign could be a decimal one or stand between thousands.
    pub(super) fn could_be_either(&self) -> bool {
        let (as_comma, as_point) = (self.value(true), self.value(false));
        as_comma.is_some() && as_point.is_some() && as_comma != as_point
    }
}

fn between_thousands(c: char) -> bool {
    matches!(c, ' ' | '\'' | '’' | '_' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// A currency: `$`, `US$`, `EUR`.
fn is_currency(sign: &str) -> bool {
    let letters = sign.trim_end_matches(CURRENCIES);
    match sign.len() == letters.len() {
        true => CODES.contains(&sign),
        false => letters.len() <= 3 && letters.bytes().all(|c| c.is_ascii_uppercase()),
    }
}

/// A currency, per cent or a unit behind a number.
fn is_sign_behind(sign: &str) -> bool {
    is_currency(sign) || is_per_cent(sign) || is_unit(sign)
}

pub(super) fn is_per_cent(sign: &str) -> bool {
    matches!(sign, "%" | "‰")
}

/// Letters behind a number: `kg`, `m²`, `km/h`.
pub(super) fn is_unit(sign: &str) -> bool {
    (1..=5).contains(&sign.chars().count())
        && sign.chars().all(|c| c.is_alphabetic() || matches!(c, '°' | 'µ' | '/' | '²' | '³' | '"' | '.'))
        && !is_currency(sign)
        && sign.starts_with(|c: char| c != '.' && c != '/')
}

/// Whether a text is a number, however it is written; a unit makes it none.
pub(super) fn is_number(text: &str) -> bool {
    let figure = Figure::of(text).filter(|figure| !figure.sign.is_some_and(is_unit));
    figure.is_some_and(|figure| figure.value(true).or(figure.value(false)).is_some())
}

impl Writing {
    /// The number in a cell.
    pub(super) fn value(&self, text: &str) -> Option<f64> {
        let figure = Figure::of(text)?;
        let per_cent = self.sign.as_deref().is_some_and(is_per_cent);
        let signed = match figure.sign {
            // Of per cent and without are two numbers; an amount of the currency or of the unit is one.
            None => !per_cent,
            sign => sign == self.sign.as_deref(),
        };
        signed.then(|| figure.value(self.comma))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, comma: bool) -> Option<f64> {
        Figure::of(text)?.value(comma)
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, comma, expected) in [
            ("1,5", true, 1.5),
            ("-0,25", true, -0.25),
            ("1,234", false, 1234.0),
            ("1,234", true, 1.234),
            ("1,234,567.5", false, 1234567.5),
            ("1.234.567,5", true, 1234567.5),
            ("1 234", false, 1234.0),
            ("1 234,5", true, 1234.5),
            ("1'234'567", false, 1234567.0),
            ("12,34,567", false, 1234567.0),
            ("5%", false, 5.0),
            ("12.5 %", false, 12.5),
            ("$ 3", false, 3.0),
            ("$3", false, 3.0),
            ("-$3", false, -3.0),
            ("US$ 3", false, 3.0),
            ("EUR 1.250,00", true, 1250.0),
            ("-€ 1.250,00", true, -1250.0),
            ("€ -3", true, -3.0),
            ("7,5 €", true, 7.5),
            ("(1,200)", false, -1200.0),
            ("\u{2212}3", false, -3.0),
            ("1,5e-3", true, 0.0015),
            ("1\u{a0}000", false, 1000.0),
            (",5", true, 0.5),
            ("1234.5", false, 1234.5),
            ("3 kg", false, 3.0),
            ("7,5 km/h", true, 7.5),
        ] {
            assert_eq!(value(text, comma), Some(expected), "{text}");
        }
        for text in [
            "",
            "-",
            "%",
            "$",
            "a",
            "1st2",
            "1-2",
            "5 2",
            "1,2,3",
            "10-19",
            "1.2.3",
            "12:30",
            "5%%",
            "e5",
            "--3",
            "1,,2",
            "(-3",
            "x 3",
            "ABC 3",
            "3 kilograms",
            "$3€",
            "1.2345,6",
            "1 23 456",
            "0 998",
        ] {
            assert_eq!((value(text, true), value(text, false)), (None, None), "{text}");
        }
        assert_eq!((value("1.234,5", false), value("1,234.5", true)), (None, None));
        assert!(Figure::of("1,234").unwrap().could_be_either() && !Figure::of("1,5").unwrap().could_be_either());
    }

    #[test]
    fn a_sign_has_to_be_that_of_the_column() {
        let euros = Writing { comma: true, sign: Some("€".into()) };
        assert_eq!((euros.value("3,5 €"), euros.value("3,5"), euros.value("$3,5")), (Some(3.5), Some(3.5), None));
        let share = Writing { comma: false, sign: Some("%".into()) };
        assert_eq!((share.value("3.5%"), share.value("3.5")), (Some(3.5), None));
        assert_eq!(Writing::default().value("3%"), None);
    }
}
