//! The innermost loops: a few rows times one panel of columns.
//!
//! Every output is one chain `fma(a₀, b₀, 0), fma(a₁, b₁, ·), …` over the depth it is given, whatever the number of rows
//! that share a call, so cutting rows differently, or running without vector instructions, changes no bit.

use crate::linalg::vectors::{VectorKernel, Vectors};
use crate::linalg::{Tile, TileMut};
use crate::scalar::Real;

/// Rows of the register block: with two vectors of columns it fills 12 of the 16 vector registers of AVX2, and its
/// 12 independent chains hide the latency of 4 cycles × 2 units.
pub(super) const BLOCK_ROWS: usize = 6;

/// Steps of the depth at constant distances from a pointer, so that the loop spends its instructions on products.
const UNROLL: usize = 4;

/// One row of a panel. Vectors are named instead of left to the compiler: it found them in plain loops of one shape and lost
/// them, at a twentieth of the speed, in another.
type Row<R, S> = [<S as Vectors<R>>::V; 2];

#[inline(always)]
pub(super) fn load<R: Real, S: Vectors<R>>(s: S, row: &[R::Pack; 2]) -> Row<R, S> {
    [s.load(&row[0]), s.load(&row[1])]
}

#[inline(always)]
pub(super) fn unload<R: Real, S: Vectors<R>>(s: S, row: Row<R, S>, to: &mut [R::Pack; 2]) {
    s.store(&mut to[0], row[0]);
    s.store(&mut to[1], row[1]);
}

#[inline(always)]
fn pair<P>(packs: &mut [P]) -> &mut [P; 2] {
    packs.first_chunk_mut().expect("a row has two packs")
}

/// `a·b + c`, rounded once.
#[inline(always)]
pub(super) fn mul_add<R: Real, S: Vectors<R>>(s: S, a: R, b: Row<R, S>, c: Row<R, S>) -> Row<R, S> {
    let a = s.splat(a);
    [s.mul_add(a, b[0], c[0]), s.mul_add(a, b[1], c[1])]
}

/// Runs code with a constant that equals a count: kernels are compiled for each of the counts there are.
macro_rules! with_constant {
    ($constant:ident = $count:expr, of [$($value:literal),*], $code:expr) => {
        match $count {
            $($value => {
                const $constant: usize = $value;
                $code
            })*
            count => unreachable!("a count of {count}"),
        }
    };
}
pub(super) use with_constant;

/// The left factor as the kernel reads it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Left<'a, R> {
    /// Rows as they lie in memory, cut to the depth in question.
    Rows(Tile<'a, R>),
    /// `rows` rows in blocks of six (the last one narrower), each with the depth outermost.
    Blocks {
        /// `rows` × depth numbers.
        data: &'a [R],
        /// Number of rows.
        rows: usize,
    },
}

/// What a product is added to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Onto<'a, R> {
    /// Nothing: the output is overwritten.
    Nothing,
    /// What the output holds.
    Output,
    /// Another window: column `j` of the output is its column `j`.
    Other(Tile<'a, R>),
}

/// One panel for all rows of a block: `out = onto + left · panel`.
#[derive(Debug)]
pub(super) struct Sweep<'a, 'b, R> {
    pub(super) left: Left<'a, R>,
    /// Depth × panel width, row-major.
    pub(super) panel: &'a [R],
    /// The columns `skip..skip + out.cols()` of the panel.
    pub(super) out: TileMut<'b, R>,
    pub(super) skip: usize,
    pub(super) onto: Onto<'a, R>,
    /// The panel that comes next, or nothing: fetched into the second-level cache meanwhile.
    pub(super) next: &'a [R],
}

/// Asks for numbers `range` of `data` (cut to what there is) in the second-level cache.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn prefetch<R>(data: &[R], range: std::ops::Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    for i in (range.start..range.end.min(data.len())).step_by(64 / size_of::<R>()) {
        // SAFETY: a hint about an address inside a slice; it reads nothing and cannot fault.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T1>(data.as_ptr().add(i).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, range);
}

impl<R: Real> VectorKernel<R> for Sweep<'_, '_, R> {
    type Output = ();

    #[inline(always)]
    fn run<S: Vectors<R>>(self, s: S) {
        let Sweep { left, panel, mut out, skip, onto, next } = self;
        let (panel, _) = R::packs(panel).as_chunks();
        // Spread over the blocks of rows: one burst would fill the queue of outstanding loads.
        let share = next.len().div_ceil(out.rows().div_ceil(BLOCK_ROWS)).next_multiple_of(64 / size_of::<R>());
        let mut asked = 0;
        match left {
            Left::Rows(rows) => {
                let mut i = 0;
                while i < rows.rows() {
                    // 7 = 4 + 3 and 8 = 4 + 4: a block of one or two rows waits for its own chains.
                    let count = match rows.rows() - i {
                        7 | 8 => 4,
                        rest => rest.min(BLOCK_ROWS),
                    };
                    prefetch(next, asked..asked + share);
                    asked += share;
                    with_constant!(MR = count, of [1, 2, 3, 4, 5, 6], {
                        store(s, direct::<R, S, MR>(s, rows, i, panel), i, &mut out, skip, onto);
                    });
                    i += count;
                }
            }
            Left::Blocks { data, rows } => {
                for i in (0..rows).step_by(BLOCK_ROWS) {
                    prefetch(next, asked..asked + share);
                    asked += share;
                    let data = &data[i * panel.len()..];
                    with_constant!(MR = BLOCK_ROWS.min(rows - i), of [1, 2, 3, 4, 5, 6], {
                        store(s, blocked::<R, S, MR>(s, data, panel), i, &mut out, skip, onto);
                    });
                }
            }
        }
    }
}

#[inline(always)]
fn direct<R: Real, S: Vectors<R>, const MR: usize>(
    s: S,
    rows: Tile<'_, R>,
    first: usize,
    panel: &[[R::Pack; 2]],
) -> [Row<R, S>; MR] {
    let a: [&[R]; MR] = std::array::from_fn(|i| &rows.row(first + i)[..panel.len()]);
    let steps: [&[[R; UNROLL]]; MR] = std::array::from_fn(|i| a[i].as_chunks::<UNROLL>().0);
    let (panels, rest) = panel.as_chunks::<UNROLL>();
    let mut sums = [[s.splat(R::ZERO); 2]; MR];
    for (step, b) in panels.iter().enumerate() {
        let a: [&[R; UNROLL]; MR] = std::array::from_fn(|i| &steps[i][step]);
        for p in 0..UNROLL {
            let b = load(s, &b[p]);
            for i in 0..MR {
                sums[i] = mul_add(s, a[i][p], b, sums[i]);
            }
        }
    }
    let done = panel.len() - rest.len();
    for (p, b) in rest.iter().enumerate() {
        let b = load(s, b);
        for i in 0..MR {
            sums[i] = mul_add(s, a[i][done + p], b, sums[i]);
        }
    }
    sums
}

#[inline(always)]
fn blocked<R: Real, S: Vectors<R>, const MR: usize>(s: S, data: &[R], panel: &[[R::Pack; 2]]) -> [Row<R, S>; MR] {
    let mut sums = [[s.splat(R::ZERO); 2]; MR];
    for (a, b) in data.as_chunks::<MR>().0.iter().zip(panel) {
        let b = load(s, b);
        for i in 0..MR {
            sums[i] = mul_add(s, a[i], b, sums[i]);
        }
    }
    sums
}

#[inline(always)]
fn store<R: Real, S: Vectors<R>, const MR: usize>(
    s: S,
    sums: [Row<R, S>; MR],
    first: usize,
    out: &mut TileMut<'_, R>,
    skip: usize,
    onto: Onto<'_, R>,
) {
    for i in 0..MR {
        let row = out.row_mut(first + i);
        if row.len() == R::PANEL {
            let packs = pair(R::packs_mut(row));
            let there = match onto {
                Onto::Nothing => None,
                Onto::Output => Some(load(s, packs)),
                Onto::Other(other) => Some(load(s, R::packs(other.row(first + i)).first_chunk().expect("same shape"))),
            };
            let sum = there.map_or(sums[i], |there| [s.add(there[0], sums[i][0]), s.add(there[1], sums[i][1])]);
            unload(s, sum, packs);
        } else {
            let mut all = [R::ZERO; 16];
            unload(s, sums[i], pair(R::packs_mut(&mut all)));
            for (j, o) in row.iter_mut().enumerate() {
                *o = match onto {
                    Onto::Nothing => all[skip + j],
                    Onto::Output => *o + all[skip + j],
                    Onto::Other(other) => other.row(first + i)[j] + all[skip + j],
                }
            }
        }
    }
}
