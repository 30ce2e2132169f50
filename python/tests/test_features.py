"""What every transformer promises beyond scikit-learn's checks."""

import pickle
import threading

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from bochner import FourierFeatures, OpticalFeatures
from bochner.metrics import relative_frobenius_error
from catalogue import FEATURES, OTHER_FEATURES


def seeded(maps):
    return [clone(features).set_params(random_state=3) for features in maps]


def over(maps):
    return pytest.mark.parametrize("features", maps, ids=repr)


SEEDED = seeded(FEATURES)
ALL = SEEDED + seeded(OTHER_FEATURES)
# Orthogonal frequencies of other kernels than the Gaussian one have no closed form, nor have transforms that random
# degrees share.
UNKNOWN_VARIANCE = [
    f
    for f in ALL
    if f.get_params().get("kernel") == "laplacian"
    or f.get_params().get("allocation") == "random"
]
every_map = over(ALL)
# Frames hold real numbers.
every_real_map = over([f for f in ALL if not f._complex_output()])
# The others have biases, or tails too heavy for a chi-square test; files of their own test what they promise.
every_unbiased_map = over(SEEDED)
every_known_variance = over([f for f in SEEDED if f not in UNKNOWN_VARIANCE])
# The first of every class.
every_class = over(list({type(f): f for f in reversed(ALL)}.values())[::-1])


@every_map
def test_seed_decides_the_bits(features, rows):
    first, second = clone(features).fit_transform(rows), clone(features).fit_transform(rows)
    assert np.array_equal(first, second)
    other = clone(features).set_params(random_state=4).fit_transform(rows)
    assert not np.array_equal(first, other)


@every_map
def test_bits_do_not_depend_on_threads_or_blocks(features, rng):
    rows = rng.normal(size=(1000, 7))
    features = clone(features).fit(rows)
    whole = features.set_params(n_jobs=1).transform(rows)
    for n_jobs in (2, 5, -1, None):
        assert np.array_equal(features.set_params(n_jobs=n_jobs).transform(rows), whole)
    for size in (1, 7, 64, 65):
        parts = [features.transform(rows[i : i + size]) for i in range(0, 130, size)]
        assert np.array_equal(np.concatenate(parts)[:130], whole[:130])


@every_map
def test_budget_of_columns_is_respected(features, rows):
    n_columns = clone(features).fit_transform(rows).shape[1]
    assert features.n_components - 1 <= n_columns <= features.n_components


@every_map
def test_float32_stays_float32_and_is_the_rounded_map(features, rows):
    features = clone(features).fit(rows)
    single = features.transform(rows.astype(np.float32))
    double = features.transform(rows)
    assert single.dtype.itemsize * 2 == double.dtype.itemsize
    # Most of the numbers: frequencies of heavy-tailed spectra multiply the rounding of the rows.
    assert np.quantile(np.abs(single - double), 0.9) < 1e-5
    assert clone(features).fit_transform(rows.astype(np.float32)).dtype == single.dtype


@every_map
@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: np.repeat(a, 3, axis=1)[:, ::3],
        lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
        lambda a: a.astype(">f8"),
        lambda a: _read_only(a),
        lambda a: _unaligned(a),
        lambda a: a.tolist(),
        pd.DataFrame,
    ],
    ids=["fortran", "rows apart", "columns apart", "reversed", "big endian", "read only", "unaligned", "lists", "frame"],
)
def test_layout_in_memory_does_not_matter(features, rows, layout):
    features = clone(features).fit(rows)
    assert np.array_equal(features.transform(layout(rows)), features.transform(rows))


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def _unaligned(array):
    record = np.zeros(array.shape, dtype=np.dtype([("flag", "u1"), ("value", "f8")]))
    record["value"] = array
    assert not record["value"].flags.aligned
    return record["value"]


@every_map
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.bool_, np.float16, object])
def test_other_numbers_become_float64(features, rng, dtype):
    rows = rng.integers(0, 2, size=(50, 7))
    rows[:, 0] = 1  # no row of zeros, which some maps refuse
    features = clone(features).fit(rows.astype(dtype))
    assert np.array_equal(features.transform(rows.astype(dtype)), features.transform(rows.astype(np.float64)))


@every_map
def test_sparse_rows_give_the_features_of_dense_rows(features, rows):
    sparse = pytest.importorskip("scipy.sparse")
    rows = np.where(rows > 0.2, rows, 0.0)
    rows[:, 0] = 1.0  # no row of zeros, which some maps refuse
    features = clone(features).fit(rows)
    for make in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        assert np.array_equal(features.transform(make(rows)), features.transform(rows))
    assert np.array_equal(clone(features).fit(sparse.csr_array(rows)).transform(rows), features.transform(rows))


@every_map
@pytest.mark.parametrize("value, words", [(np.nan, "contains NaN"), (np.inf, "contains infinity")])
def test_nan_and_infinity_are_refused_in_scikit_learns_words(features, rows, value, words):
    features = clone(features).fit(rows)
    damaged = rows.copy()
    damaged[17, 3] = value
    for call in (features.transform, features.exact_kernel, clone(features).fit):
        with pytest.raises(ValueError, match=f"Input X {words}"):
            call(damaged)
    with pytest.raises(ValueError, match=f"Input Y {words}"):
        features.exact_kernel(rows, damaged)


@every_map
def test_wrong_shapes_are_refused_in_scikit_learns_words(features, rows):
    features = clone(features).fit(rows)
    for call in (features.transform, features.exact_kernel, clone(features).fit):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
            call(rows[0])
        with pytest.raises(ValueError, match="0 sample"):
            call(rows[:0])
    with pytest.raises(ValueError, match="0 feature"):
        clone(features).fit(rows[:, :0])
    with pytest.raises(ValueError, match="X has 5 features, but .* is expecting 7 features"):
        features.transform(rows[:, :5])
    with pytest.raises(ValueError, match="could not convert string to float"):
        clone(features).fit([["a", "b"]])


@every_map
def test_nothing_works_before_fit(features, rows):
    features = clone(features)
    for call in (features.transform, features.exact_kernel, features.variance):
        with pytest.raises(NotFittedError):
            call(rows)
    with pytest.raises(NotFittedError):
        features.get_feature_names_out()


@every_map
def test_failed_fit_leaves_the_transformer_unfitted(features, rows):
    features = clone(features).fit(rows)
    with pytest.raises(ValueError):
        features.set_params(n_components=0).fit(rows[:, :3])
    with pytest.raises(NotFittedError):
        features.transform(rows[:, :3])
    assert features.set_params(n_components=16).fit(rows).transform(rows).shape[0] == len(rows)


@every_map
def test_pickle_and_joblib_keep_the_bits(features, rows, tmp_path):
    features = clone(features).fit(rows.astype(np.float32))
    expected = features.transform(rows.astype(np.float32)), features.transform(rows)
    joblib.dump(features, tmp_path / "features.joblib")
    for copy in (pickle.loads(pickle.dumps(features)), joblib.load(tmp_path / "features.joblib")):
        assert np.array_equal(copy.transform(rows.astype(np.float32)), expected[0])
        assert np.array_equal(copy.transform(rows), expected[1])
        assert copy.spec_ == features.spec_


def test_pickle_holds_a_description_instead_of_weights(rows):
    features = clone(FEATURES[0]).set_params(n_components=4096).fit(rows)
    assert len(pickle.dumps(features)) < 4096


@every_map
def test_two_threads_share_a_transformer(features, rng):
    features = clone(features).fit(rng.normal(size=(10, 7)))
    blocks = [rng.normal(size=(3000, 7)).astype(dtype) for dtype in (np.float64, np.float32) * 2]
    expected = [features.transform(block) for block in blocks]
    fresh = pickle.loads(pickle.dumps(features))
    results = [None] * len(blocks)

    def work(i):
        for _ in range(5):
            results[i] = fresh.transform(blocks[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(blocks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(a, b) for a, b in zip(results, expected))


@every_real_map
def test_frames_in_and_out(features, rows):
    names = [f"c{i}" for i in range(7)]
    pandas_rows = pd.DataFrame(rows, columns=names)
    fitted = clone(features).set_output(transform="pandas").fit(pandas_rows)
    frame = fitted.transform(pandas_rows)
    assert list(frame.columns) == list(fitted.get_feature_names_out())
    assert frame.columns[0] == type(features).__name__.lower() + "0"
    polars_rows = pl.DataFrame(rows, schema=names)
    polars_frame = clone(features).set_output(transform="polars").fit(polars_rows).transform(polars_rows)
    assert isinstance(polars_frame, pl.DataFrame)
    assert np.array_equal(polars_frame.to_numpy(), frame.to_numpy())
    assert list(fitted.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(pandas_rows.rename(columns={"c0": "other"}))


def first_digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16, y[:400]


@every_class
def test_pipelines_searches_and_column_transformers_work(features):
    X, y = first_digits()
    pipeline = make_pipeline(Normalizer(), clone(features), RidgeClassifier())
    search = GridSearchCV(pipeline, {f"{type(features).__name__.lower()}__n_components": [1, 48]}, cv=2).fit(X, y)
    # One column tells few of ten digits apart.
    assert search.best_params_[f"{type(features).__name__.lower()}__n_components"] == 48
    columns = ColumnTransformer([("left", clone(features), slice(0, 32)), ("right", clone(features), slice(20, 64))])
    both = columns.fit_transform(X)
    names = columns.get_feature_names_out()
    assert both.shape == (400, len(names))
    assert {name.split("__")[0] for name in names} == {"left", "right"}


def test_searches_work_in_several_processes():
    X, y = first_digits()
    pipeline = make_pipeline(FourierFeatures(length_scale=8.0, random_state=0), RidgeClassifier())
    grid = {"fourierfeatures__n_components": [16, 256]}
    search, alone = (GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs).fit(X, y) for n_jobs in (2, 1))
    assert search.best_params_["fourierfeatures__n_components"] == 256
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


@every_class
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_drawn_from(features, make, rows):
    features = clone(features)
    first = features.set_params(random_state=make(5)).fit_transform(rows)
    # The same generator goes on.
    assert not np.array_equal(features.fit_transform(rows), first)
    assert np.array_equal(clone(features).set_params(random_state=make(5)).fit_transform(rows), first)


@every_class
def test_global_state_of_numpy_decides_where_no_seed_is_given(features, rows):
    unseeded = clone(features).set_params(random_state=None)
    np.random.seed(11)
    first = clone(unseeded).fit_transform(rows)
    np.random.seed(11)
    assert np.array_equal(clone(unseeded).fit_transform(rows), first)
    assert not np.array_equal(clone(unseeded).fit_transform(rows), first)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_components": 0}, "n_components must be"),
        ({"n_components": -3}, "n_components must be a non-negative integer, got -3"),
        ({"n_components": 2.5}, "n_components must be a non-negative integer, got 2.5"),
        ({"n_components": None}, "n_components must be a non-negative integer, got null"),
        ({"random_state": -1}, "random_state must be an integer from 0"),
        ({"random_state": "x"}, "cannot be used to seed"),
        ({"n_jobs": 0}, "n_jobs must be a non-zero integer or None, got 0"),
    ],
    ids=str,
)
@every_map
def test_bad_arguments_are_named(features, rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        clone(features).set_params(**parameters).fit(rows)


@every_unbiased_map
def test_more_features_estimate_the_kernel_better(features, rows):
    errors = []
    for n_components in (64, 4096):
        fitted = clone(features).set_params(n_components=n_components).fit(rows)
        Z = fitted.transform(rows)
        errors.append(relative_frobenius_error(fitted.exact_kernel(rows), Z @ Z.conj().T))
    # 64 times as many features divide the error by 8 on average; by 4 at the least.
    assert errors[1] < errors[0] / 4


@every_known_variance
def test_variance_is_the_spread_over_seeds(features, rows):
    rows, seeds = rows[:4], 500
    features = clone(features).set_params(n_components=128)
    fitted = features.fit(rows)
    exact, variance = fitted.exact_kernel(rows), fitted.variance(rows)
    estimates = []
    for seed in range(seeds):
        Z = clone(features).set_params(random_state=seed).fit_transform(rows)
        estimates.append(Z @ Z.conj().T)
    alpha = 1e-6 / rows.shape[0] ** 2
    z = stats.norm.ppf(1 - alpha / 2)
    assert np.all(np.abs(np.mean(estimates, axis=0) - exact) <= z * np.sqrt(variance / seeds) + 1e-12)
    low, high = stats.chi2.ppf([alpha / 2, 1 - alpha / 2], seeds - 1) / (seeds - 1)
    spread = np.var(estimates, axis=0, ddof=1)
    assert np.all((spread >= low * variance - 1e-24) & (spread <= high * variance + 1e-24))


@over(UNKNOWN_VARIANCE)
def test_a_variance_without_a_closed_form_is_explained(features, rows):
    with pytest.raises(ValueError, match="variance: .* closed form"):
        clone(features).fit(rows).variance(rows)


@every_map
def test_kernel_and_variance_take_two_sets_of_rows(features, rows):
    fitted = clone(features).fit(rows)
    for compute in (fitted.exact_kernel,) if features in UNKNOWN_VARIANCE else (fitted.exact_kernel, fitted.variance):
        assert compute(rows[:5], rows[5:12]).shape == (5, 7)
        np.testing.assert_allclose(compute(rows[:12])[:5, 5:], compute(rows[:5], rows[5:12]), rtol=1e-12)
    assert fitted.exact_kernel(rows.astype(np.float32)).dtype == np.float32
    assert fitted.exact_kernel(rows.astype(np.float32), rows).dtype == np.float64


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"kernel": "cosine"}, 'kernel must be one of "gaussian", "laplacian", "matern", got "cosine"'),
        ({"length_scale": -0.5}, "length_scale must be a positive finite number, got -0.5"),
        ({"length_scale": np.nan}, "length_scale must be a finite number, got nan"),
        ({"length_scale": "mean"}, "length_scale"),
        ({"length_scale": [1.0, 2.0]}, "number of length scales is 2, expected 7"),
        ({"length_scale": frozenset()}, "length_scale must be a number, a string or a sequence of numbers, got frozenset"),
        ({"kernel": "matern", "nu": 0.0}, "nu must be a positive finite number, got 0"),
        ({"projection": "fast"}, 'projection must be one of .*, got "fast"'),
        ({"form": "sin"}, 'form must be one of .*, got "sin"'),
        ({"kernel": "laplacian", "norm": 3}, "norm"),
    ],
    ids=str,
)
def test_bad_arguments_of_fourier_features_are_named(rows, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        FourierFeatures(64, **parameters).fit(rows)


def test_a_median_of_equal_rows_is_refused():
    with pytest.raises(ValueError, match="length_scale|median|rows"):
        FourierFeatures(64, length_scale="median").fit(np.ones((5, 3)))


def test_length_scale_of_each_column_divides_it(rows):
    scales = np.linspace(0.5, 2.0, 7)
    each = FourierFeatures(64, length_scale=scales, random_state=0).fit(rows)
    same = FourierFeatures(64, random_state=0).fit(rows / scales)
    np.testing.assert_allclose(each.transform(rows), same.transform(rows / scales), atol=1e-12)
    np.testing.assert_allclose(each.exact_kernel(rows), same.exact_kernel(rows / scales), rtol=1e-12)


def test_kernel_is_a_parameter_and_a_method(rows):
    features = FourierFeatures(64, kernel="laplacian")
    assert features.kernel == "laplacian"
    assert features.get_params()["kernel"] == "laplacian"
    assert type(clone(features).get_params()["kernel"]) is str
    assert type(pickle.loads(pickle.dumps(features.kernel))) is str
    assert "kernel='laplacian'" in repr(features)
    assert features.fit(rows).exact_kernel(rows).shape == (200, 200)
    features.set_params(kernel="gaussian")
    assert features.fit(rows).kernel == "gaussian"


def test_what_was_chosen_is_told(rows):
    features = FourierFeatures(64, length_scale="median", random_state=9).fit(rows)
    distances = np.linalg.norm(rows[:, np.newaxis] - rows, axis=2)[np.triu_indices(200, 1)]
    assert features.length_scale_ == pytest.approx(np.median(distances), rel=1e-2)
    assert features.projection_ in ("gaussian", "orthogonal", "sorf")
    assert features.spec_["seed"] == 9
    assert features.spec_["map"] == "fourier"


def smooth(maps):
    return [map for map in seeded(maps) if getattr(map, "binarize", None) is None]


@pytest.mark.parametrize("features", smooth(FEATURES + OTHER_FEATURES), ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pullbacks_are_slopes_of_features(features, dtype):
    rng = np.random.default_rng(5)
    X = (0.5 * rng.normal(size=(40, 6))).astype(dtype)
    Z = features.fit(X).transform(X)
    U = rng.normal(size=Z.shape) + (1j * rng.normal(size=Z.shape) if np.iscomplexobj(Z) else 0.0)
    pulled = features.pullback(X, U)
    assert pulled.shape == X.shape and pulled.dtype == dtype
    # Against differences in double precision, of the same draw; those of twice the step tell what they leave out.
    wide, step = X.astype(np.float64), 1e-6
    for j in range(X.shape[1]):

        def slope(step, move=np.eye(6)[j]):
            there, here = features.transform(wide + step * move), features.transform(wide - step * move)
            return ((there - here) * U.conj()).sum(axis=1).real / (2 * step)

        # A sum over features is rounded relative to its terms, of which each is some slope times a cotangent.
        size = np.abs(U).sum(axis=1) * np.abs(pulled).max()
        left_out = np.abs(slope(step) - slope(2 * step))
        assert np.all(np.abs(pulled[:, j] - slope(step)) <= (50 * np.finfo(dtype).eps + 1e-8) * size + left_out)


@pytest.mark.parametrize("form", ["cos_sin", "offset", "complex"])
def test_slopes_in_frequencies_are_those_in_phases_times_rows(form):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 2))
    features = FourierFeatures(12, length_scale=[1.5, 0.5], form=form, random_state=0).fit(X)
    Z = features.transform(X)
    U = rng.normal(size=Z.shape) + (1j * rng.normal(size=Z.shape) if np.iscomplexobj(Z) else 0.0)
    frequencies, amplitudes, offsets = features.pullback_parameters(X, U)
    assert frequencies.shape == (12 if form != "cos_sin" else 6, 2) and len(offsets) == (12 if form == "offset" else 0)
    # All amplitudes are the same number, in which features are linear.
    scale = np.sqrt((2 if form == "offset" else 1) / len(frequencies))
    np.testing.assert_allclose(scale * amplitudes.sum(), (Z * U.conj()).sum().real, rtol=1e-10)
    # Phases move features along the circle, and frequencies move phases by the rows.
    if form == "offset":
        one = [features.pullback_parameters(x[np.newaxis], u[np.newaxis]) for x, u in zip(X, U, strict=True)]
        expected = sum(np.outer(slopes[2], x) for slopes, x in zip(one, X, strict=True))
    else:
        cos, sin = (Z.real, Z.imag) if form == "complex" else (Z[:, :6], Z[:, 6:])
        in_cos, in_sin = (U.real, U.imag) if form == "complex" else (U[:, :6], U[:, 6:])
        expected = (cos * in_sin - sin * in_cos).T @ X
    np.testing.assert_allclose(frequencies, expected, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="only Fourier features"):
        _ = OpticalFeatures(8, random_state=0).fit(X).map_.pull_parameters(X, np.ones((30, 8)))


def test_pullbacks_are_refused_where_there_is_none():
    X = np.random.default_rng(0).normal(size=(7, 3))
    with pytest.raises(ValueError, match="steps"):
        OpticalFeatures(8, binarize=0.0).fit(X).pullback(X, np.ones((7, 8)))
    for shape in [(6, 8), (7, 9)]:
        with pytest.raises(ValueError, match="cotangents"):
            FourierFeatures(8).fit(X).pullback(X, np.ones(shape))
    with pytest.raises(ValueError, match="NaN"):
        FourierFeatures(8).fit(X).pullback(np.nan * X, np.ones((7, 8)))
