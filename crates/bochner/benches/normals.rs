//! How many standard normals a second? `cargo bench --bench normals`
//!
//! Fills 10⁸ numbers in place, in tiles as a matrix-free projection asks for them.

use bochner::linalg::TileMut;
use bochner::random::{Role, Seed, Stream, fill_normals};
use bochner::scalar::Real;
use rayon::prelude::*;
use std::time::Instant;

const COUNT: usize = 100_000_000;

fn best(mut run: impl FnMut()) -> f64 {
    run();
    let times = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    COUNT as f64 / times.fold(f64::INFINITY, f64::min) / 1e6
}

fn report<R: Real>() {
    let mut out = [R::ZERO; COUNT];
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a small pool of threads");
        let long = best(|| {
            pool.install(|| {
                out.par_chunks_mut(1 << 16).enumerate().for_each(|(i, chunk)| {
                    Stream::new(Seed::new(1), Role::Direction, 0).normals_from(i << 16, chunk);
                });
            });
        });
        println!("normals/{}/one stream/threads={threads}: {long:.0} million a second", R::NAME);
        for cols in [20, 1000] {
            let rows = 40_000 / cols;
            let tiles = best(|| {
                pool.install(|| {
                    out.par_chunks_mut(rows * cols).enumerate().for_each(|(i, chunk)| {
                        let tile = TileMut::new(chunk, rows, cols);
                        fill_normals(Seed::new(1), Role::Direction, (i * rows) as u64, 0, tile);
                    });
                });
            });
            println!("normals/{}/tiles {rows} x {cols}/threads={threads}: {tiles:.0} million a second", R::NAME);
        }
    }
}

fn main() {
    report::<f32>();
    report::<f64>();
}
