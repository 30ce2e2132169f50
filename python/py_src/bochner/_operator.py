"""Regression of several outputs that are one function: related outputs, gradients of potentials, flows without sources."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from bochner import _bochner
from bochner._base import _sample
from bochner._bochner import Map, OperatorModel, OperatorSums
from bochner._checks import RandomState, explained, plain, seed_of
from bochner._models import Accumulating, AccumulatingClassification, AccumulatingRegression
from bochner._progress import progress
from bochner.kernels import OperatorKernel

Solver = Literal["auto", "stein", "cholesky", "cg", "lbfgs", "sgd"]


def simplex_codes(n_classes: int) -> NDArray[np.float64]:
    """Codes of classes as corners of a regular simplex: unit rows with equal angles that sum to 0.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    codes : ndarray of shape (n_classes, n_classes - 1)
        One row per class; inner products are -1 / (n_classes - 1).

    Examples
    --------
    >>> from bochner import simplex_codes
    >>> codes = simplex_codes(3)
    >>> (codes @ codes.T).round(12) + 0.0
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")
    return _bochner.simplex_codes(n_classes)


def lagged_rows(series: ArrayLike, n_lags: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows and targets for autoregression: the states before each time, the latest first, and the state at that time.

    Parameters
    ----------
    series : array-like of shape (n_times, n_outputs)
        A vector time series.
    n_lags : int, default=1
        States before each target.

    Returns
    -------
    X : ndarray of shape (n_times - n_lags, n_lags * n_outputs)
        Rows.
    y : ndarray of shape (n_times - n_lags, n_outputs)
        Targets.

    Examples
    --------
    >>> from bochner import lagged_rows
    >>> X, y = lagged_rows([[1.0], [2.0], [3.0], [4.0]], n_lags=2)
    >>> X
    array([[2., 1.],
           [3., 2.]])
    """
    if n_lags < 1:
        raise ValueError(f"n_lags must be at least 1, got {n_lags}")
    return _bochner.lagged_rows(check_array(series, dtype=np.float64, input_name="series"), n_lags)


class _OperatorRidge(Accumulating):
    """What regression and classification share."""

    kernel: Any
    length_scale: Any
    A: Any
    n_components: int
    alpha: float
    solver: str
    projection: str
    fit_intercept: bool
    random_state: Any
    n_jobs: int | None
    verbose: int

    def _kernel(self, X: Any, seed: int) -> Any:
        if isinstance(self.kernel, OperatorKernel):
            return self.kernel._spec()
        length_scale = self.length_scale
        if isinstance(length_scale, str):
            spec = json.dumps({"map": "fourier", "seed": seed, "length_scale": length_scale})
            length_scale = json.loads(Map.resolve(spec, _sample(X, seed), n_jobs=self.n_jobs))["length_scale"]
        length_scale = plain("length_scale", length_scale)
        if self.kernel in ("curl_free", "div_free"):
            return {"kernel": self.kernel, "length_scale": length_scale}
        if self.kernel != "decomposable":
            raise ValueError(
                'kernel must be "decomposable", "curl_free", "div_free" or an operator-valued kernel of '
                f"bochner.kernels, got {self.kernel!r}"
            )
        outputs = "identity" if self.A is None else self.A
        if not isinstance(outputs, str):
            outputs = check_array(outputs, dtype=np.float64, input_name="A").tolist()
        elif outputs not in ("identity", "covariance", "learned"):
            raise ValueError(f'A must be a matrix, "covariance", "learned" or None, got {outputs!r}')
        # Checked by the core on its own, so that its complaint is about A.
        base = {"kernel": "gaussian", "length_scale": length_scale}
        if not isinstance(outputs, str):
            _bochner.OperatorKernel(json.dumps({"kernel": "decomposable", "base": base, "matrix": outputs}))
        return {"base": base, "outputs": outputs}

    def _checks(self) -> dict[str, Any]:
        return {"ensure_min_samples": 2 if isinstance(self.length_scale, str) else 1}

    def _describe(self, rows: Any) -> None:
        """Finds the kernel for rows like these, with a seed."""
        self.seed_ = seed_of(self.random_state)
        self.kernel_ = self._kernel(rows, self.seed_)

    def _fit(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        self._describe(rows)
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = OperatorModel.fit(
                rows, targets, weights, self._plan(), n_jobs=self.n_jobs, progress=report
            )
        return self

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        self._describe(rows)
        if self.kernel_.get("outputs") == "covariance":
            self.kernel_["outputs"] = self._covariance(targets)
        self.n_outputs_ = self._codes(targets).shape[1]

    def _empty(self) -> OperatorSums:
        return OperatorSums(self._plan(), self.n_features_in_, self.n_outputs_, self.dtype_.name)

    def _codes(self, targets: NDArray[Any]) -> NDArray[Any]:
        """What is regressed."""
        return targets

    def _covariance(self, targets: NDArray[Any], weights: NDArray[Any] | None = None) -> list[list[float]]:
        codes = self._codes(targets).astype(np.float64)
        return np.atleast_2d(np.cov(codes, rowvar=False, bias=True, aweights=weights)).tolist()

    def _plan(self) -> str:
        names = ("n_components", "projection", "alpha", "fit_intercept", "solver")
        plan = {name: plain(name, getattr(self, name)) for name in names}
        if plan["n_components"] == 1:
            # A cosine comes with its sine.
            plan["n_components"] = 2
        return json.dumps({**plan, "kernel": self.kernel_, "seed": self.seed_, **self._coded()})

    def _coded(self) -> dict[str, Any]:
        """How many classes there are, and the code they have."""
        return {"classes": None, "coding": None}

    @property
    def solver_(self) -> str:
        """Solver used."""
        return json.loads(self._model().report)["solver"]

    @property
    def solver_reason_(self) -> str:
        """Why this solver."""
        return json.loads(self._model().report)["reason"]

    @property
    def A_(self) -> NDArray[np.float64] | None:
        """The output matrix of a decomposable kernel."""
        matrix = json.loads(self._model().spec)["kernel"].get("matrix")
        return None if matrix is None else np.array(matrix)


class OperatorRidge(_OperatorRidge, AccumulatingRegression):
    """Ridge regression of several outputs that are one function, on random features of a matrix-valued kernel.

    Outputs may be related by a matrix (``"decomposable"``), be the gradient of a potential (``"curl_free"``) or a flow
    without sources (``"div_free"``; both have as many outputs as inputs). Rows are read in one pass: memory depends on
    the number of features and not on the number of rows.

    Parameters
    ----------
    kernel : {"decomposable", "curl_free", "div_free"} or kernel, default="decomposable"
        Kernel of the functions, or one of :class:`bochner.kernels.Decomposable`, :class:`bochner.kernels.CurlFree`,
        :class:`bochner.kernels.DivFree` and :class:`bochner.kernels.Helmholtz`, which have their own parameters.
    length_scale : float or "median", default=1.0
        Distance over which the Gaussian kernel underneath falls off, or the median distance between rows.
    A : array-like of shape (n_targets, n_targets), "covariance", "learned" or None, default=None
        How the outputs of a decomposable kernel are related: a positive semi-definite matrix, the covariance of the
        targets, a matrix learned together with the regression, or not at all.
    n_components : int, default=1024
        Cosines and sines in all.
    alpha : float, default=1.0
        Penalty on the squared coefficients.
    solver : {"auto", "stein", "cholesky", "cg", "lbfgs", "sgd"}, default="auto"
        How the equations are solved: in closed form for decomposable kernels, by factorisation, conjugate gradients,
        quasi-Newton steps or stochastic gradients.
    projection : {"auto", "gaussian", "orthogonal", "sorf"}, default="auto"
        How frequencies are drawn.
    fit_intercept : bool, default=True
        Whether to add a constant vector that is not penalised.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    A_ : ndarray of shape (n_targets, n_targets) or None
        The output matrix of a decomposable kernel.
    coef_ : ndarray of shape (n_targets, n_components)
        Coefficients of the cosines, then of the sines.
    intercept_ : ndarray of shape (n_targets,)
        The constants.
    solver_ : str
        Solver used.
    solver_reason_ : str
        Why this one.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import OperatorRidge
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.c_[np.cos(X[:, 0]) * np.cos(X[:, 1]), -np.sin(X[:, 0]) * np.sin(X[:, 1])]
    >>> model = OperatorRidge("curl_free", alpha=1e-4, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    >>> J = model.jacobian(X)
    >>> bool(abs(J - J.transpose(0, 2, 1)).max() < 1e-8)
    True
    """

    def __init__(
        self,
        kernel: str | OperatorKernel = "decomposable",
        *,
        length_scale: float | str = 1.0,
        A: ArrayLike | str | None = None,
        n_components: int = 1024,
        alpha: float = 1.0,
        solver: Solver = "auto",
        projection: str = "auto",
        fit_intercept: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.A = A
        self.n_components = n_components
        self.alpha = alpha
        self.solver = solver
        self.projection = projection
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def jacobian(self, X: ArrayLike) -> NDArray[np.float64]:
        """Derivatives of the fitted function, exactly.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        J : ndarray of shape (n_samples, n_targets, n_features)
            Derivatives of targets by features: symmetric for curl-free and of trace 0 for divergence-free kernels.
        """
        model = self._model()
        rows = check_array(X, dtype=np.float64, input_name="X")
        return model.jacobian(rows, n_jobs=self.n_jobs)

    @property
    def coef_(self) -> NDArray[Any]:
        """Coefficients of the cosines, then of the sines."""
        return self._model().coefficients.T

    @property
    def intercept_(self) -> NDArray[Any]:
        """The constants."""
        return self._model().intercept


class OperatorRidgeClassifier(_OperatorRidge, AccumulatingClassification):
    """Classification by regression of codes, with a decomposable kernel.

    A class is a corner of a regular simplex: one output less than there are classes, none of them preferred. The class
    whose corner is nearest to the prediction wins.

    Parameters
    ----------
    length_scale : float or "median", default=1.0
        Distance over which the Gaussian kernel underneath falls off, or the median distance between rows.
    A : array-like, "covariance", "learned" or None, default=None
        How the columns of the code are related, as in :class:`OperatorRidge`.
    coding : {"simplex", "one_hot"}, default="simplex"
        What stands for a class.
    n_components : int, default=1024
        Cosines and sines in all.
    alpha : float, default=1.0
        Penalty on the squared coefficients.
    solver : {"auto", "stein", "cholesky", "cg", "lbfgs", "sgd"}, default="auto"
        How the equations are solved.
    projection : {"auto", "gaussian", "orthogonal", "sorf"}, default="auto"
        How frequencies are drawn.
    fit_intercept : bool, default=True
        Whether to add a constant vector that is not penalised.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    A_ : ndarray or None
        The output matrix.
    solver_ : str
        Solver used.
    solver_reason_ : str
        Why this one.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> from bochner import OperatorRidgeClassifier
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OperatorRidgeClassifier(length_scale="median", alpha=1e-3, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    kernel = "decomposable"

    def __init__(
        self,
        *,
        length_scale: float | str = 1.0,
        A: ArrayLike | str | None = None,
        coding: Literal["simplex", "one_hot"] = "simplex",
        n_components: int = 1024,
        alpha: float = 1.0,
        solver: Solver = "auto",
        projection: str = "auto",
        fit_intercept: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.length_scale = length_scale
        self.A = A
        self.coding = coding
        self.n_components = n_components
        self.alpha = alpha
        self.solver = solver
        self.projection = projection
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _labels(self, X: ArrayLike, y: ArrayLike, **options: Any) -> tuple[Any, NDArray[Any]]:
        if self.coding not in ("simplex", "one_hot"):
            raise ValueError(f'coding must be "simplex" or "one_hot", got {self.coding!r}')
        rows, numbers = super()._labels(X, y, **options)
        if len(self.classes_) < 2:
            raise ValueError(f"at least 2 classes are needed to tell them apart, got 1 class: {self.classes_[0]}")
        return rows, numbers

    def _coded(self) -> dict[str, Any]:
        return {"classes": len(self.classes_), "coding": self.coding}

    def _corners(self) -> NDArray[np.float64]:
        """The codes, one row per class."""
        count = len(self.classes_)
        return np.eye(count) if self.coding == "one_hot" else simplex_codes(count)

    def _codes(self, targets: NDArray[Any]) -> NDArray[Any]:
        return self._corners()[targets[:, 0].astype(int)]

    def _scores(self, X: ArrayLike) -> NDArray[Any]:
        values = self._values(X)
        if self.coding == "one_hot":
            return values
        return values @ simplex_codes(len(self.classes_)).T.astype(values.dtype)

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Values whose largest decides, one column per class; for two classes one value, positive for the second.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Inner products of predictions and codes.
        """
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else 0.5 * (scores[:, 1] - scores[:, 0])
