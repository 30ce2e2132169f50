"""Model files, the same ones the command line writes and reads."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bochner import _bochner, _features, kernels
from bochner._base import FeatureTransformer
from bochner._catalogue import documented, entry, renamed
from bochner._metric import LearnedMetric
from bochner._models import KINDS, Accumulating, Classification, Model, Regression
from bochner._preparation import Preparation
from bochner._operator import OperatorGPRegressor
from bochner._processes import FeatureGPClassifier, FeatureGPRegressor, LocalGPRegressor

# The classes of maps and of kernels, by the names that files give them.
FEATURES = _features.CLASSES
KERNELS: dict[str, Any] = {
    kind._name: kind for kind in (getattr(kernels, name) for name in kernels.__all__) if hasattr(kind, "_name")
}

# What was learned besides the core's model, where an estimator has it.
_LEARNED = (
    "alpha_",
    "converged_",
    "fixed_",
    "kernel_",
    "length_scale_",
    "n_iter_",
    "noise_",
    "searched_",
    "seed_",
    "signal_",
    "signal_variance_",
    "target_shape_",
    "validation_losses_",
)
# What JSON has no word for.
_READ: dict[str, Any] = {"target_shape_": tuple, "validation_losses_": np.asarray}


def save(model: Model, path: str | os.PathLike[str], metric: LearnedMetric | None = None) -> None:
    """Write a fitted model to a file; see :meth:`Model.save`."""
    core = model._model()
    if type(model) is not KINDS.get(core.kind):
        raise TypeError(f"{type(model).__name__} has no model file; pickle keeps it")
    if isinstance(model, Classification):
        core = core.with_classes(json.dumps(model.classes_.tolist()))
    notes = {
        "params": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "learned": {name: _plain(getattr(model, name)) for name in _LEARNED if name in vars(model)},
        "dtype": str(model.dtype_),
        "labels": str(model.classes_.dtype) if isinstance(model, Classification) else None,
    }
    described = _preprocessing(model) if metric is None else _behind(metric, model)
    core = core.with_attachment("preprocessing", json.dumps(described))
    if isinstance(model, Accumulating) and model.keep_sums and hasattr(model, "sums_"):
        core = core.with_sums(model.sums_)
    core.with_attachment("python", json.dumps(notes)).save(os.fspath(path))


@documented
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

    >>> import bochner, tempfile
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
    core = _bochner.Model.load(os.fspath(path))
    header = json.loads(core.header)
    notes = header["extra"].get("python") or {}
    told = notes["params"] if "params" in notes else _guessed(core.kind, header)
    params = {name: _object(value) for name, value in told.items()}
    drawn, features = core.learned("map"), None
    if drawn is not None:
        own = params.get("features")
        features = _transformer(header["map"]) if own is None else clone(own)
        features.n_features_in_ = header["input_dim"]
        # A model on the parts of complex numbers side by side has another map than the features themselves.
        if features._complex_output() and not drawn.complex:
            drawn = _bochner.Map(json.dumps(header["map"]), header["input_dim"], core.dtype, True)
        features._adopt(drawn)
        if "params" not in notes:
            params["features"] = _transformer(header["map"])
    model = KINDS[core.kind](**params)
    model.model_ = core
    model.dtype_ = np.dtype(notes.get("dtype", core.dtype))
    if features is not None:
        model.features_ = features
    # What a file of another door does not tell is as it was given.
    if isinstance(model, (FeatureGPRegressor, OperatorGPRegressor)):
        model.noise_, model.signal_, model.n_iter_ = model.noise, model.signal, 1
    if isinstance(model, LocalGPRegressor):
        model.noise_ = model.noise
    if isinstance(model, FeatureGPClassifier) and model.inference == "dirichlet":
        model.alpha_ = model.alpha
    for name, value in notes.get("learned", {}).items():
        setattr(model, name, _READ.get(name, lambda value: value)(value))
    if isinstance(model, Classification):
        model.classes_ = np.array(header["classes"], dtype=notes.get("labels"))
    _adopt(model, header)
    if isinstance(model, Accumulating) and model.keep_sums and core.sums is not None:
        _resume(model, core)
    return model


def _resume(model: Any, core: Any) -> None:
    """The sums that were kept in a file."""
    model.n_outputs_ = 1 if isinstance(model, Classification) else int(np.prod(model.target_shape_, dtype=int))
    shape = (model.n_features_in_, model.n_outputs_, model.dtype_.name)
    known = (model._n_classes(), getattr(model, "seed_", 0))
    model.sums_ = _bochner.Sums(model._kind, model._on(), model._plan(), *shape, *known, core.sums)
    model.added_ = object()
    model.solved_ = (model.added_, model.model_)
    del model.model_


def _guessed(kind: str, header: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a file that another door has written, by the names that they have here."""
    spec, extra = header["map"], header["extra"]
    penalty = (extra.get("training") or {}).get("penalty")
    # A violated margin has the price that weighs coefficients as a penalty does.
    found = {} if penalty is None else {"alpha": penalty, "C": 0.5 / max(penalty, 1e-12)}
    found |= extra | (extra.get("process") or {})
    if kind == "svi_classifier":
        found["inference"] = "variational"
    if kind == "local_gp":
        found |= spec | {"noise": extra["noise_variance"], "random_state": spec["seed"]}
    elif isinstance(spec.get("kernel"), dict):
        found |= {name: value for name, value in spec.items() if name != "kernel"} | {"random_state": spec["seed"]}
        kernel = spec["kernel"]
        if kernel["kernel"] == "decomposable":
            found |= {"length_scale": kernel["base"].get("length_scale", 1.0), "A": kernel["matrix"]}
        elif "base" in kernel:
            found["kernel"] = _kernel(kernel)
        else:
            found |= {"kernel": entry("operator_kernels", kernel["kernel"])["name"], "length_scale": kernel["length_scale"]}
    elif "map" not in spec:
        found["kernel"] = _kernel(spec)
    return {p.name: found[p.name] for p in KINDS[kind]._parameters if p.name in found}


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
        if isinstance(model, Regression) and any("log" in unit for unit in units):
            model.target_scales_ = units
    if isinstance(model, LocalGPRegressor) and not hasattr(model, "target_units_"):
        model.target_units_ = (np.zeros(outputs), np.ones(outputs))
    if isinstance(model, Regression) and not hasattr(model, "target_shape_"):
        model.target_shape_ = () if outputs == 1 else (outputs,)


def _numbered(count: int) -> list[str]:
    """Names of columns that have none: the command line counts them from 1."""
    return [str(number + 1) for number in range(count)]


def _behind(metric: LearnedMetric, model: Model) -> dict[str, Any]:
    """The same of a model that has learned from the rows of a metric."""
    check_is_fitted(metric)
    if hasattr(model, "preparation_"):
        raise ValueError("metric: this model is from a file that says what is done to rows first; it takes no metric besides")
    if metric.n_features_in_ != model.n_features_in_:
        raise ValueError(
            f"metric: its rows have {metric.n_features_in_} columns, those of {type(model).__name__} {model.n_features_in_}; "
            "it must be the metric whose rows the model has learned from"
        )
    described = _preprocessing(model, getattr(metric, "feature_names_in_", _numbered(metric.n_features_in_)))
    assert described is not None
    described["steps"] = [{"step": "metric", "matrix": metric.components_.tolist()}]
    return described


def _preprocessing(model: Any, names: Any = None) -> dict[str, Any] | None:
    """What the command line has to know about columns and targets; None where rows are taken as they are and have no names."""
    preparation, units = getattr(model, "preparation_", None), getattr(model, "target_units_", None)
    several = isinstance(model, Regression) and len(model.target_shape_) > 0
    if names is None and preparation is None and units is None and not several and not hasattr(model, "feature_names_in_"):
        return None
    if preparation is not None:
        described = dict(preparation.spec)
        inputs = described["schema"]["inputs"]
    else:
        names = getattr(model, "feature_names_in_", _numbered(model.n_features_in_)) if names is None else names
        inputs = [{"name": str(name), "kind": {"number": {}}} for name in names]
        described = {"missing": "refuse", "steps": []}
    if isinstance(model, Regression):
        count = model.target_shape_[0] if model.target_shape_ else 1
        mean, scale = units if units is not None else (np.zeros(count), np.ones(count))
        described["targets"] = [{"mean": float(m), "scale": float(s)} for m, s in zip(mean, scale, strict=True)]
        described["targets"] = getattr(model, "target_scales_", described["targets"])
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
    known = {parameter.name for parameter in features._parameters}
    params = {name: value for name, value in spec.items() if name in known and value is not None}
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
