//! Thrift's compact protocol, as far as Parquet's metadata use it: any structure becomes a tree.

/// A value of a structure.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Int(i64),
    Double,
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Struct(Fields),
}

/// Fields by their numbers, in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields(Vec<(i16, Value)>);

impl Fields {
    pub(super) fn get(&self, id: i16) -> Option<&Value> {
        self.0.iter().find(|(found, _)| *found == id).map(|(_, value)| value)
    }

    pub(super) fn int(&self, id: i16) -> Option<i64> {
        match self.get(id)? {
            Value::Int(v) => Some(*v),
            _ => None,
        }
    }

    pub(super) fn text(&self, id: i16) -> Option<String> {
        match self.get(id)? {
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    pub(super) fn list(&self, id: i16) -> Option<&[Value]> {
        match self.get(id)? {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    pub(super) fn fields(&self, id: i16) -> Option<&Fields> {
        self.get(id)?.fields()
    }

    pub(super) fn bool(&self, id: i16) -> Option<bool> {
        match self.get(id)? {
            Value::Bool(v) => Some(*v),
            _ => None,
        }
    }
}

impl Value {
    pub(super) fn fields(&self) -> Option<&Fields> {
        match self {
            Value::Struct(fields) => Some(fields),
            _ => None,
        }
    }
}

/// Structures inside structures: Parquet needs a handful.
const DEEPEST: usize = 16;

/// Reads one structure and says how many bytes it took; `None` if the bytes are not one.
pub(super) fn read(bytes: &[u8]) -> Option<(Fields, usize)> {
    let mut reader = Reader { bytes, at: 0 };
    let fields = reader.fields(0)?;
    Some((fields, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
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

    fn zigzag(&mut self) -> Option<i64> {
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
            3 => Value::Int(i64::from(self.byte()? as i8)),
            4..=6 => Value::Int(self.zigzag()?),
            7 => {
                self.at = self.at.checked_add(8).filter(|at| *at <= self.bytes.len())?;
                Value::Double
            }
            8 => {
                let len = usize::try_from(self.varint()?).ok()?;
                let bytes = self.bytes.get(self.at..self.at.checked_add(len)?)?;
                self.at += len;
                Value::Bytes(bytes.to_vec())
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = match head >> 4 {
                    15 => usize::try_from(self.varint()?).ok()?,
                    len => usize::from(len),
                };
                // Every element takes a byte at least.
                if len > self.bytes.len() - self.at {
                    return None;
                }
                let values = (0..len).map(|_| self.value(head & 0x0f, depth + 1)).collect::<Option<_>>()?;
                Value::List(values)
            }
            12 => Value::Struct(self.fields(depth + 1)?),
            _ => return None,
        })
    }
}
