//! How close is the Walsh–Hadamard transform to the rate at which a core can add, and a batch to the speed of a copy?

mod timing;

use bochner::linalg::hadamard::{fwht, fwht_block, fwht_lanes};
use ndarray::Array2;
use std::hint::black_box;
use timing::{best, copy, peak_additions};

/// Seconds per row of `n` numbers that stay in cache.
fn row_time<R: bochner::scalar::Real>(n: usize) -> f64 {
    let mut row = vec![R::ZERO; n];
    let rounds = ((1 << 21) / n).max(1);
    best(9, || (0..rounds).for_each(|_| fwht(black_box(&mut row[..])))) / rounds as f64
}

/// Seconds per row in groups of eight.
fn lane_time(n: usize) -> f64 {
    let mut lanes = vec![[0.0f32; 8]; n];
    let rounds = ((1 << 18) / n).max(1);
    best(9, || (0..rounds).for_each(|_| fwht_lanes(black_box(&mut lanes[..])))) / (8 * rounds) as f64
}

fn main() {
    let peak = peak_additions();
    println!("peak of one core: {:.1} G additions/s; shares of it, one thread", peak / 1e9);
    println!("{:>8} {:>12} {:>6} {:>12} {:>6} {:>12} {:>6}", "n", "f32 row", "", "f32 lanes", "", "f64 row", "");
    for log in [6, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 22] {
        let n = 1 << log;
        let share = |time: f64, additions_per_register: f64| {
            let ideal = (n * log) as f64 / peak * (8.0 / additions_per_register);
            format!("{:>9.3} us {:>5.0}%", time * 1e6, 100.0 * ideal / time)
        };
        let lanes = if log <= 18 { share(lane_time(n), 8.0) } else { " ".repeat(19) };
        println!("{n:>8} {} {lanes} {}", share(row_time::<f32>(n), 8.0), share(row_time::<f64>(n), 4.0));
    }

    let (n, d) = (10_000, 1024);
    let mut batch = Array2::<f32>::zeros((n, d));
    let from = vec![1.0f32; n * d];
    let copied = copy(batch.as_slice_mut().expect("standard layout"), &from);
    batch.fill(0.0);
    let time = best(9, || fwht_block(batch.view_mut()).expect("a power of two"));
    println!(
        "batch of {n} x {d} f32 in place on {} threads: {:.2} ms, copy {:.2} ms, ratio {:.2}",
        rayon::current_num_threads(),
        time * 1e3,
        copied * 1e3,
        time / copied
    );
}
