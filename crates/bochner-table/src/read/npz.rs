//! NPZ: a ZIP archive of NPY members, stored or deflated.
//!
//! Only what numpy writes is read: the central directory at the end (with its 64-bit form), methods 0 and 8. Every
//! offset and length is checked against the file before it is used, and the checksum of a member when its end is reached.

use super::fault::short;
use super::input::{Anywhere, Bytes, Damage, Input};
use super::numbers::{Body, Matrix};
use super::schema::Selection;
use super::{Format, Result, npy};
use flate2::Crc;
use flate2::read::DeflateDecoder;
use std::io::{self, Read};

pub(super) const FORMAT: Format = Format::array("NPZ", |start, _| start.starts_with(MAGIC), open);

pub(super) const MAGIC: &[u8] = b"PK\x03\x04";
/// More members than any sensible archive of arrays has.
const MOST_MEMBERS: u64 = 10_000;

/// Array `X` (or the only one, or the only one with columns) with targets from array `y` or the one asked for.
fn open(input: Input, selection: &Selection, own_targets: bool) -> Result<Matrix> {
    let members = members(&input)?;
    let names = || members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>().join(", ");
    let header = |member: &Member| {
        let (numbers, offset) = npy::read_header(&input, &mut member.open(&input)?)?;
        numbers.check(&input, Some(member.len.saturating_sub(offset)))?;
        Ok((numbers, offset))
    };
    let open = |member: &Member, selection: &Selection| {
        let (numbers, offset) = header(member).map_err(|e| member.blame(&input, e))?;
        Matrix::new(input.clone(), Body::Member(member.clone(), offset), numbers, selection)
    };
    let find = |wanted: &str| members.iter().find(|m| m.name.eq_ignore_ascii_case(wanted));
    if let Some(name) = &selection.array {
        let message = || input.fault(format!("expected an array called {name}, found {}", names()));
        return open(members.iter().find(|m| m.name == *name).ok_or_else(message)?, selection);
    }
    let rows = ["X", "data", "rows", "features", "inputs"].iter().find_map(|n| find(n));
    let rows = rows.or(if members.len() == 1 { members.first() } else { None });
    // Under another name, the only array with columns is meant: a target beside it has none.
    let has_columns = |member: &&Member| header(member).is_ok_and(|(numbers, _)| numbers.columns > 1);
    let rows = rows.or_else(|| {
        let mut tables = members.iter().filter(|m| !selection.targets.contains(&m.name)).filter(has_columns);
        tables.next().filter(|_| tables.next().is_none())
    });
    let Some(rows) = rows else {
        // An array that is damaged may be the one.
        members.iter().try_for_each(|member| member.verify(&input))?;
        let message = format!("expected an array called X, or a single one with columns, found {}", names());
        return Err(input.fault(message));
    };
    let mut selection = selection.clone();
    // A target may be an array of its own: `--target y`.
    let target = match &selection.targets[..] {
        [one] => members.iter().find(|m| m.name == *one),
        [] if own_targets => ["y", "target", "targets", "labels"].iter().find_map(|n| find(n)),
        _ => None,
    };
    let Some(target) = target.filter(|t| t.name != rows.name) else { return open(rows, &selection) };
    selection.targets.clear();
    open(rows, &selection)?.with_labels(open(target, &Selection::default())?)
}

/// One array of an archive.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// Without `.npy`.
    pub(super) name: String,
    deflated: bool,
    header_at: u64,
    stored_len: u64,
    /// Size of the NPY file inside.
    pub(super) len: u64,
    crc: u32,
}

impl Member {
    /// The member's bytes, decompressed.
    pub(super) fn open(&self, input: &Input) -> Result<Bytes> {
        let file = open_archive(input)?;
        let stored =
            self.stored(&file).ok_or_else(|| input.fault(damaged(&self.name, "it is not where the directory says")))?;
        let stored = file.from(stored).take(self.stored_len);
        let inner: Bytes =
            if self.deflated { Box::new(DeflateDecoder::new(io::BufReader::new(stored))) } else { Box::new(stored) };
        Ok(Box::new(Checked { inner, crc: Crc::new(), left: self.len, expected: self.crc, name: self.name.clone() }))
    }

    /// Where the member's bytes begin, behind a header that says the same as the directory.
    fn stored(&self, file: &Anywhere) -> Option<u64> {
        let mut header = [0; 30];
        file.read_exact_at(&mut header, self.header_at).ok().filter(|()| header.starts_with(MAGIC))?;
        // The name stands in the file twice; a directory that disagrees with the member is not to be trusted.
        let (mut name, extra) = (vec![0; usize::from(le16(&header[26..]))], u64::from(le16(&header[28..])));
        file.read_exact_at(&mut name, self.header_at + 30).ok()?;
        (name == format!("{}.npy", self.name).as_bytes()).then(|| self.header_at + 30 + name.len() as u64 + extra)
    }

    /// Why an array cannot be read: if its bytes are not those that were stored, that, whatever else they led to.
    pub(super) fn blame(&self, input: &Input, error: bochner::Error) -> bochner::Error {
        self.verify(input).err().unwrap_or(error)
    }

    /// Refuses bytes that are not those that were stored.
    pub(super) fn verify(&self, input: &Input) -> Result<()> {
        let copied = io::copy(&mut self.open(input)?, &mut io::sink());
        copied.map(|_| ()).map_err(|e| input.unreadable(e))
    }
}

fn damaged(member: &str, why: &str) -> String {
    format!("the archive is damaged, in its member {}: {why}", short(member))
}

/// Stops after the announced length and compares the checksum there.
struct Checked {
    inner: Bytes,
    crc: Crc,
    left: u64,
    expected: u32,
    name: String,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let want = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let broken = |why: &str| Err(Damage::told(damaged(&self.name, why)));
        let n = match self.inner.read(&mut buffer[..want]) {
            Ok(n) => n,
            Err(e) => match e.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => return broken(&e.to_string()),
                io::ErrorKind::UnexpectedEof => return broken("it ends too early"),
                _ => return Err(e),
            },
        };
        self.crc.update(&buffer[..n]);
        self.left -= n as u64;
        if n > 0 && self.left == 0 && self.crc.sum() != self.expected {
            return broken("it does not match its checksum");
        }
        if n == 0 && want > 0 {
            return broken("it ends too early");
        }
        Ok(n)
    }
}

fn open_archive(input: &Input) -> Result<Anywhere> {
    input.anywhere().ok_or_else(|| input.fault("a gzip file of an archive is not supported; unpack it"))
}

fn le16(b: &[u8]) -> u16 {
    u16::from_le_bytes([b[0], b[1]])
}

fn le32(b: &[u8]) -> u32 {
    u32::from_le_bytes([b[0], b[1], b[2], b[3]])
}

fn le64(b: &[u8]) -> u64 {
    u64::from(le32(b)) | u64::from(le32(&b[4..])) << 32
}

/// The arrays of an archive.
fn members(input: &Input) -> Result<Vec<Member>> {
    let file = open_archive(input)?;
    directory(&file, input.plain_len().unwrap_or(0))
        .map_err(|why| input.fault(format!("the archive is damaged or not an NPZ file: {why}")))
}

fn directory(file: &Anywhere, len: u64) -> Result<Vec<Member>, &'static str> {
    // The end record is 22 bytes and a comment of at most 65,535.
    let tail_len = len.min(22 + 65_535);
    let mut tail = vec![0; tail_len as usize];
    file.read_exact_at(&mut tail, len - tail_len).map_err(|_| "its end cannot be read")?;
    let end = tail.windows(4).rposition(|w| w == b"PK\x05\x06").filter(|at| at + 22 <= tail.len());
    let end = end.ok_or("its directory is missing, so it is probably truncated")?;
    let record = &tail[end..];
    let (mut count, mut size, mut at) =
        (u64::from(le16(&record[10..])), u64::from(le32(&record[12..])), u64::from(le32(&record[16..])));
    if at == u64::from(u32::MAX) || count == u64::from(u16::MAX) {
        let locator = end.checked_sub(20).map(|l| &tail[l..]).filter(|l| l.starts_with(b"PK\x06\x07"));
        let place = le64(&locator.ok_or("its 64-bit directory is missing")?[8..]);
        let mut wide = [0; 56];
        let read = file.read_exact_at(&mut wide, place);
        if read.is_err() || !wide.starts_with(b"PK\x06\x06") {
            return Err("its 64-bit directory is not where it should be");
        }
        (count, size, at) = (le64(&wide[32..]), le64(&wide[40..]), le64(&wide[48..]));
    }
    if count > MOST_MEMBERS || at.checked_add(size).is_none_or(|end| end > len) || size > 1 << 26 {
        return Err("its directory does not fit into the file");
    }
    let mut entries = vec![0; size as usize];
    file.read_exact_at(&mut entries, at).map_err(|_| "its directory is cut short")?;
    let mut rest = &entries[..];
    let mut members = Vec::new();
    for _ in 0..count {
        if rest.len() < 46 || !rest.starts_with(b"PK\x01\x02") {
            return Err("an entry of its directory is cut short");
        }
        let (name_len, extra_len, comment_len) =
            (le16(&rest[28..]) as usize, le16(&rest[30..]) as usize, le16(&rest[32..]) as usize);
        let next = 46 + name_len + extra_len + comment_len;
        if rest.len() < next {
            return Err("an entry of its directory is cut short");
        }
        let name = String::from_utf8_lossy(&rest[46..46 + name_len]).into_owned();
        let mut sizes = [u64::from(le32(&rest[24..])), u64::from(le32(&rest[20..])), u64::from(le32(&rest[42..]))];
        widen(&rest[46 + name_len..46 + name_len + extra_len], &mut sizes)?;
        let [plain_len, stored_len, header_at] = sizes;
        let method = le16(&rest[10..]);
        if le16(&rest[8..]) & 1 != 0 {
            return Err("a member is encrypted");
        }
        let Some(name) = name.strip_suffix(".npy") else { return Err("a member is not an array") };
        if method != 0 && method != 8 {
            return Err("a member is packed with an unknown method");
        }
        if header_at.checked_add(stored_len).is_none_or(|end| end > len) || (method == 0 && stored_len != plain_len) {
            return Err("a member does not fit into the file");
        }
        let (deflated, crc) = (method == 8, le32(&rest[16..]));
        members.push(Member { name: name.into(), deflated, header_at, stored_len, len: plain_len, crc });
        rest = &rest[next..];
    }
    Ok(members)
}

/// Replaces sizes of all ones by those of the 64-bit extra field.
fn widen(mut extra: &[u8], sizes: &mut [u64; 3]) -> Result<(), &'static str> {
    while extra.len() >= 4 {
        let (tag, len) = (le16(extra), le16(&extra[2..]) as usize);
        let Some(mut field) = extra.get(4..4 + len) else { break };
        if tag == 1 {
            for size in sizes.iter_mut().filter(|s| **s == u64::from(u32::MAX)) {
                let Some(wide) = field.get(..8) else { return Err("a 64-bit size is cut short") };
                *size = le64(wide);
                field = &field[8..];
            }
        }
        extra = &extra[4 + len..];
    }
    Ok(())
}
