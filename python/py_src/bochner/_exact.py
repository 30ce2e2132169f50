"""Kernel ridge regression and Gaussian processes with exact kernels, in float64."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from bochner._bochner import ExactModel
from bochner._checks import RandomState, check_rows, explained, forget, plain, seed_of
from bochner.kernels import Gaussian, Kernel


class _Exact(BaseEstimator):
    _kind: ClassVar[str]

    kernel: Kernel | None
    n_jobs: int | None

    def _fit(self, rows: Any, targets: NDArray[Any], plan: dict[str, Any]) -> None:
        kernel = Gaussian() if self.kernel is None else self.kernel
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be one of bochner.kernels, got {type(kernel).__name__}")
        fields = {name: plain(name, value) for name, value in asdict(kernel).items()}
        described = json.dumps({"kernel": kernel._name, **fields})
        text = json.dumps({name: plain(name, value) for name, value in plan.items()})
        with explained(self, ("X", rows)):
            self.model_ = ExactModel.fit(self._kind, described, rows, targets, None, text, n_jobs=self.n_jobs)

    def _rows(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        return check_rows(self, X, reset=False)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _ExactRegression(MultiOutputMixin, RegressorMixin, _Exact):
    def _checked(self, X: ArrayLike, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
        forget(self)
        rows, targets = check_rows(self, X, y=y, reset=True, multi_output=True, y_numeric=True)
        self.target_shape_ = targets.shape[1:]
        return rows, np.ascontiguousarray(targets.reshape(len(targets), -1), dtype=np.float64)

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(len(values), *self.target_shape_)


class KernelRidge(_ExactRegression):
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
        rows, targets = self._checked(X, y)
        self._fit(rows, targets, {"alpha": self.alpha, "memory_budget": self.memory_budget})
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        rows = self._rows(X)
        with explained(self, ("X", rows)):
            return self._shaped(self.model_.predict(rows, n_jobs=self.n_jobs))


class GPRegressor(_ExactRegression):
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
        rows, targets = self._checked(X, y)
        self._fit(rows, targets, {"noise": self.noise, "signal": self.signal, "normalize_y": self.normalize_y})
        return self

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
        rows = self._rows(X)
        with explained(self, ("X", rows)):
            if return_std:
                mean, variance = self.model_.predict_with_variance(rows, n_jobs=self.n_jobs)
                return self._shaped(mean), np.sqrt(self._shaped(variance))
            mean = self._shaped(self.model_.predict(rows, n_jobs=self.n_jobs))
            if not return_cov:
                return mean
            targets = len(self.model_.observation_variances)
            matrices = [self.model_.covariance(rows, target, n_jobs=self.n_jobs) for target in range(targets)]
            return mean, np.stack(matrices, axis=-1) if self.target_shape_ else matrices[0]

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log marginal likelihood of the training targets."""
        check_is_fitted(self)
        return self.model_.log_marginal_likelihood


class GPClassifier(ClassifierMixin, _Exact):
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
        forget(self)
        rows, labels = check_rows(self, X, y=y, reset=True)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        plan = {
            "alpha": self.alpha,
            "signal": self.signal,
            "classes": len(self.classes_),
            "n_samples": self.n_draws,
            "seed": seed_of(self.random_state),
        }
        self._fit(rows, np.ascontiguousarray(numbers.reshape(-1, 1), dtype=np.float64), plan)
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        rows = self._rows(X)
        with explained(self, ("X", rows)):
            return self.model_.probabilities(rows, n_jobs=self.n_jobs)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
