//! TensorSRHT against the time it takes to fill its output.

mod timing;

use bochner::feature::{ComplexToReal, FeatureMap, ProductSketch};
use bochner::projection::{Sampling, Srht};
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::Real;
use ndarray::{Array2, ArrayViewMut2};
use timing::{best, fill};

const ROWS: usize = 10_000;
const INPUTS: usize = 1024;
const OUTPUTS: usize = 10_240;

/// Seconds to transform all rows into a warm buffer.
fn time<R: Real>(map: &dyn FeatureMap<Real = R, Output = R>, rows: &Array2<R>, mut out: ArrayViewMut2<'_, R>) -> f64 {
    best(7, || map.transform_into(rows.view(), out.view_mut()).expect("shapes fit"))
}

fn view<R>(out: &mut [R]) -> ArrayViewMut2<'_, R> {
    ArrayViewMut2::from_shape((ROWS, OUTPUTS), out).expect("that many numbers")
}

fn report<R: Real>() {
    let mut rows = Array2::from_elem((ROWS, INPUTS), R::ZERO);
    Stream::new(Seed::new(1), Role::Direction, 0).normals_from(0, rows.as_slice_mut().expect("standard layout"));
    rows.mapv_inplace(|v| v * R::from_f64(1.0 / 32.0));
    let mut out = vec![R::ZERO; ROWS * OUTPUTS];
    let filled = fill(&mut out, R::ONE);
    println!("{}: {ROWS} x {INPUTS} -> {OUTPUTS}, filling the output takes {:.1} ms", R::NAME, filled * 1e3);
    for sampling in [Sampling::Upsampled, Sampling::Stacked, Sampling::Tuple] {
        let mut line = Vec::new();
        for degree in [1, 2, 3, 6] {
            let dims = vec![INPUTS; degree];
            let factors = Srht::<R, R>::factors(Seed::new(2), &dims, OUTPUTS, sampling).expect("valid sizes");
            let map = ProductSketch::new(factors).expect("valid factors");
            let real = time(&map, &rows, view(&mut out));
            line.push(format!("p = {degree} real {:.1} ms ({:.2})", real * 1e3, real / filled));
            let factors = Srht::<R, R::Complex>::factors(Seed::new(2), &dims, OUTPUTS / 2, sampling);
            let map = ComplexToReal::new(ProductSketch::new(factors.expect("valid sizes")).expect("valid factors"));
            let ctr = time(&map, &rows, view(&mut out));
            line.push(format!("CtR {:.1} ms ({:.2} of real)", ctr * 1e3, ctr / real));
        }
        println!("{sampling:?}: {}", line.join(", "));
    }
}

/// Nanoseconds per output on one thread, rows and outputs in cache.
fn kernel<O: bochner::scalar::Scalar<Real = f32>>(degree: usize, inputs: usize, outputs: usize) -> f64 {
    use bochner::linalg::{Tile, TileMut, Workspace};
    use bochner::projection::Projection;
    let n = std::env::var("N").map_or(8, |n| n.parse().expect("a number"));
    let mut rows = vec![0.0f32; n * inputs];
    Stream::new(Seed::new(1), Role::Direction, 0).normals_from(0, &mut rows);
    let factors = Srht::<f32, O>::factors(Seed::new(2), &vec![inputs; degree], outputs, Sampling::Upsampled)
        .expect("valid sizes");
    let tile = Tile::new(&rows, n, inputs);
    let mut out = vec![O::ZERO; n * outputs];
    let mut work = Workspace::new();
    let rounds = 20;
    let time = best(9, || {
        for _ in 0..rounds {
            Srht::<f32, O>::product_tile(&factors, &vec![tile; degree], TileMut::new(&mut out, n, outputs), &mut work);
        }
    });
    time / (rounds * n * outputs) as f64 * 1e9
}

fn main() {
    if std::env::args().any(|a| a == "--kernel") {
        for degree in [1, 2, 3, 6] {
            println!(
                "p = {degree}: {:.3} ns per real output, {:.3} ns per complex output, few outputs {:.3} {:.3}",
                kernel::<f32>(degree, 1024, 10240),
                kernel::<bochner::Complex<f32>>(degree, 1024, 5120),
                kernel::<f32>(degree, 1024, 64),
                kernel::<bochner::Complex<f32>>(degree, 1024, 64),
            );
        }
        return;
    }
    println!("{} threads", rayon::current_num_threads());
    report::<f32>();
    if std::env::args().any(|a| a == "--double") {
        report::<f64>();
    }
}
