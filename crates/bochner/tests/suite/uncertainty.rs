//! What is left out, intervals, gradients of predictions, functions from the posterior, calibrated probabilities, learned metrics.

use bochner::Context;
use bochner::feature::{Describe, DynMap, FourierSpec, PolynomialSpec, Spec};
use bochner::model::{
    Calibration, Fit, GpClassifier, GpRegressor, Model, Predict, Ridge, RidgeClassifier, SviClassifier, Svm,
    conformal_quantile, process_scores,
};
use bochner::random::{Role, Seed, Stream};
use bochner::rows::InMemory;
use bochner::solve::leave_one_out_path;
use bochner::tune::{MetricForm, MetricSearch};
use ndarray::{Array1, Array2, Axis, s};

fn normals(rows: usize, columns: usize, index: u64) -> Array2<f64> {
    let mut out = Array2::zeros((rows, columns));
    Stream::new(Seed::new(77), Role::Direction, index).normals_from(0, out.as_slice_mut().unwrap());
    out
}

fn map(n_components: usize, dim: usize) -> DynMap<f64> {
    FourierSpec { n_components, length_scale: 1.5.into(), seed: 3, ..Default::default() }.build(dim).unwrap()
}

fn without(values: &Array2<f64>, row: usize) -> Array2<f64> {
    let others: Vec<usize> = (0..values.nrows()).filter(|i| *i != row).collect();
    values.select(Axis(0), &others)
}

/// Every row is left out in turn and the model fitted again.
#[test]
fn residuals_left_out_are_those_of_fits_without_the_row() {
    for (n, features) in [(30, 10), (12, 40)] {
        let (x, y) = (normals(n, 2, 0), normals(n, 2, 1));
        let weights = normals(n, 1, 2).column(0).mapv(|v| 0.5 + v * v);
        for (intercept, weighted) in [(true, false), (false, false), (true, true)] {
            let ridge = Ridge::new(map(features, 2), 0.3).unwrap().with_intercept(intercept);
            let own = weights.view();
            let fit = |x: &Array2<f64>, y: &Array2<f64>, w: &Array1<f64>| {
                let mut rows = InMemory::new(x.view(), y.view()).unwrap();
                if weighted {
                    rows = rows.with_weights(w.view()).unwrap();
                }
                ridge.fit_stream(&mut rows, &mut Context::default()).unwrap()
            };
            let mut rows = InMemory::new(x.view(), y.view()).unwrap();
            if weighted {
                rows = rows.with_weights(own).unwrap();
            }
            let found = ridge.leave_one_out(&mut rows, &mut Context::default()).unwrap();
            let z = ridge.map().transform(x.view()).unwrap();
            let told = weighted.then_some(own);
            let path = leave_one_out_path(z.view(), y.view(), told, &[0.01, 0.3], intercept).unwrap();
            for i in 0..n {
                let others = without(&weights.clone().insert_axis(Axis(1)), i).column(0).to_owned();
                let model = fit(&without(&x, i), &without(&y, i), &others);
                let residual = &y.row(i) - &model.predict(x.slice(s![i..=i, ..])).unwrap().row(0);
                for t in 0..2 {
                    // Systems of condition below 1e5, solved in double precision by two roads.
                    assert!(
                        (found.residuals[[i, t]] - residual[t]).abs() < 1e-9,
                        "{n} {features} {intercept} {weighted}"
                    );
                    assert!((path[1].residuals[[i, t]] - residual[t]).abs() < 1e-9, "path");
                }
                assert!((found.leverages[i] - path[1].leverages[i]).abs() < 1e-10);
            }
            let loss = path[0].residuals.mapv(|r| r * r).mean().unwrap();
            assert!((path[0].loss() - loss).abs() <= 1e-14 * loss);
        }
    }
}

#[test]
fn scores_of_a_process_are_those_of_fits_without_the_row() {
    let (n, x) = (25, normals(25, 2, 0));
    let y = x.map_axis(Axis(1), |row| row[0].sin() + 0.1 * row[1]).insert_axis(Axis(1)) + normals(25, 1, 3) * 0.2;
    let process = GpRegressor::new(map(40, 2), 0.05).unwrap().with_normalized_targets(false);
    // Targets of mean 0: the formula is that of a known mean.
    let y = &y - y.mean().unwrap();
    let fitted = process.fit(x.view(), y.view()).unwrap();
    let (mean, variance) = fitted.predict_with_variance(x.view()).unwrap();
    let noise = fitted.observation_variances();
    let found = process_scores((&y - &mean).view(), variance.view(), None, &noise).unwrap();
    for i in 0..n {
        // Written out, since a fit without the row would subtract another mean.
        let (others, left) = (without(&x, i), without(&y, i));
        let z = process.map().transform(others.view()).unwrap();
        let mut gram = z.t().dot(&z) / noise[0];
        gram.diag_mut().mapv_inplace(|v| v + 1.0);
        let at = process.map().transform(x.slice(s![i..=i, ..])).unwrap();
        let solve = |rhs: &Array2<f64>| conjugate(&gram, rhs);
        let prediction = at.dot(&solve(&(z.t().dot(&left) / noise[0])))[[0, 0]];
        let spread = at.dot(&solve(&at.t().to_owned()))[[0, 0]] + noise[0];
        let score = (y[[i, 0]] - prediction).abs() / spread.sqrt();
        assert!((found[[i, 0]] - score).abs() < 1e-7 * (1.0 + score), "{i}: {} {score}", found[[i, 0]]);
    }
}

/// `A⁻¹b` by conjugate gradients, for small positive definite systems.
fn conjugate(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let mut x = Array2::zeros(b.dim());
    let mut r = b.clone();
    let mut p = r.clone();
    for _ in 0..20 * b.nrows() {
        let rr = (&r * &r).sum();
        if rr < 1e-28 {
            break;
        }
        let ap = a.dot(&p);
        let step = rr / (&p * &ap).sum();
        x = x + step * &p;
        r = r - step * &ap;
        p = &r + (&r * &r).sum() / rr * &p;
    }
    x
}

/// Coverage of split intervals over many splits, against the law it has: a mean of Beta variables.
#[test]
fn split_intervals_cover_what_they_say() {
    let (calibration, tests, runs) = (99, 50, 200);
    for coverage in [0.5, 0.9] {
        let mut covered = 0usize;
        for run in 0..runs {
            let draws = normals(calibration + tests, 1, 100 + run).mapv(f64::abs);
            let scores: Vec<f64> = draws.iter().take(calibration).copied().collect();
            let q = conformal_quantile(&scores, coverage).unwrap();
            covered += draws.iter().skip(calibration).filter(|v| **v <= q).count();
        }
        let share = covered as f64 / (runs as usize * tests) as f64;
        // 100 c is whole: the coverage given the scores is Beta(100 c, 100 − 100 c), of mean c and variance c(1 − c)/101; the
        // test rows of a run add c(1 − c)/50.
        let deviation = (coverage * (1.0 - coverage) * (1.0 / 101.0 + 1.0 / tests as f64) / runs as f64).sqrt();
        assert!((share - coverage).abs() < 5.0 * deviation, "{share} for {coverage}, deviation {deviation}");
    }
    assert!(conformal_quantile(&[1.0], 1.0).is_err() && conformal_quantile(&[], 0.5).is_err());
    assert!(conformal_quantile(&[f64::NAN], 0.5).is_err());
}

/// Central differences of all values by all inputs, with two steps; what they differ by is allowed.
fn check_gradient(model: &Model, rows: &Array2<f64>, values: impl Fn(&Array2<f64>) -> Array2<f64>, what: &str) {
    let found = model.gradient(rows.view()).unwrap();
    let (n, outputs, inputs) = found.dim();
    assert_eq!((n, inputs), rows.dim(), "{what}");
    for j in 0..inputs {
        let slope = |step: f64| {
            let mut moved = [rows.clone(), rows.clone()];
            moved[0].column_mut(j).mapv_inplace(|v| v + step);
            moved[1].column_mut(j).mapv_inplace(|v| v - step);
            (values(&moved[0]) - values(&moved[1])) / (2.0 * step)
        };
        let (fine, coarse) = (slope(1e-5), slope(2e-5));
        for i in 0..n {
            for t in 0..outputs {
                let allowed = 2.0 * (fine[[i, t]] - coarse[[i, t]]).abs() + 1e-8 * (1.0 + fine[[i, t]].abs());
                let difference = (found[[i, t, j]] - fine[[i, t]]).abs();
                assert!(difference <= allowed, "{what} ({i}, {t}, {j}): off by {difference}, allowed {allowed}");
            }
        }
    }
    let squares = found.mapv(|g| g * g).sum_axis(Axis(1)).mean_axis(Axis(0)).unwrap();
    for (a, b) in model.importances(rows.view()).unwrap().iter().zip(&squares) {
        assert!((a - b).abs() <= 1e-12 * b, "{what}: importances");
    }
}

#[test]
fn gradients_of_predictions_are_their_slopes_for_every_model_on_features() {
    let x = normals(40, 3, 0);
    let y = Array2::from_shape_fn((40, 2), |(i, t)| (x[[i, t]] * 1.3).sin() + x[[i, 2]]);
    let labels = x.column(0).mapv(|v| if v > 0.4 { 2.0 } else { f64::from(u8::from(v > -0.4)) }).insert_axis(Axis(1));
    let two = labels.mapv(|v| v.min(1.0));
    let at = normals(5, 3, 9);
    let polynomial = PolynomialSpec { n_components: 40, degree: 3, coef0: 1.0, ..Default::default() };
    for map in [map(40, 3), polynomial.build(3).unwrap()] {
        let ridge = || Ridge::new(map.clone(), 0.1).unwrap();
        let regressions: Vec<(&str, Model)> = vec![
            ("ridge", ridge().fit(x.view(), y.view()).unwrap().into()),
            ("process", GpRegressor::new(map.clone(), 0.1).unwrap().fit(x.view(), y.view()).unwrap().into()),
            ("ridge classifier", RidgeClassifier::new(ridge()).fit(x.view(), labels.view()).unwrap().into()),
            ("machine of two", Svm::new(map.clone(), 1.0).unwrap().fit(x.view(), two.view()).unwrap().into()),
            ("machine", Svm::new(map.clone(), 1.0).unwrap().fit(x.view(), labels.view()).unwrap().into()),
        ];
        for (what, model) in &regressions {
            check_gradient(model, &at, |rows| model.predict(rows.view()).unwrap(), what);
        }
        let process = GpClassifier::new(map.clone(), 0.1).unwrap().fit(x.view(), labels.view()).unwrap();
        let model = Model::from(process.clone());
        check_gradient(&model, &at, |rows| process.latents(rows.view()).unwrap().0, "classifying process");
        let process = SviClassifier::new(map.clone(), 1.0).unwrap().fit(x.view(), labels.view()).unwrap();
        let model = Model::from(process.clone());
        check_gradient(&model, &at, |rows| process.latents(rows.view()).unwrap().0, "variational process");
    }
    let spec = FourierSpec { n_components: 20, form: bochner::variance::Form::Complex, ..Default::default() };
    let complex = spec.build_complex::<f64>(3).unwrap();
    let model = Model::from(GpRegressor::new(complex, 0.1).unwrap().fit(x.view(), y.view()).unwrap());
    check_gradient(&model, &at, |rows| model.predict(rows.view()).unwrap(), "complex process");
    let exact =
        bochner::model::exact::KernelRidge::new(std::sync::Arc::new(bochner::kernel::Gaussian::new(1.0).unwrap()), 0.1)
            .unwrap();
    let said = Model::from(exact.fit(x.view(), y.view()).unwrap()).gradient(at.view()).unwrap_err().to_string();
    assert!(said.contains("models on features have"), "{said}");
}

#[test]
fn sampled_functions_are_the_samples_and_have_their_slopes() {
    let x = normals(30, 2, 0);
    let y = Array2::from_shape_fn((30, 2), |(i, t)| (x[[i, t]] * 1.3).sin());
    let process = GpRegressor::new(map(50, 2), 0.05).unwrap().fit(x.view(), y.view()).unwrap();
    let (at, seed) = (normals(6, 2, 9), Seed::new(4));
    let all = process.sample(at.view(), 3, seed).unwrap();
    for (k, function) in process.sample_functions(3, seed).unwrap().iter().enumerate() {
        let values = function.predict(at.view()).unwrap();
        for ((i, t), value) in values.indexed_iter() {
            // The same weights in products of other widths.
            assert!((value - all[[i, t, k]]).abs() <= 1e-13 * (1.0 + value.abs()), "({i}, {t}, {k})");
        }
        let gradient = function.gradient(at.view()).unwrap();
        for j in 0..2 {
            let moved = |step: f64| {
                let mut rows = at.clone();
                rows.column_mut(j).mapv_inplace(|v| v + step);
                function.predict(rows.view()).unwrap()
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            for ((i, t), slope) in slope.indexed_iter() {
                assert!((gradient[[i, t, j]] - slope).abs() < 1e-6 * (1.0 + slope.abs()));
            }
        }
    }
}

/// Labels drawn from known probabilities: the slope and the shifts are those of the law, within their standard errors.
#[test]
fn calibration_finds_the_law_that_labels_were_drawn_from() {
    let (n, slope, shifts) = (20_000, 2.5, [0.4, -0.2, -0.2]);
    let values = normals(n, 3, 5);
    let law = Calibration { slope, shifts: shifts.to_vec() };
    let p = law.probabilities(values.view()).unwrap();
    let mut draw = Stream::new(Seed::new(8), Role::Noise, 0);
    let labels: Vec<usize> = p
        .rows()
        .into_iter()
        .map(|row| {
            let u = draw.uniform();
            (0..2).find(|&j| row.iter().take(j + 1).sum::<f64>() > u).unwrap_or(2)
        })
        .collect();
    let found = Calibration::fit(values.view(), &labels, true).unwrap();
    // Information about the slope: the mean variance of the value of the class, at least 0.1 here.
    assert!((found.slope - slope).abs() < 5.0 / (0.1 * n as f64).sqrt(), "{found:?}");
    let mean = found.shifts.iter().sum::<f64>() / 3.0;
    for (a, b) in found.shifts.iter().zip(&shifts) {
        assert!((a - mean - b).abs() < 5.0 / (0.05 * n as f64).sqrt(), "{found:?}");
    }
    let told_apart = Calibration::fit(values.slice(s![..4, ..]), &[0, 1, 2, 0], false).unwrap();
    assert!(told_apart.slope.is_finite() && told_apart.shifts.iter().all(|b| *b == 0.0));
    assert!(
        Calibration::fit(values.slice(s![..1, ..]), &[3], false).unwrap_err().to_string().contains("below the number")
    );
}

#[test]
fn a_calibrated_classifier_has_probabilities_and_keeps_them_in_its_file() {
    let x = normals(200, 2, 0);
    let labels = x.column(0).mapv(|v| f64::from(u8::from(v > 0.0))).insert_axis(Axis(1));
    let ridge = RidgeClassifier::new(Ridge::new(map(40, 2), 0.1).unwrap());
    let mut model = Model::from(ridge.fit(x.view(), labels.view()).unwrap());
    assert!(model.probabilities(x.view()).is_err());
    let held_out = normals(100, 2, 6);
    let theirs: Vec<usize> = held_out.column(0).iter().map(|v| usize::from(*v > 0.0)).collect();
    model.calibrate(held_out.view(), &theirs, false).unwrap();
    let p = model.probabilities(x.view()).unwrap();
    assert!(p.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.probabilities(x.view()).unwrap(), p);
    let mut regression = Model::from(Ridge::new(map(40, 2), 0.1).unwrap().fit(x.view(), x.view()).unwrap());
    assert!(regression.calibrate(x.view(), &[0; 200], false).is_err());
}

#[test]
fn a_learned_metric_stretches_what_matters_and_never_loses() {
    let x = normals(600, 8, 0);
    let along = &x.column(1) + &x.column(4);
    let y = along.mapv(|v| (1.5 * v).sin()).insert_axis(Axis(1));
    let features: Spec =
        FourierSpec { n_components: 256, length_scale: bochner::preprocess::LengthScale::Median, ..Default::default() }
            .into();
    for form in [MetricForm::Full, MetricForm::Diagonal] {
        let search = MetricSearch { features: features.clone(), form, seed: 2, ..MetricSearch::default() };
        let found = search.run(x.view(), y.view()).unwrap();
        assert!(found.losses[found.best] < 0.5 * found.losses[0], "{form:?}: {:?}", found.losses);
        assert!(found.losses.iter().all(|loss| *loss >= found.losses[found.best]));
        let importances = found.importances();
        assert!((importances.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for j in [0, 2, 3, 5, 6, 7] {
            assert!(importances[j] < 0.3 * importances[1].min(importances[4]), "{form:?}: {importances:?}");
        }
        let again = search.run(x.view(), y.view()).unwrap();
        assert_eq!(again, found, "the same seed gives the same metric");
        let metric = found.metric();
        let full = metric[[1, 4]] / (metric[[1, 1]] * metric[[4, 4]]).sqrt();
        match form {
            MetricForm::Full => assert!(full > 0.8, "the two columns are one direction: {full}"),
            MetricForm::Diagonal => assert_eq!(full, 0.0),
        }
        let (a, b) = (found.apply(x.slice(s![..1, ..])).unwrap(), found.apply(x.slice(s![1..2, ..])).unwrap());
        let (difference, through) = (&x.row(0) - &x.row(1), &a - &b);
        let expected = difference.dot(&metric.dot(&difference));
        assert!(((&through * &through).sum() - expected).abs() < 1e-10 * expected);
    }
}
