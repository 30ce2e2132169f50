"""Classes of somebody else on top of ours: what they change is used, or refused with what to do instead."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from bochner import *  # noqa: F403
from bochner import kernels, metrics


class Doubled(FourierFeatures):
    """Features with a transform of their own."""

    def transform(self, X):
        return 2.0 * super().transform(X)


class Fitted(PolynomialSketch):
    """Features that are fitted in a way of their own."""

    def fit(self, X, y=None):
        return super().fit(np.ones_like(X))


class Named(FourierFeatures):
    """Features with nothing of their own that models need."""

    def about(self):
        return "mine"


class Halved(kernels.Gaussian):
    """A kernel with values of its own."""

    def __call__(self, X, Y=None):
        return 0.5 * super().__call__(X, Y)


class Turned(kernels.CurlFree):
    def __call__(self, X, Y=None):
        return -super().__call__(X, Y)


USERS = {
    "ridge": lambda features, rows: FeatureRidge(features).fit(rows, rows[:, 0]),
    "partial_fit": lambda features, rows: FeatureRidge(features).partial_fit(rows, rows[:, 0]),
    "ridge classifier": lambda features, rows: FeatureRidgeClassifier(features).fit(rows, rows[:, 0] > 0),
    "process": lambda features, rows: FeatureGPRegressor(features).fit(rows, rows[:, 0]),
    "process classifier": lambda features, rows: FeatureGPClassifier(features).fit(rows, rows[:, 0] > 0),
    "machine": lambda features, rows: FeatureSVC(features).fit(rows, rows[:, 0] > 0),
    "search": lambda features, rows: search(FeatureRidge(features), rows, rows[:, 0], {"n_components": [8, 16]}),
    "attention": lambda features, rows: linear_attention(rows, rows, rows, features),
    "kid": lambda features, rows: metrics.kid(rows, rows, features),
}


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize(("features", "method"), [(Doubled(16), "transform"), (Fitted(16), "fit")])
def test_a_transformer_with_methods_of_its_own_is_refused_where_they_would_not_be_called(rows, name, features, method):
    """Once the map behind it was used, as if the methods were not there."""
    with pytest.raises(TypeError, match=f"a method {method} of its own.*put it into a Pipeline"):
        USERS[name](features, rows)


def test_in_a_pipeline_its_methods_are_called(rows):
    found = make_pipeline(Doubled(16, random_state=0), Ridge()).fit(rows, rows[:, 0]).predict(rows)
    plain = 2.0 * FourierFeatures(16, random_state=0).fit_transform(rows)
    assert np.allclose(found, Ridge().fit(plain, rows[:, 0]).predict(plain))


def test_a_pipeline_is_no_transformer_of_ours(rows):
    with pytest.raises(TypeError, match="got Pipeline; steps before it"):
        FeatureRidge(make_pipeline(OrthoProjection(3), FourierFeatures(16))).fit(rows, rows[:, 0])


def test_a_transformer_without_such_methods_is_as_good_as_ours(rows):
    found = FeatureRidge(Named(16, random_state=0)).fit(rows, rows[:, 0]).predict(rows)
    expected = FeatureRidge(FourierFeatures(16, random_state=0)).fit(rows, rows[:, 0]).predict(rows)
    assert np.array_equal(found, expected)


KERNEL_USERS = {
    "ridge": lambda rows: exact.KernelRidge(Halved()).fit(rows, rows[:, 0]),
    "process": lambda rows: exact.GPRegressor(Halved()).fit(rows, rows[:, 0]),
    "process classifier": lambda rows: exact.GPClassifier(Halved()).fit(rows, rows[:, 0] > 0),
    "machine": lambda rows: exact.KernelSVC(Halved()).fit(rows, rows[:, 0] > 0),
    "exact operators": lambda rows: exact.OperatorRidge(Turned()).fit(rows, rows),
    "operators": lambda rows: OperatorRidge(Turned(), n_components=8).fit(rows, rows),
    "decomposable": lambda rows: kernels.Decomposable(np.eye(2), Halved()),
    "discrepancy": lambda rows: metrics.mmd2(rows, rows, Halved()),
    "plan": lambda rows: plan(rows, Halved()),
}


@pytest.mark.parametrize("name", KERNEL_USERS)
def test_a_kernel_with_values_of_its_own_is_refused_where_they_would_not_be_asked_for(rows, name):
    with pytest.raises(TypeError, match="a method __call__ of its own"):
        KERNEL_USERS[name](rows)
