//! Registers for the few kernels that need permutations: AVX2 with FMA, and a portable twin with the same bits.
//!
//! A *pack* is one 256-bit register in memory: eight `f32` or four `f64`. Kernels are written once over [`Vectors`] and
//! compiled for both instruction sets; [`Packed::dispatch`] chooses at run time.

use pulp::bytemuck::Pod;
use pulp::cast;

/// A number type with its packs.
pub trait Packed: Copy + Send + Sync + 'static {
    /// Numbers in a pack.
    const WIDTH: usize;
    /// One register in memory.
    type Pack: Pod;

    /// The whole packs of a slice.
    fn packs(numbers: &[Self]) -> &[Self::Pack];

    /// The whole packs of a slice, writable.
    fn packs_mut(numbers: &mut [Self]) -> &mut [Self::Pack];

    /// The numbers of some packs, writable.
    fn numbers_mut(packs: &mut [Self::Pack]) -> &mut [Self];

    /// `to[k] = ±from[k]`, minus where bit `k` of `bits` is set. Sign bits are flipped without a multiplication, so that a
    /// diagonal of signs takes a bit of memory each.
    fn copy_signed(from: &[Self; 64], bits: u64, to: &mut [Self; 64]);

    /// `to[k] = from[k]` where bit `k` of `bits` is set, 0 elsewhere.
    fn copy_masked(from: &[Self; 64], bits: u64, to: &mut [Self; 64]);

    /// Runs a kernel with these instructions.
    fn run_on<K: VectorKernel<Self>>(instructions: Instructions, kernel: K) -> K::Output;

    /// Runs a kernel with the best instruction set of this machine.
    fn dispatch<K: VectorKernel<Self>>(kernel: K) -> K::Output {
        Self::run_on(Instructions::detect(), kernel)
    }

    /// Runs a kernel without special instructions, whatever the machine has.
    #[cfg(test)]
    fn portable<K: VectorKernel<Self>>(kernel: K) -> K::Output {
        Self::run_on(Instructions::Portable, kernel)
    }
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

    /// Ends a series of [`Vectors::stream`].
    pub(crate) fn fence(self) {
        #[cfg(target_arch = "x86_64")]
        if let Instructions::Avx2(simd) = self {
            simd.sse._mm_sfence();
        }
    }
}

/// Code that is compiled once per instruction set.
pub trait VectorKernel<R: Packed> {
    /// What it returns.
    type Output;

    /// The code; inlined into a function that has the instructions of `vectors` enabled.
    fn run<S: Vectors<R>>(self, vectors: S) -> Self::Output;
}

/// Registers of one number type under one instruction set.
pub trait Vectors<R: Packed>: Copy {
    /// A register.
    type V: Pod;

    /// Reads a pack.
    #[inline(always)]
    fn load(self, pack: &R::Pack) -> Self::V {
        cast(*pack)
    }

    /// Writes a pack.
    #[inline(always)]
    fn store(self, pack: &mut R::Pack, v: Self::V) {
        *pack = cast(v);
    }

    /// The same number everywhere.
    fn splat(self, value: R) -> Self::V;

    /// Sum.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;

    /// Difference.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;

    /// Product.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;

    /// `a · b + c`, rounded once.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;

    /// `a - b · one` with a register of ones: the same bits as [`sub`](Self::sub), on the multipliers' ports.
    fn sub_product(self, a: Self::V, b: Self::V, one: Self::V) -> Self::V;

    /// Walsh–Hadamard transform of the numbers of one pack: the stage across its halves first, then strides 1, 2, ….
    fn hadamard(self, pack: &R::Pack) -> Self::V;

    /// Changes the sign of number `i` where bit `pack · WIDTH + i` of `word` is set: signs of pack `pack` out of 64 numbers.
    fn flip(self, v: Self::V, word: u64, pack: usize) -> Self::V;

    /// As [`flip`](Self::flip) for 64 numbers that are a matrix of eight columns: column `column` of rows
    /// `part · WIDTH` and those below, so number `i` takes bit `8 (part · WIDTH + i) + column`.
    fn flip_column(self, v: Self::V, word: u64, column: usize, part: usize) -> Self::V;

    /// The numbers whose bits (those of [`flip`](Self::flip)) are clear and those whose bits are set, zeros for the others.
    fn sort(self, v: Self::V, word: u64, pack: usize) -> [Self::V; 2];

    /// From eight columns of [`WIDTH`](Packed::WIDTH) rows to the rows: pack `k` of row `r` at `r · 8/WIDTH + k`.
    fn columns_to_rows(self, columns: [Self::V; 8]) -> [Self::V; 8];

    /// The inverse of [`columns_to_rows`](Self::columns_to_rows).
    fn rows_to_columns(self, rows: [Self::V; 8]) -> [Self::V; 8];

    /// Writes past the caches, if `to` is aligned to a register; otherwise like a copy.
    ///
    /// What was written is visible to other threads after [`Instructions::fence`].
    #[inline(always)]
    fn stream(self, to: &mut [R], from: &[R]) {
        to.copy_from_slice(from);
    }
}

/// Numbers to ask for beyond what [`aligned`] is to give.
pub(crate) const SLACK: usize = 16;

/// A buffer from its first cache line on: a register that crosses lines costs two accesses (a fifth of a transform).
pub(crate) fn aligned<R: Packed>(buffer: &mut [R]) -> &mut [R] {
    let skip = buffer.as_ptr().addr().wrapping_neg() % 64 / size_of::<R>();
    &mut buffer[skip..]
}

/// Plain loops over arrays.
///
/// On x86-64 it serves only machines without AVX2, and what is many scalar instructions there is called, not inlined: unrolled
/// into the kernels it was a fifth of the crate's code, single functions of half a megabyte among it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

/// `to[k]` from `from[k]` and bit `k` of `bits`, moved to the place of the sign.
macro_rules! each_bit {
    ($word:ident, $from:ident, $bits:ident, $to:ident, |$x:ident, $bit:ident| $value:expr) => {
        const LANES: usize = $word::BITS as usize;
        // Words as wide as the numbers: a shift by a constant per lane is one instruction.
        for (part, (to, from)) in $to.chunks_exact_mut(LANES).zip($from.chunks_exact(LANES)).enumerate() {
            let word = ($bits >> (part * LANES)) as $word;
            for k in 0..LANES {
                let ($x, $bit) = (from[k], word << (LANES - 1 - k) & 1 << (LANES - 1));
                to[k] = $value;
            }
        }
    };
}

macro_rules! packed {
    ($real:ident, $bits:ident, $width:literal) => {
        impl Packed for $real {
            const WIDTH: usize = $width;
            type Pack = [$real; $width];

            #[inline(always)]
            fn packs(numbers: &[Self]) -> &[Self::Pack] {
                numbers.as_chunks().0
            }

            #[inline(always)]
            fn packs_mut(numbers: &mut [Self]) -> &mut [Self::Pack] {
                numbers.as_chunks_mut().0
            }

            #[inline(always)]
            fn numbers_mut(packs: &mut [Self::Pack]) -> &mut [Self] {
                packs.as_flattened_mut()
            }

            #[inline(always)]
            fn copy_signed(from: &[Self; 64], bits: u64, to: &mut [Self; 64]) {
                each_bit!($bits, from, bits, to, |x, bit| $real::from_bits(x.to_bits() ^ bit));
            }

            #[inline(always)]
            fn copy_masked(from: &[Self; 64], bits: u64, to: &mut [Self; 64]) {
                each_bit!($bits, from, bits, to, |x, bit| if bit != 0 { x } else { 0.0 });
            }

            fn run_on<K: VectorKernel<Self>>(instructions: Instructions, kernel: K) -> K::Output {
                match instructions {
                    Instructions::Portable => kernel.run(Portable),
                    #[cfg(target_arch = "x86_64")]
                    Instructions::Avx2(vectors) => vectors.vectorize(
                        #[inline(always)]
                        || kernel.run(vectors),
                    ),
                }
            }
        }

        impl Vectors<$real> for Portable {
            type V = [$real; $width];

            #[inline(always)]
            fn splat(self, value: $real) -> Self::V {
                [value; $width]
            }

            #[inline(always)]
            fn add(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] + b[i])
            }

            #[inline(always)]
            fn sub(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] - b[i])
            }

            #[inline(always)]
            fn mul(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i])
            }

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
            }

            #[inline(always)]
            fn sub_product(self, a: Self::V, b: Self::V, _one: Self::V) -> Self::V {
                Vectors::<$real>::sub(self, a, b)
            }

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            fn hadamard(self, pack: &[$real; $width]) -> Self::V {
                let half = $width / 2;
                let mut v = *pack;
                let mut stride = half;
                loop {
                    v = std::array::from_fn(|i| {
                        let other = v[i ^ stride];
                        if i & stride == 0 { v[i] + other } else { other - v[i] }
                    });
                    stride = if stride == half { 1 } else { 2 * stride };
                    if stride == half {
                        return v;
                    }
                }
            }

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            fn flip(self, v: Self::V, word: u64, pack: usize) -> Self::V {
                std::array::from_fn(|i| if word >> (pack * $width + i) & 1 == 1 { -v[i] } else { v[i] })
            }

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            fn flip_column(self, v: Self::V, word: u64, column: usize, part: usize) -> Self::V {
                std::array::from_fn(|i| if word >> (8 * (part * $width + i) + column) & 1 == 1 { -v[i] } else { v[i] })
            }

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            fn sort(self, v: Self::V, word: u64, pack: usize) -> [Self::V; 2] {
                let set = |i: usize| word >> (pack * $width + i) & 1 == 1;
                [
                    std::array::from_fn(|i| if set(i) { 0.0 } else { v[i] }),
                    std::array::from_fn(|i| if set(i) { v[i] } else { 0.0 }),
                ]
            }

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            fn columns_to_rows(self, columns: [Self::V; 8]) -> [Self::V; 8] {
                std::array::from_fn(|i| std::array::from_fn(|j| columns[i * $width % 8 + j][i * $width / 8]))
            }

            #[cfg_attr(target_arch = "x86_64", inline(never))]
            fn rows_to_columns(self, rows: [Self::V; 8]) -> [Self::V; 8] {
                std::array::from_fn(|c| std::array::from_fn(|r| rows[(r * 8 + c) / $width][c % $width]))
            }
        }
    };
}
packed!(f32, u32, 8);
packed!(f64, u64, 4);

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::Vectors;
    use pulp::cast;
    use pulp::x86::V3;
    use std::arch::x86_64::{__m256, __m256d, __m256i};

    /// Bit `8 pack + i` of `word` as the highest bit of lane `i`; the other bits are left-overs.
    #[inline(always)]
    fn bits8(v: V3, word: u64, pack: usize) -> __m256 {
        // The byte with the pack's bits everywhere, each lane shifted by a constant: `pack` may be a variable.
        let (words, place) = (v.avx._mm256_set1_epi64x(word as i64), v.avx._mm256_set1_epi8(pack as i8));
        let bytes = v.avx2._mm256_shuffle_epi8(words, place);
        cast(v.avx2._mm256_sllv_epi32(bytes, cast([7u32, 6, 5, 4, 3, 2, 1, 0])))
    }

    /// Bit `8 i + column` of `word` as the highest bit of lane `i`; the other bits are left-overs.
    #[inline(always)]
    fn column_bits8(v: V3, word: u64, column: usize, _part: usize) -> __m256 {
        // Lanes 0 to 3 have their bits in the lower half of the word, the others in the upper one.
        let word = v.avx._mm256_set1_epi64x(word as i64);
        let halves = v.avx2._mm256_permutevar8x32_epi32(word, cast([0u32, 0, 0, 0, 1, 1, 1, 1]));
        let most = 31 - column as u32;
        let shifts = [most, most - 8, most - 16, most - 24, most, most - 8, most - 16, most - 24];
        cast(v.avx2._mm256_sllv_epi32(halves, cast(shifts)))
    }

    /// Bit `first + step · i` of `word` as the highest bit of lane `i`; the other bits are left-overs.
    #[inline(always)]
    fn every_bit4(v: V3, word: u64, first: usize, step: u64) -> __m256d {
        let most = 63 - first as u64;
        let shifts: __m256i = cast([most, most - step, most - 2 * step, most - 3 * step]);
        cast(v.avx2._mm256_sllv_epi64(v.avx._mm256_set1_epi64x(word as i64), shifts))
    }

    #[inline(always)]
    fn bits4(v: V3, word: u64, pack: usize) -> __m256d {
        every_bit4(v, word, 4 * pack, 1)
    }

    #[inline(always)]
    fn column_bits4(v: V3, word: u64, column: usize, part: usize) -> __m256d {
        every_bit4(v, word, 32 * part + column, 8)
    }

    /// What differs between the precisions in names only: instructions, and where the bits of signs come from.
    macro_rules! same_in_both {
        (
            $real:ident, $width:literal, $vector:ident, $bits:ident, $column_bits:ident;
            $splat:ident, $add:ident, $sub:ident, $mul:ident, $mul_add:ident, $negative_mul_add:ident;
            $and:ident, $xor:ident, $zero:ident, $choose:ident, $stream:ident
        ) => {
            type V = $vector;

            #[inline(always)]
            fn splat(self, value: $real) -> $vector {
                self.avx.$splat(value)
            }

            #[inline(always)]
            fn add(self, a: $vector, b: $vector) -> $vector {
                self.avx.$add(a, b)
            }

            #[inline(always)]
            fn sub(self, a: $vector, b: $vector) -> $vector {
                self.avx.$sub(a, b)
            }

            #[inline(always)]
            fn mul(self, a: $vector, b: $vector) -> $vector {
                self.avx.$mul(a, b)
            }

            #[inline(always)]
            fn mul_add(self, a: $vector, b: $vector, c: $vector) -> $vector {
                self.fma.$mul_add(a, b, c)
            }

            #[inline(always)]
            fn sub_product(self, a: $vector, b: $vector, one: $vector) -> $vector {
                self.fma.$negative_mul_add(b, one, a)
            }

            #[inline(always)]
            fn flip(self, v: $vector, word: u64, pack: usize) -> $vector {
                self.avx.$xor(v, self.avx.$and($bits(self, word, pack), self.avx.$splat(-0.0)))
            }

            #[inline(always)]
            fn flip_column(self, v: $vector, word: u64, column: usize, part: usize) -> $vector {
                self.avx.$xor(v, self.avx.$and($column_bits(self, word, column, part), self.avx.$splat(-0.0)))
            }

            #[inline(always)]
            fn sort(self, v: $vector, word: u64, pack: usize) -> [$vector; 2] {
                let (bits, zero) = ($bits(self, word, pack), self.avx.$zero());
                [self.avx.$choose(v, zero, bits), self.avx.$choose(zero, v, bits)]
            }

            #[inline(always)]
            #[allow(unsafe_code)]
            fn stream(self, to: &mut [$real], from: &[$real]) {
                assert_eq!(to.len(), from.len());
                if !to.as_ptr().addr().is_multiple_of(32) || !to.len().is_multiple_of($width) {
                    return to.copy_from_slice(from);
                }
                for (to, from) in to.as_chunks_mut::<$width>().0.iter_mut().zip(from.as_chunks::<$width>().0) {
                    // SAFETY: `to` is a register's worth of exclusive numbers, aligned to 32 bytes as just checked.
                    unsafe { self.avx.$stream(to.as_mut_ptr(), cast(*from)) };
                }
            }
        };
    }

    /// Rows of both 4 × 4 matrices in the halves of these columns.
    #[inline(always)]
    fn quadruples(v: V3, c: [__m256; 4]) -> [__m256; 4] {
        let (a0, b0) = (v.avx._mm256_unpacklo_ps(c[0], c[1]), v.avx._mm256_unpackhi_ps(c[0], c[1]));
        let (a1, b1) = (v.avx._mm256_unpacklo_ps(c[2], c[3]), v.avx._mm256_unpackhi_ps(c[2], c[3]));
        [
            v.avx._mm256_shuffle_ps::<0b01_00_01_00>(a0, a1),
            v.avx._mm256_shuffle_ps::<0b11_10_11_10>(a0, a1),
            v.avx._mm256_shuffle_ps::<0b01_00_01_00>(b0, b1),
            v.avx._mm256_shuffle_ps::<0b11_10_11_10>(b0, b1),
        ]
    }

    impl Vectors<f32> for V3 {
        same_in_both! {
            f32, 8, __m256, bits8, column_bits8;
            _mm256_set1_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps;
            _mm256_and_ps, _mm256_xor_ps, _mm256_setzero_ps, _mm256_blendv_ps, _mm256_stream_ps
        }

        #[inline(always)]
        fn hadamard(self, pack: &[f32; 8]) -> __m256 {
            // A half read into both halves of a register costs a load and no permutation. Products by ±1 are exact, so
            // every multiply-add rounds once, as the sum it stands for; it leaves the adders to the stages that follow.
            let [low, high]: [[f32; 4]; 2] = cast(*pack);
            let (low, high) = (self.avx._mm256_broadcast_ps(&cast(low)), self.avx._mm256_broadcast_ps(&cast(high)));
            let v = self.fma._mm256_fmadd_ps(high, cast([1f32, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0]), low);
            let swapped = self.avx._mm256_permute_ps::<0b10_11_00_01>(v);
            let v = self.fma._mm256_fmadd_ps(v, cast([1f32, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), swapped);
            let swapped = self.avx._mm256_permute_ps::<0b01_00_11_10>(v);
            self.fma._mm256_fmadd_ps(v, cast([1f32, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0]), swapped)
        }

        #[inline(always)]
        fn columns_to_rows(self, c: [__m256; 8]) -> [__m256; 8] {
            // Pairs, then quadruples within the 128-bit halves, then the halves.
            let [p0, p1, p2, p3] = quadruples(self, [c[0], c[1], c[2], c[3]]);
            let [q0, q1, q2, q3] = quadruples(self, [c[4], c[5], c[6], c[7]]);
            [
                self.avx._mm256_permute2f128_ps::<0x20>(p0, q0),
                self.avx._mm256_permute2f128_ps::<0x20>(p1, q1),
                self.avx._mm256_permute2f128_ps::<0x20>(p2, q2),
                self.avx._mm256_permute2f128_ps::<0x20>(p3, q3),
                self.avx._mm256_permute2f128_ps::<0x31>(p0, q0),
                self.avx._mm256_permute2f128_ps::<0x31>(p1, q1),
                self.avx._mm256_permute2f128_ps::<0x31>(p2, q2),
                self.avx._mm256_permute2f128_ps::<0x31>(p3, q3),
            ]
        }

        #[inline(always)]
        fn rows_to_columns(self, rows: [__m256; 8]) -> [__m256; 8] {
            Vectors::<f32>::columns_to_rows(self, rows)
        }
    }

    /// Rows of the 4 × 4 matrix with these columns.
    #[inline(always)]
    fn transpose(v: V3, c: [__m256d; 4]) -> [__m256d; 4] {
        let (a0, a1) = (v.avx._mm256_unpacklo_pd(c[0], c[1]), v.avx._mm256_unpackhi_pd(c[0], c[1]));
        let (b0, b1) = (v.avx._mm256_unpacklo_pd(c[2], c[3]), v.avx._mm256_unpackhi_pd(c[2], c[3]));
        [
            v.avx._mm256_permute2f128_pd::<0x20>(a0, b0),
            v.avx._mm256_permute2f128_pd::<0x20>(a1, b1),
            v.avx._mm256_permute2f128_pd::<0x31>(a0, b0),
            v.avx._mm256_permute2f128_pd::<0x31>(a1, b1),
        ]
    }

    impl Vectors<f64> for V3 {
        same_in_both! {
            f64, 4, __m256d, bits4, column_bits4;
            _mm256_set1_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd;
            _mm256_and_pd, _mm256_xor_pd, _mm256_setzero_pd, _mm256_blendv_pd, _mm256_stream_pd
        }

        #[inline(always)]
        fn hadamard(self, pack: &[f64; 4]) -> __m256d {
            let [low, high]: [[f64; 2]; 2] = cast(*pack);
            let (low, high) = (self.avx._mm256_broadcast_pd(&cast(low)), self.avx._mm256_broadcast_pd(&cast(high)));
            let v = self.fma._mm256_fmadd_pd(high, cast([1f64, 1.0, -1.0, -1.0]), low);
            let swapped = self.avx._mm256_permute_pd::<0b0101>(v);
            self.fma._mm256_fmadd_pd(v, cast([1f64, -1.0, 1.0, -1.0]), swapped)
        }

        #[inline(always)]
        fn columns_to_rows(self, c: [__m256d; 8]) -> [__m256d; 8] {
            let [a0, a1, a2, a3] = transpose(self, [c[0], c[1], c[2], c[3]]);
            let [b0, b1, b2, b3] = transpose(self, [c[4], c[5], c[6], c[7]]);
            [a0, b0, a1, b1, a2, b2, a3, b3]
        }

        #[inline(always)]
        fn rows_to_columns(self, r: [__m256d; 8]) -> [__m256d; 8] {
            let [a0, a1, a2, a3] = transpose(self, [r[0], r[2], r[4], r[6]]);
            let [b0, b1, b2, b3] = transpose(self, [r[1], r[3], r[5], r[7]]);
            [a0, a1, a2, a3, b0, b1, b2, b3]
        }
    }
}
