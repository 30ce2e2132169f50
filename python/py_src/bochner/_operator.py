"""Regression of several outputs that are one function: related outputs, gradients of potentials, flows without sources."""

from __future__ import annotations

import json
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from bochner import _bochner, _signatures
from bochner._base import sample
from bochner._bochner import Map
from bochner._catalogue import Fitted, documented, entry
from bochner._checks import changing, check_rows, count, explained, forget, plain, seed_of
from bochner._models import DENSE, Accumulating, AccumulatingClassification, Deciding, Differentiable, Regression, Solved
from bochner._processes import Sampled, Searched
from bochner.kernels import OperatorKernel, check_kernel


@documented
def simplex_codes(n_classes: int) -> NDArray[np.float64]:
    """Codes of classes as corners of a regular simplex: unit rows with equal angles that sum to 0.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    codes : ndarray of shape (n_classes, n_classes - 1)
        One row per class; inner products are -1 / (n_classes - 1).

    >>> codes = simplex_codes(3)
    >>> (codes @ codes.T).round(12) + 0.0
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """
    return _bochner.simplex_codes(count("n_classes", n_classes))


@documented
def lagged_rows(series: ArrayLike, n_lags: int = 1) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows and targets for autoregression: the states before each time, the latest first, and the state at that time.

    Parameters
    ----------
    series : array-like of shape (n_times, n_outputs)
        A vector time series.
    n_lags : int, default=1
        States before each target.

    Returns
    -------
    X : ndarray of shape (n_times - n_lags, n_lags * n_outputs)
        Rows.
    y : ndarray of shape (n_times - n_lags, n_outputs)
        Targets.

    >>> X, y = lagged_rows([[1.0], [2.0], [3.0], [4.0]], n_lags=2)
    >>> X
    array([[2., 1.],
           [3., 2.]])
    """
    n_lags = count("n_lags", n_lags)
    return _bochner.lagged_rows(check_array(series, dtype=np.float64, input_name="series"), n_lags)


class _WithKernel:
    """What is given a kernel whose values are matrices."""

    _apart = ("kernel", "length_scale", "A")
    _of_sums = ("kernel", "length_scale", "A", "n_components", "random_state", "coding")
    # How outputs may be related besides by a matrix, in words.
    _related: ClassVar[tuple[str, ...]] = ("covariance", "learned")

    kernel: Any
    length_scale: Any
    A: Any
    n_components: int
    n_jobs: int | None
    random_state: Any

    def _kernel(self, X: Any, seed: int) -> Any:
        if isinstance(self.kernel, OperatorKernel):
            return check_kernel(self.kernel, OperatorKernel)._spec()
        length_scale = self.length_scale
        if isinstance(length_scale, str):
            spec = json.dumps({"map": "fourier", "seed": seed, "length_scale": length_scale})
            length_scale = json.loads(Map.resolve(spec, sample(X, seed), n_jobs=self.n_jobs))["length_scale"]
        length_scale = plain("length_scale", length_scale)
        kernel = self.kernel
        if kernel == "div_free":
            message = 'kernel="div_free" is called "divergence_free" now; the old name goes in version 0.3'
            warnings.warn(message, FutureWarning, stacklevel=5)
            kernel = "divergence_free"
        if kernel in ("curl_free", "divergence_free"):
            return {"kernel": kernel, "length_scale": length_scale}
        if kernel == "helmholtz":
            share = next(p["default"] for p in entry("operator_kernels", kernel)["parameters"] if p["name"] == "curl_free")
            return {"kernel": kernel, "length_scale": length_scale, "curl_free": share}
        if kernel != "decomposable":
            raise ValueError(
                'kernel must be "decomposable", "curl_free", "divergence_free", "helmholtz" or an operator-valued kernel of '
                f"bochner.kernels, got {kernel!r}"
            )
        if isinstance(length_scale, list):
            raise ValueError(
                "length_scale must be one number for a decomposable kernel; the kernels of fields take one for each column"
            )
        outputs = "identity" if self.A is None else self.A
        if not isinstance(outputs, str):
            outputs = check_array(outputs, dtype=np.float64, input_name="A").tolist()
        elif outputs not in ("identity", *self._related):
            words = ", ".join(f'"{word}"' for word in self._related)
            raise ValueError(f"A must be a matrix{words and ', ' + words} or None, got {outputs!r}")
        # Checked by the core on its own, so that its complaint is about A.
        base = {"kernel": "gaussian", "length_scale": length_scale}
        if not isinstance(outputs, str):
            _bochner.OperatorKernel(json.dumps({"kernel": "decomposable", "base": base, "matrix": outputs}))
        return {"base": base, "outputs": outputs}

    def _rows_needed(self) -> int:
        return 2 if isinstance(self.length_scale, str) else 1

    def _even(self) -> int:
        """A cosine comes with its sine."""
        return 2 if self.n_components == 1 else self.n_components


def _whole(kernel: dict[str, Any], targets: NDArray[Any]) -> dict[str, Any]:
    """The kernel with the matrix of outputs that targets like these have."""
    outputs = kernel.get("outputs")
    if outputs == "identity":
        outputs = np.eye(targets.shape[1]).tolist()
    elif outputs == "covariance":
        outputs = np.atleast_2d(np.cov(targets.astype(np.float64), rowvar=False, bias=True)).tolist()
    elif outputs is None:
        return kernel
    return {"kernel": "decomposable", "base": kernel["base"], "matrix": outputs}


class OperatorFeatures(_signatures.OperatorFeaturesMap, _WithKernel, Fitted, TransformerMixin, BaseEstimator):
    """Random features of a kernel whose values are matrices: ``Phi(x)`` with ``Phi(x).T @ Phi(y)`` an estimate of ``K(x, y)``.

    With frequencies of a scalar kernel and a root ``B`` of the matrix that belongs to each, features are the cosines and sines
    times ``B`` (Brault, Heinonen and d'Alche-Buc 2016, algorithm 1). A function is ``Phi(x).T @ theta``, one number for each
    output: any solver and any loss may find the parameters. :class:`OperatorRidge` and :class:`OperatorGPRegressor` never make
    the array that `transform` returns. Computed in float64.

    >>> X = np.random.default_rng(0).normal(size=(5, 2))
    >>> features = OperatorFeatures(4096, kernel="curl_free", random_state=0).fit(X)
    >>> Phi = features.transform(X)
    >>> Phi.shape
    (5, 2, 4096)
    >>> deviation = np.sqrt(np.trace(features.variance(X), axis1=2, axis2=3))
    >>> error = np.linalg.norm(features.estimate(X) - features.exact_kernel(X), axis=(2, 3))
    >>> bool((error < 4 * deviation).all())
    True
    """

    _related = ()
    _learned = {
        "spec_": ("dict", "Full description of the features; with it any door of the library draws the same."),
        "n_outputs_": ("int", "Number of outputs."),
        "n_columns_": ("int", "Number of columns of each output: parameters of a function."),
    }
    _arguments = {
        "y": (
            "array-like of shape (n_samples,) or (n_samples, n_outputs), default=None",
            "Targets; only their number matters, to a decomposable kernel without a matrix `A`, which has one output without them.",
        ),
        "X": ("array-like of shape (n_samples, n_features)", "Rows."),
    }

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Draw the features for rows of this width; values matter where the length scale is to be found from them."""
        with changing(self, "fit"):
            forget(self)
            rows = check_rows(self, X, reset=True, **DENSE, ensure_min_samples=self._rows_needed())
            seed = seed_of(self.random_state)
            with explained(self, ("X", rows)):
                kernel = self._kernel(rows, seed)
                targets = np.zeros((1, 1)) if y is None else np.asarray(y)
                kernel = _whole(kernel, targets.reshape(len(targets), -1))
                spec = {"kernel": kernel, "n_components": plain("n_components", self._even()), "seed": seed}
                spec = json.dumps(spec | {"projection": self.projection})
                self.map_ = _bochner.OperatorMap(spec, rows.shape[1], n_jobs=self.n_jobs)
            self.spec_ = json.loads(self.map_.spec)
            self.n_outputs_, self.n_columns_ = self.map_.output_dim, self.map_.n_columns
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Features of rows.

        Returns
        -------
        features : ndarray of shape (n_samples, n_outputs, n_columns)
            A matrix for every row: ``Phi(x).T``.
        """
        rows = self._rows(X)
        with explained(self, ("X", rows)):
            return self.map_.transform(rows, n_jobs=self.n_jobs)

    def exact_kernel(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The exact kernel that the features estimate.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y, n_outputs, n_outputs)
            A matrix for every pair of rows.
        """
        return self._pairwise("kernel", X, Y)

    def estimate(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The estimated kernel: products of the features of rows, which are not made.

        Returns
        -------
        K_hat : ndarray of shape (n_samples_X, n_samples_Y, n_outputs, n_outputs)
            A matrix for every pair of rows.
        """
        return self._pairwise("estimate", X, Y)

    def variance(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Closed-form matrix variance ``E (K_hat - K)^2`` of the estimate of every pair, over draws of independent frequencies.

        Its trace is the mean squared Frobenius norm of the error.

        Returns
        -------
        V : ndarray of shape (n_samples_X, n_samples_Y, n_outputs, n_outputs)
            A positive semi-definite matrix for every pair of rows.
        """
        return self._pairwise("variance", X, Y)

    def variance_bound(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """What the largest eigenvalue of `variance` is bounded by (proposition 12 of the paper); it is that of decomposable kernels.

        Returns
        -------
        bound : ndarray of shape (n_samples_X, n_samples_Y)
            A number for every pair of rows.
        """
        x = self._rows(X)
        y = x if Y is None else self._rows(Y)
        with explained(self, ("X", x), ("Y", y)):
            return self.map_.variance_bound(x, y)

    def bound(self, error: float, diameter: float) -> float:
        """Probability that the estimate is off by `error` or more between any two rows of a set (theorem 10 of the paper).

        Constants are large: it is a figure to report, and says how errors fall with the number of features, not how many are
        needed. `variance` does.

        Parameters
        ----------
        error : float
            Largest eigenvalue of the difference of estimate and kernel.
        diameter : float
            Largest distance of two rows of the set.

        Returns
        -------
        probability : float
            At most 1, which says nothing.
        """
        check_is_fitted(self)
        for name, value in (("error", error), ("diameter", diameter)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value}")
        return self.map_.bound(float(error), float(diameter))

    def pullback(self, X: ArrayLike, cotangents: ArrayLike) -> NDArray[np.float64]:
        """Gradients in features taken back to gradients in rows, without a Jacobian.

        Parameters
        ----------
        cotangents : array-like of shape (n_samples, n_outputs, n_columns)
            One for every number that `transform` returns.

        Returns
        -------
        gradients : ndarray of shape (n_samples, n_features)
            With ``cotangents[i]`` the gradient of a function in the features of row i, its gradient in that row.
        """
        rows = self._rows(X)
        with explained(self, ("X", rows)):
            return self.map_.pullback(rows, np.ascontiguousarray(cotangents, dtype=np.float64), n_jobs=self.n_jobs)

    def _rows(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        return check_rows(self, X, reset=False, **DENSE)

    def _pairwise(self, quantity: str, X: ArrayLike, Y: ArrayLike | None) -> NDArray[np.float64]:
        x = self._rows(X)
        y = x if Y is None else self._rows(Y)
        with explained(self, ("X", x), ("Y", y)):
            return self.map_.pairwise(quantity, x, y, n_jobs=self.n_jobs)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")


class _OperatorRidge(_WithKernel, Differentiable, Solved):
    """What regression and classification share."""

    def _checks(self, first: bool = True) -> dict[str, Any]:
        return {"ensure_min_samples": 2} if first and self._rows_needed() > 1 else {}

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        """Finds the kernel for rows like these, with a seed."""
        self.seed_ = seed_of(self.random_state)
        self.kernel_ = self._kernel(rows, self.seed_)

    def _settle(self, targets: NDArray[Any]) -> None:
        super()._settle(targets)
        if self.kernel_.get("outputs") == "covariance":
            codes = self._codes(targets).astype(np.float64)
            self.kernel_["outputs"] = np.atleast_2d(np.cov(codes, rowvar=False, bias=True)).tolist()

    def _on(self) -> str:
        return json.dumps(self.kernel_)

    def _codes(self, targets: NDArray[Any]) -> NDArray[Any]:
        """What is regressed."""
        return targets

    def _plan(self, **others: Any) -> str:
        return super()._plan(n_components=self._even(), **others)

    @property
    def A_(self) -> NDArray[np.float64] | None:
        """ndarray of shape (n_targets, n_targets) or None: The output matrix of a decomposable kernel."""
        matrix = self._described()["kernel"].get("matrix")
        return None if matrix is None else np.array(matrix)


class OperatorRidge(_signatures.OperatorRidgeModel, _OperatorRidge, Regression):
    """Ridge regression of several outputs that are one function, on random features of a matrix-valued kernel.

    Outputs may be related by a matrix (``"decomposable"``), be the gradient of a potential (``"curl_free"``) or a flow
    without sources (``"divergence_free"``; both have as many outputs as inputs). Rows are read in one pass: memory depends on
    the number of features and not on the number of rows.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.c_[np.cos(X[:, 0]) * np.cos(X[:, 1]), -np.sin(X[:, 0]) * np.sin(X[:, 1])]
    >>> model = OperatorRidge("curl_free", alpha=1e-4, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    >>> J = model.jacobian(X)
    >>> bool(abs(J - J.transpose(0, 2, 1)).max() < 1e-8)
    True
    """

    def jacobian(self, X: ArrayLike) -> NDArray[np.float64]:
        """Derivatives of the fitted function, exactly.

        Returns
        -------
        J : ndarray of shape (n_samples, n_targets, n_features)
            Derivatives of targets by features: symmetric for curl-free and of trace 0 for divergence-free kernels.
        """
        return self._model().ask("jacobian", check_array(X, dtype=np.float64, input_name="X"), n_jobs=self.n_jobs)


class OperatorGPRegressor(
    _signatures.OperatorGpModel, Searched, _WithKernel, Differentiable, Accumulating, Sampled
):
    """Gaussian process regression of several outputs that are one function, on random features of a matrix-valued kernel.

    A field, such as currents seen by drifting buoys, is the gradient of a potential (``"curl_free"``), a flow without sources
    (``"divergence_free"``) or both at once (``"helmholtz"``); outputs may be related by a matrix instead (``"decomposable"``).
    The covariance is `signal` times the kernel. Derivatives of the process are processes as well: divergence and vorticity have
    standard deviations. Rows are read in one pass; memory depends on the number of features and not on the number of rows.

    A length scale, a share of the curl-free part, a signal and a noise variance that nobody knows are found with
    ``optimizer="lbfgs"``.

    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    >>> y = np.c_[-X[:, 1], X[:, 0]]
    >>> model = OperatorGPRegressor("helmholtz", 256, noise=1e-3, random_state=0).fit(X, y)
    >>> vorticity, std = model.vorticity([[0.1, 0.2], [5.0, 5.0]], return_std=True)
    >>> bool(abs(vorticity[0] - 2.0) < 0.1 and std[1] > 5 * std[0])
    True
    """

    _row_checks = {"accept_sparse": False}
    _related = ("covariance",)
    _learned = {
        "kernel_": ("dict", "Description of the kernel used."),
        "noise_": ("float", "Variance of the noise used, in units of the mean variance of the targets if they are normalized."),
        "signal_": ("float", "What the kernel is multiplied by, in the same units."),
        "n_iter_": ("int", "Evaluations of the likelihood; 1 without a search."),
    }

    def _checks(self, first: bool = True) -> dict[str, Any]:
        return {"ensure_min_samples": 2} if first and self._rows_needed() > 1 else {}

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        """Finds the kernel for rows like these, with a seed."""
        self.seed_ = seed_of(self.random_state)
        self.kernel_ = _whole(self._kernel(rows, self.seed_), targets)
        self.noise_, self.signal_, self.n_iter_ = self.noise, self.signal, 1
        found = self._search(self._kind, self._on(), rows, targets, self._plan(), seed=self.seed_)
        if found is None:
            return
        self.kernel_, self.noise_, self.signal_ = found["kernel"], found["noise"], found["signal"]
        self.n_iter_ = max(1, int(found["evaluations"]))

    def _fitted(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None, kind: str | None = None) -> Any:
        model = super()._fitted(rows, targets, weights, kind)
        if self.optimizer is not None:
            # Those of all rows.
            self.signal_, self.noise_ = model.learned("variances")
        return model

    def _on(self) -> str:
        return json.dumps(self.kernel_)

    def _plan(self, **others: Any) -> str:
        found = {name: getattr(self, f"{name}_", getattr(self, name)) for name in ("noise", "signal")}
        return super()._plan(n_components=self._even(), **found | others)

    def predict(  # type: ignore[override]
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False, include_noise: bool = False
    ) -> Any:
        """Predict targets.

        Parameters
        ----------
        include_noise : bool, default=False
            Whether standard deviations and covariances are those of observations, noise included, or those of the function
            behind them.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Means of the process.
        std : ndarray of the shape of y
            Standard deviations, if asked for.
        cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets, n_targets)
            Covariances, if asked for: a matrix of outputs for every pair of rows, as kernels have it.
        """
        if not return_cov or return_std:
            return super().predict(X, return_std, return_cov, include_noise)
        mean, cov = super().predict(X), self._ask("field_covariance", X)
        if include_noise:
            numbers = np.arange(len(cov))
            cov[numbers, numbers] += np.diag(np.ravel(self._noise()))
        return mean, cov if self.target_shape_ else cov[:, :, 0, 0]

    def jacobian(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Derivatives of the process by the columns of X.

        Returns
        -------
        J : ndarray of shape (n_samples, n_targets, n_features)
            Means of the derivatives of targets by features.
        std : ndarray of the shape of J
            Standard deviations, if asked for.
        """
        if not return_std:
            return self._ask("jacobian", X)
        parts = self._with_deviations("jacobian", X)
        mean, std = (part.reshape(len(part), -1, self.n_features_in_) for part in parts)
        return mean, std

    def divergence(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Divergence of the field: where it has sources, and sinks.

        Returns
        -------
        divergence : ndarray of shape (n_samples,)
            Means, in units of the targets over units of the rows.
        std : ndarray of shape (n_samples,)
            Standard deviations, if asked for.
        """
        return self._answer("divergence", X, return_std)

    def vorticity(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Vorticity of the field: in the plane ``dv/dx - du/dy``, in space the three components of the curl.

        Returns
        -------
        vorticity : ndarray of shape (n_samples,) or (n_samples, 3)
            Means, in units of the targets over units of the rows.
        std : ndarray of the same shape
            Standard deviations, if asked for.
        """
        return self._answer("vorticity", X, return_std)

    def potential(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Potential whose gradient the curl-free part of the field is, up to a constant.

        Returns
        -------
        potential : ndarray of shape (n_samples,)
            Means.
        std : ndarray of shape (n_samples,)
            Standard deviations, if asked for; those of differences between places are what data say something about.
        """
        return self._answer("potential", X, return_std)

    def stream_function(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Function ``s`` of the plane for which ``(-ds/dy, ds/dx)`` is the divergence-free part of the field, up to a constant.

        Returns
        -------
        stream_function : ndarray of shape (n_samples,)
            Means; lines along which it is constant are those along which water flows.
        std : ndarray of shape (n_samples,)
            Standard deviations, if asked for.
        """
        return self._answer("stream_function", X, return_std)

    def _with_deviations(self, question: str, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        mean, variance = np.split(self._ask(f"{question}_spread", X), 2, axis=1)
        return np.ascontiguousarray(mean), np.sqrt(np.maximum(variance, 0.0))

    def _answer(self, question: str, X: ArrayLike, return_std: bool) -> Any:
        parts = self._with_deviations(question, X) if return_std else (self._ask(question, X),)
        mean, *std = (part[:, 0] if part.shape[1] == 1 else part for part in parts)
        return (mean, *std) if return_std else mean

    @property
    def A_(self) -> NDArray[np.float64] | None:
        """ndarray of shape (n_targets, n_targets) or None: The output matrix of a decomposable kernel."""
        matrix = self._described()["kernel"].get("matrix")
        return None if matrix is None else np.array(matrix)


class OperatorRidgeClassifier(
    _signatures.OperatorRidgeClassifierModel, _OperatorRidge, Deciding, AccumulatingClassification
):
    """Classification by regression of codes, with a decomposable kernel.

    A class is a corner of a regular simplex: one output less than there are classes, none of them preferred. The class
    whose corner is nearest to the prediction wins.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OperatorRidgeClassifier(length_scale="median", alpha=1e-3, random_state=0).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.94
    True
    """

    kernel = "decomposable"

    def _checked(self, X: ArrayLike, y: ArrayLike, **options: Any) -> tuple[Any, NDArray[Any]]:
        rows, numbers = super()._checked(X, y, **options)
        if len(self.classes_) < 2:
            raise ValueError(f"at least 2 classes are needed to tell them apart, got 1 class: {self.classes_[0]}")
        return rows, numbers

    def _corners(self) -> NDArray[np.float64]:
        """The codes, one row per class."""
        classes = len(self.classes_)
        return np.eye(classes) if self.coding == "one_hot" else simplex_codes(classes)

    def _codes(self, targets: NDArray[Any]) -> NDArray[Any]:
        return self._corners()[targets[:, 0].astype(int)]

    def _margin(self, values: NDArray[Any]) -> NDArray[Any]:
        return 0.5 * (values[:, 1] - values[:, 0])
