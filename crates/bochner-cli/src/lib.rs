//! The program `bochner`: arguments in, calls of the library, what people see out.
//!
//! | folder or file | holds |
//! | --- | --- |
//! | `commands/` | one file per command: its arguments, its help, its output |
//! | `source`, `map_args`, `kernel_args`, `output_args`, `values` | options that several commands share |
//! | `listed` | what the catalogue lists, as values of options |
//! | `progress` | a bar on a terminal |
//! | `fit_report` | the page about a fit |
//! | `demo`, `digits` | what the library does, in two minutes, and the data for it |

mod cli;
mod commands;
mod demo;
mod digits;
mod fit_report;
mod kernel_args;
mod listed;
mod map_args;
mod output_args;
mod progress;
mod source;
mod values;

pub use cli::{run, try_arguments};
