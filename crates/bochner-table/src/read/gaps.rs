//! Empty cells of dense rows: NaN in arrays and in LIBSVM files.

use super::columns::{Thinned, absent};
use super::schema::{Column, Kind, Missing};
use super::{Element, Result, Visit};
use bochner::Error;
use bochner::rows::RowBlock;
use ndarray::ArrayView2;
use std::borrow::Cow;

/// What becomes of NaN.
#[derive(Debug, Clone)]
pub(super) struct Gaps {
    pub(super) missing: Missing,
    /// What fills the gaps of every input.
    pub(super) fills: Vec<Option<f64>>,
    /// What is said about a gap to users of a model.
    pub(super) advice: Option<&'static str>,
    /// Whether all of these are targets: labels of another array.
    pub(super) labels: bool,
}

impl Gaps {
    /// NaN is refused.
    pub(super) fn none() -> Self {
        Gaps { missing: Missing::Refuse, fills: Vec::new(), advice: None, labels: false }
    }

    /// NaN becomes what the columns say.
    pub(super) fn known(missing: Missing, inputs: &[Column]) -> Self {
        let fill = |column: &Column| match column.kind {
            Kind::Number { fill } => fill.or(missing.fills().then_some(0.0)),
            Kind::Words { .. } => None,
        };
        Gaps { missing, fills: inputs.iter().map(fill).collect(), ..Gaps::none() }
    }

    /// NaN becomes the mean or the median of its column: `rows` hands out all rows of `d` numbers each, block by block.
    /// `empty` makes the error about a column that has neither.
    pub(super) fn learn(
        missing: Missing,
        d: usize,
        rows: impl FnOnce(&mut dyn FnMut(&[f64])) -> Result<()>,
        empty: impl Fn(usize) -> Error,
    ) -> Result<Self> {
        let mut fills = vec![missing.fills().then_some(0.0); d];
        match missing {
            Missing::Mean => {
                let mut sums = vec![(0.0, 0u64); d];
                rows(&mut |block| each(block, d, |j, v| sums[j] = (sums[j].0 + v, sums[j].1 + 1)))?;
                for (j, (fill, (sum, n))) in fills.iter_mut().zip(sums).enumerate() {
                    *fill = if n > 0 { Some(sum / n as f64) } else { return Err(empty(j)) };
                }
            }
            Missing::Median => {
                let mut values = vec![Thinned::default(); d];
                rows(&mut |block| each(block, d, |j, v| values[j].push(v)))?;
                for (j, (fill, values)) in fills.iter_mut().zip(&values).enumerate() {
                    *fill = if values.is_empty() { return Err(empty(j)) } else { Some(values.median()) };
                }
            }
            Missing::Refuse | Missing::Zero | Missing::Drop => {}
        }
        Ok(Gaps { missing, fills, ..Gaps::none() })
    }

    /// What is said about a gap.
    pub(super) fn absent(&self, target: bool) -> &'static str {
        absent(target || self.labels, self.missing, self.advice)
    }

    /// Whether rows may hold NaN on their way through.
    pub(super) fn allowed(&self) -> bool {
        self.missing != Missing::Refuse
    }

    /// What fills the gaps of input `j`.
    pub(super) fn fill(&self, j: usize) -> Option<f64> {
        self.fills.get(j).copied().flatten()
    }

    /// Hands rows of `d` inputs and `t` targets over with their gaps mended; whether any were left. `untold` makes the error
    /// about a row whose target is missing.
    pub(super) fn deliver<R: Element>(
        &self,
        (d, t): (usize, usize),
        (inputs, targets): (&[R], &[R]),
        untold: impl Fn(usize) -> Error,
        visit: Visit<'_, R>,
    ) -> Result<bool> {
        let (mut rows, mut labels) = (Cow::Borrowed(inputs), Cow::Borrowed(targets));
        let n = match self.allowed() {
            true => self.mend((d, t), rows.to_mut(), labels.to_mut()).map_err(untold)?,
            false => inputs.len() / d.max(1),
        };
        if n > 0 {
            visit(RowBlock {
                rows: ArrayView2::from_shape((n, d), &rows).expect("n times d numbers"),
                targets: ArrayView2::from_shape((n, t), &labels).expect("n times t numbers"),
                weights: None,
            })?;
        }
        Ok(n > 0)
    }

    /// Fills gaps in or takes their rows out; the number of rows that are left, or the row whose target is missing.
    fn mend<R: Element>(
        &self,
        (d, t): (usize, usize),
        inputs: &mut Vec<R>,
        targets: &mut Vec<R>,
    ) -> std::result::Result<usize, usize> {
        let n = inputs.len() / d.max(1);
        if R::all_finite(inputs) && R::all_finite(targets) {
            return Ok(n);
        }
        let mut kept = 0;
        for i in 0..n {
            let row = &mut inputs[i * d..][..d];
            for (value, fill) in row.iter_mut().zip(&self.fills) {
                if let (true, Some(fill)) = (value.is_nan(), fill) {
                    *value = R::from_f64(*fill);
                }
            }
            let whole = !row.iter().any(|v| v.is_nan());
            let known = !targets[i * t..][..t].iter().any(|v| v.is_nan());
            if !known && self.missing != Missing::Drop {
                return Err(i);
            }
            if whole && known {
                inputs.copy_within(i * d..(i + 1) * d, kept * d);
                targets.copy_within(i * t..(i + 1) * t, kept * t);
                kept += 1;
            }
        }
        inputs.truncate(kept * d);
        targets.truncate(kept * t);
        Ok(kept)
    }
}

fn each(block: &[f64], d: usize, mut visit: impl FnMut(usize, f64)) {
    for row in block.chunks_exact(d) {
        row.iter().enumerate().filter(|(_, v)| !v.is_nan()).for_each(|(j, v)| visit(j, *v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;

    fn mended(missing: Missing) -> std::result::Result<(usize, Vec<f64>, Vec<f64>), usize> {
        let rows = [1.0, 10.0, NAN, 20.0, 4.0, NAN, 4.0, 60.0];
        let blocks = |visit: &mut dyn FnMut(&[f64])| {
            rows.chunks(4).for_each(visit);
            Ok(())
        };
        let gaps = Gaps::learn(missing, 2, blocks, |j| panic!("column {j} has values"));
        let (mut inputs, mut targets) = (rows.to_vec(), vec![0.0, 1.0, 2.0, 3.0]);
        let kept = gaps.unwrap().mend((2, 1), &mut inputs, &mut targets)?;
        Ok((kept, inputs, targets))
    }

    #[test]
    fn gaps_get_what_was_asked_for() {
        let all = vec![0.0, 1.0, 2.0, 3.0];
        let mean = vec![1.0, 10.0, 3.0, 20.0, 4.0, 30.0, 4.0, 60.0];
        assert_eq!(mended(Missing::Mean), Ok((4, mean, all.clone())));
        let median = vec![1.0, 10.0, 4.0, 20.0, 4.0, 20.0, 4.0, 60.0];
        assert_eq!(mended(Missing::Median), Ok((4, median, all.clone())));
        let zero = vec![1.0, 10.0, 0.0, 20.0, 4.0, 0.0, 4.0, 60.0];
        assert_eq!(mended(Missing::Zero), Ok((4, zero, all)));
        assert_eq!(mended(Missing::Drop), Ok((2, vec![1.0, 10.0, 4.0, 60.0], vec![0.0, 3.0])));
    }

    #[test]
    fn a_missing_target_is_never_filled_in() {
        let gaps = Gaps::learn(Missing::Zero, 1, |_| Ok(()), |j| panic!("column {j} is filled with zeros")).unwrap();
        assert_eq!(gaps.mend((1, 1), &mut vec![1.0, 2.0], &mut vec![1.0, NAN]), Err(1));
    }
}
