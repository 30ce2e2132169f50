//! The one way in which files are written: whole or not at all.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files that would be left behind if the program ended this instant.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files that the program would leave behind if it ended now: for a program that is told to end at once.
pub fn remove_unfinished() {
    for file in unfinished().drain(..) {
        let _ = fs::remove_file(file);
    }
}

/// The folder a file is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file that is meant by a name, which need not be there yet: behind symbolic links, the one they lead to.
pub fn behind_links(path: &Path) -> PathBuf {
    /// As many links as systems follow.
    const LINKS: usize = 40;
    if let Ok(found) = fs::canonicalize(path) {
        return found;
    }
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(to) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(to);
    }
    match (fs::canonicalize(folder_of(&path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// How the name of a temporary file for `name` begins; what follows is 16 digits and [`PART`].
fn beginning(name: &std::ffi::OsStr) -> OsString {
    /// Names of files have at most 255 bytes.
    const LONGEST: usize = 200;
    let mut hidden = OsString::from(".");
    if name.len() <= LONGEST {
        hidden.push(name);
    } else {
        hidden.push(name.to_string_lossy().chars().take(LONGEST / 4).collect::<String>());
    }
    hidden.push(".");
    hidden
}

/// How the name of a temporary file ends.
const PART: &str = ".part";

/// A new file in a folder, under a name that nobody can guess; who makes it removes it.
///
/// # Errors
/// Those of the operating system.
pub fn temporary_file(folder: &Path, name: &std::ffi::OsStr) -> io::Result<(File, PathBuf)> {
    loop {
        let mut hidden = beginning(name);
        // Keys of a hasher come from the operating system's random numbers.
        hidden.push(format!("{:016x}{PART}", RandomState::new().build_hasher().finish()));
        let path = folder.join(hidden);
        // Noted first: a program that is ended in between must find it.
        unfinished().push(path.clone());
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(e) => {
                forget(&path);
                if e.kind() != io::ErrorKind::AlreadyExists {
                    return Err(e);
                }
            }
        }
    }
}

fn forget(path: &Path) {
    unfinished().retain(|file| file != path);
}

/// Removes a temporary file.
pub fn remove_temporary(path: &Path) {
    let _ = fs::remove_file(path);
    forget(path);
}

/// Temporary files of `path` that killed programs have left, and those of programs that are writing it now.
pub fn temporaries(path: &Path) -> Vec<PathBuf> {
    let target = behind_links(path);
    let (Some(name), Ok(entries)) = (target.file_name(), fs::read_dir(folder_of(&target))) else { return Vec::new() };
    let start = beginning(name);
    let is_one = |found: &OsString| {
        let (found, start) = (found.as_encoded_bytes(), start.as_encoded_bytes());
        let digits = found.strip_prefix(start).and_then(|rest| rest.strip_suffix(PART.as_bytes()));
        digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
    };
    entries.flatten().filter(|entry| is_one(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Gives a finished file its name, and waits until the disk knows it.
///
/// # Errors
/// Those of the operating system.
pub fn put_in_place(file: &Path, target: &Path) -> io::Result<()> {
    fs::rename(file, target)?;
    // A name is on the disk once its folder is; systems that cannot flush a folder have nothing to flush.
    if cfg!(unix) {
        let _ = File::open(folder_of(target)).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

/// A file that appears under its name only when [`finish`](Self::finish) succeeds. Until then its bytes are in a hidden
/// neighbor with a name that nobody can guess; dropped, it leaves nothing behind.
///
/// ```
/// use bochner::persist::WholeFile;
/// use std::io::Write;
/// let path = std::env::temp_dir().join(format!("bochner-whole-{}", std::process::id()));
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"whole")?;
/// assert!(!path.exists());
/// file.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"whole");
/// # std::fs::remove_file(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    /// `None` once it is finished.
    writer: Option<BufWriter<File>>,
    target: PathBuf,
    /// `None` when the target is a device or a pipe, which cannot be replaced and is written directly.
    temporary: Option<PathBuf>,
}

impl WholeFile {
    /// Begins a file. Behind a symbolic link the file it leads to is replaced, not the link; devices and pipes are written
    /// as they are.
    ///
    /// # Errors
    /// A folder, a name without a file, and what the operating system says.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = behind_links(path);
        let old = fs::metadata(&target).ok();
        if old.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            let file = File::options().write(true).open(&target)?;
            return Ok(WholeFile { writer: Some(BufWriter::new(file)), target, temporary: None });
        }
        let nameless = || io::Error::new(io::ErrorKind::InvalidInput, "it has no file name");
        let (file, temporary) = temporary_file(folder_of(&target), target.file_name().ok_or_else(nameless)?)?;
        let whole =
            WholeFile { writer: Some(BufWriter::with_capacity(1 << 16, file)), target, temporary: Some(temporary) };
        if let (Some(old), Some(writer)) = (old, &whole.writer) {
            // Who may read the old file may read the new one, and nobody else.
            writer.get_ref().set_permissions(old.permissions())?;
        }
        Ok(whole)
    }

    fn writer(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.writer.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Flushes to the disk and gives the file its name.
    ///
    /// # Errors
    /// What the operating system says; the file that was there is then untouched.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Some(temporary) = &self.temporary {
            file.sync_all()?;
            drop(file);
            put_in_place(temporary, &self.target)?;
            forget(temporary);
            self.temporary = None;
        }
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.writer()?.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer()?.flush()
    }
}

impl Seek for WholeFile {
    /// Devices and pipes cannot go back.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.writer()?.seek(to)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            drop(self.writer.take());
            remove_temporary(&temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bochner-whole-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = WholeFile::create(path)?;
        file.write_all(bytes)?;
        file.finish()
    }

    #[test]
    fn an_unfinished_file_leaves_the_old_one_untouched() {
        let folder = folder("unfinished");
        let path = folder.join("result.txt");
        write(&path, b"old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"new but never finished").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(temporaries(&path).len(), 1);
        drop(file);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the temporary file is gone");
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(WholeFile::create(&folder).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_with_a_guessed_name_is_never_written_into() {
        let folder = folder("guessed");
        let path = folder.join("result.txt");
        // What a stranger could have prepared for the names of former versions.
        let guessed = folder.join(format!(".result.txt.{}.part", std::process::id()));
        fs::write(&guessed, "another's").unwrap();
        write(&path, b"ours").unwrap();
        assert_eq!(fs::read(&guessed).unwrap(), b"another's");
        let name = path.file_name().unwrap();
        let (one, other) = (temporary_file(&folder, name).unwrap(), temporary_file(&folder, name).unwrap());
        assert_ne!(one.1, other.1);
        assert_eq!(temporaries(&path).len(), 2);
        [one.1, other.1].iter().for_each(|path| remove_temporary(path));
        let long = folder.join("n".repeat(250));
        write(&long, b"long").unwrap();
        assert_eq!(fs::read(&long).unwrap(), b"long");
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay_as_they_were() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = folder("links");
        let at = |name: &str| folder.join(name);
        fs::write(at("secret"), "old").unwrap();
        fs::set_permissions(at("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        symlink("secret", at("link")).unwrap();
        symlink("later", at("dangling")).unwrap();
        for (link, file) in [("link", "secret"), ("dangling", "later")] {
            write(&at(link), b"new").unwrap();
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
            assert_eq!(fs::read(at(file)).unwrap(), b"new");
        }
        assert_eq!(fs::metadata(at("secret")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).unwrap();
    }
}
