//! Operator-valued features and the models on them, against closed forms, dense solves and differences.

use crate::statistics::normal_quantile;
use bochner::Context;
use bochner::feature::{Describe, Directions, FeatureMap, OperatorFeatures, OperatorSpec};
use bochner::kernel::{FieldKernel, Gaussian, Matern, OperatorKernel, OutputMatrix};
use bochner::model::{
    ExactOperatorRidge, Fit, Fitted, Model, OperatorRidge, OperatorRidgeClassifier, OperatorRidgeModel, OperatorSolver,
    Predict, Ridge, target_covariance,
};
use bochner::persist::Stored;
use bochner::preprocess::LengthScale;
use bochner::random::{Role, Seed, Stream};
use bochner::rows::{Coding, InMemory, Lagged};
use bochner::solve::{ConjugateGradients, StochasticGradient};
use ndarray::{Array2, Array4, Axis, array, concatenate, s};

const ALPHA: f64 = 1e-6;

fn normals(n: usize, d: usize, index: u64) -> Array2<f64> {
    let mut values = vec![0.0; n * d];
    Stream::new(Seed::new(11), Role::Noise, index).normals_from(0, &mut values);
    Array2::from_shape_vec((n, d), values).unwrap()
}

fn outputs() -> OutputMatrix {
    OutputMatrix::new(array![[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]].view()).unwrap()
}

fn decomposable(scale: f64) -> OperatorKernel {
    OperatorKernel::decomposable(Gaussian::new(scale).unwrap().into(), outputs()).unwrap()
}

/// A field with one length scale for each input.
fn stretched(curl_free: f64, d: usize) -> FieldKernel {
    let scales = (0..d).map(|i| (1.0 + 0.3 * i as f64) * (d as f64).sqrt()).collect();
    FieldKernel::new(curl_free).with_length_scale(LengthScale::PerInput(scales))
}

fn spec(kernel: OperatorKernel, n_components: usize, seed: u64) -> OperatorSpec {
    OperatorSpec { n_components, seed, projection: Directions::Gaussian, ..OperatorSpec::new(kernel) }
}

/// `x` with `a x = b`, by elimination with pivots: a plain road to the same numbers.
fn solve(mut a: Array2<f64>, mut b: Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[[i, k]].abs().total_cmp(&a[[j, k]].abs())).unwrap();
        for j in 0..n {
            a.swap([k, j], [pivot, j]);
        }
        for j in 0..b.ncols() {
            b.swap([k, j], [pivot, j]);
        }
        for i in 0..n {
            if i != k {
                let factor = a[[i, k]] / a[[k, k]];
                let (row, side) = (a.row(k).to_owned(), b.row(k).to_owned());
                a.row_mut(i).scaled_add(-factor, &row);
                b.row_mut(i).scaled_add(-factor, &side);
            }
        }
    }
    for i in 0..n {
        let pivot = a[[i, i]];
        b.row_mut(i).mapv_inplace(|v| v / pivot);
    }
    b
}

/// Rows `(i, a)` of all `Φ(xᵢ)ᵀ`, one column per parameter: what the library never makes.
fn explicit(features: &OperatorFeatures<f64>, rows: &Array2<f64>) -> Array2<f64> {
    let p = features.output_dim();
    let mut out = Array2::zeros((rows.nrows() * p, features.dim()));
    for j in 0..features.dim() {
        let mut unit = Array2::zeros((features.dim(), 1));
        unit[[j, 0]] = 1.0;
        let image = features.apply(rows.view(), unit.view()).unwrap();
        out.column_mut(j).assign(&image.into_iter().collect::<ndarray::Array1<_>>());
    }
    out
}

fn close(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    assert_eq!(a.dim(), b.dim());
    let size = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let error = (a - b).iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    assert!(error <= tolerance * size, "off by {error:.2e} of {size:.2e}");
}

/// A potential and its gradient in `d` dimensions: three bumps.
fn gradient_field(rows: &Array2<f64>) -> Array2<f64> {
    let d = rows.ncols();
    let centres = normals(3, d, 99);
    Array2::from_shape_fn(rows.dim(), |(i, a)| {
        (0..3)
            .map(|c| {
                let delta = &rows.row(i) - &centres.row(c);
                let weight = [1.0, -1.5, 2.0][c];
                -weight * delta[a] * (-0.5 * delta.dot(&delta) / 2.0).exp()
            })
            .sum()
    })
}

#[test]
fn estimates_have_the_mean_and_the_matrix_variance_of_the_closed_forms() {
    let (seeds, n_components) = (400, 48);
    for d in [1, 2, 3, 5] {
        let scale = 1.3 * (d as f64).sqrt();
        let matern = Matern::new(2.5, scale).unwrap().into();
        let kernels = [
            OperatorKernel::curl_free(scale).unwrap(),
            OperatorKernel::div_free(scale).unwrap(),
            OperatorKernel::helmholtz(scale, 0.4).unwrap(),
            decomposable(scale),
            OperatorKernel::decomposable(matern, outputs()).unwrap(),
            stretched(0.4, d).build().unwrap(),
            // Squares of estimates need eighth moments of the spectrum for their own variance.
            stretched(0.7, d).with_matern(9.5).build().unwrap(),
        ];
        let (x, z) = (normals(2, d, 1), normals(2, d, 2));
        for (number, kernel) in kernels.into_iter().enumerate() {
            let exact: Array4<f64> = kernel.matrix(x.view(), z.view()).unwrap();
            let variance = spec(kernel.clone(), n_components, 0).variance(x.view(), z.view()).unwrap();
            let p = kernel.output_dim(d);
            let mut errors: Vec<Array4<f64>> = Vec::new();
            for seed in 0..seeds {
                let features = spec(kernel.clone(), n_components, 1000 * number as u64 + seed).build::<f64>(d).unwrap();
                errors.push(features.estimate(x.view(), z.view()).unwrap() - &exact);
            }
            let comparisons = (2 * 4 * 7 * 4 * p * p) as f64;
            let quantile = normal_quantile(1.0 - ALPHA / (2.0 * comparisons));
            let count = seeds as f64;
            for (i, j) in [(0usize, 0usize), (0, 1), (1, 0), (1, 1)] {
                let v = variance.slice(s![i, j, .., ..]);
                let squares: Vec<Array2<f64>> = errors
                    .iter()
                    .map(|error| {
                        let block = error.slice(s![i, j, .., ..]);
                        block.dot(&block)
                    })
                    .collect();
                for a in 0..p {
                    for b in 0..p {
                        let mean = errors.iter().map(|e| e[[i, j, a, b]]).sum::<f64>() / count;
                        // The variance of an entry is part of a sum of squares along its row.
                        let most = v[[a, a]].max(0.0);
                        assert!(mean.abs() <= quantile * (most / count).sqrt() + 1e-14, "{kernel:?}: {mean}, {most}");
                        let mean = squares.iter().map(|e| e[[a, b]]).sum::<f64>() / count;
                        let spread = squares.iter().map(|e| (e[[a, b]] - mean).powi(2)).sum::<f64>() / (count - 1.0);
                        let bound = quantile * (spread / count).sqrt() + 1e-14;
                        assert!((mean - v[[a, b]]).abs() <= bound, "{kernel:?}: {mean}, {}", v[[a, b]]);
                    }
                }
            }
        }
    }
}

#[test]
fn structured_projections_estimate_the_same_kernel() {
    let (x, z) = (normals(3, 6, 1), normals(3, 6, 2));
    let kernel = OperatorKernel::helmholtz(4.0, 0.5).unwrap();
    let exact: Array4<f64> = kernel.matrix(x.view(), z.view()).unwrap();
    for projection in [Directions::Auto, Directions::Orthogonal, Directions::Sorf] {
        let spec = OperatorSpec { projection, ..spec(kernel.clone(), 8000, 3) };
        let error = spec.build::<f64>(6).unwrap().estimate(x.view(), z.view()).unwrap() - &exact;
        let variance = spec.variance(x.view(), z.view()).unwrap();
        // Hadamard chains are biased by about 1/d'.
        let bias = if projection == Directions::Sorf { 0.15 } else { 0.0 };
        for ((i, j, a, b), error) in error.indexed_iter() {
            let most = variance[[i, j, a, a]].sqrt();
            assert!(
                error.abs() <= 6.0 * most + bias * exact[[0, 0, 0, 0]].abs(),
                "{projection:?} {a} {b}: {error}, {most}"
            );
        }
    }
}

#[test]
fn single_precision_features_are_the_rounded_double_ones() {
    let spec = spec(OperatorKernel::curl_free(1.0).unwrap(), 64, 5);
    let x = normals(20, 3, 1);
    let theta = normals(64, 1, 2);
    let double = spec.build::<f64>(3).unwrap().apply(x.view(), theta.view()).unwrap();
    let single = spec.build::<f32>(3).unwrap().apply(x.mapv(|v| v as f32).view(), theta.view()).unwrap();
    close(&single, &double, 1e-5);
}

#[test]
fn products_with_features_and_their_adjoint_agree() {
    let x = normals(7, 3, 1);
    for kernel in
        [OperatorKernel::curl_free(1.0).unwrap(), OperatorKernel::helmholtz(1.0, 0.3).unwrap(), decomposable(1.0)]
    {
        let features = spec(kernel, 20, 1).build::<f64>(3).unwrap();
        let (theta, r) = (normals(features.dim(), 1, 2), normals(7, 3, 3));
        let forward = (&features.apply(x.view(), theta.view()).unwrap() * &r).sum();
        let back = (&features.apply_adjoint(x.view(), r.view()).unwrap() * &theta).sum();
        assert!((forward - back).abs() < 1e-12 * forward.abs().max(1.0));
        // The gradient of |Φᵀθ - y|²/2 is ΦΦᵀθ - Φy: against differences of the loss.
        let loss = |theta: &Array2<f64>| {
            let error = features.apply(x.view(), theta.view()).unwrap() - &r;
            0.5 * error.iter().map(|e| e * e).sum::<f64>()
        };
        let error = features.apply(x.view(), theta.view()).unwrap() - &r;
        let gradient = features.apply_adjoint(x.view(), error.view()).unwrap();
        for j in [0, features.dim() / 2, features.dim() - 1] {
            let step = |h: f64| {
                let mut moved = theta.clone();
                moved[[j, 0]] += h;
                loss(&moved)
            };
            let slope = (step(1e-5) - step(-1e-5)) / 2e-5;
            assert!((slope - gradient[[j, 0]]).abs() < 1e-7 * (1.0 + slope.abs()), "{slope}");
        }
        assert!(features.apply(x.view(), theta.slice(s![1.., ..])).is_err());
        assert!(features.apply_adjoint(x.view(), r.slice(s![1.., ..])).is_err());
    }
}

#[test]
fn every_solver_finds_the_solution_of_the_vectorised_problem() {
    let (n, d) = (60, 3);
    let (x, y) = (normals(n, d, 1), normals(n, d, 2));
    let penalty = 0.3;
    for kernel in [
        OperatorKernel::curl_free(1.5).unwrap(),
        OperatorKernel::div_free(1.5).unwrap(),
        OperatorKernel::helmholtz(1.5, 0.3).unwrap(),
        decomposable(1.5),
    ] {
        let features = spec(kernel.clone(), 24, 1).build::<f64>(d).unwrap();
        let phi = explicit(&features, &x);
        let side = Array2::from_shape_vec((n * d, 1), y.iter().copied().collect()).unwrap();
        let normal = phi.t().dot(&phi) + penalty * Array2::<f64>::eye(features.dim());
        let theta = solve(normal, phi.t().dot(&side));
        let expected = features.apply(x.view(), theta.view()).unwrap();
        let tight = ConjugateGradients { tolerance: Some(1e-12), ..ConjugateGradients::default() };
        let mut solvers = vec![
            (OperatorSolver::Auto, 1e-10, None),
            (OperatorSolver::Cholesky, 1e-10, None),
            (OperatorSolver::ConjugateGradients(tight), 1e-9, None),
            (OperatorSolver::ConjugateGradients(tight), 1e-9, Some(1)),
            (OperatorSolver::StochasticGradient(StochasticGradient { passes: 300, rank: 30 }), 2e-2, None),
        ];
        if kernel.decomposed().is_some() {
            solvers.push((OperatorSolver::Stein, 1e-10, None));
        }
        for (solver, tolerance, budget) in solvers {
            let mut ridge = OperatorRidge::new(features.clone(), penalty).unwrap().with_intercept(false);
            ridge = ridge.with_solver(solver).unwrap();
            let context = Context::default();
            let mut context = match budget {
                Some(bytes) => context.with_memory_budget(bytes).unwrap(),
                None => context,
            };
            let mut source = InMemory::new(x.view(), y.view()).unwrap().with_block_rows(17).unwrap();
            let model = ridge.fit_stream(&mut source, &mut context).unwrap();
            close(&model.predict(x.view()).unwrap(), &expected, tolerance);
        }
        let ridge = OperatorRidge::new(features.clone(), penalty).unwrap();
        let refused = ridge.with_solver(OperatorSolver::Cholesky).unwrap();
        let mut source = InMemory::new(x.view(), y.view()).unwrap();
        assert!(refused.fit_stream(&mut source, &mut Context::default().with_memory_budget(1).unwrap()).is_err());
    }
}

#[test]
fn intercepts_and_weights_enter_as_repeated_rows_and_shifted_targets_do() {
    let (x, y) = (normals(40, 2, 1), normals(40, 2, 2));
    for kernel in [OperatorKernel::curl_free(1.5).unwrap(), OperatorKernel::helmholtz(1.5, 0.3).unwrap()] {
        let ridge = OperatorRidge::new(spec(kernel, 20, 1).build::<f64>(2).unwrap(), 0.1).unwrap();
        let model = ridge.fit(x.view(), y.view()).unwrap();
        let moved = &y + &array![[5.0, -3.0]];
        let shifted = ridge.fit(x.view(), moved.view()).unwrap();
        close(&shifted.predict(x.view()).unwrap(), &(model.predict(x.view()).unwrap() + array![[5.0, -3.0]]), 1e-10);
        let twice = |a: &Array2<f64>| concatenate(Axis(0), &[a.view(), a.slice(s![..10, ..])]).unwrap();
        let (more, sides) = (twice(&x), twice(&y));
        let repeated = ridge.fit(more.view(), sides.view()).unwrap();
        let weights: ndarray::Array1<f64> = (0..40).map(|i| if i < 10 { 2.0 } else { 1.0 }).collect();
        let mut source = InMemory::new(x.view(), y.view()).unwrap().with_weights(weights.view()).unwrap();
        let weighted = ridge.fit_stream(&mut source, &mut Context::default()).unwrap();
        close(&weighted.predict(x.view()).unwrap(), &repeated.predict(x.view()).unwrap(), 1e-10);
    }
}

#[test]
fn an_identity_between_outputs_is_independent_ridge_regression() {
    let (x, y) = (normals(80, 4, 1), normals(80, 3, 2));
    let identity = OutputMatrix::identity(3).unwrap();
    let kernel = OperatorKernel::decomposable(Gaussian::new(2.0).unwrap().into(), identity).unwrap();
    let spec = spec(kernel, 32, 1);
    let model = OperatorRidge::new(spec.build::<f64>(4).unwrap(), 0.2).unwrap();
    let model = model.fit(x.view(), y.view()).unwrap();
    let ridge = Ridge::new(spec.fourier().unwrap().build::<f64>(4).unwrap(), 0.2).unwrap();
    let ridge = ridge.fit(x.view(), y.view()).unwrap();
    close(&model.predict(x.view()).unwrap(), &ridge.predict(x.view()).unwrap(), 1e-10);
    // Outputs that share everything: the mean of the targets, predicted thrice.
    let ones = OutputMatrix::new(Array2::ones((3, 3)).view()).unwrap();
    let kernel = OperatorKernel::decomposable(Gaussian::new(2.0).unwrap().into(), ones).unwrap();
    let shared = OperatorSpec { kernel, ..spec }.build::<f64>(4).unwrap();
    let shared = OperatorRidge::new(shared, 0.2).unwrap().with_intercept(false);
    let shared = shared.fit(x.view(), y.view()).unwrap();
    let values = shared.predict(x.view()).unwrap();
    assert!(values.rows().into_iter().all(|row| (row[0] - row[1]).abs() < 1e-12 && (row[0] - row[2]).abs() < 1e-12));
}

#[test]
fn many_penalties_at_once_are_those_one_by_one() {
    let (x, y) = (normals(90, 3, 1), normals(90, 3, 2));
    let penalties: Vec<f64> = (0..14).map(|k| 1e-4 * 10f64.powf(0.5 * k as f64)).collect();
    for kernel in [decomposable(1.5), OperatorKernel::curl_free(1.5).unwrap()] {
        let features = spec(kernel, 40, 1).build::<f64>(3).unwrap();
        let ridge = OperatorRidge::new(features.clone(), 1.0).unwrap();
        for chosen in [&penalties[..], &penalties[3..6]] {
            let path = ridge
                .fit_path(chosen, &mut InMemory::new(x.view(), y.view()).unwrap(), &mut Context::default())
                .unwrap();
            for (penalty, model) in chosen.iter().zip(&path) {
                let one = OperatorRidge::new(features.clone(), *penalty).unwrap();
                let one = one.fit(x.view(), y.view()).unwrap();
                close(&model.predict(x.view()).unwrap(), &one.predict(x.view()).unwrap(), 1e-8);
            }
        }
    }
}

#[test]
fn fitted_fields_have_no_curl_or_no_divergence_and_exact_derivatives() {
    for d in [2, 3, 5] {
        let (x, points) = (normals(200, d, 1), normals(10, d, 3));
        let y = gradient_field(&x);
        for (kernel, curl, divergence) in [
            (OperatorKernel::curl_free(2.0).unwrap(), true, false),
            (OperatorKernel::div_free(2.0).unwrap(), false, true),
        ] {
            let spec = OperatorSpec { n_components: 60, seed: 4, ..OperatorSpec::new(kernel) };
            let model = OperatorRidge::new(spec.build::<f64>(d).unwrap(), 1e-6).unwrap();
            let model = model.fit(x.view(), y.view()).unwrap();
            let jacobian = model.jacobian(points.view()).unwrap();
            for (i, block) in jacobian.outer_iter().enumerate() {
                for a in 0..d {
                    for b in 0..d {
                        let mut moved = concatenate(Axis(0), &[points.slice(s![i..=i, ..]); 2]).unwrap();
                        moved[[0, b]] += 1e-5;
                        moved[[1, b]] -= 1e-5;
                        let values = model.predict(moved.view()).unwrap();
                        let slope = (values[[0, a]] - values[[1, a]]) / 2e-5;
                        assert!(
                            (slope - block[[a, b]]).abs() < 1e-5 * (1.0 + slope.abs()),
                            "{slope} {}",
                            block[[a, b]]
                        );
                        if curl {
                            assert!((block[[a, b]] - block[[b, a]]).abs() < 1e-8);
                        }
                    }
                }
                if divergence {
                    assert!(block.diag().sum().abs() < 1e-8);
                }
            }
            let size = jacobian.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            assert!(size > 1e-2, "a constant would have passed");
        }
    }
}

#[test]
fn exact_regression_solves_the_block_system_and_features_approach_it() {
    let (n, d) = (40, 3);
    let x = normals(n, d, 1);
    let y = gradient_field(&x);
    let points = normals(15, d, 3);
    for kernel in [
        OperatorKernel::curl_free(1.5).unwrap(),
        OperatorKernel::div_free(1.5).unwrap(),
        OperatorKernel::helmholtz(1.5, 0.6).unwrap(),
        decomposable(1.5),
    ] {
        let k: Array4<f64> = kernel.matrix(x.view(), x.view()).unwrap();
        let flat = |k: &Array4<f64>| {
            let (n, m, p, _) = k.dim();
            Array2::from_shape_fn((n * p, m * p), |(r, c)| k[[r / p, c / p, r % p, c % p]])
        };
        let side = Array2::from_shape_vec((n * d, 1), y.iter().copied().collect()).unwrap();
        let dual = solve(flat(&k) + 0.05 * Array2::<f64>::eye(n * d), side);
        let across: Array4<f64> = kernel.matrix(points.view(), x.view()).unwrap();
        let expected = flat(&across).dot(&dual).into_shape_with_order((15, d)).unwrap();
        let exact = ExactOperatorRidge::new(kernel.clone(), 0.05).unwrap();
        let model = exact.fit(x.view(), y.view()).unwrap();
        close(&model.predict(points.view()).unwrap(), &expected, 1e-10);
        let tight = ConjugateGradients { tolerance: Some(1e-11), ..ConjugateGradients::default() };
        let iterated = exact.with_conjugate_gradients(tight).fit(x.view(), y.view()).unwrap();
        close(&iterated.predict(points.view()).unwrap(), &expected, 1e-8);
        // Features: with 25 times as many the error should be a fifth.
        let error = |n_components: usize| {
            let ridge =
                OperatorRidge::new(spec(kernel.clone(), n_components, 2).build::<f64>(d).unwrap(), 0.05).unwrap();
            let model = ridge.with_intercept(false).fit(x.view(), y.view()).unwrap();
            let difference = model.predict(points.view()).unwrap() - &expected;
            (difference.iter().map(|v| v * v).sum::<f64>() / expected.iter().map(|v| v * v).sum::<f64>()).sqrt()
        };
        let (few, many) = (error(40), error(1000));
        assert!(many < 0.5 * few, "{kernel:?}: {few}, {many}");
    }
}

fn r2(values: &Array2<f64>, targets: &Array2<f64>) -> f64 {
    let mean = targets.mean_axis(Axis(0)).unwrap();
    let residual: f64 = (values - targets).iter().map(|v| v * v).sum();
    1.0 - residual / (targets - &mean).iter().map(|v| v * v).sum::<f64>()
}

/// R2 of curl-free and of independent outputs on the 5-D field, at the best of the same penalties.
fn compare(n: usize, n_components: usize) -> (f64, f64) {
    let (x, test) = (normals(n, 5, 1), normals(1000, 5, 2));
    let y = gradient_field(&x) + 0.1 * normals(n, 5, 3);
    let truth = gradient_field(&test);
    let penalties: Vec<f64> = (-6..4).map(|k| 10f64.powi(k)).collect();
    let identity = OutputMatrix::identity(5).unwrap();
    let score = |kernel: OperatorKernel| {
        let ridge = OperatorRidge::new(spec(kernel, n_components, 1).build::<f64>(5).unwrap(), 1.0).unwrap();
        let path = ridge
            .fit_path(&penalties, &mut InMemory::new(x.view(), y.view()).unwrap(), &mut Context::default())
            .unwrap();
        path.iter().map(|model| r2(&model.predict(test.view()).unwrap(), &truth)).fold(f64::MIN, f64::max)
    };
    let independent = OperatorKernel::decomposable(Gaussian::new(2.0).unwrap().into(), identity).unwrap();
    (score(OperatorKernel::curl_free(2.0).unwrap()), score(independent))
}

#[test]
fn knowing_that_a_field_is_a_gradient_helps() {
    for n in [100, 1000] {
        let (curl_free, independent) = compare(n, 300);
        assert!(curl_free > independent, "{n} rows: {curl_free}, {independent}");
    }
}

#[test]
#[ignore = "half a minute"]
fn knowing_that_a_field_is_a_gradient_helps_up_to_ten_thousand_rows() {
    for n in [100, 300, 1000, 3000, 10_000] {
        let (curl_free, independent) = compare(n, 1000);
        println!("{n} rows: curl-free R2 {curl_free:.5}, independent outputs {independent:.5}");
        assert!(curl_free > independent, "{n} rows: {curl_free}, {independent}");
    }
}

#[test]
fn learned_outputs_lower_the_objective_and_find_what_outputs_share() {
    let x = normals(300, 2, 1);
    // Four outputs that are two functions.
    let mixing = array![[1.0, 0.9, 0.0, 0.1], [0.0, 0.1, 1.0, -1.0]];
    let functions = Array2::from_shape_fn((300, 2), |(i, j)| (x[[i, j]] * 2.0).sin() + x[[i, 1 - j]].cos());
    let y = functions.dot(&mixing) + 0.05 * normals(300, 4, 2);
    let kernel =
        OperatorKernel::decomposable(Gaussian::new(1.0).unwrap().into(), OutputMatrix::identity(4).unwrap()).unwrap();
    let ridge = OperatorRidge::new(spec(kernel, 100, 1).build::<f64>(2).unwrap(), 1.0).unwrap();
    let learned = ridge.learn_outputs(50, &mut InMemory::new(x.view(), y.view()).unwrap()).unwrap();
    assert!(learned.objectives.len() > 2);
    let size = learned.objectives[0].abs();
    assert!(learned.objectives.windows(2).all(|pair| pair[1] <= pair[0] + 1e-8 * size), "{:?}", learned.objectives);
    let a = &learned.outputs;
    assert!((a.matrix().diag().sum() - 4.0).abs() < 1e-9);
    let mut values = a.values().to_vec();
    values.sort_by(f64::total_cmp);
    assert!(values[1] < 0.05 * values[2], "{values:?}");
    assert!(a.matrix()[[2, 3]] < -0.5 * a.matrix()[[2, 2]]);
}

#[test]
fn the_covariance_of_targets_is_that_of_their_columns() {
    let y = normals(50, 3, 1) + array![[1e3, 0.0, -5.0]];
    let x = normals(50, 1, 2);
    let found = target_covariance(&mut InMemory::new(x.view(), y.view()).unwrap()).unwrap();
    let centred = &y - &y.mean_axis(Axis(0)).unwrap();
    close(&found, &(centred.t().dot(&centred) / 50.0), 1e-9);
    assert!(OutputMatrix::new(found.view()).is_ok());
}

#[test]
fn codes_of_classes_classify_and_survive_a_file() {
    let n = 300;
    let x = normals(n, 2, 1);
    let label = |i: usize| {
        if x[[i, 0]] * x[[i, 1]] > 0.3 {
            2.0
        } else if x[[i, 0]] > 0.0 {
            1.0
        } else {
            0.0
        }
    };
    let labels = Array2::from_shape_fn((n, 1), |(i, _)| label(i));
    for coding in [Coding::Simplex, Coding::OneHot, Coding::OneAgainstRest] {
        let outputs = OutputMatrix::identity(coding.columns(3)).unwrap();
        let kernel = OperatorKernel::decomposable(Gaussian::new(0.7).unwrap().into(), outputs).unwrap();
        let ridge = OperatorRidge::new(spec(kernel, 300, 1).build::<f64>(2).unwrap(), 1e-2).unwrap();
        let classifier = OperatorRidgeClassifier::new(ridge, coding);
        let model = classifier.fit(x.view(), labels.view()).unwrap();
        let found = model.predict_classes(x.view()).unwrap();
        let right = found.iter().zip(&labels).filter(|(a, b)| **a as f64 == **b).count();
        assert!(right > 280 && model.classes() == 3, "{coding:?}: {right}");
        let named = Model::from(model.clone()).with_classes(vec!["a".into(), "b".into(), "c".into()]).unwrap();
        let again = Model::from_bytes(&named.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(x.view()).unwrap(), model.scores(x.view()).unwrap());
        assert_eq!(again.predict_classes(x.view()).unwrap(), found);
        assert!(again.downcast_ref::<OperatorRidgeModel<f64>>().is_none());
        assert!(Model::from(model).with_classes(vec!["a".into()]).is_err());
    }
}

#[test]
fn models_survive_a_file() {
    let (x, y) = (normals(50, 3, 1), normals(50, 3, 2));
    for kernel in [decomposable(1.0), OperatorKernel::helmholtz(1.0, 0.25).unwrap()] {
        let ridge = OperatorRidge::new(spec(kernel, 30, 9).build::<f64>(3).unwrap(), 0.1).unwrap();
        let model = ridge.fit(x.view(), y.view()).unwrap();
        let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let again: &OperatorRidgeModel<f64> = read.downcast_ref().unwrap();
        // What `auto` stands for is decided when features are drawn.
        assert_ne!(again.features().spec().projection, Directions::Auto);
        assert_eq!(again.predict(x.view()).unwrap(), model.predict(x.view()).unwrap());
        assert_eq!(again.jacobian(x.view()).unwrap(), model.jacobian(x.view()).unwrap());
        let mut stored = Stored::from_bytes(&model.to_bytes().unwrap()).unwrap();
        stored.header.dtype = "f32".into();
        assert!(Model::from_bytes(&stored.to_bytes().unwrap()).is_err());
    }
}

#[test]
fn a_rotation_is_learned_from_its_own_past() {
    let (c, s) = (0.1f64.cos(), 0.1f64.sin());
    let mut series = Array2::zeros((400, 2));
    series[[0, 0]] = 1.0;
    for t in 1..400 {
        let (a, b) = (series[[t - 1, 0]], series[[t - 1, 1]]);
        series[[t, 0]] = c * a - s * b;
        series[[t, 1]] = s * a + c * b;
    }
    let outputs = OutputMatrix::new(array![[1.0, 0.2], [0.2, 1.0]].view()).unwrap();
    let kernel = OperatorKernel::decomposable(Gaussian::new(2.0).unwrap().into(), outputs).unwrap();
    let features = spec(kernel, 100, 1).build::<f64>(4).unwrap();
    let mut source = Lagged::new(series.view(), 2).unwrap();
    let model = OperatorRidge::new(features, 1e-8).unwrap().fit_stream(&mut source, &mut Context::default()).unwrap();
    let (rows, targets) = source.arrays();
    close(&model.predict(rows.view()).unwrap(), &targets, 1e-3);
}

#[test]
fn uniform_bounds_fall_with_the_number_of_frequencies() {
    for kernel in [decomposable(1.0), OperatorKernel::curl_free(1.0).unwrap(), OperatorKernel::div_free(1.0).unwrap()] {
        let bound = spec(kernel, 100, 0).bound(2, 3.0).unwrap();
        assert_eq!(bound.failure(10.0, 1.0), 1.0);
        assert!(bound.failure(1e8, 1.0) < 1e-3 && bound.failure(1e8, 1.0) < bound.failure(1e7, 1.0).max(1e-300));
    }
    // b of the decomposable kernel: (1 - exp(-r²))²/2 at the diameter, times the squared norm of A.
    let bound = spec(decomposable(1.0), 100, 0).bound(2, 3.0).unwrap();
    let exact = (1.0 - (-9f64).exp()).powi(2) / 2.0 * outputs().norm().powi(2);
    assert!((bound.variance - exact).abs() < 1e-12 * exact);
    assert!(spec(decomposable(1.0), 100, 0).bound(2, 0.0).is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    let features = spec(OperatorKernel::curl_free(1.0).unwrap(), 20, 1).build::<f64>(2).unwrap();
    assert!(OperatorRidge::new(features.clone(), -1.0).is_err());
    let ridge = OperatorRidge::new(features, 0.1).unwrap();
    assert!(ridge.clone().with_solver(OperatorSolver::Stein).is_err());
    let (x, y) = (normals(9, 2, 1), normals(9, 3, 2));
    assert!(ridge.fit(x.view(), y.view()).is_err());
    assert!(ridge.fit(y.view(), x.view()).is_err());
    let none = Array2::zeros((0, 2));
    assert!(ridge.fit(none.view(), none.view()).is_err());
    let mut bad = x.clone();
    bad[[4, 1]] = f64::NAN;
    assert!(ridge.fit(bad.view(), x.view()).is_err());
    assert!(spec(OperatorKernel::curl_free(1.0).unwrap(), 1, 1).build::<f64>(2).is_err());
    let exact = ExactOperatorRidge::new(OperatorKernel::curl_free(1.0).unwrap(), 0.1).unwrap();
    assert!(exact.fit(x.view(), y.view()).is_err());
    assert!(exact.fit(none.view(), none.view()).is_err());
    // Outputs that cannot do anything: the mean.
    let zero = OutputMatrix::new(Array2::zeros((2, 2)).view()).unwrap();
    let kernel = OperatorKernel::decomposable(Gaussian::new(1.0).unwrap().into(), zero).unwrap();
    let tight = OperatorSolver::ConjugateGradients(ConjugateGradients::default());
    for solver in [OperatorSolver::Auto, tight] {
        let ridge = OperatorRidge::new(spec(kernel.clone(), 20, 1).build::<f64>(2).unwrap(), 0.1).unwrap();
        let model = ridge.with_solver(solver).unwrap().fit(x.view(), x.view()).unwrap();
        let mean = x.mean_axis(Axis(0)).unwrap();
        assert!((model.predict(x.view()).unwrap() - &mean).iter().all(|v| v.abs() < 1e-12));
    }
    let _ = FeatureMap::output_dim(&**ridge.features().map());
}
