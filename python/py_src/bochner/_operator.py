"""Regression of several outputs that are one function: related outputs, gradients of potentials, flows without sources."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from bochner import _bochner, _signatures
from bochner._base import sample
from bochner._bochner import Map
from bochner._catalogue import documented
from bochner._checks import count, plain, seed_of
from bochner._models import AccumulatingClassification, Deciding, Differentiable, Regression, Solved
from bochner.kernels import OperatorKernel, check_kernel


@documented
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

    >>> codes = simplex_codes(3)
    >>> (codes @ codes.T).round(12) + 0.0
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    return _bochner.simplex_codes(count("n_classes", n_classes))


@documented
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

    >>> X, y = lagged_rows([[1.0], [2.0], [3.0], [4.0]], n_lags=2)
    >>> X
    array([[2., 1.],
           [3., 2.]])
    """
    n_lags = count("n_lags", n_lags)
    return _bochner.lagged_rows(check_array(series, dtype=np.float64, input_name="series"), n_lags)


class _OperatorRidge(Differentiable, Solved):
    """What regression and classification share."""

    _apart = ("kernel", "length_scale", "A")
    _of_sums = ("kernel", "length_scale", "A", "n_components", "random_state", "coding")

    kernel: Any
    length_scale: Any
    A: Any
    n_components: int
    random_state: Any

    def _kernel(self, X: Any, seed: int) -> Any:
        if isinstance(self.kernel, OperatorKernel):
            return check_kernel(self.kernel, OperatorKernel)._spec()
        length_scale = self.length_scale
        if isinstance(length_scale, str):
            spec = json.dumps({"map": "fourier", "seed": seed, "length_scale": length_scale})
            length_scale = json.loads(Map.resolve(spec, sample(X, seed), n_jobs=self.n_jobs))["length_scale"]
        length_scale = plain("length_scale", length_scale)
        kernel = self.kernel
        if kernel == "div_free":
            message = 'kernel="div_free" is called "divergence_free" now; the old name goes in version 0.3'
            warnings.warn(message, FutureWarning, stacklevel=5)
            kernel = "divergence_free"
        if kernel in ("curl_free", "divergence_free"):
            return {"kernel": kernel, "length_scale": length_scale}
        if kernel != "decomposable":
            raise ValueError(
                'kernel must be "decomposable", "curl_free", "divergence_free" or an operator-valued kernel of '
                f"bochner.kernels, got {kernel!r}"
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

    def _checks(self, first: bool = True) -> dict[str, Any]:
        return {"ensure_min_samples": 2} if first and isinstance(self.length_scale, str) else {}

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        """Finds the kernel for rows like these, with a seed."""
        self.seed_ = seed_of(self.random_state)
        self.kernel_ = self._kernel(rows, self.seed_)

    def _settle(self, targets: NDArray[Any]) -> None:
        super()._settle(targets)
        if self.kernel_.get("outputs") == "covariance":
            codes = self._codes(targets).astype(np.float64)
            self.kernel_["outputs"] = np.atleast_2d(np.cov(codes, rowvar=False, bias=True)).tolist()

    def _on(self) -> str:
        return json.dumps(self.kernel_)

    def _codes(self, targets: NDArray[Any]) -> NDArray[Any]:
        """What is regressed."""
        return targets

    def _plan(self, **others: Any) -> str:
        # A cosine comes with its sine.
        return super()._plan(n_components=2 if self.n_components == 1 else self.n_components, **others)

    @property
    def A_(self) -> NDArray[np.float64] | None:
        """ndarray of shape (n_targets, n_targets) or None: The output matrix of a decomposable kernel."""
        matrix = self._described()["kernel"].get("matrix")
        return None if matrix is None else np.array(matrix)


class OperatorRidge(_signatures.OperatorRidgeModel, _OperatorRidge, Regression):
    """Ridge regression of several outputs that are one function, on random features of a matrix-valued kernel.

    Outputs may be related by a matrix (``"decomposable"``), be the gradient of a potential (``"curl_free"``) or a flow
    without sources (``"divergence_free"``; both have as many outputs as inputs). Rows are read in one pass: memory depends on
    the number of features and not on the number of rows.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.c_[np.cos(X[:, 0]) * np.cos(X[:, 1]), -np.sin(X[:, 0]) * np.sin(X[:, 1])]
    >>> model = OperatorRidge("curl_free", alpha=1e-4, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    >>> J = model.jacobian(X)
    >>> bool(abs(J - J.transpose(0, 2, 1)).max() < 1e-8)
    True
    """

    def jacobian(self, X: ArrayLike) -> NDArray[np.float64]:
        """Derivatives of the fitted function, exactly.

        Returns
        -------
        J : ndarray of shape (n_samples, n_targets, n_features)
            Derivatives of targets by features: symmetric for curl-free and of trace 0 for divergence-free kernels.
        """
        return self._model().ask("jacobian", check_array(X, dtype=np.float64, input_name="X"), n_jobs=self.n_jobs)


class OperatorRidgeClassifier(
    _signatures.OperatorRidgeClassifierModel, _OperatorRidge, Deciding, AccumulatingClassification
):
    """Classification by regression of codes, with a decomposable kernel.

    A class is a corner of a regular simplex: one output less than there are classes, none of them preferred. The class
    whose corner is nearest to the prediction wins.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OperatorRidgeClassifier(length_scale="median", alpha=1e-3, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    kernel = "decomposable"

    def _checked(self, X: ArrayLike, y: ArrayLike, **options: Any) -> tuple[Any, NDArray[Any]]:
        rows, numbers = super()._checked(X, y, **options)
        if len(self.classes_) < 2:
            raise ValueError(f"at least 2 classes are needed to tell them apart, got 1 class: {self.classes_[0]}")
        return rows, numbers

    def _corners(self) -> NDArray[np.float64]:
        """The codes, one row per class."""
        classes = len(self.classes_)
        return np.eye(classes) if self.coding == "one_hot" else simplex_codes(classes)

    def _codes(self, targets: NDArray[Any]) -> NDArray[Any]:
        return self._corners()[targets[:, 0].astype(int)]

    def _margin(self, values: NDArray[Any]) -> NDArray[Any]:
        return 0.5 * (values[:, 1] - values[:, 0])
