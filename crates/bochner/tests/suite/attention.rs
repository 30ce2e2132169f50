//! Attention: exact against a plain loop, linear against exact, causal against masked.

use crate::statistics::normal_quantile;
use bochner::attention::{linear_attention, softmax_attention};
use bochner::feature::{Describe, DynMap, PositiveSpec};
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::Real;
use bochner::variance::Softmax;
use ndarray::{Array2, s};

fn normals<R: Real>(rows: usize, cols: usize, index: u64) -> Array2<R> {
    let mut data = vec![R::ZERO; rows * cols];
    Stream::new(Seed::new(12), Role::Noise, index).normals_from(0, &mut data);
    Array2::from_shape_vec((rows, cols), data).unwrap()
}

fn problem<R: Real>(length: usize, dim: usize, width: usize) -> [Array2<R>; 3] {
    [normals(length, dim, 0), normals(length, dim, 1), normals(length, width, 2)]
}

/// Means of values with the given weights, keys behind a query left out if `causal`.
fn weighted(weights: &Array2<f64>, v: &Array2<f64>, causal: bool) -> Array2<f64> {
    Array2::from_shape_fn((weights.nrows(), v.ncols()), |(i, c)| {
        let seen = if causal { i + 1 } else { v.nrows() };
        let above: f64 = (0..seen).map(|j| weights[[i, j]] * v[[j, c]]).sum();
        above / (0..seen).map(|j| weights[[i, j]]).sum::<f64>()
    })
}

fn map<R: Real>(kind: Softmax, components: usize, dim: usize, seed: u64) -> DynMap<R> {
    PositiveSpec { n_components: components, kind, seed, ..Default::default() }.build::<R>(dim).unwrap()
}

#[test]
fn exact_attention_is_the_plain_loop() {
    // More queries than are held at once, of another number than the keys.
    for (queries, keys, causal) in [(300, 270, false), (300, 300, true), (1, 5, false)] {
        let q = normals::<f64>(queries, 6, 0);
        let (k, v) = (normals::<f64>(keys, 6, 1), normals::<f64>(keys, 3, 2));
        let weights = (q.dot(&k.t()) / 6f64.sqrt()).mapv(f64::exp);
        let (found, exact) =
            (softmax_attention(q.view(), k.view(), v.view(), causal).unwrap(), weighted(&weights, &v, causal));
        assert!((&found - &exact).iter().all(|e| e.abs() < 1e-13), "{causal}");
        let single = |a: &Array2<f64>| a.mapv(|v| v as f32);
        let found = softmax_attention(single(&q).view(), single(&k).view(), single(&v).view(), causal).unwrap();
        assert!((&found.mapv(f64::from) - &exact).iter().all(|e| e.abs() < 1e-5));
    }
}

#[test]
fn linear_attention_is_the_plain_loop_over_features() {
    // Sizes around the tiles of 128 rows and groups of 32 tiles.
    for length in [1, 2, 127, 128, 129, 700] {
        let [q, k, v] = problem::<f64>(length, 5, 3);
        for kind in [Softmax::Positive, Softmax::Hyperbolic, Softmax::Trigonometric] {
            let map = map::<f64>(kind, 400, 5, 1);
            let features = |rows: &Array2<f64>| map.transform((rows / 5f64.powf(0.25)).view()).unwrap();
            let weights = features(&q).dot(&features(&k).t());
            for causal in [false, true] {
                let exact = weighted(&weights, &v, causal);
                let sums_are_positive = (0..length).all(|i| {
                    let seen = if causal { i + 1 } else { length };
                    weights.slice(s![i, ..seen]).sum() > 0.0
                });
                match linear_attention(q.view(), k.view(), v.view(), &*map, causal) {
                    Ok(found) => {
                        // Sums of signed weights may nearly cancel.
                        let tolerance = if kind == Softmax::Trigonometric { 1e-8 } else { 1e-12 };
                        let worst = (&found - &exact).iter().fold(0.0f64, |m, e| m.max(e.abs()));
                        assert!(
                            worst < tolerance * exact.iter().fold(1.0f64, |m, e| m.max(e.abs())),
                            "{kind:?} {worst}"
                        );
                    }
                    Err(error) => {
                        assert!(kind == Softmax::Trigonometric && !sums_are_positive, "{error}");
                        assert!(error.to_string().contains("of q has weights that add up to -"), "{error}");
                    }
                }
            }
        }
    }
}

/// To first order a quotient of estimates is off by a weighted sum of the features' errors, whose variances are known.
#[test]
fn linear_attention_estimates_exact_attention() {
    // Short enough for 128 features to have errors of the size of the weights: longer rows need exponentially more.
    let [q, k, v] = problem::<f64>(200, 8, 4);
    let (q, k) = (0.5 * &q, 0.5 * &k);
    for causal in [false, true] {
        let exact = softmax_attention(q.view(), k.view(), v.view(), causal).unwrap();
        let spec = PositiveSpec { n_components: 4096, ..Default::default() };
        let scale = 8f64.powf(-0.25);
        let variance = spec.variance((scale * &q).view(), (scale * &k).view()).unwrap();
        let weights = (q.dot(&k.t()) / 8f64.sqrt()).mapv(f64::exp);
        let found = linear_attention(q.view(), k.view(), v.view(), &*map::<f64>(Softmax::Positive, 4096, 8, 3), causal)
            .unwrap();
        let z = normal_quantile(1.0 - 1e-6 / (2.0 * exact.len() as f64));
        for ((i, c), e) in exact.indexed_iter() {
            // |Σ δⱼ (vⱼ - out)| / Σ wⱼ with errors δⱼ of standard deviation σⱼ, added up as if all had the same sign.
            let seen = if causal { i + 1 } else { 200 };
            let sum: f64 = weights.slice(s![i, ..seen]).sum();
            let spread: f64 = (0..seen).map(|j| variance[[i, j]].sqrt() * (v[[j, c]] - e).abs()).sum();
            let bound = 1.5 * z * spread / sum;
            assert!((found[[i, c]] - e).abs() <= bound + 1e-12, "({i}, {c}): {} {e} {bound}", found[[i, c]]);
        }
        let error = |components: usize| {
            let of_seed = |seed| {
                let map = map::<f64>(Softmax::Positive, components, 8, seed);
                let found = linear_attention(q.view(), k.view(), v.view(), &*map, causal).unwrap();
                (&found - &exact).mapv(|e| e * e).sum()
            };
            (0..5).map(of_seed).sum::<f64>().sqrt()
        };
        // 64 times as many features: an eighth of the error, more or less.
        assert!(error(8192) < 0.5 * error(128), "{causal}");
    }
}

fn check_extremes<R: Real>(size: f64) {
    let [mut q, mut k, v] = problem::<R>(300, 16, 4);
    let (low, high) = v.iter().fold((R::infinity(), R::neg_infinity()), |(l, h), &x| (l.min(x), h.max(x)));
    // Norms of very different sizes in one sequence.
    for (i, mut row) in k.rows_mut().into_iter().enumerate() {
        let factor = R::from_f64(if i % 3 == 0 { size } else { 1.0 });
        row.mapv_inplace(|x| x * factor);
    }
    q.mapv_inplace(|x| x * R::from_f64(size));
    for kind in [Softmax::Positive, Softmax::Hyperbolic] {
        for causal in [false, true] {
            let found = linear_attention(q.view(), k.view(), v.view(), &*map::<R>(kind, 64, 16, 2), causal).unwrap();
            // Means of values lie between them, but for rounding.
            let slack = R::from_f64(1e-4);
            assert!(found.iter().all(|&x| x >= low - slack && x <= high + slack), "{kind:?} {size} {causal}");
        }
    }
    let exact = softmax_attention(q.view(), k.view(), v.view(), true).unwrap();
    assert!(exact.iter().all(|x| x.is_finite()));
}

#[test]
fn extreme_inputs_give_means_of_values() {
    for size in [1e-6, 1.0, 30.0, 1e3] {
        check_extremes::<f32>(size);
        check_extremes::<f64>(size);
    }
}

#[test]
fn early_outputs_of_causal_attention_do_not_see_later_keys() {
    let [q, mut k, mut v] = problem::<f32>(400, 8, 3);
    let map = map::<f32>(Softmax::Positive, 96, 8, 5);
    let before = linear_attention(q.view(), k.view(), v.view(), &*map, true).unwrap();
    k.slice_mut(s![250.., ..]).mapv_inplace(|x| -20.0 * x);
    v.slice_mut(s![250.., ..]).fill(1e6);
    let after = linear_attention(q.view(), k.view(), v.view(), &*map, true).unwrap();
    assert_eq!(before.slice(s![..250, ..]), after.slice(s![..250, ..]));
    assert_ne!(before.slice(s![250.., ..]), after.slice(s![250.., ..]));
}

#[test]
fn bits_do_not_depend_on_threads_or_layout() {
    let [q, k, v] = problem::<f32>(5000, 8, 5);
    let map = map::<f32>(Softmax::Hyperbolic, 64, 8, 7);
    for causal in [false, true] {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| linear_attention(q.view(), k.view(), v.view(), &*map, causal).unwrap())
        };
        let expected = on(1);
        assert_eq!(on(2), expected);
        assert_eq!(on(5), expected);
        let (kt, vt) = (k.t().to_owned(), v.t().to_owned());
        assert_eq!(linear_attention(q.view(), kt.t(), vt.t(), &*map, causal).unwrap(), expected);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let [q, k, v] = problem::<f64>(4, 3, 2);
    let map = map::<f64>(Softmax::Positive, 8, 3, 0);
    let message = |q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>, causal| {
        linear_attention(q.view(), k.view(), v.view(), &*map, causal).unwrap_err().to_string()
    };
    assert_eq!(message(&q, &v, &v, false), "number of columns of k is 2, expected 3");
    assert_eq!(message(&v, &v, &v, false), "number of columns of q is 2, expected 3");
    assert_eq!(message(&q, &k, &normals(5, 2, 0), false), "number of rows of v is 5, expected 4");
    let long = normals(5, 3, 0);
    assert_eq!(message(&long, &k, &v, true), "number of rows of k for causal attention is 4, expected 5");
    let mut bad = k.clone();
    bad[[2, 1]] = f64::NAN;
    assert_eq!(message(&q, &bad, &v, false), "k has a NaN or an infinity in row 2, column 1 (counted from 0)");
    assert_eq!(
        message(&q, &Array2::zeros((0, 3)), &Array2::zeros((0, 2)), false),
        "number of rows of k must be at least 1, got 0"
    );
    let none = linear_attention(Array2::zeros((0, 3)).view(), k.view(), v.view(), &*map, false).unwrap();
    assert_eq!(none.dim(), (0, 2));
}
