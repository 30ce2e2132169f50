use std::time::Instant;

/// Seconds of one call of `work`: the median of repetitions over at least `budget` seconds, after one to warm up.
pub(super) fn seconds(budget: f64, mut work: impl FnMut()) -> f64 {
    work();
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || (begin.elapsed().as_secs_f64() < budget && times.len() < 10_000) {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
