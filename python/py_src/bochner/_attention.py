"""Attention made of features of the exponential kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from bochner import _bochner
from bochner._base import FeatureTransformer, check_features
from bochner._catalogue import documented


def _sequences(q: ArrayLike, k: ArrayLike, v: ArrayLike) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The three arrays in one dtype, with the same axes in front of the last two."""
    arrays = [np.asarray(array) for array in (q, k, v)]
    dtype = np.float32 if all(array.dtype == np.float32 for array in arrays) else np.float64
    q, k, v = (array.astype(dtype, copy=False) for array in arrays)
    if min(q.ndim, k.ndim, v.ndim) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(
            "q, k and v must have shapes (..., n_queries, d), (..., n_keys, d) and (..., n_keys, n_values) with the same "
            f"leading axes, got {q.shape}, {k.shape} and {v.shape}"
        )
    return q, k, v


def _attend(
    map: _bochner.Map | None, q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], causal: bool, n_jobs: int | None = None
) -> NDArray[Any]:
    out = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    for index in np.ndindex(*q.shape[:-2]):
        out[index] = _bochner.attention(map, q[index], k[index], v[index], causal, n_jobs=n_jobs)
    return out


@documented
def softmax_attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, causal: bool = False) -> NDArray[Any]:
    r"""Exact attention: means of the rows of `v` with weights proportional to ``exp(<q, k> / sqrt(d))``.

    The reference for :func:`linear_attention`, which returns arrays of the same shape. Time grows with the square of the length, memory does not.

    >>> softmax_attention(np.zeros((1, 2)), np.ones((3, 2)), np.arange(3.0)[:, None])
    array([[1.]])
    """
    return _attend(None, *_sequences(q, k, v), causal)


@documented
def linear_attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, features: FeatureTransformer, causal: bool = False
) -> NDArray[Any]:
    r"""Attention through random features, in time and memory linear in the length of the sequence.

    Every output is a mean of the rows of `v` with weights proportional to ``<phi(q / d^(1/4)), phi(k / d^(1/4))>``. With
    features of the exponential kernel at length scale 1 it estimates :func:`softmax_attention`; positive ones make
    every output a mean indeed, others may give weights that add up to a negative number, which is an error.

    Parameters
    ----------
    features : FeatureTransformer
        Features such as :class:`PositiveFeatures`. Fitted ones are used as they are; otherwise a clone is fitted to the
        scaled queries and keys.

    Returns
    -------
    out : ndarray of shape (..., n_queries, n_values)
        Float32 if all of q, k and v are, float64 otherwise.

    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 100, 4))
    >>> out = linear_attention(q, k, v, PositiveFeatures(4096, random_state=0), causal=True)
    >>> bool(np.abs(out - softmax_attention(q, k, v, causal=True)).max() < 0.3)
    True
    """
    check_features(features)
    q, k, v = _sequences(q, k, v)
    if not hasattr(features, "map_"):
        sample = np.concatenate([a.reshape(-1, a.shape[-1])[:5000] for a in (q, k)]) / q.shape[-1] ** 0.25
        features = clone(features).fit(sample)
    return _attend(features.map_, q, k, v, causal, features.n_jobs)
