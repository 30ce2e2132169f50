"""Several outputs that are one function: kernels, regression, codes, and the exact reference beside them."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import bochner
from bochner import FeatureRidge, FourierFeatures, OperatorRidge, OperatorRidgeClassifier, exact, kernels


@pytest.fixture
def field():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.stack([np.cos(X[:, 0]) * np.sin(X[:, 1]), np.sin(X[:, 0]) * np.cos(X[:, 1]), X[:, 2]], axis=1)
    return X, y


def test_kernels_return_a_matrix_for_every_pair(field):
    X, _ = field
    K = kernels.CurlFree(1.5)(X[:5], X[5:9])
    assert K.shape == (5, 4, 3, 3)
    delta, s = X[2] - X[7], 1 / 1.5**2
    k0 = np.exp(-0.5 * s * delta @ delta)
    np.testing.assert_allclose(K[2, 2], k0 * (s * np.eye(3) - s**2 * np.outer(delta, delta)), atol=1e-15)
    D = kernels.DivergenceFree(1.5)(X[:5], X[5:9])
    expected = k0 * ((2 * s - s**2 * delta @ delta) * np.eye(3) + s**2 * np.outer(delta, delta))
    np.testing.assert_allclose(D[2, 2], expected, atol=1e-15)
    np.testing.assert_allclose(kernels.Helmholtz(1.5, 0.25)(X[:5], X[5:9]), 0.25 * K + 0.75 * D, atol=1e-15)
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    base = kernels.Matern(nu=2.5, length_scale=2.0)
    np.testing.assert_allclose(kernels.Decomposable(A, base)(X[:4]), base(X[:4])[..., None, None] * A)


def test_kernels_are_values():
    a, b = kernels.Decomposable(np.eye(2)), kernels.Decomposable([[1, 0], [0, 1]])
    assert a == b and hash(a) == hash(b) and pickle.loads(pickle.dumps(a)) == a
    with pytest.raises(ValueError, match="positive semi-definite"):
        kernels.Decomposable([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="length_scale"):
        kernels.CurlFree(-1.0)


@pytest.mark.parametrize("kernel", ["curl_free", "divergence_free"])
@pytest.mark.parametrize("solver", ["auto", "cholesky", "cg", "lbfgs"])
def test_solvers_agree_and_fields_keep_their_promise(field, kernel, solver):
    X, y = field
    model = OperatorRidge(kernel, n_components=60, alpha=0.1, solver=solver, random_state=0).fit(X, y)
    reference = OperatorRidge(kernel, n_components=60, alpha=0.1, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), atol=1e-6)
    J = model.jacobian(X[:20])
    assert J.shape == (20, 3, 3)
    if kernel == "curl_free":
        assert abs(J - J.transpose(0, 2, 1)).max() < 1e-8
    else:
        assert abs(np.trace(J, axis1=1, axis2=2)).max() < 1e-8


def test_features_approach_the_exact_model(field):
    X, y = field
    for kernel in [kernels.CurlFree(1.5), kernels.Helmholtz(1.5), kernels.Decomposable(np.diag([1.0, 2.0, 0.5]))]:
        reference = exact.OperatorRidge(kernel, alpha=0.1).fit(X, y).predict(X)
        model = OperatorRidge(kernel, n_components=4000, alpha=0.1, fit_intercept=False, random_state=0)
        error = model.fit(X, y).predict(X) - reference
        assert np.linalg.norm(error) < 0.1 * np.linalg.norm(reference)


def test_the_exact_model_solves_the_block_system(field):
    X, y = field
    X, y = X[:30], y[:30]
    kernel = kernels.CurlFree(1.2)
    K = kernel(X).transpose(0, 2, 1, 3).reshape(90, 90)
    dual = np.linalg.solve(K + 0.1 * np.eye(90), y.ravel()).reshape(30, 3)
    model = exact.OperatorRidge(kernel, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, dual, rtol=1e-8, atol=1e-10)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_unrelated_outputs_are_ridge_regression(field):
    X, y = field
    model = OperatorRidge(n_components=128, alpha=0.3, random_state=3).fit(X, y)
    ridge = FeatureRidge(FourierFeatures(128, random_state=3), alpha=0.3).fit(X, y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), atol=1e-10)
    assert model.solver_ == "stein"
    np.testing.assert_array_equal(model.A_, np.eye(3))


@pytest.mark.parametrize("A", ["covariance", "learned", np.diag([1.0, 2.0, 3.0]), None])
def test_output_matrices_are_given_or_found(field, A):
    X, y = field
    model = OperatorRidge(A=A, n_components=128, alpha=1e-2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99
    assert model.A_.shape == (3, 3)
    if isinstance(A, str) and A == "covariance":
        np.testing.assert_allclose(model.A_, np.cov(y.T, bias=True), atol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_single_precision_and_one_dimensional_targets(field):
    X, y = field
    model = OperatorRidge("curl_free", n_components=256, alpha=0.1, random_state=0).fit(X.astype(np.float32), y)
    assert model.predict(X).dtype == np.float32
    double = OperatorRidge("curl_free", n_components=256, alpha=0.1, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), double.predict(X), atol=1e-2)
    assert OperatorRidge(random_state=0, length_scale="median").fit(X, y[:, 0]).predict(X).shape == (200,)


def test_wrong_arguments_are_named(field):
    X, y = field
    for arguments, match in [
        ({"kernel": "rotating"}, "kernel"),
        ({"A": "wrong"}, "A must be"),
        ({"A": [[1.0, 2.0], [2.0, 1.0]]}, "positive semi-definite"),
        ({"solver": "newton"}, "solver"),
        ({"alpha": -1.0}, "alpha"),
        ({"kernel": "curl_free", "solver": "stein"}, "stein"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=match):
            OperatorRidge(**arguments).fit(X, y)
    with pytest.raises(ValueError, match="target"):
        OperatorRidge("curl_free").fit(X, y[:, :2])


def test_codes_of_a_simplex():
    for classes in (2, 3, 10):
        codes = bochner.simplex_codes(classes)
        expected = (1 + 1 / (classes - 1)) * np.eye(classes) - 1 / (classes - 1)
        np.testing.assert_allclose(codes @ codes.T, expected, atol=1e-14)
    with pytest.raises(ValueError, match="n_classes"):
        bochner.simplex_codes(0)


@pytest.mark.parametrize("coding", ["simplex", "one_hot"])
def test_classifiers_tell_three_classes_apart(coding):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.array(["far", "left", "right"])[np.where(np.hypot(*X.T) > 1.5, 0, np.where(X[:, 0] < 0, 1, 2))]
    model = OperatorRidgeClassifier(length_scale=0.7, coding=coding, alpha=1e-2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.decision_function(X).shape == (300, 3)
    two = OperatorRidgeClassifier(alpha=1e-2, random_state=0).fit(X, y == "far")
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)


def test_a_rotation_is_learned_from_its_past():
    t = 0.1 * np.arange(300)
    X, y = bochner.lagged_rows(np.c_[np.cos(t), np.sin(t)], 2)
    assert X.shape == (298, 4) and y.shape == (298, 2)
    np.testing.assert_array_equal(X[0], [np.cos(0.1), np.sin(0.1), 1.0, 0.0])
    assert OperatorRidge(length_scale=2.0, alpha=1e-6, random_state=0).fit(X, y).score(X, y) > 0.9999


@pytest.mark.parametrize("A", [None, "learned", "covariance", [[2.0, 0.5], [0.5, 1.0]]], ids=str)
def test_an_operator_regression_may_see_its_rows_in_parts(rng, A):
    X = rng.normal(size=(2500, 2))
    y = np.stack([np.sin(X[:, 0]), np.cos(X[:, 1])], axis=1)
    model = OperatorRidge(n_components=64, A=A, alpha=0.1, random_state=0)
    whole = clone(model).fit(X, y)
    parts = clone(model)
    for piece in np.array_split(np.arange(2500), 5):
        parts.partial_fit(X[piece], y[piece])
    if A == "covariance":
        # That of the first rows.
        np.testing.assert_allclose(parts.A_, np.cov(y[:500], rowvar=False, bias=True))
        whole = clone(model).set_params(A=parts.A_).fit(X, y)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-9)
    assert "fits" in parts.solver_reason_


def test_an_operator_classifier_may_see_its_rows_in_parts(rng):
    X = rng.normal(size=(600, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = OperatorRidgeClassifier(n_components=64, alpha=0.1, random_state=0)
    parts = clone(model)
    for piece in np.array_split(np.arange(600), 3):
        parts.partial_fit(X[piece], y[piece], classes=["a", "b", "c"])
    expected = clone(model).fit(X, y).decision_function(X)
    np.testing.assert_allclose(parts.decision_function(X), expected, atol=1e-9)
