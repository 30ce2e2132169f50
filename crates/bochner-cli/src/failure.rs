//! Why a command ended without success, and the exit code that says so.

use crate::human;
use std::fmt;
use std::io;

/// What ends a command early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request itself makes no sense: exit code 2.
    Usage(String),
    /// The work failed: exit code 1.
    Failed(String),
    /// The user pressed Ctrl-C: exit code 130, as shells expect.
    Interrupted,
    /// Whoever read our output has gone (`bochner … | head`): nothing to say.
    Unheard,
}

/// Result of a command or of a step of one.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Failed(_) => 1,
            Failure::Interrupted => 130,
            Failure::Unheard => 0,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) | Failure::Failed(message) => f.write_str(message),
            Failure::Interrupted => f.write_str("interrupted; no partial file was left"),
            Failure::Unheard => Ok(()),
        }
    }
}

impl From<bochner::Error> for Failure {
    fn from(error: bochner::Error) -> Self {
        match error {
            bochner::Error::Interrupted => Failure::Interrupted,
            bochner::Error::Io(error) => error.into(),
            other => Failure::Failed(other.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unheard,
            _ => Failure::Failed(error.to_string()),
        }
    }
}

/// A budget that is too small, in the words of the command line.
pub(crate) fn with_remedy(error: bochner::Error) -> Failure {
    match error {
        bochner::Error::Budget { what, needed, budget, remedy } => Failure::Failed(format!(
            "{what} needs {} of memory but --memory allows {}; {}",
            human::bytes(needed),
            human::bytes(budget),
            remedy.replace("conjugate gradients", "--solver cg")
        )),
        other => other.into(),
    }
}
