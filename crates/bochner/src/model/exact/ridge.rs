use super::operator::KernelOperator;
use super::{Gathered, expand, gather, kernel, kernel_triangle, matrix, tile_mut};
use crate::context::Context;
use crate::error::{Result, check_dim, check_non_negative};
use crate::interrupt;
use crate::kernel::Kernel;
use crate::linalg::Lower;
use crate::model::kinds::{Load, ModelEntry, compared, load, on_kernel, regresses};
use crate::model::request::{Asked, Describing, FitAny, Needs};
use crate::model::{Fit, Fitted, Predict};
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored};
use crate::rows::RowSource;
use crate::solve::{ConjugateGradients, SolveReport, conjugate_gradients, factorise};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use std::sync::Arc;

/// Rows up to which a kernel matrix is factorised when no budget is given: 1.6 GB, about a minute.
const LARGEST: usize = 20_000;

/// How an exact kernel ridge regression is solved.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum ExactSolver {
    /// By factorisation where the triangle fits into the memory budget (without one: up to 20,000 rows), else by
    /// conjugate gradients.
    #[default]
    Auto,
    /// Cholesky factorisation.
    Cholesky,
    /// Conjugate gradients: the kernel matrix is kept where it fits into the memory budget, in single precision if need
    /// be, and otherwise made again in every step.
    ConjugateGradients(ConjugateGradients),
}

/// Kernel ridge regression: `(K + αW⁻¹) β = Y`, `f(x) = Σ k(x, xᵢ) βᵢ`.
///
/// What [`Ridge`](crate::model::Ridge) without an intercept tends to as its features become many.
///
/// ```
/// use bochner::kernel::Gaussian;
/// use bochner::model::exact::KernelRidge;
/// use bochner::model::{Fit, Predict};
/// use ndarray::array;
/// use std::sync::Arc;
/// let (x, y) = (array![[0.0], [1.0]], array![[1.0], [3.0]]);
/// let model = KernelRidge::new(Arc::new(Gaussian::new(1.0)?), 1.0)?.fit(x.view(), y.view())?;
/// // (K + I) β = y with k(0, 1) = e^(-1/2).
/// let k = (-0.5f64).exp();
/// let expected = (2.0 - 3.0 * k) / (4.0 - k * k) + k * (6.0 - k) / (4.0 - k * k);
/// assert!((model.predict(array![[0.0]].view())?[[0, 0]] - expected).abs() < 1e-12);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelRidge {
    kernel: Arc<dyn Kernel>,
    penalty: f64,
    solver: ExactSolver,
}

impl KernelRidge {
    /// Regression with penalty `α`.
    ///
    /// # Errors
    /// A penalty that is negative or not finite.
    pub fn new(kernel: Arc<dyn Kernel>, penalty: f64) -> Result<Self> {
        check_non_negative("penalty", penalty)?;
        Ok(KernelRidge { kernel, penalty, solver: ExactSolver::Auto })
    }

    /// Solved by `solver`.
    pub fn with_solver(mut self, solver: ExactSolver) -> Self {
        self.solver = solver;
        self
    }
}

impl Fit for KernelRidge {
    type Real = f64;
    type Model = KernelRidgeModel;

    fn fit_stream(&self, source: &mut dyn RowSource<f64>, context: &mut Context<'_>) -> Result<KernelRidgeModel> {
        context.fit(source, |source, context| self.solve(gather(source, context, None)?, context))
    }
}

impl KernelRidge {
    fn solve(&self, data: Gathered, context: &Context<'_>) -> Result<KernelRidgeModel> {
        let budget = context.memory_budget();
        let (n, outputs) = data.targets.dim();
        // W^½KW^½ + α has the same solutions, scaled, and is symmetric.
        let roots: Vec<f64> = data.weights.iter().map(|w| w.sqrt()).collect();
        let mut rhs = data.targets;
        rhs.rows_mut().into_iter().zip(&roots).for_each(|(mut row, root)| row *= *root);
        let triangle = Lower::<f64>::bytes(n);
        let direct = budget.map_or(n <= LARGEST, |budget| triangle <= budget);
        let (mut coefficients, report) = match self.solver {
            ExactSolver::Auto | ExactSolver::Cholesky if direct || self.solver == ExactSolver::Cholesky => {
                let remedy = "conjugate gradients would do with less";
                context.check_budget("the kernel matrix", triangle, remedy)?;
                interrupt::expect(Some(2 * n));
                let mut matrix = kernel_triangle(&*self.kernel, data.rows.view())?;
                for i in 0..n {
                    matrix.row_mut(i).iter_mut().zip(&roots).for_each(|(value, root)| *value *= roots[i] * root);
                }
                matrix.add_to_diagonal(self.penalty);
                let (factor, jitter, condition) = factorise(matrix)?;
                factor.solve_in_place(tile_mut(&mut rhs))?;
                let reason = format!("the kernel matrix of {n} rows fits: {:.0} MB", triangle as f64 / 1e6);
                (rhs, SolveReport::gaussian_process(jitter, condition).because(reason))
            }
            solver => {
                let options = match solver {
                    ExactSolver::ConjugateGradients(options) => options,
                    _ => ConjugateGradients::default(),
                };
                interrupt::expect(Some(n.saturating_mul(options.passes())));
                // Vectors of the iteration and of its preconditioner, and one strip of the matrix.
                let vectors = 8 * n as u64 * (12 * outputs as u64 + 500) + (1 << 27);
                let room = budget.map_or(0, |budget| budget.saturating_sub(vectors));
                let (mut operator, how) = KernelOperator::new(&*self.kernel, data.rows.view(), roots.clone(), room)?;
                let tolerance = options.tolerance.or(Some(operator.tolerance()));
                let options = ConjugateGradients { tolerance, ..options };
                let (solution, report) =
                    conjugate_gradients(&mut operator, &rhs, self.penalty, &options, None, f64::EPSILON)?;
                (solution, report.because(format!("the kernel matrix of {n} rows is {how}")))
            }
        };
        coefficients.rows_mut().into_iter().zip(&roots).for_each(|(mut row, root)| row *= *root);
        KernelRidgeModel::from_parts(self.kernel.clone(), data.rows, coefficients, report)
    }
}

/// A fitted [`KernelRidge`].
#[derive(Debug, Clone)]
pub struct KernelRidgeModel {
    kernel: Arc<dyn Kernel>,
    rows: Array2<f64>,
    coefficients: Array2<f64>,
    report: SolveReport,
}

impl KernelRidgeModel {
    /// A model from its parts, as a file keeps them.
    ///
    /// # Errors
    /// Shapes that do not fit together, or numbers that are not finite.
    pub fn from_parts(
        kernel: Arc<dyn Kernel>,
        rows: Array2<f64>,
        coefficients: Array2<f64>,
        report: SolveReport,
    ) -> Result<Self> {
        check_dim("number of rows of coefficients", rows.nrows(), coefficients.nrows())?;
        crate::error::check_count("number of targets", coefficients.ncols())?;
        crate::rows::check_finite("rows", rows.view(), 0)?;
        crate::rows::check_finite("coefficients", coefficients.view(), 0)?;
        Ok(KernelRidgeModel { kernel, rows, coefficients, report })
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    /// Training rows.
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// `β`: one row per training row, one column per target.
    pub fn coefficients(&self) -> ArrayView2<'_, f64> {
        self.coefficients.view()
    }

    /// How the solution was found.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }
}

impl Predict for KernelRidgeModel {
    type Real = f64;

    fn input_dim(&self) -> usize {
        self.rows.ncols()
    }

    fn output_dim(&self) -> usize {
        self.coefficients.ncols()
    }

    fn predict_into(&self, rows: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<()> {
        let shift = vec![0.0; self.output_dim()];
        expand(&*self.kernel, rows, self.rows.view(), &self.coefficients, &shift, out)
    }
}

description! {
    /// Parameters of kernel ridge regression.
    pub struct KernelRidgeSpec {
        /// Penalty.
        alpha: f64 = 1.0, Domain::NON_NEGATIVE, Fit;
        /// Bytes that may be used. Where the kernel matrix does not fit, conjugate gradients take the place of its
        /// factorisation; without a budget they do beyond 20,000 rows.
        memory_budget: Option<u64> = None, Domain::Optional(&Domain::COUNT), Size;
    }
    besides {}
}

impl KernelRidgeSpec {
    /// A regression with this kernel.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on(&self, kernel: Arc<dyn Kernel>) -> Result<KernelRidge> {
        self.check_parameters()?;
        KernelRidge::new(kernel, self.alpha)
    }
}

const KIND: &str = "exact_kernel_ridge";

pub(in crate::model) const ENTRY: ModelEntry = ModelEntry::new(
    KIND,
    "exact kernel ridge regression",
    "What ridge regression on features approximates, for some thousands of rows.",
    "exact-ridge",
    KernelRidgeSpec::PARAMETERS,
    load::<KernelRidgeModel, KernelRidgeModel>,
    Describing::InDouble(describe),
)
.on(Needs::Kernel);

fn describe(asked: &Asked<'_, f64>) -> Result<Box<dyn FitAny<f64>>> {
    Ok(Box::new(asked.spec::<KernelRidgeSpec>()?.on(Arc::new(asked.kernel()?))?))
}

impl Fitted for KernelRidgeModel {
    on_kernel!(KIND);
    regresses!(Predict::predict);

    fn sentences(&self) -> Vec<String> {
        compared(self.rows().nrows(), self.report())
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut header = Header::of_kernel(KIND, self.input_dim(), self.kernel().description())?;
        header.insert("report", self.report())?;
        Ok(Stored::new(header).with("rows", matrix(self.rows())?).with("coefficients", matrix(self.coefficients())?))
    }
}

impl Load for KernelRidgeModel {
    fn load(stored: &Stored) -> Result<Self> {
        let (rows, coefficients) = (stored.matrix("rows")?, stored.matrix("coefficients")?);
        KernelRidgeModel::from_parts(kernel(stored)?, rows, coefficients, stored.header.part("report")?)
    }
}
