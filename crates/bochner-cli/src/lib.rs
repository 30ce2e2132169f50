//! The program `bochner`: a file in, an answer out.
//!
//! | folder or file | holds |
//! | --- | --- |
//! | `commands/` | one file per command: its arguments, its help, its work |
//! | `read/` | one file per data format, all delivering blocks of rows |
//! | `target` | a kernel named on the command line and a prepared sample, for `compare` and `plan` |
//! | `source`, `map_args` | options that several commands share: which columns, which map |
//! | `description` | what a model is made of: a map, operator-valued features or an exact kernel |
//! | `pipeline`, `choose`, `models`, `score` | from cells to rows, parameters by held-out rows, kinds of models, how good they are |
//! | `known`, `fetch` | data sets by name, and downloads that are believed when their checksum is right |
//! | `write` | tables on their way out: CSV, TSV, NPY, Parquet |
//! | `reproduce/` | the experiments of the papers, one file each |
//! | `table`, `plot`, `report` | what people see: aligned tables, plots as SVG or PNG, one HTML page |
//! | `progress`, `interrupt`, `output` | manners: a bar on a terminal, a clean stop, files written whole or not at all |

mod bench;
mod checkpoint;
mod choose;
mod cli;
mod commands;
mod demo;
mod description;
mod digits;
mod failure;
mod fetch;
mod fit_report;
mod human;
mod interrupt;
mod journal;
mod known;
mod map_args;
mod models;
mod output;
mod pipeline;
mod plot;
mod progress;
pub mod read;
mod report;
mod reproduce;
mod score;
mod source;
mod table;
mod target;
mod write;

pub use cli::run;

/// Reads the bytes of a model file as `predict` does, and predicts a row of zeros: what fuzzing calls.
///
/// # Errors
/// Everything that is wrong with the bytes.
#[doc(hidden)]
pub fn try_model(bytes: &[u8]) -> bochner::Result<()> {
    let model = models::Model::new(bochner::persist::Stored::from_bytes(bytes)?)?;
    let rows = ndarray::Array2::zeros((1, model.stored.header.input_dim));
    score::predict(&model, rows.view()).map(drop)
}
