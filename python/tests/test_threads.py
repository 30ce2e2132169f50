"""Signals, forks, progress: what happens around the work."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bochner import FeatureRidge, FourierFeatures


def run(script):
    """A script in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def interrupted_after(seconds, work):
    """Runs `work`, presses Ctrl-C after some time and returns how long it took to stop."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    # A shell starts background jobs with the signal ignored, and Python leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.monotonic() - pressed[0]
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_a_transform(rng):
    rows = rng.normal(size=(100_000, 600)).astype(np.float32)
    features = FourierFeatures(8192, projection="gaussian", random_state=0).fit(rows[:10])
    assert interrupted_after(0.3, lambda: features.transform(rows)) < 1.0
    assert features.transform(rows[:3]).shape == (3, 8192)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_ctrl_c_leaves_a_model_unfitted(rng, method):
    rows = rng.normal(size=(400_000, 4))
    model = FeatureRidge(FourierFeatures(512, projection="gaussian", random_state=0))
    model.fit(rows[:1000], rows[:1000, 0])
    if method == "partial_fit":
        model = clone(model).partial_fit(rows[:1000], rows[:1000, 0])
    assert interrupted_after(0.3, lambda: getattr(model, method)(rows, rows[:, 0])) < 1.0
    with pytest.raises(NotFittedError):
        model.predict(rows[:3])
    assert model.fit(rows[:1000], rows[:1000, 0]).predict(rows[:3]).shape == (3,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_children_have_threads_of_their_own():
    answer = run(
        """
        import os, warnings
        import numpy as np
        from bochner import FourierFeatures
        warnings.simplefilter("ignore")
        X = np.random.default_rng(0).normal(size=(5000, 20))
        features = FourierFeatures(512, random_state=0).fit(X)
        expected = features.transform(X)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(features.transform(X), expected) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert answer == "0"


def test_other_threads_run_while_the_core_works(rng):
    rows = rng.normal(size=(10_000, 300))
    features = FourierFeatures(1024, projection="gaussian", random_state=0).fit(rows[:10])
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.monotonic()
    features.transform(rows)
    elapsed = time.monotonic() - start
    done.set()
    ticker.join()
    during = [t for t in ticks if start <= t <= start + elapsed]
    assert len(during) > 10 * elapsed


def test_import_is_quick_once_scikit_learn_is_there():
    seconds = run(
        """
        import time
        import sklearn.base, sklearn.utils.validation
        start = time.perf_counter()
        import bochner
        print(time.perf_counter() - start)
        """
    )
    assert float(seconds) < 0.3


@pytest.mark.parametrize(
    "model",
    [
        "FeatureRidge(FourierFeatures(64, random_state=seed), n_jobs=1)",
        "FeatureSVC(PolynomialSketch(64, random_state=seed), n_jobs=1, tol=0.1)",
        "FeatureGPRegressor(FourierFeatures(64, form='complex', random_state=seed), n_jobs=1)",
        "exact.KernelSVC(n_jobs=1)",
    ],
    ids=lambda model: model.split("(")[0],
)
def test_many_fits_do_not_grow_memory(model):
    grown = run(
        f"""
        import resource
        import numpy as np
        from bochner import FeatureGPRegressor, FeatureRidge, FeatureSVC, FourierFeatures, PolynomialSketch, exact
        X = np.random.default_rng(0).normal(size=(30, 3))
        y = (X[:, 0] > 0).astype(int)
        def fits(count):
            for seed in range(count):
                {model}.fit(X, y).predict(X)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = fits(100)
        print(fits(1000) - before)
        """
    )
    # Kilobytes; one fit allocates about 400 of them.
    assert int(grown) < 4000


def test_two_threads_transform_with_one_estimator(rng):
    rows = rng.normal(size=(3000, 20))
    features = FourierFeatures(512, random_state=0).fit(rows)
    halves = [rows[:1500], rows[1500:].astype(np.float32)]
    expected = [features.transform(half) for half in halves]
    fresh = FourierFeatures(512, random_state=0).fit(rows)
    start, found = threading.Barrier(4), {}

    def work(place):
        start.wait()
        # The weights in single precision are drawn here, by whoever comes first.
        found[place] = [fresh.transform(halves[place % 2]) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, answers in found.items():
        assert all(np.array_equal(answer, expected[place % 2]) for answer in answers)


def test_two_threads_predict_with_one_model(rng):
    rows = rng.normal(size=(2000, 5))
    features = FourierFeatures(128, random_state=0)
    expected = FeatureRidge(features).partial_fit(rows, rows[:, 0]).predict(rows)
    shared = FeatureRidge(features).partial_fit(rows, rows[:, 0])
    start, found = threading.Barrier(4), []

    def work():
        start.wait()
        # The equations are solved here, by whoever comes first.
        found.append(shared.predict(rows))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(answer, expected) for answer in found)


def test_optional_packages_stay_outside_until_they_are_asked_for():
    loaded = run(
        """
        import sys
        import bochner
        print([name for name in ("dask", "matplotlib", "tqdm") if name in sys.modules])
        """
    )
    assert loaded == "[]"
