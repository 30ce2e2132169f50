//! Walsh–Hadamard transforms: rows in cache against the rate at which a core adds, a batch against a copy of it.

use super::reference::{copy, peak_adds};
use super::*;
use bochner::linalg::hadamard::{fwht, fwht_block};

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    bench.at("additions per second of one core")?;
    let peak = peak_adds();
    for &log in bench.size(&[8, 10, 12, 14, 16, 20][..], &[10, 12, 16][..]) {
        bench.at(format!("Walsh–Hadamard, 2^{log}"))?;
        let n = 1 << log;
        // A row that begins with a cache line: half the vectors of one that begins elsewhere straddle two lines, which
        // costs about a quarter of the speed.
        let mut memory = vec![0.0f32; n + 16];
        let start = memory.as_ptr().align_offset(64).min(16);
        let row = &mut memory[start..][..n];
        let rounds = ((1 << 20) / n).max(1);
        let time = seconds(0.3, &mut || (0..rounds).for_each(|_| fwht(black_box(&mut *row)))) / rounds as f64;
        let adds = (n * log) as f64 / time;
        // The bar is stated for rows that stay in the first or second cache.
        let bar = if [10, 12].contains(&log) { Bar::AtLeast(0.6) } else { Bar::None };
        let case = format!("an aligned row of 2^{log} f32, one thread");
        bench.line(Line::speed(case, adds, "peak additions", peak, "add/s", bar))?;
    }
    bench.at("Walsh–Hadamard, a batch")?;
    let (n, d) = (10_000, 1024);
    let mut batch = Array2::<f32>::zeros((n, d));
    // Written once: pages of zeros nobody wrote to are all the same page of memory, which would be read from cache.
    let source = vec![1.0f32; n * d];
    let mut target = vec![0.0f32; n * d];
    let copied = copy(&source, &mut target);
    let time = attempt(0.5, || fwht_block(batch.view_mut()))?;
    bench.line(Line::time("10,000 x 1,024 f32 in place", time, "copying the batch", copied, Bar::AtMost(1.5)))?;
    Ok(())
}
