use crate::error::{Error, Result, check_count, check_dim};
use crate::scalar::Real;
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

/// How real numbers become the bits that a light modulator shows.
///
/// Bits are the numbers 0 and 1. Comparisons are strict: a value at a threshold is 0. Ranges `low..high` have one entry for
/// all columns or one for each; where they are empty, [`resolve`](Self::resolve) takes the smallest and the largest value of
/// every column. A constant column becomes zeros.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Encoding {
    /// One bit: `x > threshold`.
    Threshold {
        /// What a value must exceed.
        threshold: f64,
    },
    /// The bits of `⌊2ᵇ (x − low)/(high − low)⌋` in `0..2ᵇ`, highest first.
    BitPlanes {
        /// `b`, from 1 to 24.
        bits: u32,
        /// Where the range begins.
        #[serde(default)]
        low: Vec<f64>,
        /// Where it ends.
        #[serde(default)]
        high: Vec<f64>,
    },
    /// `levels` bits, of which the first ones are 1: bit `l` is `x > low + (high − low)(l + 1)/(levels + 1)`.
    ///
    /// The Hamming distance of two codes grows with the distance of the values, which bit planes do not offer.
    Thermometer {
        /// Number of bits, at most 1,024.
        levels: u32,
        /// Where the range begins.
        #[serde(default)]
        low: Vec<f64>,
        /// Where it ends.
        #[serde(default)]
        high: Vec<f64>,
    },
}

/// Entry `column` of a list that may have one entry for all.
fn entry(list: &[f64], column: usize) -> f64 {
    list[if list.len() == 1 { 0 } else { column }]
}

impl Encoding {
    /// Bits per value.
    pub fn planes(&self) -> usize {
        match self {
            Encoding::Threshold { .. } => 1,
            Encoding::BitPlanes { bits, .. } => *bits as usize,
            Encoding::Thermometer { levels, .. } => *levels as usize,
        }
    }

    fn range(&self) -> Option<(&[f64], &[f64])> {
        match self {
            Encoding::Threshold { .. } => None,
            Encoding::BitPlanes { low, high, .. } | Encoding::Thermometer { low, high, .. } => Some((low, high)),
        }
    }

    /// Accepts a finite threshold, and numbers of bits in range.
    pub(crate) fn check_bits(&self) -> Result<()> {
        match self {
            Encoding::Threshold { threshold } if !threshold.is_finite() => {
                Err(Error::parameter("binarize", "a finite threshold", threshold))
            }
            Encoding::BitPlanes { bits, .. } if !(1..=24).contains(bits) => {
                Err(Error::parameter("levels", "from 1 to 24 bits for bit planes", bits))
            }
            Encoding::Thermometer { levels, .. } if !(1..=1024).contains(levels) => {
                Err(Error::parameter("levels", "from 1 to 1024", levels))
            }
            _ => Ok(()),
        }
    }

    /// Accepts parameters in range for rows of `input_dim` numbers.
    ///
    /// # Errors
    /// A threshold or a range that is not finite or not known yet, lists of another length, too few or too many bits.
    pub(crate) fn check(&self, input_dim: usize) -> Result<()> {
        self.check_bits()?;
        let Some((low, high)) = self.range() else { return Ok(()) };
        if low.is_empty() && high.is_empty() {
            return Err(Error::Unsupported {
                what: "encoding",
                reason: "its range is to be found from rows; resolve the description first".into(),
            });
        }
        for (name, list) in [("number of lower ends", low), ("number of upper ends", high)] {
            if list.len() != 1 {
                check_dim(name, input_dim, list.len())?;
            }
        }
        for j in 0..input_dim {
            let (low, high) = (entry(low, j), entry(high, j));
            if !(low.is_finite() && high.is_finite() && low <= high) {
                let found = format!("{low} to {high} in column {j}");
                return Err(Error::parameter("range of the encoding", "finite and not reversed", found));
            }
        }
        Ok(())
    }

    /// The encoding with its ranges found from rows, where they were empty.
    ///
    /// # Errors
    /// No rows to find them from.
    pub fn resolve(&self, sample: ArrayView2<'_, f64>) -> Result<Self> {
        let Some(([], [])) = self.range() else { return Ok(self.clone()) };
        check_count("number of rows", sample.nrows())?;
        let fold = |start: f64, pick: fn(f64, f64) -> f64| -> Vec<f64> {
            sample.columns().into_iter().map(|column| column.iter().fold(start, |a, &b| pick(a, b))).collect()
        };
        let (low, high) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
        Ok(match self {
            Encoding::Threshold { .. } => self.clone(),
            Encoding::BitPlanes { bits, .. } => Encoding::BitPlanes { bits: *bits, low, high },
            Encoding::Thermometer { levels, .. } => Encoding::Thermometer { levels: *levels, low, high },
        })
    }

    /// The value of column `column` at the place `at`, between -1 and 1, of the range that the bits tell apart.
    pub(crate) fn at(&self, column: usize, at: f64) -> f64 {
        match self {
            Encoding::Threshold { threshold } => threshold + at,
            Encoding::BitPlanes { low, high, .. } | Encoding::Thermometer { low, high, .. } => {
                let (low, high) = (entry(low, column), entry(high, column));
                low + 0.5 * (1.0 + at) * (high - low)
            }
        }
    }

    /// Writes the bits of a row: those of its first value, those of its second one, ….
    ///
    /// # Panics
    /// If `out` is not [`planes`](Self::planes) times as long as the row, and for numbers of bits out of range.
    pub fn encode<R: Real>(&self, row: &[R], out: &mut [R]) {
        assert_eq!(out.len(), self.planes() * row.len(), "{} bits for every value", self.planes());
        let bit = |set: bool| if set { R::ONE } else { R::ZERO };
        match self {
            Encoding::Threshold { threshold } => {
                // Compared in double precision: rounding the threshold to single could move it past a value.
                out.iter_mut().zip(row).for_each(|(o, x)| *o = bit(Real::to_f64(*x) > *threshold));
            }
            Encoding::BitPlanes { bits, low, high } => {
                let count = f64::from(1u32 << bits);
                for (j, (x, out)) in row.iter().zip(out.chunks_exact_mut(*bits as usize)).enumerate() {
                    let (low, high) = (entry(low, j), entry(high, j));
                    let place = (Real::to_f64(*x) - low) / (high - low) * count;
                    // A constant column divides by zero: whatever comes of it is 0.
                    let level = if high > low { place.floor().clamp(0.0, count - 1.0) as u32 } else { 0 };
                    out.iter_mut().enumerate().for_each(|(k, o)| *o = bit(level >> (bits - 1 - k as u32) & 1 == 1));
                }
            }
            Encoding::Thermometer { levels, low, high } => {
                let steps = f64::from(levels + 1);
                for (j, (x, out)) in row.iter().zip(out.chunks_exact_mut(*levels as usize)).enumerate() {
                    let (low, high) = (entry(low, j), entry(high, j));
                    for (l, o) in out.iter_mut().enumerate() {
                        let threshold = low + (high - low) * ((l + 1) as f64 / steps);
                        *o = bit(high > low && Real::to_f64(*x) > threshold);
                    }
                }
            }
        }
    }

    /// All rows encoded.
    pub(crate) fn encode_rows(&self, rows: ArrayView2<'_, f64>) -> ndarray::Array2<f64> {
        let mut out = ndarray::Array2::zeros((rows.nrows(), self.planes() * rows.ncols()));
        for (row, mut out) in rows.rows().into_iter().zip(out.rows_mut()) {
            self.encode(&row.to_vec(), out.as_slice_mut().expect("rows of a fresh array are contiguous"));
        }
        out
    }
}

/// The threshold of a binariser with the smallest error on validation data, and that error.
///
/// Candidates are quantiles of all values in `rows`, `candidates` of them at equal steps strictly inside the range, each
/// taken once; `error` trains with a threshold and says how well it went. Of equal errors the smaller threshold wins.
///
/// # Errors
/// No rows or candidates, an error that is NaN throughout, and whatever `error` returns.
///
/// ```
/// use bochner::feature::choose_threshold;
/// let rows = ndarray::array![[0.0, 0.2], [0.8, 1.0]];
/// let (threshold, error) = choose_threshold(rows.view(), 9, |t| Ok((t - 0.7f64).abs()))?;
/// assert_eq!((threshold, error < 0.11), (0.8, true));
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn choose_threshold(
    rows: ArrayView2<'_, f64>,
    candidates: usize,
    mut error: impl FnMut(f64) -> Result<f64>,
) -> Result<(f64, f64)> {
    check_count("number of values in rows", rows.len())?;
    check_count("candidates", candidates)?;
    // More candidates than values would be the same ones again.
    let candidates = candidates.min(rows.len());
    crate::rows::check_finite("rows", rows, 0)?;
    let mut values: Vec<f64> = rows.iter().copied().collect();
    values.sort_by(f64::total_cmp);
    let place = |i: usize| values[((i + 1) * values.len() / (candidates + 1)).min(values.len() - 1)];
    let mut tried: Vec<f64> = (0..candidates).map(place).collect();
    tried.dedup();
    let mut best: Option<(f64, f64)> = None;
    for threshold in tried {
        let found = error(threshold)?;
        if !found.is_nan() && best.is_none_or(|(_, least)| found < least) {
            best = Some((threshold, found));
        }
    }
    best.ok_or_else(|| Error::parameter("error", "a number for at least one threshold", f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn bits(encoding: &Encoding, row: &[f64]) -> Vec<u8> {
        let mut out = vec![f64::NAN; encoding.planes() * row.len()];
        encoding.encode(row, &mut out);
        out.iter().map(|&b| b as u8).collect()
    }

    #[test]
    fn a_value_at_the_threshold_is_zero() {
        let encoding = Encoding::Threshold { threshold: 0.5 };
        assert_eq!(bits(&encoding, &[0.5, 0.5 + f64::EPSILON, -3.0, 7.0]), [0, 1, 0, 1]);
        // 0.1 in single precision lies above 0.1 in double precision: its own value decides.
        let mut out = [f32::NAN];
        Encoding::Threshold { threshold: 0.1 }.encode(&[0.1f32], &mut out);
        assert_eq!(out, [1.0]);
    }

    #[test]
    fn bit_planes_are_the_digits_of_the_level() {
        let encoding = Encoding::BitPlanes { bits: 3, low: vec![0.0], high: vec![8.0] };
        for (value, digits) in [(0.0, [0, 0, 0]), (5.9, [1, 0, 1]), (8.0, [1, 1, 1]), (-1.0, [0, 0, 0]), (99.0, [1; 3])]
        {
            assert_eq!(bits(&encoding, &[value]), digits, "{value}");
        }
    }

    #[test]
    fn thermometers_count_the_thresholds_below() {
        let encoding = Encoding::Thermometer { levels: 3, low: vec![0.0, 0.0], high: vec![4.0, 8.0] };
        assert_eq!(bits(&encoding, &[2.0, 6.5]), [1, 0, 0, 1, 1, 1]);
        assert_eq!(bits(&encoding, &[-1.0, 100.0]), [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn constant_columns_become_zeros() {
        let rows = array![[1.0, 5.0], [3.0, 5.0]];
        let planes = Encoding::BitPlanes { bits: 2, low: vec![], high: vec![] };
        let levels = Encoding::Thermometer { levels: 2, low: vec![], high: vec![] };
        for encoding in [planes, levels] {
            assert!(encoding.check(2).is_err());
            let encoding = encoding.resolve(rows.view()).unwrap();
            encoding.check(2).unwrap();
            assert_eq!(bits(&encoding, &[3.0, 5.0]), [1, 1, 0, 0]);
            assert_eq!(bits(&encoding, &[1.0, 6.0]), [0, 0, 0, 0]);
        }
    }

    #[test]
    fn encodings_out_of_range_are_refused() {
        assert!(Encoding::Threshold { threshold: f64::NAN }.check(1).is_err());
        for bits in [0, 25] {
            assert!(Encoding::BitPlanes { bits, low: vec![0.0], high: vec![1.0] }.check(1).is_err());
        }
        for (low, high) in [(vec![1.0], vec![0.0]), (vec![0.0; 2], vec![1.0; 3]), (vec![0.0], vec![f64::INFINITY])] {
            assert!(Encoding::Thermometer { levels: 4, low, high }.check(3).is_err());
        }
        assert!(Encoding::Thermometer { levels: 0, low: vec![0.0], high: vec![1.0] }.check(3).is_err());
        assert!(choose_threshold(array![[1.0]].view(), 0, Ok).is_err());
        assert!(choose_threshold(array![[1.0]].view(), 1, |_| Ok(f64::NAN)).is_err());
        assert!(choose_threshold(ndarray::Array2::zeros((0, 3)).view(), 4, Ok).is_err());
    }

    #[test]
    fn the_threshold_with_the_smallest_error_is_chosen_once_among_equals() {
        let rows = array![[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]];
        let mut tried = Vec::new();
        let best = choose_threshold(rows.view(), 5, |t| {
            tried.push(t);
            Ok((t - 2.0).abs())
        });
        assert_eq!(best.unwrap(), (2.0, 0.0));
        assert_eq!(tried, [0.0, 1.0, 2.0, 3.0]);
    }
}
