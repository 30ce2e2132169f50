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
from bochner._models import DENSE, DOUBLE, Classification, Model, Probable, Process, Regression, learned
from bochner._processes import Searched
from bochner.kernels import Decomposable, Gaussian, OperatorKernel, check_kernel

__all__ = ["GPClassifier", "GPRegressor", "KernelRidge", "KernelSVC", "OperatorRidge"]


class _Exact(Model):
    _row_checks = DOUBLE

    kernel: Any
    model_: Any

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets, or labels, of which a single one is predicted always."""
        return self._fit(X, y)

    def _on(self) -> str:
        kernel = Gaussian() if self.kernel is None else check_kernel(self.kernel)
        return json.dumps(kernel._spec(self.n_features_in_))


class _Process(Searched, _Exact):
    _learned = {
        "kernel_": ("dict", "Description of the kernel used."),
        "length_scale_": ("float, list of float or list of lists", "What divides rows before the kernel, or the metric."),
        "n_iter_": ("int", "Evaluations of the likelihood; 1 without a search."),
    }

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        self.kernel_, self.length_scale_, self.n_iter_ = json.loads(super()._on()), self.length_scale, 1
        found = self._search(self._kind, super()._on(), rows, targets, self._plan())
        if found is None:
            return
        self.kernel_, self.length_scale_ = found["kernel"], found["length_scale"]
        self.n_iter_ = max(1, int(found["evaluations"]))
        self._keep(found)

    def _keep(self, found: dict[str, Any]) -> None:
        self.signal_ = found["signal"]

    def _on(self) -> str:
        return json.dumps(self.kernel_)

    def _plan(self, **others: Any) -> str:
        names = [name for name in ("noise", "signal", "length_scale") if hasattr(self, f"{name}_")]
        return super()._plan(**{name: getattr(self, f"{name}_") for name in names} | others)


class KernelRidge(_signatures.ExactKernelRidgeModel, _Exact, Regression):
    """Kernel ridge regression, ``(K + alpha) c = y``: what :class:`bochner.FeatureRidge` without a constant tends to.

    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> KernelRidge(alpha=1e-3).fit(X, y).score(X, y) > 0.999
    True
    """


class GPRegressor(_signatures.ExactGpRegressorModel, _Process, Process):
    """Gaussian-process regression with an exact kernel: what :class:`bochner.FeatureGPRegressor` approximates.

    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> mean, std = GPRegressor(noise=1e-3).fit(X, np.sin(X[:, 0])).predict([[3.0], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.01 and std[1] > 10 * std[0])
    True
    """

    _learned = {
        "noise_": ("float", "Variance of the noise used."),
        "signal_": ("float", "Factor of the kernel used."),
    }

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        self.noise_, self.signal_ = self.noise, self.signal
        super()._prepare(rows, targets)

    def _keep(self, found: dict[str, Any]) -> None:
        self.noise_, self.signal_ = found["noise"], found["signal"]


class GPClassifier(_signatures.ExactGpClassifierModel, _Process, Probable):
    """Gaussian-process classification with an exact kernel: what :class:`bochner.FeatureGPClassifier` approximates.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> GPClassifier(random_state=0).fit(X, y).predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        self.seed_ = seed_of(self.random_state)
        super()._prepare(rows, targets)


class KernelSVC(_signatures.KernelSvmModel, _Exact, Classification):
    """Kernel support vector machine with an exact kernel: what :class:`bochner.FeatureSVC` approximates.

    One class against another, by steps in two variables of the dual problem, as libsvm; each pair of classes has one
    vote, and the first of the classes with most votes wins.

    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> KernelSVC(C=10.0).fit(X, y).predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    _unit = "steps"

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        self._fit(X, y)
        if not all(report["converged"] for report in self._reports()):
            warnings.warn(
                f"no convergence after {self.n_iter_} steps; raise max_iter or tol", ConvergenceWarning, stacklevel=2
            )
        return self

    def _reports(self) -> list[dict[str, Any]]:
        return json.loads(self._model().learned("reports"))

    @property
    def support_(self) -> NDArray[np.intp]:
        """ndarray of shape (n_support,): Numbers of the rows that support a plane."""
        return np.array(self._model().learned("support"), dtype=np.intp)

    support_vectors_ = learned("support_vectors", "ndarray of shape (n_support, n_features)", "These rows.")
    dual_coef_ = learned(
        "coefficients",
        "ndarray of shape (n_support, n_pairs)",
        "Their coefficients, positive for the first class of a pair; pairs are (0, 1), (0, 2), ..., (1, 2), ...",
    )

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
        for (first, second), value in zip(self._model().learned("pairs"), values.T, strict=True):
            votes[:, first] += value > 0
            votes[:, second] += value <= 0
            sums[:, first] += value
            sums[:, second] -= value
        return votes + sums / (3 * (np.abs(sums) + 1))


class OperatorRidge(_signatures.ExactOperatorRidgeModel, _Exact, Regression):
    """Ridge regression with a matrix-valued kernel and without features, for few rows.

    Solves ``(K + alpha I) c = y`` for the block matrix of all pairs of rows; there is no intercept.

    >>> from bochner import exact
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.c_[np.cos(X[:, 0]) * np.cos(X[:, 1]), -np.sin(X[:, 0]) * np.sin(X[:, 1])]
    >>> exact.OperatorRidge(CurlFree(), alpha=1e-3).fit(X, y).score(X, y) > 0.999
    True
    """

    _row_checks = DENSE
    dual_coef_ = learned(
        "coefficients", "ndarray of shape (n_samples, n_targets)", "Coefficients of the kernel at the rows."
    )

    def _on(self) -> str:
        outputs = self.target_shape_[0] if self.target_shape_ else 1
        kernel = Decomposable(np.eye(outputs)) if self.kernel is None else check_kernel(self.kernel, OperatorKernel)
        return json.dumps(kernel._spec())
