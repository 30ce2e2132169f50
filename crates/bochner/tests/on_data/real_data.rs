//! Sketches on real data: measured error against closed-form variance, and the claims about who beats whom.
//!
//! Needs the data sets (`BOCHNER_DATA`, else `../shared/data`); run by `make check-long`.

use crate::data;
use bochner::feature::{Describe, FeatureMap, PolynomialSpec, SketchKind};
use bochner::kernel::kernel_matrix;
use bochner::projection::Sampling;
use bochner::variance::Weights;
use ndarray::{Array2, Axis};

const ROWS: usize = 1000;
const SEEDS: usize = 48;
const COLUMNS: usize = 1024;
const SKETCHES: [(SketchKind, Sampling); 6] = [
    (SketchKind::Rademacher, Sampling::Upsampled),
    (SketchKind::Gaussian, Sampling::Upsampled),
    (SketchKind::TensorSketch, Sampling::Upsampled),
    (SketchKind::TensorSrht, Sampling::Stacked),
    (SketchKind::TensorSrht, Sampling::Upsampled),
    (SketchKind::TensorSrht, Sampling::Tuple),
];

/// Test rows shifted to be non-negative and scaled to unit norm.
fn rows(name: &str) -> Array2<f64> {
    let mut all = data::inputs(name);
    for mut column in all.axis_iter_mut(Axis(1)) {
        let least = column.fold(f64::INFINITY, |m, &v| m.min(v));
        column.mapv_inplace(|v| v - least);
    }
    let mut sample = data::sample(&all, ROWS);
    for mut row in sample.axis_iter_mut(Axis(0)) {
        let norm = row.dot(&row).sqrt();
        row /= norm;
    }
    sample
}

/// Mean over seeds of the mean squared entry error, its standard error, and the closed form.
struct Outcome {
    measured: f64,
    standard_error: f64,
    predicted: f64,
}

fn measure(rows: &Array2<f64>, spec: &PolynomialSpec) -> Outcome {
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
    let predicted = spec.variance(rows.view(), rows.view()).unwrap().mean().unwrap();
    let mut errors = Vec::new();
    loop {
        // Four times as many draws while few of them contradict: a sketch of degree 6 has rare draws that make up its mean,
        // and until they are seen the spread looks small. A wrong formula would drift away like the root of the number.
        let more = (3 * errors.len()).max(SEEDS);
        errors.extend((errors.len()..errors.len() + more).map(|seed| {
            let spec = PolynomialSpec { seed: 100 + seed as u64, ..spec.clone() };
            let features = spec.build::<f64>(rows.ncols()).unwrap().transform(rows.view()).unwrap();
            let mut estimate = data::inner_products(&features);
            estimate.zip_mut_with(&exact, |e, k| *e = (*e - k).powi(2));
            estimate.mean().unwrap()
        }));
        let n = errors.len() as f64;
        let measured = errors.iter().sum::<f64>() / n;
        let spread = errors.iter().map(|e| (e - measured).powi(2)).sum::<f64>() / (n - 1.0);
        let standard_error = (spread / n).sqrt().max(predicted * relative_tail(spec) / n.sqrt());
        if (measured - predicted).abs() <= 3.0 * standard_error || errors.len() > 16 * SEEDS {
            return Outcome { measured, standard_error, predicted };
        }
    }
}

/// Least relative standard deviation of one draw's squared error that a sample of draws can be trusted to show.
///
/// Products of `p` normal weights have so heavy tails that the draws which make the mean are not among a few dozen, and the
/// spread of those few says too little: for parallel rows, where rows of pixels nearly are, `E t⁴/(E t²)²` of a column's
/// `t = ∏(wᵢ·x)²` is `(105/9)ᵖ` with real and `6ᵖ` with complex weights, and a draw averages its columns.
fn relative_tail(spec: &PolynomialSpec) -> f64 {
    let degree = spec.degree as i32;
    match (spec.sketch, spec.weights) {
        (SketchKind::Gaussian, Weights::Real) => ((105f64 / 9.0).powi(degree) / COLUMNS as f64).sqrt(),
        (SketchKind::Gaussian, _) => (6f64.powi(degree) / (COLUMNS / 2) as f64).sqrt(),
        _ => 0.0,
    }
}

#[test]
#[ignore = "needs the data sets; run by make check-long"]
fn measured_errors_agree_with_closed_forms_and_complex_weights_pay_off() {
    println!("{:<14} {:>2} {:<24} {:<5} {:>10} {:>10} {:>6}", "data", "p", "sketch", "", "measured", "predicted", "z");
    for name in ["mnist", "fashion-mnist", "letter"] {
        let rows = rows(name);
        for degree in [3, 6] {
            let mut real_srht = f64::NAN;
            let mut tensor_sketch = f64::NAN;
            for (sketch, srht) in SKETCHES {
                for weights in [Weights::Real, Weights::Ctr] {
                    let spec = PolynomialSpec {
                        n_components: COLUMNS,
                        degree,
                        coef0: 1.0,
                        sketch,
                        srht,
                        weights,
                        ..Default::default()
                    };
                    let outcome = measure(&rows, &spec);
                    let z = (outcome.measured - outcome.predicted) / outcome.standard_error;
                    println!(
                        "{name:<14} {degree:>2} {:<24} {:<5} {:>10.3e} {:>10.3e} {z:>6.2}",
                        format!("{sketch:?} {srht:?}"),
                        format!("{weights:?}"),
                        outcome.measured,
                        outcome.predicted
                    );
                    assert!(z.abs() <= 6.0, "{name} {spec:?}: {} against {}", outcome.measured, outcome.predicted);
                    match (sketch, srht, weights) {
                        (SketchKind::TensorSrht, Sampling::Upsampled, Weights::Real) => real_srht = outcome.measured,
                        (SketchKind::TensorSketch, _, Weights::Real) => tensor_sketch = outcome.measured,
                        (SketchKind::TensorSrht, Sampling::Upsampled, Weights::Ctr) => {
                            assert!(outcome.measured < real_srht, "{name}, p = {degree}: CtR is not below real");
                            if degree == 3 {
                                assert!(outcome.measured <= tensor_sketch, "{name}: CtR is above TensorSketch");
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
