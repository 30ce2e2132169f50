//! Products with few columns: `out += aᵀ b` of blocks with the same rows, reading `a` where it lies.
//!
//! A library copies its left factor into panels first, which pays where every number is used with many columns. Here it is
//! used with about ten, and copying took longer than the products.

use super::kernel::{BLOCK_ROWS, Instructions, Lanes, Portable, prefetch};
use crate::linalg::{Tile, TileMut};
use crate::scalar::Real;

/// Columns of `b` up to which copying `a` does not pay.
pub(crate) const MOST_COLUMNS: usize = 32;

/// Rows that all columns are multiplied with before the next rows: with 256 columns of `a` and the sums of about ten of `b`
/// they stay in the first-level cache. Column after column of many rows would wait for memory at every number.
const GROUP: usize = 16;

/// `out += aᵀ b`, one number of `out` per column of `a` and of `b`: chains of fused multiply-adds over `terms` rows at a
/// time, added up in double precision. The columns of `a` are taken `NR` at a time, those of `b` six at a time.
#[cfg(target_arch = "x86_64")]
pub(crate) fn add_adjoint_product<R: Real, const NR: usize>(
    instructions: Instructions,
    out: TileMut<'_, f64>,
    a: Tile<'_, R>,
    b: Tile<'_, R>,
    terms: usize,
) where
    pulp::x86::V3: Lanes<R, NR>,
{
    let product = Product { out, a, b, terms };
    match instructions {
        Instructions::Portable => product.add::<NR>(Portable),
        Instructions::Avx2(simd) => simd.vectorize(Compiled(product, simd)),
    }
}

/// `out += aᵀ b`, one number of `out` per column of `a` and of `b`: chains of fused multiply-adds over `terms` rows at a
/// time, added up in double precision.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn add_adjoint_product<R: Real, const NR: usize>(
    _: Instructions,
    out: TileMut<'_, f64>,
    a: Tile<'_, R>,
    b: Tile<'_, R>,
    terms: usize,
) {
    Product { out, a, b, terms }.add::<NR>(Portable);
}

struct Product<'a, 'b, R> {
    out: TileMut<'b, f64>,
    a: Tile<'a, R>,
    b: Tile<'a, R>,
    terms: usize,
}

#[cfg(target_arch = "x86_64")]
struct Compiled<'a, 'b, R, const NR: usize>(Product<'a, 'b, R>, pulp::x86::V3);

#[cfg(target_arch = "x86_64")]
impl<R: Real, const NR: usize> pulp::NullaryFnOnce for Compiled<'_, '_, R, NR>
where
    pulp::x86::V3: Lanes<R, NR>,
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.add::<NR>(self.1);
    }
}

impl<R: Real> Product<'_, '_, R> {
    #[inline(always)]
    fn add<const NR: usize>(self, lanes: impl Lanes<R, NR>) {
        let Product { mut out, a, b, terms } = self;
        assert_eq!((a.rows(), a.cols(), b.cols()), (b.rows(), out.rows(), out.cols()), "shapes of a product");
        let whole = a.cols() / NR * NR;
        // The columns at the end that do not fill registers, with zeros beside them.
        let mut rest = vec![R::ZERO; if whole < a.cols() { a.rows() * NR } else { 0 }];
        for (i, to) in rest.chunks_mut(NR).enumerate() {
            to[..a.cols() - whole].copy_from_slice(&a.row(i)[whole..]);
        }
        let tiles = a.cols().div_ceil(NR);
        // Sums over the rows of a chain so far: all columns of `b` for the first columns of `a`, then for the next ones.
        let mut sums = vec![[R::ZERO; NR]; tiles * b.cols()];
        for chain in (0..a.rows()).step_by(terms) {
            let end = (chain + terms).min(a.rows());
            sums.fill([R::ZERO; NR]);
            for start in (chain..end).step_by(GROUP) {
                let rows = start..(start + GROUP).min(end);
                let b = b.rows_in(rows.clone());
                let next = a.rows_in(rows.end..(rows.end + GROUP).min(a.rows()));
                for (tile, sums) in sums.chunks_mut(b.cols()).enumerate() {
                    let first = tile * NR;
                    (0..next.rows()).for_each(|i| prefetch(next.row(i), first..first + NR));
                    let a = match first < whole {
                        true => a.rows_in(rows.clone()).columns(first..first + NR),
                        false => Tile::new(&rest, a.rows(), NR).rows_in(rows.clone()),
                    };
                    for (block, sums) in sums.chunks_mut(BLOCK_ROWS).enumerate() {
                        let k = block * BLOCK_ROWS;
                        macro_rules! block {
                            ($n:literal) => {
                                extend::<R, $n, NR, _>(lanes, a, b.columns(k..k + $n), sums)
                            };
                        }
                        match sums.len() {
                            1 => block!(1),
                            2 => block!(2),
                            3 => block!(3),
                            4 => block!(4),
                            5 => block!(5),
                            _ => block!(6),
                        }
                    }
                }
            }
            for (tile, sums) in sums.chunks(b.cols()).enumerate() {
                for j in 0..NR.min(a.cols() - tile * NR) {
                    for (out, sums) in out.row_mut(tile * NR + j).iter_mut().zip(sums) {
                        *out += Real::to_f64(sums[j]);
                    }
                }
            }
        }
    }
}

/// Carries chains on over the rows of a group: those of `K` columns of `b` with `NR` columns of `a`.
#[inline(always)]
fn extend<R: Real, const K: usize, const NR: usize, L: Lanes<R, NR>>(
    lanes: L,
    a: Tile<'_, R>,
    b: Tile<'_, R>,
    sums: &mut [[R; NR]],
) {
    let sums: &mut [[R; NR]; K] = sums.try_into().expect("K sums");
    let mut chains = [lanes.zero(); K];
    for k in 0..K {
        chains[k] = lanes.load(&sums[k]);
    }
    for (a, b) in a.as_slice().chunks(a.stride()).zip(b.as_slice().chunks(b.stride())).take(a.rows()) {
        let row = lanes.load(a.first_chunk().expect("a tile of NR columns"));
        let factors: &[R; K] = b.first_chunk().expect("a tile of K columns");
        for k in 0..K {
            chains[k] = lanes.mul_add(factors[k], row, chains[k]);
        }
    }
    for k in 0..K {
        sums[k] = lanes.unload(chains[k]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                add_adjoint_product::<f32, 16>(instructions, TileMut::new(&mut out, dim, columns), a, b, 256);
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
            add_adjoint_product::<f64, 8>(instructions, TileMut::new(&mut out, dim, columns), a, b, terms);
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
