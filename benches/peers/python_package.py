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

from timing import best

ROWS, COLUMNS, FEATURES = 60_000, 784, 4096
SLICE = 1000
TURNS = 3


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


class Timed:
    """Something whose calls are timed: what they take is not the door's."""

    def __init__(self, inner):
        self.inner, self.inside = inner, 0.0

    def __getattr__(self, name):
        member = getattr(self.inner, name)
        if not callable(member):
            return member

        def call(*arguments, **options):
            start = time.perf_counter()
            try:
                return member(*arguments, **options)
            finally:
                self.inside += time.perf_counter() - start

        return call


def door():
    """What estimators add to the calls of the extension, at 10,000 rows: pairs of seconds outside and inside of them.

    Both are taken from the same run: two runs of one call differ by more than the door takes. What a call of the extension
    costs before it computes anything is that of a single row.
    """
    import bochner._ridge
    from bochner import FeatureRidge, FourierFeatures

    x = rows(10_000)
    found = {}

    def measure(name, timed, work, repetitions):
        runs = []
        for _ in range(repetitions):
            timed.inside = 0.0
            whole = best(work, 1)
            runs.append((whole - timed.inside, timed.inside))
        found[name] = sorted(runs)[repetitions // 2]

    for projection in ("gaussian", "sorf"):
        features = FourierFeatures(FEATURES, projection=projection, random_state=0).fit(x)
        alone = best(lambda drawn=features.map_: drawn.transform(x[:1]), 50)
        timed = features.map_ = Timed(features.map_)
        measure(f"transform, {projection}", timed, lambda features=features: features.transform(x), 15)
        outside, inside = found[f"transform, {projection}"]
        found[f"transform, {projection}"] = (outside + alone, inside - alone)
    timed = bochner._ridge.RidgeModel = Timed(bochner._ridge.RidgeModel)
    model = FeatureRidge(FourierFeatures(FEATURES, random_state=0))
    measure("ridge", timed, lambda: model.fit(x, x[:, 0]), 3)
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
        for name, (outside, inside) in child("door")["seconds"].items():
            share = outside / inside
            told(f"the door, {name}", f"{share:.1%} ({1e3 * outside:.1f} of {1e3 * inside:.0f} ms)", "below 5 %", share < 0.05)
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
