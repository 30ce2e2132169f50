"""Exact kernels against scikit-learn's."""

import pickle

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from bochner import FourierFeatures, kernels, metrics

PAIRS = [
    (kernels.Polynomial(), lambda X, Y: pairwise.polynomial_kernel(X, Y, degree=2, gamma=1.0, coef0=0.0)),
    (kernels.Polynomial(3, 0.5, 2.0), lambda X, Y: pairwise.polynomial_kernel(X, Y, degree=3, gamma=0.5, coef0=2.0)),
    (kernels.Exponential(2.0), lambda X, Y: np.exp(X @ Y.T / 4.0)),
    (kernels.Gaussian(0.7), lambda X, Y: pairwise.rbf_kernel(X, Y, gamma=0.5 / 0.49)),
    (kernels.Matern(nu=1.5, length_scale=0.7), lambda X, Y: gp.Matern(0.7, nu=1.5)(X, Y)),
    (kernels.Matern(nu=0.8, length_scale=0.7), lambda X, Y: gp.Matern(0.7, nu=0.8)(X, Y)),
    (kernels.Laplacian(0.7, norm=1), lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=1 / 0.7)),
    (kernels.Laplacian(0.7), lambda X, Y: gp.Matern(0.7, nu=0.5)(X, Y)),
    (kernels.Optical(), lambda X, Y: np.outer((X**2).sum(1), (Y**2).sum(1)) + (X @ Y.T) ** 2),
]
every_kernel = pytest.mark.parametrize("kernel, reference", PAIRS, ids=[repr(kernel) for kernel, _ in PAIRS])


@every_kernel
def test_kernel_is_the_one_scikit_learn_knows(kernel, reference, rows):
    X, Y = rows[:30], rows[30:70]
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-10)
    np.testing.assert_allclose(kernel(X), reference(X, X), rtol=1e-10, atol=1e-14)
    assert np.array_equal(kernel(sparse.csr_array(X), Y), kernel(X, Y))


@every_kernel
def test_dtype_follows_the_rows(kernel, reference, rows):
    X = rows.astype(np.float32)
    assert kernel(X).dtype == np.float32
    assert kernel(X, rows).dtype == np.float64
    np.testing.assert_allclose(kernel(X), kernel(rows), rtol=1e-5, atol=1e-6)


@every_kernel
def test_kernels_are_values(kernel, reference):
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel
    assert hash(copy) == hash(kernel)
    assert eval(repr(kernel), vars(kernels)) == kernel


def test_kernels_serve_scikit_learn(rows):
    y = rows[:, 0] > 0
    ours = SVC(kernel=kernels.Gaussian(1.0)).fit(rows, y)
    theirs = SVC(kernel="rbf", gamma=0.5).fit(rows, y)
    np.testing.assert_allclose(ours.decision_function(rows), theirs.decision_function(rows), atol=1e-6)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: kernels.Gaussian(-1.0), "length_scale must be a positive finite number, got -1"),
        (lambda: kernels.Gaussian(np.inf), "length_scale must be a finite number, got inf"),
        (lambda: kernels.Gaussian("a"), 'length_scale must be a number, got "a"'),
        (lambda: kernels.Polynomial(degree=1.5), "degree must be a non-negative integer, got 1.5"),
        (lambda: kernels.Laplacian(norm=3), "norm must be"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_rows_are_refused(rows):
    with pytest.raises(ValueError, match="Expected 2D array"):
        kernels.Gaussian()(rows[0])
    with pytest.raises(ValueError, match="columns"):
        kernels.Gaussian()(rows, rows[:, :3])
    with pytest.raises(ValueError, match="Input Y contains NaN"):
        kernels.Gaussian()(rows, np.full((2, 7), np.nan))


def test_relative_frobenius_error_is_numpys(rng):
    K, K_hat = rng.normal(size=(5, 8)), rng.normal(size=(5, 8))
    expected = np.linalg.norm(K - K_hat) / np.linalg.norm(K)
    assert metrics.relative_frobenius_error(K, K_hat) == pytest.approx(expected, rel=1e-14)
    assert metrics.relative_frobenius_error(K, K_hat + 1j) == pytest.approx(expected, rel=1e-14)
    assert metrics.relative_frobenius_error(K, K) == 0.0
    with pytest.raises(ValueError, match="number of"):
        metrics.relative_frobenius_error(K, K_hat[:4])


def test_gaussian_kl_is_that_of_normal_distributions(rng):
    mean, exact_mean = rng.normal(size=(2, 50, 3))
    var, exact_var = rng.uniform(0.5, 2.0, size=(2, 50, 3))
    terms = 0.5 * (np.log(exact_var / var) + (var + (mean - exact_mean) ** 2) / exact_var - 1)
    assert metrics.gaussian_kl(mean, var, exact_mean, exact_var) == pytest.approx(terms.sum() / 3, rel=1e-12)
    one = metrics.gaussian_kl(mean[:, 0], var[:, 0], exact_mean[:, 0], exact_var[:, 0])
    assert one == pytest.approx(terms[:, 0].sum(), rel=1e-12)
    with pytest.raises(ValueError):
        metrics.gaussian_kl(mean, var[:-1], exact_mean, exact_var)


def test_mean_negative_log_likelihood_is_scipys(rng):
    y, mean = rng.normal(size=(2, 50))
    var = rng.uniform(0.5, 2.0, size=50)
    expected = -stats.norm.logpdf(y, mean, np.sqrt(var)).mean()
    assert metrics.mean_negative_log_likelihood(y, mean, var) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError):
        metrics.mean_negative_log_likelihood(y, mean[:-1], var)


def test_mmd2_is_the_unbiased_sum_over_pairs(rng):
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(30, 3)) + 0.5
    for kernel in (kernels.Gaussian(1.5), kernels.Polynomial(3, 1 / 3, 1.0)):
        off_x, off_y = kernel(X), kernel(Y)
        np.fill_diagonal(off_x, 0.0)
        np.fill_diagonal(off_y, 0.0)
        expected = off_x.sum() / (20 * 19) + off_y.sum() / (30 * 29) - 2 * kernel(X, Y).mean()
        assert metrics.mmd2(X, Y, kernel) == pytest.approx(expected, rel=1e-10)
    assert metrics.kid(X, Y) == pytest.approx(expected, rel=1e-10)
    with pytest.raises(TypeError, match="kernel must be one of bochner.kernels"):
        metrics.mmd2(X, Y, "gaussian")


def test_kid_from_features_is_that_of_their_inner_products(rng):
    X, Y = rng.normal(size=(1500, 3)), rng.normal(size=(1100, 3)) + 0.5
    features = FourierFeatures(64, random_state=0)
    Z, W = (clone(features).fit(X).transform(rows) for rows in (X, Y))
    off = (Z.sum(0) @ Z.sum(0) - (Z**2).sum()) / (1500 * 1499) + (W.sum(0) @ W.sum(0) - (W**2).sum()) / (1100 * 1099)
    expected = off - 2 * Z.mean(0) @ W.mean(0)
    assert metrics.kid(X, Y, features) == pytest.approx(expected, rel=1e-10)


def test_parameters_that_scikit_learn_has_in_another_order_are_named():
    with pytest.warns(FutureWarning, match=r"Matern\(nu=\.\.\., length_scale=\.\.\.\)"):
        old = kernels.Matern(2.5, 0.7)
    assert old == kernels.Matern(nu=2.5, length_scale=0.7)
