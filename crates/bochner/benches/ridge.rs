//! Does a streamed fit take twice the time for twice the rows, and the same memory? `cargo bench --bench ridge`
//!
//! `cargo bench --bench ridge -- 60000 8192` fits a classifier with ten classes on that many rows and features, and
//! divides its parts by the time at which the processor could do their multiplications.

use bochner::accumulate::Gram;
use bochner::feature::{Describe, DynMap, FeatureMap, Spec};
use bochner::linalg::{Cholesky, Lower};
use bochner::model::{Fit, Ridge, RidgeClassifier};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{RowBlock, RowSource};
use bochner::solve::Solver;
use bochner::{Context, Result};
use ndarray::Array2;
use std::time::Instant;

const INPUTS: usize = 784;
const CLASSES: usize = 10;

/// The same 4,000 rows over and over: rows cost nothing, whatever their number.
struct Repeated {
    rows: Array2<f32>,
    labels: Array2<f32>,
    times: usize,
}

impl RowSource<f32> for Repeated {
    fn input_dim(&self) -> usize {
        INPUTS
    }
    fn target_dim(&self) -> usize {
        1
    }
    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, f32>) -> Result<()>) -> Result<()> {
        let block = RowBlock { rows: self.rows.view(), targets: self.labels.view(), weights: None };
        (0..self.times).try_for_each(|_| visit(block))
    }
}

fn repeated(times: usize) -> Repeated {
    let mut values = vec![0f32; 4000 * INPUTS];
    Stream::new(Seed::new(1), Role::Split, 0).normals_from(0, &mut values);
    let rows = Array2::from_shape_vec((4000, INPUTS), values).expect("4,000 rows");
    let labels = Array2::from_shape_fn((4000, 1), |(i, _)| (i % CLASSES) as f32);
    Repeated { rows, labels, times }
}

fn map(features: usize) -> DynMap<f32> {
    let text = format!(
        r#"{{"map": "fourier", "n_components": {features}, "length_scale": 28.0, "projection": "sorf", "seed": 7}}"#
    );
    let spec: Spec = serde_json::from_str(&text).expect("a description of a map");
    spec.build(INPUTS).expect("a map")
}

/// Largest resident memory since the last call of `forget_peak`, in MB, where the system tells.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1e3)
}

fn forget_peak() {
    // Refused outside Linux and in some containers: the peak then stays that of the whole run.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn fit(features: usize, times: usize) -> (f64, Option<f64>) {
    let ridge = Ridge::new(map(features), 1.0).expect("a penalty").with_solver(Solver::Cholesky);
    let classifier = RidgeClassifier::new(ridge).with_classes(CLASSES).expect("classes");
    let mut source = repeated(times);
    forget_peak();
    let start = Instant::now();
    let model = classifier.fit_stream(&mut source, &mut Context::default()).expect("a model");
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(model.classes(), CLASSES);
    (seconds, peak())
}

fn growth() {
    let features = 2048;
    fit(features, 1);
    // The shortest of three, in turn, so that a disturbance hits both sizes.
    let mut best = [(f64::INFINITY, None), (f64::INFINITY, None)];
    for _ in 0..3 {
        for (size, best) in best.iter_mut().enumerate() {
            let found = fit(features, 5 << size);
            if found.0 < best.0 {
                *best = found;
            }
        }
    }
    // The factorisation does not grow with the rows: take it out.
    let solve = factorise(features).0;
    for (size, (seconds, memory)) in best.iter().enumerate() {
        let memory = memory.map_or("unknown".to_owned(), |mb| format!("{mb:.0} MB"));
        println!("ridge/f32/D={features}/rows={}: {seconds:.2} s, peak {memory}", 20_000 << size);
    }
    println!("ridge/growth: {:.3} times the time for twice the rows", (best[1].0 - solve) / (best[0].0 - solve));
}

/// Seconds to factorise a well-conditioned matrix, and billions of multiply-adds, counted twice, a second.
fn factorise(order: usize) -> (f64, f64) {
    let mut matrix = Lower::<f64>::zeros(order).expect("memory");
    for i in 0..order {
        for (j, value) in matrix.row_mut(i).iter_mut().enumerate() {
            *value = ((i * 7 + j * 13) % 17) as f64 / 17.0 - 0.5;
        }
    }
    matrix.add_to_diagonal(order as f64);
    let start = Instant::now();
    let factor = Cholesky::new(matrix).map_err(|e| e.pivot).expect("a dominant diagonal");
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(factor.order(), order);
    (seconds, (order as f64).powi(3) / 3.0 / seconds / 1e9)
}

fn parts(rows: usize, features: usize) {
    let map = map(features);
    let mut source = repeated(rows.div_ceil(4000));
    let rows = source.times * 4000;
    let mut out = Array2::zeros((4000, features));
    map.transform_into(source.rows.view(), out.view_mut()).expect("features");
    let start = Instant::now();
    map.transform_into(source.rows.view(), out.view_mut()).expect("features");
    println!("features: {:.2} s for {rows} rows", start.elapsed().as_secs_f64() * source.times as f64);
    let targets = Array2::zeros((4000, CLASSES));
    let mut gram = Gram::<f32>::new(features, CLASSES).expect("memory");
    gram.push(out.view(), targets.view(), None).expect("rows");
    let start = Instant::now();
    gram.push(out.view(), targets.view(), None).expect("rows");
    let seconds = start.elapsed().as_secs_f64();
    let rate = 4000.0 * (features as f64).powi(2) / seconds / 1e9;
    println!("sums: {:.2} s, {rate:.0} GFLOP/s", seconds * source.times as f64);
    drop((gram, out));
    let (seconds, rate) = factorise(features);
    println!("factorisation: {seconds:.2} s, {rate:.0} GFLOP/s in f64");
    source.times = 0;
    let (seconds, memory) = fit(features, rows / 4000);
    println!("fit: {seconds:.2} s, peak {:.0} MB", memory.unwrap_or(f64::NAN));
}

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    match sizes[..] {
        [rows, features] => parts(rows, features),
        _ => growth(),
    }
}
