"""Ridge regression and classification on random features, in one pass over the rows."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

from numpy.typing import ArrayLike, NDArray

from bochner._base import FeatureTransformer
from bochner._bochner import RidgeModel, RidgeSums
from bochner._checks import RandomState, explained, plain
from bochner._models import Accumulating, AccumulatingClassification, AccumulatingRegression, FeatureModel
from bochner._progress import progress

Solver = Literal["auto", "cholesky", "dual", "cg", "sgd"]


class _FeatureRidge(FeatureModel, Accumulating):
    """What regression and classification share."""

    def _fit(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        """Fits from scratch; no sums are kept."""
        features = self._draw(rows)
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = RidgeModel.fit(
                features.map_, rows, targets, weights, self._plan(), n_jobs=self.n_jobs, progress=report
            )
        self.features_ = features
        return self

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        self.features_ = self._draw(rows)
        self.n_outputs_ = targets.shape[1]

    def _empty(self) -> RidgeSums:
        return RidgeSums(self.features_.map_, self.n_outputs_, self.dtype_.name, self._n_classes())

    def _plan(self) -> str:
        names = ("alpha", "solver", "fit_intercept", "tol", "max_iter", "memory_budget")
        plan = {name: plain(name, getattr(self, name)) for name in names}
        return json.dumps({**plan, "classes": self._n_classes()})

    def _n_classes(self) -> int | None:
        return None

    def _report(self) -> dict[str, Any]:
        return json.loads(self._model().report)

    @property
    def solver_(self) -> str:
        """Solver used."""
        return self._report()["solver"]

    @property
    def solver_reason_(self) -> str:
        """Why this solver."""
        return self._report()["reason"]

    @property
    def n_iter_(self) -> int:
        """Steps of an iterative solver; 1 otherwise."""
        return max(1, self._report()["iterations"])


class FeatureRidge(_FeatureRidge, AccumulatingRegression):
    """Ridge regression on random features: kernel ridge regression at the cost of a linear model.

    Rows stream through the feature map block by block. The matrix of all features is never made, so memory depends
    on the number of features and not on the number of rows.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
    alpha : float, default=1.0
        Penalty on the squared coefficients.
    solver : {"auto", "cholesky", "dual", "cg", "sgd"}, default="auto"
        How the equations are solved: by factorisation of the Gram matrix, or of the inner products of all rows where
        they are fewer than features; by conjugate gradients or averaged stochastic gradients on features that are
        made again in every pass, for more features than a Gram matrix could hold. ``"auto"`` picks from the numbers of
        rows and features and the memory; `solver_reason_` says why. Sums of `partial_fit` are always factorised.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalised.
    tol : float, default=None
        Relative residual at which conjugate gradients stop; None means 1e-10 in float64 and 1e-6 in float32.
    max_iter : int, default=None
        Most steps of conjugate gradients (None means 500), or passes of stochastic gradients (10).
    memory_budget : int, default=None
        Bytes a fit may take besides the rows; None makes Gram matrices of up to 20,000 features.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features, where they have none of their own.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    features_ : transformer
        The fitted feature map.
    coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Coefficients of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        The constants.
    solver_ : str
        Solver used.
    solver_reason_ : str
        Why this one.
    n_iter_ : int
        Steps of an iterative solver; 1 otherwise.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import FeatureRidge, FourierFeatures
    >>> X = np.linspace(0, 6, 200)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> model = FeatureRidge(FourierFeatures(256, random_state=0), alpha=1e-3).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        alpha: float = 1.0,
        solver: Solver = "auto",
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int | None = None,
        memory_budget: int | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def coef_(self) -> NDArray[Any]:
        """Coefficients of the features."""
        coefficients = self._model().coefficients.T
        return coefficients if self.target_shape_ else coefficients[0]

    @property
    def intercept_(self) -> Any:
        """The constants."""
        intercept = self._model().intercept
        return intercept if self.target_shape_ else intercept[0]


class FeatureRidgeClassifier(_FeatureRidge, AccumulatingClassification):
    """Classification by ridge regression on random features, one class against the rest.

    Rows stream through the feature map block by block. The matrix of all features is never made, so memory depends
    on the number of features and not on the number of rows.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
    alpha : float, default=1.0
        Penalty on the squared coefficients.
    solver : {"auto", "cholesky", "dual", "cg", "sgd"}, default="auto"
        How the equations are solved: by factorisation of the Gram matrix, or of the inner products of all rows where
        they are fewer than features; by conjugate gradients or averaged stochastic gradients on features that are
        made again in every pass, for more features than a Gram matrix could hold. ``"auto"`` picks from the numbers of
        rows and features and the memory; `solver_reason_` says why. Sums of `partial_fit` are always factorised.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalised.
    tol : float, default=None
        Relative residual at which conjugate gradients stop; None means 1e-10 in float64 and 1e-6 in float32.
    max_iter : int, default=None
        Most steps of conjugate gradients (None means 500), or passes of stochastic gradients (10).
    memory_budget : int, default=None
        Bytes a fit may take besides the rows; None makes Gram matrices of up to 20,000 features.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features, where they have none of their own.
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
        Coefficients of the features; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The constants.
    solver_ : str
        Solver used.
    solver_reason_ : str
        Why this one.
    n_iter_ : int
        Steps of an iterative solver; 1 otherwise.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> from bochner import FeatureRidgeClassifier, FourierFeatures
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> features = FourierFeatures(1024, length_scale="median", random_state=0)
    >>> model = FeatureRidgeClassifier(features, alpha=1e-3).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        alpha: float = 1.0,
        solver: Solver = "auto",
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int | None = None,
        memory_budget: int | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _n_classes(self) -> int | None:
        return len(self.classes_)

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Values whose largest decides, one column per class; for two classes one value, positive for the second.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Near +1 for a row's class and near -1 for others.
        """
        values = self._values(X)
        return values if len(self.classes_) > 2 else values[:, -1]

    @property
    def coef_(self) -> NDArray[Any]:
        """Coefficients of the features."""
        coefficients = self._model().coefficients.T
        return coefficients if len(self.classes_) > 2 else coefficients[-1:]

    @property
    def intercept_(self) -> NDArray[Any]:
        """The constants."""
        intercept = self._model().intercept
        return intercept if len(self.classes_) > 2 else intercept[-1:]
