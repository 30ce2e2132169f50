"""Pictures of what features and models do, drawn with matplotlib (``pip install 'bochner[plot]'``).

Every function draws into the axes it is given, or into new ones, and returns them: titles, other labels and files are
matplotlib's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import check_array, check_consistent_length

from bochner._base import FeatureTransformer
from bochner._catalogue import documented
from bochner.metrics import relative_frobenius_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calibration", "kernel_error", "posterior", "vector_field"]


@documented
def kernel_error(
    features: FeatureTransformer | Mapping[str, FeatureTransformer],
    X: ArrayLike,
    n_components: Iterable[int] = (64, 128, 256, 512, 1024, 2048),
    *,
    n_draws: int = 5,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Error of the estimated kernel matrix against the number of features.

    Points are root mean squares of the relative Frobenius error over draws. A dashed line is what the closed-form
    variance predicts, for maps that have one; points above it show a bias.

    Parameters
    ----------
    features : transformer or dict of str to transformer
        A feature map, or several by the name they get in the legend. They are cloned, not changed.
    X : array-like of shape (n_samples, n_features)
        Rows; some hundreds are enough, and kernel matrices of all pairs are made.
    n_components : iterable of int, default=(64, 128, 256, 512, 1024, 2048)
        Numbers of features.
    n_draws : int, default=5
        Draws of every map.
    random_state : int, default=0
        Seed of the first draw; the others follow.

    >>> from bochner import plot
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> ax = plot.kernel_error(FourierFeatures(length_scale=2.0), X, (32, 128, 512))
    >>> ax.get_xlabel()
    'number of features D'
    """
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}")
    ax = _axes(ax)
    maps = {type(features).__name__: features} if isinstance(features, FeatureTransformer) else features
    budgets = list(n_components)
    for name, transformer in maps.items():
        columns, measured, predicted = [], [], []
        K: Any = None
        scale: Any = None
        for budget in budgets:
            squares = []
            for seed in range(random_state, random_state + n_draws):
                drawn = clone(transformer).set_params(n_components=budget, random_state=seed).fit(X)
                Z = np.asarray(drawn.transform(X))
                # Of what a kernel depends on, only a median distance may differ from draw to draw.
                if K is None or getattr(drawn, "length_scale_", None) != scale:
                    K, scale = drawn.exact_kernel(X), getattr(drawn, "length_scale_", None)
                squares.append(relative_frobenius_error(K, Z @ Z.conj().T) ** 2)
            columns.append(Z.shape[1])
            measured.append(np.sqrt(np.mean(squares)))
            predicted.append(_predicted_error(drawn, X, K))
        (line,) = ax.loglog(columns, measured, "o", label=name)
        if None not in predicted:
            ax.loglog(columns, predicted, "--", color=line.get_color(), label=f"{name}, predicted")
        else:
            line.set_linestyle(":")
    ax.set(xlabel="number of features D", ylabel="relative Frobenius error of the kernel matrix")
    ax.legend()
    return ax


@documented
def calibration(model: Any, X: ArrayLike, y: ArrayLike, *, n_bins: int = 10, ax: Axes | None = None) -> Axes:
    """How often a model is right against how sure it says it is.

    For classifiers, observed frequency against predicted probability: of the second class if there are two, of the
    predicted class if there are more. For regressors, the share of targets inside central intervals against the
    probability of these intervals. Bars reach as far as 95 % of the samples of this size would from a calibrated model.

    Parameters
    ----------
    model : classifier or regressor
        A fitted model with ``predict_proba``, or with ``predict(X, return_std=True)``; to the variance of the latter
        `observation_variance_` is added where the model has it.
    X : array-like of shape (n_samples, n_features)
        Rows the model was not fitted to.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    n_bins : int, default=10
        Bins of the probabilities, of equal width; empty ones are left out.

    >>> from bochner import FeatureGPClassifier, plot
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3
    >>> model = FeatureGPClassifier(FourierFeatures(64, random_state=0), random_state=0).fit(X[:200], y[:200])
    >>> ax = plot.calibration(model, X[200:], y[200:])
    >>> ax.get_xlabel()
    'predicted probability of True'
    """
    check_consistent_length(X, y)
    if is_classifier(model):
        probability, observed, spread, labels = _reliability(model, X, np.asarray(y), n_bins)
    elif is_regressor(model):
        probability, observed, spread, labels = _coverage(model, X, np.asarray(y), n_bins)
    else:
        raise TypeError(f"model must be a classifier or a regressor, got {type(model).__name__}")
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, label="calibrated")
    bars: dict[str, Any] = {"yerr": 1.96 * spread, "fmt": "none", "ecolor": "0.6", "capsize": 3}
    ax.errorbar(probability, probability, label="95 % of samples of this size", **bars)
    ax.plot(probability, observed, "o-", label=type(model).__name__)
    ax.set(xlabel=labels[0], ylabel=labels[1], xlim=(0, 1), ylim=(0, 1), aspect="equal")
    # Few models are so unsure of what they know that they reach this corner.
    ax.legend(loc="upper left")
    return ax


@documented
def posterior(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    n_points: int = 300,
    n_std: float = 2.0,
    n_samples: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Mean and spread of a Gaussian process over one input.

    Parameters
    ----------
    model : regressor
        A fitted model of one target with ``predict(X, return_std=True)``.
    X : array-like of shape (n_samples, 1)
        Rows, which say how far to draw: a tenth of their range beyond them on both sides.
    y : array-like of shape (n_samples,), default=None
        Targets of the rows, drawn as points if given.
    n_points : int, default=300
        Points of the curves.
    n_std : float, default=2.0
        Half the width of the band, in standard deviations of the process; noise is not included.
    n_samples : int, default=0
        Functions to draw from the posterior, by the model's ``sample_y``.

    >>> from bochner import FeatureGPRegressor, plot
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> model = FeatureGPRegressor(FourierFeatures(128, random_state=0), noise=0.01).fit(X, np.sin(X[:, 0]))
    >>> ax = plot.posterior(model, X, np.sin(X[:, 0]), n_samples=3)
    >>> len(ax.lines)
    5
    """
    rows = _rows_with(X, 1, "a posterior is drawn over one input")
    low, high = float(rows.min()), float(rows.max())
    margin = 0.1 * (high - low)
    grid = np.linspace(low - margin, high + margin, n_points)
    points = _like(X, grid[:, np.newaxis])
    mean, std = model.predict(points, return_std=True)
    if mean.ndim != 1:
        raise ValueError(f"a posterior of one target is drawn, the model has {mean.shape[1]}")
    ax = _axes(ax)
    (line,) = ax.plot(grid, mean, label="mean")
    band = f"± {n_std:g} standard deviations"
    ax.fill_between(grid, mean - n_std * std, mean + n_std * std, color=line.get_color(), alpha=0.2, label=band)
    if n_samples:
        drawn = model.sample_y(points, n_samples)
        curves = ax.plot(grid, drawn, color=line.get_color(), linewidth=0.7, alpha=0.7)
        curves[0].set_label("samples" if n_samples > 1 else "sample")
    if y is not None:
        targets = np.asarray(y)
        check_consistent_length(rows, targets)
        ax.plot(rows[:, 0], targets, "k.", markersize=4, label="observations")
    ax.set(xlabel=_names(X, ["x"])[0], ylabel=str(getattr(y, "name", None) or "y"))
    ax.legend()
    return ax


@documented
def vector_field(
    model: Any, X: ArrayLike, y: ArrayLike | None = None, *, n_points: int = 20, ax: Axes | None = None
) -> Axes:
    """Arrows of a fitted field of two inputs and two outputs.

    Parameters
    ----------
    model : regressor
        A fitted model of two targets, such as :class:`bochner.OperatorRidge`.
    X : array-like of shape (n_samples, 2)
        Rows, which say how far to draw.
    y : array-like of shape (n_samples, 2), default=None
        Observed vectors at the rows, drawn in black at the same scale if given.
    n_points : int, default=20
        Arrows along each axis.

    >>> from bochner import OperatorRidge, plot
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(100, 2))
    >>> y = np.c_[-X[:, 1], X[:, 0]]
    >>> model = OperatorRidge("divergence_free", length_scale=2.0, alpha=1e-3, random_state=0).fit(X, y)
    >>> ax = plot.vector_field(model, X, y, n_points=10)
    >>> len(ax.collections[0].U)
    100
    """
    rows = _rows_with(X, 2, "a vector field is drawn over two inputs")
    low, high = rows.min(axis=0), rows.max(axis=0)
    axes = [np.linspace(low[i], high[i], n_points) for i in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    arrows = np.asarray(model.predict(_like(X, grid)))
    if arrows.ndim != 2 or arrows.shape[1] != 2:
        raise ValueError(f"a vector field has two outputs, predictions have shape {arrows.shape}")
    ax = _axes(ax)
    # One scale for both sets of arrows: the longest one fitted spans one and a half steps of the grid.
    step = float(np.max(high - low)) / max(1, n_points - 1)
    longest = float(np.linalg.norm(arrows, axis=1).max())
    scale = longest / (1.5 * step) if longest > 0 and step > 0 else 1.0
    style: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": scale}
    ax.quiver(*grid.T, *arrows.T, color="C0", label="fitted", **style)
    if y is not None:
        observed = _rows_with(y, 2, "observed vectors have two components")
        check_consistent_length(rows, observed)
        ax.quiver(*rows.T, *observed.T, color="k", width=0.003, label="observed", **style)
        ax.legend(loc="upper right")
    x_name, y_name = _names(X, ["x₁", "x₂"])
    ax.set(xlabel=x_name, ylabel=y_name, aspect="equal")
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("bochner.plot needs matplotlib: pip install 'bochner[plot]'") from error
    return pyplot.subplots(layout="constrained")[1]


def _predicted_error(drawn: FeatureTransformer, X: ArrayLike, K: NDArray[Any]) -> float | None:
    """Root of the mean squared error of an unbiased estimate; None without a closed form."""
    try:
        variance = drawn.variance(X)
    except ValueError:
        return None
    return float(np.sqrt(variance.sum()) / np.linalg.norm(K))


Curve = tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[str, str]]


def _reliability(model: Any, X: ArrayLike, y: NDArray[Any], n_bins: int) -> Curve:
    """Mean probability, observed frequency and the latter's standard deviation in every bin that has rows."""
    p = np.asarray(model.predict_proba(X), dtype=np.float64)
    if len(model.classes_) == 2:
        probability, right = p[:, 1], y == model.classes_[1]
        labels = f"predicted probability of {model.classes_[1]}", f"observed frequency of {model.classes_[1]}"
    else:
        probability, right = p.max(axis=1), y == model.classes_[p.argmax(axis=1)]
        labels = "probability of the predicted class", "share of right predictions"
    bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    seen = counts > 0

    def mean(values: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(bins, weights=values, minlength=n_bins)[seen] / counts[seen]

    # A sum of independent coins, each with its own probability.
    spread = np.sqrt(mean(probability * (1 - probability)) / counts[seen])
    return mean(probability), mean(right), spread, labels


def _coverage(model: Any, X: ArrayLike, y: NDArray[Any], n_bins: int) -> Curve:
    """Probabilities of central intervals, the share of targets inside, and its standard deviation."""
    mean, std = model.predict(X, return_std=True)
    total = np.sqrt(np.square(std) + np.asarray(getattr(model, "observation_variance_", 0.0)))
    # The probability of the smallest central interval that holds the target: uniform if calibrated.
    needed = erf(np.abs(y.reshape(mean.shape) - mean) / total / np.sqrt(2)).ravel()
    levels = np.linspace(0, 1, n_bins + 1)[1:-1]
    inside = np.mean(needed[:, np.newaxis] <= levels, axis=0)
    labels = "probability of a central interval", "share of targets inside"
    return levels, inside, np.sqrt(levels * (1 - levels) / len(y)), labels


def _rows_with(X: ArrayLike, columns: int, what: str) -> NDArray[np.float64]:
    rows = check_array(X, dtype=np.float64, input_name="X")
    if rows.shape[1] != columns:
        raise ValueError(f"{what}, got rows with {rows.shape[1]} columns")
    return np.asarray(rows)


def _names(X: Any, otherwise: list[str]) -> list[str]:
    return [str(name) for name in getattr(X, "columns", otherwise)]


def _like(X: Any, grid: NDArray[np.float64]) -> Any:
    """The grid as a frame where X is one: models that know names of columns look for them."""
    if not hasattr(X, "columns"):
        return grid
    return type(X)({name: grid[:, i] for i, name in enumerate(X.columns)})
