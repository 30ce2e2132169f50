//! Tables: data files as blocks of rows, columns and words, choosing and fitting models, predictions as files.
//!
//! | folder or file | holds |
//! | --- | --- |
//! | [`read`] | one file per data format, all delivering blocks of rows |
//! | [`mod@write`] | tables on their way out: CSV, TSV, NPY, Parquet |
//! | [`pipeline`] | from cells to rows: columns, steps, classes |
//! | [`mod@fit`] | a file and a [`fit::Request`] in, a model and its verdict out |
//! | [`choose`], [`score`], [`doubt`] | parameters by held-out rows; how good a model is; why it may be no better than a guess |
//! | [`interval`] | intervals from the errors of rows that had no part in a fit |
//! | [`model`] | a model with its pipeline, and its file |
//! | [`map_request`], [`sample`] | a map or a kernel by names and settings; a prepared sample of a file's rows |
//! | [`stats`] | tests of two files and of columns of one |
//! | [`predict`], [`transform`] | new rows through a model; rows as random features |
//! | [`mod@update`] | rows added to a model, or taken back |
//! | [`progress`], [`interrupt`], [`output`], [`failure`] | signs of life, a clean stop, files written whole or not at all, what goes wrong |
//!
//! ```
//! use bochner_table::fit::Request;
//! # let folder = std::env::temp_dir().join(format!("bochner-table-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let file = folder.join("houses.csv");
//! # let rows = (0..120).map(|i| (i % 12, ["oak", "ash"][i % 2], 10 + (i * i) % 7 + 3 * (i % 12)));
//! # let text: String = rows.map(|(age, wood, price)| format!("{age},{wood},{price}.5\n")).collect();
//! # std::fs::write(&file, format!("age,wood,price\n{text}"))?;
//! let trained = bochner_table::fit(&file, "price", &Request { budget: 1.0, ..Request::default() })?;
//! println!("{}", trained.figures[0].in_words()); // on rows that had no part in the fit
//! trained.model.save(folder.join("houses.bochner"))?;
//!
//! let model = bochner_table::model::TableModel::load(folder.join("houses.bochner"))?;
//! let two = ndarray::array![[3.0, 1.0, 0.0], [4.0, 0.0, 1.0]]; // age, and a column for each word
//! assert_eq!(model.predict(two.view())?.dim(), (2, 1));
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

#![warn(missing_docs)]

pub mod checkpoint;
pub mod choose;
pub mod dependence;
pub mod doubt;
pub mod failure;
pub mod fit;
pub mod interrupt;
pub mod interval;
mod job;
mod journal;
pub mod map_request;
pub mod model;
pub mod output;
pub mod pipeline;
pub mod predict;
pub mod progress;
pub mod read;
pub mod sample;
pub mod score;
pub mod stats;
pub mod target;
pub mod transform;
pub mod update;
pub mod write;

pub use fit::fit;

/// Reads a file as the checkpoint of a fit, and another as its passes, with what they belong to: what fuzzing calls.
#[doc(hidden)]
pub fn try_checkpoint(path: &std::path::Path, configuration: &str) -> (bool, usize) {
    checkpoint::try_files(path, configuration)
}

/// Reads the bytes of a model file as `predict` does, and predicts a row of zeros: what fuzzing calls.
///
/// # Errors
/// Everything that is wrong with the bytes.
#[doc(hidden)]
pub fn try_model(bytes: &[u8]) -> bochner::Result<()> {
    let model = model::TableModel::of(bochner::Model::from_bytes(bytes)?)?;
    let rows = ndarray::Array2::zeros((1, model.model.input_dim()));
    model.predict(rows.view()).map(drop)
}
