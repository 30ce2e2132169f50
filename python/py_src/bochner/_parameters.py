"""Parameters of maps and models as Python takes them: those of the core's catalogue, and those that only Python has."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bochner._catalogue import CATALOGUE, Parameter, items, parameters

_COMMON = """
random_state : int, Generator, RandomState or None, default=None
    Seed of the features, where they have none of their own.
n_jobs : int, default=None
    Threads; None and -1 mean all processors. Results do not depend on it.
verbose : int, default=0
    Whether to show progress.
features : transformer, default=None
    Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
kernel : kernel, default=None
    One of :mod:`bochner.kernels`; None stands for ``Gaussian()``.
keep_sums : bool, default=False
    Whether sums over the rows stay after `fit`, in pickles and in model files: `partial_fit` then goes on from there, and `merge`,
    `forget` and `refit` change the model without its rows. About half a square of the number of features, in numbers of 8 bytes.
"""


def _read(text: str) -> list[Parameter]:
    """Parameters as docstrings write them; those without a type are common ones."""
    found = []
    for name, (head, *about) in items(filter(None, text.splitlines())).items():
        if " : " in head:
            kind, default = head.split(" : ", 1)[1].split(", default=")
            found.append(Parameter(name, literal_eval(default), kind, " ".join(line.strip() for line in about)))
        else:
            found.append(_KNOWN[name])
    return found


_KNOWN: dict[str, Parameter] = {}
_KNOWN.update({parameter.name: parameter for parameter in _read(_COMMON)})

# What Python has besides the parameters of a map, or in place of them: parts by name are two parameters here.
_BESIDES: dict[str, str] = {
    "fourier": """
gamma : float or "scale", default=None
    Another way to give the length scale of the Gaussian kernel ``exp(-gamma |x - y|^2)``, as in
    :class:`sklearn.kernel_approximation.RBFSampler`; takes the place of `length_scale` if given.
""",
    "optical": """
encoding : {"bit_planes", "thermometer"}, default=None
    Another binary code in place of `binarize`: the digits of a value's level, or as many ones as there are thresholds below
    it. Ranges are those of the columns seen in `fit`.
levels : int, default=8
    Bits per value of `encoding`.
""",
}
# What it leaves to other doors.
_LEFT_OUT = {"encoding", "gain", "quantile", "ratio", "exact_constant", "cut"}
_DRAWN = """
random_state : int, Generator, RandomState or None, default=None
    Seed of the draw. An integer is the seed itself: the same features in every language.
n_jobs
"""


def _drawn(map: dict[str, Any]) -> Iterable[Parameter]:
    yield from (p for p in parameters(map) if p.name not in _LEFT_OUT)
    yield from _read(_BESIDES.get(map["name"], "") + _DRAWN)


MAPS = {map["name"]: list(_drawn(map)) for map in CATALOGUE["maps"]}

# What a model is given before its own parameters, and after them, where that is not a feature map and the seed of its draw, or
# of an exact model the kernel and nothing.
_BEFORE: dict[str, str] = {
    "local_gp": "",
    "operator_ridge": """
kernel : {"decomposable", "curl_free", "divergence_free", "helmholtz"} or operator-valued kernel, default="decomposable"
    Kernel of the functions, or one of :class:`bochner.kernels.Decomposable`, :class:`bochner.kernels.CurlFree`,
    :class:`bochner.kernels.DivergenceFree` and :class:`bochner.kernels.Helmholtz`, which have their own parameters.
""",
    "operator_ridge_classifier": "",
    "operator_gp": """
kernel : {"decomposable", "curl_free", "divergence_free", "helmholtz"} or operator-valued kernel, default="decomposable"
    Kernel of the functions, or one of :class:`bochner.kernels.Decomposable`, :class:`bochner.kernels.CurlFree`,
    :class:`bochner.kernels.DivergenceFree` and :class:`bochner.kernels.Helmholtz`, which have their own parameters.
""",
    "exact_operator_ridge": """
kernel : operator-valued kernel, default=None
    One of :class:`bochner.kernels.Decomposable`, :class:`bochner.kernels.CurlFree`,
    :class:`bochner.kernels.DivergenceFree` and :class:`bochner.kernels.Helmholtz`; None is a Gaussian kernel of length scale 1
    for outputs that are not related.
""",
}
_AFTER: dict[str, str] = {
    "exact_gp_classifier": """
random_state : int, Generator, RandomState or None, default=None
    Seed of the draws.
""",
    "gp_classifier": """
random_state : int, Generator, RandomState or None, default=None
    Seed of the features, where they have none of their own, of draws and of the rows held out.
""",
    "svm": """
random_state : int, Generator, RandomState or None, default=None
    Seed of the order of visits, and of the features where they have none of their own.
""",
}


def _taken(model: dict[str, Any]) -> Iterable[Parameter]:
    exact = model["name"].startswith(("exact_", "kernel_"))
    first = _read(_BEFORE.get(model["name"], "kernel" if exact else "features"))
    yield from first
    yield from (p for p in parameters(model) if p.name not in {parameter.name for parameter in first})
    kept = "\nkeep_sums" if model["sums"] else ""
    yield from _read(_AFTER.get(model["name"], "" if exact else "random_state") + f"{kept}\nn_jobs\nverbose")


MODELS = {model["name"]: list(_taken(model)) for model in CATALOGUE["models"]}


def _features() -> Iterable[Parameter]:
    """Features of an operator-valued kernel have parameters of the models on them."""
    known = {p.name: p for p in MODELS["operator_gp"]}
    about = "Distance over which the scalar kernel underneath falls off, one for each input of a field, or the median distance."
    yield known["n_components"]
    yield known["kernel"]
    yield replace(known["length_scale"], about=about)
    related = "How the outputs of a decomposable kernel are related: a positive semi-definite matrix, or not at all."
    yield replace(known["A"], type="array-like", about=related)
    yield known["projection"]
    yield from _read(_DRAWN)


OPERATOR_FEATURES = list(_features())
