use crate::error::{Error, Result};
use crate::variance::Weights;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Mean variance of a sketch of one degree as a function of its number of draws, in the form the search needs: convex
/// and non-increasing.
///
/// Independent draws have `V/D`. Stacked TensorSRHT has the surrogate of the thesis (Table 5.1, D.4 and D.5)
/// `(V + (d'−1)C)/D` where `C > 0` or `D > d'`, and `(V − C)/D + C` otherwise: equal to the variance for `D ≤ d'` and for
/// multiples of `d'`, wherever `C ≤ 0`. Complex-to-real sketches put the means of variance and pseudo-variance in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// `V`: variance of a single draw.
    pub variance: f64,
    /// `C`: covariance of two draws of one block; 0 for independent draws.
    pub covariance: f64,
    /// `d'`: draws in a block; 1 for independent draws.
    pub block: usize,
}

impl Curve {
    /// The mean variance with `draws ≥ 1` draws.
    pub fn at(&self, draws: usize) -> f64 {
        let (v, c, d) = (self.variance, self.covariance, draws as f64);
        if c > 0.0 || draws > self.block {
            // Rounding may leave a complete block of degree 1 with less than nothing.
            ((v + (self.block as f64 - 1.0) * c) / d).max(0.0)
        } else {
            (v - c) / d + c
        }
    }

    /// The curve against columns, where a draw has two of them: the same at `2D` columns as at `D` draws, and in between what
    /// it is if a column has half of a draw.
    pub(super) fn of_halves(&self) -> Self {
        Curve { variance: 2.0 * self.variance - self.covariance, block: 2 * self.block, ..*self }
    }
}

/// What draws of one degree bring: `aₙ²` times a [`Curve`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// `n`.
    pub degree: u32,
    /// `aₙ²`, or any other factor of the variance.
    pub weight: f64,
    /// Mean variance against draws.
    pub curve: Curve,
}

impl Cost {
    fn at(&self, draws: usize) -> f64 {
        self.weight * self.curve.at(draws)
    }
}

/// Columns per degree, and the errors they are predicted to leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocation {
    /// Length of the rows it was made for.
    pub input_dim: usize,
    /// Subtracted from rows, where they are centred.
    pub centre: Option<Vec<f64>>,
    /// `columns[n]` columns for degree `n`, complex ones where features are; degree 0 is the constant and has none.
    pub columns: Vec<usize>,
    /// What they are drawn with: real where complex-to-real was asked for and real columns have less error.
    pub weights: Weights,
    /// Predicted mean variance over pairs: the surrogate that was minimised.
    pub variance: f64,
    /// Predicted mean squared bias over pairs: what the degrees left out amount to.
    pub bias: f64,
}

impl Allocation {
    /// The truncation degree.
    pub fn degree(&self) -> usize {
        self.columns.iter().rposition(|&columns| columns > 0).unwrap_or(0)
    }

    /// Predicted mean squared error over pairs.
    pub fn objective(&self) -> f64 {
        self.variance + self.bias
    }
}

/// What one more draw for a degree brings.
#[derive(PartialEq)]
struct Gain {
    gain: f64,
    place: usize,
}

impl Eq for Gain {}

impl Ord for Gain {
    /// The largest gain first; of equal ones the lowest degree.
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.place.cmp(&self.place))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The allocation of `total` draws with the least sum of costs, each degree getting at least one, and that sum.
///
/// Greedy by largest gain, which is optimal for convex costs (thesis, algorithm 4, started at one draw per degree as the
/// errata say). `O(p + total · log p)`.
///
/// # Errors
/// No degrees, more degrees than draws, or costs that are NaN.
///
/// ```
/// use bochner::feature::{Cost, Curve, allocate};
/// let cost = |degree, variance| Cost { degree, weight: 1.0, curve: Curve { variance, covariance: 0.0, block: 1 } };
/// let (draws, sum) = allocate(&[cost(1, 4.0), cost(2, 1.0)], 6)?;
/// assert_eq!((draws, sum), (vec![4, 2], 1.5));
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn allocate(costs: &[Cost], total: usize) -> Result<(Vec<usize>, f64)> {
    if costs.is_empty() || costs.len() > total {
        return Err(Error::parameter("number of draws", "at least one for each of the degrees", total));
    }
    if let Some(bad) = costs.iter().find(|cost| cost.at(1).is_nan()) {
        return Err(Error::parameter("variance of a degree", "a number", bad.at(1)));
    }
    let mut draws = vec![1; costs.len()];
    // One by one up to a million, then as many at once as make a million steps: time has an end.
    let step = (total >> 20).max(1);
    let gain =
        |place: usize, draws: usize| Gain { gain: costs[place].at(draws) - costs[place].at(draws + step), place };
    let mut heap: BinaryHeap<Gain> = (0..costs.len()).map(|place| gain(place, 1)).collect();
    let mut left = total - costs.len();
    while left > 0 {
        let best = heap.pop().expect("one entry per degree").place;
        let given = step.min(left);
        (draws[best], left) = (draws[best] + given, left - given);
        heap.push(gain(best, draws[best]));
    }
    let sum = costs.iter().zip(&draws).map(|(cost, &draws)| cost.at(draws)).sum();
    Ok((draws, sum))
}

/// Mean statistics over pairs: for every degree its cost, for every truncation degree the squared bias.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PairMeans {
    /// Costs of the degrees `1..=most` of positive coefficient, lowest first.
    pub(super) costs: Vec<Cost>,
    /// `bias[p]` for truncation at `p = 0..=most`.
    pub(super) bias: Vec<f64>,
}

/// The truncation degree between `least` and `most`, and the draws, of the least predicted error (thesis, algorithm 5).
///
/// Returns draws by degree with mean variance and squared bias. Where no degree in the range has room for its draws, the
/// largest below it that has is taken.
pub(super) fn optimize(means: &PairMeans, least: u32, total: usize) -> Result<(Vec<usize>, f64, f64)> {
    let most = means.bias.len() as u32 - 1;
    let mut best: Option<(Vec<usize>, f64, f64)> = None;
    for degree in (1..=most).rev() {
        if degree < least && best.is_some() {
            break;
        }
        let count = means.costs.iter().take_while(|cost| cost.degree <= degree).count();
        if count == 0 || count > total {
            continue;
        }
        let costs = &means.costs[..count];
        let (found, variance) = allocate(costs, total)?;
        let bias = means.bias[degree as usize];
        // From above: of equal objectives the smallest degree wins.
        if best.as_ref().is_none_or(|(_, v, b)| variance + bias <= v + b) {
            let mut draws = vec![0; costs[count - 1].degree as usize + 1];
            costs.iter().zip(found).for_each(|(cost, found)| draws[cost.degree as usize] = found);
            best = Some((draws, variance, bias));
        }
    }
    best.ok_or_else(|| Error::parameter("n_components", "enough for one degree of the kernel", total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Role, Seed, Stream};

    #[test]
    fn allocations_of_absurd_totals_take_no_longer_than_those_of_a_million() {
        let curve = Curve { variance: 1.0, covariance: 0.0, block: 1 };
        let costs = [1, 2, 3].map(|degree| Cost { degree, weight: 1.0 / f64::from(degree), curve });
        let start = std::time::Instant::now();
        let (draws, _) = allocate(&costs, 1 << 40).unwrap();
        assert_eq!(draws.iter().sum::<usize>(), 1 << 40);
        assert!(draws.is_sorted_by(|a, b| a >= b) && start.elapsed().as_secs() < 10);
    }

    fn exhaustive(costs: &[Cost], total: usize) -> f64 {
        match costs {
            [] => f64::INFINITY,
            [last] => last.at(total),
            [first, rest @ ..] => (1..=total - rest.len())
                .map(|draws| first.at(draws) + exhaustive(rest, total - draws))
                .fold(f64::INFINITY, f64::min),
        }
    }

    #[test]
    fn greedy_allocations_equal_exhaustive_search() {
        let mut draw = Stream::new(Seed::new(3), Role::Split, 0);
        for case in 0..200 {
            let count = 1 + case % 4;
            let costs: Vec<Cost> = (0..count)
                .map(|i| {
                    let variance = draw.exponential() * 3.0;
                    let block = 1 << draw.below(4);
                    // Covariances as sketches have them: between −V/(d'−1) and something positive.
                    let low = if block > 1 { -variance / (block as f64 - 1.0) } else { 0.0 };
                    let covariance = if block > 1 { low + draw.uniform() * (variance / 8.0 - low) } else { 0.0 };
                    Cost { degree: i + 1, weight: draw.uniform(), curve: Curve { variance, covariance, block } }
                })
                .collect();
            for total in count as usize..=14 {
                let (draws, sum) = allocate(&costs, total).unwrap();
                assert_eq!(draws.iter().sum::<usize>(), total);
                assert!(draws.iter().all(|&d| d >= 1));
                let best = exhaustive(&costs, total);
                assert!((sum - best).abs() <= 1e-12 * best, "{costs:?}, {total}: {sum} instead of {best}");
            }
        }
    }

    #[test]
    fn curves_never_rise_and_bend_upwards() {
        for covariance in [-1.0 / 7.0, -0.05, 0.0, 0.02] {
            let curve = Curve { variance: 1.0, covariance, block: 8 };
            for d in 1..40 {
                assert!(curve.at(d + 1) <= curve.at(d) + 1e-15);
                assert!(curve.at(d) + curve.at(d + 2) >= 2.0 * curve.at(d + 1) - 1e-15, "{covariance} {d}");
            }
        }
    }

    #[test]
    fn ties_go_to_the_lowest_degree_and_the_smallest_truncation() {
        let cost = |degree| Cost { degree, weight: 0.0, curve: Curve { variance: 0.0, covariance: 0.0, block: 1 } };
        let means = PairMeans { costs: (1..=4).map(cost).collect(), bias: vec![1.0, 0.5, 0.25, 0.25, 0.25] };
        assert_eq!(optimize(&means, 1, 9).unwrap().0, [0, 8, 1]);
        // Budgets without room for the asked range take what fits; missing degrees get nothing.
        assert_eq!(optimize(&means, 3, 2).unwrap().0, [0, 1, 1]);
        let gap = PairMeans { costs: vec![cost(2), cost(4)], bias: vec![1.0, 1.0, 0.5, 0.5, 0.0] };
        assert_eq!(optimize(&gap, 1, 3).unwrap().0, [0, 0, 2, 0, 1]);
        assert!(optimize(&means, 1, 0).is_err());
        assert!(allocate(&[], 3).is_err() && allocate(&means.costs, 3).is_err());
    }
}
