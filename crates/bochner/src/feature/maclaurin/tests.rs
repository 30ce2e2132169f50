use super::pairwise::{Law, Question, Scaled, pair_means, sums};
use super::spec::Series;
use super::*;
use crate::feature::{Describe, SketchKind};
use crate::kernel::kernel_matrix;
use crate::projection::Sampling;
use crate::random::{Role, Seed, Stream};
use crate::special::normal_quantile;
use crate::variance::{Kind, PairStats, Sketch, Weights};
use ndarray::{Array2, ArrayView2, Axis};

const SKETCHES: [SketchKind; 4] =
    [SketchKind::TensorSrht, SketchKind::Rademacher, SketchKind::Gaussian, SketchKind::TensorSketch];

fn normal_rows(n: usize, d: usize, scale: f64, seed: u64) -> Array2<f64> {
    let mut data = vec![0.0; n * d];
    Stream::new(Seed::new(seed), Role::Noise, 0).normals_from(0, &mut data);
    Array2::from_shape_vec((n, d), data).unwrap() * scale
}

fn kernels() -> Vec<MaclaurinSpec> {
    let base = MaclaurinSpec { n_components: 41, ..Default::default() };
    vec![
        MaclaurinSpec { length_scale: 1.5.into(), ..base.clone() },
        MaclaurinSpec { kernel: MaclaurinKernel::Exponential, length_scale: 1.2.into(), ..base.clone() },
        MaclaurinSpec { kernel: MaclaurinKernel::Polynomial, gamma: 0.5, coef0: 0.7, ..base.clone() },
        MaclaurinSpec { kernel: MaclaurinKernel::Coefficients(vec![0.0, 1.0, 0.0, 0.3, 0.2]), ..base },
    ]
}

/// Mean of a function of pairs `i ≠ j`.
fn pair_mean(rows: ArrayView2<'_, f64>, f: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (i, x) in rows.axis_iter(Axis(0)).enumerate() {
        for (j, y) in rows.axis_iter(Axis(0)).enumerate() {
            if i != j {
                sum += f(&x.to_vec(), &y.to_vec());
                count += 1.0;
            }
        }
    }
    sum / count
}

#[test]
fn statistics_of_pairs_are_the_means_of_their_closed_forms() {
    for spec in kernels() {
        for (rows, scale) in [(normal_rows(23, 3, 0.6, 1), 1.0), (normal_rows(150, 20, 0.2, 2), 1.3)] {
            let (series, dim) = (series_of(&spec), rows.ncols());
            let input = Input {
                dim,
                centre: None,
                length_scales: vec![scale],
                metric: None,
                gaussian: spec.kernel == MaclaurinKernel::Gaussian,
            };
            let weight = |x: &[f64]| if input.gaussian { (-x.iter().map(|v| v * v).sum::<f64>()).exp() } else { 1.0 };
            let divided = rows.mapv(|v| v / scale);
            for kind in [Kind::SrhtStacked, Kind::Rademacher, Kind::Gaussian] {
                for weights in [Weights::Real, Weights::Complex, Weights::Ctr] {
                    let law = Law { kind, weights };
                    let question = Question { input: &input, series: &series, law, most: 4 };
                    let found = pair_means(rows.view(), question).unwrap();
                    for cost in &found.costs {
                        let a = series.ln_coefficient(cost.degree as usize).exp();
                        // Degree 1 of complex-to-real blocks is made of real columns, others of halves of draws.
                        let ctr = weights == Weights::Ctr;
                        let real = ctr && cost.degree == 1 && kind == Kind::SrhtStacked;
                        let weights = if real { Weights::Real } else { weights };
                        let sketch = Sketch::new(kind, weights, cost.degree, 1, dim).unwrap();
                        let mean = |f: &dyn Fn(&PairStats) -> f64| {
                            pair_mean(divided.view(), |x, y| weight(x) * weight(y) * f(&PairStats::new(x, y)))
                        };
                        let expected = a * a * mean(&|stats| sketch.variance(stats));
                        let variance = cost.weight * cost.curve.at(if ctr && !real { 2 } else { 1 });
                        assert!((variance / expected - 1.0).abs() < 1e-9, "{kind:?} {weights:?} {cost:?}: {expected}");
                        let expected = a * a * mean(&|stats| sketch.block_covariance(stats));
                        let covariance = cost.weight * cost.curve.covariance;
                        assert!(
                            (covariance - expected).abs() < 1e-9 * variance,
                            "{kind:?} {weights:?} {cost:?}: {expected}"
                        );
                    }
                    for (p, &bias) in found.bias.iter().enumerate() {
                        let expected = pair_mean(divided.view(), |x, y| {
                            let (dot, g) = (crate::kernel::dot(x, y), weight(x) * weight(y));
                            let tail =
                                (p + 1..60).map(|n| series.ln_coefficient(n).exp() * dot.powi(n as i32)).sum::<f64>();
                            g * tail * tail
                        });
                        assert!((bias - expected).abs() <= 1e-9 * expected, "p = {p}: {bias} instead of {expected}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_complete_block_has_the_whole_of_degree_one() {
    // As many columns as padded inputs beside the constant, or twice as many: whatever the weights, the linear part is exact.
    let rows = normal_rows(9, 16, 0.3, 12);
    for (weights, n_components) in [(Weights::Real, 17), (Weights::Ctr, 17), (Weights::Ctr, 33)] {
        let spec = MaclaurinSpec {
            kernel: MaclaurinKernel::Coefficients(vec![0.5, 2.0]),
            n_components,
            weights,
            ..MaclaurinSpec::default()
        };
        let spec = spec.resolve(rows.view()).unwrap();
        assert!(spec.resolved.as_ref().unwrap().variance < 1e-12);
        assert!(spec.variance(rows.view(), rows.view()).unwrap().iter().all(|v| v.abs() < 1e-12));
        let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
        let z = spec.build::<f64>(16).unwrap().transform(rows.view()).unwrap();
        assert_eq!(z.ncols(), n_components);
        let error = (z.dot(&z.t()) - &exact).fold(0.0f64, |m, e| m.max(e.abs()));
        assert!(error < 1e-13, "{weights:?}: {error}");
        // Columns join the linear part unless it is complete.
        let with = |n_components: usize| {
            let spec = MaclaurinSpec { n_components, ..spec.clone() }.resolve(rows.view()).unwrap();
            let variance = spec.variance(rows.view(), rows.view()).unwrap().mean().unwrap();
            (spec.build::<f64>(16).unwrap().output_dim(), variance)
        };
        let (columns, variance) = with(n_components - 1);
        assert!(columns == n_components - 1 || columns == 17 && variance < 1e-12);
        let (columns, variance) = with(n_components + 1);
        assert_eq!(columns, n_components);
        assert!(variance < 1e-12);
    }
}

fn series_of(spec: &MaclaurinSpec) -> Series {
    spec.series().unwrap()
}

#[test]
fn single_precision_and_projected_squares_leave_statistics_as_they_are() {
    let (m, d) = (200, 700);
    let rows = normal_rows(m, d, (1.0 / d as f64).sqrt(), 4);
    let input = Input { dim: d, centre: None, length_scales: vec![1.0], metric: None, gaussian: true };
    let series = series_of(&MaclaurinSpec::default());
    let law = Law { kind: Kind::SrhtStacked, weights: Weights::Ctr };
    let question = Question { input: &input, series: &series, law, most: 5 };
    let scaled = Scaled::new(rows.view(), question, 1400.0).unwrap();
    let sums = sums::<f64, f32>(rows.view(), &scaled, question).unwrap();
    let found = scaled.means(&sums, question, d, (m * (m - 1) / 2) as f64);
    let weight = |x: &[f64]| (-x.iter().map(|v| v * v).sum::<f64>()).exp();
    for cost in &found.costs {
        let a = series.ln_coefficient(cost.degree as usize).exp();
        let real = cost.degree == 1;
        let weights = if real { Weights::Real } else { law.weights };
        let sketch = Sketch::new(law.kind, weights, cost.degree, 1, d).unwrap();
        let expected =
            a * a * pair_mean(rows.view(), |x, y| weight(x) * weight(y) * sketch.variance(&PairStats::new(x, y)));
        let variance = cost.weight * cost.curve.at(if real { 1 } else { 2 });
        assert!((variance / expected - 1.0).abs() < 1e-3, "{cost:?}: {variance} instead of {expected}");
    }
    for (p, bias) in found.bias.iter().enumerate() {
        let expected = pair_mean(rows.view(), |x, y| {
            let dot = crate::kernel::dot(x, y);
            let tail = (p + 1..40).map(|n| series.ln_coefficient(n).exp() * dot.powi(n as i32)).sum::<f64>();
            weight(x) * weight(y) * tail * tail
        });
        assert!((bias / expected - 1.0).abs() < 1e-4, "p = {p}: {bias} instead of {expected}");
    }
}

#[test]
fn long_rows_have_the_bias_of_the_exact_kernel() {
    // Beyond the reach of the series: the same formula, evaluated from the kernel.
    let rows = normal_rows(12, 2, 5.0, 5);
    let input = Input { dim: 2, centre: None, length_scales: vec![1.0], metric: None, gaussian: true };
    let series = series_of(&MaclaurinSpec::default());
    let law = Law { kind: Kind::Rademacher, weights: Weights::Real };
    let found = pair_means(rows.view(), Question { input: &input, series: &series, law, most: 5 }).unwrap();
    for (p, &bias) in found.bias.iter().enumerate() {
        let expected = pair_mean(rows.view(), |x, y| {
            let dot = crate::kernel::dot(x, y);
            let half = -0.5 * (crate::kernel::dot(x, x) + crate::kernel::dot(y, y));
            let head: f64 = (0..=p).map(|n| (half + series.ln_coefficient(n)).exp() * dot.powi(n as i32)).sum();
            ((half + dot).exp() - head).powi(2)
        });
        assert!((bias / expected - 1.0).abs() < 1e-9, "p = {p}: {bias} instead of {expected}");
    }
    for scale in [1e-6, 1.0, 1e3, 1e8] {
        let spec = MaclaurinSpec { n_components: 65, ..Default::default() }.resolve((&rows * scale).view()).unwrap();
        assert!(spec.resolved.as_ref().unwrap().objective().is_finite());
        let single = (&rows * scale).mapv(|v| v as f32);
        let features = spec.build::<f32>(2).unwrap().transform(single.view()).unwrap();
        assert!(features.iter().all(|v| v.is_finite()), "scale {scale}");
    }
}

#[test]
fn estimates_have_the_mean_and_the_variance_of_their_description() {
    const SEEDS: u64 = 300;
    let rows = normal_rows(4, 3, 0.6, 6);
    for base in kernels() {
        for allocation in [AllocationRule::Optimized, AllocationRule::Random] {
            for sketch in SKETCHES {
                for weights in [Weights::Real, Weights::Ctr] {
                    let random = allocation == AllocationRule::Random;
                    if random && !matches!(sketch, SketchKind::Rademacher | SketchKind::Gaussian) {
                        continue;
                    }
                    // Products of many factors are too heavy-tailed for a check of their spread.
                    let light = !random && sketch != SketchKind::Gaussian || base.kernel == MaclaurinKernel::Polynomial;
                    let spec = MaclaurinSpec { allocation, sketch, weights, max_degree: 3, ..base.clone() };
                    let spec = spec.resolve(rows.view()).unwrap();
                    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
                    let bias = spec.bias(rows.view(), rows.view()).unwrap();
                    let variance = spec.variance(rows.view(), rows.view()).unwrap();
                    let mut squares = Array2::<f64>::zeros((4, 4));
                    let mut fourth = squares.clone();
                    let mut mean = squares.clone();
                    for seed in 0..SEEDS {
                        let spec = MaclaurinSpec { seed: 700 + seed, ..spec.clone() };
                        let z = spec.build::<f64>(3).unwrap().transform(rows.view()).unwrap();
                        assert!(z.ncols() <= 41 && z.ncols() >= 40, "{}", z.ncols());
                        let error = z.dot(&z.t()) - &exact + &bias;
                        mean += &error;
                        squares += &error.mapv(|e| e * e);
                        fourth += &error.mapv(|e| e.powi(4));
                    }
                    let n = SEEDS as f64;
                    let z = normal_quantile(1.0 - 1e-6 / (2.0 * 48.0 * 32.0));
                    for ((i, j), &v) in variance.indexed_iter() {
                        let m = mean[[i, j]] / n;
                        assert!(m.abs() <= z * (v / n).sqrt() + 1e-12, "{spec:?} ({i}, {j}): {m} with variance {v}");
                        // Products are not normal: the spread of the squares is taken from the squares.
                        let s = squares[[i, j]] / n;
                        let spread = ((fourth[[i, j]] / n - s * s) / n).max(0.0).sqrt();
                        assert!(
                            !light || (s - v).abs() <= z * spread + 1e-12,
                            "{spec:?} ({i}, {j}): {s} instead of {v} ± {spread}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn degrees_are_drawn_with_their_probabilities() {
    let law = DegreeMeasure::geometric(|_| 1.0, 0, 2.0).unwrap();
    assert_eq!(law.degrees()[3].probability, 1.0 / 16.0);
    assert!((law.degrees().iter().map(|d| d.probability).sum::<f64>() - 1.0).abs() < 1e-15);
    let draws = 100_000;
    let counts = law.counts(draws, Seed::new(9));
    assert_eq!(counts.iter().sum::<usize>(), draws);
    let z = normal_quantile(1.0 - 1e-6 / 16.0);
    for (degree, &count) in law.degrees().iter().zip(&counts).take(8) {
        let p = degree.probability;
        let deviation = count as f64 - draws as f64 * p;
        assert!(deviation.abs() <= z * (draws as f64 * p * (1.0 - p)).sqrt(), "{degree:?}: {count}");
    }
    let finite = DegreeMeasure::restricted(&[5.0, 1.0, 0.0, 2.0], 1, 3.0).unwrap();
    let found: Vec<(u32, f64)> = finite.degrees().iter().map(|d| (d.degree, d.probability)).collect();
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [1, 3]);
    assert!((found[0].1 - 0.9).abs() < 1e-15 && (found[1].1 - 0.1).abs() < 1e-15);
    assert!(DegreeMeasure::restricted(&[1.0], 1, 2.0).is_err());
    assert!(DegreeMeasure::geometric(|_| 1.0, 0, 1.0).is_err() && DegreeMeasure::geometric(|_| 1.0, 0, 1.05).is_err());
}

#[test]
fn complete_blocks_of_degree_one_are_exact() {
    let rows = normal_rows(6, 8, 0.3, 7);
    let spec =
        MaclaurinSpec { kernel: MaclaurinKernel::Coefficients(vec![0.5, 2.0]), n_components: 17, ..Default::default() };
    let spec = spec.resolve(rows.view()).unwrap();
    let allocation = spec.resolved.as_ref().unwrap();
    assert_eq!((allocation.columns.as_slice(), allocation.bias), ([0, 16].as_slice(), 0.0));
    assert!(allocation.variance < 1e-15);
    let z = spec.build::<f64>(8).unwrap().transform(rows.view()).unwrap();
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
    assert!((z.dot(&z.t()) - exact).iter().all(|e| e.abs() < 1e-12));
}

#[test]
fn one_dimension_is_exact_up_to_truncation() {
    let rows = normal_rows(30, 1, 1.0, 8);
    let spec = MaclaurinSpec {
        n_components: 10,
        weights: Weights::Real,
        sketch: SketchKind::Rademacher,
        ..Default::default()
    };
    let spec = spec.resolve(rows.view()).unwrap();
    let allocation = spec.resolved.as_ref().unwrap();
    assert_eq!(allocation.columns, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(allocation.variance, 0.0);
    let z = spec.build::<f64>(1).unwrap().transform(rows.view()).unwrap();
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
    let bias = spec.bias(rows.view(), rows.view()).unwrap();
    assert!((z.dot(&z.t()) - exact + bias).iter().all(|e| e.abs() < 1e-12));
}

#[test]
fn budgets_are_kept_and_descriptions_survive_a_file() {
    let rows = normal_rows(40, 5, 0.4, 9);
    for base in kernels() {
        for weights in [Weights::Real, Weights::Ctr, Weights::Complex] {
            for allocation in [AllocationRule::Optimized, AllocationRule::Random] {
                for n_components in [3, 4, 17, 64] {
                    let spec = MaclaurinSpec { n_components, weights, allocation, seed: 3, ..base.clone() };
                    let spec = spec.resolve(rows.view()).unwrap();
                    let again: MaclaurinSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
                    assert_eq!(again, spec);
                    let columns = if weights == Weights::Complex {
                        let map = spec.build_complex::<f64>(5).unwrap();
                        assert_eq!(
                            map.transform(rows.view()).unwrap(),
                            again.build_complex(5).unwrap().transform(rows.view()).unwrap()
                        );
                        map.output_dim()
                    } else {
                        spec.build::<f32>(5).unwrap().output_dim()
                    };
                    // Left out are half of a random pair, and what would break complete blocks of 8 linear columns.
                    let resolved = &spec.resolved.as_ref().unwrap().columns;
                    let spare = match allocation {
                        AllocationRule::Random => columns + 1 == n_components,
                        AllocationRule::Optimized => resolved.len() == 2 && resolved[1].is_multiple_of(8),
                    };
                    assert!(columns == n_components || spare, "{spec:?}: {columns}");
                }
            }
        }
    }
}

#[test]
fn bad_descriptions_are_named() {
    let rows = normal_rows(5, 3, 1.0, 10);
    let message =
        |spec: MaclaurinSpec| spec.resolve(rows.view()).and_then(|s| s.build::<f64>(3)).unwrap_err().to_string();
    let base = MaclaurinSpec::default;
    for (spec, part) in [
        (MaclaurinSpec { n_components: 0, ..base() }, "n_components must be at least 1"),
        (MaclaurinSpec { n_components: 1, ..base() }, "at least 2 beside a constant"),
        (
            MaclaurinSpec { n_components: 2, allocation: AllocationRule::Random, exact_constant: true, ..base() },
            "at least 3 for weights=\"ctr\"",
        ),
        (MaclaurinSpec { max_degree: 65, ..base() }, "max_degree must be at most 64"),
        (MaclaurinSpec { length_scale: 0.0.into(), ..base() }, "length_scale must be a positive"),
        (MaclaurinSpec { kernel: MaclaurinKernel::Polynomial, gamma: -1.0, ..base() }, "gamma"),
        (MaclaurinSpec { kernel: MaclaurinKernel::Coefficients(vec![]), ..base() }, "coefficients"),
        (MaclaurinSpec { weights: Weights::Complex, ..base() }, "weights=\"ctr\" makes them real"),
        (MaclaurinSpec { allocation: AllocationRule::Random, ratio: 1.0, ..base() }, "ratio"),
    ] {
        let message = message(spec);
        assert!(message.contains(part), "{message}");
    }
    let unresolved = base().build::<f64>(3).unwrap_err().to_string();
    assert!(unresolved.contains("resolve the description with rows first"), "{unresolved}");
    let resolved = base().resolve(rows.view()).unwrap();
    assert!(resolved.build::<f64>(4).is_err());
    assert!(base().resolve(normal_rows(1, 3, 1.0, 1).view()).is_err());
    let exponential = MaclaurinSpec { kernel: MaclaurinKernel::Exponential, length_scale: 1e-3.into(), ..base() };
    assert!(exponential.resolve(rows.view()).unwrap_err().to_string().contains("larger length scale"));
    assert!(
        serde_json::from_str::<MaclaurinSpec>(r#"{"kernel":"matern"}"#).unwrap_err().to_string().contains("gaussian")
    );
}

#[test]
fn stacked_and_upsampled_blocks_share_an_allocation() {
    let rows = normal_rows(60, 6, 0.5, 11);
    let columns = |srht| {
        let spec = MaclaurinSpec { n_components: 201, srht, ..Default::default() }.resolve(rows.view()).unwrap();
        spec.resolved.unwrap().columns
    };
    assert_eq!(columns(Sampling::Stacked), columns(Sampling::Upsampled));
}

#[test]
fn moments_of_one_pass_allocate_nearly_as_well_as_all_pairs() {
    let shapes = [
        ("round", normal_rows(400, 24, 24f64.powf(-0.5), 21)),
        ("flat", {
            let mut rows = normal_rows(400, 40, 1.0, 22);
            for (j, mut column) in rows.axis_iter_mut(Axis(1)).enumerate() {
                column *= 0.8 / (1.0 + j as f64);
            }
            rows
        }),
        ("few dimensions", normal_rows(300, 3, 0.6, 23)),
        ("positive", normal_rows(300, 20, 0.2, 24).mapv(f64::abs)),
    ];
    let mut worst: f64 = 1.0;
    for (name, rows) in shapes {
        for base in kernels() {
            for (sketch, weights) in [
                (SketchKind::TensorSrht, Weights::Ctr),
                (SketchKind::TensorSrht, Weights::Real),
                (SketchKind::Gaussian, Weights::Ctr),
                (SketchKind::TensorSketch, Weights::Real),
            ] {
                let spec = MaclaurinSpec { n_components: 301, sketch, weights, center: false, ..base.clone() };
                let found =
                    MaclaurinSpec { statistics: Statistics::OnePass, ..spec.clone() }.resolve(rows.view()).unwrap();
                let best = spec.resolve(rows.view()).unwrap();
                // Both allocations at the costs of all pairs.
                let input = spec.input(rows.ncols(), None).unwrap();
                let means = spec.means(rows.view(), &input, &series_of(&spec)).unwrap();
                let objective = |spec: &MaclaurinSpec| {
                    let columns = &spec.resolved.as_ref().unwrap().columns;
                    let variance: f64 = means
                        .costs
                        .iter()
                        .filter(|cost| (cost.degree as usize) < columns.len())
                        .map(|cost| cost.weight * cost.curve.at(columns[cost.degree as usize]))
                        .sum();
                    variance + means.bias[columns.len() - 1]
                };
                let (found, best) = (objective(&found), objective(&best));
                println!("{name}, {:?}, {sketch:?} {weights:?}: {:.4}", spec.kernel, found / best);
                worst = worst.max(found / best);
                // What one pass promises for signs: half more than the least error at most. Products of normals have tails
                // that 128 draws do not see: four times the least error was met, and they are only required to be sane.
                let allowed = if sketch == SketchKind::Gaussian { 10.0 } else { 1.5 };
                assert!(found <= allowed * best + 1e-12, "{name}, {spec:?}: {found} instead of {best}");
            }
        }
    }
    println!("worst ratio of objectives: {worst}");
}

#[test]
fn complex_to_real_is_real_where_that_has_less_error() {
    // Eight columns of degree 2 in 8 dimensions: a complete block of real columns, half of one of complex draws.
    let square = MaclaurinSpec { kernel: MaclaurinKernel::Coefficients(vec![0.0, 0.0, 1.0]), ..Default::default() };
    for (rows, n_components) in [(normal_rows(50, 8, 0.3, 30), 8), (normal_rows(50, 200, 0.05, 31).mapv(f64::abs), 64)]
    {
        let of = |weights| {
            let spec = MaclaurinSpec { n_components, weights, seed: 5, ..square.clone() };
            spec.resolve(rows.view()).unwrap()
        };
        let (ctr, real) = (of(Weights::Ctr), of(Weights::Real));
        let error = |spec: &MaclaurinSpec| spec.variance(rows.view(), rows.view()).unwrap().sum();
        let drawn = ctr.resolved.as_ref().unwrap().weights;
        println!("{drawn:?}: {} against {} real", error(&ctr), error(&real));
        assert!(error(&ctr) <= error(&real));
        assert_eq!(drawn == Weights::Real, rows.ncols() == 8);
        if drawn == Weights::Real {
            let z = |spec: &MaclaurinSpec| spec.build::<f64>(8).unwrap().transform(rows.view()).unwrap();
            assert_eq!(z(&ctr), z(&real));
        }
        let odd = MaclaurinSpec { weights: Weights::Complex, ..ctr.clone() };
        assert!(odd.build_complex::<f64>(rows.ncols()).unwrap_err().to_string().contains("those of the map"));
    }
}
