"""Linear support vector machines on random features."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from bochner import _signatures
from bochner._checks import seed_of
from bochner._models import Deciding, FeatureModel, Linear


class FeatureSVC(_signatures.SvmModel, FeatureModel, Linear, Deciding):
    """Linear support vector machine on random features: a kernel machine at the cost of a linear one.

    One class against the rest, by coordinate descent in the dual; with the objective of liblinear and
    :class:`sklearn.svm.LinearSVC`, of which the duality gap is known.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> features = FourierFeatures(1024, length_scale="median", random_state=0)
    >>> model = FeatureSVC(features, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    _learned = {"n_iter_": ("int", "Passes over the rows, of the problem with most.")}

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and labels; a single label is predicted always. Weights of rows multiply C."""
        self._fit(X, y, sample_weight)
        self.n_iter_ = int(self._of_reports(lambda report: report["epochs"]).max())
        if not self._of_reports(lambda report: report["converged"]).all():
            warnings.warn(
                f"no convergence after {self.max_iter} passes: the duality gap is {self.duality_gap_.max():.1e}, "
                f"tol is {self.tol:.1e}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        super()._prepare(rows, targets)
        # A generator is asked once more; the same integer serves features and order of visits.
        self.seed_ = seed_of(self.random_state)

    def _of_reports(self, value: Callable[[dict[str, Any]], Any]) -> NDArray[Any]:
        return np.array([value(report) for report in json.loads(self._model().learned("reports"))])

    @property
    def objective_(self) -> NDArray[np.float64]:
        """ndarray of shape (1,) or (n_classes,): Objective of every problem."""
        return self._of_reports(lambda report: report["primal"])

    @property
    def duality_gap_(self) -> NDArray[np.float64]:
        """ndarray of shape (1,) or (n_classes,): Duality gap of every problem, relative to its objective: no solution is better by
        more.
        """
        return self._of_reports(lambda report: (report["primal"] - report["dual"]) / max(abs(report["primal"]), 1e-300))


class NearestMeanClassifier(_signatures.NearestMeanModel, FeatureModel, Deciding):
    """Classification by the nearest mean of a class in the space of features: one pass, and no equations.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> features = FourierFeatures(1024, length_scale="median", random_state=0)
    >>> NearestMeanClassifier(features).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.8
    True
    """

    def _margin(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[:, 1] - values[:, 0]
