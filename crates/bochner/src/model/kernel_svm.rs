use super::exact::{Gathered, gather};
use super::kinds::{Load, ModelEntry, Penalty, load, on_kernel};
use super::request::{Asked, Describing, FitAny, Needs};
use super::ridge::first_largest;
use super::{Fit, Fitted, Predict, write_classes};
use crate::context::{Context, Journal};
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::interrupt::{self, Flag};
use crate::kernel::{AnyKernel, Kernel, kernel_matrix, kernel_matrix_into};
use crate::parallel::Parallel;
use crate::parameter::{Domain, description};
use crate::persist::{Header, Stored, Tensor};
use crate::rows::{MOST_CLASSES, RowSource, class_of};
use crate::solve::last_state;
use crate::words::count;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Bytes of kernel values kept per problem where no budget was given.
const BUDGET: u64 = 1 << 30;

/// Steps of a problem after which a journal is asked to keep them: they take far longer than a copy of its variables.
const KEEP_EVERY: usize = 256;

/// Rows whose kernel values are computed at once for predictions.
const PREDICT_ROWS: usize = 512;

/// The exact kernel support vector machine, one class against another: the reference that features approximate.
///
/// For each pair of classes `min ½|f|² + C Σ max(0, 1 - yᵢ(f(xᵢ) + b))` with `f` in the kernel's space and `b` not
/// penalised, in its dual form, by steps in two variables. The pair is chosen by second-order information; kernel values
/// are computed once where they fit into the budget, else row by row with the latest kept. Each pair of classes has one
/// vote; the first of the classes with most votes wins.
///
/// # Cost
/// `O(n²d)` for the kernel and `O(n)` per step, some multiple of `n` steps: for thousands of rows, not for millions.
///
/// # References
/// Fan, Chen and Lin 2005 (working sets); Platt 1999 (steps).
///
/// ```
/// use bochner::kernel::Gaussian;
/// use bochner::model::{Fit, KernelSvm};
/// use ndarray::array;
/// let (rows, labels) = (array![[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], array![[0.0], [0.0], [1.0], [1.0]]);
/// let model = KernelSvm::new(Gaussian::new(0.5)?, 10.0)?.fit(rows.view(), labels.view())?;
/// assert_eq!(model.predict_classes(rows.view())?, [0, 0, 1, 1]);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct KernelSvm<K> {
    kernel: K,
    c: f64,
    tolerance: f64,
    max_steps: usize,
}

impl<K: Kernel + Clone> KernelSvm<K> {
    /// A machine with the price `C` of a violated margin.
    ///
    /// # Errors
    /// A price that is not positive.
    pub fn new(kernel: K, c: f64) -> Result<Self> {
        check_positive("C", c)?;
        Ok(KernelSvm { kernel, c, tolerance: 1e-3, max_steps: 10_000_000 })
    }

    /// Solved until the optimality conditions are violated by at most `tolerance`.
    ///
    /// # Errors
    /// A tolerance that is not positive.
    pub fn with_tolerance(mut self, tolerance: f64) -> Result<Self> {
        check_positive("tolerance", tolerance)?;
        self.tolerance = tolerance;
        Ok(self)
    }

    /// Solved in at most this many steps per pair of classes.
    ///
    /// # Errors
    /// No steps.
    pub fn with_max_steps(mut self, max_steps: usize) -> Result<Self> {
        check_count("max_steps", max_steps)?;
        self.max_steps = max_steps;
        Ok(self)
    }

    /// The journal keeps the state of all pairs every now and then.
    fn solve(
        &self,
        rows: ArrayView2<'_, f64>,
        labels: &[usize],
        budget: u64,
        journal: Option<&mut dyn Journal>,
    ) -> Result<KernelSvmModel<K>> {
        // How many steps there will be nobody knows.
        interrupt::expect(None);
        let classes = labels.iter().max().map_or(0, |m| m + 1);
        let mut members = vec![Vec::new(); classes];
        labels.iter().enumerate().for_each(|(i, &label)| members[label].push(i));
        let pairs: Vec<(usize, usize)> = (0..classes).flat_map(|a| (a + 1..classes).map(move |b| (a, b))).collect();
        // Classes without rows have no part in the vote.
        let pairs: Vec<_> =
            pairs.into_iter().filter(|&(a, b)| !members[a].is_empty() && !members[b].is_empty()).collect();
        let ways = pairs.iter().map(|&(a, b)| Way::new(members[a].len(), members[b].len())).collect();
        let ways = Ways::new(ways, journal)?;
        let stop = Flag::current();
        let machines = pairs
            .into_iter()
            .enumerate()
            .in_parallel()
            .map(|(p, (first, second))| {
                let chosen: Vec<usize> = members[first].iter().chain(&members[second]).copied().collect();
                let mut signs = vec![1.0; members[first].len()];
                signs.resize(chosen.len(), -1.0);
                let subset = rows.select(Axis(0), &chosen);
                let solved = stop.within(|| {
                    let mut values = Values::new(&self.kernel, subset, budget)?;
                    self.pair(&mut values, &signs, ways.of(p), &|way| ways.keep(p, way))
                })?;
                let coefficients = chosen.iter().zip(solved.coefficients).filter(|(_, c)| *c != 0.0);
                Ok((coefficients.map(|(&i, c)| (i, c)).collect::<Vec<_>>(), first, second, solved.report))
            })
            .into_iter()
            .collect::<Result<Vec<_>>>()?;
        // Support vectors of all machines, each row once.
        let mut support: Vec<usize> = machines.iter().flat_map(|m| m.0.iter().map(|(i, _)| *i)).collect();
        support.sort_unstable();
        support.dedup();
        let mut coefficients = Array2::zeros((support.len(), machines.len()));
        let mut pairs = Vec::with_capacity(machines.len());
        for (p, (entries, first, second, report)) in machines.into_iter().enumerate() {
            for (i, c) in entries {
                coefficients[[support.binary_search(&i).expect("collected above"), p]] = c;
            }
            pairs.push(Pair { first, second, report });
        }
        let only = labels[0];
        let rows = rows.select(Axis(0), &support);
        let parts = KernelSvmParts { support, pairs, classes, only };
        Ok(KernelSvmModel { kernel: self.kernel.clone(), rows, coefficients, parts })
    }

    /// Sequential minimal optimisation of one problem.
    fn pair(
        &self,
        values: &mut Values<'_, K>,
        signs: &[f64],
        mut way: Way,
        keep: &dyn Fn(&Way) -> Result<()>,
    ) -> Result<Solved> {
        let (n, c, begun) = (signs.len(), self.c, way.steps);
        let rises = |k: usize, alpha: &[f64]| if signs[k] > 0.0 { alpha[k] < c } else { alpha[k] > 0.0 };
        let falls = |k: usize, alpha: &[f64]| if signs[k] > 0.0 { alpha[k] > 0.0 } else { alpha[k] < c };
        let diagonal = values.diagonal.clone();
        let (top, bottom) = loop {
            let Way { steps, alpha, f } = &mut way;
            let (mut top, mut bottom, mut i) = (f64::NEG_INFINITY, f64::INFINITY, 0);
            for k in 0..n {
                if rises(k, alpha) && -f[k] > top {
                    (top, i) = (-f[k], k);
                }
                if falls(k, alpha) {
                    bottom = bottom.min(-f[k]);
                }
            }
            interrupt::check()?;
            let violation = top - bottom;
            if !violation.is_finite() {
                return Err(Error::parameter("kernel values", "finite numbers", violation));
            }
            if violation <= self.tolerance || *steps == self.max_steps {
                break (top, bottom);
            }
            let row = values.row(i)?;
            let (mut best, mut j) = (f64::INFINITY, usize::MAX);
            for k in 0..n {
                let gain = top + f[k];
                if gain > 0.0 && falls(k, alpha) {
                    let curvature = (diagonal[i] + diagonal[k] - 2.0 * row[k]).max(1e-12);
                    let decrease = -gain * gain / curvature;
                    if decrease < best {
                        (best, j) = (decrease, k);
                    }
                }
            }
            let curvature = (diagonal[i] + diagonal[j] - 2.0 * row[j]).max(1e-12);
            let room = |k: usize, up: bool| if (signs[k] > 0.0) == up { c - alpha[k] } else { alpha[k] };
            let (room_i, room_j) = (room(i, true), room(j, false));
            let step = ((top + f[j]) / curvature).min(room_i).min(room_j);
            // A variable that meets its bound is put there exactly.
            let moved = |k: usize, change: f64, bound: bool| match (bound, change > 0.0) {
                (true, true) => c,
                (true, false) => 0.0,
                (false, _) => alpha[k] + change,
            };
            let (next_i, next_j) =
                (moved(i, signs[i] * step, step == room_i), moved(j, -signs[j] * step, step == room_j));
            (alpha[i], alpha[j]) = (next_i, next_j);
            f.iter_mut().zip(row).for_each(|(f, k)| *f = step.mul_add(*k, *f));
            let row = values.row(j)?;
            f.iter_mut().zip(row).for_each(|(f, k)| *f = (-step).mul_add(*k, *f));
            *steps += 1;
            interrupt::advance(1);
            if steps.is_multiple_of(KEEP_EVERY) {
                keep(&way)?;
            }
        };
        if way.steps > begun {
            keep(&way)?;
        }
        let Way { steps, alpha, f } = way;
        let violation = top - bottom;
        let free: Vec<f64> = (0..n).filter(|&k| alpha[k] > 0.0 && alpha[k] < c).map(|k| -f[k]).collect();
        let intercept =
            if free.is_empty() { 0.5 * (top + bottom) } else { free.iter().sum::<f64>() / free.len() as f64 };
        let twice: f64 = (0..n).map(|k| alpha[k] * (signs[k] * f[k] - 1.0)).sum();
        let loss: f64 = (0..n).map(|k| (-signs[k] * (f[k] + intercept)).max(0.0)).sum();
        let half: f64 = 0.5 * (0..n).map(|k| alpha[k] * (signs[k] * f[k] + 1.0)).sum::<f64>();
        let coefficients = alpha.iter().zip(signs).map(|(a, y)| a * y).collect();
        let report = PairReport {
            intercept,
            primal: half + c * loss,
            dual: -0.5 * twice,
            violation,
            steps,
            converged: violation <= self.tolerance,
        };
        Ok(Solved { coefficients, report })
    }
}

impl<K: Kernel + Clone> Fit for KernelSvm<K> {
    type Real = f64;
    type Model = KernelSvmModel<K>;

    /// Collects the rows; the budget, 1 GiB where none is given, is that of the kernel values of every pair of classes. Labels
    /// are whole numbers `0, 1, …` in a single target column. Weights are not supported.
    fn fit_stream(&self, source: &mut dyn RowSource<f64>, context: &mut Context<'_>) -> Result<KernelSvmModel<K>> {
        check_dim("number of target columns", 1, source.target_dim())?;
        context.fit(source, |source, context| {
            let Gathered { rows, targets, .. } =
                gather(source, context, Some("exact support vector machines have none"))?;
            let label = |(i, label): (usize, &f64)| class_of(*label, MOST_CLASSES, i);
            let labels = targets.iter().enumerate().map(label).collect::<Result<Vec<_>>>()?;
            self.solve(rows.view(), &labels, context.memory_budget().unwrap_or(BUDGET), context.journal())
        })
    }
}

/// How far a problem has come.
#[derive(Debug, Clone)]
struct Way {
    steps: usize,
    alpha: Vec<f64>,
    /// `Fₖ = Σ yₗ αₗ K(xₖ, xₗ) - yₖ`: `yₖ` times the gradient of the dual objective.
    f: Vec<f64>,
}

impl Way {
    /// The beginning, for so many rows of the first and of the second class.
    fn new(first: usize, second: usize) -> Self {
        let f = [vec![-1.0; first], vec![1.0; second]].concat();
        Way { steps: 0, alpha: vec![0.0; f.len()], f }
    }

    /// As many numbers as [`len`](Self::len) says.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.steps as f64).chain(self.alpha.iter().copied()).chain(self.f.iter().copied())
    }

    fn len(&self) -> usize {
        1 + 2 * self.alpha.len()
    }
}

/// The ways of all problems, and who keeps them.
struct Ways<'a> {
    begun: Vec<Way>,
    kept: Option<Mutex<(Vec<Way>, &'a mut dyn Journal)>>,
}

impl<'a> Ways<'a> {
    /// From the beginning, or from what the journal has kept.
    fn new(mut begun: Vec<Way>, journal: Option<&'a mut dyn Journal>) -> Result<Self> {
        let Some(journal) = journal else { return Ok(Ways { begun, kept: None }) };
        if let Some(state) = last_state(journal)? {
            check_dim("number of rows of a recorded state", begun.iter().map(Way::len).sum(), state.len())?;
            let mut numbers = state.iter().copied();
            for way in &mut begun {
                way.steps = numbers.next().map_or(0, |steps| steps as usize);
                way.alpha.iter_mut().chain(&mut way.f).zip(&mut numbers).for_each(|(to, from)| *to = from);
            }
        }
        Ok(Ways { kept: Some(Mutex::new((begun.clone(), journal))), begun })
    }

    fn of(&self, p: usize) -> Way {
        self.begun[p].clone()
    }

    fn keep(&self, p: usize, way: &Way) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (ways, journal) = &mut *kept;
        ways[p].clone_from(way);
        let numbers: Vec<f64> = ways.iter().flat_map(Way::numbers).collect();
        journal.keep(ArrayView2::from_shape((numbers.len(), 1), &numbers).expect("one column"))
    }
}

struct Solved {
    coefficients: Vec<f64>,
    report: PairReport,
}

/// Rows of a kernel matrix: all of them, or the latest.
struct Values<'a, K> {
    kernel: &'a K,
    rows: Array2<f64>,
    diagonal: Vec<f64>,
    whole: Option<Array2<f64>>,
    /// Rows kept, with the time of their last use.
    kept: Vec<Vec<f64>>,
    place: Vec<Option<usize>>,
    owner: Vec<(usize, u64)>,
    most: usize,
    time: u64,
}

impl<'a, K: Kernel> Values<'a, K> {
    fn new(kernel: &'a K, rows: Array2<f64>, budget: u64) -> Result<Self> {
        let rows = rows.as_standard_layout().into_owned();
        let n = rows.nrows();
        let diagonal = rows.rows().into_iter().map(|r| r.to_slice().map_or(f64::NAN, |r| kernel.evaluate(r, r)));
        let diagonal = diagonal.collect();
        let bytes = (n as u64).saturating_mul(8);
        let whole = match bytes.saturating_mul(n as u64) <= budget {
            true => Some(kernel_matrix(kernel, rows.view(), rows.view())?),
            false => None,
        };
        // Two rows take part in a step.
        let most = (budget / bytes.max(1)).clamp(2, n.max(2) as u64) as usize;
        let (kept, owner) = (Vec::new(), Vec::new());
        Ok(Values { kernel, rows, diagonal, whole, kept, place: vec![None; n], owner, most, time: 0 })
    }

    fn row(&mut self, i: usize) -> Result<&[f64]> {
        if let Some(whole) = &self.whole {
            return Ok(&whole.as_slice().expect("standard layout")[i * self.rows.nrows()..][..self.rows.nrows()]);
        }
        self.time += 1;
        let at = match self.place[i] {
            Some(at) => at,
            None => {
                let at = if self.kept.len() < self.most {
                    self.kept.push(vec![0.0; self.rows.nrows()]);
                    self.owner.push((i, 0));
                    self.kept.len() - 1
                } else {
                    let oldest = (0..self.most).min_by_key(|&at| self.owner[at].1).unwrap_or(0);
                    self.place[self.owner[oldest].0] = None;
                    oldest
                };
                let out =
                    ArrayViewMut2::from_shape((1, self.rows.nrows()), &mut self.kept[at]).expect("one row of values");
                kernel_matrix_into(self.kernel, self.rows.slice(s![i..i + 1, ..]), self.rows.view(), out)?;
                self.place[i] = Some(at);
                at
            }
        };
        self.owner[at] = (i, self.time);
        Ok(&self.kept[at])
    }
}

/// How the problem of one pair of classes ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairReport {
    /// `b`.
    pub intercept: f64,
    /// `½|f|² + C Σ ℓ`.
    pub primal: f64,
    /// The dual objective: a lower bound of every primal value.
    pub dual: f64,
    /// By how much the optimality conditions are violated.
    pub violation: f64,
    /// Steps in two variables.
    pub steps: usize,
    /// Whether the violation reached the tolerance.
    pub converged: bool,
}

/// Two classes, and how their problem ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pair {
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) report: PairReport,
}

/// What a fitted machine knows besides its kernel, its support vectors and their coefficients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelSvmParts {
    /// Numbers of the support vectors among the rows of the fit.
    pub(crate) support: Vec<usize>,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) classes: usize,
    /// The class where there is no pair.
    pub(crate) only: usize,
}

/// A fitted [`KernelSvm`].
#[derive(Debug, Clone)]
pub struct KernelSvmModel<K> {
    kernel: K,
    rows: Array2<f64>,
    coefficients: Array2<f64>,
    parts: KernelSvmParts,
}

impl<K: Kernel> KernelSvmModel<K> {
    /// A machine from its parts, as a file keeps them.
    ///
    /// # Errors
    /// Parts that do not fit together, or numbers that are not finite.
    pub(crate) fn from_parts(
        kernel: K,
        rows: Array2<f64>,
        coefficients: Array2<f64>,
        parts: KernelSvmParts,
    ) -> Result<Self> {
        check_count("classes", parts.classes)?;
        check_dim("number of support vectors", parts.support.len(), rows.nrows())?;
        check_dim("number of rows of coefficients", rows.nrows(), coefficients.nrows())?;
        check_dim("number of pairs of classes", parts.pairs.len(), coefficients.ncols())?;
        let known = |class: usize| class < parts.classes;
        if !known(parts.only) || !parts.pairs.iter().all(|pair| known(pair.first) && known(pair.second)) {
            return Err(Error::parameter("pairs", "of classes that are there", "another class"));
        }
        let intercepts = parts.pairs.iter().map(|pair| &pair.report.intercept);
        if !rows.iter().chain(&coefficients).chain(intercepts).all(|v| v.is_finite()) {
            return Err(Error::parameter("support vectors and coefficients", "finite numbers", "others"));
        }
        Ok(KernelSvmModel { kernel, rows, coefficients, parts })
    }

    pub(crate) fn parts(&self) -> (&Array2<f64>, &Array2<f64>, &KernelSvmParts) {
        (&self.rows, &self.coefficients, &self.parts)
    }

    /// The kernel.
    pub fn kernel(&self) -> &K {
        &self.kernel
    }

    /// The rows that support a plane.
    pub fn support_vectors(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// Numbers of the rows that support a plane.
    pub fn support(&self) -> &[usize] {
        &self.parts.support
    }

    /// `yα`: one row per support vector, one column per pair of classes.
    pub fn coefficients(&self) -> ArrayView2<'_, f64> {
        self.coefficients.view()
    }

    /// Numbers of the two classes of every pair, in the order of the coefficients' columns.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.parts.pairs.iter().map(|pair| (pair.first, pair.second))
    }

    /// How the pairs ended, in the order (0, 1), (0, 2), …, (1, 2), …; pairs with a class without rows are left out.
    pub fn reports(&self) -> impl Iterator<Item = PairReport> + '_ {
        self.parts.pairs.iter().map(|pair| pair.report)
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.parts.classes
    }

    /// Decision values, one column per pair: positive for its first class.
    ///
    /// # Errors
    /// Rows of another length, NaN or infinities.
    pub fn decide(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        check_dim("number of columns of rows", self.rows.ncols(), rows.ncols())?;
        let mut out = Array2::zeros((rows.nrows(), self.parts.pairs.len()));
        for (rows, mut out) in
            rows.axis_chunks_iter(Axis(0), PREDICT_ROWS).zip(out.axis_chunks_iter_mut(Axis(0), PREDICT_ROWS))
        {
            let values = kernel_matrix(&self.kernel, rows, self.rows.view())?;
            out.assign(&values.dot(&self.coefficients));
            for (mut column, pair) in out.columns_mut().into_iter().zip(&self.parts.pairs) {
                column += pair.report.intercept;
            }
        }
        Ok(out)
    }

    /// Votes of the pairs, one column per class: the first of those with most wins.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub fn votes(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let values = self.decide(rows)?;
        let mut votes = Array2::zeros((rows.nrows(), self.parts.classes));
        if self.parts.pairs.is_empty() {
            votes.column_mut(self.parts.only).fill(1.0);
        }
        for (mut votes, values) in votes.rows_mut().into_iter().zip(values.rows()) {
            for (value, pair) in values.iter().zip(&self.parts.pairs) {
                votes[if *value > 0.0 { pair.first } else { pair.second }] += 1.0;
            }
        }
        Ok(votes)
    }

    /// The class of every row, by the pairs' votes.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    pub fn predict_classes(&self, rows: ArrayView2<'_, f64>) -> Result<Vec<usize>> {
        Ok(self.votes(rows)?.rows().into_iter().map(first_largest).collect())
    }
}

impl<K: Kernel> Predict for KernelSvmModel<K> {
    type Real = f64;

    fn input_dim(&self) -> usize {
        self.rows.ncols()
    }

    fn output_dim(&self) -> usize {
        1
    }

    fn predict_into(&self, rows: ArrayView2<'_, f64>, out: ArrayViewMut2<'_, f64>) -> Result<()> {
        write_classes(rows.nrows(), out, || self.predict_classes(rows))
    }
}

description! {
    /// Parameters of a support vector machine with an exact kernel.
    #[allow(non_snake_case)] // as the ecosystem writes it
    pub struct KernelSvmSpec {
        /// Price of a violated margin.
        C: f64 = 1.0, Domain::POSITIVE, Fit;
        /// Violation of the optimality conditions at which a pair is solved.
        tol: f64 = 1e-3, Domain::POSITIVE, Fit;
        /// Most steps for a pair of classes; none means ten million.
        max_iter: Option<usize> = None, Domain::Optional(&Domain::COUNT), Size;
        /// Bytes of kernel values kept for a pair of classes; none means 1 GiB.
        memory_budget: Option<u64> = None, Domain::Optional(&Domain::COUNT), Size;
    }
    besides {}
}

impl KernelSvmSpec {
    /// A machine with this kernel.
    ///
    /// # Errors
    /// Parameters out of range, named.
    pub fn on<K: Kernel + Clone>(&self, kernel: K) -> Result<KernelSvm<K>> {
        self.check_parameters()?;
        let svm = KernelSvm::new(kernel, self.C)?.with_tolerance(self.tol)?;
        match self.max_iter {
            Some(steps) => svm.with_max_steps(steps),
            None => Ok(svm),
        }
    }
}

pub(crate) const KIND: &str = "kernel_svm";

pub(super) const ENTRY: ModelEntry = ModelEntry::new(
    KIND,
    "exact kernel support vector machine",
    "A support vector machine with the exact kernel, one class against another, for some thousands of rows.",
    "kernel-svm",
    KernelSvmSpec::PARAMETERS,
    load::<KernelSvmModel<AnyKernel>, KernelSvmModel<AnyKernel>>,
    Describing::InDouble(describe),
)
.classification()
.on(Needs::Kernel)
.penalized(Penalty { word: "penalty", tried: &[5.0, 0.5, 0.05, 0.005], otherwise: 0.1 });

fn describe(asked: &Asked<'_, f64>) -> Result<Box<dyn FitAny<f64>>> {
    let spec: KernelSvmSpec = asked.spec()?;
    Ok(Box::new(KernelSvmSpec { C: asked.price(spec.C), ..spec }.on(asked.kernel()?)?))
}

impl<K: Kernel + 'static> Fitted for KernelSvmModel<K> {
    on_kernel!(KIND);

    fn dims(&self) -> (usize, usize) {
        (self.support_vectors().ncols(), self.classes())
    }

    fn class_count(&self) -> Option<usize> {
        Some(self.classes())
    }

    /// Votes of the pairs of classes.
    fn values(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.votes(rows)
    }

    fn sentences(&self) -> Vec<String> {
        let (pairs, converged) = (self.reports().count(), self.reports().filter(|r| r.converged).count());
        let vectors = count(self.support().len());
        vec![format!("{vectors} support vectors; {converged} of {pairs} pairs of classes reached their tolerance")]
    }

    fn to_stored(&self) -> Result<Stored> {
        let (rows, coefficients, parts) = self.parts();
        let mut header = Header::of_kernel(KIND, rows.ncols(), self.kernel().description())?;
        header.insert("machine", parts)?;
        let tensor = |m: &Array2<f64>| Tensor::of(vec![m.nrows(), m.ncols()], m.iter().copied());
        Ok(Stored::new(header).with("coefficients", tensor(coefficients)?).with("rows", tensor(rows)?))
    }
}

impl Load for KernelSvmModel<AnyKernel> {
    fn load(stored: &Stored) -> Result<Self> {
        let kernel = stored.header.description()?.kernel()?.clone();
        let rows = stored.matrix("rows")?;
        check_dim("length of a support vector", stored.header.input_dim, rows.ncols())?;
        KernelSvmModel::from_parts(kernel, rows, stored.matrix("coefficients")?, stored.header.part("machine")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Gaussian, Polynomial};
    use crate::random::{Role, Seed, Stream};
    use crate::rows::InMemory;

    fn rings(n: usize) -> (Array2<f64>, Array2<f64>) {
        let mut data = vec![0.0f64; 2 * n];
        Stream::new(Seed::new(3), Role::Noise, 0).normals_from(0, &mut data);
        let rows = Array2::from_shape_vec((n, 2), data).unwrap();
        let labels = rows.rows().into_iter().map(|r| (r.dot(&r).sqrt() / 0.8).floor().min(2.0));
        let labels = ndarray::Array1::from_iter(labels).insert_axis(Axis(1));
        (rows, labels)
    }

    #[test]
    fn the_duality_gap_closes_whatever_is_kept_of_the_kernel() {
        let (rows, labels) = rings(150);
        let svm = KernelSvm::new(Gaussian::new(0.7).unwrap(), 3.0).unwrap().with_tolerance(1e-8).unwrap();
        let whole = svm.fit(rows.view(), labels.view()).unwrap();
        assert_eq!(whole.reports().count(), 3);
        for report in whole.reports() {
            assert!(report.converged && report.primal - report.dual <= 1e-5 * report.primal, "{report:?}");
            assert!(report.dual <= report.primal * (1.0 + 1e-12));
        }
        // Few rows in memory: other roundings at most, the same optimum.
        let mut few = Context::default().with_memory_budget(8 * 150 * 5).unwrap();
        let mut source = InMemory::new(rows.view(), labels.view()).unwrap();
        let cached = svm.fit_stream(&mut source, &mut few).unwrap();
        for (a, b) in whole.reports().zip(cached.reports()) {
            assert!((a.dual - b.dual).abs() <= 1e-6 * a.dual, "{a:?} {b:?}");
        }
        let right = whole.predict(rows.view()).unwrap().iter().zip(&labels).filter(|(a, b)| a == b).count();
        assert!(right > 140, "{right}");
    }

    #[test]
    fn two_points_have_the_plane_between_them() {
        // x = ±1 and the linear kernel: f(x) = x, α = 1/2 each.
        let linear = Polynomial::new(1, 1.0, 0.0).unwrap();
        let svm = KernelSvm::new(linear, 1.0).unwrap().with_tolerance(1e-12).unwrap();
        let model = svm.fit(ndarray::array![[1.0], [-1.0]].view(), ndarray::array![[0.0], [1.0]].view()).unwrap();
        let values = model.decide(ndarray::array![[1.0], [0.25], [-3.0]].view()).unwrap();
        for (value, expected) in values.iter().zip([1.0, 0.25, -3.0]) {
            assert!((value - expected).abs() < 1e-12, "{value} {expected}");
        }
        assert_eq!(model.support(), [0, 1]);
    }

    #[test]
    fn odd_inputs_are_told_apart_or_named() {
        let kernel = Gaussian::new(1.0).unwrap();
        let svm = KernelSvm::new(kernel, 1.0).unwrap();
        // One class; a class number without rows; the same row with both labels; equal rows.
        assert_eq!(
            svm.fit(ndarray::array![[1.0], [2.0]].view(), ndarray::array![[1.0], [1.0]].view())
                .unwrap()
                .predict_classes(ndarray::array![[5.0]].view())
                .unwrap(),
            [1]
        );
        let gap = svm.fit(ndarray::array![[0.0], [9.0]].view(), ndarray::array![[0.0], [2.0]].view()).unwrap();
        assert_eq!(gap.predict_classes(ndarray::array![[0.1], [8.9]].view()).unwrap(), [0, 2]);
        let both = svm.fit(ndarray::array![[1.0], [1.0]].view(), ndarray::array![[0.0], [1.0]].view()).unwrap();
        assert!(both.reports().all(|r| r.converged && r.primal.is_finite()));
        assert!(svm.fit(ndarray::array![[1.0], [f64::NAN]].view(), ndarray::array![[0.0], [1.0]].view()).is_err());
        assert!(svm.fit(ndarray::array![[1.0]].view(), ndarray::array![[0.0], [1.0]].view()).is_err());
        assert!(svm.fit(Array2::zeros((0, 1)).view(), Array2::zeros((0, 1)).view()).is_err());
        assert!(KernelSvm::new(kernel, 0.0).is_err());
    }

    #[test]
    fn a_kernel_machine_survives_a_file() {
        let rows = Array2::from_shape_fn((60, 2), |(i, j)| ((i * (j + 2)) as f64 * 0.61).sin());
        let labels = Array2::from_shape_fn((60, 1), |(i, _)| f64::from(u8::from(rows[[i, 0]] * rows[[i, 1]] > 0.0)));
        let kernel = AnyKernel::from(Gaussian::new(0.5).unwrap());
        let model = KernelSvm::new(kernel, 10.0).unwrap().fit(rows.view(), labels.view()).unwrap();
        let stored = Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let again = KernelSvmModel::load(&stored).unwrap();
        assert_eq!(model.decide(rows.view()).unwrap(), again.decide(rows.view()).unwrap());
        assert_eq!(again.classes(), 2);
        let mut damaged = stored.clone();
        damaged.header.extra["machine"]["pairs"][0]["second"] = 7.into();
        assert!(KernelSvmModel::load(&damaged).is_err());
    }
}
