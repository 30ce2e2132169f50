"""Exact references: the models that features approximate, for as many rows as memory allows.

Kernels are those of :mod:`bochner.kernels`. Everything is computed in float64.
"""

from __future__ import annotations

import json
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from bochner import _signatures
from bochner._checks import seed_of
from bochner._models import DENSE, Classification, Model, Probable, Process, Regression
from bochner.kernels import Decomposable, Gaussian, Kernel, OperatorKernel

__all__ = ["GPClassifier", "GPRegressor", "KernelRidge", "KernelSVC", "OperatorRidge"]


class _Exact(Model):
    _target_dtype = np.float64

    kernel: Kernel | None
    model_: Any

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets, or labels, of which a single one is predicted always."""
        rows, targets = self._checked(X, y)
        kernel = Gaussian() if self.kernel is None else self.kernel
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be one of bochner.kernels, got {type(kernel).__name__}")
        return self._fit(json.dumps(kernel._spec(rows.shape[1])), rows, targets)

    def _fit(self, kernel: str, rows: Any, targets: NDArray[Any]) -> Self:
        # As many again for every matrix that is factorised, or step that multiplies.
        self.model_ = self._fitted(kernel, *self._wide(rows, targets), None)
        return self

    @staticmethod
    def _wide(*arrays: Any) -> list[Any]:
        return [array.astype(np.float64, copy=False) for array in arrays]


class KernelRidge(_signatures.ExactKernelRidgeModel, _Exact, Regression):
    """Kernel ridge regression, ``(K + alpha) c = y``: what :class:`bochner.FeatureRidge` without a constant tends to.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> KernelRidge(alpha=1e-3).fit(X, y).score(X, y) > 0.999
    True
    """

    _kind = "exact_kernel_ridge"

    def _plan(self) -> str:
        return json.dumps(self._plain("alpha", "memory_budget"))


class GPRegressor(_signatures.ExactGpRegressorModel, _Exact, Process):
    """Gaussian-process regression with an exact kernel: what :class:`bochner.FeatureGPRegressor` approximates.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import GPRegressor
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> mean, std = GPRegressor(noise=1e-3).fit(X, np.sin(X[:, 0])).predict([[3.0], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.01 and std[1] > 10 * std[0])
    True
    """

    _kind = "exact_gp_regressor"

    def _plan(self) -> str:
        return json.dumps(self._plain("noise", "signal", "normalize_y"))


class GPClassifier(_signatures.ExactGpClassifierModel, _Exact, Probable):
    """Gaussian-process classification with an exact kernel: what :class:`bochner.FeatureGPClassifier` approximates.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import GPClassifier
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> GPClassifier(random_state=0).fit(X, y).predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    _kind = "exact_gp_classifier"

    def _fit(self, kernel: str, rows: Any, targets: NDArray[Any]) -> Self:
        self.seed_ = seed_of(self.random_state)
        return super()._fit(kernel, rows, targets)

    def _plan(self) -> str:
        return json.dumps(self._plain("alpha", "signal", "n_draws"))


class KernelSVC(_signatures.KernelSvmModel, _Exact, Classification):
    """Kernel support vector machine with an exact kernel: what :class:`bochner.FeatureSVC` approximates.

    One class against another, by steps in two variables of the dual problem, as libsvm; each pair of classes has one
    vote, and the first of the classes with most votes wins.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.exact import KernelSVC
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> KernelSVC(C=10.0).fit(X, y).predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    _kind = "kernel_svm"

    def _plan(self) -> str:
        return json.dumps(self._plain("C", "tol", "max_iter", "memory_budget"))

    def _fit(self, kernel: str, rows: Any, targets: NDArray[Any]) -> Self:
        self.model_ = self._fitted(kernel, *self._wide(rows, targets), None, total=None, unit="steps")
        if not all(report["converged"] for report in self._reports()):
            warnings.warn(
                f"no convergence after {self.n_iter_} steps; raise max_iter or tol", ConvergenceWarning, stacklevel=3
            )
        return self

    def _reports(self) -> list[dict[str, Any]]:
        reports: list[dict[str, Any]] = json.loads(self._model().reports)
        return reports

    @property
    def support_(self) -> NDArray[np.intp]:
        """ndarray of shape (n_support,): Numbers of the rows that support a plane."""
        return np.array(self._model().support, dtype=np.intp)

    @property
    def support_vectors_(self) -> NDArray[np.float64]:
        """ndarray of shape (n_support, n_features): These rows."""
        return self._model().support_vectors

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """ndarray of shape (n_support, n_pairs): Their coefficients, positive for the first class of a pair; pairs are (0, 1),
        (0, 2), ..., (1, 2), ...
        """
        return self._model().coefficients

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """ndarray of shape (n_pairs,): The constants of the pairs."""
        return np.array([report["intercept"] for report in self._reports()])

    @property
    def n_iter_(self) -> int:
        """int: Steps of the pair with most."""
        return max([1, *(report["steps"] for report in self._reports())])

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Votes of the pairs, and by how much they were won.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes the distance, up to scale, from the plane, positive for the second. For more, votes plus a
            fraction below one half that grows with the distances.
        """
        values = self._ask("decide", X)
        if len(self.classes_) <= 2:
            return -values[:, 0] if values.shape[1] else np.zeros(len(values))
        votes = np.zeros((len(values), len(self.classes_)))
        sums = np.zeros_like(votes)
        for (first, second), value in zip(self._model().pairs, values.T, strict=True):
            votes[:, first] += value > 0
            votes[:, second] += value <= 0
            sums[:, first] += value
            sums[:, second] -= value
        return votes + sums / (3 * (np.abs(sums) + 1))


class OperatorRidge(_signatures.ExactOperatorRidgeModel, Regression):
    """Ridge regression with a matrix-valued kernel and without features, for few rows.

    Solves ``(K + alpha I) c = y`` for the block matrix of all pairs of rows; there is no intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import exact
    >>> from bochner.kernels import CurlFree
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.c_[np.cos(X[:, 0]) * np.cos(X[:, 1]), -np.sin(X[:, 0]) * np.sin(X[:, 1])]
    >>> exact.OperatorRidge(CurlFree(), alpha=1e-3).fit(X, y).score(X, y) > 0.999
    True
    """

    _kind = "exact_operator_ridge"
    _row_checks = DENSE

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets."""
        rows, targets = self._checked(X, y)
        kernel = self.kernel
        if kernel is None:
            kernel = Decomposable(np.eye(targets.shape[1]), Gaussian())
        if not isinstance(kernel, OperatorKernel):
            raise TypeError(f"kernel must be an operator-valued kernel of bochner.kernels, got {type(kernel).__name__}")
        self.model_ = self._fitted(json.dumps(kernel._spec()), rows, targets, None)
        return self

    def _plan(self) -> str:
        return json.dumps(self._plain("alpha"))

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """ndarray of shape (n_samples, n_targets): Coefficients of the kernel at the rows."""
        return self._model().coefficients
