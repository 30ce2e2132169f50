use super::Stream;
use crate::error::{Error, Result};
use std::sync::Arc;

/// Draws an index with probability proportional to its weight.
///
/// ```
/// use bochner::random::{Discrete, Role, Seed, Stream};
/// let degrees = Discrete::new(&[0.0, 1.0, 3.0])?;
/// assert_eq!(degrees.probability(2), 0.75);
/// assert_ne!(degrees.draw(&mut Stream::new(Seed::new(7), Role::Degree, 0)), 0);
/// # Ok::<(), bochner::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Discrete {
    /// Sums of the weights up to and including each index.
    sums: Arc<[f64]>,
}

impl Discrete {
    /// The distribution with these weights.
    ///
    /// # Errors
    /// Weights that are negative or not finite, and weights whose sum is not positive and finite.
    pub fn new(weights: &[f64]) -> Result<Self> {
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(weights.len());
        for &weight in weights {
            crate::error::check_non_negative("weight", weight)?;
            sum += weight;
            sums.push(sum);
        }
        // A subnormal sum would leave no room below it for the targets of `draw`.
        if sum.is_normal() {
            Ok(Discrete { sums: sums.into() })
        } else {
            Err(Error::parameter("weights", "non-negative numbers with a positive finite sum", sum))
        }
    }

    fn total(&self) -> f64 {
        self.sums[self.sums.len() - 1]
    }

    /// The probability of `index`; 0 past the last one.
    pub fn probability(&self, index: usize) -> f64 {
        let Some(sum) = self.sums.get(index) else { return 0.0 };
        (sum - if index == 0 { 0.0 } else { self.sums[index - 1] }) / self.total()
    }

    /// An index, from one uniform number. Indices without weight are never drawn.
    pub fn draw(&self, stream: &mut Stream) -> usize {
        // The first sum above the target belongs to an index that has raised it. The target is below the total: the largest
        // uniform number is 1 - 2^-53, and its product with the total rounds down to less than the total.
        let target = stream.uniform() * self.total();
        self.sums.partition_point(|&sum| sum <= target)
    }
}
