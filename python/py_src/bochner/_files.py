"""Model files, the same ones the command line writes and reads."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bochner import _bochner, _features, exact, kernels
from bochner._base import FeatureTransformer
from bochner._bochner import ModelFile
from bochner._catalogue import entry, renamed
from bochner._models import Classification, Model, Regression
from bochner._operator import OperatorRidge, OperatorRidgeClassifier
from bochner._preparation import Preparation
from bochner._processes import FeatureGPClassifier, FeatureGPRegressor, LocalGPRegressor
from bochner._ridge import FeatureRidge, FeatureRidgeClassifier
from bochner._svm import FeatureSVC

# The classes of maps and of kernels, by the names that files give them.
FEATURES: dict[str, type[FeatureTransformer]] = {
    kind._map_name: kind
    for kind in vars(_features).values()
    if isinstance(kind, type) and issubclass(kind, FeatureTransformer) and kind is not FeatureTransformer
}
KERNELS: dict[str, Any] = {
    kind._name: kind for kind in (getattr(kernels, name) for name in kernels.__all__) if hasattr(kind, "_name")
}


@dataclass(frozen=True)
class _Kind:
    """A kind of model file: its estimator, the core's model, and what the latter is asked for when it is written.

    `guess` finds parameters in the header of a file that another door has written.
    """

    estimator: type[Model]
    core: Any
    written: Callable[[Any, Any], ModelFile] = lambda model, _: model.to_file()
    guess: Callable[[dict[str, Any]], dict[str, Any]] = lambda header: {}


def _penalty(header: dict[str, Any]) -> dict[str, Any]:
    penalty = header["extra"].get("training", {}).get("penalty")
    return {} if penalty is None else {"alpha": penalty}


def _price(header: dict[str, Any]) -> dict[str, Any]:
    """The price of a violated margin that weighs coefficients as a penalty does."""
    return {"C": 0.5 / max(alpha, 1e-12) for alpha in _penalty(header).values()}


def _process(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda header: {name: header["extra"]["process"][name] for name in names}


def _operator(header: dict[str, Any]) -> dict[str, Any]:
    spec = header["map"]
    kernel = spec["kernel"]
    found = {**_penalty(header), "n_components": spec["n_components"], "random_state": spec["seed"]}
    if kernel["kernel"] == "decomposable":
        return {**found, "length_scale": kernel["base"].get("length_scale", 1.0), "A": kernel["matrix"]}
    name = entry("operator_kernels", kernel["kernel"])["name"]
    return {**found, "kernel": name, "length_scale": kernel["length_scale"]}


def _local(header: dict[str, Any]) -> dict[str, Any]:
    spec, extra = header["map"], header["extra"]
    found = {"noise": extra["noise_variance"], "signal_variance": extra["signal_variance"]}
    names = ("n_components", "length_scale", "sketch", "weights", "max_degree")
    return {**found, **{name: spec[name] for name in names if name in spec}, "random_state": spec["seed"]}


def _exact(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def guess(header: dict[str, Any]) -> dict[str, Any]:
        return {"kernel": _kernel(header["map"]), **{name: header["extra"][name] for name in names}}

    return guess


KINDS: dict[str, _Kind] = {
    "ridge": _Kind(FeatureRidge, _bochner.RidgeModel, guess=_penalty),
    "ridge_classifier": _Kind(
        FeatureRidgeClassifier, _bochner.RidgeModel, lambda model, _: model.to_file(True), _penalty
    ),
    "svm": _Kind(FeatureSVC, _bochner.SvmModel, guess=_price),
    "gp_regressor": _Kind(FeatureGPRegressor, _bochner.GpRegressorModel, guess=_process("noise", "signal")),
    "gp_classifier": _Kind(FeatureGPClassifier, _bochner.GpClassifierModel, guess=_process("alpha")),
    "svi_classifier": _Kind(
        FeatureGPClassifier,
        _bochner.GpClassifierModel,
        guess=lambda header: {"inference": "variational", **_process("signal")(header)},
    ),
    "local_gp": _Kind(LocalGPRegressor, _bochner.LocalGpModel, guess=_local),
    "operator_ridge": _Kind(OperatorRidge, _bochner.OperatorModel, guess=_operator),
    "operator_ridge_classifier": _Kind(
        OperatorRidgeClassifier,
        _bochner.OperatorModel,
        lambda model, estimator: model.to_file(estimator.coding),
        lambda header: {
            **{name: value for name, value in _operator(header).items() if name != "kernel"},
            "coding": header["extra"]["coding"],
        },
    ),
    "exact_kernel_ridge": _Kind(exact.KernelRidge, _bochner.ExactModel, guess=_exact()),
    "exact_gp_regressor": _Kind(exact.GPRegressor, _bochner.ExactModel, guess=_exact("noise", "signal")),
    "exact_gp_classifier": _Kind(exact.GPClassifier, _bochner.ExactModel, guess=_exact("alpha")),
    "exact_operator_ridge": _Kind(
        exact.OperatorRidge, _bochner.ExactOperatorModel, guess=lambda header: {"kernel": _kernel(header["map"])}
    ),
    "kernel_svm": _Kind(
        exact.KernelSVC, _bochner.KernelSvmModel, guess=lambda header: {**_exact()(header), **_price(header)}
    ),
}

# What was learned besides the core's model, where an estimator has it.
_LEARNED = ("alpha_", "kernel_", "n_iter_", "noise_", "seed_", "signal_", "target_shape_", "validation_losses_")


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; see :meth:`Model.save`."""
    core = model._model()
    kind = next((kind for kind in KINDS.values() if type(model) is kind.estimator and isinstance(core, kind.core)), None)
    if kind is None:
        raise TypeError(f"{type(model).__name__} has no model file; pickle keeps it")
    file = kind.written(core, model)
    header = json.loads(file.header)
    if isinstance(model, Classification):
        header["classes"] = model.classes_.tolist()
    header["preprocessing"] = _preprocessing(model)
    learned = {name: _plain(getattr(model, name)) for name in _LEARNED if name in vars(model)}
    header["extra"]["python"] = {
        "params": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "learned": learned,
        "dtype": str(model.dtype_),
        "labels": str(model.classes_.dtype) if isinstance(model, Classification) else None,
    }
    file.set_header(json.dumps(header))
    file.save(os.fspath(path))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted model from a file, written by :meth:`save` or by ``bochner fit``.

    What the command line does to the columns of a table before it fits (categories, empty cells, scaling) is part of its
    file and is done to rows here as well: predict from a table with the same columns.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : estimator
        The fitted model; it predicts what the saved one predicted, bit for bit.

    Examples
    --------
    >>> import bochner, tempfile
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 200)[:, np.newaxis]
    >>> model = bochner.FeatureRidge(bochner.FourierFeatures(64, random_state=0)).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/wave.bochner")
    ...     again = bochner.load(f"{folder}/wave.bochner")
    >>> bool(np.array_equal(again.predict(X), model.predict(X)))
    True
    """
    with open(path, "rb"):
        pass  # a file that cannot be opened is told in Python's own words, with its name
    file = ModelFile.load(os.fspath(path))
    header = json.loads(file.header)
    kind = KINDS.get(header["kind"])
    if kind is None:
        raise ValueError(f"{os.fspath(path)}: holds a `{header['kind']}`, which is not a model ({', '.join(KINDS)})")
    core = kind.core.from_file(file)
    notes = header["extra"].get("python") or {}
    params = {name: _object(value) for name, value in notes.get("params", kind.guess(header)).items()}
    features = None
    if hasattr(core, "map"):
        own = params.get("features")
        features = _transformer(header["map"]) if own is None else clone(own)
        features.n_features_in_ = header["input_dim"]
        features._adopt(core.map)
        if "params" not in notes:
            params["features"] = _transformer(header["map"])
    model = kind.estimator(**params)
    model.model_ = core
    model.dtype_ = np.dtype(notes.get("dtype", {"f32": "float32"}.get(header["dtype"], "float64")))
    for name, value in notes.get("learned", {}).items():
        setattr(model, name, _learned(name, value))
    if features is not None:
        model.features_ = features
    if isinstance(model, LocalGPRegressor):
        model.centroids_, model.spec_ = core.centroids, json.loads(core.spec)
    if isinstance(model, FeatureGPRegressor):
        model.noise_, model.signal_, model.n_iter_ = (
            *(vars(model).get(f"{name}_", getattr(model, name)) for name in ("noise", "signal")),
            vars(model).get("n_iter_", 1),
        )
    if isinstance(model, FeatureGPClassifier) and "alpha_" not in vars(model) and model.inference == "dirichlet":
        model.alpha_ = model.alpha
    if isinstance(model, Classification):
        classes = header["classes"]
        if classes is None:
            raise ValueError(f"{os.fspath(path)}: the names of the classes are missing")
        model.classes_ = np.array(classes, dtype=notes.get("labels"))
    _adopt(model, header)
    return model


def _adopt(model: Model, header: dict[str, Any]) -> None:
    """What the columns of a table have to do with rows and targets."""
    described = header["preprocessing"]
    model.n_features_in_ = header["input_dim"]
    outputs = 1
    if described is not None:
        preparation = Preparation(described)
        model.n_features_in_ = len(preparation.columns)
        names = preparation.names
        if names != _numbered(len(names)):
            model.feature_names_in_ = np.array(names, dtype=object)
        plain_rows = not described["steps"] and all(column["kind"] == {"number": {}} for column in preparation.columns)
        # Rows that are taken as they are need no preparation: they may be sparse, and scikit-learn checks them.
        if not plain_rows:
            model.preparation_ = preparation
        units = described.get("targets", [])
        outputs = max(1, len(units))
        if isinstance(model, Regression) and any(unit != {"mean": 0.0, "scale": 1.0} for unit in units):
            model.target_units_ = (
                np.array([unit["mean"] for unit in units]),
                np.array([unit["scale"] for unit in units]),
            )
    if isinstance(model, LocalGPRegressor) and not hasattr(model, "target_units_"):
        model.target_units_ = (np.zeros(outputs), np.ones(outputs))
    if isinstance(model, Regression) and not hasattr(model, "target_shape_"):
        model.target_shape_ = () if outputs == 1 else (outputs,)


def _numbered(count: int) -> list[str]:
    """Names of columns that have none: the command line counts them from 1."""
    return [str(number + 1) for number in range(count)]


def _preprocessing(model: Any) -> dict[str, Any] | None:
    """What the command line has to know about columns and targets; None where rows are taken as they are."""
    preparation, units = getattr(model, "preparation_", None), getattr(model, "target_units_", None)
    several = isinstance(model, Regression) and len(model.target_shape_) > 0
    if preparation is None and units is None and not several and not hasattr(model, "feature_names_in_"):
        return None
    if preparation is not None:
        described = dict(preparation.spec)
        inputs = described["schema"]["inputs"]
    else:
        names = getattr(model, "feature_names_in_", _numbered(model.n_features_in_))
        inputs = [{"name": str(name), "kind": {"number": {}}} for name in names]
        described = {"missing": "refuse", "steps": []}
    if isinstance(model, Regression):
        count = model.target_shape_[0] if model.target_shape_ else 1
        mean, scale = units if units is not None else (np.zeros(count), np.ones(count))
        described["targets"] = [{"mean": float(m), "scale": float(s)} for m, s in zip(mean, scale, strict=True)]
        names = ["prediction"] if count == 1 else [f"prediction_{t + 1}" for t in range(count)]
        targets = [{"name": name, "kind": {"number": {}}} for name in names]
    else:
        classes = model.classes_.tolist()
        kind: dict[str, Any] = {"number": {}}
        if all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in classes):
            described["labels"] = [float(label) for label in classes]
        else:
            described["labels"] = [float(number) for number in range(len(classes))]
            kind = {"words": {"values": [str(label) for label in classes]}}
        targets = [{"name": "prediction", "kind": kind}]
    if preparation is not None:
        targets = described["schema"]["targets"]
    return {**described, "schema": {"inputs": inputs, "targets": targets}}


def _transformer(spec: dict[str, Any]) -> FeatureTransformer:
    """The transformer that would draw the map described by `spec`."""
    features = FEATURES[spec["map"]]
    # Names of version 0.1.
    old = {"fit": "radial_fit", "centre": "center"}
    known = {parameter.name for parameter in features._parameters}
    found = {old.get(name, name): value for name, value in spec.items() if value is not None}
    params = {name: value for name, value in found.items() if name in known}
    return features(**{**params, "random_state": spec["seed"]})


def _kernel_class(name: str) -> Any:
    for kind in ("kernels", "operator_kernels"):
        with contextlib.suppress(StopIteration):
            return KERNELS[entry(kind, name)["name"]]
    raise ValueError(f"the file has the kernel `{name}`, which bochner.kernels has not")


def _kernel(spec: dict[str, Any]) -> Any:
    """The kernel that the core describes by `spec`."""
    kind = _kernel_class(spec["kernel"])
    params = {name: value for name, value in spec.items() if name != "kernel"}
    if kind is kernels.Decomposable:
        params = {"A": params["matrix"], "base": _kernel(params["base"])}
    if kind is kernels.Compressive:
        params = {"compressed_dim": params["output_dim"], "length_scale": params["length_scale"]}
    return kind(**params)


def _plain(value: Any) -> Any:
    """A parameter as JSON holds it; generators of random numbers are forgotten."""
    if isinstance(value, FeatureTransformer):
        return {"features": value._map_name, "params": _plain(value.get_params(deep=False))}
    if isinstance(value, (kernels.Kernel, kernels.OperatorKernel)):
        params = {field.name: getattr(value, field.name) for field in fields(value)}  # type: ignore[arg-type]
        return {"kernel": value._name, "params": _plain(params)}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return value if value is None or isinstance(value, (bool, int, float, str)) else None


def _object(value: Any) -> Any:
    """The parameter that `_plain` has written."""
    if not isinstance(value, dict) or "params" not in value:
        return value
    params = {name: _object(part) for name, part in value["params"].items()}
    if "features" in value:
        features = FEATURES[value["features"]]
        return features(**renamed(features, params, warn=False))
    return _kernel_class(value["kernel"])(**params)


def _learned(name: str, value: Any) -> Any:
    if name == "target_shape_":
        return tuple(value)
    array: NDArray[Any] | Any = np.asarray(value) if name == "validation_losses_" else value
    return array
