//! Parquet on its way out: plain pages, uncompressed, one row group for some tens of megabytes.
//!
//! Written here as it is read here; random features compress badly.

use super::{Block, Layout, Writer};
use crate::failure::Outcome;
use crate::read::parquet::MAGIC;
use crate::read::parquet::thrift::Value::{self, I32, I64, List};

/// Bytes of a row group, about.
const GROUP: usize = 1 << 26;

/// The format's number of values of any length; floats are 4, doubles 5.
const BYTE_ARRAY: i32 = 6;
/// The format's number of the encoding of values one after the other.
const PLAIN: i32 = 0;

/// A table being written; bytes are handed over as they become ready.
#[derive(Debug)]
pub(crate) struct Parquet {
    /// Values of the rows that wait, column by column: words first, where there are any.
    columns: Vec<Vec<u8>>,
    waiting: usize,
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
    pub(crate) fn begin(layout: &Layout) -> Outcome<Box<dyn Writer>> {
        let columns = vec![Vec::new(); usize::from(layout.words.is_some()) + layout.numbers.len()];
        Ok(Box::new(Parquet { columns, waiting: 0, written: MAGIC.len(), groups: Vec::new() }))
    }

    fn end_group(&mut self, out: &mut Vec<u8>) {
        if self.waiting == 0 {
            return;
        }
        let before = out.len();
        let mut chunks = Vec::with_capacity(self.columns.len());
        for column in &mut self.columns {
            let start = out.len() - before;
            page_header(column.len(), self.waiting).write(out);
            out.append(column);
            chunks.push((self.written + start, out.len() - before - start));
        }
        self.written += out.len() - before;
        self.groups.push(Group { rows: std::mem::take(&mut self.waiting), chunks });
    }
}

impl Writer for Parquet {
    fn start(&self, _: &Layout, _: usize) -> Vec<u8> {
        MAGIC.to_vec()
    }

    fn push(&mut self, layout: &Layout, block: Block<'_>, out: &mut Vec<u8>) {
        for (i, row) in block.numbers.outer_iter().enumerate() {
            let mut columns = self.columns.iter_mut();
            if let Some(column) = layout.words.as_ref().and_then(|_| columns.next()) {
                let word = layout.word(&block, i).unwrap_or_default();
                column.extend((word.len() as u32).to_le_bytes());
                column.extend(word.as_bytes());
            }
            columns.zip(row).for_each(|(column, value)| layout.put(*value, column));
            self.waiting += 1;
            if self.columns.iter().map(Vec::len).sum::<usize>() >= GROUP {
                self.end_group(out);
            }
        }
    }

    fn end(&mut self, layout: &Layout, out: &mut Vec<u8>) {
        self.end_group(out);
        let start = out.len();
        let number = if layout.single { 4 } else { 5 };
        let words = layout.words.iter().map(|(name, _)| (name, BYTE_ARRAY));
        let leaves: Vec<_> = words.chain(layout.numbers.iter().map(|name| (name, number))).collect();
        let root = Value::structure([(4, Value::text("table")), (5, I32(leaves.len() as i32))]);
        let element = |(name, kind): &(&String, i32)| {
            // Required: there are no gaps.
            let fields = [(1, I32(*kind)), (3, I32(0)), (4, Value::text(name))];
            let is_text = (*kind == BYTE_ARRAY).then_some((6, I32(0)));
            Value::structure(fields.into_iter().chain(is_text))
        };
        let chunk = |group: &Group, c: usize| {
            let ((at, len), (name, kind)) = (group.chunks[c], leaves[c]);
            let (at, len) = (I64(at as i64), I64(len as i64));
            let metadata = Value::structure([
                (1, I32(kind)),
                (2, List(vec![I32(PLAIN)])),
                (3, List(vec![Value::text(name)])),
                // Uncompressed.
                (4, I32(0)),
                (5, I64(group.rows as i64)),
                (6, len.clone()),
                (7, len),
                (9, at.clone()),
            ]);
            Value::structure([(2, at), (3, metadata)])
        };
        let group = |group: &Group| {
            let bytes: usize = group.chunks.iter().map(|(_, len)| *len).sum();
            let chunks = (0..group.chunks.len()).map(|c| chunk(group, c)).collect();
            Value::structure([(1, List(chunks)), (2, I64(bytes as i64)), (3, I64(group.rows as i64))])
        };
        let rows: usize = self.groups.iter().map(|group| group.rows).sum();
        let file = Value::structure([
            (1, I32(1)),
            (2, List([root].into_iter().chain(leaves.iter().map(element)).collect())),
            (3, I64(rows as i64)),
            (4, List(self.groups.iter().map(group).collect())),
            (6, Value::text(concat!("bochner ", env!("CARGO_PKG_VERSION")))),
        ]);
        file.write(out);
        let len = (out.len() - start) as u32;
        out.extend(len.to_le_bytes());
        out.extend(MAGIC);
    }
}

fn page_header(bytes: usize, rows: usize) -> Value {
    let bytes = I32(bytes as i32);
    // Levels, of which there are none, would be runs.
    let data = Value::structure([(1, I32(rows as i32)), (2, I32(PLAIN)), (3, I32(3)), (4, I32(3))]);
    Value::structure([(1, I32(0)), (2, bytes.clone()), (3, bytes), (5, data)])
}
