//! Empty cells of dense rows: NaN in arrays and in LIBSVM files.

use super::columns::{absent, empty, view};
use super::findings::Facts;
use super::input::Input;
use super::judge::Verdict;
use super::schema::{Column, Kind, Missing, Schema};
use super::{Element, Options, Result, Visit};
use bochner::rows::RowBlock;
use bochner::words::{count, things};
use std::borrow::Cow;

/// Rows of numbers, NaN among them.
pub(super) trait Dense {
    /// What is said about how columns are counted.
    const COUNTED: &str;

    fn parts(&self) -> (&Input, &Schema, &Gaps);

    /// Delivers the number of the first row, inputs and targets of all rows in blocks, gaps as they are.
    fn read_blocks<R: Element>(&self, visit: &mut dyn FnMut(usize, &[R], &[R]) -> Result<()>) -> Result<()>;

    /// Number of rows, if none of so many is left out.
    fn kept(&self, rows: usize) -> Option<usize> {
        let gaps = self.parts().2;
        (gaps.missing != Missing::Drop && !gaps.leaves_out).then_some(rows)
    }

    /// Which inputs have gaps, and how many targets are missing.
    fn count_gaps(&self) -> Result<(Vec<u64>, u64)> {
        let (_, schema, _) = self.parts();
        let (d, t) = (schema.inputs.len(), schema.targets.len());
        let (mut gaps, mut targets_missing) = (vec![0; d], 0);
        self.read_blocks::<f64>(&mut |_, inputs, targets| {
            // Most arrays have no gaps, and are looked at as fast as they come.
            if !f64::all_finite(inputs) {
                for row in inputs.chunks_exact(d.max(1)) {
                    gaps.iter_mut().zip(row).for_each(|(gaps, value)| *gaps += u64::from(value.is_nan()));
                }
            }
            if !f64::all_finite(targets) {
                let missing = targets.chunks_exact(t.max(1)).filter(|row| row.iter().any(|value| value.is_nan()));
                targets_missing += missing.count() as u64;
            }
            Ok(())
        })?;
        Ok((gaps, targets_missing))
    }

    /// The same gaps, which pass so far, with what fills those of every input: its mean or its median in all rows. And what is
    /// to be told about them.
    fn learned_gaps(&self) -> Result<(Gaps, Option<String>)> {
        let (input, schema, gaps) = self.parts();
        let mut fills = vec![gaps.missing.fills().then_some(0.0); schema.inputs.len()];
        let (mut told, mut leaves_out) = (Vec::new(), false);
        if gaps.missing == Missing::Mark {
            let (found, targets_missing) = self.count_gaps()?;
            leaves_out = targets_missing > 0;
            let gappy = schema.inputs.iter().zip(&found).filter(|(_, n)| **n > 0);
            let gappy: Vec<String> = gappy.map(|(column, _)| column.name.clone()).collect();
            if gappy.is_empty() {
                fills.fill(None);
            } else {
                let cells = count(found.iter().sum::<u64>() as usize);
                let names = bochner::words::some_of(&gappy);
                told.push(format!("{cells} cells without a value get the median of their column (in columns {names})"));
            }
            if leaves_out {
                told.push(format!("{} left out, as the target is missing", things(targets_missing as usize, "row")));
            }
        }
        if gaps.missing.learns() && fills.iter().any(Option::is_some) {
            let mut facts = vec![Facts::new(&Verdict::Number(None), gaps.missing, fills.len()); fills.len()];
            self.read_blocks::<f64>(&mut |_, inputs, _| {
                for row in inputs.chunks_exact(facts.len()) {
                    let there = facts.iter_mut().zip(row).filter(|(_, value)| !value.is_nan());
                    there.for_each(|(fact, value)| fact.add_number(*value));
                }
                Ok(())
            })?;
            for ((fill, fact), Column { name, .. }) in fills.iter_mut().zip(&facts).zip(&schema.inputs) {
                let told = || input.fault(format!("column {name}{}: {}", Self::COUNTED, empty(false, name)));
                *fill = Some(fact.fill().ok_or_else(told)?);
            }
        }
        let told = (!told.is_empty()).then(|| format!("{}: {}", input.name, told.join("; ")));
        Ok((Gaps { fills, leaves_out, ..gaps.clone() }, told))
    }

    /// Delivers all rows in blocks, their gaps mended.
    fn deliver<R: Element>(&self, visit: Visit<'_, R>) -> Result<()> {
        let (input, schema, gaps) = self.parts();
        let (d, t) = (schema.inputs.len(), schema.targets.len());
        let mut any = false;
        self.read_blocks(&mut |start, inputs, targets| {
            let (mut rows, mut labels) = (Cow::Borrowed(inputs), Cow::Borrowed(targets));
            let n = match gaps.allowed() {
                true => gaps.mend((d, t), rows.to_mut(), labels.to_mut()).map_err(|(i, target)| {
                    input.fault(format!("row {} (counted from 1): {}", start + i + 1, gaps.absent(target)))
                })?,
                false => inputs.len() / d.max(1),
            };
            any |= n > 0;
            match n {
                0 => Ok(()),
                _ => visit(RowBlock { rows: view(&rows, n, d), targets: view(&labels, n, t), weights: None }),
            }
        })?;
        if any { Ok(()) } else { Err(input.fault("there are no rows")) }
    }
}

/// What becomes of NaN.
#[derive(Debug, Clone)]
pub(super) struct Gaps {
    missing: Missing,
    /// What fills the gaps of every input.
    pub(super) fills: Vec<Option<f64>>,
    /// What is said about a gap to users of a model.
    advice: Option<&'static str>,
    /// Whether all of these are targets: labels of another array.
    pub(super) labels: bool,
    /// Whether rows are left out because their targets are missing.
    leaves_out: bool,
    /// Whether gaps for which there is nothing stay in their rows.
    keep: bool,
}

impl Gaps {
    /// NaN is refused, or passes if it is learned what becomes of it.
    pub(super) fn new(missing: Missing, options: &Options) -> Self {
        Gaps { missing, fills: Vec::new(), advice: options.advice, labels: false, leaves_out: false, keep: false }
    }

    /// NaN becomes what the columns say.
    pub(super) fn known(inputs: &[Column], options: &Options) -> Self {
        let fill = |column: &Column| match column.kind {
            Kind::Number { fill, .. } if options.missing == Missing::Mark => fill,
            Kind::Number { fill, .. } => fill.or(options.missing.fills().then_some(0.0)),
            Kind::Words { .. } | Kind::Time { .. } => None,
        };
        let keep = options.keep_rows;
        Gaps { fills: inputs.iter().map(fill).collect(), keep, ..Gaps::new(options.missing, options) }
    }

    /// What is said about a gap.
    pub(super) fn absent(&self, target: bool) -> &'static str {
        absent(target || self.labels, self.missing, self.advice)
    }

    /// Whether rows may hold NaN on their way through.
    pub(super) fn allowed(&self) -> bool {
        self.missing != Missing::Refuse || self.keep
    }

    /// Fills gaps in or takes their rows out; the number of rows that are left, or a row that has a gap for which there is
    /// nothing, and whether it is its target.
    fn mend<R: Element>(
        &self,
        (d, t): (usize, usize),
        inputs: &mut Vec<R>,
        targets: &mut Vec<R>,
    ) -> std::result::Result<usize, (usize, bool)> {
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
            let keep = self.keep && self.missing != Missing::Drop;
            if !known && !self.missing.drops_targets() && !keep {
                return Err((i, true));
            }
            if !whole && self.missing == Missing::Mark && !keep {
                return Err((i, false));
            }
            if keep || (whole && known) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;

    /// Rows of two inputs and a target.
    struct Rows(Input, Schema, Gaps);

    impl Dense for Rows {
        const COUNTED: &str = "";

        fn parts(&self) -> (&Input, &Schema, &Gaps) {
            (&self.0, &self.1, &self.2)
        }

        fn read_blocks<R: Element>(&self, visit: &mut dyn FnMut(usize, &[R], &[R]) -> Result<()>) -> Result<()> {
            let rows = [1.0, 10.0, NAN, 20.0, 4.0, NAN, 4.0, 60.0].map(R::from_f64);
            let targets = [0.0, 1.0, 2.0, 3.0].map(R::from_f64);
            visit(0, &rows[..4], &targets[..2])?;
            visit(2, &rows[4..], &targets[2..])
        }
    }

    fn mended(missing: Missing) -> (Vec<f64>, Vec<f64>) {
        let options = Options { missing, ..Options::default() };
        let schema = Schema { inputs: ["a", "b"].map(Column::number).to_vec(), targets: vec![Column::number("y")] };
        let mut rows = Rows(Input::from_bytes("t", Vec::new()), schema, Gaps::new(missing, &options));
        rows.2 = rows.learned_gaps().unwrap().0;
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        rows.deliver::<f64>(&mut |block| {
            inputs.extend(block.rows.iter());
            targets.extend(block.targets.iter());
            Ok(())
        })
        .unwrap();
        (inputs, targets)
    }

    #[test]
    fn gaps_get_what_was_asked_for() {
        let all = vec![0.0, 1.0, 2.0, 3.0];
        let mean = vec![1.0, 10.0, 3.0, 20.0, 4.0, 30.0, 4.0, 60.0];
        assert_eq!(mended(Missing::Mean), (mean, all.clone()));
        let median = vec![1.0, 10.0, 4.0, 20.0, 4.0, 20.0, 4.0, 60.0];
        assert_eq!(mended(Missing::Median), (median, all.clone()));
        let zero = vec![1.0, 10.0, 0.0, 20.0, 4.0, 0.0, 4.0, 60.0];
        assert_eq!(mended(Missing::Zero), (zero, all));
        assert_eq!(mended(Missing::Drop), (vec![1.0, 10.0, 4.0, 60.0], vec![0.0, 3.0]));
    }

    #[test]
    fn gaps_for_which_there_is_nothing_may_keep_their_rows() {
        let options = Options { keep_rows: true, ..Options::default() };
        let gaps = Gaps::known(&[Column::number("a")], &options);
        let mut inputs = vec![1.0, NAN, 3.0];
        assert_eq!(gaps.mend((1, 0), &mut inputs, &mut Vec::new()), Ok(3));
        assert!(gaps.allowed() && inputs[1].is_nan() && inputs[2] == 3.0);
    }

    #[test]
    fn a_missing_target_is_never_filled_in() {
        let gaps = Gaps::new(Missing::Zero, &Options::default());
        assert_eq!(gaps.mend((1, 1), &mut vec![1.0, 2.0], &mut vec![1.0, NAN]), Err((1, true)));
    }
}
