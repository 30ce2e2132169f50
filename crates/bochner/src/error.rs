//! One error type: variants by kind of mistake, numbers as numbers.
//!
//! ```
//! use bochner::{Error, model::Ridge, prelude::*};
//! let error = Ridge::new(FourierSpec::default().build::<f64>(2)?, -1.0).unwrap_err();
//! assert!(matches!(error, Error::Parameter { name: "penalty", .. }), "{error}");
//! # Ok::<(), Error>(())
//! ```

use crate::words::bytes;
use std::borrow::Cow;

/// What went wrong, in one sentence that names what was given and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its domain.
    #[error("{name} must be {expected}, got {found}")]
    Parameter {
        /// The argument's public name.
        name: &'static str,
        /// Its domain in words.
        expected: Cow<'static, str>,
        /// What was given.
        found: String,
    },
    /// Shapes that do not fit together.
    #[error("{what} is {found}, expected {expected}")]
    Dimension {
        /// The quantity, such as "number of columns of rows".
        what: &'static str,
        /// The value that would fit.
        expected: usize,
        /// The value found.
        found: usize,
    },
    /// A NaN or an infinity in data.
    #[error("{what} has a NaN or an infinity in row {row}, column {column} (counted from 0)")]
    NonFinite {
        /// The array's public name.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
    },
    /// A row that a map has no features for.
    #[error("row {row} {reason} (rows are counted from 0)")]
    Row {
        /// Row, counted from 0.
        row: usize,
        /// What is the matter with it, as the rest of the sentence.
        reason: String,
    },
    /// A row for which something leaves the range of numbers, since its largest value is too large.
    #[error(
        "row {row} has the value {value:.1e} in column {column}, too large for {what} in {precision}; smaller rows or a larger \
         length scale would do (rows are counted from 0)"
    )]
    TooLarge {
        /// What leaves the range, such as "its features".
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// Column of the largest value, counted from 0.
        column: usize,
        /// That value.
        value: f64,
        /// The numbers whose range it is.
        precision: &'static str,
    },
    /// A factorisation met a pivot that is not positive.
    #[error(
        "the matrix is not positive definite (pivot {pivot}); a penalty of at least {suggested_penalty:.1e} would help"
    )]
    NotPositiveDefinite {
        /// Index of the failing pivot.
        pivot: usize,
        /// A penalty that would make the factorisation succeed.
        suggested_penalty: f64,
    },
    /// An iteration ran out of steps.
    #[error("no convergence after {iterations} iterations: {}", left(*.residual, *.tolerance))]
    NotConverged {
        /// Steps taken.
        iterations: usize,
        /// Relative residual reached.
        residual: f64,
        /// Relative residual asked for.
        tolerance: f64,
    },
    /// A plan that does not fit into the memory budget.
    #[error("{what} needs {needed} bytes of memory but the budget is {budget} bytes; {remedy}")]
    Budget {
        /// What would be allocated.
        what: &'static str,
        /// Bytes it needs.
        needed: u64,
        /// Bytes allowed.
        budget: u64,
        /// What would fit.
        remedy: String,
    },
    /// More memory than this process can have.
    #[error("{what}: {} of memory are needed, and {} are free; {remedy}", bytes(*needed), bytes(*available))]
    Memory {
        /// What would be allocated.
        what: Cow<'static, str>,
        /// Bytes it needs; `u64::MAX` stands for more than can be counted.
        needed: u64,
        /// Bytes that are there.
        available: u64,
        /// What would fit.
        remedy: String,
    },
    /// A quantity that has no closed form, or a combination that is not defined.
    #[error("{what}: {reason}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// Why it cannot be given, and what can.
        reason: String,
    },
    /// Bytes that are not what they claim to be.
    #[error("{what}: {detail}")]
    Format {
        /// The file or field.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The caller asked a running computation to stop.
    #[error("interrupted")]
    Interrupted,
    /// The operating system's word.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// What a source of rows failed of.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
}

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What an iteration left, in words: an iteration that ran away has no residual to speak of.
fn left(residual: f64, tolerance: f64) -> String {
    match residual.is_finite() {
        true => format!("residual {residual:.1e}, tolerance {tolerance:.1e}"),
        false => "its steps left the range of numbers; a larger penalty would help".to_owned(),
    }
}

impl Error {
    /// Sums that left the range of numbers.
    pub(crate) fn overflow() -> Self {
        let expected = "small enough that their squares can be summed";
        Error::parameter("features, targets, weights and penalty", expected, "an overflow to infinity")
    }

    /// A factorisation that failed at `pivot`; no penalty is suggested that is not a number.
    pub(crate) fn not_positive_definite(pivot: usize, suggested_penalty: f64) -> Self {
        match suggested_penalty.is_finite() {
            true => Error::NotPositiveDefinite { pivot, suggested_penalty },
            false => Self::overflow(),
        }
    }

    /// [`Error::TooLarge`] for the largest of a row's values.
    pub(crate) fn too_large(
        what: &'static str,
        row: usize,
        values: impl IntoIterator<Item = f64>,
        precision: &'static str,
    ) -> Self {
        let larger = |a: (usize, f64), b: (usize, f64)| if b.1.abs() > a.1.abs() { b } else { a };
        let (column, value) = values.into_iter().enumerate().fold((0, 0.0), larger);
        Error::TooLarge { what, row, column, value, precision }
    }

    /// A parameter outside its domain.
    pub fn parameter(
        name: &'static str,
        expected: impl Into<Cow<'static, str>>,
        found: impl std::fmt::Display,
    ) -> Self {
        Error::Parameter { name, expected: expected.into(), found: found.to_string() }
    }

    /// The same error with rows counted from `first` rows earlier.
    #[must_use]
    pub fn rows_from(self, first: usize) -> Self {
        self.with_rows(|row| row + first)
    }

    /// The same error with another number for its row.
    pub(crate) fn with_rows(self, number: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Error::NonFinite { what, row, column } => Error::NonFinite { what, row: number(row), column },
            Error::Row { row, reason } => Error::Row { row: number(row), reason },
            Error::TooLarge { what, row, column, value, precision } => {
                Error::TooLarge { what, row: number(row), column, value, precision }
            }
            other => other,
        }
    }
}

/// Accepts `found` if it equals `expected`.
pub(crate) fn check_dim(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Dimension { what, expected, found }) }
}

/// Accepts a count of at least one.
pub(crate) fn check_count(name: &'static str, found: usize) -> Result<()> {
    if found > 0 { Ok(()) } else { Err(Error::parameter(name, "at least 1", found)) }
}

fn check_finite(name: &'static str, found: f64, within: bool, expected: &'static str) -> Result<()> {
    if within && found.is_finite() { Ok(()) } else { Err(Error::parameter(name, expected, found)) }
}

/// Accepts a positive finite number.
pub(crate) fn check_positive(name: &'static str, found: f64) -> Result<()> {
    check_finite(name, found, found > 0.0, "a positive finite number")
}

/// Accepts a non-negative finite number.
pub(crate) fn check_non_negative(name: &'static str, found: f64) -> Result<()> {
    check_finite(name, found, found >= 0.0, "a non-negative finite number")
}
