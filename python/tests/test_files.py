"""Model files: what was saved predicts the same bits, whichever door wrote and reads it."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from conftest import the_program
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import bochner
from bochner import *  # noqa: F403
from bochner.kernels import CurlFree, Decomposable, Matern

MODELS = [
    FeatureRidge(FourierFeatures(32, length_scale="median"), alpha=0.1, random_state=3),
    FeatureRidge(MaclaurinFeatures(33, length_scale=2.0), random_state=3),
    FeatureRidge(OpticalFeatures(16, exponent=1.0), random_state=3),
    FeatureRidge(PolynomialSketch(16, degree=3, coef0=1.0), random_state=3),
    FeatureRidge(SphericalFeatures(16), random_state=3),
    FeatureRidgeClassifier(FourierFeatures(32), random_state=3),
    FeatureRidgeClassifier(CompressiveFeatures(16, compressed_dim=2), random_state=3),
    FeatureSVC(FourierFeatures(32), C=2.0, random_state=3),
    FeatureGPRegressor(FourierFeatures(32, random_state=4), noise=0.2),
    FeatureGPRegressor(FourierFeatures(16, form="complex"), optimizer="lbfgs", max_iter=5, random_state=3),
    FeatureGPClassifier(FourierFeatures(32), alpha=[0.1, 0.01], random_state=3),
    FeatureGPClassifier(FourierFeatures(32, form="complex"), random_state=3),
    FeatureGPClassifier(FourierFeatures(32), inference="variational", max_iter=3, random_state=3),
    LocalGPRegressor(33, length_scale=2.0, normalize_y=True, random_state=3),
    OperatorRidge(n_components=32, A="covariance", alpha=0.1, random_state=3),
    OperatorRidge(Decomposable(np.diag([1.0, 2.0]), Matern(nu=2.5, length_scale=1.5)), n_components=32, random_state=3),
    OperatorRidge(CurlFree(2.0), n_components=32, random_state=3),
    OperatorRidgeClassifier(n_components=32, random_state=3),
    OperatorRidgeClassifier(n_components=32, coding="one_hot", random_state=3),
    exact.KernelRidge(Matern(nu=1.5, length_scale=2.0), alpha=0.1),
    exact.GPRegressor(noise=0.2),
    exact.GPClassifier(random_state=3),
    exact.KernelSVC(Matern(nu=2.5, length_scale=1.5), C=3.0),
    exact.OperatorRidge(CurlFree(2.0), alpha=0.1),
    exact.OperatorRidge(Decomposable(np.diag([1.0, 2.0]), Matern(nu=2.5, length_scale=1.5)), alpha=0.1),
]


@pytest.fixture(scope="module")
def program():
    """The command line, which the Rust tests have built before these run."""
    path = the_program()

    def run(*arguments, fails=False):
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

    return run


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 2))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 1])], axis=1) + 3.0
    return X, Y, np.array(["one", "three", "two"])[np.digitize(Y[:, 0], [2.5, 3.5])]


def fitted(model, data, dtype=np.float64):
    X, Y, labels = data
    X = X.astype(dtype)
    model = clone(model)
    if is_classifier(model):
        return model.fit(X, labels)
    return model.fit(X, Y if isinstance(model, (OperatorRidge, exact.OperatorRidge)) else Y[:, 0])


def everything(model, X):
    """All that a model says about rows."""
    answers = [model.predict(X)]
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            answers.append(getattr(model, name)(X))
    if isinstance(model, (FeatureGPRegressor, LocalGPRegressor, exact.GPRegressor)):
        answers.extend(model.predict(X, return_std=True))
    return answers


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_saved_model_comes_back(model, data, dtype, tmp_path):
    model = fitted(model, data, dtype)
    model.save(tmp_path / "model.bochner")
    again = bochner.load(tmp_path / "model.bochner")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    X = data[0].astype(dtype)
    for expected, found in zip(everything(model, X), everything(again, X), strict=True):
        assert expected.dtype == found.dtype
        assert np.array_equal(expected, found)
    # What is computed from the rows of a fit, which files do not keep.
    of_rows = {"importances_", "interval_kind_", "loo_predict_"}
    for name in (name for name in dir(model) if name.endswith("_") and not name.startswith("_")):
        assert hasattr(again, name) or name in of_rows, name
    again.save(tmp_path / "again.bochner")
    for expected, found in zip(everything(model, X), everything(bochner.load(tmp_path / "again.bochner"), X), strict=True):
        assert np.array_equal(expected, found)


@pytest.mark.parametrize("labels", [[3, 1, 2], [True, False], ["b", "a"], [1.0, 2.0]], ids=str)
def test_labels_keep_their_type(labels, rng, tmp_path):
    X = rng.normal(size=(60, 3))
    y = np.resize(np.array(labels), 60)
    model = FeatureRidgeClassifier(FourierFeatures(16), random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = bochner.load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    assert np.array_equal(again.predict(X), model.predict(X))


def test_models_without_a_file_say_so(data, tmp_path):
    class Own(FeatureRidge):
        """A class that `load` could not know."""

    with pytest.raises(TypeError, match="Own has no model file; pickle keeps it"):
        fitted(Own(FourierFeatures(16), random_state=0), data).save(tmp_path / "model")
    with pytest.raises(NotFittedError):
        FeatureRidge().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_damaged_and_foreign_files_are_refused(data, tmp_path):
    path = tmp_path / "model"
    fitted(MODELS[0], data).save(path)
    bytes_ = bytearray(path.read_bytes())
    bytes_[-3] ^= 1
    path.write_bytes(bytes_)
    with pytest.raises(ValueError, match="does not match its hash"):
        bochner.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a safetensors container"):
        bochner.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        bochner.load(tmp_path / "nowhere")


@pytest.fixture
def table(rng, tmp_path):
    """A table with a category, an empty cell, a number to predict and a word to predict."""
    n = 200
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n).round(1),
            "colour": rng.choice(["blue", "green", "red"], n),
            "size": rng.normal(size=n).round(3),
        }
    )
    frame["price"] = (np.sin(frame["age"] / 10) + (frame["colour"] == "red") + frame["size"]).round(4) * 100
    frame["verdict"] = np.where(frame["price"] > 50, "dear", "cheap")
    frame.loc[7, "size"] = np.nan
    frame.to_csv(tmp_path / "table.csv", index=False)
    return frame


@pytest.mark.parametrize("family", ["ridge", "gp"])
@pytest.mark.parametrize("dtype", ["single", "double"])
def test_python_predicts_what_the_command_line_predicts(program, table, tmp_path, family, dtype):
    data, model, out = tmp_path / "table.csv", tmp_path / "model.bochner", tmp_path / "out.npy"
    options = ["--drop", "verdict", "--impute", "mean", "--features", "64", "--model", family, "--precision", dtype]
    program("fit", data, "--target", "price", *options, "--out", model, "--quiet")
    program("predict", model, data, "--out", out)
    expected = np.load(out)
    opened = bochner.load(model)
    inputs = table.drop(columns=["price", "verdict"])
    assert np.array_equal(opened.predict(inputs), expected)
    assert np.array_equal(opened.predict(inputs[["size", "colour", "age"]]), expected)
    assert np.array_equal(opened.predict(inputs.to_numpy()), expected)
    assert list(opened.feature_names_in_) == ["age", "colour", "size"]
    assert np.corrcoef(expected, table["price"])[0, 1] > 0.9
    opened.save(tmp_path / "again.bochner")
    program("predict", tmp_path / "again.bochner", data, "--out", tmp_path / "again.npy")
    assert np.array_equal(np.load(tmp_path / "again.npy"), expected)
    with pytest.raises(ValueError, match="no column size"):
        opened.predict(inputs.drop(columns="size"))
    with pytest.raises(ValueError, match=r"no column colour \(did you mean Color\?\).* X has age, Color, size"):
        opened.predict(inputs.rename(columns={"colour": "Color"}))
    with pytest.raises(ValueError, match='row 1: column 2 .colour.: the word "mauve" did not occur in training'):
        opened.predict(inputs.assign(colour="mauve"))


@pytest.mark.parametrize("impute", [["--impute", "mean"], ["--drop-missing"]])
def test_gaps_among_categories_are_the_same_at_both_doors(program, table, tmp_path, impute):
    with_gaps = table.assign(colour=table["colour"].where(table.index % 7 != 0))
    data, model, out = tmp_path / "gaps.csv", tmp_path / "model.bochner", tmp_path / "out.npy"
    with_gaps.to_csv(data, index=False)
    options = ["--drop", "verdict", "--features", "32", "--precision", "double", *impute]
    program("fit", data, "--target", "price", *options, "--out", model, "--quiet")
    opened, inputs = bochner.load(model), with_gaps.drop(columns=["price", "verdict"])
    if impute == ["--drop-missing"]:
        # Rows must not disappear from under their predictions: those with gaps have none.
        program("predict", model, data, "--out", out)
        assert np.array_equal(np.isnan(np.load(out)), inputs.isna().any(axis=1))
        with pytest.raises(ValueError, match="the value is missing, and the model was trained on rows without gaps"):
            opened.predict(inputs)
        return
    program("predict", model, data, "--out", out)
    assert np.array_equal(opened.predict(inputs), np.load(out))
    assert np.array_equal(opened.predict(inputs.assign(colour=inputs["colour"].astype("category"))), np.load(out))
    assert np.array_equal(opened.predict(inputs.assign(colour=inputs["colour"].fillna("NA"))), np.load(out))


def test_dates_gaps_and_numbers_as_people_write_them_are_the_same_at_both_doors(program, table, tmp_path):
    data, model, out = tmp_path / "messy.csv", tmp_path / "model.bochner", tmp_path / "out.npy"
    frame = table.drop(columns="verdict").assign(
        day=pd.Timestamp("2020-01-31") + pd.to_timedelta(7 * table.index, unit="h"),
        rent=[f"{1000 + 3 * i:,}".replace(",", ".") + f",{i % 10} €" for i in range(len(table))],
        colour=table["colour"].where(table.index % 7 != 0),
    )
    frame.loc[11, "day"] = pd.NaT
    frame.to_csv(data, index=False, sep=";")
    program("fit", data, "--target", "price", "--features", "32", "--precision", "double", "--out", model, "--quiet")
    program("predict", model, data, "--out", out)
    opened, inputs = bochner.load(model), frame.drop(columns="price")
    assert np.array_equal(opened.predict(inputs), np.load(out))
    as_text = inputs.assign(day=inputs["day"].astype(str).replace("NaT", None))
    assert np.array_equal(opened.predict(as_text), np.load(out))
    with pytest.raises(ValueError, match='column 5 .rent.: expected a number, found ".3"'):
        opened.predict(inputs.assign(rent="$3"))


@pytest.mark.parametrize("family", ["ridge", "gp", "svm", "kernel-svm"])
def test_python_names_the_classes_of_the_command_line(program, table, tmp_path, family):
    data, model, out = tmp_path / "table.csv", tmp_path / "model.bochner", tmp_path / "out.csv"
    options = ["--drop", "price", "--impute", "median", "--model", family]
    options += [] if family == "kernel-svm" else ["--features", "64"]
    program("fit", data, "--target", "verdict", *options, "--out", model, "--quiet")
    program("predict", model, data, "--out", out)
    opened = bochner.load(model)
    found = opened.predict(table.drop(columns=["price", "verdict"]))
    assert np.array_equal(found, pd.read_csv(out)["verdict"])
    assert (found == table["verdict"]).mean() > 0.9


def test_several_targets_have_columns_of_their_own(program, data, tmp_path):
    X, Y, _ = data
    model = FeatureRidge(FourierFeatures(16, random_state=0)).fit(X, Y)
    model.save(tmp_path / "model.bochner")
    np.save(tmp_path / "rows.npy", X)
    program("predict", tmp_path / "model.bochner", tmp_path / "rows.npy", "--out", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns) == ["prediction_1", "prediction_2"]
    assert np.array_equal(found.to_numpy(), model.predict(X))


# Kinds that the command line knows.
COMMAND_LINE = [model for model in MODELS if type(model) in (FeatureRidge, FeatureRidgeClassifier, FeatureSVC)] + [
    FeatureGPRegressor(FourierFeatures(32, random_state=4), noise=0.2),
    FeatureGPClassifier(FourierFeatures(32), random_state=3),
    exact.KernelSVC(Matern(nu=2.5, length_scale=1.5), C=3.0),
]


@pytest.mark.parametrize("named", [False, True], ids=["array", "table"])
@pytest.mark.parametrize("model", COMMAND_LINE, ids=lambda model: type(model).__name__)
def test_the_command_line_predicts_what_python_predicts(program, model, data, tmp_path, named):
    X, Y, labels = data
    frame = pd.DataFrame(X, columns=["left", "right"])
    rows = frame if named else X
    target = labels if is_classifier(model) else Y[:, 0]
    model = clone(model).fit(rows, target)
    model.save(tmp_path / "model.bochner")
    if named:
        # Columns are found by name, whatever their order.
        frame[["right", "left"]].to_csv(tmp_path / "rows.csv", index=False)
        source = tmp_path / "rows.csv"
    else:
        source = tmp_path / "rows.npy"
        np.save(source, X)
    out = tmp_path / "out.csv"
    program("predict", tmp_path / "model.bochner", source, "--out", out)
    found = pd.read_csv(out).iloc[:, 0].to_numpy()
    assert np.array_equal(found, model.predict(rows))
    told = program("inspect", tmp_path / "model.bochner")
    assert ("support vectors" if isinstance(model, exact.KernelSVC) else "drawn again from its seed") in told
    header = json.loads(program("inspect", tmp_path / "model.bochner", "--json"))
    assert header["input_dim"] == 2
