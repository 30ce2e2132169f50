"""Writes golden models: small model files, and beside each what the version that wrote it predicts.

    python tools/golden/models.py BOCHNER FOLDER

BOCHNER is the program of the same version as the installed package; FOLDER is that of the version among
crates/bochner/tests/golden_models.
Files that are there are never replaced: a model of a later version needs a name of its own.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import bochner
import numpy as np
import pandas as pd
from bochner import exact, kernels
from bochner import CompressiveFeatures as Compressive
from bochner import FeatureGPClassifier, FeatureGPRegressor, FeatureRidge, FeatureRidgeClassifier, FeatureSVC
from bochner import FourierFeatures as Fourier
from bochner import LocalGPRegressor, OperatorRidge, OperatorRidgeClassifier
from bochner import MaclaurinFeatures as Maclaurin
from bochner import OpticalFeatures as Optical
from bochner import OrthoProjection
from bochner import PolynomialSketch as Polynomial
from bochner import PositiveFeatures as Positive
from bochner import SphericalFeatures as Spherical

SEED = 20
NEW_ROWS = 5
# Of the largest absolute value of an answer. Draws are the same everywhere, sums are rounded as each processor likes.
TOLERANCE = {"float64": 1e-9, "float32": 1e-5}

MAPS: dict[str, Any] = {
    "fourier_gaussian": Fourier(32, length_scale=2.0),
    "fourier_gaussian_columns": Fourier(16, length_scale=[1.0, 2.0, 3.0, 4.0]),
    "fourier_gaussian_median": Fourier(16, length_scale="median"),
    "fourier_gaussian_gamma": Fourier(16, gamma="scale"),
    "fourier_laplacian_1": Fourier(16, kernel="laplacian", norm=1, length_scale=3.0),
    "fourier_laplacian_2": Fourier(16, kernel="laplacian", norm=2, length_scale=3.0),
    "fourier_matern": Fourier(16, kernel="matern", nu=2.5, length_scale=2.0),
    "fourier_cos_sin": Fourier(17, form="cos_sin", length_scale=2.0),
    "fourier_offset": Fourier(16, form="offset", length_scale=2.0),
    "fourier_complex": Fourier(16, form="complex", length_scale=2.0),
    "fourier_projection_gaussian": Fourier(16, projection="gaussian", length_scale=2.0),
    "fourier_projection_orthogonal": Fourier(16, projection="orthogonal", length_scale=2.0),
    "fourier_projection_sorf": Fourier(16, projection="sorf", length_scale=2.0),
    "fourier_matern_sorf_offset": Fourier(16, kernel="matern", projection="sorf", form="offset", length_scale=2.0),
    "maclaurin_gaussian": Maclaurin(33, length_scale=3.0),
    "maclaurin_gaussian_one_pass": Maclaurin(33, length_scale="median", statistics="one_pass"),
    "maclaurin_gaussian_not_centred": Maclaurin(32, length_scale=3.0, centre=False, weights="real"),
    "maclaurin_exponential": Maclaurin(32, kernel="exponential", length_scale=3.0, sketch="rademacher"),
    "maclaurin_polynomial": Maclaurin(32, kernel="polynomial", degree=3, gamma=0.1, coef0=1.0),
    "maclaurin_polynomial_random": Maclaurin(32, kernel="polynomial", gamma=0.1, allocation="random"),
    "maclaurin_coefficients": Maclaurin(32, kernel=[1.0, 0.0, 0.5, 0.1], sketch="gaussian"),
    "maclaurin_tensor_sketch": Maclaurin(32, length_scale=3.0, sketch="tensor_sketch", weights="real"),
    "maclaurin_complex": Maclaurin(16, length_scale=3.0, weights="complex"),
    "polynomial_tensor_srht": Polynomial(32, degree=3, gamma=0.25, coef0=1.0),
    "polynomial_tensor_srht_stacked": Polynomial(32, gamma=0.25, coef0=1.0, srht="stacked"),
    "polynomial_tensor_srht_tuple": Polynomial(16, gamma=0.25, coef0=1.0, srht="tuple"),
    "polynomial_rademacher": Polynomial(32, gamma=0.25, coef0=1.0, sketch="rademacher"),
    "polynomial_gaussian": Polynomial(32, gamma=0.25, coef0=1.0, sketch="gaussian"),
    "polynomial_tensor_sketch": Polynomial(32, gamma=0.25, coef0=1.0, sketch="tensor_sketch", weights="real"),
    "polynomial_tensor_sketch_ctr": Polynomial(32, gamma=0.25, coef0=1.0, sketch="tensor_sketch", weights="ctr"),
    "polynomial_weights_ctr": Polynomial(33, gamma=0.25, weights="ctr"),
    "polynomial_weights_real": Polynomial(33, gamma=0.25, coef0=1.0, weights="real"),
    "polynomial_weights_complex": Polynomial(16, gamma=0.25, coef0=1.0, weights="complex"),
    "polynomial_tree": Polynomial(32, degree=3, gamma=0.25, coef0=1.0, structure="tree", weights="real"),
    "polynomial_tree_rademacher": Polynomial(
        32, degree=4, gamma=0.25, coef0=1.0, structure="tree", weights="real", sketch="rademacher"
    ),
    "polynomial_tree_gaussian": Polynomial(
        32, degree=4, gamma=0.25, coef0=1.0, structure="tree", weights="real", sketch="gaussian"
    ),
    "polynomial_compact": Polynomial(32, degree=3, gamma=0.25, coef0=1.0, structure="compact", weights="real"),
    "positive": Positive(32, length_scale=3.0),
    "positive_hyperbolic": Positive(32, length_scale=3.0, kind="hyperbolic", orthogonal=False),
    "positive_trigonometric": Positive(32, length_scale=3.0, kind="trigonometric"),
    "optical_dense": Optical(32, projection="dense"),
    "optical_dense_exponent_1": Optical(32, projection="dense", exponent=1.0, bias=0.5),
    "optical_matrix_free": Optical(32, projection="matrix_free"),
    "optical_structured": Optical(32, projection="structured"),
    "optical_binarize": Optical(32, binarize=0.1, bias=0.5),
    "optical_camera": Optical(32, camera_bits=8, noise=0.5),
    "optical_bit_planes": Optical(32, encoding="bit_planes", levels=3),
    "optical_thermometer": Optical(32, encoding="thermometer", levels=4, projection="structured"),
    "spherical": Spherical(32, degree=3),
    "spherical_mixture": Spherical(33, degree=5, projection="gaussian", radial_fit="mixture"),
    "spherical_sorf": Spherical(32, degree=4, projection="sorf"),
    "compressive": Compressive(32, compressed_dim=3, length_scale=2.0),
    "compressive_sign_offset": Compressive(
        16, compressed_dim=3, orthoprojector="sign", form="offset", length_scale=2.0
    ),
    "compressive_srht_complex": Compressive(
        16, compressed_dim=3, orthoprojector="srht", form="complex", projection="orthogonal", length_scale="median"
    ),
    "ortho_projection": OrthoProjection(3),
    "ortho_projection_sign": OrthoProjection(3, orthoprojector="sign"),
    "ortho_projection_srht": OrthoProjection(3, orthoprojector="srht"),
}

# Written in single precision besides.
SINGLE_MAPS = (
    "fourier_gaussian",
    "fourier_complex",
    "fourier_projection_sorf",
    "maclaurin_gaussian",
    "polynomial_tensor_srht",
    "polynomial_tensor_sketch",
    "polynomial_tree",
    "positive",
    "optical_dense",
    "optical_structured",
    "spherical",
    "compressive",
    "ortho_projection",
)

FEATURES = Fourier(24, length_scale=2.0)
OUTPUTS = [[1.0, 0.5], [0.5, 2.0]]

# Estimator, targets, and float32 where rows are in single precision.
MODELS: dict[str, tuple[Any, str, str]] = {
    "ridge": (FeatureRidge(FEATURES, alpha=0.1), "number", "float64"),
    "ridge_single": (FeatureRidge(FEATURES, alpha=0.1), "number", "float32"),
    "ridge_without_intercept": (FeatureRidge(FEATURES, alpha=0.1, fit_intercept=False), "number", "float64"),
    "ridge_two_targets": (FeatureRidge(FEATURES, alpha=0.1), "numbers", "float64"),
    "ridge_named_columns": (FeatureRidge(FEATURES, alpha=0.1), "number", "float64"),
    "ridge_classifier": (FeatureRidgeClassifier(FEATURES, alpha=0.1), "words", "float64"),
    "ridge_classifier_single": (FeatureRidgeClassifier(FEATURES, alpha=0.1), "words", "float32"),
    "ridge_classifier_whole_numbers": (FeatureRidgeClassifier(FEATURES, alpha=0.1), "whole", "float64"),
    "ridge_classifier_truths": (FeatureRidgeClassifier(FEATURES, alpha=0.1), "truths", "float64"),
    "svm": (FeatureSVC(FEATURES), "words", "float64"),
    "svm_single": (FeatureSVC(FEATURES), "words", "float32"),
    "svm_hinge_two_classes": (FeatureSVC(FEATURES, loss="hinge", fit_intercept=False), "truths", "float64"),
    "gp_regressor": (FeatureGPRegressor(FEATURES), "number", "float64"),
    "gp_regressor_single": (FeatureGPRegressor(FEATURES), "number", "float32"),
    "gp_regressor_tuned": (FeatureGPRegressor(FEATURES, optimizer="lbfgs"), "number", "float64"),
    "gp_regressor_complex": (
        FeatureGPRegressor(Fourier(12, form="complex", length_scale=2.0), normalize_y=False),
        "number",
        "float64",
    ),
    "gp_regressor_two_targets": (FeatureGPRegressor(FEATURES), "numbers", "float64"),
    "gp_classifier": (FeatureGPClassifier(Fourier(16, length_scale=2.0)), "words", "float64"),
    "gp_classifier_single": (FeatureGPClassifier(Fourier(16, length_scale=2.0)), "words", "float32"),
    "gp_classifier_complex": (FeatureGPClassifier(Fourier(8, form="complex", length_scale=2.0)), "truths", "float64"),
    "svi_classifier": (FeatureGPClassifier(FEATURES, inference="variational", max_iter=5), "words", "float64"),
    "svi_classifier_single": (FeatureGPClassifier(FEATURES, inference="variational", max_iter=5), "words", "float32"),
    "local_gp": (LocalGPRegressor(12, length_scale=2.0, max_clusters=3, normalize_y=True), "number", "float64"),
    "local_gp_two_targets": (
        LocalGPRegressor(12, length_scale=2.0, max_clusters=2, weights="real"),
        "numbers",
        "float64",
    ),
    "operator_ridge_decomposable": (OperatorRidge(n_components=24, A=OUTPUTS, alpha=0.1), "field", "float64"),
    "operator_ridge_decomposable_learned": (OperatorRidge(n_components=24, A="learned", alpha=0.1), "field", "float64"),
    "operator_ridge_decomposable_matern": (
        OperatorRidge(kernels.Decomposable(OUTPUTS, kernels.Matern(nu=2.5)), n_components=24, alpha=0.1),
        "field",
        "float64",
    ),
    "operator_ridge_curl_free": (OperatorRidge("curl_free", n_components=24, alpha=0.1), "field", "float64"),
    "operator_ridge_curl_free_single": (OperatorRidge("curl_free", n_components=24, alpha=0.1), "field", "float32"),
    "operator_ridge_div_free": (OperatorRidge("div_free", n_components=24, alpha=0.1), "field", "float64"),
    "operator_ridge_helmholtz": (
        OperatorRidge(kernels.Helmholtz(1.5, curl_free=0.3), n_components=24, alpha=0.1),
        "field",
        "float64",
    ),
    "operator_ridge_classifier_simplex": (
        OperatorRidgeClassifier(n_components=24, length_scale=2.0, alpha=0.1),
        "words",
        "float64",
    ),
    "operator_ridge_classifier_one_hot": (
        OperatorRidgeClassifier(n_components=24, length_scale=2.0, alpha=0.1, coding="one_hot"),
        "words",
        "float64",
    ),
    "exact_kernel_ridge_gaussian": (exact.KernelRidge(kernels.Gaussian(2.0), alpha=0.1), "number", "float64"),
    "exact_kernel_ridge_laplacian": (exact.KernelRidge(kernels.Laplacian(2.0, norm=1), alpha=0.1), "number", "float64"),
    "exact_kernel_ridge_matern": (exact.KernelRidge(kernels.Matern(nu=2.5, length_scale=2.0), alpha=0.1), "number", "float64"),
    "exact_kernel_ridge_polynomial": (exact.KernelRidge(kernels.Polynomial(2, 0.5, 1.0)), "number", "float64"),
    "exact_kernel_ridge_exponential": (exact.KernelRidge(kernels.Exponential(2.0)), "number", "float64"),
    "exact_kernel_ridge_optical": (exact.KernelRidge(kernels.Optical(1.0, 0.5)), "number", "float64"),
    "exact_gp_regressor": (exact.GPRegressor(kernels.Gaussian(2.0)), "number", "float64"),
    "exact_gp_classifier": (exact.GPClassifier(kernels.Gaussian(2.0)), "words", "float64"),
    "exact_operator_ridge_decomposable": (
        exact.OperatorRidge(kernels.Decomposable(OUTPUTS, kernels.Gaussian(1.5)), alpha=0.1),
        "field",
        "float64",
    ),
    "exact_operator_ridge_curl_free": (exact.OperatorRidge(kernels.CurlFree(), alpha=0.1), "field", "float64"),
    "exact_operator_ridge_div_free": (exact.OperatorRidge(kernels.DivFree(), alpha=0.1), "field", "float64"),
    "exact_operator_ridge_helmholtz": (exact.OperatorRidge(kernels.Helmholtz(), alpha=0.1), "field", "float64"),
    "kernel_svm": (exact.KernelSVC(kernels.Gaussian(2.0), C=5.0), "words", "float64"),
    "kernel_svm_two_classes": (exact.KernelSVC(kernels.Matern(length_scale=2.0), C=5.0), "truths", "float64"),
}

# Table, and what `bochner fit` is told.
FITS: dict[str, tuple[str, str]] = {
    "ridge": ("garden", "--target harvest --drop grade,beds --impute mean --alpha 0.1 --features 24"),
    "ridge_double": ("garden", "--target harvest --drop grade,beds --impute mean --features 24 --precision double"),
    "ridge_chosen": ("orchard", "--target harvest --drop grade,beds --features 24 --precision double --seed 7"),
    "ridge_numbered_columns": ("nameless", "--target 4 --alpha 0.1 --features 24 --precision double"),
    "ridge_two_targets": ("orchard", "--target harvest,rain --drop grade,beds --alpha 0.1 --features 24"),
    "ridge_categories": (
        "garden",
        "--target harvest --drop grade --categories beds --impute zero --alpha 0.1 --features 24 --precision double",
    ),
    "ridge_dropped_gaps": ("garden", "--target harvest --drop grade,beds --drop-missing --alpha 0.1 --features 24"),
    "ridge_centre": (
        "garden",
        "--target harvest --drop grade,beds --impute mean --preprocess centre --alpha 0.1 --features 24",
    ),
    "ridge_unit": (
        "garden",
        "--target harvest --drop grade,beds --impute mean --preprocess unit --alpha 0.1 --features 24",
    ),
    "ridge_binarise": (
        "garden",
        "--target harvest --drop grade,beds --impute mean --preprocess binarise --threshold 0.2 "
        "--alpha 0.1 --features 24",
    ),
    "ridge_non_negative": (
        "garden",
        "--target harvest --drop grade,beds --impute mean --preprocess non-negative --alpha 0.1 --features 24",
    ),
    "ridge_none": (
        "garden",
        "--target harvest --drop grade,beds --impute mean --preprocess none --alpha 0.1 --features 24",
    ),
    "ridge_matern": (
        "orchard",
        "--target harvest --drop grade,beds --kernel matern --set nu=2.5 --alpha 0.1 --features 24",
    ),
    "ridge_polynomial": ("orchard", "--target harvest --drop grade,beds --kernel polynomial --alpha 0.1 --features 24"),
    "ridge_exponential": (
        "orchard",
        "--target harvest --drop grade,beds --kernel exponential --alpha 0.1 --features 24",
    ),
    "ridge_optical": ("orchard", "--target harvest --drop grade,beds --kernel optical --alpha 0.1 --features 24"),
    "ridge_classifier": ("garden", "--target grade --drop harvest,beds --impute median --alpha 0.1 --features 24"),
    "ridge_classifier_whole_numbers": (
        "orchard",
        "--target beds --drop harvest,grade --task classification --alpha 0.1 --features 24 --precision double",
    ),
    "gp_regressor": (
        "garden",
        "--target harvest --drop grade,beds --impute mean --model gp --alpha 0.1 --features 24 --precision double",
    ),
    "gp_regressor_single": ("orchard", "--target harvest --drop grade,beds --model gp --alpha 0.1 --features 24"),
    "gp_classifier": (
        "garden",
        "--target grade --drop harvest,beds --impute median --model gp --alpha 0.1 --features 16 --precision double",
    ),
    "gp_classifier_single": ("orchard", "--target grade --drop harvest,beds --model gp --alpha 0.1 --features 16"),
    "svm": ("garden", "--target grade --drop harvest,beds --impute median --model svm --alpha 0.1 --features 24"),
    "kernel_svm": ("garden", "--target grade --drop harvest,beds --impute median --model kernel-svm --alpha 0.1"),
    "svi_classifier": (
        "garden",
        "--target grade --drop harvest,beds --impute median --model svi --alpha 0.1 --features 24",
    ),
    "local_gp": (
        "garden",
        "--target harvest --drop grade,beds --impute mean --model local-gp --alpha 0.1 --features 12 --budget 1",
    ),
    "operator_decomposable": (
        "garden",
        "--target harvest,rain --drop grade,beds --impute mean --model operator --alpha 0.1 --features 24 "
        "--precision double",
    ),
    "operator_curl_free": ("wind", "--target u,v --kernel curl_free --alpha 0.1 --features 24 --precision double"),
    "operator_divergence_free": ("wind", "--target u,v --kernel divergence_free --alpha 0.1 --features 24"),
    "operator_helmholtz": ("wind", "--target u,v --kernel helmholtz --alpha 0.1 --features 24 --precision double"),
}

# Models of the command line that Python reads and writes again.
WRITTEN_AGAIN = ("ridge", "ridge_classifier", "gp_classifier", "local_gp")


def numbers() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows of numbers and targets of all sorts for them; the last rows are the new ones."""
    rng = np.random.default_rng(SEED)
    rows = rng.normal(size=(60 + NEW_ROWS, 4)).round(3)
    signal = np.sin(rows[:, 0]) + 0.5 * rows[:, 1] * rows[:, 2] + 0.1 * rng.normal(size=len(rows))
    number = (signal + 2.0).round(3)
    words = np.array(["high", "low", "middle"])[np.where(signal < -0.4, 1, np.where(signal < 0.4, 2, 0))]
    return rows, {
        "number": number,
        "numbers": np.c_[number, (np.cos(rows[:, 0]) + rows[:, 3]).round(3)],
        "words": words,
        "whole": np.select([words == "high", words == "low"], [7, 3], 5),
        "truths": signal > 0,
    }


def field() -> tuple[np.ndarray, np.ndarray]:
    """Places and a vector at each, a gradient and a rotation in one; the last places are the new ones."""
    rng = np.random.default_rng(SEED + 1)
    x, y = places = rng.uniform(-2, 2, size=(2, 60 + NEW_ROWS)).round(3)
    vectors = np.c_[np.cos(x) * np.cos(y) - 0.5 * y, -np.sin(x) * np.sin(y) + 0.5 * x]
    return places.T, vectors.round(3)


def table(name: str) -> tuple[list[str], list[list[Any]]]:
    """Names of columns, and rows of cells: `garden` has words and gaps, `orchard` words, the others numbers alone."""
    if name == "nameless":
        return ["1", "2", "3", "4"], np.hstack(field()).tolist()
    if name == "wind":
        return ["x", "y", "u", "v"], np.hstack(field()).tolist()
    rows, targets = numbers()
    soils = np.random.default_rng(SEED + 2).choice(["clay", "heavy loam", "sand"], len(rows))
    harvest = (targets["number"] + np.select([soils == "clay", soils == "sand"], [1.0, -1.0], 0.0)).round(3)
    cells = []
    for i, (depth, slope, rain, light) in enumerate(rows.tolist()):
        gap = name == "garden" and i % 9 == 7
        last = [rain, light, harvest[i].item(), targets["words"][i].item(), targets["whole"][i].item()]
        cells.append([depth, None if gap else slope, soils[i].item(), *last])
    return ["depth", "slope", "soil", "rain", "light", "harvest", "grade", "beds"], cells


def as_csv(names: list[str] | None, rows: list[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(([names] if names else []) + rows)
    return text.getvalue()


def plain(values: Any) -> Any:
    values = np.asarray(values)
    if np.iscomplexobj(values):
        return {"real": values.real.tolist(), "imaginary": values.imag.tolist()}
    return values.tolist()


def run(program: str, *arguments: str) -> str:
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def header(path: Path) -> dict[str, Any]:
    """What a model file says of itself."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["bochner"])["header"]


def describe(path: Path, door: str) -> dict[str, Any]:
    told = header(path)
    precision = {"f32": "float32", "f64": "float64"}[told["dtype"]]
    return {
        "written_by": bochner.__version__,
        "door": door,
        "kind": told["kind"],
        "map": (told["map"] or {}).get("map"),
        "precision": precision,
        "rtol": TOLERANCE[precision],
    }


def answers(model: Any, rows: Any) -> dict[str, Any]:
    """What the Python package says to rows, besides predictions."""
    found = {}
    if hasattr(model, "decision_function"):
        found["decision"] = plain(model.decision_function(rows))
    if hasattr(model, "predict_proba"):
        found["probabilities"] = plain(model.predict_proba(rows))
    if hasattr(model, "classes_"):
        found["classes"] = plain(model.classes_)
    if isinstance(model, (FeatureGPRegressor, LocalGPRegressor, exact.GPRegressor)):
        found["deviations"] = plain(model.predict(rows, return_std=True)[1])
    return found


def predicted_lines(program: str, model: Path, rows: Path, *options: str) -> list[list[str]]:
    """What the command line predicts, without the names of the columns."""
    return list(csv.reader(io.StringIO(run(program, "predict", str(model), str(rows), "--quiet", *options))))[1:]


def observed_deviations(program: str, model: Path, rows: Path, targets: int) -> list[Any]:
    """Standard deviations of observations, noise included, as the command line gives them."""
    lines = predicted_lines(program, model, rows, "--std")
    # Predictions, then their deviations; of one target no list.
    found = [[float(cell) for cell in line[-targets:]] for line in lines]
    return [line[0] for line in found] if targets == 1 else found


def write(path: Path, contents: dict[str, Any]) -> None:
    """One line for each part."""
    parts = (f"  {json.dumps(name)}: {json.dumps(part)}" for name, part in contents.items())
    path.with_suffix(".json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def from_python(path: Path, program: str, estimator: Any, target: str, dtype: str, features: bool) -> None:
    if target == "field":
        rows, targets = field()
    else:
        rows, targets = numbers()[0], numbers()[1][target]
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=SEED)
    rows, new = rows[:-NEW_ROWS].astype(dtype), rows[-NEW_ROWS:]
    known: Any = pd.DataFrame(rows, columns=["a", "b", "c", "d"]) if "named" in path.stem else rows
    asked: Any = pd.DataFrame(new, columns=["a", "b", "c", "d"]) if "named" in path.stem else new.astype(dtype)
    model = estimator.fit(known, targets[:-NEW_ROWS])
    model.save(path)
    contents = {**describe(path, "python"), "rows": new.tolist(), "predict": plain(model.predict(asked))}
    contents |= answers(model, asked)
    if "deviations" in contents:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "rows.csv")
            place.write_text(as_csv(None, new.tolist()))
            count = 1 if targets.ndim == 1 else targets.shape[1]
            try:
                contents["observed_deviations"] = observed_deviations(program, path, place, count)
            except subprocess.CalledProcessError:
                print(f"{path.name}: the command line does not read it")
    if features:
        contents["features"] = plain(model.features_.transform(asked))
    write(path, contents)


def from_command_line(path: Path, program: str, name: str, arguments: str) -> None:
    names, rows = table(name)
    words = arguments.split()
    targets = words[words.index("--target") + 1].split(",")
    dropped = words[words.index("--drop") + 1].split(",") if "--drop" in words else []
    kept = [at for at, column in enumerate(names) if column not in [*targets, *dropped]]
    if "--drop-missing" in words:
        # The same rows without gaps, which would be refused.
        rows[-NEW_ROWS:] = table("orchard")[1][-NEW_ROWS:]
    new = [[row[at] for at in kept] for row in rows[-NEW_ROWS:]]
    place = path.with_suffix(".csv")
    columns = [names[at] for at in kept]
    place.write_text(as_csv(None if name == "nameless" else columns, new))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, f"{name}.csv")
        data.write_text(as_csv(None if name == "nameless" else names, rows[:-NEW_ROWS]))
        run(program, "fit", str(data), *words, "--out", str(path), "--quiet")
    lines = predicted_lines(program, path, place)
    model = bochner.load(path)
    number = not hasattr(model, "classes_") or isinstance(model.classes_[0], np.number)
    predicted = [[float(cell) if number else cell for cell in line] for line in lines]
    contents = {
        **describe(path, "command line"),
        "arguments": words,
        "columns": columns,
        "rows": new,
        "predict": [line[0] for line in predicted] if len(targets) == 1 else predicted,
        **answers(model, np.array(new, dtype=object)),
    }
    if "probabilities" in contents:
        lines = predicted_lines(program, path, place, "--probabilities")
        contents["probabilities"] = [[float(cell) for cell in line[1:]] for line in lines]
    if "deviations" in contents:
        contents["observed_deviations"] = observed_deviations(program, path, place, len(targets))
    write(path, contents)


def again(path: Path, source: Path) -> None:
    """A model of the command line as Python writes it, with the same answers."""
    bochner.load(source).save(path)
    path.with_suffix(".csv").write_bytes(source.with_suffix(".csv").read_bytes())
    write(path, {**json.loads(source.with_suffix(".json").read_text()), **describe(path, "python")})


def main() -> None:
    program, folder = sys.argv[1], Path(sys.argv[2])
    told = run(program, "--version").split()[-1]
    if told != bochner.__version__:
        sys.exit(f"the program has version {told}, the package {bochner.__version__}")
    jobs = []
    for name, features in MAPS.items():
        features.set_params(random_state=SEED)
        for dtype in ("float64", "float32") if name in SINGLE_MAPS else ("float64",):
            # Sketches with complex weights have no real form, which a ridge regression asks for.
            complex_only = getattr(features, "weights", None) == "complex"
            model = FeatureGPRegressor(features) if complex_only else FeatureRidge(features, alpha=0.1)
            path = folder / f"map_{name}{'_single' if dtype == 'float32' else ''}.bochner"
            jobs.append((path, from_python, (program, model, "number", dtype, True)))
    for name, (estimator, target, dtype) in MODELS.items():
        if "features" in estimator.get_params():
            estimator.set_params(features__random_state=SEED)
        jobs.append((folder / f"model_{name}.bochner", from_python, (program, estimator, target, dtype, False)))
    for name, (data, arguments) in FITS.items():
        jobs.append((folder / f"fit_{name}.bochner", from_command_line, (program, data, arguments)))
    for name in WRITTEN_AGAIN:
        jobs.append((folder / f"again_{name}.bochner", again, (folder / f"fit_{name}.bochner",)))
    for path, make, arguments in jobs:
        if path.exists():
            print(f"{path.name}: there already, left as it is")
            continue
        make(path, *arguments)
        print(path.name)


if __name__ == "__main__":
    main()
