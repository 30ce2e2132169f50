"""The door to torch: modules with the draws of the core. Run where torch is, `make test` knows where."""

import copy
import doctest
import io
import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from bochner import FourierFeatures, OpticalFeatures, PolynomialSketch, PositiveFeatures, compact_bilinear_pooling
from bochner import linear_attention, softmax_attention
from bochner import torch as door
from nets import MAPS, METRIC, NAMES, ROWS, SCALES, fitted, near, phase, run_guide
from torch.autograd import gradcheck, gradgradcheck

X = torch.from_numpy(ROWS)


def inputs(*shapes):
    draw = np.random.default_rng(2)
    return tuple(torch.from_numpy(draw.normal(size=shape)).requires_grad_() for shape in shapes)


@pytest.mark.parametrize("features", MAPS, ids=NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_map_has_the_draws_of_the_core(features, dtype):
    features, rows = fitted(features), X.to(dtype)
    expected = features.transform(rows.numpy())
    module = door.from_map(features)
    # The core itself, and torch with its draws.
    np.testing.assert_array_equal(module(rows).numpy(), expected)
    near(door.from_map(features, backend="torch")(rows).numpy(), expected, phase(features))
    assert type(module).__name__ == type(features).__name__
    assert (module.in_features, module.out_features) == expected.shape[:0] + (4, expected.shape[1])


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("features", MAPS, ids=NAMES)
def test_first_and_second_derivatives_of_every_map(features, backend):
    module = door.from_map(fitted(features), backend=backend)
    (rows,) = inputs((2, 4))
    gradcheck(module, rows, fast_mode=True)
    gradgradcheck(module, rows, fast_mode=True)


@pytest.mark.parametrize(
    "module",
    [
        door.FourierFeatures(3, n_components=4, random_state=0),
        door.PolynomialSketch(3, n_components=4, degree=3, random_state=0),
        door.OpticalFeatures(3, n_components=4, exponent=1.0, random_state=0),
        door.PositiveFeatures(3, n_components=4, random_state=0),
        door.MaclaurinFeatures(3, n_components=9, length_scale=2.0, sample=ROWS[:, :3], random_state=0),
        door.CompactBilinearPooling(3, n_components=4, random_state=0),
        door.CompactBilinearPooling(3, n_components=4, sketch="tensor_sketch", weights="complex", random_state=0),
    ],
    ids=lambda module: type(module).__name__,
)
def test_all_entries_of_derivatives_of_the_modules(module):
    (rows,) = inputs((2, 3))
    gradcheck(module, rows)
    gradgradcheck(module, rows)


def test_gradients_reach_rows_of_any_shape_and_through_other_layers():
    module, layer = door.FourierFeatures(3, n_components=8, random_state=0), torch.nn.Linear(4, 3).double()
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 5, 4)))
    assert module(layer(rows)).shape == (2, 3, 5, 8)
    module(layer(rows)).pow(2).cos().sum().backward()
    found = layer.weight.grad.clone()
    layer.zero_grad()
    door.from_map(FourierFeatures(8, random_state=0).fit(np.ones((1, 3))), backend="torch")(layer(rows)).pow(2).cos().sum().backward()
    torch.testing.assert_close(found, layer.weight.grad, rtol=1e-9, atol=1e-12)
    assert module(rows[:0, ..., :3]).shape == (0, 3, 5, 8)


@pytest.mark.parametrize("scale", [2.0, SCALES, METRIC], ids=["number", "list", "metric"])
@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_learned_length_scale_starts_as_given_and_has_derivatives(scale, backend):
    features = FourierFeatures(8, length_scale=scale, random_state=0).fit(ROWS)
    module = door.from_map(features, learn_length_scale=True, backend=backend).double()
    np.testing.assert_allclose(module(X).detach(), features.transform(ROWS), atol=1e-6)
    np.testing.assert_allclose(module.length_scale.detach(), scale, rtol=1e-6)
    (name, parameter), = module.named_parameters()

    def of(value):
        return torch.nn.utils.stateless.functional_call(module, {name: value}, X[:2])

    gradcheck(of, parameter.detach().clone().requires_grad_())
    gradgradcheck(of, parameter.detach().clone().requires_grad_())
    with pytest.raises(AttributeError, match="this module learns none"):
        door.from_map(features).length_scale
    with pytest.raises(ValueError, match="has no length scale"):
        door.PolynomialSketch(4, learn_length_scale=True)


def test_a_map_with_a_center_keeps_it_when_its_length_scale_is_learned():
    features = fitted(next(f for f in MAPS if type(f).__name__ == "MaclaurinFeatures").set_params(length_scale=3.0))
    module = door.from_map(features, learn_length_scale=True).double()
    np.testing.assert_allclose(module(X).detach(), features.transform(ROWS), atol=1e-6)


def test_the_state_keeps_parameters_and_seed():
    first = door.FourierFeatures(4, n_components=8, length_scale=2.0, random_state=1, learn_length_scale=True)
    second = door.FourierFeatures(4, n_components=8, length_scale=2.0, random_state=2, learn_length_scale=True)
    assert not torch.equal(first(X), second(X))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    assert len(file.getvalue()) < 4000
    file.seek(0)
    second.load_state_dict(torch.load(file))
    assert torch.equal(first(X), second(X))
    first(X.clone().requires_grad_())
    for other in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert torch.equal(first(X), other(X))


def test_traced_programs_have_no_calls_of_the_core():
    module = door.PolynomialSketch(4, n_components=16, degree=2, random_state=0)
    rows = X.float()
    with pytest.raises(RuntimeError, match=r"call pieces\('cpu', torch.float32\) of PolynomialSketch before it is traced"):
        torch.jit.trace(module, rows[:3])
    module.pieces("cpu", torch.float32)
    traced = torch.jit.trace(module, rows[:3])
    torch.testing.assert_close(traced(rows), module(rows), rtol=1e-5, atol=1e-6)


def test_half_precision_is_rounded_once():
    module = door.FourierFeatures(4, n_components=8, random_state=0)
    rows = X.bfloat16()
    assert torch.equal(module(rows), module(rows.float()).bfloat16())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(door.from_map(FourierFeatures(8, random_state=0).fit(ROWS), backend="torch")(X.float()), module(X.float()))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["positive", "hyperbolic"])
def test_attention_is_that_of_the_core(causal, kind):
    q, k, v = inputs(*[(2, 3, 300, 4)] * 3)
    attend = door.LinearAttention(4, 64, kind=kind, random_state=5)
    features = PositiveFeatures(64, kind=kind, random_state=5).fit(ROWS)
    expected = linear_attention(*(x.detach() for x in (q, k, v)), features, causal=causal)
    np.testing.assert_allclose(attend(q, k, v, is_causal=causal).detach(), expected, atol=1e-11)
    with torch.no_grad():
        np.testing.assert_allclose(attend(q, k, v, is_causal=causal), expected, atol=1e-13)
    if not causal:
        mask = torch.arange(300) < 200
        found = attend(q, k, v, attn_mask=mask.expand(2, 1, 1, 300))
        expected = attend(q, k[..., :200, :], v[..., :200, :])
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_has_first_and_second_derivatives(causal):
    attend = door.LinearAttention(3, 8, random_state=5)
    small = inputs((2, 4, 3), (2, 4, 3), (2, 4, 2))
    gradcheck(lambda *qkv: attend(*qkv, is_causal=causal), small)
    gradgradcheck(lambda *qkv: attend(*qkv, is_causal=causal), small)
    # Over several chunks.
    gradcheck(lambda *qkv: attend(*qkv, is_causal=causal), inputs((270, 3), (270, 3), (270, 2)), fast_mode=True)


def test_attention_estimates_softmax_at_any_scale():
    q, k, v = (x.detach() / 2 for x in inputs((50, 4), (50, 4), (50, 3)))
    attend = door.LinearAttention(4, 20_000, random_state=5)
    # exp(scale <q, k>): queries times sqrt(d) scale make it exp(<q, k>/sqrt(d)).
    expected = softmax_attention(q * 2.0, k, v, causal=True)
    assert np.abs(attend(q, k, v, is_causal=True, scale=1.0).numpy() - expected).max() < 0.1


@pytest.mark.parametrize("sketch", ["tensor_srht", "tensor_sketch"])
@pytest.mark.parametrize("weights", ["ctr", "real", "complex"])
def test_pooling_of_two_inputs_estimates_products_of_inner_products(sketch, weights):
    x, y = (x.detach() for x in inputs((2, 3, 4), (2, 3, 5)))
    exact = np.einsum("ilc,jmc,ild,jmd->ij", x, x, y, y)
    draws = []
    for seed in range(60):
        pool = door.CompactBilinearPooling(4, 5, n_components=64, sketch=sketch, weights=weights, random_state=seed)
        pooled = pool(x, y).numpy()
        draws.append((pooled @ pooled.conj().T).real)
    errors = np.mean(draws, axis=0) - exact
    assert np.abs(errors / (np.std(draws, axis=0) / np.sqrt(60))).max() < 5.0
    gradcheck(door.CompactBilinearPooling(4, 5, n_components=4, sketch=sketch, weights=weights), inputs((2, 3, 4), (2, 3, 5)))
    gradgradcheck(door.CompactBilinearPooling(4, 5, n_components=4, sketch=sketch, weights=weights), inputs((2, 2, 4), (2, 1, 5)))


def test_pooling_sums_features_over_positions():
    (x,) = inputs((2, 5, 4))
    found = door.CompactBilinearPooling(4, n_components=8, random_state=2)(x).detach()
    expected = compact_bilinear_pooling(x.detach(), PolynomialSketch(8, random_state=2))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    pool = door.CompactBilinearPooling(4, 4, n_components=8, random_state=2)
    one = x[:, :1]
    torch.testing.assert_close(pool(x, one), pool(x, one.expand(2, 5, 4)), rtol=1e-10, atol=1e-12)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"rows must have shape \(\.\.\., 4\), got \(3, 5\)"):
        door.FourierFeatures(4)(torch.zeros(3, 5))
    with pytest.raises(TypeError, match=r"floating point numbers, got torch\.int64"):
        door.FourierFeatures(4)(torch.zeros(3, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match="needs features that are fitted"):
        door.from_map(FourierFeatures(4))
    with pytest.raises(ValueError, match="FourierFeatures finds length_scale from rows: give some as sample="):
        door.FourierFeatures(4, length_scale="median")
    assert door.FourierFeatures(4, length_scale="median", sample=ROWS).spec["length_scale"] > 0
    with pytest.raises(ValueError, match='backend must be "auto" or "torch"'):
        door.FourierFeatures(4, backend="rust")
    with pytest.raises(ValueError, match="dropout_p must be 0"):
        door.LinearAttention(4)(X, X, X, dropout_p=0.1)
    with pytest.raises(ValueError, match="the same for all queries"):
        door.LinearAttention(4)(X, X, X, attn_mask=torch.ones(12, 12, dtype=torch.bool))
    with pytest.raises(ValueError, match="must have the same length, got 12 queries, 3 keys"):
        door.LinearAttention(4)(X, X[:3], X[:3], is_causal=True)
    with pytest.raises(ValueError, match='kind must be "positive" or "hyperbolic"'):
        door.LinearAttention(4, kind="trigonometric")
    with pytest.raises(ValueError, match="takes 2 inputs, got 1"):
        door.CompactBilinearPooling(4, 5)(torch.zeros(1, 2, 4))


def test_a_camera_has_features_and_no_derivatives():
    module = door.from_map(OpticalFeatures(8, camera_bits=4, random_state=0).fit(ROWS))
    rows = X.clone().requires_grad_()
    features = module(rows)
    assert features.shape == (12, 8)
    with pytest.raises(ValueError, match="steps"):
        features.sum().backward()


EXAMPLES = sorted((Path(__file__).parents[1] / "examples" / "torch").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_trains(path):
    runpy.run_path(str(path), run_name="__main__")


def test_examples_in_docstrings_give_what_they_show():
    assert doctest.testmod(door, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_the_guide_runs():
    run_guide(of_jax=False)
