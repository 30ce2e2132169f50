//! Numbers as people write and read them.

/// Parses a count of at least 1.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    parse_up_to(text, 1 << 30)
}

/// Parses a number of threads.
pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    parse_up_to(text, 1 << 16)
}

fn parse_up_to(text: &str, most: usize) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(n) if (1..=most).contains(&n) => Ok(n),
        _ => Err(format!("expected a whole number from 1 to {most}, got {text:?}")),
    }
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

/// Bytes in the unit that suits them: `1.25 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1000 => format!("{count} bytes"),
        _ => rate(count as f64, "B"),
    }
}

/// Parses a positive number.
pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if v > 0.0 && v.is_finite() => Ok(v),
        _ => Err(format!("expected a positive number, got {text:?}")),
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// `1 row`, `1,234 rows`: a count of things whose plural ends in s.
pub(crate) fn things(n: usize, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `value` with `digits` significant digits, without an exponent where it can be avoided.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    // Round first: 9.996 with three digits is 10.0, not 10.00.
    let rounded: f64 = format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value);
    let magnitude = rounded.abs().log10().floor() as i32;
    if !(-5..15).contains(&magnitude) {
        return format!("{value:.*e}", digits.saturating_sub(1));
    }
    format!("{rounded:.*}", (digits as i32 - 1 - magnitude).max(0) as usize)
}

/// Seconds in the unit that suits them: `1.23 s`, `45.6 ms`, `2 min 5 s`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 59.95 => format!("{} min {} s", (s.round() / 60.0) as u64, s.round() as u64 % 60),
        s if s >= 0.9995 => format!("{} s", significant(s, 3)),
        s if s >= 0.999_5e-3 => format!("{} ms", significant(s * 1e3, 3)),
        s => format!("{} µs", significant(s * 1e6, 3)),
    }
}

/// A rate in thousands, millions or thousand millions: `1.25 GB/s`.
pub(crate) fn rate(per_second: f64, unit: &str) -> String {
    let (factor, prefix) = match per_second {
        r if r >= 0.9995e9 => (1e9, "G"),
        r if r >= 0.9995e6 => (1e6, "M"),
        r if r >= 0.9995e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{} {prefix}{unit}", significant(per_second / factor, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_significant_digits() {
        assert_eq!(significant(0.012345, 3), "0.0123");
        assert_eq!(significant(9.996, 3), "10.0");
        assert_eq!(significant(1234.5, 2), "1200");
        assert_eq!(significant(-0.5, 2), "-0.50");
        assert_eq!(significant(1.234e-9, 2), "1.2e-9");
        assert_eq!(significant(f64::NAN, 2), "NaN");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(7), "7");
        assert_eq!((things(1, "row"), things(1000, "row")), ("1 row".into(), "1,000 rows".into()));
    }

    #[test]
    fn sizes_are_read_in_both_kinds_of_units() {
        assert_eq!(parse_bytes("512MB"), Ok(512_000_000));
        assert_eq!(parse_bytes("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse_bytes("42"), Ok(42));
        for wrong in ["", "MB", "much", "-1GB", "0", "1e30TB", "1..2MB", "5 XB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(1_250_000), "1.25 MB");
    }

    #[test]
    fn times_come_in_the_unit_that_suits_them() {
        assert_eq!(duration(125.0), "2 min 5 s");
        assert_eq!(duration(59.97), "1 min 0 s");
        assert_eq!(duration(1.5), "1.50 s");
        assert_eq!(duration(0.01234), "12.3 ms");
        assert_eq!(duration(4.2e-6), "4.20 µs");
    }
}
