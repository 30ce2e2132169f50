//! Rows kept as whole numbers of a byte: a quarter of the memory of single precision, twice the speed of its products, and
//! close enough to help an iteration that computes with the rows themselves.

use super::kernel::with_constant;
use super::ranges;
use crate::interrupt::Flag;
use crate::linalg::vectors::{Instructions, Portable};
use crate::linalg::{Tile, zeroed_bytes};
use crate::parallel::Parallel;
use crate::scalar::Real;
use ndarray::{Array2, ArrayView2};

/// Numbers of a row that are multiplied at once.
const LANES: usize = 16;

/// Rows of a task.
const TASK: usize = 2048;

/// Rows `xᵢ` rounded to `qᵢ`: column `j` to multiples of a 127th of the size it is given, sizes beyond it to that size.
///
/// It multiplies with `Σ qᵢqᵢᵀ`, or where the rows are centred with `Σ qᵢqᵢᵀ - (Σ rᵢqᵢ)(Σ rᵢqᵢ)ᵀ/Σ rᵢ²`, `rᵢ` the numbers
/// that came with them. Vectors are rounded to 16 bits on the way.
#[derive(Debug)]
pub(crate) struct RoundedRows {
    instructions: Instructions,
    /// Bytes from row to row.
    stride: usize,
    units: Vec<f32>,
    inverses: Vec<f32>,
    tasks: Vec<Task>,
    /// `Σ rᵢqᵢ` in units, and `Σ rᵢ²`.
    moments: Vec<f64>,
    squares: f64,
    is_centered: bool,
}

/// Room for [`TASK`] rows, zeros where there are fewer, and the numbers that came with them.
#[derive(Debug)]
struct Task {
    rows: Vec<i8>,
    numbers: Vec<f32>,
}

/// Whole vectors, and not a multiple of 4,096 bytes: all rows of a tile would meet in one set of the first-level cache.
fn stride(dim: usize) -> usize {
    let whole = dim.next_multiple_of(64);
    whole + if whole.is_multiple_of(512) { 64 } else { 0 }
}

impl RoundedRows {
    /// No rows yet; `sizes` are those that the largest whole numbers of the columns stand for.
    pub(crate) fn new(sizes: &[f32], is_centered: bool) -> Self {
        Self::on(Instructions::detect(), sizes, is_centered)
    }

    fn on(instructions: Instructions, sizes: &[f32], is_centered: bool) -> Self {
        RoundedRows {
            instructions,
            stride: stride(sizes.len()),
            units: sizes.iter().map(|size| size / MOST).collect(),
            inverses: sizes.iter().map(|size| if *size > 0.0 { MOST / size } else { 0.0 }).collect(),
            tasks: Vec::new(),
            moments: vec![0.0; sizes.len()],
            squares: 0.0,
            is_centered,
        }
    }

    /// Length of a row.
    pub(crate) fn dim(&self) -> usize {
        self.units.len()
    }

    /// Bytes of this many rows.
    pub(crate) fn bytes(dim: usize, rows: usize) -> u64 {
        (stride(dim) as u64 + 4).saturating_mul(rows.next_multiple_of(TASK) as u64)
    }

    /// Bytes that a product with this many columns takes meanwhile: every task has sums of its own.
    pub(crate) fn product_bytes(dim: usize, rows: usize, columns: usize) -> u64 {
        (rows.div_ceil(TASK) as u64 + 3).saturating_mul(4 * (dim.next_multiple_of(LANES) * columns) as u64)
    }

    /// Adds rows, each with its number.
    pub(crate) fn add<R: Real>(&mut self, block: Tile<'_, R>, numbers: &[R]) {
        /// Columns per task where moments are summed.
        const STRIP: usize = 512;
        assert_eq!((block.cols(), block.rows()), (self.dim(), numbers.len()), "a number for every row");
        let mut done = 0;
        while done < block.rows() {
            if self.tasks.last().is_none_or(|task| task.numbers.len() == TASK) {
                self.tasks.push(Task { rows: zeroed_bytes(TASK * self.stride), numbers: Vec::with_capacity(TASK) });
            }
            let task = self.tasks.last_mut().expect("one with room");
            let first = task.numbers.len();
            let taken = done..(done + TASK - first).min(block.rows());
            let new = &mut task.rows[first * self.stride..][..taken.len() * self.stride];
            let (inverses, from) = (&self.inverses, block.rows_in(taken.clone()));
            new.chunks_mut(self.stride).enumerate().in_parallel().for_each(|(i, to)| {
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    move || round(from.row(i), inverses, to),
                );
            });
            task.numbers.extend(numbers[taken.clone()].iter().map(|r| Real::to_f64(*r) as f32));
            let (new, numbers, stride) = (&*new, &task.numbers[first..], self.stride);
            self.moments.chunks_mut(STRIP).enumerate().in_parallel().for_each(|(strip, moments)| {
                let mut sums = [0.0f32; STRIP];
                for (row, number) in new.chunks(stride).zip(numbers) {
                    for (sum, q) in sums.iter_mut().zip(&row[strip * STRIP..][..moments.len()]) {
                        *sum += number * f32::from(*q);
                    }
                }
                moments.iter_mut().zip(sums).for_each(|(to, sum)| *to += f64::from(sum));
            });
            self.squares += numbers.iter().map(|r| f64::from(*r).powi(2)).sum::<f64>();
            done = taken.end;
        }
    }

    /// Products with the columns of `v`.
    pub(crate) fn product(&self, v: ArrayView2<'_, f64>) -> Array2<f64> {
        let (dim, columns) = v.dim();
        assert_eq!(dim, self.dim(), "vectors as long as the rows");
        let vectors = dim.div_ceil(LANES);
        // Sums of a lane, every eighth product of a row, stay below 2³¹.
        let most = ((1u64 << 31) / (127 * 2 * vectors as u64)).min(1 << 15) as f64 - 1.0;
        let mut largest = vec![0.0f64; columns];
        for (row, unit) in v.rows().into_iter().zip(&self.units) {
            for (largest, value) in largest.iter_mut().zip(row) {
                *largest = largest.max((value * f64::from(*unit)).abs());
            }
        }
        let units: Vec<f64> = largest.iter().map(|size| size / most).collect();
        let mut whole = vec![[0i16; LANES]; vectors * columns];
        let mut shift = vec![0.0; columns];
        for (j, (row, unit)) in v.rows().into_iter().zip(&self.units).enumerate() {
            for (c, value) in row.iter().enumerate() {
                let rounded = if units[c] > 0.0 { (value * f64::from(*unit) / units[c]).round() } else { 0.0 };
                whole[j / LANES * columns + c][j % LANES] = rounded as i16;
                shift[c] += self.moments[j] * rounded;
            }
        }
        // What the means of the rows say, which every row is less by its number times this.
        let center = if self.is_centered && self.squares > 0.0 { 1.0 / self.squares } else { 0.0 };
        shift.iter_mut().for_each(|shift| *shift *= center);
        let work = |task: &Task| {
            let job = Job { task, stride: self.stride, whole: &whole, columns, shift: &shift };
            match self.instructions {
                Instructions::Portable => job.run(Portable),
                #[cfg(target_arch = "x86_64")]
                Instructions::Avx2(simd) => simd.vectorize(
                    #[inline(always)]
                    move || job.run(simd),
                ),
            }
        };
        let stop = Flag::current();
        let parts: Vec<Option<(Vec<[f32; LANES]>, Vec<f64>)>> =
            self.tasks.iter().in_parallel().map(|task| (!stop.raised()).then(|| work(task)));
        let (mut sums, mut remainder) = (vec![[0.0f64; LANES]; vectors * columns], vec![0.0; columns]);
        for (part, left) in parts.iter().flatten() {
            for (sums, part) in sums.iter_mut().zip(part) {
                sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += f64::from(*value));
            }
            remainder.iter_mut().zip(left).for_each(|(sum, value)| *sum += value);
        }
        Array2::from_shape_fn((dim, columns), |(j, c)| {
            // The second term is zero but for rounding; without it the product would not be quite symmetric.
            let sum = sums[j / LANES * columns + c][j % LANES] - self.moments[j] * remainder[c] * center;
            sum * f64::from(self.units[j]) * units[c]
        })
    }
}

/// Largest size of a kept number.
const MOST: f32 = 127.0;

/// Rounds a row.
#[inline(always)]
fn round<R: Real>(from: &[R], inverses: &[f32], to: &mut [i8]) {
    // Adding it moves the whole part of a small number to the lowest bits.
    const TO_BITS: f32 = 1.5 * (1 << 23) as f32;
    for ((to, from), inverse) in to.iter_mut().zip(from).zip(inverses) {
        let value = (Real::to_f64(*from) as f32 * inverse).clamp(-MOST, MOST);
        *to = (value + TO_BITS).to_bits() as i8;
    }
}

/// The rows of a task times all columns, and back.
struct Job<'a> {
    task: &'a Task,
    stride: usize,
    /// For each vector of a row those of all columns.
    whole: &'a [[i16; LANES]],
    columns: usize,
    shift: &'a [f64],
}

/// The two directions for a few columns.
trait Both: Copy {
    /// Adds the products of two rows with `K` of `columns` columns to sums whose total counts.
    fn there<const K: usize>(self, rows: [&[i8]; 2], whole: &[[i16; LANES]], columns: usize, sums: [&mut [Lanes]; 2]);

    /// Adds products of a vector of all rows to `K` sums.
    fn back<const K: usize>(self, job: &Back<'_>, sums: &mut [[f32; LANES]]);
}

type Lanes = [i32; 8];

/// A vector of all rows of a tile, given as pairs of rows, that is multiplied with numbers for each pair.
struct Back<'a> {
    tile: &'a [i8],
    /// First number of the vector in a row.
    first: usize,
    stride: usize,
    /// For each pair of rows those of all columns, from the first of the sums on.
    pairs: &'a [[i16; 2]],
    columns: usize,
    scales: &'a [f32],
}

/// Columns of the other factor that are multiplied at once: with two rows, or two vectors of one, ten sums are in registers.
const GROUP: usize = 5;

/// Rows that are multiplied both ways before the next ones: the second way finds a quarter of a megabyte, if rows have 4,096
/// numbers, in the second-level cache. Sums of as many products of at most 127 · 32,767 stay below 2³¹.
const TILE: usize = 64;

impl Job<'_> {
    #[inline(always)]
    fn run(self, both: impl Both) -> (Vec<[f32; LANES]>, Vec<f64>) {
        /// Vectors of a row that are multiplied at once: those of the other factor stay in the first-level cache meanwhile.
        const DEPTH: usize = 32;
        let Job { task, stride, whole, columns, shift } = self;
        let mut sums = vec![[0.0f32; LANES]; whole.len()];
        let mut remainder = vec![0.0f64; columns];
        let mut parts = vec![Lanes::default(); TILE * columns];
        let mut images = vec![0.0f32; TILE * columns];
        let mut pairs = vec![[0i16; 2]; TILE / 2 * columns];
        let mut scales = vec![0.0f32; columns];
        let vectors = whole.len() / columns.max(1);
        for rows in ranges(0..task.numbers.len(), TILE) {
            // An odd row has one of zeros beside it.
            let tile = &task.rows[rows.start * stride..][..rows.len().next_multiple_of(2) * stride];
            parts.fill(Lanes::default());
            for depth in ranges(0..vectors, DEPTH) {
                let numbers = depth.start * LANES..depth.end * LANES;
                for (rows, parts) in tile.chunks_exact(2 * stride).zip(parts.chunks_mut(2 * columns)) {
                    let rows = [&rows[numbers.clone()], &rows[stride..][numbers.clone()]];
                    let (first, second) = parts.split_at_mut(columns);
                    for group in ranges(0..columns, GROUP) {
                        let whole = &whole[depth.start * columns + group.start..depth.end * columns];
                        let sums = [&mut first[group.clone()], &mut second[group.clone()]];
                        with_constant!(K = group.len(), of [1, 2, 3, 4, 5], both.there::<K>(rows, whole, columns, sums));
                    }
                }
            }
            let numbers = &task.numbers[rows.clone()];
            for ((images, parts), number) in images.chunks_mut(columns).zip(parts.chunks(columns)).zip(numbers) {
                for ((image, lanes), shift) in images.iter_mut().zip(parts).zip(shift) {
                    let sum: i64 = lanes.iter().map(|&lane| i64::from(lane)).sum();
                    *image = (sum as f64 - f64::from(*number) * shift) as f32;
                }
            }
            pairs.fill([0; 2]);
            for c in 0..columns {
                let of_rows = images[c..].iter().step_by(columns).take(rows.len());
                let largest = of_rows.clone().fold(0.0f32, |most, v| most.max(v.abs()));
                scales[c] = largest / 32_767.0;
                let inverse = if largest > 0.0 { 32_767.0 / largest } else { 0.0 };
                for (i, (image, number)) in of_rows.zip(numbers).enumerate() {
                    let rounded = (image * inverse).round_ties_even();
                    pairs[i / 2 * columns + c][i % 2] = rounded as i16;
                    remainder[c] += f64::from(*number) * f64::from(rounded) * f64::from(scales[c]);
                }
            }
            for (vector, sums) in sums.chunks_mut(columns).enumerate() {
                for group in ranges(0..columns, GROUP) {
                    let sums = &mut sums[group.clone()];
                    let (pairs, scales) = (&pairs[group.start..], &scales[group.clone()]);
                    with_constant!(K = group.len(), of [1, 2, 3, 4, 5], {
                        both.back::<K>(&Back { tile, first: vector * LANES, stride, pairs, columns, scales }, sums);
                    });
                }
            }
        }
        (sums, remainder)
    }
}

impl Both for Portable {
    fn there<const K: usize>(self, rows: [&[i8]; 2], whole: &[[i16; LANES]], columns: usize, sums: [&mut [Lanes]; 2]) {
        for (row, sums) in rows.into_iter().zip(sums) {
            for (row, whole) in row.chunks(LANES).zip(whole.chunks(columns)) {
                for (sums, whole) in sums[..K].iter_mut().zip(whole) {
                    for (j, (q, p)) in row.iter().zip(whole).enumerate() {
                        sums[j / 2] += i32::from(*q) * i32::from(*p);
                    }
                }
            }
        }
    }

    fn back<const K: usize>(self, job: &Back<'_>, sums: &mut [[f32; LANES]]) {
        let &Back { tile, first, stride, pairs, columns, scales } = job;
        for (c, (sums, scale)) in sums[..K].iter_mut().zip(scales).enumerate() {
            for (j, sum) in sums.iter_mut().enumerate() {
                let rows = tile.chunks(2 * stride).zip(pairs.chunks(columns));
                let products = rows.map(|(rows, pairs)| {
                    let (q, t) = ([rows[first + j], rows[stride + first + j]], pairs[c]);
                    i32::from(q[0]) * i32::from(t[0]) + i32::from(q[1]) * i32::from(t[1])
                });
                *sum = scale.mul_add(products.sum::<i32>() as f32, *sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Both for pulp::x86::V3 {
    #[inline(always)]
    fn there<const K: usize>(self, rows: [&[i8]; 2], whole: &[[i16; LANES]], columns: usize, sums: [&mut [Lanes]; 2]) {
        use std::arch::x86_64::__m256i;
        let [first, second] = sums.map(|sums| -> &mut [Lanes; K] { sums.try_into().expect("K sums") });
        let mut chains: [[__m256i; 2]; K] = std::array::from_fn(|k| [pulp::cast(first[k]), pulp::cast(second[k])]);
        let pairs = rows[0].as_chunks::<LANES>().0.iter().zip(rows[1].as_chunks::<LANES>().0);
        for ((a, b), whole) in pairs.zip(whole.chunks(columns)) {
            let a = self.avx2._mm256_cvtepi8_epi16(pulp::cast(*a));
            let b = self.avx2._mm256_cvtepi8_epi16(pulp::cast(*b));
            let whole: &[[i16; LANES]; K] = whole.first_chunk().expect("K columns");
            for k in 0..K {
                let p: __m256i = pulp::cast(whole[k]);
                chains[k][0] = self.avx2._mm256_add_epi32(chains[k][0], self.avx2._mm256_madd_epi16(a, p));
                chains[k][1] = self.avx2._mm256_add_epi32(chains[k][1], self.avx2._mm256_madd_epi16(b, p));
            }
        }
        for k in 0..K {
            (first[k], second[k]) = (pulp::cast(chains[k][0]), pulp::cast(chains[k][1]));
        }
    }

    #[inline(always)]
    fn back<const K: usize>(self, job: &Back<'_>, sums: &mut [[f32; LANES]]) {
        let &Back { tile, first, stride, pairs, columns, scales } = job;
        let mut chains = [[self.avx._mm256_setzero_si256(); 2]; K];
        for (rows, pairs) in tile.chunks_exact(2 * stride).zip(pairs.chunks(columns)) {
            let a: &[i8; LANES] = rows[first..].first_chunk().expect("a whole vector");
            let b: &[i8; LANES] = rows[stride + first..].first_chunk().expect("a whole vector");
            let (a, b) = (pulp::cast(*a), pulp::cast(*b));
            let low = self.avx2._mm256_cvtepi8_epi16(self.sse2._mm_unpacklo_epi8(a, b));
            let high = self.avx2._mm256_cvtepi8_epi16(self.sse2._mm_unpackhi_epi8(a, b));
            let pairs: &[[i16; 2]; K] = pairs.first_chunk().expect("K columns");
            for k in 0..K {
                let t = self.avx._mm256_set1_epi32(pulp::cast(pairs[k]));
                chains[k][0] = self.avx2._mm256_add_epi32(chains[k][0], self.avx2._mm256_madd_epi16(low, t));
                chains[k][1] = self.avx2._mm256_add_epi32(chains[k][1], self.avx2._mm256_madd_epi16(high, t));
            }
        }
        let (scales, sums): (&[f32; K], &mut [[f32; LANES]; K]) =
            (scales.try_into().expect("K scales"), sums.try_into().expect("K sums"));
        for k in 0..K {
            let scale = self.avx._mm256_set1_ps(scales[k]);
            let [low, high]: [std::arch::x86_64::__m256; 2] = pulp::cast(sums[k]);
            let low = self.fma._mm256_fmadd_ps(scale, self.avx._mm256_cvtepi32_ps(chains[k][0]), low);
            let high = self.fma._mm256_fmadd_ps(scale, self.avx._mm256_cvtepi32_ps(chains[k][1]), high);
            sums[k] = pulp::cast([low, high]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of whole numbers up to 127, which every column takes in the first row: nothing is rounded when they are kept.
    fn entry(i: usize, j: usize) -> f32 {
        if i == 0 { 127.0 } else { ((i * 17 + j * 29 + i * j) % 255) as f32 - 127.0 }
    }

    fn number(i: usize) -> f32 {
        (i % 3) as f32 * 0.5
    }

    fn kept(instructions: Instructions, dim: usize, blocks: &[usize], is_centered: bool) -> RoundedRows {
        let mut rows = RoundedRows::on(instructions, &vec![127.0; dim], is_centered);
        let mut first = 0;
        for &count in blocks {
            let values: Vec<f32> = (first * dim..(first + count) * dim).map(|k| entry(k / dim, k % dim)).collect();
            let numbers: Vec<f32> = (first..first + count).map(number).collect();
            rows.add(Tile::new(&values, count, dim), &numbers);
            first += count;
        }
        rows
    }

    const SHAPES: [(usize, usize, &[usize]); 5] =
        [(1, 1, &[1]), (7, 2, &[33, 5]), (16, 5, &[64]), (131, 7, &[40, 1, 70]), (1030, 11, &[256, 97])];

    #[test]
    fn products_are_those_of_the_definition_but_for_sixteen_bits() {
        for (dim, columns, blocks) in SHAPES {
            let n: usize = blocks.iter().sum();
            let squares: f64 = (0..n).map(|i| f64::from(number(i)).powi(2)).sum();
            let v = Array2::from_shape_fn((dim, columns), |(j, c)| ((j * 31 + c * 17) as f64 * 0.7).sin());
            let value = |i: usize, j: usize| f64::from(entry(i, j));
            let moments: Vec<f64> =
                (0..dim).map(|j| (0..n).map(|i| f64::from(number(i)) * value(i, j)).sum()).collect();
            for is_centered in [false, true] {
                let product = kept(Instructions::detect(), dim, blocks, is_centered).product(v.view());
                let center = if is_centered && squares > 0.0 { 1.0 / squares } else { 0.0 };
                for c in 0..columns {
                    let along: f64 = (0..dim).map(|j| moments[j] * v[[j, c]]).sum();
                    let image = |i: usize| -> f64 {
                        let row: f64 = (0..dim).map(|j| value(i, j) * v[[j, c]]).sum();
                        row - f64::from(number(i)) * along * center
                    };
                    let images: Vec<f64> = (0..n).map(image).collect();
                    // Half of the last bit of every number of `v` and of every image, seen by all rows and by their means.
                    let last = 0.5 / ((1u64 << 31) / (254 * dim.div_ceil(LANES) as u64)).min(1 << 15) as f64 * 1.01;
                    let off = dim as f64 * 127.0 * last + images.iter().fold(0.0f64, |m, v| m.max(v.abs())) / 65_000.0;
                    let bound = 2.0 * n as f64 * 127.0 * off * if is_centered { 2.0 } else { 1.0 };
                    for j in 0..dim {
                        let sum: f64 = (0..n)
                            .map(|i| (value(i, j) - f64::from(number(i)) * moments[j] * center) * images[i])
                            .sum();
                        let got = product[[j, c]];
                        assert!((got - sum).abs() <= bound, "{dim} {columns} {j} {c}: {got} for {sum} ± {bound}");
                    }
                }
            }
        }
    }

    #[test]
    fn twins_have_the_same_bits_and_blocks_leave_no_trace() {
        for (dim, columns, blocks) in SHAPES {
            let v = Array2::from_shape_fn((dim, columns), |(j, c)| ((j * 31 + c * 17) as f64 * 0.7).sin());
            let n: usize = blocks.iter().sum();
            let expected = kept(Instructions::Portable, dim, blocks, true).product(v.view());
            assert_eq!(kept(Instructions::detect(), dim, blocks, true).product(v.view()), expected);
            assert_eq!(kept(Instructions::detect(), dim, &vec![1; n], true).product(v.view()), expected);
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let (dim, n) = (5000, TASK + 3);
        let mut rows = RoundedRows::new(&vec![127.0; dim], false);
        for _ in 0..n {
            rows.add(Tile::new(&vec![-127.0f32; dim], 1, dim), &[1.0]);
        }
        let product = rows.product(Array2::from_elem((dim, 1), 3.0).view());
        let exact = 3.0 * 127.0 * 127.0 * (n * dim) as f64;
        assert!(product.iter().all(|v| (v - exact).abs() < 1e-6 * exact), "{} for {exact}", product[[0, 0]]);
    }

    #[test]
    fn rounding_errs_by_half_a_unit_and_zeros_stay_zeros() {
        let sizes = [1.0, 0.0, 3.0];
        let mut rows = RoundedRows::new(&sizes, false);
        let values = [0.3f32, 5.0, -2.9, -0.999, 0.0, 7.0];
        rows.add(Tile::new(&values, 2, 3), &[1.0, 1.0]);
        let kept: Vec<f32> = (0..2)
            .flat_map(|i| (0..3).map(move |j| (i, j)))
            .map(|(i, j)| f32::from(rows.tasks[0].rows[i * rows.stride + j]) * rows.units[j])
            .collect();
        for (k, (kept, value)) in kept.iter().zip(values).enumerate() {
            let size = sizes[k % 3];
            assert!((kept - value.clamp(-size, size)).abs() <= size / 254.0 * 1.0001, "{kept} for {value}");
        }
    }
}
