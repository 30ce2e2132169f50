//! How long do TensorSketch features take? `cargo bench --bench tensor_sketch`
//!
//! The peer is `benches/peers/polynomial_count_sketch.py`.

use bochner::Complex;
use bochner::feature::{ComplexToReal, FeatureMap, TensorSketch};
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::Real;
use ndarray::Array2;
use std::time::Instant;

const ROWS: usize = 10_000;

fn rows<R: Real>(d: usize) -> Array2<R> {
    let mut data = vec![R::ZERO; ROWS * d];
    Stream::new(Seed::new(0), Role::Noise, 0).normals_from(0, &mut data);
    Array2::from_shape_vec((ROWS, d), data).expect("as many numbers as the shape says")
}

fn best(mut run: impl FnMut()) -> f64 {
    run();
    let times = (0..3).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn report<R: Real>(kind: &str, map: &dyn FeatureMap<Real = R, Output = R>, degree: u32, rows: &Array2<R>) {
    let mut out = Array2::from_elem((ROWS, map.output_dim()), R::ZERO);
    let seconds = best(|| map.transform_into(rows.view(), out.view_mut()).expect("shapes fit"));
    let (d, m) = (map.input_dim(), map.output_dim());
    println!("tensor_sketch/{kind}/{}/d={d}/D={m}/p={degree}/rows={ROWS}: {seconds:.3} s", R::NAME);
}

fn main() {
    let threads = rayon::current_num_threads();
    println!("{threads} threads, output memory reused");
    let (d, seed) = (1024, Seed::new(1));
    let single = rows::<f32>(d);
    for (degree, m) in [(3, 10_240), (2, 10_240), (6, 10_240), (3, 10_000), (3, 10_007), (3, 1024)] {
        let map = TensorSketch::<f32>::draw(d, degree, m, seed).expect("valid sizes");
        report("real", &map, degree, &single);
    }
    let map = ComplexToReal::new(TensorSketch::<Complex<f32>>::draw(d, 3, 5120, seed).expect("valid sizes"));
    report("ctr", &map, 3, &single);
    let double = rows::<f64>(d);
    report("real", &TensorSketch::<f64>::draw(d, 3, 10_240, seed).expect("valid sizes"), 3, &double);
}
