"""Optical features: moduli of complex random projections, with a simulated device."""

from __future__ import annotations

from typing import Any, Literal

from bochner._base import FeatureTransformer
from bochner._checks import RandomState


class OpticalFeatures(FeatureTransformer):
    r"""Random features ``|U x|^exponent / sqrt(n_components)`` with a complex normal matrix U.

    What an optical processing unit computes: light is scattered by a random medium and a camera sees its intensity.
    Inner products of features estimate the kernel :class:`bochner.kernels.Optical`, ``|x|^2 |y|^2 + <x, y>^2`` for
    exponent 2 (Saade et al. 2016, Ohana et al. 2020). The parts of a device can be switched on one by one: binary
    rows, a camera of few bits, read noise.

    Parameters
    ----------
    n_components : int, default=1024
        Number of output columns.
    exponent : float, default=2.0
        Any positive number; 2 is intensity.
    projection : {"auto", "dense", "matrix_free", "structured"}, default="auto"
        Stored normal weights; the same weights made again for every block of rows (the same features, no memory); or
        Hadamard transforms, which are far faster and biased by about one over the number of columns. "auto" takes
        transforms only where that bias hides below the sampling error.
    binarize : float, default=None
        Threshold: values above it become 1, all others 0. Rows stay as they are if it is None.
    bias : float, default=0.0
        Square of a constant coordinate appended to all (encoded) rows.
    camera_bits : int, default=None
        Bits of the camera, from 1 to 24; intensities are not rounded if it is None. The gain sends the quantile 0.999
        of the intensities of the rows seen in `fit` to the highest grey level, and brighter pixels saturate.
    noise : float, default=0.0
        Standard deviation of the camera's read noise: in grey levels with `camera_bits`, in units of intensity without.
        It belongs to a row's values, so a row always reads the same.
    encoding : {"bit_planes", "thermometer"}, default=None
        Another binary code in place of `binarize`: the digits of a value's level, or as many ones as there are thresholds
        below it. Ranges are those of the columns seen in `fit`.
    levels : int, default=8
        Bits per value of `encoding`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same features in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Features do not depend on it.

    Attributes
    ----------
    projection_ : str
        Projection used.
    gain_ : float or None
        Grey levels per unit of intensity, where there is a camera.
    spec_ : dict
        Full description of the map; with it any door of the library draws the same map.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import OpticalFeatures
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = OpticalFeatures(8192, exponent=1.0, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> K = features.kernel(X)
    >>> bool(np.abs(Z @ Z.T - K).max() < 0.05 * K.max())
    True
    """

    _map_name = "optical"
    _filled_in = ("projection", "gain")

    def __init__(
        self,
        n_components: int = 1024,
        *,
        exponent: float = 2.0,
        projection: Literal["auto", "dense", "matrix_free", "structured"] = "auto",
        binarize: float | None = None,
        bias: float = 0.0,
        camera_bits: int | None = None,
        noise: float = 0.0,
        encoding: Literal["bit_planes", "thermometer"] | None = None,
        levels: int = 8,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.exponent = exponent
        self.projection = projection
        self.binarize = binarize
        self.bias = bias
        self.camera_bits = camera_bits
        self.noise = noise
        self.encoding = encoding
        self.levels = levels
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        levels = description.pop("levels")
        if self.encoding is not None:
            count = {"bit_planes": "bits", "thermometer": "levels"}.get(self.encoding)
            if count is None:
                raise ValueError(f'encoding must be one of "bit_planes", "thermometer" or None, got {self.encoding!r}')
            description["encoding"] = {"kind": self.encoding, count: levels}
        return description
