"""Features of the exponential kernel, spherical features, and attention."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.base import clone

from bochner import (
    FourierFeatures,
    PolynomialSketch,
    PositiveFeatures,
    SphericalFeatures,
    linear_attention,
    softmax_attention,
)


@pytest.fixture
def sequences(rng):
    """Queries, keys and values of two heads."""
    return rng.normal(size=(3, 2, 150, 8))


@pytest.mark.parametrize("kind", ["positive", "hyperbolic", "trigonometric"])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_positive_features_have_the_mean_and_the_variance_they_claim(kind, orthogonal, rows):
    rows, seeds = rows[:3] / 2, 1500
    features = PositiveFeatures(48, kind=kind, orthogonal=orthogonal, length_scale=1.2).fit(rows)
    exact, variance = features.exact_kernel(rows), features.variance(rows)
    np.testing.assert_allclose(exact, np.exp(rows @ rows.T / 1.44), rtol=1e-12)
    deviations = []
    for seed in range(seeds):
        Z = clone(features).set_params(random_state=seed).fit_transform(rows)
        deviations.append(Z @ Z.T - exact)
    z = stats.norm.ppf(1 - 1e-6 / (4 * exact.size))
    squares = np.square(deviations)
    assert np.all(np.abs(np.mean(deviations, axis=0)) <= z * np.sqrt(variance / seeds) + 1e-12)
    error = squares.std(axis=0, ddof=1) / np.sqrt(seeds)
    assert np.all(np.abs(squares.mean(axis=0) - variance) <= z * error + 1e-24)


def test_spherical_features_report_their_bias(rows):
    features = SphericalFeatures(8192, degree=7, projection="gaussian", random_state=0).fit(rows)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(features.exact_kernel(rows), (0.5 + 0.5 * unit @ unit.T) ** 7, atol=1e-12)
    assert 0 < features.bias_["rms"] <= features.bias_["sup"] < 0.02
    error = features.transform(rows) @ features.transform(rows).T - features.exact_kernel(rows)
    z = stats.norm.ppf(1 - 1e-6 / error.size)
    assert np.all(np.abs(error) <= features.bias_["sup"] + z * np.sqrt(features.variance(rows)) + 1e-12)
    mixture = clone(features).set_params(radial_fit="mixture").fit(rows)
    assert features.bias_["rms"] <= 1.02 * mixture.bias_["rms"]
    assert mixture.spec_["radial_fit"] == "mixture"


def test_spherical_features_refuse_zero_rows(rows):
    features = SphericalFeatures(64).fit(rows)
    rows[17] = 0
    with pytest.raises(ValueError, match="row 17 is zero and has no direction"):
        features.transform(rows)


@pytest.mark.parametrize(
    "features, message",
    [
        (SphericalFeatures(64, a=1.0), "a must be a finite number of at least √2, got 1"),
        (SphericalFeatures(64, degree=65), "degree must be at most 64, got 65"),
        (SphericalFeatures(64, radial_fit="spline"), 'fit must be "convex" or "mixture", got "spline"'),
        (PositiveFeatures(64, length_scale=0.0), "length_scale must be a positive finite number, got 0"),
        (PositiveFeatures(64, kind="cosine"), 'kind must be one of "positive", "hyperbolic", "trigonometric"'),
    ],
    ids=str,
)
def test_bad_arguments_are_named(rows, features, message):
    with pytest.raises(ValueError, match=message):
        features.fit(rows)


@pytest.mark.parametrize("causal", [False, True])
def test_exact_attention_is_a_softmax(sequences, causal):
    q, k, v = sequences
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(8)
    if causal:
        scores = np.where(np.tri(150, dtype=bool), scores, -np.inf)
    np.testing.assert_allclose(softmax_attention(q, k, v, causal=causal), softmax(scores, axis=-1) @ v, atol=1e-13)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["positive", "hyperbolic"])
def test_linear_attention_is_masked_attention_over_features(sequences, causal, kind):
    q, k, v = sequences
    features = PositiveFeatures(64, kind=kind, random_state=3).fit(q[0])
    out = linear_attention(q, k, v, features, causal=causal)
    for head in range(2):
        weights = features.transform(q[head] / 8**0.25) @ features.transform(k[head] / 8**0.25).T
        if causal:
            weights = np.tril(weights)
        np.testing.assert_allclose(out[head], weights @ v[head] / weights.sum(axis=1, keepdims=True), atol=1e-12)
    single = linear_attention(*(a.astype(np.float32) for a in (q, k, v)), features, causal=causal)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, out, atol=1e-3)


def test_linear_attention_takes_any_features(sequences):
    q, k, v = sequences[:, 0]
    unfitted = FourierFeatures(4096, length_scale=3.0, random_state=0)
    out = linear_attention(q, k, v, unfitted)
    weights = np.exp(-np.square(q[:, None] - k).sum(axis=2) / (2 * 9 * np.sqrt(8)))
    np.testing.assert_allclose(out, weights @ v / weights.sum(axis=1, keepdims=True), atol=0.1)
    assert not hasattr(unfitted, "map_")


def test_linear_attention_names_what_it_cannot_attend_to(sequences):
    q, k, v = sequences[:, 0]
    features = PositiveFeatures(64, random_state=0)
    with pytest.raises(TypeError, match="features must be a transformer of bochner, got int"):
        linear_attention(q, k, v, 64)
    with pytest.raises(ValueError, match="same leading axes"):
        linear_attention(q, k[None], v, features)
    with pytest.raises(ValueError, match="number of rows of v is 149, expected 150"):
        linear_attention(q, k, v[1:], features)
    with pytest.raises(ValueError, match="of q has weights that add up to -"):
        linear_attention(q, -q, v, PolynomialSketch(64, degree=1, weights="real", random_state=0))
    k[3, 1] = np.nan
    with pytest.raises(ValueError, match="k has a NaN or an infinity in row 3, column 1"):
        linear_attention(q, k, v, PositiveFeatures(64).fit(q))
