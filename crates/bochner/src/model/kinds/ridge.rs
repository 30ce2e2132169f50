use super::{Load, ModelEntry, Task, answers, load, solver_in_words};
use crate::error::{Result, check_dim};
use crate::feature::{Description, DynMap, FeatureMap};
use crate::model::{Fitted, Ridge, RidgeClassifierModel, RidgeModel};
use crate::parameter::{Domain, Entry, description, words};
use crate::persist::{Drawable, Header, Stored, Tensor};
use crate::scalar::Real;
use crate::solve::{ConjugateGradients, Solver, StochasticGradient};
use ndarray::{Array2, ArrayView2};

words! {
    /// How the equations of a ridge regression are solved.
    pub enum RidgeSolverName {
        /// Picked from the numbers of rows and features and the memory.
        Auto = "auto",
        /// By factorisation of the Gram matrix.
        Cholesky = "cholesky",
        /// By factorisation of the inner products of all rows, where they are fewer than features.
        Dual = "dual",
        /// By conjugate gradients on features that are made again in every pass.
        ConjugateGradients = "cg",
        /// By averaged stochastic gradients on features that are made again in every pass.
        StochasticGradient = "sgd",
    }
}

description! {
    /// Parameters of ridge regression, and of classification by it.
    pub struct RidgeSpec {
        /// Penalty on the squared coefficients.
        alpha: f64 = 1.0, Domain::NON_NEGATIVE, Fit;
        /// How the equations are solved.
        solver: RidgeSolverName = RidgeSolverName::Auto, Domain::Word(RidgeSolverName::CHOICES), Fit;
        /// Whether to add a constant that is not penalised.
        fit_intercept: bool = true, Domain::Flag, Fit;
        /// Relative residual at which conjugate gradients stop; none means 1e-10 in double and 1e-6 in single precision.
        tol: Option<f64> = None, Domain::Optional(&Domain::POSITIVE), Fit;
        /// Most steps of conjugate gradients (none means 500), or passes of stochastic gradients (10).
        max_iter: Option<usize> = None, Domain::Optional(&Domain::COUNT), Size;
        /// Bytes a fit may take besides the rows; none makes Gram matrices of up to 20,000 features.
        memory_budget: Option<u64> = None, Domain::Optional(&Domain::COUNT), Size;
    }
    besides {}
}

impl RidgeSpec {
    /// The solver, with its own parameters.
    pub fn solver(&self) -> Solver {
        match self.solver {
            RidgeSolverName::Auto => Solver::Auto,
            RidgeSolverName::Cholesky => Solver::Cholesky,
            RidgeSolverName::Dual => Solver::Dual,
            RidgeSolverName::ConjugateGradients => {
                let defaults = ConjugateGradients::default();
                let max_iterations = self.max_iter.unwrap_or(defaults.max_iterations);
                Solver::ConjugateGradients(ConjugateGradients { tolerance: self.tol, max_iterations, ..defaults })
            }
            RidgeSolverName::StochasticGradient => {
                let defaults = StochasticGradient::default();
                let passes = self.max_iter.unwrap_or(defaults.passes);
                Solver::StochasticGradient(StochasticGradient { passes, ..defaults })
            }
        }
    }

    /// A regression on these features.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on<R: Real, M: FeatureMap<Real = R, Output = R>>(&self, map: M) -> Result<Ridge<M>> {
        self.check_parameters()?;
        Ok(Ridge::new(map, self.alpha)?.with_intercept(self.fit_intercept).with_solver(self.solver()))
    }
}

const RIDGE: &str = "ridge";
const CLASSIFIER: &str = "ridge_classifier";

pub(super) const REGRESSION: ModelEntry = ModelEntry::new(
    RIDGE,
    "ridge regression",
    "A linear function of the features: kernel ridge regression at the cost of a linear model.",
    "ridge",
    RidgeSpec::PARAMETERS,
    load::<RidgeModel<DynMap<f32>>, RidgeModel<DynMap<f64>>>,
);

pub(super) const CLASSIFICATION: ModelEntry = ModelEntry {
    entry: Entry {
        name: CLASSIFIER,
        title: "classification by ridge regression",
        about: "Ridge regression of each class against the rest.",
        ..REGRESSION.entry
    },
    task: Task::Classification,
    load: load::<RidgeClassifierModel<DynMap<f32>>, RidgeClassifierModel<DynMap<f64>>>,
    ..REGRESSION
};

pub(super) fn write<R: Real, M: FeatureMap<Real = R, Output = R>>(
    mut header: Header,
    model: &RidgeModel<M>,
) -> Result<Stored> {
    header.insert("report", model.report())?;
    let (rows, cols) = model.coefficients().dim();
    Ok(Stored::new(header)
        .with("coefficients", Tensor::of(vec![rows, cols], model.coefficients().iter().copied())?)
        .with("intercept", Tensor::of(vec![cols], model.intercept().iter().copied())?))
}

pub(super) fn read<R: Real, M: FeatureMap<Real = R, Output = R>>(stored: &Stored, map: M) -> Result<RidgeModel<M>> {
    check_dim("input dimension of the map", stored.header.input_dim, map.input_dim())?;
    let report = stored.header.part("report")?;
    RidgeModel::from_parts(map, stored.matrix("coefficients")?, stored.vector("intercept")?, report)
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for RidgeModel<M> {
    on_map!(RIDGE);
    regresses!(answers);

    fn sentences(&self) -> Vec<String> {
        solver_in_words(self.report())
    }

    fn to_stored(&self) -> Result<Stored> {
        write(Header::of_map(RIDGE, self.map())?, self)
    }
}

impl<R: Real, M: Drawable + FeatureMap<Real = R, Output = R> + 'static> Load for RidgeModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        read(stored, stored.draw()?)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for RidgeClassifierModel<M> {
    fn kind(&self) -> &'static str {
        CLASSIFIER
    }

    fn description(&self) -> Option<Description> {
        self.regression().description()
    }

    fn precision(&self) -> &'static str {
        R::NAME
    }

    fn dims(&self) -> (usize, usize) {
        self.regression().dims()
    }

    fn class_count(&self) -> Option<usize> {
        Some(self.classes())
    }

    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.regression().values(rows)
    }

    fn sentences(&self) -> Vec<String> {
        self.regression().sentences()
    }

    fn to_stored(&self) -> Result<Stored> {
        write(Header::of_map(CLASSIFIER, self.regression().map())?, self.regression())
    }
}

impl<R: Real, M: Drawable + FeatureMap<Real = R, Output = R> + 'static> Load for RidgeClassifierModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        Ok(RidgeClassifierModel::from_regression(RidgeModel::load(stored)?))
    }
}
