"""What models share: rows, targets and labels on their way in, weights, sums that rows are added to, and files."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from bochner import _bochner
from bochner import _stream
from bochner._base import SAMPLE_ROWS, FeatureTransformer, check_features
from bochner._catalogue import Fitted, entry
from bochner._checks import changing, check_rows, explained, forget, plain, seed_of
from bochner._features import FourierFeatures
from bochner._metric import LearnedMetric
from bochner._progress import progress


# The estimators, by the names that the catalogue and files give to kinds of models.
KINDS: dict[str, type[Model]] = {}
# Rows of models that know no single precision, and of those that take no sparse matrices either.
DOUBLE: dict[str, Any] = {"dtype": np.float64}
DENSE: dict[str, Any] = {"accept_sparse": False, **DOUBLE}
# Rows that intervals and importances are computed from, at most: more change the third digit of a quantile.
MOST_ROWS = 4000
# Parts of the rows that are left out in turn where there is no closed form.
FOLDS = 5


def learned(name: str, kind: str, about: str) -> Any:
    """A property that the core's model has by this name."""
    return property(lambda self: self._model().learned(name), doc=f"{kind}: {about}")


class Model(Fitted, BaseEstimator):
    """An estimator around a model of the core."""

    # What the catalogue and files call it.
    _kind: ClassVar[str]
    # What rows and targets are checked for besides; see `check_rows`.
    _row_checks: ClassVar[dict[str, Any]] = {}
    _target_checks: ClassVar[dict[str, Any]] = {}
    # Parameters that are seen to here: the core's model is not told.
    _apart: ClassVar[tuple[str, ...]] = ()
    # What progress is told in.
    _unit: ClassVar[str] = "rows"

    n_jobs: int | None
    verbose: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "_kind") and cls.__module__.startswith("bochner."):
            KINDS[cls._kind] = cls

    def _model(self) -> Any:
        """The fitted model of the core."""
        check_is_fitted(self)
        return self.model_

    def _rows(self, X: ArrayLike, model: Any) -> Any:
        """Rows to predict for, in the dtype of the model; prepared first where the model's file says so."""
        preparation = getattr(self, "preparation_", None)
        rows = check_rows(self, X, reset=False, **self._row_checks) if preparation is None else preparation.transform(X)
        return rows.astype(model.dtype, copy=False)

    def _checked(
        self, X: ArrayLike, y: ArrayLike, *, first: bool = True, classes: ArrayLike | None = None, **checks: Any
    ) -> tuple[Any, NDArray[Any]]:
        """Rows, and targets or numbers of classes, as the core takes them; the first ones decide about dtype and shape."""
        if first:
            forget(self)
        rows, targets = check_rows(self, X, y=y, reset=first, **self._target_checks, **self._row_checks, **checks)
        if first:
            self.dtype_ = rows.dtype
        targets = self._targets(targets, first, classes)
        return rows.astype(self.dtype_, copy=False), np.ascontiguousarray(targets, dtype=self.dtype_)

    def _targets(self, y: NDArray[Any], first: bool, classes: ArrayLike | None) -> NDArray[Any]:
        """Targets or numbers of classes, one row each."""
        raise NotImplementedError

    def _weights(self, X: Any, sample_weight: ArrayLike | None) -> NDArray[Any] | None:
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)

    def _fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fits from scratch."""
        with changing(self, "fit"):
            rows, targets = self._checked(X, y, **self._checks())
            weights = self._weights(rows, sample_weight)
            self._prepare(rows, targets)
            self.model_ = self._fitted(rows, targets, weights)
            # For what is asked about these rows later; no copy is made, and pickles do not have them.
            self._kept_ = (rows, targets, weights)
        return self

    def _rows_of_fit(self, purpose: str) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
        """Rows, targets and weights of `fit`."""
        self._model()
        if not hasattr(self, "_kept_"):
            raise AttributeError(
                f"{purpose} needs the rows of fit, which models from files, pickles and partial_fit do not have"
            )
        return self._kept_

    def _some_of_fit(self, purpose: str, most: int = MOST_ROWS) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
        """The same of at most so many rows, drawn at random."""
        rows, targets, weights = self._rows_of_fit(purpose)
        if rows.shape[0] <= most:
            return rows, targets, weights
        chosen = np.sort(np.random.default_rng(0).choice(rows.shape[0], most, replace=False))
        return rows[chosen], targets[chosen], None if weights is None else weights[chosen]

    def __getstate__(self) -> dict[str, Any]:
        """The model without the rows it was fitted to."""
        state: dict[str, Any] = super().__getstate__()
        state.pop("_kept_", None)
        return state

    def _shaped_gradient(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivatives of each output, as `gradient` returns them."""
        return values

    def _checks(self, first: bool = True) -> dict[str, Any]:
        """What `validate_data` is to look for besides."""
        return {}

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        """Draws features, and finds what else depends on rows or chance."""

    def _on(self) -> Any:
        """The map or the kernel that the core's model is on."""

    def _fitted(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None, kind: str | None = None) -> Any:
        """The core's model of rows."""
        known = (self._plan(), self._n_classes(), getattr(self, "seed_", 0))
        return self._learn(_bochner.fit, rows, kind or self._kind, self._on(), rows, targets, weights, *known)

    def _learn(self, fit: Callable[..., Any], rows: Any, *arguments: Any) -> Any:
        """What a function of the core makes of rows and other arguments, with progress on the way."""
        total = rows.shape[0] if self._unit == "rows" else None
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, total, self._unit) as report:
            return fit(*arguments, n_jobs=self.n_jobs, progress=report)

    def _plan(self, **others: Any) -> str:
        """Parameters of the core's model, as JSON, with others in the place of some."""
        known = [parameter["name"] for parameter in entry("models", self._kind)["parameters"]]
        values = {name: getattr(self, name) for name in known if name not in self._apart} | others
        return json.dumps({name: plain(name, value) for name, value in values.items()})

    def _n_classes(self) -> int | None:
        return None

    def _described(self) -> dict[str, Any]:
        """What the core's model is made of: its map, its features or its kernel."""
        return json.loads(self._model().header)["map"]

    def _ask(self, question: str, X: ArrayLike, **details: Any) -> NDArray[Any]:
        """What the fitted model of the core answers about rows."""
        model = self._model()
        rows = self._rows(X, model)
        with explained(self, ("X", rows)):
            return model.ask(question, rows, **details, n_jobs=self.n_jobs)

    def predict_stream(self, source: Any, columns: Sequence[str] | None = None, method: str = "predict") -> Iterator[Any]:
        """Predict for rows of a source of any size, batch by batch.

        Parameters
        ----------
        columns : list of str, default=None
            The columns of rows; those that the model was fitted to, or all of them, if not given.
        method : str, default="predict"
            What is asked of the model: ``"predict"``, ``"predict_proba"``, ``"decision_function"``, ...

        Returns
        -------
        batches : iterator of pyarrow.RecordBatch
            One row for every row of the source, in the same order.
        """
        self._model()
        named = list(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None

        def names(values: NDArray[Any]) -> list[str]:
            if method == "predict_proba":
                return [f"probability of {label}" for label in self.classes_]
            name = "prediction" if method == "predict" else method
            return [name] if values.ndim == 1 else [f"{name}_{k + 1}" for k in range(values.shape[1])]

        return _stream.applied(source, columns, named, getattr(self, method), names)

    def save(self, path: str | os.PathLike[str], metric: LearnedMetric | None = None) -> None:
        """Write the fitted model to a file that :func:`bochner.load` reads.

        The command line reads it as well, but for exact models other than :class:`bochner.exact.KernelSVC`. The file is
        written whole or not at all. It holds numbers and their description, no code.

        Parameters
        ----------
        path : str or path-like
            Where to; ``.bochner`` is the customary ending.
        metric : LearnedMetric, default=None
            The fitted metric of whose rows the model has learned. The file keeps it: models that are loaded, here, by the
            command line or in Rust, take rows as they were before it.
        """
        from bochner._files import save

        save(self, path, metric)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._row_checks.get("accept_sparse", True) is not False
        return tags


class Differentiable(Model):
    """A model whose predictions have exact derivatives."""

    def gradient(self, X: ArrayLike) -> NDArray[np.float64]:
        """Derivatives of predictions by the columns of X, exactly: one pullback of the coefficients.

        Of regressions those of `predict`, of classifiers those of `decision_function`; of classifiers by Gaussian processes
        those of the means of the latent processes.

        Returns
        -------
        gradient : ndarray of shape (n_samples, n_features) or (n_samples, n_outputs, n_features)
            Derivatives; with an axis of outputs for several targets and for more than two classes.
        """
        return self._shaped_gradient(self._ask("gradient", X))

    def importances(self, X: ArrayLike) -> NDArray[np.float64]:
        """How much predictions change with each column: the mean squared derivative over the rows of X.

        Columns should be of one scale for their importances to be compared. Several outputs add up.

        Returns
        -------
        importances : ndarray of shape (n_features,)
            Mean squared derivatives.
        """
        gradient = self.gradient(X)
        return np.mean(np.sum(gradient.reshape(len(gradient), -1, gradient.shape[-1]) ** 2, axis=1), axis=0)

    @property
    def importances_(self) -> NDArray[np.float64]:
        """ndarray of shape (n_features,): Mean squared derivatives of predictions by each column, over at most 4,000 rows of `fit`;
        not there after `partial_fit` and in models from files.
        """
        return self.importances(self._some_of_fit("importances_")[0])


class FeatureModel(Differentiable):
    """A model on features: drawing the map."""

    _learned = {"features_": ("transformer", "The fitted feature map.")}

    features: FeatureTransformer | None
    random_state: Any

    def _draw(self, X: Any, y: NDArray[Any] | None = None) -> FeatureTransformer:
        features = clone(FourierFeatures() if self.features is None else check_features(self.features))
        if X.shape[0] < features._rows_needed():
            raise ValueError(f"the features need {features._rows_needed()} rows or more, got n_samples={X.shape[0]}")
        with explained(self, ("X", X)):
            drawn = features._draw_for(X, y, self._feature_seed(features))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(features, name, getattr(self, name))
        return features._adopt(drawn)

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        self.features_ = self._draw(rows, targets if self._n_classes() is None else targets.reshape(-1))

    def _on(self) -> Any:
        return self.features_.map_

    def _feature_seed(self, features: FeatureTransformer) -> int:
        return seed_of(self.random_state if features.random_state is None else features.random_state)


class Regression(MultiOutputMixin, RegressorMixin, Model):
    """A model of one or several numbers."""

    _target_checks = {"multi_output": True, "y_numeric": True}

    def _targets(self, y: NDArray[Any], first: bool, classes: ArrayLike | None) -> NDArray[Any]:
        if first:
            self.target_shape_ = y.shape[1:]
        elif y.shape[1:] != self.target_shape_:
            raise ValueError(f"y has shape {y.shape}, but the first rows had {self.target_shape_} targets")
        return y.reshape(len(y), -1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict targets.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictions, in the dtype of the rows seen in `fit`.
        """
        return self._shaped(self._ask("predict", X))

    def _with_std(self, X: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Means of the function, and standard deviations without noise."""
        mean, variance = map(np.ascontiguousarray, np.split(self._ask("spread", X), 2, axis=1))
        return self._shaped(mean), self._shaped(np.sqrt(variance), spread=True)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> NDArray[np.float64]:
        """Intervals that hold an observation with a given probability.

        An interval is the prediction, plus and minus a quantile of scores: how far predictions were off on rows that had no part in
        them. `interval_kind_` says where the scores are from: ``"split"``, the rows given to `calibrate`, with a coverage of at least
        `coverage` for exchangeable rows; otherwise the rows of `fit`, each left out in closed form (``"leave_one_out"``; no
        guarantee, right for fits that one row does not change much) or in five parts (``"folds"``; at least ``2 * coverage - 1``, in
        practice `coverage`). Scores of Gaussian processes are divided by their standard deviations, so that widths follow the data.
        Several targets have intervals of their own.

        Parameters
        ----------
        coverage : float, default=0.9
            Share of observations that intervals are to hold.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends; infinite where there are too few scores for the coverage.
        """
        scores = self._interval_scores()
        widths = [_bochner.conformal_quantile(np.ascontiguousarray(column), float(coverage)) for column in scores.T]
        center, scale = self._center_and_scale(X)
        half = np.asarray(widths) * scale
        ends = np.stack([center - half, center + half], axis=-1)
        return ends if self.target_shape_ else ends[:, 0]

    def calibrate(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Take the scores behind intervals from rows that the model was not fitted to: split conformal prediction.

        Returns
        -------
        self : object
            The same model.
        """
        center, scale = self._center_and_scale(X)
        observed = np.asarray(y, dtype=np.float64).reshape(len(center), -1)
        if observed.shape != center.shape:
            raise ValueError(f"y has shape {np.shape(y)}, but {center.shape[1]} targets were seen in fit")
        if not np.isfinite(observed).all():
            raise ValueError("y contains NaN or infinity")
        self._scores_ = ("split", np.abs(observed - center) / scale)
        return self

    @property
    def interval_kind_(self) -> str:
        """str: Where the scores behind intervals are from: ``"split"``, ``"leave_one_out"`` or ``"folds"``."""
        self._interval_scores()
        return self._scores_[0]

    def _interval_scores(self) -> NDArray[np.float64]:
        """Scores of rows that had no part in their predictions, one column per target."""
        self._model()
        if not hasattr(self, "_scores_"):
            if not hasattr(self, "_kept_"):
                raise AttributeError(
                    "intervals need rows: call calibrate(X, y) with rows that the model was not fitted to; models from files, "
                    "pickles and partial_fit do not have those of fit"
                )
            self._scores_ = self._left_out_scores()
        return self._scores_[1]

    def _center_and_scale(self, X: ArrayLike) -> tuple[NDArray[np.float64], Any]:
        """Predictions, one column per target, and what scores are divided by."""
        predicted = np.asarray(self.predict(X), dtype=np.float64)
        return predicted.reshape(len(predicted), -1), 1.0

    def _left_out_scores(self) -> tuple[str, NDArray[np.float64]]:
        """Scores of the rows of `fit`, in parts that are left out in turn, and the name of this."""
        rows, targets, weights = self._rows_of_fit("intervals")
        n = rows.shape[0]
        if n < 2:
            raise ValueError(f"intervals need at least 2 rows, got n_samples={n}")
        scores = np.empty(targets.shape)
        for part in np.array_split(np.random.default_rng(0).permutation(n), min(FOLDS, n)):
            others = np.setdiff1d(np.arange(n), part)
            told = {} if weights is None else {"sample_weight": weights[others]}
            model = clone(self).fit(rows[others], targets[others].reshape(-1, *self.target_shape_), **told)
            center, scale = model._center_and_scale(rows[part])
            scores[part] = np.abs(targets[part] - center) / scale
        return "folds", scores

    def _shaped_gradient(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values if self.target_shape_ else values[:, 0]

    def _shaped(self, values: NDArray[Any], *, spread: bool = False) -> NDArray[Any]:
        """Values as y was shaped, in its units; `spread` for deviations from them."""
        units = getattr(self, "target_units_", None)
        scales = getattr(self, "target_scales_", None)
        if scales is not None:
            values = _bochner.targets_of(json.dumps(scales), np.ascontiguousarray(values, dtype=np.float64))
        elif units is not None:
            mean, scale = units
            values = values.astype(np.float64) * scale
            values = values if spread else values + mean
        return values.reshape(len(values), *self.target_shape_)


class Process(Regression):
    """A regression that knows how sure it is."""

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False, include_noise: bool = False
    ) -> Any:
        """Predict targets.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Means of the process.
        std : ndarray of the shape of y
            Standard deviations, if asked for.
        cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets)
            Covariances, if asked for.
        """
        if return_std and return_cov:
            raise ValueError("at most one of return_std and return_cov can be True")
        if return_std:
            mean, std = self._with_std(X)
            return mean, np.sqrt(std**2 + self._noise()) if include_noise else std
        mean = self._shaped(self._ask("predict", X))
        if not return_cov:
            return mean
        scales = getattr(self, "target_units_", (None, np.ones(len(self._model().learned("observation_variances")))))[1]
        matrices = [self._ask("covariance", X, target=t) * s**2 for t, s in enumerate(scales)]
        if include_noise:
            for matrix, noise in zip(matrices, np.ravel(self._noise()), strict=True):
                np.fill_diagonal(matrix, matrix.diagonal() + noise)
        return mean, np.stack(matrices, axis=-1) if self.target_shape_ else matrices[0]

    def _noise(self) -> Any:
        """Variances of the noise in units of the targets, in the shape of one of them."""
        variances = np.asarray(self._model().learned("observation_variances"), dtype=np.float64)
        scales = getattr(self, "target_units_", (None, np.ones(len(variances))))[1]
        return (variances * np.asarray(scales) ** 2).reshape(self.target_shape_)

    def _center_and_scale(self, X: ArrayLike) -> tuple[NDArray[np.float64], Any]:
        mean, std = (np.asarray(part, dtype=np.float64) for part in self.predict(X, return_std=True, include_noise=True))
        return mean.reshape(len(mean), -1), std.reshape(len(std), -1)

    def _left_out_scores(self) -> tuple[str, NDArray[np.float64]]:
        rows, targets, weights = self._some_of_fit("intervals")
        mean, std = (np.asarray(part, dtype=np.float64) for part in self._with_std(rows))
        mean, std = mean.reshape(targets.shape), std.reshape(targets.shape)
        told = None if weights is None else weights.astype(np.float64).tolist()
        noise = np.ravel(self._noise()).tolist()
        return "leave_one_out", _bochner.process_scores(targets.astype(np.float64) - mean, std**2, told, noise)

    log_marginal_likelihood_value_ = learned(
        "log_marginal_likelihood", "float", "Log marginal likelihood of the training targets."
    )


class Classification(ClassifierMixin, Model):
    """A model of labels, which the core knows by their numbers."""

    _learned = {"classes_": ("ndarray of shape (n_classes,)", "The labels.")}
    _arguments = {"y": ("array-like of shape (n_samples,)", "Labels: numbers, strings or booleans.")}

    def _targets(self, y: NDArray[Any], first: bool, classes: ArrayLike | None) -> NDArray[Any]:
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        if first:
            self.classes_ = np.unique(labels if classes is None else np.asarray(classes))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(np.asarray(classes))):
            raise ValueError(f"classes={classes!r} is not the same as on the first call to partial_fit: {self.classes_}")
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y contains labels that are not in classes: {unknown}")
        return np.searchsorted(self.classes_, labels).reshape(-1, 1)

    def _n_classes(self) -> int | None:
        return len(self.classes_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        values = self._scores(X)
        if values.shape[1] == 1:
            return self.classes_[np.where(values[:, 0] > 0, len(self.classes_) - 1, 0)]
        return self.classes_[np.argmax(values, axis=1)]

    def _scores(self, X: ArrayLike) -> NDArray[Any]:
        """Values whose largest decides, one column per class; a single column is positive for the second of two."""
        return self._ask("predict", X)


class Deciding(Classification):
    """A classification by the largest of some values."""

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Values whose largest decides, one column per class; for two classes one value, positive for the second.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Distances, up to scale, from the planes between classes; near +1 and -1 where labels were regressed.
        """
        values = self._scores(X)
        return values if len(self.classes_) > 2 else self._margin(values)

    def _margin(self, values: NDArray[Any]) -> NDArray[Any]:
        """What decides between two classes."""
        return values[:, -1]

    def _shaped_gradient(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values if len(self.classes_) > 2 else self._margin(values)

    def calibrate(self, X: ArrayLike, y: ArrayLike, method: str = "temperature") -> Self:
        """Fit what makes probabilities of the values of classes, on rows that the classifier was not fitted to.

        From then on there is `predict_proba`; files keep it. Later calls to `fit` or `partial_fit` forget it.

        Parameters
        ----------
        method : {"temperature", "platt"}, default="temperature"
            One slope for the values of all classes, which never changes the class that wins; or a slope and a constant for every
            class.

        Returns
        -------
        self : object
            The same classifier.
        """
        if method not in ("temperature", "platt"):
            raise ValueError(f'method must be "temperature" or "platt", got {method!r}')
        model = self._model()
        labels = self._targets(np.asarray(y), False, None)[:, 0]
        rows = self._rows(X, model)
        if len(labels) != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows and y {len(labels)} labels")
        with explained(self, ("X", rows)):
            calibrated = model.calibrated(rows, labels.tolist(), method == "platt", n_jobs=self.n_jobs)
        if hasattr(self, "sums_"):
            self.solved_ = (self.added_, calibrated)
        else:
            self.model_ = calibrated
        return self

    def _has_probabilities(self) -> bool:
        return hasattr(self, "classes_") and "calibration" in json.loads(self._model().header)["extra"]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of classes, after `calibrate`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._ask("probabilities", X)


class Probable(Classification):
    """A classification that knows probabilities."""

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of classes.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._ask("probabilities", X)

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of probabilities of classes.

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

    # Solvers that read rows in several passes, and what comes with features: sums know nothing of others.
    _several: ClassVar[tuple[str, ...]] = ()
    _of_sums: ClassVar[tuple[str, ...]] = ("features", "random_state")

    keep_sums: bool

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        """Does on the first rows what sums over them depend on."""
        self._prepare(rows, targets)
        self._settle(targets)

    def _settle(self, targets: NDArray[Any]) -> None:
        """What else sums depend on."""
        self.n_outputs_ = targets.shape[1]

    def _empty(self) -> Any:
        """Sums over no rows, for the features of `_begin`."""
        shape = (self.n_features_in_, self.n_outputs_, self.dtype_.name)
        return _bochner.Sums(
            self._kind, self._on(), self._plan(), *shape, self._n_classes(), getattr(self, "seed_", 0)
        )

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and targets, or labels."""
        return self._fit(X, y, sample_weight)

    def fit_stream(self, source: Any, target: str | Sequence[str] = "y", columns: Sequence[str] | None = None) -> Self:
        """Fit to rows of any number, which are read batch by batch and forgotten.

        The result is that of `partial_fit` with all batches: memory depends on the number of features, not of rows. What depends on
        data (a median length scale, an allocation, searched hyperparameters) is found on the first 5,000 rows or some more. Only
        ``solver="cg"`` and ``"sgd"`` of ridge models read rows several times, and need a source that can be read again.
        """
        return self._fit_stream(source, target, columns)

    def _fit_stream(self, source: Any, target: Any, columns: Any, classes: Any = None) -> Self:
        with changing(self, "fit"):
            forget(self)
            try:
                _stream.fit_stream(self, source, target, columns, classes, SAMPLE_ROWS)
            except BaseException:
                # Better nothing than the sums of a part.
                forget(self)
                raise
            if hasattr(self, "sums_") and not self.keep_sums:
                self.model_ = self._model()
                self._drop_sums()
        return self

    _labelled: ClassVar[bool] = False

    def _check_stream(self) -> str | None:
        """What reads rows several times, if something does; refuses what needs all of them in memory."""
        solver = getattr(self, "solver", "auto")
        if solver in self._several:
            if self.keep_sums:
                raise ValueError(f'keep_sums=True needs solver="cholesky" or "auto", got solver={solver!r}')
            return f"solver={solver!r}"
        if solver == "dual":
            raise ValueError('solver="dual" compares all rows with each other; rows that come in batches take "cholesky" or "cg"')
        return None

    def _sum_up(self, batches: Iterable[tuple[Any, NDArray[Any]]]) -> None:
        """Adds checked batches to fresh sums."""
        self.added_ = object()
        self.sums_ = self._empty()
        with progress(self.verbose, type(self).__name__, None, self._unit) as report:
            done = 0
            for rows, targets in batches:
                with explained(self, ("X", rows)):
                    self.sums_.push(rows, targets, None, n_jobs=self.n_jobs)
                done += rows.shape[0]
                if report is not None:
                    report(done, None)

    def _from_batches(self, batches: Callable[[], Iterator[Any]]) -> Any:
        """The core's model of batches that are read as often as it needs."""
        shape, dtype = (self.n_features_in_, self.n_outputs_), self.dtype_.name
        known = (self._plan(), self._n_classes(), getattr(self, "seed_", 0))
        with progress(self.verbose, type(self).__name__, None, self._unit) as report:
            on = (self._kind, self._on(), batches, shape, dtype)
            return _bochner.fit_batches(*on, *known, n_jobs=self.n_jobs, progress=report)

    def _drop_sums(self) -> None:
        for name in ("sums_", "added_", "solved_"):
            self.__dict__.pop(name, None)

    def _fitted(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None, kind: str | None = None) -> Any:
        if not self.keep_sums:
            return super()._fitted(rows, targets, weights, kind)
        if kind is not None or getattr(self, "solver", "auto") not in ("auto", "cholesky", "stein"):
            raise ValueError("keep_sums=True needs a model that is solved from sums, in one pass over the rows")
        self._settle(targets)
        sums = self._empty()
        self._learn(sums.push, rows, rows, targets, weights)
        self.sums_, self.added_ = sums, object()
        return self._model()

    def merge(self, other: Self) -> Self:
        """Add the rows of another model of the same features, as if `partial_fit` had been called with them.

        Both need their sums: after `partial_fit`, or after `fit` with ``keep_sums=True``. The same integer as `random_state`, and
        length scales that are numbers, give the same features.

        Parameters
        ----------
        other : estimator
            A model like this one, fitted to other rows. It does not change.

        Returns
        -------
        self : object
            This model, of the rows of both.
        """
        with changing(self, "merge"):
            self._need_sums("merge")
            if type(other) is not type(self):
                raise TypeError(f"only another {type(self).__name__} can be merged, got {type(other).__name__}")
            other._need_sums("merge")
            if self._features_in_words() != other._features_in_words():
                raise ValueError(
                    "the models have other features, classes or dtypes: sums add up only over the same ones (the same parameters, "
                    "random_state an integer, length scales that are numbers)"
                )
            self.sums_.merge(other.sums_)
            self._changed()
        return self

    def forget(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take rows back: the model becomes the one fitted without them, to rounding.

        Their sums are subtracted from those that were kept (``keep_sums=True``, or `partial_fit`). Rows must have been added before,
        with the same targets and weights; where sums tell that they were not, nothing changes and an error says so. After a `decay`,
        give the weights that they have by then. ``sums_.cancellation`` says by how much rounding counts more.

        Returns
        -------
        self : object
            The same model without these rows.
        """
        with changing(self, "forget"):
            self._need_sums("forget")
            known = {"classes": self.classes_} if self._labelled else {}
            rows, targets = self._checked(X, y, first=False, **known, **self._checks(False))
            self._learn(self.sums_.forget, rows, rows, targets, self._weights(rows, sample_weight))
            self._changed()
        return self

    def refit(self, **params: Any) -> Self:
        """Solve anew with other penalties or variances, from the sums that were kept: no row is read again.

        Parameters
        ----------
        **params : dict
            Parameters to be set first, such as ``alpha=0.1``; what belongs to features cannot be among them.

        Returns
        -------
        self : object
            The same model, solved with the parameters that it has now.
        """
        with changing(self, "refit"):
            self._need_sums("refit")
            for name in params:
                if name in self._of_sums or name.split("__")[0] in self._of_sums:
                    raise ValueError(f"{name} belongs to the features, over which the sums are: call fit to change it")
            self.set_params(**params)
            self._take(params)
            self._changed(rows=False)
            self._model()
        return self

    def _take(self, params: dict[str, Any]) -> None:
        """Has these parameters in the place of what was found."""

    def _need_sums(self, call: str) -> None:
        if not hasattr(self, "sums_"):
            name = type(self).__name__
            raise ValueError(
                f"{name}.{call} needs the sums over the rows, which this {name} has not kept: fit with keep_sums=True, or "
                "add rows by partial_fit"
            )

    def _features_in_words(self) -> Any:
        """What has to be the same where sums are to add up."""
        on = self._on()
        classes = self.classes_.tolist() if self._labelled else None
        parts = (getattr(on, "spec", on), getattr(on, "complex", None), classes, self.dtype_.name, self.n_outputs_)
        return (*parts, getattr(self, "seed_", None) if isinstance(on, str) else None)

    def _changed(self, rows: bool = True) -> None:
        """What was solved or found before is of other rows or parameters."""
        self.added_ = object()
        for name in ("_scores_", "model_", *(("_kept_",) if rows else ())):
            self.__dict__.pop(name, None)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, decay: float = 1.0
    ) -> Self:
        """Add rows to those of earlier calls, and of `fit` with ``keep_sums=True``; the result is that of one `fit` to all of them.

        What depends on data (a median length scale, searched hyperparameters) is found on the rows of the first call.
        Without ``keep_sums=True``, after `fit` and in a pickled copy there are no sums to add to: it starts anew, with a warning.
        """
        return self._add(X, y, sample_weight, decay=decay)

    def _add(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        classes: ArrayLike | None = None,
        decay: float = 1.0,
    ) -> Self:
        """Adds rows to the sums; the model is solved when it is asked for."""
        if not 0.0 < decay <= 1.0:
            raise ValueError(f"decay must be above 0 and at most 1, got {decay!r}")
        with changing(self, "partial_fit"):
            known = self._known(classes)
            first = self._starts()
            if first and any(value is None for value in known.values()):
                raise ValueError("classes must be passed on the first call to partial_fit.")
            rows, targets = self._checked(X, y, first=first, **known, **self._checks(first))
            weights = self._weights(rows, sample_weight)
            if not first and decay != 1.0:
                self.sums_.scale(float(decay))
            return self._push(rows, targets, weights)

    def _known(self, classes: ArrayLike | None) -> dict[str, Any]:
        """What must be known of targets before they are seen."""
        return {}

    def _push(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        if not hasattr(self, "sums_"):
            self._begin(rows, targets)
            self.added_ = object()
            self.sums_ = self._empty()
        try:
            self._learn(self.sums_.push, rows, rows, targets, weights)
            # What another thread has solved for meanwhile is a model of the rows before, and so are scores of intervals.
            self._changed()
        except _bochner.BusyError:
            # Nothing was added: another thread is solving for the model of the rows before.
            raise
        except BaseException:
            # Part of the rows may have been added: better nothing than something between two states.
            forget(self)
            raise
        return self

    def _starts(self) -> bool:
        """Whether `partial_fit` begins a new stream of rows."""
        if hasattr(self, "sums_"):
            return False
        if hasattr(self, "model_"):
            # Sums take the square of the number of features in memory, the model only its multiple.
            warnings.warn(
                f"{type(self).__name__}.fit keeps no sums to add rows to: partial_fit starts anew with these rows. "
                "Call partial_fit from the first rows on, or fit with keep_sums=True, to go on later.",
                stacklevel=4,
            )
            forget(self)
        return True

    def _model(self) -> Any:
        """The fitted model, solved from the sums if rows were added since."""
        check_is_fitted(self)
        if not hasattr(self, "sums_"):
            return self.model_
        added = self.added_
        of, model = getattr(self, "solved_", (None, None))
        if of is not added:
            model = self.sums_.solve(self._plan(), n_jobs=self.n_jobs)
            self.solved_ = (added, model)
        return model

    def __getstate__(self) -> dict[str, Any]:
        """The model without the sums of `partial_fit`, unless they are to be kept: a pickle predicts, and cannot be added to."""
        state: dict[str, Any] = super().__getstate__()
        if "sums_" in state and not self.keep_sums:
            state["model_"] = self._model()
            for name in ("sums_", "added_", "solved_"):
                state.pop(name, None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or hasattr(self, "sums_")


class Linear(Model):
    """A model of coefficients and constants."""

    def _each(self, values: NDArray[Any]) -> NDArray[Any]:
        """One row for each target or class, as `fit` has seen them."""
        return values

    @property
    def coef_(self) -> NDArray[Any]:
        """ndarray of shape (n_outputs, n_features_out): Coefficients of the features, for each target or class; one row for
        two classes, and no rows but numbers for targets that were a vector.
        """
        return self._each(self._model().learned("coefficients").T)

    @property
    def intercept_(self) -> Any:
        """ndarray of shape (n_outputs,): The constants, likewise."""
        return self._each(self._model().learned("intercept"))


class Solved(Linear, Accumulating):
    """A model of linear equations that can be solved in several ways."""

    def _report(self) -> dict[str, Any]:
        return json.loads(self._model().learned("report"))

    @property
    def solver_(self) -> str:
        """str: Solver used."""
        return self._report()["solver"]

    @property
    def solver_reason_(self) -> str:
        """str: Why this one."""
        return self._report()["reason"]

    @property
    def condition_(self) -> float | None:
        """float or None: Estimated condition number of the penalized matrix, where a factorization gives one."""
        return self._report()["condition"]


class AccumulatingClassification(Classification, Accumulating):
    """A classification solved from sums."""

    _labelled = True

    _arguments = {
        "classes": (
            "array-like of shape (n_classes,), default=None",
            "All labels that will ever occur; needed in the first call.",
        )
    }

    def partial_fit(  # type: ignore[override]
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        decay: float = 1.0,
    ) -> Self:
        """Add rows to those of earlier calls, and of `fit` with ``keep_sums=True``; the result is that of one `fit` to all of them.

        What depends on data (a median length scale) is found on the rows of the first call. Without ``keep_sums=True``, after `fit`
        and in a pickled copy there are no sums to add to: it starts anew, with a warning.
        """
        return self._add(X, y, sample_weight, classes, decay)

    def fit_stream(  # type: ignore[override]
        self,
        source: Any,
        target: str = "y",
        columns: Sequence[str] | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit to rows of any number, which are read batch by batch and forgotten.

        The result is that of `partial_fit` with all batches: memory depends on the number of features, not of rows. What depends on
        data (a median length scale, an allocation, searched hyperparameters) is found on the first 5,000 rows or some more.

        Parameters
        ----------
        target : str, default="y"
            The column of the labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that occur; if not given, a pass over the source finds them, which then has to be one that can be read again.
        """
        return self._fit_stream(source, target, columns, classes)

    def _known(self, classes: ArrayLike | None) -> dict[str, Any]:
        return {"classes": getattr(self, "classes_", None) if classes is None else classes}
