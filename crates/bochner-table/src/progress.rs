//! Long work as whoever waits for it sees it; also where it notices that it shall stop.
//!
//! ```
//! use bochner_table::progress::{Unwatched, Watch};
//! let progress = Unwatched.steps(2); // the program shows a bar here
//! progress.done(1)?;
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::Outcome;
use crate::interrupt;
use crate::read::Input;
use std::borrow::Cow;
use std::fmt::Debug;

/// A piece of long work, until it is dropped. What a watcher does not say otherwise only looks whether it shall stop.
pub trait Progress: Debug {
    /// Says what is being done; fails if the user asked to stop.
    fn at(&self, _what: Cow<'static, str>) -> Outcome {
        interrupt::check()
    }

    /// Counts steps done; fails if the user asked to stop.
    fn done(&self, _steps: u64) -> Outcome {
        interrupt::check()
    }

    /// Does something that is to be seen, such as printing, where nothing else is in its way; says how that went.
    fn apart(&self, show: &mut dyn FnMut() -> Outcome) -> Outcome {
        show()
    }

    /// Looks at how much of a file has been read; fails if the user asked to stop.
    fn read(&self) -> Outcome {
        interrupt::check()
    }
}

/// Whoever waits: is told when a piece of long work begins.
pub trait Watch {
    /// Work of so many steps.
    fn steps(&self, _steps: u64) -> Box<dyn Progress> {
        Box::new(Unwatched)
    }

    /// Work of unknown length.
    fn waiting(&self) -> Box<dyn Progress> {
        Box::new(Unwatched)
    }

    /// One pass over the bytes of a file.
    fn reading(&self, _input: &Input, _what: &'static str) -> Outcome<Box<dyn Progress>> {
        Ok(Box::new(Unwatched))
    }
}

/// Nobody waits, but anybody may ask to stop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Progress for Unwatched {}

impl Watch for Unwatched {}
