//! Attention of length 16,384 with heads of 64 and 256 features, and how it grows with the length.
//!
//! `cargo bench -p bochner --bench attention -- --peer PYTHON` also times numpy's exact attention
//! (`benches/peers/softmax_attention.py`) and prints the ratio.

mod timing;

use bochner::attention::{linear_attention, softmax_attention};
use bochner::feature::{Describe, PositiveSpec};
use bochner::random::{Role, Seed, Stream};
use ndarray::Array2;
use timing::best;

fn normals(rows: usize, cols: usize, index: u64) -> Array2<f32> {
    let mut data = vec![0.0; rows * cols];
    Stream::new(Seed::new(1), Role::Noise, index).normals_from(0, &mut data);
    Array2::from_shape_vec((rows, cols), data).expect("as many numbers as entries")
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let peer = arguments.iter().position(|a| a == "--peer").and_then(|at| arguments.get(at + 1));
    let map = PositiveSpec { n_components: 256, ..Default::default() }.build::<f32>(64).expect("a valid description");
    let mut longest = f64::NAN;
    for length in [4096, 8192, 16_384] {
        let (q, k, v) = (normals(length, 64, 0), normals(length, 64, 1), normals(length, 64, 2));
        for causal in [false, true] {
            let seconds = best(5, || {
                linear_attention(q.view(), k.view(), v.view(), &*map, causal).expect("positive features");
            });
            println!("linear causal={causal} {length} x 64, 256 features: {:8.1} ms", seconds * 1e3);
            if !causal {
                longest = seconds;
            }
        }
        if length == 16_384 {
            let exact = best(1, || {
                softmax_attention(q.view(), k.view(), v.view(), false).expect("finite rows");
            });
            println!("softmax {length} x 64: {:8.1} ms, {:.1} times as long", exact * 1e3, exact / longest);
        }
    }
    let Some(python) = peer else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/softmax_attention.py");
    let output = std::process::Command::new(python).arg(script).output().expect("python runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let milliseconds: f64 = text.split_whitespace().rev().nth(1).and_then(|t| t.parse().ok()).expect("a time in ms");
    println!("{}\nratio to numpy's exact attention: {:.1}", text.trim(), milliseconds / 1e3 / longest);
}
