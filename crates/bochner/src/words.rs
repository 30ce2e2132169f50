//! Numbers and names as people read them: for messages, tables and pages.

/// Bytes in the unit that suits them: `1.25 MB`.
pub fn bytes(count: u64) -> String {
    match count {
        0..1000 => format!("{count} bytes"),
        _ => rate(count as f64, "B"),
    }
}

/// `1234567` as `1,234,567`.
pub fn count(n: usize) -> String {
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

/// Letters of a list of names that stays on one line of a terminal.
const LINE: usize = 82;
/// Letters of one name in a list.
const NAME: usize = 24;

/// The first names of a list, as many as a line holds: `red, green, …`.
pub fn some_of(names: &[String]) -> String {
    let mut line = String::new();
    let shown = told_apart(&names[..names.len().min(12)], NAME);
    for (i, name) in shown.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        if line.chars().count() + name.chars().count() > LINE {
            return format!("{line}{comma}…");
        }
        line += comma;
        line += name;
    }
    if names.len() > shown.len() { line + ", …" } else { line }
}

/// At most so many characters of a name, from both ends: names of one kind often differ in the last ones.
fn shortened(name: &str, most: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= most {
        return name.to_owned();
    }
    let tail = most / 3;
    let (head, tail) = (&letters[..most - 1 - tail], &letters[letters.len() - tail..]);
    format!("{}…{}", head.iter().collect::<String>().trim_end(), tail.iter().collect::<String>().trim_start())
}

/// Names of at most so many characters each, all different: from both ends, else from where they begin to differ, else with
/// their numbers before them.
pub fn told_apart(names: &[String], most: usize) -> Vec<String> {
    let different = |short: &[String]| short.iter().collect::<std::collections::BTreeSet<_>>().len() == short.len();
    let ends: Vec<String> = names.iter().map(|name| shortened(name, most)).collect();
    if different(&ends) {
        return ends;
    }
    let letters: Vec<Vec<char>> = names.iter().map(|name| name.chars().collect()).collect();
    let common = |name: &Vec<char>| name.iter().zip(&letters[0]).take_while(|(a, b)| a == b).count();
    let start = letters.iter().map(common).min().unwrap_or(0);
    let rest = |name: &Vec<char>| {
        let rest: String = name[start..].iter().collect();
        format!("…{}", if name.len() - start < most { rest } else { head(&rest, most - 1) })
    };
    let rests: Vec<String> = letters.iter().map(rest).collect();
    if start > 1 && different(&rests) {
        return rests;
    }
    let width = names.len().to_string().len() + 1;
    names.iter().enumerate().map(|(i, name)| format!("{} {}", i + 1, head(name, most - width))).collect()
}

/// The first of at most so many characters, the last of which says that there are more.
fn head(name: &str, most: usize) -> String {
    match name.char_indices().nth(most.saturating_sub(1)) {
        Some((end, last)) if name.len() > end + last.len_utf8() => format!("{}…", name[..end].trim_end()),
        _ => name.to_owned(),
    }
}

/// `1 row`, `1,234 rows`: a count of things whose plural ends in s.
pub fn things(n: usize, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `value` with `digits` significant digits, without an exponent where it can be avoided.
pub fn significant(value: f64, digits: usize) -> String {
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
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 59.95 => format!("{} min {} s", (s.round() / 60.0) as u64, s.round() as u64 % 60),
        s if s >= 0.9995 => format!("{} s", significant(s, 3)),
        s if s >= 0.999_5e-3 => format!("{} ms", significant(s * 1e3, 3)),
        s => format!("{} µs", significant(s * 1e6, 3)),
    }
}

/// A rate in thousands, millions and so on, to millions of millions of millions: `1.25 GB/s`.
pub fn rate(per_second: f64, unit: &str) -> String {
    let (factor, prefix) = match per_second {
        r if r >= 0.9995e18 => (1e18, "E"),
        r if r >= 0.9995e15 => (1e15, "P"),
        r if r >= 0.9995e12 => (1e12, "T"),
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
        assert_eq!((bytes(1_200_000_000_000), bytes(u64::MAX)), ("1.20 TB".into(), "18.4 EB".into()));
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
    fn long_names_stay_different() {
        let short = |names: &[String]| told_apart(names, 12);
        let names = |of: &dyn Fn(usize) -> String| (1..=12).map(of).collect::<Vec<_>>();
        assert_eq!(short(&names(&|i| format!("class number {i}")))[0], "class n…er 1");
        let middle = short(&names(&|i| format!("a very long name {i} of a species of aliens")));
        assert_eq!((&*middle[0], &*middle[11]), ("…1 of a spe…", "…12 of a sp…"));
        // Two kinds, which differ in the middle.
        let kinds = names(&|i| format!("{} in the {i} middle of words", ["first kind", "other kind"][i % 2]));
        assert_eq!(short(&kinds)[11], "12 first ki…");
        let same = short(&["x".repeat(40), "x".repeat(40)]);
        assert_eq!((&*same[0], &*same[1]), ("1 xxxxxxxxx…", "2 xxxxxxxxx…"));
        for list in [&middle, &short(&kinds), &same] {
            assert!(list.iter().all(|name| name.chars().count() <= 12), "{list:?}");
        }
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(shortened("versicolor", 12), "versicolor");
        assert_eq!(shortened("class_number_1", 12), "class_n…er_1");
        assert_ne!(shortened("class_number_1", 12), shortened("class_number_2", 12));
        assert_eq!(shortened("ééééééééééééé", 12).chars().count(), 12);
    }

    #[test]
    fn lists_of_names_stay_on_a_line() {
        let list = |names: &[&str]| some_of(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(list(&[]), "");
        assert_eq!(list(&["red", "green"]), "red, green");
        let letters: Vec<String> = ('a'..='m').map(String::from).collect();
        assert_eq!(some_of(&letters), format!("{}, …", letters[..12].join(", ")));
        let long = "é".repeat(300);
        assert_eq!(list(&[&long, "b"]), format!("{}…{}, b", "é".repeat(15), "é".repeat(8)));
        let told = list(&[&*long; 12]);
        assert!(told.chars().count() < 90 && told.ends_with(", …"), "{told}");
    }

    #[test]
    fn sizes_come_in_the_unit_that_suits_them() {
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
