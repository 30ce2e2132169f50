//! Targets and features far from 0: no solver loses more digits than ten times what scikit-learn loses on the same features.
//!
//! scikit-learn's way is followed step by step in the precision of the data: columns are centred, their products summed, a
//! Cholesky factorisation solves, and the intercept is what is left of the mean. What is right is computed in double
//! precision with sums of twice as many digits.

use crate::waves::normals;
use bochner::accumulate::Gram;
use bochner::feature::{Describe, DynMap, FeatureMap, OperatorSpec};
use bochner::kernel::{Gaussian, OperatorKernel, OutputMatrix};
use bochner::model::{Fit, GpRegressor, OperatorRidge, OperatorSolver, Predict, Ridge};
use bochner::rows::{InMemory, RowSource};
use bochner::scalar::Real;
use bochner::solve::{ConjugateGradients, Preconditioner, Solver, StochasticGradient};
use bochner::{Context, Result};
use ndarray::{Array1, Array2, s};

const ROWS: usize = 1500;
const DIM: usize = 48;
const PENALTY: f64 = 0.1;

/// Scales of the targets, and offsets in those.
const SCALES: [f64; 3] = [1e-12, 1.0, 1e12];
const OFFSETS: [f64; 4] = [0.0, 1.0, 1e3, 1e6];

/// A sum of products with twice the digits of a double (Ogita, Rump and Oishi 2005, algorithm 5.3).
fn dot(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut sum, mut rest) = (0.0f64, 0.0f64);
    for (a, b) in pairs {
        let product = a * b;
        let total = sum + product;
        let back = total - sum;
        rest += a.mul_add(b, -product) + ((sum - (total - back)) + (product - back));
        sum = total;
    }
    sum + rest
}

/// Overwrites a symmetric matrix with its lower factor and solves for one right-hand side, in the precision given.
fn factorise<R: Real>(a: &mut Array2<R>) {
    for j in 0..a.nrows() {
        for i in j..a.nrows() {
            let done = (0..j).fold(R::ZERO, |sum, k| sum + a[[i, k]] * a[[j, k]]);
            let left = a[[i, j]] - done;
            a[[i, j]] = if i == j { left.sqrt() } else { left / a[[j, j]] };
        }
    }
}

fn solve<R: Real>(factor: &Array2<R>, b: &[R]) -> Vec<R> {
    let (n, mut x) = (b.len(), b.to_vec());
    for i in 0..n {
        let done = (0..i).fold(R::ZERO, |sum, k| sum + factor[[i, k]] * x[k]);
        x[i] = (x[i] - done) / factor[[i, i]];
    }
    for i in (0..n).rev() {
        let done = (i + 1..n).fold(R::ZERO, |sum, k| sum + factor[[k, i]] * x[k]);
        x[i] = (x[i] - done) / factor[[i, i]];
    }
    x
}

/// `FᵀF + α` and `Fᵀy` as products of matrices make them: sums of 256 rows at a time.
fn equations<R: Real>(f: &Array2<R>, y: &[R], penalty: f64) -> (Array2<R>, Vec<R>) {
    let dim = f.ncols();
    let (mut a, mut b) = (Array2::from_elem((dim, dim), R::ZERO), vec![R::ZERO; dim]);
    for start in (0..f.nrows()).step_by(256) {
        let rows = start..(start + 256).min(f.nrows());
        for i in 0..dim {
            for j in 0..=i {
                a[[i, j]] += rows.clone().fold(R::ZERO, |sum, k| f[[k, i]].mul_add(f[[k, j]], sum));
            }
            b[i] += rows.clone().fold(R::ZERO, |sum, k| f[[k, i]].mul_add(y[k], sum));
        }
    }
    (0..dim).for_each(|i| a[[i, i]] += R::from_f64(penalty));
    (a, b)
}

/// Weighted means of columns, rounded once.
fn means<R: Real>(f: &Array2<R>, w: &Array1<R>) -> Vec<f64> {
    let total: f64 = w.iter().map(|w| Real::to_f64(*w)).sum();
    let mean = |j| dot((0..f.nrows()).map(|i| (Real::to_f64(w[i]), Real::to_f64(f[[i, j]])))) / total;
    (0..f.ncols()).map(mean).collect()
}

/// Predictions of scikit-learn's `Ridge(solver="cholesky")`, but for the order of its sums.
fn by_their_way<R: Real>(f: &Array2<R>, y: &Array1<R>, w: &Array1<R>, intercept: bool) -> Vec<R> {
    let column = y.clone().insert_axis(ndarray::Axis(1));
    let round = |values: Vec<f64>| values.into_iter().map(R::from_f64).collect::<Vec<R>>();
    let (mf, my) = match intercept {
        true => (round(means(f, w)), round(means(&column, w))[0]),
        false => (vec![R::ZERO; f.ncols()], R::ZERO),
    };
    let centred = Array2::from_shape_fn(f.dim(), |(i, j)| (f[[i, j]] - mf[j]) * w[i].sqrt());
    let sides: Vec<R> = (0..y.len()).map(|i| (y[i] - my) * w[i].sqrt()).collect();
    let (mut a, b) = equations(&centred, &sides, PENALTY);
    factorise(&mut a);
    let x = solve(&a, &b);
    let shift = my - x.iter().zip(&mf).fold(R::ZERO, |sum, (x, m)| sum + *x * *m);
    f.rows().into_iter().map(|row| row.iter().zip(&x).fold(R::ZERO, |sum, (f, x)| sum + *f * *x) + shift).collect()
}

/// What is right for targets `offset + scale · z`: `(prediction - offset)/scale`, of equations in `z` where an intercept
/// takes the offset; else of the targets as they are.
fn exact(f: &Array2<f64>, z: &[f64], w: &Array1<f64>, intercept: bool) -> Vec<f64> {
    let column = Array2::from_shape_fn((z.len(), 1), |(i, _)| z[i]);
    let (mf, mz) = match intercept {
        true => (means(f, w), means(&column, w)[0]),
        false => (vec![0.0; f.ncols()], 0.0),
    };
    let centred = Array2::from_shape_fn(f.dim(), |(i, j)| (f[[i, j]] - mf[j]) * w[i].sqrt());
    let sides: Vec<f64> = (0..z.len()).map(|i| (z[i] - mz) * w[i].sqrt()).collect();
    let (mut a, b) = equations(&centred, &sides, PENALTY);
    factorise(&mut a);
    let mut x = solve(&a, &b);
    // Steps of refinement: what the solution leaves is summed with twice the digits, and with the weights themselves, since
    // the squares of their rounded roots are others.
    for _ in 0..4 {
        let left: Vec<f64> = (0..z.len())
            .map(|i| {
                let fitted = f.row(i).into_iter().zip(&mf).zip(&x).flat_map(|((f, m), x)| [(-f, *x), (*m, *x)]);
                dot(fitted.chain([(z[i], 1.0), (-mz, 1.0)]))
            })
            .collect();
        let rest: Vec<f64> = (0..f.ncols())
            .map(|j| dot((0..z.len()).map(|i| ((f[[i, j]] - mf[j]) * w[i], left[i])).chain([(-PENALTY, x[j])])))
            .collect();
        x.iter_mut().zip(solve(&a, &rest)).for_each(|(x, step)| *x += step);
    }
    let point = |row: ndarray::ArrayView1<'_, f64>| dot(row.iter().zip(&mf).map(|(f, m)| f - m).zip(x.iter().copied()));
    f.rows().into_iter().map(|row| point(row) + mz).collect()
}

/// Features of one output, which are those of a scalar kernel.
fn spec() -> Result<OperatorSpec> {
    let kernel = OperatorKernel::decomposable(Gaussian::new(1.0)?.into(), OutputMatrix::identity(1)?)?;
    Ok(OperatorSpec { n_components: DIM, seed: 2, ..OperatorSpec::new(kernel) })
}

/// Rows, a map, its features, targets of unit scale, and weights.
struct Data<R: Real> {
    rows: Array2<R>,
    map: DynMap<R>,
    features: Array2<R>,
    z: Array1<f64>,
    weights: Array1<R>,
}

fn data<R: Real>(weighted: bool) -> Data<R> {
    let rows = normals::<R>(ROWS, 3, 1);
    let map = spec().unwrap().fourier().unwrap().build::<R>(3).unwrap();
    let features = map.transform(rows.view()).unwrap();
    let noise = normals::<f64>(ROWS, 1, 3);
    let z = Array1::from_shape_fn(ROWS, |i| {
        let row = rows.row(i).mapv(Real::to_f64);
        (row[0] + 0.5 * row[1]).sin() + row[2].cos() + 0.1 * noise[[i, 0]]
    });
    // In double precision, weights whose roots are exact: the squares of rounded ones add up to other totals than the
    // weights do, by an amount that shows beside errors of 1e-14 and nowhere else.
    let some = if R::NAME == "f32" { [0.3, 1.0, 2.7, 0.0, 1.9] } else { [0.25, 1.0, 2.25, 0.0, 4.0] };
    let weights = Array1::from_shape_fn(ROWS, |i| R::from_f64(if weighted { some[i % 5] } else { 1.0 }));
    Data { rows, map, features, z, weights }
}

/// Largest difference in units of the scale.
fn error<R: Real>(found: &[R], right: &[f64], offset: f64, scale: f64) -> f64 {
    let gap = |(found, right): (&R, &f64)| ((Real::to_f64(*found) - offset) / scale - right).abs();
    found.iter().zip(right).map(gap).fold(0.0, f64::max)
}

/// Fits targets `offset + scale · z`, given as one column, and predicts at the training rows.
type FitAndPredict<'a, R> = dyn Fn(&Data<R>, &Array2<R>, bool) -> Result<Vec<R>> + 'a;

fn source<'a, R: Real>(data: &'a Data<R>, targets: &'a Array2<R>) -> InMemory<'a, R> {
    let source = InMemory::new(data.rows.view(), targets.view()).unwrap().with_block_rows(700).unwrap();
    source.with_weights(data.weights.view()).unwrap()
}

fn ridge<R: Real>(solver: Solver) -> Box<FitAndPredict<'static, R>> {
    Box::new(move |data, targets, intercept| {
        let ridge = Ridge::new(data.map.clone(), PENALTY)?.with_intercept(intercept).with_solver(solver);
        let model = ridge.fit_stream(&mut source(data, targets), &mut Context::default())?;
        Ok(model.predict(data.rows.view())?.into_iter().collect())
    })
}

/// Every way to fit a ridge regression.
fn ways<R: Real>() -> Vec<(&'static str, Box<FitAndPredict<'static, R>>)> {
    // As far as the precision goes.
    let tolerance = Some(4.0 * Real::to_f64(R::epsilon()));
    let cg = |preconditioner| {
        ridge::<R>(Solver::ConjugateGradients(ConjugateGradients { tolerance, max_iterations: 300, preconditioner }))
    };
    let path = |count: usize| -> Box<FitAndPredict<'static, R>> {
        Box::new(move |data, targets, intercept| {
            let mut penalties = vec![1.0; count];
            penalties[1] = PENALTY;
            let ridge = Ridge::new(data.map.clone(), 1.0)?.with_intercept(intercept);
            let models = ridge.fit_path(&penalties, &mut source(data, targets), &mut Context::default())?;
            Ok(models[1].predict(data.rows.view())?.into_iter().collect())
        })
    };
    let merged: Box<FitAndPredict<'static, R>> = Box::new(|data, targets, intercept| {
        let ridge = Ridge::new(data.map.clone(), PENALTY)?.with_intercept(intercept);
        let part = |rows: std::ops::Range<usize>| -> Result<Gram<R>> {
            let mut gram = ridge.accumulator(1, &Context::default())?;
            let cut = s![rows.clone(), ..];
            let mut source =
                InMemory::new(data.rows.slice(cut), targets.slice(cut))?.with_weights(data.weights.slice(s![rows]))?;
            source.for_each_block(&mut |block| gram.push_rows(&data.map, block))?;
            // Through a file, as they go from process to process.
            Gram::from_bytes(&gram.to_bytes()?)
        };
        let mut sums = part(0..1100)?;
        sums.merge(&part(1100..1300)?)?;
        let mut all = part(1300..1301)?;
        all.merge(&sums)?;
        all.merge(&part(1301..ROWS)?)?;
        Ok(ridge.fit_moments(all.finish())?.predict(data.rows.view())?.into_iter().collect())
    });
    let operator = |solver| -> Box<FitAndPredict<'static, R>> {
        Box::new(move |data, targets, intercept| {
            let features = spec()?.build::<R>(3)?;
            let ridge = OperatorRidge::new(features, PENALTY)?.with_intercept(intercept).with_solver(solver)?;
            let model = ridge.fit_stream(&mut source(data, targets), &mut Context::default())?;
            Ok(model.predict(data.rows.view())?.into_iter().collect())
        })
    };
    let options = ConjugateGradients { tolerance, max_iterations: 300, preconditioner: Preconditioner::None };
    vec![
        ("cholesky", ridge(Solver::Cholesky)),
        ("dual", ridge(Solver::Dual)),
        ("cg", cg(Preconditioner::None)),
        ("cg, diagonal", cg(Preconditioner::Diagonal)),
        ("cg, nystrom", cg(Preconditioner::Nystrom(20))),
        ("cg, rounded", cg(Preconditioner::Rounded)),
        ("path by factorisations", path(2)),
        ("path by decomposition", path(20)),
        ("merged sums", merged),
        ("operator, stein", operator(OperatorSolver::Stein)),
        ("operator, cholesky", operator(OperatorSolver::Cholesky)),
        ("operator, cg", operator(OperatorSolver::ConjugateGradients(options))),
    ]
}

fn offsets_cost_no_more_digits_than_they_cost_scikit_learn<R: Real>() {
    let (mut faults, mut worst) = (Vec::new(), 0.0f64);
    for (weighted, intercept) in [(false, true), (true, true), (false, false), (true, false)] {
        let data = data::<R>(weighted);
        let wide = (data.features.mapv(Real::to_f64), data.weights.mapv(Real::to_f64));
        let ways = ways::<R>();
        for (scale, steps) in SCALES.iter().flat_map(|scale| OFFSETS.map(|steps| (*scale, steps))) {
            let offset = Real::to_f64(R::from_f64(steps * scale));
            let targets = data.z.mapv(|z| R::from_f64(offset + scale * z));
            // With an intercept the offset is taken from targets and predictions before anything is computed.
            let taken = if intercept { offset } else { 0.0 };
            let z: Vec<f64> = targets.iter().map(|y| (Real::to_f64(*y) - taken) / scale).collect();
            let right = exact(&wide.0, &z, &wide.1, intercept);
            let theirs = by_their_way(&data.features, &targets, &data.weights, intercept);
            let theirs = error(&theirs, &right, taken, scale);
            let targets = targets.insert_axis(ndarray::Axis(1));
            for (name, fit) in &ways {
                let ours = match fit(&data, &targets, intercept) {
                    Ok(found) => error(&found, &right, taken, scale),
                    Err(error) => {
                        faults.push(format!("{name} {weighted} {intercept} {scale:e} {steps:e}: {error}"));
                        continue;
                    }
                };
                worst = worst.max(ours / theirs);
                if ours.is_nan() || ours > 10.0 * theirs {
                    faults.push(format!(
                        "{name}, weights {weighted}, intercept {intercept}, scale {scale:e}, offset {steps:e}: {ours:.1e} against {theirs:.1e}"
                    ));
                }
            }
        }
    }
    println!("{}: at worst {worst:.2} times theirs", R::NAME);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn offsets_of_targets_cost_no_digits_in_single_precision() {
    offsets_cost_no_more_digits_than_they_cost_scikit_learn::<f32>();
}

#[test]
fn offsets_of_targets_cost_no_digits_in_double_precision() {
    offsets_cost_no_more_digits_than_they_cost_scikit_learn::<f64>();
}

/// Targets whose offset and scale are powers of two, and what they are without: the same numbers in their precision.
fn with_and_without<R: Real>(z: &Array1<f64>) -> (Array2<R>, Array2<R>, f64, f64) {
    let (offset, scale) = (2f64.powi(20 - 40), 2f64.powi(-40));
    let targets = z.mapv(|z| R::from_f64(offset + scale * z)).insert_axis(ndarray::Axis(1));
    let plain = targets.mapv(|y| R::from_f64((Real::to_f64(y) - offset) / scale));
    (targets, plain, offset, scale)
}

fn iterations_and_likelihoods_do_not_see_offsets<R: Real>() {
    for weighted in [false, true] {
        let data = data::<R>(weighted);
        let (targets, plain, offset, scale) = with_and_without::<R>(&data.z);
        let (wide, weights) = (data.features.mapv(Real::to_f64), data.weights.mapv(Real::to_f64));
        let z: Vec<f64> = plain.iter().map(|z| Real::to_f64(*z)).collect();
        let column = targets.column(0).to_owned();
        let theirs = by_their_way(&data.features, &column, &data.weights, true);
        let theirs = error(&theirs, &exact(&wide, &z, &weights, true), offset, scale);
        // Stochastic gradients end elsewhere; but always at the same place.
        let steps = ridge::<R>(Solver::StochasticGradient(StochasticGradient { passes: 20, rank: 10 }));
        let expected = steps(&data, &plain, true).unwrap();
        let expected: Vec<f64> = expected.into_iter().map(Real::to_f64).collect();
        let ours = error(&steps(&data, &targets, true).unwrap(), &expected, offset, scale);
        assert!(ours <= 10.0 * theirs, "sgd in {}: {ours:e} against {theirs:e}", R::NAME);
        // A process has no intercept but subtracts the mean of the targets.
        let process = GpRegressor::new(data.map.clone(), PENALTY).unwrap();
        let fit =
            |targets: &Array2<R>| process.fit_stream(&mut source(&data, targets), &mut Context::default()).unwrap();
        let (with, without) = (fit(&targets), fit(&plain));
        let mean = means(&plain, &data.weights)[0];
        let about: Vec<f64> = z.iter().map(|z| z - mean).collect();
        let right: Vec<f64> = exact(&wide, &about, &weights, false).iter().map(|v| v + mean).collect();
        let found: Vec<R> = with.predict(data.rows.view()).unwrap().into_iter().collect();
        let ours = error(&found, &right, offset, scale);
        assert!(ours <= 10.0 * theirs, "process in {}: {ours:e} against {theirs:e}", R::NAME);
        // Every row adds a misfit of about 1 to the likelihood, and the rounding of some products to that.
        let gap = with.log_marginal_likelihood() + ROWS as f64 * scale.ln() - without.log_marginal_likelihood();
        // The mean of far targets is rounded once, in double precision. A constant c that is left in them changes the misfit
        // by c 1ᵀΣ⁻¹z, at most c √(n/τ²) √n where the misfit is about n.
        let left = f64::EPSILON * offset / scale * ROWS as f64 / PENALTY.sqrt();
        let rounding = 16.0 * ROWS as f64 * Real::to_f64(R::epsilon()) + left;
        assert!(gap.abs() <= rounding, "likelihood in {}: {gap:e} against {rounding:e}", R::NAME);
        let (a, b) = (with.observation_variances()[0] / (scale * scale), without.observation_variances()[0]);
        assert!((a - b).abs() <= 1e-12 * b, "noise in {}: {a} {b}", R::NAME);
        // Nor does the level at which data are likeliest: it has their unit.
        let levelled = process.clone().with_normalized_targets(false).with_likeliest_level(true);
        let noise = |targets| {
            levelled.fit_stream(&mut source(&data, targets), &mut Context::default()).unwrap().observation_variances()
                [0]
        };
        let (a, b) = (noise(&targets) / (scale * scale), noise(&plain));
        assert!((a - b).abs() <= rounding * b, "level in {}: {a} {b}", R::NAME);
    }
}

#[test]
fn offsets_move_neither_stochastic_gradients_nor_processes() {
    iterations_and_likelihoods_do_not_see_offsets::<f32>();
    iterations_and_likelihoods_do_not_see_offsets::<f64>();
}
