"""The Python package against scikit-learn, and what it costs on top of the compiled call.

Prints one row for every bar: `python benches/peers/python_package.py [sketch] [fourier] [ridge] [door] [import]`, all of
them by default. Every side of a comparison runs in a process of its own, so that its peak of memory is its own; the sides
take turns, and the smallest time of each counts, since everything else that runs on a machine only adds.

All jobs have 60,000 rows of 784 numbers in single precision and 4,096 features. Only PolynomialCountSketch, which transforms
in one piece and takes several complex128 numbers per output, is timed on 1,000 rows and scaled up: its time is linear in them.
"""

import json
import resource
import subprocess
import sys
import time

ROWS, COLUMNS, FEATURES = 60_000, 784, 4096
SLICE = 1000
TURNS = 3


def best(work, repetitions):
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def rows(n=ROWS, columns=COLUMNS):
    import numpy as np

    return np.random.default_rng(1).standard_normal((n, columns), dtype=np.float32)


def sketch(ours):
    if ours:
        from bochner import PolynomialSketch

        x = rows()
        features = PolynomialSketch(FEATURES, degree=3, random_state=0).fit(x)
        return best(lambda: features.transform(x), 3)
    from sklearn.kernel_approximation import PolynomialCountSketch

    x = rows(SLICE)
    features = PolynomialCountSketch(degree=3, n_components=FEATURES, random_state=0).fit(x)
    return best(lambda: features.transform(x), 2) * ROWS / SLICE


def fourier(ours):
    x = rows()
    if ours:
        from bochner import FourierFeatures

        features = FourierFeatures(FEATURES, length_scale=28.0, random_state=0).fit(x)
        return best(lambda: features.transform(x), 3)
    from sklearn.kernel_approximation import RBFSampler

    features = RBFSampler(gamma=0.5 / 28.0**2, n_components=FEATURES, random_state=0).fit(x)
    return best(lambda: features.transform(x), 2)


def ridge(ours):
    x = rows()
    # Ten classes that have something to do with the rows.
    labels = abs(x[:, :10]).argmax(axis=1)
    if ours:
        from bochner import FeatureRidgeClassifier, FourierFeatures

        model = FeatureRidgeClassifier(FourierFeatures(FEATURES, length_scale=28.0, random_state=0))
    else:
        from sklearn.kernel_approximation import RBFSampler
        from sklearn.linear_model import RidgeClassifier
        from sklearn.pipeline import make_pipeline

        sampler = RBFSampler(gamma=0.5 / 28.0**2, n_components=FEATURES, random_state=0)
        model = make_pipeline(sampler, RidgeClassifier())
    return best(lambda: model.fit(x, labels), 1)


def door():
    """Overhead of the estimators over the calls of the extension, at 10,000 rows."""
    from bochner import FeatureRidge, FourierFeatures
    from bochner._bochner import RidgeModel

    x = rows(10_000)
    y = x[:, :1].copy()
    pairs = {}
    for projection in ("gaussian", "sorf"):
        features = FourierFeatures(FEATURES, projection=projection, random_state=0).fit(x)
        pairs[f"transform, {projection}"] = (
            lambda features=features: features.transform(x),
            lambda drawn=features.map_: drawn.transform(x),
        )
    model = FeatureRidge(FourierFeatures(FEATURES, random_state=0)).fit(x, y[:, 0])
    plan, drawn = model._plan(), model.features_.map_
    pairs["ridge"] = (lambda: model.fit(x, y[:, 0]), lambda: RidgeModel.fit(drawn, x, y, None, plan))
    found = {}
    for name, (through, call) in pairs.items():
        count = 3 if name == "ridge" else 15
        times = [(best(through, 1), best(call, 1)) for _ in range(count)]
        found[name] = [min(side) for side in zip(*times, strict=True)]
    return found


def importing():
    """Seconds for `import bochner` where scikit-learn is there."""
    import sklearn.base
    import sklearn.utils.validation  # noqa: F401

    start = time.perf_counter()
    import bochner  # noqa: F401

    return time.perf_counter() - start


def child(*arguments):
    """What this script prints about itself in a fresh process."""
    done = subprocess.run([sys.executable, __file__, "--child", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def told(job, measured, bar, held):
    print(f"| {job} | {measured} | {bar} | {'held' if held else 'MISSED'} |", flush=True)


def compare(job, name, bar, memory=False):
    ours, theirs = [], []
    for _ in range(1 if name == "ridge" else TURNS):
        ours.append(child(name, "ours"))
        theirs.append(child(name, "theirs"))
    seconds = [min(run["seconds"] for run in side) for side in (ours, theirs)]
    ratio = seconds[1] / seconds[0]
    told(job, f"{ratio:.1f} times ({seconds[0]:.2f} s, {seconds[1]:.1f} s)", f"at least {bar} times", ratio >= bar)
    if memory:
        peaks = [max(run["peak"] for run in side) for side in (ours, theirs)]
        share = peaks[0] / peaks[1]
        told(f"{job}, peak memory", f"{share:.2f} ({peaks[0]:.2f} GB, {peaks[1]:.2f} GB)", "at most 0.25", share <= 0.25)


def main(names):
    print("| job | measured | bar | |\n| --- | --- | --- | --- |")
    if "sketch" in names:
        compare("`PolynomialSketch` against `PolynomialCountSketch`", "sketch", 50)
    if "fourier" in names:
        compare("`FourierFeatures` against `RBFSampler`", "fourier", 10)
    if "ridge" in names:
        compare("`FeatureRidgeClassifier` against `RBFSampler`, `RidgeClassifier`", "ridge", 4, memory=True)
    if "door" in names:
        for name, (through, call) in child("door")["seconds"].items():
            over = through / call - 1
            told(f"the door, {name}", f"{over:+.1%} of {1000 * call:.0f} ms", "below 5 %", over < 0.05)
    if "import" in names:
        seconds = min(child("import")["seconds"] for _ in range(5))
        told("`import bochner` after scikit-learn", f"{seconds:.2f} s", "below 0.3 s", seconds < 0.3)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        name, *side = sys.argv[2:]
        work = {"sketch": sketch, "fourier": fourier, "ridge": ridge, "door": door, "import": importing}[name]
        seconds = work(*(given == "ours" for given in side))
        print(json.dumps({"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))
    else:
        known = ["sketch", "fourier", "ridge", "door", "import"]
        unknown = set(sys.argv[1:]) - set(known)
        if unknown:
            sys.exit(f"no such job: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        main(sys.argv[1:] or known)
