"""Ridge regression and classification on random features, in one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner import _bochner, _signatures
from bochner._checks import explained
from bochner._models import AccumulatingClassification, Deciding, FeatureModel, Regression, Solved


class _FeatureRidge(FeatureModel, Solved):
    """What regression and classification share."""

    _several = ("cg", "sgd")

    @property
    def n_iter_(self) -> int:
        """int: Steps of an iterative solver; 1 otherwise."""
        return max(1, self._report()["iterations"])


class FeatureRidge(_signatures.RidgeModel, _FeatureRidge, Regression):
    """Ridge regression on random features: kernel ridge regression at the cost of a linear model.

    Rows stream through the feature map block by block. The matrix of all features is never made, so memory depends
    on the number of features and not on the number of rows.

    >>> X = np.linspace(0, 6, 200)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> model = FeatureRidge(FourierFeatures(256, random_state=0), alpha=1e-3).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    """

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        super()._prepare(rows, targets)
        if isinstance(self.alpha, str):
            self._found_alpha_ = self._penalty(rows, targets)

    @property
    def alpha_(self) -> float:
        """float: The penalty used."""
        self._model()
        return getattr(self, "_found_alpha_", self.alpha)

    def _penalty(self, rows: Any, targets: NDArray[Any]) -> float:
        """The penalty with the smallest error on rows that are left out one by one."""
        alpha: Any = self.alpha
        if alpha != "loo":
            raise ValueError(f'alpha must be a number or "loo", got {alpha!r}')
        alphas = (rows.shape[0] * np.logspace(-9, 0, 19)).tolist()
        with explained(self, ("X", rows)):
            losses = _bochner.leave_one_out_losses(
                self.features_.map_, rows, targets, None, alphas, self.fit_intercept, n_jobs=self.n_jobs
            )
        return alphas[int(np.argmin(losses))]

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        if isinstance(self.alpha, str):
            raise ValueError(f"alpha must be a number where rows come in parts, got {self.alpha!r}")
        super()._begin(rows, targets)

    def _take(self, params: dict[str, Any]) -> None:
        if isinstance(self.alpha, str):
            if "alpha" in params:
                raise ValueError(f"alpha must be a number where rows are not at hand, got {self.alpha!r}")
        else:
            vars(self).pop("_found_alpha_", None)

    def _plan(self, **others: Any) -> str:
        return super()._plan(**{"alpha": getattr(self, "_found_alpha_", self.alpha)} | others)

    def _left_out(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.float64]:
        """Residuals of some rows of `fit`, each left out."""
        told = (self.features_.map_, *self._rows_of_fit("leave-one-out"), rows, targets, weights)
        known = (float(self.alpha_), self.fit_intercept)
        return _bochner.leave_one_out(*told, *known, n_jobs=self.n_jobs)[0]

    def _left_out_scores(self) -> tuple[str, NDArray[np.float64]]:
        return "leave_one_out", np.abs(self._left_out(*self._some_of_fit("intervals")))

    @property
    def loo_predict_(self) -> NDArray[np.float64]:
        """ndarray of shape (n_samples,) or (n_samples, n_targets): Predictions of the rows of `fit`, each by the model that all other
        rows would have given; not there after `partial_fit` and in models from files.
        """
        kept = self._rows_of_fit("loo_predict_")
        return (kept[1].astype(np.float64) - self._left_out(*kept)).reshape(-1, *self.target_shape_)

    def _each(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.target_shape_ else values[0]


class FeatureRidgeClassifier(
    _signatures.RidgeClassifierModel, _FeatureRidge, Deciding, AccumulatingClassification
):
    """Classification by ridge regression on random features, one class against the rest.

    Rows stream through the feature map block by block. The matrix of all features is never made, so memory depends
    on the number of features and not on the number of rows.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> features = FourierFeatures(1024, length_scale="median", random_state=0)
    >>> model = FeatureRidgeClassifier(features, alpha=1e-3).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    def _each(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if len(self.classes_) > 2 else values[-1:]
