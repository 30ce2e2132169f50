"""Exact regression with matrix-valued kernels: the reference for :class:`bochner.OperatorRidge`."""

from __future__ import annotations

import json
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bochner._bochner import ExactOperatorModel
from bochner._checks import explained, plain
from bochner._models import Regression
from bochner._progress import progress
from bochner.kernels import Decomposable, Gaussian, OperatorKernel


class OperatorRidge(Regression):
    """Ridge regression with a matrix-valued kernel and without features, for few rows.

    Solves ``(K + alpha I) c = y`` for the block matrix of all pairs of rows; there is no intercept.

    Parameters
    ----------
    kernel : operator-valued kernel, default=None
        One of :class:`bochner.kernels.Decomposable`, :class:`bochner.kernels.CurlFree`,
        :class:`bochner.kernels.DivFree` and :class:`bochner.kernels.Helmholtz`; None is a Gaussian kernel of length
        scale 1 for outputs that are not related.
    alpha : float, default=1.0
        Added to the diagonal.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples, n_targets)
        Coefficients of the kernel at the rows.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

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

    _row_checks = {"accept_sparse": False, "dtype": np.float64}

    def __init__(
        self,
        kernel: OperatorKernel | None = None,
        *,
        alpha: float = 1.0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, targets = self._targets(X, y)
        kernel = self.kernel
        if kernel is None:
            kernel = Decomposable(np.eye(targets.shape[1]), Gaussian())
        if not isinstance(kernel, OperatorKernel):
            raise TypeError(f"kernel must be an operator-valued kernel of bochner.kernels, got {type(kernel).__name__}")
        spec, alpha = json.dumps(kernel._spec()), plain("alpha", self.alpha)
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = ExactOperatorModel.fit(spec, rows, targets, alpha, n_jobs=self.n_jobs, progress=report)
        return self

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients of the kernel at the rows."""
        return self._model().dual
