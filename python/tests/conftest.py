"""Shared rows."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

# Without it scikit-learn leaves out its checks of array API input; read when scipy is first imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Plots are drawn without a screen.
os.environ["MPLBACKEND"] = "Agg"


def the_program():
    """The command line, which the Rust tests have built before these run."""
    root = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
    name = "bochner.exe" if sys.platform == "win32" else "bochner"
    path = Path(os.environ.get("BOCHNER_PROGRAM", root / "debug" / name)).absolute()
    if not path.exists():
        pytest.fail(f"{path} is not there: run `cargo build`, or set BOCHNER_PROGRAM")
    return path


@pytest.fixture
def rng():
    return np.random.default_rng(20260)


@pytest.fixture
def rows(rng):
    """Rows at unit scale, in float64."""
    return rng.normal(size=(200, 7)) / np.sqrt(7)
