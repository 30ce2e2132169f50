//! A streamed fit on twice the rows: twice the time, the same memory.

use super::*;

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

/// Features of such rows.
pub(super) fn map(features: usize) -> Outcome<DynMap<f32>> {
    let projection = Directions::Sorf;
    let spec = FourierSpec { n_components: features, length_scale: 8.0.into(), projection, ..Default::default() };
    Ok(spec.build::<f32>(DIM)?)
}

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let n = bench.size(200_000, 40_000);
    let mut figures = Vec::new();
    for rows in [n / 4, n, 2 * n] {
        bench.at(format!("ridge on {} rows", count(rows)))?;
        let ridge = Ridge::new(map(2048)?, 1.0)?;
        let time = once(|| ridge.fit_stream(&mut Drawn { rows }, &mut Context::default()))?;
        figures.push((time, peak_memory()));
    }
    let [_, (once, memory), (twice, more)] = figures[..] else { return Ok(()) };
    let case = format!("ridge, D = 2,048, {} and {} rows", count(n), count(2 * n));
    // The factorisation's share of the time does not grow, so that the ratio may stay below 2.
    bench.line(Line::time(format!("{case}: time"), twice, "half the rows", once, Bar::AtMost(2.2)))?;
    bench.lines(Line::memory(&case, more, "half the rows", memory, 1.05))
}
