"""What the tests of the doors to torch and JAX share: fitted features of every map, and how near draws must be."""

import re
from pathlib import Path

import numpy as np
from bochner import *  # noqa: F403
from bochner._features import CLASSES
from catalogue import FEATURES, OTHER_FEATURES
from sklearn.base import clone

METRIC = np.linalg.inv(np.array([[2.0, 0.0, 0.0, 0.0], [0.5, 1.5, 0.0, 0.0], [0.0, 0.3, 1.0, 0.0], [0.2, 0.0, 0.1, 1.2]]))
SCALES = [1.0, 2.0, 0.5, 1.5]

# Steps have no pieces: features of encoded rows, and readings of a camera.
_LISTED = [features for features in [*FEATURES, *OTHER_FEATURES] if getattr(features, "binarize", None) is None]
_MORE = [
    FourierFeatures(16, length_scale=SCALES),
    FourierFeatures(16, length_scale=METRIC),
    FourierFeatures(16, kernel="laplacian", norm=1),
    FourierFeatures(16, order=2),
    PolynomialSketch(1, degree=0),
    PolynomialSketch(17, degree=5, structure="tree", sketch="gaussian", weights="real"),
    PolynomialSketch(16, degree=3, structure="compact", weights="real", sketch="tensor_sketch"),
    PolynomialSketch(16, degree=1, sketch="tensor_sketch", weights="complex"),
    PolynomialSketch(16, degree=3, sketch="tensor_sketch", weights="complex", gamma=0.5),
    PositiveFeatures(16, kind="trigonometric", length_scale=1.5),
    OpticalFeatures(16, exponent=2.0, bias=0.5),
    OpticalFeatures(16, exponent=2.5, projection="structured"),
    OpticalFeatures(16, exponent=4.0, projection="matrix_free"),
    MaclaurinFeatures(33, length_scale=SCALES),
    MaclaurinFeatures(32, length_scale=METRIC),
    MaclaurinFeatures(33, kernel="exponential", length_scale=1.5, weights="real"),
    MaclaurinFeatures(8, length_scale=3.0, sketch="tensor_sketch", weights="complex"),
    LearnedFourierFeatures(16),
]
MAPS = [clone(features).set_params(random_state=3) for features in [*_LISTED, *_MORE]]
NAMES = [f"{i}-{type(features).__name__}" for i, features in enumerate(MAPS)]
assert {type(features) for features in MAPS} == set(CLASSES.values())

ROWS = np.random.default_rng(7).normal(size=(12, 4))


def fitted(features):
    return clone(features).fit(ROWS)


def phase(features):
    """The largest phase of Fourier features of the rows: float32 cannot hold one more exactly than to its last digit."""
    piece = features.map_.pieces()
    piece = piece["pieces"][0] if piece["kind"] == "chain" else piece
    return np.abs(ROWS @ piece["weights"]).max() if piece["kind"] in ("waves", "cosines") else 0.0


def near(found, expected, phase=0.0):
    """Within rounding of the dtype, relative to the longest row of features."""
    single = expected.dtype in (np.float32, np.complex64)
    # Those of kernels with heavy tails are a few digits long.
    bound = max(1e-6, phase * np.finfo(np.float32).eps) if single else 1e-12
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.linalg.norm(found - expected, axis=-1).max() <= bound * np.linalg.norm(expected, axis=-1).max()


def run_guide(of_jax):
    """Runs the blocks of the guide's page about networks that are about JAX, or those that are about torch."""
    page = (Path(__file__).parents[2] / "docs" / "guide" / "networks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) == 5
    names = {}
    for block in blocks:
        if ("import jax" in block) == of_jax:
            exec(block, names)
