"""Kernel methods at the cost of linear models.

Random feature maps whose inner products estimate a kernel, with the variance of that estimate in closed form, and
models on top of them that read the data in blocks. Everything follows scikit-learn's conventions.
"""

from bochner import _features, exact, kernels, metrics, plot, stats
from bochner._auto import AutoClassifier, AutoRegressor
from bochner._attention import linear_attention, softmax_attention
from bochner._bochner import NotConvergedError, NotPositiveDefiniteError, __version__
from bochner._features import (
    CompressiveFeatures,
    FourierFeatures,
    LearnedFourierFeatures,
    MaclaurinFeatures,
    OpticalFeatures,
    OrthoProjection,
    PolynomialSketch,
    PositiveFeatures,
    SphericalFeatures,
)
from bochner._files import load
from bochner._metric import LearnedMetric
from bochner._models import KINDS
from bochner._operator import (
    OperatorFeatures,
    OperatorGPRegressor,
    OperatorRidge,
    OperatorRidgeClassifier,
    lagged_rows,
    simplex_codes,
)
from bochner._plan import plan
from bochner._pooling import compact_bilinear_pooling
from bochner._processes import FeatureGPClassifier, FeatureGPRegressor, LocalGPRegressor
from bochner._ridge import FeatureRidge, FeatureRidgeClassifier
from bochner._search import search
from bochner._svm import FeatureSVC

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "CompressiveFeatures",
    "FeatureGPClassifier",
    "FeatureGPRegressor",
    "FeatureRidge",
    "FeatureRidgeClassifier",
    "FeatureSVC",
    "FourierFeatures",
    "LearnedFourierFeatures",
    "LearnedMetric",
    "LocalGPRegressor",
    "MaclaurinFeatures",
    "NotConvergedError",
    "NotPositiveDefiniteError",
    "OperatorFeatures",
    "OperatorGPRegressor",
    "OperatorRidge",
    "OperatorRidgeClassifier",
    "OpticalFeatures",
    "OrthoProjection",
    "PolynomialSketch",
    "PositiveFeatures",
    "SphericalFeatures",
    "__version__",
    "compact_bilinear_pooling",
    "exact",
    "kernels",
    "lagged_rows",
    "linear_attention",
    "load",
    "metrics",
    "plan",
    "plot",
    "search",
    "simplex_codes",
    "softmax_attention",
    "stats",
]

# Maps that the catalogue lists and that have no class of their own, and models that are not named above.
_found = {k.__name__: k for k in (*_features.CLASSES.values(), *KINDS.values()) if k.__module__ != "bochner.exact"}
globals().update(_found)
__all__ += sorted(set(_found) - set(__all__))
