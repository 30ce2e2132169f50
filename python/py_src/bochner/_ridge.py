"""Ridge regression and classification on random features, in one pass over the rows."""

from __future__ import annotations

import json
import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from bochner._base import FeatureTransformer
from bochner._bochner import Accumulator, Map, RidgeModel
from bochner._checks import RandomState, check_rows, explained, forget, plain, seed_of
from bochner._features import FourierFeatures
from bochner._progress import progress

Solver = Literal["auto", "cholesky"]


class FeatureModel(BaseEstimator):
    """What models on features share: drawing the map, weights, and sparse rows."""

    features: FeatureTransformer | None
    random_state: Any
    n_jobs: int | None
    verbose: int

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
        source = self.random_state if features.random_state is None else features.random_state
        with explained(self, ("X", X)):
            drawn = features._draw(X, seed_of(source))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(features, name, getattr(self, name))
        return features._adopt(drawn)

    def _weights(self, X: Any, sample_weight: ArrayLike | None) -> NDArray[Any] | None:
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _FeatureRidge(FeatureModel):
    """What regression and classification share: streaming, solving, and one column of values per target."""

    alpha: float
    fit_intercept: bool
    solver: str

    def _fit(self, X: Any, targets: NDArray[Any], sample_weight: ArrayLike | None) -> Self:
        """Fits from scratch; the sums are not kept."""
        weights = self._weights(X, sample_weight)
        features = self._draw(X)
        rows = X.shape[0]
        with explained(self, ("X", X)), progress(self.verbose, type(self).__name__, rows) as report:
            self.model_ = RidgeModel.fit(
                features.map_, X, targets, weights, self._plan(), n_jobs=self.n_jobs, progress=report
            )
        self.features_ = features
        return self

    def _partial_fit(self, X: Any, targets: NDArray[Any], sample_weight: ArrayLike | None) -> Self:
        """Adds rows to the sums; the model is solved when it is asked for."""
        weights = self._weights(X, sample_weight)
        if not hasattr(self, "sums_"):
            self.features_ = self._draw(X)
            self.sums_ = Accumulator(self.features_.map_, self._n_outputs(targets), targets.dtype.name)
        try:
            with explained(self, ("X", X)), progress(self.verbose, type(self).__name__, X.shape[0]) as report:
                self.sums_.push(X, targets, weights, self._plan(), n_jobs=self.n_jobs, progress=report)
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

    def _plan(self) -> str:
        plan = {name: plain(name, getattr(self, name)) for name in ("alpha", "solver", "fit_intercept")}
        return json.dumps({**plan, "classes": self._n_classes()})

    def _n_classes(self) -> int | None:
        return None

    def _n_outputs(self, targets: NDArray[Any]) -> int:
        return self._n_classes() or targets.shape[1]

    def _model(self) -> RidgeModel:
        """The fitted model, solved from the sums if rows were added since."""
        check_is_fitted(self)
        if not hasattr(self, "model_"):
            self.model_ = self.sums_.solve(self._plan(), n_jobs=self.n_jobs)
        return self.model_

    def _values(self, X: ArrayLike) -> NDArray[Any]:
        """One column of values per target or class."""
        model = self._model()
        rows = check_rows(self, X, reset=False)
        with explained(self, ("X", rows)):
            return model.predict(rows.astype(model.dtype, copy=False), n_jobs=self.n_jobs)

    @property
    def solver_(self) -> str:
        """Solver used."""
        return json.loads(self._model().report)["solver"]

    def __getstate__(self) -> dict[str, Any]:
        """The model without the sums of `partial_fit`: a pickle predicts, and cannot be added to."""
        if hasattr(self, "sums_"):
            self._model()
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("sums_", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or hasattr(self, "sums_")


class FeatureRidge(MultiOutputMixin, RegressorMixin, _FeatureRidge):
    """Ridge regression on random features: kernel ridge regression at the cost of a linear model.

    Rows stream through the feature map block by block. The matrix of all features is never made, so memory depends
    on the number of features and not on the number of rows.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
    alpha : float, default=1.0
        Penalty on the squared coefficients.
    solver : {"auto", "cholesky"}, default="auto"
        How the equations are solved.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalised.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features, where they have none of their own.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    features_ : transformer
        The fitted feature map.
    coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Coefficients of the features.
    intercept_ : float or ndarray of shape (n_targets,)
        The constants.
    solver_ : str
        Solver used.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import FeatureRidge, FourierFeatures
    >>> X = np.linspace(0, 6, 200)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> model = FeatureRidge(FourierFeatures(256, random_state=0), alpha=1e-3).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        alpha: float = 1.0,
        solver: Solver = "auto",
        fit_intercept: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        forget(self)
        rows, targets = self._check(X, y, first=True)
        return self._fit(rows, targets, sample_weight)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to those of earlier calls; the result is that of one `fit` to all of them.

        After `fit`, and in a pickled copy, there are no sums to add to: it starts anew, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More rows. The first ones decide about dtype and data-dependent parameters of the features.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, targets = self._check(X, y, first=self._starts())
        return self._partial_fit(rows, targets, sample_weight)

    def _check(self, X: ArrayLike, y: ArrayLike, *, first: bool) -> tuple[Any, NDArray[Any]]:
        rows, targets = check_rows(self, X, y=y, reset=first, multi_output=True, y_numeric=True)
        if first:
            self.dtype_ = rows.dtype
            self.target_shape_ = targets.shape[1:]
        elif targets.shape[1:] != self.target_shape_:
            raise ValueError(f"y has shape {targets.shape}, but the first rows had {self.target_shape_} targets")
        targets = np.ascontiguousarray(targets.reshape(len(targets), -1), dtype=self.dtype_)
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
        values = self._values(X)
        return values.reshape(len(values), *self.target_shape_)

    @property
    def coef_(self) -> NDArray[Any]:
        """Coefficients of the features."""
        coefficients = self._model().coefficients.T
        return coefficients if self.target_shape_ else coefficients[0]

    @property
    def intercept_(self) -> Any:
        """The constants."""
        intercept = self._model().intercept
        return intercept if self.target_shape_ else intercept[0]


class FeatureRidgeClassifier(ClassifierMixin, _FeatureRidge):
    """Classification by ridge regression on random features, one class against the rest.

    Rows stream through the feature map block by block. The matrix of all features is never made, so memory depends
    on the number of features and not on the number of rows.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
    alpha : float, default=1.0
        Penalty on the squared coefficients.
    solver : {"auto", "cholesky"}, default="auto"
        How the equations are solved.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalised.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features, where they have none of their own.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    features_ : transformer
        The fitted feature map.
    coef_ : ndarray of shape (1, n_features_out) or (n_classes, n_features_out)
        Coefficients of the features; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The constants.
    solver_ : str
        Solver used.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> from bochner import FeatureRidgeClassifier, FourierFeatures
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> features = FourierFeatures(1024, length_scale="median", random_state=0)
    >>> model = FeatureRidgeClassifier(features, alpha=1e-3).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        alpha: float = 1.0,
        solver: Solver = "auto",
        fit_intercept: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        forget(self)
        rows, labels = check_rows(self, X, y=y, reset=True)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        self.dtype_ = rows.dtype
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        return self._fit(rows, self._column(numbers), sample_weight)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to those of earlier calls; the result is that of one `fit` to all of them.

        After `fit`, and in a pickled copy, there are no sums to add to: it starts anew, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More rows. The first ones decide about dtype and data-dependent parameters of the features.
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
        classes = getattr(self, "classes_", None) if classes is None else classes
        first = self._starts()
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        rows, labels = check_rows(self, X, y=y, reset=first)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        if first:
            self.dtype_ = rows.dtype
            self.classes_ = np.unique(np.asarray(classes))
        elif not np.array_equal(self.classes_, np.unique(np.asarray(classes))):
            raise ValueError(f"classes={classes!r} is not the same as on the first call to partial_fit: {self.classes_}")
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y contains labels that are not in classes: {unknown}")
        numbers = np.searchsorted(self.classes_, labels)
        return self._partial_fit(rows.astype(self.dtype_, copy=False), self._column(numbers), sample_weight)

    def _column(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return numbers.reshape(-1, 1).astype(self.dtype_)

    def _n_classes(self) -> int | None:
        return len(self.classes_)

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Values whose largest decides, one column per class; for two classes one value, positive for the second.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Near +1 for a row's class and near -1 for others.
        """
        values = self._values(X)
        return values if len(self.classes_) > 2 else values[:, -1]

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
        values = self._values(X)
        return self.classes_[np.argmax(values, axis=1)]

    @property
    def coef_(self) -> NDArray[Any]:
        """Coefficients of the features."""
        coefficients = self._model().coefficients.T
        return coefficients if len(self.classes_) > 2 else coefficients[-1:]

    @property
    def intercept_(self) -> NDArray[Any]:
        """The constants."""
        intercept = self._model().intercept
        return intercept if len(self.classes_) > 2 else intercept[-1:]
