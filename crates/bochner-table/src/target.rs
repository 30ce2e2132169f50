//! Targets as a regression learns them: in units of their spread or, where they are skewed, of the spread of their logarithms.
//!
//! ```
//! use bochner_table::target::{TargetScale, TargetScaling};
//! let prices = [1.0, 10.0, 100.0];
//! let scale = TargetScale::logarithm(&prices)?;
//! assert!(prices.iter().all(|price| (scale.back(scale.learned(*price)) / price - 1.0).abs() < 1e-12));
//! assert_eq!(TargetScaling::default(), TargetScaling::Auto);
//! # Ok::<(), bochner::Error>(())
//! ```

use crate::score::Spread;
use bochner::{Error, Result, words};
use serde::{Deserialize, Serialize};

/// On which scale numbers are learned: one list for all doors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum TargetScaling {
    /// Logarithms of skewed positive targets, if held-out rows are predicted better by them
    #[default]
    Auto,
    /// Logarithms
    Log,
    /// The targets as they are
    None,
}

/// Centre and scale of a target in a regression.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetScale {
    /// Subtracted first.
    pub mean: f64,
    /// Then divided by.
    pub scale: f64,
    /// That both are of logarithms, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Logarithm>,
}

/// How logarithms become targets again: `y = c exp(l) - s`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logarithm {
    /// `s`, added to targets that may be zero.
    pub shift: f64,
    /// `c`, with which predictions of held-out rows have the mean of their targets: the exponential of a mean logarithm is
    /// less than the mean (Duan 1983, a smearing estimate).
    pub smearing: f64,
    /// The least and the largest logarithm that predictions may have: a little more than those of the training rows.
    pub least: f64,
    /// See [`least`](Self::least).
    pub most: f64,
}

/// Skewness from which logarithms are tried.
const SKEWED: f64 = 0.75;
/// Share of the range of logarithms by which predictions may leave it.
const BEYOND: f64 = 0.1;

/// The third standardised moment.
fn skewness(values: &[f64]) -> f64 {
    let spread = Spread::of(values.iter().copied());
    let (mean, deviation) = (values.iter().sum::<f64>() / values.len() as f64, spread.variance().sqrt());
    values.iter().map(|v| ((v - mean) / deviation).powi(3)).sum::<f64>() / values.len() as f64
}

impl TargetScale {
    /// Of the targets as they are.
    pub fn plain(mean: f64, scale: f64) -> Self {
        TargetScale { mean, scale, log: None }
    }

    /// Of logarithms; where some targets are zero, of the logarithms of their sum with the mean.
    ///
    /// # Errors
    /// Targets that are negative, or all the same.
    pub fn logarithm(values: &[f64]) -> Result<Self> {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        if !(least >= 0.0 && least.is_finite()) {
            return Err(Error::parameter("targets", "not negative for logarithms", words::significant(least, 4)));
        }
        let shift = if least > 0.0 { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 };
        let logs: Vec<f64> = values.iter().map(|value| (value + shift).ln()).collect();
        let (least, most) = logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), l| (a.min(*l), b.max(*l)));
        let spread = Spread::of(logs.iter().copied());
        let (mean, scale) = (logs.iter().sum::<f64>() / logs.len() as f64, spread.variance().sqrt());
        if !(scale > 0.0 && scale.is_finite() && mean.is_finite()) {
            return Err(Error::parameter("targets", "different positive numbers for logarithms", "one number"));
        }
        let beyond = BEYOND * (most - least);
        let log = Logarithm { shift, smearing: 1.0, least: least - beyond, most: most + beyond };
        Ok(TargetScale { mean, scale, log: Some(log) })
    }

    /// Whether logarithms may suit targets: they are not negative and skewed, and their logarithms are less so.
    pub(crate) fn is_skewed(values: &[f64]) -> bool {
        let Ok(scale) = Self::logarithm(values) else { return false };
        let logs: Vec<f64> = values.iter().map(|value| scale.learned(*value)).collect();
        let before = skewness(values);
        before > SKEWED && skewness(&logs).abs() < before
    }

    /// A target as the model learns it.
    pub fn learned(&self, value: f64) -> f64 {
        let value = self.log.map_or(value, |log| (value + log.shift).ln());
        (value - self.mean) / self.scale
    }

    /// What the model predicts, in the units of the target.
    pub fn back(&self, value: f64) -> f64 {
        let value = self.mean + self.scale * value;
        self.log.map_or(value, |log| log.smearing * value.clamp(log.least, log.most).exp() - log.shift)
    }

    /// How far a target is from its prediction, on the scale on which intervals have one width: logarithms, where they are
    /// learned.
    pub(crate) fn distance(&self, truth: f64, predicted: f64) -> f64 {
        match self.log {
            None => (truth - predicted).abs(),
            // A new row may be below what a logarithm has: it is as far as can be.
            Some(log) => ((truth + log.shift).max(f64::MIN_POSITIVE).ln()
                - ((predicted + log.shift) / log.smearing).max(f64::MIN_POSITIVE).ln())
            .abs(),
        }
    }

    /// The ends of an interval around a prediction, so far from it.
    pub(crate) fn ends(&self, predicted: f64, distance: f64) -> [f64; 2] {
        match self.log {
            None => [predicted - distance, predicted + distance],
            Some(log) => {
                let middle = (predicted + log.shift) / log.smearing;
                [-distance, distance].map(|by| middle * by.exp() - log.shift)
            }
        }
    }

    /// `± 3.2`, or `0.9 to 1.2 times the prediction`.
    pub(crate) fn width_in_words(&self, distance: f64) -> String {
        let Some(log) = self.log else { return format!("± {}", words::significant(distance, 3)) };
        let [low, high] = [-distance, distance].map(|by| words::significant(by.exp() / log.smearing, 3));
        let beside =
            if log.shift == 0.0 { String::new() } else { format!(" (both plus {})", words::significant(log.shift, 3)) };
        format!("from {low} to {high} times the prediction{beside}")
    }

    /// Lets predictions have the mean of their targets, on rows that the model was not fitted to.
    pub(crate) fn smear(&mut self, truth: impl Iterator<Item = f64>, predicted: impl Iterator<Item = f64>) {
        let Some(log) = &mut self.log else { return };
        let (mut sums, mut count) = ((0.0, 0.0), 0);
        for (truth, predicted) in truth.zip(predicted) {
            sums.0 += truth + log.shift;
            sums.1 += (predicted + log.shift) / log.smearing;
            count += 1;
        }
        let found = sums.0 / sums.1;
        if count > 0 && found.is_finite() && found > 0.0 {
            log.smearing = found;
        }
    }

    /// Whether a fit can have made it.
    pub(crate) fn is_sound(&self) -> bool {
        let sound = |log: Logarithm| {
            let finite = [log.shift, log.smearing, log.least, log.most].iter().all(|v| v.is_finite());
            finite && log.smearing > 0.0 && log.shift >= 0.0 && log.least <= log.most && log.most.exp().is_finite()
        };
        self.mean.is_finite() && self.scale.is_finite() && self.log.is_none_or(sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values whose logarithms are evenly spread about zero.
    fn skewed(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i as f64 + 0.5) / n as f64 * 4.0 - 2.0).exp()).collect()
    }

    #[test]
    fn logarithms_and_back_are_the_identity_with_and_without_zeros() {
        let mut values = skewed(200);
        for zeros in [false, true] {
            if zeros {
                values[0] = 0.0;
            }
            let scale = TargetScale::logarithm(&values).unwrap();
            assert_eq!(scale.log.unwrap().shift > 0.0, zeros);
            let learned: Vec<f64> = values.iter().map(|v| scale.learned(*v)).collect();
            let spread = Spread::of(learned.iter().copied());
            assert!(learned.iter().sum::<f64>().abs() < 1e-10 && (spread.variance() - 1.0).abs() < 1e-12);
            for (value, learned) in values.iter().zip(&learned) {
                assert!((scale.back(*learned) - value).abs() < 1e-12 * (1.0 + value));
            }
        }
        values[0] = -1.0;
        assert!(TargetScale::logarithm(&values).is_err() && !TargetScale::is_skewed(&values));
        assert!(TargetScale::logarithm(&[2.0, 2.0]).is_err());
    }

    #[test]
    fn only_skewed_targets_have_logarithms() {
        assert!(TargetScale::is_skewed(&skewed(500)));
        assert!(!TargetScale::is_skewed(&(0..500).map(|i| 1.0 + f64::from(i)).collect::<Vec<_>>()));
    }

    /// Of logarithms with normal noise of variance s² the mean is exp(s²/2) times the exponential of the mean.
    #[test]
    fn smearing_gives_predictions_the_mean_of_their_targets() {
        let mut scale = TargetScale::logarithm(&skewed(100)).unwrap();
        let noise = [-0.5f64, 0.5];
        let centers = [1.0, 3.0, 0.5, 2.0];
        let pairs: Vec<(f64, f64)> =
            centers.iter().flat_map(|c| noise.iter().map(move |e| (c * e.exp(), *c))).collect();
        scale.smear(pairs.iter().map(|p| p.0), pairs.iter().map(|p| p.1));
        assert!((scale.log.unwrap().smearing - 0.5f64.cosh()).abs() < 1e-12);
        let predicted = scale.back(0.3);
        // Both noises are at the ends of their interval.
        let middle = predicted / 0.5f64.cosh();
        let ends = scale.ends(predicted, 0.5);
        for (end, e) in ends.iter().zip(noise) {
            assert!((end / (middle * e.exp()) - 1.0).abs() < 1e-12);
            assert!((scale.distance(*end, predicted) - 0.5).abs() < 1e-12);
        }
        assert!(scale.back(1e300).is_finite() && scale.back(-1e300) > 0.0);
    }
}
