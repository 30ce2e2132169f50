use super::*;
use crate::random::{Role, Seed, Stream};
use ndarray::Array2;

const X: [f64; 4] = [1.0, 2.0, -0.5, 0.3];

fn close(what: &str, found: f64, exact: f64, tolerance: f64) {
    assert!((found - exact).abs() <= tolerance * exact.abs(), "{what}: {found} instead of {exact}");
}

fn matrix_value(kernel: &dyn Kernel, x: &[f64], y: &[f64]) -> f64 {
    let x = ndarray::ArrayView2::from_shape((1, x.len()), x).unwrap();
    let y = ndarray::ArrayView2::from_shape((1, y.len()), y).unwrap();
    kernel_matrix(kernel, x, y).unwrap()[[0, 0]]
}

#[test]
fn optical_kernels_match_mpmath_for_every_exponent_and_angle() {
    for &(exponent, bias, y, exact) in OPTICAL {
        let kernel = Optical::new(exponent, bias).unwrap();
        let what = format!("exponent {exponent}, bias {bias}, {y:?}");
        close(&what, kernel.evaluate(&X, &y), exact, 1e-13);
        close(&what, matrix_value(&kernel, &X, &y), exact, 1e-12);
        close(&what, kernel.evaluate(&y, &X), exact, 1e-13);
    }
}

#[test]
fn optical_kernels_meet_their_limits() {
    let zero = [0.0; 4];
    for exponent in [0.5, 1.0, 1.7, 2.0, 3.0, 4.0, 6.0, 22.0, 23.5] {
        let kernel = Optical::new(exponent, 0.0).unwrap();
        assert_eq!(kernel.evaluate(&zero, &X), 0.0);
        assert_eq!(matrix_value(&kernel, &zero, &zero), 0.0);
        let norm_sq = dot(&X, &X);
        close(
            "parallel",
            kernel.evaluate(&X, &X),
            crate::special::gamma(exponent + 1.0) * norm_sq.powf(exponent),
            1e-12,
        );
        let scaled = X.map(|v| 1e12 * v);
        let tiny = X.map(|v| 1e-12 * v);
        close("homogeneous", kernel.evaluate(&scaled, &tiny), kernel.evaluate(&X, &X), 1e-11);
    }
    // Continuity across the border between polynomials and the general case.
    for even in [2.0, 4.0, 6.0, 20.0] {
        let y = [0.7, -0.2, 1.1, 0.4];
        let (at, beside) = (Optical::new(even, 0.0).unwrap(), Optical::new(even + 1e-12, 0.0).unwrap());
        close("continuity", beside.evaluate(&X, &y), at.evaluate(&X, &y), 1e-10);
    }
}

#[test]
fn matern_kernels_match_mpmath() {
    for &(nu, length_scale, y, exact) in MATERN {
        let kernel = Matern::new(nu, length_scale).unwrap();
        let what = format!("nu {nu}, {y:?}");
        close(&what, kernel.evaluate(&X, &y), exact, 1e-13);
        close(&what, matrix_value(&kernel, &X, &y), exact, 1e-12);
        assert_eq!(matrix_value(&kernel, &y, &y), 1.0);
    }
    let far = Matern::new(0.7, 1e-3).unwrap();
    assert_eq!(matrix_value(&far, &[0.0], &[1e300]), 0.0);
}

#[test]
fn laplacian_kernels_of_norm_two_are_matern_one_half() {
    let y = [0.7, -0.2, 1.1, 0.4];
    let (laplacian, matern) = (Laplacian::new(1.3, 2).unwrap(), Matern::new(0.5, 1.3).unwrap());
    close("norm 2", laplacian.evaluate(&X, &y), matern.evaluate(&X, &y), 1e-15);
    let taxi: f64 = X.iter().zip(y).map(|(a, b)| (a - b).abs()).sum();
    let laplacian = Laplacian::new(1.3, 1).unwrap();
    close("norm 1", laplacian.evaluate(&X, &y), (-taxi / 1.3).exp(), 1e-14);
    close("norm 1", matrix_value(&laplacian, &X, &y), (-taxi / 1.3).exp(), 1e-14);
}

#[test]
fn matern_kernels_tend_to_the_gaussian_one() {
    let (matern, gaussian) = (Matern::new(1e7, 1.3).unwrap(), Gaussian::new(1.3).unwrap());
    let y = [0.7, -0.2, 1.1, 0.4];
    close("limit", matern.evaluate(&X, &y), gaussian.evaluate(&X, &y), 1e-5);
}

#[test]
fn dot_product_kernels_are_the_sum_of_their_coefficients() {
    let y = [0.7, -0.2, 1.1, 0.4];
    let dot = dot(&X, &y);
    let kernels: [&dyn DotProductKernel; 5] = [
        &Polynomial::new(4, 0.7, 1.3).unwrap(),
        &Polynomial::homogeneous(3),
        &Polynomial::homogeneous(0),
        &Exponential::new(1.3).unwrap(),
        &Exponential::attention(4).unwrap(),
    ];
    for kernel in kernels {
        let sum: f64 = (0..40).map(|n| kernel.coefficient(n) * dot.powi(n as i32)).sum();
        close(&format!("{kernel:?}"), sum, kernel.evaluate(&X, &y), 1e-14);
    }
    assert_eq!(Polynomial::homogeneous(3).coefficient(2), 0.0);
    assert_eq!(Polynomial::homogeneous(3).coefficient(3), 1.0);
    assert_eq!(Polynomial::homogeneous(3).coefficient(4), 0.0);
}

#[test]
fn compressed_gaussian_kernels_have_their_closed_form() {
    // 0.17826 is the limit found by simulation for d = 8, m = 3 where the Gaussian kernel is 0.0773.
    let distance_sq = -2.0 * 0.0773f64.ln();
    let haar = Compressive::new(Compression::Orthoprojector, 8, 3, 1.0).unwrap();
    assert!((haar.of_distance_sq(distance_sq).unwrap() - 0.17826).abs() < 1e-4);
    let iid = Compressive::new(Compression::Gaussian, 8, 3, 2.0).unwrap();
    close("iid", iid.of_distance_sq(5.0).unwrap(), (1.0f64 + 5.0 / 12.0).powf(-1.5), 1e-15);
    for m in [1, 3, 7, 8] {
        let kernel = Compressive::new(Compression::Orthoprojector, 8, m, 0.9).unwrap();
        let y = [0.7, -0.2, 1.1, 0.4];
        close("matrix", matrix_value(&kernel, &X, &y), kernel.evaluate(&X, &y), 1e-12);
        assert_eq!(matrix_value(&kernel, &X, &X), 1.0);
    }
    // In many dimensions a projection hardly changes lengths.
    let large = Compressive::new(Compression::Orthoprojector, 100_000, 50_000, 1.0).unwrap();
    close("large", large.of_distance_sq(2.0).unwrap(), (-1f64).exp(), 1e-4);
}

fn normals(n: usize, d: usize, scale: f64) -> Array2<f64> {
    let mut data = vec![0.0; n * d];
    Stream::new(Seed::new(11), Role::Direction, 0).normals_from(0, &mut data);
    Array2::from_shape_vec((n, d), data.iter().map(|v| scale * v).collect()).unwrap()
}

#[test]
fn radii_mix_normal_spectra_to_the_kernel() {
    // E exp(iω·τ) given the radius is exp(−r²|τ|²/2ℓ²): its mean over radii is the kernel.
    let draws = 20_000;
    let kernels: [AnyKernel; 4] = [
        Gaussian::new(1.3).unwrap().into(),
        Matern::new(0.4, 1.3).unwrap().into(),
        Matern::new(2.5, 0.7).unwrap().into(),
        Laplacian::new(1.1, 2).unwrap().into(),
    ];
    let z = crate::special::normal_quantile(1.0 - 1e-6 / (2.0 * 12.0));
    for kernel in kernels {
        let spectral = kernel.spectral().unwrap();
        for (index, distance_sq) in [0.01, 0.5, 4.0].into_iter().enumerate() {
            let mut stream = Stream::new(Seed::new(3), Role::Radius, index as u64);
            let (mut mean, mut square) = (0.0, 0.0);
            for _ in 0..draws {
                let radius = spectral.frequency_scale(&mut stream) / spectral.length_scale();
                let value = (-0.5 * radius * radius * distance_sq).exp();
                mean += value / f64::from(draws);
                square += value * value / f64::from(draws);
            }
            let exact = kernel.of_distance_sq(distance_sq).unwrap();
            let error = z * ((square - mean * mean).max(0.0) / f64::from(draws)).sqrt() + 1e-11;
            assert!((mean - exact).abs() <= error, "{kernel:?} {mean} {exact}");
        }
    }
    assert!(AnyKernel::from(Laplacian::new(1.0, 1).unwrap()).spectral().is_none());
    assert!(AnyKernel::from(Optical::new(1.0, 0.0).unwrap()).spectral().is_none());
    let spherical = Spherical::new(3, 2.0).unwrap();
    assert_eq!(AnyKernel::from(spherical).dot_product().unwrap().coefficient(3), 0.125);
    assert_eq!(Matern::new(0.7, 1.0).unwrap().spectral_moment(3), f64::INFINITY);
    assert_eq!(Matern::new(3.0, 2.0).unwrap().spectral_moment(4), 1.5);
    assert_eq!(Gaussian::new(2.0).unwrap().spectral_moment(4), 1.0);
}

#[test]
fn radial_densities_integrate_to_one_and_to_the_second_moment() {
    // Trapezoidal rule in ln|ω|, where both spectra fall off exponentially.
    let kernels: [AnyKernel; 3] = [
        Gaussian::new(1.3).unwrap().into(),
        Matern::new(2.5, 0.7).unwrap().into(),
        Matern::new(0.6, 1.0).unwrap().into(),
    ];
    for kernel in kernels {
        let spectral = kernel.spectral().unwrap();
        for dim in [1, 3, 5, 20] {
            let (mut mass, mut moment) = (0.0, 0.0);
            for i in -3000..3000 {
                let norm = (f64::from(i) * 0.02).exp();
                let weight = 0.02 * norm * spectral.ln_radial_density(norm, dim).exp();
                mass += weight;
                moment += weight * norm * norm;
            }
            assert!((mass - 1.0).abs() < 1e-12, "{kernel:?} in {dim} dimensions: {mass}");
            let exact = spectral.spectral_moment(dim);
            assert!(exact.is_infinite() || (moment / exact - 1.0).abs() < 1e-12, "{kernel:?} {dim}: {moment} {exact}");
        }
    }
}

/// Smallest pivot of a Cholesky factorisation, relative to the largest diagonal entry.
fn smallest_pivot(k: &Array2<f64>) -> f64 {
    let n = k.nrows();
    let mut a = k.clone();
    let mut smallest = f64::INFINITY;
    let largest = (0..n).map(|i| k[[i, i]]).fold(0.0, f64::max);
    for j in 0..n {
        smallest = smallest.min(a[[j, j]] / largest);
        for i in j + 1..n {
            let factor = a[[i, j]] / a[[j, j]];
            for l in j + 1..n {
                a[[i, l]] -= factor * a[[l, j]];
            }
        }
    }
    smallest
}

#[test]
fn kernel_matrices_are_symmetric_and_positive_definite() {
    let kernels: [AnyKernel; 11] = [
        Polynomial::new(3, 0.5, 1.0).unwrap().into(),
        Exponential::new(1.5).unwrap().into(),
        Gaussian::new(1.0).unwrap().into(),
        Matern::new(0.8, 1.0).unwrap().into(),
        Matern::new(2.5, 1.0).unwrap().into(),
        Laplacian::new(1.0, 1).unwrap().into(),
        Laplacian::new(1.0, 2).unwrap().into(),
        Optical::new(1.3, 0.2).unwrap().into(),
        Optical::new(4.0, 1.0).unwrap().into(),
        Compressive::new(Compression::Orthoprojector, 6, 2, 1.0).unwrap().into(),
        Spherical::new(3, 1.5).unwrap().into(),
    ];
    for kernel in kernels {
        let mut x = normals(12, 6, 0.8);
        if matches!(kernel, AnyKernel::Spherical(_)) {
            for mut row in x.rows_mut() {
                let norm = row.dot(&row).sqrt();
                row /= norm;
            }
        }
        let k = kernel_matrix(&kernel, x.view(), x.view()).unwrap();
        assert_eq!(k, k.t(), "{kernel:?}");
        assert!(smallest_pivot(&k) > 1e-9, "{kernel:?}: {}", smallest_pivot(&k));
        let direct = Array2::from_shape_fn((12, 12), |(i, j)| {
            kernel.evaluate(x.row(i).as_slice().unwrap(), x.row(j).as_slice().unwrap())
        });
        for (a, b) in k.iter().zip(&direct) {
            close(&format!("{kernel:?}"), *a, *b, 1e-11);
        }
        let text = serde_json::to_string(&kernel).unwrap();
        assert_eq!(serde_json::from_str::<AnyKernel>(&text).unwrap(), kernel, "{text}");
    }
}

#[test]
fn parameters_out_of_range_are_refused_by_constructors_and_by_files() {
    assert!(Polynomial::new(2, 0.0, 1.0).is_err());
    assert!(Polynomial::new(2, 1.0, -1.0).is_err());
    assert!(Gaussian::new(0.0).is_err());
    assert!(Exponential::new(f64::NAN).is_err());
    assert!(Matern::new(-1.0, 1.0).is_err());
    assert!(Matern::new(1.0, f64::INFINITY).is_err());
    assert!(Laplacian::new(1.0, 3).is_err());
    assert!(Optical::new(0.0, 0.0).is_err());
    assert!(Optical::new(1.0, -0.1).is_err());
    assert!(Spherical::new(3, 1.4).is_err());
    assert!(Compressive::new(Compression::Orthoprojector, 3, 4, 1.0).is_err());
    assert!(Compressive::new(Compression::Gaussian, 3, 4, 1.0).is_ok());
    assert!(Compressive::new(Compression::Gaussian, 3, 0, 1.0).is_err());
    for text in [
        r#"{"kernel":"gaussian","length_scale":-1.0}"#,
        r#"{"kernel":"gaussian","length_scale":1.0,"nu":2.0}"#,
        r#"{"kernel":"matern","length_scale":1.0}"#,
        r#"{"kernel":"unheard_of"}"#,
    ] {
        assert!(serde_json::from_str::<AnyKernel>(text).is_err(), "{text}");
    }
}

// mpmath 1.4 with 40 digits, tools/golden/kernels.py.
// exponent, bias, second row, value
const OPTICAL: &[(f64, f64, [f64; 4], f64)] = &[
    (0.5, 0.0, [0.7, -0.2, 1.1, 0.4], 1.466429208695868),
    (0.5, 0.0, [2.0, -1.0, 0.0, 0.0], 1.867540301987036),
    (0.5, 0.0, [2.0, 4.0, -1.0, 0.6], 2.8962134564090314),
    (0.5, 0.0, [-0.5, -1.0, 0.25, -0.15], 1.4481067282045157),
    (0.5, 0.0, [1.0, 2.0000001, -0.5, 0.3], 2.047932213141345),
    (0.5, 0.0, [2.0, -1.0, 0.0, 1e-09], 1.867540301987036),
    (0.5, 0.0, [0.0, 0.0, 0.0, 0.0], 0.0),
    (0.5, 0.75, [0.7, -0.2, 1.1, 0.4], 1.6491348985307517),
    (0.5, 0.75, [2.0, -1.0, 0.0, 0.0], 2.0005538115983357),
    (0.5, 0.75, [2.0, 4.0, -1.0, 0.6], 3.0089072759515645),
    (0.5, 0.75, [-0.5, -1.0, 0.25, -0.15], 1.5802830574811628),
    (0.5, 0.75, [1.0, 2.0000001, -0.5, 0.3], 2.187024227613881),
    (0.5, 0.75, [2.0, -1.0, 0.0, 1e-09], 2.000553811599948),
    (0.5, 0.75, [0.0, 0.0, 0.0, 0.0], 1.2104637678734693),
    (1.0, 0.0, [0.7, -0.2, 1.1, 0.4], 2.5027538640514164),
    (1.0, 0.0, [2.0, -1.0, 0.0, 0.0], 4.058312745996527),
    (1.0, 0.0, [2.0, 4.0, -1.0, 0.6], 10.68),
    (1.0, 0.0, [-0.5, -1.0, 0.25, -0.15], 2.67),
    (1.0, 0.0, [1.0, 2.0000001, -0.5, 0.3], 5.3400002),
    (1.0, 0.0, [2.0, -1.0, 0.0, 1e-09], 4.058312745996527),
    (1.0, 0.0, [0.0, 0.0, 0.0, 0.0], 0.0),
    (1.0, 0.75, [0.7, -0.2, 1.1, 0.4], 3.1739767472675413),
    (1.0, 0.75, [2.0, -1.0, 0.0, 0.0], 4.666322704578809),
    (1.0, 0.75, [2.0, 4.0, -1.0, 0.6], 11.518831395083385),
    (1.0, 0.75, [-0.5, -1.0, 0.25, -0.15], 3.005786354571699),
    (1.0, 0.75, [1.0, 2.0000001, -0.5, 0.3], 6.0900002),
    (1.0, 0.75, [2.0, -1.0, 0.0, 1e-09], 4.666322704593771),
    (1.0, 0.75, [0.0, 0.0, 0.0, 0.0], 1.7306197339772738),
    (1.7, 0.0, [0.7, -0.2, 1.1, 0.4], 6.41649953023808),
    (1.7, 0.0, [2.0, -1.0, 0.0, 0.0], 14.586791166007504),
    (1.7, 0.0, [2.0, 4.0, -1.0, 0.6], 86.57874707921503),
    (1.7, 0.0, [-0.5, -1.0, 0.25, -0.15], 8.201802578479999),
    (1.7, 0.0, [1.0, 2.0000001, -0.5, 0.3], 26.64773689191682),
    (1.7, 0.0, [2.0, -1.0, 0.0, 1e-09], 14.586791166007504),
    (1.7, 0.0, [0.0, 0.0, 0.0, 0.0], 0.0),
    (1.7, 0.75, [0.7, -0.2, 1.1, 0.4], 9.67208507290876),
    (1.7, 0.75, [2.0, -1.0, 0.0, 0.0], 18.581438132700633),
    (1.7, 0.75, [2.0, 4.0, -1.0, 0.6], 98.43346396975346),
    (1.7, 0.75, [-0.5, -1.0, 0.25, -0.15], 9.384625995706095),
    (1.7, 0.75, [1.0, 2.0000001, -0.5, 0.3], 33.31881819763588),
    (1.7, 0.75, [2.0, -1.0, 0.0, 1e-09], 18.581438132871206),
    (1.7, 0.75, [0.0, 0.0, 0.0, 0.0], 3.5415717734777163),
    (2.0, 0.0, [0.7, -0.2, 1.1, 0.4], 10.1629),
    (2.0, 0.0, [2.0, -1.0, 0.0, 0.0], 26.7),
    (2.0, 0.0, [2.0, 4.0, -1.0, 0.6], 228.1248),
    (2.0, 0.0, [-0.5, -1.0, 0.25, -0.15], 14.2578),
    (2.0, 0.0, [1.0, 2.0000001, -0.5, 0.3], 57.03120427200009),
    (2.0, 0.0, [2.0, -1.0, 0.0, 1e-09], 26.7),
    (2.0, 0.0, [0.0, 0.0, 0.0, 0.0], 0.0),
    (2.0, 0.75, [0.7, -0.2, 1.1, 0.4], 16.5229),
    (2.0, 0.75, [2.0, -1.0, 0.0, 0.0], 35.58),
    (2.0, 0.75, [2.0, 4.0, -1.0, 0.6], 265.2948),
    (2.0, 0.75, [-0.5, -1.0, 0.25, -0.15], 16.38405),
    (2.0, 0.75, [1.0, 2.0000001, -0.5, 0.3], 74.1762048720001),
    (2.0, 0.75, [2.0, -1.0, 0.0, 1e-09], 35.58000000045),
    (2.0, 0.75, [0.0, 0.0, 0.0, 0.0], 5.13),
    (3.0, 0.0, [0.7, -0.2, 1.1, 0.4], 57.32439158901763),
    (3.0, 0.0, [2.0, -1.0, 0.0, 0.0], 243.8031382157413),
    (3.0, 0.0, [2.0, 4.0, -1.0, 0.6], 7309.118592),
    (3.0, 0.0, [-0.5, -1.0, 0.25, -0.15], 114.204978),
    (3.0, 0.0, [1.0, 2.0000001, -0.5, 0.3], 913.639926656164),
    (3.0, 0.0, [2.0, -1.0, 0.0, 1e-09], 243.8031382157413),
    (3.0, 0.0, [0.0, 0.0, 0.0, 0.0], 0.0),
    (3.0, 0.75, [0.7, -0.2, 1.1, 0.4], 120.71817499876786),
    (3.0, 0.75, [2.0, -1.0, 0.0, 0.0], 379.4327982858887),
    (3.0, 0.75, [2.0, 4.0, -1.0, 0.6], 9166.02016102334),
    (3.0, 0.75, [-0.5, -1.0, 0.25, -0.15], 133.1427511464268),
    (3.0, 0.75, [1.0, 2.0000001, -0.5, 0.3], 1355.1993075171647),
    (3.0, 0.75, [2.0, -1.0, 0.0, 1e-09], 379.4327982964978),
    (3.0, 0.75, [0.0, 0.0, 0.0, 0.0], 22.066841093716427),
    (4.0, 0.0, [0.7, -0.2, 1.1, 0.4], 414.5098848400001),
    (4.0, 0.0, [2.0, -1.0, 0.0, 0.0], 2851.56),
    (4.0, 0.0, [2.0, 4.0, -1.0, 0.6], 312245.54625024),
    (4.0, 0.0, [-0.5, -1.0, 0.25, -0.15], 1219.70916504),
    (4.0, 0.0, [1.0, 2.0000001, -0.5, 0.3], 19515.349564287604),
    (4.0, 0.0, [2.0, -1.0, 0.0, 1e-09], 2851.56),
    (4.0, 0.0, [0.0, 0.0, 0.0, 0.0], 0.0),
    (4.0, 0.75, [0.7, -0.2, 1.1, 0.4], 1141.6540128400002),
    (4.0, 0.75, [2.0, -1.0, 0.0, 0.0], 5221.32435),
    (4.0, 0.75, [2.0, 4.0, -1.0, 0.6], 422255.90539224),
    (4.0, 0.75, [-0.5, -1.0, 0.25, -0.15], 1448.21731329),
    (4.0, 0.75, [1.0, 2.0000001, -0.5, 0.3], 33012.65621527758),
    (4.0, 0.75, [2.0, -1.0, 0.0, 1e-09], 5221.324350254151),
    (4.0, 0.75, [0.0, 0.0, 0.0, 0.0], 125.82135),
    (6.0, 0.0, [0.7, -0.2, 1.1, 0.4], 38164.537847446176),
    (6.0, 0.0, [2.0, -1.0, 0.0, 0.0], 685229.868),
    (6.0, 0.0, [2.0, 4.0, -1.0, 0.6], 1068464291.8384012),
    (6.0, 0.0, [-0.5, -1.0, 0.25, -0.15], 260855.53999960967),
    (6.0, 0.0, [1.0, 2.0000001, -0.5, 0.3], 16694758.311605614),
    (6.0, 0.0, [2.0, -1.0, 0.0, 1e-09], 685229.868),
    (6.0, 0.0, [0.0, 0.0, 0.0, 0.0], 0.0),
    (6.0, 0.75, [0.7, -0.2, 1.1, 0.4], 184531.22013447178),
    (6.0, 0.75, [2.0, -1.0, 0.0, 0.0], 1772892.218007),
    (6.0, 0.75, [2.0, 4.0, -1.0, 0.6], 1680232311.5024135),
    (6.0, 0.75, [-0.5, -1.0, 0.25, -0.15], 323984.7036275835),
    (6.0, 0.75, [1.0, 2.0000001, -0.5, 0.3], 36731303.26190006),
    (6.0, 0.75, [2.0, -1.0, 0.0, 1e-09], 1772892.2181915427),
    (6.0, 0.75, [0.0, 0.0, 0.0, 0.0], 7707.1050045),
];
// nu, length scale, second row, value
const MATERN: &[(f64, f64, [f64; 4], f64)] = &[
    (0.5, 1.3, [0.7, -0.2, 1.1, 0.4], 0.12164780893035412),
    (0.5, 1.3, [-0.5, -1.0, 0.25, -0.15], 0.0695048695462736),
    (0.5, 1.3, [1.0, 2.0000001, -0.5, 0.3], 0.9999999230769262),
    (1.5, 1.3, [0.7, -0.2, 1.1, 0.4], 0.12097435670121874),
    (1.5, 1.3, [-0.5, -1.0, 0.25, -0.15], 0.05545159284446006),
    (1.5, 1.3, [1.0, 2.0000001, -0.5, 0.3], 0.9999999999999911),
    (2.5, 1.3, [0.7, -0.2, 1.1, 0.4], 0.11795993660667463),
    (2.5, 1.3, [-0.5, -1.0, 0.25, -0.15], 0.04842676828450048),
    (2.5, 1.3, [1.0, 2.0000001, -0.5, 0.3], 0.9999999999999951),
    (0.3, 1.3, [0.7, -0.2, 1.1, 0.4], 0.11604990015120813),
    (0.3, 1.3, [-0.5, -1.0, 0.25, -0.15], 0.07226690601529542),
    (0.3, 1.3, [1.0, 2.0000001, -0.5, 0.3], 0.9999558699627106),
    (1.0, 1.3, [0.7, -0.2, 1.1, 0.4], 0.12265377602105929),
    (1.0, 1.3, [-0.5, -1.0, 0.25, -0.15], 0.06125105413744385),
    (1.0, 1.3, [1.0, 2.0000001, -0.5, 0.3], 0.9999999999999015),
    (4.2, 1.3, [0.7, -0.2, 1.1, 0.4], 0.11497092801491564),
    (4.2, 1.3, [-0.5, -1.0, 0.25, -0.15], 0.04238707949502234),
    (4.2, 1.3, [1.0, 2.0000001, -0.5, 0.3], 0.9999999999999961),
    (60.0, 1.3, [0.7, -0.2, 1.1, 0.4], 0.10917485292525765),
    (60.0, 1.3, [-0.5, -1.0, 0.25, -0.15], 0.029871547677829378),
    (60.0, 1.3, [1.0, 2.0000001, -0.5, 0.3], 0.999999999999997),
];
