"""The feature maps, each a class around :class:`~bochner._base.FeatureTransformer`; parameters come from the catalogue."""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target

from bochner import _bochner, _signatures
from bochner._base import FeatureTransformer
from bochner._bochner import Map
from bochner._catalogue import CATALOGUE, camel
from bochner._checks import is_sparse, plain

_LENGTH_SCALE = {"length_scale_": ("float or list of float", "Length scale used.")}
_PROJECTION = {"projection_": ("str", "Projection used.")}


class Waves:
    """What features that are cosines and sines have besides."""

    def pullback_parameters(
        self: Any, X: ArrayLike, cotangents: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Gradients in features taken back to what the features are made of, summed over rows.

        Features are amplitudes times cosines and sines of projections on frequencies. `cotangents` are as for `pullback`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        cotangents : array-like of shape (n_samples, n_features_out)
            One for every feature of every row.

        Returns
        -------
        frequencies : ndarray of shape (n_frequencies, n_features)
            Gradients in the frequencies, of which length scales are part.
        amplitudes : ndarray of shape (n_frequencies,)
            Gradients in the amplitudes.
        offsets : ndarray of shape (n_frequencies,) or (0,)
            Gradients in the offsets of cosines, where they have any.
        """
        frequencies, amplitudes, offsets = self._pulled(X, cotangents, "pull_parameters")
        return frequencies, np.asarray(amplitudes), np.asarray(offsets)


class FourierFeatures(_signatures.FourierMap, Waves, FeatureTransformer):
    r"""Random Fourier features of a shift-invariant kernel.

    With frequencies drawn from the kernel's spectrum, the cosines and sines of a row's projections on them have
    inner products that estimate the kernel without bias (Rahimi and Recht 2007). A single column is always a cosine with a
    random offset.

    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = FourierFeatures(4096, random_state=0).fit(X)
    >>> bool(np.abs(features.estimate(X) - features.exact_kernel(X)).max() < 0.1)
    True
    """

    _filled_in = ("length_scale", "projection")
    _learned = _LENGTH_SCALE | _PROJECTION
    # No room for a pair, but for one cosine.
    _single = {"form": {"cos_sin": "offset"}}

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        gamma = description.pop("gamma")
        if gamma is not None:
            description["length_scale"] = _length_scale(gamma, self.kernel, X)
        return description

    def _rows_needed(self) -> int:
        return super()._rows_needed() if self.gamma is None else 1


class PolynomialSketch(_signatures.PolynomialMap, FeatureTransformer):
    r"""Random features of the polynomial kernel ``(gamma <x, y> + coef0)^degree``.

    A feature is the product of `degree` random projections of a row, so that inner products of features estimate the
    kernel without bias; or, for ``sketch="tensor_sketch"``, a convolution of count sketches (Pham and Pagh 2013).
    Parameters mean what they mean to :class:`sklearn.kernel_approximation.PolynomialCountSketch`. A single column has no room
    for a pair: ``weights="ctr"`` then means "real". For ``degree=0`` the one column is a constant. Which sketch varies least
    for given rows, `variance` tells.

    See Also
    --------
    compact_bilinear_pooling : Sums of these features over the positions of images.

    >>> X = np.random.default_rng(0).normal(size=(5, 20)) / np.sqrt(20)
    >>> features = PolynomialSketch(4096, degree=3, coef0=1.0, random_state=0).fit(X)
    >>> deviations = np.abs(features.estimate(X) - features.exact_kernel(X)) / np.sqrt(features.variance(X))
    >>> bool(deviations.max() < 4.0)
    True
    """

    # No room for a real and an imaginary part.
    _single = {"weights": {"ctr": "real"}}


class PositiveFeatures(_signatures.PositiveMap, FeatureTransformer):
    r"""Random features of the exponential kernel ``exp(<x, y> / length_scale^2)``.

    Exponentials of projections on normal directions: an unbiased estimate made of positive numbers (Choromanski et al.
    2021), accurate where the kernel is small.

    >>> X = np.random.default_rng(0).normal(size=(5, 3)) / 4
    >>> features = PositiveFeatures(8192, random_state=0).fit(X)
    >>> bool((features.transform(X) > 0).all())
    True
    >>> bool(np.allclose(features.estimate(X), features.exact_kernel(X), rtol=0.2))
    True
    """

    _filled_in = ("length_scale",)
    _learned = _LENGTH_SCALE
    # No room for a pair.
    _single = {"kind": {"hyperbolic": "positive", "trigonometric": "positive"}}


class OpticalFeatures(_signatures.OpticalMap, FeatureTransformer):
    r"""Random features ``|U x|^exponent / sqrt(n_components)`` with a complex normal matrix U.

    What an optical processing unit computes: light is scattered by a random medium and a camera sees its intensity.
    Inner products of features estimate the kernel :class:`bochner.kernels.Optical`, ``|x|^2 |y|^2 + <x, y>^2`` for
    exponent 2 (Saade et al. 2016, Ohana et al. 2020). The parts of a device can be switched on one by one: binary
    rows, a camera of few bits, read noise.

    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = OpticalFeatures(8192, exponent=1.0, random_state=0).fit(X)
    >>> K = features.exact_kernel(X)
    >>> bool(np.abs(features.estimate(X) - K).max() < 0.05 * K.max())
    True
    """

    _filled_in = ("projection", "gain")
    _learned = _PROJECTION | {
        "gain_": ("float or None", "Grey levels per unit of intensity, where there is a camera.")
    }

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        levels, kind = description.pop("levels"), self.encoding
        if kind is not None:
            if kind not in ("bit_planes", "thermometer"):
                raise ValueError(f'encoding must be one of "bit_planes", "thermometer" or None, got {kind!r}')
            description["encoding"] = {"kind": kind, "bits" if kind == "bit_planes" else "levels": levels}
        return description


class SphericalFeatures(_signatures.SphericalMap, FeatureTransformer):
    r"""Random features of the polynomial kernel ``(1 - |x - y|^2 / a^2)^degree`` of rows divided by their lengths.

    Cosines and sines of projections whose lengths are drawn from a density that is fitted to the kernel (Pennington, Yu
    and Kumar 2015). The estimate is biased, by what no density can represent: `bias_` says how much. Rows are divided by
    their lengths here; zero rows have no direction and are refused.

    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = SphericalFeatures(4096, degree=7, random_state=0).fit(X)
    >>> bool(np.abs(features.estimate(X) - features.exact_kernel(X)).max() < features.bias_["sup"] + 0.1)
    True
    """

    _filled_in = ("projection",)
    _learned = {
        "bias_": (
            "dict",
            "Difference between the mean of the estimate and the kernel over all distances between directions: its largest "
            'absolute value as ``"sup"`` and its root mean square as ``"rms"``.',
        )
    } | _PROJECTION
    # A cosine comes with its sine.
    _single = {"n_components": {1: 2}}

    def _adopt(self, drawn: Map) -> Self:
        self.bias_ = dict(zip(("sup", "rms"), drawn.bias(), strict=True))
        return super()._adopt(drawn)


class OrthoProjection(_signatures.OrthoProjectionMap, FeatureTransformer):
    r"""Compressed measurements: projections of rows on random orthogonal directions.

    Squared lengths and inner products are kept on average, so that measurements can be stored and used in place of
    the rows: in front of :class:`FourierFeatures` they make compressive features (Chang et al. 2016).

    See Also
    --------
    CompressiveFeatures : Both steps in one transformer.

    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).normal(size=(5, 200))
    >>> make_pipeline(OrthoProjection(20), FourierFeatures(64, length_scale=10.0)).fit_transform(X).shape
    (5, 64)
    """


class CompressiveFeatures(_signatures.CompressiveMap, FeatureTransformer):
    r"""Random Fourier features of compressed rows.

    One orthoprojector compresses all rows to a few measurements (:class:`OrthoProjection`), of which Fourier features of the
    Gaussian kernel are taken: many features cost little in high dimensions (Chang et al. 2016). They estimate the mean of the
    Gaussian kernel over projections, which `exact_kernel` gives in closed form; it is close to the Gaussian kernel unless
    `compressed_dim` is small.

    >>> X = np.random.default_rng(0).normal(size=(5, 200))
    >>> features = CompressiveFeatures(4096, compressed_dim=50, length_scale=15.0, random_state=0).fit(X)
    >>> deviations = np.abs(features.estimate(X) - features.exact_kernel(X)) / np.sqrt(features.variance(X) + 1e-20)
    >>> bool(deviations.max() < 5.0)
    True
    """

    _filled_in = ("length_scale", "projection")
    _learned = _LENGTH_SCALE | _PROJECTION
    # No room for a pair, but for one cosine.
    _single = {"form": {"cos_sin": "offset"}}


class MaclaurinFeatures(_signatures.MaclaurinMap, FeatureTransformer):
    r"""Random features of kernels that are power series in the inner product, and of the Gaussian kernel.

    The series ``sum_n a_n <x, y>^n`` is truncated and every degree gets a sketch of its own. How many columns each degree
    gets, and where the series ends, is chosen for the least mean squared error over pairs of rows seen in `fit`
    (Wacker et al. 2022); or degrees are drawn by chance (Kar and Karnick 2012), which is unbiased but varies far more.

    Attributes
    ----------
    columns_ : list of int
        Columns of every degree of the optimised allocation, degree 0 first.
    weights_ : str
        Weights of the optimised allocation: `weights`, or "real" where that is "ctr" and real columns are predicted to have
        less error, which happens with few columns in few dimensions.
    degree_ : int
        Degree at which the optimised allocation ends the series.
    predicted_variance_, predicted_bias_ : float
        Mean variance and mean squared bias of the estimate over pairs of rows, as predicted by the optimised allocation.

    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> features = MaclaurinFeatures(2001, length_scale="median", random_state=0).fit(X)
    >>> bool(np.abs(features.estimate(X) - features.exact_kernel(X)).mean() < 0.02)
    True
    """

    _filled_in = ("length_scale",)
    _learned = _LENGTH_SCALE
    _renamed = {"centre": "center"}

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        if self.n_components in (1, 2):
            # No room for a real and an imaginary part beside a constant, nor for less than one column beside it.
            description["n_components"] = 2
            if self.weights == "ctr" and self.allocation == "random":
                description["weights"] = "real"
        return description

    def _adopt(self, drawn: Map) -> Self:
        super()._adopt(drawn)
        if self.allocation == "optimized":
            resolved = self.spec_["resolved"]
            self.columns_ = resolved["columns"]
            self.weights_ = resolved["weights"]
            self.degree_ = len(self.columns_) - 1
            self.predicted_variance_ = resolved["variance"]
            self.predicted_bias_ = resolved["bias"]
        return self

    def _rows_needed(self) -> int:
        return 2 if self.allocation == "optimized" else super()._rows_needed()


class LearnedFourierFeatures(_signatures.LearnedFourierMap, Waves, FeatureTransformer):
    r"""Fourier features whose frequencies are learned from rows with targets.

    Scales of columns, a mixture of kernels and then frequencies themselves follow the gradient of held-out error; a fifth of
    the rows takes no part and judges every iterate, so that the map is never worse than where it began. Rows should be
    standardised. Steps are counted and not timed: the same rows and seed give the same map. Without targets the map is where
    learning begins, features of the Gaussian kernel.

    >>> X = np.random.default_rng(0).normal(size=(400, 4))
    >>> y = np.sin(3 * X[:, 0])
    >>> features = LearnedFourierFeatures(128, n_learned=32, max_iter=20, random_state=0).fit(X, y)
    >>> bool(features.losses_[-1] < features.losses_[0])
    True
    >>> int(features.importances_.argmax())
    0
    """

    _learned = {
        "losses_": (
            "list of float",
            "Mean squared errors on the rows that judged: at the start, after the scales were learned, and of every iterate "
            "that was judged after that. The map has the least.",
        ),
        "importances_": ("ndarray of shape (n_features_in_,)", "Learned scales of the columns; the largest is 1."),
        "n_iter_": ("int", "Steps that were made; 1 without targets."),
    }
    _arguments = {"y": ("array-like of shape (n_samples,) or (n_samples, n_targets), default=None", "Targets, or labels.")}
    # A cosine comes with its sine.
    _single = {"n_components": {1: 2}}

    def _rows_needed(self) -> int:
        # Four to learn from, and one that judges.
        return 5

    def _draw_for(self, X: Any, y: Any, seed: int) -> Map:
        self.n_iter_ = 1
        if y is None:
            return self._draw(X, seed)
        spec = {"seed": seed, **{name: plain(name, value) for name, value in self._description(X).items()}}
        rows = np.ascontiguousarray(X.toarray() if is_sparse(X) else X)
        targets = np.ascontiguousarray(_codes(np.asarray(y)), dtype=rows.dtype)
        found = json.loads(_bochner.learn_fourier(json.dumps(spec), rows, targets, n_jobs=self.n_jobs))
        self.losses_ = found["losses"]
        self.n_iter_ = max(1, int(found["steps"]))
        self.importances_ = np.asarray(found["importances"])
        return Map(json.dumps(found["spec"]), X.shape[1], X.dtype.name, False, n_jobs=self.n_jobs)


# Whole numbers that are taken for labels; more different ones are numbers, and so are those with an axis for targets.
_MOST_LABELS = 30


def _codes(y: NDArray[Any]) -> NDArray[Any]:
    """Targets about their means in units of their spread, or a column of zeros and ones for each label."""
    if y.ndim == 1 and type_of_target(y) in ("binary", "multiclass"):
        labels = np.unique(y)
        if y.dtype.kind not in "fiu" or len(labels) <= _MOST_LABELS:
            return (y.reshape(-1, 1) == labels).astype(np.float64)
    y = y.reshape(len(y), -1).astype(np.float64)
    scale = y.std(axis=0)
    return (y - y.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def _length_scale(gamma: float | str, kernel: str, X: Any) -> float:
    """The length scale of exp(-gamma |x - y|^2), "scale" being scikit-learn's 1 / (n_features Var[X])."""
    if kernel != "gaussian":
        raise ValueError(f"gamma belongs to the Gaussian kernel; give length_scale for kernel={str(kernel)!r}")
    if gamma == "scale":
        if is_sparse(X):
            variance = float(X.multiply(X).mean(dtype=np.float64) - X.mean(dtype=np.float64) ** 2)
        else:
            variance = float(X.var(dtype=np.float64))
        gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if isinstance(gamma, str) or not gamma > 0:
        raise ValueError(f'gamma must be a positive number, "scale" or None, got {gamma!r}')
    return float(np.sqrt(0.5 / gamma))


def _declared(map: dict[str, Any]) -> type[FeatureTransformer]:
    """The class of a map that needs nothing besides what the catalogue says of it."""
    name, base = camel(map["name"]), getattr(_signatures, f"{camel(map['name'])}Map")
    return type(f"{name}Features", (base, FeatureTransformer), {"__doc__": map["about"], "__module__": __name__})


# The classes by the names of their maps. A map that is new in the catalogue has one without a line here.
CLASSES: dict[str, type[FeatureTransformer]] = {kind._map_name: kind for kind in FeatureTransformer.__subclasses__()}
CLASSES |= {map["name"]: _declared(map) for map in CATALOGUE["maps"] if map["name"] not in CLASSES}
globals().update({kind.__name__: kind for kind in CLASSES.values()})
