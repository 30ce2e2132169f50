//! Values of options: numbers as people write them.

use std::ops::RangeInclusive;

/// Parses a count of at least 1.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    parse_within(text, 1..=1 << 30)
}

/// Parses a number of threads.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    parse_within(text, 1..=1 << 16)
}

/// Parses a whole number of a range.
pub(crate) fn parse_within(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| range.contains(n));
    number.ok_or_else(|| format!("expected a whole number from {} to {}, got {text:?}", range.start(), range.end()))
}

/// Parses a number of bytes: `500000`, `512MB`, `1.5GiB`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a number of bytes such as 800MB or 2GiB, got {text:?}");
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1048576.0,
        "gib" => 1073741824.0,
        "tib" => 1099511627776.0,
        _ => return Err(wrong()),
    };
    let bytes = number * unit;
    if (1.0..1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

fn parse_finite(text: &str, expected: &str, fits: fn(f64) -> bool) -> Result<f64, String> {
    let number = text.parse().ok().filter(|v: &f64| v.is_finite() && fits(*v));
    number.ok_or_else(|| format!("expected {expected}, got {text:?}"))
}

/// Parses a positive number.
pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    parse_finite(text, "a positive number", |v| v > 0.0)
}

/// Parses a number that is 0 or more.
pub(crate) fn parse_non_negative(text: &str) -> Result<f64, String> {
    parse_finite(text, "a number that is 0 or more", |v| v >= 0.0)
}

/// Parses the number of a seed.
pub(crate) fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}, got {text:?}", u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_kinds_of_units() {
        assert_eq!(parse_bytes("512MB"), Ok(512_000_000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("42"), Ok(42));
        for wrong in ["", "MB", "much", "-1GB", "0", "1e30TB", "1..2MB", "5 XB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
