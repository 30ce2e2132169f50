//! The best linear model of the same columns, beside which a fit is judged.

use super::{Constraints, Fold, losses, trial_job};
use crate::failure::Outcome;
use crate::model::TableModel;
use crate::pipeline::{Part, Pipeline};
use crate::score::smallest;
use bochner::feature::{Description, OrthoProjectionSpec};
use bochner::rows::InMemory;
use bochner::scalar::Real;
use ndarray::{Array2, ArrayView2};

/// Penalties that are tried, in units of a row with numbers of variance one.
const PENALTIES: [f64; 5] = [1e3, 1e2, 1e1, 1e0, 1e-2];
/// Columns up to which it costs nothing that matters.
const MOST_COLUMNS: usize = 1024;

/// What a ridge regression on the prepared columns predicts for `scored` rows; `None` where there are too many columns.
pub(crate) fn linear<R: Real>(
    constraints: &Constraints,
    pipeline: &Pipeline,
    all: &Part<R>,
    fold: &Fold<R>,
    scored: ArrayView2<'_, f64>,
) -> Outcome<Option<Array2<f64>>> {
    let columns = pipeline.output_dim();
    if columns > MOST_COLUMNS || constraints.operator.is_some() {
        return Ok(None);
    }
    // All orthogonal directions turn a row, which ridge regression does not see.
    let turned = OrthoProjectionSpec { n_components: columns, ..OrthoProjectionSpec::default() };
    let description = Description::Map(turned.into());
    let found = losses(constraints, pipeline, &description, &PENALTIES, fold)?;
    let job = trial_job(constraints, pipeline, &description, PENALTIES[smallest(&found)]);
    let model = job.fit::<R>(&mut InMemory::new(all.rows.view(), all.targets.view())?)?;
    Ok(Some(TableModel::new(model, pipeline.clone())?.predict_prepared(scored)?))
}
