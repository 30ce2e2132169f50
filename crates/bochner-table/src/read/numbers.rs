//! Binary arrays: number types and byte orders of NPY and IDX, and a stream of them as blocks of rows.

use super::Result;
use super::ahead::Ahead;
use super::gaps::{Dense, Gaps};
use super::input::{Anywhere, Bytes, Input, read_up_to};
use super::npz::Member;
use super::schema::{Chosen, Column, Largest, Missing, Schema, Selection};
use super::{About, Element, MOST_COLUMNS, Options, Table, Visit, Wanted};
use crate::interrupt;
use bochner::Error;
use bochner::scalar::Real;
use rayon::prelude::*;
use std::io::{self, Read};

/// Numbers per block, about: large enough to keep threads busy, small enough for the caches.
const BLOCK_NUMBERS: usize = 1 << 19;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes from which a row is long enough to be looked at before its columns get names.
const LONG_ROW: u64 = 1 << 20;
/// Bytes read or converted at a time.
const PIECE: usize = 1 << 17;

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
    F16,
    F32,
    F64,
}

impl NumberType {
    pub(super) fn size(self) -> usize {
        use NumberType::*;
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 | F16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 => 8,
        }
    }

    /// Whether NaN and infinities are among its values.
    fn is_float(self) -> bool {
        matches!(self, NumberType::F16 | NumberType::F32 | NumberType::F64)
    }

    /// Converts raw numbers; `raw` holds `out.len()` of them.
    pub(super) fn decode<R: Element>(self, big_endian: bool, raw: &[u8], out: &mut [R]) {
        // With the processor's widest registers: bytes become floats several at a time.
        pulp::Arch::new().dispatch(Decode { kind: self, big_endian, raw, out });
    }
}

/// A conversion, as something that is compiled for several processors: the body of a closure would not be.
struct Decode<'a, R> {
    kind: NumberType,
    big_endian: bool,
    raw: &'a [u8],
    out: &'a mut [R],
}

impl<R: Element> pulp::NullaryFnOnce for Decode<'_, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        use NumberType::*;
        let Decode { kind, big_endian, raw, out } = self;
        macro_rules! as_stored {
            ($number:ident) => {
                if big_endian {
                    decode(raw, out, $number::from_be_bytes)
                } else {
                    decode(raw, out, $number::from_le_bytes)
                }
            };
        }
        match kind {
            Bool | U8 => as_stored!(u8),
            I8 => as_stored!(i8),
            I16 => as_stored!(i16),
            U16 => as_stored!(u16),
            I32 => as_stored!(i32),
            U32 => as_stored!(u32),
            I64 => as_stored!(i64),
            U64 => as_stored!(u64),
            F16 if big_endian => decode(raw, out, |bytes| half(u16::from_be_bytes(bytes))),
            F16 => decode(raw, out, |bytes| half(u16::from_le_bytes(bytes))),
            F32 => as_stored!(f32),
            F64 => as_stored!(f64),
        }
    }
}

#[inline(always)]
fn decode<T, R: Cast<T>, const N: usize>(raw: &[u8], out: &mut [R], number: impl Fn([u8; N]) -> T) {
    for (o, bytes) in out.iter_mut().zip(raw.as_chunks::<N>().0) {
        *o = R::cast(number(*bytes));
    }
}

/// A number of half precision (IEEE binary16), exactly.
#[inline(always)]
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let rest = u32::from(bits & 0x7fff) << 13;
    // The exponent of a half counts from 15, that of a float from 127; a product is right for subnormal numbers too.
    let finite = (f32::from_bits(rest) * f32::from_bits((127 + 127 - 15) << 23)).to_bits();
    let magnitude = if bits & 0x7c00 == 0x7c00 { rest | 0x7f80_0000 } else { finite };
    f32::from_bits(sign | magnitude)
}

/// Conversion that rounds once, to the nearest.
pub trait Cast<T> {
    /// The number in this type.
    fn cast(number: T) -> Self;
}

macro_rules! cast {
    ($($to:ty: $($from:ty),*;)*) => {$($(
        impl Cast<$from> for $to {
            #[inline(always)]
            fn cast(number: $from) -> Self {
                number as $to
            }
        }
    )*)*};
}
cast!(f32: u8, i8, u16, i16, u32, i32, u64, i64, f32, f64; f64: u8, i8, u16, i16, u32, i32, u64, i64, f32, f64;);

/// Everything a file may hold becomes an element.
pub trait CastAll:
    Cast<u8> + Cast<i8> + Cast<u16> + Cast<i16> + Cast<u32> + Cast<i32> + Cast<u64> + Cast<i64> + Cast<f32> + Cast<f64>
{
}
impl CastAll for f32 {}
impl CastAll for f64 {}

/// A two-dimensional array of numbers in a file, row after row unless `column_major`.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    pub(super) kind: NumberType,
    /// Whether the first byte of a number is its high end.
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
    gaps: Gaps,
    largest: Option<Largest>,
    pub(super) schema: Schema,
    /// What is to be told about gaps.
    remark: Option<String>,
}

impl Numbers {
    /// Bytes of all numbers, if that is a sensible amount.
    pub(super) fn byte_len(&self) -> Option<u64> {
        let count = (self.rows as u64).checked_mul(self.columns as u64)?;
        count.checked_mul(self.kind.size() as u64)
    }

    /// Whether numbers are stored as they are in memory.
    fn is_native<R: Element>(&self) -> bool {
        self.kind == R::KIND && self.big_endian == cfg!(target_endian = "big")
    }

    /// Rows of a piece, which stays in the first two caches between reading, converting and checking.
    fn piece_rows(&self) -> usize {
        (PIECE / self.kind.size() / self.columns).max(1)
    }

    /// Refuses shapes that cannot be what is stored in `available` bytes, or of which not even a row fits in memory.
    pub(super) fn check(&self, input: &Input, available: Option<u64>) -> Result<()> {
        let (rows, columns) = (self.rows, self.columns);
        let too_large = || input.fault(format!("the header promises {rows} x {columns} numbers, which no file holds"));
        let needed = self.byte_len().ok_or_else(too_large)?;
        if columns == 0 {
            return Err(input.fault("there are no columns"));
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
        if columns as u64 > MOST_COLUMNS {
            return Err(input.fault(format!("rows of {columns} numbers are too long; {MOST_COLUMNS} is the most")));
        }
        Ok(())
    }
}

impl Matrix {
    /// The wanted columns of an array, which `open` finds by their numbers with or without its own targets; or with targets
    /// from another one.
    pub(super) fn open(
        open: impl Fn(&Selection, bool) -> Result<Matrix>,
        labels: Option<Matrix>,
        wanted: Wanted<'_>,
        options: &Options,
    ) -> Result<Self> {
        let mut matrix = match &wanted {
            Wanted::Chosen(selection) => open(selection, true)?,
            Wanted::Known(schema) => {
                // Targets of their own are left alone where nobody asks for them: they may be anything in new files.
                let own = !schema.targets.is_empty();
                let matrix = open(&Selection::default(), own)?;
                // A file that still has its targets: columns of arrays are known by their numbers.
                let columns = matrix.schema.inputs.len();
                let inside = |c: &Column| c.name.parse::<usize>().is_ok_and(|n| n <= columns);
                if schema.inputs.len() < columns && schema.inputs.iter().all(inside) {
                    let mut selection = schema.selection();
                    if !schema.targets.iter().all(inside) {
                        selection.targets.clear();
                    }
                    open(&selection, own)?
                } else {
                    matrix
                }
            }
        };
        if let Some(labels) = labels {
            matrix = matrix.with_labels(labels)?;
        }
        matrix.prepare(options);
        match wanted {
            Wanted::Chosen(_) if matrix.numbers.rows == 0 => return Err(matrix.input.fault("there are no rows")),
            _ if !matrix.may_have_gaps() => {}
            Wanted::Chosen(_) if options.missing == Missing::Refuse => {}
            Wanted::Known(_) if options.missing == Missing::Refuse && !options.keep_rows => {}
            Wanted::Chosen(_) => {
                matrix.gaps = Gaps::new(options.missing, options);
                (matrix.gaps, matrix.remark) = matrix.learned_gaps()?;
                matrix.schema.fill(|j| matrix.gaps.fills[j]);
            }
            Wanted::Known(schema) => matrix.gaps = Gaps::known(&schema.inputs, options),
        }
        Ok(matrix)
    }

    /// Refuses numbers that cannot be used, and gaps as users of a model or of data need to be told.
    fn prepare(&mut self, options: &Options) {
        self.largest = options.largest;
        self.gaps = Gaps::new(Missing::Refuse, options);
        if let Some(labels) = &mut self.labels {
            labels.prepare(options);
            labels.gaps.labels = true;
        }
    }

    /// The array that a whole file is, by its header.
    pub(super) fn whole(
        input: Input,
        read_header: fn(&Input, &mut dyn Read) -> Result<(Numbers, u64)>,
        selection: &Selection,
    ) -> Result<Self> {
        let (numbers, offset) = read_header(&input, &mut input.bytes()?)?;
        numbers.check(&input, input.plain_len().map(|len| len.saturating_sub(offset)))?;
        Matrix::new(input, Body::At(offset), numbers, selection)
    }

    pub(super) fn new(input: Input, body: Body, numbers: Numbers, selection: &Selection) -> Result<Self> {
        // Names of columns take more memory than the bytes of a row: where the length of what follows is only promised, a
        // long row has to be seen first.
        let row_bytes = (numbers.columns * numbers.kind.size()) as u64;
        if row_bytes > LONG_ROW
            && let Source::Stream(stream) = Source::open(&input, &body, numbers.column_major)?
        {
            let found = io::copy(&mut stream.take(row_bytes), &mut io::sink());
            if found.map_err(|e| input.unreadable(e))? < row_bytes {
                return Err(input.fault(truncated(0, numbers.rows)));
            }
        }
        let names: Vec<String> = (1..=numbers.columns).map(|j| j.to_string()).collect();
        let chosen = selection.resolve(&input.name, &names)?;
        let column = |j: &usize| Column::number(&names[*j]);
        let inputs = chosen.inputs.iter().map(column).collect();
        let targets = chosen.targets.iter().map(column).collect();
        let (schema, gaps) = (Schema { inputs, targets }, Gaps::new(Missing::Refuse, &Options::default()));
        Ok(Matrix { input, body, numbers, chosen, labels: None, gaps, largest: None, schema, remark: None })
    }

    fn may_have_gaps(&self) -> bool {
        let labels = self.labels.as_ref().is_some_and(|labels| labels.may_have_gaps());
        labels || self.numbers.kind.is_float()
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

    /// Refuses infinities, numbers that overflow the element type and, unless they are allowed, NaN; `first` numbers come
    /// before these.
    fn check_finite<R: Element>(&self, first: usize, part: &[R], gaps: bool) -> Result<()> {
        let (columns, kind) = (self.numbers.columns, self.numbers.kind);
        let fault = |at: usize, message: String| {
            let (row, column) = ((first + at) / columns, (first + at) % columns);
            Err(self.input.fault(format!("row {}, column {} (counted from 1): {message}", row + 1, column + 1)))
        };
        if let Some(largest) = self.largest.filter(|_| kind == NumberType::F64)
            // Without a way out of the loop, several at a time.
            && part.iter().fold(false, |found, v| found | (Real::to_f64(*v).abs() > largest.value))
            && let Some(at) = part.iter().position(|v| v.is_finite() && Real::to_f64(*v).abs() > largest.value)
        {
            return fault(at, format!("the number {:e} is {}", Real::to_f64(part[at]), largest.told));
        }
        if !kind.is_float() || R::all_finite(part) {
            return Ok(());
        }
        let Some(at) = part.iter().position(|v| !(v.is_finite() || gaps && v.is_nan())) else { return Ok(()) };
        let target = self.chosen.targets.contains(&((first + at) % columns));
        fault(
            at,
            match part[at].is_nan() {
                true => format!("expected a finite number, found NaN: {}", self.gaps.absent(target)),
                false => "expected a finite number, found an infinity or too large a number".into(),
            },
        )
    }
}

impl Dense for Matrix {
    const COUNTED: &str = " (counted from 1)";

    fn parts(&self) -> (&Input, &Schema, &Gaps) {
        (&self.input, &self.schema, &self.gaps)
    }

    fn read_blocks<R: Element>(&self, visit: &mut dyn FnMut(usize, &[R], &[R]) -> Result<()>) -> Result<()> {
        let Numbers { rows, columns, .. } = self.numbers;
        // Whole pieces, but for the last block: a short one at the end keeps all threads but one waiting.
        let piece_rows = self.numbers.piece_rows();
        let block_rows = (BLOCK_NUMBERS / columns / piece_rows * piece_rows).max(piece_rows).min(rows);
        let gaps = self.gaps.allowed();
        let mut pass = Pass::open::<R>(self)?;
        let mut labels = self.labels.as_deref().map(|l| Pass::open::<R>(l).map(|p| (l, p))).transpose()?;
        let all_inputs = self.chosen.inputs.iter().copied().eq(0..columns);
        // From the beginning of a cache line on: half of all stores would go to two of them.
        let mut block: Vec<R> = vec![R::ZERO; block_rows * columns + LINE / size_of::<R>()];
        let first = block.as_ptr().addr().wrapping_neg() % LINE / size_of::<R>();
        let block = &mut block[first..];
        let (mut inputs, mut targets): (Vec<R>, Vec<R>) = (Vec::new(), Vec::new());
        for start in (0..rows).step_by(block_rows) {
            if interrupt::requested() {
                return Err(Error::Interrupted);
            }
            let n = block_rows.min(rows - start);
            let block = &mut block[..n * columns];
            pass.fill(start, block, gaps)?;
            targets.clear();
            if let Some((matrix, pass)) = &mut labels {
                targets.resize(n * matrix.numbers.columns, R::ZERO);
                pass.fill(start, &mut targets, gaps)?;
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
            visit(start, rows, &targets)?;
        }
        Ok(())
    }
}

impl Table for Matrix {
    fn about(&self) -> About<'_> {
        let same_units = matches!(self.numbers.kind, NumberType::U8 | NumberType::I8 | NumberType::Bool);
        About {
            same_units,
            remark: self.remark.as_deref(),
            ..About::numbers(&self.schema, self.kept(self.numbers.rows))
        }
    }

    fn read<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        if self.numbers.rows == 0 {
            return Ok(());
        }
        self.deliver(visit)
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
}

enum Source {
    /// Bytes one after the other: compressed files and archives.
    Stream(Bytes),
    /// Any bytes at any time, on any thread; the position of the first number.
    Anywhere(Anywhere, u64),
    /// Bytes one after the other, read before they are asked for.
    Ahead(Ahead),
}

fn truncated(row: usize, rows: usize) -> String {
    format!("the file ends in row {} of {rows}: it is truncated", row + 1)
}

impl Source {
    fn open(input: &Input, body: &Body, column_major: bool) -> Result<Self> {
        if let Body::At(offset) = body
            && let Some(file) = input.anywhere()
        {
            return Ok(Source::Anywhere(file, *offset));
        }
        if column_major {
            return Err(input.fault(COLUMN_MAJOR));
        }
        let (mut stream, offset) = match body {
            Body::At(offset) => (input.bytes()?, *offset),
            Body::Member(member, offset) => (member.open(input)?, *offset),
        };
        io::copy(&mut (&mut stream).take(offset), &mut io::sink()).map_err(|e| input.unreadable(e))?;
        Ok(Source::Stream(stream))
    }
}

impl<'a> Pass<'a> {
    fn open<R: Element>(matrix: &'a Matrix) -> Result<Self> {
        let Matrix { input, numbers, .. } = matrix;
        let mut source = Source::open(input, &matrix.body, numbers.column_major)?;
        if let Source::Anywhere(file, offset) = source {
            let len = numbers.byte_len().expect("checked when it was opened");
            let converts = !numbers.column_major && !numbers.is_native::<R>();
            source = if converts && len >= Ahead::LEAST && rayon::current_num_threads() > 1 {
                Source::Ahead(Ahead::start(file, offset..offset + len).map_err(|e| input.unreadable(e))?)
            } else {
                Source::Anywhere(file, offset)
            };
        }
        Ok(Pass { matrix, source })
    }

    /// Reads the rows from number `start` on, NaN included if `gaps` are allowed; calls follow each other.
    fn fill<R: Element>(&mut self, start: usize, out: &mut [R], gaps: bool) -> Result<()> {
        let matrix = self.matrix;
        self.try_fill(start, out, gaps).map_err(|error| match &matrix.body {
            Body::Member(member, _) => member.blame(&matrix.input, error),
            Body::At(_) => error,
        })
    }

    fn try_fill<R: Element>(&mut self, start: usize, out: &mut [R], gaps: bool) -> Result<()> {
        let Numbers { kind, big_endian, column_major, rows, columns } = self.matrix.numbers;
        let matrix = self.matrix;
        let input = &matrix.input;
        let short = |row: usize| input.fault(truncated(row, rows));
        let native = matrix.numbers.is_native::<R>();
        let piece = matrix.numbers.piece_rows() * columns;
        match &mut self.source {
            Source::Stream(stream) => {
                let mut raw = Vec::new();
                for (i, part) in out.chunks_mut(piece).enumerate() {
                    let len = part.len() * kind.size();
                    raw.resize(if native { 0 } else { len }, 0);
                    let bytes = if native { R::bytes_mut(part) } else { &mut raw[..] };
                    let n = read_up_to(stream, bytes).map_err(|e| input.unreadable(e))?;
                    if n < len {
                        return Err(short(start + (i * piece + n / kind.size()) / columns));
                    }
                    if !native {
                        kind.decode(big_endian, &raw, part);
                    }
                    matrix.check_finite(start * columns + i * piece, part, gaps)?;
                }
                Ok(())
            }
            Source::Anywhere(file, offset) if column_major => {
                let n = out.len() / columns;
                let mut column = vec![R::ZERO; n];
                let mut scratch = Vec::new();
                for j in 0..columns {
                    let at = *offset + ((j * rows + start) * kind.size()) as u64;
                    let place = file.read_at(at, n * kind.size(), &mut scratch).map_err(|_| short(start))?;
                    kind.decode(big_endian, &scratch[place], &mut column);
                    for (row, value) in out.chunks_exact_mut(columns).zip(&column) {
                        row[j] = *value;
                    }
                }
                matrix.check_finite(start * columns, out, gaps)
            }
            Source::Anywhere(file, offset) => {
                let (file, offset) = (&*file, *offset);
                let job = |scratch: &mut Vec<u8>, i: usize, part: &mut [R]| {
                    let first_row = start + i * piece / columns;
                    let at = offset + (first_row * columns * kind.size()) as u64;
                    let ended = |_| short(first_row);
                    if native {
                        file.read_exact_at(R::bytes_mut(part), at).map_err(ended)?;
                    } else {
                        let place = file.read_at(at, part.len() * kind.size(), scratch).map_err(ended)?;
                        kind.decode(big_endian, &scratch[place], part);
                    }
                    matrix.check_finite(first_row * columns, part, gaps)
                };
                // A piece to a task: whoever is done first takes the next one.
                out.par_chunks_mut(piece)
                    .enumerate()
                    .with_max_len(1)
                    .try_for_each_init(Vec::new, |scratch, (i, part)| job(scratch, i, part))
            }
            Source::Ahead(bytes) => {
                let mut done = 0;
                while done < out.len() {
                    // Up to the end of a piece, so that numbers are checked while they are in the caches.
                    let most = (piece - done % piece).min(out.len() - done) * kind.size();
                    let row = start + done / columns;
                    let raw = bytes.next(most).map_err(|_| short(row))?;
                    let part = &mut out[done..][..raw.len() / kind.size()];
                    if part.is_empty() {
                        return Err(short(row));
                    }
                    kind.decode(big_endian, raw, part);
                    matrix.check_finite(start * columns + done, part, gaps)?;
                    done += part.len();
                }
                Ok(())
            }
        }
    }
}

const COLUMN_MAJOR: &str = "the array is stored column by column (Fortran order), which can be read only from an \
                            uncompressed .npy file; save it with numpy.ascontiguousarray";
