"""The feature maps, each a declaration of parameters over :class:`~bochner._base.FeatureTransformer`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from bochner._base import FeatureTransformer, KernelParameter
from bochner._checks import RandomState, is_sparse


class FourierFeatures(FeatureTransformer):
    r"""Random Fourier features of a shift-invariant kernel.

    With frequencies drawn from the kernel's spectrum, the cosines and sines of a row's projections on them have
    inner products that estimate the kernel without bias (Rahimi and Recht 2007).

    Parameters
    ----------
    n_components : int, default=1024
        Budget of output columns; one fewer is used where they come in pairs and the budget is odd. A single column
        is always a cosine with a random offset.
    kernel : {"gaussian", "laplacian", "matern"}, default="gaussian"
        Kernel to estimate. (On a fitted transformer ``kernel(X, Y)`` is also the exact kernel matrix.)
    length_scale : float, array-like of shape (n_features,) or "median", default=1.0
        Distance over which the kernel falls off, one for all columns or one for each; "median" takes the median
        distance between rows seen in `fit`.
    nu : float, default=1.5
        Smoothness of the Matern kernel.
    norm : {1, 2}, default=2
        Norm of the Laplacian kernel ``exp(-|x - y| / length_scale)``.
    projection : {"auto", "gaussian", "orthogonal", "sorf"}, default="auto"
        How frequencies are drawn; "auto" takes the fastest one whose bias hides below the sampling error.
    form : {"cos_sin", "offset", "complex"}, default="cos_sin"
        Pairs of cosine and sine, a cosine with a random offset, or complex exponentials (complex output).
    gamma : float or "scale", default=None
        Another way to give the length scale of the Gaussian kernel ``exp(-gamma |x - y|^2)``, as in
        :class:`sklearn.kernel_approximation.RBFSampler`; takes the place of `length_scale` if given.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same features in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Features do not depend on it.

    Attributes
    ----------
    length_scale_ : float or list of float
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
    >>> from bochner import FourierFeatures
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = FourierFeatures(4096, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> bool(np.abs(Z @ Z.T - features.kernel(X)).max() < 0.1)
    True
    """

    _map_name = "fourier"
    _filled_in = ("length_scale", "projection")
    kernel = KernelParameter()

    def __init__(
        self,
        n_components: int = 1024,
        *,
        kernel: Literal["gaussian", "laplacian", "matern"] = "gaussian",
        length_scale: float | ArrayLike | Literal["median"] = 1.0,
        nu: float = 1.5,
        norm: Literal[1, 2] = 2,
        projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto",
        form: Literal["cos_sin", "offset", "complex"] = "cos_sin",
        gamma: float | Literal["scale"] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.length_scale = length_scale
        self.nu = nu
        self.norm = norm
        self.projection = projection
        self.form = form
        self.gamma = gamma
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        gamma = description.pop("gamma")
        if gamma is not None:
            description["length_scale"] = _length_scale(gamma, self.kernel, X)
        if self.n_components == 1 and self.form == "cos_sin":
            # No room for a pair, but for one cosine.
            description["form"] = "offset"
        return description

    def _rows_needed(self) -> int:
        return 2 if isinstance(self.length_scale, str) and self.gamma is None else 1

    def _complex_output(self) -> bool:
        return self.form == "complex"


class PolynomialSketch(FeatureTransformer):
    r"""Random features of the polynomial kernel ``(gamma <x, y> + coef0)^degree``.

    A feature is the product of `degree` random projections of a row, so that inner products of features estimate the
    kernel without bias; or, for ``sketch="tensor_sketch"``, a convolution of count sketches (Pham and Pagh 2013).
    Parameters mean what they mean to :class:`sklearn.kernel_approximation.PolynomialCountSketch`.

    Parameters
    ----------
    n_components : int, default=1024
        Budget of output columns; one fewer is used where they come in pairs and the budget is odd. A single column has
        no room for a pair: ``weights="ctr"`` then means "real". For ``degree=0`` the one column is a constant.
    degree : int, default=2
        Exponent, at most 64.
    gamma : float, default=1.0
        Factor of the inner product, not negative.
    coef0 : float, default=0.0
        Constant inside the power, not negative.
    sketch : {"tensor_srht", "rademacher", "gaussian", "tensor_sketch"}, default="tensor_srht"
        Random directions of the projections: randomised Hadamard ones, which are fast and usually vary least,
        independent signs or independent normals; or convolved count sketches. `variance` tells for given rows.
    weights : {"ctr", "real", "complex"}, default="ctr"
        Real directions, or complex ones, which usually vary less: "ctr" has the real and the imaginary parts of complex
        features as columns, "complex" the complex features themselves (complex output).
    srht : {"upsampled", "stacked", "tuple"}, default="upsampled"
        How coordinates are sampled for ``sketch="tensor_srht"``: from one transform of the row per factor, from a fresh
        transform for every block of columns, or as distinct tuples over the factors (Ahle et al. 2020).
    structure : {"flat", "tree", "compact"}, default="flat"
        One product over all factors; a balanced tree of products of two, for high degrees; or a flat sketch several
        times as wide, projected down. Trees and compact sketches need ``weights="real"``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same features in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Features do not depend on it.

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
    compact_bilinear_pooling : Sums of these features over the positions of images.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import PolynomialSketch
    >>> X = np.random.default_rng(0).normal(size=(5, 20)) / np.sqrt(20)
    >>> features = PolynomialSketch(4096, degree=3, coef0=1.0, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> deviations = np.abs(Z @ Z.T - features.kernel(X)) / np.sqrt(features.variance(X))
    >>> bool(deviations.max() < 4.0)
    True
    """

    _map_name = "polynomial"

    def __init__(
        self,
        n_components: int = 1024,
        *,
        degree: int = 2,
        gamma: float = 1.0,
        coef0: float = 0.0,
        sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"] = "tensor_srht",
        weights: Literal["ctr", "real", "complex"] = "ctr",
        srht: Literal["upsampled", "stacked", "tuple"] = "upsampled",
        structure: Literal["flat", "tree", "compact"] = "flat",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.sketch = sketch
        self.weights = weights
        self.srht = srht
        self.structure = structure
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _description(self, X: Any) -> dict[str, Any]:
        description = super()._description(X)
        if self.n_components == 1 and self.weights == "ctr":
            # No room for a real and an imaginary part.
            description["weights"] = "real"
        return description

    def _complex_output(self) -> bool:
        return self.weights == "complex"


def _length_scale(gamma: float | str, kernel: str, X: Any) -> float:
    """The length scale of exp(-gamma |x - y|^2), "scale" being scikit-learn's 1 / (n_features Var[X])."""
    if kernel != "gaussian":
        raise ValueError(f"gamma belongs to the Gaussian kernel; give length_scale for kernel={str(kernel)!r}")
    if isinstance(gamma, str):
        if gamma != "scale":
            raise ValueError(f'gamma must be a positive number, "scale" or None, got {gamma!r}')
        if is_sparse(X):
            variance = float(X.multiply(X).mean(dtype=np.float64) - X.mean(dtype=np.float64) ** 2)
        else:
            variance = float(X.var(dtype=np.float64))
        gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if not gamma > 0:
        raise ValueError(f'gamma must be a positive number, "scale" or None, got {gamma!r}')
    return float(np.sqrt(0.5 / gamma))
