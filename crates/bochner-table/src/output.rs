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
use bochner::persist::{WholeFile, behind_links, folder_of, remove_temporary, temporaries, temporary_file};
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

pub(crate) fn cannot_write(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("cannot write {}: {why}", path.display()))
}

/// Begins a file that appears under its name only when it is finished.
pub(crate) fn begin(path: &Path) -> Outcome<WholeFile> {
    WholeFile::create(path).map_err(|e| match e.kind() {
        io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => cannot_write(path, e),
        _ => cannot_write(path, why_not(folder_of(path), &e)),
    })
}

/// Writes a whole file.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Outcome {
    let mut file = begin(path)?;
    file.write_all(bytes).and_then(|()| file.finish()).map_err(|e| cannot_write(path, e))
}

/// The first bytes of a file, at most so many.
///
/// # Errors
/// What the operating system says.
pub(crate) fn first_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes what runs that were killed have left of a file, of which nobody else writes another version now: temporary files
/// that begin as the file does, or have not begun.
pub(crate) fn remove_parts(path: &Path, begins: fn(&[u8]) -> bool) {
    let is_ours =
        |part: &&std::path::PathBuf| first_bytes(part, HEAD).is_ok_and(|head| head.is_empty() || begins(&head));
    temporaries(path).iter().filter(is_ours).for_each(|part| remove_temporary(part));
}

/// Bytes by which files of this program are told from others.
pub(crate) const HEAD: u64 = 64;

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
        _ => begin(path).map(drop),
    }
}

/// Refuses, before any work is done, a folder that could not be made or filled after it; makes nothing.
pub fn check_folder(path: &Path) -> Outcome {
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let made = temporary_file(there, "bochner".as_ref()).map(|(_, trial)| remove_temporary(&trial));
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
    if [one, other].contains(&Path::new("-")) {
        return false;
    }
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(a), _) | (_, Ok(a)) if !a.is_file() => false,
        (Ok(a), Ok(b)) if same_inode(&a, &b) => true,
        _ => behind_links(one) == behind_links(other),
    }
}

/// Whether two files are one under two names.
#[cfg(unix)]
pub(crate) fn same_inode(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
pub(crate) fn same_inode(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    false
}

/// Makes a folder and those above it.
pub fn create_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|e| Failure::Failed(format!("cannot make the folder {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bochner-output-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_killed_runs_have_left_of_a_file_is_removed_and_nothing_else() {
        let folder = folder("parts");
        let digits = "0123456789abcdef";
        let ours = [format!(".state.{digits}.part"), format!(".state.{}.part", digits.replace('0', "f"))];
        fs::write(folder.join(&ours[0]), "mark and more").unwrap();
        fs::write(folder.join(&ours[1]), "").unwrap();
        let others = [
            "state".to_owned(),
            ".state.12.part".to_owned(),
            ".state.another-16-digit.part".to_owned(),
            format!(".state.{digits}.parts"),
            format!("state.{digits}.part"),
            format!(".state.passes.{digits}.part"),
            // Somebody else's, under a name that could be ours.
            format!(".state.{}.part", digits.replace('0', "e")),
        ];
        others.iter().for_each(|name| fs::write(folder.join(name), "x").unwrap());
        remove_parts(&folder.join("state"), |head| head.starts_with(b"mark"));
        let mut left: Vec<String> =
            fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut expected = others.to_vec();
        expected.sort_unstable();
        assert_eq!(left, expected);
        remove_parts(&folder.join("not there/state"), |_| true);
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
