"""Features and processes of several outputs that are one function: arrays, dense algebra, hyperparameters, files."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import bochner
from bochner import OperatorFeatures, OperatorGPRegressor, OperatorRidge, kernels

KERNELS = [
    kernels.CurlFree(1.3),
    kernels.DivergenceFree([0.8, 1.4]),
    kernels.Helmholtz(1.2, 0.3, base="matern", nu=9.5),
    kernels.Decomposable([[2.0, 0.5], [0.5, 1.0]], kernels.Matern(2.5, 1.5)),
]


@pytest.fixture
def flow(rng):
    X = rng.uniform(-2, 2, size=(150, 2))
    y = np.c_[-np.sin(X[:, 1]), np.sin(X[:, 0])] + 0.1 * rng.normal(size=(150, 2))
    return X, y


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_features_multiply_to_an_estimate_with_the_variance_that_is_known(kernel, flow):
    X = flow[0][:6]
    draws = [OperatorFeatures(64, kernel=kernel, projection="gaussian", random_state=seed).fit(X) for seed in range(200)]
    Phi = draws[0].transform(X)
    assert Phi.shape == (6, 2, draws[0].n_columns_) and draws[0].n_outputs_ == 2
    np.testing.assert_allclose(np.einsum("iae,jbe->ijab", Phi, Phi), draws[0].estimate(X), atol=1e-12)
    K = draws[0].exact_kernel(X)
    np.testing.assert_allclose(K, kernel(X), atol=1e-14)
    errors = np.array([features.estimate(X) - K for features in draws])
    expected = np.trace(draws[0].variance(X), axis1=2, axis2=3)
    squares = (errors**2).sum(axis=(3, 4))
    # Six standard errors of the mean of 200 squared norms.
    assert (abs(squares.mean(axis=0) - expected) <= 6 * squares.std(axis=0) / np.sqrt(200) + 1e-14).all()


def test_bounds_cotangents_and_outputs_of_features(flow, rng):
    X, y = flow
    features = OperatorFeatures(64, kernel="curl_free", random_state=0).fit(X)
    largest = np.linalg.eigvalsh(features.variance(X[:5], X[5:9])).max(axis=-1)
    assert (largest <= features.variance_bound(X[:5], X[5:9]) * (1 + 1e-12)).all()
    related = OperatorFeatures(64, kernel=KERNELS[3], random_state=0).fit(X)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(related.variance(X[:5])).max(axis=-1), related.variance_bound(X[:5]), atol=1e-14
    )
    assert features.bound(0.5, 2.0) == 1.0
    many = OperatorFeatures(1 << 24, kernel="curl_free", random_state=0)
    assert clone(many).get_params()["n_components"] == 1 << 24
    with pytest.raises(ValueError, match="error must be a positive number"):
        features.bound(-1.0, 2.0)
    u = rng.normal(size=features.transform(X).shape)
    pulled, h = features.pullback(X, u), 1e-6
    for column in range(2):
        step = h * np.eye(2)[column]
        slope = ((features.transform(X + step) - features.transform(X - step)) * u).sum(axis=(1, 2)) / (2 * h)
        np.testing.assert_allclose(pulled[:, column], slope, atol=1e-6)
    assert OperatorFeatures(8).fit(X).transform(X).shape == (150, 1, 8)
    assert OperatorFeatures(8).fit(X, y).transform(X).shape == (150, 2, 16)
    assert OperatorFeatures(1, A=np.eye(3)).fit(X).transform(X).shape == (150, 3, 6)
    again = pickle.loads(pickle.dumps(features))
    assert np.array_equal(again.transform(X), features.transform(X)) and again.spec_ == features.spec_
    with pytest.raises(ValueError, match="only constants have no divergence"):
        OperatorFeatures(8, kernel="divergence_free").fit(X[:, :1])
    with pytest.raises(ValueError, match="number of length scales is 3"):
        OperatorFeatures(8, kernel="curl_free", length_scale=[1.0, 1.0, 1.0]).fit(X)
    with pytest.raises(ValueError, match="one number for a decomposable kernel"):
        OperatorFeatures(8, length_scale=[1.0, 1.0]).fit(X)


def test_features_serve_a_solver_of_ones_own(flow):
    X, y = flow
    features = OperatorFeatures(128, kernel="helmholtz", random_state=3).fit(X)
    Phi = features.transform(X).reshape(300, -1)
    theta = np.linalg.solve(Phi.T @ Phi + 0.1 * np.eye(Phi.shape[1]), Phi.T @ y.ravel())
    model = OperatorRidge("helmholtz", n_components=128, alpha=0.1, fit_intercept=False, random_state=3).fit(X, y)
    np.testing.assert_allclose(features.transform(X) @ theta, model.predict(X), atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_a_process_is_that_of_the_estimated_kernel(kernel, flow):
    X, y = flow
    X, y, new = X[:20], y[:20], X[20:24]
    model = OperatorGPRegressor(kernel, 32, noise=0.05, signal=0.7, normalize_y=False, random_state=0).fit(X, y)
    features = OperatorFeatures(32, kernel=kernel, random_state=0).fit(X)

    def matrix(A, B):
        return 0.7 * features.estimate(A, B).transpose(0, 2, 1, 3).reshape(2 * len(A), 2 * len(B))

    K = matrix(X, X) + 0.05 * np.eye(40)
    mean = matrix(new, X) @ np.linalg.solve(K, y.ravel())
    cov = matrix(new, new) - matrix(new, X) @ np.linalg.solve(K, matrix(X, new))
    found, all_pairs = model.predict(new, return_cov=True)
    np.testing.assert_allclose(found.ravel(), mean, atol=1e-9)
    np.testing.assert_allclose(all_pairs.transpose(0, 2, 1, 3).reshape(8, 8), cov, atol=1e-9)
    _, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(std.ravel() ** 2, cov.diagonal(), atol=1e-9)
    _, observed = model.predict(new, return_std=True, include_noise=True)
    np.testing.assert_allclose(observed**2 - std**2, 0.05, atol=1e-9)
    likelihood = -0.5 * (y.ravel() @ np.linalg.solve(K, y.ravel()) + np.linalg.slogdet(2 * np.pi * K)[1])
    assert model.log_marginal_likelihood_value_ == pytest.approx(likelihood, abs=1e-7)


def test_quantities_of_a_field_have_shapes_deviations_and_signs(flow):
    X, y = flow
    model = OperatorGPRegressor("helmholtz", 256, noise=0.05, random_state=0).fit(X, y)
    at = np.array([[0.3, -0.4], [8.0, 8.0]])
    divergence, std = model.divergence(at, return_std=True)
    assert divergence.shape == std.shape == (2,) and std[1] > 5 * std[0]
    assert np.array_equal(model.divergence(at), divergence)
    vorticity, spread = model.vorticity(at, return_std=True)
    assert abs(vorticity[0] - (np.cos(0.3) + np.cos(-0.4))) < 5 * spread[0] < 3.0
    J, deviations = model.jacobian(at, return_std=True)
    assert J.shape == deviations.shape == (2, 2, 2)
    np.testing.assert_allclose(model.jacobian(at), J)
    np.testing.assert_allclose(np.trace(J, axis1=1, axis2=2), divergence, atol=1e-10)
    np.testing.assert_allclose(J[:, 1, 0] - J[:, 0, 1], vorticity, atol=1e-10)
    h = 1e-5 * np.eye(2)
    s, p = model.stream_function, model.potential
    east = (p(at + h[0]) - p(at - h[0]) - s(at + h[1]) + s(at - h[1])) / 2e-5
    np.testing.assert_allclose(east, model.predict(at)[:, 0] - y[:, 0].mean(), atol=1e-5)
    samples = model.sample_y(at, 3, random_state=1)
    assert samples.shape == (2, 2, 3)
    function = model.sample_functions(3, random_state=1)[2]
    np.testing.assert_allclose(function(at), samples[:, :, 2])
    assert function.gradient(at).shape == (2, 2, 2)
    assert model.potential(at, return_std=True)[1].shape == (2,)
    related = OperatorGPRegressor(n_components=64, random_state=0).fit(X, y)
    assert related.divergence(at).shape == (2,)
    with pytest.raises(Exception, match="decomposable kernel have none"):
        related.potential(at)


def test_a_search_finds_the_kind_of_a_flow(flow):
    X, y = flow
    model = OperatorGPRegressor("helmholtz", 128, length_scale=0.2, optimizer="lbfgs", random_state=0).fit(X, y)
    assert model.searched_ == ["length_scale", "curl_free", "signal", "noise"] and model.fixed_ == []
    assert model.kernel_["curl_free"] < 0.1
    # Three hundred numbers with noise of variance 0.01.
    noise = model.predict(X[:1], return_std=True, include_noise=True)[1] ** 2 - model.predict(X[:1], return_std=True)[1] ** 2
    assert noise[0, 0] == pytest.approx(0.01, rel=0.4)
    before = OperatorGPRegressor("helmholtz", 128, length_scale=0.2, random_state=0).fit(X, y)
    assert model.log_marginal_likelihood_value_ > before.log_marginal_likelihood_value_ + 50
    assert (before.searched_, before.fixed_, before.converged_, before.n_iter_) == ([], [], True, 1)
    stretched = OperatorGPRegressor(
        kernels.Helmholtz([0.3, 0.3], base="matern", nu=4.5), 32, optimizer="lbfgs", length_scales="per_input", max_iter=40, random_state=0
    ).fit(X, y)
    assert len(stretched.kernel_["length_scale"]) == 2 and stretched.fixed_ == ["nu"]
    kept = OperatorGPRegressor("curl_free", 64, optimizer="lbfgs", length_scales="fixed", random_state=0).fit(X, y)
    assert kept.kernel_["length_scale"] == 1.0 and kept.fixed_ == ["length_scale"]
    related = OperatorGPRegressor(n_components=64, A="covariance", optimizer="lbfgs", random_state=0).fit(X, y)
    assert "A" in related.fixed_ and "length_scale" in related.searched_


def test_rows_in_parts_files_and_pickles_give_the_same_process(flow, tmp_path):
    X, y = flow
    for kernel in ["helmholtz", kernels.DivergenceFree([1.0, 1.5], base="matern", nu=3.5), "decomposable"]:
        model = OperatorGPRegressor(kernel, 64, random_state=0)
        whole = clone(model).fit(X, y)
        parts = clone(model).partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:])
        np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-9)
        whole.save(tmp_path / "field.bochner")
        again = bochner.load(tmp_path / "field.bochner")
        assert repr(again) == repr(whole) and again.noise_ == whole.noise_ and again.kernel_ == whole.kernel_
        for other in (again, pickle.loads(pickle.dumps(whole))):
            assert np.array_equal(other.predict(X), whole.predict(X))
            assert np.array_equal(other.divergence(X, return_std=True), whole.divergence(X, return_std=True))
    single = OperatorGPRegressor("helmholtz", 64, random_state=0).fit(X.astype(np.float32), y)
    assert single.predict(X).dtype == np.float32
    np.testing.assert_allclose(single.predict(X), OperatorGPRegressor("helmholtz", 64, random_state=0).fit(X, y).predict(X), atol=1e-3)


def test_bad_input_is_told_in_a_sentence(flow):
    X, y = flow
    for arguments, message in [
        ({"kernel": "flow"}, 'kernel must be "decomposable", "curl_free", "divergence_free", "helmholtz"'),
        ({"A": "learned"}, 'A must be a matrix, "covariance" or None'),
        ({"noise": 0.0}, "noise must be"),
        ({"length_scales": "metric"}, "length_scales must be"),
        ({"kernel": "helmholtz", "length_scale": [1.0, 2.0, 3.0]}, "number of length scales is 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            OperatorGPRegressor(**arguments).fit(X, y)
    with pytest.raises(ValueError, match="only constants have no divergence"):
        OperatorGPRegressor("helmholtz").fit(X[:, :1], y[:, :1])
    with pytest.raises(ValueError, match="number of target columns"):
        OperatorGPRegressor("curl_free").fit(X, y[:, :1])
    with pytest.raises(ValueError, match="above 1"):
        kernels.CurlFree(base="matern", nu=0.5)
    rough = OperatorGPRegressor(kernels.Helmholtz(base="matern", nu=1.5), 32, random_state=0).fit(X, y)
    with pytest.raises(Exception, match="too rough"):
        rough.vorticity(X)
    assert hash(kernels.CurlFree([1.0, 2.0])) == hash(kernels.CurlFree((1.0, 2.0)))
