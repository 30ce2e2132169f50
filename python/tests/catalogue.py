"""Every estimator of the package, small enough for scikit-learn's checks; a new one is one line here."""

from bochner import FeatureRidge, FeatureRidgeClassifier, FourierFeatures

FEATURES = [
    FourierFeatures(64),
    FourierFeatures(33, kernel="laplacian", length_scale="median", form="offset"),
    FourierFeatures(32, kernel="matern", nu=2.2, projection="gaussian"),
    FourierFeatures(32, form="complex"),
]

MODELS = [
    FeatureRidge(),
    FeatureRidge(FourierFeatures(257, length_scale=3.0), alpha=0.1, fit_intercept=False),
    FeatureRidgeClassifier(),
    FeatureRidgeClassifier(FourierFeatures(64), alpha=0.1),
]

ESTIMATORS = [*FEATURES, *MODELS]
