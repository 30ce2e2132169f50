use super::{Candidate, Describe, DynMap, FeatureMap};
use crate::error::{Error, Result, check_count};
use crate::kernel::{AnyKernel, ArcCosine, Kernel};
use crate::linalg::{Tile, TileMut, Workspace};
use crate::parameter::{Domain, description};
use crate::projection::{DenseGaussian, Projection, panels};
use crate::random::Seed;
use crate::scalar::Real;
use crate::variance::independent_matrix;
use ndarray::{Array2, ArrayView2};
use std::sync::Arc;

/// Rectified projections `φ(x) = √(2/M) (wⱼᵀx)ⁿ₊` on normal directions: a layer of a neural network with random weights.
///
/// # Estimate
/// Unbiased for the arc-cosine kernel of order `n`, 0 (steps) or 1 ([`ArcCosine`]). The square of a product of two features
/// is a feature of order `2n`, so the variance is `(2k₂ₙ − kₙ²)/M`.
///
/// # References
/// Cho and Saul 2009; `docs/mathematics/rectified_features.md`.
#[derive(Debug, Clone)]
pub struct Rectified<P> {
    projection: P,
    order: u8,
}

impl<R: Real, P: Projection<Real = R, Output = R>> Rectified<P> {
    /// Features of order 0 or 1 from the directions of `projection`, each standard normal.
    ///
    /// # Errors
    /// Any other order.
    pub fn new(projection: P, order: u8) -> Result<Self> {
        check_order(order)?;
        Ok(Rectified { projection, order })
    }
}

fn check_order(order: u8) -> Result<()> {
    if order > 1 { Err(Error::parameter("order", "0 or 1", order)) } else { Ok(()) }
}

impl<R: Real, P: Projection<Real = R, Output = R>> FeatureMap for Rectified<P> {
    type Real = R;
    type Output = R;

    fn input_dim(&self) -> usize {
        self.projection.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.projection.output_dim()
    }

    fn map_tile(&self, rows: Tile<'_, R>, mut out: TileMut<'_, R>, work: &mut Workspace<R>) {
        let scale = R::from_f64((2.0 / self.output_dim() as f64).sqrt());
        for columns in panels(self.output_dim(), self.projection.panel()) {
            let mut panel = out.columns_mut(columns.clone());
            self.projection.project_tile(rows, columns, panel.reborrow(), work);
            for i in 0..rows.rows() {
                for value in panel.row_mut(i) {
                    let power = if self.order == 0 { scale } else { scale * *value };
                    *value = if *value > R::ZERO { power } else { R::ZERO };
                }
            }
        }
    }
}

description! {
    /// Description of rectified features.
    ///
    /// ```
    /// use bochner::feature::{Describe, RectifiedSpec};
    /// let spec = RectifiedSpec { n_components: 4096, ..RectifiedSpec::default() };
    /// let features = spec.build::<f64>(2)?.transform(ndarray::array![[3.0, 4.0]].view())?;
    /// assert!((features.row(0).dot(&features.row(0)) / 25.0 - 1.0).abs() < 0.1);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    pub struct RectifiedSpec {
        /// Number of output columns.
        n_components: usize = 1024, Domain::COUNT, Size;
        /// Power of the rectified projections: 0 is a step, 1 the rectifier of neural networks.
        order: u8 = 1, Domain::Whole(0, 1), Kernel;
    }
    map "rectified" for ["arc_cosine"], "rectified features":
        "Positive parts of projections on random directions: a random layer of a neural network.";
}

impl Describe for RectifiedSpec {
    fn draw<R: Real>(&self, input_dim: usize) -> Result<DynMap<R>> {
        check_count("n_components", self.n_components)?;
        check_count("number of columns of rows", input_dim)?;
        let projection = DenseGaussian::<R>::new(Seed::new(self.seed), input_dim, self.n_components)?;
        Ok(Arc::new(Rectified::new(projection, self.order)?))
    }

    fn kernel(&self) -> Result<Arc<dyn Kernel>> {
        check_order(self.order)?;
        Ok(Arc::new(ArcCosine::new(self.order)?))
    }

    fn variance(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_order(self.order)?;
        let (kernel, squares) = (ArcCosine::new(self.order)?, Squares(ArcCosine::new(2 * self.order)?));
        independent_matrix(&kernel, &squares, self.n_components, x, y)
    }

    fn candidates(kernel: &AnyKernel, _rows: ArrayView2<'_, f64>) -> Result<Vec<Candidate>> {
        let AnyKernel::ArcCosine(k) = kernel else { return Ok(Vec::new()) };
        let spec = RectifiedSpec { order: k.order(), ..RectifiedSpec::default() };
        Ok(if check_order(k.order()).is_ok() { vec![Candidate::new("rectified", spec)] } else { Vec::new() })
    }
}

/// Means of squares of products of features: twice the kernel of twice the order.
#[derive(Debug)]
struct Squares(ArcCosine);

impl Kernel for Squares {
    fn evaluate(&self, x: &[f64], y: &[f64]) -> f64 {
        2.0 * self.0.evaluate(x, y)
    }

    fn of_products(&self, dot: f64, x_norm_sq: f64, y_norm_sq: f64) -> Option<f64> {
        Some(2.0 * self.0.of_products(dot, x_norm_sq, y_norm_sq)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::normal_quantile;
    use ndarray::array;

    const ALPHA: f64 = 1e-6;

    #[test]
    fn mean_and_variance_are_the_closed_forms() {
        let rows = array![[1.0, 0.5, -0.3], [0.4, -0.8, 1.2], [2.0, 1.0, -0.6], [-1.0, -0.5, 0.3]];
        // Sixteen pairs, a mean and a variance each, of two orders; two-sided.
        let z = normal_quantile(1.0 - ALPHA / 128.0);
        // Angles near that of opposite rows are known to the root of a rounding error only.
        let rounding = 1e-7;
        for order in [0, 1] {
            let spec = |seed| RectifiedSpec { n_components: 64, order, seed };
            let (exact, variance) = {
                let kernel = spec(0).kernel().unwrap();
                let exact = crate::kernel::kernel_matrix(&*kernel, rows.view(), rows.view()).unwrap();
                (exact, spec(0).variance(rows.view(), rows.view()).unwrap())
            };
            let seeds = 2000u64;
            let estimate = |seed| {
                let features = spec(seed).build::<f64>(3).unwrap().transform(rows.view()).unwrap();
                features.dot(&features.t())
            };
            let errors: Vec<Array2<f64>> = (0..seeds).map(|seed| estimate(seed) - &exact).collect();
            for ((i, j), &variance) in variance.indexed_iter() {
                let mean = errors.iter().map(|e| e[[i, j]]).sum::<f64>() / seeds as f64;
                assert!(mean.abs() <= z * (variance / seeds as f64).sqrt() + rounding, "{order} {i} {j}: {mean}");
                let squares: Vec<f64> = errors.iter().map(|e| e[[i, j]].powi(2)).collect();
                let found = squares.iter().sum::<f64>() / seeds as f64;
                let fourth = squares.iter().map(|s| (s - variance).powi(2)).sum::<f64>() / seeds as f64;
                assert!((found - variance).abs() <= z * (fourth / seeds as f64).sqrt() + rounding, "{order} {i} {j}");
            }
        }
    }

    #[test]
    fn features_of_order_one_are_homogeneous_and_zero_rows_have_none() {
        let map = RectifiedSpec { n_components: 65, ..RectifiedSpec::default() }.build::<f64>(1).unwrap();
        let features = map.transform(array![[1.0], [4.0], [0.0]].view()).unwrap();
        assert_eq!(&features.row(0) * 4.0, features.row(1));
        assert!(features.row(2).iter().all(|f| *f == 0.0));
        assert!(RectifiedSpec { order: 2, ..RectifiedSpec::default() }.build::<f64>(1).is_err());
    }
}
