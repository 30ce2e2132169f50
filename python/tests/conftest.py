"""Shared rows."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.fixture
def rows(rng):
    """Rows at unit scale, in float64."""
    return rng.normal(size=(200, 7)) / np.sqrt(7)
