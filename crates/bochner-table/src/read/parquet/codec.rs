//! Decompression of pages: what writers use by default (Snappy, Zstandard) and the other common ones.

use std::fmt::Display;
use std::io::Read;

/// Bytes of a buffer that a decompressor fills.
const BUFFER: usize = 1 << 14;

/// Decompresses a page of a codec's number to `len` bytes.
pub(super) fn decompress(codec: i64, bytes: &[u8], len: usize) -> Result<Vec<u8>, String> {
    fn told<T>(page: &str, found: Result<T, impl Display>) -> Result<T, String> {
        found.map_err(|e| format!("{page} page is damaged ({e})"))
    }
    let stream = |page: &str, source: &mut dyn Read| {
        let mut out = Vec::new();
        // One byte more than expected is enough to notice that there are too many.
        told(page, source.take(len as u64 + 1).read_to_end(&mut out))?;
        Ok::<_, String>(out)
    };
    // Room is made for what a page of so many bytes can hold at most, whatever it promises.
    let may_hold = |page: &str, factor: usize| match len <= bytes.len().saturating_mul(factor) {
        true => Ok(()),
        false => Err(format!("{page} page is damaged (it cannot hold {len} bytes)")),
    };
    let out = match codec {
        0 => bytes.to_vec(),
        1 => {
            may_hold("a Snappy", 32)?;
            let mut out = vec![0; len];
            let n = told("a Snappy", snap::raw::Decoder::new().decompress(bytes, &mut out))?;
            out.truncate(n);
            out
        }
        2 => stream("a gzip", &mut flate2::read::MultiGzDecoder::new(bytes))?,
        4 => stream("a Brotli", &mut brotli_decompressor::Decompressor::new(bytes, BUFFER))?,
        6 => stream("a Zstandard", &mut told("a Zstandard", ruzstd::decoding::StreamingDecoder::new(bytes))?)?,
        7 => {
            may_hold("an LZ4", 256)?;
            told("an LZ4", lz4_flex::block::decompress(bytes, len))?
        }
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
