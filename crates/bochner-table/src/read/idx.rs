//! IDX, the format of MNIST: `0 0 type axes`, the sizes and the numbers, all big-endian.

use super::input::{Input, read_up_to};
use super::numbers::{Matrix, NumberType, Numbers};
use super::{Format, Result};
use std::io::Read;

pub(super) const FORMAT: Format = Format::array(
    "IDX",
    |start, _| is_magic(start),
    |input, selection, _| Matrix::whole(input, read_header, selection),
);

/// Whether a file begins like an IDX file.
fn is_magic(start: &[u8]) -> bool {
    matches!(start, [0, 0, 0x08 | 0x09 | 0x0b..=0x0e, 1..=8, ..])
}

/// Reads the header; gives the array and the position of its first number.
fn read_header(input: &Input, source: &mut dyn Read) -> Result<(Numbers, u64)> {
    let mut read = |bytes: &mut [u8]| -> Result<()> {
        let found = read_up_to(source, bytes).map_err(|e| input.unreadable(e))?;
        if found == bytes.len() { Ok(()) } else { Err(input.fault("the IDX header is truncated")) }
    };
    let mut magic = [0; 4];
    read(&mut magic)?;
    if !is_magic(&magic) {
        return Err(input.fault("this is not an IDX file"));
    }
    let kind = match magic[2] {
        0x08 => NumberType::U8,
        0x09 => NumberType::I8,
        0x0b => NumberType::I16,
        0x0c => NumberType::I32,
        0x0d => NumberType::F32,
        _ => NumberType::F64,
    };
    let axes = usize::from(magic[3]);
    let mut sizes = vec![0; 4 * axes];
    read(&mut sizes)?;
    let offset = (4 + sizes.len()) as u64;
    let shape = |from: fn([u8; 4]) -> u32| {
        let sizes: Vec<usize> = sizes.as_chunks::<4>().0.iter().map(|b| from(*b) as usize).collect();
        let columns = sizes[1..].iter().try_fold(1usize, |n, &s| n.checked_mul(s))?;
        Some(Numbers { kind, big_endian: true, column_major: false, rows: sizes[0], columns })
    };
    let numbers = shape(u32::from_be_bytes);
    let fits = |numbers: &Numbers, len: u64| numbers.byte_len().and_then(|n| n.checked_add(offset)) == Some(len);
    if let Some(len) = input.plain_len()
        && !numbers.as_ref().is_some_and(|n| fits(n, len))
        && shape(u32::from_le_bytes).is_some_and(|n| fits(&n, len))
    {
        return Err(input.fault("the sizes are little-endian; IDX files are big-endian"));
    }
    Ok((numbers.ok_or_else(|| input.fault("the IDX header promises more numbers than any file holds"))?, offset))
}
