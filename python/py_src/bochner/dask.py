"""Fits and predictions on Dask collections, spread over the workers of a cluster.

Models that are solved from sums over rows (:class:`bochner.FeatureRidge`, :class:`bochner.FeatureGPRegressor`,
:class:`bochner.OperatorRidge` and their classifiers) are fitted partition by partition: every partition becomes sums of
fixed size, sums are added up in a tree, and the model is solved where `fit` was called. It is an ordinary estimator with
the coefficients of a fit on one machine, to rounding. Features are never stored: partitions may be as large as the memory
of a worker holds.

Install with ``pip install bochner[dask]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from bochner._base import SAMPLE_ROWS, FeatureTransformer, chosen_rows
from bochner._catalogue import documented
from bochner._checks import seed_of
from bochner._distributed import begun, covariance_of, finished, fix_seed, merged, moments_of, sums_of
from bochner._models import AccumulatingClassification
from bochner._operator import _OperatorRidge

try:
    import dask.array as da
    from dask.base import compute
    from dask.delayed import Delayed, delayed
except ImportError as error:  # pragma: no cover - the extra is installed where this module is tested
    raise ImportError("bochner.dask needs Dask: pip install 'bochner[dask]'") from error

__all__ = ["fit", "predict", "transform"]

# Sums that one task adds up.
_FAN_IN = 8

_documented = partial(
    documented, X=("dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)", "Rows.")
)


@_documented
def fit(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a model to rows that are spread over a cluster.

    Work runs on the current Dask client, or on Dask's local threads where there is none. Every task uses `n_jobs` threads
    of its worker, one if `n_jobs` is None. A worker that is lost loses its sums; Dask makes them again from the partitions.

    Parameters
    ----------
    model : estimator
        A model that is solved from sums: :class:`bochner.FeatureRidge`, :class:`bochner.FeatureRidgeClassifier`,
        :class:`bochner.FeatureGPRegressor`, :class:`bochner.FeatureGPClassifier` (by the Dirichlet transform, with one
        `alpha`), :class:`bochner.OperatorRidge` or :class:`bochner.OperatorRidgeClassifier`. It is cloned, not changed.
    y : dask.array.Array, dask.dataframe.Series or dask.dataframe.DataFrame
        Targets or labels, in partitions like those of X.
    sample_weight : dask.array.Array or dask.dataframe.Series, default=None
        Weights of the rows.

    Returns
    -------
    model : estimator
        The fitted model. Parameters that depend on data are found on the rows they would be found on in `fit`; a search for
        hyperparameters sees 5,000 rows at most.

    >>> import dask.array as da
    >>> import bochner.dask
    >>> X = da.random.default_rng(0).normal(size=(4000, 3), chunks=(1000, 3))
    >>> model = FeatureRidge(FourierFeatures(200, random_state=0), alpha=1e-3)
    >>> model = bochner.dask.fit(model, X, da.sin(X[:, 0]))
    >>> model.score(X[:500].compute(), np.sin(X[:500, 0].compute())) > 0.99
    True
    """
    fitted = begun(model)
    table = Table(X, y, sample_weight)
    seed = fix_seed(fitted)
    rows, targets = table.sample(seed)
    known = {"classes": _classes(table)} if isinstance(fitted, AccumulatingClassification) else {}
    fitted._begin(*fitted._checked(rows, targets, **known))
    if isinstance(fitted, _OperatorRidge) and fitted.A == "covariance":
        fitted.kernel_["outputs"] = _covariance(fitted, table)
    template = delayed(fitted)
    parts = [delayed(sums_of)(template, *part) for part in table.parts()]
    sums = _tree(parts, merged).compute()
    return finished(fitted, sums, model)


@_documented
def predict(model: Any, X: Any, method: str = "predict") -> Any:
    """Predict for rows that are spread over a cluster.

    Parameters
    ----------
    model : estimator
        Any fitted model of this package.
    method : str, default="predict"
        What is asked of the model: ``"predict"``, ``"predict_proba"``, ``"decision_function"``, ...

    Returns
    -------
    values : dask.array.Array
        What the method returns, not yet computed.

    >>> import dask.array as da
    >>> import bochner.dask
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(250, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = bochner.dask.fit(FeatureRidgeClassifier(random_state=0), X, y)
    >>> bool((bochner.dask.predict(model, X) == y).mean().compute() > 0.9)
    True
    """
    return _blockwise(model, X, getattr(type(model), method))


@_documented
def transform(features: FeatureTransformer, X: Any) -> Any:
    """Features of rows that are spread over a cluster.

    Parameters
    ----------
    features : transformer
        Any transformer of this package. One that is not fitted is fitted to the rows it would look at in `fit`.

    Returns
    -------
    features : dask.array.Array of shape (n_samples, n_features_out)
        Features, not yet computed.

    >>> import dask.array as da
    >>> import bochner.dask
    >>> X = da.random.default_rng(0).normal(size=(1000, 5), chunks=(250, 5))
    >>> features = bochner.dask.transform(PolynomialSketch(64, random_state=0), X)
    >>> features.shape, features.chunksize
    ((1000, 64), (250, 64))
    """
    if not hasattr(features, "map_"):
        features = clone(features)
        table = Table(X)
        seed = seed_of(features.random_state)
        features.set_params(random_state=seed).fit(table.sample(seed)[0])
    return _blockwise(features, X, type(features).transform)


class Table:
    """Rows, targets and weights, all of them Dask collections, in partitions that belong together."""

    def __init__(self, X: Any, y: Any = None, weights: Any = None) -> None:
        self.rows = _partitions(X, "X")
        self.targets = None if y is None else _partitions(y, "y")
        self.weights = None if weights is None else _partitions(weights, "sample_weight")
        for name, other in (("y", self.targets), ("sample_weight", self.weights)):
            if other is not None and len(other) != len(self.rows):
                raise ValueError(f"{name} has {len(other)} partitions and X has {len(self.rows)}; rechunk them alike")
        sizes = [delayed(len)(part) for part in self.rows]
        if self.targets is not None:
            sizes += [delayed(len)(part) for part in self.targets]
        found = compute(*sizes)
        self.sizes = found[: len(self.rows)]
        if self.targets is not None and self.sizes != found[len(self.rows) :]:
            raise ValueError("X and y have partitions of different lengths; rechunk them alike")

    def parts(self) -> Iterable[tuple[Delayed, Delayed | None, Delayed | None]]:
        """Rows, targets and weights of every partition that has rows."""
        nothing = [None] * len(self.rows)
        together = zip(self.rows, self.targets or nothing, self.weights or nothing, self.sizes, strict=True)
        return [(rows, targets, weights) for rows, targets, weights, size in together if size]

    def sample(self, seed: int) -> tuple[Any, Any]:
        """The rows on which `fit` would find what depends on data, with their targets."""
        total = sum(self.sizes)
        if total == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        chosen = chosen_rows(total, SAMPLE_ROWS, seed)
        starts = np.cumsum((0, *self.sizes[:-1]))
        places = np.split(chosen, np.searchsorted(chosen, starts[1:]))
        nothing = [None] * len(self.rows)
        whole = zip(self.rows, self.targets or nothing, places, starts, strict=True)
        parts = compute(*(delayed(_rows_at)(rows, targets, at - start) for rows, targets, at, start in whole if len(at)))
        rows, targets = zip(*parts, strict=True)
        return _together(rows), None if self.targets is None else _together(targets)


def _together(parts: Sequence[Any]) -> Any:
    """Parts of a table one below the other, as a table where they are tables."""
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return np.concatenate(parts)


def _rows_at(rows: Any, targets: Any, places: NDArray[Any]) -> tuple[Any, Any]:
    return _safe_indexing(rows, places), None if targets is None else _safe_indexing(targets, places)


def _partitions(collection: Any, name: str) -> list[Delayed]:
    if isinstance(collection, da.Array):
        whole = collection.rechunk({1: -1}) if collection.ndim == 2 else collection
        return list(whole.to_delayed().ravel())
    if hasattr(collection, "to_delayed") and hasattr(collection, "map_partitions"):
        return list(collection.to_delayed())
    raise TypeError(f"{name} must be a Dask array or dataframe, got {type(collection).__name__}")


def _tree(parts: list[Delayed], reduce: Callable[[list[Any]], Any]) -> Delayed:
    """All parts reduced to one, a few at a time."""
    while len(parts) > 1:
        groups = [parts[start : start + _FAN_IN] for start in range(0, len(parts), _FAN_IN)]
        parts = [group[0] if len(group) == 1 else delayed(reduce)(group) for group in groups]
    return parts[0]


def _classes(table: Table) -> NDArray[Any]:
    found = [delayed(np.unique)(targets) for _, targets, _ in table.parts()]
    return _tree(found, lambda parts: np.unique(np.concatenate(parts))).compute()


def _covariance(model: Any, table: Table) -> list[list[float]]:
    """The covariance of all targets, from moments of the partitions."""
    template = delayed(model)
    parts = [delayed(moments_of)(template, targets, weights) for _, targets, weights in table.parts()]
    moments = _tree(parts, sum).compute()
    return covariance_of(moments)


def _blockwise(model: BaseEstimator, X: Any, method: Callable[..., Any]) -> Any:
    """A method of a fitted model on every partition."""
    parts = _partitions(X, "X")
    array = isinstance(X, da.Array)
    lengths = X.chunks[0] if array else (np.nan,) * len(parts)
    shown = np.asarray(method(model, np.ones((1, X.shape[1]), dtype=X.dtype) if array else X._meta_nonempty.iloc[:1]))
    shared = delayed(model)
    blocks = [
        da.from_delayed(delayed(_apply)(method, shared, part), (length, *shown.shape[1:]), dtype=shown.dtype)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def _apply(method: Callable[..., Any], model: Any, rows: Any) -> NDArray[Any]:
    if len(rows) == 0:
        shown = np.asarray(method(model, np.ones((1, model.n_features_in_))))
        return shown[:0]
    return np.asarray(method(model, rows))
