//! Binary arrays: number types and byte orders of NPY and IDX, and a stream of them as blocks of rows.

use super::Result;
use super::input::{Bytes, Input, ReadSeek, cannot_read, read_up_to};
use super::npz::Member;
use super::schema::{Chosen, Column, Kind, Schema, Selection};
use super::{Element, Visit};
use crate::interrupt;
use bochner::Error;
use bochner::rows::{RowBlock, check_finite};
use ndarray::ArrayView2;
use std::io::{self, Read, SeekFrom};

/// Numbers per block, about: large enough to keep threads busy, small enough for the caches.
const BLOCK_NUMBERS: usize = 1 << 20;
/// Bytes converted at a time: a piece stays in the first cache between reading and converting.
const PIECE: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberType {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl NumberType {
    pub(super) fn size(self) -> usize {
        use NumberType::*;
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
        }
    }

    /// Converts raw numbers; `raw` holds `out.len()` of them.
    fn decode<R: Element>(self, big_endian: bool, raw: &[u8], out: &mut [R]) {
        macro_rules! decode {
            ($t:ty) => {{
                let numbers = raw.as_chunks::<{ size_of::<$t>() }>().0;
                if big_endian {
                    out.iter_mut().zip(numbers).for_each(|(o, b)| *o = <$t>::from_be_bytes(*b).element());
                } else {
                    out.iter_mut().zip(numbers).for_each(|(o, b)| *o = <$t>::from_le_bytes(*b).element());
                }
            }};
        }
        use NumberType::*;
        match self {
            Bool | U8 => decode!(u8),
            I8 => decode!(i8),
            I16 => decode!(i16),
            U16 => decode!(u16),
            I32 => decode!(i32),
            U32 => decode!(u32),
            I64 => decode!(i64),
            U64 => decode!(u64),
            F32 => decode!(f32),
            F64 => decode!(f64),
        }
    }
}

/// Rounds once to the element type.
trait ToElement<R> {
    fn element(self) -> R;
}

macro_rules! to_element {
    ($($t:ty),*) => {$(
        impl<R: Element> ToElement<R> for $t {
            #[inline(always)]
            fn element(self) -> R {
                R::from_f64(self as f64)
            }
        }
    )*};
}
to_element!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// A two-dimensional array of numbers in a file, row after row unless `column_major`.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    pub(super) kind: NumberType,
    pub(super) big_endian: bool,
    pub(super) column_major: bool,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// Where the numbers of an array begin.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// So many bytes after the beginning of the input.
    At(u64),
    /// So many bytes after the beginning of a member of an archive.
    Member(Member, u64),
}

/// An array as a data set: the wanted columns and, from another file, labels.
#[derive(Debug)]
pub(super) struct Matrix {
    input: Input,
    body: Body,
    numbers: Numbers,
    chosen: Chosen,
    labels: Option<Box<Matrix>>,
    pub(super) schema: Schema,
}

impl Numbers {
    /// Bytes of all numbers, if that is a sensible amount.
    pub(super) fn byte_len(&self) -> Option<u64> {
        let count = (self.rows as u64).checked_mul(self.columns as u64)?;
        count.checked_mul(self.kind.size() as u64)
    }

    /// Refuses shapes that cannot be what is stored in `available` bytes, or of which not even a row fits in memory.
    pub(super) fn check(&self, input: &Input, available: Option<u64>) -> Result<()> {
        let (rows, columns) = (self.rows, self.columns);
        let too_large = || input.fault(format!("the header promises {rows} x {columns} numbers, which no file holds"));
        let needed = self.byte_len().ok_or_else(too_large)?;
        if columns == 0 {
            return Err(input.fault("there are no columns"));
        }
        if rows == 0 {
            return Err(input.fault("there are no rows"));
        }
        let promise =
            |follow: &str| format!("the header promises {rows} x {columns} numbers in {needed} bytes, but {follow}");
        match available {
            Some(available) if available < needed => {
                return Err(input.fault(promise(&format!("only {available} bytes follow: the file is truncated"))));
            }
            // A member of an archive is trusted only when its checksum, at its very end, has been compared.
            Some(available) if available > needed => {
                return Err(input.fault(promise(&format!("{available} bytes follow"))));
            }
            _ => {}
        }
        if columns > 1 << 27 {
            return Err(input.fault(format!("rows of {columns} numbers are too long")));
        }
        Ok(())
    }
}

impl Matrix {
    pub(super) fn new(input: Input, body: Body, numbers: Numbers, selection: &Selection) -> Result<Self> {
        let names: Vec<String> = (1..=numbers.columns).map(|j| j.to_string()).collect();
        let chosen = selection.resolve(&input.name, &names)?;
        let column = |j: &usize| Column { name: names[*j].clone(), kind: Kind::Number { fill: None } };
        let inputs = chosen.inputs.iter().map(column).collect();
        let targets = chosen.targets.iter().map(column).collect();
        Ok(Matrix { input, body, numbers, chosen, labels: None, schema: Schema { inputs, targets } })
    }

    /// The same rows with targets from another array.
    pub(super) fn with_labels(mut self, labels: Matrix) -> Result<Self> {
        if labels.numbers.rows != self.numbers.rows {
            let (found, expected) = (labels.numbers.rows, self.numbers.rows);
            return Err(labels
                .input
                .fault(format!("there are {found} labels for {expected} rows of {}", self.input.name)));
        }
        self.schema.targets = labels.schema.inputs.clone();
        self.labels = Some(Box::new(labels));
        Ok(self)
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.rows
    }

    /// Delivers all rows in blocks.
    pub(super) fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        let Numbers { rows, columns, .. } = self.numbers;
        let block_rows = (BLOCK_NUMBERS / columns).clamp(1, rows);
        let mut pass = Pass::open(self)?;
        let mut labels = self.labels.as_deref().map(|l| Pass::open(l).map(|p| (l, p))).transpose()?;
        let all_inputs = self.chosen.inputs.len() == columns;
        let (d, t) = (self.chosen.inputs.len(), self.schema.targets.len());
        let mut block: Vec<R> = vec![R::ZERO; block_rows * columns];
        let (mut inputs, mut targets): (Vec<R>, Vec<R>) = (Vec::new(), Vec::new());
        for start in (0..rows).step_by(block_rows) {
            if interrupt::requested() {
                return Err(Error::Interrupted);
            }
            let n = block_rows.min(rows - start);
            let block = &mut block[..n * columns];
            pass.fill(start, block)?;
            targets.clear();
            if let Some((matrix, pass)) = &mut labels {
                targets.resize(n * matrix.numbers.columns, R::ZERO);
                pass.fill(start, &mut targets)?;
            } else {
                gather(block, columns, &self.chosen.targets, &mut targets);
            }
            let rows = if all_inputs {
                &*block
            } else {
                inputs.clear();
                gather(block, columns, &self.chosen.inputs, &mut inputs);
                &inputs
            };
            visit(RowBlock {
                rows: ArrayView2::from_shape((n, d), rows).expect("n times d numbers"),
                targets: ArrayView2::from_shape((n, t), &targets).expect("n times t numbers"),
                weights: None,
            })?;
        }
        Ok(())
    }
}

/// Columns `wanted` of a row-major block.
fn gather<R: Element>(block: &[R], columns: usize, wanted: &[usize], out: &mut Vec<R>) {
    if !wanted.is_empty() {
        out.extend(block.chunks_exact(columns).flat_map(|row| wanted.iter().map(|&j| row[j])));
    }
}

/// One walk over an array.
struct Pass<'a> {
    matrix: &'a Matrix,
    source: Source,
    piece: Vec<u8>,
}

enum Source {
    Stream(Bytes),
    Seek(Box<dyn ReadSeek>, u64),
}

impl<'a> Pass<'a> {
    fn open(matrix: &'a Matrix) -> Result<Self> {
        let input = &matrix.input;
        let told = |e: io::Error| input.fault(cannot_read(&e));
        let piece = vec![0; PIECE];
        if matrix.numbers.column_major {
            let Body::At(offset) = matrix.body else { return Err(input.fault(COLUMN_MAJOR)) };
            let file = input.seekable().ok_or_else(|| input.fault(COLUMN_MAJOR))?.map_err(told)?;
            return Ok(Pass { matrix, source: Source::Seek(file, offset), piece });
        }
        let (mut stream, offset) = match &matrix.body {
            Body::At(offset) => (input.bytes()?, *offset),
            Body::Member(member, offset) => (member.open(input)?, *offset),
        };
        io::copy(&mut (&mut stream).take(offset), &mut io::sink()).map_err(told)?;
        Ok(Pass { matrix, source: Source::Stream(stream), piece })
    }

    /// Reads the rows from number `start` on; calls follow each other without gaps.
    fn fill<R: Element>(&mut self, start: usize, out: &mut [R]) -> Result<()> {
        let Numbers { kind, big_endian, rows, columns, .. } = self.matrix.numbers;
        let input = &self.matrix.input;
        let told = |e: io::Error| input.fault(cannot_read(&e));
        let short = |row: usize| input.fault(format!("the file ends in row {} of {rows}: it is truncated", row + 1));
        match &mut self.source {
            Source::Stream(stream) if kind == R::KIND && big_endian == cfg!(target_endian = "big") => {
                let bytes = R::bytes_mut(out);
                let n = read_up_to(stream, bytes).map_err(told)?;
                if n < bytes.len() {
                    return Err(short(start + n / (kind.size() * columns)));
                }
            }
            Source::Stream(stream) => {
                let per_piece = PIECE / kind.size();
                for (i, part) in out.chunks_mut(per_piece).enumerate() {
                    let raw = &mut self.piece[..part.len() * kind.size()];
                    let n = read_up_to(stream, raw).map_err(told)?;
                    if n < raw.len() {
                        return Err(short(start + (i * per_piece + n / kind.size()) / columns));
                    }
                    kind.decode(big_endian, raw, part);
                }
            }
            Source::Seek(file, offset) => {
                let n = out.len() / columns;
                let mut column = vec![R::ZERO; n];
                let mut raw = vec![0; n * kind.size()];
                for j in 0..columns {
                    let at = *offset + ((j * rows + start) * kind.size()) as u64;
                    file.seek(SeekFrom::Start(at)).map_err(told)?;
                    if read_up_to(file, &mut raw).map_err(told)? < raw.len() {
                        return Err(short(start));
                    }
                    kind.decode(big_endian, &raw, &mut column);
                    for (row, value) in out.chunks_exact_mut(columns).zip(&column) {
                        row[j] = *value;
                    }
                }
            }
        }
        if matches!(kind, NumberType::F32 | NumberType::F64) {
            let view = ArrayView2::from_shape((out.len() / columns, columns), &*out).expect("whole rows");
            if let Err(Error::NonFinite { row, column, .. }) = check_finite("rows", view, start) {
                let place = format!("row {}, column {} (counted from 1)", row + 1, column + 1);
                return Err(input.fault(format!("{place}: expected a finite number, found a NaN or an infinity")));
            }
        }
        Ok(())
    }
}

const COLUMN_MAJOR: &str = "the array is stored column by column (Fortran order), which can be read only from an \
                            uncompressed .npy file; save it with numpy.ascontiguousarray";
