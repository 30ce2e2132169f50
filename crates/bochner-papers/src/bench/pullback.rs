//! Pullbacks of every map, against the map itself.

use super::*;
use bochner::feature::Spec;
use serde_json::json;

const DIM: usize = 256;

pub(super) fn run(bench: &Bench<'_>) -> Outcome {
    let (n, features) = bench.size((10_000, 8192), (2000, 4096));
    let rows = normals::<f32>(n, DIM, 1) / 16.0;
    let sketch =
        |sketch, weights, degree| json!({"map": "polynomial", "sketch": sketch, "weights": weights, "degree": degree});
    let cases = [
        ("Fourier, dense", json!({"map": "fourier", "projection": "gaussian"})),
        ("Fourier, SORF", json!({"map": "fourier", "projection": "sorf"})),
        ("Fourier, offsets", json!({"map": "fourier", "projection": "gaussian", "form": "offset"})),
        ("TensorSRHT, p = 3, real", sketch("tensor_srht", "real", 3)),
        ("TensorSRHT, p = 3, CtR", sketch("tensor_srht", "ctr", 3)),
        ("Rademacher, p = 3, CtR", sketch("rademacher", "ctr", 3)),
        ("Gaussian, p = 3, real", sketch("gaussian", "real", 3)),
        ("TensorSketch, p = 3, real", sketch("tensor_sketch", "real", 3)),
        ("TensorSketch, p = 3, CtR", sketch("tensor_sketch", "ctr", 3)),
        (
            "tree of TensorSRHT, p = 4",
            json!({"map": "polynomial", "degree": 4, "structure": "tree", "weights": "real"}),
        ),
        ("compact, p = 3", json!({"map": "polynomial", "degree": 3, "structure": "compact", "weights": "real"})),
        ("Maclaurin", json!({"map": "maclaurin", "length_scale": 1.0})),
        ("spherical", json!({"map": "spherical"})),
        ("optical, dense, m = 1", json!({"map": "optical", "projection": "dense", "exponent": 1.0})),
        ("optical, structured, m = 2", json!({"map": "optical", "projection": "structured"})),
        ("positive", json!({"map": "positive"})),
        ("compressive", json!({"map": "compressive"})),
    ];
    for (name, mut case) in cases {
        bench.at(name)?;
        case["n_components"] = features.into();
        let spec: Spec = serde_json::from_value(case).map_err(|error| Failure::Failed(error.to_string()))?;
        let sample = rows.slice(ndarray::s![..1000.min(n), ..]).mapv(f64::from);
        let map = spec.resolve(sample.view())?.build::<f32>(DIM)?;
        let mut out = Array2::zeros((n, map.output_dim()));
        let forwards = attempt(0.5, || map.transform_into(rows.view(), out.view_mut()))?;
        // Features serve as cotangents: what they are does not matter.
        let backwards = attempt(0.5, || map.pullback(rows.view(), out.view()))?;
        bench.line(Line::time(name, backwards, "the map", forwards, Bar::AtMost(2.5)))?;
    }
    Ok(())
}
