//! Where bytes come from: a file, compressed or not, or standard input.

use super::Result;
use super::encoding::Decoded;
use super::fault::Fault;
use bochner::{Error, words};
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// A stream of bytes that may move between threads.
pub(super) type Bytes = Box<dyn Read + Send>;

#[derive(Debug, Clone)]
enum Origin {
    /// A file, memory, or standard input copied to an unnamed file so that it can be read more than once.
    Kept(Place),
    /// Standard input as it comes.
    Stream(Arc<Mutex<Once>>),
}

/// A stream that is read once. What comes before the last pass begins is kept, so that others can look at its beginning.
struct Once {
    source: Bytes,
    kept: Vec<u8>,
    pass: Pass,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Looking,
    /// Nobody looks any more: the next reader gets all bytes.
    Next,
    Last,
}

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Once").field("kept", &self.kept.len()).field("pass", &self.pass).finish_non_exhaustive()
    }
}

/// A reader of a stream, from its beginning.
struct Beginning {
    once: Arc<Mutex<Once>>,
    at: usize,
    taken: Arc<AtomicU64>,
}

impl Read for Beginning {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        let n = match once.kept.get(self.at..) {
            Some(mut kept) if !kept.is_empty() => kept.read(buffer)?,
            _ => {
                let n = once.source.read(buffer)?;
                if once.pass == Pass::Looking {
                    once.kept.extend_from_slice(&buffer[..n]);
                } else {
                    once.kept = Vec::new();
                }
                n
            }
        };
        self.at += n;
        self.taken.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// What the system says about a file's contents: with another size or time they are others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    time: Option<SystemTime>,
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Stamp { bytes: found.len(), time: found.modified().ok() })
    }

    /// The same, so late that whatever is written from now on gets another time.
    fn settled(file: &File) -> io::Result<Self> {
        /// Longer than the clock of a file system stands still.
        const TICK: Duration = Duration::from_millis(12);
        let stamp = Stamp::of(file)?;
        let age = stamp.time.and_then(|time| time.elapsed().ok());
        if let Some(rest) = age.and_then(|age| TICK.checked_sub(age)) {
            std::thread::sleep(rest);
            return Stamp::of(file);
        }
        Ok(stamp)
    }
}

/// Something that can be read from its beginning as often as needed.
#[derive(Debug, Clone)]
pub struct Input {
    /// As the user wrote it, for messages.
    pub name: String,
    origin: Origin,
    gzip: bool,
    /// Whether lines of text end in carriage returns alone, as old spreadsheets write them.
    pub(super) carriage_returns: bool,
    /// The encoding of a text that is not UTF-8.
    pub(super) encoding: Option<&'static encoding_rs::Encoding>,
    /// Bytes taken from the file so far, before decompression.
    taken: Arc<AtomicU64>,
    /// Of a file that others may write to, as it was opened.
    stamp: Option<Stamp>,
}

impl Input {
    /// The file at `path`, or standard input for `-`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_once(path)?.spooled()
    }

    /// The same for a single pass: standard input and pipes are read as they come, where their format allows it.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn open_once(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::from_stream("standard input", Box::new(io::stdin()));
        }
        let name = path.display().to_string();
        let told = |e: io::Error| Error::from(Fault::new(&name, cannot_read(&e)));
        let file = File::open(path).map_err(told)?;
        if file.metadata().map_err(told)?.is_file() {
            let stamp = Some(Stamp::settled(&file).map_err(told)?);
            // From here on the file is known by what it is, not by its name: another that takes its name is not read.
            return Ok(Input { stamp, ..Self::finish(&name, Origin::Kept(Place::File(Arc::new(file))))? });
        }
        if path.is_dir() {
            return Err(Fault::new(&name, "expected a file, found a folder").into());
        }
        Self::from_stream(&name, Box::new(file))
    }

    /// Bytes in memory.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Self {
        Self::finish(name, Origin::Kept(Place::Memory(bytes.into()))).expect("memory can be read")
    }

    /// Bytes that come but once, for tests of them.
    ///
    /// # Errors
    /// Bytes that cannot be read.
    pub fn from_stream(name: &str, source: Box<dyn Read + Send>) -> Result<Self> {
        let once = Once { source, kept: Vec::new(), pass: Pass::Looking };
        Self::finish(name, Origin::Stream(Arc::new(Mutex::new(once))))
    }

    /// Whether bytes come but once.
    pub fn is_stream(&self) -> bool {
        matches!(self.origin, Origin::Stream(_))
    }

    /// The same bytes, to be read as often as needed and anywhere: a stream is copied to a file.
    pub(super) fn spooled(self) -> Result<Self> {
        if !self.is_stream() {
            return Ok(self);
        }
        let copy = || {
            let mut spool = unnamed_file()?;
            io::copy(&mut self.raw()?, &mut spool)?;
            Ok(spool)
        };
        self.last_pass();
        let spool = copy().map_err(|e| self.unreadable(e))?;
        self.taken.store(0, Ordering::Relaxed);
        Ok(Input { origin: Origin::Kept(Place::File(Arc::new(spool))), ..self })
    }

    /// Says that the next reader is the last one: nothing more of a stream has to be kept.
    pub(super) fn last_pass(&self) {
        if let Origin::Stream(once) = &self.origin {
            once.lock().unwrap_or_else(PoisonError::into_inner).pass = Pass::Next;
        }
    }

    fn finish(name: &str, origin: Origin) -> Result<Self> {
        let name = name.to_owned();
        let mut input = Input {
            name,
            origin,
            gzip: false,
            carriage_returns: false,
            encoding: None,
            taken: Arc::default(),
            stamp: None,
        };
        let mut magic = [0; 2];
        let read = input.raw().and_then(|mut raw| read_up_to(&mut raw, &mut magic));
        input.gzip = read.map_err(|e| input.unreadable(e))? == 2 && magic == GZIP;
        input.taken.store(0, Ordering::Relaxed);
        Ok(input)
    }

    /// Bytes from the beginning, decompressed.
    ///
    /// # Errors
    /// A file that has become unreadable.
    pub fn bytes(&self) -> Result<Bytes> {
        let raw = self.raw().map_err(|e| self.unreadable(e))?;
        let plain: Bytes = if self.gzip { Box::new(Gzip::new(raw)) } else { raw };
        let plain: Bytes = match self.encoding {
            Some(encoding) => Box::new(Decoded::new(plain, encoding)),
            None => plain,
        };
        Ok(if self.carriage_returns { Box::new(LineFeeds(plain)) } else { plain })
    }

    fn raw(&self) -> io::Result<Bytes> {
        let taken = Arc::clone(&self.taken);
        match &self.origin {
            Origin::Kept(place) => Ok(Box::new(Anywhere { place: place.clone(), taken }.from(0))),
            Origin::Stream(once) => {
                let mut locked = once.lock().unwrap_or_else(PoisonError::into_inner);
                locked.pass = match locked.pass {
                    Pass::Looking => Pass::Looking,
                    Pass::Next => Pass::Last,
                    Pass::Last => return Err(io::Error::other("it comes from a pipe and can be read only once")),
                };
                Ok(Box::new(Beginning { once: Arc::clone(once), at: 0, taken }))
            }
        }
    }

    /// Any bytes at any time, if they are not compressed.
    pub(super) fn anywhere(&self) -> Option<Anywhere> {
        match &self.origin {
            Origin::Kept(place) if !self.gzip => Some(Anywhere { place: place.clone(), taken: self.taken() }),
            _ => None,
        }
    }

    /// Size of the bytes if they are not compressed.
    pub(super) fn plain_len(&self) -> Option<u64> {
        if self.gzip { None } else { self.stored_len() }
    }

    /// Size of the file as it is stored, for progress.
    pub fn stored_len(&self) -> Option<u64> {
        match &self.origin {
            Origin::Kept(Place::File(file)) => file.metadata().ok().map(|m| m.len()),
            Origin::Kept(Place::Memory(bytes)) => Some(bytes.len() as u64),
            Origin::Stream(_) => None,
        }
    }

    /// Counter of stored bytes read in all passes, for progress.
    pub fn taken(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.taken)
    }

    /// Refuses a file that was written to after it was opened.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let (Some(first), Origin::Kept(Place::File(file))) = (self.stamp, &self.origin) else { return Ok(()) };
        match Stamp::of(file).map_err(|e| self.unreadable(e))? {
            now if now == first => Ok(()),
            now if now.bytes != first.bytes => {
                let (first, now) = (words::count(first.bytes as usize), words::count(now.bytes as usize));
                Err(self.changed(&format!("it had {first} bytes at first, now it has {now}")))
            }
            _ => Err(self.changed("it was written to")),
        }
    }

    /// What is said about a file that is not the same in all passes.
    pub(super) fn changed(&self, how: &str) -> Error {
        self.fault(format!("the file changed while it was being read: {how}; use a copy that nobody writes to"))
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Error {
        Fault::new(&self.name, message).into()
    }

    pub(super) fn unreadable(&self, error: io::Error) -> Error {
        self.fault(cannot_read(&error))
    }
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes of a page of memory, or a part of one.
const PAGE: usize = 4096;

/// Bytes that can be read at any position, on several threads at once.
#[derive(Debug, Clone)]
pub(super) struct Anywhere {
    place: Place,
    taken: Arc<AtomicU64>,
}

#[derive(Debug, Clone)]
enum Place {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

impl Place {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Place::File(file) => std::os::unix::fs::FileExt::read_at(&**file, buffer, at),
            #[cfg(not(unix))]
            Place::File(file) => {
                // One position per file: readers take turns.
                static TURN: Mutex<()> = Mutex::new(());
                let _turn = TURN.lock();
                let mut file = &**file;
                io::Seek::seek(&mut file, io::SeekFrom::Start(at))?;
                file.read(buffer)
            }
            Place::Memory(bytes) => bytes.get(usize::try_from(at).unwrap_or(usize::MAX)..).unwrap_or(&[]).read(buffer),
        }
    }

    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_at(&mut buffer[done..], at.saturating_add(done as u64)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl Anywhere {
    /// The bytes from `at` on, one after the other.
    pub(super) fn from(self, at: u64) -> impl Read + Send {
        Following { file: self, at }
    }

    /// Fills `buffer` with the bytes from `at` on.
    pub(super) fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.place.read_exact_at(buffer, at)?;
        self.taken.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Reads the bytes `at..at + len` into `scratch`; gives where they are.
    ///
    /// The system copies them from the beginning of a page to the beginning of a page: where a destination is up to 31 bytes
    /// further into its page than the source, as that of a large fresh vector is, a Zen 3 takes six times as long.
    pub(super) fn read_at(&self, at: u64, len: usize, scratch: &mut Vec<u8>) -> io::Result<Range<usize>> {
        let before = (at % PAGE as u64) as usize;
        scratch.resize(scratch.len().max(before + len + PAGE), 0);
        let first = scratch.as_ptr().addr().wrapping_neg() % PAGE;
        self.place.read_exact_at(&mut scratch[first..][..before + len], at - before as u64)?;
        self.taken.fetch_add(len as u64, Ordering::Relaxed);
        Ok(first + before..first + before + len)
    }
}

/// A reader with its own position in a file that others read too.
struct Following {
    file: Anywhere,
    at: u64,
}

impl Read for Following {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.place.read_at(buffer, self.at)?;
        self.at += n as u64;
        self.file.taken.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// What gzip members hold, one after the other.
struct Gzip(Option<GzDecoder<BufReader<Bytes>>>);

impl Gzip {
    fn new(raw: Bytes) -> Self {
        Gzip(Some(GzDecoder::new(BufReader::with_capacity(1 << 16, raw))))
    }
}

impl Read for Gzip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let Some(mut raw) = self.0.take().map(GzDecoder::into_inner) else { break };
            // Blocks of tapes and discs are filled up with zeros.
            let next = loop {
                match raw.fill_buf() {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                    Ok([]) => break None,
                    Ok(bytes) => match bytes.iter().position(|c| *c != 0) {
                        Some(at) => break Some((at, bytes[at])),
                        None => {
                            let n = bytes.len();
                            raw.consume(n);
                        }
                    },
                }
            };
            match next {
                None => break,
                Some((zeros, first)) if first == GZIP[0] => {
                    raw.consume(zeros);
                    self.0 = Some(GzDecoder::new(raw));
                }
                Some(_) => {
                    return Err(Damage::told(
                        "bytes that are not compressed follow those that are: the file is damaged",
                    ));
                }
            }
        }
        Ok(0)
    }
}

/// What is wrong with bytes, as the end of a sentence.
#[derive(Debug)]
pub(super) struct Damage(String);

impl Damage {
    pub(super) fn told(what: impl Into<String>) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Damage(what.into()))
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Damage {}

/// Carriage returns as line feeds.
struct LineFeeds<T>(T);

impl<T: Read> Read for LineFeeds<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        buffer[..n].iter_mut().filter(|c| **c == b'\r').for_each(|c| *c = b'\n');
        Ok(n)
    }
}

/// A file that vanishes when it is closed.
fn unnamed_file() -> io::Result<File> {
    let (file, path) = bochner::persist::temporary_file(&std::env::temp_dir(), "bochner-input".as_ref())?;
    // Open files keep their contents after losing their name; where they cannot lose it, it stays until the next clean-up.
    bochner::persist::remove_temporary(&path);
    Ok(file)
}

/// Bytes that are there without waiting for more; none at the end.
pub(super) fn read_some(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Fills `buffer` as far as there are bytes.
pub(super) fn read_up_to(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read_some(source, &mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// The operating system's or the decompressor's word as the end of a sentence.
pub(super) fn cannot_read(error: &io::Error) -> String {
    if let Some(Damage(what)) = error.get_ref().and_then(|e| e.downcast_ref()) {
        return what.clone();
    }
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::UnexpectedEof => "the compressed file ends too early: it is truncated".into(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => format!("the compressed file is damaged ({error})"),
        _ => format!("cannot be read: {error}"),
    }
}
