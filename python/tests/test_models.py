"""What ridge models on features promise beyond scikit-learn's checks."""

import json
import pickle
import re
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bochner import (
    FeatureRidge,
    FeatureRidgeClassifier,
    FourierFeatures,
    LocalGPRegressor,
    _bochner,
    exact,
    search,
)
from catalogue import RIDGES

# Those without a map of their own take one of 1,024 features: too many for quick tests.
SMALL = [clone(model).set_params(random_state=5) for model in RIDGES if model.features is not None]
every_model = pytest.mark.parametrize("model", SMALL, ids=repr)


@pytest.fixture
def data(rng):
    """Rows, two targets and weights; more rows than one block of the accumulators."""
    X = rng.normal(size=(2500, 5))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 2])], axis=1) + 0.1 * rng.normal(size=(2500, 2))
    return X, Y, rng.uniform(0.0, 2.0, size=2500)


@pytest.fixture
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def labels_of(model, Y):
    """Targets for a regressor, three labels for a classifier."""
    return Y[:, 0] if isinstance(model, FeatureRidge) else np.digitize(Y[:, 0], [-0.5, 0.5])


def values(model, X):
    return model.predict(X) if isinstance(model, FeatureRidge) else model.decision_function(X)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_streaming_gives_the_ridge_of_the_feature_matrix(data, alpha, fit_intercept, weighted):
    X, Y, weights = data
    weights = weights if weighted else None
    model = FeatureRidge(FourierFeatures(101, random_state=1), alpha=alpha, fit_intercept=fit_intercept)
    model.fit(X, Y, sample_weight=weights)
    Z = model.features_.transform(X)
    reference = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(Z, Y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X), reference.predict(Z), atol=1e-8)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-8)
    one = FeatureRidge(FourierFeatures(101, random_state=1), alpha=alpha, fit_intercept=fit_intercept)
    one.fit(X, Y[:, 1], sample_weight=weights)
    np.testing.assert_allclose(one.predict(X), reference.predict(Z)[:, 1], atol=1e-8)
    assert one.coef_.shape == (Z.shape[1],)
    assert np.ndim(one.intercept_) == 0


@pytest.mark.parametrize("n_classes", [2, 10])
def test_classifier_is_the_ridge_classifier_of_the_feature_matrix(digits, n_classes):
    X, y = digits
    X, y = X[y < n_classes], y[y < n_classes]
    model = FeatureRidgeClassifier(FourierFeatures(200, length_scale=3.0, random_state=1), alpha=0.1).fit(X, y)
    Z = model.features_.transform(X)
    reference = RidgeClassifier(alpha=0.1).fit(Z, y)
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(Z), atol=1e-8)
    np.testing.assert_allclose(model.coef_, np.atleast_2d(reference.coef_), atol=1e-8)
    np.testing.assert_allclose(model.intercept_, np.atleast_1d(reference.intercept_), atol=1e-8)
    assert np.array_equal(model.predict(X), reference.predict(Z))


@every_model
def test_rows_may_come_in_any_number_of_calls(model, data):
    X, Y, weights = data
    y = labels_of(model, Y)
    whole = clone(model).fit(X, y, sample_weight=weights)
    for size in (300, 1024, 2499):
        streamed = clone(model)
        first = {} if isinstance(model, FeatureRidge) else {"classes": [0, 1, 2]}
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            streamed.partial_fit(X[part], y[part], sample_weight=weights[part], **first)
            first = {}
        np.testing.assert_allclose(values(streamed, X), values(whole, X), atol=1e-8)
        np.testing.assert_allclose(streamed.coef_, whole.coef_, atol=1e-8)


@every_model
def test_predictions_between_calls_are_those_of_the_rows_so_far(model, data):
    X, Y, _ = data
    y = labels_of(model, Y)
    first = {} if isinstance(model, FeatureRidge) else {"classes": [0, 1, 2]}
    streamed = clone(model).partial_fit(X[:1000], y[:1000], **first)
    np.testing.assert_allclose(values(streamed, X), values(clone(model).fit(X[:1000], y[:1000]), X), atol=1e-8)
    streamed.partial_fit(X[1000:], y[1000:])
    np.testing.assert_allclose(values(streamed, X), values(clone(model).fit(X, y), X), atol=1e-8)


@every_model
def test_partial_fit_after_fit_says_that_it_starts_anew(model, data):
    X, Y, _ = data
    y = labels_of(model, Y)
    fitted = clone(model).fit(X[:1000], y[:1000])
    with pytest.warns(UserWarning, match="keeps no sums"):
        fitted.partial_fit(X[1000:], y[1000:])
    np.testing.assert_allclose(values(fitted, X), values(clone(model).fit(X[1000:], y[1000:]), X), atol=1e-8)


@every_model
def test_bits_do_not_depend_on_threads(model, data):
    X, Y, _ = data
    y = labels_of(model, Y)
    for dtype in (np.float64, np.float32):
        single = clone(model).set_params(n_jobs=1).fit(X.astype(dtype), y)
        for n_jobs in (2, 3, None):
            other = clone(model).set_params(n_jobs=n_jobs).fit(X.astype(dtype), y)
            assert np.array_equal(other.coef_, single.coef_)
            assert np.array_equal(values(other, X), values(single, X))


@every_model
def test_predictions_of_a_row_do_not_depend_on_the_others(model, data):
    X, Y, _ = data
    fitted = clone(model).fit(X, labels_of(model, Y))
    whole = values(fitted, X)
    for size in (1, 7, 64):
        parts = [values(fitted, X[i : i + size]) for i in range(0, 100, size)]
        assert np.array_equal(np.concatenate(parts)[:100], whole[:100])


@every_model
def test_float32_stays_float32(model, data):
    X, Y, _ = data
    y = labels_of(model, Y)
    single = clone(model).fit(X.astype(np.float32), y)
    double = clone(model).fit(X, y)
    assert values(single, X.astype(np.float32)).dtype == np.float32 == single.coef_.dtype
    assert values(double, X).dtype == np.float64
    np.testing.assert_allclose(values(single, X), values(double, X), atol=2e-3)


@every_model
def test_sparse_rows_give_the_model_of_dense_rows(model, data):
    X, Y, weights = data
    X = np.where(X > 0.5, X, 0.0)
    y = labels_of(model, Y)
    dense = clone(model).fit(X, y, sample_weight=weights)
    thin = clone(model).fit(sparse.csr_matrix(X), y, sample_weight=weights)
    assert np.array_equal(thin.coef_, dense.coef_)
    assert np.array_equal(values(thin, sparse.csc_array(X)), values(dense, X))


@every_model
def test_pickle_keeps_the_bits(model, data):
    X, Y, _ = data
    y = labels_of(model, Y)
    fitted = clone(model).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(values(copy, X), values(fitted, X))
    assert np.array_equal(copy.coef_, fitted.coef_)


@every_model
def test_pickle_in_the_middle_of_a_stream_keeps_the_model_without_its_sums(model, data):
    X, Y, _ = data
    y = labels_of(model, Y)
    first = {} if isinstance(model, FeatureRidge) else {"classes": [0, 1, 2]}
    started = clone(model).partial_fit(X[:1500], y[:1500], **first)
    copy = pickle.loads(pickle.dumps(started))
    assert np.array_equal(values(copy, X), values(started, X))
    with pytest.warns(UserWarning, match="starts anew"):
        copy.partial_fit(X[1500:], y[1500:])
    started.partial_fit(X[1500:], y[1500:])
    np.testing.assert_allclose(values(started, X), values(clone(model).fit(X, y), X), atol=1e-8)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["b", "a", "c"], dtype=object),
        np.array([7, -3, 12]),
        np.array([False, True]),
        np.array([2.0, 1.0]),
        np.array([1, 2], dtype=np.uint8),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels_keep_their_type(data, labels):
    X, Y, _ = data
    y = labels[np.digitize(Y[:, 0], [0.0, 1.0][: len(labels) - 1])]
    model = FeatureRidgeClassifier(FourierFeatures(101, random_state=1), alpha=0.1)
    predicted = model.fit(X, y).predict(X)
    assert predicted.dtype == labels.dtype
    assert set(predicted) <= set(labels)
    # Half of the labels are of one kind: mixed up, they would score less than this.
    assert model.score(X, y) > 0.7
    streamed = clone(model).partial_fit(X, y, classes=labels)
    assert np.array_equal(streamed.predict(X), predicted)


def test_a_single_label_is_always_predicted(data):
    X, _, _ = data
    model = FeatureRidgeClassifier(FourierFeatures(10)).fit(X, np.full(len(X), "only"))
    assert set(model.predict(X)) == {"only"}


def test_streams_refuse_labels_they_were_not_told_about(data):
    X, Y, _ = data
    y = np.digitize(Y[:, 0], [0.0])
    model = FeatureRidgeClassifier(FourierFeatures(10))
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match=re.escape("not in classes: [1]")):
        clone(model).partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="not the same as on the first call"):
        model.partial_fit(X, y, classes=[0, 1]).partial_fit(X, y, classes=[0, 2])


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        ({"alpha": -1.0}, ValueError, "alpha must be a non-negative finite number, got -1"),
        ({"alpha": "a"}, ValueError, 'alpha must be a number(, | or "loo", )got ["\']a["\']'),
        ({"alpha": np.nan}, ValueError, "alpha must be a finite number, got nan"),
        ({"solver": "magic"}, ValueError, 'solver must be .*"cholesky".*, got "magic"'),
        ({"features": StandardScaler()}, TypeError, "features must be a transformer of bochner, got StandardScaler"),
        ({"features": FourierFeatures(0)}, ValueError, "n_components must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a non-zero integer"),
    ],
    ids=str,
)
@every_model
def test_bad_arguments_are_named(model, data, parameters, error, message):
    X, Y, _ = data
    model = clone(model).set_params(**parameters)
    with pytest.raises(error, match=message):
        model.fit(X, labels_of(model, Y))
    with pytest.raises(NotFittedError):
        model.predict(X)


@every_model
def test_bad_data_are_refused_in_scikit_learns_words(model, data):
    X, Y, weights = data
    y = labels_of(model, Y)
    damaged = X.copy()
    damaged[1800, 2] = np.nan
    model = clone(model)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(damaged, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X, y).predict(damaged)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="[nN]egative"):
        model.fit(X, y, sample_weight=-weights)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.fit(X[0], y[:1])


def test_features_are_cloned_and_keep_their_own_seed(data):
    X, Y, _ = data
    features = FourierFeatures(20, random_state=3)
    model = FeatureRidge(features, random_state=4).fit(X, Y)
    assert not hasattr(features, "map_")
    assert model.features_.spec_["seed"] == 3
    assert FeatureRidge(FourierFeatures(20), random_state=4).fit(X, Y).features_.spec_["seed"] == 4


def test_search_reaches_into_the_features(digits):
    X, y = digits
    model = make_pipeline(StandardScaler(), FeatureRidgeClassifier(FourierFeatures(random_state=0), alpha=0.1))
    grid = {
        "featureridgeclassifier__features__n_components": [16, 256],
        "featureridgeclassifier__features__length_scale": [8.0],
    }
    search = GridSearchCV(model, grid, cv=2).fit(X[:600], y[:600])
    assert search.best_params_["featureridgeclassifier__features__n_components"] == 256
    assert search.best_score_ > 0.7


def test_an_indefinite_system_says_which_penalty_would_help(rng):
    X = rng.normal(size=(50, 3))
    model = FeatureRidge(FourierFeatures(40, length_scale=100.0, random_state=0), alpha=0.0)
    try:
        model.fit(X, X[:, 0])
    except RuntimeError as error:
        assert "penalty of at least" in str(error)


@every_model
def test_progress_is_shown_where_asked_for(model, data, capsys):
    X, Y, _ = data
    clone(model).fit(X, labels_of(model, Y))
    assert capsys.readouterr().err == ""
    clone(model).set_params(verbose=1).fit(X, labels_of(model, Y))
    assert type(model).__name__ in capsys.readouterr().err


QUIET = [
    exact.KernelRidge(),
    exact.GPRegressor(),
    exact.GPClassifier(),
    exact.KernelSVC(),
    exact.OperatorRidge(),
    LocalGPRegressor(33),
]


@pytest.mark.parametrize("model", QUIET, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("with_bar", [True, False], ids=["tqdm", "without"])
def test_models_without_a_stream_of_rows_show_progress_too(model, data, capsys, monkeypatch, with_bar):
    if not with_bar:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    X, Y, _ = data
    X, y = X[:80], (Y[:80, 0] > 0).astype(int)
    clone(model).fit(X, y)
    assert capsys.readouterr().err == ""
    clone(model).set_params(verbose=1).fit(X, y)
    told = capsys.readouterr().err
    assert type(model).__name__ in told
    assert ("steps" if isinstance(model, exact.KernelSVC) else "rows") in told


def test_progress_counts_rows_and_steps(data):
    X, Y, _ = data
    X, y, gaussian = X[:90], Y[:90, :1], '{"kernel": "gaussian", "length_scale": 1.0}'
    seen = []

    def see(done, total):
        seen.append(done)

    _bochner.fit("exact_kernel_ridge", gaussian, X, y, None, '{"alpha": 0.1}', progress=see)
    assert seen[-1] == 2 * 90  # rows of the kernel matrix, made and factorised
    plan = '{"C": 1.0, "tol": 0.001, "max_iter": null, "memory_budget": null}'
    machine = _bochner.fit("kernel_svm", gaussian, X, (y > 0).astype(float), None, plan, progress=see)
    assert seen[-1] == sum(report["steps"] for report in json.loads(machine.learned("reports"))) > 0
    local = _bochner.fit("local_gp", None, X, y, None, '{"n_components": 17, "noise": 0.1}', seed=1, progress=see)
    # Around every centroid all rows, and a factor with a row for every feature.
    per_centroid, rest = divmod(seen[-1], len(local.learned("centroids")))
    assert rest == 0 and 90 < per_centroid <= 90 + 17


@pytest.mark.parametrize("solver", ["cholesky", "dual", "cg"])
@pytest.mark.parametrize("classify", [False, True])
def test_every_solver_finds_the_same_coefficients(data, solver, classify):
    X, Y, weights = data
    X, y, weights = X[:300], Y[:300, 0], weights[:300]
    estimator = FeatureRidgeClassifier if classify else FeatureRidge
    y = np.digitize(y, [-0.5, 0.5]) if classify else y
    features = FourierFeatures(128, random_state=1)
    expected = Ridge(alpha=0.1).fit(
        features.fit(X).transform(X), 2.0 * (y[:, np.newaxis] == np.unique(y)) - 1 if classify else y, weights
    )
    model = estimator(features, alpha=0.1, solver=solver, tol=1e-13).fit(X, y, weights)
    assert model.solver_ == solver
    assert model.solver_reason_ == "asked for"
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
    assert (model.n_iter_ > 1) == (solver == "cg")


def test_stochastic_gradients_come_close(data):
    X, Y, _ = data
    features = FourierFeatures(64, random_state=1)
    exact = FeatureRidge(features, alpha=1.0, solver="cholesky").fit(X, Y)
    near = FeatureRidge(features, alpha=1.0, solver="sgd", max_iter=20).fit(X, Y)
    assert near.solver_ == "sgd"
    # What is lost against the exact solution is below a hundredth of what there is to explain.
    lost = ((near.predict(X) - Y) ** 2).mean() - ((exact.predict(X) - Y) ** 2).mean()
    assert lost < 0.01 * Y.var()


def test_the_automatic_solver_says_why(data):
    X, Y, _ = data
    y = Y[:, 0]
    few = FeatureRidge(FourierFeatures(64, random_state=1)).fit(X[:30], y[:30])
    assert few.solver_ == "dual"
    assert "30 rows are fewer than 64 features" in few.solver_reason_
    many = FeatureRidge(FourierFeatures(64, random_state=1)).fit(X, y)
    assert many.solver_ == "cholesky"
    assert "the Gram matrix of 64 features fits" in many.solver_reason_
    wide = FourierFeatures(2048, random_state=1)
    tight = FeatureRidge(wide, memory_budget=60_000_000, max_iter=3, tol=0.5, solver="auto")
    with pytest.raises((MemoryError, RuntimeError)):
        tight.set_params(memory_budget=1000).fit(X, y)
    tight.set_params(memory_budget=45_000_000).fit(X, y)
    assert tight.solver_ == "cg"
    assert "beyond a budget of 45 MB" in tight.solver_reason_


def test_solvers_are_named_in_complaints(data):
    X, Y, _ = data
    with pytest.raises(ValueError, match='solver must be "auto", "cholesky", "dual", "cg" or "sgd", got "svd"'):
        FeatureRidge(FourierFeatures(16), solver="svd").fit(X, Y)
    with pytest.raises(ValueError, match="tol must be"):
        FeatureRidge(FourierFeatures(16), solver="cg", tol=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match="max_iter must be"):
        FeatureRidge(FourierFeatures(16), solver="sgd", max_iter=0).fit(X, Y)


@pytest.mark.parametrize("classify", [False, True])
def test_a_search_judges_as_refitting_would(data, classify):
    X, Y, weights = data
    X, weights = X[:400], weights[:400]
    y = np.digitize(Y[:400, 0], [-0.5, 0.5]) if classify else Y[:400, 0]
    model = (FeatureRidgeClassifier if classify else FeatureRidge)(FourierFeatures(32, random_state=1))
    grid, alphas = {"length_scale": [0.3, 2.0], "n_components": [16, 32]}, [1e-3, 1.0]
    found = search(model, X, y, grid, alphas=alphas, cv=0.25, sample_weight=weights)
    assert found.losses.shape == (8, 1)
    assert found.best_params == found.params[int(np.argmin(found.losses[:, 0]))]
    assert found.model.get_params()["features__length_scale"] == found.best_params["features__length_scale"]
    # Rows alone decide about the split: the same one for every combination, and the next seed has another.
    again = search(model, X, y, grid, alphas=alphas[:1], cv=0.25, sample_weight=weights)
    assert np.array_equal(again.losses, found.losses[::2])
    other = search(model, X, y, grid, alphas=alphas, cv=0.25, sample_weight=weights, random_state=1)
    assert not np.array_equal(other.losses, found.losses)
    assert str(found).splitlines()[0].split() == ["loss", "alpha", "features__length_scale", "features__n_components"]


def test_a_random_search_draws_from_distributions(data):
    X, Y, _ = data
    model = FeatureRidge(FourierFeatures(16, random_state=1))
    found = search(model, X[:300], Y[:300], {"length_scale": loguniform(0.1, 10.0)}, n_iter=5, cv=3)
    assert found.losses.shape == (45, 3)
    drawn = {params["features__length_scale"] for params in found.params}
    assert len(drawn) == 5
    assert all(0.1 <= scale <= 10.0 for scale in drawn)
    with pytest.raises(ValueError, match="at least 2 folds"):
        search(model, X, Y, {"length_scale": [1.0]}, cv=1)
    with pytest.raises(TypeError, match="model must be FeatureRidge"):
        search(Ridge(), X, Y, {})
