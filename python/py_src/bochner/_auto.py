"""A table in, a model out: what ``bochner fit`` does, for arrays and data frames."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from bochner import _bochner, _stream
from bochner._catalogue import Documented
from bochner._checks import changing, check_rows, forget, seed_of
from bochner._files import _numbered, load

_TARGET = "target"


class Report:
    """What was chosen and how good it is: text where it is printed, HTML in a notebook."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    def __str__(self) -> str:
        found = self.facts
        lines = [found["verdict"], f"task: {found['task']}, because {found['reason']}"]
        lines += [f"map: {found['map_reason']}"] if found["map_reason"] else []
        lines += [f"features: {found['features']} ({found['limit']})", f"penalty: {found['penalty']:.3g}"]
        lines += [found["intervals"]] if found["intervals"] else []
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        return "<br>".join(escape(line) for line in str(self).splitlines())


class _Auto(Documented, BaseEstimator):
    """What both estimators share."""

    _task: ClassVar[str]

    def __init__(
        self, budget: float = 30.0, *, random_state: Any = None, n_jobs: int | None = None, verbose: int = 0
    ) -> None:
        self.budget = budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, y: NDArray[Any], targets: list[str]) -> Self:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            _write(path, X, y, targets)
            return self._fit_file(path, ",".join(targets))

    def _fit_file(self, path: str | os.PathLike[str], target: str) -> Self:
        seed = seed_of(self.random_state)
        scale = getattr(self, "target_scale", None)
        model, facts = _bochner.fit_table(
            os.fspath(path), target, self._task, float(self.budget), seed, self.n_jobs, scale
        )
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "model.bochner"
            place.write_bytes(model)
            self.model_ = load(place)
        self.bytes_ = model
        found = json.loads(facts)
        self.report_ = Report(found)
        self.verdict_ = found["verdict"]
        self.trials_ = found["trials"]
        self.importances_ = dict(found["importances"])
        if self.verbose:
            print(self.report_)
        return self

    def fit_stream(self, source: Any, target: str | Sequence[str] = "y") -> Self:
        """Fit a model to a table of any size, with columns of words, dates and gaps as well.

        Choosing and fitting read the table more than once: what is not a single file is written to one, in a temporary folder,
        batch by batch.

        Parameters
        ----------
        source : path, list of paths or object with an Arrow stream
            A CSV, Parquet, NPY or other file that ``bochner fit`` reads, in blocks; a folder, a pattern or a list of Parquet or CSV
            files; a pyarrow table or reader, a polars frame, a DuckDB relation or a pandas frame.
        target : str or list of str, default="y"
            The column to predict, or several, also separated by commas.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with changing(self, "fit"), tempfile.TemporaryDirectory() as folder:
            forget(self)
            self._fit_file(_stream.as_file(source, folder), target if isinstance(target, str) else ",".join(target))
            names = self.model_.preparation_.names
            self.n_features_in_ = len(names)
            if names != _numbered(len(names)):
                self.feature_names_in_ = np.array(names, dtype=object)
            return self._after()

    def _after(self) -> Self:
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, the one that ``bochner fit`` writes for the same table and seed.

        Parameters
        ----------
        path : str or path-like
            Where to; ``.bochner`` is the customary ending.
        """
        check_is_fitted(self)
        Path(path).write_bytes(self.bytes_)

    def _table(self, X: Any) -> Any:
        check_is_fitted(self)
        if hasattr(X, "columns") and hasattr(self, "feature_names_in_"):
            return X
        return check_rows(self, X, reset=False, accept_sparse=False)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "model_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "bytes_" in state:
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "model.bochner"
                place.write_bytes(state["bytes_"])
                self.model_ = load(place)


def _columns(X: Any) -> tuple[list[str], list[Any]] | None:
    """Names and columns of a data frame of pandas, polars or pyarrow."""
    if hasattr(X, "column_names") and hasattr(X, "column"):
        return list(X.column_names), [X.column(name).to_pylist() for name in X.column_names]
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return [str(name) for name in X.columns], [list(X[name]) for name in X.columns]
    return None


def _text(cell: Any) -> str:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType") or cell != cell:
        return ""
    return repr(float(cell)) if isinstance(cell, (float, np.floating)) else str(cell)


def _write(path: Path, X: Any, y: NDArray[Any], targets: list[str]) -> None:
    """A table with its targets as a file of text."""
    found = _columns(X)
    names, columns = ([f"x{k}" for k in range(X.shape[1])], list(np.asarray(X).T)) if found is None else found
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *targets])
        for row in zip(*columns, *y.T, strict=True):
            writer.writerow([_text(cell) for cell in row])


def _targets(X: Any, count: int) -> list[str]:
    found = _columns(X)
    taken = set() if found is None else set(found[0])
    names = [_TARGET] if count == 1 else [f"{_TARGET}{k}" for k in range(count)]
    while taken & set(names):
        names = [f"{name}_" for name in names]
    return names


class AutoRegressor(RegressorMixin, _Auto):
    """Numbers from a table: columns prepared, kernel learned, features and penalty chosen within a budget of time.

    What ``bochner fit`` does: columns of words, gaps and outliers are prepared, Fourier features are learned by the gradient of
    held-out error, and the model is judged on rows that had no part in anything. The same table and seed give the same model,
    bit for bit: time is counted in operations.

    Parameters
    ----------
    budget : float, default=30.0
        Seconds that choosing and fitting may take on one core, about.
    target_scale : {"auto", "log", "none"}, default="auto"
        On which scale targets are learned: logarithms of skewed positive ones if held-out rows are predicted better by them,
        logarithms, or the targets as they are. Predictions, intervals and scores are in the units of the targets.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.
    verbose : int, default=0
        Whether to print the report.

    Attributes
    ----------
    model_ : estimator
        The fitted model on features.
    report_ : Report
        What was chosen and how good it is; text, and HTML in notebooks.
    verdict_ : str
        How good it is, in a sentence or two.
    importances_ : dict
        How much each column counts; the largest is 1.
    trials_ : list of dict
        What was compared on held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import AutoRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = AutoRegressor(budget=1.0, random_state=0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1])
    >>> bool(model.score(X, np.sin(2 * X[:, 0]) + X[:, 1]) > 0.9)
    True
    """

    _task = "regression"

    def __init__(
        self,
        budget: float = 30.0,
        *,
        target_scale: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(budget, random_state=random_state, n_jobs=n_jobs, verbose=verbose)
        self.target_scale = target_scale

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit a model to rows and targets.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; a data frame of pandas, polars or pyarrow may hold words, categories, dates and gaps.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with changing(self, "fit"):
            forget(self)
            rows, targets = _checked(self, X, y, y_numeric=True)
            self.target_shape_ = targets.shape[1:]
            targets = targets.reshape(len(targets), -1)
            return self._fit(rows, targets, _targets(rows, targets.shape[1]))

    def _after(self) -> Self:
        outputs = self.model_.target_shape_
        self.target_shape_ = outputs
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict targets.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions.
        """
        rows = self._table(X)
        return np.asarray(self.model_.predict(rows)).reshape(-1, *self.target_shape_)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[Any]:
        """Intervals that cover new rows with a given probability.

        Split conformal: as wide as the errors of rows that had no part in the fit; at least `coverage` of new rows that are
        like those are covered. Where the logarithm of the target is learned, wide predictions have wide intervals.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Share of new rows to be covered.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Ends of the intervals.
        """
        center = np.asarray(self.predict(X), dtype=np.float64)
        flat = np.ascontiguousarray(center.reshape(len(center), -1))
        ends = np.asarray(_bochner.interval_ends(self.bytes_, flat, float(coverage)))
        return ends.reshape(*center.shape, 2)


class AutoClassifier(ClassifierMixin, _Auto):
    """Classes from a table; see :class:`AutoRegressor`.

    Parameters
    ----------
    budget : float, default=30.0
        Seconds that choosing and fitting may take on one core, about.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors.
    verbose : int, default=0
        Whether to print the report.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    model_ : estimator
        The fitted model on features.
    report_ : Report
        What was chosen and how good it is; text, and HTML in notebooks.
    verdict_ : str
        How good it is, in a sentence or two.
    importances_ : dict
        How much each column counts; the largest is 1.
    trials_ : list of dict
        What was compared on held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import AutoClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = AutoClassifier(budget=1.0, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> bool(model.score(X, X[:, 0] * X[:, 1] > 0) > 0.9)
    True
    """

    _task = "classification"

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit a model to rows and labels.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows; a data frame of pandas, polars or pyarrow may hold words, categories, dates and gaps.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with changing(self, "fit"):
            forget(self)
            rows, labels = _checked(self, X, y)
            check_classification_targets(labels)
            self.classes_, numbers = np.unique(labels, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(f"the labels have one class, {self.classes_[0]!r}: nothing to learn from 1 class")
            return self._fit(rows, numbers.reshape(-1, 1).astype(np.int64), _targets(rows, 1))

    def _after(self) -> Self:
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted classes.
        """
        return self.classes_[np.asarray(self.model_.predict(self._table(X)), dtype=np.intp)]

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Probabilities of the classes, calibrated on rows that had no part in the fit.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return np.asarray(self.model_.predict_proba(self._table(X)))

    def predict_set(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Sets of classes that have the true one with a given probability.

        Split conformal, from the probabilities of rows that had no part in the fit. A set may be empty, where a row is like none
        of the classes, and hold several, where it is like them.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Share of new rows whose class is in its set.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Which classes belong to the set of each row, in the order of `classes_`.
        """
        probabilities = np.ascontiguousarray(self.predict_proba(X), dtype=np.float64)
        return np.asarray(_bochner.class_sets(self.bytes_, probabilities, float(coverage))) > 0.5


def _checked(estimator: Any, X: Any, y: ArrayLike, **checks: Any) -> tuple[Any, NDArray[Any]]:
    """Rows and targets: arrays are judged as scikit-learn does, columns of data frames by the readers of tables."""
    found = _columns(X)
    if found is None or all(np.asarray(column[:1]).dtype.kind in "fiub" for column in found[1]) and hasattr(X, "to_numpy"):
        options = {"multi_output": True} | checks if estimator._task == "regression" else {}
        rows, targets = check_rows(estimator, X, y=y, reset=True, accept_sparse=False, **options)
        if found is None:
            return rows, np.asarray(targets)
        return X, np.asarray(targets)
    targets = np.asarray(y)
    if len(targets) != len(found[1][0]):
        raise ValueError(f"X has {len(found[1][0])} rows and y has {len(targets)}")
    estimator.feature_names_in_ = np.asarray(found[0], dtype=object)
    estimator.n_features_in_ = len(found[0])
    return X, targets
