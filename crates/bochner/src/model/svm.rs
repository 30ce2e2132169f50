use super::kinds::{Load, ModelEntry, Penalty, classifies, load, on_map, predicts_classes};
use super::linear::Linear;
use super::request::{Asked, Describing, FitAny};
use super::ridge::first_largest;
use super::{Fit, Fitted, Predict, known};
use crate::context::Context;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::feature::{DynMap, FeatureMap};
use crate::interrupt;
use crate::linalg::{Tile, zeroed};
use crate::memory::{bytes, in_blocks};
use crate::parameter::{Domain, description};
use crate::persist::{Drawable, Header, Stored, Tensor};
use crate::random::Seed;
use crate::rows::{Counted, RowSource, class_of};
use crate::scalar::Real;
use crate::solve::{Blocks, DualCoordinateDescent, GapReport, Hinge, check_weights};
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, ArrayViewMut2, Axis, concatenate, s};

/// Bytes of features kept where no budget was given; beyond them features are made again in every pass.
const BUDGET: u64 = 4 << 30;

/// Visits of a block before the next one is made, where features do not fit: making a block costs as much as several.
const INNER_PASSES: usize = 4;

/// A linear support vector machine on features, one class against the rest.
///
/// Labels are whole numbers `0, 1, …` in a single target column. Class `c` has the problem
/// `min ½|w|² + ½(b/s)² + C Σ ℓ(yᵢ(w·φ(xᵢ) + b))` with `y = +1` for its rows and `-1` for all others; the largest value
/// wins, the first one of equals. Two classes share one problem. As in liblinear the constant `b` is the weight of a
/// column of `s`, and penalised like the others.
///
/// Where the features of all rows fit into the memory budget (the dual variables, one number per row and class, come on top)
/// they are made once; otherwise rows are read again in every
/// pass and their features made block by block, each block visited several times.
///
/// # References
/// Hsieh et al. 2008 (dual coordinate descent); Yu et al. 2012 (blocks); Chang et al. 2016 (on compressive features).
///
/// ```
/// use bochner::feature::{Describe, FourierSpec};
/// use bochner::model::{Fit, Svm};
/// use ndarray::Array2;
/// let rows = Array2::from_shape_fn((100, 2), |(i, j)| (i as f64 * (j + 1) as f64).sin());
/// let labels = rows.column(0).mapv(|x| f64::from(u8::from(x.abs() > 0.5))).insert_axis(ndarray::Axis(1));
/// let map = FourierSpec { n_components: 200, length_scale: 0.5.into(), ..Default::default() }.build::<f64>(2)?;
/// let model = Svm::new(map, 10.0)?.fit(rows.view(), labels.view())?;
/// let right = model.predict_classes(rows.view())?.iter().zip(&labels).filter(|(p, y)| **p as f64 == **y).count();
/// assert!(right > 90 && model.reports()[0].converged);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Svm<M> {
    map: M,
    solver: DualCoordinateDescent,
    intercept_scaling: Option<f64>,
    classes: Option<usize>,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Svm<M> {
    /// A machine with squared hinge loss and the price `C` of a violated margin, with an intercept.
    ///
    /// # Errors
    /// A price that is not positive.
    pub fn new(map: M, c: f64) -> Result<Self> {
        let solver = DualCoordinateDescent { c, ..Default::default() };
        solver.check()?;
        Ok(Svm { map, solver, intercept_scaling: Some(1.0), classes: None })
    }

    /// With this loss.
    pub fn with_loss(mut self, loss: Hinge) -> Self {
        self.solver.loss = loss;
        self
    }

    /// Solved until the duality gap is at most `tolerance` times the objective.
    ///
    /// # Errors
    /// A tolerance that is not positive.
    pub fn with_tolerance(mut self, tolerance: f64) -> Result<Self> {
        self.solver.tolerance = tolerance;
        self.solver.check()?;
        Ok(self)
    }

    /// Solved with at most this many passes over the rows.
    ///
    /// # Errors
    /// No passes.
    pub fn with_max_epochs(mut self, max_epochs: usize) -> Result<Self> {
        self.solver.max_epochs = max_epochs;
        self.solver.check()?;
        Ok(self)
    }

    /// Rows visited in the order of this seed.
    pub fn with_seed(mut self, seed: Seed) -> Self {
        self.solver.seed = seed;
        self
    }

    /// With a constant, as the weight of a column of `scaling`, or without one.
    ///
    /// # Errors
    /// A scaling that is not positive.
    pub fn with_intercept(mut self, scaling: Option<f64>) -> Result<Self> {
        if let Some(scaling) = scaling {
            check_positive("intercept_scaling", scaling)?;
        }
        self.intercept_scaling = scaling;
        Ok(self)
    }

    /// For a known number of classes; otherwise a pass over the labels finds the largest.
    ///
    /// # Errors
    /// No classes.
    pub fn with_classes(mut self, classes: impl Into<Option<usize>>) -> Result<Self> {
        self.classes = known(classes)?;
        Ok(self)
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// How the problems are solved.
    pub fn solver(&self) -> &DualCoordinateDescent {
        &self.solver
    }

    /// Columns of a row of features, the constant one included.
    fn columns(&self) -> usize {
        self.map.output_dim() + usize::from(self.intercept_scaling.is_some())
    }

    /// Distance between rows of features: whole cache lines.
    fn stride(&self) -> usize {
        self.columns().next_multiple_of(64 / size_of::<R>())
    }

    /// Writes the features of `rows` and the constant column.
    fn features_into(&self, rows: ArrayView2<'_, R>, out: &mut [R]) -> Result<()> {
        let (n, dim, stride) = (rows.nrows(), self.map.output_dim(), self.stride());
        let mut out = ArrayViewMut2::from_shape((n, stride), &mut out[..n * stride]).expect("as many rows as asked");
        self.map.transform_into(rows, out.slice_mut(s![.., ..dim]))?;
        if let Some(scaling) = self.intercept_scaling {
            out.column_mut(dim).fill(R::from_f64(scaling));
        }
        Ok(())
    }

    fn solve(&self, source: &mut dyn RowSource<R>, classes: usize, context: &mut Context<'_>) -> Result<SvmModel<M>>
    where
        M: Clone,
    {
        let budget = context.memory_budget().unwrap_or(BUDGET);
        check_dim("number of input columns", self.map.input_dim(), source.input_dim())?;
        check_dim("number of target columns", 1, source.target_dim())?;
        let bytes = (self.stride() as u64).saturating_mul(size_of::<R>() as u64);
        let fits = |n: usize| bytes.saturating_mul(n as u64) <= budget;
        // Labels and features; beyond the budget a pass may look at the objectives too.
        let passes = |n: usize| 2 + self.solver.max_epochs * if fits(n) { 1 } else { 2 };
        interrupt::expect(source.len_hint().map(|n| n.saturating_mul(passes(n))));
        let (mut labels, mut weights, mut weighted) = (Vec::<u32>::new(), Vec::new(), false);
        source.for_each_block(&mut |block| {
            let first = labels.len();
            check_dim("number of rows of targets", block.rows.nrows(), block.targets.nrows())?;
            for (i, &target) in block.targets.iter().enumerate() {
                labels.push(class_of(target, classes, first + i)? as u32);
            }
            match block.weights {
                Some(given) => {
                    check_dim("number of weights", block.rows.nrows(), given.len())?;
                    weighted = true;
                    weights.extend(given.iter().map(|&w| Real::to_f64(w)));
                }
                None => weights.resize(labels.len(), 1.0),
            }
            Ok(())
        })?;
        check_count("number of rows", labels.len())?;
        check_weights(labels.len(), Some(&weights))?;
        if weights.iter().all(|&w| w == 0.0) {
            return Err(Error::parameter("weights", "positive for at least one row", "only zeros"));
        }
        // Two classes need one problem; a single one is told from nothing.
        let positive: Vec<u32> = match classes {
            1 => vec![0],
            2 => vec![1],
            _ => (0..classes as u32).collect(),
        };
        let (weights, reports) = if fits(labels.len()) {
            let features = self.all_features(source, labels.len())?;
            let rows = Tile::with_stride(&features, labels.len(), self.columns(), self.stride());
            self.solver.solve_journalled(rows, &labels, &positive, weighted.then_some(&weights), context.journal())?
        } else {
            let per_row = bytes.saturating_add((self.map.input_dim() * size_of::<R>()) as u64);
            let block_rows = (budget / per_row).clamp(64, labels.len().max(64) as u64) as usize;
            let mut blocks = Streamed::new(self, source, block_rows);
            let mut facts = Vec::with_capacity(labels.len());
            blocks.for_each(&|_| true, &mut |numbers, rows| {
                for (k, &i) in numbers.iter().enumerate() {
                    facts.push(self.solver.row(rows.row(k), labels[i as usize], weights[i as usize])?);
                }
                Ok(())
            })?;
            check_dim("number of rows when read again", labels.len(), facts.len())?;
            let (columns, journal) = (self.columns(), context.journal());
            self.solver.solve_blocks::<R>(&facts, &positive, columns, &mut blocks, INNER_PASSES, journal)?
        };
        let dim = self.map.output_dim();
        let scaling = R::from_f64(self.intercept_scaling.unwrap_or(0.0));
        let coefficients = Array2::from_shape_fn((dim, positive.len()), |(j, p)| weights[p][j]);
        let intercept = weights.iter().map(|w| w.get(dim).map_or(R::ZERO, |&last| last * scaling)).collect();
        SvmModel::from_parts(self.map.clone(), coefficients, intercept, classes, reports)
    }

    fn all_features(&self, source: &mut dyn RowSource<R>, n: usize) -> Result<Vec<R>> {
        let stride = self.stride();
        let mut features: Vec<R> =
            zeroed("features of all rows", n.checked_mul(stride), |free| in_blocks(free / bytes::<R>(&[stride])))?;
        let mut first = 0;
        source.for_each_block(&mut |block| {
            let after = first + block.rows.nrows();
            check_dim("number of rows when read again", n, n.max(after))?;
            self.features_into(block.rows, &mut features[first * stride..]).map_err(|e| e.rows_from(first))?;
            first = after;
            Ok(())
        })?;
        check_dim("number of rows when read again", n, first)?;
        Ok(features)
    }
}

/// Features made block by block from rows that are read again in every pass.
struct Streamed<'a, M: FeatureMap> {
    svm: &'a Svm<M>,
    source: &'a mut dyn RowSource<M::Real>,
    rows: Vec<M::Real>,
    features: Vec<M::Real>,
    block_rows: usize,
}

impl<'a, R: Real, M: FeatureMap<Real = R, Output = R>> Streamed<'a, M> {
    fn new(svm: &'a Svm<M>, source: &'a mut dyn RowSource<R>, block_rows: usize) -> Self {
        let features = vec![R::ZERO; block_rows * svm.stride()];
        Streamed { svm, source, rows: Vec::with_capacity(block_rows * svm.map.input_dim()), features, block_rows }
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Blocks<R> for Streamed<'_, M> {
    fn for_each(
        &mut self,
        wanted: &dyn Fn(usize) -> bool,
        visit: &mut dyn FnMut(&[u32], Tile<'_, R>) -> Result<()>,
    ) -> Result<()> {
        let Streamed { svm, source, rows, features, block_rows } = self;
        let (d, columns, stride) = (svm.map.input_dim(), svm.columns(), svm.stride());
        let mut numbers: Vec<u32> = Vec::with_capacity(*block_rows);
        rows.clear();
        let mut flush = |numbers: &mut Vec<u32>, rows: &mut Vec<R>| {
            if numbers.is_empty() {
                return Ok(());
            }
            let view = ArrayView2::from_shape((numbers.len(), d), rows.as_slice()).expect("as many rows as numbers");
            svm.features_into(view, features).map_err(|error| match error {
                Error::NonFinite { what, row, column } => Error::NonFinite { what, row: numbers[row] as usize, column },
                other => other,
            })?;
            visit(numbers, Tile::with_stride(features, numbers.len(), columns, stride))?;
            numbers.clear();
            rows.clear();
            Ok(())
        };
        let mut first = 0;
        source.for_each_block(&mut |block| {
            for (i, row) in block.rows.rows().into_iter().enumerate() {
                if wanted(first + i) {
                    numbers.push((first + i) as u32);
                    rows.extend(row.iter().copied());
                    if numbers.len() == *block_rows {
                        flush(&mut numbers, rows)?;
                    }
                }
            }
            first += block.rows.nrows();
            Ok(())
        })?;
        flush(&mut numbers, rows)
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + Clone> Fit for Svm<M> {
    type Real = R;
    type Model = SvmModel<M>;

    fn fit_stream(&self, source: &mut dyn RowSource<R>, context: &mut Context<'_>) -> Result<SvmModel<M>> {
        let source = &mut Counted::new(source);
        let classes = context.classes(self.classes, source)?;
        context.fit(source, |source, context| self.solve(source, classes, context))
    }
}

/// A fitted [`Svm`].
#[derive(Debug, Clone)]
pub struct SvmModel<M: FeatureMap> {
    map: M,
    linear: Linear<M::Real>,
    classes: usize,
    reports: Vec<GapReport>,
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> SvmModel<M> {
    /// A model from its parts, as a file keeps them; one column and one report per problem.
    ///
    /// # Errors
    /// Shapes that do not fit together, or numbers that are not finite.
    pub fn from_parts(
        map: M,
        coefficients: Array2<R>,
        intercept: Array1<R>,
        classes: usize,
        reports: Vec<GapReport>,
    ) -> Result<Self> {
        check_count("classes", classes)?;
        check_dim("number of rows of coefficients", map.output_dim(), coefficients.nrows())?;
        check_dim("number of problems", if classes > 2 { classes } else { 1 }, coefficients.ncols())?;
        check_dim("number of reports", coefficients.ncols(), reports.len())?;
        crate::rows::check_finite("coefficients", coefficients.view(), 0)?;
        crate::rows::check_finite("intercept", intercept.view().insert_axis(ndarray::Axis(0)), 0)?;
        Ok(SvmModel { map, linear: Linear::new(coefficients, intercept)?, classes, reports })
    }

    /// The map.
    pub fn map(&self) -> &M {
        &self.map
    }

    /// One row per feature, one column per problem: a single one for two classes, whose positive values mean class 1.
    pub fn coefficients(&self) -> ArrayView2<'_, R> {
        self.linear.coefficients.view()
    }

    /// One number per problem.
    pub fn intercept(&self) -> ArrayView1<'_, R> {
        self.linear.intercept.view()
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Objectives, duality gap and passes of every problem.
    pub fn reports(&self) -> &[GapReport] {
        &self.reports
    }

    /// Writes the decision values of `rows`, one column per problem.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn decide_into(&self, rows: ArrayView2<'_, R>, out: ArrayViewMut2<'_, R>) -> Result<()> {
        self.linear.apply(&self.map, rows, out)
    }

    /// The class of every row.
    ///
    /// # Errors
    /// Shapes that do not fit, and NaN or infinities in `rows`.
    pub fn predict_classes(&self, rows: ArrayView2<'_, R>) -> Result<Vec<usize>> {
        let mut values = Array2::from_elem((rows.nrows(), self.reports.len()), R::ZERO);
        self.decide_into(rows, values.view_mut())?;
        Ok(values
            .rows()
            .into_iter()
            .map(|row| match self.classes {
                1 => 0,
                2 => usize::from(row[0] > R::ZERO),
                _ => first_largest(row),
            })
            .collect())
    }
}

impl<R: Real, M: FeatureMap<Real = R, Output = R>> Predict for SvmModel<M> {
    predicts_classes!(self: R, inputs self.map.input_dim(), rows => self.predict_classes(rows));
}

description! {
    /// Parameters of a linear support vector machine on features.
    #[allow(non_snake_case)] // as the ecosystem writes it
    pub struct SvmSpec {
        /// Price of a violated margin: the loss summed over rows is multiplied by it.
        C: f64 = 1.0, Domain::POSITIVE, Fit;
        /// What a violated margin costs.
        loss: Hinge = Hinge::SquaredHinge, Domain::Word(Hinge::CHOICES), Fit;
        /// Duality gap, relative to the objective, at which a problem is solved.
        tol: f64 = 1e-3, Domain::POSITIVE, Fit;
        /// Most passes over the rows.
        max_iter: usize = 1000, Domain::COUNT, Size;
        /// Whether to add a constant column, whose weight is penalised like the others.
        fit_intercept: bool = true, Domain::Flag, Fit;
        /// Value of that column.
        intercept_scaling: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Bytes for features of all rows; beyond it they are made again, block by block, in every pass. None means 4 GiB.
        memory_budget: Option<u64> = None, Domain::Optional(&Domain::COUNT), Size;
    }
    besides {}
}

impl SvmSpec {
    /// A machine on these features; it finds out how many classes there are unless it is told.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on<R: Real, M: FeatureMap<Real = R, Output = R>>(&self, map: M) -> Result<Svm<M>> {
        self.check_parameters()?;
        Svm::new(map, self.C)?
            .with_loss(self.loss)
            .with_tolerance(self.tol)?
            .with_max_epochs(self.max_iter)?
            .with_intercept(self.fit_intercept.then_some(self.intercept_scaling))
    }
}

const SVM: &str = "svm";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    SVM,
    "support vector machine",
    "A linear machine on the features, one class against the rest: a kernel machine at the cost of a linear one.",
    "svm",
    SvmSpec::PARAMETERS,
    load::<SvmModel<DynMap<f32>>, SvmModel<DynMap<f64>>>,
    Describing::Each(describe, describe),
)
.classification()
.penalized(Penalty::RIDGE);

fn describe<R: Real>(asked: &Asked<'_, R>) -> Result<Box<dyn FitAny<R>>> {
    let spec: SvmSpec = asked.spec()?;
    let svm = SvmSpec { C: asked.price(spec.C), ..spec }.on(asked.map()?)?;
    Ok(Box::new(svm.with_seed(asked.seed()).with_classes(asked.classes())?))
}

impl<R: Real, M: FeatureMap<Real = R, Output = R> + 'static> Fitted for SvmModel<M> {
    on_map!(SVM);
    classifies!();

    /// Two classes share one machine: its value is that of the second class, and minus that of the first.
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let mut decided = Array2::from_elem((rows.nrows(), self.reports().len()), R::ZERO);
        self.decide_into(rows.mapv(R::from_f64).view(), decided.view_mut())?;
        let decided = decided.mapv(Real::to_f64);
        Ok(match self.classes() {
            2 => concatenate![Axis(1), -&decided, decided],
            _ => decided,
        })
    }

    fn gradients(&self, rows: ArrayView2<'_, f64>) -> Result<Array3<f64>> {
        let decided = self.linear.gradient(&self.map, rows.mapv(R::from_f64).view())?;
        Ok(match self.classes() {
            2 => concatenate![Axis(1), -&decided, decided],
            _ => decided,
        })
    }

    fn sentences(&self) -> Vec<String> {
        let converged = self.reports().iter().filter(|r| r.converged).count();
        vec![format!("{converged} of {} machines reached their tolerance", self.reports().len())]
    }

    fn to_stored(&self) -> Result<Stored> {
        let mut header = Header::of_map(SVM, self.map())?;
        header.insert("reports", &self.reports())?;
        header.insert("classes", &self.classes())?;
        let (rows, cols) = self.coefficients().dim();
        Ok(Stored::new(header)
            .with("coefficients", Tensor::of(vec![rows, cols], self.coefficients().iter().copied())?)
            .with("intercept", Tensor::of(vec![cols], self.intercept().iter().copied())?))
    }
}

impl<R: Real, M: Drawable + FeatureMap<Real = R, Output = R> + 'static> Load for SvmModel<M> {
    fn load(stored: &Stored) -> Result<Self> {
        let (classes, reports) = (stored.header.part("classes")?, stored.header.part("reports")?);
        let map = stored.draw()?;
        SvmModel::from_parts(map, stored.matrix("coefficients")?, stored.vector("intercept")?, classes, reports)
    }
}
