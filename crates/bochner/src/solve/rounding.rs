use crate::error::Result;
use crate::linalg::gemm::{RoundedGram, RoundedRows, column_sizes};
use crate::linalg::{Lower, Tile};
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};

/// What is known of normal equations from features that were rounded.
#[derive(Debug)]
pub struct Rounded {
    /// The matrix of features rounded to six bits, where it was asked for.
    pub(super) matrix: Option<Lower<f32>>,
    /// All features rounded to eight bits, where the matrix is made of some of the rows or of none.
    pub(super) rows: Option<RoundedRows>,
}

impl super::Operator for RoundedRows {
    fn dim(&self) -> usize {
        RoundedRows::dim(self)
    }

    fn apply(&mut self, v: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Ok(self.product(v))
    }
}

/// Neighbouring rows that go into the matrix together, or not, where it is made of some.
const CHUNK: usize = 32;

/// Rows whose sizes decide about units, and at most as many are added at a time, so that bits do not depend on blocks.
pub(super) const PIECE: usize = 256;

/// Rounds features as they come.
pub(super) struct Rounding {
    share: Share,
    is_centred: bool,
    made: Option<(Option<RoundedGram>, Option<RoundedRows>)>,
    chunks: u64,
}

/// Which rows go into the matrix of rounded features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// All; none has to be kept.
    All,
    /// One of so many, while all are kept.
    OneIn(u64),
    /// None: there is no matrix, and all are kept.
    None,
}

impl Rounding {
    /// Which rows go into a matrix.
    ///
    /// With `n` rows of `D` features in it, eigenvalues of the others' matrix relative to it spread from `(1 + √(D/n))⁻²` to
    /// `(1 - √(D/n))⁻²`: with four rows per feature conjugate gradients leave at most half of the residual with every step, and
    /// twenty steps over features of a byte take less than the rest of the matrix would.
    pub(super) fn share(rows: Option<usize>, dim: usize) -> Share {
        // Rows that are kept; more are streamed and all go into the matrix.
        const MOST_BYTES: u64 = 1 << 29;
        let Some(rows) = rows.filter(|&rows| RoundedRows::bytes(dim, rows) <= MOST_BYTES) else { return Share::All };
        match rows / (4 * dim).max(1) {
            0 | 1 => Share::All,
            many => Share::OneIn(many.min(16) as u64),
        }
    }

    /// Bytes at the peak, with a matrix.
    pub(super) fn bytes(rows: Option<usize>, dim: usize) -> u64 {
        let kept =
            rows.filter(|_| Self::share(rows, dim) != Share::All).map_or(0, |rows| RoundedRows::bytes(dim, rows));
        RoundedGram::bytes(dim).saturating_add(kept)
    }

    /// Bytes at the peak where rows are kept and no matrix is made; products have `outputs` columns.
    pub(super) fn bytes_of_rows(rows: usize, dim: usize, outputs: usize) -> u64 {
        RoundedRows::bytes(dim, rows).saturating_add(RoundedRows::product_bytes(dim, rows, outputs))
    }

    pub(super) fn new(share: Share, is_centred: bool) -> Self {
        Rounding { share, is_centred, made: None, chunks: 0 }
    }

    /// Adds a block whose first row is a multiple of [`PIECE`] in the stream, with the roots of its weights.
    pub(super) fn add<R: Real>(&mut self, block: Tile<'_, R>, roots: &[R]) -> Result<()> {
        let (gram, kept) = self.made.get_or_insert_with(|| {
            let sizes = column_sizes(block.rows_in(0..block.rows().min(PIECE)));
            let gram = (self.share != Share::None).then(|| RoundedGram::new(&sizes));
            (gram, (self.share != Share::All).then(|| RoundedRows::new(&sizes, self.is_centred)))
        });
        if let Some(gram) = gram {
            let (rows, one_in) = if let Share::OneIn(many) = self.share { (CHUNK, many) } else { (PIECE, 1) };
            for start in (0..block.rows()).step_by(rows) {
                let part = start..(start + rows).min(block.rows());
                // One of so many neighbours, and not the same one every time, since rows may come in turns.
                let at = self.chunks;
                let chosen = ((at / one_in).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % one_in;
                if at % one_in == chosen {
                    gram.add(block.rows_in(part.clone()), &roots[part])?;
                }
                self.chunks += 1;
            }
        }
        if let Some(kept) = kept {
            for start in (0..block.rows()).step_by(PIECE) {
                let part = start..(start + PIECE).min(block.rows());
                kept.add(block.rows_in(part.clone()), &roots[part]);
            }
        }
        Ok(())
    }

    /// What came of it; `total` is the sum of the weights.
    pub(super) fn finish(self, total: f64) -> Result<Option<Rounded>> {
        let Some((gram, rows)) = self.made else { return Ok(None) };
        let matrix = gram.map(|gram| gram.finish(total, self.is_centred)).transpose()?;
        Ok(Some(Rounded { matrix, rows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_rows_is_chosen_evenly_and_blocks_leave_no_trace() {
        let (n, dim) = (5000, 8);
        let values: Vec<f32> = (0..n * dim).map(|k| ((k * 37 + k / 11) % 63) as f32 - 31.0).collect();
        let made = |block: usize| {
            let mut rounding = Rounding::new(Share::OneIn(3), true);
            for start in (0..n).step_by(block) {
                let rows = block.min(n - start);
                rounding.add(Tile::new(&values[start * dim..], rows, dim), &vec![1.0; rows]).unwrap();
            }
            rounding.finish(n as f64).unwrap().unwrap()
        };
        let (whole, pieces) = (made(5120), made(256));
        let (matrix, of_pieces) = (whole.matrix.unwrap(), pieces.matrix.unwrap());
        assert!((0..dim).all(|i| matrix.row(i) == of_pieces.row(i)));
        let v = Array2::from_shape_fn((dim, 2), |(i, j)| (i as f64 - 3.0) * (j as f64 + 0.5));
        let product = whole.rows.as_ref().unwrap().product(v.view());
        assert_eq!(pieces.rows.unwrap().product(v.view()), product);
        // A third of all rows, weighted with three: the sum of squares of a column is that of all rows but for the error of
        // a sample of 1,600, four standard deviations of which are a tenth of the mean for numbers spread evenly.
        for i in 0..dim {
            let column = || values.iter().skip(i).step_by(dim).map(|v| f64::from(*v));
            let mean = column().sum::<f64>() / n as f64;
            let exact: f64 = column().map(|v| (v - mean).powi(2)).sum();
            assert!((f64::from(matrix.row(i)[i]) - exact).abs() < 0.1 * exact);
        }
    }

    #[test]
    fn rows_are_kept_where_a_share_is_enough_and_they_fit() {
        assert_eq!(Rounding::share(Some(60_000), 4096), Share::OneIn(3));
        assert_eq!(Rounding::share(Some(20_000), 4096), Share::All);
        assert_eq!(Rounding::share(Some(10_000_000), 4096), Share::All);
        assert_eq!(Rounding::share(None, 4096), Share::All);
        assert!(Rounding::bytes(Some(60_000), 4096) - Rounding::bytes(None, 4096) >= 60_000 * 4096);
    }
}
