//! Standard normals from counters.

use super::*;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let count = bench.size(100_000_000, 16_000_000);
    // A row of a tile per stream, as projections draw their directions.
    let (columns, rows) = (1000, 100);
    let mut numbers = vec![0.0f32; count];
    bench.at("drawing normals")?;
    let time = seconds(0.5, &mut || {
        numbers.chunks_mut(rows * columns).enumerate().in_parallel().for_each(|(i, piece)| {
            let tile = TileMut::new(piece, rows, columns);
            fill_normals(Seed::new(1), Role::Direction, (i * rows) as u64, 0, tile);
        });
        black_box(&mut numbers);
    });
    let rate = count as f64 / time;
    let case = format!("{} f32 normals", bochner::words::count(count));
    bench.line(Line::speed(&case, rate, "300 million a second", 300e6, "/s", Bar::AtLeast(1.0)))?;
    for (name, seconds) in bench.peer("numpy's normals", "normals", &[&count])? {
        bench.line(Line::speed(&case, rate, &name, count as f64 / seconds, "/s", Bar::None))?;
    }
    Ok(())
}
