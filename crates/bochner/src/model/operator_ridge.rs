use super::kinds::{
    Load, ModelEntry, Penalty, answers, classifies, load, predicts_classes, regresses, solver_in_words,
};
use super::request::{Asked, Basis, Describing, FitAny, FitRequest, Needs, Sums, in_memory};
use super::ridge::{first_largest, read, write};
use super::{Fit, Fitted, Model, Predict, RidgeModel};
use crate::accumulate::{Gram, Moments};
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_non_negative};
use crate::feature::{Description, Directions, DynMap, FeatureMap, OperatorFeatures, OperatorSpec};
use crate::interrupt;
use crate::kernel::{AnyKernel, OperatorKernel, OutputMatrix};
use crate::linalg::Lower;
use crate::parallel::Parallel;
use crate::parameter::{Domain, Value, Word, description, words};
use crate::persist::{Header, Stored};
use crate::rows::{Coded, Coding, Counted, RowSource, simplex_codes};
use crate::scalar::Real;
use crate::solve::{
    self, ConjugateGradients, Journalled, LearnedOutputs, Normal, Preconditioner, Solution, SolveReport,
    StochasticGradient,
};
use ndarray::{Array2, Array3, ArrayView2, ArrayViewMut2, Axis, s};
use serde::{Deserialize, Serialize};

/// Which solver [`OperatorRidge`] uses.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OperatorSolver {
    /// The closed form for decomposable kernels; for the others a factorisation of up to 8,192 parameters and conjugate
    /// gradients beyond. Where the Gram matrix does not fit, conjugate gradients on features computed in every pass.
    #[default]
    Auto,
    /// Closed form through the eigendecomposition of the output matrix; decomposable kernels only.
    Stein,
    /// Factorisation of the normal matrix of all parameters.
    Cholesky,
    /// Conjugate gradients.
    ConjugateGradients(ConjugateGradients),
    /// Averaged stochastic gradients on batches of rows.
    StochasticGradient(StochasticGradient),
}

/// Parameters up to which the automatic choice factorises their normal matrix: 270 MB and some seconds.
const FACTORISED: usize = 8192;

/// Features up to which a Gram matrix is made when no budget is given: 1.6 GB.
const LARGEST: usize = 20_000;

/// Ridge regression of several outputs that are one function: `min Σ wᵢ |Φ(xᵢ)ᵀθ + b - yᵢ|² + λ|θ|²`.
///
/// `Φ` are features of a matrix-valued kernel ([`OperatorFeatures`]): outputs related by a matrix, gradients of a
/// potential, flows without sources. The function is linear in scalar features with tied coefficients, so one pass over
/// the rows collects what every solver but the stochastic one needs, as for a scalar [`Ridge`](super::Ridge). The
/// intercept is not penalised; a constant field has neither curl nor divergence.
///
/// # Cost
/// One pass of `O(nD²)` for `D` cosines and sines, whatever the kernel; then `O(D³)` for decomposable and curl-free
/// kernels, `O(D³d³)` by factorisation or `O(D²d)` a step by conjugate gradients for divergence-free ones. Memory `D²/2`
/// doubles (times `d²` for a factorisation), whatever the number of rows.
///
/// # References
/// Brault, Heinonen and d'Alché-Buc 2016, section 5.
///
/// ```
/// use bochner::feature::OperatorSpec;
/// use bochner::kernel::OperatorKernel;
/// use bochner::model::{Fit, OperatorRidge, Predict};
/// use ndarray::Array2;
/// // The gradient of sin(a) cos(b).
/// let rows = Array2::from_shape_fn((400, 2), |(i, j)| ((i * 37 % 400) as f64 * 0.01 + j as f64 * (i % 20) as f64 * 0.2).sin());
/// let field = |a: f64, b: f64| [a.cos() * b.cos(), -a.sin() * b.sin()];
/// let targets = Array2::from_shape_fn((400, 2), |(i, j)| field(rows[[i, 0]], rows[[i, 1]])[j]);
/// let features = OperatorSpec::new(OperatorKernel::curl_free(1.0)?).build::<f64>(2)?;
/// let model = OperatorRidge::new(features, 1e-6)?.fit(rows.view(), targets.view())?;
/// assert!((model.predict(rows.view())? - &targets).iter().all(|error| error.abs() < 1e-2));
/// let jacobian = model.jacobian(rows.view())?;
/// assert!((jacobian[[7, 0, 1]] - jacobian[[7, 1, 0]]).abs() < 1e-8);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct OperatorRidge<R: Real> {
    features: OperatorFeatures<R>,
    penalty: f64,
    intercept: bool,
    solver: OperatorSolver,
}

/// How a problem is solved.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Stein,
    Cholesky,
    Iterate(ConjugateGradients),
    /// Without a Gram matrix: features are computed in every pass.
    Stream(ConjugateGradients),
    StochasticGradient(StochasticGradient),
}

impl<R: Real> OperatorRidge<R> {
    /// Regression with penalty `λ` on these features, with an intercept.
    ///
    /// # Errors
    /// A penalty that is negative or not finite.
    pub fn new(features: OperatorFeatures<R>, penalty: f64) -> Result<Self> {
        check_non_negative("penalty", penalty)?;
        Ok(OperatorRidge { features, penalty, intercept: true, solver: OperatorSolver::Auto })
    }

    /// With or without the constant `b`.
    pub fn with_intercept(mut self, intercept: bool) -> Self {
        self.intercept = intercept;
        self
    }

    /// Solved by `solver`.
    ///
    /// # Errors
    /// The closed form for a kernel that is not decomposable.
    pub fn with_solver(mut self, solver: OperatorSolver) -> Result<Self> {
        if solver == OperatorSolver::Stein && self.features.spec().kernel.decomposed().is_none() {
            let reason = "the closed form is for decomposable kernels; use \"auto\", \"cholesky\" or \"cg\"".into();
            return Err(Error::Unsupported { what: "solver \"stein\"", reason });
        }
        self.solver = solver;
        Ok(self)
    }

    /// The features.
    pub fn features(&self) -> &OperatorFeatures<R> {
        &self.features
    }

    /// The penalty `λ`.
    pub fn penalty(&self) -> f64 {
        self.penalty
    }

    /// How to solve the problem, and why; a Gram matrix beyond the budget is not made.
    fn choose(&self, context: &Context<'_>) -> Result<(Choice, String)> {
        let budget = context.memory_budget();
        let (dim, outputs) = (self.features.map().output_dim(), self.features.output_dim());
        let parameters = self.features.dim();
        let gram = Gram::<R>::bytes(dim, outputs);
        let fits = |bytes: u64, count: usize| budget.map_or(count <= LARGEST, |budget| bytes <= budget);
        let (gram_fits, normal) = (fits(gram, dim), gram.saturating_add(Lower::<f64>::bytes(parameters)));
        let decomposable = self.features.spec().kernel.decomposed().is_some();
        let asked = |choice| Ok((choice, "asked for".to_owned()));
        let refused = |what: &'static str, needed: u64| Error::Budget {
            what,
            needed,
            budget: budget.unwrap_or(0),
            remedy: "conjugate gradients would fit".into(),
        };
        let within = |bytes: u64| budget.is_none_or(|budget| bytes <= budget);
        match self.solver {
            OperatorSolver::Stein if !within(gram) => Err(refused("the Gram matrix", gram)),
            OperatorSolver::Stein => asked(Choice::Stein),
            OperatorSolver::Cholesky if !within(normal) => Err(refused("the normal matrix", normal)),
            OperatorSolver::Cholesky => asked(Choice::Cholesky),
            OperatorSolver::ConjugateGradients(options) => {
                // The square of the matrix and its triangle are held at once.
                asked(if fits(3 * gram, dim) { Choice::Iterate(options) } else { Choice::Stream(options) })
            }
            OperatorSolver::StochasticGradient(options) => asked(Choice::StochasticGradient(options)),
            OperatorSolver::Auto if decomposable && gram_fits => {
                Ok((Choice::Stein, format!("the kernel is decomposable and the Gram matrix of {dim} features fits")))
            }
            OperatorSolver::Auto if !decomposable && parameters <= FACTORISED && within(normal) => {
                Ok((Choice::Cholesky, format!("the normal matrix of {parameters} parameters fits")))
            }
            OperatorSolver::Auto => {
                let iteration = ConjugateGradients::default();
                if fits(3 * gram, dim) {
                    let reason =
                        format!("{parameters} parameters are too many to factorise, and their {dim} features fit");
                    Ok((Choice::Iterate(iteration), reason))
                } else {
                    Ok((Choice::Stream(iteration), format!("the Gram matrix of {dim} features does not fit")))
                }
            }
        }
    }

    /// An accumulator for the scalar features: what a stream is pushed to before [`fit_moments`](Self::fit_moments).
    ///
    /// # Errors
    /// No features, or more than memory holds.
    pub fn accumulator(&self) -> Result<Gram<R>> {
        Gram::new(self.features.map().output_dim(), self.features.output_dim())
    }

    fn accumulate(&self, source: &mut dyn RowSource<R>) -> Result<Moments<f64>> {
        let mut gram = self.accumulator()?;
        source.for_each_block(&mut |block| gram.push_rows(self.features.map(), block))?;
        Ok(gram.finish())
    }

    fn check(&self, source: &dyn RowSource<R>) -> Result<()> {
        check_dim("number of input columns", self.features.input_dim(), source.input_dim())?;
        check_dim("number of target columns", self.features.output_dim(), source.target_dim())
    }

    fn solve_moments(
        &self,
        moments: Moments<f64>,
        choice: Choice,
        penalties: &[f64],
        context: &Context<'_>,
    ) -> Result<Vec<(Solution, SolveReport)>> {
        let (spread, intercept) = (self.features.spread(), self.intercept);
        check_dim("number of features", self.features.map().output_dim(), moments.dim())?;
        check_dim("number of target columns", self.features.output_dim(), moments.outputs())?;
        let room = context.memory_budget().unwrap_or(u64::MAX).saturating_sub(Lower::<f64>::bytes(moments.dim()));
        match (choice, self.features.spec().kernel.decomposed()) {
            // Nothing to iterate on where the output matrix is 0.
            (Choice::Stein, Some((_, outputs))) => solve::stein_path(moments, outputs, penalties, intercept, room),
            (_, Some((_, outputs))) if outputs.rank() == 0 => {
                solve::stein_path(moments, outputs, penalties, intercept, room)
            }
            (Choice::Iterate(iteration) | Choice::Stream(iteration), _) => {
                let epsilon = Real::to_f64(R::epsilon());
                let one = |&penalty: &f64| {
                    solve::iterate_moments(moments.clone(), spread, penalty, intercept, iteration, epsilon)
                };
                penalties.iter().map(one).collect()
            }
            _ => solve::tied_path(moments, spread, penalties, intercept, room),
        }
    }

    fn model(&self, solution: &Solution, report: SolveReport) -> Result<OperatorRidgeModel<R>> {
        let ridge = RidgeModel::from_solution(self.features.map().clone(), solution, report)?;
        Ok(OperatorRidgeModel { features: self.features.clone(), ridge })
    }

    /// Fits from sums collected elsewhere.
    ///
    /// # Errors
    /// Sums over other features, nothing to fit, or a matrix that stays indefinite.
    pub fn fit_moments(&self, moments: Moments<f64>, context: &Context<'_>) -> Result<OperatorRidgeModel<R>> {
        let (choice, reason) = self.choose(context)?;
        let mut solutions = self.solve_moments(moments, choice, &[self.penalty], context)?;
        let (solution, report) = solutions.swap_remove(0);
        self.model(&solution, report.because(reason))
    }

    /// Models for many penalties from a single pass over the rows; the penalty of this description is not used.
    ///
    /// # Errors
    /// As [`fit_stream`](Fit::fit_stream); stochastic gradients have no sums to share.
    pub fn fit_path(
        &self,
        penalties: &[f64],
        source: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<Vec<OperatorRidgeModel<R>>> {
        self.check(source)?;
        let (choice, reason) = self.choose(context)?;
        if let Choice::StochasticGradient(_) = choice {
            let reason = "stochastic gradients keep no sums; fit penalties one by one".into();
            return Err(Error::Unsupported { what: "many penalties at once", reason });
        }
        let solutions = context.fit(source, |source, context| {
            interrupt::expect(source.len_hint());
            self.solve_moments(self.accumulate(source)?, choice, penalties, context)
        })?;
        solutions.into_iter().map(|(solution, report)| self.model(&solution, report.because(reason.as_str()))).collect()
    }

    /// Finds the output matrix of a decomposable kernel by alternating minimisation, in one pass over the rows and at
    /// most `steps` steps ([`solve::learn_outputs`]); describe the features anew with it and fit.
    ///
    /// # Errors
    /// Data that do not fit, or a penalty of 0.
    pub fn learn_outputs(&self, steps: usize, source: &mut dyn RowSource<R>) -> Result<LearnedOutputs> {
        self.check(source)?;
        solve::learn_outputs(self.accumulate(source)?, self.penalty, self.intercept, steps)
    }

    fn solve(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<OperatorRidgeModel<R>> {
        self.check(source)?;
        let (choice, reason) = self.choose(context)?;
        let passes = match choice {
            Choice::Stream(options) => options.passes(),
            Choice::StochasticGradient(options) => options.all_passes(),
            _ => 1,
        };
        interrupt::expect(source.len_hint().map(|n| n.saturating_mul(passes)));
        let nothing = self.features.dim() == 0;
        let (map, spread) = (self.features.map(), self.features.spread());
        let (solution, report) = match choice {
            Choice::Stream(iteration) if !nothing => {
                let mut normal = Normal::new(map, source, self.intercept, 0, Preconditioner::None)?;
                let (rhs, _) = normal.system();
                let epsilon = Real::to_f64(R::epsilon());
                let mut operator = Journalled { operator: &mut normal, journal: context.journal() };
                let (coefficients, report) =
                    solve::iterate(&mut operator, &rhs, spread, self.penalty, iteration, epsilon)?;
                (normal.solution(coefficients)?, report)
            }
            Choice::StochasticGradient(options) if !nothing => {
                let room = context.memory_budget().unwrap_or(0);
                let mut normal = Normal::new(map, source, self.intercept, room, Preconditioner::None)?;
                let (coefficients, report) =
                    solve::stochastic_gradient(&mut normal, Some(spread), self.penalty, &options, context.journal())?;
                (normal.solution(coefficients)?, report)
            }
            choice => self.solve_moments(self.accumulate(source)?, choice, &[self.penalty], context)?.swap_remove(0),
        };
        self.model(&solution, report.because(reason))
    }
}

impl<R: Real> Fit for OperatorRidge<R> {
    type Real = R;
    type Model = OperatorRidgeModel<R>;

    fn fit_stream(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<OperatorRidgeModel<R>> {
        context.fit(source, |source, context| self.solve(source, context))
    }
}

/// A fitted [`OperatorRidge`].
#[derive(Debug, Clone)]
pub struct OperatorRidgeModel<R: Real> {
    features: OperatorFeatures<R>,
    ridge: RidgeModel<DynMap<R>>,
}

impl<R: Real> OperatorRidgeModel<R> {
    /// A model from its parts, as a file keeps them.
    ///
    /// # Errors
    /// Shapes that do not fit together, or numbers that are not finite.
    pub fn from_parts(features: OperatorFeatures<R>, ridge: RidgeModel<DynMap<R>>) -> Result<Self> {
        check_dim("number of targets", features.output_dim(), ridge.output_dim())?;
        check_dim("number of features", features.map().output_dim(), ridge.map().output_dim())?;
        Ok(OperatorRidgeModel { features, ridge })
    }

    /// The features.
    pub fn features(&self) -> &OperatorFeatures<R> {
        &self.features
    }

    /// The same function as a linear model of scalar features: coefficients `C`, intercept, report.
    pub fn scalar(&self) -> &RidgeModel<DynMap<R>> {
        &self.ridge
    }

    /// How the solution was found.
    pub fn report(&self) -> &SolveReport {
        self.ridge.report()
    }

    /// Derivatives of the fitted function, exactly: entry `(i, a, b)` is that of output `a` by input `b` at row `i`.
    ///
    /// The matrices of a curl-free model are symmetric, those of a divergence-free one have trace 0.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn jacobian(&self, rows: ArrayView2<'_, R>) -> Result<Array3<f64>> {
        let frequencies = self.features.frequencies()?;
        let (m, d) = frequencies.dim();
        let p = self.features.output_dim();
        let coefficients = self.ridge.coefficients().mapv(Real::to_f64);
        let mut out = Array3::zeros((rows.nrows(), p, d));
        let (map, tile) = (self.features.map(), self.features.map().tile_rows());
        let tiles = rows.axis_chunks_iter(Axis(0), tile).zip(out.axis_chunks_iter_mut(Axis(0), tile)).enumerate();
        tiles.in_parallel().try_for_each_init(
            || Array2::zeros((m, p)),
            |weights, (index, (rows, mut out))| {
                let features = map.transform(rows).map_err(|error| error.rows_from(index * tile))?;
                for (row, mut out) in features.rows().into_iter().zip(out.outer_iter_mut()) {
                    for j in 0..m {
                        // The derivative of cosines are sines with a minus, that of sines are cosines.
                        let (cos, sin) = (Real::to_f64(row[j]), Real::to_f64(row[m + j]));
                        for a in 0..p {
                            weights[[j, a]] = cos * coefficients[[m + j, a]] - sin * coefficients[[j, a]];
                        }
                    }
                    out.assign(&weights.t().dot(&frequencies));
                }
                Ok(())
            },
        )?;
        Ok(out)
    }
}

impl<R: Real> Predict for OperatorRidgeModel<R> {
    type Real = R;

    fn input_dim(&self) -> usize {
        self.ridge.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.ridge.output_dim()
    }

    fn predict_into(&self, rows: ArrayView2<'_, R>, out: ArrayViewMut2<'_, R>) -> Result<()> {
        self.ridge.predict_into(rows, out)
    }
}

/// Classification by regression of codes: corners of a simplex, one-hot, or one against the rest.
///
/// Labels are whole numbers `0, 1, …` in a single target column. The class whose code has the largest inner product with
/// the prediction wins, the first one of equals.
#[derive(Debug, Clone)]
pub struct OperatorRidgeClassifier<R: Real> {
    ridge: OperatorRidge<R>,
    coding: Coding,
}

impl<R: Real> OperatorRidgeClassifier<R> {
    /// Classification by the given regression, whose outputs are the columns of the code.
    pub fn new(ridge: OperatorRidge<R>, coding: Coding) -> Self {
        OperatorRidgeClassifier { ridge, coding }
    }

    /// Number of classes that the outputs of the regression stand for.
    pub fn classes(&self) -> usize {
        self.ridge.features.output_dim() + usize::from(self.coding == Coding::Simplex)
    }
}

impl<R: Real> Fit for OperatorRidgeClassifier<R> {
    type Real = R;
    type Model = OperatorRidgeClassifierModel<R>;

    fn fit_stream(
        &self,
        source: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<OperatorRidgeClassifierModel<R>> {
        let source = &mut Counted::new(source);
        let (classes, found) = (self.classes(), context.classes(None, source)?);
        if found > classes {
            return Err(Error::Dimension { what: "number of classes", expected: classes, found });
        }
        let model = self.ridge.fit_stream(&mut Coded::new(source, classes, self.coding)?, context)?;
        OperatorRidgeClassifierModel::from_regression(model, self.coding)
    }
}

/// A fitted [`OperatorRidgeClassifier`].
#[derive(Debug, Clone)]
pub struct OperatorRidgeClassifierModel<R: Real> {
    ridge: OperatorRidgeModel<R>,
    coding: Coding,
    /// One column per class, for simplex codes.
    corners: Option<Array2<R>>,
}

impl<R: Real> OperatorRidgeClassifierModel<R> {
    /// A classifier from the regression of codes.
    ///
    /// # Errors
    /// None but those of more classes than can be counted.
    pub fn from_regression(ridge: OperatorRidgeModel<R>, coding: Coding) -> Result<Self> {
        let corners = match coding {
            Coding::Simplex => {
                let codes = simplex_codes(ridge.output_dim() + 1)?;
                Some(codes.t().mapv(R::from_f64).as_standard_layout().into_owned())
            }
            _ => None,
        };
        Ok(OperatorRidgeClassifierModel { ridge, coding, corners })
    }

    /// The regression underneath.
    pub fn regression(&self) -> &OperatorRidgeModel<R> {
        &self.ridge
    }

    /// The code of classes.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.corners.as_ref().map_or(self.ridge.output_dim(), |corners| corners.ncols())
    }

    /// Values whose largest wins, one column per class.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn scores(&self, rows: ArrayView2<'_, R>) -> Result<Array2<R>> {
        let values = self.ridge.predict(rows)?;
        Ok(match &self.corners {
            None => values,
            Some(corners) => Array2::from_shape_fn((values.nrows(), corners.ncols()), |(i, c)| {
                values.row(i).iter().zip(corners.column(c)).map(|(a, b)| *a * *b).sum()
            }),
        })
    }

    /// The class of every row.
    ///
    /// # Errors
    /// As [`scores`](Self::scores).
    pub fn predict_classes(&self, rows: ArrayView2<'_, R>) -> Result<Vec<usize>> {
        let mut classes = Vec::with_capacity(rows.nrows());
        let piece = 4096;
        for start in (0..rows.nrows()).step_by(piece) {
            let rows = rows.slice(s![start..(start + piece).min(rows.nrows()), ..]);
            let scores = self.scores(rows).map_err(|error| error.rows_from(start))?;
            classes.extend(scores.rows().into_iter().map(first_largest));
        }
        Ok(classes)
    }
}

impl<R: Real> Predict for OperatorRidgeClassifierModel<R> {
    predicts_classes!(self: R, inputs self.ridge.input_dim(), rows => self.predict_classes(rows));
}

/// Weighted covariance of the targets of a source, one row and one column per target: an output matrix
/// ([`OutputMatrix`](crate::kernel::OutputMatrix)) read off the data.
///
/// # Errors
/// No rows, no targets, NaN or infinities, weights that are negative or all 0.
pub fn target_covariance<R: Real>(source: &mut dyn RowSource<R>) -> Result<Array2<f64>> {
    let p = source.target_dim();
    check_count("number of target columns", p)?;
    // The targets are their own features: centred sums are those of a Gram matrix.
    let mut gram = Gram::<R>::new(p, p)?;
    source.for_each_block(&mut |block| gram.push(block.targets, block.targets, block.weights))?;
    let mut moments = gram.finish();
    let total = moments.totals.weight_sum;
    if total <= 0.0 {
        return Err(Error::parameter("rows", "at least one with a positive weight", "none"));
    }
    let means = moments.totals.means();
    moments.move_to(&means, &means)?;
    Ok(Array2::from_shape_fn((p, p), |(i, j)| moments.gram.row(i.max(j))[i.min(j)] / total))
}

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
pub(super) const KERNELS: &[Word] = &{
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
        n_components: usize = 1024, Domain::FEATURES, Size;
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
        n_components: usize = 1024, Domain::FEATURES, Size;
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
    Describing::Each(describe, describe),
)
.on(Needs::Operator)
.summed(sums, sums)
.compared(losses, losses)
.penalized(Penalty::RIDGE);

pub(super) const CLASSIFICATION: ModelEntry = ModelEntry::new(
    CLASSIFIER,
    "classification by regression of codes",
    "Ridge regression of codes of classes with a decomposable kernel; the class of the nearest code wins.",
    "operator",
    OperatorRidgeClassifierSpec::PARAMETERS,
    load::<OperatorRidgeClassifierModel<f32>, OperatorRidgeClassifierModel<f64>>,
    Describing::Each(describe, describe),
)
.classification()
.on(Needs::Operator)
.summed(sums, sums);

/// An operator-valued kernel, whose matrix of outputs may still have to be found.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OperatorBasis {
    /// All of it is known.
    Whole(OperatorKernel),
    /// A scalar kernel times a matrix.
    Decomposable {
        /// The scalar kernel.
        base: AnyKernel,
        /// The matrix.
        outputs: OperatorOutputs,
    },
}

/// The matrix of outputs of a decomposable kernel.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum OperatorOutputs {
    /// Known.
    Given(OutputMatrix),
    /// Found where the rows are known.
    Found(FoundOutputs),
}

/// A matrix of outputs that follows from the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundOutputs {
    /// Outputs that have nothing to do with each other.
    Identity,
    /// The covariance of the targets.
    Covariance,
    /// Learned together with the regression.
    Learned,
}

impl OperatorBasis {
    /// The kernel; `find` finds the matrix of its outputs where it is not given.
    fn kernel(&self, find: impl FnOnce(FoundOutputs) -> Result<OutputMatrix>) -> Result<OperatorKernel> {
        match self.clone() {
            OperatorBasis::Whole(kernel) => Ok(kernel),
            OperatorBasis::Decomposable { base, outputs: OperatorOutputs::Given(outputs) } => {
                OperatorKernel::decomposable(base, outputs)
            }
            OperatorBasis::Decomposable { base, outputs: OperatorOutputs::Found(found) } => {
                OperatorKernel::decomposable(base, find(found)?)
            }
        }
    }
}

/// Steps of the search for an output matrix.
const STEPS: usize = 100;

impl<R: Real> Asked<'_, R> {
    /// How many classes, and the code they have, where targets are their numbers.
    fn coding(&self) -> Result<Option<(usize, Coding)>> {
        let Some(classes) = self.classes() else { return Ok(None) };
        Ok(Some((classes, self.spec::<OperatorRidgeClassifierSpec>()?.coding)))
    }

    /// What regression and classification are both told.
    fn operator_spec(&self) -> Result<OperatorRidgeSpec> {
        if self.classes().is_none() {
            return self.spec();
        }
        let OperatorRidgeClassifierSpec { n_components, projection, alpha, fit_intercept, solver, .. } = self.spec()?;
        Ok(OperatorRidgeSpec { n_components, projection, alpha, fit_intercept, solver, ..Default::default() })
    }

    /// The features; `find` finds the matrix of outputs where that is to be found.
    pub(super) fn operator_features(
        &self,
        n_components: usize,
        projection: Directions,
        find: impl FnOnce(FoundOutputs) -> Result<OutputMatrix>,
    ) -> Result<OperatorFeatures<R>> {
        let features = match self.on {
            Basis::Operator(operator) => {
                OperatorSpec { kernel: operator.kernel(find)?, n_components, projection, seed: self.seed().number() }
            }
            Basis::Described(description) => description.operator()?.clone(),
            _ => return Err(self.lacks("an operator-valued kernel")),
        };
        features.kernel.check_inputs(self.inputs)?;
        features.build(self.inputs)
    }

    /// The regression; `find` finds the matrix of outputs where that is to be found.
    fn operator_ridge(&self, find: impl FnOnce(FoundOutputs) -> Result<OutputMatrix>) -> Result<OperatorRidge<R>> {
        let spec = self.operator_spec()?;
        let features = self.operator_features(spec.n_components, spec.projection, find)?;
        OperatorRidge::new(features, self.penalty().unwrap_or(spec.alpha))?
            .with_intercept(spec.fit_intercept)
            .with_solver(spec.solver.into())
    }

    /// With outputs that have nothing to do with each other: its scalar features are those of all kernels.
    fn unrelated(&self, outputs: usize) -> Result<OperatorRidge<R>> {
        self.operator_ridge(|_| OutputMatrix::identity(outputs))
    }

    /// The regression, or the classification by it.
    fn operator_model(&self, model: OperatorRidgeModel<R>) -> Result<Model> {
        Ok(match self.coding()? {
            Some((_, coding)) => OperatorRidgeClassifierModel::from_regression(model, coding)?.into(),
            None => model.into(),
        })
    }
}

/// A regression whose matrix of outputs is found in the rows.
struct ToFind<R: Real> {
    request: FitRequest,
    on: Basis<R>,
}

impl<R: Real> FitAny<R> for ToFind<R> {
    fn fit_any(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<Model> {
        let ToFind { request, on } = self;
        let asked = Asked { request, on, inputs: source.input_dim(), targets: source.target_dim() };
        let mut fit = |source: &mut dyn RowSource<R>| {
            let outputs = source.target_dim();
            let ridge = asked.operator_ridge(|found| match found {
                FoundOutputs::Identity => OutputMatrix::identity(outputs),
                FoundOutputs::Covariance => OutputMatrix::new(target_covariance(source)?.view()),
                FoundOutputs::Learned => Ok(asked.unrelated(outputs)?.learn_outputs(STEPS, source)?.outputs),
            })?;
            asked.operator_model(ridge.fit_stream(source, context)?)
        };
        match asked.coding()? {
            Some((classes, coding)) => fit(&mut Coded::new(source, classes, coding)?),
            None => fit(source),
        }
    }
}

fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    Ok(Box::new(ToFind { request: asked.request.clone(), on: asked.on.clone() }))
}

fn sums<R: Real>(asked: &Asked<'_, R>, stored: Option<&Stored>, context: &Context<'_>) -> Result<Sums<R>> {
    let coding = asked.coding()?;
    let ridge = asked.unrelated(coding.map_or(asked.targets, |(classes, coding)| coding.columns(classes)))?;
    let map = ridge.features.map().clone();
    let needed = Gram::<R>::bytes(map.output_dim(), ridge.features.output_dim());
    let begin = || {
        context.check_budget("the Gram matrix", needed, "conjugate gradients would fit")?;
        ridge.accumulator()
    };
    let gram = stored.map_or_else(begin, Gram::from_stored)?;
    let sums = Sums::all(map, gram, |asked, _, moments, context| {
        let ridge = asked.operator_ridge(|found| match found {
            FoundOutputs::Identity => OutputMatrix::identity(moments.outputs()),
            FoundOutputs::Learned => {
                let OperatorRidgeSpec { alpha, fit_intercept, .. } = asked.operator_spec()?;
                Ok(solve::learn_outputs(moments.clone(), alpha, fit_intercept, STEPS)?.outputs)
            }
            FoundOutputs::Covariance => Err(Error::Unsupported {
                what: "A=\"covariance\"",
                reason: "the sums do not hold it; give it as a matrix".into(),
            }),
        })?;
        asked.operator_model(ridge.fit_moments(moments, context)?)
    });
    Ok(sums.coded(coding))
}

fn losses<R: Real>(
    asked: &Asked<'_, R>,
    penalties: &[f64],
    train: &mut dyn RowSource<R>,
    held_out: &mut dyn RowSource<R>,
    context: &mut Context<'_>,
) -> Result<Vec<f64>> {
    let models = asked.unrelated(asked.targets)?.fit_path(penalties, train, context)?;
    let (rows, targets) = in_memory(held_out)?;
    let loss = |model: OperatorRidgeModel<R>| {
        let residual = model.predict(rows.view())? - &targets;
        Ok(residual.iter().map(|v| Real::to_f64(*v).powi(2)).sum::<f64>() / residual.len() as f64)
    };
    models.into_iter().map(loss).collect()
}

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

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        self.jacobian(rows.mapv(R::from_f64).view())
    }

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

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        let codes = self.ridge.jacobian(rows.mapv(R::from_f64).view())?;
        let Some(corners) = &self.corners else { return Ok(codes) };
        let corners = corners.mapv(Real::to_f64);
        let mut out = Array3::zeros((codes.dim().0, corners.ncols(), codes.dim().2));
        for (from, mut to) in codes.outer_iter().zip(out.outer_iter_mut()) {
            to.assign(&corners.t().dot(&from));
        }
        Ok(out)
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
