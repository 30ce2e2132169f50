"""Lists everything public for the Python reference, by what it is, and orders the examples."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import bochner
from bochner._base import FeatureTransformer

INTRODUCTION = """\
# Python reference

Everything follows scikit-learn's conventions: besides the methods shown, transformers have `fit_transform`, `set_output`,
`get_feature_names_out` and `get_params`, and models have `get_params`, `set_params` and `score`.
"""


def kind(thing):
    """The heading a thing of the package itself belongs under."""
    if not inspect.isclass(thing):
        return "Functions"
    if issubclass(thing, Exception):
        return "Errors"
    return "Feature maps" if issubclass(thing, FeatureTransformer) else "Models"


def public(module):
    return [name for name in module.__all__ if callable(getattr(module, name))]


def section(heading, module, names):
    lines = [f"## {heading}", "", "```{eval-rst}", f".. currentmodule:: {module}", ".. autosummary::"]
    lines += ["   :toctree: reference", "", *(f"   {name}" for name in names), "```", ""]
    return "\n".join(lines)


def page():
    """The page in Markdown."""
    groups = {heading: [] for heading in ("Feature maps", "Models", "Functions", "Errors")}
    for name in public(bochner):
        groups[kind(getattr(bochner, name))].append(name)
    sections = [section(heading, "bochner", names) for heading, names in groups.items()]
    for found in pkgutil.iter_modules(bochner.__path__):
        if found.name.startswith("_"):
            continue
        try:
            module = importlib.import_module(f"bochner.{found.name}")
        except ImportError:
            continue  # an extra that is not installed
        sections.append(section(f"`{module.__name__}`", module.__name__, public(module)))
    return "\n".join([INTRODUCTION, *sections])


class ByTask:
    """The order of examples: that of the list in their README, others behind it by name."""

    def __init__(self, folder):
        self.listed = re.findall(r"^\* :doc:`(\w+)`", (Path(folder) / "README.rst").read_text(encoding="utf-8"), re.M)

    def __call__(self, name):
        stem = Path(name).stem
        return (self.listed.index(stem) if stem in self.listed else len(self.listed), stem)
