//! NPY, numpy's array file: a header in Python's notation, then the numbers.

use super::input::{Input, read_up_to};
use super::numbers::{Matrix, NumberType, Numbers};
use super::{Format, Result};
use crate::write::Npy;
use std::io::Read;

pub(super) const FORMAT: Format = Format {
    writes: &[("npy", Npy::begin)],
    ..Format::array(
        "NPY",
        |start, _| start.starts_with(MAGIC),
        |input, selection, _| Matrix::whole(input, read_header, selection),
    )
};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longer headers describe structured arrays, which are refused anyway.
const LONGEST_HEADER: usize = 1 << 16;

/// Reads the header; gives the array and the position of its first number.
pub(super) fn read_header(input: &Input, source: &mut dyn Read) -> Result<(Numbers, u64)> {
    let mut read = |n: usize| -> Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        let found = read_up_to(source, &mut bytes).map_err(|e| input.unreadable(e))?;
        if found == n { Ok(bytes) } else { Err(input.fault("the NPY header is truncated")) }
    };
    let start = read(8)?;
    if !start.starts_with(MAGIC) {
        return Err(input.fault("this is not an NPY file"));
    }
    let (size_bytes, len) = match start[6] {
        1 => {
            let b = read(2)?;
            (2, usize::from(u16::from_le_bytes([b[0], b[1]])))
        }
        2 | 3 => {
            let b = read(4)?;
            (4, u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
        }
        other => return Err(input.fault(format!("NPY version {other} is not known; versions 1 to 3 are"))),
    };
    if len > LONGEST_HEADER {
        return Err(input.fault(format!("the NPY header claims {len} bytes; at most {LONGEST_HEADER} are accepted")));
    }
    let header = read(len)?;
    let text = std::str::from_utf8(&header).map_err(|_| input.fault("the NPY header is not text"))?;
    let numbers = parse_header(text).map_err(|message| input.fault(format!("NPY header: {message}")))?;
    Ok((numbers, (8 + size_bytes + len) as u64))
}

fn parse_header(text: &str) -> Result<Numbers, String> {
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}'")).ok_or(format!("'{key}' is missing"))?;
        Ok::<_, String>(rest.trim_start().strip_prefix(':').ok_or(format!("'{key}' has no value"))?.trim_start())
    };
    let descr = value("descr")?;
    let Some(quoted) = descr.strip_prefix('\'') else {
        return Err("structured arrays are not supported; save plain numbers".into());
    };
    let descr = quoted.split_once('\'').ok_or("'descr' is not closed")?.0;
    let (kind, big_endian) = parse_descr(descr)?;
    let order = value("fortran_order")?;
    let column_major = match order {
        o if o.starts_with("True") => true,
        o if o.starts_with("False") => false,
        _ => return Err("'fortran_order' is neither True nor False".into()),
    };
    let shape = value("shape")?.strip_prefix('(').and_then(|s| s.split_once(')')).ok_or("'shape' is not a tuple")?.0;
    let mut sizes = Vec::new();
    for size in shape.split(',').map(str::trim).filter(|s| !s.is_empty()) {
        sizes.push(size.parse::<usize>().map_err(|_| format!("'shape' has the entry {size:?}"))?);
    }
    let Some((&rows, rest)) = sizes.split_first() else {
        return Err("the array is a single number; rows are expected".into());
    };
    // Images and the like: everything but the first axis makes one row.
    let columns = rest.iter().try_fold(1usize, |n, &s| n.checked_mul(s)).ok_or("'shape' is too large")?;
    if column_major && rest.len() > 1 {
        return Err("arrays of more than two axes must be stored in C order; save with numpy.ascontiguousarray".into());
    }
    Ok(Numbers { kind, big_endian, column_major: column_major && columns > 1, rows, columns })
}

fn parse_descr(descr: &str) -> Result<(NumberType, bool), String> {
    use NumberType::*;
    let order = descr.chars().next().unwrap_or(' ');
    let big_endian = match order {
        '<' | '|' => false,
        '>' => true,
        '=' => cfg!(target_endian = "big"),
        _ => return Err(format!("the number type '{descr}' is not known")),
    };
    let kind = match &descr[1..] {
        "b1" => Bool,
        "i1" => I8,
        "u1" => U8,
        "i2" => I16,
        "u2" => U16,
        "i4" => I32,
        "u4" => U32,
        "i8" => I64,
        "u8" => U64,
        "f2" => F16,
        "f4" => F32,
        "f8" => F64,
        kind if kind.starts_with('O') => {
            return Err("the array holds Python objects (pickle), which are never loaded; save plain numbers".into());
        }
        _ => return Err(format!("the number type '{descr}' is not supported; use float32, float64 or integers")),
    };
    Ok((kind, big_endian))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_numpy_writes_them_are_understood() {
        // Written by numpy 2: np.save of float32 (3, 4, 5), int64 (7,), Fortran-ordered float64 (2, 3).
        let numbers = parse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), }").unwrap();
        assert_eq!((numbers.kind, numbers.rows, numbers.columns), (NumberType::F32, 3, 20));
        let numbers = parse_header("{'descr': '<i8', 'fortran_order': False, 'shape': (7,), }").unwrap();
        assert_eq!((numbers.kind, numbers.rows, numbers.columns), (NumberType::I64, 7, 1));
        let numbers = parse_header("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3), }").unwrap();
        assert!(numbers.big_endian && numbers.column_major);
    }

    #[test]
    fn headers_that_make_no_sense_are_explained() {
        for (header, words) in [
            ("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "Python objects"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "structured"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "single number"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "\"-2\""),
            ("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", "neither"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999, 99999999999), }", "too large"),
            ("{'descr': 'é', 'fortran_order': False, 'shape': (2,), }", "not known"),
            ("{'descr': '<U7', 'fortran_order': False, 'shape': (2,), }", "not supported"),
            ("{'fortran_order': False}", "'descr' is missing"),
            ("", "'descr' is missing"),
        ] {
            let message = parse_header(header).unwrap_err();
            assert!(message.contains(words), "{header}: {message}");
        }
    }
}
