"""Every estimator of the package, small enough for scikit-learn's checks; a new one has its defaults without a line here."""

from bochner import *  # noqa: F403
from bochner._files import FEATURES as MAPS
from bochner._models import KINDS

FEATURES = [
    FourierFeatures(64),
    FourierFeatures(33, kernel="laplacian", length_scale="median", form="offset"),
    FourierFeatures(32, kernel="matern", nu=2.2, projection="gaussian"),
    FourierFeatures(32, form="complex"),
    PolynomialSketch(64),
    PolynomialSketch(33, degree=3, gamma=0.5, coef0=1.0, srht="stacked"),
    PolynomialSketch(32, coef0=0.5, sketch="rademacher", weights="real"),
    PolynomialSketch(32, sketch="gaussian", weights="complex"),
    PolynomialSketch(32, sketch="tensor_sketch", weights="real", coef0=1.0),
    PolynomialSketch(32, degree=3, structure="tree", weights="real", coef0=1.0),
]

# Tested one by one in files of their own: they have biases, or no closed-form variance, or refuse some rows.
OTHER_FEATURES = [
    OpticalFeatures(64, exponent=1.0),
    OpticalFeatures(32, binarize=0.1, bias=0.5, projection="matrix_free"),
    MaclaurinFeatures(65, length_scale=3.0),
    MaclaurinFeatures(64, length_scale="median", statistics="one_pass", weights="real", sketch="rademacher"),
    MaclaurinFeatures(64, kernel="polynomial", gamma=0.1, allocation="random", weights="complex"),
    MaclaurinFeatures(33, kernel=[1.0, 0.0, 0.5], sketch="tensor_sketch"),
    PositiveFeatures(64),
    PositiveFeatures(33, length_scale=2.0, orthogonal=False, kind="hyperbolic"),
    SphericalFeatures(64),
    SphericalFeatures(33, degree=5, projection="gaussian", radial_fit="mixture"),
    OrthoProjection(3),
    OrthoProjection(4, orthoprojector="srht"),
    CompressiveFeatures(32, compressed_dim=3),
    CompressiveFeatures(32, compressed_dim=3, form="complex", length_scale="median"),
]

RIDGES = [
    FeatureRidge(),
    FeatureRidge(FourierFeatures(257, length_scale=3.0), alpha=0.1, fit_intercept=False),
    FeatureRidgeClassifier(),
    FeatureRidgeClassifier(FourierFeatures(64), alpha=0.1),
    FeatureRidge(PolynomialSketch(64, degree=3, gamma=0.5, coef0=1.0)),
    FeatureRidgeClassifier(PolynomialSketch(64, coef0=1.0)),
]

MODELS = [
    OperatorRidge(n_components=256, length_scale=3.0, alpha=0.1),
    OperatorRidgeClassifier(n_components=64, alpha=0.1),
    OperatorGPRegressor(n_components=128, length_scale=3.0),
    LocalGPRegressor(33, length_scale=2.0, normalize_y=True),
    FeatureSVC(),
    FeatureSVC(FourierFeatures(64), loss="hinge", C=2.0, tol=1e-2),
    FeatureSVC(CompressiveFeatures(32, compressed_dim=2), fit_intercept=False, memory_budget=20_000),
    FeatureGPRegressor(FourierFeatures(256, length_scale=3.0)),
    FeatureGPRegressor(FourierFeatures(128, form="complex", length_scale=3.0), noise=0.01),
    FeatureGPClassifier(FourierFeatures(64)),
    FeatureGPClassifier(FourierFeatures(32, form="complex"), alpha=0.05),
    exact.KernelRidge(),
    exact.GPRegressor(),
    exact.GPClassifier(),
    exact.KernelSVC(),
    exact.OperatorRidge(),
]

LISTED = [*FEATURES, *OTHER_FEATURES, *RIDGES, *MODELS]
UNLISTED = {*MAPS.values(), *KINDS.values()} - {type(estimator) for estimator in LISTED}
ESTIMATORS = [*LISTED, *(kind() for kind in sorted(UNLISTED, key=lambda kind: kind.__name__))]
