"""Gaussian processes and exact models: the same numbers as scikit-learn, by every road."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import FeatureGPClassifier, FeatureGPRegressor, FourierFeatures, PolynomialSketch, exact
from bochner.kernels import Gaussian


@pytest.fixture
def wave(rng):
    X = rng.uniform(0, 6, size=(300, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300) + 5.0
    return X, y


def test_exact_regression_agrees_with_scikit_learn(wave):
    X, y = wave
    ours = exact.GPRegressor(Gaussian(1.3), noise=0.2, signal=1.7).fit(X[:100], y[:100])
    kernel = ConstantKernel(1.7) * RBF(1.3)
    theirs = GaussianProcessRegressor(kernel, alpha=0.2, optimizer=None, normalize_y=True).fit(X[:100], y[:100])
    mean, std = ours.predict(X[100:], return_std=True)
    expected, spread = theirs.predict(X[100:], return_std=True)
    np.testing.assert_allclose(mean, expected, atol=1e-10)
    np.testing.assert_allclose(std, spread, atol=1e-10)
    _, cov = ours.predict(X[100:110], return_cov=True)
    np.testing.assert_allclose(cov, theirs.predict(X[100:110], return_cov=True)[1], atol=1e-10)
    likelihood = theirs.log_marginal_likelihood_value_ - 100 * np.log(y[:100].std())
    assert ours.log_marginal_likelihood_value_ == pytest.approx(likelihood, abs=1e-8)


def test_exact_ridge_agrees_with_scikit_learn(wave):
    X, y = wave
    targets = np.stack([y, -2 * y], axis=1)
    ours = exact.KernelRidge(Gaussian(1.3), alpha=0.3).fit(X, targets)
    theirs = KernelRidge(kernel="rbf", gamma=0.5 / 1.3**2, alpha=0.3).fit(X, targets)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-9)
    with pytest.raises(TypeError, match=r"one of bochner\.kernels"):
        exact.KernelRidge("rbf").fit(X, y)


def test_many_features_come_close_to_the_exact_process(wave):
    X, y = wave
    features = FourierFeatures(4096, length_scale=1.3, random_state=0)
    model = FeatureGPRegressor(features, noise=0.1).fit(X, y)
    reference = exact.GPRegressor(Gaussian(1.3), noise=0.1).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    expected, spread = reference.predict(X, return_std=True)
    assert np.abs(mean - expected).max() < 0.3 * spread.max()
    np.testing.assert_allclose(std, spread, rtol=0.3)
    assert model.observation_variance_ == pytest.approx(0.1 * y.var())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["cos_sin", "complex"])
def test_regression_keeps_dtype_streams_and_pickles(wave, dtype, form):
    X, y = wave[0].astype(dtype), wave[1].astype(dtype)
    model = FeatureGPRegressor(FourierFeatures(64, form=form, random_state=0)).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert mean.dtype == dtype and std.shape == y.shape
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), mean)
    assert again.log_marginal_likelihood_value_ == model.log_marginal_likelihood_value_
    parts = FeatureGPRegressor(FourierFeatures(64, form=form, random_state=0))
    for start in (0, 120):
        parts.partial_fit(X[start : start + 120 if start == 0 else None], y[start : start + 120 if start == 0 else None])
    np.testing.assert_allclose(parts.predict(X), mean, atol=1e-9 if dtype == np.float64 else 1e-2)
    samples = model.sample_y(X[:5], n_samples=3, random_state=1)
    assert samples.shape == (5, 3)
    np.testing.assert_allclose(model.sample_y(X[:2], n_samples=3, random_state=1), samples[:2], rtol=1e-4)


def test_hyperparameters_are_found_and_kept(wave):
    X, y = wave

    def process(length_scale, **parameters):
        return FeatureGPRegressor(FourierFeatures(128, length_scale=length_scale, random_state=0), **parameters).fit(X, y)

    # From far away, no lower than any point of a grid. A model that calls nearly everything noise gains 35 nats.
    common = process(0.1, noise=0.5, optimizer="lbfgs")
    grid = [(scale, n, s) for scale in (0.5, 1.0, 2.0, 4.0) for n in (0.01, 0.02, 0.05) for s in (1.0, 3.0)]
    best = max(process(scale, noise=n, signal=s).log_marginal_likelihood_value_ for scale, n, s in grid)
    assert common.log_marginal_likelihood_value_ >= best
    # With a length scale for each column, no lower than where the data come from: the second column does not matter.
    model = process(0.3, noise=0.5, optimizer="lbfgs", length_scales="per_input")
    truth = process([1.5, 20.0], noise=0.01 / y.var())
    assert model.log_marginal_likelihood_value_ >= truth.log_marginal_likelihood_value_
    assert model.features_.length_scale_[1] > 5 * model.features_.length_scale_[0]
    # The variance of 300 draws of noise has a relative standard deviation of sqrt(2 / 300).
    for found in (common, model):
        assert abs(found.observation_variance_ / 0.01 - 1) < 5 * np.sqrt(2 / 300)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="optimizer must be"):
        FeatureGPRegressor(optimizer="adam").fit(X, y)
    fixed = FeatureGPRegressor(PolynomialSketch(64, coef0=1.0, random_state=0), optimizer="lbfgs").fit(X, y)
    assert fixed.noise_ != 0.1


def test_classification_is_calibrated_and_chooses_alpha(rng):
    X = rng.normal(size=(600, 2))
    y = np.where(np.hypot(*X.T) + 0.2 * rng.normal(size=600) < 1.1, "in", "out")
    features = FourierFeatures(128, random_state=0)
    model = FeatureGPClassifier(features, alpha=[1e-4, 1e-2, 1.0], random_state=0).fit(X[:400], y[:400])
    assert model.alpha_ == [1e-4, 1e-2, 1.0][int(np.argmin(model.validation_losses_))]
    p = model.predict_proba(X[400:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.score(X[400:], y[400:]) > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X[400:]), p)
    reference = exact.GPClassifier(Gaussian(), alpha=model.alpha_, random_state=0).fit(X[:400], y[:400])
    assert np.abs(reference.predict_proba(X[400:]) - p).mean() < 0.05
    assert (pickle.loads(pickle.dumps(reference)).predict(X) == reference.predict(X)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FeatureGPRegressor(noise=0.0), "noise must be a positive finite number"),
        (FeatureGPRegressor(signal=-1.0), "signal must be a positive finite number"),
        (FeatureGPClassifier(alpha=0.0), "alpha must be a positive finite number"),
        (exact.GPRegressor(noise=-1.0), "noise must be a positive finite number"),
        (exact.KernelRidge(alpha=-1.0), "must be a non-negative finite number"),
    ],
)
def test_values_out_of_range_are_named(model, message, rows):
    with pytest.raises(ValueError, match=message):
        model.fit(rows, np.arange(len(rows)) % 3)


VARIATIONAL = FeatureGPClassifier(FourierFeatures(64), inference="variational", max_iter=10)


def not_for_batches(estimator):
    """Checks that stochastic inference cannot pass."""
    reason = "batches of repeated rows are other batches than those of weighted ones"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks([VARIATIONAL], expected_failed_checks=not_for_batches)
def test_variational_inference_follows_the_protocol(estimator, check):
    check(estimator)


def test_variational_inference_finds_rings(rng):
    X = rng.normal(size=(1500, 2))
    y = np.array(["centre", "ring", "outside"])[np.digitize(np.hypot(*X.T), [0.8, 1.6])]
    # Sorted by label: rows are shuffled before they are cut into batches.
    order = np.argsort(y)
    features = FourierFeatures(256, random_state=0)
    model = FeatureGPClassifier(features, inference="variational", random_state=0).fit(X[order], y[order])
    exact_labels = FeatureGPClassifier(features, random_state=0).fit(X, y)
    test = rng.normal(size=(1000, 2))
    truth = np.array(["centre", "ring", "outside"])[np.digitize(np.hypot(*test.T), [0.8, 1.6])]
    right, reference = model.score(test, truth), exact_labels.score(test, truth)
    # Two binomial standard errors of the difference.
    assert right > reference - 2 * np.sqrt(2 * reference * (1 - reference) / 1000) - 0.01
    assert np.allclose(model.predict_proba(test).sum(axis=1), 1.0)
    assert model.log_marginal_likelihood_value_ < 0
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(test), model.predict_proba(test))
    assert not hasattr(model, "partial_fit")
    with pytest.raises(ValueError, match='inference must be .*, got "mcmc"'):
        clone(model).set_params(inference="mcmc").fit(X, y)


@pytest.mark.parametrize("form", ["cos_sin", "complex"])
def test_a_classifier_may_see_its_rows_in_parts(rng, form):
    X = rng.normal(size=(2500, 3))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    weights = rng.uniform(0.5, 2.0, size=2500)
    model = FeatureGPClassifier(FourierFeatures(32, form=form, random_state=0), random_state=1)
    whole = clone(model).fit(X, y, weights)
    parts = clone(model)
    for piece in np.array_split(np.arange(2500), 7):
        parts.partial_fit(X[piece], y[piece], classes=[0, 1, 2], sample_weight=weights[piece])
    # The same rows in the same order are the same bits.
    assert np.array_equal(parts.predict_proba(X), whole.predict_proba(X))
    assert parts.log_marginal_likelihood_value_ == whole.log_marginal_likelihood_value_


def test_the_exact_machine_agrees_with_libsvm(rng):
    X = rng.normal(size=(400, 3))
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.5, 0.5])]
    test = rng.normal(size=(300, 3))
    for labels in (y, np.where(y == "low", "a", "b")):
        ours = exact.KernelSVC(Gaussian(1.3), C=3.0, tol=1e-8).fit(X, labels)
        theirs = SVC(C=3.0, gamma=0.5 / 1.3**2, tol=1e-8, decision_function_shape="ovo").fit(X, labels)
        expected = theirs.decision_function(test)
        found = ours.model_.ask("decide", test) if expected.ndim > 1 else ours.decision_function(test)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        # Votes may be tied, which libsvm breaks in the same way.
        assert np.array_equal(ours.predict(test), theirs.predict(test))
        assert set(ours.support_) == set(theirs.support_)
        copy = pickle.loads(pickle.dumps(ours))
        assert np.array_equal(copy.decision_function(test), ours.decision_function(test))
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        exact.KernelSVC(max_iter=1).fit(X, y)
    with pytest.raises(ValueError, match="C must be a positive finite number, got 0"):
        exact.KernelSVC(C=0.0).fit(X, y)


def test_independent_draws_give_a_figure_to_compare_with(rows):
    plain = FourierFeatures(64, projection="gaussian", random_state=0).fit(rows)
    assert np.array_equal(plain.variance_iid(rows[:5]), plain.variance(rows[:5]))
    structured = FourierFeatures(64, projection="sorf", random_state=0).fit(rows)
    with pytest.raises(ValueError, match="variance_iid"):
        structured.variance(rows[:5])
    assert np.array_equal(structured.variance_iid(rows[:5]), plain.variance(rows[:5]))
