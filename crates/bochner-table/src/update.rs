//! Rows added to a model that has kept its sums, or taken back from it: the old ones are not read again.
//!
//! ```
//! use bochner_table::predict::{NewCells, open};
//! use bochner_table::progress::Unwatched;
//! use bochner_table::{fit::Request, read::Options, update::update};
//! # let folder = std::env::temp_dir().join(format!("bochner-update-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let (file, new) = (folder.join("old.csv"), folder.join("new.csv"));
//! # let rows = |from: usize, to: usize| (from..to).map(|i| format!("{},{}\n", i % 7, (i % 7) * (i % 7))).collect::<String>();
//! # std::fs::write(&file, format!("x,y\n{}", rows(0, 60)))?;
//! # std::fs::write(&new, format!("x,y\n{}", rows(60, 90)))?;
//! let request = Request { budget: 1.0, keep_sums: true, ..Request::default() };
//! let model = bochner_table::fit(&file, "y", &request)?.model;
//! let data = open(&model, &new, None, Options::default(), true, NewCells::default())?;
//! assert_eq!(update(&model, &data, false, &Unwatched)?.rows, 90);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), bochner_table::failure::Failure>(())
//! ```

use crate::failure::{Failure, Outcome};
use crate::fit::{TRAINING, Training};
use crate::interrupt;
use crate::job::Job;
use crate::model::TableModel;
use crate::pipeline::Prepared;
use crate::progress::Watch;
use crate::read::{Data, Element};
use bochner::catalogue::Task;
use bochner::model::Sums;
use bochner::persist::Stored;
use bochner::random::Seed;
use bochner::rows::RowSource;
use bochner::scalar::Real;
use bochner::{Error, Model};

/// A model after its rows have changed.
#[derive(Debug)]
pub struct Updated {
    /// The model of all rows that it knows now, with their sums.
    pub model: TableModel,
    /// Rows before.
    pub before: u64,
    /// Rows now.
    pub rows: u64,
    /// How many times larger sums were before rows were taken back: by so much rounding counts more.
    pub cancellation: f64,
}

/// Adds the rows of a file that [`open`](crate::predict::open) has opened with its targets, or takes them back (`forget`).
///
/// Columns are prepared as in the fit; features and penalty stay, and so does what was learned from held-out rows: errors behind
/// intervals, and calibrations.
///
/// # Errors
/// A model without its sums, rows that cannot be used, and rows to be taken back that were not added, as far as sums tell.
pub fn update(model: &TableModel, data: &Data, forget: bool, watch: &dyn Watch) -> Outcome<Updated> {
    let Some(sums) = model.model.sums() else {
        let message =
            "the model has not kept the sums that rows are added to; bochner fit --keep-sums makes one that has";
        return Err(Failure::Failed(message.into()));
    };
    match model.model.precision() == f32::NAME {
        true => changed::<f32>(model, sums, data, forget, watch),
        false => changed::<f64>(model, sums, data, forget, watch),
    }
}

fn changed<R: Element>(
    model: &TableModel,
    stored: &Stored,
    data: &Data,
    forget: bool,
    watch: &dyn Watch,
) -> Outcome<Updated> {
    let old: Option<Training> = model.model.attachment(TRAINING)?;
    let known = (model.pipeline.as_ref(), model.model.description(), old.as_ref().and_then(|old| old.penalty));
    let (Some(pipeline), Some(description), Some(penalty)) = known else {
        let message = "the model was not fitted by bochner fit; in Python, partial_fit and forget change it";
        return Err(Failure::Failed(message.into()));
    };
    let mut training = old.unwrap_or_default();
    let job = Job {
        kind: model.model.kind(),
        description,
        penalty,
        classes: (model.task() == Task::Classification).then(|| pipeline.class_names()),
        targets: pipeline.schema.targets.len(),
        memory: None,
        solver: None,
        centroids: 1,
        journal: None,
        seed: Seed::new(training.seed),
    };
    let progress = watch.reading(data.input(), if forget { "forgetting" } else { "adding" })?;
    let total = data.len_hint().unwrap_or(0);
    let mut source = Prepared { data, pipeline, left_out: &[], skip: 0, total, progress: &*progress };
    let mut sums: Sums<R> = job.sums(RowSource::<R>::input_dim(&source), Some(stored))?;
    let before = sums.count();
    if forget {
        let mut gone = sums.fresh()?;
        gone.read(&mut source, &mut job.context()?, &mut |_| Ok(()))?;
        sums.forget(gone)?;
    } else {
        sums.read(&mut source, &mut job.context()?, &mut |_| Ok(()))?;
    }
    drop(progress);
    let (rows, cancellation) = (sums.count(), sums.cancellation());
    let solve = || {
        job.finish_keeping(sums, true).map_err(|error| match error {
            // Sums of rows that were there leave sums of squares.
            Error::NotPositiveDefinite { .. } if forget => Failure::Failed(
                "what is left are no sums of rows: only rows that were added before, with the same targets, can be \
                 taken back"
                    .into(),
            ),
            error => error.into(),
        })
    };
    let mut solved: Model = interrupt::stoppable(solve)?;
    if let Some(calibration) = model.model.calibration()? {
        solved.attach(bochner::model::Calibration::NAME, &calibration)?;
    }
    let mut model = TableModel::new(solved, pipeline.clone())?;
    training.rows = usize::try_from(rows).ok();
    model.attach_training(&training)?;
    Ok(Updated { model, before, rows, cancellation })
}
