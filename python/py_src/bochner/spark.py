"""Fits and predictions on Spark data frames, spread over the executors of a cluster.

Every partition becomes sums of fixed size (``mapInArrow``: columns never become Python objects), sums are added up in a tree, and
the model is solved where `fit` was called. It is an ordinary estimator with the coefficients of a fit on one machine, to rounding:
it predicts without Spark. A task that fails is run again by Spark, and its sums count once.

Install with ``pip install bochner[spark]``, on the executors too; Spark needs Java 17 or newer.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from bochner._base import SAMPLE_ROWS, FeatureTransformer
from bochner._catalogue import documented
from bochner._distributed import begun, covariance_of, finished, fix_seed, merged, moments_of
from bochner._models import AccumulatingClassification, Classification
from bochner._operator import _OperatorRidge
from bochner._stream import Arrow, Batch

try:
    import pyarrow as pa
    from pyspark.ml import Estimator, Model
    from pyspark.ml.param import Param, TypeConverters
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
except ImportError as error:  # pragma: no cover - the extra is installed where this module is tested
    raise ImportError("bochner.spark needs pyspark and pyarrow: pip install 'bochner[spark]'") from error

__all__ = ["FittedModel", "ModelEstimator", "fit", "predict", "transform"]

# Sums that one task adds up.
_FAN_IN = 8

_documented = partial(
    documented,
    frame=("pyspark.sql.DataFrame", "Rows."),
    features=("list of str, default=None", "The columns of rows; all others, or those that the model was fitted to, if not given."),
    target=("str or list of str, default=\"y\"", "The columns to predict."),
)


@_documented
def fit(model: Any, frame: Any, features: Sequence[str] | None = None, target: str | Sequence[str] = "y") -> Any:
    """Fit a model to rows that are spread over a cluster.

    Parameters
    ----------
    model : estimator
        A model that is solved from sums: :class:`bochner.FeatureRidge`, :class:`bochner.FeatureRidgeClassifier`,
        :class:`bochner.FeatureGPRegressor`, :class:`bochner.FeatureGPClassifier` (by the Dirichlet transform, with one
        `alpha`), :class:`bochner.OperatorRidge` or :class:`bochner.OperatorRidgeClassifier`. It is cloned, not changed.

    Returns
    -------
    model : estimator
        The fitted model. What depends on data (a median length scale, searched hyperparameters) is found on 5,000 rows, those
        that Spark gives first.
    """
    fitted = begun(model)
    targets = [target] if isinstance(target, str) else list(target)
    columns = [name for name in frame.columns if name not in targets] if features is None else list(features)
    labelled = isinstance(fitted, AccumulatingClassification)
    table = frame.select(*columns, *targets)
    fix_seed(fitted)
    read = partial(_batches, targets=targets, columns=columns, labelled=labelled)
    found = list(read(table.limit(SAMPLE_ROWS).toArrow().to_batches()))
    if not found:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    known = {}
    if labelled:
        known["classes"] = np.unique([row[0] for row in table.select(targets[0]).distinct().collect()])
    rows, values = (np.concatenate([batch[k] for batch in found]) for k in (0, 1))
    fitted._begin(*fitted._checked(rows, values, **known, **fitted._checks()))
    if isinstance(fitted, _OperatorRidge) and fitted.A == "covariance":
        moments = partial(_summed, read=read, each=partial(_moments, fitted))
        fitted.kernel_["outputs"] = covariance_of(_reduced(table, moments, sum))
    sums = _reduced(table, partial(_summed, read=read, each=partial(_sums, fitted)), merged)
    finished(fitted, sums, model)
    for owner in (fitted, getattr(fitted, "features_", None)):
        if owner is not None:
            owner.feature_names_in_ = np.array(columns, dtype=object)
    return fitted


@_documented
def predict(
    model: Any, frame: Any, features: Sequence[str] | None = None, method: str = "predict", column: str = "prediction"
) -> Any:
    """Predict for rows that are spread over a cluster.

    Parameters
    ----------
    model : estimator
        Any fitted model of this package.
    method : str, default="predict"
        What is asked of the model: ``"predict"``, ``"predict_proba"``, ``"decision_function"``, ...
    column : str, default="prediction"
        The name of the new column: numbers or labels, or arrays of numbers where there are several for a row.

    Returns
    -------
    frame : pyspark.sql.DataFrame
        The frame with one more column.
    """
    return _with_column(model, frame, _known(model, frame, features), method, column)


@_documented
def transform(
    transformer: FeatureTransformer, frame: Any, features: Sequence[str] | None = None, column: str = "features"
) -> Any:
    """Features of rows that are spread over a cluster.

    Parameters
    ----------
    transformer : transformer
        Any fitted transformer of this package, with real features.
    column : str, default="features"
        The name of the new column, of arrays of numbers.

    Returns
    -------
    frame : pyspark.sql.DataFrame
        The frame with one more column.
    """
    return _with_column(transformer, frame, _known(transformer, frame, features), "transform", column)


def _known(model: Any, frame: Any, features: Sequence[str] | None) -> list[str]:
    if features is not None:
        return list(features)
    return list(map(str, getattr(model, "feature_names_in_", frame.columns)))


def _batches(batches: Iterable[Any], targets: list[str], columns: list[str], labelled: bool) -> Iterator[Batch]:
    """Rows and targets of record batches."""
    rest = (batch for batch in batches if batch.num_rows)
    first = next(rest, None)
    if first is None:
        return

    def all_of_them() -> Iterator[Any]:
        yield first
        yield from rest

    yield from Arrow(pa.RecordBatchReader.from_batches(first.schema, all_of_them()), targets, columns, labelled).batches()


def _sums(template: Any, batches: Iterator[Batch]) -> Any:
    """Sums over the rows of a partition; None where it has none."""
    model, sums = copy(template), None
    for rows, targets in batches:
        rows, targets = model._checked(rows, targets, first=False)
        sums = model._empty() if sums is None else sums
        sums.push(rows, targets, None, n_jobs=model.n_jobs or 1)
    return sums


def _moments(template: Any, batches: Iterator[Batch]) -> Any:
    parts = [moments_of(template, targets, None) for _, targets in batches]
    return sum(parts) if parts else None


def _summed(batches: Iterable[Any], read: Callable[..., Any], each: Callable[..., Any]) -> Iterator[Any]:
    """What a partition is reduced to, as a table of one row; of an empty one nothing."""
    reduced = each(read(batches))
    if reduced is not None:
        yield _packed(reduced)


def _packed(value: Any) -> Any:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(value)], pa.binary())], names=["sums"])


def _merge(batches: Iterable[Any], merge: Callable[[list[Any]], Any]) -> Iterator[Any]:
    """Packed sums of a partition, added up one after the other."""
    total = None
    for batch in batches:
        for packed in batch.column(0):
            part = pickle.loads(packed.as_py())
            total = part if total is None else merge([total, part])
    if total is not None:
        yield _packed(total)


def _reduced(table: Any, reduce: Callable[..., Any], merge: Callable[[list[Any]], Any]) -> Any:
    """All partitions reduced to one, a few at a time, the last ones at the driver."""
    parts = table.rdd.getNumPartitions()
    packed = table.mapInArrow(reduce, "sums binary")
    while parts > _FAN_IN:
        parts = -(-parts // _FAN_IN)
        packed = packed.repartition(parts).mapInArrow(partial(_merge, merge=merge), "sums binary")
    total = None
    for row in packed.collect():
        part = pickle.loads(bytes(row[0]))
        total = part if total is None else merge([total, part])
    return total


def _with_column(model: Any, frame: Any, columns: list[str], method: str, column: str) -> Any:
    shown = _apply(model, method, np.ones((1, len(columns)), dtype=getattr(model, "dtype_", np.float64)))
    if np.iscomplexobj(shown):
        raise TypeError("Spark has no complex numbers: features must be real")
    kinds = {"b": T.BooleanType(), "i": T.LongType(), "u": T.LongType(), "f": T.DoubleType()}
    element = kinds.get(shown.dtype.kind, T.StringType())
    kind = element if shown.ndim == 1 else T.ArrayType(element)
    if column in frame.columns:
        raise ValueError(f"the frame has a column {column} already; column=... gives another name")
    schema = T.StructType([*frame.schema.fields, T.StructField(column, kind)])
    return frame.mapInArrow(partial(_answered, model=model, columns=columns, method=method, column=column), schema)


def _apply(model: Any, method: str, rows: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(getattr(model, method)(rows))


def _answered(batches: Iterable[Any], model: Any, columns: list[str], method: str, column: str) -> Iterator[Any]:
    for batch in batches:
        if batch.num_rows == 0:
            continue
        parts = list(_batches([batch], [], columns, False))
        values = np.concatenate([_apply(model, method, rows) for rows, _ in parts])
        values = values.astype(np.float64) if values.dtype.kind == "f" else values
        if values.ndim == 1:
            kind = values.dtype.kind
            answer = pa.array(values.astype(np.int64) if kind in "iu" else values.tolist() if kind in "UO" else values)
        else:
            answer = pa.array(list(values.reshape(len(values), -1)))
        yield pa.RecordBatch.from_arrays([*batch.columns, answer], names=[*batch.schema.names, column])


class ModelEstimator(Estimator[Any]):
    """A model of this package as an estimator of Spark ML: for pipelines and cross-validators.

    Every parameter of the model is a ``Param`` of the same name, so that grids of parameters can be tried.

    Parameters
    ----------
    model : estimator
        The model to be fitted.
    features : list of str
        The columns of rows.
    target : str, default="y"
        The column to predict.
    prediction : str, default="prediction"
        The column of predictions.
    """

    def __init__(self, model: Any, features: Sequence[str], target: str = "y", prediction: str = "prediction") -> None:
        super().__init__()
        # Parameters of the model have the other names.
        self._model, self._columns, self._target, self._prediction = model, list(features), target, prediction
        for name in model.get_params(deep=False):
            setattr(self, name, Param(self, name, f"{name} of {type(model).__name__}", typeConverter=TypeConverters.identity))

    def _fit(self, dataset: Any) -> FittedModel:
        told = {param.name: value for param, value in self.extractParamMap().items()}
        model = clone(self._model).set_params(**told)
        return FittedModel(fit(model, dataset, self._columns, self._target), self._columns, self._prediction)


class FittedModel(Model):
    """What :class:`ModelEstimator` fits: `transform` adds a column of predictions.

    Parameters
    ----------
    model : estimator
        The fitted model, an ordinary local one.
    features : list of str
        The columns of rows.
    prediction : str, default="prediction"
        The column of predictions.
    """

    def __init__(self, model: Any, features: Sequence[str], prediction: str = "prediction") -> None:
        super().__init__()
        self.model, self.features, self.prediction = model, list(features), prediction

    def _transform(self, dataset: Any) -> Any:
        found = predict(self.model, dataset, self.features, column=self.prediction)
        if isinstance(self.model, Classification) and np.asarray(self.model.classes_).dtype.kind in "iub":
            # Evaluators of Spark compare doubles.
            return found.withColumn(self.prediction, F.col(self.prediction).cast("double"))
        return found
