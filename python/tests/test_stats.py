"""Tests of samples and streams: they keep their level, read streams once, merge, and say what is wrong."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

from bochner import FourierFeatures, OpticalFeatures, PolynomialSketch, kernels, metrics
from bochner.stats import DriftMonitor, SampleSums, independence_test, kid_test, two_sample_test


@pytest.fixture
def samples(rng):
    X, Y = rng.normal(size=(300, 4)), rng.normal(size=(260, 4))
    Y[:, 1] += 0.6
    return X, Y


def test_a_difference_is_found_with_its_column(samples):
    found = two_sample_test(*samples, random_state=0)
    assert found.pvalue == 0.001 and found.significant(0.01)
    assert next(iter(found.columns)) == "x1" and sum(found.columns.values()) == pytest.approx(1)
    low, high = found.interval
    assert 0 < low < found.statistic < high and found.n_rows == (300, 260)
    assert found.standard_error == pytest.approx(math.hypot(found.sampling_variance**0.5, found.sketching_variance**0.5))
    assert "x1" in str(found) and "pvalue=0.001" in repr(found)
    assert found == two_sample_test(*samples, random_state=0) == pickle.loads(pickle.dumps(found))
    assert two_sample_test(*(pd.DataFrame(s, columns=list("abcd")) for s in samples), random_state=0).columns["b"] > 0.5


def test_the_level_is_kept(rng):
    for test in (two_sample_test, independence_test):
        options = {"n_components": 16, "n_permutations": 19}
        results = [test(*rng.normal(size=(2, 30, 2)), random_state=i, **options) for i in range(200)]
        # The mean is 10 and the deviation 3.1: five of them have a probability of one in a million.
        assert sum(result.significant() for result in results) <= 26


def test_estimates_are_those_of_kernels(samples):
    X, Y = samples
    kernel = kernels.Gaussian(1.7)
    exact = two_sample_test(X, Y, kernel=kernel, n_permutations=99, random_state=0)
    assert exact.statistic == pytest.approx(metrics.mmd2(X, Y, kernel), abs=1e-13)
    assert exact.sketching_variance == 0 and exact.columns == {}
    features = FourierFeatures(2048, length_scale=1.7, random_state=0)
    found = two_sample_test(X, Y, features, random_state=0)
    assert abs(found.statistic - exact.statistic) < 5 * found.sketching_variance**0.5
    f, g = (features.fit(X).transform(s) for s in samples)
    n, m = len(f), len(g)
    s, t = f.sum(axis=0), g.sum(axis=0)
    expected = (s @ s - (f**2).sum()) / (n * (n - 1)) + (t @ t - (g**2).sum()) / (m * (m - 1)) - 2 * s @ t / (n * m)
    assert two_sample_test(X, Y, features, random_state=0).statistic == pytest.approx(expected, rel=1e-9)


def test_batches_are_one_sample(samples):
    X, Y = samples
    whole = two_sample_test(X, Y, random_state=0)
    batches = two_sample_test((X[i : i + 7] for i in range(0, 300, 7)), [Y[:100], Y[100:]], random_state=0)
    assert whole == batches
    x, y = X[:, :1], X[:, 1:2] + X[:, :1]
    sides = independence_test(x, y, random_state=0)
    assert sides == independence_test((x[i : i + 7] for i in range(0, 300, 7)), [y[:100], y[100:]], random_state=0)
    assert sides.significant()


def test_long_streams_are_read_once(rng):
    def rows(count, shift):
        return (rng.normal(size=(1000, 3)) + shift for _ in range(count))

    assert two_sample_test(rows(9, 0.0), rows(6, 0.2), n_components=128, random_state=0).n_rows == (9000, 6000)
    assert two_sample_test(rows(9, 0.0), rows(6, 0.2), n_components=128, random_state=0).significant()
    assert two_sample_test(rng.normal(size=(80, 3)) + 1, rows(9, 0.0), n_components=128, random_state=0).significant()
    X = rng.normal(size=(6000, 1))
    assert independence_test(X, abs(X) + rng.normal(size=X.shape), random_state=0).pvalue == 0.001


def test_sums_of_parts_merge(samples):
    X, Y = samples
    features = FourierFeatures(256, length_scale=2.0, random_state=0).fit(X)
    part = pickle.loads(pickle.dumps(SampleSums(features).add(X[:120])))
    merged = part.merge(SampleSums(features).add(X[120:]))
    assert merged.n_rows == 300
    found = two_sample_test(merged, SampleSums(features).add(Y), random_state=0)
    whole = two_sample_test(X, Y, features, random_state=0)
    assert found.statistic == pytest.approx(whole.statistic, rel=1e-9) and found.pvalue == whole.pvalue == 0.001
    with pytest.raises(ValueError, match="different features"):
        merged.merge(SampleSums(FourierFeatures(256, random_state=1).fit(X)))
    with pytest.raises(TypeError, match="both be SampleSums"):
        two_sample_test(merged, Y)


def test_kid_knows_its_errors(samples):
    X, Y = samples
    kernel = kernels.Polynomial(3, 0.25, 1.0)
    value = metrics.kid(X, Y)
    assert float(value) == metrics.mmd2(X, Y, kernel) and value + 0.0 == float(value)
    tested = kid_test(X, Y, random_state=0)
    assert tested.statistic == pytest.approx(value, rel=1e-9) and value.standard_error == pytest.approx(tested.standard_error)
    assert tested.significant() and value.sketching_variance == 0
    sketch = PolynomialSketch(512, degree=3, gamma=0.25, coef0=1.0, random_state=0)
    found = metrics.kid(X, Y, sketch)
    assert found.sketching_variance > 0 and abs(found - value) < 5 * found.standard_error
    assert pickle.loads(pickle.dumps(found)).standard_error == found.standard_error


def test_a_monitor_keeps_its_rate_and_sees_a_change(rng):
    for features in (None, OpticalFeatures(64, random_state=0)):
        monitor = DriftMonitor(features, false_alarm_rate=5e-3, n_components=64, random_state=0)
        alarms = np.concatenate([monitor.update(rng.normal(size=(5000, 20))) for _ in range(6)])
        assert not alarms[:1000].any() and monitor.alarms_ == np.flatnonzero(alarms).tolist()
        assert abs(alarms[1000:].sum() / (5e-3 * 29000) - 1) < 0.2
        changed = rng.normal(size=(500, 20))
        changed[:, :5] += 1.0
        assert monitor.update(changed).any() and monitor.n_rows_ == 30500


def test_a_monitor_takes_rows_one_by_one(rng):
    rows = rng.normal(size=(600, 2))
    one, all_at_once = (DriftMonitor(warmup=50, false_alarm_rate=0.01, random_state=0) for _ in range(2))
    found = np.concatenate([one.update(row) for row in rows])
    assert (found == all_at_once.update(rows)).all() and one.threshold_ == all_at_once.threshold_
    assert math.isinf(DriftMonitor().threshold_)


def test_what_is_wrong_is_told(samples):
    X, Y = samples
    with pytest.raises(ValueError, match="Y has 3 columns, expected 4"):
        two_sample_test(X, Y[:, :3])
    with pytest.raises(ValueError, match="a batch of X has 3 columns, expected 4"):
        two_sample_test([X[:100], X[100:, :3]], Y)
    with pytest.raises(ValueError, match="same columns"):
        two_sample_test(pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=list("abce")))
    with pytest.raises(ValueError, match="NaN"):
        two_sample_test(np.where(X > 3, np.nan, np.where(X == X.max(), np.nan, X)), Y)
    with pytest.raises(ValueError, match="at least 2"):
        two_sample_test(X[:1], Y)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        two_sample_test(X, Y, coverage=95)
    with pytest.raises(ValueError, match="length_scale must be"):
        two_sample_test(X, Y, length_scale="mean")
    with pytest.raises(TypeError, match="got str"):
        two_sample_test("old.csv", Y)
    with pytest.raises(ValueError, match="no batches"):
        two_sample_test(iter([]), Y)
    with pytest.raises(ValueError, match="as many rows"):
        independence_test(X, Y)
    with pytest.raises(ValueError, match="false_alarm_rate"):
        DriftMonitor(false_alarm_rate=2.0).fit(X)
    with pytest.raises(ValueError, match="has 3 columns, expected 4"):
        DriftMonitor(random_state=0).fit(X).update(Y[:, :3])
