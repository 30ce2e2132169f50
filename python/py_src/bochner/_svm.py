"""Linear support vector machines on random features."""

from __future__ import annotations

import json
import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from bochner._base import FeatureTransformer
from bochner._bochner import SvmModel
from bochner._checks import RandomState, explained, plain, seed_of
from bochner._models import Classification, FeatureModel
from bochner._progress import progress


class FeatureSVC(FeatureModel, Classification):
    """Linear support vector machine on random features: a kernel machine at the cost of a linear one.

    One class against the rest, by coordinate descent in the dual; with the objective of liblinear and
    :class:`sklearn.svm.LinearSVC`, of which the duality gap is known.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
    C : float, default=1.0
        Price of a violated margin: the loss summed over rows is multiplied by it.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        What a violated margin costs.
    tol : float, default=1e-3
        Duality gap, relative to the objective, at which a problem is solved.
    max_iter : int, default=1000
        Most passes over the rows.
    fit_intercept : bool, default=True
        Whether to add a constant column, whose weight is penalised like the others.
    intercept_scaling : float, default=1.0
        Value of that column.
    memory_budget : int, default=None
        Bytes for features of all rows; beyond it they are made again, block by block, in every pass. None means 4 GiB.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the order of visits, and of the features where they have none of their own.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    features_ : transformer
        The fitted feature map.
    coef_ : ndarray of shape (1, n_features_out) or (n_classes, n_features_out)
        Weights of the features; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The constants.
    n_iter_ : int
        Passes over the rows, of the problem with most.
    objective_ : ndarray of shape (1,) or (n_classes,)
        Objective of every problem.
    duality_gap_ : ndarray of shape (1,) or (n_classes,)
        Duality gap of every problem, relative to its objective: no solution is better by more.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> from bochner import FeatureSVC, FourierFeatures
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> features = FourierFeatures(1024, length_scale="median", random_state=0)
    >>> model = FeatureSVC(features, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        C: float = 1.0,
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        tol: float = 1e-3,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        memory_budget: int | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.C = C
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels: numbers, strings or booleans. A single one is predicted always.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the rows, which multiply C.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, numbers = self._labels(X, y)
        weights = self._weights(rows, sample_weight)
        features = self._draw(rows)
        # A generator is asked once more; the same integer serves features and order of visits.
        plan = self._svm_plan(seed_of(self.random_state))
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = SvmModel.fit(
                features.map_, rows, numbers, weights, plan, n_jobs=self.n_jobs, progress=report
            )
        self.features_ = features
        reports = json.loads(self.model_.reports)
        self.n_iter_ = max(report["epochs"] for report in reports)
        if not all(report["converged"] for report in reports):
            warnings.warn(
                f"no convergence after {self.max_iter} passes: the duality gap is {self.duality_gap_.max():.1e}, "
                f"tol is {self.tol:.1e}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _svm_plan(self, seed: int) -> str:
        names = ("C", "loss", "tol", "max_iter", "fit_intercept", "intercept_scaling", "memory_budget")
        plan = {name: plain(name, getattr(self, name)) for name in names}
        return json.dumps({**plan, "classes": len(self.classes_), "seed": seed})

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Signed distances, up to scale, from the separating planes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            One column per class, whose largest decides; for two classes one value, positive for the second.
        """
        values = self._values(X)
        return values if len(self.classes_) > 2 else values[:, 0]

    def _values(self, X: ArrayLike) -> NDArray[Any]:
        model = self._model()
        rows = self._rows(X, model)
        with explained(self, ("X", rows)):
            return model.decide(rows, n_jobs=self.n_jobs)

    def _of_reports(self, value: Any) -> NDArray[np.float64]:
        return np.array([value(report) for report in json.loads(self._model().reports)])

    @property
    def objective_(self) -> NDArray[np.float64]:
        """Objective of every problem."""
        return self._of_reports(lambda report: report["primal"])

    @property
    def duality_gap_(self) -> NDArray[np.float64]:
        """Duality gap of every problem, relative to its objective."""
        return self._of_reports(lambda report: (report["primal"] - report["dual"]) / max(abs(report["primal"]), 1e-300))

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of the features."""
        return self._model().coefficients.T

    @property
    def intercept_(self) -> NDArray[Any]:
        """The constants."""
        return self._model().intercept
