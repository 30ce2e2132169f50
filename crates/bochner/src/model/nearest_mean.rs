use super::kinds::{Load, ModelEntry, Penalty, classifies, load, on_map, predicts_classes};
use super::linear::Linear;
use super::request::{Asked, Describing, FitAny};
use super::ridge::largest;
use super::{Fit, Fitted, Predict, known};
use crate::context::Context;
use crate::error::{Result, check_dim, check_non_negative};
use crate::feature::{DynMap, FeatureMap};
use crate::parameter::{Domain, description};
use crate::persist::{Drawable, Header, Stored, Tensor};
use crate::rows::{RowSource, class_of};
use crate::scalar::Real;
use ndarray::{Array1, Array2, ArrayView2};

description! {
    /// Parameters of classification by the nearest mean.
    pub struct NearestMeanSpec {
        /// Rows of zeros that are added to every class: means shrink towards 0.
        alpha: f64 = 0.0, Domain::NON_NEGATIVE, Fit;
    }
    besides {}
}

const KIND: &str = "nearest_mean";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    KIND,
    "classification by the nearest mean",
    "The class whose mean is nearest in the space of features: one pass, and no equations.",
    "nearest-mean",
    NearestMeanSpec::PARAMETERS,
    load::<NearestMeanModel<DynMap<f32>>, NearestMeanModel<DynMap<f64>>>,
    Describing::Each(describe, describe),
)
.classification()
.penalized(Penalty::RIDGE);

fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    let alpha = asked.penalty().unwrap_or(asked.spec::<NearestMeanSpec>()?.alpha);
    Ok(Box::new(NearestMean::new(asked.map()?, alpha)?.with_classes(asked.classes())?))
}

/// The class whose mean is nearest in the space of features.
#[derive(Debug, Clone)]
pub struct NearestMean<M> {
    map: M,
    alpha: f64,
    classes: Option<usize>,
}

impl<M: FeatureMap> NearestMean<M> {
    /// With `alpha` rows of zeros added to every class.
    ///
    /// # Errors
    /// A number that is negative or not finite.
    pub fn new(map: M, alpha: f64) -> Result<Self> {
        check_non_negative("alpha", alpha)?;
        Ok(NearestMean { map, alpha, classes: None })
    }

    /// For a known number of classes; otherwise a pass over the labels finds the largest.
    ///
    /// # Errors
    /// No classes.
    pub fn with_classes(mut self, classes: impl Into<Option<usize>>) -> Result<Self> {
        self.classes = known(classes)?;
        Ok(self)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Fit for NearestMean<M> {
    type Real = R;
    type Model = NearestMeanModel<M>;

    fn fit_stream(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<NearestMeanModel<M>> {
        let classes = context.classes(self.classes, source)?;
        let mut means = Array2::zeros((self.map.output_dim(), classes));
        let (mut weights, mut first) = (vec![self.alpha; classes], 0);
        context.read(source, &mut |block| {
            let features = self.map.transform(block.rows).map_err(|error| error.rows_from(first))?;
            for (i, row) in features.rows().into_iter().enumerate() {
                let class = class_of(block.targets[[i, 0]], classes, first + i)?;
                let weight = block.weights.map_or(1.0, |weights| Real::to_f64(weights[i]));
                weights[class] += weight;
                means.column_mut(class).iter_mut().zip(row).for_each(|(sum, v)| *sum += weight * Real::to_f64(*v));
            }
            first += block.rows.nrows();
            Ok(())
        })?;
        means
            .columns_mut()
            .into_iter()
            .zip(weights)
            .for_each(|(mut mean, weight)| mean /= weight.max(f64::MIN_POSITIVE));
        NearestMeanModel::from_parts(self.map.clone(), means.mapv(R::from_f64))
    }
}

/// A fitted [`NearestMean`].
#[derive(Debug, Clone)]
pub struct NearestMeanModel<M: FeatureMap> {
    map: M,
    linear: Linear<M::Real>,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> NearestMeanModel<M> {
    /// `-|φ - μ|²/2` is `⟨φ, μ⟩ - |μ|²/2` and something that all classes share.
    fn from_parts(map: M, means: Array2<R>) -> Result<Self> {
        check_dim("number of rows of means", map.output_dim(), means.nrows())?;
        crate::rows::check_finite("means", means.view(), 0)?;
        let half: Array1<R> = means.columns().into_iter().map(|mean| R::from_f64(-0.5) * mean.dot(&mean)).collect();
        Ok(NearestMeanModel { map, linear: Linear::new(means, half)? })
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.linear.intercept.len()
    }

    fn scores(&self, rows: ArrayView2<'_, R>) -> Result<Array2<R>> {
        let mut scores = Array2::from_elem((rows.nrows(), self.classes()), R::ZERO);
        self.linear.apply(&self.map, rows, scores.view_mut())?;
        Ok(scores)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Predict for NearestMeanModel<M> {
    predicts_classes!(self: R, inputs self.map.input_dim(), rows => Ok(largest(&self.scores(rows)?)));
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for NearestMeanModel<M> {
    on_map!(KIND);
    classifies!();

    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Ok(self.scores(rows.mapv(R::from_f64).view())?.mapv(Real::to_f64))
    }

    fn sentences(&self) -> Vec<String> {
        vec![format!("a row is compared with the means of {} classes", self.classes())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let means = &self.linear.coefficients;
        let header = Header::of_map(KIND, &self.map)?;
        Ok(Stored::new(header).with("means", Tensor::of(vec![means.nrows(), means.ncols()], means.iter().copied())?))
    }
}

impl<R: Real, M: Drawable + FeatureMap<Real = R, Output = R> + 'static> Load for NearestMeanModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        NearestMeanModel::from_parts(stored.draw()?, stored.matrix("means")?)
    }
}
