//! A streamed fit on twice the rows: twice the time, the same memory.

use super::{Bar, Bench, Line};
use bochner::feature::{Describe, Directions, FourierSpec};
use bochner::linalg::TileMut;
use bochner::model::{Fit, Ridge};
use bochner::random::{Role, Seed, fill_normals};
use bochner::rows::{RowBlock, RowSource};
use bochner::words::count;
use bochner_table::failure::Outcome;
use ndarray::ArrayView2;
use std::time::Instant;

pub(super) const DIM: usize = 64;
const BLOCK: usize = 2048;

/// Rows drawn block by block: a data set of any length that takes no memory.
pub(super) struct Drawn {
    pub(super) rows: usize,
}

impl RowSource<f32> for Drawn {
    fn input_dim(&self) -> usize {
        DIM
    }

    fn target_dim(&self) -> usize {
        1
    }

    fn len_hint(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn for_each_block(
        &mut self,
        visit: &mut dyn FnMut(RowBlock<'_, f32>) -> bochner::Result<()>,
    ) -> bochner::Result<()> {
        let mut buffer = vec![0.0f32; BLOCK * (DIM + 1)];
        for start in (0..self.rows).step_by(BLOCK) {
            let n = BLOCK.min(self.rows - start);
            let (rows, targets) = buffer.split_at_mut(BLOCK * DIM);
            fill_normals(Seed::new(3), Role::Noise, start as u64, 0, TileMut::new(&mut rows[..n * DIM], n, DIM));
            for i in 0..n {
                targets[i] = rows[i * DIM].sin();
            }
            let rows = ArrayView2::from_shape((n, DIM), &rows[..n * DIM]).expect("n times d numbers");
            let targets = ArrayView2::from_shape((n, 1), &targets[..n]).expect("n numbers");
            visit(RowBlock { rows, targets, weights: None })?;
        }
        Ok(())
    }
}

/// Lets [`peak_memory`] start again, where the system allows it.
pub(super) fn forget_peak() {
    // The number 5 resets the peak and nothing else (proc(5)); a refusal leaves the old, larger peak.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Most memory this process has held, in bytes, where the system says so.
pub(super) fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| 1024.0 * kib)
}

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let n = if bench.full { 200_000 } else { 40_000 };
    let spec = FourierSpec {
        n_components: 2048,
        length_scale: 8.0.into(),
        projection: Directions::Sorf,
        ..Default::default()
    };
    let mut figures = Vec::new();
    for rows in [n / 4, n, 2 * n] {
        bench.progress.at(format!("ridge on {} rows", count(rows)).into())?;
        let ridge = Ridge::new(spec.build::<f32>(DIM)?, 1.0)?;
        let start = Instant::now();
        std::hint::black_box(ridge.fit_stream(&mut Drawn { rows }, &mut bochner::Context::default())?);
        figures.push((start.elapsed().as_secs_f64(), peak_memory()));
    }
    let [_, (once, memory), (twice, more)] = figures[..] else { return Ok(Vec::new()) };
    let case = format!("ridge, D = 2,048, {} and {} rows", count(n), count(2 * n));
    let mut lines = vec![Line::time(format!("{case}: time"), twice, "half the rows", once, Bar::AtMost(2.2))];
    if let (Some(memory), Some(more)) = (memory, more) {
        // The factorisation's share of the time does not grow, so that the ratio may stay below 2.
        lines.push(Line::speed(format!("{case}: peak memory"), more, "half the rows", memory, "B", Bar::AtMost(1.05)));
    }
    Ok(lines)
}
