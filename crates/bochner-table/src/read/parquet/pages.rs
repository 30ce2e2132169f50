//! A column of a row group, page by page: levels, dictionaries, encodings.

use super::codec::decompress;
use super::thrift::{Fields, Reader, Value};
use crate::read::numbers::NumberType;
use crate::read::times::DAY;
use flate2::Crc;

/// Type of the stored values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Physical {
    Boolean,
    Number(NumberType),
    /// Whole numbers of so many bytes each, or with their lengths before them; the high end comes first.
    Decimal(Option<usize>),
    Bytes,
    /// Nanoseconds of a day and, counted from noon of the first of January 4713 BC, the day.
    Wide,
}

/// What the numbers of a column of dates and times are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Seconds since the first of 1970.
    Moment,
    /// Days since then.
    Day,
    /// Seconds since midnight.
    Clock,
}

/// A whole number of any length, its high end first; rounded once, to the nearest, if it has at most 16 bytes.
fn whole(bytes: &[u8]) -> Option<f64> {
    let (&first, rest) = bytes.split_first()?;
    let sign = if first & 0x80 == 0 { 0 } else { 0xff };
    // Bytes that repeat the sign say nothing; what is beyond 16 others is beyond what a number keeps.
    let said = bytes.len()
        - rest.iter().zip(bytes).take_while(|(next, byte)| **byte == sign && (**next ^ sign) < 0x80).count();
    let (kept, dropped) = bytes[bytes.len() - said..].split_at(said.min(16));
    let value = kept.iter().fold(i128::from(sign as i8), |value, byte| value << 8 | i128::from(*byte));
    Some(value as f64 * 256f64.powi(i32::try_from(dropped.len()).ok()?))
}

/// A leaf of the schema.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) name: String,
    /// `Err` says why the column cannot be read.
    pub(super) kind: Result<Physical, &'static str>,
    pub(super) optional: bool,
    /// What numbers are divided by: powers of ten of decimals.
    pub(super) divisor: f64,
    /// What they are then, if they are no numbers.
    pub(super) time: Option<Time>,
}

/// Where a column of a row group is, how its pages are compressed, and how many values they hold.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) place: std::ops::Range<u64>,
    pub(super) codec: i64,
    pub(super) values: usize,
    /// Why it cannot be read, if it cannot.
    pub(super) refused: Option<&'static str>,
}

/// The cells of a column; missing ones are NaN or `None`.
#[derive(Debug, Clone)]
pub(super) enum Cells {
    Numbers(Vec<f64>),
    Words(Vec<Option<Box<[u8]>>>),
}

impl Cells {
    fn new(kind: Physical) -> Self {
        if kind == Physical::Bytes { Cells::Words(Vec::new()) } else { Cells::Numbers(Vec::new()) }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Cells::Numbers(v) => v.len(),
            Cells::Words(v) => v.len(),
        }
    }

    /// Cells of these numbers, if there are such.
    fn gather(&self, indices: &[u32]) -> Option<Cells> {
        fn all<T: Clone>(cells: &[T], indices: &[u32]) -> Option<Vec<T>> {
            indices.iter().map(|i| cells.get(*i as usize).cloned()).collect()
        }
        Some(match self {
            Cells::Numbers(cells) => Cells::Numbers(all(cells, indices)?),
            Cells::Words(cells) => Cells::Words(all(cells, indices)?),
        })
    }

    /// Appends cells, and missing ones between them where `present` is not 1.
    fn extend(&mut self, cells: Cells, present: Option<&[u32]>) -> Option<()> {
        fn spread<T: Clone>(to: &mut Vec<T>, cells: Vec<T>, present: Option<&[u32]>, missing: T) -> Option<()> {
            let Some(present) = present else {
                to.extend(cells);
                return Some(());
            };
            let mut cells = cells.into_iter();
            for &level in present {
                to.push(if level == 1 { cells.next()? } else { missing.clone() });
            }
            Some(())
        }
        match (self, cells) {
            (Cells::Numbers(to), Cells::Numbers(cells)) => spread(to, cells, present, f64::NAN),
            (Cells::Words(to), Cells::Words(cells)) => spread(to, cells, present, None),
            _ => None,
        }
    }
}

const DAMAGED: &str = "a page is damaged";
const OTHER_BYTES: &str = "a page does not match its checksum: the file is damaged";
/// A page larger than this is taken for a mistake.
const LARGEST_PAGE: usize = 1 << 30;

/// Decodes a column chunk.
pub(super) fn decode(leaf: &Leaf, chunk: &Chunk, bytes: &[u8]) -> Result<Cells, String> {
    let kind = leaf.kind?;
    let mut cells = Cells::new(kind);
    let mut dictionary = Cells::new(kind);
    let mut at = 0;
    while cells.len() < chunk.values {
        let (header, used) = Fields::read(bytes.get(at..).unwrap_or(&[])).ok_or(DAMAGED)?;
        at += used;
        let size = |id| header.size(id).filter(|v| *v <= LARGEST_PAGE).ok_or(DAMAGED);
        let (full, stored) = (size(2)?, size(3)?);
        let body = bytes.get(at..at + stored).ok_or(DAMAGED)?;
        at += stored;
        // Of the bytes as they are stored, levels included; most writers leave it out unless they are asked for it.
        if let Some(expected) = header.int(4) {
            let mut found = Crc::new();
            found.update(body);
            if found.sum() != expected as u32 {
                return Err(OTHER_BYTES.into());
            }
        }
        let left = chunk.values - cells.len();
        let count = |head: &Fields| head.size(1).filter(|v| (1..=left).contains(v)).ok_or(DAMAGED);
        match header.int(1) {
            Some(0) => {
                let head = header.fields(5).ok_or(DAMAGED)?;
                let page = decompress(chunk.codec, body, full)?;
                let count = count(head)?;
                let mut rest = &page[..];
                let mut levels = None;
                if leaf.optional {
                    let (len, after) = rest.split_first_chunk().ok_or(DAMAGED)?;
                    let (found, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or(DAMAGED)?;
                    (levels, rest) = (Some(found), after);
                }
                values(kind, head.int(2), rest, count, levels, &dictionary, &mut cells)?;
            }
            Some(2) => {
                let head = header.fields(7).ok_or(DAMAGED)?;
                let page = decompress(chunk.codec, body, full)?;
                let entries = head.size(1).filter(|v| *v <= full.saturating_mul(8)).ok_or(DAMAGED)?;
                dictionary = plain(kind, &page, entries).ok_or(DAMAGED)?;
            }
            Some(3) => {
                let head = header.fields(8).ok_or(DAMAGED)?;
                let count = count(head)?;
                let (definition, repetition) = (head.size(5).ok_or(DAMAGED)?, head.size(6).ok_or(DAMAGED)?);
                let (levels, rest) = body.split_at_checked(definition.saturating_add(repetition)).ok_or(DAMAGED)?;
                let codec = if head.get(7) == Some(&Value::Bool(false)) { 0 } else { chunk.codec };
                // Nothing at all is not compressed by every writer.
                let page = match rest.is_empty() {
                    true => Vec::new(),
                    false => decompress(codec, rest, full.checked_sub(levels.len()).ok_or(DAMAGED)?)?,
                };
                let levels = leaf.optional.then(|| &levels[repetition..]);
                values(kind, head.int(4), &page, count, levels, &dictionary, &mut cells)?;
            }
            // Index pages and those of later versions carry no values.
            _ => {}
        }
    }
    if let (Cells::Numbers(numbers), true) = (&mut cells, leaf.divisor != 1.0) {
        numbers.iter_mut().for_each(|v| *v /= leaf.divisor);
    }
    if let (Cells::Numbers(numbers), Some(Time::Day)) = (&mut cells, leaf.time) {
        numbers.iter_mut().for_each(|v| *v *= DAY);
    }
    Ok(cells)
}

/// Appends the values of a page; `levels` say which of them are there, if not all are.
fn values(
    kind: Physical,
    encoding: Option<i64>,
    bytes: &[u8],
    count: usize,
    levels: Option<&[u8]>,
    dictionary: &Cells,
    cells: &mut Cells,
) -> Result<(), String> {
    let present = levels.map(|levels| hybrid(levels, 1, count).ok_or(DAMAGED)).transpose()?;
    let stored = present.as_ref().map_or(count, |p| p.iter().filter(|v| **v == 1).count());
    let decoded = match encoding {
        Some(0) => plain(kind, bytes, stored),
        Some(2 | 8) if stored == 0 => Some(Cells::new(kind)),
        Some(2 | 8) => {
            let (width, rest) = bytes.split_first().ok_or(DAMAGED)?;
            let indices = hybrid(rest, u32::from(*width), stored).ok_or(DAMAGED)?;
            Some(dictionary.gather(&indices).ok_or("an index is beyond its dictionary")?)
        }
        Some(3) if kind == Physical::Boolean => {
            let bits = bytes.get(4..).and_then(|runs| hybrid(runs, 1, stored));
            bits.map(|bits| Cells::Numbers(bits.into_iter().map(f64::from).collect()))
        }
        Some(5) => delta(&mut Reader { bytes, at: 0 }, stored).map(|numbers| {
            let number = |v: i64| match kind {
                Physical::Number(NumberType::U32) => f64::from(v as u32),
                Physical::Number(NumberType::I32) => f64::from(v as i32),
                Physical::Number(NumberType::U64) => v as u64 as f64,
                _ => v as f64,
            };
            Cells::Numbers(numbers.into_iter().map(number).collect())
        }),
        Some(6) if matches!(kind, Physical::Bytes | Physical::Decimal(None)) => {
            let mut reader = Reader { bytes, at: 0 };
            let lengths = delta(&mut reader, stored).ok_or(DAMAGED)?;
            cells_of(kind, lengths.into_iter().map(|len| reader.take(usize::try_from(len).ok()?)))
        }
        Some(9) => byte_stream_split(kind, bytes, stored),
        other => return Err(format!("pages of encoding {} are not supported", other.unwrap_or(-1))),
    };
    let appended = decoded.and_then(|decoded| cells.extend(decoded, present.as_deref()));
    appended.ok_or_else(|| DAMAGED.into())
}

/// Values one after the other.
fn plain(kind: Physical, bytes: &[u8], count: usize) -> Option<Cells> {
    Some(match kind {
        Physical::Bytes | Physical::Decimal(None) => {
            let mut reader = Reader { bytes, at: 0 };
            let mut next = || {
                let len = u32::from_le_bytes(reader.take(4)?.try_into().ok()?);
                reader.take(len as usize)
            };
            cells_of(kind, (0..count).map(|_| next()))?
        }
        Physical::Decimal(Some(width)) => {
            let raw = bytes.get(..count.checked_mul(width)?)?;
            cells_of(kind, raw.chunks_exact(width.max(1)).map(Some))?
        }
        Physical::Wide => {
            let raw = bytes.get(..count.checked_mul(12)?)?;
            /// The first of 1970.
            const EPOCH: i64 = 2_440_588;
            let seconds = |raw: &[u8; 12]| {
                let (nanoseconds, day) = raw.split_at(8);
                let nanoseconds = i64::from_le_bytes(nanoseconds.try_into().unwrap_or_default());
                let day = i32::from_le_bytes(day.try_into().unwrap_or_default());
                (i64::from(day) - EPOCH) as f64 * DAY + nanoseconds as f64 / 1e9
            };
            Cells::Numbers(raw.as_chunks::<12>().0.iter().map(seconds).collect())
        }
        Physical::Boolean => {
            let bytes = bytes.get(..count.div_ceil(8))?;
            Cells::Numbers((0..count).map(|i| f64::from(bytes[i / 8] >> (i % 8) & 1)).collect())
        }
        Physical::Number(kind) => {
            let raw = bytes.get(..count.checked_mul(kind.size())?)?;
            let mut numbers = vec![0.0; count];
            kind.decode(false, raw, &mut numbers);
            Cells::Numbers(numbers)
        }
    })
}

/// Words or decimals of their bytes.
fn cells_of<'a>(kind: Physical, mut all: impl Iterator<Item = Option<&'a [u8]>>) -> Option<Cells> {
    Some(match kind {
        Physical::Bytes => Cells::Words(all.map(|word| Some(Some(word?.into()))).collect::<Option<_>>()?),
        _ => Cells::Numbers(all.by_ref().map(|bytes| whole(bytes?)).collect::<Option<_>>()?),
    })
}

/// Byte `k` of all values after byte `k - 1` of all values.
fn byte_stream_split(kind: Physical, bytes: &[u8], count: usize) -> Option<Cells> {
    let width = match kind {
        Physical::Number(number) => number.size(),
        Physical::Decimal(width) => width?,
        _ => return None,
    };
    let bytes = bytes.get(..count.checked_mul(width)?)?;
    let joined: Vec<u8> = (0..count).flat_map(|i| bytes.iter().skip(i).step_by(count).copied()).collect();
    plain(kind, &joined, count)
}

/// Bits from the low end of each byte.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, width: u32) -> Option<u64> {
        let mut value = 0u64;
        let mut done = 0;
        while done < width {
            let byte = *self.bytes.get(self.at / 8)?;
            let offset = (self.at % 8) as u32;
            let n = (8 - offset).min(width - done);
            let part = u64::from(byte >> offset) & ((1 << n) - 1);
            value |= part << done;
            done += n;
            self.at += n as usize;
        }
        Some(value)
    }
}

/// Runs of equal numbers and packed groups of eight, of `width` bits each.
fn hybrid(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
    if width > 32 {
        return None;
    }
    let mut out = Vec::new();
    let mut reader = Reader { bytes, at: 0 };
    while out.len() < count {
        let head = reader.varint()?;
        let (n, left) = (usize::try_from(head >> 1).ok().filter(|n| *n > 0)?, count - out.len());
        if head & 1 == 1 {
            // The last group may be cut short where its values are not needed.
            let packed = bytes.get(reader.at..)?;
            let len = n.checked_mul(width as usize)?.min(packed.len());
            let mut bits = Bits { bytes: reader.take(len)?, at: 0 };
            for _ in 0..left.min(n.checked_mul(8)?) {
                out.push(bits.take(width)? as u32);
            }
        } else {
            let raw = reader.take(width.div_ceil(8) as usize)?;
            let value = raw.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)) as u32;
            out.resize(out.len() + n.min(left), value);
        }
    }
    Some(out)
}

/// Differences in packed blocks (DELTA_BINARY_PACKED).
fn delta(reader: &mut Reader<'_>, count: usize) -> Option<Vec<i64>> {
    let (block, minis, total) = (reader.size()?, reader.size()?, reader.size()?);
    let mut value = reader.zigzag()?;
    if total == 0 && count == 0 {
        return Some(Vec::new());
    }
    if total != count || minis == 0 || block == 0 || block > 1 << 16 || minis > block || block % (32 * minis) != 0 {
        return None;
    }
    let mut out = vec![value];
    while out.len() < count {
        let least = reader.zigzag()?;
        for &width in reader.take(minis)? {
            if out.len() == count {
                break;
            }
            let per = block / minis;
            let mut bits =
                Bits { bytes: reader.take(per / 8 * usize::from(Some(width).filter(|w| *w <= 64)?))?, at: 0 };
            for _ in 0..per.min(count - out.len()) {
                value = value.wrapping_add(least).wrapping_add(bits.take(u32::from(width))? as i64);
                out.push(value);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of a structure of small numbers: that of `id` is a structure itself.
    fn structure(numbers: &[i32], last: Option<(u8, &[u8])>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in numbers {
            bytes.push(0x15);
            let mut rest = (number << 1 ^ number >> 31) as u32;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
        if let Some((step, inner)) = last {
            bytes.push(step << 4 | 0x0c);
            bytes.extend(inner);
        }
        bytes.push(0);
        bytes
    }

    /// A page of `kind` with its checksum, `head` being field `id` of its header.
    fn page(kind: i32, id: u8, head: &[i32], body: &[u8]) -> Vec<u8> {
        let mut crc = Crc::new();
        crc.update(body);
        let len = body.len() as i32;
        let head = structure(head, None);
        [&structure(&[kind, len, len, crc.sum() as i32], Some((id - 4, &head)))[..], body].concat()
    }

    #[test]
    fn pages_of_every_kind_are_compared_with_their_checksums() {
        let leaf = Leaf {
            name: "a".into(),
            kind: Ok(Physical::Number(NumberType::I32)),
            optional: false,
            divisor: 1.0,
            time: None,
        };
        let numbers: Vec<u8> = [7i32, -1, 300].iter().flat_map(|v| v.to_le_bytes()).collect();
        let plain = page(0, 5, &[3, 0, 3, 3], &numbers);
        let second = page(3, 8, &[3, 0, 3, 0, 0, 0], &numbers);
        let dictionary = page(2, 7, &[3, 0], &numbers);
        // Indices of two bits: 0, 1, 2.
        let indices = page(0, 5, &[3, 8, 3, 3], &[2, 0b11, 0b10_0100, 0]);
        for bytes in [plain, second, [dictionary, indices].concat()] {
            let chunk = Chunk { place: 0..bytes.len() as u64, codec: 0, values: 3, refused: None };
            let read = |bytes: &[u8]| match decode(&leaf, &chunk, bytes)? {
                Cells::Numbers(numbers) => Ok(numbers),
                Cells::Words(_) => Err("words".to_owned()),
            };
            assert_eq!(read(&bytes), Ok(vec![7.0, -1.0, 300.0]));
            let at = bytes.windows(numbers.len()).position(|w| w == numbers).unwrap();
            for flipped in at..at + numbers.len() {
                let mut damaged = bytes.clone();
                damaged[flipped] ^= 1;
                assert_eq!(read(&damaged), Err(OTHER_BYTES.to_owned()));
            }
        }
    }

    #[test]
    fn decimals_of_bytes_are_whole_numbers_of_any_length() {
        let numbers = [0i128, 1, -1, 127, 128, -128, -129, 255, 256, 1 << 53, -(1 << 90), i128::MAX, i128::MIN];
        for number in numbers {
            let bytes = number.to_be_bytes();
            let sign = if number < 0 { 0xff } else { 0 };
            for longer in [0, 1, 16] {
                let long = [&vec![sign; longer][..], &bytes].concat();
                assert_eq!(whole(&long), Some(number as f64), "{number} in {} bytes", long.len());
                let (words, widths) = ([&(long.len() as u32).to_le_bytes()[..], &long].concat(), Some(long.len()));
                for (kind, page) in [(Physical::Decimal(None), words), (Physical::Decimal(widths), long)] {
                    let Some(Cells::Numbers(found)) = plain(kind, &page, 1) else { panic!("{kind:?}") };
                    assert_eq!(found, [number as f64]);
                }
            }
            // Without the bytes that repeat the sign.
            let short = (0..16).rev().find(|n| number << (8 * n) >> (8 * n) == number).unwrap();
            assert_eq!(whole(&bytes[short..]), Some(number as f64));
        }
        // 2^200, which takes 26 bytes.
        assert_eq!(whole(&[&[1][..], &[0; 25]].concat()), Some(200f64.exp2()));
        assert_eq!(whole(&[&[0xff, 0][..], &[0; 25]].concat()), Some(-208f64.exp2()));
        assert_eq!(whole(&[]), None);
        assert!(plain(Physical::Decimal(Some(8)), &[0; 15], 2).is_none());
    }

    #[test]
    fn runs_and_packed_groups_are_told_apart() {
        // A run of three 5s, then a group of eight 3-bit numbers 0 to 7 (the format's own example).
        let bytes = [0b110, 5, 0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(hybrid(&bytes, 3, 11).unwrap(), [5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(hybrid(&bytes, 3, 12), None);
        assert_eq!(hybrid(&[0, 1], 8, 1), None, "an empty run would never end");
    }
}
