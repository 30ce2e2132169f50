//! Gram matrices of feature blocks, against numpy's `x.T @ x`.

use super::timing::seconds;
use super::{Bar, Bench, Line, Measure};
use bochner::accumulate::Gram;
use bochner::linalg::TileMut;
use bochner::random::{Role, Seed, fill_normals};
use bochner::scalar::Real;
use bochner::words::count;
use bochner_table::failure::Outcome;
use ndarray::{Array2, ArrayView2};

pub(super) fn run(bench: &Bench<'_>) -> Outcome<Vec<Line>> {
    let (rows, columns) = if bench.full { (60_000, 4096) } else { (8192, 1024) };
    let mut lines = Vec::new();
    for precision in ["f32", "f64"] {
        bench.progress.at(format!("Gram matrix, {precision}").into())?;
        let ours = match precision {
            "f32" => time::<f32>(rows, columns)?,
            _ => time::<f64>(rows, columns)?,
        };
        // Half of the products of a general one: the Gram matrix is symmetric.
        let flops = rows as f64 * columns as f64 * columns as f64;
        let case = format!("{} x {} {precision}", count(rows), count(columns));
        match bench.peers {
            Some(peers) => {
                bench.progress.at(format!("numpy's x.T @ x, {precision}").into())?;
                for (name, theirs) in peers.time("gram", &[rows.to_string(), columns.to_string(), precision.into()])? {
                    lines.push(Line::speed(&case, flops / ours, &name, flops / theirs, "flop/s", Bar::AtLeast(0.85)));
                }
            }
            None => lines.push(Line::alone(&case, Measure::Rate(flops / ours, "flop/s"))),
        }
    }
    Ok(lines)
}

/// Seconds of accumulating a matrix in blocks of 1,024 rows; blocks repeat, so that memory holds the Gram matrix only.
fn time<R: Real>(rows: usize, columns: usize) -> Outcome<f64> {
    let block_rows = 1024;
    let mut block = vec![R::ZERO; block_rows * columns];
    fill_normals(Seed::new(1), Role::Direction, 0, 0, TileMut::new(&mut block, block_rows, columns));
    let block = ArrayView2::from_shape((block_rows, columns), &block).expect("rows times columns numbers");
    let targets = Array2::from_elem((block_rows, 1), R::ZERO);
    let mut failure = None;
    let time = seconds(0.5, || {
        let once = || -> bochner::Result<()> {
            let mut gram = Gram::<R>::new(columns, 1)?;
            for start in (0..rows).step_by(block_rows) {
                let n = block_rows.min(rows - start);
                let slice = ndarray::s![..n, ..];
                gram.push(block.slice(slice), targets.slice(slice), None)?;
            }
            std::hint::black_box(gram.finish());
            Ok(())
        };
        failure = once().err().or(failure.take());
    });
    failure.map_or(Ok(time), |e| Err(e.into()))
}
