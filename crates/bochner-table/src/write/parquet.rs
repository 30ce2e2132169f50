//! Parquet on its way out: plain pages, uncompressed, one row group for some tens of megabytes.
//!
//! Written here as it is read here: the `parquet` crate takes minutes to compile, and random features compress badly.

use super::{Block, Layout};

const MAGIC: &[u8] = b"PAR1";
/// Bytes of a row group, about.
const GROUP: usize = 1 << 26;

/// Numbers of the format's own lists.
const FLOAT: i64 = 4;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const UTF8: i64 = 0;

/// A table being written; bytes are handed over as they become ready.
#[derive(Debug)]
pub(super) struct Parquet {
    /// Values of the rows that wait, column by column: words first, where there are any.
    columns: Vec<Vec<u8>>,
    waiting: usize,
    rows: usize,
    written: usize,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    rows: usize,
    /// Where each column begins and how many bytes it takes.
    chunks: Vec<(usize, usize)>,
}

impl Parquet {
    /// A table without rows, and the first bytes of its file.
    pub(super) fn new(layout: &Layout) -> (Self, Vec<u8>) {
        let columns = vec![Vec::new(); usize::from(layout.words.is_some()) + layout.numbers.len()];
        (Parquet { columns, waiting: 0, rows: 0, written: MAGIC.len(), groups: Vec::new() }, MAGIC.to_vec())
    }

    /// Adds rows; gives the bytes of a row group when there are enough.
    pub(super) fn push(&mut self, layout: &Layout, block: Block<'_>, out: &mut Vec<u8>) {
        let words = layout.words.as_ref().map(|(_, words)| words.as_slice());
        for (i, row) in block.numbers.rows().into_iter().enumerate() {
            let mut columns = self.columns.iter_mut();
            if let (Some(words), Some(column)) = (words, words.and_then(|_| columns.next())) {
                let word = block.words.and_then(|w| words.get(*w.get(i)?)).map_or("", String::as_str);
                column.extend((word.len() as u32).to_le_bytes());
                column.extend(word.as_bytes());
            }
            for (column, &value) in columns.zip(row) {
                match layout.single {
                    true => column.extend((value as f32).to_le_bytes()),
                    false => column.extend(value.to_le_bytes()),
                }
            }
            self.waiting += 1;
            if self.columns.iter().map(Vec::len).sum::<usize>() >= GROUP {
                self.end_group(out);
            }
        }
    }

    fn end_group(&mut self, out: &mut Vec<u8>) {
        if self.waiting == 0 {
            return;
        }
        let before = out.len();
        let mut chunks = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let start = out.len() - before;
            page_header(column.len(), self.waiting, out);
            out.append(column);
            chunks.push((self.written + start, out.len() - before - start));
        }
        self.written += out.len() - before;
        self.rows += self.waiting;
        self.groups.push(Group { rows: std::mem::take(&mut self.waiting), chunks });
    }

    /// The last bytes of the file.
    pub(super) fn finish(mut self, layout: &Layout, out: &mut Vec<u8>) {
        self.end_group(out);
        let start = out.len();
        let number = if layout.single { FLOAT } else { DOUBLE };
        let words = layout.words.iter().map(|(name, _)| (name, BYTE_ARRAY));
        let leaves: Vec<_> = words.chain(layout.numbers.iter().map(|name| (name, number))).collect();
        let mut file = Struct::new(out);
        file.i32(1, 1);
        file.list(2, STRUCT, leaves.len() + 1, |out, i| {
            let mut element = Struct::new(out);
            match i.checked_sub(1).map(|j| leaves[j]) {
                None => {
                    element.bytes(4, b"table");
                    element.i32(5, leaves.len() as i64);
                }
                Some((name, kind)) => {
                    element.i32(1, kind);
                    // Required: there are no gaps.
                    element.i32(3, 0);
                    element.bytes(4, name.as_bytes());
                    if kind == BYTE_ARRAY {
                        element.i32(6, UTF8);
                    }
                }
            }
            element.end();
        });
        file.i64(3, self.rows as i64);
        file.list(4, STRUCT, self.groups.len(), |out, g| {
            let group = &self.groups[g];
            let mut fields = Struct::new(out);
            fields.list(1, STRUCT, group.chunks.len(), |out, c| {
                let ((at, len), (name, kind)) = (group.chunks[c], leaves[c]);
                let mut chunk = Struct::new(out);
                chunk.i64(2, at as i64);
                chunk.fields(3, |meta| {
                    meta.i32(1, kind);
                    meta.list(2, I32, 1, |out, _| zigzag(PLAIN, out));
                    meta.list(3, BINARY, 1, |out, _| binary(name.as_bytes(), out));
                    // Uncompressed.
                    meta.i32(4, 0);
                    meta.i64(5, group.rows as i64);
                    meta.i64(6, len as i64);
                    meta.i64(7, len as i64);
                    meta.i64(9, at as i64);
                });
                chunk.end();
            });
            fields.i64(2, group.chunks.iter().map(|(_, len)| *len as i64).sum());
            fields.i64(3, group.rows as i64);
            fields.end();
        });
        file.bytes(6, concat!("bochner ", env!("CARGO_PKG_VERSION")).as_bytes());
        file.end();
        let len = (out.len() - start) as u32;
        out.extend(len.to_le_bytes());
        out.extend(MAGIC);
    }
}

fn page_header(bytes: usize, rows: usize, out: &mut Vec<u8>) {
    let mut page = Struct::new(out);
    page.i32(1, 0);
    page.i32(2, bytes as i64);
    page.i32(3, bytes as i64);
    page.fields(5, |data| {
        data.i32(1, rows as i64);
        data.i32(2, PLAIN);
        data.i32(3, RLE);
        data.i32(4, RLE);
    });
    page.end();
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint(((value << 1) ^ (value >> 63)) as u64, out);
}

fn binary(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend(bytes);
}

/// A structure in Thrift's compact protocol; fields come in the order of their numbers.
struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl<'a> Struct<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Struct { out, last: 0 }
    }

    fn field(&mut self, id: u8, kind: u8) {
        self.out.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    fn i32(&mut self, id: u8, value: i64) {
        self.field(id, I32);
        zigzag(value, self.out);
    }

    fn i64(&mut self, id: u8, value: i64) {
        self.field(id, I64);
        zigzag(value, self.out);
    }

    fn bytes(&mut self, id: u8, bytes: &[u8]) {
        self.field(id, BINARY);
        binary(bytes, self.out);
    }

    fn fields(&mut self, id: u8, fill: impl FnOnce(&mut Struct<'_>)) {
        self.field(id, STRUCT);
        let mut inner = Struct::new(self.out);
        fill(&mut inner);
        inner.end();
    }

    fn list(&mut self, id: u8, kind: u8, len: usize, mut each: impl FnMut(&mut Vec<u8>, usize)) {
        self.field(id, LIST);
        match len {
            0..15 => self.out.push((len as u8) << 4 | kind),
            _ => {
                self.out.push(0xf0 | kind);
                varint(len as u64, self.out);
            }
        }
        (0..len).for_each(|i| each(self.out, i));
    }

    fn end(self) {
        self.out.push(0);
    }
}
