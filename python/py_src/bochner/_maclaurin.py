"""Maclaurin features, and Gaussian processes around the centroids of clusters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bochner._base import FeatureTransformer, KernelParameter
from bochner._bochner import LocalGpModel, Map
from bochner._checks import RandomState, explained, plain, seed_of
from bochner._models import Regression
from bochner._progress import progress


class MaclaurinFeatures(FeatureTransformer):
    r"""Random features of kernels that are power series in the inner product, and of the Gaussian kernel.

    The series ``sum_n a_n <x, y>^n`` is truncated and every degree gets a sketch of its own. How many columns each degree
    gets, and where the series ends, is chosen for the least mean squared error over pairs of rows seen in `fit`
    (Wacker et al. 2022); or degrees are drawn by chance (Kar and Karnick 2012), which is unbiased but varies far more.

    Parameters
    ----------
    n_components : int, default=1024
        Budget of output columns, the constant one among them; one fewer is used where columns come in pairs.
    kernel : {"gaussian", "exponential", "polynomial"} or sequence of float, default="gaussian"
        Kernel to estimate: ``exp(-|x - y|^2 / (2 length_scale^2))``, ``exp(<x, y> / length_scale^2)``,
        ``(gamma <x, y> + coef0)^degree``, or the series with these coefficients. (On a fitted transformer
        ``kernel(X, Y)`` is also the exact kernel matrix.)
    length_scale : float, array-like of shape (n_features,) or "median", default=1.0
        Divides rows for the Gaussian and the exponential kernel; "median" takes the median distance between rows seen
        in `fit`.
    degree : int, default=3
        Exponent of the polynomial kernel.
    gamma : float, default=1.0
        Factor of the inner product in the polynomial kernel.
    coef0 : float, default=1.0
        Constant inside the polynomial kernel.
    allocation : {"optimized", "random"}, default="optimized"
        How columns are given to degrees.
    statistics : {"pairwise", "one_pass"}, default="pairwise"
        Where the optimised allocation takes mean variances from: all pairs of up to 5,000 rows, or moments of them
        from one pass, which is faster and nearly as good.
    sketch : {"tensor_srht", "rademacher", "gaussian", "tensor_sketch"}, default="tensor_srht"
        Random directions, as in :class:`PolynomialSketch`.
    weights : {"ctr", "real", "complex"}, default="ctr"
        Real or complex directions, as in :class:`PolynomialSketch`.
    srht : {"upsampled", "stacked", "tuple"}, default="upsampled"
        How coordinates are sampled for ``sketch="tensor_srht"``.
    max_degree : int, default=10
        Largest degree of the optimised allocation, at most 64.
    min_degree : int, default=2
        Smallest degree at which the optimised allocation may end the series.
    centre : bool, default=True
        Whether the mean of the rows seen in `fit` is subtracted for the Gaussian kernel, whose values do not change;
        the series converges best around 0. Other kernels see rows as they are.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw. An integer is the seed itself: the same features in every language.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Features do not depend on it.

    Attributes
    ----------
    length_scale_ : float or list of float
        Length scale used.
    columns_ : list of int
        Columns of every degree of the optimised allocation, degree 0 first.
    weights_ : str
        Weights of the optimised allocation: `weights`, or "real" where that is "ctr" and real columns are predicted to have
        less error, which happens with few columns in few dimensions.
    degree_ : int
        Degree at which the optimised allocation ends the series.
    predicted_variance_, predicted_bias_ : float
        Mean variance and mean squared bias of the estimate over pairs of rows, as predicted by the optimised allocation.
    spec_ : dict
        Full description of the map; with it any door of the library draws the same map.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import MaclaurinFeatures
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> features = MaclaurinFeatures(2001, length_scale="median", random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> error = np.abs(Z @ Z.T - features.kernel(X))
    >>> bool(error.mean() < 0.02)
    True
    """

    _map_name = "maclaurin"
    _filled_in = ("length_scale",)
    kernel = KernelParameter()

    def __init__(
        self,
        n_components: int = 1024,
        *,
        kernel: Literal["gaussian", "exponential", "polynomial"] | Sequence[float] = "gaussian",
        length_scale: float | ArrayLike | Literal["median"] = 1.0,
        degree: int = 3,
        gamma: float = 1.0,
        coef0: float = 1.0,
        allocation: Literal["optimized", "random"] = "optimized",
        statistics: Literal["pairwise", "one_pass"] = "pairwise",
        sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"] = "tensor_srht",
        weights: Literal["ctr", "real", "complex"] = "ctr",
        srht: Literal["upsampled", "stacked", "tuple"] = "upsampled",
        max_degree: int = 10,
        min_degree: int = 2,
        centre: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.length_scale = length_scale
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.allocation = allocation
        self.statistics = statistics
        self.sketch = sketch
        self.weights = weights
        self.srht = srht
        self.max_degree = max_degree
        self.min_degree = min_degree
        self.centre = centre
        self.random_state = random_state
        self.n_jobs = n_jobs

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
        return 2 if self.allocation == "optimized" or isinstance(self.length_scale, str) else 1

    def _complex_output(self) -> bool:
        return self.weights == "complex"


class LocalGPRegressor(Regression):
    r"""Gaussian process regression with the Gaussian kernel, for length scales short against the spread of the rows.

    Maclaurin features estimate the kernel well near their origin only. The kernel does not change when all rows are
    shifted: rows are clustered, the features are taken around every centroid, and a row is predicted around the
    centroid nearest to it (Wacker 2022, section 5.5). Rows many length scales away from all centroids are out of
    reach: mean and standard deviation fall to 0 there.

    Parameters
    ----------
    n_components : int, default=256
        Budget of features around each centroid. Time grows with its square and with the number of centroids.
    length_scale : float, array-like of shape (n_features,) or "median", default=1.0
        Length scale of the kernel.
    noise : float, default=0.01
        Variance of the noise of the targets.
    signal_variance : float, default=1.0
        Variance of the function: the kernel's value at distance 0.
    threshold : float, default=2.0
        Rows become centroids until none is this many length scales away from all of them; infinity means a single
        centroid, the mean.
    max_clusters : int, default=None
        Most centroids.
    normalize_y : bool, default=False
        Whether the mean of the targets is subtracted before the fit and added to predictions.
    sketch : {"tensor_srht", "rademacher", "gaussian", "tensor_sketch"}, default="tensor_srht"
        Random directions, as in :class:`MaclaurinFeatures`.
    weights : {"ctr", "real"}, default="ctr"
        Complex or real directions.
    max_degree : int, default=10
        Largest degree of the series, at most 64.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    centroids_ : ndarray of shape (n_centroids, n_features)
        The centroids, the mean of the rows first.
    spec_ : dict
        Full description of the features.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import LocalGPRegressor
    >>> x = np.linspace(-6, 6, 120)
    >>> model = LocalGPRegressor(11, length_scale=0.6, random_state=0).fit(x[:, None], np.sin(2 * x))
    >>> mean, std = model.predict([[4.03]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(8.06)) < 0.05 and std[0] < 0.1)
    True
    """

    _row_checks = {"accept_sparse": False, "dtype": np.float64}

    def __init__(
        self,
        n_components: int = 256,
        *,
        length_scale: float | ArrayLike | Literal["median"] = 1.0,
        noise: float = 0.01,
        signal_variance: float = 1.0,
        threshold: float = 2.0,
        max_clusters: int | None = None,
        normalize_y: bool = False,
        sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"] = "tensor_srht",
        weights: Literal["ctr", "real"] = "ctr",
        max_degree: int = 10,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.length_scale = length_scale
        self.noise = noise
        self.signal_variance = signal_variance
        self.threshold = threshold
        self.max_clusters = max_clusters
        self.normalize_y = normalize_y
        self.sketch = sketch
        self.weights = weights
        self.max_degree = max_degree
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, targets = self._targets(X, y, ensure_min_samples=2)
        mean = targets.mean(axis=0) if self.normalize_y else np.zeros(targets.shape[1])
        self.target_units_ = (mean, np.ones_like(mean))
        names = ("n_components", "length_scale", "sketch", "weights", "max_degree")
        description = {name: plain(name, getattr(self, name)) for name in names}
        if self.n_components in (1, 2):
            # A constant and one column beside it are the least.
            description |= {"n_components": 2, "weights": "real"}
        spec = json.dumps({"seed": seed_of(self.random_state), **description})
        # All of them again for every centroid.
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = LocalGpModel.fit(
                spec,
                rows,
                targets - mean,
                self.noise,
                self.signal_variance,
                self.threshold,
                self.max_clusters,
                n_jobs=self.n_jobs,
                progress=report,
            )
        self.centroids_ = self.model_.centroids
        self.spec_ = json.loads(self.model_.spec)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predictive mean, and standard deviation of the function where asked for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of the function, without the noise of observations.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictive means.
        std : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Standard deviations, the same for all targets; only if `return_std`.
        """
        model = self._model()
        rows = self._rows(X, model)
        with explained(self, ("X", rows)):
            mean, variance = model.predict(rows, n_jobs=self.n_jobs)
        mean = self._shaped(mean)
        if not return_std:
            return mean
        std = np.broadcast_to(np.sqrt(variance)[:, np.newaxis], (len(mean), len(self.target_units_[0])))
        return mean, self._shaped(std.copy(), spread=True)
