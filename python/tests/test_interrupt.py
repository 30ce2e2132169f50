"""Ctrl-C stops a fit of every family within a second and leaves the model unfitted, ready for another fit."""

import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from bochner import *  # noqa: F403
from test_threads import interrupted_after

# Many features and few rows: the time goes into a factorisation. Few features and many rows: into passes.
WIDE, NARROW = FourierFeatures(9000, projection="gaussian"), FourierFeatures(400, projection="gaussian")

LONG = {
    "ridge, factorisation": (FeatureRidge(WIDE, solver="cholesky"), 100),
    "ridge, inner products of rows": (FeatureRidge(FourierFeatures(10_000), solver="dual"), 8000),
    "ridge, conjugate gradients": (FeatureRidge(NARROW, solver="cg", alpha=1e-9, tol=1e-15), 200_000),
    "ridge, stochastic gradients": (FeatureRidge(NARROW, solver="sgd", max_iter=1000), 100_000),
    "ridge classifier": (FeatureRidgeClassifier(WIDE, solver="cholesky"), 100),
    "process": (FeatureGPRegressor(WIDE), 100),
    "process, search": (FeatureGPRegressor(FourierFeatures(1500), optimizer="lbfgs", max_iter=1000), 5000),
    "process classifier": (FeatureGPClassifier(FourierFeatures(5000)), 100),
    "process classifier, several alphas": (FeatureGPClassifier(FourierFeatures(4000), alpha=[0.1, 0.01]), 100),
    "process classifier, variational": (FeatureGPClassifier(NARROW, inference="variational", max_iter=500), 50_000),
    "support vector machine": (FeatureSVC(NARROW, tol=1e-12, max_iter=100_000, C=100.0), 20_000),
    "operators, factorisation": (OperatorRidge("curl_free", n_components=6000, solver="cholesky"), 100),
    "operators, gradients": (OperatorRidge(n_components=400, solver="sgd"), 300_000),
    "operator classifier": (OperatorRidgeClassifier(n_components=9000), 100),
    "local processes": (LocalGPRegressor(600, length_scale=0.2), 3000),
    "exact ridge": (exact.KernelRidge(), 9000),
    "exact process": (exact.GPRegressor(), 9000),
    "exact process classifier": (exact.GPClassifier(), 5000),
    "exact machine": (exact.KernelSVC(tol=1e-12, C=1e4), 8000),
    "exact operators": (exact.OperatorRidge(), 5000),
}


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_stops_a_fit(name, rng):
    model, n = LONG[name]
    model = clone(model)
    rows = rng.normal(size=(n, 2))
    targets = rng.integers(0, 3, size=n) if is_classifier(model) else rng.normal(size=(n, 2))
    # The promise is one second; a machine that is busy with other work is given three.
    assert interrupted_after(0.6, lambda: model.fit(rows, targets)) < 3.0
    with pytest.raises(NotFittedError):
        model.predict(rows[:3])
    small = {"features": FourierFeatures(16), "n_components": 16, "tol": 1e-3, "max_iter": 5, "alpha": 0.1}
    model.set_params(**{key: value for key, value in small.items() if key in model.get_params(deep=False)})
    assert len(model.fit(rows[:50], targets[:50]).predict(rows[:3])) == 3
