use super::nystrom::Nystrom;
use super::operator::{Normal, evaluate, last_state, packed, padded, roots, unpack};
use super::tied::Tied;
use super::{Operator, SolveReport};
use crate::accumulate::{Gathered, adjoint_times};
use crate::context::Journal;
use crate::error::{Error, Result, check_count};
use crate::feature::{FeatureMap, Spread};
use crate::interrupt;
use crate::linalg::Tile;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Options of averaged stochastic gradients.
///
/// Rows are taken in the order of the source, in batches of 256: data sorted by target should be shuffled first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StochasticGradient {
    /// Passes over the rows that take steps.
    pub passes: usize,
    /// Vectors of the low-rank model that evens out the spectrum; 0 for none.
    pub rank: usize,
}

impl Default for StochasticGradient {
    fn default() -> Self {
        StochasticGradient { passes: 10, rank: 100 }
    }
}

impl StochasticGradient {
    /// Passes over the rows: right-hand sides, a preconditioner, the length of steps, the steps, and the residual. Where steps
    /// prove too long there are more.
    pub(crate) fn all_passes(&self) -> usize {
        self.passes + 4
    }
}

/// Rows of a batch.
const BATCH: usize = 256;

/// Steps that are halved before giving up.
const HALVINGS: usize = 6;

/// Averaged stochastic gradients with a preconditioned, constant step.
///
/// The step is the largest that batches of this size bear: `1/(nβ/m + λᵣ + α)` for `β` the largest preconditioned squared
/// length of a row (Ma, Bassily and Belkin 2018, theorem 4); iterates of the second half of all passes are averaged.
///
/// With a spread the coefficients are tied to parameters, which then take the steps; coefficients are returned. A journal
/// keeps the state after every pass.
pub(crate) fn stochastic_gradient<R: Real, M: FeatureMap<Real = R, Output = R>>(
    normal: &mut Normal<'_, R, M>,
    spread: Option<&Spread>,
    penalty: f64,
    options: &StochasticGradient,
    mut journal: Option<&mut dyn Journal>,
) -> Result<(Array2<f64>, SolveReport)> {
    check_count("passes", options.passes)?;
    let epsilon = Real::to_f64(R::epsilon());
    let model = match spread {
        Some(spread) => Nystrom::new(&mut Tied::new(normal, spread), options.rank, penalty, epsilon)?,
        None => Nystrom::new(normal, options.rank, penalty, epsilon)?,
    };
    let total = normal.totals.weight_sum;
    let top = match &model {
        Some(model) => model.tail,
        None => spread.map_or_else(|| normal.diagonal.iter().sum(), |spread| spread.trace(&normal.diagonal)),
    };
    let longest = longest_row(normal, spread, model.as_ref())?;
    let mut step = 1.0 / (total * longest / BATCH as f64 + top + penalty).max(f64::MIN_POSITIVE);
    let rhs = gathered(spread, normal.rhs.clone());
    let size = rhs.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mut residual = f64::INFINITY;
    let mut descent = Descent::new(rhs.dim());
    if let Some(journal) = &mut journal
        && let Some(state) = last_state(*journal)?
    {
        descent.restore(&state)?;
        step *= 0.5f64.powi(descent.halvings as i32);
    }
    while descent.halvings < HALVINGS {
        while descent.pass < options.passes {
            descent.pass(normal, spread, penalty, options.passes, step, model.as_ref())?;
            if let Some(journal) = &mut journal {
                journal.keep(descent.state().view())?;
            }
        }
        let x = &descent.average;
        let coefficients = scattered(spread, x.view());
        let mut image = gathered(spread, normal.apply(coefficients.view())?);
        image.scaled_add(penalty, x);
        let left = (&rhs - &image).iter().map(|v| v * v).sum::<f64>().sqrt();
        residual = if size > 0.0 { left / size } else { 0.0 };
        // Zero coefficients would leave 1: more than that is not a descent.
        if residual.is_finite() && residual < 1.0 {
            return Ok((coefficients, SolveReport::iterative("sgd", options.passes, residual)));
        }
        step *= 0.5;
        descent = Descent { halvings: descent.halvings + 1, ..Descent::new(rhs.dim()) };
    }
    Err(Error::NotConverged { iterations: options.passes, residual, tolerance: 1.0 })
}

/// Coefficients of parameters; those that are not tied are their own parameters.
fn scattered(spread: Option<&Spread>, x: ArrayView2<'_, f64>) -> Array2<f64> {
    spread.map_or_else(|| x.to_owned(), |spread| spread.scatter(x))
}

/// The adjoint of [`scattered`].
fn gathered(spread: Option<&Spread>, x: Array2<f64>) -> Array2<f64> {
    match spread {
        Some(spread) => spread.gather(x.view()),
        None => x,
    }
}

/// Largest preconditioned squared length of a centred row of the first block.
fn longest_row<R: Real, M: FeatureMap<Real = R, Output = R>>(
    normal: &mut Normal<'_, R, M>,
    spread: Option<&Spread>,
    model: Option<&Nystrom>,
) -> Result<f64> {
    // A row of tied coefficients has one vector of parameters for every output.
    let outputs = spread.map_or(1, Spread::outputs);
    let means = normal.means.features.clone();
    let mut longest: Option<f64> = None;
    let done = normal.for_each(&mut |block| {
        let (dim, rows) = (block.features.cols(), block.features.rows().min((BATCH / outputs).max(1)));
        let centred = Array2::from_shape_fn((dim, rows), |(j, i)| {
            let root = Real::to_f64(block.sides.row(i)[block.sides.cols() - 1]);
            if root > 0.0 { Real::to_f64(block.features.row(i)[j]) / root - means[j] } else { 0.0 }
        });
        let centred = match spread {
            // Column a of row i stands for output a: the row's features there, zeros in the other outputs.
            Some(spread) => {
                let alone = Array2::from_shape_fn((dim, rows * outputs * outputs), |(j, e)| {
                    let (i, a, b) = (e / (outputs * outputs), e / outputs % outputs, e % outputs);
                    if a == b { centred[[j, i]] } else { 0.0 }
                });
                spread.gather(alone.view())
            }
            None => centred,
        };
        let image = model.map_or_else(|| centred.clone(), |model| model.apply(&centred));
        let mut sizes = vec![0.0; rows];
        for (a, b) in centred.rows().into_iter().zip(image.rows()) {
            for (column, (a, b)) in a.iter().zip(b).enumerate() {
                sizes[column / outputs] += a * b;
            }
        }
        longest = Some(sizes.into_iter().fold(0.0, f64::max));
        // One block says enough.
        Err(Error::Interrupted)
    });
    match (done, longest) {
        (_, Some(longest)) => Ok(longest),
        (done, None) => done.map(|()| 0.0),
    }
}

/// A descent between two passes.
#[derive(Debug)]
struct Descent {
    /// Steps that were too long.
    halvings: usize,
    /// Passes done.
    pass: usize,
    /// Number of iterates in the average.
    averaged: f64,
    x: Array2<f64>,
    average: Array2<f64>,
}

impl Descent {
    fn new(shape: (usize, usize)) -> Self {
        Descent { halvings: 0, pass: 0, averaged: 0.0, x: Array2::zeros(shape), average: Array2::zeros(shape) }
    }

    fn state(&self) -> Array2<f64> {
        packed(&[&self.x, &self.average], &[self.halvings as f64, self.pass as f64, self.averaged])
    }

    fn restore(&mut self, state: &Array2<f64>) -> Result<()> {
        let mut numbers = [0.0; 3];
        unpack(state, &mut [&mut self.x, &mut self.average], &mut numbers)?;
        (self.halvings, self.pass, self.averaged) = (numbers[0] as usize, numbers[1] as usize, numbers[2]);
        Ok(())
    }

    fn pass<R: Real, M: FeatureMap<Real = R, Output = R>>(
        &mut self,
        normal: &mut Normal<'_, R, M>,
        spread: Option<&Spread>,
        penalty: f64,
        passes: usize,
        step: f64,
        model: Option<&Nystrom>,
    ) -> Result<()> {
        let (dim, outputs) = normal.rhs.dim();
        let total = normal.totals.weight_sum;
        let means = normal.means.clone();
        let late = 2 * self.pass >= passes;
        normal.for_each(&mut |block| {
            for start in (0..block.features.rows()).step_by(BATCH) {
                interrupt::check()?;
                let range = start..(start + BATCH).min(block.features.rows());
                let batch =
                    Gathered { features: block.features.rows_in(range.clone()), sides: block.sides.rows_in(range) };
                let roots = roots(batch.sides);
                let weight: f64 = roots.iter().map(|r| Real::to_f64(*r) * Real::to_f64(*r)).sum();
                if weight <= 0.0 {
                    continue;
                }
                let coefficients = scattered(spread, self.x.view());
                let (values, width) = padded::<R>(coefficients.view());
                let shift = means.of(coefficients.view());
                let mut errors = evaluate(batch.features, Tile::new(&values, dim, width), &roots, &shift);
                let mut sums = vec![0.0; outputs];
                for (i, row) in errors.chunks_mut(width).enumerate() {
                    let root = Real::to_f64(roots[i]);
                    for j in 0..outputs {
                        let target = Real::to_f64(batch.sides.row(i)[j]) - root * means.targets[j];
                        let error = Real::to_f64(row[j]) - target;
                        row[j] = R::from_f64(error);
                        sums[j] += root * error;
                    }
                }
                let sides = Tile::new(&errors, roots.len(), width);
                let product = adjoint_times(Gathered { features: batch.features, sides });
                let scale = total / weight;
                let gradient = Array2::from_shape_fn((dim, outputs), |(i, j)| {
                    scale * (product[i * width + j] - means.features[i] * sums[j])
                });
                let mut gradient = gathered(spread, gradient);
                gradient.scaled_add(penalty, &self.x);
                let direction = model.map_or_else(|| gradient.clone(), |model| model.apply(&gradient));
                self.x.scaled_add(-step, &direction);
                if late {
                    self.averaged += 1.0;
                    let averaged = self.averaged;
                    self.average.zip_mut_with(&self.x, |mean, value| *mean += (value - *mean) / averaged);
                }
            }
            Ok(())
        })?;
        self.pass += 1;
        Ok(())
    }
}
