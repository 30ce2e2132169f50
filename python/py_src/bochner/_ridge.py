"""Ridge regression and classification on random features, in one pass over the rows."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bochner import _signatures
from bochner._models import AccumulatingClassification, Deciding, FeatureModel, Regression, Solved


class _FeatureRidge(FeatureModel, Solved):
    """What regression and classification share."""

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
