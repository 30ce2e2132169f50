use super::evidence::for_each_image;
use super::kinds::{Load, ModelEntry, Penalty, answers, load, on_map, predicts_classes, regresses, solver_in_words};
use super::linear::Linear;
use super::request::{Asked, Describing, FitAny, Sums};
use super::{Fit, Fitted, Predict, Task, known};
use crate::accumulate::{Gram, Moments};
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_non_negative};
use crate::feature::{Description, DynMap, FeatureMap};
use crate::interrupt;
use crate::linalg::Lower;
use crate::memory;
use crate::parameter::{Domain, Entry, description, words};
use crate::persist::{Drawable, Header, Stored, Tensor};
use crate::rows::{Coded, Coding, Counted, RowSource};
use crate::scalar::Real;
use crate::solve::{
    self, Choice, ConjugateGradients, Journalled, LeaveOneOut, Leverage, Normal, Preconditioner, Size, Solution,
    SolveReport, Solver, StochasticGradient,
};
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayViewMut2, s};

/// Ridge regression on features: `min Σ wᵢ |Xᵀφ(xᵢ) + b - yᵢ|² + α|X|²`.
///
/// `X` has one column per target. The intercept `b` is not penalised; it costs no second pass, since sums about 0 become
/// sums about the mean. The penalty `α` multiplies the plain sum of squares: a mean loss with `λ` is `α = nλ`.
///
/// # Cost
/// By Cholesky factorisation one pass, `O(nD²)` for the Gram matrix and `O(D³/3)` for its factorisation, `D²/2` doubles of
/// memory; [`solve`] compares the other solvers.
///
/// # References
/// Hoerl and Kennard 1970; thesis, section 2.3, for features in place of kernels.
#[derive(Debug, Clone)]
pub struct Ridge<M> {
    map: M,
    penalty: f64,
    intercept: bool,
    solver: Solver,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Ridge<M> {
    /// Ridge regression with penalty `α` on the features of `map`, with an intercept.
    ///
    /// # Errors
    /// A penalty that is negative or not finite.
    pub fn new(map: M, penalty: f64) -> Result<Self> {
        check_non_negative("penalty", penalty)?;
        Ok(Ridge { map, penalty, intercept: true, solver: Solver::Auto })
    }

    /// With or without the constant `b`.
    pub fn with_intercept(mut self, intercept: bool) -> Self {
        self.intercept = intercept;
        self
    }

    /// Solved by `solver`.
    pub fn with_solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// The penalty `α`.
    pub fn penalty(&self) -> f64 {
        self.penalty
    }

    /// Bytes a fit of `rows` rows (where known) with `outputs` targets takes at its peak, besides the rows themselves.
    ///
    /// Of the solvers only [`Solver::Dual`] takes more memory for more rows.
    ///
    /// # Errors
    /// [`Error::Budget`] if that is more than the budget.
    pub fn bytes(&self, rows: Option<usize>, outputs: usize, context: &Context<'_>) -> Result<u64> {
        Ok(self.plan(rows, outputs, context)?.bytes)
    }

    fn size(&self, rows: Option<usize>, outputs: usize) -> Size {
        Size {
            rows,
            dim: self.map.output_dim(),
            outputs,
            overhead: overhead(&self.map),
            operations: self.map.operations(),
            is_penalised: self.penalty > 0.0,
        }
    }

    fn plan(&self, rows: Option<usize>, outputs: usize, context: &Context<'_>) -> Result<solve::Plan> {
        solve::plan::<R>(self.solver, self.size(rows, outputs), context.memory_budget())
    }

    /// An accumulator for this model's features: what a stream is pushed to before [`fit_moments`](Self::fit_moments).
    ///
    /// # Errors
    /// No targets, or a Gram matrix beyond the budget.
    pub fn accumulator(&self, outputs: usize, context: &Context<'_>) -> Result<Gram<R>> {
        if outputs == 0 {
            return Err(Error::parameter("targets", "at least one column", "none"));
        }
        solve::plan::<R>(Solver::Cholesky, self.size(None, outputs), context.memory_budget())?;
        Gram::new(self.map.output_dim(), outputs)
    }

    /// Fits from sums collected elsewhere, in their memory, by Cholesky factorisation.
    ///
    /// # Errors
    /// Sums over other features, nothing to fit, or a matrix that stays indefinite.
    pub fn fit_moments(&self, moments: Moments<f64>) -> Result<RidgeModel<M>>
    where
        M: Clone,
    {
        check_dim("number of features", self.map.output_dim(), moments.dim())?;
        let (solution, report) = solve::cholesky(moments, self.penalty, self.intercept)?;
        RidgeModel::from_solution(self.map.clone(), &solution, report.because("sums were given"))
    }

    fn accumulate(&self, source: &mut dyn RowSource<R>, context: &Context<'_>) -> Result<Moments<f64>> {
        let mut gram = self.accumulator(source.target_dim(), context)?;
        source.for_each_block(&mut |block| gram.push_rows(&self.map, block))?;
        Ok(gram.finish())
    }

    /// Models for many penalties from a single pass over the rows; the penalty of this description is not used.
    ///
    /// In dual form where [`fit_stream`](Fit::fit_stream) would take it (fewer rows than features, their number known
    /// beforehand), else from the Gram matrix.
    ///
    /// # Errors
    /// As [`fit_stream`](Fit::fit_stream) with [`Solver::Cholesky`].
    pub fn fit_path(
        &self,
        penalties: &[f64],
        source: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<Vec<RidgeModel<M>>>
    where
        M: Clone,
    {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        context.fit(source, |source, context| {
            interrupt::expect(source.len_hint());
            if !self.compares_rows(source.len_hint(), source.target_dim(), context) {
                return self.fit_path_moments(penalties, self.accumulate(source, context)?, context);
            }
            let (features, targets, weights) = self.gather(source, context)?;
            let weights = weights.as_deref().map(ndarray::aview1);
            self.models(solve::dual_path(features, targets, weights, penalties, self.intercept)?)
        })
    }

    fn models(&self, solutions: Vec<(Solution, SolveReport)>) -> Result<Vec<RidgeModel<M>>>
    where
        M: Clone,
    {
        let model = |(solution, report)| RidgeModel::from_solution(self.map.clone(), &solution, report);
        solutions.into_iter().map(model).collect()
    }

    /// Whether many penalties are compared in dual form, for which a second matrix of inner products of rows is made.
    fn compares_rows(&self, rows: Option<usize>, outputs: usize, context: &Context<'_>) -> bool {
        let Some(n) = rows.filter(|&n| n < self.map.output_dim() && outputs > 0) else { return false };
        let plan = match self.solver {
            Solver::Auto | Solver::Dual => self.plan(rows, outputs, context),
            _ => return false,
        };
        let second = Lower::<f64>::bytes(n);
        let fits = |bytes: u64| context.memory_budget().is_none_or(|budget| bytes.saturating_add(second) <= budget);
        plan.is_ok_and(|plan| plan.choice == Choice::Dual && fits(plan.bytes))
    }

    /// Models for many penalties from sums collected elsewhere.
    ///
    /// # Errors
    /// As [`fit_moments`](Self::fit_moments).
    pub fn fit_path_moments(
        &self,
        penalties: &[f64],
        moments: Moments<f64>,
        context: &Context<'_>,
    ) -> Result<Vec<RidgeModel<M>>>
    where
        M: Clone,
    {
        check_dim("number of features", self.map.output_dim(), moments.dim())?;
        let used = Lower::<f64>::bytes(moments.dim()).saturating_add(overhead(&self.map));
        let room = context.memory_budget().unwrap_or(u64::MAX).saturating_sub(used);
        self.models(solve::path(moments, penalties, self.intercept, room)?)
    }

    /// Features, targets and weights of all rows, kept, for the dual form.
    fn gather(
        &self,
        source: &mut dyn RowSource<R>,
        context: &Context<'_>,
    ) -> Result<(Array2<R>, Array2<R>, Option<Vec<R>>)> {
        let (dim, outputs) = (self.map.output_dim(), source.target_dim());
        let expected = source.len_hint().unwrap_or(0);
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        let (needed, remedy) =
            (memory::bytes::<R>(&[expected, dim + outputs]), || "take another solver than dual".into());
        memory::need("features of all rows", needed, |_| remedy())?;
        let refused = |_| memory::refused("features of all rows", needed, remedy());
        features.try_reserve_exact(expected.saturating_mul(dim)).map_err(refused)?;
        targets.try_reserve_exact(expected.saturating_mul(outputs)).map_err(refused)?;
        let (mut weights, mut weighted) = (Vec::new(), false);
        source.for_each_block(&mut |block| {
            let (first, n) = (weights.len(), block.rows.nrows());
            // The source may know its length only now.
            self.plan(Some(first + n), outputs, context)?;
            check_dim("number of rows of targets", n, block.targets.nrows())?;
            check_dim("number of columns of targets", outputs, block.targets.ncols())?;
            crate::rows::check_finite("targets", block.targets, first)?;
            features.resize((first + n) * dim, R::ZERO);
            let window = ArrayViewMut2::from_shape((n, dim), &mut features[first * dim..]).expect("n rows");
            self.map.transform_into(block.rows, window).map_err(|error| error.rows_from(first))?;
            targets.extend(block.targets.iter().copied());
            match block.weights {
                Some(given) => {
                    check_dim("number of weights", n, given.len())?;
                    weighted = true;
                    weights.extend(given.iter().copied());
                }
                None => weights.resize(first + n, R::ONE),
            }
            Ok(())
        })?;
        let n = weights.len();
        let features = Array2::from_shape_vec((n, dim), features).expect("n rows");
        let targets = Array2::from_shape_vec((n, outputs), targets).expect("n rows");
        Ok((features, targets, weighted.then_some(weights)))
    }
}

/// Bytes of tiles and windows: what every fit needs besides its solver.
fn overhead<R: Real, M: FeatureMap<Real = R, Output = R>>(map: &M) -> u64 {
    let (inputs, dim) = (map.input_dim() as u64, map.output_dim() as u64);
    let threads = crate::parallel::threads() as u64;
    // A thread of a map holds a copy of its rows and up to four images of them; products hold one window of 256 by 256.
    let tiles = threads.saturating_mul(map.tile_rows() as u64 * size_of::<R>() as u64).saturating_mul(inputs + 4 * dim);
    tiles.saturating_add(threads * 4 * 256 * 256 * 8).saturating_add(1 << 20)
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Ridge<M> {
    fn solve(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<RidgeModel<M>> {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        let outputs = source.target_dim();
        if outputs == 0 {
            return Err(Error::parameter("targets", "at least one column", "none"));
        }
        let plan = self.plan(source.len_hint(), outputs, context)?;
        interrupt::expect(plan.choice.rows(source.len_hint(), self.map.output_dim()));
        // Features that fit into what the budget leaves need not be computed in every pass.
        let room = context.memory_budget().map_or(0, |budget| budget - plan.bytes);
        let mut reason = plan.reason;
        let (solution, report) = match plan.choice {
            Choice::Cholesky => solve::cholesky(self.accumulate(source, context)?, self.penalty, self.intercept)?,
            Choice::Dual => {
                let (features, targets, weights) = self.gather(source, context)?;
                solve::dual(features, targets, weights.as_deref().map(ndarray::aview1), self.penalty, self.intercept)?
            }
            Choice::ConjugateGradients(options) => {
                let mut normal = Normal::new(&self.map, source, self.intercept, room, options.preconditioner)?;
                let (rhs, diagonal) = normal.system();
                let epsilon = Real::to_f64(R::epsilon());
                let mut operator = Journalled { operator: &mut normal, journal: context.journal() };
                match solve::conjugate_gradients(&mut operator, &rhs, self.penalty, &options, Some(&diagonal), epsilon)
                {
                    Ok((coefficients, report)) => (normal.solution(coefficients)?, report),
                    // A guess that was wrong: rounding took too much, as it does with tiny penalties.
                    Err(Error::NotConverged { iterations, .. })
                        if matches!(self.solver, Solver::Auto) && options.preconditioner == Preconditioner::Rounded =>
                    {
                        drop(normal);
                        reason = format!("{iterations} steps helped by rounded features were not enough");
                        solve::cholesky(self.accumulate(source, context)?, self.penalty, self.intercept)?
                    }
                    Err(error) => return Err(error),
                }
            }
            Choice::StochasticGradient(options) => {
                let mut normal = Normal::new(&self.map, source, self.intercept, room, Preconditioner::None)?;
                let (coefficients, report) =
                    solve::stochastic_gradient(&mut normal, None, self.penalty, &options, context.journal())?;
                (normal.solution(coefficients)?, report)
            }
        };
        RidgeModel::from_solution(self.map.clone(), &solution, report.because(reason))
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Ridge<M> {
    /// Residuals and leverages of all rows, each as if it had not been seen ([`LeaveOneOut`]).
    ///
    /// Two passes, with the Gram matrix in memory; where rows are much fewer than features, one pass that keeps their features.
    ///
    /// ```
    /// use bochner::feature::{Describe, FourierSpec};
    /// use bochner::model::{Fit, Predict, Ridge};
    /// use bochner::rows::InMemory;
    /// use bochner::Context;
    /// use ndarray::{Array2, s};
    /// let rows = Array2::from_shape_fn((40, 1), |(i, _)| i as f64 * 0.1);
    /// let targets = rows.mapv(|v| v.sin());
    /// let ridge = Ridge::new(FourierSpec { n_components: 20, ..Default::default() }.build::<f64>(1)?, 0.1)?;
    /// let left_out = ridge.leave_one_out(&mut InMemory::new(rows.view(), targets.view())?, &mut Context::default())?;
    /// let without = ridge.fit(rows.slice(s![1.., ..]), targets.slice(s![1.., ..]))?;
    /// let residual = targets[[0, 0]] - without.predict(rows.slice(s![..1, ..]))?[[0, 0]];
    /// assert!((left_out.residuals[[0, 0]] - residual).abs() < 1e-9);
    /// # Ok::<(), bochner::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit_stream`](Fit::fit_stream) with [`Solver::Cholesky`].
    pub fn leave_one_out(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<LeaveOneOut> {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        context.fit(source, |source, context| {
            let dim = self.map.output_dim() as f64;
            // A decomposition costs about twenty factorisations.
            let few = |n: usize| 20.0 * (n as f64).powi(3) < dim.powi(3) + 3.0 * n as f64 * dim * dim;
            if source.len_hint().is_some_and(|n| n < self.map.output_dim() && few(n)) {
                let (features, targets, weights) = self.gather(source, context)?;
                let weights = weights.as_deref().map(ndarray::aview1);
                let penalties = [self.penalty];
                let found =
                    solve::leave_one_out_path(features.view(), targets.view(), weights, &penalties, self.intercept)?;
                return found.into_iter().next().ok_or_else(Error::overflow);
            }
            let leverage = Leverage::new(self.accumulate(source, context)?, self.penalty, self.intercept)?;
            self.left_out(&leverage, source)
        })
    }

    /// Like [`leave_one_out`](Self::leave_one_out), of some of the rows only: `at` are rows of `source`. A second pass over all of
    /// many rows costs as much as the first.
    ///
    /// # Errors
    /// As [`leave_one_out`](Self::leave_one_out).
    pub fn leave_one_out_at(
        &self,
        source: &mut dyn RowSource<R>,
        at: &mut dyn RowSource<R>,
        context: &mut Context<'_>,
    ) -> Result<LeaveOneOut> {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        check_dim("number of target columns", source.target_dim(), at.target_dim())?;
        let sums = context.fit(source, |source, context| self.accumulate(source, context))?;
        let leverage = Leverage::new(sums, self.penalty, self.intercept)?;
        context.fit(at, |at, _| self.left_out(&leverage, at))
    }

    fn left_out(&self, leverage: &Leverage, source: &mut dyn RowSource<R>) -> Result<LeaveOneOut> {
        let (mut residuals, mut leverages) = (Vec::new(), Vec::new());
        let outputs = source.target_dim();
        source.for_each_block(&mut |block| {
            let first = leverages.len();
            let targets = block.targets.mapv(Real::to_f64);
            let weights = block
                .weights
                .map_or(vec![1.0; block.rows.nrows()], |weights| weights.iter().map(|w| Real::to_f64(*w)).collect());
            for_each_image(&self.map, &[&leverage.factor], block.rows, &mut |start, _, image| {
                let range = start..start + image.ncols();
                let (rest, own) = leverage.of(image, targets.slice(s![range.clone(), ..]), &weights[range]);
                residuals.extend(rest);
                leverages.extend(own);
                Ok(())
            })
            .map_err(|error| error.rows_from(first))
        })?;
        let residuals = Array2::from_shape_vec((leverages.len(), outputs), residuals).expect("one row each");
        Ok(LeaveOneOut::of(residuals, leverages))
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Fit for Ridge<M> {
    type Real = R;
    type Model = RidgeModel<M>;

    fn fit_stream(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<RidgeModel<M>> {
        context.fit(source, |source, context| self.solve(source, context))
    }
}

/// A fitted [`Ridge`].
#[derive(Debug, Clone)]
pub struct RidgeModel<M: FeatureMap> {
    map: M,
    linear: Linear<M::Real>,
    report: SolveReport,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> RidgeModel<M> {
    pub(super) fn from_solution(map: M, solution: &Solution, report: SolveReport) -> Result<Self> {
        Ok(RidgeModel { map, linear: Linear::from_solution(solution)?, report })
    }

    /// A model from its parts, as a file keeps them.
    ///
    /// # Errors
    /// Shapes that do not fit together, or numbers that are not finite.
    pub fn from_parts(map: M, coefficients: Array2<R>, intercept: Array1<R>, report: SolveReport) -> Result<Self> {
        check_dim("number of rows of coefficients", map.output_dim(), coefficients.nrows())?;
        check_count("number of targets", coefficients.ncols())?;
        crate::rows::check_finite("coefficients", coefficients.view(), 0)?;
        crate::rows::check_finite("intercept", intercept.view().insert_axis(ndarray::Axis(0)), 0)?;
        Ok(RidgeModel { map, linear: Linear::new(coefficients, intercept)?, report })
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// `X`: one row per feature, one column per target.
    pub fn coefficients(&self) -> ArrayView2<'_, R> {
        self.linear.coefficients.view()
    }

    /// `b`: one number per target.
    pub fn intercept(&self) -> ArrayView1<'_, R> {
        self.linear.intercept.view()
    }

    /// How the solution was found.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Predict for RidgeModel<M> {
    type Real = R;

    fn input_dim(&self) -> usize {
        self.map.input_dim()
    }

    fn output_dim(&self) -> usize {
        self.linear.intercept.len()
    }

    fn predict_into(&self, rows: ArrayView2<'_, R>, out: ArrayViewMut2<'_, R>) -> Result<()> {
        self.linear.apply(&self.map, rows, out)
    }
}

/// Classification by ridge regression, one class against the rest.
///
/// Labels are whole numbers `0, 1, …` in a single target column. Class `c` is regressed with targets `+1` and `-1`; the
/// largest value wins, the first one of equals. A single class is predicted always.
#[derive(Debug, Clone)]
pub struct RidgeClassifier<M> {
    ridge: Ridge<M>,
    classes: Option<usize>,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> RidgeClassifier<M> {
    /// Classification by the given regression.
    pub fn new(ridge: Ridge<M>) -> Self {
        RidgeClassifier { ridge, classes: None }
    }

    /// For a known number of classes; otherwise a pass over the labels finds the largest.
    ///
    /// # Errors
    /// No classes.
    pub fn with_classes(mut self, classes: impl Into<Option<usize>>) -> Result<Self> {
        self.classes = known(classes)?;
        Ok(self)
    }

    /// The number of classes, where it was given.
    pub(super) fn known_classes(&self) -> Option<usize> {
        self.classes
    }

    /// The regression underneath.
    pub fn ridge(&self) -> &Ridge<M> {
        &self.ridge
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Fit for RidgeClassifier<M> {
    type Real = R;
    type Model = RidgeClassifierModel<M>;

    fn fit_stream(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<RidgeClassifierModel<M>> {
        let source = &mut Counted::new(source);
        let classes = context.classes(self.classes, source)?;
        let ridge = self.ridge.fit_stream(&mut Coded::new(source, classes, Coding::OneAgainstRest)?, context)?;
        Ok(RidgeClassifierModel { ridge })
    }
}

/// A fitted [`RidgeClassifier`].
#[derive(Debug, Clone)]
pub struct RidgeClassifierModel<M: FeatureMap> {
    ridge: RidgeModel<M>,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> RidgeClassifierModel<M> {
    /// A classifier from the regression of its classes.
    pub fn from_regression(ridge: RidgeModel<M>) -> Self {
        RidgeClassifierModel { ridge }
    }

    /// The regression underneath: its predictions are the values whose largest wins.
    pub fn regression(&self) -> &RidgeModel<M> {
        &self.ridge
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.ridge.output_dim()
    }

    /// The class of every row.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn predict_classes(&self, rows: ArrayView2<'_, R>) -> Result<Vec<usize>> {
        let mut classes = Vec::with_capacity(rows.nrows());
        // In pieces, so that many classes do not ask for a second matrix of the size of the rows.
        let piece = 4096;
        let mut values = Array2::from_elem((piece.min(rows.nrows()), self.classes()), R::ZERO);
        for start in (0..rows.nrows()).step_by(piece) {
            let rows = rows.slice(s![start..(start + piece).min(rows.nrows()), ..]);
            let mut values = values.slice_mut(s![..rows.nrows(), ..]);
            self.ridge.predict_into(rows, values.view_mut()).map_err(|error| error.rows_from(start))?;
            classes.extend(values.rows().into_iter().map(|row| first_largest(row)));
        }
        Ok(classes)
    }
}

/// The place of the largest value in every row, the first of equals.
pub(super) fn largest<R: Real>(values: &Array2<R>) -> Vec<usize> {
    values.rows().into_iter().map(first_largest).collect()
}

pub(super) fn first_largest<R: Real>(row: ArrayView1<'_, R>) -> usize {
    let mut best = 0;
    for (i, &value) in row.iter().enumerate() {
        if value > row[best] {
            best = i;
        }
    }
    best
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Predict for RidgeClassifierModel<M> {
    predicts_classes!(self: R, inputs self.ridge.input_dim(), rows => self.predict_classes(rows));
}

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
    fn solver(&self) -> Solver {
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
    Describing::Each(describe, describe),
)
.summed(sums, sums)
.compared(losses, losses)
.penalized(Penalty::RIDGE);

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

impl<R: Real> Asked<'_, R> {
    fn ridge(&self, map: DynMap<R>) -> Result<Ridge<DynMap<R>>> {
        let spec: RidgeSpec = self.spec()?;
        RidgeSpec { alpha: self.penalty().unwrap_or(spec.alpha), ..spec }.on(map)
    }
}

fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    let ridge = asked.ridge(asked.map()?)?;
    Ok(match asked.kind().task {
        Task::Regression => Box::new(ridge),
        Task::Classification => Box::new(RidgeClassifier::new(ridge).with_classes(asked.classes())?),
    })
}

fn sums<R: Real>(asked: &Asked<'_, R>, stored: Option<&Stored>, context: &Context<'_>) -> Result<Sums<R>> {
    let ridge = asked.ridge(asked.map()?)?;
    let outputs = asked.classes().unwrap_or(asked.targets);
    let gram = stored.map_or_else(|| ridge.accumulator(outputs, context), Gram::from_stored)?;
    let sums = Sums::all(ridge.map, gram, |asked, map, moments, _| {
        let model = asked.ridge(map.clone())?.fit_moments(moments)?;
        Ok(match asked.kind().task {
            Task::Regression => model.into(),
            Task::Classification => RidgeClassifierModel::from_regression(model).into(),
        })
    });
    Ok(sums.coded(asked.classes().map(|classes| (classes, Coding::OneAgainstRest))))
}

/// Squared errors, of classes those of their codes: with hundreds of rows, shares of wrong classes differ by chance more than
/// by merit.
fn losses<R: Real>(
    asked: &Asked<'_, R>,
    penalties: &[f64],
    train: &mut dyn RowSource<R>,
    held_out: &mut dyn RowSource<R>,
    context: &mut Context<'_>,
) -> Result<Vec<f64>> {
    let ridge = asked.ridge(asked.map()?)?;
    let found = match asked.kind().task {
        Task::Regression => ridge.validate(penalties, train, held_out, context),
        Task::Classification => {
            let train = &mut Counted::new(train);
            let classes = context.classes(asked.classes(), train)?;
            let mut train = Coded::new(train, classes, Coding::OneAgainstRest)?;
            let mut held_out = Coded::new(held_out, classes, Coding::OneAgainstRest)?;
            ridge.validate(penalties, &mut train, &mut held_out, context)
        }
    };
    Ok(found?.losses)
}

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

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        self.linear.gradient(&self.map, rows.mapv(R::from_f64).view())
    }

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

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        self.regression().gradients(rows)
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
