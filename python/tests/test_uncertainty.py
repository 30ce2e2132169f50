"""Intervals, rows left out, gradients, functions from the posterior, calibrated probabilities, learned metrics."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import bochner
from bochner import (
    FeatureGPClassifier,
    FeatureGPRegressor,
    FeatureRidge,
    FeatureRidgeClassifier,
    FeatureSVC,
    FourierFeatures,
    LearnedMetric,
    LocalGPRegressor,
    OperatorRidge,
    OperatorRidgeClassifier,
    exact,
    kernels,
)

FEATURES = FourierFeatures(128, length_scale=1.5, random_state=0)
REGRESSORS = [
    (FeatureRidge(FEATURES, alpha=0.1), "leave_one_out"),
    (FeatureGPRegressor(FEATURES, noise=0.1), "leave_one_out"),
    (exact.GPRegressor(kernels.Gaussian(1.5), noise=0.1), "leave_one_out"),
    (exact.KernelRidge(kernels.Gaussian(1.5), alpha=0.1), "folds"),
    (exact.OperatorRidge(alpha=0.1), "folds"),
    (OperatorRidge(length_scale=1.5, n_components=128, alpha=0.1, random_state=0), "folds"),
    (LocalGPRegressor(50, length_scale=1.5, noise=0.1, random_state=0), "folds"),
]


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(("model", "kind"), REGRESSORS, ids=lambda p: type(p).__name__)
def test_intervals_hold_what_they_say(model, kind):
    X, y = data(400)
    X_new, y_new = data(2000, seed=1)
    fitted = clone(model).fit(X, y)
    interval = fitted.predict_interval(X_new)
    assert interval.shape == (2000, 2) and fitted.interval_kind_ == kind
    covered = np.mean((interval[:, 0] <= y_new) & (y_new <= interval[:, 1]))
    # 400 scores: the coverage of their quantile has standard deviation sqrt(0.09 / 401), that of 2,000 rows sqrt(0.09 / 2000).
    assert abs(covered - 0.9) < 4 * np.sqrt(0.09 / 401 + 0.09 / 2000)
    assert (np.diff(fitted.predict_interval(X_new, coverage=0.5)) < np.diff(interval)).all()
    split = fitted.calibrate(X_new[:1000], y_new[:1000])
    assert split is fitted and fitted.interval_kind_ == "split"
    ends = fitted.predict_interval(X_new[1000:], coverage=0.8)
    covered = np.mean((ends[:, 0] <= y_new[1000:]) & (y_new[1000:] <= ends[:, 1]))
    assert abs(covered - 0.8) < 4 * np.sqrt(0.16 / 1001 + 0.16 / 1000)
    with pytest.raises(ValueError, match="coverage must be above 0 and below 1"):
        fitted.predict_interval(X, coverage=1.0)


def test_intervals_of_several_targets_and_of_too_few_rows():
    X, y = data(50)
    fitted = FeatureRidge(FEATURES).fit(X, np.c_[y, 10 * y])
    interval = fitted.predict_interval(X)
    assert interval.shape == (50, 2, 2)
    widths = np.diff(interval)[:, :, 0]
    np.testing.assert_allclose(widths[:, 1], 10 * widths[:, 0], rtol=1e-9)
    few = FeatureRidge(FEATURES).fit(X[:5], y[:5])
    assert np.isinf(few.predict_interval(X, coverage=0.9)).all()


def test_models_without_the_rows_of_fit_ask_for_others():
    X, y = data(100)
    fitted = FeatureRidge(FEATURES).fit(X, y)
    restored = pickle.loads(pickle.dumps(fitted))
    assert not hasattr(restored, "_kept_")
    with pytest.raises(AttributeError, match=r"call calibrate\(X, y\)"):
        restored.predict_interval(X)
    assert restored.calibrate(X, y).predict_interval(X).shape == (100, 2)
    streamed = FeatureRidge(FEATURES).partial_fit(X, y)
    assert not hasattr(streamed, "loo_predict_") and not hasattr(streamed, "importances_")
    streamed.calibrate(X, y)
    assert streamed.partial_fit(X, y).predict(X).shape == (100,)
    with pytest.raises(AttributeError, match="intervals need rows"):
        streamed.predict_interval(X)


@pytest.mark.parametrize("weighted", [False, True])
def test_predictions_left_out_are_those_of_scikit_learn(weighted):
    X, y = data(40)
    weights = np.random.default_rng(2).uniform(0.5, 2, size=40) if weighted else None
    features = clone(FEATURES).fit(X)
    fitted = FeatureRidge(FEATURES, alpha=0.2).fit(X, y, sample_weight=weights)
    params = {} if weights is None else {"sample_weight": weights}
    expected = cross_val_predict(Ridge(alpha=0.2), features.transform(X), y, cv=LeaveOneOut(), params=params)
    np.testing.assert_allclose(fitted.loo_predict_, expected, atol=1e-8)


def test_the_penalty_of_few_rows_is_found_by_leaving_them_out():
    X, y = data(60)
    found = FeatureRidge(FEATURES, alpha="loo").fit(X, y)
    error = np.mean((found.loo_predict_ - y) ** 2)
    for alpha in (found.alpha_ / 100, found.alpha_ * 100):
        assert error <= np.mean((FeatureRidge(FEATURES, alpha=alpha).fit(X, y).loo_predict_ - y) ** 2)
    with pytest.raises(ValueError, match='alpha must be a number or "loo"'):
        FeatureRidge(FEATURES, alpha="cv").fit(X, y)
    with pytest.raises(ValueError, match="rows come in parts"):
        FeatureRidge(FEATURES, alpha="loo").partial_fit(X, y)


def slopes(function, X, step=1e-5):
    columns = []
    for j in range(X.shape[1]):
        move = np.zeros(X.shape[1])
        move[j] = step
        columns.append((function(X + move) - function(X - move)) / (2 * step))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize(
    "model",
    [
        FeatureRidge(FEATURES),
        FeatureGPRegressor(FEATURES),
        FeatureGPRegressor(FourierFeatures(64, form="complex", random_state=0)),
        OperatorRidge(length_scale=1.5, n_components=64, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("several", [False, True])
def test_gradients_are_slopes_of_predictions(model, several):
    X, y = data(80)
    y = np.c_[y, y**2] if several else y
    fitted = clone(model).fit(X, y)
    gradient = fitted.gradient(X[:7])
    assert gradient.shape == ((7, 2, 2) if several else (7, 2))
    np.testing.assert_allclose(gradient, slopes(fitted.predict, X[:7]), atol=1e-6)
    importances = fitted.importances(X)
    np.testing.assert_allclose(importances, fitted.importances_)
    np.testing.assert_allclose(importances, (fitted.gradient(X).reshape(80, -1, 2) ** 2).sum(axis=1).mean(axis=0))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        FeatureRidgeClassifier(FEATURES),
        FeatureSVC(FEATURES, random_state=0),
        OperatorRidgeClassifier(length_scale=1.5, n_components=64, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_gradients_of_classifiers_are_slopes_of_their_decisions(model, classes):
    X, y = data(90)
    labels = np.digitize(y, [-0.5, 0.5] if classes == 3 else [0.0])
    fitted = clone(model).fit(X, labels)
    gradient = fitted.gradient(X[:5])
    assert gradient.shape == ((5, 3, 2) if classes == 3 else (5, 2))
    np.testing.assert_allclose(gradient, slopes(fitted.decision_function, X[:5]), atol=1e-6)
    latent = FeatureGPClassifier(FEATURES, random_state=0).fit(X, labels).gradient(X[:5])
    assert latent.shape == (5, classes, 2)


def test_sampled_functions_are_the_samples_and_can_be_climbed():
    X, y = data(60)
    process = FeatureGPRegressor(FEATURES, noise=0.05).fit(X, y)
    functions = process.sample_functions(3, random_state=7)
    values = process.sample_y(X[:9], 3, random_state=7)
    for k, function in enumerate(functions):
        np.testing.assert_allclose(function(X[:9]), values[:, k], atol=1e-10)
        np.testing.assert_allclose(function.gradient(X[:9]), slopes(function, X[:9]), atol=1e-6)
        assert function(X[0]).shape == () and function.gradient(X[0]).shape == (2,)
    many = np.stack([f(X[:4]) for f in process.sample_functions(2000, random_state=0)], axis=1)
    mean, std = process.predict(X[:4], return_std=True)
    assert (abs(many.mean(axis=1) - mean) < 5 * std / np.sqrt(2000)).all()
    # The standard error of a standard deviation of normal numbers is std / sqrt(2 n).
    assert (abs(many.std(axis=1) - std) < 5 * std / np.sqrt(4000)).all()
    both = FeatureGPRegressor(FEATURES).fit(X, np.c_[y, -y]).sample_functions(1, random_state=0)[0]
    assert both(X).shape == (60, 2) and both.gradient(X).shape == (60, 2, 2)


@pytest.mark.parametrize("model", [FeatureGPRegressor(FEATURES), exact.GPRegressor(), LocalGPRegressor(50, random_state=0)])
def test_deviations_are_with_noise_or_without(model):
    X, y = data(60)
    fitted = clone(model).fit(X, y)
    mean, std = fitted.predict(X, return_std=True)
    same, of_observations = fitted.predict(X, return_std=True, include_noise=True)
    np.testing.assert_array_equal(mean, same)
    noise = of_observations**2 - std**2
    np.testing.assert_allclose(noise, noise[0], rtol=1e-6)
    assert noise[0] > 0
    if hasattr(fitted, "observation_variance_"):
        np.testing.assert_allclose(noise, fitted.observation_variance_, rtol=1e-6)
    if not isinstance(model, LocalGPRegressor):
        _, covariance = fitted.predict(X, return_cov=True, include_noise=True)
        np.testing.assert_allclose(np.diag(covariance), of_observations**2, rtol=1e-6)


@pytest.mark.parametrize("method", ["temperature", "platt"])
@pytest.mark.parametrize(
    "model", [FeatureRidgeClassifier(FourierFeatures(512, length_scale="median", random_state=0)), FeatureSVC(random_state=0)]
)
def test_calibrated_classifiers_have_probabilities(model, method, tmp_path):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    fitted = clone(model).fit(X[:600], y[:600])
    assert not hasattr(fitted, "predict_proba")
    before = fitted.predict(X[1200:])
    fitted.calibrate(X[600:1200], y[600:1200], method=method)
    p = fitted.predict_proba(X[1200:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    if method == "temperature":
        np.testing.assert_array_equal(fitted.predict(X[1200:]), before)
        np.testing.assert_array_equal(fitted.classes_[p.argmax(axis=1)], before)
    # Mean confidence is the share that is right, within three standard errors of the share.
    right = before == y[1200:]
    assert abs(p.max(axis=1).mean() - right.mean()) < 3 * np.sqrt(right.var() / len(right)) + 0.02
    fitted.save(tmp_path / "model.bochner")
    np.testing.assert_allclose(bochner.load(tmp_path / "model.bochner").predict_proba(X[1200:]), p)
    with pytest.raises(ValueError, match="method must be"):
        fitted.calibrate(X, y, method="isotonic")
    assert not hasattr(fitted.fit(X[:600], y[:600]), "predict_proba")


def test_a_learned_metric_stands_before_any_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 10))
    y = np.sin(2 * X[:, 0] + X[:, 3])
    plain = FeatureRidge(FourierFeatures(512, length_scale="median", random_state=0), alpha=1e-3)
    metric = LearnedMetric(random_state=0)
    learned = make_pipeline(metric, clone(plain)).fit(X[:600], y[:600])
    assert learned.score(X[600:], y[600:]) > 0.9 > clone(plain).fit(X[:600], y[:600]).score(X[600:], y[600:])
    fitted = learned[0]
    assert fitted.losses_[fitted.best_iteration_] == fitted.losses_.min() < 0.5 * fitted.losses_[0]
    np.testing.assert_allclose(fitted.metric_, fitted.components_.T @ fitted.components_)
    assert set(np.argsort(fitted.importances_)[-2:]) == {0, 3} and np.isclose(fitted.importances_.sum(), 1)
    diagonal = LearnedMetric(metric="diagonal", random_state=0).fit(X, np.where(y > 0, "up", "down"))
    assert np.count_nonzero(diagonal.metric_) == 10
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))
    with pytest.raises(ValueError, match='metric must be "full" or "diagonal"'):
        LearnedMetric(metric="half").fit(X, y)


def test_a_learned_metric_is_kept_in_model_files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.sin(2 * X[:, 0] + X[:, 3])
    metric = LearnedMetric(FourierFeatures(64, length_scale="median"), max_iter=2, random_state=0).fit(X, y)
    model = FeatureGPRegressor(FourierFeatures(64, length_scale="median", random_state=0)).fit(metric.transform(X), y)
    path = tmp_path / "behind.bochner"
    model.save(path, metric)
    again = bochner.load(path)
    expected = model.predict(metric.transform(X), return_std=True)
    # Both multiply by the matrix, in another order of sums.
    np.testing.assert_allclose(again.predict(X, return_std=True), expected, rtol=1e-9, atol=1e-9)
    again.save(tmp_path / "once more.bochner")
    np.testing.assert_array_equal(bochner.load(tmp_path / "once more.bochner").predict(X), again.predict(X))
    with pytest.raises(ValueError, match="it takes no metric besides"):
        again.save(path, metric)
    with pytest.raises(ValueError, match="columns"):
        FeatureGPRegressor(FourierFeatures(8, random_state=0)).fit(X[:, :2], y).save(path, metric)


@parametrize_with_checks([LearnedMetric(FourierFeatures(32, random_state=0), max_iter=1, random_state=0)])
def test_learned_metrics_keep_the_protocol(estimator, check):
    check(estimator)


def test_frequencies_of_few_columns_estimate_their_kernel():
    X = np.random.default_rng(0).normal(size=(6, 5))
    features = FourierFeatures(20_000, order=2, length_scale=[1.0, 2.0, 1.0, 0.5, 1.0], random_state=0).fit(X)
    deviation = np.sqrt(features.variance(X))
    error = abs(features.estimate(X) - features.exact_kernel(X))
    assert (error <= 5 * deviation + 1e-12).all()
    same = FourierFeatures(64, order=2, random_state=0).fit(X).exact_kernel(X)
    np.testing.assert_allclose(same, kernels.LowOrder(order=2)(X))
    with pytest.raises(Exception, match="products over columns"):
        FourierFeatures(64, kernel="matern", order=2).fit(X)
