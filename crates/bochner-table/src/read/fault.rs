//! What is wrong with a file, and where: one sentence with file, line and column.

use super::input::Input;
use std::borrow::Cow;
use std::fmt;
use std::io;

/// A mistake in a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name of the file as the user wrote it.
    pub file: String,
    /// Line, counted from 1, for text files.
    pub line: Option<u64>,
    /// Column: its number counted from 1, and its name where it has one.
    pub column: Option<(usize, Option<String>)>,
    /// What was expected and what was found.
    pub message: String,
}

impl Fault {
    pub(super) fn new(file: &str, message: impl Into<String>) -> Self {
        Fault { file: file.to_owned(), line: None, column: None, message: message.into() }
    }

    /// In column `j`, counted from 0, which has no name.
    pub(super) fn at(input: &Input, line: Option<u64>, j: usize, message: String) -> Self {
        Fault { line, column: Some((j + 1, None)), ..Fault::new(&input.name, message) }
    }
}

impl Fault {
    /// One report of several mistakes.
    pub(super) fn all_of(faults: Vec<Fault>) -> Option<Fault> {
        let mut faults = faults.into_iter();
        let first = faults.next()?;
        Some(faults.fold(first, |all, next| Fault { message: format!("{}\n{next}", all.message), ..all }))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(line) = self.line {
            write!(f, "line {line}")?;
            f.write_str(if self.column.is_some() { ", " } else { ": " })?;
        }
        match &self.column {
            Some((number, Some(name))) => write!(f, "column {number} ({}): ", short(name))?,
            Some((number, None)) => write!(f, "column {number}: ")?,
            None => {}
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for bochner::Error {
    /// As an I/O error of kind `InvalidData`, which prints as the fault itself.
    fn from(fault: Fault) -> Self {
        bochner::Error::Io(io::Error::new(io::ErrorKind::InvalidData, fault))
    }
}

/// A name, cut where it would fill the screen.
pub(super) fn short(name: &str) -> Cow<'_, str> {
    const SHOWN: usize = 60;
    match name.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &name[..at]).into(),
        None => name.into(),
    }
}

/// The first bytes of a field, fit for a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text: String = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)])
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN)
        .collect();
    if text.len() < bytes.len() { format!("\"{text}…\"") } else { format!("\"{text}\"") }
}
