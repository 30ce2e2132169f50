"""Model files that earlier versions have written load, and predict what those versions predicted."""

import json
from pathlib import Path

import bochner
import numpy as np
import pandas as pd
import pytest

GOLDEN = sorted((Path(__file__).parents[2] / "crates/bochner/tests/golden_models").glob("*/*.json"))


def numbers(plain):
    """Arrays as the files beside the models have them."""
    if isinstance(plain, dict):
        return np.array(plain["real"]) + 1j * np.array(plain["imaginary"])
    return np.array(plain)


def agree(found, expected, rtol):
    expected = numbers(expected)
    assert np.shape(found) == expected.shape
    if expected.dtype.kind in "fc":
        assert np.abs(found - expected).max() <= rtol * np.abs(expected).max()
    else:
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_models_load_and_predict_the_same(path, tmp_path):
    expected = json.loads(path.read_text())
    model, rtol = bochner.load(path.with_suffix(".bochner")), expected["rtol"]
    rows = expected["rows"]
    if "columns" in expected:
        rows = pd.DataFrame(rows, columns=expected["columns"])
    agree(model.predict(rows), expected["predict"], rtol)
    assert model.model_.kind == expected["kind"] and model.model_.dtype == expected["precision"]
    if "classes" in expected:
        assert model.classes_.tolist() == expected["classes"]
    if "decision" in expected:
        agree(model.decision_function(rows), expected["decision"], rtol)
    if "probabilities" in expected:
        agree(model.predict_proba(rows), expected["probabilities"], rtol)
    if "deviations" in expected:
        agree(model.predict(rows, return_std=True)[1], expected["deviations"], rtol)
    if "observed_deviations" in expected:
        agree(model._shaped(model._ask("deviations", rows), spread=True), expected["observed_deviations"], rtol)
    if "features" in expected:
        agree(model.features_.transform(rows), expected["features"], rtol)
    model.save(tmp_path / "again.bochner")
    again = bochner.load(tmp_path / "again.bochner")
    assert np.array_equal(again.predict(rows), model.predict(rows))
    assert str(again.get_params()) == str(model.get_params())


def test_golden_models_are_found():
    assert len(GOLDEN) > 100
