//! The exact references: other software, the same answer by every road, and features whose kernel is exact.

use crate::waves::{self, close, columns, data};
use bochner::kernel::{Gaussian, Kernel, Polynomial};
use bochner::model::exact::{
    ExactGpClassifier, ExactGpRegressor, ExactGpRegressorModel, ExactSolver, KernelRidge, KernelRidgeModel,
};
use bochner::model::{Fit, Fitted, GpClassifier, GpRegressor, Model, Predict, Ridge};
use bochner::rows::InMemory;
use bochner::solve::{ConjugateGradients, Preconditioner};
use bochner::{Context, Error};
use ndarray::{Array2, array, s};
use std::sync::Arc;

/// The rows of `tools/golden/gaussian_processes.py`.
fn twelve() -> (Array2<f64>, Array2<f64>, Array2<f64>) {
    let (x, y) = waves::twelve();
    (x, y, array![[0.5, -0.25, 1.0], [2.0, 1.0, -1.0]])
}

fn gaussian(length_scale: f64) -> Arc<dyn Kernel> {
    Arc::new(Gaussian::new(length_scale).unwrap())
}

fn linear() -> Arc<dyn Kernel> {
    Arc::new(Polynomial::homogeneous(1))
}

#[test]
fn processes_and_ridge_agree_with_scikit_learn() {
    // scikit-learn 1.9.1: kernel 1.7 * RBF(0.8), alpha=0.3; KernelRidge with the same.
    let (x, y, new) = twelve();
    let mut source = InMemory::new(x.view(), y.view()).unwrap();
    let process = ExactGpRegressor::new(gaussian(0.8), 0.3).unwrap().with_signal_variance(1.7).unwrap();
    let expected = array![[2.7540332416189157, 0.42492309218094604], [2.089389243539581, -0.11277840737079878]];
    let model =
        process.clone().with_normalized_targets(false).fit_stream(&mut source, &mut Context::default()).unwrap();
    let (mean, variance) = model.predict_with_variance(new.view()).unwrap();
    close(mean.view(), expected.view(), 1e-13);
    close(variance.view(), array![[0.6590755096047127; 2], [1.6522985409842705; 2]].view(), 1e-13);
    let covariance = model.covariance(new.view(), 0).unwrap();
    assert!((covariance[[0, 1]] + 0.0030384922523706047).abs() < 1e-14);
    assert!((model.log_marginal_likelihood() + 31.101451850004118).abs() < 1e-12);
    let model = process.fit_stream(&mut source, &mut Context::default()).unwrap();
    let (mean, variance) = model.predict_with_variance(new.view()).unwrap();
    close(mean.view(), expected.view(), 1e-13);
    let expected = array![[0.3684219759097528, 0.43938367306980847], [0.9236317908813312, 1.1015323606561802]];
    close(variance.view(), expected.view(), 1e-13);
    assert!((model.log_marginal_likelihood() + 29.748388339615854).abs() < 1e-12);

    let ridge = KernelRidge::new(gaussian(0.8), 0.3).unwrap().fit_stream(&mut source, &mut Context::default()).unwrap();
    let expected = array![[2.2356658488835386, 0.37184385559080035], [-6.647_092_277_170_266e-4, -0.10518650653874426]];
    close(ridge.predict(new.view()).unwrap().view(), expected.view(), 1e-13);
}

#[test]
fn every_solver_gives_one_answer_and_says_how() {
    let (x, y, w) = data::<f64>(1300, 3, 2);
    let ridge = KernelRidge::new(gaussian(1.5), 0.5).unwrap();
    let source = || InMemory::new(x.view(), y.view()).unwrap().with_weights(w.view()).unwrap();
    let within = |bytes| Context::default().with_memory_budget(bytes).unwrap();
    let exact = ridge.fit_stream(&mut source(), &mut Context::default()).unwrap();
    assert_eq!(exact.report().solver, "cholesky");
    let new = x.slice(s![..50, ..]);
    let expected = exact.predict(new).unwrap();
    let options = |preconditioner| {
        ExactSolver::ConjugateGradients(ConjugateGradients {
            tolerance: Some(1e-12),
            max_iterations: 1000,
            preconditioner,
        })
    };
    let iterated = ridge.clone().with_solver(options(Preconditioner::Nystrom(100)));
    let made = iterated.fit_stream(&mut source(), &mut Context::default()).unwrap();
    assert!(made.report().reason.contains("made again"), "{:?}", made.report());
    close(made.predict(new).unwrap().view(), expected.view(), 1e-8);
    let kept = iterated.fit_stream(&mut source(), &mut within(1 << 30)).unwrap();
    assert!(kept.report().reason.contains("double"), "{:?}", kept.report());
    close(kept.predict(new).unwrap().view(), expected.view(), 1e-8);
    // Room for single precision only: 1,300 rows take 3.4 MB in single and 6.8 MB in double precision, and vectors 140 MB.
    let vectors = 8 * 1300 * 524 + (1 << 27);
    let coarse = ridge.clone().with_solver(ExactSolver::ConjugateGradients(ConjugateGradients::default()));
    let coarse = coarse.fit_stream(&mut source(), &mut within(vectors + 8_000_000)).unwrap();
    assert!(coarse.report().reason.contains("single"), "{:?}", coarse.report());
    close(coarse.predict(new).unwrap().view(), expected.view(), 1e-4);
    // Kept in single precision, multiplied in double: the iteration goes on below what vectors of single precision allow.
    let tight = iterated.fit_stream(&mut source(), &mut within(vectors + 8_000_000)).unwrap();
    assert!(tight.report().reason.contains("single") && tight.report().residual <= Some(1e-12), "{:?}", tight.report());
    close(tight.predict(new).unwrap().view(), expected.view(), 1e-4);
    let direct = ridge.with_solver(ExactSolver::Cholesky);
    assert!(matches!(direct.fit_stream(&mut source(), &mut within(1000)), Err(Error::Budget { .. })));
}

#[test]
fn features_whose_kernel_is_exact_give_the_exact_models() {
    let (x, y, w) = data::<f64>(200, 3, 2);
    let source = || InMemory::new(x.view(), y.view()).unwrap().with_weights(w.view()).unwrap();
    let new = x.slice(s![..20, ..]).mapv(|v| v + 0.3);
    let features =
        GpRegressor::new(columns::<f64>(3), 0.2).unwrap().fit_stream(&mut source(), &mut Context::default()).unwrap();
    let exact =
        ExactGpRegressor::new(linear(), 0.2).unwrap().fit_stream(&mut source(), &mut Context::default()).unwrap();
    let (a, b) =
        (features.predict_with_variance(new.view()).unwrap(), exact.predict_with_variance(new.view()).unwrap());
    close(a.0.view(), b.0.view(), 1e-8);
    close(a.1.view(), b.1.view(), 1e-8);
    close(features.covariance(new.view(), 1).unwrap().view(), exact.covariance(new.view(), 1).unwrap().view(), 1e-8);
    assert!((features.log_marginal_likelihood() - exact.log_marginal_likelihood()).abs() < 1e-8);
    assert_eq!(features.observation_variances().len(), exact.observation_variances().len());

    let ridge = Ridge::new(columns::<f64>(3), 0.7)
        .unwrap()
        .with_intercept(false)
        .fit_stream(&mut source(), &mut Context::default())
        .unwrap();
    let kernel = KernelRidge::new(linear(), 0.7).unwrap().fit_stream(&mut source(), &mut Context::default()).unwrap();
    close(ridge.predict(new.view()).unwrap().view(), kernel.predict(new.view()).unwrap().view(), 1e-8);

    let labels = Array2::from_shape_fn((200, 1), |(i, _)| {
        f64::from(u8::from(x[[i, 0]] > 0.4)) + f64::from(u8::from(x[[i, 1]] > 0.0))
    });
    let source = || InMemory::new(x.view(), labels.view()).unwrap();
    let features =
        GpClassifier::new(columns::<f64>(3), 0.01).unwrap().fit_stream(&mut source(), &mut Context::default()).unwrap();
    let exact =
        ExactGpClassifier::new(linear(), 0.01).unwrap().fit_stream(&mut source(), &mut Context::default()).unwrap();
    let (a, b) = (features.latents(new.view()).unwrap(), exact.latents(new.view()).unwrap());
    close(a.0.view(), b.0.view(), 1e-8);
    close(a.1.view(), b.1.view(), 1e-8);
    close(features.probabilities(new.view()).unwrap().view(), exact.probabilities(new.view()).unwrap().view(), 1e-8);
    let classes = features.predict(new.view()).unwrap();
    assert_eq!(classes, exact.predict(new.view()).unwrap());
}

#[test]
fn exact_models_come_back_from_files() {
    let (x, y, w) = data::<f64>(60, 3, 2);
    let source = || InMemory::new(x.view(), y.view()).unwrap().with_weights(w.view()).unwrap();
    let kernel = gaussian(0.9);
    let ridge =
        KernelRidge::new(kernel.clone(), 0.3).unwrap().fit_stream(&mut source(), &mut Context::default()).unwrap();
    let again = Model::from_bytes(&ridge.to_bytes().unwrap()).unwrap();
    assert_eq!(again.predict(x.view()).unwrap(), ridge.predict(x.view()).unwrap());
    assert_eq!(again.description().unwrap().in_words(), "none: the exact Gaussian kernel");
    assert!(again.downcast_ref::<KernelRidgeModel>().is_some());
    assert!(again.downcast_ref::<ExactGpRegressorModel>().is_none());
    let process = ExactGpRegressor::new(kernel.clone(), 0.3).unwrap().with_signal_variance(2.0).unwrap();
    let process = process.fit_stream(&mut source(), &mut Context::default()).unwrap();
    let read = Model::from_bytes(&process.to_bytes().unwrap()).unwrap();
    let again: &ExactGpRegressorModel = read.downcast_ref().unwrap();
    assert_eq!(again.predict_with_variance(x.view()).unwrap(), process.predict_with_variance(x.view()).unwrap());
    let labels = Array2::from_shape_fn((60, 1), |(i, _)| (i % 3) as f64);
    let classifier = ExactGpClassifier::new(kernel.clone(), 0.1).unwrap();
    let classifier = classifier.fit(x.view(), labels.view()).unwrap();
    let again = Model::from_bytes(&classifier.to_bytes().unwrap()).unwrap();
    assert_eq!(again.probabilities(x.view()).unwrap(), classifier.probabilities(x.view()).unwrap());
}

#[test]
fn bad_input_is_refused() {
    let kernel = gaussian(1.0);
    assert!(KernelRidge::new(kernel.clone(), -1.0).is_err());
    assert!(ExactGpRegressor::new(kernel.clone(), 0.0).is_err());
    assert!(ExactGpClassifier::new(kernel.clone(), f64::NAN).is_err());
    let (x, y) = (array![[0.0], [1.0]], array![[1.0], [f64::NAN]]);
    let ridge = KernelRidge::new(kernel.clone(), 1.0).unwrap();
    assert!(matches!(ridge.fit(x.view(), y.view()), Err(Error::NonFinite { row: 1, .. })));
    let none = Array2::<f64>::zeros((0, 1));
    assert!(ridge.fit(none.view(), none.view()).is_err());
    let y = array![[1.0], [2.0]];
    let model = ridge.fit(x.view(), y.view()).unwrap();
    assert!(model.predict(array![[0.0, 1.0]].view()).is_err());
    assert!(model.predict(array![[f64::INFINITY]].view()).is_err());
    // Equal rows and no penalty: a jitter is reported.
    let equal = array![[1.0], [1.0]];
    let model = KernelRidge::new(kernel, 0.0).unwrap().fit(equal.view(), y.view()).unwrap();
    assert!(model.report().jitter > 0.0);
}
