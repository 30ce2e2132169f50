"""Pipelines of scikit-learn keep working when an import and a class name change."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier, SGDClassifier
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from bochner import FeatureRidge, FeatureRidgeClassifier, FourierFeatures, PolynomialSketch, kernels
from bochner.metrics import relative_frobenius_error


@pytest.mark.parametrize("gamma", [0.3, 2, "scale"])
def test_gamma_means_what_it_means_to_rbf_sampler(rows, gamma):
    number = 1 / (rows.shape[1] * rows.var()) if gamma == "scale" else gamma
    for X in (rows, sparse.csr_array(rows)):
        features = FourierFeatures(gamma=gamma, n_components=100, random_state=1).fit(X)
        np.testing.assert_allclose(features.exact_kernel(rows), rbf_kernel(rows, gamma=number), rtol=1e-10, atol=1e-14)


def test_fourier_features_estimate_better_than_rbf_sampler(rows):
    K = rbf_kernel(rows, gamma=0.5)
    errors = {}
    for make in (RBFSampler, FourierFeatures):
        features = [make(gamma=0.5, n_components=500, random_state=seed).fit_transform(rows) for seed in range(20)]
        errors[make] = np.mean([relative_frobenius_error(K, Z @ Z.T) for Z in features])
    assert errors[FourierFeatures] < errors[RBFSampler]


def test_a_pipeline_changes_only_its_class_name():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    scores = {}
    for make in (RBFSampler, FourierFeatures):
        pipeline = make_pipeline(make(gamma=0.1, n_components=500, random_state=0), SGDClassifier(random_state=0))
        scores[make] = cross_val_score(clone(pipeline), X, y, cv=3).mean()
    assert scores[FourierFeatures] > scores[RBFSampler] - 0.02


@pytest.mark.parametrize("degree, gamma, coef0", [(2, 1.0, 0.0), (3, 0.5, 1.0), (4, 2, 0.25)])
def test_parameters_mean_what_they_mean_to_polynomial_count_sketch(rows, degree, gamma, coef0):
    parameters = {"degree": degree, "gamma": gamma, "coef0": coef0, "n_components": 100, "random_state": 1}
    PolynomialCountSketch(**parameters).fit(rows)
    for X in (rows, sparse.csr_array(rows)):
        features = PolynomialSketch(**parameters).fit(X)
        exact = polynomial_kernel(rows, degree=degree, gamma=gamma, coef0=coef0)
        np.testing.assert_allclose(features.exact_kernel(rows), exact, rtol=1e-10, atol=1e-14)


def test_polynomial_sketches_estimate_better_than_polynomial_count_sketch(rows):
    parameters = {"degree": 3, "gamma": 0.5, "coef0": 1.0}
    K = polynomial_kernel(rows, **parameters)
    errors = {}
    for make in (PolynomialCountSketch, PolynomialSketch):
        maps = [make(n_components=512, random_state=seed, **parameters) for seed in range(20)]
        features = [each.fit_transform(rows) for each in maps]
        errors[make] = np.mean([relative_frobenius_error(K, Z @ Z.T) for Z in features])
    assert errors[PolynomialSketch] < errors[PolynomialCountSketch]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"gamma": -1.0}, "gamma must be a positive number"),
        ({"gamma": 0}, "gamma must be a positive number"),
        ({"gamma": "auto"}, "gamma must be a positive number"),
        ({"gamma": 1.0, "kernel": "laplacian"}, "gamma belongs to the Gaussian kernel"),
    ],
)
def test_gamma_out_of_range_is_named(rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        FourierFeatures(**parameters).fit(rows)


@pytest.mark.parametrize(
    "there, here",
    [
        (Nystroem(kernel="rbf", gamma=0.3), FourierFeatures(gamma=0.3)),
        (Nystroem(kernel="laplacian", gamma=0.3), FourierFeatures(kernel="laplacian", norm=1, length_scale=1 / 0.3)),
        (Nystroem(kernel="poly", degree=3, gamma=0.3, coef0=2.0), PolynomialSketch(degree=3, gamma=0.3, coef0=2.0)),
    ],
    ids=["rbf", "laplacian", "poly"],
)
def test_landmarks_and_features_have_the_same_kernel(rows, there, here):
    # With every row a landmark the method of Nystroem is exact.
    Z = there.set_params(n_components=len(rows)).fit_transform(rows)
    np.testing.assert_allclose(here.fit(rows).exact_kernel(rows), Z @ Z.T, atol=1e-6)


def test_kernels_have_counterparts(rows):
    X, Y, g = rows[:20], rows[20:50], 0.3
    for here, there in [
        (kernels.Gaussian((2 * g) ** -0.5)(X, Y), rbf_kernel(X, Y, gamma=g)),
        (kernels.Laplacian(1 / g, norm=1)(X, Y), laplacian_kernel(X, Y, gamma=g)),
        (kernels.Polynomial(3, g, 2.0)(X, Y), polynomial_kernel(X, Y, 3, g, 2.0)),
        (kernels.Matern(nu=2.5, length_scale=0.7)(X, Y), Matern(0.7, nu=2.5)(X, Y)),
    ]:
        np.testing.assert_allclose(here, there, rtol=1e-9)


def test_models_on_features_are_pipelines_of_two_steps(rows):
    y = np.sin(rows[:, 0]) + rows[:, 1] ** 2
    features = FourierFeatures(gamma=0.3, n_components=64, random_state=0)
    here, there = FeatureRidge(features, alpha=0.1), make_pipeline(features, Ridge(alpha=0.1))
    np.testing.assert_allclose(here.fit(rows, y).predict(rows), there.fit(rows, y).predict(rows), atol=1e-9)
    here, there = FeatureRidgeClassifier(features, alpha=0.1), make_pipeline(features, RidgeClassifier(alpha=0.1))
    labels = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    values = there.fit(rows, labels).decision_function(rows)
    np.testing.assert_allclose(here.fit(rows, labels).decision_function(rows), values, atol=1e-9)


def test_ridge_on_many_features_tends_to_kernel_ridge(rows):
    y = np.sin(rows[:, 0]) + rows[:, 1] ** 2
    exact = KernelRidge(kernel="rbf", gamma=0.3, alpha=1.0).fit(rows, y).predict(rows)

    def distance(n_components):
        features = FourierFeatures(n_components, gamma=0.3, random_state=0)
        model = FeatureRidge(features, alpha=1.0, fit_intercept=False).fit(rows, y)
        return np.linalg.norm(model.predict(rows) - exact)

    # 64 times as many features divide the error by 8 on average; by 3 at the least.
    assert distance(8192) < distance(128) / 3
