use super::linear::Linear;
use super::{Fit, Predict};
use crate::accumulate::{Gram, Moments};
use crate::error::{Error, Result, check_count, check_dim, check_non_negative};
use crate::feature::FeatureMap;
use crate::rows::{OneAgainstRest, RowSource, count_classes};
use crate::scalar::Real;
use crate::solve::{self, Solution, SolveReport, Solver};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};

/// Ridge regression on features: `min Σ wᵢ |Xᵀφ(xᵢ) + b - yᵢ|² + α|X|²`.
///
/// `X` has one column per target. The intercept `b` is not penalised; it costs no second pass, since sums about 0 become
/// sums about the mean. The penalty `α` multiplies the plain sum of squares: a mean loss with `λ` is `α = nλ`.
///
/// # Cost
/// One pass, `O(nD²)` for the Gram matrix and `O(D³/3)` for its factorisation, `D²/2` doubles of memory.
///
/// # References
/// Hoerl and Kennard 1970; thesis, section 2.3, for features in place of kernels.
#[derive(Debug, Clone)]
pub struct Ridge<M> {
    map: M,
    penalty: f64,
    intercept: bool,
    solver: Solver,
    budget: Option<u64>,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Ridge<M> {
    /// Ridge regression with penalty `α` on the features of `map`, with an intercept.
    ///
    /// # Errors
    /// A penalty that is negative or not finite.
    pub fn new(map: M, penalty: f64) -> Result<Self> {
        check_non_negative("penalty", penalty)?;
        Ok(Ridge { map, penalty, intercept: true, solver: Solver::Auto, budget: None })
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

    /// Fitted within this many bytes of memory, rows in memory not counted.
    ///
    /// # Errors
    /// A budget of 0.
    pub fn with_memory_budget(mut self, bytes: u64) -> Result<Self> {
        if bytes == 0 {
            return Err(Error::parameter("memory budget", "at least 1 byte", 0));
        }
        self.budget = Some(bytes);
        Ok(self)
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// The penalty `α`.
    pub fn penalty(&self) -> f64 {
        self.penalty
    }

    /// Bytes a fit with `outputs` targets takes at its peak, whatever the number of rows.
    pub fn bytes(&self, outputs: usize) -> u64 {
        cholesky_bytes(&self.map, outputs)
    }

    /// An accumulator for this model's features: what a stream is pushed to before [`fit_moments`](Self::fit_moments).
    ///
    /// # Errors
    /// No targets, or a Gram matrix beyond the budget.
    pub fn accumulator(&self, outputs: usize) -> Result<Gram<R>> {
        if outputs == 0 {
            return Err(Error::parameter("targets", "at least one column", "none"));
        }
        self.check_budget(outputs)?;
        Gram::new(self.map.output_dim(), outputs)
    }

    fn check_budget(&self, outputs: usize) -> Result<()> {
        let Some(budget) = self.budget else { return Ok(()) };
        let needed = self.bytes(outputs);
        if needed <= budget {
            return Ok(());
        }
        // Bytes grow with the number of features: the largest number that fits is found by halving.
        let scaled = |dim: usize| {
            let slack = needed.saturating_sub(Gram::<R>::bytes(self.map.output_dim(), outputs));
            Gram::<R>::bytes(dim, outputs).saturating_add(slack)
        };
        let (mut fits, mut too_large) = (0, self.map.output_dim());
        while too_large - fits > 1 {
            let middle = fits + (too_large - fits) / 2;
            if scaled(middle) <= budget { fits = middle } else { too_large = middle }
        }
        let remedy = match fits {
            0 => format!("a budget of {needed} bytes would do"),
            _ => format!("{fits} features would fit, or a budget of {needed} bytes"),
        };
        Err(Error::Budget { what: "the Gram matrix", needed, budget, remedy })
    }

    /// Fits from sums collected elsewhere, in their memory.
    ///
    /// # Errors
    /// Sums over other features, nothing to fit, or a matrix that stays indefinite.
    pub fn fit_moments(&self, moments: Moments<f64>) -> Result<RidgeModel<M>>
    where
        M: Clone,
    {
        check_dim("number of features", self.map.output_dim(), moments.dim())?;
        let (solution, report) = solve::cholesky(moments, self.penalty, self.intercept)?;
        let reason = match self.solver {
            Solver::Auto => "the Gram matrix fits into memory",
            _ => "asked for",
        };
        RidgeModel::from_solution(self.map.clone(), &solution, report.because(reason))
    }
}

/// Peak of a fit through the Gram matrix: the accumulator, tiles of the map, and vectors of the solver.
fn cholesky_bytes<R: Real, M: FeatureMap<Real = R, Output = R>>(map: &M, outputs: usize) -> u64 {
    let (inputs, dim) = (map.input_dim() as u64, map.output_dim() as u64);
    let threads = rayon::current_num_threads() as u64;
    let size = size_of::<R>() as u64;
    // A thread of a map holds a copy of its rows and up to four images of them; products hold one window of 256 by 256.
    let tiles = threads.saturating_mul(map.tile_rows() as u64 * size).saturating_mul(inputs + 4 * dim);
    let windows = threads * 4 * 256 * 256 * 8;
    let vectors = (dim * 8).saturating_mul(3 * (outputs as u64).next_multiple_of(8) + 64);
    [tiles, windows, vectors, 1 << 20].iter().fold(Gram::<R>::bytes(dim as usize, outputs), |a, &b| a.saturating_add(b))
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Fit for Ridge<M> {
    type Real = R;
    type Model = RidgeModel<M>;

    fn fit(&self, source: &mut dyn RowSource<R>) -> Result<RidgeModel<M>> {
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        let mut gram = self.accumulator(source.target_dim())?;
        source.for_each_block(&mut |block| gram.push_rows(&self.map, block))?;
        self.fit_moments(gram.finish())
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
    fn from_solution(map: M, solution: &Solution, report: SolveReport) -> Result<Self> {
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
    pub fn with_classes(mut self, classes: usize) -> Result<Self> {
        check_count("classes", classes)?;
        self.classes = Some(classes);
        Ok(self)
    }

    /// The regression underneath.
    pub fn ridge(&self) -> &Ridge<M> {
        &self.ridge
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Fit for RidgeClassifier<M> {
    type Real = R;
    type Model = RidgeClassifierModel<M>;

    fn fit(&self, source: &mut dyn RowSource<R>) -> Result<RidgeClassifierModel<M>> {
        let classes = match self.classes {
            Some(classes) => classes,
            None => count_classes(source)?,
        };
        let ridge = self.ridge.fit(&mut OneAgainstRest::new(source, classes)?)?;
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
            self.ridge.predict_into(rows, values.view_mut()).map_err(|error| super::linear::shifted(error, start))?;
            classes.extend(values.rows().into_iter().map(|row| first_largest(row)));
        }
        Ok(classes)
    }
}

fn first_largest<R: Real>(row: ArrayView1<'_, R>) -> usize {
    let mut best = 0;
    for (i, &value) in row.iter().enumerate() {
        if value > row[best] {
            best = i;
        }
    }
    best
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Predict for RidgeClassifierModel<M> {
    type Real = R;

    fn input_dim(&self) -> usize {
        self.ridge.input_dim()
    }

    fn output_dim(&self) -> usize {
        1
    }

    fn predict_into(&self, rows: ArrayView2<'_, R>, mut out: ArrayViewMut2<'_, R>) -> Result<()> {
        check_dim("number of rows of the output", rows.nrows(), out.nrows())?;
        check_dim("number of columns of the output", 1, out.ncols())?;
        for (to, class) in out.iter_mut().zip(self.predict_classes(rows)?) {
            *to = R::from_f64(class as f64);
        }
        Ok(())
    }
}
