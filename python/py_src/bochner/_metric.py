"""A learned linear metric: rows in which directions that matter are long."""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bochner._base import FeatureTransformer, check_features
from bochner._bochner import learn_metric
from bochner._checks import RandomState, count, explained, seed_of
from bochner._features import FourierFeatures

# Whole numbers with at most so many different values are taken as labels.
MOST_CLASSES = 20


class LearnedMetric(TransformerMixin, BaseEstimator):
    """Linear map of rows, learned from targets: in the new rows, distances mean what matters to the targets.

    A ridge regression on features is fitted, the mean outer product of its gradients becomes the metric of the rows, and the
    regression is fitted again in that metric; length scale and penalty are searched anew on held-out rows, and the iterate that
    predicts these best is kept. It stands before any map and any model in a pipeline. The new rows are of one scale: a length
    scale of ``"median"`` suits them. (Average gradient outer product: Radhakrishnan et al. 2024.)

    Parameters
    ----------
    features : transformer, default=None
        Features of the regression that learns; `FourierFeatures` with 1,024 columns if not given. Its length scale is searched.
    metric : {"full", "diagonal"}, default="full"
        Any linear map, or one factor for every column.
    max_iter : int, default=8
        Most iterations.
    random_state : int, Generator, RandomState or None, default=None
        Seed of features and of the split.
    n_jobs : int, default=None
        Threads; None means all.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, n_features)
        The metric: squared distances of new rows are ``(x - y) @ metric_ @ (x - y)``.
    components_ : ndarray of shape (n_features, n_features)
        The linear map: new rows are ``X @ components_.T``.
    importances_ : ndarray of shape (n_features,)
        Shares of the columns in the diagonal of the metric.
    losses_ : ndarray of shape (n_iterations + 1,)
        Mean squared errors on held-out rows over the variance of the targets: of rows as they were, then after every iteration.
    n_iter_ : int
        Iterations that were made.
    best_iteration_ : int
        The iteration that was kept; 0 where none was better than rows as they were.
    length_scale_ : float
        The length scale that was best in the new rows.
    n_features_in_ : int
        Columns of the rows seen in `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import LearnedMetric
    >>> X = np.random.default_rng(0).normal(size=(500, 6))
    >>> y = np.sin(2 * X[:, 0] + X[:, 3])
    >>> metric = LearnedMetric(random_state=0).fit(X, y)
    >>> sorted(np.argsort(metric.importances_)[-2:].tolist())
    [0, 3]
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        metric: str = "full",
        max_iter: int = 8,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.features = features
        self.metric = metric
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows and targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers, or labels: strings, booleans, and whole numbers (of an integer dtype) with at most 20 different values.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        rows, labels = validate_data(
            self, X, y, dtype=[np.float64, np.float32], multi_output=True, ensure_min_samples=10, y_numeric=False
        )
        targets = np.ascontiguousarray(self._codes(labels), dtype=rows.dtype)
        seed = seed_of(self.random_state)
        features = FourierFeatures(length_scale="median") if self.features is None else clone(check_features(self.features))
        # Drawn once for what depends on rows, such as a median; the search draws it again for every length scale.
        with explained(self, ("X", rows)):
            drawn = features._draw(rows, seed)
            found = json.loads(
                learn_metric(
                    drawn.spec, rows, targets, self.metric, count("max_iter", self.max_iter), seed, n_jobs=self.n_jobs
                )
            )
        self.components_ = np.array(found["transform"])
        self.metric_ = self.components_.T @ self.components_
        self.importances_ = np.diag(self.metric_) / np.trace(self.metric_)
        self.losses_ = np.array(found["losses"])
        self.n_iter_ = max(1, len(self.losses_) - 1)
        self.best_iteration_, self.length_scale_ = int(found["best"]), float(found["length_scale"])
        return self

    def _codes(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Numbers to regress: one column per target, or per class."""
        whole = np.issubdtype(y.dtype, np.integer) and len(np.unique(y)) <= MOST_CLASSES
        if y.ndim == 1 and (y.dtype.kind in "OUSb" or whole):
            classes, numbers = np.unique(y, return_inverse=True)
            return np.eye(len(classes))[numbers]
        return y.astype(np.float64).reshape(len(y), -1)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Rows in the learned metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features)
            New rows, in the dtype of X.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return rows @ self.components_.T.astype(rows.dtype)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the new columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Not used: every new column is made of all old ones.

        Returns
        -------
        names : ndarray of shape (n_features,)
            ``learnedmetric0`` and so on.
        """
        check_is_fitted(self)
        return np.array([f"learnedmetric{i}" for i in range(len(self.components_))], dtype=object)
