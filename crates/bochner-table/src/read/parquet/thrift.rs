//! Thrift's compact protocol, as far as Parquet's metadata use it: any structure is a tree.

/// A value of a structure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    I32(i32),
    I64(i64),
    Double,
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Struct(Fields),
}

/// Fields by their numbers, in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Fields(Vec<(i16, Value)>);

/// Structures inside structures: Parquet needs a handful.
const DEEPEST: usize = 16;

impl Fields {
    /// Reads one structure and says how many bytes it took; `None` if the bytes are not one.
    pub(super) fn read(bytes: &[u8]) -> Option<(Fields, usize)> {
        let mut reader = Reader { bytes, at: 0 };
        let fields = reader.fields(0)?;
        Some((fields, reader.at))
    }

    pub(super) fn get(&self, id: i16) -> Option<&Value> {
        self.0.iter().find(|(found, _)| *found == id).map(|(_, value)| value)
    }

    pub(super) fn int(&self, id: i16) -> Option<i64> {
        match self.get(id)? {
            Value::I32(v) => Some(i64::from(*v)),
            Value::I64(v) => Some(*v),
            _ => None,
        }
    }

    pub(super) fn size(&self, id: i16) -> Option<usize> {
        usize::try_from(self.int(id)?).ok()
    }

    pub(super) fn text(&self, id: i16) -> Option<String> {
        match self.get(id)? {
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    pub(super) fn list(&self, id: i16) -> &[Value] {
        match self.get(id) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }

    pub(super) fn fields(&self, id: i16) -> Option<&Fields> {
        self.get(id)?.fields()
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut last = 0;
        for (id, value) in &self.0 {
            // Numbers of fields are in order, and less than 16 apart.
            out.push(((id - last) as u8) << 4 | value.kind());
            value.write(out);
            last = *id;
        }
        out.push(0);
    }
}

impl Value {
    /// A structure of some fields, in the order of their numbers.
    pub(crate) fn structure(fields: impl IntoIterator<Item = (i16, Value)>) -> Value {
        Value::Struct(Fields(fields.into_iter().collect()))
    }

    pub(crate) fn text(text: &str) -> Value {
        Value::Bytes(text.as_bytes().to_vec())
    }

    pub(super) fn fields(&self) -> Option<&Fields> {
        match self {
            Value::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Value::Bool(true) => 1,
            Value::Bool(false) => 2,
            Value::I32(_) => 5,
            Value::I64(_) => 6,
            Value::Double => 7,
            Value::Bytes(_) => 8,
            Value::List(_) => 9,
            Value::Struct(_) => 12,
        }
    }

    /// Appends the value to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            // Its kind says it; doubles occur in files of others alone.
            Value::Bool(_) | Value::Double => {}
            Value::I32(v) => write_zigzag(i64::from(*v), out),
            Value::I64(v) => write_zigzag(*v, out),
            Value::Bytes(bytes) => {
                write_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
            Value::List(values) => {
                let kind = values.first().map_or(12, Value::kind);
                match values.len() {
                    n @ 0..15 => out.push((n as u8) << 4 | kind),
                    n => {
                        out.push(0xf0 | kind);
                        write_varint(n as u64, out);
                    }
                }
                values.iter().for_each(|value| value.write(out));
            }
            Value::Struct(fields) => fields.write(out),
        }
    }
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_zigzag(value: i64, out: &mut Vec<u8>) {
    write_varint(((value << 1) ^ (value >> 63)) as u64, out);
}

/// Bytes and how far they have been read.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    pub(super) fn zigzag(&mut self) -> Option<i64> {
        let v = self.varint()?;
        Some((v >> 1) as i64 ^ -((v & 1) as i64))
    }

    fn fields(&mut self, depth: usize) -> Option<Fields> {
        if depth > DEEPEST {
            return None;
        }
        let mut fields = Fields::default();
        let mut id: i16 = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(fields);
            }
            id = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                step => id.checked_add(i16::from(step))?,
            };
            let value = match head & 0x0f {
                1 => Value::Bool(true),
                2 => Value::Bool(false),
                kind => self.value(kind, depth)?,
            };
            fields.0.push((id, value));
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Option<Value> {
        Some(match kind {
            1 | 2 => Value::Bool(self.byte()? == 1),
            3 => Value::I32(i32::from(self.byte()? as i8)),
            4 | 5 => Value::I32(i32::try_from(self.zigzag()?).ok()?),
            6 => Value::I64(self.zigzag()?),
            7 => self.take(8).map(|_| Value::Double)?,
            8 => {
                let len = self.size()?;
                Value::Bytes(self.take(len)?.to_vec())
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = match head >> 4 {
                    15 => self.size()?,
                    len => usize::from(len),
                };
                // Every element takes a byte at least.
                if len > self.bytes.len() - self.at {
                    return None;
                }
                Value::List((0..len).map(|_| self.value(head & 0x0f, depth + 1)).collect::<Option<_>>()?)
            }
            12 => Value::Struct(self.fields(depth + 1)?),
            _ => return None,
        })
    }
}
