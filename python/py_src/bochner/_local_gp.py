"""Gaussian processes around the centroids of clusters."""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bochner import _signatures
from bochner._bochner import LocalGpModel
from bochner._checks import seed_of
from bochner._models import DENSE, Regression


class LocalGPRegressor(_signatures.LocalGpModel, Regression):
    r"""Gaussian process regression with the Gaussian kernel, for length scales short against the spread of the rows.

    Maclaurin features estimate the kernel well near their origin only. The kernel does not change when all rows are
    shifted: rows are clustered, the features are taken around every centroid, and a row is predicted around the
    centroid nearest to it (Wacker 2022, section 5.5). Rows many length scales away from all centroids are out of
    reach: mean and standard deviation fall to 0 there.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import LocalGPRegressor
    >>> x = np.linspace(-6, 6, 120)
    >>> model = LocalGPRegressor(11, length_scale=0.6, random_state=0).fit(x[:, None], np.sin(2 * x))
    >>> mean, std = model.predict([[4.03]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(8.06)) < 0.05 and std[0] < 0.1)
    True
    """

    _row_checks = DENSE
    _learned = {
        "centroids_": ("ndarray of shape (n_centroids, n_features)", "The centroids, the mean of the rows first."),
        "spec_": ("dict", "Full description of the features."),
    }

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets."""
        rows, targets = self._checked(X, y, ensure_min_samples=2)
        mean = targets.mean(axis=0) if self.normalize_y else np.zeros(targets.shape[1])
        self.target_units_ = (mean, np.ones_like(mean))
        description = self._plain("n_components", "length_scale", "sketch", "weights", "max_degree")
        if self.n_components in (1, 2):
            # A constant and one column beside it are the least.
            description |= {"n_components": 2, "weights": "real"}
        spec = json.dumps({"seed": seed_of(self.random_state), **description})
        numbers = (self.noise, self.signal_variance, self.threshold, self.max_clusters)
        # All of the rows again for every centroid.
        self.model_ = self._learn(LocalGpModel.fit, rows, spec, rows, targets - mean, *numbers)
        self.centroids_ = self.model_.centroids
        self.spec_ = json.loads(self.model_.spec)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predictive mean, and standard deviation of the function where asked for.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictive means.
        std : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Standard deviations, the same for all targets; only if `return_std`.
        """
        mean, variance = self._ask("predict", X)
        mean = self._shaped(mean)
        if not return_std:
            return mean
        std = np.broadcast_to(np.sqrt(variance)[:, np.newaxis], (len(mean), len(self.target_units_[0])))
        return mean, self._shaped(std.copy(), spread=True)
