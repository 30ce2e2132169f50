"""Shared rows."""

import os

import numpy as np
import pytest

# Without it scikit-learn leaves out its checks of array API input; read when scipy is first imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Plots are drawn without a screen.
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.fixture
def rows(rng):
    """Rows at unit scale, in float64."""
    return rng.normal(size=(200, 7)) / np.sqrt(7)
