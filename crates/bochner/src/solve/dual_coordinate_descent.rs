//! Linear support vector machines by coordinate descent in the dual.

use crate::error::{Error, Result, check_count, check_dim, check_positive};
use crate::linalg::Tile;
use crate::random::{Role, Seed, Stream};
use crate::scalar::Real;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What a violated margin costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hinge {
    /// `max(0, 1 - y f(x))`.
    Hinge,
    /// `max(0, 1 - y f(x))²`.
    #[default]
    SquaredHinge,
}

/// Coordinate descent on the dual of `min ½|w|² + C Σ ℓ(yᵢ w·xᵢ)`, all one-against-rest problems at once.
///
/// With `Q̄ᵢᵢ = |xᵢ|² + Dᵢᵢ` (hinge: `D = 0`, `α ≤ C`; squared hinge: `D = 1/2C`, no upper bound) a step moves `αᵢ` by the
/// projected gradient `G = yᵢ w·xᵢ - 1 + Dᵢᵢ αᵢ` over `Q̄ᵢᵢ`. A row is fetched once for all problems of a thread: the
/// problems' weights stay in cache while the rows stream, so ten classes cost little more traffic than one. Coordinates at
/// a bound whose gradient points outward are set aside until the remaining ones have converged (shrinking).
///
/// Stops when every problem's duality gap is at most `tolerance` times its primal objective.
///
/// # References
/// Hsieh et al. 2008 (the method, shrinking).
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
}

/// Largest and smallest projected gradient of a problem's pass.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    shrink_above: f64,
    shrink_below: f64,
    largest: f64,
    smallest: f64,
    /// Range of projected gradients at which the problem counts as solved on its active rows.
    enough: f64,
    solved: bool,
    epochs: usize,
}

impl Bounds {
    const OPEN: Bounds = Bounds {
        shrink_above: f64::INFINITY,
        shrink_below: f64::NEG_INFINITY,
        largest: f64::NEG_INFINITY,
        smallest: f64::INFINITY,
        enough: 0.1,
        solved: false,
        epochs: 0,
    };

    /// All rows may be visited again.
    fn reopen(&mut self) {
        self.shrink_above = f64::INFINITY;
        self.shrink_below = f64::NEG_INFINITY;
    }
}

/// What the solver needs to know about one row.
#[derive(Debug, Clone, Copy)]
struct Row {
    label: u32,
    /// `Q̄ᵢᵢ`.
    curvature: f64,
    /// `Dᵢᵢ`.
    diagonal: f64,
    /// Upper bound of `αᵢ`.
    upper: f64,
}

impl DualCoordinateDescent {
    fn check(&self) -> Result<()> {
        check_positive("C", self.c)?;
        check_positive("tolerance", self.tolerance)?;
        check_count("max_epochs", self.max_epochs)
    }

    fn row(&self, norm_sq: f64, label: u32, weight: f64) -> Row {
        let c = self.c * weight;
        let (diagonal, upper) = match self.loss {
            Hinge::Hinge => (0.0, c),
            Hinge::SquaredHinge => (0.5 / c, f64::INFINITY),
        };
        Row { label, curvature: norm_sq + diagonal, diagonal, upper }
    }

    /// Solves one problem per label in `positive`: rows with that label against all others.
    ///
    /// Returns one weight vector and one report per problem. `sample_weights` multiply `C` row by row; rows of weight 0
    /// are left out.
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
        self.check()?;
        check_count("number of rows", rows.rows())?;
        check_count("number of problems", positive.len())?;
        check_dim("number of labels", rows.rows(), labels.len())?;
        if let Some(weights) = sample_weights {
            check_dim("number of weights", rows.rows(), weights.len())?;
            if let Some(bad) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
                return Err(Error::parameter("sample_weight", "non-negative finite numbers", bad));
            }
        }
        let facts: Vec<Row> = (0..rows.rows())
            .map(|i| self.row(norm_sq(rows.row(i)), labels[i], sample_weights.map_or(1.0, |w| w[i])))
            .collect();
        // Groups are a function of the number of problems alone, so that the result does not depend on threads.
        let size = positive.len().div_ceil(positive.len().div_ceil(MOST_PROBLEMS).max(2)).max(1);
        let solved: Vec<_> = positive
            .par_chunks(size)
            .map(|positive| {
                let mut group = Group::new(positive, rows.rows(), rows.cols());
                let reports = self.solve_group(&mut group, rows, &facts);
                (group.weights, reports)
            })
            .collect();
        let (mut weights, mut reports) = (Vec::new(), Vec::new());
        for (w, r) in solved {
            weights.extend(w);
            reports.extend(r);
        }
        Ok((weights, reports))
    }

    fn solve_group<R: Real>(&self, group: &mut Group<R>, rows: Tile<'_, R>, facts: &[Row]) -> Vec<GapReport> {
        let everyone = if group.positive.len() == 64 { u64::MAX } else { (1 << group.positive.len()) - 1 };
        let usable = |row: &Row| row.upper > 0.0 && row.curvature > 0.0 && row.curvature.is_finite();
        for (active, row) in group.active.iter_mut().zip(facts) {
            *active = if usable(row) { everyone } else { 0 };
        }
        let mut order: Vec<u32> = (0..rows.rows() as u32).collect();
        let mut reports = vec![None; group.positive.len()];
        for epoch in 0..self.max_epochs {
            order.retain(|&i| group.active[i as usize] != 0);
            Stream::new(self.seed, Role::Order, epoch as u64).shuffle(&mut order);
            for bounds in &mut group.bounds {
                (bounds.largest, bounds.smallest) = (f64::NEG_INFINITY, f64::INFINITY);
            }
            pulp::Arch::new().dispatch(|| sweep(group, rows, facts, &order));
            let mut reopened = false;
            for p in 0..group.positive.len() {
                let bounds = &mut group.bounds[p];
                if bounds.solved {
                    continue;
                }
                bounds.epochs = epoch + 1;
                let last = epoch + 1 == self.max_epochs;
                if bounds.largest - bounds.smallest > bounds.enough && !last {
                    // A bound on the wrong side of 0 would set the next pass' coordinates aside too early.
                    bounds.shrink_above = if bounds.largest > 0.0 { bounds.largest } else { f64::INFINITY };
                    bounds.shrink_below = if bounds.smallest < 0.0 { bounds.smallest } else { f64::NEG_INFINITY };
                    continue;
                }
                let mut report = group.gap(p, self, rows, facts, epoch + 1);
                report.converged = report.relative_gap() <= self.tolerance;
                let bounds = &mut group.bounds[p];
                bounds.solved = report.converged || last;
                reports[p] = Some(report);
                let bit = 1 << p;
                if bounds.solved {
                    group.active.iter_mut().for_each(|a| *a &= !bit);
                } else {
                    bounds.enough *= 0.3;
                    bounds.reopen();
                    group.active.iter_mut().zip(facts).filter(|(_, r)| usable(r)).for_each(|(a, _)| *a |= bit);
                    reopened = true;
                }
            }
            if group.bounds.iter().all(|b| b.solved) {
                break;
            }
            if reopened {
                order = (0..rows.rows() as u32).collect();
            }
        }
        reports.into_iter().map(|r| r.expect("the last pass reports every problem")).collect()
    }
}

impl<R: Real> Group<R> {
    fn new(positive: &[u32], rows: usize, cols: usize) -> Self {
        Group {
            positive: positive.to_vec(),
            weights: vec![vec![R::ZERO; cols]; positive.len()],
            alpha: vec![0.0; rows * positive.len()],
            active: vec![0; rows],
            bounds: vec![Bounds::OPEN; positive.len()],
        }
    }

    /// Objectives of problem `p`, with weights recomputed from the dual variables: steps in the rows' precision drift.
    fn gap(
        &mut self,
        p: usize,
        solver: &DualCoordinateDescent,
        rows: Tile<'_, R>,
        facts: &[Row],
        epochs: usize,
    ) -> GapReport {
        let problems = self.positive.len();
        let sign = |row: &Row, positive| if row.label == positive { 1.0 } else { -1.0 };
        let positive = self.positive[p];
        let mut weights = vec![0.0; rows.cols()];
        let (mut linear, mut quadratic) = (0.0, 0.0);
        for (i, row) in facts.iter().enumerate() {
            let alpha = self.alpha[i * problems + p];
            if alpha > 0.0 {
                linear += alpha;
                quadratic += row.diagonal * alpha * alpha;
                let step = alpha * sign(row, positive);
                weights.iter_mut().zip(rows.row(i)).for_each(|(w, x)| *w += step * Real::to_f64(*x));
            }
        }
        let half = 0.5 * weights.iter().map(|w| w * w).sum::<f64>();
        self.weights[p].iter_mut().zip(&weights).for_each(|(w, v)| *w = R::from_f64(*v));
        let weights = &self.weights[p];
        let loss: f64 = pulp::Arch::new().dispatch(|| {
            (0..facts.len())
                .filter(|&i| facts[i].upper > 0.0)
                .map(|i| {
                    let margin = 1.0 - sign(&facts[i], positive) * dot(weights, rows.row(i)).to_f64();
                    match solver.loss {
                        Hinge::Hinge => facts[i].upper * margin.max(0.0),
                        Hinge::SquaredHinge => 0.5 / facts[i].diagonal * margin.max(0.0).powi(2),
                    }
                })
                .sum()
        });
        GapReport { primal: half + loss, dual: linear - half - 0.5 * quadratic, epochs, converged: false }
    }
}

/// One visit of every row in `order` by all problems that are active there.
#[inline(always)]
fn sweep<R: Real>(group: &mut Group<R>, rows: Tile<'_, R>, facts: &[Row], order: &[u32]) {
    let problems = group.positive.len();
    for &i in order {
        let i = i as usize;
        let (x, row) = (rows.row(i), facts[i]);
        let mut todo = group.active[i];
        while todo != 0 {
            let p = todo.trailing_zeros() as usize;
            todo &= todo - 1;
            let weights = &mut group.weights[p];
            let bounds = &mut group.bounds[p];
            let alpha = &mut group.alpha[i * problems + p];
            let y = if row.label == group.positive[p] { 1.0 } else { -1.0 };
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
            bounds.largest = bounds.largest.max(projected);
            bounds.smallest = bounds.smallest.min(projected);
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
                assert!(report.dual <= report.primal);
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
    fn problems_solved_together_or_alone_have_the_same_optimum() {
        let (rows, labels) = blobs(200, 10, 4, 1.0);
        let solver = DualCoordinateDescent { tolerance: 1e-9, max_epochs: 50_000, ..Default::default() };
        let tile = Tile::new(&rows, 200, 10);
        let (together, _) = solver.solve(tile, &labels, &[0, 1, 2, 3], None).unwrap();
        for p in 0..4 {
            let (alone, _) = solver.solve(tile, &labels, &[p], None).unwrap();
            // Strong convexity: ½|w - w*|² is at most the gap.
            for (a, b) in alone[0].iter().zip(&together[p as usize]) {
                assert!((a - b).abs() < 1e-3, "{a} {b}");
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
