//! Gram matrices of feature blocks, against numpy's `x.T @ x`.

use super::*;
use bochner::accumulate::Gram;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let (rows, columns) = bench.size((60_000, 4096), (8192, 1024));
    for precision in ["f32", "f64"] {
        bench.at(format!("Gram matrix, {precision}"))?;
        let ours = match precision {
            "f32" => time::<f32>(rows, columns)?,
            _ => time::<f64>(rows, columns)?,
        };
        // Half of the products of a general one: the Gram matrix is symmetric.
        let flops = rows as f64 * columns as f64 * columns as f64;
        let case = format!("{} x {} {precision}", count(rows), count(columns));
        let peer = bench.peer(&format!("numpy's x.T @ x, {precision}"), "gram", &[&rows, &columns, &precision])?;
        bench.lines(beside(
            &peer,
            Line::alone(&case, Cell::text(words::rate(flops / ours, "flop/s"))),
            |name, theirs| Line::speed(&case, flops / ours, name, flops / theirs, "flop/s", Bar::AtLeast(0.85)),
        ))?;
    }
    Ok(())
}

/// Seconds of accumulating a matrix in blocks of 1,024 rows; blocks repeat, so that memory holds the Gram matrix only.
fn time<R: Real>(rows: usize, columns: usize) -> Outcome<f64> {
    let block_rows = 1024;
    let block = normals::<R>(block_rows, columns, 1);
    let targets = Array2::from_elem((block_rows, 1), R::ZERO);
    attempt(0.5, || {
        let mut gram = Gram::<R>::new(columns, 1)?;
        for start in (0..rows).step_by(block_rows) {
            let slice = ndarray::s![..block_rows.min(rows - start), ..];
            gram.push(block.slice(slice), targets.slice(slice), None)?;
        }
        Ok::<_, bochner::Error>(gram.finish())
    })
}
