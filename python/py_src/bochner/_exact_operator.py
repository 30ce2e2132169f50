"""Exact regression with matrix-valued kernels: the reference for :class:`bochner.OperatorRidge`."""

from __future__ import annotations

import json
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bochner import _signatures
from bochner._bochner import ExactOperatorModel
from bochner._checks import plain
from bochner._models import DENSE, Regression
from bochner.kernels import Decomposable, Gaussian, OperatorKernel


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

    _row_checks = DENSE

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets."""
        rows, targets = self._checked(X, y)
        kernel = self.kernel
        if kernel is None:
            kernel = Decomposable(np.eye(targets.shape[1]), Gaussian())
        if not isinstance(kernel, OperatorKernel):
            raise TypeError(f"kernel must be an operator-valued kernel of bochner.kernels, got {type(kernel).__name__}")
        arguments = (json.dumps(kernel._spec()), rows, targets, plain("alpha", self.alpha))
        self.model_ = self._learn(ExactOperatorModel.fit, rows, *arguments)
        return self

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """ndarray of shape (n_samples, n_targets): Coefficients of the kernel at the rows."""
        return self._model().dual
