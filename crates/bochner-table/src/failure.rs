//! Why a command ended without success, and the exit code that says so.
//!
//! ```
//! use bochner_table::failure::Failure;
//! assert_eq!(Failure::Usage("--target: there is no such column".into()).exit_code(), 2);
//! ```

use bochner::words;
use std::fmt;
use std::io;

/// What ends a command early.
#[derive(Debug)]
pub enum Failure {
    /// The request itself makes no sense: exit code 2.
    Usage(String),
    /// The work failed: exit code 1.
    Failed(String),
    /// The user pressed Ctrl-C: exit code 130, as shells expect.
    Interrupted,
    /// Whoever read our output has gone (`bochner … | head`): nothing to say.
    ClosedPipe,
}

/// Result of a command or of a step of one.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// What the program ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) => 1,
            Failure::Interrupted => 130,
            Failure::ClosedPipe => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Failed(message) => f.write_str(message),
            Failure::Interrupted => f.write_str("interrupted; no partial file was left"),
            Failure::ClosedPipe => Ok(()),
        }
    }
}

impl From<bochner::Error> for Failure {
    fn from(error: bochner::Error) -> Self {
        match error {
            bochner::Error::Interrupted => Failure::Interrupted,
            bochner::Error::Io(error) => error.into(),
            other => Failure::Failed(in_words(other)),
        }
    }
}

const NOT_FINITE: &str = "the features of these rows are not finite: the length scale (--length-scale) or another \
                          parameter of the map (--set) is too small or too large for them";

/// An error of the library in the words of the command line: options instead of arguments, counting from 1 as readers do.
fn in_words(error: bochner::Error) -> String {
    use bochner::Error::{NonFinite, Parameter, Row, TooLarge};
    match error {
        // Readers let finite numbers pass only.
        NonFinite { what: "features", .. } => NOT_FINITE.into(),
        TooLarge { what: "its features", row, .. } => format!("row {}: {NOT_FINITE}", row + 1),
        TooLarge { what, row, column, value, .. } => {
            format!("row {} has the value {value:.1e} in column {}, too large for {what}", row + 1, column + 1)
        }
        NonFinite { what, row, column } => {
            format!("{what} has a NaN or an infinity in row {}, column {}", row + 1, column + 1)
        }
        Row { row, reason } => format!("row {} {reason}", row + 1),
        Parameter { name: "n_components", expected, found } => format!("--features must be {expected}, got {found}"),
        other => other.to_string(),
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Failed(error.to_string()),
        }
    }
}

/// A budget that is too small, in the words of the command line.
pub(crate) fn with_remedy(error: bochner::Error) -> Failure {
    match error {
        bochner::Error::Budget { what, needed, budget, remedy } => Failure::Failed(format!(
            "{what} needs {} of memory but --memory allows {}; {}",
            words::bytes(needed),
            words::bytes(budget),
            remedy.replace("conjugate gradients", "--solver cg")
        )),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_library_are_told_in_the_words_of_the_command_line() {
        let told = |error: bochner::Error| Failure::from(error).to_string();
        let features = told(bochner::Error::NonFinite { what: "features", row: 0, column: 13 });
        assert!(features.contains("--length-scale") && features.contains("--set") && !features.contains("13"));
        let rows = told(bochner::Error::NonFinite { what: "rows", row: 0, column: 1 });
        assert_eq!(rows, "rows has a NaN or an infinity in row 1, column 2");
        assert_eq!(told(bochner::Error::Row { row: 6, reason: "is too long".into() }), "row 7 is too long");
        let few = told(bochner::Error::parameter("n_components", "at least 2 for pairs of cosine and sine", 1));
        assert_eq!(few, "--features must be at least 2 for pairs of cosine and sine, got 1");
    }
}
