use super::{Projection, panels};
use crate::error::{Error, Result, check_count};
use crate::linalg::hadamard::fwht;
use crate::linalg::{Tile, TileMut, Workspace};
use crate::random::{Role, Seed, Stream};
use crate::scalar::{Real, Scalar};
use num_complex::Complex;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Sign–Hadamard rounds per block.
const ROUNDS: usize = 3;

/// Largest padded input dimension.
const MOST_DIM: usize = 1 << 22;

/// Structured directions in blocks of `√d' Hₙ D₁ Hₙ D₂ Hₙ D₃`: orthogonal rows of norm `√d'` at `O(log d')` per output.
///
/// `Hₙ` is the orthonormal Walsh–Hadamard matrix of the padded dimension `d'` and the `Dⱼ` are random signs, applied from
/// the right: `D₃` meets the row first. `⌈D/d'⌉` independent blocks are stacked and cut off at `D`.
///
/// The complex twin (`O = Complex<R>`) takes `D₁` from `{1, -1, i, -i}`: one complex round at the end makes the outputs
/// circular (`E[u uᵀ] = 0`, `E|u|²|v|² ≈ N + t`, as for complex normals), while the first two rounds stay real and cost half.
///
/// # Estimate
/// `E[w wᴴ] = I` exactly, and directions within a block are exactly orthogonal; marginals are close to, not equal to,
/// normal ones, so kernels estimated through a nonlinearity are biased for small `d'`.
///
/// # Cost
/// `O(D log d')` per row (complex: 4/3 of it), `3 d'` bits per block.
///
/// # References
/// Yu et al. 2016 (SORF).
#[derive(Debug, Clone)]
pub struct HadamardChain<R, O = R> {
    input_dim: usize,
    output_dim: usize,
    padded_dim: usize,
    /// Per block: the bits of `D₁`, `D₂`, `D₃`, then for complex chains the bits that turn `D₁` by a right angle.
    signs: Arc<Vec<u64>>,
    kind: PhantomData<fn() -> (R, O)>,
}

impl<R: Real, O: Scalar<Real = R>> HadamardChain<R, O> {
    /// Draws the chain's signs.
    ///
    /// # Errors
    /// A dimension of 0, or inputs longer than 2²².
    pub fn new(seed: Seed, input_dim: usize, output_dim: usize) -> Result<Self> {
        check_count("input_dim", input_dim)?;
        check_count("output_dim", output_dim)?;
        if input_dim > MOST_DIM {
            return Err(Error::parameter("input_dim", "at most 4194304 for Hadamard projections", input_dim));
        }
        let padded_dim = input_dim.next_power_of_two();
        let mut chain =
            HadamardChain { input_dim, output_dim, padded_dim, signs: Arc::new(Vec::new()), kind: PhantomData };
        let blocks = output_dim.div_ceil(padded_dim);
        let words = chain.words_per_block();
        let total = blocks.checked_mul(words).filter(|w| *w <= isize::MAX as usize / 8);
        let total = total.ok_or_else(|| Error::parameter("output_dim", "small enough to address", output_dim))?;
        let mut signs = Vec::new();
        signs.try_reserve_exact(total).map_err(|_| Error::Budget {
            what: "signs of a Hadamard chain",
            needed: 8 * total as u64,
            budget: 0,
            remedy: "ask for fewer outputs".into(),
        })?;
        signs.resize(total, 0);
        for (block, words) in signs.chunks_exact_mut(words).enumerate() {
            Stream::new(seed, Role::Sign, block as u64).fill_sign_bits(words);
        }
        chain.signs = Arc::new(signs);
        Ok(chain)
    }

    /// Power of two the rows are padded to: the size of a block.
    pub fn padded_dim(&self) -> usize {
        self.padded_dim
    }

    fn words_per_round(&self) -> usize {
        self.padded_dim.div_ceil(64)
    }

    fn words_per_block(&self) -> usize {
        (ROUNDS + usize::from(O::IS_COMPLEX)) * self.words_per_round()
    }

    /// Bits of part `part` of a block.
    fn bits(&self, block: usize, part: usize) -> &[u64] {
        &self.signs[block * self.words_per_block() + part * self.words_per_round()..][..self.words_per_round()]
    }

    /// Hands the outputs of every row and block in `columns` to `write(row, offset in columns, re, im)`.
    fn for_each_block(
        &self,
        rows: Tile<'_, R>,
        columns: Range<usize>,
        work: &mut Workspace<R>,
        mut write: impl FnMut(usize, usize, &[R], &[R]),
    ) {
        let d = self.padded_dim;
        let mut signs = work.take((ROUNDS + 1) * d);
        let mut buffer = work.take(2 * d);
        for range in panels(self.output_dim, d).filter(|r| r.start >= columns.start && r.start < columns.end) {
            let block = range.start / d;
            // 1/d' is a power of two: scaling the first signs by it rounds nothing.
            for (part, scale) in [(0, 1.0), (1, 1.0), (2, 1.0 / d as f64)] {
                expand(self.bits(block, part), R::from_f64(scale), &mut signs[part * d..][..d]);
            }
            let (chain, turn) = signs.split_at_mut(ROUNDS * d);
            if O::IS_COMPLEX {
                expand(self.bits(block, ROUNDS), R::ONE, turn);
            }
            let (d1, d2, d3) = (&chain[..d], &chain[d..2 * d], &chain[2 * d..]);
            let (re, im) = buffer.split_at_mut(d);
            for i in 0..rows.rows() {
                let row = rows.row(i);
                re[..row.len()].iter_mut().zip(row).zip(d3).for_each(|((o, x), s)| *o = *x * *s);
                re[row.len()..].fill(R::ZERO);
                fwht(re);
                re.iter_mut().zip(d2).for_each(|(o, s)| *o *= *s);
                fwht(re);
                if O::IS_COMPLEX {
                    // A turned sign is ±i: its product is imaginary, the others are real.
                    for j in 0..d {
                        let product = re[j] * d1[j];
                        let turned = turn[j] < R::ZERO;
                        im[j] = if turned { product } else { R::ZERO };
                        re[j] = if turned { R::ZERO } else { product };
                    }
                    fwht(im);
                } else {
                    re.iter_mut().zip(d1).for_each(|(o, s)| *o *= *s);
                }
                fwht(re);
                let used = range.len();
                write(i, range.start - columns.start, &re[..used], &im[..used]);
            }
        }
        work.give(signs);
        work.give(buffer);
    }
}

/// `±scale` from bits; a set bit means minus.
fn expand<R: Real>(bits: &[u64], scale: R, out: &mut [R]) {
    for (chunk, word) in out.chunks_mut(64).zip(bits) {
        for (k, o) in chunk.iter_mut().enumerate() {
            *o = if word >> k & 1 == 1 { -scale } else { scale };
        }
    }
}

impl<R: Real, O: Scalar<Real = R>> Projection for HadamardChain<R, O> {
    type Real = R;
    type Output = O;

    fn input_dim(&self) -> usize {
        self.input_dim
    }

    fn output_dim(&self) -> usize {
        self.output_dim
    }

    fn panel(&self) -> usize {
        self.padded_dim
    }

    fn project_tile(&self, rows: Tile<'_, R>, columns: Range<usize>, mut out: TileMut<'_, O>, work: &mut Workspace<R>) {
        self.for_each_block(rows, columns, work, |i, at, re, im| {
            let out = &mut out.row_mut(i)[at..at + re.len()];
            out.iter_mut().zip(re.iter().zip(im)).for_each(|(o, (re, im))| *o = O::from_parts(*re, *im));
        });
    }

    fn project_tile_split(
        &self,
        rows: Tile<'_, R>,
        columns: Range<usize>,
        mut out_re: TileMut<'_, R>,
        mut out_im: TileMut<'_, R>,
        work: &mut Workspace<R>,
    ) {
        self.for_each_block(rows, columns, work, |i, at, re, im| {
            out_re.row_mut(i)[at..at + re.len()].copy_from_slice(re);
            if O::IS_COMPLEX {
                out_im.row_mut(i)[at..at + im.len()].copy_from_slice(im);
            }
        });
    }
}

/// The complex chain of optical features.
pub type ComplexChain<R> = HadamardChain<R, Complex<R>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix<O: Scalar<Real = f64>>(chain: &HadamardChain<f64, O>) -> Vec<Vec<O>> {
        // Column j of W is the projection of basis vector j.
        let (d, m) = (chain.input_dim(), chain.output_dim());
        let mut identity = vec![0.0; d * d];
        (0..d).for_each(|i| identity[i * d + i] = 1.0);
        let mut out = vec![O::ZERO; d * m];
        chain.project_tile(Tile::new(&identity, d, d), 0..m, TileMut::new(&mut out, d, m), &mut Workspace::new());
        (0..m).map(|l| (0..d).map(|j| out[j * m + l]).collect()).collect()
    }

    #[test]
    fn directions_of_a_block_are_orthogonal_with_the_norm_of_a_normal_vector() {
        fn check<O: Scalar<Real = f64>>() {
            let chain = HadamardChain::<f64, O>::new(Seed::new(3), 16, 40).unwrap();
            let w = matrix(&chain);
            for a in 0..40 {
                for b in 0..40 {
                    if a / 16 == b / 16 {
                        let dot: O = w[a].iter().zip(&w[b]).map(|(x, y)| *x * y.conj()).sum();
                        let expected = if a == b { 16.0 } else { 0.0 };
                        // Entries are multiples of 1/16 of integers below 2^12: every product and sum is exact.
                        assert_eq!((dot.re(), dot.im()), (expected, 0.0), "{a} {b}");
                    }
                }
            }
        }
        check::<f64>();
        check::<Complex<f64>>();
    }

    #[test]
    fn second_moments_are_the_identity_and_complex_outputs_are_circular() {
        // Over seeds, E[w wᴴ] = I and E[w wᵀ] = 0 (complex). Every entry of w has |w|² ≤ d'; the mean over `seeds` of a
        // product bounded by 8 in standard deviation must lie within 6 standard errors.
        let seeds = 4000;
        let mut hermitian = [[Complex::new(0.0, 0.0); 3]; 3];
        let mut plain = hermitian;
        for seed in 0..seeds {
            let chain = ComplexChain::<f64>::new(Seed::new(seed), 3, 5).unwrap();
            let w = matrix(&chain);
            for a in 0..3 {
                for b in 0..3 {
                    hermitian[a][b] += w[4][a] * w[4][b].conj() / seeds as f64;
                    plain[a][b] += w[4][a] * w[4][b] / seeds as f64;
                }
            }
        }
        let tolerance = 6.0 * 4.0 / (seeds as f64).sqrt();
        for a in 0..3 {
            for b in 0..3 {
                let expected = f64::from(u8::from(a == b));
                assert!((hermitian[a][b] - expected).norm() < tolerance, "{a} {b}: {}", hermitian[a][b]);
                assert!(plain[a][b].norm() < tolerance, "{a} {b}: {}", plain[a][b]);
            }
        }
    }

    #[test]
    fn panels_rows_and_parts_agree_bit_for_bit() {
        let chain = ComplexChain::<f32>::new(Seed::new(1), 13, 41).unwrap();
        let mut rows = vec![0.0; 9 * 13];
        Stream::new(Seed::new(2), Role::Noise, 0).normals_from(0, &mut rows);
        let mut work = Workspace::new();
        let mut whole = vec![Complex::ZERO; 9 * 41];
        chain.project_tile(Tile::new(&rows, 9, 13), 0..41, TileMut::new(&mut whole, 9, 41), &mut work);
        for columns in panels(41, 16) {
            for i in 0..9 {
                let m = columns.len();
                let (mut re, mut im) = (vec![f32::NAN; m], vec![f32::NAN; m]);
                let (tile_re, tile_im) = (TileMut::new(&mut re, 1, m), TileMut::new(&mut im, 1, m));
                chain.project_tile_split(
                    Tile::new(&rows[i * 13..][..13], 1, 13),
                    columns.clone(),
                    tile_re,
                    tile_im,
                    &mut work,
                );
                for j in 0..m {
                    assert_eq!(Complex::new(re[j], im[j]), whole[i * 41 + columns.start + j]);
                }
            }
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(HadamardChain::<f32>::new(Seed::new(0), 0, 1).is_err());
        assert!(HadamardChain::<f32>::new(Seed::new(0), 1, 0).is_err());
        assert!(HadamardChain::<f32>::new(Seed::new(0), (1 << 22) + 1, 1).is_err());
        assert!(HadamardChain::<f32>::new(Seed::new(0), 1, usize::MAX).is_err());
    }
}
