//! Plans on real data: the predicted error of every map against the measured one.
//!
//! Needs the data sets (`BOCHNER_DATA`, else `../shared/data`); run by `make check-long`.

use crate::data;
use bochner::kernel::{AnyKernel, Gaussian, Polynomial};
use bochner::plan::{Request, Sample, plan};
use bochner::preprocess::LengthScale;
use bochner::random::Seed;
use ndarray::{Array2, Axis};

const ROWS: usize = 500;
const DRAWS: usize = 40;

/// Standardised rows; constant columns stay at zero.
fn standardised(name: &str) -> Array2<f64> {
    let mut rows = data::sample(&data::inputs(name), ROWS);
    for mut column in rows.axis_iter_mut(Axis(1)) {
        let (mean, deviation) = (column.mean().unwrap(), column.std(0.0));
        column.mapv_inplace(|v| if deviation > 0.0 { (v - mean) / deviation } else { 0.0 });
    }
    rows
}

fn unit(mut rows: Array2<f64>) -> Array2<f64> {
    for mut row in rows.axis_iter_mut(Axis(0)) {
        let norm = row.dot(&row).sqrt();
        row /= norm;
    }
    rows
}

#[test]
#[ignore = "needs the data sets; run by make check-long"]
fn planned_errors_are_the_measured_ones() {
    println!(
        "{:<14} {:<12} {:<44} {:>7} {:>10} {:>10} {:>7}",
        "data", "kernel", "map", "D", "predicted", "measured", "ratio"
    );
    let mut missed = Vec::new();
    for name in ["fashion-mnist", "mnist", "letter", "kin8nm", "powerplant", "protein", "concrete", "energy"] {
        let rows = standardised(name);
        let scale = LengthScale::Median.resolve(rows.view(), Seed::new(0)).unwrap();
        let LengthScale::Same(scale) = scale else { unreachable!("the median is one number") };
        let round = unit(rows.clone());
        let cases: [(&str, AnyKernel, &Array2<f64>); 2] = [
            ("gaussian", Gaussian::new(scale).unwrap().into(), &rows),
            ("(x.y + 1)^3", Polynomial::new(3, 1.0, 1.0).unwrap().into(), &round),
        ];
        for (label, kernel, rows) in cases {
            let request = Request { error: 0.1, draws: 0, most_features: 1 << 14, ..Request::default() };
            let sample = Sample::new(&kernel, rows.view()).unwrap();
            let plan = plan(&sample, &request, |_| Ok(())).unwrap();
            assert!(!plan.choices.is_empty(), "{name}, {label}: no map reaches the error");
            for choice in &plan.choices {
                let measured =
                    sample.over(choice.factor).measure(&choice.spec, DRAWS, Seed::new(3), || Ok(())).unwrap();
                let ratio = measured.root_mean_square() / choice.predicted;
                let squares: Vec<f64> = measured.errors.iter().map(|e| (e / choice.predicted).powi(2)).collect();
                let spread = squares.iter().map(|s| (s - ratio * ratio).powi(2)).sum::<f64>() / (DRAWS - 1) as f64;
                // Of the root of a mean: half that of the mean, over the root.
                let standard_error = (spread / DRAWS as f64).sqrt() / (2.0 * ratio);
                println!(
                    "{name:<14} {label:<12} {:<44} {:>7} {:>10.4} {:>10.4} {ratio:>7.3} ± {standard_error:.3}",
                    choice.name,
                    choice.spec.n_components(),
                    choice.predicted,
                    measured.root_mean_square(),
                );
                // Degrees drawn at random: high ones are rare and large, and most draws are better than their mean.
                let rare = choice.name == "Maclaurin, random";
                let allowed = 0.15 + 3.0 * standard_error;
                if ratio > 1.0 + allowed || (ratio < 1.0 - allowed && !rare) {
                    missed.push(format!("{name}, {label}, {}: {ratio:.3}", choice.name));
                }
            }
        }
    }
    assert!(missed.is_empty(), "measured error over predicted error: {missed:#?}");
}
