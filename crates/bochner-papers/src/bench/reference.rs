//! What the machine can do: the references that need no other software.

use super::*;
use bochner::parallel::threads;
use pulp::{Arch, WithSimd};

/// Additions of `f32` per second on one core, from registers: sixteen vectors of running sums, nothing else.
pub(super) fn peak_adds() -> f64 {
    struct Adds;
    const ROUNDS: usize = 100_000;
    impl WithSimd for Adds {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, simd: S) -> usize {
            // Twelve sums hide the latency of an addition (4 cycles, 2 a cycle) and leave registers for the increments.
            let mut sums = [simd.splat_f32s(0.0); 12];
            let step = black_box([simd.splat_f32s(1.0), simd.splat_f32s(2.0)]);
            for _ in 0..ROUNDS {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = simd.add_f32s(*sum, step[i % 2]);
                }
            }
            black_box(sums);
            12 * size_of::<S::f32s>() / size_of::<f32>()
        }
    }
    let mut per_round = 0;
    let time = seconds(0.3, &mut || per_round = Arch::new().dispatch(Adds));
    (per_round * ROUNDS) as f64 / time
}

/// Seconds of copying `source` to `target` on all threads.
pub(super) fn copy<T: Copy + Send + Sync>(source: &[T], target: &mut [T]) -> f64 {
    let piece = source.len().div_ceil(threads()).max(1);
    seconds(0.5, &mut || {
        target.chunks_mut(piece).zip(source.chunks(piece)).in_parallel().for_each(|(t, s)| t.copy_from_slice(s));
        black_box(&mut *target);
    })
}

/// Seconds of filling `target` on all threads.
pub(super) fn fill<T: Copy + Send + Sync>(target: &mut [T], value: T) -> f64 {
    let piece = target.len().div_ceil(threads()).max(1);
    seconds(0.5, &mut || {
        target.chunks_mut(piece).in_parallel().for_each(|t| t.fill(value));
        black_box(&mut *target);
    })
}
