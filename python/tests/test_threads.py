"""Signals, forks, progress: what happens around the work."""

import copy
import os
import pickle
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

from bochner import FeatureRidge, FeatureRidgeClassifier, FeatureSVC, FourierFeatures, _checks, exact


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


def together(*calls):
    """Runs calls in threads of their own; what each returned or raised."""
    found = [None] * len(calls)

    def run(place):
        try:
            found[place] = calls[place]()
        except Exception as error:  # noqa: BLE001
            found[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def at_work(model):
    """Waits until a model is being fitted."""
    for _ in range(2000):
        if id(model) in _checks._CHANGING:
            return
        time.sleep(0.001)
    raise AssertionError("nobody fits")


LONG_FITS = {
    "fit": (FeatureRidge(FourierFeatures(512, projection="gaussian", random_state=0)), "fit", {}),
    "partial_fit": (FeatureRidge(FourierFeatures(512, projection="gaussian", random_state=0)), "partial_fit", {}),
    "partial_fit of labels": (
        FeatureRidgeClassifier(FourierFeatures(512, projection="gaussian", random_state=0)),
        "partial_fit",
        {"classes": [0, 1]},
    ),
    "machine": (FeatureSVC(FourierFeatures(256, projection="gaussian", random_state=0), tol=1e-3), "fit", {}),
    "exact": (exact.KernelRidge(), "fit", {}),
}


@pytest.mark.parametrize("name", LONG_FITS)
def test_two_threads_that_fit_one_model_are_told_what_to_do(rng, name):
    """Once they were told "Already borrowed", lost rows, or got a model made of parts of both."""
    model, method, details = LONG_FITS[name]
    model = clone(model)
    rows = rng.normal(size=(3000 if name == "exact" else 60_000, 4))
    targets = (rows[:, 0] > 0).astype(int)

    def first():
        return getattr(model, method)(rows, targets, **details)

    def second():
        at_work(model)
        return getattr(model, method)(rows[:100], targets[:100], **details)

    won, lost = together(first, second)
    assert won is model
    assert isinstance(lost, RuntimeError)
    message = str(lost)
    assert f"{type(model).__name__}.{method} was called while another thread" in message
    assert "threading.Lock" in message
    alone = getattr(clone(model), method)(rows, targets, **details)
    assert np.array_equal(model.predict(rows[:50]), alone.predict(rows[:50]))


def test_rows_that_one_thread_adds_are_in_the_model_of_another(rng):
    """Once a model that was solved for while rows were added could stay."""
    rows = rng.normal(size=(20_000, 4))
    model = FeatureRidge(FourierFeatures(256, random_state=0))
    parts = np.array_split(np.arange(len(rows)), 20)
    model.partial_fit(rows[parts[0]], rows[parts[0], 0])
    done = threading.Event()

    def add():
        for part in parts[1:]:
            while True:
                try:
                    model.partial_fit(rows[part], rows[part, 0])
                    break
                except RuntimeError as error:
                    assert "threading.Lock" in str(error)  # noqa: PT017
        done.set()

    def ask():
        asked = 0
        while not done.is_set():
            try:
                model.predict(rows[:10])
                asked += 1
            except RuntimeError as error:
                assert "threading.Lock" in str(error)  # noqa: PT017
        return asked

    added, asked = together(add, ask)
    assert added is None
    assert isinstance(asked, int)
    expected = FeatureRidge(FourierFeatures(256, random_state=0))
    for part in parts:
        expected.partial_fit(rows[part], rows[part, 0])
    assert model.sums_.count == len(rows)
    assert np.array_equal(model.predict(rows[:50]), expected.predict(rows[:50]))


@pytest.mark.parametrize("name", LONG_FITS)
def test_a_model_that_another_thread_fits_can_be_copied_or_says_why_not(rng, name):
    model, method, details = LONG_FITS[name]
    model = clone(model)
    rows = rng.normal(size=(3000 if name == "exact" else 60_000, 4))
    targets = (rows[:, 0] > 0).astype(int)

    def copies():
        at_work(model)
        found = []
        while id(model) in _checks._CHANGING:
            clone(model)
            for copied in (copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
                try:
                    found.append(copied(model))
                except RuntimeError as error:
                    assert "threading.Lock" in str(error)  # noqa: PT017
        return found

    fitted, found = together(lambda: getattr(model, method)(rows, targets, **details), copies)
    assert fitted is model
    assert isinstance(found, list), found
    for copied in found[:20]:
        try:
            copied.predict(rows[:5])
        except NotFittedError:
            pass
        copied.set_params(**model.get_params(deep=False)).fit(rows[:50], targets[:50]).predict(rows[:5])


def test_a_thread_that_has_ended_holds_nothing(rng):
    model = exact.KernelRidge()
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    _checks._CHANGING[id(model)] = ended
    rows = rng.normal(size=(20, 2))
    assert len(model.fit(rows, rows[:, 0]).predict(rows)) == 20
    assert id(model) not in _checks._CHANGING
