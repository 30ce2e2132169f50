//! Decompression of pages: what writers use by default (Snappy, Zstandard) and the other common ones.

use std::io::Read;

/// Decompresses a page of a codec's number to `len` bytes.
pub(super) fn decompress(codec: i64, bytes: &[u8], len: usize) -> Result<Vec<u8>, String> {
    let out = match codec {
        0 => bytes.to_vec(),
        1 => snappy(bytes, len).ok_or("a Snappy page is damaged")?,
        2 => stream(flate2::read::MultiGzDecoder::new(bytes), len)
            .map_err(|e| format!("a gzip page is damaged ({e})"))?,
        6 => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
            let decoder = decoder.map_err(|e| format!("a Zstandard page is damaged ({e})"))?;
            stream(decoder, len).map_err(|e| format!("a Zstandard page is damaged ({e})"))?
        }
        7 => lz4(bytes, len).ok_or("an LZ4 page is damaged")?,
        other => {
            let name = ["none", "Snappy", "gzip", "LZO", "Brotli", "Hadoop's LZ4", "Zstandard", "LZ4"];
            let name = usize::try_from(other).ok().and_then(|i| name.get(i)).copied().unwrap_or("an unknown codec");
            return Err(format!(
                "pages compressed with {name} are not supported; write the file with Snappy or Zstandard"
            ));
        }
    };
    if out.len() == len { Ok(out) } else { Err(format!("a page has {} bytes, expected {len}", out.len())) }
}

fn stream(source: impl Read, len: usize) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    // One byte more than expected is enough to notice that there are too many.
    source.take(len as u64 + 1).read_to_end(&mut out)?;
    Ok(out)
}

/// Appends `len` bytes from `distance` before the end.
fn copy_back(out: &mut Vec<u8>, distance: usize, len: usize, most: usize) -> Option<()> {
    if distance == 0 || distance > out.len() || out.len() + len > most {
        return None;
    }
    let start = out.len() - distance;
    // The source may overlap what is being written: that is how runs are stored.
    for i in 0..len {
        out.push(out[start + i]);
    }
    Some(())
}

fn snappy(bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let (mut at, mut promised) = (0, 0u64);
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        promised |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    if promised != len as u64 {
        return None;
    }
    let mut out = Vec::with_capacity(len.min(bytes.len().saturating_mul(32)));
    while at < bytes.len() {
        let tag = bytes[at];
        at += 1;
        let word = |at: usize, n: usize| {
            let raw = bytes.get(at..at + n)?;
            Some(raw.iter().rev().fold(0usize, |v, b| v << 8 | usize::from(*b)))
        };
        match tag & 3 {
            0 => {
                let mut n = usize::from(tag >> 2);
                if n >= 60 {
                    let extra = n - 59;
                    n = word(at, extra)?;
                    at += extra;
                }
                let literal = bytes.get(at..at.checked_add(n)?.checked_add(1)?)?;
                if out.len() + literal.len() > len {
                    return None;
                }
                out.extend_from_slice(literal);
                at += n + 1;
            }
            1 => {
                let distance = usize::from(tag >> 5) << 8 | usize::from(*bytes.get(at)?);
                at += 1;
                copy_back(&mut out, distance, 4 + usize::from(tag >> 2 & 7), len)?;
            }
            kind => {
                let n = if kind == 2 { 2 } else { 4 };
                let distance = word(at, n)?;
                at += n;
                copy_back(&mut out, distance, 1 + usize::from(tag >> 2), len)?;
            }
        }
    }
    Some(out)
}

/// A raw block of LZ4.
fn lz4(bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(len.min(bytes.len().saturating_mul(32)));
    let mut at = 0;
    let extended = |short: u8, at: &mut usize| {
        let mut n = usize::from(short);
        if short == 15 {
            loop {
                let byte = *bytes.get(*at)?;
                *at += 1;
                n += usize::from(byte);
                if byte < 255 {
                    break;
                }
            }
        }
        Some(n)
    };
    loop {
        let token = *bytes.get(at)?;
        at += 1;
        let literals = extended(token >> 4, &mut at)?;
        let literal = bytes.get(at..at.checked_add(literals)?)?;
        if out.len() + literals > len {
            return None;
        }
        out.extend_from_slice(literal);
        at += literals;
        if at == bytes.len() {
            return Some(out);
        }
        let distance = usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        at += 2;
        let matched = extended(token & 15, &mut at)? + 4;
        copy_back(&mut out, distance, matched, len)?;
    }
}
