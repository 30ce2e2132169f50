//! From feature blocks to statistics of fixed size: what a linear model needs to know about its rows.
//!
//! [`Gram`] takes rows as they come, in blocks of any size, and forgets them; [`Moments`] is what remains. Memory depends
//! on the number of features and never on the number of rows. [`ClassGram`] keeps the sums of every class apart.

mod classes;
mod collect;
mod gram;

pub(crate) use classes::Class;
pub use classes::ClassGram;
pub(crate) use collect::{BLOCK, Collector, Gathered, Moves, Origin};
pub use gram::{Gram, Moments, Totals};
pub(crate) use gram::{Products, Step, add_adjoint_times, adjoint_times};
