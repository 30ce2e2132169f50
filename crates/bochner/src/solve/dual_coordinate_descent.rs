//! Linear support vector machines by coordinate descent in the dual.

use super::operator::last_state;
use crate::context::Journal;
use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::interrupt::{self, Flag};
use crate::linalg::Tile;
use crate::parallel::{self, Parallel};
use crate::random::{Role, Seed, Stream};
use crate::scalar::Real;
use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};

crate::parameter::words! {
    /// What a violated margin costs.
    pub enum Hinge {
        /// `max(0, 1 - y f(x))²`.
        SquaredHinge = "squared_hinge",
        /// `max(0, 1 - y f(x))`.
        Hinge = "hinge",
    }
}

/// Coordinate descent on the dual of `min ½|w|² + C Σ ℓ(yᵢ w·xᵢ)`, all one-against-rest problems at once.
///
/// With `Q̄ᵢᵢ = |xᵢ|² + Dᵢᵢ` (hinge: `D = 0`, `α ≤ C`; squared hinge: `D = 1/2C`, no upper bound) a step moves `αᵢ` by the
/// projected gradient `G = yᵢ w·xᵢ - 1 + Dᵢᵢ αᵢ` over `Q̄ᵢᵢ`. A row is fetched once for all problems of a thread: the
/// problems' weights stay in cache while the rows stream, so ten classes cost little more traffic than one. Coordinates at
/// a bound whose gradient points outward are set aside until the remaining ones have converged (shrinking).
///
/// Stops when every problem's duality gap is at most `tolerance` times its primal objective. The gap is that of the weights
/// as they are and of the dual variables, whose own weights are summed up in `f64` on the way.
///
/// # References
/// Hsieh et al. 2008 (the method, shrinking); Yu et al. 2012 (blocks).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DualCoordinateDescent {
    /// The loss.
    pub loss: Hinge,
    /// `C`: the price of a violated margin.
    pub c: f64,
    /// Relative duality gap at which a problem is solved.
    pub tolerance: f64,
    /// Most passes over the rows.
    pub max_epochs: usize,
    /// Order of visits.
    pub seed: Seed,
}

impl Default for DualCoordinateDescent {
    fn default() -> Self {
        DualCoordinateDescent { loss: Hinge::default(), c: 1.0, tolerance: 1e-3, max_epochs: 1000, seed: Seed::new(0) }
    }
}

/// How one problem ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GapReport {
    /// `½|w|² + C Σ ℓ`.
    pub primal: f64,
    /// The dual objective: a lower bound of every primal value.
    pub dual: f64,
    /// Passes over the rows.
    pub epochs: usize,
    /// Whether the gap reached the tolerance.
    pub converged: bool,
}

impl GapReport {
    /// Duality gap relative to the primal objective.
    pub fn relative_gap(&self) -> f64 {
        (self.primal - self.dual) / self.primal.abs().max(f64::MIN_POSITIVE)
    }
}

/// Problems that share a thread and a pass over the rows; their activity on a row fits one word.
const MOST_PROBLEMS: usize = 64;

/// Numbers that a journal keeps of a problem beside its vectors.
const STATE: usize = 10;

/// Feature rows as the solver reads them: all at once, or block by block where they are made again in every pass.
pub(crate) trait Blocks<R> {
    /// Hands over the rows that are wanted, always in the same order: their numbers and their features.
    fn for_each(
        &mut self,
        wanted: &dyn Fn(usize) -> bool,
        visit: &mut dyn FnMut(&[u32], Tile<'_, R>) -> Result<()>,
    ) -> Result<()>;
}

/// All rows at once.
struct Whole<'a, R> {
    rows: Tile<'a, R>,
    numbers: &'a [u32],
}

impl<R> Blocks<R> for Whole<'_, R> {
    fn for_each(
        &mut self,
        _wanted: &dyn Fn(usize) -> bool,
        visit: &mut dyn FnMut(&[u32], Tile<'_, R>) -> Result<()>,
    ) -> Result<()> {
        visit(
            self.numbers,
            Tile::with_stride(self.rows.as_slice(), self.rows.rows(), self.rows.cols(), self.rows.stride()),
        )
    }
}

/// Some of the one-against-rest problems: weights, dual variables and what shrinking knows.
#[derive(Debug)]
struct Group<R> {
    /// Label that counts as +1, per problem.
    positive: Vec<u32>,
    /// One vector per problem.
    weights: Vec<Vec<R>>,
    /// Dual variables, those of a row side by side.
    alpha: Vec<f64>,
    /// Problems that still visit a row, as bits.
    active: Vec<u64>,
    bounds: Vec<Bounds>,
    reports: Vec<Option<GapReport>>,
    /// Objectives in the making, of the problems under assessment.
    sums: Vec<Sums>,
}

/// Largest and smallest projected gradient of a problem's pass.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    shrink_above: f64,
    shrink_below: f64,
    largest: f64,
    smallest: f64,
    /// Range of projected gradients at which the objectives are looked at.
    enough: f64,
    solved: bool,
    /// Passes since the last look at the objectives.
    unseen: usize,
}

impl Bounds {
    const OPEN: Bounds = Bounds {
        shrink_above: f64::INFINITY,
        shrink_below: f64::NEG_INFINITY,
        largest: f64::NEG_INFINITY,
        smallest: f64::INFINITY,
        enough: 0.1,
        solved: false,
        unseen: 0,
    };
}

/// Parts of the objectives of one problem.
#[derive(Debug)]
struct Sums {
    problem: usize,
    /// Weights from the dual variables: steps in the rows' precision drift.
    weights: Vec<f64>,
    loss: f64,
    linear: f64,
    quadratic: f64,
}

/// What the solver needs to know about one row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    label: u32,
    /// `Q̄ᵢᵢ`.
    curvature: f64,
    /// `Dᵢᵢ`.
    diagonal: f64,
    /// Upper bound of `αᵢ`.
    upper: f64,
}

impl Row {
    /// Whether steps are possible: rows of weight 0 have none, nor have rows of zeros under the plain hinge.
    fn moves(&self) -> bool {
        self.upper > 0.0 && self.curvature > 0.0
    }

    fn sign(&self, positive: u32) -> f64 {
        if self.label == positive { 1.0 } else { -1.0 }
    }
}

impl DualCoordinateDescent {
    /// Refuses parameters out of range.
    pub(crate) fn check(&self) -> Result<()> {
        check_positive("C", self.c)?;
        check_positive("tolerance", self.tolerance)?;
        check_count("max_epochs", self.max_epochs)
    }

    /// What the solver needs to know about the features of one row.
    ///
    /// # Errors
    /// Features whose squares overflow.
    pub(crate) fn row<R: Real>(&self, features: &[R], label: u32, weight: f64) -> Result<Row> {
        let norm_sq = norm_sq(features);
        if !norm_sq.is_finite() {
            return Err(Error::parameter("features", "small enough that their squares can be summed", "an overflow"));
        }
        let c = self.c * weight;
        let (diagonal, upper) = match self.loss {
            Hinge::Hinge => (0.0, c),
            // A row of weight 0 has no upper bound but 0.
            Hinge::SquaredHinge => (0.5 / c.max(f64::MIN_POSITIVE), if c > 0.0 { f64::INFINITY } else { 0.0 }),
        };
        Ok(Row { label, curvature: norm_sq + diagonal, diagonal, upper })
    }

    /// Solves one problem per label in `positive`: rows with that label against all others.
    ///
    /// Returns one weight vector and one report per problem. `sample_weights` multiply `C` row by row; rows of weight 0
    /// are left out. Bits depend neither on the number of threads nor on which problems are solved together.
    ///
    /// # Errors
    /// Parameters out of range, lengths that differ, negative weights.
    pub fn solve<R: Real>(
        &self,
        rows: Tile<'_, R>,
        labels: &[u32],
        positive: &[u32],
        sample_weights: Option<&[f64]>,
    ) -> Result<(Vec<Vec<R>>, Vec<GapReport>)> {
        self.solve_journalled(rows, labels, positive, sample_weights, None)
    }

    /// [`solve`](Self::solve) with a journal that keeps the state after every pass.
    pub(crate) fn solve_journalled<R: Real>(
        &self,
        rows: Tile<'_, R>,
        labels: &[u32],
        positive: &[u32],
        sample_weights: Option<&[f64]>,
        journal: Option<&mut dyn Journal>,
    ) -> Result<(Vec<Vec<R>>, Vec<GapReport>)> {
        self.check()?;
        check_dim("number of labels", rows.rows(), labels.len())?;
        check_weights(rows.rows(), sample_weights)?;
        let facts = (0..rows.rows())
            .map(|i| self.row(rows.row(i), labels[i], sample_weights.map_or(1.0, |w| w[i])))
            .collect::<Result<Vec<_>>>()?;
        let numbers: Vec<u32> = (0..rows.rows() as u32).collect();
        let mut groups = self.groups(&facts, positive, rows.cols())?;
        let whole = || Whole { rows, numbers: &numbers };
        let (n, job) = (rows.rows(), Flag::current());
        match journal {
            // A state is one of all problems: they go through their passes together.
            Some(journal) => self.run(&mut groups, &facts, &mut whole(), (1, n), Some(journal))?,
            None => {
                let share = n / groups.len();
                let run = |group| self.run(std::slice::from_mut(group), &facts, &mut whole(), (1, share), None);
                groups.iter_mut().in_parallel().try_for_each(|group| job.within(|| run(group)))?;
            }
        }
        Ok(finish(groups))
    }

    /// [`solve`](Self::solve) from features made block by block, each block visited `inner` times before the next
    /// (block minimisation, Yu et al. 2012).
    pub(crate) fn solve_blocks<R: Real>(
        &self,
        facts: &[Row],
        positive: &[u32],
        cols: usize,
        blocks: &mut dyn Blocks<R>,
        inner: usize,
        journal: Option<&mut dyn Journal>,
    ) -> Result<(Vec<Vec<R>>, Vec<GapReport>)> {
        self.check()?;
        let mut groups = self.groups(facts, positive, cols)?;
        self.run(&mut groups, facts, blocks, (inner, 0), journal)?;
        Ok(finish(groups))
    }

    /// The problems, shared among threads. A problem's steps do not depend on the others.
    fn groups<R: Real>(&self, facts: &[Row], positive: &[u32], cols: usize) -> Result<Vec<Group<R>>> {
        check_count("number of rows", facts.len())?;
        check_count("number of problems", positive.len())?;
        if u32::try_from(facts.len()).is_err() {
            return Err(Error::parameter("number of rows", "less than 2^32", facts.len()));
        }
        let size = positive.len().div_ceil(parallel::threads()).clamp(1, MOST_PROBLEMS);
        Ok(positive.chunks(size).map(|positive| Group::new(positive, facts, cols)).collect())
    }

    /// Passes until all problems are solved; each visits a block `inner` times and counts `rows` rows.
    fn run<R: Real>(
        &self,
        groups: &mut [Group<R>],
        facts: &[Row],
        blocks: &mut dyn Blocks<R>,
        (inner, rows): (usize, usize),
        mut journal: Option<&mut dyn Journal>,
    ) -> Result<()> {
        let mut order: Vec<u32> = Vec::new();
        let mut first = 0;
        if let Some(journal) = &mut journal
            && let Some(state) = last_state(*journal)?
        {
            first = restore(groups, &state)?;
        }
        for epoch in first..self.max_epochs {
            if groups.iter().all(|group| group.bounds.iter().all(|bounds| bounds.solved)) {
                break;
            }
            self.pass(groups, facts, blocks, (epoch, inner), &mut order)?;
            interrupt::advance(rows);
            if let Some(journal) = &mut journal {
                journal.keep(state(groups, epoch + 1).view())?;
            }
        }
        Ok(())
    }

    /// One pass over the rows, and a look at the objectives where one is due.
    fn pass<R: Real>(
        &self,
        groups: &mut [Group<R>],
        facts: &[Row],
        blocks: &mut dyn Blocks<R>,
        (epoch, inner): (usize, usize),
        order: &mut Vec<u32>,
    ) -> Result<()> {
        let arch = pulp::Arch::new();
        groups.iter_mut().for_each(Group::begin);
        let wanted: Vec<bool> = (0..facts.len()).map(|i| groups.iter().any(|g| g.active[i] != 0)).collect();
        let mut block = 0;
        blocks.for_each(&|i| wanted[i], &mut |numbers, rows| {
            for pass in 0..inner {
                order.clear();
                order.extend(0..numbers.len() as u32);
                let visit = (epoch * inner + pass) as u64;
                Stream::new(self.seed.child(block), Role::Order, visit).shuffle(order);
                groups.iter_mut().in_parallel().for_each(|group| {
                    arch.dispatch(Visit { group, rows, numbers, facts, order, track: pass == 0 });
                });
            }
            block += 1;
            interrupt::check()
        })?;
        let last = epoch + 1 == self.max_epochs;
        // By `|`: every group has to look.
        if !groups.iter_mut().fold(false, |any, group| any | group.choose(epoch + 1, last)) {
            return Ok(());
        }
        blocks.for_each(&|_| true, &mut |numbers, rows| {
            groups.iter_mut().in_parallel().for_each(|group| {
                arch.dispatch(Assessment { group, loss: self.loss, rows, numbers, facts });
            });
            interrupt::check()
        })?;
        for group in groups.iter_mut() {
            group.judge(self.tolerance, epoch + 1, last, facts);
        }
        Ok(())
    }
}

/// All problems after `epochs` passes, one to a row: what a journal keeps, however problems are shared among threads.
fn state<R: Real>(groups: &[Group<R>], epochs: usize) -> Array2<f64> {
    let problems: usize = groups.iter().map(|group| group.positive.len()).sum();
    let all = groups.iter().flat_map(|group| (0..group.positive.len()).map(move |p| (group, p)));
    let values: Vec<f64> = all.flat_map(|(group, p)| std::iter::once(epochs as f64).chain(group.state(p))).collect();
    Array2::from_shape_vec((problems, values.len() / problems), values).expect("rows of one length")
}

/// The inverse of [`state`]; gives the number of passes.
fn restore<R: Real>(groups: &mut [Group<R>], state: &Array2<f64>) -> Result<usize> {
    let problems = groups.iter().map(|group| group.positive.len()).sum();
    check_dim("number of rows of a recorded state", problems, state.nrows())?;
    let mut rows = state.outer_iter();
    for group in groups.iter_mut() {
        let numbers = 1 + STATE + group.weights[0].len() + 2 * group.active.len();
        check_dim("number of columns of a recorded state", numbers, state.ncols())?;
        group.active.fill(0);
        for (p, row) in (0..group.positive.len()).zip(&mut rows) {
            group.restore(p, &row.slice(s![1..]).to_vec());
        }
    }
    Ok(state[[0, 0]] as usize)
}

fn finish<R>(groups: Vec<Group<R>>) -> (Vec<Vec<R>>, Vec<GapReport>) {
    let (mut weights, mut reports) = (Vec::new(), Vec::new());
    for group in groups {
        weights.extend(group.weights);
        reports.extend(group.reports.into_iter().map(|r| r.expect("the last pass reports every problem")));
    }
    (weights, reports)
}

/// Refuses weights that are negative, not finite, too many or too few.
pub(crate) fn check_weights(rows: usize, weights: Option<&[f64]>) -> Result<()> {
    let Some(weights) = weights else { return Ok(()) };
    check_dim("number of weights", rows, weights.len())?;
    match weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
        Some(bad) => Err(Error::parameter("sample_weight", "non-negative finite numbers", bad)),
        None => Ok(()),
    }
}

impl<R: Real> Group<R> {
    fn new(positive: &[u32], facts: &[Row], cols: usize) -> Self {
        let problems = positive.len();
        // A row of zeros violates its margin whatever the weights: under the plain hinge its variable is at its bound.
        let start = |row: &Row| if row.curvature > 0.0 { 0.0 } else { row.upper };
        let mut group = Group {
            positive: positive.to_vec(),
            weights: vec![vec![R::ZERO; cols]; problems],
            alpha: facts.iter().flat_map(|row| std::iter::repeat_n(start(row), problems)).collect(),
            active: vec![0; facts.len()],
            bounds: vec![Bounds::OPEN; problems],
            reports: vec![None; problems],
            sums: Vec::new(),
        };
        (0..problems).for_each(|p| group.reopen(p, facts));
        group
    }

    /// All rows may be visited again by problem `p`.
    fn reopen(&mut self, p: usize, facts: &[Row]) {
        let bounds = &mut self.bounds[p];
        (bounds.shrink_above, bounds.shrink_below) = (f64::INFINITY, f64::NEG_INFINITY);
        self.active.iter_mut().zip(facts).filter(|(_, row)| row.moves()).for_each(|(a, _)| *a |= 1 << p);
    }

    /// Problem `p` between two passes: [`STATE`] numbers about it, weights, dual variables, and whether it visits a row.
    fn state(&self, p: usize) -> impl Iterator<Item = f64> {
        let (bounds, report) = (&self.bounds[p], &self.reports[p]);
        let truth = |value: bool| f64::from(u8::from(value));
        let about: [f64; STATE] = [
            bounds.shrink_above,
            bounds.shrink_below,
            bounds.enough,
            truth(bounds.solved),
            bounds.unseen as f64,
            truth(report.is_some()),
            report.map_or(0.0, |r| r.primal),
            report.map_or(0.0, |r| r.dual),
            report.map_or(0.0, |r| r.epochs as f64),
            report.map_or(0.0, |r| truth(r.converged)),
        ];
        let weights = self.weights[p].iter().map(|w| Real::to_f64(*w));
        let alpha = self.alpha[p..].iter().step_by(self.positive.len()).copied();
        about.into_iter().chain(weights).chain(alpha).chain(self.active.iter().map(move |a| (a >> p & 1) as f64))
    }

    /// The inverse of [`state`](Self::state), on a group that no row is visited by.
    fn restore(&mut self, p: usize, state: &[f64]) {
        let (about, rest) = state.split_at(STATE);
        let (weights, rest) = rest.split_at(self.weights[p].len());
        let (alpha, active) = rest.split_at(self.active.len());
        let (solved, unseen) = (about[3] != 0.0, about[4] as usize);
        let bounds = Bounds { shrink_above: about[0], shrink_below: about[1], enough: about[2], ..Bounds::OPEN };
        self.bounds[p] = Bounds { solved, unseen, ..bounds };
        let report =
            GapReport { primal: about[6], dual: about[7], epochs: about[8] as usize, converged: about[9] != 0.0 };
        self.reports[p] = (about[5] != 0.0).then_some(report);
        self.weights[p].iter_mut().zip(weights).for_each(|(to, from)| *to = R::from_f64(*from));
        self.alpha[p..].iter_mut().step_by(self.positive.len()).zip(alpha).for_each(|(to, from)| *to = *from);
        self.active.iter_mut().zip(active).for_each(|(to, from)| *to |= u64::from(*from != 0.0) << p);
    }

    fn begin(&mut self) {
        for bounds in &mut self.bounds {
            (bounds.largest, bounds.smallest) = (f64::NEG_INFINITY, f64::INFINITY);
        }
    }

    /// After a pass: sets what is shrunk in the next one, and which problems are looked at; whether there are any.
    fn choose(&mut self, epochs: usize, last: bool) -> bool {
        for p in 0..self.positive.len() {
            let bounds = &mut self.bounds[p];
            if bounds.solved {
                continue;
            }
            // A bound on the wrong side of 0 would set the next pass' coordinates aside too early.
            bounds.shrink_above = if bounds.largest > 0.0 { bounds.largest } else { f64::INFINITY };
            bounds.shrink_below = if bounds.smallest < 0.0 { bounds.smallest } else { f64::NEG_INFINITY };
            bounds.unseen += 1;
            // In single precision the range of gradients may stop at their rounding, long after the gap has closed.
            let due = bounds.unseen >= 10 + epochs / 4;
            if last || due || bounds.largest - bounds.smallest <= bounds.enough {
                let weights = vec![0.0; self.weights[p].len()];
                self.sums.push(Sums { problem: p, weights, loss: 0.0, linear: 0.0, quadratic: 0.0 });
            }
        }
        !self.sums.is_empty()
    }

    /// Adds a block's rows to the objectives under assessment.
    #[inline(always)]
    fn assess(&mut self, loss: Hinge, rows: Tile<'_, R>, numbers: &[u32], facts: &[Row]) {
        let problems = self.positive.len();
        for (k, &i) in numbers.iter().enumerate() {
            let (x, row) = (rows.row(k), facts[i as usize]);
            if row.upper <= 0.0 {
                continue;
            }
            for sums in &mut self.sums {
                let (p, alpha) = (sums.problem, self.alpha[i as usize * problems + sums.problem]);
                let sign = row.sign(self.positive[p]);
                let margin = (1.0 - sign * dot(&self.weights[p], x).to_f64()).max(0.0);
                sums.loss += match loss {
                    Hinge::Hinge => row.upper * margin,
                    Hinge::SquaredHinge => 0.5 / row.diagonal * margin * margin,
                };
                if alpha > 0.0 {
                    sums.linear += alpha;
                    sums.quadratic += row.diagonal * alpha * alpha;
                    let step = alpha * sign;
                    sums.weights.iter_mut().zip(x).for_each(|(w, x)| *w = step.mul_add(Real::to_f64(*x), *w));
                }
            }
        }
    }

    /// Compares the objectives: primal at the weights, dual at the dual variables.
    fn judge(&mut self, tolerance: f64, epochs: usize, last: bool, facts: &[Row]) {
        for sums in std::mem::take(&mut self.sums) {
            let p = sums.problem;
            let primal = 0.5 * norm_sq(&self.weights[p]) + sums.loss;
            let dual = sums.linear - 0.5 * norm_sq(&sums.weights) - 0.5 * sums.quadratic;
            let mut report = GapReport { primal, dual, epochs, converged: false };
            report.converged = report.relative_gap() <= tolerance;
            self.reports[p] = Some(report);
            let bounds = &mut self.bounds[p];
            bounds.solved = report.converged || last;
            bounds.unseen = 0;
            if bounds.solved {
                self.active.iter_mut().for_each(|a| *a &= !(1 << p));
                continue;
            }
            self.weights[p].iter_mut().zip(&sums.weights).for_each(|(w, v)| *w = R::from_f64(*v));
            if bounds.largest - bounds.smallest <= bounds.enough {
                bounds.enough *= 0.3;
                self.reopen(p, facts);
            }
        }
    }
}

/// [`Group::assess`] with the instructions of this machine; a closure would not be inlined, and call `fma` for every number.
struct Assessment<'a, R> {
    group: &'a mut Group<R>,
    loss: Hinge,
    rows: Tile<'a, R>,
    numbers: &'a [u32],
    facts: &'a [Row],
}

impl<R: Real> pulp::NullaryFnOnce for Assessment<'_, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.group.assess(self.loss, self.rows, self.numbers, self.facts);
    }
}

/// One visit of every row in `order` by all problems that are active there; `track` notes the range of gradients.
struct Visit<'a, R> {
    group: &'a mut Group<R>,
    rows: Tile<'a, R>,
    numbers: &'a [u32],
    facts: &'a [Row],
    order: &'a [u32],
    track: bool,
}

impl<R: Real> pulp::NullaryFnOnce for Visit<'_, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        sweep(self);
    }
}

#[inline(always)]
fn sweep<R: Real>(Visit { group, rows, numbers, facts, order, track }: Visit<'_, R>) {
    let problems = group.positive.len();
    for &k in order {
        let i = numbers[k as usize] as usize;
        let mut todo = group.active[i];
        if todo == 0 {
            continue;
        }
        let (x, row) = (rows.row(k as usize), facts[i]);
        while todo != 0 {
            let p = todo.trailing_zeros() as usize;
            todo &= todo - 1;
            let weights = &mut group.weights[p];
            let bounds = &mut group.bounds[p];
            let alpha = &mut group.alpha[i * problems + p];
            let y = row.sign(group.positive[p]);
            let gradient = y * dot(weights, x).to_f64() - 1.0 + row.diagonal * *alpha;
            let projected = if *alpha <= 0.0 {
                if gradient > bounds.shrink_above {
                    group.active[i] &= !(1 << p);
                    continue;
                }
                gradient.min(0.0)
            } else if *alpha >= row.upper {
                if gradient < bounds.shrink_below {
                    group.active[i] &= !(1 << p);
                    continue;
                }
                gradient.max(0.0)
            } else {
                gradient
            };
            if track {
                bounds.largest = bounds.largest.max(projected);
                bounds.smallest = bounds.smallest.min(projected);
            }
            if projected.abs() > 1e-12 {
                let next = (*alpha - gradient / row.curvature).clamp(0.0, row.upper);
                add_scaled(weights, R::from_f64((next - *alpha) * y), x);
                *alpha = next;
            }
        }
    }
}

fn norm_sq<R: Real>(x: &[R]) -> f64 {
    x.iter().map(|v| Real::to_f64(*v).powi(2)).sum()
}

/// `⟨a, b⟩` in 32 interleaved chains: enough independent sums to keep two vector units busy.
#[inline(always)]
fn dot<R: Real>(a: &[R], b: &[R]) -> R {
    let mut sums = [R::ZERO; 32];
    let (a_chunks, b_chunks) = (a.chunks_exact(32), b.chunks_exact(32));
    let tail = a_chunks.remainder().iter().zip(b_chunks.remainder()).fold(R::ZERO, |s, (x, y)| s + *x * *y);
    for (x, y) in a_chunks.zip(b_chunks) {
        for k in 0..32 {
            sums[k] = x[k].mul_add(y[k], sums[k]);
        }
    }
    let mut width = 16;
    while width > 0 {
        for k in 0..width {
            sums[k] += sums[k + width];
        }
        width /= 2;
    }
    sums[0] + tail
}

/// `w += step · x`.
#[inline(always)]
fn add_scaled<R: Real>(w: &mut [R], step: R, x: &[R]) {
    w.iter_mut().zip(x).for_each(|(w, x)| *w = step.mul_add(*x, *w));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs(n: usize, d: usize, classes: u32, spread: f64) -> (Vec<f64>, Vec<u32>) {
        let labels: Vec<u32> = (0..n).map(|i| i as u32 % classes).collect();
        let mut rows = vec![0.0; n * d];
        for i in 0..n {
            Stream::new(Seed::new(5), Role::Noise, i as u64).normals_from(0, &mut rows[i * d..][..d]);
            let mut centre = vec![0.0; d];
            Stream::new(Seed::new(6), Role::Noise, u64::from(labels[i])).normals_from(0, &mut centre);
            rows[i * d..][..d].iter_mut().zip(&centre).for_each(|(x, c)| *x = spread * *x + c);
        }
        (rows, labels)
    }

    #[test]
    fn the_gap_closes_for_both_losses() {
        let (rows, labels) = blobs(300, 20, 3, 1.5);
        for loss in [Hinge::Hinge, Hinge::SquaredHinge] {
            let solver = DualCoordinateDescent { loss, tolerance: 1e-6, max_epochs: 20_000, ..Default::default() };
            let (_, reports) = solver.solve(Tile::new(&rows, 300, 20), &labels, &[0, 1, 2], None).unwrap();
            for report in reports {
                assert!(report.converged && report.relative_gap() <= 1e-6, "{loss:?} {report:?}");
                assert!(report.dual <= report.primal * (1.0 + 1e-12));
            }
        }
    }

    #[test]
    fn two_points_have_the_solution_known_in_closed_form() {
        // x = ±1 with labels ±1: w = 2α with α = argmax 2α - 2α² - Dα²; hinge and C = 1 give α = 1/2, w = 1; squared
        // hinge (D = 1/2) gives α = 1/(2 + 1/2) = 0.4, w = 0.8.
        for (loss, expected) in [(Hinge::Hinge, 1.0f64), (Hinge::SquaredHinge, 0.8)] {
            let solver = DualCoordinateDescent { loss, tolerance: 1e-14, ..Default::default() };
            let (weights, _) = solver.solve(Tile::new(&[1.0f64, -1.0], 2, 1), &[1, 0], &[1], None).unwrap();
            // ½|w - w*|² is at most the gap.
            assert!((weights[0][0] - expected).abs() < 2e-7, "{loss:?}: {}", weights[0][0]);
        }
    }

    #[test]
    fn problems_solved_together_or_alone_on_any_threads_have_the_same_bits() {
        let (rows, labels) = blobs(200, 10, 4, 1.0);
        let solver = DualCoordinateDescent { tolerance: 1e-6, max_epochs: 5000, ..Default::default() };
        let tile = Tile::new(&rows, 200, 10);
        let together = solver.solve(tile, &labels, &[0, 1, 2, 3], None).unwrap();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let again = pool.install(|| solver.solve(Tile::new(&rows, 200, 10), &labels, &[0, 1, 2, 3], None).unwrap());
            assert_eq!(again, together);
        }
        for p in 0..4 {
            let (weights, reports) = solver.solve(tile, &labels, &[p], None).unwrap();
            assert_eq!((&weights[0], reports[0]), (&together.0[p as usize], together.1[p as usize]));
        }
    }

    #[test]
    fn a_row_of_zeros_costs_its_margin_and_nothing_else() {
        let solver = DualCoordinateDescent { loss: Hinge::Hinge, tolerance: 1e-9, c: 2.0, ..Default::default() };
        let with = solver.solve(Tile::new(&[1.0f64, 0.0, -1.0], 3, 1), &[1, 1, 0], &[1], None).unwrap();
        let without = solver.solve(Tile::new(&[1.0f64, -1.0], 2, 1), &[1, 0], &[1], None).unwrap();
        assert!(with.1[0].converged && (with.1[0].primal - without.1[0].primal - 2.0).abs() < 1e-8);
    }

    struct Cut<'a>(Tile<'a, f64>, usize);

    impl Blocks<f64> for Cut<'_> {
        fn for_each(
            &mut self,
            wanted: &dyn Fn(usize) -> bool,
            visit: &mut dyn FnMut(&[u32], Tile<'_, f64>) -> Result<()>,
        ) -> Result<()> {
            let numbers: Vec<u32> = (0..self.0.rows() as u32).filter(|&i| wanted(i as usize)).collect();
            for numbers in numbers.chunks(self.1) {
                let rows: Vec<f64> = numbers.iter().flat_map(|&i| self.0.row(i as usize).to_vec()).collect();
                visit(numbers, Tile::new(&rows, numbers.len(), self.0.cols()))?;
            }
            Ok(())
        }
    }

    #[test]
    fn blocks_reach_the_optimum_of_all_rows_at_once() {
        let (rows, labels) = blobs(300, 12, 3, 1.5);
        let tile = Tile::new(&rows, 300, 12);
        for loss in [Hinge::Hinge, Hinge::SquaredHinge] {
            // Blocks of the plain hinge close the gap slowly: a relative gap of 5e-6 takes them 20,000 passes.
            let solver = DualCoordinateDescent { loss, tolerance: 1e-5, max_epochs: 20_000, ..Default::default() };
            let (_, whole) = solver.solve(tile, &labels, &[0, 1, 2], None).unwrap();
            let facts: Vec<Row> = (0..300).map(|i| solver.row(tile.row(i), labels[i], 1.0).unwrap()).collect();
            for inner in [1, 4] {
                let (_, cut) = solver.solve_blocks(&facts, &[0, 1, 2], 12, &mut Cut(tile, 64), inner, None).unwrap();
                for (a, b) in whole.iter().zip(&cut) {
                    assert!(a.converged && b.converged, "{a:?} {b:?}");
                    assert!((a.primal - b.primal).abs() <= 2e-5 * a.primal, "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn weights_are_worth_repeated_rows() {
        let (rows, labels) = blobs(60, 5, 2, 2.0);
        let solver = DualCoordinateDescent { tolerance: 1e-10, max_epochs: 100_000, ..Default::default() };
        let weights: Vec<f64> = (0..60).map(|i| f64::from(i % 3)).collect();
        let (weighted, _) = solver.solve(Tile::new(&rows, 60, 5), &labels, &[1], Some(&weights)).unwrap();
        let (mut repeated, mut repeated_labels) = (Vec::new(), Vec::new());
        for i in 0..60 {
            for _ in 0..i % 3 {
                repeated.extend_from_slice(&rows[i * 5..][..5]);
                repeated_labels.push(labels[i]);
            }
        }
        let n = repeated_labels.len();
        let (expected, _) = solver.solve(Tile::new(&repeated, n, 5), &repeated_labels, &[1], None).unwrap();
        for (a, b) in weighted[0].iter().zip(&expected[0]) {
            assert!((a - b).abs() < 1e-4, "{a} {b}");
        }
    }

    #[test]
    fn odd_inputs_end_in_finite_weights() {
        let solver = DualCoordinateDescent { max_epochs: 200, ..Default::default() };
        // A single class, rows of zeros, duplicated rows with both labels.
        for (rows, labels) in [
            (vec![1.0, 2.0, 3.0, 4.0], vec![0, 0]),
            (vec![0.0, 0.0, 0.0, 0.0], vec![0, 1]),
            (vec![1.0, 1.0, 1.0, 1.0], vec![0, 1]),
        ] {
            let (weights, reports) = solver.solve(Tile::new(&rows, 2, 2), &labels, &[0], None).unwrap();
            assert!(weights[0].iter().all(|w: &f64| w.is_finite()) && reports[0].primal.is_finite());
        }
        assert!(solver.solve(Tile::new(&[1.0], 1, 1), &[0, 1], &[0], None).is_err());
        assert!(DualCoordinateDescent { c: 0.0, ..solver }.solve(Tile::new(&[1.0], 1, 1), &[0], &[0], None).is_err());
    }
}
