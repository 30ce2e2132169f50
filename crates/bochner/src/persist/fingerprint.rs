use super::container::malformed;
use crate::error::Result;
use crate::feature::FeatureMap;
use crate::scalar::{Real, Scalar};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

/// By what one draw of a map is told from another: four sums, with different weights, over the features of one fixed row,
/// and their length.
///
/// A file says from which description its map was drawn, and relies on every later version to draw the same one. Where a
/// version does not, the sums differ, and the file is refused instead of answered from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    sums: [f64; 4],
    norm: f64,
}

impl Fingerprint {
    /// That of a map, at this row.
    pub(crate) fn of<M: FeatureMap + ?Sized>(map: &M, row: &[f64]) -> Result<Self> {
        let row: Vec<M::Real> = row.iter().map(|v| M::Real::from_f64(*v)).collect();
        let row = ArrayView2::from_shape((1, row.len()), &row).map_err(|e| malformed(e.to_string()))?;
        let (mut sums, mut square) = ([0.0; 4], 0.0);
        for (j, feature) in map.transform(row)?.iter().enumerate() {
            let (slow, fast) = ((j + 1) as f64, std::f64::consts::SQRT_2 * (j + 1) as f64);
            let (re, im) = (Real::to_f64(feature.re()), Real::to_f64(feature.im()));
            // Imaginary parts count with other weights, so that they cannot take the place of real ones.
            let weights = [libm::cos(slow), libm::sin(slow), libm::cos(fast), libm::sin(fast)];
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum += weights[k] * re + weights[3 - k] * im;
            }
            square += re * re + im * im;
        }
        Ok(Fingerprint { sums, norm: square.sqrt() })
    }

    /// Whether both are of one draw, rounded as each processor likes.
    pub(crate) fn agrees<R: Real>(&self, other: &Fingerprint) -> bool {
        let tolerance = if R::NAME == "f32" { 1e-3 } else { 1e-8 } * self.norm.max(other.norm);
        let near = |a: f64, b: f64| (a - b).abs() <= tolerance;
        near(self.norm, other.norm) && self.sums.iter().zip(other.sums).all(|(a, b)| near(*a, b))
    }
}
