//! Walsh–Hadamard transform in natural order, unnormalised: `H₁ = (1)`, `H₂ₙ = [[Hₙ, Hₙ], [Hₙ, -Hₙ]]`, `H Hᵀ = nI`.
//!
//! A transform of length `n` is `log₂ n` stages of sums and differences of numbers a *stride* apart. Rounding depends on
//! the order of the stages, so all forms in this module (rows, lanes, with and without vector instructions) keep one: the
//! stride of half a pack first (4 for `f32`, 2 for `f64`), then 1, 2, 4, 8, … without it. Their bits are equal.

use super::vectors::{Packed, VectorKernel, Vectors};
use super::{Tile, TileMut};
use crate::error::{Error, Result};
use crate::parallel::Parallel;
use crate::scalar::Real;
use ndarray::{ArrayViewMut2, Axis};
use pulp::cast;
use std::cell::Cell;
use std::hint::black_box;

/// Longest row of the maps built on this transform.
pub const LONGEST: usize = 1 << 26;

/// Bytes of a block that gets all its stages before the next one is touched: half of the first-level cache. A block as
/// large as the cache loses lines to whatever else is touched, and a third of the speed.
pub(crate) const BLOCK_BYTES: usize = 1 << 14;

/// Rows this far apart share a set of the first-level cache, which has room for eight lines.
const ALIAS_BYTES: usize = 1 << 12;

/// `a - b`; by the multipliers, which would be idle next to as many sums, where there is a register of ones for them.
#[inline(always)]
fn difference<R: Packed, S: Vectors<R>>(s: S, one: Option<S::V>, a: S::V, b: S::V) -> S::V {
    match one {
        Some(one) => s.sub_product(a, b, one),
        None => s.sub(a, b),
    }
}

/// Butterflies across `N` registers, those of numbers `h` apart.
#[inline(always)]
fn stage<R: Packed, S: Vectors<R>, const N: usize>(s: S, one: Option<S::V>, h: usize, v: [S::V; N]) -> [S::V; N] {
    let mut out = v;
    for i in 0..N {
        if i & h == 0 {
            out[i] = s.add(v[i], v[i + h]);
            out[i + h] = difference(s, one, v[i], v[i + h]);
        }
    }
    out
}

#[inline(always)]
fn butterflies8<R: Packed, S: Vectors<R>>(s: S, one: Option<S::V>, v: [S::V; 8]) -> [S::V; 8] {
    stage(s, one, 4, stage(s, one, 2, stage(s, one, 1, v)))
}

/// The first three stages of the lane form, in the order of this module.
#[inline(always)]
fn first_butterflies8<R: Packed, S: Vectors<R>>(s: S, one: Option<S::V>, v: [S::V; 8]) -> [S::V; 8] {
    let (first, last) = if R::WIDTH == 8 { (4, 2) } else { (2, 4) };
    stage(s, one, last, stage(s, one, 1, stage(s, one, first, v)))
}

#[inline(always)]
fn butterflies4<R: Packed, S: Vectors<R>>(s: S, one: Option<S::V>, v: [S::V; 4]) -> [S::V; 4] {
    stage(s, one, 2, stage(s, one, 1, v))
}

/// Eight registers, wherever they come from.
#[inline(always)]
fn eight<V>(load: impl Fn(usize) -> V) -> [V; 8] {
    [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)]
}

/// All stages of `N` registers, a power of two up to 16, wherever they come from and go to.
///
/// Sixteen registers are full, so a few values go through the stack; rows that are not aligned to a register (any `Vec`)
/// still gain a quarter over two passes of radix 4, since every other access of those crosses a cache line.
#[inline(always)]
pub(crate) fn radix<R: Packed, S: Vectors<R>, const N: usize>(
    s: S,
    one: Option<S::V>,
    load: impl Fn(usize) -> S::V,
    mut store: impl FnMut(usize, S::V),
) {
    match N {
        16 => {
            let a = butterflies4(s, None, [load(0), load(1), load(2), load(3)]);
            let b = butterflies4(s, None, [load(4), load(5), load(6), load(7)]);
            let c = butterflies4(s, None, [load(8), load(9), load(10), load(11)]);
            let d = butterflies4(s, None, [load(12), load(13), load(14), load(15)]);
            for k in 0..4 {
                let v = butterflies4(s, None, [a[k], b[k], c[k], d[k]]);
                store(k, v[0]);
                store(k + 4, v[1]);
                store(k + 8, v[2]);
                store(k + 12, v[3]);
            }
        }
        8 => {
            let v = butterflies8(s, one, eight(load));
            (0..8).for_each(|k| store(k, v[k]));
        }
        4 => {
            let v = butterflies4(s, one, [load(0), load(1), load(2), load(3)]);
            (0..4).for_each(|k| store(k, v[k]));
        }
        _ => {
            let [a, b] = stage(s, one, 1, [load(0), load(1)]);
            store(0, a);
            store(1, b);
        }
    }
}

/// The stages of `N` registers, strides from `h` packs on.
#[inline(always)]
fn pass<R: Packed, S: Vectors<R>, const N: usize>(s: S, one: S::V, x: &mut [R::Pack], h: usize) {
    // Cells, since the same places are read and written.
    for group in Cell::from_mut(x).as_slice_of_cells().chunks_exact(N * h) {
        let mut parts = [group; N];
        for k in 0..N {
            parts[k] = &group[k * h..][..h];
        }
        for j in 0..h {
            radix::<R, S, N>(
                s,
                Some(one),
                #[inline(always)]
                |k| s.load(&parts[k][j].get()),
                #[inline(always)]
                |k, v| parts[k][j].set(cast(v)),
            );
        }
    }
}

/// The stages of strides `h`, `2h`, … below the length, in as few passes over the packs as registers allow.
#[inline(always)]
fn stages<R: Packed, S: Vectors<R>>(s: S, one: S::V, x: &mut [R::Pack], mut h: usize) {
    while h < x.len() {
        let missing = (x.len() / h).trailing_zeros();
        let most = if h * size_of::<R::Pack>() < ALIAS_BYTES { 4 } else { 3 };
        // Evenly shared: five stages are three and two, since a lone one costs as much memory traffic as four.
        let now = missing.div_ceil(missing.div_ceil(most));
        match now {
            4 => pass::<R, S, 16>(s, one, x, h),
            3 => pass::<R, S, 8>(s, one, x, h),
            2 => pass::<R, S, 4>(s, one, x, h),
            _ => pass::<R, S, 2>(s, one, x, h),
        }
        h <<= now;
    }
}

/// `first` on every cache-sized block (told the number of its first pack) together with the stages inside it, from stride
/// `h` packs on; then the other stages.
#[inline(always)]
fn blocked<R: Real, S: Vectors<R>>(s: S, x: &mut [R::Pack], h: usize, first: impl Fn(S::V, &mut [R::Pack], usize)) {
    // Hidden from the optimiser, which would turn the multiply-adds by one back into sums.
    let one = s.splat(black_box(R::ONE));
    let block = (BLOCK_BYTES / size_of::<R::Pack>()).min(x.len());
    for (i, part) in x.chunks_exact_mut(block).enumerate() {
        first(one, part, i * block);
        stages(s, one, part, h);
    }
    stages(s, one, x, block);
}

/// Transform of one row.
#[inline(always)]
pub(crate) fn row<R: Real, S: Vectors<R>>(s: S, row: &mut [R]) {
    row_after(s, row, |_, _| ());
}

/// Transform of what `prepare` makes of a row: it is called with one piece after the other and the number of the piece's
/// first element, while the piece is in the first-level cache. Pieces are multiples of 64 but for rows shorter than that.
#[inline(always)]
pub(crate) fn row_after<R: Real, S: Vectors<R>>(s: S, row: &mut [R], prepare: impl Fn(&mut [R], usize)) {
    if row.len() < 8 * R::WIDTH {
        prepare(row, 0);
        return plain::<R, _>(row, |a, b| (*a, *b) = (*a + *b, *a - *b));
    }
    blocked(
        s,
        R::packs_mut(row),
        8,
        #[inline(always)]
        |_, block, start| {
            prepare(R::numbers_mut(block), start * R::WIDTH);
            for packs in block.as_chunks_mut::<8>().0 {
                // The multipliers have the stages inside the packs.
                let v = butterflies8(s, None, eight(|k| s.hadamard(&packs[k])));
                for k in 0..8 {
                    s.store(&mut packs[k], v[k]);
                }
            }
        },
    );
}

/// Transform of a row of at least 64 numbers from pieces of 64 that `begin` gives all their stages (with [`piece`], say);
/// told the piece's packs and the number of its first element.
#[inline(always)]
pub(crate) fn row_of_pieces<R: Real, S: Vectors<R>>(s: S, row: &mut [R], begin: impl Fn(S::V, &mut [R::Pack], usize)) {
    let packs = 64 / R::WIDTH;
    blocked(
        s,
        R::packs_mut(row),
        packs,
        #[inline(always)]
        |one, block, start| {
            for (i, piece) in block.chunks_exact_mut(packs).enumerate() {
                begin(one, piece, (start + i * packs) * R::WIDTH);
            }
        },
    );
}

/// `H D₂ H D₃ (scale · x)` for 64 numbers `x`, with signs from the bits of `d3` and `d2`.
///
/// The numbers are a matrix of eight rows. The first transform begins with the strides across its rows (8, 16, 32), so
/// that the matrix has to be transposed but twice: for the stages inside rows, the signs `D₂` and the same stages of the
/// second transform; those are in the order of this module.
#[inline(always)]
pub(crate) fn piece<R: Real, S: Vectors<R>>(
    s: S,
    one: S::V,
    x: &[R::Pack],
    scale: S::V,
    [d3, d2]: [u64; 2],
    out: &mut [R::Pack],
) {
    let per_row = 8 / R::WIDTH;
    let (x, out) = (&x[..8 * per_row], &mut out[..8 * per_row]);
    // Pack `k` of row `r` is `m[k][r]`.
    let mut m = [[scale; 8]; 2];
    for k in 0..per_row {
        for r in 0..8 {
            let at = r * per_row + k;
            m[k][r] = s.flip(s.mul(s.load(&x[at]), scale), d3, at);
        }
        m[k] = butterflies8(s, Some(one), m[k]);
    }
    for part in 0..per_row {
        let first = part * R::WIDTH;
        let mut v = m[0];
        for i in 0..8 {
            v[i] = m[i % per_row][first + i / per_row];
        }
        v = first_butterflies8(s, Some(one), s.rows_to_columns(v));
        for column in 0..8 {
            v[column] = s.flip_column(v[column], d2, column, part);
        }
        v = s.columns_to_rows(first_butterflies8(s, Some(one), v));
        for i in 0..8 {
            m[i % per_row][first + i / per_row] = v[i];
        }
    }
    for k in 0..per_row {
        let v = butterflies8(s, Some(one), m[k]);
        for r in 0..8 {
            s.store(&mut out[r * per_row + k], v[r]);
        }
    }
}

/// Transform of eight rows, element by element.
#[inline(always)]
pub(crate) fn lanes<R: Real, S: Vectors<R>>(s: S, data: &mut [[R; 8]]) {
    if data.len() < 8 {
        return plain::<R, _>(data, |a, b| {
            for (a, b) in a.iter_mut().zip(b) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        });
    }
    let h = 8 / R::WIDTH;
    blocked(
        s,
        R::packs_mut(data.as_flattened_mut()),
        8 * h,
        #[inline(always)]
        |one, block, _| {
            for packs in block.chunks_exact_mut(8 * h) {
                for half in 0..h {
                    let v = first_butterflies8(s, Some(one), eight(|k| s.load(&packs[k * h + half])));
                    for k in 0..8 {
                        s.store(&mut packs[k * h + half], v[k]);
                    }
                }
            }
        },
    );
}

/// Lane form of `H(z ∘ x)` for eight rows `x` and signs `z`, `PARTS` to a sign: the real one, or real and imaginary part.
///
/// Element `j` of the result are the eight real parts and, for two parts, the eight imaginary parts after them.
#[inline(always)]
pub(crate) fn signed_lanes<R: Real, S: Vectors<R>, const PARTS: usize>(
    s: S,
    x: &[[R; 8]],
    signs: &[[R; PARTS]],
    out: &mut [[[R; 8]; PARTS]],
) {
    let per_element = 8 / R::WIDTH;
    if x.len() < 8 {
        for ((out, x), sign) in out.iter_mut().zip(x).zip(signs) {
            *out = sign.map(|sign| x.map(|x| x * sign));
        }
        return plain::<R, _>(out, |a, b| {
            for (a, b) in a.as_flattened_mut().iter_mut().zip(b.as_flattened_mut()) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        });
    }
    let x = R::packs(x.as_flattened());
    let h = PARTS * per_element;
    blocked(
        s,
        R::packs_mut(out.as_flattened_mut().as_flattened_mut()),
        8 * h,
        #[inline(always)]
        |one, block, start| {
            let first = start / h;
            let x = x[first * per_element..].chunks_exact(8 * per_element);
            let signs = signs[first..].as_chunks::<8>().0;
            for ((out, x), signs) in block.chunks_exact_mut(8 * h).zip(x).zip(signs) {
                for half in 0..per_element {
                    let x = eight(|k| s.load(&x[k * per_element + half]));
                    for part in 0..PARTS {
                        let v = eight(|k| s.mul(x[k], s.splat(signs[k][part])));
                        let v = first_butterflies8(s, Some(one), v);
                        for k in 0..8 {
                            s.store(&mut out[k * h + part * per_element + half], v[k]);
                        }
                    }
                }
            }
        },
    );
}

/// Stage by stage: the order of this module written down.
#[inline(always)]
fn plain<R: Real, T>(x: &mut [T], butterfly: impl Fn(&mut T, &mut T)) {
    let first = R::WIDTH / 2;
    let others = (0..x.len().trailing_zeros()).map(|i| 1 << i).filter(|&h| h != first);
    for h in std::iter::once(first).chain(others) {
        for group in x.chunks_exact_mut(2 * h) {
            let (low, high) = group.split_at_mut(h);
            for (a, b) in low.iter_mut().zip(high) {
                butterfly(a, b);
            }
        }
    }
}

fn check_power(len: usize) {
    assert!(len.is_power_of_two(), "the Walsh–Hadamard transform needs a power of two, got {len}");
}

/// Rows to lanes; see [`rows_to_lanes`].
#[inline(always)]
pub(crate) fn gather_lanes<R: Real, S: Vectors<R>>(s: S, rows: Tile<'_, R>, lanes: &mut [[R; 8]]) {
    let (n, d) = (rows.rows(), rows.cols());
    let mut done = 0;
    if n == 8 {
        let per_element = 8 / R::WIDTH;
        let whole = d / 8;
        let packs: [&[R::Pack]; 8] = std::array::from_fn(|i| &R::packs(rows.row(i))[..whole * per_element]);
        for (block, out) in
            R::packs_mut(lanes.as_flattened_mut()).chunks_exact_mut(8 * per_element).take(whole).enumerate()
        {
            for half in 0..per_element {
                let (row, at) = (half * R::WIDTH, block * per_element);
                let v = eight(|k| s.load(&packs[row + k / per_element][at + k % per_element]));
                let v = s.rows_to_columns(v);
                for k in 0..8 {
                    s.store(&mut out[k * per_element + half], v[k]);
                }
            }
        }
        done = 8 * whole;
    }
    lanes[done..].fill([R::ZERO; 8]);
    for i in 0..n {
        for (lane, x) in lanes[done..].iter_mut().zip(&rows.row(i)[done..]) {
            lane[i] = *x;
        }
    }
}

struct Rows<'a, R>(TileMut<'a, R>);

impl<R: Real> VectorKernel<R> for Rows<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(mut self, vectors: S) {
        for i in 0..self.0.rows() {
            row(vectors, self.0.row_mut(i));
        }
    }
}

struct Lanes<'a, R>(&'a mut [[R; 8]]);

impl<R: Real> VectorKernel<R> for Lanes<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, vectors: S) {
        lanes(vectors, self.0);
    }
}

/// Replaces a row by its Walsh–Hadamard transform.
///
/// # Panics
/// If the length is not a power of two.
pub fn fwht<R: Real>(row: &mut [R]) {
    check_power(row.len());
    let len = row.len();
    R::dispatch(Rows(TileMut::new(row, 1, len)));
}

/// Transforms eight rows at once; `data[j]` holds element `j` of each.
///
/// # Panics
/// If the length is not a power of two.
pub fn fwht_lanes<R: Real>(data: &mut [[R; 8]]) {
    check_power(data.len());
    R::dispatch(Lanes(data));
}

/// Transforms every row of a block in place, sharing the rows among threads.
///
/// # Errors
/// If the number of columns is not a power of two.
///
/// ```
/// use bochner::linalg::hadamard::fwht_block;
/// let mut block = ndarray::array![[1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.0, 0.0]];
/// fwht_block(block.view_mut())?;
/// assert_eq!(block, ndarray::array![[10.0, -2.0, -4.0, 0.0], [1.0, 1.0, 1.0, 1.0]]);
/// # Ok::<(), bochner::Error>(())
/// ```
pub fn fwht_block<R: Real>(mut block: ArrayViewMut2<'_, R>) -> Result<()> {
    let d = block.ncols();
    if !d.is_power_of_two() {
        return Err(Error::parameter("number of columns", "a power of two", d));
    }
    // A share is a few cache-sized pieces: large enough to hide its start, small enough to balance two threads.
    let share = (8 * BLOCK_BYTES / size_of::<R>() / d).max(1);
    let job = |mut rows: ArrayViewMut2<'_, R>| match rows.as_slice_mut() {
        Some(data) => {
            let n = data.len() / d;
            R::dispatch(Rows(TileMut::new(data, n, d)));
        }
        None => {
            let mut copy = Vec::with_capacity(d);
            for mut row in rows.rows_mut() {
                copy.clear();
                copy.extend(row.iter());
                fwht(&mut copy);
                row.iter_mut().zip(&copy).for_each(|(to, from)| *to = *from);
            }
        }
    };
    block.axis_chunks_iter_mut(Axis(0), share).in_parallel().for_each(job);
    Ok(())
}

struct ToLanes<'a, R>(Tile<'a, R>, &'a mut [[R; 8]]);

impl<R: Real> VectorKernel<R> for ToLanes<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, vectors: S) {
        gather_lanes(vectors, self.0, self.1);
    }
}

/// Puts up to eight rows side by side: `lanes[j][i]` becomes element `j` of row `i`, and 0 where there is none.
///
/// # Panics
/// If there are more than eight rows, or more columns than lanes.
pub fn rows_to_lanes<R: Real>(rows: Tile<'_, R>, lanes: &mut [[R; 8]]) {
    assert!(rows.rows() <= 8 && rows.cols() <= lanes.len(), "at most 8 rows of at most {} numbers", lanes.len());
    R::dispatch(ToLanes(rows, lanes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::vectors::Instructions;
    use crate::random::{Role, Seed, Stream};
    use proptest::prelude::*;

    fn normals<R: Real>(index: u64, len: usize) -> Vec<R> {
        let mut out = vec![R::ZERO; len];
        Stream::new(Seed::new(11), Role::Direction, index).normals_from(0, &mut out);
        out
    }

    fn bits<R: Real>(x: &[R]) -> Vec<u64> {
        x.iter().map(|&v| Real::to_f64(v).to_bits()).collect()
    }

    /// One sum or difference at a time, in the documented order of strides.
    fn reference<R: Real>(x: &mut [R]) {
        let first = if R::NAME == "f32" { 4 } else { 2 };
        let mut strides: Vec<usize> = (0..x.len().ilog2()).map(|i| 1 << i).collect();
        if let Some(at) = strides.iter().position(|&h| h == first) {
            strides[..=at].rotate_right(1);
        }
        for h in strides {
            for i in (0..x.len()).filter(|i| i & h == 0) {
                (x[i], x[i + h]) = (x[i] + x[i + h], x[i] - x[i + h]);
            }
        }
    }

    #[test]
    fn a_transform_is_the_sum_with_signs_of_common_bits() {
        for log in 0..9 {
            let n = 1usize << log;
            let x: Vec<f32> = (0..n).map(|i| ((7 * i + 3) % 11) as f32 - 5.0).collect();
            let mut y = x.clone();
            fwht(&mut y);
            for i in 0..n {
                let sum: f32 = (0..n).map(|j| if (i & j).count_ones() % 2 == 0 { x[j] } else { -x[j] }).sum();
                assert_eq!(y[i], sum, "n = {n}, coefficient {i}");
            }
        }
    }

    fn all_forms_agree<R: Real>(log: u32, offset: usize) {
        let n = 1usize << log;
        let x = normals::<R>(u64::from(log), n);
        let mut expected = x.clone();
        reference(&mut expected);
        // An offset moves the row off the alignment of a register.
        let mut row = vec![R::ZERO; offset + n];
        row[offset..].copy_from_slice(&x);
        fwht(&mut row[offset..]);
        assert_eq!(bits(&row[offset..]), bits(&expected), "row of {n}");
        row[offset..].copy_from_slice(&x);
        R::portable(Rows(TileMut::new(&mut row[offset..], 1, n)));
        assert_eq!(bits(&row[offset..]), bits(&expected), "portable row of {n}");
        if log > 18 {
            return; // eight such rows would only test the memory
        }
        let mut lanes: Vec<[R; 8]> =
            x.iter().map(|&v| std::array::from_fn(|i| v * R::from_f64(f64::from(1 << i)))).collect();
        let before = lanes.clone();
        fwht_lanes(&mut lanes);
        for i in 0..8 {
            let scale = R::from_f64(0.5f64.powi(i as i32)); // a power of two commutes with rounding
            let lane: Vec<R> = lanes.iter().map(|v| v[i] * scale).collect();
            assert_eq!(bits(&lane), bits(&expected), "lane {i} of {n}");
        }
        let mut portable = before;
        R::portable(Lanes(&mut portable));
        assert_eq!(bits(portable.as_flattened()), bits(lanes.as_flattened()), "portable lanes of {n}");
    }

    #[test]
    fn rows_lanes_and_portable_code_give_the_same_bits() {
        for log in 0..=13 {
            for offset in [0, 1, 4] {
                all_forms_agree::<f32>(log, offset);
                all_forms_agree::<f64>(log, offset);
            }
        }
        for log in [14, 15, 16, 18, 22] {
            all_forms_agree::<f32>(log, 0);
        }
        for log in [14, 17, 21] {
            all_forms_agree::<f64>(log, 0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn twice_the_transform_of_integers_is_their_multiple(log in 0u32..=10, seed in any::<u64>()) {
            let n = 1usize << log;
            let mut draw = Stream::new(Seed::new(seed), Role::Order, 0);
            // At most 2^4 · 2^20 in any partial sum: exact in f32.
            let x: Vec<f32> = (0..n).map(|_| draw.below(33) as f32 - 16.0).collect();
            let mut y = x.clone();
            fwht(&mut y);
            fwht(&mut y);
            prop_assert_eq!(y, x.iter().map(|v| v * n as f32).collect::<Vec<_>>());
        }

        #[test]
        fn long_transforms_of_integers_are_exact_in_double_precision(log in 11u32..=17, seed in any::<u64>()) {
            let n = 1usize << log;
            let mut draw = Stream::new(Seed::new(seed), Role::Order, 0);
            let x: Vec<f64> = (0..n).map(|_| draw.below(2001) as f64 - 1000.0).collect();
            let mut y = x.clone();
            fwht(&mut y);
            prop_assert_eq!(y[0], x.iter().sum::<f64>());
            fwht(&mut y);
            prop_assert_eq!(y, x.iter().map(|v| v * n as f64).collect::<Vec<_>>());
        }

        #[test]
        fn lanes_hold_the_elements_of_their_rows(rows in 1usize..=8, cols in 1usize..70, stride in 0usize..5, more in 0usize..9) {
            let x = normals::<f32>(1, rows * (cols + stride));
            let tile = Tile::with_stride(&x, rows, cols, cols + stride);
            let mut lanes = vec![[f32::NAN; 8]; cols + more];
            rows_to_lanes(tile, &mut lanes);
            for (j, lane) in lanes.iter().enumerate() {
                for i in 0..8 {
                    prop_assert_eq!(lane[i], if i < rows && j < cols { tile.row(i)[j] } else { 0.0 });
                }
            }
        }
    }

    #[test]
    fn transposes_are_the_same_with_and_without_vector_instructions() {
        fn check<R: Real>() {
            let x = normals::<R>(2, 8 * 45);
            let tile = Tile::new(&x, 8, 45);
            let (mut lanes, mut portable) = (vec![[R::nan(); 8]; 45], vec![[R::nan(); 8]; 45]);
            rows_to_lanes(tile, &mut lanes);
            R::portable(ToLanes(tile, &mut portable));
            assert_eq!(lanes, portable);
        }
        check::<f32>();
        check::<f64>();
    }

    #[test]
    fn streamed_copies_reach_their_destination_at_every_alignment() {
        struct Copy<'a>(&'a mut [f32], &'a [f32]);
        impl VectorKernel<f32> for Copy<'_> {
            type Output = ();
            #[inline(always)]
            fn run<S: Vectors<f32>>(self, s: S) {
                s.stream(self.0, self.1);
            }
        }
        let x = normals::<f32>(3, 80);
        for offset in 0..16 {
            for len in [0, 7, 8, 16, 24, 64] {
                let mut to = vec![0.0; 80];
                f32::dispatch(Copy(&mut to[offset..offset + len], &x[..len]));
                Instructions::detect().fence();
                assert_eq!(to[offset..offset + len], x[..len]);
                assert!(to[..offset].iter().chain(&to[offset + len..]).all(|&v| v == 0.0));
            }
        }
    }

    #[test]
    fn blocks_in_any_layout_are_transformed_row_by_row() {
        let (n, d) = (700, 64);
        let x = ndarray::Array2::from_shape_vec((n, d), normals::<f64>(4, n * d)).unwrap();
        let mut expected = x.clone();
        for mut row in expected.rows_mut() {
            fwht(row.as_slice_mut().unwrap());
        }
        let mut standard = x.clone();
        fwht_block(standard.view_mut()).unwrap();
        assert_eq!(standard, expected);
        let mut columns = x.t().as_standard_layout().into_owned();
        fwht_block(columns.view_mut().reversed_axes()).unwrap();
        assert_eq!(columns.t(), expected);
        fwht_block(ndarray::Array2::<f32>::zeros((0, 4)).view_mut()).unwrap();
        let error = fwht_block(ndarray::Array2::<f32>::zeros((2, 6)).view_mut()).unwrap_err();
        assert_eq!(error.to_string(), "number of columns must be a power of two, got 6");
        assert!(fwht_block(ndarray::Array2::<f32>::zeros((2, 0)).view_mut()).is_err());
    }

    #[test]
    #[should_panic(expected = "needs a power of two, got 12")]
    fn rows_of_other_lengths_are_refused() {
        fwht(&mut [0.0f32; 12]);
    }
}
