"""Which map and how many features reach an error, from variances on a sample of the rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bochner import _bochner
from bochner._base import sample
from bochner._catalogue import documented
from bochner._checks import RandomState, count, seed_of
from bochner.kernels import Gaussian, Kernel, check_kernel, rows_of

__all__ = ["Choice", "Plan", "plan"]


@dataclass(frozen=True)
class Choice:
    """A map that reaches the error.

    Attributes
    ----------
    map : str
        Name of the map.
    n_components : int
        Features it takes.
    predicted_error : float
        Relative Frobenius error that closed-form variances and biases predict.
    closed_form : bool
        Whether the prediction is a closed form; a leading-order figure otherwise.
    seconds : float
        Time to transform all rows, from a short measurement.
    map_bytes : int
        Memory of the weights, about.
    feature_bytes : int
        Memory of the features of all rows, where they are kept.
    spec : dict
        The map's description, as model files store it.
    """

    map: str
    n_components: int
    predicted_error: float
    closed_form: bool
    seconds: float
    map_bytes: int
    feature_bytes: int
    spec: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Plan:
    """Maps that reach an error, fastest first, and those that do not.

    Attributes
    ----------
    choices : list of Choice
        Those that do.
    shortfalls : dict of str to str
        Why the others do not, by name.
    measured_error : float or None
        Root mean square error over draws of the first choice.
    """

    choices: list[Choice]
    shortfalls: dict[str, str]
    measured_error: float | None

    @property
    def best(self) -> Choice:
        """The fastest map that reaches the error."""
        if not self.choices:
            raise ValueError("no map reaches the error; ask for a larger one or allow more features")
        return self.choices[0]

    def __str__(self) -> str:
        lines = [f"{'map':24} {'features':>9} {'error':>8} {'time':>10}  prediction"]
        for choice in self.choices:
            how = "closed form" if choice.closed_form else "approximate"
            error = f"{100 * choice.predicted_error:.2f} %"
            lines.append(f"{choice.map:24} {choice.n_components:>9} {error:>8} {choice.seconds:>8.3g} s  {how}")
        if self.measured_error is not None:
            lines.append(f"measured with {self.choices[0].map}: {100 * self.measured_error:.2f} %")
        lines += [f"{name}: {reason}" for name, reason in self.shortfalls.items()]
        return "\n".join(lines)


@documented
def plan(
    X: ArrayLike,
    kernel: Kernel | None = None,
    *,
    error: float = 0.05,
    max_features: int = 131_072,
    sample_rows: int = 1000,
    n_draws: int = 5,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Plan:
    """Rank the maps that estimate a kernel by the time they take to reach an error on these rows.

    Errors are predicted from closed-form variances and biases on a sample of the rows; nothing is drawn but for short
    timings, and to verify the fastest map.

    Parameters
    ----------
    kernel : Kernel, default=None
        One of :mod:`bochner.kernels`; the Gaussian kernel of unit length scale if not given.
    error : float, default=0.05
        Relative Frobenius error of the kernel matrix to reach.
    max_features : int, default=131072
        Most features a map may have.
    sample_rows : int, default=1000
        Rows in the sample.
    n_draws : int, default=5
        Draws by which the fastest map is verified; 0 for none.

    Returns
    -------
    plan : Plan
        The maps, fastest first.

    >>> X = np.random.default_rng(0).normal(size=(200, 16)) / 4
    >>> found = plan(X, Polynomial(degree=3, coef0=1.0), error=0.1, random_state=0)
    >>> found.best.predicted_error <= 0.1
    True
    """
    rows = rows_of(X, "X")
    exact = (Gaussian() if kernel is None else check_kernel(kernel))._exact(rows.shape[1])
    seed = seed_of(random_state)
    told = (float(error), rows.shape[0], count("max_features", max_features), count("n_draws", n_draws, 0), seed, n_jobs)
    found = json.loads(_bochner.plan(exact, sample(rows, seed, sample_rows), *told))
    verified = found["verified"]
    return Plan(
        choices=[Choice(**choice) for choice in found["choices"]],
        shortfalls={entry["map"]: entry["reason"] for entry in found["shortfalls"]},
        measured_error=None if verified is None else float(np.sqrt(np.mean(np.square(verified)))),
    )
