//! The innermost loops: a few rows times one panel of columns.
//!
//! Every output is one chain `fma(a₀, b₀, 0), fma(a₁, b₁, ·), …` over the depth it is given, whatever the number of rows
//! that share a call, so cutting rows differently, or running without vector instructions, changes no bit.

use crate::linalg::{Tile, TileMut};
use crate::scalar::Real;

/// Rows of the register block: with two vectors of columns it fills 12 of the 16 vector registers of AVX2, and its
/// 12 independent chains hide the latency of 4 cycles × 2 units.
pub(super) const BLOCK_ROWS: usize = 6;

/// Steps of the depth at constant distances from a pointer, so that the loop spends its instructions on products.
const UNROLL: usize = 4;

/// How one row of a panel is held and used.
///
/// Vectors are named instead of left to the compiler: it found them in plain loops of one shape and lost them, at a
/// twentieth of the speed, in another.
pub(crate) trait Lanes<R, const NR: usize>: Copy {
    /// `NR` numbers.
    type Row: Copy;
    /// Zeros.
    fn zero(self) -> Self::Row;
    /// From memory.
    fn load(self, row: &[R; NR]) -> Self::Row;
    /// `a·b + c`, rounded once.
    fn mul_add(self, a: R, b: Self::Row, c: Self::Row) -> Self::Row;
    /// To memory.
    fn unload(self, row: Self::Row) -> [R; NR];
}

/// Any machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

impl<R: Real, const NR: usize> Lanes<R, NR> for Portable {
    type Row = [R; NR];
    #[inline(always)]
    fn zero(self) -> [R; NR] {
        [R::ZERO; NR]
    }
    #[inline(always)]
    fn load(self, row: &[R; NR]) -> [R; NR] {
        *row
    }
    #[inline(always)]
    fn mul_add(self, a: R, b: [R; NR], mut c: [R; NR]) -> [R; NR] {
        for j in 0..NR {
            c[j] = a.mul_add(b[j], c[j]);
        }
        c
    }
    #[inline(always)]
    fn unload(self, row: [R; NR]) -> [R; NR] {
        row
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::Lanes;
    use pulp::x86::V3;
    use std::arch::x86_64::{__m256, __m256d};

    macro_rules! lanes {
        ($t:ident, $vector:ident, $lanes:literal, $zero:ident, $splat:ident, $mul_add:ident) => {
            impl Lanes<$t, { 2 * $lanes }> for V3 {
                type Row = [$vector; 2];
                #[inline(always)]
                fn zero(self) -> Self::Row {
                    [self.avx.$zero(); 2]
                }
                #[inline(always)]
                fn load(self, row: &[$t; 2 * $lanes]) -> Self::Row {
                    pulp::cast(*row)
                }
                #[inline(always)]
                fn mul_add(self, a: $t, b: Self::Row, c: Self::Row) -> Self::Row {
                    let a = self.avx.$splat(a);
                    [self.fma.$mul_add(a, b[0], c[0]), self.fma.$mul_add(a, b[1], c[1])]
                }
                #[inline(always)]
                fn unload(self, row: Self::Row) -> [$t; 2 * $lanes] {
                    pulp::cast(row)
                }
            }
        };
    }
    lanes!(f32, __m256, 8, _mm256_setzero_ps, _mm256_set1_ps, _mm256_fmadd_ps);
    lanes!(f64, __m256d, 4, _mm256_setzero_pd, _mm256_set1_pd, _mm256_fmadd_pd);
}

/// Which of the twins runs.
#[derive(Debug, Clone, Copy)]
pub enum Instructions {
    /// Plain code.
    Portable,
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
}

impl Instructions {
    /// The best this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Instructions::Avx2(simd);
        }
        Instructions::Portable
    }
}

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
pub struct Sweep<'a, 'b, R> {
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

impl<R: Real> Sweep<'_, '_, R> {
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn run<const NR: usize>(self, instructions: Instructions)
    where
        pulp::x86::V3: Lanes<R, NR>,
    {
        match instructions {
            Instructions::Portable => self.sweep::<NR>(Portable),
            Instructions::Avx2(simd) => simd.vectorize(Compiled(self, simd)),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn run<const NR: usize>(self, _: Instructions) {
        self.sweep::<NR>(Portable);
    }

    #[inline(always)]
    fn sweep<const NR: usize>(self, lanes: impl Lanes<R, NR>) {
        let Sweep { left, panel, mut out, skip, onto, next } = self;
        let (panel, _) = panel.as_chunks::<NR>();
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
                    macro_rules! block {
                        ($n:literal) => {
                            store(lanes, direct::<R, $n, NR, _>(lanes, rows, i, panel), i, &mut out, skip, onto)
                        };
                    }
                    match count {
                        1 => block!(1),
                        2 => block!(2),
                        3 => block!(3),
                        4 => block!(4),
                        5 => block!(5),
                        _ => block!(6),
                    }
                    i += count;
                }
            }
            Left::Blocks { data, rows } => {
                for i in (0..rows).step_by(BLOCK_ROWS) {
                    prefetch(next, asked..asked + share);
                    asked += share;
                    let data = &data[i * panel.len()..];
                    macro_rules! block {
                        ($n:literal) => {
                            store(lanes, blocked::<R, $n, NR, _>(lanes, data, panel), i, &mut out, skip, onto)
                        };
                    }
                    match rows - i {
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
    }
}

#[cfg(target_arch = "x86_64")]
struct Compiled<'a, 'b, R, const NR: usize>(Sweep<'a, 'b, R>, pulp::x86::V3);

#[cfg(target_arch = "x86_64")]
impl<R: Real, const NR: usize> pulp::NullaryFnOnce for Compiled<'_, '_, R, NR>
where
    pulp::x86::V3: Lanes<R, NR>,
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.0.sweep::<NR>(self.1);
    }
}

#[inline(always)]
fn direct<R: Real, const MR: usize, const NR: usize, L: Lanes<R, NR>>(
    lanes: L,
    rows: Tile<'_, R>,
    first: usize,
    panel: &[[R; NR]],
) -> [L::Row; MR] {
    let a: [&[R]; MR] = std::array::from_fn(|i| &rows.row(first + i)[..panel.len()]);
    let steps: [&[[R; UNROLL]]; MR] = std::array::from_fn(|i| a[i].as_chunks::<UNROLL>().0);
    let (panels, rest) = panel.as_chunks::<UNROLL>();
    let mut sums = [lanes.zero(); MR];
    for (step, b) in panels.iter().enumerate() {
        let a: [&[R; UNROLL]; MR] = std::array::from_fn(|i| &steps[i][step]);
        for p in 0..UNROLL {
            let b = lanes.load(&b[p]);
            for i in 0..MR {
                sums[i] = lanes.mul_add(a[i][p], b, sums[i]);
            }
        }
    }
    let done = panel.len() - rest.len();
    for (p, b) in rest.iter().enumerate() {
        let b = lanes.load(b);
        for i in 0..MR {
            sums[i] = lanes.mul_add(a[i][done + p], b, sums[i]);
        }
    }
    sums
}

#[inline(always)]
fn blocked<R: Real, const MR: usize, const NR: usize, L: Lanes<R, NR>>(
    lanes: L,
    data: &[R],
    panel: &[[R; NR]],
) -> [L::Row; MR] {
    let mut sums = [lanes.zero(); MR];
    for (a, b) in data.as_chunks::<MR>().0.iter().zip(panel) {
        let b = lanes.load(b);
        for i in 0..MR {
            sums[i] = lanes.mul_add(a[i], b, sums[i]);
        }
    }
    sums
}

#[inline(always)]
fn store<R: Real, const MR: usize, const NR: usize, L: Lanes<R, NR>>(
    lanes: L,
    sums: [L::Row; MR],
    first: usize,
    out: &mut TileMut<'_, R>,
    skip: usize,
    onto: Onto<'_, R>,
) {
    for i in 0..MR {
        let sums = lanes.unload(sums[i]);
        let row = out.row_mut(first + i);
        if let Ok(row) = <&mut [R; NR]>::try_from(&mut *row) {
            match onto {
                Onto::Nothing => *row = sums,
                Onto::Output => (0..NR).for_each(|j| row[j] += sums[j]),
                Onto::Other(other) => {
                    let Ok(other) = <&[R; NR]>::try_from(other.row(first + i)) else { unreachable!("same shape") };
                    (0..NR).for_each(|j| row[j] = other[j] + sums[j]);
                }
            }
        } else {
            for (j, o) in row.iter_mut().enumerate() {
                let sum = sums[skip + j];
                *o = match onto {
                    Onto::Nothing => sum,
                    Onto::Output => *o + sum,
                    Onto::Other(other) => other.row(first + i)[j] + sum,
                }
            }
        }
    }
}
