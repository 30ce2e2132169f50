"""Spherical features: polynomial kernels of the directions of rows."""

from __future__ import annotations

from typing import Any, Literal, Self

from bochner._base import FeatureTransformer
from bochner._bochner import Map, spherical_bias
from bochner._checks import RandomState


class SphericalFeatures(FeatureTransformer):
    r"""Random features of the polynomial kernel ``(1 - |x - y|^2 / a^2)^degree`` of rows divided by their lengths.

    Cosines and sines of projections whose lengths are drawn from a density that is fitted to the kernel (Pennington, Yu
    and Kumar 2015). The estimate is biased, by what no density can represent: `bias_` says how much. Rows are divided by
    their lengths here; zero rows have no direction and are refused.

    Parameters
    ----------
    n_components : int, default=1024
        Budget of output columns; one fewer is used if it is odd.
    degree : int, default=3
        Exponent, at most 64.
    a : float, default=2.0
        Width of the kernel, at least the root of 2. Near that it is a homogeneous polynomial, which such features cannot
        represent well (:class:`PolynomialSketch` can).
    projection : {"auto", "gaussian", "orthogonal", "sorf"}, default="auto"
        How directions are drawn.
    radial_fit : {"convex", "mixture"}, default="convex"
        Weights on a grid of radii by non-negative least squares, or the clipped mixture of normals of the paper.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same features in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Features do not depend on it.

    Attributes
    ----------
    bias_ : dict
        Difference between the mean of the estimate and the kernel over all distances between directions: its largest
        absolute value as ``"sup"`` and its root mean square as ``"rms"``.
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
    >>> from bochner import SphericalFeatures
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = SphericalFeatures(4096, degree=7, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(np.abs(Z @ Z.T - features.kernel(X)).max() < features.bias_["sup"] + 0.1)
    True
    """

    _map_name = "spherical"
    _filled_in = ("projection",)

    def __init__(
        self,
        n_components: int = 1024,
        *,
        degree: int = 3,
        a: float = 2.0,
        projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto",
        radial_fit: Literal["convex", "mixture"] = "convex",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.degree = degree
        self.a = a
        self.projection = projection
        self.radial_fit = radial_fit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        # The core's name is that of a method here.
        description["fit"] = description.pop("radial_fit")
        if self.n_components == 1:
            # A cosine comes with its sine.
            description["n_components"] = 2
        return description

    def _adopt(self, drawn: Map) -> Self:
        sup, rms = spherical_bias(drawn.spec, drawn.input_dim)
        self.bias_ = {"sup": sup, "rms": rms}
        return super()._adopt(drawn)
