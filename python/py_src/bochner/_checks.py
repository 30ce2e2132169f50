"""What enters through the door: arguments, seeds and rows, checked as scikit-learn does."""

from __future__ import annotations

import math
import numbers
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import validate_data

from bochner._bochner import BusyError, NonFiniteError

RandomState = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None


def seed_of(random_state: RandomState) -> int:
    """A 64-bit seed: an integer itself, or a draw from a generator."""
    if isinstance(random_state, numbers.Integral):
        seed = int(random_state)
        if not 0 <= seed < 1 << 64:
            raise ValueError(f"random_state must be an integer from 0 to 2**64 - 1, got {seed}")
        return seed
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 64, dtype=np.uint64))
    return int(check_random_state(random_state).randint(1 << 64, dtype=np.uint64))


def count(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least` that the core can count to."""
    if not isinstance(value, numbers.Integral) or not least <= int(value) < 1 << 63:
        raise ValueError(f"{name} must be a whole number from {least} to 2**63 - 1, got {value!r}")
    return int(value)


def plain(name: str, value: Any) -> Any:
    """An argument as JSON can hold it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(name, item) for item in value]
    if isinstance(value, dict):
        return {key: plain(name, item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{name} must be a number, a string or a sequence of numbers, got {type(value).__name__}")


def check_rows(estimator: BaseEstimator, X: ArrayLike, *, reset: bool, **options: Any) -> Any:
    """Rows in float64 or float32, dense or CSR; other numbers become float64.

    Rows met after fitting are searched for NaN by the core while it reads them anyway (:func:`explained`).
    """
    checks = {"dtype": [np.float64, np.float32], "accept_sparse": "csr", "ensure_all_finite": reset, **options}
    return validate_data(estimator, X, reset=reset, **checks)


@contextmanager
def explained(estimator: BaseEstimator, *arrays: tuple[str, Any]) -> Iterator[None]:
    """Lets scikit-learn word the complaint about a NaN that the core has met."""
    try:
        yield
    except NonFiniteError:
        for name, array in arrays:
            assert_all_finite(array, estimator_name=type(estimator).__name__, input_name=name)
        raise


def is_sparse(X: Any) -> bool:
    """Whether `check_rows` has let a sparse matrix through."""
    return not isinstance(X, np.ndarray)


def same_dtype(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both in the wider dtype of the two."""
    dtype = np.result_type(X.dtype, Y.dtype)
    return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)


def forget(estimator: BaseEstimator) -> None:
    """Makes an estimator unfitted, so that an interrupted fit does not leave half of an older one behind."""
    for name in [name for name in list(vars(estimator)) if name.endswith("_") and not name.startswith("__")]:
        delattr(estimator, name)


# The threads that are changing estimators, by the numbers of these. Nothing of it is in an estimator, which may be pickled
# or copied at any time.
_CHANGING: dict[int, threading.Thread] = {}


@contextmanager
def changing(estimator: BaseEstimator, call: str) -> Iterator[None]:
    """Refuses a call that changes an estimator while another thread changes it: the result would be made of parts of both."""
    own = threading.current_thread()
    other = _CHANGING.setdefault(id(estimator), own)
    # A thread that has ended, or was interrupted on its way in here, changes nothing any more.
    if other is not own and other.is_alive():
        name = type(estimator).__name__
        raise BusyError(
            f"{name}.{call} was called while another thread ({other.name}) fits the same {name}; let threads take turns "
            "with a threading.Lock, or give each a clone of its own"
        )
    _CHANGING[id(estimator)] = own
    try:
        yield
    finally:
        _CHANGING.pop(id(estimator), None)


def check_own(name: str, value: Any, base: type, unused: tuple[str, ...], instead: str) -> None:
    """Refuses a subclass with a method of its own that whoever is given the value would not call.

    The core is told what the class of this library describes: what Python adds to that, it cannot see.
    """
    for method in unused:
        own = getattr(type(value), method, None)
        if own is not getattr(base, method, None) and not getattr(own, "__module__", "").startswith("bochner."):
            raise TypeError(
                f"{name} must not have a method {method} of its own, which would not be called, but {type(value).__name__} "
                f"has one; {instead}"
            )
