"""What is drawn are the numbers that were meant."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from bochner import (
    FeatureGPClassifier,
    FeatureGPRegressor,
    FourierFeatures,
    LocalGPRegressor,
    OperatorRidge,
    PolynomialSketch,
    plot,
)

@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.lines}


class Oracle(ClassifierMixin, BaseEstimator):
    """Says the probabilities in its rows."""

    def __init__(self, classes):
        self.classes_ = np.asarray(classes)

    def predict_proba(self, X):
        return np.asarray(X)


class Normal(RegressorMixin, BaseEstimator):
    """Says that targets are normal, with the standard deviation it was made with."""

    observation_variance_ = 0.09

    def __init__(self, std):
        self.std = std

    def predict(self, X, return_std=False):
        return np.zeros(len(X)), np.full(len(X), self.std)


def test_kernel_errors_are_root_mean_squares_over_draws(rows):
    maps = {"fourier": FourierFeatures(kernel="laplacian"), "sketch": PolynomialSketch(degree=3, weights="complex")}
    ax = plot.kernel_error(maps, rows[:40], (15, 64), n_draws=3, random_state=7)
    drawn = lines(ax)
    # Orthogonal frequencies of the Laplacian kernel have no closed form to be drawn.
    assert set(drawn) == {"fourier", "sketch", "sketch, predicted"}
    for name, columns in [("fourier", [14, 64]), ("sketch", [15, 64])]:
        errors = []
        for budget in (15, 64):
            squares = []
            for seed in (7, 8, 9):
                fitted = maps[name].set_params(n_components=budget, random_state=seed).fit(rows[:40])
                Z, K = fitted.transform(rows[:40]), fitted.exact_kernel(rows[:40])
                squares.append(np.sum(np.real(Z @ Z.conj().T - K) ** 2) / np.sum(K**2))
            errors.append(np.sqrt(np.mean(squares)))
        np.testing.assert_allclose(drawn[name], np.c_[columns, errors], rtol=1e-9)
    predicted = [np.sqrt(fitted.set_params(n_components=D).fit(rows[:40]).variance(rows[:40]).sum()) for D in (15, 64)]
    np.testing.assert_allclose(drawn["sketch, predicted"][:, 1], predicted / np.linalg.norm(K), rtol=1e-9)
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_axes_that_are_given_are_drawn_into(rows):
    _, ax = pyplot.subplots()
    assert plot.kernel_error(FourierFeatures(), rows[:10], [16], n_draws=1, ax=ax) is ax
    assert set(lines(ax)) == {"FourierFeatures", "FourierFeatures, predicted"}
    with pytest.raises(ValueError, match="n_draws must be at least 1, got 0"):
        plot.kernel_error(FourierFeatures(), rows, n_draws=0)


def test_two_classes_are_calibrated_by_the_probability_of_the_second():
    p = np.array([0.02, 0.08, 0.55, 0.55, 1.0])
    y = np.array(["no", "yes", "yes", "no", "yes"])
    ax = plot.calibration(Oracle(["no", "yes"]), np.c_[1 - p, p], y)
    np.testing.assert_allclose(lines(ax)["Oracle"], [[0.05, 0.5], [0.55, 0.5], [1.0, 1.0]])
    assert ax.get_xlabel() == "predicted probability of yes"
    bars = [segment[:, 1] for segment in ax.collections[0].get_segments()]
    spread = 1.96 * np.sqrt([0.02 * 0.98 + 0.08 * 0.92, 2 * 0.55 * 0.45, 0.0]) / [2, 2, 1]
    np.testing.assert_allclose(bars, np.transpose([[0.05, 0.55, 1.0] - spread, [0.05, 0.55, 1.0] + spread]))


def test_more_classes_are_calibrated_by_the_probability_of_the_prediction():
    p = np.array([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.15, 0.75, 0.1], [0.2, 0.6, 0.2]])
    ax = plot.calibration(Oracle([3, 5, 9]), p, [3, 9, 3, 5], n_bins=2)
    np.testing.assert_allclose(lines(ax)["Oracle"], [[0.6875, 0.75]])
    assert ax.get_xlabel() == "probability of the predicted class"


def test_regression_is_calibrated_by_central_intervals(rng):
    # Standard deviation 0.5 in all: 0.4 of the process and 0.3 of the noise.
    y = np.array([-1.0, -0.3, 0.01, 0.2, 0.7])
    ax = plot.calibration(Normal(0.4), np.zeros((5, 1)), y, n_bins=4)
    share = [np.mean(np.abs(y) <= stats.norm.interval(level, scale=0.5)[1]) for level in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(lines(ax)["Normal"], np.c_[[0.25, 0.5, 0.75], share])
    assert share == [0.2, 0.6, 0.6]
    with pytest.raises(TypeError, match="a classifier or a regressor, got FourierFeatures"):
        plot.calibration(FourierFeatures(), np.zeros((5, 1)), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        plot.calibration(Normal(0.4), np.zeros((4, 1)), y)


def test_calibration_of_a_gaussian_process_rises_with_its_probabilities(rng):
    X = rng.uniform(-2, 2, size=(900, 2))
    y = rng.random(900) < 1 / (1 + np.exp(-2 * X[:, 0]))
    model = FeatureGPClassifier(FourierFeatures(32, length_scale=3.0, random_state=0), random_state=0)
    ax = plot.calibration(model.fit(X[:600], y[:600]), X[600:], y[600:], n_bins=5)
    curve = lines(ax)["FeatureGPClassifier"]
    assert len(curve) == 5
    assert np.corrcoef(curve.T)[0, 1] > 0.9


@pytest.fixture
def wave(rng):
    x = np.sort(rng.uniform(-1, 5, size=60))
    return x[:, None], np.sin(x) + 0.1 * rng.normal(size=60)


def test_posteriors_are_predictions_over_the_range_of_the_rows(wave):
    X, y = wave
    model = FeatureGPRegressor(FourierFeatures(64, random_state=0), noise=0.01).fit(X, y)
    ax = plot.posterior(model, X, y, n_points=50, n_std=3, n_samples=2)
    drawn = lines(ax)
    grid = drawn["mean"][:, [0]]
    margin = 0.1 * np.ptp(X)
    np.testing.assert_allclose(grid[[0, -1], 0], [X.min() - margin, X.max() + margin])
    mean, std = model.predict(grid, return_std=True)
    np.testing.assert_array_equal(drawn["mean"][:, 1], mean)
    np.testing.assert_array_equal(drawn["observations"], np.c_[X, y])
    samples = np.stack([line.get_ydata() for line in ax.lines[1:3]], axis=1)
    np.testing.assert_array_equal(samples, model.sample_y(grid, 2))
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    for edge in (mean - 3 * std, mean + 3 * std):
        assert all(np.any(np.all(np.isclose(corners, point), axis=1)) for point in np.c_[grid, edge])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns_become_labels(wave, frame, recwarn):
    X, y = frame({"time (s)": wave[0][:, 0]}), pd.Series(wave[1], name="height (m)")
    ax = plot.posterior(LocalGPRegressor(21, random_state=0).fit(X, y), X, y)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (s)", "height (m)")
    assert not [w for w in recwarn if "feature names" in str(w.message)]


def test_posteriors_have_one_input_and_one_target(wave, rows):
    X, y = wave
    model = LocalGPRegressor(21, random_state=0).fit(X, np.c_[y, y])
    with pytest.raises(ValueError, match="a posterior of one target is drawn, the model has 2"):
        plot.posterior(model, X)
    with pytest.raises(ValueError, match="drawn over one input, got rows with 7 columns"):
        plot.posterior(model, rows)


def test_fields_are_predictions_on_a_grid(rng):
    X = rng.uniform(-1, 1, size=(80, 2)) * [2, 1]
    y = np.c_[-X[:, 1], X[:, 0]]
    model = OperatorRidge("divergence_free", alpha=1e-3, random_state=0).fit(X, y)
    ax = plot.vector_field(model, X, y, n_points=6)
    fitted, observed = ax.collections
    grid = np.c_[fitted.X, fitted.Y]
    assert len(np.unique(grid, axis=0)) == 36
    np.testing.assert_allclose([grid.min(axis=0), grid.max(axis=0)], [X.min(axis=0), X.max(axis=0)])
    np.testing.assert_array_equal(np.c_[fitted.U, fitted.V], model.predict(grid))
    np.testing.assert_array_equal(np.c_[observed.X, observed.Y, observed.U, observed.V], np.c_[X, y])
    assert fitted.scale == observed.scale
    longest = np.linalg.norm(model.predict(grid), axis=1).max()
    assert longest / fitted.scale == pytest.approx(1.5 * np.ptp(X, axis=0).max() / 5)


def test_fields_have_two_inputs_and_two_outputs(rng, rows):
    model = OperatorRidge(random_state=0).fit(rows[:, :2], rows[:, 0])
    with pytest.raises(ValueError, match=r"two outputs, predictions have shape \(400,\)"):
        plot.vector_field(model, rows[:, :2])
    with pytest.raises(ValueError, match="drawn over two inputs, got rows with 7 columns"):
        plot.vector_field(model, rows)


def test_without_matplotlib_the_package_works_and_plots_say_what_to_install():
    script = """
import sys
sys.modules["matplotlib"] = None
from bochner import FourierFeatures, plot
try:
    plot.kernel_error(FourierFeatures(), [[1.0], [2.0]])
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "bochner.plot needs matplotlib: pip install 'bochner[plot]'"


def test_matplotlib_is_not_imported_before_something_is_drawn():
    script = "import bochner, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
