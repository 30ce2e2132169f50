"""Exact kernels: objects called on rows, ``k(X, Y=None)``, returning the kernel matrix.

They are values: equal parameters make equal kernels, and they pickle, print and hash as such. Wherever scikit-learn
takes a kernel function (``SVC(kernel=k)``, ``pairwise_kernels``), one of these fits.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from bochner import _bochner
from bochner._checks import plain, same_dtype

__all__ = [
    "CurlFree",
    "Decomposable",
    "DivFree",
    "Exponential",
    "Gaussian",
    "Helmholtz",
    "Kernel",
    "Laplacian",
    "Matern",
    "OperatorKernel",
    "Optical",
    "Polynomial",
    "graph_outputs",
]


@dataclass(frozen=True)
class Kernel:
    """What all kernels share."""

    _name: ClassVar[str]

    def __post_init__(self) -> None:
        self._exact()

    def _exact(self) -> _bochner.Kernel:
        fields = {name: plain(name, value) for name, value in asdict(self).items()}
        return _bochner.Kernel(json.dumps({"kernel": self._name, **fields}))

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
        return self._exact().matrix(*same_dtype(x, y))


def rows_of(X: ArrayLike, name: str) -> Any:
    """Rows as kernels take them: dense or CSR, in float64 or float32."""
    return check_array(X, dtype=[np.float64, np.float32], accept_sparse="csr", input_name=name)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``(gamma <x, y> + coef0)^degree``.

    Parameters
    ----------
    degree : int, default=2
        Exponent.
    gamma : float, default=1.0
        Factor of the inner product.
    coef0 : float, default=0.0
        Constant inside the power.

    Examples
    --------
    >>> from bochner.kernels import Polynomial
    >>> Polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 0.5]])
    array([[25.]])
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 0.0
    _name = "polynomial"


@dataclass(frozen=True)
class Exponential(Kernel):
    """``exp(<x, y> / length_scale^2)``.

    Parameters
    ----------
    length_scale : float, default=1.0
        What rows are divided by.

    Examples
    --------
    >>> from bochner.kernels import Exponential
    >>> Exponential()([[1.0, 0.0]], [[0.0, 5.0]])
    array([[1.]])
    """

    length_scale: float = 1.0
    _name = "exponential"


@dataclass(frozen=True)
class Gaussian(Kernel):
    """``exp(-|x - y|^2 / (2 length_scale^2))``.

    Parameters
    ----------
    length_scale : float, default=1.0
        Distance over which the kernel falls off.

    Examples
    --------
    >>> from bochner.kernels import Gaussian
    >>> Gaussian(length_scale=5.0)([[0.0, 0.0], [3.0, 4.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    length_scale: float = 1.0
    _name = "gaussian"


@dataclass(frozen=True)
class Matern(Kernel):
    """Matern kernel of smoothness nu, as in :class:`sklearn.gaussian_process.kernels.Matern`.

    Parameters
    ----------
    nu : float, default=1.5
        Smoothness: 0.5 is the Laplacian kernel, infinity would be the Gaussian one.
    length_scale : float, default=1.0
        Distance over which the kernel falls off.

    Examples
    --------
    >>> from bochner.kernels import Matern
    >>> Matern(nu=0.5)([[0.0]], [[1.0]]).round(4)
    array([[0.3679]])
    """

    nu: float = 1.5
    length_scale: float = 1.0
    _name = "matern"


@dataclass(frozen=True)
class Laplacian(Kernel):
    """``exp(-|x - y| / length_scale)``.

    Parameters
    ----------
    length_scale : float, default=1.0
        Distance over which the kernel falls off.
    norm : {1, 2}, default=2
        Which norm: 2 is the Euclidean one, 1 the sum of absolute values.

    Examples
    --------
    >>> from bochner.kernels import Laplacian
    >>> Laplacian(length_scale=5.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.3679]])
    """

    length_scale: float = 1.0
    norm: int = 2
    _name = "laplacian"


@dataclass(frozen=True)
class Optical(Kernel):
    """Limit kernel of optical features, ``E |u x|^exponent |u y|^exponent`` over complex normal vectors u.

    Parameters
    ----------
    exponent : float, default=2.0
        Any positive number.
    bias : float, default=0.0
        Square of a constant coordinate appended to all rows.

    Examples
    --------
    >>> from bochner.kernels import Optical
    >>> Optical()([[1.0, 2.0]], [[3.0, 0.0]])
    array([[54.]])
    """

    exponent: float = 2.0
    bias: float = 0.0
    _name = "optical"


@dataclass(frozen=True)
class OperatorKernel:
    """What kernels share whose values are matrices, one row and one column per output.

    Examples
    --------
    >>> from bochner.kernels import CurlFree, OperatorKernel
    >>> isinstance(CurlFree(), OperatorKernel)
    True
    """

    _name: ClassVar[str]

    def __post_init__(self) -> None:
        self._exact()

    def _spec(self) -> dict[str, Any]:
        return {"kernel": self._name, **{name: plain(name, value) for name, value in asdict(self).items()}}

    def _exact(self) -> _bochner.OperatorKernel:
        return _bochner.OperatorKernel(json.dumps(self._spec()))

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> NDArray[np.float64]:
        """The kernel between all rows of X and all rows of Y.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Rows.
        Y : array-like of shape (n_samples_Y, n_features), default=None
            Other rows; the rows of X if not given.

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
        super().__post_init__()

    def _spec(self) -> dict[str, Any]:
        base = {name: plain(name, value) for name, value in asdict(self.base).items()}
        matrix = [list(row) for row in self.A]
        return {"kernel": self._name, "base": {"kernel": self.base._name, **base}, "matrix": matrix}


@dataclass(frozen=True)
class CurlFree(OperatorKernel):
    """Kernel of gradients of potentials: minus the second derivatives of a Gaussian kernel.

    Parameters
    ----------
    length_scale : float, default=1.0
        Distance over which the Gaussian kernel falls off.

    Examples
    --------
    >>> from bochner.kernels import CurlFree
    >>> CurlFree(length_scale=2.0)([[1.0, 0.0]]) + 0.0
    array([[[[0.25, 0.  ],
             [0.  , 0.25]]]])
    """

    length_scale: float = 1.0
    _name = "curl_free"


@dataclass(frozen=True)
class DivFree(OperatorKernel):
    """Kernel of flows without sources: second derivatives of a Gaussian kernel less their trace.

    Parameters
    ----------
    length_scale : float, default=1.0
        Distance over which the Gaussian kernel falls off.

    Examples
    --------
    >>> from bochner.kernels import DivFree
    >>> DivFree()([[1.0, 0.0, 0.0]])[0, 0]
    array([[2., 0., 0.],
           [0., 2., 0.],
           [0., 0., 2.]])
    """

    length_scale: float = 1.0
    _name = "div_free"


@dataclass(frozen=True)
class Helmholtz(OperatorKernel):
    """``curl_free`` times the curl-free and ``1 - curl_free`` times the divergence-free kernel.

    Parameters
    ----------
    length_scale : float, default=1.0
        Distance over which the Gaussian kernel falls off.
    curl_free : float, default=0.5
        Weight of the curl-free kernel, from 0 to 1.

    Examples
    --------
    >>> from bochner.kernels import Helmholtz
    >>> Helmholtz(curl_free=0.5)([[1.0, 0.0]])[0, 0]
    array([[1., 0.],
           [0., 1.]])
    """

    length_scale: float = 1.0
    curl_free: float = 0.5
    _name = "helmholtz"


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

    Examples
    --------
    >>> from bochner.kernels import graph_outputs
    >>> graph_outputs([[0.0, 1.0], [1.0, 0.0]]).round(3)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    return _bochner.graph_outputs(check_array(weights, dtype=np.float64, input_name="weights"))
