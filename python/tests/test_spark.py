"""Fits on Spark's own processes: the coefficients of one machine, also when a task fails."""

import os
import shutil
import sys

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from bochner import (
    FeatureGPClassifier,
    FeatureGPRegressor,
    FeatureRidge,
    FeatureRidgeClassifier,
    FeatureSVC,
    FourierFeatures,
    OperatorRidge,
)

if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)
pd = pytest.importorskip("pandas")

# Processes that Spark starts are to find what this one has found.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from pyspark.ml import Pipeline  # noqa: E402
from pyspark.ml.evaluation import RegressionEvaluator  # noqa: E402
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

import bochner.spark  # noqa: E402

N = 2000


@pytest.fixture(scope="module")
def session():
    # Two threads, and one more try for a task that fails.
    builder = SparkSession.builder.master("local[2,2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    session = builder.config("spark.driver.memory", "512m").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "kind": np.where(y > 0, "high", "low")})


@pytest.fixture(scope="module")
def frame(session, data):
    """Four partitions: most rows in one, and at least two without any."""
    place = F.when(F.col("a") < 1.0, 0).otherwise(1)
    frame = session.createDataFrame(data).repartition(4, place).cache()
    assert frame.rdd.getNumPartitions() == 4
    return frame


def scores(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else (
        model.decision_function(X) if is_classifier(model) else model.predict(X)
    )


@pytest.mark.parametrize(
    "model",
    [
        FeatureRidge(FourierFeatures(64), alpha=0.1, random_state=3),
        FeatureRidgeClassifier(FourierFeatures(64), alpha=0.1, random_state=3),
        FeatureGPRegressor(FourierFeatures(32, form="complex"), random_state=3),
        FeatureGPClassifier(FourierFeatures(32), random_state=3),
        OperatorRidge(n_components=32, A="covariance", alpha=0.1, random_state=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_has_the_answers_of_one_machine(session, data, frame, model):
    X = data[["a", "b", "c"]]
    target = "kind" if is_classifier(model) else ["y", "c"] if isinstance(model, OperatorRidge) else "y"
    columns = ["a", "b"] if isinstance(target, list) else ["a", "b", "c"]
    fitted = bochner.spark.fit(model, frame, features=columns, target=target)
    local = clone(model).fit(X[columns], data[target])
    one, other = scores(fitted, X[columns][:100]), scores(local, X[columns][:100])
    assert np.abs(one - other).max() <= 1e-8 * np.abs(other).max()
    assert fitted.get_params()["random_state"] == 3 and not hasattr(model, "model_")


def test_a_task_that_fails_is_run_again_and_counts_once(session, data, frame, tmp_path):
    marker = str(tmp_path / "failed")

    def once(batches):
        for batch in batches:
            if not os.path.exists(marker) and batch.num_rows > 10:
                open(marker, "w").close()
                raise RuntimeError("a task that fails")
            yield batch

    model = FeatureRidge(FourierFeatures(64), alpha=0.1, random_state=3)
    # The first rows are looked at as well: it is the sums that are to fail.
    fitted = clone(model)
    unreliable = _After(frame.select("a", "b", "c", "y"), once)
    fitted = bochner.spark.fit(model, unreliable, features=["a", "b", "c"])
    assert os.path.exists(marker)
    local = clone(model).fit(data[["a", "b", "c"]], data["y"])
    assert np.abs(fitted.coef_ - local.coef_).max() <= 1e-8 * np.abs(local.coef_).max()


class _After:
    """A frame whose partitions go through a function first, but for those that `limit` looks at."""

    def __init__(self, frame, function):
        self._frame, self._function, self.columns = frame, function, frame.columns

    def select(self, *names):
        return _After(self._frame.select(*names), self._function)

    def limit(self, n):
        return self._frame.limit(n)

    def __getattr__(self, name):
        return getattr(self._frame.mapInArrow(self._function, self._frame.schema), name)


def test_many_partitions_are_added_up_in_a_tree(session, data):
    model = FeatureRidge(FourierFeatures(16, random_state=0), alpha=0.1)
    frame = session.createDataFrame(data[["a", "b", "c", "y"]]).repartition(10)
    fitted = bochner.spark.fit(model, frame)
    local = clone(model).fit(data[["a", "b", "c"]], data["y"])
    assert np.abs(fitted.coef_ - local.coef_).max() <= 1e-8 * np.abs(local.coef_).max()


def test_predictions_and_features_become_columns(session, data, frame):
    X = data[["a", "b", "c"]]
    model = FeatureRidgeClassifier(FourierFeatures(32, random_state=0)).fit(X, data["kind"])
    found = bochner.spark.predict(model, frame).toPandas()
    assert list(found.columns) == [*data.columns, "prediction"] and len(found) == N
    assert np.array_equal(found["prediction"], model.predict(found[["a", "b", "c"]]))
    values = bochner.spark.predict(model, frame, method="decision_function", column="value").toPandas()
    assert np.allclose(values["value"], model.decision_function(values[["a", "b", "c"]]))
    features = FourierFeatures(8, random_state=0).fit(X)
    made = bochner.spark.transform(features, frame).toPandas()
    assert np.allclose(np.stack(made["features"]), features.transform(made[["a", "b", "c"]]))
    with pytest.raises(ValueError, match="column y already"):
        bochner.spark.predict(model, frame, column="y")


def test_pipelines_and_cross_validators_take_the_estimator(session, data, frame):
    estimator = bochner.spark.ModelEstimator(FeatureRidge(FourierFeatures(32, random_state=0)), ["a", "b", "c"])
    fitted = Pipeline(stages=[estimator]).fit(frame)
    assert fitted.transform(frame).count() == N
    grid = ParamGridBuilder().addGrid(estimator.alpha, [1e-3, 1e5]).build()
    judge = RegressionEvaluator(labelCol="y", predictionCol="prediction")
    searched = CrossValidator(estimator=estimator, estimatorParamMaps=grid, evaluator=judge, numFolds=2, seed=1).fit(frame)
    assert searched.bestModel.model.alpha == 1e-3 and searched.avgMetrics[0] < searched.avgMetrics[1]


def test_what_cannot_be_fitted_is_refused(session, frame):
    with pytest.raises(TypeError, match="not solved from sums"):
        bochner.spark.fit(FeatureSVC(), frame)
    with pytest.raises(TypeError, match="column 'kind' holds words"):
        bochner.spark.fit(FeatureRidge(), frame)
    with pytest.raises(ValueError, match="0 sample"):
        bochner.spark.fit(FeatureRidge(), frame.filter("a > 1000"), features=["a"])
