"""Hyperparameters by maximum marginal likelihood, on every process."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import bochner
from bochner import (
    CompressiveFeatures,
    FeatureGPClassifier,
    FeatureGPRegressor,
    FourierFeatures,
    LocalGPRegressor,
    MaclaurinFeatures,
    OpticalFeatures,
    PolynomialSketch,
    PositiveFeatures,
    SphericalFeatures,
    exact,
    kernels,
)

MAPS = {
    "fourier": (FourierFeatures(64, length_scale=30.0, random_state=0), {"length_scale"}, set()),
    "matern": (FourierFeatures(64, kernel="matern", random_state=0), {"length_scale"}, {"nu"}),
    "maclaurin": (MaclaurinFeatures(64, length_scale=30.0, random_state=0), {"length_scale"}, set()),
    "polynomial": (PolynomialSketch(64, degree=3, coef0=1.0, random_state=0), {"gamma", "coef0"}, {"degree"}),
    "homogeneous": (PolynomialSketch(64, degree=2, random_state=0), set(), {"degree", "gamma", "coef0"}),
    "positive": (PositiveFeatures(64, length_scale=10.0, random_state=0), {"length_scale"}, set()),
    "optical": (OpticalFeatures(64, bias=0.1, random_state=0), {"bias"}, {"exponent"}),
}


@pytest.fixture
def wave(rng):
    X = rng.normal(size=(300, 2))
    return X, np.sin(1.5 * X[:, 0]) + 0.1 * rng.normal(size=300)


@pytest.mark.parametrize("name", MAPS)
def test_every_map_is_searched_and_what_stays_is_named(name, wave):
    X, y = wave
    features, searched, fixed = MAPS[name]
    given = FeatureGPRegressor(features).fit(X, y)
    assert given.searched_ == [] and given.fixed_ == [] and given.converged_
    model = FeatureGPRegressor(features, optimizer="lbfgs").fit(X, y)
    assert set(model.searched_) == searched | {"signal", "noise"}
    assert set(model.fixed_) == fixed
    assert model.log_marginal_likelihood_value_ > given.log_marginal_likelihood_value_
    changed = {name for name in searched if model.features_.spec_[name] != given.features_.spec_[name]}
    assert changed == searched
    # Variances are those of the fit.
    assert model.noise_ * y.var() == pytest.approx(model.observation_variance_, rel=1e-4)


def test_variances_are_the_likeliest_of_all_rows_and_features(wave):
    X, y = wave
    model = FeatureGPRegressor(FourierFeatures(64, random_state=0), optimizer="lbfgs", max_rows=100).fit(X, y)
    features = FourierFeatures(64, length_scale=model.features_.length_scale_, random_state=0)
    for noise, signal in [(1.3, 1.0), (0.7, 1.0), (1.0, 1.5), (1.0, 0.6), (1.0, 1.0)]:
        other = FeatureGPRegressor(features, noise=noise * model.noise_, signal=signal * model.signal_).fit(X, y)
        assert other.log_marginal_likelihood_value_ <= model.log_marginal_likelihood_value_ + 1e-6


def test_a_metric_finds_a_direction(rng):
    # A wave along the diagonal: no length scale of a column is long.
    X = rng.normal(size=(400, 2))
    y = np.sin(2 * (X[:, 0] + X[:, 1])) + 0.05 * rng.normal(size=400)

    def process(scales):
        features = FourierFeatures(128, random_state=0)
        return FeatureGPRegressor(features, optimizer="lbfgs", length_scales=scales).fit(X, y)

    metric, common = process("metric"), process("common")
    assert metric.log_marginal_likelihood_value_ > common.log_marginal_likelihood_value_ + 10
    L = np.array(metric.features_.spec_["length_scale"])
    along, across = np.linalg.norm(L @ [1, 1]), np.linalg.norm(L @ [1, -1])
    assert along > 5 * across
    with pytest.raises(ValueError, match="common"):
        FeatureGPRegressor(SphericalFeatures(64), optimizer="lbfgs", length_scales="metric").fit(X, y)
    for features in [PositiveFeatures(64, length_scale=3.0, random_state=0), CompressiveFeatures(64, compressed_dim=2, random_state=0)]:
        found = FeatureGPRegressor(features, optimizer="lbfgs", length_scales="per_input").fit(X, y)
        assert np.shape(found.features_.spec_["length_scale"]) == (2,) and "length_scale" in found.searched_


def test_smoothness_is_chosen_by_evidence(wave):
    X, y = wave
    features = FourierFeatures(128, kernel="matern", nu=0.5, random_state=0)
    model = FeatureGPRegressor(features, optimizer="lbfgs", search_nu=True).fit(X, y)
    # The wave has all derivatives; which of the smoother ones is likelier, 64 frequencies decide by chance.
    assert model.features_.spec_["nu"] > 0.5 and "nu" in model.searched_


def test_searches_that_are_cut_short_warn(wave):
    with pytest.warns(ConvergenceWarning, match="not converged after"):
        model = FeatureGPRegressor(FourierFeatures(64, random_state=0), optimizer="lbfgs", max_iter=2).fit(*wave)
    assert not model.converged_ and model.n_iter_ == 2


@pytest.mark.parametrize("inference", ["dirichlet", "variational"])
def test_classifiers_find_length_scales(rng, inference):
    X = rng.normal(size=(400, 2))
    y = np.sin(3 * X[:, 0]) > 0
    features = FourierFeatures(128, length_scale=20.0, random_state=0)
    options = {"inference": inference, "random_state": 0}
    given = FeatureGPClassifier(features, **options).fit(X[:300], y[:300])
    found = FeatureGPClassifier(features, optimizer="lbfgs", length_scales="per_input", **options).fit(X[:300], y[:300])
    scales = found.features_.length_scale_
    assert scales[0] < 5 and scales[1] > 3 * scales[0]
    assert found.score(X[300:], y[300:]) > max(0.85, given.score(X[300:], y[300:]))
    assert ("signal" in found.searched_) == (inference == "dirichlet")
    assert ("signal" in found.fixed_) == (inference == "variational")


def test_exact_processes_find_what_scikit_learn_finds(wave):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, y = wave
    kernel = ConstantKernel(1.0) * RBF([1.0, 1.0], (1e-3, 1e6)) + WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    ours = exact.GPRegressor(kernels.Gaussian(30.0), optimizer="lbfgs", length_scales="per_input").fit(X, y)
    # Theirs is of standardised targets. A search ends where a step gains less than 2e-4 per row.
    value = ours.log_marginal_likelihood_value_ + len(y) * np.log(y.std())
    assert value > theirs.log_marginal_likelihood_value_ - 2e-4 * len(y)
    assert set(ours.searched_) == {"length_scale", "signal", "noise"} and ours.converged_
    assert ours.length_scale_[1] > 3 * ours.length_scale_[0]
    # A process with what was found is the same process.
    same = exact.GPRegressor(
        kernels.Gaussian(1.0), length_scale=ours.length_scale_, signal=ours.signal_, noise=ours.noise_
    ).fit(X, y)
    np.testing.assert_allclose(same.predict(X), ours.predict(X), rtol=1e-9, atol=1e-9)


def test_exact_polynomials_and_classifiers_are_searched(rng, wave, tmp_path):
    X, y = wave
    model = exact.GPRegressor(kernels.Polynomial(3, 1.0, 1.0), optimizer="lbfgs").fit(X, y)
    assert {"gamma", "coef0"} < set(model.searched_) and model.fixed_ == ["degree"]
    labels = np.sin(3 * X[:, 0]) > 0
    given = exact.GPClassifier(kernels.Gaussian(20.0), random_state=0).fit(X[:200], labels[:200])
    found = exact.GPClassifier(
        kernels.Gaussian(20.0), optimizer="lbfgs", length_scales="metric", random_state=0
    ).fit(X[:200], labels[:200])
    assert found.score(X[200:], labels[200:]) > given.score(X[200:], labels[200:])
    found.save(tmp_path / "found.bochner")
    again = bochner.load(tmp_path / "found.bochner")
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))


def test_local_processes_know_where_they_end():
    # Rows on [-3, 3], a length scale of 0.6, signal 4: far away the process is the prior, 0 with a deviation of 2.
    x = np.linspace(-3, 3, 120)[:, None]
    y = np.sin(5 * x[:, 0]) * 3
    model = LocalGPRegressor(11, length_scale=0.6, signal_variance=4.0, noise=0.01, random_state=0).fit(x, y)
    truth = exact.GPRegressor(kernels.Gaussian(0.6), signal=4.0, noise=0.01, normalize_y=False).fit(x, y)
    far = np.array([[5.0], [8.0], [-60.0]])
    mean, std = model.predict(far, return_std=True)
    # The exact process has the mean of the targets subtracted, which is nearly 0 here.
    np.testing.assert_allclose(std, truth.predict(far, return_std=True)[1], atol=1e-3)
    np.testing.assert_allclose(mean, truth.predict(far), atol=0.05)
    assert std[1] == pytest.approx(2.0, abs=1e-6) and abs(mean[1]) < 1e-3


def test_local_processes_are_searched(rng):
    x = rng.uniform(-6, 6, size=(300, 1))
    y = 100 * np.sin(3 * x[:, 0]) + 10 * rng.normal(size=300)
    model = LocalGPRegressor(20, length_scale=5.0, optimizer="lbfgs", random_state=0).fit(x, y)
    # What observations spread beyond the function is the noise that was found, not the one the search began with.
    quiet, noisy = (model.predict(x[:5], return_std=True, include_noise=noise)[1] for noise in (False, True))
    np.testing.assert_allclose(noisy**2 - quiet**2, model.noise_, rtol=1e-6)
    assert model.noise_ != model.noise
    assert 0.2 < model.length_scale_ < 2
    # The variance of 300 draws of noise has a relative standard deviation of sqrt(2 / 300).
    assert abs(model.noise_ / 100 - 1) < 5 * np.sqrt(2 / 300)
    assert set(model.searched_) == {"length_scale", "signal", "noise"}
    new = np.linspace(-5, 5, 50)
    assert np.sqrt(np.mean((model.predict(new[:, None]) - 100 * np.sin(3 * new)) ** 2)) < 15
