"""Kernel ridge regression and Gaussian processes with exact kernels, in float64."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from bochner._bochner import ExactModel, KernelSvmModel
from bochner._checks import RandomState, explained, plain, seed_of
from bochner._models import Classification, Model, Probable, Regression, predict_process
from bochner._progress import progress
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
        kernel = self._described()
        # As many again for every matrix that is factorised, or step that multiplies.
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = ExactModel.fit(
                self._kind, kernel, rows, targets, None, text, n_jobs=self.n_jobs, progress=report
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
    verbose : int, default=0
        Whether to show progress.

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
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.verbose = verbose

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
    verbose : int, default=0
        Whether to show progress.

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
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.signal = signal
        self.normalize_y = normalize_y
        self.n_jobs = n_jobs
        self.verbose = verbose

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
    verbose : int, default=0
        Whether to show progress.

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
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.signal = signal
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
    verbose : int, default=0
        Whether to show progress.

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
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        names = ("C", "tol", "max_iter", "memory_budget")
        plan = json.dumps({name: plain(name, getattr(self, name)) for name in names})
        kernel, labels = self._described(), numbers[:, 0].astype(int).tolist()
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, None, unit="steps") as report:
            self.model_ = KernelSvmModel.fit(kernel, rows, labels, plan, n_jobs=self.n_jobs, progress=report)
        if not all(report["converged"] for report in self._reports()):
            warnings.warn(
                f"no convergence after {self.n_iter_} steps; raise max_iter or tol", ConvergenceWarning, stacklevel=2
            )
        return self

    def _reports(self) -> list[dict[str, Any]]:
        reports: list[dict[str, Any]] = json.loads(self._model().reports)
        return reports

    @property
    def support_(self) -> NDArray[np.intp]:
        """Numbers of the rows that support a plane."""
        return np.array(self._model().support, dtype=np.intp)

    @property
    def support_vectors_(self) -> NDArray[np.float64]:
        """The rows that support a plane."""
        return self._model().support_vectors

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients of the support vectors."""
        return self._model().coefficients

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """The constants of the pairs."""
        return np.array([report["intercept"] for report in self._reports()])

    @property
    def n_iter_(self) -> int:
        """Steps of the pair with most."""
        return max([1, *(report["steps"] for report in self._reports())])

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
        model = self._model()
        rows = self._rows(X, model)
        with explained(self, ("X", rows)):
            values = model.decide(rows, n_jobs=self.n_jobs)
        if len(self.classes_) <= 2:
            return -values[:, 0] if values.shape[1] else np.zeros(len(values))
        votes = np.zeros((len(values), len(self.classes_)))
        sums = np.zeros_like(votes)
        for (first, second), value in zip(model.pairs, values.T, strict=True):
            votes[:, first] += value > 0
            votes[:, second] += value <= 0
            sums[:, first] += value
            sums[:, second] -= value
        return votes + sums / (3 * (np.abs(sums) + 1))

    def _winners(self, values: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[values]
