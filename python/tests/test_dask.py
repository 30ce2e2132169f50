"""Fits on a real cluster: the coefficients of one machine, also when a worker dies."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier

import bochner
from bochner import (
    FeatureGPClassifier,
    FeatureGPRegressor,
    FeatureRidge,
    FeatureRidgeClassifier,
    FeatureSVC,
    FourierFeatures,
    MaclaurinFeatures,
    OperatorRidge,
    OperatorRidgeClassifier,
    PolynomialSketch,
)

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

import bochner.dask  # noqa: E402

MODELS = [
    FeatureRidge(FourierFeatures(64, length_scale="median"), alpha=0.1, random_state=3),
    FeatureRidge(MaclaurinFeatures(33, length_scale=2.0), alpha=0.1, random_state=3),
    FeatureRidgeClassifier(FourierFeatures(64), alpha=0.1, random_state=3),
    FeatureGPRegressor(FourierFeatures(64, random_state=3)),
    FeatureGPRegressor(FourierFeatures(32, form="complex"), random_state=3),
    FeatureGPClassifier(FourierFeatures(32), random_state=3),
    FeatureGPClassifier(FourierFeatures(16, form="complex"), random_state=3),
    OperatorRidge(n_components=64, alpha=0.1, random_state=3),
    OperatorRidge(n_components=64, A="covariance", alpha=0.1, random_state=3),
    OperatorRidge(n_components=32, A="learned", alpha=0.1, random_state=3),
    OperatorRidge("divergence_free", n_components=32, alpha=0.1, random_state=3),
    OperatorRidgeClassifier(n_components=64, A="covariance", alpha=0.1, random_state=3),
]


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


@pytest.fixture(scope="module")
def data():
    """More rows than the sample that a median is found on."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6500, 2))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 1])], axis=1)
    return X, Y, np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [-0.5, 0.5])], rng.uniform(0.5, 2.0, size=6500)


def targets_of(model, data):
    _, Y, labels, _ = data
    if is_classifier(model):
        return labels
    return Y if isinstance(model, OperatorRidge) else Y[:, 0]


def answers(model, X):
    """What a model has learned, as far as numbers show it."""
    found = [getattr(model, name) for name in ("coef_", "intercept_") if hasattr(model, name)]
    if hasattr(model, "predict_proba"):
        found.append(model.predict_proba(X))
    if isinstance(model, FeatureGPRegressor):
        found.extend(model.predict(X, return_std=True))
    return [np.asarray(values) for values in found] or [model.decision_function(X)]


def same(one, other, X):
    for expected, found in zip(answers(one, X), answers(other, X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_cluster_finds_the_coefficients_of_one_machine(cluster, data, model, weighted):
    X, y, weights = data[0], targets_of(model, data), data[3] if weighted else None
    one = clone(model).fit(X, y, sample_weight=weights)
    spread = da.from_array(weights, chunks=900) if weighted else None
    many = bochner.dask.fit(model, da.from_array(X, chunks=(900, 1)), da.from_array(y, chunks=900), spread)
    same(one, many, X[:50])
    assert repr(many) == repr(model)
    assert not hasattr(many, "sums_")


def test_tables_keep_the_names_of_their_columns(cluster, data):
    frame = pd.DataFrame(data[0], columns=["left", "right"])
    table = dd.from_pandas(frame, npartitions=5)
    labels = dd.from_pandas(pd.Series(data[2], name="label"), npartitions=5)
    model = FeatureRidgeClassifier(FourierFeatures(32, random_state=0))
    many = bochner.dask.fit(model, table, labels)
    assert list(many.feature_names_in_) == ["left", "right"]
    same(clone(model).fit(frame, data[2]), many, frame[:50])
    found = bochner.dask.predict(many, table).compute()
    assert np.array_equal(found, many.predict(frame))
    probable = FeatureGPClassifier(FourierFeatures(16, random_state=0), random_state=0).fit(frame, data[2])
    found = bochner.dask.predict(probable, table, "predict_proba").compute()
    np.testing.assert_allclose(found, probable.predict_proba(frame), atol=1e-12)


@pytest.mark.parametrize(
    "features", [PolynomialSketch(32, random_state=1), FourierFeatures(32, length_scale="median", random_state=1)]
)
def test_features_of_a_collection_are_those_of_its_rows(cluster, data, features):
    X = data[0].astype(np.float32)
    expected = clone(features).fit(X).transform(X)
    lazy = bochner.dask.transform(features, da.from_array(X, chunks=(1000, 1)))
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    assert np.array_equal(lazy.compute(), expected)
    table = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    assert np.array_equal(bochner.dask.transform(clone(features).fit(X), table).compute(), expected)


def slowly(block):
    time.sleep(0.15)
    return block


def test_a_killed_worker_changes_nothing(data):
    X, y = data[0], data[1][:, 0]
    model = FeatureRidge(FourierFeatures(64, random_state=0), alpha=0.1)
    one = clone(model).fit(X, y)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        rows = da.from_array(X, chunks=(250, 2)).map_blocks(slowly, dtype=X.dtype)
        killed = []

        def kill():
            os.kill(victim, signal.SIGKILL)
            killed.append(time.monotonic())

        # Lengths are looked at first: the second pass over the partitions is the one that makes sums.
        timer = threading.Timer(3.0, kill)
        timer.start()
        many = bochner.dask.fit(model, rows, da.from_array(y, chunks=250))
        finished = time.monotonic()
        timer.join()
        assert killed
        assert killed[0] < finished
        assert victim not in client.run(os.getpid).values()
    same(one, many, X[:50])


def test_what_cannot_be_spread_is_refused(data):
    X, y = da.from_array(data[0], chunks=1000), da.from_array(data[1][:, 0], chunks=1000)
    with pytest.raises(TypeError, match="FeatureSVC is not solved from sums"):
        bochner.dask.fit(FeatureSVC(), X, y)
    with pytest.raises(TypeError, match="X must be a Dask array or dataframe, got ndarray"):
        bochner.dask.fit(FeatureRidge(), data[0], y)
    with pytest.raises(ValueError, match="y has 13 partitions and X has 7"):
        bochner.dask.fit(FeatureRidge(), X, y.rechunk(500))
    with pytest.raises(ValueError, match="partitions of different lengths"):
        bochner.dask.fit(FeatureRidge(), X, y.rechunk(((500, 1500, *[1000] * 4, 500),)))
    with pytest.raises(ValueError, match="alpha must be one number"):
        labels = da.from_array(data[2], chunks=1000)
        bochner.dask.fit(FeatureGPClassifier(FourierFeatures(16), alpha=[0.1, 0.2]), X, labels)
