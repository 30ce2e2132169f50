//! Registers for the few kernels that need permutations: AVX2 with FMA, and a portable twin with the same bits.
//!
//! A *pack* is one 256-bit register in memory: eight `f32` or four `f64`. Kernels are written once over [`Vectors`] and
//! compiled for both instruction sets; [`Packed::dispatch`] chooses at run time.

/// A number type with its packs.
pub trait Packed: Copy + Send + Sync + 'static {
    /// Numbers in a pack.
    const WIDTH: usize;
    /// One register in memory.
    type Pack: Copy;

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

    /// Runs a kernel with the best instruction set of this machine.
    fn dispatch<K: VectorKernel<Self>>(kernel: K) -> K::Output;

    /// Runs a kernel without special instructions, whatever the machine has.
    #[cfg(test)]
    fn portable<K: VectorKernel<Self>>(kernel: K) -> K::Output;
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
    type V: Copy;

    /// Reads a pack.
    fn load(self, pack: &R::Pack) -> Self::V;

    /// Writes a pack.
    fn store(self, pack: &mut R::Pack, v: Self::V);

    /// The same number everywhere.
    fn splat(self, value: R) -> Self::V;

    /// Sum.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;

    /// Difference.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;

    /// Product.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;

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
    /// What was written is visible to other threads after [`fence`](Self::fence).
    fn stream(self, to: &mut [R], from: &[R]);

    /// Ends a series of [`stream`](Self::stream).
    fn fence(self);
}

/// Numbers to ask for beyond what [`aligned`] is to give.
pub(crate) const SLACK: usize = 16;

/// A buffer from its first cache line on: a register that crosses lines costs two accesses (a fifth of a transform).
pub(crate) fn aligned<R: Packed>(buffer: &mut [R]) -> &mut [R] {
    let skip = buffer.as_ptr().addr().wrapping_neg() % 64 / size_of::<R>();
    &mut buffer[skip..]
}

/// Plain loops over arrays.
#[derive(Debug, Clone, Copy)]
struct Portable;

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
                const LANES: usize = $bits::BITS as usize;
                // Words as wide as the numbers: a shift by a constant per lane is one instruction.
                for (part, (to, from)) in to.chunks_exact_mut(LANES).zip(from.chunks_exact(LANES)).enumerate() {
                    let word = (bits >> (part * LANES)) as $bits;
                    for k in 0..LANES {
                        let sign = word << (LANES - 1 - k) & 1 << (LANES - 1);
                        to[k] = $real::from_bits(from[k].to_bits() ^ sign);
                    }
                }
            }

            #[inline(always)]
            fn copy_masked(from: &[Self; 64], bits: u64, to: &mut [Self; 64]) {
                const LANES: usize = $bits::BITS as usize;
                for (part, (to, from)) in to.chunks_exact_mut(LANES).zip(from.chunks_exact(LANES)).enumerate() {
                    let word = (bits >> (part * LANES)) as $bits;
                    for k in 0..LANES {
                        let set = word << (LANES - 1 - k) & 1 << (LANES - 1);
                        to[k] = if set != 0 { from[k] } else { 0.0 };
                    }
                }
            }

            fn dispatch<K: VectorKernel<Self>>(kernel: K) -> K::Output {
                #[cfg(target_arch = "x86_64")]
                if let Some(vectors) = pulp::x86::V3::try_new() {
                    return vectors.vectorize(
                        #[inline(always)]
                        || kernel.run(vectors),
                    );
                }
                kernel.run(Portable)
            }

            #[cfg(test)]
            fn portable<K: VectorKernel<Self>>(kernel: K) -> K::Output {
                kernel.run(Portable)
            }
        }

        impl Vectors<$real> for Portable {
            type V = [$real; $width];

            #[inline(always)]
            fn load(self, pack: &[$real; $width]) -> Self::V {
                *pack
            }

            #[inline(always)]
            fn store(self, pack: &mut [$real; $width], v: Self::V) {
                *pack = v;
            }

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

            #[inline(always)]
            fn sub_product(self, a: Self::V, b: Self::V, _one: Self::V) -> Self::V {
                Vectors::<$real>::sub(self, a, b)
            }

            #[inline(always)]
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

            #[inline(always)]
            fn flip(self, v: Self::V, word: u64, pack: usize) -> Self::V {
                std::array::from_fn(|i| if word >> (pack * $width + i) & 1 == 1 { -v[i] } else { v[i] })
            }

            #[inline(always)]
            fn flip_column(self, v: Self::V, word: u64, column: usize, part: usize) -> Self::V {
                std::array::from_fn(|i| if word >> (8 * (part * $width + i) + column) & 1 == 1 { -v[i] } else { v[i] })
            }

            #[inline(always)]
            fn sort(self, v: Self::V, word: u64, pack: usize) -> [Self::V; 2] {
                let set = |i: usize| word >> (pack * $width + i) & 1 == 1;
                [
                    std::array::from_fn(|i| if set(i) { 0.0 } else { v[i] }),
                    std::array::from_fn(|i| if set(i) { v[i] } else { 0.0 }),
                ]
            }

            #[inline(always)]
            fn columns_to_rows(self, columns: [Self::V; 8]) -> [Self::V; 8] {
                std::array::from_fn(|i| std::array::from_fn(|j| columns[i * $width % 8 + j][i * $width / 8]))
            }

            #[inline(always)]
            fn rows_to_columns(self, rows: [Self::V; 8]) -> [Self::V; 8] {
                std::array::from_fn(|c| std::array::from_fn(|r| rows[(r * 8 + c) / $width][c % $width]))
            }

            #[inline(always)]
            fn stream(self, to: &mut [$real], from: &[$real]) {
                to.copy_from_slice(from);
            }

            #[inline(always)]
            fn fence(self) {}
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

    /// Bit `step · i + first` of `word` as the highest bit of lane `i`; the other bits are left-overs.
    #[inline(always)]
    fn bits4(v: V3, word: u64, first: usize, step: u64) -> __m256d {
        let most = 63 - first as u64;
        let shifts: __m256i = cast([most, most - step, most - 2 * step, most - 3 * step]);
        cast(v.avx2._mm256_sllv_epi64(v.avx._mm256_set1_epi64x(word as i64), shifts))
    }

    impl Vectors<f32> for V3 {
        type V = __m256;

        #[inline(always)]
        fn load(self, pack: &[f32; 8]) -> __m256 {
            cast(*pack)
        }

        #[inline(always)]
        fn store(self, pack: &mut [f32; 8], v: __m256) {
            *pack = cast(v);
        }

        #[inline(always)]
        fn splat(self, value: f32) -> __m256 {
            self.avx._mm256_set1_ps(value)
        }

        #[inline(always)]
        fn add(self, a: __m256, b: __m256) -> __m256 {
            self.avx._mm256_add_ps(a, b)
        }

        #[inline(always)]
        fn sub(self, a: __m256, b: __m256) -> __m256 {
            self.avx._mm256_sub_ps(a, b)
        }

        #[inline(always)]
        fn mul(self, a: __m256, b: __m256) -> __m256 {
            self.avx._mm256_mul_ps(a, b)
        }

        #[inline(always)]
        fn sub_product(self, a: __m256, b: __m256, one: __m256) -> __m256 {
            self.fma._mm256_fnmadd_ps(b, one, a)
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
        fn flip(self, v: __m256, word: u64, pack: usize) -> __m256 {
            let signs = self.avx._mm256_and_ps(bits8(self, word, pack), self.avx._mm256_set1_ps(-0.0));
            self.avx._mm256_xor_ps(v, signs)
        }

        #[inline(always)]
        fn flip_column(self, v: __m256, word: u64, column: usize, _part: usize) -> __m256 {
            // Lanes 0 to 3 have their bits in the lower half of the word, the others in the upper one.
            let word = self.avx._mm256_set1_epi64x(word as i64);
            let halves = self.avx2._mm256_permutevar8x32_epi32(word, cast([0u32, 0, 0, 0, 1, 1, 1, 1]));
            let most = 31 - column as u32;
            let shifts = [most, most - 8, most - 16, most - 24, most, most - 8, most - 16, most - 24];
            let bits = cast(self.avx2._mm256_sllv_epi32(halves, cast(shifts)));
            self.avx._mm256_xor_ps(v, self.avx._mm256_and_ps(bits, self.avx._mm256_set1_ps(-0.0)))
        }

        #[inline(always)]
        fn sort(self, v: __m256, word: u64, pack: usize) -> [__m256; 2] {
            let (bits, zero) = (bits8(self, word, pack), self.avx._mm256_setzero_ps());
            [self.avx._mm256_blendv_ps(v, zero, bits), self.avx._mm256_blendv_ps(zero, v, bits)]
        }

        #[inline(always)]
        fn columns_to_rows(self, c: [__m256; 8]) -> [__m256; 8] {
            let avx = self.avx;
            // Pairs, then quadruples within the 128-bit halves, then the halves.
            let (a0, b0) = (avx._mm256_unpacklo_ps(c[0], c[1]), avx._mm256_unpackhi_ps(c[0], c[1]));
            let (a1, b1) = (avx._mm256_unpacklo_ps(c[2], c[3]), avx._mm256_unpackhi_ps(c[2], c[3]));
            let (a2, b2) = (avx._mm256_unpacklo_ps(c[4], c[5]), avx._mm256_unpackhi_ps(c[4], c[5]));
            let (a3, b3) = (avx._mm256_unpacklo_ps(c[6], c[7]), avx._mm256_unpackhi_ps(c[6], c[7]));
            let q = [
                avx._mm256_shuffle_ps::<0b01_00_01_00>(a0, a1),
                avx._mm256_shuffle_ps::<0b11_10_11_10>(a0, a1),
                avx._mm256_shuffle_ps::<0b01_00_01_00>(b0, b1),
                avx._mm256_shuffle_ps::<0b11_10_11_10>(b0, b1),
                avx._mm256_shuffle_ps::<0b01_00_01_00>(a2, a3),
                avx._mm256_shuffle_ps::<0b11_10_11_10>(a2, a3),
                avx._mm256_shuffle_ps::<0b01_00_01_00>(b2, b3),
                avx._mm256_shuffle_ps::<0b11_10_11_10>(b2, b3),
            ];
            [
                avx._mm256_permute2f128_ps::<0x20>(q[0], q[4]),
                avx._mm256_permute2f128_ps::<0x20>(q[1], q[5]),
                avx._mm256_permute2f128_ps::<0x20>(q[2], q[6]),
                avx._mm256_permute2f128_ps::<0x20>(q[3], q[7]),
                avx._mm256_permute2f128_ps::<0x31>(q[0], q[4]),
                avx._mm256_permute2f128_ps::<0x31>(q[1], q[5]),
                avx._mm256_permute2f128_ps::<0x31>(q[2], q[6]),
                avx._mm256_permute2f128_ps::<0x31>(q[3], q[7]),
            ]
        }

        #[inline(always)]
        fn rows_to_columns(self, rows: [__m256; 8]) -> [__m256; 8] {
            Vectors::<f32>::columns_to_rows(self, rows)
        }

        #[inline(always)]
        #[allow(unsafe_code)]
        fn stream(self, to: &mut [f32], from: &[f32]) {
            assert_eq!(to.len(), from.len());
            if !to.as_ptr().addr().is_multiple_of(32) || !to.len().is_multiple_of(8) {
                return to.copy_from_slice(from);
            }
            for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(from.as_chunks::<8>().0) {
                // SAFETY: `to` is eight exclusive floats, aligned to 32 bytes as just checked.
                unsafe { self.avx._mm256_stream_ps(to.as_mut_ptr(), cast(*from)) };
            }
        }

        #[inline(always)]
        fn fence(self) {
            self.sse._mm_sfence();
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
        type V = __m256d;

        #[inline(always)]
        fn load(self, pack: &[f64; 4]) -> __m256d {
            cast(*pack)
        }

        #[inline(always)]
        fn store(self, pack: &mut [f64; 4], v: __m256d) {
            *pack = cast(v);
        }

        #[inline(always)]
        fn splat(self, value: f64) -> __m256d {
            self.avx._mm256_set1_pd(value)
        }

        #[inline(always)]
        fn add(self, a: __m256d, b: __m256d) -> __m256d {
            self.avx._mm256_add_pd(a, b)
        }

        #[inline(always)]
        fn sub(self, a: __m256d, b: __m256d) -> __m256d {
            self.avx._mm256_sub_pd(a, b)
        }

        #[inline(always)]
        fn mul(self, a: __m256d, b: __m256d) -> __m256d {
            self.avx._mm256_mul_pd(a, b)
        }

        #[inline(always)]
        fn sub_product(self, a: __m256d, b: __m256d, one: __m256d) -> __m256d {
            self.fma._mm256_fnmadd_pd(b, one, a)
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
        fn flip(self, v: __m256d, word: u64, pack: usize) -> __m256d {
            let signs = self.avx._mm256_and_pd(bits4(self, word, 4 * pack, 1), self.avx._mm256_set1_pd(-0.0));
            self.avx._mm256_xor_pd(v, signs)
        }

        #[inline(always)]
        fn flip_column(self, v: __m256d, word: u64, column: usize, part: usize) -> __m256d {
            let bits = bits4(self, word, 32 * part + column, 8);
            self.avx._mm256_xor_pd(v, self.avx._mm256_and_pd(bits, self.avx._mm256_set1_pd(-0.0)))
        }

        #[inline(always)]
        fn sort(self, v: __m256d, word: u64, pack: usize) -> [__m256d; 2] {
            let (bits, zero) = (bits4(self, word, 4 * pack, 1), self.avx._mm256_setzero_pd());
            [self.avx._mm256_blendv_pd(v, zero, bits), self.avx._mm256_blendv_pd(zero, v, bits)]
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

        #[inline(always)]
        #[allow(unsafe_code)]
        fn stream(self, to: &mut [f64], from: &[f64]) {
            assert_eq!(to.len(), from.len());
            if !to.as_ptr().addr().is_multiple_of(32) || !to.len().is_multiple_of(4) {
                return to.copy_from_slice(from);
            }
            for (to, from) in to.as_chunks_mut::<4>().0.iter_mut().zip(from.as_chunks::<4>().0) {
                // SAFETY: `to` is four exclusive doubles, aligned to 32 bytes as just checked.
                unsafe { self.avx._mm256_stream_pd(to.as_mut_ptr(), cast(*from)) };
            }
        }

        #[inline(always)]
        fn fence(self) {
            self.sse._mm_sfence();
        }
    }
}
