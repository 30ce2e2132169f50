"""Kernel tests in one pass: are two samples alike, are two sides of rows independent, has a stream changed?

Samples are arrays, data frames, or iterables of batches of them that are read once; memory does not grow with the rows.
P-values come from permutations and are exact: where the hypothesis holds, at most a share alpha of all tests has a p-value of
at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from bochner import _bochner
from bochner._base import FeatureTransformer, check_features
from bochner._catalogue import documented
from bochner._checks import RandomState, count, same_dtype, seed_of
from bochner._features import FourierFeatures
from bochner.kernels import Kernel, Polynomial, check_kernel, rows_of

__all__ = ["DriftMonitor", "SampleSums", "TestResult", "independence_test", "kid_test", "two_sample_test"]

# Rows that are read before length scales are chosen: where a sample has no more, from all of them.
_HEAD_ROWS = 4096
_HEAD_BYTES = 64 << 20
# Rows of a longer sample that may be looked at; the core says how many of them it takes.
_FIRST_ROWS = 512
# Up to so many rows the sides of all pairs of rows are permuted, and features cost little.
_FEW_ROWS = 1024
# Columns for which it is told by how much they differ.
_MOST_COLUMNS = 4096

_Source = ArrayLike | Iterable[ArrayLike]


@dataclass(frozen=True, repr=False)
class TestResult:
    """What a test has found.

    Parameters
    ----------
    statistic : float
        Unbiased estimate of what is 0 under the hypothesis: the squared maximum mean discrepancy, or the Hilbert-Schmidt
        independence criterion. Near 0, and as often negative as positive, where it holds.
    pvalue : float
        Share of permutations, the rows as they are among them, that come out as far from 0 or farther.
    interval : tuple of float
        Interval of the quantity that is estimated; it allows for the draw of the rows and for that of the features.
    coverage : float
        Coverage of the interval.
    sampling_variance : float
        Variance of the statistic over draws of rows.
    sketching_variance : float
        Variance of the statistic over draws of features; 0 for exact kernels.
    n_rows : tuple of int
        Rows of both samples, or of both sides.
    question : str
        What was tested, in words.
    columns : dict of str to float, default={}
        By how much each column takes part in the difference, largest first; shares of 1, all 0 where no column
        differs more than by chance. Empty where it is not known.

    Examples
    --------
    >>> found = TestResult(0.1, 0.002, (0.05, 0.15), 0.95, 6e-4, 4e-5, (90, 80), "Are both samples of one distribution?")
    >>> found.significant()
    True
    """

    __test__ = False  # no test of this package, whatever its name

    statistic: float
    pvalue: float
    interval: tuple[float, float]
    coverage: float
    sampling_variance: float
    sketching_variance: float
    n_rows: tuple[int, int]
    question: str
    columns: dict[str, float] = field(default_factory=dict)

    @property
    def standard_error(self) -> float:
        """Root of the sum of both variances."""
        return math.sqrt(self.sampling_variance + self.sketching_variance)

    def significant(self, level: float = 0.05) -> bool:
        """Whether the hypothesis is rejected at this level."""
        return self.pvalue <= level

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"{type(self).__name__}(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g}, "
            f"interval=({low:.4g}, {high:.4g}), standard_error={self.standard_error:.2g})"
        )

    def __str__(self) -> str:
        low, high = self.interval
        doubted = "Very probably not." if self.significant(0.01) else "Probably not."
        lines = [
            f"{self.question} {doubted if self.significant() else 'Nothing speaks against it.'}",
            f"statistic {self.statistic:.4g}, p-value {self.pvalue:.4g}",
            f"{100 * self.coverage:g} % interval {low:.4g} to {high:.4g}",
            f"standard error {self.standard_error:.2g}: {math.sqrt(self.sampling_variance):.2g} from the draw of the rows, "
            f"{math.sqrt(self.sketching_variance):.2g} from that of the features",
        ]
        most = [f"{name} {100 * share:.0f} %" for name, share in list(self.columns.items())[:5] if share >= 0.01]
        if most and self.significant():
            lines.append("columns that differ most: " + ", ".join(most))
        return "\n".join(lines)


class SampleSums:
    """Sums of features of a sample, for :func:`two_sample_test`: parts of a sample can be added up apart and merged.

    Parameters
    ----------
    features : transformer
        Fitted features. Their length scale must not come from one of the samples alone; from both together, or from rows of
        neither, the test keeps its level.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
    >>> features = FourierFeatures(256, length_scale=2.0, random_state=0).fit(X)
    >>> part, other = SampleSums(features).add(X[:100]), SampleSums(features).add(X[100:])
    >>> found = two_sample_test(part.merge(other), SampleSums(features).add(Y), random_state=0)
    >>> found.n_rows
    (300, 200)
    """

    def __init__(self, features: FeatureTransformer, *, n_jobs: int | None = None) -> None:
        check_features(features)
        if not hasattr(features, "map_"):
            raise ValueError("features must be fitted: sums of features that are drawn anew could not be compared")
        self.features = features
        self.n_jobs = n_jobs
        self._sums = _bochner.SampleSums(features.map_.output_dim, features.n_features_in_)

    @documented
    def add(self, X: ArrayLike) -> Self:
        """Add rows; after an error the sums hold part of them."""
        rows = rows_of(X, "X")
        _check_width(rows, self.features.n_features_in_, "X")
        self._sums.push(self.features.map_, rows, n_jobs=self.n_jobs)
        return self

    def merge(self, other: SampleSums) -> Self:
        """Add the rows of other sums over the same features.

        Parameters
        ----------
        other : SampleSums
            Sums of another part of the sample.

        Returns
        -------
        self : object
            These sums.
        """
        if other.features.map_.spec != self.features.map_.spec:
            raise ValueError("sums of different features cannot be merged: fit the features once and use them for all parts")
        self._sums.merge(other._sums)
        return self

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._sums.count


@documented
def two_sample_test(
    X: _Source | SampleSums,
    Y: _Source | SampleSums,
    features: FeatureTransformer | None = None,
    *,
    kernel: str | Kernel = "gaussian",
    n_components: int = 1024,
    length_scale: float | str = "median",
    standardize: bool = True,
    n_permutations: int = 999,
    coverage: float = 0.95,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> TestResult:
    """Are two samples of one distribution? A permutation test of the squared maximum mean discrepancy by features.

    One pass over both samples, in time proportional to their rows and memory that does not grow with them. Rows are
    exchanged one by one where there are few, and in blocks of equal size where there are many: the level is exact either way.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_features), iterable of such batches, or SampleSums
        One sample.
    Y : array-like of shape (n_samples_Y, n_features), iterable of such batches, or SampleSums
        The other.
    features : transformer, default=None
        Features of the kernel. Fitted ones are taken as they are; others are fitted to rows of both samples. Without, Fourier
        features of `kernel` are drawn.
    kernel : {"gaussian", "laplacian", "matern"} or Kernel, default="gaussian"
        Kernel of the features; one of :mod:`bochner.kernels` is taken exactly, in time and memory for all pairs of rows.
    n_components : int, default=1024
        Number of features.
    length_scale : float or "median", default="median"
        Length scale of the kernel; "median" takes the median distance of two rows of both samples together.
    standardize : bool, default=True
        Whether columns are measured in units of their standard deviation, where neither features nor an exact kernel are given.
    n_permutations : int, default=999
        Random permutations.
    coverage : float, default=0.95
        Coverage of the interval.

    Returns
    -------
    result : TestResult
        Statistic, p-value, interval, variances, and by how much each column takes part.

    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(400, 5)), rng.normal(size=(300, 5))
    >>> Y[:, 2] += 0.7
    >>> found = two_sample_test(X, Y, random_state=0)
    >>> found.pvalue, next(iter(found.columns))
    (0.001, 'x2')
    """
    seed, asked = seed_of(random_state), (count("n_permutations", n_permutations), _share("coverage", coverage))
    if isinstance(X, SampleSums) or isinstance(Y, SampleSums):
        if not (isinstance(X, SampleSums) and isinstance(Y, SampleSums)):
            raise TypeError("X and Y must both be SampleSums, or neither of them")
        if features is not None or X.features.map_.spec != Y.features.map_.spec:
            raise ValueError("X and Y must be sums of the same features, which are not given again")
        return _two_sample(X._sums, Y._sums, X.features.map_, _names(X.features, None), *asked, seed, n_jobs)
    x, y = X if isinstance(X, _Batches) else _Batches(X, "X"), _Batches(Y, "Y")
    x.align(y)
    if isinstance(kernel, Kernel) and features is None:
        rows = same_dtype(x.all(), y.all())
        found = _bochner.two_sample_exact(check_kernel(kernel)._exact(x.width), *rows, *asked, seed, n_jobs)
        return _result(found, asked[1], (len(rows[0]), len(rows[1])), _ALIKE)
    drawn, fixed = _draw(x, y, features, kernel, n_components, length_scale, standardize, seed, n_jobs)
    sums = [_gathered(source, drawn, stay, n_jobs) for source, stay in zip((x, y), fixed, strict=True)]
    return _two_sample(sums[0], sums[1], drawn, _names(features, x), *asked, seed, n_jobs)


@documented
def kid_test(
    X: _Source,
    Y: _Source,
    features: FeatureTransformer | None = None,
    *,
    n_permutations: int = 999,
    coverage: float = 0.95,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> TestResult:
    """The kernel inception distance with its errors: :func:`two_sample_test` under ``(<x, y> / n_features + 1)^3``.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_features) or iterable of such batches
        Network features of one set of images.
    Y : array-like of shape (n_samples_Y, n_features) or iterable of such batches
        Those of the other.
    features : transformer, default=None
        Random features to estimate it with, in time proportional to the number of rows; their own kernel takes the
        place of the cubic one. Without, it is computed from all pairs of rows.
    n_permutations : int, default=999
        Random permutations.
    coverage : float, default=0.95
        Coverage of the interval.

    Returns
    -------
    result : TestResult
        The distance is its `statistic`.

    >>> rng = np.random.default_rng(0)
    >>> found = kid_test(rng.normal(size=(100, 4)), rng.normal(size=(100, 4)) + 1.0, random_state=0)
    >>> found.significant() and found.sketching_variance == 0.0
    True
    """
    options: dict[str, Any] = {"n_permutations": n_permutations, "coverage": coverage}
    options |= {"random_state": random_state, "n_jobs": n_jobs}
    if features is not None:
        return two_sample_test(X, Y, features, **options)
    x = _Batches(X, "X")
    known: Any = x  # what has been read of X is not read again
    return two_sample_test(known, Y, kernel=Polynomial(3, 1.0 / x.width, 1.0), **options)


@documented
def independence_test(
    X: _Source,
    Y: _Source,
    *,
    kernel: str = "gaussian",
    n_components: int | None = None,
    length_scale: float | str = "median",
    standardize: bool = True,
    n_permutations: int = 999,
    coverage: float = 0.95,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> TestResult:
    """Are the two sides of every row independent? A permutation test of the Hilbert-Schmidt criterion by features.

    One pass, in time proportional to the rows and memory that does not grow with them. Up to 1,024 rows the sides are permuted
    among all rows, beyond that within tuples of eight: the level is exact either way.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features_X) or iterable of such batches
        One side.
    Y : array-like of shape (n_samples, n_features_Y) or iterable of such batches
        The other side of the same rows; batches have as many rows as those of X.
    kernel : {"gaussian", "laplacian", "matern"}, default="gaussian"
        Kernel of both sides.
    n_components : int, default=None
        Number of features of each side; None takes 1024 up to 1,024 rows and 64 for more, where every feature of one side meets
        every one of the other.
    length_scale : float or "median", default="median"
        Length scale of the kernel; "median" takes the median distance of two rows, for each side.
    standardize : bool, default=True
        Whether columns are measured in units of their standard deviation.
    n_permutations : int, default=999
        Random permutations.
    coverage : float, default=0.95
        Coverage of the interval.

    Returns
    -------
    result : TestResult
        Statistic, p-value, interval and variances.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> independence_test(X, X[:, :1] ** 2 + rng.normal(size=(300, 1)), random_state=0).significant()
    True
    """
    seed, asked = seed_of(random_state), (count("n_permutations", n_permutations), _share("coverage", coverage))
    x, y = _Batches(_columns(X), "X"), _Batches(_columns(Y), "Y")
    x.align(y, columns=False)
    few = x.whole and x.head_rows <= _FEW_ROWS
    columns = count("n_components", n_components, 2) if n_components is not None else 1024 if few else 64
    maps = []
    for side, own in ((x, 2 * seed), (y, 2 * seed + 1)):
        rows = side.head if side.whole else side.head[:_FIRST_ROWS]
        none = rows[:0]
        scale, _, _ = _bochner.pooled_scale(rows, none, True, True, standardize, seed)
        own %= 1 << 64
        maps.append(_fourier(kernel, columns, _scales(scale, length_scale, standardize, rows), own, n_jobs, side).map_)
    sums = _bochner.PairSums(*(drawn.output_dim for drawn in maps))
    rows = 0
    for left, right in _together(x, y):
        sums.push(maps[0], left, maps[1], right, n_jobs)
        rows += len_of(left)
    question = "Are both sides of the rows independent?"
    return _result(_bochner.independence(sums, *asked, seed, n_jobs), asked[1], (rows, rows), question)


class DriftMonitor:
    """Watches a stream of rows for a change of their distribution.

    Two averages of random features forget at different speeds. An alarm is raised where they are farther apart than a
    threshold, which adapts itself so that, while nothing changes, `false_alarm_rate` alarms per row are raised. Nothing of the
    stream is kept but the averages (NEWMA: Keriven, Garreau and Poli 2018; with `OpticalFeatures` the features can come from an
    optical processor).

    Parameters
    ----------
    features : transformer, default=None
        Features; fitted to the first rows where they are not fitted. Without, Fourier features of the Gaussian kernel.
    false_alarm_rate : float, default=0.001
        Alarms per row while nothing changes.
    fast : float, default=0.02
        Share of the newest row in the average that follows a change.
    slow : float, default=0.005
        Share of the newest row in the average that remembers.
    warmup : int, default=1000
        First rows, from which the threshold is found; they raise no alarm.
    n_components : int, default=256
        Number of features, where none are given.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(random_state=0).fit(rng.normal(size=(1000, 3)))
    >>> bool(monitor.update(rng.normal(size=(200, 3))).sum() <= 2)  # one in a thousand rows, on average
    True
    >>> bool(monitor.update(rng.normal(size=(200, 3)) + 1.0).any())
    True
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        false_alarm_rate: float = 1e-3,
        fast: float = 0.02,
        slow: float = 0.005,
        warmup: int = 1000,
        n_components: int = 256,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.features = features
        self.false_alarm_rate = false_alarm_rate
        self.fast = fast
        self.slow = slow
        self.warmup = count("warmup", warmup, 20)
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.n_rows_ = 0
        self.alarms_: list[int] = []
        self._first: list[Any] = []
        self._drift: _bochner.Drift | None = None

    @documented
    def fit(self, X: ArrayLike) -> Self:
        """Take these rows for the first ones, whatever `warmup` is; they are not counted, and earlier ones are forgotten."""
        rows, seed = rows_of(X, "X"), seed_of(self.random_state)
        drawn = self.features
        if drawn is None:
            scale, _, _ = _bochner.pooled_scale(rows, rows[:0], True, True, True, seed)
            drawn = _fourier("gaussian", self.n_components, scale, seed, self.n_jobs, rows)
        elif not hasattr(check_features(drawn), "map_"):
            drawn = clone(drawn).fit(rows)
        else:
            _check_width(rows, drawn.n_features_in_, "X")
        rate = float(self.false_alarm_rate)
        self._drift = _bochner.Drift(drawn.map_, rows, rate, float(self.fast), float(self.slow), seed, self.n_jobs)
        self._width, self._dtype = rows.shape[1], rows.dtype
        self.features_ = drawn
        self.n_rows_, self.alarms_, self._first = 0, [], []
        return self

    @documented
    def update(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Look at the next rows; how a stream is cut into calls changes nothing.

        Returns
        -------
        alarms : ndarray of shape (n_samples,)
            Which rows raise an alarm.
        """
        rows = rows_of(np.asarray(X).reshape(1, -1) if np.ndim(X) == 1 else X, "X")
        seen = np.zeros(rows.shape[0], dtype=bool)
        if self._drift is None:
            self._first.append(rows)
            have = sum(len_of(part) for part in self._first)
            if have < self.warmup:
                self.n_rows_ += rows.shape[0]
                return seen
            rest = have - self.warmup
            first = _joined(self._first)
            self.fit(first[: self.warmup])
            self.n_rows_ = self.warmup
            if rest:
                seen[-rest:] = self.update(first[self.warmup :])
            return seen
        _check_width(rows, self._width, "X")
        seen = self._drift.update(rows.astype(self._dtype, copy=False), self.n_jobs)
        self.alarms_ += (self.n_rows_ + np.flatnonzero(seen)).tolist()
        self.n_rows_ += rows.shape[0]
        return seen

    @property
    def statistic_(self) -> float:
        """Distance of the two averages; 0 before the threshold is known."""
        return 0.0 if self._drift is None else self._drift.statistic

    @property
    def threshold_(self) -> float:
        """The distance that would be an alarm; infinite before it is known."""
        return math.inf if self._drift is None else self._drift.threshold

    def __repr__(self) -> str:
        rate = f"false_alarm_rate={self.false_alarm_rate:g}"
        return f"{type(self).__name__}({rate}, rows={self.n_rows_}, alarms={len(self.alarms_)})"


_ALIKE = "Are both samples of one distribution?"


class _Batches:
    """The rows of a source in batches, each an array; the first ones are known before the others are read."""

    def __init__(self, source: Any, name: str) -> None:
        self.name = name
        parts = iter(source) if _in_batches(source) else iter([source])
        first = next(parts, None)
        if first is None:
            raise ValueError(f"{name} has no batches, expected at least one with rows")
        self.names = [str(c) for c in first.columns] if hasattr(first, "columns") else None
        rows = rows_of(first, name)
        self.width = rows.shape[1]
        most = max(_FIRST_ROWS, min(_HEAD_ROWS, _HEAD_BYTES // (8 * self.width)))
        if len_of(rows) > most:
            # One long array is read like a stream, which takes no copy of it.
            parts = chain([rows[most:]], parts)
        head = [rows[:most]]
        self.head_rows, self.whole = len_of(head[0]), False
        while self.head_rows < most:
            part = next(parts, None)
            if part is None:
                break
            head.append(self._read(part))
            self.head_rows += len_of(head[-1])
        # Behind a full head there may be nothing more.
        more = next(parts, None)
        self.whole = more is None
        self._sizes = [len_of(part) for part in head]
        self.head = _joined(head)
        self.dtype = self.head.dtype
        self._rest = parts if more is None else chain([more], parts)

    def _read(self, part: Any) -> Any:
        rows = rows_of(part, self.name)
        _check_width(rows, self.width, f"a batch of {self.name}")
        return rows

    def align(self, other: _Batches, columns: bool = True) -> None:
        """Gives both sources one dtype, and checks that they can be compared."""
        if columns and self.width != other.width:
            raise ValueError(f"{other.name} has {other.width} columns, expected {self.width} as in {self.name}")
        if columns and self.names and other.names and self.names != other.names:
            missing = [name for name in self.names if name not in other.names]
            odd = f"{missing[0]!r} of {self.name} is not in {other.name}" if missing else "their order differs"
            raise ValueError(f"{self.name} and {other.name} must have the same columns in the same order: {odd}")
        self.dtype = other.dtype = np.result_type(self.dtype, other.dtype)
        for side in (self, other):
            side.head = side.head.astype(side.dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        start = 0
        for size in self._sizes:
            yield self.head[start : start + size]
            start += size
        for part in self._rest:
            yield self._read(part).astype(self.dtype, copy=False)

    def all(self) -> Any:
        return _joined(list(self))


def _in_batches(source: Any) -> bool:
    """Whether a source is an iterable of batches rather than one array."""
    if hasattr(source, "__array__") or hasattr(source, "shape") or not isinstance(source, Iterable):
        return False
    if isinstance(source, (str, bytes, dict)):
        raise TypeError(f"expected an array, a data frame or an iterable of batches of rows, got {type(source).__name__}")
    if isinstance(source, (list, tuple)):
        return len(source) > 0 and (hasattr(source[0], "columns") or np.ndim(source[0]) == 2)
    return True


def _columns(source: Any) -> Any:
    """A vector as one column."""
    return np.asarray(source).reshape(-1, 1) if not _in_batches(source) and np.ndim(source) == 1 else source


def len_of(rows: Any) -> int:
    """Number of rows, of sparse ones too."""
    return int(rows.shape[0])


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    from scipy import sparse

    return sparse.vstack(parts, format="csr")


def _together(x: _Batches, y: _Batches) -> Iterator[tuple[Any, Any]]:
    """Batches of both sides, cut so that they have as many rows."""
    left, right = iter(x), iter(y)
    a = b = None
    while True:
        a = next(left, None) if a is None or not len_of(a) else a
        b = next(right, None) if b is None or not len_of(b) else b
        if a is None or b is None:
            if (a is not None and len_of(a)) or (b is not None and len_of(b)):
                raise ValueError(f"{x.name} and {y.name} must have as many rows, but one of them ends before the other")
            return
        rows = min(len_of(a), len_of(b))
        if rows:
            yield a[:rows], b[:rows]
        a, b = a[rows:], b[rows:]


def _check_width(rows: Any, width: int, name: str) -> None:
    if rows.shape[1] != width:
        raise ValueError(f"{name} has {rows.shape[1]} columns, expected {width}")


def _share(name: str, value: float) -> float:
    if not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name} must be a number between 0 and 1, got {value}")
    return float(value)


def _scales(median: list[float], length_scale: float | str, standardize: bool, rows: Any) -> Any:
    """The length scale of every column; a number is in units of the columns as they are compared."""
    if length_scale == "median":
        return median
    if isinstance(length_scale, str) or not float(length_scale) > 0.0:
        raise ValueError(f'length_scale must be a positive number or "median", got {length_scale!r}')
    if not standardize:
        return float(length_scale)
    deviations = np.std(rows.toarray() if not isinstance(rows, np.ndarray) else rows, axis=0, dtype=np.float64)
    return (float(length_scale) * np.where(deviations > 0, deviations, 1.0)).tolist()


def _fourier(kernel: Any, columns: int, scale: Any, seed: int, n_jobs: int | None, like: Any) -> FeatureTransformer:
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be the name of a kernel with Fourier features, got {type(kernel).__name__}")
    rows = like.head if isinstance(like, _Batches) else like
    known: Any = kernel  # the core judges which
    features = FourierFeatures(columns, kernel=known, length_scale=scale, random_state=seed, n_jobs=n_jobs)
    return features.fit(rows[:2])


def _draw(
    x: _Batches,
    y: _Batches,
    features: FeatureTransformer | None,
    kernel: Any,
    n_components: int,
    length_scale: Any,
    standardize: bool,
    seed: int,
    n_jobs: int | None,
) -> tuple[Any, tuple[int, int]]:
    """The map, and how many first rows of both samples it was chosen from, where these are not all rows."""
    if features is not None and hasattr(check_features(features), "map_"):
        _check_width(x.head, features.n_features_in_, "X")
        return features.map_, (0, 0)
    own = features is None
    median, *fixed = _bochner.pooled_scale(x.head, y.head, x.whole, y.whole, own and standardize, seed)
    whole = x.whole and y.whole
    looked = [side.head if whole else side.head[:most] for side, most in zip((x, y), fixed, strict=True)]
    pooled = _joined(looked)
    if features is None:
        scale = _scales(median, length_scale, standardize, pooled)
        drawn = _fourier(kernel, n_components, scale, seed, n_jobs, pooled if len_of(pooled) else x)
    else:
        drawn = clone(features).set_params(random_state=seed if features.random_state is None else features.random_state)
        drawn = drawn.fit(pooled)
    return drawn.map_, (fixed[0], fixed[1])


def _gathered(source: _Batches, drawn: Any, fixed: int, n_jobs: int | None) -> _bochner.SampleSums:
    """Sums of a sample, of which the first `fixed` rows stay where they are."""
    sums = _bochner.SampleSums(drawn.output_dim, source.width)
    for batch in source:
        sums.push(drawn, batch, fixed, n_jobs)
        fixed = max(0, fixed - len_of(batch))
    return sums


def _names(features: FeatureTransformer | None, source: _Batches | None) -> list[str] | None:
    if source is not None and source.names:
        return source.names
    names = getattr(features, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _two_sample(
    x: _bochner.SampleSums,
    y: _bochner.SampleSums,
    drawn: Any,
    names: list[str] | None,
    permutations: int,
    coverage: float,
    seed: int,
    n_jobs: int | None,
) -> TestResult:
    found = _bochner.two_sample(x, y, permutations, coverage, seed, n_jobs)
    columns: dict[str, float] = {}
    try:
        shares = _bochner.differing_columns(drawn, x, y, seed, n_jobs)
    except ValueError:
        shares = np.empty(0)  # maps without derivatives
    if 0 < len(shares) <= _MOST_COLUMNS:
        called = names if names and len(names) == len(shares) else [f"x{j}" for j in range(len(shares))]
        columns = {called[j]: float(shares[j]) for j in np.argsort(-shares, kind="stable")}
    return _result(found, coverage, (x.count, y.count), _ALIKE, columns)


def _result(
    found: tuple[float, ...], coverage: float, rows: tuple[int, int], question: str, columns: dict[str, float] | None = None
) -> TestResult:
    statistic, pvalue, low, high, sampling, sketching = found
    return TestResult(statistic, pvalue, (low, high), coverage, sampling, sketching, rows, question, columns or {})
