use super::Predict;
use super::linear::Linear;
use crate::error::Result;
use crate::feature::FeatureMap;
use ndarray::{Array3, ArrayView2, ArrayViewMut2};

/// One function drawn from the posterior of a process: the same one wherever it is asked for, with exact gradients.
///
/// A process on features is a random linear function of them, so a sample is a vector of weights. It can be maximised like
/// any other function, which is what Thompson sampling does to find the next point to measure.
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::model::{Fit, GpRegressor, Predict};
/// use bochner::random::Seed;
/// use ndarray::{Array2, array};
/// let rows = Array2::from_shape_fn((60, 1), |(i, _)| i as f64 / 10.0);
/// let map = FourierSpec { n_components: 200, seed: 7, ..FourierSpec::default() }.build::<f64>(1)?;
/// let process = GpRegressor::new(map, 1e-4)?.fit(rows.view(), rows.mapv(f64::sin).view())?;
/// let sampled = process.sample_functions(2, Seed::new(1))?;
/// let (at, step) = (array![[3.0]], 1e-5);
/// let value = |x: f64| sampled[0].predict(array![[x]].view()).map(|v| v[[0, 0]]);
/// let slope = (value(3.0 + step)? - value(3.0 - step)?) / (2.0 * step);
/// assert!((sampled[0].gradient(at.view())?[[0, 0, 0]] - slope).abs() < 1e-6);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SampledFunction<M: FeatureMap> {
    map: M,
    linear: Linear<M::Output>,
}

impl<M: FeatureMap> SampledFunction<M> {
    pub(super) fn new(map: M, linear: Linear<M::Output>) -> Self {
        SampledFunction { map, linear }
    }

    /// Derivatives by inputs: axes are rows, targets, inputs.
    ///
    /// # Errors
    /// Shapes that do not fit, NaN or infinities in `rows`, and maps without derivatives.
    pub fn gradient(&self, rows: ArrayView2<'_, M::Real>) -> Result<Array3<f64>> {
        self.linear.gradient(&self.map, rows)
    }
}

impl<M: FeatureMap> Predict for SampledFunction<M> {
    type Real = M::Real;

    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.linear.intercept.len()
    }

    fn predict_into(&self, rows: ArrayView2<'_, M::Real>, out: ArrayViewMut2<'_, M::Real>) -> Result<()> {
        self.linear.apply(&self.map, rows, out)
    }
}
