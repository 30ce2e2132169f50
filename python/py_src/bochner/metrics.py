"""How far an estimate is from what it estimates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_array

from bochner import _bochner
from bochner._base import FeatureTransformer, check_features
from bochner._catalogue import documented
from bochner._checks import same_dtype
from bochner.kernels import Kernel, Polynomial, check_kernel, rows_of

__all__ = ["gaussian_kl", "kid", "mean_negative_log_likelihood", "mmd2", "relative_frobenius_error"]


class Distance(float):
    """An estimated distance, which is a number, with its variances over draws of rows and over draws of features."""

    sampling_variance: float
    sketching_variance: float

    def __new__(cls, value: float, sampling_variance: float = math.nan, sketching_variance: float = math.nan) -> Distance:
        self = super().__new__(cls, value)
        self.sampling_variance, self.sketching_variance = sampling_variance, sketching_variance
        return self

    @property
    def standard_error(self) -> float:
        """Root of the sum of both variances."""
        return math.sqrt(self.sampling_variance + self.sketching_variance)


@documented
def relative_frobenius_error(K: ArrayLike, K_hat: ArrayLike) -> float:
    """Distance of an estimated matrix from the exact one, ``|K - K_hat| / |K|`` in Frobenius norms.

    Parameters
    ----------
    K : array-like of shape (n, m)
        Exact matrix.
    K_hat : array-like of shape (n, m)
        Its estimate; of complex numbers the real part counts.

    Returns
    -------
    error : float
        0 where nothing differs.

    >>> relative_frobenius_error([[3.0, 0.0], [0.0, 4.0]], [[3.0, 1.0], [2.0, 2.0]])
    0.6
    """
    exact = check_array(K, dtype=np.float64, input_name="K")
    estimate = check_array(np.asarray(K_hat).real, dtype=np.float64, input_name="K_hat")
    return _bochner.relative_frobenius_error(exact, estimate)


@documented
def gaussian_kl(mean_approx: ArrayLike, var_approx: ArrayLike, mean_exact: ArrayLike, var_exact: ArrayLike) -> float:
    """Kullback-Leibler divergence of approximate normal predictions from exact ones.

    Parameters
    ----------
    mean_approx : array-like of shape (n_samples,) or (n_samples, n_targets)
        Means of the approximation.
    var_approx : array-like of the same shape
        Its variances.
    mean_exact : array-like of the same shape
        Means of the exact predictions.
    var_exact : array-like of the same shape
        Their variances.

    Returns
    -------
    divergence : float
        Sum over samples, mean over targets; 0 where all agree.

    >>> gaussian_kl([1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0])
    0.5
    """
    return _bochner.gaussian_kl(
        _columns(mean_approx, "mean_approx"),
        _columns(var_approx, "var_approx"),
        _columns(mean_exact, "mean_exact"),
        _columns(var_exact, "var_exact"),
    )


@documented
def mean_negative_log_likelihood(y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> float:
    """Mean negative log-likelihood of targets under normal predictions.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Targets.
    mean : array-like of shape (n_samples,)
        Predicted means.
    var : array-like of shape (n_samples,)
        Predicted variances.

    Returns
    -------
    loss : float
        Smaller is better.

    >>> round(mean_negative_log_likelihood([0.0], [0.0], [1.0]), 4)
    0.9189
    """
    return _bochner.mean_negative_log_likelihood(_vector(y, "y"), _vector(mean, "mean"), _vector(var, "var"))


@documented
def mmd2(X: ArrayLike, Y: ArrayLike, kernel: Kernel) -> float:
    """Unbiased estimate of the squared maximum mean discrepancy of two samples.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_features)
        One sample.
    Y : array-like of shape (n_samples_Y, n_features)
        The other.
    kernel : Kernel
        One of :mod:`bochner.kernels`.

    Returns
    -------
    discrepancy : float
        Near 0, and as often negative as positive, for samples of one distribution.

    >>> mmd2([[0.0], [0.0]], [[0.0], [0.0]], Gaussian())
    0.0
    """
    check_kernel(kernel)
    x, y = same_dtype(rows_of(X, "X"), rows_of(Y, "Y"))
    return _bochner.mmd2(kernel._exact(x.shape[1]), x, y)


@documented
def kid(X: ArrayLike, Y: ArrayLike, features: FeatureTransformer | None = None) -> Distance:
    """Kernel inception distance: the squared discrepancy under the kernel ``(<x, y> / n_features + 1)^3``.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_features)
        Network features of one set of images.
    Y : array-like of shape (n_samples_Y, n_features)
        Those of the other.
    features : transformer, default=None
        Random features to estimate it with, in time proportional to the number of rows; their own kernel takes the
        place of the cubic one. Without, it is computed from all pairs of rows.

    Returns
    -------
    distance : float
        Near 0, and as often negative as positive, for samples of one distribution. Its attribute `standard_error` has two
        parts: the roots of `sampling_variance`, over draws of the rows, and of `sketching_variance`, over draws of the
        features. The first is infinite with fewer than four rows.

    See Also
    --------
    bochner.stats.kid_test : The same with a p-value and an interval.

    >>> kid([[0.0], [0.0]], [[1.0], [1.0]])
    7.0
    """
    x, y = same_dtype(rows_of(X, "X"), rows_of(Y, "Y"))
    if features is None:
        kernel = Polynomial(3, 1.0 / x.shape[1], 1.0)
        value = mmd2(x, y, kernel)
        found = _bochner.two_sample_exact(kernel._exact(x.shape[1]), x, y, 1, 0.5, 0)
        return Distance(value, *found[4:])
    drawn = clone(check_features(features)).fit(x)
    sums = [_bochner.SampleSums(drawn.map_.output_dim, x.shape[1]) for _ in range(2)]
    for own, rows in zip(sums, (x, y), strict=True):
        own.push(drawn.map_, rows, n_jobs=drawn.n_jobs)
    found = _bochner.two_sample(sums[0], sums[1], 1, 0.5, 0, drawn.n_jobs)
    return Distance(found[0], *found[4:])


def _vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    return check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)


def _columns(values: ArrayLike, name: str) -> Any:
    array = _vector(values, name)
    return array.reshape(len(array), -1)
