//! A column of a row group, page by page: levels, dictionaries, encodings.

use super::codec::decompress;
use super::thrift;
use flate2::Crc;

/// Type of the stored values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Physical {
    Boolean,
    Int32 { unsigned: bool },
    Int64 { unsigned: bool },
    Float,
    Double,
    Bytes,
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
}

/// Where a column of a row group is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) codec: i64,
    pub(super) values: usize,
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

    fn push_missing(&mut self) {
        match self {
            Cells::Numbers(v) => v.push(f64::NAN),
            Cells::Words(v) => v.push(None),
        }
    }

    /// Appends cell `i` of `other`, if there is one.
    fn push_from(&mut self, other: &Cells, i: usize) -> Option<()> {
        match (self, other) {
            (Cells::Numbers(to), Cells::Numbers(from)) => to.push(*from.get(i)?),
            (Cells::Words(to), Cells::Words(from)) => to.push(from.get(i)?.clone()),
            _ => return None,
        }
        Some(())
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
        let (header, used) = thrift::read(bytes.get(at..).unwrap_or(&[])).ok_or(DAMAGED)?;
        at += used;
        let size = |id| header.int(id).and_then(|v| usize::try_from(v).ok()).filter(|v| *v <= LARGEST_PAGE);
        let (full, stored) = (size(2).ok_or(DAMAGED)?, size(3).ok_or(DAMAGED)?);
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
        match header.int(1) {
            Some(0) => {
                let head = header.fields(5).ok_or(DAMAGED)?;
                let page = decompress(chunk.codec, body, full)?;
                let count = count(head.int(1), chunk, &cells)?;
                let mut rest = &page[..];
                let present = if leaf.optional {
                    let (len, after) = rest.split_at_checked(4).ok_or(DAMAGED)?;
                    let len = u32::from_le_bytes(len.try_into().map_err(|_| DAMAGED)?) as usize;
                    let (levels, after) = after.split_at_checked(len).ok_or(DAMAGED)?;
                    rest = after;
                    Some(hybrid(levels, 1, count).ok_or(DAMAGED)?)
                } else {
                    None
                };
                values(kind, head.int(2), rest, count, present.as_deref(), &dictionary, &mut cells)?;
            }
            Some(2) => {
                let head = header.fields(7).ok_or(DAMAGED)?;
                let page = decompress(chunk.codec, body, full)?;
                let entries =
                    head.int(1).and_then(|v| usize::try_from(v).ok()).filter(|v| *v <= full.saturating_mul(8));
                let mut read = Cells::new(kind);
                plain(kind, &page, entries.ok_or(DAMAGED)?, &mut read).ok_or(DAMAGED)?;
                dictionary = read;
            }
            Some(3) => {
                let head = header.fields(8).ok_or(DAMAGED)?;
                let count = count(head.int(1), chunk, &cells)?;
                let size = |id| head.int(id).and_then(|v| usize::try_from(v).ok());
                let (definition, repetition) = (size(5).ok_or(DAMAGED)?, size(6).ok_or(DAMAGED)?);
                let (levels, rest) = body.split_at_checked(definition.saturating_add(repetition)).ok_or(DAMAGED)?;
                let present = match leaf.optional {
                    true => Some(hybrid(levels.get(repetition..).ok_or(DAMAGED)?, 1, count).ok_or(DAMAGED)?),
                    false => None,
                };
                let codec = if head.bool(7) == Some(false) { 0 } else { chunk.codec };
                // Nothing at all is not compressed by every writer.
                let page = match rest.is_empty() {
                    true => Vec::new(),
                    false => decompress(codec, rest, full.checked_sub(levels.len()).ok_or(DAMAGED)?)?,
                };
                values(kind, head.int(4), &page, count, present.as_deref(), &dictionary, &mut cells)?;
            }
            // Index pages and those of later versions carry no values.
            _ => {}
        }
    }
    if let (Cells::Numbers(numbers), true) = (&mut cells, leaf.divisor != 1.0) {
        numbers.iter_mut().for_each(|v| *v /= leaf.divisor);
    }
    Ok(cells)
}

fn count(found: Option<i64>, chunk: &Chunk, cells: &Cells) -> Result<usize, String> {
    let left = chunk.values - cells.len();
    found.and_then(|v| usize::try_from(v).ok()).filter(|v| (1..=left).contains(v)).ok_or_else(|| DAMAGED.into())
}

/// The values of a page, `present` ones from the bytes and missing ones between them.
fn values(
    kind: Physical,
    encoding: Option<i64>,
    bytes: &[u8],
    count: usize,
    present: Option<&[u32]>,
    dictionary: &Cells,
    cells: &mut Cells,
) -> Result<(), String> {
    let stored = present.map_or(count, |p| p.iter().filter(|v| **v == 1).count());
    let mut decoded = Cells::new(kind);
    let mut indices = None;
    match encoding {
        Some(0) => plain(kind, bytes, stored, &mut decoded).ok_or(DAMAGED)?,
        Some(2 | 8) => {
            let mut found = Vec::new();
            if stored > 0 {
                let (width, rest) = bytes.split_first().ok_or(DAMAGED)?;
                found = hybrid(rest, u32::from(*width), stored).ok_or(DAMAGED)?;
            }
            indices = Some(found);
        }
        Some(3) if kind == Physical::Boolean => {
            let runs = bytes.get(4..).ok_or(DAMAGED)?;
            let bits = hybrid(runs, 1, stored).ok_or(DAMAGED)?;
            decoded = Cells::Numbers(bits.into_iter().map(f64::from).collect());
        }
        Some(5) => {
            let numbers = delta(bytes, stored).ok_or(DAMAGED)?;
            let number = |v: i64| match kind {
                Physical::Int32 { unsigned: true } => f64::from(v as u32),
                Physical::Int32 { .. } => f64::from(v as i32),
                Physical::Int64 { unsigned: true } => v as u64 as f64,
                _ => v as f64,
            };
            decoded = Cells::Numbers(numbers.into_iter().map(number).collect());
        }
        Some(6) if kind == Physical::Bytes => {
            let (lengths, used) = delta_with_end(bytes, stored).ok_or(DAMAGED)?;
            let mut rest = bytes.get(used..).ok_or(DAMAGED)?;
            let mut words = Vec::new();
            for len in lengths {
                let (word, after) =
                    usize::try_from(len).ok().and_then(|len| rest.split_at_checked(len)).ok_or(DAMAGED)?;
                words.push(Some(word.into()));
                rest = after;
            }
            decoded = Cells::Words(words);
        }
        Some(9) => decoded = byte_stream_split(kind, bytes, stored).ok_or(DAMAGED)?,
        other => return Err(format!("pages of encoding {} are not supported", other.unwrap_or(-1))),
    }
    let mut next = 0;
    for i in 0..count {
        if present.is_some_and(|p| p[i] != 1) {
            cells.push_missing();
            continue;
        }
        match &indices {
            Some(indices) => {
                cells.push_from(dictionary, indices[next] as usize).ok_or("an index is beyond its dictionary")?
            }
            None => cells.push_from(&decoded, next).ok_or(DAMAGED)?,
        }
        next += 1;
    }
    Ok(())
}

/// Values one after the other.
fn plain(kind: Physical, bytes: &[u8], count: usize, cells: &mut Cells) -> Option<()> {
    fn each<const N: usize>(
        bytes: &[u8],
        count: usize,
        out: &mut Vec<f64>,
        number: impl Fn([u8; N]) -> f64,
    ) -> Option<()> {
        let raw = bytes.get(..count.checked_mul(N)?)?;
        out.extend(raw.as_chunks::<N>().0.iter().map(|b| number(*b)));
        Some(())
    }
    match (kind, cells) {
        (Physical::Bytes, Cells::Words(words)) => {
            let mut rest = bytes;
            for _ in 0..count {
                let (len, after) = rest.split_at_checked(4)?;
                let (word, after) = after.split_at_checked(u32::from_le_bytes(len.try_into().ok()?) as usize)?;
                words.push(Some(word.into()));
                rest = after;
            }
            Some(())
        }
        (Physical::Boolean, Cells::Numbers(out)) => {
            if bytes.len() < count.div_ceil(8) {
                return None;
            }
            out.extend((0..count).map(|i| f64::from(bytes[i / 8] >> (i % 8) & 1)));
            Some(())
        }
        (Physical::Int32 { unsigned: false }, Cells::Numbers(out)) => {
            each(bytes, count, out, |b| f64::from(i32::from_le_bytes(b)))
        }
        (Physical::Int32 { .. }, Cells::Numbers(out)) => each(bytes, count, out, |b| f64::from(u32::from_le_bytes(b))),
        (Physical::Int64 { unsigned: false }, Cells::Numbers(out)) => {
            each(bytes, count, out, |b| i64::from_le_bytes(b) as f64)
        }
        (Physical::Int64 { .. }, Cells::Numbers(out)) => each(bytes, count, out, |b| u64::from_le_bytes(b) as f64),
        (Physical::Float, Cells::Numbers(out)) => each(bytes, count, out, |b| f64::from(f32::from_le_bytes(b))),
        (Physical::Double, Cells::Numbers(out)) => each(bytes, count, out, f64::from_le_bytes),
        _ => None,
    }
}

/// Byte `k` of all values after byte `k - 1` of all values.
fn byte_stream_split(kind: Physical, bytes: &[u8], count: usize) -> Option<Cells> {
    let size = match kind {
        Physical::Float | Physical::Int32 { .. } => 4,
        Physical::Double | Physical::Int64 { .. } => 8,
        _ => return None,
    };
    let bytes = bytes.get(..count.checked_mul(size)?)?;
    let joined: Vec<u8> = (0..count).flat_map(|i| (0..size).map(move |k| bytes[k * count + i])).collect();
    let mut cells = Cells::new(kind);
    plain(kind, &joined, count, &mut cells)?;
    Some(cells)
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

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Runs of equal numbers and packed groups of eight, of `width` bits each.
fn hybrid(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
    if width > 32 {
        return None;
    }
    let mut out = Vec::new();
    let mut at = 0;
    while out.len() < count {
        let head = varint(bytes, &mut at)?;
        let left = count - out.len();
        if head & 1 == 1 {
            let groups = usize::try_from(head >> 1).ok()?;
            let len = groups.checked_mul(width as usize)?;
            // The last group may be cut short where its values are not needed.
            let packed = bytes.get(at..)?;
            let mut bits = Bits { bytes: &packed[..packed.len().min(len)], at: 0 };
            for _ in 0..left.min(groups.checked_mul(8)?) {
                out.push(bits.take(width)? as u32);
            }
            at = at.checked_add(len)?;
            if groups == 0 {
                return None;
            }
        } else {
            let run = usize::try_from(head >> 1).ok()?;
            let len = width.div_ceil(8) as usize;
            let raw = bytes.get(at..at + len)?;
            let value = raw.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)) as u32;
            at += len;
            if run == 0 {
                return None;
            }
            out.resize(out.len() + run.min(left), value);
        }
    }
    Some(out)
}

fn delta(bytes: &[u8], count: usize) -> Option<Vec<i64>> {
    delta_with_end(bytes, count).map(|(values, _)| values)
}

/// Differences in packed blocks (DELTA_BINARY_PACKED), and where they end.
fn delta_with_end(bytes: &[u8], count: usize) -> Option<(Vec<i64>, usize)> {
    let mut at = 0;
    let block = usize::try_from(varint(bytes, &mut at)?).ok()?;
    let minis = usize::try_from(varint(bytes, &mut at)?).ok()?;
    let total = usize::try_from(varint(bytes, &mut at)?).ok()?;
    let unzig = |v: u64| (v >> 1) as i64 ^ -((v & 1) as i64);
    let mut value = unzig(varint(bytes, &mut at)?);
    if total != count || minis == 0 || block == 0 || block > 1 << 16 || minis > block || block % (32 * minis) != 0 {
        return (total == 0 && count == 0).then(|| (Vec::new(), at));
    }
    let mut out = Vec::new();
    if count > 0 {
        out.push(value);
    }
    while out.len() < count {
        let least = unzig(varint(bytes, &mut at)?);
        let widths = bytes.get(at..at.checked_add(minis)?)?;
        at += minis;
        for &width in widths {
            if out.len() == count {
                break;
            }
            if width > 64 {
                return None;
            }
            let per = block / minis;
            let packed = bytes.get(at..at + per / 8 * usize::from(width))?;
            let mut bits = Bits { bytes: packed, at: 0 };
            for _ in 0..per.min(count - out.len()) {
                value = value.wrapping_add(least).wrapping_add(bits.take(u32::from(width))? as i64);
                out.push(value);
            }
            at += packed.len();
        }
    }
    Some((out, at))
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
        let leaf =
            Leaf { name: "a".into(), kind: Ok(Physical::Int32 { unsigned: false }), optional: false, divisor: 1.0 };
        let numbers: Vec<u8> = [7i32, -1, 300].iter().flat_map(|v| v.to_le_bytes()).collect();
        let plain = page(0, 5, &[3, 0, 3, 3], &numbers);
        let second = page(3, 8, &[3, 0, 3, 0, 0, 0], &numbers);
        let dictionary = page(2, 7, &[3, 0], &numbers);
        // Indices of two bits: 0, 1, 2.
        let indices = page(0, 5, &[3, 8, 3, 3], &[2, 0b11, 0b10_0100, 0]);
        for bytes in [plain, second, [dictionary, indices].concat()] {
            let chunk = Chunk { start: 0, len: bytes.len() as u64, codec: 0, values: 3 };
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
    fn runs_and_packed_groups_are_told_apart() {
        // A run of three 5s, then a group of eight 3-bit numbers 0 to 7 (the format's own example).
        let bytes = [0b110, 5, 0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(hybrid(&bytes, 3, 11).unwrap(), [5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(hybrid(&bytes, 3, 12), None);
        assert_eq!(hybrid(&[0, 1], 8, 1), None, "an empty run would never end");
    }
}
