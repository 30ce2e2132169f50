"""Search over parameters of features and penalties, with features shared between penalties."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from bochner import _bochner
from bochner._catalogue import documented
from bochner._checks import RandomState, plain, seed_of
from bochner._features import FourierFeatures
from bochner._progress import progress
from bochner._ridge import FeatureRidge, FeatureRidgeClassifier


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Parameters
    ----------
    model : estimator
        The model with the best parameters, fitted to all rows.
    params : list of dict
        All combinations, as `set_params` of the model takes them.
    losses : ndarray of shape (n_combinations, n_parts)
        Mean squared errors, or shares of wrong labels, on every part that was held out.
    """

    model: Any
    params: list[dict[str, Any]]
    losses: NDArray[np.float64]

    @property
    def mean_losses(self) -> NDArray[np.float64]:
        """The mean loss of every combination."""
        return self.losses.mean(axis=1)

    @property
    def best_params(self) -> dict[str, Any]:
        """The combination with the smallest mean loss, the first of equals."""
        return self.params[int(np.argmin(self.mean_losses))]

    def __str__(self) -> str:
        order = np.argsort(self.mean_losses, kind="stable")
        names = [name for name in self.params[0] if len({str(params[name]) for params in self.params}) > 1] or ["alpha"]
        lines = ["  ".join([f"{'loss':>10}", *(f"{name:>16}" for name in names)])]
        for place in order:
            cells = [f"{self.params[place][name]!s:>16}" for name in names]
            lines.append("  ".join([f"{self.mean_losses[place]:>10.4g}", *cells]))
        return "\n".join(lines)


@documented
def search(
    model: FeatureRidge | FeatureRidgeClassifier,
    X: ArrayLike,
    y: ArrayLike,
    params: Mapping[str, Any],
    *,
    alphas: Sequence[float] | None = None,
    cv: float = 5,
    n_iter: int | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = 0,
) -> SearchResult:
    """Search for parameters of the features and for a penalty, on held-out rows.

    Every combination of parameters makes its features twice, whatever the number of penalties and folds:
    :class:`sklearn.model_selection.GridSearchCV` makes them anew for each of both, and searches everything else.

    Parameters
    ----------
    model : FeatureRidge or FeatureRidgeClassifier
        The model to start from. It is cloned, not changed.
    params : dict
        Parameters of the features, each with a list of values, or for `n_iter` draws with a distribution of
        :mod:`scipy.stats`.
    alphas : sequence of float, default=None
        Penalties; None takes powers of ten from 1e-4 to 1e4.
    cv : int or float, default=5
        Number of folds, or the share of rows that is held out.
    n_iter : int, default=None
        Combinations drawn at random; None tries all of them.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the folds and of the draws.

    Returns
    -------
    result : SearchResult
        The best model, fitted to all rows, and a table of all losses; ``print(result)`` shows it.

    >>> X = np.linspace(0, 6, 300)[:, np.newaxis]
    >>> model = FeatureRidge(FourierFeatures(64, random_state=0))
    >>> found = search(model, X, np.sin(X[:, 0]), {"length_scale": [0.01, 1.0]}, alphas=[1e-3, 1e3])
    >>> found.best_params
    {'alpha': 0.001, 'features__length_scale': 1.0}
    """
    if not isinstance(model, (FeatureRidge, FeatureRidgeClassifier)):
        raise TypeError(f"model must be FeatureRidge or FeatureRidgeClassifier, got {type(model).__name__}")
    model = clone(model)
    if model.features is None:
        model.features = FourierFeatures()
    seed = seed_of(random_state)
    grid = ParameterGrid(dict(params)) if n_iter is None else ParameterSampler(
        dict(params), n_iter, random_state=seed % (1 << 32)
    )
    combinations = list(grid)
    penalties = [10.0**power for power in range(-4, 5)] if alphas is None else [float(alpha) for alpha in alphas]
    classify = isinstance(model, FeatureRidgeClassifier)
    rows, targets = model._checked(X, y)
    weights = model._weights(rows, sample_weight)
    specs = []
    for combination in combinations:
        candidate = clone(model).set_params(**{f"features__{name}": value for name, value in combination.items()})
        specs.append(json.loads(candidate._draw(rows).map_.spec))
    folds = isinstance(cv, (int, np.integer))
    plan = {
        "classify": classify,
        "folds": int(cv) if folds else None,
        "held_out": 0.0 if folds else plain("cv", cv),
        "alphas": penalties,
        "fit_intercept": plain("fit_intercept", model.fit_intercept),
        "seed": seed,
    }
    with progress(model.verbose, "search", len(specs), unit="combinations") as report:
        losses = json.loads(
            _bochner.search(
                json.dumps(specs), rows, targets, weights, json.dumps(plan), n_jobs=model.n_jobs, progress=report
            )
        )
    table = [
        {"alpha": alpha, **{f"features__{name}": value for name, value in combination.items()}}
        for combination in combinations
        for alpha in penalties
    ]
    values = np.array([part for per_alpha in losses for part in per_alpha])
    best = clone(model).set_params(**table[int(np.argmin(values.mean(axis=1)))])
    return SearchResult(best.fit(X, y, sample_weight=sample_weight), table, values)
