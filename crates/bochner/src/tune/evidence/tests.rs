use super::Scales;
use super::hunt::Objective;
use super::inlet::Inlet;
use super::problem::{Head, Problem};
use crate::feature::{
    AllocationRule, CompressiveSpec, Describe, Directions, FeatureMap, FourierKernel, FourierSpec, MaclaurinKernel,
    MaclaurinSpec, OpticalProjection, OpticalSpec, OrthoProjectionSpec, PolynomialSpec, PositiveSpec, SketchKind, Spec,
    SphericalSpec, Structure,
};
use crate::linalg::field::Field;
use crate::preprocess::LengthScale;
use crate::random::{Role, Seed, Stream};
use crate::scalar::Scalar;
use crate::variance::{Form, Softmax, Weights};
use ndarray::Array2;

fn data(n: usize, d: usize) -> (Array2<f64>, Array2<f64>) {
    let mut normals = vec![0.0f64; n * (d + 2)];
    Stream::new(Seed::new(4), Role::Split, 1).normals_from(0, &mut normals);
    let rows: Array2<f64> = Array2::from_shape_fn((n, d), |(i, j)| normals[i * (d + 2) + j]);
    let targets = Array2::from_shape_fn((n, 2), |(i, k)| {
        (k as f64 + 1.0) * (1.3 * rows[[i, 0]]).sin() + 0.2 * normals[i * (d + 2) + d + k]
    });
    (rows, targets)
}

/// Every map of the catalogue in every form with a derivative.
fn maps() -> Vec<(Spec, bool)> {
    let fourier = FourierSpec { n_components: 24, length_scale: 1.4.into(), seed: 3, ..FourierSpec::default() };
    let polynomial =
        PolynomialSpec { n_components: 24, degree: 3, gamma: 0.4, coef0: 0.7, seed: 5, ..PolynomialSpec::default() };
    let maclaurin = MaclaurinSpec { n_components: 25, length_scale: 1.7.into(), seed: 2, ..MaclaurinSpec::default() };
    let optical = OpticalSpec { n_components: 24, bias: 0.6, seed: 8, ..OpticalSpec::default() };
    let mut all: Vec<(Spec, bool)> = vec![
        (fourier.clone().into(), false),
        (FourierSpec { form: Form::Offset, kernel: FourierKernel::Matern, nu: 2.5, ..fourier.clone() }.into(), false),
        (FourierSpec { form: Form::Complex, ..fourier.clone() }.into(), true),
        (FourierSpec { projection: Directions::Sorf, ..fourier.clone() }.into(), false),
        (FourierSpec { length_scale: LengthScale::PerInput(vec![1.0, 2.0, 1.5]), ..fourier.clone() }.into(), false),
        (PositiveSpec { n_components: 24, length_scale: 2.5.into(), seed: 1, ..PositiveSpec::default() }.into(), false),
        (
            CompressiveSpec { n_components: 24, compressed_dim: 2, length_scale: 1.2.into(), ..Default::default() }
                .into(),
            false,
        ),
        (
            PositiveSpec {
                n_components: 24,
                length_scale: LengthScale::PerInput(vec![2.0, 3.0, 2.5]),
                kind: Softmax::Hyperbolic,
                ..PositiveSpec::default()
            }
            .into(),
            false,
        ),
        (
            CompressiveSpec {
                n_components: 24,
                compressed_dim: 2,
                length_scale: LengthScale::PerInput(vec![1.0, 2.0, 1.5]),
                ..Default::default()
            }
            .into(),
            false,
        ),
        (maclaurin.clone().into(), false),
        (
            MaclaurinSpec { kernel: MaclaurinKernel::Exponential, length_scale: 2.5.into(), ..maclaurin.clone() }
                .into(),
            false,
        ),
        (MaclaurinSpec { kernel: MaclaurinKernel::Polynomial, gamma: 0.4, ..maclaurin.clone() }.into(), false),
        (MaclaurinSpec { allocation: AllocationRule::Random, ..maclaurin.clone() }.into(), false),
        (MaclaurinSpec { weights: Weights::Complex, ..maclaurin }.into(), true),
        (optical.clone().into(), false),
        (OpticalSpec { exponent: 1.0, projection: OpticalProjection::Structured, ..optical }.into(), false),
        (SphericalSpec { n_components: 24, ..SphericalSpec::default() }.into(), false),
        (OrthoProjectionSpec { n_components: 2, ..OrthoProjectionSpec::default() }.into(), false),
    ];
    for sketch in [SketchKind::TensorSrht, SketchKind::Rademacher, SketchKind::Gaussian, SketchKind::TensorSketch] {
        let spec = PolynomialSpec { sketch, weights: Weights::Real, ..polynomial.clone() };
        all.push((spec.clone().into(), false));
        if sketch != SketchKind::TensorSketch {
            all.push((PolynomialSpec { structure: Structure::Tree, ..spec }.into(), false));
            all.push((PolynomialSpec { sketch, ..polynomial.clone() }.into(), false));
            all.push((PolynomialSpec { sketch, weights: Weights::Complex, ..polynomial.clone() }.into(), true));
        }
    }
    all
}

/// The gradient against central differences of five points, whose error is `h⁴` times a fifth derivative, and `ε|value|/h`.
fn check_gradient(problem: &dyn Objective, point: &[f64], name: &str) {
    let (value, gradient) = problem.evaluate(point).unwrap();
    assert_eq!(gradient.len(), point.len(), "{name}");
    let largest = gradient.iter().fold(0.0f64, |a, g| a.max(g.abs()));
    for (i, slope) in gradient.iter().enumerate() {
        // Heavy-tailed spectra have phases of hundreds, whose fifth derivatives need a small step.
        let h = 1e-4;
        let at = |steps: f64| {
            let mut moved = point.to_vec();
            moved[i] += steps * h;
            problem.evaluate(&moved).unwrap().0
        };
        let difference = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h);
        let allowed = 1e-6 * (slope.abs() + 0.01 * largest) + 100.0 * f64::EPSILON * value.abs() / h;
        assert!((difference - slope).abs() < allowed, "{name}, parameter {i}: {slope} against {difference}");
    }
}

fn check_map<T: Scalar<Real = f64> + Field<Wide = T>>(
    map: &dyn FeatureMap<Real = f64, Output = T>,
    given: &dyn FeatureMap<Real = f64, Output = T>,
    inlet: &Inlet,
    name: &str,
) {
    // More rows than features, and fewer.
    for n in [70, 15] {
        let (rows, targets) = data(n, 3);
        let base = inlet.base(rows.view()).unwrap();
        // At the start the map is the one that was described.
        let moved = inlet.rows(&base, &inlet.start());
        let (here, expected) = (map.transform(moved.view()).unwrap(), given.transform(rows.view()).unwrap());
        for (a, b) in here.iter().zip(&expected) {
            assert!((*a - *b).abs_sq().sqrt() < 1e-12 * (1.0 + b.abs_sq().sqrt()), "{name}: {a:?} {b:?}");
        }
        let weights: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64).collect();
        let one = Head { targets: targets.clone(), weights: None };
        let heads = vec![
            Head { targets: targets.slice(ndarray::s![.., ..1]).to_owned(), weights: Some(weights.clone()) },
            Head { targets: targets.slice(ndarray::s![.., 1..]).to_owned(), weights: None },
        ];
        for (heads, noisy) in [(vec![one], true), (heads, false)] {
            let problem = Problem { map, inlet, base: base.clone(), heads, noisy };
            let mut point = inlet.start();
            point.iter_mut().enumerate().for_each(|(i, p)| *p += 0.1 * (i as f64).sin());
            point.push(0.4);
            point.extend(noisy.then_some(-2.0));
            check_gradient(&problem, &point, name);
            // Variances from eigenvalues: the value of the evidence itself there, and no slope.
            let bounds = super::hunt::Bounds { signal: (1e-9, 1e9), noise: (1e-9, 1e9) };
            let own = point[..inlet.free()].to_vec();
            let found = problem.variances(&own, &bounds).unwrap();
            let mut point = own;
            point.push(found.signal.ln());
            point.extend(noisy.then(|| found.noise.ln()));
            let (value, gradient) = problem.evaluate(&point).unwrap();
            assert!((value - found.value).abs() < 1e-7 * (1.0 + value.abs()), "{name}: {value} {}", found.value);
            let inside = found.signal > 1e-8 && found.signal < 1e8;
            // Golden sections place a maximum to about the root of the precision.
            let slope = gradient[inlet.free()..].iter().fold(0.0f64, |a, g| a.max(g.abs()));
            assert!(!inside || slope < 1e-3 * problem.size(), "{name}: {gradient:?} at {found:?}");
        }
    }
}

#[test]
fn gradients_of_every_map_agree_with_finite_differences() {
    let (sample, _) = data(50, 3);
    for (spec, complex) in maps() {
        let spec = spec.resolve(sample.view()).unwrap();
        for scales in [Scales::Fixed, Scales::Common, Scales::PerInput, Scales::Metric] {
            let Ok(inlet) = Inlet::new(&spec, 3, scales) else {
                assert!(matches!(scales, Scales::PerInput | Scales::Metric));
                continue;
            };
            let name = format!("{} with {scales:?}", serde_json::to_string(&spec).unwrap());
            if complex {
                let (map, given) = (inlet.unit().unwrap().build_complex(inlet.unit_dim()), spec.build_complex(3));
                check_map(&*map.unwrap(), &*given.unwrap(), &inlet, &name);
            } else {
                let (map, given) = (inlet.unit().unwrap().build(inlet.unit_dim()), spec.build(3));
                check_map(&*map.unwrap(), &*given.unwrap(), &inlet, &name);
            }
            // What is found is put where it acts: the map of the new description sees the same.
            let point: Vec<f64> =
                inlet.start().iter().enumerate().map(|(i, p)| p + 0.3 * (1.0 + i as f64).cos()).collect();
            let found = inlet.put(&spec, &point).unwrap();
            if !complex {
                let unit = inlet.unit().unwrap().build::<f64>(inlet.unit_dim()).unwrap();
                let base = inlet.base(sample.view()).unwrap();
                let expected = unit.transform(inlet.rows(&base, &point).view()).unwrap();
                let map = found.build::<f64>(3).unwrap();
                let here = map.transform(sample.view()).unwrap();
                let error = (&here - &expected).iter().fold(0.0f64, |a, e| a.max(e.abs()));
                assert!(error < 1e-11 * (1.0 + expected.iter().fold(0.0f64, |a, v| a.max(v.abs()))), "{name}: {error}");
            }
            let (searched, fixed) = inlet.names();
            assert_eq!(searched.is_empty(), inlet.free() == 0, "{name}: {searched:?} {fixed:?}");
        }
    }
}

#[test]
fn parameters_that_stay_are_named() {
    let names = |spec: Spec, scales| Inlet::new(&spec, 3, scales).unwrap().names();
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (searched, fixed) = names(FourierSpec::default().into(), Scales::Common);
    assert_eq!((searched, fixed), (list(&["length_scale"]), list(&[])));
    let (searched, fixed) = names(FourierSpec::default().into(), Scales::Fixed);
    assert_eq!((searched, fixed), (list(&[]), list(&["length_scale"])));
    let matern = FourierSpec { kernel: FourierKernel::Matern, ..FourierSpec::default() };
    assert_eq!(names(matern.into(), Scales::PerInput), (list(&["length_scale"]), list(&["nu"])));
    let polynomial = PolynomialSpec { coef0: 1.0, ..PolynomialSpec::default() };
    assert_eq!(names(polynomial.clone().into(), Scales::Common), (list(&["gamma", "coef0"]), list(&["degree"])));
    // Without a constant gamma and the signal are the same.
    let homogeneous = PolynomialSpec { coef0: 0.0, ..polynomial };
    assert_eq!(names(homogeneous.into(), Scales::Common), (list(&[]), list(&["degree", "gamma", "coef0"])));
    let without = Spec::from(SphericalSpec::default());
    let error = Inlet::new(&without, 3, Scales::PerInput).unwrap_err().to_string();
    assert!(error.contains("common"), "{error}");
}

#[test]
fn gradients_of_exact_processes_agree_with_finite_differences() {
    use super::exact::Exact;
    use crate::kernel::{self, AnyKernel};
    let (rows, targets) = data(40, 3);
    let kernels: Vec<AnyKernel> = vec![
        kernel::Gaussian::new(1.4).unwrap().into(),
        kernel::Matern::new(2.5, 1.2).unwrap().into(),
        kernel::Matern::new(1.5, 1.2).unwrap().into(),
        kernel::Matern::new(0.5, 1.2).unwrap().into(),
        kernel::Matern::new(0.8, 1.2).unwrap().into(),
        kernel::Laplacian::new(1.7, 2).unwrap().into(),
        kernel::Laplacian::new(1.7, 1).unwrap().into(),
        kernel::Exponential::new(2.0).unwrap().into(),
        kernel::Polynomial::new(3, 0.4, 0.7).unwrap().into(),
        kernel::Optical::new(2.0, 0.6).unwrap().into(),
        kernel::Compressive::new(kernel::Compression::Orthoprojector, 3, 2, 1.3).unwrap().into(),
    ];
    for kernel in kernels {
        for (scales, length_scale) in [
            (Scales::Fixed, LengthScale::Same(1.0)),
            (Scales::Common, LengthScale::Same(1.0)),
            (Scales::PerInput, LengthScale::PerInput(vec![1.0, 2.0, 0.7])),
            (Scales::Metric, LengthScale::Same(1.0)),
        ] {
            let Ok(inlet) = Inlet::of_kernel(&kernel, 3, &length_scale, scales) else { continue };
            let name = format!("{kernel:?} with {scales:?}");
            let weights: Vec<f64> = (0..40).map(|i| 0.5 + (i % 3) as f64).collect();
            let heads = [
                vec![Head { targets: targets.clone(), weights: None }],
                vec![
                    Head { targets: targets.slice(ndarray::s![.., ..1]).to_owned(), weights: Some(weights) },
                    Head { targets: targets.slice(ndarray::s![.., 1..]).to_owned(), weights: None },
                ],
            ];
            for (heads, noisy) in heads.into_iter().zip([true, false]) {
                let base = inlet.base(rows.view()).unwrap();
                let problem = Exact { inlet: &inlet, base: base.clone(), heads, noisy };
                let mut point = inlet.start();
                point.iter_mut().enumerate().for_each(|(i, p)| *p += 0.1 * (i as f64).sin());
                let own = point.clone();
                point.push(0.4);
                point.extend(noisy.then_some(-2.0));
                check_gradient(&problem, &point, &name);
                let bounds = super::hunt::Bounds { signal: (1e-9, 1e9), noise: (1e-9, 1e9) };
                let found = problem.variances(&own, &bounds).unwrap();
                let mut point = own.clone();
                point.push(found.signal.ln());
                point.extend(noisy.then(|| found.noise.ln()));
                let (value, _) = problem.evaluate(&point).unwrap();
                assert!((value - found.value).abs() < 1e-7 * (1.0 + value.abs()), "{name}: {value} {}", found.value);
                // What is found is put where it acts.
                let (kernel, length_scale) = inlet.put_kernel(&own).unwrap();
                let divided = length_scale.divide(rows.view()).unwrap();
                let here = crate::kernel::kernel_matrix(&kernel, divided.view(), divided.view()).unwrap();
                let moved = inlet.rows(&base, &own);
                let unit = inlet.unit_kernel().unwrap();
                let expected = crate::kernel::kernel_matrix(unit, moved.view(), moved.view()).unwrap();
                assert!(
                    (&here - &expected).iter().zip(&expected).all(|(e, v)| e.abs() < 1e-9 * (1.0 + v.abs())),
                    "{name}"
                );
            }
        }
    }
}
