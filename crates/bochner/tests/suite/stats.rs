//! Tests of samples keep their level, find what is there, and know their own errors.

use crate::statistics::normal_quantile;
use bochner::feature::{Describe, Directions, DynMap, FourierSpec, OpticalSpec};
use bochner::kernel::{Gaussian, kernel_matrix};
use bochner::metrics::{FeatureSums, mmd2, mmd2_from_features};
use bochner::random::{Role, Seed, Stream};
use bochner::stats::{
    DriftMonitor, Estimate, Forgetting, IndependenceTest, PairSums, SampleSums, TwoSampleTest, pooled_scale,
};
use ndarray::{Array2, ArrayView2, Axis, s};

/// Probability with which a check of this file fails although all is well.
const ALPHA: f64 = 1e-6;

fn normals(seed: u64, n: usize, d: usize, shift: f64) -> Array2<f64> {
    let mut rows = Array2::zeros((n, d));
    Stream::new(Seed::new(seed), Role::Noise, 0).normals_from(0, rows.as_slice_mut().unwrap());
    rows.column_mut(0).mapv_inplace(|v: f64| v + shift);
    rows
}

fn fourier(features: usize, d: usize, length: f64, seed: u64) -> DynMap<f64> {
    let spec = FourierSpec { n_components: features, length_scale: length.into(), seed, ..FourierSpec::default() };
    spec.build(d).unwrap()
}

fn sums(map: &DynMap<f64>, rows: ArrayView2<'_, f64>) -> SampleSums {
    let mut sums = SampleSums::new(map.output_dim(), map.input_dim());
    sums.push_rows(map, rows).unwrap();
    sums
}

fn pairs(maps: (&DynMap<f64>, &DynMap<f64>), x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> PairSums {
    let mut sums = PairSums::new(maps.0.output_dim(), maps.1.output_dim());
    sums.push_rows((maps.0, x), (maps.1, y)).unwrap();
    sums
}

/// Whether a count of rejections agrees with a level.
fn agrees(rejected: usize, repetitions: usize, level: f64) -> bool {
    let (mean, deviation) = (repetitions as f64 * level, (repetitions as f64 * level * (1.0 - level)).sqrt());
    // Half a count for the step of the distribution.
    (rejected as f64 - mean).abs() <= normal_quantile(1.0 - ALPHA / 2.0) * deviation + 0.5
}

#[test]
fn the_estimate_is_the_unbiased_discrepancy_of_features_and_of_kernels() {
    let (x, y) = (normals(1, 700, 3, 0.0), normals(2, 90, 3, 0.4));
    let map = fourier(64, 3, 1.3, 5);
    let features = |rows: &Array2<f64>| {
        let mut sums = FeatureSums::new(64);
        sums.add(map.transform(rows.view()).unwrap().view()).unwrap();
        sums
    };
    let test = TwoSampleTest { permutations: 1, ..TwoSampleTest::default() };
    let found = test.run(&sums(&map, x.view()), &sums(&map, y.view())).unwrap();
    let expected = mmd2_from_features(&features(&x), &features(&y)).unwrap();
    assert!((found.statistic - expected).abs() < 1e-13, "{} {expected}", found.statistic);
    let kernel = Gaussian::new(1.3).unwrap();
    let exact = test.run_exact(&kernel, x.view(), y.view()).unwrap();
    assert!((exact.statistic - mmd2(&kernel, x.view(), y.view()).unwrap()).abs() < 1e-13);
    assert_eq!((exact.sketching_variance, exact.rows), (0.0, (700, 90)));
}

#[test]
fn blocks_of_exact_kernels_give_the_same_estimate() {
    // More rows than blocks: two in each, and rows that fill none.
    let (x, y) = (normals(1, 1501, 1, 0.0), normals(2, 1100, 1, 0.2));
    let kernel = Gaussian::new(1.0).unwrap();
    let test = TwoSampleTest { permutations: 19, ..TwoSampleTest::default() };
    let found = test.run_exact(&kernel, x.view(), y.view()).unwrap();
    assert!((found.statistic - mmd2(&kernel, x.view(), y.view()).unwrap()).abs() < 1e-12);
    assert_eq!(found.pvalue, 0.05);
}

#[test]
fn sums_do_not_know_how_rows_came_and_parts_merge() {
    let (x, y) = (normals(3, 5000, 2, 0.0), normals(4, 2100, 2, 0.1));
    let map = fourier(32, 2, 1.0, 0);
    let whole = sums(&map, x.view());
    let mut cut = SampleSums::new(32, 2);
    for (first, rows) in [(0, 1), (1, 700), (701, 63), (764, 4236)] {
        cut.push_rows(&map, x.slice(s![first..first + rows, ..])).unwrap();
    }
    assert_eq!(whole, cut);
    let mut merged = sums(&map, x.slice(s![..1234, ..]));
    merged.merge(&sums(&map, x.slice(s![1234..2000, ..]))).unwrap();
    merged.push_rows(&map, x.slice(s![2000..2100, ..])).unwrap();
    merged.merge(&sums(&map, x.slice(s![2100.., ..]))).unwrap();
    assert_eq!(merged.count(), 5000);
    let other = sums(&map, y.view());
    let test = TwoSampleTest::default();
    let (once, parts) = (test.run(&whole, &other).unwrap(), test.run(&merged, &other).unwrap());
    assert!((once.statistic - parts.statistic).abs() < 1e-13);
    assert!((once.sketching_variance / parts.sketching_variance - 1.0).abs() < 1e-9);
    assert!((once.sampling_variance / parts.sampling_variance - 1.0).abs() < 0.2, "{once:?} {parts:?}");
    assert!(once.pvalue <= 0.01 && parts.pvalue <= 0.01, "{once:?} {parts:?}");
    assert_eq!(once, test.run(&cut, &other).unwrap());
    assert!(merged.merge(&SampleSums::new(31, 2)).is_err());
    // Pairs: up to 1,024 rows and beyond.
    let maps = (fourier(8, 1, 1.0, 1), fourier(8, 1, 1.0, 2));
    let sides = |rows: std::ops::Range<usize>| {
        let part = x.slice(s![rows, ..]);
        pairs((&maps.0, &maps.1), part.slice(s![.., ..1]), part.slice(s![.., 1..]))
    };
    for rows in [900, 5000] {
        let mut merged = sides(0..400);
        merged.merge(&sides(400..rows)).unwrap();
        let (once, parts) = (sides(0..rows), merged);
        let test = IndependenceTest::default();
        let (a, b) = (test.run(&once).unwrap(), test.run(&parts).unwrap());
        assert_eq!(a.rows, b.rows);
        // Other rows make a tuple, which changes less than other rows would.
        assert!((a.statistic - b.statistic).abs() < a.sampling_variance.sqrt(), "{a:?} {b:?}");
        assert!(rows > 1024 || a == b);
    }
    let mut cut = sides(0..999);
    let part = x.slice(s![999.., ..]);
    cut.push_rows((&maps.0, part.slice(s![.., ..1])), (&maps.1, part.slice(s![.., 1..]))).unwrap();
    assert_eq!(cut, sides(0..5000));
}

#[test]
fn results_do_not_depend_on_threads() {
    let (x, y) = (normals(3, 2000, 2, 0.0), normals(4, 900, 2, 0.1));
    let (map, side) = (fourier(256, 2, 1.0, 0), fourier(32, 1, 1.0, 0));
    let all = || {
        let (x_sums, y_sums) = (sums(&map, x.view()), sums(&map, y.view()));
        let test = TwoSampleTest::default();
        let both = pairs((&side, &side), x.slice(s![.., ..1]), x.slice(s![.., 1..]));
        let few = pairs((&side, &side), y.slice(s![.., ..1]), y.slice(s![.., 1..]));
        let independence = IndependenceTest::default();
        let found = [test.run(&x_sums, &y_sums), independence.run(&both), independence.run(&few)];
        (found.map(Result::unwrap), test.columns(&map, &x_sums, &y_sums).unwrap())
    };
    let on = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(all);
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(5));
}

#[test]
fn the_independence_criterion_is_its_mean_over_quadruples() {
    let n = 8;
    let (x, y) = (normals(5, n, 2, 0.0), normals(6, n, 1, 0.0));
    let maps = (fourier(64, 2, 1.0, 1), fourier(64, 1, 1.0, 2));
    let gram = |map: &DynMap<f64>, rows: &Array2<f64>| {
        let features = map.transform(rows.view()).unwrap();
        features.dot(&features.t())
    };
    let (k, l) = (gram(&maps.0, &x), gram(&maps.1, &y));
    // Gretton et al. 2005: E k(x, x')l(y, y') + E k(x, x') E l(y, y') − 2 E k(x, x')l(y, y''), rows all different.
    let (mut sum, mut count) = (0.0, 0.0);
    for i in 0..n {
        for j in (0..n).filter(|j| *j != i) {
            for q in (0..n).filter(|q| ![i, j].contains(q)) {
                for r in (0..n).filter(|r| ![i, j, q].contains(r)) {
                    sum += k[[i, j]] * (l[[i, j]] + l[[q, r]] - 2.0 * l[[i, q]]);
                    count += 1.0;
                }
            }
        }
    }
    let test = IndependenceTest { permutations: 1, ..IndependenceTest::default() };
    let found = test.run(&pairs((&maps.0, &maps.1), x.view(), y.view())).unwrap();
    assert!((found.statistic - sum / count).abs() < 1e-14, "{} {}", found.statistic, sum / count);
}

/// Rejections at a twentieth among repetitions of a test; 19 permutations are enough for exactly that level.
fn rejected(repetitions: u64, test: impl Fn(u64) -> Estimate) -> usize {
    (0..repetitions).filter(|&r| test(r).pvalue <= 0.05).count()
}

#[test]
fn two_sample_tests_keep_their_level() {
    let test = |seed| TwoSampleTest { permutations: 19, coverage: 0.95, seed };
    // Rows, with a length scale from all of them; blocks of several sizes; samples of very different sizes; fixed rows.
    for (case, (n, m)) in [(30, 40), (650, 1300), (20, 1500), (600, 700)].into_iter().enumerate() {
        let repetitions = if case == 0 { 400 } else { 200 };
        let found = rejected(repetitions, |r| {
            let seed = 1000 * (case as u64 + 1) + 10 * r;
            let (x, y) = (normals(seed, n, 2, 0.0), normals(seed + 1, m, 2, 0.0));
            let whole = case != 3;
            let scale = pooled_scale(x.view(), y.view(), (whole, whole), true, r).unwrap();
            let lengths = bochner::preprocess::LengthScale::PerInput(scale.lengths.clone());
            let map = FourierSpec { n_components: 16, length_scale: lengths, seed: r, ..FourierSpec::default() };
            let map = map.build::<f64>(2).unwrap();
            let gathered = |rows: &Array2<f64>, fixed: usize| {
                let mut sums = SampleSums::new(16, 2);
                sums.push_fixed_rows(&map, rows.slice(s![..fixed, ..])).unwrap();
                sums.push_rows(&map, rows.slice(s![fixed.., ..])).unwrap();
                sums
            };
            let found = test(r).run(&gathered(&x, scale.fixed.0), &gathered(&y, scale.fixed.1)).unwrap();
            assert_eq!(found.rows, (n as u64, m as u64));
            found
        });
        assert!(agrees(found, repetitions as usize, 0.05), "{n} and {m} rows: {found} of {repetitions}");
    }
}

#[test]
fn independence_tests_keep_their_level() {
    for (case, n) in [40, 1100, 2600].into_iter().enumerate() {
        let repetitions = if case == 0 { 400 } else { 200 };
        let found = rejected(repetitions, |r| {
            let seed = 1_000_000 * (case as u64 + 1) + 10 * r;
            let (x, y) = (normals(seed, n, 1, 0.0), normals(seed + 1, n, 2, 0.0));
            let maps = (fourier(8, 1, 1.0, 2 * r), fourier(8, 2, 1.0, 2 * r + 1));
            let test = IndependenceTest { permutations: 19, coverage: 0.95, seed: r };
            test.run(&pairs((&maps.0, &maps.1), x.view(), y.view())).unwrap()
        });
        assert!(agrees(found, repetitions as usize, 0.05), "{n} rows: {found} of {repetitions}");
    }
}

#[test]
fn what_depends_is_found_and_measured_alike_in_tuples_and_among_all_rows() {
    let x = normals(7, 3000, 1, 0.0);
    let y = x.mapv(|v| v * v) + normals(8, 3000, 1, 0.0);
    let maps = (fourier(64, 1, 1.0, 1), fourier(64, 1, 1.0, 2));
    let all = IndependenceTest::default().run(&pairs((&maps.0, &maps.1), x.view(), y.view())).unwrap();
    let few = pairs((&maps.0, &maps.1), x.slice(s![..1000, ..]), y.slice(s![..1000, ..]));
    let few = IndependenceTest::default().run(&few).unwrap();
    assert_eq!((all.pvalue, few.pvalue), (0.001, 0.001));
    let gap = (all.sampling_variance + few.sampling_variance).sqrt();
    assert!((all.statistic - few.statistic).abs() < 4.0 * gap, "{all:?} {few:?}");
    assert!(all.interval.0 > 0.0 && all.sampling_variance < few.sampling_variance);
}

#[test]
fn variances_over_rows_are_those_that_repetitions_have() {
    let map = fourier(64, 2, 1.5, 9);
    let repetitions = 300;
    // Linear part, and both; the second sample in blocks.
    for (n, m, shift) in [(80, 120, 1.0), (150, 1500, 0.4)] {
        let found: Vec<Estimate> = (0..repetitions)
            .map(|r| {
                let (x, y) = (normals(2 * r + 50_000, n, 2, 0.0), normals(2 * r + 90_001, m, 2, shift));
                let test = TwoSampleTest { permutations: 1, ..TwoSampleTest::default() };
                test.run(&sums(&map, x.view()), &sums(&map, y.view())).unwrap()
            })
            .collect();
        let count = repetitions as f64;
        let mean = found.iter().map(|f| f.statistic).sum::<f64>() / count;
        let spread = found.iter().map(|f| (f.statistic - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let told = found.iter().map(|f| f.sampling_variance).sum::<f64>() / count;
        // A sample variance of normals has the relative deviation √(2/(n − 1)); estimates are nearly normal here.
        let tolerance = normal_quantile(1.0 - ALPHA / 2.0) * (2.0 / (count - 1.0)).sqrt();
        assert!((spread / told - 1.0).abs() < tolerance, "{n} {m}: {spread:e} {told:e}");
    }
}

#[test]
fn variances_over_features_are_the_closed_form_where_there_is_one() {
    // Two points: the estimate is 2 − 2k̂(a, b), with four times the variance of k̂.
    let (x, y) = (Array2::from_elem((5, 3), 0.2), Array2::from_elem((4, 3), 0.9));
    let spec =
        |seed| FourierSpec { n_components: 256, projection: Directions::Gaussian, seed, ..FourierSpec::default() };
    let expected = 4.0 * spec(0).variance(x.slice(s![..1, ..]), y.slice(s![..1, ..])).unwrap()[[0, 0]];
    let exact = 2.0 - 2.0 * kernel_matrix(&Gaussian::new(1.0).unwrap(), x.view(), y.view()).unwrap()[[0, 0]];
    let repetitions = 200;
    let found: Vec<Estimate> = (0..repetitions)
        .map(|seed| {
            let map = spec(seed).build::<f64>(3).unwrap();
            TwoSampleTest { permutations: 1, ..TwoSampleTest::default() }
                .run(&sums(&map, x.view()), &sums(&map, y.view()))
                .unwrap()
        })
        .collect();
    let z = normal_quantile(1.0 - ALPHA / 2.0);
    let count = repetitions as f64;
    let mean = found.iter().map(|f| f.statistic).sum::<f64>() / count;
    assert!((mean - exact).abs() < z * (expected / count).sqrt(), "{mean} {exact}");
    // Each variance comes from 64 groups: relative deviation √(2/63), a little more for groups that are not normal.
    let told = found.iter().map(|f| f.sketching_variance).sum::<f64>() / count;
    assert!((told / expected - 1.0).abs() < z * 1.5 * (2.0 / 63.0 / count).sqrt(), "{told:e} {expected:e}");
    // Nothing varies with rows that are all equal: at most rounding does.
    assert!(found.iter().all(|f| f.sampling_variance < 1e-25), "{found:?}");
}

#[test]
fn columns_that_differ_are_named() {
    let x = normals(11, 400, 6, 0.0);
    let mut y = normals(12, 3000, 6, 0.0);
    y.column_mut(4).mapv_inplace(|v| 1.6 * v);
    let map = fourier(256, 6, 3.0, 0);
    let (x, y) = (sums(&map, x.view()), sums(&map, y.view()));
    let shares = TwoSampleTest::default().columns(&map, &x, &y).unwrap();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12 && shares[4] > 0.5, "{shares:?}");
}

#[test]
fn monitors_keep_their_rate_and_see_changes() {
    let (d, rate) = (50, 5e-3);
    let optical: DynMap<f64> = OpticalSpec { n_components: 64, ..OpticalSpec::default() }.build(d).unwrap();
    for map in [fourier(128, d, 10.0, 0), optical] {
        let reference = normals(20, 500, d, 0.0);
        let mut monitor = DriftMonitor::new(map.clone(), reference.view(), rate, Forgetting::default(), 0).unwrap();
        let rows = 40_000;
        for part in 0..8 {
            monitor.update(normals(30 + part, rows / 8, d, 0.0).view()).unwrap();
        }
        let expected = rate * rows as f64;
        assert_eq!(monitor.count(), rows as u64);
        assert!((monitor.alarms() as f64 / expected - 1.0).abs() < 0.2, "{} of {expected}", monitor.alarms());
        let mut shifted = normals(40, 500, d, 0.0);
        shifted.slice_mut(s![.., ..5]).mapv_inplace(|v| v + 1.0);
        assert!(monitor.update(shifted.view()).unwrap().iter().take(500).any(|alarm| *alarm));
    }
}

#[test]
fn monitors_do_not_know_how_a_stream_is_cut() {
    let rows = normals(50, 3000, 3, 0.0);
    let new = || {
        let map = fourier(32, 3, 2.0, 0);
        DriftMonitor::new(map, rows.slice(s![..100, ..]), 0.01, Forgetting::default(), 0).unwrap()
    };
    let (mut whole, mut cut) = (new(), new());
    let once = whole.update(rows.view()).unwrap();
    let parts: Vec<bool> = rows.axis_chunks_iter(Axis(0), 7).flat_map(|rows| cut.update(rows).unwrap()).collect();
    assert!(once == parts && once.contains(&true));
    assert_eq!(
        (whole.threshold().to_bits(), whole.statistic().to_bits()),
        (cut.threshold().to_bits(), cut.statistic().to_bits())
    );
}

#[test]
fn what_cannot_be_tested_is_told() {
    let map = fourier(16, 2, 1.0, 0);
    let rows = normals(60, 50, 2, 0.0);
    let told = |outcome: bochner::Result<Estimate>| outcome.unwrap_err().to_string();
    let (one, many) = (sums(&map, rows.slice(s![..1, ..])), sums(&map, rows.view()));
    let test = TwoSampleTest::default();
    assert_eq!(told(test.run(&one, &many)), "number of rows of x must be at least 2, got 1");
    assert!(told(TwoSampleTest { coverage: 1.0, ..test }.run(&many, &many)).contains("between 0 and 1"));
    assert!(told(TwoSampleTest { permutations: 0, ..test }.run(&many, &many)).contains("permutations"));
    assert!(test.run(&many, &SampleSums::new(8, 2)).is_err());
    let mut damaged = rows.clone();
    damaged[[33, 1]] = f64::NAN;
    let message = SampleSums::new(16, 2).push_rows(&map, damaged.view()).unwrap_err().to_string();
    assert!(message.contains("row 33, column 1"), "{message}");
    let few = pairs((&map, &map), rows.slice(s![..7, ..]), rows.slice(s![..7, ..]));
    assert!(told(IndependenceTest::default().run(&few)).contains("at least 8"));
    let equal = Array2::from_elem((50, 2), 1.0);
    let new = |rows: &Array2<f64>, rate, slow| {
        let forgetting = Forgetting { fast: 0.02, slow };
        DriftMonitor::new(map.clone(), rows.view(), rate, forgetting, 0).map(drop).map_err(|error| error.to_string())
    };
    assert!(new(&equal, 1e-2, 0.005).unwrap_err().contains("all equal"));
    assert!(new(&rows, 0.5, 0.005).unwrap_err().contains("false_alarm_rate"));
    assert!(new(&rows, 1e-2, 0.02).unwrap_err().contains("slow < fast"));
    // Few rows have a p-value, and no interval.
    let found = test.run(&sums(&map, rows.slice(s![..3, ..])), &sums(&map, rows.slice(s![3..6, ..]))).unwrap();
    assert!(found.pvalue > 0.0 && found.interval == (f64::NEG_INFINITY, f64::INFINITY));
    // Rows that are all equal are no evidence for anything.
    let equal = sums(&map, equal.view());
    assert_eq!(test.run(&equal, &equal).unwrap().pvalue, 1.0);
}

/// The study behind `docs/mathematics/tests.md`: 1,000 repetitions of every test under the hypothesis, and its power beside that
/// of the tests on all pairs of rows.
#[test]
#[ignore = "minutes: make check-long"]
fn a_thousand_repetitions_keep_the_level_and_have_the_power_of_all_pairs() {
    let share = |count: usize, of: u64| count as f64 / of as f64;
    let level = |name: &str, test: &dyn Fn(u64) -> Estimate| {
        let found = share((0..1000).filter(|&r| test(r).pvalue <= 0.05).count(), 1000);
        println!("{name}: {:.1} % at 5 %", 100.0 * found);
        assert!((0.035..=0.065).contains(&found), "{name}: {found}");
    };
    let two = |r: u64, (n, m): (usize, usize), d: usize, shift: f64, features: usize| {
        let (x, y) = (normals(4 * r + 1_000_000, n, d, 0.0), normals(4 * r + 1_000_001, m, d, shift));
        let scale = pooled_scale(x.view(), y.view(), (true, true), false, r).unwrap().lengths[0];
        let map = fourier(features, d, scale, r);
        let test = TwoSampleTest { permutations: 199, coverage: 0.95, seed: r };
        (test.run(&sums(&map, x.view()), &sums(&map, y.view())).unwrap(), x, y, scale, test)
    };
    level("two samples, rows", &|r| two(r, (100, 150), 5, 0.0, 128).0);
    level("two samples, blocks", &|r| two(r, (1500, 2500), 5, 0.0, 64).0);
    level("two samples, unequal", &|r| two(r, (50, 3000), 5, 0.0, 64).0);
    level("two samples, exact kernel", &|r| {
        let (x, y) = (normals(4 * r + 2_000_000, 60, 5, 0.0), normals(4 * r + 2_000_001, 80, 5, 0.0));
        let test = TwoSampleTest { permutations: 199, coverage: 0.95, seed: r };
        test.run_exact(&bochner::kernel::Polynomial::new(3, 0.2, 1.0).unwrap(), x.view(), y.view()).unwrap()
    });
    let sides = |r: u64, n: usize, d: usize, strength: f64, features: usize| {
        let (x, mut y) = (normals(4 * r + 3_000_000, n, d, 0.0), normals(4 * r + 3_000_001, n, d, 0.0));
        for i in 0..n {
            y[[i, 0]] += strength * (x[[i, 0]] * x[[i, 0]] - 1.0);
        }
        let length = (2.0 * d as f64).sqrt();
        let maps = (fourier(features, d, length, 2 * r), fourier(features, d, length, 2 * r + 1));
        let test = IndependenceTest { permutations: 199, coverage: 0.95, seed: r };
        (test.run(&pairs((&maps.0, &maps.1), x.view(), y.view())).unwrap(), x, y, length)
    };
    level("independence, rows", &|r| sides(r, 100, 5, 0.0, 128).0);
    level("independence, tuples", &|r| sides(r, 2000, 5, 0.0, 32).0);
    // n = 500, d = 10.
    let repetitions = 300;
    let (mut features, mut pairwise) = (0, 0);
    for r in 0..repetitions {
        let (found, x, y, scale, test) = two(r, (500, 500), 10, 0.22, 1024);
        features += usize::from(found.pvalue <= 0.05);
        let exact = test.run_exact(&Gaussian::new(scale).unwrap(), x.view(), y.view()).unwrap();
        pairwise += usize::from(exact.pvalue <= 0.05);
    }
    let power = (share(features, repetitions), share(pairwise, repetitions));
    println!("two samples, power: {:.1} % by features, {:.1} % by all pairs", 100.0 * power.0, 100.0 * power.1);
    assert!((0.4..0.9).contains(&power.1) && (power.0 - power.1).abs() <= 0.05, "{power:?}");
    let repetitions = 200;
    let (mut features, mut pairwise) = (0, 0);
    for r in 0..repetitions {
        let (found, x, y, length) = sides(r, 500, 5, 0.5, 1024);
        features += usize::from(found.pvalue <= 0.05);
        pairwise += usize::from(exact_independence(&x, &y, length, r) <= 0.05);
    }
    let power = (share(features, repetitions), share(pairwise, repetitions));
    println!("independence, power: {:.1} % by features, {:.1} % by all pairs", 100.0 * power.0, 100.0 * power.1);
    assert!((0.4..0.95).contains(&power.1) && (power.0 - power.1).abs() <= 0.05, "{power:?}");
}

/// The p-value of `tr KHLH` by 199 permutations of all rows.
fn exact_independence(x: &Array2<f64>, y: &Array2<f64>, length: f64, seed: u64) -> f64 {
    let n = x.nrows();
    let kernel = Gaussian::new(length).unwrap();
    let centered = |rows: &Array2<f64>| {
        let k = kernel_matrix(&kernel, rows.view(), rows.view()).unwrap();
        let means = k.mean_axis(Axis(0)).unwrap();
        let all = means.mean().unwrap();
        Array2::from_shape_fn((n, n), |(i, j)| k[[i, j]] - means[i] - means[j] + all)
    };
    let (k, l) = (centered(x), centered(y));
    let with = |order: &[u32]| -> f64 {
        (0..n).map(|i| (0..n).map(|j| k[[i, j]] * l[[order[i] as usize, order[j] as usize]]).sum::<f64>()).sum()
    };
    let found = with(&(0..n as u32).collect::<Vec<_>>());
    let as_far =
        (0..199).filter(|&p| with(&Stream::new(Seed::new(seed), Role::Order, p).permutation(n)) >= found).count();
    (as_far + 1) as f64 / 200.0
}
