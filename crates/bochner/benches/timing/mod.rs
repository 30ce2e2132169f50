//! What the machine can do at best: the measures that the benches of this folder divide by.
#![allow(dead_code)] // every bench uses its own part
#![allow(unreachable_pub)]

use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Shortest of `rounds` runs in seconds, after one that warms caches and pages.
pub fn best(rounds: usize, mut run: impl FnMut()) -> f64 {
    run();
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..rounds).map(once).fold(f64::INFINITY, f64::min)
}

/// Additions of `f32` per second on one core, with all operands in registers.
pub fn peak_additions() -> f64 {
    #[inline(always)]
    fn run(rounds: usize) -> [[f32; 8]; 10] {
        let one = black_box([1.0; 8]);
        let mut sums = black_box([[0.0; 8]; 10]);
        for _ in 0..rounds {
            for sum in &mut sums {
                for i in 0..8 {
                    sum[i] += one[i];
                }
            }
        }
        sums
    }
    let rounds = 2_000_000;
    let time = best(7, || {
        black_box(pulp::Arch::new().dispatch(
            #[inline(always)]
            || run(rounds),
        ));
    });
    rounds as f64 * 80.0 / time
}

/// Seconds to fill a warm buffer on all threads.
pub fn fill<T: Copy + Send + Sync>(buffer: &mut [T], value: T) -> f64 {
    best(7, || buffer.par_chunks_mut(1 << 16).for_each(|part| part.fill(black_box(value))))
}

/// Seconds to copy between warm buffers on all threads.
pub fn copy<T: Copy + Send + Sync>(to: &mut [T], from: &[T]) -> f64 {
    best(7, || {
        to.par_chunks_mut(1 << 16).zip(from.par_chunks(1 << 16)).for_each(|(to, from)| to.copy_from_slice(from));
        black_box(&mut *to);
    })
}
