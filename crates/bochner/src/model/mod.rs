//! From rows to predictions: descriptions that fit, and the fitted models they make.
//!
//! | model | for |
//! |---|---|
//! | [`Ridge`], [`RidgeClassifier`] | predictions at the least cost, by any solver |
//! | [`GpRegressor`], [`GpClassifier`] | predictions that know how sure they are |
//! | [`SviClassifier`] | the same, where a matrix of all pairs of features does not fit |
//! | [`LocalGp`] | Gaussian kernels with short length scales |
//! | [`Svm`] | a linear support vector machine on features |
//! | [`OperatorRidge`] | outputs that are one function: vector fields, related tasks |
//! | [`OperatorGp`] | the same with deviations, of divergence and vorticity too |
//! | [`exact`], [`KernelSvm`], [`ExactOperatorRidge`] | what the features approximate, on few rows |
//!
//! A description ([`Ridge`], [`RidgeClassifier`], …) holds a feature map and parameters; [`Fit::fit`] makes a model of arrays,
//! [`Fit::fit_stream`] one of a [`RowSource`]; models can only predict. All of them can be saved ([`Fitted::save`]); [`Model`]
//! is any of them, in any precision, and what [`load`] reads.

mod calibration;
pub(crate) mod dirichlet;
pub(crate) mod evidence;
pub mod exact;
mod fitted;
mod functions;
mod gp_classification;
mod gp_regression;
mod interval;
mod kernel_svm;
pub mod kinds;
mod linear;
mod local_gp;
mod operator_exact;
mod operator_exact_gp;
mod operator_gp;
mod operator_ridge;
mod request;
mod ridge;
pub(crate) mod spectrum;
mod svi;
mod svm;
pub(crate) mod validation;

pub use calibration::Calibration;
pub use fitted::{Fitted, Model, load};
pub use functions::SampledFunction;
pub use gp_classification::{GpClassifier, GpClassifierModel};
pub use gp_regression::{GpRegressor, GpRegressorModel};
pub use interval::{IntervalKind, conformal_quantile, process_scores};
pub use kernel_svm::{KernelSvm, KernelSvmModel, PairReport};
pub use kinds::{Answers, ModelEntry, Penalty, Task};
pub use local_gp::{LocalGp, LocalGpModel};
pub use operator_exact::{ExactOperatorRidge, ExactOperatorRidgeModel};
pub use operator_exact_gp::{ExactOperatorGp, ExactOperatorGpModel};
pub use operator_gp::{OperatorGp, OperatorGpModel};
pub use operator_ridge::{
    FoundOutputs, OperatorBasis, OperatorOutputs, OperatorRidge, OperatorRidgeClassifier, OperatorRidgeClassifierModel,
    OperatorRidgeModel, OperatorSolver, target_covariance,
};
pub use request::{Basis, FitRequest, Needs, Sums};
pub use ridge::{Ridge, RidgeClassifier, RidgeClassifierModel, RidgeModel};
pub use svi::{SviClassifier, SviClassifierModel};
pub use svm::{Svm, SvmModel};
pub use validation::Validation;
pub(crate) use validation::{class_losses, squared_losses};

use crate::context::Context;
use crate::error::{Result, check_count, check_dim};
use crate::rows::{InMemory, RowSource};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

/// All kinds: the first of an option and a task is the one that `--model` means.
pub(crate) static KINDS: &[ModelEntry] = &[
    ridge::REGRESSION,
    ridge::CLASSIFICATION,
    svm::ENTRY,
    kernel_svm::ENTRY,
    gp_regression::REGRESSION,
    gp_classification::CLASSIFICATION,
    local_gp::ENTRY,
    svi::VARIATIONAL,
    operator_ridge::REGRESSION,
    operator_ridge::CLASSIFICATION,
    operator_gp::ENTRY,
    exact::RIDGE,
    exact::REGRESSION,
    exact::CLASSIFICATION,
    operator_exact::ENTRY,
];

/// A description of a model that can be fitted.
pub trait Fit {
    /// Precision of rows and targets.
    type Real: Real;
    /// What fitting makes.
    type Model: Predict<Real = Self::Real>;
    /// Reads the source, as often as the solver needs, and fits.
    ///
    /// # Errors
    /// Data that do not fit the description, NaN or infinities, plans that do not fit into memory, numerical failure, those of
    /// the journal, and [`Error::Interrupted`](crate::Error::Interrupted).
    fn fit_stream(&self, source: &mut dyn RowSource<Self::Real>, context: &mut Context<'_>) -> Result<Self::Model>;

    /// Fits to rows `x` and targets `y` in memory.
    ///
    /// # Errors
    /// As [`fit_stream`](Self::fit_stream).
    fn fit(&self, x: ArrayView2<'_, Self::Real>, y: ArrayView2<'_, Self::Real>) -> Result<Self::Model> {
        self.fit_stream(&mut InMemory::new(x, y)?, &mut Context::default())
    }
}

/// A number of classes that may be known.
fn known(classes: impl Into<Option<usize>>) -> Result<Option<usize>> {
    let classes = classes.into();
    classes.map_or(Ok(()), |classes| check_count("classes", classes)).map(|()| classes)
}

/// Writes numbers of classes, one per row, to a single column.
pub(crate) fn write_classes<R: Real>(
    rows: usize,
    mut out: ArrayViewMut2<'_, R>,
    classes: impl FnOnce() -> Result<Vec<usize>>,
) -> Result<()> {
    check_dim("number of rows of the output", rows, out.nrows())?;
    check_dim("number of columns of the output", 1, out.ncols())?;
    out.iter_mut().zip(classes()?).for_each(|(to, class)| *to = R::from_f64(class as f64));
    Ok(())
}

/// A fitted model.
pub trait Predict {
    /// Precision of rows and predictions.
    type Real: Real;

    /// Length of an input row.
    fn input_dim(&self) -> usize;

    /// Numbers predicted per row.
    fn output_dim(&self) -> usize;

    /// Writes the predictions of `rows` to `out`; a row's prediction does not depend on the rows around it.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    fn predict_into(&self, rows: ArrayView2<'_, Self::Real>, out: ArrayViewMut2<'_, Self::Real>) -> Result<()>;

    /// Predictions in a fresh array.
    ///
    /// # Errors
    /// As [`predict_into`](Self::predict_into).
    fn predict(&self, rows: ArrayView2<'_, Self::Real>) -> Result<Array2<Self::Real>> {
        let mut out = crate::memory::filled(
            "predictions",
            (rows.nrows(), self.output_dim()),
            Self::Real::from_f64(0.0),
            crate::memory::in_blocks,
        )?;
        self.predict_into(rows, out.view_mut())?;
        Ok(out)
    }
}
