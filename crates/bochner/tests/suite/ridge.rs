//! Ridge regression: the same answer by every road, for every way of cutting the rows.

use crate::waves::{self, close, columns, data, normals, waves};
use bochner::accumulate::Gram;
use bochner::feature::{Describe, Directions, DynMap, FeatureMap, FourierSpec};
use bochner::model::{Fit, Predict, Ridge, RidgeClassifier, RidgeModel};
use bochner::rows::{InMemory, RowBlock, RowSource};
use bochner::scalar::Real;
use bochner::solve::{ConjugateGradients, Path, Preconditioner, SolveReport, Solver, StochasticGradient};
use bochner::{Complex, Context, Error, solve};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, array, concatenate, s};

fn source<'a, R: Real>(x: &'a Array2<R>, y: &'a Array2<R>, w: Option<&'a Array1<R>>, block: usize) -> InMemory<'a, R> {
    let source = InMemory::new(x.view(), y.view()).unwrap().with_block_rows(block).unwrap();
    match w {
        Some(w) => source.with_weights(w.view()).unwrap(),
        None => source,
    }
}

fn row(v: ArrayView1<'_, f64>) -> Array2<f64> {
    v.to_owned().insert_axis(Axis(0))
}

/// Twelve rows that scikit-learn 1.9.1 was given too: `Ridge(alpha=0.7, solver="cholesky")`, float64.
fn twelve() -> (Array2<f64>, Array2<f64>, Array1<f64>) {
    let (x, y) = waves::twelve();
    (x, y, Array1::from_shape_fn(12, |i| 1.0 + (i % 4) as f64 / 2.0))
}

#[test]
fn weighted_regression_agrees_with_scikit_learn() {
    let (x, y, w) = twelve();
    let ridge = Ridge::new(columns::<f64>(3), 0.7).unwrap();
    let model = ridge.fit_stream(&mut source(&x, &y, Some(&w), 5), &mut Context::default()).unwrap();
    let coefficients = array![
        [-0.3467111731734422, -0.07585017231072178],
        [-0.17622809051978486, -0.9871552159606038],
        [-0.07853078954234051, -0.23267559821706055]
    ];
    close(model.coefficients(), coefficients.view(), 1e-13);
    close(row(model.intercept()).view(), array![[2.543506354665846, 0.1165039804602781]].view(), 1e-13);
    let expected = array![[2.075530871811903, -0.9344769546924774], [2.281946842042488, 0.40016623470260554]];
    close(model.predict(x.slice(s![..2, ..])).unwrap().view(), expected.view(), 1e-13);

    let model =
        ridge.with_intercept(false).fit_stream(&mut source(&x, &y, Some(&w), 5), &mut Context::default()).unwrap();
    let coefficients = array![
        [-0.16680415248352612, -0.06760962516812245],
        [-0.3901405431554166, -0.9969533641572279],
        [3.372907719979651, -0.07458425948870565]
    ];
    close(model.coefficients(), coefficients.view(), 1e-13);
    assert!(model.intercept().iter().all(|&b| b == 0.0));
}

#[test]
fn classification_agrees_with_scikit_learn() {
    let (x, _, _) = twelve();
    let labels = Array2::from_shape_fn((12, 1), |(i, _)| ((i / 2) % 3) as f64);
    let model = RidgeClassifier::new(Ridge::new(columns::<f64>(3), 0.7).unwrap())
        .fit_stream(&mut source(&x, &labels, None, 7), &mut Context::default())
        .unwrap();
    let coefficients = array![
        [0.9380125329521205, 0.4294814525848103, -0.3253494895963337],
        [-0.06214385759170443, -0.014336505227865604, 1.1043103327687331],
        [-0.8758686753604161, -0.41514494735694457, -0.7789608431723994]
    ];
    let intercept = array![[-0.18109167107658097, -0.8171217480674057, -0.0017865808560132423]];
    close(model.regression().coefficients().t(), coefficients.view(), 1e-13);
    close(row(model.regression().intercept()).view(), intercept.view(), 1e-13);
    assert_eq!(model.predict_classes(x.view()).unwrap(), [0, 0, 2, 1, 1, 2, 0, 0, 1, 1, 2, 2]);
    assert_eq!(model.predict(x.view()).unwrap().column(0).to_vec()[..4], [0.0, 0.0, 2.0, 1.0]);
}

fn bits<R: Real>(model: &RidgeModel<crate::waves::Waves<R>>) -> Vec<u64> {
    model.coefficients().iter().chain(model.intercept()).map(|&v| Real::to_f64(v).to_bits()).collect()
}

fn same_bits_for_any_cut<R: Real>() {
    // 2,100 rows: two full internal blocks and a rest.
    let (x, y, w) = data::<R>(2100, 4, 2);
    let ridge = Ridge::new(waves::<R>(4, 70), 1e-3).unwrap();
    let expected = ridge.fit_stream(&mut source(&x, &y, Some(&w), 2100), &mut Context::default()).unwrap();
    let predicted = expected.predict(x.view()).unwrap();
    for block in [1, 2, 7, 64, 65, 100, 1024, 1025] {
        let model = ridge.fit_stream(&mut source(&x, &y, Some(&w), block), &mut Context::default()).unwrap();
        assert_eq!(bits(&model), bits(&expected), "blocks of {block}");
        let rows = x.slice(s![..block.min(130), ..]);
        assert_eq!(model.predict(rows).unwrap(), predicted.slice(s![..block.min(130), ..]), "{block} rows");
    }
    // Another layout in memory.
    let (xf, yf) = (x.t().as_standard_layout().reversed_axes().to_owned(), y.clone());
    let fortran = Array2::from_shape_vec(ndarray::ShapeBuilder::f((2100, 4)), x.t().iter().copied().collect()).unwrap();
    assert_eq!(fortran, xf);
    assert_eq!(
        bits(&ridge.fit_stream(&mut source(&fortran, &yf, Some(&w), 99), &mut Context::default()).unwrap()),
        bits(&expected)
    );
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let model =
            pool.install(|| ridge.fit_stream(&mut source(&x, &y, Some(&w), 300), &mut Context::default()).unwrap());
        assert_eq!(bits(&model), bits(&expected), "{threads} threads");
    }
}

#[test]
fn bits_do_not_depend_on_blocks_layout_or_threads() {
    same_bits_for_any_cut::<f64>();
    same_bits_for_any_cut::<f32>();
}

fn gram<R: Real>(x: ArrayView2<'_, R>, y: ArrayView2<'_, R>, w: Option<ArrayView1<'_, R>>) -> Gram<R> {
    let mut gram = Gram::new(x.ncols(), y.ncols()).unwrap();
    gram.push(x, y, w).unwrap();
    gram
}

#[test]
fn merged_accumulators_equal_a_single_pass() {
    let (x, y, w) = data::<f64>(3000, 9, 2);
    let whole = gram(x.view(), y.view(), Some(w.view())).finish().about_zero().unwrap();
    for cut in [1, 1000, 1024, 1500, 2999] {
        let part = |r: std::ops::Range<usize>| {
            gram(x.slice(s![r.clone(), ..]), y.slice(s![r.clone(), ..]), Some(w.slice(s![r])))
        };
        let mut merged = part(0..cut);
        merged.merge(&part(cut..3000)).unwrap();
        let merged = merged.finish().about_zero().unwrap();
        assert_eq!((merged.totals.count, whole.totals.count), (3000, 3000));
        for i in 0..9 {
            for (a, b) in merged.gram.row(i).iter().zip(whole.gram.row(i)) {
                assert!((a - b).abs() < 1e-9, "cut at {cut}: {a} {b}");
            }
        }
        close(merged.cross.view(), whole.cross.view(), 1e-9);
        assert!((merged.totals.weight_sum - whole.totals.weight_sum).abs() < 1e-9);
        assert!((merged.totals.log_weight_sum - whole.totals.log_weight_sum).abs() < 1e-9);
        for j in 0..2 {
            assert!((merged.totals.target_squares[j] - whole.totals.target_squares[j]).abs() < 1e-8);
        }
    }
    let other = Gram::<f64>::new(9, 1).unwrap();
    assert!(matches!(gram(x.view(), y.view(), None).merge(&other), Err(Error::Dimension { .. })));
}

#[test]
fn a_weight_counts_like_repeated_rows() {
    let (x, y, _) = data::<f64>(60, 4, 2);
    let w = Array1::from_shape_fn(60, |i| (i % 4) as f64);
    let repeat = |a: &Array2<f64>| {
        let rows: Vec<_> = (0..60).flat_map(|i| std::iter::repeat_n(a.slice(s![i..i + 1, ..]), i % 4)).collect();
        concatenate(Axis(0), &rows).unwrap()
    };
    let ridge = Ridge::new(waves::<f64>(4, 30), 0.01).unwrap();
    let weighted = ridge.fit_stream(&mut source(&x, &y, Some(&w), 11), &mut Context::default()).unwrap();
    let repeated = ridge.fit_stream(&mut source(&repeat(&x), &repeat(&y), None, 11), &mut Context::default()).unwrap();
    close(weighted.coefficients(), repeated.coefficients(), 1e-10);
    close(row(weighted.intercept()).view(), row(repeated.intercept()).view(), 1e-10);
}

#[test]
fn single_precision_keeps_its_digits_over_many_rows() {
    // Positive features with a large mean: the case in which sums in f32 fail.
    let n = 40_000;
    let x = normals::<f32>(n, 6, 8).mapv(|v| 10.0 + v);
    let y = Array2::<f32>::ones((n, 1));
    let sums = gram(x.view(), y.view(), None).finish().about_zero().unwrap();
    for i in 0..6 {
        for j in 0..=i {
            let exact: f64 = (0..n).map(|k| f64::from(x[[k, i]]) * f64::from(x[[k, j]])).sum();
            // 256 fused steps lose at most 256 · 2⁻²⁴ of like-signed terms.
            let error = (sums.gram.row(i)[j] - exact).abs() / exact;
            assert!(error < 256.0 * 2f64.powi(-24) / 4.0, "{error:e}");
        }
    }
}

#[test]
fn complex_features_give_hermitian_sums() {
    let parts = normals::<f64>(500, 10, 4);
    let f = Array2::from_shape_fn((500, 5), |(i, j)| Complex::new(parts[[i, j]], parts[[i, j + 5]]));
    let y = normals::<f64>(500, 1, 5);
    let mut sums = Gram::<Complex<f64>>::new(5, 1).unwrap();
    sums.push(f.view(), y.view(), None).unwrap();
    let sums = sums.finish().about_zero().unwrap();
    for i in 0..5 {
        for j in 0..=i {
            let exact: Complex<f64> = (0..500).map(|k| f[[k, i]].conj() * f[[k, j]]).sum();
            assert!((sums.gram.row(i)[j] - exact).norm() < 1e-10);
        }
        let exact: Complex<f64> = (0..500).map(|k| f[[k, i]].conj() * y[[k, 0]]).sum();
        assert!((sums.cross[[i, 0]] - exact).norm() < 1e-10);
        let exact: Complex<f64> = (0..500).map(|k| f[[k, i]].conj()).sum();
        assert!((sums.feature_sums[i] - exact).norm() < 1e-10);
    }
}

#[test]
fn dependent_features_without_penalty_are_solved_with_a_reported_shift() {
    let (x, y, _) = data::<f64>(200, 4, 1);
    let doubled = concatenate(Axis(1), &[x.view(), x.view()]).unwrap();
    let single = Ridge::new(columns::<f64>(4), 0.0)
        .unwrap()
        .fit_stream(&mut source(&x, &y, None, 64), &mut Context::default())
        .unwrap();
    assert_eq!(single.report().jitter, 0.0);
    assert!(single.report().condition.unwrap() < 10.0);
    let model = Ridge::new(columns::<f64>(8), 0.0)
        .unwrap()
        .fit_stream(&mut source(&doubled, &y, None, 64), &mut Context::default())
        .unwrap();
    let report = model.report();
    assert!(report.jitter > 0.0 && report.jitter < 1e-6, "{report:?}");
    // Any split of a coefficient between the two copies predicts the same.
    close(model.predict(doubled.view()).unwrap().view(), single.predict(x.view()).unwrap().view(), 1e-4);
    assert!(model.coefficients().iter().all(|v| v.abs() < 10.0));
}

#[test]
fn constant_and_zero_features_change_nothing() {
    let (x, y, _) = data::<f64>(200, 3, 2);
    let wider =
        concatenate(Axis(1), &[x.view(), Array2::zeros((200, 1)).view(), Array2::from_elem((200, 1), 5.0).view()])
            .unwrap();
    let model = Ridge::new(columns::<f64>(3), 0.5)
        .unwrap()
        .fit_stream(&mut source(&x, &y, None, 64), &mut Context::default())
        .unwrap();
    let with = Ridge::new(columns::<f64>(5), 0.5)
        .unwrap()
        .fit_stream(&mut source(&wider, &y, None, 64), &mut Context::default())
        .unwrap();
    close(with.coefficients().slice(s![..3, ..]), model.coefficients(), 1e-10);
    assert!(with.coefficients().slice(s![3.., ..]).iter().all(|v| v.abs() < 1e-10));
    close(with.predict(wider.view()).unwrap().view(), model.predict(x.view()).unwrap().view(), 1e-10);
    // Nothing but zeros, and no penalty: the mean is all there is to say.
    let zeros = Array2::zeros((200, 2));
    let model = Ridge::new(columns::<f64>(2), 0.0)
        .unwrap()
        .fit_stream(&mut source(&zeros, &y, None, 64), &mut Context::default())
        .unwrap();
    let mean = y.mean_axis(Axis(0)).unwrap();
    close(row(model.intercept()).view(), row(mean.view()).view(), 1e-12);
}

#[test]
fn a_single_row_is_reproduced_by_the_intercept() {
    let (x, y) = (array![[1.0, -2.0]], array![[3.0, 4.0]]);
    let model = Ridge::new(columns::<f64>(2), 1.0)
        .unwrap()
        .fit_stream(&mut source(&x, &y, None, 1), &mut Context::default())
        .unwrap();
    assert!(model.coefficients().iter().all(|&v| v == 0.0));
    close(model.predict(x.view()).unwrap().view(), y.view(), 0.0);
    // Without one, x (xᵀx + 1)⁻¹ xᵀy.
    let model = Ridge::new(columns::<f64>(2), 1.0)
        .unwrap()
        .with_intercept(false)
        .fit_stream(&mut source(&x, &y, None, 1), &mut Context::default())
        .unwrap();
    close(model.predict(x.view()).unwrap().view(), array![[2.5, 4.0 * 5.0 / 6.0]].view(), 1e-14);
}

#[test]
fn what_cannot_be_fitted_is_refused_by_name() {
    let (x, y, _) = data::<f64>(20, 3, 1);
    let ridge = Ridge::new(columns::<f64>(3), 1.0).unwrap();
    let message = |r: Result<_, Error>| r.map(|_: RidgeModel<crate::waves::Columns<f64>>| ()).unwrap_err().to_string();
    let none = Array2::zeros((20, 0));
    assert_eq!(
        message(ridge.fit_stream(&mut source(&x, &none, None, 8), &mut Context::default())),
        "targets must be at least one column, got none"
    );
    let (x0, y0) = (Array2::zeros((0, 3)), Array2::zeros((0, 1)));
    assert_eq!(
        message(ridge.fit_stream(&mut source(&x0, &y0, None, 8), &mut Context::default())),
        "rows must be at least one row, got none"
    );
    let zero = Array1::zeros(20);
    assert!(
        message(ridge.fit_stream(&mut source(&x, &y, Some(&zero), 8), &mut Context::default())).contains("only zeros")
    );
    let mut negative = Array1::ones(20);
    negative[13] = -1.0;
    assert_eq!(
        message(ridge.fit_stream(&mut source(&x, &y, Some(&negative), 8), &mut Context::default())),
        "weights must be non-negative, got -1 in row 13"
    );
    let mut bad = x.clone();
    bad[[17, 1]] = f64::NAN;
    assert_eq!(
        message(ridge.fit_stream(&mut source(&bad, &y, None, 8), &mut Context::default())),
        "rows has a NaN or an infinity in row 17, column 1 (counted from 0)"
    );
    let mut bad = y.clone();
    bad[[9, 0]] = f64::INFINITY;
    assert_eq!(
        message(ridge.fit_stream(&mut source(&x, &bad, None, 8), &mut Context::default())),
        "targets has a NaN or an infinity in row 9, column 0 (counted from 0)"
    );
    let huge = x.mapv(|v| v * 1e200);
    assert!(message(ridge.fit_stream(&mut source(&huge, &y, None, 8), &mut Context::default())).contains("overflow"));
    assert!(
        message(ridge.fit_stream(&mut source(&y, &y, None, 8), &mut Context::default()))
            .contains("number of input columns is 1, expected 3")
    );
    for penalty in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(Ridge::new(columns::<f64>(3), penalty), Err(Error::Parameter { name: "penalty", .. })));
    }
    let model = ridge.fit_stream(&mut source(&x, &y, None, 8), &mut Context::default()).unwrap();
    let mut bad = normals::<f64>(200, 3, 1);
    bad[[150, 2]] = f64::NEG_INFINITY;
    let error = model.predict(bad.view()).unwrap_err();
    assert!(matches!(error, Error::NonFinite { what: "rows", row: 150, column: 2 }), "{error}");
}

#[test]
fn labels_must_be_class_numbers_and_a_single_class_is_always_predicted() {
    let (x, _, _) = data::<f64>(20, 3, 1);
    let classifier = RidgeClassifier::new(Ridge::new(columns::<f64>(3), 1.0).unwrap());
    for (value, word) in [(0.5, "0.5 in row 3"), (-1.0, "-1 in row 3"), (f64::NAN, "NaN"), (1e9, "1000000000 in row 3")]
    {
        let mut labels = Array2::zeros((20, 1));
        labels[[3, 0]] = value;
        let message = classifier
            .fit_stream(&mut source(&x, &labels, None, 8), &mut Context::default())
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(message.contains(word), "{message}");
    }
    let ones = Array2::zeros((20, 1));
    let model = classifier.fit_stream(&mut source(&x, &ones, None, 8), &mut Context::default()).unwrap();
    assert_eq!((model.classes(), model.predict_classes(x.view()).unwrap()), (1, vec![0; 20]));
    // Two classes announced, one seen.
    let model = classifier
        .clone()
        .with_classes(2)
        .unwrap()
        .fit_stream(&mut source(&x, &(ones + 1.0), None, 8), &mut Context::default())
        .unwrap();
    assert_eq!(model.predict_classes(x.view()).unwrap(), vec![1; 20]);
    let two = Array2::zeros((20, 2));
    assert!(matches!(
        classifier.fit_stream(&mut source(&x, &two, None, 8), &mut Context::default()),
        Err(Error::Dimension { .. })
    ));
}

#[test]
fn a_budget_is_respected_and_says_what_would_fit() {
    let (x, y, _) = data::<f32>(50, 4, 1);
    let map = waves::<f32>(4, 600);
    let ridge = Ridge::new(std::sync::Arc::new(map) as DynMap<f32>, 1.0).unwrap();
    let ridge = ridge.with_solver(Solver::Cholesky);
    let needed = ridge.bytes(None, 1, &Context::default()).unwrap();
    let fit = |bytes| {
        let mut context = Context::default().with_memory_budget(bytes).unwrap();
        ridge.fit_stream(&mut source(&x, &y, None, 10), &mut context)
    };
    assert!(fit(needed).is_ok());
    let error = fit(needed - 1_000_000).unwrap_err();
    let Error::Budget { needed: found, remedy, .. } = error else { panic!("{error}") };
    assert_eq!(found, needed);
    assert!(remedy.contains("features would fit"), "{remedy}");
}

#[test]
fn moments_from_elsewhere_make_the_same_model() {
    let (x, y, w) = data::<f64>(300, 4, 2);
    let map = waves::<f64>(4, 40);
    let ridge = Ridge::new(map.clone(), 0.1).unwrap();
    let direct = ridge.fit_stream(&mut source(&x, &y, Some(&w), 64), &mut Context::default()).unwrap();
    let features = map.transform(x.view()).unwrap();
    let moments = gram(features.view(), y.view(), Some(w.view())).finish();
    let (solution, report) = solve::cholesky(moments.clone(), 0.1, true).unwrap();
    assert_eq!(solution.coefficients, direct.coefficients());
    assert_eq!(report.solver, "cholesky");
    assert_eq!(bits(&ridge.fit_moments(moments).unwrap()), bits(&direct));
}

const NYSTROM: Preconditioner = Preconditioner::Nystrom(20);

fn cg(preconditioner: Preconditioner, tolerance: f64) -> Solver {
    Solver::ConjugateGradients(ConjugateGradients { tolerance: Some(tolerance), preconditioner, ..Default::default() })
}

#[test]
fn every_solver_finds_the_same_coefficients() {
    for (n, dim) in [(150, 40), (30, 60), (1100, 33)] {
        let (x, y, w) = data::<f64>(n, 4, 3);
        for intercept in [true, false] {
            let ridge = Ridge::new(waves::<f64>(4, dim), 0.05).unwrap().with_intercept(intercept);
            let fit = |solver| {
                ridge
                    .clone()
                    .with_solver(solver)
                    .fit_stream(&mut source(&x, &y, Some(&w), 64), &mut Context::default())
                    .unwrap()
            };
            let expected = fit(Solver::Cholesky);
            assert_eq!(expected.report().solver, "cholesky");
            let solvers = [
                (Solver::Dual, "dual"),
                (cg(Preconditioner::None, 1e-13), "cg"),
                (cg(Preconditioner::Diagonal, 1e-13), "cg"),
                (cg(NYSTROM, 1e-13), "cg"),
                (cg(Preconditioner::Rounded, 1e-13), "cg"),
            ];
            for (solver, name) in solvers {
                let model = fit(solver);
                assert_eq!(model.report().solver, name);
                close(model.coefficients(), expected.coefficients(), 1e-8);
                close(row(model.intercept()).view(), row(expected.intercept()).view(), 1e-8);
            }
            let penalties = [1e-3, 0.05, 7.0];
            let many: Vec<f64> = (0..15).map(|k| 0.05 * 2f64.powi(k - 3)).collect();
            for penalties in [&penalties[..], &many[..]] {
                let models =
                    ridge.fit_path(penalties, &mut source(&x, &y, Some(&w), 64), &mut Context::default()).unwrap();
                for (penalty, model) in penalties.iter().zip(models) {
                    assert_eq!(model.report().solver == "dual", n < dim);
                    let one = Ridge::new(waves::<f64>(4, dim), *penalty).unwrap().with_intercept(intercept);
                    let one = one
                        .with_solver(Solver::Cholesky)
                        .fit_stream(&mut source(&x, &y, Some(&w), 64), &mut Context::default())
                        .unwrap();
                    close(model.coefficients(), one.coefficients(), 1e-8);
                    close(row(model.intercept()).view(), row(one.intercept()).view(), 1e-8);
                }
            }
        }
    }
}

#[test]
fn iterations_in_single_precision_reach_its_precision() {
    let (x, y, w) = data::<f32>(1500, 4, 2);
    let ridge = Ridge::new(waves::<f32>(4, 64), 1.0).unwrap();
    let fit = |solver| {
        ridge
            .clone()
            .with_solver(solver)
            .fit_stream(&mut source(&x, &y, Some(&w), 100), &mut Context::default())
            .unwrap()
    };
    let exact = fit(Solver::Cholesky).predict(x.view()).unwrap();
    let rounded = cg(Preconditioner::Rounded, 1e-6);
    for solver in [cg(NYSTROM, 1e-6), cg(Preconditioner::Diagonal, 1e-6), rounded, Solver::Dual] {
        let model = fit(solver);
        assert!(model.report().residual.unwrap_or(0.0) < 1e-5, "{:?}", model.report());
        let worst = (&model.predict(x.view()).unwrap() - &exact).iter().fold(0f32, |a, v| a.max(v.abs()));
        assert!(worst < 1e-3, "{solver:?}: {worst}");
    }
}

#[test]
fn a_low_rank_model_saves_steps() {
    // Smooth waves: a steep spectrum, on which plain conjugate gradients crawl.
    let (x, y, _) = data::<f64>(600, 2, 1);
    let ridge = Ridge::new(waves::<f64>(2, 150), 1e-4).unwrap();
    let steps = |preconditioner| match ridge
        .clone()
        .with_solver(cg(preconditioner, 1e-8))
        .fit_stream(&mut source(&x, &y, None, 600), &mut Context::default())
    {
        Ok(model) => model.report().iterations,
        Err(Error::NotConverged { iterations, .. }) => iterations,
        Err(other) => panic!("{other}"),
    };
    let (plain, helped) = (steps(Preconditioner::None), steps(Preconditioner::Nystrom(60)));
    assert!(10 * helped < plain, "{helped} steps with, {plain} without");
}

#[test]
fn rounded_features_help_where_the_penalty_covers_their_error() {
    // All rows in the matrix of rounded features.
    let tiny = rounded_features_help(2500);
    // Errors of rounding far above the penalty: the steps run out, and the Gram matrix is made after all.
    assert!(tiny.solver == "cholesky" && tiny.reason.contains("were not enough"), "{tiny:?}");
    // Half of them, beside features of a byte, whose errors are a quarter of those: the steps may be enough.
    let tiny = rounded_features_help(9000);
    assert!(tiny.residual.is_none_or(|left| left < 1e-6), "{tiny:?}");
}

/// Compares solvers, and reports on a fit whose penalty is next to nothing.
fn rounded_features_help(n: usize) -> SolveReport {
    let dim = 1024;
    let (x, y, w) = data::<f32>(n, 16, 3);
    let spec = FourierSpec {
        n_components: dim,
        length_scale: 4.0.into(),
        projection: Directions::Sorf,
        ..FourierSpec::default()
    };
    let map = spec.build::<f32>(16).unwrap();
    let fit = |penalty, solver, block| {
        let ridge = Ridge::new(map.clone(), penalty).unwrap().with_solver(solver);
        ridge.fit_stream(&mut source(&x, &y, Some(&w), block), &mut Context::default()).unwrap()
    };
    let (direct, automatic) = (fit(1.0, Solver::Cholesky, 1000), fit(1.0, Solver::Auto, 1000));
    let report = automatic.report();
    assert!(report.solver == "cg" && report.iterations <= 6 && report.residual < Some(1e-6), "{report:?}");
    // |x - x'| ≤ |r|/α for a residual r of at most 1e-6 |b| with |b| = |(A + α)x'|: compared where it matters, in predictions.
    let (direct, found) = (direct.predict(x.view()).unwrap(), automatic.predict(x.view()).unwrap());
    let (off, size) = ((&direct - &found).mapv(|v| v * v).sum().sqrt(), direct.mapv(|v| v * v).sum().sqrt());
    assert!(off < 1e-4 * size, "{off} of {size}");
    // Blocks of the source change no bit.
    assert_eq!(automatic.coefficients(), fit(1.0, Solver::Auto, 77).coefficients());
    fit(1e-9, Solver::Auto, 1000).report().clone()
}

/// Counts how often a source is read.
struct Counted<S> {
    source: S,
    passes: usize,
}

impl<R: Real, S: RowSource<R>> RowSource<R> for Counted<S> {
    fn input_dim(&self) -> usize {
        self.source.input_dim()
    }

    fn target_dim(&self) -> usize {
        self.source.target_dim()
    }

    fn len_hint(&self) -> Option<usize> {
        self.source.len_hint()
    }

    fn for_each_block(&mut self, visit: &mut dyn FnMut(RowBlock<'_, R>) -> Result<(), Error>) -> Result<(), Error> {
        self.passes += 1;
        self.source.for_each_block(visit)
    }
}

#[test]
fn features_kept_in_memory_change_no_bit() {
    let (x, y, w) = data::<f64>(1300, 3, 2);
    let ridge = Ridge::new(waves::<f64>(3, 50), 0.1).unwrap();
    for solver in [cg(NYSTROM, 1e-2), Solver::StochasticGradient(StochasticGradient { passes: 2, rank: 10 })] {
        let passes = std::cell::Cell::new(0);
        let ridge = ridge.clone().with_solver(solver);
        let fit = |mut context: Context<'_>, block| {
            let mut counted = Counted { source: source(&x, &y, Some(&w), block), passes: 0 };
            let model = ridge.fit_stream(&mut counted, &mut context).unwrap();
            passes.set(counted.passes);
            model
        };
        let expected = fit(Context::default(), 1300);
        assert!(passes.get() > 3, "{}", passes.get());
        for block in [7, 100, 1030] {
            assert_eq!(bits(&fit(Context::default(), block)), bits(&expected), "blocks of {block}");
        }
        let kept = Context::default().with_memory_budget(1 << 30).unwrap();
        assert_eq!(bits(&fit(kept, 77)), bits(&expected));
        assert_eq!(passes.get(), 1);
    }
}

#[test]
fn features_kept_as_bytes_take_the_place_of_passes() {
    let (n, dim, outputs) = (3000, 2048, 3);
    let (x, y, w) = data::<f32>(n, 16, outputs);
    let spec = FourierSpec {
        n_components: dim,
        length_scale: 4.0.into(),
        projection: Directions::Sorf,
        ..FourierSpec::default()
    };
    let map = spec.build::<f32>(16).unwrap();
    let fit = |penalty, room: u64, intercept, block| {
        let mut ridge = Ridge::new(map.clone(), penalty).unwrap().with_intercept(intercept);
        ridge = ridge.with_solver(cg(Preconditioner::Nystrom(20), 1e-6));
        let budget = ridge.bytes(Some(n), outputs, &Context::default()).unwrap() + room;
        let mut counted = Counted { source: source(&x, &y, Some(&w), block), passes: 0 };
        let mut context = Context::default().with_memory_budget(budget).unwrap();
        (ridge.fit_stream(&mut counted, &mut context).unwrap(), counted.passes)
    };
    let left = |model: &RidgeModel<_>| model.report().residual.unwrap();
    // Features take 25 MB, and 6.5 MB as bytes.
    let (nothing, bytes) = (1 << 10, 12 << 20);
    for intercept in [true, false] {
        let (streamed, many) = fit(1.0, nothing, intercept, 1000);
        let (kept, few) = fit(1.0, bytes, intercept, 1000);
        assert!(2 * few < many, "{few} passes with bytes, {many} without");
        assert!(left(&kept) <= 1e-6, "{:?}", kept.report());
        let (streamed, found) = (streamed.predict(x.view()).unwrap(), kept.predict(x.view()).unwrap());
        let (off, size) = ((&streamed - &found).mapv(|v| v * v).sum().sqrt(), streamed.mapv(|v| v * v).sum().sqrt());
        assert!(off < 1e-4 * size, "{off} of {size}");
        // Blocks of the source change no bit.
        assert_eq!(kept.coefficients(), fit(1.0, bytes, intercept, 77).0.coefficients());
    }
    // Errors of rounding far above the penalty: the iteration still ends within the precision of the products.
    let (kept, _) = fit(1e-3, bytes, true, 1000);
    assert!(left(&kept) <= 1e3 * f64::from(f32::EPSILON), "{:?}", kept.report());
}

#[test]
fn stochastic_gradients_come_close_in_a_few_passes() {
    let (x, y, w) = data::<f32>(6000, 3, 2);
    let ridge = Ridge::new(waves::<f32>(3, 80), 1.0).unwrap();
    let fit = |solver| {
        ridge
            .clone()
            .with_solver(solver)
            .fit_stream(&mut source(&x, &y, Some(&w), 500), &mut Context::default())
            .unwrap()
    };
    let exact = fit(Solver::Cholesky).predict(x.view()).unwrap();
    let model = fit(Solver::StochasticGradient(StochasticGradient { passes: 10, rank: 40 }));
    let report = model.report();
    assert!(report.residual.unwrap() < 1e-2, "{report:?}");
    let difference = &model.predict(x.view()).unwrap() - &exact;
    let (error, spread) = (difference.mapv(|v| v * v).mean().unwrap(), exact.var(0.0));
    assert!(error < 1e-2 * spread, "{error} of {spread}");
    // Without help it still descends.
    let model = fit(Solver::StochasticGradient(StochasticGradient { passes: 10, rank: 0 }));
    assert!(model.report().residual.unwrap() < 0.5, "{:?}", model.report());
}

#[test]
fn iterations_that_cannot_finish_say_so() {
    let (x, y, _) = data::<f64>(300, 3, 1);
    let options =
        ConjugateGradients { max_iterations: 2, preconditioner: Preconditioner::None, tolerance: Some(1e-12) };
    let ridge = Ridge::new(waves::<f64>(3, 50), 1e-6).unwrap().with_solver(Solver::ConjugateGradients(options));
    let error = ridge.fit_stream(&mut source(&x, &y, None, 64), &mut Context::default()).unwrap_err();
    assert!(matches!(error, Error::NotConverged { iterations: 2, .. }), "{error}");
    for bad in [f64::NAN, 0.0, -1.0] {
        let solver = cg(Preconditioner::None, bad);
        assert!(
            ridge
                .clone()
                .with_solver(solver)
                .fit_stream(&mut source(&x, &y, None, 64), &mut Context::default())
                .is_err()
        );
    }
}

#[test]
fn degenerate_data_are_survived_by_every_solver() {
    let solvers = [
        Solver::Auto,
        Solver::Cholesky,
        Solver::Dual,
        cg(NYSTROM, 1e-8),
        cg(Preconditioner::Diagonal, 1e-8),
        cg(Preconditioner::Rounded, 1e-8),
        Solver::StochasticGradient(StochasticGradient::default()),
    ];
    let (x, y, _) = data::<f64>(40, 2, 2);
    let doubled = concatenate(Axis(1), &[x.view(), x.view(), Array2::zeros((40, 1)).view()]).unwrap();
    let constant = Array2::from_elem((40, 5), 2.0);
    let (x1, y1) = (doubled.slice(s![..1, ..]).to_owned(), y.slice(s![..1, ..]).to_owned());
    let (x0, y0) = (doubled.slice(s![..0, ..]).to_owned(), y.slice(s![..0, ..]).to_owned());
    let level = Array2::from_elem((40, 2), 7.0);
    for solver in solvers {
        for penalty in [0.0, 1e-3] {
            for intercept in [true, false] {
                let ridge =
                    Ridge::new(columns::<f64>(5), penalty).unwrap().with_solver(solver).with_intercept(intercept);
                for (x, y) in [(&doubled, &y), (&constant, &y), (&x1, &y1), (&doubled, &level)] {
                    match ridge.fit_stream(&mut source(x, y, None, 16), &mut Context::default()) {
                        Ok(model) => {
                            let predicted = model.predict(x.view()).unwrap();
                            assert!(predicted.iter().all(|v| v.abs() < 1e3), "{solver:?} {penalty} {intercept}");
                        }
                        Err(Error::NotPositiveDefinite { .. } | Error::NotConverged { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                let error = ridge.fit_stream(&mut source(&x0, &y0, None, 16), &mut Context::default()).unwrap_err();
                assert!(error.to_string().contains("rows must be at least one row"), "{solver:?}: {error}");
            }
        }
    }
}

#[test]
fn validation_takes_the_penalty_with_the_smallest_loss() {
    let (x, y, w) = data::<f64>(400, 3, 2);
    let (train, held) = (0..300, 300..400);
    let part = |a: &Array2<f64>, r: &std::ops::Range<usize>| a.slice(s![r.clone(), ..]).to_owned();
    let (xt, yt, xh, yh) = (part(&x, &train), part(&y, &train), part(&x, &held), part(&y, &held));
    let (wt, wh) = (w.slice(s![train]).to_owned(), w.slice(s![held]).to_owned());
    let penalties = [1e-8, 1e-2, 1.0, 1e6];
    let ridge = Ridge::new(waves::<f64>(3, 60), 123.0).unwrap();
    let found = ridge
        .validate(
            &penalties,
            &mut source(&xt, &yt, Some(&wt), 50),
            &mut source(&xh, &yh, Some(&wh), 33),
            &mut Context::default(),
        )
        .unwrap();
    for (k, &penalty) in penalties.iter().enumerate() {
        let one = Ridge::new(waves::<f64>(3, 60), penalty).unwrap().with_solver(Solver::Cholesky);
        let predicted = one
            .fit_stream(&mut source(&xt, &yt, Some(&wt), 50), &mut Context::default())
            .unwrap()
            .predict(xh.view())
            .unwrap();
        let squares = (&predicted - &yh).mapv(|v| v * v).mean_axis(Axis(1)).unwrap();
        let loss = (&squares * &wh).sum() / wh.sum();
        assert!((found.losses[k] - loss).abs() < 1e-6 * loss, "{k}: {} {loss}", found.losses[k]);
        assert!(found.losses[found.best] <= found.losses[k]);
    }
    assert!(found.best == 1 || found.best == 2);
    assert!(
        ridge
            .validate(&[], &mut source(&xt, &yt, None, 50), &mut source(&xh, &yh, None, 33), &mut Context::default())
            .is_err()
    );

    let labels = |y: &Array2<f64>| {
        y.slice(s![.., ..1]).mapv(|v| {
            if v > 3.5 {
                2.0
            } else if v > 2.5 {
                1.0
            } else {
                0.0
            }
        })
    };
    let (lt, lh) = (labels(&yt), labels(&yh));
    let classifier = RidgeClassifier::new(ridge);
    let found = classifier
        .validate(&penalties, &mut source(&xt, &lt, None, 50), &mut source(&xh, &lh, None, 33), &mut Context::default())
        .unwrap();
    let predicted = found.model.predict_classes(xh.view()).unwrap();
    let wrong = predicted.iter().zip(&lh).filter(|(p, l)| **p as f64 != **l).count();
    assert_eq!(found.losses[found.best], wrong as f64 / 100.0);
    assert!(found.losses[found.best] < 0.3 && found.losses[3] > found.losses[found.best]);
}

#[test]
fn a_path_without_penalty_leaves_out_what_it_cannot_see() {
    let (x, y, _) = data::<f64>(100, 3, 1);
    let doubled = concatenate(Axis(1), &[x.view(), x.view()]).unwrap();
    let path = Path::new(gram(doubled.view(), y.view(), None).finish(), true).unwrap();
    let (solution, _) = path.solution(0.0).unwrap();
    // The shortest solution shares every coefficient equally between the copies.
    close(solution.coefficients.slice(s![..3, ..]), solution.coefficients.slice(s![3.., ..]), 1e-10);
    let single = Path::new(gram(x.view(), y.view(), None).finish(), true).unwrap().solution(0.0).unwrap().0;
    close((&solution.coefficients * 2.0).slice(s![..3, ..]), single.coefficients.view(), 1e-10);
    assert_eq!(path.eigenvalues().len(), 6);
}

#[test]
fn the_automatic_choice_is_named_and_explained() {
    let (x, y, _) = data::<f64>(50, 3, 1);
    let fit = |dim: usize, budget: Option<u64>| {
        let ridge = Ridge::new(waves::<f64>(3, dim), 0.1).unwrap();
        let mut context = match budget {
            Some(bytes) => Context::default().with_memory_budget(bytes).unwrap(),
            None => Context::default(),
        };
        ridge.fit_stream(&mut source(&x, &y, None, 20), &mut context).unwrap().report().clone()
    };
    let report = fit(20, None);
    assert_eq!(report.solver, "cholesky");
    assert!(report.reason.contains("20 features fits"), "{}", report.reason);
    let report = fit(80, None);
    assert_eq!(report.solver, "dual");
    assert!(report.reason.contains("50 rows are fewer than 80 features"), "{}", report.reason);
}

/// Rows of two categories, eight of one and twenty of the other, all of them repeated; targets follow both.
fn categories(n: usize) -> (Array2<f32>, Array2<f32>) {
    let pair = |i: usize| ((i * 5 + i / 7) % 8, (i * 11 + i / 3) % 20);
    let x = Array2::from_shape_fn((n, 28), |(i, j)| {
        let (brand, city) = pair(i % 160);
        f32::from(j == brand || j == 8 + city)
    });
    let y = Array2::from_shape_fn((n, 1), |(i, _)| {
        let (brand, city) = pair(i % 160);
        brand as f32 - 3.5 + 0.3 * (city as f32 - 9.5)
    });
    (x, y)
}

#[test]
fn tables_of_categories_are_fitted_with_penalties_below_the_rounding_of_their_sums() {
    // Length scales beyond the distances of rows: centring leaves a small part of the features, and all of what single
    // precision took from their sums.
    let penalties = [1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
    let check = |model: &RidgeModel<DynMap<f32>>, penalty: f64, x: &Array2<f32>, y: &Array2<f32>| {
        let residual = model.predict(x.view()).unwrap() - y;
        let squares: f64 = residual.iter().map(|v| f64::from(*v).powi(2)).sum();
        assert!(squares.is_finite());
        let mean = y.iter().map(|v| f64::from(*v)).sum::<f64>() / y.len() as f64;
        let spread: f64 = y.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum();
        // Rows of features have length 1, so that no eigenvalue is off by more than 128 ε n. What is above that leaves the
        // minimum below the loss of the mean alone; residuals are rounded by ε/2.
        let errors = 128.0 * f64::from(f32::EPSILON) * x.nrows() as f64;
        if penalty + model.report().jitter >= errors {
            let rounded = 1.0 + 8.0 * f64::from(f32::EPSILON);
            assert!(squares <= spread * rounded, "{penalty} {:?}: {squares} of {spread}", model.report());
        }
    };
    let (x, y) = categories(320);
    let few = (x.slice(s![..200, ..]).to_owned(), y.slice(s![..200, ..]).to_owned());
    for (seed, scale) in [(0, 6.0), (1, 24.0), (2, 96.0), (3, 24.0)] {
        let spec = FourierSpec { n_components: 256, length_scale: scale.into(), seed, ..FourierSpec::default() };
        let map = spec.build::<f32>(28).unwrap();
        let path = Ridge::new(map.clone(), 1.0)
            .unwrap()
            .fit_path(&penalties, &mut source(&x, &y, None, 100), &mut Context::default())
            .unwrap();
        for (penalty, model) in penalties.into_iter().zip(&path) {
            check(model, penalty, &x, &y);
            let dual = Ridge::new(map.clone(), penalty).unwrap().with_solver(Solver::Dual);
            check(
                &dual.fit_stream(&mut source(&few.0, &few.1, None, 100), &mut Context::default()).unwrap(),
                penalty,
                &few.0,
                &few.1,
            );
        }
    }
}
