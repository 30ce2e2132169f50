"""The planner keeps its word."""

import numpy as np
import pytest

from bochner import plan
from bochner.kernels import Exponential, Gaussian, Optical, Polynomial


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(4).normal(size=(300, 12))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("kernel", [Gaussian(), Polynomial(degree=3, coef0=1.0), Exponential(), Optical(exponent=2.0)])
def test_choices_reach_the_error_and_are_sorted_by_time(rows, kernel):
    found = plan(rows, kernel, error=0.1, n_draws=0, random_state=0)
    assert found.choices
    assert all(choice.predicted_error <= 0.1 for choice in found.choices)
    assert [c.seconds for c in found.choices] == sorted(c.seconds for c in found.choices)
    assert found.measured_error is None


def test_the_winner_measures_what_was_predicted(rows):
    found = plan(rows, Polynomial(degree=3, coef0=1.0), error=0.1, n_draws=20, random_state=0)
    # Fifteen percent is what the planner promises.
    assert abs(found.measured_error / found.best.predicted_error - 1) < 0.15


def test_what_cannot_be_reached_is_explained(rows):
    found = plan(rows, Gaussian(), error=1e-4, max_features=64)
    assert not found.choices and found.shortfalls
    with pytest.raises(ValueError, match="no map reaches"):
        found.best


def test_bad_errors_are_refused(rows):
    with pytest.raises(ValueError, match="error"):
        plan(rows, error=0.0)
