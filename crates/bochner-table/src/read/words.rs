//! Words that are no categories: names, identifiers, free text; and numbers that are names.
//!
//! As categories they would become thousands of columns, or classes of one row each, and nobody would notice.

/// Rows from which on a column can be taken for one of names.
const FEW_ROWS: u64 = 20;

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

/// That a column holds names.
pub(super) fn names_found(different: usize, rows: u64) -> String {
    format!("{different} different words in {rows} rows: names, identifiers or free text")
}

/// What is said about a column of names; `option` is the column as options call it.
pub(super) fn names_message(different: usize, rows: u64, target: bool, option: &str) -> String {
    let found = names_found(different, rows);
    match target {
        true => format!("{found}, which cannot be predicted; --categories {option} takes them as classes all the same"),
        false => format!("{found}; --drop {option} leaves the column out, --categories {option} takes it as it is"),
    }
}

/// What is said about a target with more words than there can be classes; `option` is the column as options call it.
pub(super) fn too_many_classes(most: usize, option: &str) -> String {
    format!(
        "more than {most} different words: names, identifiers or free text, which cannot be predicted; --target names another column than {option}"
    )
}

/// What is said about a target of dates; `option` is the column as options call it.
pub(super) fn dates_cannot_be_predicted(cell: &str, option: &str) -> String {
    format!(
        "found the date or time {cell}, and dates cannot be predicted: write the column as numbers (of days, of seconds); \
         --categories {option} takes it as classes"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn words_of_which_most_are_different_are_names() {
        assert!(are_names(11, 20) && !are_names(10, 20) && !are_names(19, 19));
    }
}
