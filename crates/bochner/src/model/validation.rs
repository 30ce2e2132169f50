use super::linear::Linear;
use super::ridge::{Ridge, RidgeClassifier, RidgeClassifierModel, RidgeModel, first_largest};
use crate::context::Context;
use crate::error::{Error, Result, check_dim};
use crate::feature::FeatureMap;
use crate::rows::{Coded, Coding, Counted, RowBlock, RowSource, check_finite, class_of};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, s};

/// How well penalties did on held-out rows, and the model of the best one.
#[derive(Debug, Clone)]
pub struct Validation<M> {
    /// The penalties, in the order given.
    pub penalties: Vec<f64>,
    /// Weighted mean of squared errors (over rows and targets), or of wrong classes.
    pub losses: Vec<f64>,
    /// Index of the smallest loss, the first of equals.
    pub best: usize,
    /// The model of that penalty.
    pub model: M,
}

impl<M> Validation<M> {
    fn of(penalties: &[f64], losses: Vec<f64>, mut models: Vec<M>) -> Self {
        let best = smallest(&losses);
        Validation { penalties: penalties.to_vec(), losses, best, model: models.swap_remove(best) }
    }
}

/// Rows predicted at once.
const PIECE: usize = 1024;

/// Sums `loss(predictions of one model, block row)` over held-out rows, for all models at once: features are computed once.
fn losses<R: Real, M: FeatureMap<Real = R, Output = R>>(
    models: &[RidgeModel<M>],
    held_out: &mut dyn RowSource<R>,
    loss: &dyn Fn(&[R], ArrayView2<'_, R>, usize) -> Result<f64>,
) -> Result<Vec<f64>> {
    let Some(first) = models.first() else {
        return Err(Error::parameter("penalties", "at least one", "none"));
    };
    let (dim, outputs) = first.coefficients().dim();
    check_dim("number of input columns", first.map().input_dim(), held_out.input_dim())?;
    let mut coefficients = Array2::from_elem((dim, outputs * models.len()), R::ZERO);
    let mut intercepts = ndarray::Array1::from_elem(outputs * models.len(), R::ZERO);
    for (k, model) in models.iter().enumerate() {
        let columns = k * outputs..(k + 1) * outputs;
        coefficients.slice_mut(s![.., columns.clone()]).assign(&model.coefficients());
        intercepts.slice_mut(s![columns]).assign(&model.intercept());
    }
    let linear = Linear::new(coefficients, intercepts)?;
    let mut values = Array2::from_elem((PIECE, outputs * models.len()), R::ZERO);
    let mut sums = vec![0.0; models.len()];
    let (mut total, mut count) = (0.0, 0);
    held_out.for_each_block(&mut |block: RowBlock<'_, R>| {
        check_finite("targets", block.targets, count)?;
        for start in (0..block.rows.nrows()).step_by(PIECE) {
            let range = start..(start + PIECE).min(block.rows.nrows());
            let mut values = values.slice_mut(s![..range.len(), ..]);
            linear
                .apply(first.map(), block.rows.slice(s![range.clone(), ..]), values.view_mut())
                .map_err(|error| error.rows_from(count + start))?;
            for (i, row) in range.zip(values.rows()) {
                let weight = block.weights.as_ref().map_or(1.0, |w| Real::to_f64(w[i]));
                if !(weight >= 0.0 && weight.is_finite()) {
                    return Err(Error::parameter("weights", "non-negative", format!("{weight} in row {}", count + i)));
                }
                let row = row.to_slice().expect("rows of a standard layout");
                for (sum, values) in sums.iter_mut().zip(row.chunks(outputs)) {
                    *sum += weight * loss(values, block.targets.slice(s![i..i + 1, ..]), count + i)?;
                }
                total += weight;
            }
        }
        count += block.rows.nrows();
        Ok(())
    })?;
    if total <= 0.0 {
        return Err(Error::parameter("held-out rows", "at least one with a positive weight", "none"));
    }
    Ok(sums.into_iter().map(|sum| sum / total).collect())
}

/// Mean squared errors of models on held-out rows.
pub(crate) fn squared_losses<R: Real, M: FeatureMap<Real = R, Output = R>>(
    models: &[RidgeModel<M>],
    held_out: &mut dyn RowSource<R>,
) -> Result<Vec<f64>> {
    losses(models, held_out, &|values, targets, _| {
        let squares = values.iter().zip(targets).map(|(v, t)| (Real::to_f64(*v) - Real::to_f64(*t)).powi(2));
        Ok(squares.sum::<f64>() / values.len() as f64)
    })
}

/// Shares of wrong classes of models on held-out rows.
pub(crate) fn class_losses<R: Real, M: FeatureMap<Real = R, Output = R>>(
    models: &[RidgeModel<M>],
    held_out: &mut dyn RowSource<R>,
    classes: usize,
) -> Result<Vec<f64>> {
    losses(models, held_out, &|values, targets, row| {
        let class = class_of(targets[[0, 0]], classes, row)?;
        Ok(if first_largest(ndarray::aview1(values)) == class { 0.0 } else { 1.0 })
    })
}

/// The place of the smallest, the first of equals.
pub(crate) fn smallest(losses: &[f64]) -> usize {
    (0..losses.len()).fold(0, |best, k| if losses[k] < losses[best] { k } else { best })
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Ridge<M> {
    /// Fits every penalty from one pass over `train` and takes the one with the smallest squared error on `held_out`.
    ///
    /// # Errors
    /// Those of fitting and predicting; no penalties; no held-out rows.
    pub fn validate(
        &self,
        penalties: &[f64],
        train: &mut dyn RowSource<R>,
        held_out: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<Validation<RidgeModel<M>>> {
        check_dim("number of held-out target columns", train.target_dim(), held_out.target_dim())?;
        let models = self.fit_path(penalties, train, context)?;
        let losses = context.fit(held_out, |held_out, _| squared_losses(&models, held_out))?;
        Ok(Validation::of(penalties, losses, models))
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> RidgeClassifier<M> {
    /// Fits every penalty from one pass over `train` and takes the one with the fewest wrong classes on `held_out`.
    ///
    /// # Errors
    /// Those of fitting and predicting; no penalties; no held-out rows.
    pub fn validate(
        &self,
        penalties: &[f64],
        train: &mut dyn RowSource<R>,
        held_out: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<Validation<RidgeClassifierModel<M>>> {
        check_dim("number of held-out target columns", 1, held_out.target_dim())?;
        let (train, held_out) = (&mut Counted::new(train), &mut Counted::new(held_out));
        let classes = match self.known_classes() {
            Some(classes) => classes,
            None => context.classes(None, train)?.max(context.classes(None, held_out)?),
        };
        let models =
            self.ridge().fit_path(penalties, &mut Coded::new(train, classes, Coding::OneAgainstRest)?, context)?;
        let losses = context.fit(held_out, |held_out, _| class_losses(&models, held_out, classes))?;
        let models = models.into_iter().map(RidgeClassifierModel::from_regression).collect();
        Ok(Validation::of(penalties, losses, models))
    }
}
