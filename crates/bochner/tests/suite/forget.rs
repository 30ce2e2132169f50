//! Rows that are taken back from sums, and sums that are weighed anew: what remains is what the other rows would have given.

use crate::waves::normals;
use bochner::Context;
use bochner::accumulate::{ClassGram, Gram};
use bochner::catalogue::ModelEntry;
use bochner::feature::{Describe, DynMap, FourierSpec};
use bochner::model::{Basis, FitRequest, Model, Sums};
use bochner::rows::{InMemory, RowBlock};
use bochner::scalar::Real;
use ndarray::{Array1, Array2, s};
use std::ops::Range;

const ROWS: usize = 6000;

fn map<R: Real>() -> DynMap<R> {
    FourierSpec { n_components: 32, seed: 4, ..FourierSpec::default() }.build(3).unwrap()
}

/// Rows, and targets (far from 0) or numbers of three classes.
fn data<R: Real>(classes: bool) -> (Array2<R>, Array2<R>) {
    let rows = normals::<f64>(ROWS, 3, 1);
    let targets = Array2::from_shape_fn((ROWS, 1), |(i, _)| match classes {
        true => f64::from(u8::from(rows[[i, 0]] > 0.0) + u8::from(rows[[i, 1]] > 1.0)),
        false => 1e3 + rows[[i, 0]].sin(),
    });
    (rows.mapv(R::from_f64), targets.mapv(R::from_f64))
}

fn read<R: Real>(sums: &mut Sums<R>, (rows, targets): &(Array2<R>, Array2<R>), range: Range<usize>) {
    let (rows, targets) = (rows.slice(s![range.clone(), ..]), targets.slice(s![range, ..]));
    sums.read(&mut InMemory::new(rows, targets).unwrap(), &mut Context::default(), &mut |_| Ok(())).unwrap();
}

fn sums<R: Real>(request: &FitRequest, data: &(Array2<R>, Array2<R>), range: Range<usize>) -> Sums<R> {
    let mut sums = request.sums(&Basis::Map(map()), (3, 1), None, &Context::default()).unwrap();
    read(&mut sums, data, range);
    sums
}

fn model<R: Real>(sums: Sums<R>, request: &FitRequest) -> Model {
    sums.finish(request, &Basis::Map(map()), &Context::default()).unwrap()
}

fn off(one: &Model, other: &Model) -> f64 {
    let rows = normals::<f64>(200, 3, 2);
    let [one, other] = [one, other].map(|model| model.predict(rows.view()).unwrap());
    (&one - &other).iter().fold(0.0f64, |most, v| most.max(v.abs()))
        / other.iter().fold(0.0f64, |most, v| most.max(v.abs()))
}

fn forgets<R: Real>(kind: &str, tolerance: f64) {
    let entry = ModelEntry::named(kind).unwrap();
    let data = data::<R>(kind.contains("classifier"));
    let request = entry.request().with_classes(kind.contains("classifier").then_some(3));
    // Waiting rows on either side, on both, and none.
    for gone in [0..1500, 10..20, 1024..3072, 2000..6000] {
        let mut all = sums(&request, &data, 0..ROWS);
        let mut others = sums(&request, &data, 0..gone.start);
        read(&mut others, &data, gone.end..ROWS);
        let mut back = all.fresh().unwrap();
        read(&mut back, &data, gone.clone());
        all.forget(back).unwrap();
        assert_eq!(all.count(), (ROWS - gone.len()) as u64);
        assert!(all.cancellation() > 1.0);
        // Sums that were stored go on as these do.
        let stored = bochner::persist::Stored::from_bytes(&all.to_bytes().unwrap()).unwrap();
        let again: Sums<R> = request.sums(&Basis::Map(map()), (3, 1), Some(&stored), &Context::default()).unwrap();
        assert_eq!(again.cancellation(), all.cancellation());
        let never = model(others, &request);
        for kept in [all, again] {
            let off = off(&model(kept, &request), &never);
            assert!(off < tolerance, "{kind} without {gone:?}: {off:e}");
        }
    }
}

#[test]
fn a_model_that_has_forgotten_rows_is_the_one_that_never_saw_them() {
    for kind in ["ridge", "ridge_classifier", "gp_regressor", "gp_classifier"] {
        forgets::<f64>(kind, 1e-10);
    }
    // Rounded to single precision once more on the way.
    forgets::<f32>("ridge", 1e-3);
}

#[test]
fn rows_that_were_not_there_are_refused_and_nothing_changes() {
    let entry = ModelEntry::named("ridge").unwrap();
    let (data, request) = (data::<f64>(false), entry.request());
    let mut few = sums(&request, &data, 0..1000);
    let before = few.to_bytes().unwrap();
    let more = sums(&request, &data, 0..1001);
    let told = few.forget(more).unwrap_err().to_string();
    assert!(told.contains("1,001 rows of 1,000"), "{told}");
    // As many, but others.
    let told = few.forget(sums(&request, &data, 1000..2000)).unwrap_err().to_string();
    assert!(told.contains("others"), "{told}");
    let one = model(few.clone(), &request);
    let other = sums(&request, &data, 0..1000);
    assert!(off(&one, &model(other, &request)) < 1e-12);
    let whole = sums(&request, &data, 0..1000);
    few.forget(whole).unwrap();
    assert_eq!(few.count(), 0);
    // Emptied sums are fresh ones.
    read(&mut few, &data, 0..1000);
    assert_eq!(few.to_bytes().unwrap(), before);
    let classes = ModelEntry::named("ridge_classifier").unwrap().request().with_classes(Some(3));
    let other = sums(&classes, &self::data(true), 0..10);
    assert!(few.forget(other).is_err());
}

#[test]
fn sums_that_are_scaled_are_those_of_rows_with_smaller_weights() {
    let (rows, targets) = data::<f64>(false);
    let (labels, map) = (data::<f64>(true).1, map::<f64>());
    let block = |range: Range<usize>, targets: &Array2<f64>, weight: f64| {
        let (rows, targets) =
            (rows.slice(s![range.clone(), ..]).to_owned(), targets.slice(s![range.clone(), ..]).to_owned());
        (rows, targets, Array1::from_elem(range.len(), weight))
    };
    macro_rules! push {
        ($gram:expr, $block:expr) => {{
            let (rows, targets, weights) = &$block;
            let block = RowBlock { rows: rows.view(), targets: targets.view(), weights: Some(weights.view()) };
            $gram.push_rows(&map, block).unwrap();
        }};
    }
    let (mut scaled, mut weighted) = (Gram::new(32, 1).unwrap(), Gram::new(32, 1).unwrap());
    push!(scaled, block(0..1500, &targets, 1.0));
    scaled.scale(0.25).unwrap();
    push!(scaled, block(1500..2000, &targets, 1.0));
    push!(weighted, block(0..1500, &targets, 0.25));
    push!(weighted, block(1500..2000, &targets, 1.0));
    let (one, other) = (scaled.finish().about_zero().unwrap(), weighted.finish().about_zero().unwrap());
    assert!((one.totals.log_weight_sum - 1500.0 * 0.25f64.ln()).abs() < 1e-9);
    assert!((one.totals.log_weight_sum - other.totals.log_weight_sum).abs() < 1e-9);
    assert_eq!((one.totals.weight_sum, one.totals.count), (875.0, 2000));
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs().max(1e3);
    assert!(near(one.totals.target_squares[0], other.totals.target_squares[0]));
    assert!(one.cross.iter().zip(&other.cross).all(|(a, b)| near(*a, *b)));
    for i in 0..32 {
        assert!(near(one.feature_sums[i], other.feature_sums[i]));
        assert!(one.gram.row(i).iter().zip(other.gram.row(i)).all(|(a, b)| near(*a, *b)));
    }
    let (mut scaled, mut weighted) = (ClassGram::new(3, 32, 3).unwrap(), ClassGram::new(3, 32, 3).unwrap());
    push!(scaled, block(0..1500, &labels, 1.0));
    scaled.scale(&map, 0.25).unwrap();
    push!(weighted, block(0..1500, &labels, 0.25));
    for (one, other) in scaled.finish(&map).unwrap().iter().zip(weighted.finish(&map).unwrap()) {
        assert!((one.totals.weight_sum - other.totals.weight_sum).abs() < 1e-9);
        (0..32).for_each(|i| assert!(one.gram.row(i).iter().zip(other.gram.row(i)).all(|(a, b)| near(*a, *b))));
    }
    assert!(Gram::<f64>::new(2, 1).unwrap().scale(0.0).is_err());
}

#[test]
fn a_model_file_keeps_sums_and_predicts_as_without_them() {
    let entry = ModelEntry::named("ridge").unwrap();
    let (data, request) = (data::<f32>(false), entry.request());
    let sums = sums(&request, &data, 0..1500);
    let plain = model(sums.clone(), &request);
    let kept = plain.clone().with_sums(&sums).unwrap();
    let again = Model::from_bytes(&kept.to_bytes().unwrap()).unwrap();
    assert!(plain.sums().is_none());
    assert_eq!(off(&again, &plain), 0.0);
    let mut resumed: Sums<f32> = request.sums(&Basis::Map(map()), (3, 1), again.sums(), &Context::default()).unwrap();
    assert_eq!(resumed.to_bytes().unwrap(), sums.to_bytes().unwrap());
    read(&mut resumed, &data, 1500..ROWS);
    assert_eq!(off(&model(resumed, &request), &model(self::sums(&request, &data, 0..ROWS), &request)), 0.0);
    // What is damaged is refused, also among the sums.
    let mut bytes = kept.to_bytes().unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert!(Model::from_bytes(&bytes).is_err());
}
