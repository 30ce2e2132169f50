"""How far an estimate is from what it estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from bochner import _bochner

__all__ = ["relative_frobenius_error"]


def relative_frobenius_error(K: ArrayLike, K_hat: ArrayLike) -> float:
    """Distance of an estimated matrix from the exact one, ``|K - K_hat| / |K|`` in Frobenius norms.

    Parameters
    ----------
    K : array-like of shape (n, m)
        Exact matrix.
    K_hat : array-like of shape (n, m)
        Its estimate; of complex numbers the real part counts.

    Returns
    -------
    error : float
        0 where nothing differs.

    Examples
    --------
    >>> from bochner.metrics import relative_frobenius_error
    >>> relative_frobenius_error([[3.0, 0.0], [0.0, 4.0]], [[3.0, 1.0], [2.0, 2.0]])
    0.6
    """
    exact = check_array(K, dtype=np.float64, input_name="K")
    estimate = check_array(np.asarray(K_hat).real, dtype=np.float64, input_name="K_hat")
    return _bochner.relative_frobenius_error(exact, estimate)
