"""The door to JAX: the draws of the core as pure functions."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bochner import FourierFeatures, OpticalFeatures, PolynomialSketch, PositiveFeatures
from bochner import jax as door
from bochner import linear_attention, softmax_attention
from jax.test_util import check_grads
from nets import MAPS, METRIC, NAMES, ROWS, SCALES, fitted, near, phase, run_guide

jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("features", MAPS, ids=NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_map_has_the_draws_of_the_core(features, dtype):
    features, rows = fitted(features), ROWS.astype(dtype)
    function = door.from_map(features)
    near(np.asarray(jax.jit(function)(rows)), features.transform(rows), phase(features))
    assert type(function).__name__ == type(features).__name__
    assert (function.in_features, function.out_features) == (4, features.transform(rows).shape[1])


@pytest.mark.parametrize("features", MAPS, ids=NAMES)
def test_gradients_of_every_map_are_the_pullback_of_the_core(features):
    features = fitted(features)
    function = door.from_map(features)
    found, back = jax.vjp(function, jnp.asarray(ROWS[:3]))
    cotangents = np.random.default_rng(1).normal(size=found.shape)
    if np.iscomplexobj(found):
        cotangents = cotangents + 1j * cotangents[::-1]
    # JAX counts the cotangent of a complex number without conjugation.
    (gradients,) = back(jnp.asarray(cotangents.conj()))
    expected = features.pullback(ROWS[:3], cotangents)
    np.testing.assert_allclose(gradients, expected, atol=1e-11 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize(
    "function",
    [
        door.FourierFeatures(4, n_components=6, random_state=0),
        door.PolynomialSketch(4, n_components=6, degree=3, coef0=1.0, random_state=0),
        door.PolynomialSketch(4, n_components=6, degree=3, sketch="tensor_sketch", weights="real", random_state=0),
        door.OpticalFeatures(4, n_components=6, exponent=1.0, random_state=0),
        door.PositiveFeatures(4, n_components=6, random_state=0),
        door.MaclaurinFeatures(4, n_components=9, length_scale=2.0, sample=ROWS, random_state=0),
    ],
    ids=lambda function: type(function).__name__,
)
def test_second_derivatives_and_batches(function):
    rows = jnp.asarray(ROWS[:2])
    check_grads(function, (rows,), order=2, modes=["fwd", "rev"], atol=1e-5, rtol=1e-5)
    stacked = jnp.asarray(ROWS.reshape(3, 4, 4))
    np.testing.assert_allclose(jax.vmap(function)(stacked), function(stacked), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(function)(stacked[0]), function(stacked[0]), rtol=1e-12)


def test_a_length_scale_may_be_an_argument():
    function = door.FourierFeatures(4, n_components=8, random_state=0)
    for scale in (2.0, SCALES, METRIC):
        expected = FourierFeatures(8, length_scale=scale, random_state=0).fit(ROWS).transform(ROWS)
        np.testing.assert_allclose(function(ROWS, length_scale=jnp.asarray(scale)), expected, atol=1e-12)
        check_grads(lambda s: function(ROWS, length_scale=s), (jnp.asarray(scale),), order=1, modes=["rev"])
    with pytest.raises(ValueError, match="has no length scale"):
        door.PolynomialSketch(4, n_components=8)(ROWS, length_scale=2.0)


def test_a_map_with_a_center_keeps_it_at_another_length_scale():
    features = next(f for f in MAPS if type(f).__name__ == "MaclaurinFeatures").set_params(length_scale=3.0)
    features = fitted(features)
    found = door.from_map(features)(ROWS, length_scale=3.0)
    np.testing.assert_allclose(found, features.transform(ROWS), atol=1e-11)


def test_half_precision_is_rounded_once():
    function = door.FourierFeatures(4, n_components=8, random_state=0)
    rows = jnp.asarray(ROWS, jnp.bfloat16)
    found = function(rows)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found, function(rows.astype(jnp.float32)).astype(jnp.bfloat16))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["positive", "hyperbolic"])
def test_attention_is_that_of_the_core(causal, kind):
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 300, 4))
    attend = door.LinearAttention(4, 64, kind=kind, random_state=5)
    features = PositiveFeatures(64, kind=kind, random_state=5).fit(q[0])
    expected = linear_attention(q, k, v, features, causal=causal)
    np.testing.assert_allclose(jax.jit(attend, static_argnames="is_causal")(q, k, v, is_causal=causal), expected, atol=1e-11)
    mask = np.arange(300) < 200
    if not causal:
        expected = linear_attention(q, k[:, :200], v[:, :200], features)
        np.testing.assert_allclose(attend(q, k, v, mask=mask), expected, atol=1e-11)
    check_grads(lambda *qkv: attend(*qkv, is_causal=causal), (q[0, :5], k[0, :5], v[0, :5]), order=2, modes=["rev"], rtol=1e-4)


def test_attention_estimates_softmax_at_any_scale():
    q, k, v = np.random.default_rng(0).normal(size=(3, 50, 4)) / 2
    attend = door.LinearAttention(4, 20_000, random_state=5)
    # exp(scale <q, k>): queries times sqrt(d) scale make it exp(<q, k>/sqrt(d)).
    expected = softmax_attention(q * 2.0, k, v, causal=True)
    assert np.abs(np.asarray(attend(q, k, v, is_causal=True, scale=1.0)) - expected).max() < 0.1


@pytest.mark.parametrize("sketch", ["tensor_srht", "tensor_sketch"])
@pytest.mark.parametrize("weights", ["ctr", "real", "complex"])
def test_pooling_of_two_inputs_estimates_products_of_inner_products(sketch, weights):
    x, y = (np.random.default_rng(i).normal(size=(2, 3, d)) for i, d in enumerate((4, 5)))
    exact = np.einsum("ilc,jmc,ild,jmd->ij", x, x, y, y)
    draws = []
    for seed in range(60):
        pooled = np.asarray(door.CompactBilinearPooling(4, 5, n_components=64, sketch=sketch, weights=weights, random_state=seed)(x, y))
        draws.append((pooled @ pooled.conj().T).real)
    errors = np.mean(draws, axis=0) - exact
    assert np.abs(errors / (np.std(draws, axis=0) / np.sqrt(60))).max() < 5.0


def test_pooling_sums_features_over_positions():
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    found = door.CompactBilinearPooling(4, n_components=8, random_state=2)(x)
    sketch = PolynomialSketch(8, random_state=2).fit(x[0])
    np.testing.assert_allclose(found, [sketch.transform(image).sum(axis=0) for image in x], rtol=1e-12)
    # One vector for all positions is a factor of the sum.
    pool = door.CompactBilinearPooling(4, 4, n_components=8, random_state=2)
    one = x[:, :1]
    np.testing.assert_allclose(pool(x, one), pool(x, np.repeat(one, 5, axis=1)), rtol=1e-10)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"rows must have shape \(\.\.\., 4\), got \(3, 5\)"):
        door.FourierFeatures(4)(np.zeros((3, 5)))
    with pytest.raises(TypeError, match="floating point numbers, got int64"):
        door.FourierFeatures(4)(np.zeros((3, 4), dtype=np.int64))
    with pytest.raises(ValueError, match="needs features that are fitted"):
        door.from_map(FourierFeatures(4))
    with pytest.raises(ValueError, match="FourierFeatures finds length_scale from rows: give some as sample="):
        door.FourierFeatures(4, length_scale="median")
    with pytest.raises(ValueError, match="finds the allocation and the center from rows"):
        door.MaclaurinFeatures(4, n_components=33)
    with pytest.raises(ValueError, match="finds gain from rows"):
        door.OpticalFeatures(4, camera_bits=4)
    with pytest.raises(ValueError, match="readings of a camera are steps"):
        door.from_map(OpticalFeatures(4, camera_bits=4).fit(ROWS))(ROWS)
    with pytest.raises(ValueError, match="takes 2 inputs, got 1"):
        door.CompactBilinearPooling(4, 5)(np.zeros((1, 2, 4)))


def test_importing_bochner_imports_neither_torch_nor_jax():
    code = "import sys, bochner; sys.exit(bool({'torch', 'jax'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_guide_runs():
    run_guide(of_jax=True)
