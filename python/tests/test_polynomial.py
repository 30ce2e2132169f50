"""Sketches of the polynomial kernel, and poolings made of them."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from bochner import FeatureRidge, FourierFeatures, PolynomialSketch, compact_bilinear_pooling

SKETCHES = ("tensor_srht", "rademacher", "gaussian", "tensor_sketch")
WEIGHTS = ("real", "complex", "ctr")
SRHTS = ("upsampled", "stacked", "tuple")
# `srht` means something to one sketch only.
VARIANTS = [
    {"sketch": sketch, "weights": weights, "srht": srht}
    for sketch, weights, srht in itertools.product(SKETCHES, WEIGHTS, SRHTS)
    if sketch == "tensor_srht" or srht == "upsampled"
]


def assert_moments(features, rows, seeds=400):
    """Over seeds, estimates have the exact kernel as their mean and the closed form as their variance."""
    features = clone(features).fit(rows)
    exact, variance = features.exact_kernel(rows), features.variance(rows)
    estimates = []
    for seed in range(seeds):
        Z = clone(features).set_params(random_state=seed).fit_transform(rows)
        estimates.append(Z @ Z.conj().T)
    z = stats.norm.ppf(1 - 1e-6 / (4 * exact.size))
    deviation = np.asarray(estimates) - exact
    assert np.all(np.abs(deviation.mean(axis=0)) <= z * np.sqrt(variance / seeds) + 1e-12)
    squares = np.abs(deviation) ** 2
    # Products of projections are not normal: the spread of the squares is taken from the squares.
    error = squares.std(axis=0, ddof=1) / np.sqrt(seeds)
    assert np.all(np.abs(squares.mean(axis=0) - variance) <= z * error + 1e-24)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(variant.values()))
def test_estimates_have_the_mean_and_the_variance_they_claim(variant, rows):
    assert_moments(PolynomialSketch(40, gamma=1.5, coef0=0.5, **variant), rows[:3])


@pytest.mark.parametrize("sketch, weights, srht", list(itertools.product(SKETCHES, WEIGHTS, SRHTS)))
def test_every_variant_transforms_and_pickles(sketch, weights, srht, rows):
    features = PolynomialSketch(40, degree=3, coef0=1.0, sketch=sketch, weights=weights, srht=srht, random_state=2)
    for dtype, complex_dtype in ((np.float64, np.complex128), (np.float32, np.complex64)):
        X = rows.astype(dtype)
        Z = clone(features).fit_transform(X)
        assert Z.shape == (200, 40)
        assert Z.dtype == (complex_dtype if weights == "complex" else dtype)
        assert np.isfinite(Z).all()
        fitted = clone(features).fit(X)
        assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), Z)


@pytest.mark.parametrize("structure", ["flat", "tree", "compact"])
@pytest.mark.parametrize("sketch", ["tensor_srht", "rademacher", "gaussian"])
def test_structures_have_the_moments_they_claim(structure, sketch, rows):
    assert_moments(
        PolynomialSketch(64, degree=4, coef0=1.0, sketch=sketch, weights="real", structure=structure), rows[:3]
    )


def test_one_column_has_real_weights(rows):
    features = PolynomialSketch(1, random_state=0).fit(rows)
    assert features.weights == "ctr"
    assert features.spec_["weights"] == "real"
    real = PolynomialSketch(1, weights="real", random_state=0).fit(rows)
    assert np.array_equal(features.transform(rows), real.transform(rows))
    assert features.transform(rows).shape == (200, 1)
    assert PolynomialSketch(3).fit_transform(rows).shape == (200, 2)


def test_degree_zero_is_a_constant(rows):
    assert np.array_equal(PolynomialSketch(64, degree=0).fit_transform(rows), np.ones((200, 1)))


def test_ctr_is_the_complex_sketch_with_its_parts_as_columns(rows):
    real = PolynomialSketch(64, weights="ctr", random_state=5).fit_transform(rows)
    whole = PolynomialSketch(32, weights="complex", random_state=5).fit_transform(rows)
    np.testing.assert_allclose(real @ real.T, (whole @ whole.conj().T).real, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"gamma": -1.0}, "gamma must be a non-negative finite number, got -1"),
        ({"gamma": 0.0}, "gamma must be positive where coef0 is 0"),
        ({"gamma": np.inf}, "gamma must be a finite number, got inf"),
        ({"gamma": "scale"}, 'gamma must be a number, got "scale"'),
        ({"coef0": -0.5}, "coef0 must be a non-negative finite number, got -0.5"),
        ({"degree": -1}, "degree must be a non-negative integer, got -1"),
        ({"degree": 65}, "degree must be at most 64, got 65"),
        (
            {"sketch": "count"},
            'sketch must be one of "tensor_srht", "rademacher", "gaussian", "tensor_sketch", got "count"',
        ),
        ({"weights": "imaginary"}, 'weights must be one of "ctr", "real", "complex", got "imaginary"'),
        ({"srht": "blocks"}, 'srht must be one of "upsampled", "stacked", "tuple", got "blocks"'),
        ({"structure": "bush"}, 'structure must be one of "flat", "tree", "compact", got "bush"'),
        ({"structure": "tree"}, 'use weights="real"'),
    ],
    ids=str,
)
def test_bad_arguments_are_named(rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        PolynomialSketch(64, **parameters).fit(rows)


def test_ridge_models_stream_polynomial_features(rows):
    y = (rows[:, 0] + 0.5 * rows[:, 1]) ** 2
    features = PolynomialSketch(64, coef0=1.0, random_state=1)
    model = FeatureRidge(features, alpha=0.1).fit(rows, y)
    Z = model.features_.transform(rows)
    np.testing.assert_allclose(model.predict(rows), Ridge(alpha=0.1).fit(Z, y).predict(Z), atol=1e-8)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_ridge_models_refuse_complex_sketches(rows, method):
    model = FeatureRidge(PolynomialSketch(64, weights="complex"))
    with pytest.raises(ValueError, match='weights="complex" has complex features; weights="ctr" makes them real'):
        getattr(model, method)(rows, rows[:, 0])
    with pytest.raises(NotFittedError):
        model.predict(rows)


@pytest.fixture
def images(rng):
    """Local descriptors of shape (images, positions, channels)."""
    return rng.normal(size=(4, 25, 8)) / np.sqrt(8)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_pooling_sums_features_over_positions(images, weights):
    features = PolynomialSketch(48, weights=weights, random_state=6).fit(images[0])
    pooled = compact_bilinear_pooling(images, features)
    expected = features.transform(images.reshape(-1, 8)).reshape(4, 25, -1).sum(axis=1)
    assert pooled.dtype == expected.dtype
    np.testing.assert_allclose(pooled, expected, rtol=1e-12, atol=1e-12)
    unfitted = PolynomialSketch(48, weights=weights, random_state=6)
    assert np.array_equal(compact_bilinear_pooling(images, unfitted), pooled)
    assert not hasattr(unfitted, "map_")
    single = compact_bilinear_pooling(images.astype(np.float32), features)
    assert single.dtype.itemsize * 2 == pooled.dtype.itemsize
    # Sums of 25 numbers of size about 1/8 in float32.
    np.testing.assert_allclose(single, pooled, atol=1e-5)
    features.set_output(transform="pandas")
    assert np.array_equal(compact_bilinear_pooling(images, features), pooled)


def test_pooled_features_estimate_the_bilinear_form(images):
    bilinear = np.einsum("ilc,ild->icd", images, images).reshape(len(images), -1)
    exact, seeds = bilinear @ bilinear.T, 400
    deviations = []
    for seed in range(seeds):
        pooled = compact_bilinear_pooling(images, PolynomialSketch(64, random_state=seed))
        deviations.append(pooled @ pooled.T - exact)
    z = stats.norm.ppf(1 - 1e-6 / (2 * exact.size))
    error = np.std(deviations, axis=0, ddof=1) / np.sqrt(seeds)
    assert np.all(np.abs(np.mean(deviations, axis=0)) <= z * error)


@pytest.mark.parametrize("dtype", [np.int32, ">f8", np.float16])
def test_pooling_takes_other_numbers_as_float64(rng, dtype):
    images = rng.integers(-3, 4, size=(2, 9, 5))
    features = PolynomialSketch(32, random_state=0)
    pooled = compact_bilinear_pooling(images.astype(dtype), features)
    assert pooled.dtype == np.float64
    assert np.array_equal(pooled, compact_bilinear_pooling(images.astype(np.float64), features))


def test_pooling_names_what_it_cannot_pool(images):
    features = PolynomialSketch(32, random_state=0)
    for shape in ((4, 200), (0, 25, 8), (4, 0, 8), (4, 25, 0)):
        with pytest.raises(ValueError, match=r"X must have shape \(n_images, n_positions, n_channels\)"):
            compact_bilinear_pooling(np.zeros(shape), features)
    with pytest.raises(TypeError, match="features must be a PolynomialSketch, got FourierFeatures"):
        compact_bilinear_pooling(images, FourierFeatures(32))
    with pytest.raises(ValueError, match="degree 2, got degree=3"):
        compact_bilinear_pooling(images, PolynomialSketch(32, degree=3))
    with pytest.raises(ValueError, match="X has 5 features, but PolynomialSketch is expecting 8"):
        compact_bilinear_pooling(images[..., :5], clone(features).fit(images[0]))
    images[2, 7, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        compact_bilinear_pooling(images, features)
