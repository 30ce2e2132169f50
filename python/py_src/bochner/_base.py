"""The one transformer all feature maps share."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bochner import _stream
from bochner._bochner import Map
from bochner._catalogue import Fitted, renamed
from bochner._checks import changing, check_own, check_rows, explained, forget, plain, same_dtype, seed_of

# Rows on which a description that depends on data is resolved.
SAMPLE_ROWS = 5000


class _Called:
    """Version 0.1 had the exact kernel as ``features.kernel(X)``; this and the next three classes go in version 0.3."""

    _owner: FeatureTransformer

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        warnings.warn("kernel(X) is called exact_kernel(X); the old name goes in version 0.3", FutureWarning, stacklevel=2)
        return self._owner.exact_kernel(X, Y)

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        kind = type(self).__mro__[2]
        return kind, (kind(self),)


class _CalledName(_Called, str):
    pass


class _CalledSeries(_Called, tuple):  # type: ignore[type-arg]
    pass


class _CalledKernel:
    """The value of the parameter `kernel`, where there is one, that can still be called."""

    def __get__(self, owner: Any, owner_type: type | None = None) -> Any:
        value = "" if owner is None else vars(owner).get("kernel", "")
        if owner is None or not isinstance(value, Iterable):
            return self if owner is None else value
        called: Any = _CalledName(value) if isinstance(value, str) else _CalledSeries(value)
        called._owner = owner
        return called

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)["kernel"] = value


class FeatureTransformer(Fitted, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rows to random features whose inner products estimate a kernel.

    Subclasses say which map of the core they are and which parameters `fit` fills in. Values are judged by the core.
    """

    _map_name: ClassVar[str]
    _filled_in: ClassVar[tuple[str, ...]] = ()
    # What parameters mean for a single column, where that has no room for what they say.
    _single: ClassVar[dict[str, dict[Any, Any]]] = {}
    _learned = {"spec_": ("dict", "Full description of the map; with it any door of the library draws the same map.")}
    _arguments = {"y": ("ignored", "Present by convention.")}

    n_components: int
    n_jobs: int | None
    random_state: Any
    kernel: Any = _CalledKernel()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params: dict[str, Any] = super().get_params(deep)
        return params | ({"kernel": vars(self)["kernel"]} if "kernel" in params else {})

    def set_params(self, **params: Any) -> Self:
        return super().set_params(**renamed(type(self), params))

    def _description(self, X: Any) -> dict[str, Any]:
        """The parameters as the core names them."""
        description = self.get_params(deep=False)
        for name, other in self._single.items() if self.n_components == 1 else ():
            description[name] = other.get(description[name], description[name])
        return {name: value for name, value in description.items() if name not in ("random_state", "n_jobs")}

    def _rows_needed(self) -> int:
        """Rows without which a parameter cannot be found from data."""
        return 2 if isinstance(getattr(self, "length_scale", None), str) else 1

    def _complex_output(self) -> bool:
        return "complex" in (getattr(self, "form", None), getattr(self, "weights", None))

    def _resolved(self, X: Any, seed: int) -> str:
        """The description of the map for rows like those of X."""
        # What may be None and is, stays out: the core names the argument it refuses by its value.
        optional = {parameter.name for parameter in self._parameters if parameter.default is None}
        description = {
            name: plain(name, value)
            for name, value in self._description(X).items()
            if value is not None or name not in optional
        }
        spec = json.dumps({"map": self._map_name, "seed": seed, **description})
        return Map.resolve(spec, sample(X, seed), n_jobs=self.n_jobs)

    def _draw(self, X: Any, seed: int) -> Map:
        """The map for rows like those of X."""
        spec = self._resolved(X, seed)
        return Map(spec, X.shape[1], X.dtype.name, self._complex_output(), n_jobs=self.n_jobs)

    def _draw_for(self, X: Any, y: Any, seed: int) -> Map:
        """The map for rows with these targets, where it learns from them."""
        return self._draw(X, seed)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the map for rows of this width; values matter where a parameter is to be found from data."""
        with changing(self, "fit"):
            forget(self)
            rows = check_rows(self, X, reset=True, ensure_min_samples=self._rows_needed())
            return self._adopt(self._draw_for(rows, y, seed_of(self.random_state)))

    def _adopt(self, drawn: Map) -> Self:
        spec = json.loads(drawn.spec)
        for name in self._filled_in:
            setattr(self, f"{name}_", spec[name])
        self.spec_ = spec
        self.map_ = drawn
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Features of rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features_out)
            Features, float32 for rows in float32 and float64 otherwise.
        """
        return self._features(X, "X")

    def transform_stream(self, source: Any, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Features of the rows of a source of any size, batch by batch.

        Parameters
        ----------
        columns : list of str, default=None
            The columns of rows; those seen in `fit`, or all of them, if not given.

        Returns
        -------
        batches : iterator of pyarrow.RecordBatch
            One column for every feature.
        """
        check_is_fitted(self)
        named = list(map(str, self.feature_names_in_)) if hasattr(self, "feature_names_in_") else None
        names = list(map(str, self.get_feature_names_out()))
        return _stream.applied(source, columns, named, lambda rows: self._features(rows, "X"), lambda _: names)

    def pullback(self, X: ArrayLike, cotangents: ArrayLike) -> NDArray[Any]:
        """Gradients in features taken back to gradients in rows, without a Jacobian.

        With ``cotangents[i]`` the gradient of a function in the features of row i, the result's row i is its gradient in
        that row: ``transform`` and this are what automatic differentiation needs of a map. Where features are complex, a
        cotangent is the gradient in the real part plus i times that in the imaginary part.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        cotangents : array-like of shape (n_samples, n_features_out)
            One for every feature of every row.

        Returns
        -------
        gradients : ndarray of shape (n_samples, n_features)
            In the dtype of the rows: float32 for rows in float32 and float64 otherwise.

        Raises
        ------
        ValueError
            Where features are steps (binary rows, a camera's readings), whose derivative is 0 almost everywhere.
        """
        return self._pulled(X, cotangents, "pullback")

    def _pulled(self, X: ArrayLike, cotangents: ArrayLike, way: str) -> Any:
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        dtype = np.result_type(rows.dtype, np.complex64) if self.map_.complex else rows.dtype
        with explained(self, ("X", rows)):
            return getattr(self.map_, way)(rows, np.asarray(cotangents, dtype=dtype), n_jobs=self.n_jobs)

    def _features(self, X: ArrayLike, name: str) -> NDArray[Any]:
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        with explained(self, (name, rows)):
            return self.map_.transform(rows, n_jobs=self.n_jobs)

    def exact_kernel(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """The exact kernel that the features estimate.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y)
            Kernel matrix, computed in float64; float32 if all rows are.
        """
        return self._pairwise("kernel", X, Y)

    def estimate(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """The estimated kernel: inner products of features.

        Returns
        -------
        K_hat : ndarray of shape (n_samples_X, n_samples_Y)
            Estimated kernel matrix, in the dtype of the features; complex where they are.
        """
        x = self._features(X, "X")
        return x @ (x if Y is None else self._features(Y, "Y")).conj().T

    def variance(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Closed-form variance of every entry of the estimated kernel matrix, over draws of the map.

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
        with explained(self, ("X", x), ("Y", y)):
            return self.map_.pairwise(quantity, x, y, n_jobs=self.n_jobs)

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


def check_features(features: Any) -> FeatureTransformer:
    """Features of which a map of the core is all there is to know."""
    if not isinstance(features, FeatureTransformer):
        raise TypeError(
            f"features must be a transformer of bochner, got {type(features).__name__}; steps before it, and transformers "
            "of other kinds, belong into a Pipeline in front of a model that learns from their columns"
        )
    instead = "put it into a Pipeline, in front of a linear model such as sklearn.linear_model.Ridge"
    check_own("features", features, FeatureTransformer, ("fit", "transform", "fit_transform"), instead)
    return features


def chosen_rows(total: int, most: int, seed: int) -> NDArray[np.intp]:
    """Numbers of some rows in order, the same for the same seed."""
    return np.sort(np.random.default_rng(seed).choice(total, min(most, total), replace=False))


def sample(X: Any, seed: int, most: int = SAMPLE_ROWS) -> Any:
    """Some rows of X, the same for the same seed; all of them where there are no more."""
    return X if X.shape[0] <= most else X[chosen_rows(X.shape[0], most, seed)]
