//! Gram matrices of numbers rounded to six bits: more than three times as fast as in single precision, and close enough to
//! help an iteration that computes with the numbers themselves.

use super::gram::TILE_ROWS;
use super::ranges;
use crate::error::Result;
use crate::interrupt::Flag;
use crate::linalg::vectors::Instructions;
use crate::linalg::{Lower, Tile};
use crate::parallel::Parallel;
use crate::scalar::Real;
use std::ops::Range;

/// Rows and columns of a register block, as in the kernel for single precision.
const BLOCK: usize = 6;
const PANEL: usize = 16;

/// Rows whose numbers share a word of four bytes.
const WORD: usize = 4;

/// Words of a chain: sums of 2 · 8 products of at most 63 · 31 stay below 2¹⁵, where the instruction would cut them off.
const STEPS: usize = 8;

/// Words of a chain of rows for one block of columns of the left factor, or for one panel of the right one.
type LeftChain = [[u32; BLOCK]; STEPS];
type RightChain = [[u32; PANEL]; STEPS];
type Sums = [[i32; PANEL]; BLOCK];

/// Chains that are collected before tiles are added to: the sums, which no cache holds, are read and written that rarely.
const CHAINS: usize = 128;

/// `Σ qᵢqᵢᵀ` for rows `xᵢ` rounded to `qᵢ`: column `j` to multiples of a 31st of the size it is given, sizes beyond it to
/// that size.
///
/// Sums of whole numbers are exact, so bits depend on nothing but the numbers, and those of the moments on blocks too.
#[derive(Debug)]
pub(crate) struct RoundedGram {
    instructions: Instructions,
    dim: usize,
    /// The unit of each column.
    units: Vec<f32>,
    tiles: Vec<Sheet>,
    /// Sums of earlier rows, where there were too many for whole numbers of 32 bits.
    earlier: Option<Lower<f32>>,
    /// Rows and sums of columns since then.
    rows: usize,
    column_sums: Vec<i64>,
    /// `Σ rᵢqᵢ` for the numbers `rᵢ` that came with all rows, in units, and `Σ rᵢ²`.
    moments: Vec<f64>,
    squares: f64,
    /// Rows that wait for their products: block after block and panel after panel, [`CHAINS`] chains of each.
    left: Vec<LeftChain>,
    right: Vec<RightChain>,
    waiting: usize,
}

/// Sums of a tile: panel after panel, block after block.
#[derive(Debug)]
struct Sheet {
    rows: Range<usize>,
    columns: Range<usize>,
    sums: Vec<Sums>,
}

impl Sheet {
    /// Places of its register blocks that are not above the diagonal: panel, block, place among the sums.
    fn places(rows: Range<usize>, columns: Range<usize>) -> impl Iterator<Item = (usize, usize, usize)> {
        let blocks = rows.len().div_ceil(BLOCK);
        columns.clone().step_by(PANEL).flat_map(move |first| {
            let above = first.saturating_sub(rows.start) / BLOCK;
            let start = rows.start;
            let panel = (first - columns.start) / PANEL;
            (above..blocks).map(move |b| (first / PANEL, start / BLOCK + b, panel * blocks + b))
        })
    }
}

/// Rows and columns of a tile of the result: beside its sums the second-level cache holds 16 chains of both factors.
const TILE: (usize, usize) = (TILE_ROWS, 16 * PANEL);

/// Rows whose sums of products of at most 63 · 31 stay below 2³¹.
const MOST_ROWS: usize = 1 << 20;

impl RoundedGram {
    /// No rows yet; `sizes` are those that the largest whole numbers of the columns stand for.
    pub(crate) fn new(sizes: &[f32]) -> Self {
        Self::on(Instructions::detect(), sizes)
    }

    fn on(instructions: Instructions, sizes: &[f32]) -> Self {
        let dim = sizes.len();
        let tiles = ranges(0..dim, TILE.0)
            .flat_map(|rows| {
                ranges(0..rows.end, TILE.1).map(move |columns| {
                    let count = rows.len().div_ceil(BLOCK) * columns.len().div_ceil(PANEL);
                    Sheet { rows: rows.clone(), columns, sums: vec![[[0; PANEL]; BLOCK]; count] }
                })
            })
            .collect();
        let strips = dim.div_ceil(TILE.0);
        RoundedGram {
            instructions,
            dim,
            units: sizes.iter().map(|size| size / MOST).collect(),
            tiles,
            earlier: None,
            rows: 0,
            column_sums: vec![0; dim],
            moments: vec![0.0; dim],
            squares: 0.0,
            left: vec![Default::default(); strips * (TILE.0 / BLOCK) * CHAINS],
            right: vec![Default::default(); strips * (TILE.0 / PANEL) * CHAINS],
            waiting: 0,
        }
    }

    /// Bytes at the peak.
    pub(crate) fn bytes(dim: usize) -> u64 {
        let padded = dim.next_multiple_of(TILE.0) as u64;
        // Whole numbers, packed factors, and the matrix that comes out.
        padded
            .saturating_mul(padded + TILE.1 as u64)
            .saturating_mul(2)
            .saturating_add(padded.saturating_mul(2 * (CHAINS * WORD * STEPS) as u64))
            .saturating_add(Lower::<f32>::bytes(dim))
    }

    /// Adds a block of at most 4,096 rows, each with a number whose products with the row are summed too.
    pub(crate) fn add<R: Real>(&mut self, block: Tile<'_, R>, numbers: &[R]) -> Result<()> {
        assert_eq!((block.cols(), block.rows()), (self.dim, numbers.len()), "a number for every row");
        let chains = block.rows().div_ceil(WORD * STEPS);
        assert!(chains <= CHAINS, "a block of {} rows", block.rows());
        if self.waiting + chains > CHAINS {
            self.multiply();
        }
        if self.rows + block.rows() > MOST_ROWS {
            self.earlier = Some(self.widen(1.0, 0.0)?);
        }
        self.rows += block.rows();
        self.squares += numbers.iter().map(|r| Real::to_f64(*r).powi(2)).sum::<f64>();
        let first = self.waiting;
        let packed = (self.left.chunks_mut(TILE.0 / BLOCK * CHAINS))
            .zip(self.right.chunks_mut(TILE.0 / PANEL * CHAINS))
            .zip(self.units.chunks(TILE.0).zip(self.column_sums.chunks_mut(TILE.0)))
            .zip(self.moments.chunks_mut(TILE.0))
            .enumerate();
        packed.in_parallel().for_each(|(strip, (((left, right), (units, column_sums)), moments))| {
            let columns = strip * TILE.0..strip * TILE.0 + units.len();
            let pack = Pack { block, columns, units, numbers, first, left, right, column_sums, moments };
            pulp::Arch::new().dispatch(pack);
        });
        self.waiting += chains;
        Ok(())
    }

    /// Adds the products of the rows that wait.
    fn multiply(&mut self) {
        /// Chains that a tile is multiplied with before the next ones.
        const SHARE: usize = 16;
        let stop = Flag::current();
        let (left, right, instructions, waiting) = (&self.left, &self.right, self.instructions, self.waiting);
        self.tiles.iter_mut().in_parallel().for_each(|Sheet { rows, columns, sums }| {
            if stop.raised() {
                return;
            }
            for chains in ranges(0..waiting, SHARE) {
                for (panel, block, place) in Sheet::places(rows.clone(), columns.clone()) {
                    let left = &left[block * CHAINS..][chains.clone()];
                    let right = &right[panel * CHAINS..][chains.clone()];
                    sweep(instructions, left, right, &mut sums[place]);
                }
            }
        });
        self.waiting = 0;
    }

    /// Turns whole numbers into units, less `center · tᵢtⱼ` with `t` the sums that came with the rows, multiplies them with
    /// `factor`, and starts afresh.
    fn widen(&mut self, factor: f64, center: f64) -> Result<Lower<f32>> {
        self.multiply();
        let mut sums = match self.earlier.take() {
            Some(sums) => sums,
            None => Lower::zeros(self.dim)?,
        };
        let (units, column_sums, moments) = (&self.units, &self.column_sums, &self.moments);
        let earlier = factor as f32;
        let strips = self.tiles.chunk_by_mut(|a, b| a.rows == b.rows).zip(sums.strips_mut());
        strips.in_parallel().for_each(|(tiles, mut out)| {
            for Sheet { rows, columns, sums } in tiles {
                for (panel, block, place) in Sheet::places(rows.clone(), columns.clone()) {
                    let first = panel * PANEL;
                    for (i, row) in (block * BLOCK..rows.end).zip(&mut sums[place]) {
                        let row = std::mem::take(row);
                        let out = out.row_mut(i - rows.start)[..=i].iter_mut().zip(0..).skip(first);
                        for ((out, j), sum) in out.zip(row) {
                            let sum = (i64::from(sum) - OFFSET * column_sums[j]) as f64;
                            let unit = f64::from(units[i]) * f64::from(units[j]);
                            *out = *out * earlier + ((sum - center * moments[i] * moments[j]) * unit * factor) as f32;
                        }
                    }
                }
            }
        });
        self.rows = 0;
        self.column_sums.fill(0);
        Ok(sums)
    }

    /// `Σ qᵢqᵢᵀ` over all rows, or where the features are to be centred `Σ qᵢqᵢᵀ - (Σ rᵢqᵢ)(Σ rᵢqᵢ)ᵀ/Σ rᵢ²` with the
    /// numbers `rᵢ` that came with them; multiplied by what makes `Σ rᵢ²` that of all rows, `total`, where these are some.
    pub(crate) fn finish(mut self, total: f64, is_centered: bool) -> Result<Lower<f32>> {
        self.multiply();
        (self.left, self.right) = (Vec::new(), Vec::new());
        let (factor, center) = if self.squares > 0.0 { (total / self.squares, 1.0 / self.squares) } else { (1.0, 0.0) };
        self.widen(factor, if is_centered { center } else { 0.0 })
    }
}

/// The largest size in each column; sizes beyond single precision count as its largest.
pub(crate) fn column_sizes<R: Real>(block: Tile<'_, R>) -> Vec<f32> {
    let mut sizes = vec![0.0f32; block.cols()];
    for i in 0..block.rows() {
        for (size, value) in sizes.iter_mut().zip(block.row(i)) {
            *size = size.max((Real::to_f64(*value) as f32).abs().min(f32::MAX));
        }
    }
    sizes
}

/// Largest size of a rounded number.
const MOST: f32 = 31.0;

/// Added to the left factor, since the instruction multiplies numbers without a sign by numbers with one.
const OFFSET: i64 = 32;

/// Rounds some columns of a block and puts them where the products read them.
struct Pack<'a, R> {
    block: Tile<'a, R>,
    columns: Range<usize>,
    units: &'a [f32],
    numbers: &'a [R],
    /// Chains before these.
    first: usize,
    left: &'a mut [LeftChain],
    right: &'a mut [RightChain],
    column_sums: &'a mut [i64],
    moments: &'a mut [f64],
}

impl<R: Real> pulp::NullaryFnOnce for Pack<'_, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Pack { block, columns, units, numbers, first: before, left, right, column_sums, moments } = self;
        // Adding it moves the whole part of a small number to the lowest bits.
        const TO_BITS: f32 = 1.5 * (1 << 23) as f32 + OFFSET as f32;
        let chains = block.rows().div_ceil(WORD * STEPS);
        let mut inverses = [0.0f32; TILE.0];
        for (inverse, unit) in inverses.iter_mut().zip(units) {
            *inverse = if *unit > 0.0 { 1.0 / unit } else { 0.0 };
        }
        let (mut sums, mut weighted) = ([0u32; TILE.0], [0.0f32; TILE.0]);
        let mut values = [0.0f32; TILE.0];
        for chain in 0..chains {
            for step in 0..STEPS {
                // Rows past the end are zeros, which the right factor drops from every product.
                let mut words = [0x2020_2020u32; TILE.0];
                let first = (chain * STEPS + step) * WORD;
                for row in first..(first + WORD).min(block.rows()) {
                    for (value, from) in values.iter_mut().zip(&block.row(row)[columns.clone()]) {
                        *value = Real::to_f64(*from) as f32;
                    }
                    let number = Real::to_f64(numbers[row]) as f32;
                    let shift = 8 * (row - first) as u32;
                    for j in 0..TILE.0 {
                        let whole = (values[j] * inverses[j]).clamp(-MOST, MOST) + TO_BITS;
                        let bits = whole.to_bits() & 0x3f;
                        words[j] ^= (bits ^ 0x20) << shift;
                        sums[j] += bits;
                        weighted[j] += number * (whole - TO_BITS);
                    }
                }
                for (b, words) in words.as_chunks::<BLOCK>().0.iter().enumerate() {
                    left[b * CHAINS + before + chain][step] = *words;
                }
                for (p, words) in words.as_chunks::<PANEL>().0.iter().enumerate() {
                    // The offset is taken away and the sign, bit 5, extended to bits 6 and 7 of every byte.
                    right[p * CHAINS + before + chain][step] = words.map(|word| {
                        let bare = word ^ 0x2020_2020;
                        let sign = bare & 0x2020_2020;
                        bare | sign << 1 | sign << 2
                    });
                }
            }
        }
        let rows = block.rows() as i64;
        for (to, sum) in column_sums.iter_mut().zip(sums) {
            *to += i64::from(sum) - OFFSET * rows;
        }
        for (to, sum) in moments.iter_mut().zip(weighted) {
            *to += f64::from(sum);
        }
    }
}

/// `sums += leftᵀ right`, exactly.
fn sweep(instructions: Instructions, left: &[LeftChain], right: &[RightChain], sums: &mut Sums) {
    match instructions {
        Instructions::Portable => {
            for (left, right) in left.iter().flatten().zip(right.iter().flatten()) {
                for (sums, left) in sums.iter_mut().zip(left) {
                    for (sum, right) in sums.iter_mut().zip(right) {
                        let (left, right) = (left.to_le_bytes(), right.to_le_bytes());
                        *sum += (0..WORD).map(|k| i32::from(left[k]) * i32::from(right[k] as i8)).sum::<i32>();
                    }
                }
            }
        }
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2(simd) => simd.vectorize(
            #[inline(always)]
            move || sweep_avx2(simd, left, right, sums),
        ),
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sweep_avx2(simd: pulp::x86::V3, left: &[LeftChain], right: &[RightChain], sums: &mut Sums) {
    use std::arch::x86_64::__m256i;
    let (avx, avx2) = (simd.avx, simd.avx2);
    let ones = avx._mm256_set1_epi16(1);
    let mut wide: [[__m256i; 2]; BLOCK] = pulp::cast(*sums);
    // Unrolled, the chain does not fit into the registers: a sixth of the speed went into moving it.
    let steps = std::hint::black_box(STEPS);
    for (left, right) in left.iter().zip(right) {
        let mut chain = [[avx._mm256_setzero_si256(); 2]; BLOCK];
        for (left, right) in left[..steps].iter().zip(&right[..steps]) {
            let right: [__m256i; 2] = pulp::cast(*right);
            for i in 0..BLOCK {
                let left = avx._mm256_set1_epi32(left[i] as i32);
                for j in 0..2 {
                    let products = avx2._mm256_maddubs_epi16(left, right[j]);
                    chain[i][j] = avx2._mm256_add_epi16(chain[i][j], products);
                }
            }
        }
        for i in 0..BLOCK {
            for j in 0..2 {
                let sums = avx2._mm256_madd_epi16(chain[i][j], ones);
                wide[i][j] = avx2._mm256_add_epi32(wide[i][j], sums);
            }
        }
    }
    *sums = pulp::cast(wide);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows in some blocks, with their numbers.
    fn gram(instructions: Instructions, rows: &[f32], dim: usize, blocks: &[usize], is_centered: bool) -> Lower<f32> {
        let mut gram = RoundedGram::on(instructions, &column_sizes(Tile::new(rows, blocks[0], dim)));
        let (mut first, mut squares) = (0, 0.0);
        for &count in blocks {
            let block = Tile::new(&rows[first * dim..], count, dim);
            let numbers: Vec<f32> = (first..first + count).map(|i| (i % 3) as f32).collect();
            squares += numbers.iter().map(|r| f64::from(r * r)).sum::<f64>();
            gram.add(block, &numbers).unwrap();
            first += count;
        }
        gram.finish(squares, is_centered).unwrap()
    }

    #[test]
    fn multiples_of_the_units_are_summed_exactly_by_all_twins() {
        // Whole numbers up to 31, which the first row takes: the unit is 1 and nothing is rounded.
        for (dim, blocks) in [(1, vec![1]), (7, vec![33, 5]), (16, vec![32]), (131, vec![40, 1, 70]), (200, vec![97])] {
            let n: usize = blocks.iter().sum();
            let entry = |i: usize, j: usize| if i == 0 { 31.0 } else { ((i * 17 + j * 29 + i * j) % 63) as f32 - 31.0 };
            let rows: Vec<f32> = (0..n * dim).map(|k| entry(k / dim, k % dim)).collect();
            for instructions in [Instructions::Portable, Instructions::detect()] {
                let squares: f64 = (0..n).map(|k| ((k % 3) * (k % 3)) as f64).sum();
                let (sums, centered) =
                    (gram(instructions, &rows, dim, &blocks, false), gram(instructions, &rows, dim, &blocks, true));
                let moments: Vec<f64> =
                    (0..dim).map(|j| (0..n).map(|k| ((k % 3) as f32 * entry(k, j)) as f64).sum()).collect();
                for i in 0..dim {
                    for j in 0..=i {
                        let exact: f32 = (0..n).map(|k| entry(k, i) * entry(k, j)).sum();
                        assert_eq!(sums.row(i)[j], exact, "{dim} {i} {j}");
                        let exact = f64::from(exact) - moments[i] * moments[j] / squares.max(1.0);
                        let got = f64::from(centered.row(i)[j]);
                        assert!((got - exact).abs() <= 1e-6 * exact.abs().max(1.0), "{dim} {i} {j}: {got} for {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_sums_of_a_chain_are_not_cut_off() {
        let dim = 20;
        for sign in [1.0, -1.0] {
            let rows: Vec<f32> = (0..64 * dim).map(|k| if k % dim < 10 { 31.0 } else { sign * 31.0 }).collect();
            let sums = gram(Instructions::detect(), &rows, dim, &[64], false);
            assert_eq!(sums.row(9)[3], 64.0 * 961.0);
            assert_eq!(sums.row(15)[3], sign * 64.0 * 961.0);
        }
    }

    #[test]
    fn rounding_errs_by_half_a_unit_and_zeros_stay_zeros() {
        let (n, dim) = (500, 50);
        let entry = |i: usize, j: usize| if j == 7 { 0.0 } else { ((i * 31 + j * 17) as f32 * 0.37).cos() * j as f32 };
        let rows: Vec<f32> = (0..n * dim).map(|k| entry(k / dim, k % dim)).collect();
        let sums = gram(Instructions::detect(), &rows, dim, &[n], false);
        for i in 0..dim {
            for j in 0..=i {
                let exact: f64 = (0..n).map(|k| f64::from(entry(k, i)) * f64::from(entry(k, j))).sum();
                // |xy - qr| ≤ |x||y - r| + |r||x - q| with errors of at most a 62nd of the largest size.
                let bound = n as f64 * (2.0 / 62.0 + 1e-6) * (i * j) as f64;
                assert!((f64::from(sums.row(i)[j]) - exact).abs() <= bound, "{i} {j}: {} for {exact}", sums.row(i)[j]);
            }
        }
        assert!((0..7).all(|j| sums.row(7)[j] == 0.0) && sums.row(7)[7] == 0.0);
    }

    #[test]
    fn sums_of_many_rows_move_on_before_they_overflow() {
        let dim = 3;
        let rows = vec![31.0f32; 4096 * dim];
        let mut gram = RoundedGram::new(&[31.0; 3]);
        let blocks = MOST_ROWS / 4096 + 2;
        for _ in 0..blocks {
            gram.add(Tile::new(&rows, 4096, dim), &vec![1.0; 4096]).unwrap();
        }
        let sums = gram.finish((blocks * 4096) as f64, false).unwrap();
        assert_eq!(sums.row(2), [(blocks * 4096 * 961) as f32; 3]);
    }
}
