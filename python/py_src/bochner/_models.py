"""What models share: rows, targets and labels on their way in, weights, sums that rows are added to, and files."""

from __future__ import annotations

import os
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from bochner._base import FeatureTransformer
from bochner._checks import check_rows, explained, forget, seed_of
from bochner._features import FourierFeatures
from bochner._progress import progress


class Model(BaseEstimator):
    """An estimator around a model of the core."""

    # What rows are checked for besides; see `check_rows`.
    _row_checks: ClassVar[dict[str, Any]] = {}
    # dtype of targets, where it is not that of the rows.
    _target_dtype: ClassVar[Any] = None

    n_jobs: int | None
    verbose: int

    def _model(self) -> Any:
        """The fitted model of the core."""
        check_is_fitted(self)
        return self.model_

    def _rows(self, X: ArrayLike, model: Any) -> Any:
        """Rows to predict for, in the dtype of the model; prepared first where the model's file says so."""
        preparation = getattr(self, "preparation_", None)
        rows = check_rows(self, X, reset=False, **self._row_checks) if preparation is None else preparation.transform(X)
        return rows.astype(getattr(model, "dtype", rows.dtype), copy=False)

    def _weights(self, X: Any, sample_weight: ArrayLike | None) -> NDArray[Any] | None:
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)

    def _values(self, X: ArrayLike) -> NDArray[Any]:
        """One column of values per target or class."""
        model = self._model()
        rows = self._rows(X, model)
        with explained(self, ("X", rows)):
            return model.predict(rows, n_jobs=self.n_jobs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`bochner.load` reads.

        The command line reads it as well, but for exact models other than :class:`bochner.exact.KernelSVC`. The file is written whole or not at all. It holds numbers and their description, no code.

        Parameters
        ----------
        path : str or path-like
            Where to; ``.bochner`` is the customary ending.
        """
        from bochner._files import save

        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._row_checks.get("accept_sparse", True) is not False
        return tags


class FeatureModel(Model):
    """A model on features: drawing the map."""

    features: FeatureTransformer | None
    random_state: Any

    def _draw(self, X: Any) -> FeatureTransformer:
        features = FourierFeatures() if self.features is None else self.features
        if not isinstance(features, FeatureTransformer):
            raise TypeError(
                f"features must be a transformer of bochner, got {type(features).__name__}; "
                "steps before it belong into a Pipeline"
            )
        features = clone(features)
        if X.shape[0] < features._rows_needed():
            raise ValueError(f"the features need {features._rows_needed()} rows or more, got n_samples={X.shape[0]}")
        with explained(self, ("X", X)):
            drawn = features._draw(X, self._feature_seed(features))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(features, name, getattr(self, name))
        return features._adopt(drawn)

    def _feature_seed(self, features: FeatureTransformer) -> int:
        return seed_of(self.random_state if features.random_state is None else features.random_state)


class Regression(MultiOutputMixin, RegressorMixin, Model):
    """A model of one or several numbers."""

    def _targets(self, X: ArrayLike, y: ArrayLike, *, first: bool = True, **checks: Any) -> tuple[Any, NDArray[Any]]:
        """Rows and a matrix of targets; the first ones decide about the dtype and the number of targets."""
        if first:
            forget(self)
        checks = {"multi_output": True, "y_numeric": True, **self._row_checks, **checks}
        rows, targets = check_rows(self, X, y=y, reset=first, **checks)
        if first:
            self.dtype_ = rows.dtype
            self.target_shape_ = targets.shape[1:]
        elif targets.shape[1:] != self.target_shape_:
            raise ValueError(f"y has shape {targets.shape}, but the first rows had {self.target_shape_} targets")
        targets = targets.reshape(len(targets), -1)
        targets = np.ascontiguousarray(targets, dtype=self._target_dtype or self.dtype_)
        return rows.astype(self.dtype_, copy=False), targets

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions, in the dtype of the rows seen in `fit`.
        """
        return self._shaped(self._values(X))

    def _shaped(self, values: NDArray[Any], *, spread: bool = False) -> NDArray[Any]:
        """Values as y was shaped, in its units; `spread` for deviations from them."""
        units = getattr(self, "target_units_", None)
        if units is not None:
            mean, scale = units
            values = values.astype(np.float64) * scale
            values = values if spread else values + mean
        return values.reshape(len(values), *self.target_shape_)


def predict_process(process: Regression, X: ArrayLike, return_std: bool, return_cov: bool) -> Any:
    """Means of a Gaussian process, with deviations or covariances where asked for."""
    if return_std and return_cov:
        raise ValueError("at most one of return_std and return_cov can be True")
    model = process._model()
    rows = process._rows(X, model)
    with explained(process, ("X", rows)):
        if return_std:
            mean, variance = model.predict_with_variance(rows, n_jobs=process.n_jobs)
            return process._shaped(mean), process._shaped(np.sqrt(variance), spread=True)
        mean = process._shaped(model.predict(rows, n_jobs=process.n_jobs))
        if not return_cov:
            return mean
        scales = getattr(process, "target_units_", (None, np.ones(len(model.observation_variances))))[1]
        matrices = [model.covariance(rows, t, n_jobs=process.n_jobs) * s**2 for t, s in enumerate(scales)]
        return mean, np.stack(matrices, axis=-1) if process.target_shape_ else matrices[0]


class Classification(ClassifierMixin, Model):
    """A model of labels, which the core knows by their numbers."""

    def _labels(
        self, X: ArrayLike, y: ArrayLike, *, first: bool = True, classes: ArrayLike | None = None, **checks: Any
    ) -> tuple[Any, NDArray[Any]]:
        """Rows and a column of numbers of classes."""
        if first:
            forget(self)
        rows, labels = check_rows(self, X, y=y, reset=first, **self._row_checks, **checks)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        if first:
            self.dtype_ = rows.dtype
            self.classes_ = np.unique(labels if classes is None else np.asarray(classes))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(np.asarray(classes))):
            raise ValueError(f"classes={classes!r} is not the same as on the first call to partial_fit: {self.classes_}")
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y contains labels that are not in classes: {unknown}")
        numbers = np.searchsorted(self.classes_, labels).reshape(-1, 1).astype(self.dtype_)
        return rows.astype(self.dtype_, copy=False), numbers

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        scores = self._scores(X)
        return self._winners(scores)

    def _scores(self, X: ArrayLike) -> NDArray[Any]:
        """Values whose largest decides, one column per class."""
        return self._values(X)

    def _winners(self, values: NDArray[Any]) -> NDArray[Any]:
        """The labels with the largest values; a single column is positive for the second of two."""
        if values.shape[1] == 1:
            return self.classes_[np.where(values[:, 0] > 0, len(self.classes_) - 1, 0)]
        return self.classes_[np.argmax(values, axis=1)]


class Probable(Classification):
    """A classification that knows probabilities."""

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        model = self._model()
        rows = self._rows(X, model)
        with explained(self, ("X", rows)):
            return model.probabilities(rows, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of probabilities of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            Logarithms, in the order of `classes_`.
        """
        return np.log(np.maximum(self.predict_proba(X), 1e-300))

    def _scores(self, X: ArrayLike) -> NDArray[np.float64]:
        return self.predict_proba(X)


class Accumulating(Model):
    """A model solved from sums over rows: rows may come in any number of calls, and from any number of machines.

    Sums of the core have methods `push`, `merge` and a property `count`, and can be pickled.
    """

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        """Draws features, and finds what depends on the first rows."""
        raise NotImplementedError

    def _empty(self) -> Any:
        """Sums over no rows, for the features of `_begin`."""
        raise NotImplementedError

    def _solved(self) -> Any:
        """The model of the sums."""
        return self.sums_.solve(self._plan(), n_jobs=self.n_jobs)

    def _plan(self) -> str:
        raise NotImplementedError

    def _add(self, rows: Any, targets: NDArray[Any], sample_weight: ArrayLike | None) -> Self:
        """Adds rows to the sums; the model is solved when it is asked for."""
        weights = self._weights(rows, sample_weight)
        if not hasattr(self, "sums_"):
            self._begin(rows, targets)
            self.sums_ = self._empty()
        try:
            with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
                self.sums_.push(rows, targets, weights, n_jobs=self.n_jobs, progress=report)
        except BaseException:
            # Part of the rows may have been added: better nothing than something between two states.
            forget(self)
            raise
        if hasattr(self, "model_"):
            del self.model_
        return self

    def _starts(self) -> bool:
        """Whether `partial_fit` begins a new stream of rows."""
        if hasattr(self, "sums_"):
            return False
        if hasattr(self, "model_"):
            # Sums take the square of the number of features in memory, the model only its multiple.
            warnings.warn(
                f"{type(self).__name__}.fit keeps no sums to add rows to: partial_fit starts anew with these rows. "
                "Call partial_fit from the first rows on to go on later.",
                stacklevel=3,
            )
            forget(self)
        return True

    def _model(self) -> Any:
        """The fitted model, solved from the sums if rows were added since."""
        check_is_fitted(self)
        if not hasattr(self, "model_"):
            self.model_ = self._solved()
        return self.model_

    def __getstate__(self) -> dict[str, Any]:
        """The model without the sums of `partial_fit`: a pickle predicts, and cannot be added to."""
        if hasattr(self, "sums_"):
            self._model()
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("sums_", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or hasattr(self, "sums_")


class AccumulatingRegression(Regression, Accumulating):
    """A regression solved from sums."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, targets = self._targets(X, y, **self._checks())
        return self._fit(rows, targets, self._weights(rows, sample_weight))

    def _fit(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        raise NotImplementedError

    def _checks(self) -> dict[str, Any]:
        """What `validate_data` is to look for besides."""
        return {}

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to those of earlier calls; the result is that of one `fit` to all of them.

        What depends on data (a median length scale, searched hyperparameters) is found on the rows of the first call.
        After `fit`, and in a pickled copy, there are no sums to add to: it starts anew, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More rows. The first ones decide about the dtype.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The fitted model.
        """
        first = self._starts()
        rows, targets = self._targets(X, y, first=first, **(self._checks() if first else {}))
        return self._add(rows, targets, sample_weight)


class AccumulatingClassification(Classification, Accumulating):
    """A classification solved from sums."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels: numbers, strings or booleans.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, numbers = self._labels(X, y, **self._checks())
        return self._fit(rows, numbers, self._weights(rows, sample_weight))

    def _fit(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        raise NotImplementedError

    def _checks(self) -> dict[str, Any]:
        """What `validate_data` is to look for besides."""
        return {}

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to those of earlier calls; the result is that of one `fit` to all of them.

        What depends on data (a median length scale) is found on the rows of the first call. After `fit`, and in a
        pickled copy, there are no sums to add to: it starts anew, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More rows. The first ones decide about the dtype.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever occur; needed in the first call.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The fitted model.
        """
        known = getattr(self, "classes_", None) if classes is None else classes
        first = self._starts()
        if first and known is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        checks = self._checks() if first else {}
        rows, numbers = self._labels(X, y, first=first, classes=known, **checks)
        return self._add(rows, numbers, sample_weight)
