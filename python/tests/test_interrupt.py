"""Ctrl-C stops every long call soon, and leaves a model that was being fitted unfitted and ready for another fit."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from bochner import *  # noqa: F403
from bochner._models import KINDS

# The promise is two seconds on an idle machine. Tests share theirs: where four other jobs want its two processors, work between
# two looks at the flag takes five times as long.
LIMIT = 10.0

# Many features and few rows: the time goes into a factorisation. Few features and many rows: into passes.
WIDE, NARROW = FourierFeatures(9000, projection="gaussian"), FourierFeatures(400, projection="gaussian")

# Fits that take ten seconds or more, with the number of their rows.
FITS = {
    "ridge, factorisation": (FeatureRidge(FourierFeatures(12_000), solver="cholesky"), 100),
    "ridge, inner products of rows": (FeatureRidge(FourierFeatures(10_000), solver="dual"), 8000),
    "ridge, conjugate gradients": (FeatureRidge(NARROW, solver="cg", alpha=1e-9, tol=1e-15), 200_000),
    "ridge, stochastic gradients": (FeatureRidge(NARROW, solver="sgd", max_iter=1000), 100_000),
    "ridge classifier": (FeatureRidgeClassifier(WIDE, solver="cholesky"), 100),
    "process": (FeatureGPRegressor(WIDE), 100),
    "process, complex": (FeatureGPRegressor(FourierFeatures(6000, form="complex")), 100),
    "process, search": (FeatureGPRegressor(FourierFeatures(1500), optimizer="lbfgs", max_iter=1000), 5000),
    "process classifier": (FeatureGPClassifier(FourierFeatures(5000)), 100),
    "process classifier, several alphas": (FeatureGPClassifier(FourierFeatures(4000), alpha=[0.1, 0.01]), 100),
    "process classifier, variational": (FeatureGPClassifier(NARROW, inference="variational", max_iter=500), 50_000),
    "support vector machine": (FeatureSVC(NARROW, tol=1e-12, max_iter=100_000, C=100.0), 20_000),
    "operators, factorisation": (OperatorRidge("curl_free", n_components=6000, solver="cholesky"), 100),
    "operators, gradients": (OperatorRidge(n_components=400, solver="sgd"), 300_000),
    "operator classifier": (OperatorRidgeClassifier(n_components=9000), 100),
    "process of related outputs": (OperatorGPRegressor(n_components=9000), 100),
    "local processes": (LocalGPRegressor(600, length_scale=0.2), 3000),
    "local processes, few large ones": (LocalGPRegressor(8000, length_scale=1.0, max_clusters=2), 3000),
    "exact ridge": (exact.KernelRidge(), 9000),
    "exact process": (exact.GPRegressor(), 9000),
    "exact process classifier": (exact.GPClassifier(), 5000),
    "exact machine": (exact.KernelSVC(tol=1e-12, C=1e4), 8000),
    "exact operators": (exact.OperatorRidge(), 5000),
}


def rng():
    return np.random.default_rng(20260)


def drawn(rows, columns, dtype=np.float64):
    return rng().normal(size=(rows, columns)).astype(dtype)


def targets_of(model, rows):
    return rng().integers(0, 3, size=rows) if is_classifier(model) else rng().normal(size=(rows, 2))


def answering(model, fitted_to, rows, question="predict", **details):
    """A question about so many rows to a model that is fitted to a few."""
    X = drawn(fitted_to, 4)
    asked = getattr(model.fit(X, targets_of(model, fitted_to)), question)
    X = drawn(rows, 4)
    return lambda: asked(X, **details)


def transforming(features, rows, columns):
    features, X = features.fit(np.abs(drawn(200, columns))), np.abs(drawn(rows, columns))
    return lambda: features.transform(X)


def fitting(features, rows, columns):
    X = np.abs(drawn(rows, columns))
    return lambda: features.fit(X)


def searching():
    X = drawn(200_000, 4)
    grid = {"length_scale": [0.5, 1.0, 2.0, 4.0]}
    return lambda: search(FeatureRidge(FourierFeatures(1500)), X, X[:, 0], grid)


def planning(rows, columns, kernel=None, error=0.002):
    X = drawn(rows, columns) / np.sqrt(columns)
    return lambda: plan(X, kernel, error=error, sample_rows=rows, n_draws=200)


def attending(attend, length, **details):
    q, k, v = (drawn(length, 64) for _ in range(3))
    return lambda: attend(q, k, v, **details)


def comparing(rows, columns, of, **details):
    X, Y = drawn(rows, columns), drawn(rows, columns)
    return lambda: of(X, Y, **details)


# Everything else that may take ten seconds or more: what makes the call.
CALLS = {
    "ridge predicts": lambda: answering(FeatureRidge(FourierFeatures(4000)), 100, 2_000_000),
    "process predicts deviations": lambda: answering(
        FeatureGPRegressor(FourierFeatures(4000)), 100, 20_000, return_std=True
    ),
    "process predicts covariances": lambda: answering(
        FeatureGPRegressor(FourierFeatures(4000)), 100, 9000, return_cov=True
    ),
    "process draws functions": lambda: answering(
        FeatureGPRegressor(FourierFeatures(4000)), 100, 100_000, "sample_y", n_samples=2000
    ),
    "process classifier predicts": lambda: answering(
        FeatureGPClassifier(FourierFeatures(2000)), 100, 100_000, "predict_proba"
    ),
    "variational classifier predicts": lambda: answering(
        FeatureGPClassifier(FourierFeatures(2000), inference="variational", max_iter=1), 500, 3_000_000, "predict_proba"
    ),
    "machine decides": lambda: answering(
        FeatureSVC(FourierFeatures(4000), tol=0.1), 100, 2_000_000, "decision_function"
    ),
    "operators predict": lambda: answering(OperatorRidge(n_components=4000), 100, 2_000_000),
    "operators differentiate": lambda: answering(OperatorRidge(n_components=4000), 100, 400_000, "jacobian"),
    "operator classifier predicts": lambda: answering(OperatorRidgeClassifier(n_components=4000), 100, 2_000_000),
    "local processes predict": lambda: answering(
        LocalGPRegressor(2000, length_scale=0.5, max_clusters=5), 200, 50_000, return_std=True
    ),
    "local processes look for the nearest": lambda: answering(
        LocalGPRegressor(11, length_scale=0.01, threshold=0.01), 3000, 2_000_000
    ),
    "exact ridge predicts": lambda: answering(exact.KernelRidge(), 3000, 1_000_000),
    "exact process predicts deviations": lambda: answering(exact.GPRegressor(), 4000, 60_000, return_std=True),
    "exact process predicts covariances": lambda: answering(exact.GPRegressor(), 4000, 10_000, return_cov=True),
    "exact process classifier predicts": lambda: answering(exact.GPClassifier(), 2500, 60_000, "predict_proba"),
    "exact machine decides": lambda: answering(exact.KernelSVC(), 3000, 1_000_000, "decision_function"),
    "exact machine predicts": lambda: answering(exact.KernelSVC(), 3000, 1_000_000),
    "exact operators predict": lambda: answering(exact.OperatorRidge(), 2000, 1_000_000),
    "search": searching,
    "plan": lambda: planning(4000, 30),
    "plan of an optical kernel": lambda: planning(4000, 30, kernels.Optical(1.0)),
    "exact attention": lambda: attending(softmax_attention, 30_000),
    "exact attention, causal": lambda: attending(softmax_attention, 40_000, causal=True),
    "linear attention": lambda: attending(linear_attention, 300_000, features=PositiveFeatures(2048)),
    "linear attention, causal": lambda: attending(
        linear_attention, 300_000, features=PositiveFeatures(2048), causal=True
    ),
    "discrepancy": lambda: comparing(40_000, 60, metrics.mmd2, kernel=kernels.Matern()),
    "kid": lambda: comparing(30_000, 500, metrics.kid),
    "kid by features": lambda: comparing(200_000, 60, metrics.kid, features=PolynomialSketch(8192, degree=3)),
    "kernel matrix": lambda: comparing(15_000, 60, kernels.Matern(nu=1.3)),
    "matrix of operators": lambda: comparing(4000, 4, kernels.CurlFree()),
    "variance of an estimate": lambda: comparing(
        12_000, 60, PolynomialSketch(64, degree=4).fit(drawn(100, 60)).variance
    ),
    "Fourier features": lambda: transforming(FourierFeatures(8192, projection="gaussian"), 30_000, 2000),
    "polynomial sketch": lambda: transforming(PolynomialSketch(8192, degree=6, structure="tree", weights="real"), 30_000, 500),
    "Maclaurin features are allotted": lambda: fitting(MaclaurinFeatures(100_000, length_scale="median"), 5000, 2000),
    "optical features": lambda: transforming(OpticalFeatures(8192, projection="matrix_free"), 30_000, 2000),
}


def refuses_and_fits_again(model, rows):
    """Whether a fit that was stopped has left nothing behind."""
    X, y = drawn(rows, 2), targets_of(model, rows)
    with pytest.raises(NotFittedError):
        model.predict(X[:3])
    small = {"features": FourierFeatures(16), "n_components": 16, "tol": 1e-3, "max_iter": 5, "alpha": 0.1}
    model.set_params(**{key: value for key, value in small.items() if key in model.get_params(deep=False)})
    assert len(model.fit(X[:50], y[:50]).predict(X[:3])) == 3


def child(name, times):
    """What the process does that is stopped: says when the work begins, and when it has ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    model, rows = (clone(FITS[name][0]), FITS[name][1] * times) if name in FITS else (None, 0)
    if model is None:
        work = CALLS[name]()
    else:
        X, y = drawn(rows, 2), targets_of(model, rows)
        work = lambda: model.fit(X, y)  # noqa: E731
    print("begins", flush=True)
    try:
        start = time.monotonic()
        work()
        print(f"ended after {time.monotonic() - start:.1f} s", flush=True)
    except KeyboardInterrupt:
        print("stopped", flush=True)
        if model is not None:
            refuses_and_fits_again(model, rows)


def seconds_to_stop(name, times=1, after=1.0, patience=120.0):
    """Presses Ctrl-C while a process does something, and says how long that took to stop.

    A fit that a fast machine ends before is tried with twice as many rows.
    """
    process = subprocess.Popen([sys.executable, __file__, name, str(times)], stdout=subprocess.PIPE, text=True)
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line.strip()) for line in process.stdout], daemon=True).start()
    try:
        assert lines.get(timeout=patience) == "begins"
        time.sleep(after)
        pressed = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = lines.get(timeout=patience)
        if said.startswith("ended") and name in FITS and times < 8:
            return seconds_to_stop(name, 2 * times, after, patience)
        assert said == "stopped"
        seconds = time.monotonic() - pressed
        assert process.wait(timeout=patience) == 0
        return seconds
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals between processes")
# Every fit; the other calls, which take some seconds each to prepare, with `make check-long`.
@pytest.mark.parametrize("name", [*FITS, *(CALLS if "BOCHNER_LONG" in os.environ else [])])
def test_ctrl_c_stops(name):
    assert seconds_to_stop(name) < LIMIT


def test_every_kind_of_model_is_stopped_here():
    assert {type(model) for model, _ in FITS.values()} == set(KINDS.values())


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2]))
