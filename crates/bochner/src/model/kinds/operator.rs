use super::ridge::{read, write};
use super::{Load, ModelEntry, answers, load, solver_in_words};
use crate::error::Result;
use crate::feature::{Description, Directions};
use crate::kernel::OperatorKernel;
use crate::model::{Fitted, OperatorRidgeClassifierModel, OperatorRidgeModel, OperatorSolver};
use crate::parameter::{Domain, Value, Word, description, words};
use crate::persist::{Header, Stored};
use crate::rows::Coding;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};

words! {
    /// How the equations of a regression with an operator-valued kernel are solved.
    pub enum OperatorSolverName {
        /// In closed form where there is one, else by what fits into memory.
        Auto = "auto",
        /// In closed form, for decomposable kernels.
        Stein = "stein",
        /// By factorisation.
        Cholesky = "cholesky",
        /// By conjugate gradients.
        ConjugateGradients = "cg",
        /// The same: on a quadratic function, quasi-Newton steps with exact line searches are those of conjugate gradients.
        Lbfgs = "lbfgs",
        /// By stochastic gradients.
        StochasticGradient = "sgd",
    }
}

impl From<OperatorSolverName> for OperatorSolver {
    fn from(name: OperatorSolverName) -> Self {
        match name {
            OperatorSolverName::Auto => OperatorSolver::Auto,
            OperatorSolverName::Stein => OperatorSolver::Stein,
            OperatorSolverName::Cholesky => OperatorSolver::Cholesky,
            OperatorSolverName::ConjugateGradients | OperatorSolverName::Lbfgs => {
                OperatorSolver::ConjugateGradients(Default::default())
            }
            OperatorSolverName::StochasticGradient => OperatorSolver::StochasticGradient(Default::default()),
        }
    }
}

/// The operator-valued kernels.
const KERNELS: &[Word] = &{
    let mut all = [Word::new("", ""); OperatorKernel::KINDS.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = Word::new(OperatorKernel::KINDS[i].name, OperatorKernel::KINDS[i].about);
        i += 1;
    }
    all
};
/// What is known of a matrix of outputs.
const OUTPUTS: Domain =
    Domain::Optional(&Domain::Either(&[Domain::Matrix, Domain::Only("covariance"), Domain::Only("learned")]));

description! {
    /// Parameters of ridge regression of outputs that are one function.
    #[allow(non_snake_case)] // as the Python package writes it
    pub struct OperatorRidgeSpec {
        /// Kernel of the functions.
        kernel: String = "decomposable".into(), Domain::Word(KERNELS), Kernel;
        /// Distance over which the Gaussian kernel underneath falls off, or the median distance between rows.
        length_scale: Value = Value::Real(1.0), Domain::ONE_LENGTH_SCALE, Kernel;
        /// How the outputs of a decomposable kernel are related: a positive semi-definite matrix, the covariance of the
        /// targets, a matrix learned together with the regression, or not at all.
        A: Value = Value::None, OUTPUTS, Kernel;
        /// Cosines and sines in all.
        n_components: usize = 1024, Domain::COUNT, Size;
        /// Penalty on the squared coefficients.
        alpha: f64 = 1.0, Domain::NON_NEGATIVE, Fit;
        /// How the equations are solved.
        solver: OperatorSolverName = OperatorSolverName::Auto, Domain::Word(OperatorSolverName::CHOICES), Fit;
        /// How frequencies are drawn.
        projection: Directions = Directions::Auto, Domain::Word(Directions::CHOICES), Draw;
        /// Whether to add a constant vector that is not penalised.
        fit_intercept: bool = true, Domain::Flag, Fit;
    }
    besides {}
}

description! {
    /// Parameters of classification by regression of codes.
    #[allow(non_snake_case)] // as the Python package writes it
    pub struct OperatorRidgeClassifierSpec {
        /// Distance over which the Gaussian kernel underneath falls off, or the median distance between rows.
        length_scale: Value = Value::Real(1.0), Domain::ONE_LENGTH_SCALE, Kernel;
        /// How the columns of the code are related.
        A: Value = Value::None, OUTPUTS, Kernel;
        /// What stands for a class.
        coding: Coding = Coding::Simplex, Domain::Word(Coding::CHOICES.split_at(1).1), Fit;
        /// Cosines and sines in all.
        n_components: usize = 1024, Domain::COUNT, Size;
        /// Penalty on the squared coefficients.
        alpha: f64 = 1.0, Domain::NON_NEGATIVE, Fit;
        /// How the equations are solved.
        solver: OperatorSolverName = OperatorSolverName::Auto, Domain::Word(OperatorSolverName::CHOICES), Fit;
        /// How frequencies are drawn.
        projection: Directions = Directions::Auto, Domain::Word(Directions::CHOICES), Draw;
        /// Whether to add a constant vector that is not penalised.
        fit_intercept: bool = true, Domain::Flag, Fit;
    }
    besides {}
}

const RIDGE: &str = "operator_ridge";
const CLASSIFIER: &str = "operator_ridge_classifier";

pub(super) const REGRESSION: ModelEntry = ModelEntry::new(
    RIDGE,
    "ridge regression with an operator-valued kernel",
    "Ridge regression of several targets that are one function, such as a vector field.",
    "operator",
    OperatorRidgeSpec::PARAMETERS,
    load::<OperatorRidgeModel<f32>, OperatorRidgeModel<f64>>,
);

pub(super) const CLASSIFICATION: ModelEntry = ModelEntry::new(
    CLASSIFIER,
    "classification by regression of codes",
    "Ridge regression of codes of classes with a decomposable kernel; the class of the nearest code wins.",
    "operator",
    OperatorRidgeClassifierSpec::PARAMETERS,
    load::<OperatorRidgeClassifierModel<f32>, OperatorRidgeClassifierModel<f64>>,
)
.classification();

fn stored<R: Real>(kind: &str, model: &OperatorRidgeModel<R>) -> Result<Stored> {
    let features = model.features();
    write(Header::described(kind, features.map(), features.spec().clone().into())?, model.scalar())
}

impl<R: Real> Fitted for OperatorRidgeModel<R> {
    fn kind(&self) -> &'static str {
        RIDGE
    }

    fn description(&self) -> Option<Description> {
        Some(self.features().spec().clone().into())
    }

    fn precision(&self) -> &'static str {
        R::NAME
    }

    regresses!(answers);

    fn sentences(&self) -> Vec<String> {
        solver_in_words(self.report())
    }

    fn to_stored(&self) -> Result<Stored> {
        stored(RIDGE, self)
    }
}

impl<R: Real> Load for OperatorRidgeModel<R> {
    fn load(stored: &Stored) -> Result<Self> {
        let features = stored.draw_operator::<R>()?;
        let ridge = read(stored, features.map().clone())?;
        OperatorRidgeModel::from_parts(features, ridge)
    }
}

impl<R: Real> Fitted for OperatorRidgeClassifierModel<R> {
    fn kind(&self) -> &'static str {
        CLASSIFIER
    }

    fn description(&self) -> Option<Description> {
        self.regression().description()
    }

    fn precision(&self) -> &'static str {
        R::NAME
    }

    classifies!();

    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Ok(self.scores(rows.mapv(R::from_f64).view())?.mapv(Real::to_f64))
    }

    fn sentences(&self) -> Vec<String> {
        self.regression().sentences()
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut stored = stored(CLASSIFIER, self.regression())?;
        stored.header.insert("coding", &self.coding())?;
        Ok(stored)
    }
}

impl<R: Real> Load for OperatorRidgeClassifierModel<R> {
    fn load(stored: &Stored) -> Result<Self> {
        let coding = stored.header.part("coding")?;
        OperatorRidgeClassifierModel::from_regression(OperatorRidgeModel::load(stored)?, coding)
    }
}
