//! A model with what is done to the columns of a table before it sees them.
//!
//! ```
//! use bochner_table::model::TableModel;
//! let refusal = TableModel::load("there-is-none.bochner").unwrap_err().to_string();
//! assert_eq!(refusal, "there-is-none.bochner: there is no such file");
//! ```

use crate::failure::{Failure, Outcome};
use crate::fit::{TRAINING, Training};
use crate::interval::HeldOutErrors;
use crate::output::{HEAD, first_bytes};
use crate::pipeline::Pipeline;
use crate::target::TargetScale;
use bochner::catalogue::{ModelEntry, Task};
use bochner::{Error, Model, Result, words};
use ndarray::{Array2, ArrayView2};
use std::path::Path;

/// The first bytes of a file.
///
/// # Errors
/// What the operating system says.
pub fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    first_bytes(path, HEAD)
}

/// Whether a file begins like one that bochner writes; a damaged one does so too.
pub fn is_file(head: &[u8]) -> bool {
    let length = head.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
    let begins = length < 1 << 32 && head.get(8) == Some(&b'{');
    begins || head.windows(12).take(HEAD as usize).any(|word| word == b"__metadata__")
}

/// Why a file that is not one of this program cannot be used as a model.
fn not_a_model(name: &str, head: &[u8]) -> String {
    let known: [&[u8]; 5] = [b"PAR1", b"\x93NUMPY", b"PK\x03\x04", b"\x1f\x8b", b"\0\0\x08"];
    // A letter may be cut at the end.
    let text = std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |t| !t.contains('\0'));
    let why = match head {
        [] => ": it is empty",
        _ if text || known.iter().any(|start| head.starts_with(start)) => {
            ": it looks like data, from which bochner fit makes a model"
        }
        _ => "",
    };
    format!("{name} is not a model file of bochner{why}")
}

/// What `--alpha` sets for a kind of model, as people say it.
pub fn penalty_in_words(kind: &ModelEntry) -> &'static str {
    kind.penalty.map_or("penalty", |penalty| penalty.word)
}

/// Where files keep the [`Pipeline`].
const PREPROCESSING: &str = "preprocessing";

/// A model and the way from the columns of a table to its rows.
#[derive(Debug, Clone)]
pub struct TableModel {
    /// Predicts prepared rows.
    pub model: Model,
    /// `None` for a model that was saved without one, by another door than the command line.
    pub pipeline: Option<Pipeline>,
    /// What is known of its errors from rows that had no part in its fit.
    pub errors: HeldOutErrors,
}

impl TableModel {
    /// A fitted model with the pipeline of its rows.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn new(mut model: Model, pipeline: Pipeline) -> Result<Self> {
        model.attach(PREPROCESSING, &pipeline)?;
        Self::of(model)
    }

    /// A model with the pipeline of its file, if it has one.
    ///
    /// # Errors
    /// A pipeline that cannot be read, or belongs to another model.
    pub fn of(model: Model) -> Result<Self> {
        let wrong = |detail: String| Error::Format { what: "model file", detail };
        let pipeline: Option<Pipeline> = model.attachment(PREPROCESSING)?;
        if let Some(pipeline) = &pipeline {
            if let Some(views) = &pipeline.views {
                views.check()?;
                if views.input_dim() != pipeline.schema.input_dim() {
                    return Err(wrong("its views are of other columns".into()));
                }
            }
            let (found, expected) = (pipeline.output_dim(), model.input_dim());
            if found != expected {
                return Err(wrong(format!("its columns make rows of {found} numbers, its map takes {expected}")));
            }
            let broken = match model.kind().task {
                Task::Regression => pipeline.targets.len() != pipeline.schema.targets.len(),
                Task::Classification => {
                    let classes = model.classes().map_or(0, <[_]>::len);
                    classes != pipeline.labels.len() || pipeline.schema.targets.len() != 1
                }
            };
            if broken || !pipeline.targets.iter().all(TargetScale::is_sound) {
                return Err(wrong("its targets or classes do not fit together".into()));
            }
        }
        let training: Option<Training> = model.attachment(TRAINING)?;
        let errors = training.unwrap_or_default().errors;
        if !errors.is_sound() {
            return Err(wrong("its errors are no errors that a fit has made".into()));
        }
        Ok(TableModel { model, pipeline, errors })
    }

    /// Keeps what is known of the fit.
    pub(crate) fn attach_training(&mut self, training: &Training) -> Result<()> {
        self.errors = training.errors.clone();
        self.model.attach(TRAINING, training)
    }

    /// Reads a model file; what is wrong with it is told with its name.
    ///
    /// # Errors
    /// Files that cannot be read, are damaged, or are no models.
    pub fn load(path: impl AsRef<Path>) -> Outcome<Self> {
        let path = path.as_ref();
        let told = |e: &dyn std::fmt::Display| Failure::Failed(format!("{}: {e}", path.display()));
        let bytes = std::fs::read(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => told(&"there is no such file"),
            _ => told(&e),
        })?;
        if !is_file(&bytes) {
            let head = &bytes[..bytes.len().min(HEAD as usize)];
            return Err(Failure::Failed(not_a_model(&path.display().to_string(), head)));
        }
        Model::from_bytes(&bytes).and_then(Self::of).map_err(|e| told(&e))
    }

    /// Writes a model file, whole or not at all.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.model.save(path)
    }

    /// What it learns.
    pub fn task(&self) -> Task {
        self.model.kind().task
    }

    /// Names of the classes as text.
    pub fn class_names(&self) -> Vec<String> {
        self.model.classes().into_iter().flatten().map(ToString::to_string).collect()
    }

    /// Predictions for rows as the file has them: numbers of classes, or targets in their own units.
    ///
    /// # Errors
    /// Rows of another length, and NaN or infinities in them.
    pub fn predict(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.predict_prepared(self.prepared(rows)?.view())
    }

    /// Standard deviations of observations, noise included, in the units of the targets.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and for models that have none.
    pub fn deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.deviations_prepared(self.prepared(rows)?.view(), true)
    }

    /// Standard deviations of the function behind the observations, without noise.
    ///
    /// # Errors
    /// As [`deviations`](Self::deviations).
    pub fn function_deviations(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.deviations_prepared(self.prepared(rows)?.view(), false)
    }

    /// Probabilities of the classes, one column each.
    ///
    /// # Errors
    /// As [`predict`](Self::predict), and for models that have none.
    pub fn probabilities(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.model.probabilities(self.prepared(rows)?.view())
    }

    /// Whether it knows probabilities of classes.
    pub fn has_probabilities(&self) -> bool {
        self.model.kind().answers.probabilities || self.model.calibration().is_ok_and(|found| found.is_some())
    }

    /// Ends of intervals that cover new rows with this probability, around predictions in the units of the targets: the low end
    /// of each target and its high one.
    ///
    /// # Errors
    /// As [`half_widths`](Self::half_widths), and of a model of classes.
    pub fn interval_ends(&self, predicted: ArrayView2<'_, f64>, coverage: f64) -> Result<Array2<f64>> {
        if self.task() == Task::Classification {
            let reason = "this model predicts classes, which have sets".into();
            return Err(Error::Unsupported { what: "intervals", reason });
        }
        let widths = self.half_widths(coverage)?;
        let scale = |target: usize| {
            let known = self.pipeline.as_ref().and_then(|pipeline| pipeline.targets.get(target));
            known.copied().unwrap_or(TargetScale::plain(0.0, 1.0))
        };
        Ok(Array2::from_shape_fn((predicted.nrows(), 2 * widths.len()), |(i, k)| {
            scale(k / 2).ends(predicted[[i, k / 2]], widths[k / 2])[k % 2]
        }))
    }

    /// Which classes belong to a set that has the true one with this probability, one column for each class: ones and zeros. A
    /// set may be empty, where a row is like none of the classes, and hold several, where it is like them.
    ///
    /// # Errors
    /// As [`half_widths`](Self::half_widths), and of a model of numbers.
    pub fn class_sets(&self, probabilities: ArrayView2<'_, f64>, coverage: f64) -> Result<Array2<f64>> {
        if self.task() == Task::Regression {
            let reason = "this model predicts numbers, which have intervals".into();
            return Err(Error::Unsupported { what: "sets of classes", reason });
        }
        let most = self.half_widths(coverage)?[0];
        Ok(probabilities.mapv(|p| f64::from(u8::from(1.0 - p <= most))))
    }

    /// What held-out rows say of errors: half the widths of intervals that cover new rows with this probability, one per
    /// target, of logarithms where these are learned; of classes how improbable one may be in a set that covers.
    ///
    /// # Errors
    /// A model that was saved without errors of held-out rows, and more certainty than these allow.
    pub fn half_widths(&self, coverage: f64) -> Result<Vec<f64>> {
        let unsupported = |reason: String| Error::Unsupported { what: "intervals", reason };
        if !(coverage > 0.0 && coverage < 1.0) {
            return Err(Error::parameter("coverage", "between 0 and 1", coverage));
        }
        let targets = if self.task() == Task::Classification { 1 } else { self.model.output_dim() };
        if self.errors.targets() != targets {
            return Err(unsupported(
                "the file of this model has no errors of rows that were held out; bochner fit keeps them".into(),
            ));
        }
        let width = |target: usize| {
            let held = self.errors.rows();
            let most = words::significant(held as f64 / (held + 1) as f64, 3);
            self.errors.half_width(target, coverage).ok_or_else(|| {
                unsupported(format!("{held} rows were held out, which is enough for a coverage of at most {most}"))
            })
        };
        (0..self.errors.targets()).map(width).collect()
    }

    /// Rows as the model sees them.
    pub(crate) fn prepared(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let rows = rows.to_owned();
        self.pipeline.as_ref().map_or(Ok(rows.clone()), |pipeline| pipeline.prepared(rows))
    }

    /// The same for rows that the pipeline has changed already.
    pub(crate) fn predict_prepared(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        if self.task() == Task::Classification {
            let classes = self.model.predict_classes(rows)?;
            return Ok(Array2::from_shape_fn((classes.len(), 1), |(i, _)| classes[i] as f64));
        }
        let mut values = self.model.predict(rows)?;
        let scales = self.pipeline.iter().flat_map(|p| &p.targets);
        for (mut column, scale) in values.columns_mut().into_iter().zip(scales) {
            column.mapv_inplace(|v| scale.back(v));
        }
        Ok(values)
    }

    /// Standard deviations in the units of the targets, with or without noise, for rows that the pipeline has changed already.
    pub(crate) fn deviations_prepared(&self, rows: ArrayView2<'_, f64>, noise: bool) -> Result<Array2<f64>> {
        let mut deviations = if noise { self.model.deviations(rows)? } else { self.model.function_deviations(rows)? };
        let scales = self.pipeline.iter().flat_map(|p| &p.targets);
        for (mut column, scale) in deviations.columns_mut().into_iter().zip(scales) {
            column.mapv_inplace(|v| v * scale.scale);
        }
        Ok(deviations)
    }
}
