//! Files written whole or not at all: a temporary neighbour, then a rename.
//!
//! ```
//! let path = std::env::temp_dir().join(format!("bochner-example-{}", std::process::id()));
//! bochner_table::output::write_whole(&path, b"whole")?;
//! assert_eq!(std::fs::read(&path)?, b"whole");
//! # std::fs::remove_file(path)?;
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

fn cannot_write(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("cannot write {}: {why}", path.display()))
}

/// A file that appears under its name only when [`finish`](Self::finish) succeeds.
#[derive(Debug)]
pub(crate) struct WholeFile {
    writer: Option<BufWriter<File>>,
    target: PathBuf,
    /// `None` when the target is a device or a pipe, which cannot be replaced and is written directly.
    temporary: Option<PathBuf>,
}

impl WholeFile {
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        // Through a symbolic link the file behind it is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(meta) = fs::metadata(&target) {
            if meta.is_dir() {
                return Err(cannot_write(path, "it is a folder"));
            }
            if !meta.is_file() {
                let file = File::options().write(true).open(&target).map_err(|e| cannot_write(path, e))?;
                return Ok(WholeFile { writer: Some(BufWriter::new(file)), target, temporary: None });
            }
        }
        let name = target.file_name().ok_or_else(|| cannot_write(path, "it has no file name"))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let temporary = target.with_file_name(hidden);
        interrupt::remember(&temporary);
        let file = File::create(&temporary).map_err(|e| {
            interrupt::forget(&temporary);
            cannot_write(path, why_not(&folder_of(path), &e))
        })?;
        Ok(WholeFile { writer: Some(BufWriter::with_capacity(1 << 16, file)), target, temporary: Some(temporary) })
    }

    /// Writes over the first bytes of the file; devices and pipes cannot go back.
    pub(crate) fn rewrite_start(&mut self, bytes: &[u8]) -> io::Result<()> {
        let writer = self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        writer.seek(SeekFrom::Start(0))?;
        writer.write_all(bytes)?;
        writer.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// Flushes, syncs and gives the file its name.
    pub(crate) fn finish(mut self) -> Outcome {
        let fail = |e: io::Error| cannot_write(&self.target, e);
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(|e| fail(e.into_error()))?;
        if let Some(temporary) = &self.temporary {
            file.sync_all().map_err(fail)?;
            drop(file);
            fs::rename(temporary, &self.target).map_err(fail)?;
            interrupt::forget(temporary);
            self.temporary = None;
        }
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            drop(self.writer.take());
            let _ = fs::remove_file(temporary);
            interrupt::forget(temporary);
        }
    }
}

/// Writes a whole file.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Outcome {
    let mut file = WholeFile::create(path)?;
    file.write_all(bytes).map_err(|e| cannot_write(path, e))?;
    file.finish()
}

/// Removes what runs that were killed have left of a file: `.NAME.123.part` of [`WholeFile`], `.NAME.123-4.part` of the core.
pub(crate) fn remove_parts(path: &Path) {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (Some(name), Ok(entries)) = (target.file_name(), fs::read_dir(folder_of(&target))) else { return };
    let start = format!(".{}.", name.to_string_lossy());
    for entry in entries.flatten() {
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let number = found.strip_prefix(&start).and_then(|rest| rest.strip_suffix(".part"));
        if number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b'-')) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The folder a file is in.
fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Why no file could be made in a folder.
fn why_not(folder: &Path, error: &io::Error) -> String {
    match folder.metadata() {
        Err(_) => format!("there is no folder {}", folder.display()),
        Ok(meta) if !meta.is_dir() => format!("{} is not a folder", folder.display()),
        Ok(_) => format!("no file can be made in the folder {} ({error})", folder.display()),
    }
}

/// Refuses, before any work is done, a file that could not be written after it.
pub fn check_file(path: &Path) -> Outcome {
    match fs::metadata(path) {
        // Who reads a pipe would take the end of a trial for the end of the file.
        Ok(meta) if !meta.is_dir() && !meta.is_file() => Ok(()),
        _ => WholeFile::create(path).map(drop),
    }
}

/// Refuses, before any work is done, a folder that could not be made or filled after it; makes nothing.
pub fn check_folder(path: &Path) -> Outcome {
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let trial = there.join(format!(".bochner.{}.part", std::process::id()));
    interrupt::remember(&trial);
    let made = File::create(&trial).map(|_| ());
    let _ = fs::remove_file(&trial);
    interrupt::forget(&trial);
    made.map_err(|e| Failure::Failed(format!("cannot write to the folder {}: {}", path.display(), why_not(there, &e))))
}

/// A file as the user named it: the option, or what it is, and where.
pub type Named<'a> = (&'a str, &'a Path);

/// Refuses, before any work is done, outputs that would replace an input or each other.
pub fn check_apart(outputs: &[Named<'_>], inputs: &[Named<'_>]) -> Outcome {
    for (i, (option, path)) in outputs.iter().enumerate() {
        let mut others =
            inputs.iter().map(|other| (other, true)).chain(outputs[..i].iter().map(|other| (other, false)));
        let Some(((what, other), is_input)) = others.find(|((_, other), _)| is_same(path, other)) else { continue };
        let (path, other) = (path.display(), other.display());
        return Err(Failure::Usage(match is_input {
            true => format!("{option} {path} would replace {what} {other}, which is the same file; name another"),
            false => format!("{what} {other} and {option} {path} are the same file; name two"),
        }));
    }
    Ok(())
}

/// Whether two names are those of one file, which need not be there yet. Devices and pipes are not replaced.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| match (fs::canonicalize(path), path.file_name()) {
        (Ok(place), _) => Some(place),
        // A link to a file that is not there yet, or no link.
        (Err(_), Some(name)) => {
            let path = fs::read_link(path).map_or_else(|_| path.to_owned(), |to| folder_of(path).join(to));
            let folder = fs::canonicalize(folder_of(&path)).ok()?;
            Some(folder.join(path.file_name().unwrap_or(name)))
        }
        (Err(_), None) => None,
    };
    if [one, other].contains(&Path::new("-")) {
        return false;
    }
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(a), _) | (_, Ok(a)) if !a.is_file() => false,
        (Ok(a), Ok(b)) if same_inode(&a, &b) => true,
        _ => place(one).is_some_and(|one| Some(one) == place(other)),
    }
}

/// Whether two files are one under two names.
#[cfg(unix)]
fn same_inode(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same_inode(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    false
}

/// Makes a folder and those above it.
pub fn create_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|e| Failure::Failed(format!("cannot make the folder {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bochner-output-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn an_unfinished_file_leaves_the_old_one_untouched() {
        let folder = folder("unfinished");
        let path = folder.join("result.txt");
        write_whole(&path, b"old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"new but never finished").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(file);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the temporary file is gone");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_killed_runs_have_left_of_a_file_is_removed_and_nothing_else() {
        let folder = folder("parts");
        let others =
            ["state", ".state.passes.12.part", ".state.x.part", ".state.12.parts", "state.12.part", ".other.1.part"];
        for name in others.into_iter().chain([".state.12.part", ".state.7-31.part"]) {
            fs::write(folder.join(name), "x").unwrap();
        }
        remove_parts(&folder.join("state"));
        let mut left: Vec<String> =
            fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut expected = others.to_vec();
        expected.sort_unstable();
        assert_eq!(left, expected);
        remove_parts(&folder.join("not there/state"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_finished_file_replaces_the_old_one() {
        let folder = folder("finished");
        let path = folder.join("result.txt");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_are_the_same_through_links_and_before_they_are_there() {
        let folder = folder("same");
        let at = |name: &str| folder.join(name);
        write_whole(&at("data.csv"), b"1").unwrap();
        assert!(is_same(&at("data.csv"), &at("./data.csv")) && !is_same(&at("data.csv"), &at("other.csv")));
        assert!(is_same(&at("new"), &folder.join("../").join(folder.file_name().unwrap()).join("new")));
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")), "nothing is lost");
        assert!(!is_same(Path::new("-"), Path::new("-")));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("data.csv", at("link")).unwrap();
            std::os::unix::fs::symlink("later", at("dangling")).unwrap();
            fs::hard_link(at("data.csv"), at("hard")).unwrap();
            assert!(is_same(&at("link"), &at("data.csv")) && is_same(&at("hard"), &at("link")));
            assert!(is_same(&at("dangling"), &at("later")));
        }
        let (data, page) = (at("data.csv"), at("page"));
        let message = |outputs: &[Named<'_>]| check_apart(outputs, &[("the data file", &data)]).unwrap_err();
        assert!(message(&[("--out", &data)]).to_string().contains("would replace the data file"));
        let twice = message(&[("--out", &page), ("--report", &page)]);
        assert!(twice.to_string().starts_with("--out ") && twice.exit_code() == 2, "{twice}");
        check_apart(&[("--out", &page)], &[("the data file", &data)]).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_missing_folder_is_named_in_the_error() {
        let error = check_file(Path::new("no/such/folder/file.txt")).unwrap_err();
        assert_eq!(error.to_string(), "cannot write no/such/folder/file.txt: there is no folder no/such/folder");
    }

    #[test]
    fn places_are_tried_without_a_trace() {
        let folder = folder("tried");
        let file = folder.join("file.txt");
        check_file(&file).unwrap();
        check_folder(&folder.join("not/yet/there")).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        write_whole(&file, b"old").unwrap();
        check_file(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        for error in [check_file(&file.join("inside.txt")), check_folder(&file.join("inside"))] {
            let error = error.unwrap_err().to_string();
            assert!(error.ends_with(&format!("{} is not a folder", file.display())), "{error}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
