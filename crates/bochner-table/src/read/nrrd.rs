//! NRRD, "nearly raw raster data": lines of text, an empty one, and the numbers as they are in memory.

use super::input::{Input, read_up_to};
use super::numbers::{Matrix, NumberType, Numbers};
use super::{Format, Result};
use std::io::Read;

pub(super) const FORMAT: Format = Format::array(
    "NRRD",
    |start, _| start.starts_with(b"NRRD000"),
    |input, selection, _| Matrix::whole(input, read_header, selection),
);

/// Longer headers are taken for mistakes.
const LONGEST_HEADER: usize = 1 << 16;

/// Reads the header; gives the array and the position of its first number.
fn read_header(input: &Input, source: &mut dyn Read) -> Result<(Numbers, u64)> {
    let mut start = vec![0; LONGEST_HEADER];
    let n = read_up_to(source, &mut start).map_err(|e| input.unreadable(e))?;
    let end = start[..n].windows(2).position(|two| two == b"\n\n");
    let end = end.ok_or_else(|| input.fault("the NRRD header has no end: the file is truncated"))?;
    let header = String::from_utf8_lossy(&start[..end]);
    let numbers = parse_header(&header).map_err(|message| input.fault(format!("NRRD header: {message}")))?;
    Ok((numbers, end as u64 + 2))
}

fn parse_header(header: &str) -> Result<Numbers, String> {
    let value = |key: &str| header.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(": ")?.trim()));
    let required = |key: &str| value(key).ok_or_else(|| format!("there is no field '{key}'"));
    let kind = match required("type")? {
        "int8" | "signed char" => NumberType::I8,
        "uint8" | "uchar" | "unsigned char" => NumberType::U8,
        "int16" | "short" => NumberType::I16,
        "uint16" | "ushort" | "unsigned short" => NumberType::U16,
        "int32" | "int" => NumberType::I32,
        "uint32" | "uint" | "unsigned int" => NumberType::U32,
        "int64" | "long long" => NumberType::I64,
        "uint64" | "unsigned long long" => NumberType::U64,
        "float" => NumberType::F32,
        "double" => NumberType::F64,
        other => return Err(format!("the type '{other}' is not known")),
    };
    if required("encoding")? != "raw" {
        return Err("only the encoding 'raw' is read; save it uncompressed".into());
    }
    if value("data file").is_some() {
        return Err("the numbers are in another file; save them with the header (attached)".into());
    }
    let sizes = required("sizes")?.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>();
    let sizes = sizes.map_err(|_| "'sizes' are not whole numbers")?;
    // The fastest axis comes first; everything but the last makes one row.
    let (&rows, rest) = sizes.split_last().ok_or("'sizes' is empty")?;
    let columns = rest.iter().try_fold(1usize, |n, &s| n.checked_mul(s)).ok_or("'sizes' are too large")?;
    let big_endian = kind.size() > 1 && required("endian")? == "big";
    Ok(Numbers { kind, big_endian, column_major: false, rows, columns })
}

#[cfg(test)]
mod tests {
    use crate::read::{Data, Input, Options, Selection};
    use bochner::rows::RowSource;

    #[test]
    fn arrays_are_read_as_they_are_stored() {
        let header = "NRRD0004\n# by hand\ntype: short\ndimension: 2\nsizes: 2 3\nendian: big\nencoding: raw\n\n";
        let numbers: Vec<u8> = (1..=6i16).flat_map(i16::to_be_bytes).collect();
        let file = [header.as_bytes(), &numbers].concat();
        let open = |bytes: Vec<u8>| {
            Data::open(Input::from_bytes("t.nrrd", bytes), None, &Selection::default(), &Options::default())
        };
        let mut rows = Vec::new();
        let mut visit = |block: bochner::rows::RowBlock<'_, f64>| {
            rows.extend(block.rows.iter().copied());
            Ok(())
        };
        open(file.clone()).unwrap().rows::<f64>().for_each_block(&mut visit).unwrap();
        assert_eq!(rows, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for len in 8..file.len() {
            assert!(open(file[..len].to_vec()).unwrap_err().to_string().contains("truncated"), "cut at {len}");
        }
    }
}
