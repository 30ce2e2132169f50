"""Kernel ridge regression and Gaussian processes with exact kernels, in float64."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from bochner import _bochner
from bochner._bochner import ExactModel
from bochner._checks import RandomState, explained, plain, seed_of
from bochner._models import Classification, Model, Probable, Regression, predict_process
from bochner.kernels import Gaussian, Kernel


class _Exact(Model):
    _kind: ClassVar[str]
    _target_dtype = np.float64

    kernel: Kernel | None
    model_: Any

    def _described(self) -> str:
        kernel = Gaussian() if self.kernel is None else self.kernel
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be one of bochner.kernels, got {type(kernel).__name__}")
        fields = {name: plain(name, value) for name, value in asdict(kernel).items()}
        return json.dumps({"kernel": kernel._name, **fields})

    def _fit(self, rows: Any, targets: NDArray[Any], plan: dict[str, Any]) -> Self:
        text = json.dumps({name: plain(name, value) for name, value in plan.items()})
        with explained(self, ("X", rows)):
            self.model_ = ExactModel.fit(
                self._kind, self._described(), rows, targets, None, text, n_jobs=self.n_jobs
            )
        return self


class KernelRidge(_Exact, Regression):
    """Kernel ridge regression, ``(K + alpha) c = y``: what :class:`bochner.FeatureRidge` without a constant tends to.

    Parameters
    ----------
    kernel : kernel, default=None
        One of :mod:`bochner.kernels`; None stands for ``Gaussian()``.
    alpha : float, default=1.0
        Penalty.
    memory_budget : int, default=None
        Bytes that may be used. Where the kernel matrix does not fit, conjugate gradients take the place of its
        factorisation; without a budget they do beyond 20,000 rows.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> KernelRidge(alpha=1e-3).fit(X, y).score(X, y) > 0.999
    True
    """

    _kind = "ridge"

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        alpha: float = 1.0,
        memory_budget: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, targets = self._targets(X, y)
        return self._fit(rows, targets, {"alpha": self.alpha, "memory_budget": self.memory_budget})


class GPRegressor(_Exact, Regression):
    """Gaussian-process regression with an exact kernel: what :class:`bochner.FeatureGPRegressor` approximates.

    Parameters
    ----------
    kernel : kernel, default=None
        One of :mod:`bochner.kernels`; None stands for ``Gaussian()``.
    noise : float, default=0.1
        Variance of the noise.
    signal : float, default=1.0
        Factor of the kernel.
    normalize_y : bool, default=True
        Whether targets are divided by their standard deviation, so that noise and signal are in units of the variance
        of the targets. Their mean is subtracted in any case.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.

    Attributes
    ----------
    log_marginal_likelihood_value_ : float
        Log marginal likelihood of the training targets.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import GPRegressor
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> mean, std = GPRegressor(noise=1e-3).fit(X, np.sin(X[:, 0])).predict([[3.0], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.01 and std[1] > 10 * std[0])
    True
    """

    _kind = "regressor"

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise: float = 0.1,
        signal: float = 1.0,
        normalize_y: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.signal = signal
        self.normalize_y = normalize_y
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, targets = self._targets(X, y)
        plan = {"noise": self.noise, "signal": self.signal, "normalize_y": self.normalize_y}
        return self._fit(rows, targets, plan)

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of the process as well; noise is not included.
        return_cov : bool, default=False
            Whether to return the covariance between all pairs of rows as well.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Means of the process.
        std : ndarray of the shape of y
            Standard deviations, if asked for.
        cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets)
            Covariances, if asked for.
        """
        if return_std and return_cov:
            raise ValueError("at most one of return_std and return_cov can be True")
        return predict_process(self, X, return_std, return_cov)

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log marginal likelihood of the training targets."""
        return self._model().log_marginal_likelihood


class GPClassifier(_Exact, Probable):
    """Gaussian-process classification with an exact kernel: what :class:`bochner.FeatureGPClassifier` approximates.

    Parameters
    ----------
    kernel : kernel, default=None
        One of :mod:`bochner.kernels`; None stands for ``Gaussian()``.
    alpha : float, default=0.01
        Concentration of the labels' Dirichlet law: small values trust labels.
    signal : float, default=None
        Factor of the kernel; None takes the variance of the transformed labels.
    n_draws : int, default=512
        Draws from the posteriors for probabilities.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import GPClassifier
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> GPClassifier(random_state=0).fit(X, y).predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    _kind = "classifier"

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        alpha: float = 0.01,
        signal: float | None = None,
        n_draws: int = 512,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.signal = signal
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, numbers = self._labels(X, y)
        plan = {
            "alpha": self.alpha,
            "signal": self.signal,
            "classes": len(self.classes_),
            "n_samples": self.n_draws,
            "seed": seed_of(self.random_state),
        }
        return self._fit(rows, numbers, plan)


class KernelSVC(_Exact, Classification):
    """Kernel support vector machine with an exact kernel: what :class:`bochner.FeatureSVC` approximates.

    One class against another, by steps in two variables of the dual problem, as libsvm; each pair of classes has one
    vote, and the first of the classes with most votes wins.

    Parameters
    ----------
    kernel : kernel, default=None
        One of :mod:`bochner.kernels`; None stands for ``Gaussian()``.
    C : float, default=1.0
        Price of a violated margin.
    tol : float, default=1e-3
        Violation of the optimality conditions at which a pair is solved.
    max_iter : int, default=None
        Most steps for a pair of classes; None means ten million.
    memory_budget : int, default=None
        Bytes of kernel values kept for a pair of classes; None means 1 GiB.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    support_ : ndarray of shape (n_support,)
        Numbers of the rows that support a plane.
    support_vectors_ : ndarray of shape (n_support, n_features)
        These rows.
    dual_coef_ : ndarray of shape (n_support, n_pairs)
        Their coefficients, positive for the first class of a pair; pairs are (0, 1), (0, 2), ..., (1, 2), ...
    intercept_ : ndarray of shape (n_pairs,)
        The constants of the pairs.
    n_iter_ : int
        Steps of the pair with most.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import KernelSVC
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> KernelSVC(C=10.0).fit(X, y).predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int | None = None,
        memory_budget: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels. A single one is predicted always.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, numbers = self._labels(X, y)
        described = self._described()
        names = ("C", "tol", "max_iter", "memory_budget")
        plan = json.dumps({name: plain(name, getattr(self, name)) for name in names})
        with explained(self, ("X", rows)):
            support, coefficients, intercepts, reports = _bochner.kernel_svm(
                described, rows, numbers[:, 0].astype(int).tolist(), plan, n_jobs=self.n_jobs
            )
        self.support_ = np.array(support, dtype=int)
        vectors = rows[self.support_]
        self.support_vectors_ = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors)
        self.dual_coef_, self.intercept_ = coefficients, np.array(intercepts)
        told = json.loads(reports)
        self.n_iter_ = max([1, *(report["steps"] for report in told)])
        if not all(report["converged"] for report in told):
            warnings.warn(
                f"no convergence after {self.n_iter_} steps; raise max_iter or tol", ConvergenceWarning, stacklevel=2
            )
        self.model_ = _bochner.Kernel(described)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = self._described()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(vars(self).get("model_"), str):
            self.model_ = _bochner.Kernel(self.model_)

    def _pairs(self, X: ArrayLike) -> NDArray[np.float64]:
        """Decision values, one column per pair of classes, positive for its first."""
        check_is_fitted(self)
        rows = self._rows(X, self.model_).astype(np.float64, copy=False)
        values = np.zeros((rows.shape[0], len(self.intercept_)))
        vectors = np.ascontiguousarray(self.support_vectors_, dtype=np.float64)
        with explained(self, ("X", rows)):
            # A few rows at a time: the kernel between all rows and all support vectors may not fit.
            for batch in gen_batches(rows.shape[0], 4096):
                kernel = self.model_.matrix(rows[batch], vectors, n_jobs=self.n_jobs)
                values[batch] = kernel @ self.dual_coef_ + self.intercept_
        return values

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Votes of the pairs, and by how much they were won.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the distance, up to scale, from the plane, positive for the second. For more, votes plus a
            fraction below one half that grows with the distances.
        """
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        values = self._pairs(X)
        if len(self.classes_) <= 2:
            return -values if values.shape[1] else np.zeros((len(values), 1))
        votes = np.zeros((len(values), len(self.classes_)))
        sums = np.zeros_like(votes)
        for column, (first, second) in enumerate(combinations(range(len(self.classes_)), 2)):
            won = values[:, column] > 0
            votes[:, first] += won
            votes[:, second] += ~won
            sums[:, first] += values[:, column]
            sums[:, second] -= values[:, column]
        return votes + sums / (3 * (np.abs(sums) + 1))

    def _winners(self, values: NDArray[Any]) -> NDArray[Any]:
        # Votes alone decide, and the first of the classes with most of them.
        return super()._winners(np.floor(values + 0.5) if values.shape[1] > 1 else values)
