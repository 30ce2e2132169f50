//! Model files: what is written comes back, and what was damaged does not.

use crate::waves::{data, normals, waves};
use bochner::accumulate::{ClassGram, Gram};
use bochner::feature::{Describe, Description, DynMap, FourierSpec, Spec};
use bochner::model::{Fit, Fitted, Model, Predict, Ridge, RidgeClassifier, RidgeClassifierModel, RidgeModel};
use bochner::persist::{Header, Label, Stored, Tensor, Values};
use bochner::rows::{InMemory, RowBlock};
use bochner::scalar::Real;
use bochner::{Complex, Context, Error};
use ndarray::{Array2, s};
use std::path::PathBuf;

/// A folder of its own for every test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bochner-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn a_model_comes_back<R: Real>(name: &str) {
    let folder = Folder::new(name);
    let path = folder.0.join("model.bochner");
    let (x, y, w) = data::<R>(100, 3, 2);
    let mut source = InMemory::new(x.view(), y.view()).unwrap().with_weights(w.view()).unwrap();
    let spec = FourierSpec { n_components: 20, seed: 1, ..FourierSpec::default() };
    let model =
        Ridge::new(spec.build::<R>(3).unwrap(), 0.1).unwrap().fit_stream(&mut source, &mut Context::default()).unwrap();
    model.save(&path).unwrap();
    let read = bochner::load(&path).unwrap();
    let description = Description::from(Spec::from(spec.settle(3).unwrap()));
    assert_eq!((read.description(), read.precision()), (Some(&description), R::NAME));
    assert_eq!((read.input_dim(), read.output_dim(), read.kind().entry.name), (3, 2, "ridge"));
    let again: &RidgeModel<DynMap<R>> = read.downcast_ref().unwrap();
    assert_eq!(again.predict(x.view()).unwrap(), model.predict(x.view()).unwrap());
    assert_eq!(again.report(), model.report());
    // Saving over a file replaces it, leaves nothing else behind, and writes the same bytes.
    let bytes = std::fs::read(&path).unwrap();
    read.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    // A map of another size or precision is refused.
    let stored = Stored::load(&path).unwrap();
    let with = |change: &dyn Fn(&mut Header)| {
        let mut stored = stored.clone();
        change(&mut stored.header);
        Model::from_bytes(&stored.to_bytes().unwrap())
    };
    let wider = Spec::from(FourierSpec { n_components: 22, ..spec });
    assert!(with(&|header| header.map = Some(wider.clone().into())).is_err());
    assert!(with(&|header| header.input_dim = 4).is_err());
    assert!(read.downcast_ref::<RidgeClassifierModel<DynMap<R>>>().is_none());
    let dtype = if R::NAME == "f32" { "f64" } else { "f32" };
    assert!(matches!(with(&|header| header.dtype = dtype.into()), Err(Error::Format { .. })));
    // A map of one's own has no description to be drawn from again.
    let own = Ridge::new(waves::<R>(3, 20), 0.1).unwrap().fit(x.view(), y.view()).unwrap();
    let refused = own.save(&path).unwrap_err();
    assert!(matches!(&refused, Error::Unsupported { reason, .. } if reason.contains("Describe::build")), "{refused}");
    assert_eq!(Model::from(own).description(), None);
}

#[test]
fn models_come_back_in_both_precisions() {
    a_model_comes_back::<f32>("single");
    a_model_comes_back::<f64>("double");
}

#[test]
fn classifiers_keep_the_names_of_their_classes() {
    let (x, _, _) = data::<f32>(60, 3, 1);
    let labels = Array2::from_shape_fn((60, 1), |(i, _)| (i % 3) as f32);
    let map = FourierSpec { n_components: 10, ..FourierSpec::default() }.build::<f32>(3).unwrap();
    let model = RidgeClassifier::new(Ridge::new(map, 0.1).unwrap()).fit(x.view(), labels.view()).unwrap();
    let names: Vec<Label> = vec!["ash".into(), "birch".into(), 7.into()];
    assert!(Model::from(model.clone()).with_classes(names[..2].to_vec()).is_err());
    let named = Model::from(model.clone()).with_classes(names.clone()).unwrap();
    let bytes = named.to_bytes().unwrap();
    let again = Model::from_bytes(&bytes).unwrap();
    assert_eq!(again.to_bytes().unwrap(), bytes);
    assert_eq!(again.classes(), Some(&names[..]));
    let wide = x.mapv(f64::from);
    assert_eq!(again.predict_classes(wide.view()).unwrap(), model.predict_classes(x.view()).unwrap());
    // Without names classes are called by their numbers, so that every door can read the file.
    let numbered = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(numbered.classes(), Some(&[0, 1, 2].map(Label::from)[..]));
    assert!(again.probabilities(wide.view()).unwrap_err().to_string().contains("Gaussian process classification"));
}

#[test]
fn what_doors_attach_comes_back() {
    let (x, y, _) = data::<f64>(40, 3, 1);
    let map = FourierSpec { n_components: 10, ..FourierSpec::default() }.build::<f64>(3).unwrap();
    let model = Ridge::new(map, 0.1).unwrap().fit(x.view(), y.view()).unwrap();
    let mut model = Model::from(model);
    assert_eq!(model.attachment::<Vec<String>>("training").unwrap(), None);
    model.attach("training", &vec!["by hand"]).unwrap();
    model.attach("preprocessing", &(1, 2)).unwrap();
    // What the kind itself needs cannot be replaced.
    model.attach("report", &"none").unwrap();
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.attachment::<Vec<String>>("training").unwrap(), Some(vec!["by hand".to_owned()]));
    assert_eq!(again.attachment::<(u8, u8)>("preprocessing").unwrap(), Some((1, 2)));
    assert!(again.attachment::<u8>("preprocessing").is_err());
    let mut twice = Model::from_bytes(&again.to_bytes().unwrap()).unwrap();
    assert_eq!(twice.attachment::<(u8, u8)>("preprocessing").unwrap(), Some((1, 2)));
    twice.attach("preprocessing", &()).unwrap();
    assert_eq!(twice.attachment::<(u8, u8)>("preprocessing").unwrap(), None);
}

fn small() -> Stored {
    let mut header = Header::new("ridge", "f32", 2);
    header.map = Some(Spec::from(FourierSpec::default()).into());
    Stored::new(header)
        .with("coefficients", Tensor::new(vec![2, 2], Values::F32(vec![1.0, -2.0, 0.5, 3.0])).unwrap())
        .with("intercept", Tensor::new(vec![2], Values::F64(vec![0.25, 1e-300])).unwrap())
}

#[test]
fn every_flipped_bit_and_every_cut_is_refused() {
    let stored = small();
    let bytes = stored.to_bytes().unwrap();
    assert_eq!(Stored::from_bytes(&bytes).unwrap(), stored);
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << bit;
            let result = Stored::from_bytes(&damaged);
            assert!(matches!(result, Err(Error::Format { .. })), "byte {position}, bit {bit}: {result:?}");
        }
        assert!(Stored::from_bytes(&bytes[..position]).is_err(), "cut at {position}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(Stored::from_bytes(&longer).is_err());
}

#[test]
fn lengths_that_lie_do_not_ask_for_memory() {
    for length in [0, 1, 8, 99_999_999, u64::MAX / 2, u64::MAX] {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend_from_slice(br#"{"a":{"dtype":"F64","shape":[4611686018427387904,8],"data_offsets":[0,0]}}"#);
        assert!(matches!(Stored::from_bytes(&bytes), Err(Error::Format { .. })));
    }
}

#[test]
fn files_of_others_and_of_later_versions_say_so() {
    let bytes = small().to_bytes().unwrap();
    let replaced = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let place = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        let mut bytes = bytes.clone();
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
        Stored::from_bytes(&bytes).unwrap_err().to_string()
    };
    assert!(replaced("\"bochner\"", "\"nobody!\"").contains("did not write"));
    assert!(replaced("format\\\":2", "format\\\":9").contains("later version"));
    assert!(replaced("cos_sin", "COS_SIN").contains("damaged"));
    assert!(Stored::from_bytes(b"plain text, not a model").unwrap_err().to_string().contains("safetensors"));
    assert!(matches!(Stored::load("no such folder/no such file"), Err(Error::Io(_))));
}

#[test]
fn a_file_that_cannot_be_replaced_leaves_no_trace() {
    let folder = Folder::new("trace");
    let target = folder.0.join("taken");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("inside"), b"x").unwrap();
    assert!(matches!(small().save(&target), Err(Error::Io(_))));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    assert!(small().save("/").is_err());
}

#[test]
fn an_interrupted_stream_goes_on_with_the_same_bits() {
    let folder = Folder::new("stream");
    let path = folder.0.join("sums");
    let (x, y, w) = data::<f32>(1500, 6, 2);
    let push = |gram: &mut Gram<f32>, r: std::ops::Range<usize>| {
        gram.push(x.slice(s![r.clone(), ..]), y.slice(s![r.clone(), ..]), Some(w.slice(s![r]))).unwrap();
    };
    let mut whole = Gram::new(6, 2).unwrap();
    push(&mut whole, 0..1500);
    let mut first = Gram::new(6, 2).unwrap();
    push(&mut first, 0..1100);
    first.save(&path).unwrap();
    let mut second = Gram::<f32>::load(&path).unwrap();
    assert_eq!(second.count(), 1100);
    push(&mut second, 1100..1500);
    let (a, b) = (whole.finish(), second.finish());
    assert!((0..6).all(|i| a.gram.row(i) == b.gram.row(i)));
    assert_eq!((a.cross, a.feature_sums, a.totals), (b.cross, b.feature_sums, b.totals));
    assert!(matches!(Gram::<f64>::load(&path), Err(Error::Format { .. })));
    assert!(matches!(Gram::<Complex<f32>>::load(&path), Err(Error::Format { .. })));
}

#[test]
fn complex_sums_come_back() {
    let folder = Folder::new("complex");
    let path = folder.0.join("sums");
    let parts = normals::<f64>(50, 6, 4);
    let f = Array2::from_shape_fn((50, 3), |(i, j)| Complex::new(parts[[i, j]], parts[[i, j + 3]]));
    let mut gram = Gram::<Complex<f64>>::new(3, 0).unwrap();
    gram.push(f.view(), Array2::zeros((50, 0)).view(), None).unwrap();
    gram.save(&path).unwrap();
    let (a, b) = (gram.finish(), Gram::<Complex<f64>>::load(&path).unwrap().finish());
    assert!((0..3).all(|i| a.gram.row(i) == b.gram.row(i)));
}

#[test]
fn sums_travel_as_bytes_and_go_on_with_the_same_bits() {
    let (x, _, w) = data::<f32>(1500, 3, 1);
    let labels = Array2::from_shape_fn((1500, 1), |(i, _)| (i % 3 / 2) as f32);
    let map = FourierSpec { n_components: 8, ..FourierSpec::default() }.build::<f32>(3).unwrap();
    let push = |sums: &mut ClassGram<f32>, r: std::ops::Range<usize>| {
        let (rows, targets) = (x.slice(s![r.clone(), ..]), labels.slice(s![r.clone(), ..]));
        sums.push_rows(&map, RowBlock { rows, targets, weights: Some(w.slice(s![r])) }).unwrap();
    };
    let mut whole = ClassGram::new(3, 8, 2).unwrap();
    push(&mut whole, 0..1500);
    let mut part = ClassGram::new(3, 8, 2).unwrap();
    push(&mut part, 0..1200);
    let bytes = part.to_bytes().unwrap();
    let mut part = ClassGram::<f32>::from_bytes(&bytes).unwrap();
    assert_eq!((part.count(), part.classes(), part.dim(), part.input_dim()), (1200, 2, 8, 3));
    push(&mut part, 1200..1500);
    for (a, b) in whole.finish(&map).unwrap().iter().zip(part.finish(&map).unwrap()) {
        assert!((0..8).all(|i| a.gram.row(i) == b.gram.row(i)));
        assert_eq!((&a.feature_sums, &a.totals), (&b.feature_sums, &b.totals));
    }
    assert!(matches!(ClassGram::<f64>::from_bytes(&bytes), Err(Error::Format { .. })));
    assert!(matches!(Gram::<f32>::from_bytes(&bytes), Err(Error::Format { .. })));
    let mut gram = Gram::<f64>::new(2, 1).unwrap();
    gram.push(ndarray::array![[1.0, 2.0]].view(), ndarray::array![[3.0]].view(), None).unwrap();
    let again = Gram::<f64>::from_bytes(&gram.to_bytes().unwrap()).unwrap();
    assert_eq!(gram.finish().cross, again.finish().cross);
}
