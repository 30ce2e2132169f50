//! Texts in other encodings than UTF-8, on their way to it.

use super::input::{Bytes, Damage, read_some};
use encoding_rs::{CoderResult, Decoder, Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, Read};

/// Bytes decoded at a time.
const PIECE: usize = 1 << 16;

/// The encoding of a text that begins so, `None` for UTF-8; or the name of one that is not read.
pub(super) fn of(start: &[u8]) -> Result<Option<&'static Encoding>, &'static str> {
    // The mark of one of them begins with that of the other.
    if [&[0xff, 0xfe, 0, 0], &[0, 0, 0xfe, 0xff]].iter().any(|mark| start.starts_with(*mark)) {
        return Err("UTF-32");
    }
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return Ok(Some(encoding).filter(|encoding| *encoding != encoding_rs::UTF_8));
    }
    // Without a mark: of every character, one byte is not zero.
    let some = &start[..start.len().min(64) / 4 * 4];
    let only =
        |at: usize, of: usize| some.len() >= 8 && some.iter().enumerate().all(|(i, c)| (i % of == at) == (*c != 0));
    if only(0, 4) || only(3, 4) {
        return Err("UTF-32");
    }
    for (at, encoding) in [(0, UTF_16LE), (1, UTF_16BE)] {
        if only(at, 2) {
            return Ok(Some(encoding));
        }
    }
    let is_utf8 = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The last character may be cut.
        Err(e) => e.error_len().is_none(),
    };
    let is_text = !start.iter().any(|c| matches!(c, 0..=8 | 14..=31));
    Ok((!is_utf8 && is_text).then_some(WINDOWS_1252))
}

/// The encoding of a name, as browsers know it.
pub(super) fn named(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label(name.trim().as_bytes())
        .or_else(|| Encoding::for_label(name.replace("latin-", "latin").as_bytes()))
}

/// Bytes of some encoding as UTF-8.
pub(super) struct Decoded {
    source: Bytes,
    decoder: Decoder,
    name: &'static str,
    raw: Vec<u8>,
    /// What of `raw` is still to be decoded.
    left: std::ops::Range<usize>,
    text: Vec<u8>,
    /// What of `text` is still to be handed over.
    ready: std::ops::Range<usize>,
    ended: bool,
}

impl Decoded {
    pub(super) fn new(source: Bytes, encoding: &'static Encoding) -> Self {
        // A byte becomes three at most.
        let (raw, text) = (vec![0; PIECE], vec![0; 3 * PIECE + 16]);
        let (decoder, name) = (encoding.new_decoder_with_bom_removal(), encoding.name());
        Decoded { source, decoder, name, raw, left: 0..0, text, ready: 0..0, ended: false }
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() {
            if self.left.is_empty() {
                if self.ended {
                    return Ok(0);
                }
                let n = read_some(&mut self.source, &mut self.raw)?;
                (self.left, self.ended) = (0..n, n == 0);
            }
            let raw = &self.raw[self.left.clone()];
            let (result, read, written, wrong) = self.decoder.decode_to_utf8(raw, &mut self.text, self.ended);
            if wrong {
                let name = self.name;
                return Err(Damage::told(format!(
                    "the text is not {name} all through; --encoding names another encoding"
                )));
            }
            self.left.start += read;
            self.ready = 0..written;
            if self.ended && written == 0 && result == CoderResult::InputEmpty {
                return Ok(0);
            }
        }
        let n = (&self.text[self.ready.clone()]).read(buffer)?;
        self.ready.start += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8], encoding: &'static Encoding) -> io::Result<String> {
        let mut text = String::new();
        Decoded::new(Box::new(io::Cursor::new(bytes.to_vec())), encoding).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn encodings_are_told_by_the_first_bytes() {
        let wide = |big: bool| -> Vec<u8> {
            "name,Größe\n".encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
        };
        assert_eq!(of(b"a,b\n"), Ok(None));
        assert_eq!(of("Größe,b\n".as_bytes()), Ok(None));
        assert_eq!(of(&"Größ".as_bytes()[..4]), Ok(None), "a letter that is cut");
        assert_eq!(of(b"\xef\xbb\xbfa"), Ok(None));
        assert_eq!(of(b"Gr\xf6\xdfe,b\n"), Ok(Some(WINDOWS_1252)));
        assert_eq!(of(b"Gr\xf6\xdfe\x01"), Ok(None), "no text at all");
        assert_eq!((of(&wide(false)), of(&wide(true))), (Ok(Some(UTF_16LE)), Ok(Some(UTF_16BE))));
        assert_eq!(of(b"\xff\xfea\0"), Ok(Some(UTF_16LE)));
        assert_eq!(of(b"\xff\xfe\0\0a\0\0\0"), Err("UTF-32"));
        assert_eq!(decoded(&wide(true), UTF_16BE).unwrap(), "name,Größe\n");
        assert_eq!(decoded(b"Gr\xf6\xdfe \x80", WINDOWS_1252).unwrap(), "Größe €");
        assert!(decoded(b"\x00\xd8a\0", UTF_16LE).unwrap_err().to_string().contains("UTF-16LE"));
        assert_eq!((named("latin-1"), named("UTF-16"), named("klingon")), (Some(WINDOWS_1252), Some(UTF_16LE), None));
    }

    #[test]
    fn long_texts_are_decoded_piece_by_piece() {
        let text: String = (0..100_000).map(|i| if i % 7 == 0 { '€' } else { 'ä' }).collect();
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(decoded(&bytes, UTF_16LE).unwrap() == text);
    }
}
