"""Absurd sizes are errors that say so, and soon: no call ends the interpreter, whatever it is asked for."""

import json
import resource
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import bochner
from bochner import exact
from bochner._catalogue import CATALOGUE

# Address space of the process that is asked: it has 4 GiB, whatever the machine has.
LIMIT = 4 << 30
SIZES = [1 << 31, 1 << 34, 1 << 40, 1 << 53, 1 << 62, (1 << 63) + 1, 1 << 64, -1]

# Runs calls one by one, and says after each what became of it.
WORKER = """
import json, sys, time, warnings
import numpy as np
import bochner
from bochner import exact, kernels, metrics
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y, labels = X[:, 0], np.arange(40) % 2
process = bochner.FeatureGPRegressor(bochner.FourierFeatures(16)).fit(X, y)
for call in json.load(sys.stdin):
    start = time.perf_counter()
    try:
        eval(call)
        told = ["", ""]
    except Exception as error:
        told = [type(error).__name__, str(error)]
    print(json.dumps([call, time.perf_counter() - start, *told]), flush=True)
"""


def whole(domain):
    """Whether a parameter counts something."""
    if isinstance(domain, dict) and "optional" in domain:
        return whole(domain["optional"])
    return isinstance(domain, dict) and "whole" in domain


def sized(kind):
    """The parameters of a class that count something."""
    entries = [entry for group in CATALOGUE.values() for entry in group]
    names = {p["name"] for entry in entries for p in entry["parameters"] if whole(p["domain"])}
    names |= {"n_jobs", "random_state"}
    return [p.name for p in kind._parameters if p.name in names]


def constructors():
    for module, prefix in ((bochner, "bochner"), (exact, "exact")):
        for name in sorted(set(module.__all__)):
            kind = getattr(module, name)
            if isinstance(kind, type) and getattr(kind, "_parameters", ()):
                yield f"{prefix}.{name}", kind


def calls():
    """Every estimator with every size that it has, and every function that takes one."""
    for name, kind in constructors():
        for parameter in sized(kind):
            for size in SIZES:
                made = f"{name}({parameter}={size})"
                if hasattr(kind, "transform"):
                    yield f"{made}.fit(X).transform(X[:2])"
                else:
                    targets = "labels" if "Classifier" in name or name.endswith("SVC") else "y"
                    yield f"{made}.fit(X, {targets}).predict(X[:2])"
    for size in SIZES:
        yield f"bochner.simplex_codes({size})"
        yield f"bochner.lagged_rows(X, n_lags={size})"
        yield f"bochner.plan(X, n_draws={size})"
        yield f"bochner.plan(X, max_features={size}, n_draws=0)"
        yield f"process.sample_y(X, n_samples={size})"
        yield f"bochner.OpticalFeatures({size}, projection='matrix_free').fit(X).transform(X)"
        yield f"bochner.PolynomialSketch({size}, sketch='gaussian', structure='tree', weights='real').fit(X)"
        yield f"bochner.FeatureRidge(bochner.FourierFeatures({size}, projection='sorf')).fit(X, y)"


def answers(calls, limit=LIMIT):
    """What became of calls in a process of their own."""
    listed = list(calls)
    told = []
    while len(told) < len(listed):
        process = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(WORKER)],
            input=json.dumps(listed[len(told) :]),
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
            timeout=600,
            check=False,
        )
        new = [json.loads(line) for line in process.stdout.splitlines()]
        told += new
        if len(told) < len(listed):
            told.append([listed[len(told)], 0.0, "the process ended", process.stderr[-500:]])
    return told


def test_absurd_sizes_are_errors_within_a_second():
    told = answers(calls())
    assert len(told) > 200
    errors = {"MemoryError", "ValueError", "OverflowError", ""}
    wrong = [answer for answer in told if answer[2] not in errors or (answer[2] and not answer[3])]
    slow = [answer for answer in told if answer[2] and answer[1] > 1.0]
    assert not wrong, "\n".join(map(str, wrong))
    assert not slow, "\n".join(map(str, slow))
    refused = [answer for answer in told if answer[2]]
    assert len(refused) > 0.5 * len(told)


def test_large_requests_say_what_they_need_and_what_would_fit():
    calls = [
        "bochner.FourierFeatures(100_000).fit(X).transform(np.broadcast_to(X[:1], (3_000_000, 3)))",
        "bochner.FourierFeatures(64).fit(X).exact_kernel(np.broadcast_to(X[:1], (400_000, 3)))",
        "kernels.Gaussian()(np.broadcast_to(X[:1], (400_000, 3)))",
        "bochner.FeatureRidge(bochner.FourierFeatures(200_000), solver='cholesky').fit(X, y)",
        "exact.GPRegressor().fit(np.broadcast_to(X[:1], (400_000, 3)), np.zeros(400_000))",
    ]
    for call, seconds, kind, message in answers(calls):
        assert kind == "MemoryError", (call, kind, message)
        assert "are needed" in message and "free" in message, (call, message)
        assert seconds < 5.0, (call, seconds)
    first = answers(calls[:1])[0][3]
    assert "3,000,000 x 100,000" in first and "blocks of at most" in first


@pytest.mark.parametrize("size", [0, -3, 2.5, "many", 1 << 63])
def test_counts_are_whole_numbers(size):
    with pytest.raises(ValueError, match="n_classes must be a whole number"):
        bochner.simplex_codes(size)
    assert bochner.simplex_codes(np.int64(3)).shape == (3, 2)
