"""Pipelines of scikit-learn keep working when an import and a class name change."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from bochner import FourierFeatures, PolynomialSketch
from bochner.metrics import relative_frobenius_error


@pytest.mark.parametrize("gamma", [0.3, 2, "scale"])
def test_gamma_means_what_it_means_to_rbf_sampler(rows, gamma):
    number = 1 / (rows.shape[1] * rows.var()) if gamma == "scale" else gamma
    for X in (rows, sparse.csr_array(rows)):
        features = FourierFeatures(gamma=gamma, n_components=100, random_state=1).fit(X)
        np.testing.assert_allclose(features.kernel(rows), rbf_kernel(rows, gamma=number), rtol=1e-10, atol=1e-14)


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
        np.testing.assert_allclose(features.kernel(rows), exact, rtol=1e-10, atol=1e-14)


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
