"""A table in, a model out: the estimators that choose everything, and the features they learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import bochner
from bochner import AutoClassifier, AutoRegressor, FeatureRidge, LearnedFourierFeatures


@pytest.fixture(scope="module")
def wave():
    """One column of four matters, and the noise has a deviation of a tenth."""
    draws = np.random.default_rng(3)
    X = draws.normal(size=(800, 4))
    return X, np.sin(3 * X[:, 1]) + 0.1 * draws.normal(size=800)


@pytest.fixture(scope="module")
def fitted(wave):
    return AutoRegressor(budget=2.0, random_state=0).fit(*wave)


def test_it_learns_says_how_well_and_which_columns_count(fitted, wave):
    X = np.random.default_rng(4).normal(size=(2000, 4))
    error = np.sqrt(np.mean((fitted.predict(X) - np.sin(3 * X[:, 1])) ** 2))
    assert error < 0.3  # the function has a deviation of 0.7
    assert next(iter(fitted.importances_)) == "x1"
    assert "R²" in fitted.verdict_ and "R²" in str(fitted.report_) and "<br>" in fitted.report_._repr_html_()


def test_intervals_cover_what_they_promise(fitted):
    draws = np.random.default_rng(5)
    X = draws.normal(size=(4000, 4))
    y = np.sin(3 * X[:, 1]) + 0.1 * draws.normal(size=4000)
    low, high = fitted.predict_interval(X, coverage=0.9).T
    # The coverage of an interval from 80 errors is Beta(73, 8): below 0.8 in one case in three hundred.
    assert 0.8 < np.mean((low <= y) & (y <= high)) < 0.99


def test_the_same_table_and_seed_give_the_same_file_and_it_is_the_program_s(fitted, wave, tmp_path):
    again = clone(fitted).fit(*wave)
    assert again.bytes_ == fitted.bytes_
    X, y = wave
    table = np.column_stack([X, y])
    lines = ["x0,x1,x2,x3,target", *(",".join(repr(float(v)) for v in row) for row in table)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    streamed = AutoRegressor(budget=2.0, random_state=0).fit_stream(tmp_path / "table.csv", target="target")
    assert streamed.bytes_ == fitted.bytes_
    np.testing.assert_array_equal(streamed.predict(X), fitted.predict(X))
    fitted.save(tmp_path / "model.bochner")
    np.testing.assert_array_equal(bochner.load(tmp_path / "model.bochner").predict(X), fitted.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


@pytest.fixture(scope="module")
def prices():
    """Logarithms are a sum of waves with noise of deviation 0.1: prices are skewed."""
    draws = np.random.default_rng(7)
    X = draws.normal(size=(1500, 2))
    return X, np.exp(1.5 * np.sin(X[:, 0]) + X[:, 1] + 0.1 * draws.normal(size=1500))


def test_logarithms_of_skewed_targets_are_learned_and_mapped_back(prices, tmp_path):
    X, y = prices
    # Within two seconds the choice between the scales is made after a step of learning: it is asked for here.
    model = AutoRegressor(budget=2.0, target_scale="log", random_state=0).fit(X[:1000], y[:1000])
    assert model.report_.facts["target_scale"] == "log"
    plain = AutoRegressor(budget=2.0, target_scale="none", random_state=0).fit(X[:1000], y[:1000])
    assert plain.report_.facts["target_scale"] == "none"
    predicted = model.predict(X[1000:])
    errors = [np.mean((m.predict(X[1000:]) - y[1000:]) ** 2) for m in (model, plain)]
    assert errors[0] < errors[1]
    # The mean of 500 prices has a relative error of about a twentieth.
    assert abs(predicted.mean() / y[1000:].mean() - 1) < 0.15
    low, high = model.predict_interval(X[1000:], coverage=0.9).T
    assert np.all(low > 0) and np.all(low < high)
    # The coverage of an interval from 100 errors is Beta(91, 10): 0.81 to 0.97 but for one case in a hundred.
    assert 0.78 < np.mean((low <= y[1000:]) & (y[1000:] <= high)) < 0.99
    model.save(tmp_path / "model.bochner")
    loaded = bochner.load(tmp_path / "model.bochner")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    loaded.save(tmp_path / "again.bochner")
    np.testing.assert_array_equal(bochner.load(tmp_path / "again.bochner").predict(X), model.predict(X))
    with pytest.raises(ValueError, match="not negative"):
        AutoRegressor(budget=1.0, target_scale="log").fit(X, y - y.mean())


def test_sets_hold_the_true_class_and_a_linear_model_is_beside(prices):
    X = prices[0]
    y = (X[:, 0] * X[:, 1] + 0.3 * np.random.default_rng(8).normal(size=1500) > 0).astype(int)
    model = AutoClassifier(budget=1.0, random_state=0).fit(X[:1000], y[:1000])
    sets = model.predict_set(X[1000:], coverage=0.9)
    assert sets.shape == (500, 2) and sets.dtype == bool
    assert 0.78 < np.mean(sets[np.arange(500), y[1000:]]) < 0.99
    # A product has no linear part.
    assert model.report_.facts["figures"][0]["linear"] < 0.65
    assert "clearly better than a linear model" in model.verdict_


def test_classes_come_back_with_probabilities_that_add_up():
    draws = np.random.default_rng(6)
    X = draws.normal(size=(600, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    model = AutoClassifier(budget=2.0, random_state=0).fit(X, y)
    assert list(model.classes_) == ["other", "same"]
    assert model.score(X, y) > 0.9
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(model.classes_[p.argmax(axis=1)] == model.predict(X)) == 1.0


def test_frames_may_hold_words_and_gaps():
    pandas = pytest.importorskip("pandas")
    draws = np.random.default_rng(7)
    frame = pandas.DataFrame({"size": draws.normal(size=400), "wood": draws.choice(["oak", "ash", "elm"], 400)})
    y = frame["size"] + (frame["wood"] == "oak")
    frame.loc[::40, "size"] = np.nan
    model = AutoRegressor(budget=1.0, random_state=0).fit(frame, y)
    assert model.predict(frame).shape == (400,)
    kept = frame["size"].notna()
    assert np.corrcoef(model.predict(frame)[kept], y[kept])[0, 1] > 0.9


def test_learned_features_are_better_than_where_they_began_and_serve_any_model(wave):
    X, y = wave
    features = LearnedFourierFeatures(256, n_learned=64, max_iter=40, random_state=0)
    fitted = clone(features).fit(X, y)
    assert min(fitted.losses_) < 0.5 * fitted.losses_[0]
    assert fitted.importances_.argmax() == 1 and fitted.transform(X).shape == (800, 256)
    np.testing.assert_allclose(fitted.estimate(X[:9]), fitted.exact_kernel(X[:9]), atol=1e-6)
    model = FeatureRidge(features, alpha=1.0).fit(X, y)
    assert model.score(X, y) > 0.9
    # Without targets it is where learning begins.
    assert clone(features).fit(X).transform(X).shape == (800, 256)
