"""Rows that come one after the other, sums that are kept, merged and taken back."""

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import bochner
from bochner import (
    AutoClassifier,
    AutoRegressor,
    FeatureGPClassifier,
    FeatureGPRegressor,
    FeatureRidge,
    FeatureRidgeClassifier,
    FeatureSVC,
    FourierFeatures,
    OperatorRidge,
    OperatorRidgeClassifier,
    PolynomialSketch,
)

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")
import pyarrow.parquet as pq  # noqa: E402

MODELS = [
    FeatureRidge(FourierFeatures(64), alpha=0.1, random_state=3),
    FeatureRidgeClassifier(FourierFeatures(64), alpha=0.1, random_state=3),
    FeatureGPRegressor(FourierFeatures(32, form="complex"), random_state=3),
    FeatureGPClassifier(FourierFeatures(32), random_state=3),
    OperatorRidge(n_components=64, alpha=0.1, random_state=3),
    OperatorRidgeClassifier(n_components=64, alpha=0.1, random_state=3),
]
N = 12_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    return pa.table({"a": X[:, 0], "y": y, "b": X[:, 1], "c": X[:, 2], "kind": np.where(y > 0, "high", "low")})


def rows_of(table):
    return np.column_stack([table[name].to_numpy() for name in "abc"])


def name_of(model):
    return "kind" if is_classifier(model) else "y"


def targets_of(model, table):
    return np.asarray(table[name_of(model)].to_pylist())


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else (
        model.predict_proba(X) if is_classifier(model) else model.predict(X)
    )


def off(one, other, X):
    one, other = scores(one, X), scores(other, X)
    return np.abs(one - other).max() / np.abs(other).max()


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_stream_is_fitted_as_its_rows_in_memory(model, table):
    X, y = rows_of(table), targets_of(model, table)
    parts = clone(model)
    known = {"classes": ["high", "low"]} if is_classifier(model) else {}
    for start in range(0, N, 5000):
        parts.partial_fit(X[start : start + 5000], y[start : start + 5000], **known)
    streamed = clone(model).fit_stream(table, name_of(model), list("abc"))
    assert np.array_equal(scores(streamed, X[:100]), scores(parts, X[:100]))
    assert off(streamed, clone(model).fit(X, y), X[:100]) < 1e-9
    assert list(streamed.feature_names_in_) == list("abc")
    assert not hasattr(streamed, "sums_")


def sources(table, folder):
    numbers = table.drop_columns(["kind"])
    pq.write_table(numbers, folder / "t.parquet", row_group_size=3000)
    inside = folder / "parts"
    inside.mkdir()
    for k, start in enumerate(range(0, N, 4000)):
        pq.write_table(numbers.slice(start, 4000), inside / f"part-{k}.parquet")
    (inside / "_SUCCESS").touch()
    numbers.to_pandas().to_csv(folder / "t.csv", index=False)
    X, y = rows_of(table), table["y"].to_numpy()
    pairs = [(X[i : i + 700], y[i : i + 700]) for i in range(0, N, 700)]
    yield "table", numbers
    yield "reader", pa.RecordBatchReader.from_batches(numbers.schema, numbers.to_batches(max_chunksize=999))
    yield "polars", pl.from_arrow(numbers)
    yield "lazy", pl.from_arrow(numbers).lazy()
    yield "pandas", numbers.to_pandas()
    yield "indexed", numbers.to_pandas().set_index(np.arange(N) * 7 % 11)
    yield "file", folder / "t.parquet"
    yield "csv", str(folder / "t.csv")
    yield "folder", inside
    yield "pattern", str(inside / "part-*.parquet")
    yield "list", [inside / f"part-{k}.parquet" for k in range(3)]
    yield "pairs", pairs
    yield "generator", iter(pairs)


def test_every_source_gives_the_same_bits(table, tmp_path):
    model = MODELS[0]
    X = rows_of(table)
    expected = clone(model).fit_stream([(X, table["y"].to_numpy())]).predict(X[:50])
    for name, source in sources(table, tmp_path):
        fitted = clone(model).fit_stream(source)
        assert np.array_equal(fitted.predict(X[:50]), expected), name


def test_files_of_many_batches_are_read_to_their_end(table, tmp_path):
    # A reader hands over 16,384 rows or more at once.
    rows = pa.concat_tables([table.drop_columns(["kind"])] * 6)
    pq.write_table(rows, tmp_path / "t.parquet", row_group_size=5000)
    rows.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    model = clone(MODELS[0]).set_params(keep_sums=True)
    expected = clone(model).fit_stream(rows)
    for source in ("t.parquet", "t.csv"):
        fitted = clone(model).fit_stream(tmp_path / source)
        assert fitted.sums_.count == 6 * N
        assert np.array_equal(fitted.predict(rows_of(table)[:50]), expected.predict(rows_of(table)[:50]))
        assert sum(batch.num_rows for batch in fitted.predict_stream(tmp_path / source)) == 6 * N


def test_duckdb_relations_are_read(table):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select a, b, c, y from t", connection=_connected(duckdb, table))
    model = clone(MODELS[0]).fit_stream(relation)
    assert off(model, clone(MODELS[0]).fit_stream(table, "y", list("abc")), rows_of(table)[:50]) < 1e-9


def _connected(duckdb, table):
    connection = duckdb.connect()
    connection.register("t", table)
    return connection


def test_single_precision_stays_and_whole_numbers_become_doubles(table):
    single = table.select(["a", "b", "y"]).cast(pa.schema([(n, pa.float32()) for n in ("a", "b", "y")]))
    assert clone(MODELS[0]).fit_stream(single).dtype_ == np.float32
    whole = pa.table({"a": pa.array([1, 2, 3, 4], pa.int32()), "f": [True, False, True, True], "y": [1.0, 2.0, 3.0, 1.0]})
    model = clone(MODELS[0]).fit_stream(whole)
    assert model.dtype_ == np.float64 and model.n_features_in_ == 2


def test_several_targets_and_chosen_columns(table):
    model = clone(MODELS[0]).fit_stream(table, ["y", "c"], ["a", "b"])
    assert model.predict(rows_of(table)[:5, :2]).shape == (5, 2)


def test_what_depends_on_data_is_found_on_the_first_rows(table):
    model = FeatureRidge(FourierFeatures(32, length_scale="median", random_state=0)).fit_stream(table, "y", list("abc"))
    first = FeatureRidge(FourierFeatures(32, length_scale="median", random_state=0)).fit(rows_of(table), table["y"].to_numpy())
    # The sample of fit is another one.
    assert model.features_.length_scale_ == pytest.approx(first.features_.length_scale_, rel=0.05)


def test_solvers_of_several_passes_read_again_or_say_that_they_cannot(table):
    model = FeatureRidge(FourierFeatures(64), solver="cg", alpha=1.0, random_state=0)
    X, y = rows_of(table), table["y"].to_numpy()
    numbers = table.drop_columns(["kind"])
    streamed = clone(model).fit_stream(numbers)
    assert streamed.solver_ == "cg" and off(streamed, clone(model).fit(X, y), X[:50]) < 1e-6
    reader = pa.RecordBatchReader.from_batches(numbers.schema, numbers.to_batches())
    with pytest.raises(ValueError, match="reads the rows several times, and this source can be read once only"):
        clone(model).fit_stream(reader)
    assert reader.read_all().num_rows == N
    with pytest.raises(ValueError, match='solver="dual"'):
        clone(model).set_params(solver="dual").fit_stream(numbers)
    with pytest.raises(ZeroDivisionError):
        clone(model).fit_stream(_Failing([(X, y)] * 3))


class _Failing(list):
    """A source whose second pass fails: errors of Python stay what they are."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        for batch in super().__iter__():
            yield batch if self.passes < 4 else 1 / 0


def test_labels_are_found_in_a_pass_of_their_own_or_told(table):
    model = clone(MODELS[1])
    X, y = rows_of(table), targets_of(model, table)
    with pytest.raises(ValueError, match=r"say classes=\[...\]"):
        model.fit_stream(iter([(X, y)]))
    told = model.fit_stream(iter([(X, y)]), classes=["high", "low"])
    assert told.score(X, y) > 0.9
    words = table.set_column(4, "kind", table["kind"].dictionary_encode())
    again = clone(MODELS[1]).fit_stream(words, "kind", list("abc"))
    assert np.array_equal(again.predict(X[:50]), told.predict(X[:50]))


def test_labels_in_files(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet")
    for target, source in (("kind", tmp_path / "t.parquet"), ("kind", [tmp_path / "t.parquet"] * 2)):
        model = clone(MODELS[1]).fit_stream(source, target, list("abc"))
        assert list(model.classes_) == ["high", "low"]
        assert model.score(rows_of(table), targets_of(model, table)) > 0.9


def wrong(table):
    yield "unknown target", table, ("z", None), ValueError, "no column 'z'; the columns are a, y, b, c, kind"
    yield "nearly right", pa.table({"price": [1.0], "x": [1.0]}), ("prise", None), ValueError, "did you mean 'price'"
    yield "unknown column", table, ("y", ["a", "B"]), ValueError, "did you mean 'b'"
    yield "words", table, ("y", None), TypeError, "column 'kind' holds words.*AutoRegressor"
    dates = pa.table({"day": pa.array([1, 2], pa.date32()), "y": [1.0, 2.0]})
    yield "dates", dates, ("y", None), TypeError, "holds dates or times.*AutoRegressor"
    gaps = pa.table({"a": [1.0, 2.0, None], "y": [1.0, 2.0, 3.0]})
    yield "gaps", gaps, ("y", None), ValueError, r"column 'a' has a gap \(null\) in row 2"
    nan = pa.table({"a": [1.0, np.nan, 2.0], "y": [1.0, 2.0, 3.0]})
    yield "nan", nan, ("y", None), ValueError, "NaN"
    yield "no rows", table.slice(0, 0), ("y", ["a"]), ValueError, "no rows"
    yield "a string of columns", table, ("y", "ab"), TypeError, "list of names"
    yield "arrays", np.ones((3, 2)), ("y", None), TypeError, "fit takes arrays"
    yield "no pairs", [np.ones((3, 2))], ("y", None), TypeError, "pairs"
    yield "uneven", [(np.ones((3, 2)), np.ones(2))], ("y", None), ValueError, "3 rows and 2 targets"
    yield "growing", [(np.eye(6000, 2), np.ones(6000)), (np.ones((3, 3)), np.ones(3))], ("y", None), ValueError, "3 features"
    yield "no file", "there-is-none.csv", ("y", None), FileNotFoundError, "no such file"
    yield "no such files", "none-*.csv", ("y", None), FileNotFoundError, "none-"


def test_what_cannot_be_used_is_said_in_a_sentence(table):
    for name, source, (target, columns), error, message in wrong(table):
        model = clone(MODELS[0])
        with pytest.raises(error, match=message):
            model.fit_stream(source, target, columns)
        with pytest.raises(NotFittedError):
            model.predict(np.ones((1, 2)))
        assert not any(key.endswith("_") for key in vars(model)), name


def test_files_of_words_and_other_columns_are_refused(table, tmp_path):
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(TypeError, match="column kind of .*a.parquet holds words.*AutoRegressor"):
        clone(MODELS[0]).fit_stream(tmp_path / "a.parquet")
    pq.write_table(table.drop_columns(["kind"]), tmp_path / "a.parquet")
    pq.write_table(table.drop_columns(["kind", "b"]), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="b"):
        clone(MODELS[0]).fit_stream([tmp_path / "a.parquet", tmp_path / "b.parquet"])


def test_predictions_and_features_come_as_arrow_batches(table, tmp_path):
    X, y = rows_of(table), targets_of(MODELS[1], table)
    model = FeatureRidge(FourierFeatures(16), random_state=0).fit_stream(table, ["y", "c"], ["a", "b", "c"])
    found = pa.Table.from_batches(model.predict_stream(table))
    assert found.column_names == ["prediction_1", "prediction_2"]
    assert np.allclose(found["prediction_2"].to_numpy(), model.predict(pd.DataFrame(X, columns=list("abc")))[:, 1], rtol=1e-12)
    pq.write_table(table, tmp_path / "t.parquet")
    again = pa.Table.from_batches(model.predict_stream(tmp_path / "t.parquet"))
    assert np.allclose(again["prediction_1"], found["prediction_1"], rtol=1e-12)
    classifier = clone(MODELS[3]).fit(X[:2000], y[:2000])
    assert pa.Table.from_batches(classifier.predict_stream([X[:10], X[10:30]])).num_rows == 30
    shares = pa.Table.from_batches(classifier.predict_stream([X[:10]], method="predict_proba"))
    assert shares.column_names == ["probability of high", "probability of low"]
    features = PolynomialSketch(8, random_state=0).fit(X)
    made = pa.Table.from_batches(features.transform_stream(table, columns=list("abc")))
    assert made.column_names == list(features.get_feature_names_out())
    assert np.array_equal(np.column_stack([c.to_numpy() for c in made.columns]), features.transform(X))
    complex_features = FourierFeatures(8, form="complex").fit(X)
    with pytest.raises(TypeError, match="no complex numbers"):
        next(complex_features.transform_stream([X]))


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_sums_that_are_kept_go_on(model, table, tmp_path):
    X, y = rows_of(table), targets_of(model, table)
    whole = clone(model).fit(X, y)
    kept = clone(model).set_params(keep_sums=True).fit(X[:9000], y[:9000])
    assert kept.sums_.count == 9000
    kept.save(tmp_path / "m.bochner")
    copies = {
        "itself": kept,
        "pickled": pickle.loads(pickle.dumps(kept)),
        "saved": bochner.load(tmp_path / "m.bochner"),
        "streamed": clone(kept).fit_stream(table.slice(0, 9000), name_of(model), list("abc")),
    }
    before = scores(kept, X[:50])
    for name, copy in copies.items():
        assert np.allclose(scores(copy, X[:50]), before, rtol=1e-9, atol=1e-9), name
    for name, copy in copies.items():
        if name == "streamed":
            copy.partial_fit(pd.DataFrame(X[9000:], columns=list("abc")), y[9000:])
        else:
            copy.partial_fit(X[9000:], y[9000:])
        assert copy.sums_.count == N and off(copy, whole, X[:50]) < 1e-9, name
    # Without, nothing is kept.
    plain = clone(model).fit(X, y)
    plain.save(tmp_path / "p.bochner")
    assert not hasattr(bochner.load(tmp_path / "p.bochner"), "sums_")
    assert (tmp_path / "m.bochner").stat().st_size > (tmp_path / "p.bochner").stat().st_size
    for call in ("merge", "forget", "refit"):
        with pytest.raises(ValueError, match=f"{call} needs the sums.*keep_sums=True"):
            getattr(plain, call)(*{"merge": (kept,), "forget": (X, y), "refit": ()}[call])


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_models_are_merged_and_rows_are_taken_back(model, table):
    X, y = rows_of(table), targets_of(model, table)
    model = clone(model).set_params(keep_sums=True)
    parts = [clone(model).fit(X[a:b], y[a:b]) for a, b in ((0, 5000), (5000, 7000), (7000, N))]
    assert all(set(y) == set(y[a:b]) for a, b in ((0, 5000), (5000, 7000))) or not is_classifier(model)
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert merged.sums_.count == N and parts[2].sums_.count == N - 7000
    whole = clone(model).fit(X, y)
    assert off(merged, whole, X[:50]) < 1e-9
    forgot = merged.forget(X[5000:7000], y[5000:7000])
    without = clone(model).fit(np.delete(X, np.s_[5000:7000], 0), np.delete(y, np.s_[5000:7000]))
    assert off(forgot, without, X[:50]) < 1e-9 and forgot.sums_.count == N - 2000
    assert 1.0 < forgot.sums_.cancellation < 1.5
    with pytest.raises(ValueError, match="rows that were added before"):
        forgot.forget(np.tile(X, (2, 1)), np.tile(y, 2))
    assert off(forgot, without, X[:50]) < 1e-9
    other = clone(model).set_params(random_state=4).fit(X, y)
    with pytest.raises(ValueError, match="other features"):
        merged.merge(other)
    with pytest.raises(TypeError, match="can be merged"):
        merged.merge(FeatureSVC())


def test_a_tenth_of_many_rows_is_forgotten_to_rounding():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100_000, 4))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=len(X)) + 100.0
    model = FeatureRidge(FourierFeatures(128, length_scale=2.0, random_state=0), alpha=1e-3, keep_sums=True).fit(X, y)
    model.forget(X[:10_000], y[:10_000])
    without = clone(model).fit(X[10_000:], y[10_000:])
    difference = np.linalg.norm(model.coef_ - without.coef_) / np.linalg.norm(without.coef_)
    assert difference < 1e-6
    assert model.condition_ > 1.0 and model.sums_.cancellation == pytest.approx(1 / 0.9, rel=0.02)


def test_forgetting_takes_weights_and_leaves_the_model_alone_where_it_fails(table):
    X, y, w = rows_of(table), table["y"].to_numpy(), np.random.default_rng(0).uniform(0.5, 2, N)
    model = FeatureRidge(FourierFeatures(32, random_state=0), alpha=0.1, keep_sums=True).fit(X, y, w)
    model.forget(X[:4000], y[:4000], w[:4000])
    assert off(model, clone(model).fit(X[4000:], y[4000:], w[4000:]), X[:50]) < 1e-10
    with pytest.raises(ValueError, match="NaN"):
        model.forget(np.full((1, 3), np.nan), [1.0])
    assert model.sums_.count == N - 4000


def test_decay_weighs_earlier_rows_less(table):
    X, y = rows_of(table), table["y"].to_numpy()
    model = FeatureRidge(FourierFeatures(32, random_state=0), alpha=0.1)
    drifting = clone(model)
    for start in range(0, N, 4000):
        drifting.partial_fit(X[start : start + 4000], y[start : start + 4000], decay=0.5)
    weights = np.repeat([0.25, 0.5, 1.0], 4000)
    assert off(drifting, clone(model).fit(X, y, weights), X[:50]) < 1e-10
    for decay in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="decay"):
            drifting.partial_fit(X, y, decay=decay)
    labels = targets_of(MODELS[3], table)
    classes = clone(MODELS[3])
    for start in (0, 6000):
        classes.partial_fit(X[start : start + 6000], labels[start : start + 6000], ["high", "low"], decay=0.5)
    expected = clone(MODELS[3]).partial_fit(X, labels, ["high", "low"], np.repeat([0.5, 1.0], 6000))
    assert off(classes, expected, X[:50]) < 1e-9


def test_penalties_and_variances_are_changed_without_rows(table):
    X, y = rows_of(table), table["y"].to_numpy()
    model = FeatureRidge(FourierFeatures(32, random_state=0), keep_sums=True).fit(X, y)
    for changed in (model.refit(alpha=50.0), model.set_params(alpha=50.0).refit()):
        assert off(changed, FeatureRidge(FourierFeatures(32, random_state=0), alpha=50.0).fit(X, y), X[:50]) < 1e-10
    best = FeatureRidge(FourierFeatures(32, random_state=0), alpha="loo", keep_sums=True).fit(X, y)
    assert best.refit(alpha=50.0).alpha_ == 50.0
    process = FeatureGPRegressor(FourierFeatures(32, random_state=0), keep_sums=True).fit(X, y).refit(noise=0.5)
    assert off(process, FeatureGPRegressor(FourierFeatures(32, random_state=0), noise=0.5).fit(X, y), X[:50]) < 1e-10
    classes = clone(MODELS[3]).set_params(keep_sums=True).fit(X, y > 0).refit(alpha=0.1)
    assert off(classes, clone(MODELS[3]).set_params(alpha=0.1).fit(X, y > 0), X[:50]) < 1e-9
    with pytest.raises(ValueError, match="belongs to the features"):
        model.refit(features=FourierFeatures(8))


def test_sums_are_kept_only_where_there_are_some(table):
    X, y = rows_of(table)[:500], table["y"].to_numpy()[:500]
    with pytest.raises(ValueError, match="keep_sums=True"):
        FeatureRidge(solver="cg", keep_sums=True).fit(X, y)
    with pytest.raises(ValueError, match="keep_sums=True"):
        FeatureGPClassifier(inference="variational", keep_sums=True).fit(X, y > 0)
    with pytest.raises(ValueError, match="dirichlet"):
        FeatureGPClassifier(inference="variational").fit_stream([(X, y > 0)])
    assert not hasattr(FeatureSVC(), "fit_stream")


def test_tables_of_words_dates_and_gaps_are_streamed_to_auto_estimators(table, tmp_path):
    rng = np.random.default_rng(1)
    words = np.array(["oak", "ash", "elm"])[rng.integers(0, 3, 300)]
    y = (words == "oak") + 0.01 * rng.normal(size=300)
    frame = pl.DataFrame({"wood": words, "x": [None if i % 50 == 0 else float(i % 7) for i in range(300)], "y": y})
    models = [AutoRegressor(budget=0.2, random_state=0).fit_stream(frame.lazy(), "y")]
    frame.write_parquet(tmp_path / "a.parquet", compression="snappy")
    models.append(AutoRegressor(budget=0.2, random_state=0).fit_stream(tmp_path / "a.parquet", ["y"]))
    half = tmp_path / "half"
    half.mkdir()
    frame[:150].write_parquet(half / "a.parquet")
    frame[150:].write_parquet(half / "b.parquet")
    models.append(AutoRegressor(budget=0.2, random_state=0).fit_stream(half))
    new = pd.DataFrame({"wood": ["oak", "elm"], "x": [1.0, 2.0]})
    for model in models:
        assert np.allclose(model.predict(new), models[0].predict(new)) and abs(model.predict(new)[0] - 1) < 0.2
    classes = AutoClassifier(budget=0.2, random_state=0).fit_stream(frame.drop("y").drop_nulls(), "wood")
    assert set(classes.classes_) == {"oak", "ash", "elm"}
    with pytest.raises(TypeError, match="Arrow stream"):
        AutoRegressor().fit_stream([(np.ones((2, 2)), np.ones(2))])


def test_the_catalogue_says_which_models_have_sums():
    found = {m["name"] for m in json.loads(bochner._bochner.catalogue())["models"] if m["sums"]}
    assert {"ridge", "gp_regressor", "operator_ridge"} <= found and "svm" not in found
