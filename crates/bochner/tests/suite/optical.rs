//! Optical features: the device's edges, the linear mode, complex rows, and the bias of the structured map.

use crate::statistics::normal_quantile;
use bochner::Complex;
use bochner::feature::{
    Camera, Describe, Device, DotSquare, Encoding, FeatureMap, Optical, OpticalProjection, OpticalSpec, Recovered,
    Simulator, Spec,
};
use bochner::kernel::{Kernel, kernel_matrix};
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::projection::{Gaussian, HadamardChain, MatrixFree, Projection};
use bochner::random::{Role, Seed, Stream};
use ndarray::{Array2, ArrayView1, Axis, array};

const ALPHA: f64 = 1e-6;

fn normal_rows(n: usize, d: usize) -> Array2<f64> {
    let mut data = vec![0.0; n * d];
    Stream::new(Seed::new(12), Role::Noise, 3).normals_from(0, &mut data);
    Array2::from_shape_vec((n, d), data).unwrap()
}

/// Rows of every kind in `d` dimensions: dense, sparse, parallel, orthogonal; unit length.
fn unit_pairs(d: usize) -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
    let unit = |v: Vec<f64>| {
        let norm = v.iter().map(|a| a * a).sum::<f64>().sqrt();
        v.into_iter().map(|a| a / norm).collect::<Vec<_>>()
    };
    let normals = |index| {
        let mut v = vec![0.0; d];
        Stream::new(Seed::new(21), Role::Noise, index).normals_from(0, &mut v);
        unit(v)
    };
    let (a, b) = (normals(1), normals(2));
    let dot: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    let across = unit(a.iter().zip(&b).map(|(a, b)| b - dot * a).collect());
    let half = a.iter().zip(&across).map(|(a, c)| (a + c) * 0.5f64.sqrt()).collect();
    let basis = |j: usize| (0..d).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>();
    vec![
        ("dense, parallel", a.clone(), a.clone()),
        ("dense, 45°", a.clone(), half),
        ("dense, orthogonal", a, across),
        ("sparse, parallel", basis(0), basis(0)),
        ("sparse, orthogonal", basis(0), basis(d - 1)),
    ]
}

/// Relative bias of structured features of these rows and its standard error, from blocks of `d'` features.
fn structured_bias(m: f64, d: usize, x: &[f64], y: &[f64], blocks: usize, seeds: u64) -> (f64, f64) {
    let padded = d.next_power_of_two();
    let exact = bochner::kernel::Optical::new(m, 0.0).unwrap().evaluate(x, y);
    let rows = Array2::from_shape_vec((2, d), [x, y].concat()).unwrap();
    let mut averages = Vec::new();
    for seed in 0..seeds {
        let spec = OpticalSpec {
            n_components: padded * blocks,
            exponent: m,
            projection: OpticalProjection::Structured,
            seed: 900 + seed,
            ..Default::default()
        };
        let z = spec.build::<f64>(d).unwrap().transform(rows.view()).unwrap();
        let products = &z.row(0) * &z.row(1) * (padded * blocks) as f64;
        // Features of a block are not independent; averages of blocks are.
        averages
            .extend(products.to_vec().chunks(padded).map(|block| block.iter().sum::<f64>() / padded as f64 / exact));
    }
    let n = averages.len() as f64;
    let mean = averages.iter().sum::<f64>() / n;
    let spread = averages.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean - 1.0, (spread / n).sqrt())
}

/// Rows beyond 1,024 dimensions are mixed in pieces in the first round; the sparsest rows would show it.
#[test]
fn one_hot_rows_of_many_dimensions_keep_mean_and_spread() {
    let (d, blocks) = (2048usize, 400);
    let one_hot = |j: usize| (0..d).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>();
    let z = normal_quantile(1.0 - ALPHA / 6.0);
    // The same coordinate, two of one piece, two of different pieces.
    for (i, j) in [(0, 0), (0, 1), (0, 64)] {
        let t = f64::from(u8::from(i == j));
        let mixed = if i / 64 == j / 64 { 1.0 / 64.0 } else { 0.0 };
        let (d, n) = (d as f64, blocks as f64);
        // The features' own factor (1 + 1/d') and the formula of docs/mathematics/optical.md.
        let mean = (1.0 + 1.0 / d) * (1.0 + t - (1.0 + 2.0 * t) / d + 2.0 * mixed / d) / (1.0 + t);
        let (bias, error) = structured_bias(2.0, 2048, &one_hot(i), &one_hot(j), blocks, 1);
        assert!((bias + 1.0 - mean).abs() <= z * error, "{i}, {j}: {bias} ± {error}");
        let independent = (4.0 * (1.0 + 4.0 * t + t * t) / (1.0 + t).powi(2) - 1.0) / d;
        let found = n * error * error / independent;
        // About 0.24 to 0.43, give or take a tenth of it.
        assert!(found < 0.7, "{i}, {j}: {found} of the variance of independent draws");
    }
}

/// The table of `docs/mathematics/optical.md`; prints itself.
#[test]
#[ignore = "minutes: bias of the structured map over dimensions and exponents"]
fn structured_bias_table() {
    for m in [0.5, 1.0, 1.7, 2.0, 3.0, 4.0] {
        for d in [4usize, 13, 16, 64, 256] {
            let padded = d.next_power_of_two();
            for (kind, x, y) in unit_pairs(d) {
                let (bias, error) = structured_bias(m, d, &x, &y, (1 << 20) / padded, 16);
                let unit = padded as f64;
                println!("| {m} | {d} | {kind} | {:.3} ± {:.3} |", bias * unit, error * unit);
            }
        }
    }
}

#[test]
fn structured_features_keep_within_the_documented_bias() {
    // Ten features of it are averaged over enough blocks that the allowance is several standard errors wide.
    for (m, d) in [(1.0, 16usize), (2.0, 16), (2.0, 13), (3.0, 16)] {
        let padded = d.next_power_of_two();
        for (kind, x, y) in unit_pairs(d) {
            let (bias, error) = structured_bias(m, d, &x, &y, (1 << 18) / padded, 1);
            let allowed = (0.25 * m * m + 0.125 * m) / padded as f64;
            let z = normal_quantile(1.0 - ALPHA / 40.0);
            assert!(bias.abs() <= allowed + z * error, "m = {m}, d = {d}, {kind}: {bias} ± {error}, allowed {allowed}");
        }
    }
}

#[test]
fn automatic_projections_are_structured_only_where_nobody_sees_it() {
    let choose = |d, count, m| OpticalProjection::Auto.choose(d, count, m);
    assert_eq!(choose(3, 10_000, 2.0), OpticalProjection::Dense);
    assert_eq!(choose(64, 100_000, 2.0), OpticalProjection::Dense);
    assert_eq!(choose(784, 10_000, 2.0), OpticalProjection::Structured);
    assert_eq!(choose(65_536, 65_536, 2.0), OpticalProjection::Structured);
    assert_eq!(choose(100, 10_000_000, 2.0), OpticalProjection::MatrixFree);
    assert_eq!(OpticalProjection::Dense.choose(1 << 16, 1 << 16, 2.0), OpticalProjection::Dense);
    let spec = OpticalSpec { n_components: 5000, ..Default::default() };
    let resolved = spec.resolve(normal_rows(4, 500).view()).unwrap();
    assert_eq!(resolved.projection, OpticalProjection::Structured);
}

#[test]
fn matrix_free_and_dense_features_have_the_same_bits() {
    for (exponent, binarize) in [(2.0, None), (1.0, Some(0.2)), (1.7, None)] {
        for d in [3, 70, 300] {
            let rows = normal_rows(90, d).mapv(|v| v as f32);
            let features = |projection| {
                let spec =
                    OpticalSpec { n_components: 1100, exponent, binarize, projection, seed: 5, ..Default::default() };
                spec.build::<f32>(d).unwrap().transform(rows.view()).unwrap()
            };
            assert_eq!(features(OpticalProjection::Dense), features(OpticalProjection::MatrixFree));
        }
    }
}

#[test]
fn rows_of_zeros_have_no_light_and_a_bias_gives_them_some() {
    let rows = array![[0.0, 0.0], [1.0, 2.0]];
    for exponent in [0.5, 1.0, 2.0, 3.0] {
        for projection in [OpticalProjection::Dense, OpticalProjection::MatrixFree, OpticalProjection::Structured] {
            let spec = OpticalSpec { n_components: 40, exponent, projection, ..Default::default() };
            let z = spec.build::<f64>(2).unwrap().transform(rows.view()).unwrap();
            assert!(z.row(0).iter().all(|&v| v == 0.0) && z.row(1).iter().all(|&v| v > 0.0), "{spec:?}");
            assert_eq!(spec.kernel().unwrap().evaluate(&[0.0, 0.0], &[1.0, 2.0]), 0.0);
            let spec = OpticalSpec { bias: 1.0, ..spec };
            let z = spec.build::<f64>(2).unwrap().transform(rows.view()).unwrap();
            // Few signs may cancel exactly in a structured chain of four outputs.
            let lit = |row: ndarray::ArrayView1<'_, f64>| {
                if projection == OpticalProjection::Structured { row.sum() > 0.0 } else { row.iter().all(|&v| v > 0.0) }
            };
            assert!(z.rows().into_iter().all(lit), "{spec:?}");
        }
    }
    // A camera that saw nothing has nothing to adjust to.
    let spec = OpticalSpec { camera_bits: Some(8), n_components: 10, ..Default::default() };
    let spec = spec.resolve(array![[0.0, 0.0]].view()).unwrap();
    assert_eq!(spec.gain, Some(1.0));
}

/// Intensities of one row from a device.
fn expose<D: Device<Real = f64>>(device: &D, row: &[f64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; device.output_dim()];
    let count = out.len();
    device.expose(Tile::new(row, 1, row.len()), 0..count, TileMut::new(&mut out, 1, count), &mut Workspace::new());
    out
}

fn projection(d: usize, count: usize) -> Gaussian<f64, Complex<f64>> {
    Gaussian::new(Seed::new(4), d, count).unwrap()
}

#[test]
fn cameras_round_to_the_nearest_level_and_saturate() {
    let row = [0.5, -1.0, 2.0];
    let light = expose(&Simulator::new(projection(3, 500)), &row);
    for (bits, gain) in [(1, 0.2), (1, 5.0), (4, 1.0), (8, 2.0), (16, 100.0)] {
        let device = Simulator::new(projection(3, 500)).with_camera(Camera::new(bits, gain).unwrap());
        let levels = f64::from((1u32 << bits) - 1);
        let mut saturated = 0;
        for (seen, light) in expose(&device, &row).iter().zip(&light) {
            let level = (gain * light + 0.5).floor().min(levels);
            assert_eq!(*seen, level / gain, "{bits} bits, gain {gain}");
            saturated += usize::from(level == levels);
        }
        // The first three are chosen so that some pixels saturate.
        assert_eq!(saturated > 0, bits <= 4, "{bits} bits, gain {gain}");
    }
}

#[test]
fn the_gain_sends_the_quantile_to_the_highest_level() {
    let intensities: Vec<f64> = (1..=1000).map(f64::from).collect();
    for (bits, quantile, level) in [(8, 0.999, 999.0), (8, 1.0, 1000.0), (1, 0.5, 500.0), (12, 0.0001, 1.0)] {
        let camera = Camera::calibrated(bits, quantile, &intensities).unwrap();
        assert_eq!(camera.gain(), f64::from((1u32 << bits) - 1) / level);
    }
    // Of the light of rows like those it was calibrated on, about one pixel in a thousand saturates.
    let rows = normal_rows(200, 5);
    let spec = OpticalSpec { camera_bits: Some(8), n_components: 1000, seed: 2, ..Default::default() };
    let spec = spec.resolve(rows.view()).unwrap();
    let gain = spec.gain.unwrap();
    let z = spec.build::<f64>(5).unwrap().transform(rows.view()).unwrap();
    let brightest = 255.0 / gain / 1000f64.sqrt();
    let saturated = z.iter().filter(|&&v| v >= brightest * (1.0 - 1e-12)).count();
    assert!((150..=600).contains(&saturated), "{saturated} of 200,000");
}

#[test]
fn rounding_to_many_bits_changes_little_and_to_one_bit_leaves_two_values() {
    let rows = normal_rows(20, 6);
    let build = |camera_bits| {
        let spec = OpticalSpec { camera_bits, n_components: 300, seed: 1, quantile: 1.0, ..Default::default() };
        let spec = spec.resolve(rows.view()).unwrap();
        (spec.gain, spec.build::<f64>(6).unwrap().transform(rows.view()).unwrap())
    };
    let (_, light) = build(None);
    let (gain, fine) = build(Some(16));
    let half_level = 0.5 / gain.unwrap() / 300f64.sqrt();
    assert!((&fine - &light).iter().all(|e| e.abs() <= half_level * (1.0 + 1e-9)));
    let (gain, coarse) = build(Some(1));
    let level = 1.0 / gain.unwrap() / 300f64.sqrt();
    assert!(coarse.iter().all(|&v| v == 0.0 || (v - level).abs() < 1e-12 * level));
    assert!(coarse.iter().any(|&v| v > 0.0));
}

#[test]
fn read_noise_has_its_deviation_and_is_clipped_at_darkness() {
    let (count, noise) = (40_000, 3.0);
    let light = Simulator::new(projection(2, count));
    let camera = Camera::new(24, 50.0).unwrap().with_noise(noise, Seed::new(9)).unwrap();
    let noisy = light.clone().with_camera(camera);
    let row = [3.0, 4.0];
    let mut errors = Vec::new();
    for (seen, light) in expose(&noisy, &row).iter().zip(expose(&light, &row)) {
        assert!(*seen >= 0.0);
        // Far from darkness and from saturation.
        if 50.0 * light > 10.0 * noise && 50.0 * light < 1e7 {
            errors.push(50.0 * (seen - light));
        }
    }
    let n = errors.len() as f64;
    assert!(n > 0.9 * count as f64);
    // Rounding adds a uniform error of variance 1/12, all but independent of the noise.
    let variance = noise * noise + 1.0 / 12.0;
    let z = normal_quantile(1.0 - ALPHA / 4.0);
    let mean = errors.iter().sum::<f64>() / n;
    let spread = errors.iter().map(|e| e * e).sum::<f64>() / n;
    assert!(mean.abs() < z * (variance / n).sqrt(), "{mean}");
    assert!((spread - variance).abs() < z * (2.0 * variance * variance / n).sqrt(), "{spread} of {variance}");
}

#[test]
fn noise_belongs_to_the_row_and_the_pixel() {
    let rows = normal_rows(130, 7);
    let spec =
        OpticalSpec { n_components: 700, noise: 2.0, camera_bits: Some(8), gain: Some(20.0), ..Default::default() };
    for projection in [OpticalProjection::Dense, OpticalProjection::MatrixFree, OpticalProjection::Structured] {
        let spec: Spec = OpticalSpec { projection, seed: 8, ..spec.clone() }.into();
        let map = spec.build::<f64>(7).unwrap();
        let whole = map.transform(rows.view()).unwrap();
        for size in [1, 7, 64, 65] {
            let mut out = Array2::zeros(whole.raw_dim());
            for (rows, out) in rows.axis_chunks_iter(Axis(0), size).zip(out.axis_chunks_iter_mut(Axis(0), size)) {
                map.transform_into(rows, out).unwrap();
            }
            assert_eq!(out, whole, "blocks of {size}");
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
        assert_eq!(pool.install(|| map.transform(rows.view()).unwrap()), whole);
        // A row in another place and another neighbourhood reads the same; another row does not share its noise.
        let moved = map.transform(rows.select(Axis(0), &[100, 3]).view()).unwrap();
        assert_eq!((moved.row(0), moved.row(1)), (whole.row(100), whole.row(3)));
    }
    let dark = array![[1e-9, 0.0], [0.0, 1e-9]];
    let spec =
        OpticalSpec { n_components: 200, noise: 1.0, projection: OpticalProjection::Dense, ..Default::default() };
    let z = spec.build::<f64>(2).unwrap().transform(dark.view()).unwrap();
    let same =
        |a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>| a.iter().zip(&b).filter(|(a, b)| a == b && **a > 0.0).count();
    assert_eq!(same(z.row(0), z.row(1)), 0);
    let other = OpticalSpec { seed: 1, ..spec }.build::<f64>(2).unwrap().transform(dark.view()).unwrap();
    assert_eq!(same(z.row(0), other.row(0)), 0);
}

#[test]
fn constant_columns_shift_the_light_of_all_rows_alike() {
    // A column that is always above the threshold acts as a bias of one.
    let rows = normal_rows(30, 4);
    let mut constant = Array2::from_elem((30, 5), 9.0);
    constant.slice_mut(ndarray::s![.., ..4]).assign(&rows);
    let spec = OpticalSpec {
        n_components: 64,
        binarize: Some(0.0),
        seed: 3,
        projection: OpticalProjection::Dense,
        ..Default::default()
    };
    let with_column = spec.build::<f64>(5).unwrap().transform(constant.view()).unwrap();
    let with_bias = OpticalSpec { bias: 1.0, ..spec.clone() };
    assert_eq!(with_column, with_bias.build::<f64>(4).unwrap().transform(rows.view()).unwrap());
    let (a, b) = (spec.kernel().unwrap(), with_bias.kernel().unwrap());
    let (a, b) = (kernel_matrix(&*a, constant.view(), constant.view()), kernel_matrix(&*b, rows.view(), rows.view()));
    assert_eq!(a.unwrap(), b.unwrap());
}

#[test]
fn encoded_rows_estimate_the_kernel_of_their_codes() {
    let rows = normal_rows(6, 3);
    let spec = OpticalSpec {
        n_components: 40_000,
        exponent: 1.0,
        encoding: Some(Encoding::Thermometer { levels: 4, low: vec![], high: vec![] }),
        projection: OpticalProjection::Dense,
        ..Default::default()
    };
    assert!(spec.build::<f64>(3).is_err(), "the range is not known yet");
    let spec = spec.resolve(rows.view()).unwrap();
    let z = spec.build::<f64>(3).unwrap().transform(rows.view()).unwrap();
    let exact = kernel_matrix(&*spec.kernel().unwrap(), rows.view(), rows.view()).unwrap();
    let variance = spec.variance(rows.view(), rows.view()).unwrap();
    let quantile = normal_quantile(1.0 - ALPHA / 42.0);
    for ((e, k), v) in z.dot(&z.t()).iter().zip(&exact).zip(&variance) {
        assert!((e - k).abs() <= quantile * v.sqrt() + 1e-12, "{e} {k}");
    }
    assert!(exact.iter().any(|&k| k > 1.0));
}

#[test]
fn the_linear_mode_recovers_a_real_normal_projection() {
    let (d, references, count) = (5, 3, 4000);
    let recovered = Recovered::new(Simulator::new(projection(d + references, count)), references).unwrap();
    assert_eq!((recovered.input_dim(), recovered.output_dim()), (d, count));
    let project = |rows: &Array2<f64>| {
        let mut out = Array2::zeros((rows.nrows(), count));
        let panel = recovered.panel();
        let mut work = Workspace::new();
        for start in (0..count).step_by(panel) {
            let columns = start..(start + panel).min(count);
            let mut window = vec![0.0; rows.nrows() * columns.len()];
            let tile = TileMut::new(&mut window, rows.nrows(), columns.len());
            recovered.project_tile(
                Tile::new(rows.as_slice().unwrap(), rows.nrows(), d),
                columns.clone(),
                tile,
                &mut work,
            );
            let window = Array2::from_shape_vec((rows.nrows(), columns.len()), window).unwrap();
            out.slice_mut(ndarray::s![.., columns]).assign(&window);
        }
        out
    };
    // Linear: the projection of a sum is the sum of the projections.
    let rows = normal_rows(2, d);
    let sum = (&rows.row(0) + &rows.row(1)).insert_axis(Axis(0));
    let (parts, whole) = (project(&rows), project(&sum));
    let worst = (&parts.row(0) + &parts.row(1) - whole.row(0)).iter().fold(0.0f64, |w, e| w.max(e.abs()));
    assert!(worst < 1e-9, "{worst}");
    // Standard normal directions: second moments of the rows of the identity.
    let weights = project(&Array2::eye(d));
    let (n, z) = (count as f64, normal_quantile(1.0 - ALPHA / 30.0));
    for i in 0..d {
        for j in 0..=i {
            let moment = weights.row(i).dot(&weights.row(j)) / n;
            let (expected, variance) = if i == j { (1.0, 2.0) } else { (0.0, 1.0) };
            assert!((moment - expected).abs() < z * (variance / n).sqrt(), "({i}, {j}): {moment}");
        }
    }
    assert!(Recovered::new(Simulator::new(projection(4, 10)), 4).is_err());
    assert!(Recovered::new(Simulator::new(projection(4, 10)), 0).is_err());
    // A camera that saw no reference light gives nothing.
    let dark = Simulator::new(projection(4, 10)).with_camera(Camera::new(1, 1e-9).unwrap());
    let dark = Recovered::new(dark, 1).unwrap();
    let mut out = [f64::NAN; 10];
    dark.project_tile(Tile::new(&[1.0, 2.0, 3.0], 1, 3), 0..10, TileMut::new(&mut out, 1, 10), &mut Workspace::new());
    assert_eq!(out, [0.0; 10]);
}

#[test]
fn the_appended_squared_norm_leaves_the_squared_product() {
    let rows = array![[1.0, 2.0, -0.5], [0.5, -1.0, 2.0], [0.0, 0.0, 0.0]];
    let (count, seeds, bias) = (200, 400, 0.25);
    let mut sum = Array2::<f64>::zeros((3, 3));
    for seed in 0..seeds {
        let projection = Gaussian::<f64, Complex<f64>>::new(Seed::new(300 + seed), 4, count).unwrap();
        let map = DotSquare::new(Optical::new(projection, 2.0).unwrap().with_bias(bias).unwrap()).unwrap();
        let z = map.transform(rows.view()).unwrap();
        assert_eq!(z.ncols(), count + 1);
        sum += &map.estimate(z.view(), z.view()).unwrap();
    }
    let kernel = bochner::kernel::Optical::new(2.0, bias).unwrap();
    let variance = bochner::variance::optical_matrix(&kernel, count, rows.view(), rows.view()).unwrap();
    let z = normal_quantile(1.0 - ALPHA / 12.0);
    for i in 0..3 {
        for j in 0..3 {
            let exact = (rows.row(i).dot(&rows.row(j)) + bias).powi(2);
            let mean = sum[[i, j]] / seeds as f64;
            let tolerance = z * (variance[[i, j]] / seeds as f64).sqrt();
            assert!((mean - exact).abs() <= tolerance + 1e-12, "({i}, {j}): {mean} {exact} ± {tolerance}");
        }
    }
    assert!(DotSquare::new(Optical::new(projection(3, 5), 1.0).unwrap()).is_err());
}

#[test]
fn kernels_of_complex_rows_are_the_mean_of_products_of_moduli() {
    let c = Complex::new;
    let (x, y) = ([c(1.0, 0.5), c(-0.3, 0.8)], [c(0.2, -1.0), c(0.7, 0.1)]);
    let count = 200_000;
    for m in [1.0, 2.0, 2.6] {
        let kernel = bochner::kernel::Optical::new(m, 0.0).unwrap();
        let exact = kernel.evaluate_complex(&x, &y);
        let variance = kernel.doubled().evaluate_complex(&x, &y) - exact * exact;
        let mut u = vec![0.0; 4 * count];
        Stream::new(Seed::new(6), Role::Direction, 0).normals_from(0, &mut u);
        let modulus = |u: &[f64], x: &[Complex<f64>; 2]| {
            ((c(u[0], u[1]) * x[0] + c(u[2], u[3]) * x[1]) * 0.5f64.sqrt()).norm().powf(m)
        };
        let mean = u.chunks(4).map(|u| modulus(u, &x) * modulus(u, &y)).sum::<f64>() / count as f64;
        let tolerance = normal_quantile(1.0 - ALPHA / 6.0) * (variance / count as f64).sqrt();
        assert!((mean - exact).abs() < tolerance, "m = {m}: {mean} {exact} ± {tolerance}");
    }
    // Real rows are complex rows without imaginary parts; a common phase changes nothing.
    let real = bochner::kernel::Optical::new(1.5, 0.4).unwrap();
    let (a, b) = ([0.5, -1.0], [2.0, 0.3]);
    let lifted = |r: &[f64; 2]| r.map(|v| c(v, 0.0));
    let found = real.evaluate_complex(&lifted(&a), &lifted(&b));
    assert!((found - real.evaluate(&a, &b)).abs() < 1e-14 * found);
    let plain = bochner::kernel::Optical::new(1.5, 0.0).unwrap();
    let turned = x.map(|v| v * c(0.6, 0.8));
    assert!((plain.evaluate_complex(&turned, &y) / plain.evaluate_complex(&x, &y) - 1.0).abs() < 1e-14);
    let matrix = plain.complex_matrix(array![[x[0], x[1]]].view(), array![[y[0], y[1]]].view()).unwrap();
    assert_eq!(matrix[[0, 0]], plain.evaluate_complex(&x, &y));
    assert!(plain.complex_matrix(array![[c(f64::NAN, 0.0)]].view(), array![[c(1.0, 0.0)]].view()).is_err());
    assert!(plain.complex_matrix(array![[x[0]]].view(), array![[y[0], y[1]]].view()).is_err());
}

#[test]
fn descriptions_out_of_range_are_refused_by_name() {
    let good = OpticalSpec { n_components: 8, ..Default::default() };
    let cases = [
        (OpticalSpec { n_components: 0, ..good.clone() }, "n_components"),
        (OpticalSpec { exponent: 0.0, ..good.clone() }, "exponent"),
        (OpticalSpec { exponent: f64::NAN, ..good.clone() }, "exponent"),
        (OpticalSpec { bias: -1.0, ..good.clone() }, "bias"),
        (OpticalSpec { noise: -1.0, ..good.clone() }, "noise"),
        (OpticalSpec { binarize: Some(f64::NAN), ..good.clone() }, "binarize"),
        (OpticalSpec { camera_bits: Some(0), gain: Some(1.0), ..good.clone() }, "camera_bits"),
        (OpticalSpec { camera_bits: Some(8), ..good.clone() }, "camera_bits"),
        (OpticalSpec { camera_bits: Some(8), gain: Some(0.0), ..good.clone() }, "gain"),
        (OpticalSpec { gain: Some(1.0), ..good.clone() }, "gain"),
        (OpticalSpec { quantile: 0.0, ..good.clone() }, "quantile"),
        (
            OpticalSpec {
                encoding: Some(Encoding::Thermometer { levels: 0, low: vec![0.0], high: vec![1.0] }),
                ..good.clone()
            },
            "levels",
        ),
        (
            OpticalSpec { binarize: Some(0.0), encoding: Some(Encoding::Threshold { threshold: 0.0 }), ..good.clone() },
            "encoding",
        ),
    ];
    for (spec, name) in cases {
        let message = spec.build::<f64>(3).unwrap_err().to_string();
        assert!(message.starts_with(name), "{spec:?}: {message}");
    }
    assert!(good.build::<f64>(0).is_err());
    assert!(good.build_complex::<f64>(3).is_err());
    assert!(Camera::calibrated(8, 0.5, &[]).is_err());
    assert!(Camera::calibrated(8, 0.5, &[f64::NAN]).is_err());
    assert!(Camera::ideal().with_noise(f64::INFINITY, Seed::new(0)).is_err());
}

#[test]
fn maps_over_other_projections_agree_with_the_description() {
    // The description is one composition of the pieces; a user may make another one.
    let rows = normal_rows(3, 6);
    let spec = OpticalSpec {
        n_components: 30,
        exponent: 3.0,
        seed: 4,
        projection: OpticalProjection::Dense,
        ..Default::default()
    };
    let direct = Optical::new(projection(6, 30), 3.0).unwrap();
    let expected = direct.transform(rows.view()).unwrap();
    assert_eq!(spec.build::<f64>(6).unwrap().transform(rows.view()).unwrap(), expected);
    let free = Optical::new(MatrixFree::<f64, Complex<f64>>::new(Seed::new(4), 6, 30).unwrap(), 3.0).unwrap();
    assert_eq!(free.transform(rows.view()).unwrap(), expected);
    let chain = HadamardChain::<f64, Complex<f64>>::new(Seed::new(4), 6, 30).unwrap();
    let plain = Optical::new(chain, 2.0).unwrap().transform(rows.view()).unwrap();
    let spec =
        OpticalSpec { n_components: 30, seed: 4, projection: OpticalProjection::Structured, ..Default::default() };
    let corrected = spec.build::<f64>(6).unwrap().transform(rows.view()).unwrap();
    // Γ(10)/(Γ(8) 8²) = 9/8: what a direction of fixed length lacks for exponent 2.
    for (a, b) in corrected.iter().zip(&plain) {
        assert!((a - b * (9f64 / 8.0).sqrt()).abs() < 1e-13 * b, "{a} {b}");
    }
    let bits = Encoding::BitPlanes { bits: 4, low: vec![0.0], high: vec![1.0] };
    assert!(Optical::new(projection(6, 30), 2.0).unwrap().with_encoding(bits).is_err());
    assert!(Optical::new(projection(1, 30), 2.0).unwrap().with_bias(1.0).is_err());
}
