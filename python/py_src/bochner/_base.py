"""The one transformer all feature maps share."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bochner._bochner import Map
from bochner._checks import check_rows, explained, forget, plain, same_dtype, seed_of

# Rows on which a description that depends on data is resolved.
_SAMPLE_ROWS = 5000


class KernelParameter:
    """A parameter called `kernel` beside the method of the same name.

    Reading it gives the parameter's value with the method attached: ``features.kernel == "gaussian"`` and
    ``features.kernel(X)`` both hold what they promise.
    """

    def __get__(self, owner: Any, owner_type: type | None = None) -> Any:
        if owner is None:
            return self
        value = vars(owner)["kernel"]
        if isinstance(value, str):
            return _KernelName(owner, value)
        # Anything else is for the core to refuse in `fit`.
        return _KernelSeries(owner, value) if isinstance(value, Iterable) else value

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)["kernel"] = value


class _Callable:
    _owner: FeatureTransformer

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """The exact kernel that the features estimate; see :meth:`FeatureTransformer.kernel`."""
        return FeatureTransformer.kernel(self._owner, X, Y)


class _KernelName(_Callable, str):
    def __new__(cls, owner: FeatureTransformer, value: str) -> Self:
        self = super().__new__(cls, value)
        self._owner = owner
        return self

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return str, (str(self),)


class _KernelSeries(_Callable, tuple):  # type: ignore[type-arg]
    def __new__(cls, owner: FeatureTransformer, value: Any) -> Self:
        self = super().__new__(cls, value)
        self._owner = owner
        return self

    def __reduce__(self) -> tuple[type, tuple[list[Any]]]:
        return tuple, (list(self),)


class FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rows to random features whose inner products estimate a kernel.

    Subclasses declare their parameters, the name of their map in the core and which parameters `fit` fills in.
    Values are judged by the core.
    """

    _map_name: ClassVar[str]
    _filled_in: ClassVar[tuple[str, ...]] = ()

    n_jobs: int | None
    random_state: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this transformer.

        Parameters
        ----------
        deep : bool, default=True
            Present by convention: no parameter has parameters of its own.

        Returns
        -------
        params : dict
            Parameters by name.
        """
        params: dict[str, Any] = super().get_params(deep)
        if "kernel" in params:
            params["kernel"] = vars(self)["kernel"]
        return params

    def _description(self, X: Any) -> dict[str, Any]:
        """The parameters as the core names them."""
        skipped = {"random_state", "n_jobs"}
        return {name: value for name, value in self.get_params(deep=False).items() if name not in skipped}

    def _rows_needed(self) -> int:
        """Rows without which a parameter cannot be found from data."""
        return 1

    def _complex_output(self) -> bool:
        return False

    def _draw(self, X: Any, seed: int) -> Map:
        """The map for rows like those of X."""
        # What may be None and is, stays out: the core names the argument it refuses by its value.
        optional = {name for name, p in inspect.signature(type(self)).parameters.items() if p.default is None}
        description = {
            name: plain(name, value)
            for name, value in self._description(X).items()
            if value is not None or name not in optional
        }
        spec = json.dumps({"map": self._map_name, "seed": seed, **description})
        spec = Map.resolve(spec, _sample(X, seed), n_jobs=self.n_jobs)
        return Map(spec, X.shape[1], X.dtype.name, self._complex_output(), n_jobs=self.n_jobs)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the map for rows of this width.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows. Their number of columns and their dtype matter, and their values where a parameter is to be
            found from data.
        y : ignored
            Present by convention.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        forget(self)
        rows = check_rows(self, X, reset=True, ensure_min_samples=self._rows_needed())
        return self._adopt(self._draw(rows, seed_of(self.random_state)))

    def _adopt(self, drawn: Map) -> Self:
        spec = json.loads(drawn.spec)
        for name in self._filled_in:
            setattr(self, f"{name}_", spec[name])
        self.spec_ = spec
        self.map_ = drawn
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features_out)
            Features, float32 for rows in float32 and float64 otherwise.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        with explained(self, ("X", rows)):
            return self.map_.transform(rows, n_jobs=self.n_jobs)

    def kernel(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """The exact kernel that the features estimate.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Rows.
        Y : array-like of shape (n_samples_Y, n_features), default=None
            Other rows; the rows of X if not given.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y)
            Kernel matrix, computed in float64; float32 if all rows are.
        """
        return self._pairwise("kernel", X, Y)

    def variance(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Closed-form variance of every entry of the estimated kernel matrix, over draws of the map.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Rows.
        Y : array-like of shape (n_samples_Y, n_features), default=None
            Other rows; the rows of X if not given.

        Returns
        -------
        V : ndarray of shape (n_samples_X, n_samples_Y)
            Variances in float64.

        Raises
        ------
        ValueError
            Where the map has no closed form; the message says why.
        """
        return self._pairwise("variance", X, Y)

    def variance_iid(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The variance that as many independent draws would have.

        It is `variance` itself for maps of independent draws, and a figure to compare with for structured ones that have
        no closed form.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Rows.
        Y : array-like of shape (n_samples_Y, n_features), default=None
            Other rows; the rows of X if not given.

        Returns
        -------
        V : ndarray of shape (n_samples_X, n_samples_Y)
            Variances in float64.
        """
        return self._pairwise("variance_iid", X, Y)

    def _pairwise(self, quantity: str, X: ArrayLike, Y: ArrayLike | None) -> NDArray[Any]:
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        y = x if Y is None else check_rows(self, Y, reset=False)
        x, y = same_dtype(x, y)
        compute: Callable[..., NDArray[Any]] = getattr(self.map_, quantity)
        with explained(self, ("X", x), ("Y", y)):
            return compute(x, y, n_jobs=self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        return self.map_.output_dim

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = [] if self._complex_output() else ["float64", "float32"]
        return tags


def _sample(X: Any, seed: int) -> Any:
    """Some rows of X, the same for the same seed."""
    if X.shape[0] > _SAMPLE_ROWS:
        X = X[np.sort(np.random.default_rng(seed).choice(X.shape[0], _SAMPLE_ROWS, replace=False))]
    return X
