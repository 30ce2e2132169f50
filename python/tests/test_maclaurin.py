"""Maclaurin features, and local Gaussian processes on them."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.special import factorial
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from bochner import FourierFeatures, LocalGPRegressor, MaclaurinFeatures

KERNELS = [
    {"length_scale": 1.7},
    {"kernel": "exponential", "length_scale": 1.5},
    {"kernel": "polynomial", "degree": 4, "gamma": 0.3, "coef0": 0.6},
    {"kernel": [0.5, 1.0, 0.0, 0.25]},
]


@pytest.fixture
def close(rng):
    return rng.normal(size=(60, 5)) / np.sqrt(5)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("weights", ["real", "ctr", "complex"])
def test_estimates_have_the_variance_they_claim(kernel, weights, close):
    features = MaclaurinFeatures(101, weights=weights, max_degree=3, **kernel).fit(close)
    rows, seeds = close[:3], 300
    exact, variance = features.exact_kernel(rows), features.variance(rows)
    estimates = []
    for seed in range(seeds):
        Z = clone(features).set_params(random_state=seed).fit(close).transform(rows)
        estimates.append(Z @ Z.conj().T)
    estimates = np.asarray(estimates)
    mean = estimates.mean(axis=0)
    squares = np.abs(estimates - mean) ** 2 * seeds / (seeds - 1)
    z = stats.norm.ppf(1 - 1e-6 / (4 * exact.size))
    assert np.all(np.abs(squares.mean(axis=0) - variance) <= z * squares.std(axis=0) / np.sqrt(seeds) + 1e-12)


def test_the_allocation_can_be_looked_at(close):
    features = MaclaurinFeatures(201, length_scale="median", random_state=0).fit(close)
    assert features.columns_[0] == 0 and sum(features.columns_) == 200
    assert 2 <= features.degree_ == len(features.columns_) - 1 <= 10
    assert features.predicted_variance_ > 0 and features.predicted_bias_ > 0
    Z = features.transform(close)
    assert Z.shape == (60, 201)
    error = np.mean((Z @ Z.T - features.exact_kernel(close))[~np.eye(60, dtype=bool)] ** 2)
    assert error < 4 * (features.predicted_variance_ + features.predicted_bias_)
    assert np.array_equal(pickle.loads(pickle.dumps(features)).transform(close), Z)


def test_one_pass_is_nearly_as_good(rng):
    rows = rng.normal(size=(500, 30)) @ np.diag(np.linspace(0.2, 1.5, 30)) / np.sqrt(30)
    pairs = MaclaurinFeatures(301, random_state=0).fit(rows)
    moments = MaclaurinFeatures(301, statistics="one_pass", random_state=0).fit(rows)
    best = np.mean(pairs.variance(rows)) + pairs.predicted_bias_
    assert abs(moments.degree_ - pairs.degree_) <= 1
    assert np.mean(moments.variance(rows)) <= 1.1 * best


def test_random_degrees_are_unbiased_and_worse(close):
    random = MaclaurinFeatures(101, allocation="random", sketch="rademacher", length_scale=1.5).fit(close)
    optimized = MaclaurinFeatures(101, sketch="rademacher", length_scale=1.5).fit(close)
    assert not hasattr(random, "columns_")
    assert random.variance(close).mean() > 2 * optimized.variance(close).mean()
    with pytest.raises(ValueError, match="closed form"):
        MaclaurinFeatures(101, allocation="random").fit(close).variance(close)


def test_features_fit_the_models(close):
    from bochner import FeatureRidge

    y = np.sin(close[:, 0]) + close[:, 1]
    model = FeatureRidge(MaclaurinFeatures(201, length_scale="median", random_state=0), alpha=1e-3).fit(close, y)
    assert model.score(close, y) > 0.95


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"kernel": "matern"}, 'kernel must be one of "gaussian", "exponential", "polynomial" or a list'),
        ({"kernel": [1.0, -1.0]}, "coefficients must be non-negative"),
        ({"length_scale": 0.0}, "length_scale must be a positive finite number"),
        ({"max_degree": 65}, "max_degree must be at most 64"),
        ({"allocation": "even"}, 'allocation must be "optimized" or "random"|allocation must be one of'),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"n_components": 0}, "n_components must be"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(close, parameters, message):
    with pytest.raises(ValueError, match=message):
        MaclaurinFeatures(**{"n_components": 65, **parameters}).fit(close)


@pytest.fixture
def waves(rng):
    x = np.linspace(-3, 3, 100)
    return x[:, None], np.sin(5 * x) / x + 0.1 * rng.normal(size=100)


def local_posterior(x, y, new, centroids, *, length_scale, signal, noise, degree):
    """Every row under the truncated kernel around its nearest centroid, by the formulas of a Gaussian process."""

    def kernel(a, b):
        terms = [np.outer(a, b) ** n / factorial(n) for n in range(degree + 1)]
        return signal * np.exp(-0.5 * a**2)[:, None] * np.exp(-0.5 * b**2) * np.sum(terms, axis=0)

    mean, std = np.empty(len(new)), np.empty(len(new))
    nearest = np.abs(new - centroids.T).argmin(axis=1)
    for i, centroid in enumerate(centroids):
        seen, asked = (x - centroid)[:, 0] / length_scale, (new[nearest == i] - centroid)[:, 0] / length_scale
        across = kernel(asked, seen)
        solved = np.linalg.solve(kernel(seen, seen) + noise * np.eye(len(seen)), np.c_[y, across.T])
        mean[nearest == i] = across @ solved[:, 0]
        std[nearest == i] = np.sqrt(np.diag(kernel(asked, asked) - across @ solved[:, 1:]))
    return mean, std


def test_local_processes_follow_the_exact_posterior(waves):
    x, y = waves
    exact = GaussianProcessRegressor(ConstantKernel(3.0) * RBF(0.45), alpha=0.01, optimizer=None).fit(x, y)
    model = LocalGPRegressor(
        21,
        length_scale=0.45,
        signal_variance=3.0,
        noise=0.01,
        threshold=0.3,
        sketch="rademacher",
        weights="real",
        max_degree=20,
    ).fit(x, y)
    new = np.linspace(-3, 3, 57)[:, None]
    mean, std = model.predict(new, return_std=True)
    expected = exact.predict(new)
    # In one dimension a Rademacher sketch of a power is that power up to a sign: nothing is left to chance, and what is
    # predicted is the posterior under the truncated kernel.
    assert model.spec_["resolved"]["columns"] == [0] + 20 * [1]
    parameters = {"length_scale": 0.45, "signal": 3.0, "noise": 0.01, "degree": 20}
    local_mean, local_std = local_posterior(x, y, new, model.centroids_, **parameters)
    np.testing.assert_allclose(mean, local_mean, atol=1e-6)
    np.testing.assert_allclose(std, local_std, atol=1e-6)
    assert len(model.centroids_) > 5
    # Around one centroid alone the series has lost the ends of the interval.
    plain = clone(model).set_params(threshold=np.inf).fit(x, y).predict(new)
    assert np.abs(mean - expected).max() < np.abs(plain - expected).max()


def test_local_processes_pickle_and_take_several_targets(waves):
    x, y = waves
    model = LocalGPRegressor(21, length_scale=0.5, normalize_y=True).fit(x, np.stack([y, 3 + y], axis=1))
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == (100, 2)
    np.testing.assert_allclose(mean[:, 1] - mean[:, 0], 3, atol=1e-9)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(x), mean)


@pytest.mark.parametrize(
    "parameters, message",
    [({"noise": 0.0}, "noise"), ({"threshold": 0.0}, "threshold"), ({"signal_variance": -1.0}, "signal_variance")],
    ids=str,
)
def test_bad_arguments_of_local_processes_are_named(waves, parameters, message):
    with pytest.raises(ValueError, match=message):
        LocalGPRegressor(11, **parameters).fit(*waves)


def test_the_kernel_of_fourier_features_is_estimated_too(close):
    maclaurin = MaclaurinFeatures(65, length_scale=1.3).fit(close)
    fourier = FourierFeatures(64, length_scale=1.3).fit(close)
    np.testing.assert_allclose(maclaurin.exact_kernel(close), fourier.exact_kernel(close))
