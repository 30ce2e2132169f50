"""Exact kernels: objects called on rows, ``k(X, Y=None)``, returning the kernel matrix.

They are values: equal parameters make equal kernels, and they pickle, print and hash as such. Wherever scikit-learn
takes a kernel function (``SVC(kernel=k)``, ``pairwise_kernels``), one of these fits.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from bochner import _bochner, _signatures
from bochner._catalogue import CATALOGUE, Documented, camel, documented
from bochner._checks import check_own, plain, same_dtype

__all__ = [
    "Compressive",
    "CurlFree",
    "Decomposable",
    "DivergenceFree",
    "Exponential",
    "Gaussian",
    "Helmholtz",
    "Kernel",
    "Laplacian",
    "LowOrder",
    "Matern",
    "OperatorKernel",
    "Optical",
    "Polynomial",
    "Spherical",
    "graph_outputs",
]


class _Described(Documented):
    """A kernel that the core knows by its name and parameters."""

    _name: ClassVar[str]
    # The core's class of such kernels.
    _core: ClassVar[Any]

    def _check(self) -> None:
        self._exact()

    def _exact(self, columns: int | None = None) -> Any:
        return self._core(json.dumps(self._spec(columns)))

    def _spec(self, columns: int | None = None) -> dict[str, Any]:
        """The kernel as the core describes it, for rows of so many columns."""
        fields = asdict(self)  # type: ignore[call-overload]
        return {"kernel": self._name, **{name: plain(name, value) for name, value in fields.items()}}


class Kernel(_Described):
    """What all kernels share."""

    _core = _bochner.Kernel

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[Any]:
        """The kernel between all rows of X and all rows of Y.

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
        x = rows_of(X, "X")
        y = x if Y is None else rows_of(Y, "Y")
        return self._exact(x.shape[1]).matrix(*same_dtype(x, y))


K = TypeVar("K", bound="_Described")


def check_kernel(kernel: Any, base: type[K] = Kernel) -> K:  # type: ignore[assignment]
    """A kernel of which the core knows everything."""
    if not isinstance(kernel, base):
        what = "one" if base is Kernel else "an operator-valued kernel"
        raise TypeError(f"kernel must be {what} of bochner.kernels, got {type(kernel).__name__}")
    instead = "models of scikit-learn take such kernels (SVC, KernelRidge with kernel=\"precomputed\")"
    check_own("kernel", kernel, base, ("__call__",), instead)
    return kernel


def rows_of(X: ArrayLike, name: str) -> Any:
    """Rows as kernels take them: dense or CSR, in float64 or float32."""
    return check_array(X, dtype=[np.float64, np.float32], accept_sparse="csr", input_name=name)


class Polynomial(_signatures.PolynomialKernel, Kernel):
    """
    >>> Polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 0.5]])
    array([[25.]])
    """


class Exponential(_signatures.ExponentialKernel, Kernel):
    """
    >>> Exponential()([[1.0, 0.0]], [[0.0, 5.0]])
    array([[1.]])
    """


class Gaussian(_signatures.GaussianKernel, Kernel):
    """
    >>> Gaussian(length_scale=5.0)([[0.0, 0.0], [3.0, 4.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """


class Matern(_signatures.MaternKernel, Kernel):
    """Matern kernel of smoothness nu, as in :class:`sklearn.gaussian_process.kernels.Matern`.

    >>> Matern(nu=0.5)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """


class Laplacian(_signatures.LaplacianKernel, Kernel):
    """
    >>> Laplacian(length_scale=5.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.3679]])
    """


class LowOrder(_signatures.LowOrderKernel, Kernel):
    """Mean over subsets of `order` columns of the Gaussian kernel on those columns: functions that are sums of functions of few
    columns each.

    >>> LowOrder(order=1)([[0.0, 0.0]], [[0.0, 1.0]]).round(4)
    array([[0.8033]])
    """


class Optical(_signatures.OpticalKernel, Kernel):
    """
    >>> Optical()([[1.0, 2.0]], [[3.0, 0.0]])
    array([[54.]])
    """


class Spherical(_signatures.SphericalKernel, Kernel):
    """
    >>> Spherical(degree=2)([[1.0, 0.0]], [[0.0, 1.0]])
    array([[0.25]])
    """


class Compressive(_signatures.CompressiveKernel, Kernel):
    """
    >>> X = [[1.0, 0.0], [0.0, 1.0]]
    >>> bool((abs(Compressive()(X) - Gaussian()(X)) < 1e-15).all())
    True
    """

    def _spec(self, columns: int | None = None) -> dict[str, Any]:
        # How many columns rows have is for the rows to say; no more measurements are made.
        spec = super()._spec()
        measured = spec.pop("compressed_dim")
        _bochner.check("kernels", self._name, json.dumps({"compressed_dim": measured}))
        columns = measured if columns is None else columns
        return spec | {"compression": "orthoprojector", "input_dim": columns, "output_dim": min(measured, columns)}


class OperatorKernel(_Described):
    """What kernels share whose values are matrices, one row and one column per output.

    Examples
    --------
    >>> from bochner.kernels import CurlFree, OperatorKernel
    >>> isinstance(CurlFree(), OperatorKernel)
    True
    """

    _core = _bochner.OperatorKernel

    def _check(self) -> None:
        scales = getattr(self, "length_scale", None)
        if isinstance(scales, (list, tuple, np.ndarray)):
            # As a tuple, so that equal kernels are equal and have one hash.
            object.__setattr__(self, "length_scale", tuple(np.asarray(scales, dtype=np.float64).ravel().tolist()))
        super()._check()

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The kernel between all rows of X and all rows of Y, as in :class:`Kernel`.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y, n_outputs, n_outputs)
            A matrix for every pair of rows.
        """
        x = check_array(X, dtype=np.float64, input_name="X")
        y = x if Y is None else check_array(Y, dtype=np.float64, input_name="Y")
        return self._exact().matrix(x, y)


@dataclass(frozen=True)
class Decomposable(OperatorKernel):
    """``k(x, y) A``: a scalar kernel times a matrix that says how outputs are related.

    Parameters
    ----------
    A : array-like of shape (n_outputs, n_outputs)
        A positive semi-definite matrix.
    base : Gaussian, Laplacian or Matern, default=Gaussian()
        The scalar kernel.

    Examples
    --------
    >>> from bochner.kernels import Decomposable
    >>> Decomposable([[2.0, 1.0], [1.0, 2.0]])([[0.0]])
    array([[[[2., 1.],
             [1., 2.]]]])
    """

    A: Any
    base: Kernel = Gaussian()  # noqa: RUF009
    _name = "decomposable"

    def __post_init__(self) -> None:
        matrix = check_array(self.A, dtype=np.float64, input_name="A")
        # As tuples, so that equal kernels are equal and have one hash.
        object.__setattr__(self, "A", tuple(map(tuple, matrix.tolist())))
        self._check()

    def _spec(self, columns: int | None = None) -> dict[str, Any]:
        return {"kernel": self._name, "base": check_kernel(self.base)._spec(), "matrix": [list(row) for row in self.A]}


class CurlFree(_signatures.CurlFreeKernel, OperatorKernel):
    """
    >>> CurlFree(length_scale=2.0)([[1.0, 0.0]]) + 0.0
    array([[[[0.25, 0.  ],
             [0.  , 0.25]]]])
    """


class DivergenceFree(_signatures.DivergenceFreeKernel, OperatorKernel):
    """Kernel of flows without sources: second derivatives of a scalar kernel less their trace.

    >>> DivergenceFree()([[1.0, 0.0, 0.0]])[0, 0]
    array([[2., 0., 0.],
           [0., 2., 0.],
           [0., 0., 2.]])
    """


class Helmholtz(_signatures.HelmholtzKernel, OperatorKernel):
    """``curl_free`` times the curl-free and ``1 - curl_free`` times the divergence-free kernel.

    >>> Helmholtz(curl_free=0.5)([[1.0, 0.0]])[0, 0]
    array([[1., 0.],
           [0., 1.]])
    """


def _declared(name: str, about: str) -> type[Kernel]:
    """The class of a kernel that needs nothing besides what the catalogue says of it."""
    return type(name, (getattr(_signatures, f"{name}Kernel"), Kernel), {"__doc__": about, "__module__": __name__})


# A kernel that is new in the catalogue has a class without a line here.
_ABOUT = {camel(entry["name"]): entry["about"] for entry in CATALOGUE["kernels"]}
_NEW = {name: _declared(name, about) for name, about in _ABOUT.items() if name not in __all__}
globals().update(_NEW)
__all__ += sorted(_NEW)


def __getattr__(name: str) -> Any:
    if name == "DivFree":
        warnings.warn("DivFree is called DivergenceFree; the old name goes in version 0.3", FutureWarning, stacklevel=2)
        return DivergenceFree
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@documented
def graph_outputs(weights: ArrayLike) -> NDArray[np.float64]:
    """The matrix that makes neighbours in a graph of outputs alike: the pseudo-inverse of the graph's Laplacian.

    Parameters
    ----------
    weights : array-like of shape (n_outputs, n_outputs)
        Non-negative, symmetric weights of the edges.

    Returns
    -------
    A : ndarray of shape (n_outputs, n_outputs)
        A matrix for :class:`Decomposable` and :class:`bochner.OperatorRidge`.

    >>> graph_outputs([[0.0, 1.0], [1.0, 0.0]]).round(3)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    return _bochner.graph_outputs(check_array(weights, dtype=np.float64, input_name="weights"))
