//! Products in GFLOP/s; `benches/peers/gemm.py` prints the same lines for numpy, `bochner bench gram` times Gram matrices.
//!
//! Arguments choose lines by what they begin with: `cargo bench --bench gemm -- square projection`.

use bochner::Complex;
use bochner::linalg::gemm::{Packed, Panels, matmul_nn, matmul_nt, product};
use bochner::linalg::{Kernels, Tile, TileMut, Workspace};
use bochner::projection::{Gaussian, MatrixFree, Projection, Rademacher, panels};
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::{Real, Scalar};
use rayon::prelude::*;
use std::ops::Range;
use std::time::Instant;

fn best(mut run: impl FnMut(), repetitions: usize) -> f64 {
    run();
    let timed = (0..repetitions).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    timed.fold(f64::INFINITY, f64::min)
}

fn wanted(name: &str) -> bool {
    let mut names = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    names.peek().is_none() || names.any(|argument| name.starts_with(&argument))
}

fn report(name: &str, flops: f64, seconds: f64) {
    println!("{name:<52} {:9.1} ms {:8.1} GFLOP/s", seconds * 1e3, flops / seconds / 1e9);
}

fn normals<R: Real>(count: usize) -> Vec<R> {
    let mut out = vec![R::ZERO; count];
    out.par_chunks_mut(1 << 14).enumerate().for_each(|(i, out)| {
        Stream::new(Seed::new(1), Role::Noise, i as u64).normals_from(0, out);
    });
    out
}

struct Matrix<R> {
    data: Vec<R>,
    depth: usize,
    columns: usize,
}

impl<R: Real> Panels<R, 1> for Matrix<R> {
    fn depth(&self) -> usize {
        self.depth
    }
    fn columns(&self) -> usize {
        self.columns
    }
    fn write(&self, panel: usize, depths: Range<usize>, out: &mut [R]) {
        let width = <R as Kernels>::PANEL;
        for (row, out) in depths.zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(&self.data[row * self.columns + panel * width..][..width]);
        }
    }
}

fn projection<R: Real>(n: usize, d: usize, m: usize, tile: usize, panel: usize) {
    if !wanted("projection") {
        return;
    }
    let x = normals::<R>(n * d);
    let w = Packed::<R>::new(&Matrix { data: normals::<R>(d * m), depth: d, columns: m }).unwrap();
    let mut out = vec![R::ZERO; n * m];
    let run = || {
        out.par_chunks_mut(tile * m).zip(x.par_chunks(tile * d)).for_each_init(Workspace::new, |work, (out, x)| {
            let rows = x.len() / d;
            let mut out = TileMut::new(out, rows, m);
            for start in (0..m).step_by(panel) {
                let columns = start..(start + panel).min(m);
                product(Tile::new(x, rows, d), &w, columns.clone(), [out.columns_mut(columns)], work);
            }
        });
    };
    let seconds = best(run, 5);
    let name = format!("projection {n} x {d} -> {m} {} tile {tile} panel {panel}", R::NAME);
    report(&name, 2.0 * (n * d * m) as f64, seconds);
}

/// A projection as the driver of maps runs it: tiles of rows shared among threads, or one tile whose columns are.
fn dense<P: Projection>(name: &str, n: usize, tile: usize, projection: &P) {
    let (d, m) = (projection.input_dim(), projection.output_dim());
    let x = normals::<P::Real>(n * d);
    let mut out = vec![P::Output::ZERO; n * m];
    let project = |rows: &[P::Real], out: &mut [P::Output], work: &mut Workspace<P::Real>| {
        let mut out = TileMut::new(out, rows.len() / d, m);
        for columns in panels(m, projection.panel()) {
            projection.project_tile(
                Tile::new(rows, rows.len() / d, d),
                columns.clone(),
                out.columns_mut(columns),
                work,
            );
        }
    };
    let run = || {
        if n <= tile {
            project(&x, &mut out, &mut Workspace::new());
        } else {
            let tiles = out.par_chunks_mut(tile * m).zip(x.par_chunks(tile * d));
            tiles.for_each_init(Workspace::new, |work, (out, rows)| project(rows, out, work));
        }
    };
    let seconds = best(run, 3);
    let parts = if P::Output::IS_COMPLEX { 2 } else { 1 };
    let name = format!("{name} {n} x {d} -> {m} {} parts {parts}", P::Real::NAME);
    report(&name, (2 * parts * n * d * m) as f64, seconds);
}

fn sources<R: Real, O: Scalar<Real = R>>() {
    let seed = Seed::new(1);
    if wanted("rademacher") {
        dense("rademacher", 10_000, 64, &Rademacher::<R, O>::new(seed, 784, 4_096).unwrap());
    }
    if wanted("matrix-free") {
        // A sixteenth of 16,384 outputs: the time per output does not depend on their number.
        dense("matrix-free stored", 1_000, 64, &Gaussian::<R, O>::new(seed, 16_384, 1_024).unwrap());
        dense("matrix-free", 1_000, 1_024, &MatrixFree::<R, O>::new(seed, 16_384, 1_024).unwrap());
    }
}

type Matmul<R> = fn(Tile<'_, R>, Tile<'_, R>, TileMut<'_, R>) -> bochner::Result<()>;

fn square<R: Real>(name: &str, n: usize, matmul: Matmul<R>) {
    if !wanted("square") {
        return;
    }
    let (a, b) = (normals::<R>(n * n), normals::<R>(n * n));
    let mut out = vec![R::ZERO; n * n];
    let seconds = best(|| matmul(Tile::new(&a, n, n), Tile::new(&b, n, n), TileMut::new(&mut out, n, n)).unwrap(), 5);
    report(&format!("square {name} {n} {}", R::NAME), 2.0 * (n * n * n) as f64, seconds);
}

fn all<R: Real>() {
    projection::<R>(10_000, 784, 4_096, 64, 4_096);
    projection::<R>(10_000, 784, 4_096, 64, 256);
    square::<R>("a b", 2_048, matmul_nn);
    square::<R>("a bT", 2_048, matmul_nt);
}

fn main() {
    all::<f32>();
    all::<f64>();
    sources::<f32, f32>();
    sources::<f32, Complex<f32>>();
    sources::<f64, f64>();
    sources::<f64, Complex<f64>>();
}
