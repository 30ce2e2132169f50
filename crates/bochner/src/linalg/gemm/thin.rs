//! Products with few columns: `out += aᵀ b` of blocks with the same rows, reading `a` where it lies.
//!
//! A library copies its left factor into panels first, which pays where every number is used with many columns. Here it is
//! used with about ten, and copying took longer than the products.

use super::kernel::{BLOCK_ROWS, load, mul_add, prefetch, unload, with_constant};
use super::ranges;
use crate::linalg::vectors::{VectorKernel, Vectors};
use crate::linalg::{Tile, TileMut};
use crate::scalar::Real;

/// Columns of `b` up to which copying `a` does not pay.
pub(crate) const MOST_COLUMNS: usize = 32;

/// Rows that all columns are multiplied with before the next rows: with 256 columns of `a` and the sums of about ten of `b`
/// they stay in the first-level cache. Column after column of many rows would wait for memory at every number.
const GROUP: usize = 16;

/// `out += aᵀ b`, one number of `out` per column of `a` and of `b`: chains of fused multiply-adds over `terms` rows at a
/// time, added up in double precision. The columns of `a` are taken a panel at a time, those of `b` six at a time.
pub(crate) struct AdjointProduct<'a, R> {
    pub(crate) out: TileMut<'a, f64>,
    pub(crate) a: Tile<'a, R>,
    pub(crate) b: Tile<'a, R>,
    pub(crate) terms: usize,
}

impl<R: Real> VectorKernel<R> for AdjointProduct<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, s: S) {
        let AdjointProduct { mut out, a, b, terms } = self;
        assert_eq!((a.rows(), a.cols(), b.cols()), (b.rows(), out.rows(), out.cols()), "shapes of a product");
        let (width, whole) = (R::PANEL, a.cols() / R::PANEL * R::PANEL);
        // The columns at the end that do not fill registers, with zeros beside them.
        let mut rest = vec![R::ZERO; if whole < a.cols() { a.rows() * width } else { 0 }];
        for (i, to) in rest.chunks_mut(width).enumerate() {
            to[..a.cols() - whole].copy_from_slice(&a.row(i)[whole..]);
        }
        // Sums over the rows of a chain so far: all columns of `b` for the first columns of `a`, then for the next ones.
        let mut sums = vec![R::ZERO; a.cols().next_multiple_of(width) * b.cols()];
        for chain in ranges(0..a.rows(), terms) {
            sums.fill(R::ZERO);
            for rows in ranges(chain, GROUP) {
                let b = b.rows_in(rows.clone());
                let next = a.rows_in(rows.end..(rows.end + GROUP).min(a.rows()));
                for (tile, sums) in sums.chunks_mut(width * b.cols()).enumerate() {
                    let first = tile * width;
                    (0..next.rows()).for_each(|i| prefetch(next.row(i), first..first + width));
                    let a = match first < whole {
                        true => a.rows_in(rows.clone()).columns(first..first + width),
                        false => Tile::new(&rest, a.rows(), width).rows_in(rows.clone()),
                    };
                    let sums = R::packs_mut(sums).as_chunks_mut().0;
                    for (block, sums) in sums.chunks_mut(BLOCK_ROWS).enumerate() {
                        let k = block * BLOCK_ROWS;
                        with_constant!(K = sums.len(), of [1, 2, 3, 4, 5, 6], {
                            extend::<R, S, K>(s, a, b.columns(k..k + K), sums);
                        });
                    }
                }
            }
            for (tile, sums) in sums.chunks(width * b.cols()).enumerate() {
                for j in 0..width.min(a.cols() - tile * width) {
                    for (out, sums) in out.row_mut(tile * width + j).iter_mut().zip(sums.chunks(width)) {
                        *out += Real::to_f64(sums[j]);
                    }
                }
            }
        }
    }
}

/// Carries chains on over the rows of a group: those of `K` columns of `b` with a panel of columns of `a`.
#[inline(always)]
fn extend<R: Real, S: Vectors<R>, const K: usize>(s: S, a: Tile<'_, R>, b: Tile<'_, R>, sums: &mut [[R::Pack; 2]]) {
    let sums: &mut [[R::Pack; 2]; K] = sums.try_into().expect("K sums");
    let mut chains = [[s.splat(R::ZERO); 2]; K];
    for k in 0..K {
        chains[k] = load(s, &sums[k]);
    }
    for (a, b) in a.as_slice().chunks(a.stride()).zip(b.as_slice().chunks(b.stride())).take(a.rows()) {
        let row = load(s, R::packs(a).first_chunk().expect("a tile of a panel's columns"));
        let factors: &[R; K] = b.first_chunk().expect("a tile of K columns");
        for k in 0..K {
            chains[k] = mul_add(s, factors[k], row, chains[k]);
        }
    }
    for k in 0..K {
        unload(s, chains[k], &mut sums[k]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::vectors::{Instructions, Packed};

    /// `aᵀ b` by the definition, in whole numbers.
    fn definition(a: Tile<'_, f32>, b: Tile<'_, f32>) -> Vec<f64> {
        let entry = |j: usize, k: usize| (0..a.rows()).map(|i| f64::from(a.row(i)[j]) * f64::from(b.row(i)[k])).sum();
        (0..a.cols() * b.cols()).map(|at| entry(at / b.cols(), at % b.cols())).collect()
    }

    #[test]
    fn whole_numbers_are_multiplied_exactly_by_all_twins() {
        for (rows, dim, columns) in [(1, 1, 1), (5, 16, 6), (300, 33, 11), (257, 40, 12), (64, 7, 2), (3, 100, 32)] {
            // Windows of wider matrices: rows do not follow each other directly.
            let (stride, side_stride) = (dim + 3, columns + 2);
            let numbers: Vec<f32> = (0..rows * stride).map(|k| ((k * 37 + k / 11) % 17) as f32 - 8.0).collect();
            let sides: Vec<f32> = (0..rows * side_stride).map(|k| ((k * 29 + k / 7) % 13) as f32 - 6.0).collect();
            let a = Tile::with_stride(&numbers, rows, dim, stride);
            let b = Tile::with_stride(&sides, rows, columns, side_stride);
            let mut expected = definition(a, b);
            expected.iter_mut().for_each(|v| *v += 1.0);
            for instructions in [Instructions::Portable, Instructions::detect()] {
                let mut out = vec![1.0; dim * columns];
                let out_tile = TileMut::new(&mut out, dim, columns);
                f32::run_on(instructions, AdjointProduct { out: out_tile, a, b, terms: 256 });
                assert_eq!(out, expected, "{rows} {dim} {columns}");
            }
        }
    }

    #[test]
    fn twins_have_the_same_bits_and_chains_end_where_they_should() {
        let (rows, dim, columns) = (600, 21, 7);
        let numbers: Vec<f64> = (0..rows * (dim + columns)).map(|k| (k as f64 * 0.37).sin()).collect();
        let (a, b) = numbers.split_at(rows * dim);
        let (a, b) = (Tile::new(a, rows, dim), Tile::new(b, rows, columns));
        let product = |instructions, terms| {
            let mut out = vec![0.0; dim * columns];
            let out_tile = TileMut::new(&mut out, dim, columns);
            f64::run_on(instructions, AdjointProduct { out: out_tile, a, b, terms });
            out
        };
        assert_eq!(product(Instructions::Portable, 256), product(Instructions::detect(), 256));
        let chain = |j: usize, k: usize, rows: std::ops::Range<usize>| {
            rows.fold(0.0, |sum: f64, i| b.row(i)[k].mul_add(a.row(i)[j], sum))
        };
        let found = product(Instructions::detect(), 256);
        for (at, value) in found.iter().enumerate() {
            let (j, k) = (at / columns, at % columns);
            let sum = [0..256, 256..512, 512..600].map(|rows| chain(j, k, rows)).iter().fold(0.0, |sum, v| sum + v);
            assert_eq!(*value, sum);
        }
    }
}
