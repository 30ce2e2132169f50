"""What fits on several machines share: a model begun in one place, sums made in many, and the model of all of them."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bochner._checks import seed_of
from bochner._models import Accumulating, AccumulatingClassification


def begun(model: Any) -> Any:
    """A clone that is to be fitted, of a model that can be."""
    if not isinstance(model, Accumulating):
        raise TypeError(f"{type(model).__name__} is not solved from sums over rows: it needs all of them in one place")
    return clone(model)


def finished(fitted: Any, sums: Any, model: Any) -> Any:
    """The model of all sums, with the seeds that it was given."""
    if fitted.keep_sums:
        fitted.sums_, fitted.added_ = sums, object()
        fitted._model()
    else:
        fitted.model_ = sums.solve(fitted._plan(), n_jobs=fitted.n_jobs)
    for name in ("features", "random_state"):
        if hasattr(model, name):
            setattr(fitted, name, getattr(clone(model), name))
    return fitted


def covariance_of(moments: NDArray[np.float64]) -> list[list[float]]:
    """The covariance of codes, from sums of `moments_of`."""
    moments = moments / moments[0, 0]
    return (moments[1:, 1:] - np.outer(moments[0, 1:], moments[0, 1:])).tolist()


def fix_seed(model: Any) -> int:
    """Replaces generators by the seed they give now, so that it is the same in every process."""
    features = getattr(model, "features", None)
    own = None if features is None or features.random_state is None else seed_of(features.random_state)
    if features is not None:
        features.random_state = own
    model.random_state = seed_of(model.random_state)
    return model.random_state if own is None else own


def sums_of(template: Any, rows: Any, targets: Any, weights: Any) -> Any:
    """The sums over a partition."""
    # A worker runs several tasks with one template: what checking rows changes belongs to a copy.
    model = copy(template)
    rows, targets = model._checked(rows, targets, first=False)
    weights = model._weights(rows, weights)
    sums = model._empty()
    sums.push(rows, targets, weights, n_jobs=model.n_jobs or 1)
    return sums


def merged(parts: list[Any]) -> Any:
    """One after the other, into fresh sums: inputs may be needed again if a worker is lost."""
    total = copy(parts[0])
    for part in parts[1:]:
        total.merge(part)
    return total


def moments_of(model: Any, targets: Any, weights: Any) -> NDArray[np.float64]:
    """Weighted sums of products of codes, with a column of ones in front of them."""
    targets = np.asarray(targets)
    if isinstance(model, AccumulatingClassification):
        targets = np.searchsorted(model.classes_, targets.ravel())
    codes = model._codes(targets.reshape(len(targets), -1))
    codes = np.column_stack([np.ones(len(codes)), codes]).astype(np.float64)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    return (codes * weights[:, np.newaxis]).T @ codes
