"""Parameters as Python shows them: signatures, types and docstrings from what the core's catalogue says."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import json
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from bochner import _bochner

# Kinds of things ("maps", "kernels", "operator_kernels"), each a list of entries with their parameters.
CATALOGUE: dict[str, list[dict[str, Any]]] = json.loads(_bochner.catalogue())

@dataclass(frozen=True)
class Parameter:
    """A parameter of a map, a kernel or a model: its name, default, type as docstrings write it, and sentence."""

    name: str
    default: Any
    type: str
    about: str

    @property
    def annotation(self) -> str:
        """As signatures write it."""
        if self.name == "random_state":
            return "RandomState"
        kinds = {"transformer": "FeatureTransformer", "kernel": "Kernel", "operator-valued kernel": "OperatorKernel"}
        kinds |= {"array-like": "ArrayLike", "sequence of float": "ArrayLike"}
        text = re.sub(r" of shape \(.*?\)", "", self.type).replace(" or ", ", ")
        found = [part.strip() for part in re.findall(r'\{.*?\}|".*?"|[^,{}"]+', text) if part.strip()]
        found = [f"Literal[{part.strip('{}')}]" if part[0] in '{"' else kinds.get(part, part) for part in found]
        return " | ".join(dict.fromkeys([*found, "None"] if self.default is None else found))

    @property
    def lines(self) -> list[str]:
        """Its part of a docstring."""
        default = json.dumps(self.default) if isinstance(self.default, str) else repr(self.default)
        return _item(self.name, f"{self.type}, default={default}", self.about)


def _type(domain: Any, name: str, default: Any) -> str:
    """What a parameter may be, as docstrings write it."""
    kind: str
    of: Any
    kind, of = (domain, None) if isinstance(domain, str) else next(iter(domain.items()))
    if kind == "whole" and of[1] is not None and of[1] - of[0] == 1:
        return f"{{{of[0]}, {of[1]}}}"
    if kind == "word":
        # The default is named first.
        words = sorted((choice["name"] for choice in of), key=lambda word: word != default)
        return "{" + ", ".join(f'"{word}"' for word in words) + "}"
    if kind == "either":
        types = [_type(part, name, default) for part in of]
        return " or ".join([", ".join(types[:-1]), types[-1]])
    if kind == "list":
        return "array-like of shape (n_features,)" if name == "length_scale" else "sequence of float"
    plain = {"whole": "int", "flag": "bool", "only": f'"{of}"', "matrix": "array-like", "parts": "dict"}
    return _type(of, name, default) if kind == "optional" else plain.get(kind, "float")


def parameters(entry: dict[str, Any]) -> list[Parameter]:
    """The parameters of an entry of the catalogue."""
    names = {p["name"] for p in entry["parameters"]}

    def quoted(match: re.Match[str]) -> str:
        return f"`{match[1]}`" if match[1] in names else f'"{match[1]}"' if match[1].isidentifier() else f"``{match[1]}``"

    def read(p: dict[str, Any]) -> Parameter:
        about, parts = p["about"], p["domain"]
        parts = parts["either"] if "either" in parts else [parts]
        if p["name"] == "kernel":
            choices = [choice for part in parts for choice in (part["word"] if "word" in part else [])]
            about += " " + "; ".join(f"`{c['name']}`: {c['about'].rstrip('.')}" for c in choices) + "."
        kind = _type(p["domain"], p["name"], p["default"])
        return Parameter(p["name"], p["default"], kind, re.sub(r"`([^`]+)`", quoted, about))

    return [read(p) for p in entry["parameters"]]


def entry(kind: str, name: str) -> dict[str, Any]:
    """What the catalogue says of something by its name, or a name it had before."""
    return next(e for e in CATALOGUE[kind] if name == e["name"] or name in e["aliases"])


def camel(name: str) -> str:
    """``curl_free`` as a class is called."""
    return "".join(part.capitalize() for part in name.split("_"))


def declared(name: str, known: Iterable[Parameter], **attributes: Any) -> type:
    """A base class with an `__init__` that stores these parameters untouched; the first ones may be given by position."""
    known = tuple(known)
    first = int(known[0].name in ("features", "kernel", "n_components"))
    # What says which features there are, where both are said.
    first += int([p.name for p in known[:2]] == ["kernel", "n_components"])
    given = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * first
    kinds = [*given, *[inspect.Parameter.KEYWORD_ONLY] * (len(known) - first)]
    taken = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)] + [
        inspect.Parameter(p.name, kind, default=p.default, annotation=p.annotation)
        for p, kind in zip(known, kinds, strict=True)
    ]
    signature = inspect.Signature(taken, return_annotation="None")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **renamed(type(self), kwargs))
        bound.apply_defaults()
        for parameter in known:
            setattr(self, parameter.name, bound.arguments[parameter.name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return type(name, (), {"__init__": __init__, "__module__": __name__, "_parameters": known, **attributes})


def renamed(owner: Any, given: Mapping[str, Any], warn: bool = True) -> dict[str, Any]:
    """Arguments by their present names; old ones are accepted for one version."""
    for old in (name for name in given if name in owner._renamed and warn):
        message = f"{owner.__name__}: {old} is called {owner._renamed[old]} now; the old name goes in version 0.3"
        warnings.warn(message, FutureWarning, stacklevel=3)
    return {owner._renamed.get(name, name): value for name, value in given.items()}


# Of what standard deviations are, with noise and without.
_NOISE: Any = CATALOGUE.pop("deviations")
# Arguments of methods and functions by their names: type and sentence.
ARGUMENTS: dict[str, tuple[str, str]] = {
    "X": ("array-like or sparse matrix of shape (n_samples, n_features)", "Rows."),
    "Y": ("array-like of shape (n_samples_Y, n_features), default=None", "Other rows; the rows of X if not given."),
    "y": ("array-like of shape (n_samples,) or (n_samples, n_targets)", "Targets, or labels."),
    "sample_weight": ("float or array-like of shape (n_samples,), default=None", "Weights of the rows."),
    "source": (
        "path, list of paths, object with an Arrow stream, or iterable of batches",
        "A file, a folder, a pattern such as ``'part-*.parquet'`` or a list of these, in the formats of the command line; a pyarrow "
        "table or reader, a polars frame, a DuckDB relation, a pandas frame; or batches ``(X, y)``.",
    ),
    "target": ("str or list of str, default=\"y\"", "The columns to predict; batches have theirs beside them."),
    "columns": ("list of str, default=None", "The columns of rows; all others if not given."),
    "decay": (
        "float, default=1.0",
        "What the weights of all earlier rows are multiplied with first: below 1, a stream that drifts forgets what it was.",
    ),
    "return_std": ("bool, default=False", f"Whether to return standard deviations as well, {_NOISE['without_noise']}."),
    "include_noise": (
        "bool, default=False",
        f"Whether standard deviations and covariances are those {_NOISE['with_noise']}, as ``bochner predict --std`` has them, "
        f"rather than {_NOISE['without_noise']}, as ``--without-noise`` has them.",
    ),
    "return_cov": ("bool, default=False", "Whether to return the covariance between all pairs of rows as well."),
    "q": ("array-like of shape (..., n_queries, d)", "Queries; axes in front, such as heads, are attended to one by one."),
    "k": ("array-like of shape (..., n_keys, d)", "Keys."),
    "v": ("array-like of shape (..., n_keys, n_values)", "Values."),
    "causal": ("bool, default=False", "Whether query i sees only keys up to i."),
    "ax": ("matplotlib Axes, default=None", "Where to draw; None makes new axes."),
    "random_state": ("int, Generator, RandomState or None, default=None", "Seed of the draws."),
    "n_jobs": ("int, default=None", "Threads; None and -1 mean all processors."),
}
# What is returned, by its annotation.
RETURNS = {
    "Self": ["self : object", "    The fitted estimator."],
    "Axes": ["ax : matplotlib Axes", "    Where it was drawn. Its labels are the names of columns, where they have any."],
}


def _item(name: str, kind: str, about: str) -> list[str]:
    return [f"{name} : {kind}", *textwrap.wrap(about, 112, initial_indent="    ", subsequent_indent="    ")]


def items(lines: Iterable[str]) -> dict[str, list[str]]:
    """The lines of each name in a section of a docstring."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith(" "):
            name = line.split(" : ")[0]
            found[name] = []
        found[name].append(line)
    return found


# Where public things are imported from, by their names.
_HOMES: dict[str, str] = {}


def _example(thing: Any, lines: list[str]) -> list[str]:
    """An example of something with what it imports in front, where it does not say so itself."""
    _HOMES[thing.__name__] = "bochner" if "._" in thing.__module__ else thing.__module__
    text = "\n".join(lines)
    said = "\n".join(line for line in lines if re.match(">>> (import|from) ", line))
    used = [name for name in _HOMES if re.search(rf"(?<![.\w]){name}\b", text) and not re.search(rf"\b{name}\b", said)]
    imports = [">>> import numpy as np"] if "np." in text else []
    for home in sorted({_HOMES[name] for name in used}):
        imports.append(f">>> from {home} import {', '.join(sorted(name for name in used if _HOMES[name] == home))}")
    return imports + lines


def _sections(text: str | None) -> dict[str, list[str]]:
    """The parts of a docstring by their titles; what is in front has none, and examples need none."""
    text = re.sub(r"(\A|\n\n)>>> ", r"\1Examples\n--------\n>>> ", inspect.cleandoc(text or ""), count=1)
    parts = re.split(r"(?:^|\n)([A-Z][A-Za-z ]+)\n-{3,}\n", text)
    return {title: body.strip().splitlines() for title, body in zip(["", *parts[1::2]], parts[::2], strict=True)}


def _completed(thing: Any, text: str | None, **known: dict[str, list[str]]) -> str:
    """A docstring with what is known of each section; names that only the docstring has come first."""
    written = _sections(text)
    if "Examples" in written:
        written["Examples"] = _example(thing, written["Examples"])
    parts = ["\n".join(written.pop(""))]
    for title, described in known.items():
        own = items(written.pop(title, []))
        names = [*(name for name in own if name not in described), *described]
        written = {title: [line for name in names for line in own.get(name) or described[name]]} | written
    order = ["Parameters", "Attributes", "Returns", *written]
    parts += ["\n".join([t, "-" * len(t), *written[t]]) for t in dict.fromkeys(order) if written.get(t)]
    return "\n\n".join(part for part in parts if part) + "\n"


F = TypeVar("F", bound=Callable[..., Any])


def documented(function: F, **others: tuple[str, str]) -> F:
    """A function with the sentences of arguments that are the same everywhere, or in `others`."""
    written, signature, known = _sections(function.__doc__), inspect.signature(function), ARGUMENTS | others
    own = items(written.get("Parameters", []))
    taken = [name for name, p in signature.parameters.items() if name != "self" and p.kind is not p.VAR_KEYWORD]
    sections = {"Parameters": {name: own.get(name) or _item(name, *known[name]) for name in taken}}
    if signature.return_annotation in RETURNS and "Returns" not in written:
        sections["Returns"] = {"": RETURNS[signature.return_annotation]}
    function.__doc__ = _completed(function, function.__doc__, **sections)
    return function


@functools.cache
def _address() -> str:
    """Where the guide is read online, if the metadata of the package say so."""
    try:
        known = importlib.metadata.metadata("bochner").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    return next((url.split(", ", 1)[1].rstrip("/") for url in known if url.startswith("Documentation, ")), "")


class Documented:
    """Classes of this package whose docstrings are filled in: parameters, shared arguments, what `fit` has learned."""

    # What the catalogue says of a thing, where its docstring begins with nothing else.
    _about: ClassVar[str] = ""
    _parameters: ClassVar[tuple[Parameter, ...]] = ()
    _renamed: ClassVar[dict[str, str]] = {}
    # What is learned in `fit`: type and sentence. Properties say theirs in front of their own docstrings.
    _learned: ClassVar[dict[str, tuple[str, str]]] = {}
    # Arguments whose meaning is special to a class and those below it.
    _arguments: ClassVar[dict[str, tuple[str, str]]] = {}
    # Notebooks show an estimator with a link to its page in the reference, where there is an address.
    _doc_link_module = "bochner"

    @property
    def _doc_link_template(self) -> str:
        return f"{_address()}/generated/reference/{{estimator_module}}.{{estimator_name}}.html"

    def _get_doc_link(self) -> str:
        link: Any = super()
        return link._get_doc_link() if _address() else ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__module__.startswith("bochner."):
            return
        known = {name: about for kind in cls.__mro__[::-1] for name, about in vars(kind).get("_arguments", {}).items()}
        for name, function in vars(cls).items():
            if inspect.isfunction(function) and not name.startswith("_"):
                function.__doc__ = function.__doc__ or getattr(super(cls, cls), name).__doc__
                documented(function, **known)
        learned: dict[str, list[str]] = {}
        for kind in cls.__mro__:
            described = dict(vars(kind).get("_learned", {}))
            for name, value in vars(kind).items():
                if isinstance(value, property) and name.endswith("_") and not name.startswith("_"):
                    described[name] = " ".join((value.__doc__ or "").split()).split(": ", 1)
            learned |= {name: _item(name, *about) for name, about in described.items() if name not in learned}
        if cls._parameters:
            text = inspect.cleandoc(cls.__doc__ or "")
            text = f"{cls._about.replace('`', '``')}\n\n{text}" if text.startswith(">>>") else text
            shown = {p.name: p.lines for p in cls._parameters}
            cls.__doc__ = _completed(cls, text, Parameters=shown, Attributes=learned)


class Fitted(Documented):
    """What every estimator learns."""


    _learned = {
        "n_features_in_": ("int", "Columns of the rows seen in `fit`."),
        "feature_names_in_": ("ndarray of shape (n_features_in_,)", "Their names, where they had any."),
    }

    def __getstate__(self) -> dict[str, Any]:
        """A copy: another thread may be fitting the estimator while it is pickled."""
        state: Any = super().__getstate__()
        return dict(state)
