use super::{Operator, SolveReport};
use crate::error::{Error, Result, check_count, check_dim, check_non_negative};
use crate::interrupt;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Minimisation with limited memory: quasi-Newton steps from the last few changes of the gradient.
///
/// Steps satisfy the Wolfe conditions, in the form that uses gradients where values no longer tell steps apart (Hager and
/// Zhang 2005). On quadratic functions a step that is too long or short is mended exactly by its slope.
///
/// # References
/// Nocedal and Wright 2006, algorithms 7.4 and 7.5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lbfgs {
    /// Changes of the gradient that are remembered.
    pub memory: usize,
    /// Steps at most.
    pub max_iterations: usize,
    /// Length of the gradient to reach, relative to its first one; `None` means 1e-5 for single and 1e-8 for double
    /// precision.
    pub tolerance: Option<f64>,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Lbfgs { memory: 20, max_iterations: 2000, tolerance: None }
    }
}

/// Where a minimisation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimum {
    /// The point.
    pub point: Vec<f64>,
    /// The value there.
    pub value: f64,
    /// Steps taken.
    pub iterations: usize,
    /// Length of the gradient over that at the start.
    pub residual: f64,
}

/// Share of the slope's promise that a step must keep, and share of the slope that may be left.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Trials of one line search.
const TRIALS: usize = 40;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Lbfgs {
    /// Minimises `objective`, which gives value and gradient, from `start` on.
    ///
    /// # Errors
    /// Options of 0, errors of the objective, and [`Error::NotConverged`] after the last step.
    pub fn minimise(
        &self,
        start: Vec<f64>,
        objective: &mut dyn FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
    ) -> Result<Minimum> {
        check_count("memory", self.memory)?;
        check_count("max_iterations", self.max_iterations)?;
        let tolerance = self.tolerance.unwrap_or(1e-8);
        crate::error::check_positive("tolerance", tolerance)?;
        let mut point = start;
        let (mut value, mut gradient) = objective(&point)?;
        let first = dot(&gradient, &gradient).sqrt();
        let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        let mut residual = if first > 0.0 { 1.0 } else { 0.0 };
        for iterations in 0..=self.max_iterations {
            interrupt::check()?;
            if residual <= tolerance {
                return Ok(Minimum { point, value, iterations, residual });
            }
            if iterations == self.max_iterations || !residual.is_finite() {
                break;
            }
            let mut direction = quasi_newton(&pairs, &gradient);
            let mut slope = dot(&direction, &gradient);
            if slope >= 0.0 {
                // Rounding has spoilt the memory.
                pairs.clear();
                direction = gradient.iter().map(|g| -g).collect();
                slope = -dot(&gradient, &gradient);
            }
            let length = if pairs.is_empty() { 1.0 / first.max(1.0) } else { 1.0 };
            let Some(step) = search(objective, &point, value, &direction, slope, length)? else { break };
            let (next, next_value, next_gradient) = step;
            let s: Vec<f64> = next.iter().zip(&point).map(|(a, b)| a - b).collect();
            let y: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(a, b)| a - b).collect();
            if dot(&s, &y) > f64::EPSILON * dot(&y, &y).sqrt() * dot(&s, &s).sqrt() {
                if pairs.len() == self.memory {
                    pairs.remove(0);
                }
                pairs.push((s, y));
            }
            (point, value, gradient) = (next, next_value, next_gradient);
            residual = dot(&gradient, &gradient).sqrt() / first;
        }
        Err(Error::NotConverged { iterations: self.max_iterations, residual, tolerance })
    }

    /// `(A + αI) x = b`, all columns together, as the minimum of `½xᵀ(A + αI)x - bᵀx`.
    ///
    /// # Errors
    /// As [`minimise`](Self::minimise), and those of the operator.
    pub fn solve(
        &self,
        operator: &mut dyn Operator,
        rhs: &Array2<f64>,
        penalty: f64,
        epsilon: f64,
    ) -> Result<(Array2<f64>, SolveReport)> {
        check_non_negative("penalty", penalty)?;
        check_dim("number of rows of the right-hand side", operator.dim(), rhs.nrows())?;
        let tolerance = Some(self.tolerance.unwrap_or(if epsilon > 1e-10 { 1e-5 } else { 1e-8 }));
        let mut objective = |point: &[f64]| {
            let x = ndarray::ArrayView2::from_shape(rhs.dim(), point).expect("as many as right-hand sides");
            let mut gradient = operator.apply(x)?;
            gradient.scaled_add(penalty, &x);
            let value = 0.5 * (&gradient * &x).sum() - (rhs * &x).sum();
            gradient -= rhs;
            Ok((value, gradient.into_iter().collect()))
        };
        let minimum = Lbfgs { tolerance, ..*self }.minimise(vec![0.0; rhs.len()], &mut objective)?;
        let x = Array2::from_shape_vec(rhs.dim(), minimum.point).expect("as many as right-hand sides");
        Ok((x, SolveReport::iterative("lbfgs", minimum.iterations, minimum.residual)))
    }
}

/// `-Hg` with `H` the inverse Hessian that the pairs of steps and gradient changes suggest, the last ones at the end (Nocedal
/// and Wright 2006, algorithm 7.4).
pub(crate) fn quasi_newton(pairs: &[(Vec<f64>, Vec<f64>)], gradient: &[f64]) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut weights = Vec::with_capacity(pairs.len());
    for (s, y) in pairs.iter().rev() {
        let weight = dot(s, &q) / dot(s, y);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= weight * y);
        weights.push(weight);
    }
    if let Some((s, y)) = pairs.last() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y), weight) in pairs.iter().zip(weights.into_iter().rev()) {
        let change = weight - dot(y, &q) / dot(s, y);
        q.iter_mut().zip(s).for_each(|(q, s)| *q += change * s);
    }
    q
}

type Step = (Vec<f64>, f64, Vec<f64>);

/// A step along `direction` that satisfies the Wolfe conditions; `None` if there is none to be found.
fn search(
    objective: &mut dyn FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
    point: &[f64],
    value: f64,
    direction: &[f64],
    slope: f64,
    first: f64,
) -> Result<Option<Step>> {
    let (mut low, mut high, mut length) = (0.0, f64::INFINITY, first);
    for _ in 0..TRIALS {
        let next: Vec<f64> = point.iter().zip(direction).map(|(x, d)| x + length * d).collect();
        let (reached, gradient) = objective(&next)?;
        let left = dot(&gradient, direction);
        let enough = reached <= value + DECREASE * length * slope;
        // Near a minimum values agree to all digits long before slopes do.
        let level = reached <= value + 1e-10 * value.abs() && left <= (2.0 * DECREASE - 1.0) * slope;
        if !(enough || level) || !reached.is_finite() {
            high = length;
        } else if left < CURVATURE * slope {
            low = length;
        } else {
            return Ok(Some((next, reached, gradient)));
        }
        // Where the slope would vanish if it changed evenly.
        let guess = length * slope / (slope - left);
        let middle = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * length };
        length = if guess > low && guess < high && guess <= 10.0 * length { guess } else { middle };
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curved_valley_is_followed_to_its_end() {
        let mut calls = 0;
        let mut valley = |x: &[f64]| {
            calls += 1;
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            Ok((a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b]))
        };
        let minimum = Lbfgs::default().minimise(vec![-1.2, 1.0], &mut valley).unwrap();
        assert!(minimum.point.iter().all(|x| (x - 1.0).abs() < 1e-6), "{minimum:?}");
        assert!(calls < 100, "{calls}");
    }

    #[test]
    fn steps_that_run_out_are_reported() {
        let mut slope = |x: &[f64]| Ok((x[0].powi(4), vec![4.0 * x[0].powi(3)]));
        let few = Lbfgs { max_iterations: 2, tolerance: Some(1e-12), ..Lbfgs::default() };
        assert!(matches!(few.minimise(vec![3.0], &mut slope), Err(Error::NotConverged { iterations: 2, .. })));
        assert!(Lbfgs { memory: 0, ..Lbfgs::default() }.minimise(vec![3.0], &mut slope).is_err());
        let flat = Lbfgs::default().minimise(vec![0.0], &mut slope).unwrap();
        assert_eq!(flat.iterations, 0);
    }
}
