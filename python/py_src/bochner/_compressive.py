"""Compressed measurements, and Fourier features of them."""

from __future__ import annotations

from typing import Any, Literal

from bochner._base import FeatureTransformer
from bochner._checks import RandomState


class OrthoProjection(FeatureTransformer):
    r"""Compressed measurements: projections of rows on random orthogonal directions.

    Squared lengths and inner products are kept on average, so that measurements can be stored and used in place of
    the rows: in front of :class:`FourierFeatures` they make compressive features (Chang et al. 2016).

    Parameters
    ----------
    n_components : int, default=64
        Budget of measurements per row; no more are made than rows have columns, and all of them only turn a row.
    orthoprojector : {"gaussian", "sign", "srht"}, default="gaussian"
        What the directions are made from: orthonormalised normals, orthonormalised signs, or coordinates of a
        randomised Hadamard transform, which is fast in high dimensions.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same measurements in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Measurements do not depend on it.

    Attributes
    ----------
    spec_ : dict
        Full description of the map; with it any door of the library draws the same map.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    See Also
    --------
    CompressiveFeatures : Both steps in one transformer.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import FourierFeatures, OrthoProjection
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).normal(size=(5, 200))
    >>> make_pipeline(OrthoProjection(20), FourierFeatures(64, length_scale=10.0)).fit_transform(X).shape
    (5, 64)
    """

    _map_name = "ortho_projection"

    def __init__(
        self,
        n_components: int = 64,
        *,
        orthoprojector: Literal["gaussian", "sign", "srht"] = "gaussian",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.orthoprojector = orthoprojector
        self.random_state = random_state
        self.n_jobs = n_jobs


class CompressiveFeatures(FeatureTransformer):
    r"""Random Fourier features of compressed rows.

    One orthoprojector compresses all rows to a few measurements, of which Fourier features of the Gaussian kernel are
    taken: many features cost little in high dimensions (Chang et al. 2016). They estimate the mean of the Gaussian
    kernel over projections, which `kernel` gives in closed form; it is close to the Gaussian kernel unless
    `compressed_dim` is small.

    Parameters
    ----------
    n_components : int, default=1024
        Budget of output columns; one fewer is used where they come in pairs and the budget is odd.
    compressed_dim : int, default=64
        Budget of measurements per row; no more are made than rows have columns.
    orthoprojector : {"gaussian", "sign", "srht"}, default="gaussian"
        What the directions of the measurements are made from; see :class:`OrthoProjection`.
    length_scale : float or "median", default=1.0
        Distance over which the kernel falls off; "median" takes the median distance between rows seen in `fit`.
    projection : {"gaussian", "auto", "orthogonal", "sorf"}, default="gaussian"
        How frequencies are drawn; see :class:`FourierFeatures`.
    form : {"cos_sin", "offset", "complex"}, default="cos_sin"
        Pairs of cosine and sine, a cosine with a random offset, or complex exponentials (complex output).
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same features in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Features do not depend on it.

    Attributes
    ----------
    length_scale_ : float
        Length scale used.
    projection_ : str
        Projection used.
    spec_ : dict
        Full description of the map; with it any door of the library draws the same map.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import CompressiveFeatures
    >>> X = np.random.default_rng(0).normal(size=(5, 200))
    >>> features = CompressiveFeatures(4096, compressed_dim=50, length_scale=15.0, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> deviations = np.abs(Z @ Z.T - features.kernel(X)) / np.sqrt(features.variance(X) + 1e-20)
    >>> bool(deviations.max() < 5.0)
    True
    """

    _map_name = "compressive"
    _filled_in = ("length_scale", "projection")

    def __init__(
        self,
        n_components: int = 1024,
        *,
        compressed_dim: int = 64,
        orthoprojector: Literal["gaussian", "sign", "srht"] = "gaussian",
        length_scale: float | Literal["median"] = 1.0,
        projection: Literal["gaussian", "auto", "orthogonal", "sorf"] = "gaussian",
        form: Literal["cos_sin", "offset", "complex"] = "cos_sin",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.compressed_dim = compressed_dim
        self.orthoprojector = orthoprojector
        self.length_scale = length_scale
        self.projection = projection
        self.form = form
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        if self.n_components == 1 and self.form == "cos_sin":
            # No room for a pair, but for one cosine.
            description["form"] = "offset"
        return description

    def _rows_needed(self) -> int:
        return 2 if isinstance(self.length_scale, str) else 1

    def _complex_output(self) -> bool:
        return self.form == "complex"
