//! Maps put together, and odd shapes thrown at all of them.

use bochner::Error;
use bochner::feature::{
    ComplexToReal, Concat, Describe, Directions, FeatureMap, FourierSpec, PolynomialSpec, ProductSketch, Projected,
    SketchKind, Spec, Structure, compact_bilinear_pooling, multimodal_pooling,
};
use bochner::linalg::{Tile, TileMut, Workspace};
use bochner::projection::{Entries, Orthoprojector, Projection, Rademacher, Sampling, Srht};
use bochner::random::{Role, Seed, Stream};
use bochner::variance::Weights;
use ndarray::{Array2, Array3, ArrayView2, Axis};
use proptest::prelude::*;

fn rows(n: usize, d: usize) -> Array2<f64> {
    let mut data = vec![0.0; n * d];
    Stream::new(Seed::new(4), Role::Noise, 0).normals_from(0, &mut data);
    Array2::from_shape_vec((n, d), data).unwrap()
}

#[test]
fn a_weighted_concatenation_adds_the_kernels_of_its_parts() {
    let x = rows(7, 5);
    let parts: Vec<_> = [(0.5, 1), (2.0, 2), (-1.5, 3)]
        .into_iter()
        .map(|(weight, degree)| {
            let spec = PolynomialSpec { n_components: 32, degree, seed: u64::from(degree), ..Default::default() };
            (weight, spec.build::<f64>(5).unwrap())
        })
        .collect();
    let mut expected = Array2::<f64>::zeros((7, 7));
    for (weight, part) in &parts {
        let z = part.transform(x.view()).unwrap();
        expected = expected + *weight * *weight * z.dot(&z.t());
    }
    let concat = Concat::new(parts).unwrap();
    assert_eq!(concat.output_dim(), 96);
    let z = concat.transform(x.view()).unwrap();
    for (found, expected) in z.dot(&z.t()).iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()));
    }
    let other = FourierSpec::default().build::<f64>(4).unwrap();
    let five = FourierSpec::default().build::<f64>(5).unwrap();
    assert!(matches!(Concat::new(vec![(1.0, five.clone()), (1.0, other)]), Err(Error::Dimension { .. })));
    assert!(Concat::new(vec![(f64::NAN, five)]).is_err());
    assert!(Concat::<bochner::feature::DynMap<f64>>::new(Vec::new()).is_err());
}

#[test]
fn a_map_behind_a_projection_sees_the_projected_rows() {
    let x = rows(9, 12);
    let projection = Orthoprojector::<f64>::new(Seed::new(1), 12, 4, Entries::Gaussian).unwrap();
    let scale = projection.scale();
    let mut projected = vec![0.0; 9 * 4];
    projection.project_tile(
        Tile::new(x.as_slice().unwrap(), 9, 12),
        0..4,
        TileMut::new(&mut projected, 9, 4),
        &mut Workspace::new(),
    );
    let measured = Array2::from_shape_vec((9, 4), projected).unwrap() * scale;
    let map = FourierSpec { n_components: 20, ..Default::default() }.build::<f64>(4).unwrap();
    let chain = Projected::new(projection, scale, map.clone()).unwrap();
    assert_eq!(chain.transform(x.view()).unwrap(), map.transform(measured.view()).unwrap());
    let wrong = Orthoprojector::<f64>::new(Seed::new(1), 12, 5, Entries::Sign).unwrap();
    assert!(Projected::new(wrong, 1.0, map).is_err());
}

#[test]
fn complex_maps_of_general_weights_have_a_real_form() {
    let factors = (0..3)
        .map(|i| Rademacher::<f64, bochner::Complex<f64>>::with_real_probability(Seed::new(i), 0.7, 6, 10).unwrap())
        .collect();
    let sketch = ProductSketch::new(factors).unwrap();
    let x = rows(5, 6);
    let z = sketch.transform(x.view()).unwrap();
    let real = ComplexToReal::new(sketch).transform(x.view()).unwrap();
    for ((i, l), z) in z.indexed_iter() {
        assert_eq!((real[[i, l]], real[[i, 10 + l]]), (z.re, z.im));
    }
}

#[test]
fn pooled_sketches_of_all_tuples_are_the_bilinear_poolings() {
    // Every pair of positions of the Hadamard transform once: inner products are exact.
    let spec = PolynomialSpec {
        n_components: 16,
        degree: 2,
        sketch: SketchKind::TensorSrht,
        srht: Sampling::Tuple,
        weights: Weights::Real,
        ..Default::default()
    };
    let map = spec.build::<f64>(4).unwrap();
    let images = Array3::from_shape_vec((2, 3, 4), rows(6, 4).into_raw_vec_and_offset().0).unwrap();
    let pooled = compact_bilinear_pooling(&*map, images.view()).unwrap();
    let bilinear = |i: usize| images.index_axis(Axis(0), i).t().dot(&images.index_axis(Axis(0), i));
    for (i, j) in [(0, 0), (0, 1), (1, 1)] {
        let expected = (&bilinear(i) * &bilinear(j)).sum();
        assert!((pooled.row(i).dot(&pooled.row(j)) - expected).abs() < 1e-12 * (1.0 + expected.abs()));
    }
    assert!(compact_bilinear_pooling(&*map, Array3::zeros((2, 0, 4)).view()).is_err());
    assert!(compact_bilinear_pooling(&*map, Array3::zeros((2, 3, 5)).view()).is_err());
}

#[test]
fn two_modalities_of_different_lengths_are_pooled_exactly_by_all_tuples() {
    // Lengths 4 and 2: eight tuples, all of them.
    let factors = Srht::<f64, f64>::factors(Seed::new(3), &[4, 2], 8, Sampling::Tuple).unwrap();
    let sketch = ProductSketch::multimodal(factors).unwrap();
    let left = Array3::from_shape_vec((2, 3, 4), rows(6, 4).into_raw_vec_and_offset().0).unwrap();
    let right = rows(2, 2);
    let pooled = multimodal_pooling::<f64>(left.view(), right.view(), |f: ArrayView2<'_, f64>, g| {
        let (f, g) = (f.to_owned(), g.to_owned());
        let n = f.nrows();
        let mut out = vec![0.0; n * 8];
        let tiles = [Tile::new(f.as_slice().unwrap(), n, 4), Tile::new(g.as_slice().unwrap(), n, 2)];
        sketch.sketch_factors(&tiles, TileMut::new(&mut out, n, 8), &mut Workspace::new())?;
        Ok(Array2::from_shape_vec((n, 8), out).unwrap())
    })
    .unwrap();
    let sum = |i: usize| left.index_axis(Axis(0), i).sum_axis(Axis(0));
    for (i, j) in [(0, 0), (0, 1), (1, 1)] {
        let expected = sum(i).dot(&sum(j)) * right.row(i).dot(&right.row(j));
        assert!((pooled.row(i).dot(&pooled.row(j)) - expected).abs() < 1e-12 * (1.0 + expected.abs()));
    }
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let kinds = prop::sample::select(vec![
        SketchKind::TensorSrht,
        SketchKind::Rademacher,
        SketchKind::Gaussian,
        SketchKind::TensorSketch,
    ]);
    let weights = prop::sample::select(vec![Weights::Real, Weights::Ctr, Weights::Complex]);
    let srht = prop::sample::select(vec![Sampling::Stacked, Sampling::Upsampled, Sampling::Tuple]);
    let structure = prop::sample::select(vec![Structure::Flat, Structure::Tree, Structure::Compact]);
    let numbers = (0usize..70, 0u32..7, -0.5f64..2.0, -0.5f64..2.0);
    let polynomial =
        (kinds, weights, srht, structure, numbers).prop_map(|(sketch, weights, srht, structure, numbers)| {
            let (n_components, degree, gamma, coef0) = numbers;
            PolynomialSpec { n_components, degree, gamma, coef0, sketch, weights, srht, structure, seed: 1 }.into()
        });
    let directions =
        prop::sample::select(vec![Directions::Auto, Directions::Gaussian, Directions::Orthogonal, Directions::Sorf]);
    let fourier = (directions, 0usize..70, -0.5f64..3.0).prop_map(|(projection, n_components, scale)| {
        FourierSpec { projection, n_components, length_scale: scale.into(), ..Default::default() }.into()
    });
    prop_oneof![polynomial, fourier]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn odd_shapes_give_features_or_an_error_and_never_a_panic(spec in any_spec(), d in 0usize..40, n in 0usize..20) {
        if let Ok(map) = spec.build::<f32>(d) {
            prop_assert!(map.output_dim() > 0 && map.input_dim() == d);
            let x = rows(n, d).mapv(|v| v as f32);
            let features = map.transform(x.view()).unwrap();
            prop_assert_eq!(features.dim(), (n, map.output_dim()));
            prop_assert!(features.iter().all(|v| v.is_finite()));
            prop_assert!(map.transform(rows(2, d + 1).mapv(|v| v as f32).view()).is_err());
        }
    }
}
