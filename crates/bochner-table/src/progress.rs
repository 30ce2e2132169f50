//! Long work as whoever waits for it sees it; also where it notices that it shall stop.

use crate::failure::Outcome;
use crate::interrupt;
use crate::read::Input;
use std::borrow::Cow;
use std::fmt::Debug;

/// A piece of long work, until it is dropped.
pub trait Progress: Debug {
    /// Says what is being done; fails if the user asked to stop.
    fn at(&self, what: Cow<'static, str>) -> Outcome;

    /// Counts steps done; fails if the user asked to stop.
    fn done(&self, steps: u64) -> Outcome;

    /// Looks at how much of a file has been read; fails if the user asked to stop.
    fn read(&self) -> Outcome;
}

/// Whoever waits: is told when a piece of long work begins.
pub trait Watch {
    /// Work of so many steps.
    fn steps(&self, steps: u64) -> Box<dyn Progress>;

    /// Work of unknown length.
    fn waiting(&self) -> Box<dyn Progress>;

    /// One pass over the bytes of a file.
    fn reading(&self, input: &Input, what: &'static str) -> Outcome<Box<dyn Progress>>;
}

/// Nobody waits, but anybody may ask to stop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn at(&self, _what: Cow<'static, str>) -> Outcome {
        interrupt::check()
    }

    fn done(&self, _steps: u64) -> Outcome {
        interrupt::check()
    }

    fn read(&self) -> Outcome {
        interrupt::check()
    }
}

impl Watch for Unwatched {
    fn steps(&self, _steps: u64) -> Box<dyn Progress> {
        Box::new(Unwatched)
    }

    fn waiting(&self) -> Box<dyn Progress> {
        Box::new(Unwatched)
    }

    fn reading(&self, _input: &Input, _what: &'static str) -> Outcome<Box<dyn Progress>> {
        Ok(Box::new(Unwatched))
    }
}
