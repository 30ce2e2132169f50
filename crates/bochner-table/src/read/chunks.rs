//! Text in chunks of whole lines, parsed by all threads and delivered in order.

use super::Result;
use super::columns::Trouble;
use super::input::{Bytes, Input, read_some, read_up_to};
use crate::interrupt;
use bochner::Error;
use rayon::prelude::*;
use std::io::{self, Read};

/// Bytes per chunk: small enough to stay in the second cache with what becomes of it, and at most so many.
const CHUNK: usize = 1 << 19;
const SMALLEST_CHUNK: usize = 1 << 16;
/// Rows per chunk where they are short: enough for who works on blocks of them.
const CHUNK_ROWS: usize = 512;

/// Bytes per chunk for rows of about this length.
fn chunk_for(row_bytes: usize) -> usize {
    row_bytes.saturating_mul(CHUNK_ROWS).clamp(SMALLEST_CHUNK, CHUNK)
}
/// A line longer than this is taken for a mistake, not for data.
const LONGEST_LINE: usize = 1 << 28;

/// Where a quote opens a field that may have line ends inside; elsewhere it is a character like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// Nowhere.
    Nowhere,
    /// Where a field begins: at the beginning of a line or after this separator, blanks between them passed over.
    After(u8),
    /// The same while it is not known which of the usual separators it is.
    AfterAny,
}

impl Quotes {
    /// Whether a quote behind these bytes, which begin with a line, opens a field.
    fn open_after(self, bytes: &[u8]) -> bool {
        let blank = if self == Quotes::After(b' ') { b"\t" as &[u8] } else { b"" };
        let end = bytes.iter().rposition(|c| *c != b' ' && !blank.contains(c));
        let Some(end) = end else { return true };
        match (bytes[end], self) {
            (b'\n', _) => true,
            (_, Quotes::After(b' ')) => end + 1 < bytes.len(),
            (c, Quotes::After(separator)) => c == separator,
            (c, Quotes::AfterAny) => SEPARATORS.contains(&c) || bytes[..=end] == *BYTE_ORDER_MARK,
            (_, Quotes::Nowhere) => false,
        }
    }
}

/// The usual separators; runs of blanks are one too.
pub(super) const SEPARATORS: [u8; 4] = [b',', b'\t', b';', b'|'];
/// What some programs write before a text in UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8; 3] = b"\xef\xbb\xbf";

/// A chunk: the first bytes of a buffer that only grows. Emptied and filled again it would be written twice.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    pub(super) fn lines(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Adds up to `most` bytes of a stream, of those that are there without waiting for more if `eager`; how many there were.
    fn add(&mut self, source: &mut dyn Read, most: usize, eager: bool) -> io::Result<usize> {
        let end = self.len + most;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let room = &mut self.bytes[self.len..end];
        let n = if eager { read_some(source, room)? } else { read_up_to(source, room)? };
        self.len += n;
        Ok(n)
    }
}

/// Cuts a stream after line ends.
pub(super) struct Chunks {
    source: Bytes,
    carry: Vec<u8>,
    quotes: Quotes,
    ended: bool,
    /// Bytes still to be passed over before the first line.
    skip: u64,
    /// Whether lines are handed over as soon as they have arrived.
    eager: bool,
    /// Bytes per chunk.
    size: usize,
}

impl Chunks {
    pub(super) fn new(source: Bytes, skip: u64, quotes: Quotes) -> Self {
        Chunks { source, carry: Vec::new(), quotes, ended: false, skip, eager: false, size: CHUNK }
    }

    /// The same, but lines that have arrived do not wait for more of them.
    pub(super) fn eagerly(self, eager: bool) -> Self {
        Chunks { eager, ..self }
    }

    /// The same in chunks of another size.
    fn of_size(self, size: usize) -> Self {
        Chunks { size, ..self }
    }

    /// Adds the next lines to `chunk`; whether there were any.
    pub(super) fn next_too(&mut self, chunk: &mut Buffer) -> io::Result<bool> {
        let mut more = Buffer::default();
        self.next(&mut more)?;
        chunk.add(&mut more.lines(), more.len, false)?;
        Ok(more.len > 0)
    }

    /// Fills `chunk` with whole lines; leaves it empty at the end.
    pub(super) fn next(&mut self, chunk: &mut Buffer) -> io::Result<()> {
        chunk.len = 0;
        let mut carry = std::mem::take(&mut self.carry);
        chunk.add(&mut carry.as_slice(), carry.len(), false)?;
        carry.clear();
        if self.ended {
            return Ok(());
        }
        if self.skip > 0 {
            io::copy(&mut (&mut self.source).take(std::mem::take(&mut self.skip)), &mut io::sink())?;
        }
        let mut looked_at = 0;
        loop {
            if self.eager {
                let n = chunk.add(&mut self.source, self.size, true)?;
                self.ended = n == 0;
                // Without a new line end there is nothing to find; of a long field, only every quarter more is looked at.
                let is_worth_it = chunk.len < 2 * CHUNK || 4 * chunk.len > 5 * looked_at;
                let line_end = memchr::memchr(b'\n', &chunk.lines()[chunk.len - n..]).is_some();
                if n > 0 && !(line_end && is_worth_it) && chunk.len <= LONGEST_LINE {
                    continue;
                }
                looked_at = chunk.len;
            } else {
                // By a quarter of a long field: each time all of it is looked at.
                let most = self.size.max(chunk.len / 4);
                self.ended = chunk.add(&mut self.source, most, false)? < most;
            }
            if self.ended {
                return Ok(());
            }
            if let Some(end) = last_line_end(chunk.lines(), self.quotes) {
                carry.extend_from_slice(&chunk.lines()[end..]);
                self.carry = carry;
                chunk.len = end;
                return Ok(());
            }
            if chunk.len > LONGEST_LINE {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "endless line"));
            }
        }
    }
}

/// Where the last whole line ends; the chunk begins with one.
fn last_line_end(chunk: &[u8], quotes: Quotes) -> Option<usize> {
    if quotes == Quotes::Nowhere || memchr::memchr(b'"', chunk).is_none() {
        return memchr::memrchr(b'\n', chunk).map(|at| at + 1);
    }
    let (mut inside, mut closed, mut end) = (false, None, None);
    for at in memchr::memchr2_iter(b'"', b'\n', chunk) {
        match (chunk[at], inside) {
            (b'"', true) => (inside, closed) = (false, Some(at)),
            // Two of them inside a field stand for one.
            (b'"', false) => inside = closed.is_some_and(|c| c + 1 == at) || quotes.open_after(&chunk[..at]),
            (_, false) => end = Some(at + 1),
            (_, true) => {}
        }
    }
    end
}

/// A chunk, what became of it, and its number of lines or what is wrong with it; reused from batch to batch.
struct Slot<T> {
    chunk: Buffer,
    parsed: T,
    lines: Result<u64, Trouble>,
}

impl<T: Default> Default for Slot<T> {
    fn default() -> Self {
        Slot { chunk: Buffer::default(), parsed: T::default(), lines: Ok(0) }
    }
}

/// The lines of a text behind the first ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) input: &'a Input,
    /// Bytes and lines that are passed over.
    pub(super) skip: (u64, u64),
    pub(super) quotes: Quotes,
    /// Length of a row, about.
    pub(super) row_bytes: usize,
}

impl Lines<'_> {
    /// Parses every chunk with `parse`, which counts its lines, on all threads and hands the results to `visit` in the order of
    /// the file, with the number of lines before them. `locate` makes the error about a mistake behind so many lines.
    ///
    /// The next chunks are read while the current ones are parsed. Memory is a few megabytes per thread.
    pub(super) fn parse_in_order<T: Default + Send>(
        self,
        parse: impl Fn(&[u8], &mut T) -> Result<u64, Trouble> + Sync,
        locate: impl Fn(Trouble, u64) -> Error,
        mut visit: impl FnMut(&mut T, u64) -> Result<()>,
    ) -> Result<()> {
        let input = self.input;
        let told = |e: io::Error| match e.kind() {
            io::ErrorKind::FileTooLarge => input.fault(format!(
                "a line is longer than {} MB; is this a text file, and are its quotes closed?",
                LONGEST_LINE >> 20
            )),
            _ => input.unreadable(e),
        };
        let size = chunk_for(self.row_bytes);
        let mut chunks = Chunks::new(input.bytes()?, self.skip.0, self.quotes).eagerly(input.is_stream()).of_size(size);
        let parse = |slot: &mut Slot<T>| slot.lines = parse(slot.chunk.lines(), &mut slot.parsed);
        let mut before = self.skip.1;
        let mut hand_over = |slot: &mut Slot<T>| {
            if interrupt::requested() {
                return Err(Error::Interrupted);
            }
            let lines = std::mem::replace(&mut slot.lines, Ok(0)).map_err(|trouble| locate(trouble, before))?;
            visit(&mut slot.parsed, before)?;
            before += lines;
            Ok(())
        };
        if input.is_stream() {
            // Whoever waits for the answers to these rows may be the one who sends the next.
            let mut slot = Slot::default();
            loop {
                chunks.next(&mut slot.chunk).map_err(told)?;
                if slot.chunk.lines().is_empty() {
                    return Ok(());
                }
                parse(&mut slot);
                hand_over(&mut slot)?;
            }
        }
        let per_batch = 2 * CHUNK / size * rayon::current_num_threads();
        let mut read = move |batch: &mut Vec<Slot<T>>| -> io::Result<usize> {
            batch.resize_with(per_batch, Slot::default);
            for (i, slot) in batch.iter_mut().enumerate() {
                chunks.next(&mut slot.chunk)?;
                if slot.chunk.lines().is_empty() {
                    return Ok(i);
                }
            }
            Ok(per_batch)
        };
        let (mut current, mut next) = (Vec::new(), Vec::new());
        let mut filled = read(&mut current).map_err(told)?;
        while filled > 0 {
            let (coming, ()) =
                rayon::join(|| read(&mut next), || current[..filled].par_iter_mut().with_max_len(1).for_each(parse));
            current[..filled].iter_mut().try_for_each(&mut hand_over)?;
            filled = coming.map_err(told)?;
            std::mem::swap(&mut current, &mut next);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_end_inside_quotes_does_not_end_a_line() {
        let text = b"a,\"b\nc\",d\ne,\"f\n";
        assert_eq!(last_line_end(text, Quotes::After(b',')), Some(10));
        assert_eq!(last_line_end(text, Quotes::AfterAny), Some(10));
        assert_eq!(last_line_end(text, Quotes::Nowhere), Some(text.len()));
        assert_eq!(last_line_end(b"\"\n", Quotes::After(b',')), None);
        // Blanks before a quote, doubled quotes, blanks as separators, the mark before a text.
        assert_eq!(last_line_end(b"a\n1,  \"b\n", Quotes::After(b',')), Some(2));
        assert_eq!(last_line_end(b"a\n\"b\"\"\n", Quotes::After(b',')), Some(2));
        assert_eq!(last_line_end(b"a\n1 \t\"b\n", Quotes::After(b' ')), Some(2));
        assert_eq!(last_line_end(b"\xef\xbb\xbf\"b\n", Quotes::AfterAny), None);
    }

    #[test]
    fn a_quote_inside_a_field_is_a_character() {
        for text in [&b"2\" pipe,1\n3,4\n"[..], b"a,5'10\"\nb,c\n", b"# 7\" disks\n1,2\n", b"\"a\"x\",1\n"] {
            assert_eq!(last_line_end(text, Quotes::After(b',')), Some(text.len()));
            assert_eq!(last_line_end(text, Quotes::AfterAny), Some(text.len()));
        }
        assert_eq!(last_line_end(b"1;\"2\n", Quotes::After(b',')), Some(5));
        assert_eq!(last_line_end(b"1x\"2\n", Quotes::After(b' ')), Some(5));
    }

    #[test]
    fn chunks_put_together_are_the_file() {
        let text: Vec<u8> = (0..200_000).flat_map(|i| format!("{i},\"{i}\"\n").into_bytes()).collect();
        let input = Input::from_bytes("t", text.clone());
        for row_bytes in [16, 400, 100_000] {
            let mut together = Vec::new();
            let parse = |bytes: &[u8], out: &mut Vec<u8>| {
                out.clear();
                out.extend_from_slice(bytes);
                Ok(bytes.iter().filter(|c| **c == b'\n').count() as u64)
            };
            let lines = Lines { input: &input, skip: (0, 0), quotes: Quotes::After(b','), row_bytes };
            let visit = |piece: &mut Vec<u8>, before: u64| {
                assert!(piece.ends_with(b"\n") && before == together.iter().filter(|c| **c == b'\n').count() as u64);
                together.extend_from_slice(piece);
                Ok(())
            };
            lines.parse_in_order(parse, |trouble, _| panic!("{trouble:?}"), visit).unwrap();
            assert!(together == text);
        }
    }
}
