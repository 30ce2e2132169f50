"""Targets and features far from 0: no more digits are lost than ten times what scikit-learn loses on the same features."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from bochner import FeatureGPRegressor, FeatureRidge, FourierFeatures, PolynomialSketch

ALPHA = 0.1


@pytest.fixture
def data(rng):
    X = rng.normal(size=(2000, 5))
    return X, np.sin(X[:, 0] + X[:, 1]) + np.cos(X[:, 2]) + 0.1 * rng.normal(size=2000)


def right(Z, y, alpha, fit_intercept):
    """Predictions of ridge regression by an orthogonal decomposition in double precision, less `alpha` for the intercept."""
    Z, y = Z.astype(np.float64), y.astype(np.float64)
    middle = (Z.mean(axis=0), y.mean()) if fit_intercept else (np.zeros(Z.shape[1]), 0.0)
    augmented = np.vstack([Z - middle[0], np.sqrt(alpha) * np.eye(Z.shape[1])])
    coef = np.linalg.lstsq(augmented, np.append(y - middle[1], np.zeros(Z.shape[1])), rcond=None)[0]
    return (Z - middle[0]) @ coef, middle[1]


def error(found, fitted, middle):
    return np.abs((found.astype(np.float64) - middle) - fitted).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["cholesky", "dual", "cg"])
@pytest.mark.parametrize("offset", [0.0, 1e5, 1e6])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_offsets_of_targets_cost_no_more_digits_than_in_scikit_learn(data, dtype, fit_intercept, solver, offset, scale):
    X, z = data
    X, y = X.astype(dtype), (scale * (z + offset)).astype(dtype)
    tol = 4 * np.finfo(dtype).eps
    model = FeatureRidge(
        FourierFeatures(200, random_state=1), alpha=ALPHA, fit_intercept=fit_intercept, solver=solver, tol=tol
    ).fit(X, y)
    Z = model.features_.transform(X)
    assert Z.dtype == dtype
    fitted, middle = right(Z, y, ALPHA, fit_intercept)
    theirs = Ridge(alpha=ALPHA, fit_intercept=fit_intercept, solver="cholesky").fit(Z, y).predict(Z)
    ours = model.predict(X)
    assert error(ours, fitted, middle) <= 10 * error(theirs, fitted, middle)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_processes_subtract_the_mean_before_they_round(data, dtype):
    X, z = data
    X = X.astype(dtype)
    far = (z + 1e6).astype(dtype)
    near = (far.astype(np.float64) - 1e6).astype(dtype)
    models = [FeatureGPRegressor(FourierFeatures(200, random_state=1), noise=ALPHA).fit(X, y) for y in (near, far)]
    means = [model.predict(X).astype(np.float64) for model in models]
    # Predictions near 1e6 are rounded once.
    assert np.abs(means[1] - 1e6 - means[0]).max() <= 4 * np.spacing(dtype(1e6))


@pytest.mark.parametrize("dtype, size", [(np.float32, 1e30), (np.float64, 1e200)])
def test_rows_too_large_for_their_features_are_refused_by_row_and_column(rng, dtype, size):
    X = rng.normal(size=(50, 4)).astype(dtype)
    features = PolynomialSketch(16, degree=3, random_state=1).fit(X)
    X[17, 2] = size
    with pytest.raises(ValueError, match="row 17 .*column 2"):
        features.transform(X)


@pytest.mark.parametrize("alpha", [1e150, 1e300, 1e308])
def test_no_penalty_is_answered_with_infinity(data, alpha):
    X, y = data
    model = FeatureRidge(FourierFeatures(20, random_state=1), alpha=alpha)
    try:
        assert np.isfinite(model.fit(X, y).predict(X)).all()
    except (ValueError, RuntimeError) as refused:
        assert "inf" not in str(refused).replace("infinity", "") and "nan" not in str(refused).lower()
