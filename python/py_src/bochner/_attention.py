"""Features of the exponential kernel, and attention made of them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from bochner import _bochner
from bochner._base import FeatureTransformer
from bochner._checks import RandomState


class PositiveFeatures(FeatureTransformer):
    r"""Random features of the exponential kernel ``exp(<x, y> / length_scale^2)``.

    Exponentials of projections on normal directions: an unbiased estimate made of positive numbers (Choromanski et al.
    2021), accurate where the kernel is small.

    Parameters
    ----------
    n_components : int, default=1024
        Budget of output columns; one fewer is used where they come in pairs and the budget is odd.
    length_scale : float, default=1.0
        Divides the rows.
    orthogonal : bool, default=True
        Whether directions are orthogonal in blocks, which never adds variance to positive features.
    kind : {"positive", "hyperbolic", "trigonometric"}, default="positive"
        One exponential per direction; those of both signs, which vary half as much where the kernel is small; or cosines
        and sines, accurate where the kernel is large but of both signs.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same features in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Features do not depend on it.

    Attributes
    ----------
    spec_ : dict
        Full description of the map; with it any door of the library draws the same map.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import PositiveFeatures
    >>> X = np.random.default_rng(0).normal(size=(5, 3)) / 4
    >>> features = PositiveFeatures(8192, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool((Z > 0).all()), bool(np.allclose(Z @ Z.T, features.kernel(X), rtol=0.2))
    (True, True)
    """

    _map_name = "positive"

    def __init__(
        self,
        n_components: int = 1024,
        *,
        length_scale: float = 1.0,
        orthogonal: bool = True,
        kind: Literal["positive", "hyperbolic", "trigonometric"] = "positive",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.length_scale = length_scale
        self.orthogonal = orthogonal
        self.kind = kind
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        if self.n_components == 1:
            # No room for a pair.
            description["kind"] = "positive"
        return description


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


def linear_attention(
    q: ArrayLike, k: ArrayLike, v: ArrayLike, features: FeatureTransformer, causal: bool = False
) -> NDArray[Any]:
    r"""Attention through random features, in time and memory linear in the length of the sequence.

    Every output is a mean of the rows of `v` with weights proportional to ``<phi(q / d^(1/4)), phi(k / d^(1/4))>``. With
    features of the exponential kernel at length scale 1 it estimates :func:`softmax_attention`; positive ones make
    every output a mean indeed, others may give weights that add up to a negative number, which is an error.

    Parameters
    ----------
    q : array-like of shape (..., n_queries, d)
        Queries; axes in front, such as heads, are attended to one by one.
    k : array-like of shape (..., n_keys, d)
        Keys.
    v : array-like of shape (..., n_keys, n_values)
        Values.
    features : FeatureTransformer
        Features such as :class:`PositiveFeatures`. Fitted ones are used as they are; otherwise a clone is fitted to the
        scaled queries and keys.
    causal : bool, default=False
        Whether query i sees only keys up to i.

    Returns
    -------
    out : ndarray of shape (..., n_queries, n_values)
        Float32 if all of q, k and v are, float64 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import PositiveFeatures, linear_attention, softmax_attention
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 100, 4))
    >>> out = linear_attention(q, k, v, PositiveFeatures(4096, random_state=0), causal=True)
    >>> bool(np.abs(out - softmax_attention(q, k, v, causal=True)).max() < 0.3)
    True
    """
    if not isinstance(features, FeatureTransformer):
        raise TypeError(f"features must be a feature transformer, got {type(features).__name__}")
    q, k, v = _sequences(q, k, v)
    d = q.shape[-1]
    if not hasattr(features, "map_"):
        sample = np.concatenate([a.reshape(-1, a.shape[-1])[:5000] for a in (q, k)]) / d**0.25
        features = clone(features).fit(sample)
    drawn, n_jobs = features.map_, features.n_jobs
    out = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    for index in np.ndindex(*q.shape[:-2]):
        out[index] = _bochner.linear_attention(drawn, q[index], k[index], v[index], causal, n_jobs=n_jobs)
    return out


def softmax_attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, causal: bool = False) -> NDArray[Any]:
    r"""Exact attention: means of the rows of `v` with weights proportional to ``exp(<q, k> / sqrt(d))``.

    The reference for :func:`linear_attention`. Time grows with the square of the length, memory does not.

    Parameters
    ----------
    q : array-like of shape (..., n_queries, d)
        Queries; axes in front, such as heads, are attended to one by one.
    k : array-like of shape (..., n_keys, d)
        Keys.
    v : array-like of shape (..., n_keys, n_values)
        Values.
    causal : bool, default=False
        Whether query i sees only keys up to i.

    Returns
    -------
    out : ndarray of shape (..., n_queries, n_values)
        Float32 if all of q, k and v are, float64 otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import softmax_attention
    >>> softmax_attention(np.zeros((1, 2)), np.ones((3, 2)), np.arange(3.0)[:, None])
    array([[1.]])
    """
    q, k, v = _sequences(q, k, v)
    out = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    for index in np.ndindex(*q.shape[:-2]):
        out[index] = _bochner.softmax_attention(q[index], k[index], v[index], causal)
    return out
