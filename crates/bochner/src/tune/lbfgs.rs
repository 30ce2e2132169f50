use crate::error::{Error, Result, check_count, check_dim};

/// Minimises a smooth function in a box by limited-memory BFGS with projected steps.
///
/// Nocedal and Wright 2006, algorithm 7.4, on the coordinates that are not held at a bound; steps are cut back until they
/// decrease the function enough (Armijo), and cut to the box. Points where the function is not finite, or fails because a
/// matrix is not positive definite, count as infinitely bad.
///
/// ```
/// use bochner::tune::Lbfgs;
/// let bowl = |x: &[f64]| Ok(((x[0] - 1.0).powi(2) + 9.0 * x[1] * x[1], vec![2.0 * (x[0] - 1.0), 18.0 * x[1]]));
/// let found = Lbfgs::default().minimize(&mut { bowl }, &[4.0, -3.0], &[(-5.0, 5.0), (0.5, 5.0)])?;
/// assert!((found.point[0] - 1.0).abs() < 1e-4 && found.point[1] == 0.5 && found.converged);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lbfgs {
    /// Pairs of steps and gradient changes that are remembered.
    pub memory: usize,
    /// Evaluations at most.
    pub max_evaluations: usize,
    /// Largest entry of the projected gradient at which the search ends.
    pub gradient_tolerance: f64,
    /// Relative decrease of the function at which the search ends.
    pub decrease_tolerance: f64,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Lbfgs { memory: 10, max_evaluations: 100, gradient_tolerance: 1e-5, decrease_tolerance: 1e-9 }
    }
}

/// Where a search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimum {
    /// The best point.
    pub point: Vec<f64>,
    /// The function there.
    pub value: f64,
    /// Evaluations of the function.
    pub evaluations: usize,
    /// Whether a tolerance ended the search, not the number of evaluations.
    pub converged: bool,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `-Hg` with `H` the inverse Hessian that the pairs of steps and gradient changes suggest, the last ones at the end (Nocedal
/// and Wright 2006, algorithm 7.4).
fn quasi_newton(pairs: &[(Vec<f64>, Vec<f64>)], gradient: &[f64]) -> Vec<f64> {
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

/// The gradient without the parts that point out of the box.
fn projected(x: &[f64], gradient: &[f64], bounds: &[(f64, f64)]) -> Vec<f64> {
    let part = |((x, g), (low, high)): ((&f64, &f64), &(f64, f64))| {
        if (*x <= *low && *g > 0.0) || (*x >= *high && *g < 0.0) { 0.0 } else { *g }
    };
    x.iter().zip(gradient).zip(bounds).map(part).collect()
}

/// A function and its gradient, or a sign that the point is infinitely bad.
fn evaluate(
    objective: &mut dyn FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
    x: &[f64],
) -> Result<Option<(f64, Vec<f64>)>> {
    match objective(x) {
        Ok((value, gradient)) => {
            check_dim("length of the gradient", x.len(), gradient.len())?;
            let finite = value.is_finite() && gradient.iter().all(|g| g.is_finite());
            Ok(finite.then_some((value, gradient)))
        }
        Err(Error::NotPositiveDefinite { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Lbfgs {
    /// Searches from `start`; `objective` gives value and gradient, `bounds` the least and greatest value of each
    /// coordinate.
    ///
    /// # Errors
    /// Those of the function; a start where it is not finite; bounds that do not fit.
    pub fn minimize(
        &self,
        objective: &mut dyn FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
        start: &[f64],
        bounds: &[(f64, f64)],
    ) -> Result<Minimum> {
        self.minimize_with(objective, start, bounds, &mut Vec::new())
    }

    /// The same with steps and gradient changes of a search before it, of a function with about the same curvature; those of this
    /// one are left in their place.
    pub(crate) fn minimize_with(
        &self,
        objective: &mut dyn FnMut(&[f64]) -> Result<(f64, Vec<f64>)>,
        start: &[f64],
        bounds: &[(f64, f64)],
        pairs: &mut Vec<(Vec<f64>, Vec<f64>)>,
    ) -> Result<Minimum> {
        check_dim("number of bounds", start.len(), bounds.len())?;
        check_count("max_evaluations", self.max_evaluations)?;
        if let Some((low, high)) = bounds.iter().find(|(low, high)| low.is_nan() || high.is_nan() || low > high) {
            return Err(Error::parameter("bounds", "a least value and a greater one", format!("({low}, {high})")));
        }
        let cut = |x: Vec<f64>| -> Vec<f64> { x.iter().zip(bounds).map(|(x, (l, h))| x.clamp(*l, *h)).collect() };
        let mut x = cut(start.to_vec());
        let Some((mut value, mut gradient)) = evaluate(objective, &x)? else {
            return Err(Error::parameter("start", "a point at which the function is finite", format!("{x:?}")));
        };
        let mut evaluations = 1;
        pairs.retain(|(s, y)| s.len() == start.len() && y.len() == start.len());
        loop {
            let free = projected(&x, &gradient, bounds);
            let steepness = free.iter().fold(0.0f64, |a, g| a.max(g.abs()));
            if steepness <= self.gradient_tolerance {
                return Ok(Minimum { point: x, value, evaluations, converged: true });
            }
            let mut d = quasi_newton(pairs, &free);
            d.iter_mut().zip(&free).for_each(|(d, g)| *d = if *g == 0.0 { 0.0 } else { *d });
            if dot(&d, &free) > -1e-12 * dot(&free, &free) {
                pairs.clear();
                d = free.iter().map(|g| -g).collect();
            }
            // Before anything is known about the curvature a step of length 1 at most.
            let mut step = if pairs.is_empty() { (1.0 / dot(&d, &d).sqrt()).min(1.0) } else { 1.0 };
            let (next, found) = loop {
                if evaluations >= self.max_evaluations {
                    return Ok(Minimum { point: x, value, evaluations, converged: false });
                }
                let next = cut(x.iter().zip(&d).map(|(x, d)| x + step * d).collect());
                let moved: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
                let found = evaluate(objective, &next)?;
                evaluations += 1;
                match found {
                    Some(found) if found.0 <= value + 1e-4 * dot(&gradient, &moved) => break (next, found),
                    Some((higher, _)) => {
                        // The parabola through both values and the slope.
                        let slope = dot(&gradient, &moved);
                        let least = -0.5 * slope / (higher - value - slope);
                        step *= if least.is_finite() { least.clamp(0.1, 0.5) } else { 0.5 };
                    }
                    None => step *= 0.25,
                }
                if step < 1e-10 {
                    // No progress is possible in this precision.
                    return Ok(Minimum { point: x, value, evaluations, converged: true });
                }
            };
            let s: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
            let y: Vec<f64> = found.1.iter().zip(&gradient).map(|(a, b)| a - b).collect();
            if dot(&s, &y) > 1e-10 * dot(&y, &y) {
                pairs.push((s, y));
                if pairs.len() > self.memory {
                    pairs.remove(0);
                }
            }
            let decrease = value - found.0;
            (x, value, gradient) = (next, found.0, found.1);
            if decrease <= self.decrease_tolerance * value.abs().max(1e-300) {
                return Ok(Minimum { point: x, value, evaluations, converged: true });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rosenbrock(x: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        Ok((a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b]))
    }

    #[test]
    fn the_valley_of_rosenbrock_is_followed_to_its_end() {
        let lbfgs = Lbfgs { gradient_tolerance: 1e-8, decrease_tolerance: 0.0, ..Lbfgs::default() };
        let found = lbfgs.minimize(&mut rosenbrock, &[-1.2, 1.0], &[(-10.0, 10.0); 2]).unwrap();
        assert!(found.converged && found.evaluations < 80, "{found:?}");
        assert!(found.point.iter().all(|x| (x - 1.0).abs() < 1e-7), "{found:?}");
        // With an upper bound below 1 the minimum lies on it: x₂ = x₁² there.
        let found = lbfgs.minimize(&mut rosenbrock, &[-1.2, 1.0], &[(-10.0, 0.5), (-10.0, 10.0)]).unwrap();
        assert_eq!(found.point[0], 0.5);
        assert!((found.point[1] - 0.25).abs() < 1e-7, "{found:?}");
    }

    #[test]
    fn infinite_values_and_indefinite_matrices_shorten_the_step() {
        let mut barrier = |x: &[f64]| {
            if x[0] > 2.0 {
                return Err(Error::NotPositiveDefinite { pivot: 0, suggested_penalty: 1.0 });
            }
            Ok(if x[0] <= 0.0 { (f64::INFINITY, vec![0.0]) } else { (x[0] - x[0].ln(), vec![1.0 - 1.0 / x[0]]) })
        };
        let found = Lbfgs::default().minimize(&mut barrier, &[0.01], &[(-100.0, 100.0)]).unwrap();
        assert!((found.point[0] - 1.0).abs() < 1e-4, "{found:?}");
        assert!(Lbfgs::default().minimize(&mut barrier, &[-1.0], &[(-100.0, 100.0)]).is_err());
    }

    #[test]
    fn errors_of_the_function_end_the_search() {
        let mut stop = |_: &[f64]| Err(Error::Interrupted);
        assert!(matches!(Lbfgs::default().minimize(&mut stop, &[0.0], &[(0.0, 1.0)]), Err(Error::Interrupted)));
        assert!(Lbfgs::default().minimize(&mut rosenbrock, &[0.0; 2], &[(1.0, 0.0); 2]).is_err());
    }
}
