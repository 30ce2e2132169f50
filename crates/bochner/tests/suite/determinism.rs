//! Same seed, same bits: whatever the thread count, the block size or the memory layout.

use bochner::feature::{
    AllocationRule, CompressiveSpec, Describe, Directions, FeatureMap, FourierKernel, FourierSpec, MaclaurinSpec,
    OpticalProjection, OpticalSpec, OrthoProjectionSpec, Orthoprojection, PolynomialSpec, PositiveSpec, RadialFit,
    SketchKind, Spec, SphericalSpec, Structure,
};
use bochner::projection::Sampling;
use bochner::random::{Role, Seed, Stream};
use bochner::scalar::Real;
use bochner::variance::{Form, Softmax, Weights};
use ndarray::{Array2, ArrayView2, Axis, ShapeBuilder, s};

const ROWS: usize = 130;

/// Every kind of map; a new one is a line here.
pub(crate) fn maps() -> Vec<Spec> {
    let mut list: Vec<Spec> = Vec::new();
    for projection in [Directions::Gaussian, Directions::Orthogonal, Directions::Sorf] {
        for form in [Form::CosSin, Form::Offset, Form::Complex] {
            list.push(FourierSpec { n_components: 150, projection, form, seed: 3, ..Default::default() }.into());
        }
    }
    list.push(FourierSpec { n_components: 90, kernel: FourierKernel::Matern, seed: 3, ..Default::default() }.into());
    list.push(
        FourierSpec { n_components: 90, kernel: FourierKernel::Laplacian, norm: 1, seed: 3, ..Default::default() }
            .into(),
    );
    list.push(FourierSpec { n_components: 150, order: Some(1), seed: 3, ..Default::default() }.into());
    let polynomial = PolynomialSpec { n_components: 150, degree: 3, coef0: 0.5, seed: 3, ..Default::default() };
    for sketch in [SketchKind::TensorSrht, SketchKind::Rademacher, SketchKind::Gaussian, SketchKind::TensorSketch] {
        for weights in [Weights::Real, Weights::Ctr] {
            list.push(PolynomialSpec { sketch, weights, ..polynomial.clone() }.into());
        }
    }
    for srht in [Sampling::Stacked, Sampling::Tuple] {
        list.push(PolynomialSpec { srht, ..polynomial.clone() }.into());
    }
    for structure in [Structure::Tree, Structure::Compact] {
        list.push(PolynomialSpec { structure, weights: Weights::Real, ..polynomial.clone() }.into());
    }
    for kind in [Softmax::Positive, Softmax::Hyperbolic, Softmax::Trigonometric] {
        list.push(
            PositiveSpec { n_components: 150, length_scale: 2.0.into(), kind, seed: 3, ..Default::default() }.into(),
        );
    }
    for projection in [Directions::Gaussian, Directions::Orthogonal, Directions::Sorf] {
        list.push(SphericalSpec { n_components: 150, degree: 4, projection, seed: 3, ..Default::default() }.into());
    }
    list.push(
        SphericalSpec { n_components: 150, radial_fit: RadialFit::Mixture, seed: 3, ..Default::default() }.into(),
    );
    let optical = OpticalSpec { n_components: 150, bias: 0.5, seed: 3, ..Default::default() };
    for projection in [OpticalProjection::Dense, OpticalProjection::MatrixFree, OpticalProjection::Structured] {
        for exponent in [1.0, 1.7, 2.0] {
            list.push(OpticalSpec { projection, exponent, ..optical.clone() }.into());
        }
        list.push(OpticalSpec { projection, binarize: Some(0.1), noise: 0.2, ..optical.clone() }.into());
    }
    let maclaurin =
        MaclaurinSpec { n_components: 101, allocation: AllocationRule::Random, seed: 3, ..Default::default() };
    for sketch in [SketchKind::TensorSrht, SketchKind::Rademacher, SketchKind::TensorSketch] {
        for weights in [Weights::Real, Weights::Ctr] {
            list.push(MaclaurinSpec { sketch, weights, ..maclaurin.clone() }.into());
        }
    }
    for orthoprojector in [Orthoprojection::Gaussian, Orthoprojection::Sign, Orthoprojection::Srht] {
        list.push(OrthoProjectionSpec { n_components: 10, orthoprojector, seed: 3 }.into());
        list.push(
            CompressiveSpec { n_components: 90, compressed_dim: 10, orthoprojector, ..Default::default() }.into(),
        );
    }
    list
}

fn rows<R: Real>(dim: usize) -> Array2<R> {
    let mut data = vec![R::ZERO; ROWS * dim];
    Stream::new(Seed::new(8), Role::Noise, 0).normals_from(0, &mut data);
    Array2::from_shape_vec((ROWS, dim), data).unwrap()
}

fn on_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(job)
}

fn in_blocks<R: Real>(map: &dyn FeatureMap<Real = R, Output = R>, rows: ArrayView2<'_, R>, size: usize) -> Array2<R> {
    let mut out = Array2::from_elem((rows.nrows(), map.output_dim()), R::nan());
    for (rows, out) in rows.axis_chunks_iter(Axis(0), size).zip(out.axis_chunks_iter_mut(Axis(0), size)) {
        map.transform_into(rows, out).unwrap();
    }
    out
}

fn check<R: Real>(spec: &Spec) {
    for dim in [1, 13, 70] {
        let rows = rows::<R>(dim);
        let map = spec.build::<R>(dim).unwrap();
        let expected = on_threads(1, || map.transform(rows.view()).unwrap());
        assert!(expected.iter().all(|v| v.is_finite()), "{spec:?}");
        for threads in [1, 2, 5] {
            for size in [1, 2, 7, 64, 65, 100, ROWS] {
                let found = on_threads(threads, || in_blocks(&*map, rows.view(), size));
                assert_eq!(found, expected, "{spec:?}, d = {dim}, {threads} threads, blocks of {size}");
            }
        }
        // The map drawn again is the same map, and rows may lie in memory in any way.
        let again = spec.build::<R>(dim).unwrap();
        let mut columns = Array2::from_elem((ROWS, dim).f(), R::ZERO);
        columns.assign(&rows);
        assert_eq!(again.transform(columns.view()).unwrap(), expected, "{spec:?}: column-major rows");
        let mut wide = Array2::from_elem((ROWS, 2 * dim), R::ONE);
        wide.slice_mut(s![.., ..;2]).assign(&rows);
        assert_eq!(map.transform(wide.slice(s![.., ..;2])).unwrap(), expected, "{spec:?}: every other column");
        let backwards = rows.slice(s![..;-1, ..]);
        let found = map.transform(backwards).unwrap();
        assert_eq!(found.slice(s![..;-1, ..]), expected, "{spec:?}: rows backwards");
        let mut out = Array2::from_elem((ROWS, map.output_dim()).f(), R::ZERO);
        map.transform_into(rows.view(), out.view_mut()).unwrap();
        assert_eq!(out, expected, "{spec:?}: column-major output");
    }
}

#[test]
fn features_do_not_depend_on_threads_blocks_or_layout() {
    for spec in maps() {
        check::<f32>(&spec);
        check::<f64>(&spec);
    }
}

#[test]
fn descriptions_survive_json_and_draw_the_same_map() {
    for spec in maps() {
        let text = serde_json::to_string(&spec).unwrap();
        let read: Spec = serde_json::from_str(&text).unwrap();
        assert_eq!(read, spec);
        let rows = rows::<f64>(5);
        let (a, b) = (spec.build::<f64>(5).unwrap(), read.build::<f64>(5).unwrap());
        assert_eq!(a.transform(rows.view()).unwrap(), b.transform(rows.view()).unwrap());
    }
}

#[test]
fn single_precision_maps_are_the_rounded_double_precision_ones() {
    for spec in maps() {
        let rows = rows::<f64>(13);
        let double = spec.build::<f64>(13).unwrap().transform(rows.view()).unwrap();
        let single = spec.build::<f32>(13).unwrap().transform(rows.mapv(|v| v as f32).view()).unwrap();
        let norm = double.iter().map(|v| v * v).sum::<f64>().sqrt();
        let error = double.iter().zip(&single).map(|(a, b)| (a - f64::from(*b)).powi(2)).sum::<f64>().sqrt();
        // Phases of heavy-tailed spectra reach hundreds, and their rounding is the phase's: 100 units in the last place.
        assert!(error < 100.0 * f64::from(f32::EPSILON) * norm, "{spec:?}: {error} of {norm}");
    }
}

#[test]
fn bad_rows_are_named() {
    for spec in maps() {
        let map = spec.build::<f64>(13).unwrap();
        let mut rows = rows::<f64>(13);
        rows[[70, 4]] = f64::NAN;
        rows[[99, 0]] = f64::INFINITY;
        let message = map.transform(rows.view()).unwrap_err().to_string();
        assert_eq!(message, "rows has a NaN or an infinity in row 70, column 4 (counted from 0)", "{spec:?}");
        let message = map.transform(rows.slice(s![.., ..12])).unwrap_err().to_string();
        assert_eq!(message, "number of columns of rows is 12, expected 13", "{spec:?}");
        let empty = map.transform(Array2::zeros((0, 13)).view()).unwrap();
        assert_eq!(empty.dim(), (0, map.output_dim()));
    }
}
