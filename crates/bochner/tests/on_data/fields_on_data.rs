//! Processes of currents seen by drifting buoys, beside the exact process and independent outputs.
//!
//! Needs the data sets (`BOCHNER_DATA`, else `../shared/data`); run by `make check-long`. `BOCHNER_FIELD_FEATURES` is the number of
//! features (4,096).

use crate::data;
use bochner::feature::{FieldQuantity, OperatorSpec};
use bochner::kernel::{Gaussian, OperatorKernel, OutputMatrix};
use bochner::model::{ExactOperatorGp, Fit, OperatorGp, OperatorGpModel};
use bochner::random::{Role, Seed, Stream};
use bochner::tune::{Lbfgs, OperatorEvidence, OperatorTuned};
use ndarray::{Array2, ArrayView2, Axis};
use std::time::Instant;

/// A table without a header.
fn table(path: &str) -> Array2<f64> {
    let text = String::from_utf8(data::bytes(&format!("drifters/{path}.csv"))).unwrap();
    let rows: Vec<Vec<f64>> =
        text.lines().map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

fn search(kernel: OperatorKernel, features: usize, rows: &Array2<f64>, targets: &Array2<f64>) -> OperatorTuned {
    let spec = OperatorSpec { n_components: features, ..OperatorSpec::new(kernel) };
    let search = OperatorEvidence { features, ..OperatorEvidence::default() };
    search.run(&spec, 1.0, 0.1, rows.view(), targets.view(), &mut |_| Ok(())).unwrap()
}

fn fit(found: &OperatorTuned, features: usize, rows: &Array2<f64>, targets: &Array2<f64>) -> OperatorGpModel<f64> {
    let spec = OperatorSpec { n_components: features, seed: 1, ..OperatorSpec::new(found.kernel.clone()) };
    let process = OperatorGp::new(spec.build(2).unwrap(), found.noise_variance).unwrap();
    process.with_signal_variance(found.signal_variance).unwrap().fit(rows.view(), targets.view()).unwrap()
}

fn independent(length_scale: f64) -> OperatorKernel {
    let base = Gaussian::new(length_scale).unwrap().into();
    OperatorKernel::decomposable(base, OutputMatrix::identity(2).unwrap()).unwrap()
}

fn rmse(found: ArrayView2<'_, f64>, truth: ArrayView2<'_, f64>) -> f64 {
    (&found - &truth).mapv(|e| e * e).mean().unwrap().sqrt()
}

fn features() -> usize {
    std::env::var("BOCHNER_FIELD_FEATURES").ok().and_then(|n| n.parse().ok()).unwrap_or(4096)
}

const SIMULATED: [&str; 8] =
    ["vortex", "contvortex", "duffing_divsmall", "duffing_divmid", "duffing_divbig", "divweak", "divmild", "divstrong"];

#[test]
#[ignore = "needs the data sets"]
fn divergence_and_vorticity_are_those_of_the_exact_process_on_simulated_fields() {
    let quantities = [FieldQuantity::Values, FieldQuantity::Divergence, FieldQuantity::Vorticity];
    println!(
        "field | share | error of mean and deviation over prior deviation (values, divergence, vorticity) | RMSE ours, exact, independent (divergence, vorticity)"
    );
    for name in SIMULATED {
        let (rows, targets) = (table(&format!("XY_train_{name}")), table(&format!("UV_train_{name}")));
        let (x, y) = (table(&format!("Xgrid_{name}")), table(&format!("Ygrid_{name}")));
        let flat = |values: &Array2<f64>| values.iter().copied().collect::<Vec<f64>>();
        let grid = Array2::from_shape_vec((2, x.len()), [flat(&x), flat(&y)].concat()).unwrap();
        let grid = grid.t().as_standard_layout().into_owned();
        let truth = |what: &str| {
            let values = flat(&table(&format!("{what}grid_{name}")));
            Array2::from_shape_vec((values.len(), 1), values).unwrap()
        };
        let (divergence, vorticity) = (truth("div"), truth("vort"));
        let found = search(OperatorKernel::helmholtz(1.0, 0.5).unwrap(), 512, &rows, &targets);
        let exact = ExactOperatorGp::new(found.kernel.clone(), found.signal_variance, found.noise_variance).unwrap();
        let exact = exact.fit(rows.view(), targets.view()).unwrap();
        let ours = fit(&found, features(), &rows, &targets);
        let alone = fit(&search(independent(1.0), 512, &rows, &targets), 1024, &rows, &targets);
        let (mut errors, mut scores) = (Vec::new(), Vec::new());
        for quantity in quantities {
            let (mean, variance) = ours.quantity_with_variance(grid.view(), quantity).unwrap();
            let (exact_mean, exact_variance) = exact.quantity_with_variance(grid.view(), quantity).unwrap();
            let prior = exact.prior_deviations(quantity).unwrap()[0];
            if prior > 0.0 {
                errors.push(rmse(mean.view(), exact_mean.view()) / prior);
                errors.push(rmse(variance.mapv(f64::sqrt).view(), exact_variance.mapv(f64::sqrt).view()) / prior);
            }
            let truth = match quantity {
                FieldQuantity::Values => continue,
                FieldQuantity::Divergence => &divergence,
                _ => &vorticity,
            };
            let other = alone.quantity(grid.view(), quantity).unwrap();
            scores.extend([mean, exact_mean, other].map(|mean| rmse(mean.view(), truth.view())));
        }
        let share = found.kernel.as_field().unwrap().curl_free_share();
        let scale = found.kernel.in_words();
        println!("{name} | {share:.3} | {errors:.4?} | {scores:.3?} | {scale}");
        assert!(errors.iter().all(|error| *error < 0.02), "{name}: {errors:?}");
        for (ours, exact) in [(scores[0], scores[1]), (scores[3], scores[4])] {
            assert!(ours <= 1.05 * exact + 1e-9, "{name}: {scores:?}");
        }
    }
}

#[test]
#[ignore = "needs the data sets"]
fn intervals_hold_held_out_buoys_and_features_are_faster_than_all_pairs() {
    for name in ["gladfull", "laserfull", "gladsparse", "lasersparse"] {
        let (rows, targets) = (table(&format!("XY_train_{name}")), table(&format!("UV_train_{name}")));
        let n = rows.nrows();
        let order = Stream::new(Seed::new(2), Role::Split, 0).permutation(n);
        let (mut inside, mut square, mut total, mut seconds) = (0, 0.0, 0, 0.0);
        for fold in 0..5 {
            let of = |test: bool| -> Vec<usize> {
                (0..n).filter(|i| (i % 5 == fold) == test).map(|i| order[i] as usize).collect()
            };
            let pick = |from: &Array2<f64>, which: &[usize]| from.select(Axis(0), which);
            let (train, test) = (of(false), of(true));
            let (x, y) = (pick(&rows, &train), pick(&targets, &train));
            let start = Instant::now();
            let scale = bochner::preprocess::median_distance(x.view(), Seed::new(0), 500).unwrap();
            let found = search(OperatorKernel::helmholtz(scale, 0.5).unwrap(), 384, &x, &y);
            let model = fit(&found, 384, &x, &y);
            seconds += start.elapsed().as_secs_f64();
            let (mean, variance) =
                model.quantity_with_variance(pick(&rows, &test).view(), FieldQuantity::Values).unwrap();
            for ((mean, variance), truth) in mean.iter().zip(&variance).zip(&pick(&targets, &test)) {
                let deviation = (variance + model.observation_variance()).sqrt();
                inside += usize::from((mean - truth).abs() <= 1.6449 * deviation);
                square += (mean - truth).powi(2);
                total += 1;
            }
        }
        let coverage = inside as f64 / total as f64;
        let spread = targets.var_axis(Axis(0), 0.0).mean().unwrap().sqrt();
        println!(
            "{name}: 90 % intervals hold {coverage:.3} of {total}, RMSE {:.4} of a spread of {spread:.4}, {:.1} s a fit",
            (square / total as f64).sqrt(),
            seconds / 5.0
        );
        assert!((0.85..=0.95).contains(&coverage) || n < 100, "{name}: {coverage}");
    }
    // One evaluation of the exact evidence is a factor, an inverse and as much again for the gradient.
    let (rows, targets) = (table("XY_train_gladfull"), table("UV_train_gladfull"));
    let start = Instant::now();
    let exact = ExactOperatorGp::new(OperatorKernel::helmholtz(30.0, 0.5).unwrap(), 900.0, 0.1).unwrap();
    exact.fit(rows.view(), targets.view()).unwrap();
    let one_factor = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut evaluations = 0;
    let spec = OperatorSpec { n_components: 384, ..OperatorSpec::new(OperatorKernel::helmholtz(30.0, 0.5).unwrap()) };
    let few = OperatorEvidence {
        features: 384,
        lbfgs: Lbfgs { max_evaluations: 10, ..OperatorEvidence::default().lbfgs },
        ..OperatorEvidence::default()
    };
    let mut count = |_| {
        evaluations += 1;
        Ok(())
    };
    few.run(&spec, 900.0, 0.1, rows.view(), targets.view(), &mut count).unwrap();
    let one = start.elapsed().as_secs_f64() / f64::from(evaluations);
    println!(
        "GLAD, all rows: {one_factor:.2} s for one exact factor without a gradient, {one:.3} s for an evaluation with one"
    );
}

#[test]
#[ignore = "takes a minute"]
fn a_million_buoys_take_a_minute() {
    let n = 1_000_000;
    let mut values = vec![0.0f32; 2 * n];
    Stream::new(Seed::new(3), Role::Noise, 0).normals_from(0, &mut values);
    let rows = Array2::from_shape_vec((n, 2), values).unwrap();
    let targets = Array2::from_shape_fn((n, 2), |(i, a)| if a == 0 { -rows[[i, 1]].sin() } else { rows[[i, 0]].sin() });
    let spec = OperatorSpec { n_components: 2000, ..OperatorSpec::new(OperatorKernel::helmholtz(1.0, 0.5).unwrap()) };
    let process = OperatorGp::new(spec.build::<f32>(2).unwrap(), 0.01).unwrap();
    let start = Instant::now();
    let model = process.fit(rows.view(), targets.view()).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let (mean, _) = model.quantity_with_variance(ndarray::array![[0.1, 0.2]].view(), FieldQuantity::Vorticity).unwrap();
    println!("10^6 rows, 2,000 features: {seconds:.1} s; vorticity {:.3}", mean[[0, 0]]);
    assert!((mean[[0, 0]] - f64::from(0.1f32.cos() + 0.2f32.cos())).abs() < 0.02);
}
