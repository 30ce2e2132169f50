//! Gaussian processes on features: closed forms, other software, and the same answer by every road.

use crate::statistics::normal_quantile;
use crate::waves::{self, close, columns, data, waves};
use bochner::accumulate::Gram;
use bochner::feature::{Describe, DynComplexMap, DynMap, FeatureMap, FourierSpec, PolynomialSpec, Spec};
use bochner::linalg::{Cholesky, Lower, TileMut};
use bochner::model::{Fit, Fitted, GpClassifier, GpRegressor, GpRegressorModel, Model, Predict, SviClassifier};
use bochner::persist::{Header, Label, Stored};
use bochner::random::Seed;
use bochner::rows::{InMemory, RowSource};
use bochner::scalar::Scalar;
use bochner::variance::{Form, Weights};
use bochner::{Complex, Context, Error};
use ndarray::{Array2, Axis, array, concatenate, s};

/// The rows of `tools/golden/gaussian_processes.py`.
fn twelve() -> (Array2<f64>, Array2<f64>, Array2<f64>) {
    let (x, y) = waves::twelve();
    (x, y, array![[0.5, -0.25, 1.0], [2.0, 1.0, -1.0]])
}

fn complex_map(dim: usize) -> bochner::feature::DynComplexMap<f64> {
    let spec = FourierSpec { n_components: dim, form: Form::Complex, seed: 5, ..FourierSpec::default() };
    spec.build_complex::<f64>(3).unwrap()
}

#[test]
fn a_linear_process_agrees_with_scikit_learn() {
    // scikit-learn 1.9.1, kernel 1.7 * DotProduct(0), alpha=0.3.
    let (x, y, new) = twelve();
    let mut source = InMemory::new(x.view(), y.view()).unwrap();
    let process = GpRegressor::new(columns::<f64>(3), 0.3).unwrap().with_signal_variance(1.7).unwrap();
    let expected = array![[2.3140797493298475, 0.1080232859004371], [1.3429851322006838, -1.0689908085624418]];

    let model =
        process.clone().with_normalized_targets(false).fit_stream(&mut source, &mut Context::default()).unwrap();
    let (mean, variance) = model.predict_with_variance(new.view()).unwrap();
    close(mean.view(), expected.view(), 1e-13);
    close(variance.view(), array![[0.10501347282168318; 2], [0.26959982680189226; 2]].view(), 1e-13);
    let covariance = model.covariance(new.view(), 0).unwrap();
    assert!((covariance[[0, 1]] + 0.025967273424531145).abs() < 1e-14);
    assert!((covariance[[1, 1]] - variance[[1, 0]]).abs() < 1e-14 && covariance == covariance.t());
    assert!((model.log_marginal_likelihood() + 27.86845118260596).abs() < 1e-12);
    assert_eq!(model.observation_variances(), [0.3, 0.3]);

    let model = process.fit_stream(&mut source, &mut Context::default()).unwrap();
    let (mean, variance) = model.predict_with_variance(new.view()).unwrap();
    close(mean.view(), expected.view(), 1e-13);
    let expected = array![[0.05870233469502444, 0.07000898188112212], [0.15070579842187182, 0.17973321786792812]];
    close(variance.view(), expected.view(), 1e-13);
    assert!((model.covariance(new.view(), 1).unwrap()[[0, 1]] + 0.017311515616354096).abs() < 1e-14);
    assert!((model.log_marginal_likelihood() + 29.423187107055046).abs() < 1e-12);
    assert!(model.covariance(new.view(), 2).is_err());
}

/// Mean, covariance and log likelihood through the matrix of all pairs of rows: `k_x^T (K + S)^-1 z` and
/// `k(x, x') - k_x^T (K + S)^-1 conj(k_x')`.
fn by_pairs<T: Scalar<Real = f64>>(
    features: &Array2<T>,
    new: &Array2<T>,
    z: &[f64],
    noise: &[f64],
    signal: f64,
) -> (Vec<T>, Array2<T>, f64) {
    let n = z.len();
    let inner = |a: ndarray::ArrayView1<'_, T>, b: ndarray::ArrayView1<'_, T>| -> T {
        a.iter().zip(b).map(|(a, b)| (*a * b.conj()).scale(signal)).sum()
    };
    let mut square = vec![T::ZERO; n * n];
    for i in 0..n {
        for j in 0..n {
            square[i * n + j] = inner(features.row(i), features.row(j));
        }
        square[i * n + i] += T::from_parts(noise[i], 0.0);
    }
    let factor = Cholesky::new(Lower::from_square(&square, n).unwrap()).unwrap();
    let solve = |mut v: Vec<T>| {
        factor.solve_in_place(TileMut::new(&mut v, n, 1)).unwrap();
        v
    };
    let alpha = solve(z.iter().map(|&z| T::from_parts(z, 0.0)).collect());
    let k = |x: usize| -> Vec<T> { (0..n).map(|i| inner(new.row(x), features.row(i))).collect() };
    let dot = |a: &[T], b: &[T]| -> T { a.iter().zip(b).map(|(a, b)| *a * *b).sum() };
    let mean = (0..new.nrows()).map(|x| dot(&k(x), &alpha)).collect();
    let covariance = Array2::from_shape_fn((new.nrows(), new.nrows()), |(x, other)| {
        let solved = solve(k(other).iter().map(|v| v.conj()).collect());
        inner(new.row(x), new.row(other)) - dot(&k(x), &solved)
    });
    let misfit: f64 = z.iter().zip(&alpha).map(|(z, a)| z * a.re()).sum();
    let (half, turn) = if T::IS_COMPLEX { (1.0, std::f64::consts::PI) } else { (0.5, std::f64::consts::TAU) };
    let likelihood = -half * (misfit + factor.log_determinant() + n as f64 * turn.ln());
    (mean, covariance, likelihood)
}

fn features_and_pairs_agree<M: FeatureMap<Real = f64, Output: Scalar<Real = f64>> + Clone>(map: M) {
    let (x, y, w) = data::<f64>(80, 3, 1);
    let (signal, noise) = (1.9, 0.2);
    let total = w.sum();
    let mean = (&y.column(0) * &w).sum() / total;
    let z: Vec<f64> = y.iter().map(|y| y - mean).collect();
    let noises: Vec<f64> = w.iter().map(|w| noise / w).collect();
    let mut source = InMemory::new(x.view(), y.view()).unwrap().with_weights(w.view()).unwrap();
    let process = GpRegressor::new(map.clone(), noise).unwrap().with_signal_variance(signal).unwrap();
    let model = process.with_normalized_targets(false).fit_stream(&mut source, &mut Context::default()).unwrap();
    let new = data::<f64>(7, 3, 1).0.mapv(|v| 0.7 * v + 0.1);
    let features = map.transform(x.view()).unwrap();
    let (means, covariance, likelihood) = by_pairs(&features, &map.transform(new.view()).unwrap(), &z, &noises, signal);
    let (found, variance) = model.predict_with_variance(new.view()).unwrap();
    for (found, exact) in found.iter().zip(&means) {
        assert!((found - mean - exact.re()).abs() < 1e-10, "{found} {exact}");
    }
    let found = model.covariance(new.view(), 0).unwrap();
    close(found.view(), covariance.mapv(|v| v.re()).view(), 1e-10);
    close(variance.view(), found.diag().insert_axis(Axis(1)), 1e-13);
    assert!((model.log_marginal_likelihood() - likelihood).abs() < 1e-8, "{likelihood}");
}

#[test]
fn features_and_pairs_of_rows_give_one_posterior() {
    features_and_pairs_agree(waves::<f64>(3, 30));
    features_and_pairs_agree(complex_map(30));
    // More features than rows.
    features_and_pairs_agree(complex_map(100));
    let ctr = PolynomialSpec { n_components: 64, coef0: 0.5, seed: 2, ..PolynomialSpec::default() };
    features_and_pairs_agree(ctr.build::<f64>(3).unwrap());
}

#[test]
fn a_complex_process_is_its_real_embedding_and_not_the_process_of_its_real_features() {
    let map = complex_map(25);
    let (x, y, _) = data::<f64>(60, 3, 1);
    let y = &y - y.mean().unwrap();
    let process = |noise| GpRegressor::new(map.clone(), noise).unwrap().with_normalized_targets(false);
    let model = process(0.3).fit(x.view(), y.view()).unwrap();
    // Real and imaginary parts of f = phi^T w are linear in those of w, which have variance 1/2 each.
    let embed = |x: &Array2<f64>| {
        let f = map.transform(x.view()).unwrap();
        let (re, im) = (f.mapv(|v| v.re), f.mapv(|v| v.im));
        let above = concatenate![Axis(1), re, im.mapv(|v| -v)];
        concatenate![Axis(0), above, concatenate![Axis(1), im, re]]
    };
    let rows = embed(&x);
    let targets = concatenate![Axis(0), y, Array2::zeros(y.dim())];
    let embedded = GpRegressor::new(columns::<f64>(50), 0.15).unwrap().with_signal_variance(0.5).unwrap();
    let embedded = embedded.with_normalized_targets(false);
    let embedded = embedded.fit(rows.view(), targets.view()).unwrap();
    let new = x.slice(s![..9, ..]).mapv(|v| v + 0.3);
    let (mean, variance) = model.predict_with_variance(new.view()).unwrap();
    let (both, spread) = embedded.predict_with_variance(embed(&new).view()).unwrap();
    close(mean.view(), both.slice(s![..9, ..]), 1e-11);
    close(variance.view(), (&spread.slice(s![..9, ..]) + &spread.slice(s![9.., ..])).view(), 1e-11);
    assert!((model.log_marginal_likelihood() - embedded.log_marginal_likelihood()).abs() < 1e-9);
    // Real and imaginary parts as features of their own make another process.
    let spec = FourierSpec { n_components: 25, form: Form::Complex, seed: 5, ..FourierSpec::default() };
    let ctr = GpRegressor::new(spec.build::<f64>(3).unwrap(), 0.3).unwrap().with_normalized_targets(false);
    let ctr = ctr.fit(x.view(), y.view()).unwrap();
    let differences = &ctr.predict(new.view()).unwrap() - &mean;
    assert!(differences.iter().any(|d| d.abs() > 1e-3), "{differences}");
}

#[test]
fn blocks_and_merges_do_not_matter() {
    let (x, y, w) = data::<f64>(2500, 3, 2);
    let map = waves::<f64>(3, 40);
    let process = GpRegressor::new(map.clone(), 0.1).unwrap();
    let fit = |block| {
        let source = InMemory::new(x.view(), y.view()).unwrap().with_weights(w.view()).unwrap();
        process.fit_stream(&mut source.with_block_rows(block).unwrap(), &mut Context::default()).unwrap()
    };
    let whole = fit(2500);
    let new = x.slice(s![..20, ..]);
    let expected = whole.predict_with_variance(new).unwrap();
    for block in [1, 7, 1023, 1024] {
        assert_eq!(fit(block).predict_with_variance(new).unwrap(), expected);
    }
    // A row's prediction does not depend on the rows around it.
    let (mean, variance) = whole.predict_with_variance(x.slice(s![3..4, ..])).unwrap();
    assert_eq!((mean.row(0), variance.row(0)), (expected.0.row(3), expected.1.row(3)));
    let mut parts: Vec<Gram<f64>> = (0..2).map(|_| process.accumulator(2, &Context::default()).unwrap()).collect();
    for (part, rows) in parts.iter_mut().zip([0..1100, 1100..2500]) {
        let mut source = InMemory::new(x.slice(s![rows.clone(), ..]), y.slice(s![rows.clone(), ..]))
            .unwrap()
            .with_weights(w.slice(s![rows]))
            .unwrap();
        source.for_each_block(&mut |block| part.push_rows(&map, block)).unwrap();
    }
    let second = parts.pop().unwrap();
    let mut first = parts.pop().unwrap();
    first.merge(&second).unwrap();
    let merged = process.fit_moments(first.finish()).unwrap();
    let found = merged.predict(new).unwrap();
    assert!(found.iter().zip(&expected.0).all(|(a, b)| (a - b).abs() < 1e-8));
    let gap = merged.log_marginal_likelihood() - whole.log_marginal_likelihood();
    assert!(gap.abs() < 1e-10 * whole.log_marginal_likelihood().abs(), "{gap}");
}

fn samples_have_the_posterior_moments<M: FeatureMap<Real = f64> + Clone>(map: M, share: f64) {
    let (x, y, _) = data::<f64>(40, 3, 2);
    let model = GpRegressor::new(map, 0.5).unwrap().fit(x.view(), y.view()).unwrap();
    let new = x.slice(s![..3, ..]).mapv(|v| v + 0.5);
    let count = 4000;
    let samples = model.sample(new.view(), count, Seed::new(11)).unwrap();
    assert_eq!(samples.dim(), (3, 2, count));
    let mean = model.predict(new.view()).unwrap();
    let z = normal_quantile(1.0 - 1e-6 / (2.0 * (6.0 + 12.0)));
    for target in 0..2 {
        // Real parts of a complex process have a share of its covariance.
        let covariance = model.covariance(new.view(), target).unwrap() * share;
        for i in 0..3 {
            let draws = |i: usize| samples.slice(s![i, target, ..]).mapv(|v| v - mean[[i, target]]);
            let average = draws(i).mean().unwrap();
            assert!(average.abs() < z * (covariance[[i, i]] / count as f64).sqrt(), "{average}");
            for j in 0..=i {
                let found = (&draws(i) * &draws(j)).mean().unwrap();
                // Products of two normals have variance c_ii c_jj + c_ij^2.
                let spread = covariance[[i, i]] * covariance[[j, j]] + covariance[[i, j]].powi(2);
                assert!((found - covariance[[i, j]]).abs() < z * (spread / count as f64).sqrt(), "{i} {j}");
            }
        }
    }
    // Samples are functions: the same draw at other rows, or among more samples.
    let one = model.sample(new.slice(s![1..2, ..]), 5, Seed::new(11)).unwrap();
    for k in 0..5 {
        assert!((one[[0, 1, k]] - samples[[1, 1, k]]).abs() < 1e-12);
    }
    assert!(model.sample(new.view(), 0, Seed::new(1)).is_err());
}

#[test]
fn posterior_samples_have_the_posterior_mean_and_covariance() {
    samples_have_the_posterior_moments(waves::<f64>(3, 20), 1.0);
    // Weights of a complex process are circular: its real part has half of the real part of the covariance.
    samples_have_the_posterior_moments(complex_map(20), 0.5);
}

#[test]
fn models_come_back_from_files_bit_by_bit() {
    let (x, y, _) = data::<f64>(70, 3, 2);
    let spec = FourierSpec { n_components: 20, form: Form::Complex, ..FourierSpec::default() };
    let map = spec.build_complex::<f64>(3).unwrap();
    let model = GpRegressor::new(map, 0.1).unwrap().fit(x.view(), y.view()).unwrap();
    let bytes = model.to_bytes().unwrap();
    let read = Model::from_bytes(&bytes).unwrap();
    let again: &GpRegressorModel<DynComplexMap<f64>> = read.downcast_ref().unwrap();
    assert_eq!(again.predict_with_variance(x.view()).unwrap(), model.predict_with_variance(x.view()).unwrap());
    assert_eq!(again.log_marginal_likelihood(), model.log_marginal_likelihood());
    assert_eq!(read.to_bytes().unwrap(), bytes);
    // A map of another size is refused.
    let stored = Stored::from_bytes(&bytes).unwrap();
    let with = |change: &dyn Fn(&mut Header)| {
        let mut stored = stored.clone();
        change(&mut stored.header);
        Model::from_bytes(&stored.to_bytes().unwrap())
    };
    let wider = FourierSpec { n_components: 21, ..spec };
    assert!(with(&|header| header.map = Some(Spec::from(wider.clone()).into())).is_err());
    // A map of one's own has no description.
    let own = GpRegressor::new(waves::<f64>(3, 20), 0.1).unwrap().fit(x.view(), y.view()).unwrap();
    assert!(matches!(own.to_bytes(), Err(Error::Unsupported { .. })));
    let single = x.mapv(|v| v as f32);
    let targets = y.mapv(|v| v as f32);
    let mut rows = InMemory::new(single.view(), targets.view()).unwrap();
    let map = FourierSpec { n_components: 20, ..FourierSpec::default() }.build::<f32>(3).unwrap();
    let model = GpRegressor::new(map, 0.1).unwrap().fit_stream(&mut rows, &mut Context::default()).unwrap();
    let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let again: &GpRegressorModel<DynMap<f32>> = read.downcast_ref().unwrap();
    assert_eq!(again.predict(single.view()).unwrap(), model.predict(single.view()).unwrap());
}

#[test]
fn bad_input_is_refused_and_hard_input_is_reported() {
    let map = waves::<f64>(2, 5);
    for noise in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(GpRegressor::new(map.clone(), noise), Err(Error::Parameter { .. })));
    }
    assert!(GpRegressor::new(map.clone(), 1.0).unwrap().with_signal_variance(0.0).is_err());
    let process = GpRegressor::new(map.clone(), 1.0).unwrap();
    let empty = (Array2::zeros((0, 2)), Array2::zeros((0, 1)));
    assert!(process.fit(empty.0.view(), empty.1.view()).is_err());
    let (rows, none) = (Array2::zeros((3, 2)), Array2::zeros((3, 0)));
    assert!(process.fit(rows.view(), none.view()).is_err());
    let mut small = Context::default().with_memory_budget(1000).unwrap();
    let targets = array![[4.0], [4.0], [4.0]];
    let mut source = InMemory::new(rows.view(), targets.view()).unwrap();
    assert!(matches!(process.fit_stream(&mut source, &mut small), Err(Error::Budget { .. })));
    // Constant targets: the mean is all there is to learn.
    let model = process.fit(rows.view(), targets.view()).unwrap();
    assert_eq!(model.predict(rows.view()).unwrap(), targets);
    assert!(model.predict_with_variance(array![[f64::NAN, 0.0]].view()).is_err());
    assert!(model.predict_with_variance(array![[0.0]].view()).is_err());
    // Equal rows and hardly any noise: the posterior stays finite.
    let sure = GpRegressor::new(map, 1e-13).unwrap();
    let model = sure.fit(rows.view(), array![[1.0], [2.0], [4.0]].view()).unwrap();
    let (mean, variance) = model.predict_with_variance(rows.view()).unwrap();
    assert!((mean[[0, 0]] - 7.0 / 3.0).abs() < 1e-6 && variance[[0, 0]] >= 0.0 && variance[[0, 0]] < 1e-6);
}

#[test]
fn complex_numbers_of_single_precision_serve_as_well() {
    let spec = PolynomialSpec {
        n_components: 32,
        coef0: 1.0,
        weights: Weights::Complex,
        seed: 1,
        ..PolynomialSpec::default()
    };
    let (x, y, _) = data::<f64>(200, 3, 1);
    let (single, targets) = (x.mapv(|v| v as f32), y.mapv(|v| v as f32));
    let coarse = GpRegressor::new(spec.build_complex::<f32>(3).unwrap(), 0.5).unwrap();
    let coarse = coarse.fit(single.view(), targets.view()).unwrap();
    let fine = GpRegressor::new(spec.build_complex::<f64>(3).unwrap(), 0.5).unwrap();
    let fine = fine.fit(x.view(), y.view()).unwrap();
    let (a, b) = (coarse.predict(single.view()).unwrap(), fine.predict(x.view()).unwrap());
    let scale = b.iter().fold(0.0f64, |a, v| a.max(v.abs()));
    assert!(a.iter().zip(&b).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-3 * scale));
    let _: Complex<f32> = coarse.map().transform(single.view()).unwrap()[[0, 0]];
}

/// Rows of three classes, the first one rare.
fn labelled(n: usize) -> (Array2<f64>, Array2<f64>) {
    let (x, _, _) = data::<f64>(n, 3, 1);
    let labels = Array2::from_shape_fn((n, 1), |(i, _)| match x[[i, 0]] + 0.3 * x[[i, 1]] {
        v if v > 1.2 => 0.0,
        v if v > 0.0 => 1.0,
        _ => 2.0,
    });
    (x, labels)
}

fn classes_agree_with_pairs<M: FeatureMap<Real = f64, Output: Scalar<Real = f64>> + Clone>(map: M) {
    let (x, labels) = labelled(90);
    let alpha: f64 = 0.02;
    let model = GpClassifier::new(map.clone(), alpha).unwrap();
    let model = model.fit(x.view(), labels.view()).unwrap();
    let new = x.slice(s![..5, ..]).mapv(|v| 0.8 * v - 0.2);
    let (means, variances) = model.latents(new.view()).unwrap();
    let (features, others) = (map.transform(x.view()).unwrap(), map.transform(new.view()).unwrap());
    let mut likelihood = 0.0;
    for class in 0..3 {
        let shape: Vec<f64> = labels.iter().map(|&label| alpha + f64::from(u8::from(label == class as f64))).collect();
        let noise: Vec<f64> = shape.iter().map(|a| (1.0 / a + 1.0).ln()).collect();
        let targets: Vec<f64> = shape.iter().zip(&noise).map(|(a, v)| a.ln() - 0.5 * v).collect();
        let mean = targets.iter().sum::<f64>() / 90.0;
        let signal = targets.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / 90.0;
        let z: Vec<f64> = targets.iter().map(|t| t - mean).collect();
        let (exact, covariance, value) = by_pairs(&features, &others, &z, &noise, signal);
        for i in 0..5 {
            assert!((means[[i, class]] - mean - exact[i].re()).abs() < 1e-9);
            assert!((variances[[i, class]] - covariance[[i, i]].re()).abs() < 1e-9);
        }
        likelihood += value;
    }
    assert!((model.log_marginal_likelihood() - likelihood).abs() < 1e-7 * likelihood.abs());
}

#[test]
fn every_class_is_a_regression_with_noise_of_its_own() {
    classes_agree_with_pairs(waves::<f64>(3, 25));
    classes_agree_with_pairs(complex_map(25));
}

#[test]
fn probabilities_add_up_and_say_what_the_latents_say() {
    let (x, labels) = labelled(400);
    let map = FourierSpec { n_components: 100, seed: 1, ..FourierSpec::default() }.build::<f64>(3).unwrap();
    let classifier = GpClassifier::new(map, 0.01).unwrap().with_classes(4).unwrap();
    let model = classifier.fit(x.view(), labels.view()).unwrap();
    let probabilities = model.probabilities(x.view()).unwrap();
    assert!(probabilities.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
    // A class without rows is never likely.
    assert!(probabilities.column(3).iter().all(|p| *p < 0.1));
    let classes = model.predict_classes(x.view()).unwrap();
    let wrong = classes.iter().zip(&labels).filter(|(class, label)| **class as f64 != **label).count();
    assert!(wrong < 20, "{wrong}");
    let alone = model.probabilities(x.slice(s![7..8, ..])).unwrap();
    assert_eq!(alone.row(0), probabilities.row(7));
    // Far from all rows the prior speaks: shares of classes, not certainty.
    let far = model.probabilities(array![[40.0, -35.0, 60.0]].view()).unwrap();
    assert!(far.iter().all(|p| *p < 0.9), "{far}");
    // Without spread probabilities would be the softmax of means; with it they are less extreme.
    let (means, _) = model.latents(x.view()).unwrap();
    let mut extremes = 0.0;
    for (mean, p) in means.rows().into_iter().zip(probabilities.rows()) {
        let largest = mean.fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let sum: f64 = mean.iter().map(|m| (m - largest).exp()).sum();
        extremes += 1.0 / sum - p.fold(0.0f64, |a, b| a.max(*b));
    }
    assert!(extremes > 0.0, "{extremes}");
}

#[test]
fn classes_do_not_depend_on_blocks_and_alpha_is_chosen_by_held_out_labels() {
    let (x, labels) = labelled(600);
    let map = waves::<f64>(3, 40);
    let classifier = GpClassifier::new(map.clone(), 0.1).unwrap();
    let fit = |block| {
        let source = InMemory::new(x.view(), labels.view()).unwrap();
        classifier.fit_stream(&mut source.with_block_rows(block).unwrap(), &mut Context::default()).unwrap()
    };
    let whole = fit(600).probabilities(x.view()).unwrap();
    assert_eq!(fit(1).probabilities(x.view()).unwrap(), whole);
    let (train, test) =
        ((x.slice(s![..450, ..]), labels.slice(s![..450, ..])), (x.slice(s![450.., ..]), labels.slice(s![450.., ..])));
    let alphas = [1e-5, 1e-3, 0.1, 1.0];
    let found = classifier
        .validate(
            &alphas,
            &mut InMemory::new(train.0, train.1).unwrap(),
            &mut InMemory::new(test.0, test.1).unwrap(),
            &mut Context::default(),
        )
        .unwrap();
    let targets: Vec<usize> = test.1.iter().map(|l| *l as usize).collect();
    for (alpha, loss) in alphas.iter().zip(&found.losses) {
        let alone = GpClassifier::new(map.clone(), *alpha).unwrap();
        let alone = alone.fit(train.0, train.1).unwrap();
        let probabilities = alone.probabilities(test.0).unwrap();
        let exact = bochner::metrics::class_negative_log_likelihood(&targets, probabilities.view()).unwrap();
        assert_eq!(*loss, exact);
        assert!(*loss >= found.losses[found.best]);
    }
    assert_eq!(found.model.alpha(), alphas[found.best]);
    // Two halves, merged.
    let mut first = classifier.accumulator(3, &Context::default()).unwrap();
    let mut second = classifier.accumulator(3, &Context::default()).unwrap();
    for (to, rows) in [(&mut first, 0..250), (&mut second, 250..600)] {
        let mut source = InMemory::new(x.slice(s![rows.clone(), ..]), labels.slice(s![rows, ..])).unwrap();
        source.for_each_block(&mut |block| to.push_rows(&map, block)).unwrap();
    }
    first.merge(&map, &second).unwrap();
    let merged = classifier.fit_moments(first.finish(&map).unwrap()).unwrap();
    close(merged.probabilities(x.view()).unwrap().view(), whole.view(), 1e-9);
}

#[test]
fn classifiers_come_back_from_files_and_refuse_what_they_cannot_use() {
    let (x, labels) = labelled(80);
    let map = FourierSpec { n_components: 15, form: Form::Complex, ..FourierSpec::default() };
    let model = GpClassifier::new(map.build_complex::<f64>(3).unwrap(), 0.05).unwrap();
    let model = model.fit(x.view(), labels.view()).unwrap();
    let names: Vec<Label> = ["a", "b", "c"].map(Label::from).into();
    assert!(Model::from(model.clone()).with_classes(names[..2].to_vec()).is_err());
    let named = Model::from(model.clone()).with_classes(names.clone()).unwrap();
    let again = Model::from_bytes(&named.to_bytes().unwrap()).unwrap();
    assert_eq!(again.classes(), Some(&names[..]));
    assert_eq!(again.probabilities(x.view()).unwrap(), model.probabilities(x.view()).unwrap());
    assert!(again.downcast_ref::<GpRegressorModel<DynComplexMap<f64>>>().is_none());
    assert!(GpClassifier::new(waves::<f64>(3, 5), 0.0).is_err());
    let large = GpClassifier::new(waves::<f64>(3, 50), 0.1).unwrap();
    let mut small = Context::default().with_memory_budget(1000).unwrap();
    let mut source = InMemory::new(x.view(), labels.view()).unwrap();
    assert!(matches!(large.fit_stream(&mut source, &mut small), Err(Error::Budget { .. })));
    let wrong = labels.mapv(|l| l + 0.5);
    let classifier = GpClassifier::new(waves::<f64>(3, 5), 0.1).unwrap();
    assert!(classifier.fit(x.view(), wrong.view()).is_err());
    // A single class is always right.
    let same = Array2::zeros(labels.dim());
    let model = classifier.fit(x.view(), same.view()).unwrap();
    assert!(model.predict_classes(x.view()).unwrap().iter().all(|class| *class == 0));
}

#[test]
fn variational_classification_learns_and_does_not_depend_on_blocks() {
    let (x, labels) = labelled(1500);
    let map = FourierSpec { n_components: 200, seed: 1, ..FourierSpec::default() }.build::<f64>(3).unwrap();
    let classifier = SviClassifier::new(map.clone(), 30.0).unwrap().with_passes(15).unwrap();
    let fit = |block| {
        let source = InMemory::new(x.view(), labels.view()).unwrap();
        classifier.fit_stream(&mut source.with_block_rows(block).unwrap(), &mut Context::default()).unwrap()
    };
    let model = fit(1500);
    let found = model.predict(x.view()).unwrap();
    let wrong = found.iter().zip(&labels).filter(|(a, b)| a != b).count();
    assert!(wrong < 90, "{wrong}");
    // More than guessing by shares of classes can give, less than certainty.
    assert!(model.bound() < 0.0 && model.bound() > -1500.0 * 0.9, "{}", model.bound());
    let probabilities = model.probabilities(x.view()).unwrap();
    assert_eq!(fit(333).probabilities(x.view()).unwrap(), probabilities);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.probabilities(x.view()).unwrap(), probabilities);
    assert!(SviClassifier::new(waves::<f64>(3, 7), 0.0).is_err());
}

#[test]
fn every_target_has_the_level_that_it_would_have_alone() {
    let (x, mut y, _) = data::<f64>(300, 3, 2);
    // The second target is ten times as noisy.
    for (i, value) in y.column_mut(1).iter_mut().enumerate() {
        *value += 3.0 * ((i * 7919) % 1000) as f64 / 1000.0;
    }
    let new = x.slice(s![..20, ..]);
    let process = GpRegressor::new(waves::<f64>(3, 60), 0.05).unwrap();
    let plain = process.fit(x.view(), y.view()).unwrap();
    let process = process.with_likeliest_level(true);
    let both = process.fit(x.view(), y.view()).unwrap();
    let (mean, variance) = both.predict_with_variance(new).unwrap();
    assert_eq!(mean, plain.predict(new).unwrap());
    let mut likelihood = 0.0;
    for target in 0..2 {
        let one = y.slice(s![.., target..target + 1]);
        let alone = process.fit(x.view(), one).unwrap();
        let ratio = both.observation_variances()[target] / alone.observation_variances()[0];
        assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
        let (_, expected) = alone.predict_with_variance(new).unwrap();
        let close = variance.column(target).iter().zip(&expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-9);
        assert!(close, "{variance} {expected}");
        likelihood += alone.log_marginal_likelihood();
        // No other level is likelier, and the one found is that of a process with these variances.
        let at = |factor: f64| {
            let (signal, noise) = (factor * alone.signal_variance(), factor * alone.noise_variance());
            let process = GpRegressor::new(waves::<f64>(3, 60), noise).unwrap().with_signal_variance(signal).unwrap();
            process.fit(x.view(), one).unwrap().log_marginal_likelihood()
        };
        let best = at(1.0);
        assert!((best - alone.log_marginal_likelihood()).abs() < 1e-9 * best.abs().max(300.0));
        assert!(at(0.9) < best && at(1.1) < best);
    }
    assert!((both.log_marginal_likelihood() - likelihood).abs() < 1e-9 * likelihood.abs().max(300.0));
}

#[test]
fn what_rounding_adds_to_the_matrix_is_noise() {
    // Rows equal but for their sign, in single precision: the Gram matrix has rank one, and errors far above a noise of 1e-9.
    let (n, dim) = (900, 40);
    let value = |j: usize| (j as f32 * 0.37).cos();
    let x = Array2::from_shape_fn((n, dim), |(i, j)| if i % 2 == 0 { value(j) } else { -value(j) });
    let y = Array2::from_shape_fn((n, 1), |(i, _)| (i % 2) as f32);
    let process = GpRegressor::new(columns::<f32>(dim), 1e-9).unwrap().with_normalized_targets(false);
    let model = process.fit(x.view(), y.view()).unwrap();
    let (jitter, noise) = (model.report().jitter, model.noise_variance());
    assert!(jitter > 0.0 && (noise / (1e-9 * (1.0 + jitter)) - 1.0).abs() < 1e-12, "{noise} {jitter}");
    // Where nothing was seen, the variance is that of the prior: rounding must not take from it more than it added as noise.
    let mut new = Array2::zeros((1, dim));
    (new[[0, 0]], new[[0, 1]]) = (value(1), -value(0));
    let prior = f64::from(value(0).powi(2) + value(1).powi(2));
    let (_, variance) = model.predict_with_variance(new.view()).unwrap();
    // Directions of no data have eigenvalues of B within the errors of the sums: at most 128 ε tr G / noise beside 1.
    let trace: f64 = n as f64 * (0..dim).map(|j| f64::from(value(j)).powi(2)).sum::<f64>();
    let errors = 128.0 * f64::from(f32::EPSILON) * trace / noise;
    assert!(f64::from(variance[[0, 0]]) > prior / (1.0 + errors), "{variance} of {prior}");
}
