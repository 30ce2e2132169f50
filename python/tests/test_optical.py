"""Optical features and their simulated device."""

import numpy as np
import pytest
from sklearn.base import clone

from bochner import OpticalFeatures
from bochner.kernels import Optical


def test_kernel_is_the_optical_kernel_of_the_rows_or_of_their_codes(rows):
    features = OpticalFeatures(64, exponent=1.7, bias=0.3, random_state=0).fit(rows)
    np.testing.assert_allclose(features.exact_kernel(rows), Optical(1.7, 0.3)(rows), rtol=1e-12)
    binary = OpticalFeatures(64, binarize=0.2, bias=0.5, random_state=0).fit(rows)
    np.testing.assert_allclose(binary.exact_kernel(rows), Optical(2.0, 0.5)((rows > 0.2).astype(float)), rtol=1e-12)


def test_features_are_moduli_of_one_matrix(rows):
    # Exponents 1 and 2 see the same light.
    one = OpticalFeatures(50, exponent=1.0, random_state=3).fit_transform(rows)
    two = OpticalFeatures(50, exponent=2.0, random_state=3).fit_transform(rows)
    np.testing.assert_allclose(two * np.sqrt(50), (one * np.sqrt(50)) ** 2, rtol=1e-12)


def test_matrix_free_features_are_the_dense_ones(rows):
    dense = OpticalFeatures(300, projection="dense", random_state=1).fit(rows)
    free = OpticalFeatures(300, projection="matrix_free", random_state=1).fit(rows)
    for dtype in (np.float32, np.float64):
        assert np.array_equal(dense.transform(rows.astype(dtype)), free.transform(rows.astype(dtype)))


def test_what_was_chosen_is_told(rng):
    wide = OpticalFeatures(2000, random_state=0).fit(rng.normal(size=(5, 600)))
    narrow = OpticalFeatures(2000, random_state=0).fit(rng.normal(size=(5, 3)))
    assert (wide.projection_, narrow.projection_) == ("structured", "dense")
    assert wide.gain_ is None
    with pytest.raises(ValueError, match="variance: Hadamard chains have no closed form"):
        wide.variance(rng.normal(size=(5, 600)))


def test_a_camera_sees_whole_levels(rows):
    features = OpticalFeatures(100, camera_bits=4, random_state=2).fit(rows)
    seen = features.transform(rows) * np.sqrt(100) * features.gain_
    np.testing.assert_allclose(seen, np.round(seen), atol=1e-9)
    assert seen.max() == pytest.approx(15)
    one_bit = OpticalFeatures(100, camera_bits=1, random_state=2).fit_transform(rows)
    assert len(np.unique(one_bit)) == 2
    with pytest.raises(ValueError, match="variance: what a camera rounds"):
        features.variance(rows)


def test_noise_belongs_to_the_row(rows):
    features = OpticalFeatures(64, camera_bits=8, noise=3.0, random_state=2).fit(rows)
    whole = features.transform(rows)
    assert np.array_equal(features.transform(rows[50:60]), whole[50:60])
    quiet = clone(features).set_params(noise=0.0).fit(rows).transform(rows)
    assert not np.array_equal(whole, quiet)


@pytest.mark.parametrize("encoding", ["bit_planes", "thermometer"])
def test_encodings_count_the_levels_of_every_column(encoding, rows):
    features = OpticalFeatures(4096, encoding=encoding, levels=3, exponent=1.0, random_state=0).fit(rows)
    assert features.n_features_in_ == 7
    assert len(features.spec_["encoding"]["low"]) == 7
    Z = features.transform(rows[:20])
    K = features.exact_kernel(rows[:20])
    assert np.abs(Z @ Z.T - K).max() < 6 * np.sqrt(features.set_params().variance(rows[:20]).max())


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"exponent": 0.0}, "exponent must be a positive finite number, got 0"),
        ({"exponent": np.inf}, "exponent must be a finite number"),
        ({"projection": "fast"}, 'projection must be one of .*, got "fast"'),
        ({"bias": -1.0}, "bias must be a non-negative finite number, got -1"),
        ({"noise": -0.1}, "noise must be a non-negative finite number, got -0.1"),
        ({"camera_bits": 0}, "camera_bits must be from 1 to 24, got 0"),
        ({"camera_bits": 25}, "camera_bits must be from 1 to 24, got 25"),
        ({"encoding": "grey"}, "encoding must be one of"),
        ({"encoding": "thermometer", "levels": 0}, "levels must be from 1 to 1024, got 0"),
        ({"encoding": "thermometer", "binarize": 0.5}, "exclude each other"),
        ({"binarize": np.nan}, "binarize must be a finite number, got nan"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        OpticalFeatures(64, **parameters).fit(rows)
