//! The program `bochner`: a file in, an answer out.
//!
//! | folder or file | holds |
//! | --- | --- |
//! | `commands/` | one file per command: its arguments, its help, its work |
//! | `read/` | one file per data format, all delivering blocks of rows |
//! | `target` | a kernel named on the command line and a prepared sample, for `compare` and `plan` |
//! | `table`, `plot`, `report` | what people see: aligned tables, SVG plots, one HTML page |
//! | `progress`, `interrupt`, `output` | manners: a bar on a terminal, a clean stop, files written whole or not at all |

mod bench;
mod cli;
mod commands;
mod demo;
mod digits;
mod failure;
mod human;
mod interrupt;
mod output;
mod plot;
mod progress;
pub mod read;
mod report;
mod table;
mod target;

pub use cli::run;
